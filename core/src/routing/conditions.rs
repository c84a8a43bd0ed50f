//! What the conditions of a network's rules say about each other: whether one can hold, and whether it holds whenever
//! another does.
//!
//! What a condition asks is cut into dimensions (the calls so far, the newest call, one value, the chat, …). Each
//! dimension has finitely many points: every possible case is like one of them for all terms of all rules. A set of
//! points is a row of bits. Tests of words have no such points: they are atoms, of which is known which imply and which
//! exclude each other. A question is then a few passes over bits, and errs to one side only: a condition that is said
//! never to hold never does, and one that is said to follow always does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::bounds::Around;
use super::facts::AskerKind;
use super::network::{Network, RoutingRule, RuleTerm, StateTest, TextTest, When};
use super::state::{KeySchema, SimpleKind, StateKind, ValueMerge, canonical};
use crate::ids::AgentName;
use crate::place::Scope;

/// The most constants of one value or of all chats that get points of their own.
const CONSTANTS_MAX: usize = 256;
/// The most words of one test that are compared with those of another.
const WORDS_MAX: usize = 16;

/// A set of points, of one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn none(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    pub(super) fn of(size: usize, points: impl IntoIterator<Item = usize>) -> Self {
        let mut bits = Self::none(size);
        points.into_iter().for_each(|point| bits.put(point));
        bits
    }

    pub(super) fn put(&mut self, point: usize) {
        self.0[point / 64] |= 1 << (point % 64);
    }

    pub(super) fn has(&self, point: usize) -> bool {
        self.0[point / 64] >> (point % 64) & 1 == 1
    }

    pub(super) fn join(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(super) fn points(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len() * 64).filter(|point| self.has(*point))
    }

    /// Whether every point that is in `self` and in all of `and` is in `that`; `None` = every point.
    fn is_within(&self, and: &[Option<&Self>], that: Option<&Self>) -> bool {
        let Some(that) = that else {
            return true;
        };
        (0..self.0.len()).all(|n| {
            let each = and.iter().flatten();
            let left = each.fold(self.0[n], |word, other| word & other.0[n]);
            left & !that.0[n] == 0
        })
    }
}

/// What a dimension is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Calls,
    Stack,
    Last,
    Alias,
    Scope,
    Chat,
    Sender,
    Files,
    State(String),
}

/// A dimension: which of its points pass a rule's terms, and which pass the terms of its `not`; `None`: the rule has no
/// term there.
#[derive(Clone, Debug)]
pub(super) struct Dimension {
    pub(super) of: Of,
    pub(super) size: usize,
    terms: Vec<Option<Bits>>,
    nots: Vec<Option<Bits>>,
}

impl Dimension {
    /// `passes` says whether a term holds at a point; `None`: the term is about another dimension.
    fn new(
        of: Of,
        size: usize,
        rules: &[RoutingRule],
        passes: &dyn Fn(&RuleTerm, usize) -> Option<bool>,
    ) -> Self {
        let mask = |terms: &[RuleTerm]| {
            let own: Vec<&RuleTerm> = terms
                .iter()
                .filter(|term| passes(term, 0).is_some())
                .collect();
            let all_pass = |point: &usize| own.iter().all(|it| passes(it, *point) == Some(true));
            (!own.is_empty()).then(|| Bits::of(size, (0..size).filter(all_pass)))
        };
        // The entry behind all rules always holds.
        let masks = |part: fn(&When) -> &[RuleTerm]| {
            let each = rules.iter().map(|rule| mask(part(&rule.when)));
            each.chain([None]).collect()
        };
        Self {
            of,
            size,
            terms: masks(|when| &when.terms),
            nots: masks(|when| &when.not),
        }
    }

    /// The points that pass a rule's terms; `None`: all.
    pub(super) fn terms(&self, rule: usize) -> Option<&Bits> {
        self.terms[rule].as_ref()
    }
}

/// A test of words.
#[derive(Clone, Debug, PartialEq)]
enum ConditionAtom {
    Asked(TextTest),
    Said(TextTest),
    Tool(Vec<String>),
    Other(RuleTerm),
}

