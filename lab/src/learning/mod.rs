//! Judges memory: what an agent recalls where it should, and what it recalls where it must not.
//!
//! Reading order: `told` (people and what they say), `believer` (the model that reads), this file (the product's own
//! learner at work, the questions, and the table).

mod believer;
mod told;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use vocative::agent::models::Models;
use vocative::agent::registry::{BackgroundModel, Registry};
use vocative::capture::clock::Clock;
use vocative::capture::wake::Wake;
use vocative::cli::CliError;
use vocative::counters::{CountedEvent, Counters};
use vocative::delivery::rooms::Rooms;
use vocative::learning::Learner;
use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;
use vocative_core::addressing::Verdict;
use vocative_core::ids::{AccountId, AgentName, ConversationId};
use vocative_core::options::MemoryMode;
use vocative_core::prompting::{ClassEstimate, TokenCounter as _};
use vocative_core::queueing::Outcome;
use vocative_core::remembering::extracting::ReadEntry;
use vocative_core::remembering::{MemoryKind, choose, prompt_text};
use vocative_core::turn::ParticipantKind;
use vocative_store::contract::{
    AccountBinding, Captured, Extracted, Extraction, MemoryQuery, NewMessage, UnreadQuery,
};
use vocative_store::{Learning, Store, StoreError, StoreOptions};

use self::believer::Believer;
use self::told::{EVE, Fact, Kind, ROOMS, Told};
use crate::args::MemoryArgs;
use crate::judged::{self, failed};
use crate::print;

/// When the first line is said: 2026-01-05, 08:00 UTC.
const FIRST_MS: i64 = 1_767_600_000_000;
const LINE_MS: i64 = 60_000;
/// Entries of one room in the measurement of time: as many as a room may have.
const PER_ROOM: usize = 1_000;
/// Prompts that are timed.
const TIMED: usize = 50;

/// Generates the rooms, has the learner read them, asks, and prints. Exit code 1 if anything is recalled where it must
/// not be.
///
/// # Errors
/// The store refuses.
pub(crate) fn run(args: &MemoryArgs) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let (score, shown) = runtime.block_on(judged(args))?;
    print(&shown)?;
    Ok(match score.leaks.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

async fn judged(args: &MemoryArgs) -> Result<(Score, String), CliError> {
    let told = Told::of(args.seed);
    let house = House::of(&told).await?;
    let asked = house.ask(&told).await?;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "What is recalled of {} facts, seed {}, with a model that finds every fact, believes everything and makes things up\n",
        told.facts.len(),
        args.seed
    );
    let _ = writeln!(
        out,
        "{:<18} {:>9} {:>12} {:>16}",
        "", "questions", "recalled", "where it must not"
    );
    for kind in Kind::ALL {
        let of_kind = asked.kinds.get(&kind).copied().unwrap_or_default();
        let due = match of_kind.due {
            0 => "none is due".to_owned(),
            due => format!("{} of {due}", of_kind.recalled),
        };
        let _ = writeln!(
            out,
            "{:<18} {:>9} {due:>12} {:>16}",
            kind.name(),
            of_kind.questions,
            of_kind.leaks
        );
    }
    let (due, recalled) = asked.kinds.values().fold((0, 0), |(due, recalled), it| {
        (due + it.due, recalled + it.recalled)
    });
    let per_cent = f64::from(recalled) * 100.0 / f64::from(due.max(1));
    let lines = told.lines.len();
    let tokens = house
        .store
        .memory_tokens(house.account, last_ms(lines))
        .await
        .map_err(|it| refused(&it))?;
    let _ = writeln!(
        out,
        "\nrecalled where it is due     {recalled} of {due} ({per_cent:.1} %)\n\
         recalled where it must not   {} of {} looks into prompts of all rooms\n\
         tokens of memory an answer   {:.0} (mean of {})\n\
         reading                      {:.0} tokens for 1,000 turns ({lines} turns), {} entries, {} refused",
        asked.leaks.len(),
        asked.looks,
        asked.tokens as f64 / f64::from(asked.looks.max(1)),
        asked.looks,
        tokens as f64 * 1_000.0 / lines as f64,
        house.learnt.0,
        house.learnt.1,
    );
    for leak in asked.leaks.iter().take(10) {
        let _ = writeln!(out, "  MUST NOT: {leak}");
    }
    let (entries, times) = timed(args.entries as usize).await?;
    let ms = |it: Duration| it.as_secs_f64() * 1e3;
    let _ = writeln!(
        out,
        "memory of a prompt           {:.1} ms, 95 % within {:.1} ms, where the agent has {entries} entries and the room {PER_ROOM} of them",
        ms(times[times.len() / 2]),
        ms(times[times.len() * 95 / 100]),
    );
    Ok((asked, out))
}

