//! What the channels of a daemon share, and what a reload replaces.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, RwLock};

use tokio::sync::Notify;
use tracing::warn;
use vocative_contract::channel::{Announcement, Channel, Intake};
use vocative_contract::identity::{Identity, Platform};

use crate::agent::models::Models;
use crate::agent::registry::Registry;
use crate::capture::clock::Clock;
use crate::capture::gate::Gate;
use crate::capture::inbound::{ChannelIntake, Counter, Keeping};
use crate::capture::wake::Wake;
use crate::catchup::keeper::Keepers;
use crate::config::{Config, Secrets};
use crate::counters::Counters;
use crate::daemon::names::NameFinder;
use crate::daemon::supervise::BindError;
use crate::daemon::surface::Surface;
use crate::daemon::time::Timekeeper;
use crate::daemon::wiring::{self, WiringError};
use crate::delivery::rooms::{Posters, Room, Rooms};
use crate::retention::aging::TimeDoubt;
use crate::skills::Shelf;
use crate::tools::mcp::McpServers;
use vocative_core::counted::counted;
use vocative_core::ids::AccountId;
use vocative_core::judging::policy::ChannelPolicy;
use vocative_core::prompting::{ClassEstimate, content_count};
use vocative_store::Store;

/// What channels and reloads share.
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) rooms: Rooms,
    pub(super) posters: Posters,
    pub(super) names: NameFinder,
    pub(super) keepers: Keepers,
    pub(super) registry: Registry,
    pub(super) models: Models,
    servers: McpServers,
    pub(super) skills: Shelf,
    pub(super) wake: Wake,
    pub(super) counters: Arc<Counters>,
    config: RwLock<Arc<Config>>,
    /// The configuration at the start, which still applies to everything that needs a restart.
    started: Arc<Config>,
    /// Sends a channel's platform its commands, by the channel's name.
    announcers: Mutex<BTreeMap<String, Announcer>>,
    intakes: Mutex<BTreeMap<String, (Arc<ChannelIntake>, Identity)>>,
    /// The channel that serves a platform's account: the first that was identified as it.
    served_by: Mutex<HashMap<(Platform, String), String>>,
    pub(super) time: Timekeeper,
    /// Why no data is deleted by age.
    pub(super) time_doubt: TimeDoubt,
    pub(super) clock: Clock,
}

/// Sends a platform the list of commands.
pub(super) type Announcer = Arc<dyn Fn(Announcement) + Send + Sync>;

fn counter() -> Counter {
    Arc::new(|text| content_count(text, &ClassEstimate))
}

/// The account as which a channel was identified.
pub(super) struct BoundAs {
    /// The account.
    pub(super) account: AccountId,
    /// Our identity there.
    pub(super) identity: Identity,
    /// The people who were let in by a code, by platform id.
    pub(super) paired: BTreeSet<String>,
}

impl Shared {
    /// The state before there are channels.
    pub(super) fn new(
        config: &Config,
        store: Store,
        time: Timekeeper,
        servers: McpServers,
    ) -> Self {
        let rooms = Rooms::default();
        let (registry, wake) = (Registry::default(), Wake::default());
        Self {
            names: NameFinder::new(store.only(), rooms.clone()),
            rooms,
            posters: Posters::default(),
            keepers: Keepers::default(),
            servers,
            skills: Shelf::new(&config.skill_folders),
            models: Models::new(store.only(), registry.clone(), wake.clone(), time.clock()),
            store,
            registry,
            wake,
            counters: Arc::default(),
            config: RwLock::new(Arc::new(config.clone())),
            started: Arc::new(config.clone()),
            announcers: Mutex::default(),
            intakes: Mutex::default(),
            served_by: Mutex::default(),
            clock: time.clock(),
            time,
            time_doubt: TimeDoubt::default(),
        }
    }

