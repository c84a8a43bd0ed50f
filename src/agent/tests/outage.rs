//! A model that is over its limit, down, or refuses its account: what becomes of the questions. Time is
//! simulated: it goes on when nothing else does.

use super::*;
use vocative_core::run::RunState;
use vocative_store::AccessGate;
use vocative_store::contract::WaitingFor;

const HOUR_MS: i64 = 3_600_000;

/// A stage whose clock goes with the simulated time, and how far that is off.
pub(super) async fn stage() -> (Stage, Arc<AtomicI64>) {
    // Without threads, which simulated time would not wait for.
    let open: AccessGate = Arc::new(|_| Box::pin(async { Ok(()) }));
    let (store, _) = Store::open_inline(&store_options(), START_MS, open).unwrap();
    let mut stage = Stage::over(store).await;
    let (start_ms, begun) = ((stage.clock)(), tokio::time::Instant::now());
    let off_ms = Arc::new(AtomicI64::new(0));
    let off = Arc::clone(&off_ms);
    stage.clock = Arc::new(move || {
        let elapsed_ms = i64::try_from(begun.elapsed().as_millis()).unwrap();
        start_ms + elapsed_ms + off.load(Ordering::Relaxed)
    });
    (stage, off_ms)
}

pub(super) fn limited(wait_ms: u64) -> ModelError {
    let wait_ms = Some(wait_ms);
    ModelError::RetryAfter { wait_ms }
}

pub(super) fn down() -> ModelError {
    ModelError::Unavailable {
        cause: "HTTP 503".to_owned(),
    }
}

pub(super) fn unpaid() -> ModelError {
    ModelError::AccountRefused {
        reason: "HTTP 402".to_owned(),
    }
}

/// A model that notes when it is asked, in simulated milliseconds, and fails until it is mended.
pub(super) struct Sick {
    error: ModelError,
    mended_at_ms: AtomicI64,
    begun: tokio::time::Instant,
    asked_ms: Mutex<Vec<i64>>,
}

impl Sick {
    pub(super) fn new(error: ModelError, mended_at_ms: i64) -> Arc<Self> {
        Arc::new(Self {
            error,
            mended_at_ms: AtomicI64::new(mended_at_ms),
            begun: tokio::time::Instant::now(),
            asked_ms: Mutex::default(),
        })
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_millis()).unwrap()
    }

    pub(super) fn asked(&self) -> Vec<i64> {
        self.asked_ms.lock().unwrap().clone()
    }
}

