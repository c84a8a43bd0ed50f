//! The answer of a run as one store write: reply turn, one outbox row per part, end of the run.
//!
//! Nothing is posted before this is committed.

use vocative_channels::render::{continued, noted, prefixed};
use vocative_contract::crash;
use vocative_contract::handles::Renderer;
use vocative_contract::outbound::{FileRest, Part, PartFile, PostSpeaker, StoredBytes};
use vocative_contract::people::People;

use vocative_core::file::TurnFile;
use vocative_core::hooking::HookVerdict;
use vocative_core::ids::AgentName;
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::sending::limit_parts;
use vocative_core::turn::{TokenCount, TurnKind};
use vocative_core::words::Language;
use vocative_store::contract::{
    CallToFinish, CommittedReply, ReplyCommit, ReplyRoute, RunEnding, SaidBefore, StepOutcome,
    StoredCallFile, ValuesToKeep,
};
use vocative_store::{Replying, Store, StoreError};

/// An answer, or a notice in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The text, platform-neutral.
    pub text: String,
    /// Whether the text is JSON, which the room sees as code.
    pub is_json: bool,
    /// How the room sees the speaker; not captured with the text.
    pub lead: Lead,
    /// Text after it that the room sees but that is not captured (that the answer is cut off), if any.
    pub note: Option<String>,
    /// Whether it is an answer or a notice.
    pub kind: TurnKind,
    /// How the run ends.
    pub ending: RunEnding,
    /// The tokens of the text.
    pub tokens: Option<TokenCount>,
    /// Tokens used.
    pub usage: Usage,
    /// How long an edit of its live view may still be on its way, in milliseconds.
    pub live_settle_ms: i64,
    /// The verdicts of hooks on it.
    pub verdicts: Vec<HookVerdict>,
    /// The words of other agents of its network, which come before it.
    pub before: Vec<OtherWords>,
    /// Values that are stored for later runs.
    pub values: Option<ValuesToKeep>,
}

/// How a room sees which agent speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lead {
    /// The bot speaks.
    #[default]
    Nobody,
    /// The agent's name stands before the text.
    Prefix(String),
    /// The post stands under the agent's name.
    Speaker(PostSpeaker),
}

impl Lead {
    /// The prefix of a text.
    #[must_use]
    pub fn prefix(&self) -> String {
        match self {
            Self::Prefix(name) => format!("{name}: "),
            Self::Nobody | Self::Speaker(_) => String::new(),
        }
    }

    /// The prefix of a text if the words of several agents are joined into one post.
    #[must_use]
    pub fn prefix_among_others(&self) -> String {
        match self {
            Self::Speaker(speaker) => format!("{}: ", speaker.name),
            Self::Nobody | Self::Prefix(_) => self.prefix(),
        }
    }

    /// The post, under the name of its speaker.
    #[must_use]
    pub fn on(&self, part: Part) -> Part {
        match self {
            Self::Speaker(speaker) => part.spoken_by(speaker.clone()),
            Self::Nobody | Self::Prefix(_) => part,
        }
    }
}

/// What another agent of a network says in the same answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherWords {
    /// The agent.
    pub speaker: AgentName,
    /// The agent's display name.
    pub display_name: String,
    /// The text, platform-neutral.
    pub text: String,
    /// How the room sees the speaker; not captured with the text.
    pub lead: Lead,
    /// Text after it that the room sees but that is not captured.
    pub note: Option<String>,
    /// The tokens of the text.
    pub tokens: Option<TokenCount>,
}

impl OtherWords {
    /// The words as they are committed, with their posts.
    #[must_use]
    pub fn rendered(self, form: ReplyForm<'_>, people: &People) -> SaidBefore {
        let note = self.note.as_deref();
        SaidBefore {
            parts: render(form, (&self.lead, &self.text, note), people),
            speaker: self.speaker,
            speaker_display_name: self.display_name,
            text: self.text,
            tokens: self.tokens,
        }
    }
}

/// How replies are formatted for a room.
#[derive(Clone, Copy)]
pub struct ReplyForm<'a> {
    /// Makes posts of texts.
    pub renderer: &'a dyn Renderer,
    /// Whether a longer answer may be posted as a file.
    pub uploads_files: bool,
    /// The most posts of one answer.
    pub max_parts: usize,
    /// The language in which the daemon itself speaks there.
    pub language: Language,
}

