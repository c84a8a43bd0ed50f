//! `vocative setup`: from nothing to the first answer.
//!
//! Reading order: `answers` (what has to be known), `written` (pure: the files made from them, or why there are none),
//! `given` (answers from options), `dialogue` (answers from people), `platforms` and `models` (asked and tried at
//! once), `files`, `starting`. Nothing is written before all answers are there.

mod answers;
mod dialogue;
mod files;
mod given;
mod models;
mod platforms;
mod starting;
#[cfg(test)]
mod tests;
mod written;

use std::path::Path;
use std::process::ExitCode;

use self::answers::{Answers, PlaceKind};
use self::dialogue::{Dialogue, given_up};
use self::given::SetupGiven;
use self::platforms::{SLACK, TELEGRAM};
use self::starting::Got;
use self::written::{SetupFiles, SetupRefusal, written};
use super::args::{DoctorArgs, SetupArgs, SetupPlatform, TextFormat};
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::{doctor, live::FirstWords};
use crate::config::Config;

/// Asks, tries the answers, writes the files, starts the daemon, and waits for the first answer.
pub(super) async fn run(args: &SetupArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    if context.global.config.is_some() {
        return Err(CliError::Usage(
            "setup writes vocative.toml itself: name the folder with --place files --folder DIR"
                .to_owned(),
        ));
    }
    let given = SetupGiven::read(args, &context.environment)?;
    if args.non_interactive {
        let missing = given.missing(args);
        if !missing.is_empty() {
            return Err(CliError::Usage(format!(
                "--non-interactive asks nobody, and this is missing: {}",
                missing.join("; ")
            )));
        }
    }
    let mut dialogue = Dialogue::new(context, args.non_interactive);
    let (answers, words) = ask(args, &given, &mut dialogue, context).await?;
    let made = written(&answers, &context.environment).map_err(refused)?;
    if !write(args, &answers, &made, &mut dialogue).await? {
        return Ok(Exit::Ok.into());
    }
    Box::pin(finish(args, &answers, words, &dialogue, context)).await
}

fn refused(SetupRefusal(problems): SetupRefusal) -> CliError {
    CliError::Unconfigured {
        what: format!(
            "these answers make no configuration: {}",
            problems.join("; ")
        ),
        advice: "nothing was written".to_owned(),
    }
}

/// All answers, from options or people, each tried at once. The number is on how many platforms somebody wrote to the
/// bot.
async fn ask(
    args: &SetupArgs,
    given: &SetupGiven,
    dialogue: &mut Dialogue<'_>,
    context: &CliContext,
) -> Result<(Answers, u64), CliError> {
    let platform = match given.platform {
        Some(platform) => platform,
        None => {
            let choices = [
                ("slack", "a workspace".to_owned()),
                ("telegram", "a bot".to_owned()),
                ("both", "one program serves both".to_owned()),
            ];
            let kinds = [
                SetupPlatform::Slack,
                SetupPlatform::Telegram,
                SetupPlatform::Both,
            ];
            kinds[dialogue
                .choose("Where is the bot to be?", &choices, 0)
                .await?]
        }
    };
    let mut answers = platforms::only(None, None);
    if platform.has_slack() {
        answers.slack = Some(platforms::slack(given, dialogue).await?);
    }
    if platform.has_telegram() {
        answers.telegram = Some(platforms::telegram(given, dialogue).await?);
    }
    answers.model = models::model(given, dialogue).await?;
    answers.place = given::place(args, &context.environment, dialogue).await?;
    // The last question: a platform soon sends unacknowledged messages again, and the daemon should receive them.
    let words = hear_all(args, &mut answers, dialogue).await?;
    Ok((answers, words))
}

/// Waits on each platform for a message to the bot, and takes the chat and the person from it; returns how many came.
async fn hear_all(
    args: &SetupArgs,
    answers: &mut Answers,
    dialogue: &Dialogue<'_>,
) -> Result<u64, CliError> {
    let mut words = 0;
    let of_telegram = platforms::only(None, answers.telegram.clone());
    if let Some(telegram) = &mut answers.telegram
        && let Some(heard) = hear(args, &of_telegram, TELEGRAM, dialogue).await?
    {
        let (list, id) = match heard.is_direct {
            true => (&mut telegram.people, &heard.person),
            false => (&mut telegram.chats, &heard.chat),
        };
        if !list.contains(id) {
            list.push(id.clone());
        }
        telegram.admins = vec![heard.person];
        words += 1;
    }
    let of_slack = platforms::only(answers.slack.clone(), None);
    if let Some(slack) = &mut answers.slack
        && let Some(heard) = hear(args, &of_slack, SLACK, dialogue).await?
    {
        slack.admins = vec![heard.person];
        words += 1;
    }
    Ok(words)
}

