//! The platform as it is: rooms, the messages in them, and the requests and events in flight. One model for both
//! platforms; where they differ, `Mode` says which. It knows neither the daemon nor a runtime.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use vocative_contract::card::CardButton;
use vocative_contract::crash::Sabotage;
use vocative_contract::envelope::{CommandTarget, CommandWord};
use vocative_contract::markup::mention_token;
use vocative_contract::outbound::{Delivered, Post};
use vocative_contract::probe::ProbeAnswer;

use super::clocks::WallClock;
use super::networks::NetworkCalls;
use super::plans::Plans;
use super::script::{Act, BEGINNING_MS, DIRECT_ROOM, ROOMS, SimScript};
use super::wire::{SimEvent, SimWire, TellOutcome, What};
use super::words::{LONG_LINES, SimWord, asked};
use crate::dice::SeededDice;
use crate::plan::Mode;

/// How many of a room's newest questions can be edited.
const LAST_QUESTIONS: usize = 4;

/// The bot's user id.
pub(super) const BOT: &str = "9000";

/// A message in a room.
#[derive(Clone, Debug)]
pub(super) struct SimMessage {
    pub(super) id: String,
    pub(super) at_ms: i64,
    pub(super) ordinal: i64,
    /// Who wrote it; `None` = the bot.
    pub(super) person: Option<usize>,
    pub(super) text: String,
    pub(super) word: Option<SimWord>,
    /// The first message of its thread, if it is in one.
    pub(super) thread: Option<String>,
    /// The marker of its last edit, and when that was.
    pub(super) edited: Option<(String, i64)>,
    pub(super) is_deleted: bool,
    /// On the bot's messages: the outbox id it carries.
    pub(super) marker: Option<String>,
    /// When history shows it.
    pub(super) visible_at_ms: i64,
    /// Whether words can be appended at its end.
    pub(super) is_streamed: bool,
    /// On the bot's messages: the buttons below it.
    pub(super) buttons: Vec<CardButton>,
}

/// A change of a post of the bot.
#[derive(Clone, Debug)]
pub(super) struct SimChange {
    pub(super) chat: String,
    pub(super) message_id: String,
    pub(super) to: ChangeTo,
}

/// The result of the change.
#[derive(Clone, Debug)]
pub(super) enum ChangeTo {
    /// Another text, with these buttons below it.
    Text(String, Vec<CardButton>),
    /// The same with these words at its end.
    More(String),
    /// Gone.
    Nothing,
}

/// A request that arrives after its sender gave it up.
#[derive(Clone, Debug)]
pub(super) enum Arriving {
    Post(Box<Post>),
    Change(SimChange),
}

/// A question and where its answer belongs.
#[derive(Clone, Debug)]
pub(super) struct SimQuestion {
    pub(super) word: SimWord,
    pub(super) thread: Option<String>,
    /// How often it was edited.
    pub(super) edits: usize,
    /// The message by which its room was told to start afresh, where the daemon had heard of it when this was asked:
    /// its prompt contains nothing older.
    pub(super) afresh_since: Option<usize>,
    is_long: bool,
    /// Whether it also asks for a reminder.
    pub(super) is_plan: bool,
}

impl SimQuestion {
    /// Lines of the answer to what it says.
    pub(super) fn lines(&self) -> usize {
        self.lines_after(self.edits)
    }

    /// The lines of the answer after a number of edits: each turns a short answer into a long one, and back.
    pub(super) fn lines_after(&self, edits: usize) -> usize {
        let is_long = self.is_long ^ (edits % 2 == 1);
        if is_long { LONG_LINES } else { 1 }
    }

    fn text(&self, mentions: bool) -> String {
        let length = if self.is_long { "long" } else { "short" };
        let asked = asked(self.word, self.edits);
        let plan = match self.is_plan {
            true => ", and a reminder",
            false => "",
        };
        let said = format!("{asked} please, the {length} answer{plan}");
        if mentions {
            format!("{} {said}", mention_token(BOT))
        } else {
            said
        }
    }
}

