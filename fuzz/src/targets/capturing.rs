//! From an envelope to its commit: whom it addresses, and that it is accepted whatever it holds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use vocative::capture::inbound::{ChannelIntake, Keeping};
use vocative::capture::wake::Wake;
use vocative::counters::Counters;
use vocative_channels::{slack, telegram};
use vocative_contract::channel::Intake as _;
use vocative_contract::envelope::{Envelope, Event, InboundMessage, SenderKind};
use vocative_contract::identity::Identity;
use vocative_core::addressing::{MessageFacts, Overlap, RunVerdict, ThreadFacts, Verdict};
use vocative_core::ids::{AccountId, AgentName};
use vocative_core::judging::judge::judge;
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::judging::policy::{AgentPolicy, AllowList, ChannelPolicy, Limits};
use vocative_core::manners::Manners;
use vocative_core::price::Spent;
use vocative_core::turn::TokenCount;
use vocative_store::contract::AccountBinding;
use vocative_store::{Store, StoreOptions};

use super::speech::{NOW_MS, slack_bot, telegram_bot};

/// A store is used for so many inputs: long enough to be cheap, short enough to stay small.
const INPUTS_PER_STORE: usize = 500;

/// What the platform that an input is of makes of it.
fn envelope(input: &[u8]) -> Option<(Envelope, Identity)> {
    let text = String::from_utf8_lossy(input);
    let is_update =
        serde_json::from_str::<Value>(&text).is_ok_and(|it| it.get("update_id").is_some());
    if is_update {
        let bot = telegram_bot();
        return Some((telegram::translate("home", &bot, &text, NOW_MS), bot));
    }
    let bot = slack_bot();
    Some((slack::fuzzing::frame(&text, &bot, NOW_MS)?, bot))
}

pub(super) fn judging(input: &[u8]) {
    let Some((envelope, bot)) = envelope(input) else {
        return;
    };
    let (Event::Posted(message) | Event::Edited(message)) = envelope.event else {
        return;
    };
    for policy in policies(&bot) {
        for facts in facts() {
            let ask = || judge(&message, &facts, &policy, message.sent_at_ms, NOW_MS);
            let verdict = ask();
            check_verdict(&verdict, &message, &policy);
            assert_eq!(verdict, ask(), "another verdict the second time");
        }
    }
}

fn check_verdict(verdict: &Verdict, message: &InboundMessage, policy: &ChannelPolicy) {
    let addressed = &verdict.addressed_to;
    for (at, agent) in addressed.iter().enumerate() {
        assert!(
            policy.agent(agent).is_some(),
            "{agent} does not serve this channel"
        );
        assert!(
            !addressed[..at].contains(agent),
            "{agent} is addressed twice"
        );
        assert!(verdict.overlaps.contains_key(agent));
    }
    let sender = &message.sender;
    if !verdict.is_admitted {
        assert!(addressed.is_empty(), "nobody hears what is not served");
    }
    if sender.kind == SenderKind::System || policy.identity.is_self(&sender.id) {
        assert!(addressed.is_empty(), "only people and other bots address");
    }
    if sender.kind == SenderKind::Bot && !policy.allow_bots.allows(&sender.id) {
        assert!(addressed.is_empty(), "a bot that may not");
    }
    if let RunVerdict::Stop { .. } = verdict.runs {
        assert_eq!(sender.kind, SenderKind::Person, "only a person says stop");
    }
    if let Some(notice) = &verdict.notice {
        assert!(notice.text.len() < 400 + message.place.chat.len());
    }
}

/// Open, closed, without threads, with bots.
pub(crate) fn policies(bot: &Identity) -> [ChannelPolicy; 3] {
    let open = policy(bot, AccountId(1));
    let closed = ChannelPolicy {
        allow_chats: AllowList::default(),
        allow_people: AllowList::new(vec!["U1".to_owned(), "5001".to_owned()]),
        thread_policy: ThreadPolicy::Mention,
        answers_in_threads: false,
        ..open.clone()
    };
    let with_bots = ChannelPolicy {
        allow_bots: AllowList::new(vec!["*".to_owned()]),
        serves_strangers: true,
        serves_guests: true,
        ..open.clone()
    };
    [open, closed, with_bots]
}

