//! Searches that forgive, against rooms with facts that were said once, in passing.

use crate::contract::{SearchFilter, SearchHits, SearchQuery};
use crate::rows::search_text::index_turn_txn;
use crate::scene::{Room, Scene};
use vocative_contract::markup::mention_token;
use vocative_core::history::{HistoryQuery, Keep};
use vocative_core::search::SearchReach;
use vocative_core::search::bar::{Candidate, cleared};

const MINUTE_MS: i64 = 60_000;

/// Towns, things and names that the noise and the facts share.
const TOWNS: [&str; 8] = [
    "Lisbon", "Berlin", "Oslo", "Porto", "Zagreb", "Madrid", "Vienna", "Tallinn",
];
const THINGS: [&str; 8] = [
    "wifi", "printer", "invoice", "badge", "deploy", "backup", "parking", "budget",
];

/// A line of noise: it asks, repeats and chats about the same things.
fn noise(n: usize) -> String {
    let (town, thing) = (TOWNS[n % 8], THINGS[(n / 8) % 8]);
    match n % 7 {
        0 => format!("does anyone know about the {thing} in {town}?"),
        1 => format!("standup for {town} moves to {}:30, see you there", n % 12),
        2 => format!("what's the {thing} status in {town}"),
        3 => format!("{thing} ticket {n} was closed"),
        4 => format!("thanks, the {thing} works again"),
        5 => format!("who is in the {town} office on {}?", n % 28),
        _ => format!("lunch near the {town} office at {}", n % 12),
    }
}

/// A fact, the words of a model for it, and the question of a person.
const FACTS: [(&str, &str, &str); 10] = [
    (
        "Lisbon office: the guest network code is blue-otter-77",
        "Lisbon wifi guest code",
        "What's the code for the guest network in Lisbon?",
    ),
    (
        "the Berlin printer takes toner TN-243, the cupboard has two",
        "Berlin printer toner",
        "Which toner does the printer in Berlin take?",
    ),
    (
        "Oslo landlord wants the rent by the 3rd, IBAN is with Ada",
        "Oslo rent landlord",
        "When does the landlord in Oslo want the rent?",
    ),
    (
        "we keep the spare badges for Porto in drawer 14",
        "Porto spare badge drawer",
        "Where do we keep the spare badges in Porto?",
    ),
    (
        "invoices to Globex go to ap-team@globex.example since May",
        "Globex invoice address",
        "Where are Globex invoices sent to?",
    ),
    (
        "Zagreb parking gate opens with 8812 and the hash key",
        "Zagreb parking gate code",
        "What opens the parking gate in Zagreb?",
    ),
    (
        "decided: deploys freeze from December 18 until January 4",
        "deploy freeze December",
        "From when are deployments frozen?",
    ),
    (
        "the backup of the kraken database runs at 02:40",
        "kraken backup time",
        "At what time is the kraken database backed up?",
    ),
    (
        "Vienna budget for chairs is capped at 1,250 euros",
        "Vienna chairs budget cap",
        "How much may the chairs in Vienna cost?",
    ),
    (
        "Tallinn's new receptionist is called Maarja",
        "Tallinn receptionist name",
        "What is the name of the receptionist in Tallinn?",
    ),
];

async fn room_of(scene: &Scene, lines: Vec<(i64, String)>) -> Room {
    let room = scene.room("C1").await;
    scene.say(&room, "hello", 0).await;
    fill(scene, &room, lines).await;
    room
}

/// Says lines in their order, each at its time.
async fn fill(scene: &Scene, room: &Room, lines: Vec<(i64, String)>) {
    let row = room.row;
    scene
        .write(move |connection| {
            for (at_ms, text) in &lines {
                connection
                    .prepare_cached(
                        "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                                participant_id, content, captured_at_ms, is_inbound)
                         VALUES (randomblob(16), ?1, ?2, 0, 'message', 'channel',
                                 (SELECT participant_id FROM turns WHERE seq = 1), ?3, 0, 1)",
                    )?
                    .execute((row, at_ms, text))?;
                index_turn_txn(connection, connection.last_insert_rowid())?;
            }
            connection.execute(
                "UPDATE conversations SET turn_count = (SELECT count(*) FROM turns WHERE conversation_id = ?1)
                 WHERE id = ?1",
                [row],
            )?;
            Ok(())
        })
        .await;
}

