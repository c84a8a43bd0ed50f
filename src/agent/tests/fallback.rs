//! A model that can't answer, and another one that is asked in its place. Time is simulated.

use super::outage::{Sick, down, limited, stage, stop, unpaid, until_posts};
use super::*;

const HOUR_MS: i64 = 3_600_000;

/// An agent whose model has another one behind it.
fn with_fallback(first: &Arc<Sick>, second: &Arc<Sick>) -> AgentSpec {
    let fallback = spec(Arc::clone(second) as _);
    let model_use = ModelUse {
        name: "spare".to_owned(),
        ..fallback.model_use.clone()
    };
    AgentSpec {
        fallbacks: vec![Arc::new(AgentSpec {
            model_use,
            ..fallback
        })],
        ..spec(Arc::clone(first) as _)
    }
}

fn start(stage: &Stage, agent: AgentSpec) -> tokio::task::JoinHandle<()> {
    let worker = stage.worker(vec![agent]);
    tokio::spawn(worker.run(stage.stop.clone(), stage.drain_until.clone()))
}

#[tokio::test(start_paused = true)]
async fn while_a_model_is_down_another_one_answers_and_single_questions_try_the_first() {
    for error in [down(), limited(600_000), unpaid()] {
        let (stage, _) = stage().await;
        let (first, second) = (Sick::new(error.clone(), HOUR_MS), Sick::new(down(), 0));
        let agents = start(&stage, with_fallback(&first, &second));
        // Two questions a minute for an hour, and some more once it is back.
        for n in 0..140_u64 {
            stage.ask_in(&(1_000 + n).to_string(), "hello?").await;
            until_posts(&stage, n + 1).await;
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        let tried = first.asked();
        let in_vain = tried.iter().filter(|ms| **ms < HOUR_MS).count();
        let answered = tried.len() - in_vain;
        assert!((2..=62).contains(&in_vain), "{error:?}: {tried:?}");
        // It answers again, and what it answers the other one is not asked.
        assert!(answered >= 10, "{error:?}: {tried:?}");
        assert_eq!(second.asked().len() + answered, 140, "{error:?}");
        let status = stage.store.status((stage.clock)()).await.unwrap();
        assert_eq!((status.runs_dead, status.posts_pending), (0, 140));
        assert_eq!(stage.store.model_rests().await.unwrap(), []);
        stop(&stage, agents).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_model_refuses_of_a_question_no_other_is_asked() {
    let refused = ModelError::Refused {
        reason: "HTTP 400".to_owned(),
    };
    let (stage, _) = stage().await;
    let (first, second) = (Sick::new(refused, i64::MAX), Sick::new(down(), 0));
    stage.ask("hello?").await;
    let agents = start(&stage, with_fallback(&first, &second));
    // The notice that it is given up.
    until_posts(&stage, 1).await;
    assert_eq!((first.asked().len(), second.asked().len()), (1, 0));
    stop(&stage, agents).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_fallback_finds_wrong_with_a_question_does_not_end_it() {
    let refused = ModelError::Refused {
        reason: "HTTP 400".to_owned(),
    };
    let (stage, _) = stage().await;
    let (first, second) = (Sick::new(down(), 60_000), Sick::new(refused, i64::MAX));
    stage.ask("hello?").await;
    let agents = start(&stage, with_fallback(&first, &second));
    until_posts(&stage, 1).await;
    assert!(first.asked().last().is_some_and(|ms| *ms >= 60_000));
    let status = stage.store.status((stage.clock)()).await.unwrap();
    assert_eq!(status.runs_dead, 0);
    stop(&stage, agents).await;
}
