//! `vocative schedules`: reminders and schedules.

use std::process::ExitCode;

use super::args::{SchedulesCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, one_line, table};
use crate::admin::operations::{AddedSchedule, AdminOperation, ChangedSchedule};
use crate::admin::view::ScheduleView;
use vocative_core::approving::visible_line;

/// Characters of a task in the list.
const TASK_CHARS: usize = 48;

/// Lists, shows, changes and adds schedules.
pub(super) async fn run(
    command: &SchedulesCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        SchedulesCommand::List { all, format } => {
            let operation = AdminOperation::Schedules { all: *all };
            let found: Vec<ScheduleView> = ask(context, operation).await?;
            print(context, *format, &found, || report(&found))?;
        }
        SchedulesCommand::Show { id, format } => {
            let found: ScheduleView = ask(context, AdminOperation::Schedule { id: *id }).await?;
            print(context, *format, &found, || shown(&found))?;
        }
        SchedulesCommand::Pause { id } => change(context, *id, ChangedSchedule::Pause).await?,
        SchedulesCommand::Resume { id } => change(context, *id, ChangedSchedule::Resume).await?,
        SchedulesCommand::Run { id } => change(context, *id, ChangedSchedule::Run).await?,
        SchedulesCommand::Cancel { id } => change(context, *id, ChangedSchedule::Cancel).await?,
        SchedulesCommand::Add(args) => {
            let added = AddedSchedule {
                conversation: args.conversation.clone(),
                when: args.when.clone(),
                zone: args.zone.clone(),
                agent: args.agent.clone(),
                task: args.task.clone(),
                missed: args.missed.clone(),
                jitter_s: args.jitter_s,
            };
            let made: ScheduleView = ask(context, AdminOperation::AddSchedule(added)).await?;
            context.print(&shown(&made))?;
        }
    }
    Ok(Exit::Ok.into())
}

async fn change(context: &CliContext, id: i64, change: ChangedSchedule) -> Result<(), CliError> {
    let operation = AdminOperation::ChangeSchedule { id, change };
    let changed: ScheduleView = ask(context, operation).await?;
    let next = instant(changed.next_at_ms);
    context.print(&format!("#{id} is {}, next {next}.\n", changed.state))
}

fn print(
    context: &CliContext,
    format: TableFormat,
    found: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), CliError> {
    context.print(&match format {
        TableFormat::Json => super::json_text(found)?,
        TableFormat::Table => text(),
    })
}

fn place(schedule: &ScheduleView) -> String {
    [schedule.channel.as_deref().unwrap_or("?"), &schedule.chat].join("/")
}

fn report(schedules: &[ScheduleView]) -> String {
    if schedules.is_empty() {
        return "Nothing is planned.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = schedules
        .iter()
        .map(|schedule| {
            vec![
                schedule.id.to_string(),
                schedule.state.clone(),
                place(schedule),
                schedule.owner_name.clone().unwrap_or_default(),
                schedule.agent.clone().unwrap_or_default(),
                schedule.when.clone(),
                instant(schedule.next_at_ms),
                schedule.fired.to_string(),
                schedule.missed.to_string(),
                one_line(&visible_line(&schedule.task), TASK_CHARS),
            ]
        })
        .collect();
    let header = [
        "id", "state", "chat", "owner", "agent", "when", "next", "fired", "missed", "task",
    ];
    table(&header, &cells) + "\n`vocative schedules show ID` shows all of one.\n"
}

/// One schedule in full, with its newest firings.
fn shown(schedule: &ScheduleView) -> String {
    let mut lines = vec![
        format!("#{} ({})", schedule.id, schedule.state),
        format!("  chat        {}", place(schedule)),
        format!("  when        {}", schedule.when),
        format!("  next        {}", instant(schedule.next_at_ms)),
        format!(
            "  missed      {} ({})",
            schedule.missed, schedule.missed_rule
        ),
        format!("  fired       {}", schedule.fired),
    ];
    if let Some(owner) = &schedule.owner_name {
        lines.push(format!("  owner       {}", visible_line(owner)));
    }
    let agent = schedule.agent.as_deref();
    lines.push(format!(
        "  agent       {}",
        agent.unwrap_or("none: it is posted as it is")
    ));
    if let Some(reason) = &schedule.reason {
        lines.push(format!("  because     {reason}"));
    }
    lines.push(format!("  task        {}", visible_line(&schedule.task)));
    for firing in &schedule.firings {
        let run = firing.run.as_deref().unwrap_or_default();
        let missed = match firing.missed_before {
            0 => String::new(),
            n => format!(", {n} missed before it"),
        };
        let line = format!(
            "  {}  {}{missed} {run}",
            instant(Some(firing.at_ms)),
            firing.outcome
        );
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::view::FiringView;

    #[test]
    fn a_schedule_is_shown_with_its_firings() {
        let schedule = ScheduleView {
            id: 3,
            name: None,
            state: "active".to_owned(),
            reason: None,
            channel: Some("acme".to_owned()),
            chat: "C1".to_owned(),
            conversation: "0198c5de-1234-7abc-8def-0123456789ab".to_owned(),
            owner: Some("U0ANN".to_owned()),
            owner_name: Some("Ann".to_owned()),
            agent: Some("helper".to_owned()),
            when: "0 9 * * 1-5 (Europe/Berlin)".to_owned(),
            missed_rule: "once".to_owned(),
            task: "sum up what is open".to_owned(),
            next_at_ms: Some(1_700_000_000_000),
            fired: 1,
            missed: 2,
            firings: vec![FiringView {
                at_ms: 1_699_900_000_000,
                decided_at_ms: 1_699_900_000_100,
                outcome: "fired".to_owned(),
                missed_before: 2,
                run: None,
            }],
        };
        insta::assert_snapshot!(shown(&schedule), @"
        #3 (active)
          chat        acme/C1
          when        0 9 * * 1-5 (Europe/Berlin)
          next        2023-11-14 22:13:20
          missed      2 (once)
          fired       1
          owner       Ann
          agent       helper
          task        sum up what is open
          2023-11-13 18:26:40  fired, 2 missed before it
        ");
        insta::assert_snapshot!(report(&[schedule]), @"
        id  state   chat     owner  agent   when                         next                 fired  missed  task
        3   active  acme/C1  Ann    helper  0 9 * * 1-5 (Europe/Berlin)  2023-11-14 22:13:20  1      2       sum up what is open

        `vocative schedules show ID` shows all of one.
        ");
        assert_eq!(report(&[]), "Nothing is planned.\n");
    }
}
