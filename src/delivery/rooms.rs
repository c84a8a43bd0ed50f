//! The identified channels, by account: what any code may ask and show there, and, separately, the handles that post.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use tokio::sync::Notify;
use vocative_contract::capability::Capabilities;
use vocative_contract::envelope::{Place, Sender, SenderKind};
use vocative_contract::file::FileSource;
use vocative_contract::handles::{LookUps, Poster, Renderer, Signs};
use vocative_contract::identity::Identity;
use vocative_contract::probe::Prober;

use crate::capture::gate::Gate;
use crate::capture::reply::ReplyForm;
use vocative_core::ids::{AccountId, AgentName, ParticipantId};
use vocative_core::judging::policy::{Limits, SpentUp, TooCostly};
use vocative_core::sending::after::DeliveryPolicy;
use vocative_core::wall_clock::Zone;
use vocative_core::words::Language;
use vocative_store::{Reader, StoreError};

/// One account, without its handle for posting: code that holds a room can't send into it.
#[derive(Clone)]
pub struct Room {
    /// The configured channel's name.
    pub channel: String,
    /// Makes posts of texts.
    pub renderer: Arc<dyn Renderer>,
    /// Shows that a run is working.
    pub signs: Arc<dyn Signs>,
    /// Asks the platform.
    pub look_ups: Arc<dyn LookUps>,
    /// Asks about single messages, where the platform shows bots no history.
    pub prober: Option<Arc<dyn Prober>>,
    /// Fetches attachments; `None` = attachments are only named.
    pub files: Option<Arc<dyn FileSource>>,
    /// Our identity there.
    pub identity: Identity,
    /// What the platform can do.
    pub capabilities: Capabilities,
    /// What becomes of its posts after an attempt.
    pub delivery: DeliveryPolicy,
    /// Notified when the platform refused the account and its posts were held.
    pub refused: Arc<Notify>,
}

impl Room {
    /// How replies are formatted for the room.
    #[must_use]
    pub fn form(&self) -> ReplyForm<'_> {
        ReplyForm {
            renderer: &*self.renderer,
            uploads_files: self.capabilities.uploads_files,
            max_parts: self.delivery.max_parts,
            language: self.language(),
        }
    }

    /// The language in which the daemon itself speaks there.
    #[must_use]
    pub fn language(&self) -> Language {
        self.delivery.language
    }
}

/// The handles for posting through each account; only delivery holds them. Cloning shares it.
#[derive(Clone, Default)]
pub struct Posters {
    by_account: Arc<RwLock<HashMap<AccountId, Arc<dyn Poster>>>>,
}

impl Posters {
    /// Adds or replaces the handle for posting through an account.
    pub fn set(&self, account: AccountId, poster: Arc<dyn Poster>) {
        self.by_account
            .write()
            .expect("no holder of this lock panics")
            .insert(account, poster);
    }

    /// The handle for posting through an account, once its channel is identified.
    pub(super) fn get(&self, account: AccountId) -> Option<Arc<dyn Poster>> {
        self.by_account
            .read()
            .expect("no holder of this lock panics")
            .get(&account)
            .cloned()
    }
}

/// The rooms of all identified channels. Cloning shares it.
#[derive(Clone, Default)]
pub struct Rooms {
    by_account: Arc<RwLock<HashMap<AccountId, Room>>>,
    gates: Arc<RwLock<HashMap<AccountId, Arc<Gate>>>>,
    /// Held from reading who was let in until that is in force, so that the latest read stays in force.
    pairing: Arc<tokio::sync::Mutex<()>>,
}

impl Rooms {
    /// Adds or replaces the room of an account.
    pub fn set(&self, account: AccountId, room: Room) {
        self.by_account
            .write()
            .expect("no holder of this lock panics")
            .insert(account, room);
    }

    /// Changes what becomes of the posts of an account.
    pub fn set_delivery(&self, account: AccountId, policy: DeliveryPolicy) {
        let mut rooms = self
            .by_account
            .write()
            .expect("no holder of this lock panics");
        if let Some(room) = rooms.get_mut(&account) {
            room.delivery = policy;
        }
    }

    /// Puts a gate before the room of an account.
    pub fn set_gate(&self, account: AccountId, gate: Arc<Gate>) {
        self.gates
            .write()
            .expect("no holder of this lock panics")
            .insert(account, gate);
    }

