//! The scene of the help desk: several agents behind one name answer one question, through a kill of the daemon. The
//! configuration is `config/examples/help-desk.toml`.

use std::process::ExitCode;

use serde_json::json;
use vocative_sandbox::model::{ModelReply, ModelServer};

use super::say_line;
use super::stage::GENERAL;
use super::stand::{STEP_WAIT, Stand};
use crate::cli::CliError;

/// The configuration of the scene.
const HELP_DESK: &str = include_str!("../../../config/examples/help-desk.toml");
const QUESTION: &str = "@vocative where is my order 4711? You said Tuesday.";
const ANSWER: &str = "I am sorry, Ann: order 4711 left on Tuesday and arrives on Thursday.";
/// How many answers of models the scene has.
const REPLIES: usize = 9;
const VERDICTS: [&str; 2] = [
    "As it should: one answer, posted once; only the agent that the kill cut off was asked again.",
    "Not as it should: the answer is missing, or there twice, or agents were asked again.",
];

/// Plays the scene.
///
/// # Errors
/// If the platform, the models or the daemon can't be started.
pub(super) async fn run() -> Result<ExitCode, CliError> {
    let stand = Stand::build(HELP_DESK, |_| {}).await?;
    script(&stand.model);
    let story = play(&stand).await;
    // One request for each answer, and one more for the answer that the kill cut off.
    let was_asked_once = stand.model.requests().len() == REPLIES + 1;
    let is_fine = was_asked_once && stand.posts() == 1;
    stand.judge(story, is_fine, VERDICTS).await
}

async fn play(stand: &Stand) -> Result<String, CliError> {
    let mut daemon = stand.start().await?;
    say_line(&format!("Ann: {QUESTION}"));
    stand.model.hold();
    let asked = stand.slack.say(GENERAL, "U0ANN", QUESTION);
    // The kill comes after the second answer, while the next agent's look-up is under way.
    for answered in 1..=2 {
        stand.model.wait_for_requests(answered, STEP_WAIT).await;
        stand.model.release_one();
    }
    stand.model.wait_for_requests(3, STEP_WAIT).await;
    stand.kill(daemon).await?;
    say_line("(the daemon is killed while an agent looks it up, and started again)");
    daemon = stand.start().await?;
    stand.model.release();
    let answer = stand.reply(&asked, |post| post.text.contains(ANSWER));
    say_line(&answer.await?.text);
    say_line("");
    let story = stand.story().await;
    stand.kill(daemon).await?;
    story
}

/// Queues the models' answers, in the order in which they are asked.
fn script(model: &ModelServer) {
    let sets = |id: &str, values| ModelReply::tool_call(id, "set_state", values);
    let replies: [ModelReply; REPLIES] = [
        sets("call_1", json!({"kind": "complaint"})),
        ModelReply::text("Ann misses order 4711, which was promised for Tuesday."),
        ModelReply::text("Order 4711 was sent on Tuesday; two days by post."),
        ModelReply::text("Order 4711 arrives tomorrow, promised!"),
        sets("call_2", json!({"fine": false})),
        ModelReply::text("It promises what nobody found: say Thursday, and be sorry."),
        ModelReply::text(ANSWER),
        sets("call_3", json!({"fine": true})),
        ModelReply::text("Fine."),
    ];
    for reply in replies {
        model.enqueue(reply);
    }
}
