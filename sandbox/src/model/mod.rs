//! A scripted model server: OpenAI- and Anthropic-shaped, streaming or not.
//!
//! [`ModelServer`] answers `POST /v1/responses`, `POST /v1/chat/completions` and `GET /v1/models` as OpenAI does and
//! `POST /v1/messages` as Anthropic does. A model's name decides what it refuses: `gpt-5.6` is as strict as OpenAI's,
//! `claude-fable-5-2` as Anthropic's. It refuses what they refuse, with the body that each of them sends; any API key
//! that is not empty is accepted. Answers come from a script, [`ModelReply`] by [`ModelReply`]; without one the answer
//! is `echo: <last user message>`, or all that was said since the last answer where that is asked for
//! ([`ModelServer::echo_all`]).
//!
//! Another process scripts it over `/control/`, as the README says.
//!
//! Reading order: `reply` (what can be scripted), `server`, then per wire `openai`, `responses` and
//! `anthropic`: checks and wire form, both pure; `embeddings`; `rules` (what a model's name says); `control` (HTTP).

mod anthropic;
mod cache;
mod control;
mod embeddings;
mod openai;
mod reply;
mod responses;
mod rules;
mod server;

pub use reply::{ModelAct, ModelPace, ModelReply, ModelToolCall, ModelUsage};
pub use server::{ModelRequest, ModelServer};
