//! The questions about the model: which servers answer, and which models the key may use.

use secrecy::SecretString;

use super::answers::{ModelAnswers, ModelKind};
use super::dialogue::Dialogue;
use super::given::SetupGiven;
use super::platforms::{only, tried};
use crate::cli::CliError;
use crate::cli::args::SetupModel;
use crate::daemon::wiring;
use crate::llm::ProviderReach;

/// Where Ollama listens. *Source:* its FAQ, "How do I configure Ollama server?".
const OLLAMA_URL: &str = "http://127.0.0.1:11434/v1/";
/// The most models that are listed; others can be typed as well.
const SHOWN_MAX: usize = 12;
/// Beginnings of the names of models to suggest, the preferred first.
const SUGGESTED: [&str; 4] = [
    "gpt-5-mini",
    "gpt-4.1-mini",
    "claude-sonnet-4-5",
    "claude-haiku-4-5",
];

/// What a server of models answered.
struct FoundModels {
    reach: ProviderReach,
    names: Vec<String>,
}

/// Asks until there is a model that can be used.
pub(super) async fn model(
    given: &SetupGiven,
    dialogue: &mut Dialogue<'_>,
) -> Result<ModelAnswers, CliError> {
    let chosen = match (given.model, dialogue.is_mute()) {
        (Some(model), _) => model,
        (None, true) => SetupModel::Offline,
        (None, false) => choose(dialogue).await?,
    };
    let (kind, url) = match chosen {
        SetupModel::Offline => return Ok(answers(ModelKind::Offline, None, None)),
        SetupModel::Openai => (ModelKind::OpenAi, given.model_url.clone()),
        SetupModel::Anthropic => (ModelKind::Anthropic, given.model_url.clone()),
        SetupModel::Ollama => {
            let url = given
                .model_url
                .clone()
                .unwrap_or_else(|| OLLAMA_URL.to_owned());
            (ModelKind::OpenAi, Some(url))
        }
        SetupModel::Server => {
            let url = match (&given.model_url, dialogue.is_mute()) {
                (Some(url), _) => url.clone(),
                (None, false) => dialogue.ask("Its address, as http://HOST/v1/", "").await?,
                (None, true) => String::new(),
            };
            (ModelKind::OpenAi, Some(url))
        }
    };
    let wants_key = matches!(chosen, SetupModel::Openai | SetupModel::Anthropic);
    let mut key = given.model_key.clone();
    loop {
        if key.is_none() && wants_key && !dialogue.is_mute() {
            key = Some(dialogue.ask_secret("Its API key").await?);
        }
        let mut model = answers(kind, key.take(), url.clone());
        let found = look(&model).await?;
        if let Some(refusal) = refusal(&found.reach) {
            dialogue.say(&format!("  {:<11}  {refusal}", "refused"))?;
            if dialogue.is_mute() || !wants_key {
                return Err(unusable(&found.reach, refusal));
            }
            continue;
        }
        model.name = name(given, &found.names, dialogue).await?;
        return Ok(model);
    }
}

fn answers(kind: ModelKind, key: Option<SecretString>, url: Option<String>) -> ModelAnswers {
    ModelAnswers {
        kind,
        name: String::new(),
        key,
        url,
    }
}

async fn choose(dialogue: &mut Dialogue<'_>) -> Result<SetupModel, CliError> {
    let ollama = look(&answers(
        ModelKind::OpenAi,
        None,
        Some(OLLAMA_URL.to_owned()),
    ))
    .await?;
    let here = match (&ollama.reach, ollama.names.len()) {
        (ProviderReach::Taken { .. }, count) => format!("on this machine, with {count} models"),
        _ => "on this machine; it does not answer at port 11434".to_owned(),
    };
    let choices = [
        (
            "offline",
            "built in: repeats the question, needs nothing; to see that all works".to_owned(),
        ),
        (
            "openai",
            "with a key from https://platform.openai.com/api-keys".to_owned(),
        ),
        (
            "anthropic",
            "with a key from https://console.anthropic.com/settings/keys".to_owned(),
        ),
        ("ollama", here),
        ("server", "any other with OpenAI's protocol".to_owned()),
    ];
    let kinds = [
        SetupModel::Offline,
        SetupModel::Openai,
        SetupModel::Anthropic,
        SetupModel::Ollama,
        SetupModel::Server,
    ];
    let default = match ollama.reach {
        ProviderReach::Taken { .. } => 3,
        _ => 0,
    };
    Ok(kinds[dialogue
        .choose("\nWhich model answers?", &choices, default)
        .await?])
}

/// Asks a provider for its list of models, which costs nothing.
async fn look(model: &ModelAnswers) -> Result<FoundModels, CliError> {
    let mut asked = only(None, None);
    asked.model = ModelAnswers {
        // No name is known yet, and requesting the list needs none.
        name: "any".to_owned(),
        ..model.clone()
    };
    let (config, secrets) = tried(&asked)?;
    let settings = &config.models["default"];
    let (reach, names) = wiring::model_names(settings, &secrets).await?;
    Ok(FoundModels { reach, names })
}

/// Why a server can't be used; `None` if it can.
fn refusal(reach: &ProviderReach) -> Option<String> {
    match reach {
        ProviderReach::Refused { status } => {
            Some(format!("the provider refuses the key (HTTP {status})"))
        }
        ProviderReach::Unreachable { what } => {
            Some(format!("the provider can't be reached: {what}"))
        }
        ProviderReach::Taken { .. } | ProviderReach::NoList { .. } | ProviderReach::NotAsked => {
            None
        }
    }
}

fn unusable(reach: &ProviderReach, what: String) -> CliError {
    let advice = "nothing was written".to_owned();
    match reach {
        ProviderReach::Refused { .. } => CliError::Refused {
            what,
            advice,
            cause: None,
        },
        _ => CliError::Unavailable {
            what,
            advice,
            cause: None,
        },
    }
}

/// The model's name: by option, or chosen from the list.
async fn name(
    given: &SetupGiven,
    names: &[String],
    dialogue: &mut Dialogue<'_>,
) -> Result<String, CliError> {
    if let Some(name) = &given.model_name {
        return Ok(name.clone());
    }
    let suggested = suggested(names);
    if dialogue.is_mute() {
        return Ok(suggested.to_owned());
    }
    let shown: Vec<&str> = names.iter().take(SHOWN_MAX).map(String::as_str).collect();
    if !shown.is_empty() {
        let more = names.len().saturating_sub(shown.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        dialogue.say(&format!("  it has       {}{more}", shown.join(", ")))?;
    }
    loop {
        let name = dialogue.ask("Model", suggested).await?;
        if !name.is_empty() {
            return Ok(name);
        }
    }
}

/// The model to suggest: one that is known to be good and cheap, otherwise the first of the list; empty without a list.
fn suggested(names: &[String]) -> &str {
    let known = SUGGESTED.iter().find_map(|known| {
        let mut names = names.iter();
        names.find(|name| name.starts_with(known))
    });
    known.or(names.first()).map_or("", String::as_str)
}