impl ConditionAtom {
    fn of(term: &RuleTerm, is_known: &dyn Fn(&RuleTerm) -> bool) -> Option<Self> {
        match term {
            RuleTerm::Text(test) => Some(Self::Asked(test.clone())),
            RuleTerm::LastText(test) => Some(Self::Said(test.clone())),
            RuleTerm::LastTool(tools) => Some(Self::Tool(tools.clone())),
            RuleTerm::State(..) | RuleTerm::Chat(_) if !is_known(term) => {
                Some(Self::Other(term.clone()))
            }
            _ => None,
        }
    }

    fn implies(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Asked(one), Self::Asked(other)) | (Self::Said(one), Self::Said(other)) => {
                text_implies(one, other)
            }
            (Self::Tool(one), Self::Tool(other)) => one.iter().all(|tool| other.contains(tool)),
            _ => self == other,
        }
    }

    fn excludes(&self, other: &Self) -> bool {
        let of = |one: &TextTest, other: &TextTest| {
            let is_of_blank = |test: &TextTest| test.is_empty == Some(true);
            (says_something(one) && is_of_blank(other))
                || (says_something(other) && is_of_blank(one))
        };
        match (self, other) {
            (Self::Asked(one), Self::Asked(other)) | (Self::Said(one), Self::Said(other)) => {
                of(one, other)
            }
            _ => false,
        }
    }
}

/// Whether a text that passes is not blank.
fn says_something(test: &TextTest) -> bool {
    let words = &test.contains;
    let has_words = !words.is_empty() && words.iter().all(|word| !word.trim().is_empty());
    test.is_empty == Some(false) || has_words
}

/// Whether each text that passes one passes the other.
fn text_implies(one: &TextTest, other: &TextTest) -> bool {
    let pattern = |of: &TextTest| of.matches.as_ref().map(|it| it.as_str().to_owned());
    let has_words = other.contains.is_empty() || words_imply(&one.contains, &other.contains);
    let matches = other.matches.is_none() || pattern(one) == pattern(other);
    let is_blank = match other.is_empty {
        None => true,
        Some(false) => says_something(one),
        Some(true) => one.is_empty == Some(true),
    };
    has_words && matches && is_blank
}

fn words_imply(one: &[String], other: &[String]) -> bool {
    if one.is_empty() || one.len() > WORDS_MAX || other.len() > WORDS_MAX {
        return !one.is_empty() && one == other;
    }
    let folded = |word: &String| word.to_lowercase();
    one.iter().map(folded).all(|word| {
        let mut others = other.iter().map(folded);
        others.any(|it| word.contains(&it))
    })
}

/// The tests of words of each rule.
#[derive(Clone, Debug)]
struct Atoms {
    terms: Vec<Bits>,
    nots: Vec<Bits>,
    /// The atoms that hold whenever the terms of a rule do.
    known: Vec<Bits>,
    /// The atoms that never hold then.
    barred: Vec<Bits>,
    /// The atoms that hold whenever the terms of a rule's `not` do.
    known_of_not: Vec<Bits>,
}

impl Atoms {
    fn new(rules: &[RoutingRule], is_known: &dyn Fn(&RuleTerm) -> bool) -> Self {
        let mut all: Vec<ConditionAtom> = Vec::new();
        for term in rules
            .iter()
            .flat_map(|it| it.when.terms.iter().chain(&it.when.not))
        {
            let atom = ConditionAtom::of(term, is_known);
            all.extend(atom.filter(|atom| !all.contains(atom)));
        }
        let size = all.len();
        let found = |terms: &[RuleTerm]| {
            let own = terms
                .iter()
                .filter_map(|term| ConditionAtom::of(term, is_known));
            let place = |atom: ConditionAtom| all.iter().position(|it| *it == atom);
            Bits::of(size, own.filter_map(place))
        };
        let of = |part: fn(&When) -> &[RuleTerm]| -> Vec<Bits> {
            let each = rules.iter().map(|rule| found(part(&rule.when)));
            each.chain([Bits::none(size)]).collect()
        };
        let pairs = |holds: fn(&ConditionAtom, &ConditionAtom) -> bool| -> Vec<Bits> {
            let of = |one: &ConditionAtom| {
                let others = (0..size).filter(|other| holds(one, &all[*other]));
                Bits::of(size, others)
            };
            all.iter().map(of).collect()
        };
        let (implied, excluded) = (
            pairs(ConditionAtom::implies),
            pairs(ConditionAtom::excludes),
        );
        let closed = |sets: &[Bits], by: &[Bits]| -> Vec<Bits> {
            let close = |set: &Bits| {
                let mut closed = Bits::none(size);
                set.points().for_each(|atom| closed.join(&by[atom]));
                closed
            };
            sets.iter().map(close).collect()
        };
        let (terms, nots) = (of(|when| &when.terms), of(|when| &when.not));
        Self {
            known: closed(&terms, &implied),
            barred: closed(&terms, &excluded),
            known_of_not: closed(&nots, &implied),
            terms,
            nots,
        }
    }

