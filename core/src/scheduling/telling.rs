//! What people, and models, are told of schedules.

use chrono::NaiveDateTime;

use super::stored::{NewSchedule, ScheduleState, StoredSchedule};
use super::timing::Timing;
use super::wording::WordingProblem;
use crate::manners::Zone;

/// So many of the next times are named.
const NEXT_SHOWN: usize = 3;
/// So many characters of a task stand in a list.
const LISTED_CHARS: usize = 80;
/// The delay from which a reminder says that it is late, in milliseconds.
const LATE_MS: i64 = 5 * 60_000;

/// A time as the clocks of a zone show it: `Tue 2026-11-24 09:00 (Europe/Berlin)`.
#[must_use]
pub fn shown_instant(at_ms: i64, zone: Zone) -> String {
    let shown = zone.clock(at_ms);
    let day = |at: NaiveDateTime| at.format("%a %Y-%m-%d %H:%M").to_string();
    format!("{} ({zone})", shown.map_or_else(|| "?".to_owned(), day))
}

/// When something starts, in one line: `0 9 * * 1-5 (Europe/Berlin)`, or the single time.
#[must_use]
pub fn shown_timing(timing: &Timing) -> String {
    match timing {
        Timing::Cron { cron, zone } => format!("{cron} ({zone})"),
        Timing::Once { at_ms, zone } => shown_instant(*at_ms, *zone),
    }
}

/// The next times from now on, so that a misreading shows at once.
fn next_times(timing: &Timing, now_ms: i64) -> String {
    let times = std::iter::successors(timing.next_after(now_ms), |at| timing.next_after(*at));
    let times: Vec<String> = times
        .take(NEXT_SHOWN)
        .map(|at_ms| shown_instant(at_ms, timing.zone()))
        .collect();
    times.join(", then ")
}

/// What a person is told who made one.
#[must_use]
pub fn made_text(id: i64, new: &NewSchedule, now_ms: i64) -> String {
    let times = next_times(&new.timing, now_ms);
    let what = match &new.agent {
        None => "I will say it here".to_owned(),
        Some(agent) => format!("{agent} will do it here"),
    };
    format!("#{id}: {what} on {times}. \"cancel {id}\" behind the same command ends it.")
}

/// What a person is told of an order that can't be carried out.
#[must_use]
pub fn problem_text(problem: &WordingProblem) -> String {
    let examples = "Say when and what: \"in 20m tea\", \"17:30 call Bob\", \"tomorrow 9:00 …\", \"2026-12-01 9:00 …\", \
                    \"daily 9:00 …\", \"weekdays 9:00 Europe/Berlin …\", \"monday 9:00 …\", \"cron 0 9 * * 1-5 …\"; or \
                    \"list\", \"pause 3\", \"resume 3\", \"run 3\", \"cancel 3\".";
    format!("That can't be: {problem}.\n{examples}")
}

/// What a person is told who names none of theirs.
#[must_use]
pub fn none_text(id: i64) -> String {
    format!("There is no #{id} here that is yours.")
}

/// What a person is told of one that they changed.
#[must_use]
pub fn changed_text(id: i64, state: ScheduleState, timing: &Timing, now_ms: i64) -> String {
    match state {
        ScheduleState::Active => format!("#{id} goes on: {}.", next_times(timing, now_ms)),
        ScheduleState::Paused => format!("#{id} is paused. \"resume {id}\" lets it go on."),
        ScheduleState::Done => format!("#{id} is over: its time has passed."),
        ScheduleState::Cancelled => format!("#{id} is cancelled."),
    }
}

/// What there is, a line each.
#[must_use]
pub fn list_text(schedules: &[StoredSchedule]) -> String {
    if schedules.is_empty() {
        return "Nothing is planned here.".to_owned();
    }
    let lines = schedules.iter().map(|schedule| {
        let what = &schedule.what;
        let next = match (schedule.state, schedule.at_ms) {
            (ScheduleState::Active, Some(at_ms)) => {
                format!("next {}", shown_instant(at_ms, what.timing.zone()))
            }
            (state, _) => {
                let reason = schedule.reason.as_deref().unwrap_or_default();
                let reason = Some(reason).filter(|it| !it.is_empty());
                reason.map_or_else(
                    || state.name().to_owned(),
                    |reason| format!("{}: {reason}", state.name()),
                )
            }
        };
        let who = match &what.agent {
            None => "reminder".to_owned(),
            Some(agent) => agent.to_string(),
        };
        let owner = schedule.owner.as_ref().map_or("operator", |it| &it.name);
        let task: String = what.task.chars().take(LISTED_CHARS).collect();
        let task = task.split_whitespace().collect::<Vec<_>>().join(" ");
        format!(
            "#{} {} ({who}, {owner}), {next}: {task}",
            schedule.id,
            shown_timing(&what.timing)
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The turn that a firing puts before an agent.
#[must_use]
pub fn asked_text(schedule: &StoredSchedule, at_ms: i64, missed_before: u32) -> String {
    let what = &schedule.what;
    let owner = schedule
        .owner
        .as_ref()
        .map_or("whoever runs this", |it| &it.name);
    let missed = match missed_before {
        0 => String::new(),
        n => format!(" ({n} earlier times were missed)"),
    };
    format!(
        "Scheduled by {owner}, #{}, due {}{missed}: {}",
        schedule.id,
        shown_instant(at_ms, what.timing.zone()),
        what.task
    )
}

/// What a reminder says; `person` = how its owner is mentioned.
#[must_use]
pub fn reminder_text(
    schedule: &StoredSchedule,
    person: Option<&str>,
    at_ms: i64,
    now_ms: i64,
) -> String {
    let whom = person.map_or_else(String::new, |person| format!(" for {person}"));
    let late = match now_ms.saturating_sub(at_ms) > LATE_MS {
        true => format!(
            " (was due {})",
            shown_instant(at_ms, schedule.what.timing.zone())
        ),
        false => String::new(),
    };
    format!("Reminder{whom}{late}: {}", schedule.what.task)
}
