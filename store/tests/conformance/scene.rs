//! A store with one account, in which people speak, agents are asked, and answers are written.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use vocative_contract::envelope::{Place, Sender, SenderKind};
use vocative_contract::identity::Identity;
use vocative_contract::markup::mention_token;
use vocative_contract::outbound::{Delivered, Part, Target};
use vocative_core::addressing::{MessageFacts, RunVerdict, Verdict};
use vocative_core::command::CommandVerdict;
use vocative_core::ids::{AccountId, ConversationId, OwnerId, RunId, Seq, TurnId};
use vocative_core::outbox::{ClaimedEntry, OutboxEntry, OutboxUpdate};
use vocative_core::run::{ClaimedRun, StopCause, Stopping, Usage};
use vocative_core::turn::{Turn, TurnKind};
use vocative_store::commands::{CommandOutcome, NewCommand};
use vocative_store::contract::{
    Captured, CapturedTurn, ClaimRequest, CommittedReply, ConversationFilter, LeaseOutcome,
    NewMessage, NonMessage, PageQuery, ReplyCommit, RunEnding, SearchMode, SearchQuery, TurnFilter,
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
        Self::with(open(path)).await
    }

    pub(crate) async fn with(store: Store) -> Self {
        let account = store.bind_account(binding("acme"), 0).await.unwrap();
        Self {
            store,
            account,
            said: AtomicU32::new(0),
        }
    }

    /// Learns who the bot is, as a start of its channel does.
    pub(crate) async fn learn_bot(&self, identity: &Identity) {
        let bound = self
            .store
            .bind_bot(binding("acme"), identity, Vec::new(), 0);
        assert_eq!(bound.await.unwrap().0, self.account);
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

    /// Somebody says a line in a place, to nobody. A place is a chat, or `chat/thread`; messages are called m0, m1 and
    /// so on.
    pub(crate) async fn say(&self, place: &str, text: &str, at_ms: i64) -> CapturedTurn {
        self.say_with(place, text, at_ms, admitted(&[])).await
    }

    /// The same in reply to a message.
    pub(crate) async fn reply(
        &self,
        place: &str,
        text: &str,
        at_ms: i64,
        to: &str,
    ) -> CapturedTurn {
        let mut message = self.next_message(place, text, at_ms, admitted(&[]));
        message.reply_to = Some(to.to_owned());
        turn_of(self.store.capture_message(message).await.unwrap())
    }

    /// Somebody asks the agent in a place; the message and its run.
    pub(crate) async fn ask(&self, place: &str, text: &str, at_ms: i64) -> (CapturedTurn, RunId) {
        let asked = self
            .say_with(place, text, at_ms, admitted(&["helper"]))
            .await;
        let run = asked.new_runs[0];
        (asked, run)
    }

    /// The same of a run that waits until a time.
    pub(crate) async fn ask_for(&self, place: &str, text: &str, at_ms: i64, due_ms: i64) -> RunId {
        let verdict = Verdict {
            not_before_ms: due_ms,
            ..admitted(&["helper"])
        };
        self.say_with(place, text, at_ms, verdict).await.new_runs[0]
    }

    /// Somebody addresses the agent in a place, and it is not to answer.
    pub(crate) async fn address(&self, place: &str, text: &str, at_ms: i64) -> CapturedTurn {
        let verdict = Verdict {
            runs: RunVerdict::TooOld,
            ..admitted(&["helper"])
        };
        self.say_with(place, text, at_ms, verdict).await
    }

    pub(crate) async fn say_with(
        &self,
        place: &str,
        text: &str,
        at_ms: i64,
        verdict: Verdict,
    ) -> CapturedTurn {
        let message = self.next_message(place, text, at_ms, verdict);
        turn_of(self.store.capture_message(message).await.unwrap())
    }

    pub(crate) fn next_message(
        &self,
        place: &str,
        text: &str,
        at_ms: i64,
        verdict: Verdict,
    ) -> NewMessage {
        let mut message = said("0", "").message(self.account, Box::new(move |_| verdict));
        let number = self.said.fetch_add(1, Ordering::Relaxed);
        message.message_id = format!("m{number}");
        let (chat, thread) = match place.split_once('/') {
            Some((chat, thread)) => (chat, Some(thread.to_owned())),
            None => (place, None),
        };
        chat.clone_into(&mut message.place.chat);
        message.place.thread = thread;
        text.clone_into(&mut message.text);
        (message.sent_at_ms, message.received_at_ms) = (at_ms, at_ms);
        message
    }

    /// Somebody gives a command in the chat C1.
    pub(crate) async fn command(
        &self,
        id: &str,
        at_ms: i64,
        verdict: CommandVerdict,
    ) -> CommandOutcome {
        self.command_of("U1", id, at_ms, verdict).await
    }

    /// The same of somebody else.
    pub(crate) async fn command_of(
        &self,
        person: &str,
        id: &str,
        at_ms: i64,
        verdict: CommandVerdict,
    ) -> CommandOutcome {
        let place = Place {
            chat: "C1".to_owned(),
            ..Place::default()
        };
        let event = NonMessage {
            account: self.account,
            id: id.to_owned(),
            kind: "command",
            sender_id: person.to_owned(),
            chat: Some("C1".to_owned()),
            text: "/vocative".to_owned(),
            received_at_ms: at_ms,
        };
        let command = NewCommand {
            event,
            place,
            sender: Sender {
                id: person.to_owned(),
                display_name: None,
                username: None,
                kind: SenderKind::Person,
                is_stranger: false,
            },
            judge: Box::new(move |_| Some(verdict)),
        };
        self.store.capture_command(command).await.unwrap()
    }

    /// What somebody is called, as far as is known.
    pub(crate) async fn name_of(&self, id: &str) -> String {
        let mentioned = vec![mention_token(id)];
        let named = self.store.named(self.account, mentioned).await.unwrap();
        named.concat()
    }

    /// The conversation of a place.
    pub(crate) async fn conversation(&self, place: &str) -> ConversationId {
        let name = format!("acme/{place}");
        self.store.find_conversation(&name).await.unwrap().id
    }

    /// All runs, in the order in which they came to be: their agents, their states, and the turns they answer.
    pub(crate) async fn runs(&self) -> Vec<String> {
        let turns: HashMap<TurnId, Seq> = self
            .turns()
            .await
            .into_iter()
            .map(|turn| (turn.id, turn.seq()))
            .collect();
        let mut runs = self.store.all_runs_before(None, 1_000).await.unwrap();
        runs.reverse();
        let told = runs.iter().map(|run| {
            let triggers = run.triggers.iter().map(|turn| turns[turn].to_string());
            let triggers = match run.triggers.is_empty() {
                true => "-".to_owned(),
                false => triggers.collect::<Vec<_>>().join("+"),
            };
            format!("{} {} {triggers}", run.agent, run.state.name())
        });
        told.collect()
    }

    /// All posts of turns, in the order in which they were committed.
    pub(crate) async fn posts(&self) -> Vec<OutboxEntry> {
        let mut posts = Vec::new();
        for conversation in self.conversations().await {
            let query = PageQuery {
                limit: 1_000,
                before: None,
                is_timeline: true,
            };
            let page = self.store.page(conversation, query).await.unwrap();
            posts.extend(page.turns.into_iter().flat_map(|turn| turn.posts));
        }
        posts.sort_by_key(|post| post.created_at_ms);
        posts
    }

    async fn conversations(&self) -> Vec<ConversationId> {
        let all = self.store.conversations(ConversationFilter {
            limit: 1_000,
            with_archived: true,
            ..ConversationFilter::default()
        });
        let all = all.await.unwrap().into_iter();
        all.map(|conversation| conversation.id).collect()
    }

    /// All turns, in the order in which they were captured.
    pub(crate) async fn turns(&self) -> Vec<Turn> {
        let mut turns = Vec::new();
        for conversation in self.conversations().await {
            let filter = TurnFilter {
                with_hidden: true,
                ..TurnFilter::default()
            };
            turns.extend(self.store.turns(conversation, filter).await.unwrap());
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

    pub(crate) async fn claim_posts(&self, now_ms: i64) -> Vec<ClaimedEntry> {
        let request = self.request(now_ms);
        self.store.claim_posts(request, 10).await.unwrap()
    }

    /// The bytes of a post are on their way.
    pub(crate) async fn start(&self, claim: &ClaimedEntry, now_ms: i64) {
        let (id, token) = (claim.entry.id, claim.token);
        let outcome = self.store.mark_send_started(id, token, None, now_ms).await;
        assert_eq!(outcome.unwrap(), LeaseOutcome::Written);
    }

    pub(crate) async fn update(&self, claim: &ClaimedEntry, update: OutboxUpdate, now_ms: i64) {
        let (id, token) = (claim.entry.id, claim.token);
        let outcome = self.store.update_post(id, token, update, now_ms).await;
        assert_eq!(outcome.unwrap(), LeaseOutcome::Written);
    }

    /// A post becomes a message.
    pub(crate) async fn send(&self, claim: &ClaimedEntry, message_id: &str, now_ms: i64) {
        self.start(claim, now_ms).await;
        let sent = OutboxUpdate::Sent(Delivered {
            chat: claim.entry.target.chat.clone(),
            message_id: message_id.to_owned(),
            sent_at_ms: now_ms,
            shown: None,
        });
        self.update(claim, sent, now_ms).await;
    }

    /// Sends the only post that may go.
    pub(crate) async fn send_one(&self, message_id: &str, now_ms: i64) {
        let claimed = self.claim_posts(now_ms).await;
        assert_eq!(claimed.len(), 1, "{claimed:?}");
        self.send(&claimed[0], message_id, now_ms).await;
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

/// A person has a run stopped.
pub(crate) fn by_hand(detail: &str) -> Stopping {
    Stopping {
        cause: StopCause::Operator,
        detail: detail.to_owned(),
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
