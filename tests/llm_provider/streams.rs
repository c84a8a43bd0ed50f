//! Answers that are heard while they are written: the same as those that come at once, whatever
//! becomes of their stream.

use std::sync::Mutex;
use std::time::Instant;

use vocative::llm::Listener;

use super::*;

const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

/// Text that is streamed word by word.
const WORDS: &str = "Once upon a time";

/// What a listener heard.
#[derive(Default)]
pub(crate) struct Heard {
    pieces: Mutex<Vec<String>>,
    voided: Mutex<Vec<String>>,
}

impl Listener for Heard {
    fn text(&self, delta: &str) {
        assert!(!delta.is_empty());
        self.pieces.lock().unwrap().push(delta.to_owned());
    }

    fn restart(&self) {
        let void = std::mem::take(&mut *self.pieces.lock().unwrap());
        assert!(!void.is_empty(), "nothing was heard that could be void");
        self.voided.lock().unwrap().push(void.concat());
    }
}

impl Heard {
    fn text(&self) -> String {
        self.pieces.lock().unwrap().concat()
    }

    pub(crate) fn voided(&self) -> Vec<String> {
        self.voided.lock().unwrap().clone()
    }
}

/// Asks with a tool, and listens.
pub(crate) async fn listen(model: &Arc<dyn Model>, heard: &Heard) -> Result<Answer, ModelError> {
    let (messages, tools) = (conversation(), search_tool());
    let request = Request {
        tools: &tools,
        listener: Some(heard),
        ..Request::of(&messages)
    };
    let outcome = model.complete(&request).await;
    // What was heard is the answer, or void.
    let text = outcome.as_ref().map_or("", |answer| &answer.text);
    assert_eq!(heard.text().trim(), text);
    outcome
}

/// The outcome of one scripted reply, and what was heard and void of it, by both providers.
async fn streamed(reply: ModelReply) -> [(Result<Answer, ModelError>, Vec<String>); 2] {
    let mut outcomes = Vec::new();
    for provider in BOTH {
        let server = server().await;
        server.enqueue(reply.clone());
        let heard = Heard::default();
        let outcome = listen(&model(provider, &server), &heard).await;
        assert_eq!(server.requests().len(), 1);
        outcomes.push((outcome, heard.voided()));
    }
    outcomes.try_into().unwrap()
}

fn act(act: ModelAct) -> ModelReply {
    ModelReply::new(act)
}

fn unavailable(cause: &str) -> Result<Answer, ModelError> {
    Err(ModelError::Unavailable {
        cause: cause.to_owned(),
    })
}

/// A stream of OpenAI's with these deltas, and its end.
fn openai_deltas(deltas: &[Value]) -> String {
    let chunk = |delta: &Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
    let finish = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    let deltas: String = deltas.iter().map(chunk).collect();
    format!("{deltas}data: {finish}\n\ndata: [DONE]\n\n")
}

#[tokio::test]
async fn a_streamed_answer_is_the_very_same_as_one_that_comes_at_once() {
    let call = |id: &str| ModelToolCall {
        id: id.to_owned(),
        name: "search".to_owned(),
        arguments: json!({"query": "ä\"\\ {x}", "n": 3}),
    };
    let answer = |text: &str, tool_calls| {
        act(ModelAct::Answer {
            text: text.to_owned(),
            tool_calls,
        })
    };
    let replies = [
        answer(WORDS, Vec::new()),
        answer("  Grüße 👋🏽 an\n\nalle\n", Vec::new()),
        answer("Let me see.", vec![call("a"), call("b")]),
        answer("", vec![call("a")]),
        answer("<think>hm hm</think>\n\nYes, so.", Vec::new()),
        answer("", Vec::new()),
        act(ModelAct::Cut {
            text: WORDS.to_owned(),
        }),
        answer(&"long ".repeat(500), Vec::new()),
    ];
    for (n, reply) in replies.into_iter().enumerate() {
        for provider in BOTH {
            let server = server().await;
            let model = model(provider, &server);
            server.enqueue(reply.clone().usage(31, 7));
            server.enqueue(reply.clone().usage(31, 7));
            let heard = Heard::default();
            let streamed = listen(&model, &heard).await;
            let at_once = ask_with_tools(&model, &[], ToolChoice::Auto).await;
            assert_eq!(streamed, at_once, "reply {n} of {provider:?}");
            let asked = server.requests();
            assert_eq!(
                (&asked[0].body["stream"], &asked[1].body["stream"]),
                (&json!(true), &json!(false))
            );
        }
    }
}

