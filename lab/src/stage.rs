//! The loopback platform and the scripted model of one scene, and the daemon's configuration.

use std::collections::{BTreeSet, HashMap};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use vocative_contract::crash::Sabotage;
use vocative_sandbox::mcp::{McpCallFault as McpFault, McpServer, McpWorld};
use vocative_sandbox::model::ModelServer;
use vocative_sandbox::orders::OrderServer;
use vocative_sandbox::slack::{
    BlockAction, CallFault, ChannelKind, RequestUrls, RetryPlan, SlackConversation, SlackKnobs,
    SlackPost, SlackServer, SlackWorld,
};
use vocative_sandbox::telegram::{
    BotStatus, TelegramChat, TelegramChatKind, TelegramFault, TelegramPost, TelegramServer,
    TelegramUser, TelegramWorld,
};
use vocative_sandbox::wire::{WireKind, WireLog};

use super::network;
use super::plan::{DeathWay, Mode, PlanRow, PlatformLink, Play};
use super::scene::AnswerPlace;
use vocative::cli::CliError;

/// The person who asks in Slack's rooms.
pub(super) const SLACK_PERSON: &str = "ann";
/// The topic in which something is asked.
pub(super) const FORUM_TOPIC: i64 = TelegramWorld::TOPIC_INCIDENT;

/// In how many pieces a live answer is streamed.
const WORDS: usize = 12;
const BETWEEN_WORDS: Duration = Duration::from_millis(40);
/// Ports below those that Linux gives to connections (32,768 to 60,999).
const FIRST_PORT: u16 = 10_000;
const OWN_PORTS: u128 = 22_000;
/// Steps of a scene at most, each in rooms of its own: so that chats wait only for their own rate limit.
const STEPS_MAX: usize = 10;
const SLACK_ROOMS_OF_STEP: usize = 10;
const TELEGRAM_PRIVATE_OF_STEP: usize = 7;
const TELEGRAM_GROUPS_OF_STEP: usize = 5;
/// The private chat of a step in which new messages interrupt a run.
const TELEGRAM_INTERRUPTED: usize = 3;

/// The first words of a question to a person.
const QUESTION_BEGINS: &str = "A question for";
/// A card's first words, while it waits.
const CARD_BEGINS: &str = "May I do this?";
/// What the card of a changed call says.
const CHANGED_BY: &str = "Changed by";
/// What people add to some calls before they allow them.
pub(super) const NOTE: &str = "gift";
/// One card in this number, by its id, gets another argument before it is allowed.
const CHANGED_ONE_IN: i64 = 2;
/// How often a person replies to a card, presses its button or sends its form without a change: the daemon may not yet
/// know a card that was just posted.
const REPLIES_MAX: usize = 5;
/// The time after which a card that is still there is pressed again.
const PRESS_EVERY: Duration = Duration::from_secs(1);

/// A question with these words makes the model look something up first.
pub(super) const LOOK_UP: &str = "look it up";

/// A room of a step.
pub(super) fn slack_room(step: usize, n: usize) -> String {
    format!("C0R{step:02}N{n}")
}

/// The direct chat of a step.
pub(super) fn slack_dm(step: usize) -> String {
    format!("D0P{step:02}")
}

/// The direct chat of a step in which new messages interrupt a run.
pub(super) fn slack_interrupted_dm(step: usize) -> String {
    format!("D0Q{step:02}")
}

/// The other id that a room of a step gets.
pub(super) fn slack_moved_room(step: usize) -> String {
    format!("C0M{step:02}")
}

/// A basic group of a step.
pub(super) fn telegram_group(step: usize, n: usize) -> i64 {
    let number = step * TELEGRAM_GROUPS_OF_STEP + n;
    -4_600_000_000 - i64::try_from(number).unwrap_or(0)
}

