//! Answering again what was edited after its answer: the run, what it reads, and what becomes of the
//! posts of the earlier answer, wherever they stand.

use std::collections::BTreeMap;
use vocative_core::run::StopCause;

use vocative_contract::outbound::{Delivered, Operation, Part};

use super::*;
use crate::contract::{ClaimRequest, CommittedReply, ReplyCommit, RunEnding, ToolTurn, TurnFilter};
use crate::new_id::NewId as _;
use crate::scene::tool_result;
use vocative_core::addressing::{Overlap, RunVerdict};
use vocative_core::history::{HistoryQuery, Keep, Role};
use vocative_core::ids::{OutboxId, OwnerId, RunId, TurnId};
use vocative_core::outbox::ClaimedEntry;
use vocative_core::outbox::OutboxUpdate;
use vocative_core::run::{ClaimedRun, RunState, Usage};
use vocative_core::sent::SentPrompt;
use vocative_core::turn::TurnKind;

const LATER_MS: i64 = NOW_MS + 600_000;
const WITHIN_MS: i64 = 60_000;
const LEASE_MS: i64 = 30_000;
/// An edit three seconds after [`LATER_MS`], and one long after.
const SOON: &str = "1700000603.000100";
const LATE: &str = "1700000700";

/// What people see, and who posts there.
struct World {
    fixture: Fixture,
    /// Texts by message id, in the order in which they came.
    shown: BTreeMap<String, String>,
    marked: BTreeMap<OutboxId, String>,
    posted: usize,
    /// What the platform finds too long; its words are the parts that it takes.
    too_long: Option<&'static str>,
    now_ms: i64,
}

fn request(now_ms: i64) -> ClaimRequest {
    ClaimRequest {
        owner: OwnerId::generate(),
        lease_ms: LEASE_MS,
        now_ms,
        accounts: (1..100).map(AccountId).collect(),
    }
}

fn verdict(within_ms: i64) -> Verdict {
    Verdict {
        edit_answer_within_ms: within_ms,
        ..admitted(&["helper"])
    }
}

fn edit(text: &'static str, marker: &'static str) -> Said {
    Said {
        edit_marker: Some(marker),
        received_at_ms: LATER_MS + 100_000,
        ..said("1", text)
    }
}

impl World {
    /// A question that was answered with these parts, of which nothing is posted yet.
    async fn answered(parts: &[&str]) -> Self {
        let world = Self {
            fixture: Fixture::new().await,
            shown: BTreeMap::new(),
            marked: BTreeMap::new(),
            posted: 0,
            too_long: None,
            now_ms: LATER_MS,
        };
        world.edit_by(said("1", "when?"), verdict(WITHIN_MS)).await;
        world.reply(parts).await;
        world
    }

    async fn edit_by(&self, said: Said, verdict: Verdict) -> CapturedTurn {
        match self.fixture.judge(said, |_| verdict).await {
            Captured::New(turn) | Captured::Revised(turn) | Captured::Duplicate(turn) => turn,
            other => panic!("{other:?}"),
        }
    }

    /// Edits the question in time; returns the run that answers it again.
    async fn edit(&self) -> RunId {
        let turn = self.edit_by(edit("where?", SOON), verdict(WITHIN_MS)).await;
        assert_eq!(turn.new_runs.len(), 1);
        turn.new_runs[0]
    }

    async fn claim(&self) -> ClaimedRun {
        let claimed = self
            .fixture
            .store
            .claim_run(request(self.now_ms), Default::default())
            .await;
        claimed.unwrap().expect("a run that waits")
    }

    async fn commit(&self, run: &ClaimedRun, parts: &[&str], kind: TurnKind) -> CommittedReply {
        self.end(run, parts, kind, RunEnding::Done).await
    }

    async fn end(
        &self,
        run: &ClaimedRun,
        parts: &[&str],
        kind: TurnKind,
        ending: RunEnding,
    ) -> CommittedReply {
        let store = &self.fixture.store;
        let reply = ReplyCommit {
            verdicts: Vec::new(),
            run: run.run.id,
            token: run.token,
            agent: run.run.agent.clone(),
            speaker: run.run.agent.clone(),
            speaker_display_name: "Helper".to_owned(),
            before: Vec::new(),
            values: None,
            text: parts.join(" "),
            kind,
            ending,
            parts: parts.iter().map(|part| Part::plain(*part)).collect(),
            target: store.reply_route(run.run.id).await.unwrap().target,
            live_settle_ms: 0,
            tokens: None,
            usage: Usage::default(),
            now_ms: self.now_ms,
        };
        store.commit_reply(reply).await.unwrap()
    }