#[tokio::test]
async fn a_streamed_request_asks_the_same() {
    for provider in BOTH {
        let server = server().await;
        let model = model(provider, &server);
        listen(&model, &Heard::default()).await.unwrap();
        ask_with_tools(&model, &[], ToolChoice::Auto).await.unwrap();
        let [mut streamed, mut at_once] = [0, 1].map(|n| server.requests()[n].body.clone());
        let options = streamed.as_object_mut().unwrap().remove("stream_options");
        let usage = json!({"include_usage": true});
        assert_eq!(options, (provider == Provider::OpenAi).then_some(usage));
        streamed["stream"].take();
        at_once["stream"].take();
        assert_eq!(streamed, at_once);
    }
}

#[tokio::test]
async fn text_is_told_as_it_comes() {
    for provider in BOTH {
        let server = server().await;
        let pace = Duration::from_millis(1);
        server.enqueue(ModelReply::text("abcdefghij").paced(5, pace));
        let heard = Heard::default();
        listen(&model(provider, &server), &heard).await.unwrap();
        let pieces = heard.pieces.lock().unwrap().clone();
        assert_eq!(pieces, ["ab", "cd", "ef", "gh", "ij"]);
    }
}

/// Gap 1: a stream that just ends raises no error. Here it is a failure that passes, unless it had
/// said why the answer ends.
#[tokio::test]
async fn gap_1_a_stream_that_ends_early_is_no_answer() {
    let text = WORDS.to_owned();
    for (outcome, voided) in streamed(act(ModelAct::Truncated { text: text.clone() })).await {
        assert_eq!(
            outcome,
            unavailable("the stream ended in the middle of the answer")
        );
        assert_eq!(voided, [WORDS]);
    }
    for (outcome, _) in streamed(act(ModelAct::BrokenOff { text: text.clone() })).await {
        let Err(ModelError::Unavailable { cause }) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(cause.contains("broke in the middle"), "{cause}");
    }
    for (outcome, voided) in streamed(act(ModelAct::Unmarked { text }).usage(31, 7)).await {
        let answer = outcome.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), (WORDS, Finish::Stop));
        assert_eq!(answer.usage.prompt_tokens, 31);
        assert!(voided.is_empty());
    }
}

/// Gap 2: a streamed call without `index` is a call.
#[tokio::test]
async fn gap_2_a_streamed_call_without_index_is_not_lost() {
    let reply = act(ModelAct::ToolCallWithoutIndex(ModelToolCall {
        id: "call_1".to_owned(),
        name: "search".to_owned(),
        arguments: json!({"query": "x"}),
    }));
    for (outcome, _) in streamed(reply).await {
        let calls = outcome.unwrap().tool_calls;
        assert_eq!(calls, [call("call_1", json!({"query": "x"}))]);
    }
}

/// Gap 2: where a stream says that it calls tools and names none, it is asked without.
#[tokio::test]
async fn gap_2_calls_that_a_stream_lost_are_asked_for_without_one() {
    let server = server().await;
    server.enqueue(act(ModelAct::Stream(openai_deltas(&[
        json!({"content": "Let me see."}),
    ]))));
    server.enqueue(ModelReply::tool_call("a", "search", json!({"query": "x"})));
    let heard = Heard::default();
    let answer = listen(&model(Provider::OpenAi, &server), &heard).await;
    let calls = answer.unwrap().tool_calls;
    assert_eq!(calls, [call("a", json!({"query": "x"}))]);
    assert_eq!(heard.voided(), ["Let me see."]);
}

/// Gap 3: arguments that are no JSON, or none at all, get through, as they do at once.
#[tokio::test]
async fn gap_3_streamed_arguments_that_are_no_json_get_through() {
    let cases = [
        ("{\"query\":", json!("{\"query\":")),
        ("not json", json!("not json")),
        ("\"a string\"", json!("a string")),
        ("", json!({})),
        ("null", json!({})),
    ];
    for (written, expected) in cases {
        let server = server().await;
        let function = json!({"name": "search", "arguments": written});
        let entry = json!({"index": 0, "function": function});
        server.enqueue(act(ModelAct::Stream(openai_deltas(&[
            json!({"tool_calls": [entry]}),
        ]))));
        let answer = listen(&model(Provider::OpenAi, &server), &Heard::default()).await;
        assert_eq!(
            answer.unwrap().tool_calls,
            [call("call_0", expected.clone())],
            "{written}"
        );

        let start = json!({"type": "content_block_start", "index": 0, "content_block":
                           {"type": "tool_use", "id": "c", "name": "search", "input": {}}});
        let delta = json!({"type": "content_block_delta", "index": 0, "delta":
                           {"type": "input_json_delta", "partial_json": written}});
        let stop = json!({"type": "message_stop"});
        let events = [start, delta, stop].map(|event| {
            let name = event["type"].as_str().unwrap();
            format!("event: {name}\ndata: {event}\n\n")
        });
        server.enqueue(act(ModelAct::Stream(events.concat())));
        let answer = listen(&model(Provider::Anthropic, &server), &Heard::default()).await;
        assert_eq!(answer.unwrap().tool_calls, [call("c", expected)]);
    }
}

