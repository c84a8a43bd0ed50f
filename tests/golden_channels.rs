//! The recorded events and texts of another system's channels, through our adapters and capture.
//!
//! Only the inputs are theirs: their verdicts stand in the file beside them, ours follow what this
//! project says of addressing. Every event goes the whole way: the adapter's translation, access and
//! addressing, the durable store; what is compared is what the store then says.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use vocative::capture::inbound::{ChannelIntake, Keeping};
use vocative::capture::wake::Wake;
use vocative::counters::Counters;
use vocative_channels::{slack, telegram};
use vocative_contract::channel::Intake;
use vocative_contract::envelope::Envelope;
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::replace_mentions;
use vocative_core::addressing::Overlap;
use vocative_core::ids::AgentName;
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::judging::policy::{AgentPolicy, AllowList, ChannelPolicy, Limits};
use vocative_core::run::RunState;
use vocative_core::turn::TokenCount;
use vocative_store::contract::{AccountBinding, ConversationFilter};
use vocative_store::{Store, StoreOptions};

/// The events are of this second; they are received in the next.
const RECEIVED_AT_MS: i64 = 1_700_000_010_000;

fn recorded() -> Value {
    serde_json::from_str(include_str!("fixtures/golden/channels.json")).unwrap()
}

fn identity(platform: Platform) -> Identity {
    let (user_id, other_ids, username) = match platform {
        Platform::Slack => ("UBOT", vec!["BBOT".to_owned()], None),
        Platform::Telegram => ("777", vec![], Some("kael_bot".to_owned())),
        other => unreachable!("nothing was recorded of {other:?}"),
    };
    Identity {
        platform,
        account: "acme".to_owned(),
        account_name: "Acme".to_owned(),
        user_id: user_id.to_owned(),
        other_ids,
        username,
        display_name: "Kael".to_owned(),
        warnings: vec![],
        organisation: None,
    }
}

/// One channel of a platform with a store of its own.
struct Room {
    platform: Platform,
    store: Store,
    intake: ChannelIntake,
}

impl Room {
    async fn open(platform: Platform) -> Self {
        let options = StoreOptions {
            path: None,
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, 0).unwrap();
        let binding = AccountBinding {
            channel: "golden".to_owned(),
            platform,
            account: "acme".to_owned(),
            name: "Acme".to_owned(),
        };
        let account = store.bind_account(binding, 0).await.unwrap();
        let everybody = || AllowList::new(vec!["*".to_owned()]);
        let agent = |name: &str, aliases: &[&str]| AgentPolicy {
            name: AgentName::new(name).unwrap(),
            display_name: name.to_owned(),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            presence: Default::default(),
            models: Vec::new(),
            overlap: Overlap::Queue,
        };
        let policy = ChannelPolicy {
            channel: "golden".to_owned(),
            account,
            identity: identity(platform),
            agents: vec![
                agent("kael", &["kael", "kael_bot"]),
                agent("ops", &["ops", "the oracle"]),
            ],
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
            answers_in_threads: platform == Platform::Slack,
            commands: vec!["ask".to_owned()],
            chat_overlaps: BTreeMap::new(),
            manners: vocative_core::manners::Manners::default(),
            has_agent_view: false,
            tells_privately: false,
            has_mentioned_commands: false,
            limits: Limits::default(),
        };
        let keeping = Keeping {
            keeps_revisions: true,
            keeps_raw: false,
        };
        let counter = Arc::new(|text: &str| TokenCount {
            tokens: u32::try_from(text.len()).unwrap(),
            counter: "bytes".to_owned(),
        });
        let (wake, counters) = (Wake::default(), Arc::<Counters>::default());
        let intake = ChannelIntake::new(store.only(), policy, keeping, counter, wake, counters);
        Self {
            platform,
            store,
            intake,
        }
    }

