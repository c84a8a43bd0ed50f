//! The form in which a model accepts requests, learnt from what its provider refuses.
//!
//! Pure. Servers differ in the names of limits and in the settings that a model accepts, and every list of these
//! differences becomes outdated. `ADAPTIONS_MAX` limits how often one request is changed.

use serde_json::Value;

use super::caching::CacheHabit;
use crate::llm::base_url::Wire;
use crate::llm::{Effort, ModelSettings};

/// How the form of requests differs from the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Habits {
    /// The name of the limit in Chat Completions.
    pub(super) limit_name: &'static str,
    /// Whether `temperature` is left out.
    pub(super) no_temperature: bool,
    /// What is sent for the effort.
    pub(super) effort: EffortHabit,
    /// Whether encrypted reasoning items are not requested.
    pub(super) no_encrypted: bool,
    /// What the cache is told.
    pub(super) cache: CacheHabit,
    /// When the answer's schema is sent.
    pub(super) schema: SchemaHabit,
    /// Whether a tool is not forced if calling it is only wanted.
    pub(super) no_forced_tool: bool,
    /// Whether earlier answers are sent back without the provider's own fields and thoughts. Holds for one request.
    pub(super) is_neutral: bool,
}

/// What is sent for the effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EffortHabit {
    /// The configured effort, if there is one.
    AsSet,
    /// `none` if tools are offered, otherwise the configured effort.
    NoneWithTools,
    /// No effort.
    LeftOut,
}

/// When a provider is sent the schema of an answer. The instructions contain it in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaHabit {
    /// With every request.
    Always,
    /// If no tool may be called: servers that enforce a schema by a grammar make calls impossible.
    WithoutCalls,
    /// Never: the provider does not accept it.
    Never,
}

/// A request that was refused.
pub(super) struct RefusedRequest<'a> {
    /// As it was sent.
    pub(super) body: &'a Value,
    /// Whether an earlier answer was sent back as it was received.
    pub(super) has_replayed: bool,
    /// Whether a tool was forced because calling it was wanted.
    pub(super) has_wanted_tool: bool,
    /// The error of the answer.
    pub(super) error: &'a Value,
}

impl Habits {
    /// The first habits for a model.
    pub(super) fn of(settings: &ModelSettings, wire: Wire, is_openai: bool) -> Self {
        let is_picky = is_openai && wire == Wire::Chat && gpt(&settings.model) >= Some((5, 4));
        Self {
            limit_name: match is_openai {
                true => "max_completion_tokens",
                false => "max_tokens",
            },
            no_temperature: false,
            effort: match is_picky {
                true => EffortHabit::NoneWithTools,
                false => EffortHabit::AsSet,
            },
            no_encrypted: is_openai && !reasons(&settings.model),
            cache: CacheHabit::of(&settings.model, wire, is_openai),
            schema: match is_openai {
                true => SchemaHabit::Always,
                false => SchemaHabit::WithoutCalls,
            },
            no_forced_tool: false,
            is_neutral: false,
        }
    }

    /// The effort to send.
    pub(super) fn effort(self, set: Option<Effort>, has_tools: bool) -> Option<Effort> {
        match self.effort {
            EffortHabit::LeftOut => None,
            EffortHabit::NoneWithTools if has_tools => Some(Effort::None),
            EffortHabit::AsSet | EffortHabit::NoneWithTools => set,
        }
    }

