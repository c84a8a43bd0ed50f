//! What a run's model was sent: recorded with the run and rebuilt on request.
//!
//! The record is the recipe: which turns were read and in which revision, the summary, the options after they were
//! fitted to the model's context, the agent's names and instructions, and hashes of the result. Rebuilt from the
//! current rows it is what was sent, byte for byte, if the hashes agree; else it names the differences. Knows no
//! command and no view.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use vocative_contract::envelope::ChatKind;

use crate::agent::attached::{FilesInPrompts, LoadedFiles, load_files};
use crate::agent::prompting::{
    BuiltPrompt, FilesShown, InNetwork, PromptError, Voice, asker_name, filled, instructed, shown,
};
use crate::agent::recall::remove_recalled;
use crate::agent::remembered::{MemoryFrom, Remembered, ShownMemories, remembered};
use crate::config::Template;
use crate::llm::ToolSpec;
use vocative_core::given::Given;
use vocative_core::history::{History, HistoryRole, HistoryTurn};
use vocative_core::ids::{AgentName, RunId};
use vocative_core::options::{AssemblerOptions, Profile};
use vocative_core::place::Scope;
use vocative_core::prompting::files::FileLimits;
use vocative_core::prompting::{
    AgentView, ClassEstimate, Example, NetworkTail, PeerWords, Prompt, PromptPart, Scaled,
    Utf16Div4, assemble, count_turns, counter_named,
};
use vocative_core::remembering::MemoryRef;
use vocative_core::routing::Course;
use vocative_core::routing::state::StateValues;
use vocative_core::sent::{SentChange, SentPrompt, SentTurn};
use vocative_core::tokens::TokenRatio;
use vocative_store::{Reader, Replying, Store, StoreError};

/// The version of recipes that this build writes and reads.
const VERSION: u32 = 1;

/// The assembly rules of this build. By rules 1 the history's start moved with every turn (0 = not recorded).
const RULES: u32 = 2;

/// The names of the counters of this build.
const COUNTERS: [&str; 2] = ["class", "o200k"];

#[derive(Serialize, Deserialize)]
struct Recipe {
    version: u32,
    /// The program's version: another version may word prompts differently.
    program: String,
    model: String,
    display_name: String,
    platform_ids: Vec<String>,
    counter: String,
    ratio_64ths: u64,
    as_of_ms: i64,
    /// The title of a room; a chat with one person bears that person's name, which is not kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chat: Option<String>,
    options: RecipeOptions,
    /// The budget and the limit of triggers before the model's context lowered them.
    token_budget: usize,
    trigger_max_tokens: usize,
    files: RecipeFiles,
    /// The text behind the history, with places for values.
    #[serde(default)]
    situation: String,
    /// Which rules assembled it.
    #[serde(default)]
    rules: u32,
    /// The entries of memory in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<RecipeMemory>,
    /// Whether a program gave content with its question; that is kept while the run works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    given: bool,
    /// Of an agent call of a network: what the prompt showed of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<RecipeNetwork>,
    hashes: Hashes,
}

/// What a prompt showed of a network's run: which agents' words and which values; the words themselves are rows of
/// the run.
#[derive(Serialize, Deserialize)]
struct RecipeNetwork {
    name: String,
    /// Who was asked.
    agent: String,
    /// The agent calls before it.
    calls: u32,
    /// The calls whose words it was sent, each with the speaker's display name.
    said: Vec<(u32, String)>,
    /// The values that it was shown.
    reads: Vec<String>,
}

impl RecipeNetwork {
    fn of(network: &InNetwork, agent: &AgentName) -> Self {
        let names = network.tail.words.iter().map(|said| said.name.clone());
        Self {
            name: network.name.to_string(),
            agent: agent.to_string(),
            calls: network.calls,
            said: network.said.iter().copied().zip(names).collect(),
            reads: network.reads.clone(),
        }
    }

    /// The same, rebuilt from the rows of the run; words that are gone are added to the changes.
    fn again(&self, course: &Course, changes: &mut Vec<String>) -> InNetwork {
        let mut words = Vec::new();
        for (n, name) in &self.said {
            match course.calls.iter().find(|call| call.n == *n) {
                Some(call) => words.push(PeerWords {
                    name: name.clone(),
                    is_own: call.agent.as_str() == self.agent,
                    text: call.text.clone(),
                }),
                None => changes.push(format!("the words of {name}: they are gone")),
            }
        }
        let decision = course.decisions.iter().find(|it| it.calls == self.calls);
        let state = decision.and_then(|it| StateValues::as_stored(&it.state).line(&self.reads));
        InNetwork {
            name: AgentName::trusted(self.name.as_str()),
            calls: self.calls,
            said: self.said.iter().map(|(n, _)| *n).collect(),
            reads: self.reads.clone(),
            tail: NetworkTail { words, state },
        }
    }
}

