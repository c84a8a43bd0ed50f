//! A call that is heard while it is answered.
//!
//! The client library makes the request and cuts the stream into events; what they mean is read here
//! (`openai`, `anthropic`), because the library loses calls without an index, tells nothing of a
//! stream that just ends, and keeps what has no bound. So its own events count only as signs that
//! there is something to read.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{Stream, StreamExt as _, select_all};
use genai::chat::{ChatFrameSink, ChatOptions, ChatRequest, ChatStream, FrameCtx, RawFrameRef};
use genai::webc;

use super::anthropic::Content;
use super::draft::{Draft, Outcome, garbled};
use super::openai::Message;
use super::{Remote, Said, malformed, model_error, transport_cause, web_error};
use crate::llm::failure::refuses_streams;
use crate::llm::{Listener, ModelError, Provider};

/// Between two events of a stream so long nothing may come; before the first one, the model's whole
/// `timeout_s`.
const GAP_MAX: Duration = Duration::from_secs(60);

/// A stream's text may have so many bytes for each token that was allowed. A token has four in the
/// mean, and a model never more than its limit of tokens; what passes this is no answer of one.
const TEXT_BYTES_PER_TOKEN: usize = 64;
const TEXT_MIN_BYTES: usize = 64 << 10;
const TEXT_MAX_BYTES: usize = 4 << 20;

/// So often something may arrive without completing an event. One that is not complete by then is no
/// event: the library would keep all of it, and go through all of it again each time. 180 KB in the
/// smallest packets of a network, a few megabytes from a server nearby.
const READS_PER_EVENT_MAX: u32 = 128;

/// At most so many bytes of text for an answer of so many tokens.
fn text_max_bytes(max_output_tokens: u32) -> usize {
    (max_output_tokens as usize)
        .saturating_mul(TEXT_BYTES_PER_TOKEN)
        .clamp(TEXT_MIN_BYTES, TEXT_MAX_BYTES)
}

impl Remote {
    /// Asks, and tells what it hears. `None`: this must be asked without a stream.
    pub(super) async fn listen(
        &self,
        chat: ChatRequest,
        options: ChatOptions,
        listener: &dyn Listener,
    ) -> Result<Option<Said>, ModelError> {
        let Some(reader) = Reader::new(&self.provider, text_max_bytes(self.max_output_tokens))
        else {
            return Ok(None);
        };
        let reader = Arc::new(Shared(Mutex::new(reader)));
        // Without the first of them, OpenAI is not asked for usage.
        let options = options
            .with_capture_usage(true)
            .with_raw_frame_sink(Sink(Arc::clone(&reader)));
        let call = self
            .client
            .exec_chat_stream(self.target.clone(), chat, Some(&options));
        let response = call.await.map_err(|error| model_error(&error))?;
        let failure = self.read(response.stream, &reader, listener).await;
        let mut reader = std::mem::take(&mut *reader.lock());
        reader.draft.close();
        reader.draft.tell(|piece| listener.text(piece));
        match (reader.conclude(), failure) {
            (Heard::Said(said), _) => {
                self.trust_streams();
                Ok(Some(said))
            }
            (Heard::Failed(cause), _) => Err(cause),
            (Heard::LostCalls, _) => {
                tracing::warn!(
                    model = self.name,
                    "the stream lost its tool calls; asking again without one"
                );
                listener.restart();
                Ok(None)
            }
            (Heard::Broken | Heard::NoStream, Some(Failure::RefusesStreams)) => {
                self.note_no_streams();
                Ok(None)
            }
            (Heard::Broken | Heard::NoStream, Some(Failure::Error(cause))) => Err(cause),
            (Heard::NoStream, None) => {
                self.doubt_streams();
                Ok(None)
            }
            (Heard::Broken, None) => Err(ModelError::Unavailable {
                cause: "the stream ended in the middle of the answer".to_owned(),
            }),
        }
    }

    /// Reads a stream to its end. Gives why it went wrong, as far as the stream itself did not say.
    async fn read(
        &self,
        stream: ChatStream,
        reader: &Arc<Shared>,
        listener: &dyn Listener,
    ) -> Option<Failure> {
        let counted = Counted {
            stream,
            reader: Arc::clone(reader),
            events: 0,
            reads: 0,
        };
        // Polls it only when something arrived for it, not whenever the run has something to do.
        let mut events = select_all([counted]);
        let patience = Duration::from_millis(self.timeout_ms);
        let mut heard = 0;
        loop {
            let gap = if heard == 0 {
                patience
            } else {
                patience.min(GAP_MAX)
            };
            // Some answers make the library panic; it keeps nothing between two calls.
            let next = AssertUnwindSafe(events.next()).catch_unwind();
            let next = tokio::time::timeout(gap, next).await;
            let events = {
                let mut reader = reader.lock();
                reader.draft.tell(|piece| listener.text(piece));
                if reader.draft.is_over() {
                    return None;
                }
                reader.events
            };
            let is_silent = std::mem::replace(&mut heard, events) == events;
            match next {
                Ok(Ok(Some(Read::Event))) => {}
                Ok(Ok(Some(Read::Failed(failure)))) => return Some(failure),
                Ok(Ok(None)) => return None,
                Ok(Err(_)) => {
                    return Some(Failure::Error(malformed("the client library fails on it")));
                }
                Err(_) if is_silent => return Some(Failure::Error(silent(gap, heard > 0))),
                Err(_) => {}
            }
        }
    }
}

fn silent(gap: Duration, has_begun: bool) -> ModelError {
    let gap_ms = gap.as_millis();
    ModelError::Unavailable {
        cause: if has_begun {
            format!("its stream stood still for {gap_ms} ms")
        } else {
            format!("no answer within {gap_ms} ms")
        },
    }
}

