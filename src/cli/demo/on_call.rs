//! The scene of the on-call rota: an alert is sorted and looked up in a runbook, and the restart waits for the person
//! on call, through a kill of the daemon. The configuration is `config/examples/on-call.toml`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use toml::{Table, Value};
use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::orders::OrderServer;
use vocative_sandbox::slack::{BlockAction, SlackPost};

use super::say_line;
use super::stage::{GENERAL, POLL, PrivateDirectory, has_buttons, is_idle};
use super::stand::{STEP_WAIT, Stand};
use crate::admin::operations::AdminOperation;
use crate::admin::view::StatusView;
use crate::cli::CliError;

/// The configuration of the scene.
const ON_CALL: &str = include_str!("../../../config/examples/on-call.toml");
const ALERT: &str = "@vocative ALERT checkout: 500 since 03:10";
const RUNBOOK: &str =
    "# Checkout\n\n## It answers 500\nRestart checkout once, and tell the shop.\n";
const NOTE: &str = "Checkout answered 500 since 03:10. It was restarted; Bob allowed it. Left to do: tell the shop.";
/// How many answers of models the scene has.
const REPLIES: usize = 7;
const VERDICTS: [&str; 2] = [
    "As it should: one restart, once Bob allowed it, and one note; no agent was asked twice.",
    "Not as it should: the restart or the note is missing, or there twice, or agents were asked again.",
];

/// Plays the scene.
///
/// # Errors
/// If the platform, the models or the daemon can't be started.
pub(super) async fn run() -> Result<ExitCode, CliError> {
    let services = OrderServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let host = services.addr().to_string();
    // Documents lie outside of the daemon's own folder.
    let runbooks = PrivateDirectory::make()?;
    std::fs::write(runbooks.path().join("checkout.md"), RUNBOOK)?;
    let folder = runbooks.path();
    let stand = Stand::build(ON_CALL, |config| adapt(config, folder, &host)).await?;
    script(&stand.model);
    let story = play(&stand, &services).await;
    let restarts = services.orders().len();
    // Two posts: the card and the note.
    let is_fine = restarts == 1 && stand.posts() == 2 && stand.model.requests().len() == REPLIES;
    stand.judge(story, is_fine, VERDICTS).await
}

/// Adapts the example: Bob is on call, the service and the runbooks are the scene's own, and there are no schedules.
fn adapt(config: &mut Table, runbooks: &Path, host: &str) {
    let restart = config["tools"]["restart"].as_table_mut();
    let restart = restart.expect("the example has the tool");
    restart.remove("bearer");
    restart.insert("url".to_owned(), format!("http://{host}/orders").into());
    restart.insert("allow_private".to_owned(), vec![Value::from(host)].into());
    restart.insert(
        "approvers".to_owned(),
        vec![Value::from("acme/U0BOB")].into(),
    );
    let folder = runbooks.display().to_string();
    config["knowledge"]["runbooks"]["paths"] = vec![Value::from(folder)].into();
    config.remove("schedules");
}

async fn play(stand: &Stand, services: &OrderServer) -> Result<String, CliError> {
    let mut daemon = stand.start().await?;
    rest(stand, |view| {
        view.knowledge.iter().any(|it| it.documents > 0)
    })
    .await?;
    say_line(&format!("Ann: {ALERT}"));
    let asked = stand.slack.say(GENERAL, "U0ANN", ALERT);
    let card = stand.reply(&asked, has_buttons).await?;
    say_line(&format!("(a card) {}", card.text.replace('\n', " ")));
    // A press counts only once the daemon knows the card's message id.
    rest(stand, is_idle).await?;
    stand.kill(daemon).await?;
    say_line("(the daemon is killed while the restart waits, and started again)");
    daemon = stand.start().await?;
    rest(stand, is_idle).await?;
    if !services.orders().is_empty() {
        return Err(CliError::failed(
            "the restart did not wait",
            "nobody had allowed it",
        ));
    }
    say_line("Bob, who is on call, presses Approve.");
    let pressed = stand.slack.try_block_action(&BlockAction {
        channel: GENERAL.to_owned(),
        user: "U0BOB".to_owned(),
        message_ts: card.ts.clone(),
        button: "Approve".to_owned(),
        ..BlockAction::default()
    });
    pressed.map_err(|cause| CliError::failed("the card can't be pressed", cause))?;
    let note = stand.reply(&asked, |post: &SlackPost| post.text.contains(NOTE));
    say_line(&note.await?.text);
    say_line("");
    let story = stand.story().await;
    stand.kill(daemon).await?;
    story
}

/// Waits until the daemon's status is as wanted.
async fn rest(stand: &Stand, is_wanted: impl Fn(&StatusView) -> bool) -> Result<(), CliError> {
    let waiting = async {
        loop {
            let status = stand.read::<StatusView>(AdminOperation::Status).await;
            if status.is_ok_and(|view| is_wanted(&view)) {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let waited = tokio::time::timeout(STEP_WAIT, waiting).await;
    waited.map_err(|cause| CliError::failed("the daemon does not come to rest", cause))
}

/// Queues the models' answers, in the order in which they are asked.
fn script(model: &ModelServer) {
    let restart = json!({"service": "checkout", "why": "it answers 500 since 03:10"});
    let search = json!({"queries": ["checkout answers 500"]});
    let replies: [ModelReply; REPLIES] = [
        ModelReply::tool_call("call_1", "set_state", json!({"severity": "page"})),
        ModelReply::text("Checkout answers 500 since 03:10."),
        ModelReply::tool_call("call_2", "knowledge_search", search),
        ModelReply::text("checkout.md: restart checkout once, and tell the shop."),
        ModelReply::tool_call("call_3", "restart", restart),
        ModelReply::text("Checkout is restarted."),
        ModelReply::text(NOTE),
    ];
    for reply in replies {
        model.enqueue(reply);
    }
}
