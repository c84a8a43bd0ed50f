#![allow(clippy::unwrap_used)]

use vocative_contract::markup::mention_token;

use super::statements::*;
use super::*;
use crate::contract::CommittedReply;
use crate::rows::columns::CONVERSATION_ROW_SQL;
use crate::rows::conversations::CONVERSATION_SQL;
use crate::rows::participants::{NAME_BY_ID_SQL, NAME_BY_USERNAME_SQL};
use crate::rows::summaries::CURRENT_SQL;
use crate::scene::{Room, Said, Scene, agent};
use vocative_core::ids::RunId;
use vocative_core::place::Scope;
use vocative_core::run::ClaimedRun;

fn query(room: &Room) -> HistoryQuery {
    HistoryQuery {
        conversation: room.id,
        agent: agent(),
        as_of_seq: None,
        run: None,
        triggers: Vec::new(),
        keep: Keep::Involved,
        max_turns: 100,
        since_ms: None,
        scope: None,
        parent_turns: 10,
        ambient_turns: 0,
        summaries: None,
        thread_answers: true,
        made_by_ms: None,
    }
}

fn query_of(run: &ClaimedRun, room: &Room) -> HistoryQuery {
    HistoryQuery {
        as_of_seq: Some(run.as_of_seq),
        run: Some(run.run.id),
        triggers: run.run.triggers.clone(),
        ..query(room)
    }
}

async fn read(scene: &Scene, query: HistoryQuery) -> History {
    scene.store.history(query).await.unwrap()
}

fn shown(history: &History) -> Vec<(&str, HistoryRole)> {
    history
        .turns
        .iter()
        .map(|read| (read.turn.content.as_str(), read.role))
        .collect()
}

async fn answer(scene: &Scene, run: &ClaimedRun, room: &Room, text: &str) {
    let reply = scene.answer(run, room, text);
    let outcome = scene.store.commit_reply(reply).await.unwrap();
    assert!(matches!(outcome, CommittedReply::Written { .. }));
}

#[tokio::test]
async fn of_two_questions_each_prompt_holds_its_own_and_what_was_answered() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "q1", 10).await;
    scene.ask(&room, "q2", 20).await;
    let first = scene.claim(100).await.unwrap();
    let history = read(&scene, query_of(&first, &room)).await;
    assert_eq!(shown(&history), [("q1", HistoryRole::Trigger)]);
    answer(&scene, &first, &room, "a1").await;

    let second = scene.claim(200).await.unwrap();
    let history = read(&scene, query_of(&second, &room)).await;
    let expected = [
        ("q1", HistoryRole::Kept),
        ("q2", HistoryRole::Trigger),
        ("a1", HistoryRole::Kept),
    ];
    assert_eq!(shown(&history), expected);
    let (question, reply) = (&history.turns[0].turn, &history.turns[2].turn);
    assert_eq!(reply.reply_to, Some(question.id));
    assert_eq!(question.addressed_to, [agent()]);
}

#[tokio::test]
async fn a_retry_reads_what_the_first_attempt_read() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "q1", 10).await;
    let first = scene.claim(100).await.unwrap();
    let before = read(&scene, query_of(&first, &room)).await;
    let late = scene.say(&room, "an older line that came late", 5).await;
    scene.address(&room, late).await;
    scene.ask(&room, "q2", 20).await;

    let again = scene.claim(10_000).await.unwrap();
    let mut after = read(&scene, query_of(&again, &room)).await;
    after.conversation = before.conversation.clone();
    // What came since is passed over.
    assert_eq!(after.cost.rows, before.cost.rows + 2);
    after.cost = before.cost;
    assert_eq!(after, before);
}

#[tokio::test]
async fn unaddressed_turns_stay_out_unless_all_or_overheard_ones_are_asked_for() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    for (text, at_ms) in [("x1", 1), ("x2", 2), ("x3", 3)] {
        scene.say(&room, text, at_ms).await;
    }
    let (asked, _) = scene.ask(&room, "q", 10).await;
    scene.say(&room, "x4", 11).await;
    let mut query = query(&room);
    query.triggers = vec![asked.turn];
    let history = read(&scene, query.clone()).await;
    assert_eq!(shown(&history), [("q", HistoryRole::Trigger)]);

    query.ambient_turns = 2;
    let history = read(&scene, query.clone()).await;
    let overheard = [
        ("x2", HistoryRole::Ambient),
        ("x3", HistoryRole::Ambient),
        ("q", HistoryRole::Trigger),
    ];
    assert_eq!(shown(&history), overheard);

    query.keep = Keep::All;
    query.ambient_turns = 0;
    query.max_turns = 3;
    let history = read(&scene, query.clone()).await;
    let newest = [
        ("x3", HistoryRole::Kept),
        ("q", HistoryRole::Trigger),
        ("x4", HistoryRole::Kept),
    ];
    assert_eq!(shown(&history), newest);
    assert!(history.has_older);
    query.max_turns = 5;
    assert!(!read(&scene, query).await.has_older);
}

