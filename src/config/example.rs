//! The example file: a start that works, and every setting with its default.

use super::platforms::PLATFORMS;

/// A start for a new file, with everything commented out.
const START: &str = r##"# Vocative: example configuration.
# Made from config/default.toml by `vocative config example`; don't edit it in the project.
#
# A line that starts with "# " explains. A line that starts with "#" and a setting shows that
# setting with its default, or with a sample where there is none: take the "#" away to change it.
# Settings can also come from variables: VOCATIVE_DAEMON__LOG_LEVEL=debug, lists with commas.
# Relative paths count from the folder of this file.

# ---- a start ----------------------------------------------------------------------------------
# One channel is enough. Secrets are never written here, only where they are:
# "env:NAME" (variable), "file:PATH", or "credential:NAME" (systemd LoadCredential=NAME:FILE).
# The tables below take every setting of {DEFAULTS}, [defaults.model] and
# [defaults.agent] further down. Names like "acme" are yours to choose: a-z, 0-9 and _.

{SAMPLES}
# A single chat may differ: overlap, quiet_hours, what its agents are told besides, and any setting of
# [agents.NAME.prompt] but profile, for every agent there.
#[channels.{CHAT}]
#overlap = "collect"
#quiet_hours = "20:00-08:00"
#instructions = "This room is read by customers: no names of colleagues."
#[channels.{CHAT}.prompt]
#ambient_turns = 20

#[models.default]
#provider = "openai"
#model = "gpt-5-mini"
#api_key = "env:OPENAI_API_KEY"

#[agents.vocative]
#display_name = "Vocative"
#aliases = ["voc"]

# A tool that agents may use: name it in an agent's `tools`. See docs/TOOLS.md.
#[tools.weather]
#kind = "http"
#description = "The weather in a city, now."
#url = "https://api.example.com/v1/weather/{city}?units={units}"
#bearer = "env:WEATHER_KEY"
#result = "/current"
#calls_per_day = 50
#parameters = '{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}, "units": {"type": "string"}}}'

# A token of the API that may do more than read, by the name under which what it does is recorded: "read" (see
# everything), "ask" (see and answer questions), "act" (decide about calls, questions and schedules), "admin". See docs/API.md.
#[api.tokens.desk]
#token = "env:VOCATIVE_API_TOKEN_DESK"
#scopes = ["act"]
#people = ["acme/U012AB3CD"]

# Who may use the web console, and what they may do: "viewer", "operator" (looks into direct chats, decides about what
# waits), "admin" (erases, too). See docs/CONSOLE.md.
#[console.people.ann]
#role = "admin"
#people = ["acme/U012AB3CD"]

# Several agents behind one name are a network, [networks.NAME]. See docs/NETWORKS.md and config/examples/help-desk.toml.

# Who is asked at points of a run: name it in an agent's `hooks`. See docs/HOOKS.md.
#[hooks.secrets]
#kind = "redact"
#at = ["before_model", "before_save"]
#remove = ["keys", "cards"]
#patterns = ["EMP-[0-9]{6}"]

#[hooks.guard]
#kind = "http"
#at = ["before_tool"]
#url = "https://guard.example/decide"
#bearer = "env:GUARD_TOKEN"
#content = true

# ---- every setting ----------------------------------------------------------------------------
"##;

/// The example file with explanations: everything is commented out, and every setting has its default.
#[must_use]
pub fn example() -> String {
    let settings: String = super::DEFAULT_TOML
        .lines()
        .skip_while(|line| !line.is_empty())
        .map(|line| match line.chars().next() {
            None | Some('#' | '[') => format!("{line}\n"),
            Some(_) => format!("#{line}\n"),
        })
        .collect();
    let defaults = PLATFORMS.map(|it| format!("[defaults.{}]", it.name));
    let start = START
        .replace("{SAMPLES}", &PLATFORMS.map(|it| it.sample).join("\n"))
        .replace("{CHAT}", PLATFORMS[0].sample_chat)
        .replace("{DEFAULTS}", &defaults.join(", "));
    format!("{start}{settings}")
}

/// The text with every commented-out setting and table made active; explanations stay comments.
#[cfg(test)]
pub(super) fn activated(text: &str) -> String {
    text.lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.is_empty() && !setting.starts_with([' ', '#']) => setting,
            _ => line,
        })
        .fold(String::new(), |text, line| text + line + "\n")
}