    /// The configuration in force.
    pub(super) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().expect("no holder of this lock panics"))
    }

    /// The intakes of identified channels, by name.
    pub(super) fn intakes(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<String, (Arc<ChannelIntake>, Identity)>> {
        self.intakes.lock().expect("no holder of this lock panics")
    }

    /// Claims an account for a channel. Two channels with the same bot would take turns in hearing, each by its own
    /// rules.
    pub(super) fn claim_account(
        &self,
        channel: &str,
        identity: &Identity,
    ) -> Result<(), BindError> {
        let bot = (
            identity.platform,
            format!("{}/{}", identity.account, identity.user_id),
        );
        let mut served_by = self
            .served_by
            .lock()
            .expect("no holder of this lock panics");
        let other = served_by.entry(bot).or_insert_with(|| channel.to_owned());
        if other.as_str() == channel {
            return Ok(());
        }
        Err(BindError::Other {
            what: format!(
                "it is the same bot as channel {other}: remove one of the two, or give it a bot of its own"
            ),
        })
    }

    /// Sends the platforms their commands if they changed since an earlier configuration.
    fn announce_again(&self, earlier: &Config) {
        let announcers = self
            .announcers
            .lock()
            .expect("no holder of this lock panics");
        for (name, announcer) in announcers.iter() {
            let now = wiring::announcement(&self.config(), name);
            if now != wiring::announcement(earlier, name) {
                announcer(now);
            }
        }
    }

    /// The accounts that other channels serve.
    pub(super) fn accounts_of_others(&self, channel: &str) -> Vec<AccountId> {
        let mut accounts = self.rooms.accounts();
        accounts.retain(|account| {
            let room = self.rooms.get(*account);
            room.is_some_and(|room| room.channel != channel)
        });
        accounts
    }

    /// Opens the room of the account as which a channel was identified, and makes its intake.
    pub(super) fn open_room(
        &self,
        name: &str,
        bound_as: BoundAs,
        channel: &dyn Channel,
        refused: &Arc<Notify>,
    ) -> Result<Arc<ChannelIntake>, BindError> {
        let BoundAs {
            account,
            identity,
            paired,
        } = bound_as;
        // Outside the lock, since a panic in an adapter would poison it.
        let (outbound, capabilities) = (channel.outbound(&identity), channel.capabilities());
        let files = channel.files(&identity);
        // Held until the intake is stored: a reload in between would miss it.
        let mut intakes = self.intakes();
        let config = self.config();
        let settings = config.channels.get(name).ok_or_else(|| BindError::Other {
            what: format!("channel {name} is no longer in the configuration"),
        })?;
        let policy = ChannelPolicy {
            paired: Arc::new(paired),
            ..wiring::policy(&config, settings, account, identity.clone())
        };
        let gate = Gate::new(policy).with_directory(Arc::clone(&outbound.look_ups));
        let gate = Arc::new(gate);
        let room = Room {
            channel: name.to_owned(),
            renderer: outbound.renderer,
            signs: outbound.signs,
            look_ups: outbound.look_ups,
            prober: outbound.prober,
            files,
            identity: identity.clone(),
            capabilities,
            delivery: wiring::delivery(&config, settings),
            refused: Arc::clone(refused),
        };
        let keeping = Keeping {
            keeps_revisions: config.store.keep_revisions,
            keeps_raw: config.store.debug_raw_hours > 0,
        };
        let intake = ChannelIntake::behind(
            Arc::clone(&gate),
            self.store.only(),
            keeping,
            counter(),
            self.wake.clone(),
            Arc::clone(&self.counters),
        );
        let intake = intake.with_cards(Arc::clone(&room.renderer));
        let intake = Arc::new(intake.with_forms(outbound.forms.clone()));
        intakes.insert(name.to_owned(), (Arc::clone(&intake), identity));
        self.rooms.set_gate(account, gate);
        self.posters.set(account, outbound.poster);
        self.rooms.set(account, room);
        self.wake.runs.notify_one();
        self.wake.posts.notify_one();
        self.wake.jobs.notify_one();
        Ok(intake)
    }

    /// Wraps an intake so that it also updates the bot's own surface, if the channel has one.
    pub(super) fn with_surface(
        &self,
        channel: &str,
        account: AccountId,
        gate: Arc<Gate>,
        intake: Arc<dyn Intake>,
    ) -> Arc<dyn Intake> {
        let config = self.config();
        let settings = config.channels.get(channel);
        let view = settings.and_then(|settings| settings.agent_view.as_ref());
        match (view, self.rooms.get(account)) {
            (Some(view), Some(room)) => Arc::new(Surface::new(view, room.signs, gate, intake)),
            _ => intake,
        }
    }

    /// Sends a channel's platform its commands, now and whenever a reload changes them.
    pub(super) fn announce(&self, channel: &str, announcer: Announcer) {
        let mut announcers = self
            .announcers
            .lock()
            .expect("no holder of this lock panics");
        announcer(wiring::announcement(&self.config(), channel));
        announcers.insert(channel.to_owned(), announcer);
    }

    /// Puts another configuration in force, and returns which of its changes need a restart.
    pub(super) fn apply(&self, config: Config, secrets: &Secrets) -> Result<String, WiringError> {
        let servers = wiring::servers(&config, Some(secrets));
        self.servers
            .replace(servers, &self.store.only(), &self.clock);
        let agents = wiring::agents(&config, Some(secrets), &self.servers)?;
        let waiting = config.needing_restart(&self.started);
        let note = if waiting.is_empty() {
            String::new()
        } else {
            let settings = waiting.join(", ");
            warn!(
                settings,
                "what was changed there counts only after a restart"
            );
            format!("; a restart is needed for: {settings}")
        };
        let agents_now = counted(agents.len(), "agent is", "agents are");
        let summary = format!("{agents_now} in force{note}");
        // Agents first: a message that addresses a new agent must find it.
        self.registry.replace(agents);
        // A key or an address may have changed.
        self.models.try_all();
        let intakes = self.intakes();
        for (name, (intake, identity)) in intakes.iter() {
            if let Some(settings) = config.channels.get(name) {
                let account = intake.policy().account;
                let delivery = wiring::delivery(&config, settings);
                self.rooms.set_delivery(account, delivery);
                intake.set_policy(wiring::policy(&config, settings, account, identity.clone()));
            }
        }
        let known = std::mem::replace(
            &mut *self.config.write().expect("no holder of this lock panics"),
            Arc::new(config),
        );
        drop(intakes);
        self.announce_again(&known);
        // Queued runs of removed agents are claimed and cancelled, and the room is told.
        self.wake.runs.notify_one();
        Ok(summary)
    }
}
