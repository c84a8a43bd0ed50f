//! Networks of random rules that answer in the place of a single agent: their agents set values, give each other tasks,
//! fail for good, and a routing agent names agents that exist and agents that don't.
//!
//! A network has one of [`SHAPES`] shapes, each made from its number. All of them answer every question, so the verdict
//! on answers is that of any world; what is judged here is which agents are asked: only those decided on, none again
//! once its call is committed, and no more than `check` prints.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::model::said;
use super::verdict::SimTally;
use super::world::World;
use crate::dice::SeededDice;
use vocative::agent::registry::AgentSpec;
use vocative::llm::{Answer, ModelError, Request, ToolCall, ToolChoice};
use vocative_core::ids::AgentName;
use vocative_core::routing::bounds::{WorstCost, worst_cost};
use vocative_core::routing::{AnswerFrom, CallOutcome, Course, Network};

/// The number of network shapes: more than worlds are ever played.
pub(super) const SHAPES: u64 = 1 << 32;
/// The agents of each network.
const AGENTS: [&str; 4] = ["sort", "look", "pen", "desk"];
/// The most rules after the first.
const RULES_MAX: u64 = 5;
/// Answers with calls in an agent call before the model answers in words.
const EXCHANGES_MAX: usize = 2;
/// Of a thousand agent calls whose failure does not end the answer, how many fail for good.
const FAILS_PER_MILLE: u64 = 80;
/// What a task says: no word that a question or an answer has.
const TASK: &str = "TASK";
/// The answer of an agent to its task.
const RESULT: &str = "This is what there is to it.";
/// The answer of an agent whose words must not be posted.
const UNHEARD: &str = "Nobody is to read this.";

/// The role of the caller of the simulated model.
#[derive(Clone)]
pub(super) enum ModelRole {
    /// The one agent of a world without networks.
    Alone,
    /// An agent of a network.
    Member(AgentName, Arc<Team>),
    /// Its routing agent.
    Router(Arc<Team>),
}

/// A network with the agents that its agents may give tasks.
pub(super) struct Team {
    network: Network,
    worst: WorstCost,
    /// The agents that each agent may give tasks.
    delegates: BTreeMap<AgentName, Vec<AgentName>>,
}

/// What a world's network did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NetworkCalls {
    /// Requests of agents.
    pub(super) asked: usize,
    /// Requests of routing agents.
    pub(super) routed: usize,
    /// Tasks that were given.
    pub(super) tasks: usize,
    /// Calls that set values, taken or not.
    pub(super) sets: usize,
    /// Agent calls that failed for good.
    pub(super) failed: usize,
    /// Tasks whose agent failed for good: their runs are given up, and the asking agent is told.
    pub(super) failed_tasks: usize,
}

impl NetworkCalls {
    pub(super) fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.routed += other.routed;
        self.tasks += other.tasks;
        self.sets += other.sets;
        self.failed += other.failed;
        self.failed_tasks += other.failed_tasks;
    }

    /// The numbers as a line of the report.
    pub(super) fn shown(&self) -> String {
        let Self {
            asked,
            routed,
            tasks,
            sets,
            failed,
            failed_tasks,
        } = self;
        format!(
            "Networks: {asked} requests of agents, {routed} of routing agents, {tasks} tasks ({failed_tasks} failed), \
             {sets} writes to the state, {failed} failed agent calls.\n"
        )
    }
}

impl ModelRole {
    /// The caller's network, if it has one.
    pub(super) fn team(&self) -> Option<&Team> {
        match self {
            Self::Alone => None,
            Self::Member(_, team) | Self::Router(team) => Some(team),
        }
    }
}

impl Team {
    /// The network among these agents.
    pub(super) fn among(agents: &[AgentSpec]) -> Option<Arc<Self>> {
        let network = agents.iter().find_map(|agent| agent.network.as_ref())?;
        let steps = agents
            .iter()
            .map(|it| (it.name.clone(), it.settings().max_steps));
        let delegates = agents.iter().map(|agent| {
            let names = agent.delegates.iter().map(|it| it.name.clone());
            (agent.name.clone(), names.collect())
        });
        Some(Arc::new(Self {
            worst: worst_cost(&network.network, &steps.collect()),
            network: network.network.clone(),
            delegates: delegates.collect(),
        }))
    }

