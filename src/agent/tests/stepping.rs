//! The steps of a run against the real store, a scripted model and tools that misbehave.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Notify;
use vocative_contract::card::{Card, CardMisfit};
use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::error::Fallback;
use vocative_contract::handles::Renderer;
use vocative_contract::identity::Platform;
use vocative_contract::outbound::{Part, Target};
use vocative_contract::people::People;

use super::*;
use crate::agent::attached::{FilesInPrompts, ToolFiles};
use crate::agent::clocks::WorkClock;
use crate::agent::counting::Counting;
use crate::agent::failing::Misshapen;
use crate::agent::hooking::Hooking;
use crate::agent::models::Models;
use crate::agent::registry::{ModelUse, Registry};
use crate::agent::stable::Stable;
use crate::agent::step::replay;
use crate::agent::stepping::{AskedIn, CALLS_MAX, RESULTS_MAX_TOKENS};
use crate::agent::telling::ListenerGroup;
use crate::capture::clock::Clock;
use crate::capture::wake::Wake;
use crate::delivery::rooms::Rooms;
use crate::llm::{Model, ToolCall};
use crate::tools::{
    BoundTo, CallContext, ConversationSearch, Tool, ToolError, ToolOutput, Toolbox,
};
use vocative_core::acting::AT_ONCE_MAX;
use vocative_core::addressing::Verdict;
use vocative_core::ids::{AccountId, AgentName, OwnerId, ToolCallId, TurnId};
use vocative_core::prompting::{ClassEstimate, PromptMessage, PromptRole};
use vocative_core::run::{ClaimedRun, Finish, Usage};
use vocative_core::running::budget::{RunBudget, RunUsedUp};
use vocative_core::search::SearchReach;
use vocative_core::tokens::TokenRatio;
use vocative_core::tool_call::{CallRule, CallState, Refusal, StoredCall};
use vocative_core::turn::{ParticipantKind, Turn, TurnKind, Visibility};
use vocative_store::contract::{
    AccountBinding, Captured, CapturedTurn, ClaimRequest, NewMessage, TurnFilter,
};
use vocative_store::{NewId as _, Store, StoreOptions};

#[path = "stepping/endings.rs"]
mod endings;
#[path = "stepping/limits.rs"]
mod limits;
#[path = "stepping/taint.rs"]
mod taint;

const NOW_MS: i64 = 1_000_000;

struct House {
    store: Store,
    account: AccountId,
    clock: Clock,
    telling: ListenerGroup,
    budget: RunBudget,
    hooking: Hooking,
    stop_after: Vec<String>,
    form: Option<AnswerForm>,
}

impl House {
    async fn open() -> Self {
        let options = StoreOptions {
            path: None,
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, 0).unwrap();
        let binding = AccountBinding {
            channel: "acme".to_owned(),
            platform: Platform::Slack,
            account: "T1".to_owned(),
            name: "Acme".to_owned(),
        };
        let account = store.bind_account(binding, 0).await.unwrap();
        Self {
            store,
            account,
            clock: Arc::new(|| NOW_MS),
            telling: ListenerGroup::default(),
            budget: RunBudget::default(),
            hooking: Hooking::default(),
            stop_after: Vec::new(),
            form: None,
        }
    }

    /// Something that somebody says in the room without addressing anybody.
    async fn say_as(&self, sender: &str, text: &str) -> CapturedTurn {
        self.say_by(sender, "C1", text, false).await
    }

    /// Something said in a chat; a direct one starts with D, as in Slack.
    async fn say(&self, chat: &str, text: &str, is_addressed: bool) -> CapturedTurn {
        self.say_by("U1", chat, text, is_addressed).await
    }

