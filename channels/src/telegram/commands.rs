//! The lists of commands that Telegram shows when somebody types a slash.
//!
//! One list for everybody, one for private chats, one for groups, one for the administrators of groups, and one for
//! each of ours in their private chat. Telegram shows the narrowest that there is, so a narrower list that would only
//! repeat a broader one is removed. A group's administrators need not be the bot's administrators; the command tells
//! those that it refuses them.

use serde::Deserialize;
use serde_json::{Value, json};

use vocative_contract::channel::{Announced, Announcement, Audience};
use vocative_contract::error::ChannelError;

use super::api::{CallFailure, Parameters, TelegramApi};

/// Administrators of ours that get a list of their own.
const ADMINS_MAX: usize = 20;

/// A command as the platform knows it.
#[derive(Debug, Deserialize, PartialEq, Eq)]
struct BotCommand {
    command: String,
    description: String,
}

/// A list and whom it is for.
#[derive(Debug, PartialEq)]
struct CommandList<'a> {
    scope: ListAudience,
    /// None = it shows nothing that a broader one does not show.
    commands: Vec<&'a Announced>,
}

/// Whom a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListAudience {
    Default,
    PrivateChats,
    Groups,
    GroupAdmins,
    /// The private chat of one person.
    PrivateChat(i64),
}

impl ListAudience {
    fn parameter(self) -> Value {
        match self {
            Self::Default => json!({"type": "default"}),
            Self::PrivateChats => json!({"type": "all_private_chats"}),
            Self::Groups => json!({"type": "all_group_chats"}),
            Self::GroupAdmins => json!({"type": "all_chat_administrators"}),
            Self::PrivateChat(chat) => json!({"type": "chat", "chat_id": chat}),
        }
    }
}

/// The lists that should be set.
fn lists(announcement: &Announcement) -> Vec<CommandList<'_>> {
    let commands = announcement.commands.iter();
    let for_all = |it: &&Announced| it.audience == Audience::Everybody;
    let everybody: Vec<&Announced> = commands.clone().filter(for_all).collect();
    let alone = |it: &&Announced| it.audience != Audience::Admins;
    let alone: Vec<&Announced> = commands.clone().filter(alone).collect();
    let all: Vec<&Announced> = commands.collect();
    let where_other = |broader: &[&Announced]| match all == broader {
        true => Vec::new(),
        false => all.clone(),
    };
    let (of_admins, of_ours) = (where_other(&everybody), where_other(&alone));
    // Private chats and groups have theirs in any case: a list for one language that was set by hand would otherwise be
    // shown instead of the one for everybody.
    let mut lists = vec![
        CommandList {
            scope: ListAudience::Default,
            commands: everybody.clone(),
        },
        CommandList {
            scope: ListAudience::PrivateChats,
            commands: alone,
        },
        CommandList {
            scope: ListAudience::Groups,
            commands: everybody,
        },
        CommandList {
            scope: ListAudience::GroupAdmins,
            commands: of_admins,
        },
    ];
    let admins = announcement.admins.iter();
    let ids = admins.filter_map(|id| id.parse().ok().filter(|id| *id > 0));
    lists.extend(ids.take(ADMINS_MAX).map(|id| CommandList {
        scope: ListAudience::PrivateChat(id),
        commands: of_ours.clone(),
    }));
    lists
}

/// Sets the lists that differ: setting is rate limited, asking is cheap. Returns whether any differed.
pub(super) async fn announce(
    api: &TelegramApi,
    announcement: &Announcement,
) -> Result<bool, ChannelError> {
    let mut has_told = false;
    for list in lists(announcement) {
        has_told |= tell(api, &list).await?;
    }
    Ok(has_told)
}