/// Entries of memory, each with its version: `12.1`.
#[derive(Serialize, Deserialize)]
struct RecipeMemory {
    core: Vec<String>,
    found: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct RecipeOptions {
    addressed_only: bool,
    rolling_summary_threshold: usize,
    preserve_recent_turns: usize,
    token_budget: usize,
    trigger_max_tokens: usize,
    #[serde(default)]
    recall_max_tokens: usize,
    scope: Option<String>,
    agent_aliases: Vec<String>,
    is_toolpack: bool,
}

#[derive(Serialize, Deserialize)]
struct RecipeFiles {
    /// `none`, `named` or `whole`.
    shown: String,
    takes_images: bool,
    text_max_tokens: usize,
    images_max: usize,
    /// How many of the files that were sent before the question; `None` = all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    earlier_max: Option<usize>,
    recent_turns: usize,
    image_bytes_max: u64,
}

/// SHA-256 of the parts that were sent, as hexadecimal digits.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Hashes {
    instructions: String,
    /// All other messages, the files behind the last one included.
    messages: String,
    images: String,
    tools: String,
}

/// What a run was sent, rebuilt.
pub struct SentAgain {
    /// The prompt, built from the current rows.
    pub built: BuiltPrompt,
    /// The agent.
    pub agent: AgentName,
    /// The model that was asked.
    pub model: String,
    /// The names of the tools that it might call.
    pub tools: Vec<String>,
    /// What differs from what was sent, in words; empty if nothing does.
    pub changes: Vec<String>,
}

/// The record of a prompt that is about to be sent.
#[must_use]
pub(super) fn recipe_of(
    built: &BuiltPrompt,
    situation: &Template,
    tools: &[ToolSpec],
) -> SentPrompt {
    let tools = serde_json::to_string(tools).expect("plain data with string keys");
    let history = &built.history;
    let voice = &built.voice;
    let conversation = &history.conversation;
    let is_named_after_a_person = conversation.chat_kind == Some(ChatKind::Direct);
    let recipe = Recipe {
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        model: voice.model.clone(),
        display_name: voice.view.display_name.clone(),
        platform_ids: voice.view.platform_ids.clone(),
        counter: voice.counter.name().to_owned(),
        ratio_64ths: voice.ratio.as_64ths(),
        as_of_ms: voice.as_of_ms,
        chat: (!is_named_after_a_person).then(|| conversation.title.clone()),
        options: options_text(&built.options),
        token_budget: built.asked.token_budget,
        trigger_max_tokens: built.asked.trigger_max_tokens,
        files: files_text(&voice.files, built.files_shown),
        situation: situation.source(),
        rules: RULES,
        memory: built.memories.as_ref().map(|shown| RecipeMemory {
            core: shown.core.iter().map(ToString::to_string).collect(),
            found: shown.found.iter().map(ToString::to_string).collect(),
        }),
        given: built.has_given,
        network: built
            .network
            .as_ref()
            .map(|network| RecipeNetwork::of(network, &voice.view.name)),
        hashes: hashes(&built.prompt, &tools),
    };
    let turn = |read: &HistoryTurn| SentTurn {
        turn: read.turn.id,
        role: read.role,
        revision: read.turn.revision,
    };
    let read = history
        .turns
        .iter()
        .filter(|it| it.role != HistoryRole::Recalled);
    let recalled = history.recalled.iter().filter_map(|id| {
        let read = history.turns.iter().find(|it| it.turn.id == *id)?;
        Some(SentTurn {
            role: HistoryRole::Recalled,
            ..turn(read)
        })
    });
    SentPrompt {
        recipe: serde_json::to_string(&recipe).expect("plain data with string keys"),
        instructions: instructions_text(&built.instructions, &built.examples),
        tools,
        summary: history.summary.as_ref().map(|summary| summary.id),
        turns: read.map(turn).chain(recalled).collect(),
        thread_answers: history
            .thread_answers
            .iter()
            .map(|(question, answer)| (*question, *answer))
            .collect(),
    }
}

/// Separates instructions from examples, if there are any: both are stored once for all runs that used them.
const EXAMPLES_BEHIND: char = '\u{1e}';

fn instructions_text(template: &Template, examples: &[Example]) -> String {
    let mut text = template.source();
    if !examples.is_empty() {
        let pairs = examples.iter().map(|it| (&it.question, &it.answer));
        let pairs: Vec<_> = pairs.collect();
        text.push(EXAMPLES_BEHIND);
        text.push_str(&serde_json::to_string(&pairs).expect("pairs of texts"));
    }
    text
}

