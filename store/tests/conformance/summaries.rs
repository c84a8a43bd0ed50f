//! Summaries: what they stand for, and what makes them stale or void.

use std::collections::BTreeMap;

use vocative_core::coverage::{Coverage, Keep};
use vocative_core::history::{History, HistoryQuery, HistoryRole};
use vocative_core::ids::{ConversationId, RunId, SummaryId};
use vocative_core::place::ChatName;
use vocative_core::run::RunState;
use vocative_core::summary::{
    FoldBase, FoldOver, FoldQuery, FoldRule, FoldSource, NewSummary, SummaryCounts, SummaryOutcome,
    SummaryState,
};
use vocative_core::turn::Turn;
use vocative_store::ExpiryBounds;

use crate::said::{NOW_MS, Said, agent, said, turn_of};
use crate::scene::{Scene, by_hand};

const IDS: [&str; 12] = [
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12",
];

fn involved() -> Coverage {
    Coverage {
        keep: Keep::Involved,
        scope: None,
    }
}

/// A conversation of turns 1 to 12 that all address the helper, and no run of which waits.
async fn room() -> (Scene, ConversationId) {
    let (scene, room) = asked().await;
    settle(&scene).await;
    (scene, room)
}

/// The same while all runs wait.
async fn asked() -> (Scene, ConversationId) {
    let scene = Scene::open().await;
    let mut conversation = None;
    for id in IDS {
        let turn = turn_of(scene.hear_for(&["helper"], said(id, "asked")).await);
        conversation = Some(turn.conversation);
    }
    (scene, conversation.unwrap())
}

async fn stop(scene: &Scene, run: RunId) {
    let stopped = scene.store.cancel_run(run, by_hand("settled"), NOW_MS);
    assert!(stopped.await.unwrap());
}

/// No run waits any more.
async fn settle(scene: &Scene) {
    for run in scene.store.all_runs_before(None, 99).await.unwrap() {
        if matches!(run.state, RunState::Queued { .. }) {
            stop(scene, run.id).await;
        }
    }
}

fn fold_query(conversation: ConversationId) -> FoldQuery {
    FoldQuery {
        conversation,
        agent: agent("helper"),
        coverage: involved(),
        threshold: 4,
        preserve_recent: 2,
        hold_turns: 100,
        max_turns: 100,
    }
}

async fn source(scene: &Scene, query: FoldQuery) -> Option<FoldSource> {
    scene.store.fold_source(query).await.unwrap()
}

/// A summary of the oldest so many turns of a source.
fn summary_of(source: &FoldSource, turns: usize, text: &str) -> NewSummary {
    let folded: Vec<&Turn> = source.history.turns[..turns]
        .iter()
        .map(|read| &read.turn)
        .collect();
    NewSummary {
        base: FoldBase {
            conversation: source.history.conversation.id,
            agent: agent("helper"),
            coverage: involved(),
            previous: source.history.summary.as_ref().map(|found| found.id),
            sources: folded.iter().map(|turn| (turn.id, turn.revision)).collect(),
            through: folded.last().unwrap().position,
        },
        text: text.to_owned(),
        tokens: 3,
        counter: "c".to_owned(),
        requests: 1,
        model: "m".to_owned(),
        now_ms: NOW_MS,
    }
}

async fn add(scene: &Scene, summary: NewSummary) -> SummaryOutcome {
    scene.store.add_summary(summary).await.unwrap()
}

/// Folds the oldest so many turns that are in no summary.
async fn fold(scene: &Scene, id: ConversationId, turns: usize, text: &str) -> SummaryId {
    let source = source(scene, fold_query(id)).await.unwrap();
    match add(scene, summary_of(&source, turns, text)).await {
        SummaryOutcome::Written(id) => id,
        SummaryOutcome::Outdated => panic!("nothing changed meanwhile"),
    }
}

fn history_query(conversation: ConversationId) -> HistoryQuery {
    HistoryQuery {
        conversation,
        agent: agent("helper"),
        as_of_seq: None,
        run: None,
        triggers: Vec::new(),
        keep: Keep::Involved,
        max_turns: 100,
        since_ms: None,
        scope: None,
        parent_turns: 0,
        ambient_turns: 0,
        summaries: Some(involved()),
        thread_answers: true,
        made_by_ms: None,
    }
}

