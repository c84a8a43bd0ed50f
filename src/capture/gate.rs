//! The gate of one channel: the lists in force, and the platform's directory if the lists ask who belongs to whom.
//! Intake, read-back, home pages, questions, files and inquiries go through it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::time::timeout;
use tracing::{debug, warn};
use vocative_contract::envelope::{Belonging, ChatKind, Place, Sender, SenderKind};
use vocative_contract::handles::LookUps;

use vocative_core::addressing::Access;
use vocative_core::judging::access::{PlaceAccess, access, place_access};
use vocative_core::judging::policy::ChannelPolicy;

/// The time limit for looking up the sender of a live message. *Source:* Slack waits three seconds for an
/// acknowledgement.
const LIVE_WITHIN: Duration = Duration::from_millis(1_500);
/// The time limit for looking up the sender of a message that is read back.
const READ_BACK_WITHIN: Duration = Duration::from_secs(60);

/// Whether the platform waits for the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// It waits.
    Live,
    /// The message is read back from history.
    ReadBack,
}

/// Decides who is let in.
pub struct Gate {
    policy: RwLock<Arc<ChannelPolicy>>,
    directory: Option<Arc<dyn LookUps>>,
    /// A failing directory is warned of once.
    is_failing: AtomicBool,
}

impl Gate {
    /// A gate with these lists, and without a directory: a person who may be an outsider counts as one.
    #[must_use]
    pub fn new(policy: ChannelPolicy) -> Self {
        Self {
            policy: RwLock::new(Arc::new(policy)),
            directory: None,
            is_failing: AtomicBool::new(false),
        }
    }

    /// The same gate with the platform's directory.
    #[must_use]
    pub fn with_directory(self, directory: Arc<dyn LookUps>) -> Self {
        Self {
            directory: Some(directory),
            ..self
        }
    }

    /// Puts another policy in force; people who were let in by a code stay so.
    pub fn set_policy(&self, policy: ChannelPolicy) {
        let mut held = self.policy.write().expect("no holder of this lock panics");
        let paired = held.paired.clone();
        *held = Arc::new(ChannelPolicy { paired, ..policy });
    }

    /// Sets who is let in by a code, by platform id.
    pub fn set_paired(&self, people: BTreeSet<String>) {
        let mut held = self.policy.write().expect("no holder of this lock panics");
        let mut policy = ChannelPolicy::clone(&held);
        policy.paired = Arc::new(people);
        *held = Arc::new(policy);
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> Arc<ChannelPolicy> {
        Arc::clone(&self.policy.read().expect("no holder of this lock panics"))
    }

    /// Whether anybody may be served in a place, so that it is worth reading.
    #[must_use]
    pub fn may_serve(&self, chat: &str, kind: Option<ChatKind>) -> bool {
        place_access(chat, kind, &self.policy()) != PlaceAccess::Closed
    }

    /// Whether content of a chat may be stored, or posted there, without a person who asked for it.
    #[must_use]
    pub fn is_open(&self, chat: &str, kind: Option<ChatKind>) -> bool {
        let policy = self.policy();
        match place_access(chat, kind, &policy) {
            PlaceAccess::Open => true,
            // On Telegram the id of a direct chat is that of its person.
            PlaceAccess::ByPerson => {
                policy.allow_people.allows(chat)
                    || policy.admins.iter().any(|id| id == chat)
                    || (policy.has_pairing && policy.paired.contains(chat))
            }
            PlaceAccess::Closed => false,
        }
    }

    /// The directory's answer about a person, if the lists depend on it.
    pub async fn belonging(
        &self,
        place: &Place,
        sender: &Sender,
        haste: Haste,
    ) -> Option<Belonging> {
        let directory = self.directory.as_ref()?;
        let policy = self.policy();
        let would = |belonging| access(place, place.kind, sender, belonging, &policy);
        let is_decided = would(None) == Access::Served;
        if is_decided || would(Some(Belonging::Member)) != Access::Served {
            return None;
        }
        let within = match haste {
            Haste::Live => LIVE_WITHIN,
            Haste::ReadBack => READ_BACK_WITHIN,
        };
        let (reason, found) = match timeout(within, directory.belonging(&sender.id)).await {
            Ok(Ok(found)) => (None, found),
            Ok(Err(cause)) => (Some(cause.reason()), None),
            Err(_) => (Some("no answer in time".to_owned()), None),
        };
        let is_news = self.is_failing.swap(reason.is_some(), Ordering::Relaxed) != reason.is_some();
        if let Some(reason) = reason {
            let what = "somebody could not be looked up, and is taken for an outsider";
            match is_news {
                true => warn!(channel.id = %policy.channel, reason, "{what}"),
                false => debug!(channel.id = %policy.channel, reason, "{what}"),
            }
        }
        found
    }

    /// Whether a person is in a chat now, according to the platform. Without an answer in time, the person is not.
    pub async fn is_member(&self, place: &Place, person: &str) -> bool {
        // A press in a direct chat is by the person of that chat.
        if place.kind == Some(ChatKind::Direct) {
            return true;
        }
        let Some(directory) = self.directory.as_ref() else {
            return false;
        };
        match timeout(LIVE_WITHIN, directory.is_member(&place.chat, person)).await {
            Ok(Ok(found)) => found == Some(true),
            Ok(Err(cause)) => {
                let reason = cause.reason();
                warn!(
                    reason,
                    "it could not be looked up who is in a chat; nobody decides as one who is"
                );
                false
            }
            Err(_) => {
                warn!(
                    "the look-up of who is in a chat took too long; nobody decides as one who is"
                );
                false
            }
        }
    }

    /// The name that people see for a person, if the platform tells it in time.
    pub async fn shown_name(&self, person: &str) -> Option<String> {
        let directory = self.directory.as_ref()?;
        let found = timeout(LIVE_WITHIN, directory.person_name(person)).await;
        found.ok()?.ok()?
    }

    /// Whether a sender is served in a place now.
    pub async fn admits(&self, place: &Place, sender: &Sender) -> bool {
        let belonging = self.belonging(place, sender, Haste::Live).await;
        let policy = self.policy();
        access(place, place.kind, sender, belonging, &policy) == Access::Served
    }

    /// Whether a person who was served before is still served, by the lists. Stored turns don't say whether a person
    /// or another bot wrote them.
    #[must_use]
    pub fn still_admits(&self, place: &Place, person: Option<&str>) -> bool {
        let policy = self.policy();
        let Some(id) = person else {
            return self.may_serve(&place.chat, place.kind);
        };
        let as_a = |kind| {
            let sender = Sender {
                id: id.to_owned(),
                display_name: None,
                username: None,
                kind,
                is_stranger: false,
            };
            access(place, place.kind, &sender, Some(Belonging::Member), &policy) == Access::Served
        };
        as_a(SenderKind::Person) || (policy.allow_bots.allows(id) && as_a(SenderKind::Bot))
    }
}
