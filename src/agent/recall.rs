//! Earlier messages about a question, searched for before its model is asked.
//!
//! The room is searched with the question as it was asked, as far as the agent's search tool would reach; hits that
//! pass the bar (`core/search/bar.rs`) and are not yet in the prompt go into its tail. This happens once in a run:
//! the hits are recorded with the prompt, and every later attempt shows the same lines, if they still exist. No
//! failure here fails a run: without an index, a server or time, fewer lines are shown.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::{debug, warn};
use vocative_contract::envelope::Place;
use vocative_contract::markup::replace_mentions;

use crate::delivery::rooms::Rooms;
use crate::embeddings::Embeddings;
use vocative_core::history::{History, HistoryQuery, HistoryRole};
use vocative_core::ids::TurnId;
use vocative_core::prompting::{AgentView, Prompt, PromptPart};
use vocative_core::search::SearchReach;
use vocative_core::search::bar::{
    Candidate, asks_for_something, cleared, is_shown, sequence, wording_of,
};
use vocative_core::turn::Turn;
use vocative_store::contract::{SearchHit, SearchHits, SearchQuery};
use vocative_store::{Reader, StoreError};

/// The time limit of the whole search; after it the model is asked without lines.
const WITHIN: Duration = Duration::from_secs(2);
/// How long a server may take for the vectors of the question.
const VECTORS_WITHIN: Duration = Duration::from_millis(800);
/// The most questions of a run that are searched for, the newest.
const QUESTIONS_MAX: usize = 3;
/// The most hits that are compared with the bar.
const HITS_MAX: usize = 24;
/// The most turns that are read which the index does not hold yet: with a flood of messages, they are not all read
/// for each question.
const TAIL_MAX: usize = 500;
/// How many characters of a hit are compared with the bar.
const HIT_MAX_CHARS: usize = 2_000;

/// Where a prompt gets its recalled lines from: lines that were found without the model searching for them.
#[derive(Clone, Default)]
pub enum RecallFrom {
    /// No lines are looked for.
    #[default]
    Nothing,
    /// The hits recorded for the run, or for the run that answered the same question; else the room is searched.
    Search(Searching),
    /// The turns that were found, the best first.
    Found(Vec<TurnId>),
}

/// What a search of a room needs.
#[derive(Clone, Default)]
pub struct Searching {
    /// Who is served in which rooms.
    pub rooms: Rooms,
    /// Makes vectors of questions, where a server is configured.
    pub embeddings: Option<Arc<Embeddings>>,
}

/// A prompt that may get found lines.
pub(super) struct Recalling<'a> {
    pub(super) store: &'a Reader,
    pub(super) query: &'a HistoryQuery,
    pub(super) reach: SearchReach,
    pub(super) view: &'a AgentView,
    pub(super) history: &'a History,
    /// The prompt before recalled lines are added.
    pub(super) prompt: &'a Prompt,
}

