//! Sign-in links, and sessions of people who are signed in.
//!
//! Both live in memory, as digests: a restart ends them, and a memory dump reveals no code. Times are those of a clock
//! that only goes forward.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::person::ConsoleUser;
use crate::rates::Rate;

/// How long a sign-in link is valid.
pub const LINK_LIVES: Duration = Duration::from_secs(300);
/// The most unused links; a further one replaces the oldest.
const LINKS_MAX: usize = 32;
/// How long a session lasts without a request.
const IDLE_MAX: Duration = Duration::from_secs(12 * 3_600);
/// How long a session lasts at most.
const LIFE_MAX: Duration = Duration::from_secs(7 * 86_400);
/// The most sessions; a further one replaces the one that was idle for the longest.
const SESSIONS_MAX: usize = 256;
/// How long the texts of a direct chat are shown after a look was recorded.
const LOOK_LIVES: Duration = Duration::from_secs(600);
/// The most direct chats that one session looks into at the same time.
const LOOKS_MAX: usize = 64;
/// Logins that one address may try in a minute.
const LOGINS_OF_ADDRESS: u32 = 5;
/// Logins that all addresses together may try in a minute.
const LOGINS: u32 = 30;
/// Requests of one session in a second. A page makes three (itself, its stream, itself anew after the first hint), so a
/// handful of open pages that all read themselves anew is far below it.
const REQUESTS: u32 = 60;
/// Searches of one session in a second.
const SEARCHES: u32 = 2;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

type Digest = [u8; 32];

/// The key of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SessionKey {
    /// The session of a cookie, by the cookie's digest.
    Cookie(Digest),
    /// The session of a person whom a proxy names.
    Proxied(String),
}

/// A person who is signed in.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) key: SessionKey,
    pub(crate) person: ConsoleUser,
}

struct Session {
    person: ConsoleUser,
    began: Instant,
    used: Instant,
    looks: HashMap<String, Instant>,
    told: Option<String>,
    requests: Rate,
    searches: Rate,
}

#[derive(Default)]
struct SessionsState {
    links: Vec<(Digest, ConsoleUser, Instant)>,
    sessions: HashMap<SessionKey, Session>,
    logins: Option<Rate>,
    logins_of: HashMap<IpAddr, Rate>,
}

/// All sessions and unused links.
#[derive(Default)]
pub struct ConsoleDoors {
    state: Mutex<SessionsState>,
}

impl std::fmt::Debug for ConsoleDoors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleDoors").finish_non_exhaustive()
    }
}

impl ConsoleDoors {
    /// A code that signs this person in once, within [`LINK_LIVES`].
    #[must_use]
    pub fn link(&self, person: ConsoleUser) -> String {
        let (code, now) = (secret(), Instant::now());
        let mut state = self.state();
        state
            .links
            .retain(|(_, _, made)| now.duration_since(*made) < LINK_LIVES);
        if state.links.len() >= LINKS_MAX {
            state.links.remove(0);
        }
        state.links.push((digest(&code), person, now));
        code
    }