/// Gap 4: failures that pass are asked again, and what was heard before is taken back.
#[tokio::test]
async fn gap_4_a_stream_that_fails_is_asked_again() {
    for provider in BOTH {
        let server = server().await;
        let retrying = ModelSettings {
            retries: 4,
            ..settings(provider, server.openai_url())
        };
        let text = || "at first".to_owned();
        server.enqueue(ModelReply::status(503));
        server.enqueue(act(ModelAct::Reset));
        server.enqueue(act(ModelAct::Truncated { text: text() }));
        server.enqueue(act(ModelAct::BrokenOff { text: text() }));
        server.enqueue(ModelReply::text("at last"));
        let heard = Heard::default();
        let model = build(&retrying, http()).unwrap();
        let answer = listen(&model, &heard).await.unwrap();
        assert_eq!(answer.text, "at last");
        let voided = heard.voided();
        assert_eq!(voided[0], "at first");
        assert!(voided.len() <= 2 && voided.iter().all(|void| "at first".starts_with(void)));
        assert_eq!((server.requests().len(), server.replies_left()), (5, 0));
    }
}

#[tokio::test]
async fn a_rate_limit_before_a_stream_keeps_its_wait() {
    for (outcome, _) in streamed(ModelReply::rate_limited(7)).await {
        let wait_ms = Some(7_000);
        assert_eq!(outcome, Err(ModelError::RetryAfter { wait_ms }));
    }
    for (outcome, _) in streamed(ModelReply::status(401)).await {
        let Err(ModelError::AccountRefused { reason }) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(reason.contains("check the model's `api_key`"), "{reason}");
    }
}

#[tokio::test]
async fn an_error_in_a_stream_passes_and_takes_the_text_back() {
    let reply = act(ModelAct::StreamError {
        text: WORDS.to_owned(),
        message: format!("overloaded {KEY}"),
    });
    let [openai, anthropic] = streamed(reply).await;
    assert_eq!(
        openai.0,
        unavailable("an error in its stream (server_error)")
    );
    assert_eq!(
        anthropic.0,
        unavailable("an error in its stream (overloaded_error)")
    );
    assert_eq!(
        (openai.1, anthropic.1),
        (vec![WORDS.to_owned()], vec![WORDS.to_owned()])
    );
}

#[tokio::test]
async fn a_stream_that_stands_still_is_given_up() {
    for provider in BOTH {
        let server = server().await;
        let hasty = ModelSettings {
            timeout_ms: 200,
            ..settings(provider, server.openai_url())
        };
        let model = build(&hasty, http()).unwrap();
        server.enqueue(act(ModelAct::Stalled {
            text: WORDS.to_owned(),
        }));
        let heard = Heard::default();
        assert_eq!(
            listen(&model, &heard).await,
            unavailable("its stream stood still for 200 ms")
        );
        assert_eq!(heard.voided(), [WORDS]);
        server.enqueue(act(ModelAct::Hang));
        assert_eq!(
            listen(&model, &Heard::default()).await,
            unavailable("no answer within 200 ms")
        );
    }
}

/// As long as something comes, an answer may take longer than one request.
#[tokio::test]
async fn a_stream_that_goes_on_may_take_its_time() {
    for provider in BOTH {
        let server = server().await;
        let hasty = ModelSettings {
            timeout_ms: 300,
            ..settings(provider, server.openai_url())
        };
        let pace = Duration::from_millis(40);
        server.enqueue(ModelReply::text("abcdefghijklmnop").paced(16, pace));
        let started = Instant::now();
        let answer = listen(&build(&hasty, http()).unwrap(), &Heard::default()).await;
        assert_eq!(answer.unwrap().text, "abcdefghijklmnop");
        assert!(started.elapsed() > Duration::from_millis(300));
    }
}

