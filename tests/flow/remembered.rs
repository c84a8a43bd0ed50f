//! What people tell an agent to keep in mind: where it is known, where it is not, and how it goes, on both platforms.

use rusqlite::Connection;
use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";
/// Ann's direct chat with the bot on Slack.
const DIRECT: &str = "D0ANN";
/// Ann's direct chat with the bot on Telegram.
const PRIVATE: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::GROUP;

async fn remembering() -> Flow {
    // What is said is known by memory alone: nothing is looked up.
    let settings = "memory = \"tools\"\nrecall = \"off\"\ntools = []";
    FlowBuilder::default()
        .agent("vocative", settings)
        .start()
        .await
}

fn remember(notes: &Value) -> ModelReply {
    ModelReply::tool_call("call_1", "remember", json!({"notes": notes}))
}

impl Flow {
    /// Has Ann say something on Slack that the model notes. Returns the message's timestamp.
    async fn noted(&self, room: &str, said: &str, note: &str) -> String {
        self.model.enqueue(remember(&json!([{"text": note}])));
        self.model
            .enqueue(ModelReply::text("I will keep that in mind."));
        let asked = self.slack.say(room, "ann", said);
        let is_it = |post: &vocative_sandbox::slack::SlackPost| {
            post.text == "I will keep that in mind." && post.ts > asked
        };
        self.slack_post(room, is_it).await;
        self.settle().await;
        asked
    }

    /// Has somebody ask on Slack; what the model is told of memory then.
    async fn told(&self, room: &str, who: &str, question: &str) -> Vec<String> {
        let number = self.model.requests().len();
        let asked = self.slack.say(room, who, question);
        self.wait_for_model(number + 1).await;
        if room == GENERAL {
            self.slack_reply(room, &asked).await;
        }
        self.settle().await;
        self.memory_at(number)
    }

