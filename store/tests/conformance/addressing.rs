//! Who is addressed, and the facts by which that is decided.

use vocative_contract::envelope::ChatKind;
use vocative_core::addressing::{MessageFacts, RunVerdict, ThreadFacts, Verdict};
use vocative_core::run::Usage;
use vocative_store::spending::{Purpose, Spending};

use crate::said::{NOW_MS, Said, admitted, agent, said, turn_of};
use crate::scene::{Scene, by_hand};

/// The agent answers what it was asked; its message is called 90.
async fn answer(scene: &Scene) {
    let run = scene.claim(NOW_MS + 500_001).await.unwrap();
    let mut answer = scene.answer(&run, "answer").await;
    answer.agent = run.run.agent.clone();
    scene.store.commit_reply(answer).await.unwrap();
    scene.send_one("90", NOW_MS + 500_003).await;
}

fn opening(agents: &'static [&'static str]) -> impl FnOnce(&MessageFacts) -> Verdict {
    move |_| Verdict {
        opens_thread: true,
        ..admitted(agents)
    }
}

#[tokio::test]
async fn each_addressed_agent_gets_one_run_in_the_turns_conversation() {
    let scene = Scene::open().await;
    let captured = turn_of(scene.hear_for(&["b", "a"], said("1", "you two")).await);
    assert_eq!(captured.new_runs.len(), 2);
    assert_eq!(scene.runs().await, ["b queued 1", "a queued 1"]);
    let ada = scene.only_turn().await.participant.id;
    for run in scene.store.all_runs_before(None, 9).await.unwrap() {
        assert_eq!(run.conversation, captured.conversation);
        let claimed = scene.claim(NOW_MS + 500_001).await.unwrap();
        assert_eq!(claimed.asker.person, Some(ada));
        let mut reply = scene.answer(&claimed, "hello").await;
        reply.agent = claimed.run.agent;
        scene.store.commit_reply(reply).await.unwrap();
    }
}

#[tokio::test]
async fn a_trigger_that_is_too_old_addresses_and_does_not_run() {
    let scene = Scene::open().await;
    let captured = scene
        .judge(said("1", "hello"), |_| Verdict {
            runs: RunVerdict::TooOld,
            ..admitted(&["helper"])
        })
        .await;
    assert_eq!(turn_of(captured).new_runs, []);
    assert_eq!(scene.only_turn().await.addressed_to, [agent("helper")]);
}

#[tokio::test]
async fn an_answer_that_opens_a_thread_makes_the_run_belong_to_the_thread() {
    let scene = Scene::open().await;
    let root = turn_of(
        scene
            .judge(said("1", "question"), opening(&["helper"]))
            .await,
    );
    let run = scene.store.run(root.new_runs[0]).await.unwrap();
    let thread = scene.store.conversation(run.conversation).await.unwrap();
    assert_eq!(run.conversation, scene.conversation("C1/1").await);
    assert_eq!(
        (thread.parent, thread.root),
        (Some(root.conversation), Some(root.turn))
    );
    // The question stays where it was asked.
    let turn = scene.only_turn().await;
    assert_eq!(
        (turn.conversation, turn.addressed_to),
        (root.conversation, vec![agent("helper")])
    );
    // A follow-up in it belongs to it, and a thread opens no other thread.
    let follow_up = Said {
        thread: Some("1"),
        ..said("2", "and?")
    };
    scene.judge(follow_up, opening(&["helper"])).await;
    let runs = scene.store.all_runs_before(None, 9).await.unwrap();
    let places: Vec<_> = runs.iter().map(|run| run.conversation).collect();
    assert_eq!(places, [thread.id, thread.id]);
}

#[tokio::test]
async fn an_unknown_chat_gives_empty_facts() {
    let scene = Scene::open().await;
    let facts = scene.facts(said("1", "hello")).await;
    let expected = MessageFacts {
        chat_kind: Some(ChatKind::Public),
        ..MessageFacts::default()
    };
    assert_eq!(facts, expected);
    let in_a_thread = Said {
        thread: Some("7"),
        ..said("1", "hello")
    };
    let facts = scene.facts(in_a_thread).await;
    assert_eq!(facts.thread, Some(ThreadFacts::default()));
}