/// The platform, the model and the daemon's folder.
pub(super) struct LabStage {
    pub(super) mode: Mode,
    link: PlatformLink,
    /// Whether a file is shown. Not where leases are shortened: one would expire while a file is waited for.
    pub(super) shows_files: bool,
    /// Where the platform calls the daemon, if it does.
    called_at: Option<SocketAddr>,
    pub(super) slack: SlackServer,
    pub(super) telegram: TelegramServer,
    pub(super) model: ModelServer,
    /// The shop that a tool orders from.
    pub(super) shop: OrderServer,
    /// A server of tools that asks people before it goes on, in rows with tool calls.
    pub(super) desk: Option<McpServer>,
    pub(super) sabotage: Option<Sabotage>,
    /// How long Slack takes to show a post in its history.
    visibility_delay_ms: u64,
    /// Telegram's server lags behind its rooms.
    lags: bool,
    wire: WireLog,
    directory: PathBuf,
    /// When a person last acted on a card, and how often, by chat and message.
    pressed: Mutex<HashMap<(String, String), (Instant, usize)>>,
    /// Whether several agents answer.
    is_of_network: bool,
    /// Whether people change every call before they allow it.
    changes_all: bool,
    /// The cards of changed calls.
    changed: Mutex<Vec<String>>,
}

