//! The two workers over a real store, with a platform and a model that do as they are told.

#![allow(clippy::unwrap_used)]

mod live;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use vocative_channels::capability::{Capabilities, LengthUnit};
use vocative_channels::channel::{BoxFuture, Intake as _, Outbound};
use vocative_channels::envelope::{
    ChatKind, Envelope, Event, InboundMessage, Place, Sender, SenderKind,
};
use vocative_channels::error::{ChannelError, Fallback};
use vocative_channels::identity::{Identity, Platform};
use vocative_channels::outbound::{Delivered, Part, Post, ReadBack, Target};
use vocative_channels::render::People;

use super::registry::{AgentSpec, Registry};
use super::step::{self, Step};
use super::worker::Worker;
use crate::capture::inbound::{ChannelIntake, Keeping};
use crate::capture::policy::{AgentPolicy, AllowList, ChannelPolicy, Limits};
use crate::capture::wake::Wake;
use crate::config::{Template, ThreadPolicy, ToolName};
use crate::delivery::after::DeliveryPolicy;
use crate::delivery::rooms::{Room, Rooms};
use crate::delivery::worker::{Clock, Worker as DeliveryWorker};
use crate::domain::addressing::Overlap;
use crate::domain::ids::{AccountId, AgentName, OwnerId};
use crate::domain::manners::Manners;
use crate::domain::options::AssemblerOptions;
use crate::domain::run::{ClaimedRun, Usage};
use crate::domain::search::SearchReach;
use crate::domain::tokens::PromptReport;
use crate::domain::turn::TokenCount;
use crate::llm::{Answer, Finish, Model, ModelError, Offline, Request};
use crate::prompt::{ClassEstimate, PromptMessage, TokenCounter as _, content_count};
use crate::store::contract::{AccountBinding, ClaimRequest, ConversationFilter, TurnFilter};
use crate::store::{Store, StoreOptions};

const WAIT: Duration = Duration::from_secs(20);

/// A platform that keeps what is posted; its next answers can be prepared.
struct FakePlatform {
    answers: Mutex<VecDeque<ChannelError>>,
    posted: watch::Sender<Vec<String>>,
    signs: watch::Sender<usize>,
    /// How long posts into a chat have to wait.
    waits: Mutex<BTreeMap<String, Duration>>,
    /// How often it was asked whether one may go that had to wait.
    asked_in_vain: AtomicUsize,
}

impl Outbound for FakePlatform {
    fn render(&self, text: &str, _people: &People) -> Vec<Part> {
        text.lines().map(Part::plain).collect()
    }

    fn render_fallback(&self, part: &Part, _fallback: Fallback) -> Vec<Part> {
        vec![part.clone()]
    }

    fn wait_before(&self, target: &Target) -> Duration {
        let waits = self.waits.lock().unwrap();
        let wait = waits.get(&target.chat).copied();
        let in_vain = usize::from(wait.is_some());
        self.asked_in_vain.fetch_add(in_vain, Ordering::Relaxed);
        wait.unwrap_or_default()
    }

    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>> {
        Box::pin(async move {
            if let Some(error) = self.answers.lock().unwrap().pop_front() {
                return Err(error);
            }
            self.posted
                .send_modify(|posted| posted.push(post.part.text.clone()));
            Ok(Delivered {
                chat: post.target.chat.clone(),
                message_id: post.marker.clone(),
                sent_at_ms: 0,
                shown: None,
            })
        })
    }

    fn read_back<'a>(
        &'a self,
        _post: &'a Post,
        _since_ms: i64,
    ) -> BoxFuture<'a, Result<ReadBack, ChannelError>> {
        Box::pin(async { Ok(ReadBack::Unsupported) })
    }

    fn show_working<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async { self.signs.send_modify(|signs| *signs += 1) })
    }

    fn person_name<'a>(
        &'a self,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        Box::pin(async { Ok(None) })
    }

    fn chat_facts<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>> {
        Box::pin(async { Ok(Place::default()) })
    }
}

/// A model that runs a closure.
struct FakeModel<F>(F);

impl<F> Model for FakeModel<F>
where
    F: Fn() -> BoxFuture<'static, Result<Answer, ModelError>> + Send + Sync,
{
    fn name(&self) -> &'static str {
        "fake"
    }

    fn complete<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        (self.0)()
    }
}

fn says(text: &str) -> Answer {
    Answer {
        text: text.to_owned(),
        tool_calls: Vec::new(),
        usage: Usage::default(),
        reported_prompt_tokens: None,
        raw_message: "{}".to_owned(),
        finish: Finish::Stop,
    }
}

struct Stage {
    store: Store,
    account: AccountId,
    platform: Arc<FakePlatform>,
    rooms: Rooms,
    wake: Wake,
    clock: Clock,
    now_ms: Arc<AtomicI64>,
    owner: OwnerId,
    stop: CancellationToken,
    drain_until: CancellationToken,
}

