//! `vocative status`.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::args::{StatusArgs, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{ago, instant, span, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{
    CapacityView, ChannelView, CollectionView, FileCountsView, JobCountView, ListenerView,
    MemoryCountsView, ModelRestView, PostCounts, StatusView, TokenRatioView,
};
use crate::daemon::start::wall_clock;
use vocative_core::approving::visible_line;
use vocative_core::counted::counted;
use vocative_core::job::JobKind;
use vocative_core::price::shown_amount;

/// Says how the daemon is doing; exit code 1 when something needs a person.
pub(super) async fn run(args: &StatusArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    if args.alive {
        return super::alive::run(context).await;
    }
    if args.capacity {
        return capacity(args, context).await;
    }
    let view: StatusView = ask(context, AdminOperation::Status).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => report(&view, (wall_clock())()),
    };
    context.print(&text)?;
    Ok(exit(&view).into())
}

async fn capacity(args: &StatusArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let view: CapacityView = ask(context, AdminOperation::Capacity).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => super::capacity::report(&view),
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

/// That no daemon runs decides the exit code before what its store reports.
fn exit(view: &StatusView) -> Exit {
    if view.started_at_ms.is_none() {
        Exit::Unavailable
    } else if view.needs_person.is_empty() {
        Exit::Ok
    } else {
        Exit::Failed
    }
}

fn posts_report(posts: &PostCounts) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "posts     {} waiting{}, {} being looked for, {} held{}, {} dead",
        posts.pending,
        oldest(posts.oldest_waiting_ms),
        posts.unknown,
        posts.held,
        match posts.undecided {
            0 => String::new(),
            undecided => format!(" ({undecided} undecided)"),
        },
        posts.dead
    );
    if posts.resent_undecided > 0 {
        let _ = writeln!(
            out,
            "          {} sent again so far though nobody could say whether they had arrived",
            posts.resent_undecided
        );
    }
    out
}

/// The background jobs of all kinds; `vocative jobs` lists them.
fn about_jobs(jobs: &[JobCountView]) -> String {
    let count = |state: &str| {
        let its = jobs.iter().filter(|job| job.state == state);
        its.map(|job| job.count).sum::<u64>()
    };
    format!(
        "jobs      {} pending, {} at work, {} waiting, {} given up\n",
        count("pending"),
        count("leased"),
        count("waiting"),
        count("dead")
    ) + about_cleaning(jobs)
}

/// A line while deleted text may still be in unused bytes of the database file.
fn about_cleaning(jobs: &[JobCountView]) -> &'static str {
    match jobs
        .iter()
        .any(|job| job.kind == JobKind::CleanPages.name())
    {
        true => {
            "pages     deleted text may be in unused bytes of the database file; a walk overwrites it within the hour\n"
        }
        false => "",
    }
}

fn servers(view: &StatusView, out: &mut String) {
    for server in &view.mcp {
        let tools = counted(server.tools, "tool", "tools");
        let cause = server.cause.iter().map(|cause| format!(": {cause}"));
        let cause: String = cause.collect();
        let _ = writeln!(
            out,
            "mcp       {}: {}, {tools}{cause}",
            server.name, server.state
        );
    }
}

/// Skills that agents name but can't use.
fn skills(view: &StatusView, out: &mut String) {
    for skill in &view.skills {
        let told = match (&skill.cause, skill.state.as_str()) {
            (Some(cause), _) => visible_line(cause),
            (None, state) => format!("{state}, waits for `vocative skills approve`"),
        };
        let _ = writeln!(out, "skill     {}: {told}", skill.name);
    }
}

fn hooks(view: &StatusView, out: &mut String) {
    let mut said: Vec<(&str, Vec<String>)> = Vec::new();
    for count in &view.hooks {
        let word = format!("{} {}", count.times, count.verdict);
        match said.last_mut().filter(|(hook, _)| *hook == count.hook) {
            Some((_, words)) => words.push(word),
            None => said.push((&count.hook, vec![word])),
        }
    }
    for (hook, words) in said {
        let _ = writeln!(
            out,
            "hook      {hook}: {} since the start",
            words.join(", ")
        );
    }
}

