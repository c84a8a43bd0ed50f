//! Which kills, on which platform, in which order. Pure.

use vocative_contract::crash::{self, POINTS, Sabotage};

use crate::args::{CrashArgs, CrashPlatform, CrashTransport};

/// Kills of one scene at most: then everything is brought to its end and counted.
const KILLS_OF_SCENE_MAX: usize = 4;
/// As [`KILLS_OF_SCENE_MAX`], for random kills, under load.
const RANDOM_KILLS_OF_SCENE_MAX: usize = 8;

/// At least one kill in this number comes at a random time, however few rounds there are.
const RANDOM_SHARE_MIN: usize = 4;

/// A platform, and what its channel does about a post of unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// Slack, whose history can be searched for the post.
    Slack,
    /// Telegram, which is asked about single messages: `on_unknown = "look"`.
    TelegramLook,
    /// Telegram, `on_unknown = "resend"`.
    TelegramResend,
    /// Telegram, `on_unknown = "hold"`.
    TelegramHold,
}

impl Mode {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [
        Self::Slack,
        Self::TelegramLook,
        Self::TelegramResend,
        Self::TelegramHold,
    ];

    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::TelegramLook => "telegram, look",
            Self::TelegramResend => "telegram, resend",
            Self::TelegramHold => "telegram, hold",
        }
    }

    /// Whether it belongs to the platform that was asked for.
    pub(super) fn is_of(self, platform: Option<CrashPlatform>) -> bool {
        match platform {
            None => true,
            Some(CrashPlatform::Slack) => self == Self::Slack,
            Some(CrashPlatform::Telegram) => self != Self::Slack,
        }
    }

    /// Its name where the platform calls the daemon.
    fn called_name(self) -> &'static str {
        match self {
            Self::Slack => "slack, http",
            Self::TelegramLook => "telegram, webhook, look",
            Self::TelegramResend => "telegram, webhook",
            Self::TelegramHold => "telegram, webhook, hold",
        }
    }

    fn has(self, point: &str) -> bool {
        let is_of = |groups: &[&str]| groups.iter().any(|group| point.starts_with(group));
        match self {
            Self::Slack => true,
            // Posts can't be looked for or read back, and the platform reports neither the bot's own posts nor
            // deletions.
            Self::TelegramResend => !is_of(&["look.", "catch-up.", "echo.", "delete.", "upload."]),
            // Imports, erasures, firings, memory and networks end in the same places as in the mode above.
            Self::TelegramLook => {
                point.starts_with("look.")
                    || Self::TelegramResend.has(point)
                        && !is_of(&["import.", "erase.", "firing.", "memory."])
                        && !is_of(&NETWORK)
            }
            // This mode does not send a post of unknown outcome again. A held post can't be taken back, so no
            // placeholder is posted.
            Self::TelegramHold => {
                // A card that a person confirmed as posted has no id, so calls are made without consent here.
                let none = [
                    "import.",
                    "erase.",
                    "memory.",
                    "placeholder.",
                    "final.",
                    "approval.",
                    "park.",
                    "press.",
                    "change.",
                    "input.",
                ];
                Self::TelegramResend.has(point) && !is_of(&none) && !is_of(&NETWORK)
            }
        }
    }
}

/// How the daemon is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeathWay {
    /// It kills itself at this point.
    Point(&'static str),
    /// It is killed once a post is in its room whose request was not answered.
    Unanswered,
    /// It is killed at a random time.
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
    /// Schedules are due.
    Firing,
    /// The room is read for memory.
    Learning,
    /// Several agents answer.
    Network,
}

/// How a daemon and its platform connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlatformLink {
    /// The daemon connects.
    Connects,
    /// The platform calls it.
    Called,
    /// It connects, and its answers grow in their threads by Slack's own streaming.
    Streams,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlanRow {
    pub(super) mode: Mode,
    pub(super) link: PlatformLink,
    pub(super) way: DeathWay,
    /// How often.
    pub(super) kills: usize,
}