#[tokio::test]
async fn the_facts_tell_what_a_thread_is_about() {
    let scene = Scene::open().await;
    let root = scene.judge(said("1", "question"), opening(&["other"]));
    let unanswered = turn_of(root.await).new_runs[0];
    let below = Said {
        thread: Some("1"),
        ..said("2", "or you?")
    };
    scene.hear_for(&["helper"], below).await;
    let stopped = scene
        .store
        .cancel_run(unanswered, by_hand("not you"), NOW_MS);
    assert!(stopped.await.unwrap());
    answer(&scene).await;
    let facts = scene
        .facts(Said {
            thread: Some("1"),
            kind: None,
            ..said("3", "and?")
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
            runs_by_person_last_hour: 2,
            runs_in_chat_last_hour: 2,
            ..MessageFacts::default()
        }
    );
    let root = scene
        .facts(Said {
            thread: Some("4"),
            ..said("4", "a root")
        })
        .await;
    assert_eq!(root.thread, None);
}

#[tokio::test]
async fn the_facts_name_the_agent_that_is_replied_to() {
    let scene = Scene::open().await;
    scene
        .judge(said("1", "question"), opening(&["helper"]))
        .await;
    answer(&scene).await;
    let to_agent = Said {
        reply_to: Some("90"),
        ..said("2", "thanks")
    };
    assert_eq!(
        scene.facts(to_agent).await.replies_to_agent,
        Some(agent("helper"))
    );
    let to_person = Said {
        reply_to: Some("1"),
        ..said("2", "thanks")
    };
    assert_eq!(scene.facts(to_person).await.replies_to_agent, None);
}

#[tokio::test]
async fn the_facts_count_runs_of_the_last_hour_and_tokens_of_the_day() {
    let scene = Scene::open().await;
    const HOUR_MS: i64 = 3_600_000;
    const DAY_MS: i64 = 24 * HOUR_MS;
    for id in ["1", "2", "3"] {
        let mut asked = said(id, "hello");
        // An hour ago is not within the last one.
        asked.received_at_ms -= if id == "1" { HOUR_MS } else { 0 };
        scene.hear_for(&["helper"], asked).await;
    }
    scene
        .hear_for(
            &["helper"],
            Said {
                by: "U2",
                ..said("4", "hello")
            },
        )
        .await;
    let ada = scene.store.participant(scene.account, "U1".to_owned());
    let ada = ada.await.unwrap();
    for (person, tokens, now_ms) in [
        (ada, 101, NOW_MS - DAY_MS),
        (None, 172, NOW_MS),
        (ada, 33, NOW_MS),
    ] {
        let spending = Spending {
            account: scene.account,
            person,
            purpose: Purpose::Speech,
            usage: Usage {
                prompt_tokens: tokens,
                ..Usage::default()
            },
            cost_micros: 0,
            call: None,
            now_ms,
        };
        scene.store.spend(spending).await.unwrap();
    }
    let facts = scene.facts(said("5", "hello")).await;
    assert_eq!(
        (
            facts.runs_by_person_last_hour,
            facts.runs_in_chat_last_hour,
            facts.spent_today.tokens,
            facts.spent_by_person_today.tokens
        ),
        (2, 3, 205, 33)
    );
    let known = scene.facts(said("4", "hello")).await;
    assert_eq!(known.addressed_before, [agent("helper")]);
    assert_eq!(known.has_run_for, [agent("helper")]);
}

#[tokio::test]
async fn a_thread_below_an_agents_own_message_goes_on_with_that_agent() {
    let scene = Scene::open().await;
    // An answer in line: a message of the channel, not of a thread.
    scene.hear_for(&["helper"], said("0", "hello")).await;
    answer(&scene).await;
    let below = Said {
        thread: Some("90"),
        ..said("2", "and why?")
    };
    let facts = scene.facts(below).await;
    let root_addressed = facts.thread.unwrap().root_addressed;
    assert_eq!(root_addressed, [agent("helper")]);
}
