//! What a network can come to: who can be called, how often, and which rules never match.
//!
//! A walk over the calls of a run, from decision to decision. For each number of calls it keeps who may have been
//! called last, who may wait, and what each value may be; where that becomes too much, it takes more to be possible
//! than is. So a rule that it never meets matches in no run. How much is looked at is bounded: [`LOOKED_AT_MAX`].

use std::collections::BTreeSet;

use super::bounds::{Around, DeadRule, calls_max};
use super::conditions::{Bits, CALLS, Conditions, Dimension, LAST, Of, STACK};
use super::network::{
    CALLS_MAX, CountRange, Network, RULES_MAX, RoutingRule, RuleAction, RuleTerm,
};
use crate::ids::AgentName;

/// The most places that are kept apart for one number of calls; further ones are joined.
const PLACES_MAX: usize = 32;
/// How many waiting agents are kept in order.
const WAITING_MAX: usize = 16;
/// The most pairs of rules that are compared: at each place, each rule with those before it, and with none.
pub const LOOKED_AT_MAX: usize =
    (CALLS_MAX as usize + 1) * PLACES_MAX * (RULES_MAX + 1) * (RULES_MAX + 2) / 2;

/// What a network can come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkReach {
    /// The rules that never match, with why.
    pub dead: Vec<DeadRule>,
    /// Who may be called.
    pub called: BTreeSet<AgentName>,
    /// The most agent calls of any run.
    pub most_calls: u32,
    /// How many pairs of rules were compared: at most [`LOOKED_AT_MAX`].
    pub looked_at: usize,
}

/// Says what a network can come to. Whatever it excludes happens in no run.
#[must_use]
pub fn reach(network: &Network, around: &Around<'_>) -> NetworkReach {
    if network.rules.len() > RULES_MAX {
        return NetworkReach::default();
    }
    let conditions = Conditions::new(network, around);
    let mut walk = ReachWalk::new(network, around, &conditions);
    walk.go();
    let called = walk.called();
    let dead = (0..network.rules.len()).filter(|rule| !walk.of_rules[*rule].is_used);
    let dead = dead.map(|rule| DeadRule {
        rule: number(rule),
        why: walk.why(rule),
    });
    NetworkReach {
        dead: dead.collect(),
        called: called.into_iter().cloned().collect(),
        most_calls: walk.most_calls,
        looked_at: walk.looked_at,
    }
}

fn number(rule: usize) -> u32 {
    u32::try_from(rule + 1).unwrap_or(u32::MAX)
}

/// Who may have been called last, and who may wait behind that, the next first.
#[derive(Clone, Debug)]
struct StackState {
    last: Bits,
    stack: Vec<Bits>,
    /// Agents of which any number may wait behind `stack`.
    more: Bits,
}

impl StackState {
    /// Extends this place so that it stands for the other one, too.
    fn join(&mut self, other: &Self) {
        self.last.join(&other.last);
        self.more.join(&other.more);
        let both = self.stack.len().min(other.stack.len());
        for behind in self.stack.drain(both..) {
            self.more.join(&behind);
        }
        for (n, agents) in other.stack.iter().enumerate() {
            match self.stack.get_mut(n) {
                Some(own) => own.join(agents),
                None => self.more.join(agents),
            }
        }
    }
}

/// What is known of a rule.
#[derive(Clone, Debug, Default)]
struct OfRule {
    /// For how many numbers of calls it may match.
    matches: u32,
    /// Whether it may lead to something.
    is_used: bool,
    /// Whether it may match at `max_calls`, where it leads to nothing.
    is_at_cap: bool,
    /// Rules before it that matched wherever it could have.
    behind: BTreeSet<usize>,
}

struct ReachWalk<'a> {
    network: &'a Network,
    conditions: &'a Conditions,
    /// Agents that may be disabled.
    passed_over: Bits,
    /// Agents that set values, by the dimension of the value.
    writers: Vec<(usize, Bits)>,
    of_rules: Vec<OfRule>,
    /// The points that were possible at any place.
    seen: Vec<Bits>,
    most_calls: u32,
    looked_at: usize,
}

