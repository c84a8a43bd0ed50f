//! What a prompt reads does not grow with its conversation. Counted by SQLite's own counters.

use std::collections::HashSet;

use crate::engine::sql::params;

use crate::scene::{Room, Said, Scene, agent};
use vocative_core::coverage::{Coverage, Keep};
use vocative_core::history::{History, HistoryQuery, HistoryRole, ReadCost};
use vocative_core::ids::Seq;
use vocative_core::place::Scope;

const SIZES: [i64; 3] = [100, 10_000, 100_000];

/// The most rows that may be read for a prompt.
const ROWS_MAX: u64 = 400;

/// Turns of people, a second each, as capture leaves them; every so many concern an agent.
async fn fill(scene: &Scene, room: &Room, turns: i64, agent: &'static str, every: i64) {
    scene.say(room, "the first words", 0).await;
    let (row, turns) = (room.row, turns - 1);
    scene
        .write(move |connection| {
            connection.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
                 INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                                    participant_id, content, captured_at_ms, is_inbound)
                 SELECT randomblob(16), ?1, i * 1000, 0, 'message', 'channel',
                        (SELECT min(id) FROM participants), 'noise ' || i, i * 1000, 1 FROM n",
                params![row, turns],
            )?;
            connection.execute(
                "INSERT INTO involvements (conversation_id, agent, sent_at_ms, ordinal, seq, how)
                 SELECT conversation_id, ?2, sent_at_ms, ordinal, seq, 'addressed' FROM turns
                 WHERE conversation_id = ?1 AND ?3 > 0 AND sent_at_ms / 1000 % ?3 = 0",
                params![row, agent, every],
            )?;
            connection.execute(
                "UPDATE conversations SET turn_count = turn_count + ?2,
                        last_seq = (SELECT max(seq) FROM turns) WHERE id = ?1",
                params![row, turns],
            )?;
            Ok(())
        })
        .await;
}

/// Makes the first three turns concern the agent.
async fn address_first_three(scene: &Scene, room: &Room) {
    let row = room.row;
    scene
        .write(move |connection| {
            connection.execute(
                "INSERT INTO involvements (conversation_id, agent, sent_at_ms, ordinal, seq, how)
                 SELECT conversation_id, ?2, sent_at_ms, ordinal, seq, 'addressed' FROM turns
                 WHERE conversation_id = ?1 ORDER BY sent_at_ms LIMIT 3",
                params![row, agent()],
            )?;
            Ok(())
        })
        .await;
}

/// The newest turn, which asks the agent something.
async fn ask(scene: &Scene, room: &Room) -> Said {
    let (said, _) = scene.ask(room, "what was that?", 1_000_000_000).await;
    said
}

/// What a run reads with the default options, unless they are changed.
async fn read(
    scene: &Scene,
    room: &Room,
    change: impl FnOnce(&mut HistoryQuery),
) -> (History, ReadCost) {
    let run = scene.claim(2_000_000_000).await.unwrap();
    let mut query = HistoryQuery {
        conversation: room.id,
        agent: agent(),
        as_of_seq: Some(run.as_of_seq),
        run: Some(run.run.id),
        triggers: run.run.triggers.clone(),
        keep: Keep::Involved,
        max_turns: 100,
        since_ms: None,
        scope: None,
        parent_turns: 10,
        ambient_turns: 0,
        summaries: Some(Coverage {
            keep: Keep::Involved,
            scope: None,
        }),
        thread_answers: true,
        made_by_ms: None,
    };
    change(&mut query);
    let history = scene.store.history(query).await.unwrap();
    let cost = history.cost;
    assert!(cost.rows <= ROWS_MAX, "{cost:?}");
    assert_eq!((cost.scan_steps, cost.sorts), (0, 0), "{cost:?}");
    (history, cost)
}

fn assert_flat(costs: &[ReadCost]) {
    assert!(costs[0].vm_steps > 100, "{costs:?}");
    let most = costs[0].vm_steps + costs[0].vm_steps / 20;
    let is_flat = |cost: &ReadCost| cost.rows == costs[0].rows && cost.vm_steps <= most;
    assert!(costs.iter().all(is_flat), "{costs:?}");
}

#[tokio::test]
async fn an_agent_that_only_the_first_three_and_the_last_turn_concern_costs_the_same_in_any_room() {
    let mut costs = Vec::new();
    for turns in SIZES {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        fill(&scene, &room, turns, "somebody_else", 2).await;
        address_first_three(&scene, &room).await;
        ask(&scene, &room).await;
        let (history, cost) = read(&scene, &room, |_| {}).await;
        let texts: Vec<&str> = history
            .turns
            .iter()
            .map(|read| read.turn.content.as_str())
            .collect();
        let expected = ["the first words", "noise 1", "noise 2", "what was that?"];
        assert_eq!(texts, expected);
        assert!(!history.has_older);
        assert_eq!(history.conversation.turns, turns.unsigned_abs() + 1);
        costs.push(cost);
    }
    assert_flat(&costs);
}

#[tokio::test]
async fn an_agent_that_was_added_yesterday_reads_nothing_of_the_years_before() {
    let mut costs = Vec::new();
    for turns in SIZES {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        fill(&scene, &room, turns, "somebody_else", 1).await;
        let asked = ask(&scene, &room).await;
        let (history, cost) = read(&scene, &room, |_| {}).await;
        let turns: Vec<_> = history.turns.iter().map(|read| read.turn.id).collect();
        assert_eq!(turns, [asked.turn]);
        costs.push(cost);
    }
    assert_flat(&costs);
}