    fn can_pass(&self, rule: usize) -> bool {
        !self.terms[rule].meets(&self.barred[rule])
    }
}

/// The points of one value: the first is that it is not set.
#[derive(Clone, Debug)]
pub(super) struct Values {
    points: Vec<Option<Value>>,
    index: BTreeMap<String, usize>,
    /// The points before anything sets it.
    pub(super) start: Bits,
    /// The points that it may be set to.
    pub(super) allowed: Bits,
}

impl Values {
    fn new(network: &Network, key: &str) -> Option<Self> {
        let schema = network.state.0.get(key);
        let constants = constants(network, key, schema);
        if constants.len() > CONSTANTS_MAX {
            return None;
        }
        let mut values = Self {
            points: vec![None],
            index: BTreeMap::new(),
            start: Bits::none(0),
            allowed: Bits::none(0),
        };
        if let Some(schema) = schema {
            let mut points = near(&constants, schema);
            points.retain(|value| schema.allows(value));
            points.into_iter().for_each(|value| values.add(value));
            values.add_fresh(schema, &constants);
        }
        let size = values.points.len();
        values.allowed = Bits::of(size, 1..size);
        let default = schema.and_then(|schema| schema.default.as_ref());
        values.start = Bits::of(
            size,
            [default.map_or(0, |it| values.point(it).unwrap_or(0))],
        );
        if network.persist {
            // Kept from an earlier question, or corrected by an operator.
            values.start.join(&values.allowed);
        }
        Some(values)
    }

    fn add(&mut self, value: Value) {
        let text = canonical(&value);
        if !self.index.contains_key(&text) {
            self.index.insert(text, self.points.len());
            self.points.push(Some(value));
        }
    }

    /// Adds a value that no rule names, if the schema allows one.
    fn add_fresh(&mut self, schema: &KeySchema, constants: &[Value]) {
        let named: BTreeSet<String> = constants.iter().map(canonical).collect();
        let words = (0..).map(|n| format!("#{n}"));
        let fresh: Option<Value> = match schema.kind {
            StateKind::One(SimpleKind::String) if schema.one_of.is_empty() => words
                .map(Value::from)
                .find(|value| !named.contains(&canonical(value))),
            StateKind::List(_) => words
                .map(|word| json!([word]))
                .find(|value| !named.contains(&canonical(value))),
            StateKind::One(_) => None,
        };
        fresh.into_iter().for_each(|value| self.add(value));
    }

    fn point(&self, value: &Value) -> Option<usize> {
        self.index.get(&canonical(value)).copied()
    }

    fn passes(&self, test: &StateTest, point: usize) -> bool {
        test.holds(self.points[point].as_ref())
    }
}

/// The constants that the rules, the schema and the default name for a value; numbers as they are compared.
fn constants(network: &Network, key: &str, schema: Option<&KeySchema>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for rule in &network.rules {
        for term in rule.when.terms.iter().chain(&rule.when.not) {
            if let RuleTerm::State(of, test) = term
                && of == key
            {
                all.extend(test.one_of.iter().cloned());
                all.extend([test.ge, test.le].into_iter().flatten().map(Value::from));
            }
        }
        let set = rule.set.iter().filter(|(of, _)| of == key);
        all.extend(set.map(|(_, value)| value.clone()));
    }
    if let Some(schema) = schema {
        all.extend(schema.one_of.iter().cloned());
        all.extend(schema.default.clone());
    }
    all
}

