//! Questions that a model asks people: by buttons and by replies, on both platforms, and what does not count.

use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::{BlockAction, SlackPost};
use vocative_sandbox::telegram::{TelegramPost, TelegramWorld};

use crate::harness::{Called, Flow, FlowBuilder, WAIT};

const GENERAL: &str = "#general";
const GROUP: i64 = TelegramWorld::GROUP;
const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;

async fn with_questions(settings: &str, called: Option<Called>) -> Flow {
    let settings = format!("tools = [\"ask_person\"]\n{settings}");
    let builder = FlowBuilder::default().agent("vocative", &settings);
    let builder = match called {
        Some(called) => builder.called(called),
        None => builder,
    };
    builder.start().await
}

fn ask(arguments: Value) -> ModelReply {
    ModelReply::tool_call("call_1", "ask_person", arguments)
}

fn colours() -> ModelReply {
    ask(json!({"question": "Which colour?", "options": ["Blue", "Red"]}))
}

/// The words on the buttons of a Slack post, each with its action id.
fn buttons(post: &SlackPost) -> Vec<(String, String)> {
    let blocks = post.blocks.as_ref().and_then(Value::as_array);
    let elements = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block["elements"].as_array());
    elements
        .flatten()
        .filter(|element| element["type"] == "button")
        .map(|button| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&button["text"]["text"]), text(&button["action_id"]))
        })
        .collect()
}

/// What a Telegram post says, whose button is called so.
fn data(post: &TelegramPost, words: &str) -> String {
    let keyboard = post.keyboard.clone().unwrap_or_default();
    let rows = keyboard["inline_keyboard"].as_array().cloned();
    let buttons = rows.unwrap_or_default();
    let mut buttons = buttons.iter().filter_map(Value::as_array).flatten();
    let button = buttons.find(|button| button["text"] == words).unwrap();
    button["callback_data"].as_str().unwrap().to_owned()
}

impl Flow {
    /// Waits for a question in the thread of a Slack message.
    pub(crate) async fn question(&self, root_ts: &str) -> SlackPost {
        let is_question =
            |post: &SlackPost| post.is_reply_in(root_ts) && post.text.contains("A question for");
        let post = self.slack_post(GENERAL, is_question).await;
        // An answer counts once it is known which message the question is.
        self.settle().await;
        post
    }

    pub(crate) async fn answered_in(&self, root_ts: &str, text: &str) {
        let is_it = |post: &SlackPost| post.is_reply_in(root_ts) && post.text == text;
        self.slack_post(GENERAL, is_it).await;
    }

    /// Waits until a question's post says what became of it.
    pub(crate) async fn became(&self, question: &SlackPost, word: &str) -> String {
        let is_over = |post: &SlackPost| {
            post.ts == question.ts && buttons(post).is_empty() && post.text.contains(word)
        };
        let post = self.slack_post(GENERAL, is_over).await;
        format!("{} {}", post.text, post.blocks.unwrap_or_default())
    }

    pub(crate) async fn is_told(&self, who: &str, words: &str) {
        let is_told = || {
            let all = self.slack.ephemerals();
            all.iter()
                .any(|told| told.user == who && told.text.contains(words))
        };
        self.wait_until(&format!("{who} is told {words:?}"), is_told)
            .await;
    }

    pub(crate) fn choose(&self, who: &str, question: &SlackPost, words: &str) {
        let buttons = buttons(question);
        let (_, action) = buttons.iter().find(|(text, _)| text == words).unwrap();
        self.slack.block_action(&BlockAction {
            channel: GENERAL.to_owned(),
            user: who.to_owned(),
            message_ts: question.ts.clone(),
            action_id: action.clone(),
            ..BlockAction::default()
        });
    }

    pub(crate) async fn telegram_question(&self) -> TelegramPost {
        let is_question = |post: &TelegramPost| post.by_bot && post.text.contains("A question for");
        let found = self.telegram.wait_for_post(GROUP, is_question, WAIT).await;
        let post = found.unwrap_or_else(|| panic!("{:#?}", self.telegram.bot_posts(GROUP)));
        self.settle().await;
        post
    }

