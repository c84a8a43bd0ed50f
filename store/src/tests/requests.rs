//! What programs ask through the API.

use super::*;
use crate::acts::forgetting::delete_steps_txn;
use crate::contract::{AskedRun, CapturedRequest, NewRequest};
use vocative_core::given::{Given, GivenLine, GivenSpeaker};
use vocative_core::ids::RunId;
use vocative_core::run::{StopCause, Stopping};

const GIVEN: &str = "SELECT coalesce(given, '-') FROM run_requests ORDER BY run_id";

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

impl Fixture {
    async fn request(
        &self,
        key: Option<u8>,
        body: u8,
        said: Said,
        verdict: Verdict,
    ) -> CapturedRequest {
        let message = said.message(self.account, Box::new(move |_: &MessageFacts| verdict));
        let request = NewRequest {
            model: None,
            key: key.map(|key| [key; 32]),
            body: [body; 32],
            agent: AgentName::trusted("helper"),
            given: given(),
        };
        let captured = self.store.capture_request(message, request);
        captured.await.unwrap()
    }

    async fn asked(&self, key: Option<u8>, said: Said) -> AskedRun {
        match self.request(key, 1, said, admitted(&["helper"])).await {
            CapturedRequest::Asked(asked) => asked,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn what_was_given_goes_with_the_run_however_it_ends() {
    let fixture = Fixture::new().await;
    let stopped = fixture.asked(Some(1), said("1", "hi")).await;
    let stopping = Stopping::from(StopCause::Stopped);
    let stop = fixture.store.cancel_run(stopped.run, stopping, NOW_MS);
    assert!(stop.await.unwrap());
    assert_eq!(fixture.column::<String>(GIVEN).await, ["-"]);
    assert_eq!(
        fixture.store.given(stopped.run).await.unwrap(),
        Given::default()
    );
    // Its name stays taken.
    let again = fixture.request(Some(1), 1, said("2", "hi"), admitted(&["helper"]));
    assert_eq!(again.await, CapturedRequest::Known(stopped));
    // A deleted question takes all of it.
    let deleted = fixture.asked(Some(2), said("3", "hi")).await;
    let delete = fixture
        .store
        .capture_delete(fixture.account, "C1", "3", NOW_MS);
    delete.await.unwrap();
    assert_eq!(
        fixture.store.given(deleted.run).await.unwrap(),
        Given::default()
    );
    let forget = |connection: &Connection| delete_steps_txn(connection, "> ?1", 0).map(drop);
    fixture.store.write(forget).await.unwrap();
    assert_eq!(fixture.column::<String>(GIVEN).await, Vec::<String>::new());
    let gone = RunId::from(uuid::Uuid::nil());
    assert_eq!(fixture.store.given(gone).await.unwrap(), Given::default());
}

#[tokio::test]
async fn what_can_not_be_read_is_told_and_not_taken_for_nothing() {
    let fixture = Fixture::new().await;
    let asked = fixture.asked(None, said("1", "hi")).await;
    for odd in [
        "UPDATE run_requests SET given = '{}'",
        "UPDATE run_requests SET given = 'nonsense'",
        "UPDATE run_requests SET given = '{\"version\":9}'",
    ] {
        fixture.execute(odd).await;
        let read = fixture.store.given(asked.run).await;
        assert!(matches!(read, Err(StoreError::Undecodable { .. })), "{odd}");
    }
}