impl Model for Sick {
    fn name(&self) -> &'static str {
        "sick"
    }

    fn complete<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let now_ms = self.now_ms();
        self.asked_ms.lock().unwrap().push(now_ms);
        let is_mended = now_ms >= self.mended_at_ms.load(Ordering::Relaxed);
        let answer = if is_mended {
            Ok(says("here"))
        } else {
            Err(self.error.clone())
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Lets simulated time pass until this number of posts waits.
pub(super) async fn until_posts(stage: &Stage, posts: u64) {
    for _ in 0..15_000 {
        let status = stage.store.status((stage.clock)()).await.unwrap();
        if status.posts_pending >= posts {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let now_ms = (stage.clock)();
    let status = stage.store.status(now_ms).await.unwrap();
    let queued = stage.store.queued_runs(2, now_ms).await.unwrap();
    panic!("no {posts} posts within the time: {status:#?} {queued:#?} at {now_ms}");
}

pub(super) async fn stop(stage: &Stage, agents: tokio::task::JoinHandle<()>) {
    stage.stop.cancel();
    agents.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_a_provider_asks_for_is_a_row_and_is_honoured_by_all_its_questions() {
    let (stage, _) = stage().await;
    let model = Sick::new(limited(300_000), 1_000);
    for chat in 101..=108 {
        stage.ask_in(&chat.to_string(), "hello?").await;
    }
    let began_ms = (stage.clock)();
    let agents = stage.agents_with(Arc::clone(&model) as _);
    tokio::time::sleep(Duration::from_secs(290)).await;
    // Two were asked at once, before the first was refused; nothing else is sent into the refusal.
    assert!(model.asked().len() <= 2, "{:?}", model.asked());
    let now_ms = (stage.clock)();
    let queued = stage.store.queued_runs(99, now_ms).await.unwrap();
    assert_eq!(queued.len(), 8);
    let waits: Vec<i64> = queued
        .iter()
        .filter_map(|run| match run.waiting_for {
            WaitingFor::Attempt { at_ms, .. } => Some(at_ms - began_ms),
            _ => None,
        })
        .collect();
    assert!(
        !waits.is_empty() && waits.iter().all(|ms| (300_000..301_000).contains(ms)),
        "{waits:?}"
    );
    let rests = stage.store.model_rests().await.unwrap();
    assert!(
        !rests[0].is_held && rests[0].until_ms - began_ms >= 300_000,
        "{rests:?}"
    );
    until_posts(&stage, 8).await;
    let after: Vec<i64> = model.asked().into_iter().filter(|ms| *ms > 1_000).collect();
    assert_eq!(after.len(), 8);
    assert!(after[0] >= 300_000 && after[7] < 310_000, "{after:?}");
    assert_eq!(stage.store.model_rests().await.unwrap(), []);
    stop(&stage, agents).await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_limit_kills_nothing_whatever_the_clock_does() {
    let (stage, off_ms) = stage().await;
    let model = Sick::new(down(), HOUR_MS - 120_000);
    for chat in 101..=104 {
        stage.ask_in(&chat.to_string(), "hello?").await;
    }
    let agents = stage.agents_with(Arc::clone(&model) as _);
    for step_ms in [365 * 86_400_000_i64, -400 * 86_400_000, 7_200_000] {
        tokio::time::sleep(Duration::from_secs(700)).await;
        off_ms.fetch_add(step_ms, Ordering::Relaxed);
    }
    until_posts(&stage, 4).await;
    let status = stage.store.status((stage.clock)()).await.unwrap();
    assert_eq!((status.runs_dead, status.posts_pending), (0, 4));
    // Once it is back, it is found within the longest wait.
    assert!(model.now_ms() < HOUR_MS, "{}", model.now_ms());
    // A model that is down is not asked by each of its questions.
    assert!(model.asked().len() < 150, "{}", model.asked().len());
    stop(&stage, agents).await;
}

#[tokio::test(start_paused = true)]
async fn after_the_limit_each_question_is_given_up_with_one_notice() {
    for error in [limited(7_200_000), down(), unpaid()] {
        let (stage, _) = stage().await;
        let model = Sick::new(error, i64::MAX);
        for chat in 101..=105 {
            stage.ask_in(&chat.to_string(), "hello?").await;
        }
        let agents = stage.agents_with(Arc::clone(&model) as _);
        until_posts(&stage, 5).await;
        let ended_ms = model.now_ms();
        assert!(
            (HOUR_MS..HOUR_MS + 15_000).contains(&ended_ms),
            "{ended_ms}"
        );
        tokio::time::sleep(Duration::from_secs(7_200)).await;
        let status = stage.store.status((stage.clock)()).await.unwrap();
        assert_eq!((status.runs_dead, status.posts_pending), (5, 5));
        stop(&stage, agents).await;
        let delivery = stage.delivery(&stage.clock);
        delivery
            .run(stage.stop.clone(), stage.drain_until.clone())
            .await;
        let posted = stage.platform.posted.borrow().clone();
        assert!(
            posted
                .iter()
                .all(|text| text.contains("for 60 minutes the model I use")),
            "{posted:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_account_is_tried_now_and_then_and_its_questions_come_back_one_after_the_other() {
    let (stage, _) = stage().await;
    let model = Sick::new(unpaid(), 600_000);
    for chat in 101..=150 {
        stage.ask_in(&chat.to_string(), "hello?").await;
    }
    let agents = stage.agents_with(Arc::clone(&model) as _);
    until_posts(&stage, 50).await;
    let asked = model.asked();
    let tries = asked.iter().filter(|ms| **ms < 600_000).count();
    assert!((2..=6).contains(&tries), "{asked:?}");
    let answered: Vec<i64> = asked[tries..].to_vec();
    assert_eq!(answered.len(), 50, "none is asked twice");
    let status = stage.store.status((stage.clock)()).await.unwrap();
    assert_eq!((status.runs_dead, status.posts_pending), (0, 50));
    assert_eq!(status.model_rests, []);
    stop(&stage, agents).await;
}

#[tokio::test(start_paused = true)]
async fn a_person_releases_a_model_and_its_questions_are_asked_at_once() {
    let (stage, _) = stage().await;
    let model = Sick::new(unpaid(), i64::MAX);
    stage.ask("hello?").await;
    let worker = stage.worker(vec![spec(Arc::clone(&model) as _)]);
    let models = worker.models.clone();
    let agents = tokio::spawn(worker.run(stage.stop.clone(), stage.drain_until.clone()));
    while stage.store.model_rests().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    model.mended_at_ms.store(0, Ordering::Relaxed);
    let released_ms = model.now_ms();
    assert!(models.release("test").await.unwrap());
    until_posts(&stage, 1).await;
    assert!(model.now_ms() - released_ms < 5_000);
    assert!(!models.release("test").await.unwrap());
    stop(&stage, agents).await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_survives_a_restart_and_a_held_model_is_tried_by_it() {
    for (error, asked_again) in [(limited(300_000), 0), (unpaid(), 1)] {
        let (stage, _) = stage().await;
        let model = Sick::new(error, i64::MAX);
        stage.ask("hello?").await;
        let agents = stage.agents_with(Arc::clone(&model) as _);
        while stage.store.model_rests().await.unwrap().is_empty()
            || stage.store.status(0).await.unwrap().runs_queued == 0
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stage.stop.cancel();
        agents.await.unwrap();
        let before = model.asked().len();
        let again = Stage {
            stop: CancellationToken::new(),
            ..stage
        };
        let agents = again.agents_with(Arc::clone(&model) as _);
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(model.asked().len() - before, asked_again);
        stop(&again, agents).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_sick_model_holds_up_no_other_agent_even_in_one_conversation() {
    let (stage, _) = stage().await;
    let model = Sick::new(limited(300_000), 1_000);
    stage.ask_agent("helper", "7", "one").await;
    stage.ask_agent("other", "7", "two").await;
    let healthy = Sick::new(down(), 0);
    let other = AgentSpec {
        name: AgentName::trusted("other"),
        model_use: ModelUse {
            name: "healthy".to_owned(),
            max_parallel: 1,
            prices: vocative_core::price::Prices::default(),
            currency: "USD".to_owned(),
            max_output_tokens: 1_000,
        },
        ..spec(Arc::clone(&healthy) as _)
    };
    let mut worker = stage.worker(vec![spec(Arc::clone(&model) as _), other]);
    worker.max_parallel_runs = 1;
    let agents = tokio::spawn(worker.run(stage.stop.clone(), stage.drain_until.clone()));
    until_posts(&stage, 1).await;
    assert_eq!((model.asked().len(), healthy.asked().len()), (1, 1));
    assert!(model.now_ms() < 10_000);
    stop(&stage, agents).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_the_questions_own_fault_uses_up_attempts() {
    let (stage, _) = stage().await;
    let model = Sick::new(ModelError::Empty, i64::MAX);
    stage.ask("hello?").await;
    let agents = stage.agents_with(Arc::clone(&model) as _);
    until_posts(&stage, 1).await;
    assert_eq!(model.asked().len(), 3);
    let dead = stage.store.dead_runs(9).await.unwrap();
    assert!(matches!(&dead[0].state, RunState::Dead { .. }));
    assert!(stage.store.model_rests().await.unwrap().is_empty());
    stop(&stage, agents).await;
}
