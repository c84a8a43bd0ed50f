//! Checks of `[console]`: the address it listens on, who may sign in, and which proxies may say who somebody is.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::Deserialize;

use super::resolve::Review;
use super::tools::people;
use crate::tools::PersonName;

/// The web console: pages for operators.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsoleShape {
    /// Whether it is served.
    pub enabled: bool,
    /// Address and port. One that other machines reach needs `hosts`, and TLS in front.
    pub listen: String,
    /// Names under which it is reached through a proxy; requests to other names are refused.
    pub hosts: Vec<String>,
    /// Addresses of proxies that say in a header who somebody is.
    pub trusted_proxy: Vec<String>,
    /// The header in which they say it.
    pub user_header: String,
    /// Who may come in, by the names under which what they do is recorded.
    #[serde(default)]
    pub people: BTreeMap<String, ConsolePersonShape>,
}

/// Somebody who may use the console.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsolePersonShape {
    /// What they may do: viewer (see all but texts of direct chats), operator (look into direct chats, each time recorded, and decide
    /// about what waits), admin (erase, approve tools of servers, reload). Required.
    pub role: Option<ConsoleRole>,
    /// What the proxy's header says of them.
    pub login: Option<String>,
    /// Who they are in rooms, as CHANNEL/ID: where a tool's approvers name one of these, they may allow its calls here.
    #[serde(default)]
    pub people: Vec<String>,
}

/// What somebody may do in the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsoleRole {
    /// See all but texts of direct chats.
    Viewer,
    /// Look into direct chats, and decide about what waits.
    Operator,
    /// Erase, approve tools of servers, reload.
    Admin,
}

/// A person who may use the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsolePerson {
    /// The name under which what they do is recorded.
    pub name: String,
    /// What they may do.
    pub role: ConsoleRole,
    /// The value of the proxy's header for this person.
    pub login: Option<String>,
    /// Who this person is in rooms.
    pub people: Vec<PersonName>,
}

/// The web console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    /// Whether it is served.
    pub enabled: bool,
    /// The address it listens on.
    pub listen: SocketAddr,
    /// Host names of the console, besides those of this machine.
    pub hosts: Vec<String>,
    /// Addresses of proxies whose user header counts.
    pub trusted_proxies: Vec<IpAddr>,
    /// The header in which proxies send the user.
    pub user_header: String,
    /// The people who may sign in.
    pub people: Vec<ConsolePerson>,
}

/// Checks the whole table. The result is to be used only if no problem was found.
pub(super) fn resolve_console(
    shape: ConsoleShape,
    channels: &[&str],
    review: &mut Review<'_>,
) -> Console {
    let listen = shape.listen.parse().unwrap_or_else(|_| {
        review.problem(
            "console.listen",
            "must be an address and a port, like 127.0.0.1:8089",
        );
        SocketAddr::from(([127, 0, 0, 1], 0))
    });
    if shape.enabled && !listen.ip().is_loopback() && shape.hosts.is_empty() {
        review.advise(
            "console.listen",
            format!("other machines may reach {listen}, and the console speaks no TLS itself"),
            Some("listen on 127.0.0.1, or name in console.hosts how a proxy with TLS in front is reached".to_owned()),
        );
    }
    check_hosts(&shape.hosts, review);
    let mut trusted_proxies = Vec::new();
    for address in &shape.trusted_proxy {
        match address.parse::<IpAddr>() {
            Ok(address) => trusted_proxies.push(address.to_canonical()),
            Err(_) => review.problem(
                "console.trusted_proxy",
                format!("{address:?} is no address; name each proxy by its own, like 10.0.0.2"),
            ),
        }
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if shape.user_header.is_empty() || !shape.user_header.chars().all(is_name) {
        review.problem("console.user_header", "is no name of a header");
    }
    let people = resolve_people(shape.people, channels, review);
    if shape.enabled && people.is_empty() && review.problems.is_empty() {
        review.advise(
            "console.enabled",
            "nobody may come in".to_owned(),
            Some("add [console.people.NAME] with role = \"admin\"".to_owned()),
        );
    }
    let logins = people.iter().any(|person| person.login.is_some());
    if logins && trusted_proxies.is_empty() {
        review.problem(
            "console.trusted_proxy",
            "people have a login, and no proxy is named whose word about it counts",
        );
    }
    Console {
        enabled: shape.enabled,
        listen,
        hosts: shape.hosts,
        trusted_proxies,
        user_header: shape.user_header,
        people,
    }
}

fn check_hosts(hosts: &[String], review: &mut Review<'_>) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    for host in hosts {
        if host.is_empty() || !host.chars().all(is_plain) {
            let what = format!("{host:?} is no name of a machine; leave scheme, port and path out");
            review.problem("console.hosts", what);
        }
    }
}

fn resolve_people(
    shapes: BTreeMap<String, ConsolePersonShape>,
    channels: &[&str],
    review: &mut Review<'_>,
) -> Vec<ConsolePerson> {
    let mut resolved: Vec<ConsolePerson> = Vec::new();
    for (name, shape) in shapes {
        let table = format!("console.people.{name}");
        let Some(role) = shape.role else {
            review.problem(
                &format!("{table}.role"),
                "must be one of viewer, operator, admin",
            );
            continue;
        };
        let login = shape.login.as_ref();
        if login.is_some_and(|login| resolved.iter().any(|it| it.login.as_ref() == Some(login))) {
            review.problem(&format!("{table}.login"), "is another person's, too");
        }
        resolved.push(ConsolePerson {
            people: people(&format!("{table}.people"), &shape.people, channels, review),
            name,
            role,
            login: shape.login,
        });
    }
    resolved
}
