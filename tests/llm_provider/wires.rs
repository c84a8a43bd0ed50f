//! What only one of the wires knows, and what goes back of an answer between the steps of a run. The
//! server refuses what the providers refuse.

use vocative::llm::{Effort, OpenAiApi};

use vocative_core::prompting::files::PromptImage;

use super::streams::{Heard, listen};
use super::*;

/// Who serves a model, by which API, and its name.
type Asked = (Provider, Option<OpenAiApi>, &'static str);

const GPT: Asked = (Provider::OpenAi, Some(OpenAiApi::Responses), "gpt-5.6");
const CLAUDE: Asked = (Provider::Anthropic, None, "claude-fable-5-2");
const LOCAL: Asked = (Provider::OpenAi, Some(OpenAiApi::Chat), "kimi-k2");

fn settings_of((provider, api, model): Asked, server: &ModelServer) -> ModelSettings {
    ModelSettings {
        api,
        model: model.to_owned(),
        temperature: None,
        ..settings(provider, server.openai_url())
    }
}

fn model_of(asked: Asked, server: &ModelServer) -> Arc<dyn Model> {
    build(&settings_of(asked, server), http()).unwrap()
}

fn sent(server: &ModelServer) -> Value {
    server.requests().pop().unwrap().body
}

/// What a run sends back of its first step.
fn exchange(first: &Answer) -> Exchange {
    let result = |call: &ToolCall| ToolResult {
        call_id: call.id.clone(),
        content: "found".to_owned(),
        is_error: false,
        images: Vec::new(),
    };
    Exchange {
        told: String::new(),
        text: first.text.clone(),
        calls: first.tool_calls.clone(),
        results: first.tool_calls.iter().map(result).collect(),
        raw_message: first.raw_message.clone(),
    }
}

fn thinking_call() -> ModelReply {
    ModelReply::tool_call("a", "search", json!({"query": "x"})).thinking("hm, hm")
}

#[tokio::test]
async fn responses_store_nothing_and_ask_for_encrypted_reasoning() {
    let server = server().await;
    let settings = ModelSettings {
        reasoning_effort: Some(Effort::Low),
        ..settings_of(GPT, &server)
    };
    server.enqueue(ModelReply::text(" Bye, Alice. ").usage(31, 7));
    let model = build(&settings, http()).unwrap();
    let answer = ask_with_tools(&model, &[], ToolChoice::None).await.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.finish),
        ("Bye, Alice.", Finish::Stop)
    );
    assert_eq!(answer.reported_prompt_tokens, Some(31));
    assert_eq!(server.requests()[0].path, "/v1/responses");
    assert_eq!(
        sent(&server),
        json!({
            "model": "gpt-5.6",
            "input": [
                {"role": "system", "content": "You are Kael."},
                {"role": "user", "content": "Alice: hi"},
                {"role": "user", "content": "Bob: hello"},
                {"role": "assistant", "content": "Hello both."},
                {"role": "system", "content": "Dana joined"},
                {"role": "user", "content": "Alice: bye"},
            ],
            "max_output_tokens": 256,
            "store": false,
            "stream": false,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low"},
            "tools": [{
                "type": "function", "name": "search", "description": "Finds it.",
                "parameters": search_tool()[0].schema, "strict": false,
            }],
            "tool_choice": "none",
        })
    );
}

/// Streamed or not: the server refuses a changed thought, an orphaned result, and reasoning without what it
/// led to.
#[tokio::test]
async fn thoughts_go_back_as_they_were_received() {
    for asked in [GPT, CLAUDE, LOCAL] {
        for is_streamed in [false, true] {
            let server = server().await;
            let model = model_of(asked, &server);
            server.enqueue(thinking_call());
            let first = match is_streamed {
                true => listen(&model, &Heard::default()).await,
                false => ask_with_tools(&model, &[], ToolChoice::Auto).await,
            };
            let first = first.unwrap_or_else(|error| panic!("{asked:?}: {error}"));
            let exchange = exchange(&first);
            let second = ask_with_tools(&model, &[exchange], ToolChoice::None).await;
            assert!(second.is_ok(), "{asked:?}: {second:?}");
            assert_eq!(server.requests().len(), 2, "{asked:?}");
            let body = sent(&server).to_string();
            assert!(body.contains("hm, hm"), "{asked:?}: {body}");
        }
    }
}