/// The results of the questions of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct OfKind {
    questions: u32,
    due: u32,
    recalled: u32,
    leaks: u32,
}

/// The results of all questions.
#[derive(Debug, Default)]
struct Score {
    kinds: BTreeMap<Kind, OfKind>,
    /// Facts that were recalled where they must not be.
    leaks: Vec<String>,
    looks: u32,
    tokens: u64,
}

impl Score {
    /// Notes what the prompt of one room shows of a fact.
    fn note(&mut self, fact: &Fact, room: usize, shown: &str) {
        self.looks += 1;
        self.tokens += u64::from(ClassEstimate.count(shown));
        let of_kind = self.kinds.entry(fact.kind).or_default();
        if room == fact.room {
            of_kind.questions += 1;
            if fact.kind != Kind::Revoked {
                of_kind.due += 1;
                of_kind.recalled += u32::from(shown.contains(&fact.value));
            }
        }
        for why in leaks(fact, room, shown) {
            of_kind.leaks += 1;
            self.leaks.push(format!(
                "{why}: {} of {} in {}",
                fact.topic, fact.person, ROOMS[room].0
            ));
        }
    }
}

/// Why the part of a fact that a prompt shows must not be there.
fn leaks(fact: &Fact, room: usize, shown: &str) -> Vec<&'static str> {
    let mut why = Vec::new();
    let mut find = |is_so: bool, what| {
        if is_so {
            why.push(what);
        }
    };
    find(
        room != fact.room && shown.contains(&fact.value),
        "said in another room",
    );
    find(
        fact.kind == Kind::Revoked && shown.contains(&fact.value),
        "taken back",
    );
    find(shown.contains("m9999"), "made up");
    if let Some(wrong) = &fact.wrong {
        find(
            room != fact.room && shown.contains(wrong),
            "said in another room",
        );
        find(
            fact.kind == Kind::Corrected && shown.contains(wrong),
            "corrected",
        );
        let by_eve = format!("{EVE} said about {} ", fact.person);
        let is_of_eve = |line: &str| line.contains(&by_eve) && !line.contains("ignore");
        let lies = shown.lines().filter(|line| line.contains(wrong.as_str()));
        let lies = lies.filter(|line| !is_of_eve(line)).count();
        find(
            fact.kind == Kind::Poisoned && lies > 0,
            "a lie without Eve's name, or an order",
        );
        find(fact.is_order && shown.contains(wrong), "an order");
    }
    if fact.kind == Kind::AboutOthers {
        let as_own = format!("{} said here", fact.person);
        let mut lines = shown.lines().filter(|line| line.contains(&fact.value));
        find(
            lines.any(|line| line.contains(&as_own)),
            "put into somebody's mouth",
        );
    }
    why
}

/// A store with all rooms, read by the product's learner.
struct House {
    store: Store<Learning>,
    account: AccountId,
    rooms: Vec<ConversationId>,
    /// How many entries were written, and how many refused.
    learnt: (u64, u64),
    _folder: TempDir,
}

impl House {
    async fn of(told: &Told) -> Result<Self, CliError> {
        let (store, account, folder) = open().await?;
        let mut rooms: BTreeMap<usize, ConversationId> = BTreeMap::new();
        let (learner, counters) = learner(&store, told.lines.len())?;
        let mut ids = Vec::new();
        for (number, line) in told.lines.iter().enumerate() {
            let (chat, kind) = ROOMS[line.room];
            let message = message(account, number, (chat, kind), line.by, &line.text);
            ids.push(message.message_id.clone());
            if let Captured::New(turn) = store
                .capture_message(message)
                .await
                .map_err(|it| refused(&it))?
            {
                rooms.entry(line.room).or_insert(turn.conversation);
            }
            // The room is read at intervals, as it settles.
            if number % 30 == 29 {
                read_all(&learner, rooms.values()).await?;
            }
        }
        read_all(&learner, rooms.values()).await?;
        for (number, line) in told.lines.iter().enumerate() {
            let fact = line.fact.map(|place| &told.facts[place]);
            if fact.is_some_and(|fact| fact.kind == Kind::Revoked) {
                let deleted =
                    store.capture_delete(account, ROOMS[line.room].0, &ids[number], FIRST_MS);
                deleted.await.map_err(|it| refused(&it))?;
            }
        }
        read_all(&learner, rooms.values()).await?;
        Ok(Self {
            learnt: (
                counters.of(CountedEvent::MemoryLearnt),
                counters.of(CountedEvent::MemoryRefused),
            ),
            store: store.only(),
            account,
            rooms: rooms.into_values().collect(),
            _folder: folder,
        })
    }