impl Stage {
    /// A store at a fixed time with one account and its platform.
    async fn new() -> Self {
        let now_ms = Arc::new(AtomicI64::new(1_700_000_000_000));
        let options = StoreOptions {
            path: None,
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, now_ms.load(Ordering::Relaxed)).unwrap();
        let binding = AccountBinding {
            channel: "acme".to_owned(),
            platform: Platform::Telegram,
            account: "1".to_owned(),
            name: "Acme".to_owned(),
        };
        let account = store.bind_account(binding, 0).await.unwrap();
        let platform = Arc::new(FakePlatform {
            answers: Mutex::default(),
            posted: watch::Sender::new(Vec::new()),
            signs: watch::Sender::new(0),
            waits: Mutex::default(),
            asked_in_vain: AtomicUsize::new(0),
        });
        let rooms = Rooms::default();
        let room = Room {
            files: None,
            channel: "acme".to_owned(),
            outbound: Arc::clone(&platform) as _,
            identity: identity(),
            capabilities: Capabilities {
                text_max: 4_000,
                text_unit: LengthUnit::Chars,
                has_threads: false,
                has_replies: true,
                can_read_back: false,
                can_read_history: false,
                echoes_posts: false,
                working_sign_ms: 2_000,
                chat_interval_ms: 0,
                live_edit_ms: 0,
                live_preview_ms: 0,
                live_stream_ms: 0,
            },
            delivery: DeliveryPolicy::default(),
            refused: Arc::default(),
        };
        rooms.set(account, room);
        let at = Arc::clone(&now_ms);
        Self {
            store,
            account,
            platform,
            rooms,
            wake: Wake::default(),
            clock: Arc::new(move || at.load(Ordering::Relaxed)),
            now_ms,
            owner: OwnerId::generate(),
            stop: CancellationToken::new(),
            drain_until: CancellationToken::new(),
        }
    }

    /// Somebody writes to the bot directly.
    async fn ask(&self, text: &str) {
        self.ask_in("7", text).await;
    }

    async fn ask_in(&self, chat: &str, text: &str) {
        let count = |_: &str| TokenCount {
            tokens: 1,
            counter: "one".to_owned(),
        };
        let keeping = Keeping {
            keeps_revisions: false,
            keeps_raw: false,
        };
        let intake = ChannelIntake::new(
            self.store.clone(),
            policy(self.account),
            keeping,
            Arc::new(count),
            self.wake.clone(),
            Arc::default(),
        );
        let now_ms = (self.clock)();
        let envelope = Envelope {
            channel: "acme".to_owned(),
            platform: Platform::Telegram,
            account: "1".to_owned(),
            delivery_id: "1".to_owned(),
            received_at_ms: now_ms,
            event: Event::Posted(direct_message(chat, text, now_ms)),
            raw: String::new(),
        };
        intake.accept(envelope).await.unwrap();
    }

    /// Starts an agent worker with that model.
    fn agents<F>(&self, model: F) -> tokio::task::JoinHandle<()>
    where
        F: Fn() -> BoxFuture<'static, Result<Answer, ModelError>> + Send + Sync + 'static,
    {
        self.agents_with(Arc::new(FakeModel(model)))
    }

    fn agents_with(&self, model: Arc<dyn Model>) -> tokio::task::JoinHandle<()> {
        let registry = Registry::default();
        registry.replace(vec![spec(model)]);
        let worker = Worker {
            store: self.store.clone(),
            rooms: self.rooms.clone(),
            registry,
            owner: self.owner,
            wake: self.wake.clone(),
            clock: Arc::clone(&self.clock),
            learn_names: Arc::new(|_| Box::pin(async {})),
            max_parallel_runs: 2,
        };
        tokio::spawn(worker.run(self.stop.clone(), self.drain_until.clone()))
    }

    fn delivery(&self, clock: &Clock) -> DeliveryWorker {
        DeliveryWorker {
            store: self.store.clone(),
            rooms: self.rooms.clone(),
            owner: self.owner,
            wake: self.wake.clone(),
            clock: Arc::clone(clock),
        }
    }

    fn advance(&self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
        self.wake.runs.notify_one();
    }

    async fn claim(&self) -> ClaimedRun {
        let request = ClaimRequest {
            owner: self.owner,
            lease_ms: 60_000,
            now_ms: (self.clock)(),
            accounts: vec![self.account],
        };
        self.store.claim_run(request).await.unwrap().unwrap()
    }

