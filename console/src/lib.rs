//! The web console: pages that show what a daemon does, and forms with which people decide.
//!
//! Everything a page shows comes from a [`Desk`], which the daemon implements; the console knows no store, no agent and
//! no configuration. Each page shows what strangers typed, so texts are escaped by their type (maud), the browser runs
//! one script of ours that knows fixed ids, and `walls` stand around every request.
//!
//! Reading order: `desk` (what may be read and done), `person` (who, and what their role allows), `walls`, `sessions`,
//! `state`, `login`, `page` (the frame of a page), `views` (what the desk answers), then a file per page in `pages`.

mod assets;
mod desk;
mod live;
mod login;
mod page;
mod pages;
mod person;
mod rates;
mod sessions;
mod show;
mod state;
mod views;
mod walls;

pub use desk::{Ask, Deed, Desk, DeskAnswer, DeskError, Done, EraseChoice, Trace};
pub use person::{ConsoleUser, EntryVia, UserRole};
pub use sessions::{ConsoleDoors, LINK_LIVES};
pub use state::{PeerAddress, Settings, router};
