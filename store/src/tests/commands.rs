use super::jobs::claim;
use super::*;
use crate::acts::commands::{CommandOutcome, NewCommand};
use crate::contract::{CommittedReply, LeaseOutcome, NonMessage};
use crate::new_id::NewId as _;
use crate::scene::{self, LEASE_MS, Room, Scene};
use vocative_core::command::{CommandVerdict, Effect, Inquiry, OpenInquiry};
use vocative_core::history::{HistoryQuery, Keep};
use vocative_core::ids::OutboxId;
use vocative_core::job::{ClaimedJob, Job};
use vocative_core::outbox::OutboxUpdate;
use vocative_core::run::ClaimedRun;

fn command(id: &str, at_ms: i64, account: AccountId, effect: Effect) -> NewCommand {
    let verdict = CommandVerdict {
        effect,
        ..CommandVerdict::told("done")
    };
    NewCommand {
        event: NonMessage {
            account,
            id: id.to_owned(),
            kind: "command",
            sender_id: "U1".to_owned(),
            chat: Some("C1".to_owned()),
            text: "/vocative".to_owned(),
            received_at_ms: at_ms,
        },
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        sender: Sender {
            id: "U1".to_owned(),
            display_name: None,
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        judge: Box::new(move |_| Some(verdict)),
    }
}

async fn give(scene: &Scene, id: &str, at_ms: i64, effect: Effect) -> CommandOutcome {
    let command = command(id, at_ms, scene.account, effect);
    scene.store.capture_command(command).await.unwrap()
}

fn afresh() -> Effect {
    Effect::BeginAfresh {
        agents: vec![scene::agent()],
    }
}

fn query(room: &Room, run: Option<&ClaimedRun>) -> HistoryQuery {
    HistoryQuery {
        conversation: room.id,
        agent: scene::agent(),
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

async fn read(scene: &Scene, room: &Room, run: Option<&ClaimedRun>) -> Vec<String> {
    let history = scene.store.history(query(room, run)).await.unwrap();
    let texts = history.turns.into_iter().map(|read| read.turn.content);
    texts.collect()
}

#[tokio::test]
async fn a_command_is_carried_out_once_however_often_it_is_told() {
    let scene = Scene::open().await;
    scene.room("C1").await;
    assert!(give(&scene, "t1", 100, afresh()).await.is_new);
    assert_eq!(
        give(&scene, "t1", 200, afresh()).await,
        CommandOutcome::default()
    );
    let rows = "SELECT (SELECT count(*) FROM fresh_starts) * 10 + (SELECT count(*) FROM outbox)";
    assert_eq!(scene.value::<i64>(rows).await, 11);
    // Its text goes once it was told.
    let operation = "SELECT operation FROM outbox";
    assert_eq!(scene.value::<String>(operation).await, "ephemeral");
}

#[tokio::test]
async fn after_a_fresh_start_nothing_older_is_read_and_everything_is_kept() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.say(&room, "overheard", 5).await;
    let old = scene.say(&room, "old", 10).await;
    scene.address(&room, old).await;
    give(&scene, "t1", 1_000, afresh()).await;
    assert_eq!(read(&scene, &room, None).await, [""; 0]);
    let new = scene.say_in_reply(&room, "new", 20, old).await;
    scene.address(&room, new).await;
    // Not what it replies to, nor what comes late and is older.
    let late = scene.say(&room, "late", 9).await;
    scene.address(&room, late).await;
    assert_eq!(read(&scene, &room, None).await, ["new"]);
    let kept: i64 = scene.value("SELECT count(*) FROM turns").await;
    assert_eq!(kept, 4);
}

/// As `vocative prompt --at` shows the past.
#[tokio::test]
async fn as_of_a_time_before_a_fresh_start_everything_is_read() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let old = scene.say(&room, "old", 10).await;
    scene.address(&room, old).await;
    give(&scene, "t1", 1_000, afresh()).await;
    for (made_by_ms, expected) in [(Some(999), 1), (Some(1_000), 0), (None, 0)] {
        let query = HistoryQuery {
            made_by_ms,
            ..query(&room, None)
        };
        let history = scene.store.history(query).await.unwrap();
        assert_eq!(history.turns.len(), expected, "{made_by_ms:?}");
        assert_eq!(history.began_afresh, expected == 0);
    }
}

#[tokio::test]
async fn a_thread_starts_afresh_with_its_room_and_a_later_one_reads_on() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let root = scene.say(&room, "root", 10).await;
    scene.address(&room, root).await;
    let thread = scene.thread(&room, root).await;
    let asked = scene.say(&thread, "in it", 20).await;
    scene.address(&thread, asked).await;
    give(&scene, "t1", 1_000, afresh()).await;
    let again = scene.say(&thread, "again", 30).await;
    scene.address(&thread, again).await;
    assert_eq!(read(&scene, &thread, None).await, ["again"]);
    let next = scene.say(&room, "next", 40).await;
    scene.address(&room, next).await;
    let later = scene.thread(&room, next).await;
    assert_eq!(read(&scene, &later, None).await, ["next"]);
}

