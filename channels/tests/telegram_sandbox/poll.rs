//! The inbound half.

use std::time::{Duration, Instant};

use serde_json::json;
use vocative_channels::telegram::{TelegramChannel, TelegramSettings};
use vocative_contract::channel::{Channel as _, CheckReach, ConnectionState, FindingLevel};
use vocative_contract::envelope::{ChatKind, CommandTarget, Event, Place, SenderKind};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::interaction::PressRefusal;
use vocative_contract::markup::mention_token;
use vocative_sandbox::telegram::{
    MigrationOrder, TelegramFault, TelegramMedia, TelegramServer, TelegramWorld, UserMessage,
};

use crate::recorder::{BOUND, Heard, Running, channel, posted, settings, telegram};
use crate::scripted::Scripted;

const ANN: i64 = TelegramWorld::ANN;
const SUPERGROUP: i64 = TelegramWorld::SUPERGROUP;
const FORUM: i64 = TelegramWorld::FORUM;
const BOT_ID: &str = "123456789";

fn is_retrying(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Retrying { .. })
}

fn is_alarm(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Alarm { .. })
}

fn texts(heard: &Heard) -> Vec<String> {
    posted(heard).into_iter().map(|it| it.text).collect()
}

/// Calls a method outside the adapter, as another program would.
async fn call(server: &TelegramServer, method: &str, body: serde_json::Value) {
    let url = format!("{}/bot{}/{method}", server.api_url(), server.token());
    let answer = reqwest::Client::new().post(url).json(&body).send().await;
    assert!(answer.unwrap().status().is_success());
}

#[tokio::test]
async fn a_group_mention_is_accepted_and_then_confirmed() {
    let server = telegram().await;
    let running = Running::start(&channel(&server)).await;
    let id = server.say(SUPERGROUP, ANN, "👍 @vocative_bot what broke?");

    let text = format!("👍 {} what broke?", mention_token(BOT_ID));
    let message = running.recorder.message(&text).await;
    assert!(message.mentions_bot);
    assert_eq!(message.mentions, [BOT_ID]);
    assert_eq!(message.message_id, id.to_string());
    assert_eq!(
        message.place,
        Place {
            chat: SUPERGROUP.to_string(),
            kind: Some(ChatKind::Private),
            title: Some("Platform team".to_owned()),
            ..Place::default()
        }
    );
    assert!(server.wait_until_confirmed(BOUND).await);
    let recorder = running.stop().await;
    let states = recorder.look(|heard| heard.states.clone());
    assert_eq!(
        states,
        [
            ConnectionState::Connecting,
            ConnectionState::Connected { connections: 1 }
        ]
    );
    assert_eq!(
        recorder.look(|heard| (heard.accepted.len(), heard.acknowledged)),
        (1, 1)
    );
}

#[tokio::test]
async fn an_update_that_was_not_stored_is_not_confirmed_and_comes_again() {
    let server = telegram().await;
    let channel = channel(&server);
    let identity = channel.identify().await.unwrap();
    for text in ["one", "two", "three"] {
        server.say(SUPERGROUP, ANN, text);
    }
    let running = Running::start_as(&channel, &identity);
    running
        .recorder
        .store_if(|envelope| !envelope.raw.contains("\"two\""));
    // A second refusal means that it came again.
    let recorder = &running.recorder;
    recorder
        .until(|heard| (heard.refused >= 2).then_some(()))
        .await;
    recorder.until_state(is_retrying).await;
    assert_eq!(server.pending_updates(), 2, "the first one is confirmed");

    recorder.store_if(|_| true);
    recorder.message("two").await;
    assert!(server.wait_until_confirmed(BOUND).await);
    let recorder = running.stop().await;
    let mut heard = recorder.look(texts);
    heard.sort();
    heard.dedup();
    assert_eq!(heard, ["one", "three", "two"]);
    assert_eq!(
        recorder.look(|heard| heard.states.last().cloned()),
        Some(ConnectionState::Connected { connections: 1 })
    );
}

