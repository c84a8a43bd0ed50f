//! The second scene: an agent's refund waits for a person, through a kill of the daemon.
//!
//! The daemon is a process of its own here, so that it can be killed. It has the loopback Slack, a
//! scripted model that asks for the refund, and a loopback shop that takes it.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::json;
use tokio::process::{Child, Command};
use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::orders::OrderServer;
use vocative_sandbox::slack::{BlockAction, SlackPost, SlackServer, SlackWorld};
use vocative_sandbox::wire::WireLog;

use super::stage::{GENERAL, POLL, PrivateDirectory, has_buttons, is_idle};
use super::{say_line, transcript};
use crate::admin::operations::AdminOperation;
use crate::admin::socket;
use crate::admin::view::StatusView;
use crate::cli::CliError;
use crate::cli::args::Fault;
use crate::config::CONTROL_SOCKET_NAME;

/// How long a step may take.
const STEP_WAIT: Duration = Duration::from_secs(15);
const ANN: &str = "U0ANN";
const BOB: &str = "U0BOB";
const ANSWER: &str = "The 120 for the tea are refunded.";

/// The steps of the scene, in order.
#[derive(Clone, Copy, Debug)]
pub(super) enum ApprovalStep {
    /// The call waits, and a card asks for a decision.
    Card,
    /// Bob, who may not decide, presses Approve.
    Refusal,
    /// The daemon is killed and started again.
    Kill,
    /// Ann, who asked and may decide, presses Approve.
    Approval,
    /// The call is made.
    Refund,
}

impl ApprovalStep {
    const ALL: [Self; 5] = [
        Self::Card,
        Self::Refusal,
        Self::Kill,
        Self::Approval,
        Self::Refund,
    ];

    /// What must happen in the step, in words.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Card => "the refund of 120 waits as a card, and nothing is refunded",
            Self::Refusal => "Bob presses Approve -> only he is told that he can't decide",
            Self::Kill => "the daemon is killed and started again -> the refund still waits",
            Self::Approval => "Ann presses Approve -> the card says who approved, and when",
            Self::Refund => "the refund is made exactly once, and Ann is answered",
        }
    }
}

/// How a step went.
#[derive(Clone, Debug)]
pub(super) struct ApprovalStepOutcome {
    /// The step.
    pub(super) step: ApprovalStep,
    /// What is wrong; `None` = as expected.
    pub(super) problem: Option<String>,
}

/// Plays the scene up to its end, or to the first step that does not happen.
///
/// # Errors
/// If the platforms or the daemon can't be started.
pub(super) async fn play(
    wire: &WireLog,
    fault: Option<Fault>,
) -> Result<Vec<ApprovalStepOutcome>, CliError> {
    say_line("");
    say_line("A call that waits for a person (this daemon is a process of its own):");
    say_line("");
    let mut stage = ApprovalStage::build(wire, fault).await?;
    let mut outcomes = Vec::new();
    for step in ApprovalStep::ALL {
        let problem = stage.act(step).await.err();
        let is_over = problem.is_some();
        outcomes.push(ApprovalStepOutcome { step, problem });
        if is_over {
            break;
        }
    }
    transcript::settle(wire).await;
    stage.strike().await;
    Ok(outcomes)
}

struct ApprovalStage {
    /// Declared before its folder, so that the daemon is killed before the folder is removed.
    daemon: Child,
    slack: SlackServer,
    model: ModelServer,
    shop: OrderServer,
    wire: WireLog,
    directory: PrivateDirectory,
    /// The timestamps of Ann's question and of the card in answer to it, once they are posted.
    question_ts: String,
    card_ts: String,
}

impl ApprovalStage {
    async fn build(wire: &WireLog, fault: Option<Fault>) -> Result<Self, CliError> {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let slack = SlackServer::start(SlackWorld::acme(), anywhere, wire.clone()).await?;
        let model = ModelServer::start(anywhere, wire.clone()).await?;
        let shop = OrderServer::start(anywhere).await?;
        let directory = PrivateDirectory::make()?;
        let text = config_text(&slack, &model, &shop, &directory, fault);
        std::fs::write(directory.path().join("demo.toml"), text)?;
        let daemon = run_daemon(&slack, &directory)?;
        let stage = Self {
            daemon,
            slack,
            model,
            shop,
            wire: wire.clone(),
            directory,
            question_ts: String::new(),
            card_ts: String::new(),
        };
        Ok(stage)
    }

    async fn act(&mut self, step: ApprovalStep) -> Result<(), String> {
        match step {
            ApprovalStep::Card => self.ask_for_refund().await,
            ApprovalStep::Refusal => self.press_as_bob().await,
            ApprovalStep::Kill => self.kill().await,
            ApprovalStep::Approval => self.press_as_ann().await,
            ApprovalStep::Refund => self.see_refund().await,
        }
    }

