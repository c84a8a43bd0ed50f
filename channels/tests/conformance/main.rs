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
use vocative_contract::card::{ButtonStyle, Card, CardButton, CardFact, CardText};
use vocative_contract::channel::{
    Accepted, BoxFuture, Channel, ConnectionState, Intake, IntakeError, Reporter,
};
use vocative_contract::envelope::{Envelope, Event, SenderKind};
use vocative_contract::error::ChannelError;
use vocative_contract::handles::Outbound;
use vocative_contract::interaction::{Interaction, PressedAuthor};
use vocative_contract::outbound::{Delivered, Operation, Part, Post, Target};
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
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
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
            Ok(Accepted::default())
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

fn card(buttons: &[&str]) -> Card {
    Card {
        heading: "Post a refund?".to_owned(),
        facts: vec![CardFact {
            label: "Asked by".to_owned(),
            value: "Ann".to_owned(),
        }],
        texts: vec![CardText {
            title: "amount".to_owned(),
            text: "120".to_owned(),
        }],
        buttons: buttons
            .iter()
            .map(|label| CardButton {
                data: format!("a1{label}"),
                label: (*label).to_owned(),
                style: ButtonStyle::Positive,
            })
            .collect(),
    }
}

/// Makes a post of a card.
async fn show<D: Driver>(stage: &Stage<D>, operation: Operation, buttons: &[&str]) -> Delivered {
    let post = Post {
        part: stage.outbound.renderer.render_card(&card(buttons)).unwrap(),
        operation,
        ..stage.post("card", "x").remove(0)
    };
    stage.outbound.poster.deliver(&post).await.unwrap()
}

/// The newest press.
fn pressed(heard: &Heard) -> Option<Interaction> {
    let mut events = heard.accepted.iter().rev();
    events.find_map(|event| match event {
        Event::Interaction(press) => Some(press.clone()),
        _ => None,
    })
}

/// Presses a button, and what is heard of it.
async fn press<D: Driver>(stage: &Stage<D>, message: &str, button: &str) -> Interaction {
    let before = pressed(&stage.recorder.heard.borrow());
    assert!(stage.platform.press(message, button));
    let is_new = |heard: &Heard| pressed(heard) != before;
    pressed(&stage.recorder.until("the press", is_new).await).unwrap()
}

fn answer(press: &Interaction, text: &str) -> Post {
    Post {
        marker: "answer".to_owned(),
        target: press.answer_target().unwrap(),
        operation: Operation::Answer {
            interaction: press.id.clone(),
            person: press.sender.id.clone(),
        },
        part: Part::plain(text),
    }
}

async fn a_press_is_told_once_committed_and_names_its_button_message_and_person<D: Driver>() {
    let stage = Stage::<D>::new().await;
    let shown = show(&stage, Operation::Post, &["Approve", "Deny"]).await;
    assert_eq!(
        stage.platform.buttons(&shown.message_id),
        ["Approve", "Deny"]
    );
    stage.recorder.commits.send_replace(false);
    let acknowledged = stage.recorder.heard.borrow().acknowledged;
    let offered = stage.recorder.heard.borrow().offered;
    assert!(stage.platform.press(&shown.message_id, "Deny"));
    let is_offered = |heard: &Heard| heard.offered > offered;
    stage.recorder.until("offered", is_offered).await;
    assert_eq!(stage.recorder.heard.borrow().acknowledged, acknowledged);
    stage.recorder.commits.send_replace(true);
    let is_acknowledged = |heard: &Heard| heard.acknowledged > acknowledged;
    stage.recorder.until("acknowledged", is_acknowledged).await;
    let heard = stage
        .recorder
        .until("the press", |heard| pressed(heard).is_some())
        .await;
    let press = pressed(&heard).unwrap();
    assert_eq!(press.refusal(), None, "{press:?}");
    assert_eq!(press.data, "a1Deny");
    let message = press.message.as_ref().map(|it| (it.id.as_str(), it.author));
    assert_eq!(
        message,
        Some((shown.message_id.as_str(), PressedAuthor::Us))
    );
    assert_eq!(press.place.as_ref().unwrap().chat, stage.platform.chat());
    assert_eq!(press.sender.kind, SenderKind::Person);
    stage.end().await;
}

async fn an_answer_is_for_the_person_who_pressed_and_one_too_many_does_no_harm<D: Driver>() {
    let stage = Stage::<D>::new().await;
    let shown = show(&stage, Operation::Post, &["Approve"]).await;
    let silent = press(&stage, &shown.message_id, "Approve").await;
    let poster = &stage.outbound.poster;
    poster.deliver(&answer(&silent, "")).await.unwrap();
    let told = stage.platform.told(&silent.id);
    assert_eq!(told.unwrap_or_default(), "");
    let refused = press(&stage, &shown.message_id, "Approve").await;
    assert_ne!(refused.id, silent.id);
    let words = answer(&refused, "You can't decide this.");
    poster.deliver(&words).await.unwrap();
    let told = stage.platform.told(&refused.id);
    assert_eq!(told.as_deref(), Some("You can't decide this."));
    poster.deliver(&words).await.unwrap();
    assert_eq!(stage.platform.posts().len(), 1);
    stage.end().await;
}

async fn an_outcome_takes_the_buttons_away<D: Driver>() {
    let stage = Stage::<D>::new().await;
    let shown = show(&stage, Operation::Post, &["Approve", "Deny"]).await;
    let message_id = shown.message_id.clone();
    let edit = Operation::Edit { message_id };
    show(&stage, edit, &[]).await;
    assert_eq!(stage.platform.buttons(&shown.message_id), [""; 0]);
    assert!(!stage.platform.press(&shown.message_id, "Approve"));
    assert!(stage.platform.posts()[0].contains("Post a refund?"));
    stage.end().await;
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
            a_press_is_told_once_committed_and_names_its_button_message_and_person,
            an_answer_is_for_the_person_who_pressed_and_one_too_many_does_no_harm,
            an_outcome_takes_the_buttons_away,
        );
    };
}

conforms_to_all!(slack, SlackDriver);
conforms_to_all!(slack_http, SlackHttpDriver);
conforms_to_all!(telegram, TelegramDriver);
conforms_to_all!(telegram_webhook, TelegramWebhookDriver);
