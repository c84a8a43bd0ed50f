//! The frame of every page: head, navigation, the result of the last act, and error pages.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::assets::{ICON_PATH, SCRIPT_PATH, STYLE_PATH, digest};
use crate::desk::DeskError;
use crate::person::UserRole;
use crate::sessions::Visitor;
use crate::show;
use crate::state::ConsoleState;
use crate::views::Status;

/// An entry of the navigation: path, words, who sees it, and how many things wait there.
struct NavigationEntry {
    path: &'static str,
    words: &'static str,
    role: UserRole,
    count: fn(&Status) -> u64,
}

const fn entry(path: &'static str, words: &'static str, role: UserRole) -> NavigationEntry {
    NavigationEntry {
        path,
        words,
        role,
        count: |_| 0,
    }
}

const fn counted(
    path: &'static str,
    words: &'static str,
    count: fn(&Status) -> u64,
) -> NavigationEntry {
    NavigationEntry {
        path,
        words,
        role: UserRole::Viewer,
        count,
    }
}

const NAVIGATION: &[(&str, &[NavigationEntry])] = &[
    (
        "Now",
        &[
            entry("/", "Overview", UserRole::Viewer),
            counted("/approvals", "Approvals", |status| {
                status.runs.approvals_open
            }),
            counted("/questions", "Questions", |status| {
                status.runs.questions_open
            }),
            counted("/queue", "Queue", |status| {
                status.runs.queued + status.runs.leased
            }),
            counted("/held", "Held", |status| {
                status.runs.held + status.posts.held
            }),
            counted("/dead", "Given up", |status| {
                status.runs.dead + status.posts.dead
            }),
        ],
    ),
    (
        "Rooms",
        &[
            entry("/rooms", "Rooms", UserRole::Viewer),
            entry("/runs", "Runs", UserRole::Viewer),
            entry("/search", "Search", UserRole::Viewer),
            entry("/memory", "Memory", UserRole::Operator),
        ],
    ),
    (
        "House",
        &[
            entry("/schedules", "Schedules", UserRole::Viewer),
            entry("/costs", "Costs", UserRole::Viewer),
            entry("/mcp", "Servers of tools", UserRole::Viewer),
            counted("/skills", "Skills", |status| status.skills.len() as u64),
            entry("/settings", "Settings", UserRole::Operator),
            entry("/erase", "Erasure", UserRole::Admin),
            entry("/audit", "Audit", UserRole::Operator),
        ],
    ),
];

/// A page for a person who is signed in.
pub(crate) struct Page<'a> {
    /// Its title.
    pub(crate) title: &'a str,
    /// The entry of the navigation that it belongs to.
    pub(crate) at: &'static str,
    /// Its content.
    pub(crate) body: Markup,
}

impl Page<'_> {
    /// The whole page, with the current counts in the navigation.
    pub(crate) async fn shown(
        self,
        console: &ConsoleState,
        who: &Visitor,
    ) -> Result<Response, PageRefusal> {
        let status = console.status().await?;
        let told = console.doors.take_told(&who.key);
        let now_ms = console.desk.now_ms();
        let body = html! {
            a.skip href="#main" { "To the content" }
            header.top {
                a.brand href="/" { (mark()) "Vocative" }
                span.who { (show::word(&who.person.name)) " · " (who.person.role.name()) }
                form method="post" action="/logout" { button.plain type="submit" { "Log out" } }
            }
            div.frame {
                (navigation(self.at, who.person.role, &status))
                main #main tabindex="-1" {
                    @if let Some(told) = told { p.note.good role="status" { (told) } }
                    h1 { (self.title) }
                    (self.body)
                    footer {
                        "As of " (show::time(now_ms)) "."
                        span #live-state .quiet {}
                        button.plain.scripted type="button" data-theme-switch="" { "Light or dark" }
                    }
                }
            }
            p #announced .unseen role="status" aria-live="polite" {}
        };
        Ok(document(self.title, &body, true).into_response())
    }
}