    /// The habits for another attempt; `None` if no change of habits would help.
    pub(super) fn after(self, refused: &RefusedRequest<'_>) -> Option<Self> {
        let RefusedRequest {
            body,
            has_replayed,
            has_wanted_tool,
            error,
        } = refused;
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_lowercase();
        let (param, code, said) = (text("param"), text("code"), text("message"));
        let names = |name: &str| param == name || said.contains(name);
        let unsupported = [
            "unsupported",
            "not supported",
            "unrecognized",
            "unknown",
            "deprecated",
            "not permitted",
            "extra inputs",
            "extra fields",
            "does not support",
        ];
        let is_unsupported = unsupported
            .iter()
            .any(|it| said.contains(it) || code.starts_with(it));
        let mut next = self;
        let effort = match body.get("reasoning_effort") {
            Some(effort) => effort,
            None => &body["reasoning"]["effort"],
        };
        let caches = ["cache_control", "prompt_cache"];
        let has_schema = body.get("response_format").is_some() || body.get("text").is_some();
        let schemas = ["response_format", "text.format", "json_schema", "grammar"];
        if has_schema && schemas.iter().any(|name| names(name)) {
            next.schema = SchemaHabit::Never;
        } else if self.cache != CacheHabit::Unsaid && caches.iter().any(|name| names(name)) {
            next.cache = CacheHabit::Unsaid;
        } else if body.get("include").is_some()
            && is_unsupported
            && (param == "include" || names("encrypted content"))
        {
            next.no_encrypted = true;
        } else if names("reasoning_effort")
            || names("reasoning.effort")
            || param == "reasoning" && !effort.is_null()
        {
            next.effort = self.effort_after(effort, body.get("tools").is_some(), &said);
        } else if body.get("temperature").is_some() && names("temperature") {
            next.no_temperature = true;
        } else if body.get("max_tokens").is_some()
            && is_unsupported
            && names("max_tokens")
            && said.contains("max_completion_tokens")
        {
            next.limit_name = "max_completion_tokens";
        } else if body.get("max_completion_tokens").is_some()
            && is_unsupported
            && names("max_completion_tokens")
        {
            next.limit_name = "max_tokens";
        } else if *has_wanted_tool && names("tool_choice") {
            next.no_forced_tool = true;
        } else if *has_replayed
            && ["thinking", "signature", "encrypted", "reasoning", "extra"]
                .iter()
                .any(|it| said.contains(it))
        {
            next.is_neutral = true;
        }
        (next != self).then_some(next)
    }

    fn effort_after(self, sent: &Value, has_tools: bool, said: &str) -> EffortHabit {
        let may_be_none = has_tools && sent != "none" && (sent.is_null() || said.contains("none"));
        match self.effort {
            EffortHabit::AsSet if may_be_none => EffortHabit::NoneWithTools,
            EffortHabit::AsSet | EffortHabit::NoneWithTools if !sent.is_null() => {
                EffortHabit::LeftOut
            }
            kept => kept,
        }
    }
}

