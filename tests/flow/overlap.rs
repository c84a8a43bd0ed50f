//! What comes while an answer is being made, and what people can do about it.

use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder, said};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

/// Says these in the group, one after the other, while the model is held at the first.
async fn ask_meanwhile(flow: &Flow, asked: &[(i64, &str)]) {
    flow.model.hold();
    for (n, (person, text)) in asked.iter().enumerate() {
        flow.telegram
            .say(GROUP, *person, &format!("@vocative_bot {text}"));
        if n == 0 {
            flow.wait_for_model(1).await;
        }
        flow.wait_until_heard().await;
    }
}

/// What the model was asked last, in each request: the messages behind its last own word.
fn asked_together(flow: &Flow, request: usize) -> Vec<String> {
    let history = flow.model_history(request);
    let behind = history.iter().rposition(|(role, _)| role == "assistant");
    history[behind.map_or(0, |at| at + 1)..]
        .iter()
        .map(|(_, text)| text.clone())
        .collect()
}

const THREE_AND_ONE: [(i64, &str); 4] = [
    (ANN, "one?"),
    (ANN, "two?"),
    (BOB, "and mine?"),
    (ANN, "three?"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_person_asks_meanwhile_is_answered_together_and_anothers_apart() {
    let flow = Flow::start_default().await;
    ask_meanwhile(&flow, &THREE_AND_ONE).await;
    flow.model.release();
    flow.settle().await;
    assert_answered_together(&flow, 3);
    assert_eq!(flow.telegram_posts(GROUP).len(), 3);
}

/// Three answers: the first question's, one for the other two of that person, and the other's.
fn assert_answered_together(flow: &Flow, requests: usize) {
    assert_eq!(flow.model.requests().len(), requests);
    let mut asked: Vec<Vec<String>> = (0..requests).map(|n| asked_together(flow, n)).collect();
    asked.dedup();
    let expected = [
        vec!["Ann: @Vocative one?"],
        vec!["Ann: @Vocative two?\nAnn: @Vocative three?"],
        vec!["Bob: @Vocative and mine?"],
    ];
    let lines: Vec<String> = asked.iter().map(|texts| texts.join("\n")).collect();
    assert_eq!(lines, expected.map(|texts| texts.join("\n")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_together_is_answered_together_also_after_a_kill() {
    let mut flow = Flow::start_default().await;
    ask_meanwhile(&flow, &THREE_AND_ONE).await;
    flow.kill().await;
    flow.model.release();
    flow.start().await;
    flow.settle().await;
    // The first is asked again: its model call was cut off.
    assert_answered_together(&flow, 4);
    assert_eq!(flow.telegram_posts(GROUP).len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_chat_collects_and_a_chat_of_its_own_setting_queues() {
    let settings = "allow_chats = [\"*\"]\nallow_people = [\"*\"]\n";
    let chat = format!("[channels.telegram.team.chats.{GROUP}]\noverlap = \"queue\"");
    let flow = FlowBuilder::default()
        .telegram(settings)
        .config(&chat)
        .start()
        .await;
    flow.model.hold();
    for (n, text) in ["one?", "two?", "three?"].into_iter().enumerate() {
        flow.slack.say("D0ANN", "ann", text);
        flow.telegram
            .say(GROUP, ANN, &format!("@vocative_bot {text}"));
        if n == 0 {
            flow.wait_for_model(2).await;
        }
        flow.wait_until_heard().await;
    }
    flow.model.release();
    flow.settle().await;
    assert_eq!(flow.slack_posts("D0ANN").len(), 2);
    assert_eq!(flow.telegram_posts(GROUP).len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_interrupted_answers_everything_once() {
    let flow = FlowBuilder::default()
        .agent("vocative", "overlap = \"interrupt\"")
        .start()
        .await;
    ask_meanwhile(&flow, &[(ANN, "one?"), (BOB, "two?")]).await;
    flow.wait_for_model(2).await;
    flow.model.release();
    flow.settle().await;
    let together = ["Ann: @Vocative one?", "Bob: @Vocative two?"];
    assert_eq!(
        flow.model_history(1),
        together.map(|text| said("user", text))
    );
    assert_eq!(flow.telegram_posts(GROUP).len(), 1);
    assert_eq!(flow.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interruption_survives_a_kill_and_everything_is_answered_once() {
    // Killed as soon as the interruption is captured, or while the model works on all of it.
    for is_asked_again in [false, true] {
        let interrupting = FlowBuilder::default().agent("vocative", "overlap = \"interrupt\"");
        let mut flow = interrupting.start().await;
        let asked = [(ANN, "one?"), (BOB, "two?"), (ANN, "three?")];
        ask_meanwhile(&flow, &asked).await;
        if is_asked_again {
            flow.wait_until("the model is asked all of it", || {
                let requests = flow.model.requests();
                let newest = requests.last().map(|request| request.body.to_string());
                newest.is_some_and(|body| body.contains("three?"))
            })
            .await;
        }
        flow.kill().await;
        flow.model.release();
        flow.start().await;
        flow.settle().await;
        let together = asked.map(|(person, text)| match person {
            ANN => said("user", &format!("Ann: @Vocative {text}")),
            _ => said("user", &format!("Bob: @Vocative {text}")),
        });
        let newest = flow.model.requests().len() - 1;
        assert_eq!(flow.model_history(newest), together);
        assert_eq!(flow.telegram_posts(GROUP).len(), 1, "{is_asked_again}");
        // Nothing is left over for later either.
        flow.restart().await;
        flow.settle().await;
        assert_eq!(flow.telegram_posts(GROUP).len(), 1, "{is_asked_again}");
        assert_eq!(flow.model.requests().len(), newest + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_ends_the_persons_own_questions_and_is_confirmed_at_once() {
    let flow = Flow::start_default().await;
    ask_meanwhile(&flow, &[(ANN, "one?"), (BOB, "mine?"), (ANN, "two?")]).await;
    let stop = flow.telegram.say(GROUP, ANN, "@vocative_bot stop");
    // While the model is still held: whoever worked on it has let go.
    let told = flow.telegram_reply(GROUP, stop).await;
    assert_eq!(
        told.text,
        "Stopped. Nothing of yours waits for an answer here now."
    );
    flow.wait_for_model(2).await;
    flow.model.release();
    flow.settle().await;
    assert_eq!(
        asked_together(&flow, 1).last().unwrap(),
        "Bob: @Vocative mine?"
    );
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(flow.telegram_posts(GROUP).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_meanwhile_is_dropped_where_that_is_wanted() {
    let mut flow = FlowBuilder::default()
        .agent("vocative", "overlap = \"drop\"")
        .start()
        .await;
    ask_meanwhile(&flow, &[(ANN, "one?"), (BOB, "and mine?")]).await;
    flow.model.release();
    flow.settle().await;
    flow.telegram.say(GROUP, BOB, "@vocative_bot once more?");
    flow.wait_for_model(2).await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 2);
    assert_eq!(asked_together(&flow, 0), ["Ann: @Vocative one?"]);
    let asked = asked_together(&flow, 1);
    assert_eq!(asked.last().unwrap(), "Bob: @Vocative once more?");
    // It is kept, and never asked again.
    let room = format!("team/{GROUP}");
    let found = flow
        .cli(&["conversations", "search", &room, "and mine"])
        .await;
    assert!(found.stdout.contains("and mine?"));
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(flow.stop().await, Some(0));
}
