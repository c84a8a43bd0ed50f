//! A room whose messages go the whole way: intake, store, runs, and the prompt a run is sent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use vocative::agent::models::Models;
use vocative::agent::prompting::{BuiltPrompt, PromptRequest, build_prompt};
use vocative::agent::recall::RecallFrom;
use vocative::agent::registry::{AgentSpec, BackgroundModel, ModelUse, Registry};
use vocative::capture::clock::Clock;
use vocative::capture::inbound::{ChannelIntake, Keeping};
use vocative::capture::wake::Wake;
use vocative::config::{Agent, Config, Environment, Template};
use vocative::counters::Counters;
use vocative::delivery::rooms::Rooms;
use vocative::llm::{Answer, Model, ModelError, Offline, Request};
use vocative::summary::summarizer::Summarizer;
use vocative_contract::channel::Intake;
use vocative_contract::envelope::{
    ChatKind, Envelope, Event, InboundMessage, Place, ReplyTo, Sender, SenderKind,
};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::{mention_token, mentioned_ids};
use vocative_contract::outbound::{Part, Target};
use vocative_core::addressing::Overlap;
use vocative_core::given::Given;
use vocative_core::ids::{AccountId, AgentName, OwnerId};
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::judging::policy::{AgentPolicy, AllowList, ChannelPolicy, Limits};
use vocative_core::options::AssemblerOptions;
use vocative_core::place::Conversation;
use vocative_core::prompting::{Prompt, RunView};
use vocative_core::run::Finish;
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::tokens::TokenRatio;
use vocative_core::turn::{TokenCount, Turn, TurnKind};
use vocative_store::NewId as _;
use vocative_store::contract::{
    AccountBinding, ClaimRequest, CommittedReply, ReplyCommit, RunEnding, TurnFilter,
};
use vocative_store::{Store, StoreOptions};

/// The second that message times count from.
pub(crate) const START_MS: i64 = 1_700_000_000_000;
pub(crate) const BOT: &str = "U0KAEL01";

/// One room with the agents `kael` (default) and `atlas`.
pub(crate) struct Room {
    pub(crate) store: Store,
    pub(crate) account: AccountId,
    intake: ChannelIntake,
    owner: OwnerId,
    pub(crate) options: AssemblerOptions,
}

/// Something a person says; its number is its second and its id.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) number: i64,
    pub(crate) by: String,
    pub(crate) sender_kind: SenderKind,
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) chat: &'static str,
    pub(crate) kind: ChatKind,
    pub(crate) thread: Option<i64>,
    pub(crate) reply_to: Option<(i64, Option<&'static str>)>,
    pub(crate) at_ms: i64,
}

/// Alice says a text to nobody.
pub(crate) fn said(number: i64, text: &str) -> Said {
    Said {
        number,
        by: "U0ALICE1".to_owned(),
        sender_kind: SenderKind::Person,
        name: "Alice".to_owned(),
        text: text.to_owned(),
        chat: "C1",
        kind: ChatKind::Public,
        thread: None,
        reply_to: None,
        at_ms: START_MS + number * 1_000,
    }
}

/// Alice asks Kael.
pub(crate) fn asked(number: i64, text: &str) -> Said {
    said(number, &format!("{} {text}", mention_token(BOT)))
}

impl Said {
    pub(crate) fn by(self, id: &str, name: &str) -> Self {
        Self {
            by: id.to_owned(),
            name: name.to_owned(),
            ..self
        }
    }

    pub(crate) fn in_thread(self, root: i64) -> Self {
        Self {
            thread: Some(root),
            ..self
        }
    }

    pub(crate) fn replying(self, to: i64, quote: Option<&'static str>) -> Self {
        Self {
            reply_to: Some((to, quote)),
            ..self
        }
    }

    pub(crate) fn at(self, at_ms: i64) -> Self {
        Self { at_ms, ..self }
    }

    fn envelope(self) -> Envelope {
        let mentions = mentioned_ids(&self.text);
        let received_at_ms = (START_MS + self.number * 1_000).max(START_MS) + 500;
        Envelope {
            channel: "acme".to_owned(),
            platform: Platform::Slack,
            account: "T1".to_owned(),
            delivery_id: format!("e{}", self.number),
            received_at_ms,
            event: Event::Posted(InboundMessage {
                place: Place {
                    chat: self.chat.to_owned(),
                    kind: Some(self.kind),
                    title: Some("general".to_owned()),
                    thread: self.thread.map(|root| root.to_string()),
                    ..Place::default()
                },
                message_id: self.number.to_string(),
                sender: Sender {
                    id: self.by,
                    display_name: Some(self.name),
                    username: None,
                    kind: self.sender_kind,
                    is_stranger: false,
                },
                mentions_bot: mentions.iter().any(|id| id == BOT),
                mentions,
                text: self.text,
                command: None,
                reply_to: self.reply_to.map(|(to, quote)| ReplyTo {
                    message_id: to.to_string(),
                    is_own: false,
                    quote: quote.map(str::to_owned),
                    is_passed_on: false,
                }),
                attachments: vec![],
                album: None,
                sent_at_ms: self.at_ms,
                ordinal: self.number,
                edit_marker: None,
            }),
            numbered: None,
            raw: String::new(),
        }
    }
}

