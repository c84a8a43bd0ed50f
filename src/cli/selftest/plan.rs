//! Which kills, on which platform, in which order. Pure.

use vocative_channels::crash::{self, POINTS, Sabotage};

use crate::cli::args::{CrashArgs, CrashPlatform, CrashTransport};

/// Kills of one scene at most: then everything is brought to its end and counted.
const KILLS_OF_SCENE_MAX: usize = 4;
/// The same for random kills, under load.
const RANDOM_KILLS_OF_SCENE_MAX: usize = 8;

/// However few rounds there are, one of so many comes at any time.
const RANDOM_SHARE_MIN: usize = 4;

/// A platform, and what its channel does about a post that may have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Slack, which can be asked.
    Slack,
    /// Telegram, `on_unknown = "resend"`.
    TelegramResend,
    /// Telegram, `on_unknown = "hold"`.
    TelegramHold,
}

impl Mode {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Slack, Self::TelegramResend, Self::TelegramHold];

    /// As in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::TelegramResend => "telegram, resend",
            Self::TelegramHold => "telegram, hold",
        }
    }

    /// Whether it is of the platform that was asked for.
    pub(super) fn is_of(self, platform: Option<CrashPlatform>) -> bool {
        match platform {
            None => true,
            Some(CrashPlatform::Slack) => self == Self::Slack,
            Some(CrashPlatform::Telegram) => self != Self::Slack,
        }
    }

    /// The same when the platform calls; `None` where that changes nothing that counts.
    fn called_name(self) -> Option<&'static str> {
        match self {
            Self::Slack => Some("slack, http"),
            Self::TelegramResend => Some("telegram, webhook"),
            Self::TelegramHold => None,
        }
    }

    fn has(self, point: &str) -> bool {
        let is_of = |groups: &[&str]| groups.iter().any(|group| point.starts_with(group));
        match self {
            Self::Slack => true,
            // Nothing can be looked for or read back, nobody tells of the bot's own posts or of deletions.
            Self::TelegramResend => !is_of(&["look.", "catch-up.", "echo.", "delete.", "upload."]),
            // Neither of the two posts anything.
            // What is held can't be taken back, so no post holds the place of an answer.
            Self::TelegramHold => {
                let none = ["import.", "erase.", "placeholder.", "final."];
                Self::TelegramResend.has(point) && !is_of(&none)
            }
        }
    }
}

/// How the daemon is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It kills itself at this point.
    Point(&'static str),
    /// It is killed once a post is in its room whose request is never answered.
    Unanswered,
    /// It is killed at any time.
    Random,
    /// It lives on, and the lease of a run ends while its model still works.
    LeaseEnds,
}

/// What happens while the daemon is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Play {
    /// People ask in rooms.
    Rooms,
    /// An export is imported.
    Import,
    /// A person is erased.
    Erasure,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) mode: Mode,
    /// Whether the platform calls the daemon, in place of being connected to.
    pub(super) is_called: bool,
    pub(super) way: Way,
    /// How often.
    pub(super) kills: usize,
}

impl Row {
    /// Its platform in the table.
    pub(super) fn platform(&self) -> &'static str {
        let called = self.mode.called_name().filter(|_| self.is_called);
        called.unwrap_or(self.mode.name())
    }

    /// Its name in the table.
    pub(super) fn name(&self) -> &'static str {
        match self.way {
            Way::Point(point) => point,
            Way::Unanswered => "send.unanswered",
            Way::Random => "random",
            Way::LeaseEnds => "lease ends",
        }
    }

    /// How many kills a scene of it has.
    pub(super) fn kills_of_scene_max(&self) -> usize {
        match self.way {
            Way::Random => RANDOM_KILLS_OF_SCENE_MAX,
            _ if self.play() != Play::Rooms => 1,
            _ => KILLS_OF_SCENE_MAX,
        }
    }

    /// What is played.
    pub(super) fn play(&self) -> Play {
        let name = self.name();
        match name.split_once('.') {
            Some(("import", _)) => Play::Import,
            Some(("erase", _)) => Play::Erasure,
            _ => Play::Rooms,
        }
    }

    /// Whether the kill may come when bytes have left and what became of them is not on disk.
    pub(super) fn is_in_window(&self) -> bool {
        match self.way {
            Way::Point(point) => matches!(
                point,
                "send.started"
                    | "send.bytes-sent"
                    | "send.response-read"
                    | "delivery.before-commit"
            ),
            Way::Unanswered | Way::Random => true,
            Way::LeaseEnds => false,
        }
    }

    /// Whether people see answers while they are written.
    pub(super) fn is_live(&self) -> bool {
        let name = self.name();
        let is_point = ["placeholder.", "live.", "final."]
            .iter()
            .any(|group| name.starts_with(group));
        is_point || matches!(self.way, Way::Unanswered | Way::Random)
    }

    /// Whether Slack tells of the bot's own posts: where that is the point, only a look can tell.
    pub(super) fn is_echoed(&self) -> bool {
        !(self.is_in_window() || self.name().starts_with("look."))
    }
}