/// The constants, and for numbers also values between and beside them: any number is one of the constants, or lies
/// between the same two as one of these.
fn near(constants: &[Value], schema: &KeySchema) -> Vec<Value> {
    let mut all: Vec<Value> = constants.to_vec();
    match schema.kind {
        StateKind::One(SimpleKind::Boolean) => all.extend([json!(true), json!(false)]),
        StateKind::One(SimpleKind::Integer | SimpleKind::Number) => {
            all.extend([json!(0), json!(i64::MIN), json!(i64::MAX)]);
            for constant in constants {
                all.extend(neighbours(constant));
            }
        }
        _ => {}
    }
    all
}

fn neighbours(number: &Value) -> Vec<Value> {
    let Some(float) = number.as_f64() else {
        return Vec::new();
    };
    let mut all = vec![json!(float.next_down()), json!(float.next_up())];
    for near in [float.floor(), float.ceil()] {
        let (signed, unsigned) = match (number.as_i64(), number.as_u64()) {
            (None, None) => (near as i64, near as u64),
            (signed, unsigned) => (signed.unwrap_or(i64::MAX), unsigned.unwrap_or(0)),
        };
        for n in [-1, 0, 1] {
            all.push(json!(signed.saturating_add(n)));
            all.push(json!(unsigned.saturating_add_signed(n)));
        }
    }
    all
}

/// The conditions of all rules, and behind them one that always holds.
pub(super) struct Conditions {
    pub(super) dimensions: Vec<Dimension>,
    /// What each value may be, by its dimension.
    pub(super) values: BTreeMap<usize, Values>,
    /// The agents that may be called.
    pub(super) agents: Vec<AgentName>,
    atoms: Atoms,
    has_not: Vec<bool>,
    of_terms: Vec<Vec<usize>>,
    of_nots: Vec<Vec<usize>>,
}

/// The dimension of the calls so far.
pub(super) const CALLS: usize = 0;
/// The dimension of waiting agents; its points: none waits, some wait.
pub(super) const STACK: usize = 1;
/// The dimension of the newest call; its points: there is none yet, and for each agent that it is done and that it
/// failed.
pub(super) const LAST: usize = 2;

impl Conditions {
    pub(super) fn new(network: &Network, around: &Around<'_>) -> Self {
        let rules = &network.rules;
        let agents: Vec<AgentName> = network.callable().into_iter().cloned().collect();
        let mut dimensions = vec![
            calls_dimension(network),
            Dimension::new(Of::Stack, 2, rules, &|term, point| match term {
                RuleTerm::StackEmpty(is) => Some((point == 0) == *is),
                _ => None,
            }),
            last_dimension(rules, &agents, around),
        ];
        dimensions.extend(asked_dimensions(rules, around));
        dimensions.extend(chat_dimension(rules));
        let mut values = BTreeMap::new();
        for key in keys(rules) {
            if let Some(of) = Values::new(network, key) {
                values.insert(dimensions.len(), of.clone());
                dimensions.push(value_dimension(rules, key, &of));
            }
        }
        let is_known = |term: &RuleTerm| {
            let of = match term {
                RuleTerm::State(key, _) => Of::State(key.clone()),
                _ => Of::Chat,
            };
            dimensions.iter().any(|it| it.of == of)
        };
        let atoms = Atoms::new(rules, &is_known);
        let mentioned = |part: fn(&Dimension) -> &Vec<Option<Bits>>| {
            let of = |rule: usize| {
                let all = 0..dimensions.len();
                all.filter(|d| part(&dimensions[*d])[rule].is_some())
                    .collect()
            };
            (0..=rules.len()).map(of).collect()
        };
        let has_not = rules.iter().map(|rule| !rule.when.not.is_empty());
        Self {
            of_terms: mentioned(|it| &it.terms),
            of_nots: mentioned(|it| &it.nots),
            has_not: has_not.chain([false]).collect(),
            atoms,
            values,
            agents,
            dimensions,
        }
    }

    /// The points of all dimensions that are possible before the first call.
    pub(super) fn start(&self) -> Vec<Bits> {
        let each = self.dimensions.iter().enumerate();
        let of = |(d, it): (usize, &Dimension)| match self.values.get(&d) {
            Some(values) => values.start.clone(),
            None if d <= LAST => Bits::of(it.size, [0]),
            None => Bits::of(it.size, 0..it.size),
        };
        each.map(of).collect()
    }

