//! Skills for pages. A page is read again with every commit, so a reading of the disk is cached for a moment, and
//! requests that come meanwhile wait for the one reading.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{DaemonDesk, json};
use crate::admin::operations::OperationError;

/// How long a reading is cached.
const LIVES: Duration = Duration::from_secs(5);
/// How long the disk may take: less than a page may.
const WAIT: Duration = Duration::from_secs(5);

/// The last reading.
#[derive(Default)]
pub(super) struct SkillsSeen(Mutex<Option<(Instant, Value)>>);

impl DaemonDesk {
    /// All skills, with what of their folders can't be read.
    pub(super) async fn skills(&self) -> Result<Value, OperationError> {
        let mut seen = self.skills.0.lock().await;
        let fresh = seen.as_ref().filter(|(at, _)| at.elapsed() < LIVES);
        if let Some((_, skills)) = fresh {
            return Ok(skills.clone());
        }
        let skills = json(&self.operations.skills_within(WAIT).await?);
        *seen = Some((Instant::now(), skills.clone()));
        Ok(skills)
    }
}
