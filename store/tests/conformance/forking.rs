//! Conversations that go on from a turn of another one.

use vocative_core::coverage::Keep;
use vocative_core::history::{FORKS_DEEP_MAX, HistoryQuery};
use vocative_core::ids::{ConversationId, Seq};
use vocative_store::contract::{Forking, SearchMode, SearchQuery};

use crate::said::agent;
use crate::scene::Scene;

/// What a prompt is made of there, in its order.
async fn read(scene: &Scene, conversation: ConversationId, max_turns: usize) -> Vec<String> {
    let query = HistoryQuery {
        conversation,
        agent: agent("helper"),
        as_of_seq: None,
        run: None,
        triggers: Vec::new(),
        keep: Keep::All,
        max_turns,
        since_ms: None,
        scope: None,
        parent_turns: 0,
        ambient_turns: 0,
        summaries: None,
        made_by_ms: None,
        thread_answers: false,
    };
    let history = scene.store.history(query).await.unwrap();
    let turns = history.turns.into_iter();
    turns.map(|read| read.turn.content).collect()
}

async fn fork(scene: &Scene, of: ConversationId, at: Seq, key: &str) -> Forking {
    let forked = scene.store.fork_conversation(of, at, key.to_owned(), 1_000);
    forked.await.unwrap()
}

fn made(forked: Forking) -> ConversationId {
    match forked {
        Forking::Made(fork) => fork,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_fork_has_what_was_captured_before_it_whatever_the_clock_says() {
    let scene = Scene::open().await;
    scene.say("ann/notes", "one", 100).await;
    let root = scene.say("ann/notes", "two", 200).await;
    let notes = root.conversation;
    let fork = made(fork(&scene, notes, root.seq, "fork-a").await);
    // The clock is set back: what is said in the first course later has an earlier time.
    scene.say("ann/notes", "later", 50).await;
    assert_eq!(read(&scene, fork, 9).await, ["one", "two"]);
    let said = scene
        .store
        .fork_conversation(notes, root.seq, "fork-a".to_owned(), 1);
    assert_eq!(said.await.unwrap(), Forking::Known(fork));
    assert_eq!(read(&scene, notes, 9).await.len(), 3);
}

#[tokio::test]
async fn a_fork_stands_behind_its_root_and_its_own_turns_come_first() {
    let scene = Scene::open().await;
    let mut root = scene.say("C1", "t0", 100).await;
    for n in 1..6 {
        root = scene.say("C1", &format!("t{n}"), 100 + n).await;
    }
    let fork = made(fork(&scene, root.conversation, root.seq, "fork-a").await);
    for (n, text) in ["a", "b", "c"].into_iter().enumerate() {
        let said = scene.say("C1/fork-a", text, 10 + i64::try_from(n).unwrap());
        assert_eq!(said.await.conversation, fork);
    }
    assert_eq!(read(&scene, fork, 9).await.last().unwrap(), "c");
    // Of what is before it there is as much as its own turns leave room for, and the root in any case.
    assert_eq!(read(&scene, fork, 5).await, ["t4", "t5", "a", "b", "c"]);
    assert_eq!(read(&scene, fork, 2).await, ["t5", "b", "c"]);
    let query = SearchQuery {
        limit: 9,
        token_cap: 999,
        text_max_chars: usize::MAX,
        mode: SearchMode::StrictNewest,
        ..SearchQuery::new(fork, "t3")
    };
    let found = scene.store.search(query).await.unwrap();
    assert!(found.hits.is_empty(), "{found:?}");
}

#[tokio::test]
async fn no_fork_is_made_of_what_is_open_or_too_deep() {
    let scene = Scene::open().await;
    let first = scene.say("C1", "first", 1).await;
    let (asked, _) = scene.ask("C1", "open?", 2).await;
    let room = asked.conversation;
    assert_eq!(fork(&scene, room, asked.seq, "fork-a").await, Forking::Open);
    let mut of = made(fork(&scene, room, first.seq, "fork-0").await);
    for depth in 1..FORKS_DEEP_MAX {
        let key = format!("fork-{depth}");
        let said = scene.say(&format!("C1/fork-{}", depth - 1), "on", 10).await;
        assert_eq!(said.conversation, of);
        of = made(fork(&scene, of, said.seq, &key).await);
    }
    let said = scene
        .say(&format!("C1/fork-{}", FORKS_DEEP_MAX - 1), "on", 10)
        .await;
    let deeper = fork(&scene, of, said.seq, "fork-deeper").await;
    assert_eq!(deeper, Forking::TooDeep);
    assert_eq!(
        read(&scene, of, 99).await.len(),
        FORKS_DEEP_MAX as usize + 1
    );
}
