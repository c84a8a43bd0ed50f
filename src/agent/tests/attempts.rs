//! A run that fails, is tried again, and is answered once.

use super::*;
use vocative_store::contract::RecordedStep;

#[tokio::test]
async fn a_run_that_panics_is_tried_again_before_its_lease_ends() {
    let stage = Stage::new().await;
    stage.ask("hello?").await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let agents = stage.agents(move || {
        let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        assert!(!is_first, "the first attempt panics");
        Box::pin(async { Ok(says("here")) })
    });
    let given_back = async {
        while asked.load(Ordering::Relaxed) == 0
            || stage.store.status(0).await.unwrap().runs_queued == 0
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, given_back)
        .await
        .expect("given back");
    stage.advance(2_000);
    stage.until_posts_wait().await;
    stage.stop.cancel();
    agents.await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_recorded_step_is_replayed_and_the_model_not_asked_again() {
    let stage = Stage::new().await;
    stage.ask("hello?").await;
    let claimed = stage.claim().await;
    let (run, token, now_ms) = (claimed.run.id, claimed.token, (stage.clock)());
    let recorded = step::record(&ModelStep {
        number: 1,
        model: "test".to_owned(),
        answer: says("as recorded"),
        results: None,
        ends_calls: false,
    });
    let usage = Usage::default();
    let steps = stage.store.record_step(
        run,
        token,
        RecordedStep {
            number: 1,
            message: recorded,
            usage,
            verdicts: Vec::new(),
        },
        now_ms,
    );
    steps.await.unwrap();
    let given = stage
        .store
        .requeue_run(run, token, now_ms, "killed", now_ms);
    given.await.unwrap();

    let agents = stage.agents(|| panic!("the model is asked again"));
    stage.until_posts_wait().await;
    stage.stop.cancel();
    agents.await.unwrap();
    stage
        .delivery(&stage.clock)
        .run(stage.stop.clone(), stage.drain_until.clone())
        .await;
    assert_eq!(*stage.platform.posted.borrow(), ["as recorded"]);
}

#[tokio::test]
async fn a_turn_that_another_counter_counted_is_counted_again_when_it_is_read() {
    let stage = Stage::new().await;
    stage.ask("hello?").await;
    let agents = stage.agents(|| Box::pin(async { Ok(says("here")) }));
    stage.until_posts_wait().await;
    stage.stop.cancel();
    agents.await.unwrap();
    let all = ConversationFilter::default();
    let room = stage.store.conversations(all).await.unwrap().remove(0).id;
    let turns = stage.store.turns(room, TurnFilter::default()).await;
    let counts: Vec<Option<TokenCount>> = turns.unwrap().into_iter().map(|t| t.tokens).collect();
    let count = |text| Some(content_count(text, &ClassEstimate));
    assert_eq!(counts, [count("hello?"), count("here")]);
}

/// A model whose provider counts half as many tokens again as we do, and fails the first time.
struct Reporting {
    store: Store,
    asked: Mutex<Vec<Vec<PromptMessage>>>,
}

impl Reporting {
    async fn answer(&self, messages: &[PromptMessage]) -> Result<Answer, ModelError> {
        let is_first = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(messages.to_vec());
            asked.len() == 1
        };
        if !is_first {
            let counted: usize = messages
                .iter()
                .map(|m| ClassEstimate.cost(&m.content))
                .sum();
            return Ok(Answer {
                reported_prompt_tokens: Some(counted as u64 * 3 / 2),
                ..says("here")
            });
        }
        // Meanwhile other rooms teach that the model counts twice as many.
        let report = PromptReport {
            counted: 8_000,
            reported: 16_000,
        };
        for _ in 0..50 {
            let key = spec(Arc::new(Offline)).ratio_key();
            self.store.learn_token_ratio(key, report, 0).await.unwrap();
        }
        Err(ModelError::Unavailable {
            cause: "a test".to_owned(),
        })
    }
}

impl Model for Reporting {
    fn name(&self) -> &'static str {
        "reporting"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.answer(request.messages))
    }
}

#[tokio::test]
async fn another_attempt_is_sent_the_same_bytes_whatever_was_learnt_meanwhile() {
    let stage = Stage::new().await;
    // Long enough to be cut to the trigger's limit, so that the ratio decides where.
    let question = "what is it that we did here last time? ".repeat(400);
    stage.ask(&question).await;
    let model = Arc::new(Reporting {
        store: stage.store.clone(),
        asked: Mutex::default(),
    });
    let agents = stage.agents_with(Arc::clone(&model) as _);
    let given_back = async {
        while model.asked.lock().unwrap().is_empty()
            || stage.store.status(0).await.unwrap().runs_queued == 0
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, given_back)
        .await
        .expect("given back");
    stage.advance(2_000);
    stage.until_posts_wait().await;
    let before = stage
        .store
        .status(0)
        .await
        .unwrap()
        .token_ratios
        .remove(0)
        .learnt;
    assert_eq!(before.ratio.to_string(), "2.00");
    assert_eq!(before.reports, 51, "the answer's own report is learnt from");

    // A run that begins now is counted with what was learnt.
    stage.advance(1_000);
    stage.ask(&format!("Again: {question}")).await;
    let asked_again = async {
        while model.asked.lock().unwrap().len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    stage.wake.runs.notify_one();
    tokio::time::timeout(WAIT, asked_again)
        .await
        .expect("asked again");
    stage.stop.cancel();
    agents.await.unwrap();
    let asked = model.asked.lock().unwrap();
    assert_eq!(asked[0], asked[1]);
    let length = |n: usize| asked[n].last().unwrap().content.len();
    assert!(
        length(2) < length(1) * 6 / 10,
        "{} of {}",
        length(2),
        length(1)
    );
}
