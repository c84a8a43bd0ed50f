use super::*;
use vocative_core::coverage::{Coverage, Keep};
use vocative_core::history::{History, HistoryQuery};
use vocative_core::ids::{ConversationId, SummaryId};
use vocative_core::summary::{
    FoldBase, FoldQuery, FoldSource, NewSummary, SummaryOutcome, SummaryState,
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
