//! People who are let in to direct chats by a code.

use vocative_core::addressing::{MessageFacts, Notice, NoticeKind, Verdict};
use vocative_core::code::Code;
use vocative_core::pairing::{OPEN_CODES_MAX, PAIRED_MAX, PAIRING_CODE_LIFE_MS};
use vocative_core::words::Language;
use vocative_store::contract::{Captured, LetIn, NewMessage, SaidCode};

use crate::said::{NOW_MS, Said, said};
use crate::scene::Scene;

fn refused() -> impl FnOnce(&MessageFacts) -> Verdict + Send + 'static {
    |_| Verdict {
        notice: Some(Notice {
            kind: NoticeKind::Unpaired {
                language: Language::German,
            },
            text: "not served".to_owned(),
            is_private: false,
        }),
        ..Verdict::default()
    }
}

/// Somebody who is not served writes in their direct chat; what they are told.
async fn knock(scene: &Scene, n: u32, at_ms: i64) -> String {
    let message = said("1", "a secret").message(scene.account, Box::new(refused()));
    let mut message = NewMessage {
        received_at_ms: at_ms,
        message_id: format!("m{n}-{at_ms}"),
        ..message
    };
    message.place.chat = format!("D{n}");
    message.sender.id = format!("P{n}");
    let captured = scene.store.capture_message(message).await.unwrap();
    assert_eq!(captured, Captured::NotAdmitted { has_notice: true });
    told(scene, &format!("D{n}"), at_ms).await
}

/// What is told in a chat, which becomes a message there.
async fn told(scene: &Scene, chat: &str, at_ms: i64) -> String {
    let mut posts = scene.claim_posts(at_ms).await;
    assert_eq!(posts.len(), 1);
    let post = posts.remove(0);
    assert_eq!(post.entry.target.chat, chat);
    let id = format!("{chat}.{}", post.entry.id.0);
    scene.send(&post, &id, at_ms).await;
    post.entry.part.text
}

fn code_in(told: &str) -> Code {
    let mut codes = told.split(' ').filter_map(Code::read);
    codes
        .next()
        .unwrap_or_else(|| panic!("no code is in {told}"))
}

async fn paired(scene: &Scene) -> Vec<String> {
    let people = scene.store.paired(scene.account).await.unwrap();
    people.into_iter().collect()
}

/// Whom a code let in.
fn person_of(became: LetIn) -> Option<String> {
    match became {
        LetIn::Now(pairing) => Some(pairing.person),
        LetIn::NoSuchCode | LetIn::Full => None,
    }
}

async fn approve(scene: &Scene, code: &Code, now_ms: i64) -> LetIn {
    let said = SaidCode {
        account: scene.account,
        code: code.clone(),
        by: "ops".to_owned(),
        now_ms,
    };
    scene.store.approve_pairing(said).await.unwrap()
}

#[tokio::test]
async fn somebody_is_let_in_once_by_their_code_and_told_so() {
    let scene = Scene::open().await;
    let code = code_in(&knock(&scene, 1, NOW_MS).await);
    let waiting = scene.store.pairings(NOW_MS).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (waiting[0].person.as_str(), &waiting[0].approved),
        ("P1", &None)
    );
    assert_eq!(scene.turns().await, [], "nothing of it is stored");
    assert_eq!(waiting[0].name, None);
    assert_eq!(paired(&scene).await, [""; 0]);

    let became = approve(&scene, &code, NOW_MS + 9).await;
    assert_eq!(person_of(became).as_deref(), Some("P1"));
    let welcome = told(&scene, "D1", NOW_MS + 10).await;
    assert_eq!(welcome, Language::German.pairing_done());
    assert_eq!(approve(&scene, &code, NOW_MS + 11).await, LetIn::NoSuchCode);
    assert_eq!(paired(&scene).await, ["P1"]);
    // Somebody with that name speaks: the list says who it is.
    let heard = Said {
        by: "P1",
        ..said("2", "hello")
    };
    scene.hear(heard).await;
    let listed = scene.store.pairings(NOW_MS + 86_400_000).await.unwrap();
    let by_ops = Some((NOW_MS + 9, "ops".to_owned()));
    assert_eq!(
        (listed[0].name.as_deref(), &listed[0].approved),
        (Some("Ada"), &by_ops)
    );

    let revoke = async || {
        let revoked = scene.store.revoke_pairing(scene.account, "P1".to_owned());
        revoked.await.unwrap()
    };
    assert!(revoke().await && !revoke().await);
    assert_eq!(paired(&scene).await, [""; 0]);
}

#[tokio::test]
async fn a_code_is_good_for_an_hour_and_a_later_one_takes_its_place() {
    let scene = Scene::open().await;
    let first = code_in(&knock(&scene, 1, NOW_MS).await);
    let late_ms = NOW_MS + PAIRING_CODE_LIFE_MS;
    assert_eq!(approve(&scene, &first, late_ms).await, LetIn::NoSuchCode);
    assert_eq!(scene.store.pairings(late_ms).await.unwrap(), []);
    let ahead_ms = NOW_MS - PAIRING_CODE_LIFE_MS - 1;
    assert_eq!(
        approve(&scene, &first, ahead_ms).await,
        LetIn::NoSuchCode,
        "the clock was set back"
    );
    let second = code_in(&knock(&scene, 1, late_ms).await);
    assert_eq!(
        approve(&scene, &first, late_ms + 1).await,
        LetIn::NoSuchCode
    );
    let let_in_at_last = approve(&scene, &second, late_ms + PAIRING_CODE_LIFE_MS - 1).await;
    assert_eq!(person_of(let_in_at_last).as_deref(), Some("P1"));
}

#[tokio::test]
async fn no_more_than_some_people_are_let_in_and_others_make_room() {
    let scene = Scene::open().await;
    let mut codes = Vec::new();
    for n in 0..=PAIRED_MAX {
        // Each an hour after the other, so that none of them is too many.
        let at_ms = NOW_MS + i64::from(n) * PAIRING_CODE_LIFE_MS;
        let code = code_in(&knock(&scene, n, at_ms).await);
        let became = approve(&scene, &code, at_ms + 1).await;
        match n < PAIRED_MAX {
            true => {
                assert_eq!(person_of(became), Some(format!("P{n}")));
                told(&scene, &format!("D{n}"), at_ms + 2).await;
            }
            false => assert_eq!(became, LetIn::Full),
        }
        codes.push((code, at_ms));
    }
    let revoked = scene.store.revoke_pairing(scene.account, "P7".to_owned());
    assert!(revoked.await.unwrap());
    let (code, at_ms) = codes.pop().unwrap();
    let became = approve(&scene, &code, at_ms + 3).await;
    assert_eq!(person_of(became), Some(format!("P{PAIRED_MAX}")));
}

#[tokio::test]
async fn a_crowd_is_told_that_it_is_not_served_until_codes_are_too_old() {
    let scene = Scene::open().await;
    for n in 0..OPEN_CODES_MAX {
        code_in(&knock(&scene, n, NOW_MS).await);
    }
    assert_eq!(
        knock(&scene, OPEN_CODES_MAX, NOW_MS + 1).await,
        "not served"
    );
    let late_ms = NOW_MS + PAIRING_CODE_LIFE_MS;
    code_in(&knock(&scene, OPEN_CODES_MAX, late_ms).await);
    let waiting = scene.store.pairings(late_ms).await.unwrap();
    assert_eq!(waiting.len(), 1, "what was too old is gone");
}
