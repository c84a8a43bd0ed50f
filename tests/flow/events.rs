//! Runs followed from outside while the daemon works on them: live, cut off, killed, and resumed.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;
use vocative_sandbox::model::ModelReply;

use crate::harness::{Flow, FlowBuilder, WAIT};

const ENDINGS: [&str; 4] = ["finished", "failed", "cancelled", "interrupted"];

async fn start() -> Flow {
    FlowBuilder::default()
        .config("[api]\nenabled = true")
        .start()
        .await
}

/// An event as it was told.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    id: Option<u64>,
    name: String,
    data: Value,
}

/// A reader of an event stream on the daemon's socket.
struct Follower {
    stream: UnixStream,
    text: String,
    last: Option<u64>,
}

impl Follower {
    /// Follows from after the last event that was seen.
    async fn of(flow: &Flow, path: &str, last: Option<u64>) -> Self {
        let stream = timeout(WAIT, async {
            loop {
                match UnixStream::connect(flow.api_socket()).await {
                    Ok(stream) => return stream,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        });
        let mut stream = stream.await.unwrap();
        let last_id = last.map_or(String::new(), |last| format!("last-event-id: {last}\r\n"));
        // Version 1.0: the body comes as it is, without lengths of chunks between.
        let request = format!("GET {path} HTTP/1.0\r\nhost: vocative\r\n{last_id}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut follower = Self {
            stream,
            text: String::new(),
            last,
        };
        while !follower.text.contains("\r\n\r\n") {
            assert!(follower.read().await, "an answer comes");
        }
        let (head, rest) = follower.text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 OK"), "{head}");
        follower.text = rest.to_owned();
        follower
    }

    async fn read(&mut self) -> bool {
        let mut bytes = [0; 4_096];
        let read = timeout(WAIT, self.stream.read(&mut bytes)).await.unwrap();
        // A killed daemon resets its connections.
        let length = read.unwrap_or(0);
        self.text
            .push_str(std::str::from_utf8(&bytes[..length]).unwrap());
        length > 0
    }

    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Told> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                };
                let id = field("id").map(|id| id.parse().unwrap());
                self.last = id.or(self.last);
                if let Some(name) = field("event") {
                    return Some(Told {
                        id,
                        name: name.to_owned(),
                        data: serde_json::from_str(field("data").unwrap()).unwrap(),
                    });
                }
            }
            if !self.read().await {
                return None;
            }
        }
    }

    async fn until(&mut self, name: &str) -> Vec<Told> {
        let mut told = Vec::new();
        loop {
            let next = self.next().await;
            told.push(next.unwrap_or_else(|| panic!("no {name} after {told:?}")));
            if told.last().unwrap().name == name {
                return told;
            }
        }
    }
}

fn names(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.name.as_str()).collect()
}

