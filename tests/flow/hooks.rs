//! Hooks: what takes words out, and who may stop a call or an answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use serde_json::{Value, json};
use vocative_sandbox::hooks::HookServer;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::orders::OrderServer;

use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";
const PARAMETERS: &str = r#"parameters = '{"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer"}, "to": {"type": "string"}}}'"#;

/// A flow whose agent may refund something, beside a server that its hooks are asked at.
struct Guarded {
    flow: Flow,
    shop: OrderServer,
    guard: HookServer,
}

async fn guarded(at: &str, more: &str) -> Guarded {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shop = OrderServer::start(anywhere).await.unwrap();
    let guard = HookServer::start(anywhere).await.unwrap();
    let (host, hooks) = (shop.addr(), guard.addr());
    let flow = FlowBuilder::default()
        .agent("vocative", "tools = [\"refund\", \"ask\"]\nhooks = [\"guard\", \"clean\"]")
        .config(&format!(
            "[tools.refund]\nkind = \"http\"\ndescription = \"Refunds it.\"\nmethod = \"POST\"\n\
             url = \"http://{host}/orders\"\nallow_private = [\"{host}\"]\napproval = \"never\"\n{PARAMETERS}\n\
             [tools.ask]\nkind = \"http\"\ndescription = \"Asks it.\"\nmethod = \"POST\"\nrepeatable = true\n\
             url = \"http://{hooks}/decide\"\nallow_private = [\"{hooks}\"]\n{PARAMETERS}\n\
             [hooks.guard]\nkind = \"http\"\nat = {at}\nurl = \"http://{hooks}/decide\"\n\
             allow_private = [\"{hooks}\"]\nbearer = \"file:guard.key\"\ntimeout_ms = 1500\n{more}"
        ))
        .prepare()
        .await;
    std::fs::write(flow.directory().join("guard.key"), "guard-secret").unwrap();
    let mut guarded = Guarded { flow, shop, guard };
    guarded.flow.start().await;
    guarded
}

/// What takes words out wherever a run's words are stored or sent.
const CLEAN: &str = "content = true\n[hooks.clean]\nkind = \"redact\"\nat = [\"before_model\", \"before_save\"]\n\
                     remove = [\"keys\", \"email\", \"cards\"]\npatterns = [\"EMP-[0-9]{6}\"]\n";

fn refund(amount: u32, to: &str) -> ModelReply {
    ModelReply::tool_call("call_1", "refund", json!({"amount": amount, "to": to}))
}

impl Guarded {
    async fn ask(&self, text: &str) -> String {
        let asked = self
            .flow
            .slack
            .say(GENERAL, "ann", &format!("@vocative {text}"));
        self.flow.slack_reply(GENERAL, &asked).await.text
    }

    /// What the model was sent last.
    fn sent(&self) -> String {
        self.flow.model.requests().pop().unwrap().body.to_string()
    }

    fn refunds(&self) -> Vec<Value> {
        self.shop
            .orders()
            .into_iter()
            .map(|order| order.body)
            .collect()
    }

    /// The timelines of all conversations.
    async fn timeline(&self) -> String {
        let mut all = String::new();
        for conversation in self.flow.conversations().await {
            let id = conversation["id"].as_str().unwrap();
            let args = ["conversations", "show", id, "--timeline"];
            all.push_str(&self.flow.cli(&args).await.stdout);
        }
        all
    }
}

