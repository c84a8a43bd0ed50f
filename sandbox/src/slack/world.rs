//! What a loopback Slack workspace holds before anybody speaks: people, channels, tokens, scopes.
//!
//! Plain data; knows nothing of sockets or methods.

/// The scopes of the project's default app manifest.
const SCOPES: [&str; 19] = [
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:read",
    "reactions:write",
    "team:read",
    "users:read",
];

/// The events that the ready-made app subscribes to.
const EVENTS: [&str; 20] = [
    "app_home_opened",
    "app_mention",
    "app_uninstalled",
    "channel_archive",
    "channel_deleted",
    "channel_id_changed",
    "channel_left",
    "channel_rename",
    "channel_unarchive",
    "group_left",
    "group_rename",
    "member_joined_channel",
    "member_left_channel",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
    "reaction_removed",
    "user_change",
];

/// A person or another bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackUser {
    /// `U…`.
    pub id: String,
    /// The handle, without `@`.
    pub name: String,
    /// Full name.
    pub real_name: String,
    /// What the room shows.
    pub display_name: String,
    /// Home workspace; another one than the world's makes this user a stranger.
    pub team_id: String,
    /// `B…` and `A…` when this is another app's bot user.
    pub bot: Option<(String, String)>,
    /// Whether the account was deactivated.
    pub deleted: bool,
}

/// What kind of conversation a channel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// Everybody in the workspace can see it.
    Public,
    /// Only members can see it.
    Private,
    /// A direct chat between the bot and one person.
    Im {
        /// The person.
        user: String,
    },
    /// A direct chat of several people.
    Mpim,
}

impl ChannelKind {
    /// The `channel_type` of message events.
    #[must_use]
    pub fn channel_type(&self) -> &'static str {
        match self {
            Self::Public => "channel",
            Self::Private => "group",
            Self::Im { .. } => "im",
            Self::Mpim => "mpim",
        }
    }

    /// The first half of the scope that guards it: `channels`, `groups`, `im` or `mpim`.
    #[must_use]
    pub fn scope_prefix(&self) -> &'static str {
        match self {
            Self::Public => "channels",
            Self::Private => "groups",
            Self::Im { .. } => "im",
            Self::Mpim => "mpim",
        }
    }

    /// The name that `conversations.list` uses in `types`.
    #[must_use]
    pub fn list_type(&self) -> &'static str {
        match self {
            Self::Public => "public_channel",
            Self::Private => "private_channel",
            Self::Im { .. } => "im",
            Self::Mpim => "mpim",
        }
    }
}

/// One conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackConversation {
    /// `C…`, `G…` or `D…`.
    pub id: String,
    /// Without `#`; empty for a direct chat.
    pub name: String,
    /// Public, private, direct.
    pub kind: ChannelKind,
    /// User ids of the people in it (the bot is `bot_is_member`).
    pub members: Vec<String>,
    /// Whether the bot was invited.
    pub bot_is_member: bool,
    /// Whether the channel is archived, so that nobody can write any more.
    pub archived: bool,
    /// Whether another workspace shares it (Slack Connect).
    pub ext_shared: bool,
    /// Topic line.
    pub topic: String,
    /// Purpose line.
    pub purpose: String,
}

impl SlackConversation {
    /// Makes a channel with the bot in it.
    #[must_use]
    pub fn new(id: &str, name: &str, kind: ChannelKind, members: &[&str]) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            kind,
            members: members.iter().map(|&member| member.to_owned()).collect(),
            bot_is_member: true,
            archived: false,
            ext_shared: false,
            topic: String::new(),
            purpose: String::new(),
        }
    }
}

/// A workspace with one installed app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackWorld {
    /// `T…`.
    pub team_id: String,
    /// Shown name.
    pub team_name: String,
    /// `U…` of the bot user.
    pub bot_user_id: String,
    /// `B…` of the bot.
    pub bot_id: String,
    /// `A…` of the app.
    pub app_id: String,
    /// Handle of the bot user.
    pub bot_name: String,
    /// `xoxb-…`, for the Web API.
    pub bot_token: String,
    /// `xapp-…`, for opening sockets only.
    pub app_token: String,
    /// The secret with which requests to the app are signed.
    pub signing_secret: String,
    /// Granted scopes of the bot token.
    pub scopes: Vec<String>,
    /// Subscribed bot events; nothing else is sent.
    pub events: Vec<String>,
    /// People and other bots.
    pub users: Vec<SlackUser>,
    /// User ids of people who are guests: `is_restricted`.
    pub guests: Vec<String>,
    /// Conversations.
    pub channels: Vec<SlackConversation>,
}

impl Default for SlackWorld {
    fn default() -> Self {
        Self::acme()
    }
}