fn read_instructions(text: &str) -> (Template, Vec<Example>) {
    let behind = text
        .rsplit_once(EXAMPLES_BEHIND)
        .and_then(|(template, pairs)| {
            let pairs: Vec<(String, String)> = serde_json::from_str(pairs).ok()?;
            Some((template, pairs))
        });
    let (template, examples) = behind.unwrap_or((text, Vec::new()));
    let example = |(question, answer)| Example { question, answer };
    (
        Template::parse(template).unwrap_or_default(),
        examples.into_iter().map(example).collect(),
    )
}

/// The tools that a run's model was told of, if recorded: later requests of the run name the same ones, even if the
/// configured or listed tools have changed, so that a cache keeps what follows them.
///
/// # Errors
/// Storage refuses.
pub(super) async fn tools_sent(
    store: &Reader,
    run: RunId,
) -> Result<Option<Vec<ToolSpec>>, StoreError> {
    let recorded = store.recorded_prompt(run).await?;
    Ok(recorded.and_then(|it| serde_json::from_str(&it.sent.tools).ok()))
}

/// The entries of memory that a run was sent, if any were recorded.
///
/// # Errors
/// Storage refuses.
pub(super) async fn memories_sent(
    store: &Reader,
    run: RunId,
) -> Result<Option<ShownMemories>, StoreError> {
    let recorded = store.recorded_prompt(run).await?;
    let recipe = recorded.and_then(|it| serde_json::from_str::<Recipe>(&it.sent.recipe).ok());
    Ok(recipe.and_then(|recipe| recipe.memory.as_ref().map(shown_memories)))
}

fn shown_memories(recipe: &RecipeMemory) -> ShownMemories {
    let read = |list: &[String]| list.iter().filter_map(|it| MemoryRef::read(it)).collect();
    ShownMemories {
        core: read(&recipe.core),
        found: read(&recipe.found),
    }
}

/// Rebuilds what a run was sent; `None` if there is no record that this build can read.
///
/// # Errors
/// Storage refuses.
pub async fn make_again(
    store: &Store<Replying>,
    run: RunId,
) -> Result<Option<SentAgain>, PromptError> {
    let Some(recorded) = store.recorded_prompt(run).await? else {
        return Ok(None);
    };
    let Ok(recipe) = serde_json::from_str::<Recipe>(&recorded.sent.recipe) else {
        return Ok(None);
    };
    if recipe.version != VERSION {
        return Ok(None);
    }
    let sent = recorded.sent.clone();
    let agent = match &recipe.network {
        Some(network) => AgentName::trusted(network.agent.as_str()),
        None => recorded.agent.clone(),
    };
    let remembers = recorded.agent.clone();
    let found = store.sent_history(recorded).await?;
    let mut changes: Vec<String> = found.changes.iter().map(in_words).collect();
    let network = match &recipe.network {
        Some(network) => Some(network.again(&store.network_course(run).await?, &mut changes)),
        None => None,
    };
    let mut history = found.history;
    let title_now = history.conversation.title.clone();
    if let Some(chat) = &recipe.chat {
        history.conversation.title.clone_from(chat);
    }
    let voice = voice_of(&recipe, &agent, &mut changes);
    let (template, examples) = read_instructions(&sent.instructions);
    let memory = match &recipe.memory {
        Some(sent) => {
            let from = MemoryFrom {
                rooms: None,
                these: Some(shown_memories(sent)),
            };
            remembered(store, &remembers, &history, &from).await?
        }
        None => Remembered::default(),
    };
    if memory.lacks_some {
        let gone = "what it remembers: a note was replaced, changed or forgotten since";
        changes.push(gone.to_owned());
    }
    let given = match recipe.given {
        true => store.given(run).await?,
        false => Given::default(),
    };
    if recipe.given && given.is_empty() {
        let gone = "what the program gave with its question: that is kept only while the run works";
        changes.push(gone.to_owned());
    }
    let made_of = MadeOf {
        template: &template,
        examples,
        memory: &memory,
        given: &given,
        network,
    };
    let built = build_again(store, &recipe, voice, made_of, history).await?;
    let again = hashes(&built.prompt, &sent.tools);
    if again != recipe.hashes {
        name_differences(&recipe, &again, &built, &title_now, &mut changes);
    }
    let tools: Vec<ToolSpec> = serde_json::from_str(&sent.tools).unwrap_or_default();
    Ok(Some(SentAgain {
        built,
        agent,
        model: recipe.model,
        tools: tools.into_iter().map(|tool| tool.name).collect(),
        changes,
    }))
}