    async fn say_by(
        &self,
        sender: &str,
        chat: &str,
        text: &str,
        is_addressed: bool,
    ) -> CapturedTurn {
        let kind = if chat.starts_with('D') {
            ChatKind::Direct
        } else {
            ChatKind::Public
        };
        let agents = is_addressed.then(|| AgentName::trusted("helper"));
        let message = NewMessage {
            account: self.account,
            place: Place {
                chat: chat.to_owned(),
                kind: Some(kind),
                ..Place::default()
            },
            scope_override: None,
            message_id: text.to_owned(),
            sender: Sender {
                id: sender.to_owned(),
                display_name: Some(if sender == "U1" { "Ada" } else { "Bo" }.to_owned()),
                username: None,
                kind: SenderKind::Person,
                is_stranger: false,
            },
            sender_kind: ParticipantKind::User,
            text: text.to_owned(),
            attachments: Vec::new(),
            reply_to: None,
            quote: None,
            album: None,
            sent_at_ms: NOW_MS,
            ordinal: 0,
            edit_marker: None,
            is_edit: false,
            received_at_ms: NOW_MS,
            tokens: None,
            keep_revisions: false,
            raw: None,
            judge_follow_up: None,
            judge: Box::new(|_| Verdict {
                is_admitted: true,
                addressed_to: agents.into_iter().collect(),
                ..Verdict::default()
            }),
        };
        match self.store.capture_message(message).await.unwrap() {
            Captured::New(turn) => turn,
            other => panic!("{other:?}"),
        }
    }

    async fn claim(&self) -> ClaimedRun {
        let request = ClaimRequest {
            owner: OwnerId::generate(),
            lease_ms: 60_000,
            now_ms: NOW_MS,
            accounts: vec![self.account],
        };
        self.store
            .claim_run(request, Default::default())
            .await
            .unwrap()
            .unwrap()
    }

    async fn asked(&self, text: &str) -> ClaimedRun {
        self.say("C1", text, true).await;
        self.claim().await
    }

    /// Goes on with a run as a new attempt would.
    async fn work(&self, run: &ClaimedRun, model: &Scripted, toolbox: &Toolbox) -> StepsEnd {
        self.work_within(run, model, toolbox, RESULTS_MAX_TOKENS, 3)
            .await
    }

    async fn work_within(
        &self,
        run: &ClaimedRun,
        model: &Scripted,
        toolbox: &Toolbox,
        results_max_tokens: usize,
        max_steps: u32,
    ) -> StepsEnd {
        let messages = [PromptMessage {
            role: PromptRole::User,
            content: "Ada: find it".to_owned(),
        }];
        let models = Models::new(
            self.store.only(),
            Registry::default(),
            Wake::default(),
            Arc::clone(&self.clock),
        );
        let model_use = ModelUse {
            name: "test".to_owned(),
            max_parallel: 1,
            prices: vocative_core::price::Prices::default(),
            currency: "USD".to_owned(),
            max_output_tokens: 1_000,
        };
        let place = models.begin(&model_use, run.run.id);
        let filter = TurnFilter::default();
        let said = self
            .store
            .turns(run.run.conversation, filter)
            .await
            .unwrap();
        let mut shown = said.clone();
        shown.retain(|turn| turn.visibility == Visibility::Room);
        let shown: Vec<TurnId> = shown.iter().map(|turn| turn.id).collect();
        let stepping = Stepping {
            store: &self.store.only(),
            rooms: &Rooms::default(),
            clock: &self.clock,
            claimed: run,
            agent: &run.run.agent,
            steps_before: 0,
            display_name: "Helper",
            model,
            model_use: &model_use,
            place: &place,
            messages: &messages,
            shown: &shown,
            images: &[],
            toolbox,
            files: ToolFiles::of(None, FilesInPrompts::default()),
            tools: &toolbox.specs(),
            max_steps,
            first_tool: &FirstTool::Free,
            stop_after: &self.stop_after,
            stop_after_failed: &[],
            form: self.form.as_ref(),
            budget: self.budget,
            work_clock: WorkClock::after(0),
            results_max_tokens,
            counting: Counting {
                counter: &Scaled::new(&ClassEstimate, TokenRatio::ONE),
                key: None,
                prompt_tokens: 0,
            },
            stable: Stable::default(),
            max_output_tokens: None,
            hooking: &self.hooking,
            delegating: Default::default(),
            asked_in: AskedIn {
                renderer: &Cards,
                experts: None,
                question_expires_ms: 86_400_000,
                language: Default::default(),
                place: &Target {
                    chat: "C1".to_owned(),
                    thread: None,
                    topic: None,
                    reply_to: None,
                },
            },
            telling: self.telling.clone(),
        };
        let steps = self.store.steps(run.run.id).await.unwrap();
        let recorded = replay(&steps, &self.calls(run).await);
        stepping.work(recorded).await.unwrap()
    }

    async fn calls(&self, run: &ClaimedRun) -> Vec<StoredCall> {
        self.store.tool_calls(run.run.id).await.unwrap()
    }