    async fn ask_for_refund(&mut self) -> Result<(), String> {
        self.wait_until_connected().await?;
        let refund = json!({"what": "tea", "amount": 120});
        self.model
            .enqueue(ModelReply::tool_call("call_1", "refund", refund));
        let asked = "@vocative please refund the 120 for the tea";
        self.question_ts = self.slack.say(GENERAL, ANN, asked);
        let is_card = |post: &SlackPost| post.is_reply_in(&self.question_ts) && has_buttons(post);
        let card = self.slack.wait_for_post(GENERAL, is_card, STEP_WAIT).await;
        let card = card.ok_or("no card came")?;
        self.card_ts.clone_from(&card.ts);
        // A press counts only once the daemon knows the card's message id.
        self.wait_until_idle().await?;
        transcript::settle(&self.wire).await;
        let arguments = arguments_of(&card).join(", ");
        say_line(&format!("          The card shows: {arguments}"));
        if arguments != "what \"tea\", amount 120" {
            return Err(format!("the card shows: {arguments}"));
        }
        self.nothing_is_refunded()
    }

    async fn press_as_bob(&self) -> Result<(), String> {
        self.press("Bob", BOB)?;
        // Either the daemon refuses his press, or he has decided.
        let outcome = self.wait_for(|| {
            let mut all = self.slack.ephemerals().into_iter();
            let told = all.find(|told| told.user == BOB).map(Ok);
            let decided = self.card().filter(|card| !has_buttons(card)).map(Err);
            told.or(decided)
        });
        let told = outcome.await.ok_or("Bob is told nothing")?;
        let told = told.map_err(|card| {
            let text = one_line(&card.text);
            format!("Bob decided; the card says: {text}")
        })?;
        transcript::settle(&self.wire).await;
        say_line(&format!("          Only Bob sees: {}", told.text));
        if told.text.contains("You can't decide this") {
            self.nothing_is_refunded()
        } else {
            Err(format!("Bob is told: {}", told.text))
        }
    }

    async fn kill(&mut self) -> Result<(), String> {
        say_line("          The daemon is killed (SIGKILL) and started again.");
        self.daemon
            .kill()
            .await
            .map_err(|cause| cause.to_string())?;
        self.slack.wait_for_socket_count(0, STEP_WAIT).await;
        self.daemon =
            run_daemon(&self.slack, &self.directory).map_err(|cause| cause.to_string())?;
        self.wait_until_connected().await?;
        self.wait_until_idle().await?;
        let open = self.status().await.map(|view| view.runs.approvals_open);
        if open != Some(1) || !self.card().is_some_and(|card| has_buttons(&card)) {
            return Err("the refund does not wait any more".to_owned());
        }
        self.nothing_is_refunded()
    }

    async fn press_as_ann(&self) -> Result<(), String> {
        self.model.enqueue(ModelReply::text(ANSWER));
        self.press("Ann", ANN)?;
        let is_over = |post: &SlackPost| post.ts == self.card_ts && !has_buttons(post);
        let card = self.slack.wait_for_post(GENERAL, is_over, STEP_WAIT).await;
        let card = card.ok_or("the card stays as it was")?;
        transcript::settle(&self.wire).await;
        say_line(&format!("          The card now: {}", one_line(&card.text)));
        let says = ["Approved", "by Ann", "UTC"];
        let shown = format!("{} {}", card.text, card.blocks.unwrap_or_default());
        match says.into_iter().find(|words| !shown.contains(words)) {
            None => Ok(()),
            Some(words) => Err(format!("the card does not say \"{words}\": {}", card.text)),
        }
    }

    async fn see_refund(&self) -> Result<(), String> {
        let is_answer = |post: &SlackPost| {
            post.is_reply_in(&self.question_ts) && post.ts != self.card_ts && post.text == ANSWER
        };
        let answer = self
            .slack
            .wait_for_post(GENERAL, is_answer, STEP_WAIT)
            .await;
        answer.ok_or("Ann is not answered")?;
        self.wait_until_idle().await?;
        let made = self.shop.orders();
        transcript::settle(&self.wire).await;
        for refund in &made {
            say_line(&format!("          The shop refunded: {}", refund.body));
        }
        match made.as_slice() {
            [only] if only.body == json!({"what": "tea", "amount": 120}) => Ok(()),
            _ => Err(format!("the shop made {} refunds", made.len())),
        }
    }

    fn nothing_is_refunded(&self) -> Result<(), String> {
        match self.shop.orders().first() {
            None => Ok(()),
            Some(refund) => Err(format!("the shop refunded: {}", refund.body)),
        }
    }