async fn index_all(scene: &Scene) {
    while scene.store.index_turns().await.unwrap() {}
}

async fn search(scene: &Scene, query: SearchQuery) -> SearchHits {
    scene.store.search(query).await.unwrap()
}

async fn texts(scene: &Scene, room: &Room, query: &str) -> Vec<String> {
    let found = search(scene, SearchQuery::new(room.id, query)).await;
    found.hits.into_iter().map(|hit| hit.text).collect()
}

fn planted(lines: usize) -> Vec<(i64, String)> {
    let every = lines / FACTS.len();
    let line = |n: usize| match n % every {
        5 => FACTS[n / every % FACTS.len()].0.to_owned(),
        _ => noise(n),
    };
    (0..lines)
        .map(|n| (MINUTE_MS * i64::try_from(n).unwrap(), line(n)))
        .collect()
}

#[tokio::test]
async fn a_fact_said_once_is_among_the_first_five_hits() {
    let scene = Scene::open().await;
    let room = room_of(&scene, planted(5_000)).await;
    // Before the job has been here, and after.
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        let mut missed = Vec::new();
        for (fact, words, question) in FACTS {
            for asked in [words, question] {
                let found = texts(&scene, &room, asked).await;
                if !found.iter().any(|text| text == fact) {
                    missed.push((asked, found));
                }
            }
        }
        assert!(missed.len() <= 2, "indexed: {is_indexed}: {missed:#?}");
    }
}

#[tokio::test]
async fn near_identical_lines_are_one_hit_with_a_count() {
    let scene = Scene::open().await;
    let lines = (0..9).map(|n| {
        (
            n * MINUTE_MS,
            format!("standup moves to {n}:30, see you there"),
        )
    });
    let mut lines: Vec<_> = lines.collect();
    lines.push((99 * MINUTE_MS, "the standup is in room Kraken".to_owned()));
    let room = room_of(&scene, lines).await;
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        let found = search(&scene, SearchQuery::new(room.id, "standup")).await;
        let shown: Vec<(&str, usize)> = found
            .hits
            .iter()
            .map(|hit| (hit.text.as_str(), hit.same))
            .collect();
        assert_eq!(
            shown,
            [
                ("the standup is in room Kraken", 0),
                ("standup moves to 8:30, see you there", 8)
            ]
        );
    }
}

#[tokio::test]
async fn an_import_of_older_lines_does_not_hide_the_newest() {
    let scene = Scene::open().await;
    let day = 24 * 60 * MINUTE_MS;
    let new = vec![(400 * day, "the release is on Friday".to_owned())];
    let room = room_of(&scene, new).await;
    let old = (0..3_000_i64).map(|n| {
        (
            n * MINUTE_MS,
            format!("release {n} is on the list {}", n * 7),
        )
    });
    fill(&scene, &room, old.collect()).await;
    index_all(&scene).await;
    assert_eq!(
        texts(&scene, &room, "release friday").await[0],
        "the release is on Friday"
    );
    assert!(
        texts(&scene, &room, "release")
            .await
            .contains(&"the release is on Friday".to_owned())
    );
}

#[tokio::test]
async fn work_is_bounded_where_each_word_is_in_each_line() {
    let scene = Scene::open().await;
    let line = |n: i64| (n * MINUTE_MS, format!("alpha beta gamma delta omega {n}"));
    let room = room_of(&scene, (0..6_000).map(line).collect()).await;
    index_all(&scene).await;
    let found = search(
        &scene,
        SearchQuery::new(room.id, "alpha beta gamma delta omega"),
    )
    .await;
    assert!(found.is_bounded && !found.hits.is_empty());
    assert!(
        found.effort.postings <= 12_000 + 5 + 4 * 300,
        "{:?}",
        found.effort
    );
    assert!(found.effort.texts <= 240, "{:?}", found.effort);
}

