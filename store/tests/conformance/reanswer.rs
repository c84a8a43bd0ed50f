//! Answering again what was edited after its answer: the run, what it reads, and what becomes of the
//! posts of the earlier answer, wherever they stand.

use vocative_contract::envelope::SenderKind;
use vocative_core::addressing::{Overlap, RunVerdict, Verdict};
use vocative_core::coverage::Keep;
use vocative_core::history::{HistoryQuery, HistoryRole};
use vocative_core::ids::{RunId, TurnId};
use vocative_core::outbox::{ClaimedEntry, OutboxState, OutboxUpdate};
use vocative_core::run::{ClaimedRun, RunState, StopCause, Usage};
use vocative_core::sent::SentPrompt;
use vocative_core::turn::{Turn, TurnKind};
use vocative_store::contract::{
    CapturedTurn, CommittedReply, NewMessage, RecordedStep, ReplyCommit, RunEnding, ToolTurn,
    TurnFilter,
};

use crate::said::{NOW_MS, Said, admitted, agent, said, turn_of};
use crate::scene::LEASE_MS;
use crate::tools::tool_result;
use crate::world::World;

const LATER_MS: i64 = NOW_MS + 600_000;
const WITHIN_MS: i64 = 60_000;
const EVER_MS: i64 = 4_000_000_000;
/// An edit three seconds after [`LATER_MS`], and one long after.
const SOON: &str = "1700000603.000100";
const LATE: &str = "1700000700";

fn verdict(within_ms: i64) -> Verdict {
    Verdict {
        edit_answer_within_ms: within_ms,
        ..admitted(&["helper"])
    }
}

fn edit_of(id: &'static str, text: &'static str, marker: &'static str) -> Said {
    Said {
        edit_marker: Some(marker),
        received_at_ms: LATER_MS + 100_000,
        ..said(id, text)
    }
}

/// An edit of the question that every test begins with.
fn edit(text: &'static str, marker: &'static str) -> Said {
    edit_of("1", text, marker)
}

impl World {
    /// A question that was answered with these parts, of which nothing is posted yet.
    async fn answered(parts: &[&str]) -> Self {
        let world = Self::at(LATER_MS).await;
        world.hear(said("1", "when?"), verdict(WITHIN_MS)).await;
        world.reply(parts).await;
        world
    }

    /// The same, posted and edited since.
    async fn posted_and_edited(parts: &[&str]) -> Self {
        let mut world = Self::answered(parts).await;
        world.drain().await;
        world.edit().await;
        world
    }

    async fn hear(&self, said: Said, verdict: Verdict) -> CapturedTurn {
        turn_of(self.scene.judge(said, |_| verdict).await)
    }

    /// The same where no earlier text is kept.
    async fn hear_unkept(&self, said: Said, verdict: Verdict) {
        let message = NewMessage {
            keep_revisions: false,
            ..said.message(self.scene.account, Box::new(|_| verdict))
        };
        self.scene.store.capture_message(message).await.unwrap();
    }

    /// Edits the question in time; returns the run that answers it again.
    async fn edit(&self) -> RunId {
        let turn = self.hear(edit("where?", SOON), verdict(WITHIN_MS)).await;
        assert_eq!(turn.new_runs.len(), 1);
        turn.new_runs[0]
    }

    async fn delete(&self, message_id: &str) {
        let (store, account) = (&self.scene.store, self.scene.account);
        let deleted = store.capture_delete(account, "C1", message_id, self.now_ms);
        deleted.await.unwrap();
    }

    async fn claim(&self) -> ClaimedRun {
        let claimed = self.scene.claim(self.now_ms).await;
        claimed.expect("a run that waits")
    }

    async fn reply(&self, parts: &[&str]) {
        let run = self.claim().await;
        let committed = self.commit(&run, parts).await;
        assert!(matches!(committed, CommittedReply::Written { .. }));
    }

    /// Says that it can't be answered.
    async fn notice(&self, run: &ClaimedRun, ending: RunEnding) {
        let notice = ReplyCommit {
            kind: TurnKind::Notice,
            ending,
            ..self.answer(run, &["Sorry."]).await
        };
        self.scene.store.commit_reply(notice).await.unwrap();
    }

    async fn state(&self, run: RunId) -> RunState {
        self.scene.store.run(run).await.unwrap().state
    }

    async fn turns(&self) -> Vec<Turn> {
        let room = self.scene.conversation("C1").await;
        let turns = self.scene.store.turns(room, TurnFilter::default());
        turns.await.unwrap()
    }