async fn history(scene: &Scene, conversation: ConversationId) -> History {
    let query = history_query(conversation);
    scene.store.history(query).await.unwrap()
}

/// What a prompt would be made of: the summary's text and the seqs of turns.
async fn shown(scene: &Scene, conversation: ConversationId) -> (Option<String>, Vec<i64>) {
    let history = history(scene, conversation).await;
    let seqs = history.turns.iter().map(|read| read.turn.seq().0);
    (history.summary.map(|found| found.text), seqs.collect())
}

async fn states(scene: &Scene, conversation: ConversationId) -> Vec<(SummaryState, String)> {
    let all = scene.store.summaries(conversation, None).await.unwrap();
    all.into_iter()
        .map(|found| (found.state, found.text))
        .collect()
}

fn edit(id: &'static str) -> Said {
    Said {
        edit_marker: Some("10"),
        ..said(id, "changed")
    }
}

async fn delete(scene: &Scene, id: &str) {
    let store = &scene.store;
    let deleted = store.capture_delete(scene.account, "C1", id, NOW_MS);
    deleted.await.unwrap();
}

#[tokio::test]
async fn a_summary_stands_for_its_turns_and_the_next_is_made_on_top_of_it() {
    let (scene, room) = room().await;
    let first = fold(&scene, room, 5, "one to five").await;
    let expected = (Some("one to five".to_owned()), (6..=12).collect());
    assert_eq!(shown(&scene, room).await, expected);

    let source = source(&scene, fold_query(room)).await.unwrap();
    assert_eq!(source.history.summary.as_ref().unwrap().text, "one to five");
    assert_eq!(source.history.turns[0].turn.seq().0, 6);
    // The two newest turns of people stay.
    assert_eq!(source.fold_before.seq.0, 11);
    let second = fold(&scene, room, 5, "one to ten").await;
    let expected = (Some("one to ten".to_owned()), vec![11, 12]);
    assert_eq!(shown(&scene, room).await, expected);
    let all = scene.store.summaries(room, None).await.unwrap();
    let chain: Vec<_> = all
        .iter()
        .map(|found| (found.id, found.previous, found.turns))
        .collect();
    assert_eq!(chain, [(first, None, 5), (second, Some(first), 5)]);
    let counts = scene.store.status(NOW_MS).await.unwrap().summaries;
    let expected = SummaryCounts {
        current: 2,
        ..SummaryCounts::default()
    };
    assert_eq!(counts, expected);
}

#[tokio::test]
async fn nothing_is_folded_below_the_threshold_while_people_wait_or_when_all_is_recent() {
    let (scene, room) = room().await;
    let mut query = fold_query(room);
    query.threshold = 12;
    assert_eq!(source(&scene, query.clone()).await, None);
    query.threshold = 11;
    assert!(source(&scene, query.clone()).await.is_some());
    query.preserve_recent = 13;
    assert_eq!(source(&scene, query.clone()).await, None);
    // However much is to be preserved, it is not more than a prompt can hold.
    query.hold_turns = 6;
    let found = source(&scene, query.clone()).await.unwrap();
    assert_eq!(found.fold_before.seq.0, 10);
    query.hold_turns = 100;
    query.preserve_recent = 2;
    let (scene, room) = asked().await;
    for run in scene.store.all_runs_before(None, 99).await.unwrap() {
        let trigger = scene.store.turn(run.triggers[0]).await.unwrap();
        if trigger.seq().0 != 4 {
            stop(&scene, run.id).await;
        }
    }
    query.conversation = room;
    let found = source(&scene, query).await.unwrap();
    assert_eq!(found.fold_before.seq.0, 4);
}