    /// The tool turns of a run's conversation: kind, call id, text.
    async fn timeline(&self, run: &ClaimedRun) -> Vec<(TurnKind, String, String)> {
        let filter = TurnFilter {
            with_hidden: true,
            ..TurnFilter::default()
        };
        let turns = self
            .store
            .turns(run.run.conversation, filter)
            .await
            .unwrap();
        let shown = |turn: Turn| (turn.kind, turn.call_id.unwrap_or_default(), turn.content);
        let is_tool = |turn: &Turn| turn.visibility == Visibility::Timeline;
        turns.into_iter().filter(is_tool).map(shown).collect()
    }
}

/// Shows cards as text.
struct Cards;

impl Renderer for Cards {
    fn render(&self, text: &str, _: &People) -> Vec<Part> {
        vec![Part::plain(text)]
    }

    fn render_fallback(&self, part: &Part, _: Fallback) -> Vec<Part> {
        vec![part.clone()]
    }

    fn render_card(&self, card: &Card) -> Result<Part, CardMisfit> {
        Ok(Part::plain(format!("{card:?}")).with_buttons(card.buttons.clone()))
    }
}

/// A model that answers from a script and keeps what it was asked.
#[derive(Default)]
struct Scripted {
    replies: Mutex<VecDeque<Result<Answer, ModelError>>>,
    asked: Mutex<Vec<(Vec<Exchange>, ToolChoice)>>,
}

impl Scripted {
    fn new(replies: Vec<Result<Answer, ModelError>>) -> Self {
        Self {
            replies: Mutex::new(replies.into()),
            asked: Mutex::default(),
        }
    }

    /// The results it was shown in its last request.
    fn seen(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let exchanges = asked.last().unwrap().0.iter();
        let results = exchanges.flat_map(|exchange| exchange.results.clone());
        results.map(|result| result.content).collect()
    }

    fn times_asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Model for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let asked = (request.exchanges.to_vec(), request.tool_choice);
        self.asked.lock().unwrap().push(asked);
        let reply = self.replies.lock().unwrap().pop_front();
        Box::pin(std::future::ready(reply.expect("the script has a reply")))
    }
}

fn answer(text: &str, calls: &[(&str, &str, Value)]) -> Answer {
    let call = |(id, name, arguments): &(&str, &str, Value)| ToolCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    };
    Answer {
        text: text.to_owned(),
        tool_calls: calls.iter().map(call).collect(),
        usage: Usage {
            prompt_tokens: 10,
            completion_tokens: 1,
            ..Usage::default()
        },
        reported_prompt_tokens: None,
        raw_message: "{}".to_owned(),
        finish: Finish::Stop,
    }
}

fn answered(text: &str, steps: u64) -> StepsEnd {
    StepsEnd::Answered(Answer {
        usage: Usage {
            prompt_tokens: 10 * steps,
            completion_tokens: steps,
            ..Usage::default()
        },
        ..answer(text, &[])
    })
}

/// A tool that writes down what it is told, and can panic or hang.
#[derive(Clone, Default)]
struct Notebook {
    rule: Option<CallRule>,
    notes: Arc<Mutex<Vec<String>>>,
    keys: Arc<Mutex<Vec<ToolCallId>>>,
    hung: Arc<Notify>,
}

impl Notebook {
    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    fn toolbox(&self) -> Toolbox {
        Toolbox::new(vec![Arc::new(self.clone())], 5_000)
    }
}

impl Tool for Notebook {
    fn name(&self) -> &str {
        "note"
    }

    fn description(&self) -> &str {
        "writes it down"
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": false,
        })
    }

    fn rule(&self) -> CallRule {
        self.rule.unwrap_or(CallRule::Once)
    }

    fn call(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.keys.lock().unwrap().push(context.call);
        let notebook = self.clone();
        Box::pin(async move {
            let text = arguments["text"].as_str().unwrap_or_default().to_owned();
            notebook.notes.lock().unwrap().push(text.clone());
            match text.as_str() {
                "panic" => panic!("on purpose"),
                "hang" => {
                    notebook.hung.notify_one();
                    std::future::pending().await
                }
                _ => Ok(ToolOutput {
                    content: format!("noted {text}"),
                    sources: Vec::new(),
                    files: Vec::new(),
                }),
            }
        })
    }
}

/// Writes what is told of tools into the same notebook as the tool itself.
struct Ear(Notebook);

impl crate::llm::Listener for Ear {
    fn text(&self, _delta: &str) {}

    fn restart(&self) {}

