//! What people attach: fetched after the commit, read by the model, and gone when it is deleted.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use vocative_sandbox::slack::{CallFault, SlackFile, UserPost};
use vocative_sandbox::telegram::{TelegramFault, TelegramWorld, UserMessage};

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;

/// The smallest thing that begins like a PNG.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x05\0\0\0\x07zebra";

const WITH_IMAGES: &str = "[defaults.model]\nimages = true\n";

pub(crate) fn slack_file(name: &str, mime_type: &str, bytes: &[u8]) -> SlackFile {
    SlackFile {
        name: name.to_owned(),
        mime_type: mime_type.to_owned(),
        bytes: bytes.to_vec(),
    }
}

/// Ann shows a file to the bot in a direct message; gives the message's ts.
pub(crate) fn show_on_slack(flow: &Flow, file: SlackFile, text: &str) -> String {
    let file = flow.slack.add_file(file);
    flow.slack.post_with(UserPost {
        channel: "D0ANN".to_owned(),
        user: "ann".to_owned(),
        text: text.to_owned(),
        files: vec![file],
        ..UserPost::default()
    })
}

/// The same on Telegram; the file goes into that field.
fn show_on_telegram(flow: &Flow, field: &str, file: Value, text: &str) -> i64 {
    let mut extra = Map::new();
    extra.insert(field.to_owned(), file);
    extra.insert("caption".to_owned(), json!(text));
    flow.telegram.send_with(UserMessage {
        chat: ANN,
        user: ANN,
        extra,
        ..UserMessage::default()
    })
}

/// The content of the last message that the model was sent.
fn last_content(flow: &Flow, number: usize) -> Value {
    let request = &flow.model.requests()[number];
    let messages = request.body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].clone()
}

fn last_text(flow: &Flow, number: usize) -> String {
    last_content(flow, number).as_str().unwrap().to_owned()
}

