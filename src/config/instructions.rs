//! An agent's instructions, which are in the configuration or in a file of their own.

use super::answer_form::AnswerForm;
use super::resolve::Review;
use super::settings::AgentSettings;
use super::template::{Template, TemplateValue};

/// The beginning of an agent's prompts: the instructions, and the form that its answers must have.
pub(super) fn resolve_instructions(
    name: &str,
    shape: &AgentSettings,
    form: Option<&AnswerForm>,
    review: &mut Review<'_>,
) -> Template {
    let inline_key = format!("agents.{name}.instructions");
    let file_key = format!("agents.{name}.instructions_file");
    let (key, text) = match &shape.instructions_file {
        Some(_) if review.origins.has(&inline_key) && review.origins.has(&file_key) => {
            review.problem(&file_key, "is set and so is instructions; keep one of them");
            return Template::default();
        }
        Some(file) if !review.origins.has(&inline_key) => {
            let path = review.base_dir.join(file);
            match std::fs::read_to_string(&path) {
                Ok(text) => (file_key, text),
                Err(error) => {
                    review.problem(
                        &file_key,
                        format!("{} can't be read: {error}", path.display()),
                    );
                    return Template::default();
                }
            }
        }
        _ => (inline_key, shape.instructions.clone()),
    };
    let template = Template::parse(&text).unwrap_or_else(|what| {
        review.problem(&key, what);
        Template::default()
    });
    let of_a_run = [TemplateValue::Participant, TemplateValue::Date];
    if let Some(value) = of_a_run.into_iter().find(|value| template.has(*value)) {
        review.warn(
            &key,
            format!(
                "{{{{{0}}}}} changes what every prompt begins with, so that the provider's cache gives less; \
                 agents.{name}.situation stands behind the history and may hold it",
                value.name()
            ),
        );
    }
    match form {
        Some(form) => template.followed_by(&form.instruction()),
        None => template,
    }
}
