//! What happens to conversations as such: joining and leaving, names, ids, archiving, direct chats.
//!
//! Owns the changes of the list of channels and the events that report them; messages are in `state`.

use serde_json::json;

use super::events::{self, EventObject};
use super::state::SlackCore;
use super::world::{ChannelKind, SlackConversation};

impl SlackCore {
    /// Invites or removes the bot; both cause events. Without a person the bot joins by itself.
    pub(super) fn set_bot_membership(
        &mut self,
        channel: &str,
        by: Option<&str>,
        is_member: bool,
    ) -> Result<Vec<EventObject>, String> {
        let id = self.channel(channel)?.id;
        let by = by.map(|by| self.person(by)).transpose()?;
        let by = by.map(|person| person.id);
        let event_ts = self.next_ts();
        let stored = self.channel_mut(&id);
        let letter = match stored.kind {
            ChannelKind::Public => "C",
            _ => "G",
        };
        stored.bot_is_member = is_member;
        let world = &self.world;
        if is_member {
            let mut joined = json!({
                "type": "member_joined_channel", "user": world.bot_user_id, "channel": id,
                "channel_type": letter, "team": world.team_id, "event_ts": event_ts,
            });
            if let Some(by) = by {
                joined["inviter"] = json!(by);
            }
            return Ok(vec![events::plain(world, joined)]);
        }
        let left_kind = if letter == "C" {
            "channel_left"
        } else {
            "group_left"
        };
        let left = [
            json!({
                "type": "member_left_channel", "user": world.bot_user_id, "channel": id,
                "channel_type": letter, "team": world.team_id, "event_ts": event_ts,
            }),
            json!({"type": left_kind, "channel": id, "actor_id": by, "event_ts": event_ts}),
        ];
        Ok(left.map(|inner| events::plain(world, inner)).to_vec())
    }

    /// A person comes into a channel or leaves it.
    pub(super) fn set_membership(
        &mut self,
        channel: &str,
        user: &str,
        is_member: bool,
    ) -> Result<Vec<EventObject>, String> {
        let (channel, user) = (self.channel(channel)?, self.person(user)?);
        if channel.members.contains(&user.id) == is_member {
            let state = if is_member { "already" } else { "not" };
            return Err(format!("{} is {state} in {}", user.id, channel.id));
        }
        let event_ts = self.next_ts();
        let members = &mut self.channel_mut(&channel.id).members;
        match is_member {
            true => members.push(user.id.clone()),
            false => members.retain(|member| *member != user.id),
        }
        let (kind, letter) = match (is_member, &channel.kind) {
            (true, ChannelKind::Public) => ("member_joined_channel", "C"),
            (true, _) => ("member_joined_channel", "G"),
            (false, ChannelKind::Public) => ("member_left_channel", "C"),
            (false, _) => ("member_left_channel", "G"),
        };
        let inner = json!({
            "type": kind, "user": user.id, "channel": channel.id, "channel_type": letter,
            "team": user.team_id, "event_ts": event_ts,
        });
        Ok(self.heard(&channel, vec![events::plain(&self.world, inner)]))
    }

    /// Archives or unarchives a channel.
    pub(super) fn archive(
        &mut self,
        channel: &str,
        by: &str,
        archived: bool,
    ) -> Result<Vec<EventObject>, String> {
        let (id, by) = (self.channel(channel)?.id, self.person(by)?.id);
        self.channel_mut(&id).archived = archived;
        let event_ts = self.next_ts();
        let kind = if archived {
            "channel_archive"
        } else {
            "channel_unarchive"
        };
        let inner = json!({"type": kind, "channel": id, "user": by, "event_ts": event_ts});
        Ok(vec![events::plain(&self.world, inner)])
    }

    /// Renames a channel.
    pub(super) fn rename(&mut self, channel: &str, name: &str) -> Result<Vec<EventObject>, String> {
        let id = self.channel(channel)?.id;
        let event_ts = self.next_ts();
        let stored = self.channel_mut(&id);
        name.clone_into(&mut stored.name);
        let channel = stored.clone();
        let kind = match channel.kind {
            ChannelKind::Public => "channel_rename",
            _ => "group_rename",
        };
        let inner = json!({
            "type": kind, "event_ts": event_ts,
            "channel": {"id": id, "name": name, "name_normalized": name, "created": 1_700_000_000,
                        "is_channel": channel.kind == ChannelKind::Public, "is_mpim": false},
        });
        Ok(self.heard(&channel, vec![events::plain(&self.world, inner)]))
    }

    /// Gives a channel another id; its messages go with it.
    pub(super) fn change_id(
        &mut self,
        channel: &str,
        new_id: &str,
    ) -> Result<Vec<EventObject>, String> {
        let old_id = self.channel(channel)?.id;
        let event_ts = self.next_ts();
        let stored = self.channel_mut(&old_id);
        new_id.clone_into(&mut stored.id);
        let channel = stored.clone();
        if let Some(posts) = self.posts.remove(&old_id) {
            self.posts.insert(new_id.to_owned(), posts);
        }
        let inner = json!({
            "type": "channel_id_changed", "old_channel_id": old_id, "new_channel_id": new_id,
            "event_ts": event_ts,
        });
        Ok(self.heard(&channel, vec![events::plain(&self.world, inner)]))
    }

    /// The direct chat with a person, made when there is none.
    pub(super) fn direct_chat(&mut self, user: &str) -> SlackConversation {
        let kind = ChannelKind::Im {
            user: user.to_owned(),
        };
        let open = self.world.channels.iter();
        if let Some(channel) = open.clone().find(|channel| channel.kind == kind) {
            return channel.clone();
        }
        let id = format!("D0{}", user.trim_start_matches(['U', '0']));
        let channel = SlackConversation::new(&id, "", kind, &[user]);
        self.world.channels.push(channel.clone());
        channel
    }

    /// The group chat of these people and the bot, made when there is none.
    pub(super) fn group_chat(&mut self, users: &[&str]) -> SlackConversation {
        let mut members = users.to_vec();
        members.sort_unstable();
        let is_same = |channel: &&SlackConversation| {
            let mut has: Vec<&str> = channel.members.iter().map(String::as_str).collect();
            has.sort_unstable();
            channel.kind == ChannelKind::Mpim && has == members
        };
        if let Some(channel) = self.world.channels.iter().find(is_same) {
            return channel.clone();
        }
        let n = self.world.channels.len();
        let name = format!("mpdm-{}-1", members.join("--").to_lowercase());
        let id = format!("G0GROUP{n}");
        let channel = SlackConversation::new(&id, &name, ChannelKind::Mpim, &members);
        self.world.channels.push(channel.clone());
        channel
    }
}
