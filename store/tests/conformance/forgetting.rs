//! What goes with a chat, a person or a file that is forgotten, and what stays.

use vocative_contract::identity::{Identity, Platform};
use vocative_core::command::{CommandVerdict, Effect};
use vocative_core::run::ClaimedRun;
use vocative_core::sent::SentPrompt;
use vocative_store::contract::{Captured, CommittedReply};
use vocative_store::erasure::{ErasureTarget, Verification};

use crate::files::fetch_all;
use crate::said::{NOW_MS, Said, said};
use crate::scene::Scene;

const LATER_MS: i64 = NOW_MS + 900_000;

/// An operator erases the person U1.
async fn erase(scene: &Scene) -> Option<Verification> {
    let store = &scene.store;
    let target = ErasureTarget::Person("U1".to_owned());
    let plan = store.plan_erasure(target, LATER_MS).await.unwrap();
    let ids: Vec<_> = plan.entries.iter().map(|entry| entry.id).collect();
    store.begin_erasure(plan.entries).await.unwrap();
    let done = store.carry_out_all(&ids, true, || LATER_MS).await;
    done.unwrap().verification
}

fn by_bob(id: &'static str, text: &'static str) -> Said {
    Said {
        by: "U2",
        name: Some("Bob"),
        ..said(id, text)
    }
}

#[tokio::test]
async fn a_forgotten_chat_is_forgotten_in_every_topic_that_is_known_or_not() {
    let scene = Scene::open().await;
    let in_topic = |id, topic| Said {
        topic,
        ..said(id, "zebra")
    };
    for (id, topic) in [("1", None), ("2", Some("7")), ("3", Some("8"))] {
        scene.hear(in_topic(id, topic)).await;
    }
    let elsewhere = Said {
        chat: "C2",
        ..said("4", "stays")
    };
    scene.hear(elsewhere).await;
    let verdict = CommandVerdict {
        effect: Effect::ForgetChat,
        ..CommandVerdict::told("done")
    };
    let given = scene.command("t1", LATER_MS, verdict).await;
    let clock = || LATER_MS + 1;
    let done = scene.store.carry_out_all(&given.erasures, false, clock);
    done.await.unwrap();
    assert_eq!(scene.contents().await, ["", "", "", "stays"]);
    for (id, topic) in [("11", None), ("12", Some("7")), ("13", Some("9"))] {
        let earlier = scene.hear(in_topic(id, topic)).await;
        assert_eq!(earlier, Captured::Tombstone, "{topic:?}");
    }
    let later = Said {
        at_ms: LATER_MS + 1,
        received_at_ms: LATER_MS + 2,
        ..in_topic("14", Some("9"))
    };
    assert!(matches!(scene.hear(later).await, Captured::New(_)));
}

async fn answer(scene: &Scene, run: &ClaimedRun, text: &str) -> CommittedReply {
    let reply = scene.answer(run, text).await;
    scene.store.commit_reply(reply).await.unwrap()
}

#[tokio::test]
async fn an_answer_goes_with_the_file_that_it_was_made_from_and_is_not_given_once_that_is_gone() {
    let scene = Scene::open().await;
    let store = &scene.store;
    let mut runs = Vec::new();
    for n in 0..2 {
        let file = scene.say("C1", "my file", n * 10).await;
        scene.ask("C1", "what is in the file?", n * 10 + 5).await;
        let run = scene.claim(NOW_MS).await.unwrap();
        let sent = SentPrompt {
            recipe: "{}".to_owned(),
            instructions: String::new(),
            tools: "[]".to_owned(),
            summary: None,
            turns: Vec::new(),
            thread_answers: Vec::new(),
        };
        let recorded = store.record_prompt(run.run.id, run.token, sent, vec![file.turn]);
        recorded.await.unwrap();
        if n == 0 {
            let given = answer(&scene, &run, "It says zebra.").await;
            assert!(matches!(given, CommittedReply::Written { .. }));
            scene.send_one("90", NOW_MS + 2).await;
        }
        runs.push(run);
    }
    for file in ["m0", "m2"] {
        let deleted = store.capture_delete(scene.account, "C1", file, LATER_MS);
        deleted.await.unwrap();
    }
    let late = answer(&scene, &runs[1], "It says zebra.").await;
    assert_eq!(late, CommittedReply::SourceGone);
    assert!(!scene.contents().await.concat().contains("zebra"));
    assert!(!format!("{:?}", scene.posts().await).contains("zebra"));
    // The next attempt reads anew, and may answer.
    let next = answer(&scene, &runs[1], "There is no file.").await;
    assert!(matches!(next, CommittedReply::Written { .. }));
}

#[tokio::test]
async fn what_a_file_of_an_erased_person_says_is_looked_for_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::open_at(Some(folder.path().join("vocative.db"))).await;
    let with_file = Said {
        file: Some("notes.md"),
        ..said("1", "see this")
    };
    scene.hear(with_file).await;
    let plan = b"The plan\nannex 4711-0815-x\nthe launch is on Monday at noon\n";
    fetch_all(&scene, plan).await;
    scene.hear(by_bob("2", "so 4711-0815-X it is")).await;
    let quoting = by_bob("3", "The launch is on Monday at noon, fine");
    scene.hear(quoting).await;
    let verification = erase(&scene).await.unwrap();
    assert!(verification.texts >= 3, "{verification:?}");
    assert_eq!(verification.hits, []);
    let expected = ["", "so [erased] it is", "[erased], fine"];
    assert_eq!(scene.contents().await, expected);
}

#[tokio::test]
async fn a_command_and_our_names_stay_in_what_others_say() {
    let scene = Scene::open().await;
    let identity = Identity {
        platform: Platform::Slack,
        account: "T1".to_owned(),
        account_name: "Acme".to_owned(),
        user_id: "B1".to_owned(),
        other_ids: Vec::new(),
        username: Some("kael_the_bot".to_owned()),
        display_name: "Kael".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    };
    scene.learn_bot(&identity).await;
    let texts = [
        "/forget@kael_the_bot",
        "ask kael_the_bot or @somebody_else1",
    ];
    for (own, bobs, text) in [("1", "3", texts[0]), ("2", "4", texts[1])] {
        scene.hear(said(own, text)).await;
        scene.hear(by_bob(bobs, text)).await;
    }
    erase(&scene).await;
    let expected = ["", texts[0], "", texts[1]];
    assert_eq!(scene.contents().await, expected);
}
