//! What programs ask through the API.

use vocative_core::addressing::{MessageFacts, Verdict};
use vocative_core::given::{Given, GivenLine, GivenSpeaker};
use vocative_store::contract::{AskedRun, CapturedRequest, NewRequest};

use crate::said::{Said, admitted, agent, said};
use crate::scene::Scene;

fn given() -> Given {
    Given {
        earlier: vec![
            GivenLine {
                speaker: GivenSpeaker::User,
                text: "hello".into(),
            },
            GivenLine {
                speaker: GivenSpeaker::Agent,
                text: "Hi.".into(),
            },
        ],
        context: Some("the shop".into()),
        user: Some("bob".into()),
        instructions: Some("Be short.".into()),
        tools: Some(vec!["search".into()]),
    }
}

async fn request(
    scene: &Scene,
    (key, body): (Option<u8>, u8),
    said: Said,
    verdict: Verdict,
) -> CapturedRequest {
    let message = said.message(scene.account, Box::new(move |_: &MessageFacts| verdict));
    let request = NewRequest {
        model: None,
        key: key.map(|key| [key; 32]),
        body: [body; 32],
        agent: agent("helper"),
        given: given(),
    };
    let captured = scene.store.capture_request(message, request);
    captured.await.unwrap()
}

async fn asked(scene: &Scene, key: Option<u8>, said: Said) -> AskedRun {
    match request(scene, (key, 1), said, admitted(&["helper"])).await {
        CapturedRequest::Asked(asked) => asked,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_request_under_a_name_is_one_run_and_the_name_is_its_persons() {
    let scene = Scene::open().await;
    let first = asked(&scene, Some(7), said("1", "hi")).await;
    assert_eq!(scene.store.given(first.run).await.unwrap(), given());
    let again = |body, said| request(&scene, (Some(7), body), said, admitted(&["helper"]));
    assert_eq!(
        again(1, said("2", "hi")).await,
        CapturedRequest::Known(first.clone())
    );
    assert_eq!(again(2, said("3", "hi")).await, CapturedRequest::OtherBody);
    let other = Said {
        by: "U9",
        ..said("4", "hi")
    };
    let others = again(1, other).await;
    assert!(matches!(others, CapturedRequest::Asked(asked) if asked.run != first.run));
    // Without a name each is its own.
    let one = asked(&scene, None, said("5", "hi")).await;
    let two = asked(&scene, None, said("6", "hi")).await;
    assert_ne!(one.run, two.run);
    let turns = scene.turns().await;
    assert_eq!(turns.len(), 4, "{turns:?}");
}

#[tokio::test]
async fn what_is_not_admitted_leaves_nothing() {
    let scene = Scene::open().await;
    let refused = request(&scene, (Some(7), 1), said("1", "hi"), Verdict::default()).await;
    assert_eq!(refused, CapturedRequest::NotAdmitted);
    assert_eq!(scene.turns().await, []);
    assert_eq!(scene.runs().await, [""; 0]);
    let (chat, message) = ("C1".to_owned(), "1".to_owned());
    let captured = scene.store.is_captured(scene.account, chat, message).await;
    assert!(!captured.unwrap());
    // Its name is not taken either.
    let other = request(&scene, (Some(7), 2), said("1", "hi"), admitted(&["helper"])).await;
    assert!(matches!(other, CapturedRequest::Asked(_)), "{other:?}");
}
