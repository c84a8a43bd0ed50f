//! Who uses the console, and what their role allows. Both come from the configuration, never from a request.

/// What a user may do in the console. Each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserRole {
    /// Sees everything except the texts of direct chats, settings and the audit.
    Viewer,
    /// Looks into direct chats, with a row in the audit for each look, and decides about what waits.
    Operator,
    /// Erases, approves tools of servers, and has the configuration read again.
    Admin,
}

impl UserRole {
    /// The name used in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// How a user signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryVia {
    /// By a link from the command line.
    Link,
    /// By the header of a proxy.
    Proxy,
}

impl EntryVia {
    /// The name used in the audit.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Proxy => "proxy",
        }
    }
}

/// A user of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleUser {
    /// Their name in the configuration; what they do is recorded under it.
    pub name: String,
    /// Their role.
    pub role: UserRole,
    /// How they signed in.
    pub via: EntryVia,
}