/// The files that are stored beside the database.
pub(crate) fn stored(flow: &Flow) -> Vec<PathBuf> {
    let folder = flow.directory().join("data").join("files");
    let shelves = std::fs::read_dir(folder).into_iter().flatten();
    let mut found = Vec::new();
    for shelf in shelves {
        let shelf = shelf.unwrap().path();
        let files = std::fs::read_dir(&shelf).into_iter().flatten();
        found.extend(files.map(|file| file.unwrap().path()));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_file_is_read_by_the_model_on_both_platforms() {
    let flow = Flow::start_default().await;
    let notes = slack_file(
        "notes.md",
        "text/markdown",
        b"The code is zebra.\n```\nx\n```",
    );
    show_on_slack(&flow, notes, "what is the code?");
    flow.wait_for_model(1).await;
    let expected = "Ann: [file notes.md] what is the code?\n\n[file notes.md]\n````\nThe code is \
                    zebra.\n```\nx\n```\n````";
    assert_eq!(last_text(&flow, 0), expected);
    let notes = flow.telegram.add_file(
        "main.rs",
        "application/octet-stream",
        b"fn zebra() {}".to_vec(),
    );
    show_on_telegram(&flow, "document", notes, "what is it?");
    flow.wait_for_model(2).await;
    let said = last_text(&flow, 1);
    assert!(
        said.ends_with("\n\n[file main.rs]\n```\nfn zebra() {}\n```"),
        "{said}"
    );
    flow.settle().await;
    assert_eq!(stored(&flow).len(), 2);
    // What is shown is what was sent.
    let conversation = flow.conversation_id("D0ANN", None).await;
    let shown = flow.prompt(&[&conversation]).await;
    assert!(
        shown
            .iter()
            .any(|(_, text)| text.contains("what is the code?")),
        "{shown:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_reaches_a_model_that_takes_pictures_and_no_other_one() {
    let flow = FlowBuilder::default().config(WITH_IMAGES).start().await;
    show_on_slack(
        &flow,
        slack_file("shot.png", "image/png", PNG),
        "what is this?",
    );
    flow.wait_for_model(1).await;
    let content = last_content(&flow, 0);
    let url = content[1]["image_url"]["url"].as_str().unwrap_or_default();
    assert_eq!(
        url, "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAHemVicmE=",
        "{content}"
    );
    let photo = flow.telegram.add_file(
        "x",
        "",
        b"\xff\xd8\xff\xc0\0\x11\x08\0\x05\0\x07zebra".to_vec(),
    );
    show_on_telegram(&flow, "photo", json!([photo]), "and this?");
    flow.wait_for_model(2).await;
    let content = last_content(&flow, 1);
    let url = content[1]["image_url"]["url"].as_str().unwrap_or_default();
    assert!(url.starts_with("data:image/jpeg;base64,"), "{content}");

    // A provider would refuse the whole question for it.
    let wide = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x4e\x20\0\0\0\x07";
    show_on_slack(
        &flow,
        slack_file("wide.png", "image/png", wide),
        "and this?",
    );
    flow.wait_for_model(3).await;
    let content = last_content(&flow, 2).to_string();
    assert!(
        content.contains("[file wide.png: not loaded, it is too large to be shown]"),
        "{content}"
    );

    let flow = Flow::start_default().await;
    show_on_slack(
        &flow,
        slack_file("shot.png", "image/png", PNG),
        "what is this?",
    );
    flow.wait_for_model(1).await;
    let said = last_text(&flow, 0);
    assert!(
        said.ends_with("[file shot.png: not loaded, the model is shown no pictures]"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_missing_or_a_sign_in_page_is_named_and_never_shown() {
    let settings = "[files]\nmax_bytes = 1000\n";
    let flow = FlowBuilder::default().config(settings).start().await;
    show_on_slack(
        &flow,
        slack_file("l.txt", "text/plain", &[b'x'; 1_001]),
        "large?",
    );
    flow.wait_for_model(1).await;
    assert!(last_text(&flow, 0).ends_with("[file l.txt: not loaded, it is too large]"));
    flow.settle().await;

    flow.slack.faults().next("files-pri", CallFault::Html);
    show_on_slack(&flow, slack_file("p.txt", "text/plain", b"text"), "page?");
    flow.wait_for_model(2).await;
    let said = last_text(&flow, 1);
    assert!(
        said.ends_with("[file p.txt: not loaded, it is not fetched here]"),
        "{said}"
    );
    assert!(flow.log().contains("add the scope files:read"));
    flow.settle().await;

    flow.slack
        .faults()
        .next("files.info", CallFault::Error("file_deleted".to_owned()));
    show_on_slack(&flow, slack_file("g.txt", "text/plain", b"text"), "gone?");
    flow.wait_for_model(3).await;
    let said = last_text(&flow, 2);
    assert!(
        said.ends_with("[file g.txt: not loaded, it was deleted]"),
        "{said}"
    );
    assert_eq!(stored(&flow).len(), 0);
    let log = flow.log();
    assert!(
        !log.contains("xoxb-") && !log.contains("files-pri"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_waits_for_a_file_so_long_and_no_longer() {
    let flow = FlowBuilder::default()
        .config("[files]\nwait_s = 1\n")
        .start()
        .await;
    flow.slack
        .faults()
        .next("files-pri", CallFault::Latency(4_000));
    show_on_slack(
        &flow,
        slack_file("s.txt", "text/plain", b"slow zebra"),
        "slow?",
    );
    flow.wait_for_model(1).await;
    let said = last_text(&flow, 0);
    assert!(
        said.ends_with("[file s.txt: not loaded, it is still being fetched]"),
        "{said}"
    );
    // It comes all the same, and a kill in the middle loses nothing.
    flow.wait_until("the file is stored", || stored(&flow).len() == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_is_heard_while_a_file_is_waited_for() {
    let flow = FlowBuilder::default()
        .config("[files]\nwait_s = 40\n")
        .start()
        .await;
    flow.slack
        .faults()
        .next("files-pri", CallFault::Latency(60_000));
    show_on_slack(
        &flow,
        slack_file("s.txt", "text/plain", b"slow zebra"),
        "slow?",
    );
    flow.wait_for_status("the question is worked on", |status| {
        status["runs"]["leased"] == 1
    })
    .await;
    flow.slack.say("D0ANN", "ann", "stop");
    flow.slack.say("D0ANN", "ann", "quick?");
    flow.wait_for_model(1).await;
    flow.settle().await;
    let posts = flow.slack_posts("D0ANN");
    let texts: Vec<&str> = posts.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("Stopped."), "{texts:?}");
    assert!(texts[1].contains("quick?"), "{texts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_on_its_way_at_a_kill_is_fetched_after_the_next_start() {
    let mut flow = FlowBuilder::default()
        .config("[files]\nwait_s = 0\n")
        .start()
        .await;
    flow.slack
        .faults()
        .next("files-pri", CallFault::Latency(60_000));
    flow.telegram
        .faults()
        .next("file", TelegramFault::Latency { ms: 60_000 });
    show_on_slack(&flow, slack_file("a.txt", "text/plain", b"one zebra"), "a?");
    let notes = flow
        .telegram
        .add_file("b.txt", "text/plain", b"two zebras".to_vec());
    show_on_telegram(&flow, "document", notes, "b?");
    flow.wait_for_model(2).await;
    flow.settle().await;
    flow.kill().await;
    assert_eq!(stored(&flow).len(), 0);
    flow.start().await;
    flow.wait_until("both files are stored", || stored(&flow).len() == 2)
        .await;
    // Nothing half is left, and nobody was answered twice.
    let folder = flow.directory().join("data").join("files");
    let names = std::fs::read_dir(folder).unwrap();
    assert!(
        names
            .into_iter()
            .all(|entry| entry.unwrap().path().is_dir())
    );
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_and_an_erasure_remove_the_bytes_from_the_disk() {
    let mut flow = Flow::start_default().await;
    let secret = slack_file("secret.txt", "text/plain", b"zebra-7f3a9c");
    let ts = show_on_slack(&flow, secret, "keep this");
    flow.wait_until("the file is stored", || stored(&flow).len() == 1)
        .await;
    flow.settle().await;
    flow.slack.delete("D0ANN", &ts);
    flow.wait_until("the file is gone", || stored(&flow).is_empty())
        .await;
    // On Slack a file can be deleted and its message stay.
    let secret = slack_file("secret.txt", "text/plain", b"zebra-7f3a9c");
    let ts = show_on_slack(&flow, secret, "keep this, too");
    flow.wait_until("the file is stored", || stored(&flow).len() == 1)
        .await;
    flow.settle().await;
    let posts = flow.slack.posts("D0ANN");
    let post = posts.iter().find(|post| post.ts == ts).unwrap();
    flow.slack
        .delete_file(post.files[0]["id"].as_str().unwrap());
    flow.wait_until("the file is gone", || stored(&flow).is_empty())
        .await;
    let secret = flow
        .telegram
        .add_file("secret.txt", "text/plain", b"zebra-7f3a9c".to_vec());
    show_on_telegram(&flow, "document", secret, "keep this");
    flow.wait_until("the file is stored", || stored(&flow).len() == 1)
        .await;
    flow.settle().await;
    let person = format!("team/{ANN}");
    let told = flow
        .cli(&["erase", "--person", &person, "--yes", "--verify"])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(stored(&flow).is_empty(), "{told:?}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_shown_shortly_before_the_question_is_read_too_and_only_there() {
    let flow = FlowBuilder::default().config(WITH_IMAGES).start().await;
    let ask = |text: &str| flow.slack.say("D0ANN", "ann", text);
    // In another room.
    let elsewhere = flow
        .slack
        .add_file(slack_file("other.md", "text/markdown", b"giraffe"));
    flow.slack.post_with(UserPost {
        channel: "#general".to_owned(),
        user: "ann".to_owned(),
        text: "@vocative see there".to_owned(),
        files: vec![elsewhere],
        ..UserPost::default()
    });
    flow.settle().await;
    show_on_slack(
        &flow,
        slack_file("notes.md", "text/markdown", b"zebra"),
        "look at this",
    );
    flow.wait_until("the file is stored", || !stored(&flow).is_empty())
        .await;
    flow.settle().await;
    show_on_slack(&flow, slack_file("shot.png", "image/png", PNG), "and this");
    flow.settle().await;
    let asked = flow.model.requests().len();
    ask("what do you think?");
    flow.wait_for_model(asked + 1).await;
    let content = last_content(&flow, asked);
    let said = content[0]["text"].as_str().unwrap();
    let expected = "what do you think?\n\n[earlier picture shot.png: shown with this message]\n\n[earlier \
                    file notes.md]\n```\nzebra\n```";
    assert!(said.ends_with(expected), "{said}");
    assert!(!content.to_string().contains("giraffe"), "{content}");
    let url = content[1]["image_url"]["url"].as_str().unwrap_or_default();
    assert!(url.starts_with("data:image/png;base64,"), "{content}");
    flow.settle().await;
    // After five more turns it is a name in its own message.
    for number in 0..3 {
        ask(&format!("more {number}"));
        flow.settle().await;
    }
    let last = flow.model.requests().len() - 1;
    let said = last_text(&flow, last);
    assert!(!said.contains("zebra"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_smaller_limit_does_not_lose_what_is_stored() {
    let mut flow = FlowBuilder::default()
        .config("[files]\nmax_bytes = 1000\n")
        .start()
        .await;
    show_on_slack(&flow, slack_file("a.md", "text/markdown", b"a zebra"), "a?");
    flow.wait_for_model(1).await;
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    flow.reconfigure("max_bytes = 1000", "max_bytes = 3");
    flow.start().await;
    flow.slack.say("D0ANN", "ann", "again?");
    flow.wait_for_model(2).await;
    let said = last_text(&flow, 1);
    assert!(said.contains("a zebra"), "{said}");
    assert_eq!(stored(&flow).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_refused_for_want_of_a_scope_is_had_after_the_next_start() {
    let mut flow = Flow::start_default().await;
    flow.slack
        .change_world(|world| world.scopes.retain(|scope| scope != "files:read"));
    show_on_slack(&flow, slack_file("a.md", "text/markdown", b"a zebra"), "a?");
    flow.wait_for_status("the file is refused", |status| {
        status["files"]["refused"] == 1
    })
    .await;
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    flow.slack
        .change_world(|world| world.scopes.push("files:read".to_owned()));
    flow.start().await;
    flow.wait_until("the file is stored", || stored(&flow).len() == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_which_the_message_says_nothing_is_asked_about() {
    let flow = Flow::start_default().await;
    let notes = slack_file("notes.md", "text/markdown", b"zebra");
    let id = flow.slack.add_file(notes)["id"].clone();
    let stub = json!({"id": id, "mode": "file_access", "file_access": "check_file_info"});
    flow.slack.post_with(UserPost {
        channel: "D0ANN".to_owned(),
        user: "ann".to_owned(),
        text: "what is it?".to_owned(),
        files: vec![stub],
        ..UserPost::default()
    });
    flow.wait_for_model(1).await;
    let expected = "Ann: [file notes.md] what is it?\n\n[file notes.md]\n```\nzebra\n```";
    assert_eq!(last_text(&flow, 0), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voice_note_is_written_down_answered_and_found() {
    let mut flow = FlowBuilder::default().prepare().await;
    let further = format!(
        "[transcription]\nbase_url = \"{}\"\nmodel = \"loopback-ear\"\napi_key = \"env:FLOW_MODEL_KEY\"\n",
        flow.model.openai_url()
    );
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    std::fs::write(flow.config_path(), format!("{text}\n{further}")).unwrap();
    flow.start().await;
    flow.model.enqueue_transcript(Err(503));
    flow.model.enqueue_transcript(Ok("where is the zebra"));
    let mut note = flow
        .telegram
        .add_file("v.oga", "audio/ogg", b"OggS zebra".to_vec());
    note["duration"] = json!(3);
    let mut extra = Map::new();
    extra.insert("voice".to_owned(), note);
    flow.telegram.send_with(UserMessage {
        chat: ANN,
        user: ANN,
        extra,
        ..UserMessage::default()
    });
    flow.wait_for_model(1).await;
    let said = last_text(&flow, 0);
    assert!(
        said.starts_with("Ann: [voice") && said.ends_with("] where is the zebra"),
        "{said}"
    );
    flow.settle().await;
    let notes = flow.model.voice_notes();
    assert_eq!(notes.len(), 2);
    assert_eq!(
        notes[0]["file"],
        json!({"name": "voice.ogg", "type": "audio/ogg", "bytes": 10})
    );
    assert_eq!(notes[0]["model"], "loopback-ear");
    let conversation = flow.conversation_id(&ANN.to_string(), None).await;
    let search = ["conversations", "search", &conversation, "zebra"];
    let found = flow.cli(&search).await;
    assert!(found.stdout.contains("where is the zebra"), "{found:?}");
    assert!(!flow.log().contains("zebra") && !flow.log().contains("sk-flow"));
}

/// Voice notes of Ann's, so many.
fn say_by_voice(flow: &Flow, notes: i64) {
    for number in 0..notes {
        let said = format!("OggS zebra {number}");
        let note = flow
            .telegram
            .add_file("v.oga", "audio/ogg", said.into_bytes());
        let mut extra = Map::new();
        extra.insert("voice".to_owned(), note);
        flow.telegram.send_with(UserMessage {
            chat: ANN,
            user: ANN,
            extra,
            ..UserMessage::default()
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn voice_notes_wait_for_an_account_that_is_refused_and_are_written_down_once_it_is_not() {
    let mut flow = FlowBuilder::default().prepare().await;
    let further = format!(
        "[files]\nwait_s = 0\n[transcription]\nbase_url = \"{}\"\nmodel = \"loopback-ear\"\napi_key = \"env:FLOW_MODEL_KEY\"\n",
        flow.model.openai_url()
    );
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    std::fs::write(flow.config_path(), format!("{text}\n{further}")).unwrap();
    flow.start().await;
    // As many as may be under way when the first is refused.
    for _ in 0..2 {
        flow.model.enqueue_transcript(Err(401));
    }
    say_by_voice(&flow, 4);
    flow.wait_for_status("voice notes are held", |status| {
        status["models"][0]["model"] == "voice-notes" && status["models"][0]["state"] == "held"
    })
    .await;
    flow.settle().await;
    let asked = flow.model.voice_notes().len();
    assert!((1..=2).contains(&asked), "{asked}");
    let status = flow.cli(&["status"]).await;
    assert_eq!(status.status, Some(1), "{status:?}");
    assert!(
        status.stdout.contains("agents release voice-notes"),
        "{status:?}"
    );
    // The account is refused once more at a start, and then not.
    if asked == 2 {
        flow.model.enqueue_transcript(Err(403));
    }
    assert_eq!(flow.stop().await, Some(0));
    flow.start().await;
    flow.wait_until("one note tries at the start", || {
        flow.model.voice_notes().len() == 3.max(asked + 1)
    })
    .await;
    flow.settle().await;
    assert_eq!(flow.model.voice_notes().len(), 3, "one at a time");
    for _ in 0..4 {
        flow.model.enqueue_transcript(Ok("a tame zebra"));
    }
    let released = flow.cli(&["agents", "release", "voice-notes"]).await;
    assert_eq!(released.status, Some(0), "{released:?}");
    flow.wait_until("all notes are written down", || {
        flow.model.voice_notes().len() == 7
    })
    .await;
    let is_over = |status: &Value| status["models"].as_array().is_none_or(Vec::is_empty);
    flow.wait_for_status("nothing is held", is_over).await;
}

/// Four files of a channel at once; those of the other channel go on meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_platform_whose_files_stand_still_keeps_no_other_one_waiting() {
    let flow = FlowBuilder::default()
        .config("[files]\nwait_s = 20\n")
        .start()
        .await;
    for _ in 0..4 {
        let fault = CallFault::Latency(60_000);
        flow.slack.faults().next("files-pri", fault);
    }
    for number in 0..6 {
        let text = format!("slow zebra {number}");
        let slow = slack_file("s.txt", "text/plain", text.as_bytes());
        let file = flow.slack.add_file(slow);
        flow.slack.post_with(UserPost {
            channel: "#general".to_owned(),
            user: "ann".to_owned(),
            text,
            files: vec![file],
            ..UserPost::default()
        });
    }
    let waits = |status: &Value| status["files"]["waiting"] == 6;
    flow.wait_for_status("all are queued", waits).await;
    let quick = flow
        .telegram
        .add_file("q.md", "text/markdown", b"a quick zebra".to_vec());
    show_on_telegram(&flow, "document", quick, "what is it?");
    flow.wait_for_model(1).await;
    assert!(last_text(&flow, 0).contains("a quick zebra"));
    // The fifth and the sixth were not asked for: nothing would have held them up.
    assert_eq!(stored(&flow).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_show_what_is_being_fetched_and_a_cancelled_file_is_only_named() {
    let flow = FlowBuilder::default()
        .config("[files]\nwait_s = 40\n")
        .start()
        .await;
    flow.wait_for_no_job().await;
    flow.slack
        .faults()
        .next("files-pri", CallFault::Latency(120_000));
    show_on_slack(
        &flow,
        slack_file("s.txt", "text/plain", b"slow zebra"),
        "what is it?",
    );
    flow.wait_for_status("it is being fetched", |status| {
        let jobs = status["jobs"].as_array().unwrap().iter();
        jobs.filter(|job| job["kind"] == "fetch-file" && job["state"] == "leased")
            .count()
            == 1
    })
    .await;
    let jobs = flow.cli_json(&["jobs", "list"]).await;
    assert_eq!(jobs[0]["kind"], "fetch-file");
    assert_eq!(jobs[0]["channel"], "acme");
    let id = jobs[0]["id"].to_string();
    let refused = flow.cli(&["jobs", "retry", &id]).await;
    assert_eq!(refused.status, Some(1), "{refused:?}");
    let told = flow.cli(&["jobs", "cancel", &id]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.wait_for_model(1).await;
    assert!(
        last_text(&flow, 0).contains("[file s.txt: not loaded"),
        "{}",
        last_text(&flow, 0)
    );
    flow.wait_for_no_job().await;
}