    /// Whether an agent's words may be posted.
    fn is_heard(&self, agent: &AgentName) -> bool {
        let is_asked_for = match &self.network.answer_from {
            AnswerFrom::Agent(one) => one == agent,
            AnswerFrom::Last | AnswerFrom::Each => true,
        };
        is_asked_for && !self.network.silent.contains(agent)
    }
}

/// The agents and the network of a shape, as TOML.
pub(super) fn shape(number: u64) -> String {
    let mut dice = SeededDice::of(number, "network");
    let first = AGENTS[dice.place(AGENTS.len())];
    // Either the first agent's words are posted, or the routing agent may call any agent.
    let asks_router = dice.hits(300);
    let others = AGENTS.iter().filter(|it| **it != first && !asks_router);
    let silent: Vec<&str> = others.copied().filter(|_| dice.hits(300)).collect();
    let answer_from = match dice.hits(300) && !asks_router {
        true => first,
        false => "last",
    };
    let mut text = String::new();
    for agent in AGENTS {
        let asked = AGENTS.iter().filter(|it| **it != agent);
        let delegates: Vec<&str> = asked.copied().filter(|_| dice.hits(250)).collect();
        let _ = write!(
            text,
            "[agents.{agent}]\nmodel = \"simulated\"\nchannels = []\ntools = []\nmax_attempts = 100\n\
             answer_within_s = 604800\nrun_deadline_s = 86400\ndelegates = {delegates:?}\n\
             [agents.{agent}.prompt]\nrolling_summary_threshold = 12\npreserve_recent_turns = 4\n"
        );
    }
    let _ = write!(
        text,
        "[networks.team]\nagents = {AGENTS:?}\ndefault_agent = \"desk\"\nmax_calls = {}\n\
         answer_from = \"{answer_from}\"\nsilent = {silent:?}\npersist = {}\n\
         [networks.team.state]\nfound = {{ type = \"boolean\" }}\n\
         notes = {{ type = \"array\", items = \"string\", max_items = 3, merge = \"append\" }}\n\
         [networks.team.writes]\nlook = [\"found\", \"notes\"]\npen = [\"notes\"]\n\
         [networks.team.reads]\ndesk = [\"found\", \"notes\"]\n[networks.team.descriptions]\n",
        1 + dice.below(6),
        dice.hits(300),
    );
    for agent in AGENTS {
        let _ = writeln!(text, "{agent} = \"Does what {agent} does.\"");
    }
    let first = match asks_router {
        true => "ask_router = true".to_owned(),
        false => called(first, &mut dice),
    };
    let when = ["{}", "{ calls = 0 }"][dice.place(2)];
    rule(&mut text, when, &first, &mut dice);
    for _ in 0..dice.below(RULES_MAX + 1) {
        let when = condition(&mut dice);
        let action = match dice.below(10) {
            0 => "stop = true\nreason = \"by chance\"".to_owned(),
            1..4 => "ask_router = true".to_owned(),
            _ => called(AGENTS[dice.place(AGENTS.len())], &mut dice),
        };
        rule(&mut text, &when, &action, &mut dice);
    }
    text
}

/// A call of an agent, or of a list that it leads.
fn called(first: &str, dice: &mut SeededDice) -> String {
    let further = (0..dice.below(3)).map(|_| AGENTS[dice.place(AGENTS.len())]);
    let list: Vec<&str> = std::iter::once(first).chain(further).collect();
    format!("call = {list:?}")
}

fn rule(text: &mut String, when: &str, action: &str, dice: &mut SeededDice) {
    let at_most = 1 + dice.below(3);
    let _ = write!(
        text,
        "[[networks.team.rules]]\nwhen = {when}\n{action}\nat_most = {at_most}\n"
    );
    if dice.hits(200) {
        let _ = writeln!(text, "set = {{ found = {} }}", dice.hits(500));
    }
}

fn condition(dice: &mut SeededDice) -> String {
    let agent = AGENTS[dice.place(AGENTS.len())];
    let is = dice.hits(500);
    let n = dice.below(4);
    let terms = [
        format!("calls = {n}"),
        format!("calls = {{ ge = {n} }}"),
        format!("last_agent = \"{agent}\""),
        "last_text = { contains = \"as far as\" }".to_owned(),
        "last_tool = \"set_state\"".to_owned(),
        format!("last_failed = {is}"),
        format!("stack_empty = {is}"),
        format!("state = {{ found = {is} }}"),
    ];
    let term = &terms[dice.place(terms.len())];
    match dice.below(4) {
        0 => "{}".to_owned(),
        1 => format!("{{ not = {{ {term} }} }}"),
        _ => format!("{{ {term} }}"),
    }
}

