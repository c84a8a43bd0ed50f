//! The models behind our own trait, over real sockets against the scripted model server.
//!
//! Tests named `gap_n` pin what client libraries get wrong, by the numbers under which it was found: 1 is
//! about streams, 2 and 3 about tool calls, 4 about retries, 6 about base URLs. Calls here are not
//! streamed; `streams` has those that are, `wires` what only one of the wires knows.

#![allow(clippy::unwrap_used)]

#[path = "llm_provider/limits.rs"]
mod limits;
#[path = "llm_provider/streams.rs"]
mod streams;
#[path = "llm_provider/wires.rs"]
mod wires;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Once};
use std::time::Duration;

use serde_json::{Value, json};
use vocative::llm::{
    Answer, BuildError, Caching, Exchange, Model, ModelError, ModelSettings, Provider, Request,
    ToolCall, ToolChoice, ToolResult, ToolSpec, build,
};
use vocative_core::prompting::{ClassEstimate, PromptMessage, PromptRole, TokenCounter};
use vocative_core::run::Finish;
use vocative_core::run::Usage;
use vocative_sandbox::model::{ModelAct, ModelReply, ModelServer, ModelToolCall};
use vocative_sandbox::wire::WireLog;

const KEY: &str = "sk-test-key-1234567890";

fn http() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap();
    });
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .build()
        .unwrap()
}

async fn server() -> ModelServer {
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    ModelServer::start(addr, WireLog::new()).await.unwrap()
}

fn settings(provider: Provider, base_url: String) -> ModelSettings {
    ModelSettings {
        provider,
        api: None,
        model: "loopback-small".to_owned(),
        base_url: Some(base_url),
        api_key: Some(KEY.to_owned().into()),
        timeout_ms: 10_000,
        max_output_tokens: 256,
        temperature: Some(0.5),
        reasoning_effort: None,
        context_limit: None,
        retries: 0,
        stream: true,
    }
}

fn model(provider: Provider, server: &ModelServer) -> Arc<dyn Model> {
    build(&settings(provider, server.openai_url()), http()).unwrap()
}

fn message(role: PromptRole, content: &str) -> PromptMessage {
    PromptMessage {
        role,
        content: content.to_owned(),
    }
}

fn conversation() -> Vec<PromptMessage> {
    vec![
        message(PromptRole::System, "You are Kael."),
        message(PromptRole::User, "Alice: hi"),
        message(PromptRole::User, "Bob: hello"),
        message(PromptRole::Assistant, "Hello both."),
        message(PromptRole::System, "Dana joined"),
        message(PromptRole::User, "Alice: bye"),
    ]
}

async fn ask(model: &Arc<dyn Model>) -> Result<Answer, ModelError> {
    let messages = conversation();
    let request = Request::of(&messages);
    model.complete(&request).await
}

/// The outcome of one scripted reply, by both providers.
async fn outcomes(reply: ModelReply) -> [Result<Answer, ModelError>; 2] {
    let server = server().await;
    let mut outcomes = Vec::new();
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        server.enqueue(reply.clone());
        outcomes.push(ask(&model(provider, &server)).await);
    }
    outcomes.try_into().unwrap()
}

