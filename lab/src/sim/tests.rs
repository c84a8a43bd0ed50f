#![allow(clippy::unwrap_used)]

use super::play::{Setting, play};
use super::*;

fn args(first: u64, seeds: u64) -> SimArgs {
    SimArgs {
        seeds,
        seed: first,
        platform: None,
        steps: 24,
        sabotage: None,
        trace: false,
        report_only: false,
        until_wrong: false,
        plans: false,
        networks: None,
    }
}

/// A network answers in one of this number of worlds of a mode.
const NETWORKS_EVERY: u64 = 3;

#[test]
fn nothing_is_lost_or_doubled_in_many_worlds() {
    let played = play_many(&args(1, 200), None).unwrap();
    let failed: Vec<_> = played
        .iter()
        .filter(|(_, tally)| !tally.wrong.is_empty())
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let mut all = SimTally::default();
    for (_, tally) in &played {
        all.add(tally);
    }
    assert_eq!((all.seeds, all.lost, all.doubled_outside), (200, 0, 0));
    assert_eq!(all.answered, all.questions);
    // The worlds are rough enough.
    assert!(
        all.kills > 120 && all.stops > 20 && all.held > 10,
        "{all:?}"
    );
}

#[test]
fn what_people_agree_to_is_done_once_and_nothing_else_is() {
    let args = SimArgs {
        plans: true,
        ..args(0, 0)
    };
    // Ten of each mode in turn.
    let every = MODES.len() as u64 * PLANS_EVERY;
    let seeds = (1..=10).flat_map(|n| (0..MODES.len() as u64).map(move |mode| n * every + mode));
    let played = play_seeds(&args, None, seeds).unwrap();
    let failed: Vec<_> = played
        .iter()
        .filter(|(_, tally)| !tally.wrong.is_empty())
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let planned: usize = played.iter().map(|(_, tally)| tally.reminders).sum();
    let said: usize = played.iter().map(|(_, tally)| tally.reminded).sum();
    assert!(planned > 150 && said > 60, "{planned} planned, {said} said");
}

#[test]
fn networks_ask_nobody_twice_and_answer_once() {
    let args = SimArgs {
        networks: Some(NETWORKS_EVERY),
        ..args(0, 0)
    };
    // Five of each mode in turn.
    let every = MODES.len() as u64 * NETWORKS_EVERY;
    let first = MODES.len() as u64;
    let seeds = (0..5).flat_map(|n| (0..first).map(move |mode| n * every + first + mode));
    let played = play_seeds(&args, None, seeds).unwrap();
    let failed: Vec<_> = played
        .iter()
        .filter(|(_, tally)| !tally.wrong.is_empty())
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let mut all = SimTally::default();
    for (_, tally) in &played {
        all.add(tally);
    }
    assert_eq!(all.answered, all.questions);
    // The networks are various enough.
    let calls = all.calls;
    assert!(
        calls.asked > 400 && calls.routed > 40 && calls.tasks > 40 && calls.sets > 40,
        "{calls:?}"
    );
    assert!(calls.failed + calls.failed_tasks > 4, "{calls:?}");
}

#[test]
fn each_world_has_a_network_of_its_own_if_that_is_asked_for() {
    let args = SimArgs {
        networks: Some(1),
        ..args(1, 200)
    };
    let played: Vec<_> = (1..=200).map(|seed| (seed, SimTally::default())).collect();
    assert_eq!(
        different_networks(&args, &played),
        "200 networks answered, 200 of them different.\n"
    );
    let args = SimArgs {
        plans: true,
        networks: Some(NETWORKS_EVERY),
        ..args
    };
    assert_eq!(
        different_networks(&args, &played),
        "66 networks answered, 66 of them different.\n"
    );
}

/// Worlds with reminders and networks that failed once, and what went wrong there.
const KNOWN_WITH_ALL: [(u64, &str); 4] = [
    (
        1303,
        "a run is replaced by an edit while its request is judged",
    ),
    (
        2528,
        "another agent's answer to an old question counts as that question",
    ),
    (
        53_080,
        "an earlier answer with the same words is taken for a held post",
    ),
    (
        607_597_743_136,
        "what people decided under a clock ahead waits for that time",
    ),
];

#[test]
fn worlds_with_reminders_and_networks_that_failed_once_are_as_promised() {
    let args = SimArgs {
        plans: true,
        networks: Some(NETWORKS_EVERY),
        ..args(0, 0)
    };
    let seeds = KNOWN_WITH_ALL.iter().map(|(seed, _)| *seed);
    let mut played = play_seeds(&args, None, seeds).unwrap();
    played.retain(|(_, tally)| !tally.wrong.is_empty());
    assert!(played.is_empty(), "{KNOWN_WITH_ALL:?}: {played:#?}");
}

