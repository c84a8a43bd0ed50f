//! A store with one account, in which people speak, agents are asked, and answers are written.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use vocative_contract::outbound::{Part, Target};
use vocative_core::addressing::{MessageFacts, Verdict};
use vocative_core::ids::{AccountId, ConversationId, OwnerId, RunId};
use vocative_core::run::{ClaimedRun, Usage};

use vocative_core::turn::{Turn, TurnKind};
use vocative_store::contract::{
    Captured, CapturedTurn, ClaimRequest, CommittedReply, ConversationFilter, ReplyCommit,
    RunEnding, SearchMode, SearchQuery, TurnFilter,
};
use vocative_store::{NewId as _, Store, StoreOptions};

use crate::said::{Said, admitted, agent, binding, said, turn_of};

/// A lease in these tests lasts so long, in milliseconds.
pub(crate) const LEASE_MS: i64 = 1_000;

/// Opens the store that is held by the suite; `None` = a private one.
pub(crate) fn open(path: Option<PathBuf>) -> Store {
    let options = StoreOptions {
        path,
        readers: 2,
        page_cache_kib: 1_024,
    };
    Store::open(&options, 0).unwrap().0
}

/// A store with one account.
pub(crate) struct Scene {
    pub(crate) store: Store,
    pub(crate) account: AccountId,
    said: AtomicU32,
}

impl Scene {
    pub(crate) async fn open() -> Self {
        Self::open_at(None).await
    }

    pub(crate) async fn open_at(path: Option<PathBuf>) -> Self {
        let store = open(path);
        let account = store.bind_account(binding("acme"), 0).await.unwrap();
        Self {
            store,
            account,
            said: AtomicU32::new(0),
        }
    }

    /// Captures a message that everybody may send and that addresses nobody.
    pub(crate) async fn hear(&self, said: Said) -> Captured {
        self.judge(said, |_| admitted(&[])).await
    }

