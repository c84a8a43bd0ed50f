//! Sockets that are refreshed, lost, silent or refused.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use vocative_channels::slack::{SlackChannel, SlackSettings};
use vocative_contract::channel::{Channel as _, ConnectionState};
use vocative_sandbox::slack::{CallFault, RetryPlan, SlackServer};

use crate::stage::{Seen, Stage, TestIntake, TestReporter, WAIT, settings};

#[tokio::test]
async fn a_refresh_leaves_no_gap() {
    let stage = Stage::new().await;
    stage
        .slack
        .faults()
        .set_knobs(|knobs| knobs.disconnect_grace_ms = 60_000);
    stage.slack.disconnect("refresh_requested");
    // Two sockets: the old one stays until the new one has said hello.
    stage.until_connected(2).await;
    assert!(stage.slack.wait_for_socket(2, WAIT).await);
    let states = stage.seen.states.lock().unwrap().clone();
    let has_gap = states
        .iter()
        .any(|state| matches!(state, ConnectionState::Retrying { .. }));
    assert!(!has_gap, "{states:?}");
    for n in 0..20 {
        stage.slack.say("#general", "ann", &format!("line {n}"));
    }
    stage.seen.until_heard(20).await;
    stage.until_all_acked().await;
    assert!(
        stage
            .slack
            .acked_envelopes()
            .iter()
            .all(|acked| acked.attempts == 1)
    );
    stage.end().await;
}

#[tokio::test]
async fn in_refresh_after_refresh_there_is_never_a_moment_without_a_socket() {
    let quick_refresh = |settings: &mut SlackSettings| {
        settings.timings.linger_ms = 100;
        settings.timings.reopen_every_ms = 0;
    };
    let stage = Stage::with(quick_refresh, Semaphore::MAX_PERMITS / 2).await;
    let mut said = 0;
    for reason in ["warning", "refresh_requested"].into_iter().cycle().take(6) {
        stage.slack.disconnect(reason);
        // People talk while sockets change.
        let is_replaced = || stage.slack.open_sockets() > 1;
        while !is_replaced() {
            stage.slack.say("#general", "ann", &format!("line {said}"));
            said += 1;
            tokio::task::yield_now().await;
        }
        stage.until_connected(1).await;
        assert!(stage.slack.wait_for_socket_count(1, WAIT).await);
    }
    stage.seen.until_heard(said).await;
    stage.until_all_acked().await;
    assert_eq!(stage.slack.silent(), Duration::ZERO);
    let acked = stage.slack.acked_envelopes();
    assert!(acked.iter().all(|acked| acked.attempts == 1));
    assert_eq!(stage.seen.losses(), 0);
    stage.end().await;
}

#[tokio::test]
async fn an_acknowledgement_is_written_on_the_new_socket_when_its_own_is_gone() {
    let stage = Stage::with(|_| {}, 0).await;
    stage.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![60_000],
        ..RetryPlan::default()
    });
    stage.slack.say("#general", "ann", "slow to store");
    // A second frame that needs no storage proves that the first was read.
    stage.slack.raw_frame("not json");
    let is_read = |seen: &Seen| *seen.malformed.lock().unwrap() == 1;
    stage.seen.until("read", is_read).await;
    stage.slack.abort_sockets();
    stage.seen.until("lost", |seen| seen.losses() > 0).await;
    stage.until_connected(1).await;
    stage.seen.gate.add_permits(1);
    stage.until_all_acked().await;
    let acked = stage.slack.acked_envelopes();
    assert_eq!(
        (acked.len(), acked[0].attempts, acked[0].on_same_socket),
        (1, 1, false)
    );
    stage.end().await;
}

#[tokio::test]
async fn a_lost_socket_is_opened_again_and_nothing_is_missed() {
    let stage = Stage::new().await;
    stage.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![200; 20],
        ..RetryPlan::default()
    });
    for lose in [SlackServer::close_sockets, SlackServer::abort_sockets] {
        let losses = stage.seen.losses();
        lose(&stage.slack);
        stage
            .seen
            .until("lost", |seen| seen.losses() > losses)
            .await;
        stage.slack.say("#general", "ann", "said into the gap");
        stage.until_connected(1).await;
    }
    stage.until_all_acked().await;
    let heard: HashSet<_> = stage
        .seen
        .posts()
        .into_iter()
        .map(|post| post.message_id)
        .collect();
    assert_eq!(heard.len(), 2);
    // An acknowledgement that crosses a retry counts as late here, so `end` would be too strict.
    stage.cancel.cancel();
    stage.running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_silent_socket_is_noticed_and_replaced() {
    let impatient = |settings: &mut SlackSettings| {
        settings.timings.ping_every_ms = 50;
        settings.timings.pong_wait_ms = 200;
        settings.timings.ack_wait_ms = 50;
    };
    let stage = Stage::with(impatient, Semaphore::MAX_PERMITS / 2).await;
    stage.slack.stall_sockets();
    let is_lost = |seen: &Seen| {
        let states = seen.states.lock().unwrap();
        states.iter().any(|state| {
            matches!(state, ConnectionState::Retrying { reason, .. } if reason.contains("ping"))
        })
    };
    stage.seen.until("noticed", is_lost).await;
    stage.until_connected(1).await;
    stage.cancel.cancel();
}