#[tokio::test]
async fn nothing_is_confirmed_before_its_commit_and_a_stop_waits_for_it() {
    let server = telegram().await;
    let running = Running::start(&channel(&server)).await;
    running.recorder.let_commit(false);
    server.say(SUPERGROUP, ANN, "hold on");
    let recorder = &running.recorder;
    recorder
        .until(|heard| (heard.offered > 0).then_some(()))
        .await;
    running.cancel();
    assert!(running.is_running());
    assert_eq!(server.pending_updates(), 1);

    running.recorder.let_commit(true);
    let recorder = running.stop().await;
    assert_eq!(recorder.look(texts), ["hold on"]);
    assert_eq!(server.pending_updates(), 0, "the last poll confirms");
}

#[tokio::test]
async fn a_stop_aborts_the_pending_poll() {
    let server = telegram().await;
    let mut slow = settings(&server.api_url(), &server.token());
    slow.poll_timeout_s = 30;
    let running = Running::start(&TelegramChannel::new(slow)).await;
    running
        .recorder
        .until_state(|state| matches!(state, ConnectionState::Connected { .. }))
        .await;
    let started = Instant::now();
    running.stop().await;
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_poll_that_fails_is_tried_again() {
    let refused = TelegramFault::Refused {
        code: 500,
        description: "Internal Server Error: restart".to_owned(),
    };
    for fault in [
        refused,
        TelegramFault::Gateway { code: 502 },
        TelegramFault::Garbage,
        TelegramFault::ResetBefore,
        TelegramFault::ResetAfter,
        TelegramFault::Conflict,
        TelegramFault::Stall,
        TelegramFault::RateLimited { retry_after_s: 1 },
    ] {
        let server = telegram().await;
        server.faults().next("getUpdates", fault.clone());
        let channel = channel(&server);
        let identity = channel.identify().await.unwrap();
        server.say(SUPERGROUP, ANN, "hello");
        let running = Running::start_as(&channel, &identity);
        running.recorder.message("hello").await;
        assert!(server.wait_until_confirmed(BOUND).await, "{fault:?}");
        let recorder = running.stop().await;
        let states = recorder.look(|heard| heard.states.clone());
        let retrying: Vec<_> = states.into_iter().filter(is_retrying).collect();
        assert_eq!(retrying.len(), 1, "{fault:?}: {retrying:?}");
        let shown = format!("{retrying:?}");
        assert!(!shown.contains("loopback-telegram-token"), "{shown}");
        if matches!(fault, TelegramFault::RateLimited { .. }) {
            assert!(shown.contains("wait_ms: 1000"), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_channel_that_recovers_says_so_without_waiting_for_a_whole_poll() {
    let server = telegram().await;
    server
        .faults()
        .always("getUpdates", TelegramFault::Gateway { code: 502 });
    // Longer than this test may take.
    let channel = TelegramChannel::new(TelegramSettings {
        poll_timeout_s: 50,
        ..settings(&server.api_url(), &server.token())
    });
    let identity = channel.identify().await.unwrap();
    let running = Running::start_as(&channel, &identity);
    running.recorder.until_state(is_retrying).await;
    server.faults().clear();
    let is_back = |heard: &Heard| {
        let back = ConnectionState::Connected { connections: 1 };
        (heard.states.last() == Some(&back)).then_some(())
    };
    running.recorder.until(is_back).await;
    running.stop().await;
}

#[tokio::test]
async fn a_lasting_conflict_raises_an_alarm_and_heals() {
    let server = telegram().await;
    server
        .faults()
        .always("getUpdates", TelegramFault::Conflict);
    let mut settings = settings(&server.api_url(), &server.token());
    settings.timings.conflict_alarm_ms = 200;
    let running = Running::start(&TelegramChannel::new(settings)).await;
    running.recorder.until_state(is_retrying).await;
    running.recorder.until_state(is_alarm).await;
    let alarm = running.recorder.look(|heard| heard.states.last().cloned());
    assert!(format!("{alarm:?}").contains("another program uses this bot's token"));

    server.faults().clear();
    server.say(SUPERGROUP, ANN, "back");
    running.recorder.message("back").await;
    running.stop().await;
}

#[tokio::test]
async fn a_refused_token_raises_an_alarm_and_never_ends_the_half() {
    let server = telegram().await;
    let running = Running::start(&channel(&server)).await;
    server.revoke_token();
    running.recorder.until_state(is_alarm).await;
    assert!(running.is_running());
    let recorder = running.stop().await;
    let states = recorder.look(|heard| format!("{:?}", heard.states));
    assert!(states.contains("refuses the bot token"), "{states}");
    assert!(!states.contains("loopback-telegram-token"), "{states}");
}

#[tokio::test]
async fn a_webhook_is_removed_and_its_updates_are_heard() {
    let server = telegram().await;
    call(
        &server,
        "setWebhook",
        json!({"url": "https://bot.example.org/hook"}),
    )
    .await;
    server.say(SUPERGROUP, ANN, "sent to a webhook");
    let channel = channel(&server);
    let findings = channel.check(CheckReach::Connection).await;
    assert!(
        findings
            .iter()
            .any(|it| it.level == FindingLevel::Warning && it.text.contains("webhook"))
    );
    let running = Running::start(&channel).await;
    running.recorder.message("sent to a webhook").await;
    let recorder = running.stop().await;
    assert!(recorder.look(|heard| heard.states.iter().any(is_alarm)));
}

#[tokio::test]
async fn narrowed_update_kinds_are_widened_again() {
    let server = telegram().await;
    call(
        &server,
        "getUpdates",
        json!({"allowed_updates": ["callback_query"]}),
    )
    .await;
    let running = Running::start(&channel(&server)).await;
    running.recorder.polls(1).await;
    server.say(SUPERGROUP, ANN, "hello");
    running.recorder.message("hello").await;
    running.stop().await;
}

#[tokio::test]
async fn update_ids_may_start_again_lower() {
    let server = telegram().await;
    server.restart_update_ids(900_000_000);
    let running = Running::start(&channel(&server)).await;
    server.say(SUPERGROUP, ANN, "before");
    running.recorder.message("before").await;
    assert!(server.wait_until_confirmed(BOUND).await);
    server.restart_update_ids(5_000_000);
    server.say(SUPERGROUP, ANN, "after a week");
    running.recorder.message("after a week").await;
    assert!(server.wait_until_confirmed(BOUND).await);
    running.stop().await;
}

#[tokio::test]
async fn an_unreadable_update_is_kept_raw_and_confirmed() {
    let server = telegram().await;
    let running = Running::start(&channel(&server)).await;
    server.raw_update(json!({"message": [1, 2]}));
    server.raw_update(json!({"hologram": {"depth": 3}}));
    server.say(SUPERGROUP, ANN, "hello");
    running.recorder.message("hello").await;
    assert!(server.wait_until_confirmed(BOUND).await);
    let recorder = running.stop().await;
    let raws = recorder.look(|heard| {
        let unread = heard.accepted.iter();
        unread
            .filter(|it| matches!(it.event, Event::Untranslated { .. }))
            .map(|it| it.raw.clone())
            .collect::<Vec<_>>()
    });
    assert_eq!(raws.len(), 2);
    assert!(raws[1].contains("hologram"));
}

#[tokio::test]
async fn rooms_of_every_kind_are_heard() {
    let server = telegram().await;
    let running = Running::start(&channel(&server)).await;
    let recorder = &running.recorder;

    server.say(ANN, ANN, "in private");
    let private = recorder.message("in private").await;
    assert_eq!(private.place.kind, Some(ChatKind::Direct));
    assert_eq!(private.sender.kind, SenderKind::Person);

    server.say_in_topic(FORUM, TelegramWorld::TOPIC_INCIDENT, ANN, "in a topic");
    let topical = recorder.message("in a topic").await;
    assert_eq!(topical.place.topic.as_deref(), Some("163"));
    assert_eq!(topical.reply_to, None);

    server.channel_post(TelegramWorld::CHANNEL, "to everybody");
    let broadcast = recorder.message("to everybody").await;
    assert_eq!(broadcast.place.kind, Some(ChatKind::Broadcast));
    assert_eq!(broadcast.sender.kind, SenderKind::System);

    server.say(SUPERGROUP, ANN, "/ask@vocative_bot now");
    let command = recorder
        .message("/ask@vocative_bot now")
        .await
        .command
        .unwrap();
    assert_eq!(
        (command.name.as_str(), command.target),
        ("ask", CommandTarget::ThisBot)
    );

    server.send_with(UserMessage {
        chat: SUPERGROUP,
        user: ANN,
        text: "frozen".to_owned(),
        anonymous_admin: true,
        ..UserMessage::default()
    });
    let anonymous = recorder.message("frozen").await.sender;
    assert_eq!(
        (anonymous.id, anonymous.kind),
        (format!("chat:{SUPERGROUP}"), SenderKind::Person)
    );
    running.stop().await;
}

#[tokio::test]
async fn media_albums_edits_and_topics_are_told() {
    let server = telegram().await;
    let running = Running::start(&channel(&server)).await;
    let recorder = &running.recorder;
    let item = |caption: &str| UserMessage {
        chat: SUPERGROUP,
        user: ANN,
        text: caption.to_owned(),
        media: Some(TelegramMedia::Photo),
        ..UserMessage::default()
    };
    server.album(vec![item("the graphs"), item("")]);
    let first = recorder.message("[photo] the graphs").await;
    let second = recorder.message("[photo]").await;
    assert!(first.album.is_some() && first.album == second.album);
    assert!(first.attachments[0].file_id.is_some());
    server.send_with(UserMessage {
        media: Some(TelegramMedia::Voice { duration_s: 12 }),
        ..item("")
    });
    recorder.message("[voice 0:12]").await;

    let id = server.say(SUPERGROUP, ANN, "frist");
    recorder.message("frist").await;
    assert!(server.edit(SUPERGROUP, id, "first"));
    let edited = recorder
        .until(|heard| {
            let mut events = heard.accepted.iter().map(|it| it.event.clone());
            events.find_map(|event| match event {
                Event::Edited(message) => Some(message),
                _ => None,
            })
        })
        .await;
    assert_eq!(
        (edited.message_id, edited.text),
        (id.to_string(), "first".to_owned())
    );
    assert!(edited.edit_marker.is_some());

    let topic = server.create_topic(FORUM, ANN, "Retro");
    let place = recorder
        .until(|heard| {
            let mut events = heard.accepted.iter().map(|it| it.event.clone());
            events.find_map(|event| match event {
                Event::ChatChanged { place } => Some(place),
                _ => None,
            })
        })
        .await;
    assert_eq!(place.topic, Some(topic.to_string()));
    assert_eq!(place.topic_title.as_deref(), Some("Retro"));
    running.stop().await;
}

#[tokio::test]
async fn an_upgraded_group_is_told_as_one_chat_with_a_new_id() {
    for order in [MigrationOrder::OldFirst, MigrationOrder::NewFirst] {
        let server = telegram().await;
        let running = Running::start(&channel(&server)).await;
        let new_id = server.migrate_in_order(TelegramWorld::GROUP, order);
        server.say(new_id, ANN, "still here");
        running.recorder.message("still here").await;
        let recorder = running.stop().await;
        let moves = recorder.look(|heard| {
            let events = heard.accepted.iter().map(|it| it.event.clone());
            events
                .filter(|event| matches!(event, Event::ChatMoved { .. }))
                .collect::<Vec<_>>()
        });
        let moved = Event::ChatMoved {
            from_chat: TelegramWorld::GROUP.to_string(),
            to_chat: new_id.to_string(),
        };
        assert_eq!(moves, [moved.clone(), moved]);
    }
}

#[tokio::test]
async fn the_bots_own_standing_is_told() {
    let server = telegram().await;
    let running = Running::start(&channel(&server)).await;
    server.kick_bot(SUPERGROUP, ANN);
    let present = |wanted: bool| {
        move |heard: &Heard| {
            heard.accepted.iter().find_map(|it| match &it.event {
                Event::Membership { place, standing } if standing.is_present() == wanted => {
                    Some(place.chat.clone())
                }
                _ => None,
            })
        }
    };
    assert_eq!(
        running.recorder.until(present(false)).await,
        SUPERGROUP.to_string()
    );
    server.add_bot(SUPERGROUP, ANN);
    assert_eq!(
        running.recorder.until(present(true)).await,
        SUPERGROUP.to_string()
    );
    running.stop().await;
}

#[tokio::test]
async fn the_bot_learns_who_it_is_and_warns_of_privacy_mode() {
    let server = telegram().await;
    let channel = channel(&server);
    let identity = Identity {
        platform: Platform::Telegram,
        account: BOT_ID.to_owned(),
        account_name: "vocative_bot".to_owned(),
        user_id: BOT_ID.to_owned(),
        other_ids: Vec::new(),
        username: Some("vocative_bot".to_owned()),
        display_name: "Team Bot".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    };
    assert_eq!(channel.identify().await.unwrap(), identity);
    let levels = |findings: Vec<vocative_contract::channel::Finding>| {
        findings.into_iter().map(|it| it.level).max().unwrap()
    };
    assert_eq!(
        levels(channel.check(CheckReach::Connection).await),
        FindingLevel::Fine
    );

    server.set_hears_everything(false);
    let warnings = channel.identify().await.unwrap().warnings;
    assert!(warnings[0].contains("/setprivacy"), "{warnings:?}");
    assert_eq!(
        levels(channel.check(CheckReach::Connection).await),
        FindingLevel::Warning
    );

    server.revoke_token();
    assert_eq!(
        levels(channel.check(CheckReach::Connection).await),
        FindingLevel::Refused
    );
}

fn scripted_identity() -> Identity {
    Identity {
        platform: Platform::Telegram,
        account: "1".to_owned(),
        account_name: "b".to_owned(),
        user_id: "1".to_owned(),
        other_ids: Vec::new(),
        username: None,
        display_name: "b".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    }
}

#[tokio::test]
async fn updates_without_an_id_are_counted_and_never_spin() {
    let good = r#"[{"message": {}}, {"update_id": 7, "message": {"message_id": 1, "chat": {"id": 5}, "text": "hi"}}]"#;
    let server = Scripted::start(vec![good, r#"[{"update_id": "x"}, null]"#]).await;
    let channel = TelegramChannel::new(settings(&server.api_url, "1:x"));
    let running = Running::start_as(&channel, &scripted_identity());
    running.recorder.message("hi").await;
    running.recorder.until_state(is_retrying).await;
    let recorder = running.stop().await;
    // The first batch is stored whole, because its good id confirms it; the second can't be.
    assert_eq!(recorder.look(|heard| heard.accepted.len()), 2);
    assert!(recorder.look(|heard| heard.malformed) >= 3);
    let polls = server.polls();
    assert_eq!(polls[0]["offset"], json!(null));
    assert!(polls[0]["allowed_updates"].is_array());
    assert_eq!(polls[1]["offset"], json!(8));
    assert_eq!(polls[1]["allowed_updates"], json!(null));
}

#[tokio::test]
async fn instant_empty_answers_are_paced() {
    let server = Scripted::start(vec!["[]"]).await;
    let mut settings = settings(&server.api_url, "1:x");
    settings.timings.empty_pause_ms = 100;
    let started = Instant::now();
    let running = Running::start_as(&TelegramChannel::new(settings), &scripted_identity());
    running.recorder.polls(4).await;
    assert!(started.elapsed() >= Duration::from_millis(300));
    running.stop().await;
}

#[tokio::test]
async fn polls_that_bring_nothing_while_updates_wait_begin_anew() {
    let good =
        r#"[{"update_id": 7, "message": {"message_id": 1, "chat": {"id": 5}, "text": "hi"}}]"#;
    let server = Scripted::start(vec![good, "[]"]).await;
    let mut settings = settings(&server.api_url, "1:x");
    settings.timings.deaf_after_ms = 100;
    let running = Running::start_as(&TelegramChannel::new(settings), &scripted_identity());
    let is_anew = || {
        let polls = server.polls();
        let offsets: Vec<_> = polls.iter().map(|poll| poll["offset"].clone()).collect();
        let kinds = polls
            .iter()
            .filter(|poll| poll["allowed_updates"].is_array());
        (offsets.contains(&json!(8)) && offsets.last() == Some(&json!(null))).then(|| kinds.count())
    };
    let mut polls = 3;
    while is_anew().is_none() {
        polls += 1;
        running.recorder.polls(polls).await;
    }
    assert!(
        is_anew().is_some_and(|kinds| kinds >= 2),
        "the kinds are sent again"
    );
    let recorder = running.stop().await;
    assert!(recorder.look(|heard| heard.deaf) >= 1);
}

#[tokio::test]
async fn one_unreadable_update_never_hides_its_neighbours() {
    let deep = format!("{}1{}", "[".repeat(3_000), "]".repeat(3_000));
    let batch = format!(
        r#"[{{"update_id": 1, "message": {{"message_id": 1, "chat": {{"id": 5}}, "text": "\ud83d"}}}},
            {{"update_id": 2, "message": {deep}}},
            {{"update_id": 3, "message": {{"message_id": 3, "chat": {{"id": 5}}, "text": "a\u0000b"}}}}]"#
    );
    let server = Scripted::start(vec![&batch, "[]"]).await;
    let channel = TelegramChannel::new(settings(&server.api_url, "1:x"));
    let running = Running::start_as(&channel, &scripted_identity());
    running.recorder.message("ab").await;
    running.recorder.polls(2).await;
    let recorder = running.stop().await;
    let unread = recorder.look(|heard| {
        let events = heard.accepted.iter().map(|it| &it.event);
        events
            .filter(|event| matches!(event, Event::Untranslated { .. }))
            .count()
    });
    assert_eq!(unread, 2);
    assert_eq!(recorder.look(|heard| heard.malformed), 0);
    assert_eq!(server.polls()[1]["offset"], json!(4));
}

#[tokio::test]
async fn a_press_outside_of_chats_is_answered_once_it_is_stored() {
    let server = telegram().await;
    let running = Running::start(&channel(&server)).await;
    running.recorder.let_commit(false);
    let press = server.inline_callback("AgAAA", ANN, "a1x");
    let is_offered = |heard: &Heard| (heard.offered > 0).then_some(());
    running.recorder.until(is_offered).await;
    assert_eq!(server.callback_answer(&press), None);
    running.recorder.let_commit(true);
    let wait = async {
        while server.callback_answer(&press).is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(BOUND, wait).await.expect("in time");
    let recorder = running.stop().await;
    let events = recorder.look(|heard| heard.accepted.clone());
    let [Event::Interaction(press)] = [&events[0].event] else {
        panic!("{events:?}");
    };
    assert_eq!(press.refusal(), Some(PressRefusal::NoMessage));
    assert_eq!(press.answer_target(), None);
}
