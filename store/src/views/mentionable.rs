//! Who spoke in a conversation of late: whom an answer there may mention.

use crate::engine::sql::Connection;
use vocative_contract::people::Person;

use crate::{Reader, StoreError};
use vocative_core::ids::ConversationId;

/// How many of the newest turns are read for people who can be mentioned, in the conversation and in its
/// thread's room.
const TURNS_READ: u32 = 500;

/// People by the newest turns, of which the index of positions gives the newest first.
const MENTIONABLE_SQL: &str = "
    WITH places (id) AS (
        SELECT id FROM conversations WHERE uuid = ?1
        UNION SELECT parent_id FROM conversations WHERE uuid = ?1 AND parent_id IS NOT NULL
    )
    SELECT DISTINCT p.platform_id, p.display_name, p.username
    FROM places CROSS JOIN turns t ON t.seq IN (
        SELECT n.seq FROM turns n WHERE n.conversation_id = places.id
        ORDER BY n.sent_at_ms DESC, n.ordinal DESC, n.seq DESC LIMIT ?2)
    JOIN participants p ON p.id = t.participant_id
    WHERE p.kind = 'user' AND p.platform_id NOT LIKE 'chat:%'";

impl Reader {
    /// The people who wrote the newest turns of a conversation, and of the room its thread is in: once by
    /// display name and once by username, where they have them.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn mentionable(
        &self,
        conversation: ConversationId,
    ) -> Result<Vec<Person>, StoreError> {
        self.read(move |connection| mentionable(connection, conversation))
            .await
    }
}

fn mentionable(
    connection: &Connection,
    conversation: ConversationId,
) -> Result<Vec<Person>, StoreError> {
    let mut statement = connection.prepare_cached(MENTIONABLE_SQL)?;
    let rows = statement.query_map((conversation, TURNS_READ), |row| {
        let id: String = row.get("platform_id")?;
        let names: [Option<String>; 2] = [row.get("display_name")?, row.get("username")?];
        Ok((id, names))
    })?;
    let mut people = Vec::new();
    for row in rows {
        let (id, names) = row?;
        people.extend(names.into_iter().flatten().map(|name| Person {
            name,
            id: id.clone(),
        }));
    }
    Ok(people)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[tokio::test]
    async fn they_are_read_by_index_and_only_of_their_conversation() {
        let scene = Scene::open().await;
        let (general, other) = (scene.room("C1").await, scene.room("C2").await);
        scene
            .write(move |connection| {
                let add = |id: i64, platform_id: &str, kind: &str, name: Option<&str>| {
                    connection.execute(
                        "INSERT INTO participants (id, account_id, kind, platform_id, display_name, username)
                         VALUES (?1, 1, ?3, ?2, ?4, NULL)",
                        (id, platform_id, kind, name),
                    )
                };
                add(101, "U1", "user", Some("Ann"))?;
                add(102, "U2", "user", None)?;
                add(103, "U3", "user", Some("Cleo"))?;
                add(104, "helper", "agent", Some("Helper"))?;
                add(105, "chat:-5", "user", Some("The Board"))?;
                for (n, (uuid, participant)) in (1_i64..).zip([
                    (general.id, 101),
                    (general.id, 102),
                    (general.id, 101),
                    (general.id, 104),
                    (general.id, 105),
                    (other.id, 103),
                ]) {
                    connection.execute(
                        "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                                            participant_id, content, captured_at_ms, is_inbound)
                         VALUES (randomblob(16), (SELECT id FROM conversations WHERE uuid = ?1), ?2, 0,
                                 'message', 'channel', ?3, 'hi', ?2, 1)",
                        (uuid, n, participant),
                    )?;
                }
                Ok(())
            })
            .await;
        let people = scene.store.mentionable(general.id).await.unwrap();
        let names: Vec<(&str, &str)> = people
            .iter()
            .map(|person| (person.name.as_str(), person.id.as_str()))
            .collect();
        assert_eq!(names, [("Ann", "U1")]);
        let plan = scene.plan(MENTIONABLE_SQL).await;
        assert!(
            plan.iter()
                .all(|step| !step.starts_with("SCAN n") && !step.starts_with("SCAN t")),
            "{plan:#?}"
        );
        assert!(
            plan.iter()
                .any(|step| step.contains("INDEX turns_by_position (conversation_id=?)")),
            "{plan:#?}"
        );
    }
}
