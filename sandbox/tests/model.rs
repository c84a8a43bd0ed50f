//! The scripted model server over real sockets, through an ordinary HTTP client.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Once;
use std::time::Duration;

use serde_json::{Value, json};
use vocative_sandbox::model::{ModelAct, ModelReply, ModelServer, ModelToolCall};
use vocative_sandbox::wire::{WireKind, WireLog};

const BOUND: Duration = Duration::from_secs(10);

struct Client {
    server: ModelServer,
    http: reqwest::Client,
    wire: WireLog,
}

impl Client {
    async fn start() -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            rustls::crypto::ring::default_provider()
                .install_default()
                .unwrap();
        });
        let wire = WireLog::new();
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            server: ModelServer::start(addr, wire.clone()).await.unwrap(),
            http: reqwest::Client::new(),
            wire,
        }
    }

    fn openai_request(&self, body: &Value) -> reqwest::RequestBuilder {
        let url = format!("{}chat/completions", self.server.openai_url());
        self.http
            .post(url)
            .bearer_auth("sk-test-key-1234")
            .json(body)
    }

    fn anthropic_request(&self, body: &Value) -> reqwest::RequestBuilder {
        let url = format!("{}messages", self.server.anthropic_url());
        let request = self.http.post(url).header("x-api-key", "sk-test-key-1234");
        request.header("anthropic-version", "2023-06-01").json(body)
    }

    async fn openai(&self, body: Value) -> (u16, Value) {
        answered(self.openai_request(&body)).await
    }

    async fn anthropic(&self, body: Value) -> (u16, Value) {
        answered(self.anthropic_request(&body)).await
    }

    /// The contents of the `data:` lines of a stream.
    async fn events(&self, request: reqwest::RequestBuilder) -> Vec<String> {
        let answer = request.send().await.unwrap();
        let kind = answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        let text = answer.text().await.unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.map(str::to_owned).collect()
    }
}