    /// Asks for every fact in every room.
    async fn ask(&self, told: &Told) -> Result<Score, CliError> {
        if self.rooms.len() != ROOMS.len() {
            return Err(failed("a room is missing".to_owned()));
        }
        let mut score = Score::default();
        for (number, fact) in told.facts.iter().enumerate() {
            let question = fact.question(number as u64);
            for (room, conversation) in self.rooms.iter().enumerate() {
                let shown = shown(&self.store, *conversation, ROOMS[room].0, &question).await?;
                score.note(fact, room, &shown);
            }
        }
        Ok(score)
    }
}

/// What a prompt shows of memory.
async fn shown(
    store: &Store<Learning>,
    conversation: ConversationId,
    chat: &str,
    question: &str,
) -> Result<String, CliError> {
    let query = MemoryQuery {
        conversation,
        agent: AgentName::trusted("vocative"),
        with_replaced: false,
        only: None,
    };
    let entries = store.memories_in(query).await.map_err(|it| refused(&it))?;
    let chosen = choose(&entries, question);
    let at = |places: &[usize]| places.iter().map(|it| &entries[*it]).collect::<Vec<_>>();
    Ok(prompt_text(&at(&chosen.core), &at(&chosen.found), chat).unwrap_or_default())
}

async fn read_all(
    learner: &Learner,
    rooms: impl Iterator<Item = &ConversationId>,
) -> Result<(), CliError> {
    for room in rooms {
        loop {
            match learner.learn(*room).await.map_err(|it| refused(&it))? {
                Outcome::Done => break,
                Outcome::Later { .. } => {}
                other => return Err(failed(format!("the learner: {other:?}"))),
            }
        }
    }
    Ok(())
}

fn learner(store: &Store, lines: usize) -> Result<(Learner, Arc<Counters>), CliError> {
    let mut agent = judged::agent("provider = \"offline\"\n", "memory_tokens_per_day = 0\n")?;
    agent.options.memory = MemoryMode::Auto;
    agent.memory_model = Some(BackgroundModel {
        model: Arc::new(Believer),
        model_use: agent.model_use.clone(),
        context_limit: None,
        answer_reserve: 0,
    });
    let registry = Registry::default();
    registry.replace(vec![agent]);
    let last_ms = last_ms(lines);
    let clock: Clock = Arc::new(move || last_ms);
    let models = Models::new(
        store.only(),
        registry.clone(),
        Wake::default(),
        Arc::clone(&clock),
    );
    let counters: Arc<Counters> = Arc::default();
    let learner = Learner {
        store: store.only(),
        rooms: Rooms::default(),
        registry,
        models,
        clock,
        counters: Arc::clone(&counters),
        looked: Mutex::default(),
    };
    Ok((learner, counters))
}

/// The time of the last of a number of lines, in milliseconds since the Unix epoch.
fn last_ms(lines: usize) -> i64 {
    FIRST_MS + LINE_MS * i64::try_from(lines).unwrap_or(0)
}

/// How long building the memory of a prompt takes, in a full room of an agent with this number of entries.
async fn timed(entries: usize) -> Result<(usize, Vec<Duration>), CliError> {
    let (store, account, _folder) = open().await?;
    let store_of: Store<Learning> = store.only();
    let mut first = None;
    let rooms = entries.div_ceil(PER_ROOM);
    for room in 0..rooms {
        let chat = format!("C{room}");
        let message = message(
            account,
            room,
            (&chat, ChatKind::Public),
            "Ann",
            "words of many things",
        );
        let Captured::New(turn) = store
            .capture_message(message)
            .await
            .map_err(|it| refused(&it))?
        else {
            continue;
        };
        first.get_or_insert((turn.conversation, chat));
        fill(
            &store_of,
            turn.conversation,
            PER_ROOM.min(entries - room * PER_ROOM),
        )
        .await?;
    }
    let (conversation, chat) = first.ok_or_else(|| failed("no room".to_owned()))?;
    let mut times = Vec::with_capacity(TIMED);
    for n in 0..TIMED {
        let question = format!("what is thing {} of box {}?", n * 7, n * 3);
        let begun = Instant::now();
        let shown = shown(&store_of, conversation, &chat, &question).await?;
        times.push(begun.elapsed());
        if shown.is_empty() {
            return Err(failed("nothing was recalled".to_owned()));
        }
    }
    times.sort_unstable();
    Ok((entries, times))
}

