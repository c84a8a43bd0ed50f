//! The scripted network: a channel whose platform is the simulated world. It keeps the promises of both halves of a
//! real adapter: one request a post, no retries, errors by what to do next.

use std::sync::Arc;
use std::time::Duration;

use vocative_contract::capability::{Capabilities, LengthUnit};
use vocative_contract::card::{Card, CardMisfit};
use vocative_contract::channel::{BoxFuture, Channel, CheckReach, Finding, Inbound};
use vocative_contract::clock::PlatformClock;
use vocative_contract::envelope::{ChatKind, Place};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::{LookUps, Outbound, Poster, Renderer, Signs};
use vocative_contract::history::HistoryReader;
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::live::{LiveForm, LivePost};
use vocative_contract::outbound::{Delivered, Operation, Part, Post, ReadBack, Target};
use vocative_contract::people::People;
use vocative_contract::probe::{ProbeAnswer, Probed, Prober, Sequence};
use vocative_contract::split::split_text;

use super::hearing::Hearing;
use super::life::Life;
use super::past::Past;
use super::plans::card_part;
use super::script::DIRECT_ROOM;
use super::world::{Arriving, BOT, ChangeTo, SimChange, World, is_unfinished};
use crate::plan::Mode;
use vocative::delivery::live::SETTLE_MS;

/// The channel's configured name.
pub(super) const NAME: &str = "sim";
/// Its account on the platform.
pub(super) const ACCOUNT: &str = "T1";
/// What the account is called.
pub(super) const ACCOUNT_NAME: &str = "Simulated";
/// Short, so that long answers have parts.
const TEXT_MAX_CHARS: usize = 170;
/// The client gives up on an answer after this.
const PATIENCE_MS: i64 = 30_000;
/// A post whose request is over arrives within this, or never.
const LATE_MAX_MS: i64 = 5_000;
/// As [`LATE_MAX_MS`], for a change of a post: the daemon waits this long for an earlier change to be over.
const LATE_CHANGE_MAX_MS: i64 = SETTLE_MS - 100;
const METHOD: &str = "post";
const CHANGE: &str = "change";

/// The channel.
pub(super) struct SimChannel(pub(super) Arc<Life>);

/// A room's chat id.
pub(super) fn chat_of(room: usize) -> String {
    format!("C{room}")
}

/// A room as events describe it.
pub(super) fn place_of(room: usize) -> Place {
    let kind = if room == DIRECT_ROOM {
        ChatKind::Direct
    } else {
        ChatKind::Public
    };
    Place {
        chat: chat_of(room),
        kind: Some(kind),
        ..Place::default()
    }
}

/// How Telegram numbers a room's messages: the first room is a supergroup.
pub(super) fn sequence(chat: &str) -> Option<Sequence> {
    let is_of_one_chat = room_of(chat)? == 0;
    let name = if is_of_one_chat { chat } else { "account" };
    Some(Sequence {
        name: name.to_owned(),
        is_of_one_chat,
    })
}

fn room_of(chat: &str) -> Option<usize> {
    chat.strip_prefix('C')?.parse().ok()
}

pub(super) fn not_sent(operation: &'static str) -> ChannelError {
    let cause = "connection refused".into();
    ChannelError::NotSent { operation, cause }
}

pub(super) fn unknown(operation: &'static str) -> ChannelError {
    let cause = "connection reset".into();
    ChannelError::OutcomeUnknown { operation, cause }
}

fn too_long(operation: &'static str) -> ChannelError {
    ChannelError::Rejected {
        operation,
        reason: "too_long".to_owned(),
        fallback: Fallback::Resplit,
    }
}

fn gone() -> ChannelError {
    ChannelError::Rejected {
        operation: CHANGE,
        reason: "message_not_found".to_owned(),
        fallback: Fallback::NewPost,
    }
}

/// The platform that a mode simulates.
pub(super) fn platform(mode: Mode) -> Platform {
    match mode {
        Mode::Slack => Platform::Slack,
        Mode::TelegramLook | Mode::TelegramResend | Mode::TelegramHold => Platform::Telegram,
    }
}

impl Channel for SimChannel {
    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChannelError>> {
        Box::pin(async {
            self.0.step("asking who we are").await;
            self.0.linger(10, 200).await;
            if self.0.world(|world| world.is_out() || world.fails(100)) {
                return Err(not_sent("identify"));
            }
            self.0.hear_date();
            Ok(Identity {
                platform: self.0.world(|world| platform(world.mode)),
                account: ACCOUNT.to_owned(),
                account_name: ACCOUNT_NAME.to_owned(),
                user_id: BOT.to_owned(),
                other_ids: Vec::new(),
                username: Some("vocative_bot".to_owned()),
                display_name: "Vocative".to_owned(),
                warnings: Vec::new(),
                organisation: None,
            })
        })
    }