/// Sets one list if it differs. Returns whether it did.
async fn tell(api: &TelegramApi, list: &CommandList<'_>) -> Result<bool, ChannelError> {
    let ask = "getMyCommands";
    let mut parameters = Parameters::new();
    parameters.insert("scope".to_owned(), list.scope.parameter());
    let known: Vec<BotCommand> = match api.call(ask, &parameters).await {
        Ok(known) => known,
        // A person who has never written to the bot has no chat with it.
        Err(CallFailure::Refused(refusal))
            if refusal.code == 400 && matches!(list.scope, ListAudience::PrivateChat(_)) =>
        {
            return Ok(false);
        }
        Err(failure) => return Err(failure.into_error(ask)),
    };
    let is_same = |(known, wanted): (&BotCommand, &&Announced)| {
        known.command == wanted.name && known.description == wanted.description
    };
    if known.len() == list.commands.len() && known.iter().zip(&list.commands).all(is_same) {
        return Ok(false);
    }
    let change = if list.commands.is_empty() {
        "deleteMyCommands"
    } else {
        let commands = list.commands.iter();
        let told = commands.map(|it| json!({"command": it.name, "description": it.description}));
        parameters.insert("commands".to_owned(), told.collect());
        "setMyCommands"
    };
    api.call_raw(change, &parameters)
        .await
        .map_err(|failure| failure.into_error(change))?;
    Ok(true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
    use vocative_sandbox::wire::WireLog;

    use super::*;
    use crate::http::HttpTimeouts;

    const ANN: i64 = TelegramWorld::ANN;

    async fn start() -> (TelegramServer, TelegramApi) {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let world = TelegramWorld::team();
        let server = TelegramServer::start(world, ([127, 0, 0, 1], 0).into(), WireLog::new())
            .await
            .unwrap();
        let timeouts = HttpTimeouts::default();
        let api = TelegramApi::new(&server.api_url(), server.token().into(), timeouts);
        (server, api)
    }

    fn announcement(commands: &[(&str, Audience)]) -> Announcement {
        let announced = |(name, audience): &(&str, Audience)| Announced {
            name: (*name).to_owned(),
            description: format!("What {name} does"),
            audience: *audience,
        };
        Announcement {
            commands: commands.iter().map(announced).collect(),
            admins: vec![ANN.to_string(), "77077".to_owned(), "chat:-100".to_owned()],
        }
    }

    fn shown(server: &TelegramServer, scope: ListAudience) -> Vec<String> {
        let list = server.bot_commands_of(&scope.parameter());
        let list = list.as_array().unwrap().iter();
        let names = list.map(|it| it["command"].as_str().unwrap().to_owned());
        names.collect()
    }

    const SCOPES: [ListAudience; 5] = [
        ListAudience::Default,
        ListAudience::PrivateChats,
        ListAudience::Groups,
        ListAudience::GroupAdmins,
        ListAudience::PrivateChat(ANN),
    ];

    #[tokio::test]
    async fn everybody_is_shown_what_they_have_use_of_and_told_only_what_changed() {
        let (server, api) = start().await;
        let told = announcement(&[
            ("help", Audience::Everybody),
            ("context", Audience::WhoeverIsAlone),
            ("new", Audience::Admins),
        ]);
        assert!(announce(&api, &told).await.unwrap());
        let lists = SCOPES.map(|scope| shown(&server, scope));
        let expected: [&[&str]; 5] = [
            &["help"],
            &["help", "context"],
            &["help"],
            &["help", "context", "new"],
            &["help", "context", "new"],
        ];
        assert_eq!(lists, expected);
        assert!(!announce(&api, &told).await.unwrap());

        // A list that only repeats a broader one is removed.
        let told = announcement(&[("help", Audience::Everybody), ("new", Audience::Everybody)]);
        assert!(announce(&api, &told).await.unwrap());
        let lists = SCOPES.map(|scope| shown(&server, scope));
        let both: &[&str] = &["help", "new"];
        assert_eq!(lists, [both, both, both, &[], &[]]);
        assert!(!announce(&api, &told).await.unwrap());
    }

    #[test]
    fn so_many_administrators_have_a_list_of_their_own() {
        let mut told = announcement(&[("help", Audience::Everybody)]);
        told.admins = (1..=100).map(|id| id.to_string()).collect();
        assert_eq!(lists(&told).len(), SCOPES.len() - 1 + ADMINS_MAX);
    }
}