    /// What stands of memory in the prompt of that number.
    fn memory_at(&self, number: usize) -> Vec<String> {
        let prompt = self.model_prompt(number).into_iter();
        let texts = prompt.map(|(_, text)| text);
        let memory = texts.filter(|text| text.starts_with("(memory)"));
        memory
            .flat_map(|text| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    pub(crate) fn rows(&self, sql: &str) -> i64 {
        let connection = Connection::open(self.directory().join("data/vocative.db")).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ann_tells_in_private_is_not_said_in_the_open_and_what_she_tells_there_is() {
    let flow = remembering().await;
    flow.noted(DIRECT, "remember: I am away in June", "Ann is away in June")
        .await;
    let told = flow.told(DIRECT, "ann", "when am I away?").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("Ann said here on 20"), "{told:?}");

    // Bob asks in #general, and so does the model by its tool.
    let number = flow.model.requests().len();
    let recall = json!({"queries": ["Ann away", "holidays"]});
    flow.model
        .enqueue(ModelReply::tool_call("call_1", "recall", recall));
    let asked = flow
        .slack
        .say(GENERAL, "bob", "@vocative when is Ann away?");
    flow.slack_reply(GENERAL, &asked).await;
    flow.settle().await;
    for request in &flow.model.requests()[number..] {
        let body = request.body.to_string();
        assert!(!body.contains("June"), "{body}");
    }

    // Ann says it in #general: it is known there from now on, since when and from where.
    let said = flow
        .noted(
            GENERAL,
            "@vocative remember: I am away in July",
            "Ann is away in July",
        )
        .await;
    let told = flow
        .told(GENERAL, "bob", "@vocative when is Ann away?")
        .await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with(": Ann is away in July"), "{told:?}");
    assert!(told[0].contains("Ann said here on 20"), "{told:?}");
    // It is not Bob's own word: what the run does from here on is asked for.
    let tainted = "SELECT count(*) FROM run_taints WHERE source = 'recalled'";
    assert_eq!(flow.rows(tainted), 1);

    // She deletes the line: it is forgotten at once, and what she said in private is not.
    flow.slack.delete(GENERAL, &said);
    flow.wait_until("the note is gone", || {
        flow.rows("SELECT count(*) FROM memories") == 1
    })
    .await;
    let told = flow
        .told(GENERAL, "bob", "@vocative when is Ann away?")
        .await;
    assert_eq!(told, Vec::<String>::new());
    let told = flow.told(DIRECT, "ann", "when am I away?").await;
    assert!(told[0].ends_with(": Ann is away in June"), "{told:?}");
    let last = flow.model.requests().pop().unwrap();
    assert!(!last.body.to_string().contains("July"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_so_on_telegram_and_an_edit_takes_a_note_away() {
    let flow = remembering().await;
    let noted = async |chat: i64, said: &str, note: &str| {
        flow.model.enqueue(remember(&json!([{"text": note}])));
        flow.model.enqueue(ModelReply::text("Noted."));
        let count = flow.model.requests().len();
        let asked = flow.telegram.say(chat, TelegramWorld::ANN, said);
        flow.wait_for_model(count + 2).await;
        flow.settle().await;
        asked
    };
    let asks = async |chat: i64, who: i64| {
        let count = flow.model.requests().len();
        let question = "@vocative_bot when is Ann away?";
        flow.telegram.say(chat, who, question);
        flow.wait_for_model(count + 1).await;
        flow.settle().await;
        flow.memory_at(count)
    };
    noted(
        PRIVATE,
        "remember: I am away in June",
        "Ann is away in June",
    )
    .await;
    assert_eq!(asks(PRIVATE, TelegramWorld::ANN).await.len(), 1);
    assert_eq!(asks(GROUP, TelegramWorld::BOB).await, Vec::<String>::new());
    let said = "@vocative_bot remember: I am away in July";
    let said = noted(GROUP, said, "Ann is away in July").await;
    let told = asks(GROUP, TelegramWorld::BOB).await;
    assert!(told.len() == 1 && told[0].ends_with("July"), "{told:?}");
    flow.telegram.edit(GROUP, said, "@vocative_bot never mind");
    flow.wait_until("the note is gone", || {
        flow.rows("SELECT count(*) FROM memories") == 1
    })
    .await;
    assert_eq!(asks(GROUP, TelegramWorld::BOB).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_keeps_its_notes_over_a_kill_and_an_erased_person_leaves_none() {
    let mut flow = remembering().await;
    flow.noted(
        GENERAL,
        "@vocative remember: the code word is zebra-7f3a",
        "The code word is zebra-7f3a",
    )
    .await;
    flow.model.hold();
    let number = flow.model.requests().len();
    let asked = flow
        .slack
        .say(GENERAL, "bob", "@vocative what is the code word?");
    flow.wait_for_model(number + 1).await;
    flow.kill().await;
    flow.model.release();
    flow.start().await;
    flow.slack_reply(GENERAL, &asked).await;
    flow.settle().await;
    let last = flow.model.requests().len() - 1;
    assert_eq!(flow.memory_at(number), flow.memory_at(last));
    assert_eq!(flow.memory_at(last).len(), 1);

    let args = ["erase", "--person", "acme/U0ANN", "--verify", "--yes"];
    let erased = flow.cli_json(&args).await;
    assert_eq!(erased["verification"]["hits"], json!([]), "{erased}");
    assert_eq!(flow.rows("SELECT count(*) FROM memories"), 0);
    assert_eq!(flow.rows("SELECT count(*) FROM memory_sources"), 0);
    let told = flow
        .told(GENERAL, "bob", "@vocative what is the code word?")
        .await;
    assert_eq!(told, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_see_and_correct_what_is_remembered_of_them_and_operators_all_of_it() {
    let settings = "memory = \"tools\"\nrecall = \"off\"\ntools = []";
    let mut flow = FlowBuilder::default()
        .agent("vocative", settings)
        .slack("admins = [\"U0BOB\"]\n")
        .start()
        .await;
    flow.noted(DIRECT, "remember: I am away in June", "Ann is away in June")
        .await;
    let said = "@vocative remember: I am away in July";
    flow.noted(GENERAL, said, "Ann is away in July").await;
    let number = |text: &str| {
        let sql = format!("SELECT id FROM memories WHERE text LIKE '%{text}%'");
        flow.rows(&sql)
    };
    let (june, july) = (number("June"), number("July"));
    let order = |room: &str, who: &str, text: &str| {
        flow.slack.slash_command(room, who, "/vocative", text);
    };
    order(GENERAL, "U0ANN", "memory");
    let told = flow.told_privately("U0ANN", "away in July").await;
    assert!(!told.contains("June"), "{told}");
    order(GENERAL, "U0BOB", "memory");
    flow.told_privately("U0BOB", "I remember nothing here")
        .await;
    order(
        GENERAL,
        "U0BOB",
        &format!("memory change {july} Ann is a thief"),
    );
    flow.told_privately("U0BOB", "only they correct it").await;
    order(GENERAL, "U0ANN", &format!("memory forget {june}"));
    flow.told_privately("U0ANN", "There is no entry").await;
    order(GENERAL, "U0ANN", &format!("memory share {july}"));
    flow.told_privately("U0ANN", "Only those who administer me")
        .await;
    order(DIRECT, "U0ANN", "memory");
    let told = flow
        .told_privately("U0ANN", "What you said elsewhere")
        .await;
    assert!(told.contains("June") && told.contains("July"), "{told}");
    order(
        GENERAL,
        "U0ANN",
        &format!("memory change {july} Ann is away in August"),
    );
    flow.told_privately("U0ANN", "Changed:").await;
    let told = flow
        .told(GENERAL, "bob", "@vocative when is Ann away?")
        .await;
    assert!(told[0].ends_with(": Ann is away in August"), "{told:?}");

    operators_correct(&mut flow, june, july).await;
}

/// Operators see all of it, and correct it; what was said in private stays there.
async fn operators_correct(flow: &mut Flow, june: i64, july: i64) {
    let order = |room: &str, who: &str, text: &str| {
        flow.slack.slash_command(room, who, "/vocative", text);
    };
    let listed = flow
        .cli_json(&["memory", "list", "--person", "U0ANN"])
        .await;
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!(listed[0]["teller"]["name"], "Ann");
    // What was said in private stays there, also for an operator.
    let refused = flow.cli(&["memory", "share", &june.to_string()]).await;
    assert_ne!(refused.status, Some(0));
    assert!(refused.stderr.contains("public room"), "{refused:?}");
    let july = july.to_string();
    let edited = flow
        .cli(&["memory", "edit", &july, "Ann is away in May"])
        .await;
    assert!(edited.stdout.contains("an operator's words"), "{edited:?}");
    let told = flow
        .told(GENERAL, "bob", "@vocative when is Ann away?")
        .await;
    assert!(
        told[0].contains("as an operator worded it: Ann is away in May"),
        "{told:?}"
    );
    // An admin lets it appear in other rooms.
    order(GENERAL, "U0BOB", &format!("memory share {july}"));
    flow.told_privately("U0BOB", "may appear").await;
    let number = flow.model.requests().len();
    flow.slack.say("#ops", "bob", "@vocative when is Ann away?");
    flow.wait_for_model(number + 1).await;
    let told = flow.memory_at(number);
    assert!(
        told.len() == 1 && told[0].contains("in #general"),
        "{told:?}"
    );
    order(GENERAL, "U0ANN", &format!("memory forget {july}"));
    flow.told_privately("U0ANN", "Forgotten").await;
    assert_eq!(flow.rows("SELECT count(*) FROM memories"), 1);
    // Without a daemon, too.
    flow.stop().await;
    let forgotten = flow.cli(&["memory", "forget", &june.to_string()]).await;
    assert_eq!(forgotten.status, Some(0));
    let missing = flow.cli(&["memory", "show", &july]).await;
    assert!(missing.stderr.contains("nothing of number"), "{missing:?}");
    assert_eq!(flow.rows("SELECT count(*) FROM memory_sources"), 0);
}
