//! The prompt of a run, exactly as it is sent to the model. `vocative prompt` shows the same.

use chrono::{DateTime, Utc};
use vocative_contract::envelope::ChatKind;
use vocative_contract::identity::Identity;

use crate::agent::attached::{FilesInPrompts, LoadedFiles, load_files};
use crate::agent::recall::{RecallFrom, Recalling, add_recalled, remove_recalled};
use crate::agent::registry::AgentSpec;
use crate::agent::remembered::{MemoryFrom, Remembered, ShownMemories, remembered};
use crate::config::{Template, TemplateValue};
use vocative_core::approving::OutsideSource;
use vocative_core::delegating::{StoredTask, task_text};
use vocative_core::given::Given;
use vocative_core::history::{History, HistoryQuery, HistoryRole};
use vocative_core::ids::{AgentName, ConversationId, TurnId};
use vocative_core::options::{AssemblerOptions, HistoryShare, MemoryMode, Profile, RecallMode};
use vocative_core::place::{ChatName, Conversation};
use vocative_core::prompting::files::{
    FileContent, FileLimits, FittedFiles, PromptFile, fit_files, limits_within,
};
use vocative_core::prompting::{
    AgentView, ContextTooSmall, Example, NetworkTail, Prompt, RunView, Scaled, TokenCounter,
    Utf16Div4, assemble, clean_name, count_turns, fit_context, history_query, leave_share,
    without_earlier,
};
use vocative_core::tokens::TokenRatio;
use vocative_core::turn::{Participant, ParticipantKind, Recount};
use vocative_store::{Reader, Replying, Store, StoreError};

/// Why no prompt could be made.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The store failed; try again.
    #[error("the history could not be read")]
    Store(#[from] StoreError),
    /// The model's context is too small.
    #[error(transparent)]
    Context(#[from] ContextTooSmall),
}

/// Which prompt to make.
#[derive(Clone)]
pub struct PromptRequest {
    /// The conversation.
    pub conversation: ConversationId,
    /// The run's facts; the default reads everything and answers the newest turn.
    pub run: RunView,
    /// The run's time, in milliseconds since the Unix epoch.
    pub as_of_ms: i64,
    /// The task that another agent gave, instead of what people asked.
    pub task: Option<StoredTask>,
    /// The factor for counted tokens.
    pub ratio: TokenRatio,
    /// Where recalled lines come from, if the agent recalls by itself.
    pub recall: RecallFrom,
    /// Where the memory in the prompt comes from, if the agent remembers; `None` = none is shown.
    pub memory: Option<MemoryFrom>,
    /// What a program gave along with its question.
    pub given: Given,
    /// The network that the agent works for; `None` = it was asked itself.
    pub network: Option<InNetwork>,
}

impl PromptRequest {
    /// The name under which the history is read: that of the network that the agent works for, or its own.
    fn addressed<'a>(&'a self, agent: &'a AgentName) -> &'a AgentName {
        let network = self.network.as_ref();
        network.map_or(agent, |network| &network.name)
    }
}

/// What an agent of a network is sent in addition to what an agent that was asked itself is sent.
#[derive(Clone, Debug)]
pub struct InNetwork {
    /// The network, to which the history belongs.
    pub name: AgentName,
    /// The agent calls before it.
    pub calls: u32,
    /// The calls whose words the agent is sent, in the order of the tail.
    pub said: Vec<u32>,
    /// The values that the agent is shown.
    pub reads: Vec<String>,
    /// The part of the prompt with what was said in the run so far, and the values.
    pub tail: NetworkTail,
}

/// A prompt and what it was made from.
pub struct BuiltPrompt {
    /// The prompt as it is sent to the model.
    pub prompt: Prompt,
    /// The history that was read.
    pub history: History,
    /// The options it was made with: the chat's if it has some of its own, else the agent's, within what the model's
    /// context leaves.
    pub options: AssemblerOptions,
    /// Whether the chat has options of its own.
    pub has_chat_options: bool,
    /// The options before the model's context lowered them.
    pub asked: AssemblerOptions,
    /// The counter that was used.
    pub counter: Scaled,
    /// For whom it was made, when and how it was counted.
    pub voice: Voice,
    /// How files are shown in it.
    pub files_shown: FilesShown,
    /// Token counts that were computed, to be stored.
    pub recounts: Vec<Recount>,
    /// The turns of which it certainly contains content: those whose files it holds, and those that were found for
    /// it.
    pub sources: Vec<TurnId>,
    /// Turns before the question whose files are still on their way.
    pub awaited: Vec<TurnId>,
    /// The parts of it that the askers did not write, besides the conversation itself.
    pub of_others: Vec<OutsideSource>,
    /// The entries of memory in it; `None` = the agent remembers nothing.
    pub memories: Option<ShownMemories>,
    /// Whether a program gave content for it.
    pub has_given: bool,
    /// The instructions in it, with places for values.
    pub instructions: Template,
    /// The examples in it.
    pub examples: Vec<Example>,
    /// What it shows of a network's run.
    pub network: Option<InNetwork>,
}

/// What a prompt depends on besides its history and its options.
#[derive(Clone)]
pub struct Voice {
    /// The agent, under the names its bot has where it answers.
    pub view: AgentView,
    /// Its model, under the configured name and the provider's.
    pub model: String,
    /// The counter, before the ratio.
    pub counter: &'static dyn TokenCounter,
    /// The factor for counted tokens.
    pub ratio: TokenRatio,
    /// The run's time, in milliseconds since the Unix epoch.
    pub as_of_ms: i64,
    /// How files are shown.
    pub files: FilesInPrompts,
}

/// How a prompt shows files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesShown {
    /// No files are shown: there are none, or the model's context has no room for them.
    None,
    /// By name.
    Named,
    /// With their contents.
    Whole,
}