#[tokio::test]
async fn a_fresh_start_that_is_heard_of_late_gives_back_nothing_of_what_a_newer_one_put_away() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let between = scene.say(&room, "between", 20).await;
    scene.address(&room, between).await;
    // The one that was said at 30 is heard of before that of 10.
    for (at_ms, said_at_ms) in [(100, 30), (200, 10)] {
        let begin = move |connection: &Connection| {
            let sql = "INSERT INTO fresh_starts SELECT id, ?1, ?2, ?3, 0, 0 FROM conversations";
            Ok(connection.execute(sql, (scene::agent(), at_ms, said_at_ms))?)
        };
        assert_eq!(scene.write(begin).await, 1);
    }
    let after = scene.say(&room, "after", 40).await;
    scene.address(&room, after).await;
    assert_eq!(read(&scene, &room, None).await, ["after"]);
}

#[tokio::test]
async fn a_run_that_was_at_work_reads_the_same_again_after_a_fresh_start() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let before = scene.say(&room, "before", 10).await;
    scene.address(&room, before).await;
    scene.ask(&room, "question", 20).await;
    let run = scene.claim(100).await.unwrap();
    give(&scene, "t1", 200, afresh()).await;
    let again = scene.claim(200 + LEASE_MS).await.unwrap();
    assert_eq!(run.run.id, again.run.id);
    let texts = read(&scene, &room, Some(&again)).await;
    assert_eq!(texts, ["before", "question"]);
}

#[tokio::test]
async fn fresh_starts_and_claims_are_ordered_by_their_commits_whatever_the_clock_said() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let before = scene.say(&room, "before", 10).await;
    scene.address(&room, before).await;
    give(&scene, "t1", 200, afresh()).await;
    scene.ask(&room, "question", 20).await;
    // Its worker read the clock, and then waited for the store while somebody began afresh.
    let run = scene.claim(100).await.unwrap();
    assert_eq!(read(&scene, &room, Some(&run)).await, ["question"]);
    // A clock that was set back since gives the run nothing else to read.
    give(&scene, "t2", 50, afresh()).await;
    let again = scene.claim(100 + LEASE_MS).await.unwrap();
    assert_eq!(run.run.id, again.run.id);
    assert_eq!(read(&scene, &room, Some(&again)).await, ["question"]);
    assert_eq!(read(&scene, &room, None).await, [""; 0]);
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
    let room = scene.room("C1").await;
    let effect = Effect::Inquire {
        inquiry: Inquiry::Context,
        agent: scene::agent(),
    };
    give(&scene, "t1", 100, effect).await;
    let (claimed, inquiry) = claim_inquiry(&scene, 100).await.unwrap();
    assert_eq!(inquiry.conversation, room.id);
    assert_eq!(inquiry.person.as_deref(), Some("U1"));
    let parts = || vec![vocative_contract::outbound::Part::plain("zebra")];
    let answer = |token| {
        let inquiry = inquiry.clone();
        scene
            .store
            .answer_inquiry((claimed.id, token), inquiry, parts(), 200)
    };
    let stale = vocative_core::ids::LeaseToken::generate();
    assert!(!answer(stale).await.unwrap());
    assert!(answer(claimed.token).await.unwrap());
    assert!(!answer(claimed.token).await.unwrap());
    assert!(claim_inquiry(&scene, 300).await.is_none());
    let posts: i64 = scene
        .value("SELECT count(*) FROM outbox WHERE instr(payload, 'zebra')")
        .await;
    assert_eq!(posts, 1);
}

