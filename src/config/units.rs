//! Lengths of time as they are written.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

/// A length of time, written in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Seconds(pub u64);

impl Seconds {
    /// The length in milliseconds.
    #[must_use]
    pub fn ms(self) -> i64 {
        i64::try_from(self.0.saturating_mul(1_000)).unwrap_or(i64::MAX)
    }

    /// The length as a `Duration`.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl JsonSchema for Seconds {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        u64::json_schema(generator)
    }
}