    async fn has_turn(&self, text: &str) -> bool {
        self.turns().await.iter().any(|turn| turn.content == text)
    }

    /// The answer is one turn, known by the messages that people see.
    async fn is_one_answer(&self, text: &str, at: &str) {
        let turns = self.turns().await;
        assert_eq!(turns.len(), 2, "{at}: {turns:#?}");
        assert_eq!(turns[1].content, text, "{at}");
        let store = &self.scene.store;
        let details = store.turn_details(turns[1].conversation, 9).await.unwrap();
        let mut known = details[1].message_ids.clone();
        known.sort();
        assert!(known.iter().eq(self.shown.keys()), "{at}: {known:?}");
        let posts = self.scene.posts().await;
        let is_sent = |state: &OutboxState| matches!(state, OutboxState::Sent { .. });
        assert!(posts.iter().all(|post| is_sent(&post.state)), "{at}");
        let status = store.status(self.now_ms).await.unwrap();
        let open = [
            status.posts_pending,
            status.posts_unknown,
            status.posts_held,
            status.posts_dead,
        ];
        assert_eq!(open, [0; 4], "{at}");
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
    let claim = world.claim_post().await;
    if at == At::Claimed {
        return Some(claim);
    }
    world.start(&claim).await;
    match at {
        At::InFlight => return Some(claim),
        At::FirstIsSent => world.arrive(&claim).await,
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
                if at == At::Claimed {
                    world.start(&claim).await;
                }
                world.arrive(&claim).await;
            }
            world.drain().await;
            assert_eq!(world.texts(), after, "{what}");
            world.is_one_answer(&after.join(" "), &what).await;
            if at == At::Sent {
                let further = after.len().saturating_sub(before.len());
                assert_eq!(world.posted, messages + further, "{what}");
            }
            assert_eq!(world.state(run).await, RunState::Done, "{what}");
        }
    }
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
        let mut world = World::posted_and_edited(before).await;
        world.too_long = Some(too_long);
        world.reply(after).await;
        world.drain().await;
        let said = after.join(" ");
        assert_eq!(world.texts(), said.split(' ').collect::<Vec<_>>(), "{what}");
        world.is_one_answer(&said, &what).await;
        // And what stands then is known in its order.
        world.too_long = None;
        world.hear(edit("which?", LATE), verdict(EVER_MS)).await;
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
        let mut world = World::posted_and_edited(&["a", "b", "c"]).await;
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
    world.hear(edit("which?", LATE), verdict(EVER_MS)).await;
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
            let turn = world.hear(edit(text, marker), verdict(EVER_MS)).await;
            assert_eq!(turn.new_runs.len(), 1, "{text}");
            world.reply(parts).await;
        }
        world.drain().await;
        assert_eq!(world.texts(), ["last"]);
        world.is_one_answer("last", "again").await;
        assert_eq!(world.turns().await[1].revision, 4);
    }
}

/// What a run reads: texts and what they are to it.
async fn read(world: &World, run: &ClaimedRun) -> Vec<(String, HistoryRole)> {
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
    let read = world.scene.store.history(query).await.unwrap().turns;
    let read = read.into_iter().map(|it| (it.turn.content, it.role));
    read.collect()
}

#[tokio::test]
async fn a_revision_is_answered_once_and_only_where_that_is_wanted() {
    let world = World::answered(&["a"]).await;
    let asks = async |said, verdict| world.hear(said, verdict).await.new_runs.len();
    let wide = || verdict(WITHIN_MS * 9);
    let limited = Verdict {
        runs: RunVerdict::LimitMet,
        ..wide()
    };
    let table = [
        ("off", edit("2", "1700000601"), verdict(0), 0),
        ("same text", edit("2", "1700000602"), verdict(WITHIN_MS), 0),
        ("late", edit("3", LATE), verdict(WITHIN_MS), 0),
        ("a limit", edit("4", "1700000701"), limited, 0),
    ];
    for (what, edit, verdict, expected) in table {
        assert_eq!(asks(edit, verdict).await, expected, "{what}");
    }
    let by_bot = edit("a bot", "1700000701.5");
    let mut by_bot = by_bot.message(world.scene.account, Box::new(move |_| wide()));
    by_bot.sender.kind = SenderKind::Bot;
    let captured = world.scene.store.capture_message(by_bot).await.unwrap();
    assert_eq!(turn_of(captured).new_runs, [], "a bot");
    for (what, edit, expected) in [
        ("the first", edit("5", "1700000702"), 1),
        ("redelivered", edit("5", "1700000702"), 0),
        ("it waits", edit("6", "1700000703"), 0),
    ] {
        assert_eq!(asks(edit, wide()).await, expected, "{what}");
    }
    assert_eq!(world.scene.runs().await.len(), 2);
    // One that waits answers the newest revision.
    let run = world.claim().await;
    assert_eq!(
        read(&world, &run).await,
        [("6".to_owned(), HistoryRole::Trigger)]
    );
}