async fn answered(request: reqwest::RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

fn openai_body(text: &str) -> Value {
    json!({"model": "loopback-small", "messages": user(text)})
}

fn anthropic_body(text: &str) -> Value {
    json!({"model": "loopback-small", "max_tokens": 100, "messages": user(text)})
}

fn streaming(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

#[tokio::test]
async fn asked_to_the_echo_holds_all_that_was_said_since_the_last_answer() {
    let client = Client::start().await;
    client.server.echo_all();
    let said = json!([
        {"role": "user", "content": "an old question"},
        {"role": "assistant", "content": "its answer"},
        {"role": "user", "content": "the first"},
        {"role": "user", "content": "the second"},
    ]);
    let mut body = openai_body("");
    body["messages"] = said;
    let (status, answer) = client.openai(body).await;
    assert_eq!(status, 200);
    let text = &answer["choices"][0]["message"]["content"];
    assert_eq!(text, "echo: the first\nthe second");
}

#[tokio::test]
async fn asked_to_look_something_up_it_calls_the_tool_once_and_then_answers() {
    let client = Client::start().await;
    client.server.echo_all();
    let query = json!({"query": "three"});
    client.server.look_up("look it up", "search", query);
    let mut body = openai_body("please look it up");
    let (_, answer) = client.openai(body.clone()).await;
    let asked = answer["choices"][0]["message"].clone();
    assert_eq!(asked["tool_calls"][0]["function"]["name"], "search");
    let messages = body["messages"].as_array_mut().unwrap();
    let id = asked["tool_calls"][0]["id"].clone();
    messages.push(asked);
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": "at three"}));
    let (_, answer) = client.openai(body).await;
    let text = &answer["choices"][0]["message"]["content"];
    assert_eq!(text, "echo: please look it up");
    let (_, answer) = client.openai(openai_body("no need to")).await;
    let text = &answer["choices"][0]["message"]["content"];
    assert_eq!(text, "echo: no need to");
}

#[tokio::test]
async fn without_a_script_both_shapes_echo_the_last_user_message() {
    let client = Client::start().await;
    let (status, answer) = client.openai(openai_body("hello there")).await;
    assert_eq!(status, 200);
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"]["content"], "echo: hello there");
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(answer["usage"]["completion_tokens"], 5);
    let (status, answer) = client.anthropic(anthropic_body("hello there")).await;
    assert_eq!(status, 200);
    let content = json!([{"type": "text", "text": "echo: hello there"}]);
    assert_eq!(answer["content"], content);
    assert_eq!(answer["stop_reason"], "end_turn");
    let requests = client.server.requests();
    let paths = requests.iter().map(|request| request.path.as_str());
    let wanted = ["/v1/chat/completions", "/v1/messages"];
    assert_eq!(paths.collect::<Vec<_>>(), wanted);
    assert_eq!(requests[0].body, openai_body("hello there"));
}

#[tokio::test]
async fn openai_shaped_refusals_have_openais_words() {
    let client = Client::start().await;
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let model = "loopback-small";
    let cases = [
        (
            json!({"messages": user("x")}),
            "you must provide a model parameter",
        ),
        (
            json!({"model": model}),
            "Missing required parameter: 'messages'.",
        ),
        (
            json!({"model": model, "messages": []}),
            "Invalid 'messages': empty array.",
        ),
        (
            json!({"model": model, "messages": [{"role": "robot", "content": "x"}]}),
            "Invalid value: 'robot'.",
        ),
        (
            json!({"model": model, "messages": [{"role": "user", "name": "Ann Lee", "content": "x"}]}),
            "Invalid 'messages[0].name': string does not match pattern.",
        ),
        (
            json!({"model": model, "messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]}),
            "Invalid parameter: messages with role 'tool'",
        ),
        (
            json!({"model": model, "messages": [
                {"role": "assistant", "content": null, "tool_calls": [call]}, {"role": "user", "content": "x"},
            ]}),
            "An assistant message with 'tool_calls' must be followed",
        ),
    ];
    for (body, words) in cases {
        let (status, answer) = client.openai(body).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(words), "{words}: {message}");
        assert_eq!(
            (status, &answer["error"]["type"]),
            (400, &json!("invalid_request_error"))
        );
    }
    let url = format!("{}chat/completions", client.server.openai_url());
    let keyless = answered(client.http.post(url).json(&openai_body("x"))).await;
    assert_eq!(keyless.0, 401);
    assert!(
        keyless.1["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("You didn't provide")
    );
}

#[tokio::test]
async fn anthropic_shaped_refusals_have_anthropics_words() {
    let client = Client::start().await;
    let with = |messages: Value| json!({"model": "m", "max_tokens": 9, "messages": messages});
    let tool_use = json!({"type": "tool_use", "id": "t1", "name": "f", "input": {}});
    let cases = [
        (
            json!({"model": "m", "messages": user("x")}),
            "max_tokens: Field required",
        ),
        (
            json!({"max_tokens": 9, "messages": user("x")}),
            "model: Field required",
        ),
        (
            with(json!([])),
            "messages: at least one message is required",
        ),
        (
            with(json!([{"role": "system", "content": "x"}])),
            "messages: Unexpected role \"system\".",
        ),
        (
            with(json!([{"role": "assistant", "content": "x"}])),
            "messages: first message must use the \"user\" role",
        ),
        (
            with(json!([{"role": "user", "content": ""}])),
            "messages.0: all messages must have non-empty content",
        ),
        (
            with(
                json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": [tool_use]}]),
            ),
            "messages.1: `tool_use` ids were found without",
        ),
    ];
    for (body, words) in cases {
        let (status, answer) = client.anthropic(body).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(words), "{words}: {message}");
        let shape = (status, &answer["type"], &answer["error"]["type"]);
        assert_eq!(
            shape,
            (400, &json!("error"), &json!("invalid_request_error"))
        );
    }
    let url = format!("{}messages", client.server.anthropic_url());
    let keyless = answered(client.http.post(&url).json(&anthropic_body("x"))).await;
    assert_eq!(
        (keyless.0, &keyless.1["error"]["type"]),
        (401, &json!("authentication_error"))
    );
    let request = client.http.post(url).header("x-api-key", "k");
    let versionless = answered(request.json(&anthropic_body("x"))).await;
    assert_eq!(
        versionless.1["error"]["message"],
        "anthropic-version: header is required"
    );
}

#[tokio::test]
async fn an_openai_stream_gives_text_tool_calls_and_usage() {
    let client = Client::start().await;
    let reply = ModelReply::tool_call("call_1", "search", json!({"q": "x"})).usage(7, 3);
    client.server.enqueue(ModelReply::text("one two"));
    client.server.enqueue(reply);
    let events = client
        .events(client.openai_request(&streaming(openai_body("x"))))
        .await;
    assert_eq!(events.last().unwrap(), "[DONE]");
    let chunks = json_of(&events);
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "one two");
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
    let mut body = streaming(openai_body("x"));
    body["stream_options"] = json!({"include_usage": true});
    let chunks = json_of(&client.events(client.openai_request(&body)).await);
    let parts: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0].as_object())
        .collect();
    let arguments = parts
        .iter()
        .map(|part| part["function"]["arguments"].as_str().unwrap());
    assert_eq!(arguments.collect::<String>(), r#"{"q":"x"}"#);
    assert_eq!(
        (&parts[0]["id"], &parts[0]["index"]),
        (&json!("call_1"), &json!(0))
    );
    let usage = &chunks.last().unwrap()["usage"];
    assert_eq!(
        usage,
        &json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})
    );
}

