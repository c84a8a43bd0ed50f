//! What the daemon's listener is for the adapters: a port on which a receiver is called.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use vocative_contract::webhook::{Receiver, WebhookRequest};

type Attached = Arc<OnceLock<Arc<dyn Receiver>>>;

pub(crate) struct Listener {
    addr: SocketAddr,
    attached: Attached,
    serving: JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Listener {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let attached = Attached::default();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&attached));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            addr,
            attached,
            serving,
        }
    }

    /// Calls this receiver from here on.
    pub(crate) fn attach(&self, receiver: Arc<dyn Receiver>) {
        assert!(self.attached.set(receiver).is_ok(), "one receiver only");
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }
}

async fn answer(
    State(attached): State<Attached>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let receiver = attached.get().expect("a receiver is attached");
    let path = uri.path().to_owned();
    assert!(receiver.paths().contains(&path), "{path}");
    let request = WebhookRequest {
        path,
        headers,
        body: body.into(),
    };
    let answer = receiver.receive(request).await;
    (StatusCode::from_u16(answer.status).unwrap(), answer.body)
}
