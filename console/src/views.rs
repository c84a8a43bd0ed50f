//! The desk's answers, as far as pages show them: the names are those of the admin socket, to which names are only
//! added. Fields that an older desk lacks are left out.

use serde::Deserialize;
use serde_json::Value;

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $of:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default)]
        pub(crate) struct $name { $(pub(crate) $field: $of,)* }
    )*};
}

views! {
    /// A room, as lists name it.
    Room { id: String, name: String, is_direct: bool, }

    /// The daemon at a glance.
    Status {
        version: String,
        started_at_ms: Option<i64>,
        landlock: Option<String>,
        channels: Vec<Channel>,
        runs: RunCounts,
        posts: PostCounts,
        store: StoreNumbers,
        models: Vec<ModelRest>,
        mcp: Vec<Server>,
        skills: Vec<UnusedSkill>,
        needs_person: Vec<String>,
    }
    Channel {
        name: String,
        platform: Option<String>,
        account: Option<String>,
        state: String,
        reason: Option<String>,
        last_heard_ms: Option<i64>,
        lag_ms: u64,
        tokens_today: u64,
        cost_micros_today: u64,
        history_gaps: u64,
        warnings: Vec<String>,
    }
    RunCounts {
        queued: u64,
        leased: u64,
        dead: u64,
        held: u64,
        waiting: u64,
        approvals_open: u64,
        questions_open: u64,
        oldest_waiting_ms: Option<i64>,
    }
    PostCounts { pending: u64, unknown: u64, held: u64, dead: u64, oldest_waiting_ms: Option<i64>, }
    StoreNumbers { turns: u64, conversations: u64, bytes: u64, quarantined: u64, erasures_open: u64, }
    ModelRest { model: String, state: String, reason: String, until_ms: i64, agents: Vec<String>, queued: u64, }
    /// A skill that an agent's configuration names but that the agent does not have.
    UnusedSkill { name: String, state: String, }
    Server { name: String, state: String, cause: Option<String>, tools: u64, log: Vec<String>, }

    /// A room in a list, and at the head of its page.
    RoomLine {
        id: String,
        name: String,
        scope: String,
        title: String,
        has_own_title: bool,
        source: Source,
        parent: Option<String>,
        turns: u64,
        last_activity_ms: i64,
        active_run: Option<Run>,
        archived_at_ms: Option<i64>,
        is_direct: bool,
    }
    Source { channel: String, platform: String, kind: Option<String>, }
    RoomPage {
        conversation: RoomLine,
        participants: Participants,
        root: Option<Turn>,
        turns: Vec<Turn>,
        timeline: Vec<Entry>,
        older_before: Option<i64>,
    }
    Participants { shown: Vec<Participant>, more: u64, }
    Participant { name: String, kind: String, turns: u64, }
    Turn {
        id: String,
        seq: i64,
        sent_at_ms: i64,
        kind: String,
        speaker_kind: String,
        speaker: String,
        text: String,
        addressed_to: Vec<String>,
        call_id: Option<String>,
        revision: u32,
        visibility: String,
    }
    /// Something that happened in a room: its kind, and its content.
    Entry { at_ms: i64, entry: String, of: Value, }

    Run {
        id: String,
        agent: String,
        state: String,
        reason: Option<String>,
        attempt: u32,
        prompt_tokens: u64,
        cache_read_tokens: u64,
        completion_tokens: u64,
        cost_micros: u64,
        read: Vec<String>,
        hooks: Vec<String>,
        models: Vec<String>,
    }
    /// A run in a list of runs.
    RunLine { run: Run, room: Room, created_at_ms: i64, }
    Post { id: String, state: String, reason: Option<String>, undecided: bool, chat: String, attempts: u32, text: String, room: Option<Room>, }
    Summary {
        id: i64,
        agent: String,
        state: String,
        previous: Option<i64>,
        from_ms: i64,
        through_ms: i64,
        turns: u64,
        tokens: u64,
        model: String,
        created_at_ms: i64,
        text: String,
    }
    Summaries { summaries: Vec<Summary>, }

    /// All of one run.
    Story {
        id: String,
        agent: String,
        state: String,
        reason: Option<String>,
        attempt: u32,
        prompt_tokens: u64,
        cache_read_tokens: u64,
        completion_tokens: u64,
        cost_micros: u64,
        read: Vec<String>,
        hooks: Vec<String>,
        models: Vec<String>,
        room: Room,
        created_at_ms: i64,
        finished_at_ms: Option<i64>,
        asked: Vec<Line>,
        steps: Vec<Step>,
        calls: Vec<Call>,
        said: Vec<Line>,
        task: Option<Task>,
        tasks: Vec<Task>,
        decisions: Vec<Decision>,
        agent_calls: Vec<AgentCall>,
    }
    Line { by: String, text: String, at_ms: i64, }
    Step { number: u32, at_ms: i64, model: Option<String>, prompt_tokens: u64, cache_read_tokens: u64, completion_tokens: u64, }
    Call {
        id: String,
        step: u32,
        tool: String,
        arguments: String,
        state: String,
        attempts: u32,
        started_at_ms: Option<i64>,
        finished_at_ms: Option<i64>,
        result: Option<String>,
        approval: Option<Approval>,
        question: Option<Question>,
    }
    /// A task that one agent gave another.
    Task { parent: String, asked_by: String, child: String, agent: String, task: String, state: String, result: String, }
    /// Which agent is next in a network, and who decided that.
    Decision {
        calls: u32,
        agent: Option<String>,
        by: String,
        rule: Option<u32>,
        waiting: Vec<String>,
        refused: Vec<String>,
        words: String,
        at_ms: i64,
    }
    AgentCall { n: u32, agent: String, outcome: String, text: String, reason: Option<String>, state: Value, at_ms: i64, }
    SaidSoFar { text: String, step: Option<u32>, state: String, }

    Approval {
        id: String,
        state: String,
        room: Room,
        run: String,
        agent: String,
        tool: String,
        target: String,
        arguments: String,
        digest: String,
        asked_by: Vec<String>,
        changed_by: Vec<String>,
        approvers: Vec<Vec<String>>,
        asked_at_ms: i64,
        expires_at_ms: Option<i64>,
        decided_at_ms: Option<i64>,
        decided_by: Option<String>,
        via: Option<String>,
        note: Option<String>,
        read: Vec<String>,
        may_approve: bool,
    }
    Grant {
        id: String,
        channel: Option<String>,
        chat: String,
        agent: String,
        tool: String,
        is_exact: bool,
        person: String,
        granted_by: Option<String>,
        granted_at_ms: i64,
        until_ms: Option<i64>,
        uses: u32,
    }
    Question {
        id: String,
        state: String,
        room: Room,
        run: String,
        agent: String,
        question: String,
        options: Vec<String>,
        asked: Vec<String>,
        asked_at_ms: i64,
        expires_at_ms: Option<i64>,
        ended_at_ms: Option<i64>,
        answered_by: Option<String>,
        answer: Option<String>,
    }

    Queued { run: Run, room: Room, person: Option<String>, texts: Vec<String>, age_ms: i64, why: String, }
    Waiting { run: Run, room: Room, text: String, }
    /// Posts and runs, held or given up.
    Stuck { runs: Vec<Waiting>, posts: Vec<Post>, }

    Schedule {
        id: i64,
        name: Option<String>,
        state: String,
        reason: Option<String>,
        room: Room,
        owner_name: Option<String>,
        agent: Option<String>,
        when: String,
        task: String,
        next_at_ms: Option<i64>,
        fired: u64,
        missed: u64,
        firings: Vec<Firing>,
    }
    Firing { at_ms: i64, decided_at_ms: i64, outcome: String, missed_before: u32, run: Option<String>, }

    Memory {
        id: i64,
        agent: String,
        kind: String,
        text: String,
        subject: Option<String>,
        teller: String,
        room: String,
        is_direct: bool,
        since_ms: Option<i64>,
        written_at_ms: i64,
        sources: u64,
    }

    Found { hits: Vec<Hit>, matches: u64, notes: Vec<String>, }
    Hit { conversation: String, seq: i64, sent_at_ms: i64, speaker: String, text: String, link: Option<String>, before: Vec<Beside>, after: Vec<Beside>, }
    Beside { speaker: String, text: String, }

    Cost {
        of: String,
        calls: u64,
        prompt_tokens: u64,
        cache_read_tokens: u64,
        completion_tokens: u64,
        cost_micros: u64,
    }

    Tool { server: String, tool: String, state: String, digest: String, told: String, told_before: Option<String>, }

    Skills { skills: Vec<Skill>, problems: Vec<String>, }
    Skill {
        name: String,
        state: String,
        description: String,
        folder: Option<String>,
        agents: Vec<String>,
        cause: Option<String>,
        approved_by: Option<String>,
        approved_at_ms: Option<i64>,
    }

    Setting { key: String, value: String, origin: String, }

    Plan { what: String, turns: u64, conversations: u64, runs: u64, }
    Erasing {
        what: String,
        began_at_ms: i64,
        state: String,
        error: Option<String>,
        done: Option<Erased>,
    }
    Erased { turns: u64, answers: u64, repeats: u64, details: u64, removed_copies: Vec<String>, verification: Option<Verification>, }
    Verification { texts: u64, files: u64, bytes: u64, hits: Vec<(String, u64)>, columns: Vec<(String, u64)>, }

    AuditLine { id: i64, at_ms: i64, who: String, via: String, act: String, target: String, outcome: String, }

    /// A prompt as a model was or would be sent it.
    Prompt {
        conversation: String,
        agent: String,
        answered_seq: Option<i64>,
        messages: Vec<Message>,
        tokens: u64,
        instruction_tokens: u64,
        recalled_tokens: u64,
        token_budget: u64,
        tokens_left: u64,
        has_chat_options: bool,
        costs: Vec<MessageCost>,
        turns_loaded: u64,
        turns_in_prompt: u64,
        turns_of_conversation: u64,
        turns_summarized: u64,
        turns_not_read: u64,
        not_read_because: Vec<String>,
        rows_read: u64,
        has_summary: bool,
        counter: String,
        omitted: Vec<Omitted>,
        answered_run: Option<String>,
        as_sent: Option<AsSent>,
    }
    Message { role: String, content: String, }
    MessageCost { part: String, seq: Option<i64>, tokens: u64, }
    Omitted { seq: i64, speaker: String, why: String, meaning: String, tokens_left_out: Option<u64>, }
    AsSent { run: String, is_same: bool, changes: Vec<String>, model: String, tools: Vec<String>, }
}

impl RoomLine {
    /// The room, as lists name it.
    pub(crate) fn room(&self) -> Room {
        Room {
            id: self.id.clone(),
            name: self.name.clone(),
            is_direct: self.is_direct,
        }
    }
}