/// Reads the snapshot and assembles.
///
/// # Errors
/// [`PromptError`], see there.
pub async fn build_prompt(
    store: &Store<Replying>,
    spec: &AgentSpec,
    identity: Option<&Identity>,
    request: PromptRequest,
) -> Result<BuiltPrompt, PromptError> {
    let there = settings_in(store, spec, request.conversation).await?;
    let options = there.options.unwrap_or(&spec.options).clone();
    let as_of_ms = request.as_of_ms;
    let query = query_of(&request, &spec.name, &options);
    let given = &request.given;
    let mut history = history_for(store, &query, options.history, given).await?;
    let (counter, mut recounts) = counted(&mut history, spec, &options, request.ratio);
    let view = agent_view(spec, identity);
    let seen = (&view, &history, as_of_ms);
    let (instructions, situation) = there.texts(spec, options.profile, seen, given);
    let task = task_in(&request, &mut history);
    let in_prompt = || assemble(&history, &view, &options, &counter).turns;
    let loaded = match options.profile {
        Profile::Vocative => load_files(store, &spec.files, &history, as_of_ms, in_prompt).await?,
        Profile::Toolpack => LoadedFiles::default(),
    };
    let asked = options.clone();
    let tail = request.network.as_ref().map(|network| &network.tail);
    let texts = (instructions.as_str(), situation.as_str(), task.as_deref());
    let own_tokens = own_tokens((texts, &spec.settings().examples), tail, given, &counter);
    let files = &loaded.files;
    let fits = |taken| fit(spec, asked.clone(), own_tokens + taken, files, &counter).is_ok();
    let memory = memory_of(store, spec, &history, (&request, &options), |text| {
        // If the context has no room for the memory, the room goes to the question.
        fits(counter.count(text) as usize) || !fits(0)
    });
    let memory = memory.await?;
    let memory_text = memory.as_ref().and_then(|memory| memory.text.as_deref());
    let making = Making {
        store,
        spec,
        query: &query,
        view: &view,
        counter: &counter,
        asked: &asked,
        instruction_tokens: own_tokens + memory_text.map_or(0, |text| counter.count(text)) as usize,
        files: &loaded.files,
        shows_room: shows_room(&request),
    };
    let (fitting, counted) = making.recalled(&mut history, &request.recall).await?;
    recounts.extend(counted);
    let Fitting {
        options,
        shown: files_shown,
        limits,
    } = fitting;
    let asker = asker_name(&history, &spec.name);
    let mut prompt = assembled((&history, &view, &options), task, &counter)
        .with_examples(&spec.settings().examples, &counter)
        .with_instructions(&instructions, &counter)
        .with_situation(&situation, &counter)
        .with_memory(memory_text, &counter)
        .with_given(given, &asker, options.token_budget, &counter)
        .with_network(tail, &counter);
    if let Some(files) = shown(files_shown, &loaded.files, limits, &counter) {
        prompt = prompt.with_files(files);
    }
    let is_whole = files_shown == FilesShown::Whole;
    let read = if is_whole { loaded.read } else { Vec::new() };
    let (sources, of_others) = made_of(&history, &prompt, read, memory.as_ref());
    Ok(BuiltPrompt {
        prompt,
        history,
        options,
        asked,
        has_chat_options: there.options.is_some(),
        voice: voice(spec, view, &request, limits),
        files_shown,
        counter,
        recounts,
        sources,
        awaited: loaded.awaited,
        of_others,
        memories: memory.map(|memory| memory.shown),
        has_given: !given.is_empty(),
        instructions: there.instructions.clone(),
        examples: spec.settings().examples.clone(),
        network: request.network.clone(),
    })
}

