//! The list of commands that Telegram shows when somebody types a slash.

use serde::Deserialize;
use serde_json::json;

use crate::channel::Announced;
use crate::error::ChannelError;

use super::api::{Api, Parameters};

/// A command as the platform knows it.
#[derive(Debug, Deserialize, PartialEq, Eq)]
struct BotCommand {
    command: String,
    description: String,
}

/// Sets the list where it is another one: setting is limited, asking is cheap. Returns whether it was.
pub(super) async fn announce(api: &Api, commands: &[Announced]) -> Result<bool, ChannelError> {
    let ask = "getMyCommands";
    let known: Vec<BotCommand> = api
        .call(ask, &Parameters::new())
        .await
        .map_err(|failure| failure.into_error(ask))?;
    let is_same = |(known, wanted): (&BotCommand, &Announced)| {
        known.command == wanted.name && known.description == wanted.description
    };
    if known.len() == commands.len() && known.iter().zip(commands).all(is_same) {
        return Ok(false);
    }
    let list: Vec<_> = commands
        .iter()
        .map(|it| json!({"command": it.name, "description": it.description}))
        .collect();
    let set = "setMyCommands";
    let mut parameters = Parameters::new();
    parameters.insert("commands".to_owned(), json!(list));
    api.call_raw(set, &parameters)
        .await
        .map_err(|failure| failure.into_error(set))?;
    Ok(true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
    use vocative_sandbox::wire::WireLog;

    use super::*;
    use crate::http::HttpTimeouts;

    #[tokio::test]
    async fn the_list_is_set_only_where_it_is_another_one() {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let world = TelegramWorld::team();
        let server = TelegramServer::start(world, ([127, 0, 0, 1], 0).into(), WireLog::new())
            .await
            .unwrap();
        let api = Api::new(
            &server.api_url(),
            server.token().into(),
            HttpTimeouts::default(),
        );
        let command = |name: &str| Announced {
            name: name.to_owned(),
            description: format!("What {name} does"),
        };
        let both = [command("help"), command("new")];
        assert!(announce(&api, &both).await.unwrap());
        assert!(!announce(&api, &both).await.unwrap());
        assert!(announce(&api, &both[..1]).await.unwrap());
    }
}