impl SlackWorld {
    /// A small ready workspace.
    ///
    /// People: Ann `U0ANN`, Bob `U0BOB`, Sue of another workspace `U0STRANGER`, the other app's bot
    /// `U0OTHERBOT`. Channels: `#general` `C0GENERAL`, `#ops` `C0OPS`, the private `#secret`
    /// `C0SECRET`, `#elsewhere` `C0ELSEWHERE` and the private `#hidden` `C0HIDDEN` (both without
    /// the bot), the archived `#attic` `C0ATTIC`, the shared `#partners` `C0PARTNERS`, the direct
    /// chat with Ann `D0ANN`, and a group chat `G0GROUP`.
    #[must_use]
    pub fn acme() -> Self {
        Self {
            team_id: "T0ACME".into(),
            team_name: "Acme".into(),
            bot_user_id: "U0VOCATIVE".into(),
            bot_id: "B0VOCATIVE".into(),
            app_id: "A0VOCATIVE".into(),
            bot_name: "vocative".into(),
            bot_token: "xoxb-loopback-bot-token".into(),
            app_token: "xapp-1-loopback-app-token".into(),
            signing_secret: "5ca1ab1e5ca1ab1e5ca1ab1e5ca1ab1e".into(),
            scopes: SCOPES.map(str::to_owned).to_vec(),
            events: EVENTS.map(str::to_owned).to_vec(),
            users: acme_users(),
            guests: Vec::new(),
            channels: acme_channels(),
        }
    }

    /// Finds a conversation by id, or by name with or without `#`.
    #[must_use]
    pub fn channel(&self, id_or_name: &str) -> Option<&SlackConversation> {
        let name = id_or_name.trim_start_matches('#');
        self.channels
            .iter()
            .find(|channel| channel.id == id_or_name)
            .or_else(|| {
                self.channels
                    .iter()
                    .find(|channel| !channel.name.is_empty() && channel.name == name)
            })
    }

    /// Finds a person or another bot by id, handle or display name.
    #[must_use]
    pub fn user(&self, id_or_name: &str) -> Option<&SlackUser> {
        let name = id_or_name.trim_start_matches('@');
        self.users
            .iter()
            .find(|user| user.id == id_or_name)
            .or_else(|| {
                self.users.iter().find(|user| {
                    user.name.eq_ignore_ascii_case(name)
                        || user.display_name.eq_ignore_ascii_case(name)
                })
            })
    }

    /// The id of the bot user, of a person or of another bot, by id, handle or display name.
    pub(super) fn user_id(&self, id_or_name: &str) -> Option<String> {
        let name = id_or_name.trim_start_matches('@');
        let is_own = id_or_name == self.bot_user_id || name == self.bot_name;
        match is_own {
            true => Some(self.bot_user_id.clone()),
            false => self.user(id_or_name).map(|user| user.id.clone()),
        }
    }

    /// The name under which an app's posts show.
    pub(super) fn bot_label<'a>(&'a self, bot_id: &'a str) -> &'a str {
        if bot_id == self.bot_id {
            return &self.bot_name;
        }
        let is_it = |user: &&SlackUser| user.bot.as_ref().is_some_and(|(id, _)| id == bot_id);
        self.users
            .iter()
            .find(is_it)
            .map_or(bot_id, |user| &user.real_name)
    }

    pub(super) fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|granted| granted == scope)
    }
}

fn acme_users() -> Vec<SlackUser> {
    let user = |id: &str, name: &str, display: &str, team: &str| SlackUser {
        id: id.to_owned(),
        name: name.to_owned(),
        real_name: format!("{display} Example"),
        display_name: display.to_owned(),
        team_id: team.to_owned(),
        bot: None,
        deleted: false,
    };
    let mut other_bot = user("U0OTHERBOT", "otherbot", "Otherbot", "T0ACME");
    other_bot.bot = Some(("B0OTHER".into(), "A0OTHER".into()));
    vec![
        user("U0ANN", "ann", "Ann", "T0ACME"),
        user("U0BOB", "bob", "Bob", "T0ACME"),
        user("U0STRANGER", "sue", "Sue", "T0OTHER"),
        other_bot,
    ]
}

fn acme_channels() -> Vec<SlackConversation> {
    let people = ["U0ANN", "U0BOB", "U0OTHERBOT"];
    let channel = |id: &str, name: &str, kind| SlackConversation::new(id, name, kind, &people);
    let mut elsewhere = channel("C0ELSEWHERE", "elsewhere", ChannelKind::Public);
    elsewhere.bot_is_member = false;
    let mut hidden = channel("C0HIDDEN", "hidden", ChannelKind::Private);
    hidden.bot_is_member = false;
    let mut attic = channel("C0ATTIC", "attic", ChannelKind::Public);
    attic.archived = true;
    let mut partners = channel("C0PARTNERS", "partners", ChannelKind::Public);
    partners.members.push("U0STRANGER".into());
    partners.ext_shared = true;
    let ann = ChannelKind::Im {
        user: "U0ANN".into(),
    };
    vec![
        channel("C0GENERAL", "general", ChannelKind::Public),
        channel("C0OPS", "ops", ChannelKind::Public),
        channel("C0SECRET", "secret", ChannelKind::Private),
        elsewhere,
        hidden,
        attic,
        partners,
        SlackConversation::new("D0ANN", "", ann, &["U0ANN"]),
        SlackConversation::new(
            "G0GROUP",
            "mpdm-ann--bob--vocative-1",
            ChannelKind::Mpim,
            &["U0ANN", "U0BOB"],
        ),
    ]
}
