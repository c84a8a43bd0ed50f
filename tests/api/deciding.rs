//! What waits for people, through the API: who may see it, who may decide, and what a decision does.

use serde_json::{Value, json};
use tokio::time::timeout;
use vocative::config::ApiScope::{self, Act, Admin, Ask, Read};
use vocative::http::api::ApiKey;
use vocative::tools::PersonName;
use vocative_contract::outbound::Part;
use vocative_core::approving::{ApprovalRule, Approvers};
use vocative_core::ids::{ApprovalId, QuestionId};
use vocative_core::run::{ClaimedRun, Usage};
use vocative_core::tool_call::{CallRule, StoredCall};
use vocative_store::NewId as _;
use vocative_store::contract::{
    AskOutcome, ConsentSought, NewApproval, NewQuestion, NewToolCall, QuestionAsked, RecordedStep,
};

use super::{House, WAIT, client, key};

const DIGEST: [u8; 32] = [7; 32];

impl House {
    /// A run's only call, which is to be asked about.
    async fn called(&self, message: &str) -> (ClaimedRun, StoredCall) {
        let run = self.ask(message).await;
        let (id, token) = (run.run.id, run.token);
        let step = self.store.record_step(
            id,
            token,
            RecordedStep {
                number: 1,
                message: "asked".to_owned(),
                usage: Usage::default(),
                verdicts: Vec::new(),
            },
            140,
        );
        step.await.unwrap();
        let call = NewToolCall {
            call_id: "call_1".to_owned(),
            tool: "refund".to_owned(),
            arguments: "{\"amount\":120}".to_owned(),
            digest: DIGEST,
            rule: CallRule::Once,
        };
        let calls = self
            .store
            .record_tool_calls(id, token, 1, vec![call], 141)
            .await;
        (run, calls.unwrap().unwrap().remove(0))
    }

    /// A call that waits for people.
    async fn waiting_call(&self, message: &str, approvers: &str) -> ApprovalId {
        let (run, call) = self.called(message).await;
        let id = ApprovalId::generate();
        let new = NewApproval {
            id,
            run: run.run.id,
            token: run.token,
            call: call.id,
            sought: ConsentSought {
                asking: ApprovalRule::Always,
                rule: CallRule::Once,
                ..ConsentSought::NONE
            },
            target: "POST https://shop.example/refunds".to_owned(),
            parameters: "{}".to_owned(),
            approvers: Approvers::from_text(approvers).unwrap(),
            is_whole: true,
            place: serde_json::from_value(json!({ "chat": "C1" })).unwrap(),
            card: Part::plain("card"),
            expired: Part::plain("expired"),
            cancelled: Part::plain("cancelled"),
            expires_at_ms: None,
            now_ms: 200,
        };
        assert_eq!(
            self.store.ask_approval(new).await.unwrap(),
            AskOutcome::Waits
        );
        self.store
            .park_run(run.run.id, run.token, 201)
            .await
            .unwrap();
        id
    }

    /// A question that waits for its answer.
    async fn waiting_question(&self, message: &str) -> QuestionId {
        let (run, call) = self.called(message).await;
        let id = QuestionId::generate();
        let new = NewQuestion {
            id,
            run: run.run.id,
            token: run.token,
            call: call.id,
            person: None,
            asked: None,
            is_for_experts: false,
            text: "Which colour?".to_owned(),
            options: vec!["Blue".to_owned()],
            form: None,
            place: serde_json::from_value(json!({ "chat": "C1" })).unwrap(),
            card: Part::plain("card"),
            expired: Part::plain("expired"),
            cancelled: Part::plain("cancelled"),
            replied: Part::plain("replied"),
            expires_at_ms: 86_400_000,
            now_ms: 200,
        };
        assert_eq!(
            self.store.ask_question(new).await.unwrap(),
            QuestionAsked::Waits
        );
        self.store
            .park_run(run.run.id, run.token, 201)
            .await
            .unwrap();
        id
    }

