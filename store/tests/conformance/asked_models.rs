//! The model that a question asks for.

use std::collections::BTreeMap;

use vocative_core::addressing::{Overlap, Verdict};

use crate::said::{admitted, agent};
use crate::scene::Scene;

fn asking(model: Option<&str>) -> Verdict {
    Verdict {
        asked_model: model.map(str::to_owned),
        overlaps: BTreeMap::from([(agent("helper"), Overlap::Collect)]),
        ..admitted(&["helper"])
    }
}

/// Says something again, word for word or in other words.
async fn tell_again(scene: &Scene, id: &str, text: &str, model: Option<&str>, is_edit: bool) {
    let mut message = scene.next_message("C1", text, 10, asking(model));
    message.message_id = id.to_owned();
    message.is_edit = is_edit;
    message.edit_marker = is_edit.then(|| format!("e{text}"));
    scene.store.capture_message(message).await.unwrap();
}

#[tokio::test]
async fn the_newest_word_about_a_question_says_which_model_answers_it() {
    let scene = Scene::open().await;
    // The first is "m0", the second "m1"; they are answered together.
    scene.say_with("C1", "why?", 1, asking(Some("cheap"))).await;
    scene
        .say_with("C1", "and how?", 2, asking(Some("deep")))
        .await;
    // The first comes again, and its typo is mended: the second's wish stays.
    tell_again(&scene, "m0", "why?", Some("cheap"), false).await;
    tell_again(&scene, "m0", "why??", None, true).await;
    let claimed = scene.claim(20).await.unwrap();
    assert_eq!(claimed.run.triggers.len(), 2);
    assert_eq!(claimed.asked_model.as_deref(), Some("deep"));
}

#[tokio::test]
async fn an_edit_of_a_question_that_waits_changes_its_model() {
    let scene = Scene::open().await;
    scene.say_with("C1", "why?", 1, asking(Some("deep"))).await;
    tell_again(&scene, "m0", "why so?", None, true).await;
    tell_again(&scene, "m0", "why though?", Some("cheap"), true).await;
    let claimed = scene.claim(20).await.unwrap();
    assert_eq!(claimed.asked_model.as_deref(), Some("cheap"));
    let other = Scene::open().await;
    other.say_with("C1", "why?", 1, asking(Some("deep"))).await;
    tell_again(&other, "m0", "why so?", None, true).await;
    assert_eq!(other.claim(20).await.unwrap().asked_model, None);
}