/// What a prompt is made of besides history and recipe.
struct MadeOf<'a> {
    template: &'a Template,
    examples: Vec<Example>,
    memory: &'a Remembered,
    given: &'a Given,
    network: Option<InNetwork>,
}

async fn build_again(
    store: &Store<Replying>,
    recipe: &Recipe,
    voice: Voice,
    made_of: MadeOf<'_>,
    mut history: History,
) -> Result<BuiltPrompt, PromptError> {
    let MadeOf {
        template,
        examples,
        memory,
        given,
        network,
    } = made_of;
    let options = options_of(&recipe.options);
    let asked = AssemblerOptions {
        token_budget: recipe.token_budget,
        trigger_max_tokens: recipe.trigger_max_tokens,
        ..options.clone()
    };
    let is_ours = options.profile == Profile::Vocative;
    let counter = if is_ours {
        count_turns(&mut history, voice.counter);
        Scaled::new(voice.counter, voice.ratio)
    } else {
        Scaled::new(&Utf16Div4, TokenRatio::ONE)
    };
    let instructions = filled(template, &voice.view, &history, voice.as_of_ms);
    let instructions = instructed(instructions, given);
    let situation = Template::parse(&recipe.situation).unwrap_or_default();
    let situation = match is_ours {
        true => filled(&situation, &voice.view, &history, voice.as_of_ms),
        false => String::new(),
    };
    let in_prompt = || {
        let mut without = history.clone();
        remove_recalled(&mut without);
        assemble(&without, &voice.view, &asked, &counter).turns
    };
    let files_shown = match recipe.files.shown.as_str() {
        "whole" => FilesShown::Whole,
        "named" => FilesShown::Named,
        _ => FilesShown::None,
    };
    let loaded = if is_ours && files_shown != FilesShown::None {
        load_files(store, &voice.files, &history, voice.as_of_ms, in_prompt).await?
    } else {
        LoadedFiles::default()
    };
    let mut prompt = assemble(&history, &voice.view, &options, &counter)
        .with_examples(&examples, &counter)
        .with_instructions(&instructions, &counter)
        .with_situation(&situation, &counter)
        .with_memory(memory.text.as_deref(), &counter)
        .with_given(
            given,
            &asker_name(&history, &voice.view.name),
            options.token_budget,
            &counter,
        )
        .with_network(network.as_ref().map(|network| &network.tail), &counter);
    if let Some(files) = shown(files_shown, &loaded.files, voice.files.limits, &counter) {
        prompt = prompt.with_files(files);
    }
    Ok(BuiltPrompt {
        prompt,
        history,
        options,
        asked,
        has_chat_options: false,
        counter,
        recounts: Vec::new(),
        sources: Vec::new(),
        awaited: Vec::new(),
        of_others: Vec::new(),
        memories: recipe.memory.as_ref().map(|_| memory.shown.clone()),
        has_given: recipe.given,
        instructions: template.clone(),
        examples,
        network,
        voice,
        files_shown,
    })
}

fn voice_of(recipe: &Recipe, agent: &AgentName, changes: &mut Vec<String>) -> Voice {
    let counters = COUNTERS.iter().filter_map(|name| counter_named(name));
    let counter = counters
        .into_iter()
        .find(|counter| counter.name() == recipe.counter);
    if counter.is_none() {
        changes.push(format!(
            "its tokens were counted by {}, which this program does not have",
            recipe.counter
        ));
    }
    let files = &recipe.files;
    Voice {
        view: AgentView {
            name: agent.clone(),
            display_name: recipe.display_name.clone(),
            platform_ids: recipe.platform_ids.clone(),
        },
        model: recipe.model.clone(),
        counter: counter.unwrap_or(&ClassEstimate),
        ratio: TokenRatio::from_64ths(recipe.ratio_64ths),
        as_of_ms: recipe.as_of_ms,
        files: FilesInPrompts {
            takes_images: files.takes_images,
            limits: FileLimits {
                text_max_tokens: files.text_max_tokens,
                images_max: files.images_max,
                earlier_max: files.earlier_max.unwrap_or(usize::MAX),
            },
            recent_turns: files.recent_turns,
            image_bytes_max: files.image_bytes_max,
            wait_ms: 0,
        },
    }
}

