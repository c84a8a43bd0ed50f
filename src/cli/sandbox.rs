//! `vocative sandbox`: the loopback platforms, for bots of any kind.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use vocative_sandbox::model::ModelServer;
use vocative_sandbox::selfcheck::PlatformRefusal;
use vocative_sandbox::slack::{SlackServer, SlackWorld, slack_refusals};
use vocative_sandbox::telegram::{TelegramServer, TelegramWorld, telegram_refusals};
use vocative_sandbox::wire::WireLog;

use super::args::SandboxArgs;
use super::context::CliContext;
use super::error::{CliError, Exit};
use crate::daemon::system::{SignalRequest, Signals};

/// Serves until Ctrl-C or SIGTERM. With `--self-check` provokes every refusal once and ends; with `--mcp-stdio` serves
/// tools only.
pub(super) async fn run(args: &SandboxArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    if args.self_check {
        return self_check(context).await;
    }
    if let Some(file) = &args.mcp_stdio {
        let served = vocative_sandbox::mcp::serve_stdio(file);
        served.map_err(|cause| CliError::failed("the server of tools ended", cause))?;
        return Ok(Exit::Ok.into());
    }
    let mut signals =
        Signals::listen().map_err(|cause| CliError::failed("signals can't be heard", cause))?;
    let failed = |option: &'static str, port: u16| {
        move |cause: std::io::Error| CliError::Unavailable {
            what: format!("--{option} {port} can't be used"),
            advice: "end what has the port, or choose another one; 0 = any free one".to_owned(),
            cause: Some(cause.into()),
        }
    };
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let wire = WireLog::new();
    let slack = SlackServer::start(SlackWorld::acme(), at(args.slack_port), wire.clone())
        .await
        .map_err(failed("slack-port", args.slack_port))?;
    let telegram =
        TelegramServer::start(TelegramWorld::team(), at(args.telegram_port), wire.clone())
            .await
            .map_err(failed("telegram-port", args.telegram_port))?;
    let model = ModelServer::start(at(args.model_port), wire)
        .await
        .map_err(failed("model-port", args.model_port))?;
    let told = match args.json {
        true => format!(
            "{}\n",
            vocative_sandbox::addresses(&slack, &telegram, &model)
        ),
        false => instructions(&slack, &telegram, &model),
    };
    context.print(&told)?;
    while signals.next().await != SignalRequest::Stop {}
    slack.stop().await;
    telegram.stop().await;
    model.stop().await;
    Ok(Exit::Ok.into())
}

/// What the author of a bot needs: a configuration to paste, and how to speak as a person.
fn instructions(slack: &SlackServer, telegram: &TelegramServer, model: &ModelServer) -> String {
    let world = slack.world();
    let team = TelegramWorld::team();
    let mut out = String::new();
    let _ = writeln!(out, "# The loopback platforms are up. Ctrl-C ends them.");
    let _ = writeln!(out, "SLACK_API_URL={}", slack.api_url());
    let _ = writeln!(out, "SLACK_APP_TOKEN={}", world.app_token);
    let _ = writeln!(out, "SLACK_BOT_TOKEN={}", world.bot_token);
    let _ = writeln!(out, "SLACK_SIGNING_SECRET={}", world.signing_secret);
    let _ = writeln!(out, "TELEGRAM_API_URL={}", telegram.api_url());
    let _ = writeln!(out, "TELEGRAM_TOKEN={}", team.bot.token);
    let _ = writeln!(out, "OPENAI_API_KEY=any");
    let _ = writeln!(out, "OPENAI_BASE_URL={}", model.openai_url());
    let _ = writeln!(out, "ANTHROPIC_BASE_URL={}", model.anthropic_url());
    let _ = writeln!(
        out,
        "\n# A configuration for Vocative: save it as sandbox.toml, and with these variables exported,\n\
         # vocative run --config sandbox.toml"
    );
    out.push_str(&configuration(slack, telegram, model));
    let _ = writeln!(out, "\n# Speak as a person:");
    let _ = writeln!(
        out,
        "curl -s http://{}/control/post -H 'content-type: application/json' \\\n  -d '{{\"channel\":\"#general\",\"user\":\"ann\",\"text\":\"@{} hello\"}}'",
        slack.addr(),
        world.bot_name
    );
    let _ = writeln!(
        out,
        "curl -s http://{}/control/say -H 'content-type: application/json' \\\n  -d '{{\"chat\":{},\"user\":{},\"text\":\"@{} hello\"}}'",
        telegram.addr(),
        TelegramWorld::SUPERGROUP,
        TelegramWorld::ANN,
        team.bot.username
    );
    out
}

/// A configuration of the daemon for the loopback platforms.
fn configuration(slack: &SlackServer, telegram: &TelegramServer, model: &ModelServer) -> String {
    format!(
        "[daemon]\n\
         data_dir = \"sandbox-data\"\n\
         [models.default]\n\
         provider = \"openai\"\n\
         model = \"scripted\"\n\
         api_key = \"env:OPENAI_API_KEY\"\n\
         base_url = \"{}\"\n\
         [channels.slack.acme]\n\
         api_url = \"{}\"\n\
         app_token = \"env:SLACK_APP_TOKEN\"\n\
         bot_token = \"env:SLACK_BOT_TOKEN\"\n\
         [channels.telegram.team]\n\
         api_url = \"{}\"\n\
         token = \"env:TELEGRAM_TOKEN\"\n\
         allow_chats = [\"*\"]\n\
         allow_people = [\"*\"]\n",
        model.openai_url(),
        slack.api_url(),
        telegram.api_url()
    )
}

async fn self_check(context: &CliContext) -> Result<ExitCode, CliError> {
    let mut refusals = slack_refusals().await;
    refusals.extend(telegram_refusals().await);
    let mut out = String::new();
    for refusal in &refusals {
        let _ = writeln!(out, "{}", line(refusal));
    }
    let held = refusals.iter().filter(|refusal| refusal.ok).count();
    let _ = writeln!(
        out,
        "\n{held} of {} refusals are as the sheets say.",
        refusals.len()
    );
    context.print(&out)?;
    let exit = if held == refusals.len() {
        Exit::Ok
    } else {
        Exit::Failed
    };
    Ok(exit.into())
}

fn line(refusal: &PlatformRefusal) -> String {
    let mark = if refusal.ok { "ok  " } else { "FAIL" };
    let mut line = format!(
        "{mark}  {:<18} {:<58} {}",
        refusal.section, refusal.what, refusal.expected
    );
    if !refusal.ok {
        let _ = write!(line, "  (got: {})", refusal.got);
    }
    line
}
