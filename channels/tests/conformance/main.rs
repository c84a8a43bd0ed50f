//! What every adapter keeps to, whatever its platform: one list of checks over a small driver.
//!
//! A new platform adds a driver beside `slack` and `telegram`, and passes.

#![cfg(all(feature = "slack", feature = "telegram"))]
#![allow(clippy::unwrap_used)]

mod drivers;
mod listener;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use drivers::{
    Driver, SlackDriver, SlackHttpDriver, TelegramDriver, TelegramWebhookDriver, Trouble,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vocative_contract::channel::{
    BoxFuture, Channel, ConnectionState, Intake, IntakeError, Reporter,
};
use vocative_contract::envelope::{Envelope, Event};
use vocative_contract::error::ChannelError;
use vocative_contract::handles::Outbound;
use vocative_contract::outbound::{Operation, Post, Target};
use vocative_contract::people::People;

const WAIT: Duration = Duration::from_secs(20);

/// What the daemon would see.
#[derive(Clone, Default)]
struct Heard {
    connected: bool,
    offered: usize,
    acknowledged: usize,
    accepted: Vec<Event>,
}

/// An intake and reporter that remember; storage and commits can be held up.
struct Recorder {
    heard: watch::Sender<Heard>,
    stores: Mutex<bool>,
    commits: watch::Sender<bool>,
}

impl Recorder {
    async fn until(&self, what: &str, is_so: impl FnMut(&Heard) -> bool) -> Heard {
        let mut changes = self.heard.subscribe();
        let reached = tokio::time::timeout(WAIT, changes.wait_for(is_so)).await;
        reached
            .unwrap_or_else(|_| panic!("in vain: {what}"))
            .unwrap()
            .clone()
    }

    async fn until_posted(&self, text: &str) -> Heard {
        let is_posted = |heard: &Heard| texts(heard).iter().any(|it| it == text);
        self.until(text, is_posted).await
    }
}

/// The texts of new messages, in the order they were accepted.
fn texts(heard: &Heard) -> Vec<String> {
    let posted = heard.accepted.iter().filter_map(|event| match event {
        Event::Posted(message) => Some(message.text.clone()),
        _ => None,
    });
    posted.collect()
}

impl Intake for Recorder {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<(), IntakeError>> {
        Box::pin(async move {
            self.heard.send_modify(|heard| heard.offered += 1);
            self.commits
                .subscribe()
                .wait_for(|open| *open)
                .await
                .unwrap();
            if !*self.stores.lock().unwrap() {
                return Err(IntakeError("disk full".into()));
            }
            self.heard
                .send_modify(|heard| heard.accepted.push(envelope.event));
            Ok(())
        })
    }
}

impl Reporter for Recorder {
    fn state(&self, state: ConnectionState) {
        let connected = matches!(state, ConnectionState::Connected { .. });
        self.heard.send_modify(|heard| heard.connected |= connected);
    }

    fn heard(&self) {}

    fn acknowledged(&self, _lag_ms: u64) {
        self.heard.send_modify(|heard| heard.acknowledged += 1);
    }

    fn malformed(&self) {}
}

/// An adapter at work on its platform.
struct Stage<D> {
    platform: D,
    outbound: Outbound,
    recorder: Arc<Recorder>,
    cancel: CancellationToken,
    running: JoinHandle<Result<(), ChannelError>>,
}

impl<D: Driver> Stage<D> {
    async fn new() -> Self {
        let platform = D::start().await;
        let channel: Box<dyn Channel> = platform.channel();
        let identity = channel.identify().await.unwrap();
        let mut inbound = channel.inbound(&identity);
        let recorder = Arc::new(Recorder {
            heard: watch::Sender::default(),
            stores: Mutex::new(true),
            commits: watch::Sender::new(true),
        });
        let cancel = CancellationToken::new();
        let (intake, reporter) = (Arc::clone(&recorder), Arc::clone(&recorder));
        let token = cancel.clone();
        let running = tokio::spawn(async move { inbound.run(intake, reporter, token).await });
        recorder.until("connected", |heard| heard.connected).await;
        platform.connected().await;
        Self {
            outbound: channel.outbound(&identity),
            platform,
            recorder,
            cancel,
            running,
        }
    }