    /// What a rule sets a value to, by its dimension.
    pub(super) fn sets(&self, network: &Network, rule: usize) -> Vec<(usize, Bits)> {
        let mut sets = Vec::new();
        for (key, value) in &network.rules[rule].set {
            let schema = network.state.0.get(key);
            let found = self.values.iter();
            let mut found =
                found.filter(|(d, _)| self.dimensions[**d].of == Of::State(key.clone()));
            if let (Some(schema), Some((d, values))) = (schema, found.next()) {
                let to = match schema.merge {
                    ValueMerge::Append => values.allowed.clone(),
                    ValueMerge::Max | ValueMerge::Replace => {
                        Bits::of(values.points.len(), values.point(value))
                    }
                };
                sets.push((*d, to));
            }
        }
        sets
    }

    /// The dimension in which the terms of a rule never hold, if only the points `here` are possible.
    pub(super) fn missing(&self, rule: usize, here: &[Bits]) -> Option<&Dimension> {
        let mut all = self.of_terms[rule].iter();
        let missing = all.find(|d| {
            let passes = self.dimensions[**d].terms(rule);
            passes.is_some_and(|passes| !passes.meets(&here[**d]))
        });
        missing.map(|d| &self.dimensions[*d])
    }

    /// Whether the tests of words of a rule can hold together.
    pub(super) fn words_can_hold(&self, rule: usize) -> bool {
        self.atoms.can_pass(rule)
    }

    /// Whether the `not` of a rule may fail to hold while its terms do.
    pub(super) fn not_can_fail(&self, rule: usize, here: &[Bits]) -> bool {
        let fails = |d: &usize| {
            let it = &self.dimensions[*d];
            !here[*d].is_within(&[it.terms(rule)], it.nots[rule].as_ref())
        };
        let known = &self.atoms.known[rule];
        !self.has_not[rule]
            || self.of_nots[rule].iter().any(fails)
            || !self.atoms.nots[rule].is_within(&[], Some(known))
    }

    /// Whether a rule may hold.
    pub(super) fn can_hold(&self, rule: usize, here: &[Bits]) -> bool {
        self.missing(rule, here).is_none()
            && self.words_can_hold(rule)
            && self.not_can_fail(rule, here)
    }

    /// Whether another rule holds whenever this one does.
    pub(super) fn implies(&self, rule: usize, other: usize, here: &[Bits]) -> bool {
        let passes = |d: &usize| {
            let it = &self.dimensions[*d];
            here[*d].is_within(&[it.terms(rule)], it.terms(other))
        };
        let known = &self.atoms.known[rule];
        self.of_terms[other].iter().all(passes)
            && self.atoms.terms[other].is_within(&[], Some(known))
            && (!self.has_not[other]
                || self.excludes_not(rule, other, here)
                || self.not_implies(rule, other, here))
    }

    /// Whether the `not` of another rule never holds while the terms of this one do.
    fn excludes_not(&self, rule: usize, other: usize, here: &[Bits]) -> bool {
        let is_excluded = |d: &usize| {
            let it = &self.dimensions[*d];
            let both = [it.terms(rule), it.nots[other].as_ref()];
            here[*d].is_within(&both, Some(&Bits::none(it.size)))
        };
        self.of_nots[other].iter().any(is_excluded)
            || self.atoms.nots[other].meets(&self.atoms.barred[rule])
    }

    /// Whether the `not` of another rule holds only where that of this one does.
    fn not_implies(&self, rule: usize, other: usize, here: &[Bits]) -> bool {
        let passes = |d: &usize| {
            let it = &self.dimensions[*d];
            let both = [it.terms(rule), it.nots[other].as_ref()];
            here[*d].is_within(&both, it.nots[rule].as_ref())
        };
        let mut known = self.atoms.known[rule].clone();
        known.join(&self.atoms.known_of_not[other]);
        self.has_not[rule]
            && self.of_nots[rule].iter().all(passes)
            && self.atoms.nots[rule].is_within(&[], Some(&known))
    }
}

fn keys(rules: &[RoutingRule]) -> BTreeSet<&str> {
    let terms = rules
        .iter()
        .flat_map(|it| it.when.terms.iter().chain(&it.when.not));
    let keys = terms.filter_map(|term| match term {
        RuleTerm::State(key, _) => Some(key.as_str()),
        _ => None,
    });
    keys.collect()
}

