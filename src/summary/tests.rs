//! Summaries from captured turns to prompts: the real store and worker, a scripted model.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;

mod a_deleted_message;

use super::summarizer::Summarizer;
use crate::agent::models::Models;
use crate::agent::prompting::{PromptRequest, build_prompt};
use crate::agent::recall::RecallFrom;
use crate::agent::registry::{AgentSpec, BackgroundModel, ModelUse, Registry};
use crate::capture::clock::Clock;
use crate::capture::gate::Gate;
use crate::capture::wake::Wake;
use crate::config::{Agent, Config, Environment, Template};
use crate::counters::{CountedEvent, Counters};
use crate::delivery::rooms::Rooms;
use crate::llm::{Answer, Model, ModelError, Offline, Request};
use vocative_core::addressing::{RunVerdict, Verdict};
use vocative_core::given::Given;
use vocative_core::ids::{AccountId, AgentName, ConversationId};
use vocative_core::job::{Job, JobKind};
use vocative_core::judging::testing::policy;
use vocative_core::options::AssemblerOptions;
use vocative_core::place::ChatName;
use vocative_core::price::Prices;
use vocative_core::prompting::{OmissionReason, Prompt, RunView};
use vocative_core::queueing::{Outcome, back_off_ms};
use vocative_core::run::Finish;
use vocative_core::run::Usage;
use vocative_core::search::SearchReach;
use vocative_core::summary::{Summary, SummaryState};
use vocative_core::tokens::TokenRatio;
use vocative_core::turn::ParticipantKind;
use vocative_store::contract::{AccountBinding, Captured, NewMessage};
use vocative_store::{ExpiryBounds, Store, StoreOptions, Working};

const NOW_MS: i64 = 1_700_000_000_000;

/// A model that answers as it is told and remembers what it was asked.
#[derive(Default)]
struct Scripted {
    requests: Mutex<Vec<String>>,
    /// What it answers to the request of that number; else a good summary.
    exceptions: BTreeMap<usize, &'static str>,
    /// It never answers.
    hangs: bool,
}

impl Scripted {
    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Model for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let asked = request.messages.last().unwrap().content.clone();
        let mut requests = self.requests.lock().unwrap();
        let number = requests.len() + 1;
        let marker = if asked.contains("pelican") {
            " pelican"
        } else {
            ""
        };
        requests.push(asked);
        let text = match self.exceptions.get(&number) {
            Some(&"dead") => {
                let cause = "no route".to_owned();
                return Box::pin(std::future::ready(Err(ModelError::Unavailable { cause })));
            }
            Some(text) => (*text).to_owned(),
            None => format!(r#"{{"summary": "summary {number}{marker}"}}"#),
        };
        let answer = Answer {
            text,
            usage: Usage {
                prompt_tokens: 70,
                completion_tokens: 30,
                ..Usage::default()
            },
            reported_prompt_tokens: None,
            raw_message: String::new(),
            tool_calls: Vec::new(),
            finish: Finish::Stop,
        };
        if self.hangs {
            return Box::pin(std::future::pending());
        }
        Box::pin(std::future::ready(Ok(answer)))
    }
}

struct Stage {
    store: Store,
    account: AccountId,
    conversation: Option<ConversationId>,
    model: Arc<Scripted>,
    spec: AgentSpec,
    worker: Summarizer,
    counters: Arc<Counters>,
    /// Where.
    chat: &'static str,
    /// Who speaks.
    sender: SenderKind,
    now_ms: Arc<AtomicI64>,
}

fn model_use(name: &str) -> ModelUse {
    ModelUse {
        name: name.to_owned(),
        max_parallel: 4,
        prices: Prices::default(),
        currency: "USD".to_owned(),
        max_output_tokens: 1_000,
    }
}

/// An agent whose summaries that model makes.
fn spec(asked: Option<Arc<dyn Model>>) -> AgentSpec {
    let text = "[agents.kael]\nrun_deadline_s = 10\nmax_steps = 1\n";
    let file = Some((std::path::Path::new("kael.toml"), text));
    let environment = Environment::from([("HOME", "/home/ada")]);
    let (config, _) = Config::from_text(file, &environment).unwrap();
    let agent = Agent {
        instructions: Template::default(),
        situation: Template::default(),
        ..config.agents[&AgentName::trusted("kael")].clone()
    };
    let model = |model, name| BackgroundModel {
        model,
        model_use: model_use(name),
        context_limit: None,
        answer_reserve: 0,
    };
    AgentSpec {
        summary_model: asked.map(|it| model(it, "summaries")),
        ..AgentSpec::new(Arc::new(agent), model(Arc::new(Offline), "test"))
    }
}

impl Stage {
    async fn with(model: Scripted) -> Self {
        let model = Arc::new(model);
        let asked: Arc<dyn Model> = model.clone();
        Self::open(Some(asked), model).await
    }

    async fn open(asked: Option<Arc<dyn Model>>, model: Arc<Scripted>) -> Self {
        Self::open_at(None, asked, model).await
    }

