//! Adapters that fail: the real supervisor, store and workers in this process, with adapters made up
//! here. One that panics or gives up is started again, and takes nothing from the others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use vocative::admin::health::Health;
use vocative::agent::models::Models;
use vocative::agent::registry::{AgentSpec, BackgroundModel, ModelUse, Registry};
use vocative::agent::worker::AgentWorker;
use vocative::capture::inbound::{ChannelIntake, Keeping};
use vocative::capture::wake::Wake;
use vocative::config::{Config, Environment};
use vocative::counters::Counters;
use vocative::daemon::start::wall_clock;
use vocative::daemon::supervise::{Bind, Bound, supervise};
use vocative::delivery::rooms::{Posters, Room, Rooms};
use vocative::delivery::worker::{DeliveryWorker, POSTS_IN_FLIGHT_MAX};
use vocative::llm::Offline;
use vocative_contract::capability::{Capabilities, LengthUnit};
use vocative_contract::channel::{
    BoxFuture, Channel, CheckReach, ConnectionState, Finding, Inbound, Intake, Reporter,
};
use vocative_contract::envelope::{
    ChatKind, Envelope, Event, InboundMessage, Place, Sender, SenderKind,
};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::{LookUps, Outbound, Poster, Renderer, Signs};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::outbound::{Delivered, Part, Post, Target};
use vocative_contract::people::People;
use vocative_core::addressing::Overlap;
use vocative_core::ids::{AccountId, AgentName, OwnerId};
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::judging::policy::{AgentPolicy, AllowList, ChannelPolicy, Limits};
use vocative_core::manners::Manners;
use vocative_core::sending::after::DeliveryPolicy;
use vocative_core::turn::TokenCount;
use vocative_store::NewId as _;
use vocative_store::contract::AccountBinding;
use vocative_store::{Store, StoreOptions};

use crate::harness::WAIT;

/// How an adapter misbehaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    Sound,
    PanicsEverySecondMessage,
    FailsEverySecondMessage,
    PanicsBeforeItKnowsItself,
    RefusesThePostsOfOneDay,
    HangsOnEveryPost,
}

/// A platform with one direct chat; one that hangs has a chat for every message.
struct Made {
    name: &'static str,
    habit: Habit,
    to_say: Mutex<VecDeque<usize>>,
    /// Messages begun, and times it was asked who it is.
    begun: AtomicUsize,
    asked: AtomicUsize,
    hanging: AtomicUsize,
    posts: Mutex<Vec<Post>>,
    posted: Notify,
}

impl Made {
    fn new(name: &'static str, habit: Habit, messages: usize) -> Arc<Self> {
        Arc::new(Self {
            name,
            habit,
            to_say: Mutex::new((0..messages).collect()),
            begun: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            hanging: AtomicUsize::new(0),
            posts: Mutex::default(),
            posted: Notify::new(),
        })
    }

    fn identity(&self) -> Identity {
        Identity {
            platform: Platform::Telegram,
            account: self.name.to_owned(),
            account_name: self.name.to_owned(),
            user_id: "bot".to_owned(),
            other_ids: vec![],
            username: None,
            display_name: "Bot".to_owned(),
            warnings: vec![],
            organisation: None,
        }
    }

    fn envelope(&self, number: usize) -> Envelope {
        let now_ms = wall_clock()();
        let place = Place {
            chat: match self.habit {
                Habit::HangsOnEveryPost => format!("chat {number}"),
                _ => "chat".to_owned(),
            },
            kind: Some(ChatKind::Direct),
            ..Place::default()
        };
        let sender = Sender {
            id: "ann".to_owned(),
            display_name: Some("Ann".to_owned()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        };
        let message = InboundMessage {
            place,
            message_id: number.to_string(),
            sender,
            text: format!("question {number}"),
            mentions: vec![],
            mentions_bot: false,
            command: None,
            reply_to: None,
            attachments: vec![],
            album: None,
            sent_at_ms: now_ms,
            ordinal: i64::try_from(number).unwrap(),
            edit_marker: None,
        };
        Envelope {
            channel: self.name.to_owned(),
            platform: Platform::Telegram,
            account: self.name.to_owned(),
            delivery_id: number.to_string(),
            received_at_ms: now_ms,
            event: Event::Posted(message),
            numbered: None,
            raw: String::new(),
        }
    }

    /// The messages that were answered, by number, in the order of their answers.
    fn answered(&self) -> Vec<usize> {
        let posts = self.posts.lock().unwrap();
        let number = |post: &Post| post.target.reply_to.as_ref().unwrap().parse().unwrap();
        posts.iter().map(number).collect()
    }

    async fn wait_for_answers(&self, count: usize) {
        let answered = async {
            while self.posts.lock().unwrap().len() < count {
                self.posted.notified().await;
            }
        };
        let is_answered = tokio::time::timeout(WAIT, answered).await.is_ok();
        assert!(is_answered, "{}: {:?}", self.name, self.answered());
    }
}

/// The adapter of a made-up platform.
struct Adapter(Arc<Made>);

impl Channel for Adapter {
    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChannelError>> {
        let before = self.0.asked.fetch_add(1, Ordering::SeqCst);
        assert!(
            before > 0 || self.0.habit != Habit::PanicsBeforeItKnowsItself,
            "a bug in an adapter"
        );
        Box::pin(async { Ok(self.0.identity()) })
    }