fn query_of(
    request: &PromptRequest,
    agent: &AgentName,
    options: &AssemblerOptions,
) -> HistoryQuery {
    let (conversation, run) = (request.conversation, request.run.clone());
    history_query(
        conversation,
        run,
        request.addressed(agent),
        options,
        request.as_of_ms,
    )
}

/// The stored history of the conversation, unless the program that asks gave one.
async fn history_for(
    store: &Reader,
    query: &HistoryQuery,
    share: HistoryShare,
    given: &Given,
) -> Result<History, StoreError> {
    let mut history = store.history(query.clone()).await?;
    leave_share(&mut history, share);
    if !given.earlier.is_empty() {
        without_earlier(&mut history);
    }
    Ok(history)
}

/// What a prompt costs besides its history: instructions, examples, situation and task, what a network adds, and what
/// a program gave.
fn own_tokens(
    ((instructions, situation, task), examples): ((&str, &str, Option<&str>), &[Example]),
    tail: Option<&NetworkTail>,
    given: &Given,
    counter: &dyn TokenCounter,
) -> usize {
    let examples = examples.iter().map(|it| it.tokens(counter));
    let texts = counter.count(instructions) + counter.count(situation);
    let task = task.map_or(0, |task| counter.count(task));
    (texts + task) as usize
        + examples.sum::<usize>()
        + tail.map_or(0, |tail| tail.tokens(counter))
        + given.preface().map_or(0, |text| counter.cost(&text))
}

/// The agent's instructions, followed by those that a program gave, if its token may give some.
pub(super) fn instructed(instructions: String, given: &Given) -> String {
    match given.instructions.as_deref().map(str::trim) {
        Some(further) if !further.is_empty() => format!("{instructions}\n\n{further}"),
        _ => instructions,
    }
}

/// The name by which a prompt calls the asker.
pub(super) fn asker_name(history: &History, agent: &AgentName) -> String {
    asker(history, agent).map_or_else(String::new, |person| clean_name(person.shown_name()))
}

/// The task of a run that another run started. If the agent sees only the task, the snapshot is emptied except for
/// its place.
fn task_in(request: &PromptRequest, history: &mut History) -> Option<String> {
    let task = request.task.as_ref()?;
    if !task.sees_room {
        history.turns.clear();
        history.thread_answers.clear();
        history.recalled.clear();
        history.summary = None;
        history.has_older = false;
    }
    Some(task_text(task))
}

/// The prompt of what was said, with the task after it.
fn assembled(
    (history, view, options): (&History, &AgentView, &AssemblerOptions),
    task: Option<String>,
    counter: &Scaled,
) -> Prompt {
    let prompt = assemble(history, view, options, counter);
    match task {
        Some(task) => prompt.with_task(task, counter),
        None => prompt,
    }
}

