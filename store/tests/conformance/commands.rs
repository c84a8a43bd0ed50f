//! Commands that people give: what each does once, and the signs beside questions.

use vocative_contract::envelope::{ChatKind, Place, SenderKind};
use vocative_contract::outbound::Part;
use vocative_core::addressing::{AckReaction, RunVerdict, Verdict};
use vocative_core::command::{CommandVerdict, Effect, Inquiry, OpenInquiry};
use vocative_core::coverage::Keep;
use vocative_core::history::HistoryQuery;
use vocative_core::ids::{ConversationId, ErasureId, LeaseToken};
use vocative_core::job::{ClaimedJob, Job, JobKind};
use vocative_core::run::{ClaimedRun, RunState, StopCause, Stopping};
use vocative_core::turn::{Turn, Visibility};
use vocative_store::NewId as _;
use vocative_store::commands::CommandOutcome;
use vocative_store::contract::CommittedReply;

use crate::jobs::claim;
use crate::said::{NOW_MS, Said, admitted, agent, said};
use crate::scene::{LEASE_MS, Scene, target};

async fn give(scene: &Scene, id: &str, at_ms: i64, effect: Effect) -> CommandOutcome {
    let verdict = CommandVerdict {
        effect,
        ..CommandVerdict::told("done")
    };
    scene.command(id, at_ms, verdict).await
}

fn afresh() -> Effect {
    Effect::BeginAfresh {
        agents: vec![agent("helper")],
    }
}

fn query(room: ConversationId, run: Option<&ClaimedRun>) -> HistoryQuery {
    HistoryQuery {
        conversation: room,
        agent: agent("helper"),
        as_of_seq: run.map(|run| run.as_of_seq),
        run: run.map(|run| run.run.id),
        triggers: run.map_or_else(Vec::new, |run| run.run.triggers.clone()),
        keep: Keep::Involved,
        max_turns: 100,
        since_ms: None,
        scope: None,
        parent_turns: 10,
        ambient_turns: 5,
        summaries: None,
        thread_answers: true,
        made_by_ms: None,
    }
}

async fn read(scene: &Scene, place: &str, run: Option<&ClaimedRun>) -> Vec<String> {
    let room = scene.conversation(place).await;
    let history = scene.store.history(query(room, run)).await.unwrap();
    let texts = history.turns.into_iter().map(|read| read.turn.content);
    texts.collect()
}

#[tokio::test]
async fn a_command_is_carried_out_once_however_often_it_is_told() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 5).await;
    assert!(give(&scene, "t1", 100, afresh()).await.is_new);
    scene.address("C1", "between", 150).await;
    assert_eq!(
        give(&scene, "t1", 200, afresh()).await,
        CommandOutcome::default()
    );
    assert_eq!(read(&scene, "C1", None).await, ["between"]);
    // Its text goes once it was told.
    let pending = scene.store.status(300).await.unwrap().posts_pending;
    assert_eq!(pending, 1);
    let told = scene.claim_posts(300).await.remove(0).entry;
    assert_eq!(told.operation.name(), "ephemeral");
}

#[tokio::test]
async fn after_a_fresh_start_nothing_older_is_read_and_everything_is_kept() {
    let scene = Scene::open().await;
    scene.say("C1", "overheard", 5).await;
    scene.address("C1", "old", 10).await;
    give(&scene, "t1", 1_000, afresh()).await;
    assert_eq!(read(&scene, "C1", None).await, [""; 0]);
    let verdict = Verdict {
        runs: RunVerdict::TooOld,
        ..admitted(&["helper"])
    };
    let mut new = scene.next_message("C1", "new", 20, verdict);
    new.reply_to = Some("m1".to_owned());
    scene.store.capture_message(new).await.unwrap();
    // Not what it replies to, nor what comes late and is older.
    scene.address("C1", "late", 9).await;
    assert_eq!(read(&scene, "C1", None).await, ["new"]);
    assert_eq!(scene.turns().await.len(), 4);
}