/// The version of one of OpenAI's GPT models: 5 and 6 for `gpt-5.6-mini`.
pub(super) fn gpt(model: &str) -> Option<(u32, u32)> {
    let name = model.strip_prefix("gpt-")?;
    let version = name.split('-').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether one of OpenAI's own models reasons, by its name: only the models that do not reason are a closed set.
fn reasons(model: &str) -> bool {
    let model = model.strip_prefix("ft:").unwrap_or(model);
    let plain = ["gpt-3", "gpt-4", "chatgpt", "davinci", "babbage"];
    !plain.iter().any(|name| model.starts_with(name)) && !model.contains("-chat")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::llm::Provider;

    fn first(model: &str, wire: Wire, is_openai: bool) -> Habits {
        let mut settings = ModelSettings::sample(Provider::OpenAi, None);
        model.clone_into(&mut settings.model);
        Habits::of(&settings, wire, is_openai)
    }

    /// The habits after a body was refused with this message about a parameter.
    fn after(habits: Habits, body: &Value, param: Option<&str>, message: &str) -> Option<Habits> {
        habits.after(&RefusedRequest {
            body,
            has_replayed: false,
            has_wanted_tool: false,
            error: &json!({"param": param, "message": message}),
        })
    }

    #[test]
    fn names_tell_what_is_known_of_a_model() {
        let habits = |model| first(model, Wire::Chat, true).effort;
        assert_eq!(habits("gpt-5.6-mini"), EffortHabit::NoneWithTools);
        assert_eq!(habits("gpt-6"), EffortHabit::NoneWithTools);
        assert_eq!(habits("gpt-5.3"), EffortHabit::AsSet);
        assert_eq!(habits("gpt-4o"), EffortHabit::AsSet);
        let schema = |is_openai| first("gpt-5.6", Wire::Chat, is_openai).schema;
        assert_eq!(schema(true), SchemaHabit::Always);
        assert_eq!(schema(false), SchemaHabit::WithoutCalls);
        assert_eq!(
            first("gpt-5.6", Wire::Chat, false).effort,
            EffortHabit::AsSet
        );
        let is_asked = |model| !first(model, Wire::Responses, true).no_encrypted;
        assert!(is_asked("gpt-5.6") && is_asked("o3") && is_asked("ft:gpt-5:acme::x"));
        assert!(
            !is_asked("gpt-4o-mini")
                && !is_asked("ft:gpt-4o:acme::x")
                && !is_asked("gpt-5-chat-latest")
        );
        assert_eq!(
            first("x", Wire::Chat, true).limit_name,
            "max_completion_tokens"
        );
        assert_eq!(first("x", Wire::Chat, false).limit_name, "max_tokens");
    }

    #[test]
    fn what_a_provider_refuses_is_asked_otherwise_once() {
        let habits = first("x", Wire::Chat, false);
        let limit = json!({"max_tokens": 9});
        let words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        let renamed = after(habits, &limit, Some("max_tokens"), words).expect("it helps");
        assert_eq!(renamed.limit_name, "max_completion_tokens");
        assert_eq!(
            after(
                habits,
                &limit,
                None,
                "max_tokens: 9 > 8, which is the maximum"
            ),
            None
        );
        let too_large = "'max_tokens' or 'max_completion_tokens' is too large: 9";
        assert_eq!(after(habits, &limit, None, too_large), None);

        let warm = json!({"temperature": 0.5});
        let cold =
            after(habits, &warm, Some("temperature"), "Unsupported value").expect("it helps");
        assert!(cold.no_temperature);
        assert_eq!(
            after(cold, &json!({}), Some("temperature"), "Unsupported value"),
            None
        );
    }

    #[test]
    fn tools_and_effort_come_to_terms_or_the_effort_goes() {
        let habits = first("x", Wire::Chat, false);
        let words = "Function tools with reasoning_effort are not supported for x in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
        for body in [
            json!({"tools": []}),
            json!({"tools": [], "reasoning_effort": "low"}),
        ] {
            let next = after(habits, &body, Some("reasoning_effort"), words).expect("it helps");
            assert_eq!(next.effort(Some(Effort::Low), true), Some(Effort::None));
            assert_eq!(next.effort(Some(Effort::Low), false), Some(Effort::Low));
            let body = json!({"tools": [], "reasoning_effort": "none"});
            let last = after(
                next,
                &body,
                Some("reasoning_effort"),
                "Unsupported value: 'none'",
            );
            assert_eq!(
                last.expect("it helps").effort(Some(Effort::Low), true),
                None
            );
        }
        let body = json!({"reasoning": {"effort": "xhigh"}});
        let next = after(
            habits,
            &body,
            Some("reasoning.effort"),
            "Unsupported value: 'xhigh'",
        );
        assert_eq!(
            next.expect("it helps").effort(Some(Effort::Xhigh), true),
            None
        );
        assert_eq!(
            after(habits, &json!({}), Some("reasoning_effort"), "no"),
            None
        );
    }

    #[test]
    fn thoughts_that_are_not_taken_back_are_left_out() {
        let habits = first("x", Wire::Responses, true);
        let refused = |body: &Value, has_replayed, message: &str| {
            habits.after(&RefusedRequest {
                body,
                has_replayed,
                has_wanted_tool: false,
                error: &json!({"message": message}),
            })
        };
        let bound = "messages.3: `thinking` blocks are bound to a different conversation";
        assert!(refused(&json!({}), true, bound).is_some_and(|next| next.is_neutral));
        assert_eq!(refused(&json!({}), false, bound), None);
        let items = "The encrypted content gAAA could not be verified.";
        let body = json!({"include": ["reasoning.encrypted_content"]});
        assert!(refused(&body, true, items).is_some_and(|next| next.is_neutral));
        let plain = "Encrypted content is not supported with this model.";
        assert!(refused(&body, true, plain).is_some_and(|next| next.no_encrypted));
    }
}