    async fn reply(&self, parts: &[&str]) -> CommittedReply {
        let run = self.claim().await;
        self.commit(&run, parts, TurnKind::Message).await
    }

    async fn claim_posts(&mut self) -> Vec<ClaimedEntry> {
        self.now_ms += 1;
        let claimed = self.fixture.store.claim_posts(request(self.now_ms), 9);
        claimed.await.unwrap()
    }

    async fn start(&self, claim: &ClaimedEntry) {
        let (id, token) = (claim.entry.id, claim.token);
        let store = &self.fixture.store;
        store
            .mark_send_started(id, token, self.now_ms)
            .await
            .unwrap();
    }

    async fn update(&self, claim: &ClaimedEntry, update: OutboxUpdate) {
        let (id, token) = (claim.entry.id, claim.token);
        let store = &self.fixture.store;
        store
            .update_post(id, token, update, self.now_ms)
            .await
            .unwrap();
    }

    fn sent(&self, claim: &ClaimedEntry, message_id: &str) -> OutboxUpdate {
        OutboxUpdate::Sent(Delivered {
            chat: claim.entry.target.chat.clone(),
            message_id: message_id.to_owned(),
            sent_at_ms: self.now_ms,
            shown: None,
        })
    }

    /// What the platform does with a request.
    fn apply(&mut self, claim: &ClaimedEntry) -> OutboxUpdate {
        let entry = &claim.entry;
        if self.too_long == Some(&entry.part.text) {
            return OutboxUpdate::Replace {
                parts: entry.part.text.split(' ').map(Part::plain).collect(),
                target: entry.target.clone(),
                operation: entry.operation.clone(),
                reason: "msg_too_long".to_owned(),
            };
        }
        match &entry.operation {
            Operation::Delete { message_id } => {
                self.shown.remove(message_id);
                self.sent(claim, message_id)
            }
            Operation::Edit { message_id } if !self.shown.contains_key(message_id) => {
                OutboxUpdate::Replace {
                    parts: vec![entry.part.clone()],
                    target: entry.target.clone(),
                    operation: Operation::Post,
                    reason: "message_not_found".to_owned(),
                }
            }
            Operation::Edit { message_id } => {
                self.shown
                    .insert(message_id.clone(), entry.part.text.clone());
                self.sent(claim, message_id)
            }
            _ => {
                let message_id = format!("p{}", self.posted);
                self.posted += 1;
                self.shown
                    .insert(message_id.clone(), entry.part.text.clone());
                self.marked.insert(entry.id, message_id.clone());
                self.sent(claim, &message_id)
            }
        }
    }

    /// Does all there is to do, as the delivery worker does; what was lost is looked for.
    async fn drain(&mut self) {
        for _ in 0..12 {
            for claim in self.claim_posts().await {
                let marked = self.marked.get(&claim.entry.id).cloned();
                let update = if !claim.is_unknown || claim.entry.operation.is_repeatable() {
                    self.start(&claim).await;
                    self.apply(&claim)
                } else if let Some(message_id) = marked {
                    self.sent(&claim, &message_id)
                } else {
                    let reason = "not there".to_owned();
                    OutboxUpdate::Resend { reason }
                };
                self.update(&claim, update).await;
            }
            self.now_ms += LEASE_MS + 1;
        }
    }

    fn texts(&self) -> Vec<&str> {
        self.shown.values().map(String::as_str).collect()
    }

    async fn turns(&self) -> Vec<Turn> {
        let turn = self.fixture.turns().await.remove(0);
        let all = self
            .fixture
            .store
            .turns(turn.conversation, TurnFilter::default());
        all.await.unwrap()
    }