#[tokio::test]
async fn an_edit_while_it_is_answered_ends_that_and_is_answered_instead() {
    for is_first in [true, false] {
        let mut world = World::answered(&["a"]).await;
        if is_first {
            world.hear(said("2", "when?"), verdict(WITHIN_MS)).await;
        } else {
            world.drain().await;
            world.edit().await;
        }
        let at_work = world.claim().await;
        let id = if is_first { "2" } else { "1" };
        // Off, it changes nothing.
        let off = edit_of(id, "how?", "1700000699");
        let left = world.hear(off, verdict(0)).await;
        assert_eq!((left.new_runs, left.cancelled_runs), (vec![], vec![]));
        let again = edit_of(id, "why?", LATE);
        let turn = world.hear(again, verdict(WITHIN_MS)).await;
        assert_eq!(turn.cancelled_runs, [at_work.run.id], "{is_first}");
        assert_eq!(turn.new_runs.len(), 1, "{is_first}");
        // What was being written is not committed any more.
        let late = world.commit(&at_work, &["old"]).await;
        assert_eq!(late, CommittedReply::Cancelled, "{is_first}");
        assert_eq!(world.claim().await.run.id, turn.new_runs[0]);
        assert_eq!(world.state(at_work.run.id).await, RunState::Cancelled);
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
        let mut world = World::posted_and_edited(&["a"]).await;
        let run = world.claim().await;
        let id = run.run.id;
        if stops {
            let store = &world.scene.store;
            let stopped = store.cancel_run(id, StopCause::Stopped.into(), world.now_ms);
            stopped.await.unwrap();
            let late = world.commit(&run, &["x"]).await;
            assert_eq!(late, CommittedReply::Cancelled);
        } else {
            let reason = "the model is gone".to_owned();
            world.notice(&run, RunEnding::Dead { reason }).await;
        }
        // That end is told without the answer that stays.
        let (snapshot, _) = world.scene.store.run_snapshot(id).await.unwrap();
        let notice = if stops { "" } else { "Sorry." };
        assert_eq!(snapshot.text, notice);
        let turn = world.hear(edit("why?", LATE), verdict(EVER_MS)).await;
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
    world.scene.hear(said("7", "meanwhile")).await;
    world.edit().await;
    let run = world.claim().await;
    let expected = [
        ("where?", HistoryRole::Trigger),
        ("meanwhile", HistoryRole::Kept),
    ];
    let expected = expected.map(|(text, role)| (text.to_owned(), role));
    assert_eq!(read(&world, &run).await, expected);
    let route = world.scene.store.reply_route(run.run.id).await.unwrap();
    assert!(route.replaces_answer);
}

#[tokio::test]
async fn a_new_question_does_not_join_the_run_that_answers_again() {
    let world = World::answered(&["a"]).await;
    let again = world.edit().await;
    for (id, overlap) in [("8", Overlap::Auto), ("9", Overlap::Interrupt)] {
        let asked = Verdict {
            overlaps: [(agent("helper"), overlap)].into(),
            ..verdict(WITHIN_MS)
        };
        let turn = world.hear(said(id, "and who?"), asked).await;
        assert_eq!(turn.cancelled_runs, [], "{overlap:?}");
    }
    world.reply(&["x"]).await;
    assert_eq!(world.turns().await[1].content, "x");
    let answered = world.scene.store.run(again).await.unwrap();
    assert_eq!(answered.state, RunState::Done);
    assert_eq!(answered.triggers.len(), 1);
}

#[tokio::test]
async fn a_deleted_question_is_not_answered_again_and_a_notice_leaves_the_answer() {
    let world = World::answered(&["a"]).await;
    let run = world.edit().await;
    world.delete("1").await;
    assert_eq!(world.state(run).await, RunState::Cancelled);

    let world = World::answered(&["a"]).await;
    world.edit().await;
    let run = world.claim().await;
    world.notice(&run, RunEnding::Done).await;
    let turns = world.turns().await;
    let texts: Vec<&str> = turns.iter().map(|turn| turn.content.as_str()).collect();
    assert_eq!(texts, ["where?", "a", "Sorry."]);
}

/// A search by a run finds a message.
async fn find(world: &World, run: &ClaimedRun, found: TurnId) {
    let (id, store) = (run.run.id, &world.scene.store);
    let usage = Usage::default();
    let step = store.record_step(
        id,
        run.token,
        RecordedStep {
            number: 1,
            message: "asked".to_owned(),
            usage,
            verdicts: Vec::new(),
        },
        world.now_ms,
    );
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
        let heard = world.hear(said("2", "zebra"), admitted(&[])).await;
        world.hear(said("3", "and when?"), verdict(WITHIN_MS)).await;
        let earlier = world.claim().await;
        if is_earlier {
            find(&world, &earlier, heard.turn).await;
        }
        world.commit(&earlier, &["a"]).await;
        world.drain().await;
        let again = world.hear(edit_of_3(), verdict(WITHIN_MS)).await;
        assert_eq!(again.new_runs.len(), 1);
        let run = world.claim().await;
        if !is_earlier {
            find(&world, &run, heard.turn).await;
        }
        world.delete("2").await;
        assert_eq!(world.has_turn("a").await, !is_earlier);
        if !is_earlier {
            let read = world.commit(&run, &["zebra"]).await;
            assert_eq!(read, CommittedReply::SourceGone);
            world.commit(&run, &["x"]).await;
            world.drain().await;
            assert_eq!(world.texts(), ["x"]);
        }
    }
}