    fn tool_call(&self, call_id: &str, tool: &str, _arguments: &str) {
        let told = format!("{call_id}: {tool} is called");
        self.0.notes.lock().unwrap().push(told);
    }

    fn tool_result(&self, call_id: &str, tool: &str, result: &str, _sources: &[TurnId]) {
        let told = format!("{call_id}: {tool} says {result}");
        self.0.notes.lock().unwrap().push(told);
    }
}

#[tokio::test]
async fn a_result_is_told_before_the_next_call_is_made() {
    let mut house = House::open().await;
    let notebook = Notebook::default();
    house.telling = ListenerGroup::default().and(Arc::new(Ear(notebook.clone())));
    let run = house.asked("find it").await;
    let calls = [
        ("a", "note", json!({"text": "one"})),
        ("b", "note", json!({"txt": "two"})),
    ];
    let model = Scripted::new(vec![
        Ok(answer("let me see", &calls)),
        Ok(answer("here it is", &[])),
    ]);
    house.work(&run, &model, &notebook.toolbox()).await;
    let notes = notebook.notes();
    let expected = [
        "a: note is called",
        "one",
        "a: note says noted one",
        "b: note is called",
    ];
    assert_eq!(notes[..4], expected);
    assert!(notes[4].starts_with("b: note says Error: "), "{notes:?}");
    assert_eq!(notes.len(), 5);
}

#[tokio::test]
async fn calls_are_made_in_order_and_their_results_come_back_in_order() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let calls = [
        ("a", "note", json!({"text": "one"})),
        ("b", "note", json!({"text": "two"})),
    ];
    let third = [("c", "note", json!({"text": "three"}))];
    let model = Scripted::new(vec![
        Ok(answer("let me see", &calls)),
        Ok(answer("", &third)),
        Ok(answer("here it is", &[])),
    ]);
    let notebook = Notebook::default();
    let ended = house.work(&run, &model, &notebook.toolbox()).await;
    assert_eq!(ended, answered("here it is", 3));
    assert_eq!(notebook.notes(), ["one", "two", "three"]);
    assert_eq!(model.seen(), ["noted one", "noted two", "noted three"]);
    let choices: Vec<ToolChoice> = model.asked.lock().unwrap().iter().map(|a| a.1).collect();
    let expected = [ToolChoice::Auto, ToolChoice::Auto, ToolChoice::None];
    assert_eq!(choices, expected);
    let expected = [("a", "one"), ("b", "two"), ("c", "three")].map(|(id, text)| {
        [
            (
                TurnKind::ToolCall,
                id.to_owned(),
                format!("note {{\"text\":\"{text}\"}}"),
            ),
            (TurnKind::ToolResult, id.to_owned(), format!("noted {text}")),
        ]
    });
    assert_eq!(house.timeline(&run).await, expected.concat());
}

#[tokio::test]
async fn what_goes_wrong_with_a_call_is_its_result_and_the_run_goes_on() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let calls = [
        ("a", "nothing", json!({})),
        ("b", "note", json!({"text": 1, "to": "C2"})),
        ("c", "note", json!("{\"text\":")),
        ("d", "note", json!({"text": "panic"})),
        ("e", "note", json!({"text": "hang"})),
        ("f", "note", json!({"text": "fine"})),
    ];
    let model = Scripted::new(vec![Ok(answer("", &calls)), Ok(answer("done", &[]))]);
    let notebook = Notebook::default();
    let toolbox = Toolbox::new(vec![Arc::new(notebook.clone())], 50);
    let ended = house.work(&run, &model, &toolbox).await;
    assert_eq!(ended, answered("done", 2));
    let seen = [
        "there is no such tool; there are: note",
        "wrong arguments: `text` must be string, not number; the arguments have no `to`; there are `text`",
        "wrong arguments: the arguments can't be read: EOF while parsing a value at line 1 column 8",
        "the tool ended without a result; it may have acted or not, and is not made again",
        "the tool took longer than 50 ms; it may have acted or not, and is not made again",
        "noted fine",
    ];
    assert_eq!(model.seen(), seen);
    let timeline = house.timeline(&run).await;
    assert_eq!(timeline[5].2, format!("Error: {}", seen[2]));
    assert_eq!(timeline.len(), 12);
}