fn calls_dimension(network: &Network) -> Dimension {
    let size = super::bounds::calls_max(network) as usize + 1;
    Dimension::new(Of::Calls, size, &network.rules, &|term, point| match term {
        RuleTerm::Calls(range) => Some(range.has(u32::try_from(point).unwrap_or(u32::MAX))),
        _ => None,
    })
}

fn last_dimension(rules: &[RoutingRule], agents: &[AgentName], around: &Around<'_>) -> Dimension {
    let size = 1 + 2 * agents.len();
    Dimension::new(Of::Last, size, rules, &|term, point| {
        let last = (point > 0).then(|| (&agents[(point - 1) / 2], point % 2 == 0));
        let passes = |test: &dyn Fn(&AgentName, bool) -> bool| {
            Some(last.is_some_and(|(agent, has_failed)| test(agent, has_failed)))
        };
        match term {
            RuleTerm::LastAgent(named) => passes(&|agent, _| named.contains(agent)),
            RuleTerm::LastFailed(is) => passes(&|_, has_failed| has_failed == *is),
            // A failed call has no text.
            RuleTerm::LastText(test) => passes(&|_, has_failed| !has_failed || test.holds("")),
            RuleTerm::LastTool(tools) => {
                passes(&|agent, _| tools.iter().any(|tool| (around.has_tool)(agent, tool)))
            }
            _ => None,
        }
    })
}

fn asked_dimensions(rules: &[RoutingRule], around: &Around<'_>) -> [Dimension; 4] {
    const SCOPES: [Scope; 3] = [Scope::Channel, Scope::Thread, Scope::Dm];
    // Who asks is a person or a bot, and perhaps an admin, too.
    const SENDERS: [&[AskerKind]; 4] = [
        &[AskerKind::Person],
        &[AskerKind::Bot],
        &[AskerKind::Person, AskerKind::Admin],
        &[AskerKind::Bot, AskerKind::Admin],
    ];
    let folded: Vec<String> = around.names.iter().map(|it| it.to_lowercase()).collect();
    [
        // The first point: no name was used.
        Dimension::new(Of::Alias, 1 + folded.len(), rules, &|term, point| {
            let RuleTerm::Alias(names) = term else {
                return None;
            };
            let name = point.checked_sub(1).map(|n| &folded[n]);
            Some(name.is_some_and(|name| names.iter().any(|it| it.to_lowercase() == *name)))
        }),
        Dimension::new(Of::Scope, SCOPES.len(), rules, &|term, point| match term {
            RuleTerm::Scope(scopes) => Some(scopes.contains(&SCOPES[point])),
            _ => None,
        }),
        Dimension::new(
            Of::Sender,
            SENDERS.len(),
            rules,
            &|term, point| match term {
                RuleTerm::Sender(senders) => {
                    Some(senders.iter().any(|it| SENDERS[point].contains(it)))
                }
                _ => None,
            },
        ),
        Dimension::new(Of::Files, 2, rules, &|term, point| match term {
            RuleTerm::HasFiles(is) => Some((point == 1) == *is),
            _ => None,
        }),
    ]
}

/// The chats that rules name, and any other; `None`: they are too many.
fn chat_dimension(rules: &[RoutingRule]) -> Option<Dimension> {
    let terms = rules
        .iter()
        .flat_map(|it| it.when.terms.iter().chain(&it.when.not));
    let named = terms.filter_map(|term| match term {
        RuleTerm::Chat(chats) => Some(chats),
        _ => None,
    });
    let all: BTreeSet<&String> = named.flatten().collect();
    let all: Vec<&String> = all.into_iter().collect();
    let of = |term: &RuleTerm, point: usize| match term {
        RuleTerm::Chat(chats) => Some(all.get(point).is_some_and(|chat| chats.contains(chat))),
        _ => None,
    };
    (all.len() <= CONSTANTS_MAX).then(|| Dimension::new(Of::Chat, all.len() + 1, rules, &of))
}

fn value_dimension(rules: &[RoutingRule], key: &str, of: &Values) -> Dimension {
    let size = of.points.len();
    Dimension::new(
        Of::State(key.to_owned()),
        size,
        rules,
        &|term, point| match term {
            RuleTerm::State(named, test) if named == key => Some(of.passes(test, point)),
            _ => None,
        },
    )
}