#[tokio::test]
async fn only_conversations_over_the_threshold_are_due() {
    let (scene, room) = room().await;
    let over = |threshold| FoldOver {
        coverage: involved(),
        threshold,
    };
    let rule = |threshold| FoldRule {
        agent: agent("helper"),
        elsewhere: Some(over(threshold)),
        in_chats: BTreeMap::new(),
    };
    let rules = |threshold| vec![rule(threshold)];
    let due = scene.store.conversations_to_fold(rules(11), 10).await;
    assert_eq!(due.unwrap(), [(room, agent("helper"))]);
    let due = scene.store.conversations_to_fold(rules(12), 10).await;
    assert_eq!(due.unwrap(), []);
    // What is set for the chat goes before what holds elsewhere.
    for (there, expected) in [(Some(over(11)), 1), (Some(over(12)), 0), (None, 0)] {
        let chat = ChatName {
            channel: "acme".to_owned(),
            chat: "C1".to_owned(),
        };
        for (named, expected) in [("C1", expected), ("C2", 1)] {
            let chat = ChatName {
                chat: named.to_owned(),
                ..chat.clone()
            };
            let mut own = rule(11);
            own.in_chats.insert(chat, there.clone());
            let due = scene.store.conversations_to_fold(vec![own], 10).await;
            assert_eq!(due.unwrap().len(), expected, "{named} {there:?}");
        }
    }
    fold(&scene, room, 5, "five").await;
    let due = scene.store.conversations_to_fold(rules(7), 10).await;
    assert_eq!(due.unwrap(), []);
}

#[tokio::test]
async fn what_changed_since_it_was_read_is_not_stored() {
    for change in ["edit", "delete", "late", "another"] {
        let (scene, room) = room().await;
        let read = source(&scene, fold_query(room)).await.unwrap();
        match change {
            "edit" => drop(scene.hear(edit("3")).await),
            "delete" => delete(&scene, "3").await,
            "late" => {
                let late = Said {
                    at_ms: NOW_MS + 3_500,
                    ..said("99", "late")
                };
                scene.hear_for(&["helper"], late).await;
            }
            _ => drop(fold(&scene, room, 4, "another").await),
        }
        let before = states(&scene, room).await;
        let outcome = add(&scene, summary_of(&read, 5, "outdated")).await;
        assert_eq!(outcome, SummaryOutcome::Outdated, "{change}");
        assert_eq!(states(&scene, room).await, before, "{change}");
    }
}

#[tokio::test]
async fn an_edit_or_a_late_turn_leaves_the_last_checkpoint_before_it() {
    for change in ["edit", "late"] {
        let (scene, room) = room().await;
        fold(&scene, room, 4, "first").await;
        fold(&scene, room, 4, "second").await;
        if change == "edit" {
            scene.hear_for(&["helper"], edit("6")).await;
        } else {
            let late = Said {
                at_ms: NOW_MS + 6_500,
                ..said("99", "late")
            };
            scene.hear_for(&["helper"], late).await;
        }
        settle(&scene).await;
        let (text, seqs) = shown(&scene, room).await;
        assert_eq!(text.as_deref(), Some("first"), "{change}");
        assert!(seqs.contains(&5) && seqs.contains(&8), "{change}: {seqs:?}");
        let found = source(&scene, fold_query(room)).await.unwrap();
        assert_eq!(found.history.summary.unwrap().text, "first", "{change}");
        assert_eq!(found.history.turns[0].turn.seq().0, 5, "{change}");
    }
}

#[tokio::test]
async fn what_does_not_concern_the_agent_leaves_its_summaries_as_they_are() {
    let (scene, room) = room().await;
    let aside = Said {
        at_ms: NOW_MS + 2_500,
        ..said("50", "aside")
    };
    scene.hear(aside).await;
    fold(&scene, room, 5, "first").await;
    let late = Said {
        at_ms: NOW_MS + 3_500,
        ..said("51", "late")
    };
    scene.hear(late).await;
    scene.hear(edit("50")).await;
    assert_eq!(states(&scene, room).await[0].0, SummaryState::Current);
    // An edit that turns to the agent does concern it.
    let turned = Said {
        edit_marker: Some("20"),
        at_ms: NOW_MS + 2_500,
        ..said("50", "helper, listen")
    };
    scene.hear_for(&["helper"], turned).await;
    assert_eq!(states(&scene, room).await[0].0, SummaryState::Stale);
}

/// A room whose first six turns went by their age, behind two summaries; a third one has turns that are
/// all there.
async fn room_with_a_past() -> (Scene, ConversationId) {
    let (scene, room) = room().await;
    fold(&scene, room, 3, "the oldest").await;
    fold(&scene, room, 4, "the past").await;
    fold(&scene, room, 2, "and since").await;
    let bounds = ExpiryBounds {
        text_before_ms: Some(NOW_MS + 6_500),
        ..ExpiryBounds::default()
    };
    let expired = scene
        .store
        .expire(scene.account, bounds, u64::MAX, NOW_MS)
        .await
        .unwrap();
    assert_eq!(expired.text, 6);
    (scene, room)
}