#[tokio::test]
async fn an_inquiry_that_is_too_old_is_not_answered() {
    let scene = Scene::open().await;
    scene.room("C1").await;
    let inquire = || Effect::Inquire {
        inquiry: Inquiry::Status,
        agent: scene::agent(),
    };
    give(&scene, "t1", 100, inquire()).await;
    // Asked again, it is as young as that.
    give(&scene, "t2", 200, inquire()).await;
    let open = async || scene.value::<i64>("SELECT count(*) FROM inquiries").await;
    assert_eq!(open().await, 1);
    assert!(claim_inquiry(&scene, 900_201).await.is_none());
    assert_eq!(open().await, 0);
}

#[tokio::test]
async fn what_was_told_to_one_person_is_not_kept_once_it_was_told() {
    let scene = Scene::open().await;
    scene.room("C1").await;
    give(&scene, "t1", 100, Effect::Nothing).await;
    let request = scene.request(200);
    let claimed = scene
        .store
        .claim_posts(request, 10)
        .await
        .unwrap()
        .remove(0);
    let (id, token) = (claimed.entry.id, claimed.token);
    scene.store.mark_send_started(id, token, 200).await.unwrap();
    let delivered = vocative_contract::outbound::Delivered {
        chat: "C1".to_owned(),
        message_id: "1.2".to_owned(),
        sent_at_ms: 200,
        shown: None,
    };
    let sent = OutboxUpdate::Sent(delivered);
    let written = scene.store.update_post(id, token, sent, 200).await.unwrap();
    assert_eq!(written, LeaseOutcome::Written);
    let held: i64 = scene
        .value(
            "SELECT (SELECT count(*) FROM outbox WHERE instr(payload, 'done'))
                     + (SELECT count(*) FROM messages)",
        )
        .await;
    assert_eq!(held, 0);
}

#[tokio::test]
async fn what_people_want_forgotten_is_ordered_with_the_command_and_carried_out() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let said = scene.say(&room, "zebra", 10).await;
    scene.say(&room, "other", 20).await;
    let message_id = format!("m{}", said.seq);
    let texts = || async {
        let texts: String = scene
            .value("SELECT group_concat(content, '+') FROM turns WHERE visibility = 'room'")
            .await;
        texts
    };
    let outcome = give(&scene, "t1", 100, Effect::ForgetMessage { message_id }).await;
    assert_eq!(texts().await, "zebra+other");
    let carry = |ids: Vec<vocative_core::ids::ErasureId>| {
        let store = scene.store.clone();
        async move { store.carry_out_all(&ids, false, || 200).await.unwrap() }
    };
    carry(outcome.erasures).await;
    assert_eq!(texts().await, "other");
    let outcome = give(&scene, "t2", 300, Effect::ForgetPerson).await;
    assert_eq!(outcome.erasures.len(), 1);
    carry(outcome.erasures).await;
    let left: i64 = scene
        .value("SELECT count(*) FROM turns WHERE visibility = 'room'")
        .await;
    assert_eq!(left, 0);
    scene.say(&room, "third", 400).await;
    let outcome = give(&scene, "t3", 500, Effect::ForgetChat).await;
    carry(outcome.erasures).await;
    let left: i64 = scene
        .value("SELECT count(*) FROM turns WHERE visibility = 'room'")
        .await;
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_stop_of_a_chat_reaches_its_threads_and_only_its_person() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "one", 10).await;
    let root = scene.say(&room, "root", 20).await;
    let thread = scene.thread(&room, root).await;
    scene.ask(&thread, "two", 30).await;
    let other = CommandVerdict {
        effect: Effect::Stop {
            of_everybody: false,
        },
        ..CommandVerdict::told("done")
    };
    let mut by_bob = command("t1", 100, scene.account, Effect::Nothing);
    by_bob.sender.id = "U2".to_owned();
    by_bob.judge = Box::new(|_| Some(other));
    let outcome = scene.store.capture_command(by_bob).await.unwrap();
    assert_eq!(outcome.cancelled_runs, []);
    let own = Effect::Stop {
        of_everybody: false,
    };
    let outcome = give(&scene, "t2", 100, own).await;
    assert_eq!(outcome.cancelled_runs.len(), 2);
}

