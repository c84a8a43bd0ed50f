//! Slack's agent surface, for apps that declare it: suggested prompts and titles of threads.
//!
//! All of it is decoration. A failure is a debug line, and nothing waits for it.

use serde_json::json;

use vocative_contract::error::ChannelError;
use vocative_contract::outbound::{Dressing, Target};

use super::api::{SlackApi, Token};

/// The most prompts that Slack shows.
const PROMPTS_MAX: usize = 4;
/// The longest title, in characters.
const TITLE_MAX_CHARS: usize = 200;

/// Puts something up on the surface.
pub(super) async fn dress(api: &SlackApi, target: &Target, dressing: &Dressing) {
    let done = match dressing {
        Dressing::Prompts(prompts) if prompts.is_empty() => return,
        Dressing::Prompts(prompts) => {
            let prompts: Vec<_> = prompts
                .iter()
                .take(PROMPTS_MAX)
                .map(|it| json!({"title": it.title, "message": it.message}))
                .collect();
            let prompts = ("prompts", json!(prompts).to_string());
            call(
                api,
                "assistant.threads.setSuggestedPrompts",
                target,
                prompts,
            )
            .await
        }
        Dressing::Title(title) => {
            let title: String = title.chars().take(TITLE_MAX_CHARS).collect();
            call(api, "assistant.threads.setTitle", target, ("title", title)).await
        }
    };
    if let Err(error) = done {
        let reason = error.reason();
        tracing::debug!(reason, "the agent surface could not be dressed");
    }
}

async fn call(
    api: &SlackApi,
    method: &'static str,
    target: &Target,
    what: (&'static str, String),
) -> Result<(), ChannelError> {
    let mut arguments = vec![("channel_id", target.chat.clone()), what];
    let thread = target.thread.clone();
    arguments.extend(thread.map(|thread| ("thread_ts", thread)));
    api.call(method, Token::Bot, &arguments).await.map(drop)
}
