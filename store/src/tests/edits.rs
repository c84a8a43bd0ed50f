use super::*;

fn edit(id: &'static str, text: &'static str, marker: &'static str) -> Said {
    Said {
        edit_marker: Some(marker),
        ..said(id, text)
    }
}

#[tokio::test]
async fn an_edit_replaces_the_text_and_keeps_the_old_one_as_a_revision() {
    let fixture = Fixture::new().await;
    let first = turn_of(fixture.hear(said("1", "zebra")).await);
    let edited = fixture.hear(edit("1", "lion", "10")).await;
    assert_eq!(edited, Captured::Revised(first));
    let turn = fixture.only_turn().await;
    assert_eq!((turn.content.as_str(), turn.revision), ("lion", 2));
    let kept: Vec<String> = fixture
        .column("SELECT revision || ' ' || content FROM revisions")
        .await;
    assert_eq!(kept, ["1 zebra"]);
    assert_eq!(fixture.found("content:zebra").await, [] as [i64; 0]);
    assert_eq!(fixture.found("content:lion").await, [1]);
}

#[tokio::test]
async fn a_waiting_run_answers_the_newest_revision() {
    let fixture = Fixture::new().await;
    fixture.hear_for(&["helper"], said("1", "one")).await;
    let edited = turn_of(fixture.hear_for(&["helper"], edit("1", "two", "10")).await);
    assert_eq!(edited.new_runs, []);
    assert_eq!(
        fixture
            .value::<i64>("SELECT revision FROM run_triggers")
            .await,
        2
    );
}

#[tokio::test]
async fn an_edit_makes_the_summaries_that_stand_for_it_stale() {
    let fixture = Fixture::new().await;
    for id in ["1", "2", "3"] {
        fixture.hear(said(id, "text")).await;
    }
    fixture.execute(SUMMARIES).await;
    fixture.hear(edit("2", "changed", "10")).await;
    let states: Vec<String> = fixture
        .column("SELECT state FROM summaries ORDER BY id")
        .await;
    assert_eq!(states, ["current", "stale", "stale"]);
}

/// One for turn 1, one for turn 2 on top of it, one for turn 3 on top of the second.
pub(super) const SUMMARIES: &str = "
    INSERT INTO summaries (conversation_id, agent, fingerprint, covers, from_sent_at_ms,
        from_ordinal, from_seq, through_sent_at_ms, through_ordinal, through_seq, newest_seq,
        turn_count, previous_id, source_hash, text, tokens, counter, model, state, created_at_ms)
    SELECT conversation_id, 'helper', 'f', 'all', sent_at_ms, ordinal, seq, sent_at_ms, ordinal,
           seq, seq, 1, nullif(seq - 1, 0), x'', 'in short', 2, 'c', 'm', 'current', 0
    FROM turns WHERE seq <= 3 ORDER BY seq;";
