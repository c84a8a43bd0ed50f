//! An answer that is seen while it is written, over both workers and a real store.

use tokio::sync::mpsc;

use vocative_contract::live::{LiveForm, LivePost};
use vocative_contract::outbound::Operation;

use super::*;
use vocative_core::run::StopCause;
use vocative_core::sending::policy::Live;
use vocative_core::sending::policy::LivePolicy;

/// What people see, and how they came to see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct View {
    /// Messages in order, by id.
    messages: Vec<(String, String)>,
    edits: usize,
    /// Live edits that were sent, arrived or not.
    sent: usize,
    previews: Vec<String>,
    signs: usize,
}

impl View {
    fn texts(&self) -> Vec<&str> {
        self.messages
            .iter()
            .map(|(_, text)| text.as_str())
            .collect()
    }
}

/// A platform whose messages can be edited.
#[derive(Default)]
struct Board {
    view: watch::Sender<View>,
    /// What is answered to the next live edits and previews.
    live_answers: Mutex<VecDeque<ChannelError>>,
    /// While there is one, live edits are taken and not answered until it is dropped.
    stall: tokio::sync::Mutex<()>,
}

impl Board {
    fn apply(&self, operation: &Operation, marker: &str, text: &str) -> Result<String, ()> {
        let mut result = Ok(format!("p-{marker}"));
        self.view.send_modify(|view| match operation {
            Operation::Edit { message_id } => {
                let known = view.messages.iter_mut().find(|(id, _)| id == message_id);
                result = known.map_or(Err(()), |message| {
                    text.clone_into(&mut message.1);
                    Ok(message_id.clone())
                });
                view.edits += 1;
            }
            Operation::Delete { message_id } => {
                view.messages.retain(|(id, _)| id != message_id);
                result = Ok(message_id.clone());
            }
            _ => view.messages.push((format!("p-{marker}"), text.to_owned())),
        });
        result
    }

    /// Waits until people see that.
    async fn until(&self, is_seen: impl FnMut(&View) -> bool) -> View {
        let mut views = self.view.subscribe();
        let seen = tokio::time::timeout(WAIT, views.wait_for(is_seen)).await;
        let view = self.view.borrow().clone();
        seen.unwrap_or_else(|_| panic!("not seen: {view:?}"))
            .unwrap()
            .clone()
    }
}

fn refused(reason: &str, fallback: Fallback) -> ChannelError {
    ChannelError::Rejected {
        operation: "edit",
        reason: reason.to_owned(),
        fallback,
    }
}

impl Renderer for Board {
    fn render(&self, text: &str, _people: &People) -> Vec<Part> {
        text.lines().map(Part::plain).collect()
    }

    fn render_fallback(&self, part: &Part, _fallback: Fallback) -> Vec<Part> {
        vec![part.clone()]
    }
}

impl Signs for Board {
    fn show_working<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async { self.view.send_modify(|view| view.signs += 1) })
    }

    fn show_live<'a>(&'a self, live: &'a LivePost) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            if let Some(error) = self.live_answers.lock().unwrap().pop_front() {
                return Err(error);
            }
            let text = &live.part.text;
            match &live.form {
                LiveForm::Preview { id } => {
                    assert_ne!(*id, 0);
                    self.view
                        .send_modify(|view| view.previews.push(text.clone()));
                }
                LiveForm::Post { message_id } => {
                    self.view.send_modify(|view| view.sent += 1);
                    // It arrives when the platform has time.
                    let stalled = self.stall.lock().await;
                    let message_id = message_id.clone();
                    let operation = Operation::Edit { message_id };
                    self.apply(&operation, "", text).unwrap();
                    drop(stalled);
                }
                LiveForm::Stream { .. } => return Err(refused("no streams", Fallback::None)),
            }
            Ok(())
        })
    }
}

impl LookUps for Board {
    fn person_name<'a>(
        &'a self,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        Box::pin(async { Ok(None) })
    }

    fn chat_facts<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>> {
        Box::pin(async { Ok(Place::default()) })
    }
}

