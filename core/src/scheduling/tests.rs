//! Schedules as tables: expressions and their times, what was missed, what people write.

#![allow(clippy::unwrap_used, clippy::too_many_lines)]

use chrono::DateTime;

use super::*;
use crate::wall_clock::Zone;
use crate::words::Language;

fn ms(time: &str) -> i64 {
    DateTime::parse_from_rfc3339(time)
        .unwrap()
        .timestamp_millis()
}

fn berlin() -> Zone {
    Zone::read("Europe/Berlin").unwrap()
}

fn times(expression: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let (cron, zone) = (Cron::read(expression).unwrap(), Zone::read(zone).unwrap());
    let next = |after: i64| cron.next_after(zone, after);
    let times = std::iter::successors(next(ms(from)), |at| next(*at));
    let shown = |at: i64| {
        DateTime::from_timestamp_millis(at)
            .unwrap()
            .format("%Y-%m-%dT%H:%MZ")
    };
    times.take(count).map(|at| shown(at).to_string()).collect()
}

#[test]
fn cron_goes_over_changes_of_the_clocks_as_vixie_cron_does() {
    // Clocks go forward at 2026-03-29 01:00 UTC (02:00 -> 03:00) and back at 2026-10-25 01:00 UTC.
    let (spring, autumn) = ("2026-03-28T23:30:00Z", "2026-10-24T22:30:00Z");
    let table: [(&str, &str, &[&str]); 8] = [
        // A fixed time that is left out: at the moment of the change.
        (
            "30 2 * * *",
            spring,
            &["2026-03-29T01:00Z", "2026-03-30T00:30Z"],
        ),
        // Two of them, and one that falls on that moment: once.
        (
            "0,30 2,3 * * *",
            spring,
            &[
                "2026-03-29T01:00Z",
                "2026-03-29T01:30Z",
                "2026-03-30T00:00Z",
            ],
        ),
        // A fixed time that comes twice: the first.
        (
            "30 2 * * *",
            autumn,
            &["2026-10-25T00:30Z", "2026-10-26T01:30Z"],
        ),
        // By the clock as it is.
        (
            "30 * * * *",
            spring,
            &["2026-03-29T00:30Z", "2026-03-29T01:30Z"],
        ),
        (
            "30 * * * *",
            autumn,
            &[
                "2026-10-24T23:30Z",
                "2026-10-25T00:30Z",
                "2026-10-25T01:30Z",
            ],
        ),
        ("*/30 2 * * *", spring, &["2026-03-30T00:00Z"]),
        (
            "*/30 2 * * *",
            autumn,
            &[
                "2026-10-25T00:00Z",
                "2026-10-25T00:30Z",
                "2026-10-25T01:00Z",
                "2026-10-25T01:30Z",
                "2026-10-26T01:00Z",
            ],
        ),
        ("0 9 * * *", spring, &["2026-03-29T07:00Z"]),
    ];
    for (expression, from, expected) in table {
        assert_eq!(
            times(expression, "Europe/Berlin", from, expected.len()),
            expected,
            "{expression}"
        );
    }
}

