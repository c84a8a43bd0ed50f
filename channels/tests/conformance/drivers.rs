//! The platforms as the checks see them.

use secrecy::SecretString;
use vocative_channels::slack::{SlackChannel, SlackSettings, SocketTimings};
use vocative_channels::telegram::{
    PollTimings, TelegramChannel, TelegramSettings, TelegramTransport, WebhookSettings,
    WebhookTimings,
};
use vocative_contract::channel::Channel;
use vocative_sandbox::slack::{
    BlockAction, CallFault, EventFault, RequestUrls, RetryPlan, SlackServer, SlackWorld,
};
use vocative_sandbox::telegram::{TelegramFault, TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

use crate::WAIT;
use crate::listener::Listener;

/// Where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:1";

/// What happens to the next post.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    RateLimited { seconds: u32 },
    AccountRefused,
    ChatRefuses,
    ResetBefore,
    ResetAfter,
    ServerError,
}

/// A platform with one chat in which the bot and a person are.
pub(crate) trait Driver: Sized {
    async fn start() -> Self;
    /// An adapter for this platform.
    fn channel(&self) -> Box<dyn Channel>;
    /// An adapter for a platform that is not there.
    fn nowhere() -> Box<dyn Channel>;
    /// The platform's id of the chat.
    fn chat(&self) -> String;
    /// The adapter hears: what else is needed for the platform to reach it.
    async fn connected(&self) {}
    /// The person writes; the platform's id of the message comes back.
    fn say(&self, text: &str) -> String;
    /// The person writes once, and the platform tells it twice.
    fn say_twice(&self, text: &str);
    fn edit(&self, message: &str, text: &str);
    /// What was not acknowledged comes again now, if the platform does not do so by itself.
    fn send_again(&self);
    fn unacknowledged(&self) -> usize;
    async fn until_acknowledged(&self);
    fn trouble(&self, trouble: Trouble);
    /// What the bot has posted, as people read it.
    fn posts(&self) -> Vec<String>;
    /// The person presses a button, named by the words on it; `false` if there is none.
    fn press(&self, message: &str, button: &str) -> bool;
    /// What people see on the buttons of a message.
    fn buttons(&self, message: &str) -> Vec<String>;
    /// What was told to the person alone who pressed: an empty text where the wait ended without words.
    fn told(&self, interaction: &str) -> Option<String>;
    /// The token that no error may hold.
    fn secret(&self) -> String;
}