#[tokio::test]
async fn what_was_said_once_is_found_behind_what_is_said_again_and_again() {
    let scene = Scene::open().await;
    let again = ["tideline called", "the contract of tideline is with legal"];
    let line = |n: i64| match n {
        9 => (n * MINUTE_MS, "tideline signed for 496 seats".to_owned()),
        _ => (n * MINUTE_MS, again[usize::from(n % 2 == 0)].to_owned()),
    };
    let room = room_of(&scene, (0..1_900).map(line).collect()).await;
    index_all(&scene).await;
    let found = search(
        &scene,
        SearchQuery::new(room.id, "tideline licences bought"),
    )
    .await;
    assert_eq!(found.hits[0].text, "tideline signed for 496 seats");
    assert_eq!(found.hits.len(), 3);
    assert!(found.effort.texts <= 2_000, "{:?}", found.effort);
}

#[tokio::test]
async fn what_changed_or_went_is_found_as_it_is() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let said = scene.say(&room, "the zebraword is in the cellar", 1).await;
    let other = scene.say(&room, "the zebraword is old", 2).await;
    index_all(&scene).await;
    let vocabulary = "SELECT count(*) FROM vocabulary WHERE stem = 'zebraword'";
    assert_eq!(scene.value::<i64>(vocabulary).await, 1);
    let revise = |seq: i64, text: &'static str| {
        move |connection: &crate::engine::sql::Connection| {
            let mut turn = crate::rows::turns::turn_at(connection, seq)?;
            let replacement = crate::rows::turns::Replacement {
                content: text.to_owned(),
                attachments: None,
                tokens: None,
                keep_revision: false,
                now_ms: 3,
            };
            crate::rows::turns::revise_turn_txn(connection, &mut turn, replacement)?;
            Ok(())
        }
    };
    scene
        .write(revise(said.seq.0, "the lionword is in the cellar"))
        .await;
    assert_eq!(
        texts(&scene, &room, "lionwords").await,
        ["the lionword is in the cellar"]
    );
    assert_eq!(
        texts(&scene, &room, "zebraword").await,
        ["the zebraword is old"]
    );
    scene.write(revise(other.seq.0, "all new")).await;
    assert_eq!(scene.value::<i64>(vocabulary).await, 0);
    let blocks = "SELECT count(*) FROM turn_stems_data
                  WHERE instr(block, CAST('zebraword' AS BLOB)) > 0";
    assert_eq!(scene.value::<i64>(blocks).await, 0);
    let whole = "INSERT INTO turn_stems (turn_stems) VALUES ('integrity-check')";
    scene
        .write(move |connection| Ok(connection.execute_batch(whole)?))
        .await;
}

#[tokio::test]
async fn a_word_that_is_nowhere_stands_for_what_was_meant() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.say(&room, "the password is in the vault", 1).await;
    scene
        .say(&room, "das Gästepasswort hängt an der Tür", 2)
        .await;
    scene.say(&room, "unrelated words", 3).await;
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        let cases = [
            ("pasword", "the password is in the vault"),
            ("vualt", "the password is in the vault"),
            ("Gästepaswort", "das Gästepasswort hängt an der Tür"),
        ];
        for (query, expected) in cases {
            let found = search(&scene, SearchQuery::new(room.id, query)).await;
            assert_eq!(found.hits[0].text, expected, "{query}");
            assert_eq!(found.taken_for.len(), 1, "{query}: {:?}", found.taken_for);
        }
        assert!(texts(&scene, &room, "xylophone").await.is_empty());
    }
}