/// As `vocative prompt --at` shows the past.
#[tokio::test]
async fn as_of_a_time_before_a_fresh_start_everything_is_read() {
    let scene = Scene::open().await;
    let room = scene.address("C1", "old", 10).await.conversation;
    give(&scene, "t1", 1_000, afresh()).await;
    for (made_by_ms, expected) in [(Some(999), 1), (Some(1_000), 0), (None, 0)] {
        let query = HistoryQuery {
            made_by_ms,
            ..query(room, None)
        };
        let history = scene.store.history(query).await.unwrap();
        assert_eq!(history.turns.len(), expected, "{made_by_ms:?}");
        assert_eq!(history.began_afresh, expected == 0);
    }
}

#[tokio::test]
async fn a_thread_starts_afresh_with_its_room_and_a_later_one_reads_on() {
    let scene = Scene::open().await;
    scene.address("C1", "root", 10).await;
    scene.address("C1/m0", "in it", 20).await;
    give(&scene, "t1", 1_000, afresh()).await;
    scene.address("C1/m0", "again", 30).await;
    assert_eq!(read(&scene, "C1/m0", None).await, ["again"]);
    let opening = Verdict {
        opens_thread: true,
        ..admitted(&["helper"])
    };
    scene.say_with("C1", "next", 40, opening).await;
    assert_eq!(read(&scene, "C1/m3", None).await, ["next"]);
}

#[tokio::test]
async fn a_run_that_was_at_work_reads_the_same_again_after_a_fresh_start() {
    let scene = Scene::open().await;
    scene.address("C1", "before", 10).await;
    scene.ask("C1", "question", 20).await;
    let run = scene.claim(100).await.unwrap();
    give(&scene, "t1", 200, afresh()).await;
    let again = scene.claim(200 + LEASE_MS).await.unwrap();
    assert_eq!(run.run.id, again.run.id);
    let texts = read(&scene, "C1", Some(&again)).await;
    assert_eq!(texts, ["before", "question"]);
}

#[tokio::test]
async fn fresh_starts_and_claims_are_ordered_by_their_commits_whatever_the_clock_said() {
    let scene = Scene::open().await;
    scene.address("C1", "before", 10).await;
    give(&scene, "t1", 200, afresh()).await;
    scene.ask("C1", "question", 20).await;
    // Its worker read the clock, and then waited for the store while somebody began afresh.
    let run = scene.claim(100).await.unwrap();
    assert_eq!(read(&scene, "C1", Some(&run)).await, ["question"]);
    // A clock that was set back since gives the run nothing else to read.
    give(&scene, "t2", 50, afresh()).await;
    let again = scene.claim(100 + LEASE_MS).await.unwrap();
    assert_eq!(run.run.id, again.run.id);
    assert_eq!(read(&scene, "C1", Some(&again)).await, ["question"]);
    assert_eq!(read(&scene, "C1", None).await, [""; 0]);
}

/// How many inquiries wait.
async fn open(scene: &Scene) -> usize {
    let jobs = scene.store.jobs(100).await.unwrap().into_iter();
    let name = JobKind::AnswerInquiry.name();
    jobs.filter(|job| job.kind == name).count()
}

/// Claims the inquiry that is due, if there is one.
async fn claim_inquiry(scene: &Scene, now_ms: i64) -> Option<(ClaimedJob, OpenInquiry)> {
    let claimed = claim(&scene.store, &[scene.account], now_ms).await;
    let claimed = *claimed.first()?;
    let Job::AnswerInquiry { inquiry } = claimed.job else {
        panic!("{claimed:?}");
    };
    let inquiry = scene.store.inquiry(inquiry).await.unwrap();
    Some((claimed, inquiry.unwrap()))
}