async fn get(flow: &Flow, path: &str) -> Value {
    let mut stream = UnixStream::connect(flow.api_socket()).await.unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nhost: vocative\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(WAIT, stream.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// The newest run, found as a person would.
async fn newest_run(flow: &Flow) -> String {
    let mut found = Vec::new();
    let listed = get(flow, "/v1/conversations").await;
    for conversation in listed["conversations"].as_array().unwrap() {
        let id = conversation["id"].as_str().unwrap();
        let runs = get(flow, &format!("/v1/conversations/{id}/runs?limit=1")).await;
        found.extend(runs["runs"][0]["id"].as_str().map(str::to_owned));
    }
    // Ids are ordered by time.
    found.into_iter().max().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_a_kill_cuts_off_is_told_on_with_the_same_ids_and_ends_once() {
    let mut flow = start().await;
    flow.model.hold();
    let question = flow.slack.say("#general", "ann", "@vocative when is it?");
    flow.wait_for_model(1).await;
    let path = format!("/v1/runs/{}/events", newest_run(&flow).await);
    let mut before = Follower::of(&flow, &path, Some(0)).await;
    let started = before.until("started").await;
    flow.kill().await;
    assert_eq!(before.next().await, None);

    flow.spawn();
    let mut resumed = Follower::of(&flow, &path, before.last).await;
    let mut whole = Follower::of(&flow, &path, Some(0)).await;
    flow.wait_until_connected().await;
    flow.wait_for_model(2).await;
    flow.model.release();
    let mut told = resumed.until("restarted").await;
    told.extend(resumed.until("finished").await);
    assert_eq!(
        resumed.next().await,
        None,
        "the stream closes after the end"
    );
    assert_eq!(
        names(&told)
            .iter()
            .filter(|name| ENDINGS.contains(name))
            .count(),
        1
    );
    assert!(told[0].id > started[0].id);
    let again = whole.until("finished").await;
    assert_eq!(again[0], started[0], "the same event has the same id");
    let by_id = |told: &[Told]| -> BTreeMap<u64, Value> {
        let with_id = told
            .iter()
            .filter_map(|told| Some((told.id?, told.data.clone())));
        with_id.collect()
    };
    let (again, told) = (by_id(&again), by_id(&told));
    assert!(
        told.iter().all(|(id, data)| again.get(id) == Some(data)),
        "{told:?} of {again:?}"
    );

    let reply = flow.slack_reply("#general", &question).await;
    let mut late = Follower::of(&flow, &path, None).await;
    let told = late.until("finished").await;
    assert_eq!(names(&told), ["snapshot", "finished"]);
    assert_eq!(told[0].data["text"], reply.shown());
}

/// What a reader was told of a run is what `vocative events` prints.
async fn is_the_same_on_a_terminal(flow: &Flow, run: &str, told: &[Told]) {
    let printed = flow.cli(&["events", run, "--format", "json"]).await;
    let printed: Vec<Value> = printed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let as_told = |told: &Told| {
        let mut line = serde_json::json!({ "event": told.name, "data": told.data });
        if let Some(id) = told.id {
            line["id"] = id.into();
        }
        line
    };
    assert_eq!(printed, told.iter().map(as_told).collect::<Vec<_>>());
    let conversation = told[0].data["conversation"].as_str().unwrap();
    let after = told[5..].iter().find_map(|told| told.id).unwrap() - 1;
    let shown = flow
        .cli(&["events", conversation, "--after", &after.to_string()])
        .await;
    assert!(shown.stdout.contains("finished: At three."), "{shown:?}");
    assert_eq!(shown.stdout.lines().count(), 2, "{shown:?}");
    let nobody = uuid::Uuid::nil().to_string();
    let unknown = flow.cli(&["events", &nobody]).await;
    assert_eq!((unknown.status, unknown.stdout.as_str()), (Some(1), ""));
    assert!(unknown.stderr.contains("neither a run"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_and_tokens_are_told_and_a_stop_ends_the_stream() {
    let flow = start().await;
    flow.slack.say("#general", "bob", "the deploy is at three");
    flow.wait_until_heard().await;
    let query = serde_json::json!({ "query": "deploy" });
    flow.model.enqueue(ModelReply::tool_call(
        "call_1",
        "conversation_search",
        query,
    ));
    flow.model
        .enqueue(ModelReply::text("At three.").usage(11, 3));
    let question = flow
        .slack
        .say("#general", "ann", "@vocative when is the deploy?");
    flow.slack_reply("#general", &question).await;
    let run = newest_run(&flow).await;
    let path = format!("/v1/runs/{run}/events");
    let told = Follower::of(&flow, &path, Some(0))
        .await
        .until("finished")
        .await;
    let kept = [
        "started",
        "usage",
        "tool_call",
        "tool_result",
        "usage",
        "snapshot",
        "finished",
    ];
    assert_eq!(names(&told), kept);
    let usage = told.iter().rfind(|told| told.name == "usage").unwrap();
    assert_eq!(
        (&usage.data["step"], &usage.data["completion_tokens"]),
        (&2.into(), &3.into())
    );
    let result = told.iter().find(|told| told.name == "tool_result").unwrap();
    assert!(
        result.data["text"].as_str().unwrap().contains("at three"),
        "{result:?}"
    );

    is_the_same_on_a_terminal(&flow, &run, &told).await;

    flow.model.hold();
    flow.slack
        .say("#general", "ann", "@vocative and the review?");
    flow.wait_for_model(3).await;
    let run = newest_run(&flow).await;
    let stopping = async {
        let mut follower = Follower::of(&flow, &format!("/v1/runs/{run}/events"), None).await;
        assert_eq!(follower.next().await.unwrap().name, "snapshot");
        let stopped = flow.cli(&["queue", "cancel", &run]).await;
        assert_eq!(stopped.status, Some(0), "{stopped:?}");
        assert_eq!(names(&follower.until("cancelled").await), ["cancelled"]);
        assert_eq!(follower.next().await, None);
    };
    let follow = ["events", run.as_str(), "--follow"];
    let (followed, ()) = tokio::join!(flow.cli(&follow), stopping);
    let followed = followed.stdout;
    let last = followed.lines().last().unwrap_or_default();
    assert!(last.contains("cancelled"), "{followed}");
    assert!(followed.contains("started"), "{followed}");
    flow.model.release();
}

const ANSWER: &str = "One two three four five six seven eight nine ten, eleven twelve thirteen fourteen \
    fifteen sixteen seventeen eighteen nineteen twenty, and that is all there is to say about it.";

/// What was said in a row of events, after whatever made earlier text void.
fn said(told: &[Told]) -> String {
    let mut said = String::new();
    for told in told {
        match told.name.as_str() {
            "text" => said.push_str(told.data["text"].as_str().unwrap()),
            "restarted" => said.clear(),
            _ => {}
        }
    }
    said
}

/// Reads until so many pieces of text came.
async fn hear(follower: &mut Follower, pieces: usize) -> Vec<Told> {
    let mut told = Vec::new();
    for _ in 0..pieces {
        told.extend(follower.until("text").await);
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_model_says_is_told_live_and_once_however_often_a_reader_comes_back() {
    let flow = start().await;
    let reply = ModelReply::text(ANSWER).paced(30, Duration::from_millis(60));
    flow.model.enqueue(reply);
    let question = flow.slack.say("#general", "ann", "@vocative what is it?");
    flow.wait_for_model(1).await;
    let path = format!("/v1/runs/{}/events", newest_run(&flow).await);
    let mut told = Vec::new();
    let mut last = Some(0);
    for _ in 0..3 {
        let mut follower = Follower::of(&flow, &path, last).await;
        told.extend(hear(&mut follower, 2).await);
        last = follower.last;
    }
    assert_eq!(
        flow.slack_posts("#general"),
        [],
        "nothing is posted before it is whole"
    );
    let mut follower = Follower::of(&flow, &path, last).await;
    told.extend(follower.until("finished").await);
    let ids: Vec<u64> = told.iter().filter_map(|told| told.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let said = said(&told);
    assert!(
        ANSWER.starts_with(&said) && said.len() > ANSWER.len() / 2,
        "{said}"
    );
    let whole = &told[told.len() - 2];
    assert_eq!(
        (whole.name.as_str(), &whole.data["text"]),
        ("snapshot", &ANSWER.into())
    );
    assert_eq!(
        flow.slack_reply("#general", &question).await.shown(),
        ANSWER
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_the_middle_of_an_answer_its_text_is_void_and_told_anew() {
    let mut flow = start().await;
    for _ in 0..2 {
        let reply = ModelReply::text(ANSWER).paced(30, Duration::from_millis(100));
        flow.model.enqueue(reply);
    }
    let question = flow.slack.say("#general", "ann", "@vocative what is it?");
    flow.wait_for_model(1).await;
    let path = format!("/v1/runs/{}/events", newest_run(&flow).await);
    let mut before = Follower::of(&flow, &path, Some(0)).await;
    let heard = hear(&mut before, 3).await;
    flow.kill().await;
    assert!(ANSWER.starts_with(&said(&heard)) && !said(&heard).is_empty());

    flow.start().await;
    let mut after = Follower::of(&flow, &path, before.last).await;
    let mut told = after.until("restarted").await;
    told.extend(hear(&mut after, 2).await);
    // Somebody new sees what stands, and nothing of what is void.
    let mut late = Follower::of(&flow, &path, None).await;
    let snapshot = late.next().await.unwrap();
    assert_eq!(
        (snapshot.name.as_str(), snapshot.id),
        ("snapshot", late.last)
    );
    let stands = snapshot.data["text"].as_str().unwrap();
    assert!(ANSWER.starts_with(stands) && !stands.is_empty(), "{stands}");
    told.extend(after.until("finished").await);
    let said = said(&told);
    assert!(ANSWER.starts_with(&said) && !said.is_empty(), "{said}");
    let endings = names(&told)
        .iter()
        .filter(|name| ENDINGS.contains(name))
        .count();
    assert_eq!((endings, after.next().await), (1, None));
    let ids = heard.iter().chain(&told).filter_map(|told| told.id);
    assert!(ids.is_sorted_by(|a, b| a < b));
    assert_eq!(
        flow.slack_reply("#general", &question).await.shown(),
        ANSWER
    );
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_and_is_read_no_more_ends_well_also_while_nothing_happens() {
    let flow = start().await;
    let root = flow.slack.say("#general", "ann", "@vocative hi");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    let mut command = flow.command(&["events", "acme/#general", "--follow"]);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = timeout(WAIT, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), told.as_str()), (Some(0), ""));
}