impl Room {
    pub(crate) async fn open() -> Self {
        Self::with_texts_up_to(65_536).await
    }

    pub(crate) async fn with_texts_up_to(inbound_text_max_bytes: usize) -> Self {
        Self::open_at(None, inbound_text_max_bytes).await
    }

    pub(crate) async fn open_at(path: Option<PathBuf>, inbound_text_max_bytes: usize) -> Self {
        let options = StoreOptions {
            path,
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, START_MS).unwrap();
        let binding = AccountBinding {
            channel: "acme".to_owned(),
            platform: Platform::Slack,
            account: "T1".to_owned(),
            name: "Acme".to_owned(),
        };
        let account = store.bind_account(binding, START_MS).await.unwrap();
        let keeping = Keeping {
            keeps_revisions: true,
            keeps_raw: false,
        };
        let counter = Arc::new(|text: &str| TokenCount {
            tokens: u32::try_from(text.len()).unwrap(),
            counter: "bytes".to_owned(),
        });
        let intake = ChannelIntake::new(
            store.only(),
            policy(account, inbound_text_max_bytes),
            keeping,
            counter,
            Wake::default(),
            Arc::<Counters>::default(),
        );
        Self {
            store,
            account,
            intake,
            owner: OwnerId::generate(),
            options: AssemblerOptions::default(),
        }
    }

    pub(crate) async fn hear(&self, said: Said) {
        self.intake.accept(said.envelope()).await.unwrap();
    }

    pub(crate) async fn hear_all(&self, all: impl IntoIterator<Item = Said>) {
        for said in all {
            self.hear(said).await;
        }
    }

    /// The platform tells that something was deleted.
    pub(crate) async fn forget(&self, said: Said) {
        let mut envelope = said.envelope();
        let Event::Posted(message) = envelope.event else {
            unreachable!("what was said was posted");
        };
        envelope.delivery_id.push('d');
        envelope.event = Event::Deleted {
            place: message.place,
            message_id: message.message_id,
        };
        self.intake.accept(envelope).await.unwrap();
    }

    /// The next question's run.
    pub(crate) async fn claim(&self) -> ClaimedRun {
        let request = ClaimRequest {
            owner: self.owner,
            lease_ms: 60_000,
            now_ms: START_MS + 3_600_000,
            accounts: vec![self.account],
        };
        self.store
            .claim_run(request, Default::default())
            .await
            .unwrap()
            .unwrap()
    }

    /// Answers the next question.
    pub(crate) async fn answer(&self, text: &str) {
        let run = self.claim().await;
        let reply = ReplyCommit {
            verdicts: Vec::new(),
            run: run.run.id,
            token: run.token,
            agent: run.run.agent.clone(),
            speaker: run.run.agent.clone(),
            speaker_display_name: run.run.agent.as_str().to_uppercase(),
            before: Vec::new(),
            values: None,
            text: text.to_owned(),
            kind: TurnKind::Message,
            ending: RunEnding::Done,
            parts: vec![Part::plain(text)],
            live_settle_ms: 0,
            target: Target {
                chat: "C1".to_owned(),
                thread: None,
                topic: None,
                reply_to: None,
            },
            tokens: None,
            usage: Usage::default(),
            // After the question, before what comes next.
            now_ms: START_MS,
        };
        let outcome = self.store.commit_reply(reply).await.unwrap();
        assert!(matches!(outcome, CommittedReply::Written { .. }));
    }

    /// A question and its answer.
    pub(crate) async fn talk(&self, question: Said, answer: &str) {
        self.hear(question).await;
        self.answer(answer).await;
    }

    /// What the next run is sent, with what was read for it.
    pub(crate) async fn built(&self) -> BuiltPrompt {
        self.built_with(RecallFrom::default()).await
    }

    pub(crate) async fn built_with(&self, recall: RecallFrom) -> BuiltPrompt {
        let run = self.claim().await;
        let request = PromptRequest {
            given: Given::default(),
            network: None,
            task: None,
            conversation: run.run.conversation,
            run: RunView {
                run: Some(run.run.id),
                as_of_seq: Some(run.as_of_seq),
                triggers: run.run.triggers.clone(),
                ..RunView::default()
            },
            as_of_ms: START_MS + 60_000,
            ratio: TokenRatio::ONE,
            recall,
            memory: None,
        };
        let (spec, identity) = (self.spec(None), identity());
        let store = self.store.only();
        let built = build_prompt(&store, &spec, Some(&identity), request);
        built.await.unwrap()
    }

    pub(crate) async fn prompt(&self) -> Prompt {
        self.built().await.prompt
    }

    /// What the next run is sent, a line for each message.
    pub(crate) async fn page(&self) -> String {
        page(&self.prompt().await)
    }

    /// The conversation of the chat itself.
    pub(crate) async fn conversation(&self) -> Conversation {
        self.store.find_conversation("acme/C1").await.unwrap()
    }

