//! Answers in the form of OpenAI's chat completions. *Source:* OpenAI's API reference, "Chat Completions".

use axum::body::Bytes;
use serde_json::{Value, json};

use super::failure::CompletionFailure;
use vocative_core::ids::AgentName;
use vocative_core::run::Usage;
use vocative_store::contract::AskedRun;

/// A sign of life between pieces.
pub(super) const STILL_HERE: Bytes = Bytes::from_static(b": still here\n\n");

/// Tells the answer of a run.
#[derive(Clone, Debug)]
pub(super) struct AnswerTelling {
    pub(super) run: AskedRun,
    pub(super) agent: AgentName,
    /// When it was asked, in seconds since the Unix epoch.
    pub(super) created_s: i64,
}

impl AnswerTelling {
    fn object(&self, kind: &str) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.run.run),
            "object": kind,
            "created": self.created_s,
            "model": self.agent.as_str(),
            // Not a field of OpenAI's: where the answer is kept.
            "vocative": {
                "run": self.run.run.to_string(),
                "conversation": self.run.conversation.to_string(),
            },
        })
    }

    /// The answer as one object.
    pub(super) fn whole(&self, text: &str, used: Usage) -> Value {
        let mut object = self.object("chat.completion");
        object["choices"] = json!([{
            "index": 0,
            "message": { "role": "assistant", "content": text, "refusal": null },
            "logprobs": null,
            "finish_reason": "stop",
        }]);
        object["usage"] = usage(used);
        object
    }

    /// The beginning of a stream.
    pub(super) fn begin(&self) -> Bytes {
        self.chunk(&json!({ "role": "assistant", "content": "" }), &Value::Null)
    }

    /// A piece of the answer.
    pub(super) fn piece(&self, text: &str) -> Bytes {
        self.chunk(&json!({ "content": text }), &Value::Null)
    }

    /// The end of a stream, with the tokens where they are wanted.
    pub(super) fn end(&self, used: Option<Usage>) -> Bytes {
        let mut text = self.chunk(&json!({}), &json!("stop")).to_vec();
        if let Some(used) = used {
            let mut object = self.object("chat.completion.chunk");
            object["choices"] = json!([]);
            object["usage"] = usage(used);
            text.extend_from_slice(&data(&object));
        }
        text.extend_from_slice(b"data: [DONE]\n\n");
        text.into()
    }

    fn chunk(&self, delta: &Value, finish: &Value) -> Bytes {
        let mut object = self.object("chat.completion.chunk");
        object["choices"] = json!([{
            "index": 0,
            "delta": delta,
            "logprobs": null,
            "finish_reason": finish,
        }]);
        data(&object)
    }
}

/// What went wrong, in a stream that has begun.
pub(super) fn error(failure: &CompletionFailure) -> Bytes {
    data(&failure.body())
}

/// JSON has no line breaks, so it is one line.
fn data(object: &Value) -> Bytes {
    format!("data: {object}\n\n").into()
}

fn usage(used: Usage) -> Value {
    json!({
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "total_tokens": used.total(),
        "prompt_tokens_details": { "cached_tokens": used.cache_read_tokens },
    })
}

/// The agents as models.
pub(super) fn models(agents: &[AgentName]) -> Value {
    json!({ "object": "list", "data": agents.iter().map(model).collect::<Vec<_>>() })
}

/// An agent as a model. When it was configured is not known.
pub(super) fn model(agent: &AgentName) -> Value {
    json!({ "id": agent.as_str(), "object": "model", "created": 0, "owned_by": "vocative" })
}