#[tokio::test]
async fn thoughts_that_are_bound_to_another_prompt_are_left_out() {
    for asked in [GPT, CLAUDE] {
        let server = server().await;
        let model = model_of(asked, &server);
        server.enqueue(thinking_call());
        let first = ask_with_tools(&model, &[], ToolChoice::Auto).await.unwrap();
        let mut exchange = exchange(&first);
        exchange.raw_message = exchange.raw_message.replace("hm, hm", "ho, ho");
        let second = ask_with_tools(&model, &[exchange], ToolChoice::Auto).await;
        assert!(second.is_ok(), "{asked:?}: {second:?}");
        let statuses: Vec<_> = server.requests().iter().map(|it| it.status).collect();
        assert_eq!(statuses, [Some(200), Some(400), Some(200)]);
        let body = sent(&server).to_string();
        assert!(
            !body.contains("ho, ho") && body.contains("\"found\""),
            "{body}"
        );
    }
}

#[tokio::test]
async fn another_models_thoughts_are_not_sent() {
    let server = server().await;
    server.enqueue(thinking_call());
    let claude = model_of(CLAUDE, &server);
    let first = ask_with_tools(&claude, &[], ToolChoice::Auto)
        .await
        .unwrap();
    let gpt = model_of(GPT, &server);
    let second = ask_with_tools(&gpt, &[exchange(&first)], ToolChoice::Auto).await;
    assert!(second.is_ok(), "{second:?}");
    assert!(!sent(&server).to_string().contains("hm, hm"));
}