    fn post(&self, marker: &str, text: &str) -> Vec<Post> {
        let target = Target {
            chat: self.platform.chat(),
            thread: None,
            topic: None,
            reply_to: None,
        };
        let parts = self
            .outbound
            .renderer
            .render(text, &People::nobody())
            .into_iter()
            .enumerate();
        let posts = parts.map(|(n, part)| Post {
            marker: format!("{marker}{n}"),
            target: target.clone(),
            operation: Operation::Post,
            part,
        });
        posts.collect()
    }

    async fn end(self) {
        self.cancel.cancel();
        let ended = tokio::time::timeout(WAIT, self.running).await;
        ended.expect("it stops in time").unwrap().unwrap();
    }
}

async fn a_post_is_accepted_and_only_then_acknowledged<D: Driver>() {
    let stage = Stage::<D>::new().await;
    stage.recorder.commits.send_replace(false);
    stage.platform.say("hello");
    stage
        .recorder
        .until("offered", |heard| heard.offered == 1)
        .await;
    assert!(stage.platform.unacknowledged() > 0);
    assert_eq!(stage.recorder.heard.borrow().acknowledged, 0);
    stage.recorder.commits.send_replace(true);
    let heard = stage
        .recorder
        .until("acknowledged", |heard| heard.acknowledged == 1)
        .await;
    assert_eq!(texts(&heard), ["hello"]);
    stage.platform.until_acknowledged().await;
    stage.end().await;
}

async fn what_is_not_stored_is_not_acknowledged_and_comes_again<D: Driver>() {
    let stage = Stage::<D>::new().await;
    *stage.recorder.stores.lock().unwrap() = false;
    stage.platform.say("hold on");
    stage
        .recorder
        .until("offered", |heard| heard.offered >= 1)
        .await;
    stage.platform.send_again();
    stage
        .recorder
        .until("offered twice", |heard| heard.offered >= 2)
        .await;
    assert!(stage.platform.unacknowledged() > 0);
    *stage.recorder.stores.lock().unwrap() = true;
    stage.platform.send_again();
    stage.recorder.until_posted("hold on").await;
    stage.platform.until_acknowledged().await;
    stage.end().await;
}

async fn a_redelivery_is_the_same_message<D: Driver>() {
    let stage = Stage::<D>::new().await;
    stage.platform.say_twice("again");
    let is_twice = |heard: &Heard| texts(heard).len() == 2;
    let heard = stage.recorder.until("heard twice", is_twice).await;
    let [Event::Posted(one), Event::Posted(two)] = heard.accepted.as_slice() else {
        panic!("{:?}", heard.accepted);
    };
    assert_eq!(one, two);
    stage.platform.until_acknowledged().await;
    stage.end().await;
}

async fn an_edit_names_the_message_it_changes<D: Driver>() {
    let stage = Stage::<D>::new().await;
    let id = stage.platform.say("fixd");
    stage.recorder.until_posted("fixd").await;
    stage.platform.edit(&id, "fixed");
    let edited = |event: &Event| match event {
        Event::Edited(it) => Some((
            it.message_id.clone(),
            it.text.clone(),
            it.edit_marker.is_some(),
        )),
        _ => None,
    };
    let is_edited = |heard: &Heard| heard.accepted.iter().any(|event| edited(event).is_some());
    let heard = stage.recorder.until("the edit", is_edited).await;
    let edits: Vec<_> = heard.accepted.iter().filter_map(edited).collect();
    assert_eq!(edits, [(id, "fixed".to_owned(), true)]);
    stage.end().await;
}

async fn own_posts_are_delivered_and_never_heard_as_messages<D: Driver>() {
    let stage = Stage::<D>::new().await;
    let posts = stage.post("o", "here I am");
    let delivered = stage.outbound.poster.deliver(&posts[0]).await.unwrap();
    assert_eq!(delivered.chat, stage.platform.chat());
    assert_eq!(stage.platform.posts(), ["here I am"]);
    stage.platform.say("after it");
    let heard = stage.recorder.until_posted("after it").await;
    assert_eq!(texts(&heard), ["after it"]);
    stage.end().await;
}

async fn a_long_text_goes_out_whole_in_parts<D: Driver>() {
    let stage = Stage::<D>::new().await;
    let text = "word & <tag> 👍 ".repeat(1_500);
    let posts = stage.post("o", &text);
    assert!(posts.len() > 1);
    for post in &posts {
        stage.outbound.poster.deliver(post).await.unwrap();
    }
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(squeezed(&stage.platform.posts().concat()), squeezed(&text));
    assert_eq!(
        stage.outbound.renderer.render(" \n ", &People::nobody()),
        []
    );
    stage.end().await;
}

async fn a_failed_post_says_what_is_known<D: Driver>() {
    // The trouble, its class, and whether the post is there all the same.
    for (trouble, class, is_there) in [
        (Trouble::RateLimited { seconds: 17 }, "wait 17000", false),
        (Trouble::AccountRefused, "account", false),
        (Trouble::ChatRefuses, "chat", false),
        (Trouble::ResetBefore, "unknown", false),
        (Trouble::ResetAfter, "unknown", true),
        (Trouble::ServerError, "unknown", false),
    ] {
        let stage = Stage::<D>::new().await;
        stage.platform.trouble(trouble);
        let posts = stage.post("o", "is it there?");
        let error = stage.outbound.poster.deliver(&posts[0]).await.unwrap_err();
        let shown = match &error {
            ChannelError::NotSent { .. } => "not sent".to_owned(),
            ChannelError::RetryAfter { wait_ms, .. } => format!("wait {wait_ms}"),
            ChannelError::Unauthorized { .. } => "account".to_owned(),
            ChannelError::ChatRefused { .. } => "chat".to_owned(),
            ChannelError::OutcomeUnknown { .. } => "unknown".to_owned(),
            ChannelError::ChatMoved { .. } | ChannelError::Rejected { .. } => "other".to_owned(),
        };
        assert_eq!(shown, class, "{trouble:?}");
        let told = format!("{error:?} {}", error.reason());
        assert!(!told.contains(&stage.platform.secret()), "{trouble:?}");
        assert_eq!(!stage.platform.posts().is_empty(), is_there, "{trouble:?}");
        stage.end().await;
    }
}

async fn a_platform_that_is_gone_was_not_sent_anything<D: Driver>() {
    let channel = D::nowhere();
    let error = channel.identify().await.unwrap_err();
    assert!(matches!(error, ChannelError::NotSent { .. }), "{error:?}");
}

async fn a_stop_waits_for_what_is_being_committed<D: Driver>() {
    let stage = Stage::<D>::new().await;
    stage.recorder.commits.send_replace(false);
    stage.platform.say("last words");
    stage
        .recorder
        .until("offered", |heard| heard.offered == 1)
        .await;
    stage.cancel.cancel();
    assert!(!stage.running.is_finished());
    stage.recorder.commits.send_replace(true);
    let recorder = Arc::clone(&stage.recorder);
    stage.platform.until_acknowledged().await;
    stage.end().await;
    assert_eq!(texts(&recorder.heard.borrow()), ["last words"]);
    assert_eq!(recorder.heard.borrow().acknowledged, 1);
}

/// Makes one test per check for a driver.
macro_rules! conforms {
    ($platform:ident, $driver:ty, $($check:ident),+ $(,)?) => {
        mod $platform {
            use super::*;
            $(#[tokio::test]
            async fn $check() {
                super::$check::<$driver>().await;
            })+
        }
    };
}

macro_rules! conforms_to_all {
    ($platform:ident, $driver:ty) => {
        conforms!(
            $platform,
            $driver,
            a_post_is_accepted_and_only_then_acknowledged,
            what_is_not_stored_is_not_acknowledged_and_comes_again,
            a_redelivery_is_the_same_message,
            an_edit_names_the_message_it_changes,
            own_posts_are_delivered_and_never_heard_as_messages,
            a_long_text_goes_out_whole_in_parts,
            a_failed_post_says_what_is_known,
            a_platform_that_is_gone_was_not_sent_anything,
            a_stop_waits_for_what_is_being_committed,
        );
    };
}

conforms_to_all!(slack, SlackDriver);
conforms_to_all!(slack_http, SlackHttpDriver);
conforms_to_all!(telegram, TelegramDriver);
conforms_to_all!(telegram_webhook, TelegramWebhookDriver);
