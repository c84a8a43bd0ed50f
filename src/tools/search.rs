//! `conversation_search`: finds by words what was said in this conversation; without words, the newest messages.
//!
//! Results are JSON, so that nothing in a message can be taken for another message.

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BoundTo, BuiltIn, CallContext, Tool, ToolError, ToolOutput};
use vocative_channels::permalink::{MessageIds, permalink};
use vocative_core::ids::TurnId;
use vocative_core::prompting::clean_name;
use vocative_core::search::moment::{MOMENTS, moment_ms};
use vocative_core::tool_call::CallRule;
use vocative_store::THREADS_MAX;
use vocative_store::contract::{
    Neighbour, SearchFilter, SearchHit, SearchHits, SearchMode, SearchQuery,
};

/// The tool's name.
pub const CONVERSATION_SEARCH: &str = "conversation_search";
/// How many hits are returned if the model sets no limit.
pub const HITS_DEFAULT: usize = 5;
/// The most hits that are returned, whatever limit the model sets.
pub const HITS_MAX: usize = 50;
/// Tokens of all hits' texts together.
pub const HITS_MAX_TOKENS: usize = 2_000;
/// The length to which a hit's text is cut around its match, in characters.
pub const HIT_MAX_CHARS: usize = 1_200;

/// The tool that searches the conversation it was made for.
pub struct ConversationSearch(BoundTo);

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SearchArguments {
    /// What to look for, in two or three wordings at once: other words for the same thing, words of the answer, the
    /// language of the room. Up to 5. "Quotes" for an exact phrase, +word for a word that must be there, a star for
    /// the beginning of a word (deploy*). None: the newest messages.
    queries: Vec<String>,
    /// One wording, in place of `queries`.
    query: String,
    /// Only what this person said: a name as it is shown here.
    from: Option<String>,
    /// Only what was said on this day or later, in UTC: 2026-11-22.
    after: Option<String>,
    /// Only what was said before this day, in UTC: 2026-11-22.
    before: Option<String>,
    /// Only messages with a file whose name has this in it; empty: with any file.
    files: Option<String>,
    /// The most messages to return, up to 50; 5 if not given.
    limit: Option<i64>,
}

/// What the tool takes where all words have to be there.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StrictArguments {
    /// Words that must all be in a message. "Quotes" for a phrase, a star for the beginning of a
    /// word (deploy*). Empty: the newest messages.
    #[serde(default)]
    query: String,
    /// The most messages to return, up to 50; 5 if not given.
    #[serde(default)]
    limit: Option<i64>,
}

#[derive(Serialize)]
struct SearchFindings {
    order: &'static str,
    hits: Vec<FoundMessage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct FoundMessage {
    time: String,
    speaker: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    /// How many other messages say nearly the same.
    #[serde(skip_serializing_if = "is_zero")]
    similar: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<Beside>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<Beside>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replies_to: Option<Beside>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_by: Option<Beside>,
}

/// A message that is shown with a hit.
#[derive(Serialize)]
struct Beside {
    speaker: String,
    text: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl ConversationSearch {
    /// Makes the tool for a run: it finds nothing outside its conversation and what `search_reach` adds, and none of
    /// the turns that are being answered.
    #[must_use]
    pub fn new(to: BoundTo) -> Self {
        Self(to)
    }
}

impl Tool for ConversationSearch {
    fn name(&self) -> &str {
        CONVERSATION_SEARCH
    }

    fn description(&self) -> &str {
        match self.0.is_strict {
            true => {
                "Searches everything that was said in this chat, also what was not addressed to you and what \
                 is older than the messages you see. Use it when you are asked about something said earlier. \
                 With an empty query it gives the newest messages, for example to summarise the discussion. \
                 It can't see other chats."
            }
            false => {
                "Searches everything that was said in this chat, also what was not addressed to you and what \
                 is older than the messages you see. Use it when you are asked about something said earlier. \
                 Give two or three wordings at once in `queries`: the best answers to any of them come first, \
                 with who said it, when, and the messages around it. Not all words have to be there. \
                 Without words it gives the newest messages, for example to summarise the discussion. \
                 It can't see other chats."
            }
        }
    }

    fn schema(&self) -> Value {
        match self.0.is_strict {
            true => schema::<StrictArguments>(),
            false => schema::<SearchArguments>(),
        }
    }

    fn is_outside(&self) -> bool {
        // It quotes turns, and the store knows who wrote these.
        false
    }

    fn rule(&self) -> CallRule {
        BuiltIn::ConversationSearch.rule()
    }