    /// Captures a message that addresses an agent.
    pub(crate) async fn hear_for(&self, agents: &'static [&'static str], said: Said) -> Captured {
        self.judge(said, |_| admitted(agents)).await
    }

    pub(crate) async fn judge(
        &self,
        said: Said,
        judge: impl FnOnce(&MessageFacts) -> Verdict + Send + 'static,
    ) -> Captured {
        let message = said.message(self.account, Box::new(judge));
        self.store.capture_message(message).await.unwrap()
    }

    /// The facts a message is judged by; it is not admitted, so nothing changes.
    pub(crate) async fn facts(&self, said: Said) -> MessageFacts {
        let (tx, rx) = std::sync::mpsc::channel();
        self.judge(said, move |facts| {
            tx.send(facts.clone()).unwrap();
            Verdict::default()
        })
        .await;
        rx.recv().unwrap()
    }

    /// Somebody says a line in a chat, to nobody.
    pub(crate) async fn say(&self, chat: &str, text: &str, at_ms: i64) -> CapturedTurn {
        self.say_with(chat, text, at_ms, admitted(&[])).await
    }

    /// Somebody asks the agent in a chat; the message and its run.
    pub(crate) async fn ask(&self, chat: &str, text: &str, at_ms: i64) -> (CapturedTurn, RunId) {
        let asked = self
            .say_with(chat, text, at_ms, admitted(&["helper"]))
            .await;
        let run = asked.new_runs[0];
        (asked, run)
    }

    /// The same of a run that waits until a time.
    pub(crate) async fn ask_for(&self, chat: &str, text: &str, at_ms: i64, due_ms: i64) -> RunId {
        let verdict = Verdict {
            not_before_ms: due_ms,
            ..admitted(&["helper"])
        };
        self.say_with(chat, text, at_ms, verdict).await.new_runs[0]
    }

    async fn say_with(&self, chat: &str, text: &str, at_ms: i64, verdict: Verdict) -> CapturedTurn {
        let mut message = said("0", "").message(self.account, Box::new(move |_| verdict));
        let number = self.said.fetch_add(1, Ordering::Relaxed);
        message.message_id = format!("m{number}");
        chat.clone_into(&mut message.place.chat);
        text.clone_into(&mut message.text);
        (message.sent_at_ms, message.received_at_ms) = (at_ms, at_ms);
        turn_of(self.store.capture_message(message).await.unwrap())
    }

    /// The chat's own conversation.
    pub(crate) async fn conversation(&self, chat: &str) -> ConversationId {
        let name = format!("acme/{chat}");
        self.store.find_conversation(&name).await.unwrap().id
    }

    /// All turns, in the order in which they were captured.
    pub(crate) async fn turns(&self) -> Vec<Turn> {
        let all = self.store.conversations(ConversationFilter {
            limit: 100,
            ..ConversationFilter::default()
        });
        let mut turns = Vec::new();
        for conversation in all.await.unwrap() {
            let filter = TurnFilter {
                with_hidden: true,
                ..TurnFilter::default()
            };
            turns.extend(self.store.turns(conversation.id, filter).await.unwrap());
        }
        turns.sort_by_key(Turn::seq);
        turns
    }

    pub(crate) async fn only_turn(&self) -> Turn {
        let mut turns = self.turns().await;
        assert_eq!(turns.len(), 1);
        turns.remove(0)
    }

    pub(crate) async fn contents(&self) -> Vec<String> {
        let turns = self.turns().await.into_iter();
        turns.map(|turn| turn.content).collect()
    }

    /// What a search in a conversation finds.
    pub(crate) async fn found(&self, conversation: ConversationId, text: &str) -> Vec<String> {
        let query = SearchQuery {
            mode: SearchMode::Strict,
            ..SearchQuery::new(conversation, text)
        };
        let found = self.store.search(query).await.unwrap();
        let hits = found.hits.into_iter();
        hits.map(|hit| hit.turn.content).collect()
    }

    /// A claim of another process each time, to which an expired lease is a stranger's.
    pub(crate) fn request(&self, now_ms: i64) -> ClaimRequest {
        ClaimRequest {
            owner: OwnerId::generate(),
            lease_ms: LEASE_MS,
            now_ms,
            accounts: (1..100).map(AccountId).collect(),
        }
    }

    pub(crate) async fn claim(&self, now_ms: i64) -> Option<ClaimedRun> {
        let request = self.request(now_ms);
        self.store
            .claim_run(request, Default::default())
            .await
            .unwrap()
    }

    /// An answer, to be committed.
    pub(crate) async fn answer(&self, run: &ClaimedRun, text: &str) -> ReplyCommit {
        let route = self.store.reply_route(run.run.id).await.unwrap();
        ReplyCommit {
            verdicts: Vec::new(),
            run: run.run.id,
            token: run.token,
            agent: agent("helper"),
            speaker: agent("helper"),
            speaker_display_name: "Helper".to_owned(),
            before: Vec::new(),
            values: None,
            text: text.to_owned(),
            kind: TurnKind::Message,
            ending: RunEnding::Done,
            parts: vec![Part::plain(text)],
            target: route.target,
            live_settle_ms: 0,
            tokens: None,
            usage: Usage::default(),
            now_ms: run.as_of_ms + 1,
        }
    }

    /// Has the agent asked in a chat, and its answer committed in parts.
    pub(crate) async fn post(&self, chat: &str, parts: &[&str], now_ms: i64) -> CommittedReply {
        self.ask(chat, "please", now_ms).await;
        let run = self.claim(now_ms).await.unwrap();
        let mut reply = self.answer(&run, &parts.concat()).await;
        reply.parts = parts.iter().map(|part| Part::plain(*part)).collect();
        reply.now_ms = now_ms;
        self.store.commit_reply(reply).await.unwrap()
    }
}

/// A chat, to post into.
pub(crate) fn target(chat: &str) -> Target {
    Target {
        chat: chat.to_owned(),
        thread: None,
        topic: None,
        reply_to: None,
    }
}