    pub(crate) async fn telegram_became(&self, question: &TelegramPost, word: &str) -> String {
        let is_over = |post: &TelegramPost| {
            post.message_id == question.message_id && post.text.contains(word)
        };
        let found = self.telegram.wait_for_post(GROUP, is_over, WAIT).await;
        let post = found.unwrap_or_else(|| panic!("{:#?}", self.telegram.bot_posts(GROUP)));
        assert!(post.keyboard.is_none(), "{post:?}");
        post.text
    }

    /// What the model was told last.
    fn told_model(&self) -> String {
        let requests = self.model.requests();
        requests.last().unwrap().body.to_string()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_waits_through_a_kill_and_is_answered_by_who_is_asked() {
    let mut flow = with_questions("", None).await;
    flow.model.enqueue(colours());
    let asked = flow.slack.say(GENERAL, "ann", "@vocative paint the door");
    let question = flow.question(&asked).await;
    let shown = question.blocks.clone().unwrap_or_default().to_string();
    assert!(shown.contains("Which colour?"), "{shown}");
    let status = flow.status().await;
    assert_eq!(status["runs"]["questions_open"], 1, "{status}");

    // The room goes on, and Bob is told that he is not asked.
    flow.choose("bob", &question, "Red");
    flow.is_told("U0BOB", "This question is for Ann").await;
    flow.model.enqueue(ModelReply::text("At four."));
    let meanwhile = flow.slack.say(GENERAL, "bob", "@vocative when is tea?");
    assert_eq!(flow.slack_reply(GENERAL, &meanwhile).await.text, "At four.");

    flow.kill().await;
    flow.start().await;
    flow.model.enqueue(ModelReply::text("It is blue."));
    flow.choose("ann", &question, "Blue");
    let outcome = flow.became(&question, "Answered").await;
    assert!(
        outcome.contains("Ann") && outcome.contains("Blue"),
        "{outcome}"
    );
    flow.answered_in(&asked, "It is blue.").await;
    let told = flow.told_model();
    assert!(told.contains(r#"\"answered_by\":\"Ann\""#), "{told}");
    assert!(told.contains(r#"\"answer\":\"Blue\""#), "{told}");

    // What she chose is what she said.
    flow.model.enqueue(ModelReply::text("You are welcome."));
    flow.slack
        .say_in(GENERAL, "ann", &asked, "@vocative thanks");
    flow.answered_in(&asked, "You are welcome.").await;
    let read = format!("{:?}", flow.model_history(flow.model.requests().len() - 1));
    assert!(
        read.contains("Blue") && read.contains("It is blue."),
        "{read}"
    );
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_slack_thread_the_word_of_who_is_asked_is_the_answer_and_no_question() {
    let mut flow = with_questions("", None).await;
    flow.slack.say(GENERAL, "bob", "good morning");
    flow.model
        .enqueue(ask(json!({"question": "May I?", "person": "bob"})));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative close the shop");
    let question = flow.question(&asked).await;
    assert!(question.text.contains("A question for Bob"), "{question:?}");

    // Ann is not asked: what she says there is no answer.
    flow.slack.reply(GENERAL, "ann", &asked, "he is at lunch");
    flow.settle().await;
    let questions = flow.cli_json(&["questions", "list"]).await;
    assert_eq!(questions[0]["state"], "open", "{questions}");
    assert_eq!(questions[0]["asked"], json!(["Bob"]), "{questions}");

    let before = flow.model.requests().len();
    flow.model
        .enqueue(ModelReply::text("Closed, Bob said yes."));
    let said = flow.slack.reply(GENERAL, "bob", &asked, "yes, go ahead");
    flow.became(&question, "Answered").await;
    flow.answered_in(&asked, "Closed, Bob said yes.").await;
    assert!(flow.told_model().contains("yes, go ahead"));
    // An edit of the answer is no question either.
    flow.slack.edit(GENERAL, &said, "yes, go ahead!");
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), before + 1);
    let all = flow.cli_json(&["questions", "list", "--all"]).await;
    assert_eq!(all[0]["state"], "answered", "{all}");
    assert_eq!(all[0]["answered_by"], "Bob", "{all}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_telegram_a_reply_to_the_post_is_the_answer_and_only_from_who_is_asked() {
    let mut flow = with_questions("", None).await;
    flow.model.enqueue(ask(json!({"question": "How many?"})));
    flow.telegram.say(GROUP, ANN, "@vocative_bot order chairs");
    let question = flow.telegram_question().await;
    assert!(question.text.contains("How many?"), "{}", question.text);
    let post = question.message_id;
    // Nobody else's reply counts, and it is not a question to the bot.
    flow.telegram.reply(GROUP, BOB, post, "a hundred");
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 1);
    flow.model.enqueue(ModelReply::text("Seven chairs."));
    flow.telegram.reply(GROUP, ANN, post, "seven");
    flow.telegram_became(&question, "Answered").await;
    let is_it = |post: &TelegramPost| post.by_bot && post.text == "Seven chairs.";
    let found = flow.telegram.wait_for_post(GROUP, is_it, WAIT).await;
    assert!(found.is_some());
    let told = flow.told_model();
    assert!(
        told.contains(r#"\"answer\":\"seven\""#) && !told.contains("a hundred"),
        "{told}"
    );
    // A reply that comes too late asks nothing.
    flow.telegram.reply(GROUP, ANN, post, "or eight");
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_fifty_presses_in_telegram_one_answers() {
    let called = Called {
        by_slack: true,
        by_telegram: true,
    };
    let mut flow = with_questions("", Some(called)).await;
    flow.model.enqueue(colours());
    flow.model.enqueue(ModelReply::text("Painted."));
    flow.telegram
        .say(GROUP, ANN, "@vocative_bot paint the door");
    let question = flow.telegram_question().await;
    let (blue, red) = (data(&question, "Blue"), data(&question, "Red"));
    let strange = flow
        .telegram
        .callback(GROUP, BOB, question.message_id, &red);
    let is_told = || {
        let answer = flow.telegram.callback_answer(&strange);
        answer.is_some_and(|answer| answer.to_string().contains("This question is for Ann"))
    };
    flow.wait_until("Bob is told that he is not asked", is_told)
        .await;
    let presses: Vec<String> = (0..50)
        .map(|n| {
            let data = if n % 5 == 4 { &red } else { &blue };
            flow.telegram
                .callback(GROUP, ANN, question.message_id, data)
        })
        .collect();
    flow.telegram_became(&question, "Answered").await;
    let are_answered = || {
        presses
            .iter()
            .all(|press| flow.telegram.callback_answer(press).is_some())
    };
    flow.wait_until("every press is answered", are_answered)
        .await;
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(
        flow.telegram_posts(GROUP).last().map(String::as_str),
        Some("Painted.")
    );
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_answers_expires_and_the_model_goes_on() {
    let mut flow = with_questions("question_expires_s = 1", None).await;
    flow.model.enqueue(colours());
    flow.model
        .enqueue(ModelReply::text("Nobody told me, so: blue."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative paint the door");
    flow.answered_in(&asked, "Nobody told me, so: blue.").await;
    let over = |post: &SlackPost| post.text.contains("Expired");
    let post = flow.slack_post(GENERAL, over).await;
    assert!(buttons(&post).is_empty(), "{post:?}");
    assert!(flow.told_model().contains("nobody answered in time"));
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_an_edit_of_the_request_and_an_operator_take_a_question_back() {
    let mut flow = with_questions("", None).await;
    let stopped = async |flow: &Flow| {
        flow.model.enqueue(colours());
        let asked = flow.slack.say(GENERAL, "ann", "@vocative paint the door");
        (flow.question(&asked).await, asked)
    };
    let (question, asked) = stopped(&flow).await;
    flow.slack.reply(GENERAL, "ann", &asked, "@vocative stop");
    flow.became(&question, "Cancelled").await;

    let (question, asked) = stopped(&flow).await;
    flow.model.enqueue(ModelReply::text("The window, then."));
    flow.slack
        .edit(GENERAL, &asked, "@vocative paint the window");
    flow.became(&question, "Cancelled").await;
    flow.answered_in(&asked, "The window, then.").await;

    let (question, asked) = stopped(&flow).await;
    let listed = flow.cli_json(&["questions", "list"]).await;
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let shown = flow.cli(&["questions", "show", &id]).await;
    assert!(shown.stdout.contains("Which colour?"), "{shown:?}");
    flow.model.enqueue(ModelReply::text("I leave it as it is."));
    let cancelled = flow.cli(&["questions", "cancel", &id]).await;
    assert_eq!(cancelled.status, Some(0), "{cancelled:?}");
    let again = flow.cli(&["questions", "cancel", &id]).await;
    assert_eq!(again.status, Some(1), "{again:?}");
    flow.became(&question, "Cancelled").await;
    flow.answered_in(&asked, "I leave it as it is.").await;
    assert!(flow.told_model().contains("taken back"));

    // A post that is deleted can't be answered.
    let (question, asked) = stopped(&flow).await;
    flow.model.enqueue(ModelReply::text("Never mind, then."));
    flow.slack.delete(GENERAL, &question.ts);
    flow.answered_in(&asked, "Never mind, then.").await;
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_most_three_questions_are_asked_for_one_request_and_nobody_unknown_is() {
    let mut flow = with_questions("", None).await;
    flow.model
        .enqueue(ask(json!({"question": "?", "person": "zoe"})));
    for n in 0..3 {
        let arguments = json!({"question": format!("Number {n}?"), "options": ["Yes"]});
        flow.model.enqueue(ask(arguments));
    }
    flow.model.enqueue(ask(json!({"question": "One more?"})));
    flow.model.enqueue(ModelReply::text("Enough."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative ask me");
    for n in 0..3 {
        let words = format!("Number {n}?");
        let is_it = |post: &SlackPost| {
            let shown = post.blocks.clone().unwrap_or_default().to_string();
            shown.contains(&words) && !buttons(post).is_empty()
        };
        let question = flow.slack_post(GENERAL, is_it).await;
        flow.settle().await;
        flow.choose("ann", &question, "Yes");
        flow.became(&question, "Answered").await;
    }
    flow.answered_in(&asked, "Enough.").await;
    let told = flow.told_model();
    assert!(
        told.contains("nobody who has said something here is called zoe"),
        "{told}"
    );
    assert!(told.contains("at most 3 questions"), "{told}");
    assert_eq!(flow.stop().await, Some(0));
}

const OPS: &str = "#ops";

async fn with_experts(rooms: &str) -> Flow {
    let settings = format!("tools = [\"ask_human\"]\nexperts = {rooms}");
    FlowBuilder::default()
        .agent("vocative", &settings)
        .start()
        .await
}

fn ask_experts(arguments: Value) -> ModelReply {
    ModelReply::tool_call("call_1", "ask_human", arguments)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn experts_are_asked_in_their_room_and_only_the_answer_comes_back() {
    let mut flow = with_experts("[\"acme/C0OPS\"]").await;
    flow.model
        .enqueue(ask_experts(json!({"question": "Which form is it?"})));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative which form?");
    let is_question = |post: &SlackPost| post.text.contains("A question for the experts");
    let question = flow.slack_post(OPS, is_question).await;
    flow.settle().await;
    let shown = question.blocks.clone().unwrap_or_default().to_string();
    assert!(shown.contains("Which form is it?"), "{shown}");
    // Of the room where it was asked, nothing is said there.
    assert!(
        !shown.contains("Ann") && question.thread_ts.is_none(),
        "{shown}"
    );
    // Who asked does not answer for the experts, and their talk is theirs.
    flow.slack.reply(GENERAL, "ann", &asked, "form 99, I think");
    flow.slack.say(OPS, "bob", "Ann asks odd things today");
    flow.settle().await;
    let listed = flow.cli_json(&["questions", "list"]).await;
    assert_eq!(listed[0]["asked"], json!(["the experts"]), "{listed}");

    let requests = flow.model.requests().len();
    flow.model.enqueue(ModelReply::text("Form 12, says Bob."));
    flow.slack.reply(OPS, "bob", &question.ts, "form 12");
    flow.answered_in(&asked, "Form 12, says Bob.").await;
    let told = flow.told_model();
    assert!(told.contains(r#"\"answered_by\":\"Bob\""#), "{told}");
    assert!(
        told.contains("form 12") && !told.contains("odd things"),
        "{told}"
    );
    let over = |post: &SlackPost| post.ts == question.ts && post.text.contains("Answered");
    flow.slack_post(OPS, over).await;
    // They talk on below it, and ask nothing.
    flow.slack.reply(OPS, "ann", &question.ts, "are you sure?");
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), requests + 1);
    assert!(flow.slack.ephemerals().is_empty());

    // What was said in their room is in no later prompt of the other one.
    flow.model.enqueue(ModelReply::text("You are welcome."));
    flow.slack
        .say_in(GENERAL, "ann", &asked, "@vocative thanks");
    flow.answered_in(&asked, "You are welcome.").await;
    let prompt = flow.told_model();
    assert!(
        !prompt.contains("odd things") && !prompt.contains("are you sure"),
        "{prompt}"
    );
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn experts_answer_in_telegram_by_reply_or_button_and_no_other_account_asks_them() {
    let rooms = format!("[\"team/{}\"]", TelegramWorld::SUPERGROUP);
    let mut flow = with_experts(&rooms).await;
    let experts = TelegramWorld::SUPERGROUP;
    let is_open =
        |post: &TelegramPost| post.by_bot && post.text.contains("A question for the experts");
    flow.model
        .enqueue(ask_experts(json!({"question": "How many?"})));
    flow.telegram.say(GROUP, ANN, "@vocative_bot how many?");
    let question = flow.telegram.wait_for_post(experts, is_open, WAIT).await;
    let question = question.unwrap_or_else(|| panic!("{:#?}", flow.telegram.bot_posts(experts)));
    flow.settle().await;
    flow.model.enqueue(ModelReply::text("Seven."));
    flow.telegram
        .reply(experts, BOB, question.message_id, "seven of them");
    let is_it = |post: &TelegramPost| post.by_bot && post.text == "Seven.";
    assert!(
        flow.telegram
            .wait_for_post(GROUP, is_it, WAIT)
            .await
            .is_some()
    );
    assert!(flow.told_model().contains("seven of them"));

    let arguments = json!({"question": "Which?", "options": ["This", "That"]});
    flow.model.enqueue(ask_experts(arguments));
    flow.telegram.say(GROUP, ANN, "@vocative_bot which?");
    let is_open = |post: &TelegramPost| is_open(post) && post.keyboard.is_some();
    let question = flow.telegram.wait_for_post(experts, is_open, WAIT).await;
    let question = question.unwrap_or_else(|| panic!("{:#?}", flow.telegram.bot_posts(experts)));
    flow.settle().await;
    flow.model.enqueue(ModelReply::text("That."));
    flow.telegram
        .callback(experts, BOB, question.message_id, &data(&question, "That"));
    let is_it = |post: &TelegramPost| post.by_bot && post.text == "That.";
    assert!(
        flow.telegram
            .wait_for_post(GROUP, is_it, WAIT)
            .await
            .is_some()
    );
    assert!(flow.told_model().contains(r#"\"answer\":\"That\""#));

    // A question of the other account has no experts, so its model has no such tool.
    flow.model.enqueue(ModelReply::text("No idea."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative how many?");
    flow.answered_in(&asked, "No idea.").await;
    assert!(!flow.told_model().contains("ask_human"));
    assert_eq!(flow.stop().await, Some(0));
}
