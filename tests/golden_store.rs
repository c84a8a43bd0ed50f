//! The recorded vectors of another system's conversation store, against ours.
//!
//! `expectedInMemory` of every case holds, but for what is named below with its reason. The adapter
//! calls the public store and sorts, filters and counts nothing.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};
use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;
use vocative_core::addressing::Verdict;
use vocative_core::ids::{AccountId, ConversationId, TurnId};
use vocative_core::{place::Scope, turn::ParticipantKind, turn::Turn};
use vocative_store::contract::{
    AccountBinding, Captured, NewMessage, SearchMode, SearchQuery, TurnFilter,
};
use vocative_store::{Store, StoreOptions};

/// Cases that ask for what ours does not do.
const NOT_OURS: [(&str, &str); 5] = [
    ("numeric_id", "platform ids are text here"),
    (
        "cap_3_drops_oldest_by_timestamp",
        "turns go by retention, never by a count",
    ),
    (
        "cap_2_evicted_id_accepted_again",
        "turns go by retention, never by a count",
    ),
    ("lru_conversations_2", "conversations are never evicted"),
    (
        "delete_then_reappend",
        "what was deleted leaves a tombstone and never comes back",
    ),
];

/// Cases whose expectation depends on the other system matching substrings; ours matches words.
const MATCHES_SUBSTRINGS: [(&str, &str); 4] = [
    (
        "search_substring_case_insensitive_newest_first",
        "`DEPLOY` is a part of `deployed`",
    ),
    (
        "search_first_always_returned",
        "`hit` is a part of one word without spaces",
    ),
    (
        "search_multiword_is_phrase",
        "all words must be there, in any order",
    ),
    (
        "search_like_wildcards",
        "a query without a word finds the newest turns",
    ),
];

