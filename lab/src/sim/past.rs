//! The history half, and how a message of the world becomes an envelope, told or read back.

use std::sync::Arc;

use vocative_contract::channel::BoxFuture;
use vocative_contract::clock::PlatformClock;
use vocative_contract::envelope::{Envelope, Event, InboundMessage, Place, Sender, SenderKind};
use vocative_contract::error::ChannelError;
use vocative_contract::history::{HistoryPage, HistoryReader, HistoryRequest, PastMessage};
use vocative_contract::identity::Identity;
use vocative_contract::interaction::{Control, Interaction, PressedAuthor, PressedMessage};
use vocative_contract::probe::Numbered;

use super::channel::{ACCOUNT, NAME, not_sent, place_of, sequence, unknown};
use super::life::Life;
use super::script::ROOMS;
use super::wire;
use super::world::{BOT, SimMessage, World, command_of};

/// Small, so that there are several pages.
const PAGE_MAX: usize = 6;

/// An event as the adapter hands it in.
pub(super) fn envelope(
    world: &World,
    clock: &PlatformClock,
    identity: &Identity,
    event: Event,
    id: String,
) -> Envelope {
    Envelope {
        channel: NAME.to_owned(),
        platform: identity.platform,
        account: identity.account.clone(),
        delivery_id: id,
        received_at_ms: clock.now_ms(),
        numbered: numbered(world, &event),
        event,
        raw: String::new(),
    }
}

/// The number in an event, on a platform that numbers messages.
fn numbered(world: &World, event: &Event) -> Option<Numbered> {
    let message = match event {
        Event::Posted(message) | Event::Edited(message) => message,
        _ => return None,
    };
    Some(Numbered {
        sequence: sequence(&message.place.chat).filter(|_| world.is_numbered())?,
        chat: message.place.chat.clone(),
        number: message.message_id.parse().ok(),
        sent_at_ms: message.sent_at_ms,
        own: Vec::new(),
    })
}

/// An event as the platform sends it.
pub(super) fn told(world: &World, number: usize) -> Event {
    let wire::SimEvent {
        room,
        message,
        what,
    } = world.wire.event(number);
    let message = &world.rooms[*room][*message];
    let mut place = in_thread(place_of(*room), message);
    match what {
        wire::What::Posted { text, has_kind } => {
            place.kind = place.kind.filter(|_| *has_kind);
            Event::Posted(inbound(message, place, text, None))
        }
        wire::What::Edited { text, marker } => {
            Event::Edited(inbound(message, place, text, Some(marker.clone())))
        }
        wire::What::Deleted => Event::Deleted {
            place,
            message_id: message.id.clone(),
        },
        wire::What::Own => own(message, place),
        wire::What::Pressed {
            number,
            person,
            data,
        } => Event::Interaction(Interaction {
            id: format!("press{number}"),
            control: Control::Button,
            place: Some(place),
            message: Some(PressedMessage {
                id: message.id.clone(),
                author: PressedAuthor::Us,
                is_forwarded: false,
                is_via_bot: false,
                is_ephemeral: false,
            }),
            sender: sender(*person),
            team: world.is_slack().then(|| ACCOUNT.to_owned()),
            is_anonymous: false,
            data: data.clone(),
            written: None,
        }),
    }
}

fn own(message: &SimMessage, place: Place) -> Event {
    Event::OwnPost {
        place,
        message_id: message.id.clone(),
        marker: message.marker.clone(),
    }
}

fn in_thread(place: Place, message: &SimMessage) -> Place {
    Place {
        thread: message.thread.clone(),
        ..place
    }
}

fn inbound(
    message: &SimMessage,
    place: Place,
    text: &str,
    edit_marker: Option<String>,
) -> InboundMessage {
    let mentions = vocative_contract::markup::mentioned_ids(text);
    let person = message.person.unwrap_or(0);
    InboundMessage {
        place,
        message_id: message.id.clone(),
        sender: sender(person),
        mentions_bot: mentions.iter().any(|id| id == BOT),
        text: text.to_owned(),
        mentions,
        command: command_of(text),
        reply_to: None,
        attachments: Vec::new(),
        album: None,
        sent_at_ms: message.at_ms,
        ordinal: message.ordinal,
        edit_marker,
    }
}

fn sender(person: usize) -> Sender {
    Sender {
        id: format!("{}", 100 + person),
        display_name: Some(format!("Person {person}")),
        username: None,
        kind: SenderKind::Person,
        is_stranger: false,
    }
}

