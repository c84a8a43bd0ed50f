//! Answers from options and environment variables.

use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::answers::{DaemonPlace, PlaceKind, SYSTEM_FOLDER};
use super::dialogue::Dialogue;
use crate::cli::CliError;
use crate::cli::args::{SetupArgs, SetupModel, SetupPlace, SetupPlatform};
use crate::cli::service::cell_folder;
use crate::config::Environment;

/// The answers that are known before anybody is asked.
pub(super) struct SetupGiven {
    pub platform: Option<SetupPlatform>,
    pub slack_app_token: Option<SecretString>,
    pub slack_bot_token: Option<SecretString>,
    pub slack_api_url: Option<String>,
    pub telegram_token: Option<SecretString>,
    pub telegram_api_url: Option<String>,
    pub telegram_chats: Vec<String>,
    pub telegram_people: Vec<String>,
    pub model: Option<SetupModel>,
    pub model_name: Option<String>,
    pub model_key: Option<SecretString>,
    pub model_url: Option<String>,
}

impl SetupGiven {
    /// Reads the options, the files that they name, and the variables.
    ///
    /// # Errors
    /// If a file can't be read.
    pub(super) fn read(args: &SetupArgs, environment: &Environment) -> Result<Self, CliError> {
        let secret = |file: &Option<PathBuf>, variable: &str| match file {
            Some(path) => of_file(path).map(Some),
            None => Ok(environment
                .get_filled(variable)
                .map(|value| SecretString::from(value.trim().to_owned()))),
        };
        let key_variable = match args.model {
            Some(SetupModel::Anthropic) => "ANTHROPIC_API_KEY",
            _ => "OPENAI_API_KEY",
        };
        // A key that happens to be in the environment is used only if the model was chosen by an option.
        let wants_key = matches!(
            args.model,
            Some(SetupModel::Openai | SetupModel::Anthropic | SetupModel::Server)
        );
        Ok(Self {
            platform: args.platform,
            slack_app_token: secret(&args.slack_app_token_file, "SLACK_APP_TOKEN")?,
            slack_bot_token: secret(&args.slack_bot_token_file, "SLACK_BOT_TOKEN")?,
            slack_api_url: args.slack_api_url.clone(),
            telegram_token: secret(&args.telegram_token_file, "TELEGRAM_TOKEN")?,
            telegram_api_url: args.telegram_api_url.clone(),
            telegram_chats: args.telegram_chat.iter().map(ToString::to_string).collect(),
            telegram_people: args
                .telegram_person
                .iter()
                .map(ToString::to_string)
                .collect(),
            model: args.model,
            model_name: args.model_name.clone(),
            model_key: secret(&args.model_key_file, key_variable)?.filter(|_| wants_key),
            model_url: args.model_url.clone(),
        })
    }

    /// The answers that are missing if nobody may be asked.
    pub(super) fn missing(&self, args: &SetupArgs) -> Vec<&'static str> {
        let mut missing = Vec::new();
        let platform = self.platform;
        if platform.is_none() {
            missing.push("--platform");
        }
        if platform.is_some_and(SetupPlatform::has_slack) {
            if self.slack_app_token.is_none() {
                missing.push("--slack-app-token-file or $SLACK_APP_TOKEN");
            }
            if self.slack_bot_token.is_none() {
                missing.push("--slack-bot-token-file or $SLACK_BOT_TOKEN");
            }
        }
        if platform.is_some_and(SetupPlatform::has_telegram) {
            if self.telegram_token.is_none() {
                missing.push("--telegram-token-file or $TELEGRAM_TOKEN");
            }
            if self.telegram_chats.is_empty() && self.telegram_people.is_empty() {
                missing.push("--telegram-chat or --telegram-person");
            }
        }
        match self.model {
            None => missing.push("--model"),
            Some(SetupModel::Openai | SetupModel::Anthropic) if self.model_key.is_none() => {
                missing.push("--model-key-file, $OPENAI_API_KEY or $ANTHROPIC_API_KEY");
            }
            Some(SetupModel::Server) if self.model_url.is_none() => missing.push("--model-url"),
            _ => {}
        }
        if args.place.is_none() && args.cell.is_none() {
            missing.push("--place");
        }
        missing
    }
}

fn of_file(path: &Path) -> Result<SecretString, CliError> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| CliError::failed(format!("{} can't be read", path.display()), cause))?;
    Ok(SecretString::from(text.trim().to_owned()))
}

/// What starts the daemon: by option, otherwise asked.
pub(super) async fn place(
    args: &SetupArgs,
    environment: &Environment,
    dialogue: &mut Dialogue<'_>,
) -> Result<DaemonPlace, CliError> {
    let has_systemd = Path::new("/run/systemd/system").is_dir();
    let is_root = rustix::process::geteuid().is_root();
    let chosen = match args.place {
        Some(place) => place,
        None if args.cell.is_some() => SetupPlace::System,
        None => {
            let choices = [
                (
                    "system",
                    "a service of the system, as a user of its own (needs root and systemd)"
                        .to_owned(),
                ),
                ("user", "a service of yours (needs systemd)".to_owned()),
                ("files", "only the files: you start it yourself".to_owned()),
            ];
            let default = match (has_systemd, is_root) {
                (true, true) => 0,
                (true, false) => 1,
                (false, _) => 2,
            };
            let places = [SetupPlace::System, SetupPlace::User, SetupPlace::Files];
            places[dialogue
                .choose("\nWho is to start it?", &choices, default)
                .await?]
        }
    };
    let home = environment.get_filled("HOME").map(PathBuf::from);
    let user = environment.get_filled("XDG_CONFIG_HOME").map(PathBuf::from);
    let user = user.or_else(|| Some(home?.join(".config")));
    Ok(match chosen {
        SetupPlace::System if !is_root => {
            return Err(CliError::Failed {
                what: "a service of the system is set up by root".to_owned(),
                advice: Some(
                    "run `sudo vocative setup`, or choose \"user\" or \"files\"".to_owned(),
                ),
                cause: None,
            });
        }
        SetupPlace::System => DaemonPlace {
            kind: PlaceKind::System,
            folder: match &args.cell {
                None => SYSTEM_FOLDER.into(),
                Some(name) => cell_folder(name).map_err(|what| CliError::Failed {
                    what,
                    advice: None,
                    cause: None,
                })?,
            },
        },
        SetupPlace::User | SetupPlace::Files if args.cell.is_some() => {
            return Err(CliError::Failed {
                what: "a cell is a service of the system".to_owned(),
                advice: Some("leave --cell out, or choose --place system".to_owned()),
                cause: None,
            });
        }
        SetupPlace::User => DaemonPlace {
            kind: PlaceKind::User,
            folder: user.unwrap_or_default().join("vocative"),
        },
        SetupPlace::Files => DaemonPlace {
            kind: PlaceKind::Files,
            folder: std::path::absolute(&args.folder)?,
        },
    })
}
