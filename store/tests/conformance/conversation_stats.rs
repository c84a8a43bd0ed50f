//! Figures of a conversation and its threads.

use vocative_contract::envelope::{Place, Sender, SenderKind};
use vocative_contract::feedback::{Thumb, ThumbChange};
use vocative_core::run::{ClaimedRun, Usage};
use vocative_store::contract::{
    AnswerTimes, ConversationStats, LeaseOutcome, RecordedStep, ThumbCounts,
};
use vocative_store::spending::{ModelCall, Purpose, Spending};

use crate::said::agent;
use crate::scene::Scene;

/// A run takes one step, which costs something, and answers.
async fn work(scene: &Scene, run: &ClaimedRun) {
    let usage = Usage {
        prompt_tokens: 100,
        completion_tokens: 20,
        ..Usage::default()
    };
    let (store, id) = (&scene.store, run.run.id);
    let step = store.record_step(
        id,
        run.token,
        RecordedStep {
            number: 1,
            message: "{}".to_owned(),
            usage,
            verdicts: Vec::new(),
        },
        1_000,
    );
    assert_eq!(step.await.unwrap(), LeaseOutcome::Written);
    let spending = Spending {
        account: scene.account,
        person: None,
        purpose: Purpose::Answers,
        usage,
        cost_micros: 7,
        call: Some(ModelCall {
            conversation: run.run.conversation,
            agent: agent("helper"),
            model: "large".to_owned(),
            run: Some(id),
        }),
        now_ms: 1_000,
    };
    store.spend(spending).await.unwrap();
    let answer = scene.answer(run, "yes").await;
    store.commit_reply(answer).await.unwrap();
}

/// Sends every answer, and somebody likes each.
async fn send_and_like(scene: &Scene) {
    for at_ms in [2_000, 2_001] {
        for claim in scene.claim_posts(at_ms).await {
            let message_id = format!("p{}", claim.entry.id);
            scene.send(&claim, &message_id, at_ms).await;
            let change = ThumbChange {
                place: Place {
                    chat: claim.entry.target.chat.clone(),
                    ..Place::default()
                },
                message_id,
                sender: Sender {
                    id: "U2".to_owned(),
                    display_name: None,
                    username: None,
                    kind: SenderKind::Person,
                    is_stranger: false,
                },
                thumbs: vec![(Thumb::Up, true)],
                at_ms,
            };
            let taken = scene.store.capture_thumb(scene.account, change, at_ms);
            assert!(taken.await.unwrap());
        }
    }
}

#[tokio::test]
async fn a_room_is_counted_with_its_threads_since_a_time_and_no_other_room() {
    let scene = Scene::open().await;
    scene.say("C1", "before", 10).await;
    scene.ask("C2", "elsewhere?", 120).await;
    let (root, _) = scene.ask("C1", "in the room?", 100).await;
    scene.ask("C1/m2", "in the thread?", 110).await;
    let mut answered = 0;
    while let Some(run) = scene.claim(1_000).await {
        work(&scene, &run).await;
        answered += 1;
    }
    assert_eq!(answered, 3);
    send_and_like(&scene).await;
    let room = root.conversation;
    let stats = scene.store.conversation_stats(room, 50).await.unwrap();
    let expected = ConversationStats {
        messages_of_people: 2,
        speakers: 1,
        messages_of_agents: 2,
        runs: 2,
        runs_answered: 2,
        runs_dead: 0,
        answer_times: stats.answer_times,
        prompt_tokens: 200,
        completion_tokens: 40,
        cost_micros: 14,
        thumbs: ThumbCounts { up: 2, down: 0 },
        is_cut: false,
    };
    assert_eq!(stats, expected);
    assert!(
        stats
            .answer_times
            .is_some_and(|AnswerTimes { p50_ms, p95_ms }| p50_ms <= p95_ms)
    );
    let later = scene.store.conversation_stats(room, 10_000).await.unwrap();
    assert_eq!(later, ConversationStats::default());
}