fn report(view: &StatusView, now_ms: i64) -> String {
    let mut out = String::new();
    let daemon = match view.started_at_ms {
        Some(at_ms) => format!("running for {}", span(now_ms - at_ms)),
        None => "not running; this is what its store says".to_owned(),
    };
    let _ = writeln!(out, "vocative {}: {daemon}\n", view.version);
    out.push_str(&channels(view, now_ms));
    about_listeners(&mut out, &view.listeners);
    out.push('\n');
    if let Some(landlock) = &view.landlock {
        let _ = writeln!(out, "landlock  {landlock}");
    }
    servers(view, &mut out);
    skills(view, &mut out);
    hooks(view, &mut out);
    if view.started_at_ms.is_some() {
        let new = counted(view.intake.captured, "new message", "new messages");
        let again = view.intake.duplicates;
        let _ = writeln!(out, "heard     {new}, {again} told again, since the start");
    }
    let runs = &view.runs;
    let _ = writeln!(
        out,
        "runs      {} waiting{}, {} at work, {} given up",
        runs.queued,
        oldest(runs.oldest_waiting_ms),
        runs.leased,
        runs.dead
    );
    about_models(&mut out, &view.models, now_ms);
    out.push_str(&posts_report(&view.posts));
    let store = &view.store;
    let _ = writeln!(
        out,
        "store     {} in {}, {} KiB, {} kept",
        counted(store.turns, "turn", "turns"),
        counted(store.conversations, "conversation", "conversations"),
        store.bytes / 1_024,
        counted(store.raw_stubs, "unreadable event", "unreadable events")
    );
    out.push_str(&about_jobs(&view.jobs));
    about_documents(&mut out, &view.knowledge, now_ms);
    if let Some(embeddings) = &view.embeddings {
        let _ = writeln!(
            out,
            "vectors   {} of {}, at most {} to come, {} tokens today",
            counted(embeddings.embedded, "turn", "turns"),
            embeddings.model,
            embeddings.remaining_max,
            embeddings.tokens_today
        );
    }
    out.push_str(&about_files(&view.files));
    let summaries = &view.summaries;
    let _ = writeln!(
        out,
        "summaries {} in use, {} to be made again, {} void, {} failed since the start",
        summaries.current, summaries.stale, summaries.void, summaries.failed
    );
    about_memory(&mut out, &view.memory);
    about_tokens(&mut out, &view.token_ratios);
    if store.expired_last_ms.is_some() {
        let _ = writeln!(
            out,
            "retention {}, {}, details of {} let go; last at {}",
            counted(store.expired_turns, "turn", "turns"),
            counted(store.expired_raw, "raw event", "raw events"),
            counted(store.expired_runs, "run", "runs"),
            instant(store.expired_last_ms)
        );
    }
    if store.erasures_open > 0 {
        let _ = writeln!(out, "erasures  {} not finished", store.erasures_open);
    }
    for need in &view.needs_person {
        let _ = writeln!(out, "\nneeds a person: {need}");
    }
    out
}

/// The collections of documents.
fn about_documents(out: &mut String, collections: &[CollectionView], now_ms: i64) {
    for collection in collections {
        let _ = writeln!(
            out,
            "documents {}: {} in {}, {} left out, {}",
            collection.name,
            counted(collection.documents, "document", "documents"),
            counted(collection.chunks, "piece", "pieces"),
            collection.refused,
            match collection.read_at_ms {
                None => "not read through yet".to_owned(),
                at_ms => format!("read {}", ago(at_ms, now_ms)),
            }
        );
    }
}

/// How many memories were learnt or refused, and how many readings had no readable answer, since the start.
fn about_memory(out: &mut String, memory: &MemoryCountsView) {
    if *memory != MemoryCountsView::default() {
        let _ = writeln!(
            out,
            "memory {} learnt, {} refused, {} readings without an answer that can be read, since the start",
            memory.written, memory.refused, memory.unreadable
        );
    }
}

/// How many tokens models count for each token by the program's own counter.
fn about_tokens(out: &mut String, ratios: &[TokenRatioView]) {
    for learnt in ratios {
        let _ = writeln!(
            out,
            "tokens    {}: {:.2} for each by {}, from {}{}",
            learnt.model,
            learnt.ratio,
            learnt.counter,
            counted(learnt.reports, "answer", "answers"),
            match learnt.ignored {
                0 => String::new(),
                ignored => format!(", {} not believed", counted(ignored, "report", "reports")),
            }
        );
    }
}