    async fn until_posts_wait(&self) {
        let waiting = async {
            while self
                .store
                .status((self.clock)())
                .await
                .unwrap()
                .posts_pending
                == 0
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(WAIT, waiting)
            .await
            .expect("an answer");
    }
}

fn identity() -> Identity {
    Identity {
        platform: Platform::Telegram,
        account: "1".to_owned(),
        account_name: "Acme".to_owned(),
        user_id: "1".to_owned(),
        other_ids: Vec::new(),
        username: None,
        display_name: "Bot".to_owned(),
        warnings: Vec::new(),
    }
}

fn policy(account: AccountId) -> ChannelPolicy {
    let everybody = || AllowList::new(vec!["*".to_owned()]);
    ChannelPolicy {
        channel: "acme".to_owned(),
        account,
        identity: identity(),
        agents: vec![AgentPolicy {
            name: AgentName::trusted("helper"),
            display_name: "Helper".to_owned(),
            aliases: Vec::new(),
            overlap: Overlap::Auto,
        }],
        default_agent: AgentName::trusted("helper"),
        allow_chats: everybody(),
        allow_people: everybody(),
        admins: Vec::new(),
        serves_strangers: true,
        allow_bots: AllowList::default(),
        thread_policy: ThreadPolicy::Mention,
        answers_in_threads: false,
        commands: Vec::new(),
        chat_overlaps: BTreeMap::new(),
        manners: Manners::default(),
        has_agent_view: false,
        tells_privately: true,
        has_mentioned_commands: true,
        limits: Limits::default(),
    }
}

fn direct_message(chat: &str, text: &str, sent_at_ms: i64) -> InboundMessage {
    InboundMessage {
        place: Place {
            chat: chat.to_owned(),
            kind: Some(ChatKind::Direct),
            ..Place::default()
        },
        message_id: text.to_owned(),
        sender: Sender {
            id: chat.to_owned(),
            display_name: Some("Ann".to_owned()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        text: text.to_owned(),
        mentions: Vec::new(),
        mentions_bot: false,
        command: None,
        reply_to: None,
        attachments: Vec::new(),
        album: None,
        sent_at_ms,
        ordinal: 0,
        edit_marker: None,
    }
}

fn spec(model: Arc<dyn Model>) -> AgentSpec {
    AgentSpec {
        name: AgentName::trusted("helper"),
        display_name: "Helper".to_owned(),
        instructions: Template::parse("Be brief.").unwrap(),
        options: AssemblerOptions::default(),
        chat_options: BTreeMap::new(),
        model,
        summary_model: None,
        model_key: "test".to_owned(),
        counter: &ClassEstimate,
        context_limit: None,
        answer_reserve: 100,
        run_deadline_ms: 60_000,
        max_attempts: 3,
        tools: vec![ToolName::ConversationSearch],
        search_reach: SearchReach::Parent,
        max_steps: 10,
        tool_timeout_ms: 5_000,
        files: Default::default(),
        prefixed_channels: std::collections::BTreeSet::default(),
    }
}

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
    let recorded = step::record(&Step {
        number: 1,
        answer: says("as recorded"),
        results: None,
    });
    let usage = Usage::default();
    let steps = stage
        .store
        .record_step(run, token, 1, recorded, usage, now_ms);
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

#[tokio::test]
async fn a_stop_waits_for_posts_that_are_due_soon() {
    let stage = Stage::new().await;
    stage.ask("hello?").await;
    let agents = stage.agents(|| Box::pin(async { Ok(says("one\ntwo")) }));
    stage.until_posts_wait().await;
    stage.stop.cancel();
    agents.await.unwrap();

    stage
        .platform
        .answers
        .lock()
        .unwrap()
        .push_back(ChannelError::RetryAfter {
            operation: "post",
            wait_ms: 100,
        });
    let start_ms = (stage.clock)();
    let started = std::time::Instant::now();
    let clock: Clock =
        Arc::new(move || start_ms + i64::try_from(started.elapsed().as_millis()).unwrap());
    let delivery = stage.delivery(&clock);
    let draining = delivery.run(stage.stop.clone(), stage.drain_until.clone());
    tokio::time::timeout(WAIT, draining).await.expect("drained");
    assert_eq!(*stage.platform.posted.borrow(), ["one", "two"]);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_posts_that_are_due_late() {
    let stage = Stage::new().await;
    stage.ask("hello?").await;
    let agents = stage.agents(|| Box::pin(async { Ok(says("one")) }));
    stage.until_posts_wait().await;
    stage.stop.cancel();
    agents.await.unwrap();
    stage
        .platform
        .answers
        .lock()
        .unwrap()
        .push_back(ChannelError::RetryAfter {
            operation: "post",
            wait_ms: 240_000,
        });
    let delivery = stage.delivery(&stage.clock);
    let draining = delivery.run(stage.stop.clone(), stage.drain_until.clone());
    tokio::time::timeout(WAIT, draining).await.expect("drained");
    assert_eq!(
        stage
            .store
            .status((stage.clock)())
            .await
            .unwrap()
            .posts_pending,
        1
    );
}

#[tokio::test]
async fn people_are_shown_again_and_again_that_a_run_works() {
    let stage = Stage::new().await;
    stage.ask("hello?").await;
    let signs = stage.platform.signs.subscribe();
    let agents = stage.agents(move || {
        let mut signs = signs.clone();
        Box::pin(async move {
            signs.wait_for(|signs| *signs >= 2).await.unwrap();
            Ok(says("done"))
        })
    });
    stage.until_posts_wait().await;
    stage.stop.cancel();
    agents.await.unwrap();
    assert_eq!(*stage.platform.signs.borrow(), 2);
}

#[tokio::test]
async fn a_post_that_must_wait_for_the_platforms_rate_waits_on_disk_and_holds_up_no_other_room() {
    let stage = Stage::new().await;
    let wait = Duration::from_secs(30);
    let waits = || stage.platform.waits.lock().unwrap();
    waits().insert("7".to_owned(), wait);
    let agents = stage.agents(|| Box::pin(async { Ok(says("here")) }));
    stage.ask_in("7", "busy?").await;
    stage.until_posts_wait().await;
    stage.ask_in("8", "quiet?").await;
    let (stop, drain_until) = (CancellationToken::new(), CancellationToken::new());
    let delivery = tokio::spawn(
        stage
            .delivery(&stage.clock)
            .run(stop.clone(), drain_until.clone()),
    );
    let posted = stage.platform.posted.subscribe();
    let until = |count: usize| {
        let mut posted = posted.clone();
        async move {
            let enough = posted.wait_for(|posted| posted.len() >= count);
            tokio::time::timeout(WAIT, enough).await.unwrap().unwrap();
        }
    };
    until(1).await;
    let put_off = async {
        let due_ms = (stage.clock)() + 30_000;
        while stage.store.next_post_due_ms().await.unwrap() != Some(due_ms) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, put_off).await.unwrap();
    assert_eq!(posted.borrow().len(), 1);
    waits().clear();
    stage.advance(30_000);
    stage.wake.posts.notify_one();
    until(2).await;
    for token in [&stage.stop, &stop] {
        token.cancel();
    }
    agents.await.unwrap();
    delivery.await.unwrap();
}

#[tokio::test]
async fn fifty_posts_that_wait_in_one_room_hold_up_no_other_and_go_in_order() {
    const LINES: usize = 17;
    const OTHERS: usize = 20;
    let stage = Stage::new().await;
    let busy = |n: usize| format!("busy {n}");
    let answers = AtomicUsize::new(0);
    let agents = stage.agents(move || {
        let n = answers.fetch_add(1, Ordering::Relaxed);
        let lines: Vec<String> = (n * LINES..(n + 1) * LINES).map(busy).collect();
        let text = if n < 3 {
            lines.join("\n")
        } else {
            "here".to_owned()
        };
        Box::pin(async move { Ok(says(&text)) })
    });
    let wanted = async |count: usize| {
        let waiting = async {
            let pending = async || stage.store.status(0).await.unwrap().posts_pending;
            while pending().await != count as u64 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(WAIT, waiting).await.unwrap();
    };
    for n in 1..=3 {
        stage.ask_in("7", &format!("question {n}")).await;
        wanted(n * LINES).await;
    }
    for n in 0..OTHERS {
        stage.ask_in(&(100 + n).to_string(), "and here?").await;
    }
    wanted(3 * LINES + OTHERS).await;

    let hour = Duration::from_secs(3_600);
    stage
        .platform
        .waits
        .lock()
        .unwrap()
        .insert("7".to_owned(), hour);
    let (stop, drain_until) = (CancellationToken::new(), CancellationToken::new());
    let delivery = stage.delivery(&stage.clock);
    let delivery = tokio::spawn(delivery.run(stop.clone(), drain_until.clone()));
    let until = async |count: usize| {
        let mut posted = stage.platform.posted.subscribe();
        let enough = posted.wait_for(|posted| posted.len() >= count);
        tokio::time::timeout(WAIT, enough).await.unwrap().unwrap();
    };
    until(OTHERS).await;
    wanted(3 * LINES).await;
    assert!(stage.platform.posted.borrow().iter().all(|it| it == "here"));
    // Once it was put off nobody asks again before its time.
    assert_eq!(stage.platform.asked_in_vain.load(Ordering::Relaxed), 1);

    stage.platform.waits.lock().unwrap().clear();
    stage.advance(3_600_000);
    stage.wake.posts.notify_one();
    until(OTHERS + 3 * LINES).await;
    let posted = stage.platform.posted.borrow()[OTHERS..].to_vec();
    assert_eq!(posted, (0..3 * LINES).map(busy).collect::<Vec<_>>());
    for token in [&stage.stop, &stop] {
        token.cancel();
    }
    agents.await.unwrap();
    delivery.await.unwrap();
}