#[tokio::test]
async fn several_wordings_find_more_than_one() {
    let scene = Scene::open().await;
    let mut lines = planted(1_000);
    lines.push((
        500 * MINUTE_MS + 1,
        "the router in the attic says blue-otter-77".to_owned(),
    ));
    let room = room_of(&scene, lines).await;
    index_all(&scene).await;
    let query = SearchQuery {
        queries: vec!["network password".to_owned(), "router attic".to_owned()],
        ..SearchQuery::new(room.id, "")
    };
    let found = search(&scene, query).await;
    let texts: Vec<&str> = found.hits.iter().map(|hit| hit.text.as_str()).collect();
    assert!(
        texts.contains(&"the router in the attic says blue-otter-77"),
        "{texts:?}"
    );
    assert!(texts.contains(&FACTS[0].0), "{texts:?}");
}

#[tokio::test]
async fn a_hit_comes_with_its_neighbours_and_its_answer() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.say(&room, "morning", 1).await;
    let asked = scene.say(&room, "where is the kraken key?", 2).await;
    scene.say(&room, "let me look", 3).await;
    scene.say(&room, "brb", 4).await;
    scene.say(&room, "coffee?", 5).await;
    scene.say_in_reply(&room, "in drawer 14", 6, asked).await;
    let found = search(&scene, SearchQuery::new(room.id, "kraken")).await;
    let hit = &found.hits[0];
    let texts = |lines: &[crate::contract::Neighbour]| -> Vec<String> {
        lines.iter().map(|it| it.text.clone()).collect()
    };
    assert_eq!(texts(&hit.before), ["morning"]);
    assert_eq!(texts(&hit.after), ["let me look", "brb"]);
    assert_eq!(hit.answered_by.as_ref().unwrap().text, "in drawer 14");
    let found = search(&scene, SearchQuery::new(room.id, "drawer")).await;
    assert_eq!(
        found.hits[0].replied_to.as_ref().unwrap().text,
        "where is the kraken key?"
    );
    let short = SearchQuery {
        token_cap: 10,
        ..SearchQuery::new(room.id, "kraken")
    };
    let found = search(&scene, short).await;
    // 24 characters are 6 tokens, and 4 are left.
    assert_eq!(
        found.hits[0].answered_by.as_ref().unwrap().text,
        "in drawer 14"
    );
    assert!(found.hits[0].before.is_empty() && found.hits[0].after.len() <= 1);
}

#[tokio::test]
async fn filters_hold_whatever_is_asked() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.say(&room, "deploy one", 1_000_000).await;
    scene.say(&room, "deploy two", 2_000_000).await;
    scene.say(&room, "deploy three", 3_000_000).await;
    scene
        .write(|connection| {
            Ok(connection.execute_batch(
                r#"INSERT INTO participants (id, account_id, kind, platform_id, display_name)
                   SELECT 70, account_id, 'user', 'U70', 'Bob Baker' FROM participants LIMIT 1;
                   INSERT INTO participants (id, account_id, kind, platform_id, display_name)
                   SELECT 71, account_id, 'user', 'U71', 'Eve' FROM participants LIMIT 1;
                   UPDATE turns SET participant_id = 70 WHERE seq = 2;
                   UPDATE turns SET attachments =
                       '{"version":1,"items":[{"kind":"file","name":"Plan 2026.pdf"}]}' WHERE seq = 3"#,
            )?)
        })
        .await;
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        let of = |edit: fn(&mut SearchFilter), text: &str| {
            let mut query = SearchQuery::new(room.id, text);
            edit(&mut query.filter);
            query
        };
        let cases: [(SearchQuery, &[&str]); 9] = [
            (
                of(|it| it.from = Some("@bob".to_owned()), "deploy"),
                &["deploy two"],
            ),
            (
                of(|it| it.from = Some("Bob Baker".to_owned()), ""),
                &["deploy two"],
            ),
            (of(|it| it.from = Some("Eve".to_owned()), "deploy"), &[]),
            (
                of(|it| it.after_ms = Some(2_000_000), "deploy"),
                &["deploy three", "deploy two"],
            ),
            (
                of(|it| it.before_ms = Some(2_000_000), "deploy"),
                &["deploy one"],
            ),
            (of(|it| it.before_ms = Some(2_000_000), ""), &["deploy one"]),
            (
                of(|it| it.files = Some("plan".to_owned()), ""),
                &["deploy three"],
            ),
            (
                of(|it| it.files = Some(String::new()), "deploy"),
                &["deploy three"],
            ),
            (of(|it| it.files = Some("other".to_owned()), "deploy"), &[]),
        ];
        for (query, expected) in cases {
            let shown = format!(
                "{:?} {:?} indexed: {is_indexed}",
                query.queries, query.filter
            );
            let found = search(&scene, query).await;
            let texts: Vec<&str> = found.hits.iter().map(|hit| hit.text.as_str()).collect();
            assert_eq!(texts, expected, "{shown}");
        }
        let bob = search(&scene, SearchQuery::new(room.id, "Bob deploy")).await;
        assert_eq!(
            bob.hits[0].text, "deploy two",
            "his name favours what he said"
        );
    }
}

