//! Which skills an operator approved, by the hash of their files.

use crate::capability::MayApproveSkills;
use crate::contract::SkillApproval;
use crate::engine::sql::Row;
use crate::registry::{STATE, StoreTable, nobody, text};
use crate::{Reader, Store, StoreError};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[nobody(
    "skill_approvals",
    "what operators approve of their skills is the operators'",
    text(&[], &[], &["skill", "digest", "approved_by"]),
    STATE,
)];

impl Reader {
    /// All approvals of skills, by name.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn skill_approvals(&self) -> Result<Vec<SkillApproval>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT skill, digest, approved_by, approved_at_ms FROM skill_approvals ORDER BY skill",
            )?;
            let approval = |row: &Row<'_>| {
                Ok(SkillApproval {
                    skill: row.get("skill")?,
                    digest: row.get("digest")?,
                    approved_by: row.get("approved_by")?,
                    approved_at_ms: row.get("approved_at_ms")?,
                })
            };
            let approvals = statement.query_map([], approval)?;
            Ok(approvals.collect::<Result<_, _>>()?)
        })
        .await
    }
}

impl<C: MayApproveSkills> Store<C> {
    /// Approves a skill as it is, in the place of what was approved of it before.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn approve_skill(&self, approval: SkillApproval) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO skill_approvals (skill, digest, approved_by, approved_at_ms)
                     VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (skill) DO UPDATE SET digest = excluded.digest,
                       approved_by = excluded.approved_by, approved_at_ms = excluded.approved_at_ms
                     WHERE digest <> excluded.digest",
                )?
                .execute((
                    &approval.skill,
                    &approval.digest,
                    &approval.approved_by,
                    approval.approved_at_ms,
                ))?;
            Ok(())
        })
        .await
    }

    /// Takes the approval of a skill back. Returns whether there was one.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn revoke_skill(&self, skill: &str) -> Result<bool, StoreError> {
        let skill = skill.to_owned();
        self.write(move |connection| {
            let revoked = connection
                .prepare_cached("DELETE FROM skill_approvals WHERE skill = ?1")?
                .execute([&skill])?;
            Ok(revoked > 0)
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[tokio::test]
    async fn an_approval_says_who_first_approved_a_skill_as_it_is() {
        let store = Scene::open().await.store;
        let approval = |digest: &str, by: &str, at_ms| SkillApproval {
            skill: "pdf-forms".to_owned(),
            digest: digest.to_owned(),
            approved_by: by.to_owned(),
            approved_at_ms: at_ms,
        };
        let (first, again) = (approval("1", "ann", 5), approval("1", "bob", 6));
        store.approve_skill(first.clone()).await.unwrap();
        store.approve_skill(again).await.unwrap();
        assert_eq!(store.skill_approvals().await.unwrap(), [first]);
        let changed = approval("2", "bob", 7);
        store.approve_skill(changed.clone()).await.unwrap();
        assert_eq!(store.skill_approvals().await.unwrap(), [changed]);
        assert!(store.revoke_skill("pdf-forms").await.unwrap());
        assert!(!store.revoke_skill("pdf-forms").await.unwrap());
        assert_eq!(store.skill_approvals().await.unwrap(), []);
    }
}