impl<'a> ReachWalk<'a> {
    fn new(network: &'a Network, around: &Around<'_>, conditions: &'a Conditions) -> Self {
        let agents = &conditions.agents;
        let those = |is: &dyn Fn(&AgentName) -> bool| {
            let all = agents.iter().enumerate();
            Bits::of(
                agents.len(),
                all.filter(|(_, it)| is(it)).map(|(agent, _)| agent),
            )
        };
        let writers = conditions.values.keys().map(|d| {
            let writes = |agent: &AgentName| {
                let keys = network.writes.get(agent).into_iter().flatten();
                let mut keys = keys.map(|key| Of::State(key.clone()));
                keys.any(|key| key == conditions.dimensions[*d].of)
            };
            let may = those(&|agent| (around.sets_values)(agent) && writes(agent));
            (*d, may)
        });
        Self {
            network,
            conditions,
            passed_over: those(&|agent| !(around.is_always_there)(agent)),
            writers: writers.collect(),
            of_rules: vec![OfRule::default(); network.rules.len()],
            seen: conditions.start(),
            most_calls: 0,
            looked_at: 0,
        }
    }

    fn go(&mut self) {
        let agents = self.conditions.agents.len();
        let mut here = self.conditions.start();
        let mut places = vec![StackState {
            last: here[LAST].clone(),
            stack: Vec::new(),
            more: Bits::none(agents),
        }];
        for calls in 0..=calls_max(self.network) {
            self.most_calls = calls;
            here[CALLS] = Bits::of(self.conditions.dimensions[CALLS].size, [calls as usize]);
            let fresh = self.fresh();
            let mut matched = BTreeSet::new();
            let mut nexts = Vec::new();
            for place in &places {
                self.stand(place, &mut here);
                for rule in self.matching(&here, &fresh) {
                    self.follow(rule, place, calls, &mut nexts);
                    matched.extend(rule);
                }
            }
            for rule in &matched {
                self.of_rules[*rule].matches += 1;
            }
            if calls == calls_max(self.network) || nexts.is_empty() {
                return;
            }
            self.set_values(&matched, &nexts, &mut here);
            places = nexts;
        }
    }

    /// The rules that surely have uses left; the last entry, for no rule, is false. A decision uses one up at most, and
    /// one that ends the run is the last.
    fn fresh(&self) -> Vec<bool> {
        let each = self.network.rules.iter().zip(&self.of_rules);
        let is_fresh = |(rule, known): (&RoutingRule, &OfRule)| {
            matches!(rule.action, RuleAction::Stop { .. }) || known.matches < rule.at_most
        };
        each.map(is_fresh).chain([false]).collect()
    }

    /// Sets `here` to the points that are possible at a place.
    fn stand(&mut self, place: &StackState, here: &mut [Bits]) {
        let is_waiting = !place.stack.is_empty() || !place.more.is_empty();
        let surely = |agents: &Bits| !agents.meets(&self.passed_over);
        let may_be_empty = !place.stack.iter().any(surely);
        let points = [(0, may_be_empty), (1, is_waiting)];
        let points = points.into_iter().filter(|(_, is)| *is);
        here[STACK] = Bits::of(2, points.map(|(point, _)| point));
        here[LAST] = place.last.clone();
        for (seen, here) in self.seen.iter_mut().zip(here.iter()) {
            seen.join(here);
        }
    }

    /// The rules that may be the first to match here, and perhaps none.
    fn matching(&mut self, here: &[Bits], fresh: &[bool]) -> Vec<Option<usize>> {
        let conditions = self.conditions;
        let all = self.network.rules.len();
        // Rules that match before any later rule that implies them.
        let mut before: Vec<usize> = Vec::new();
        let mut matching = Vec::new();
        for (rule, is_fresh) in fresh.iter().enumerate() {
            self.looked_at += 1;
            if !conditions.can_hold(rule, here) {
                continue;
            }
            let taken = before.iter().position(|earlier| {
                self.looked_at += 1;
                conditions.implies(rule, *earlier, here)
            });
            match taken {
                Some(n) if rule < all => {
                    self.of_rules[rule].behind.insert(before[n]);
                }
                Some(_) => {}
                None => matching.push((rule < all).then_some(rule)),
            }
            if *is_fresh && self.is_never_passed_over(rule) {
                before.push(rule);
            }
        }
        matching
    }

    /// Whether a rule that matches surely takes effect: if it calls agents, one of them is never disabled.
    fn is_never_passed_over(&self, rule: usize) -> bool {
        match &self.network.rules[rule].action {
            RuleAction::Call(agents) => {
                let mut each = agents.iter().filter_map(|agent| self.agent(agent));
                each.any(|agent| !self.passed_over.has(agent))
            }
            RuleAction::AskRouter | RuleAction::Stop { .. } => true,
        }
    }

    fn agent(&self, name: &AgentName) -> Option<usize> {
        self.conditions.agents.binary_search(name).ok()
    }