#[tokio::test]
async fn openai_gets_every_message_in_order_and_its_usage_is_kept() {
    let server = server().await;
    server.enqueue(ModelReply::text("  Bye, Alice. ").usage(31, 7));
    let model = model(Provider::OpenAi, &server);
    let answer = ask(&model).await.unwrap();
    let raw: Value = serde_json::from_str(&answer.raw_message).unwrap();
    assert_eq!(
        raw,
        json!({
            "version": 2,
            "provider": "openai",
            "api": "chat",
            "model": "loopback-small",
            "message": raw["message"],
        })
    );
    assert_eq!(raw["message"]["content"], "  Bye, Alice. ");
    assert_eq!(
        answer,
        Answer {
            text: "Bye, Alice.".to_owned(),
            tool_calls: Vec::new(),
            usage: Usage {
                prompt_tokens: 31,
                completion_tokens: 7,
                ..Usage::default()
            },
            reported_prompt_tokens: Some(31),
            raw_message: answer.raw_message.clone(),
            finish: Finish::Stop,
        }
    );
    assert_eq!(model.name(), "openai/loopback-small");
    assert_eq!(
        server.requests()[0].body,
        json!({
            "model": "loopback-small",
            "stream": false,
            "temperature": 0.5,
            "max_tokens": 256,
            "messages": [
                {"role": "system", "content": "You are Kael."},
                {"role": "user", "content": "Alice: hi"},
                {"role": "user", "content": "Bob: hello"},
                {"role": "assistant", "content": "Hello both."},
                {"role": "system", "content": "Dana joined"},
                {"role": "user", "content": "Alice: bye"},
            ],
        })
    );
}

#[tokio::test]
async fn anthropic_gets_system_messages_at_the_top() {
    let server = server().await;
    server.enqueue(ModelReply::text("Bye, Alice.").usage(31, 7));
    let answer = ask(&model(Provider::Anthropic, &server)).await.unwrap();
    assert_eq!(answer.text, "Bye, Alice.");
    assert_eq!(answer.finish, Finish::Stop);
    assert_eq!(
        answer.usage,
        Usage {
            prompt_tokens: 31,
            completion_tokens: 7,
            ..Usage::default()
        }
    );
    assert_eq!(
        server.requests()[0].body,
        json!({
            "model": "loopback-small",
            "stream": false,
            "system": "You are Kael.\n\nDana joined",
            "temperature": 0.5,
            "max_tokens": 256,
            "messages": [
                {"role": "user", "content": "Alice: hi"},
                {"role": "user", "content": "Bob: hello"},
                {"role": "assistant", "content": "Hello both."},
                {"role": "user", "content": "Alice: bye"},
            ],
        })
    );
}