#[tokio::test]
async fn everything_concerns_the_agent_and_still_a_hundred_turns_are_read() {
    let mut costs = Vec::new();
    for turns in [1_000, 100_000] {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        fill(&scene, &room, turns, "helper", 1).await;
        ask(&scene, &room).await;
        let (history, cost) = read(&scene, &room, |_| {}).await;
        assert_eq!(history.turns.len(), 100);
        assert!(history.has_older);
        costs.push(cost);
    }
    assert_flat(&costs);
}

#[tokio::test]
async fn the_whole_room_overheard_turns_and_a_time_window_cost_the_same_in_any_room() {
    for change in [
        |query: &mut HistoryQuery| query.keep = Keep::All,
        |query: &mut HistoryQuery| query.ambient_turns = 50,
        |query: &mut HistoryQuery| query.since_ms = Some(999_999_000),
        |query: &mut HistoryQuery| query.scope = Some(Scope::Channel),
    ] {
        let mut costs = Vec::new();
        for turns in [1_000, 30_000] {
            let scene = Scene::open().await;
            let room = scene.room("C1").await;
            fill(&scene, &room, turns, "helper", 500).await;
            ask(&scene, &room).await;
            // The same number of turns concerns the agent in both.
            let (_, cost) = read(&scene, &room, |query| {
                change(query);
                query.max_turns = 2;
                if query.keep == Keep::All {
                    query.max_turns = 100;
                }
            })
            .await;
            costs.push(cost);
        }
        assert_flat(&costs);
    }
}

#[tokio::test]
async fn a_thread_of_a_long_room_reads_no_more_than_one_of_a_short_one() {
    let mut costs = Vec::new();
    for turns in SIZES {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        fill(&scene, &room, turns, "somebody_else", 2).await;
        address_first_three(&scene, &room).await;
        let root = scene.say(&room, "root", 500_000_000).await;
        let thread = scene.thread(&room, root).await;
        ask(&scene, &thread).await;
        let (history, cost) = read(&scene, &thread, |_| {}).await;
        let roles: Vec<HistoryRole> = history.turns.iter().map(|read| read.role).collect();
        let parent = [HistoryRole::Parent; 3];
        assert_eq!(roles[..3], parent);
        assert_eq!(roles[3..], [HistoryRole::Root, HistoryRole::Trigger]);
        costs.push(cost);
    }
    assert_flat(&costs);
}

#[tokio::test]
async fn a_hundred_thousand_people_in_a_room_cost_no_more_than_a_handful() {
    let mut costs = Vec::new();
    for people in [200, 100_000] {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        fill(&scene, &room, people, "somebody_else", 2).await;
        scene
            .write(move |connection| {
                connection.execute_batch(
                    "INSERT INTO participants (account_id, kind, platform_id, display_name, username)
                     SELECT (SELECT min(id) FROM accounts), 'user', 'P' || seq, 'Alex', 'alex' || seq
                     FROM turns WHERE seq > 1;
                     UPDATE turns SET participant_id =
                            (SELECT p.id FROM participants p WHERE p.account_id = 1
                             AND p.kind = 'user' AND p.platform_id = 'P' || seq)
                     WHERE seq > 1;",
                )?;
                Ok(())
            })
            .await;
        ask(&scene, &room).await;
        let (history, cost) = read(&scene, &room, |query| query.keep = Keep::All).await;
        let people: HashSet<_> = history
            .turns
            .iter()
            .map(|read| read.turn.participant.id)
            .collect();
        assert_eq!(people.len(), 100);
        costs.push(cost);
    }
    assert_flat(&costs);
}

/// A scope that no turn of the room has would have the whole room walked.
#[tokio::test]
async fn a_walk_that_finds_nothing_for_the_prompt_gives_up_and_says_so() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    fill(&scene, &room, 10_000, "helper", 1).await;
    let history = scene
        .store
        .history(HistoryQuery {
            conversation: room.id,
            agent: agent(),
            as_of_seq: None,
            run: None,
            triggers: Vec::new(),
            keep: Keep::Involved,
            max_turns: 100,
            since_ms: None,
            scope: Some(Scope::Dm),
            parent_turns: 0,
            ambient_turns: 0,
            summaries: None,
            thread_answers: true,
            made_by_ms: None,
        })
        .await
        .unwrap();
    assert_eq!(history.turns, []);
    assert!(history.has_older);
    assert_eq!(history.cost.rows, 2_002);
}

/// What came after the read bound is no reason to give up.
#[tokio::test]
async fn the_prompt_as_of_an_early_turn_is_found_behind_all_later_ones() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    fill(&scene, &room, 5_000, "helper", 1).await;
    let first = scene.value::<i64>("SELECT min(seq) FROM turns").await;
    let query = HistoryQuery {
        conversation: room.id,
        agent: agent(),
        as_of_seq: Some(Seq(first)),
        run: None,
        triggers: Vec::new(),
        keep: Keep::All,
        max_turns: 100,
        since_ms: None,
        scope: None,
        parent_turns: 0,
        ambient_turns: 0,
        summaries: None,
        thread_answers: true,
        made_by_ms: None,
    };
    let history = scene.store.history(query).await.unwrap();
    assert_eq!(history.turns.len(), 1);
    assert!(!history.has_older);
}