impl Poster for Board {
    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>> {
        Box::pin(async move {
            let done = self.apply(&post.operation, &post.marker, &post.part.text);
            let message_id = done.map_err(|()| refused("gone", Fallback::NewPost))?;
            Ok(Delivered {
                chat: post.target.chat.clone(),
                message_id,
                sent_at_ms: 0,
                shown: None,
            })
        })
    }
}

/// What the model does next.
enum Writes {
    Words(&'static str),
    Fails,
    Ends,
}

/// A model that writes what it is told, when it is told.
struct Writer(tokio::sync::Mutex<mpsc::Receiver<Writes>>);

impl Writer {
    async fn write(&self, request: &Request<'_>) -> Result<Answer, ModelError> {
        let listener = request.listener.expect("somebody listens");
        let mut text = String::new();
        loop {
            match self.0.lock().await.recv().await {
                Some(Writes::Words(words)) => {
                    text.push_str(words);
                    listener.text(words);
                }
                Some(Writes::Fails) => {
                    listener.restart();
                    return Err(ModelError::Unavailable {
                        cause: "a test".to_owned(),
                    });
                }
                Some(Writes::Ends) | None => return Ok(says(&text)),
            }
        }
    }
}

impl Model for Writer {
    fn name(&self) -> &'static str {
        "writer"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.write(request))
    }
}

/// Both workers at work on one question in a chat with one person.
struct Play {
    stage: Stage,
    board: Arc<Board>,
    model: mpsc::Sender<Writes>,
    workers: Vec<tokio::task::JoinHandle<()>>,
}

impl Play {
    async fn new(live: Live, delay_ms: u64) -> Self {
        let stage = Stage::new().await;
        let board = Arc::new(Board::default());
        let mut room = stage.rooms.get(stage.account).unwrap();
        let outbound = Outbound::of(&board);
        (room.renderer, room.signs) = (outbound.renderer, outbound.signs);
        room.look_ups = outbound.look_ups;
        stage.posters.set(stage.account, outbound.poster);
        room.capabilities.live_edit_ms = 1;
        room.capabilities.live_preview_ms = if live == Live::Auto { 1 } else { 0 };
        room.capabilities.can_read_back = live != Live::Auto;
        room.delivery.live = LivePolicy {
            live,
            delay_ms,
            interval_ms: 0,
        };
        stage.rooms.set(stage.account, room);
        let (model, told) = mpsc::channel(9);
        let writer = Arc::new(Writer(tokio::sync::Mutex::new(told)));
        let workers = vec![
            stage.agents_with(writer),
            tokio::spawn(
                stage
                    .delivery(&stage.clock)
                    .run(stage.stop.clone(), stage.drain_until.clone()),
            ),
        ];
        stage.ask("when?").await;
        Self {
            stage,
            board,
            model,
            workers,
        }
    }

    async fn writes(&self, words: &'static str) {
        self.model.send(Writes::Words(words)).await.unwrap();
    }

