//! Words that people and models search for: whatever they are, a search answers.

use std::cell::RefCell;

use vocative_contract::envelope::{Place, Sender, SenderKind};
use vocative_contract::identity::Platform;
use vocative_core::addressing::Verdict;
use vocative_core::ids::ConversationId;
use vocative_core::search::SearchReach;
use vocative_core::turn::ParticipantKind;
use vocative_store::contract::{
    AccountBinding, Captured, NewMessage, SearchHits, SearchMode, SearchQuery,
};
use vocative_store::{Store, StoreOptions};

use super::speech::NOW_MS;

const HITS_MAX: usize = 5;
const TEXT_MAX_CHARS: usize = 60;

const LINES: [&str; 6] = [
    "the deploy of the build is red, see logs",
    "deploy? deployed! DEPLOYMENT *now* \"quoted\" AND OR NOT NEAR",
    "日本語のテキスト、検索できますか",
    "naïve café straße ÀÉÎ e\u{301} 👩\u{200d}💻",
    "key:value -minus +plus ^caret a.b.c snake_case_name 127.0.0.1",
    "",
];

thread_local! {
    static ROOM: RefCell<Option<Room>> = const { RefCell::new(None) };
}

struct Room {
    runtime: tokio::runtime::Runtime,
    store: Store,
    conversation: ConversationId,
}

impl Room {
    fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime can be made");
        let options = StoreOptions {
            path: None,
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, NOW_MS).expect("a store can be opened");
        let conversation = runtime.block_on(talk(&store));
        Self {
            runtime,
            store,
            conversation,
        }
    }
}

async fn talk(store: &Store) -> ConversationId {
    let binding = AccountBinding {
        channel: "acme".to_owned(),
        platform: Platform::Slack,
        account: "T1".to_owned(),
        name: "Acme".to_owned(),
    };
    let account = store.bind_account(binding, NOW_MS).await;
    let account = account.expect("an account can be bound");
    let mut conversation = None;
    for (at, line) in (0_i64..).zip(LINES) {
        let message = NewMessage {
            account,
            place: Place {
                chat: "C1".to_owned(),
                ..Place::default()
            },
            scope_override: None,
            message_id: at.to_string(),
            sender: Sender {
                id: "U1".to_owned(),
                display_name: Some("Ann".to_owned()),
                username: None,
                kind: SenderKind::Person,
                is_stranger: false,
            },
            sender_kind: ParticipantKind::User,
            text: line.to_owned(),
            attachments: Vec::new(),
            reply_to: None,
            quote: None,
            album: None,
            sent_at_ms: NOW_MS + at,
            ordinal: 0,
            is_edit: false,
            edit_marker: None,
            received_at_ms: NOW_MS + at,
            tokens: None,
            keep_revisions: false,
            raw: None,
            judge: Box::new(|_| Verdict {
                is_admitted: true,
                ..Verdict::default()
            }),
            judge_follow_up: None,
        };
        let captured = store.capture_message(message).await;
        if let Captured::New(turn) = captured.expect("a message can be captured") {
            conversation = Some(turn.conversation);
        }
    }
    conversation.expect("something was said")
}

pub(super) fn query(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    ROOM.with_borrow_mut(|room| {
        let room = room.get_or_insert_with(Room::open);
        let mode = match input.len() % 3 {
            0 => SearchMode::Forgiving,
            1 => SearchMode::Strict,
            _ => SearchMode::StrictNewest,
        };
        let query = SearchQuery {
            reach: SearchReach::Threads,
            limit: HITS_MAX,
            token_cap: 200,
            text_max_chars: TEXT_MAX_CHARS,
            mode,
            ..SearchQuery::new(room.conversation, text)
        };
        let found = room.runtime.block_on(room.store.search(query));
        check_hits(&found.unwrap_or_else(|error| panic!("no answer: {error}")));
    });
}

fn check_hits(found: &SearchHits) {
    assert!(found.hits.len() <= HITS_MAX && found.matches >= found.hits.len());
    for (at, hit) in found.hits.iter().enumerate() {
        // An ellipsis at either end.
        assert!(
            hit.text.chars().count() <= TEXT_MAX_CHARS + 2,
            "{:?}",
            hit.text
        );
        let again = found.hits[..at]
            .iter()
            .any(|other| other.turn.id == hit.turn.id);
        assert!(!again, "a turn is found twice");
    }
}