#[tokio::test]
async fn a_stream_that_never_ends_is_cut() {
    for provider in BOTH {
        let server = server().await;
        server.enqueue(act(ModelAct::Endless {
            text: format!("again{}", "·".repeat(100)),
        }));
        let answer = listen(&model(provider, &server), &Heard::default()).await;
        let answer = answer.unwrap();
        assert_eq!(answer.finish, Finish::Length);
        assert!((65_500..=65_536).contains(&answer.text.len()));
    }
}

/// Bounded memory: of an event without an end four mebibytes are taken, and what the sockets hold.
#[tokio::test]
async fn an_event_that_never_ends_is_given_up() {
    for provider in BOTH {
        let server = server().await;
        let patient = ModelSettings {
            timeout_ms: 60_000,
            ..settings(provider, server.openai_url())
        };
        server.enqueue(act(ModelAct::EndlessEvent));
        let outcome = listen(&build(&patient, http()).unwrap(), &Heard::default()).await;
        let Err(ModelError::Malformed { what }) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(what.contains("does not end"), "{what}");
        let taken = server.streamed_bytes();
        assert!(taken < 16 << 20, "{taken} bytes were taken");
    }
}

#[tokio::test]
async fn an_event_of_a_megabyte_is_read() {
    let text = "0123456789abcdef".repeat(1 << 16);
    for provider in BOTH {
        let server = server().await;
        let large = ModelSettings {
            max_output_tokens: 32_768,
            ..settings(provider, server.openai_url())
        };
        server.enqueue(ModelReply::text(&text).paced(1, Duration::ZERO));
        let answer = listen(&build(&large, http()).unwrap(), &Heard::default()).await;
        assert_eq!(answer.unwrap().text.len(), 1 << 20);
    }
}

#[tokio::test]
async fn after_an_event_that_is_no_json_the_answer_is_asked_for_at_once() {
    let text = openai_deltas(&[json!({"content": "Once"})]);
    let (text, _) = text.split_once("\n\n").unwrap();
    let garbled = || {
        act(ModelAct::Stream(format!(
            "{text}\n\ndata: {{\"choices\": [\n\n"
        )))
    };
    let server = server().await;
    server.enqueue(garbled());
    server.enqueue(ModelReply::text(WORDS));
    let heard = Heard::default();
    let answer = listen(&model(Provider::OpenAi, &server), &heard).await;
    assert_eq!(answer.unwrap().text, WORDS);
    // What was heard of it is taken back.
    assert_eq!(heard.voided(), ["Once"]);
    let streamed: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.body["stream"] == true)
        .collect();
    assert_eq!(streamed, [true, false]);
}

/// As servers in JavaScript send it that pass a model's tokens on one by one.
#[tokio::test]
async fn an_emoji_in_two_halves_is_one() {
    let server = server().await;
    let halves = [r#""go \ud83d""#, r#""\ude80 now""#];
    let events = halves
        .map(|text| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}}}}]}}\n\n"));
    server.enqueue(act(ModelAct::Stream(format!(
        "{}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n",
        events.concat()
    ))));
    let heard = Heard::default();
    let answer = listen(&model(Provider::OpenAi, &server), &heard).await;
    assert_eq!(answer.unwrap().text, "go 🚀 now");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn other_line_ends_comments_and_pings_are_read() {
    let server = server().await;
    let plain = openai_deltas(&[json!({"content": "Grüße "}), json!({"content": "👋🏽"})]);
    let odd = plain.replace("data: ", "data:").replace('\n', "\r\n");
    server.enqueue(act(ModelAct::Stream(
        format!(": waiting\r\n\r\n{odd}").replace("tool_calls", "stop"),
    )));
    let answer = listen(&model(Provider::OpenAi, &server), &Heard::default()).await;
    assert_eq!(answer.unwrap().text, "Grüße 👋🏽");
}

#[tokio::test]
async fn a_provider_that_refuses_streams_is_asked_without_from_then_on() {
    for provider in BOTH {
        let server = server().await;
        server.refuse_streams();
        let model = model(provider, &server);
        for _ in 0..2 {
            server.enqueue(ModelReply::text(WORDS));
            let heard = Heard::default();
            assert_eq!(listen(&model, &heard).await.unwrap().text, WORDS);
            assert_eq!(*heard.pieces.lock().unwrap(), [WORDS]);
        }
        assert_eq!(asked_for_streams(&server), [true, false, false]);
    }
}