    fn envelope(&self, event: &Value) -> Envelope {
        let identity = identity(self.platform);
        match self.platform {
            Platform::Slack => {
                let payload = json!({"type": "event_callback", "event": event}).to_string();
                let delivery = slack::SlackDelivery {
                    channel: "golden",
                    kind: "events_api",
                    envelope_id: "e1",
                    payload: &payload,
                    received_at_ms: RECEIVED_AT_MS,
                };
                slack::translate(&delivery, &identity)
            }
            Platform::Telegram => {
                telegram::translate("golden", &identity, &event.to_string(), RECEIVED_AT_MS)
            }
            other => unreachable!("nothing was recorded of {other:?}"),
        }
    }

    async fn hear(&self, event: &Value) {
        self.intake.accept(self.envelope(event)).await.unwrap();
    }

    /// Everything captured, a line per turn: scope, place, speaker, text, agents, runs.
    async fn captured(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let conversations = self.store.conversations(ConversationFilter::default());
        for conversation in conversations.await.unwrap() {
            let thread = conversation.key.thread_or_topic.as_ref();
            let place = thread.map_or_else(
                || conversation.platform_chat.clone(),
                |thread| format!("{}/{thread}", conversation.platform_chat),
            );
            let details = self.store.turn_details(conversation.id, 100).await.unwrap();
            for detail in details {
                let turn = &detail.turn;
                let agents: Vec<&str> = turn.addressed_to.iter().map(AgentName::as_str).collect();
                let text = replace_mentions(&turn.content, |id| format!("<{id}>"));
                lines.push(format!(
                    "{} {place} {} {text:?} to {agents:?}, {} run",
                    turn.scope.name(),
                    turn.participant.shown_name(),
                    detail.runs.len(),
                ));
            }
        }
        lines.sort();
        lines
    }
}

async fn captured_of_each(platform: Platform, cases: &str, key: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for case in recorded()[cases].as_array().unwrap() {
        let room = Room::open(platform).await;
        // Twice: a redelivery is success and changes nothing.
        room.hear(&case[key]).await;
        room.hear(&case[key]).await;
        let name = case["name"].as_str().unwrap().to_owned();
        found.insert(name, room.captured().await.join("\n"));
    }
    found
}

fn expected(table: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = table.iter();
    pairs
        .map(|(name, line)| ((*name).to_owned(), (*line).to_owned()))
        .collect()
}

