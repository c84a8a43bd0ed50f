//! Who takes the next free slot: fair shares of accounts and people, and agents whose model takes no
//! question for now. Pure.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::ids::{AccountId, AgentName, ParticipantId};

/// The most shares that are remembered; beyond it those served longest ago are forgotten.
const SHARES_MAX: usize = 10_000;

/// How long the runs of a conversation wait for one that was never begun and is due later than it was queued, in
/// milliseconds: for the rest of an album, or for the kind of its chat. A run that is due later than that is not being
/// answered yet: it holds up no other run until its time comes.
pub const PLACE_KEPT_MS_MAX: i64 = 60_000;

/// What a claim depends on: which agents are closed, and who had how much.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// The run clock, in milliseconds.
    pub run_clock_ms: i64,
    /// Agents whose model is not asked now, each with how long its questions may wait, in
    /// milliseconds: one that waited longer is claimed all the same, to be given up.
    pub closed: BTreeMap<AgentName, i64>,
    /// The models, by their configured names, that a question may ask for in place of its agent's own, each with how
    /// long its questions may wait if it is not asked now; `None` = it is asked.
    pub choices: BTreeMap<(AgentName, String), Option<i64>>,
    shares: Arc<ClaimShares>,
}

/// What accounts and people have of the slots.
#[derive(Clone, Debug, Default)]
struct ClaimShares {
    /// Claims so far.
    claims: u64,
    accounts: HashMap<AccountId, ClaimShare>,
    people: HashMap<Asker, ClaimShare>,
}

/// Who asks: a person of an account. Runs without a person share one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asker {
    /// The account.
    pub account: AccountId,
    /// The person whose message triggered the run.
    pub person: Option<ParticipantId>,
}

/// The share of an account or person. Fewer runs at work come first, then the one that was served longest ago.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ClaimShare {
    at_work: usize,
    last_claim: u64,
}

/// An agent's oldest unfinished run of a conversation, as far as a claim looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRun {
    /// Its row, opaque: the order of runs.
    pub row: i64,
    /// Its conversation, opaque.
    pub conversation: i64,
    /// The agent that works on it.
    pub agent: AgentName,
    /// The configured name of the model that it asks for; `None` = the agent's own.
    pub asked_model: Option<String>,
    /// Who asks.
    pub asker: Asker,
    /// Since when it stands first in its conversation, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// When it was asked, by the run clock.
    pub asked_at_run_ms: i64,
    /// Its time has come.
    pub is_due: bool,
    /// It waits for another attempt.
    pub is_put_off: bool,
    /// It was asked to stop.
    pub is_cancelled: bool,
}

/// The place of a run among those that may start; the least goes first.
type Rank = (bool, ClaimShare, ClaimShare, i64, i64);

