//! Places for requests whose bodies are being read, shared by channel and by peer.
//!
//! Who sent a body is known only when it is whole: its signature is over all of it. So anybody may send
//! one, and send it slowly. No channel and no peer has more than its share of the places, and when no
//! place is left, the slowest body of whoever has used theirs up gives way. A body that comes in a few
//! packets, as those of platforms do, is never the slowest for long.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The most bodies that are read at the same time.
pub(super) const BODIES_MAX: usize = 64;
/// The most bodies of one channel that are read at the same time.
pub(super) const BODIES_OF_CHANNEL_MAX: usize = 32;
/// The most bodies of one peer that are read at the same time.
pub(super) const BODIES_OF_PEER_MAX: usize = 16;
/// A body younger than this never gives way: it has had no time to be fast.
const YOUNG: Duration = Duration::from_millis(100);

/// From where a body comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer(IpAddr);

impl Peer {
    /// The peer of an address. An IPv6 /64 network counts as one peer: its hosts choose the other bits themselves.
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self(IpAddr::from([a, b, c, d, 0, 0, 0, 0]))
            }
            address @ IpAddr::V4(_) => Self(address),
        }
    }

    /// Whether it stands for others: a proxy on this machine brings everybody's requests.
    fn is_proxy(self) -> bool {
        self.0.is_loopback()
    }
}

/// The bodies that are being read.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    reading: Mutex<BodyReading>,
}

#[derive(Debug, Default)]
struct BodyReading {
    newest: u64,
    by_id: HashMap<u64, Body>,
}

#[derive(Debug)]
struct Body {
    channel: String,
    peer: Peer,
    since: Instant,
    bytes: usize,
    leave: Arc<Notify>,
}

impl Body {
    /// Bytes a second.
    fn rate(&self, now: Instant) -> u128 {
        let micros = now.duration_since(self.since).as_micros().max(1);
        (self.bytes as u128).saturating_mul(1_000_000) / micros
    }
}

impl BodyReading {
    fn count(&self, is_it: impl Fn(&Body) -> bool) -> usize {
        self.by_id.values().filter(|body| is_it(body)).count()
    }

    /// The slowest of some bodies that are no longer young.
    fn slowest(&self, now: Instant, is_it: impl Fn(&Body) -> bool) -> Option<u64> {
        let old = self
            .by_id
            .iter()
            .filter(|(_, body)| is_it(body) && now.duration_since(body.since) >= YOUNG);
        let slowest = old.min_by_key(|(id, body)| (body.rate(now), **id));
        slowest.map(|(id, _)| *id)
    }

    /// Makes room for one more body, if need be: `false` if none can give way yet.
    fn make_room(&mut self, channel: &str, peer: Peer, now: Instant) -> bool {
        let is_peers = |body: &Body| body.peer == peer && !peer.is_proxy();
        let is_channels = |body: &Body| body.channel == channel;
        let slowest = if self.count(is_peers) >= BODIES_OF_PEER_MAX {
            self.slowest(now, is_peers)
        } else if self.count(is_channels) >= BODIES_OF_CHANNEL_MAX {
            self.slowest(now, is_channels)
        } else if self.by_id.len() >= BODIES_MAX {
            self.slowest(now, |_| true)
        } else {
            return true;
        };
        let Some(body) = slowest.and_then(|id| self.by_id.remove(&id)) else {
            return false;
        };
        body.leave.notify_one();
        true
    }
}

impl Bodies {
    /// A place for one more body; `None` if no other body can give way yet.
    pub(super) fn enter(self: &Arc<Self>, channel: &str, peer: Peer) -> Option<BodyPlace> {
        let now = Instant::now();
        let mut reading = self.reading();
        if !reading.make_room(channel, peer, now) {
            return None;
        }
        reading.newest += 1;
        let (id, leave) = (reading.newest, Arc::new(Notify::new()));
        let body = Body {
            channel: channel.to_owned(),
            peer,
            since: now,
            bytes: 0,
            leave: Arc::clone(&leave),
        };
        reading.by_id.insert(id, body);
        Some(BodyPlace {
            bodies: Arc::clone(self),
            id,
            leave,
        })
    }

