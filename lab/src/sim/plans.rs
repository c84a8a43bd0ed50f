//! People who ask for a reminder. The agent wants to plan it, a card asks them, and they press its buttons as people
//! do: late, twice, together, with the buttons of somebody else's card, or never. Approved, the reminder comes once.
//!
//! What chance decides here has dice of its own, so that worlds without plans stay as they were.

use std::collections::{BTreeMap, BTreeSet};

use vocative_contract::card::{ButtonStyle, Card, CardButton};
use vocative_contract::outbound::Part;

use super::script::{DIRECT_ROOM, PEOPLE};
use super::verdict::SimTally;
use super::wire::{SimEvent, What};
use super::words::SimWord;
use super::world::{SimMessage, World};
use crate::dice::SeededDice;
use crate::plan::Mode;

/// Of a thousand questions in worlds with plans, how many ask for a reminder.
const PLANNED_PER_MILLE: u64 = 350;
/// Of a thousand cards, how many are never pressed and expire.
const LEFT_ALONE_PER_MILLE: u64 = 120;
/// How late a person presses a button, in milliseconds: from and to.
const PRESSED_MS: (i64, i64) = (200, 45_000);
/// How the card of an approved call begins.
const APPROVED: &str = "Approved: ";
/// How a card begins while it waits.
const WAITS: &str = "May I do this? ";
/// How a reminder begins.
const REMINDER: &str = "Reminder";

/// A button that is pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Press {
    pub(super) room: usize,
    pub(super) message: usize,
    pub(super) person: usize,
    pub(super) data: String,
}

/// The result of a schedule, as the store has it.
#[derive(Clone, Debug)]
pub(super) struct SimSchedule {
    pub(super) task: String,
    /// How many of its times started.
    pub(super) fired: usize,
    /// How many of its times came and started nothing.
    pub(super) missed: usize,
    pub(super) is_open: bool,
}

/// What people plan.
pub(super) struct Plans {
    dice: Option<SeededDice>,
    /// The people who asked for a reminder, by the question.
    asked: BTreeMap<SimWord, usize>,
    presses: BTreeMap<(i64, usize), Press>,
    pressed: usize,
}

impl Plans {
    pub(super) fn new(dice: Option<SeededDice>) -> Self {
        Self {
            dice,
            asked: BTreeMap::new(),
            presses: BTreeMap::new(),
            pressed: 0,
        }
    }

    /// Decides whether a new question also asks for a reminder.
    pub(super) fn draw(&mut self, word: SimWord, person: usize) -> bool {
        let dice = self.dice.as_mut();
        let is_one = dice.is_some_and(|dice| dice.hits(PLANNED_PER_MILLE));
        if is_one {
            self.asked.insert(word, person);
        }
        is_one
    }

    /// Whether a question asks for a reminder.
    pub(super) fn is_one(&self, word: SimWord) -> bool {
        self.asked.contains_key(&word)
    }

    pub(super) fn due_ms(&self) -> Option<i64> {
        self.presses.keys().next().map(|(at_ms, _)| *at_ms)
    }

    fn plan_press(&mut self, at_ms: i64, press: Press) {
        self.pressed += 1;
        self.presses.insert((at_ms, self.pressed), press);
    }
}

/// The text of a question's reminder: no word that a question or an answer has.
pub(super) fn task_of(word: SimWord) -> String {
    format!("p{}r{} is due", word.number, word.room)
}

/// A card as the simulated platform shows it: on one line, so that it is never too long.
pub(super) fn card_part(card: &Card) -> Part {
    let facts = card.facts.iter();
    let facts = facts.map(|fact| format!("{}: {}", fact.label, fact.value));
    let texts = card.texts.iter();
    let texts = texts.map(|text| format!("{} = {}", text.title, text.text));
    let lines: Vec<String> = std::iter::once(card.heading.clone())
        .chain(facts)
        .chain(texts)
        .collect();
    Part {
        buttons: card.buttons.clone(),
        ..Part::plain(lines.join(" | ").replace('\n', " "))
    }
}

/// Whether a post of the bot is a card (open or decided) or a reminder.
pub(super) fn is_of_plans(post: &SimMessage) -> bool {
    has_outcome(post) || post.text.starts_with(WAITS) || post.text.starts_with(REMINDER)
}

fn has_outcome(post: &SimMessage) -> bool {
    let outcomes = [APPROVED, "Denied: ", "Expired: ", "Cancelled: "];
    outcomes.iter().any(|label| post.text.starts_with(label))
}

impl World {
    /// Notes that a card is in its room, and decides who presses it, if anybody.
    pub(super) fn card_arrived(&mut self, room: usize, message: usize) {
        let Some(asker) = self.asker_of(room, message) else {
            return;
        };
        let now_ms = self.now_ms;
        let buttons = self.rooms[room][message].buttons.clone();
        let Some(dice) = &mut self.plans.dice else {
            return;
        };
        if dice.hits(LEFT_ALONE_PER_MILLE) {
            return;
        }
        let mut presses = Vec::new();
        for _ in 0..=dice.below(3) {
            let person = match dice.hits(250) && room != DIRECT_ROOM {
                true => dice.place(PEOPLE),
                false => asker,
            };
            let at_ms = now_ms + dice.ms(PRESSED_MS.0, PRESSED_MS.1);
            // A burst: one thumb, several times, or several people at once.
            for n in 0..=i64::try_from(dice.below(4)).unwrap_or(0) {
                let data = button(&buttons, !dice.hits(250));
                presses.extend(data.map(|data| (at_ms + n * 7, person, data)));
            }
        }
        for (at_ms, person, data) in presses {
            let press = Press {
                room,
                message,
                person,
                data,
            };
            self.plans.plan_press(at_ms, press);
        }
    }

