//! What several agents cost beside their models: the time between two agent calls of a network, what a run of eight
//! writes, the memory of a hundred at once, and agents that ask agents. The models are scripted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vocative_core::ids::AgentName;
use vocative_core::place::Scope;
use vocative_core::routing::state::{StateSchema, StateValues};
use vocative_core::routing::{
    self, AnswerFrom, Facts, LastCall, Network, RoutingRule, RuleAction, RuleTerm, TextTest, When,
    decide,
};
use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::{WireKind, WireLog, WirePeer};

use crate::Fail;
use crate::stage::{self, BenchStage, WireRecords, telegram_person, telegram_room};
use crate::stats::{Sample, ms};

/// Turns that stand in the room before the question.
const HISTORIES: [usize; 3] = [10, 100, 1_000];
/// Decisions that are timed by themselves.
const DECISIONS: usize = 1_000;
/// Agent calls of one question.
const CALLS: usize = 8;
/// Questions of each kind.
const QUESTIONS: usize = 10;
/// Networks at once.
const AT_ONCE: usize = 100;
/// Agents that are asked by one.
const CHILDREN: usize = 4;
/// In how many pieces an answer comes, and at which pace: half a second.
const PIECES: usize = 10;
const BETWEEN_PIECES: Duration = Duration::from_millis(50);
/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two questions: a group takes a post every three seconds, and none is to wait for that.
const PAUSE: Duration = Duration::from_millis(3_100);
/// The words by which the model knows who is asked: the first agent, those that it asks, and those that they ask.
const LEVELS: [&str; 3] = ["at the top", "in the middle", "at the bottom"];

/// All of it.
pub(crate) async fn measure() -> Result<(), Fail> {
    decisions()?;
    at_once().await?;
    delegated().await?;
    for turns in HISTORIES {
        let rules = format!("call = {:?}\n", ["look"; CALLS]);
        between_calls(turns, "by rules", &rules).await?;
    }
    for turns in HISTORIES {
        let rules = format!("ask_router = true\nat_most = {CALLS}\n");
        between_calls(turns, "by a routing agent", &rules).await?;
    }
    Ok(())
}

/// How long the rules themselves take: as many as a network may have, none of which matches, behind a short answer and
/// behind one of which as much is looked at as ever is.
fn decisions() -> Result<(), Fail> {
    let name = AgentName::trusted;
    let pattern = || TextTest::pattern("(?i)\\b(refund|invoice)s? of \\w+ marks\\b");
    let never = |_: usize| -> Result<RoutingRule, Fail> {
        let said = TextTest {
            matches: Some(pattern()?),
            ..TextTest::default()
        };
        Ok(RoutingRule {
            when: When {
                terms: vec![
                    RuleTerm::LastAgent(vec![name("look")]),
                    RuleTerm::LastText(said),
                ],
                not: Vec::new(),
            },
            set: Vec::new(),
            action: RuleAction::Call(vec![name("look")]),
            at_most: 1,
        })
    };
    let network = Network {
        name: name("support"),
        members: vec![name("look")],
        default_agent: name("look"),
        max_calls: routing::CALLS_MAX,
        answer_from: AnswerFrom::Last,
        silent: BTreeSet::new(),
        rules: (0..routing::RULES_MAX)
            .map(never)
            .collect::<Result<_, _>>()?,
        state: StateSchema::default(),
        persist: false,
        reads: BTreeMap::new(),
        writes: BTreeMap::new(),
    };
    let texts = [
        "It is paid.".to_owned(),
        "m".repeat(routing::SUBJECT_MAX_BYTES),
    ];
    let (look, disabled, state) = (name("look"), BTreeSet::new(), StateValues::default());
    for text in texts {
        let mut sample = Sample::default();
        for _ in 0..DECISIONS {
            let started = Instant::now();
            let decided = decide(&network, &facts(&look, &text, &disabled, &state));
            sample.push(started.elapsed());
            if decided.rule.is_some() {
                return Err("a rule matched that can't".into());
            }
        }
        println!(
            "networks: a decision by {} rules behind an answer of {} bytes p50 {:.0} us, p99 {:.0} us, n = {DECISIONS}",
            network.rules.len(),
            text.len(),
            sample.median().as_secs_f64() * 1e6,
            sample.percentile(99).as_secs_f64() * 1e6,
        );
    }
    Ok(())
}

/// What is known behind the first agent call, which said this.
fn facts<'a>(
    agent: &'a AgentName,
    text: &'a str,
    disabled: &'a BTreeSet<AgentName>,
    state: &'a StateValues,
) -> Facts<'a> {
    Facts {
        calls: 1,
        last: Some(LastCall {
            agent,
            text,
            tools: &[],
            has_failed: false,
        }),
        stack: &[],
        state,
        used: &[],
        disabled,
        is_circling: false,
        alias: None,
        scope: Scope::Channel,
        chat: "acme/C0GENERAL",
        senders: &[],
        has_files: false,
        text: "a question",
    }
}

