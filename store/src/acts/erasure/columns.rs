//! Searches the database's own rows for what was erased: every column that may hold people's words or names,
//! according to the registry.

use super::needles::Needles;
use crate::StoreError;
use crate::engine::sql::Connection;
use crate::registry::FULL_TEXT;
use crate::rows::tables;

/// A column that holds something erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnHit {
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// In how many rows.
    pub rows: u64,
}

/// Searches every column of words or names. A full-text index holds no texts: its bytes are searched with the file.
pub(super) fn search_columns(
    connection: &Connection,
    needles: &Needles,
) -> Result<Vec<ColumnHit>, StoreError> {
    let mut hits = Vec::new();
    for table in tables()
        .into_iter()
        .filter(|table| !FULL_TEXT.contains(&table.name))
    {
        for column in table.spoken() {
            let name = table.name;
            let sql = format!("SELECT {column} FROM {name} WHERE {column} IS NOT NULL");
            let mut statement = connection.prepare_cached(&sql)?;
            let mut found = statement.query([])?;
            let mut rows = 0;
            while let Some(row) = found.next()? {
                let text: String = row.get(column)?;
                rows += u64::from(needles.is_in(&text, |_| true));
            }
            if rows > 0 {
                hits.push(ColumnHit {
                    table: name,
                    column,
                    rows,
                });
            }
        }
    }
    Ok(hits)
}