#[tokio::test]
async fn steps_end_with_the_last_word_or_without_one() {
    let again = |text: &str| Ok(answer(text, &[("a", "note", json!({"text": "again"}))]));
    let cases = [
        (vec![again(""), again(""), again("")], None),
        (
            vec![again("I am looking"), again(""), again("")],
            Some("I am looking"),
        ),
        (vec![again("first"), again(""), again("last")], Some("last")),
    ];
    for (replies, said) in cases {
        let house = House::open().await;
        let run = house.asked("find it").await;
        let (model, notebook) = (Scripted::new(replies), Notebook::default());
        let ended = house.work(&run, &model, &notebook.toolbox()).await;
        let expected = said.map_or(
            StepsEnd::UsedUp(Usage {
                prompt_tokens: 30,
                completion_tokens: 3,
                ..Usage::default()
            }),
            |said| answered(said, 3),
        );
        assert_eq!(ended, expected);
        assert_eq!((model.times_asked(), notebook.notes().len()), (3, 2));

        // Another attempt has no more steps than the first.
        let silent = Scripted::default();
        let again = house.work(&run, &silent, &notebook.toolbox()).await;
        assert_eq!(again, expected);
    }
}

#[tokio::test]
async fn a_resumed_run_asks_and_calls_nothing_twice() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let down = ModelError::Unavailable {
        cause: "503".to_owned(),
    };
    let call = [("a", "note", json!({"text": "one"}))];
    let model = Scripted::new(vec![Ok(answer("", &call)), Err(down.clone())]);
    let notebook = Notebook::default();
    let failed = house.work(&run, &model, &notebook.toolbox()).await;
    assert_eq!(failed, StepsEnd::Failed(down));

    let model = Scripted::new(vec![Ok(answer("done", &[]))]);
    let ended = house.work(&run, &model, &notebook.toolbox()).await;
    assert_eq!(ended, answered("done", 2));
    assert_eq!(model.seen(), ["noted one"]);
    assert_eq!(notebook.notes(), ["one"]);
    assert_eq!(house.timeline(&run).await.len(), 2);

    let silent = Scripted::default();
    let replayed = house.work(&run, &silent, &notebook.toolbox()).await;
    assert_eq!(replayed, answered("done", 2));
}

#[tokio::test]
async fn of_calls_that_a_restart_cut_off_only_repeatable_ones_are_made_again() {
    for rule in CallRule::ALL {
        let house = House::open().await;
        let run = house.asked("find it").await;
        let calls = [("a", "note", json!({"text": "hang"}))];
        let model = Scripted::new(vec![Ok(answer("", &calls))]);
        let notebook = Notebook {
            rule: Some(rule),
            ..Notebook::default()
        };
        let toolbox = notebook.toolbox();
        // The process dies while the tool works: its future is dropped.
        tokio::select! {
            _ = house.work(&run, &model, &toolbox) => panic!("the tool hangs"),
            () = notebook.hung.notified() => {}
        }
        assert_eq!(house.timeline(&run).await, []);

        let model = Scripted::new(vec![Ok(answer("done", &[]))]);
        let hasty = Toolbox::new(vec![Arc::new(notebook.clone())], 20);
        let ended = house.work(&run, &model, &hasty).await;
        assert_eq!(ended, answered("done", 2));
        let cut = "a restart cut this call off; it may have acted or not, and is not made again. Say so, and let \
                   the person decide whether to try once more";
        let late = "the tool took longer than 20 ms";
        let (times, state, result) = match rule {
            CallRule::Repeatable => (2, CallState::Failed, late.to_owned()),
            CallRule::Keyed => {
                let rest = "it may have acted or not, and is not made again";
                (2, CallState::Unknown, format!("{late}; {rest}"))
            }
            CallRule::Once => (1, CallState::Unknown, cut.to_owned()),
        };
        assert_eq!(notebook.notes().len(), times);
        assert_eq!(model.seen(), [result.as_str()]);
        let keys = notebook.keys.lock().unwrap().clone();
        let calls = house.calls(&run).await;
        assert_eq!(keys, vec![calls[0].id; times]);
        assert_eq!((calls[0].state, calls[0].attempts as usize), (state, times));
        let timeline = house.timeline(&run).await;
        assert_eq!(timeline.len(), 2);
        assert_eq!(timeline[1].2, format!("Error: {result}"));
    }
}