#[test]
fn cron_reads_lists_ranges_names_and_days() {
    let from = "2026-11-23T23:00:00Z"; // a Monday
    let table: [(&str, &[&str]); 9] = [
        ("0 9 * * 1-5", &["2026-11-24T09:00Z", "2026-11-25T09:00Z"]),
        (
            "0 9 * * sat,sun",
            &[
                "2026-11-28T09:00Z",
                "2026-11-29T09:00Z",
                "2026-12-05T09:00Z",
            ],
        ),
        ("0 9 * * 7", &["2026-11-29T09:00Z"]),
        (
            "15 8-10/2 1 jan *",
            &[
                "2027-01-01T08:15Z",
                "2027-01-01T10:15Z",
                "2028-01-01T08:15Z",
            ],
        ),
        // Two days that are set: either will do. One that begins with a star: both must fit.
        (
            "0 0 1 * mon",
            &[
                "2026-11-30T00:00Z",
                "2026-12-01T00:00Z",
                "2026-12-07T00:00Z",
            ],
        ),
        ("0 0 */2 * mon", &["2026-12-07T00:00Z"]),
        ("0 0 29 2 *", &["2028-02-29T00:00Z"]),
        ("@daily", &["2026-11-24T00:00Z"]),
        ("@Weekly", &["2026-11-29T00:00Z"]),
    ];
    for (expression, expected) in table {
        assert_eq!(
            times(expression, "UTC", from, expected.len()),
            expected,
            "{expression}"
        );
    }
    assert_eq!(
        times("0 0 30 * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 1),
        ["2011-12-30T10:00Z"]
    );
}

#[test]
fn what_is_no_expression_is_refused() {
    for text in [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5/2 * * * *",
        "9-5 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "1,,2 * * * *",
        "-1 * * * *",
        "@often",
        "0 0 30 2 *",
        "٣ * * * *",
        "+1 * * * *",
    ] {
        assert!(Cron::read(text).is_err(), "{text}");
    }
    assert!(Cron::read(&"0 ".repeat(500)).is_err());
    assert_eq!(Cron::read("0 0 31 4 *"), Err(CronProblem::Never));
    let table = [
        ("*/15 * * * *", Ok(())),
        ("*/14 * * * *", Err(TimingProblem::TooOften)),
        ("* 3 1 1 *", Err(TimingProblem::TooOften)),
        ("50 23,0 * * *", Ok(())),
        ("55 23 * * *", Ok(())),
        ("0,50 0,23 * * *", Err(TimingProblem::TooOften)),
    ];
    for (expression, expected) in table {
        assert_eq!(
            Timing::cron(expression, "UTC").map(drop),
            expected,
            "{expression}"
        );
    }
    assert!(matches!(
        Timing::cron("@daily", "Mars/Olympus"),
        Err(TimingProblem::Zone(_))
    ));
}

#[test]
fn a_timing_is_stored_and_read() {
    let cron = Timing::cron(" 0  9 * * MON-FRI ", "Europe/Berlin").unwrap();
    let once = Timing::once(5_000, Zone::Fixed(60), 0).unwrap();
    assert_eq!(cron.text(), "0 9 * * mon-fri");
    for timing in [cron, once] {
        let zone = timing.zone().to_string();
        assert_eq!(Timing::from_text(&timing.text(), &zone), Some(timing));
    }
    assert_eq!(Timing::from_text("once soon", "UTC"), None);
    let daily = Timing::cron("@daily", "UTC").unwrap();
    assert_eq!(Timing::from_text(&daily.text(), "UTC"), Some(daily));
    for id in [0, 1, 2, i64::MAX] {
        assert_eq!(Timing::offset_ms(id, 0), 0);
        assert!((0..=1_000).contains(&Timing::offset_ms(id, 1_000)));
        assert!((0..=JITTER_MAX_MS).contains(&Timing::offset_ms(id, i64::MAX)));
    }
    assert_ne!(
        Timing::offset_ms(1, JITTER_MAX_MS),
        Timing::offset_ms(2, JITTER_MAX_MS)
    );
}

#[test]
fn at_most_one_of_what_was_missed_fires() {
    let hourly = Timing::cron("0 * * * *", "UTC").unwrap();
    let daily = Timing::cron("0 9 * * *", "UTC").unwrap();
    let once = Timing::once(ms("2026-11-23T09:00:00Z"), Zone::Fixed(0), 0);
    assert_eq!(once, Err(TimingProblem::TooFar));
    let at = "2026-11-23T09:00:00Z";
    let once = Timing::once(ms(at), Zone::Fixed(0), ms("2026-11-22T09:00:00Z")).unwrap();
    use FiringOutcome::{Fired, Missed as Late};
    // timing, rule, now, the firing's time, outcome, missed before it, next
    let table = [
        (
            &hourly,
            Missed::Once,
            "2026-11-23T09:00:01Z",
            at,
            Fired,
            0,
            Some("2026-11-23T10:00:00Z"),
        ),
        (
            &hourly,
            Missed::Once,
            "2026-11-23T12:40:00Z",
            "2026-11-23T12:00:00Z",
            Fired,
            3,
            Some("2026-11-23T13:00:00Z"),
        ),
        (
            &hourly,
            Missed::Skip,
            "2026-11-23T12:40:00Z",
            "2026-11-23T12:00:00Z",
            Late,
            3,
            Some("2026-11-23T13:00:00Z"),
        ),
        (
            &hourly,
            Missed::Skip,
            "2026-11-23T12:04:59Z",
            "2026-11-23T12:00:00Z",
            Fired,
            3,
            Some("2026-11-23T13:00:00Z"),
        ),
        (
            &daily,
            Missed::Once,
            "2026-11-23T20:59:00Z",
            at,
            Fired,
            0,
            Some("2026-11-24T09:00:00Z"),
        ),
        (
            &daily,
            Missed::Once,
            "2026-11-23T21:01:00Z",
            at,
            Late,
            0,
            Some("2026-11-24T09:00:00Z"),
        ),
        // A year of the past: one is looked at.
        (
            &daily,
            Missed::Once,
            "2027-11-23T09:10:00Z",
            "2027-11-23T09:00:00Z",
            Fired,
            365,
            Some("2027-11-24T09:00:00Z"),
        ),
        (
            &once,
            Missed::Once,
            "2026-11-29T09:00:00Z",
            at,
            Fired,
            0,
            None,
        ),
        (
            &once,
            Missed::Once,
            "2027-11-29T09:00:00Z",
            at,
            Late,
            0,
            None,
        ),
        (
            &once,
            Missed::Skip,
            "2026-11-23T09:06:00Z",
            at,
            Late,
            0,
            None,
        ),
    ];
    for (timing, missed, now, fired_at, outcome, missed_before, next) in table {
        let facts = DueFacts {
            timing,
            missed,
            at_ms: ms(at),
            now_ms: ms(now),
            is_last_open: false,
            is_allowed: true,
        };
        let expected = Firing {
            at_ms: ms(fired_at),
            outcome,
            missed_before,
            next: next.map_or(NextFiring::Over, |at| NextFiring::At(ms(at))),
        };
        assert_eq!(decide(&facts), expected, "{timing:?} {missed:?} {now}");
        if outcome == Fired {
            let of = |is_last_open, is_allowed| {
                decide(&DueFacts {
                    is_last_open,
                    is_allowed,
                    ..facts
                })
                .outcome
            };
            assert_eq!(of(true, true), FiringOutcome::Overlapped);
            assert_eq!(of(false, false), FiringOutcome::Refused);
            assert_eq!(of(true, false), FiringOutcome::Refused);
        }
    }
    // A clock that is ten years ahead: what can't be counted is missed, and nothing of it fires.
    let facts = DueFacts {
        timing: &hourly,
        missed: Missed::Once,
        at_ms: ms(at),
        now_ms: ms("2036-11-23T09:10:00Z"),
        is_last_open: false,
        is_allowed: true,
    };
    let firing = decide(&facts);
    assert_eq!((firing.outcome, firing.missed_before), (Late, 1_000));
    assert_eq!(firing.next, NextFiring::At(ms("2036-11-23T10:00:00Z")));
}

#[test]
fn a_time_of_another_clock_is_worked_out_again() {
    let daily = Timing::cron("0 9 * * *", "UTC").unwrap();
    let now_ms = ms("2026-11-23T09:10:00Z");
    for (set_at_ms, expected) in [
        (None, true),
        (Some(now_ms - 86_400_000), false),
        (Some(now_ms + 60_000), false),
        (Some(now_ms + 60_001), true),
    ] {
        assert_eq!(is_doubtful(set_at_ms, now_ms), expected, "{set_at_ms:?}");
    }
    assert_eq!(
        renewed(&daily, now_ms),
        NextFiring::At(ms("2026-11-24T09:00:00Z"))
    );
    let once = Timing::Once {
        at_ms: now_ms,
        zone: Zone::Fixed(0),
    };
    assert_eq!(renewed(&once, now_ms), NextFiring::Over);
}

#[test]
fn people_write_when_and_what() {
    let now_ms = ms("2026-11-23T16:10:30Z"); // 17:10 in Berlin
    let once = |at: &str, task: &str| {
        let timing = Timing::Once {
            at_ms: ms(at),
            zone: berlin(),
        };
        Ok(ScheduleOrder::Add {
            timing,
            task: task.to_owned(),
        })
    };
    let cron = |expression: &str, zone: &str, task: &str| {
        let timing = Timing::cron(expression, zone).unwrap();
        Ok(ScheduleOrder::Add {
            timing,
            task: task.to_owned(),
        })
    };
    let table = [
        ("in 20m tea", once("2026-11-23T16:30:30Z", "tea")),
        (
            "in 1h30m  call\nBob",
            once("2026-11-23T17:40:30Z", "call\nBob"),
        ),
        ("17:30 go", once("2026-11-23T16:30:00Z", "go")),
        ("at 9:05 go", once("2026-11-24T08:05:00Z", "go")),
        ("17:10 go", once("2026-11-24T16:10:00Z", "go")),
        ("today 18:00 go", once("2026-11-23T17:00:00Z", "go")),
        (
            "today 9:00 go",
            Err(WordingProblem::Timing(TimingProblem::Over)),
        ),
        ("tomorrow at 9:00 go", once("2026-11-24T08:00:00Z", "go")),
        ("2026-12-01 09:00 go", once("2026-12-01T08:00:00Z", "go")),
        (
            "2029-12-01 09:00 go",
            Err(WordingProblem::Timing(TimingProblem::TooFar)),
        ),
        (
            "Daily 9:00 stand up",
            cron("0 9 * * *", "Europe/Berlin", "stand up"),
        ),
        ("weekdays 9:30 UTC go", cron("30 9 * * 1-5", "UTC", "go")),
        (
            "fridays 16:00 Asia/Tokyo go",
            cron("0 16 * * 5", "Asia/Tokyo", "go"),
        ),
        (
            "cron \"0 9 * * 1-5\" go on",
            cron("0 9 * * 1-5", "Europe/Berlin", "go on"),
        ),
        (
            "cron */5 * * * * go",
            Err(WordingProblem::Timing(TimingProblem::TooOften)),
        ),
        ("@daily go", cron("0 0 * * *", "Europe/Berlin", "go")),
        ("", Ok(ScheduleOrder::List)),
        ("list", Ok(ScheduleOrder::List)),
        ("pause #3", Ok(ScheduleOrder::Pause(3))),
        ("resume 3", Ok(ScheduleOrder::Resume(3))),
        ("run 3", Ok(ScheduleOrder::Run(3))),
        ("cancel 3", Ok(ScheduleOrder::Cancel(3))),
        ("cancel all", Err(WordingProblem::When)),
        ("in soon", Err(WordingProblem::When)),
        ("in 5", Err(WordingProblem::When)),
        ("in 9999999m x", Err(WordingProblem::When)),
        ("me to dance", Err(WordingProblem::When)),
        ("25:00 x", Err(WordingProblem::When)),
    ];
    for (text, expected) in table {
        assert_eq!(read_order(text, now_ms, berlin()), expected, "{text}");
    }
}

#[test]
fn a_person_and_a_chat_have_only_so_many() {
    let new = NewSchedule {
        timing: Timing::cron("@daily", "UTC").unwrap(),
        jitter_ms: 0,
        missed: Missed::Once,
        agent: None,
        task: "tea".to_owned(),
    };
    let counts = |of_person, of_chat| ScheduleCounts { of_person, of_chat };
    let with = |task: String| NewSchedule {
        task,
        ..new.clone()
    };
    let table = [
        (new.clone(), counts(9, 19), Ok(())),
        (new.clone(), counts(10, 0), Err(ScheduleRefused::Person)),
        (new.clone(), counts(0, 20), Err(ScheduleRefused::Chat)),
        (
            with(" ".to_owned()),
            counts(0, 0),
            Err(ScheduleRefused::Empty),
        ),
        (with("é".repeat(1_000)), counts(0, 0), Ok(())),
        (
            with("é".repeat(1_001)),
            counts(0, 0),
            Err(ScheduleRefused::TooLong),
        ),
    ];
    for (new, counts, expected) in table {
        assert_eq!(may_add(&new, counts), expected);
    }
}

#[test]
fn people_are_told_in_the_clocks_of_the_zone() {
    let new = NewSchedule {
        timing: Timing::cron("0 9 * * 1-5", "Europe/Berlin").unwrap(),
        jitter_ms: 0,
        missed: Missed::Once,
        agent: None,
        task: "stand up".to_owned(),
    };
    let told = |language| made_text(3, &new, ms("2026-11-26T10:00:00Z"), language);
    assert_eq!(
        told(Language::English),
        "#3: I will say it here on Fri 2026-11-27 09:00 (Europe/Berlin), then Mon 2026-11-30 09:00 (Europe/Berlin), \
         then Tue 2026-12-01 09:00 (Europe/Berlin). \"cancel 3\" behind the same command ends it."
    );
    assert_eq!(
        told(Language::German),
        "#3: Das sage ich hier: Fr 2026-11-27 09:00 (Europe/Berlin), dann Mo 2026-11-30 09:00 (Europe/Berlin), dann Di \
         2026-12-01 09:00 (Europe/Berlin). „cancel 3“ hinter demselben Befehl beendet es."
    );
    assert_eq!(
        list_text(&[], Language::English),
        "Nothing is planned here."
    );
    for language in Language::ALL {
        assert_eq!(language.weekdays().split(' ').count(), 7, "{language:?}");
    }
}

#[test]
fn a_problem_reads_alike_for_people_and_for_models() {
    let fields = [
        "60 * * * *",
        "* 24 * * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "* * * *",
        "0 0 31 4 *",
        "* * * * *",
    ];
    let wrong = |text: &str| Timing::cron(text, "UTC").unwrap_err();
    let mut problems: Vec<TimingProblem> = fields.into_iter().map(wrong).collect();
    problems.extend([
        TimingProblem::Zone("Nowhere".to_owned()),
        TimingProblem::Over,
        TimingProblem::TooFar,
    ]);
    let problems = problems.into_iter().map(WordingProblem::Timing);
    for problem in problems.chain([WordingProblem::When]) {
        let told = problem_text(&problem, Language::English);
        let first = format!("That can't be: {problem}.");
        assert_eq!(told.lines().next(), Some(first.as_str()));
    }
    for refused in [
        ScheduleRefused::Person,
        ScheduleRefused::Chat,
        ScheduleRefused::Empty,
        ScheduleRefused::TooLong,
    ] {
        let told = refused_text(refused, Language::English);
        assert_eq!(told, format!("That can't be: {refused}."));
    }
}
