//! What people do with buttons, menus and modals, as an event. Pure.

use vocative_contract::envelope::{Event, Place};
use vocative_contract::identity::Identity;
use vocative_contract::interaction::{Control, Interaction, PressedAuthor, PressedMessage};
use vocative_contract::markup::neutral_text;

use super::form::{SubmittedForm, sent};
use super::translate::{EventContext, chat_kind, ignored, named_chat, untranslated, user_sender};
use super::wire::{ButtonAction, ButtonContainer, ClickedMessage, InteractivePayload};
use crate::json_object::read_object;

/// The event of an interactive payload.
pub(super) fn interactive(payload: &str, identity: &Identity) -> Event {
    let Ok(payload) = read_object::<InteractivePayload>(payload) else {
        return untranslated("the interaction is not an object");
    };
    // A button may be pressed in any chat, also a shared one; nothing else in the payload says which organisation the
    // person belongs to.
    let context = EventContext::of(identity).in_shared_chat();
    let user = payload.user.as_ref();
    let sender = user.and_then(|user| user_sender(user, &context));
    // Closing a modal and asking for options carry no trigger: they are no events.
    let (Some(id), Some(sender)) = (payload.trigger_id.clone(), sender) else {
        return ignored("interaction");
    };
    let team = user.and_then(|user| user.team_id.clone());
    if let Some(form) = sent_form(&payload) {
        return Event::Interaction(Interaction {
            id,
            control: Control::Form,
            place: Some(form.place),
            message: Some(form.message),
            team,
            sender,
            is_anonymous: false,
            data: form.data,
            written: Some(form.written),
        });
    }
    Event::Interaction(Interaction {
        id,
        control: control(&payload),
        place: place(&payload),
        message: message(&payload, identity),
        team,
        sender,
        is_anonymous: false,
        data: data(&payload),
        written: None,
    })
}

/// The form of ours that was sent.
fn sent_form(payload: &InteractivePayload) -> Option<SubmittedForm> {
    let view = payload.view.as_ref()?;
    (payload.kind.as_deref() == Some("view_submission"))
        .then(|| sent(view))
        .flatten()
}

/// The one button that was pressed, or something else.
fn control(payload: &InteractivePayload) -> Control {
    match &payload.actions[..] {
        [action] if is_button(action) => Control::Button,
        _ => Control::Other,
    }
}

fn is_button(action: &ButtonAction) -> bool {
    action.kind.as_deref() == Some("button")
}

fn place(payload: &InteractivePayload) -> Option<Place> {
    let container = payload.container.as_ref();
    let channel = payload.channel.as_ref();
    let chat = channel
        .and_then(|channel| channel.id.0.clone())
        .or_else(|| container.and_then(|container| container.channel_id.0.clone()))?;
    let (kind, title) = named_chat(channel.and_then(|channel| channel.name.as_deref()));
    let kind = kind.or_else(|| chat_kind(None, &chat));
    Some(Place {
        chat,
        kind,
        title,
        thread: container.and_then(|container| container.thread_ts.0.clone()),
        ..Place::default()
    })
}

fn message(payload: &InteractivePayload, identity: &Identity) -> Option<PressedMessage> {
    let container = payload.container.as_ref()?;
    let id = container.message_ts.0.clone()?;
    let message = payload.message.as_ref();
    Some(PressedMessage {
        id,
        author: message.map_or(PressedAuthor::Untold, |message| author(message, identity)),
        is_forwarded: is_attached(container),
        is_via_bot: false,
        is_ephemeral: *container.is_ephemeral == Some(true),
    })
}

/// Whether the button stands in an attachment, where shared messages are shown. Ours has none.
fn is_attached(container: &ButtonContainer) -> bool {
    container.kind.as_deref() == Some("message_attachment")
}

fn author(message: &ClickedMessage, identity: &Identity) -> PressedAuthor {
    let ids = [message.bot_id.as_deref(), message.user.as_deref()];
    let mut told = ids.into_iter().flatten().peekable();
    match (told.peek().is_some(), told.any(|id| identity.is_self(id))) {
        (false, _) => PressedAuthor::Untold,
        (true, true) => PressedAuthor::Us,
        (true, false) => PressedAuthor::Another,
    }
}

/// A button's own value; for any other control its name, too.
fn data(payload: &InteractivePayload) -> String {
    let data = match payload.actions.first() {
        Some(action) => {
            let id = action.action_id.as_deref().unwrap_or_default();
            let value = action.value.as_deref().unwrap_or_default();
            match is_button(action) && !value.is_empty() {
                true => value.to_owned(),
                false => format!("{id}={value}"),
            }
        }
        None => {
            let view = payload.view.as_ref();
            let view = view.and_then(|view| view.callback_id.0.clone());
            payload.callback_id.0.clone().or(view).unwrap_or_default()
        }
    };
    neutral_text(&data)
}
