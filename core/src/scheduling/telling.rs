//! What people, and models, are told of schedules.

use chrono::{Datelike as _, NaiveDateTime};

use super::cron::{CronField, CronProblem};
use super::stored::{
    NewSchedule, OF_CHAT_MAX, OF_PERSON_MAX, ScheduleRefused, ScheduleState, StoredSchedule,
    TASK_MAX_CHARS,
};
use super::timing::{Timing, TimingProblem};
use super::wording::WordingProblem;
use crate::wall_clock::Zone;
use crate::words::Language;

/// How many of the next times are named.
const NEXT_SHOWN: usize = 3;
/// How many characters of a task stand in a list.
const LISTED_CHARS: usize = 80;
/// The delay from which a reminder says that it is late, in milliseconds.
const LATE_MS: i64 = 5 * 60_000;

/// A time as the clocks of a zone show it: `Tue 2026-11-24 09:00 (Europe/Berlin)`.
#[must_use]
pub fn shown_instant(at_ms: i64, zone: Zone, language: Language) -> String {
    let shown = zone.clock(at_ms);
    let day = |at: NaiveDateTime| {
        let weekdays = language.weekdays();
        let nth = at.weekday().num_days_from_monday() as usize;
        let weekday = weekdays.split(' ').nth(nth).unwrap_or_default();
        format!("{weekday} {}", at.format("%Y-%m-%d %H:%M"))
    };
    format!("{} ({zone})", shown.map_or_else(|| "?".to_owned(), day))
}

/// When something starts, in one line: `0 9 * * 1-5 (Europe/Berlin)`, or the single time.
#[must_use]
pub fn shown_timing(timing: &Timing, language: Language) -> String {
    match timing {
        Timing::Cron { cron, zone } => format!("{cron} ({zone})"),
        Timing::Once { at_ms, zone } => shown_instant(*at_ms, *zone, language),
    }
}

/// The next times from now on, so that a misreading shows at once.
fn next_times(timing: &Timing, now_ms: i64, language: Language) -> String {
    let times = std::iter::successors(timing.next_after(now_ms), |at| timing.next_after(*at));
    let times = times.take(NEXT_SHOWN);
    let times = times.map(|at_ms| shown_instant(at_ms, timing.zone(), language));
    let then = |first: String, next: String| language.times_then(first, next);
    times.reduce(then).unwrap_or_default()
}

/// What a person is told who made a schedule.
#[must_use]
pub fn made_text(id: i64, new: &NewSchedule, now_ms: i64, language: Language) -> String {
    let times = next_times(&new.timing, now_ms, language);
    match &new.agent {
        None => language.reminder_made(id, times),
        Some(agent) => language.schedule_made(id, agent, times),
    }
}

/// What a person is told of an order that can't be carried out.
#[must_use]
pub fn problem_text(problem: &WordingProblem, language: Language) -> String {
    let problem = match problem {
        WordingProblem::When => language.timing_not_understood(),
        WordingProblem::Timing(timing) => match timing {
            TimingProblem::Cron(cron) => cron_text(cron, language),
            TimingProblem::Zone(zone) => language.timing_no_zone(format_args!("{zone:?}")),
            TimingProblem::TooOften => language.timing_too_often(),
            TimingProblem::Over => language.timing_over(),
            TimingProblem::TooFar => language.timing_too_far(),
        },
    };
    format!(
        "{}\n{}",
        language.that_cannot_be(problem),
        language.schedule_examples()
    )
}

fn cron_text(problem: &CronProblem, language: Language) -> String {
    let (field, what) = match problem {
        CronProblem::Fields => return language.cron_five_fields(),
        CronProblem::Never => return language.cron_never(),
        CronProblem::Field { field, what } => (format!("{field:?}"), what),
    };
    match what {
        CronField::Minute => language.cron_no_minute(field),
        CronField::Hour => language.cron_no_hour(field),
        CronField::Day => language.cron_no_day(field),
        CronField::Month => language.cron_no_month(field),
        CronField::Weekday => language.cron_no_weekday(field),
    }
}

/// What a person is told of a schedule that is not made.
#[must_use]
pub fn refused_text(refused: ScheduleRefused, language: Language) -> String {
    language.that_cannot_be(match refused {
        ScheduleRefused::Person => language.schedules_of_person(OF_PERSON_MAX),
        ScheduleRefused::Chat => language.schedules_of_chat(OF_CHAT_MAX),
        ScheduleRefused::Empty => language.schedule_empty(),
        ScheduleRefused::TooLong => language.schedule_too_long(TASK_MAX_CHARS),
    })
}

/// What a person is told of a schedule that they changed.
#[must_use]
pub fn changed_text(
    id: i64,
    state: ScheduleState,
    timing: &Timing,
    now_ms: i64,
    language: Language,
) -> String {
    match state {
        ScheduleState::Active => {
            language.schedule_goes_on(id, next_times(timing, now_ms, language))
        }
        ScheduleState::Paused => language.schedule_paused(id),
        ScheduleState::Done => language.schedule_over(id),
        ScheduleState::Cancelled => language.schedule_cancelled(id),
    }
}

/// The list of schedules, a line each.
#[must_use]
pub fn list_text(schedules: &[StoredSchedule], language: Language) -> String {
    if schedules.is_empty() {
        return language.schedules_none();
    }
    let lines = schedules.iter().map(|schedule| line(schedule, language));
    lines.collect::<Vec<_>>().join("\n")
}

fn line(schedule: &StoredSchedule, language: Language) -> String {
    let what = &schedule.what;
    let next = match (schedule.state, schedule.at_ms) {
        (ScheduleState::Active, Some(at_ms)) => {
            language.schedule_next(shown_instant(at_ms, what.timing.zone(), language))
        }
        (state, _) => {
            let state = match state {
                ScheduleState::Active => language.schedule_state_active(),
                ScheduleState::Paused => language.schedule_state_paused(),
                ScheduleState::Done => language.schedule_state_done(),
                ScheduleState::Cancelled => language.schedule_state_cancelled(),
            };
            match schedule.reason.as_deref() {
                None | Some("") => state,
                Some(reason) => format!("{state}: {reason}"),
            }
        }
    };
    let who = match &what.agent {
        None => language.schedule_who_reminder(),
        Some(agent) => agent.to_string(),
    };
    let owner = schedule.owner.as_ref().map(|it| it.name.clone());
    let owner = owner.unwrap_or_else(|| language.schedule_owner_operator());
    let task: String = what.task.chars().take(LISTED_CHARS).collect();
    let task = task.split_whitespace().collect::<Vec<_>>().join(" ");
    let timing = shown_timing(&what.timing, language);
    language.schedule_line(schedule.id, timing, who, owner, next, task)
}

/// The text of a firing, as the agent reads it.
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
        shown_instant(at_ms, what.timing.zone(), Language::English),
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
    language: Language,
) -> String {
    let is_late = now_ms.saturating_sub(at_ms) > LATE_MS;
    let at = shown_instant(at_ms, schedule.what.timing.zone(), language);
    let task = &schedule.what.task;
    match person {
        None if is_late => language.reminder_late(at, task),
        None => language.reminder(task),
        Some(person) if is_late => language.reminder_for_late(person, at, task),
        Some(person) => language.reminder_for(person, task),
    }
}