#[tokio::test]
async fn what_was_put_to_the_agent_or_said_by_it_is_never_overheard() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "an old question", 1).await;
    let run = scene.claim(100).await.unwrap();
    answer(&scene, &run, &room, "an old answer").await;
    scene.say(&room, "aside", 2).await;
    let (asked, _) = scene.ask(&room, "q", 300).await;
    let mut query = query(&room);
    query.triggers = vec![asked.turn];
    query.ambient_turns = 5;
    query.max_turns = 1;
    let expected = [("aside", HistoryRole::Ambient), ("q", HistoryRole::Trigger)];
    assert_eq!(shown(&read(&scene, query.clone()).await), expected);
    // From a thread the room is another conversation.
    let follow_up = scene.say(&room, "to a thread", 301).await;
    scene.address(&room, follow_up).await;
    let thread = scene.thread(&room, follow_up).await;
    query.conversation = thread.id;
    query.triggers = vec![follow_up.turn];
    query.parent_turns = 0;
    let expected = [
        ("aside", HistoryRole::Ambient),
        ("to a thread", HistoryRole::Trigger),
    ];
    assert_eq!(shown(&read(&scene, query.clone()).await), expected);
    // Where every turn is kept, older ones than were asked for don't come back as overheard.
    query.conversation = room.id;
    query.triggers = vec![asked.turn];
    query.keep = Keep::All;
    let texts = read(&scene, query).await;
    assert!(
        texts
            .turns
            .iter()
            .all(|read| read.role != HistoryRole::Ambient)
    );
}

#[tokio::test]
async fn what_a_kept_turn_replies_to_is_read_with_it() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let fact = scene.say(&room, "the fact", 1).await;
    scene.say(&room, "noise", 2).await;
    let asked = scene.say_in_reply(&room, "is that so?", 3, fact).await;
    scene.address(&room, asked).await;
    let history = read(&scene, query(&room)).await;
    let expected = [
        ("the fact", HistoryRole::RepliedTo),
        ("is that so?", HistoryRole::Kept),
    ];
    assert_eq!(shown(&history), expected);
}

#[tokio::test]
async fn a_thread_is_read_with_its_root_and_the_kept_turns_before_it() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    for (text, at_ms) in [("before1", 1), ("before2", 2)] {
        let said = scene.say(&room, text, at_ms).await;
        scene.address(&room, said).await;
    }
    scene.say(&room, "overheard", 3).await;
    let root = scene.say(&room, "root", 4).await;
    scene.address(&room, root).await;
    let after = scene.say(&room, "after", 5).await;
    scene.address(&room, after).await;
    let thread = scene.thread(&room, root).await;
    scene.queue(&thread, root, 4).await;

    let opening = scene.claim(100).await.unwrap();
    let history = read(&scene, query_of(&opening, &thread)).await;
    let expected = [
        ("before1", HistoryRole::Parent),
        ("before2", HistoryRole::Parent),
        ("root", HistoryRole::Trigger),
    ];
    assert_eq!(shown(&history), expected);
    answer(&scene, &opening, &thread, "reply").await;

    scene.ask(&thread, "and then?", 6).await;
    let follow_up = scene.claim(200).await.unwrap();
    let mut query = query_of(&follow_up, &thread);
    query.parent_turns = 1;
    let history = read(&scene, query).await;
    let expected = [
        ("before2", HistoryRole::Parent),
        ("root", HistoryRole::Root),
        ("reply", HistoryRole::Kept),
        ("and then?", HistoryRole::Trigger),
    ];
    assert_eq!(shown(&history), expected);
    assert_eq!(history.conversation.scope, Scope::Thread);
}

#[tokio::test]
async fn what_stands_before_a_topic_stays_as_it_grows() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let (before, _) = scene.ask(&room, "before", 1).await;
    let topic = scene.thread(&room, before).await;
    scene
        .write(|connection| {
            connection.execute("UPDATE conversations SET root_turn_seq = NULL", [])?;
            Ok(())
        })
        .await;
    scene.ask(&topic, "first", 2).await;
    scene.ask(&room, "meanwhile", 3).await;
    scene.ask(&topic, "second", 4).await;
    for (max_turns, kept) in [(2, vec!["first", "second"]), (1, vec!["second"])] {
        let mut query = query(&topic);
        query.max_turns = max_turns;
        let mut expected = vec![("before", HistoryRole::Parent)];
        expected.extend(kept.into_iter().map(|text| (text, HistoryRole::Kept)));
        assert_eq!(shown(&read(&scene, query).await), expected, "{max_turns}");
    }
}