#[tokio::test]
async fn an_anthropic_stream_has_its_events_in_order() {
    let client = Client::start().await;
    client.server.enqueue(ModelReply::new(ModelAct::Answer {
        text: "thinking".to_owned(),
        tool_calls: vec![ModelToolCall {
            id: "toolu_1".to_owned(),
            name: "search".to_owned(),
            arguments: json!({"q": "x"}),
        }],
    }));
    let events = client
        .events(client.anthropic_request(&streaming(anthropic_body("x"))))
        .await;
    let chunks = json_of(&events);
    let kinds: Vec<_> = chunks
        .iter()
        .map(|chunk| chunk["type"].as_str().unwrap())
        .collect();
    let wanted = [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, wanted);
    assert_eq!(chunks[5]["index"], 1);
    assert_eq!(chunks[9]["delta"]["stop_reason"], "tool_use");
}

#[tokio::test]
async fn scripted_failures_reach_the_client_as_they_are_written() {
    let client = Client::start().await;
    client.server.enqueue(ModelReply::rate_limited(7));
    client.server.enqueue(ModelReply::status(529));
    client
        .server
        .enqueue(ModelReply::status(500).body("<html>"));
    client.server.enqueue(ModelReply::new(ModelAct::Malformed));
    client.server.enqueue(ModelReply::new(ModelAct::Reset));
    client.server.enqueue(ModelReply::new(ModelAct::Truncated {
        text: "half".to_owned(),
    }));
    let send = || client.openai_request(&openai_body("x")).send();
    let limited = send().await.unwrap();
    assert_eq!(limited.headers()["retry-after"], "7");
    assert_eq!(limited.status(), 429);
    let (status, overloaded) = client.anthropic(anthropic_body("x")).await;
    assert_eq!(
        (status, &overloaded["error"]["type"]),
        (529, &json!("overloaded_error"))
    );
    assert_eq!(send().await.unwrap().text().await.unwrap(), "<html>");
    let malformed = send().await.unwrap();
    assert_eq!(malformed.status(), 200);
    malformed.json::<Value>().await.unwrap_err();
    send().await.unwrap_err();
    send().await.unwrap().bytes().await.unwrap_err();
    assert_eq!(client.server.replies_left(), 0);
    let statuses = client
        .server
        .requests()
        .into_iter()
        .map(|request| request.status);
    let wanted = [Some(429), Some(529), Some(500), Some(200), None, Some(200)];
    assert_eq!(statuses.collect::<Vec<_>>(), wanted);
}

#[tokio::test]
async fn streams_break_in_the_ways_that_streams_break() {
    let client = Client::start().await;
    let call = ModelToolCall {
        id: "call_1".to_owned(),
        name: "f".to_owned(),
        arguments: json!({}),
    };
    let text = "half".to_owned();
    let message = "overloaded".to_owned();
    let acts = [
        ModelAct::Truncated { text: text.clone() },
        ModelAct::ToolCallWithoutIndex(call),
        ModelAct::StreamError { text, message },
    ];
    for act in acts {
        client.server.enqueue(ModelReply::new(act));
    }
    let body = streaming(openai_body("x"));
    let truncated = client.events(client.openai_request(&body)).await;
    assert!(!truncated.contains(&"[DONE]".to_owned()));
    assert_eq!(
        json_of(&truncated)[1]["choices"][0]["delta"]["content"],
        "half"
    );
    let indexless = json_of(&client.events(client.openai_request(&body)).await);
    let part = &indexless[1]["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!((&part["id"], part.get("index")), (&json!("call_1"), None));
    let body = streaming(anthropic_body("x"));
    let failed = json_of(&client.events(client.anthropic_request(&body)).await);
    let last = failed.last().unwrap();
    assert_eq!(
        (&last["type"], &last["error"]["message"]),
        (&json!("error"), &json!("overloaded"))
    );
}

#[tokio::test]
async fn a_text_is_streamed_at_the_pace_that_is_wanted() {
    let client = Client::start().await;
    let every = Duration::from_millis(20);
    client
        .server
        .enqueue(ModelReply::text("abcdef").paced(3, every));
    let started = std::time::Instant::now();
    let body = streaming(openai_body("x"));
    let chunks = json_of(&client.events(client.openai_request(&body)).await[..5]);
    let texts: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["content"])
        .collect();
    assert_eq!(texts[1..4], [&json!("ab"), &json!("cd"), &json!("ef")]);
    assert!(started.elapsed() >= 3 * every);
}