/// Why a stream could not be read on.
#[derive(Debug)]
enum Failure {
    /// The provider does not stream.
    RefusesStreams,
    /// Anything else.
    Error(ModelError),
}

/// What a stream was worth.
enum Heard {
    Said(Said),
    Failed(ModelError),
    /// It ended before the answer did.
    Broken,
    /// Tools were asked for, and not one was named.
    LostCalls,
    /// Something came that is no stream.
    NoStream,
}

/// Reads events as they come.
#[derive(Debug)]
struct Reader {
    protocol: Protocol,
    draft: Draft,
    /// Everything that came, comments too.
    events: u64,
    /// Whether one of them was understood.
    is_stream: bool,
}

#[derive(Debug)]
enum Protocol {
    OpenAi(Message),
    Anthropic(Content),
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            protocol: Protocol::OpenAi(Message::default()),
            draft: Draft::new(0, false),
            events: 0,
            is_stream: false,
        }
    }
}

impl Reader {
    /// `None` for protocols whose streams are not read.
    fn new(provider: &Provider, text_max_bytes: usize) -> Option<Self> {
        let (protocol, thinks_aloud) = match provider {
            Provider::OpenAi => (Protocol::OpenAi(Message::default()), true),
            Provider::Anthropic => (Protocol::Anthropic(Content::default()), false),
            Provider::Offline | Provider::Other(_) => return None,
        };
        Some(Self {
            protocol,
            draft: Draft::new(text_max_bytes, thinks_aloud),
            ..Self::default()
        })
    }

    fn read(&mut self, name: Option<&str>, data: &str) {
        self.events += 1;
        if data.is_empty() || self.draft.is_over() {
            return;
        }
        let draft = &mut self.draft;
        self.is_stream |= match &mut self.protocol {
            Protocol::OpenAi(message) => message.read(data, draft),
            Protocol::Anthropic(content) => content.read(name, data, draft),
        };
    }

    /// What it was worth; its draft is closed.
    fn conclude(self) -> Heard {
        match self.draft.conclude() {
            Outcome::Failed(cause) => Heard::Failed(cause),
            Outcome::Broken if self.events > 0 && !self.is_stream => Heard::NoStream,
            Outcome::Broken => Heard::Broken,
            Outcome::Whole(written) if written.lost_its_calls() => Heard::LostCalls,
            Outcome::Whole(written) => Heard::Said(match self.protocol {
                Protocol::OpenAi(message) => message.conclude(*written),
                Protocol::Anthropic(content) => content.conclude(*written),
            }),
        }
    }
}

/// A reader that the library's callback and the call share; never across an await.
struct Shared(Mutex<Reader>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Reader> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the library's events to a reader.
struct Sink(Arc<Shared>);

impl ChatFrameSink for Sink {
    fn on_frame(&self, _context: &FrameCtx, frame: RawFrameRef<'_>) {
        self.0.lock().read(frame.event, frame.data);
    }
}

/// A stream that is given up when an event does not end.
struct Counted {
    stream: ChatStream,
    reader: Arc<Shared>,
    /// How many events there were when the last one was complete.
    events: u64,
    /// How often something arrived since.
    reads: u32,
}

/// One sign of the library's.
enum Read {
    /// There may be something new.
    Event,
    Failed(Failure),
}

impl Stream for Counted {
    type Item = Read;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Read>> {
        let this = self.get_mut();
        let polled = this.stream.poll_next_unpin(context);
        let events = this.reader.lock().events;
        if std::mem::replace(&mut this.events, events) != events {
            this.reads = 0;
        }
        match polled {
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(failure(&error))),
            Poll::Ready(next) => Poll::Ready(next.map(|_| Read::Event)),
            Poll::Pending => {
                this.reads += 1;
                if this.reads <= READS_PER_EVENT_MAX {
                    return Poll::Pending;
                }
                let endless = malformed("an event of its stream does not end");
                Poll::Ready(Some(Read::Failed(Failure::Error(endless))))
            }
        }
    }
}

/// What an error of the library's means. One about the meaning of an event is no concern: the reader
/// has read it for itself.
fn failure(error: &genai::Error) -> Read {
    use genai::Error;
    let cause = match error {
        Error::WebStream { error, .. } => {
            if let Some(http) = error.downcast_ref::<Error>() {
                return Read::Failed(http_failure(http));
            }
            match error.downcast_ref::<reqwest::Error>() {
                Some(error) => ModelError::Unavailable {
                    cause: transport_cause(error),
                },
                None => garbled("its stream is not text"),
            }
        }
        Error::ChatResponse { .. } | Error::StreamParse { .. } | Error::JsonValueExt(_) => {
            return Read::Event;
        }
        error => return Read::Failed(http_failure(error)),
    };
    Read::Failed(Failure::Error(cause))
}

/// A status that is no success, as a stream tells it.
fn http_failure(error: &genai::Error) -> Failure {
    let genai::Error::HttpError {
        status,
        body,
        headers,
        ..
    } = error
    else {
        return Failure::Error(model_error(error));
    };
    if refuses_streams(status.as_u16(), body) {
        return Failure::RefusesStreams;
    }
    Failure::Error(web_error(&webc::Error::ResponseFailedStatus {
        status: *status,
        body: body.clone(),
        headers: headers.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_room_for_every_answer_of_a_model_and_no_more() {
        let bounds = [1, 1_024, 4_096, 32_768, u32::MAX].map(text_max_bytes);
        assert_eq!(bounds, [65_536, 65_536, 262_144, 2_097_152, 4_194_304]);
    }
}
