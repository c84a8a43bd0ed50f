//! The bot's own surface, where a platform has one: suggested prompts when a person opens it, a title for the thread
//! that a question begins. Decoration: done after the commit, in a task of its own; a failure is reported to no
//! person.

use std::sync::Arc;

use tokio::sync::Semaphore;
use vocative_contract::channel::{Accepted, BoxFuture, Intake, IntakeError};
use vocative_contract::envelope::{ChatKind, Envelope, Event, Place, Sender, SenderKind};
use vocative_contract::handles::Signs;
use vocative_contract::markup::{one_line, replace_mentions};
use vocative_contract::outbound::{Dressing, SuggestedPrompt, Target};

use crate::capture::gate::Gate;
use crate::config::AgentView;

/// The most calls at a time; further ones are left out.
const AT_ONCE_MAX: usize = 8;
/// The longest title, in characters.
const TITLE_MAX_CHARS: usize = 60;

/// An intake that passes events on to another one and then updates the surface.
pub(super) struct Surface {
    prompts: Vec<SuggestedPrompt>,
    signs: Arc<dyn Signs>,
    gate: Arc<Gate>,
    intake: Arc<dyn Intake>,
    seats: Arc<Semaphore>,
}

impl Surface {
    pub(super) fn new(
        view: &AgentView,
        signs: Arc<dyn Signs>,
        gate: Arc<Gate>,
        intake: Arc<dyn Intake>,
    ) -> Self {
        let prompts = view.prompts.iter().cloned();
        Self {
            prompts: prompts
                .map(|(title, message)| SuggestedPrompt { title, message })
                .collect(),
            signs,
            gate,
            intake,
            seats: Arc::new(Semaphore::new(AT_ONCE_MAX)),
        }
    }

    /// The update of the surface for an event, if any.
    fn dressing(&self, event: &Event) -> Option<Dressed> {
        match event {
            Event::Opened { place, sender } => Some(Dressed {
                place: place.clone(),
                sender: sender.clone(),
                target: target(place, place.thread.clone()),
                dressing: Dressing::Prompts(self.prompts.clone()),
            }),
            Event::Posted(message) => {
                let is_question = message.place.kind == Some(ChatKind::Direct)
                    && message.place.thread.is_none()
                    && message.sender.kind == SenderKind::Person;
                let title = title(&message.text).filter(|_| is_question)?;
                Some(Dressed {
                    place: message.place.clone(),
                    sender: message.sender.clone(),
                    target: target(&message.place, Some(message.message_id.clone())),
                    dressing: Dressing::Title(title),
                })
            }
            _ => None,
        }
    }
}

impl Intake for Surface {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
        Box::pin(async move {
            let dressing = self.dressing(&envelope.event);
            let accepted = self.intake.accept(envelope).await?;
            let seat = Arc::clone(&self.seats).try_acquire_owned();
            if let (Some(dressed), Ok(seat)) = (dressing, seat) {
                let (signs, gate) = (Arc::clone(&self.signs), Arc::clone(&self.gate));
                tokio::spawn(async move {
                    if gate.admits(&dressed.place, &dressed.sender).await {
                        signs.dress(&dressed.target, &dressed.dressing).await;
                    }
                    drop(seat);
                });
            }
            Ok(accepted)
        })
    }
}

/// An update of the surface.
struct Dressed {
    place: Place,
    sender: Sender,
    target: Target,
    dressing: Dressing,
}

fn target(place: &Place, thread: Option<String>) -> Target {
    Target {
        chat: place.chat.clone(),
        thread,
        topic: None,
        reply_to: None,
    }
}

/// The beginning of a text as one line, without mentions.
fn title(text: &str) -> Option<String> {
    let line = one_line(&replace_mentions(text, |_| String::new()))?;
    let mut title: String = line.chars().take(TITLE_MAX_CHARS).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    (!title.trim().is_empty()).then(|| title.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_beginning_of_the_question() {
        let table = [
            ("what is up?", Some("what is up?")),
            (" two\nlines ", Some("two lines")),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(title(text).as_deref(), expected, "{text:?}");
        }
        let long = title(&"a".repeat(100));
        assert_eq!(long.map(|title| title.chars().count()), Some(61));
    }
}
