//! What people and rooms are called, where no event says it.

use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::{CallFault, SlackPost};
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::WireKind;

use crate::harness::{Flow, FlowBuilder};

fn count(flow: &Flow, sql: &str) -> i64 {
    let path = flow.directory().join("data").join("vocative.db");
    let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(path, read_only).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn requests(flow: &Flow, method: &str) -> usize {
    let records = flow.wire.records().into_iter();
    records
        .filter(|it| it.kind == WireKind::Request && it.name == method)
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_in_which_nobody_asked_has_its_name_although_people_have_none() {
    let flow = Flow::start_default().await;
    // Tokens of earlier manifests may lack the scope for people.
    for _ in 0..100 {
        let refused = CallFault::Error("missing_scope".to_owned());
        flow.slack.faults().next("users.info", refused);
    }
    flow.slack.say("#general", "ann", "the build is green");
    flow.slack.say("#ops", "bob", "lunch?");
    let group = TelegramWorld::SUPERGROUP;
    flow.telegram.say(group, TelegramWorld::ANN, "hello");
    flow.settle().await;
    flow.wait_for_status("all rooms have names", |_| {
        count(&flow, "SELECT count(*) FROM chats WHERE title IS NOT NULL") == 3
    })
    .await;
    let told = flow.cli(&["conversations", "list"]).await;
    for title in ["#general", "#ops", "Platform team"] {
        assert!(told.stdout.contains(title), "{title}: {told:?}");
    }
    assert!(!told.stdout.contains("C0GENERAL"), "{told:?}");
    // Each room once; people are not asked for again while the platform refuses it.
    assert!(requests(&flow, "conversations.info") <= 2);
    assert!(requests(&flow, "users.info") <= 1);
    assert_eq!(flow.model.requests().len(), 0);
}

/// Two agents post under names and pictures of their own; a post of unknown outcome is found among them. An app that
/// lacks the scope posts as itself, with the name before the text, and nothing is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_post_under_their_own_names_where_the_app_may() {
    const SCOPE: &str = "chat:write.customize";
    let mut flow = FlowBuilder::default()
        .slack(
            "default_agent = \"vocative\"\ncustom_names = true\nmanners.edit_answer_within_s = 600",
        )
        .agent("vocative", "icon = \":pencil2:\"")
        .agent(
            "look",
            "channels = [\"acme\"]\ndisplay_name = \"Look & See\"\nicon = \"https://example.com/eye.png\"",
        )
        .prepare()
        .await;
    flow.slack
        .change_world(|world| world.scopes.push(SCOPE.to_owned()));
    flow.start().await;
    flow.model.enqueue(ModelReply::text("Friday."));
    let asked = flow.slack.say("#general", "ann", "@vocative when?");
    let post = flow.slack_reply("#general", &asked).await;
    let shown = (post.username.as_deref(), &post.icons, post.text.as_str());
    assert_eq!(
        shown,
        (
            Some("Vocative"),
            &Some(json!({"emoji": ":pencil2:"})),
            "Friday."
        )
    );

    let lost = CallFault::LoseResponse;
    flow.slack.faults().next("chat.postMessage", lost);
    flow.model.enqueue(ModelReply::text("Here."));
    let asked = flow.slack.say("#general", "ann", "look: where?");
    let post = flow.slack_reply("#general", &asked).await;
    assert_eq!(post.username.as_deref(), Some("Look & See"));
    assert_eq!(
        post.icons,
        Some(json!({"image_48": "https://example.com/eye.png"}))
    );
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 2);

    flow.slack
        .change_world(|world| world.scopes.retain(|it| it != SCOPE));
    flow.model.enqueue(ModelReply::text("There."));
    let asked = flow.slack.say("#general", "ann", "look: and now?");
    let post = flow.slack_reply("#general", &asked).await;
    assert_eq!(
        (post.username, post.text.as_str()),
        (None, "Look &amp; See: There.")
    );
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 3);
    // Not a word is lost of what is formatted and long, and who speaks is told where a post is changed, too.
    let long = format!("**Once**: {}the end.", "and again it goes on. ".repeat(300));
    flow.model.enqueue(ModelReply::text(&long));
    let asked = flow.slack.say("#general", "ann", "look: tell");
    flow.slack_reply("#general", &asked).await;
    flow.settle().await;
    let told = flow
        .slack
        .posts("#general")
        .into_iter()
        .rfind(|it| it.bot_id.is_some());
    let told = format!("{:?}", told.unwrap().blocks);
    assert!(
        told.contains("Look &amp; See") && told.contains("the end."),
        "{told}"
    );
    flow.model.enqueue(ModelReply::text("Otherwise."));
    flow.slack.edit("#general", &asked, "look: tell otherwise");
    let is_changed = |post: &SlackPost| post.text.contains("Look &amp; See: Otherwise.");
    flow.slack_post("#general", is_changed).await;
    let checked = flow.cli(&["check", "--live"]).await;
    assert!(
        checked.stdout.contains("custom_names needs the scope"),
        "{checked:?}"
    );
    assert_eq!(flow.stop().await, Some(0));
}

/// An edit has another agent of a network answer: the post that stands under the first one's name says who speaks now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_another_agent_takes_over_says_whose_it_is() {
    let rules = "[[networks.team.rules]]\nwhen = { text = { contains = \"red\" } }\ncall = \"pen\"\n\
                 [[networks.team.rules]]\nwhen = { calls = 0 }\ncall = \"look\"\n";
    let mut flow = FlowBuilder::default()
        .slack("custom_names = true\nlive = \"off\"\nmanners.edit_answer_within_s = 600")
        .agent("pen", "channels = []")
        .agent("look", "channels = []")
        .config(&format!(
            "[networks.team]\nagents = [\"look\", \"pen\"]\nmax_calls = 1\n{rules}"
        ))
        .prepare()
        .await;
    let scope = "chat:write.customize".to_owned();
    flow.slack.change_world(|world| world.scopes.push(scope));
    flow.start().await;
    flow.model.enqueue(ModelReply::text("It is blue."));
    let asked = flow.slack.say("#general", "ann", "@vocative what colour?");
    let post = flow.slack_reply("#general", &asked).await;
    assert_eq!(post.username.as_deref(), Some("Look"));
    flow.settle().await;
    flow.model.enqueue(ModelReply::text("It is red."));
    flow.slack
        .edit("#general", &asked, "<@U0VOCATIVE> is it red?");
    let is_changed = |post: &SlackPost| post.text.contains("Pen: It is red.");
    let post = flow.slack_post("#general", is_changed).await;
    assert_eq!(post.username.as_deref(), Some("Look"));
    assert_eq!(flow.stop().await, Some(0));
}
