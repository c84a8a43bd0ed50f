//! What pages show.

use serde_json::{Value, json};

use super::rooms::{FoundRooms, entries};
use super::{DaemonDesk, json as to_json};
use crate::admin::operations::{AdminOperation, EraseTarget, OperationError, Operator};
use crate::admin::view::{ConversationView, CostsBy, PostView, RunView, SearchFilterView};
use vocative_console::{Ask, EraseChoice as Target};
use vocative_core::ids::{ConversationId, RunId};
use vocative_store::contract::ApprovalFilter;

/// The most rooms, approvals, questions or entries of memory on one page.
const PAGE: usize = 50;
/// The most turns of a room on one page.
const TURNS: usize = 50;
/// The most hits of a search.
const HITS: usize = 25;
/// The most posts, and the most runs, that are shown as held, given up or waiting.
const STUCK: usize = 100;
/// The most rows of the audit on one page.
const AUDIT: usize = 100;

type ReadResult<T = Value> = Result<T, OperationError>;

impl DaemonDesk {
    /// Reads what is asked for.
    pub(super) async fn read(&self, ask: Ask) -> ReadResult {
        match ask {
            Ask::Status => self.execute(AdminOperation::Status).await,
            Ask::Rooms { before, all } => self.rooms(before, all).await,
            Ask::RoomHead(id) => Ok(head(&self.operations.room_head(&id).await?)),
            Ask::Room { id, before } => self.room_page(id, before).await,
            Ask::Prompt { room, agent, at } => {
                let name = room;
                self.execute(AdminOperation::Prompt { name, agent, at })
                    .await
            }
            Ask::SentPrompt(run) => self.execute(AdminOperation::SentPrompt { run }).await,
            Ask::Summaries(name) => {
                let agent = None;
                self.execute(AdminOperation::Summaries { name, agent })
                    .await
            }
            Ask::Runs { before, limit } => self.runs(before.as_deref(), limit).await,
            Ask::Run(id) => self.run(id).await,
            Ask::RunText(id) => self.run_text(id).await,
            Ask::Search {
                room,
                query,
                threads,
            } => self.search(room, query, threads).await,
            Ask::Costs { by, since_ms } => self.costs(&by, since_ms).await,
            Ask::Settings => Ok(self.settings()),
            Ask::ErasePlan(target) => {
                let target = target_of(target);
                self.execute(AdminOperation::ErasePlan { target }).await
            }
            Ask::Erasures => Ok(self.erasures.shown()),
            Ask::Memories { before } => Ok(to_json(
                &self.operations.newest_memories(before, PAGE).await?,
            )),
            Ask::McpTools => {
                let server = None;
                self.execute(AdminOperation::McpTools { server }).await
            }
            Ask::Skills => self.skills().await,
            Ask::Audit { before } => {
                let limit = AUDIT;
                self.execute(AdminOperation::ConsoleAudit { before, limit })
                    .await
            }
            waiting => self.read_waiting(waiting).await,
        }
    }

    /// Reads what waits for a person or a time.
    async fn read_waiting(&self, ask: Ask) -> ReadResult {
        match ask {
            Ask::Approvals { all, before } => self.approvals(all, before.as_deref()).await,
            Ask::Approval { id, by } => {
                let by = self.operator(&by);
                let (view, may_approve) = self.operations.approval_for(&id, &by).await?;
                let mut view = to_json(&view);
                view["may_approve"] = Value::Bool(may_approve);
                self.with_room(view, "/run").await
            }
            Ask::Questions { all, before } => {
                let before = before.as_deref().map(read_id).transpose()?;
                let found = self.operations.questions(!all, before, PAGE).await?;
                let views = found.iter().map(to_json).collect();
                Ok(self.with_rooms(views, "/run").await?.into())
            }
            Ask::Question(id) => {
                let view = to_json(&self.operations.question(&id).await?);
                self.with_room(view, "/run").await
            }
            Ask::Grants => Ok(to_json(&self.operations.grants().await?)),
            Ask::Queue => {
                let mut views = entries(self.execute(AdminOperation::Queue).await?);
                views.truncate(STUCK);
                Ok(self.with_rooms(views, "/run/id").await?.into())
            }
            Ask::Held => {
                let runs = self.execute(AdminOperation::HeldRuns).await?;
                self.stuck(runs, "held").await
            }
            Ask::Dead => {
                let mut dead = self.execute(AdminOperation::Dead { id: None }).await?;
                self.stuck(dead["runs"].take(), "dead").await
            }
            Ask::Schedules { all } => {
                let views = self.execute(AdminOperation::Schedules { all }).await?;
                let mut views = entries(views);
                let mut found = FoundRooms::default();
                for view in &mut views {
                    self.add_own_room(view, &mut found).await?;
                }
                Ok(views.into())
            }
            Ask::Schedule(id) => {
                let mut view = self.execute(AdminOperation::Schedule { id }).await?;
                self.add_own_room(&mut view, &mut FoundRooms::default())
                    .await?;
                Ok(view)
            }
            _ => Err(OperationError::Wrong("this is not shown".to_owned())),
        }
    }

    async fn execute(&self, operation: AdminOperation) -> ReadResult {
        self.operations.execute(operation).await
    }

