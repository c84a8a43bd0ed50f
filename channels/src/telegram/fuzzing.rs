//! What the fuzz targets call of this adapter and other crates may not.
//!
//! Hidden and not part of the stable API: thin wrappers of the pure parts, which can so stay private. See
//! `fuzz/README.md`.

use serde_json::value::RawValue;

use vocative_contract::card::{Card, CardMisfit};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::identity::Identity;
use vocative_contract::outbound::Part;
use vocative_contract::people::People;

use super::api::{RawAnswer, read_answer};
use super::wire::{Me, MessageEntity, SentMessage, WebhookInfo, lenient_list};

const OPERATION: &str = "sendMessage";

/// The result in an answer of the Bot API, with every shape that is read from one tried.
///
/// # Errors
/// As a caller of the API gets them.
pub fn answer(
    status: u16,
    header_wait_ms: u64,
    body: &[u8],
    token: &str,
) -> Result<String, ChannelError> {
    let answered = RawAnswer {
        operation: OPERATION,
        status,
        header_wait_ms,
        body,
    };
    let result = read_answer(&answered, token).map_err(|it| it.into_error(OPERATION))?;
    let _ = serde_json::from_str::<Me>(result.get());
    let _ = serde_json::from_str::<SentMessage>(result.get());
    let _ = serde_json::from_str::<WebhookInfo>(result.get());
    Ok(result.get().to_owned())
}

/// The updates in a result of `getUpdates`, each with its id; `None` if it is no list.
#[must_use]
pub fn batch(result: &str) -> Option<Vec<(Option<i64>, String)>> {
    let result: &RawValue = serde_json::from_str(result).ok()?;
    let updates = super::poll::read_batch(result).ok()?;
    let with_id = |raw: String| (super::translate::update_id(&raw), raw);
    Some(updates.into_iter().map(with_id).collect())
}

/// The neutral form of a text with entities (JSON, as Telegram sends them), and whom it mentions.
#[must_use]
pub fn neutral(text: &str, entities: &serde_json::Value, bot: &Identity) -> (String, Vec<String>) {
    let entities: Vec<MessageEntity> = lenient_list(entities).unwrap_or_default();
    let neutral = super::text::neutral(text, &entities, bot);
    (neutral.text, neutral.mentions)
}

/// A text as posts.
#[must_use]
pub fn render(text: &str) -> Vec<Part> {
    super::render::render(text, &People::nobody())
}

/// The characters of a text that people see: a part without any is no post.
#[must_use]
pub fn visible(text: &str) -> String {
    let characters = text.chars();
    characters
        .filter(|c| super::render::is_visible(*c))
        .collect()
}

/// A refused post as smaller or plainer ones.
#[must_use]
pub fn render_fallback(part: &Part, fallback: Fallback) -> Vec<Part> {
    super::render::render_fallback(part, fallback)
}

/// A card as a post.
///
/// # Errors
/// Why it can't be shown as one.
pub fn render_card(card: &Card) -> Result<Part, CardMisfit> {
    super::card::render_card(card)
}