impl PlanRow {
    /// Its platform as the table names it.
    pub(super) fn platform(&self) -> &'static str {
        match self.link {
            PlatformLink::Connects => self.mode.name(),
            PlatformLink::Called => self.mode.called_name(),
            PlatformLink::Streams => "slack, streams",
        }
    }

    /// Whether Telegram's server lags behind its rooms: it learns of the bot's posts only with the next message in the
    /// room, and until then reports no such message.
    pub(super) fn lags(&self) -> bool {
        self.mode == Mode::TelegramLook && self.way == DeathWay::Point("send.response-read")
    }

    /// Its name in the table.
    pub(super) fn name(&self) -> &'static str {
        match self.way {
            DeathWay::Point(point) => point,
            DeathWay::Unanswered => "send.unanswered",
            DeathWay::Random => "random",
            DeathWay::LeaseEnds => "lease ends",
        }
    }

    /// How many kills a scene of it has.
    pub(super) fn kills_of_scene_max(&self) -> usize {
        match self.way {
            DeathWay::Random => RANDOM_KILLS_OF_SCENE_MAX,
            _ if self.play() != Play::Rooms => 1,
            // The messages before the next kill tell the server of the earlier posts.
            _ if self.lags() => 1,
            _ => KILLS_OF_SCENE_MAX,
        }
    }

    /// What happens in its scenes.
    pub(super) fn play(&self) -> Play {
        let name = self.name();
        match name.split_once('.') {
            Some(("import", _)) => Play::Import,
            Some(("erase", _)) => Play::Erasure,
            Some(("firing", _)) => Play::Firing,
            Some(("memory", _)) => Play::Learning,
            Some(("decision" | "member" | "task", _)) => Play::Network,
            _ => Play::Rooms,
        }
    }

    /// Whether the kill may come when bytes have left and their outcome is not on disk.
    pub(super) fn is_in_window(&self) -> bool {
        match self.way {
            DeathWay::Point(point) => matches!(
                point,
                "send.started"
                    | "send.bytes-sent"
                    | "send.response-read"
                    | "delivery.before-commit"
            ),
            DeathWay::Unanswered | DeathWay::Random => true,
            DeathWay::LeaseEnds => false,
        }
    }

    /// Whether people see answers while they are written.
    pub(super) fn is_live(&self) -> bool {
        let name = self.name();
        let is_point = ["placeholder.", "live.", "final."]
            .iter()
            .any(|group| name.starts_with(group));
        let is_any = matches!(self.way, DeathWay::Unanswered | DeathWay::Random);
        is_point || is_any || self.link == PlatformLink::Streams
    }

    /// Whether Slack sends the bot's own posts as events; not where only a look must find them.
    pub(super) fn is_echoed(&self) -> bool {
        !(self.is_in_window() || self.name().starts_with("look."))
    }
}

