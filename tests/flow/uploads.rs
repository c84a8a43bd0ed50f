//! Answers too long for their posts: the beginning, and the whole as a file. Never lost, never doubled.

use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::{CallFault, SlackPost};
use vocative_sandbox::telegram::{TelegramFault, TelegramPost, TelegramWorld};

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
const FEW_PARTS: &str =
    "[delivery]\nmax_parts = 2\nfirst_look_s = 1\nvisibility_delay_s = 1\nlook_back_s = 3\n";

/// An answer of twelve posts.
fn long_answer() -> String {
    let line = |n| format!("line {n} of an answer that is much too long for a room");
    (0..900).map(line).collect::<Vec<_>>().join("\n")
}

async fn start() -> Flow {
    FlowBuilder::default().config(FEW_PARTS).start().await
}

fn shared(flow: &Flow) -> Vec<SlackPost> {
    let posts = flow.slack.posts("#general").into_iter();
    posts.filter(|post| !post.files.is_empty()).collect()
}

fn documents(flow: &Flow) -> Vec<TelegramPost> {
    let posts = flow.telegram.bot_posts(GROUP).into_iter();
    posts
        .filter(|post| !post.wire["document"].is_null())
        .collect()
}

fn slack_bytes(flow: &Flow, post: &SlackPost) -> String {
    let id = post.files[0]["id"].as_str().unwrap();
    String::from_utf8(flow.slack.file_bytes(id).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_very_long_answer_is_its_beginning_and_a_file_on_both_platforms() {
    let flow = start().await;
    let long = long_answer();
    flow.model.enqueue(ModelReply::text(&long));
    let root = flow.slack.say("#general", "ann", "@vocative tell me all");
    flow.wait_until("the file is shared", || !shared(&flow).is_empty())
        .await;
    flow.settle().await;
    let posts = flow.slack_posts("#general");
    assert_eq!(posts.len(), 2, "{posts:?}");
    assert!(
        posts
            .iter()
            .all(|(thread, _)| thread.as_ref() == Some(&root))
    );
    assert!(
        posts[0].1.starts_with("line 0 of") && posts[0].1.ends_with("for a room …"),
        "{posts:?}"
    );
    assert!(posts[0].1.len() <= 1_510, "{posts:?}");
    let post = shared(&flow).remove(0);
    assert_eq!(
        (post.text.as_str(), post.files[0]["name"].as_str()),
        (
            "That was the beginning; here is the whole answer.",
            Some("answer.md")
        )
    );
    assert_eq!(slack_bytes(&flow, &post), long);

    flow.model.enqueue(ModelReply::text(&long));
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot tell me all");
    flow.wait_until("the file is sent", || !documents(&flow).is_empty())
        .await;
    flow.settle().await;
    let posts = flow.telegram.bot_posts(GROUP);
    assert_eq!(posts.len(), 2);
    let document = &posts[1].wire["document"];
    assert_eq!(document["file_name"], "answer.md");
    assert_eq!(posts[1].reply_to, Some(asked));
    let bytes = flow
        .telegram
        .file_bytes(document["file_id"].as_str().unwrap());
    assert_eq!(bytes.as_deref(), Some(long.as_bytes()));

    // The turn is the whole answer, and a deleted file takes its words along.
    let conversation = flow.conversation_id("C0GENERAL", Some(&root)).await;
    let turns = flow.turns(&conversation).await;
    assert!(
        turns.iter().any(|turn| turn["text"] == long.as_str()),
        "{turns:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_files_are_refused_the_answer_goes_on_behind_its_beginning() {
    let config = FEW_PARTS.replace("max_parts = 2", "max_parts = 3");
    let flow = FlowBuilder::default()
        .config(&config)
        .agent("vocative", "")
        .slack("mention_people = true")
        .start()
        .await;
    flow.slack
        .change_world(|world| world.scopes.retain(|scope| scope != "files:write"));
    flow.slack.say("#general", "bob", "I know it");
    let long = long_answer().replacen("line 40 of", "@Bob knows line 40 of", 1);
    flow.model.enqueue(ModelReply::text(&long));
    flow.slack.say("#general", "ann", "@vocative tell me all");
    flow.slack_post("#general", |post| post.text.contains("parts are left out"))
        .await;
    flow.settle().await;
    let posts = flow.slack_posts("#general");
    // The beginning, what follows it, and what is missing: three, as configured.
    assert_eq!(posts.len(), 3, "{posts:?}");
    let numbers = |text: &str| -> Vec<u32> {
        let lines = text.split("line ").skip(1);
        let numbers = lines.filter_map(|line| line.split(' ').next()?.parse().ok());
        numbers.collect()
    };
    let (first, second) = (numbers(&posts[0].1), numbers(&posts[1].1));
    assert_eq!(
        second.first().copied(),
        first.last().map(|last| last + 1),
        "{posts:?}"
    );
    let sent = flow.slack.posts("#general");
    let wire = sent
        .iter()
        .map(|post| format!("{} {:?}", post.text, post.blocks));
    assert!(
        wire.collect::<String>().contains("<@U0BOB> knows line 40"),
        "{posts:?}"
    );
    // The channel goes on.
    flow.slack.say("#general", "ann", "@vocative short");
    flow.slack_post("#general", |post| post.text.contains("echo"))
        .await;
    assert!(flow.log().contains("files:write"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_between_the_steps_of_an_upload_the_file_is_shared_once() {
    let mut flow = start().await;
    let long = long_answer();
    for (method, fault) in [
        ("upload", CallFault::Latency(60_000)),
        ("files.completeUploadExternal", CallFault::LoseResponse),
    ] {
        flow.slack.faults().next(method, fault);
        let before = shared(&flow).len();
        let asked = |flow: &Flow| {
            let records = flow.wire.records();
            records
                .iter()
                .filter(|record| record.name == method)
                .count()
        };
        let already = asked(&flow);
        flow.model.enqueue(ModelReply::text(&long));
        flow.slack.say("#general", "ann", "@vocative tell me all");
        flow.wait_until("the step is under way", || asked(&flow) > already)
            .await;
        flow.kill().await;
        flow.start().await;
        flow.wait_until("the file is shared", || shared(&flow).len() > before)
            .await;
        flow.settle().await;
        assert_eq!(shared(&flow).len(), before + 1, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_telegram_file_of_unknown_outcome_is_held_where_that_is_wanted() {
    let flow = FlowBuilder::default()
        .config("[delivery]\nmax_parts = 2\non_unknown = \"hold\"\n")
        .start()
        .await;
    flow.telegram
        .faults()
        .next("sendDocument", TelegramFault::ResetAfter);
    flow.model.enqueue(ModelReply::text(&long_answer()));
    flow.telegram.say(GROUP, ANN, "@vocative_bot tell me all");
    flow.wait_for_status("the file is held", |status| status["posts"]["held"] == 1)
        .await;
    assert_eq!(documents(&flow).len(), 1);
}
