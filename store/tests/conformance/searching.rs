//! Searches that forgive, against rooms with facts that were said once, in passing.

use vocative_contract::envelope::{Attachment, SenderKind};
use vocative_contract::markup::mention_token;
use vocative_core::coverage::Keep;
use vocative_core::history::HistoryQuery;
use vocative_core::ids::ConversationId;
use vocative_core::search::SearchReach;
use vocative_core::search::bar::{Candidate, cleared};
use vocative_core::turn::ParticipantKind;
use vocative_store::contract::{
    CapturedTurn, ImportBatch, ImportMessage, ImportProgress, Neighbour, NewMessage, SearchFilter,
    SearchHits, SearchQuery,
};

use crate::said::{admitted, agent, turn_of};
use crate::scene::Scene;

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

async fn room_of(scene: &Scene, lines: Vec<(i64, String)>) -> ConversationId {
    let room = scene.say("C1", "hello", 0).await.conversation;
    fill(scene, lines).await;
    room
}

/// Lines as an import brings them in their order, each of its time.
async fn fill(scene: &Scene, lines: Vec<(i64, String)>) {
    let messages = lines.into_iter().map(|(at_ms, text)| ImportMessage {
        message: scene.next_message("C1", &text, at_ms, admitted(&[])),
        own_box: None,
        is_own: false,
    });
    let batch = ImportBatch {
        account: scene.account,
        messages: messages.collect(),
        people: Vec::new(),
        progress: ImportProgress {
            fingerprint: "lines".to_owned(),
            things: 0,
            is_finished: true,
        },
        now_ms: i64::MAX,
    };
    scene.store.import(batch).await.unwrap();
}

/// Something said in the chat C1 that is changed before it is heard.
async fn say_changed(
    scene: &Scene,
    text: &str,
    at_ms: i64,
    change: impl FnOnce(&mut NewMessage),
) -> CapturedTurn {
    let mut message = scene.next_message("C1", text, at_ms, admitted(&[]));
    change(&mut message);
    turn_of(scene.store.capture_message(message).await.unwrap())
}

/// Somebody else says it.
fn by(message: &mut NewMessage, id: &str, name: &str) {
    id.clone_into(&mut message.sender.id);
    message.sender.display_name = Some(name.to_owned());
}

async fn index_all(scene: &Scene) {
    while scene.store.index_turns().await.unwrap() {}
}

async fn search(scene: &Scene, query: SearchQuery) -> SearchHits {
    scene.store.search(query).await.unwrap()
}

