use std::collections::BTreeMap;

use super::*;
use crate::ExpiryBounds;
use vocative_core::history::{History, HistoryQuery, Keep, Role};
use vocative_core::ids::{ConversationId, SummaryId};
use vocative_core::place::ChatName;
use vocative_core::summary::{
    Coverage, FoldBase, FoldOver, FoldQuery, FoldRule, FoldSource, NewSummary, SummaryCounts,
    SummaryOutcome, SummaryState,
};

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
async fn room() -> (Fixture, ConversationId) {
    let fixture = Fixture::new().await;
    let mut conversation = None;
    for id in IDS {
        let turn = turn_of(fixture.hear_for(&["helper"], said(id, "asked")).await);
        conversation = Some(turn.conversation);
    }
    settle(&fixture).await;
    (fixture, conversation.unwrap())
}

async fn settle(fixture: &Fixture) {
    fixture.execute("UPDATE runs SET state = 'done'").await;
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

async fn source(fixture: &Fixture, query: FoldQuery) -> Option<FoldSource> {
    fixture.store.fold_source(query).await.unwrap()
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

async fn add(fixture: &Fixture, summary: NewSummary) -> SummaryOutcome {
    fixture.store.add_summary(summary).await.unwrap()
}

/// Folds the oldest so many turns that are in no summary.
async fn fold(fixture: &Fixture, id: ConversationId, turns: usize, text: &str) -> SummaryId {
    let source = source(fixture, fold_query(id)).await.unwrap();
    match add(fixture, summary_of(&source, turns, text)).await {
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

async fn history(fixture: &Fixture, conversation: ConversationId) -> History {
    let query = history_query(conversation);
    fixture.store.history(query).await.unwrap()
}

/// What a prompt would be made of: the summary's text and the seqs of turns.
async fn shown(fixture: &Fixture, conversation: ConversationId) -> (Option<String>, Vec<i64>) {
    let history = history(fixture, conversation).await;
    let seqs = history.turns.iter().map(|read| read.turn.seq().0);
    (history.summary.map(|found| found.text), seqs.collect())
}

async fn states(fixture: &Fixture, conversation: ConversationId) -> Vec<(SummaryState, String)> {
    let all = fixture.store.summaries(conversation, None).await.unwrap();
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

async fn delete(fixture: &Fixture, id: &str) {
    let store = &fixture.store;
    let deleted = store.capture_delete(fixture.account, "C1", id, NOW_MS);
    deleted.await.unwrap();
}

#[tokio::test]
async fn a_summary_stands_for_its_turns_and_the_next_is_made_on_top_of_it() {
    let (fixture, room) = room().await;
    let first = fold(&fixture, room, 5, "one to five").await;
    let expected = (Some("one to five".to_owned()), (6..=12).collect());
    assert_eq!(shown(&fixture, room).await, expected);

    let source = source(&fixture, fold_query(room)).await.unwrap();
    assert_eq!(source.history.summary.as_ref().unwrap().text, "one to five");
    assert_eq!(source.history.turns[0].turn.seq().0, 6);
    // The two newest turns of people stay.
    assert_eq!(source.fold_before.seq.0, 11);
    let second = fold(&fixture, room, 5, "one to ten").await;
    let expected = (Some("one to ten".to_owned()), vec![11, 12]);
    assert_eq!(shown(&fixture, room).await, expected);
    let all = fixture.store.summaries(room, None).await.unwrap();
    let chain: Vec<_> = all
        .iter()
        .map(|found| (found.id, found.previous, found.turns))
        .collect();
    assert_eq!(chain, [(first, None, 5), (second, Some(first), 5)]);
    let counts = fixture.store.status(NOW_MS).await.unwrap().summaries;
    let expected = SummaryCounts {
        current: 2,
        ..SummaryCounts::default()
    };
    assert_eq!(counts, expected);
}

#[tokio::test]
async fn nothing_is_folded_below_the_threshold_while_people_wait_or_when_all_is_recent() {
    let (fixture, room) = room().await;
    let mut query = fold_query(room);
    query.threshold = 12;
    assert_eq!(source(&fixture, query.clone()).await, None);
    query.threshold = 11;
    assert!(source(&fixture, query.clone()).await.is_some());
    query.preserve_recent = 13;
    assert_eq!(source(&fixture, query.clone()).await, None);
    // However much is to be preserved, it is not more than a prompt can hold.
    query.hold_turns = 6;
    let found = source(&fixture, query.clone()).await.unwrap();
    assert_eq!(found.fold_before.seq.0, 10);
    query.hold_turns = 100;
    query.preserve_recent = 2;
    fixture
        .execute("UPDATE runs SET state = 'queued' WHERE id = 4")
        .await;
    let found = source(&fixture, query).await.unwrap();
    assert_eq!(found.fold_before.seq.0, 4);
}

#[tokio::test]
async fn only_conversations_over_the_threshold_are_due() {
    let (fixture, room) = room().await;
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
    let due = fixture.store.conversations_to_fold(rules(11), 10).await;
    assert_eq!(due.unwrap(), [(room, agent("helper"))]);
    let due = fixture.store.conversations_to_fold(rules(12), 10).await;
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
            let due = fixture.store.conversations_to_fold(vec![own], 10).await;
            assert_eq!(due.unwrap().len(), expected, "{named} {there:?}");
        }
    }
    fold(&fixture, room, 5, "five").await;
    let due = fixture.store.conversations_to_fold(rules(7), 10).await;
    assert_eq!(due.unwrap(), []);
}

#[tokio::test]
async fn what_changed_since_it_was_read_is_not_stored() {
    for change in ["edit", "delete", "late", "another"] {
        let (fixture, room) = room().await;
        let read = source(&fixture, fold_query(room)).await.unwrap();
        match change {
            "edit" => drop(fixture.hear(edit("3")).await),
            "delete" => delete(&fixture, "3").await,
            "late" => {
                let late = Said {
                    at_ms: NOW_MS + 3_500,
                    ..said("99", "late")
                };
                fixture.hear_for(&["helper"], late).await;
            }
            _ => drop(fold(&fixture, room, 4, "another").await),
        }
        let before = states(&fixture, room).await;
        let outcome = add(&fixture, summary_of(&read, 5, "outdated")).await;
        assert_eq!(outcome, SummaryOutcome::Outdated, "{change}");
        assert_eq!(states(&fixture, room).await, before, "{change}");
    }
}

/// Promise 15 for summaries: no prompt after the delete's commit holds what was deleted.
#[tokio::test]
async fn a_delete_makes_every_summary_after_it_void_at_once() {
    let (fixture, room) = room().await;
    fold(&fixture, room, 3, "before").await;
    fold(&fixture, room, 3, "with zebra").await;
    fold(&fixture, room, 3, "with zebra still").await;
    delete(&fixture, "5").await;
    let (text, seqs) = shown(&fixture, room).await;
    assert_eq!(text.as_deref(), Some("before"));
    assert_eq!(seqs, [4, 6, 7, 8, 9, 10, 11, 12]);
    assert!(fixture.is_nowhere("zebra").await);
    let void = (SummaryState::Void, String::new());
    let kept = (SummaryState::Current, "before".to_owned());
    assert_eq!(
        states(&fixture, room).await,
        [kept.clone(), void.clone(), void]
    );

    fold(&fixture, room, 6, "again").await;
    let again = (SummaryState::Current, "again".to_owned());
    assert_eq!(states(&fixture, room).await, [kept, again]);
}

#[tokio::test]
async fn an_edit_or_a_late_turn_leaves_the_last_checkpoint_before_it() {
    for change in ["edit", "late"] {
        let (fixture, room) = room().await;
        fold(&fixture, room, 4, "first").await;
        fold(&fixture, room, 4, "second").await;
        if change == "edit" {
            fixture.hear_for(&["helper"], edit("6")).await;
        } else {
            let late = Said {
                at_ms: NOW_MS + 6_500,
                ..said("99", "late")
            };
            fixture.hear_for(&["helper"], late).await;
        }
        settle(&fixture).await;
        let (text, seqs) = shown(&fixture, room).await;
        assert_eq!(text.as_deref(), Some("first"), "{change}");
        assert!(seqs.contains(&5) && seqs.contains(&8), "{change}: {seqs:?}");
        let found = source(&fixture, fold_query(room)).await.unwrap();
        assert_eq!(found.history.summary.unwrap().text, "first", "{change}");
        assert_eq!(found.history.turns[0].turn.seq().0, 5, "{change}");
    }
}

#[tokio::test]
async fn what_does_not_concern_the_agent_leaves_its_summaries_as_they_are() {
    let (fixture, room) = room().await;
    let aside = Said {
        at_ms: NOW_MS + 2_500,
        ..said("50", "aside")
    };
    fixture.hear(aside).await;
    fold(&fixture, room, 5, "first").await;
    let late = Said {
        at_ms: NOW_MS + 3_500,
        ..said("51", "late")
    };
    fixture.hear(late).await;
    fixture.hear(edit("50")).await;
    assert_eq!(states(&fixture, room).await[0].0, SummaryState::Current);
    // An edit that turns to the agent does concern it.
    let turned = Said {
        edit_marker: Some("20"),
        at_ms: NOW_MS + 2_500,
        ..said("50", "helper, listen")
    };
    fixture.hear_for(&["helper"], turned).await;
    assert_eq!(states(&fixture, room).await[0].0, SummaryState::Stale);
}

/// A line that the summaries don't hold, one that a folded turn quotes, and one that addressed the agent
/// when it was folded and does not any more.
#[tokio::test]
async fn a_delete_touches_what_holds_the_line_and_nothing_else() {
    let (fixture, room) = room().await;
    for (id, at_ms) in [("50", 1_500), ("51", 2_500)] {
        let aside = Said {
            at_ms: NOW_MS + at_ms,
            ..said(id, "aside")
        };
        fixture.hear(aside).await;
    }
    fixture
        .execute("UPDATE turns SET reply_to_seq = 14, quote = 'aside' WHERE seq = 8")
        .await;
    fold(&fixture, room, 4, "one to four").await;
    fold(&fixture, room, 4, "to eight, with a quote").await;
    delete(&fixture, "50").await;
    let both = [
        (SummaryState::Current, "one to four".to_owned()),
        (SummaryState::Current, "to eight, with a quote".to_owned()),
    ];
    assert_eq!(states(&fixture, room).await, both);
    // What is quoted goes with its quote, whichever way that is taken out.
    delete(&fixture, "51").await;
    let void = (SummaryState::Void, String::new());
    assert_eq!(
        states(&fixture, room).await,
        [both[0].clone(), void.clone()]
    );
    // By an edit the line turns to somebody else: the summary is set aside, and its text still there.
    fixture.hear(edit("3")).await;
    assert_eq!(states(&fixture, room).await[0].0, SummaryState::Stale);
    delete(&fixture, "3").await;
    assert_eq!(states(&fixture, room).await, [void.clone(), void]);
}

#[tokio::test]
async fn summaries_made_before_their_turns_were_noted_are_void_by_their_ends() {
    let (fixture, room) = room().await;
    fold(&fixture, room, 3, "before").await;
    fold(&fixture, room, 3, "with zebra").await;
    fixture.execute("DELETE FROM summary_turns").await;
    fixture.execute("UPDATE summaries SET is_traced = 0").await;
    fold(&fixture, room, 3, "on top of zebra").await;
    delete(&fixture, "5").await;
    let (text, _) = shown(&fixture, room).await;
    assert_eq!(text.as_deref(), Some("before"));
    assert!(fixture.is_nowhere("zebra").await);
}

/// A room whose first six turns went by their age, behind two summaries; a third one has turns that are
/// all there.
async fn room_with_a_past() -> (Fixture, ConversationId) {
    let (fixture, room) = room().await;
    fold(&fixture, room, 3, "the oldest").await;
    fold(&fixture, room, 4, "the past").await;
    fold(&fixture, room, 2, "and since").await;
    let bounds = ExpiryBounds {
        text_before_ms: Some(NOW_MS + 6_500),
        ..ExpiryBounds::default()
    };
    let expired = fixture
        .store
        .expire(fixture.account, bounds, u64::MAX, NOW_MS)
        .await
        .unwrap();
    assert_eq!(expired.text, 6);
    (fixture, room)
}

async fn current(fixture: &Fixture, room: ConversationId) -> Vec<String> {
    let all = states(fixture, room).await.into_iter();
    let current = all.filter(|(state, _)| *state == SummaryState::Current);
    current.map(|(_, text)| text).collect()
}

#[tokio::test]
async fn what_only_a_summary_remembers_is_set_aside_by_no_rebuild_and_no_late_turn() {
    let (fixture, room) = room_with_a_past().await;
    let everything = ["the oldest", "the past", "and since"];
    // It could not be made again with the late turn in it.
    let late = |id, at_ms| Said {
        at_ms: NOW_MS + at_ms,
        ..said(id, "late")
    };
    fixture.hear_for(&["helper"], late("99", 3_500)).await;
    assert_eq!(current(&fixture, room).await, everything);
    fixture.hear_for(&["helper"], late("98", 8_500)).await;
    assert_eq!(current(&fixture, room).await, everything[..2]);
    settle(&fixture).await;
    fold(&fixture, room, 3, "and since, with the late one").await;

    let rebuild = async |forget| {
        fixture
            .store
            .set_summaries_aside(room, None, forget)
            .await
            .unwrap()
    };
    let done = rebuild(false).await;
    assert_eq!((done.set_aside, done.stay), (1, 2));
    let (text, seqs) = shown(&fixture, room).await;
    assert_eq!(text.as_deref(), Some("the past"));
    assert_eq!(seqs, [8, 14, 9, 10, 11, 12]);
    let done = rebuild(true).await;
    assert_eq!((done.set_aside, done.stay), (2, 0));
    assert_eq!(current(&fixture, room).await, [] as [&str; 0]);
}

/// What goes by its age stays in the memory; what is deleted does not.
#[tokio::test]
async fn a_message_deleted_after_its_age_leaves_the_summaries_that_hold_it() {
    let (fixture, room) = room_with_a_past().await;
    delete(&fixture, "5").await;
    assert_eq!(current(&fixture, room).await, ["the oldest"]);
    // A second delete is no news.
    delete(&fixture, "5").await;
    assert_eq!(current(&fixture, room).await, ["the oldest"]);
}

/// An edit makes the text wrong. What is before it stays.
#[tokio::test]
async fn an_edit_sets_aside_also_what_cannot_be_made_again() {
    let (fixture, room) = room_with_a_past().await;
    fixture.hear_for(&["helper"], edit("7")).await;
    assert_eq!(current(&fixture, room).await, ["the oldest"]);
}

#[tokio::test]
async fn any_late_turn_concerns_a_summary_of_the_whole_room() {
    let (fixture, room) = room().await;
    let mut query = fold_query(room);
    query.coverage.keep = Keep::All;
    let found = source(&fixture, query).await.unwrap();
    let mut summary = summary_of(&found, 5, "all");
    summary.base.coverage.keep = Keep::All;
    add(&fixture, summary).await;
    // The other coverage does not use it.
    assert_eq!(shown(&fixture, room).await.0, None);
    let late = Said {
        at_ms: NOW_MS + 3_500,
        ..said("51", "late")
    };
    fixture.hear(late).await;
    assert_eq!(states(&fixture, room).await[0].0, SummaryState::Stale);
}

#[tokio::test]
async fn what_lies_before_a_summarys_end_is_not_overheard() {
    let (fixture, room) = room().await;
    for (id, at_ms) in [("50", 2_500), ("51", 11_500)] {
        let aside = Said {
            at_ms: NOW_MS + at_ms,
            ..said(id, "aside")
        };
        fixture.hear(aside).await;
    }
    let overheard = |read: History| {
        let turns = read.turns.into_iter();
        let overheard = turns.filter(|read| read.role == Role::Ambient);
        overheard.map(|read| read.turn.seq().0).collect::<Vec<_>>()
    };
    let mut query = history_query(room);
    query.ambient_turns = 9;
    let before = fixture.store.history(query.clone()).await.unwrap();
    assert_eq!(overheard(before), [13, 14]);
    fold(&fixture, room, 5, "one to five").await;
    let after = fixture.store.history(query).await.unwrap();
    assert_eq!(overheard(after), [14]);
}

/// Promise 11: without summaries the turns are there as ever.
#[tokio::test]
async fn with_all_summaries_deleted_or_set_aside_the_turns_are_read_again() {
    let (fixture, room) = room().await;
    let before = shown(&fixture, room).await;
    fold(&fixture, room, 5, "five").await;
    assert_ne!(shown(&fixture, room).await, before);
    let aside = fixture.store.set_summaries_aside(room, None, false).await;
    assert_eq!(
        (aside.as_ref().unwrap().set_aside, aside.unwrap().stay),
        (1, 0)
    );
    assert_eq!(shown(&fixture, room).await, before);
    fixture.execute("DELETE FROM summaries").await;
    assert_eq!(shown(&fixture, room).await, before);
    assert_eq!(before.1, (1..=12).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_retry_does_not_see_a_summary_made_after_its_first_attempt() {
    let (fixture, room) = room().await;
    fold(&fixture, room, 5, "five").await;
    let (early, late) = (NOW_MS - 1, NOW_MS + 1);
    for (claimed_at_ms, expected) in [(early, None), (late, Some("five".to_owned()))] {
        fixture
            .store
            .write(move |connection| {
                connection.execute(
                    "UPDATE runs SET first_claimed_at_ms = ?1, as_of_seq = 12 WHERE id = 12",
                    [claimed_at_ms],
                )?;
                Ok(())
            })
            .await
            .unwrap();
        let run = fixture.column("SELECT uuid FROM runs WHERE id = 12").await[0];
        let mut query = HistoryQuery {
            run: Some(run),
            as_of_seq: Some(vocative_core::ids::Seq(12)),
            conversation: room,
            agent: agent("helper"),
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
        };
        let history = fixture.store.history(query.clone()).await.unwrap();
        assert_eq!(history.summary.map(|found| found.text), expected);
        // As of an earlier point it would hold turns of later.
        query.as_of_seq = Some(vocative_core::ids::Seq(4));
        let history = fixture.store.history(query).await.unwrap();
        assert_eq!(history.summary, None);
    }
}

#[tokio::test]
async fn a_long_folded_past_costs_no_rows() {
    let (fixture, room) = room().await;
    fold(&fixture, room, 10, "ten").await;
    let history = history(&fixture, room).await;
    // The conversation's key, itself, the summary, two turns.
    assert_eq!(history.cost.rows, 5);
}
