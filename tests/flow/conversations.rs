//! Conversations as operators see them, beside the daemon and without it.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::WireLog;

use crate::harness::{Flow, FlowBuilder};

const PRIVATE: i64 = TelegramWorld::ANN;

fn named<'a>(listed: &'a [Value], name: &str) -> Option<&'a Value> {
    listed.iter().find(|view| view["name"] == name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_named_archived_and_found_with_and_without_a_daemon() {
    let mut flow = Flow::start_default().await;
    flow.model.enqueue(ModelReply::text("At three."));
    let question = flow
        .slack
        .say("#general", "ann", "@vocative when is the deploy?");
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    let listed = flow.conversations().await;
    let thread = listed
        .iter()
        .find(|view| view["scope"] == "thread")
        .unwrap();
    let words = "@Vocative when is the deploy?";
    assert_eq!(
        thread["title"].as_str().unwrap().to_lowercase(),
        words.to_lowercase()
    );
    assert_eq!(thread["source"]["channel"], "acme");
    assert_eq!(thread["source"]["platform"], "slack");
    let id = thread["id"].as_str().unwrap().to_owned();

    for is_running in [true, false] {
        if !is_running {
            assert_eq!(flow.stop().await, Some(0));
        }
        let told = flow
            .cli(&["conversations", "title", &id, "Deploy of\nMay"])
            .await;
        assert!(
            told.stdout.ends_with("is now called Deploy of May\n"),
            "{told:?}"
        );
        let told = flow.cli(&["conversations", "archive", &id]).await;
        assert_eq!(told.status, Some(0), "{told:?}");
        assert!(
            flow.conversations()
                .await
                .iter()
                .all(|view| view["id"] != id.as_str())
        );
        let all = flow.cli_json(&["conversations", "list", "--all"]).await;
        let all = all.as_array().unwrap();
        let found = all.iter().find(|view| view["id"] == id.as_str()).unwrap();
        assert_eq!(found["title"], "Deploy of May");
        assert_eq!(found["has_own_title"], true);
        assert!(found["archived_at_ms"].is_i64(), "{found}");
        let told = flow.cli(&["conversations", "unarchive", &id]).await;
        assert_eq!(told.status, Some(0), "{told:?}");
        let told = flow.cli(&["conversations", "title", &id, "--clear"]).await;
        assert!(
            told.stdout.to_lowercase().contains(&words.to_lowercase()),
            "{told:?}"
        );
        // The bot's own mention has its name, also when nobody can be asked for it.
        let shown = flow.cli(&["conversations", "show", "acme/#general"]).await;
        assert!(!shown.stdout.contains("U0VOCATIVE"), "{shown:?}");
        assert!(shown.stdout.contains("participants  "), "{shown:?}");
        let prompt = flow.cli(&["prompt", &id]).await;
        assert!(!prompt.stdout.contains("U0VOCATIVE"), "{prompt:?}");
        let found = flow
            .cli(&["conversations", "search", "acme/#general", "deploy"])
            .await;
        assert!(!found.stdout.contains("U0VOCATIVE"), "{found:?}");
    }
    let told = flow
        .cli(&["conversations", "archive", "acme/#general"])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.start().await;
    assert!(named(&flow.conversations().await, "acme/#general").is_none());
    flow.slack.say("#general", "ann", "and something new");
    flow.settle().await;
    let listed = flow.conversations().await;
    assert!(named(&listed, "acme/#general").is_some(), "{listed:?}");
}

/// What a conversation is called, as `vocative conversations` shows it.
async fn called(flow: &Flow, id: &str) -> String {
    let listed = flow.conversations().await;
    let found = listed.iter().find(|view| view["id"] == id).unwrap();
    found["title"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_titles_a_thread_on_slack_and_an_operators_title_is_for_admins() {
    let flow = FlowBuilder::default()
        .slack("admins = [\"U0BOB\"]")
        .start()
        .await;
    let root = flow.slack.say("#general", "ann", "@vocative zebra?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    let general = "C0GENERAL";
    let thread = flow.conversation_id(general, Some(&root)).await;
    let say = |who: &str, text: &str| flow.slack.say_in("#general", who, &root, text);

    say("ann", "@vocative title: **Zebras** of `May`");
    flow.told_privately("U0ANN", "has that title now").await;
    assert_eq!(called(&flow, &thread).await, "Zebras of May");
    say("bob", "@vocative title");
    flow.told_privately("U0BOB", "is called: Zebras of May")
        .await;
    let told = flow
        .cli(&["conversations", "title", &thread, "Animals"])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    say("ann", "@vocative title: Mine");
    flow.told_privately("U0ANN", "An operator gave").await;
    assert_eq!(called(&flow, &thread).await, "Animals");
    say("bob", "@vocative title: -");
    flow.told_privately("U0BOB", "no title of its own any more")
        .await;
    let words = called(&flow, &thread).await.to_lowercase();
    assert_eq!(words, "@vocative zebra?");

    // Not behind a colon, it is a question; a slash command names the channel.
    say("ann", "@vocative title of the book?");
    flow.wait_for_model(2).await;
    flow.slack
        .slash_command("#general", "U0ANN", "/vocative", "title The yard");
    flow.settle().await;
    let room = flow.conversation_id(general, None).await;
    assert_eq!(called(&flow, &room).await, "The yard");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_persons_title_on_telegram_is_gone_once_they_have_all_forgotten() {
    let flow = Flow::start_default().await;
    let question = flow.telegram.say(PRIVATE, PRIVATE, "when is the deploy?");
    flow.telegram_reply(PRIVATE, question).await;
    let given = flow
        .telegram
        .say(PRIVATE, PRIVATE, "/title Deploy\nof zebra-7f3a9c!");
    let told = flow.telegram_reply(PRIVATE, given).await;
    assert!(told.text.contains("has that title now"), "{}", told.text);
    let id = flow.conversation_id(&PRIVATE.to_string(), None).await;
    assert_eq!(called(&flow, &id).await, "Deploy of zebra-7f3a9c!");
    flow.telegram.duplicate_update();
    flow.settle().await;
    let answers = flow.telegram_posts(PRIVATE);
    let titled = answers.iter().filter(|text| text.contains("that title"));
    assert_eq!(titled.count(), 1);
    let sure = flow.telegram.say(PRIVATE, PRIVATE, "/forget me yes");
    flow.telegram_reply(PRIVATE, sure).await;
    flow.wait_until("the title is gone", || {
        flow.rows("SELECT count(*) FROM conversations WHERE own_title IS NOT NULL") == 0
    })
    .await;
    assert!(!called(&flow, &id).await.contains("zebra"));
}

/// An agent whose conversations are titled by a model.
async fn titling() -> Flow {
    FlowBuilder::default()
        .agent("vocative", "titles = true\nrecall = \"off\"\ntools = []")
        .start()
        .await
}

/// Asks in Ann's private chat and waits for each answer. `then` = what the model says to the request behind these.
async fn asked(flow: &Flow, questions: &[&str], then: Option<ModelReply>) {
    for question in questions {
        let answer = format!("About {question}.");
        flow.model.enqueue(ModelReply::text(&answer));
    }
    if let Some(then) = then {
        flow.model.enqueue(then);
    }
    for question in questions {
        let asked = flow.telegram.say(PRIVATE, PRIVATE, question);
        flow.telegram_reply(PRIVATE, asked).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_titles_a_private_chat_once_in_one_harmless_line() {
    let flow = titling().await;
    let said = format!(
        "# **Striped**\n\u{202E}`animals` {}",
        "of Africa ".repeat(40)
    );
    let made = ModelReply::text(&said);
    asked(&flow, &["zebras", "okapis"], Some(made)).await;
    let id = flow.conversation_id(&PRIVATE.to_string(), None).await;
    flow.wait_until("the chat is titled", || {
        flow.rows("SELECT count(*) FROM conversations WHERE own_title_from = 'model'") == 1
    })
    .await;
    let title = called(&flow, &id).await;
    assert!(title.starts_with("Striped animals of Africa"), "{title}");
    assert!(title.chars().count() <= 60 && !title.contains('\n'));
    let request = flow.model_prompt(2);
    assert!(request[1].1.contains("person: \"okapis\""), "{request:?}");
    assert!(request[1].1.contains("agent: \"About zebras.\""));
    assert_eq!(flow.rows("SELECT summary_tokens > 0 FROM usage_days"), 1);

    // It is made of what Ann said, goes with that, and is not made again.
    asked(&flow, &["gnus"], None).await;
    let sure = flow.telegram.say(PRIVATE, PRIVATE, "/forget me yes");
    flow.telegram_reply(PRIVATE, sure).await;
    flow.wait_until("the title is gone", || {
        flow.rows("SELECT count(*) FROM conversations WHERE own_title IS NOT NULL") == 0
    })
    .await;
    asked(&flow, &["emus", "ibises"], None).await;
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 6);
    assert!(!called(&flow, &id).await.contains("Striped"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_fails_at_a_title_holds_up_no_answer_and_a_persons_title_stays() {
    let flow = titling().await;
    let refused = ModelReply::status(400);
    asked(&flow, &["zebras", "okapis"], Some(refused)).await;
    let failed = "SELECT count(*) FROM jobs WHERE kind = 'title-conversation' AND attempts = 1 AND cause IS NOT NULL";
    flow.wait_until("the attempt failed", || flow.rows(failed) == 1)
        .await;
    asked(&flow, &["gnus"], None).await;
    let given = flow.telegram.say(PRIVATE, PRIVATE, "/title Animals");
    flow.telegram_reply(PRIVATE, given).await;
    let listed = flow.cli_json(&["jobs", "list"]).await;
    let mut jobs = listed.as_array().unwrap().iter();
    let job = jobs.find(|job| job["kind"] == "title-conversation");
    let job = job.unwrap()["id"].to_string();
    let told = flow.cli(&["jobs", "retry", &job]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.wait_until("the job is done", || {
        flow.rows("SELECT count(*) FROM jobs WHERE kind = 'title-conversation'") == 0
    })
    .await;
    assert_eq!(flow.model.requests().len(), 4);
    let id = flow.conversation_id(&PRIVATE.to_string(), None).await;
    assert_eq!(called(&flow, &id).await, "Animals");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_that_failed_waits_as_a_job_through_a_kill() {
    let settings = "tools = []\nrecall = \"off\"\nsummary_model = \"folds\"\n[agents.vocative.prompt]\n\
                    rolling_summary_threshold = 4\npreserve_recent_turns = 1";
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let folding = ModelServer::start(anywhere, WireLog::new()).await.unwrap();
    let model = format!(
        "[models.folds]\nprovider = \"openai\"\nmodel = \"loopback-folds\"\nbase_url = \"{}\"\n\
         api_key = \"env:FLOW_MODEL_KEY\"\n",
        folding.openai_url()
    );
    let mut flow = FlowBuilder::default()
        .agent("vocative", settings)
        .config(&model)
        .start()
        .await;
    folding.enqueue(ModelReply::text("That is no summary."));
    asked(&flow, &["zebras", "okapis", "gnus"], None).await;
    let job = flow.wait_for_job("JSON").await;
    assert_eq!(job["kind"], "summarize-conversation", "{job}");
    assert_eq!(
        (&job["state"], &job["attempts"]),
        (&json!("pending"), &json!(1))
    );
    flow.kill().await;
    flow.start().await;
    assert_eq!(flow.wait_for_job("JSON").await, job);
    assert_eq!(folding.requests().len(), 1);

    let summary = json!({"summary": "Zebras were asked about.", "facts": []});
    folding.enqueue(ModelReply::text(&summary.to_string()));
    let told = flow.cli(&["jobs", "retry", &job["id"].to_string()]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.wait_until("the job is done", || {
        flow.rows("SELECT count(*) FROM jobs WHERE kind = 'summarize-conversation'") == 0
    })
    .await;
    assert_eq!(flow.status().await["summaries"]["current"], 1);
}

/// A private chat in which a tool was called and older turns were folded.
async fn a_talk_with_tools_and_a_summary() -> Flow {
    let settings = "tools = [\"conversation_search\"]\nsummary_model = \"offline\"\n[agents.vocative.prompt]\n\
                    rolling_summary_threshold = 4\npreserve_recent_turns = 1";
    let flow = FlowBuilder::default()
        .agent("vocative", settings)
        .start()
        .await;
    let search = json!({"query": "deploy"});
    flow.model.enqueue(ModelReply::tool_call(
        "call_1",
        "conversation_search",
        search,
    ));
    flow.model.enqueue(ModelReply::text("At three."));
    let message = flow.telegram.say(PRIVATE, PRIVATE, "when is the deploy?");
    flow.telegram_reply(PRIVATE, message).await;
    for number in 0..4 {
        flow.model
            .enqueue(ModelReply::text(&format!("Yes {number}.")));
        let message = flow
            .telegram
            .say(PRIVATE, PRIVATE, &format!("sure {number}?"));
        flow.telegram_reply(PRIVATE, message).await;
    }
    flow.settle().await;
    let is_folded = |status: &Value| status["summaries"]["current"].as_u64() > Some(0);
    flow.wait_for_status("older turns are folded", is_folded)
        .await;
    flow
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timeline_has_turns_runs_tool_calls_posts_and_summaries_in_one_order() {
    let flow = a_talk_with_tools_and_a_summary().await;
    let id = flow.conversation_id(&PRIVATE.to_string(), None).await;

    let shown = flow
        .cli_json(&["conversations", "show", &id, "--timeline"])
        .await;
    let timeline = shown["timeline"].as_array().unwrap();
    let kind = |entry: &Value| {
        let turn = |seq: &Value| {
            let turns = shown["turns"].as_array().unwrap();
            let found = turns.iter().find(|turn| turn["seq"] == *seq).unwrap();
            found["kind"].as_str().unwrap().to_owned()
        };
        match entry["entry"].as_str().unwrap() {
            "turn" => turn(&entry["of"]),
            other => other.to_owned(),
        }
    };
    let kinds: Vec<String> = timeline.iter().map(kind).collect();
    let first = [
        "message",
        "run",
        "tool_call",
        "tool_result",
        "message",
        "post",
        "message",
    ];
    assert_eq!(kinds[..first.len()], first, "{kinds:?}");
    assert!(kinds.contains(&"summary".to_owned()), "{kinds:?}");
    let flat = flow
        .cli_json(&["conversations", "show", &id, "--limit", "3"])
        .await;
    assert!(flat.get("timeline").is_none(), "{flat}");
    assert_eq!(flat["turns"].as_array().unwrap().len(), 3);
    let before = flat["older_before"].to_string();
    let told = flow
        .cli(&[
            "conversations",
            "show",
            &id,
            "--limit",
            "3",
            "--before",
            &before,
        ])
        .await;
    assert!(
        told.stdout.contains("There are older ones: --before"),
        "{told:?}"
    );
    let told = flow
        .cli(&["conversations", "show", &id, "--timeline"])
        .await;
    for word in ["   run  ", "  post  ", "folded  ", " calls: "] {
        assert!(told.stdout.contains(word), "{word:?} in {}", told.stdout);
    }
}

/// The prompt of a conversation as it is, without instructions, and that of its export.
async fn live_and_exported(flow: &Flow, id: &str, file: &str) -> [Vec<(String, String)>; 2] {
    let mut live = flow.prompt(&[id]).await;
    live.retain(|(role, _)| role != "system");
    let file = flow.directory().join(file);
    let file = file.to_str().unwrap();
    let told = flow
        .cli(&["conversations", "export", id, "--output", file])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let again = flow
        .cli(&["conversations", "export", id, "--output", file])
        .await;
    assert!(again.stderr.contains("is there already"), "{again:?}");
    // Nor is anything written through a name that somebody else has put there.
    let (other, target) = (format!("{file}.2"), format!("{file}.target"));
    std::os::unix::fs::symlink(&target, format!("{other}.partial")).unwrap();
    let through = flow
        .cli(&["conversations", "export", id, "--output", &other])
        .await;
    assert!(through.stderr.contains("is there already"), "{through:?}");
    assert!(!std::path::Path::new(&target).exists());
    let printed = flow.cli(&["conversations", "export", id]).await;
    assert_eq!(printed.stdout, std::fs::read_to_string(file).unwrap());
    let exported = flow
        .prompt(&["--transcript", file, "--agent", "vocative"])
        .await;
    [live, exported]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_prompt_of_an_export_is_the_prompt_of_the_conversation() {
    let mut flow = Flow::start_default().await;
    let question = flow
        .slack
        .say("#general", "ann", "@vocative ask @bob when\nand *where*?");
    flow.model
        .enqueue(ModelReply::text("At three.\n\n```\ncode\n```"));
    flow.slack_reply("#general", &question).await;
    flow.slack
        .say_in("#general", "bob", &question, "not for the bot");
    flow.model.enqueue(ModelReply::text("Really."));
    let further = flow
        .slack
        .say_in("#general", "bob", &question, "@vocative really?");
    flow.slack_post("#general", |post| post.text == "Really.")
        .await;
    flow.slack
        .edit("#general", &further, "<@U0VOCATIVE> really so?");
    let first = flow.telegram.say(PRIVATE, PRIVATE, "when is it?");
    flow.telegram_reply(PRIVATE, first).await;
    let reply = flow
        .telegram
        .reply(PRIVATE, PRIVATE, first, "I mean this one");
    flow.telegram_reply(PRIVATE, reply).await;
    flow.settle().await;
    let listed = flow.conversations().await;
    let thread = listed
        .iter()
        .find(|view| view["scope"] == "thread")
        .unwrap();
    let thread = thread["id"].as_str().unwrap().to_owned();
    let private = flow.conversation_id(&PRIVATE.to_string(), None).await;
    for is_running in [true, false] {
        if !is_running {
            assert_eq!(flow.stop().await, Some(0));
        }
        for (name, id) in [("thread", &thread), ("private", &private)] {
            let file = format!("{name}-{is_running}.jsonl");
            let [live, exported] = live_and_exported(&flow, id, &file).await;
            assert_eq!(exported, live, "{name}");
            assert!(live.len() >= 4, "{live:?}");
        }
        let args = ["conversations", "export", &thread, "--format", "markdown"];
        let told = flow.cli(&args).await;
        let days = told.stdout.matches("\n## ").count();
        assert!(
            told.stdout.starts_with("# ") && days >= 1,
            "{}",
            told.stdout
        );
        assert!(told.stdout.contains("not for the bot"), "{}", told.stdout);
        assert!(told.stdout.contains("*(edited)*"), "{}", told.stdout);
        assert!(!told.stdout.contains("U0VOCATIVE"), "{}", told.stdout);
    }
}