    fn inbound(&self, identity: &Identity) -> Box<dyn Inbound> {
        Box::new(Hearing::new(Arc::clone(&self.0), identity.clone()))
    }

    fn outbound(&self, _identity: &Identity) -> Outbound {
        let posting = Arc::new(SimPoster(Arc::clone(&self.0)));
        let prober = Arc::clone(&posting);
        Outbound {
            prober: Some(prober),
            ..Outbound::of(&posting)
        }
    }

    fn history(&self, identity: &Identity) -> Option<Arc<dyn HistoryReader>> {
        let has_history = self.0.world(|world| world.is_slack());
        has_history.then(|| Arc::new(Past::new(Arc::clone(&self.0), identity.clone())) as _)
    }

    fn clock(&self) -> Option<Arc<PlatformClock>> {
        Some(Arc::clone(&self.0.platform))
    }

    fn capabilities(&self) -> Capabilities {
        let is_slack = self.0.world(|world| world.is_slack());
        Capabilities {
            text_max: TEXT_MAX_CHARS,
            text_unit: LengthUnit::Chars,
            has_threads: is_slack,
            has_replies: !is_slack,
            can_read_back: is_slack,
            can_read_history: is_slack,
            uploads_files: false,
            echoes_posts: is_slack,
            working_sign_ms: 0,
            chat_interval_ms: 1_000,
            live_edit_ms: 1_000,
            live_preview_ms: if is_slack { 0 } else { 500 },
            live_stream_ms: if is_slack { 500 } else { 0 },
        }
    }

    fn check(&self, _reach: CheckReach) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// The outbound half.
struct SimPoster(Arc<Life>);

/// What becomes of a request to post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostFate {
    Answered,
    Refused,
    Limited {
        wait_ms: u64,
    },
    TooLong,
    /// It arrives; its answer does not.
    Unanswered {
        patience_ms: i64,
    },
    /// It never arrives.
    Dropped {
        patience_ms: i64,
    },
    /// It arrives when the request was given up already.
    Late {
        wait_ms: i64,
    },
}

fn fate(world: &mut World, text: &str) -> PostFate {
    if world.is_out() {
        return if world.dice.hits(700) {
            PostFate::Refused
        } else {
            PostFate::Dropped {
                patience_ms: PATIENCE_MS,
            }
        };
    }
    if world.script.refuses(text) {
        if is_unfinished(text) {
            world.refused_beginnings.push(text.to_owned());
        }
        return PostFate::TooLong;
    }
    if !world.fails(300) {
        return PostFate::Answered;
    }
    let patience_ms = if world.dice.hits(200) { PATIENCE_MS } else { 0 };
    match world.dice.below(7) {
        0 => PostFate::Refused,
        1 => PostFate::Limited {
            wait_ms: 1_000 * (1 + world.dice.below(20)),
        },
        2 => PostFate::Late {
            wait_ms: world.dice.ms(0, LATE_MAX_MS),
        },
        3 | 4 => PostFate::Dropped { patience_ms },
        _ => PostFate::Unanswered { patience_ms },
    }
}

impl SimPoster {
    async fn post(&self, post: &Post) -> Result<Delivered, ChannelError> {
        let life = &self.0;
        life.step("before bytes leave").await;
        let fate = life.world(|world| fate(world, &post.part.text));
        life.linger(10, 300).await;
        life.world(|world| {
            if fate != PostFate::Answered {
                world.note(format_args!("a post fails: {fate:?}"));
            }
        });
        match fate {
            PostFate::Answered => self.arrive(post).await,
            PostFate::Refused => Err(not_sent(METHOD)),
            PostFate::Limited { wait_ms } => Err(ChannelError::RetryAfter {
                operation: METHOD,
                wait_ms,
            }),
            PostFate::TooLong => Err(too_long(METHOD)),
            PostFate::Unanswered { patience_ms } => {
                life.world(|world| world.arrive(post));
                life.step("after bytes arrived").await;
                life.sleep(patience_ms).await;
                Err(unknown(METHOD))
            }
            PostFate::Dropped { patience_ms } => {
                life.sleep(patience_ms).await;
                Err(unknown(METHOD))
            }
            PostFate::Late { wait_ms } => {
                let late = Arriving::Post(Box::new(post.clone()));
                life.world(|world| world.arrive_late(late, wait_ms));
                Err(unknown(METHOD))
            }
        }
    }