#[tokio::test]
async fn failed_attempts_to_connect_are_repeated_with_patience() {
    let stage = Stage::new().await;
    let faults = stage.slack.faults();
    faults.next("apps.connections.open", CallFault::Status(500));
    faults.next("apps.connections.open", CallFault::Html);
    faults.next(
        "apps.connections.open",
        CallFault::Error("internal_error".to_owned()),
    );
    faults.next_upgrade(408);
    faults.next_upgrade(409);
    stage.slack.abort_sockets();
    stage
        .seen
        .until("six failures", |seen| seen.losses() >= 6)
        .await;
    stage.until_connected(1).await;
    stage.end().await;
}

#[tokio::test]
async fn a_rate_limit_of_the_opening_is_honoured() {
    let stage = Stage::new().await;
    stage
        .slack
        .faults()
        .next("apps.connections.open", CallFault::RateLimited(1));
    stage.slack.abort_sockets();
    let is_waiting = |seen: &Seen| {
        let states = seen.states.lock().unwrap();
        states.iter().any(
            |state| matches!(state, ConnectionState::Retrying { wait_ms, .. } if *wait_ms >= 1_000),
        )
    };
    stage.seen.until("waits", is_waiting).await;
    stage.until_connected(1).await;
    stage.end().await;
}

#[tokio::test]
async fn a_refused_account_raises_an_alarm_and_is_tried_again_slowly() {
    let stage = Stage::new().await;
    stage
        .slack
        .faults()
        .set_account_error(Some("account_inactive"));
    stage.slack.abort_sockets();
    let alarm = |word: &'static str| {
        move |seen: &Seen| {
            let states = seen.states.lock().unwrap();
            states.iter().any(
                |state| matches!(state, ConnectionState::Alarm { reason } if reason.contains(word)),
            )
        }
    };
    stage.seen.until("alarm", alarm("account_inactive")).await;
    stage.slack.faults().set_account_error(None);
    stage.until_connected(1).await;
    stage.slack.disconnect("link_disabled");
    stage.seen.until("alarm", alarm("switched off")).await;
    stage.until_connected(1).await;
    stage.end().await;
}

#[tokio::test]
async fn several_sockets_are_held_open() {
    let stage = Stage::with(|settings| settings.sockets = 3, Semaphore::MAX_PERMITS / 2).await;
    assert!(stage.slack.wait_for_socket_count(3, WAIT).await);
    for n in 0..30 {
        stage.slack.say("#general", "ann", &format!("line {n}"));
    }
    stage.seen.until_heard(30).await;
    stage.until_all_acked().await;
    stage.end().await;
}

#[tokio::test]
async fn ten_sockets_are_refreshed_one_for_one_and_an_eleventh_waits_for_its_turn() {
    let stage = Stage::with(|settings| settings.sockets = 10, Semaphore::MAX_PERMITS / 2).await;
    let told = |seen: &Seen| seen.states.lock().unwrap().len();
    let before = told(&stage.seen);
    stage.slack.disconnect("refresh_requested");
    // Ten go and ten come, each told.
    let is_refreshed = |seen: &Seen| told(seen) == before + 20 && seen.is_connected(10);
    stage.seen.until("refreshed", is_refreshed).await;

    let channel = SlackChannel::new(settings(&stage.slack)).unwrap();
    let (seen, cancel) = (Seen::new(1), CancellationToken::new());
    let mut inbound = channel.inbound(&stage.identity);
    let (intake, reporter) = (
        TestIntake(Arc::clone(&seen)),
        TestReporter(Arc::clone(&seen)),
    );
    let stop = cancel.clone();
    let eleventh = tokio::spawn(async move {
        inbound
            .run(Arc::new(intake), Arc::new(reporter), stop)
            .await
    });
    let is_told = |seen: &Seen| {
        let states = seen.states.lock().unwrap();
        states.iter().any(|state| {
            matches!(state, ConnectionState::Retrying { reason, .. } if reason.contains("too many"))
        })
    };
    seen.until("too many", is_told).await;
    stage.cancel.cancel();
    stage.running.await.unwrap().unwrap();
    seen.until("its turn", |seen| seen.is_connected(1)).await;
    cancel.cancel();
    eleventh.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_waits_for_what_is_being_stored_and_acknowledges_it() {
    let stage = Stage::with(|_| {}, 0).await;
    stage.slack.say("#general", "ann", "last words");
    stage.slack.raw_frame("not json");
    stage
        .seen
        .until("read", |seen| *seen.malformed.lock().unwrap() == 1)
        .await;
    stage.cancel.cancel();
    stage.seen.gate.add_permits(1);
    stage.until_all_acked().await;
    stage.end().await;
}