    /// Everything captured in the chat itself, in the room's order.
    pub(crate) async fn turns(&self) -> Vec<Turn> {
        let id = self.conversation().await.id;
        self.store.turns(id, TurnFilter::default()).await.unwrap()
    }

    pub(crate) fn spec(&self, summary_model: Option<Arc<dyn Model>>) -> AgentSpec {
        let text = "[agents.kael]\nrun_deadline_s = 10\nmax_steps = 1\n";
        let file = Some((std::path::Path::new("kael.toml"), text));
        let environment = Environment::from_pairs([("HOME", "/home/ada")]);
        let (config, _) = Config::from_text(file, &environment).unwrap();
        let agent = Agent {
            instructions: Template::default(),
            situation: Template::default(),
            ..config.agents[&AgentName::trusted("kael")].clone()
        };
        let model = |model, name: &str| BackgroundModel {
            model,
            model_use: ModelUse {
                name: name.to_owned(),
                max_parallel: 4,
                prices: vocative_core::price::Prices::default(),
                currency: "USD".to_owned(),
                max_output_tokens: 1_000,
            },
            context_limit: None,
            answer_reserve: 0,
        };
        AgentSpec {
            options: self.options.clone(),
            summary_model: summary_model.map(|it| model(it, "summaries")),
            ..AgentSpec::new(Arc::new(agent), model(Arc::new(Offline), "test"))
        }
    }

    /// Lets summaries be made once; whether one was.
    pub(crate) async fn fold(&self, model: &Arc<Summariser>) -> bool {
        let registry = Registry::default();
        registry.replace(vec![self.spec(Some(model.clone()))]);
        let wake = Wake::default();
        let clock: Clock = Arc::new(|| START_MS);
        let models = Models::new(
            self.store.only(),
            registry.clone(),
            wake.clone(),
            Arc::clone(&clock),
        );
        let summarizer = Summarizer {
            store: self.store.only(),
            rooms: Rooms::default(),
            registry,
            models,
            wake,
            clock,
            counters: Arc::default(),
            looked: Mutex::default(),
        };
        summarizer.once().await.unwrap() > 0
    }
}

/// What a model is sent, a line for each message, and what was left out.
pub(crate) fn page(prompt: &Prompt) -> String {
    let messages = prompt.messages.iter();
    let mut lines: Vec<String> = messages
        .map(|message| format!("[{}] {}", message.role.name(), message.content))
        .collect();
    lines.extend(prompt.omitted.iter().map(|omission| {
        let why = omission.why.name();
        format!("- {}: {why}", omission.speaker)
    }));
    lines.join("\n")
}

pub(crate) fn identity() -> Identity {
    Identity {
        platform: Platform::Slack,
        account: "T1".to_owned(),
        account_name: "Acme".to_owned(),
        user_id: BOT.to_owned(),
        other_ids: vec![],
        username: None,
        display_name: "Kael".to_owned(),
        warnings: vec![],
        organisation: None,
    }
}

pub(crate) fn policy(account: AccountId, inbound_text_max_bytes: usize) -> ChannelPolicy {
    let everybody = || AllowList::new(vec!["*".to_owned()]);
    let agent = |name: &str| AgentPolicy {
        name: AgentName::new(name).unwrap(),
        display_name: name.to_uppercase(),
        aliases: vec![name.to_owned()],
        presence: Default::default(),
        models: Vec::new(),
        overlap: Overlap::Queue,
    };
    ChannelPolicy {
        channel: "acme".to_owned(),
        account,
        identity: identity(),
        agents: vec![agent("kael"), agent("atlas")],
        default_agent: AgentName::new("kael").unwrap(),
        allow_chats: everybody(),
        allow_people: everybody(),
        admins: vec![],
        has_pairing: false,
        paired: Default::default(),
        serves_strangers: false,
        serves_guests: true,
        allow_bots: AllowList::default(),
        thread_policy: ThreadPolicy::Participating,
        answers_in_threads: false,
        commands: vec![],
        chat_overlaps: BTreeMap::new(),
        manners: vocative_core::manners::Manners::default(),
        has_agent_view: false,
        tells_privately: false,
        has_mentioned_commands: false,
        limits: Limits {
            runs_per_hour_person: 0,
            runs_per_hour_chat: 0,
            max_trigger_age_ms: i64::MAX,
            inbound_text_max_bytes,
            ..Limits::default()
        },
    }
}

/// A model that makes summaries as it is told, and remembers what it was asked.
pub(crate) struct Summariser {
    answer: String,
    requests: Mutex<Vec<String>>,
}

impl Summariser {
    pub(crate) fn answering(answer: &str) -> Arc<Self> {
        Arc::new(Self {
            answer: answer.to_owned(),
            requests: Mutex::default(),
        })
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Model for Summariser {
    fn name(&self) -> &'static str {
        "summariser"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let asked = request.messages.last().unwrap().content.clone();
        self.requests.lock().unwrap().push(asked);
        let answer = Answer {
            text: self.answer.clone(),
            usage: Usage::default(),
            reported_prompt_tokens: None,
            raw_message: String::new(),
            tool_calls: Vec::new(),
            finish: Finish::Stop,
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}
