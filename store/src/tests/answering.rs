//! From a captured question to the answer on the platform, and the question after it.

use vocative_contract::outbound::{Delivered, Part};

use super::*;
use crate::contract::{
    ClaimRequest, CommittedReply, LeaseOutcome, ReplyCommit, RunEnding, RunLease,
};
use crate::new_id::NewId as _;
use vocative_core::history::{History, HistoryQuery, Keep, Role};
use vocative_core::ids::{AccountId, OwnerId};
use vocative_core::outbox::OutboxUpdate;
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::turn::TurnKind;

const LATER_MS: i64 = NOW_MS + 600_000;

fn request(now_ms: i64) -> ClaimRequest {
    ClaimRequest {
        owner: OwnerId::generate(),
        lease_ms: 30_000,
        now_ms,
        accounts: (1..100).map(AccountId).collect(),
    }
}

/// The history that the run is answered from.
async fn history(fixture: &Fixture, run: &ClaimedRun) -> History {
    let query = HistoryQuery {
        conversation: run.run.conversation,
        agent: run.run.agent.clone(),
        as_of_seq: Some(run.as_of_seq),
        run: Some(run.run.id),
        triggers: run.run.triggers.clone(),
        keep: Keep::Involved,
        max_turns: 100,
        since_ms: None,
        scope: None,
        parent_turns: 10,
        ambient_turns: 0,
        summaries: None,
        thread_answers: true,
        made_by_ms: None,
    };
    fixture.store.history(query).await.unwrap()
}

fn shown(history: &History) -> Vec<(&str, Role)> {
    let turns = history.turns.iter();
    turns
        .map(|read| (read.turn.content.as_str(), read.role))
        .collect()
}

/// Commits an answer.
async fn commit(fixture: &Fixture, run: &ClaimedRun, text: &str) -> CommittedReply {
    let route = fixture.store.reply_route(run.run.id).await.unwrap();
    let reply = ReplyCommit {
        verdicts: Vec::new(),
        run: run.run.id,
        token: run.token,
        agent: run.run.agent.clone(),
        speaker: run.run.agent.clone(),
        speaker_display_name: "Helper".to_owned(),
        before: Vec::new(),
        values: None,
        text: text.to_owned(),
        kind: TurnKind::Message,
        ending: RunEnding::Done,
        parts: vec![Part::plain(text)],
        target: route.target,
        live_settle_ms: 0,
        tokens: None,
        usage: Usage::default(),
        now_ms: run.as_of_ms + 1,
    };
    fixture.store.commit_reply(reply).await.unwrap()
}

/// Answers a run, and sends the answer as that message.
async fn answer(fixture: &Fixture, run: &ClaimedRun, text: &str, message_id: &str) {
    let committed = commit(fixture, run, text).await;
    assert!(matches!(committed, CommittedReply::Written { .. }));
    let now_ms = run.as_of_ms + 2;
    let posts = fixture.store.claim_posts(request(now_ms), 9).await.unwrap();
    let (entry, token) = (&posts[0].entry, posts[0].token);
    let delivered = Delivered {
        chat: entry.target.chat.clone(),
        message_id: message_id.to_owned(),
        sent_at_ms: now_ms,
        shown: None,
    };
    let started = fixture.store.mark_send_started(entry.id, token, now_ms);
    assert_eq!(started.await.unwrap(), LeaseOutcome::Written);
    let sent = OutboxUpdate::Sent(delivered);
    let sent = fixture.store.update_post(entry.id, token, sent, now_ms);
    assert_eq!(sent.await.unwrap(), LeaseOutcome::Written);
}

async fn claim(fixture: &Fixture, now_ms: i64) -> ClaimedRun {
    let claimed = fixture
        .store
        .claim_run(request(now_ms), Default::default())
        .await
        .unwrap();
    claimed.unwrap()
}