/// Models that are not asked now, because they are held or rest.
fn about_models(out: &mut String, models: &[ModelRestView], now_ms: i64) {
    for model in models {
        let _ = writeln!(
            out,
            "model     {} is {} since {}: {}; {} waiting, next try in {}",
            model.model,
            model.state,
            ago(Some(model.since_ms), now_ms),
            model.reason,
            counted(model.queued, "question is", "questions are"),
            span((model.until_ms - now_ms).max(0))
        );
    }
}

/// The connections of each listener, and what it refused.
fn about_listeners(out: &mut String, listeners: &[ListenerView]) {
    for listener in listeners {
        let _ = write!(
            out,
            "{} at {}: {} of {} connections",
            listener.name, listener.address, listener.connections, listener.connections_max
        );
        let refused = counted(listener.refused, "request", "requests");
        let closed = counted(listener.sent_away, "idle connection", "idle connections");
        let notes = [
            (
                listener.streams,
                counted(listener.streams, "stream is read", "streams are read"),
            ),
            (
                listener.refused,
                format!("{refused} refused since the start"),
            ),
            (
                listener.sent_away,
                format!("{closed} closed for others since the start"),
            ),
        ];
        for (_, note) in notes.iter().filter(|(count, _)| *count > 0) {
            let _ = write!(out, ", {note}");
        }
        out.push('\n');
    }
}

fn about_files(files: &FileCountsView) -> String {
    let mut out = format!(
        "files     {} stored ({} KiB), {} waiting",
        files.stored,
        files.bytes / 1_024,
        files.waiting + files.to_be_heard
    );
    let lost = [
        (files.refused, "only named"),
        (files.failed, "given up"),
        (files.unheard, "of voice not written down"),
    ];
    for (count, what) in lost.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(out, ", {count} {what}");
    }
    if let Some(reason) = &files.last_reason {
        let _ = write!(out, " since the start; the last: {reason}");
    }
    out.push('\n');
    out
}

/// Webhook requests that were refused, or not stored in time.
fn about_requests(out: &mut String, channel: &ChannelView) {
    let name = &channel.name;
    if channel.refused > 0 {
        let _ = writeln!(
            out,
            "{name}: {} refused since the start; the log says why",
            counted(channel.refused, "webhook request", "webhook requests")
        );
    }
    if channel.late > 0 {
        let _ = writeln!(
            out,
            "{name}: {} not stored in time since the start; the platform sent again",
            counted(channel.late, "webhook request", "webhook requests")
        );
    }
}

/// How much of today's prompts came from the provider's cache.
fn about_cache(out: &mut String, channel: &ChannelView) {
    let (read, all) = (
        channel.cache_read_tokens_today,
        channel.prompt_tokens_today.max(1),
    );
    if read > 0 || channel.cache_write_tokens_today > 0 {
        let _ = writeln!(
            out,
            "{}: of today's {} tokens in prompts {read} ({} %) came from the provider's cache, {} went into it",
            channel.name,
            channel.prompt_tokens_today,
            read.saturating_mul(100) / all,
            channel.cache_write_tokens_today
        );
    }
}

fn about_costs(out: &mut String, channel: &ChannelView) {
    if channel.cost_micros_today > 0 {
        let _ = writeln!(
            out,
            "{}: answers and summaries cost {} today; `vocative costs` says whose",
            channel.name,
            shown_amount(channel.cost_micros_today)
        );
    }
}

const CHANNELS_HEADER: [&str; 8] = [
    "channel",
    "account",
    "state",
    "heard",
    "captured",
    "lag",
    "tokens today",
    "",
];

