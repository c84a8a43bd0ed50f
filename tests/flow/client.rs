//! Our client for Rust (clients/rust), over connections that break and a daemon that is killed.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::{TcpListener, UnixStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use vocative_client::{Error, Event, Question, Vocative};
use vocative_sandbox::model::ModelReply;

use crate::harness::{Flow, FlowBuilder, WAIT};

const TOKEN: &str = "ann-secret-of-some-length";
const SETTINGS: &str = r#"
[api]
enabled = true

[api.tokens.ann]
token = "file:ann.token"
scopes = ["ask"]
agents = ["vocative"]
"#;

/// An address before the API's socket, whose connections can be broken.
struct Proxy {
    url: String,
    cut: Arc<Notify>,
}

impl Proxy {
    async fn before(socket: PathBuf) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let cut = Arc::new(Notify::new());
        let cuts = Arc::clone(&cut);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (socket, cuts) = (socket.clone(), Arc::clone(&cuts));
                tokio::spawn(async move {
                    let Ok(mut daemon) = UnixStream::connect(socket).await else {
                        return;
                    };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut daemon) => {}
                        () = cuts.notified() => {}
                    }
                });
            }
        });
        Self { url, cut }
    }

    fn cut(&self) {
        self.cut.notify_waiters();
    }
}

async fn start() -> (Flow, Proxy, Vocative) {
    let mut flow = FlowBuilder::default()
        .agent("vocative", "")
        .config(SETTINGS)
        .prepare()
        .await;
    std::fs::write(flow.config_path().with_file_name("ann.token"), TOKEN).unwrap();
    flow.start().await;
    let proxy = Proxy::before(flow.api_socket()).await;
    let client = Vocative::new(&proxy.url, TOKEN).unwrap();
    (flow, proxy, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_followed_once_and_in_order_through_cuts_and_a_kill() {
    let (mut flow, proxy, client) = start().await;
    flow.model.hold();
    let question = Question::new("when is it?").in_conversation("notes");
    let asked = client.ask(&question).await.unwrap();
    assert!(!asked.is_known);
    let mut run = client.follow(&asked.run, None);
    let first = timeout(WAIT, run.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(first.name, "snapshot");
    flow.wait_for_model(1).await;
    proxy.cut();
    flow.kill().await;
    flow.model.release();
    flow.model.enqueue(ModelReply::text("At three."));
    // The client goes on trying while there is no daemon, and asks nothing twice.
    let again = tokio::spawn({
        let client = client.clone();
        async move { client.ask(&question).await }
    });
    flow.start().await;
    let mut told: Vec<Event> = vec![first];
    while let Some(event) = timeout(WAIT, run.next()).await.unwrap().unwrap() {
        told.push(event);
        proxy.cut();
    }
    let again = timeout(WAIT, again).await.unwrap().unwrap().unwrap();
    assert_eq!((again.run, again.is_known), (asked.run, true));
    let ended = told.last().unwrap();
    assert!(ended.is_ending() && ended.name == "finished", "{told:?}");
    let ids: Vec<u64> = told
        .iter()
        .filter_map(|event| event.id.as_ref()?.parse().ok())
        .collect();
    assert!(ids.is_sorted(), "{told:?}");
    let of = |name: &str| told.iter().filter(|event| event.name == name).count();
    assert_eq!(of("finished"), 1, "{told:?}");
    // A client that comes back after the run's end is told nothing more.
    let mut late = client.follow(&told_run(&told), run.last().map(str::to_owned));
    assert_eq!(timeout(WAIT, late.next()).await.unwrap().unwrap(), None);
    assert_eq!(flow.model.requests().len(), 2);
    assert_eq!(flow.stop().await, Some(0));
}

fn told_run(told: &[Event]) -> String {
    told[0].data["run"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_words_forks_and_refusals_come_as_they_are() {
    let (mut flow, _proxy, client) = start().await;
    flow.model.enqueue(ModelReply::text("At three."));
    let mut heard = Vec::new();
    let question = Question::new("when is it?").in_conversation("notes");
    let answer = client.answer(&question, |so_far| heard.push(so_far.to_owned()));
    let answer = timeout(WAIT, answer).await.unwrap().unwrap();
    assert_eq!(answer, "At three.");
    assert!(
        heard
            .iter()
            .all(|text| "At three.".starts_with(text.as_str())),
        "{heard:?}"
    );

    let asked = client.ask(&question).await.unwrap();
    assert!(asked.is_known);
    let said = client
        .say(&asked.conversation, "It was moved.", "s1")
        .await
        .unwrap();
    assert_eq!(
        client
            .say(&asked.conversation, "It was moved.", "s1")
            .await
            .unwrap(),
        said
    );
    let turns = client.turns(&asked.conversation, 10).await.unwrap();
    let texts: Vec<&str> = turns
        .iter()
        .filter_map(|turn| turn["text"].as_str())
        .collect();
    assert_eq!(texts, ["when is it?", "At three.", "It was moved."]);
    let at = turns[1]["seq"].as_i64().unwrap();
    let fork = client.fork(&asked.conversation, at, "f1").await.unwrap();
    flow.model.enqueue(ModelReply::text("Still three."));
    let question = Question::new("sure?").in_conversation(&fork);
    let answer = timeout(WAIT, client.answer(&question, |_| {}))
        .await
        .unwrap();
    assert_eq!(answer.unwrap(), "Still three.");
    assert!(!client.stop(&asked.run).await.unwrap());

    let refused = client
        .ask(&Question::new("hi").to("nobody"))
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, Error::Refused { status, .. } if status.as_u16() == 404),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("it may ask vocative"),
        "{refused}"
    );
    flow.model.enqueue(ModelReply::status(400));
    let failed = timeout(WAIT, client.answer(&Question::new("and now?"), |_| {})).await;
    let failed = failed.unwrap().unwrap_err();
    assert!(matches!(failed, Error::NoAnswer { .. }), "{failed}");
    assert_eq!(flow.stop().await, Some(0));
}