fn edit_of_3() -> Said {
    Said {
        edit_marker: Some(SOON),
        ..said("3", "and where?")
    }
}

/// A world in which the run of the question "and when?" has read a message for its prompt, and answered.
async fn answered_from(text: &'static str) -> World {
    let mut world = World::answered(&[]).await;
    world.drain().await;
    let heard = world.hear(said("2", text), admitted(&[])).await;
    world.hear(said("3", "and when?"), verdict(WITHIN_MS)).await;
    let run = world.claim().await;
    let prompt = SentPrompt {
        recipe: "{}".to_owned(),
        instructions: String::new(),
        tools: "[]".to_owned(),
        summary: None,
        turns: Vec::new(),
        thread_answers: Vec::new(),
    };
    let store = &world.scene.store;
    let recorded = store.record_prompt(run.run.id, run.token, prompt, vec![heard.turn]);
    recorded.await.unwrap();
    world.commit(&run, &["zebra"]).await;
    world.drain().await;
    world
}

#[tokio::test]
async fn a_question_whose_answer_went_with_what_it_was_made_from_is_answered_again_when_edited() {
    let mut world = answered_from("the file").await;
    world.delete("2").await;
    let again = world.hear(edit_of_3(), verdict(WITHIN_MS)).await;
    assert_eq!(again.new_runs.len(), 1);
    // A further question is no part of what it answers, and waits with it.
    let further = world.hear(said("4", "and who?"), verdict(0)).await;
    assert_eq!(further.new_runs.len(), 1);
    world.reply(&["x"]).await;
    world.drain().await;
    assert!(world.texts().contains(&"x"), "{:?}", world.texts());
}

#[tokio::test]
async fn an_answer_goes_with_what_it_was_made_from_also_once_another_run_has_its_question() {
    for is_stopped in [false, true] {
        let world = answered_from("the file").await;
        world.hear(edit_of_3(), verdict(WITHIN_MS)).await;
        let run = world.claim().await;
        if is_stopped {
            let store = &world.scene.store;
            let stopped = store.cancel_run(run.run.id, StopCause::Stopped.into(), world.now_ms);
            stopped.await.unwrap();
            world.commit(&run, &["x"]).await;
        }
        assert!(world.has_turn("zebra").await);
        world.delete("2").await;
        let left = world.scene.contents().await.concat();
        assert!(!left.contains("zebra"), "{is_stopped}: {left}");
    }
    // The answer that took its place was made without it, and stays.
    let mut world = answered_from("the file").await;
    world.hear_unkept(edit_of_3(), verdict(WITHIN_MS)).await;
    world.reply(&["lion"]).await;
    world.drain().await;
    world.delete("2").await;
    assert!(world.has_turn("lion").await);
}
