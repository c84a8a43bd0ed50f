//! The settings in force, each with where it comes from. They can be changed only in files.

use axum::extract::State;
use maud::{Markup, html};

use super::{PageResult, button};
use crate::desk::{Ask, Deed};
use crate::page::Page;
use crate::person::UserRole;
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::Setting;

/// All settings.
pub(crate) async fn settings(State(console): State<ConsoleState>, who: Who) -> PageResult {
    let found: Vec<Setting> = console.ask(Ask::Settings).await?;
    let (own, defaults): (Vec<_>, Vec<_>) = found
        .iter()
        .partition(|setting| setting.origin != "default");
    let body = html! {
        p.quiet {
            "As they were read when the daemon started or read its configuration again. Secrets are only referred to. They are changed in \
             the file, and nowhere else."
        }
        @if who.person.role >= UserRole::Admin {
            p.tools { (button("/reload", "Read the configuration again", "", Some("Read the configuration again?"))) }
        }
        h2 { "Set by you" }
        (table(&own))
        details.more {
            summary { "Defaults (" (defaults.len()) ")" }
            (table(&defaults))
        }
    };
    let page = Page {
        title: "Settings",
        at: "/settings",
        body,
    };
    page.shown(&console, &who).await
}

fn table(settings: &[&Setting]) -> Markup {
    html! {
        table.settings {
            caption.unseen { "Settings" }
            thead { tr { th scope="col" { "Setting" } th scope="col" { "Value" } th scope="col" { "From" } } }
            tbody { @for it in settings {
                tr {
                    th scope="row" data-label="Setting" { code { (it.key) } }
                    td data-label="Value" { code { (show::word(&show::beginning(&it.value, 400))) } }
                    td data-label="From" { (show::word(&it.origin)) }
                }
            } }
        }
    }
}

/// Reads the configuration again.
pub(crate) async fn reload(State(console): State<ConsoleState>, who: Who) -> PageResult {
    console.act(&who, Deed::Reload, "/settings").await
}