/// A network whose rules are one, as TOML; its agent is alone in it.
fn network(rule: &str) -> String {
    format!(
        "\n[agents.look]\nchannels = []\ntools = []\n[networks.vocative]\nagents = [\"look\"]\nmax_calls = {CALLS}\n\
         descriptions = {{ look = \"Looks.\" }}\n[[networks.vocative.rules]]\n{rule}"
    )
}

/// The times between an answer of a model and the next request: what the daemon adds.
struct Gaps {
    is_routed: bool,
    /// Behind a routing agent's answers.
    decisions: Sample,
    /// Behind agents' answers.
    calls: Sample,
}

impl Gaps {
    fn of(is_routed: bool) -> Self {
        Self {
            is_routed,
            decisions: Sample::default(),
            calls: Sample::default(),
        }
    }

    /// Behind the n-th answer of a question, from 1; a routing agent gives every other one.
    fn push(&mut self, n: usize, took: Duration) {
        match self.is_routed && n % 2 == 1 {
            true => self.decisions.push(took),
            false => self.calls.push(took),
        }
    }

    fn named(&self) -> Vec<(&'static str, &Sample)> {
        match self.is_routed {
            true => vec![
                ("a decision, to the agent's request", &self.decisions),
                ("an agent call, to the routing agent's request", &self.calls),
            ],
            false => vec![("an agent call with its decision", &self.calls)],
        }
    }
}