    fn inbound(&self, _identity: &Identity) -> Box<dyn Inbound> {
        Box::new(Adapter(Arc::clone(&self.0)))
    }

    fn outbound(&self, _identity: &Identity) -> Outbound {
        Outbound::of(&Arc::new(Adapter(Arc::clone(&self.0))))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            text_max: 4_000,
            text_unit: LengthUnit::Chars,
            has_threads: false,
            has_replies: true,
            can_read_back: false,
            can_read_history: false,
            uploads_files: false,
            echoes_posts: false,
            working_sign_ms: 0,
            chat_interval_ms: 0,
            live_edit_ms: 0,
            live_preview_ms: 0,
            live_stream_ms: 0,
        }
    }

    fn check(&self, _reach: CheckReach) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(async { vec![] })
    }
}

impl Inbound for Adapter {
    fn run<'a>(
        &'a mut self,
        intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let made = &self.0;
        Box::pin(async move {
            reporter.state(ConnectionState::Connected { connections: 1 });
            loop {
                let next = made.to_say.lock().unwrap().front().copied();
                let Some(number) = next else {
                    cancel.cancelled().await;
                    return Ok(());
                };
                let is_second = made.begun.fetch_add(1, Ordering::SeqCst) % 2 == 1;
                match made.habit {
                    Habit::PanicsEverySecondMessage => assert!(!is_second, "a bug in an adapter"),
                    Habit::FailsEverySecondMessage if is_second => {
                        return Err(ChannelError::NotSent {
                            operation: "hear",
                            cause: "the line is dead".into(),
                        });
                    }
                    _ => {}
                }
                intake.accept(made.envelope(number)).await.unwrap();
                made.to_say.lock().unwrap().pop_front();
            }
        })
    }
}

impl Renderer for Adapter {
    fn render(&self, text: &str, _people: &People) -> Vec<Part> {
        vec![Part::plain(text)]
    }

    fn render_fallback(&self, _part: &Part, _fallback: Fallback) -> Vec<Part> {
        vec![]
    }
}

impl Signs for Adapter {
    fn show_working<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

impl LookUps for Adapter {
    fn person_name<'a>(
        &'a self,
        _id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        Box::pin(async { Ok(None) })
    }

    fn chat_facts<'a>(&'a self, chat: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>> {
        let chat = chat.to_owned();
        Box::pin(async {
            Ok(Place {
                chat,
                ..Place::default()
            })
        })
    }
}

impl Poster for Adapter {
    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>> {
        Box::pin(async move {
            // Refused until somebody asks again who we are.
            let is_refused = self.0.habit == Habit::RefusesThePostsOfOneDay
                && self.0.asked.load(Ordering::SeqCst) < 2;
            if is_refused {
                return Err(ChannelError::Unauthorized {
                    operation: "deliver",
                    reason: "token_revoked".to_owned(),
                });
            }
            if self.0.habit == Habit::HangsOnEveryPost {
                self.0.hanging.fetch_add(1, Ordering::SeqCst);
                return std::future::pending().await;
            }
            let mut posts = self.0.posts.lock().unwrap();
            posts.push(post.clone());
            self.0.posted.notify_one();
            Ok(Delivered {
                chat: post.target.chat.clone(),
                message_id: format!("answer {}", posts.len()),
                sent_at_ms: wall_clock()(),
                shown: None,
            })
        })
    }
}

/// What all channels of a test share.
#[derive(Clone)]
struct Daemon {
    store: Store,
    rooms: Rooms,
    posters: Posters,
    wake: Wake,
    health: Health,
    stop: CancellationToken,
}