    /// Changes a post of ours with one request.
    async fn change(&self, change: SimChange) -> Result<(), ChannelError> {
        let life = &self.0;
        life.step("before bytes leave").await;
        let text = match &change.to {
            ChangeTo::Text(text, _) => text.as_str(),
            ChangeTo::More(_) | ChangeTo::Nothing => "",
        };
        let fate = life.world(|world| fate(world, text));
        life.linger(10, 300).await;
        if fate != PostFate::Answered {
            life.world(|world| world.note(format_args!("a change fails: {fate:?}")));
        }
        let arrive = || life.world(|world| world.change(&change));
        match fate {
            PostFate::Answered => {
                let is_changed = arrive();
                life.step("after bytes arrived").await;
                life.linger(10, 300).await;
                if is_changed { Ok(()) } else { Err(gone()) }
            }
            PostFate::Refused => Err(not_sent(CHANGE)),
            PostFate::Limited { wait_ms } => Err(ChannelError::RetryAfter {
                operation: CHANGE,
                wait_ms,
            }),
            PostFate::TooLong => Err(too_long(CHANGE)),
            PostFate::Unanswered { patience_ms } => {
                arrive();
                life.step("after bytes arrived").await;
                life.sleep(patience_ms).await;
                Err(unknown(CHANGE))
            }
            PostFate::Dropped { patience_ms } => {
                life.sleep(patience_ms).await;
                Err(unknown(CHANGE))
            }
            PostFate::Late { wait_ms } => {
                let late = Arriving::Change(change.clone());
                let wait_ms = wait_ms.min(LATE_CHANGE_MAX_MS);
                life.world(|world| world.arrive_late(late, wait_ms));
                Err(unknown(CHANGE))
            }
        }
    }

    async fn deliver_any(&self, post: &Post) -> Result<Delivered, ChannelError> {
        let (message_id, to) = match &post.operation {
            Operation::Post => return self.post(post).await,
            Operation::Answer { .. } | Operation::Ephemeral { .. } => {
                return self.tell_one(post).await;
            }
            Operation::Edit { message_id } => {
                let part = &post.part;
                let to = ChangeTo::Text(part.text.clone(), part.buttons.clone());
                (message_id, to)
            }
            Operation::Delete { message_id } => (message_id, ChangeTo::Nothing),
            other => return Err(ChannelError::unsupported(other)),
        };
        let change = SimChange {
            chat: post.target.chat.clone(),
            message_id: message_id.clone(),
            to,
        };
        let changed = self.change(change).await;
        let is_gone = matches!(
            &changed,
            Err(ChannelError::Rejected {
                fallback: Fallback::NewPost,
                ..
            })
        );
        // Deleting a post that is gone is a success.
        if !(is_gone && matches!(post.operation, Operation::Delete { .. })) {
            changed?;
        }
        Ok(Delivered {
            chat: post.target.chat.clone(),
            message_id: message_id.clone(),
            sent_at_ms: self.0.now_ms(),
            shown: None,
        })
    }

    /// Tells one person something that the room does not see.
    async fn tell_one(&self, post: &Post) -> Result<Delivered, ChannelError> {
        let life = &self.0;
        life.step("before bytes leave").await;
        life.linger(10, 300).await;
        if life.world(|world| world.is_out() || world.fails(100)) {
            return Err(unknown(METHOD));
        }
        life.hear_date();
        Ok(Delivered {
            chat: post.target.chat.clone(),
            message_id: String::new(),
            sent_at_ms: life.now_ms(),
            shown: None,
        })
    }

    async fn show(&self, live: &LivePost) -> Result<(), ChannelError> {
        let (message_id, to) = match &live.form {
            LiveForm::Preview { .. } => {
                self.0.step("before bytes leave").await;
                self.0.linger(10, 300).await;
                return match self.0.world(|world| world.is_out() || world.fails(100)) {
                    true => Err(unknown(CHANGE)),
                    false => Ok(()),
                };
            }
            LiveForm::Post { message_id } => {
                let to = ChangeTo::Text(live.part.text.clone(), Vec::new());
                (message_id, to)
            }
            LiveForm::Stream { message_id, added } => (message_id, ChangeTo::More(added.clone())),
        };
        self.change(SimChange {
            chat: live.target.chat.clone(),
            message_id: message_id.clone(),
            to,
        })
        .await
    }

    async fn arrive(&self, post: &Post) -> Result<Delivered, ChannelError> {
        let life = &self.0;
        let Some((delivered, arrival)) = life.world(|world| world.arrive(post)) else {
            return Err(ChannelError::ChatRefused {
                operation: METHOD,
                reason: "there is no such room".to_owned(),
            });
        };
        life.step("after bytes arrived").await;
        life.linger(10, 300).await;
        life.hear_date();
        life.world(|world| world.arrivals[arrival].told_at_ms = Some(world.now_ms));
        Ok(delivered)
    }
}

/// Renders texts unchanged, in parts.
fn render(text: &str, max_chars: usize) -> Vec<Part> {
    let pieces = split_text(text, max_chars, LengthUnit::Chars);
    pieces.into_iter().map(Part::plain).collect()
}