/// A question of the room at a time, the thread it opened, and its run.
async fn opening(scene: &Scene, room: &Room, text: &str, at_ms: i64) -> (Said, Room, RunId) {
    let asked = scene.say(room, text, at_ms).await;
    scene.address(room, asked).await;
    let thread = scene.thread(room, asked).await;
    let run = scene.queue(&thread, asked, at_ms).await;
    (asked, thread, run)
}

#[tokio::test]
async fn a_question_of_the_room_comes_with_the_answer_it_got_in_its_thread() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let (first, first_thread, _) = opening(&scene, &room, "q1", 10).await;
    let run = scene.claim(100).await.unwrap();
    answer(&scene, &run, &first_thread, "a1").await;
    // Follow-ups stay in the thread.
    scene.ask(&first_thread, "and then?", 20).await;
    let run = scene.claim(200).await.unwrap();
    answer(&scene, &run, &first_thread, "more").await;
    let (second, second_thread, _) = opening(&scene, &room, "q2", 30).await;
    let (dead, _, dead_run) = opening(&scene, &room, "q3", 40).await;
    scene
        .write(move |connection| {
            let sql = "UPDATE runs SET state = 'dead' WHERE uuid = ?1";
            connection.execute(sql, [dead_run])?;
            Ok(())
        })
        .await;
    let asked = scene.say(&room, "too old to be answered", 45).await;
    scene.address(&room, asked).await;
    let (_, thread, run) = opening(&scene, &room, "q4", 50).await;
    let being_answered = scene.claim(300).await.unwrap();
    assert_eq!(being_answered.run.triggers, [second.turn]);
    let claimed = scene.claim(300).await.unwrap();
    assert_eq!(claimed.run.id, run);

    let expected = [
        ("q1", HistoryRole::Parent),
        ("a1", HistoryRole::ThreadAnswer),
        ("q2", HistoryRole::Parent),
        ("q3", HistoryRole::Parent),
        ("too old to be answered", HistoryRole::Parent),
        ("q4", HistoryRole::Trigger),
    ];
    let history = read(&scene, query_of(&claimed, &thread)).await;
    let mut seen = shown(&history);
    // By the room's time the answer stands behind what was asked while it was made.
    seen.sort_by_key(|(text, _)| expected.iter().position(|(known, _)| known == text));
    assert_eq!(seen, expected);
    let answers: Vec<_> = [first, second, dead, asked]
        .map(|said| history.thread_answers.get(&said.turn).map(Option::is_some))
        .into();
    assert_eq!(answers, [Some(true), Some(false), Some(false), None]);

    // What is answered since is read by no retry.
    answer(&scene, &being_answered, &second_thread, "a2").await;
    let again = read(&scene, query_of(&claimed, &thread)).await;
    assert_eq!(again.turns, history.turns);
    assert_eq!(again.thread_answers, history.thread_answers);
    // A preview of now has it, and none of a deleted answer.
    scene
        .write(|connection| {
            let sql = "UPDATE turns SET visibility = 'hidden' WHERE content = 'a1'";
            connection.execute(sql, [])?;
            Ok(())
        })
        .await;
    let preview = read(&scene, query(&room)).await;
    assert!(shown(&preview).contains(&("a2", HistoryRole::ThreadAnswer)));
    assert!(!shown(&preview).iter().any(|(text, _)| *text == "a1"));
    assert_eq!(preview.thread_answers[&first.turn], None);
    // In the thread itself each line is there once, and other agents' prompts don't look for it.
    let own = read(&scene, query(&first_thread)).await;
    let expected = [
        ("q1", HistoryRole::Root),
        ("and then?", HistoryRole::Kept),
        ("more", HistoryRole::Kept),
    ];
    assert_eq!(shown(&own), expected);
    let mut plain = query(&room);
    plain.thread_answers = false;
    assert!(read(&scene, plain).await.thread_answers.is_empty());
}