    /// Who decides, with the people that the settings say they are.
    pub(super) fn operator(&self, name: &str) -> Operator {
        let person = self.people.iter().find(|person| person.name == name);
        let people = person.map(|person| person.people.as_slice());
        Operator::by_console(name, people.unwrap_or_default())
    }

    async fn rooms(&self, before: Option<String>, all: bool) -> ReadResult {
        let operation = AdminOperation::Conversations {
            channel: None,
            limit: PAGE,
            all,
            before,
        };
        let listed = self.execute(operation).await?;
        let views: Vec<ConversationView> = serde_json::from_value(listed).unwrap_or_default();
        Ok(views.iter().map(head).collect::<Vec<_>>().into())
    }

    async fn room_page(&self, name: String, before: Option<i64>) -> ReadResult {
        let operation = AdminOperation::Conversation {
            name,
            limit: TURNS,
            timeline: true,
            before,
        };
        self.execute(operation).await
    }

    async fn runs(&self, before: Option<&str>, limit: usize) -> ReadResult {
        let before = before.map(read_id).transpose()?;
        let store = &self.operations.store;
        let runs = store.all_runs_before(before, limit.min(PAGE)).await?;
        let mut found = FoundRooms::default();
        let mut views = Vec::with_capacity(runs.len());
        for run in &runs {
            views.push(json!({
                "run": RunView::of(run),
                "room": self.room(run.conversation, &mut found).await?,
                "created_at_ms": run.created_at_ms,
            }));
        }
        Ok(views.into())
    }

    async fn run(&self, id: String) -> ReadResult {
        let mut view = self.execute(AdminOperation::Run { id }).await?;
        self.add_own_room(&mut view, &mut FoundRooms::default())
            .await?;
        Ok(view)
    }

    async fn run_text(&self, id: String) -> ReadResult {
        let run: RunId = read_id(&id)?;
        let (snapshot, _) = self.operations.store.run_snapshot(run).await?;
        Ok(json!({ "text": snapshot.text, "step": snapshot.step, "state": snapshot.state }))
    }

    async fn search(&self, name: String, query: String, threads: bool) -> ReadResult {
        let operation = AdminOperation::Search {
            name,
            query,
            wordings: Vec::new(),
            filter: SearchFilterView::default(),
            limit: HITS,
            threads,
        };
        self.execute(operation).await
    }

    async fn costs(&self, by: &str, since_ms: i64) -> ReadResult {
        let all = [
            CostsBy::Day,
            CostsBy::Channel,
            CostsBy::Room,
            CostsBy::Person,
            CostsBy::Agent,
            CostsBy::Model,
        ];
        let by = all.into_iter().find(|it| it.name() == by);
        let wrong = || OperationError::Wrong("costs are not added up by this".to_owned());
        let by = by.ok_or_else(wrong)?;
        self.execute(AdminOperation::Costs { by, since_ms }).await
    }

    fn settings(&self) -> Value {
        let running = self.operations.running.as_ref();
        let config = running.map(|running| (running.in_force)());
        to_json(
            &config
                .map(|config| config.shown_settings())
                .unwrap_or_default(),
        )
    }

    async fn approvals(&self, all: bool, before: Option<&str>) -> ReadResult {
        let filter = ApprovalFilter {
            is_open: !all,
            conversation: None,
            before: before.map(read_id).transpose()?,
        };
        let found = self.operations.approvals((filter, PAGE)).await?;
        let views = found.iter().map(to_json).collect();
        Ok(self.with_rooms(views, "/run").await?.into())
    }

    /// Runs in a state with the posts in the same state.
    async fn stuck(&self, runs: Value, state: &str) -> ReadResult {
        let mut runs = entries(runs);
        runs.truncate(STUCK);
        let runs = self.with_rooms(runs, "/run/id").await?;
        let stuck = self.operations.store.stuck_posts(STUCK).await?;
        let mut posts = Vec::new();
        let mut found = FoundRooms::default();
        for entry in stuck.iter().filter(|entry| entry.state.name() == state) {
            let mut view = to_json(&PostView::of(entry));
            view["room"] = json!(self.room_of_turn(entry.turn, &mut found).await?);
            posts.push(view);
        }
        Ok(json!({ "runs": runs, "posts": posts }))
    }

    async fn with_room(&self, view: Value, run_at: &str) -> ReadResult {
        let views = self.with_rooms(vec![view], run_at).await?;
        Ok(views.into_iter().next().unwrap_or_default())
    }

    /// Adds the room whose id the view says itself.
    async fn add_own_room(
        &self,
        view: &mut Value,
        found: &mut FoundRooms,
    ) -> Result<(), OperationError> {
        let id = view["conversation"].as_str().unwrap_or_default();
        let id: ConversationId = read_id(id)?;
        view["room"] = self.room(id, found).await?;
        Ok(())
    }
}

fn head(view: &ConversationView) -> Value {
    let mut head = to_json(view);
    head["is_direct"] = Value::Bool(view.is_direct());
    head
}

/// An id as it stands in a request.
pub(super) fn read_id<T: std::str::FromStr>(text: &str) -> Result<T, OperationError> {
    let none = |_| OperationError::Missing(format!("{text:?} is no id of anything here"));
    text.parse().map_err(none)
}

/// What is to be erased.
pub(super) fn target_of(target: Target) -> EraseTarget {
    match target {
        Target::Person(name) => EraseTarget::Person(name),
        Target::Room(name) => EraseTarget::Conversation(name),
    }
}