    /// Whether an address may try to sign in now.
    pub(crate) fn may_try(&self, address: Option<IpAddr>) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let logins = state.logins.get_or_insert(Rate::new(now));
        if !logins.admits(LOGINS, MINUTE, now) {
            return false;
        }
        let Some(address) = address else { return true };
        state.logins_of.retain(|_, rate| !rate.is_over(MINUTE, now));
        let rate = state.logins_of.entry(address).or_insert(Rate::new(now));
        rate.admits(LOGINS_OF_ADDRESS, MINUTE, now)
    }

    /// The person whom a code signs in, and the cookie of their session. The code is used up.
    pub(crate) fn come_in(&self, code: &str) -> Option<(String, Visitor)> {
        let (borne, now) = (digest(code), Instant::now());
        let mut state = self.state();
        let at = state
            .links
            .iter()
            .position(|(link, _, made)| *link == borne && now.duration_since(*made) < LINK_LIVES)?;
        let (_, person, _) = state.links.remove(at);
        let cookie = secret();
        let key = SessionKey::Cookie(digest(&cookie));
        state.open(key.clone(), person.clone(), now);
        Some((cookie, Visitor { key, person }))
    }

    /// The visitor of a cookie's session.
    pub(crate) fn of_cookie(&self, cookie: &str) -> Option<Visitor> {
        let key = SessionKey::Cookie(digest(cookie));
        let person = self.state().used(&key, Instant::now())?.person.clone();
        Some(Visitor { key, person })
    }

    /// The visitor whom a proxy names, and whether this request signed them in.
    pub(crate) fn of_proxy(&self, person: &ConsoleUser) -> (Visitor, bool) {
        let (key, now) = (SessionKey::Proxied(person.name.clone()), Instant::now());
        let mut state = self.state();
        let is_new = state.used(&key, now).is_none();
        if is_new {
            state.open(key.clone(), person.clone(), now);
        }
        let person = person.clone();
        (Visitor { key, person }, is_new)
    }

    /// Ends a session.
    pub(crate) fn leave(&self, key: &SessionKey) {
        self.state().sessions.remove(key);
    }

    /// Whether a session may make another request in this second.
    pub(crate) fn may_ask(&self, key: &SessionKey) -> bool {
        let now = Instant::now();
        self.with(key, |session| {
            session.requests.admits(REQUESTS, SECOND, now)
        })
        .unwrap_or(false)
    }

    /// Whether a session may make another search in this second.
    pub(crate) fn may_search(&self, key: &SessionKey) -> bool {
        let now = Instant::now();
        self.with(key, |session| {
            session.searches.admits(SEARCHES, SECOND, now)
        })
        .unwrap_or(false)
    }

    /// Shows the texts of a direct chat from here on, for a while. The look was recorded before.
    pub(crate) fn open_look(&self, key: &SessionKey, room: &str) {
        let now = Instant::now();
        self.with(key, |session| {
            let looks = &mut session.looks;
            looks.retain(|_, since| now.duration_since(*since) < LOOK_LIVES);
            if looks.len() < LOOKS_MAX {
                looks.insert(room.to_owned(), now);
            }
        });
    }

    /// Whether a session looks into a direct chat.
    pub(crate) fn is_looking(&self, key: &SessionKey, room: &str) -> bool {
        let now = Instant::now();
        self.with(key, |session| {
            let since = session.looks.get(room);
            since.is_some_and(|since| now.duration_since(*since) < LOOK_LIVES)
        })
        .unwrap_or(false)
    }

    /// Keeps a sentence for the next page that a session is shown.
    pub(crate) fn tell(&self, key: &SessionKey, told: String) {
        self.with(key, |session| session.told = Some(told));
    }

    /// Takes the kept sentence.
    pub(crate) fn take_told(&self, key: &SessionKey) -> Option<String> {
        self.with(key, |session| session.told.take()).flatten()
    }

    fn with<T>(&self, key: &SessionKey, what: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.state().sessions.get_mut(key).map(what)
    }

    fn state(&self) -> MutexGuard<'_, SessionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionsState {
    fn open(&mut self, key: SessionKey, person: ConsoleUser, now: Instant) {
        self.sessions.retain(|_, session| session.is_open(now));
        if self.sessions.len() >= SESSIONS_MAX {
            let idle = self.sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some(key) = idle.map(|(key, _)| key.clone()) {
                self.sessions.remove(&key);
            }
        }
        let session = Session {
            person,
            began: now,
            used: now,
            looks: HashMap::new(),
            told: None,
            requests: Rate::new(now),
            searches: Rate::new(now),
        };
        self.sessions.insert(key, session);
    }

    /// The session of a key, if it has not expired; marks it as used now.
    fn used(&mut self, key: &SessionKey, now: Instant) -> Option<&mut Session> {
        if !self.sessions.get(key)?.is_open(now) {
            self.sessions.remove(key);
            return None;
        }
        let session = self.sessions.get_mut(key)?;
        session.used = now;
        Some(session)
    }
}

impl Session {
    fn is_open(&self, now: Instant) -> bool {
        now.duration_since(self.used) < IDLE_MAX && now.duration_since(self.began) < LIFE_MAX
    }
}