impl Slots {
    /// Which run starts next: of those of a conversation, which come one after the other, the oldest that
    /// may. A run whose model is not asked now, or that waits for another attempt, lets those of
    /// other agents pass; any other wait keeps the conversation's order. Runs that are due later than
    /// [`PLACE_KEPT_MS_MAX`] are not among them.
    pub fn next(&self, waiting: impl IntoIterator<Item = WaitingRun>) -> Option<WaitingRun> {
        let mut best: Option<(Rank, WaitingRun)> = None;
        let mut settled = None;
        for run in waiting {
            if settled == Some(run.conversation) {
                continue;
            }
            let may_start = run.is_due && (run.is_cancelled || self.is_open_to(&run));
            let lets_pass = !may_start && (run.is_put_off || self.closed_ms(&run).is_some());
            if !lets_pass {
                settled = Some(run.conversation);
            }
            if !may_start {
                continue;
            }
            let rank = self.rank(&run);
            if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                best = Some((rank, run));
            }
        }
        best.map(|(_, run)| run)
    }

    /// A run was claimed for that asker.
    pub fn begin(&mut self, asker: Asker) {
        let shares = Arc::make_mut(&mut self.shares);
        shares.claims += 1;
        let last_claim = shares.claims;
        let account = shares.accounts.entry(asker.account).or_default();
        let person = shares.people.entry(asker).or_default();
        for share in [account, person] {
            share.at_work += 1;
            share.last_claim = last_claim;
        }
        forget_oldest(&mut shares.accounts);
        forget_oldest(&mut shares.people);
    }

    /// A run of that asker let go of its slot.
    pub fn end(&mut self, asker: Asker) {
        let shares = Arc::make_mut(&mut self.shares);
        let account = shares.accounts.get_mut(&asker.account);
        let person = shares.people.get_mut(&asker);
        for share in account.into_iter().chain(person) {
            share.at_work = share.at_work.saturating_sub(1);
        }
    }

    /// How long a run may wait whose model is not asked now; `None` = its model is asked.
    fn closed_ms(&self, run: &WaitingRun) -> Option<i64> {
        let choice = run.asked_model.as_ref().and_then(|model| {
            let choice = (run.agent.clone(), model.clone());
            self.choices.get(&choice)
        });
        match choice {
            Some(closed_ms) => *closed_ms,
            None => self.closed.get(&run.agent).copied(),
        }
    }

    /// Whether its model may be asked, or its time to be answered is over.
    fn is_open_to(&self, run: &WaitingRun) -> bool {
        let within_ms = self.closed_ms(run);
        within_ms.is_none_or(|within_ms| self.run_clock_ms - run.asked_at_run_ms >= within_ms)
    }

    fn rank(&self, run: &WaitingRun) -> Rank {
        let account = self.shares.accounts.get(&run.asker.account);
        let person = self.shares.people.get(&run.asker);
        (
            !run.is_cancelled,
            account.copied().unwrap_or_default(),
            person.copied().unwrap_or_default(),
            run.since_ms,
            run.row,
        )
    }
}

