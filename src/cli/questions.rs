//! `vocative questions`: questions that models ask people while they work on an answer.

use std::process::ExitCode;

use super::args::{QuestionsCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, one_line, table};
use crate::admin::operations::{AdminOperation, AnsweredQuestion};
use crate::admin::view::QuestionView;
use vocative_core::approving::visible_line;

/// Characters of a question in the list.
const QUESTION_CHARS: usize = 48;

/// Lists, shows, answers and cancels questions.
pub(super) async fn run(
    command: &QuestionsCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        QuestionsCommand::List { all, format } => {
            let operation = AdminOperation::Questions { all: *all };
            let found: Vec<QuestionView> = ask(context, operation).await?;
            context.print(&match format {
                TableFormat::Json => super::json_text(&found)?,
                TableFormat::Table => report(&found),
            })?;
        }
        QuestionsCommand::Show { id, format } => {
            let id = id.clone();
            let found: QuestionView = ask(context, AdminOperation::Question { id }).await?;
            context.print(&match format {
                TableFormat::Json => super::json_text(&found)?,
                TableFormat::Table => shown(&found),
            })?;
        }
        QuestionsCommand::Answer { id, text, by } => {
            let answered = AnsweredQuestion {
                id: id.clone(),
                text: text.clone(),
                by: by.clone(),
            };
            let operation = AdminOperation::AnswerQuestion(answered);
            let _: QuestionView = ask(context, operation).await?;
            context.print("It is answered; the run goes on.\n")?;
        }
        QuestionsCommand::Cancel { id } => {
            let id = id.clone();
            let _: QuestionView = ask(context, AdminOperation::CancelQuestion { id }).await?;
            context.print("It is taken back; the run goes on without an answer.\n")?;
        }
    }
    Ok(Exit::Ok.into())
}

fn report(questions: &[QuestionView]) -> String {
    if questions.is_empty() {
        return "No question waits for a person.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = questions
        .iter()
        .map(|question| {
            let place = [question.channel.as_deref().unwrap_or("?"), &question.chat];
            vec![
                question.id.clone(),
                question.state.clone(),
                place.join("/"),
                one_line(&visible_line(&question.question), QUESTION_CHARS),
                visible_line(&question.asked.join(", ")),
                instant(question.expires_at_ms),
                visible_line(question.answered_by.as_deref().unwrap_or_default()),
            ]
        })
        .collect();
    let header = [
        "id",
        "state",
        "chat",
        "question",
        "asked",
        "until",
        "answered by",
    ];
    table(&header, &cells) + "\n`vocative questions show ID` shows all of one.\n"
}

fn shown(question: &QuestionView) -> String {
    let place = [question.channel.as_deref().unwrap_or("?"), &question.chat];
    let line = |label: &str, text: &str| format!("  {label:<12}{}", visible_line(text));
    let mut lines = vec![
        format!("{} ({})", question.id, question.state),
        line("chat", &place.join("/")),
        line("agent", &question.agent),
        line("run", &question.run),
        line("asked", &question.asked.join(", ")),
        line("asked at", &instant(Some(question.asked_at_ms))),
        line("until", &instant(question.expires_at_ms)),
    ];
    if let Some(ended_at_ms) = question.ended_at_ms {
        lines.push(line("ended at", &instant(Some(ended_at_ms))));
    }
    let said = question.question.lines().map(visible_line);
    lines.push(String::new());
    lines.extend(said);
    let options = question.options.iter();
    lines.extend(options.map(|option| format!("- {}", visible_line(option))));
    if let Some(by) = &question.answered_by {
        let answer = question.answer.as_deref().unwrap_or("(it is gone)");
        let answer: Vec<String> = answer.lines().map(visible_line).collect();
        lines.push(format!("\n{}: {}", visible_line(by), answer.join("\n")));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_shown_with_its_answer() {
        let question = QuestionView {
            id: "0198c5de-1234-7abc-8def-0123456789ab".to_owned(),
            state: "answered".to_owned(),
            channel: Some("acme".to_owned()),
            chat: "C1".to_owned(),
            run: "0198c5de-0000-7abc-8def-0123456789ab".to_owned(),
            agent: "helper".to_owned(),
            question: "Which colour?".to_owned(),
            options: vec!["Blue".to_owned(), "Red".to_owned()],
            asked: vec!["Ann".to_owned()],
            asked_at_ms: 1_700_000_000_000,
            expires_at_ms: Some(1_700_086_400_000),
            ended_at_ms: Some(1_700_000_060_000),
            answered_by: Some("Ann".to_owned()),
            answer: Some("Blue".to_owned()),
        };
        insta::assert_snapshot!(shown(&question), @r"
        0198c5de-1234-7abc-8def-0123456789ab (answered)
          chat        acme/C1
          agent       helper
          run         0198c5de-0000-7abc-8def-0123456789ab
          asked       Ann
          asked at    2023-11-14 22:13:20
          until       2023-11-15 22:13:20
          ended at    2023-11-14 22:14:20

        Which colour?
        - Blue
        - Red

        Ann: Blue
        ");
        insta::assert_snapshot!(report(&[question]), @r"
        id                                    state     chat     question       asked  until                answered by
        0198c5de-1234-7abc-8def-0123456789ab  answered  acme/C1  Which colour?  Ann    2023-11-15 22:13:20  Ann

        `vocative questions show ID` shows all of one.
        ");
        assert_eq!(report(&[]), "No question waits for a person.\n");
    }
}