    /// Has each card that still waits pressed by the person who asked; used once nothing goes wrong any more.
    pub(super) fn press_open(&mut self) {
        let mut open = Vec::new();
        for (room, messages) in self.rooms.iter().enumerate() {
            let cards = messages.iter().enumerate();
            let waits = |(_, it): &(usize, &SimMessage)| !it.buttons.is_empty() && !it.is_deleted;
            open.extend(cards.filter(waits).map(|(message, _)| (room, message)));
        }
        for (room, message) in open {
            let Some(person) = self.asker_of(room, message) else {
                continue;
            };
            let buttons = self.rooms[room][message].buttons.clone();
            let approves = self.plans.dice.as_mut().is_none_or(|dice| dice.hits(600));
            if let Some(data) = button(&buttons, approves) {
                let press = Press {
                    room,
                    message,
                    person,
                    data,
                };
                self.plans.plan_press(self.now_ms + 500, press);
            }
        }
    }

    /// Makes the next press, if its button is still there; now and then also from a screen that shows it outdated.
    pub(super) fn press_next(&mut self) {
        let Some((_, press)) = self.plans.presses.pop_first() else {
            return;
        };
        let card = &self.rooms[press.room][press.message];
        let is_there = card.buttons.iter().any(|it| it.data == press.data) && !card.is_deleted;
        let is_shown = self.plans.dice.as_mut().is_some_and(|dice| dice.hits(300));
        if !is_there && !is_shown {
            return;
        }
        self.note(format_args!(
            "person {} presses {:?} in room {}",
            press.person, press.data, press.room
        ));
        let number = self.plans.pressed;
        self.plans.pressed += 1;
        let what = What::Pressed {
            number,
            person: press.person,
            data: press.data,
        };
        let event = SimEvent {
            room: press.room,
            message: press.message,
            what,
        };
        self.tell_event(event);
    }

    /// Who asked for what a card shows.
    fn asker_of(&self, room: usize, message: usize) -> Option<usize> {
        let text = &self.rooms[room][message].text;
        let mut asked = self.plans.asked.iter();
        asked
            .find(|(word, _)| text.contains(&task_of(**word)))
            .map(|(_, person)| *person)
    }
}

/// The data of a button that approves or denies.
fn button(buttons: &[CardButton], approves: bool) -> Option<String> {
    let style = match approves {
        true => ButtonStyle::Positive,
        false => ButtonStyle::Negative,
    };
    let found = buttons.iter().find(|it| it.style == style);
    found.map(|it| it.data.clone())
}

/// Nothing is planned without consent or twice, every reminder that started is said once, and no card is left open.
pub(super) fn judge_plans(world: &World, planned: &[SimSchedule], tally: &mut SimTally) {
    for word in world.plans.asked.keys() {
        let task = task_of(*word);
        let of_word = |message: &&SimMessage| {
            message.person.is_none() && !message.is_deleted && message.text.contains(&task)
        };
        let posts: Vec<&SimMessage> = world.rooms[word.room].iter().filter(of_word).collect();
        let (said, cards): (Vec<&SimMessage>, Vec<&SimMessage>) = posts
            .into_iter()
            .partition(|it| it.text.starts_with(REMINDER));
        let open: BTreeSet<_> = cards
            .iter()
            .filter(|it| !it.buttons.is_empty() && !may_stay_open(world, it))
            .map(|it| &it.id)
            .collect();
        let wrong = &mut tally.wrong;
        let mut complain = |what: String| wrong.push(format!("{word}: {what}"));
        if !open.is_empty() {
            complain(format!("{} cards are left open", open.len()));
        }
        let approved = cards.iter().filter(|it| it.text.starts_with(APPROVED));
        let approved: BTreeSet<_> = approved.filter_map(|it| it.marker.as_ref()).collect();
        let schedules: Vec<&SimSchedule> = planned.iter().filter(|it| it.task == task).collect();
        // A card whose message id the daemon could not know can't be edited to its outcome.
        let is_hidden = cards.iter().any(|it| may_stay_open(world, it));
        if schedules.len() > approved.len() && !is_hidden {
            complain(format!(
                "{} reminders are planned, {} were approved",
                schedules.len(),
                approved.len()
            ));
        }
        for schedule in &schedules {
            if schedule.is_open || schedule.fired + schedule.missed != 1 {
                complain(format!("its reminder came to {schedule:?}"));
            }
        }
        let fired: usize = schedules.iter().map(|it| it.fired).sum();
        let markers: BTreeSet<_> = said.iter().filter_map(|it| it.marker.as_ref()).collect();
        if markers.len() != fired {
            complain(format!(
                "{fired} reminders started, {} were said",
                markers.len()
            ));
        }
        tally.reminders += 1;
        tally.reminded += markers.len().min(1);
        if said.len() > markers.len() && world.mode != Mode::TelegramResend {
            tally.doubled_outside += 1;
            complain(format!("its reminder is said {} times", said.len()));
        }
    }
}

/// Whether the daemon could not know which message a card is: then no press has an effect and the card can't be edited.
fn may_stay_open(world: &World, card: &SimMessage) -> bool {
    let decided = |(text, is_there): &(String, bool)| *is_there && *text == card.text;
    let is_found = world.decided.iter().any(decided);
    world.mode != Mode::Slack && (is_found || super::verdict::is_unknown(world, card))
}
