//! Modals and Home tabs: what is open, whose it is, what stands in it.
//!
//! Pure. Opened by `web::views`, filled in and sent by `interactions`. *Source:* slack.md §7.3.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::elements::with_ids;
use super::elements::{ElementName, find};
use super::world::SlackWorld;

/// Most modals on top of each other.
pub(super) const STACK_MAX: usize = 3;
/// Fields that a view shows as they were given.
const SHOWN: [&str; 10] = [
    "blocks",
    "callback_id",
    "clear_on_close",
    "close",
    "external_id",
    "notify_on_close",
    "private_metadata",
    "submit",
    "title",
    "type",
];

/// Permission to open one modal for the person who caused it.
struct ModalTrigger {
    user: String,
    /// The modal in which the person acted.
    view: Option<String>,
    made: Instant,
    is_used: bool,
}

/// One modal or Home tab.
#[derive(Clone, Debug)]
pub(super) struct ShownView {
    pub(super) id: String,
    pub(super) user: String,
    /// As the app gave it, with ids filled in.
    pub(super) content: Value,
    hash: String,
    root_id: String,
    previous_id: Option<String>,
    /// What was entered: by block, then by action.
    pub(super) values: BTreeMap<String, Map<String, Value>>,
    /// The errors that the app reported for the sent values: by block.
    pub(super) errors: Value,
}

impl ShownView {
    /// Whether it is a modal; else a Home tab.
    pub(super) fn is_modal(&self) -> bool {
        self.content["type"] == "modal"
    }

    pub(super) fn external_id(&self) -> Option<&str> {
        self.content["external_id"]
            .as_str()
            .filter(|id| !id.is_empty())
    }

    pub(super) fn has_hash(&self, hash: &str) -> bool {
        self.hash == hash
    }

    /// The view object of answers and payloads.
    pub(super) fn to_json(&self, world: &SlackWorld) -> Value {
        let mut view = json!({
            "id": self.id, "team_id": world.team_id, "app_id": world.app_id,
            "app_installed_team_id": world.team_id, "bot_id": world.bot_id, "hash": self.hash,
            "root_view_id": self.root_id, "previous_view_id": self.previous_id,
            "callback_id": "", "external_id": "", "private_metadata": "", "clear_on_close": false,
            "notify_on_close": false, "title": null, "close": null, "submit": null,
            "state": {"values": self.values},
        });
        for name in SHOWN {
            if let Some(given) = self.content.get(name) {
                view[name] = given.clone();
            }
        }
        view
    }
}

/// All views of one app, and the triggers that open more.
#[derive(Default)]
pub(super) struct Views {
    triggers: HashMap<String, ModalTrigger>,
    /// Open modals, the topmost of a person last, and Home tabs.
    open: Vec<ShownView>,
    last: u64,
}

impl Views {
    /// Makes a trigger for a person; `view` is the modal that was acted in.
    pub(super) fn new_trigger(&mut self, user: &str, view: Option<&str>) -> String {
        let id = format!("111.222.{}", Uuid::new_v4().simple());
        let trigger = ModalTrigger {
            user: user.to_owned(),
            view: view.map(str::to_owned),
            made: Instant::now(),
            is_used: false,
        };
        self.triggers.insert(id.clone(), trigger);
        id
    }

    /// Uses up a trigger; returns its person and the modal that it came from.
    ///
    /// # Errors
    /// The platform's name of why it opens nothing.
    pub(super) fn exchange(
        &mut self,
        trigger: &str,
        life: Duration,
    ) -> Result<(String, Option<String>), &'static str> {
        let trigger = self.triggers.get_mut(trigger).ok_or("invalid_trigger_id")?;
        if trigger.is_used {
            return Err("exchanged_trigger_id");
        }
        if trigger.made.elapsed() >= life {
            return Err("expired_trigger_id");
        }
        trigger.is_used = true;
        Ok((trigger.user.clone(), trigger.view.clone()))
    }

    /// Opens a view, on top of `below` when that is given.
    pub(super) fn open(
        &mut self,
        user: &str,
        content: Value,
        below: Option<&ShownView>,
    ) -> ShownView {
        self.last += 1;
        let id = format!("V0VIEW{:04}", self.last);
        let view = ShownView {
            root_id: below.map_or_else(|| id.clone(), |below| below.root_id.clone()),
            previous_id: below.map(|below| below.id.clone()),
            id,
            user: user.to_owned(),
            content: filled(content),
            hash: new_hash(),
            values: BTreeMap::new(),
            errors: Value::Null,
        };
        self.open.push(view.clone());
        view
    }

    /// Replaces what a view shows. What was entered stays where its block and action are still there.
    pub(super) fn replace(&mut self, id: &str, content: Value) -> Option<ShownView> {
        let view = self.open.iter_mut().find(|view| view.id == id)?;
        view.content = filled(content);
        view.hash = new_hash();
        view.errors = Value::Null;
        let blocks = view.content["blocks"].clone();
        view.values.retain(|block, actions| {
            actions
                .retain(|action, _| find(&blocks, block, ElementName::ActionId(action)).is_some());
            !actions.is_empty()
        });
        Some(view.clone())
    }

    /// Closes a view.
    pub(super) fn close(&mut self, id: &str) {
        self.open.retain(|view| view.id != id);
    }

    /// Closes all modals of a person.
    pub(super) fn clear(&mut self, user: &str) {
        self.open
            .retain(|view| view.user != user || !view.is_modal());
    }

    pub(super) fn get(&self, id: &str) -> Option<&ShownView> {
        self.open.iter().find(|view| view.id == id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut ShownView> {
        self.open.iter_mut().find(|view| view.id == id)
    }

    /// The view with this external id.
    pub(super) fn external(&self, id: &str) -> Option<&ShownView> {
        self.open.iter().find(|view| view.external_id() == Some(id))
    }

    /// The topmost modal of a person.
    pub(super) fn top(&self, user: &str) -> Option<&ShownView> {
        let mut own = self.open.iter().rev();
        own.find(|view| view.user == user && view.is_modal())
    }

    /// The Home tab of a person.
    pub(super) fn home(&self, user: &str) -> Option<&ShownView> {
        let mut own = self.open.iter();
        own.find(|view| view.user == user && !view.is_modal())
    }

    /// How many modals of a person are on top of each other.
    pub(super) fn depth(&self, user: &str) -> usize {
        let own = self.open.iter();
        own.filter(|view| view.user == user && view.is_modal())
            .count()
    }

    /// Everything that is open, as people see it.
    pub(super) fn shown(&self, world: &SlackWorld) -> Vec<Value> {
        let shown = self.open.iter().map(|view| {
            let mut shown = view.to_json(world);
            shown["user"] = json!(view.user);
            shown["errors"] = view.errors.clone();
            shown
        });
        shown.collect()
    }
}

fn filled(mut content: Value) -> Value {
    content["blocks"] = with_ids(content["blocks"].take());
    content
}

fn new_hash() -> String {
    let id = Uuid::new_v4().simple().to_string();
    format!("{}.{}", crate::wire::now_ms() / 1_000, &id[..8])
}