fn asks_with_sign() -> Verdict {
    Verdict {
        reaction: Some(vocative_core::addressing::AckReaction {
            emoji: "eyes".to_owned(),
            stays: false,
        }),
        ..admitted(&["helper"])
    }
}

async fn claim_entries(fixture: &Fixture, now_ms: i64) -> Vec<(OutboxId, String)> {
    let request = crate::contract::ClaimRequest {
        owner: vocative_core::ids::OwnerId::generate(),
        lease_ms: 1,
        now_ms,
        accounts: vec![fixture.account],
    };
    let claimed = fixture.store.claim_posts(request, 10).await.unwrap();
    let named = claimed.into_iter().map(|claim| {
        let entry = claim.entry;
        (
            entry.id,
            format!("{} {}", entry.operation.name(), entry.part.text),
        )
    });
    named.collect()
}

async fn answer(fixture: &Fixture, now_ms: i64) {
    let request = crate::contract::ClaimRequest {
        owner: vocative_core::ids::OwnerId::generate(),
        lease_ms: 60_000,
        now_ms,
        accounts: vec![fixture.account],
    };
    let run = fixture
        .store
        .claim_run(request, Default::default())
        .await
        .unwrap()
        .unwrap();
    let reply = crate::contract::ReplyCommit {
        verdicts: Vec::new(),
        run: run.run.id,
        token: run.token,
        agent: agent("helper"),
        speaker: agent("helper"),
        speaker_display_name: "Helper".to_owned(),
        before: Vec::new(),
        values: None,
        text: "yes".to_owned(),
        kind: vocative_core::turn::TurnKind::Message,
        ending: crate::contract::RunEnding::Done,
        parts: vec![vocative_contract::outbound::Part::plain("yes")],
        target: vocative_contract::outbound::Target {
            chat: "C1".to_owned(),
            thread: None,
            topic: None,
            reply_to: None,
        },
        tokens: None,
        usage: vocative_core::run::Usage::default(),
        live_settle_ms: 0,
        now_ms,
    };
    let written = fixture.store.commit_reply(reply).await.unwrap();
    assert!(matches!(written, CommittedReply::Written { .. }));
}

#[tokio::test]
async fn a_sign_goes_beside_the_answer_and_is_taken_away_with_it() {
    let fixture = Fixture::new().await;
    fixture.judge(said("1", "q"), |_| asks_with_sign()).await;
    // Told again, it is one sign.
    fixture.judge(said("1", "q"), |_| asks_with_sign()).await;
    let later_ms = NOW_MS + 1_000_000;
    let first = claim_entries(&fixture, later_ms).await;
    let texts: Vec<&str> = first.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["react eyes"]);
    answer(&fixture, later_ms).await;
    // The sign still holds its lease, and the answer does not wait for it.
    let next = claim_entries(&fixture, later_ms).await;
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].1, "post yes");
    let waiting: String = fixture
        .value("SELECT group_concat(operation || ' ' || state, ', ') FROM outbox WHERE operation <> 'post'")
        .await;
    assert_eq!(waiting, "react leased, unreact pending");
}

#[tokio::test]
async fn a_sign_that_was_not_given_is_not_given_after_the_answer() {
    let fixture = Fixture::new().await;
    fixture.judge(said("1", "q"), |_| asks_with_sign()).await;
    answer(&fixture, NOW_MS + 1_000_000).await;
    let signs: String = fixture
        .value(
            "SELECT group_concat(operation || ' ' || state) FROM outbox WHERE operation <> 'post'",
        )
        .await;
    assert_eq!(signs, "react dead");
    assert_eq!(fixture.store.stuck_posts(10).await.unwrap(), []);
}

