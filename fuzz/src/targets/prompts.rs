//! Prompts from arbitrary transcripts, under the rules of both profiles.

use std::collections::{HashMap, HashSet};

use vocative::transcripts::transcript::{StoredMessage, Transcript, TranscriptError, parse};
use vocative_core::history::{History, HistoryRole, HistoryTurn, ReadCost};
use vocative_core::ids::{
    AccountId, AgentName, ChatId, ConversationId, ParticipantId, Seq, TurnId,
};
use vocative_core::options::{AssemblerOptions, Profile};
use vocative_core::place::{Conversation, ConversationKey, Scope};
use vocative_core::prompting::{ClassEstimate, Prompt, assemble_with_summary};
use vocative_core::turn::{Participant, Position, Turn, TurnKind, Visibility};
use vocative_store::NewId as _;

pub(super) fn assembled(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let transcript = match parse(&text) {
        Ok(transcript) => transcript,
        Err(TranscriptError::Field { path, what }) => {
            assert!(!path.is_empty() && what.len() < 700, "{path}: {what}");
            return;
        }
        Err(_) => return,
    };
    let history = history(&transcript);
    for profile in [Profile::Vocative, Profile::Toolpack] {
        let options = AssemblerOptions {
            profile,
            ambient_turns: 2,
            ..transcript.options.clone()
        };
        let assemble = || {
            let summary = transcript.summariser_output.as_deref();
            assemble_with_summary(
                &history,
                &transcript.agent,
                &options,
                &ClassEstimate,
                summary,
            )
        };
        let prompt = assemble();
        check_prompt(&prompt, &history, &options);
        assert_eq!(prompt, assemble(), "other bytes the second time");
    }
}

fn check_prompt(prompt: &Prompt, history: &History, options: &AssemblerOptions) {
    assert_eq!(prompt.messages.len(), prompt.costs.len());
    let costs: usize = prompt.costs.iter().map(|cost| cost.tokens).sum();
    assert_eq!(
        costs, prompt.tokens,
        "the costs of the messages are the prompt's"
    );
    let shown: HashSet<TurnId> = prompt.turns.iter().copied().collect();
    assert_eq!(shown.len(), prompt.turns.len(), "a turn is in it twice");
    // The other profile is held by its recorded vectors, and promises nothing else.
    if options.profile == Profile::Toolpack {
        return;
    }
    let whole = prompt.omitted.iter().filter(|it| it.why.is_whole());
    let left: HashSet<TurnId> = whole.map(|omission| omission.turn).collect();
    for entry in &history.turns {
        let id = entry.turn.id;
        assert!(
            shown.contains(&id) != left.contains(&id),
            "a turn is lost, or in it and left out"
        );
    }
    let is_trigger = |entry: &&HistoryTurn| entry.role == HistoryRole::Trigger;
    let triggers: Vec<TurnId> = history
        .turns
        .iter()
        .filter(is_trigger)
        .map(|it| it.turn.id)
        .collect();
    if !triggers.is_empty() {
        assert!(
            prompt.turns.ends_with(&triggers),
            "the triggers stand last, in order"
        );
    }
    let of_triggers = prompt.costs.iter().rev().take(triggers.len().max(1));
    let of_triggers: usize = of_triggers.map(|cost| cost.tokens).sum();
    let most = options.token_budget.max(of_triggers);
    assert!(
        prompt.tokens <= most,
        "{} tokens, at most {most}",
        prompt.tokens
    );
}

/// The turns of a transcript as the store would read them; its ids decide why each was read.
fn history(transcript: &Transcript) -> History {
    let mut messages: Vec<&StoredMessage> = Vec::new();
    let mut ids = HashMap::new();
    for message in &transcript.messages {
        ids.entry((&message.conversation, &message.id))
            .or_insert_with(|| {
                messages.push(message);
                TurnId::generate()
            });
    }
    let mut turns: Vec<HistoryTurn> = (1..)
        .zip(&messages)
        .map(|(seq, message)| HistoryTurn {
            role: role(message, &messages),
            turn: Turn {
                id: ids[&(&message.conversation, &message.id)],
                position: Position {
                    sent_at_ms: message.sent_at_ms,
                    ordinal: message.further.ordinal.unwrap_or(message.sent_at_us),
                    seq: Seq(seq),
                },
                reply_to: message
                    .further
                    .reply_to
                    .as_ref()
                    .and_then(|to| ids.get(&(&message.conversation, to)).copied()),
                ..turn(message)
            },
        })
        .collect();
    turns.sort_by_key(|entry| entry.turn.position);
    let names = messages
        .iter()
        .flat_map(|message| message.further.names.clone());
    History {
        names: names.collect(),
        conversation: conversation(turns.len()),
        turns,
        summary: None,
        thread_answers: HashMap::new(),
        recalled: Vec::new(),
        began_afresh: false,
        has_older: false,
        cost: ReadCost::default(),
    }
}

/// Every reason comes up; the last message is a trigger unless its id says otherwise.
fn role(message: &StoredMessage, all: &[&StoredMessage]) -> HistoryRole {
    let is_last = all.last().is_some_and(|last| last.id == message.id);
    match message.id.bytes().map(u32::from).sum::<u32>() % 11 {
        0 => HistoryRole::Ambient,
        1 => HistoryRole::Parent,
        2 => HistoryRole::RepliedTo,
        3 => HistoryRole::Root,
        _ if is_last => HistoryRole::Trigger,
        _ => HistoryRole::Kept,
    }
}

fn turn(message: &StoredMessage) -> Turn {
    let is_deleted = message.further.is_deleted;
    Turn {
        id: TurnId::generate(),
        conversation: ConversationId::generate(),
        position: Position {
            sent_at_ms: 0,
            ordinal: 0,
            seq: Seq(0),
        },
        said_at_ms: message.sent_at_ms,
        scope: message.scope,
        kind: TurnKind::Message,
        participant: Participant {
            id: ParticipantId(1),
            kind: message.kind,
            platform_id: message.participant.clone(),
            display_name: message.display_name.clone(),
            username: message.further.username.clone(),
        },
        content: if is_deleted {
            String::new()
        } else {
            message.content.clone()
        },
        attachments: message.further.attachments.clone(),
        addressed_to: message
            .mentions
            .iter()
            .cloned()
            .map(AgentName::trusted)
            .collect(),
        reply_to: None,
        quote: message.further.quote.clone(),
        call_id: None,
        visibility: if is_deleted {
            Visibility::Hidden
        } else {
            Visibility::Room
        },
        run: None,
        revision: 1,
        tokens: None,
    }
}

fn conversation(turns: usize) -> Conversation {
    Conversation {
        id: ConversationId::generate(),
        account: AccountId(1),
        key: ConversationKey {
            chat: ChatId(1),
            thread_or_topic: None,
        },
        platform_chat: "C1".to_owned(),
        is_topic: false,
        scope: Scope::Channel,
        chat_kind: None,
        parent: None,
        root: None,
        is_fork: false,
        title: "#general".to_owned(),
        turns: turns as u64,
        last_seq: None,
        last_activity_ms: 0,
    }
}
