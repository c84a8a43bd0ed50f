//! Rooms: a list, the timeline of one, its summaries; and the look into a direct chat.

use axum::extract::{Form, Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{PageResult, button, nothing, older};
use crate::desk::{Ask, Deed, Trace};
use crate::page::{Page, part};
use crate::person::UserRole;
use crate::sessions::Visitor;
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{Entry, Post, Room, RoomLine, RoomPage, Run, Summaries, Summary, Turn};
use crate::walls;

/// The most rooms on one page.
pub(crate) const ROOMS: usize = 50;

#[derive(Deserialize)]
pub(crate) struct RoomsQuery {
    before: Option<String>,
    #[serde(default)]
    all: bool,
}

/// All rooms, ordered by their last message, newest first.
pub(crate) async fn rooms(
    State(console): State<ConsoleState>,
    who: Who,
    Query(query): Query<RoomsQuery>,
) -> PageResult {
    let asked = Ask::Rooms {
        before: query.before,
        all: query.all,
    };
    let rooms: Vec<RoomLine> = console.ask(asked).await?;
    let next = rooms.last().filter(|_| rooms.len() == ROOMS);
    let next = next.map(|last| {
        let all = if query.all { "&all=true" } else { "" };
        format!("/rooms?before={}.{}{all}", last.last_activity_ms, last.id)
    });
    let list = html! {
        @if rooms.is_empty() { (nothing("Nothing was said anywhere yet.")) }
        @else {
            table {
                caption.unseen { "Rooms, the newest first" }
                thead { tr {
                    th scope="col" { "Room" } th scope="col" { "Kind" } th scope="col" { "At work" }
                    th.number scope="col" { "Turns" } th scope="col" { "Last said" }
                } }
                tbody { @for room in &rooms { (room_row(room)) } }
            }
        }
    };
    let body = html! {
        p.tools {
            @if query.all { a href="/rooms" { "Without archived ones" } }
            @else { a href="/rooms?all=true" { "With archived ones" } }
        }
        (part("rooms", &list))
        (older(next))
    };
    let page = Page {
        title: "Rooms",
        at: "/rooms",
        body,
    };
    page.shown(&console, &who).await
}

fn room_row(room: &RoomLine) -> Markup {
    html! {
        tr {
            th scope="row" data-label="Room" {
                a href={ "/rooms/" (room.id) } { (show::word(&room.name)) }
                // The title of a direct chat may be the first words that were said in it.
                @if !room.is_direct || room.has_own_title { small { (show::word(&room.title)) } }
            }
            td data-label="Kind" {
                (kind(room))
                @if room.archived_at_ms.is_some() { " " span.chip.plain { "archived" } }
            }
            td data-label="At work" {
                @if let Some(run) = &room.active_run { (run.agent) " " (show::state(&run.state)) }
            }
            td.number data-label="Turns" { (show::grouped(room.turns)) }
            td data-label="Last said" { (show::time(room.last_activity_ms)) }
        }
    }
}

fn kind(room: &RoomLine) -> &str {
    match room.scope.as_str() {
        "thread" => "thread",
        "dm" => "direct",
        _ => room.source.kind.as_deref().unwrap_or("room"),
    }
}

#[derive(Deserialize)]
pub(crate) struct RoomQuery {
    before: Option<i64>,
}

/// One room with its timeline.
pub(crate) async fn room(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
    Query(query): Query<RoomQuery>,
) -> PageResult {
    let head: RoomLine = console.ask(Ask::RoomHead(id)).await?;
    let room = head.room();
    let shown = if console.shows(&who, &room) {
        let asked = Ask::Room {
            id: room.id.clone(),
            before: query.before,
        };
        let page: RoomPage = console.ask(asked).await?;
        let next = page.older_before;
        let next = next.map(|seq| format!("/rooms/{}?before={seq}", room.id));
        html! {
            (part("timeline", &timeline(&page)))
            (older(next))
            (changes(&who, &head))
        }
    } else {
        look_form(&who, &room, &format!("/rooms/{}", room.id))
    };
    let body = html! {
        (facts(&head))
        (shown)
    };
    let page = Page {
        title: &head.name,
        at: "/rooms",
        body,
    };
    page.shown(&console, &who).await
}

fn facts(head: &RoomLine) -> Markup {
    html! {
        p.facts {
            span.chip.plain { (kind(head)) }
            " " (head.source.channel) " · " (show::grouped(head.turns)) " turns · last said "
            (show::time(head.last_activity_ms))
            @if let Some(parent) = &head.parent { " · " a href={ "/rooms/" (parent) } { "the room of this thread" } }
        }
        p.tools {
            a.primary href={ "/rooms/" (head.id) "/prompt" } { "What would a model be sent now?" }
            a href={ "/rooms/" (head.id) "/summaries" } { "Summaries" }
            a href={ "/search?room=" (head.id) } { "Search here" }
        }
    }
}

/// The way into a direct chat: it says that the look is recorded, and leads back to the same page.
pub(super) fn look_form(who: &Visitor, room: &Room, back: &str) -> Markup {
    html! {
        section.gate {
            h2 { "This is a direct chat" }
            p { "What is said in it was said to the bot alone. Nothing of it is shown until somebody has a reason to look." }
            @if who.person.role >= UserRole::Operator {
                p { "Your look is recorded in the audit, with your name and the time. The texts are shown to you for ten minutes." }
                form method="post" action={ "/rooms/" (room.id) "/look" } {
                    input type="hidden" name="back" value=(back);
                    button.primary type="submit" { "Look into it" }
                }
            } @else {
                p { "That needs the role operator." }
            }
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct LookForm {
    back: String,
}

/// Records a look into a direct chat, and only then shows it.
pub(crate) async fn look(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
    Form(form): Form<LookForm>,
) -> PageResult {
    let head: RoomLine = console.ask(Ask::RoomHead(id)).await?;
    let trace = Trace::Looked(head.id.clone());
    console.desk.note(&who.person, trace).await?;
    console.doors.open_look(&who.key, &head.id);
    let own = format!("/rooms/{}", head.id);
    let back = if walls::is_own_path(&form.back) {
        form.back
    } else {
        own
    };
    Ok(axum::response::IntoResponse::into_response(
        axum::response::Redirect::to(&back),
    ))
}

fn timeline(page: &RoomPage) -> Markup {
    let turn_of = |seq: &serde_json::Value| {
        let seq = seq.as_i64()?;
        page.turns.iter().find(|turn| turn.seq == seq)
    };
    let who = page.participants.shown.iter();
    let who: Vec<&str> = who.map(|it| it.name.as_str()).collect();
    html! {
        @if !who.is_empty() {
            p.quiet {
                "With " (show::word(&who.join(", ")))
                @if page.participants.more > 0 { " and " (page.participants.more) " others" }
                "."
            }
        }
        @if let Some(root) = &page.root {
            ol.timeline { (turn(root, true)) }
        }
        @if page.timeline.is_empty() { (nothing("Nothing stands here any more.")) }
        ol.timeline {
            @for entry in &page.timeline {
                @match entry.entry.as_str() {
                    "turn" => @if let Some(found) = turn_of(&entry.of) { (turn(found, false)) },
                    _ => (happened(entry)),
                }
            }
        }
    }
}

fn turn(turn: &Turn, is_root: bool) -> Markup {
    html! {
        li class={ "turn " (turn.speaker_kind) } id={ "t" (turn.seq) } {
            p.by {
                b { (show::word(&turn.speaker)) }
                " " (show::time(turn.sent_at_ms)) " " a.seq href={ "#t" (turn.seq) } { "#" (turn.seq) }
                @if is_root { " " span.chip.plain { "begins the thread" } }
                @if turn.kind != "message" { " " span.chip.plain { (turn.kind) } }
                @if turn.visibility != "room" { " " span.chip.plain { (turn.visibility) } }
                @if turn.revision > 1 { " " span.chip.plain { "edited, version " (turn.revision) } }
                @for agent in &turn.addressed_to { " " span.chip.info { "to " (agent) } }
                @if turn.addressed_to.is_empty() && turn.speaker_kind == "user" { " " span.chip.plain { "overheard" } }
            }
            @if turn.text.is_empty() { p.quiet { "Deleted, or without words." } }
            @else { (show::said(&turn.text)) }
        }
    }
}

fn read<T: DeserializeOwned + Default>(entry: &Entry) -> T {
    serde_json::from_value(entry.of.clone()).unwrap_or_default()
}

fn happened(entry: &Entry) -> Markup {
    html! {
        li.happened {
            @match entry.entry.as_str() {
                "run" => {
                    @let run: Run = read(entry);
                    "Run " (show::run(&run.id)) " of " (run.agent) " " (show::state(&run.state))
                    @if let Some(reason) = &run.reason { " " span.quiet { (show::word(reason)) } }
                    " · " (show::grouped(run.prompt_tokens + run.completion_tokens)) " tokens · "
                    a.xray href={ "/runs/" (run.id) "/prompt" } { "What was it sent?" }
                },
                "post" => {
                    @let post: Post = read(entry);
                    "Posted " (show::state(&post.state))
                    @if let Some(reason) = &post.reason { " " span.quiet { (show::word(reason)) } }
                },
                "summary" => {
                    @let summary: Summary = read(entry);
                    (summary.turns) " turns were folded for " (summary.agent) " " (show::state(&summary.state))
                },
                other => (other),
            }
        }
    }
}

fn changes(who: &Visitor, head: &RoomLine) -> Markup {
    let is_archived = head.archived_at_ms.is_some();
    html! {
        @if who.person.role >= UserRole::Operator {
            details.more {
                summary { "Name it or put it away" }
                form method="post" action={ "/rooms/" (head.id) "/title" } {
                    label for="title" { "Title; empty = none of its own" }
                    input #title name="title" dir="auto" maxlength="200" value=[head.has_own_title.then_some(&head.title)];
                    button type="submit" { "Name it" }
                }
                form method="post" action={ "/rooms/" (head.id) "/archive" } {
                    input type="hidden" name="archived" value=(!is_archived);
                    button type="submit" { @if is_archived { "Take it back" } @else { "Put it away" } }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct TitleForm {
    title: String,
}

/// Names a room.
pub(crate) async fn title(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
    Form(form): Form<TitleForm>,
) -> PageResult {
    let title = Some(form.title).filter(|title| !title.trim().is_empty());
    let back = format!("/rooms/{id}");
    let deed = Deed::Title { room: id, title };
    console.act(&who, deed, &back).await
}

#[derive(Deserialize)]
pub(crate) struct ArchiveForm {
    archived: bool,
}

/// Archives a room, or restores it.
pub(crate) async fn archive(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
    Form(form): Form<ArchiveForm>,
) -> PageResult {
    let back = format!("/rooms/{id}");
    let deed = Deed::Archive {
        room: id,
        archived: form.archived,
    };
    console.act(&who, deed, &back).await
}

/// Has the summaries of a room made again.
pub(crate) async fn rebuild(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
) -> PageResult {
    let back = format!("/rooms/{id}/summaries");
    console.act(&who, Deed::RebuildSummaries(id), &back).await
}

/// The summaries that replace older turns of a room.
pub(crate) async fn summaries(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
) -> PageResult {
    let head: RoomLine = console.ask(Ask::RoomHead(id)).await?;
    let room = head.room();
    let path = format!("/rooms/{}/summaries", room.id);
    let shown = if console.shows(&who, &room) {
        let found: Summaries = console.ask(Ask::Summaries(room.id.clone())).await?;
        html! {
            @if found.summaries.is_empty() { (nothing("Nothing was folded in this room.")) }
            @for summary in found.summaries.iter().rev() { (summary_card(summary)) }
            @if who.person.role >= UserRole::Operator && !found.summaries.is_empty() {
                (button(&format!("/rooms/{}/rebuild", room.id), "Make them again", "danger",
                    Some("Set all summaries of this room aside? Models are asked to make them again, which costs tokens.")))
            }
        }
    } else {
        look_form(&who, &room, &path)
    };
    let body = html! {
        p { a href={ "/rooms/" (room.id) } { (show::word(&room.name)) } }
        (shown)
    };
    let page = Page {
        title: "Summaries",
        at: "/rooms",
        body,
    };
    page.shown(&console, &who).await
}

fn summary_card(summary: &Summary) -> Markup {
    html! {
        article.card {
            p.by {
                b { "Summary " (summary.id) } " for " (summary.agent) " " (show::state(&summary.state))
                " · " (summary.turns) " turns, " (show::time(summary.from_ms)) " to " (show::time(summary.through_ms))
                " · " (summary.tokens) " tokens · made by " (summary.model)
                @if let Some(previous) = summary.previous { " · goes on from " (previous) }
            }
            @if summary.text.is_empty() { p.quiet { "Void: what it stood for was deleted." } }
            @else { (show::said(&summary.text)) }
        }
    }
}
