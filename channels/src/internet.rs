//! Hosts of the public internet, as opposed to one's own machines and networks: files that a platform only links to are
//! fetched from there. What comes from there is shown to people, so nothing may come from an address that only this
//! machine can reach.
//!
//! A name is judged by what it resolves to, and only the addresses that were judged are connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url};

use crate::http::{HttpTimeouts, client_resolving, direct_client_resolving};
use vocative_contract::channel::BoxFuture;
use vocative_contract::error::ChannelError;

/// Endings of names that never belong to the public internet. Source: RFC 6761, RFC 6762, RFC 8375, ICANN's reservation
/// of `.internal`; `lan` and `home` are what routers use.
const OWN_ENDINGS: [&str; 6] = ["localhost", "local", "internal", "lan", "home", "arpa"];

/// Networks that are not the internet, though their addresses look like it: their first address and
/// how many bits count. Source: IANA's IPv4 and IPv6 Special-Purpose Address Registries; Azure's
/// metadata server is at a public address.
const OWN_V4: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Why a name was not connected to.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to no address of the internet")]
struct NotOfTheInternet;

/// Whether an address may be on the public internet, as far as its text tells.
pub(crate) fn may_be_of_it(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse();
    ip.map_or_else(|_| is_name_of_it(host), is_of_it)
}

/// A client for one address that asks no proxy. Unless `admits_own`, the address must be of the internet, and its
/// name is not connected to where it resolves to a machine or a network of one's own.
///
/// # Errors
/// [`ChannelError::NotSent`] if the address is none of the internet, or a client can't be made.
pub fn direct_client(
    timeouts: HttpTimeouts,
    address: &Url,
    admits_own: bool,
) -> Result<Client, ChannelError> {
    if !admits_own && !may_be_of_it(address) {
        return Err(ChannelError::NotSent {
            operation: "http client",
            cause: Box::new(NotOfTheInternet),
        });
    }
    // No host has an empty name, so nothing is guarded.
    let guarded = match admits_own {
        true => "",
        false => address.host_str().unwrap_or_default(),
    };
    direct_client_resolving(timeouts, Guard::new(guarded, Arc::new(ask)))
}

/// A client for one address: its name is not connected to where it resolves to a machine or a network
/// of one's own. A proxy, which is asked with the name, is reached wherever it is.
///
/// # Errors
/// As [`crate::http::client`].
pub(crate) fn client(timeouts: HttpTimeouts, address: &Url) -> Result<Client, ChannelError> {
    let guarded = address.host_str().unwrap_or_default();
    client_resolving(timeouts, Guard::new(guarded, Arc::new(ask)))
}

/// Whether a request failed because its name resolves to no address of the public internet.
pub fn leads_elsewhere(error: &reqwest::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<NotOfTheInternet>() {
            return true;
        }
        source = cause.source();
    }
    false
}

fn is_name_of_it(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    name.contains('.') && !OWN_ENDINGS.contains(&last)
}

fn is_of_it(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_v4_of_it(ip),
        IpAddr::V6(ip) => is_v6_of_it(ip),
    }
}

fn is_v4_of_it(ip: Ipv4Addr) -> bool {
    let is_in =
        |(first, bits): &(Ipv4Addr, u32)| (ip.to_bits() ^ first.to_bits()) >> (32 - bits) == 0;
    !OWN_V4.iter().any(is_in)
}

fn is_v6_of_it(ip: Ipv6Addr) -> bool {
    let [a, b, c, d, .., y, z] = ip.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match (a, b, c, d) {
        // Loopback, "any", and the forms that hold an IPv4 address: mapped, compatible.
        (0, ..) => ip.to_ipv4_mapped().is_some_and(is_v4_of_it),
        // NAT64 and 6to4 lead to the IPv4 address that they hold.
        (0x64, 0xff9b, 0, 0) => is_v4_of_it(v4(y, z)),
        (0x2002, high, low, _) => is_v4_of_it(v4(high, low)),
        // Teredo, benchmarks, documentation.
        (0x2001, 0 | 2 | 0xdb8, ..) => false,
        // All global unicast addresses that were ever assigned. Source: IANA, "IPv6 Global Unicast Address
        // Assignments".
        _ => (0x2000..0x4000).contains(&a) && (a & 0xfff0) != 0x3ff0,
    }
}

type Lookup = BoxFuture<'static, std::io::Result<Vec<SocketAddr>>>;

/// Resolves names, and the guarded name to addresses of the public internet only.
struct Guard {
    name: String,
    ask: Arc<dyn Fn(String) -> Lookup + Send + Sync>,
}

impl Guard {
    fn new(name: &str, ask: Arc<dyn Fn(String) -> Lookup + Send + Sync>) -> Self {
        Self {
            name: name.to_owned(),
            ask,
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let is_guarded = name.as_str().eq_ignore_ascii_case(&self.name);
        let asked = (self.ask)(name.as_str().to_owned());
        Box::pin(async move {
            let mut found = asked.await?;
            if is_guarded {
                found.retain(|address| is_of_it(address.ip()));
                if found.is_empty() {
                    return Err(NotOfTheInternet.into());
                }
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The system's resolver.
fn ask(name: String) -> Lookup {
    Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn addresses_of_ones_own_machines_and_networks_are_none_of_the_internet() {
        let judged = |ip: &str| is_of_it(ip.parse().unwrap());
        for good in [
            "93.184.216.34",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.32.0.1",
            "2606:2800:220:1::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(judged(good), "{good}");
        }
        for bad in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.0.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:a00:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
        ] {
            assert!(!judged(bad), "{bad}");
        }
    }

    fn answers(ips: &'static [&'static str]) -> Arc<dyn Fn(String) -> Lookup + Send + Sync> {
        Arc::new(|_| {
            let found = ips.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0));
            Box::pin(std::future::ready(Ok(found.collect())))
        })
    }

    async fn resolved(guard: &Guard, name: &str) -> Option<Vec<String>> {
        let found = guard.resolve(name.parse().unwrap()).await;
        let shown = |found: Addrs| found.map(|it| it.ip().to_string()).collect();
        found.ok().map(shown)
    }

    #[tokio::test]
    async fn a_guarded_name_has_its_addresses_of_the_internet_and_others_have_all() {
        let both = Guard::new("cdn.example", answers(&["10.0.0.1", "8.8.8.8", "::1"]));
        let found = resolved(&both, "CDN.example").await;
        assert_eq!(found, Some(vec!["8.8.8.8".to_owned()]));
        let proxy = resolved(&both, "proxy.example").await;
        assert_eq!(proxy.map(|found| found.len()), Some(3));
        let own = Guard::new("cdn.example", answers(&["::ffff:127.0.0.1", "fd00::1"]));
        assert_eq!(resolved(&own, "cdn.example").await, None);
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_never_connected_to() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://cdn.example:{port}/x");
        for (guarded, leads) in [("cdn.example", true), ("other.example", false)] {
            let guard = Guard::new(guarded, answers(&["127.0.0.1"]));
            let client = client_resolving(HttpTimeouts::default(), guard).unwrap();
            let asked = tokio::spawn(client.get(&url).send());
            if leads {
                let error = asked.await.unwrap().unwrap_err();
                assert!(leads_elsewhere(&error), "{error:?}");
            } else {
                // Only the guarded name is refused: the listener's first connection is for the other name.
                listener.accept().await.unwrap();
                asked.abort();
            }
        }
    }
}