/// A post of the bot that arrived.
#[derive(Clone, Debug)]
pub(super) struct SimArrival {
    pub(super) marker: String,
    /// When the daemon read that it arrived, if it did.
    pub(super) told_at_ms: Option<i64>,
}

/// The platform.
pub(super) struct World {
    pub(super) mode: Mode,
    pub(super) script: SimScript,
    pub(super) now_ms: i64,
    pub(super) dice: SeededDice,
    /// The machine's clock.
    pub(super) wall: WallClock,
    pub(super) rooms: Vec<Vec<SimMessage>>,
    pub(super) questions: Vec<SimQuestion>,
    pub(super) arrivals: Vec<SimArrival>,
    /// The messages that told the bot to start afresh, in the room of one person.
    pub(super) fresh_starts: Vec<usize>,
    pub(super) wire: SimWire,
    pub(super) plans: Plans,
    /// What the agents of a network were asked.
    pub(super) calls: NetworkCalls,
    acts: VecDeque<(i64, Act)>,
    /// Posts and changes whose request was given up and that still arrive.
    late: BTreeMap<(i64, usize), Arriving>,
    late_count: usize,
    outage_until_ms: i64,
    /// The newest id that was given: microseconds on Slack, a number on Telegram.
    newest_id: i64,
    /// Telegram's sequences of message ids, where messages are probed: the rooms with their own, and all others
    /// together.
    newest_numbers: [i64; 2],
    /// The newest number of each sequence in a delivered event: newer messages may be unknown to the server.
    told_numbers: [i64; 2],
    /// The dice for message numbers.
    pub(super) numbers_dice: SeededDice,
    /// Whether people go on talking when the script is over.
    pub(super) talks_on: bool,
    pub(super) kills_ms: Vec<i64>,
    /// When the daemon had stopped, whatever was still under way.
    pub(super) stopped_ms: Vec<i64>,
    /// The begin and end of each stalled step.
    pub(super) stalls_ms: Vec<(i64, i64)>,
    pub(super) stops: usize,
    pub(super) faults: usize,
    /// Posts that a person decided about.
    pub(super) held: usize,
    /// The texts of those posts, and whether they were in the room. A missing one is posted after those that followed
    /// it; so is a change of one that is there, because its message id is unknown.
    pub(super) decided: Vec<(String, bool)>,
    /// Beginnings of answers that were refused as too long: the posts in their place do not begin alike.
    pub(super) refused_beginnings: Vec<String>,
    /// When a step last stalled.
    pub(super) stalled_at_ms: i64,
    pub(super) sabotage: Option<Sabotage>,
    /// What a search found before a question was answered: the question, how often it was edited by then,
    /// and what was found.
    pub(super) found: BTreeSet<(SimWord, usize, SimWord)>,
    /// Questions for which a search was made, and how often they were edited by then.
    pub(super) searched: BTreeSet<(SimWord, usize)>,
    /// What is wrong, in words.
    pub(super) wrong: Vec<String>,
    trace: Option<String>,
}

impl World {
    pub(super) fn new(
        script: SimScript,
        dice: SeededDice,
        wall: WallClock,
        sabotage: Option<Sabotage>,
        is_traced: bool,
    ) -> Self {
        Self {
            mode: script.mode,
            now_ms: BEGINNING_MS,
            dice,
            wall,
            rooms: vec![Vec::new(); ROOMS],
            questions: Vec::new(),
            arrivals: Vec::new(),
            fresh_starts: Vec::new(),
            wire: SimWire::new(script.mode != Mode::Slack),
            plans: Plans::new(None),
            calls: NetworkCalls::default(),
            acts: script.acts.iter().copied().collect(),
            script,
            late: BTreeMap::new(),
            late_count: 0,
            outage_until_ms: 0,
            newest_id: 0,
            newest_numbers: [0; 2],
            told_numbers: [0; 2],
            numbers_dice: SeededDice::of(0, "numbers"),
            talks_on: false,
            kills_ms: Vec::new(),
            stopped_ms: Vec::new(),
            stalls_ms: Vec::new(),
            stops: 0,
            faults: 0,
            held: 0,
            decided: Vec::new(),
            refused_beginnings: Vec::new(),
            stalled_at_ms: 0,
            sabotage,
            found: BTreeSet::new(),
            searched: BTreeSet::new(),
            wrong: Vec::new(),
            trace: is_traced.then(String::new),
        }
    }