/// What is wrong with a request, judged by what is committed when it comes. A stalled worker may ask what another
/// worker asked meanwhile.
pub(super) fn faults_of_request(
    world: &World,
    role: &ModelRole,
    team: &Team,
    course: &Course,
    steps: usize,
) -> Vec<String> {
    let mut faults = Vec::new();
    if !world.stalls_ms.is_empty() {
        return faults;
    }
    let worst = team.worst;
    let decided = course.decision().map(|decision| decision.next.clone());
    match (role, decided) {
        (ModelRole::Member(agent, _), Some(Ok((next, _)))) if next == *agent => {}
        (ModelRole::Router(_), None) => {}
        (ModelRole::Alone, _) => {}
        (ModelRole::Member(agent, _), decided) => {
            faults.push(format!(
                "{agent} is asked in call {}, and decided is {decided:?}",
                course.count() + 1
            ));
        }
        (ModelRole::Router(_), Some(decided)) => {
            faults.push(format!(
                "the routing agent is asked, and decided is {decided:?}"
            ));
        }
    }
    let most = worst.model_calls + u64::from(worst.routing_calls);
    let is_member = matches!(role, ModelRole::Member(..));
    if is_member && course.count() >= worst.agent_calls || steps as u64 >= most {
        faults.push(format!(
            "{} agent calls and {steps} steps, of {worst:?}",
            course.count()
        ));
    }
    let failed = course.calls.iter();
    let failed = failed.filter(|call| call.outcome == CallOutcome::Failed);
    if let Some(call) = failed.into_iter().find(|call| team.is_heard(&call.agent)) {
        let why = call.reason.clone().unwrap_or_default();
        faults.push(format!("{} failed: {why}", call.agent));
    }
    faults
}

/// What the model says in a network; `None` where it answers as a single agent does.
pub(super) fn word(
    world: &mut World,
    request: &Request<'_>,
    role: &ModelRole,
) -> Option<Result<Answer, ModelError>> {
    match role {
        ModelRole::Alone => None,
        ModelRole::Router(_) => Some(Ok(said(pick(world), Vec::new()))),
        ModelRole::Member(agent, team) => member(world, request, agent, team),
    }
}

/// What the routing agent answers: an agent, an agent that does not exist, none, or nothing valid.
fn pick(world: &mut World) -> String {
    world.calls.routed += 1;
    let agent = AGENTS[world.dice.place(AGENTS.len())];
    let word = match world.dice.below(10) {
        0 => "I can't say.".to_owned(),
        1 => json!({"agent": "lookup", "done": false, "reason": "it fits"}).to_string(),
        2 | 3 => json!({"agent": null, "done": true, "reason": "it is answered"}).to_string(),
        _ => json!({"agent": agent, "done": false, "reason": "it fits"}).to_string(),
    };
    world.note(format_args!("the routing agent says {word}"));
    word
}

fn member(
    world: &mut World,
    request: &Request<'_>,
    agent: &AgentName,
    team: &Team,
) -> Option<Result<Answer, ModelError>> {
    world.calls.asked += 1;
    let refused = || {
        let reason = "this is not for me".to_owned();
        Some(Err(ModelError::Refused { reason }))
    };
    let last = request.messages.last()?;
    if last.content.contains(TASK) {
        world.note(format_args!("{agent} works on a task"));
        if world.dice.hits(FAILS_PER_MILLE) {
            world.calls.failed_tasks += 1;
            return refused();
        }
        return Some(Ok(said(RESULT.to_owned(), Vec::new())));
    }
    let has = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let may_call =
        request.tool_choice == ToolChoice::Auto && request.exchanges.len() < EXCHANGES_MAX;
    if may_call && has("set_state") && world.dice.hits(350) {
        world.calls.sets += 1;
        let values = values(&mut world.dice);
        world.note(format_args!("{agent} sets {values}"));
        return Some(Ok(said(String::new(), vec![call(0, "set_state", values)])));
    }
    if may_call && has("ask_agent") && world.dice.hits(300) {
        let delegates = team.delegates.get(agent).map_or(&[][..], Vec::as_slice);
        let tasks: Vec<ToolCall> = (0..=world.dice.below(2))
            .map(|n| task(n, world, delegates))
            .collect();
        world.note(format_args!("{agent} gives {} tasks", tasks.len()));
        return Some(Ok(said(String::new(), tasks)));
    }
    if team.is_heard(agent) {
        return None;
    }
    if world.dice.hits(FAILS_PER_MILLE) {
        world.note(format_args!("{agent} fails for good"));
        world.calls.failed += 1;
        return refused();
    }
    world.note(format_args!("{agent} says what nobody reads"));
    Some(Ok(said(UNHEARD.to_owned(), Vec::new())))
}