/// Worlds that failed once.
const KNOWN: &str = include_str!("known.txt");

#[test]
fn worlds_that_failed_once_are_as_promised() {
    let known = KNOWN.lines().filter(|line| !line.starts_with('#'));
    let known: Vec<(u64, &str)> = known
        .map(|line| line.split_once(' ').expect("a seed and its reason"))
        .map(|(seed, why)| (seed.parse().expect("a seed is a number"), why))
        .collect();
    assert!(known.len() >= 45, "{known:?}");
    let args = args(0, 0);
    let played = play_seeds(&args, None, known.iter().map(|(seed, _)| *seed)).unwrap();
    let failed: Vec<_> = played
        .iter()
        .filter(|(_, tally)| !tally.wrong.is_empty())
        .map(|(seed, tally)| (known.iter().find(|(of, _)| of == seed), &tally.wrong))
        .collect();
    assert_eq!(played.len(), known.len());
    assert!(failed.is_empty(), "{failed:#?}");
    // They failed while these modes took turns.
    let modes = [Mode::Slack, Mode::TelegramResend, Mode::TelegramHold];
    for (seed, why) in known {
        let setting = Setting {
            mode: modes[usize::try_from(seed % 3).unwrap()],
            ..setting(&args, None, seed)
        };
        let wrong = play(seed, setting, false).unwrap().tally.wrong;
        assert!(wrong.is_empty(), "{seed} {why}: {wrong:#?}");
    }
}

#[test]
fn a_seed_gives_the_same_trace_each_time() {
    for seed in 1..=6 {
        let setting = setting(&args(1, 1), None, seed);
        let trace = || play(seed, setting, true).unwrap().trace;
        let (first, second) = (trace(), trace());
        assert!(first.lines().count() > 20, "{first}");
        assert_eq!(first, second, "seed {seed}");
    }
}

/// Whether a broken promise shows in one of the first worlds.
fn is_noticed(sabotage: Sabotage, mode: Mode, shows: impl Fn(&SimTally) -> bool) -> bool {
    (1..=200).any(|seed| {
        let setting = Setting {
            mode,
            steps: 24,
            sabotage: Some(sabotage),
            plans: false,
            network: None,
        };
        shows(&play(seed, setting, false).unwrap().tally)
    })
}

#[test]
fn an_acknowledgement_before_the_commit_is_noticed() {
    let shows = |tally: &SimTally| tally.lost > 0;
    assert!(is_noticed(
        Sabotage::AckBeforeCommit,
        Mode::TelegramHold,
        shows
    ));
}

#[test]
fn a_delivery_taken_for_a_message_is_noticed() {
    let shows = |tally: &SimTally| !tally.wrong.is_empty();
    assert!(is_noticed(Sabotage::NoDedupe, Mode::Slack, shows));
}

#[cfg(feature = "crash-points")]
#[test]
fn promises_that_are_broken_in_the_daemon_are_noticed() {
    let table = [
        (Sabotage::NoReadback, Mode::Slack),
        (Sabotage::ResendAlways, Mode::TelegramHold),
        (Sabotage::ResendAlways, Mode::TelegramLook),
        (Sabotage::EmptyIsProof, Mode::TelegramLook),
        (Sabotage::CommitAfterSend, Mode::TelegramHold),
        (Sabotage::NoLeaseToken, Mode::Slack),
        (Sabotage::NoLeaseToken, Mode::TelegramResend),
        (Sabotage::LeavePlaceholder, Mode::Slack),
        (Sabotage::LeavePlaceholder, Mode::TelegramResend),
        (Sabotage::NoSettling, Mode::Slack),
        (Sabotage::NoReplacement, Mode::Slack),
        (Sabotage::NoReplacement, Mode::TelegramHold),
        (Sabotage::OwnClock, Mode::Slack),
        (Sabotage::ReclaimOwn, Mode::TelegramResend),
    ];
    for (sabotage, mode) in table {
        let shows = |tally: &SimTally| tally.doubled_outside + tally.left > 0;
        assert!(is_noticed(sabotage, mode, shows), "{}", sabotage.name());
    }
    let reads_on = |tally: &SimTally| {
        tally
            .wrong
            .iter()
            .any(|it| it.contains("after a fresh start"))
    };
    for mode in [Mode::Slack, Mode::TelegramResend] {
        assert!(is_noticed(Sabotage::NoFreshStart, mode, reads_on));
    }
}
