//! What happens in a seed, decided before it begins: what people do and when, and how each life of the
//! daemon ends.

use crate::dice::SeededDice;
use crate::plan::Mode;

/// When every simulation begins, in milliseconds since the Unix epoch.
pub(super) const BEGINNING_MS: i64 = 1_763_712_000_000;

/// The most lives before the last one, which is not ended.
const ENDS_MAX: u64 = 5;

/// What happens on the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A person asks the agent something.
    Ask {
        room: usize,
        person: usize,
        is_long: bool,
        /// In the thread of an earlier question, where the platform has threads.
        in_thread: bool,
    },
    /// A person says something to the others.
    Say { room: usize, person: usize },
    /// The newest thing said to the others is edited.
    Edit { room: usize },
    /// One of the last questions is edited, which may be answered by then or not.
    EditQuestion { room: usize },
    /// It is deleted.
    Delete { room: usize },
    /// The person who is alone with the bot tells it to start afresh.
    StartAfresh,
    /// The connection breaks.
    Break,
    /// Nothing gets through for `lasts_ms`.
    Outage { lasts_ms: i64 },
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifeEnd {
    /// It is killed at that step: an access to the store, the network or the model.
    Kill { step: u64 },
    /// It is stopped in order, this long after its start.
    Stop { after_ms: i64 },
}

/// A seed's story.
#[derive(Clone, Debug)]
pub(super) struct SimScript {
    pub(super) mode: Mode,
    /// What happens when, in milliseconds since the Unix epoch.
    pub(super) acts: Vec<(i64, Act)>,
    /// How each life ends, and how long nothing runs afterwards.
    pub(super) ends: Vec<(LifeEnd, i64)>,
    /// Faults happen until then.
    pub(super) faults_until_ms: i64,
    /// Whether the platform sends the bot's own posts as events, where it can.
    pub(super) echoes: bool,
    /// Whether storage fails now and then.
    pub(super) disk_fails: bool,
    /// Whether the platform delivers again minutes later, when no request waits any more.
    pub(super) is_patient: bool,
    /// Whether only workers that have a model's answer stall; otherwise any step may.
    pub(super) pauses_workers: bool,
    /// The channel's setting for live answers.
    pub(super) live: LiveSetting,
    /// Seed of which long texts the platform refuses.
    refused: u64,
}

/// The values of the channel's setting `live`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LiveSetting {
    Off,
    On,
    Edit,
    /// On Slack only; elsewhere as on.
    Stream,
}

impl LiveSetting {
    /// All settings.
    pub(super) const ALL: [Self; 4] = [Self::Off, Self::On, Self::Edit, Self::Stream];

    /// The configured value.
    pub(super) fn name(self, mode: Mode) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Stream if mode == Mode::Slack => "stream",
            Self::On | Self::Stream => "on",
            Self::Edit => "edit",
        }
    }
}

/// Rooms of the platform: two of many people, one of a person alone.
pub(super) const ROOMS: usize = 3;
/// The room of one person alone.
pub(super) const DIRECT_ROOM: usize = 2;
/// People in the other rooms.
pub(super) const PEOPLE: usize = 3;

impl SimScript {
    pub(super) fn new(mode: Mode, steps: usize, dice: &mut SeededDice) -> Self {
        let mut acts = Vec::new();
        let mut at_ms = BEGINNING_MS + dice.ms(0, 4_000);
        for _ in 0..steps {
            acts.push((at_ms, act(dice)));
            // People speak in bursts.
            at_ms += match dice.below(4) {
                0 => dice.ms(0, 50),
                1 | 2 => dice.ms(50, 2_500),
                _ => dice.ms(2_500, 9_000),
            };
        }
        let ends = (0..dice.below(ENDS_MAX)).map(|_| end(dice)).collect();
        Self {
            mode,
            acts,
            ends,
            faults_until_ms: at_ms + 10_000,
            echoes: dice.hits(500),
            disk_fails: dice.hits(250),
            is_patient: dice.hits(50),
            refused: dice.below(REFUSED_OF),
            pauses_workers: dice.hits(400),
            live: LiveSetting::ALL[dice.place(LiveSetting::ALL.len())],
        }
    }
}

/// The platform refuses one in this number of long texts.
const REFUSED_OF: u64 = 12;

impl SimScript {
    /// Whether the platform finds a text too long, whenever it is posted.
    pub(super) fn refuses(&self, text: &str) -> bool {
        let sum: u64 = text.bytes().map(u64::from).sum();
        text.trim().contains('\n') && sum % REFUSED_OF == self.refused
    }
}

fn act(dice: &mut SeededDice) -> Act {
    let room = dice.place(ROOMS);
    let is_direct = room == DIRECT_ROOM;
    let person = if is_direct { 0 } else { dice.place(PEOPLE) };
    match dice.below(100) {
        n if is_direct && (63..70).contains(&n) => Act::StartAfresh,
        // Messages to the bot alone are always questions.
        n if n < 40 || is_direct && n < 70 => Act::Ask {
            room,
            person,
            is_long: dice.hits(300),
            in_thread: dice.hits(300),
        },
        40..60 => Act::Say { room, person },
        60..70 => Act::Edit { room },
        70..80 => Act::EditQuestion { room },
        80..85 => Act::Delete { room },
        85..95 => Act::Break,
        _ => Act::Outage {
            lasts_ms: match dice.below(10) {
                0 => dice.ms(60_000, 400_000),
                _ => dice.ms(500, 20_000),
            },
        },
    }
}

fn end(dice: &mut SeededDice) -> (LifeEnd, i64) {
    let end = match dice.below(5) {
        0 => LifeEnd::Stop {
            after_ms: dice.ms(0, 20_000),
        },
        // Each order of magnitude is equally likely: some lives end at the start, some at work.
        _ => {
            let order = 2 + dice.below(8);
            LifeEnd::Kill {
                step: 1 + dice.below(1 << order),
            }
        }
    };
    let down_ms = match dice.below(10) {
        0 => dice.ms(60_000, 1_800_000),
        _ => dice.ms(0, 5_000),
    };
    (end, down_ms)
}