/// Whether a prompt shows anything of the room.
fn shows_room(request: &PromptRequest) -> bool {
    request.task.as_ref().is_none_or(|task| task.sees_room)
}

/// The counter for a prompt, and the counts that had to be computed.
fn counted(
    history: &mut History,
    spec: &AgentSpec,
    options: &AssemblerOptions,
    ratio: TokenRatio,
) -> (Scaled, Vec<Recount>) {
    match options.profile {
        Profile::Vocative => {
            let recounts = count_turns(history, spec.counter);
            (Scaled::new(spec.counter, ratio), recounts)
        }
        Profile::Toolpack => (Scaled::new(&Utf16Div4, TokenRatio::ONE), Vec::new()),
    }
}

/// What a prompt depends on besides its history and its options, with the files' limits that it was made within.
fn voice(spec: &AgentSpec, view: AgentView, request: &PromptRequest, limits: FileLimits) -> Voice {
    Voice {
        view,
        model: spec.model_key.clone(),
        counter: spec.counter,
        ratio: request.ratio,
        as_of_ms: request.as_of_ms,
        files: FilesInPrompts {
            limits,
            ..spec.files
        },
    }
}

/// The memory text in a prompt, if the agent remembers and the text fits.
async fn memory_of(
    store: &Reader,
    spec: &AgentSpec,
    history: &History,
    (request, options): (&PromptRequest, &AssemblerOptions),
    fits: impl Fn(&str) -> bool,
) -> Result<Option<Remembered>, StoreError> {
    let is_on = options.memory != MemoryMode::Off
        && options.profile == Profile::Vocative
        && shows_room(request);
    let Some(from) = request.memory.as_ref().filter(|_| is_on) else {
        return Ok(None);
    };
    let memory = remembered(store, request.addressed(&spec.name), history, from).await?;
    Ok(Some(memory).filter(|memory| memory.text.as_deref().is_none_or(fits)))
}

/// The turns of which a prompt certainly contains content, given the turns whose files were read for it, and the
/// parts that the askers did not write.
fn made_of(
    history: &History,
    prompt: &Prompt,
    read: Vec<TurnId>,
    memory: Option<&Remembered>,
) -> (Vec<TurnId>, Vec<OutsideSource>) {
    let mut sources = history.recalled.clone();
    // A thread's answers go with its root; for a fork's answers, only this list says what they were made from.
    sources.extend(history.before_fork());
    sources.retain(|turn| prompt.turns.contains(turn));
    let mut of_others = found_of_others(history, &sources);
    if let Some(memory) = memory {
        if memory.is_of_others && of_others.is_empty() {
            of_others.push(OutsideSource::Recalled);
        }
        sources.extend(&memory.sources);
    }
    if !read.is_empty() {
        of_others.push(OutsideSource::File);
        sources.extend(read);
    }
    (sources, of_others)
}

/// The mark of a prompt with found lines that were not written by the askers.
fn found_of_others(history: &History, found: &[TurnId]) -> Vec<OutsideSource> {
    let said_by = |role| {
        let turns = history.turns.iter().filter(move |it| it.role == role);
        turns.map(|it| (it.turn.id, &it.turn.participant))
    };
    let is_asker = |person: &Participant| {
        said_by(HistoryRole::Trigger)
            .any(|(_, asker)| asker.kind == person.kind && asker.platform_id == person.platform_id)
    };
    let is_of_other =
        |(turn, person): (TurnId, &Participant)| found.contains(&turn) && !is_asker(person);
    let has_found = said_by(HistoryRole::Recalled).any(is_of_other);
    has_found
        .then_some(OutsideSource::Recalled)
        .into_iter()
        .collect()
}

/// A prompt that is being made, once its history was read.
struct Making<'a> {
    store: &'a Reader,
    spec: &'a AgentSpec,
    query: &'a HistoryQuery,
    view: &'a AgentView,
    counter: &'a Scaled,
    asked: &'a AssemblerOptions,
    instruction_tokens: usize,
    files: &'a [PromptFile],
    shows_room: bool,
}

