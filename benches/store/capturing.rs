//! Capture through the intake, beside the plain loop.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, TryStreamExt};
use vocative::capture::inbound::{ChannelIntake, Keeping};
use vocative::capture::wake::Wake;
use vocative::counters::Counters;
use vocative_contract::channel::Intake as _;
use vocative_contract::envelope::{
    ChatKind, Envelope, Event, InboundMessage, Place, Sender, SenderKind,
};
use vocative_contract::identity::{Identity, Platform};
use vocative_core::addressing::Overlap;
use vocative_core::ids::{AccountId, AgentName};
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::judging::policy::{AgentPolicy, AllowList, ChannelPolicy, Limits};
use vocative_core::manners::Manners;
use vocative_core::prompting::{ClassEstimate, TokenCounter as _};
use vocative_core::turn::TokenCount;

use crate::Fail;
use crate::bare::{Bare, BareRoom, Concerns};
use crate::place::{self, bytes_of, open};
use crate::sample::middle;
use crate::texts::line;

const ROOMS: i64 = 20;
const PEOPLE: i64 = 50;
const ROUNDS: i64 = 5;
/// Messages of one round by how many are pending: about a second each.
const PENDING: [(usize, i64); 3] = [(1, 3_000), (32, 10_000), (512, 20_000)];
/// In how many steps the growth is told.
const STEPS: i64 = 10;

/// The ratios at 1, 32 and 512 pending, in turns with the plain loop.
pub(crate) async fn measure() -> Result<(), Fail> {
    let folder = place::BenchFolder::make("capture")?;
    for (pending, count) in PENDING {
        let ours = folder.path(&format!("ours-{pending}.db"));
        let (store, account) = open(&ours).await?;
        let intake = intake(store.only(), account);
        let full = bare(&folder.path(&format!("full-{pending}.db")), true).await?;
        let plain = bare(&folder.path(&format!("plain-{pending}.db")), false).await?;
        let group = i64::try_from(pending)?;
        let (mut rates, mut to_full, mut to_plain) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let lines = round * count..(round + 1) * count;
            let ours = rate(count, take_in(&intake, lines.clone(), pending).await?);
            let full = rate(
                count,
                timed(|| full.0.fill(&full.1, lines.clone(), group, Concerns::Nobody))?,
            );
            let plain = rate(
                count,
                timed(|| {
                    plain
                        .0
                        .fill(&plain.1, lines.clone(), group, Concerns::Nobody)
                })?,
            );
            rates.push(ours);
            to_full.push(ours / full);
            to_plain.push(ours / plain);
        }
        println!(
            "capture, {pending} pending: {} turns/s; ratio to the plain loop {}, without full text {} (n = {ROUNDS})",
            middle(rates),
            middle(to_full),
            middle(to_plain),
        );
        store.close().await?;
    }
    Ok(())
}

/// From an empty store to `turns`: rate, bytes and memory on the way.
pub(crate) async fn measure_growth(turns: i64) -> Result<(), Fail> {
    let folder = place::BenchFolder::make("growth")?;
    let path = folder.path("grown.db");
    let (store, account) = open(&path).await?;
    let intake = intake(store.only(), account);
    let idle = resident_kib()?;
    let step = (turns / STEPS).max(1);
    for n in 0..STEPS {
        let written = written_bytes()?;
        let lines = n * step..(n + 1) * step;
        let rate = rate(step, take_in(&intake, lines, 512).await?);
        println!(
            "growth: {} turns: {rate:.0} turns/s, {:.0} bytes written per turn, {:.0} bytes of database per turn, {:.1} MiB resident ({:.1} before the first)",
            (n + 1) * step,
            ratio(written_bytes()? - written, step),
            ratio(bytes_of(&path), (n + 1) * step),
            mib(resident_kib()?),
            mib(idle),
        );
    }
    store.close().await?;
    println!(
        "growth: closed: {:.0} bytes of database per turn",
        ratio(bytes_of(&path), step * STEPS)
    );
    Ok(())
}

async fn bare(path: &Path, has_full_text: bool) -> Result<(Bare, Vec<BareRoom>), Fail> {
    let (store, account) = open(path).await?;
    store.close().await?;
    drop(store);
    let bare = Bare::open(path, account, has_full_text)?;
    let rooms: Result<Vec<_>, Fail> = (0..ROOMS).map(|n| bare.room(&format!("C{n}"))).collect();
    Ok((bare, rooms?))
}