    async fn open_at(
        path: Option<PathBuf>,
        asked: Option<Arc<dyn Model>>,
        model: Arc<Scripted>,
    ) -> Self {
        let options = StoreOptions {
            path,
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, NOW_MS).unwrap();
        let binding = AccountBinding {
            channel: "acme".to_owned(),
            platform: Platform::Slack,
            account: "T1".to_owned(),
            name: "Acme".to_owned(),
        };
        let account = store.bind_account(binding, NOW_MS).await.unwrap();
        let spec = spec(asked);
        let registry = Registry::default();
        registry.replace(vec![spec.clone()]);
        let counters: Arc<Counters> = Arc::default();
        let now_ms = Arc::new(AtomicI64::new(NOW_MS));
        let wake = Wake::default();
        let clock: Clock = Arc::new(|| NOW_MS);
        let models = Models::new(store.only(), registry.clone(), wake.clone(), clock);
        let worker = Summarizer {
            store: store.only(),
            rooms: Rooms::default(),
            registry,
            models,
            wake,
            clock: {
                let now_ms = Arc::clone(&now_ms);
                Arc::new(move || now_ms.load(Relaxed))
            },
            counters: Arc::clone(&counters),
            looked: Mutex::default(),
        };
        Self {
            store,
            account,
            conversation: None,
            model,
            spec,
            worker,
            counters,
            chat: "C1",
            sender: SenderKind::Person,
            now_ms,
        }
    }

    /// Somebody addresses the agent, too late to be answered. Its number is its id and its second.
    async fn say(&mut self, number: i64, text: &str) {
        self.capture(number, text, number * 1_000, None).await;
    }

    /// Somebody addresses the agent at a time, or edits what was said then.
    fn message(&self, number: i64, text: &str, at_ms: i64, edit: Option<&str>) -> NewMessage {
        NewMessage {
            account: self.account,
            place: Place {
                chat: self.chat.to_owned(),
                kind: Some(ChatKind::Public),
                ..Place::default()
            },
            scope_override: None,
            message_id: number.to_string(),
            sender: Sender {
                id: "U1".to_owned(),
                display_name: Some("Ada".to_owned()),
                username: None,
                kind: self.sender,
                is_stranger: false,
            },
            sender_kind: match self.sender {
                SenderKind::Person => ParticipantKind::User,
                _ => ParticipantKind::Agent,
            },
            text: text.to_owned(),
            attachments: Vec::new(),
            reply_to: None,
            quote: None,
            album: None,
            sent_at_ms: at_ms,
            ordinal: number,
            edit_marker: edit.map(str::to_owned),
            is_edit: edit.is_some(),
            received_at_ms: NOW_MS,
            tokens: None,
            keep_revisions: false,
            raw: None,
            judge_follow_up: None,
            judge: Box::new(|_| Verdict {
                is_admitted: true,
                addressed_to: vec![AgentName::trusted("kael")],
                runs: RunVerdict::TooOld,
                ..Verdict::default()
            }),
        }
    }

    async fn capture(&mut self, number: i64, text: &str, at_ms: i64, edit: Option<&str>) {
        let message = self.message(number, text, at_ms, edit);
        match self.store.capture_message(message).await.unwrap() {
            Captured::New(turn) | Captured::Revised(turn) => {
                self.conversation = Some(turn.conversation);
            }
            other => panic!("{other:?}"),
        }
    }

    async fn say_all(&mut self, numbers: std::ops::RangeInclusive<i64>) {
        for number in numbers {
            self.say(number, &text_of(number)).await;
        }
    }

    async fn summaries(&self) -> Vec<Summary> {
        let id = self.conversation.unwrap();
        self.store.summaries(id, None).await.unwrap()
    }

    async fn prompt(&self) -> Prompt {
        let request = PromptRequest {
            given: Given::default(),
            network: None,
            task: None,
            conversation: self.conversation.unwrap(),
            run: RunView::default(),
            as_of_ms: NOW_MS,
            ratio: TokenRatio::ONE,
            recall: RecallFrom::default(),
            memory: None,
        };
        let built = build_prompt(&self.store.only(), &self.spec, None, request).await;
        built.unwrap().prompt
    }

    /// Looks, as what was set aside is made again only after a quiet time; and again after that.
    async fn once_it_is_quiet(&self) -> usize {
        assert_eq!(self.worker.once().await.unwrap(), 0);
        self.now_ms.fetch_add(600_000, Relaxed);
        self.worker.once().await.unwrap()
    }

    async fn delete(&self, id: &str) {
        let gone = self.store.capture_delete(self.account, "C1", id, NOW_MS);
        gone.await.unwrap();
    }

    /// The prompt's text.
    async fn shown(&self) -> String {
        let prompt = self.prompt().await;
        let lines: Vec<String> = prompt.messages.into_iter().map(|m| m.content).collect();
        lines.join("\n")
    }

    fn failed(&self) -> u64 {
        self.counters.of(CountedEvent::SummariesFailed)
    }
}

/// Long enough that something that cuts turns would show.
fn text_of(number: i64) -> String {
    let marker = if number == 1 { "pelican" } else { "heron" };
    format!(
        "{} {marker} {} {}",
        begins(number),
        "x".repeat(300),
        ends(number)
    )
}

fn begins(number: i64) -> String {
    format!("turn-{}-begins", spelt(number))
}

fn ends(number: i64) -> String {
    format!("turn-{}-ends", spelt(number))
}

/// A number in letters: a summary is held to what is written in digits.
fn spelt(number: i64) -> String {
    let letter = |digit: char| char::from(b'a' + digit.to_digit(10).unwrap() as u8);
    number.to_string().chars().map(letter).collect()
}