async fn texts(scene: &Scene, room: ConversationId, query: &str) -> Vec<String> {
    let found = search(scene, SearchQuery::new(room, query)).await;
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
                let found = texts(&scene, room, asked).await;
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
        let found = search(&scene, SearchQuery::new(room, "standup")).await;
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
    fill(&scene, old.collect()).await;
    index_all(&scene).await;
    assert_eq!(
        texts(&scene, room, "release friday").await[0],
        "the release is on Friday"
    );
    assert!(
        texts(&scene, room, "release")
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
        SearchQuery::new(room, "alpha beta gamma delta omega"),
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
    let found = search(&scene, SearchQuery::new(room, "tideline licences bought")).await;
    assert_eq!(found.hits[0].text, "tideline signed for 496 seats");
    assert_eq!(found.hits.len(), 3);
    assert!(found.effort.texts <= 2_000, "{:?}", found.effort);
}

#[tokio::test]
async fn a_word_that_is_nowhere_stands_for_what_was_meant() {
    let scene = Scene::open().await;
    let room = scene
        .say("C1", "the password is in the vault", 1)
        .await
        .conversation;
    scene
        .say("C1", "das Gästepasswort hängt an der Tür", 2)
        .await;
    scene.say("C1", "unrelated words", 3).await;
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
            let found = search(&scene, SearchQuery::new(room, query)).await;
            assert_eq!(found.hits[0].text, expected, "{query}");
            assert_eq!(found.taken_for.len(), 1, "{query}: {:?}", found.taken_for);
        }
        assert!(texts(&scene, room, "xylophone").await.is_empty());
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
        ..SearchQuery::new(room, "")
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
    let room = scene.say("C1", "morning", 1).await.conversation;
    scene.say("C1", "where is the kraken key?", 2).await;
    scene.say("C1", "let me look", 3).await;
    scene.say("C1", "brb", 4).await;
    scene.say("C1", "coffee?", 5).await;
    scene.reply("C1", "in drawer 14", 6, "m1").await;
    let found = search(&scene, SearchQuery::new(room, "kraken")).await;
    let hit = &found.hits[0];
    let texts =
        |lines: &[Neighbour]| -> Vec<String> { lines.iter().map(|it| it.text.clone()).collect() };
    assert_eq!(texts(&hit.before), ["morning"]);
    assert_eq!(texts(&hit.after), ["let me look", "brb"]);
    assert_eq!(hit.answered_by.as_ref().unwrap().text, "in drawer 14");
    let found = search(&scene, SearchQuery::new(room, "drawer")).await;
    assert_eq!(
        found.hits[0].replied_to.as_ref().unwrap().text,
        "where is the kraken key?"
    );
    let short = SearchQuery {
        token_cap: 10,
        ..SearchQuery::new(room, "kraken")
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
    let room = scene.say("C1", "deploy one", 1_000_000).await.conversation;
    let two = say_changed(&scene, "deploy two", 2_000_000, |it| {
        by(it, "U70", "Bob Baker");
    });
    two.await;
    let three = say_changed(&scene, "deploy three", 3_000_000, |it| {
        it.attachments = vec![Attachment {
            kind: "file".to_owned(),
            file_id: None,
            name: Some("Plan 2026.pdf".to_owned()),
            mime_type: None,
            size_bytes: None,
        }];
    });
    three.await;
    // Who says nothing here.
    let elsewhere = say_changed(&scene, "hello", 1, |it| {
        by(it, "U71", "Eve");
        "C2".clone_into(&mut it.place.chat);
    });
    elsewhere.await;
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        let of = |edit: fn(&mut SearchFilter), text: &str| {
            let mut query = SearchQuery::new(room, text);
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
        let bob = search(&scene, SearchQuery::new(room, "Bob deploy")).await;
        assert_eq!(
            bob.hits[0].text, "deploy two",
            "his name favours what he said"
        );
    }
}

#[tokio::test]
async fn a_name_finds_mentions_of_who_is_shown_by_it() {
    let scene = Scene::open().await;
    let room = scene.say("C1", "hello", 1).await.conversation;
    scene
        .say("C1", &format!("{} has the keys", mention_token("U1")), 2)
        .await;
    let other = say_changed(&scene, "someone has the plan", 3, |it| {
        by(it, "U70", "Bob");
    });
    other.await;
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        assert_eq!(
            texts(&scene, room, "Ada keys").await[0],
            "@Ada has the keys"
        );
    }
}

#[tokio::test]
async fn queries_that_ask_nothing_much_are_answered() {
    let scene = Scene::open().await;
    let room = scene.say("C1", "who are you", 1).await.conversation;
    scene.say("C1", "x marks it", 2).await;
    index_all(&scene).await;
    assert_eq!(texts(&scene, room, "who are you").await, ["who are you"]);
    assert_eq!(texts(&scene, room, "x").await, ["x marks it"]);
    assert_eq!(texts(&scene, room, "").await, ["x marks it", "who are you"]);
    assert_eq!(
        texts(&scene, room, "\" * + ( ) OR").await,
        Vec::<String>::new()
    );
    let megabyte = "marks ".repeat(180_000);
    let found = search(&scene, SearchQuery::new(room, megabyte)).await;
    assert!(found.is_query_cut && found.hits.len() == 1);
    let quoted = texts(&scene, room, "\"marks it\"").await;
    assert_eq!(quoted, ["x marks it"]);
    assert!(texts(&scene, room, "+mark").await.is_empty());
    assert_eq!(texts(&scene, room, "mar* nothing").await, ["x marks it"]);
}

#[tokio::test]
async fn nothing_of_another_room_is_found() {
    let scene = Scene::open().await;
    let room = scene.say("C1", "public chatter", 1).await.conversation;
    scene.say("D1", "the zebraword is secret", 2).await;
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
                    ..SearchQuery::new(room, text)
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
        ..SearchQuery::new(room, "")
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
    let mut said = Vec::new();
    for (n, text) in ["deploy one", "deploy two", "deploy three", "deploy four"]
        .iter()
        .enumerate()
    {
        let heard = say_changed(&scene, text, 1 + n as i64, |it| match n {
            1 => {
                by(it, "B70", "Robot");
                it.sender.kind = SenderKind::Bot;
            }
            2 => {
                by(it, "helper", "Helper");
                it.sender_kind = ParticipantKind::Agent;
            }
            _ => {}
        });
        said.push(heard.await);
    }
    let room = said[0].conversation;
    let elsewhere = scene.say("C2", "deploy elsewhere", 9).await;
    for is_indexed in [false, true] {
        if is_indexed {
            index_all(&scene).await;
        }
        let query = SearchQuery {
            is_by_people: true,
            ..SearchQuery::new(room, "deploy")
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
        conversation: room,
        agent: agent("helper"),
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