    /// The answer is one turn, known by the messages that people see.
    async fn is_one_answer(&self, text: &str, at: &str) {
        let turns = self.turns().await;
        assert_eq!(turns.len(), 2, "{at}: {turns:#?}");
        assert_eq!(turns[1].content, text, "{at}");
        let details = self.fixture.store.turn_details(turns[1].conversation, 9);
        let mut known = details.await.unwrap().pop().unwrap().message_ids;
        known.sort();
        let seen: Vec<&String> = self.shown.keys().collect();
        assert_eq!(known.iter().collect::<Vec<_>>(), seen, "{at}");
        let open = "SELECT count(*) FROM outbox WHERE state NOT IN ('sent', 'replaced')";
        assert_eq!(self.fixture.value::<i64>(open).await, 0, "{at}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Untouched,
    Claimed,
    InFlight,
    LostAndThere,
    LostAndNotThere,
    FirstIsSent,
    Sent,
    Gone,
}

const ALL: [At; 8] = [
    At::Untouched,
    At::Claimed,
    At::InFlight,
    At::LostAndThere,
    At::LostAndNotThere,
    At::FirstIsSent,
    At::Sent,
    At::Gone,
];

/// Brings the posts of the earlier answer there; returns what arrives after the next one is committed.
async fn bring(world: &mut World, at: At) -> Option<ClaimedEntry> {
    match at {
        At::Untouched => return None,
        At::Sent | At::Gone => {
            world.drain().await;
            if at == At::Gone {
                world.shown.clear();
            }
            return None;
        }
        _ => {}
    }
    let claim = world.claim_posts().await.pop().unwrap();
    if at == At::Claimed {
        return Some(claim);
    }
    world.start(&claim).await;
    match at {
        At::InFlight => return Some(claim),
        At::FirstIsSent => {
            let update = world.apply(&claim);
            world.update(&claim, update).await;
        }
        _ => {
            if at == At::LostAndThere {
                world.apply(&claim);
            }
            let look = OutboxUpdate::Look {
                not_before_ms: world.now_ms,
                reason: "reset".to_owned(),
            };
            world.update(&claim, look).await;
        }
    }
    None
}

#[tokio::test]
async fn wherever_the_earlier_posts_stand_the_room_shows_the_new_answer_once() {
    let shapes: [(&[&str], &[&str]); 4] = [
        (&["a"], &["x"]),
        (&["a", "b"], &["x"]),
        (&["a"], &["x", "y", "z"]),
        (&["a", "b", "c"], &["x", "y"]),
    ];
    for at in ALL {
        for (before, after) in shapes {
            let what = format!("{at:?} {before:?} {after:?}");
            let mut world = World::answered(before).await;
            let in_flight = bring(&mut world, at).await;
            let run = world.edit().await;
            let messages = world.posted;
            world.reply(after).await;
            if let Some(claim) = in_flight {
                world.start(&claim).await;
                let update = world.apply(&claim);
                world.update(&claim, update).await;
            }
            world.drain().await;
            assert_eq!(world.texts(), after, "{what}");
            world.is_one_answer(&after.join(" "), &what).await;
            if at == At::Sent {
                let further = after.len().saturating_sub(before.len());
                assert_eq!(world.posted, messages + further, "{what}");
            }
            let state = world.fixture.store.run(run).await.unwrap().state;
            assert_eq!(state, RunState::Done, "{what}");
            // The earlier text is in the revisions, and nowhere in the posts.
            let kept = "SELECT content FROM revisions ORDER BY turn_seq DESC LIMIT 1";
            assert_eq!(world.fixture.value::<String>(kept).await, before.join(" "));
            let left = "SELECT count(*) FROM outbox WHERE payload LIKE '%\"a\"%'";
            assert_eq!(world.fixture.value::<i64>(left).await, 0, "{what}");
        }
    }
}

/// A question whose answer of these parts is posted, and that is edited since.
async fn posted_and_edited(parts: &[&str]) -> World {
    let mut world = World::answered(parts).await;
    world.drain().await;
    world.edit().await;
    world
}

#[tokio::test]
async fn a_changed_part_that_is_too_long_moves_the_later_ones_on() {
    let table: [(&[&str], &[&str], &'static str); 5] = [
        (&["a", "b", "c"], &["x y", "z", "w"], "x y"),
        (&["a", "b", "c"], &["x", "y z", "w"], "y z"),
        (&["a", "b", "c"], &["x", "y", "z w"], "z w"),
        (&["a", "b"], &["x y z", "w"], "x y z"),
        (&["a", "b"], &["x y", "z", "w", "v"], "x y"),
    ];
    for (before, after, too_long) in table {
        let what = format!("{before:?} {after:?}");
        let mut world = posted_and_edited(before).await;
        world.too_long = Some(too_long);
        world.reply(after).await;
        world.drain().await;
        let said = after.join(" ");
        assert_eq!(world.texts(), said.split(' ').collect::<Vec<_>>(), "{what}");
        world.is_one_answer(&said, &what).await;
        // And what stands then is known in its order.
        world.too_long = None;
        let again = edit("which?", LATE);
        world.edit_by(again, verdict(i64::from(u32::MAX))).await;
        world.reply(&["1", "2", "3"]).await;
        world.drain().await;
        assert_eq!(world.texts(), ["1", "2", "3"], "{what}");
    }
}

#[tokio::test]
async fn where_a_message_of_an_answer_is_gone_the_later_ones_say_the_new_answer_in_order() {
    let table: [(&[&str], &[&str]); 6] = [
        (&["p0"], &["x", "y", "z"]),
        (&["p1"], &["x", "y", "z"]),
        (&["p2"], &["x", "y", "z"]),
        (&["p0", "p1"], &["x", "y", "z"]),
        (&["p0", "p2"], &["x", "y", "z"]),
        (&["p0"], &["x", "y"]),
    ];
    for (gone, after) in table {
        let what = format!("{gone:?} {after:?}");
        let mut world = posted_and_edited(&["a", "b", "c"]).await;
        for message_id in gone {
            world.shown.remove(*message_id);
        }
        world.reply(after).await;
        world.drain().await;
        assert_eq!(world.texts(), after, "{what}");
        world.is_one_answer(&after.join(" "), &what).await;
    }
}

#[tokio::test]
async fn an_answer_of_which_one_part_is_sent_is_replaced_twice_in_order() {
    let mut world = World::answered(&["a", "b", "c"]).await;
    bring(&mut world, At::FirstIsSent).await;
    world.edit().await;
    world.reply(&["x", "y", "z"]).await;
    let again = edit("which?", LATE);
    world.edit_by(again, verdict(i64::from(u32::MAX))).await;
    world.reply(&["1", "2", "3"]).await;
    world.drain().await;
    assert_eq!(world.texts(), ["1", "2", "3"]);
    world.is_one_answer("1 2 3", "twice").await;
}

#[tokio::test]
async fn an_answer_may_be_replaced_again_and_again() {
    for is_posted in [true, false] {
        let mut world = World::answered(&["a", "b"]).await;
        for (text, marker, parts) in [
            ("2", "1700000601", &["x"] as &[&str]),
            ("3", "1700000602", &["one", "two"]),
            ("4", "1700000603", &["last"]),
        ] {
            if is_posted {
                world.drain().await;
            }
            let turn = world
                .edit_by(edit(text, marker), verdict(i64::from(u32::MAX)))
                .await;
            assert_eq!(turn.new_runs.len(), 1, "{text}");
            world.reply(parts).await;
        }
        world.drain().await;
        assert_eq!(world.texts(), ["last"]);
        world.is_one_answer("last", "again").await;
        assert_eq!(world.turns().await[1].revision, 4);
    }
}

#[tokio::test]
async fn a_revision_is_answered_once_and_only_where_that_is_wanted() {
    let world = World::answered(&["a"]).await;
    let asks = |said: Said, verdict: Verdict| {
        let world = &world;
        async move { world.edit_by(said, verdict).await.new_runs.len() }
    };
    assert_eq!(asks(edit("2", "1700000601"), verdict(0)).await, 0, "off");
    assert_eq!(
        asks(edit("2", "1700000602"), verdict(WITHIN_MS)).await,
        0,
        "same text"
    );
    assert_eq!(asks(edit("3", LATE), verdict(WITHIN_MS)).await, 0, "late");
    let limited = Verdict {
        runs: RunVerdict::LimitMet,
        ..verdict(WITHIN_MS * 9)
    };
    assert_eq!(asks(edit("4", "1700000701"), limited).await, 0, "a limit");
    let wide = || verdict(WITHIN_MS * 9);
    let mut by_bot = edit("a bot", "1700000701.5")
        .message(world.fixture.account, Box::new(|_| verdict(WITHIN_MS * 9)));
    by_bot.sender.kind = SenderKind::Bot;
    let captured = world.fixture.store.capture_message(by_bot).await.unwrap();
    assert_eq!(turn_of(captured).new_runs, [], "a bot");
    assert_eq!(asks(edit("5", "1700000702"), wide()).await, 1);
    assert_eq!(
        asks(edit("5", "1700000702"), wide()).await,
        0,
        "redelivered"
    );
    // One that waits answers the newest revision.
    assert_eq!(asks(edit("6", "1700000703"), wide()).await, 0, "it waits");
    let revision: i64 = world
        .fixture
        .value("SELECT revision FROM run_triggers")
        .await;
    assert_eq!(revision, i64::from(world.turns().await[0].revision));
    let runs: i64 = world.fixture.value("SELECT count(*) FROM runs").await;
    assert_eq!(runs, 2);
}

#[tokio::test]
async fn an_edit_while_it_is_answered_ends_that_and_is_answered_instead() {
    for is_first in [true, false] {
        let mut world = World::answered(&["a"]).await;
        if is_first {
            world.edit_by(said("2", "when?"), verdict(WITHIN_MS)).await;
        } else {
            world.drain().await;
            world.edit().await;
        }
        let at_work = world.claim().await;
        let id = if is_first { "2" } else { "1" };
        let again = Said {
            id,
            ..edit("why?", LATE)
        };
        // Off, it changes nothing.
        let off = Said {
            id,
            ..edit("how?", "1700000699")
        };
        let left = world.edit_by(off, verdict(0)).await;
        assert_eq!((left.new_runs, left.cancelled_runs), (vec![], vec![]));
        let turn = world.edit_by(again, verdict(WITHIN_MS)).await;
        assert_eq!(turn.cancelled_runs, [at_work.run.id], "{is_first}");
        assert_eq!(turn.new_runs.len(), 1, "{is_first}");
        // What was being written is not committed any more.
        let late = world.commit(&at_work, &["old"], TurnKind::Message).await;
        assert_eq!(late, CommittedReply::Cancelled, "{is_first}");
        assert_eq!(world.claim().await.run.id, turn.new_runs[0]);
        let state = world.fixture.store.run(at_work.run.id).await.unwrap().state;
        assert_eq!(state, RunState::Cancelled);
        world.now_ms += LEASE_MS + 1;
        world.reply(&["new"]).await;
        world.drain().await;
        let expected: &[&str] = if is_first { &["a", "new"] } else { &["new"] };
        assert_eq!(world.texts(), expected, "{is_first}");
    }
}

#[tokio::test]
async fn an_edit_after_a_stop_or_a_failure_is_answered_again() {
    for stops in [true, false] {
        let mut world = World::answered(&["a"]).await;
        world.drain().await;
        world.edit().await;
        let run = world.claim().await;
        let (id, store) = (run.run.id, &world.fixture.store);
        if stops {
            store
                .cancel_run(id, StopCause::Stopped.into(), world.now_ms)
                .await
                .unwrap();
            let late = world.commit(&run, &["x"], TurnKind::Message).await;
            assert_eq!(late, CommittedReply::Cancelled);
        } else {
            let reason = "the model is gone".to_owned();
            let ending = RunEnding::Dead { reason };
            world.end(&run, &["Sorry."], TurnKind::Notice, ending).await;
        }
        // That end is told without the answer that stays.
        let (snapshot, _) = store.run_snapshot(id).await.unwrap();
        let notice = if stops { "" } else { "Sorry." };
        assert_eq!(snapshot.text, notice);
        let again = edit("why?", LATE);
        let turn = world.edit_by(again, verdict(WITHIN_MS)).await;
        assert_eq!(turn.new_runs.len(), 1, "{stops}");
        world.reply(&["new"]).await;
        world.drain().await;
        let expected: &[&str] = if stops { &["new"] } else { &["new", "Sorry."] };
        assert_eq!(world.texts(), expected);
    }
}

#[tokio::test]
async fn a_prompt_reads_the_edited_question_last_and_not_the_earlier_answer() {
    let world = World::answered(&["a"]).await;
    world.fixture.hear(said("7", "meanwhile")).await;
    world.edit().await;
    let run = world.claim().await;
    let query = HistoryQuery {
        conversation: run.run.conversation,
        agent: run.run.agent.clone(),
        as_of_seq: Some(run.as_of_seq),
        run: Some(run.run.id),
        triggers: run.run.triggers.clone(),
        keep: Keep::All,
        max_turns: 100,
        since_ms: None,
        scope: None,
        parent_turns: 10,
        ambient_turns: 10,
        summaries: None,
        thread_answers: true,
        made_by_ms: None,
    };
    let read = world.fixture.store.history(query).await.unwrap().turns;
    let read: Vec<_> = read
        .iter()
        .map(|it| (it.turn.content.as_str(), it.role))
        .collect();
    assert_eq!(read, [("where?", Role::Trigger), ("meanwhile", Role::Kept)]);
    let route = world.fixture.store.reply_route(run.run.id).await.unwrap();
    assert!(route.replaces_answer);
}

#[tokio::test]
async fn a_new_question_does_not_join_the_run_that_answers_again() {
    let world = World::answered(&["a"]).await;
    world.edit().await;
    for overlap in [Overlap::Auto, Overlap::Interrupt] {
        let id = if overlap == Overlap::Auto { "8" } else { "9" };
        let asked = Verdict {
            overlaps: [(agent("helper"), overlap)].into(),
            ..verdict(WITHIN_MS)
        };
        let turn = world.edit_by(said(id, "and who?"), asked).await;
        assert_eq!(turn.cancelled_runs, [], "{overlap:?}");
    }
    world.reply(&["x"]).await;
    assert_eq!(world.turns().await[1].content, "x");
    let alone = "SELECT max(n) FROM (SELECT count(*) AS n FROM run_triggers g
                 JOIN runs r ON r.id = g.run_id WHERE r.state = 'done' GROUP BY g.run_id)";
    assert_eq!(world.fixture.value::<i64>(alone).await, 1);
}

#[tokio::test]
async fn a_deleted_question_is_not_answered_again_and_a_notice_leaves_the_answer() {
    let world = World::answered(&["a"]).await;
    let run = world.edit().await;
    let store = &world.fixture.store;
    let account = world.fixture.account;
    store
        .capture_delete(account, "C1", "1", LATER_MS)
        .await
        .unwrap();
    let state = store.run(run).await.unwrap().state;
    assert_eq!(state, RunState::Cancelled);

    let world = World::answered(&["a"]).await;
    world.edit().await;
    let run = world.claim().await;
    world.commit(&run, &["Sorry."], TurnKind::Notice).await;
    let texts: Vec<_> = world
        .turns()
        .await
        .into_iter()
        .map(|turn| turn.content)
        .collect();
    assert_eq!(texts, ["where?", "a", "Sorry."]);
}

/// A search by a run finds a message.
async fn find(world: &World, run: &ClaimedRun, found: TurnId) {
    let (id, store) = (run.run.id, &world.fixture.store);
    let usage = Usage::default();
    let step = store.record_step(id, run.token, 1, "asked".to_owned(), usage, world.now_ms);
    step.await.unwrap();
    let call = ToolTurn {
        call_id: "call_1".to_owned(),
        tool: "conversation_search".to_owned(),
        is_known: true,
        call: "conversation_search {}".to_owned(),
        call_tokens: None,
        result: "zebra was found".to_owned(),
        result_tokens: None,
        sources: vec![found],
    };
    tool_result(store, run, call, world.now_ms).await;
}

#[tokio::test]
async fn an_answer_stays_known_when_only_the_run_that_is_to_replace_it_read_what_is_deleted() {
    for is_earlier in [false, true] {
        let mut world = World::answered(&[]).await;
        let heard = world.edit_by(said("2", "zebra"), admitted(&[])).await;
        world
            .edit_by(said("3", "and when?"), verdict(WITHIN_MS))
            .await;
        let earlier = world.claim().await;
        if is_earlier {
            find(&world, &earlier, heard.turn).await;
        }
        world.commit(&earlier, &["a"], TurnKind::Message).await;
        world.drain().await;
        let edited = Said {
            edit_marker: Some(SOON),
            ..said("3", "and where?")
        };
        let again = world.edit_by(edited, verdict(WITHIN_MS)).await;
        assert_eq!(again.new_runs.len(), 1);
        let run = world.claim().await;
        if !is_earlier {
            find(&world, &run, heard.turn).await;
        }
        let account = world.fixture.account;
        let deleted = world
            .fixture
            .store
            .capture_delete(account, "C1", "2", world.now_ms);
        deleted.await.unwrap();
        let known = "SELECT count(*) FROM turns WHERE content = 'a' AND visibility = 'room'";
        let is_known = world.fixture.value::<i64>(known).await == 1;
        assert_eq!(is_known, !is_earlier);
        if is_known {
            let read = world.commit(&run, &["zebra"], TurnKind::Message).await;
            assert_eq!(read, CommittedReply::SourceGone);
            world.commit(&run, &["x"], TurnKind::Message).await;
            world.drain().await;
            assert_eq!(world.texts(), ["x"]);
        }
    }
}

/// A world in which the run of the question "when?" has read a message for its prompt, and answered.
async fn answered_from(text: &'static str) -> World {
    let mut world = World::answered(&[]).await;
    world.drain().await;
    let heard = world.edit_by(said("2", text), admitted(&[])).await;
    world
        .edit_by(said("3", "and when?"), verdict(WITHIN_MS))
        .await;
    let run = world.claim().await;
    let prompt = SentPrompt {
        recipe: "{}".to_owned(),
        instructions: String::new(),
        tools: "[]".to_owned(),
        summary: None,
        turns: Vec::new(),
        thread_answers: Vec::new(),
    };
    let store = &world.fixture.store;
    let read = vec![heard.turn];
    let recorded = store.record_prompt(run.run.id, run.token, prompt, read);
    recorded.await.unwrap();
    world.commit(&run, &["zebra"], TurnKind::Message).await;
    world.drain().await;
    world
}

fn edit_of_3() -> Said {
    Said {
        edit_marker: Some(SOON),
        ..said("3", "and where?")
    }
}

impl World {
    async fn delete(&self, message_id: &str) {
        let account = self.fixture.account;
        let store = &self.fixture.store;
        let deleted = store.capture_delete(account, "C1", message_id, self.now_ms);
        deleted.await.unwrap();
    }
}

#[tokio::test]
async fn a_question_whose_answer_went_with_what_it_was_made_from_is_answered_again_when_edited() {
    let mut world = answered_from("the file").await;
    world.delete("2").await;
    let again = world.edit_by(edit_of_3(), verdict(WITHIN_MS)).await;
    assert_eq!(again.new_runs.len(), 1);
    // A further question is no part of what it answers, and waits with it.
    let further = world.edit_by(said("4", "and who?"), verdict(0)).await;
    assert_eq!(further.new_runs.len(), 1);
    world.reply(&["x"]).await;
    world.drain().await;
    assert!(world.texts().contains(&"x"), "{:?}", world.texts());
}

#[tokio::test]
async fn an_answer_goes_with_what_it_was_made_from_also_once_another_run_has_its_question() {
    for is_stopped in [false, true] {
        let world = answered_from("the file").await;
        world.edit_by(edit_of_3(), verdict(WITHIN_MS)).await;
        let run = world.claim().await;
        if is_stopped {
            let stopping = StopCause::Stopped.into();
            let store = &world.fixture.store;
            let stopped = store.cancel_run(run.run.id, stopping, world.now_ms);
            stopped.await.unwrap();
            world.commit(&run, &["x"], TurnKind::Message).await;
        }
        world.delete("2").await;
        let zebras = "SELECT count(*) FROM turns WHERE content LIKE '%zebra%'";
        assert_eq!(world.fixture.value::<i64>(zebras).await, 0, "{is_stopped}");
    }
    // The answer that took its place was made without it, and stays.
    let mut world = answered_from("the file").await;
    let message = edit_of_3().message(world.fixture.account, Box::new(|_| verdict(WITHIN_MS)));
    let unkept = NewMessage {
        keep_revisions: false,
        ..message
    };
    world.fixture.store.capture_message(unkept).await.unwrap();
    world.reply(&["lion"]).await;
    world.drain().await;
    world.delete("2").await;
    let lions = "SELECT count(*) FROM turns WHERE content = 'lion'";
    assert_eq!(world.fixture.value::<i64>(lions).await, 1);
}

#[tokio::test]
async fn without_revisions_the_earlier_answer_is_nowhere() {
    let mut world = World::answered(&["zebra"]).await;
    world.drain().await;
    let message =
        edit("where?", SOON).message(world.fixture.account, Box::new(|_| verdict(WITHIN_MS)));
    let unkept = NewMessage {
        keep_revisions: false,
        ..message
    };
    world.fixture.store.capture_message(unkept).await.unwrap();
    world.reply(&["lion"]).await;
    assert!(world.fixture.is_nowhere("zebra").await);
    world.drain().await;
    assert_eq!(world.texts(), ["lion"]);
}
