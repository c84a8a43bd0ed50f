//! Repeats requests that may succeed later, within a deadline.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};
use vocative_channels::backoff::Backoff;
use vocative_core::timing::{BOUNDS_SLOW_MS, Timings};

use super::listener::Tracked;
use super::{Answer, Listener, Model, ModelError, Request};

/// How long each attempt at a model took since the start, by model and whether it answered.
pub static ASKED: Timings = Timings::new(BOUNDS_SLOW_MS);

/// How often and for how long to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Further attempts after a failed one.
    pub retries: u32,
    /// The first wait, in milliseconds; it doubles.
    pub wait_first_ms: u64,
    /// The longest wait by back-off, in milliseconds.
    pub wait_max_ms: u64,
    /// No attempt starts later than this after the first, in milliseconds. For longer waits the caller is responsible;
    /// it holds no slot and no lease while it waits.
    pub deadline_ms: u64,
}

impl RetryPolicy {
    /// The policy of a configured model: it is retried soon or not at all, so that no slot is held by a long wait.
    #[must_use]
    pub fn at_once(retries: u32) -> Self {
        Self {
            retries,
            wait_first_ms: 250,
            wait_max_ms: 1_000,
            deadline_ms: 5_000,
        }
    }
}

/// A model whose transient failures are retried.
///
/// 5xx, lost connections and streams that break in the middle are retried after a short back-off with jitter. So are
/// rate limits, if the provider names a wait that is not longer than the longest back-off. Refusals and malformed
/// answers are not retried. In every case, text of a failed answer that the listener has is declared void.
pub struct Retrying {
    inner: Arc<dyn Model>,
    policy: RetryPolicy,
}

impl Retrying {
    /// Wraps a model.
    #[must_use]
    pub fn new(inner: Arc<dyn Model>, policy: RetryPolicy) -> Self {
        Self { inner, policy }
    }

    async fn complete_within(&self, request: &Request<'_>) -> Result<Answer, ModelError> {
        let policy = self.policy;
        let tracked = request.listener.map(Tracked::new);
        let request = Request {
            listener: tracked.as_ref().map(|tracked| tracked as &dyn Listener),
            ..*request
        };
        let started = Instant::now();
        let mut backoff = Backoff::new(policy.wait_first_ms, policy.wait_max_ms);
        loop {
            let begun = Instant::now();
            let answered = self.inner.complete(&request).await;
            note_time(self.inner.name(), begun.elapsed(), answered.is_ok());
            let error = match answered {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if let Some(tracked) = &tracked {
                tracked.void();
            }
            let wait_ms = match &error {
                ModelError::RetryAfter { wait_ms: Some(ms) } if *ms <= policy.wait_max_ms => {
                    (*ms).max(backoff.next_ms())
                }
                ModelError::Unavailable { .. } => backoff.next_ms(),
                _ => return Err(error),
            };
            let wait = Duration::from_millis(wait_ms);
            let is_late = started.elapsed() + wait > Duration::from_millis(policy.deadline_ms);
            if backoff.failures() > policy.retries || is_late {
                return Err(error);
            }
            tracing::warn!(
                model = self.inner.name(),
                attempt = backoff.failures(),
                wait_ms,
                %error,
                "the model did not answer; asking again"
            );
            sleep(wait).await;
        }
    }
}

fn note_time(model: &str, took: Duration, is_ok: bool) {
    let outcome = if is_ok { "answered" } else { "failed" };
    ASKED.note(
        model,
        outcome,
        u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    );
}

impl Model for Retrying {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn context_limit(&self) -> Option<usize> {
        self.inner.context_limit()
    }

    fn learn_context_limit(&self, tokens: usize) {
        self.inner.learn_context_limit(tokens);
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.complete_within(request))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::VecDeque;
    use std::sync::Mutex;

    use super::*;
    use vocative_core::run::Finish;
    use vocative_core::run::Usage;

    struct Scripted {
        replies: Mutex<VecDeque<Result<Answer, ModelError>>>,
    }

