use super::*;
use vocative_core::addressing::{RunVerdict, ThreadFacts};

/// An agent's answer as it is stored, in the conversation of a thread key.
const ANSWER: &str = "
    INSERT INTO participants (account_id, kind, platform_id) VALUES (1, 'agent', 'helper');
    INSERT INTO turns (seq, uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                       participant_id, content, captured_at_ms, is_inbound)
    SELECT 50, x'00112233445566778899aabbccddeeff', id, 1, 1, 'message', 'thread',
           (SELECT max(id) FROM participants), 'answer', 1, 0
    FROM conversations WHERE thread = '1';
    INSERT INTO messages (account_id, chat_id, platform_id, turn_seq) VALUES (1, 1, '90', 50);
    INSERT INTO involvements SELECT conversation_id, 'helper', 1, 1, 50, 'authored'
    FROM turns WHERE seq = 50;";

fn opening(agents: &'static [&'static str]) -> impl FnOnce(&MessageFacts) -> Verdict {
    move |_| Verdict {
        opens_thread: true,
        ..admitted(agents)
    }
}

#[tokio::test]
async fn each_addressed_agent_gets_one_run_in_the_turns_conversation() {
    let fixture = Fixture::new().await;
    let captured = turn_of(fixture.hear_for(&["b", "a"], said("1", "you two")).await);
    assert_eq!(captured.new_runs.len(), 2);
    let runs: Vec<String> = fixture
        .column(
            "SELECT format('%s %s %s %s', r.agent, r.state, g.revision, p.platform_id)
             FROM runs r JOIN run_triggers g ON g.run_id = r.id AND g.turn_seq = 1
             JOIN participants p ON p.id = r.person_participant_id
             WHERE r.conversation_id = 1 AND r.chat_id = 1 ORDER BY r.id",
        )
        .await;
    assert_eq!(runs, ["b queued 1 U1", "a queued 1 U1"]);
}

#[tokio::test]
async fn a_trigger_that_is_too_old_addresses_and_does_not_run() {
    let fixture = Fixture::new().await;
    let captured = fixture
        .judge(said("1", "hello"), |_| Verdict {
            runs: RunVerdict::TooOld,
            ..admitted(&["helper"])
        })
        .await;
    assert_eq!(turn_of(captured).new_runs, []);
    assert_eq!(fixture.only_turn().await.addressed_to, [agent("helper")]);
}

#[tokio::test]
async fn an_answer_that_opens_a_thread_makes_the_run_belong_to_the_thread() {
    let fixture = Fixture::new().await;
    let root = turn_of(
        fixture
            .judge(said("1", "question"), opening(&["helper"]))
            .await,
    );
    let row: String = fixture
        .value(
            "SELECT format('%s %s %s', c.thread, c.parent_id, c.root_turn_seq)
             FROM runs r JOIN conversations c ON c.id = r.conversation_id",
        )
        .await;
    assert_eq!(row, format!("1 1 {}", root.seq));
    let involved: Vec<i64> = fixture
        .column("SELECT conversation_id FROM involvements")
        .await;
    assert_eq!(involved, [1]);
    // A follow-up in it belongs to it, and a thread opens no other thread.
    let follow_up = Said {
        thread: Some("1"),
        ..said("2", "and?")
    };
    fixture.judge(follow_up, opening(&["helper"])).await;
    let runs: Vec<i64> = fixture
        .column("SELECT conversation_id FROM runs ORDER BY id")
        .await;
    assert_eq!(runs, [2, 2]);
}

#[tokio::test]
async fn an_unknown_chat_gives_empty_facts() {
    let fixture = Fixture::new().await;
    let facts = fixture.facts(said("1", "hello")).await;
    let expected = MessageFacts {
        chat_kind: Some(ChatKind::Public),
        ..MessageFacts::default()
    };
    assert_eq!(facts, expected);
    let in_a_thread = Said {
        thread: Some("7"),
        ..said("1", "hello")
    };
    let facts = fixture.facts(in_a_thread).await;
    assert_eq!(facts.thread, Some(ThreadFacts::default()));
}

