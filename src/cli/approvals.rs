//! `vocative approvals`: calls that wait for a person, and standing consents.

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use super::args::{ApprovalsSubcommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::since::since_ms;
use super::table::{instant, one_line, table};
use crate::admin::operations::{AdminOperation, DecidedApproval};
use crate::admin::view::{ApprovalCountView, ApprovalView, GrantView};
use vocative_core::approving::{reads_as_change, shown_arguments, visible_line};
use vocative_core::words::Language;

/// Characters of arguments in the list.
const ARGUMENTS_CHARS: usize = 48;

/// Lists and shows calls, decides about them, and lists and revokes standing consents.
pub(super) async fn run(
    command: &ApprovalsSubcommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        ApprovalsSubcommand::List { all, format } => {
            let operation = AdminOperation::Approvals { all: *all };
            let found: Vec<ApprovalView> = ask(context, operation).await?;
            print(context, *format, &found, || report(&found))?;
        }
        ApprovalsSubcommand::Show { id, format } => {
            let id = id.clone();
            let found: ApprovalView = ask(context, AdminOperation::Approval { id }).await?;
            print(context, *format, &found, || shown(&found))?;
        }
        ApprovalsSubcommand::Report { since, format } => {
            let now_ms = chrono::Utc::now().timestamp_millis();
            let since_ms = since_ms(since, now_ms).map_err(CliError::Usage)?;
            let operation = AdminOperation::ApprovalsReport { since_ms };
            let found: Vec<ApprovalCountView> = ask(context, operation).await?;
            print(context, *format, &found, || counted(&found))?;
        }
        ApprovalsSubcommand::Approve {
            id,
            listed,
            by,
            note,
            for_a_day,
            arguments,
        } => {
            let decided = wanted(id.as_deref(), listed.as_deref())?;
            let arguments = arguments.as_deref().map(changed).transpose()?;
            let said = (note.as_deref(), arguments.as_deref());
            return decide(context, decided, (true, *for_a_day), by, said).await;
        }
        ApprovalsSubcommand::Deny {
            id,
            listed,
            by,
            note,
        } => {
            let decided = wanted(id.as_deref(), listed.as_deref())?;
            return decide(
                context,
                decided,
                (false, false),
                by,
                (note.as_deref(), None),
            )
            .await;
        }
        ApprovalsSubcommand::Grants { format } => {
            let found: Vec<GrantView> = ask(context, AdminOperation::Grants).await?;
            print(context, *format, &found, || granted(&found))?;
        }
        ApprovalsSubcommand::Revoke { id, by } => {
            let (id, by) = (id.clone(), by.clone());
            let _: bool = ask(context, AdminOperation::RevokeGrant { id, by }).await?;
            context.print("It is revoked.\n")?;
        }
    }
    Ok(Exit::Ok.into())
}

fn print(
    context: &CliContext,
    format: TableFormat,
    found: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), CliError> {
    context.print(&match format {
        TableFormat::Json => super::json_text(found)?,
        TableFormat::Table => text(),
    })
}