    fn call(
        &self,
        arguments: Value,
        _: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let store = self.0.store.clone();
        let to = SearchQuery {
            reach: self.0.search_reach,
            token_cap: HITS_MAX_TOKENS,
            text_max_chars: HIT_MAX_CHARS,
            exclude: self.0.triggers.clone(),
            ..SearchQuery::new(self.0.conversation, "")
        };
        let is_strict = self.0.is_strict;
        let embeddings = self.0.embeddings.clone();
        Box::pin(async move {
            let mut query = match is_strict {
                true => strict_query(to, arguments),
                false => query(to, arguments),
            }?;
            if let (Some(embeddings), false) = (embeddings, is_strict) {
                let vectors = embeddings.of_queries(&query.queries).await;
                query.vectors = vectors.unwrap_or_default();
            }
            let has_words = query
                .queries
                .iter()
                .any(|text| text.contains(char::is_alphanumeric));
            let found = store
                .search(query)
                .await
                .map_err(|cause| ToolError::Failed(cause.to_string()))?;
            Ok(ToolOutput {
                sources: found.hits.iter().flat_map(quoted).collect(),
                files: Vec::new(),
                content: shown(&found, has_words),
            })
        })
    }
}

fn query(to: SearchQuery, arguments: Value) -> Result<SearchQuery, ToolError> {
    let arguments: SearchArguments = serde_json::from_value(arguments)
        .map_err(|cause| ToolError::Arguments(cause.to_string()))?;
    let moment = |name: &str, text: Option<String>| {
        let text = text.filter(|text| !text.trim().is_empty());
        text.map(|text| {
            moment_ms(&text).ok_or_else(|| ToolError::Arguments(format!("{name} is not {MOMENTS}")))
        })
        .transpose()
    };
    let mut queries = arguments.queries;
    queries.extend(Some(arguments.query).filter(|text| !text.is_empty()));
    Ok(SearchQuery {
        queries,
        filter: SearchFilter {
            from: arguments.from.filter(|name| !name.trim().is_empty()),
            after_ms: moment("after", arguments.after)?,
            before_ms: moment("before", arguments.before)?,
            files: arguments.files,
        },
        limit: clamped(arguments.limit),
        ..to
    })
}

fn strict_query(to: SearchQuery, arguments: Value) -> Result<SearchQuery, ToolError> {
    let arguments: StrictArguments = serde_json::from_value(arguments)
        .map_err(|cause| ToolError::Arguments(cause.to_string()))?;
    Ok(SearchQuery {
        queries: vec![arguments.query],
        limit: clamped(arguments.limit),
        neighbours: 0,
        mode: SearchMode::Strict,
        ..to
    })
}

/// The turns that a hit quotes.
fn quoted(hit: &SearchHit) -> Vec<TurnId> {
    let beside = hit.before.iter().chain(&hit.after);
    let beside = beside.chain(&hit.replied_to).chain(&hit.answered_by);
    let ids = beside.map(|neighbour| neighbour.turn.id);
    std::iter::once(hit.turn.id).chain(ids).collect()
}

pub(super) fn schema<A: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    let schema = settings
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<A>();
    let mut schema = schema.to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
        schema.remove("title");
        schema.remove("description");
    }
    schema
}

fn clamped(limit: Option<i64>) -> usize {
    let limit = limit.map_or(HITS_DEFAULT, |limit| usize::try_from(limit).unwrap_or(0));
    limit.clamp(1, HITS_MAX)
}

fn shown(found: &SearchHits, has_words: bool) -> String {
    let hits: Vec<FoundMessage> = found.hits.iter().map(hit).collect();
    let mut notes = Vec::new();
    if found.hits.is_empty() {
        notes.push("nothing was found".to_owned());
    }
    if found.is_speaker_unknown {
        notes.push("nobody of that name has said anything here".to_owned());
    }
    for (word, others) in &found.taken_for {
        notes.push(format!(
            "no message has {word:?}; looked for {}",
            others.join(", ")
        ));
    }
    if has_words && found.matches > hits.len() {
        let or_more = if found.is_bounded { " or more" } else { "" };
        notes.push(format!(
            "{} of {}{or_more} matches are shown",
            hits.len(),
            found.matches
        ));
    }
    if found.is_bounded {
        notes.push(
            "only the newest matches were looked at; add rarer words to find older ones".to_owned(),
        );
    }
    if found.is_query_cut {
        notes.push("the query was too long; only its beginning was looked for".to_owned());
    }
    if found.has_more_threads {
        notes.push(format!(
            "only the newest {THREADS_MAX} threads were searched"
        ));
    }
    let found = SearchFindings {
        order: if has_words {
            "best match first"
        } else {
            "newest first"
        },
        hits,
        notes,
    };
    serde_json::to_string(&found).expect("plain data with string keys")
}