impl Renderer for SimPoster {
    fn render(&self, text: &str, _people: &People) -> Vec<Part> {
        render(text, TEXT_MAX_CHARS)
    }

    fn render_card(&self, card: &Card) -> Result<Part, CardMisfit> {
        Ok(card_part(card))
    }

    fn render_fallback(&self, part: &Part, fallback: Fallback) -> Vec<Part> {
        match fallback {
            Fallback::Resplit => render(&part.text, part.text.chars().count() * 2 / 3),
            _ => vec![part.clone()],
        }
    }
}

impl Signs for SimPoster {
    fn show_live<'a>(&'a self, live: &'a LivePost) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.show(live))
    }

    fn show_working<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl LookUps for SimPoster {
    fn is_member<'a>(
        &'a self,
        _chat: &'a str,
        _person: &'a str,
    ) -> BoxFuture<'a, Result<Option<bool>, ChannelError>> {
        Box::pin(async { Ok(Some(true)) })
    }

    fn read_back<'a>(
        &'a self,
        post: &'a Post,
        since_ms: i64,
    ) -> BoxFuture<'a, Result<ReadBack, ChannelError>> {
        Box::pin(async move {
            let life = &self.0;
            life.step("before a look").await;
            life.linger(10, 300).await;
            if life.world(|world| world.is_out() || world.fails(100)) {
                return Err(unknown("look"));
            }
            if life.world(|world| world.fails(50)) {
                let wait_ms = 5_000;
                let operation = "look";
                return Err(ChannelError::RetryAfter { operation, wait_ms });
            }
            life.hear_date();
            Ok(life.world(|world| look(world, post, since_ms)))
        })
    }

    fn person_name<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        Box::pin(async move {
            self.0.step("asking for a name").await;
            self.0.linger(10, 500).await;
            if self.0.world(|world| world.is_out() || world.fails(100)) {
                return Err(not_sent("name"));
            }
            Ok(Some(format!("Person {id}")))
        })
    }

    fn chat_facts<'a>(&'a self, chat: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>> {
        Box::pin(async move {
            self.0.step("asking for a chat").await;
            self.0.linger(10, 500).await;
            if self.0.world(|world| world.is_out() || world.fails(100)) {
                return Err(not_sent("chat"));
            }
            let room = chat.trim_start_matches('C').parse().unwrap_or(0);
            Ok(place_of(room))
        })
    }
}

impl Poster for SimPoster {
    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>> {
        Box::pin(self.deliver_any(post))
    }
}

impl Prober for SimPoster {
    fn sequence(&self, chat: &str) -> Option<Sequence> {
        let is_numbered = self.0.world(|world| world.is_numbered());
        sequence(chat).filter(|_| is_numbered)
    }

    /// The daemon asks once a second by itself.
    fn wait_before_probe(&self, _chat: &str) -> Duration {
        Duration::ZERO
    }

    fn probe<'a>(
        &'a self,
        chat: &'a str,
        number: i64,
    ) -> BoxFuture<'a, Result<Probed, ChannelError>> {
        Box::pin(async move {
            let life = &self.0;
            life.step("before a question").await;
            life.linger(10, 300).await;
            if life.world(|world| world.is_out() || world.fails(100)) {
                return Err(unknown("probe"));
            }
            if life.world(|world| world.fails(30)) {
                let (operation, wait_ms) = ("probe", 5_000);
                return Err(ChannelError::RetryAfter { operation, wait_ms });
            }
            Ok(life.world(|world| Probed {
                answer: match room_of(chat) {
                    Some(room) => world.probe(room, number),
                    None => ProbeAnswer::Unclear,
                },
                // The platform counts whole seconds.
                answered_by_ms: Some(world.now_ms / 1_000 * 1_000 + 1_000),
            }))
        })
    }
}

/// Looks for a post as the adapter does: not older than `since_ms`, with some seconds' tolerance.
fn look(world: &mut World, post: &Post, since_ms: i64) -> ReadBack {
    const LEAD_MS: i64 = 5_000;
    let messages = world.rooms.iter().flatten();
    let found = messages
        .filter(|message| message.visible_at_ms <= world.now_ms && !message.is_deleted)
        .filter(|message| message.at_ms >= since_ms.saturating_sub(LEAD_MS))
        .find(|message| message.marker.as_ref() == Some(&post.marker))
        .map(|message| Delivered {
            chat: post.target.chat.clone(),
            message_id: message.id.clone(),
            sent_at_ms: message.at_ms,
            shown: None,
        });
    let is_found = found.is_some();
    world.note(format_args!("a look finds it: {is_found}"));
    found.map_or(ReadBack::NotFound, ReadBack::Found)
}
