//! Asking about single messages.

use serde_json::json;
use vocative_contract::channel::Channel as _;
use vocative_contract::error::ChannelError;
use vocative_contract::handles::Outbound;
use vocative_contract::probe::ProbeAnswer::{self, NotOurs, NotThere, Ours, Unclear};
use vocative_sandbox::telegram::{
    TelegramFault, TelegramForward, TelegramMedia, TelegramServer, TelegramWorld, UserMessage,
};
use vocative_sandbox::wire::WireLog;

use crate::recorder::{channel, telegram};

const ANN: i64 = TelegramWorld::ANN;
const SUPERGROUP: i64 = TelegramWorld::SUPERGROUP;

async fn outbound(server: &TelegramServer) -> Outbound {
    let channel = channel(server);
    let identity = channel.identify().await.unwrap();
    channel.outbound(&identity)
}

async fn ask(outbound: &Outbound, chat: i64, id: i64) -> ProbeAnswer {
    let prober = outbound.prober.as_deref().unwrap();
    let probed = prober.probe(&chat.to_string(), id).await.unwrap();
    probed.answer
}

#[tokio::test]
async fn a_message_is_ours_somebody_elses_or_not_there() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    for chat in [SUPERGROUP, TelegramWorld::GROUP, ANN] {
        let theirs = server.say(chat, ANN, "hello");
        let ours = server.post_by_another_program(chat, "hi");
        let gone = server.say(chat, ANN, "never mind");
        server.delete(chat, gone);
        for (id, expected) in [
            (theirs, NotOurs),
            (ours, Ours),
            (gone, NotThere),
            (gone + 1, NotThere),
        ] {
            assert_eq!(ask(&outbound, chat, id).await, expected, "{id} in {chat}");
        }
        let posts = server.bot_posts(chat);
        assert!(posts.iter().all(|post| !post.edited && !post.deleted));
    }
}

#[tokio::test]
async fn what_cannot_be_edited_is_not_ours_and_a_live_location_says_nothing() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let ours = server.post_by_another_program(SUPERGROUP, "hi");
    let pinned = server.pin(SUPERGROUP, ANN, ours);
    let forwarded = server.send_with(UserMessage {
        chat: SUPERGROUP,
        user: ANN,
        text: "news".to_owned(),
        forward: Some(TelegramForward::User(ANN)),
        ..UserMessage::default()
    });
    let live = json!({"latitude": 1.0, "longitude": 2.0, "live_period": 60});
    let theirs = server.send_with(UserMessage {
        chat: SUPERGROUP,
        user: ANN,
        media: Some(TelegramMedia::Other {
            name: "location".to_owned(),
            content: live.clone(),
        }),
        ..UserMessage::default()
    });
    for id in [pinned, forwarded, theirs] {
        assert_eq!(ask(&outbound, SUPERGROUP, id).await, NotOurs, "{id}");
    }
    // In a channel the posts of others look ours.
    let posted = server.channel_post(TelegramWorld::CHANNEL, "news");
    assert_eq!(ask(&outbound, TelegramWorld::CHANNEL, posted).await, Ours);
    let location = server.send_with(UserMessage {
        chat: SUPERGROUP,
        user: ANN,
        media: Some(TelegramMedia::Other {
            name: "location".to_owned(),
            content: live,
        }),
        via_bot: Some(TelegramWorld::team().bot.id),
        ..UserMessage::default()
    });
    assert_eq!(ask(&outbound, SUPERGROUP, location).await, Unclear);
}

#[tokio::test]
async fn a_server_that_lags_behind_finds_nothing_until_something_newer_comes() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    server.lag_behind(true);
    let ours = server.post_by_another_program(SUPERGROUP, "hi");
    let private = server.post_by_another_program(ANN, "hi");
    assert_eq!(ask(&outbound, SUPERGROUP, ours).await, NotThere);
    // Another sequence says nothing about this one.
    server.say(TelegramWorld::GROUP, ANN, "lunch?");
    assert_eq!(ask(&outbound, SUPERGROUP, ours).await, NotThere);
    assert_eq!(ask(&outbound, ANN, private).await, Ours);
    server.say(SUPERGROUP, ANN, "anybody?");
    assert_eq!(ask(&outbound, SUPERGROUP, ours).await, Ours);
}

#[tokio::test]
async fn an_answer_tells_the_platforms_time_and_a_refusal_nothing() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let prober = outbound.prober.as_deref().unwrap();
    let chat = SUPERGROUP.to_string();
    server.advance_clock(86_400);
    let said = server.say(SUPERGROUP, ANN, "hello");
    let date = server.posts(SUPERGROUP).last().unwrap().wire["date"].clone();
    let probed = prober.probe(&chat, said).await.unwrap();
    let by_ms = probed.answered_by_ms.unwrap();
    assert!((1_000..60_000).contains(&(by_ms - date.as_i64().unwrap() * 1_000)));

    let faults = server.faults();
    let method = "stopMessageLiveLocation";
    faults.next(method, TelegramFault::RateLimited { retry_after_s: 30 });
    let refused = prober.probe(&chat, said).await;
    assert!(matches!(
        refused,
        Err(ChannelError::RetryAfter {
            wait_ms: 30_000,
            ..
        })
    ));
    assert!(prober.wait_before_probe(&chat).as_secs() >= 29);
    faults.next(method, TelegramFault::Gateway { code: 502 });
    let refused = prober.probe(&chat, said).await;
    assert!(matches!(refused, Err(ChannelError::OutcomeUnknown { .. })));
    for description in [
        "Bad Request: MESSAGE_ID_INVALID",
        "Bad Request: message can't be edited now",
    ] {
        let description = description.to_owned();
        faults.next(
            method,
            TelegramFault::Refused {
                code: 400,
                description,
            },
        );
        let refused = prober.probe(&chat, said).await;
        assert!(matches!(refused, Err(ChannelError::Rejected { .. })));
    }
    let moved = server.migrate_to_supergroup(TelegramWorld::GROUP);
    let refused = prober.probe(&TelegramWorld::GROUP.to_string(), 1).await;
    assert!(
        matches!(refused, Err(ChannelError::ChatMoved { to_chat, .. }) if to_chat == moved.to_string())
    );
}

#[tokio::test]
async fn bots_with_inline_mode_are_not_asked() {
    let mut world = TelegramWorld::team();
    world.bot.has_inline_mode = true;
    let addr = ([127, 0, 0, 1], 0).into();
    let inline = TelegramServer::start(world, addr, WireLog::new())
        .await
        .unwrap();
    for (server, is_asked) in [(inline, false), (telegram().await, true)] {
        let outbound = outbound(&server).await;
        let sequence = outbound.prober.as_deref().unwrap().sequence("5001");
        assert_eq!(sequence.is_some(), is_asked);
    }
}