fn forget_oldest<K: Copy + Eq + std::hash::Hash>(shares: &mut HashMap<K, ClaimShare>) {
    if shares.len() <= SHARES_MAX {
        return;
    }
    let idle = shares.values().filter(|share| share.at_work == 0);
    let mut claims: Vec<u64> = idle.map(|share| share.last_claim).collect();
    claims.sort_unstable();
    let kept_from = claims.get(claims.len() / 2).copied().unwrap_or(0);
    shares.retain(|_, share| share.at_work > 0 || share.last_claim >= kept_from);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(account: i64, person: i64) -> Asker {
        Asker {
            account: AccountId(account),
            person: Some(ParticipantId(person)),
        }
    }

    fn run(row: i64, conversation: i64, agent: &str, asker: Asker) -> WaitingRun {
        WaitingRun {
            row,
            conversation,
            agent: AgentName::trusted(agent),
            asked_model: None,
            asker,
            since_ms: row,
            asked_at_run_ms: 0,
            is_due: true,
            is_put_off: false,
            is_cancelled: false,
        }
    }

    /// The rows in the order in which one slot after the other serves them.
    fn served(slots: &mut Slots, mut waiting: Vec<WaitingRun>, at_once: usize) -> Vec<i64> {
        let (mut order, mut at_work) = (Vec::new(), Vec::new());
        while let Some(next) = slots.next(waiting.clone()) {
            if at_work.len() == at_once {
                slots.end(at_work.remove(0));
                continue;
            }
            slots.begin(next.asker);
            at_work.push(next.asker);
            waiting.retain(|run| run.row != next.row);
            order.push(next.row);
        }
        order
    }

    #[test]
    fn one_persons_fifty_threads_starve_no_other_person_and_no_other_account() {
        let (ann, bob, zoe) = (asker(1, 1), asker(1, 2), asker(2, 3));
        for at_once in [1, 2, 8] {
            let mut waiting: Vec<WaitingRun> =
                (1..=50).map(|row| run(row, row, "kael", ann)).collect();
            waiting.push(run(51, 51, "kael", bob));
            waiting.extend([run(52, 52, "kael", zoe), run(53, 53, "kael", zoe)]);
            let order = served(&mut Slots::default(), waiting, at_once);
            let place = |row| order.iter().position(|it| *it == row).unwrap();
            assert_eq!(order.len(), 53);
            // Of the two accounts each has every second claim, of the two people each too.
            assert!(place(52) <= 1 && place(53) <= 3, "{order:?}");
            assert!(place(51) <= 3, "{order:?}");
        }
    }

    #[test]
    fn who_asks_alone_is_served_in_order() {
        let ann = asker(1, 1);
        let waiting = (1..=9).map(|row| run(row, row, "kael", ann)).collect();
        let order = served(&mut Slots::default(), waiting, 2);
        assert_eq!(order, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_closed_agent_holds_up_no_other_and_its_overdue_run_is_claimed() {
        let ann = asker(1, 1);
        let slots = |run_clock_ms| Slots {
            run_clock_ms,
            closed: [(AgentName::trusted("kael"), 1_000)].into(),
            ..Slots::default()
        };
        let next = |slots: &Slots, waiting: Vec<WaitingRun>| slots.next(waiting).map(|run| run.row);
        let both = || vec![run(1, 1, "kael", ann), run(2, 1, "iris", ann)];
        assert_eq!(next(&slots(999), both()), Some(2));
        assert_eq!(next(&slots(1_000), both()), Some(1));
        assert_eq!(next(&slots(0), vec![run(1, 1, "kael", ann)]), None);
    }

    #[test]
    fn a_question_for_another_model_waits_for_that_one() {
        let ann = asker(1, 1);
        let kael = || AgentName::trusted("kael");
        let next = |closed: &[(AgentName, i64)], choice: Option<i64>, model: &str| {
            let slots = Slots {
                closed: closed.iter().cloned().collect(),
                choices: [((kael(), "deep".to_owned()), choice)].into(),
                ..Slots::default()
            };
            let asked_model = Some(model.to_owned());
            let run = WaitingRun {
                asked_model,
                ..run(1, 1, "kael", ann)
            };
            slots.next([run]).is_some()
        };
        let closed = [(kael(), 1_000)];
        assert!(next(&closed, None, "deep"));
        assert!(!next(&[], Some(1_000), "deep"));
        // A run that asked for a model that is no longer offered uses its agent's own model.
        assert!(!next(&closed, None, "gone") && next(&[], Some(1_000), "gone"));
    }

    #[test]
    fn only_a_wait_for_a_model_lets_others_of_its_conversation_pass() {
        let ann = asker(1, 1);
        let not_due = |is_put_off| WaitingRun {
            is_due: false,
            is_put_off,
            ..run(1, 1, "kael", ann)
        };
        let later = || run(2, 1, "iris", ann);
        let slots = Slots::default();
        let next = |first| slots.next([first, later()]).map(|run| run.row);
        assert_eq!(next(not_due(true)), Some(2));
        assert_eq!(next(not_due(false)), None);
        assert_eq!(next(run(1, 1, "kael", ann)), Some(1));
    }

    #[test]
    fn what_was_asked_to_stop_is_ended_first_whatever_its_model_does() {
        let ann = asker(1, 1);
        let slots = Slots {
            closed: [(AgentName::trusted("kael"), 1_000)].into(),
            ..Slots::default()
        };
        let stopped = WaitingRun {
            is_cancelled: true,
            ..run(9, 9, "kael", ann)
        };
        let next = slots.next([run(1, 1, "iris", ann), stopped]);
        assert_eq!(next.map(|run| run.row), Some(9));
    }

    #[test]
    fn shares_are_forgotten_but_for_those_at_work() {
        let mut slots = Slots::default();
        slots.begin(asker(1, 0));
        for person in 1..=30_000 {
            slots.begin(asker(1, person));
            slots.end(asker(1, person));
        }
        assert!(slots.shares.people.len() <= SHARES_MAX);
        assert_eq!(slots.shares.people[&asker(1, 0)].at_work, 1);
        assert_eq!(slots.shares.accounts[&AccountId(1)].at_work, 1);
    }
}
