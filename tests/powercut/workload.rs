//! What the daemon does to its store, without the daemon: messages, runs, replies, posts. What was
//! acknowledged is written down in the same order as the writes themselves.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;
use vocative_contract::outbound::{Delivered, Part, Target};
use vocative_core::addressing::Verdict;
use vocative_core::ids::{AccountId, AgentName, OwnerId};
use vocative_core::outbox::OutboxUpdate;
use vocative_core::run::Usage;
use vocative_core::turn::{ParticipantKind, TurnKind};
use vocative_store::NewId as _;
use vocative_store::contract::{
    AccountBinding, Captured, ClaimRequest, NewMessage, RecordedStep, ReplyCommit, RunEnding,
};
use vocative_store::{Store, StoreOptions};

/// The file of acknowledgements, a line each: what, and the id of its row.
pub(crate) const ACKNOWLEDGED: &str = "acknowledged";
/// Rounds of four messages, one of them a question.
const ROUNDS: i64 = 90;
/// A restart after so many rounds: the log is emptied and removed.
const RESTART_AFTER: i64 = 60;

pub(crate) fn options(path: &Path) -> StoreOptions {
    StoreOptions {
        path: Some(path.to_owned()),
        readers: 1,
        page_cache_kib: 1_024,
    }
}

/// One write call per line, so that the shim sees each where it belongs.
struct Acknowledgements(Mutex<File>);

impl Acknowledgements {
    fn note(&self, what: &str, id: impl std::fmt::Display) {
        let line = format!("{what} {id}\n");
        let mut file = self.0.lock().unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}

struct Daemon {
    store: Store,
    account: AccountId,
    owner: OwnerId,
}

async fn open(folder: &Path) -> Daemon {
    let (store, _) = Store::open(&options(&folder.join("vocative.db")), 0).unwrap();
    let binding = AccountBinding {
        channel: "acme".to_owned(),
        platform: Platform::Slack,
        account: "T1".to_owned(),
        name: "Acme".to_owned(),
    };
    let account = store.bind_account(binding, 0).await.unwrap();
    Daemon {
        store,
        account,
        owner: OwnerId::generate(),
    }
}

/// Works in a folder until everything is done.
pub(crate) async fn work(folder: &Path) {
    let file = File::create(folder.join(ACKNOWLEDGED)).unwrap();
    let acknowledged = Acknowledgements(Mutex::new(file));
    let mut daemon = open(folder).await;
    for round in 1..=ROUNDS {
        let at_ms = round * 1_000;
        let messages = (0..4).map(|number| daemon.hear(at_ms + number, number == 3, &acknowledged));
        futures_util::future::join_all(messages).await;
        daemon.answer(at_ms + 10, &acknowledged).await;
        daemon.post(at_ms + 20, &acknowledged).await;
        if round == RESTART_AFTER {
            daemon.store.close().await.unwrap();
            daemon = open(folder).await;
        }
    }
}

impl Daemon {
    async fn hear(&self, at_ms: i64, is_question: bool, acknowledged: &Acknowledgements) {
        let text = format!(
            "{at_ms} {}",
            "deploy at three, rollback at four ".repeat(60)
        );
        let message = message(self.account, at_ms, text, is_question);
        let captured = self.store.capture_message(message).await.unwrap();
        let Captured::New(turn) = captured else {
            panic!("{captured:?}");
        };
        acknowledged.note("turn", turn.turn);
        for run in turn.new_runs {
            acknowledged.note("run", run);
        }
    }

    fn request(&self, now_ms: i64) -> ClaimRequest {
        ClaimRequest {
            owner: self.owner,
            lease_ms: 60_000,
            now_ms,
            accounts: vec![self.account],
        }
    }

    async fn answer(&self, now_ms: i64, acknowledged: &Acknowledgements) {
        let claimed = self
            .store
            .claim_run(self.request(now_ms), Default::default())
            .await
            .unwrap();
        let claimed = claimed.expect("a question was heard");
        let recorded = self.store.record_step(
            claimed.run.id,
            claimed.token,
            RecordedStep {
                number: 0,
                message: "{}".to_owned(),
                usage: usage(),
                verdicts: Vec::new(),
            },
            now_ms,
        );
        recorded.await.unwrap();
        let reply = ReplyCommit {
            verdicts: Vec::new(),
            run: claimed.run.id,
            token: claimed.token,
            agent: agent(),
            speaker: agent(),
            speaker_display_name: "Helper".to_owned(),
            before: Vec::new(),
            values: None,
            text: format!("At three, as of {now_ms}."),
            kind: TurnKind::Message,
            ending: RunEnding::Done,
            parts: vec![Part::plain("At three.")],
            live_settle_ms: 0,
            target: Target {
                chat: "C1".to_owned(),
                thread: None,
                topic: None,
                reply_to: None,
            },
            tokens: None,
            usage: usage(),
            now_ms,
        };
        self.store.commit_reply(reply).await.unwrap();
        acknowledged.note("done", claimed.run.id);
    }

    async fn post(&self, now_ms: i64, acknowledged: &Acknowledgements) {
        let request = self.request(now_ms);
        let claimed = self.store.claim_posts(request, 4).await.unwrap();
        let entry = claimed.first().expect("an answer was committed");
        let id = entry.entry.id;
        let started = self.store.mark_send_started(id, entry.token, None, now_ms);
        started.await.unwrap();
        acknowledged.note("started", id);
        let delivered = OutboxUpdate::Sent(Delivered {
            chat: "C1".to_owned(),
            message_id: format!("post {now_ms}"),
            sent_at_ms: now_ms,
            shown: None,
        });
        let sent = self.store.update_post(id, entry.token, delivered, now_ms);
        sent.await.unwrap();
        acknowledged.note("sent", id);
    }
}

fn usage() -> Usage {
    Usage {
        prompt_tokens: 7,
        completion_tokens: 3,
        ..Usage::default()
    }
}

fn agent() -> AgentName {
    AgentName::trusted("helper")
}

fn message(account: AccountId, at_ms: i64, text: String, is_question: bool) -> NewMessage {
    NewMessage {
        account,
        place: Place {
            chat: "C1".to_owned(),
            kind: Some(ChatKind::Public),
            ..Place::default()
        },
        scope_override: None,
        message_id: format!("m{at_ms}"),
        sender: Sender {
            id: "U1".to_owned(),
            display_name: Some("Ann".to_owned()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        sender_kind: ParticipantKind::User,
        text,
        attachments: Vec::new(),
        reply_to: None,
        quote: None,
        album: None,
        sent_at_ms: at_ms,
        ordinal: 0,
        is_edit: false,
        edit_marker: None,
        received_at_ms: at_ms,
        tokens: None,
        keep_revisions: false,
        raw: None,
        judge_follow_up: None,
        judge: Box::new(move |_| Verdict {
            is_admitted: true,
            addressed_to: if is_question {
                vec![agent()]
            } else {
                Vec::new()
            },
            ..Verdict::default()
        }),
    }
}