/// Failures to beat: history_semantics 2.2, 11 to 14.
#[tokio::test]
async fn over_five_folds_each_turn_is_read_in_full_once_and_the_first_fact_survives() {
    let mut stage = Stage::with(Scripted::default()).await;
    stage.say_all(1..=10).await;
    for fold in 0..5 {
        stage.say_all(fold * 40 + 11..=fold * 40 + 50).await;
        assert_eq!(stage.worker.once().await.unwrap(), 1);
        assert_eq!(stage.worker.once().await.unwrap(), 0);
    }
    let requests = stage.model.requests();
    assert_eq!(requests.len(), 5);
    for number in 1..=200 {
        let text = text_of(number);
        let holding = requests.iter().filter(|asked| asked.contains(&text));
        assert_eq!(holding.count(), 1, "turn {number}");
    }
    for number in 201..=210 {
        let text = text_of(number);
        assert!(
            !requests.iter().any(|asked| asked.contains(&text)),
            "turn {number}"
        );
    }
    assert!(requests[0].starts_with("Summary so far:\n(nothing)\n"));
    for (index, asked) in requests.iter().enumerate().skip(1) {
        let previous = format!("Summary so far:\nsummary {index} pelican\n");
        assert!(asked.starts_with(&previous), "request {}", index + 1);
    }
    let all = stage.summaries().await;
    assert_eq!(all.iter().map(|s| s.turns).collect::<Vec<_>>(), [40; 5]);
    assert!(
        all.windows(2)
            .all(|pair| pair[1].previous == Some(pair[0].id))
    );

    let prompt = stage.prompt().await;
    assert!(prompt.has_summary);
    let first = &prompt.messages[0].content;
    assert!(first.ends_with("summary 5 pelican"), "{first}");
    assert_eq!(prompt.turns.len(), 10);
}

/// A room with numbers in it, and what is made of it by a model that answers so.
async fn with_numbers(exceptions: &[(usize, &'static str)]) -> (Stage, String) {
    let mut stage = Stage::with(Scripted {
        exceptions: exceptions.iter().copied().collect(),
        ..Scripted::default()
    })
    .await;
    stage.say(1, "the rent is 1,250").await;
    stage.say(2, "our customer number is K-77-31").await;
    for number in 3..=60 {
        stage.say(number, "nothing new").await;
    }
    assert_eq!(stage.worker.once().await.unwrap(), 1);
    let summary = stage.summaries().await.remove(0).text;
    (stage, summary)
}

#[tokio::test]
async fn a_summary_that_lost_the_numbers_is_asked_for_once_more() {
    let whole = r#"{"summary": "Money.", "facts": ["The rent is 1,250", "Ada: we are K-77-31"]}"#;
    let (stage, summary) = with_numbers(&[(2, whole)]).await;
    assert_eq!(
        summary,
        "Money.\n- The rent is 1,250\n- Ada: we are K-77-31"
    );
    let requests = stage.model.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].contains("1,250 | k-77-31"), "{}", requests[1]);
    assert_eq!(stage.counters.of(CountedEvent::SummariesAskedAgain), 1);
}

#[tokio::test]
async fn whatever_becomes_of_the_second_request_the_first_answer_stands() {
    for second in [
        "dead",
        "I'm sorry, I can't.",
        r#"{"summary": "summary again"}"#,
    ] {
        let (stage, summary) = with_numbers(&[(2, second)]).await;
        assert_eq!(summary, "summary 1", "{second}");
        assert_eq!(stage.model.requests().len(), 2);
        assert_eq!(stage.failed(), 0);
    }
}

#[tokio::test]
async fn a_summary_that_kept_the_numbers_is_asked_for_once() {
    let whole = r#"{"summary": "The rent is 1,250, the number K-77-31."}"#;
    let (stage, _) = with_numbers(&[(1, whole)]).await;
    assert_eq!(stage.model.requests().len(), 1);
    assert_eq!(stage.counters.of(CountedEvent::SummariesAskedAgain), 0);
}

