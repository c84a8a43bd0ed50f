//! What a model's server answers, over a real connection.
//!
//! The server here answers each request with the input, whatever was asked: as a stream where it looks
//! like one.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use vocative::llm::{
    Listener, Model, ModelError, ModelSettings, Provider, Request, ToolChoice, ToolSpec, build,
};
use vocative_core::prompting::{PromptMessage, PromptRole};

use super::answered;

/// What must show in no error.
const KEY: &str = "sk-SECRET-key-1234567890";

thread_local! {
    static ASKING: RefCell<Option<Asking>> = const { RefCell::new(None) };
}

/// Two models that ask the same server.
struct Asking {
    runtime: tokio::runtime::Runtime,
    models: [Arc<dyn Model>; 2],
    reply: Arc<Mutex<Vec<u8>>>,
}

impl Asking {
    fn start() -> Self {
        // A second provider is refused; one is enough.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let addr = listener.local_addr().expect("it has an address");
        let reply = Arc::new(Mutex::new(Vec::new()));
        let served = Arc::clone(&reply);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                std::thread::spawn(move || serve(stream, &served));
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let models = [Provider::OpenAi, Provider::Anthropic].map(|it| model(it, addr));
        Self {
            runtime: runtime.expect("a runtime can be made"),
            models,
            reply,
        }
    }
}

fn model(provider: Provider, addr: SocketAddr) -> Arc<dyn Model> {
    let settings = ModelSettings {
        base_url: Some(format!("http://{addr}/v1")),
        provider,
        api: None,
        model: "loopback-small".to_owned(),
        api_key: Some(KEY.to_owned().into()),
        timeout_ms: 10_000,
        max_output_tokens: 256,
        temperature: None,
        reasoning_effort: None,
        context_limit: None,
        stream: true,
        retries: 0,
    };
    build(&settings, reqwest::Client::new()).expect("the settings are fine")
}

/// Answers every request of a connection.
fn serve(stream: TcpStream, reply: &Mutex<Vec<u8>>) {
    let Ok(mut writer) = stream.try_clone() else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if !reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        if std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink()).is_err() {
            return;
        }
        let bytes = reply.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if writer.write_all(&bytes).is_err() {
            return;
        }
    }
}

fn http_reply(input: &[u8]) -> Vec<u8> {
    let (status, retry_after, body) = answered(input);
    // Below it there is no body, and 3xx would be followed.
    let status = if status < 200 || (300..400).contains(&status) || status == 204 {
        200
    } else {
        status
    };
    let wait = retry_after.map_or_else(String::new, |it| format!("retry-after: {it}\r\n"));
    let kind = if is_stream(body) {
        "text/event-stream"
    } else {
        "application/json"
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{wait}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn is_stream(body: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b"data:", b"event:", b":"];
    starts.iter().any(|start| body.starts_with(start))
}

/// What was heard and is not void.
#[derive(Default)]
struct Heard(Mutex<String>);

impl Listener for Heard {
    fn text(&self, delta: &str) {
        assert!(!delta.is_empty(), "nothing was told");
        self.0.lock().expect("nobody panics in it").push_str(delta);
    }

    fn restart(&self) {
        self.0.lock().expect("nobody panics in it").clear();
    }
}

pub(super) fn answer(input: &[u8]) {
    ASKING.with_borrow_mut(|asking| {
        let asking = asking.get_or_insert_with(Asking::start);
        *asking.reply.lock().unwrap_or_else(PoisonError::into_inner) = http_reply(input);
        let messages = [PromptMessage {
            role: PromptRole::User,
            content: "hello".to_owned(),
        }];
        let tools = [ToolSpec {
            name: "search".to_owned(),
            description: "searches".to_owned(),
            schema: json!({"type": "object", "properties": {"query": {"type": "string"}}}),
        }];
        for model in &asking.models {
            // Tools are offered to every other input.
            let tools = if input.len().is_multiple_of(2) {
                &tools[..]
            } else {
                &[]
            };
            let heard = Heard::default();
            let is_stream = is_stream(answered(input).2);
            let request = Request {
                wanted_tool: None,
                answer_schema: None,
                messages: &messages,
                exchanges: &[],
                tools,
                tool_choice: ToolChoice::Auto,
                listener: is_stream.then_some(&heard as &dyn Listener),
                images: &[],
                max_output_tokens: None,
                caching: Default::default(),
            };
            let answered = asking.runtime.block_on(model.complete(&request));
            if is_stream {
                let heard = heard.0.into_inner().expect("nobody panics in it");
                let text = answered.as_ref().map_or("", |answer| answer.text.as_str());
                assert_eq!(heard.trim(), text.trim(), "what was told is not the answer");
            }
            check_answered(answered, !tools.is_empty(), input);
        }
    });
}

fn check_answered(
    answered: Result<vocative::llm::Answer, ModelError>,
    has_tools: bool,
    input: &[u8],
) {
    let answer = match answered {
        Ok(answer) => answer,
        Err(error) => {
            let shown = error.to_string();
            assert!(
                !shown.contains(KEY) && !shown.contains("127.0.0.1"),
                "{shown}"
            );
            assert!(shown.len() < 400, "{shown}");
            return;
        }
    };
    assert!(
        !answer.text.trim().is_empty() || !answer.tool_calls.is_empty(),
        "an empty answer"
    );
    assert!(
        has_tools || answer.tool_calls.is_empty(),
        "a call of a tool that nobody offered"
    );
    assert!(answer.text.len() <= input.len() * 3 + 100);
    let ids: HashSet<&str> = answer
        .tool_calls
        .iter()
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!(ids.len(), answer.tool_calls.len(), "two calls with one id");
    assert!(!ids.contains(""), "a call without an id");
    let raw = serde_json::from_str::<serde_json::Value>(&answer.raw_message);
    assert!(
        raw.is_ok_and(|raw| raw["version"] == 2),
        "what is kept can't be read"
    );
}
