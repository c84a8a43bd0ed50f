//! What the store has after the scene: what was captured, what was addressed, one whole prompt.

use super::say_line;
use super::scene::SceneOutcome;
use super::stage::DemoStage;
use crate::admin::operations::{AdminOperation, OperationError};
use crate::admin::view::{ConversationDetailView, ConversationView, PromptView, TurnView};
use crate::cli::CliError;
use vocative_core::counted::counted;

/// The most turns that are shown for each conversation.
const TURNS_SHOWN: usize = 50;

/// Prints the report.
pub(super) async fn print(stage: &DemoStage, outcomes: &[SceneOutcome]) -> Result<(), CliError> {
    let conversations: Vec<ConversationView> = ask(
        stage,
        AdminOperation::Conversations {
            channel: None,
            limit: 0,
            all: true,
            before: None,
        },
    )
    .await?;
    say_line("");
    say_line("What was captured (seq, who, what; > = it addressed an agent):");
    for conversation in conversations.iter().rev() {
        let name = conversation.id.clone();
        let detail: ConversationDetailView = ask(
            stage,
            AdminOperation::Conversation {
                name,
                limit: TURNS_SHOWN,
                timeline: false,
                before: None,
            },
        )
        .await?;
        say_line("");
        say_line(&format!(
            "{}  ({}, {})",
            conversation.name,
            conversation.scope,
            counted(conversation.turns, "turn", "turns")
        ));
        for turn in &detail.turns {
            print_turn(turn);
        }
    }
    let thread = conversations
        .iter()
        .find(|conversation| conversation.scope == "thread");
    if let (Some(thread), true) = (
        thread,
        outcomes.iter().any(|outcome| outcome.answer.is_some()),
    ) {
        print_prompt(stage, thread).await?;
    }
    Ok(())
}

fn print_turn(turn: &TurnView) {
    let mark = if turn.addressed_to.is_empty() {
        ' '
    } else {
        '>'
    };
    let text = turn.text.replace('\n', " ");
    let to = if turn.addressed_to.is_empty() {
        String::new()
    } else {
        format!("   [addressed: {}]", turn.addressed_to.join(", "))
    };
    say_line(&format!(
        "{mark} {:>4}  {}: {text}{to}",
        turn.seq, turn.speaker
    ));
    for post in &turn.posts {
        let id = post.message_id.as_deref().unwrap_or("-");
        say_line(&format!(
            "        posted: part {} {} as {id}",
            post.part, post.state
        ));
    }
}

/// Prints the prompt of the first answer in the thread, assembled as of just before the answer.
async fn print_prompt(stage: &DemoStage, thread: &ConversationView) -> Result<(), CliError> {
    let name = thread.id.clone();
    let detail: ConversationDetailView = ask(
        stage,
        AdminOperation::Conversation {
            name: name.clone(),
            limit: TURNS_SHOWN,
            timeline: false,
            before: None,
        },
    )
    .await?;
    let Some(answer) = detail
        .turns
        .iter()
        .find(|turn| turn.speaker_kind == "agent")
    else {
        return Ok(());
    };
    let before = answer.seq - 1;
    let prompt: PromptView = ask(
        stage,
        AdminOperation::Prompt {
            name,
            agent: None,
            at: Some(before),
        },
    )
    .await?;
    say_line("");
    say_line(&format!(
        "The exact prompt of the first answer in {} ({} tokens by {}, instructions {}):",
        prompt.conversation, prompt.tokens, prompt.counter, prompt.instruction_tokens
    ));
    for message in &prompt.messages {
        say_line(&format!(
            "  {:<9} | {}",
            message.role,
            message.content.replace('\n', "\n            | ")
        ));
    }
    for omitted in &prompt.omitted {
        say_line(&format!(
            "  left out  | seq {} by {}: {}",
            omitted.seq, omitted.speaker, omitted.why
        ));
    }
    Ok(())
}

async fn ask<T: serde::de::DeserializeOwned>(
    stage: &DemoStage,
    operation: AdminOperation,
) -> Result<T, CliError> {
    let answer = stage.daemon.operations().execute(operation).await?;
    Ok(serde_json::from_value(answer).map_err(|cause| OperationError::Wrong(cause.to_string()))?)
}