    async fn post(&self, token: &str, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("http://{}{path}", self.address);
        let request = client().post(url).bearer_auth(token).body(body.to_string());
        let answer = timeout(WAIT, request.send()).await.unwrap().unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap())
    }

    async fn seen(&self, token: &str, path: &str) -> (u16, Value) {
        let bearer = format!("Bearer {token}");
        let answer = self.get(path, &[("authorization", &bearer)]).await;
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }
}

fn keys() -> Vec<ApiKey> {
    [Read, Ask, Act, Admin]
        .map(|scope: ApiScope| key(scope.name(), scope.name(), &[scope]))
        .to_vec()
}

fn digest() -> String {
    DIGEST.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Each path, and which of read, ask, act and admin are let through; the others get 403, whatever else they say.
fn scopes_of_paths() -> Vec<(&'static str, String, [bool; 4])> {
    const READ: [bool; 4] = [true, false, false, true];
    const SEEN: [bool; 4] = [true, false, true, true];
    const ACT: [bool; 4] = [false, false, true, true];
    let nobody = uuid::Uuid::nil();
    let fixed = [
        ("GET", "/v1/conversations", READ),
        ("GET", "/v1/approvals", SEEN),
        ("GET", "/v1/schedules", SEEN),
        ("GET", "/v1/schedules/7", SEEN),
        ("GET", "/v1/grants", SEEN),
        ("GET", "/v1/questions", [true; 4]),
        ("POST", "/v1/schedules/7/run", ACT),
        ("GET", "/v1/memories", READ),
        ("GET", "/v1/memories/7", READ),
        ("POST", "/v1/memories/7/forget", [false, false, false, true]),
        ("POST", "/v1/memories/7/edit", [false, false, false, true]),
        ("POST", "/v1/memories/7/share", [false, false, false, true]),
        (
            "POST",
            "/v1/memories/7/unshare",
            [false, false, false, true],
        ),
    ];
    let of_ids = [
        ("GET", "conversations", "/runs", READ),
        ("GET", "conversations", "/state/support", READ),
        (
            "POST",
            "conversations",
            "/messages",
            [false, true, false, true],
        ),
        ("POST", "conversations", "/fork", [false, true, false, true]),
        ("POST", "conversations", "/read", [false, true, false, true]),
        (
            "POST",
            "conversations",
            "/state/support",
            [false, false, false, true],
        ),
        ("GET", "runs", "/events", READ),
        ("GET", "approvals", "", SEEN),
        ("GET", "questions", "", [true; 4]),
        ("POST", "questions", "/answer", [false, true, false, true]),
        ("POST", "questions", "/cancel", ACT),
        ("POST", "approvals", "/approve", ACT),
        ("POST", "approvals", "/deny", ACT),
        ("POST", "grants", "/revoke", [false, false, false, true]),
    ];
    let fixed = fixed.map(|(method, path, may)| (method, path.to_owned(), may));
    let of_ids =
        of_ids.map(|(method, what, end, may)| (method, format!("/v1/{what}/{nobody}{end}"), may));
    fixed.into_iter().chain(of_ids).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_path_takes_only_tokens_that_may() {
    let house = House::with_keys(keys()).await;
    for (method, path, may) in scopes_of_paths() {
        for (scope, may) in [Read, Ask, Act, Admin].into_iter().zip(may) {
            let (status, said) = match method {
                "GET" => house.seen(scope.name(), &path).await,
                _ => house.post(scope.name(), &path, &json!({})).await,
            };
            assert_eq!(
                status != 403,
                may,
                "{method} {path} {scope:?}: {status} {said}"
            );
            assert!(status != 401 && status != 405, "{method} {path}: {said}");
        }
        let stranger = house.post("nobody's", &path, &json!({})).await;
        assert_eq!(stranger.0, 401, "{path}");
    }
    // Without tokens everybody reads, and nobody does more.
    let open = House::open(None).await;
    assert_eq!(open.seen("", "/v1/approvals").await.0, 200);
    let path = format!("/v1/approvals/{}/deny", uuid::Uuid::nil());
    assert_eq!(open.post("", &path, &json!({})).await.0, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_decides_once_about_what_it_saw_and_is_recorded() {
    let house = House::with_keys(keys()).await;
    let id = house.waiting_call("1", "requester").await;
    let (status, listed) = house.seen("act", "/v1/approvals").await;
    assert_eq!(
        (status, listed["approvals"].as_array().map(Vec::len)),
        (200, Some(1))
    );
    let shown = house.seen("act", &format!("/v1/approvals/{id}")).await.1;
    assert_eq!(shown["approval"], listed["approvals"][0]);
    assert_eq!(shown["approval"]["digest"], digest());
    assert_eq!(shown["approval"]["arguments"], "{\"amount\":120}");
    let path = format!("/v1/approvals/{id}/approve");
    let long = "x".repeat(501);
    let refused = [
        (json!({}), 400),
        (json!({ "digest": "00" }), 409),
        (json!({ "digest": digest(), "by": "somebody else" }), 400),
        (json!({ "digest": digest(), "note": long }), 400),
        (json!([digest()]), 400),
        (
            json!({ "digest": digest(), "note": "x".repeat(70_000) }),
            413,
        ),
    ];
    for (body, expected) in refused {
        let (status, said) = house.post("act", &path, &body).await;
        assert_eq!(status, expected, "{said}");
        assert!(
            said["error"].is_string() && said["advice"].is_string(),
            "{said}"
        );
    }
    // Of many at once one decides.
    let body = json!({ "digest": digest(), "note": "fine" });
    let posts = (0..20).map(|_| house.post("act", &path, &body));
    let mut answered: Vec<u16> = Vec::new();
    for (status, said) in futures_util::future::join_all(posts).await {
        if status == 200 {
            let decided = &said["approval"];
            assert_eq!(decided["state"], "approved");
            assert_eq!(
                (&decided["decided_by"], &decided["via"]),
                (&json!("act"), &json!("api"))
            );
            assert_eq!(decided["note"], "fine");
        }
        answered.push(status);
    }
    answered.sort_unstable();
    assert_eq!(answered, [vec![200], vec![409; 19]].concat());
    let deny = format!("/v1/approvals/{id}/deny");
    assert_eq!(house.post("act", &deny, &json!({})).await.0, 409);
    assert_eq!(
        house.seen("read", "/v1/approvals").await.1["approvals"],
        json!([])
    );
    let all = house.seen("read", "/v1/approvals?all=true&limit=1").await.1;
    assert_eq!(all["next_before"], json!(id.to_string()));
    let before = format!("/v1/approvals?all=true&before={id}");
    assert_eq!(house.seen("read", &before).await.1["approvals"], json!([]));
    assert_eq!(house.seen("read", "/v1/approvals?before=x").await.0, 400);
    // Its run goes on.
    house.claim(2_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_eyes_hold_for_the_people_whose_token_it_is() {
    let own = PersonName {
        channel: "acme".to_owned(),
        id: "U1".to_owned(),
    };
    let elsewhere = PersonName {
        channel: "other".to_owned(),
        ..own.clone()
    };
    let of = |name: &str, people: Vec<PersonName>| ApiKey {
        people,
        ..key(name, name, &[Act])
    };
    let keys = vec![
        of("adas", vec![own]),
        of("ada", Vec::new()),
        of("desk", vec![elsewhere]),
    ];
    let house = House::with_keys(keys).await;
    let id = house.waiting_call("1", "four_eyes").await;
    let path = format!("/v1/approvals/{id}/approve");
    let body = json!({ "digest": digest() });
    // By whose it is, by its name, and not at all.
    for (token, expected) in [("adas", 403), ("ada", 403), ("desk", 200)] {
        let (status, said) = house.post(token, &path, &body).await;
        assert_eq!(status, expected, "{token}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_once_and_one_is_taken_back() {
    let house = House::with_keys(keys()).await;
    let id = house.waiting_question("1").await;
    let other = house.waiting_question("2").await;
    let path = format!("/v1/questions/{id}/answer");
    for body in [
        json!({}),
        json!({ "text": " " }),
        json!({ "text": "x".repeat(4_001) }),
    ] {
        assert_eq!(house.post("ask", &path, &body).await.0, 400, "{body}");
    }
    let (status, said) = house.post("ask", &path, &json!({ "text": "Green" })).await;
    assert_eq!(status, 200, "{said}");
    let answered = &said["question"];
    assert_eq!(
        (
            &answered["state"],
            &answered["answer"],
            &answered["answered_by"]
        ),
        (
            &json!("answered"),
            &json!("Green"),
            &json!("ask, who runs me")
        )
    );
    assert_eq!(
        house.post("ask", &path, &json!({ "text": "Red" })).await.0,
        409
    );
    let cancel = format!("/v1/questions/{id}/cancel");
    assert_eq!(house.post("act", &cancel, &json!({})).await.0, 409);
    let open = house.seen("ask", "/v1/questions").await.1;
    assert_eq!(open["questions"].as_array().map(Vec::len), Some(1));
    let cancel = format!("/v1/questions/{other}/cancel");
    let (status, said) = house.post("act", &cancel, &json!({})).await;
    assert_eq!(
        (status, &said["question"]["state"]),
        (200, &json!("cancelled"))
    );
    let nobody = format!("/v1/questions/{}/cancel", uuid::Uuid::nil());
    assert_eq!(house.post("act", &nobody, &json!({})).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_are_seen_and_changed() {
    use vocative::admin::operations::{AddedSchedule, AdminOperation};
    let house = House::with_keys(keys()).await;
    house.say_in("C1").await;
    let conversations = house.seen("read", "/v1/conversations").await.1;
    let added = AddedSchedule {
        conversation: conversations["conversations"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned(),
        when: "weekdays 9:00".to_owned(),
        zone: "UTC".to_owned(),
        agent: None,
        task: "sum up".to_owned(),
        missed: "once".to_owned(),
        jitter_s: 0,
    };
    let added = super::operations(&house.store)
        .execute(AdminOperation::AddSchedule(added))
        .await
        .unwrap();
    let id = added["id"].as_i64().unwrap();
    let listed = house.seen("act", "/v1/schedules").await.1;
    assert_eq!(listed["schedules"][0]["id"], json!(id));
    for (change, state) in [
        ("pause", "paused"),
        ("resume", "active"),
        ("run", "active"),
        ("cancel", "cancelled"),
    ] {
        let path = format!("/v1/schedules/{id}/{change}");
        let (status, said) = house.post("act", &path, &json!({})).await;
        assert_eq!(
            (status, &said["schedule"]["state"]),
            (200, &json!(state)),
            "{change}: {said}"
        );
    }
    let over = format!("/v1/schedules/{id}/pause");
    assert_eq!(house.post("act", &over, &json!({})).await.0, 409);
    for (path, expected) in [
        ("/v1/schedules/99/pause", 404),
        ("/v1/schedules/x/pause", 400),
        ("/v1/schedules/1/explode", 404),
    ] {
        assert_eq!(
            house.post("act", path, &json!({})).await.0,
            expected,
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_changes_a_call_and_allows_nothing_with_that() {
    let house = House::with_keys(keys()).await;
    let id = house.waiting_call("1", "requester").await;
    let path = format!("/v1/approvals/{id}/approve");
    let refused = [
        (json!({ "digest": digest(), "arguments": [1] }), 400),
        (
            json!({ "digest": digest(), "arguments": {"amount": 120} }),
            400,
        ),
        (
            json!({ "digest": digest(), "arguments": {"amount": 5}, "grant": true }),
            400,
        ),
        (json!({ "digest": "00", "arguments": {"amount": 5} }), 409),
        (json!({ "arguments": {"amount": 5} }), 400),
    ];
    for (body, expected) in refused {
        let (status, said) = house.post("act", &path, &body).await;
        assert_eq!(status, expected, "{body}: {said}");
    }
    let body = json!({ "digest": digest(), "arguments": {"amount": 5} });
    let (status, said) = house.post("act", &path, &body).await;
    assert_eq!(
        (status, &said["approval"]["state"]),
        (200, &json!("changed")),
        "{said}"
    );
    assert_eq!(
        house
            .post("act", &path, &json!({ "digest": digest() }))
            .await
            .0,
        409
    );
}
