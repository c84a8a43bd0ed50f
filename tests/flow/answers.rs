//! What the model is asked, and what becomes of what it says.

use vocative_sandbox::model::{ModelAct, ModelReply};
use vocative_sandbox::slack::CallFault;
use vocative_sandbox::telegram::{TelegramFault, TelegramWorld};

use crate::harness::{Flow, FlowBuilder, said};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_of_two_quick_questions_sees_the_first_and_its_answer_once() {
    let flow = Flow::start_default().await;
    flow.model.hold();
    flow.slack.say("D0ANN", "ann", "one?");
    flow.telegram.say(GROUP, ANN, "@vocative_bot one?");
    flow.wait_for_model(2).await;
    flow.slack.say("D0ANN", "ann", "two?");
    flow.telegram.say(GROUP, BOB, "@vocative_bot two?");
    flow.wait_until_heard().await;
    flow.model.release();
    flow.wait_for_model(4).await;
    flow.settle().await;
    let mut histories: Vec<_> = (0..4).map(|n| flow.model_history(n)).collect();
    histories.sort();
    let mut expected = vec![
        vec![said("user", "Ann: one?")],
        vec![
            said("user", "Ann: one?"),
            said("assistant", "echo: Ann: one?"),
            said("user", "Ann: two?"),
        ],
        vec![said("user", "Ann: @Vocative one?")],
        vec![
            said("user", "Ann: @Vocative one?"),
            said("assistant", "echo: Ann: @Vocative one?"),
            said("user", "Bob: @Vocative two?"),
        ],
    ];
    expected.sort();
    assert_eq!(histories, expected);
    let texts = ["echo: Ann: one?", "echo: Ann: two?"];
    assert_eq!(
        flow.slack_posts("D0ANN"),
        texts.map(|text| (None, text.to_owned()))
    );
    assert_eq!(
        flow.telegram_posts(GROUP),
        ["echo: Ann: @Vocative one?", "echo: Bob: @Vocative two?"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_answer_is_posted_in_parts_and_in_order() {
    let flow = Flow::start_default().await;
    let lines: Vec<String> = (0..600)
        .map(|n| format!("line {n} of the answer"))
        .collect();
    let long = lines.join("\n");
    flow.model.enqueue(ModelReply::text(&long));
    let root = flow.slack.say("#general", "ann", "@vocative tell me all");
    flow.slack_post("#general", |post| {
        post.shown().ends_with("line 599 of the answer")
    })
    .await;
    flow.model.enqueue(ModelReply::text(&long));
    flow.telegram.say(GROUP, ANN, "@vocative_bot tell me all");
    flow.wait_until("the last part is there", || {
        let posts = flow.telegram_posts(GROUP);
        posts
            .last()
            .is_some_and(|text| text.ends_with("line 599 of the answer"))
    })
    .await;
    flow.settle().await;
    let parts = flow.slack_posts("#general");
    assert!(
        parts.len() > 1
            && parts
                .iter()
                .all(|(thread, _)| thread.as_ref() == Some(&root))
    );
    let texts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts.join("\n"), long);
    let texts = flow.telegram_posts(GROUP);
    assert!(texts.len() > 1);
    assert_eq!(texts.join("\n"), long);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_formatted_answer_is_formatted_in_both_rooms_and_stored_as_it_was_said() {
    let flow = Flow::start_default().await;
    let said_text = "## Result\n\n**Two** of `three`:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
    flow.model.enqueue(ModelReply::text(said_text));
    let root = flow.slack.say("#general", "ann", "@vocative how?");
    let answer = flow.slack_reply("#general", &root).await;
    let blocks = answer.blocks.clone().unwrap();
    assert_eq!(
        [&blocks[0]["type"], &blocks[0]["text"]],
        ["markdown", "## Result\n\n**Two** of `three`:"]
    );
    assert_eq!(blocks[1]["type"], "table");
    assert_eq!(
        answer.text,
        "Result\n\nTwo of three:\n\na | b\n--|--\n1 | 2"
    );
    flow.model.enqueue(ModelReply::text(said_text));
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot how?");
    let answer = flow.telegram_reply(GROUP, question).await;
    assert_eq!(
        answer.text,
        "Result\n\nTwo of three:\n\na | b\n--|--\n1 | 2"
    );
    let kinds: Vec<_> = answer
        .entities
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["bold", "bold", "code", "pre"]);
    // What the model is shown of its own answer is what it said.
    flow.settle().await;
    flow.telegram.say(GROUP, ANN, "@vocative_bot and then?");
    flow.wait_for_model(3).await;
    assert!(
        flow.model_history(2)
            .contains(&said("assistant", said_text.trim_end()))
            || flow
                .model_history(2)
                .contains(&said("assistant", said_text))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_can_mention_or_wake_nobody() {
    let flow = Flow::start_default().await;
    let text = "<!channel> <@U0BOB> & <#C0OPS|bank>";
    flow.model.enqueue(ModelReply::text(text));
    let root = flow.slack.say("#general", "ann", "@vocative repeat it");
    let answer = flow.slack_reply("#general", &root).await;
    assert_eq!(
        answer.text,
        "&lt;!channel&gt; &lt;@U0BOB&gt; &amp; &lt;#C0OPS|bank&gt;"
    );
    flow.model.enqueue(ModelReply::text(text));
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot repeat it");
    assert_eq!(flow.telegram_reply(GROUP, question).await.text, text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_fails_for_a_moment_is_asked_again_and_answers_once() {
    let flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::status(500));
    flow.model.enqueue(ModelReply::status(503));
    flow.model.enqueue(ModelReply::new(ModelAct::Reset));
    flow.model.enqueue(ModelReply::text("Here."));
    let root = flow.slack.say("#general", "ann", "@vocative there?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    assert_eq!(
        flow.slack_posts("#general"),
        [(Some(root), "Here.".to_owned())]
    );
    assert_eq!(flow.model.requests().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_refuses_for_good_gives_one_polite_notice_and_a_dead_run() {
    let flow = Flow::start_default().await;
    let body = r#"{"error":{"message":"key sk-flow is wrong","code":"invalid_value"}}"#;
    flow.model.enqueue(ModelReply::status(400).body(body));
    let root = flow.slack.say("#general", "ann", "@vocative there?");
    let notice = flow.slack_reply("#general", &root).await.text;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    for word in ["400", "key", "sk-flow", "invalid"] {
        assert!(
            !notice.contains(word),
            "the notice has an error text: {notice}"
        );
    }
    let channel = flow.conversation_id("C0GENERAL", None).await;
    let turns = flow.turns(&channel).await;
    let run = &turns[0]["runs"][0];
    assert_eq!(run["state"], "dead", "{turns:?}");
    let reason = run["reason"].as_str().unwrap();
    assert!(reason.contains("HTTP 400 (invalid_value)"), "{reason}");
    let status = flow.cli(&["status"]).await;
    assert_eq!(status.status, Some(1), "{status:?}");
    // The next question is answered, and the notice is no part of what the model is asked.
    flow.model.enqueue(ModelReply::text("Here."));
    flow.slack.say_in("#general", "ann", &root, "and now?");
    flow.slack_post("#general", |post| post.text == "Here.")
        .await;
    let history = flow.model_history(1);
    assert!(
        history.iter().all(|(role, _)| role == "user"),
        "{history:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_prompt_command_shows_what_the_model_is_sent() {
    let flow = Flow::start_default().await;
    flow.slack.say("D0ANN", "ann", "one?");
    flow.slack_post("D0ANN", |_| true).await;
    flow.settle().await;
    flow.model.hold();
    flow.slack.say("D0ANN", "ann", "two\nlines & <signs>?");
    flow.wait_for_model(2).await;
    let conversation = flow.conversation_id("D0ANN", None).await;
    let sent = flow.model_prompt(1);
    assert_eq!(flow.prompt(&[&conversation]).await, sent);
    flow.model.release();
    flow.slack_post("D0ANN", |post| post.text.contains("two"))
        .await;
    flow.settle().await;
    let turns = flow.turns(&conversation).await;
    let seq = turns[2]["seq"].to_string();
    assert_eq!(flow.prompt(&[&conversation, "--at", &seq]).await, sent);
    let told = flow.cli(&["prompt", &conversation]).await;
    let (_, run) = told.stdout.split_once("vocative prompt --run ").unwrap();
    let run = run.lines().next().unwrap();
    assert_eq!(flow.prompt(&["--run", run]).await, sent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_ever_logged() {
    let looks = "[delivery]\nfirst_look_s = 1\nvisibility_delay_s = 1\non_unknown = \"resend\"";
    let mut flow = FlowBuilder::default().trace().config(looks).start().await;
    let faults = flow.telegram.faults();
    faults.next("getUpdates", TelegramFault::ResetBefore);
    faults.next("getUpdates", TelegramFault::Gateway { code: 502 });
    faults.next("sendMessage", TelegramFault::ResetBefore);
    let faults = flow.slack.faults();
    faults.next("chat.postMessage", CallFault::ResetBefore);
    faults.next("apps.connections.open", CallFault::ResetBefore);
    flow.model.enqueue(ModelReply::status(500));
    flow.model.enqueue(ModelReply::new(ModelAct::Reset));
    let root = flow.slack.say("#general", "ann", "@vocative quartzite?");
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot quartzite?");
    flow.slack_reply("#general", &root).await;
    flow.telegram_reply(GROUP, question).await;
    flow.slack.close_sockets();
    flow.wait_until_connected().await;
    flow.restart().await;
    flow.model.enqueue(ModelReply::status(400));
    flow.slack.say("D0ANN", "ann", "quartzite");
    flow.slack_post("D0ANN", |_| true).await;
    flow.telegram.revoke_token();
    flow.telegram.say(GROUP, ANN, "@vocative_bot quartzite?");
    flow.wait_for_status("the channel raises an alarm", |status| {
        let channels = status["channels"].as_array().unwrap();
        channels.iter().any(|channel| channel["state"] == "alarm")
    })
    .await;
    let mut said = flow.log();
    assert!(
        said.contains(" WARN ") && said.contains(" ERROR "),
        "the log tells much"
    );
    for args in [
        &["status"][..],
        &["config", "show"],
        &["check"],
        &["-vv", "check", "--live"],
    ] {
        let told = flow.cli(args).await;
        said.push_str(&told.stdout);
        said.push_str(&told.stderr);
    }
    for (name, secret) in flow.secrets() {
        // Telegram's token is the bot's id, which is public, and the secret part.
        let secret = secret.rsplit(':').next().unwrap();
        let line = said.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{name} is in the log");
    }
    let is_told = flow.log().contains("quartzite");
    assert!(!is_told, "the log has what was said");
}

/// The first refusal teaches what the model holds; the next question is asked within it at once, also after
/// a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_that_is_too_long_is_asked_once_more_with_less_history() {
    let mut flow = Flow::start_default().await;
    flow.slack
        .say("D0ANN", "ann", &"remember this ".repeat(500));
    flow.wait_for_model(1).await;
    flow.settle().await;
    flow.model.limit_context(1_200);
    flow.slack.say("D0ANN", "ann", "and now?");
    flow.slack_post("D0ANN", |post| post.text.contains("and now?"))
        .await;
    flow.settle().await;
    let statuses =
        || -> Vec<Option<u16>> { flow.model.requests().iter().map(|it| it.status).collect() };
    assert_eq!(statuses(), [200, 400, 200].map(Some));
    flow.slack.say("D0ANN", "ann", "and then?");
    flow.slack_post("D0ANN", |post| post.text.contains("and then?"))
        .await;
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    flow.start().await;
    flow.slack.say("D0ANN", "ann", "and today?");
    flow.slack_post("D0ANN", |post| post.text.contains("and today?"))
        .await;
    let statuses: Vec<Option<u16>> = flow.model.requests().iter().map(|it| it.status).collect();
    assert_eq!(statuses, [200, 400, 200, 200, 200].map(Some));
}

/// A prompt that no history makes too long is refused, visibly, and not asked for again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_that_can_not_be_made_to_fit_is_given_up_after_two_requests() {
    let flow = Flow::start_default().await;
    flow.model.limit_context(20);
    flow.slack.say("D0ANN", "ann", "one?");
    flow.slack_post("D0ANN", |post| post.text.contains("could not answer"))
        .await;
    flow.settle().await;
    assert!(flow.model.requests().len() <= 2);
}

/// An answer that is cut before any text is asked for twice in all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_cut_before_any_text_is_not_asked_for_a_third_time() {
    let flow = Flow::start_default().await;
    let cut = || {
        ModelReply::new(ModelAct::Cut {
            text: "<think>They ask".to_owned(),
        })
    };
    flow.model.enqueue(cut());
    flow.model.enqueue(cut());
    flow.slack.say("D0ANN", "ann", "one?");
    let notice = flow
        .slack_post("D0ANN", |post| post.text.contains("could not answer"))
        .await;
    assert!(!notice.text.contains("They ask"));
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 2);
}