#[tokio::test]
async fn an_inquiry_is_answered_once() {
    let scene = Scene::open().await;
    let effect = Effect::Inquire {
        inquiry: Inquiry::Context,
        agent: agent("helper"),
    };
    scene.say("C1", "hello", 5).await;
    give(&scene, "t1", 100, effect).await;
    let (claimed, inquiry) = claim_inquiry(&scene, 100).await.unwrap();
    assert_eq!(inquiry.conversation, scene.conversation("C1").await);
    assert_eq!(inquiry.person.as_deref(), Some("U1"));
    let parts = || vec![Part::plain("zebra")];
    let answer = |token| {
        let inquiry = inquiry.clone();
        scene
            .store
            .answer_inquiry((claimed.id, token), inquiry, parts(), 200)
    };
    let stale = LeaseToken::generate();
    assert!(!answer(stale).await.unwrap());
    assert!(answer(claimed.token).await.unwrap());
    assert!(!answer(claimed.token).await.unwrap());
    assert!(claim_inquiry(&scene, 300).await.is_none());
    // What the command told, and the answer.
    let pending = scene.store.status(300).await.unwrap().posts_pending;
    assert_eq!(pending, 2);
    let mut texts = Vec::new();
    for at_ms in [300, 301] {
        let claimed = scene.claim_posts(at_ms).await;
        for claim in &claimed {
            texts.push(claim.entry.part.text.clone());
            scene.send(claim, &format!("p{}", texts.len()), at_ms).await;
        }
    }
    assert_eq!(texts, ["done", "zebra"]);
}

#[tokio::test]
async fn an_inquiry_that_is_too_old_is_not_answered() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 5).await;
    let inquire = || Effect::Inquire {
        inquiry: Inquiry::Status,
        agent: agent("helper"),
    };
    give(&scene, "t1", 100, inquire()).await;
    // Asked again, it is as young as that.
    give(&scene, "t2", 200, inquire()).await;
    assert_eq!(open(&scene).await, 1);
    assert!(claim_inquiry(&scene, 900_201).await.is_none());
    assert_eq!(open(&scene).await, 0);
}

#[tokio::test]
async fn what_people_want_forgotten_is_ordered_with_the_command_and_carried_out() {
    let scene = Scene::open().await;
    scene.say("C1", "zebra", 10).await;
    scene.say("C1", "other", 20).await;
    let texts = async || {
        let mut turns = scene.turns().await;
        turns.retain(|turn: &Turn| turn.visibility == Visibility::Room);
        let texts: Vec<String> = turns.into_iter().map(|turn| turn.content).collect();
        texts
    };
    let message_id = "m0".to_owned();
    let outcome = give(&scene, "t1", 100, Effect::ForgetMessage { message_id }).await;
    assert_eq!(texts().await, ["zebra", "other"]);
    let carry = |ids: Vec<ErasureId>| {
        let store = scene.store.clone();
        async move { store.carry_out_all(&ids, false, || 200).await.unwrap() }
    };
    carry(outcome.erasures).await;
    assert_eq!(texts().await, ["other"]);
    let outcome = give(&scene, "t2", 300, Effect::ForgetPerson).await;
    assert_eq!(outcome.erasures.len(), 1);
    carry(outcome.erasures).await;
    assert_eq!(texts().await, [""; 0]);
    scene.say("C1", "third", 400).await;
    assert_eq!(texts().await, ["third"]);
    let outcome = give(&scene, "t3", 500, Effect::ForgetChat).await;
    carry(outcome.erasures).await;
    assert_eq!(texts().await, [""; 0]);
}

#[tokio::test]
async fn a_stop_of_a_chat_reaches_its_threads_and_only_its_person() {
    let scene = Scene::open().await;
    scene.ask("C1", "one", 10).await;
    scene.say("C1", "root", 20).await;
    scene.ask("C1/m1", "two", 30).await;
    let other = CommandVerdict {
        effect: Effect::Stop {
            of_everybody: false,
        },
        ..CommandVerdict::told("done")
    };
    let outcome = scene.command_of("U2", "t1", 100, other).await;
    assert_eq!(outcome.cancelled_runs, []);
    let own = Effect::Stop {
        of_everybody: false,
    };
    let outcome = give(&scene, "t2", 100, own).await;
    assert_eq!(outcome.cancelled_runs.len(), 2);
}

fn asks_with_sign() -> Verdict {
    Verdict {
        reaction: Some(AckReaction {
            emoji: "eyes".to_owned(),
            stays: false,
        }),
        ..admitted(&["helper"])
    }
}

