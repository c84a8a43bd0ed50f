//! `vocative import`: reads an export here, and has the admitted messages stored by the running daemon, or by this
//! process without one.
//!
//! One thread reads and hands over batches: the next one is read while the last is committed, and only a few may wait.
//! Reading order: this, `reading`, `report`.

mod reading;
mod report;

use std::process::ExitCode;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use vocative_channels::export::{Export, ExportFile, open_export};
use vocative_contract::identity::{Identity, Platform};

use self::reading::{ImportReading, ImportTally, Ready};
use self::report::{ImportMeter, report};
use super::args::ImportArgs;
use super::asking::OperationsSource;
use super::context::CliContext;
use super::error::{CliError, Exit};
use crate::admin::import::{ImportBatchView, ImportBeginView, ImportCountsView};
use crate::admin::operations::AdminOperation;
use crate::capture::import::Batch;
use crate::config::Config;
use crate::daemon::wiring;
use vocative_core::ids::AccountId;
use vocative_core::judging::policy::ChannelPolicy;
use vocative_store::contract::ImportProgress;

/// Batches that are read ahead of the one that is being stored.
const READ_AHEAD: usize = 2;
/// The version of how exports are read, part of the fingerprint: an import can be continued only in the order in which
/// it began.
const READER_VERSION: &str = "1";

/// Imports an export into a channel.
pub(super) async fn run(args: &ImportArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let (config, _) = context.load_config()?;
    check_channel(args, &config)?;
    let asked = OperationsSource::find(&config, !args.dry_run).await?;
    let done = import(args, &config, &asked).await;
    asked.close().await?;
    let (outcome, counts) = done?;
    context.print(&report(args, &outcome, &counts))?;
    if let Some(missing) = outcome.missing(&args.chat) {
        return Err(CliError::Failed {
            what: format!("the export has no chat {missing:?}"),
            advice: Some("leave --chat away together with --dry-run to see what it has".to_owned()),
            cause: None,
        });
    }
    Ok(if outcome.unreadable > 0 {
        Exit::Failed.into()
    } else {
        Exit::Ok.into()
    })
}

fn check_channel(args: &ImportArgs, config: &Config) -> Result<(), CliError> {
    if config.channels.contains_key(&args.channel) {
        return Ok(());
    }
    let known: Vec<&str> = config.channels.keys().map(String::as_str).collect();
    Err(CliError::Usage(format!(
        "there is no channel {:?} in the configuration; there are: {}",
        args.channel,
        known.join(", ")
    )))
}

async fn import(
    args: &ImportArgs,
    config: &Config,
    asked: &OperationsSource,
) -> Result<(ImportTally, ImportCountsView), CliError> {
    let begin: ImportBeginView = asked.ask(begin(args, None)).await?;
    let policy = policy(args, config, begin)?;
    let export = open_export(&args.path, &policy.identity)
        .map_err(|cause| CliError::failed("there is nothing to import", cause))?;
    let fingerprint = fingerprint(export.files(), args, &policy);
    let known: ImportBeginView = asked.ask(begin_with(args, &fingerprint)).await?;
    let total_bytes = export.files().iter().map(|file| file.bytes).sum();
    let meter = ImportMeter::new(total_bytes, args.dry_run);
    if asked.is_daemon() && !args.dry_run {
        meter.say("the daemon runs: it stores what is read here");
    }
    let passed = if args.dry_run { 0 } else { known.things };
    if passed > 0 {
        meter.say("going on where the last import of this export was cut off");
    }
    let reading = ImportReading::new(policy, args.chat.clone(), passed).with_topics(known.topics);
    store(
        args,
        config,
        asked,
        ImportWork {
            export,
            reading,
            fingerprint,
            meter,
        },
    )
    .await
}

fn begin(args: &ImportArgs, fingerprint: Option<String>) -> AdminOperation {
    AdminOperation::ImportBegin {
        channel: args.channel.clone(),
        fingerprint,
    }
}

fn begin_with(args: &ImportArgs, fingerprint: &str) -> AdminOperation {
    begin(args, Some(fingerprint.to_owned()))
}