#[tokio::test]
async fn usage_is_streamed_only_to_who_asks_for_it() {
    let client = Client::start().await;
    let mut body = streaming(openai_body("x"));
    let plain = client.events(client.openai_request(&body)).await.concat();
    assert!(!plain.contains("prompt_tokens"));
    body["stream_options"] = json!({"include_usage": true});
    let asked = client.events(client.openai_request(&body)).await.concat();
    assert!(asked.contains("prompt_tokens"));
    body["stream"] = json!(false);
    let (status, refused) = client.openai(body).await;
    assert_eq!(
        (status, &refused["error"]["param"]),
        (400, &json!("stream_options"))
    );
}

#[tokio::test]
async fn a_server_that_refuses_streams_answers_at_once() {
    let client = Client::start().await;
    client.server.refuse_streams();
    let (status, refused) = client.openai(streaming(openai_body("x"))).await;
    assert_eq!(
        (status, &refused["error"]["param"]),
        (400, &json!("stream"))
    );
    let (status, refused) = client.anthropic(streaming(anthropic_body("x"))).await;
    assert_eq!((status, &refused["type"]), (400, &json!("error")));
    assert_eq!(client.openai(openai_body("x")).await.0, 200);
}

#[tokio::test]
async fn streams_end_without_a_mark_break_or_never_end() {
    let client = Client::start().await;
    let text = || "one two".to_owned();
    let body = streaming(anthropic_body("x"));
    client
        .server
        .enqueue(ModelReply::new(ModelAct::Unmarked { text: text() }));
    let unmarked = json_of(&client.events(client.anthropic_request(&body)).await);
    assert_eq!(unmarked.last().unwrap()["type"], "message_delta");
    client
        .server
        .enqueue(ModelReply::new(ModelAct::BrokenOff { text: text() }));
    let broken = client.anthropic_request(&body).send().await.unwrap();
    broken.bytes().await.unwrap_err();
    for act in [ModelAct::Endless { text: text() }, ModelAct::EndlessEvent] {
        client.server.enqueue(ModelReply::new(act));
        let before = client.server.streamed_bytes();
        let mut endless = client.anthropic_request(&body).send().await.unwrap();
        while client.server.streamed_bytes() < before + 100_000 {
            assert!(endless.chunk().await.unwrap().is_some());
        }
    }
    client
        .server
        .enqueue(ModelReply::new(ModelAct::Stream("data: x\n\n".to_owned())));
    let raw = client.events(client.anthropic_request(&body)).await;
    assert_eq!(raw, ["x"]);
    client
        .server
        .enqueue(ModelReply::new(ModelAct::Stalled { text: text() }));
    let mut stalled = client.anthropic_request(&body).send().await.unwrap();
    let rest = async { while stalled.chunk().await.unwrap().is_some() {} };
    let ended = tokio::time::timeout(Duration::from_millis(200), rest).await;
    assert!(ended.is_err(), "a silent stream stays open");
}

#[tokio::test]
async fn a_held_call_waits_and_is_already_recorded() {
    let client = Client::start().await;
    client.server.hold();
    let first = tokio::spawn(client.openai_request(&openai_body("first")).send());
    assert!(client.server.wait_for_requests(1, BOUND).await);
    let second = tokio::spawn(client.openai_request(&openai_body("second")).send());
    assert!(client.server.wait_for_requests(2, BOUND).await);
    let statuses = || -> Vec<Option<u16>> {
        let requests = client.server.requests().into_iter();
        requests.map(|request| request.status).collect()
    };
    assert_eq!(statuses(), [None, None]);
    client.server.release();
    for call in [first, second] {
        let answer = tokio::time::timeout(BOUND, call).await.unwrap();
        assert_eq!(answer.unwrap().unwrap().status(), 200);
    }
    client.server.hold();
    client.server.release_one();
    client.openai(openai_body("third")).await;
    assert_eq!(statuses(), [Some(200), Some(200), Some(200)]);
    assert!(!client.server.wait_for_requests(4, Duration::ZERO).await);
}