#[tokio::test]
async fn anthropic_never_sees_an_answer_of_ours_first() {
    let server = server().await;
    let messages = [
        message(PromptRole::System, "You are Kael."),
        message(PromptRole::Assistant, "As I said."),
        message(PromptRole::User, "Alice: bye"),
    ];
    let request = Request::of(&messages);
    let anthropic = model(Provider::Anthropic, &server);
    assert!(anthropic.complete(&request).await.is_ok());
    let openai = model(Provider::OpenAi, &server);
    assert!(openai.complete(&request).await.is_ok());
    let sent = server.requests();
    assert_eq!(
        sent[0].body["messages"],
        json!([
            {"role": "user", "content": "(This conversation began earlier.)"},
            {"role": "assistant", "content": "As I said."},
            {"role": "user", "content": "Alice: bye"},
        ])
    );
    assert_eq!(sent[1].body["messages"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn model_names_are_sent_as_they_are() {
    let server = server().await;
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let name = "ft:gpt-4o:acme::abc123";
        let settings = ModelSettings {
            model: name.to_owned(),
            ..settings(provider, server.openai_url())
        };
        ask(&build(&settings, http()).unwrap()).await.unwrap();
        assert_eq!(server.requests().last().unwrap().body["model"], name);
    }
    let settings = ModelSettings {
        model: "qwen-32b-high".to_owned(),
        ..settings(Provider::OpenAi, server.openai_url())
    };
    ask(&build(&settings, http()).unwrap()).await.unwrap();
    let body = server.requests().pop().unwrap().body;
    assert_eq!(body["model"], "qwen-32b-high");
    assert_eq!(body.get("reasoning_effort"), None);
}

#[tokio::test]
async fn a_server_without_keys_gets_none() {
    let server = server().await;
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let settings = ModelSettings {
            api_key: None,
            ..settings(provider, server.openai_url())
        };
        let refused = ask(&build(&settings, http()).unwrap()).await.unwrap_err();
        let ModelError::AccountRefused { reason } = refused else {
            panic!("{refused}");
        };
        assert!(reason.starts_with("HTTP 401"), "{reason}");
        let names: Vec<String> = server
            .requests()
            .pop()
            .unwrap()
            .headers
            .into_iter()
            .map(|h| h.0)
            .collect();
        assert!(
            !names
                .iter()
                .any(|name| name == "authorization" || name == "x-api-key")
        );
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_says_so() {
    let reply = ModelReply::new(ModelAct::Cut {
        text: "Once upon".to_owned(),
    });
    for outcome in outcomes(reply).await {
        let answer = outcome.unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.finish),
            ("Once upon", Finish::Length)
        );
    }
}

#[tokio::test]
async fn an_answer_without_text_is_an_error() {
    for outcome in outcomes(ModelReply::text("")).await {
        assert_eq!(outcome, Err(ModelError::Empty));
    }
}

#[tokio::test]
async fn reasoning_in_the_text_is_not_part_of_the_answer() {
    let [openai, _] = outcomes(ModelReply::text("<think>hmm</think>\nYes.")).await;
    assert_eq!(openai.unwrap().text, "Yes.");
}

/// Routers answer with a status of success whatever went wrong behind them.
#[tokio::test]
async fn an_error_in_place_of_an_answer_is_read_as_what_it_says() {
    let said = |error: Value| {
        ModelReply::new(ModelAct::Status {
            status: 200,
            headers: Vec::new(),
            body: Some(json!({"error": error}).to_string()),
        })
    };
    let busy = said(json!({"code": 429, "message": "upstream is busy"}));
    for outcome in outcomes(busy).await {
        assert!(
            matches!(outcome, Err(ModelError::RetryAfter { .. })),
            "{outcome:?}"
        );
    }
    let refused = said(json!({"type": "invalid_request_error", "message": "no such model"}));
    for outcome in outcomes(refused).await {
        assert!(
            matches!(outcome, Err(ModelError::Refused { .. })),
            "{outcome:?}"
        );
    }
}

/// Gap 1: a stream that ends early raises no error. Unstreamed, a body that ends early does.
#[tokio::test]
async fn gap_1_a_body_that_ends_early_is_no_answer() {
    let reply = ModelReply::new(ModelAct::Truncated {
        text: "Once upon a".to_owned(),
    });
    for outcome in outcomes(reply).await {
        assert!(
            matches!(
                outcome,
                Err(ModelError::Unavailable { .. } | ModelError::Malformed { .. })
            ),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_tool_call_nobody_offered_is_no_answer() {
    for outcome in outcomes(ModelReply::tool_call("c", "search", json!({}))).await {
        assert_eq!(outcome, Err(ModelError::Empty));
    }
}

fn search_tool() -> [ToolSpec; 1] {
    [ToolSpec {
        name: "search".to_owned(),
        description: "Finds it.".to_owned(),
        schema: json!({"type": "object", "properties": {"query": {"type": "string"}}}),
    }]
}

fn call(id: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "search".to_owned(),
        arguments,
    }
}

async fn ask_with_tools(
    model: &Arc<dyn Model>,
    exchanges: &[Exchange],
    tool_choice: ToolChoice,
) -> Result<Answer, ModelError> {
    let (messages, tools) = (conversation(), search_tool());
    let request = Request {
        exchanges,
        tools: &tools,
        tool_choice,
        ..Request::of(&messages)
    };
    model.complete(&request).await
}

/// What the calls were, by both providers.
async fn calls_of(reply: ModelReply) -> [Vec<ToolCall>; 2] {
    let server = server().await;
    let mut calls = Vec::new();
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        server.enqueue(reply.clone());
        let model = model(provider, &server);
        let answer = ask_with_tools(&model, &[], ToolChoice::Auto).await.unwrap();
        assert_eq!(answer.text, "");
        calls.push(answer.tool_calls);
    }
    calls.try_into().unwrap()
}

#[tokio::test]
async fn parallel_calls_come_in_order_and_their_results_go_back_behind_them() {
    let server = server().await;
    let asked = ["a", "b"].map(|id| ModelToolCall {
        id: id.to_owned(),
        name: "search".to_owned(),
        arguments: json!({"query": id}),
    });
    let result = |id: &str, is_error| ToolResult {
        call_id: id.to_owned(),
        content: format!("result of {id}"),
        is_error,
        images: Vec::new(),
    };
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let act = ModelAct::Answer {
            text: "Let me see.".to_owned(),
            tool_calls: asked.to_vec(),
        };
        server.enqueue(ModelReply::new(act).usage(20, 5));
        server.enqueue(ModelReply::text("Found."));
        let model = model(provider, &server);
        let first = ask_with_tools(&model, &[], ToolChoice::Auto).await.unwrap();
        assert_eq!(first.text, "Let me see.");
        let expected = ["a", "b"].map(|id| call(id, json!({"query": id})));
        assert_eq!(first.tool_calls, expected);
        assert_eq!(first.usage.prompt_tokens, 20);
        let exchange = Exchange {
            text: first.text,
            calls: first.tool_calls,
            results: vec![result("a", false), result("b", true)],
            ..Exchange::default()
        };
        let last = ask_with_tools(&model, &[exchange], ToolChoice::None).await;
        assert_eq!(last.unwrap().text, "Found.");
    }
    let sent = server.requests();
    let (schema, wire) = (&search_tool()[0].schema, |n: usize| &sent[n].body);
    assert_eq!(
        wire(0)["tools"],
        json!([{"type": "function", "function": {
            "name": "search", "description": "Finds it.", "parameters": schema, "strict": false,
        }}])
    );
    assert_eq!(wire(0).get("tool_choice"), None);
    assert_eq!(wire(1)["tool_choice"], "none");
    let function = |id: &str| {
        json!({"type": "function", "id": id, "function": {
            "name": "search", "arguments": format!("{{\"query\":\"{id}\"}}"),
        }})
    };
    let messages = wire(1)["messages"].as_array().unwrap();
    assert_eq!(
        messages[messages.len() - 3..],
        [
            json!({"role": "assistant", "content": "Let me see.",
                   "tool_calls": [function("a"), function("b")]}),
            json!({"role": "tool", "tool_call_id": "a", "content": "result of a"}),
            json!({"role": "tool", "tool_call_id": "b", "content": "Error: result of b"}),
        ]
    );
    assert_eq!(
        wire(2)["tools"],
        json!([{"name": "search", "description": "Finds it.", "input_schema": schema}])
    );
    assert_eq!(wire(3)["tool_choice"], json!({"type": "none"}));
    let used =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "search", "input": {"query": id}});
    let gave = |id: &str, content: &str| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let messages = wire(3)["messages"].as_array().unwrap();
    assert_eq!(
        messages[messages.len() - 2..],
        [
            json!({"role": "assistant", "content": [
                {"type": "text", "text": "Let me see."}, used("a"), used("b"),
            ]}),
            json!({"role": "user", "content": [
                gave("a", "result of a"),
                {"type": "tool_result", "tool_use_id": "b", "content": "result of b", "is_error": true},
            ]}),
        ]
    );
}