/// The time between an answer of a model and the next request, behind this number of turns of history.
async fn between_calls(turns: usize, what: &str, rule: &str) -> Result<(), Fail> {
    let stage = BenchStage::build_scripted(1, 1, "live = \"off\"").await?;
    stage.answer_by(&network(rule))?;
    let daemon = stage.spawn_connected().await?;
    let room = telegram_room(0);
    for turn in 0..turns {
        stage
            .telegram
            .say(room, TelegramWorld::ANN, &format!("turn {turn} of many"));
    }
    let until = Instant::now() + PATIENCE;
    while stage.people_turns().unwrap_or(0) < i64::try_from(turns)? {
        if Instant::now() > until {
            return Err("the history was not captured in time".into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let is_routed = rule.contains("ask_router");
    let mut gaps = Gaps::of(is_routed);
    let (mut wholes, mut written) = (Sample::default(), Vec::new());
    let log = stage.folder().join("data/vocative.db-wal");
    for question in 0..QUESTIONS {
        script(&stage, is_routed);
        let before = commits(&log);
        let mut wire = stage.wire();
        let started = Instant::now();
        let text = format!("@vocative_bot question {question}");
        stage.telegram.say(room, TelegramWorld::ANN, &text);
        let posted = gaps_until_post(&mut wire, room, &mut gaps).await?;
        wholes.push(posted - started);
        tokio::time::sleep(PAUSE).await;
        let after = commits(&log);
        // A log that was begun again in between says nothing.
        written.extend((after.0 >= before.0).then(|| (after.0 - before.0, after.1 - before.1)));
    }
    for (gap, sample) in gaps.named() {
        println!(
            "networks, {turns} turns of history, decided {what}: {gap} p50 {}, p99 {}, n = {}",
            ms(sample.median()),
            ms(sample.percentile(99)),
            sample.len(),
        );
    }
    println!(
        "networks, {turns} turns of history, decided {what}: a question of {CALLS} agent calls p50 {}",
        ms(wholes.median())
    );
    written.sort_unstable();
    if let Some((commits, bytes)) = written.get(written.len() / 2) {
        println!(
            "networks, {turns} turns of history, decided {what}: such a question has {commits} commits of {} KiB",
            bytes / 1024
        );
    }
    daemon.stop().await
}

/// What the agents say, each something else, and the routing agent in between.
fn script(stage: &BenchStage, is_routed: bool) {
    let model = stage.model();
    for call in 0..CALLS {
        if is_routed {
            let pick = json!({"agent": "look", "done": false, "reason": "it is next"});
            model.enqueue(ModelReply::text(&pick.to_string()));
        }
        model.enqueue(ModelReply::text(&format!("What call {call} found.")));
    }
}

/// Collects the times from each answer of a model to the next request until the bot posts into the room.
async fn gaps_until_post(
    wire: &mut WireRecords,
    room: i64,
    gaps: &mut Gaps,
) -> Result<Instant, Fail> {
    let mut answered: Option<Instant> = None;
    let mut answers = 0;
    loop {
        let (record, at) = stage::next(wire).await?;
        match (record.peer, record.kind) {
            (WirePeer::Model, WireKind::Response) => {
                answered = Some(at);
                answers += 1;
            }
            (WirePeer::Model, WireKind::Request) => {
                if let Some(answered) = answered.take() {
                    gaps.push(answers, at - answered);
                }
            }
            (WirePeer::Telegram, WireKind::Request) if record.name == "sendMessage" => {
                let chat = record.body["chat_id"].to_string();
                if chat.trim_matches('"') == room.to_string() {
                    return Ok(at);
                }
            }
            _ => {}
        }
    }
}

/// Commits in a write-ahead log since it was begun, and their bytes. Source: <https://sqlite.org/fileformat2.html>,
/// 4.1.
fn commits(log: &Path) -> (u64, u64) {
    const HEADER: usize = 32;
    const FRAME_HEADER: usize = 24;
    let bytes = std::fs::read(log).unwrap_or_default();
    let word = |at: usize| {
        let word = bytes.get(at..at + 4).and_then(|it| it.try_into().ok());
        word.map_or(0, u32::from_be_bytes)
    };
    let frame = FRAME_HEADER + usize::try_from(word(8)).unwrap_or(0);
    let is_of_this_log = |at: &usize| word(at + 8) == word(16) && word(at + 12) == word(20);
    let frames = (HEADER..bytes.len().saturating_sub(frame - 1)).step_by(frame);
    let (mut commits, mut written) = (0, 0);
    for (n, at) in frames.take_while(is_of_this_log).enumerate() {
        if word(at + 4) > 0 {
            commits += 1;
            written = (n as u64 + 1) * frame as u64;
        }
    }
    (commits, written)
}

/// Memory with [`AT_ONCE`] networks in the middle of their work.
async fn at_once() -> Result<(), Fail> {
    let stage = BenchStage::build_scripted(AT_ONCE, 0, "live = \"off\"").await?;
    stage.answer_by(&network(&format!("call = {:?}\n", ["look"; CALLS])))?;
    stage.work_side_by_side(AT_ONCE)?;
    let daemon = stage.spawn_connected().await?;
    let before_kib = daemon.status("VmRSS")?;
    for answer in 0..AT_ONCE * CALLS {
        let text = format!("What answer {answer} found.");
        stage.model().enqueue(ModelReply::text(&text));
    }
    stage.model().hold();
    let started = Instant::now();
    for person in (0..AT_ONCE).map(telegram_person) {
        stage.telegram.say(person, person, "a question");
    }
    asked(&stage, AT_ONCE).await?;
    let during_kib = daemon.status("VmRSS")?;
    stage.model().release();
    asked(&stage, AT_ONCE * CALLS).await?;
    let took = started.elapsed();
    println!(
        "networks: {AT_ONCE} at once, {CALLS} agent calls each: resident memory {:.1} MiB, before {:.1} MiB, most {:.1} MiB; \
         the last agent is asked after {}",
        mib(during_kib),
        mib(before_kib),
        mib(daemon.status("VmHWM")?),
        ms(took)
    );
    daemon.stop().await
}

async fn asked(stage: &BenchStage, times: usize) -> Result<(), Fail> {
    match stage.model().wait_for_requests(times, PATIENCE).await {
        true => Ok(()),
        false => Err(format!("the model was not asked {times} times in time").into()),
    }
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// How long a question takes for which an agent asks four others, each of which asks another one; and one of each.
async fn delegated() -> Result<(), Fail> {
    let one = wall_time(1).await?;
    let four = wall_time(CHILDREN).await?;
    println!(
        "networks: delegation of depth 2 takes {} with {CHILDREN} children, two at once, and {} with one; each answer of a \
         model takes {}",
        ms(four),
        ms(one),
        ms(BETWEEN_PIECES * u32::try_from(PIECES)?)
    );
    Ok(())
}

async fn wall_time(children: usize) -> Result<Duration, Fail> {
    let stage = BenchStage::build_scripted(1, 0, "live = \"off\"").await?;
    let [top, middle, bottom] = LEVELS;
    // The server of a model calls tools by one word, so who asks further has a server of its own.
    let between = ModelServer::start(([127, 0, 0, 1], 0).into(), WireLog::new()).await?;
    stage.configure_agent("tools = []\ndelegates = [\"middle\"]")?;
    stage.configure(&format!(
        "\n[models.between]\nprovider = \"openai\"\nmodel = \"loopback-small\"\nbase_url = \"{}\"\n\
         api_key = \"env:BENCH_MODEL\"\n\
         [agents.middle]\nmodel = \"between\"\nchannels = []\ntools = []\ndelegates = [\"bottom\"]\n\
         [agents.bottom]\nchannels = []\ntools = []\n",
        between.openai_url()
    ))?;
    stage.work_side_by_side(2 * CHILDREN)?;
    let task = |agent: &str, what: String| ("ask_agent", json!({"agent": agent, "task": what}));
    let to_middle: Vec<(&str, Value)> = (0..children)
        .map(|n| task("middle", format!("{middle}, number {n}")))
        .collect();
    let model = stage.model();
    for server in [model, &between] {
        server.pace_all(PIECES, BETWEEN_PIECES);
    }
    between.call_tools(middle, &[task("bottom", bottom.to_owned())]);
    model.call_tools(top, &to_middle);
    let daemon = stage.spawn_connected().await?;
    let person = telegram_person(0);
    let mut wire = stage.wire();
    let started = Instant::now();
    stage.telegram.say(person, person, top);
    let posted = stage::posted(&mut wire, WirePeer::Telegram, &person.to_string()).await?;
    daemon.stop().await?;
    between.stop().await;
    Ok(posted - started)
}