fn hit(hit: &SearchHit) -> FoundMessage {
    let at = DateTime::<Utc>::from_timestamp_millis(hit.turn.said_at_ms);
    FoundMessage {
        time: at.map_or_else(String::new, |at| {
            at.format("%Y-%m-%d %H:%M UTC").to_string()
        }),
        speaker: clean_name(hit.turn.participant.shown_name()),
        text: hit.text.clone(),
        link: link(hit),
        similar: hit.same,
        before: hit.before.iter().map(beside).collect(),
        after: hit.after.iter().map(beside).collect(),
        replies_to: hit.replied_to.as_ref().map(beside),
        answered_by: hit.answered_by.as_ref().map(beside),
    }
}

fn beside(neighbour: &Neighbour) -> Beside {
    Beside {
        speaker: clean_name(neighbour.turn.participant.shown_name()),
        text: neighbour.text.clone(),
    }
}

/// The address at which people open a hit.
pub(crate) fn link(hit: &SearchHit) -> Option<String> {
    let place = hit.message.as_ref()?;
    let ids = MessageIds {
        account: &place.account,
        chat: &place.chat,
        thread: place.thread.as_deref(),
        message: &place.message,
    };
    permalink(place.platform, &ids)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_names_no_conversation() {
        assert_eq!(
            schema::<StrictArguments>(),
            json!({
                "type": "object",
                "properties": {
                    "query": {
                        "description": "Words that must all be in a message. \"Quotes\" for a phrase, a star for the beginning of a\nword (deploy*). Empty: the newest messages.",
                        "type": "string",
                        "default": "",
                    },
                    "limit": {
                        "description": "The most messages to return, up to 50; 5 if not given.",
                        "type": ["integer", "null"],
                        "format": "int64",
                        "default": null,
                    },
                },
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_search_that_forgives_names_no_conversation_either() {
        let schema = schema::<SearchArguments>();
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            [
                "queries", "query", "from", "after", "before", "files", "limit"
            ]
        );
        assert_eq!(schema["additionalProperties"], json!(false));
    }

    #[test]
    fn arguments_become_a_query() {
        let conversation = vocative_store::NewId::generate();
        let to = || SearchQuery::new(conversation, "");
        let asked = json!({
            "queries": ["wifi code", "network password"], "query": "router", "from": "Ada",
            "after": "1970-01-02", "before": "", "files": "plan", "limit": 3,
        });
        let expected = SearchQuery {
            queries: ["wifi code", "network password", "router"]
                .map(str::to_owned)
                .to_vec(),
            filter: SearchFilter {
                from: Some("Ada".to_owned()),
                after_ms: Some(86_400_000),
                before_ms: None,
                files: Some("plan".to_owned()),
            },
            limit: 3,
            ..to()
        };
        assert_eq!(query(to(), asked), Ok(expected));
        let old = query(to(), json!({"query": "plan"})).unwrap();
        assert_eq!(
            (old.queries, old.mode),
            (vec!["plan".to_owned()], SearchMode::Forgiving)
        );
        let strict = strict_query(to(), json!({"query": "plan"})).unwrap();
        assert_eq!((strict.mode, strict.neighbours), (SearchMode::Strict, 0));
        for wrong in [json!({"after": "soon"}), json!({"conversation": "D1"})] {
            assert!(matches!(query(to(), wrong), Err(ToolError::Arguments(_))));
        }
    }

    #[test]
    fn the_limit_is_clamped() {
        let cases = [
            (None, 5),
            (Some(0), 1),
            (Some(-3), 1),
            (Some(7), 7),
            (Some(i64::MAX), 50),
        ];
        for (limit, expected) in cases {
            assert_eq!(clamped(limit), expected);
        }
    }

    #[test]
    fn bounds_that_were_met_are_told() {
        let found = SearchHits {
            matches: 2_000,
            is_bounded: true,
            is_query_cut: true,
            has_more_threads: true,
            ..SearchHits::default()
        };
        insta::assert_snapshot!(shown(&found, true), @r#"{"order":"best match first","hits":[],"notes":["nothing was found","0 of 2000 or more matches are shown","only the newest matches were looked at; add rarer words to find older ones","the query was too long; only its beginning was looked for","only the newest 200 threads were searched"]}"#);
        insta::assert_snapshot!(shown(&SearchHits::default(), false), @r#"{"order":"newest first","hits":[],"notes":["nothing was found"]}"#);
    }
}
