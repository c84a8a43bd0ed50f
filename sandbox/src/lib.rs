//! A loopback Slack, a loopback Telegram and a scripted model server.
//!
//! They speak the real wire protocols over real sockets, refuse what the platforms refuse, and fail on demand. Written
//! from the protocol sheets; shares no code with any adapter, because a shared bug would hide. Reading order: `wire`,
//! `slack`, `telegram`, `model`, `orders`, `hooks`; all but the last two have a control surface over HTTP, with the
//! `journal` of what went over its wire.

pub mod hooks;
mod journal;
pub mod mcp;
pub mod model;
pub mod orders;
mod parts;
mod percent;
mod probe;
pub mod selfcheck;
pub mod slack;
mod socket;
pub mod telegram;
pub mod wire;

use serde_json::{Value, json};

use crate::model::ModelServer;
use crate::slack::SlackServer;
use crate::telegram::TelegramServer;

/// What a bot needs to talk to these three, and a script to play the people: addresses and tokens.
#[must_use]
pub fn addresses(slack: &SlackServer, telegram: &TelegramServer, model: &ModelServer) -> Value {
    let world = slack.world();
    json!({
        "slack": {
            "api_url": slack.api_url(), "control_url": format!("http://{}/control/", slack.addr()),
            "bot_token": world.bot_token, "app_token": world.app_token,
            "signing_secret": world.signing_secret, "bot_user_id": world.bot_user_id,
            "team_id": world.team_id,
        },
        "telegram": {
            "api_url": telegram.api_url(),
            "control_url": format!("{}/control/", telegram.api_url()),
            "token": telegram.token(),
        },
        "model": {
            "openai_url": model.openai_url(), "anthropic_url": model.anthropic_url(),
            "control_url": format!("http://{}/control/", model.addr()),
        },
    })
}
