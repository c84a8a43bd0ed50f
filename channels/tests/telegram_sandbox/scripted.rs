//! A server that answers each request with the next canned body, for what no Bot API sends.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Requests that were read, and where to call.
pub(crate) struct Scripted {
    pub(crate) api_url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    /// Answers `getUpdates` with these results, the last one again and again; `getWebhookInfo`
    /// with three updates that wait, and every other method with an empty object.
    pub(crate) async fn start(batches: Vec<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api_url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let mut batches: Vec<String> = batches.into_iter().rev().map(str::to_owned).collect();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read_request(&mut stream).await;
                let is_poll = request.contains("/getUpdates ");
                let is_look = request.contains("/getWebhookInfo ");
                seen.lock().unwrap().push(request);
                let result = match batches.as_slice() {
                    _ if is_look => r#"{"pending_update_count":3}"#.to_owned(),
                    _ if !is_poll => "{}".to_owned(),
                    [last] => last.clone(),
                    _ => batches.pop().unwrap(),
                };
                let body = format!(r#"{{"ok":true,"result":{result}}}"#);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { api_url, requests }
    }

    /// The bodies of the polls so far.
    pub(crate) fn polls(&self) -> Vec<serde_json::Value> {
        let requests = self.requests.lock().unwrap();
        let polls = requests.iter().filter(|it| it.contains("/getUpdates "));
        polls
            .map(|it| serde_json::from_str(it.split("\r\n\r\n").nth(1).unwrap()).unwrap())
            .collect()
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0_u8; 4_096];
        let read = stream.read(&mut chunk).await.unwrap();
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert_ne!(read, 0, "the request ended early");
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| {
                line.to_ascii_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            })
            .unwrap_or(0_usize);
        if body.len() >= length {
            return text;
        }
    }
}