#[tokio::test]
async fn calls_and_results_over_their_limits_are_told() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let call = |n| ("a", "note", json!({"text": format!("x{n:02}")}));
    let calls: Vec<(&str, &str, Value)> = (0..=CALLS_MAX).map(call).collect();
    let model = Scripted::new(vec![Ok(answer("", &calls)), Ok(answer("done", &[]))]);
    let notebook = Notebook::default();
    let room = 3 * ClassEstimate.count("noted x00") as usize;
    let ended = house
        .work_within(&run, &model, &notebook.toolbox(), room, 2)
        .await;
    assert_eq!(ended, answered("done", 2));
    assert_eq!(notebook.notes().len(), CALLS_MAX);
    let seen = model.seen();
    assert_eq!(seen[2], "noted x02");
    let left_out = "done, but its result is left out: there is no room for further results; answer with what you have";
    assert_eq!(seen[3], left_out);
    assert!(seen[CALLS_MAX].starts_with("left out"), "{seen:?}");
    let calls = house.calls(&run).await;
    assert_eq!(calls[3].state, CallState::Done);
    assert_eq!(calls[CALLS_MAX].refusal, Some(Refusal::TooMany));
    assert_eq!(seen.len(), CALLS_MAX + 1);
}

#[tokio::test]
async fn the_results_of_a_step_outlive_the_call_that_was_cut_off() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let calls = [
        ("a", "note", json!({"text": "one"})),
        ("b", "note", json!({"text": "hang"})),
        ("c", "note", json!({"text": "three"})),
    ];
    let model = Scripted::new(vec![Ok(answer("", &calls))]);
    let notebook = Notebook::default();
    let toolbox = notebook.toolbox();
    tokio::select! {
        _ = house.work(&run, &model, &toolbox) => panic!("the tool hangs"),
        () = notebook.hung.notified() => {}
    }
    assert_eq!(house.timeline(&run).await.len(), 2);
    let states: Vec<CallState> = house
        .calls(&run)
        .await
        .iter()
        .map(|call| call.state)
        .collect();
    assert_eq!(
        states,
        [CallState::Done, CallState::Running, CallState::Ready]
    );

    let model = Scripted::new(vec![Ok(answer("done", &[]))]);
    assert_eq!(
        house.work(&run, &model, &toolbox).await,
        answered("done", 2)
    );
    assert_eq!(notebook.notes(), ["one", "hang", "three"]);
    let seen = model.seen();
    assert_eq!(
        (seen[0].as_str(), seen[2].as_str()),
        ("noted one", "noted three")
    );
    assert!(
        seen[1].starts_with("a restart cut this call off"),
        "{seen:?}"
    );
    assert_eq!(house.timeline(&run).await.len(), 6);
}

#[tokio::test]
async fn repeatable_calls_of_a_step_are_made_side_by_side() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let call = |n: usize| ("a", "meet", json!({"n": n}));
    let calls: Vec<(&str, &str, Value)> = (0..AT_ONCE_MAX).map(call).collect();
    let model = Scripted::new(vec![Ok(answer("", &calls)), Ok(answer("done", &[]))]);
    let meeting = Meeting(Arc::new(tokio::sync::Barrier::new(AT_ONCE_MAX)));
    let toolbox = Toolbox::new(vec![Arc::new(meeting)], 30_000);
    assert_eq!(
        house.work(&run, &model, &toolbox).await,
        answered("done", 2)
    );
    let expected: Vec<String> = (0..AT_ONCE_MAX).map(|n| format!("met {n}")).collect();
    assert_eq!(model.seen(), expected);
}

/// A tool whose calls wait for each other.
struct Meeting(Arc<tokio::sync::Barrier>);

impl Tool for Meeting {
    fn name(&self) -> &str {
        "meet"
    }

    fn description(&self) -> &str {
        "waits until all are there"
    }

    fn schema(&self) -> Value {
        json!({"type": "object", "properties": {"n": {"type": "integer"}}})
    }

    fn rule(&self) -> CallRule {
        CallRule::Repeatable
    }

    fn call(
        &self,
        arguments: Value,
        _: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let barrier = Arc::clone(&self.0);
        Box::pin(async move {
            barrier.wait().await;
            Ok(ToolOutput {
                content: format!("met {}", arguments["n"]),
                sources: Vec::new(),
                files: Vec::new(),
            })
        })
    }
}