/// Whether some file below a folder holds these bytes.
fn holds(folder: &Path, words: &str) -> bool {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.into_iter().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return holds(&path, words);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes
            .windows(words.len())
            .any(|part| part == words.as_bytes())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_that_are_taken_out_before_saving_are_in_no_byte_of_the_archive() {
    let mut it = guarded("[\"before_tool\"]", CLEAN).await;
    let key = format!("sk-proj-{}", "Zq7".repeat(12));
    // It says them in a call, hears them from a tool, and says them in its answer.
    it.flow.model.enqueue(refund(7, "carl.qx@mail.example"));
    it.flow
        .model
        .enqueue(ModelReply::tool_call("call_2", "ask", json!({"amount": 1})));
    it.guard.says(json!({"verdict": "pass"}));
    it.guard.says(json!({"verdict": "pass"}));
    it.guard
        .says(json!({"note": "Dora is dora.qx@mail.example, EMP-778899"}));
    let answer = format!("Use {key}, or write to Finn: finn.qx@mail.example.");
    it.flow.model.enqueue(ModelReply::text(&answer));
    let told = it.ask("refund 7, my card is 4111 1111 1111 1111").await;
    assert_eq!(
        told,
        "Use [key removed], or write to Finn: [e-mail address removed]."
    );
    assert_eq!(
        it.refunds(),
        [json!({"amount": 7, "to": "[e-mail address removed]"})]
    );
    // The model was sent none of them, also not what a person wrote.
    let sent = it.sent();
    assert!(sent.contains("my card is [card number removed]"), "{sent}");
    assert!(
        sent.contains("Dora is [e-mail address removed], [removed]"),
        "{sent}"
    );
    let timeline = it.timeline().await;
    assert!(
        timeline.contains("clean at after_tool (step 2): redact, 2 places"),
        "{timeline}"
    );
    it.flow.settle().await;
    let data = it.flow.directory().join("data");
    for killed in [false, true] {
        for words in [&key, "carl.qx@", "dora.qx@", "EMP-778899", "finn.qx@"] {
            assert!(!holds(&data, words), "{words}, killed: {killed}");
        }
        if !killed {
            it.flow.kill().await;
        }
    }
    // What people write is the room's, and stays as they wrote it.
    assert!(holds(&data, "4111 1111 1111 1111"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_made_only_as_a_hook_allows_it() {
    let mut it = guarded("[\"before_tool\"]", CLEAN).await;
    let table = [
        (
            json!({"verdict": "deny", "reason": "not on a Monday"}),
            "guard does not allow it: not on a Monday",
        ),
        (
            json!({"verdict": "narrow", "arguments": {"amount": 500, "to": "x"}}),
            "gave no word that holds",
        ),
        (
            json!({"verdict": "redact", "text": "x"}),
            "gave no word that holds",
        ),
        (json!({"words": "sure"}), "gave no word that holds"),
    ];
    for (verdict, told) in table {
        it.guard.says(verdict.clone());
        it.flow.model.enqueue(refund(120, "x"));
        it.flow.model.enqueue(ModelReply::text("It is as it is."));
        it.ask("refund 120").await;
        assert!(it.sent().contains(told), "{verdict}: {}", it.sent());
    }
    it.guard.fails(500);
    it.flow.model.enqueue(refund(120, "x"));
    it.flow.model.enqueue(ModelReply::text("It is as it is."));
    it.ask("refund 120").await;
    assert!(it.sent().contains("gave no word that holds"));
    it.guard.hangs();
    it.flow.model.enqueue(refund(120, "x"));
    it.flow.model.enqueue(ModelReply::text("It is as it is."));
    it.ask("refund 120").await;
    assert!(it.sent().contains("gave no word that holds"));
    assert_eq!(it.refunds(), [Value::Null; 0]);

    it.guard
        .says(json!({"verdict": "narrow", "arguments": {"amount": 50, "to": "x"}}));
    it.flow.model.enqueue(refund(120, "x"));
    it.flow
        .model
        .enqueue(ModelReply::text("Fifty are refunded."));
    assert_eq!(it.ask("refund 120").await, "Fifty are refunded.");
    assert_eq!(it.refunds(), [json!({"amount": 50, "to": "x"})]);

    let asked = it.guard.asked();
    let first = &asked[0];
    assert_eq!(first.authorization.as_deref(), Some("Bearer guard-secret"));
    assert_eq!(first.event["arguments"], json!({"amount": 120, "to": "x"}));
    assert_eq!(first.event["person"], "U0ANN");
    let status = it.flow.status().await;
    let counts = status["hooks"].as_array().unwrap();
    let of = |verdict: &str| {
        let count = counts
            .iter()
            .find(|it| it["hook"] == "guard" && it["verdict"] == verdict);
        count.map_or(Value::Null, |it| it["times"].clone())
    };
    assert_eq!(
        (of("deny"), of("failed"), of("narrow")),
        (json!(1), json!(5), json!(1))
    );
    assert!(
        it.timeline()
            .await
            .contains("guard at before_tool (step 1): ")
    );
    assert_eq!(it.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_wants_a_person_is_asked_once_whatever_is_killed() {
    let mut it = guarded("[\"before_tool\"]", CLEAN).await;
    it.guard.says(json!({"verdict": "ask", "reason": "large"}));
    // Another word would be another outcome.
    it.guard
        .says(json!({"verdict": "deny", "reason": "asked twice"}));
    it.flow.model.enqueue(refund(120, "x"));
    let asked = it.flow.slack.say(GENERAL, "ann", "@vocative refund 120");
    let card = it.flow.card(&asked).await;
    assert!(it.refunds().is_empty());
    it.flow.kill().await;
    it.flow.start().await;
    it.flow.model.enqueue(ModelReply::text("It is refunded."));
    it.flow.press("ann", &card, "Approve");
    it.flow.outcome(&card, "Approved").await;
    let told = it
        .flow
        .slack_post(GENERAL, |post| post.text == "It is refunded.")
        .await;
    assert!(told.is_reply_in(&asked));
    assert_eq!(it.refunds().len(), 1);
    assert_eq!(it.guard.asked().len(), 1);
    assert_eq!(it.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_posted_only_as_a_hook_allows_it() {
    let mut it = guarded("[\"before_post\"]", CLEAN).await;
    let table = [
        (json!({"verdict": "pass"}), "The margin is 12 %."),
        (
            json!({"verdict": "redact", "text": "The margin is ours."}),
            "The margin is ours.",
        ),
        (
            json!({"verdict": "deny", "reason": "figures stay inside"}),
            "I have an answer, and may not post it here: figures stay inside",
        ),
        (
            json!({"verdict": "ask"}),
            "I have an answer, and may not post it here: what checks my answers did not do so",
        ),
    ];
    for (verdict, told) in table {
        it.guard.says(verdict);
        it.flow
            .model
            .enqueue(ModelReply::text("The margin is 12 %."));
        assert_eq!(it.ask("how much is it?").await, told);
    }
    it.guard.hangs();
    it.flow
        .model
        .enqueue(ModelReply::text("The margin is 12 %."));
    assert!(
        it.ask("how much is it?")
            .await
            .starts_with("I have an answer, and may not")
    );
    let first = &it.guard.asked()[0].event;
    assert_eq!(
        (&first["point"], &first["text"]),
        (&json!("before_post"), &json!("The margin is 12 %."))
    );
    // One was said; the others were neither posted nor shown while they were written.
    let shown = it.flow.slack_posts(GENERAL);
    assert_eq!(
        shown
            .iter()
            .filter(|(_, text)| text.contains("12 %"))
            .count(),
        1
    );
    assert_eq!(it.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_stopped_or_noted_before_any_model_sees_it() {
    let mut it = guarded("[\"before_run\"]", CLEAN).await;
    it.guard
        .says(json!({"verdict": "deny", "reason": "payroll is not for chats"}));
    let told = it.ask("what does Bob earn?").await;
    assert_eq!(told, "I may not answer this: payroll is not for chats");
    assert_eq!(it.flow.model.requests().len(), 0);
    let first = it.guard.asked().remove(0).event;
    assert_eq!(first["point"], "before_run");
    let text = first["text"].as_str().unwrap();
    assert!(text.contains("what does Bob earn?"), "{text}");

    // What it notes is told in every step, and it is asked once.
    it.guard
        .says(json!({"verdict": "note", "text": "Ann is a premium customer."}));
    it.flow.model.enqueue(refund(7, "x"));
    it.flow.model.enqueue(ModelReply::text("It is refunded."));
    assert_eq!(it.ask("refund 7").await, "It is refunded.");
    for request in it.flow.model.requests() {
        let sent = request.body.to_string();
        assert!(sent.contains("Ann is a premium customer."), "{sent}");
    }
    assert_eq!(it.guard.asked().len(), 2);
    // Nothing is protected by it: without its word people are answered.
    it.guard.fails(500);
    it.flow.model.enqueue(ModelReply::text("Hello."));
    assert_eq!(it.ask("hi").await, "Hello.");
    assert!(!it.sent().contains("premium"), "{}", it.sent());
    assert!(it.timeline().await.contains("guard at before_run: deny"));
    assert_eq!(it.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_gave_is_shown_only_as_a_hook_allows_it() {
    let mut it = guarded("[\"after_tool\"]", CLEAN).await;
    let table = [
        (json!({"verdict": "pass"}), "\\\"order\\\""),
        (
            json!({"verdict": "redact", "text": "An order was made."}),
            "An order was made.",
        ),
        (
            json!({"verdict": "deny", "reason": "not for models"}),
            "what the call gave is withheld by the check guard: not for models",
        ),
        (
            json!({"verdict": "ask"}),
            "the check guard gave no word that holds, and nothing is shown without it",
        ),
    ];
    let times = table.len();
    for (verdict, told) in table {
        it.guard.says(verdict.clone());
        it.flow.model.enqueue(refund(7, "x"));
        it.flow.model.enqueue(ModelReply::text("So it is."));
        it.ask("refund 7").await;
        assert!(it.sent().contains(told), "{verdict}: {}", it.sent());
    }
    // Whatever is told of them, they were made, each once.
    assert_eq!(it.refunds().len(), times);
    let first = &it.guard.asked()[0].event;
    assert_eq!(
        (&first["tool"], &first["is_error"]),
        (&json!("refund"), &json!(false))
    );
    assert_eq!(it.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_stopped_in_the_middle_of_a_run() {
    let mut it = guarded("[\"before_model\"]", CLEAN).await;
    it.guard.says(json!({"verdict": "pass"}));
    it.guard
        .says(json!({"verdict": "deny", "reason": "enough of it"}));
    it.flow.model.enqueue(refund(7, "x"));
    let told = it.ask("refund 7").await;
    assert_eq!(told, "I may not answer this: enough of it");
    assert_eq!(it.flow.model.requests().len(), 1);
    assert_eq!(it.refunds().len(), 1);
    let asked = it.guard.asked();
    let of = |n: usize| {
        let event: &Value = &asked[n].event;
        (event["step"].clone(), event["text"].to_string())
    };
    assert_eq!(asked.len(), 2);
    assert!(of(0).1.contains("refund 7"), "{:?}", of(0));
    assert_eq!(of(1).0, json!(2));
    assert!(of(1).1.contains("order"), "{:?}", of(1));
    assert_eq!(it.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_not_kept_is_nowhere() {
    let mut it = guarded("[\"after_model\"]", CLEAN).await;
    let table = [
        (json!({"verdict": "pass"}), "The zebra is fine."),
        (
            json!({"verdict": "redact", "text": "It is fine."}),
            "It is fine.",
        ),
        (
            json!({"verdict": "deny", "reason": "no animals"}),
            "I have an answer, and may not post it here: no animals",
        ),
        (
            json!({"verdict": "note", "text": "x"}),
            "I have an answer, and may not post it here: what checks my answers did not do so",
        ),
    ];
    for (n, (verdict, told)) in table.into_iter().enumerate() {
        let animal = ["zebra", "quagga", "okapi", "gnu"][n];
        it.guard.says(verdict);
        it.flow
            .model
            .enqueue(ModelReply::text(&format!("The {animal} is fine.")));
        assert_eq!(it.ask("how is it?").await, told);
    }
    it.flow.settle().await;
    let data = it.flow.directory().join("data");
    let kept = ["zebra", "quagga", "okapi", "gnu is"].map(|words| holds(&data, words));
    assert_eq!(kept, [true, false, false, false]);
    assert_eq!(it.flow.stop().await, Some(0));
}

/// What a hook is told of what ended.
const TOLD: &str =
    "[hooks.clean]\nkind = \"redact\"\nat = [\"before_save\"]\nremove = [\"keys\"]\n";

impl Guarded {
    /// What it was told at a point, once it was told that often.
    async fn told(&self, point: &str, times: usize) -> Vec<Value> {
        let told = || -> Vec<Value> {
            let told = self.guard.asked().into_iter().map(|asked| asked.event);
            told.filter(|event| event["point"] == point).collect()
        };
        let is_told = || told().len() >= times;
        let what = format!("the hook is told {times} times of {point}");
        self.flow.wait_until(&what, is_told).await;
        told()
    }

    /// The jobs that are to tell a hook something.
    async fn jobs(&self) -> Vec<Value> {
        let jobs = self.flow.cli_json(&["jobs", "list"]).await;
        let jobs = jobs.as_array().unwrap().iter();
        jobs.filter(|job| job["kind"] == "tell-hook")
            .cloned()
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_is_told_with_one_id_whatever_fails_hangs_or_is_killed() {
    let mut it = guarded("[\"run_ended\", \"approval_decided\"]", TOLD).await;
    // Its server is ill, then silent while the daemon is killed.
    it.guard.fails(500);
    it.guard.hangs();
    it.flow.model.enqueue(ModelReply::text("Good morning."));
    assert_eq!(it.ask("hello, my word is zebra").await, "Good morning.");
    let told = it.told("run_ended", 2).await;
    it.flow.kill().await;
    it.flow.start().await;
    let again = it.told("run_ended", 3).await;
    assert!(
        again.iter().all(|event| event["id"] == told[0]["id"]),
        "{again:?}"
    );
    let event = &again[2];
    let expected = [
        ("hook", "guard"),
        ("agent", "vocative"),
        ("channel", "acme"),
        ("person", "U0ANN"),
        ("outcome", "done"),
    ];
    for (field, value) in expected {
        assert_eq!(event[field], value, "{event}");
    }
    assert!(!event.to_string().contains("zebra") && !event.to_string().contains("morning"));
    it.flow.settle().await;
    assert_eq!(it.jobs().await, [Value::Null; 0]);
    assert_eq!(it.told("run_ended", 3).await.len(), 3);
    let authorization = it.guard.asked().pop().unwrap().authorization;
    assert_eq!(authorization.as_deref(), Some("Bearer guard-secret"));
    assert_eq!(it.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_decided_is_told_and_what_nobody_can_be_told_is_given_up() {
    let at = "[\"before_tool\", \"run_ended\", \"approval_decided\"]";
    let mut it = guarded(at, TOLD).await;
    it.guard.says(json!({"verdict": "ask", "reason": "large"}));
    it.flow.model.enqueue(refund(120, "zebra"));
    let asked = it.flow.slack.say(GENERAL, "ann", "@vocative refund 120");
    let card = it.flow.card(&asked).await;
    it.flow.model.enqueue(ModelReply::text("It is refunded."));
    it.flow.press("ann", &card, "Approve");
    let told = it.told("approval_decided", 1).await;
    let expected = [
        ("tool", "refund"),
        ("outcome", "approved"),
        ("by", "U0ANN"),
        ("via", "card"),
    ];
    for (field, value) in expected {
        assert_eq!(told[0][field], value, "{}", told[0]);
    }
    assert!(!told[0].to_string().contains("zebra"));
    let ended = it.told("run_ended", 1).await;
    assert_eq!(ended[0]["run"], told[0]["run"]);
    // A hook that is told nothing any more is given up, with the reason.
    for _ in 0..4 {
        it.guard.fails(503);
    }
    it.flow.model.enqueue(ModelReply::text("Good morning."));
    assert_eq!(it.ask("hello").await, "Good morning.");
    it.told("run_ended", 2).await;
    it.flow.reconfigure(at, "[\"before_tool\"]");
    it.flow.reload().await;
    let job = it
        .flow
        .wait_for_job("has no hook guard at run_ended any more")
        .await;
    assert_eq!(
        (&job["kind"], &job["state"]),
        (&json!("tell-hook"), &json!("dead"))
    );
    it.flow.model.enqueue(ModelReply::text("Good night."));
    assert_eq!(it.ask("bye").await, "Good night.");
    assert_eq!(it.jobs().await.len(), 1);
    let shown = it.flow.cli(&["status"]).await.stdout;
    assert!(shown.contains("told"), "{shown}");
    // Back in force, it is told after all.
    let before = it.told("run_ended", 2).await;
    it.flow.reconfigure("[\"before_tool\"]", at);
    it.flow.reload().await;
    let id = job["id"].to_string();
    it.flow.cli(&["jobs", "retry", id.trim_matches('"')]).await;
    let last = it.told("run_ended", before.len() + 1).await;
    assert_eq!(last[1]["id"], last[before.len()]["id"]);
    assert_eq!(it.flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_to_somebody_else_is_not_answered() {
    let flow = FlowBuilder::default()
        .agent("vocative", "aliases = [\"Kael\"]\nhooks = [\"meant\"]")
        .config("[hooks.meant]\nkind = \"intent\"\nat = [\"before_run\"]\nmodel = \"scripted\"\n")
        .start()
        .await;
    let say = |text: &str, thread: Option<&str>| match thread {
        Some(root) => flow.slack.say_in(GENERAL, "ann", root, text),
        None => flow.slack.say(GENERAL, "ann", text),
    };
    let replies = |root: &str| -> Vec<String> {
        let posts = flow.slack_posts("C0GENERAL").into_iter();
        let posts = posts.filter(|(thread, _)| thread.as_deref() == Some(root));
        posts.map(|(_, text)| text).collect()
    };
    let timelines = async || {
        let mut all = String::new();
        for conversation in flow.conversations().await {
            let id = conversation["id"].as_str().unwrap();
            let args = ["conversations", "show", id, "--timeline"];
            all.push_str(&flow.cli(&args).await.stdout);
        }
        all
    };
    // A name that opens a message may only be spoken of.
    flow.model.enqueue(ModelReply::text("No."));
    let spoken_of = say("Kael, by the way, wrote the report", None);
    flow.wait_until("the model is asked", || flow.model.requests().len() == 1)
        .await;
    flow.settle().await;
    assert!(replies(&spoken_of).is_empty());
    let asked = flow.model.requests()[0].body.to_string();
    assert!(
        asked.contains("Is the last message said to") && asked.contains("wrote the report"),
        "{asked}"
    );
    assert!(!asked.contains("\"tools\""), "{asked}");
    let told = timelines().await;
    assert!(
        told.contains("meant at before_run: deny, said to somebody else"),
        "{told}"
    );

    flow.model.enqueue(ModelReply::text("Yes"));
    flow.model.enqueue(ModelReply::text("Four."));
    let meant = say("Kael, what is two and two?", None);
    assert_eq!(flow.slack_reply(GENERAL, &meant).await.text, "Four.");
    // In its thread people also talk to each other; who mentions it is not asked about.
    flow.model.enqueue(ModelReply::text("no"));
    say("Bob, are you coming to lunch?", Some(&meant));
    flow.wait_until("the model is asked", || flow.model.requests().len() == 4)
        .await;
    flow.settle().await;
    flow.model.enqueue(ModelReply::text("Five."));
    say("@vocative and one more?", Some(&meant));
    let is_said = || replies(&meant) == ["Four.", "Five."];
    flow.wait_until("it answers", is_said).await;
    assert_eq!(flow.model.requests().len(), 5);
    // Without a clear no it answers.
    flow.model.enqueue(ModelReply::text("Hard to say"));
    flow.model.enqueue(ModelReply::text("Six."));
    say("and one more", Some(&meant));
    let is_said = || replies(&meant) == ["Four.", "Five.", "Six."];
    flow.wait_until("it answers", is_said).await;
    flow.settle().await;
    assert!(timelines().await.contains("said neither yes nor no"));
}