#[tokio::test]
async fn an_answer_that_is_no_summary_changes_no_row_and_is_counted() {
    for refusal in [
        "I'm sorry, I can't help with that.",
        "{}",
        r#"{"summary": ""}"#,
        r#"{"summary": "I cannot do that."}"#,
        "dead",
    ] {
        let exceptions = BTreeMap::from([(3, refusal)]);
        let mut stage = Stage::with(Scripted {
            exceptions,
            ..Scripted::default()
        })
        .await;
        stage.say_all(1..=10).await;
        for fold in 0..2 {
            stage.say_all(fold * 40 + 11..=fold * 40 + 50).await;
            assert_eq!(stage.worker.once().await.unwrap(), 1);
        }
        let before = stage.summaries().await;
        stage.say_all(91..=130).await;
        assert_eq!(stage.worker.once().await.unwrap(), 0, "{refusal}");
        assert_eq!(stage.summaries().await, before, "{refusal}");
        assert_eq!(stage.failed(), 1, "{refusal}");
        // The summary before it stands, and what it does not cover is left out by the budget only.
        let prompt = stage.prompt().await;
        assert!(prompt.messages[0].content.ends_with("summary 2 pelican"));
        assert!(
            prompt
                .omitted
                .iter()
                .all(|o| o.why == OmissionReason::OverBudget || !o.why.is_whole())
        );
        stage.spec.options.token_budget = 10_000;
        let prompt = stage.prompt().await;
        assert_eq!((prompt.omitted.len(), prompt.turns.len()), (0, 50));
        // The next try makes up for it, with everything since.
        assert_eq!(stage.worker.once().await.unwrap(), 1, "{refusal}");
        assert_eq!(stage.summaries().await.len(), 3);
        let last = stage.model.requests().pop().unwrap();
        assert!(last.contains(&ends(81)) && last.contains(&ends(120)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_is_given_up_and_asked_again_less_and_less_often() {
    let mut stage = Stage::with(Scripted {
        hangs: true,
        ..Scripted::default()
    })
    .await;
    stage.say_all(1..=50).await;
    let conversation = stage.conversation.unwrap();
    let failed = stage.worker.summarize(conversation).await.unwrap();
    assert!(matches!(failed, Outcome::Failed { .. }), "{failed:?}");
    assert_eq!(stage.model.requests().len(), 1);
    assert_eq!(stage.summaries().await, []);
    let waits_s = |attempts| back_off_ms(JobKind::SummarizeConversation, attempts) / 1_000;
    assert_eq!([1, 2, 3, 20].map(waits_s), [30, 60, 120, 3_600]);
}

#[tokio::test]
async fn what_can_be_folded_is_queued_once_and_folded_a_part_at_a_time() {
    let mut stage = Stage::with(Scripted::default()).await;
    stage.say_all(1..=50).await;
    let conversation = stage.conversation.unwrap();
    // Nothing is looked at before something was said, or a minute is over.
    assert_eq!(stage.worker.due().await.unwrap(), []);
    stage.worker.wake.summaries.notify_one();
    let due = stage.worker.due().await.unwrap();
    assert_eq!(due.len(), 1);
    assert_eq!(
        (due[0].conversation, due[0].account),
        (conversation, stage.account)
    );
    let store: Store<Working> = stage.store.only();
    let job = Job::SummarizeConversation { conversation };
    let account = Some(stage.account);
    store.enqueue_job(job, account, NOW_MS).await.unwrap();
    stage.worker.wake.summaries.notify_one();
    assert_eq!(stage.worker.due().await.unwrap(), []);
    let made = stage.worker.summarize(conversation).await.unwrap();
    assert!(
        matches!(
            made,
            Outcome::Later {
                not_before_ms: NOW_MS,
                ..
            }
        ),
        "{made:?}"
    );
    assert_eq!(stage.summaries().await.len(), 1);
    let done = stage.worker.summarize(conversation).await.unwrap();
    assert_eq!(done, Outcome::Done);
}

/// Promise 15: no prompt after the delete holds it, before anything is made again.
#[tokio::test]
async fn a_deleted_turn_is_out_of_the_next_prompt_before_any_rebuild() {
    let mut stage = Stage::with(Scripted::default()).await;
    stage.say(1, "hello").await;
    for number in 2..=50 {
        let text = if number == 7 {
            "the pelican code"
        } else {
            "chat"
        };
        stage.say(number, text).await;
    }
    assert_eq!(stage.worker.once().await.unwrap(), 1);
    assert!(stage.shown().await.contains("pelican"));
    stage
        .store
        .capture_delete(stage.account, "C1", "7", NOW_MS)
        .await
        .unwrap();
    assert!(!stage.shown().await.contains("pelican"));
    assert!(!stage.prompt().await.has_summary);
    let states: Vec<_> = stage
        .summaries()
        .await
        .into_iter()
        .map(|s| s.state)
        .collect();
    assert_eq!(states, [SummaryState::Void]);

    assert_eq!(stage.once_it_is_quiet().await, 1);
    assert!(!stage.model.requests()[1].contains("pelican"));
    let states: Vec<_> = stage
        .summaries()
        .await
        .into_iter()
        .map(|s| s.state)
        .collect();
    assert_eq!(states, [SummaryState::Current]);
}

#[tokio::test]
async fn an_edit_or_a_late_turn_is_made_good_from_the_last_checkpoint_before_it() {
    for change in ["edit", "late"] {
        let mut stage = Stage::with(Scripted::default()).await;
        stage.say_all(1..=10).await;
        for fold in 0..3 {
            stage.say_all(fold * 40 + 11..=fold * 40 + 50).await;
            stage.worker.once().await.unwrap();
        }
        if change == "edit" {
            stage.capture(60, "the swan", 60_000, Some("9")).await;
        } else {
            stage.capture(999, "the swan", 60_500, None).await;
        }
        let prompt = stage.prompt().await;
        assert!(
            prompt.messages[0].content.ends_with("summary 1 pelican"),
            "{change}"
        );
        assert_eq!(stage.once_it_is_quiet().await, 1, "{change}");
        let again = stage.model.requests()[3].clone();
        assert!(
            again.starts_with("Summary so far:\nsummary 1 pelican\n"),
            "{change}"
        );
        assert!(again.contains("the swan"), "{change}");
        assert!(
            again.contains(&ends(41)) && !again.contains(&ends(40)),
            "{change}"
        );
        let states: Vec<_> = stage
            .summaries()
            .await
            .into_iter()
            .map(|s| s.state)
            .collect();
        // The eighty turns are two steps.
        assert_eq!(states, [SummaryState::Current; 3], "{change}");
    }
}

/// Promise 11. Killed between request and answer, or with every summary set aside: cost changes,
/// not truth.
#[tokio::test]
async fn without_summaries_prompts_are_truncated_and_nothing_is_lost() {
    let model = Scripted {
        hangs: true,
        ..Scripted::default()
    };
    let mut stage = Stage::with(model).await;
    stage.say_all(1..=60).await;
    let before = stage.prompt().await;
    assert!(!before.has_summary && !before.messages.is_empty());
    {
        let dying = stage.worker.once();
        tokio::pin!(dying);
        // Polled until it has asked; then dropped, as by a kill.
        while stage.model.requests().is_empty() {
            tokio::select! {
                biased;
                _ = &mut dying => panic!("a hanging model answers nothing"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    assert_eq!(stage.summaries().await, []);
    assert_eq!(stage.prompt().await, before);
}

/// Sixty short turns, a budget that has room for all of them, and no summary that can be used.
#[tokio::test]
async fn nothing_is_dropped_while_tokens_are_free_whatever_became_of_the_summary() {
    let lines = |stage: &Stage| {
        let id = stage.conversation.unwrap();
        (stage.store.clone(), id)
    };
    for trouble in [
        "never asked",
        "dead",
        "Sorry, no.",
        "{}",
        "set aside",
        "deleted",
        "partial",
    ] {
        let mut model = Scripted::default();
        if ["dead", "Sorry, no.", "{}"].contains(&trouble) {
            model.exceptions = (1..=9).map(|n| (n, trouble)).collect();
        }
        let mut stage = Stage::with(model).await;
        for number in 1..=60 {
            stage.say(number, &format!("line {number}.")).await;
        }
        let (store, id) = lines(&stage);
        let mut unread = BTreeSet::new();
        if trouble != "never asked" {
            stage.worker.once().await.unwrap();
        }
        match trouble {
            "set aside" => {
                assert!(stage.prompt().await.has_summary);
                store.set_summaries_aside(id, None, false).await.unwrap();
            }
            "deleted" => {
                let account = stage.account;
                let gone = store.capture_delete(account, "C1", "20", NOW_MS).await;
                gone.unwrap();
                unread.insert(20);
            }
            "partial" => {
                // What came since is over the threshold again, and the model does not answer.
                for number in 61..=120 {
                    stage.say(number, &format!("line {number}.")).await;
                }
                unread.extend(1..=50);
            }
            _ => {}
        }
        let prompt = stage.prompt().await;
        assert_eq!(prompt.has_summary, trouble == "partial", "{trouble}");
        assert!(prompt.omitted.is_empty(), "{trouble}: {:?}", prompt.omitted);
        assert!(prompt.tokens < 2_000, "{trouble}: {}", prompt.tokens);
        let said: Vec<&str> = prompt
            .messages
            .iter()
            .map(|m| m.content.as_str())
            .filter(|said| said.starts_with("Ada"))
            .collect();
        let newest = if trouble == "partial" { 120 } else { 60 };
        let expected: Vec<String> = (1..=newest)
            .filter(|number| !unread.contains(number))
            .map(|number| format!("Ada: line {number}."))
            .collect();
        assert_eq!(said, expected, "{trouble}");
    }
}

#[tokio::test]
async fn what_is_not_read_any_more_is_folded_before_the_threshold() {
    let mut stage = Stage::with(Scripted::default()).await;
    stage.spec.options.max_turns_to_load = 20;
    stage.worker.registry.replace(vec![stage.spec.clone()]);
    stage.say_all(1..=21).await;
    assert_eq!(stage.worker.once().await.unwrap(), 1);
    assert!(stage.prompt().await.has_summary);
}

/// Scheduled posts and other bots: nobody else speaks, or seldom.
#[tokio::test]
async fn a_room_of_bots_is_folded_before_its_past_is_cut() {
    for people in [0, 3, 12] {
        let mut stage = Stage::with(Scripted::default()).await;
        for number in 1..=200 {
            // The people spoke first, and not again.
            let is_person = number <= people;
            stage.sender = if is_person {
                SenderKind::Person
            } else {
                SenderKind::Bot
            };
            stage.say(number, &format!("report {number}.")).await;
            stage.worker.once().await.unwrap();
            let prompt = stage.prompt().await;
            let without_summary = prompt.turns.len();
            assert!(
                without_summary <= 61,
                "{people} at {number}: {without_summary}"
            );
            assert!(
                prompt.omitted.is_empty() && !prompt.has_older,
                "{people} at {number}"
            );
        }
        let requests = stage.model.requests();
        let together = requests.join("\n");
        for number in 1..=160 {
            let said = format!("report {number}.\n");
            assert_eq!(together.matches(&said).count(), 1, "{people}: {said}");
        }
        // A request for some twenty turns, not one for each.
        assert!(requests.len() <= 10, "{people}: {}", requests.len());
    }
}

#[tokio::test]
async fn what_summaries_cost_is_counted_and_they_end_with_the_tokens_of_the_day() {
    let no_summary = [(1, "no"), (2, "no")];
    let mut stage = Stage::with(Scripted {
        exceptions: BTreeMap::from(no_summary),
        ..Scripted::default()
    })
    .await;
    stage.say_all(1..=50).await;
    let spent = async |stage: &Stage| {
        let spent = stage.store.spent_today(stage.account, None, NOW_MS).await;
        spent.unwrap().by_account.tokens
    };
    // What is no summary costs as much as one.
    stage.worker.once().await.unwrap();
    assert_eq!(
        (stage.model.requests().len(), spent(&stage).await),
        (1, 100)
    );
    let capped = |tokens_per_day| {
        let mut policy = policy();
        policy.limits.tokens_per_day = tokens_per_day;
        Arc::new(Gate::new(policy))
    };
    stage.worker.rooms.set_gate(stage.account, capped(100));
    assert_eq!(stage.worker.once().await.unwrap(), 0);
    assert_eq!(
        (stage.model.requests().len(), spent(&stage).await),
        (1, 100)
    );
    stage.worker.rooms.set_gate(stage.account, capped(101));
    stage.worker.once().await.unwrap();
    assert_eq!(
        (stage.model.requests().len(), spent(&stage).await),
        (2, 200)
    );
}

#[tokio::test]
async fn set_aside_summaries_are_made_again_from_the_first_turn() {
    let mut stage = Stage::with(Scripted::default()).await;
    stage.say_all(1..=50).await;
    stage.worker.once().await.unwrap();
    let id = stage.conversation.unwrap();
    stage
        .store
        .set_summaries_aside(id, None, false)
        .await
        .unwrap();
    assert!(!stage.prompt().await.has_summary);
    assert_eq!(stage.worker.once().await.unwrap(), 1);
    let requests = stage.model.requests();
    assert_eq!(requests[0], requests[1]);
    assert_eq!(stage.summaries().await.len(), 1);
}

#[tokio::test]
async fn a_small_context_folds_in_several_steps_and_cuts_no_turn() {
    let mut stage = Stage::with(Scripted::default()).await;
    let mut spec = stage.spec.clone();
    let summariser = spec.summary_model.as_mut().unwrap();
    summariser.context_limit = Some(2_000);
    stage.worker.registry.replace(vec![spec]);
    let long = (0..2_000)
        .map(|n| format!("w{} ", spelt(n)))
        .collect::<String>();
    stage.say(1, &long).await;
    stage.say_all(2..=50).await;
    assert_eq!(stage.worker.once().await.unwrap(), 1);
    let requests = stage.model.requests();
    assert!(requests.len() > 3, "{}", requests.len());
    let together = requests.join("\n");
    let words: Vec<&str> = together.split_whitespace().collect();
    for number in 0..2_000 {
        let word = format!("w{}", spelt(number));
        let times = words.iter().filter(|found| **found == word).count();
        assert_eq!(times, 1, "{word}");
    }
    for number in 2..=40 {
        assert_eq!(
            together.matches(&text_of(number)).count(),
            1,
            "turn {number}"
        );
    }
    let folded: u64 = stage.summaries().await.iter().map(|s| s.turns).sum();
    assert_eq!(folded, 40);
}

/// A stage whose summary model takes 1,000 tokens or so at once; the fifth of its turns is longer.
async fn stage_with_a_long_turn(model: Scripted) -> Stage {
    let mut stage = Stage::with(model).await;
    let mut spec = stage.spec.clone();
    spec.summary_model.as_mut().unwrap().context_limit = Some(2_000);
    stage.worker.registry.replace(vec![spec]);
    stage.say_all(2..=5).await;
    let long = (0..1_500)
        .map(|n| format!("w{} ", spelt(n)))
        .collect::<String>();
    stage.say(6, &format!("pelican {long}")).await;
    stage.say_all(7..=52).await;
    stage
}

/// The answer to the request about the long turn's beginning mentions it; the stored step before it
/// must not.
#[tokio::test]
async fn a_long_turn_is_stored_whole_or_not_at_all_and_folded_once() {
    for change in ["edit", "delete", "failure"] {
        let mut model = Scripted::default();
        if change == "failure" {
            model.exceptions = BTreeMap::from([(3, "{}")]);
        }
        let mut stage = stage_with_a_long_turn(model).await;
        stage.worker.once().await.unwrap();
        match change {
            "failure" => {
                let stored = stage.summaries().await;
                assert_eq!(stored.len(), 1, "{stored:?}");
                assert_eq!(stored[0].turns, 4);
                assert!(!stored[0].text.contains("pelican"), "{stored:?}");
                stage.worker.once().await.unwrap();
                let again = &stage.model.requests()[3];
                assert!(again.starts_with("Summary so far:\nsummary 1\n"), "{again}");
            }
            "edit" => stage.capture(6, "the swan", 6_000, Some("9")).await,
            _ => {
                let gone = stage.store.capture_delete(stage.account, "C1", "6", NOW_MS);
                gone.await.unwrap();
            }
        }
        let current: Vec<Summary> = stage
            .summaries()
            .await
            .into_iter()
            .filter(|summary| summary.state == SummaryState::Current)
            .collect();
        if change == "failure" {
            let folded: u64 = current.iter().map(|summary| summary.turns).sum();
            assert_eq!(folded, 41);
        } else {
            assert_eq!(current.len(), 1, "{change}: {current:?}");
            assert!(!stage.shown().await.contains("pelican"), "{change}");
        }
    }
}

/// The turns of a fold are read once and go over several requests.
#[tokio::test]
async fn what_is_deleted_between_two_requests_is_in_no_later_one() {
    let stage = stage_with_a_long_turn(Scripted::default()).await;
    let (store, account) = (stage.store.clone(), stage.account);
    let model = Arc::new(Interrupted {
        scripted: Scripted::default(),
        then: Box::new(move || {
            let store = store.clone();
            Box::pin(async move {
                let gone = store.capture_delete(account, "C1", "6", NOW_MS).await;
                gone.unwrap();
            })
        }),
    });
    let mut spec = stage.spec.clone();
    let summariser = spec.summary_model.as_mut().unwrap();
    (summariser.context_limit, summariser.model) = (Some(2_000), model.clone());
    stage.worker.registry.replace(vec![spec]);
    stage.worker.once().await.unwrap();
    let first = model.scripted.requests();
    assert_eq!(
        first
            .iter()
            .filter(|asked| asked.contains("pelican"))
            .count(),
        1
    );
    let quiet = stage.worker.once().await.unwrap();
    assert_eq!(quiet, 1, "nothing that was in use was set aside");
    let requests = model.scripted.requests();
    assert!(requests.len() > first.len());
    assert!(
        !requests[first.len()..]
            .iter()
            .any(|asked| asked.contains("pelican"))
    );
    let stored = stage.summaries().await;
    assert!(
        stored
            .iter()
            .all(|summary| !summary.text.contains("pelican")),
        "{stored:?}"
    );
}

/// A model that does something when it is asked of a pelican.
struct Interrupted {
    scripted: Scripted,
    then: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl Model for Interrupted {
    fn name(&self) -> &'static str {
        "interrupted"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async {
            let asked = &request.messages.last().unwrap().content;
            if asked.contains("pelican") {
                (self.then)().await;
            }
            self.scripted.complete(request).await
        })
    }
}

#[tokio::test]
async fn somebody_who_edits_old_lines_all_day_costs_a_bounded_number_of_requests() {
    let mut stage = Stage::with(Scripted::default()).await;
    stage.say_all(1..=250).await;
    while stage.worker.once().await.unwrap() > 0 {}
    let folded = stage.model.requests().len();
    assert_eq!(folded, 5);
    // An edit of the first line each minute, for ten hours; the worker looks each time.
    for minute in 1..=600 {
        let marker = minute.to_string();
        stage
            .capture(1, &format!("the {minute}th swan"), 1_000, Some(&marker))
            .await;
        stage.now_ms.fetch_add(60_000, Relaxed);
        while stage.worker.once().await.unwrap() > 0 {}
    }
    // Once an hour all five, and not six hundred times.
    let again = stage.model.requests().len() - folded;
    assert!((5..=60).contains(&again), "{again}");
    // When it is over all is summarised with the last wording.
    stage.now_ms.fetch_add(600_000, Relaxed);
    while stage.worker.once().await.unwrap() > 0 {}
    let requests = stage.model.requests();
    assert!(
        requests
            .iter()
            .any(|asked| asked.contains("the 600th swan"))
    );
    assert!(stage.prompt().await.has_summary);
}

#[tokio::test]
async fn a_days_budget_ends_remaking_and_the_next_day_goes_on() {
    let mut stage = Stage::with(Scripted::default()).await;
    stage.spec.options.preserve_recent_turns = 1;
    stage.worker.registry.replace(vec![stage.spec.clone()]);
    // A hundred and twenty steps of fifty turns.
    for number in 1..=6_001 {
        stage.say(number, "x").await;
    }
    while stage.worker.once().await.unwrap() > 0 {}
    assert_eq!(stage.model.requests().len(), 120);
    stage.delete("1").await;
    assert_eq!(stage.worker.once().await.unwrap(), 0);
    stage.now_ms.fetch_add(600_000, Relaxed);
    while stage.worker.once().await.unwrap() > 0 {}
    assert_eq!(stage.model.requests().len(), 220);
    stage.now_ms.fetch_add(86_400_000, Relaxed);
    while stage.worker.once().await.unwrap() > 0 {}
    assert_eq!(stage.model.requests().len(), 240);
}

#[tokio::test]
async fn without_a_model_the_first_sentences_are_kept() {
    let mut stage = Stage::open(None, Arc::default()).await;
    for number in 1..=50 {
        let text = format!("Fact {number} holds. And more of it.");
        stage.say(number, &text).await;
    }
    assert_eq!(stage.worker.once().await.unwrap(), 1);
    let made = stage.summaries().await.remove(0);
    assert_eq!(made.model, "offline");
    assert!(made.text.ends_with("Ada: Fact 40 holds."), "{}", made.text);
    assert!(stage.shown().await.contains("Ada: Fact 39 holds."));
}

mod plan {
    use std::collections::BTreeSet;

    use vocative_core::folding::plan::{FoldStep, foldable, steps};
    use vocative_core::history::{HistoryRole, HistoryTurn};
    use vocative_core::ids::Seq;
    use vocative_core::prompting::Utf16Div4;
    use vocative_core::turn::{Position, TurnKind};

    fn turns(kinds: &[(TurnKind, &str)]) -> Vec<HistoryTurn> {
        let numbered = kinds.iter().zip(1..);
        numbered
            .map(|((kind, call), number)| {
                let mut read = vocative_core::prompting::testing::said(
                    number,
                    HistoryRole::Kept,
                    "alice",
                    "x",
                );
                read.turn.kind = *kind;
                read.turn.call_id = Some((*call).to_owned()).filter(|call| !call.is_empty());
                read
            })
            .collect()
    }

    fn at(number: i64) -> Position {
        Position {
            sent_at_ms: number * 1_000,
            ordinal: 0,
            seq: Seq(number),
        }
    }

    #[test]
    fn a_tool_call_and_its_result_are_never_parted() {
        use TurnKind::{Message, ToolCall, ToolResult};
        let talk = turns(&[
            (Message, ""),
            (ToolCall, "a"),
            (ToolCall, "b"),
            (ToolResult, "a"),
            (ToolResult, "b"),
            (Message, ""),
        ]);
        for (before, expected) in [(2, 1), (3, 1), (4, 1), (5, 1), (6, 5), (9, 6)] {
            assert_eq!(foldable(&talk, at(before)), expected, "{before}");
        }
        // A call whose result never came does not hold up what is before it, nor itself for ever.
        let open = turns(&[(Message, ""), (ToolCall, "a"), (Message, "")]);
        assert_eq!(foldable(&open, at(9)), 1);
        assert_eq!(foldable(&open[1..], at(9)), 2);
    }

    /// Whatever the lengths: what is stored with a step was said in the turns it stands for, and
    /// everything said in these.
    #[test]
    fn a_step_that_is_stored_holds_whole_turns_and_no_others() {
        let lengths = [0, 1, 30, 75, 90, 200, 1_000];
        for seed in 0..2_000_usize {
            // Six turns, each of one letter, with lengths by the digits of the seed.
            let mut left = seed * 37;
            let entries: Vec<String> = ('a'..='f')
                .map(|letter| {
                    let length = lengths[left % lengths.len()];
                    left /= lengths.len();
                    letter.to_string().repeat(length)
                })
                .collect();
            let mut sent = String::new();
            let steps = steps(&entries, 20, &Utf16Div4);
            for step in &steps {
                sent.push_str(&step.text);
                let Some(turns) = step.completes else {
                    continue;
                };
                let letters: BTreeSet<char> = sent.chars().filter(|c| *c != '\n').collect();
                let expected: BTreeSet<char> = entries[..turns].concat().chars().collect();
                assert_eq!(letters, expected, "{entries:?}");
                let count = sent.chars().filter(|c| *c != '\n').count();
                assert_eq!(count, entries[..turns].concat().len(), "{entries:?}");
            }
            assert_eq!(steps.last().unwrap().completes, Some(entries.len()));
        }
    }

    #[test]
    fn a_step_stands_for_a_bounded_number_of_turns() {
        let entries = vec!["x".to_owned(); 120];
        let ends: Vec<_> = steps(&entries, 16_000, &Utf16Div4)
            .into_iter()
            .map(|step| step.completes)
            .collect();
        assert_eq!(ends, [Some(50), Some(100), Some(120)]);
    }

    #[test]
    fn entries_are_packed_and_large_ones_go_over_several_steps() {
        let entries: Vec<String> = [
            "a".repeat(40),
            String::new(),
            "b".repeat(40),
            "c".repeat(100),
        ]
        .into_iter()
        .collect();
        let step = |text: String, completes| FoldStep { text, completes };
        assert_eq!(
            steps(&entries, 20, &Utf16Div4),
            [
                step(format!("{}\n{}", "a".repeat(40), "b".repeat(40)), Some(3)),
                step("c".repeat(50), None),
                step("c".repeat(50), Some(4)),
            ]
        );
    }
}

#[tokio::test]
async fn a_chat_with_options_of_its_own_is_assembled_and_folded_by_them() {
    let mut stage = Stage::with(Scripted::default()).await;
    stage.say_all(1..=51).await;
    let chat = |chat: &str| ChatName {
        channel: "acme".to_owned(),
        chat: chat.to_owned(),
    };
    let own = AssemblerOptions {
        rolling_summary_threshold: 100,
        token_budget: 500,
        trigger_max_tokens: 200,
        ..AssemblerOptions::default()
    };
    stage.spec.chat_options = BTreeMap::from([(chat("C1"), own.clone())]);
    stage.worker.registry.replace(vec![stage.spec.clone()]);
    assert_eq!(stage.worker.once().await.unwrap(), 0);
    let prompt = stage.prompt().await;
    assert!(prompt.tokens <= 500 && !prompt.has_summary);

    // Another chat's are nothing to this one.
    stage.spec.chat_options = BTreeMap::from([(chat("C2"), own)]);
    stage.worker.registry.replace(vec![stage.spec.clone()]);
    assert_eq!(stage.worker.once().await.unwrap(), 1);
    let prompt = stage.prompt().await;
    assert!(prompt.tokens > 500 && prompt.has_summary);
}

#[tokio::test]
async fn a_conversation_that_cannot_be_decoded_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.db");
    let model = Arc::new(Scripted::default());
    let mut stage = Stage::open_at(Some(path.clone()), Some(model.clone()), model).await;
    for chat in ["C1", "C2"] {
        stage.chat = chat;
        stage.say_all(1..=60).await;
    }
    // The newest is looked at first.
    let newest = stage.conversation.unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    let spoilt = "UPDATE turns SET attachments = 'zebra' WHERE conversation_id = (SELECT id FROM conversations WHERE uuid = ?1)";
    assert_eq!(
        other
            .execute(spoilt, [newest.0.as_bytes().as_slice()])
            .unwrap(),
        60
    );
    let due = stage.worker.due_among(usize::MAX).await.unwrap();
    assert_eq!(due.len(), 1);
    assert_ne!(due[0].conversation, newest);
    assert_eq!(stage.worker.once().await.unwrap(), 1);
}
