//! What exists, over HTTP: people, channels, the app's scopes and subscriptions, files, the clock.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::super::state::SlackCore;
use super::super::web::files::SlackFile;
use super::super::world::{ChannelKind, SlackConversation, SlackUser};
use super::{Server, SlackControlAnswer, SlackControlRefusal, act, done, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelMember {
    channel: String,
    user: String,
}

pub(super) async fn invite(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let who: ChannelMember = read(&body)?;
    act(&shared, |core| {
        core.set_bot_membership(&who.channel, Some(&who.user), true)
    })
}

pub(super) async fn remove(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let who: ChannelMember = read(&body)?;
    act(&shared, |core| {
        core.set_bot_membership(&who.channel, Some(&who.user), false)
    })
}

pub(super) async fn join(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let who: ChannelMember = read(&body)?;
    act(&shared, |core| {
        core.set_membership(&who.channel, &who.user, true)
    })
}

pub(super) async fn leave(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let who: ChannelMember = read(&body)?;
    act(&shared, |core| {
        core.set_membership(&who.channel, &who.user, false)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Archiving {
    channel: String,
    user: String,
    archived: Option<bool>,
}

pub(super) async fn archive(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: Archiving = read(&body)?;
    let archived = it.archived.unwrap_or(true);
    act(&shared, |core| {
        core.archive(&it.channel, &it.user, archived)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelRenaming {
    channel: String,
    name: String,
}

pub(super) async fn rename(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: ChannelRenaming = read(&body)?;
    act(&shared, |core| core.rename(&it.channel, &it.name))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangingId {
    channel: String,
    new_id: String,
}

pub(super) async fn change_id(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: ChangingId = read(&body)?;
    act(&shared, |core| match core.channel(&it.new_id) {
        Ok(_) => Err(format!("{} is there already", it.new_id)),
        Err(_) => core.change_id(&it.channel, &it.new_id),
    })
}

/// A person or another app's bot: added, or changed where the id is known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlackPersonEntry {
    id: Option<String>,
    name: Option<String>,
    real_name: Option<String>,
    display_name: Option<String>,
    team_id: Option<String>,
    bot_id: Option<String>,
    app_id: Option<String>,
    deleted: Option<bool>,
    /// Whether the person is a guest: a member of this workspace in some channels only.
    guest: Option<bool>,
}

pub(super) async fn user(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: SlackPersonEntry = read(&body)?;
    shared.change(|core| {
        let known = it.id.as_ref().and_then(|id| {
            let users = &core.world.users;
            users.iter().position(|user| user.id == *id)
        });
        let user = match known {
            Some(at) => changed_user(core.world.users[at].clone(), &it),
            None => changed_user(new_user(core, &it)?, &it),
        };
        match known {
            Some(at) => core.world.users[at] = user.clone(),
            None => core.world.users.push(user.clone()),
        }
        if let Some(guest) = it.guest {
            let guests = &mut core.world.guests;
            guests.retain(|id| *id != user.id);
            guests.extend(guest.then(|| user.id.clone()));
        }
        Ok(Json(json!({"id": user.id})))
    })
}

fn new_user(core: &SlackCore, it: &SlackPersonEntry) -> Result<SlackUser, SlackControlRefusal> {
    let name = it.name.clone().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| SlackControlRefusal("a new user needs a `name`".to_owned()))?;
    let id = it.id.clone().unwrap_or_else(|| made_up("U0", &name));
    if core.world.user_id(&id).is_some() {
        return Err(SlackControlRefusal(format!("{id} is there already")));
    }
    Ok(SlackUser {
        id,
        real_name: name.clone(),
        display_name: name.clone(),
        name,
        team_id: core.world.team_id.clone(),
        bot: None,
        deleted: false,
    })
}

fn changed_user(mut user: SlackUser, it: &SlackPersonEntry) -> SlackUser {
    let set = |field: &mut String, value: &Option<String>| {
        if let Some(value) = value {
            field.clone_from(value);
        }
    };
    set(&mut user.name, &it.name);
    set(&mut user.real_name, &it.real_name);
    set(&mut user.display_name, &it.display_name);
    set(&mut user.team_id, &it.team_id);
    user.deleted = it.deleted.unwrap_or(user.deleted);
    if let Some(bot_id) = &it.bot_id {
        let app_id = it
            .app_id
            .clone()
            .unwrap_or_else(|| format!("A{}", &bot_id[1..]));
        user.bot = Some((bot_id.clone(), app_id));
    }
    user
}

/// An id as Slack writes ids, from a name.
fn made_up(prefix: &str, name: &str) -> String {
    let plain = name.chars().filter(char::is_ascii_alphanumeric);
    format!("{prefix}{}", plain.collect::<String>().to_ascii_uppercase())
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ConversationKind {
    Public,
    Private,
    Im,
    Mpim,
}

/// A conversation: added, or changed where the id is known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConversationEntry {
    id: Option<String>,
    name: Option<String>,
    kind: Option<ConversationKind>,
    /// Ids or names.
    members: Option<Vec<String>>,
    bot_is_member: Option<bool>,
    archived: Option<bool>,
    ext_shared: Option<bool>,
    topic: Option<String>,
    purpose: Option<String>,
}

pub(super) async fn channel(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: ConversationEntry = read(&body)?;
    shared.change(|core| {
        let members = it.members.iter().flatten().map(|name| core.person(name));
        let members: Vec<SlackUser> = members.collect::<Result<_, String>>()?;
        let members: Vec<String> = members.into_iter().map(|person| person.id).collect();
        let known = it.id.as_deref().and_then(|id| core.channel(id).ok());
        let is_new = known.is_none();
        let mut channel = match known {
            Some(channel) => channel,
            None => new_channel(core, &it, &members)?,
        };
        if it.members.is_some() {
            channel.members = members;
        }
        channel.name = it.name.unwrap_or(channel.name);
        channel.bot_is_member = it.bot_is_member.unwrap_or(channel.bot_is_member);
        channel.archived = it.archived.unwrap_or(channel.archived);
        channel.ext_shared = it.ext_shared.unwrap_or(channel.ext_shared);
        channel.topic = it.topic.unwrap_or(channel.topic);
        channel.purpose = it.purpose.unwrap_or(channel.purpose);
        let id = channel.id.clone();
        match is_new {
            true => core.world.channels.push(channel),
            false => *core.channel_mut(&id) = channel,
        }
        Ok(Json(json!({"id": id})))
    })
}

fn new_channel(
    core: &SlackCore,
    it: &ConversationEntry,
    members: &[String],
) -> Result<SlackConversation, SlackControlRefusal> {
    let name = it.name.clone().unwrap_or_default();
    let (prefix, kind) = match (it.kind.unwrap_or(ConversationKind::Public), members) {
        (ConversationKind::Public, _) => ("C0", ChannelKind::Public),
        (ConversationKind::Private, _) => ("C0", ChannelKind::Private),
        (ConversationKind::Mpim, _) => ("G0", ChannelKind::Mpim),
        (ConversationKind::Im, [user]) => ("D0", ChannelKind::Im { user: user.clone() }),
        (ConversationKind::Im, _) => {
            return Err(SlackControlRefusal("an im has one member".to_owned()));
        }
    };
    let named_after = match &kind {
        ChannelKind::Im { user } => user.trim_start_matches("U0").to_owned(),
        _ => name.clone(),
    };
    if named_after.is_empty() {
        return Err(SlackControlRefusal(
            "a new channel needs a `name`".to_owned(),
        ));
    }
    let id = it
        .id
        .clone()
        .unwrap_or_else(|| made_up(prefix, &named_after));
    if core.channel(&id).is_ok() || core.channel(&name).is_ok() {
        return Err(SlackControlRefusal(format!(
            "{id} or {name} is there already"
        )));
    }
    Ok(SlackConversation::new(&id, &name, kind, &[]))
}

/// The app as it is installed. A list replaces the one that was there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct App {
    scopes: Option<Vec<String>>,
    events: Option<Vec<String>>,
    bot_name: Option<String>,
    team_name: Option<String>,
    bot_token: Option<String>,
    app_token: Option<String>,
    signing_secret: Option<String>,
}

pub(super) async fn app(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: App = read(&body)?;
    shared.change(|core| {
        let world = &mut core.world;
        world.scopes = it.scopes.unwrap_or(std::mem::take(&mut world.scopes));
        world.events = it.events.unwrap_or(std::mem::take(&mut world.events));
        let texts = [
            (&mut world.bot_name, it.bot_name),
            (&mut world.team_name, it.team_name),
            (&mut world.bot_token, it.bot_token),
            (&mut world.app_token, it.app_token),
            (&mut world.signing_secret, it.signing_secret),
        ];
        for (field, value) in texts {
            if let Some(value) = value {
                *field = value;
            }
        }
    });
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockOffset {
    offset_ms: i64,
}

/// Moves the clock from which messages get their ts.
pub(super) async fn clock(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: ClockOffset = read(&body)?;
    shared.change(|core| core.clock_offset_ms = it.offset_ms);
    done()
}

#[derive(Deserialize)]
pub(super) struct NewSlackFile {
    name: String,
    #[serde(rename = "type")]
    mime_type: Option<String>,
}

/// A file that a person uploaded: its bytes are the body. Gives the file object.
pub(super) async fn add_file(
    State(shared): Server,
    Query(new): Query<NewSlackFile>,
    body: Bytes,
) -> SlackControlAnswer {
    let mime_type = new
        .mime_type
        .unwrap_or("application/octet-stream".to_owned());
    let file = SlackFile {
        name: new.name,
        mime_type,
        bytes: body.to_vec(),
    };
    Ok(Json(shared.change(|core| core.add_file(file))))
}

#[derive(Deserialize)]
pub(super) struct SlackById {
    id: String,
}

/// The bytes of a file.
pub(super) async fn file(State(shared): Server, Query(which): Query<SlackById>) -> Response {
    let found = shared.read(|core| {
        let file = core.files.get(&which.id)?;
        Some((file.bytes.clone()?, file.mime_type.clone()))
    });
    match found {
        Some((bytes, mime_type)) => ([(header::CONTENT_TYPE, mime_type)], bytes).into_response(),
        None => SlackControlRefusal(format!("no file {} in this world", which.id)).into_response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileMode {
    id: String,
    mode: String,
}

pub(super) async fn file_mode(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: FileMode = read(&body)?;
    shared.change(|core| {
        known_file(core, &it.id)?;
        core.set_file_mode(&it.id, &it.mode);
        done()
    })
}

pub(super) async fn delete_file(State(shared): Server, body: Bytes) -> SlackControlAnswer {
    let it: SlackById = read(&body)?;
    act(&shared, |core| {
        known_file(core, &it.id)?;
        Ok(core.delete_file(&it.id))
    })
}

fn known_file(core: &SlackCore, id: &str) -> Result<(), String> {
    match core.files.contains_key(id) {
        true => Ok(()),
        false => Err(format!("no file {id} in this world")),
    }
}

/// Resets everything to the start; sockets stay open, ids and times go on.
pub(super) async fn reset(State(shared): Server) -> SlackControlAnswer {
    shared.reset();
    done()
}