/// 256 random bits, in hexadecimal.
fn secret() -> String {
    let bytes: [u8; 32] = rand::random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Secrets are looked up by their digest, so the time of a look-up reveals nothing about them.
fn digest(text: &str) -> Digest {
    Sha256::digest(text.trim().as_bytes()).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::person::{EntryVia, UserRole};

    fn ann() -> ConsoleUser {
        ConsoleUser {
            name: "ann".to_owned(),
            role: UserRole::Operator,
            via: EntryVia::Link,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_lets_one_in_once_and_not_for_long() {
        let doors = ConsoleDoors::default();
        let code = doors.link(ann());
        assert!(doors.come_in(&code[1..]).is_none());
        let (cookie, visitor) = doors.come_in(&code).unwrap();
        assert_eq!(visitor.person, ann());
        assert!(doors.come_in(&code).is_none(), "it is used up");
        assert_eq!(doors.of_cookie(&cookie).unwrap().key, visitor.key);
        assert!(doors.of_cookie("").is_none());

        let late = doors.link(ann());
        tokio::time::advance(LINK_LIVES).await;
        assert!(doors.come_in(&late).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_nobody_uses_it_and_after_a_week() {
        let doors = ConsoleDoors::default();
        let come_in = || doors.come_in(&doors.link(ann())).unwrap().0;
        let idle = come_in();
        tokio::time::advance(IDLE_MAX).await;
        assert!(doors.of_cookie(&idle).is_none());

        let busy = come_in();
        for _ in 0..13 {
            assert!(doors.of_cookie(&busy).is_some());
            tokio::time::advance(IDLE_MAX - SECOND).await;
        }
        assert!(doors.of_cookie(&busy).is_some());
        tokio::time::advance(IDLE_MAX - SECOND).await;
        assert!(doors.of_cookie(&busy).is_some());
        tokio::time::advance(MINUTE).await;
        assert!(doors.of_cookie(&busy).is_none(), "a week is over");
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_ends_by_itself_and_is_of_one_session() {
        let doors = ConsoleDoors::default();
        let (_, one) = doors.come_in(&doors.link(ann())).unwrap();
        let (_, other) = doors.come_in(&doors.link(ann())).unwrap();
        doors.open_look(&one.key, "room");
        assert!(doors.is_looking(&one.key, "room"));
        assert!(!doors.is_looking(&one.key, "another"));
        assert!(!doors.is_looking(&other.key, "room"));
        tokio::time::advance(LOOK_LIVES).await;
        assert!(!doors.is_looking(&one.key, "room"));
    }

    #[tokio::test(start_paused = true)]
    async fn codes_can_be_tried_a_few_times_only() {
        let doors = ConsoleDoors::default();
        let tries = |of: [u8; 4]| {
            let tries = (0..20).filter(|_| doors.may_try(Some(IpAddr::from(of))));
            tries.count()
        };
        assert_eq!(tries([127, 0, 0, 1]), 5);
        assert_eq!(tries([192, 0, 2, 1]), 5);
        assert_eq!(tries([192, 0, 2, 2]), 0, "all of them have used theirs up");
        tokio::time::advance(MINUTE).await;
        assert_eq!(tries([192, 0, 2, 2]), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cookie_is_never_the_session_of_a_proxy() {
        let doors = ConsoleDoors::default();
        let (visitor, is_new) = doors.of_proxy(&ann());
        assert!(is_new);
        assert!(!doors.of_proxy(&ann()).1);
        assert!(doors.of_cookie("ann").is_none());
        doors.tell(&visitor.key, "done".to_owned());
        assert_eq!(doors.take_told(&visitor.key).as_deref(), Some("done"));
        assert_eq!(doors.take_told(&visitor.key), None);
        doors.leave(&visitor.key);
        assert!(doors.of_proxy(&ann()).1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_sessions_is_bounded() {
        let doors = ConsoleDoors::default();
        let (first, _) = doors.come_in(&doors.link(ann())).unwrap();
        for _ in 0..SESSIONS_MAX {
            tokio::time::advance(SECOND).await;
            doors.come_in(&doors.link(ann())).unwrap();
        }
        assert!(doors.of_cookie(&first).is_none());
        assert_eq!(doors.state().sessions.len(), SESSIONS_MAX);
    }
}
