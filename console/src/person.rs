//! Who uses the console, and what their role allows. Both come from the configuration, never from a request.

/// What somebody may do in the console. Each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserRole {
    /// Sees everything but the texts of direct chats, settings and the audit.
    Viewer,
    /// Looks into direct chats, with a row in the audit for each look, and decides about what waits.
    Operator,
    /// Erases, approves tools of servers, and has the configuration read again.
    Admin,
}

impl UserRole {
    /// As settings say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// How somebody came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryVia {
    /// By a link from the command line.
    Link,
    /// By the header of a proxy.
    Proxy,
}

impl EntryVia {
    /// As the audit says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Proxy => "proxy",
        }
    }
}

/// Somebody who uses the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleUser {
    /// Their name in the configuration; what they do is recorded under it.
    pub name: String,
    /// What they may do.
    pub role: UserRole,
    /// How they came in.
    pub via: EntryVia,
}
