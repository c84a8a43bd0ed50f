//! What people see of a call is what runs, on both platforms: a thousand sets of arguments are posted as cards, and
//! what the room shows is read back.

#![allow(clippy::unwrap_used)]

use secrecy::SecretString;
use serde_json::Value;
use vocative_channels::slack::{SlackChannel, SlackSettings};
use vocative_channels::telegram::{TelegramChannel, TelegramSettings};
use vocative_contract::card::{ButtonStyle, Card, CardButton, CardFact, CardText};
use vocative_contract::channel::Channel;
use vocative_contract::handles::Outbound;
use vocative_contract::outbound::{Operation, Post, Target};
use vocative_core::approving::testing::{argument_sets, read_back};
use vocative_core::approving::{CardButtons, fitted_card, shown_arguments};
use vocative_core::words::Language;
use vocative_sandbox::slack::{SlackServer, SlackWorld};
use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

const SETS: usize = 1_000;

fn button(data: &str) -> CardButton {
    CardButton {
        data: data.to_owned(),
        label: data.to_owned(),
        style: ButtonStyle::Plain,
    }
}

fn buttons() -> CardButtons {
    CardButtons {
        whole: vec![button("approve"), button("deny")],
        cut: vec![button("deny")],
    }
}

/// A card's post as a room shows it: the texts, and the data of its buttons.
struct Shown {
    texts: Vec<CardText>,
    buttons: Vec<String>,
}

fn text(title: &str, text: &str) -> CardText {
    CardText {
        title: title.to_owned(),
        text: text.to_owned(),
    }
}

/// Posts a card for each set of arguments, and holds what the room shows against it.
async fn what_is_shown_is_what_runs(
    channel: &dyn Channel,
    chat: &str,
    look: impl Fn(&str) -> Shown,
    tidy: impl Fn(),
) {
    let identity = channel.identify().await.unwrap();
    let Outbound {
        renderer, poster, ..
    } = channel.outbound(&identity);
    let card = Card {
        heading: "May I do this? refund".to_owned(),
        facts: vec![CardFact {
            label: "Asked by".to_owned(),
            value: "Ann".to_owned(),
        }],
        ..Card::default()
    };
    let (mut whole, mut cut) = (0, 0);
    for (n, set) in argument_sets(SETS, 120).into_iter().enumerate() {
        // A long room takes long to look at.
        if n.is_multiple_of(50) {
            tidy();
        }
        let texts = shown_arguments(&set, [], Language::English);
        let render = |card: &Card| renderer.render_card(card);
        let fitted = fitted_card(&card, &texts, &buttons(), Language::English, &render).unwrap();
        let post = Post {
            marker: "m".to_owned(),
            target: Target {
                chat: chat.to_owned(),
                thread: None,
                topic: None,
                reply_to: None,
            },
            operation: Operation::Post,
            part: fitted.part,
        };
        let delivered = poster.deliver(&post).await.unwrap();
        let shown = look(&delivered.message_id);
        if fitted.is_whole {
            assert_eq!(read_back(&shown.texts), Some(set));
            assert_eq!(shown.buttons, ["approve", "deny"]);
            whole += 1;
        } else {
            assert_eq!(shown.buttons, ["deny"]);
            cut += 1;
        }
    }
    assert!(whole > 900 && cut > 10, "{whole} whole, {cut} cut");
}

fn strings<'a>(list: &'a Value, name: &'a str) -> impl Iterator<Item = &'a Value> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter(move |it| it["type"] == name)
}

fn slack_shows(blocks: &Value) -> Shown {
    let words = |element: &Value| -> String {
        let leaves = element["elements"].as_array().into_iter().flatten();
        leaves.filter_map(|leaf| leaf["text"].as_str()).collect()
    };
    let texts = strings(blocks, "rich_text").filter_map(|block| {
        let elements = &block["elements"];
        let code = strings(elements, "rich_text_preformatted").next()?;
        let title = strings(elements, "rich_text_section").next()?;
        Some(text(&words(title), &words(code)))
    });
    let actions =
        strings(blocks, "actions").flat_map(|block| strings(&block["elements"], "button"));
    Shown {
        texts: texts.collect(),
        buttons: actions
            .map(|it| it["value"].as_str().unwrap().to_owned())
            .collect(),
    }
}

/// The piece of a text that an entity, counted in UTF-16 units, is of.
fn piece(text: &str, entity: &Value) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let number = |name: &str| usize::try_from(entity[name].as_u64().unwrap()).unwrap();
    let (start, length) = (number("offset"), number("length"));
    String::from_utf16(&units[start..start + length]).unwrap()
}

fn telegram_shows(text_shown: &str, entities: &Value, keyboard: &Value) -> Shown {
    let mut title = String::new();
    let mut texts = Vec::new();
    for entity in entities.as_array().unwrap() {
        match entity["type"].as_str().unwrap() {
            "bold" | "code" => title = piece(text_shown, entity),
            "pre" => texts.push(text(&title, &piece(text_shown, entity))),
            other => panic!("a card has an entity {other}"),
        }
    }
    let rows = keyboard["inline_keyboard"].as_array().unwrap().iter();
    let keys = rows.flat_map(|row| row.as_array().unwrap());
    Shown {
        texts,
        buttons: keys
            .map(|it| it["callback_data"].as_str().unwrap().to_owned())
            .collect(),
    }
}

#[tokio::test]
async fn slack_shows_what_runs() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let world = SlackWorld::acme();
    let (app, bot) = (world.app_token.clone(), world.bot_token.clone());
    let any_port = ([127, 0, 0, 1], 0).into();
    let server = SlackServer::start(world, any_port, WireLog::new())
        .await
        .unwrap();
    let settings = SlackSettings {
        api_url: server.api_url(),
        ..SlackSettings::new("slack", SecretString::from(app), SecretString::from(bot))
    };
    let channel = SlackChannel::new(settings).unwrap();
    let look = |ts: &str| {
        let posts = server.posts("C0GENERAL");
        let post = posts.iter().rev().find(|post| post.ts == ts).unwrap();
        slack_shows(post.blocks.as_ref().unwrap())
    };
    what_is_shown_is_what_runs(&channel, "C0GENERAL", look, || server.reset()).await;
}

#[tokio::test]
async fn telegram_shows_what_runs() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let any_port = ([127, 0, 0, 1], 0).into();
    let server = TelegramServer::start(TelegramWorld::team(), any_port, WireLog::new())
        .await
        .unwrap();
    let settings = TelegramSettings {
        api_url: server.api_url(),
        ..TelegramSettings::new("telegram", SecretString::from(server.token()))
    };
    let chat = TelegramWorld::SUPERGROUP;
    let channel = TelegramChannel::new(settings);
    let look = |id: &str| {
        let posts = server.bot_posts(chat);
        let post = posts
            .iter()
            .rev()
            .find(|post| post.message_id.to_string() == id)
            .unwrap();
        telegram_shows(&post.text, &post.entities, post.keyboard.as_ref().unwrap())
    };
    what_is_shown_is_what_runs(&channel, &chat.to_string(), look, || server.reset()).await;
}
