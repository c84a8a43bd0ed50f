//! Tool calls that are made, as a worker makes them.

use vocative_core::run::ClaimedRun;
use vocative_core::tool_call::{CallLimits, CallRule, CallState};
use vocative_store::Store;
use vocative_store::contract::{
    CallFile, CallToBegin, CallToFinish, ConsentSought, NewToolCall, StepOutcome, ToolTurn,
};

use crate::said::agent;

/// A call without limits.
pub(crate) const UNLIMITED: CallLimits = CallLimits {
    run_calls_max: u32::MAX,
    run_tool_calls_max: None,
    day_tool_calls_max: None,
};

/// Has the first call of a run's first step made, which finds something.
pub(crate) async fn tool_result(
    store: &Store,
    run: &ClaimedRun,
    turn: ToolTurn,
    now_ms: i64,
) -> StepOutcome {
    tool_result_with(store, run, (turn, Vec::new()), now_ms).await
}

/// The same with files.
pub(crate) async fn tool_result_with(
    store: &Store,
    run: &ClaimedRun,
    (turn, files): (ToolTurn, Vec<CallFile>),
    now_ms: i64,
) -> StepOutcome {
    let asked = NewToolCall {
        call_id: turn.call_id.clone(),
        tool: turn.tool.clone(),
        arguments: "{}".to_owned(),
        digest: [1; 32],
        rule: CallRule::Repeatable,
    };
    let (id, token) = (run.run.id, run.token);
    let recorded = store.record_tool_calls(id, token, 1, vec![asked], now_ms);
    let Some(calls) = recorded.await.unwrap() else {
        return StepOutcome::Stale;
    };
    let Some(call) = calls.first() else {
        return StepOutcome::SourceGone;
    };
    let to_begin = CallToBegin {
        narrowed: None,
        verdicts: Vec::new(),
        is_changed: false,
        run: id,
        token,
        call: call.id,
        digest: [1; 32],
        rule: CallRule::Repeatable,
        asker: run.asker,
        limits: UNLIMITED,
        sought: ConsentSought::NONE,
        is_behind_open: false,
        now_ms,
    };
    store.begin_tool_call(to_begin).await.unwrap();
    let finished = CallToFinish {
        verdicts: Vec::new(),
        run: id,
        token,
        call: call.id,
        state: CallState::Done,
        refusal: None,
        result: turn.result.clone(),
        asker: run.asker,
        agent: agent("helper"),
        agent_display_name: "Helper".to_owned(),
        turn,
        files,
        is_outside: false,
        now_ms,
    };
    store.finish_tool_call(finished).await.unwrap()
}