/// The rows of a run: every point once or more, then random kills with what is left of the rounds.
pub(super) fn rows(args: &CrashArgs, sabotage: Option<Sabotage>) -> Vec<Row> {
    let modes: Vec<Mode> = Mode::ALL
        .into_iter()
        .filter(|mode| mode.is_of(args.platform))
        .collect();
    let rounds_each = (args.rounds as usize).div_ceil(modes.len().max(1));
    let mut rows = Vec::new();
    let is_called = match args.transport {
        Some(transport) => transport == CrashTransport::Http,
        // A broken promise shows over one of the transports as well as over both.
        None => sabotage.is_none(),
    };
    if is_called {
        let called = modes.iter().filter(|mode| mode.called_name().is_some());
        let called = called.flat_map(|mode| called_rows(*mode, rounds_each, sabotage));
        let is_wanted = |row: &Row| {
            args.point.as_deref().is_none_or(|it| row.name() == it)
                && sabotage.is_none_or(|promise| shows(promise, row.mode, row.way))
        };
        rows.extend(called.filter(is_wanted));
    }
    if args.transport == Some(CrashTransport::Http) {
        return rows;
    }
    for mode in modes {
        let ways: Vec<Way> = ways(mode)
            .into_iter()
            .filter(|way| sabotage.is_none_or(|promise| shows(promise, mode, *way)))
            .collect();
        let is_wanted = |row: &Row| {
            args.point
                .as_deref()
                .is_none_or(|point| row.name() == point)
        };
        // Half of the kills come at any time, but for a broken promise: that shows at its points.
        let at_points = if sabotage.is_some() {
            rounds_each
        } else {
            rounds_each / 2
        };
        let kills = (at_points / ways.len().max(1)).max(1);
        let at_points = ways.into_iter().map(|way| Row {
            mode,
            is_called: false,
            way,
            kills,
        });
        rows.extend(at_points.filter(is_wanted));
        let so_far: usize = rows
            .iter()
            .filter(|row| row.mode == mode && !row.is_called)
            .map(|row| row.kills)
            .sum();
        let random = Row {
            mode,
            is_called: false,
            way: Way::Random,
            kills: rounds_each
                .saturating_sub(so_far)
                .max(rounds_each / RANDOM_SHARE_MIN),
        };
        if sabotage.is_none() && random.kills > 0 && is_wanted(&random) {
            rows.push(random);
        }
    }
    rows
}

/// Where it counts how a message came in: until it is acknowledged, and when the daemon stops or has
/// stopped.
const INBOUND: [&str; 8] = [
    "received",
    "capture.",
    "edit.",
    "delete.",
    "merge.",
    "ack.",
    "catch-up.",
    "shutdown.",
];

/// The rows of a platform that calls: the points of inbound messages, then kills at any time. A broken
/// promise shows at its points, and not at every kill: it has all of the rounds.
fn called_rows(mode: Mode, rounds_each: usize, sabotage: Option<Sabotage>) -> Vec<Row> {
    let is_inbound = |name: &str| INBOUND.iter().any(|group| name.starts_with(group));
    let inbound = |way: &Way| matches!(way, Way::Point(point) if is_inbound(point));
    let is_shown = |way: &Way| sabotage.is_none_or(|promise| shows(promise, mode, *way));
    let ways = ways(mode).into_iter().filter(inbound).filter(is_shown);
    let ways: Vec<Way> = ways.collect();
    let row = |way, kills| Row {
        mode,
        is_called: true,
        way,
        kills,
    };
    let at_points = if sabotage.is_some() {
        rounds_each
    } else {
        rounds_each / 4
    };
    let kills = (at_points / ways.len().max(1)).max(1);
    let random = row(Way::Random, (rounds_each / RANDOM_SHARE_MIN).max(1));
    let at_points = ways.into_iter().map(|way| row(way, kills));
    at_points.chain([random]).collect()
}

fn ways(mode: Mode) -> Vec<Way> {
    if !crash::is_built_in() {
        return vec![Way::Unanswered];
    }
    let points = POINTS.into_iter().filter(|point| mode.has(point));
    let mut ways: Vec<Way> = points.map(Way::Point).collect();
    ways.extend([Way::Unanswered, Way::LeaseEnds]);
    ways
}

/// The rows in which a broken promise shows.
fn shows(promise: Sabotage, mode: Mode, way: Way) -> bool {
    match promise {
        Sabotage::AckBeforeCommit => way == Way::Point("ack.after") && mode != Mode::TelegramHold,
        Sabotage::NoDedupe => way == Way::Point("capture.after-commit"),
        Sabotage::NoReadback => mode == Mode::Slack && way == Way::Point("send.response-read"),
        Sabotage::NoLeaseToken => way == Way::LeaseEnds,
        Sabotage::ResendAlways => {
            mode != Mode::TelegramResend && way == Way::Point("send.response-read")
        }
        Sabotage::CommitAfterSend => {
            mode != Mode::TelegramResend && way == Way::Point("send.bytes-sent")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(transport: Option<CrashTransport>) -> CrashArgs {
        CrashArgs {
            rounds: 10,
            seed: 1,
            platform: None,
            transport,
            point: None,
            faults: false,
            sabotage: None,
            progress: false,
        }
    }

    #[test]
    fn platforms_that_call_have_rows_of_their_own_for_what_comes_in() {
        let called = rows(&args(Some(CrashTransport::Http)), None);
        assert!(called.iter().all(|row| row.is_called && row.kills > 0));
        let of = |platform: &str| {
            called
                .iter()
                .filter(|row| row.platform() == platform)
                .count()
        };
        assert!(of("slack, http") > 0 && of("telegram, webhook") > 0);
        assert!(called.iter().all(|row| !row.name().starts_with("send.")));
        let connects = rows(&args(Some(CrashTransport::Connect)), None);
        assert!(connects.iter().all(|row| !row.is_called));
        let sabotaged = args(Some(CrashTransport::Http));
        let shown = rows(&sabotaged, Some(Sabotage::NoDedupe));
        assert!(shown.iter().all(|row| row.is_called));
        assert_eq!(shown.is_empty(), !crash::is_built_in());
        let both = rows(&args(None), None);
        assert_eq!(both.len(), called.len() + connects.len());
        if crash::is_built_in() {
            let has = |point: &str| called.iter().filter(|row| row.name() == point).count();
            assert_eq!(has("capture.before-commit"), 2);
            assert_eq!(has("catch-up.before-commit"), 1);
        }
    }
}