/// The calls to decide about: one by its id, or every open call of a saved list, each with the digest that the list
/// has.
fn wanted(
    id: Option<&str>,
    listed: Option<&Path>,
) -> Result<Vec<(String, Option<String>)>, CliError> {
    let Some(path) = listed else {
        return Ok(id.map(|id| (id.to_owned(), None)).into_iter().collect());
    };
    let unreadable = |cause: String| {
        CliError::Usage(format!(
            "{} can't be read: {cause}; write it with: vocative approvals list --format json > FILE",
            path.display()
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|cause| unreadable(cause.to_string()))?;
    let listed: Vec<ApprovalView> =
        serde_json::from_str(&text).map_err(|cause| unreadable(cause.to_string()))?;
    let open = listed.into_iter().filter(|it| it.state == "open");
    Ok(open.map(|it| (it.id, Some(it.digest))).collect())
}

/// The changed arguments: the given text itself, or the content of the file that it names.
fn changed(text: &str) -> Result<String, CliError> {
    if reads_as_change(text) {
        return Ok(text.to_owned());
    }
    std::fs::read_to_string(text).map_err(|cause| {
        CliError::Usage(format!(
            "{text:?} is no JSON object and no line name = value, and as a file it can't be read: {cause}"
        ))
    })
}

/// Decides about each call. Of a list, a call that can't be decided is reported and skipped.
async fn decide(
    context: &CliContext,
    wanted: Vec<(String, Option<String>)>,
    (approve, grant): (bool, bool),
    by: &str,
    (note, arguments): (Option<&str>, Option<&str>),
) -> Result<ExitCode, CliError> {
    if wanted.is_empty() {
        context.print("No call of the list was open.\n")?;
    }
    let is_one = wanted.iter().all(|(_, digest)| digest.is_none());
    let mut left = 0;
    for (id, digest) in wanted {
        let decision = DecidedApproval {
            id: id.clone(),
            approve,
            grant,
            by: by.to_owned(),
            note: note.map(str::to_owned),
            arguments: arguments.map(str::to_owned),
            digest,
        };
        match ask::<ApprovalView>(context, AdminOperation::DecideApproval(decision)).await {
            Ok(decided) if arguments.is_some() => {
                context.print(&format!(
                    "{} is {}: with these arguments it waits again, as a new one of `vocative approvals list`.\n",
                    decided.tool, decided.state
                ))?;
            }
            Ok(decided) if is_one => {
                context.print(&format!("{} is {}.\n", decided.tool, decided.state))?;
            }
            Ok(decided) => {
                context.print(&format!("{id}: {} is {}.\n", decided.tool, decided.state))?;
            }
            Err(error) if is_one => return Err(error),
            Err(error) => {
                left += 1;
                context.print(&format!("{id}: left as it is: {error}\n"))?;
            }
        }
    }
    Ok(if left > 0 { Exit::Failed } else { Exit::Ok }.into())
}

fn counted(tools: &[ApprovalCountView]) -> String {
    if tools.is_empty() {
        return "Nobody was asked about a call.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| {
            let wait = tool.median_wait_ms.map(|ms| format!("{} s", ms / 1_000));
            let numbers = [
                tool.asked,
                tool.open,
                tool.approved,
                tool.denied,
                tool.expired,
                tool.cancelled,
                tool.changed,
            ];
            let numbers = numbers.map(|number| number.to_string());
            let ends = [wait.unwrap_or_else(|| "-".to_owned())];
            [visible_line(&tool.tool)]
                .into_iter()
                .chain(numbers)
                .chain(ends)
                .collect()
        })
        .collect();
    let header = [
        "tool",
        "asked",
        "open",
        "approved",
        "denied",
        "expired",
        "cancelled",
        "changed",
        "median wait",
    ];
    table(&header, &cells)
}

fn report(approvals: &[ApprovalView]) -> String {
    if approvals.is_empty() {
        return "No call waits for a person.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = approvals
        .iter()
        .map(|approval| {
            let place = [approval.channel.as_deref().unwrap_or("?"), &approval.chat];
            vec![
                approval.id.clone(),
                approval.state.clone(),
                place.join("/"),
                approval.tool.clone(),
                one_line(&visible_line(&approval.arguments), ARGUMENTS_CHARS),
                approval.asked_by.join(", "),
                instant(approval.expires_at_ms),
                approval.decided_by.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let header = [
        "id",
        "state",
        "chat",
        "tool",
        "arguments",
        "asked by",
        "until",
        "decided by",
    ];
    table(&header, &cells) + "\n`vocative approvals show ID` shows all of one.\n"
}

/// One call in full, with its arguments as it will run.
fn shown(approval: &ApprovalView) -> String {
    let place = [approval.channel.as_deref().unwrap_or("?"), &approval.chat];
    let lists: Vec<String> = approval
        .approvers
        .iter()
        .map(|list| list.join(", "))
        .collect();
    let mut lines = vec![
        format!("{} ({})", approval.tool, approval.state),
        format!("  id          {}", approval.id),
        format!("  chat        {}", place.join("/")),
        format!("  agent       {}", approval.agent),
        format!("  run         {}", approval.run),
        format!("  goes to     {}", visible_line(&approval.target)),
        format!(
            "  asked by    {}",
            visible_line(&approval.asked_by.join(", "))
        ),
        format!("  approvers   {}", lists.join("; and ")),
        format!("  asked at    {}", instant(Some(approval.asked_at_ms))),
        format!("  until       {}", instant(approval.expires_at_ms)),
        format!("  digest      {}", approval.digest),
    ];
    if !approval.changed_by.is_empty() {
        let by = visible_line(&approval.changed_by.join(", "));
        lines.push(format!("  changed by  {by}"));
    }
    if !approval.read.is_empty() {
        let read = visible_line(&approval.read.join(", "));
        lines.push(format!("  after reading {read}"));
    }
    if let Some(by) = &approval.decided_by {
        let via = approval.via.as_deref().unwrap_or_default();
        let at = instant(approval.decided_at_ms);
        lines.push(format!("  decided by  {} ({via}), {at}", visible_line(by)));
    }
    if let Some(note) = &approval.note {
        lines.push(format!("  note        {}", visible_line(note)));
    }
    let arguments = serde_json::from_str(&approval.arguments);
    let arguments = arguments.unwrap_or_else(|_| Value::String(approval.arguments.clone()));
    for text in shown_arguments(&arguments, [], Language::English) {
        lines.push(format!("\n{}:\n{}", text.title, text.text));
    }
    lines.join("\n") + "\n"
}

fn granted(grants: &[GrantView]) -> String {
    if grants.is_empty() {
        return "No grant holds.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = grants
        .iter()
        .map(|grant| {
            let place = [grant.channel.as_deref().unwrap_or("?"), &grant.chat];
            let covers = match grant.is_exact {
                true => "one call",
                false => "all calls",
            };
            vec![
                grant.id.clone(),
                place.join("/"),
                grant.tool.clone(),
                covers.to_owned(),
                grant.person.clone(),
                grant.granted_by.clone().unwrap_or_default(),
                instant(grant.until_ms),
                grant.uses.to_string(),
            ]
        })
        .collect();
    let header = [
        "id",
        "chat",
        "tool",
        "covers",
        "asked by",
        "granted by",
        "until",
        "uses",
    ];
    table(&header, &cells) + "\n`vocative approvals revoke ID --by NAME` takes one back.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_shown_as_it_will_run() {
        let approval = ApprovalView {
            id: "0198c5de-1234-7abc-8def-0123456789ab".to_owned(),
            state: "denied".to_owned(),
            channel: Some("acme".to_owned()),
            chat: "C1".to_owned(),
            run: "0198c5de-0000-7abc-8def-0123456789ab".to_owned(),
            agent: "helper".to_owned(),
            tool: "refund".to_owned(),
            target: "POST https://shop.example/refunds".to_owned(),
            arguments: "{\"amount\":120,\"to\":\"an\u{200b}n\"}".to_owned(),
            digest: "07".to_owned(),
            asked_by: vec!["Ann".to_owned()],
            changed_by: vec!["Dan".to_owned()],
            approvers: vec![vec!["four_eyes".to_owned()], vec!["admins".to_owned()]],
            is_whole: true,
            asked_at_ms: 1_700_000_000_000,
            expires_at_ms: None,
            decided_at_ms: Some(1_700_000_060_000),
            decided_by: Some("carl".to_owned()),
            via: Some("cli".to_owned()),
            note: Some("not today".to_owned()),
            read: vec!["fetch (step 1)".to_owned()],
        };
        insta::assert_snapshot!(shown(&approval), @r#"
        refund (denied)
          id          0198c5de-1234-7abc-8def-0123456789ab
          chat        acme/C1
          agent       helper
          run         0198c5de-0000-7abc-8def-0123456789ab
          goes to     POST https://shop.example/refunds
          asked by    Ann
          approvers   four_eyes; and admins
          asked at    2023-11-14 22:13:20
          until       -
          digest      07
          changed by  Dan
          after reading fetch (step 1)
          decided by  carl (cli), 2023-11-14 22:14:20
          note        not today

        amount:
        120

        to:
        "an\u{200B}n"
        "#);
        insta::assert_snapshot!(report(&[approval]), @r#"
        id                                    state   chat     tool    arguments                          asked by  until  decided by
        0198c5de-1234-7abc-8def-0123456789ab  denied  acme/C1  refund  {"amount":120,"to":"an\u{200B}n"}  Ann       -      carl

        `vocative approvals show ID` shows all of one.
        "#);
        assert_eq!(report(&[]), "No call waits for a person.\n");
        assert_eq!(granted(&[]), "No grant holds.\n");
    }
}