/// A reply as the room sees it, in which `@Name` mentions one of `people`.
#[must_use]
pub fn render_reply(form: ReplyForm<'_>, reply: &Reply, people: &People) -> Vec<Part> {
    let code = reply.is_json.then(|| as_code(&reply.text));
    let text = code.as_deref().unwrap_or(&reply.text);
    render(form, (&reply.lead, text, reply.note.as_deref()), people)
}

fn render(
    form: ReplyForm<'_>,
    (lead, text, note): (&Lead, &str, Option<&str>),
    people: &People,
) -> Vec<Part> {
    let parts = parts_of(form, (&lead.prefix(), text, note), people);
    parts.into_iter().map(|part| lead.on(part)).collect()
}

fn parts_of(
    form: ReplyForm<'_>,
    (prefix, text, note): (&str, &str, Option<&str>),
    people: &People,
) -> Vec<Part> {
    let mut text = prefixed(prefix, text);
    if let Some(note) = note {
        text = noted(&text, note);
    }
    let mut parts = form.renderer.render(&text, people);
    if parts.len() > form.max_parts && form.uploads_files && text.len() <= FILE_BYTES_MAX {
        return as_file(form, text, people);
    }
    limit_parts(&mut parts, form.max_parts, form.language);
    parts
}

/// JSON as a code block that the JSON itself can't close.
fn as_code(json: &str) -> String {
    let ticks = json.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(ticks.max(2) + 1);
    format!("{fence}json\n{json}\n{fence}")
}

/// The most files of tools that come with one answer.
const FILES_POSTED_MAX: usize = 10;

/// The posts of files that tools gave for people.
#[must_use]
pub fn render_files(form: ReplyForm<'_>, files: Vec<StoredCallFile>) -> Vec<Part> {
    if !form.uploads_files {
        return Vec::new();
    }
    let files = files.into_iter().map(|it| it.file);
    let posted = files.filter(TurnFile::is_for_people).filter_map(|file| {
        let (content, size_bytes) = file.content?;
        let name = file.facts.shown_name().to_owned();
        let instead = form.language.file_not_posted(&name);
        let file = PartFile {
            mime_type: file.facts.mime_type.clone().unwrap_or_default(),
            content: String::new(),
            stored: Some(StoredBytes {
                sha256: content.to_string(),
                size_bytes,
            }),
            loaded: None,
            progress: None,
            rest: Some(FileRest {
                text: instead,
                parts_max: 1,
                people: Vec::new(),
            }),
            name,
        };
        Some(Part::upload(String::new(), file))
    });
    posted.take(FILES_POSTED_MAX).collect()
}

/// How much of an answer that is posted as a file is shown in the room, in characters.
const OPENING_MAX_CHARS: usize = 1_500;
/// The shortest opening that is shown to save posts, in characters.
const OPENING_MIN_CHARS: usize = 50;
/// The longest answer that may be posted as a file, in bytes: the file is stored with its post.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The opening of an answer, and all of it as a file.
fn as_file(form: ReplyForm<'_>, text: String, people: &People) -> Vec<Part> {
    let room = form.max_parts.saturating_sub(1).max(1);
    let mut chars = OPENING_MAX_CHARS;
    let (shown, mut parts) = loop {
        let opening = opening(&text, chars);
        let parts = form.renderer.render(&format!("{opening} …"), people);
        if parts.len() <= room || chars <= OPENING_MIN_CHARS {
            break (opening.len(), parts);
        }
        chars /= 2;
    };
    parts.truncate(room);
    let rest = continued(&text, shown);
    // The text must also be true if posts replace the file, where files are refused.
    parts.push(Part::upload(
        form.language.whole_answer_as_file(),
        PartFile {
            name: "answer.md".to_owned(),
            mime_type: "text/markdown".to_owned(),
            stored: None,
            loaded: None,
            progress: None,
            rest: Some(FileRest {
                people: people.named_in(&rest),
                parts_max: form.max_parts.saturating_sub(parts.len()).max(1),
                text: rest,
            }),
            content: text,
        },
    ));
    parts
}