impl Making<'_> {
    /// Fits the prompt into the model's context, beside found lines of `besides` tokens.
    fn fitted(&self, besides: usize) -> Result<Fitting, ContextTooSmall> {
        let taken = self.instruction_tokens + besides;
        fit(
            self.spec,
            self.asked.clone(),
            taken,
            self.files,
            self.counter,
        )
    }

    /// Adds to the history the lines found for the question, as far as the model's context has room for them. Also
    /// returns the counts that had to be computed.
    async fn recalled(
        &self,
        history: &mut History,
        from: &RecallFrom,
    ) -> Result<(Fitting, Vec<Recount>), PromptError> {
        let fitting = self.fitted(0)?;
        let is_wanted = self.asked.recall == RecallMode::Auto
            && self.asked.history != HistoryShare::None
            && self.shows_room;
        if !is_wanted || self.asked.profile != Profile::Vocative {
            return Ok((fitting, Vec::new()));
        }
        let without = assemble(history, self.view, &fitting.options, self.counter);
        let recalling = Recalling {
            store: self.store,
            query: self.query,
            reach: self.spec.settings().search_reach,
            view: self.view,
            history,
            prompt: &without,
        };
        let Some(found) = recalling.lines(from).await? else {
            return Ok((fitting, Vec::new()));
        };
        add_recalled(history, found);
        let counted = count_turns(history, self.spec.counter);
        let with = assemble(history, self.view, &fitting.options, self.counter);
        match self.fitted(with.recalled_tokens) {
            Ok(fits) if fits.options.token_budget * 2 >= self.asked.token_budget => {
                Ok((fits, counted))
            }
            // The conversation has priority.
            _ => {
                remove_recalled(history);
                Ok((fitting, counted))
            }
        }
    }
}

/// How a prompt is made to fit the model's context.
struct Fitting {
    options: AssemblerOptions,
    shown: FilesShown,
    limits: FileLimits,
}

/// Fits conversation and files into the model's context, besides instructions and found lines of
/// `instruction_tokens`. If both don't fit, the files are shortened as far as needed; if none of their contents fits,
/// they are only named, then left out.
fn fit(
    spec: &AgentSpec,
    options: AssemblerOptions,
    instruction_tokens: usize,
    files: &[PromptFile],
    counter: &Scaled,
) -> Result<Fitting, ContextTooSmall> {
    let limits = spec.files.limits;
    let fitting = |options, shown, limits| Fitting {
        options,
        shown,
        limits,
    };
    let Some(limit) = spec.context_limit else {
        let shown = if files.is_empty() {
            FilesShown::None
        } else {
            FilesShown::Whole
        };
        return Ok(fitting(options, shown, limits));
    };
    let within =
        |limit: usize| fit_context(&options, limit, instruction_tokens, spec.answer_reserve);
    // Files are only included if the conversation keeps at least half of its budget.
    let beside = |tokens: usize| {
        let fitting = within(limit.saturating_sub(tokens)).ok()?;
        (fitting.token_budget * 2 >= options.token_budget).then_some(fitting)
    };
    if !files.is_empty() {
        let taken = instruction_tokens + spec.answer_reserve + options.token_budget.div_ceil(2);
        let room = limit.saturating_sub(taken);
        if let Some(limits) = limits_within(files, limits, room, counter)
            && let Some(options) = beside(fit_files(files, limits, counter).tokens)
        {
            return Ok(fitting(options, FilesShown::Whole, limits));
        }
        if let Some(named) = shown(FilesShown::Named, files, limits, counter)
            && let Some(options) = beside(named.tokens)
        {
            return Ok(fitting(options, FilesShown::Named, limits));
        }
    }
    Ok(fitting(within(limit)?, FilesShown::None, limits))
}

/// The files as a prompt shows them; `None` where there is nothing to show.
pub(super) fn shown(
    how: FilesShown,
    files: &[PromptFile],
    limits: FileLimits,
    counter: &Scaled,
) -> Option<FittedFiles> {
    if files.is_empty() {
        return None;
    }
    match how {
        FilesShown::None => None,
        FilesShown::Named => Some(fit_files(&named_only(files), limits, counter)),
        FilesShown::Whole => Some(fit_files(files, limits, counter)),
    }
}

