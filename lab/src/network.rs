//! The rows about several agents: a network decides, its agents are asked, one of them gives another one a task, and
//! the daemon is killed around each commit of that. Nobody is asked twice, and the room reads one answer.

use serde_json::json;
use vocative_sandbox::model::ModelReply;

use super::memory::{ask, end_of, listening, note_kill};
use super::plan::PlanRow;
use super::play::settle;
use super::scene::AskedScene;
use super::stage::LabStage;
use super::tally::Tally;
use vocative::cli::CliError;

/// Requests to the model for one question: the first agent, the second with its call, the agent that is given the task,
/// and the second with the result.
const REQUESTS: usize = 4;

/// The agents and the network, as TOML.
pub(super) fn agents(model: &str) -> String {
    let agent = |name: &str, more: &str| {
        format!(
            "[agents.{name}]\nmodel = \"{model}\"\nsummary_model = \"offline\"\nmax_attempts = 100\nchannels = []\n\
             tools = []\n{more}\n"
        )
    };
    format!(
        "{}{}{}[networks.vocative]\nagents = [\"sort\", \"desk\"]\ndefault_agent = \"desk\"\nsilent = [\"sort\"]\n\
         [[networks.vocative.rules]]\nwhen = {{ calls = 0 }}\ncall = \"sort\"\n\
         [[networks.vocative.rules]]\nwhen = {{ calls = 1 }}\ncall = \"desk\"\n",
        agent("sort", ""),
        agent("look", ""),
        agent("desk", "delegates = [\"look\"]"),
    )
}

/// A network works on a question, is killed at a point of it, and goes on after the next start.
///
/// # Errors
/// If a server or the daemon can't be started, or the daemon does not connect.
pub(super) async fn network(
    row: &PlanRow,
    stage: &LabStage,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<Tally, CliError> {
    let mut tally = Tally::default();
    let mut scene = AskedScene::default();
    let mut process = listening(stage, None).await?;
    // Its agents repeat what they are asked.
    ask(stage, &mut scene, "q00000-before");
    settle(stage, &mut process, |_| {}).await?;
    process.kill(stage).await?;
    let before = stage.model.requests().len();
    let word = "q00001-network";
    let task = json!({"agent": "look", "task": "Where is it?"});
    for reply in [
        ModelReply::text("A thing is looked for."),
        ModelReply::tool_call("call_1", "ask_agent", task),
        ModelReply::text("Under the mat."),
        ModelReply::text(&format!("{word} lies under the mat.")),
    ] {
        stage.model.enqueue(reply);
    }
    process = listening(stage, Some((row.name(), passes(row, random)))).await?;
    ask(stage, &mut scene, word);
    let is_killed = end_of(process, stage).await?;
    note_kill(&mut tally, is_killed);
    process = listening(stage, None).await?;
    settle(stage, &mut process, |_| {}).await?;
    process.kill(stage).await?;
    tally.count(stage, &scene, &[]);
    let asked = stage.model.requests().len() - before;
    if asked != REQUESTS {
        tally.doubled += 1;
        tally.doubled_outside += 1;
        let what = format!("the agents were asked {asked} times, and not {REQUESTS} times");
        tally.wrong.push(what);
    }
    Ok(tally)
}

/// At which pass of the point the daemon ends: there are three decisions, two agent calls and one task.
fn passes(row: &PlanRow, random: &mut impl FnMut(u64) -> u64) -> u64 {
    let most = match row.name().split_once('.') {
        Some(("decision", _)) => 3,
        Some(("member", _)) => 2,
        _ => 1,
    };
    1 + random(most)
}