impl Recalling<'_> {
    /// The turns to show, read as the prompt shows them; `None` if there are none.
    ///
    /// # Errors
    /// Storage refuses to read what is recorded. A search that fails finds nothing.
    pub(super) async fn lines(&self, from: &RecallFrom) -> Result<Option<History>, StoreError> {
        let found = match from {
            RecallFrom::Nothing => Vec::new(),
            RecallFrom::Found(found) => found.clone(),
            RecallFrom::Search(searching) => match self.recorded().await? {
                Some(recorded) => recorded,
                None => self.searched(searching).await,
            },
        };
        if found.is_empty() {
            return Ok(None);
        }
        let read = self.store.recalled(self.query.clone(), found).await?;
        Ok((!read.recalled.is_empty()).then_some(read))
    }

    /// The hits recorded earlier for the run, or for the run that answered the same question.
    async fn recorded(&self) -> Result<Option<Vec<TurnId>>, StoreError> {
        if let Some(run) = self.query.run {
            return self.store.recalled_for_run(run).await;
        }
        let Some(asked) = self.asked().last().map(|turn| turn.id) else {
            return Ok(None);
        };
        let agent = self.query.agent.clone();
        self.store.recalled_for_turn(asked, agent).await
    }

    /// The turns that are answered.
    fn asked(&self) -> Vec<&Turn> {
        let costs = self.prompt.costs.iter();
        let asked = costs.filter(|cost| cost.part == PromptPart::Trigger);
        let asked: HashSet<_> = asked.filter_map(|cost| cost.seq).collect();
        let turns = self.history.turns.iter().map(|read| &read.turn);
        turns.filter(|turn| asked.contains(&turn.seq())).collect()
    }

    async fn searched(&self, searching: &Searching) -> Vec<TurnId> {
        let begun = Instant::now();
        let found = match timeout(WITHIN, self.search(searching)).await {
            Ok(Ok(found)) => found,
            Ok(Err(cause)) => {
                warn!(error = %cause, "the room could not be searched for a question; its model is asked without");
                Vec::new()
            }
            Err(_) => {
                warn!("a search for a question took too long; its model is asked without");
                Vec::new()
            }
        };
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        debug!(
            lines = found.len(),
            took_ms, "the room was searched for a question"
        );
        found
    }

    async fn search(&self, searching: &Searching) -> Result<Vec<TurnId>, StoreError> {
        let queries = self.wordings().await?;
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let vectors = match &searching.embeddings {
            Some(embeddings) => timeout(VECTORS_WITHIN, embeddings.of_queries(&queries)).await,
            None => Ok(None),
        };
        let asked: Vec<TurnId> = self.asked().iter().map(|turn| turn.id).collect();
        let shown = self.prompt.turns.iter().copied();
        let mut query = SearchQuery {
            reach: self.reach,
            queries,
            vectors: vectors.ok().flatten().unwrap_or_default(),
            limit: HITS_MAX,
            token_cap: usize::MAX,
            text_max_chars: HIT_MAX_CHARS,
            neighbours: 0,
            exclude: shown.chain(asked).collect(),
            as_of_seq: self.query.as_of_seq,
            is_by_people: true,
            tail_max: TAIL_MAX,
            ..SearchQuery::new(self.query.conversation, "")
        };
        query.filter.after_ms = self.query.since_ms;
        let found = self.store.search(query).await?;
        Ok(self.worth_showing(&found, &searching.rooms))
    }

    /// The questions of people as they are searched for, the newest last.
    async fn wordings(&self) -> Result<Vec<String>, StoreError> {
        let own = [&self.view.display_name, self.view.name.as_str()];
        let own = own.map(|name| name.to_lowercase());
        let asked = self.asked();
        let wording = |turn: &&Turn| {
            let text = replace_mentions(&turn.content, |id| self.mentioned(id));
            let wording = wording_of(&text, &own);
            asks_for_something(&wording).then_some((turn.id, wording))
        };
        let wordings: Vec<(TurnId, String)> = asked.iter().filter_map(wording).collect();
        let ids = wordings.iter().map(|(turn, _)| *turn).collect();
        let by_people = self.store.said_by_people(ids).await?;
        let by_people = wordings
            .into_iter()
            .filter(|(id, _)| by_people.contains(id));
        let mut wordings: Vec<String> = by_people.map(|(_, wording)| wording).collect();
        let first = wordings.len().saturating_sub(QUESTIONS_MAX);
        Ok(wordings.split_off(first))
    }

    /// The name of a mentioned person; empty for the agent itself, which is not part of a question.
    fn mentioned(&self, id: &str) -> String {
        if self.view.platform_ids.iter().any(|own| own == id) {
            return String::new();
        }
        self.history.names.get(id).cloned().unwrap_or_default()
    }

    /// The hits that pass the bar, are by people who are still served, and say something that is not in the prompt.
    fn worth_showing(&self, found: &SearchHits, rooms: &Rooms) -> Vec<TurnId> {
        let conversation = &self.history.conversation;
        let place = Place {
            chat: conversation.platform_chat.clone(),
            kind: conversation.chat_kind,
            ..Place::default()
        };
        let is_served = |hit: &&SearchHit| {
            let person = hit.turn.participant.platform_id.as_str();
            rooms.still_admits(conversation.account, &place, Some(person))
        };
        let hits: Vec<&SearchHit> = found.hits.iter().filter(is_served).collect();
        let candidates: Vec<Candidate<'_>> = hits
            .iter()
            .map(|hit| Candidate {
                text: &hit.text,
                speaker: hit.turn.participant.shown_name(),
                nearness: hit.nearness,
            })
            .collect();
        let cleared = cleared(&found.wordings, &candidates, found.near_usually);
        if cleared.is_empty() {
            return Vec::new();
        }
        let shown = self.shown_texts();
        let is_new = |hit: &&&SearchHit| !is_shown(&hit.text, &shown);
        let cleared = cleared.iter().map(|place| &hits[*place]);
        cleared.filter(is_new).map(|hit| hit.turn.id).collect()
    }

    /// The texts that the prompt already contains, quotes included.
    fn shown_texts(&self) -> Vec<String> {
        let in_prompt: HashSet<TurnId> = self.prompt.turns.iter().copied().collect();
        let turns = self.history.turns.iter().map(|read| &read.turn);
        let turns = turns.filter(|turn| in_prompt.contains(&turn.id));
        let named = |text: &String| {
            let name = |id: &str| {
                let name = self.history.names.get(id).map_or(id, String::as_str);
                format!("@{name}")
            };
            sequence(&replace_mentions(text, name))
        };
        turns
            .flat_map(|turn| [Some(&turn.content), turn.quote.as_ref()])
            .flatten()
            .map(named)
            .collect()
    }
}

/// Adds found lines to what a prompt is made from.
pub(super) fn add_recalled(history: &mut History, found: History) {
    history.cost.rows += found.cost.rows;
    history.cost.scan_steps += found.cost.scan_steps;
    history.cost.sorts += found.cost.sorts;
    history.cost.vm_steps += found.cost.vm_steps;
    history.names.extend(found.names);
    history.recalled = found.recalled;
    let known: HashSet<TurnId> = history.turns.iter().map(|read| read.turn.id).collect();
    let new = found.turns.into_iter();
    history
        .turns
        .extend(new.filter(|read| !known.contains(&read.turn.id)));
    history.turns.sort_by_key(|read| read.turn.position);
}

/// Removes recalled turns from the history.
pub(super) fn remove_recalled(history: &mut History) {
    history.recalled.clear();
    history
        .turns
        .retain(|read| read.role != HistoryRole::Recalled);
}