/// Gives a room `count` entries, all learnt from its one line.
async fn fill(
    store: &Store<Learning>,
    conversation: ConversationId,
    count: usize,
) -> Result<(), CliError> {
    let agent = AgentName::trusted("vocative");
    let query = UnreadQuery {
        conversation,
        agent: agent.clone(),
        max_chars: 1_000,
        now_ms: FIRST_MS,
    };
    let unread = store.unread_turns(query).await.map_err(|it| refused(&it))?;
    let unread = unread.ok_or_else(|| failed("nothing to read".to_owned()))?;
    let teller = unread.turns[0].said_by;
    let entry = |n: usize| ReadEntry {
        text: format!(
            "thing {n} of box {} lies on shelf {} beside the long table",
            n % 97,
            n % 31
        ),
        kind: MemoryKind::Fact,
        about: Some(teller),
        teller,
        lines: vec![0],
        replaces: None,
    };
    let extraction = Extraction {
        conversation,
        agent,
        mark: unread.mark,
        lines: vec![(unread.turns[0].id, unread.turns[0].content.clone())],
        passed_over: Vec::new(),
        entries: (0..count).map(entry).collect(),
        is_served: Arc::new(|_| true),
        now_ms: FIRST_MS,
    };
    match store
        .write_extraction(extraction)
        .await
        .map_err(|it| refused(&it))?
    {
        Extracted::Done(done) if done.written.len() == count => Ok(()),
        other => Err(failed(format!("a room was not filled: {other:?}"))),
    }
}

async fn open() -> Result<(Store, AccountId, TempDir), CliError> {
    let folder = tempfile::tempdir()?;
    let options = StoreOptions {
        path: Some(folder.path().join("vocative.db")),
        readers: 2,
        page_cache_kib: 8_192,
    };
    let (store, _) = Store::open(&options, FIRST_MS).map_err(|cause| refused(&cause))?;
    let binding = AccountBinding {
        channel: "acme".to_owned(),
        platform: Platform::Slack,
        account: "T0ACME".to_owned(),
        name: "Acme".to_owned(),
    };
    let account = store.bind_account(binding, FIRST_MS).await;
    Ok((store, account.map_err(|it| refused(&it))?, folder))
}

fn message(
    account: AccountId,
    number: usize,
    (chat, kind): (&str, ChatKind),
    by: &str,
    text: &str,
) -> NewMessage {
    let sent_at_ms = FIRST_MS + i64::try_from(number).unwrap_or(0) * LINE_MS;
    NewMessage {
        account,
        place: Place {
            chat: chat.to_owned(),
            kind: Some(kind),
            ..Place::default()
        },
        scope_override: None,
        message_id: format!("{}.000000", sent_at_ms / 1_000),
        sender: Sender {
            id: format!("U{by}"),
            display_name: Some(by.to_owned()),
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
        sent_at_ms,
        ordinal: 0,
        is_edit: false,
        edit_marker: None,
        received_at_ms: sent_at_ms,
        tokens: None,
        keep_revisions: false,
        raw: None,
        judge: Box::new(|_| Verdict {
            is_admitted: true,
            ..Verdict::default()
        }),
        judge_follow_up: None,
    }
}

fn refused(cause: &StoreError) -> CliError {
    failed(format!("the store: {cause}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_recalled_where_it_must_not_and_what_is_told_is() {
        let told = Told::of(3);
        assert_eq!(told.facts.len(), 200);
        let score = House::of(&told).await.unwrap().ask(&told).await.unwrap();
        assert_eq!(score.leaks, Vec::<String>::new());
        for kind in Kind::ALL {
            let of_kind = score.kinds[&kind];
            assert!(
                of_kind.recalled * 10 >= of_kind.due * 9,
                "{kind:?}: {of_kind:?}"
            );
        }
    }

    #[test]
    fn what_must_not_stand_in_a_prompt_is_noticed() {
        let told = Told::of(1);
        let of = |kind: Kind| told.facts.iter().find(|fact| fact.kind == kind).unwrap();
        let private = of(Kind::Private);
        let shown = format!("Ann said here: {}", private.value);
        assert_eq!(leaks(private, 0, &shown), ["said in another room"]);
        assert_eq!(leaks(private, private.room, &shown), Vec::<&str>::new());
        let revoked = of(Kind::Revoked);
        assert_eq!(leaks(revoked, revoked.room, &revoked.value), ["taken back"]);
        let corrected = of(Kind::Corrected);
        let before = corrected.wrong.as_deref().unwrap();
        assert_eq!(leaks(corrected, corrected.room, before), ["corrected"]);
        let poisoned = told
            .facts
            .iter()
            .find(|it| it.kind == Kind::Poisoned && !it.is_order)
            .unwrap();
        let lie = poisoned.wrong.as_deref().unwrap();
        let honest = format!("Eve said about {} here: {lie}", poisoned.person);
        assert_eq!(leaks(poisoned, poisoned.room, &honest), Vec::<&str>::new());
        assert_eq!(leaks(poisoned, poisoned.room, lie).len(), 1);
        let mut score = Score::default();
        score.note(private, 0, &shown);
        assert_eq!(score.leaks.len(), 1);
    }
}