/// The history half.
pub(super) struct Past {
    life: Arc<Life>,
    identity: Identity,
}

impl Past {
    pub(super) fn new(life: Arc<Life>, identity: Identity) -> Self {
        Self { life, identity }
    }

    async fn ask(&self, operation: &'static str) -> Result<(), ChannelError> {
        self.life.step("before history is asked").await;
        self.life.linger(10, 400).await;
        self.life.world(|world| {
            if world.is_out() || world.fails(60) {
                return Err(not_sent(operation));
            }
            if world.fails(60) {
                return Err(unknown(operation));
            }
            if world.fails(60) {
                let wait_ms = 1_000 * (1 + world.dice.below(10));
                return Err(ChannelError::RetryAfter { operation, wait_ms });
            }
            self.life.hear_date();
            Ok(())
        })
    }

    fn read(&self, world: &mut World, request: &HistoryRequest) -> HistoryPage {
        let Some(room) = room_of(&request.place.chat) else {
            return HistoryPage::default();
        };
        let mut shown: Vec<&SimMessage> = world.rooms[room]
            .iter()
            .filter(|message| is_shown(message, request, world.now_ms))
            .collect();
        if request.thread.is_none() {
            shown.reverse();
        }
        // The cursor names a message, not a position: messages that arrive meanwhile move nothing.
        let after = request.cursor.as_ref().and_then(|cursor| {
            let is_at = |message: &&SimMessage| message.id == *cursor;
            shown.iter().position(is_at)
        });
        let rest = shown.split_off(after.map_or(0, |at| at + 1));
        let limit = request.limit.min(PAGE_MAX);
        let has_more = rest.len() > limit;
        let page = &rest[..rest.len().min(limit)];
        let messages = page
            .iter()
            .map(|message| self.past(world, room, message))
            .collect();
        let last = page.last().map(|message| message.id.clone());
        let count = page.len();
        let next_cursor = last.filter(|_| has_more);
        world.note(format_args!(
            "history of room {room} is read: {count} messages"
        ));
        HistoryPage {
            messages,
            next_cursor,
        }
    }

    fn past(&self, world: &World, room: usize, message: &SimMessage) -> PastMessage {
        let place = in_thread(place_of(room), message);
        let event = match (&message.person, &message.edited) {
            (None, _) => own(message, place),
            (_, None) => Event::Posted(inbound(message, place, &message.text, None)),
            (_, Some((marker, _))) => {
                Event::Edited(inbound(message, place, &message.text, Some(marker.clone())))
            }
        };
        let replies = world.rooms[room].iter().filter(|reply| {
            reply.thread.as_ref() == Some(&message.id) && reply.visible_at_ms <= world.now_ms
        });
        PastMessage {
            message_id: message.id.clone(),
            sent_at_ms: message.at_ms,
            edited_at_ms: message.edited.as_ref().map(|(_, at_ms)| *at_ms),
            replied_at_ms: replies.map(|reply| reply.at_ms).max(),
            envelope: envelope(
                world,
                &self.life.platform,
                &self.identity,
                event,
                format!("past-{}", message.id),
            ),
        }
    }
}

fn room_of(chat: &str) -> Option<usize> {
    let room = chat.strip_prefix('C')?.parse().ok()?;
    (room < ROOMS).then_some(room)
}

/// Whether a message is among those asked for. A thread's root is always included.
fn is_shown(message: &SimMessage, request: &HistoryRequest, now_ms: i64) -> bool {
    let is_root = request.thread.as_ref() == Some(&message.id);
    let is_in_place = is_root || message.thread == request.thread;
    let is_in_time = (request.from_ms..=request.until_ms).contains(&message.at_ms);
    is_in_place && (is_in_time || is_root) && !message.is_deleted && message.visible_at_ms <= now_ms
}

impl HistoryReader for Past {
    fn chats(&self) -> BoxFuture<'_, Result<Vec<Place>, ChannelError>> {
        Box::pin(async {
            self.ask("list").await?;
            Ok((0..ROOMS).map(place_of).collect())
        })
    }

    fn page<'a>(
        &'a self,
        request: &'a HistoryRequest,
    ) -> BoxFuture<'a, Result<HistoryPage, ChannelError>> {
        Box::pin(async move {
            self.ask("history").await?;
            Ok(self.life.world(|world| self.read(world, request)))
        })
    }
}