    /// What may be spent through an account; `None` where no lists are in force.
    #[must_use]
    pub fn limits(&self, account: AccountId) -> Option<Limits> {
        let gates = self.gates.read().expect("no holder of this lock panics");
        Some(gates.get(&account)?.policy().limits)
    }

    /// Puts in force who was let in to direct chats by a code, as stored now. Called by whoever changed that.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn admit_paired(&self, store: &Reader, account: AccountId) -> Result<(), StoreError> {
        let _held = self.pairing.lock().await;
        let people = store.paired(account).await?;
        let gates = self.gates.read().expect("no holder of this lock panics");
        if let Some(gate) = gates.get(&account) {
            gate.set_paired(people);
        }
        Ok(())
    }

    /// The time zone for times that people name there.
    #[must_use]
    pub fn zone(&self, account: AccountId) -> Zone {
        let gates = self.gates.read().expect("no holder of this lock panics");
        let gate = gates.get(&account);
        gate.map_or_else(Zone::default, |gate| gate.policy().manners.zone)
    }

    /// Whether a person is in the `admins` of an account's channel.
    #[must_use]
    pub fn is_admin(&self, account: AccountId, person: &str) -> bool {
        let gates = self.gates.read().expect("no holder of this lock panics");
        let gate = gates.get(&account);
        gate.is_some_and(|gate| gate.policy().admins.iter().any(|admin| admin == person))
    }

    /// Whether a place, and the person who said something there, are still served: the lists may have changed
    /// since it was stored.
    #[must_use]
    pub fn still_admits(&self, account: AccountId, place: &Place, person: Option<&str>) -> bool {
        let gates = self.gates.read().expect("no holder of this lock panics");
        let gate = gates.get(&account);
        gate.is_none_or(|gate| gate.still_admits(place, person))
    }

    /// Whether a place, and a person there, are served now, by the lists and the platform's directory; and, where one
    /// is named, by that agent.
    pub async fn admits_now(
        &self,
        account: AccountId,
        place: &Place,
        person: Option<&str>,
        agent: Option<&AgentName>,
    ) -> bool {
        let gate = {
            let gates = self.gates.read().expect("no holder of this lock panics");
            gates.get(&account).cloned()
        };
        let Some(gate) = gate else {
            return true;
        };
        if agent.is_some_and(|agent| gate.policy().agent(agent).is_none()) {
            return false;
        }
        let Some(id) = person else {
            return gate.may_serve(&place.chat, place.kind);
        };
        let sender = Sender {
            id: id.to_owned(),
            display_name: None,
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        };
        gate.admits(place, &sender).await
    }

    /// Which tokens of the day are used up for a question of that person and account; `None` if there is no
    /// limit, or it is not met.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn spent_up(
        &self,
        store: &Reader,
        account: AccountId,
        person: Option<ParticipantId>,
        now_ms: i64,
    ) -> Result<Option<SpentUp>, StoreError> {
        let Some(limits) = self.limits(account) else {
            return Ok(None);
        };
        let spent = store.spent_today(account, person, now_ms).await?;
        Ok(limits.spent(spent.by_person, spent.by_account))
    }

    /// Whether a request that may cost that much, in millionths, could pass a cap of the day for a question of that
    /// person and account.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn too_costly(
        &self,
        store: &Reader,
        account: AccountId,
        person: Option<ParticipantId>,
        most_micros: u64,
        now_ms: i64,
    ) -> Result<Option<TooCostly>, StoreError> {
        let has_caps =
            |it: &Limits| it.cost_micros_per_day > 0 || it.cost_micros_per_day_person > 0;
        let Some(limits) = self.limits(account).filter(has_caps) else {
            return Ok(None);
        };
        let spent = store.spent_today(account, person, now_ms).await?;
        Ok(limits.too_costly(spent.by_person, spent.by_account, most_micros))
    }

    /// The room of an account, once its channel is identified.
    #[must_use]
    pub fn get(&self, account: AccountId) -> Option<Room> {
        self.by_account
            .read()
            .expect("no holder of this lock panics")
            .get(&account)
            .cloned()
    }

    /// The accounts that can be served now.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountId> {
        self.by_account
            .read()
            .expect("no holder of this lock panics")
            .keys()
            .copied()
            .collect()
    }
}