/// The rows of a run: every point once or more, then random kills with what is left of the rounds.
pub(super) fn rows(args: &CrashArgs, sabotage: Option<Sabotage>) -> Vec<PlanRow> {
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
    let is_wanted = |row: &PlanRow| {
        args.point.as_deref().is_none_or(|it| row.name() == it)
            && sabotage.is_none_or(|promise| shows(promise, row.mode, row.way))
    };
    if is_called {
        let called = modes
            .iter()
            .flat_map(|mode| called_rows(*mode, rounds_each, sabotage));
        rows.extend(called.filter(is_wanted));
    }
    if args.transport == Some(CrashTransport::Http) {
        return rows;
    }
    if modes.contains(&Mode::Slack) && sabotage.is_none() {
        rows.extend(streamed_rows(rounds_each).into_iter().filter(is_wanted));
    }
    for mode in modes {
        let ways: Vec<DeathWay> = ways(mode)
            .into_iter()
            .filter(|way| sabotage.is_none_or(|promise| shows(promise, mode, *way)))
            .collect();
        let is_wanted = |row: &PlanRow| {
            args.point
                .as_deref()
                .is_none_or(|point| row.name() == point)
        };
        // Half of the kills come at random times, except with a broken promise, which shows at its points.
        let at_points = if sabotage.is_some() {
            rounds_each
        } else {
            rounds_each / 2
        };
        let kills = (at_points / ways.len().max(1)).max(1);
        let at_points = ways.into_iter().map(|way| PlanRow {
            mode,
            link: PlatformLink::Connects,
            way,
            kills,
        });
        rows.extend(at_points.filter(is_wanted));
        let so_far: usize = rows
            .iter()
            .filter(|row| row.mode == mode && row.link == PlatformLink::Connects)
            .map(|row| row.kills)
            .sum();
        let random = PlanRow {
            mode,
            link: PlatformLink::Connects,
            way: DeathWay::Random,
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

/// Points that several agents pass; they do not depend on the platform.
const NETWORK: [&str; 3] = ["decision.", "member.", "task."];

/// Points that depend on how a message came in: until it is acknowledged, and when the daemon stops or has stopped.
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

/// The rows of a platform that calls: the points of inbound messages, then kills at any time. A broken promise shows at
/// its points, and not at every kill, so it gets all of the rounds.
fn called_rows(mode: Mode, rounds_each: usize, sabotage: Option<Sabotage>) -> Vec<PlanRow> {
    let is_inbound = |name: &str| INBOUND.iter().any(|group| name.starts_with(group));
    let inbound = |way: &DeathWay| matches!(way, DeathWay::Point(point) if is_inbound(point));
    let is_shown = |way: &DeathWay| sabotage.is_none_or(|promise| shows(promise, mode, *way));
    let ways = ways(mode).into_iter().filter(inbound).filter(is_shown);
    let ways: Vec<DeathWay> = ways.collect();
    let row = |way, kills| PlanRow {
        mode,
        link: PlatformLink::Called,
        way,
        kills,
    };
    let at_points = if sabotage.is_some() {
        rounds_each
    } else {
        rounds_each / 4
    };
    let kills = (at_points / ways.len().max(1)).max(1);
    let random = row(DeathWay::Random, (rounds_each / RANDOM_SHARE_MIN).max(1));
    let at_points = ways.into_iter().map(|way| row(way, kills));
    at_points.chain([random]).collect()
}

/// Points that depend on how an answer grows: from its first word to its last, and when it is looked for.
const GROWING: [&str; 6] = [
    "placeholder.",
    "live.",
    "send.",
    "final.",
    "delivery.",
    "look.",
];

/// The rows of Slack's own streaming.
fn streamed_rows(rounds_each: usize) -> Vec<PlanRow> {
    let is_growing = |name: &str| GROWING.iter().any(|group| name.starts_with(group));
    let of_streams = |way: &DeathWay| match way {
        DeathWay::Point(point) => is_growing(point),
        DeathWay::Unanswered | DeathWay::Random => true,
        DeathWay::LeaseEnds => false,
    };
    let row = |way, kills| PlanRow {
        mode: Mode::Slack,
        link: PlatformLink::Streams,
        way,
        kills,
    };
    let random = row(DeathWay::Random, (rounds_each / 8).max(1));
    let at_points = ways(Mode::Slack).into_iter().filter(of_streams);
    let at_points = at_points.map(|way| row(way, (rounds_each / 100).max(1)));
    at_points.chain([random]).collect()
}

fn ways(mode: Mode) -> Vec<DeathWay> {
    if !crash::is_built_in() {
        return vec![DeathWay::Unanswered];
    }
    let points = POINTS.into_iter().filter(|point| mode.has(point));
    let mut ways: Vec<DeathWay> = points.map(DeathWay::Point).collect();
    ways.extend([DeathWay::Unanswered, DeathWay::LeaseEnds]);
    ways
}

/// The rows in which a broken promise shows.
fn shows(promise: Sabotage, mode: Mode, way: DeathWay) -> bool {
    match promise {
        Sabotage::AckBeforeCommit => {
            let is_one = matches!(mode, Mode::Slack | Mode::TelegramResend);
            way == DeathWay::Point("ack.after") && is_one
        }
        Sabotage::NoDedupe => way == DeathWay::Point("capture.after-commit"),
        Sabotage::NoReadback => mode == Mode::Slack && way == DeathWay::Point("send.response-read"),
        Sabotage::NoLeaseToken => way == DeathWay::LeaseEnds,
        Sabotage::ResendAlways => {
            mode != Mode::TelegramResend && way == DeathWay::Point("send.response-read")
        }
        Sabotage::CommitAfterSend => {
            mode != Mode::TelegramResend && way == DeathWay::Point("send.bytes-sent")
        }
        Sabotage::LeavePlaceholder => {
            mode == Mode::Slack && way == DeathWay::Point("placeholder.after-commit")
        }
        Sabotage::EmptyIsProof => {
            mode == Mode::TelegramLook && way == DeathWay::Point("send.response-read")
        }
        Sabotage::RepeatCalls => way == DeathWay::Point("tool.answered"),
        Sabotage::ReclaimOwn => false,
        // The loopback platform can't show these: it makes every edit at once, a question that is edited there may have
        // no answer yet, what a prompt reads is not visible in a room, and its clock is the daemon's.
        Sabotage::NoSettling
        | Sabotage::NoReplacement
        | Sabotage::NoFreshStart
        | Sabotage::OwnClock => false,
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
            piece: None,
            share: None,
            progress: false,
        }
    }

    #[test]
    fn platforms_that_call_have_rows_of_their_own_for_what_comes_in() {
        let called = rows(&args(Some(CrashTransport::Http)), None);
        let is_called = |row: &PlanRow| row.link == PlatformLink::Called;
        assert!(called.iter().all(|row| is_called(row) && row.kills > 0));
        let of = |platform: &str| {
            called
                .iter()
                .filter(|row| row.platform() == platform)
                .count()
        };
        for platform in [
            "slack, http",
            "telegram, webhook",
            "telegram, webhook, look",
            "telegram, webhook, hold",
        ] {
            assert!(of(platform) > 0, "{platform}");
        }
        assert!(called.iter().all(|row| !row.name().starts_with("send.")));
        let connects = rows(&args(Some(CrashTransport::Connect)), None);
        assert!(!connects.iter().any(is_called));
        let sabotaged = args(Some(CrashTransport::Http));
        let shown = rows(&sabotaged, Some(Sabotage::NoDedupe));
        assert!(shown.iter().all(is_called));
        assert_eq!(shown.is_empty(), !crash::is_built_in());
        let both = rows(&args(None), None);
        assert_eq!(both.len(), called.len() + connects.len());
        if crash::is_built_in() {
            let has = |point: &str| called.iter().filter(|row| row.name() == point).count();
            assert_eq!(has("capture.before-commit"), 4);
            assert_eq!(has("catch-up.before-commit"), 1);
        }
    }

    #[test]
    fn answers_that_grow_by_slacks_streaming_have_rows_of_their_own() {
        let all = rows(&args(None), None);
        let streams = all.iter().filter(|row| row.link == PlatformLink::Streams);
        let streams: Vec<&PlanRow> = streams.collect();
        let ways: Vec<&str> = streams.iter().map(|row| row.name()).collect();
        assert!(
            ways.contains(&"random") && ways.contains(&"send.unanswered"),
            "{ways:?}"
        );
        assert!(
            streams
                .iter()
                .all(|row| row.is_live() && row.mode == Mode::Slack)
        );
        assert_eq!(crash::is_built_in(), ways.contains(&"live.after"));
        let broken = rows(&args(None), Some(Sabotage::NoReadback));
        assert!(broken.iter().all(|row| row.link == PlatformLink::Connects));
    }
}
