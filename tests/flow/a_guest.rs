//! The story of a guest: Bob is a guest of the workspace. By default he is served like any member; with
//! `answer_guests = false` he is not, wherever and however he asks, and members are.

use crate::harness::{Flow, FlowBuilder};

async fn with_guest(settings: &str) -> Flow {
    let mut flow = FlowBuilder::default().slack(settings).prepare().await;
    flow.slack
        .change_world(|world| world.guests = vec!["U0BOB".to_owned()]);
    flow.start().await;
    flow
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_is_served_unless_the_operator_says_otherwise() {
    let flow = with_guest("").await;
    let asked = flow.slack.say("#general", "bob", "@vocative may I?");
    flow.slack_reply("#general", &asked).await;

    flow.reconfigure(
        "[channels.slack.acme]",
        "[channels.slack.acme]\nanswer_guests = false",
    );
    flow.reload().await;

    // He asks in a channel, in a group chat, and by a slash command; each time he alone is told.
    flow.slack
        .say("#ops", "bob", "@vocative feldspar in a channel?");
    flow.slack
        .say("G0GROUP", "bob", "@vocative feldspar in a group?");
    flow.slack
        .slash_command("#ops", "bob", "/vocative", "status");
    let told = || flow.slack.ephemerals();
    flow.wait_until("he is told each time", || told().len() == 3)
        .await;
    for told in told() {
        assert_eq!(told.user, "U0BOB");
        assert!(told.text.contains("guests"), "{}", told.text);
    }
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 1, "no model was asked again");
    let kept = flow.conversations().await;
    let kept = kept.iter().map(|it| it["chat"].as_str().unwrap());
    assert!(
        !kept.into_iter().any(|chat| chat == "G0GROUP"),
        "nothing of it is kept"
    );

    // Ann is a member, in the same places.
    let asked = flow.slack.say("#ops", "ann", "@vocative and I?");
    flow.slack_reply("#ops", &asked).await;

    // He becomes a member. Slack tells of it, and he is served again.
    flow.slack.change_world(|world| world.guests.clear());
    flow.slack.raw_event(serde_json::json!({
        "type": "user_change", "event_ts": "1763712700.000900",
        "user": {"id": "U0BOB", "team_id": "T0ACME", "name": "bob", "real_name": "Bob Example"},
    }));
    flow.settle().await;
    let asked = flow.slack.say("#ops", "bob", "@vocative and now?");
    flow.slack_reply("#ops", &asked).await;
}