    /// Waits until the run is given back.
    async fn until_queued(&self) {
        let queued = async {
            while self.stage.store.status(0).await.unwrap().runs_queued == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(WAIT, queued).await.expect("queued");
    }

    /// Lets the model end, and everything be sent. What people see then.
    async fn ends(self) -> View {
        // One that was cancelled hears nothing.
        let _ = self.model.send(Writes::Ends).await;
        let done = async {
            loop {
                let status = self.stage.store.status(0).await.unwrap();
                let runs = status.runs_queued + status.runs_leased;
                if runs + status.posts_pending + status.posts_unknown == 0 {
                    return;
                }
                // A last edit may have to wait for one that is on its way.
                self.stage.advance(100);
                self.stage.wake.posts.notify_one();
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(WAIT, done).await.expect("all is sent");
        self.stage.stop.cancel();
        for worker in self.workers {
            worker.await.unwrap();
        }
        self.board.view.borrow().clone()
    }
}

#[tokio::test]
async fn an_answer_is_seen_to_grow_and_ends_as_one_message() {
    let play = Play::new(Live::On, 0).await;
    play.writes("Tomorrow ").await;
    play.board
        .until(|view| view.texts() == ["Tomorrow …"])
        .await;
    play.writes("at ").await;
    play.board
        .until(|view| view.texts() == ["Tomorrow at …"])
        .await;
    let signs = play.board.view.borrow().signs;
    play.writes("nine.\nBe there.").await;
    let board = Arc::clone(&play.board);
    let view = play.ends().await;
    assert_eq!(view.texts(), ["Tomorrow at nine.", "Be there."]);
    // Who sees it being written needs no sign; one may have been shown before.
    assert!(signs <= 1 && board.view.borrow().signs == signs);
}

#[tokio::test]
async fn an_answer_that_is_there_at_once_is_one_post() {
    let play = Play::new(Live::On, 60_000).await;
    play.writes("Tomorrow at nine.").await;
    let view = play.ends().await;
    assert_eq!(view.texts(), ["Tomorrow at nine."]);
    assert_eq!(view.edits, 0);
}

#[tokio::test]
async fn previews_show_an_answer_that_comes_as_one_post() {
    let play = Play::new(Live::Auto, 0).await;
    play.writes("Tomorrow ").await;
    play.board
        .until(|view| view.previews == ["Tomorrow …"])
        .await;
    play.writes("at ").await;
    play.board
        .until(|view| view.previews == ["Tomorrow …", "Tomorrow at …"])
        .await;
    play.writes("nine.").await;
    let view = play.ends().await;
    assert_eq!(view.texts(), ["Tomorrow at nine."]);
    assert_eq!(view.edits, 0);
}

#[tokio::test]
async fn the_answer_comes_also_when_edits_and_previews_are_refused() {
    for live in [Live::On, Live::Auto] {
        let play = Play::new(live, 0).await;
        let refusals = [
            ChannelError::RetryAfter {
                operation: "edit",
                wait_ms: 1,
            },
            ChannelError::OutcomeUnknown {
                operation: "edit",
                cause: "reset".into(),
            },
            refused("not today", Fallback::None),
        ];
        play.board.live_answers.lock().unwrap().extend(refusals);
        for words in ["Tomorrow ", "at ", "nine ", "o'clock ", "sharp"] {
            play.writes(words).await;
            tokio::task::yield_now().await;
        }
        let view = play.ends().await;
        assert_eq!(view.texts(), ["Tomorrow at nine o'clock sharp"], "{live:?}");
    }
}

#[tokio::test]
async fn an_edit_that_is_on_its_way_never_comes_behind_the_answer() {
    let play = Play::new(Live::On, 0).await;
    play.writes("Tomorrow ").await;
    play.board
        .until(|view| view.texts() == ["Tomorrow …"])
        .await;
    let board = Arc::clone(&play.board);
    let stalled = board.stall.lock().await;
    play.writes("at ").await;
    board.until(|view| view.sent == 1).await;
    play.writes("nine.").await;
    let ending = tokio::spawn(play.ends());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(board.view.borrow().texts(), ["Tomorrow …"]);
    drop(stalled);
    let view = ending.await.unwrap();
    assert_eq!(view.texts(), ["Tomorrow at nine."]);
}

#[tokio::test]
async fn a_cancelled_answer_is_taken_back() {
    let play = Play::new(Live::On, 0).await;
    play.writes("Tomorrow ").await;
    play.board
        .until(|view| view.texts() == ["Tomorrow …"])
        .await;
    let store = &play.stage.store;
    let run = store.queued_runs(9, 0).await.unwrap().remove(0).run.id;
    store
        .cancel_run(run, StopCause::Operator.into(), 0)
        .await
        .unwrap();
    play.stage.wake.cancels.ask(run);
    let view = play.ends().await;
    assert_eq!(view.texts(), [""; 0]);
}

#[tokio::test]
async fn another_attempt_writes_on_in_the_same_message() {
    let play = Play::new(Live::On, 0).await;
    play.writes("Tomo ").await;
    play.board.until(|view| view.texts() == ["Tomo …"]).await;
    play.model.send(Writes::Fails).await.unwrap();
    play.until_queued().await;
    play.stage.advance(2_000);
    play.writes("Tomorrow ").await;
    play.board
        .until(|view| view.texts() == ["Tomorrow …"])
        .await;
    play.writes("at nine.").await;
    let view = play.ends().await;
    assert_eq!(view.texts(), ["Tomorrow at nine."]);
}