    fn press(&self, name: &str, user: &str) -> Result<(), String> {
        say_line(&format!("          {name} presses Approve."));
        self.slack.try_block_action(&BlockAction {
            channel: GENERAL.to_owned(),
            user: user.to_owned(),
            message_ts: self.card_ts.clone(),
            button: "Approve".to_owned(),
            ..BlockAction::default()
        })
    }

    fn card(&self) -> Option<SlackPost> {
        let mut posts = self.slack.posts(GENERAL).into_iter();
        posts.find(|post| post.ts == self.card_ts)
    }

    async fn wait_until_connected(&mut self) -> Result<(), String> {
        tokio::select! {
            is_heard = self.slack.wait_for_socket_count(1, STEP_WAIT) => {
                if is_heard { Ok(()) } else { Err("the daemon does not connect".to_owned()) }
            }
            ended = self.daemon.wait() => Err(format!("the daemon ended: {ended:?}")),
        }
    }

    async fn wait_until_idle(&self) -> Result<(), String> {
        let idle = async {
            while !(self.slack.wait_until_all_acked(STEP_WAIT).await
                && self.status().await.is_some_and(|view| is_idle(&view)))
            {
                tokio::time::sleep(POLL).await;
            }
        };
        let waited = tokio::time::timeout(STEP_WAIT, idle).await;
        waited.map_err(|_| "the daemon does not come to rest".to_owned())
    }

    async fn wait_for<T>(&self, find: impl Fn() -> Option<T>) -> Option<T> {
        let found = async {
            loop {
                if let Some(found) = find() {
                    return found;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::time::timeout(STEP_WAIT, found).await.ok()
    }

    async fn status(&self) -> Option<StatusView> {
        let path = self.directory.path().join(CONTROL_SOCKET_NAME);
        let answer = socket::ask(&path, &AdminOperation::Status).await.ok()??;
        StatusView::deserialize(answer).ok()
    }

    /// Ends the daemon and the platforms, and removes what they wrote.
    async fn strike(mut self) {
        let _ = self.daemon.kill().await;
        self.slack.stop().await;
        self.model.stop().await;
    }
}

/// The arguments of the call as the card shows them: each one's name, and its value as code.
fn arguments_of(card: &SlackPost) -> Vec<String> {
    let blocks = card.blocks.as_ref().and_then(|blocks| blocks.as_array());
    let arguments = blocks.into_iter().flatten().filter_map(|block| {
        let text = |part: usize| block["elements"][part]["elements"][0]["text"].as_str();
        let is_code = block["elements"][1]["type"] == "rich_text_preformatted";
        is_code.then(|| Some(format!("{} {}", text(0)?, text(1)?)))?
    });
    arguments.collect()
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// Starts this program as a daemon; it is killed when the handle is dropped.
fn run_daemon(slack: &SlackServer, directory: &PrivateDirectory) -> std::io::Result<Child> {
    let world = slack.world();
    Command::new(std::env::current_exe()?)
        .args(["run", "-qq", "--config"])
        .arg(directory.path().join("demo.toml"))
        .current_dir(directory.path())
        .env_clear()
        .env("HOME", directory.path())
        .env("DEMO_SLACK_APP_TOKEN", world.app_token)
        .env("DEMO_SLACK_BOT_TOKEN", world.bot_token)
        .env("DEMO_MODEL_KEY", "loopback-model-key")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

fn config_text(
    slack: &SlackServer,
    model: &ModelServer,
    shop: &OrderServer,
    directory: &PrivateDirectory,
    fault: Option<Fault>,
) -> String {
    format!(
        r#"
[daemon]
data_dir = "{directory}"
runtime_dir = "{directory}"

[models.scripted]
provider = "openai"
model = "loopback-small"
base_url = "{model}"
api_key = "env:DEMO_MODEL_KEY"

[agents.vocative]
display_name = "Vocative"
model = "scripted"
tools = ["refund"]

[tools.refund]
kind = "http"
description = "Refunds something."
method = "POST"
url = "http://{shop}/orders"
allow_private = ["{shop}"]
approval = {{ when = [{{ at = "/amount", gt = 50 }}] }}
approvers = "{approvers}"
parameters = '''
{{"type": "object", "required": ["what", "amount"], "properties": {{
  "what": {{"type": "string"}}, "amount": {{"type": "number"}}}}}}
'''

[channels.slack.acme]
app_token = "env:DEMO_SLACK_APP_TOKEN"
bot_token = "env:DEMO_SLACK_BOT_TOKEN"
api_url = "{slack}"
"#,
        directory = directory.path().display(),
        model = model.openai_url(),
        shop = shop.addr(),
        approvers = if fault == Some(Fault::OpenApproval) {
            "anyone_in_chat"
        } else {
            "requester"
        },
        slack = slack.api_url(),
    )
}