/// The first paragraphs within `max_chars`; if the first paragraph is longer, its first lines, sentences or words.
fn opening(text: &str, max_chars: usize) -> &str {
    let end = text.char_indices().nth(max_chars);
    let most = end.map_or(text, |(end, _)| &text[..end]);
    let cuts = ["\n\n", "\n", ". ", " "];
    let good = |cut: &&str| most.rfind(*cut).filter(|at| *at >= most.len() / 3);
    let at = cuts.iter().find_map(good).unwrap_or(most.len());
    most[..at].trim_end()
}

/// A run that is answered, with the target and the speaker of the answer.
#[derive(Clone, Copy, Debug)]
pub struct Answering<'a> {
    /// The run with its lease.
    pub claimed: &'a ClaimedRun,
    /// Where the answer goes.
    pub route: &'a ReplyRoute,
    /// The speaker: the agent, or one of its network.
    pub speaker: &'a AgentName,
    /// The speaker's display name.
    pub speaker_display_name: &'a str,
}

/// Commits a reply, rendered as `parts`, with the words of other agents before it. Turns of ours are made only here
/// and in [`commit_call`].
///
/// # Errors
/// [`StoreError`] if nothing was written; the run is still leased.
pub async fn commit_reply(
    store: &Store<Replying>,
    answering: &Answering<'_>,
    reply: Reply,
    (parts, before): (Vec<Part>, Vec<SaidBefore>),
    now_ms: i64,
) -> Result<CommittedReply, StoreError> {
    let ClaimedRun { run, token, .. } = answering.claimed;
    crash::point("reply.before-commit");
    let committed = store
        .commit_reply(ReplyCommit {
            run: run.id,
            token: *token,
            agent: run.agent.clone(),
            speaker: answering.speaker.clone(),
            speaker_display_name: answering.speaker_display_name.to_owned(),
            before,
            values: reply.values,
            text: reply.text,
            kind: reply.kind,
            ending: reply.ending,
            parts,
            target: answering.route.target.clone(),
            live_settle_ms: reply.live_settle_ms,
            verdicts: reply.verdicts,
            tokens: reply.tokens,
            usage: reply.usage,
            now_ms,
        })
        .await?;
    if committed == CommittedReply::Reported {
        crash::point("task.after-commit");
    }
    crash::point("reply.after-commit");
    Ok(committed)
}

/// Commits the result of a tool call: its row, and turns that only the timeline shows.
///
/// # Errors
/// [`StoreError`] if nothing was written; the run is still leased.
pub async fn commit_call(
    store: &Store<Replying>,
    call: CallToFinish,
) -> Result<StepOutcome, StoreError> {
    crash::point("tools.before-commit");
    let recorded = store.finish_tool_call(call).await?;
    crash::point("tools.after-commit");
    Ok(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_json_closes_its_block() {
        assert_eq!(as_code("{}"), "```json\n{}\n```");
        let ticks = r#"{"a": "```` b ```"}"#;
        assert_eq!(as_code(ticks), format!("`````json\n{ticks}\n`````"));
    }

    #[test]
    fn an_opening_ends_at_a_good_place() {
        let paragraph = "word ".repeat(120);
        let text = [paragraph.trim_end(); 9].join("\n\n");
        assert_eq!(opening(&text, OPENING_MAX_CHARS).len(), 2 * 599 + 2);
        assert_eq!(opening("short", OPENING_MAX_CHARS), "short");
        let sentences = "A sentence of words. ".repeat(200);
        assert!(opening(&sentences, OPENING_MAX_CHARS).ends_with("words"));
        let token = "é".repeat(4_000);
        assert_eq!(
            opening(&token, OPENING_MAX_CHARS).chars().count(),
            OPENING_MAX_CHARS
        );
    }

    #[test]
    fn an_answer_of_too_many_parts_says_what_is_missing() {
        let mut parts: Vec<Part> = (0..5).map(|n| Part::plain(n.to_string())).collect();
        limit_parts(&mut parts, 5, Language::English);
        assert_eq!(parts.len(), 5);
        limit_parts(&mut parts, 3, Language::English);
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "0",
                "1",
                "[This answer is too long: 3 more parts are left out.]"
            ]
        );
    }
}