#[tokio::test]
async fn models_are_listed_and_keys_are_shown_nowhere() {
    let client = Client::start().await;
    let url = format!("{}models", client.server.openai_url());
    let list = answered(client.http.get(&url).bearer_auth("k")).await.1;
    assert_eq!(list["data"][0]["id"], "loopback-small");
    assert_eq!(client.http.get(url).send().await.unwrap().status(), 401);
    client.openai(openai_body("x")).await;
    let request = client.server.requests().remove(0);
    let key = ("authorization".to_owned(), "****1234".to_owned());
    assert!(request.headers.contains(&key));
    let records = client.wire.records();
    let kinds = records.iter().map(|record| record.kind);
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        [WireKind::Request, WireKind::Response]
    );
    assert!(!format!("{records:?}{request:?}").contains("sk-test"));
}

fn json_of(events: &[String]) -> Vec<Value> {
    let whole = events.iter().filter(|event| *event != "[DONE]");
    whole
        .map(|event| serde_json::from_str(event).unwrap())
        .collect()
}

#[tokio::test]
async fn another_process_scripts_replies_and_faults_on_every_wire() {
    let client = Client::start().await;
    let root = format!("http://{}/control/", client.server.addr());
    let act = async |what: &str, body: Value| {
        let sent = client.http.post(format!("{root}{what}")).json(&body);
        answered(sent).await
    };
    let look = async |what: &str| answered(client.http.get(format!("{root}{what}"))).await.1;
    let script = json!([
        {"text": "scripted", "usage": {"input": 7, "output": 2}},
        {"tool_calls": [{"name": "look_up", "arguments": {"word": "sky"}}]},
        {"text": "short", "cut": true},
        {"fault": {"kind": "status", "status": 529, "headers": [["retry-after", "3"]]}},
        {"fault": {"kind": "malformed"}, "times": 1}
    ]);
    assert_eq!(
        act("reply", script).await,
        (200, json!({"replies_left": 5}))
    );
    let chat = json!({"model": "m", "messages": user("hi")});
    let (_, body) = client.openai(chat.clone()).await;
    assert_eq!(body["choices"][0]["message"]["content"], "scripted");
    assert_eq!(body["usage"]["prompt_tokens"], 7);
    let url = format!("{}responses", client.server.openai_url());
    let request = client.http.post(url).bearer_auth("sk-test-key-1234");
    let (_, body) = answered(request.json(&json!({"model": "m", "input": "hi"}))).await;
    assert_eq!(body["output"][0]["name"], "look_up");
    assert_eq!(body["output"][0]["arguments"], "{\"word\":\"sky\"}");
    let asked = json!({"model": "m", "max_tokens": 9, "messages": user("hi")});
    let (_, body) = client.anthropic(asked.clone()).await;
    assert_eq!(body["stop_reason"], "max_tokens");
    assert_eq!(client.anthropic(asked).await.0, 529);
    let broken = client.openai_request(&chat).send().await.unwrap();
    assert_eq!(broken.text().await.unwrap(), "{\"choices\": [");
    let requests = look("requests?after=1").await;
    assert_eq!(requests["requests"][0]["path"], "/v1/responses");
    assert_eq!(requests["next_after"], 5);
    let wrong = [
        json!({}),
        json!({"txt": "x"}),
        json!({"fault": {"kind": "boredom"}}),
        json!({"fault": {"kind": "hang"}, "cut": true}),
        json!({"fault": {"kind": "status", "status": 7}}),
    ];
    for body in wrong {
        assert_eq!(act("reply", body.clone()).await.0, 400, "{body}");
    }

    act(
        "knobs",
        json!({"refuse_streams": true, "context_tokens": 5}),
    )
    .await;
    let long = json!({"model": "m", "messages": user(&"x".repeat(100))});
    assert_eq!(client.openai(long.clone()).await.0, 400);
    act("hold", json!({})).await;
    assert_eq!(look("state").await["holds"], true);
    act("reset", json!({})).await;
    assert_eq!(look("state").await["requests"], 0);
    let (_, body) = client.openai(long).await;
    let said = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(said.starts_with("echo: x"));
    let journal = look("journal?kind=request&name=responses").await;
    assert_eq!(journal["records"].as_array().unwrap().len(), 1);
}
