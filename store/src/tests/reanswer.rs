//! What is left of an answer whose place another one took, in every row.

use super::*;
use crate::contract::{ClaimRequest, ReplyCommit, RunEnding};
use crate::new_id::NewId as _;
use vocative_contract::outbound::{Delivered, Part};
use vocative_core::ids::OwnerId;
use vocative_core::outbox::OutboxUpdate;
use vocative_core::run::Usage;
use vocative_core::turn::TurnKind;

const LATER_MS: i64 = NOW_MS + 600_000;

fn request(fixture: &Fixture) -> ClaimRequest {
    ClaimRequest {
        owner: OwnerId::generate(),
        lease_ms: 1_000,
        now_ms: LATER_MS,
        accounts: vec![fixture.account],
    }
}

/// Somebody asks, or edits what they asked.
async fn ask(fixture: &Fixture, said: Said, keep_revisions: bool) {
    let verdict = Verdict {
        edit_answer_within_ms: 60_000,
        ..admitted(&["helper"])
    };
    let message = NewMessage {
        keep_revisions,
        ..said.message(fixture.account, Box::new(|_| verdict))
    };
    fixture.store.capture_message(message).await.unwrap();
}

async fn answer(fixture: &Fixture, text: &str) {
    let store = &fixture.store;
    let claimed = store.claim_run(request(fixture), Default::default()).await;
    let run = claimed.unwrap().unwrap();
    let reply = ReplyCommit {
        verdicts: Vec::new(),
        run: run.run.id,
        token: run.token,
        agent: agent("helper"),
        speaker: agent("helper"),
        speaker_display_name: "Helper".to_owned(),
        before: Vec::new(),
        values: None,
        text: text.to_owned(),
        kind: TurnKind::Message,
        ending: RunEnding::Done,
        parts: vec![Part::plain(text)],
        target: store.reply_route(run.run.id).await.unwrap().target,
        live_settle_ms: 0,
        tokens: None,
        usage: Usage::default(),
        now_ms: LATER_MS,
    };
    store.commit_reply(reply).await.unwrap();
}

async fn post(fixture: &Fixture) {
    let store = &fixture.store;
    let claims = store.claim_posts(request(fixture), 1).await.unwrap();
    let (id, token) = (claims[0].entry.id, claims[0].token);
    store
        .mark_send_started(id, token, None, LATER_MS)
        .await
        .unwrap();
    let sent = OutboxUpdate::Sent(Delivered {
        chat: "C1".to_owned(),
        message_id: "p0".to_owned(),
        sent_at_ms: LATER_MS,
        shown: None,
    });
    store.update_post(id, token, sent, LATER_MS).await.unwrap();
}

#[tokio::test]
async fn an_earlier_answer_is_kept_where_its_question_is_and_nowhere_else() {
    for keep_revisions in [true, false] {
        for is_posted in [true, false] {
            let case = format!("{keep_revisions} {is_posted}");
            let fixture = Fixture::new().await;
            ask(&fixture, said("1", "when?"), true).await;
            answer(&fixture, "zebra").await;
            if is_posted {
                post(&fixture).await;
            }
            let edit = Said {
                edit_marker: Some("1700000603"),
                ..said("1", "where?")
            };
            ask(&fixture, edit, keep_revisions).await;
            answer(&fixture, "lion").await;
            let kept: Vec<String> = fixture
                .column("SELECT content FROM revisions ORDER BY turn_seq")
                .await;
            let posts = "SELECT count(*) FROM outbox WHERE instr(payload, 'zebra')";
            assert_eq!(fixture.value::<i64>(posts).await, 0, "{case}");
            if keep_revisions {
                assert_eq!(kept, ["when?", "zebra"], "{case}");
            } else {
                assert_eq!(kept, [] as [&str; 0], "{case}");
                assert!(fixture.is_nowhere("zebra").await, "{case}");
            }
        }
    }
}