fn values(dice: &mut SeededDice) -> Value {
    match dice.below(4) {
        0 => json!({"found": dice.hits(500)}),
        1 => json!({"notes": "a note"}),
        2 => json!({"found": "yes"}),
        _ => json!({"found": true, "notes": ["one", "two"]}),
    }
}

/// A task for one of these agents, or for one that does not exist.
fn task(n: u64, world: &mut World, delegates: &[AgentName]) -> ToolCall {
    world.calls.tasks += 1;
    let agent = match world.dice.hits(100) {
        true => "lookup".to_owned(),
        false => {
            let place = world.dice.place(delegates.len());
            delegates
                .get(place)
                .map_or_else(String::new, ToString::to_string)
        }
    };
    let task = format!("{TASK} {}", world.calls.tasks);
    call(n, "ask_agent", json!({"agent": agent, "task": task}))
}

fn call(n: u64, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: format!("call_{n}"),
        name: name.to_owned(),
        arguments,
    }
}

/// Counts what the network did.
pub(super) fn count(world: &World, tally: &mut SimTally) {
    tally.calls.add(world.calls);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::plan::Mode;
    use crate::sim::clocks::WallClock;
    use crate::sim::script::SimScript;
    use vocative_core::routing::state::StateSchema;
    use vocative_core::routing::{
        MemberCall, RoutedBy, RoutingRule, RuleAction, StoredDecision, When,
    };
    use vocative_core::run::Usage;

    fn team() -> Arc<Team> {
        let agent = AgentName::trusted("look");
        let rule = RoutingRule {
            when: When::default(),
            set: Vec::new(),
            action: RuleAction::Call(vec![agent.clone()]),
            at_most: 2,
        };
        let network = Network {
            name: AgentName::trusted("team"),
            members: vec![agent.clone()],
            default_agent: agent.clone(),
            max_calls: 2,
            answer_from: AnswerFrom::Last,
            silent: BTreeSet::new(),
            rules: vec![rule],
            state: StateSchema::default(),
            persist: false,
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
        };
        Arc::new(Team {
            worst: worst_cost(&network, &[(agent, 3)].into()),
            network,
            delegates: BTreeMap::new(),
        })
    }

    /// How many faults a request of that role has after this course of the network.
    fn judged(role: &ModelRole, course: &Course, steps: usize) -> usize {
        let mut dice = SeededDice::new(1);
        let script = SimScript::new(Mode::Slack, 0, &mut dice);
        let wall = WallClock::new(script.faults_until_ms, &mut dice);
        let world = World::new(script, dice, wall, None, false);
        faults_of_request(&world, role, &team(), course, steps).len()
    }

    #[test]
    fn who_was_not_decided_on_or_has_answered_is_noticed() {
        let look = AgentName::trusted("look");
        let (member, router) = (
            ModelRole::Member(look.clone(), team()),
            ModelRole::Router(team()),
        );
        let mut course = Course::default();
        let both = |course: &Course| [judged(&member, course, 0), judged(&router, course, 0)];
        assert_eq!(both(&course), [1, 0]);
        course.decisions.push(StoredDecision {
            calls: 0,
            next: Ok((look.clone(), RoutedBy::Rule)),
            rule: Some(1),
            stack: Vec::new(),
            state: "{}".to_owned(),
            refused: Vec::new(),
            words: String::new(),
            steps: 0,
            at_ms: 0,
        });
        assert_eq!(both(&course), [0, 1]);
        // The expected number, six calls of models, is what `check` prints.
        assert_eq!(
            [judged(&member, &course, 5), judged(&member, &course, 6)],
            [0, 1]
        );
        course.calls.push(MemberCall {
            n: 1,
            agent: look,
            outcome: CallOutcome::Done,
            text: "It is here.".to_owned(),
            note: None,
            reason: None,
            told: None,
            tools: Vec::new(),
            state: "{}".to_owned(),
            steps: 1,
            usage: Usage::default(),
            at_ms: 0,
        });
        assert_eq!(both(&course), [1, 0]);
    }
}
