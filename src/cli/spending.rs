//! How many tokens people may spend in a day, as `vocative check` reports it. Pure.

use crate::config::{Channel, Config};
use crate::llm::Provider;

/// How many tokens somebody may spend in a UTC day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spend {
    Nothing,
    UpTo(u64),
    /// Tokens have no cap; the limit on runs bounds them to this number.
    ByRuns(u64),
    Unbounded,
}

impl Spend {
    fn in_words(self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::UpTo(tokens) => format!("{} tokens", grouped(tokens)),
            Self::ByRuns(tokens) => format!("{} tokens, by runs alone", grouped(tokens)),
            Self::Unbounded => "tokens WITHOUT LIMIT".to_owned(),
        }
    }
}

/// What is reported for a channel: a line, and warnings.
pub(super) struct SpendingNote {
    pub(super) line: String,
    pub(super) warnings: Vec<String>,
}

/// Reports what people of a channel may spend; `None` where its answers cost nothing.
pub(super) fn told(config: &Config, channel: &Channel) -> Option<SpendingNote> {
    let agents = config.agents_for_channel(channel);
    let costing = agents
        .iter()
        .filter(|agent| config.model_of(agent).provider != Provider::Offline);
    let run_tokens = costing
        .map(|agent| {
            let model = config.model_of(agent);
            let budget = u64::try_from(agent.prompt.token_budget).unwrap_or(u64::MAX);
            let step = budget.saturating_add(u64::from(model.max_output_tokens));
            step.saturating_mul(u64::from(agent.settings.max_steps))
        })
        .max()?;
    let limits = &channel.limits;
    let by_runs = u64::from(limits.max_runs_per_hour_person)
        .saturating_mul(24)
        .saturating_mul(run_tokens);
    let person = spend(
        &[limits.tokens_per_day_person, limits.tokens_per_day],
        by_runs,
    );
    let all = spend(&[limits.tokens_per_day], 0);
    let (who, stranger) = people(channel, person);
    let name = &channel.name;
    let mut line = format!("{name}: a day, {who} may spend {}", person.in_words());
    if let Some(stranger) = stranger {
        line += &format!(", a stranger {}", stranger.in_words());
    }
    line += &format!(", all together {}", all.in_words());
    let mut warnings = Vec::new();
    if !matches!(person, Spend::UpTo(_)) {
        warnings.push(format!(
            "{name}: {who} may spend {} a day; set tokens_per_day_person or tokens_per_day",
            person.in_words()
        ));
    } else if !matches!(all, Spend::UpTo(_)) {
        warnings.push(format!(
            "{name}: all together may spend tokens WITHOUT LIMIT; set tokens_per_day"
        ));
    }
    let is_open = stranger.is_some_and(|stranger| stranger != Spend::Nothing);
    if is_open || anybody(channel).is_some() {
        let outsider = if is_open { "a stranger" } else { who };
        warnings.push(format!(
            "{name}: {outsider} may spend {} a day, all together {}",
            person.in_words(),
            all.in_words()
        ));
    }
    Some(SpendingNote { line, warnings })
}

/// The smallest cap that is set; without one, what the limit on runs allows.
fn spend(caps: &[u64], by_runs: u64) -> Spend {
    let cap = caps.iter().copied().filter(|cap| *cap > 0).min();
    match (cap, by_runs) {
        (Some(cap), _) => Spend::UpTo(cap),
        (None, 0) => Spend::Unbounded,
        (None, by_runs) => Spend::ByRuns(by_runs),
    }
}

/// What the people of a channel are called, and what its strangers may spend, where the platform has strangers.
fn people(channel: &Channel, person: Spend) -> (&'static str, Option<Spend>) {
    let platform = channel.platform.facts();
    let who = anybody(channel).unwrap_or(platform.people);
    let stranger = if channel.access.serves_strangers {
        person
    } else {
        Spend::Nothing
    };
    (who, platform.has_strangers.then_some(stranger))
}

