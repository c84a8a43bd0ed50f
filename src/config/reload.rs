//! Which settings a running daemon applies when it reads its configuration again, and which apply only from its next
//! start. Each setting of the schema is in one of the lists; a test checks that.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::join;
use super::platforms::{PLATFORMS, PlatformFacts};
use super::settings::Config;

/// Tables of which a reload applies every setting.
#[cfg(test)]
const TAKEN_WHOLE: &[&str] = &[
    "agents", "delivery", "hooks", "limits", "mcp", "models", "networks", "tools",
];

/// Settings of other tables that a reload applies; `*` stands for a name.
#[cfg(test)]
const TAKEN: &[&str] = &[
    "api.retention_days.raw",
    "api.retention_days.runs",
    "api.retention_days.text",
    "capture.album_wait_ms",
    "capture.inbound_text_max_bytes",
    "capture.max_trigger_age_minutes",
    "files.image_max_bytes",
    "files.images_max",
    "files.recent_turns",
    "files.text_max_tokens",
    "files.wait_s",
    "knowledge.*.chats",
];

/// Settings of every platform's channels that a reload applies.
#[cfg(test)]
const TAKEN_OF_CHANNELS: &[&str] = &[
    "admins",
    "allow_bots",
    "allow_chats",
    "allow_people",
    "default_agent",
    "language",
    "live",
    "max_runs_per_hour_chat",
    "max_runs_per_hour_person",
    "max_trigger_age_minutes",
    "mention_people",
    "on_unknown",
    "pairing",
    "reply_prefix",
    "thread_policy",
    "cost_per_day",
    "cost_per_day_person",
    "tokens_per_day",
    "tokens_per_day_person",
];

/// Tables of a channel of which a reload applies every setting.
#[cfg(test)]
const TAKEN_TABLES: &[&str] = &["chats", "manners", "retention_days"];

/// Settings that apply only from the next start.
const FROM_START: &[&str] = &[
    "api.enabled",
    "api.listen",
    "api.socket_group",
    "api.token",
    "api.tokens.*.agents",
    "api.tokens.*.overrides",
    "api.tokens.*.people",
    "api.tokens.*.person",
    "api.tokens.*.scopes",
    "api.tokens.*.token",
    "capture.backfill_days",
    "capture.backfill_messages_max",
    "capture.catch_up_days",
    "capture.catch_up_messages_max",
    "capture.deaf_after_s",
    "console.enabled",
    "console.hosts",
    "console.listen",
    "console.people.*.login",
    "console.people.*.people",
    "console.people.*.role",
    "console.trusted_proxy",
    "console.user_header",
    "daemon.data_dir",
    "daemon.drain_deadline_s",
    "daemon.landlock",
    "daemon.log_format",
    "daemon.log_level",
    "daemon.max_parallel_runs",
    "daemon.runtime_dir",
    "daemon.control_socket",
    "daemon.socket_group",
    "embeddings.api_key",
    "embeddings.base_url",
    "embeddings.dimensions",
    "embeddings.model",
    "knowledge.*.file_max_kib",
    "knowledge.*.files_max",
    "knowledge.*.paths",
    "knowledge.*.pdf",
    "knowledge.*.pdf_memory_max_mib",
    "knowledge.*.pdf_read",
    "knowledge.*.pdf_trusted",
    "knowledge.*.refresh_s",
    "skills.folders",
    "schedules.*.agent",
    "schedules.*.conversation",
    "schedules.*.cron",
    "schedules.*.jitter_s",
    "schedules.*.missed",
    "schedules.*.task",
    "schedules.*.zone",
    "embeddings.tokens_per_day",
    "files.fetch",
    "files.kinds",
    "files.max_bytes",
    "files.max_total_mib",
    "http.enabled",
    "http.listen",
    "store.debug_raw_hours",
    "store.keep_revisions",
    "store.page_cache_kib",
    "store.readers",
    "transcription.api_key",
    "transcription.base_url",
    "transcription.model",
    "transcription.timeout_s",
    "webhooks.listen",
];

impl Config {
    /// What of this configuration applies only after a restart of a daemon that was started with another one: settings,
    /// and channels that were added or removed, as dotted paths in order.
    #[must_use]
    pub fn needing_restart(&self, started: &Self) -> Vec<String> {
        let mut changed = BTreeSet::new();
        differences(&started.effective, &self.effective, "", &mut changed);
        changed
            .into_iter()
            .filter(|path| needs_restart(path))
            .collect()
    }
}