    impl Model for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn complete<'a>(
            &'a self,
            _request: &'a Request<'a>,
        ) -> BoxFuture<'a, Result<Answer, ModelError>> {
            let reply = self.replies.lock().unwrap().pop_front();
            Box::pin(std::future::ready(reply.expect("the script has a reply")))
        }
    }

    fn yes() -> Answer {
        Answer {
            text: "yes".to_owned(),
            tool_calls: Vec::new(),
            usage: Usage::default(),
            reported_prompt_tokens: None,
            raw_message: String::new(),
            finish: Finish::Stop,
        }
    }

    fn down() -> ModelError {
        ModelError::Unavailable {
            cause: "503".to_owned(),
        }
    }

    fn wait(wait_ms: u64) -> ModelError {
        ModelError::RetryAfter {
            wait_ms: Some(wait_ms),
        }
    }

    const POLICY: RetryPolicy = RetryPolicy {
        retries: 2,
        wait_first_ms: 1,
        wait_max_ms: 2,
        deadline_ms: 60_000,
    };

    /// The outcome, and how many replies were not used.
    async fn run(
        replies: Vec<Result<Answer, ModelError>>,
        policy: RetryPolicy,
    ) -> (Result<Answer, ModelError>, usize) {
        let scripted = Arc::new(Scripted {
            replies: Mutex::new(replies.into()),
        });
        let model = Retrying::new(scripted.clone(), policy);
        let outcome = model.complete(&Request::of(&[])).await;
        let left = scripted.replies.lock().unwrap().len();
        (outcome, left)
    }

    #[tokio::test]
    async fn each_attempt_is_timed() {
        struct Named(Scripted);
        impl Model for Named {
            fn name(&self) -> &'static str {
                "timed"
            }
            fn complete<'a>(
                &'a self,
                request: &'a Request<'a>,
            ) -> BoxFuture<'a, Result<Answer, ModelError>> {
                self.0.complete(request)
            }
        }
        let scripted = Scripted {
            replies: Mutex::new(vec![Err(down()), Ok(yes())].into()),
        };
        let model = Retrying::new(Arc::new(Named(scripted)), POLICY);
        model.complete(&Request::of(&[])).await.unwrap();
        let timed = ASKED.read().into_iter().filter(|it| it.0 == "timed");
        let counts: Vec<_> = timed
            .map(|(_, outcome, took)| (outcome, took.counts.iter().sum::<u64>()))
            .collect();
        assert_eq!(counts, [("answered", 1), ("failed", 1)]);
    }

    #[tokio::test]
    async fn it_asks_again_as_often_as_allowed() {
        let replies = vec![Err(down()), Err(wait(1)), Ok(yes())];
        assert_eq!(run(replies, POLICY).await, (Ok(yes()), 0));
        let replies = vec![Err(down()), Err(wait(1)), Err(down()), Ok(yes())];
        assert_eq!(run(replies, POLICY).await, (Err(down()), 1));
    }

    #[tokio::test]
    async fn what_is_for_good_is_not_asked_again() {
        let refused = ModelError::Refused {
            reason: "401".to_owned(),
        };
        for error in [refused, ModelError::Empty, ModelError::Truncated] {
            let replies = vec![Err(error.clone()), Ok(yes())];
            assert_eq!(run(replies, POLICY).await, (Err(error), 1));
        }
    }

    #[tokio::test]
    async fn a_wait_that_is_long_or_unsaid_is_left_to_the_caller() {
        let unsaid = ModelError::RetryAfter { wait_ms: None };
        for error in [wait(3), wait(300_000), unsaid] {
            let replies = vec![Err(error.clone()), Ok(yes())];
            assert_eq!(run(replies, POLICY).await, (Err(error), 1));
        }
        let late = RetryPolicy {
            deadline_ms: 0,
            ..POLICY
        };
        let replies = vec![Err(down()), Ok(yes())];
        assert_eq!(run(replies, late).await, (Err(down()), 1));
    }

    /// A model that sends the listener some text before each reply.
    struct Talking(Scripted);

    impl Model for Talking {
        fn name(&self) -> &'static str {
            "talking"
        }

        fn complete<'a>(
            &'a self,
            request: &'a Request<'a>,
        ) -> BoxFuture<'a, Result<Answer, ModelError>> {
            let reply = self.0.replies.lock().unwrap().pop_front().unwrap();
            if reply != Err(wait(1)) {
                request.listener.unwrap().text("so");
            }
            Box::pin(std::future::ready(reply))
        }
    }

    #[derive(Default)]
    struct Heard(Mutex<Vec<&'static str>>);

    impl Listener for Heard {
        fn text(&self, _delta: &str) {
            self.0.lock().unwrap().push("text");
        }

        fn restart(&self) {
            self.0.lock().unwrap().push("restart");
        }
    }

    #[tokio::test]
    async fn what_was_heard_of_a_failed_answer_is_taken_back_and_only_that() {
        let heard = async |replies: Vec<Result<Answer, ModelError>>| {
            let scripted = Scripted {
                replies: Mutex::new(replies.into()),
            };
            let model = Retrying::new(Arc::new(Talking(scripted)), POLICY);
            let heard = Heard::default();
            let request = Request {
                listener: Some(&heard),
                ..Request::of(&[])
            };
            let outcome = model.complete(&request).await;
            (outcome, heard.0.into_inner().unwrap())
        };
        assert_eq!(
            heard(vec![Err(down()), Err(wait(1)), Ok(yes())]).await,
            (Ok(yes()), vec!["text", "restart", "text"])
        );
        assert_eq!(
            heard(vec![Err(ModelError::Empty)]).await,
            (Err(ModelError::Empty), vec!["text", "restart"])
        );
    }

    #[tokio::test]
    async fn retry_after_is_waited_for() {
        let started = Instant::now();
        let patient = RetryPolicy {
            wait_max_ms: 1_000,
            ..POLICY
        };
        let (outcome, _) = run(vec![Err(wait(30)), Ok(yes())], patient).await;
        assert_eq!(outcome, Ok(yes()));
        assert!(started.elapsed() >= Duration::from_millis(30));
    }
}