/// Waits for a person's message, unless nobody may be asked or `--no-wait` is given.
async fn hear(
    args: &SetupArgs,
    answers: &Answers,
    channel: &str,
    dialogue: &Dialogue<'_>,
) -> Result<Option<FirstWords>, CliError> {
    if dialogue.is_mute() || args.no_wait {
        return Ok(None);
    }
    let heard = platforms::first_words(answers, channel, dialogue).await?;
    if heard.is_none() {
        return Err(given_up("nobody wrote to the bot in ten minutes"));
    }
    Ok(heard)
}

/// Writes the files, after showing what would change; returns whether they are up to date now.
async fn write(
    args: &SetupArgs,
    answers: &Answers,
    made: &SetupFiles,
    dialogue: &mut Dialogue<'_>,
) -> Result<bool, CliError> {
    let changes = files::changes(&answers.place, made)?;
    if changes.files.is_empty() {
        dialogue.say(&format!(
            "\n{} is as it should be.",
            answers.place.file().display()
        ))?;
        return Ok(true);
    }
    if let Some(diff) = &changes.diff {
        let path = answers.place.file();
        dialogue.say(&format!(
            "\n{} is there and would change:\n\n{diff}",
            path.display()
        ))?;
        let may = match (args.replace, dialogue.is_mute()) {
            (true, _) => true,
            (false, true) => {
                return Err(CliError::Failed {
                    what: format!("{} is there and is another one", path.display()),
                    advice: Some(
                        "--replace writes the new one, and keeps the old one beside it".to_owned(),
                    ),
                    cause: None,
                });
            }
            (false, false) => {
                dialogue
                    .ask("Replace it? The old one is kept (yes, no)", "no")
                    .await?
                    == "yes"
            }
        };
        if !may {
            dialogue.say("Nothing was written.")?;
            return Ok(false);
        }
    }
    let kept = files::write(&answers.place, made)?;
    for path in &changes.files {
        dialogue.say(&format!("  {:<11}  {}", "written", path.display()))?;
    }
    if let Some(kept) = kept {
        dialogue.say(&format!("  {:<11}  {}", "kept", kept.display()))?;
    }
    Ok(true)
}

/// Checks the written configuration, starts the daemon and reports how far it got.
async fn finish(
    args: &SetupArgs,
    answers: &Answers,
    words: u64,
    dialogue: &Dialogue<'_>,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    let path = answers.place.file();
    let (config, ..) = Config::load_with_secrets(Some(&path), &context.environment)?;
    let command = format!("vocative run --config {}", path.display());
    if args.no_start {
        dialogue.say(&format!(
            "\nThe configuration is fine. Start it with: {command}"
        ))?;
        return Ok(Exit::Ok.into());
    }
    dialogue.say("\nStarting it ...")?;
    let home = context.environment.get_filled("HOME").map(Path::new);
    let mut started = starting::start(&answers.place, home).await?;
    let got = starting::wait(&mut started, &config, words).await;
    let is_tried = answers.place.kind == PlaceKind::Files;
    if !is_tried {
        examine(&path, dialogue, context).await?;
    }
    starting::end(started).await;
    let got = got?;
    let told = match got {
        Got::Answered => "It answered: look into the room.",
        Got::Connected => "It serves: write to the bot.",
        Got::Heard => {
            "It has heard the words, and has not answered yet: `vocative queue` says why."
        }
        Got::Unheard => {
            "It is connected and has not heard the words again: write to the bot once more."
        }
        Got::Unconnected => "It is not connected yet: `vocative doctor` says why.",
    };
    dialogue.say(&format!("\n{told}"))?;
    if is_tried {
        dialogue.say(&format!(
            "It was started to be tried, and has ended. Start it with: {command}"
        ))?;
    }
    Ok(match got {
        Got::Answered | Got::Connected => Exit::Ok,
        Got::Heard | Got::Unheard => Exit::Failed,
        Got::Unconnected => Exit::Unavailable,
    }
    .into())
}

/// Prints the doctor's report on the new configuration.
async fn examine(
    path: &Path,
    dialogue: &Dialogue<'_>,
    context: &CliContext,
) -> Result<(), CliError> {
    let looked = CliContext {
        global: super::args::GlobalArgs {
            config: Some(path.to_owned()),
            ..context.global.clone()
        },
        environment: context.environment.clone(),
    };
    let args = DoctorArgs {
        fix: false,
        offline: true,
        verify: false,
        backups: None,
        format: TextFormat::Text,
    };
    let report = doctor::examine(&args, &looked).await?;
    dialogue.say(&format!("\n{}", report.text().trim_end()))
}