async fn current(scene: &Scene, room: ConversationId) -> Vec<String> {
    let all = states(scene, room).await.into_iter();
    let current = all.filter(|(state, _)| *state == SummaryState::Current);
    current.map(|(_, text)| text).collect()
}

#[tokio::test]
async fn what_only_a_summary_remembers_is_set_aside_by_no_rebuild_and_no_late_turn() {
    let (scene, room) = room_with_a_past().await;
    let everything = ["the oldest", "the past", "and since"];
    // It could not be made again with the late turn in it.
    let late = |id, at_ms| Said {
        at_ms: NOW_MS + at_ms,
        ..said(id, "late")
    };
    scene.hear_for(&["helper"], late("99", 3_500)).await;
    assert_eq!(current(&scene, room).await, everything);
    scene.hear_for(&["helper"], late("98", 8_500)).await;
    assert_eq!(current(&scene, room).await, everything[..2]);
    settle(&scene).await;
    fold(&scene, room, 3, "and since, with the late one").await;

    let rebuild = async |forget| {
        scene
            .store
            .set_summaries_aside(room, None, forget)
            .await
            .unwrap()
    };
    let done = rebuild(false).await;
    assert_eq!((done.set_aside, done.stay), (1, 2));
    let (text, seqs) = shown(&scene, room).await;
    assert_eq!(text.as_deref(), Some("the past"));
    assert_eq!(seqs, [8, 14, 9, 10, 11, 12]);
    let done = rebuild(true).await;
    assert_eq!((done.set_aside, done.stay), (2, 0));
    assert_eq!(current(&scene, room).await, [] as [&str; 0]);
}

/// What goes by its age stays in the memory; what is deleted does not.
#[tokio::test]
async fn a_message_deleted_after_its_age_leaves_the_summaries_that_hold_it() {
    let (scene, room) = room_with_a_past().await;
    delete(&scene, "5").await;
    assert_eq!(current(&scene, room).await, ["the oldest"]);
    // A second delete is no news.
    delete(&scene, "5").await;
    assert_eq!(current(&scene, room).await, ["the oldest"]);
}

/// An edit makes the text wrong. What is before it stays.
#[tokio::test]
async fn an_edit_sets_aside_also_what_cannot_be_made_again() {
    let (scene, room) = room_with_a_past().await;
    scene.hear_for(&["helper"], edit("7")).await;
    assert_eq!(current(&scene, room).await, ["the oldest"]);
}

#[tokio::test]
async fn any_late_turn_concerns_a_summary_of_the_whole_room() {
    let (scene, room) = room().await;
    let mut query = fold_query(room);
    query.coverage.keep = Keep::All;
    let found = source(&scene, query).await.unwrap();
    let mut summary = summary_of(&found, 5, "all");
    summary.base.coverage.keep = Keep::All;
    add(&scene, summary).await;
    // The other coverage does not use it.
    assert_eq!(shown(&scene, room).await.0, None);
    let late = Said {
        at_ms: NOW_MS + 3_500,
        ..said("51", "late")
    };
    scene.hear(late).await;
    assert_eq!(states(&scene, room).await[0].0, SummaryState::Stale);
}

#[tokio::test]
async fn what_lies_before_a_summarys_end_is_not_overheard() {
    let (scene, room) = room().await;
    for (id, at_ms) in [("50", 2_500), ("51", 11_500)] {
        let aside = Said {
            at_ms: NOW_MS + at_ms,
            ..said(id, "aside")
        };
        scene.hear(aside).await;
    }
    let overheard = |read: History| {
        let turns = read.turns.into_iter();
        let overheard = turns.filter(|read| read.role == HistoryRole::Ambient);
        overheard.map(|read| read.turn.seq().0).collect::<Vec<_>>()
    };
    let mut query = history_query(room);
    query.ambient_turns = 9;
    let before = scene.store.history(query.clone()).await.unwrap();
    assert_eq!(overheard(before), [13, 14]);
    fold(&scene, room, 5, "one to five").await;
    let after = scene.store.history(query).await.unwrap();
    assert_eq!(overheard(after), [14]);
}
