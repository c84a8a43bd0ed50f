//! The answers that a configuration is made from.

use std::path::{Path, PathBuf};

use secrecy::SecretString;

use crate::config::CREDENTIALS_FOLDER;

/// The name of the configuration file.
const FILE_NAME: &str = "vocative.toml";
/// The folder of a system service's configuration.
pub(super) const SYSTEM_FOLDER: &str = "/etc/vocative";

/// All answers.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Answers {
    /// The Slack workspace, if it is one.
    pub slack: Option<SlackAnswers>,
    /// The Telegram bot, if it is one.
    pub telegram: Option<TelegramAnswers>,
    /// The model that answers.
    pub model: ModelAnswers,
    /// Who starts the daemon, and where its files are.
    pub place: DaemonPlace,
}

/// A Slack workspace.
#[derive(Clone, Debug)]
pub(in crate::cli) struct SlackAnswers {
    /// The app-level token.
    pub app_token: SecretString,
    /// The bot token.
    pub bot_token: SecretString,
    /// Another address of the Web API than Slack's.
    pub api_url: Option<String>,
    /// Who administers the bot there, by id.
    pub admins: Vec<String>,
}

/// A Telegram bot.
#[derive(Clone, Debug)]
pub(in crate::cli) struct TelegramAnswers {
    /// Its token.
    pub token: SecretString,
    /// Another address of the Bot API than Telegram's.
    pub api_url: Option<String>,
    /// The chats that are served, by id.
    pub chats: Vec<String>,
    /// The people who are served in their own chats, by id.
    pub people: Vec<String>,
    /// Who administers the bot there, by id.
    pub admins: Vec<String>,
}

/// A model.
#[derive(Clone, Debug)]
pub(in crate::cli) struct ModelAnswers {
    /// Who serves it.
    pub kind: ModelKind,
    /// Its name at the provider; empty for the built-in one.
    pub name: String,
    /// Its key, where one is needed.
    pub key: Option<SecretString>,
    /// The address of the server, if not the provider's own.
    pub url: Option<String>,
}

/// Who serves a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum ModelKind {
    /// Built in: it repeats the question and needs nothing.
    Offline,
    /// OpenAI, or a server with its protocol.
    OpenAi,
    /// Anthropic, or a server with its protocol.
    Anthropic,
}

impl ModelKind {
    /// The provider's name in the configuration.
    pub(super) fn provider(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// Who starts the daemon, and where its files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct DaemonPlace {
    /// Who starts it.
    pub kind: PlaceKind,
    /// The folder of the configuration.
    pub folder: PathBuf,
}

/// Who starts the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum PlaceKind {
    /// The system's systemd, as a user that exists only while it runs.
    System,
    /// The user's own systemd.
    User,
    /// No service: only the files are written, and the operator starts it.
    Files,
}

impl DaemonPlace {
    /// The configuration file.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }

    /// The folder of the secrets.
    pub(super) fn credentials(&self) -> PathBuf {
        self.folder.join(CREDENTIALS_FOLDER)
    }

    /// The reference to the secret of this name, for the configuration.
    pub(super) fn reference(&self, name: &str) -> String {
        match self.kind {
            // The unit loads the folder under the id `secret`.
            PlaceKind::System => format!("credential:secret_{name}"),
            PlaceKind::User | PlaceKind::Files => {
                format!(
                    "file:{}",
                    Path::new(CREDENTIALS_FOLDER).join(name).display()
                )
            }
        }
    }
}