fn agent() -> AgentName {
    AgentName::new("vocative").unwrap()
}

impl Daemon {
    fn start(channels: &[&Arc<Made>]) -> Self {
        let options = StoreOptions {
            path: None,
            readers: 2,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, wall_clock()()).unwrap();
        let daemon = Self {
            store,
            rooms: Rooms::default(),
            posters: Posters::default(),
            wake: Wake::default(),
            health: Health::new(wall_clock()),
            stop: CancellationToken::new(),
        };
        let never = CancellationToken::new();
        let owner = OwnerId::generate();
        tokio::spawn(daemon.agents(owner).run(daemon.stop.clone(), never.clone()));
        let delivery = DeliveryWorker {
            store: daemon.store.only(),
            rooms: daemon.rooms.clone(),
            posters: daemon.posters.clone(),
            owner,
            wake: daemon.wake.clone(),
            clock: wall_clock(),
        };
        tokio::spawn(delivery.run(daemon.stop.clone(), never));
        for made in channels {
            daemon.hear(made);
        }
        daemon
    }

    fn hear(&self, made: &Arc<Made>) {
        let channel: Arc<dyn Channel> = Arc::new(Adapter(Arc::clone(made)));
        let bind = self.bind_with(Arc::clone(&channel), made.name);
        let health = self.health.of(made.name);
        let (name, stop) = (made.name.to_owned(), self.stop.clone());
        tokio::spawn(supervise(name, channel, bind, health, stop));
    }

    fn agents(&self, owner: OwnerId) -> AgentWorker {
        let registry = Registry::default();
        let text = "[agents.vocative]\nrun_deadline_s = 60\nmax_attempts = 1\nmax_steps = 1\n";
        let file = Some((std::path::Path::new("vocative.toml"), text));
        let environment = Environment::from_pairs([("HOME", "/home/ada")]);
        let (config, _) = Config::from_text(file, &environment).unwrap();
        let offline = BackgroundModel {
            model: Arc::new(Offline),
            model_use: ModelUse {
                name: "test".to_owned(),
                max_parallel: 4,
                prices: vocative_core::price::Prices::default(),
                currency: "USD".to_owned(),
                max_output_tokens: 1_000,
            },
            context_limit: None,
            answer_reserve: 100,
        };
        let configured = Arc::new(config.agents[&agent()].clone());
        registry.replace(vec![AgentSpec::new(configured, offline)]);
        let (store, wake) = (self.store.clone(), self.wake.clone());
        let models = Models::new(store.only(), registry.clone(), wake, wall_clock());
        AgentWorker {
            store: store.only(),
            memory: store.only(),
            rooms: self.rooms.clone(),
            registry,
            models,
            embeddings: None,
            skills: Default::default(),
            room: None,
            owner,
            wake: self.wake.clone(),
            clock: wall_clock(),
            learn_names: Arc::new(|_| Box::pin(async {})),
            max_parallel_runs: 4,
        }
    }

    fn bind_with(&self, channel: Arc<dyn Channel>, name: &'static str) -> Bind {
        let daemon = self.clone();
        Arc::new(move |identity| {
            let (daemon, channel) = (daemon.clone(), Arc::clone(&channel));
            Box::pin(async move {
                let binding = AccountBinding {
                    channel: name.to_owned(),
                    platform: identity.platform,
                    account: identity.account.clone(),
                    name: identity.account_name.clone(),
                };
                let bound = daemon.store.bind_account(binding.clone(), 1).await;
                let account = bound?;
                let refused = Arc::new(Notify::new());
                let outbound = channel.outbound(&identity);
                daemon.posters.set(account, outbound.poster);
                daemon.rooms.set(
                    account,
                    Room {
                        files: None,
                        channel: name.to_owned(),
                        renderer: outbound.renderer,
                        signs: outbound.signs,
                        look_ups: outbound.look_ups,
                        prober: outbound.prober,
                        identity: identity.clone(),
                        capabilities: channel.capabilities(),
                        delivery: DeliveryPolicy::default(),
                        refused: Arc::clone(&refused),
                    },
                );
                let intake = daemon.intake(name, account, identity);
                let lift = Arc::new(move || {
                    let (daemon, binding) = (daemon.clone(), binding.clone());
                    let lifted = async move {
                        daemon.store.bind_account(binding, 2).await?;
                        daemon.wake.posts.notify_one();
                        Ok(())
                    };
                    Box::pin(lifted) as BoxFuture<'static, _>
                });
                Ok(Bound {
                    intake,
                    refused,
                    lift,
                    keeper: None,
                })
            })
        })
    }