fn navigation(at: &str, role: UserRole, status: &Status) -> Markup {
    let sections = html! {
        @for (section, entries) in NAVIGATION {
            @let seen: Vec<&NavigationEntry> = entries.iter().filter(|entry| entry.role <= role).collect();
            section {
                h2 { (section) }
                ul {
                    @for entry in seen {
                        @let count = (entry.count)(status);
                        li {
                            a href=(entry.path) aria-current=[(entry.path == at).then_some("page")] {
                                (entry.words)
                                @if count > 0 {
                                    " " span.count { (show::grouped(count)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        nav aria-label="Pages" {
            details #menu .menu {
                summary { "Pages" }
                (part("pages-small", &sections))
            }
            div.wide { (part("pages", &sections)) }
        }
    }
}

/// A part of a page that is read again when something changes. The browser replaces it when its digest has changed.
pub(crate) fn part(id: &str, body: &Markup) -> Markup {
    html! { div id=(id) data-live=(digest(&body.0)) { (body) } }
}

/// The logo: somebody is called by their name.
fn mark() -> Markup {
    html! { img src=(*ICON_PATH) alt="" width="24" height="24"; }
}

/// A page without navigation, for people who are not signed in.
pub(crate) fn bare(title: &str, body: &Markup) -> Html<String> {
    document(
        title,
        &html! { main #main .bare { (mark()) (body) } },
        false,
    )
}

fn document(title: &str, body: &Markup, is_live: bool) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" data-follows=[is_live.then_some("")] {
            head {
                meta charset="utf-8";
                title { (title) " · Vocative" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                link rel="stylesheet" href=(*STYLE_PATH);
                link rel="icon" href=(*ICON_PATH) type="image/svg+xml";
                script src=(*SCRIPT_PATH) defer {}
            }
            body { (body) }
        }
    };
    Html(page.into_string())
}

/// Why something is not shown or done, as a page.
#[derive(Debug)]
pub(crate) struct PageRefusal {
    status: StatusCode,
    what: String,
    advice: &'static str,
}

impl PageRefusal {
    pub(crate) fn new(status: StatusCode, what: impl Into<String>, advice: &'static str) -> Self {
        Self {
            status,
            what: what.into(),
            advice,
        }
    }

    pub(crate) fn no_page() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "there is no such page",
            "go to the overview and look from there",
        )
    }

    pub(crate) fn foreign_host() -> Self {
        Self::new(
            StatusCode::MISDIRECTED_REQUEST,
            "the console is not reached under this name",
            "ask for 127.0.0.1 or localhost, or add the name to console.hosts",
        )
    }

    pub(crate) fn foreign_page() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "the browser says that this request comes from another site",
            "nothing was changed; a proxy in front must leave the header Host as it is",
        )
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the store does not answer in time",
            "look again later; look first whether what was to be changed is",
        )
    }

    pub(crate) fn not_in() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "nobody is logged in here",
            "go to /login",
        )
    }

    pub(crate) fn too_often() -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "this was asked too often",
            "wait a minute and try again",
        )
    }

    pub(crate) fn role(role: UserRole, needed: UserRole) -> Self {
        let what = format!(
            "{} may not do this: it needs {}",
            role.name(),
            needed.name()
        );
        Self::new(
            StatusCode::FORBIDDEN,
            what,
            "console.people.NAME.role says what somebody may do",
        )
    }

    pub(crate) fn proxy(what: &'static str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            what,
            "console.trusted_proxy names those whose word counts",
        )
    }

    pub(crate) fn unknown_login() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "nobody in console.people has this login",
            "add login = \"...\" to a person there, and restart the daemon",
        )
    }

    pub(crate) fn strange() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the daemon answered in other words than the console knows",
            "this is a bug; the log of the daemon says which",
        )
    }

    pub(crate) fn wrong(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what, "nothing was changed")
    }
}

impl From<DeskError> for PageRefusal {
    fn from(cause: DeskError) -> Self {
        match cause {
            DeskError::Missing(what) => Self::new(
                StatusCode::NOT_FOUND,
                what,
                "it may have been erased, or passed its age",
            ),
            DeskError::Over(what) => Self::new(
                StatusCode::CONFLICT,
                what,
                "nothing was changed; look at it again",
            ),
            DeskError::NotTheirs(what) => Self::new(
                StatusCode::FORBIDDEN,
                what,
                "nothing was changed; have somebody else decide",
            ),
            DeskError::Wrong(what) => Self::wrong(what),
            DeskError::Unavailable(what) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, what, "try again later")
            }
        }
    }
}

impl IntoResponse for PageRefusal {
    fn into_response(self) -> Response {
        let body = html! {
            h1 { (self.status.as_u16()) " " (self.status.canonical_reason().unwrap_or_default()) }
            p.note.bad role="alert" { (show::word(&self.what)) "." }
            p { (self.advice) "." }
            p { a href="/" { "Overview" } " · " a href="/login" { "Log in" } }
        };
        (self.status, bare("Not this way", &body)).into_response()
    }
}