#[tokio::test]
async fn time_scope_and_visibility_bound_what_is_kept_but_not_the_trigger() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let (old, _) = scene.ask(&room, "old", 10).await;
    let hidden = scene.say(&room, "gone", 20).await;
    scene.address(&room, hidden).await;
    scene
        .write(move |connection| {
            connection.execute(
                "UPDATE turns SET visibility = 'hidden' WHERE seq = ?1",
                [hidden.seq],
            )?;
            Ok(())
        })
        .await;
    let new = scene.say(&room, "new", 30).await;
    scene.address(&room, new).await;
    let mut query = query(&room);
    query.since_ms = Some(20);
    assert_eq!(
        shown(&read(&scene, query.clone()).await),
        [("new", HistoryRole::Kept)]
    );
    query.triggers = vec![old.turn];
    let expected = [("old", HistoryRole::Trigger), ("new", HistoryRole::Kept)];
    assert_eq!(shown(&read(&scene, query.clone()).await), expected);
    query.scope = Some(Scope::Dm);
    assert_eq!(
        shown(&read(&scene, query).await),
        [("old", HistoryRole::Trigger)]
    );
}

#[tokio::test]
async fn mentions_get_the_names_that_are_known() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let text = ["U1", "@ada", "UBOT"].map(mention_token).concat();
    let said = scene.say(&room, &text, 1).await;
    scene.address(&room, said).await;
    let history = read(&scene, query(&room)).await;
    let names = [("U1", "Ada"), ("@ada", "Ada")].map(|(id, name)| (id.to_owned(), name.to_owned()));
    assert_eq!(history.names, HashMap::from(names));
}

#[tokio::test]
async fn a_rare_agent_in_a_long_room_costs_no_more_rows() {
    let scene = Scene::open().await;
    let (short, long) = (scene.room("C1").await, scene.room("C2").await);
    let mut rows = Vec::new();
    for (room, noise) in [(&short, 5), (&long, 400)] {
        let (asked, _) = scene.ask(room, "first", 1).await;
        for at_ms in 2..noise {
            scene.say(room, "noise", at_ms).await;
        }
        let mut query = query(room);
        query.triggers = vec![asked.turn];
        query.ambient_turns = 3;
        rows.push(read(&scene, query).await.cost);
    }
    assert_eq!(rows[0].rows, rows[1].rows);
    assert!(rows[1].vm_steps <= rows[0].vm_steps + 10, "{rows:?}");
}

#[tokio::test]
async fn every_read_goes_through_an_index_in_its_order() {
    let scene = Scene::open().await;
    let statements = [
        INVOLVED_SQL,
        ALL_SQL,
        OVERHEARD_SQL,
        RUN_SQL,
        BY_SEQ_SQL,
        TRIGGER_SQL,
        REPLIED_TO_SQL,
        ROOT_SQL,
        THREAD_RUN_SQL,
        THREAD_ANSWER_SQL,
        POSITION_SQL,
        FIRST_TURN_SQL,
        FORKED_SQL,
        RECALLED_SQL,
        SAID_BY_PERSON_SQL,
    ];
    let source = [
        include_str!("mod.rs"),
        include_str!("names.rs"),
        include_str!("run.rs"),
        include_str!("statements.rs"),
        include_str!("walk.rs"),
    ];
    let source = source.concat();
    assert_eq!(source.matches("_SQL: &str =").count(), statements.len());
    assert_eq!(source.matches("prepare_cached(sql)").count(), 1);
    assert_eq!(source.matches("prepare_cached(walk.sql)").count(), 1);
    assert_eq!(source.matches("prepare").count(), 4, "{RUN_SQL}");
    let elsewhere = [
        CONVERSATION_SQL,
        CONVERSATION_ROW_SQL,
        CURRENT_SQL,
        NAME_BY_ID_SQL,
        NAME_BY_USERNAME_SQL,
    ];
    let mut plans = Vec::new();
    for sql in statements.into_iter().chain(elsewhere) {
        plans.push(scene.plan(sql).await);
    }
    for step in plans.iter().flatten() {
        assert!(!step.contains("SCAN"), "{step} in {plans:#?}");
        assert!(!step.contains("TEMP B-TREE"), "{step} in {plans:#?}");
    }
    let uses = |plan: &[String], index: &str| plan.iter().any(|step| step.contains(index));
    // Whether a turn waits for a run of its own is asked by the turn: by the conversation, every
    // run that waits would be looked at for every turn.
    for plan in [&plans[0], &plans[1], &plans[2], &plans[6]] {
        let by_turn = "SEARCH g USING INDEX sqlite_autoindex_run_triggers_2 (turn_seq=?)";
        assert!(uses(plan, by_turn), "{plan:#?}");
    }
    assert!(uses(&plans[0], "SEARCH i USING PRIMARY KEY"), "{plans:#?}");
    for plan in [&plans[1], &plans[2]] {
        assert!(uses(plan, "turns_by_position"), "{plans:#?}");
    }
    let of_turn = "SEARCH o USING COVERING INDEX involvements_by_turn (seq=?";
    assert!(uses(&plans[2], of_turn), "{plans:#?}");
}