impl Drop for LabStage {
    fn drop(&mut self) {
        if std::env::var_os("VOCATIVE_LAB_KEEP").is_none() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

impl LabStage {
    /// Starts the servers and writes the configuration.
    pub(super) async fn build(
        row: &PlanRow,
        has_faults: bool,
        visibility_delay_ms: u64,
        sabotage: Option<Sabotage>,
    ) -> Result<Self, CliError> {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let wire = WireLog::new();
        let stage = Self {
            mode: row.mode,
            shows_files: row.way != DeathWay::LeaseEnds,
            link: row.link,
            called_at: (row.link == PlatformLink::Called)
                .then(free_address)
                .transpose()?,
            slack: SlackServer::start(slack_world(), anywhere, wire.clone()).await?,
            telegram: TelegramServer::start(telegram_world(), anywhere, wire.clone()).await?,
            model: ModelServer::start(anywhere, wire.clone()).await?,
            shop: OrderServer::start(anywhere).await?,
            desk: match row.name().starts_with("input.") {
                true => Some(desk(anywhere).await?),
                false => None,
            },
            sabotage,
            visibility_delay_ms,
            lags: row.lags(),
            wire,
            directory: private_directory()?,
            pressed: Mutex::default(),
            is_of_network: row.play() == Play::Network,
            changes_all: row.name().starts_with("change."),
            changed: Mutex::default(),
        };
        stage
            .slack
            .faults()
            .set_knobs(|knobs| set_knobs(knobs, row, has_faults, visibility_delay_ms));
        if let Some(addr) = stage.called_at {
            let base = format!("http://{addr}/slack/acme");
            stage.slack.use_request_urls(RequestUrls::under(&base));
            stage.telegram.faults().take_loopback_webhooks(true);
            stage.telegram.faults().set_webhook_second_ms(50);
        }
        stage.telegram.lag_behind(stage.lags);
        // Several waiting questions of one person are answered together.
        stage.model.echo_all();
        // One call that acts, at whose points the daemon is killed first, and two that are made side by side.
        let search = |query: &str| ("conversation_search", serde_json::json!({"query": query}));
        let acts = match stage.desk {
            Some(_) => ("desk__echo", serde_json::json!({"text": "{said}"})),
            None => ("order", serde_json::json!({"what": "{said}"})),
        };
        let calls = [acts, search("three"), search("four")];
        stage.model.call_tools(LOOK_UP, &calls);
        if row.is_live() {
            stage.model.pace_all(WORDS, BETWEEN_WORDS);
        }
        std::fs::write(stage.config_path(), stage.config_text(row.is_live()))?;
        Ok(stage)
    }

    /// How long a post of unknown outcome may be looked for.
    pub(super) fn look_back(&self) -> Duration {
        Duration::from_millis(2 * self.visibility_delay_ms)
    }

    /// How long nothing more is said after a start: where the server lags behind, until the daemon has probed every
    /// number once and found no message.
    pub(super) fn silence(&self) -> Duration {
        match self.lags {
            true => Duration::from_secs(15),
            false => Duration::ZERO,
        }
    }

    /// Whether calls that act wait for a person. Not where a post of unknown outcome is held: a card that a person
    /// confirmed as posted has no id, so no press of it counts.
    fn asks_for_consent(&self) -> bool {
        self.mode != Mode::TelegramHold
    }

    /// Presses the button that allows a call on every card that has one, each at most once a second: Slack does not
    /// send a press again that nobody took, so the person tries again. Some calls first get another argument: by a
    /// reply to the card on Telegram, by the form that a button opens on Slack.
    pub(super) fn press_cards(&self) {
        if self.mode == Mode::Slack {
            self.send_forms();
        }
        for (chat, message, button) in self.open_cards() {
            let Some(tries) = self.next_try(&chat, &message) else {
                continue;
            };
            match (chat.parse(), message.parse()) {
                (Ok(chat), Ok(message)) => {
                    if tries < REPLIES_MAX && self.changes(chat, message) {
                        let note = format!("note = {NOTE}");
                        self.telegram.reply(chat, chat, message, &note);
                        continue;
                    }
                    self.telegram.callback(chat, chat, message, &button);
                }
                _ => {
                    let change = (tries < REPLIES_MAX)
                        .then(|| self.changing_button(&chat, &message))
                        .flatten();
                    let action = BlockAction {
                        channel: chat,
                        user: SLACK_PERSON.to_owned(),
                        message_ts: message,
                        action_id: change.unwrap_or(button),
                        ..BlockAction::default()
                    };
                    // The card may have gone since it was looked for.
                    let _ = self.slack.try_block_action(&action);
                }
            }
        }
    }

    /// How often something was tried; `None` where that was less than a second ago.
    fn next_try(&self, place: &str, what: &str) -> Option<usize> {
        let mut pressed = self.pressed.lock().expect("nobody panics with it");
        let now = Instant::now();
        let key = (place.to_owned(), what.to_owned());
        let (last, tries) = pressed.get(&key).copied().unwrap_or((now, 0));
        if tries > 0 && now < last + PRESS_EVERY {
            return None;
        }
        pressed.insert(key, (now, tries + 1));
        Some(tries)
    }

    /// Sends the topmost form with another argument, and closes a form that shows an error or was not taken.
    fn send_forms(&self) {
        let Some(form) = self.slack.views().pop() else {
            return;
        };
        let id = form["id"].as_str().unwrap_or_default();
        let Some(tries) = self.next_try("form", id) else {
            return;
        };
        // The daemon may close the form meanwhile.
        let _ = match form["errors"].is_null() && tries < REPLIES_MAX {
            true => {
                let values = serde_json::json!({"written": format!("note = {NOTE}")});
                self.slack.submit_view(SLACK_PERSON, &values)
            }
            false => self.slack.close_view(SLACK_PERSON),
        };
    }

    /// The button that changes the call of this card, if a person does so before allowing it: no card of a changed
    /// call.
    fn changing_button(&self, channel: &str, ts: &str) -> Option<String> {
        let mut posts = self.slack_posts(channel).into_iter();
        let blocks = posts.find(|post| post.ts == ts)?.blocks?;
        let shown = blocks.to_string();
        if shown.contains(CHANGED_BY) {
            let mut changed = self.changed.lock().expect("nobody panics with it");
            changed.push(shown);
            return None;
        }
        let last: i64 = ts.chars().last()?.to_digit(10)?.into();
        let is_changed = self.changes_all || last % CHANGED_ONE_IN == 0;
        is_changed.then(|| button_of(&blocks, "Change")).flatten()
    }

    /// Whether a person changes the call of this card before allowing it: no card of a changed call.
    fn changes(&self, chat: i64, message: i64) -> bool {
        let mut posts = self.telegram.bot_posts(chat).into_iter();
        let is_card = |post: &TelegramPost| post.text.contains(CARD_BEGINS);
        let card = posts.find(|post| post.message_id == message);
        let Some(card) = card.filter(is_card) else {
            return false;
        };
        if card.text.contains(CHANGED_BY) {
            let mut changed = self.changed.lock().expect("nobody panics with it");
            changed.push(card.text);
            return false;
        }
        self.changes_all || message % CHANGED_ONE_IN == 0
    }

    /// Whether the call of that word was changed before it was allowed.
    pub(super) fn was_changed(&self, word: &str) -> bool {
        let changed = self.changed.lock().expect("nobody panics with it");
        changed.iter().any(|card| card.contains(word))
    }

    /// Cards that still have a button that allows a call: their chats, messages and buttons.
    pub(super) fn open_cards(&self) -> Vec<(String, String, String)> {
        let mut cards = Vec::new();
        if self.mode == Mode::Slack {
            for channel in self.slack.world().channels {
                for post in self.slack_posts(&channel.id) {
                    let button = post.blocks.as_ref().and_then(approving_button);
                    cards.extend(button.map(|button| (channel.id.clone(), post.ts, button)));
                }
            }
            return cards;
        }
        for chat in telegram_world().chats {
            for post in self.telegram.bot_posts(chat.id) {
                let button = post.keyboard.as_ref().and_then(approving_button);
                let button = button.filter(|_| !post.deleted);
                let message = post.message_id.to_string();
                cards.extend(button.map(|button| (chat.id.to_string(), message, button)));
            }
        }
        cards
    }

    /// Stops the servers.
    pub(super) async fn strike(self) {
        // The servers end with their handles; the folder goes with the stage.
        drop(self);
    }

    /// The folder of the daemon.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The daemon's configuration.
    pub(super) fn config_path(&self) -> PathBuf {
        self.directory.join("vocative.toml")
    }

    /// A person of a step; also the private chat with that person.
    #[allow(clippy::unused_self, reason = "reads as the stage's people")]
    pub(super) fn private(&self, step: usize, n: usize) -> i64 {
        telegram_person(step, n)
    }

    /// The configured channel.
    pub(super) fn channel(&self) -> &'static str {
        match self.mode {
            Mode::Slack => "acme",
            _ => "team",
        }
    }

    /// Whether the daemon hears its platform.
    pub(super) fn is_heard(&self) -> bool {
        if let Some(addr) = self.called_at {
            let wait = Duration::from_millis(500);
            return std::net::TcpStream::connect_timeout(&addr, wait).is_ok();
        }
        match self.mode {
            Mode::Slack => self.slack.open_sockets() > 0,
            _ => self.telegram.polls_waiting() > 0,
        }
    }

    /// Whether everything said was acknowledged.
    pub(super) fn is_acknowledged(&self) -> bool {
        match self.mode {
            Mode::Slack => self.slack.unacked() == 0,
            _ => self.telegram.pending_updates() == 0,
        }
    }

    /// Posts messages between people, so that events keep arriving.
    pub(super) fn chatter(&self, n: usize) {
        match self.mode {
            Mode::Slack => {
                self.slack
                    .say("C0GENERAL", "bob", &format!("by the way, {n}"));
            }
            _ => {
                let group = TelegramWorld::SUPERGROUP;
                self.telegram
                    .say(group, TelegramWorld::BOB, &format!("by the way, {n}"));
            }
        }
    }

    /// The next post arrives and is never answered.
    pub(super) fn lose_next_answer(&self) {
        match self.mode {
            Mode::Slack => self
                .slack
                .faults()
                .next(self.posting_call(), CallFault::LoseResponse),
            _ => self
                .telegram
                .faults()
                .next("sendMessage", TelegramFault::StallAfter),
        }
    }

    /// The next post arrives, and the connection breaks.
    pub(super) fn reset_next_answer(&self) {
        match self.mode {
            Mode::Slack => {
                let faults = self.slack.faults();
                faults.next(self.posting_call(), CallFault::ResetAfter);
            }
            _ => {
                let faults = self.telegram.faults();
                faults.next("sendMessage", TelegramFault::ResetAfter);
            }
        }
    }

    /// Posts a message in each of Telegram's number sequences, where messages are probed: in every supergroup, those
    /// that were basic groups included, and in a basic group for all other chats.
    pub(super) fn talk_on(&self) {
        if self.mode == Mode::TelegramLook {
            let groups = self.telegram.supergroups();
            for group in groups.into_iter().chain([TelegramWorld::GROUP]) {
                self.telegram.say(group, TelegramWorld::BOB, "by the way");
            }
        }
    }

    /// The call that brings the first words of most answers on Slack.
    pub(super) fn posting_call(&self) -> &'static str {
        match self.link {
            PlatformLink::Streams => "chat.startStream",
            PlatformLink::Connects | PlatformLink::Called => "chat.postMessage",
        }
    }