/// Gap 2: a streamed call without `index` is lost. Unstreamed, there is no index to miss.
#[tokio::test]
async fn gap_2_a_call_without_index_is_not_lost() {
    let reply = ModelReply::new(ModelAct::ToolCallWithoutIndex(ModelToolCall {
        id: "call_1".to_owned(),
        name: "search".to_owned(),
        arguments: json!({"query": "x"}),
    }));
    for calls in calls_of(reply).await {
        assert_eq!(calls, [call("call_1", json!({"query": "x"}))]);
    }
}

/// Gap 3: arguments that are no JSON, empty or missing, or a call without an id, make no answer fail. The
/// call gets through, so that the model can be told what is wrong with it.
#[tokio::test]
async fn gap_3_arguments_that_are_no_json_get_through() {
    let cases = [
        (r#""{\"query\":""#, json!("{\"query\":")),
        (r#""not json""#, json!("not json")),
        (r#""\"a string\"""#, json!("a string")),
        (r#""""#, json!({})),
        ("null", json!({})),
        (r#"{"query": "x"}"#, json!({"query": "x"})),
        (r#""{\"query\": \"x\"}""#, json!({"query": "x"})),
    ];
    for (written, expected) in cases {
        for id in [r#""id": "c","#, ""] {
            let body = format!(
                r#"{{"choices": [{{"finish_reason": "tool_calls", "message": {{"role": "assistant",
                    "content": null, "tool_calls": [{{{id} "type": "function", "function":
                    {{"name": "search", "arguments": {written}}}}}]}}}}],
                    "usage": {{"prompt_tokens": 9, "completion_tokens": 2}}}}"#
            );
            let server = server().await;
            let reply = ModelReply::status(200).header("content-type", "application/json");
            server.enqueue(reply.body(&body));
            let model = model(Provider::OpenAi, &server);
            let answer = ask_with_tools(&model, &[], ToolChoice::Auto).await.unwrap();
            let id = if id.is_empty() { "call_0" } else { "c" };
            assert_eq!(answer.tool_calls, [call(id, expected.clone())], "{written}");
            let usage = Usage {
                prompt_tokens: 9,
                completion_tokens: 2,
                ..Usage::default()
            };
            assert_eq!(answer.usage, usage);

            // What goes back is an object, whatever it was.
            let exchange = Exchange {
                told: String::new(),
                text: String::new(),
                calls: answer.tool_calls,
                raw_message: answer.raw_message,
                results: vec![ToolResult {
                    call_id: id.to_owned(),
                    content: "no".to_owned(),
                    is_error: true,
                    images: Vec::new(),
                }],
            };
            let next = ask_with_tools(&model, &[exchange], ToolChoice::Auto).await;
            assert!(next.is_ok(), "{next:?}");
        }
    }
}