/// What people are called on a channel that serves anybody who finds the bot; `None` on another one.
fn anybody(channel: &Channel) -> Option<&'static str> {
    let access = &channel.access;
    let mut lists = access.allow_people.iter().chain(&access.allow_chats);
    let anybody = channel.platform.facts().anybody;
    anybody.filter(|_| lists.any(|id| id == "*"))
}

/// A number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::Environment;

    fn said(settings: &str) -> (Option<String>, Vec<String>) {
        let text = format!(
            "[agents.vocative]\nmodel = \"gpt\"\n[models.gpt]\nprovider = \"openai\"\n\
             model = \"m\"\napi_key = \"env:KEY\"\nmax_output_tokens = 1000\n\
             [defaults.agent]\nmax_steps = 2\n[defaults.agent.prompt]\ntoken_budget = 3000\n{settings}"
        );
        let environment = Environment::from_pairs([("KEY", "k"), ("HOME", "/nowhere")]);
        let file = std::path::Path::new("vocative.toml");
        let (config, _) = Config::from_text(Some((file, &text)), &environment).unwrap();
        let channel = config.channels.values().next().unwrap();
        let told = told(&config, channel);
        told.map_or((None, vec![]), |told| (Some(told.line), told.warnings))
    }

    #[test]
    fn what_people_may_spend_is_said_and_what_has_no_end_is_said_loudly() {
        let slack = "[channels.slack.acme]\napp_token = \"env:A\"\nbot_token = \"env:B\"\n";
        let telegram = "[channels.telegram.home]\ntoken = \"env:T\"\n";
        let mut told = String::new();
        for settings in [
            slack.to_owned(),
            format!("{slack}answer_strangers = true\n"),
            format!("{slack}tokens_per_day = 5000\n"),
            format!("{slack}tokens_per_day_person = 0\ntokens_per_day = 0\n"),
            format!(
                "{slack}tokens_per_day_person = 0\ntokens_per_day = 0\nmax_runs_per_hour_person = 0\n"
            ),
            format!("{slack}tokens_per_day = 0\n"),
            format!("{telegram}allow_people = [\"5001\"]\n"),
            format!("{telegram}allow_people = [\"*\"]\n"),
        ] {
            let (line, warnings) = said(&settings);
            told += &format!("{}\n", line.unwrap());
            for warning in warnings {
                told += &format!("  ! {warning}\n");
            }
        }
        insta::assert_snapshot!(told, @r"
        acme: a day, a member may spend 1,000,000 tokens, a stranger nothing, all together 5,000,000 tokens
        acme: a day, a member may spend 1,000,000 tokens, a stranger 1,000,000 tokens, all together 5,000,000 tokens
          ! acme: a stranger may spend 1,000,000 tokens a day, all together 5,000,000 tokens
        acme: a day, a member may spend 5,000 tokens, a stranger nothing, all together 5,000 tokens
        acme: a day, a member may spend 11,520,000 tokens, by runs alone, a stranger nothing, all together tokens WITHOUT LIMIT
          ! acme: a member may spend 11,520,000 tokens, by runs alone a day; set tokens_per_day_person or tokens_per_day
        acme: a day, a member may spend tokens WITHOUT LIMIT, a stranger nothing, all together tokens WITHOUT LIMIT
          ! acme: a member may spend tokens WITHOUT LIMIT a day; set tokens_per_day_person or tokens_per_day
        acme: a day, a member may spend 1,000,000 tokens, a stranger nothing, all together tokens WITHOUT LIMIT
          ! acme: all together may spend tokens WITHOUT LIMIT; set tokens_per_day
        home: a day, whoever is served may spend 1,000,000 tokens, all together 5,000,000 tokens
        home: a day, anybody on Telegram may spend 1,000,000 tokens, all together 5,000,000 tokens
          ! home: anybody on Telegram may spend 1,000,000 tokens a day, all together 5,000,000 tokens
        ");
    }

    #[test]
    fn numbers_are_read_in_groups() {
        let table = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, expected) in table {
            assert_eq!(grouped(number), expected);
        }
    }
}
