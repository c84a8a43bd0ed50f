//! Every order in which two workers, people, the clock and a restart can act on the same rows.
//!
//! A small model checker: from each state every step is taken, by the store's own transactions, in a
//! savepoint that is rolled back afterwards. A state that was seen is not entered again, so that all
//! interleavings within the bounds (how often the clock moves, a worker dies, ...) are covered. What
//! must hold is asked after each step; that nothing is stuck, by letting a healthy worker go on from
//! there.

mod posts;
mod runs;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::engine::sql::Connection;

use vocative_core::ids::LeaseToken;

/// Something that steps are taken in.
trait Machine: Clone {
    /// A step.
    type Step: Copy + std::fmt::Debug;

    /// The steps that can be taken now.
    fn steps(&self) -> Vec<Self::Step>;

    /// Takes one.
    fn take(&mut self, connection: &Connection, step: Self::Step);

    /// What tells this state from others. Times are told by what they are to now.
    fn state(&self, connection: &Connection) -> String;

    /// What of that counts for how it ends: what is written, not who works.
    fn written(&self, connection: &Connection) -> String;

    /// Panics unless all holds that must.
    fn check(&self, connection: &Connection);

    /// Panics unless a healthy worker can bring it to its end. May write.
    fn finish(self, connection: &Connection);
}

/// What a search went through.
#[derive(Clone, Copy, Debug, Default)]
struct Searched {
    states: usize,
    steps: usize,
}

struct Search<'a, M: Machine> {
    connection: &'a Connection<'a>,
    seen: HashSet<u64>,
    finished: HashSet<u64>,
    trail: Vec<M::Step>,
    searched: Searched,
}

/// Takes every step from every state that can be reached.
fn explore<M: Machine>(connection: &Connection, start: &M) -> Searched {
    let mut search = Search::<M> {
        connection,
        seen: HashSet::new(),
        finished: HashSet::new(),
        trail: Vec::new(),
        searched: Searched::default(),
    };
    search.enter(start);
    search.searched
}

impl<M: Machine> Search<'_, M> {
    fn enter(&mut self, machine: &M) {
        if !self.seen.insert(short(&machine.state(self.connection))) {
            return;
        }
        self.searched.states += 1;
        if self
            .finished
            .insert(short(&machine.written(self.connection)))
        {
            self.within(|search| {
                let ended = machine.clone();
                search.told(|search| ended.finish(search.connection));
            });
        }
        for step in machine.steps() {
            self.searched.steps += 1;
            self.trail.push(step);
            self.within(|search| {
                let mut next = machine.clone();
                search.told(|search| {
                    next.take(search.connection, step);
                    next.check(search.connection);
                });
                search.enter(&next);
            });
            self.trail.pop();
        }
    }

    /// Does something of which nothing is left.
    fn within(&mut self, act: impl FnOnce(&mut Self)) {
        execute(self.connection, "SAVEPOINT step");
        act(self);
        execute(self.connection, "ROLLBACK TO step");
        execute(self.connection, "RELEASE step");
    }

    /// A panic is told with the way that led to it.
    fn told(&self, act: impl FnOnce(&Self)) {
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(self)));
        if let Err(panic) = told {
            eprintln!("after {:?}", self.trail);
            std::panic::resume_unwind(panic);
        }
    }
}

/// A state in which the workers are `first` and `second`, or the other way round: it makes no
/// difference which is which. The letters of [`holder`] stand nowhere else.
fn of_either(written: &str, first: &str, second: &str) -> String {
    let swap = |c: char| match c {
        WORKERS_0 => WORKERS_1,
        WORKERS_1 => WORKERS_0,
        c => c,
    };
    let swapped: String = written.chars().map(swap).collect();
    let one = format!("{written} {first} {second}");
    let other = format!("{swapped} {second} {first}");
    one.min(other)
}

const WORKERS_0: char = '\u{2460}';
const WORKERS_1: char = '\u{2461}';

fn short(state: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

fn execute(connection: &Connection, sql: &str) {
    connection.prepare_cached(sql).unwrap().execute([]).unwrap();
}

/// A number from the database.
fn number(connection: &Connection, sql: &str) -> i64 {
    let mut statement = connection.prepare_cached(sql).unwrap();
    statement.query_row([], |row| row.get(0)).unwrap()
}

/// A lease by whose it is: `-` nobody's, a worker's, `?` somebody's who has forgotten it.
fn holder(token: Option<LeaseToken>, held: [Option<LeaseToken>; 2]) -> char {
    match token {
        None => '-',
        token if token == held[0] => WORKERS_0,
        token if token == held[1] => WORKERS_1,
        Some(_) => '?',
    }
}
