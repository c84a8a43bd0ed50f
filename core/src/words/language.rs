//! The languages.

use schemars::JsonSchema;
use serde::Deserialize;

/// In which language the daemon speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Language {
    /// English.
    #[default]
    #[serde(rename = "en")]
    English,
    /// German.
    #[serde(rename = "de")]
    German,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::English, Self::German];

    /// The language of that name; English where there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|it| it.name() == name).unwrap_or_default()
    }

    /// The name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
        }
    }
}
