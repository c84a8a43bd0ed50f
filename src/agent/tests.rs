//! The two workers over a real store, with a platform and a model that do as they are told. This page: the
//! stage.

#![allow(clippy::unwrap_used)]

mod attempts;
mod fallback;
mod live;
mod outage;
mod posts;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use vocative_contract::capability::{Capabilities, LengthUnit};
use vocative_contract::channel::{BoxFuture, Intake as _};
use vocative_contract::envelope::{
    ChatKind, Envelope, Event, InboundMessage, Place, Sender, SenderKind,
};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::{LookUps, Outbound, Poster, Renderer, Signs};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::outbound::{Delivered, Part, Post, Target};
use vocative_contract::people::People;

use super::models::Models;
use super::registry::{AgentSpec, BackgroundModel, ModelUse, Registry};
use super::step::{self, ModelStep};
use super::worker::AgentWorker;
use crate::capture::clock::Clock;
use crate::capture::inbound::{ChannelIntake, Keeping};
use crate::capture::wake::Wake;
use crate::config::{Agent, Config, Environment, Template};
use crate::delivery::rooms::{Posters, Room, Rooms};
use crate::delivery::worker::DeliveryWorker;
use crate::llm::{Answer, Model, ModelError, Offline, Request};
use crate::tools::{BuiltIn, ToolUse};
use vocative_core::addressing::Overlap;
use vocative_core::ids::{AccountId, AgentName, OwnerId};
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::judging::policy::{AgentPolicy, AllowList, ChannelPolicy, Limits};
use vocative_core::manners::Manners;
use vocative_core::prompting::{ClassEstimate, PromptMessage, TokenCounter as _, content_count};
use vocative_core::run::Finish;
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::sending::after::DeliveryPolicy;
use vocative_core::tokens::PromptReport;
use vocative_core::turn::TokenCount;
use vocative_store::NewId as _;
use vocative_store::contract::{AccountBinding, ClaimRequest, ConversationFilter, TurnFilter};
use vocative_store::{Store, StoreOptions};

const WAIT: Duration = Duration::from_secs(20);
const START_MS: i64 = 1_700_000_000_000;

fn store_options() -> StoreOptions {
    StoreOptions {
        path: None,
        readers: 1,
        page_cache_kib: 1_024,
    }
}

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

impl Renderer for FakePlatform {
    fn render(&self, text: &str, _people: &People) -> Vec<Part> {
        text.lines().map(Part::plain).collect()
    }

    fn render_fallback(&self, part: &Part, _fallback: Fallback) -> Vec<Part> {
        vec![part.clone()]
    }
}

impl Signs for FakePlatform {
    fn show_working<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async { self.signs.send_modify(|signs| *signs += 1) })
    }
}

impl LookUps for FakePlatform {
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

impl Poster for FakePlatform {
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
    posters: Posters,
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
        Self::over(Store::open(&store_options(), START_MS).unwrap().0).await
    }

    async fn over(store: Store) -> Self {
        let now_ms = Arc::new(AtomicI64::new(START_MS));
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
        let outbound = Outbound::of(&platform);
        let (rooms, posters) = (Rooms::default(), Posters::default());
        posters.set(account, outbound.poster);
        let room = Room {
            files: None,
            channel: "acme".to_owned(),
            renderer: outbound.renderer,
            signs: outbound.signs,
            look_ups: outbound.look_ups,
            prober: None,
            identity: identity(),
            capabilities: Capabilities {
                text_max: 4_000,
                text_unit: LengthUnit::Chars,
                has_threads: false,
                has_replies: true,
                can_read_back: false,
                can_read_history: false,
                uploads_files: false,
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
            posters,
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
        self.ask_agent("helper", chat, text).await;
    }

    async fn ask_agent(&self, agent: &str, chat: &str, text: &str) {
        let count = |_: &str| TokenCount {
            tokens: 1,
            counter: "one".to_owned(),
        };
        let keeping = Keeping {
            keeps_revisions: false,
            keeps_raw: false,
        };
        let intake = ChannelIntake::new(
            self.store.only(),
            policy(self.account, agent),
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
            numbered: None,
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
        let worker = self.worker(vec![spec(model)]);
        tokio::spawn(worker.run(self.stop.clone(), self.drain_until.clone()))
    }

    fn worker(&self, agents: Vec<AgentSpec>) -> AgentWorker {
        let registry = Registry::default();
        registry.replace(agents);
        let models = Models::new(
            self.store.only(),
            registry.clone(),
            self.wake.clone(),
            Arc::clone(&self.clock),
        );
        AgentWorker {
            store: self.store.only(),
            memory: self.store.only(),
            rooms: self.rooms.clone(),
            registry,
            models,
            embeddings: None,
            skills: Default::default(),
            room: None,
            owner: self.owner,
            wake: self.wake.clone(),
            clock: Arc::clone(&self.clock),
            learn_names: Arc::new(|_| Box::pin(async {})),
            max_parallel_runs: 2,
        }
    }

    fn delivery(&self, clock: &Clock) -> DeliveryWorker {
        DeliveryWorker {
            store: self.store.only(),
            rooms: self.rooms.clone(),
            posters: self.posters.clone(),
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
        self.store
            .claim_run(request, Default::default())
            .await
            .unwrap()
            .unwrap()
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
        organisation: None,
    }
}

fn policy(account: AccountId, agent: &str) -> ChannelPolicy {
    let everybody = || AllowList::new(vec!["*".to_owned()]);
    ChannelPolicy {
        channel: "acme".to_owned(),
        account,
        identity: identity(),
        agents: vec![AgentPolicy {
            name: AgentName::trusted(agent),
            display_name: "Helper".to_owned(),
            aliases: Vec::new(),
            presence: Default::default(),
            models: Vec::new(),
            overlap: Overlap::Auto,
        }],
        default_agent: AgentName::trusted(agent),
        allow_chats: everybody(),
        allow_people: everybody(),
        admins: Vec::new(),
        has_pairing: false,
        paired: Default::default(),
        serves_strangers: true,
        serves_guests: true,
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
    let text = "[agents.helper]\ninstructions = \"Be brief.\"\nrun_deadline_s = 60\nmax_attempts = 3\n\
                answer_within_s = 3600\ncalls_per_run = 64\nmax_steps = 10\ntool_timeout_s = 5\n";
    let file = Some((std::path::Path::new("helper.toml"), text));
    let environment = Environment::from([("HOME", "/home/ada")]);
    let (config, _) = Config::from_text(file, &environment).unwrap();
    let agent = Agent {
        situation: Template::default(),
        ..config.agents[&AgentName::trusted("helper")].clone()
    };
    AgentSpec {
        tools: vec![ToolUse::built_in(BuiltIn::ConversationSearch)],
        ..AgentSpec::new(
            Arc::new(agent),
            BackgroundModel {
                model,
                model_use: ModelUse {
                    name: "test".to_owned(),
                    max_parallel: 4,
                    prices: vocative_core::price::Prices::default(),
                    currency: "USD".to_owned(),
                    max_output_tokens: 1_000,
                },
                context_limit: None,
                answer_reserve: 100,
            },
        )
    }
}
