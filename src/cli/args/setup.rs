//! What `vocative setup` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What `vocative setup` takes: each option is an answer, and is not asked for.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Where the bot is to be
    #[arg(long, value_name = "PLATFORM")]
    pub platform: Option<SetupPlatform>,
    /// A file with Slack's app-level token (xapp-); else $SLACK_APP_TOKEN
    #[arg(long, value_name = "FILE")]
    pub slack_app_token_file: Option<PathBuf>,
    /// A file with Slack's bot token (xoxb-); else $SLACK_BOT_TOKEN
    #[arg(long, value_name = "FILE")]
    pub slack_bot_token_file: Option<PathBuf>,
    /// Another address of Slack's Web API, as of `vocative sandbox`
    #[arg(long, value_name = "URL")]
    pub slack_api_url: Option<String>,
    /// A file with the token from @BotFather; else $TELEGRAM_TOKEN
    #[arg(long, value_name = "FILE")]
    pub telegram_token_file: Option<PathBuf>,
    /// A Telegram chat to be served, by id; may be given several times
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub telegram_chat: Vec<i64>,
    /// A person to be served on Telegram, by id; may be given several times
    #[arg(long, value_name = "ID")]
    pub telegram_person: Vec<i64>,
    /// Another address of the Bot API, as of `vocative sandbox`
    #[arg(long, value_name = "URL")]
    pub telegram_api_url: Option<String>,
    /// Who serves the model
    #[arg(long, value_name = "WHO")]
    pub model: Option<SetupModel>,
    /// The model's name there
    #[arg(long, value_name = "NAME")]
    pub model_name: Option<String>,
    /// A file with its key; else $OPENAI_API_KEY or $ANTHROPIC_API_KEY
    #[arg(long, value_name = "FILE")]
    pub model_key_file: Option<PathBuf>,
    /// Another address of the model's server, as http://HOST/v1/
    #[arg(long, value_name = "URL")]
    pub model_url: Option<String>,
    /// Who is to start the daemon
    #[arg(long, value_name = "WHO")]
    pub place: Option<SetupPlace>,
    /// With --place system: one more daemon on this machine, the cell of this name
    #[arg(long, value_name = "NAME")]
    pub cell: Option<String>,
    /// With --place files: where the files are to be
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
    /// Replace a configuration that is there and differs; it is kept beside the new one
    #[arg(long)]
    pub replace: bool,
    /// Don't wait for somebody to write to the bot; on Telegram name a chat or a person then
    #[arg(long)]
    pub no_wait: bool,
    /// Write the files, and start nothing
    #[arg(long)]
    pub no_start: bool,
    /// Ask nobody: every answer is an option or a variable
    #[arg(long)]
    pub non_interactive: bool,
}

/// Where the bot is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SetupPlatform {
    /// A Slack workspace
    Slack,
    /// A Telegram bot
    Telegram,
    /// Both
    Both,
}

impl SetupPlatform {
    /// Whether Slack is one of them.
    #[must_use]
    pub fn has_slack(self) -> bool {
        matches!(self, Self::Slack | Self::Both)
    }

    /// Whether Telegram is one of them.
    #[must_use]
    pub fn has_telegram(self) -> bool {
        matches!(self, Self::Telegram | Self::Both)
    }
}

/// Who serves the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SetupModel {
    /// Built in: repeats the question
    Offline,
    /// OpenAI
    Openai,
    /// Anthropic
    Anthropic,
    /// Ollama on this machine
    Ollama,
    /// Another server with OpenAI's protocol
    Server,
}

/// Who is to start the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SetupPlace {
    /// The system's systemd
    System,
    /// The user's own systemd
    User,
    /// Nobody: only files are written, and the daemon is tried once
    Files,
}
