//! Messages of absurd size, shape, name and time: stored as they are, and a bounded prompt in order.

use std::time::{Duration, Instant};

use vocative_contract::markup::mention_token;

use crate::harness::{Room, START_MS, asked, page, said};

#[tokio::test]
async fn a_megabyte_is_stored_up_to_the_limit_and_cut_in_the_prompt() {
    for limit in [65_536, 1_048_576] {
        let room = Room::with_texts_up_to(limit).await;
        room.talk(asked(1, "my dog is Rex"), "Good dog.").await;
        room.talk(asked(2, &"word ".repeat(220_000)), "I see.")
            .await;
        room.hear(asked(3, &"more ".repeat(220_000))).await;
        let prompt = room.prompt().await;
        assert!(prompt.tokens <= 8_000, "{}", prompt.tokens);
        assert!(page(&prompt).contains("my dog is Rex"));
        let last = &prompt.messages.last().unwrap().content;
        assert!(last.ends_with(" tokens left out]"), "{limit}");
        let stored = &room.turns().await[2].content;
        assert!(stored.len() > limit - 100 && stored.len() <= limit);
        assert!(stored.ends_with(" bytes left out]"), "{limit}");
    }
}

#[tokio::test]
async fn ten_thousand_mentions_cost_a_bounded_number_of_rows() {
    let room = Room::with_texts_up_to(1_048_576).await;
    for number in 1..=20 {
        let id = format!("U0PERSON{number:05}");
        room.hear(said(number, "hi").by(&id, &format!("Person {number}")))
            .await;
    }
    let mentions: String = (1..=10_000)
        .map(|number| mention_token(&format!("U0PERSON{number:05}")))
        .collect();
    room.hear(asked(21, &mentions)).await;
    let started = Instant::now();
    let built = room.built().await;
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(built.history.cost.rows <= 400, "{:?}", built.history.cost);
    assert!(built.prompt.tokens <= 3_000);
    let shown = page(&built.prompt);
    assert!(
        shown.starts_with("[user] Alice: @Kael @Person 1@Person 2@"),
        "{shown:.100}"
    );
    assert!(shown.contains("@Person 20@U0PERSON00021@"));
    // All of it is stored.
    let stored = room.turns().await.pop().unwrap().content;
    assert!(stored.ends_with(&mention_token("U0PERSON10000")));
}

#[tokio::test]
async fn whatever_characters_are_stored_as_they_came() {
    let texts = [
        "nul \u{0} in the middle",
        "\u{1B}[2J\u{7}\u{8}\u{7F}\u{9B}",
        "\u{202E}backwards\u{202C} \u{5E9}\u{5DC}\u{5D5}\u{5DD} \u{200F}",
        "\u{FFFD}\u{FFFE}\u{10FFFF}\u{E000}",
        "e\u{301}\u{301}\u{301}\u{301}",
        "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}",
        "'; DROP TABLE turns; -- \" % _ \\ {{date}} <@U1> \r\n\t",
        "\u{2028}\u{2029}\u{85}\u{B}\u{C}line\rline",
    ];
    let room = Room::open().await;
    for (number, text) in (1..).zip(texts) {
        let odd_name = format!("{text}{text}");
        room.talk(
            asked(number, text).by(&format!("U{number}"), &odd_name),
            "ok",
        )
        .await;
    }
    let stored = room.turns().await;
    let of_people: Vec<&str> = stored
        .iter()
        .filter(|turn| turn.participant.platform_id.starts_with('U'))
        .map(|turn| turn.content.split_once(' ').unwrap().1)
        .collect();
    assert_eq!(of_people, texts);
    room.hear(asked(9, "and?")).await;
    let prompt = room.prompt().await;
    assert_eq!(prompt.messages.len(), 17);
    for message in prompt.messages.iter().filter(|m| m.role.name() == "user") {
        let is_unfit = |c: char| {
            c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{B}' | '\u{C}' | '\u{85}')
        };
        assert!(!message.content.contains(is_unfit), "{:?}", message.content);
        let (label, said) = message.content.split_once(": ").unwrap();
        assert!(!label.contains(char::is_control), "{label:?}");
        let forged = |line: &str| !line.is_empty() && !line.starts_with("  ");
        assert!(!said.lines().skip(1).any(forged), "{said:?}");
    }
}

#[tokio::test]
async fn times_of_any_age_keep_the_rooms_order() {
    let room = Room::open().await;
    let far = [
        (1, i64::MAX),
        (2, 0),
        (3, i64::MIN),
        (4, -62_135_596_800_000),
        (5, 253_402_300_799_999),
        (6, START_MS),
    ];
    for (number, at_ms) in far {
        room.hear(asked(number, &format!("m{number}")).at(at_ms))
            .await;
        room.answer(&format!("a{number}")).await;
    }
    let turns = room.turns().await;
    assert_eq!(turns.len(), 12);
    assert!(
        turns
            .windows(2)
            .all(|pair| pair[0].position < pair[1].position)
    );
    let times: Vec<i64> = turns.iter().map(|turn| turn.position.sent_at_ms).collect();
    // What claims to be of the future is of when it came.
    assert!(
        times.iter().all(|at_ms| *at_ms <= START_MS + 10_000),
        "{times:?}"
    );
    assert!(times.contains(&i64::MIN) && times.contains(&0));
    room.hear(asked(7, "and?")).await;
    let prompt = room.prompt().await;
    assert_eq!(prompt.messages.len(), 13);
    assert!(prompt.omitted.is_empty());
    let questions: Vec<&str> = prompt
        .messages
        .iter()
        .filter_map(|message| message.content.strip_prefix("Alice: @Kael "))
        .collect();
    assert_eq!(questions, ["m3", "m4", "m2", "m6", "m1", "m5", "and?"]);
}

#[tokio::test]
async fn what_arrives_out_of_order_is_read_in_order() {
    let room = Room::open().await;
    let order = [4, 1, 5, 3, 2];
    for number in order {
        let text = format!("line {number}");
        let at_ms = START_MS + 1_000 * (number / 2);
        room.hear(asked(number, &text).at(at_ms)).await;
    }
    for _ in order {
        room.answer("ok").await;
    }
    // Sent again, it is still one turn.
    room.hear_all(order.map(|number| asked(number, "again").at(START_MS)))
        .await;
    room.hear(asked(9, "and?")).await;
    let prompt = room.prompt().await;
    let lines: Vec<&str> = prompt
        .messages
        .iter()
        .filter_map(|message| message.content.strip_prefix("Alice: @Kael line "))
        .collect();
    assert_eq!(lines, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn two_thousand_people_in_a_room_are_told_apart_and_a_prompt_stays_small() {
    let mut room = Room::open().await;
    let hearing = (1..=2_000).map(|number| {
        let id = format!("U0P{number:05}");
        room.hear(said(number, "hello").by(&id, "Alex"))
    });
    futures_util::future::join_all(hearing).await;
    room.hear(asked(2_001, "how many are we?").by("U0P00007", "Alex"))
        .await;
    room.options.addressed_only = false;
    let built = room.built().await;
    assert!(built.history.cost.rows <= 400);
    assert!(built.prompt.tokens <= 3_000);
    let mut labels: Vec<&str> = built
        .prompt
        .messages
        .iter()
        .map(|message| message.content.split_once(": ").unwrap().0)
        .collect();
    assert_eq!(labels.last(), Some(&"Alex (U0P00007)"));
    let all = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert!(labels.len() + 1 >= all);
}