/// Operation and text of the posts that may go.
async fn claimed(scene: &Scene, now_ms: i64) -> Vec<String> {
    let claimed = scene.claim_posts(now_ms).await.into_iter();
    let named = claimed.map(|claim| {
        let entry = claim.entry;
        format!("{} {}", entry.operation.name(), entry.part.text)
    });
    named.collect()
}

/// The signs beside questions, and where they stand.
async fn signs(scene: &Scene) -> Vec<String> {
    let posts = scene.posts().await.into_iter();
    let signs = posts.filter(|post| post.operation.name() != "post");
    let told = signs.map(|post| format!("{} {}", post.operation.name(), post.state.name()));
    told.collect()
}

async fn answer(scene: &Scene, now_ms: i64) {
    let run = scene.claim(now_ms).await.unwrap();
    let mut reply = scene.answer(&run, "yes").await;
    reply.now_ms = now_ms;
    let written = scene.store.commit_reply(reply).await.unwrap();
    assert!(matches!(written, CommittedReply::Written { .. }));
}

#[tokio::test]
async fn a_sign_goes_beside_the_answer_and_is_taken_away_with_it() {
    let scene = Scene::open().await;
    scene.judge(said("1", "q"), |_| asks_with_sign()).await;
    // Told again, it is one sign.
    scene.judge(said("1", "q"), |_| asks_with_sign()).await;
    let later_ms = NOW_MS + 1_000_000;
    assert_eq!(claimed(&scene, later_ms).await, ["react eyes"]);
    answer(&scene, later_ms).await;
    // The sign still holds its lease, and the answer does not wait for it.
    assert_eq!(claimed(&scene, later_ms).await, ["post yes"]);
    assert_eq!(signs(&scene).await, ["react leased", "unreact pending"]);
}

#[tokio::test]
async fn a_sign_that_was_not_given_is_not_given_after_the_answer() {
    let scene = Scene::open().await;
    scene.judge(said("1", "q"), |_| asks_with_sign()).await;
    answer(&scene, NOW_MS + 1_000_000).await;
    assert_eq!(signs(&scene).await, ["react dead"]);
    assert_eq!(scene.store.stuck_posts(10).await.unwrap(), []);
}

#[tokio::test]
async fn bots_are_counted_in_a_row_until_a_person_speaks() {
    let scene = Scene::open().await;
    let count = async || scene.facts(said("99", "?")).await.bot_exchanges;
    let bot = |id, text| {
        let mut message =
            said(id, text).message(scene.account, Box::new(|_| admitted(&["helper"])));
        message.sender.kind = SenderKind::Bot;
        scene.store.capture_message(message)
    };
    bot("1", "a").await.unwrap();
    bot("2", "b").await.unwrap();
    bot("2", "b").await.unwrap();
    assert_eq!(count().await, 2);
    assert_eq!(scene.facts(said("3", "c")).await.bot_exchanges, 2);
    scene.hear(said("4", "a person")).await;
    assert_eq!(count().await, 0);
    // One that is posted as a beginning and edited until it addresses is one, too.
    let growing = |edit_marker, agents: &'static [&'static str]| {
        let said = Said {
            edit_marker,
            text: if edit_marker.is_some() {
                "helper!"
            } else {
                "…"
            },
            ..said("5", "")
        };
        let mut message = said.message(scene.account, Box::new(|_| admitted(agents)));
        message.sender.kind = SenderKind::Bot;
        scene.store.capture_message(message)
    };
    growing(None, &[]).await.unwrap();
    assert_eq!(count().await, 0);
    for marker in ["1700000601", "1700000602"] {
        growing(Some(marker), &["helper"]).await.unwrap();
        assert_eq!(count().await, 1);
    }
}

#[tokio::test]
async fn a_run_that_was_to_stop_when_the_daemon_died_leaves_no_sign_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().join("store.sqlite"));
    let scene = Scene::open_at(path.clone()).await;
    scene.judge(said("1", "q"), |_| asks_with_sign()).await;
    let run = scene.claim(NOW_MS + 500_001).await.unwrap().run.id;
    let stopping = Stopping::from(StopCause::Stopped);
    let stopped = scene.store.cancel_run(run, stopping, NOW_MS + 500_002);
    assert!(stopped.await.unwrap());
    assert_eq!(signs(&scene).await, ["react pending"]);
    scene.store.close().await.unwrap();
    drop(scene);
    let scene = Scene::open_at(path).await;
    assert_eq!(
        scene.store.run(run).await.unwrap().state,
        RunState::Cancelled
    );
    assert_eq!(signs(&scene).await, ["react dead"]);
}