#[tokio::test]
async fn bots_are_counted_in_a_row_until_a_person_speaks() {
    let fixture = Fixture::new().await;
    let count = || fixture.value::<i64>("SELECT bot_exchanges FROM chats");
    let bot = |id, text| {
        let mut message =
            said(id, text).message(fixture.account, Box::new(|_| admitted(&["helper"])));
        message.sender.kind = SenderKind::Bot;
        fixture.store.capture_message(message)
    };
    bot("1", "a").await.unwrap();
    bot("2", "b").await.unwrap();
    bot("2", "b").await.unwrap();
    assert_eq!(count().await, 2);
    assert_eq!(fixture.facts(said("3", "c")).await.bot_exchanges, 2);
    fixture.hear(said("4", "a person")).await;
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
        let mut message = said.message(fixture.account, Box::new(|_| admitted(agents)));
        message.sender.kind = SenderKind::Bot;
        fixture.store.capture_message(message)
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
    let fixture = Fixture::new().await;
    fixture.judge(said("1", "q"), |_| asks_with_sign()).await;
    fixture
        .execute("UPDATE runs SET state = 'leased', stop_cause = 'stopped'")
        .await;
    let taken = fixture
        .store
        .write(|connection| crate::acts::runs::take_back_leases_txn(connection, NOW_MS + 1));
    assert_eq!(taken.await.unwrap(), 1);
    let states = "SELECT r.state || ' ' || o.state FROM runs r, outbox o";
    assert_eq!(fixture.column::<String>(states).await, ["cancelled dead"]);
}

#[tokio::test]
async fn a_room_is_told_once_who_joined_it() {
    let fixture = Fixture::new().await;
    let join = |kind, chat: &str, is_present| {
        let place = Place {
            chat: chat.to_owned(),
            kind: Some(kind),
            ..Place::default()
        };
        let hello = Some("hello".to_owned());
        let account = fixture.account;
        fixture
            .store
            .record_membership(account, place, is_present, hello, NOW_MS)
    };
    for is_present in [false, true, false, true] {
        join(ChatKind::Private, "C1", is_present).await.unwrap();
    }
    join(ChatKind::Direct, "D1", true).await.unwrap();
    join(ChatKind::Broadcast, "B1", true).await.unwrap();
    let posts: Vec<String> = fixture.column("SELECT target FROM outbox").await;
    assert_eq!(posts, [r#"{"chat":"C1"}"#]);
}

#[tokio::test]
async fn an_answer_to_what_was_asked_before_a_fresh_start_is_not_read_after_it() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "old question", 10).await;
    let run = scene.claim(100).await.unwrap();
    // The command is a message of the room, as on Telegram.
    let command = scene.say(&room, "/new", 30).await;
    let row = room.row;
    scene
        .write(move |connection| {
            let start = "INSERT INTO fresh_starts
                         SELECT ?1, ?2, 150, sent_at_ms, ordinal, seq FROM turns WHERE seq = ?3";
            connection.execute(start, (row, scene::agent(), command.seq))?;
            let hide = "UPDATE turns SET visibility = 'timeline' WHERE seq = ?1";
            Ok(connection.execute(hide, [command.seq])?)
        })
        .await;
    let reply = scene.answer(&run, &room, "old answer");
    scene.store.commit_reply(reply).await.unwrap();
    let (_, _) = scene.ask(&room, "new question", 40).await;
    let next = scene.claim(200).await.unwrap();
    assert_eq!(read(&scene, &room, Some(&next)).await, ["new question"]);
    let reply = scene.answer(&next, &room, "new answer");
    scene.store.commit_reply(reply).await.unwrap();
    let texts = read(&scene, &room, None).await;
    assert_eq!(texts, ["new question", "new answer"]);
}

#[tokio::test]
async fn an_inquiry_that_is_repeated_while_it_waits_is_one() {
    let scene = Scene::open().await;
    scene.room("C1").await;
    let inquire = |inquiry| Effect::Inquire {
        inquiry,
        agent: scene::agent(),
    };
    for n in 0..50 {
        give(&scene, &format!("t{n}"), 100 + n, inquire(Inquiry::Context)).await;
    }
    give(&scene, "other", 200, inquire(Inquiry::Status)).await;
    let open = async || scene.value::<i64>("SELECT count(*) FROM inquiries").await;
    assert_eq!(open().await, 2);
    let (claimed, first) = claim_inquiry(&scene, 300).await.unwrap();
    let parts = vec![vocative_contract::outbound::Part::plain("zebra")];
    let lease = (claimed.id, claimed.token);
    let answered = scene.store.answer_inquiry(lease, first, parts, 300);
    assert!(answered.await.unwrap());
    give(&scene, "again", 400, inquire(Inquiry::Context)).await;
    assert_eq!(open().await, 2);
}
