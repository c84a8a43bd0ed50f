//! From a captured question to the answer on the platform, and the question after it.

use vocative_contract::outbound::Delivered;

use vocative_core::addressing::{MessageFacts, Verdict};
use vocative_core::coverage::Keep;
use vocative_core::history::{History, HistoryQuery, HistoryRole};
use vocative_core::outbox::OutboxUpdate;
use vocative_core::run::{ClaimedRun, Usage};
use vocative_store::contract::{CommittedReply, Deleted, LeaseOutcome, RecordedStep, RunLease};

use crate::said::{NOW_MS, Said, admitted, agent, said};
use crate::scene::Scene;

const LATER_MS: i64 = NOW_MS + 600_000;

/// The history that the run is answered from.
async fn history(scene: &Scene, run: &ClaimedRun) -> History {
    let query = HistoryQuery {
        conversation: run.run.conversation,
        agent: run.run.agent.clone(),
        as_of_seq: Some(run.as_of_seq),
        run: Some(run.run.id),
        triggers: run.run.triggers.clone(),
        keep: Keep::Involved,
        max_turns: 100,
        since_ms: None,
        scope: None,
        parent_turns: 10,
        ambient_turns: 0,
        summaries: None,
        thread_answers: true,
        made_by_ms: None,
    };
    scene.store.history(query).await.unwrap()
}

fn shown(history: &History) -> Vec<(&str, HistoryRole)> {
    let turns = history.turns.iter();
    turns
        .map(|read| (read.turn.content.as_str(), read.role))
        .collect()
}

async fn commit(scene: &Scene, run: &ClaimedRun, text: &str) -> CommittedReply {
    let reply = scene.answer(run, text).await;
    scene.store.commit_reply(reply).await.unwrap()
}

/// Answers a run, and sends the answer as that message.
async fn answer(scene: &Scene, run: &ClaimedRun, text: &str, message_id: &str) {
    let committed = commit(scene, run, text).await;
    assert!(matches!(committed, CommittedReply::Written { .. }));
    let now_ms = run.as_of_ms + 2;
    let posts = scene
        .store
        .claim_posts(scene.request(now_ms), 9)
        .await
        .unwrap();
    let (entry, token) = (&posts[0].entry, posts[0].token);
    let delivered = Delivered {
        chat: entry.target.chat.clone(),
        message_id: message_id.to_owned(),
        sent_at_ms: now_ms,
        shown: None,
    };
    let started = scene.store.mark_send_started(entry.id, token, None, now_ms);
    assert_eq!(started.await.unwrap(), LeaseOutcome::Written);
    let sent = OutboxUpdate::Sent(delivered);
    let sent = scene.store.update_post(entry.id, token, sent, now_ms);
    assert_eq!(sent.await.unwrap(), LeaseOutcome::Written);
}

#[tokio::test]
async fn an_answer_waits_for_the_disk_only_for_what_a_restart_could_not_make_good() {
    let scene = Scene::open().await;
    let syncs = || scene.store.work().syncs;
    let before = syncs();
    scene.hear_for(&["helper"], said("1", "question")).await;
    assert_eq!(syncs() - before, 1, "the question is captured");
    let run = scene.claim(LATER_MS).await.unwrap();
    let step = scene.store.record_step(
        run.run.id,
        run.token,
        RecordedStep {
            number: 1,
            message: "{}".to_owned(),
            usage: Usage::default(),
            verdicts: Vec::new(),
        },
        LATER_MS,
    );
    assert_eq!(step.await.unwrap(), LeaseOutcome::Written);
    assert_eq!(syncs() - before, 1, "a lease and a step ride");
    answer(&scene, &run, "answer", "100").await;
    assert_eq!(
        syncs() - before,
        4,
        "the reply, the start of its send and its outcome are on disk, each before the next"
    );
}

#[tokio::test]
async fn an_answer_that_opens_a_thread_is_followed_up_there() {
    let scene = Scene::open().await;
    scene.hear(said("1", "unrelated")).await;
    scene.hear_for(&["helper"], said("2", "earlier")).await;
    let earlier = scene.claim(LATER_MS).await.unwrap();
    answer(&scene, &earlier, "noted", "100").await;
    let opening = |_: &MessageFacts| Verdict {
        opens_thread: true,
        ..admitted(&["helper"])
    };
    scene.judge(said("3", "question"), opening).await;

    let first = scene.claim(LATER_MS + 10).await.unwrap();
    let expected = [
        ("earlier", HistoryRole::Parent),
        ("noted", HistoryRole::Parent),
        ("question", HistoryRole::Trigger),
    ];
    assert_eq!(shown(&history(&scene, &first).await), expected);
    let route = scene.store.reply_route(first.run.id).await.unwrap();
    assert_eq!(route.target.thread.as_deref(), Some("3"));
    answer(&scene, &first, "answer", "101").await;

    let follow_up = Said {
        thread: Some("3"),
        ..said("4", "and then?")
    };
    scene.hear_for(&["helper"], follow_up).await;
    let second = scene.claim(LATER_MS + 20).await.unwrap();
    assert_eq!(second.run.conversation, first.run.conversation);
    let expected = [
        ("earlier", HistoryRole::Parent),
        ("noted", HistoryRole::Parent),
        ("question", HistoryRole::Root),
        ("answer", HistoryRole::Kept),
        ("and then?", HistoryRole::Trigger),
    ];
    assert_eq!(shown(&history(&scene, &second).await), expected);
}

#[tokio::test]
async fn a_reply_to_an_answer_finds_its_agent_even_if_it_is_heard_first() {
    let scene = Scene::open().await;
    scene.hear_for(&["helper"], said("1", "question")).await;
    let early = Said {
        reply_to: Some("100"),
        ..said("2", "quick reply")
    };
    scene.hear(early).await;
    let run = scene.claim(LATER_MS).await.unwrap();
    answer(&scene, &run, "answer", "100").await;
    let turns = scene.turns().await;
    assert_eq!(turns[1].reply_to, Some(turns[2].id));

    let late = Said {
        reply_to: Some("100"),
        ..said("3", "reply")
    };
    let facts = scene.facts(late).await;
    assert_eq!(facts.replies_to_agent, Some(agent("helper")));
}

#[tokio::test]
async fn a_question_deleted_while_it_is_answered_gets_no_answer() {
    let scene = Scene::open().await;
    scene.hear_for(&["helper"], said("1", "question")).await;
    let run = scene.claim(LATER_MS).await.unwrap();
    let deleted = scene
        .store
        .capture_delete(scene.account, "C1", "1", LATER_MS + 1);
    let stopped = match deleted.await.unwrap() {
        Deleted::Blanked { cancelled_runs, .. } => cancelled_runs,
        other => panic!("{other:?}"),
    };
    assert_eq!(stopped, [run.run.id]);
    let lease = scene
        .store
        .extend_run(run.run.id, run.token, LATER_MS + 60_000)
        .await
        .unwrap();
    assert_eq!(lease, RunLease::CancelRequested);
    let committed = commit(&scene, &run, "too late").await;
    assert_eq!(committed, CommittedReply::Cancelled);
    assert_eq!(scene.contents().await, [""]);
    assert_eq!(scene.store.next_post_due_ms().await.unwrap(), None);
}