#[tokio::test]
async fn a_name_finds_mentions_of_who_is_shown_by_it() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.say(&room, "hello", 1).await;
    scene
        .say(&room, &format!("{} has the keys", mention_token("U1")), 2)
        .await;
    scene.say(&room, "someone has the plan", 3).await;
    scene
        .write(|connection| {
            Ok(connection.execute_batch(
                "INSERT INTO participants (id, account_id, kind, platform_id, display_name)
                 SELECT 70, account_id, 'user', 'U70', 'Bob' FROM participants LIMIT 1;
                 UPDATE turns SET participant_id = 70 WHERE seq = 3",
            )?)
        })
        .await;
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        assert_eq!(
            texts(&scene, &room, "Ada keys").await[0],
            "@Ada has the keys"
        );
    }
}

#[tokio::test]
async fn queries_that_ask_nothing_much_are_answered() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.say(&room, "who are you", 1).await;
    scene.say(&room, "x marks it", 2).await;
    index_all(&scene).await;
    assert_eq!(texts(&scene, &room, "who are you").await, ["who are you"]);
    assert_eq!(texts(&scene, &room, "x").await, ["x marks it"]);
    assert_eq!(
        texts(&scene, &room, "").await,
        ["x marks it", "who are you"]
    );
    assert_eq!(
        texts(&scene, &room, "\" * + ( ) OR").await,
        Vec::<String>::new()
    );
    let megabyte = "marks ".repeat(180_000);
    let found = search(&scene, SearchQuery::new(room.id, megabyte)).await;
    assert!(found.is_query_cut && found.hits.len() == 1);
    let quoted = texts(&scene, &room, "\"marks it\"").await;
    assert_eq!(quoted, ["x marks it"]);
    assert!(texts(&scene, &room, "+mark").await.is_empty());
    assert_eq!(texts(&scene, &room, "mar* nothing").await, ["x marks it"]);
}

#[tokio::test]
async fn nothing_of_another_room_is_found() {
    let scene = Scene::open().await;
    let (room, other) = (scene.room("C1").await, scene.room("D1").await);
    scene.say(&room, "public chatter", 1).await;
    scene.say(&other, "the zebraword is secret", 2).await;
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        for reach in [
            SearchReach::Conversation,
            SearchReach::Parent,
            SearchReach::Threads,
        ] {
            for text in [
                "zebraword",
                "zebrawordd",
                "secret words",
                "\"zebraword\"",
                "",
            ] {
                let query = SearchQuery {
                    reach,
                    ..SearchQuery::new(room.id, text)
                };
                let found = search(&scene, query).await;
                assert!(
                    found.hits.iter().all(|hit| hit.text == "public chatter"),
                    "{text}"
                );
                assert!(found.taken_for.is_empty(), "{text}: {:?}", found.taken_for);
            }
        }
    }
}