/// The export, its reader and the progress display.
struct ImportWork {
    export: Box<dyn Export>,
    reading: ImportReading,
    fingerprint: String,
    meter: ImportMeter,
}

async fn store(
    args: &ImportArgs,
    config: &Config,
    asked: &OperationsSource,
    work: ImportWork,
) -> Result<(ImportTally, ImportCountsView), CliError> {
    let (tx, mut rx) = mpsc::channel::<Ready>(READ_AHEAD);
    let ImportWork {
        mut export,
        reading,
        fingerprint,
        mut meter,
    } = work;
    let reader = tokio::task::spawn_blocking(move || reading.run(&mut *export, tx));
    let mut counts = ImportCountsView::default();
    while let Some(ready) = rx.recv().await {
        let batch = Batch {
            // The daemon finds the account by the channel.
            account: AccountId(0),
            messages: ready.messages,
            people: ready.people,
            progress: ImportProgress {
                fingerprint: fingerprint.clone(),
                things: ready.things,
                is_finished: ready.is_end,
            },
            is_preview: args.dry_run,
        };
        let operation = AdminOperation::Import {
            channel: args.channel.clone(),
            batch: ImportBatchView::of(batch, config.store.keep_revisions),
        };
        let stored: ImportCountsView = asked.ask(operation).await.map_err(cut_off)?;
        counts.add(&stored);
        meter.show(&counts, ready.read_bytes);
    }
    meter.end();
    let outcome = reader.await;
    let outcome = outcome.map_err(|cause| CliError::failed("the export can't be read", cause))?;
    Ok((outcome, counts))
}

/// The error for an interrupted import: stored messages stay, and the next attempt continues after them.
fn cut_off(cause: CliError) -> CliError {
    CliError::Failed {
        what: "the import was cut off".to_owned(),
        advice: Some("run the same command again; it goes on where it was".to_owned()),
        cause: Some(Box::new(cause)),
    }
}

/// The channel's policy: the bot's identity as its last start learnt it, and the access rules as configured now.
fn policy(
    args: &ImportArgs,
    config: &Config,
    begin: ImportBeginView,
) -> Result<Arc<ChannelPolicy>, CliError> {
    let settings = &config.channels[&args.channel];
    let platform = Platform::from_name(&begin.platform);
    let own = begin.own_ids.split_first();
    let (Some(platform), Some((user_id, other_ids))) = (platform, own) else {
        return Err(CliError::Failed {
            what: format!(
                "it is not known yet under which ids the bot of channel {} posts",
                args.channel
            ),
            advice: Some(
                "let `vocative run` connect it once (`vocative status` shows it), then import"
                    .to_owned(),
            ),
            cause: None,
        });
    };
    let is_username = settings.platform.facts().is_called_by_username;
    let identity = Identity {
        platform,
        account: begin.account,
        username: is_username.then(|| begin.name.clone()),
        display_name: begin.name.clone(),
        account_name: begin.name,
        user_id: user_id.clone(),
        other_ids: other_ids.to_vec(),
        warnings: Vec::new(),
        organisation: None,
    };
    let policy = wiring::policy(config, settings, AccountId(0), identity);
    Ok(Arc::new(ChannelPolicy {
        paired: Arc::new(begin.paired),
        ..policy
    }))
}

/// A hash of the export's files and of the rules that apply; an import is continued only if it is unchanged.
fn fingerprint(files: &[ExportFile], args: &ImportArgs, policy: &ChannelPolicy) -> String {
    let mut hash = Sha256::new();
    let mut chats = args.chat.clone();
    chats.sort();
    let rules = format!(
        "{READER_VERSION} {chats:?} {:?} {:?} {:?} {}",
        policy.allow_chats, policy.allow_people, policy.admins, policy.serves_strangers
    );
    hash.update(rules.as_bytes());
    if policy.has_pairing {
        hash.update(format!(" {:?}", policy.paired));
    }
    for file in files {
        let file = format!("\n{} {} {}", file.name, file.bytes, file.modified_ms);
        hash.update(file.as_bytes());
    }
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