    /// What goes wrong on the way while `--faults`: refusals, resets, late and lost answers. None of them may leave a
    /// post on Telegram with an unknown outcome: that has rows of its own.
    pub(super) fn queue_faults(&self, random: &mut impl FnMut(u64) -> u64) {
        match self.mode {
            Mode::Slack => {
                let fault = match random(6) {
                    0 => CallFault::StatusAfterApply(500),
                    1 => CallFault::ResetAfter,
                    2 => CallFault::ResetBefore,
                    3 => CallFault::ErrorAfterApply("internal_error".to_owned()),
                    4 => CallFault::RateLimited(1),
                    _ => CallFault::Latency(200),
                };
                self.slack.faults().next("chat.postMessage", fault);
            }
            _ => {
                let fault = match random(3) {
                    0 => TelegramFault::RateLimited { retry_after_s: 1 },
                    1 => TelegramFault::LateAnswer { ms: 200 },
                    _ => TelegramFault::Latency { ms: 200 },
                };
                self.telegram.faults().next("sendMessage", fault);
                self.telegram
                    .faults()
                    .next("getUpdates", TelegramFault::IgnoreOffset);
            }
        }
    }

    /// When posts with that word, or files into that chat, arrived, in milliseconds since the Unix epoch,
    /// oldest first.
    pub(super) fn arrivals_ms(&self, word: &str, place: &AnswerPlace) -> Vec<i64> {
        let posts = self.wire.records().into_iter().filter(|record| {
            let body = record.body.to_string();
            let is_card = [CARD_BEGINS, QUESTION_BEGINS]
                .iter()
                .any(|it| body.contains(it));
            let is_there = match (record.name.as_str(), place) {
                _ if is_card => false,
                ("chat.postMessage" | "chat.startStream" | "sendMessage", _) => {
                    record.body.to_string().contains(word)
                }
                // The log does not hold the content of a file.
                ("sendDocument", AnswerPlace::Telegram(chat)) => record.body["chat_id"] == *chat,
                _ => false,
            };
            is_there && record.kind == WireKind::Request
        });
        posts.map(|record| record.at_ms).collect()
    }