    fn agents<'n>(&self, names: impl IntoIterator<Item = &'n AgentName>) -> Bits {
        let found = names.into_iter().filter_map(|name| self.agent(name));
        Bits::of(self.conditions.agents.len(), found)
    }

    /// Adds where the run may stand after a decision.
    fn follow(
        &mut self,
        rule: Option<usize>,
        place: &StackState,
        calls: u32,
        nexts: &mut Vec<StackState>,
    ) {
        let action = rule.map(|rule| &self.network.rules[rule].action);
        if let Some(rule) = rule {
            let is_stop = matches!(action, Some(RuleAction::Stop { .. }));
            // After the last call no rule calls an agent; a rule that ends the run still counts.
            let is_used = is_stop || calls < calls_max(self.network);
            self.of_rules[rule].is_used |= is_used;
            self.of_rules[rule].is_at_cap |= !is_used;
        }
        match action {
            Some(RuleAction::Stop { .. }) => {}
            Some(RuleAction::Call(agents)) => {
                let added = agents.iter().map(|agent| self.agents([agent]));
                self.call(place, added.collect(), nexts);
            }
            Some(RuleAction::AskRouter) => {
                let members = &self.network.members;
                let any = self.agents(members.iter().chain([&self.network.default_agent]));
                self.call(place, vec![any], nexts);
                // The routing agent says that it is done, and the agents that wait are called.
                self.call(place, Vec::new(), nexts);
            }
            None => self.call(place, Vec::new(), nexts),
        }
    }

    /// Adds where the run may stand when the first waiting agent is called. Disabled agents are passed over.
    fn call(&self, place: &StackState, added: Vec<Bits>, nexts: &mut Vec<StackState>) {
        let mut queue = place.clone();
        for agents in added {
            match queue.more.is_empty() && queue.stack.len() < WAITING_MAX {
                true => queue.stack.push(agents),
                false => queue.more.join(&agents),
            }
        }
        for (n, agents) in queue.stack.iter().enumerate() {
            let next = StackState {
                last: self.called_last(agents),
                stack: queue.stack[n + 1..].to_vec(),
                more: queue.more.clone(),
            };
            add(next, nexts);
            if !agents.meets(&self.passed_over) {
                return;
            }
        }
        if !queue.more.is_empty() {
            let next = StackState {
                last: self.called_last(&queue.more),
                stack: Vec::new(),
                more: queue.more,
            };
            add(next, nexts);
        }
    }

    /// The points of the newest call where it is one of these agents', done or failed.
    fn called_last(&self, agents: &Bits) -> Bits {
        let size = self.conditions.dimensions[LAST].size;
        let points = agents
            .points()
            .flat_map(|agent| [1 + 2 * agent, 2 + 2 * agent]);
        Bits::of(size, points)
    }

    /// What the values may be after these rules and the agents that were called then.
    fn set_values(&self, matched: &BTreeSet<usize>, nexts: &[StackState], here: &mut [Bits]) {
        let is_stop =
            |rule: &usize| matches!(self.network.rules[*rule].action, RuleAction::Stop { .. });
        for rule in matched.iter().filter(|rule| !is_stop(rule)) {
            for (d, to) in self.conditions.sets(self.network, *rule) {
                here[d].join(&to);
            }
        }
        for (d, writers) in &self.writers {
            let writers = self.called_last(writers);
            if nexts.iter().any(|place| place.last.meets(&writers)) {
                here[*d].join(&self.conditions.values[d].allowed);
            }
        }
    }

    fn called(&self) -> Vec<&AgentName> {
        let agents = self.conditions.agents.iter().enumerate();
        let called = agents.filter(|(agent, _)| self.seen[LAST].has(1 + 2 * agent));
        called.map(|(_, name)| name).collect()
    }

    /// Why a rule never matches, in words behind "rule 2 never matches: ".
    fn why(&self, rule: usize) -> String {
        if let Some(missing) = self.conditions.missing(rule, &self.seen) {
            return self.why_missing(rule, missing);
        }
        if !self.conditions.words_can_hold(rule) {
            return "no text passes all that it asks of it".to_owned();
        }
        if !self.conditions.not_can_fail(rule, &self.seen) {
            return "its `not` holds whenever the rest of it does".to_owned();
        }
        let known = &self.of_rules[rule];
        let terms = &self.network.rules[rule].when.terms;
        let earlier: Vec<String> = known
            .behind
            .iter()
            .map(|it| number(*it).to_string())
            .collect();
        match earlier.as_slice() {
            [] => {}
            [only] => {
                return format!(
                    "rule {only} before it matches whenever it would, and has uses left"
                );
            }
            several => {
                let several = several.join(", ");
                return format!(
                    "one of the rules {several} before it matches whenever it would, and has uses left"
                );
            }
        }
        if known.is_at_cap {
            let least = calls_range(terms).ge.unwrap_or(0).max(self.most_calls);
            return self.ends_before(least);
        }
        let needs_last = self.conditions.dimensions[LAST].terms(rule);
        let is_first = calls_range(terms).le == Some(0);
        match is_first && needs_last.is_some_and(|it| !it.has(0)) {
            true => "nobody was called before the first call".to_owned(),
            false => "all that it wants is never so at once".to_owned(),
        }
    }

    fn ends_before(&self, least: u32) -> String {
        let max = self.network.max_calls;
        format!("it wants {least} calls before it, and max_calls = {max} ends the run there")
    }

    fn why_missing(&self, rule: usize, missing: &Dimension) -> String {
        let terms = &self.network.rules[rule].when.terms;
        let passes_any = missing.terms(rule).is_some_and(|it| !it.is_empty());
        match &missing.of {
            Of::Calls => self.why_calls(calls_range(terms)),
            Of::Last => self.why_last(terms),
            Of::Stack if !passes_any => "somebody waits, or nobody".to_owned(),
            Of::Stack => match terms.contains(&RuleTerm::StackEmpty(false)) {
                true => "nobody ever waits to be called".to_owned(),
                false => "somebody always waits to be called".to_owned(),
            },
            Of::Alias => "the network has no such name".to_owned(),
            Of::Scope | Of::Chat | Of::Sender | Of::Files => {
                "no question is all that it asks of it".to_owned()
            }
            Of::State(key) if wants_unset(missing, rule) => format!("{key} always has a value"),
            Of::State(key) if passes_any => format!("nothing sets {key} to that"),
            Of::State(key) => format!("no value of {key} is like that"),
        }
    }

    fn why_calls(&self, range: CountRange) -> String {
        let least = range.ge.unwrap_or(0);
        match range.le {
            Some(most) if most < least => {
                format!("calls can't be at least {least} and at most {most}")
            }
            _ if least > self.network.max_calls => self.ends_before(least),
            _ => format!(
                "it wants {least} calls before it, and there are never more than {}",
                self.most_calls
            ),
        }
    }

    fn why_last(&self, terms: &[RuleTerm]) -> String {
        let called = self.called();
        if called.is_empty() {
            return "nobody is ever called".to_owned();
        }
        let is_named = |agent: &AgentName| {
            let mut named = terms.iter().filter_map(|term| match term {
                RuleTerm::LastAgent(agents) => Some(agents),
                _ => None,
            });
            named.all(|agents| agents.contains(agent))
        };
        if !called.iter().any(|agent| is_named(agent)) {
            let names = terms.iter().filter_map(|term| match term {
                RuleTerm::LastAgent(agents) => Some(agents.iter().map(AgentName::as_str)),
                _ => None,
            });
            let names: Vec<&str> = names.flatten().collect();
            return format!("nothing calls {}", names.join(" or "));
        }
        let tools = terms.iter().filter_map(|term| match term {
            RuleTerm::LastTool(tools) => Some(tools.iter().map(String::as_str)),
            _ => None,
        });
        let tools: Vec<&str> = tools.flatten().collect();
        match tools.is_empty() {
            true => "no agent call is all that it asks of it".to_owned(),
            false => format!(
                "no agent that may have been called last has {}",
                tools.join(" or ")
            ),
        }
    }
}

/// Whether only a value that is not set passes a rule's terms.
fn wants_unset(value: &Dimension, rule: usize) -> bool {
    let points = value.terms(rule).map(|it| it.points().collect::<Vec<_>>());
    points.as_deref() == Some(&[0])
}

/// Adds a place; beyond [`PLACES_MAX`] it is joined with another one.
fn add(place: StackState, places: &mut Vec<StackState>) {
    let mut known = places.iter_mut();
    let same = known.find(|it| it.stack == place.stack && it.more == place.more);
    if let Some(same) = same {
        same.last.join(&place.last);
    } else if places.len() < PLACES_MAX {
        places.push(place);
    } else {
        places[PLACES_MAX - 1].join(&place);
    }
}

/// All that a rule's terms want of the calls so far.
fn calls_range(terms: &[RuleTerm]) -> CountRange {
    let ranges = terms.iter().filter_map(|term| match term {
        RuleTerm::Calls(range) => Some(range),
        _ => None,
    });
    ranges.fold(CountRange::default(), |all, one| CountRange {
        ge: all.ge.max(one.ge),
        le: [all.le, one.le].into_iter().flatten().min(),
    })
}
