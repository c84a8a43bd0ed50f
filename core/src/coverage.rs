//! Which turns count as kept, and which of them an agent's summaries stand for.

use crate::options::{AssemblerOptions, HistoryShare, Profile};
use crate::place::Scope;

/// Which turns count as kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Those that concern the agent (authored by it, addressed to it, answered by it), by index.
    Involved,
    /// All of them.
    All,
}

/// The version of what a summary stands for. A stored summary of another version is not used.
const COVERAGE_VERSION: u32 = 1;

/// Which turns an agent's summaries stand for. Those made under another coverage are not used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coverage {
    /// Which turns count as kept.
    pub keep: Keep,
    /// Only turns of this scope.
    pub scope: Option<Scope>,
}

impl Coverage {
    /// What summaries under these options stand for; `None` where none are made or used.
    ///
    /// The toolpack profile summarises while assembling. A time window or a share of the history forgets on purpose: a
    /// summary would bring back what it leaves out.
    #[must_use]
    pub fn of(options: &AssemblerOptions) -> Option<Self> {
        let is_used = options.profile == Profile::Vocative
            && options.time_window_minutes.is_none()
            && options.history == HistoryShare::Full;
        is_used.then_some(Self {
            keep: if options.addressed_only {
                Keep::Involved
            } else {
                Keep::All
            },
            scope: options.scope,
        })
    }

    /// The options fingerprint that is stored with a summary.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let keep = match self.keep {
            Keep::Involved => "involved",
            Keep::All => "all",
        };
        let scope = self.scope.map_or("any", Scope::name);
        format!("v{COVERAGE_VERSION};keep={keep};scope={scope}")
    }
}
