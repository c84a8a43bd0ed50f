//! `vocative state`: the values that networks keep in conversations, shown and corrected.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::Value;

use super::args::{StateArgs, StateCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, table};
use crate::admin::operations::{AdminOperation, ChangedState, StateOf};
use crate::admin::view::NetworkStateView;
use vocative_core::approving::visible_line;

/// Shows, sets or clears the values.
pub(super) async fn run(
    command: &StateCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    let (view, format) = match command {
        StateCommand::Show { of, format } => {
            let operation = AdminOperation::NetworkState(state_of(of));
            (ask::<NetworkStateView>(context, operation).await?, *format)
        }
        StateCommand::Set {
            of,
            values,
            version,
        } => {
            let change = ChangedState {
                set: read_values(values)?,
                version: *version,
                ..ChangedState::default()
            };
            (change_of(context, of, change).await?, TableFormat::Table)
        }
        StateCommand::Clear { of, names, version } => {
            let change = ChangedState {
                clear: names.clone(),
                clear_all: names.is_empty(),
                version: *version,
                ..ChangedState::default()
            };
            (change_of(context, of, change).await?, TableFormat::Table)
        }
    };
    context.print(&match format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => report(&view),
    })?;
    Ok(Exit::Ok.into())
}

fn state_of(args: &StateArgs) -> StateOf {
    StateOf {
        conversation: args.conversation.clone(),
        network: args.network.clone(),
    }
}

async fn change_of(
    context: &CliContext,
    of: &StateArgs,
    change: ChangedState,
) -> Result<NetworkStateView, CliError> {
    let of = state_of(of);
    ask(context, AdminOperation::ChangeNetworkState { of, change }).await
}

/// Reads NAME=VALUE pairs. A value that is no JSON is taken as text, so that a word needs no extra quotes.
fn read_values(given: &[String]) -> Result<BTreeMap<String, Value>, CliError> {
    let mut values = BTreeMap::new();
    for one in given {
        let (name, text) = one.split_once('=').ok_or_else(|| {
            CliError::Usage(format!(
                "{one:?} has no '=': say NAME=VALUE, as kind=refund"
            ))
        })?;
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        if values.insert(name.to_owned(), value).is_some() {
            return Err(CliError::Usage(format!(
                "{name} is there twice: say it once"
            )));
        }
    }
    Ok(values)
}

fn report(view: &NetworkStateView) -> String {
    let rows: Vec<Vec<String>> = view
        .values
        .iter()
        .map(|(name, value)| {
            let shown = value.value.as_ref();
            let shown = shown.map_or_else(|| "-".to_owned(), |it| visible_line(&it.to_string()));
            vec![name.clone(), shown, visible_line(&value.wanted)]
        })
        .collect();
    let kept = match view.at_ms {
        None => "nothing was kept yet".to_owned(),
        at_ms => format!("version {}, kept at {}", view.version, instant(at_ms)),
    };
    format!(
        "{} in {}: {kept}\n{}",
        view.network,
        view.conversation_name,
        table(&["name", "value", "may be"], &rows)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_json_or_a_text() {
        let given = ["a=3", "b=refund", "c=[\"x\"]", "d=\"3\"", "e=x=y", "f="];
        let read = read_values(&given.map(str::to_owned)).unwrap();
        let values: Vec<&Value> = read.values().collect();
        let expected = [
            json!(3),
            json!("refund"),
            json!(["x"]),
            json!("3"),
            json!("x=y"),
            json!(""),
        ];
        assert_eq!(values, expected.iter().collect::<Vec<_>>());
        for wrong in [&["a"][..], &["a=1", "a=2"]] {
            let wrong: Vec<String> = wrong.iter().map(|&it| it.to_owned()).collect();
            assert!(matches!(read_values(&wrong), Err(CliError::Usage(_))));
        }
    }
}
