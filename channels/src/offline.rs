//! The offline half of an adapter: what can be done with a platform's messages without its account.

use std::path::Path;

use vocative_contract::identity::Identity;

use crate::export::{Export, ExportError};
use crate::permalink::MessageIds;

/// Opens an export that was made by an account.
type OpenExport = fn(&Path, &Identity) -> Result<Box<dyn Export>, ExportError>;

/// What an adapter offers without a connection.
pub(crate) struct OfflineHalf {
    /// The address at which people open a message; `None` where its kind of chat has none.
    pub(crate) permalink: fn(&MessageIds<'_>) -> Option<String>,
    /// Opens an export of the platform's history.
    pub(crate) open_export: OpenExport,
}
