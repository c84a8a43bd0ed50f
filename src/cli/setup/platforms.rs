//! The questions about platforms: how the bot is made, its tokens, and the first message to it.

use std::fmt::Write as _;

use secrecy::SecretString;
use tokio::signal::ctrl_c;
use vocative_contract::channel::{Finding, FindingLevel};

use super::answers::{
    Answers, DaemonPlace, ModelAnswers, ModelKind, PlaceKind, SlackAnswers, TelegramAnswers,
};
use super::dialogue::{Dialogue, given_up};
use super::given::SetupGiven;
use super::written::{other_kind, secret_problem, trial};
use crate::cli::args::SlackManifestArgs;
use crate::cli::live::{self, ChannelEar, FirstWords};
use crate::cli::{CliError, manifest};
use crate::config::{Config, Secrets};

/// The names of the channels in the configuration.
pub(super) const SLACK: &str = "slack";
pub(super) const TELEGRAM: &str = "telegram";

/// Asks for Slack's tokens until Slack takes them.
pub(super) async fn slack(
    given: &SetupGiven,
    dialogue: &mut Dialogue<'_>,
) -> Result<SlackAnswers, CliError> {
    if given.slack_app_token.is_none() && !dialogue.is_mute() {
        dialogue.say(&slack_steps()?)?;
    }
    let mut first = true;
    loop {
        let app_token = token(
            given.slack_app_token.as_ref().filter(|_| first),
            ("App-level token", "xapp-"),
            dialogue,
        )
        .await?;
        let bot_token = token(
            given.slack_bot_token.as_ref().filter(|_| first),
            ("Bot token", "xoxb-"),
            dialogue,
        )
        .await?;
        first = false;
        let slack = SlackAnswers {
            app_token,
            bot_token,
            api_url: given.slack_api_url.clone(),
            admins: Vec::new(),
        };
        let tried = only(Some(slack.clone()), None);
        if is_taken(&tried, dialogue).await? {
            return Ok(slack);
        }
    }
}

/// Asks for Telegram's token until Telegram takes it.
pub(super) async fn telegram(
    given: &SetupGiven,
    dialogue: &mut Dialogue<'_>,
) -> Result<TelegramAnswers, CliError> {
    if given.telegram_token.is_none() && !dialogue.is_mute() {
        dialogue.say(TELEGRAM_STEPS)?;
    }
    let mut first = true;
    loop {
        let token = token(
            given.telegram_token.as_ref().filter(|_| first),
            ("Token", ""),
            dialogue,
        )
        .await?;
        first = false;
        let telegram = TelegramAnswers {
            token,
            api_url: given.telegram_api_url.clone(),
            chats: given.telegram_chats.clone(),
            people: given.telegram_people.clone(),
            admins: Vec::new(),
        };
        let tried = only(None, Some(telegram.clone()));
        if is_taken(&tried, dialogue).await? {
            return Ok(telegram);
        }
    }
}

/// Answers with nothing but a platform, for a try.
pub(super) fn only(slack: Option<SlackAnswers>, telegram: Option<TelegramAnswers>) -> Answers {
    Answers {
        slack,
        telegram,
        model: ModelAnswers {
            kind: ModelKind::Offline,
            name: String::new(),
            key: None,
            url: None,
        },
        place: DaemonPlace {
            kind: PlaceKind::Files,
            folder: "/nonexistent".into(),
        },
    }
}

/// The configuration and secrets that the answers would give, without writing anything.
///
/// # Errors
/// What is wrong with the configuration.
pub(super) fn tried(answers: &Answers) -> Result<(Config, Secrets), CliError> {
    let (text, environment) = trial(answers);
    let path = answers.place.file();
    let (config, _) = Config::from_text(Some((&path, &text)), &environment)?;
    let (secrets, _) = config.resolve_secrets(&environment)?;
    Ok((config, secrets))
}

async fn token(
    given: Option<&SecretString>,
    (what, begin): (&str, &str),
    dialogue: &mut Dialogue<'_>,
) -> Result<SecretString, CliError> {
    let problem = |token: &SecretString| {
        secret_problem(what, token).or_else(|| match begin {
            "" => None,
            begin => other_kind(what, begin, token),
        })
    };
    if let Some(given) = given {
        return match problem(given) {
            Some(problem) => Err(CliError::Usage(problem)),
            None => Ok(given.clone()),
        };
    }
    loop {
        let typed = dialogue.ask_secret(what).await?;
        match problem(&typed) {
            Some(problem) => dialogue.say(&problem)?,
            None => return Ok(typed),
        }
    }
}