    /// How many posts of the bot there are.
    pub(super) fn posts_count(&self) -> usize {
        match self.mode {
            Mode::Slack => {
                let channels = self.slack.world().channels;
                channels
                    .iter()
                    .map(|channel| self.slack_posts(&channel.id).len())
                    .sum()
            }
            _ => {
                let chats = telegram_world().chats;
                chats
                    .iter()
                    .map(|chat| self.telegram.bot_posts(chat.id).len())
                    .sum()
            }
        }
    }

    fn slack_posts(&self, chat: &str) -> Vec<SlackPost> {
        let mut posts = self.slack.posts(chat);
        posts.retain(|post| post.user.as_deref() == Some("U0VOCATIVE") && !post.deleted);
        posts
    }

    /// The texts of the bot's posts at a place, oldest first, without cards.
    pub(super) fn texts_at(&self, place: &AnswerPlace) -> Vec<String> {
        let mut texts = self.all_texts_at(place);
        texts.retain(|text| !is_card(text));
        texts
    }

    fn all_texts_at(&self, place: &AnswerPlace) -> Vec<String> {
        match place {
            AnswerPlace::Slack { chat, thread } => {
                let posts = self.slack_posts(chat).into_iter();
                let posts = posts.filter(|post| post.thread_ts == *thread);
                let told = thread.is_none().then(|| self.told_on_slack(chat));
                let posts = posts.map(|post| self.read_on_slack(&post));
                posts.chain(told.into_iter().flatten()).collect()
            }
            AnswerPlace::Telegram(chat) => {
                let posts = self.telegram.bot_posts(*chat).into_iter();
                let posts = posts.filter(|post| !post.deleted);
                posts.map(|post| self.read_on_telegram(&post)).collect()
            }
        }
    }