    /// Notes what happens, if somebody wants to read it.
    pub(super) fn note(&mut self, what: std::fmt::Arguments<'_>) {
        let since_ms = self.now_ms - BEGINNING_MS;
        if let Some(trace) = &mut self.trace {
            let (seconds, ms) = (since_ms / 1_000, since_ms % 1_000);
            let _ = writeln!(trace, "{seconds:>5}.{ms:03}  {what}");
        }
    }

    pub(super) fn take_trace(&mut self) -> String {
        self.trace.take().unwrap_or_default()
    }

    pub(super) fn is_slack(&self) -> bool {
        self.mode == Mode::Slack
    }

    /// Whether a thing of this probability goes wrong now. Nothing does once faults are over.
    pub(super) fn fails(&mut self, per_mille: u64) -> bool {
        let fails = self.has_faults() && self.dice.hits(per_mille);
        self.faults += usize::from(fails);
        fails
    }

    pub(super) fn has_faults(&self) -> bool {
        self.now_ms < self.script.faults_until_ms
    }

    /// Whether nothing gets through now.
    pub(super) fn is_out(&self) -> bool {
        self.now_ms < self.outage_until_ms
    }

    /// Lets everything happen that is due by `until_ms`.
    pub(super) fn advance(&mut self, until_ms: i64) {
        while let Some(due_ms) = self.due_ms().filter(|due_ms| *due_ms <= until_ms) {
            self.now_ms = self.now_ms.max(due_ms);
            if self.acts.front().is_some_and(|(at_ms, _)| *at_ms == due_ms) {
                if let Some((_, act)) = self.acts.pop_front() {
                    self.act(act);
                }
            } else if self.wire.due_ms() == Some(due_ms) {
                self.tell_next();
            } else if self.plans.due_ms() == Some(due_ms) {
                self.press_next();
            } else if let Some((_, late)) = self.late.pop_first() {
                match late {
                    Arriving::Post(post) => drop(self.arrive(&post)),
                    Arriving::Change(change) => drop(self.change(&change)),
                }
            }
        }
        self.now_ms = self.now_ms.max(until_ms);
    }

    /// When something happens next.
    pub(super) fn due_ms(&self) -> Option<i64> {
        let act = self.acts.front().map(|(at_ms, _)| *at_ms);
        let late = self.late.keys().next().map(|(at_ms, _)| *at_ms);
        let press = self.plans.due_ms();
        let own = act.into_iter().chain(late).chain(press);
        own.chain(self.wire.due_ms()).min()
    }