/// Gap 4: failures that pass are asked again, and given up in time.
#[tokio::test]
async fn gap_4_passing_failures_are_asked_again() {
    let server = server().await;
    let retrying = ModelSettings {
        retries: 2,
        ..settings(Provider::OpenAi, server.openai_url())
    };
    let model = build(&retrying, http()).unwrap();
    server.enqueue(ModelReply::status(503));
    server.enqueue(ModelReply::new(ModelAct::Reset));
    server.enqueue(ModelReply::text("at last"));
    assert_eq!(ask(&model).await.unwrap().text, "at last");
    server.enqueue(ModelReply::status(401));
    assert!(matches!(
        ask(&model).await,
        Err(ModelError::AccountRefused { .. })
    ));
    assert_eq!((server.requests().len(), server.replies_left()), (4, 0));
}

/// Gap 6: without its trailing slash a base URL does not lose its last segment.
#[tokio::test]
async fn gap_6_a_base_url_needs_no_slash_and_no_version() {
    let server = server().await;
    let addr = server.addr();
    for base_url in [
        format!("http://{addr}"),
        format!("http://{addr}/v1"),
        format!("http://{addr}/v1/chat/completions"),
    ] {
        let settings = settings(Provider::OpenAi, base_url.clone());
        let answer = ask(&build(&settings, http()).unwrap()).await;
        assert!(answer.is_ok(), "{base_url}: {answer:?}");
    }
}

#[tokio::test]
async fn a_rate_limit_keeps_its_wait() {
    for outcome in outcomes(ModelReply::rate_limited(7)).await {
        assert_eq!(
            outcome,
            Err(ModelError::RetryAfter {
                wait_ms: Some(7_000)
            })
        );
    }
    for outcome in outcomes(ModelReply::status(429)).await {
        assert_eq!(outcome, Err(ModelError::RetryAfter { wait_ms: None }));
    }
}