#[tokio::test]
async fn a_run_that_goes_round_in_circles_is_made_to_answer() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let again = || Ok(answer("", &[("a", "note", json!({"text": "one"}))]));
    let model = Scripted::new(vec![
        again(),
        again(),
        again(),
        again(),
        Ok(answer("well", &[])),
    ]);
    let notebook = Notebook::default();
    let toolbox = notebook.toolbox();
    let ended = house.work_within(&run, &model, &toolbox, RESULTS_MAX_TOKENS, 9);
    assert_eq!(ended.await, answered("well", 5));
    assert_eq!(notebook.notes(), ["one", "one"]);
    let refusals: Vec<Option<Refusal>> =
        house.calls(&run).await.iter().map(|c| c.refusal).collect();
    let expected = [None, None, Some(Refusal::Repeated), Some(Refusal::Circling)];
    assert_eq!(refusals, expected);
    let choices: Vec<ToolChoice> = model.asked.lock().unwrap().iter().map(|a| a.1).collect();
    assert_eq!(choices[3..], [ToolChoice::Auto, ToolChoice::None]);
    let seen = model.seen();
    assert!(seen[2].contains("its results are above"), "{seen:?}");

    // One that does not answer even then is not asked again.
    let house = House::open().await;
    let run = house.asked("find it").await;
    let model = Scripted::new((0..5).map(|_| again()).collect());
    let ended = house.work_within(&run, &model, &toolbox, RESULTS_MAX_TOKENS, 9);
    assert!(matches!(ended.await, StepsEnd::UsedUp(_)));
    assert_eq!(model.times_asked(), 5);
}

#[tokio::test]
async fn a_call_is_not_made_with_a_tool_that_was_changed_meanwhile() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let calls = [
        ("a", "note", json!({"text": "hang"})),
        ("b", "note", json!({"text": "two"})),
    ];
    let model = Scripted::new(vec![Ok(answer("", &calls))]);
    let notebook = Notebook {
        rule: Some(CallRule::Keyed),
        ..Notebook::default()
    };
    let toolbox = notebook.toolbox();
    tokio::select! {
        _ = house.work(&run, &model, &toolbox) => panic!("the tool hangs"),
        () = notebook.hung.notified() => {}
    }
    let changed = Notebook {
        rule: Some(CallRule::Once),
        ..notebook.clone()
    };
    let model = Scripted::new(vec![Ok(answer("done", &[]))]);
    house.work(&run, &model, &changed.toolbox()).await;
    assert_eq!(notebook.notes(), ["hang"]);
    let calls = house.calls(&run).await;
    assert_eq!(calls[0].state, CallState::Unknown);
    assert_eq!(calls[1].refusal, Some(Refusal::ToolChanged));
}

#[tokio::test]
async fn an_answer_that_says_nothing_is_not_recorded() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let model = Scripted::new(vec![Ok(answer(" ", &[]))]);
    let ended = house.work(&run, &model, &Toolbox::default()).await;
    assert_eq!(ended, StepsEnd::Failed(ModelError::Empty));
    let recorded = house.store.steps(run.run.id).await.unwrap();
    assert_eq!(recorded, Vec::<String>::new());
}

#[tokio::test]
async fn a_lost_lease_ends_the_steps() {
    let house = House::open().await;
    let mut run = house.asked("find it").await;
    run.token = vocative_core::ids::LeaseToken::generate();
    let model = Scripted::new(vec![Ok(answer("late", &[]))]);
    let ended = house.work(&run, &model, &Toolbox::default()).await;
    assert_eq!(ended, StepsEnd::LeaseLost);
}