#[tokio::test]
async fn an_answer_waits_for_the_disk_only_for_what_a_restart_could_not_make_good() {
    let fixture = Fixture::new().await;
    let syncs = || fixture.store.work().syncs;
    let before = syncs();
    fixture.hear_for(&["helper"], said("1", "question")).await;
    assert_eq!(syncs() - before, 1, "the question is captured");
    let run = claim(&fixture, LATER_MS).await;
    let step = fixture.store.record_step(
        run.run.id,
        run.token,
        1,
        "{}".to_owned(),
        Usage::default(),
        LATER_MS,
    );
    assert_eq!(step.await.unwrap(), LeaseOutcome::Written);
    assert_eq!(syncs() - before, 1, "a lease and a step ride");
    answer(&fixture, &run, "answer", "100").await;
    assert_eq!(
        syncs() - before,
        4,
        "the reply, the start of its send and its outcome are on disk, each before the next"
    );
}

#[tokio::test]
async fn an_answer_that_opens_a_thread_is_followed_up_there() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "unrelated")).await;
    fixture.hear_for(&["helper"], said("2", "earlier")).await;
    let earlier = claim(&fixture, LATER_MS).await;
    answer(&fixture, &earlier, "noted", "100").await;
    let opening = |_: &MessageFacts| Verdict {
        opens_thread: true,
        ..admitted(&["helper"])
    };
    fixture.judge(said("3", "question"), opening).await;

    let first = claim(&fixture, LATER_MS + 10).await;
    let expected = [
        ("earlier", Role::Parent),
        ("noted", Role::Parent),
        ("question", Role::Trigger),
    ];
    assert_eq!(shown(&history(&fixture, &first).await), expected);
    let route = fixture.store.reply_route(first.run.id).await.unwrap();
    assert_eq!(route.target.thread.as_deref(), Some("3"));
    answer(&fixture, &first, "answer", "101").await;

    let follow_up = Said {
        thread: Some("3"),
        ..said("4", "and then?")
    };
    fixture.hear_for(&["helper"], follow_up).await;
    let second = claim(&fixture, LATER_MS + 20).await;
    assert_eq!(second.run.conversation, first.run.conversation);
    let expected = [
        ("earlier", Role::Parent),
        ("noted", Role::Parent),
        ("question", Role::Root),
        ("answer", Role::Kept),
        ("and then?", Role::Trigger),
    ];
    assert_eq!(shown(&history(&fixture, &second).await), expected);
}

#[tokio::test]
async fn a_reply_to_an_answer_finds_its_agent_even_if_it_is_heard_first() {
    let fixture = Fixture::new().await;
    fixture.hear_for(&["helper"], said("1", "question")).await;
    let early = Said {
        reply_to: Some("100"),
        ..said("2", "quick reply")
    };
    fixture.hear(early).await;
    let run = claim(&fixture, LATER_MS).await;
    answer(&fixture, &run, "answer", "100").await;
    let turns = fixture.turns().await;
    assert_eq!(turns[1].reply_to, Some(turns[2].id));

    let late = Said {
        reply_to: Some("100"),
        ..said("3", "reply")
    };
    let facts = fixture.facts(late).await;
    assert_eq!(facts.replies_to_agent, Some(agent("helper")));
}

#[tokio::test]
async fn a_question_deleted_while_it_is_answered_gets_no_answer() {
    let fixture = Fixture::new().await;
    fixture.hear_for(&["helper"], said("1", "question")).await;
    let run = claim(&fixture, LATER_MS).await;
    let deleted = fixture
        .store
        .capture_delete(fixture.account, "C1", "1", LATER_MS + 1);
    deleted.await.unwrap();
    let lease = fixture
        .store
        .extend_run(run.run.id, run.token, LATER_MS + 60_000)
        .await
        .unwrap();
    assert_eq!(lease, RunLease::CancelRequested);
    let committed = commit(&fixture, &run, "too late").await;
    assert_eq!(committed, CommittedReply::Cancelled);
    assert_eq!(fixture.contents().await, [""]);
    assert!(
        fixture
            .column::<i64>("SELECT id FROM outbox")
            .await
            .is_empty()
    );
}