#[tokio::test]
async fn the_facts_tell_what_a_thread_is_about() {
    let fixture = Fixture::new().await;
    fixture
        .judge(said("1", "question"), opening(&["other"]))
        .await;
    fixture.execute(ANSWER).await;
    let facts = fixture
        .facts(Said {
            thread: Some("1"),
            kind: None,
            ..said("2", "and?")
        })
        .await;
    let thread = ThreadFacts {
        root_addressed: vec![agent("other")],
        agents_in_it: vec![agent("helper")],
    };
    assert_eq!(
        facts,
        MessageFacts {
            is_known_chat: true,
            chat_kind: Some(ChatKind::Public),
            thread: Some(thread),
            runs_by_person_last_hour: 1,
            runs_in_chat_last_hour: 1,
            ..MessageFacts::default()
        }
    );
    let root = fixture
        .facts(Said {
            thread: Some("3"),
            ..said("3", "a root")
        })
        .await;
    assert_eq!(root.thread, None);
}

#[tokio::test]
async fn the_facts_name_the_agent_that_is_replied_to() {
    let fixture = Fixture::new().await;
    fixture
        .judge(said("1", "question"), opening(&["helper"]))
        .await;
    fixture.execute(ANSWER).await;
    let to_agent = Said {
        reply_to: Some("90"),
        ..said("2", "thanks")
    };
    assert_eq!(
        fixture.facts(to_agent).await.replies_to_agent,
        Some(agent("helper"))
    );
    let to_person = Said {
        reply_to: Some("1"),
        ..said("2", "thanks")
    };
    assert_eq!(fixture.facts(to_person).await.replies_to_agent, None);
}

#[tokio::test]
async fn the_facts_count_runs_of_the_last_hour_and_tokens_of_the_day() {
    let fixture = Fixture::new().await;
    for id in ["1", "2", "3"] {
        fixture.hear_for(&["helper"], said(id, "hello")).await;
    }
    fixture
        .hear_for(
            &["helper"],
            Said {
                by: "U2",
                ..said("4", "hello")
            },
        )
        .await;
    fixture
        .execute(
            "UPDATE runs SET created_at_ms = created_at_ms - 3600000 WHERE id = 1;
             INSERT INTO usage_days (account_id, day_start_ms, tokens)
             VALUES (1, 1699920000000, 205), (1, 1699833600000, 101);
             INSERT INTO usage_people SELECT id, 1699920000000, 33, 0 FROM participants
             WHERE platform_id = 'U1'",
        )
        .await;
    let facts = fixture.facts(said("5", "hello")).await;
    assert_eq!(
        (
            facts.runs_by_person_last_hour,
            facts.runs_in_chat_last_hour,
            facts.spent_today.tokens,
            facts.spent_by_person_today.tokens
        ),
        (2, 3, 205, 33)
    );
    let known = fixture.facts(said("4", "hello")).await;
    assert_eq!(known.addressed_before, [agent("helper")]);
    assert_eq!(known.has_run_for, [agent("helper")]);
}

#[tokio::test]
async fn a_thread_below_an_agents_own_message_goes_on_with_that_agent() {
    let fixture = Fixture::new().await;
    fixture.hear(said("0", "hello")).await;
    // An answer in line: a message of the channel, not of a thread.
    let sql = "UPDATE conversations SET thread = '1' WHERE id = 1";
    fixture.execute(sql).await;
    fixture.execute(ANSWER).await;
    fixture
        .execute("UPDATE conversations SET thread = '' WHERE id = 1")
        .await;
    let below = Said {
        thread: Some("90"),
        ..said("2", "and why?")
    };
    let facts = fixture.facts(below).await;
    let root_addressed = facts.thread.unwrap().root_addressed;
    assert_eq!(root_addressed, [agent("helper")]);
}