/// Asks the platform, prints the findings, and returns whether the bot can work with these tokens.
///
/// # Errors
/// If it can't, and nobody is there to give other tokens.
async fn is_taken(answers: &Answers, dialogue: &Dialogue<'_>) -> Result<bool, CliError> {
    let (config, secrets) = tried(answers)?;
    let sections = live::ask_all(&config, &secrets, false).await?;
    let findings: Vec<Finding> = sections.into_iter().flat_map(|it| it.findings).collect();
    let worst = findings.iter().map(|found| found.level).max();
    let mut out = String::new();
    // Findings that the tokens can't answer are left out: the first message of a person answers them.
    let told = findings
        .iter()
        .filter(|it| !it.text.contains("cannot be read with these tokens"));
    for found in told {
        let _ = writeln!(out, "  {:<11}  {}", live::word(found.level), found.text);
    }
    dialogue.say(out.trim_end())?;
    let is_taken = worst.is_none_or(|worst| worst <= FindingLevel::Warning);
    if is_taken || !dialogue.is_mute() {
        if !is_taken {
            dialogue.say("Put that right, and give the tokens once more. Ctrl-C gives up.")?;
        }
        return Ok(is_taken);
    }
    let what = "the platform does not take what was given; see above".to_owned();
    let advice = "nothing was written".to_owned();
    Err(match worst {
        Some(FindingLevel::Refused) => CliError::Refused {
            what,
            advice,
            cause: None,
        },
        Some(FindingLevel::Unreachable) => CliError::Unavailable {
            what,
            advice,
            cause: None,
        },
        _ => CliError::Failed {
            what,
            advice: Some(advice),
            cause: None,
        },
    })
}

/// Waits until somebody who sees this screen writes to the bot, and answers in the room. `None` if nobody does.
pub(super) async fn first_words(
    answers: &Answers,
    channel: &str,
    dialogue: &Dialogue<'_>,
) -> Result<Option<FirstWords>, CliError> {
    let (config, secrets) = tried(answers)?;
    let ear = ChannelEar::open(&config, &secrets, channel).await?;
    let code = ear.code();
    let name = ear.name();
    let how = match channel {
        SLACK => format!("In Slack, in a channel: /invite @{name}   and then write"),
        _ => format!("In Telegram, in a group with @{name}, or at https://t.me/{name}, write"),
    };
    dialogue.say(&format!(
        "\n{how}\n\n    @{name} hello {code}\n\nWaiting for it (Ctrl-C gives up) ..."
    ))?;
    let heard = tokio::select! {
        heard = ear.hear() => heard,
        _ = ctrl_c() => {
            ear.close().await;
            return Err(given_up("interrupted"));
        }
    };
    let Some(words) = heard else {
        ear.close().await;
        return Ok(None);
    };
    dialogue.say(&format!(
        "  heard        {} in {}",
        words.person_shown(),
        words.chat_shown()
    ))?;
    for found in ear.greet(&words).await {
        dialogue.say(&format!(
            "  {:<11}  {}",
            live::word(found.level),
            found.text
        ))?;
    }
    ear.close().await;
    Ok(Some(words))
}

/// The steps to make the app: a link that carries the manifest, and where the tokens are.
fn slack_steps() -> Result<String, CliError> {
    let plain = SlackManifestArgs {
        agent_view: false,
        public_url: None,
        channel: None,
    };
    let manifest = manifest::slack(&plain)?;
    let mut link = String::from("https://api.slack.com/apps?new_app=1&manifest_yaml=");
    let lines = manifest
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    for byte in lines.flat_map(|line| line.bytes().chain(std::iter::once(b'\n'))) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                link.push(char::from(byte));
            }
            byte => {
                let _ = write!(link, "%{byte:02X}");
            }
        }
    }
    Ok(format!(
        "\nSlack: open this page, choose the workspace, Next, Create:\n\n{link}\n\n\
         Then: Basic Information, App-Level Tokens, Generate, with the scope connections:write (xapp-...);\n\
         Install App, Install to Workspace (xoxb-...).\n"
    ))
}

const TELEGRAM_STEPS: &str = "
Telegram: write to https://t.me/BotFather:

    /newbot         a name, and a username that ends in bot; it answers with the token
    /setprivacy     choose the bot, Disable: only then it hears mentions in groups
    /setjoingroups  choose the bot, Enable
";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_link_to_slack_holds_the_manifest() {
        let steps = slack_steps().unwrap();
        let link = steps
            .lines()
            .find(|line| line.starts_with("https://"))
            .unwrap();
        let url = reqwest::Url::parse(link).unwrap();
        let pairs: Vec<_> = url.query_pairs().collect();
        assert_eq!(pairs[0], ("new_app".into(), "1".into()));
        let manifest = &pairs[1].1;
        assert!(
            manifest.contains("\n  socket_mode_enabled: true\n"),
            "{manifest}"
        );
        assert!(manifest.contains("      - chat:write\n"), "{manifest}");
        // Browsers and proxies cut longer links.
        assert!(link.len() < 4_000, "{}", link.len());
    }
}