/// Sends lines through the intake, `pending` at once; the seconds until the last is durable.
async fn take_in(
    intake: &ChannelIntake,
    lines: std::ops::Range<i64>,
    pending: usize,
) -> Result<f64, Fail> {
    let started = Instant::now();
    stream::iter(lines.map(|n| Ok(envelope(n))))
        .try_for_each_concurrent(pending, |envelope| async move {
            intake.accept(envelope).await.map(drop)
        })
        .await?;
    Ok(started.elapsed().as_secs_f64())
}

fn intake(
    store: vocative_store::Store<vocative_store::Capturing>,
    account: AccountId,
) -> ChannelIntake {
    let keeping = Keeping {
        keeps_revisions: true,
        keeps_raw: false,
    };
    let counter = |text: &str| TokenCount {
        tokens: ClassEstimate.count(text),
        counter: ClassEstimate.name().to_owned(),
    };
    ChannelIntake::new(
        store,
        policy(account),
        keeping,
        Arc::new(counter),
        Wake::default(),
        Arc::new(Counters::default()),
    )
}

fn policy(account: AccountId) -> ChannelPolicy {
    let agent = AgentName::trusted("steady");
    ChannelPolicy {
        channel: "acme".to_owned(),
        account,
        identity: Identity {
            platform: Platform::Slack,
            account: "T1".to_owned(),
            account_name: "Acme".to_owned(),
            user_id: "UBOT".to_owned(),
            other_ids: Vec::new(),
            username: None,
            display_name: "Steady".to_owned(),
            warnings: Vec::new(),
            organisation: None,
        },
        agents: vec![AgentPolicy {
            name: agent.clone(),
            display_name: "Steady".to_owned(),
            aliases: vec!["steady".to_owned()],
            presence: Default::default(),
            models: Vec::new(),
            overlap: Overlap::Auto,
        }],
        default_agent: agent,
        allow_chats: AllowList::new(vec!["*".to_owned()]),
        allow_people: AllowList::default(),
        admins: Vec::new(),
        has_pairing: false,
        paired: Default::default(),
        serves_strangers: false,
        serves_guests: true,
        allow_bots: AllowList::default(),
        thread_policy: ThreadPolicy::Participating,
        answers_in_threads: true,
        commands: Vec::new(),
        chat_overlaps: BTreeMap::new(),
        manners: Manners::default(),
        has_agent_view: false,
        tells_privately: true,
        has_mentioned_commands: true,
        limits: Limits::default(),
    }
}

fn envelope(n: i64) -> Envelope {
    let message_id = format!("{}.000100", 1_700_000_000 + n);
    let at_ms = n * 1_000;
    Envelope {
        channel: "acme".to_owned(),
        platform: Platform::Slack,
        account: "T1".to_owned(),
        delivery_id: n.to_string(),
        received_at_ms: at_ms,
        event: Event::Posted(InboundMessage {
            place: Place {
                chat: format!("C{}", n % ROOMS),
                kind: Some(ChatKind::Public),
                ..Place::default()
            },
            message_id,
            sender: Sender {
                id: format!("U{}", n % PEOPLE),
                display_name: None,
                username: None,
                kind: SenderKind::Person,
                is_stranger: false,
            },
            text: line(n),
            mentions: Vec::new(),
            mentions_bot: false,
            command: None,
            reply_to: None,
            attachments: Vec::new(),
            album: None,
            sent_at_ms: at_ms,
            ordinal: 0,
            edit_marker: None,
        }),
        numbered: None,
        raw: String::new(),
    }
}

fn timed(work: impl FnOnce() -> Result<(), Fail>) -> Result<f64, Fail> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed().as_secs_f64())
}

fn rate(count: i64, seconds: f64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / seconds
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn ratio(bytes: u64, turns: i64) -> f64 {
    bytes as f64 / turns as f64
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1_024.0
}

fn resident_kib() -> Result<u64, Fail> {
    number_after("/proc/self/status", "VmRSS:")
}

/// Bytes this process had written to disk by the kernel.
fn written_bytes() -> Result<u64, Fail> {
    number_after("/proc/self/io", "wchar:")
}

fn number_after(file: &str, name: &str) -> Result<u64, Fail> {
    let text = std::fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    Ok(word
        .ok_or_else(|| format!("no {name} in {file}"))?
        .parse()?)
}