#[tokio::test]
async fn every_recorded_slack_event_is_captured_once_and_addresses_as_ours_does() {
    let table = [
        ("plain", r#"channel C1 U1 "hello" to [], 0 run"#),
        ("dm", r#"dm D1 U1 "hello" to ["kael"], 1 run"#),
        // A group DM needs a mention.
        ("mpim", r#"dm G1 U1 "hello" to [], 0 run"#),
        (
            "thread_reply",
            r#"thread C1/1700000000.000100 U1 "hello" to [], 0 run"#,
        ),
        // Addressed; 1970 is long ago, so nobody answers.
        ("dm_thread", r#"dm D1/9.1 U1 "hello" to ["kael"], 0 run"#),
        (
            "mention",
            r#"channel C1 U1 "<UBOT> and <U2>, see [docs](https://a.b/c) or https://x.y @here @channel @everyone" to ["kael"], 1 run"#,
        ),
        (
            "mention_labelled",
            r#"channel C1 U1 "<UBOT> hi" to ["kael"], 1 run"#,
        ),
        ("mailto", r#"channel C1 U1 "a@b.c +1" to [], 0 run"#),
        ("empty_text", r#"channel C1 U1 "" to [], 0 run"#),
        // Other bots are heard and address nobody unless allowed.
        ("peer_bot", r#"channel C1 UPEER "<UBOT> ping" to [], 0 run"#),
        ("message_changed", r#"channel C1 U1 "edited" to [], 0 run"#),
        ("reaction", ""),
        ("ci_bot", r#"channel C1 UCI "hello" to [], 0 run"#),
    ];
    assert_eq!(
        captured_of_each(Platform::Slack, "slack", "event").await,
        expected(&table)
    );
}

#[tokio::test]
async fn every_recorded_telegram_update_is_captured_once_and_addresses_as_ours_does() {
    let table = [
        ("group", r#"channel -100 Ann "hi" to [], 0 run"#),
        ("private", r#"dm 9 Ann "hi" to ["kael"], 1 run"#),
        ("username_only", r#"channel -100 ann "hi" to [], 0 run"#),
        ("no_names", r#"channel -100 9 "hi" to [], 0 run"#),
        ("no_from", r#"channel -100 Ops "hi" to [], 0 run"#),
        (
            "mention_username",
            r#"channel -100 Ann "<777> hi" to ["kael"], 1 run"#,
        ),
        (
            "text_mention",
            r#"channel -100 Ann "<777> hi" to ["kael"], 1 run"#,
        ),
        (
            "bot_command",
            r#"channel -100 Ann "/help@kael_bot" to ["kael"], 1 run"#,
        ),
        (
            "reply_to_bot",
            r#"channel -100 Ann "hi" to ["kael"], 1 run"#,
        ),
        // Without an entity the name is only text, and still a name.
        (
            "caption",
            r#"channel -100 Ann "[photo] look @kael_bot" to ["kael"], 1 run"#,
        ),
        ("topic", r#"channel -100/33 Ann "hi" to [], 0 run"#),
        ("channel_post", r#"channel -5 News "p" to [], 0 run"#),
    ];
    assert_eq!(
        captured_of_each(Platform::Telegram, "telegram", "update").await,
        expected(&table)
    );
}

#[tokio::test]
async fn a_mention_in_a_group_dm_is_answered_in_line_whichever_of_its_events_comes_first() {
    let event = |kind: &str, ts: &str| {
        let mut event = json!({"type": kind, "channel": "G1", "user": "U1",
                               "text": "<@UBOT> hi", "ts": ts});
        if kind == "message" {
            event["channel_type"] = json!("mpim");
        }
        event
    };
    for order in [["app_mention", "message"], ["message", "app_mention"]] {
        let room = Room::open(Platform::Slack).await;
        for ts in ["1700000001.000100", "1700000002.000100"] {
            for kind in order {
                room.hear(&event(kind, ts)).await;
            }
        }
        let line = r#"dm G1 U1 "<UBOT> hi" to ["kael"], 1 run"#;
        assert_eq!(room.captured().await, [line, line], "{order:?}");
        let filter = ConversationFilter::default();
        let conversations = room.store.conversations(filter).await.unwrap();
        let [conversation] = &conversations[..] else {
            panic!("{order:?} made {conversations:#?}");
        };
        for detail in room.store.turn_details(conversation.id, 9).await.unwrap() {
            let run = &detail.runs[0];
            assert_eq!(run.conversation, conversation.id, "{order:?}");
            let RunState::Queued { not_before_ms } = run.state else {
                panic!("{run:?}");
            };
            assert!(not_before_ms <= RECEIVED_AT_MS, "{order:?}");
        }
    }
}

/// Says a text as Slack sends it; whom it addresses.
async fn addressed(room: &Room, number: usize, text: &str, is_direct: bool) -> Vec<String> {
    let (channel, kind) = if is_direct {
        ("D1", "im")
    } else {
        ("C1", "channel")
    };
    let ts = format!("1700000000.{number:06}");
    room.hear(
        &json!({"type": "message", "channel": channel, "channel_type": kind,
                      "user": "U1", "text": text, "ts": ts}),
    )
    .await;
    let filter = ConversationFilter::default();
    for conversation in room.store.conversations(filter).await.unwrap() {
        let details = room.store.turn_details(conversation.id, 1_000).await;
        let heard = details
            .unwrap()
            .into_iter()
            .find(|it| it.message_ids == [&*ts]);
        if let Some(heard) = heard {
            let agents = heard.turn.addressed_to.iter();
            return agents.map(ToString::to_string).collect();
        }
    }
    panic!("{text:?} was not captured");
}

/// The recorded texts: whom they address here, in a channel unless it is said.
const RECORDED_TEXTS: [(&str, bool, &[&str]); 24] = [
    ("<@UBOT> hi", false, &["kael"]),
    ("<@UBOT> <@U2> hi", false, &["kael"]),
    ("@kael hi", false, &["kael"]),
    ("kael, hi", false, &["kael"]),
    ("kael: hi", false, &["kael"]),
    ("hey kael hi", false, &["kael"]),
    ("hi kael", false, &[]),
    ("hello kael", false, &[]),
    ("the kael bot", false, &[]),
    ("my kael", false, &[]),
    ("kaelin is nice", false, &[]),
    ("`kael`", false, &[]),
    ("```\nkael\n``` see", false, &[]),
    ("`kael` kael", false, &[]),
    ("https://x.y kael", false, &[]),
    ("see https://x.y", false, &[]),
    ("ok kael?", false, &[]),
    // Slack turns a typed mention into `<@UBOT>`; nobody types an id.
    ("@UBOT hi", false, &[]),
    ("KAEL!", false, &["kael"]),
    ("", false, &[]),
    ("", true, &["kael"]),
    ("good morning all", false, &[]),
    ("good morning all", true, &["kael"]),
    ("@U2 ask kael", false, &[]),
];

#[tokio::test]
async fn every_recorded_text_addresses_as_ours_does() {
    let expected: BTreeMap<(&str, bool), &[&str]> = RECORDED_TEXTS
        .iter()
        .map(|(text, is_direct, agents)| ((*text, *is_direct), *agents))
        .collect();
    let file = recorded();
    let cases = file["addressCheck"]["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 48);
    for (number, case) in cases.iter().enumerate() {
        let text = case["text"].as_str().unwrap();
        let is_direct = case["isDirectMessage"].as_bool().unwrap();
        let room = Room::open(Platform::Slack).await;
        assert_eq!(
            addressed(&room, number, text, is_direct).await,
            expected[&(text, is_direct)],
            "{text:?}"
        );
    }
}

/// More that people write, in a channel.
const OUR_TEXTS: [(&str, &[&str]); 44] = [
    ("kael", &["kael"]),
    ("Kael?", &["kael"]),
    ("  kael; hi", &["kael"]),
    ("kael ? hi", &[]),
    ("kael hi", &[]),
    ("kael's idea", &[]),
    ("kael-like, yes", &[]),
    ("kael https://x.y", &[]),
    ("kael `x`", &[]),
    ("kael: `rm -rf`?", &["kael"]),
    ("`x` kael, hi", &[]),
    ("```\nx\n```\nkael, hi", &[]),
    ("<https://x.y|kael, hi>", &[]),
    ("<https://x.y|@kael>", &[]),
    ("see <https://x.y/@kael|this> please", &[]),
    ("see https://x.y/@kael please", &[]),
    ("`@kael` and @ops", &["ops"]),
    ("ask @kael, please", &["kael"]),
    ("(@kael)", &["kael"]),
    ("mail a@kael.com", &[]),
    ("@kaelin hi", &[]),
    ("@kael_bot hi", &["kael"]),
    ("@kael_bots hi", &[]),
    ("hey @kael", &["kael"]),
    ("Hey, Kael what is up", &["kael"]),
    ("hey there kael", &[]),
    ("heykael", &[]),
    ("ops: restart", &["ops"]),
    ("the oracle, when?", &["ops"]),
    ("the oracles, when?", &[]),
    ("hey the oracle", &["ops"]),
    ("@the oracle when", &["ops"]),
    ("@ops and @kael", &["kael", "ops"]),
    ("kael, ask @ops", &["kael", "ops"]),
    ("<@UBOT> ops: restart", &["ops"]),
    ("<@UBOT>, <@UBOT> ops, restart", &["ops"]),
    ("<@U2> ops: restart", &[]),
    ("<@U2> and <@UBOT>", &["kael"]),
    ("&lt;@UBOT&gt; hi", &[]),
    ("&gt; kael, hi", &[]),
    ("_kael, hi_", &[]),
    ("\u{200b}kael, hi", &[]),
    ("кael, hi", &[]),
    ("\u{fff9}UBOT\u{fffb} hi", &[]),
];

#[tokio::test]
async fn more_texts_address_as_the_rules_say() {
    let room = Room::open(Platform::Slack).await;
    let mut wrong = Vec::new();
    for (number, (text, agents)) in OUR_TEXTS.iter().enumerate() {
        let found = addressed(&room, number, text, false).await;
        if found != *agents {
            wrong.push((text, found));
        }
    }
    assert_eq!(wrong, []);
}