    /// The texts that only one person saw in a room, each counted once: such a text disappears soon, and is sent again
    /// where its outcome is unknown.
    fn told_on_slack(&self, chat: &str) -> BTreeSet<String> {
        let told = self.slack.ephemerals().into_iter();
        let told = told.filter(|told| told.channel == chat);
        told.map(|told| told.text).collect()
    }

    /// The text of a post, with its files.
    fn read_on_slack(&self, post: &SlackPost) -> String {
        let ids = post.files.iter().filter_map(|file| file["id"].as_str());
        let bytes = ids.filter_map(|id| self.slack.file_bytes(id));
        let words = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        std::iter::once(post.shown()).chain(words).collect()
    }

    fn read_on_telegram(&self, post: &TelegramPost) -> String {
        let id = post.wire["document"]["file_id"].as_str();
        let bytes = id
            .and_then(|id| self.telegram.file_bytes(id))
            .unwrap_or_default();
        // The invisible joiner that keeps a name from being a mention is removed.
        let text = post.text.replace('\u{2060}', "");
        text + &String::from_utf8_lossy(&bytes)
    }

    /// The texts of the bot's posts in a chat by the platform's id.
    pub(super) fn texts_in(&self, chat: &str) -> Vec<String> {
        match chat.parse() {
            Ok(chat) => self.all_texts_at(&AnswerPlace::Telegram(chat)),
            Err(_) => self
                .slack_posts(chat)
                .into_iter()
                .map(|post| post.shown())
                .collect(),
        }
    }