/// Promise 10: a tool sees the conversation it was made for and can't name another one.
#[tokio::test]
async fn a_search_finds_the_room_and_nothing_of_a_direct_chat() {
    let house = House::open().await;
    house.say("D1", "the secret plan is blue", false).await;
    house.say("C2", "the other plan is green", false).await;
    house.say("C1", "the plan is red", false).await;
    let run = house.asked("what was the plan?").await;
    let search = ConversationSearch::new(BoundTo {
        delegates: Vec::new(),
        knowledge: Vec::new(),
        skills: Vec::new(),
        store: house.store.reader(),
        conversation: run.run.conversation,
        search_reach: SearchReach::Threads,
        triggers: run.run.triggers.clone(),
        is_strict: false,
        embeddings: None,
        planner: None,
        memory: None,
    });
    let toolbox = Toolbox::new(vec![Arc::new(search)], 5_000);
    let name = "conversation_search";
    let calls = [
        ("a", name, json!({"query": "plan"})),
        ("b", name, json!({"query": "", "limit": 1_000})),
        (
            "c",
            name,
            json!({"query": "secret OR conversation:c1 blue"}),
        ),
        ("d", name, json!({"query": "plan", "conversation": "D1"})),
    ];
    let model = Scripted::new(vec![Ok(answer("", &calls)), Ok(answer("red", &[]))]);
    let ended = house.work(&run, &model, &toolbox).await;
    assert_eq!(ended, answered("red", 2));
    let seen = model.seen();
    let time = r#"{"time":"1970-01-01 00:16 UTC","speaker":"Ada","text":"the plan is red"}"#;
    assert_eq!(
        seen[0],
        format!(r#"{{"order":"best match first","hits":[{time}]}}"#)
    );
    assert_eq!(
        seen[1],
        format!(r#"{{"order":"newest first","hits":[{time}]}}"#)
    );
    assert!(seen[2].contains("nothing was found"), "{}", seen[2]);
    assert!(seen[3].starts_with("wrong arguments"), "{}", seen[3]);
    assert!(!seen.concat().contains("secret") && !seen.concat().contains("green"));
}

#[tokio::test]
async fn results_that_a_context_does_not_hold_are_cut_once() {
    let too_long = || ModelError::ContextTooLong {
        limit: None,
        asked: None,
    };
    let notebook = Notebook::default();
    let long = json!({"text": "x".repeat(4_000)});
    let called = || Ok(answer("", &[("a", "note", long.clone())]));
    for last in [Ok(answer("done", &[])), Err(too_long())] {
        let house = House::open().await;
        let run = house.asked("find it").await;
        let is_answered = last.is_ok();
        let model = Scripted::new(vec![called(), Err(too_long()), last]);
        let ended = house.work(&run, &model, &notebook.toolbox()).await;
        let has_steps = true;
        let expected = match is_answered {
            true => answered("done", 2),
            false => StepsEnd::TooLong {
                limit: None,
                asked: None,
                has_steps,
            },
        };
        assert_eq!(ended, expected);
        assert_eq!(model.times_asked(), 3);
        assert!(
            model.seen()[0].contains("(cut: the model's context has no room"),
            "{:?}",
            model.seen()
        );
    }
}

/// A tool that takes its time, in which somebody deletes a message.
struct Meanwhile {
    store: Store,
    account: AccountId,
    message: String,
}

impl Tool for Meanwhile {
    fn name(&self) -> &str {
        "wait"
    }

    fn description(&self) -> &str {
        "waits"
    }

    fn schema(&self) -> Value {
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    }

    fn rule(&self) -> CallRule {
        CallRule::Repeatable
    }

    fn call(&self, _: Value, _: CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (store, account) = (self.store.clone(), self.account);
        let message = self.message.clone();
        Box::pin(async move {
            let gone = store.capture_delete(account, "C1", &message, NOW_MS).await;
            gone.unwrap();
            Err(ToolError::Failed("nothing came of it".to_owned()))
        })
    }
}

#[tokio::test]
async fn what_is_deleted_between_two_requests_of_a_run_is_not_sent_again() {
    let house = House::open().await;
    house.say("C1", "the pelican code", false).await;
    let run = house.asked("what was it?").await;
    let toolbox = Toolbox::new(
        vec![Arc::new(Meanwhile {
            store: house.store.clone(),
            account: house.account,
            message: "the pelican code".to_owned(),
        })],
        5_000,
    );
    let model = Scripted::new(vec![Ok(answer("", &[("c1", "wait", json!({}))]))]);
    assert_eq!(
        house.work(&run, &model, &toolbox).await,
        StepsEnd::SourceGone
    );
    assert_eq!(model.times_asked(), 1);
}

#[tokio::test]
async fn a_call_of_which_the_model_does_not_say_what_it_cost_is_counted_by_an_estimate() {
    let house = House::open().await;
    let run = house.asked("find it").await;
    let spent = async || {
        let asker = run.asker;
        let spent = house.store.spent_today(asker.account, asker.person, NOW_MS);
        spent.await.unwrap()
    };
    let silent = Answer {
        usage: Usage::default(),
        ..answer("Here it is, as long as it is.", &[])
    };
    let model = Scripted::new(vec![Ok(silent)]);
    house.work(&run, &model, &Toolbox::default()).await;
    let estimate = spent().await;
    assert!(estimate.by_account.tokens >= 8, "{estimate:?}");
    assert_eq!(estimate.by_person, estimate.by_account);
}