    /// Whether nothing is left to happen by itself, no paused worker is left, and Slack has a socket: events that it
    /// gave up are read back after a reconnection.
    pub(super) fn is_quiet(&self) -> bool {
        let is_awake = |(_, to_ms): &(i64, i64)| *to_ms < self.now_ms;
        self.stalls_ms.iter().all(is_awake)
            && self.acts.is_empty()
            && self.late.is_empty()
            && self.plans.due_ms().is_none()
            && self.wire.is_quiet()
            && (!self.is_slack() || self.wire.is_listened_to())
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Ask {
                room,
                person,
                is_long,
                in_thread,
            } => self.ask(room, person, is_long, in_thread),
            Act::Say { room, person } => self.say(room, person),
            Act::Edit { room } => self.edit(room),
            Act::EditQuestion { room } => self.edit_question(room),
            Act::Delete { room } if self.is_slack() => self.delete(room),
            // Telegram reports no deletions to bots.
            Act::Delete { .. } => {}
            Act::StartAfresh => self.start_afresh(),
            Act::Break => {
                self.note(format_args!("the connection breaks"));
                self.faults += 1;
                self.wire.close_socket();
            }
            Act::Outage { lasts_ms } => {
                self.note(format_args!("nothing gets through for {lasts_ms} ms"));
                self.faults += 1;
                self.outage_until_ms = self.now_ms + lasts_ms;
                self.wire.close_socket();
            }
        }
    }

    fn ask(&mut self, room: usize, person: usize, is_long: bool, in_thread: bool) {
        let word = self.word(room, true);
        let is_threaded = self.is_slack() && room != DIRECT_ROOM;
        let thread = (is_threaded && in_thread).then(|| self.open_thread(room));
        let thread = thread.flatten();
        // A question's thread needs no mention, even if its event comes before the question's.
        let mentions = room != DIRECT_ROOM && thread.is_none();
        let mut question = SimQuestion {
            word,
            thread: None,
            edits: 0,
            afresh_since: self.heard_fresh_start(room),
            is_long,
            is_plan: self.plans.draw(word, person),
        };
        let text = question.text(mentions);
        let message = self.write(room, person, text, word, thread);
        let written = &self.rooms[room][message];
        let answered_in = written.thread.clone().unwrap_or_else(|| written.id.clone());
        question.thread = is_threaded.then_some(answered_in);
        self.questions.push(question);
        if is_threaded && mentions && self.dice.hits(300) {
            // Slack sends a second event for a mention, without the kind of room.
            self.tell_of_post(room, message, false);
        }
    }

    /// A question with a thread.
    fn open_thread(&mut self, room: usize) -> Option<String> {
        let is_root = |message: &&SimMessage| {
            message.thread.is_none() && message.word.is_some_and(|word| word.is_question)
        };
        let roots: Vec<&SimMessage> = self.rooms[room].iter().filter(is_root).collect();
        let place = self.dice.place(roots.len());
        roots.get(place).map(|root| root.id.clone())
    }

    fn say(&mut self, room: usize, person: usize) {
        let word = self.word(room, false);
        self.write(room, person, format!("{word} by the way"), word, None);
    }

    fn start_afresh(&mut self) {
        let text = if self.is_slack() {
            format!("{} new", mention_token(BOT))
        } else {
            "/new".to_owned()
        };
        self.note(format_args!("person 0 wants a fresh start"));
        let message = SimMessage {
            person: Some(0),
            ..self.blank(DIRECT_ROOM, text)
        };
        self.rooms[DIRECT_ROOM].push(message);
        let message = self.rooms[DIRECT_ROOM].len() - 1;
        self.fresh_starts.push(message);
        self.tell_of_post(DIRECT_ROOM, message, true);
    }

    /// The last fresh start of a room that the daemon has heard of.
    fn heard_fresh_start(&self, room: usize) -> Option<usize> {
        let is_heard = |message: &&usize| self.wire.is_heard_of(DIRECT_ROOM, **message);
        let mut here = self.fresh_starts.iter().filter(|_| room == DIRECT_ROOM);
        here.rfind(is_heard).copied()
    }

    fn word(&self, room: usize, is_question: bool) -> SimWord {
        SimWord {
            is_question,
            number: self.rooms[room].len(),
            room,
        }
    }

    fn write(
        &mut self,
        room: usize,
        person: usize,
        text: String,
        word: SimWord,
        thread: Option<String>,
    ) -> usize {
        let place = thread.as_deref().map_or("", |_| " in a thread");
        self.note(format_args!(
            "person {person} says {word} in room {room}{place}"
        ));
        let message = SimMessage {
            person: Some(person),
            word: Some(word),
            thread,
            ..self.blank(room, text)
        };
        self.rooms[room].push(message);
        let message = self.rooms[room].len() - 1;
        self.tell_of_post(room, message, true);
        message
    }

    fn tell_of_post(&mut self, room: usize, message: usize, has_kind: bool) {
        let text = self.rooms[room][message].text.clone();
        self.tell(room, message, What::Posted { text, has_kind });
    }

    fn tell(&mut self, room: usize, message: usize, what: What) {
        self.tell_event(SimEvent {
            room,
            message,
            what,
        });
    }

    pub(super) fn tell_event(&mut self, event: SimEvent) {
        let has_faults = self.has_faults();
        self.wire
            .tell(event, self.now_ms, has_faults, &mut self.dice);
    }

    /// A message with an id and time of its own.
    fn blank(&mut self, room: usize, text: String) -> SimMessage {
        let (id, at_ms, ordinal) = if self.is_slack() {
            self.newest_id = (self.now_ms * 1_000).max(self.newest_id + 1);
            let micros = self.newest_id;
            let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
            (format!("{seconds}.{fraction:06}"), micros / 1_000, fraction)
        } else if self.is_numbered() {
            let newest = &mut self.newest_numbers[sequence_of(room)];
            *newest += 1;
            (newest.to_string(), self.now_ms / 1_000 * 1_000, *newest)
        } else {
            self.newest_id += 1;
            // Telegram counts whole seconds.
            let at_ms = self.now_ms / 1_000 * 1_000;
            (self.newest_id.to_string(), at_ms, self.newest_id)
        };
        SimMessage {
            id,
            at_ms,
            ordinal,
            person: None,
            text,
            word: None,
            thread: None,
            edited: None,
            is_deleted: false,
            marker: None,
            visible_at_ms: self.now_ms,
            is_streamed: false,
            buttons: Vec::new(),
        }
    }

    /// The newest thing that somebody said to the others.
    fn newest_said(&self, room: usize) -> Option<usize> {
        let is_said = |message: &SimMessage| {
            !message.is_deleted && message.word.is_some_and(|word| !word.is_question)
        };
        self.rooms[room].iter().rposition(is_said)
    }

    fn edit(&mut self, room: usize) {
        let Some(message) = self.newest_said(room) else {
            return;
        };
        let text = format!("{} rather", self.rooms[room][message].text);
        self.edit_to(room, message, text);
    }

    /// One of the last questions in a room is edited.
    fn edit_question(&mut self, room: usize) {
        let is_asked = |message: &SimMessage| {
            let word = message.word.filter(|word| word.is_question);
            word.is_some_and(|word| !self.plans.is_one(word))
        };
        let asked = self.rooms[room].iter().enumerate().rev();
        let last: Vec<usize> = asked
            .filter(|(_, message)| is_asked(message))
            .map(|(n, _)| n)
            .take(LAST_QUESTIONS)
            .collect();
        let Some(message) = last.get(self.dice.place(last.len())).copied() else {
            return;
        };
        let word = self.rooms[room][message].word;
        let of_message = |question: &SimQuestion| Some(question.word) == word;
        let Some(place) = self.questions.iter().position(of_message) else {
            return;
        };
        let mut question = self.questions[place].clone();
        question.edits += 1;
        let mentions = self.rooms[room][message].text.contains(&mention_token(BOT));
        if self.edit_to(room, message, question.text(mentions)) {
            self.questions[place] = question;
        }
    }

    /// Changes the text of a message; false where it was edited in the same second before.
    fn edit_to(&mut self, room: usize, message: usize, text: String) -> bool {
        let now_ms = self.now_ms;
        let edited = &mut self.rooms[room][message];
        let last_ms = edited.edited.as_ref().map_or(edited.at_ms, |(_, at)| *at);
        // An edit is identified by its second.
        if now_ms / 1_000 <= last_ms / 1_000 {
            return false;
        }
        let marker = match self.mode {
            Mode::Slack => format!("{}.{:06}", now_ms / 1_000, now_ms % 1_000 * 1_000),
            _ => (now_ms / 1_000).to_string(),
        };
        edited.text.clone_from(&text);
        edited.edited = Some((marker.clone(), now_ms));
        let word = edited.word;
        self.note(format_args!("{} is edited", shown(word)));
        self.tell(room, message, What::Edited { text, marker });
        true
    }

    fn delete(&mut self, room: usize) {
        let Some(message) = self.newest_said(room) else {
            return;
        };
        self.rooms[room][message].is_deleted = true;
        let word = self.rooms[room][message].word;
        self.note(format_args!("{} is deleted", shown(word)));
        self.tell(room, message, What::Deleted);
    }

    fn tell_next(&mut self) {
        let Some((event, told)) = self.wire.attempt(self.now_ms) else {
            return;
        };
        let name = self.name_of(event);
        if told == TellOutcome::Offered {
            self.note_told(event);
        }
        match told {
            TellOutcome::Offered => self.note(format_args!("{name} is told")),
            TellOutcome::Known => {}
            TellOutcome::Missed => self.note(format_args!("{name} is told to nobody")),
            TellOutcome::GivenUp => {
                self.note(format_args!("{name} is told to nobody, for the last time"));
            }
        }
    }

    /// Whether this is Telegram with probing by message numbers.
    pub(super) fn is_numbered(&self) -> bool {
        self.mode == Mode::TelegramLook
    }

    fn note_told(&mut self, event: usize) {
        let SimEvent { room, message, .. } = *self.wire.event(event);
        let told = &mut self.told_numbers[sequence_of(room)];
        *told = (*told).max(self.rooms[room][message].ordinal);
    }

    /// Telegram's answer about a message number in a room: its server knows only what it has heard of.
    pub(super) fn probe(&mut self, room: usize, number: i64) -> ProbeAnswer {
        let told = self.told_numbers[sequence_of(room)];
        let is_there = |it: &&SimMessage| it.ordinal == number && !it.is_deleted;
        let found = self
            .rooms
            .get(room)
            .and_then(|room| room.iter().find(is_there));
        let is_heard_of = |it: &&SimMessage| it.visible_at_ms <= self.now_ms || told > number;
        let answer = match found.filter(is_heard_of) {
            Some(message) if message.person.is_none() => ProbeAnswer::Ours,
            Some(_) => ProbeAnswer::NotOurs,
            None => ProbeAnswer::NotThere,
        };
        self.note(format_args!("number {number} in room {room}: {answer:?}"));
        answer
    }

    /// Has a person say something in each room that also has other messages than questions.
    pub(super) fn talk_on(&mut self) {
        for room in (0..ROOMS).filter(|room| *room != DIRECT_ROOM) {
            self.say(room, 0);
        }
    }

    /// The name of an event in a trace.
    pub(super) fn name_of(&self, event: usize) -> String {
        let SimEvent {
            room,
            message,
            what,
        } = self.wire.event(event);
        let kind = match what {
            What::Posted { .. } => "post",
            What::Edited { .. } => "edit",
            What::Deleted => "delete",
            What::Own => "own post",
            What::Pressed { .. } => "press",
        };
        let word = self.rooms[*room][*message].word;
        format!("event {event}, {kind} {}", shown(word))
    }

    /// Adds a post of the bot; returns its platform id, and the number of the arrival.
    pub(super) fn arrive(&mut self, post: &Post) -> Option<(Delivered, usize)> {
        let room: usize = post.target.chat.strip_prefix('C')?.parse().ok()?;
        let mut late_in_history_ms =
            match (self.is_slack() && self.has_faults(), self.dice.below(3)) {
                (true, 1) => 3_000,
                (true, 2) => 20_000,
                _ => 0,
            };
        if self.is_numbered() && self.has_faults() {
            late_in_history_ms = [0, 0, 5_000, 40_000][self.numbers_dice.place(4)];
        }
        let stream = post.part.stream.as_ref().filter(|_| self.is_slack());
        let text = stream.map_or(&post.part.text, |stream| &stream.text);
        let message = SimMessage {
            marker: Some(post.marker.clone()),
            thread: post.target.thread.clone(),
            visible_at_ms: self.now_ms + late_in_history_ms,
            is_streamed: stream.is_some(),
            buttons: post.part.buttons.clone(),
            ..self.blank(room, text.clone())
        };
        let delivered = Delivered {
            chat: post.target.chat.clone(),
            message_id: message.id.clone(),
            sent_at_ms: message.at_ms,
            shown: None,
        };
        let first: Vec<&str> = message.text.split_whitespace().take(1).collect();
        self.note(format_args!(
            "post {} arrives in room {room}",
            first.concat()
        ));
        self.rooms[room].push(message);
        let message = self.rooms[room].len() - 1;
        if self.is_slack() && self.script.echoes {
            self.tell(room, message, What::Own);
        }
        self.arrivals.push(SimArrival {
            marker: post.marker.clone(),
            told_at_ms: None,
        });
        if !post.part.buttons.is_empty() {
            self.card_arrived(room, message);
        }
        Some((delivered, self.arrivals.len() - 1))
    }

    /// Changes a post of the bot; false where that can't be changed.
    pub(super) fn change(&mut self, change: &SimChange) -> bool {
        let room = change.chat.strip_prefix('C').and_then(|it| it.parse().ok());
        let Some(room) = room.filter(|room: &usize| *room < self.rooms.len()) else {
            return false;
        };
        let is_it = |it: &&mut SimMessage| {
            it.id == change.message_id && it.person.is_none() && !it.is_deleted
        };
        let Some(post) = self.rooms[room].iter_mut().find(is_it) else {
            return false;
        };
        match &change.to {
            ChangeTo::Text(text, buttons) => {
                post.text.clone_from(text);
                post.buttons.clone_from(buttons);
                post.is_streamed = false;
            }
            ChangeTo::More(_) if !post.is_streamed => return false,
            ChangeTo::More(more) => post.text.push_str(more),
            ChangeTo::Nothing => post.is_deleted = true,
        }
        let said = post.text.clone();
        let first = said.split_whitespace().next().unwrap_or_default();
        self.note(format_args!(
            "post {first} in room {room} {}",
            match &change.to {
                ChangeTo::Text(..) if is_unfinished(&said) => "is edited, more comes",
                ChangeTo::Text(..) => "is edited",
                ChangeTo::More(_) => "grows",
                ChangeTo::Nothing => "is deleted",
            }
        ));
        true
    }

    /// Lets a request arrive later, after its sender gave it up.
    pub(super) fn arrive_late(&mut self, late: Arriving, wait_ms: i64) {
        self.late_count += 1;
        let at = (self.now_ms + wait_ms, self.late_count);
        self.late.insert(at, late);
    }
}

/// Which sequence of ids a room's messages have: the first room is a supergroup.
fn sequence_of(room: usize) -> usize {
    room.min(1)
}

/// The command in a text, on platforms where commands are not words after a mention.
pub(super) fn command_of(text: &str) -> Option<CommandWord> {
    Some(CommandWord {
        name: text.strip_prefix('/')?.to_owned(),
        target: CommandTarget::Anyone,
        opens_chat: false,
    })
}

/// Whether a text says that more of it comes.
pub(super) fn is_unfinished(text: &str) -> bool {
    text.ends_with('…')
}

fn shown(word: Option<SimWord>) -> String {
    word.map_or_else(String::new, |word| word.to_string())
}