    /// The secrets that the daemon is given.
    pub(super) fn secrets(&self) -> [(&'static str, String); 5] {
        let world = self.slack.world();
        [
            ("LAB_SLACK_APP_TOKEN", world.app_token),
            ("LAB_SLACK_BOT_TOKEN", world.bot_token),
            ("LAB_SLACK_SIGNING_SECRET", world.signing_secret),
            ("LAB_TELEGRAM_TOKEN", self.telegram.token()),
            ("LAB_MODEL_KEY", "sk-lab".to_owned()),
        ]
    }

    fn config_text(&self, is_live: bool) -> String {
        let live = if is_live { "on" } else { "off" };
        // Catching up would hide these sabotages: it brings back what an early acknowledgement lost, and confirms posts
        // that a look did not find.
        let catch_up_days = match self.sabotage {
            Some(Sabotage::AckBeforeCommit | Sabotage::NoReadback) => 0,
            _ => 7,
        };
        format!(
            "\
[daemon]
data_dir = \"{data}\"
runtime_dir = \"{data}\"
drain_deadline_s = 5
max_parallel_runs = 32

[capture]
catch_up_days = {catch_up_days}
backfill_days = 0

[limits]
max_runs_per_hour_person = 0
max_runs_per_hour_chat = 0
tokens_per_day = 0
tokens_per_day_person = 0

[delivery]
first_look_s = 1
visibility_delay_s = {visibility_delay_s}
live = \"{live}\"
live_delay_ms = 0
live_interval_ms = 20
max_parts = 2

[files]
wait_s = 40
text_max_tokens = 40000

[transcription]
base_url = \"{model}\"
api_key = \"env:LAB_MODEL_KEY\"

[models.scripted]
provider = \"openai\"
model = \"loopback-small\"
base_url = \"{model}\"
api_key = \"env:LAB_MODEL_KEY\"
max_parallel = 32

[models.offline]
provider = \"offline\"

{agents}
[tools.order]
kind = \"http\"
description = \"Orders something.\"
method = \"POST\"
url = \"http://{shop}/orders\"
allow_private = [\"{shop}\"]
{approval}
parameters = '{{\"type\": \"object\", \"properties\": {{\"what\": {{\"type\": \"string\"}}, \
    \"note\": {{\"type\": \"string\"}}}}}}'

{desk_table}{channel}",
            data = self.directory.display(),
            model = self.model.openai_url(),
            shop = self.shop.addr(),
            agents = self.agents_text(),
            desk_table = self.desk.as_ref().map_or_else(String::new, desk_table),
            approval = match self.asks_for_consent() {
                true => "approvers = \"anyone_in_chat\"\napproval_expires_s = \"never\"",
                false => "approval = \"never\"",
            },
            channel = self.channel_text(),
            visibility_delay_s = self.visibility_delay_ms.div_ceil(1_000) + 1,
        )
    }

    fn agents_text(&self) -> String {
        if self.is_of_network {
            return network::agents("scripted");
        }
        let desk = self.desk.as_ref().map_or("", |_| ", \"desk__*\"");
        format!(
            "\
[agents.vocative]
model = \"scripted\"
summary_model = \"offline\"
max_attempts = 100
tools = [\"conversation_search\", \"order\"{desk}]

[agents.vocative.prompt]
rolling_summary_threshold = 3
preserve_recent_turns = 1
token_budget = 20000
trigger_max_tokens = 20000
"
        )
    }

    fn channel_text(&self) -> String {
        let (slack_called, telegram_called, listener) = match self.called_at {
            None => Default::default(),
            Some(addr) => (
                "transport = \"http\"\nsigning_secret = \"env:LAB_SLACK_SIGNING_SECRET\"\n",
                format!("transport = \"webhook\"\npublic_url = \"http://{addr}\"\n"),
                format!("[webhooks]\nlisten = \"{addr}\"\n"),
            ),
        };
        let streams = match self.link {
            PlatformLink::Streams => "live = \"stream\"\n",
            PlatformLink::Connects | PlatformLink::Called => "",
        };
        let on_unknown = match self.mode {
            Mode::TelegramHold => "hold",
            Mode::TelegramResend => "resend",
            Mode::Slack | Mode::TelegramLook => "look",
        };
        match self.mode {
            Mode::Slack => {
                format!(
                    "[channels.slack.acme]\napp_token = \"env:LAB_SLACK_APP_TOKEN\"\n\
                 bot_token = \"env:LAB_SLACK_BOT_TOKEN\"\napi_url = \"{}\"\n{slack_called}{streams}\
                 [channels.slack.acme.manners]\nedit_answer_within_s = 3600\n",
                    self.slack.api_url()
                ) + &interruptions("slack.acme", slack_interrupted_dm)
                    + &listener
            }
            _ => {
                format!(
                    "[channels.telegram.team]\ntoken = \"env:LAB_TELEGRAM_TOKEN\"\napi_url = \"{}\"\n\
                 allow_chats = [\"*\"]\nallow_people = [\"*\"]\non_unknown = \"{on_unknown}\"\n{telegram_called}\
                 [channels.telegram.team.manners]\nedit_answer_within_s = 3600\n",
                    self.telegram.api_url()
                ) + &interruptions("telegram.team", |step| {
                    telegram_person(step, TELEGRAM_INTERRUPTED).to_string()
                }) + &listener
            }
        }
    }
}

/// A server of tools that asks for a size before it goes on.
async fn desk(addr: SocketAddr) -> std::io::Result<McpServer> {
    let world = McpWorld {
        fault: Some(McpFault::Asks),
        ..McpWorld::default()
    };
    McpServer::start(addr, world).await
}

fn desk_table(desk: &McpServer) -> String {
    let addr = desk.addr();
    format!(
        "[mcp.desk]\nurl = \"http://{addr}/mcp\"\nallow_private = [\"{addr}\"]\npin = \"trust\"\napproval = \"never\"\n\n"
    )
}

/// Whether a text is that of a card or a question, decided or not.
fn is_card(text: &str) -> bool {
    let begins = [
        CARD_BEGINS,
        "Approved: ",
        "Denied: ",
        "Expired: ",
        "Cancelled: ",
        "Changed: ",
        QUESTION_BEGINS,
        "Answered",
    ];
    begins
        .iter()
        .any(|words| text.trim_start().starts_with(words))
}

/// The button that allows a call, or answers its server, as a press names it.
fn approving_button(shown: &Value) -> Option<String> {
    button_of(shown, "Approve").or_else(|| button_of(shown, "Large"))
}

/// The button with these words, as a press names it.
fn button_of(shown: &Value, words: &str) -> Option<String> {
    let is_it = shown["text"] == words || shown["text"]["text"] == words;
    let named = shown["callback_data"]
        .as_str()
        .or(shown["action_id"].as_str());
    if let (true, Some(named)) = (is_it, named) {
        return Some(named.to_owned());
    }
    match shown {
        Value::Array(all) => all.iter().find_map(|it| button_of(it, words)),
        Value::Object(all) => all.values().find_map(|it| button_of(it, words)),
        _ => None,
    }
}

/// The settings of the chats in which new messages interrupt a run.
fn interruptions(channel: &str, chat_of: impl Fn(usize) -> String) -> String {
    let chat = |step| {
        let chat = chat_of(step);
        format!("[channels.{channel}.chats.{chat}]\noverlap = \"interrupt\"\n")
    };
    (0..STEPS_MAX).map(chat).collect()
}

fn set_knobs(knobs: &mut SlackKnobs, row: &PlanRow, has_faults: bool, visibility_delay_ms: u64) {
    knobs.echo_own_posts = row.is_echoed();
    knobs.echo_before_response = has_faults;
    knobs.visibility_delay_ms = visibility_delay_ms;
    knobs.shares_delay_ms = visibility_delay_ms;
    knobs.retry = RetryPlan {
        after_ms: vec![300; 1_000],
        http_after_ms: vec![300; 1_000],
        disable_from: usize::MAX,
        ..RetryPlan::default()
    };
}

fn slack_world() -> SlackWorld {
    let mut world = SlackWorld::acme();
    let people = ["U0ANN", "U0BOB"];
    for step in 0..STEPS_MAX {
        for n in 0..SLACK_ROOMS_OF_STEP {
            let name = format!("room-{step}-{n}");
            let room =
                SlackConversation::new(&slack_room(step, n), &name, ChannelKind::Public, &people);
            world.channels.push(room);
        }
        for dm in [slack_dm(step), slack_interrupted_dm(step)] {
            let user = "U0ANN".to_owned();
            let dm = SlackConversation::new(&dm, "", ChannelKind::Im { user }, &["U0ANN"]);
            world.channels.push(dm);
        }
    }
    world
}

fn telegram_person(step: usize, n: usize) -> i64 {
    let number = step * TELEGRAM_PRIVATE_OF_STEP + n;
    6_000 + i64::try_from(number).unwrap_or(0)
}

fn telegram_world() -> TelegramWorld {
    let mut world = TelegramWorld::team();
    let chat = |id, kind, members: Vec<i64>| TelegramChat {
        id,
        kind,
        title: format!("Room {id}"),
        username: None,
        is_forum: false,
        topics: Vec::new(),
        members,
        bot_status: BotStatus::Member,
    };
    let mut everyone = vec![TelegramWorld::BOB];
    for step in 0..STEPS_MAX {
        for n in 0..TELEGRAM_PRIVATE_OF_STEP {
            let id = telegram_person(step, n);
            everyone.push(id);
            world
                .chats
                .push(chat(id, TelegramChatKind::Private, vec![id]));
            world.users.push(TelegramUser {
                id,
                first_name: format!("Person {id}"),
                username: None,
                is_bot: false,
            });
        }
    }
    for step in 0..STEPS_MAX {
        for n in 0..TELEGRAM_GROUPS_OF_STEP {
            world.chats.push(chat(
                telegram_group(step, n),
                TelegramChatKind::Group,
                everyone.clone(),
            ));
        }
    }
    for chat in &mut world.chats {
        if chat.id == TelegramWorld::FORUM {
            chat.members.clone_from(&everyone);
        }
    }
    world
}

/// An address that is free now, from the ports that the system does not assign by itself: any other could be taken by a
/// connection of another scene before the daemon listens.
fn free_address() -> std::io::Result<SocketAddr> {
    let seed = uuid::Uuid::new_v4().as_u128();
    let ports = (0..OWN_PORTS).map(|n| FIRST_PORT + ((seed + n) % OWN_PORTS) as u16);
    let free =
        ports.filter_map(|port| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    let mut free = free.map(|listener| listener.local_addr());
    free.next()
        .unwrap_or_else(|| Err(std::io::ErrorKind::AddrInUse.into()))
}

/// A directory of this scene only.
fn private_directory() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let name = format!("vocative-crash-{}", uuid::Uuid::new_v4().simple());
    let path = std::env::temp_dir().join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}
