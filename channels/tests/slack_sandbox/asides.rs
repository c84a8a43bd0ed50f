//! Reactions, and words to one person.

use vocative_contract::error::ChannelError;
use vocative_contract::outbound::{Operation, Post};

use crate::stage::{Stage, post};

fn aside(operation: Operation, text: &str) -> Post {
    Post {
        operation,
        ..post("o1", "C0GENERAL", None, text)
    }
}

#[tokio::test]
async fn a_reaction_is_put_and_taken_away_however_often() {
    let stage = Stage::new().await;
    let outbound = stage.outbound();
    let ts = stage.slack.say("#general", "ann", "hello");
    let react = Operation::React {
        message_id: ts.clone(),
    };
    let unreact = Operation::Unreact {
        message_id: ts.clone(),
    };
    let signs = || stage.slack.posts("#general")[0].reactions.clone();
    for _ in 0..2 {
        let done = outbound
            .poster
            .deliver(&aside(react.clone(), ":eyes:"))
            .await;
        assert_eq!(done.unwrap().message_id, ts);
    }
    assert_eq!(signs().keys().collect::<Vec<_>>(), ["eyes"]);
    for _ in 0..2 {
        let done = outbound
            .poster
            .deliver(&aside(unreact.clone(), "eyes"))
            .await;
        assert_eq!(done.unwrap().message_id, ts);
    }
    assert!(signs().values().all(Vec::is_empty));
    // A missing scope for signs takes nothing from the account.
    stage.slack.change_world(|world| {
        world.scopes.retain(|scope| scope != "reactions:write");
    });
    let refused = outbound
        .poster
        .deliver(&aside(react, "eyes"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ChannelError::Rejected { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn one_person_is_told_where_they_are_or_else_directly() {
    let stage = Stage::new().await;
    let outbound = stage.outbound();
    let tell = Operation::Ephemeral {
        person: "U0ANN".to_owned(),
    };
    let mut post = aside(tell, "only you");
    outbound.poster.deliver(&post).await.unwrap();
    let told = stage.slack.ephemerals();
    assert_eq!((told.len(), told[0].user.as_str()), (1, "U0ANN"));
    post.target.chat = "C0ELSEWHERE".to_owned();
    outbound.poster.deliver(&post).await.unwrap();
    assert_eq!(stage.slack.ephemerals().len(), 1);
    let direct = stage.slack.posts("D0ANN");
    assert_eq!(direct[0].text, "only you");
}