/// Names the differences of the prompt that changed turns or a changed summary don't explain.
fn name_differences(
    recipe: &Recipe,
    again: &Hashes,
    built: &BuiltPrompt,
    title_now: &str,
    changes: &mut Vec<String>,
) {
    let sent = &recipe.hashes;
    let is_explained = !changes.is_empty();
    if again.instructions != sent.instructions {
        changes.push(match &recipe.chat {
            None => format!(
                "the instructions: the chat may have been called something else than {title_now:?}"
            ),
            Some(_) => "the instructions: a name in them was another".to_owned(),
        });
    }
    if again.images != sent.images {
        changes.push("the pictures: one is gone, or was not there yet".to_owned());
    }
    if again.messages == sent.messages || is_explained {
        return;
    }
    let program = env!("CARGO_PKG_VERSION");
    changes.push(if recipe.rules != RULES {
        "the order and the cuts: it was assembled by earlier rules".to_owned()
    } else if recipe.program != program {
        format!(
            "the wording: it was made by version {}, and this is {program}",
            recipe.program
        )
    } else if built.files_shown != FilesShown::None {
        "the files: one is gone, or was not there yet".to_owned()
    } else {
        "the messages: a name in them was another, or a reply was linked to what it answers since"
            .to_owned()
    });
}

fn in_words(change: &SentChange) -> String {
    match change {
        SentChange::Edited { seq } => format!("seq {seq}: it was edited since"),
        SentChange::Gone { seq: Some(seq) } => {
            format!("seq {seq}: it was deleted or erased, or has passed its age")
        }
        SentChange::Gone { seq: None } => "a message of it is no longer stored".to_owned(),
        SentChange::SummaryGone => {
            "the summary: it was set aside and made again, or emptied by a delete".to_owned()
        }
    }
}

fn hashes(prompt: &Prompt, tools: &str) -> Hashes {
    let is_instructions = |index: usize| {
        let part = prompt.costs.get(index).map(|cost| cost.part);
        part == Some(PromptPart::Instructions)
    };
    let (mut instructions, mut messages) = (Sha256::new(), Sha256::new());
    for (index, message) in prompt.messages.iter().enumerate() {
        let hash = match is_instructions(index) {
            true => &mut instructions,
            false => &mut messages,
        };
        // Lengths, so that two different prompts never give the same bytes.
        hash.update(message.role.name());
        hash.update(message.content.len().to_be_bytes());
        hash.update(&message.content);
    }
    let mut images = Sha256::new();
    for image in &prompt.images {
        images.update(image.bytes.len().to_be_bytes());
        images.update(&image.bytes);
    }
    Hashes {
        instructions: hex(instructions),
        messages: hex(messages),
        images: hex(images),
        tools: hex(Sha256::new_with_prefix(tools)),
    }
}

fn hex(hash: Sha256) -> String {
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn options_text(options: &AssemblerOptions) -> RecipeOptions {
    RecipeOptions {
        addressed_only: options.addressed_only,
        rolling_summary_threshold: options.rolling_summary_threshold,
        preserve_recent_turns: options.preserve_recent_turns,
        token_budget: options.token_budget,
        trigger_max_tokens: options.trigger_max_tokens,
        recall_max_tokens: options.recall_max_tokens,
        scope: options.scope.map(|scope| scope.name().to_owned()),
        agent_aliases: options.agent_aliases.clone(),
        is_toolpack: options.profile == Profile::Toolpack,
    }
}

fn options_of(recipe: &RecipeOptions) -> AssemblerOptions {
    AssemblerOptions {
        addressed_only: recipe.addressed_only,
        rolling_summary_threshold: recipe.rolling_summary_threshold,
        preserve_recent_turns: recipe.preserve_recent_turns,
        token_budget: recipe.token_budget,
        trigger_max_tokens: recipe.trigger_max_tokens,
        recall_max_tokens: recipe.recall_max_tokens,
        scope: recipe.scope.as_deref().and_then(Scope::from_name),
        agent_aliases: recipe.agent_aliases.clone(),
        profile: if recipe.is_toolpack {
            Profile::Toolpack
        } else {
            Profile::Vocative
        },
        // The turns that were read are recorded one by one.
        ..AssemblerOptions::default()
    }
}

fn files_text(files: &FilesInPrompts, shown: FilesShown) -> RecipeFiles {
    RecipeFiles {
        shown: match shown {
            FilesShown::None => "none",
            FilesShown::Named => "named",
            FilesShown::Whole => "whole",
        }
        .to_owned(),
        takes_images: files.takes_images,
        text_max_tokens: files.limits.text_max_tokens,
        images_max: files.limits.images_max,
        earlier_max: Some(files.limits.earlier_max).filter(|max| *max < usize::MAX),
        recent_turns: files.recent_turns,
        image_bytes_max: files.image_bytes_max,
    }
}