fn install_crypto() {
    // The program's `main` does this once; the first test wins.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

pub(crate) struct SlackDriver(SlackServer);

impl SlackDriver {
    const CHAT: &str = "C0GENERAL";

    fn adapter(api_url: String) -> Box<dyn Channel> {
        install_crypto();
        let world = SlackWorld::acme();
        let settings = SlackSettings {
            api_url,
            timings: SocketTimings {
                backoff_first_ms: 20,
                backoff_max_ms: 100,
                ..SocketTimings::default()
            },
            ..SlackSettings::new(
                "slack",
                SecretString::from(world.app_token),
                SecretString::from(world.bot_token),
            )
        };
        Box::new(SlackChannel::new(settings).unwrap())
    }
}

impl Driver for SlackDriver {
    async fn start() -> Self {
        let any_port = ([127, 0, 0, 1], 0).into();
        let server = SlackServer::start(SlackWorld::acme(), any_port, WireLog::new()).await;
        Self(server.unwrap())
    }

    fn channel(&self) -> Box<dyn Channel> {
        Self::adapter(self.0.api_url())
    }

    fn nowhere() -> Box<dyn Channel> {
        Self::adapter(NOWHERE.to_owned())
    }

    fn chat(&self) -> String {
        Self::CHAT.to_owned()
    }

    fn say(&self, text: &str) -> String {
        self.0.say(Self::CHAT, "ann", text)
    }

    fn say_twice(&self, text: &str) {
        self.0.faults().next_event(EventFault::Duplicate(1));
        self.say(text);
    }

    fn edit(&self, message: &str, text: &str) {
        self.0.edit(Self::CHAT, message, text);
    }

    fn send_again(&self) {
        self.0.redeliver_unacked_now();
    }

    fn unacknowledged(&self) -> usize {
        self.0.unacked()
    }

    async fn until_acknowledged(&self) {
        assert!(self.0.wait_until_all_acked(WAIT).await);
    }

    fn trouble(&self, trouble: Trouble) {
        let fault = match trouble {
            Trouble::RateLimited { seconds } => CallFault::RateLimited(seconds.into()),
            Trouble::AccountRefused => CallFault::Error("token_revoked".to_owned()),
            Trouble::ChatRefuses => CallFault::Error("is_archived".to_owned()),
            Trouble::ResetBefore => CallFault::ResetBefore,
            Trouble::ResetAfter => CallFault::ResetAfter,
            Trouble::ServerError => CallFault::Status(500),
        };
        self.0.faults().next("chat.postMessage", fault);
    }

    fn posts(&self) -> Vec<String> {
        let bot = self.0.world().bot_user_id;
        let posts = self.0.posts(Self::CHAT).into_iter();
        let own = posts.filter(|post| post.user.as_deref() == Some(bot.as_str()));
        own.map(|post| post.shown()).collect()
    }

    fn press(&self, message: &str, button: &str) -> bool {
        let action = BlockAction {
            channel: Self::CHAT.to_owned(),
            user: "ann".to_owned(),
            message_ts: message.to_owned(),
            button: button.to_owned(),
            ..BlockAction::default()
        };
        self.0.try_block_action(&action).is_ok()
    }

    fn buttons(&self, message: &str) -> Vec<String> {
        let posts = self.0.posts(Self::CHAT).into_iter();
        let shown = posts.filter(|post| post.ts == message);
        let blocks = shown.flat_map(|post| post.blocks.into_iter());
        let blocks = blocks.flat_map(|it| it.as_array().cloned().unwrap_or_default());
        let actions = blocks.filter(|it| it["type"] == "actions");
        let elements =
            actions.flat_map(|it| it["elements"].as_array().cloned().unwrap_or_default());
        let words = elements.filter_map(|it| it["text"]["text"].as_str().map(str::to_owned));
        words.collect()
    }

    fn told(&self, _interaction: &str) -> Option<String> {
        let told = self.0.ephemerals().into_iter();
        let mut to_ann = told.filter(|it| it.user == "U0ANN");
        to_ann.next_back().map(|it| it.text)
    }

    fn secret(&self) -> String {
        SlackWorld::acme().bot_token
    }
}

pub(crate) struct TelegramDriver(TelegramServer);

impl TelegramDriver {
    const CHAT: i64 = TelegramWorld::SUPERGROUP;

    fn adapter(api_url: String, token: String) -> Box<dyn Channel> {
        install_crypto();
        let settings = TelegramSettings {
            api_url,
            poll_timeout_s: 1,
            timings: PollTimings {
                request_margin_ms: 500,
                backoff_first_ms: 20,
                backoff_max_ms: 100,
                ..PollTimings::default()
            },
            ..TelegramSettings::new("telegram", SecretString::from(token))
        };
        Box::new(TelegramChannel::new(settings))
    }
}

impl Driver for TelegramDriver {
    async fn start() -> Self {
        let any_port = ([127, 0, 0, 1], 0).into();
        let server = TelegramServer::start(TelegramWorld::team(), any_port, WireLog::new()).await;
        Self(server.unwrap())
    }

    fn channel(&self) -> Box<dyn Channel> {
        Self::adapter(self.0.api_url(), self.0.token())
    }

    fn nowhere() -> Box<dyn Channel> {
        Self::adapter(NOWHERE.to_owned(), "1:nobody".to_owned())
    }

    fn chat(&self) -> String {
        Self::CHAT.to_string()
    }

    fn say(&self, text: &str) -> String {
        self.0.say(Self::CHAT, TelegramWorld::ANN, text).to_string()
    }

    fn say_twice(&self, text: &str) {
        self.say(text);
        assert!(self.0.duplicate_update());
    }

    fn edit(&self, message: &str, text: &str) {
        assert!(self.0.edit(Self::CHAT, message.parse().unwrap(), text));
    }

    /// The next poll asks for it.
    fn send_again(&self) {}

    fn unacknowledged(&self) -> usize {
        self.0.pending_updates()
    }

    async fn until_acknowledged(&self) {
        assert!(self.0.wait_until_confirmed(WAIT).await);
    }

    fn trouble(&self, trouble: Trouble) {
        let refused = |code, description: &str| TelegramFault::Refused {
            code,
            description: description.to_owned(),
        };
        let fault = match trouble {
            Trouble::RateLimited { seconds } => TelegramFault::RateLimited {
                retry_after_s: seconds,
            },
            Trouble::AccountRefused => refused(401, "Unauthorized"),
            Trouble::ChatRefuses => {
                refused(403, "Forbidden: bot was kicked from the supergroup chat")
            }
            Trouble::ResetBefore => TelegramFault::ResetBefore,
            Trouble::ResetAfter => TelegramFault::ResetAfter,
            Trouble::ServerError => refused(500, "Internal Server Error: restart"),
        };
        self.0.faults().next("sendMessage", fault);
    }

    fn posts(&self) -> Vec<String> {
        let posts = self.0.bot_posts(Self::CHAT).into_iter();
        posts.map(|post| post.text).collect()
    }

    fn press(&self, message: &str, button: &str) -> bool {
        let id = message.parse().unwrap();
        self.0
            .press(Self::CHAT, TelegramWorld::ANN, id, button)
            .is_ok()
    }

    fn buttons(&self, message: &str) -> Vec<String> {
        let posts = self.0.bot_posts(Self::CHAT).into_iter();
        let shown = posts.filter(|post| post.message_id.to_string() == message);
        let keyboards = shown.filter_map(|post| post.keyboard);
        let rows = keyboards.flat_map(|it| it["inline_keyboard"].as_array().cloned().unwrap());
        let buttons = rows.flat_map(|row| row.as_array().cloned().unwrap());
        buttons
            .map(|it| it["text"].as_str().unwrap().to_owned())
            .collect()
    }

    fn told(&self, interaction: &str) -> Option<String> {
        let answer = self.0.callback_answer(interaction)?;
        Some(answer["text"].as_str().unwrap_or_default().to_owned())
    }

    fn secret(&self) -> String {
        self.0.token()
    }
}

/// Forwards to the driver of the platform's other transport what is the same over both.
macro_rules! like_the_other_transport {
    () => {
        fn chat(&self) -> String {
            self.0.chat()
        }

        fn say(&self, text: &str) -> String {
            self.0.say(text)
        }

        fn say_twice(&self, text: &str) {
            self.0.say_twice(text);
        }

        fn edit(&self, message: &str, text: &str) {
            self.0.edit(message, text);
        }

        fn send_again(&self) {
            self.0.send_again();
        }

        fn unacknowledged(&self) -> usize {
            self.0.unacknowledged()
        }

        async fn until_acknowledged(&self) {
            self.0.until_acknowledged().await;
        }

        fn trouble(&self, trouble: Trouble) {
            self.0.trouble(trouble);
        }

        fn posts(&self) -> Vec<String> {
            self.0.posts()
        }

        fn press(&self, message: &str, button: &str) -> bool {
            self.0.press(message, button)
        }

        fn buttons(&self, message: &str) -> Vec<String> {
            self.0.buttons(message)
        }

        fn told(&self, interaction: &str) -> Option<String> {
            self.0.told(interaction)
        }

        fn secret(&self) -> String {
            self.0.secret()
        }
    };
}

/// Slack over HTTP.
pub(crate) struct SlackHttpDriver(SlackDriver, Listener);

impl SlackHttpDriver {
    fn adapter(api_url: String) -> Box<dyn Channel> {
        install_crypto();
        let world = SlackWorld::acme();
        let bot_token = SecretString::from(world.bot_token);
        let signing_secret = SecretString::from(world.signing_secret);
        let settings = SlackSettings {
            api_url,
            ..SlackSettings::over_http("slack", bot_token, signing_secret)
        };
        Box::new(SlackChannel::new(settings).unwrap())
    }
}

impl Driver for SlackHttpDriver {
    async fn start() -> Self {
        let driver = SlackDriver::start().await;
        driver.0.faults().set_retry_plan(RetryPlan {
            http_after_ms: vec![100; 100],
            ..RetryPlan::default()
        });
        Self(driver, Listener::start().await)
    }

    fn channel(&self) -> Box<dyn Channel> {
        let channel = Self::adapter(self.0.0.api_url());
        self.1.attach(channel.receiver().unwrap());
        channel
    }

    fn nowhere() -> Box<dyn Channel> {
        Self::adapter(NOWHERE.to_owned())
    }

    async fn connected(&self) {
        let urls = RequestUrls::under(&self.1.url("/slack/slack"));
        self.0.0.set_request_urls(urls).await.unwrap();
    }

    like_the_other_transport!();
}

/// Telegram with a webhook.
pub(crate) struct TelegramWebhookDriver(TelegramDriver, Listener);

impl TelegramWebhookDriver {
    fn adapter(api_url: String, token: String, public_url: String) -> Box<dyn Channel> {
        install_crypto();
        let webhook = WebhookSettings {
            public_url,
            secret: None,
            max_connections: 4,
            timings: WebhookTimings {
                look_every_ms: 50,
                backoff_first_ms: 20,
                backoff_max_ms: 100,
                refused_wait_ms: 100,
            },
        };
        let settings = TelegramSettings {
            api_url,
            transport: TelegramTransport::Webhook(webhook),
            ..TelegramSettings::new("telegram", SecretString::from(token))
        };
        Box::new(TelegramChannel::new(settings))
    }
}

impl Driver for TelegramWebhookDriver {
    async fn start() -> Self {
        let driver = TelegramDriver::start().await;
        driver.0.faults().take_loopback_webhooks(true);
        driver.0.faults().set_webhook_second_ms(20);
        Self(driver, Listener::start().await)
    }

    fn channel(&self) -> Box<dyn Channel> {
        let server = &self.0.0;
        let channel = Self::adapter(server.api_url(), server.token(), self.1.url(""));
        self.1.attach(channel.receiver().unwrap());
        channel
    }

    fn nowhere() -> Box<dyn Channel> {
        let nobody = "1:nobody".to_owned();
        Self::adapter(NOWHERE.to_owned(), nobody, NOWHERE.to_owned())
    }

    like_the_other_transport!();
}