#[tokio::test]
async fn a_room_is_told_once_who_joined_it() {
    let scene = Scene::open().await;
    let join = |kind, chat: &str, is_present| {
        let place = Place {
            chat: chat.to_owned(),
            kind: Some(kind),
            ..Place::default()
        };
        let hello = Some("hello".to_owned());
        let account = scene.account;
        scene
            .store
            .record_membership(account, place, is_present, hello, NOW_MS)
    };
    for is_present in [false, true, false, true] {
        join(ChatKind::Private, "C1", is_present).await.unwrap();
    }
    join(ChatKind::Direct, "D1", true).await.unwrap();
    join(ChatKind::Broadcast, "B1", true).await.unwrap();
    let pending = scene.store.status(NOW_MS).await.unwrap().posts_pending;
    assert_eq!(pending, 1);
    assert_eq!(
        scene.claim_posts(NOW_MS + 60_000).await[0].entry.target,
        target("C1")
    );
}

#[tokio::test]
async fn an_inquiry_that_is_repeated_while_it_waits_is_one() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 5).await;
    let inquire = |inquiry| Effect::Inquire {
        inquiry,
        agent: agent("helper"),
    };
    for n in 0..50 {
        give(&scene, &format!("t{n}"), 100 + n, inquire(Inquiry::Context)).await;
    }
    give(&scene, "other", 200, inquire(Inquiry::Status)).await;
    assert_eq!(open(&scene).await, 2);
    let (claimed, first) = claim_inquiry(&scene, 300).await.unwrap();
    let parts = vec![Part::plain("zebra")];
    let lease = (claimed.id, claimed.token);
    let answered = scene.store.answer_inquiry(lease, first, parts, 300);
    assert!(answered.await.unwrap());
    give(&scene, "again", 400, inquire(Inquiry::Context)).await;
    assert_eq!(open(&scene).await, 2);
}

/// Somebody says `/new` in the chat C1, as on Telegram.
async fn say_new(scene: &Scene, said_at_ms: i64, heard_at_ms: i64) {
    let verdict = Verdict {
        command: Some(CommandVerdict {
            effect: afresh(),
            answer: None,
            ..CommandVerdict::told("")
        }),
        ..admitted(&[])
    };
    let mut message = scene.next_message("C1", "/new", said_at_ms, verdict);
    message.received_at_ms = heard_at_ms;
    scene.store.capture_message(message).await.unwrap();
}

#[tokio::test]
async fn a_fresh_start_that_is_heard_of_late_gives_back_nothing_of_what_a_newer_one_put_away() {
    let scene = Scene::open().await;
    scene.address("C1", "between", 20).await;
    // The one that was said at 30 is heard of before that of 10.
    say_new(&scene, 30, 100).await;
    say_new(&scene, 10, 200).await;
    scene.address("C1", "after", 40).await;
    assert_eq!(read(&scene, "C1", None).await, ["after"]);
}

#[tokio::test]
async fn an_answer_to_what_was_asked_before_a_fresh_start_is_not_read_after_it() {
    let scene = Scene::open().await;
    scene.ask("C1", "old question", 10).await;
    let run = scene.claim(100).await.unwrap();
    say_new(&scene, 30, 150).await;
    let reply = scene.answer(&run, "old answer").await;
    scene.store.commit_reply(reply).await.unwrap();
    scene.ask("C1", "new question", 40).await;
    let next = scene.claim(200).await.unwrap();
    assert_eq!(read(&scene, "C1", Some(&next)).await, ["new question"]);
    let reply = scene.answer(&next, "new answer").await;
    scene.store.commit_reply(reply).await.unwrap();
    let texts = read(&scene, "C1", None).await;
    assert_eq!(texts, ["new question", "new answer"]);
}