/// The files without their contents.
fn named_only(files: &[PromptFile]) -> Vec<PromptFile> {
    let why = "the model's context has no room for it";
    let named = |file: &PromptFile| PromptFile {
        name: file.name.clone(),
        is_earlier: file.is_earlier,
        content: FileContent::NotLoaded(why.to_owned()),
    };
    // Files of earlier turns are named in their own messages.
    let asked = files.iter().filter(|file| !file.is_earlier);
    asked.map(named).collect()
}

/// How an agent's prompts are assembled in a conversation: its own options, and what is set for the
/// conversation's chat.
///
/// # Errors
/// `NotFound` if there is no such conversation.
pub async fn options_in(
    store: &Reader,
    spec: &AgentSpec,
    conversation: ConversationId,
) -> Result<AssemblerOptions, StoreError> {
    let there = settings_in(store, spec, conversation).await?;
    Ok(there.options.unwrap_or(&spec.options).clone())
}

/// What is set for an agent in a chat.
struct SettingsThere<'a> {
    /// How its prompts are assembled; `None` where the chat has no settings of its own.
    options: Option<&'a AssemblerOptions>,
    /// Its instructions.
    instructions: &'a Template,
}

impl SettingsThere<'_> {
    /// The instructions, and what stands behind the history.
    fn texts(
        &self,
        spec: &AgentSpec,
        profile: Profile,
        (view, history, as_of_ms): (&AgentView, &History, i64),
        given: &Given,
    ) -> (String, String) {
        let instructions = filled(self.instructions, view, history, as_of_ms);
        let situation = match profile {
            Profile::Vocative => filled(&spec.agent.situation, view, history, as_of_ms),
            Profile::Toolpack => String::new(),
        };
        (instructed(instructions, given), situation)
    }
}

/// What is set for an agent in a conversation's chat.
async fn settings_in<'a>(
    store: &Reader,
    spec: &'a AgentSpec,
    conversation: ConversationId,
) -> Result<SettingsThere<'a>, StoreError> {
    if spec.chat_options.is_empty() {
        return Ok(SettingsThere {
            options: None,
            instructions: &spec.instructions,
        });
    }
    let conversation = store.conversation(conversation).await?;
    let channel = store.channel_of(conversation.account).await?;
    let chat = ChatName {
        channel,
        chat: conversation.platform_chat,
    };
    let instructions = spec.chat_instructions.get(&chat);
    Ok(SettingsThere {
        options: spec.chat_options.get(&chat),
        instructions: instructions.unwrap_or(&spec.instructions),
    })
}

/// The agent as prompts see it, under the names its bot has where it answers.
#[must_use]
pub fn agent_view(spec: &AgentSpec, identity: Option<&Identity>) -> AgentView {
    let platform_ids = identity.map_or_else(Vec::new, |identity| {
        let username = identity.username.iter().map(|name| format!("@{name}"));
        std::iter::once(identity.user_id.clone())
            .chain(identity.other_ids.iter().cloned())
            .chain(username)
            .collect()
    });
    AgentView {
        name: spec.name.clone(),
        display_name: spec.agent.display_name.clone(),
        platform_ids,
    }
}

/// A template with its values filled in. Names come from the room: they are cleaned, so that none can add lines to
/// the instructions.
pub(super) fn filled(
    template: &Template,
    agent: &AgentView,
    history: &History,
    as_of_ms: i64,
) -> String {
    let date = date_of(as_of_ms);
    let asker = asker(history, &agent.name).map(|asker| clean_name(asker.shown_name()));
    let chat = chat_name(&history.conversation, asker.as_deref());
    template.render(|value| match value {
        TemplateValue::Agent => &agent.display_name,
        TemplateValue::Chat => &chat,
        TemplateValue::Date => &date,
        TemplateValue::Participant => asker.as_deref().unwrap_or_default(),
    })
}

