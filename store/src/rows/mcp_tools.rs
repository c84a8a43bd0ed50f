//! What servers of tools offer, and what of it a person has approved.

use crate::capability::MayPin;
use crate::contract::PinnedTool;
use crate::engine::sql::{Connection, Row};
use crate::registry::{STATE, StoreTable, nobody, text};
use crate::{Reader, Store, StoreError};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[nobody(
    "mcp_tools",
    "what servers of tools offer is the operator's",
    text(&[], &[], &["server", "tool", "approved", "waiting"]),
    STATE,
)];

impl Reader {
    /// The tools of a server, or of all, by server and name.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn pinned_tools(&self, server: Option<&str>) -> Result<Vec<PinnedTool>, StoreError> {
        let server = server.map(str::to_owned);
        self.read(move |connection| pinned(connection, server.as_deref()))
            .await
    }
}

impl<C: MayPin> Store<C> {
    /// Notes what a server lists: names, and what of each is pinned. What is new or changed waits for a person, but for
    /// all that a server lists at first sight, if `trusts_first`. Returns all of its tools.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn pin_tools(
        &self,
        server: &str,
        listed: Vec<(String, String)>,
        trusts_first: bool,
        now_ms: i64,
    ) -> Result<Vec<PinnedTool>, StoreError> {
        let server = server.to_owned();
        self.write(move |connection| {
            let is_first = pinned(connection, Some(&server))?.is_empty();
            connection
                .prepare_cached("UPDATE mcp_tools SET is_listed = 0 WHERE server = ?1")?
                .execute([&server])?;
            let is_taken = is_first && trusts_first;
            for (tool, definition) in &listed {
                connection
                    .prepare_cached(
                        "INSERT INTO mcp_tools (server, tool, approved, waiting, is_listed, seen_at_ms)
                         VALUES (?1, ?2, iif(?4, ?3, NULL), iif(?4, NULL, ?3), 1, ?5)
                         ON CONFLICT (server, tool) DO UPDATE SET is_listed = 1, seen_at_ms = ?5,
                           waiting = iif(approved IS ?3, NULL, ?3)",
                    )?
                    .execute((&server, tool, definition, is_taken, now_ms))?;
            }
            pinned(connection, Some(&server))
        })
        .await
    }

    /// Approves what waits of a server: one tool, or all. Returns how many.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn approve_tools(
        &self,
        server: &str,
        tool: Option<&str>,
        now_ms: i64,
    ) -> Result<usize, StoreError> {
        let (server, tool) = (server.to_owned(), tool.map(str::to_owned));
        self.write(move |connection| {
            let approved = connection
                .prepare_cached(
                    "UPDATE mcp_tools SET approved = waiting, waiting = NULL, approved_at_ms = ?3
                     WHERE server = ?1 AND (?2 IS NULL OR tool = ?2) AND waiting IS NOT NULL",
                )?
                .execute((&server, &tool, now_ms))?;
            Ok(approved)
        })
        .await
    }
}

fn pinned(connection: &Connection, server: Option<&str>) -> Result<Vec<PinnedTool>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT server, tool, approved, waiting, is_listed FROM mcp_tools
         WHERE ?1 IS NULL OR server = ?1 ORDER BY server, tool",
    )?;
    let tool = |row: &Row<'_>| {
        Ok(PinnedTool {
            server: row.get("server")?,
            tool: row.get("tool")?,
            approved: row.get("approved")?,
            waiting: row.get("waiting")?,
            is_listed: row.get("is_listed")?,
        })
    };
    let tools = statement.query_map([server], tool)?;
    Ok(tools.collect::<Result<_, _>>()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    fn listed(tools: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |it: &(&str, &str)| (it.0.to_owned(), it.1.to_owned());
        tools.iter().map(owned).collect()
    }

    /// Each tool: its name, what is approved, what waits, whether it is listed.
    fn shown(tools: &[PinnedTool]) -> Vec<String> {
        let one = |it: &PinnedTool| {
            format!(
                "{} {:?} {:?} {}",
                it.tool, it.approved, it.waiting, it.is_listed
            )
        };
        tools.iter().map(one).collect()
    }

    #[tokio::test]
    async fn what_is_new_or_changed_waits_for_a_person() {
        let store = Scene::open().await.store;
        let pin = |server, tools: &[(&str, &str)], trusts| {
            let listed = listed(tools);
            let store = store.clone();
            async move { store.pin_tools(server, listed, trusts, 5).await.unwrap() }
        };
        let first = pin("files", &[("read", "1")], true).await;
        assert_eq!(shown(&first), [r#"read Some("1") None true"#]);
        let changed = pin("files", &[("read", "2"), ("write", "1")], true).await;
        let expected = [
            r#"read Some("1") Some("2") true"#,
            r#"write None Some("1") true"#,
        ];
        assert_eq!(shown(&changed), expected);
        // A definition that was approved before needs no new approval when it is back.
        let back = pin("files", &[("read", "1")], true).await;
        let expected = [
            r#"read Some("1") None true"#,
            r#"write None Some("1") false"#,
        ];
        assert_eq!(shown(&back), expected);
        assert_eq!(
            store
                .approve_tools("files", Some("write"), 6)
                .await
                .unwrap(),
            1
        );
        assert_eq!(store.approve_tools("files", None, 6).await.unwrap(), 0);
        let reviewed = pin("other", &[("read", "1")], false).await;
        assert_eq!(shown(&reviewed), [r#"read None Some("1") true"#]);
        assert_eq!(store.pinned_tools(None).await.unwrap().len(), 3);
    }
}