/// The settings in which two trees differ; for a table of the third level or deeper that only one of them has, the
/// table itself.
fn differences(before: &Value, after: &Value, path: &str, changed: &mut BTreeSet<String>) {
    let nothing = Value::Object(Map::new());
    let is_outer = path.split('.').count() < 3;
    match (before, after) {
        (Value::Null, Value::Object(_)) if is_outer => differences(&nothing, after, path, changed),
        (Value::Object(_), Value::Null) if is_outer => differences(before, &nothing, path, changed),
        (Value::Object(before), Value::Object(after)) => {
            for key in before.keys().chain(after.keys()) {
                let sides = [before, after].map(|it| it.get(key).unwrap_or(&Value::Null));
                differences(sides[0], sides[1], &join(path, key), changed);
            }
        }
        _ if before != after => {
            changed.insert(path.to_owned());
        }
        _ => {}
    }
}

fn needs_restart(path: &str) -> bool {
    let is_channel = path.starts_with("channels.") && path.split('.').count() == 3;
    is_channel
        || FROM_START.iter().any(|pattern| fits(pattern, path))
        || PLATFORMS.iter().any(|platform| {
            let mut settings = platform.from_start.iter();
            settings.any(|setting| fits(&pattern_of(platform, setting), path))
        })
}

/// The pattern for a setting of all channels of a platform.
fn pattern_of(platform: &PlatformFacts, setting: &str) -> String {
    format!("channels.{}.*.{setting}", platform.name)
}

fn fits(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut parts) = (pattern.split('.'), path.split('.'));
    loop {
        match (wanted.next(), parts.next()) {
            (None, None) => return true,
            (Some(wanted), Some(part)) if wanted == "*" || wanted == part => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::environment::Environment;
    use super::super::schema::{all_settings, schema};
    use super::*;

    #[test]
    fn a_reload_takes_each_setting_or_says_that_it_needs_a_restart() {
        let settings: Vec<String> = all_settings(schema())
            .into_iter()
            // Defaults apply to the tables of their kind, whose settings are in the lists.
            .filter(|path| !path.starts_with("defaults."))
            .collect();
        let of_platforms = |settings: &dyn Fn(&PlatformFacts) -> Vec<&'static str>| -> Vec<String> {
            let each = PLATFORMS.into_iter().map(|platform| {
                let settings = settings(platform).into_iter();
                settings
                    .map(|setting| pattern_of(platform, setting))
                    .collect::<Vec<_>>()
            });
            each.flatten().collect()
        };
        let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let taken = [
            owned(TAKEN),
            of_platforms(&|platform| [TAKEN_OF_CHANNELS, platform.taken].concat()),
        ]
        .concat();
        let from_start = [
            owned(FROM_START),
            of_platforms(&|platform| platform.from_start.to_vec()),
        ]
        .concat();
        let tables = [owned(TAKEN_WHOLE), of_platforms(&|_| TAKEN_TABLES.to_vec())].concat();
        for path in &settings {
            let of_table = |table: &&String| {
                let rest = path.strip_prefix(table.as_str());
                rest.is_some_and(|rest| rest.starts_with('.'))
            };
            let places = taken.iter().filter(|it| *it == path).count()
                + tables.iter().filter(of_table).count()
                + from_start.iter().filter(|it| *it == path).count();
            assert_eq!(
                places, 1,
                "{path}: a setting is in one list of config/reload.rs; what a reload is to take, daemon/shared.rs \
                 puts in force"
            );
        }
        for listed in taken.iter().chain(&from_start) {
            assert!(settings.iter().any(|path| path == listed), "{listed}");
        }
    }

    fn config(text: &str) -> Config {
        let base = "[channels.telegram.acme]\ntoken = \"env:TOKEN\"\n";
        let path = std::path::Path::new("/etc/vocative.toml");
        let text = format!("{text}\n{base}");
        let file = Some((path, text.as_str()));
        let (config, _) =
            Config::from_text(file, &Environment::from([("HOME", "/home/ada")])).unwrap();
        config
    }

    #[test]
    fn what_needs_a_restart_is_named_and_nothing_else() {
        let started = config("");
        let now = config(
            "[daemon]\nlog_level = \"debug\"\n[delivery]\nmax_parts = 3\non_unknown = \"hold\"\n\
             [files]\nkinds = [\"text\"]\nwait_s = 3\n[agents.other]\n\
             [channels.telegram.second]\ntoken = \"env:SECOND\"",
        );
        let expected = [
            "channels.telegram.second",
            "daemon.log_level",
            "files.kinds",
        ];
        assert_eq!(now.needing_restart(&started), expected);
        assert_eq!(started.needing_restart(&now), expected);
        assert_eq!(started.needing_restart(&started), [""; 0]);
    }
}
