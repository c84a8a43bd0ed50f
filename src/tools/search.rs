//! `conversation_search`: what was said here, by words; without words the newest.
//!
//! Results are JSON, so that nothing a message says can pass for another message.

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BoundTo, Tool, ToolError, ToolOutput};
use vocative_core::prompting::clean_name;
use vocative_store::contract::{SearchHit, SearchHits, SearchQuery};
use vocative_store::{MATCHES_MAX, THREADS_MAX};

/// Its name.
pub const CONVERSATION_SEARCH: &str = "conversation_search";
/// How many hits are given where the model does not say.
pub const HITS_DEFAULT: usize = 5;
/// The most hits that are given, whatever the model says.
pub const HITS_MAX: usize = 50;
/// Tokens of all hits' texts together.
pub const HITS_MAX_TOKENS: usize = 2_000;
/// The length to which a hit's text is cut around its match, in characters.
pub const HIT_MAX_CHARS: usize = 1_200;

/// Searches the conversation that it is made for.
pub struct ConversationSearch(BoundTo);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
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
    hits: Vec<Hit>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Hit {
    time: String,
    speaker: String,
    text: String,
}

impl ConversationSearch {
    /// The tool for a run: it finds nothing outside its conversation and what `search_reach` adds, and none of the
    /// turns that are being answered.
    #[must_use]
    pub fn new(to: BoundTo) -> Self {
        Self(to)
    }
}

impl Tool for ConversationSearch {
    fn name(&self) -> &'static str {
        CONVERSATION_SEARCH
    }

    fn description(&self) -> &'static str {
        "Searches everything that was said in this chat, also what was not addressed to you and what \
         is older than the messages you see. Use it when you are asked about something said earlier. \
         With an empty query it gives the newest messages, for example to summarise the discussion. \
         It can't see other chats."
    }

    fn schema(&self) -> Value {
        schema()
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn call(&self, arguments: Value) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let store = self.0.store.clone();
        let (conversation, reach) = (self.0.conversation, self.0.search_reach);
        let exclude = self.0.triggers.clone();
        Box::pin(async move {
            let arguments: Arguments = serde_json::from_value(arguments)
                .map_err(|cause| ToolError::Arguments(cause.to_string()))?;
            let query = SearchQuery {
                reach,
                limit: clamped(arguments.limit),
                token_cap: HITS_MAX_TOKENS,
                text_max_chars: HIT_MAX_CHARS,
                exclude,
                ..SearchQuery::new(conversation, arguments.query)
            };
            let has_words = query.queries[0].chars().any(char::is_alphanumeric);
            let found = store
                .search(query)
                .await
                .map_err(|cause| ToolError::Failed(cause.to_string()))?;
            Ok(ToolOutput {
                sources: found.hits.iter().map(|hit| hit.turn.id).collect(),
                content: shown(&found, has_words),
            })
        })
    }
}

fn schema() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    let schema = settings
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<Arguments>();
    let mut schema = schema.to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
        schema.remove("title");
    }
    schema
}

fn clamped(limit: Option<i64>) -> usize {
    let limit = limit.map_or(HITS_DEFAULT, |limit| usize::try_from(limit).unwrap_or(0));
    limit.clamp(1, HITS_MAX)
}

fn shown(found: &SearchHits, has_words: bool) -> String {
    let hits: Vec<Hit> = found.hits.iter().map(hit).collect();
    let mut notes = Vec::new();
    if found.hits.is_empty() {
        notes.push("nothing was found".to_owned());
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
        notes.push(format!(
            "only the newest {MATCHES_MAX} matches were looked at; add words to find older ones"
        ));
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

fn hit(hit: &SearchHit) -> Hit {
    let at = DateTime::<Utc>::from_timestamp_millis(hit.turn.said_at_ms);
    Hit {
        time: at.map_or_else(String::new, |at| {
            at.format("%Y-%m-%d %H:%M UTC").to_string()
        }),
        speaker: clean_name(hit.turn.participant.shown_name()),
        text: hit.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_names_no_conversation() {
        assert_eq!(
            schema(),
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
        insta::assert_snapshot!(shown(&found, true), @r#"{"order":"best match first","hits":[],"notes":["nothing was found","0 of 2000 or more matches are shown","only the newest 2000 matches were looked at; add words to find older ones","the query was too long; only its beginning was looked for","only the newest 200 threads were searched"]}"#);
        insta::assert_snapshot!(shown(&SearchHits::default(), false), @r#"{"order":"newest first","hits":[],"notes":["nothing was found"]}"#);
    }
}