#[tokio::test]
async fn newer_models_on_chat_completions_are_asked_as_they_want_it_and_that_is_kept() {
    let server = server().await;
    let settings = ModelSettings {
        temperature: Some(0.5),
        ..settings_of(
            (Provider::OpenAi, Some(OpenAiApi::Chat), "gpt-5.6"),
            &server,
        )
    };
    let model = build(&settings, http()).unwrap();
    for _ in 0..2 {
        let answer = ask_with_tools(&model, &[], ToolChoice::Auto).await;
        assert!(answer.is_ok(), "{answer:?}");
        let body = sent(&server);
        assert_eq!(
            (&body["max_tokens"], &body["temperature"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(body["max_completion_tokens"], 256);
        assert_eq!(body["reasoning_effort"], "none");
    }
    let statuses: Vec<_> = server.requests().iter().map(|it| it.status).collect();
    assert_eq!(statuses, [400, 400, 400, 200, 200].map(Some));
    // Without tools nothing keeps it from reasoning.
    ask(&model).await.unwrap();
    assert_eq!(sent(&server).get("reasoning_effort"), None);
}

#[tokio::test]
async fn settings_that_a_model_does_not_take_are_left_out() {
    for asked in [
        GPT,
        CLAUDE,
        (Provider::OpenAi, Some(OpenAiApi::Responses), "gpt-4o"),
    ] {
        let server = server().await;
        let settings = ModelSettings {
            temperature: Some(0.5),
            ..settings_of(asked, &server)
        };
        let model = build(&settings, http()).unwrap();
        for _ in 0..2 {
            let answer = ask_with_tools(&model, &[], ToolChoice::Auto).await;
            assert!(answer.is_ok(), "{asked:?}: {answer:?}");
        }
        assert_eq!(server.requests().len(), 3, "{asked:?}");
    }
}

#[tokio::test]
async fn a_refusal_in_words_is_the_answer() {
    let body = r#"{"choices": [{"finish_reason": "stop", "message":
        {"role": "assistant", "content": null, "refusal": "I can't help with that."}}]}"#;
    let server = server().await;
    server.enqueue(ModelReply::status(200).body(body));
    let at_once = ask(&model(Provider::OpenAi, &server)).await.unwrap();
    assert_eq!(
        (at_once.text.as_str(), at_once.finish),
        ("I can't help with that.", Finish::Stop)
    );
    let delta = json!({"choices": [{"delta": {"refusal": "I can't help with that."}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    server.enqueue(ModelReply::new(ModelAct::Stream(format!(
        "data: {delta}\n\ndata: {end}\n\n"
    ))));
    let heard = Heard::default();
    let streamed = listen(&model(Provider::OpenAi, &server), &heard)
        .await
        .unwrap();
    assert_eq!(streamed.text, at_once.text);
}

#[tokio::test]
async fn errors_of_responses_are_read_as_the_others() {
    for is_streamed in [false, true] {
        let server = server().await;
        let model = model_of(GPT, &server);
        server.enqueue(ModelReply::new(ModelAct::StreamError {
            text: "Once upon".to_owned(),
            message: KEY.to_owned(),
        }));
        let heard = Heard::default();
        let outcome = match is_streamed {
            true => listen(&model, &heard).await,
            false => ask(&model).await,
        };
        let Err(ModelError::Unavailable { cause }) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            cause.contains("server_error") && !cause.contains(KEY),
            "{cause}"
        );
    }
}

#[tokio::test]
async fn an_answer_of_more_than_eight_mebibytes_is_not_read() {
    let server = server().await;
    let large = format!(
        r#"{{"choices": [{{"message": {{"content": "{}"}}}}]}}"#,
        "x".repeat(8 << 20)
    );
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        server.enqueue(ModelReply::status(200).body(&large));
        let outcome = ask(&model(provider, &server)).await;
        let what = "it is too long".to_owned();
        assert_eq!(outcome, Err(ModelError::Malformed { what }));
    }
}

/// A loop of tools with so many steps, behind a history that is long enough for a cache.
fn long_loop(steps: usize) -> (Vec<PromptMessage>, Vec<Exchange>) {
    let long = "word ".repeat(2_000);
    let messages = vec![
        message(PromptRole::System, &long),
        message(PromptRole::User, "Alice: hi"),
        message(PromptRole::Assistant, "Hello."),
        message(PromptRole::User, "Alice: and now?"),
    ];
    let exchange = |n: usize| Exchange {
        calls: vec![call(&format!("c{n}"), json!({}))],
        results: vec![ToolResult {
            call_id: format!("c{n}"),
            content: "found".to_owned(),
            is_error: false,
            images: Vec::new(),
        }],
        ..Exchange::default()
    };
    (messages, (0..steps).map(exchange).collect())
}

#[tokio::test]
async fn anthropic_is_told_what_its_cache_is_to_keep_and_never_more_than_it_takes() {
    let server = server().await;
    server.count_cache();
    let model = model(Provider::Anthropic, &server);
    let tools = [ToolSpec {
        name: "search".to_owned(),
        description: "Finds.".to_owned(),
        schema: json!({"type": "object"}),
    }];
    let mut reads = Vec::new();
    for steps in [0, 1, 2, 12] {
        let (messages, exchanges) = long_loop(steps);
        let request = Request {
            exchanges: &exchanges,
            tools: &tools,
            caching: Caching {
                stable_messages: 3,
                ..Caching::default()
            },
            ..Request::of(&messages)
        };
        server.enqueue(ModelReply::text("ok"));
        reads.push(
            model
                .complete(&request)
                .await
                .unwrap()
                .usage
                .cache_read_tokens,
        );
    }
    assert!(reads[0] == 0 && reads[1] > 2_000, "{reads:?}");
    assert!(
        reads.is_sorted_by(|a, b| a < b || (*a > 0 && a <= b)),
        "{reads:?}"
    );
    let body = server.requests().pop().unwrap().body;
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["system"][0]["cache_control"], mark);
    assert_eq!(body["messages"][1]["content"][0]["text"], "Hello.");
    assert_eq!(body["messages"][1]["content"][0]["cache_control"], mark);
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"][0]["cache_control"], mark);
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
}

#[tokio::test]
async fn a_server_that_knows_no_marks_is_asked_without_from_then_on() {
    let server = server().await;
    server.refuse_cache_fields();
    let model = model(Provider::Anthropic, &server);
    let (messages, _) = long_loop(0);
    let request = Request {
        caching: Caching {
            stable_messages: 3,
            ..Caching::default()
        },
        ..Request::of(&messages)
    };
    for _ in 0..2 {
        server.enqueue(ModelReply::text("ok"));
        assert_eq!(model.complete(&request).await.unwrap().text, "ok");
    }
    let statuses: Vec<_> = server.requests().iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Some(400), Some(200), Some(200)]);
    // What is compatible with OpenAI is told nothing of caches at all.
    let compatible = super::model(Provider::OpenAi, &server);
    server.enqueue(ModelReply::text("ok"));
    assert_eq!(compatible.complete(&request).await.unwrap().text, "ok");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_tool_that_is_wanted_is_forced_where_the_model_lets_it_be() {
    let any = [json!("required"), json!("required"), json!({"type": "any"})];
    let search = [
        json!({"type": "function", "function": {"name": "search"}}),
        json!({"type": "function", "name": "search"}),
        json!({"type": "tool", "name": "search"}),
    ];
    let lets = (Provider::Anthropic, None, "claude-haiku-4-5");
    for (n, asked) in [LOCAL, GPT, lets].into_iter().enumerate() {
        for (wanted_tool, expected) in [(None, &any[n]), (Some("search"), &search[n])] {
            let server = server().await;
            ask_wanting(&model_of(asked, &server), wanted_tool).await;
            assert_eq!(&sent(&server)["tool_choice"], expected, "{asked:?}");
        }
    }
    // A model that always thinks refuses it, once.
    let server = server().await;
    let model = model_of(CLAUDE, &server);
    for _ in 0..2 {
        ask_wanting(&model, Some("search")).await;
    }
    let statuses: Vec<_> = server.requests().iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Some(400), Some(200), Some(200)]);
    assert!(sent(&server).get("tool_choice").is_none());
}