/// What a chat is called. Slack's chats with one person have no title; they are called by the person, as
/// Telegram's are.
fn chat_name(conversation: &Conversation, asker: Option<&str>) -> String {
    let is_nameless = conversation.title == conversation.platform_chat;
    match asker {
        Some(asker) if is_nameless && conversation.chat_kind == Some(ChatKind::Direct) => {
            asker.to_owned()
        }
        _ => clean_name(&conversation.title),
    }
}

/// Who is answered: the author of the newest trigger. Without a trigger, the author of the newest turn that was not
/// overheard; never the agent itself, whose answer is the newest turn where nothing waits. The newest turn of all may
/// be another's: an answer to an earlier question stands behind a question that came while it was written.
fn asker<'a>(history: &'a History, agent: &AgentName) -> Option<&'a Participant> {
    let is_own =
        |who: &Participant| who.kind == ParticipantKind::Agent && who.platform_id == agent.as_str();
    let newest = |is_wanted: fn(HistoryRole) -> bool| {
        let wanted = history.turns.iter();
        let wanted = wanted.filter(|read| is_wanted(read.role) && !is_own(&read.turn.participant));
        wanted.max_by_key(|read| read.turn.position)
    };
    let asked = newest(|role| role == HistoryRole::Trigger);
    let asked = asked.or_else(|| {
        newest(|role| {
            !matches!(
                role,
                HistoryRole::Ambient | HistoryRole::ThreadAnswer | HistoryRole::Recalled
            )
        })
    });
    asked.map(|read| &read.turn.participant)
}

/// The day, in UTC, with its name: models are asked about "next Friday".
fn date_of(at_ms: i64) -> String {
    DateTime::<Utc>::from_timestamp_millis(at_ms)
        .map_or_else(String::new, |at| at.format("%A, %Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocative_core::prompting::testing::{history, said};

    #[test]
    fn whoever_asked_is_answered_whatever_stands_behind_the_question() {
        let asked = said(2, HistoryRole::Trigger, "bob", "and when?");
        let cases = [
            (
                vec![said(1, HistoryRole::Kept, "alice", "who?"), asked.clone()],
                "Bob",
            ),
            // The answer to an earlier question was captured after this one.
            (
                vec![asked.clone(), said(3, HistoryRole::Kept, "kael", "Eve.")],
                "Bob",
            ),
            (
                vec![
                    said(1, HistoryRole::Trigger, "alice", "who?"),
                    asked,
                    said(4, HistoryRole::Kept, "eve", "me"),
                ],
                "Bob",
            ),
            // Nothing waits: the agent has spoken last.
            (
                vec![
                    said(1, HistoryRole::Kept, "alice", "who?"),
                    said(2, HistoryRole::Kept, "kael", "Eve."),
                ],
                "Alice",
            ),
            // The prompt as of now: the newest turn is answered, not a turn overheard since.
            (
                vec![
                    said(1, HistoryRole::Kept, "alice", "who?"),
                    said(2, HistoryRole::Ambient, "eve", "hm"),
                ],
                "Alice",
            ),
        ];
        for (turns, expected) in cases {
            let history = history(turns);
            let asker = asker(&history, &AgentName::trusted("kael")).map(Participant::shown_name);
            assert_eq!(asker, Some(expected), "{:?}", history.turns);
        }
        let own = history(vec![said(1, HistoryRole::Kept, "kael", "Hello.")]);
        assert_eq!(asker(&own, &AgentName::trusted("kael")), None);
    }

    #[test]
    fn a_chat_with_one_person_that_has_no_title_is_called_by_the_person() {
        let named = |title: &str, kind, asker| {
            let mut conversation = history(Vec::new()).conversation;
            conversation.title = title.to_owned();
            conversation.chat_kind = kind;
            chat_name(&conversation, asker)
        };
        let direct = Some(ChatKind::Direct);
        assert_eq!(named("C1", direct, Some("Ann")), "Ann");
        assert_eq!(named("Ann's room", direct, Some("Ann")), "Ann's room");
        assert_eq!(named("C1", direct, None), "C1");
        assert_eq!(named("C1", Some(ChatKind::Private), Some("Ann")), "C1");
        assert_eq!(named("C1", None, Some("Ann")), "C1");
    }
}