#[tokio::test]
async fn a_stalled_answer_times_out() {
    let server = server().await;
    server.enqueue(ModelReply::new(ModelAct::Hang));
    let hasty = ModelSettings {
        timeout_ms: 100,
        ..settings(Provider::OpenAi, server.openai_url())
    };
    assert_eq!(
        ask(&build(&hasty, http()).unwrap()).await,
        Err(ModelError::Unavailable {
            cause: "no answer within 100 ms".to_owned()
        })
    );
}

#[tokio::test]
async fn a_lost_connection_is_told_without_its_address() {
    let server = server().await;
    server.enqueue(ModelReply::new(ModelAct::Reset));
    let model = model(Provider::OpenAi, &server);
    let reset = ask(&model).await.unwrap_err();
    let addr = server.addr().to_string();
    server.stop().await;
    let refused = ask(&model).await.unwrap_err();
    for error in [reset, refused] {
        let ModelError::Unavailable { cause } = &error else {
            panic!("{error}");
        };
        assert!(cause.contains("connection"), "{cause}");
        assert!(!error.to_string().contains(&addr), "{error}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_is_malformed() {
    let html = ModelReply::status(200)
        .header("content-type", "text/html")
        .body("<html>hello</html>");
    for reply in [ModelReply::new(ModelAct::Malformed), html] {
        for outcome in outcomes(reply).await {
            assert!(
                matches!(outcome, Err(ModelError::Malformed { .. })),
                "{outcome:?}"
            );
        }
    }
}

#[tokio::test]
async fn missing_usage_is_estimated() {
    let body = r#"{"choices": [{"message": {"role": "assistant", "content": "hello"}}]}"#;
    let reply = ModelReply::status(200)
        .header("content-type", "application/json")
        .body(body);
    let [openai, _] = outcomes(reply).await;
    let prompt: usize = conversation()
        .iter()
        .map(|m| ClassEstimate.cost(&m.content))
        .sum();
    assert_eq!(
        openai.unwrap().usage,
        Usage {
            prompt_tokens: prompt as u64,
            completion_tokens: 2,
            ..Usage::default()
        }
    );
}

#[tokio::test]
async fn no_error_shows_key_prompt_or_url() {
    let leaky = format!("{{\"error\": {{\"message\": \"bad key {KEY}\", \"type\": \"{KEY}\"}}}}");
    let replies = [
        ModelReply::status(401).body(&leaky),
        ModelReply::status(500).body(&leaky),
        ModelReply::status(200).body(&leaky),
        ModelReply::new(ModelAct::Malformed),
        ModelReply::new(ModelAct::Reset),
    ];
    for reply in replies {
        for outcome in outcomes(reply).await {
            let error = outcome.unwrap_err();
            let shown = format!("{error} {error:?}");
            for secret in ["sk-test", "127.0.0.1", "Alice", "bad key"] {
                assert!(!shown.contains(secret), "{shown}");
            }
        }
    }
    let shown = format!(
        "{:?}",
        settings(Provider::OpenAi, "https://x.example/?key=abc".to_owned())
    );
    assert!(
        !shown.contains("abc") && !shown.contains("sk-test"),
        "{shown}"
    );
}

#[test]
fn wrong_settings_are_refused_by_name() {
    let remote = |provider| ModelSettings {
        base_url: None,
        api_key: None,
        ..settings(provider, String::new())
    };
    let error = |settings: &ModelSettings| build(settings, http()).err();
    assert_eq!(
        error(&remote(Provider::OpenAi)),
        Some(BuildError::NoKey { provider: "openai" })
    );
    assert_eq!(error(&remote(Provider::Offline)), None);
    let bad = settings(Provider::OpenAi, "localhost".to_owned());
    assert!(matches!(error(&bad), Some(BuildError::BaseUrl { .. })));
}