async fn ask_wanting(model: &Arc<dyn Model>, wanted_tool: Option<&str>) {
    let (messages, tools) = (conversation(), search_tool());
    let request = Request {
        tools: &tools,
        tool_choice: ToolChoice::Wanted,
        wanted_tool,
        ..Request::of(&messages)
    };
    let answer = model.complete(&request).await;
    assert!(answer.is_ok(), "{answer:?}");
}

/// The schema of an answer, and what the model said before.
fn answer_schema() -> Value {
    json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}})
}

async fn ask_for_json(model: &Arc<dyn Model>, exchanges: &[Exchange], tool_choice: ToolChoice) {
    let (messages, tools, schema) = (conversation(), search_tool(), answer_schema());
    let request = Request {
        exchanges,
        tools: &tools,
        tool_choice,
        answer_schema: Some(&schema),
        ..Request::of(&messages)
    };
    let answer = model.complete(&request).await;
    assert!(answer.is_ok(), "{answer:?}");
}

#[tokio::test]
async fn a_provider_is_told_the_schema_of_an_answer_where_it_can_hold_its_model_to_it() {
    let chat = json!({"type": "json_schema", "json_schema": {
        "name": "answer", "schema": answer_schema(), "strict": false,
    }});
    let responses = json!({"format": {
        "type": "json_schema", "name": "answer", "schema": answer_schema(), "strict": false,
    }});
    let table = [
        // A server's grammar would leave no room for calls.
        (LOCAL, ToolChoice::Auto, None),
        (LOCAL, ToolChoice::None, Some(("response_format", &chat))),
        (GPT, ToolChoice::None, Some(("text", &responses))),
        (CLAUDE, ToolChoice::None, None),
    ];
    for (asked, tool_choice, expected) in table {
        let server = server().await;
        ask_for_json(&model_of(asked, &server), &[], tool_choice).await;
        let body = sent(&server);
        let told = ["response_format", "text"]
            .into_iter()
            .find_map(|name| body.get(name).map(|value| (name, value)));
        assert_eq!(told, expected, "{asked:?} {tool_choice:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_to_be_mended_goes_back_with_what_is_wrong_with_it() {
    for asked in [LOCAL, GPT, CLAUDE] {
        let server = server().await;
        let model = model_of(asked, &server);
        let first = ask(&model).await.unwrap();
        let to_mend = Exchange {
            told: "`city` is missing".to_owned(),
            ..exchange(&first)
        };
        ask_for_json(&model, &[to_mend], ToolChoice::None).await;
        let body = sent(&server);
        let said = body["messages"].as_array().or(body["input"].as_array());
        let [answer, told] = said.unwrap().last_chunk().unwrap();
        assert_eq!(answer["role"], "assistant", "{asked:?}: {body}");
        assert!(
            answer["content"].to_string().contains(&first.text),
            "{answer}"
        );
        assert_eq!(told["role"], "user", "{asked:?}");
        assert!(told["content"].to_string().contains("`city` is missing"));
    }
}

#[tokio::test]
async fn a_server_that_takes_no_schema_is_asked_without_from_then_on() {
    let server = server().await;
    let refusal = json!({"error": {
        "message": "response_format of type json_schema is not supported", "type": "invalid_request_error",
    }});
    server.enqueue(ModelReply::status(400).body(&refusal.to_string()));
    let model = model_of(LOCAL, &server);
    for _ in 0..2 {
        ask_for_json(&model, &[], ToolChoice::None).await;
    }
    let schemas: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.body.get("response_format").is_some())
        .collect();
    assert_eq!(schemas, [true, false, false]);
}

#[tokio::test]
async fn pictures_of_tools_stand_where_each_wire_takes_them() {
    let (messages, mut exchanges) = long_loop(1);
    exchanges[0].results[0].images.push(PromptImage {
        name: "chart.png".to_owned(),
        mime_type: "image/png",
        bytes: b"png".as_slice().into(),
    });
    let url = "data:image/png;base64,cG5n";
    let result = json!({"type": "text", "text": "found"});
    let source = json!({"type": "base64", "media_type": "image/png", "data": "cG5n"});
    for (asked, at, expected) in [
        (GPT, "/output/1/image_url", json!(url)),
        (CLAUDE, "/content/0/content/1/source", source),
        (CLAUDE, "/content/0/content/0", result),
        (LOCAL, "/content/1/image_url/url", json!(url)),
    ] {
        let server = server().await;
        let request = Request {
            exchanges: &exchanges,
            ..Request::of(&messages)
        };
        server.enqueue(ModelReply::text("ok"));
        let answered = model_of(asked, &server).complete(&request).await;
        assert_eq!(answered.unwrap().text, "ok");
        let body = sent(&server);
        let all = body["input"].as_array().or(body["messages"].as_array());
        let last = all.unwrap().last().unwrap();
        assert_eq!(last.pointer(at), Some(&expected), "{last}");
    }
}