#[tokio::test]
async fn an_answer_that_comes_at_once_all_the_same_is_read_as_it_is() {
    let body = r#"{"choices": [{"message": {"role": "assistant", "content": "hello"}}]}"#;
    let reply = || {
        ModelReply::status(200)
            .header("content-type", "application/json")
            .body(body)
    };
    let server = server().await;
    let model = model(Provider::OpenAi, &server);
    for _ in 0..3 {
        server.enqueue(reply());
        let heard = Heard::default();
        assert_eq!(listen(&model, &heard).await.unwrap().text, "hello");
        assert_eq!(*heard.pieces.lock().unwrap(), ["hello"]);
    }
    assert_eq!(asked_for_streams(&server), [true, true, true]);
    let refused = r#"{"error": {"code": 429, "message": "upstream is busy"}}"#;
    server.enqueue(reply().body(refused));
    let outcome = listen(&model, &Heard::default()).await;
    assert_eq!(outcome, Err(ModelError::RetryAfter { wait_ms: None }));
}

#[tokio::test]
async fn one_page_of_a_gateway_does_not_end_streaming() {
    let page = || {
        ModelReply::status(200)
            .header("content-type", "text/html")
            .body("<html><body>One moment, please</body></html>")
    };
    for provider in BOTH {
        let server = server().await;
        let model = model(provider, &server);
        for _ in 0..2 {
            server.enqueue(page());
            server.enqueue(ModelReply::text(WORDS));
            server.enqueue(ModelReply::text(WORDS));
            for _ in 0..2 {
                let heard = Heard::default();
                assert_eq!(listen(&model, &heard).await.unwrap().text, WORDS);
            }
        }
        // After each page the question is asked without a stream, and the next one with it.
        assert_eq!(
            asked_for_streams(&server),
            [true, false, true, true, false, true]
        );
    }
}

fn asked_for_streams(server: &ModelServer) -> Vec<bool> {
    let requests = server.requests();
    requests
        .iter()
        .map(|asked| asked.body["stream"] == true)
        .collect()
}

#[tokio::test]
async fn streams_can_be_switched_off() {
    for provider in BOTH {
        let server = server().await;
        let off = ModelSettings {
            stream: false,
            ..settings(provider, server.openai_url())
        };
        server.enqueue(ModelReply::text(WORDS));
        let heard = Heard::default();
        let answer = listen(&build(&off, http()).unwrap(), &heard).await;
        assert_eq!(answer.unwrap().text, WORDS);
        assert_eq!(server.requests()[0].body["stream"], false);
    }
}

#[tokio::test]
async fn no_error_of_a_stream_shows_key_prompt_or_url() {
    let leaky = format!("{{\"error\": {{\"message\": \"bad key {KEY}\", \"type\": \"{KEY}\"}}}}");
    let replies = [
        ModelReply::status(401).body(&leaky),
        ModelReply::status(500).body(&leaky),
        act(ModelAct::Stream(format!("event: error\ndata: {leaky}\n\n"))),
        act(ModelAct::Reset),
    ];
    for reply in replies {
        for (outcome, _) in streamed(reply).await {
            let error = outcome.unwrap_err();
            let shown = format!("{error} {error:?}");
            for secret in ["sk-test", "127.0.0.1", "Alice", "bad key"] {
                assert!(!shown.contains(secret), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn the_offline_model_is_heard_word_by_word() {
    let offline = build(&settings(Provider::Offline, String::new()), http()).unwrap();
    let heard = Heard::default();
    let answer = listen(&offline, &heard).await.unwrap();
    assert!(answer.text.starts_with("You asked: \"bye\"."));
    assert!(heard.pieces.lock().unwrap().len() > 5);
}

/// Answers one request with these bytes as a stream, `step` of them at a time; the address to ask.
async fn byte_by_byte(body: Vec<u8>, step: usize) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let mut request = vec![0; 1 << 16];
        let mut length = 0;
        // All of it came with the end of its JSON.
        while !request[..length].ends_with(b"}") {
            length += socket.read(&mut request[length..]).await.unwrap();
        }
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        socket.write_all(head.as_bytes()).await.unwrap();
        for piece in body.chunks(step) {
            socket.write_all(piece).await.unwrap();
            socket.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    format!("http://{address}/v1")
}

#[tokio::test]
async fn letters_that_come_in_pieces_are_put_together() {
    let words = json!([{"content": "Grüße "}, {"content": "👨‍👩‍👧 日本"}]);
    let words = words.as_array().unwrap();
    let body = openai_deltas(words).replace("tool_calls", "stop");
    for step in [1, 3, 7] {
        let url = byte_by_byte(body.clone().into_bytes(), step).await;
        let model = build(&settings(Provider::OpenAi, url), http()).unwrap();
        let answer = listen(&model, &Heard::default()).await;
        assert_eq!(answer.unwrap().text, "Grüße 👨‍👩‍👧 日本", "{step} at a time");
    }
}
