//! Good manners: commands, signs, words to one person, bots among themselves, quiet hours.

use serde_json::{Value, json};
use vocative_sandbox::slack::{CallFault, UserPost};
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder, said};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
const OPEN: &str = "allow_chats = [\"*\"]\nallow_people = [\"*\"]";

/// What one person was shown alone, as the texts that notifications say or blocks show.
fn told(flow: &Flow, user: &str) -> Vec<String> {
    let ephemerals = flow.slack.ephemerals().into_iter();
    ephemerals
        .filter(|it| it.user == user)
        .map(|it| match it.blocks {
            Some(blocks) => blocks.to_string(),
            None => it.text,
        })
        .collect()
}

async fn command(flow: &Flow, user: &str, text: &str) -> String {
    let before = told(flow, user).len();
    flow.slack
        .slash_command("#general", user, "/vocative", text);
    flow.wait_until("the command is answered", || {
        told(flow, user).len() > before
    })
    .await;
    told(flow, user).remove(before)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slash_commands_are_answered_to_whoever_gave_them() {
    let flow = FlowBuilder::default()
        .slack("admins = [\"U0BOB\"]")
        .start()
        .await;
    let help = command(&flow, "U0ANN", "").await;
    for word in [
        "help",
        "new",
        "stop",
        "status",
        "context",
        "summary",
        "remind",
        "schedule",
        "approvals",
        "memory",
        "title",
        "link",
        "forget",
    ] {
        assert!(help.contains(word), "{word} is in {help}");
    }
    assert!(
        command(&flow, "U0ANN", "dance")
            .await
            .contains("no such command")
    );
    let root = flow.slack.say("#general", "ann", "@vocative what is up?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    let status = command(&flow, "U0ANN", "status").await;
    assert!(
        status.contains("1 answer was asked for in the last hour"),
        "{status}"
    );
    let context = command(&flow, "U0ANN", "context").await;
    assert!(context.contains("what is up?"), "{context}");
    let summary = command(&flow, "U0ANN", "summary").await;
    assert!(summary.contains("There is no summary"), "{summary}");
    let refused = command(&flow, "U0ANN", "forget chat").await;
    assert!(refused.contains("administer"), "{refused}");
    // Nothing of it was shown to anybody else, or said to a model.
    assert_eq!(told(&flow, "U0BOB"), [""; 0]);
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.model.requests().len(), 1);
    // Where the bot is not, its person is told directly.
    flow.slack
        .slash_command("#elsewhere", "U0ANN", "/vocative", "help");
    let direct = flow.slack_post("D0ANN", |post| post.shown().contains("forget"));
    direct.await;
    flow.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_new_a_model_reads_nothing_older_and_a_search_finds_it() {
    let flow = FlowBuilder::default().telegram(OPEN).start().await;
    let first = flow.telegram.say(GROUP, ANN, "@vocative_bot zebra?");
    flow.telegram_reply(GROUP, first).await;
    flow.settle().await;
    let new = flow.telegram.say(GROUP, BOB, "/new");
    let answer = flow.telegram_reply(GROUP, new).await;
    assert!(answer.text.starts_with("A fresh start"), "{}", answer.text);
    let second = flow.telegram.say(GROUP, ANN, "@vocative_bot and now?");
    flow.telegram_reply(GROUP, second).await;
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(
        flow.model_history(1),
        [said("user", "Ann: @Vocative and now?")]
    );
    let id = flow.conversation_id(&GROUP.to_string(), None).await;
    let found = flow
        .cli_json(&["conversations", "search", &id, "zebra"])
        .await;
    assert!(found.to_string().contains("zebra?"), "{found}");
    // What was told by command is no turn; the command itself only the timeline shows.
    let turns = flow.turns(&id).await;
    assert_eq!(turns.len(), 4, "{turns:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_was_acknowledged_is_carried_out_once_whatever_is_killed() {
    let mut flow = Flow::start_default().await;
    let root = flow.slack.say("#general", "ann", "@vocative zebra?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    // Its answers can't get out before the kill.
    for _ in 0..4 {
        flow.slack
            .faults()
            .next("chat.postEphemeral", CallFault::RateLimited(2));
        flow.slack
            .faults()
            .next("chat.postMessage", CallFault::RateLimited(2));
    }
    flow.slack
        .slash_command("#general", "U0ANN", "/vocative", "new");
    flow.slack
        .slash_command("#general", "U0ANN", "/vocative", "context");
    flow.wait_until_heard().await;
    flow.kill().await;
    flow.start().await;
    flow.wait_until("the question is answered", || {
        !told(&flow, "U0ANN").is_empty()
    })
    .await;
    flow.settle().await;
    let answers = told(&flow, "U0ANN");
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(answers[0].contains("sent nothing from here"), "{answers:?}");
    let posts = flow.slack_posts("#general");
    let afresh = |(_, text): &&(Option<String>, String)| text.contains("A fresh start");
    assert_eq!(posts.iter().filter(afresh).count(), 1, "{posts:?}");
    let next = flow.slack.say("#general", "ann", "@vocative and now?");
    flow.slack_reply("#general", &next).await;
    let prompt = flow.model_history(flow.model.requests().len() - 1);
    assert_eq!(prompt, [said("user", "Ann: @Vocative and now?")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_has_a_message_forgotten_and_then_everything() {
    let flow = FlowBuilder::default().telegram(OPEN).start().await;
    let first = flow.telegram.say(GROUP, ANN, "zebra one");
    flow.telegram.say(GROUP, ANN, "zebra two");
    flow.telegram.say(GROUP, BOB, "mine");
    flow.settle().await;
    let refused = flow.telegram.reply(GROUP, BOB, first, "/forget");
    let answer = flow.telegram_reply(GROUP, refused).await;
    assert_eq!(answer.text, "I forget a message for whoever wrote it.");
    let forgotten = flow.telegram.reply(GROUP, ANN, first, "/forget");
    flow.telegram_reply(GROUP, forgotten).await;
    let id = flow.conversation_id(&GROUP.to_string(), None).await;
    let says =
        |turns: &[Value], text: &str| turns.iter().any(|turn| turn["text"].as_str() == Some(text));
    wait_for_turns(&flow, &id, |turns| !says(turns, "zebra one")).await;
    assert!(says(&flow.turns(&id).await, "zebra two"));
    let everything = flow.telegram.say(GROUP, ANN, "/forget me");
    let asked = flow.telegram_reply(GROUP, everything).await;
    assert!(asked.text.contains("/forget me yes"), "{}", asked.text);
    assert!(says(&flow.turns(&id).await, "zebra two"));
    let sure = flow.telegram.say(GROUP, ANN, "/forget me yes");
    flow.telegram_reply(GROUP, sure).await;
    wait_for_turns(&flow, &id, |turns| !says(turns, "zebra two")).await;
    assert!(says(&flow.turns(&id).await, "mine"));
    assert_eq!(flow.model.requests().len(), 0);
}

async fn wait_for_turns(flow: &Flow, id: &str, is_wanted: impl Fn(&[Value]) -> bool) {
    for _ in 0..600 {
        if is_wanted(&flow.turns(id).await) {
            return;
        }
    }
    panic!(
        "the turns did not come to be as wanted: {:#?}",
        flow.turns(id).await
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn telegram_is_told_once_which_commands_whom_serve() {
    let mut flow = FlowBuilder::default()
        .telegram(&format!(
            "{OPEN}\nadmins = [\"{ANN}\"]\nmanners.admin_commands = [\"new\"]"
        ))
        .start()
        .await;
    let names = |flow: &Flow, scope: Value| -> Vec<String> {
        let commands = flow.telegram.bot_commands_of(&scope);
        let commands = commands.as_array().cloned().unwrap_or_default();
        let names = commands
            .iter()
            .map(|it| it["command"].as_str().unwrap().to_owned());
        names.collect()
    };
    let of_ann = json!({"type": "chat", "chat_id": ANN});
    let all = [
        "ask",
        "help",
        "new",
        "stop",
        "status",
        "context",
        "summary",
        "remind",
        "schedule",
        "approvals",
        "memory",
        "title",
        "link",
        "forget",
    ];
    flow.wait_until("the commands are known", || {
        names(&flow, of_ann.clone()) == all
    })
    .await;
    let in_groups = [
        "ask",
        "help",
        "stop",
        "status",
        "summary",
        "remind",
        "schedule",
        "approvals",
        "memory",
        "title",
        "forget",
    ];
    assert_eq!(names(&flow, json!({"type": "default"})), in_groups);
    assert_eq!(names(&flow, json!({"type": "all_group_chats"})), in_groups);
    let group_admins = json!({"type": "all_chat_administrators"});
    assert_eq!(names(&flow, group_admins.clone()), all);
    let in_private = [
        "ask",
        "help",
        "stop",
        "status",
        "context",
        "summary",
        "remind",
        "schedule",
        "approvals",
        "memory",
        "title",
        "link",
        "forget",
    ];
    assert_eq!(
        names(&flow, json!({"type": "all_private_chats"})),
        in_private
    );
    flow.restart().await;
    flow.settle().await;
    let told = flow
        .log()
        .matches("the platform was told the commands")
        .count();
    assert_eq!(told, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_will_be_answered_gets_a_sign_until_it_is() {
    let flow = FlowBuilder::default()
        .slack("manners.ack_reaction = \"eyes\"")
        .telegram(&format!(
            "{OPEN}\nmanners.ack_reaction = \"👀\"\nmanners.ack_reaction_after = \"keep\""
        ))
        .start()
        .await;
    flow.model.hold();
    let root = flow.slack.say("#general", "ann", "@vocative hi");
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot hi");
    let overheard = flow.slack.say("#general", "ann", "chatter");
    let signs = |ts: &str| {
        let posts = flow.slack.posts("#general");
        let post = posts.into_iter().find(|post| post.ts == ts).unwrap();
        post.reactions.keys().cloned().collect::<Vec<_>>()
    };
    flow.wait_until("there are signs", || {
        signs(&root) == ["eyes"] && flow.telegram.bot_reaction(GROUP, asked).is_some()
    })
    .await;
    flow.model.release();
    flow.slack_reply("#general", &root).await;
    flow.telegram_reply(GROUP, asked).await;
    flow.settle().await;
    assert_eq!((signs(&root), signs(&overheard)), (vec![], vec![]));
    let kept = flow.telegram.bot_reaction(GROUP, asked).unwrap();
    assert!(kept.to_string().contains("👀"), "{kept}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_that_is_refused_keeps_no_answer_back() {
    let flow = FlowBuilder::default()
        .slack("manners.ack_reaction = \"eyes\"")
        .start()
        .await;
    flow.slack.change_world(|world| {
        world.scopes.retain(|scope| scope != "reactions:write");
    });
    let root = flow.slack.say("#general", "ann", "@vocative hi");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    let status = flow.status().await;
    assert_eq!(status["posts"]["held"], 0, "{status}");
    assert_eq!(status["posts"]["dead"], 0, "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_one_person_is_shown_to_them_alone() {
    let flow = FlowBuilder::default()
        .slack("max_runs_per_hour_person = 1")
        .start()
        .await;
    let root = flow.slack.say("#general", "ann", "@vocative one?");
    flow.slack_reply("#general", &root).await;
    flow.slack.say("#general", "ann", "@vocative two?");
    flow.wait_until("the limit is told", || !told(&flow, "U0ANN").is_empty())
        .await;
    flow.settle().await;
    assert!(told(&flow, "U0ANN")[0].contains("as often as I may"));
    assert_eq!(flow.slack_posts("#general").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_bots_end_their_talk_and_a_person_lets_it_go_on() {
    let flow = FlowBuilder::default()
        .slack("allow_bots = [\"U0OTHERBOT\"]\nmanners.bot_exchanges_max = 2")
        .start()
        .await;
    let bot_says = |text: &str| {
        let post = UserPost {
            channel: "#general".to_owned(),
            user: "U0OTHERBOT".to_owned(),
            text: flow.slack.typed(text),
            bot_id: Some("B0OTHERBOT".to_owned()),
            ..UserPost::default()
        };
        flow.slack.post_with(post)
    };
    for n in 0..5 {
        bot_says(&format!("@vocative {n}?"));
        flow.settle().await;
    }
    let texts = || -> Vec<String> {
        let posts = flow.slack_posts("#general").into_iter();
        posts.map(|(_, text)| text).collect()
    };
    let resting = |texts: &[String]| texts.iter().filter(|it| it.contains("in a row")).count();
    assert_eq!((texts().len(), resting(&texts())), (3, 1), "{:?}", texts());
    flow.slack.say("#general", "ann", "go on");
    bot_says("@vocative again?");
    flow.settle().await;
    assert_eq!((texts().len(), resting(&texts())), (4, 1), "{:?}", texts());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_quiet_hours_questions_wait_and_are_told_so_once() {
    let mut flow = FlowBuilder::default()
        .telegram(&format!(
            "{OPEN}\nmanners.quiet_hours = \"{}\"",
            quiet_now()
        ))
        .start()
        .await;
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot one?");
    let line = flow.telegram_reply(GROUP, asked).await;
    assert!(
        line.text.starts_with("It is quiet here now"),
        "{}",
        line.text
    );
    flow.telegram.say(GROUP, BOB, "@vocative_bot two?");
    flow.wait_until_heard().await;
    // In private it is not quiet.
    let direct = flow.telegram.say(ANN, ANN, "three?");
    let answer = flow.telegram_reply(ANN, direct).await;
    assert_eq!(answer.text, "echo: Ann: three?");
    assert_eq!(flow.telegram_posts(GROUP).len(), 1);
    let status = flow.status().await;
    assert_eq!(status["runs"]["queued"], 2, "{status}");
    // They wait through a kill, too.
    flow.kill().await;
    flow.start().await;
    assert_eq!(flow.status().await["runs"]["queued"], 2);
    assert_eq!(flow.telegram_posts(GROUP).len(), 1);
}

/// Hours around now, of whatever day it is.
fn quiet_now() -> String {
    let minutes = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        / 60;
    let at = |minutes: u64| format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
    format!("{}-{}", at(minutes + 1_440 - 120), at(minutes + 120))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_to_everybody_is_one_to_the_bot_only_where_that_is_set() {
    let flow = Flow::start_default().await;
    flow.slack.post("#general", "ann", "<!here> who knows?");
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 0);
    let open = FlowBuilder::default()
        .slack("manners.broadcast_addresses = true")
        .start()
        .await;
    let root = open.slack.post("#general", "ann", "<!here> who knows?");
    open.slack_reply("#general", &root).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_the_bot_joins_is_told_who_it_is_once() {
    let hello = "manners.introduction = \"Hello, I am {{agent}}.\"";
    let mut flow = FlowBuilder::default()
        .slack(hello)
        .telegram(&format!("{OPEN}\n{hello}"))
        .start()
        .await;
    flow.slack.invite_bot("#elsewhere", "U0ANN");
    let is_hello = |post: &vocative_sandbox::slack::SlackPost| post.text == "Hello, I am Vocative.";
    flow.slack_post("#elsewhere", is_hello).await;
    flow.settle().await;
    flow.slack.remove_bot("#elsewhere", "U0ANN");
    flow.wait_until_heard().await;
    flow.restart().await;
    flow.slack.invite_bot("#elsewhere", "U0ANN");
    flow.settle().await;
    assert_eq!(flow.slack_posts("#elsewhere").len(), 1);
    flow.telegram.remove_bot(GROUP, ANN);
    flow.wait_until_heard().await;
    flow.telegram.add_bot(GROUP, ANN);
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP), ["Hello, I am Vocative."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_view_is_dressed_and_every_question_there_begins_a_thread() {
    let flow = FlowBuilder::default().slack(AGENT_VIEW).start().await;
    flow.slack.raw_event(serde_json::json!({
        "type": "app_home_opened", "user": "U0ANN", "channel": "D0ANN", "tab": "messages",
        "event_ts": "1763712700.000900",
    }));
    let prompts = || {
        flow.slack
            .dressings()
            .into_iter()
            .find(|it| it.title.is_none())
    };
    flow.wait_until("prompts are suggested", || prompts().is_some())
        .await;
    let expected = [("Catch up".to_owned(), "What did I miss?".to_owned())];
    assert_eq!(prompts().unwrap().prompts, expected);
    let root = flow
        .slack
        .say("D0ANN", "ann", "what is up with the deploy?");
    flow.slack_reply("D0ANN", &root).await;
    let title = || {
        flow.slack
            .dressings()
            .into_iter()
            .find(|it| it.title.is_some())
    };
    flow.wait_until("the thread has a title", || title().is_some())
        .await;
    let title = title().unwrap();
    assert_eq!(title.thread_ts.as_deref(), Some(root.as_str()));
    assert_eq!(title.title.as_deref(), Some("what is up with the deploy?"));
    flow.slack.say_in("D0ANN", "ann", &root, "and then?");
    flow.settle().await;
    assert_eq!(flow.slack_posts("D0ANN").len(), 2);
    assert!(
        flow.slack_posts("D0ANN")
            .iter()
            .all(|(thread, _)| thread.as_ref() == Some(&root))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_view_that_is_refused_keeps_no_answer_back() {
    let flow = FlowBuilder::default().slack(AGENT_VIEW).start().await;
    flow.slack.change_world(|world| {
        world.scopes.retain(|scope| scope != "assistant:write");
    });
    let root = flow.slack.say("D0ANN", "ann", "what is up?");
    flow.slack_reply("D0ANN", &root).await;
    flow.settle().await;
    assert_eq!(flow.slack.dressings(), []);
}

const AGENT_VIEW: &str = "agent_view = true\nsuggested_prompts = [{ title = \"Catch up\", message = \"What did I miss?\" }]";