fn channels(view: &StatusView, now_ms: i64) -> String {
    if view.channels.is_empty() {
        return "no channel has been connected yet\n".to_owned();
    }
    let rows: Vec<Vec<String>> = view
        .channels
        .iter()
        .map(|channel| {
            vec![
                channel.name.clone(),
                channel.account.clone().unwrap_or_else(|| "-".to_owned()),
                channel.state.clone(),
                ago(channel.last_heard_ms, now_ms),
                ago(channel.last_captured_ms, now_ms),
                format!("{} ms", channel.lag_ms),
                channel.tokens_today.to_string(),
                channel.reason.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let mut out = table(&CHANNELS_HEADER, &rows);
    for channel in &view.channels {
        let name = &channel.name;
        about_cache(&mut out, channel);
        about_costs(&mut out, channel);
        if let Some(at_ms) = channel.unread_from_ms {
            let _ = writeln!(
                out,
                "{name}: reading back what was missed since {}",
                ago(Some(at_ms), now_ms)
            );
        }
        if channel.other_connections > 0 {
            let _ = writeln!(
                out,
                "{name}: {} of the app not ours; another program with its token takes a part of the \
                 events",
                counted(
                    channel.other_connections,
                    "connection is",
                    "connections are"
                )
            );
        }
        if channel.deaf > 0 {
            let _ = writeln!(
                out,
                "{name}: {} connected and deaf since the start; are the events subscribed?",
                counted(channel.deaf, "time", "times")
            );
        }
        about_requests(&mut out, channel);
        if channel.backfills > 0 {
            let _ = writeln!(
                out,
                "{name}: reading what was said before the bot joined, in {}",
                counted(channel.backfills, "chat", "chats")
            );
        }
        if let Some(gap) = &channel.history_gap {
            let _ = writeln!(
                out,
                "{name}: messages are missing in {} ({gap}); `vocative conversations show CHAT \
                 --timeline` says which",
                counted(channel.history_gaps, "chat", "chats")
            );
        }
        for warning in &channel.warnings {
            let _ = writeln!(out, "{name}: {warning}");
        }
    }
    out
}

fn oldest(age_ms: Option<i64>) -> String {
    age_ms.map_or_else(String::new, |age_ms| {
        format!(" (the oldest for {})", span(age_ms))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_about_tokens_is_shown() {
        let learnt = |ignored| TokenRatioView {
            model: "default (openai/gpt-5-mini)".to_owned(),
            counter: "class_v2".to_owned(),
            ratio: 1.078_125,
            reports: 37,
            ignored,
        };
        let view = StatusView {
            token_ratios: vec![learnt(0), learnt(2)],
            ..StatusView::default()
        };
        let shown = report(&view, 0);
        let lines: Vec<&str> = shown
            .lines()
            .filter(|line| line.starts_with("tokens"))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        tokens    default (openai/gpt-5-mini): 1.08 for each by class_v2, from 37 answers
        tokens    default (openai/gpt-5-mini): 1.08 for each by class_v2, from 37 answers, 2 reports not believed
        ");
    }

    #[test]
    fn listeners_are_shown_with_what_is_worth_a_word() {
        let webhooks = ListenerView {
            name: "webhooks".to_owned(),
            address: "127.0.0.1:8088".to_owned(),
            connections: 256,
            connections_max: 256,
            refused: 3,
            sent_away: 40,
            ..ListenerView::default()
        };
        let api = ListenerView {
            name: "api".to_owned(),
            address: "unix:/run/vocative/vocative-api.sock".to_owned(),
            connections: 1,
            connections_max: 2_048,
            ..ListenerView::default()
        };
        let mut shown = String::new();
        about_listeners(&mut shown, &[api, webhooks]);
        insta::assert_snapshot!(shown, @r"
        api at unix:/run/vocative/vocative-api.sock: 1 of 2048 connections
        webhooks at 127.0.0.1:8088: 256 of 256 connections, 3 requests refused since the start, 40 idle connections closed for others since the start
        ");
    }

    #[test]
    fn the_exit_code_says_whether_anybody_must_act() {
        let view = |started_at_ms, needs: &[&str]| StatusView {
            started_at_ms,
            needs_person: needs.iter().map(|&need| need.to_owned()).collect(),
            ..StatusView::default()
        };
        assert_eq!(exit(&view(Some(1), &[])), Exit::Ok);
        assert_eq!(exit(&view(Some(1), &["a post is held"])), Exit::Failed);
        assert_eq!(exit(&view(None, &[])), Exit::Unavailable);
        assert_eq!(exit(&view(None, &["a post is held"])), Exit::Unavailable);
    }
}