    fn reading(&self) -> MutexGuard<'_, BodyReading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one body, until it is dropped or has to give way.
#[derive(Debug)]
pub(super) struct BodyPlace {
    bodies: Arc<Bodies>,
    id: u64,
    leave: Arc<Notify>,
}

impl BodyPlace {
    /// Notes how much of the body has come.
    pub(super) fn note(&self, bytes: usize) {
        if let Some(body) = self.bodies.reading().by_id.get_mut(&self.id) {
            body.bytes = bytes;
        }
    }

    /// Waits until it has to give way.
    pub(super) async fn given_up(&self) {
        self.leave.notified().await;
    }
}

impl Drop for BodyPlace {
    fn drop(&mut self) {
        self.bodies.reading().by_id.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::time::{advance, timeout};

    use super::*;

    fn peer(n: u8) -> Peer {
        Peer::of(IpAddr::from([192, 0, 2, n]))
    }

    async fn gave_way(place: &BodyPlace) -> bool {
        let asked = timeout(Duration::from_millis(1), place.given_up());
        asked.await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_body_of_who_has_used_its_share_up_gives_way() {
        let bodies = Arc::<Bodies>::default();
        let enter = |channel: &str, n| bodies.enter(channel, peer(n));
        let flood: Vec<_> = (0..BODIES_OF_PEER_MAX)
            .map(|_| enter("acme", 1).unwrap())
            .collect();
        // All are young.
        assert!(enter("acme", 1).is_none());
        advance(YOUNG).await;
        for (bytes, place) in flood.iter().enumerate() {
            place.note(1_000 - bytes);
        }
        let further = enter("acme", 1).unwrap();
        let slowest = flood.last().unwrap();
        assert!(gave_way(slowest).await);
        assert!(!gave_way(&flood[0]).await && !gave_way(&further).await);
        // Another peer has places of its own, until those of the channel are used up: then the channel's next
        // slowest body gives way.
        let others: Vec<_> = (0..BODIES_OF_CHANNEL_MAX - BODIES_OF_PEER_MAX)
            .map(|_| enter("acme", 2).unwrap())
            .collect();
        assert!(!gave_way(&flood[BODIES_OF_PEER_MAX - 2]).await);
        let platform = enter("acme", 3).unwrap();
        assert!(gave_way(&flood[BODIES_OF_PEER_MAX - 2]).await);
        // Another channel has places of its own.
        let other = enter("team", 3).unwrap();
        assert!(!gave_way(&platform).await && !gave_way(&other).await);
        assert_eq!(bodies.reading().by_id.len(), BODIES_OF_CHANNEL_MAX + 1);
        drop((flood, others));
        assert_eq!(bodies.reading().by_id.len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn where_many_peers_and_channels_fill_all_places_the_slowest_of_all_gives_way() {
        let bodies = Arc::<Bodies>::default();
        let channels = ["a", "b", "c", "d"];
        let all: Vec<_> = (0..BODIES_MAX)
            .map(|n| {
                let n = u8::try_from(n).unwrap();
                let channel = channels[usize::from(n) % channels.len()];
                bodies.enter(channel, peer(n)).unwrap()
            })
            .collect();
        advance(YOUNG).await;
        for (n, place) in all.iter().enumerate() {
            place.note(if n == 17 { 1 } else { 1_000 });
        }
        let quick = bodies.enter("e", peer(200)).unwrap();
        assert!(gave_way(&all[17]).await);
        // A body that is complete before it is old never gives way.
        drop(quick);
        assert!(bodies.enter("e", peer(200)).is_some());
        assert_eq!(bodies.reading().by_id.len(), BODIES_MAX - 1);
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_proxy_of_this_machine_peers_are_not_told_apart() {
        let bodies = Arc::<Bodies>::default();
        let proxy = Peer::of(IpAddr::from([127, 0, 0, 1]));
        let enter = |channel| bodies.enter(channel, proxy);
        let of_acme: Vec<_> = (0..BODIES_OF_CHANNEL_MAX)
            .map(|_| enter("acme").unwrap())
            .collect();
        let of_team: Vec<_> = (0..BODIES_OF_CHANNEL_MAX)
            .map(|_| enter("team").unwrap())
            .collect();
        assert_eq!(of_acme.len() + of_team.len(), BODIES_MAX);
        assert!(enter("acme").is_none());
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let of = |address: &str| Peer::of(address.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::"));
        assert_ne!(of("2001:db8:1:2::"), of("2001:db8:1:3::"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