#[tokio::test]
async fn what_is_looked_up_for_questions_is_bounded_and_nothing_that_is_everywhere_clears_the_bar()
{
    let scene = Scene::open().await;
    let line = |n: i64| (n * MINUTE_MS, format!("alpha beta gamma delta omega {n}"));
    let room = room_of(&scene, (0..6_000).map(line).collect()).await;
    index_all(&scene).await;
    let wordings = [
        "alpha beta gamma delta omega",
        "omega alpha",
        "is the delta a gamma?",
    ];
    let query = SearchQuery {
        queries: wordings.map(str::to_owned).to_vec(),
        limit: 24,
        neighbours: 0,
        is_by_people: true,
        ..SearchQuery::new(room.id, "")
    };
    let found = search(&scene, query).await;
    assert!(
        found.effort.postings <= 3 * 12_000 + 9 * 301,
        "{:?}",
        found.effort
    );
    assert!(found.effort.texts <= 3 * 2_000, "{:?}", found.effort);
    assert!(!found.hits.is_empty() && found.wordings.len() == 3);
    let candidates: Vec<Candidate<'_>> = found
        .hits
        .iter()
        .map(|hit| Candidate {
            text: &hit.text,
            speaker: "Ada",
            nearness: 0.0,
        })
        .collect();
    assert!(cleared(&found.wordings, &candidates, None).is_empty());
}

#[tokio::test]
async fn only_what_people_said_up_to_a_point_is_found_where_that_is_asked_for() {
    let scene = Scene::open().await;
    let (room, other) = (scene.room("C1").await, scene.room("C2").await);
    let mut said = Vec::new();
    for (n, text) in ["deploy one", "deploy two", "deploy three", "deploy four"]
        .iter()
        .enumerate()
    {
        said.push(scene.say(&room, text, 1 + n as i64).await);
    }
    let elsewhere = scene.say(&other, "deploy elsewhere", 9).await;
    scene
        .write(|connection| {
            Ok(connection.execute_batch(
                "INSERT INTO participants (id, account_id, kind, platform_id, is_bot)
                 SELECT 70, account_id, 'user', 'B70', 1 FROM participants LIMIT 1;
                 INSERT INTO participants (id, account_id, kind, platform_id)
                 SELECT 71, account_id, 'agent', 'helper' FROM participants LIMIT 1;
                 UPDATE turns SET participant_id = 70 WHERE seq = 2;
                 UPDATE turns SET participant_id = 71 WHERE seq = 3",
            )?)
        })
        .await;
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        let query = SearchQuery {
            is_by_people: true,
            ..SearchQuery::new(room.id, "deploy")
        };
        let up_to = SearchQuery {
            as_of_seq: Some(said[2].seq),
            ..query.clone()
        };
        for (query, expected) in [
            (query, vec!["deploy four", "deploy one"]),
            (up_to, vec!["deploy one"]),
        ] {
            let found = search(&scene, query).await;
            let texts: Vec<&str> = found.hits.iter().map(|hit| hit.text.as_str()).collect();
            assert_eq!(texts, expected, "indexed: {is_indexed}");
        }
    }
    let all: Vec<_> = said.iter().chain([&elsewhere]).map(|it| it.turn).collect();
    let by_people = scene.store.said_by_people(all.clone()).await.unwrap();
    assert_eq!(by_people, [said[0].turn, said[3].turn, elsewhere.turn]);
    // Read for a prompt, whatever was found: nothing of another chat, of bots, or behind the read bound.
    let query = HistoryQuery {
        conversation: room.id,
        agent: crate::scene::agent(),
        as_of_seq: Some(said[2].seq),
        run: None,
        triggers: Vec::new(),
        keep: Keep::Involved,
        max_turns: 9,
        since_ms: None,
        scope: None,
        parent_turns: 0,
        ambient_turns: 0,
        summaries: None,
        thread_answers: false,
        made_by_ms: None,
    };
    let read = scene.store.recalled(query, all).await.unwrap();
    assert_eq!(read.recalled, [said[0].turn]);
    assert_eq!(read.turns.len(), 1);
}