fn policy(bot: &Identity, account: AccountId) -> ChannelPolicy {
    let agent = |name: &str, alias: &str| AgentPolicy {
        name: AgentName::trusted(name),
        display_name: name.to_owned(),
        aliases: vec![name.to_owned(), alias.to_owned()],
        presence: Default::default(),
        models: Vec::new(),
        overlap: Overlap::Auto,
    };
    let everybody = || AllowList::new(vec!["*".to_owned()]);
    ChannelPolicy {
        channel: "acme".to_owned(),
        account,
        identity: bot.clone(),
        agents: vec![agent("kael", "Kaël the 1st"), agent("ops", "the oracle")],
        default_agent: AgentName::trusted("kael"),
        allow_chats: everybody(),
        allow_people: everybody(),
        admins: vec!["U0HUMAN01".to_owned()],
        has_pairing: true,
        paired: Arc::new(["U0HUMAN02".to_owned()].into()),
        serves_strangers: false,
        serves_guests: true,
        allow_bots: AllowList::default(),
        thread_policy: ThreadPolicy::Participating,
        answers_in_threads: true,
        commands: vec!["ask".to_owned()],
        chat_overlaps: BTreeMap::new(),
        manners: Manners::default(),
        has_agent_view: false,
        tells_privately: true,
        has_mentioned_commands: true,
        limits: Limits {
            max_trigger_age_ms: i64::MAX,
            ..Limits::default()
        },
    }
}

fn facts() -> [MessageFacts; 3] {
    let ops = || vec![AgentName::trusted("ops")];
    let in_thread = MessageFacts {
        thread: Some(ThreadFacts {
            root_addressed: ops(),
            agents_in_it: vec![AgentName::trusted("gone"), AgentName::trusted("ops")],
        }),
        replies_to_agent: Some(AgentName::trusted("gone")),
        ..MessageFacts::default()
    };
    let busy = MessageFacts {
        runs_by_person_last_hour: u32::MAX,
        runs_in_chat_last_hour: u32::MAX,
        spent_today: Spent {
            tokens: u64::MAX,
            cost_micros: u64::MAX,
        },
        replies_to_agent: Some(AgentName::trusted("ops")),
        refused_notice_at_ms: Some(i64::MIN),
        limit_notice_at_ms: Some(i64::MAX),
        ..MessageFacts::default()
    };
    [MessageFacts::default(), in_thread, busy]
}

/// A store in memory, and the intakes of a Slack and a Telegram channel.
struct Rooms {
    runtime: tokio::runtime::Runtime,
    intakes: [ChannelIntake; 2],
    inputs: usize,
}

impl Rooms {
    fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime can be made");
        let options = StoreOptions {
            path: None,
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, NOW_MS).expect("a store can be opened");
        let intakes = [slack_bot(), telegram_bot()].map(|bot| {
            let binding = AccountBinding {
                channel: bot.platform.name().to_owned(),
                platform: bot.platform,
                account: bot.account.clone(),
                name: bot.account_name.clone(),
            };
            let account = runtime.block_on(store.bind_account(binding, NOW_MS));
            let account = account.expect("an account can be bound");
            intake(&store, policy(&bot, account))
        });
        Self {
            runtime,
            intakes,
            inputs: 0,
        }
    }
}

fn intake(store: &Store, policy: ChannelPolicy) -> ChannelIntake {
    let keeping = Keeping {
        keeps_revisions: true,
        keeps_raw: true,
    };
    let counter = Arc::new(|text: &str| TokenCount {
        tokens: u32::try_from(text.len()).unwrap_or(u32::MAX),
        counter: "bytes".to_owned(),
    });
    let counters = Arc::<Counters>::default();
    ChannelIntake::new(
        store.only(),
        policy,
        keeping,
        counter,
        Wake::default(),
        counters,
    )
}

thread_local! {
    static ROOMS: RefCell<Option<Rooms>> = const { RefCell::new(None) };
}

/// Nothing in an envelope's content can make `accept` fail, the first time and again.
pub(super) fn capture(input: &[u8]) {
    let Some((envelope, bot)) = envelope(input) else {
        return;
    };
    ROOMS.with_borrow_mut(|rooms| {
        let mut open = rooms.take().filter(|open| open.inputs < INPUTS_PER_STORE);
        let open_rooms = open.get_or_insert_with(Rooms::open);
        open_rooms.inputs += 1;
        let intake = &open_rooms.intakes[usize::from(bot.platform != slack_bot().platform)];
        for time in ["first", "second"] {
            let accepted = open_rooms.runtime.block_on(intake.accept(envelope.clone()));
            assert!(
                accepted.is_ok(),
                "not accepted the {time} time: {accepted:?}"
            );
        }
        *rooms = open;
    });
}