fn cases() -> Vec<Value> {
    let text = include_str!("fixtures/golden/store.json");
    let file: Value = serde_json::from_str(text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap()
}

async fn results(case: &Value) -> Value {
    let mut adapter = open().await;
    let mut results = Vec::new();
    for operation in case["ops"].as_array().unwrap() {
        let result = adapter.apply(operation).await;
        let is_full = case["full"] == true || result.is_null();
        results.push(if is_full { result } else { ids(&result) });
    }
    Value::Array(results)
}

/// Cases that are not `full` give messages by their ids alone.
fn ids(messages: &Value) -> Value {
    let ids = messages.as_array().unwrap().iter();
    ids.map(|message| message["id"].clone()).collect()
}

async fn open() -> Adapter {
    let options = StoreOptions {
        path: None,
        readers: 1,
        page_cache_kib: 1_024,
    };
    let (store, _) = Store::open(&options, 0).unwrap();
    let binding = AccountBinding {
        channel: "golden".to_owned(),
        platform: Platform::Slack,
        account: "T1".to_owned(),
        name: "Golden".to_owned(),
    };
    let account = store.bind_account(binding, 0).await.unwrap();
    Adapter {
        store,
        account,
        conversations: HashMap::new(),
        message_ids: HashMap::new(),
    }
}

#[tokio::test]
async fn the_durable_store_gives_what_the_vectors_expect() {
    let excluded: Vec<&str> = [&NOT_OURS[..], &MATCHES_SUBSTRINGS[..]]
        .concat()
        .iter()
        .map(|(name, _)| *name)
        .collect();
    let cases = cases();
    for case in cases.iter().filter(|case| !excluded.contains(&name(case))) {
        assert_eq!(
            results(case).await,
            case["expectedInMemory"],
            "{}",
            name(case)
        );
    }
}

#[tokio::test]
async fn every_case_left_out_is_there_and_does_differ() {
    let cases = cases();
    for (left_out, reason) in [&NOT_OURS[..], &MATCHES_SUBSTRINGS[..]].concat() {
        let case = cases.iter().find(|case| name(case) == left_out).unwrap();
        assert_ne!(
            results(case).await,
            case["expectedInMemory"],
            "{left_out}: {reason}"
        );
    }
}

/// A message with nothing in it that was received as soon as it was sent.
fn empty_message(account: AccountId, sent_at_ms: i64) -> NewMessage {
    NewMessage {
        account,
        place: Place::default(),
        scope_override: None,
        message_id: String::new(),
        sender: Sender {
            id: String::new(),
            display_name: None,
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        sender_kind: ParticipantKind::User,
        text: String::new(),
        attachments: Vec::new(),
        reply_to: None,
        quote: None,
        album: None,
        sent_at_ms,
        ordinal: 0,
        is_edit: false,
        edit_marker: None,
        received_at_ms: sent_at_ms,
        tokens: None,
        keep_revisions: false,
        raw: None,
        judge_follow_up: None,
        judge: Box::new(|_| Verdict {
            is_admitted: true,
            ..Verdict::default()
        }),
    }
}

fn time_ms(time: &Value) -> i64 {
    let time = DateTime::parse_from_rfc3339(time.as_str().unwrap());
    time.unwrap().timestamp_millis()
}

fn optional(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A string, or what a number looks like as one.
fn string(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn strings(values: &Value) -> Vec<String> {
    let values = values.as_array().into_iter().flatten();
    values.map(string).collect()
}

/// Speaks the vectors' operations to the public store.
///
/// A turn has the scope of its place, so a conversation of several scopes is a topic of a chat that
/// is direct at one time and public at another, with a thread of the same key merged into it.
struct Adapter {
    store: Store,
    account: AccountId,
    conversations: HashMap<String, ConversationId>,
    message_ids: HashMap<TurnId, String>,
}

impl Adapter {
    async fn apply(&mut self, operation: &Value) -> Value {
        let chat = string(&operation["conversationId"]);
        let known = self.conversations.get(&chat).copied();
        let conversation =
            known.unwrap_or_else(<ConversationId as vocative_store::NewId>::generate);
        let options = &operation["opts"];
        let number = |key: &str| options[key].as_u64().map(|n| n as usize);
        let found = match operation["op"].as_str().unwrap() {
            "append" => return self.append(&operation["message"]).await,
            "delete" => {
                for id in strings(&operation["ids"]) {
                    let deleted = self.store.capture_delete(self.account, &chat, &id, 0);
                    deleted.await.unwrap();
                }
                return Value::Null;
            }
            "get" => {
                let filter = TurnFilter {
                    scope: options["scope"].as_str().and_then(Scope::from_name),
                    since_ms: options.get("sinceTimestamp").map(time_ms),
                    participants: strings(&options["participantIds"]),
                    limit: number("limit"),
                    with_hidden: false,
                };
                self.store.turns(conversation, filter).await
            }
            _ => {
                let query = SearchQuery {
                    limit: number("limit").unwrap_or(10),
                    token_cap: number("tokenCap").unwrap_or(2_000),
                    text_max_chars: usize::MAX,
                    neighbours: 0,
                    mode: SearchMode::StrictNewest,
                    ..SearchQuery::new(conversation, string(&operation["query"]))
                };
                let found = self.store.search(query).await;
                found.map(|found| found.hits.into_iter().map(|hit| hit.turn).collect())
            }
        };
        let show = |turn: &Turn| self.show(&chat, turn);
        found.unwrap().iter().map(show).collect()
    }

    async fn append(&mut self, given: &Value) -> Value {
        let chat = string(&given["conversationId"]);
        let (kind, thread_suffix) = match given["scope"].as_str().unwrap() {
            "dm" => (ChatKind::Direct, None),
            "channel" => (ChatKind::Public, None),
            _ => (ChatKind::Public, Some("+")),
        };
        let mut message = empty_message(self.account, time_ms(&given["timestamp"]));
        let place = &mut message.place;
        (place.chat, place.kind) = (chat.clone() + thread_suffix.unwrap_or(""), Some(kind));
        place.thread = thread_suffix.map(|_| "key".to_owned());
        place.topic = thread_suffix.is_none().then(|| "key".to_owned());
        (message.message_id, message.text) = (string(&given["id"]), string(&given["content"]));
        message.sender.id = string(&given["participant"]["id"]);
        message.sender.display_name = optional(&given["participant"]["displayName"]);
        let posted_in = message.place.chat.clone();
        if let Captured::New(new) = self.store.capture_message(message).await.unwrap() {
            self.message_ids.insert(new.turn, string(&given["id"]));
            let conversation = self.conversations.entry(chat.clone());
            conversation.or_insert(new.conversation);
        }
        let merged = self.store.merge_chats(self.account, &posted_in, &chat, 0);
        merged.await.unwrap();
        Value::Null
    }

    fn show(&self, chat: &str, turn: &Turn) -> Value {
        let who = &turn.participant;
        let sent = DateTime::from_timestamp_millis(turn.position.sent_at_ms).unwrap();
        json!({
            "id": self.message_ids[&turn.id], "conversationId": chat,
            "participant": {
                "kind": who.kind.name(), "id": who.platform_id, "displayName": who.display_name,
            },
            "content": turn.content, "scope": turn.scope.name(),
            "timestamp": sent.to_rfc3339_opts(SecondsFormat::Millis, true),
        })
    }
}
