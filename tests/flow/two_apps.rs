//! Two Slack apps in one workspace: two bots, each of which answers as itself, keeps a record of its own
//! and hears the other one as a bot.

use std::net::{Ipv4Addr, SocketAddr};

use vocative_sandbox::slack::{SlackPost, SlackServer, SlackUser, SlackWorld};
use vocative_sandbox::wire::WireLog;

use crate::harness::{Flow, FlowBuilder, WAIT};

/// The same workspace as another app of it sees it.
fn second_world() -> SlackWorld {
    let mut world = SlackWorld::acme();
    world.bot_user_id = "U0SECOND".to_owned();
    world.bot_id = "B0SECOND".to_owned();
    world.app_id = "A0SECOND".to_owned();
    world.bot_name = "second".to_owned();
    world.bot_token = "xoxb-loopback-second-token".to_owned();
    world.app_token = "xapp-1-loopback-second-token".to_owned();
    world.users.push(SlackUser {
        id: "U0VOCATIVE".to_owned(),
        name: "vocative".to_owned(),
        real_name: "Vocative".to_owned(),
        display_name: "Vocative".to_owned(),
        team_id: world.team_id.clone(),
        bot: Some(("B0VOCATIVE".to_owned(), "A0VOCATIVE".to_owned())),
        deleted: false,
    });
    world
}

/// Adds the second app as a channel of its own.
async fn with_second(flow: &Flow) -> SlackServer {
    let world = second_world();
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = SlackServer::start(world.clone(), anywhere, WireLog::new()).await;
    let server = server.unwrap();
    let mut config = std::fs::read_to_string(flow.config_path()).unwrap();
    config += "\n[channels.slack.second]\n";
    for (setting, secret) in [
        ("app_token", world.app_token),
        ("bot_token", world.bot_token),
    ] {
        let file = flow.directory().join(format!("second_{setting}"));
        std::fs::write(&file, secret).unwrap();
        config += &format!("{setting} = \"file:{}\"\n", file.display());
    }
    config += &format!("api_url = \"{}\"\n", server.api_url());
    std::fs::write(flow.config_path(), config).unwrap();
    server
}

fn is_seconds(post: &SlackPost) -> bool {
    post.user.as_deref() == Some("U0SECOND")
}

async fn answered(second: &SlackServer, question: &str) {
    let is_answer = |post: &SlackPost| is_seconds(post) && post.is_reply_in(question);
    let answer = second.wait_for_post("#general", is_answer, WAIT).await;
    assert!(answer.is_some(), "{:#?}", second.posts("#general"));
}

/// The records that there are of the top of #general.
async fn records(flow: &Flow) -> usize {
    let listed = flow.conversations().await;
    let of_general = listed
        .iter()
        .filter(|it| it["chat"] == "C0GENERAL" && it["thread_or_topic"].is_null());
    of_general.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_apps_of_a_workspace_both_answer_as_themselves() {
    let mut flow = FlowBuilder::default().prepare().await;
    let second = with_second(&flow).await;
    for round in 1..=2 {
        flow.start().await;
        assert!(second.wait_for_socket(1, WAIT).await, "{}", flow.log());
        let asked = flow.slack.say("#general", "ann", "@vocative when?");
        flow.slack_reply("#general", &asked).await;
        let asked = second.say("#general", "ann", "@second and where?");
        answered(&second, &asked).await;

        // What the first says there is another bot's word for the second, and no question.
        second.say_in("#general", "U0VOCATIVE", &asked, "@second at nine");
        assert!(second.wait_until_all_acked(WAIT).await);
        flow.settle().await;
        let posts = second.posts("#general");
        let answers = posts.iter().filter(|post| is_seconds(post)).count();
        assert_eq!(answers, round, "{posts:#?}");
        assert_eq!(flow.slack_posts("#general").len(), round);
        // After a restart each goes on with its own.
        assert_eq!(records(&flow).await, 2);
        assert_eq!(flow.stop().await, Some(0));
    }
}