    fn intake(&self, name: &str, account: AccountId, identity: Identity) -> Arc<dyn Intake> {
        let everybody = || AllowList::new(vec!["*".to_owned()]);
        let policy = ChannelPolicy {
            channel: name.to_owned(),
            account,
            identity,
            agents: vec![AgentPolicy {
                name: agent(),
                display_name: "Vocative".to_owned(),
                aliases: vec![],
                presence: Default::default(),
                models: Vec::new(),
                overlap: Overlap::Queue,
            }],
            default_agent: agent(),
            allow_chats: everybody(),
            allow_people: everybody(),
            admins: vec![],
            has_pairing: false,
            paired: Default::default(),
            serves_strangers: false,
            serves_guests: true,
            allow_bots: AllowList::default(),
            thread_policy: ThreadPolicy::Mention,
            answers_in_threads: false,
            commands: vec![],
            chat_overlaps: BTreeMap::new(),
            limits: Limits {
                runs_per_hour_person: 0,
                runs_per_hour_chat: 0,
                ..Limits::default()
            },
            manners: Manners::default(),
            has_agent_view: false,
            tells_privately: false,
            has_mentioned_commands: false,
        };
        let keeping = Keeping {
            keeps_revisions: true,
            keeps_raw: false,
        };
        let counter = Arc::new(|_: &str| TokenCount {
            tokens: 1,
            counter: "made up".to_owned(),
        });
        let counters: Arc<Counters> = Arc::default();
        let (store, wake) = (self.store.clone(), self.wake.clone());
        Arc::new(ChannelIntake::new(
            store.only(),
            policy,
            keeping,
            counter,
            wake,
            counters,
        ))
    }

    fn restarts(&self, made: &Made) -> u64 {
        self.health.of(made.name).reading().restarts
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adapter_that_panics_every_second_message_takes_no_answer_from_another_channel() {
    let sick = Made::new("sick", Habit::PanicsEverySecondMessage, 4);
    let sound = Made::new("sound", Habit::Sound, 100);
    let daemon = Daemon::start(&[&sick, &sound]);
    sound.wait_for_answers(100).await;
    sick.wait_for_answers(4).await;
    assert_eq!(sound.answered(), (0..100).collect::<Vec<_>>());
    assert_eq!(sick.answered(), [0, 1, 2, 3]);
    assert_eq!((daemon.restarts(&sick), daemon.restarts(&sound)), (3, 0));
    daemon.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adapter_that_gives_up_every_second_message_is_started_again() {
    let sick = Made::new("sick", Habit::FailsEverySecondMessage, 3);
    let daemon = Daemon::start(&[&sick]);
    sick.wait_for_answers(3).await;
    assert_eq!(sick.answered(), [0, 1, 2]);
    assert_eq!(daemon.restarts(&sick), 2);
    daemon.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adapter_that_panics_before_it_knows_itself_is_asked_again() {
    let sick = Made::new("sick", Habit::PanicsBeforeItKnowsItself, 1);
    let daemon = Daemon::start(&[&sick]);
    sick.wait_for_answers(1).await;
    assert_eq!(sick.asked.load(Ordering::SeqCst), 2);
    daemon.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_held_for_a_refused_account_go_when_it_is_accepted_again() {
    let sick = Made::new("sick", Habit::RefusesThePostsOfOneDay, 2);
    let daemon = Daemon::start(&[&sick]);
    sick.wait_for_answers(2).await;
    assert_eq!(sick.answered(), [0, 1]);
    daemon.stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_8_a_platform_that_hangs_on_every_post_holds_up_no_other() {
    let sick = Made::new("sick", Habit::HangsOnEveryPost, POSTS_IN_FLIGHT_MAX + 10);
    let daemon = Daemon::start(&[&sick]);
    let all_hang = async {
        while sick.hanging.load(Ordering::SeqCst) < POSTS_IN_FLIGHT_MAX {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, all_hang).await.unwrap();
    let sound = Made::new("sound", Habit::Sound, 3);
    daemon.hear(&sound);
    sound.wait_for_answers(3).await;
    assert_eq!(sick.hanging.load(Ordering::SeqCst), POSTS_IN_FLIGHT_MAX);
    daemon.stop.cancel();
}
