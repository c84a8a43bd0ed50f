//! The way in of a listener: who gets a connection, and when one is closed that wastes it.
//!
//! A connection that is taken has a seat until it ends; without a free one, the next waits outside.
//! A peer must send each whole request in time, also the next one on the same connection, and must take
//! what it is sent in time. The door knows nothing of what requests say.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until};
use tracing::warn;

use crate::admin::health::{Counted, ListenerHealth};

/// How long a peer may take to send a whole request; the first counts from the connection's begin.
const REQUEST: Duration = Duration::from_secs(5);
/// How long a request that may be whole waits for its answer. Longer than a request may be worked on.
const ANSWER: Duration = Duration::from_secs(15);
/// How long a connection stays open after the last byte that was sent on it. Longer than the pause
/// between two signs of life of an event stream.
const IDLE: Duration = Duration::from_secs(60);
/// How long a peer may refuse to take what it is sent.
const STUCK: Duration = Duration::from_secs(30);
/// The wait after a connection could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Where connections come from.
pub(super) enum Outside {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

/// A listener with a number of seats.
pub(super) struct ListenerDoor {
    outside: Outside,
    seats: Arc<Semaphore>,
    health: Arc<ListenerHealth>,
}

impl ListenerDoor {
    pub(super) fn new(outside: Outside, seats: usize, health: Arc<ListenerHealth>) -> Self {
        Self {
            outside,
            seats: Arc::new(Semaphore::new(seats)),
            health,
        }
    }

    /// A connection, and the address that it comes from, if it has one.
    async fn take_one(&self) -> io::Result<(Box<dyn ByteStream>, Option<SocketAddr>)> {
        Ok(match &self.outside {
            Outside::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // An event is one small write.
                stream.set_nodelay(true)?;
                (Box::new(stream), Some(peer))
            }
            Outside::Unix(listener) => (Box::new(listener.accept().await?.0), None),
        })
    }
}

impl axum::serve::Listener for ListenerDoor {
    type Io = Guarded;
    type Addr = Seat;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let seat = Arc::clone(&self.seats).acquire_owned().await.ok();
        loop {
            match self.take_one().await {
                Ok((wire, peer)) => {
                    let mut guarded = Guarded::new(wire, seat);
                    guarded.counted = Some(self.health.connected());
                    let seat = Seat {
                        peer,
                        patience: Arc::clone(&guarded.patience),
                    };
                    return (guarded, seat);
                }
                Err(cause) => {
                    warn!(error = %cause, "a connection could not be accepted; trying again");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        let peer = match &self.outside {
            Outside::Tcp(listener) => Some(listener.local_addr()?),
            Outside::Unix(_) => None,
        };
        Ok(Seat {
            peer,
            ..Seat::default()
        })
    }
}

/// The seat of a connection, for those who work on its requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Seat {
    /// From where it comes; nothing for a Unix socket.
    pub(super) peer: Option<SocketAddr>,
    patience: Arc<AtomicUsize>,
}

impl Seat {
    /// Keeps the connection open without an answer for as long as the result lives, for a request that may take long.
    pub(super) fn wait(&self) -> WaitingRequest {
        self.patience.fetch_add(1, Ordering::Relaxed);
        WaitingRequest(Arc::clone(&self.patience))
    }
}

impl Connected<IncomingStream<'_, ListenerDoor>> for Seat {
    fn connect_info(stream: IncomingStream<'_, ListenerDoor>) -> Self {
        stream.remote_addr().clone()
    }
}

/// A request that takes long is being worked on.
#[derive(Debug)]
pub(super) struct WaitingRequest(Arc<AtomicUsize>);

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bytes both ways.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<W: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for W {}

/// A connection that ends when its peer wastes it.
pub(super) struct Guarded {
    wire: Box<dyn ByteStream>,
    /// When it is closed, unless something happens on it.
    closes: Pin<Box<Sleep>>,
    /// By when the request that is coming in must be whole; `None` between two requests.
    whole_by: Option<Instant>,
    /// When it is closed because its peer takes nothing; `None` while it does.
    taken_by: Option<Pin<Box<Sleep>>>,
    /// How many requests on it are being worked on that take long.
    patience: Arc<AtomicUsize>,
    _seat: Option<OwnedSemaphorePermit>,
    counted: Option<Counted>,
}

impl Guarded {
    fn new(wire: Box<dyn ByteStream>, seat: Option<OwnedSemaphorePermit>) -> Self {
        let whole_by = Instant::now() + REQUEST;
        Self {
            wire,
            closes: Box::pin(sleep_until(whole_by)),
            whole_by: Some(whole_by),
            taken_by: None,
            patience: Arc::default(),
            _seat: seat,
            counted: None,
        }
    }

    fn note_written(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(_)) => {
                self.taken_by = None;
                self.whole_by = None;
                self.closes.as_mut().reset(Instant::now() + IDLE);
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Pending => {
                let stuck = self
                    .taken_by
                    .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + STUCK)));
                match stuck.as_mut().poll(cx) {
                    Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.wire).poll_read(cx, buffer);
        match &read {
            Poll::Pending => {
                while self.closes.as_mut().poll(cx).is_ready() {
                    if self.patience.load(Ordering::Relaxed) == 0 {
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                    self.closes.as_mut().reset(Instant::now() + ANSWER);
                }
            }
            Poll::Ready(Ok(())) if buffer.filled().len() > before => {
                let now = Instant::now();
                if now >= *self.whole_by.get_or_insert(now + REQUEST) {
                    buffer.set_filled(before);
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                self.closes.as_mut().reset(now + ANSWER);
            }
            _ => {}
        }
        read
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write(cx, bytes);
        self.note_written(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write_vectored(cx, pieces);
        self.note_written(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A byte after the time shows that the time is over; they come once a second here.
    fn is_about(elapsed: Duration, expected: Duration) -> bool {
        (expected..expected + Duration::from_millis(1_100)).contains(&elapsed)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_never_becomes_whole_ends_its_connection() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut guarded = Guarded::new(Box::new(ours), None);
        let begun = Instant::now();
        let trickle = async {
            loop {
                if theirs.write_all(b"x").await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let hear = async {
            let mut bytes = Vec::new();
            guarded.read_to_end(&mut bytes).await.unwrap_err().kind()
        };
        let kind = tokio::select! { kind = hear => kind, () = trickle => unreachable!() };
        assert_eq!(kind, io::ErrorKind::TimedOut);
        assert!(is_about(begun.elapsed(), REQUEST));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_request_on_a_connection_has_as_long_as_the_first() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut guarded = Guarded::new(Box::new(ours), None);
        theirs.write_all(b"whole").await.unwrap();
        guarded.read_exact(&mut [0; 5]).await.unwrap();
        guarded.write_all(b"answer").await.unwrap();
        tokio::time::sleep(IDLE / 2).await;
        let begun = Instant::now();
        let trickle = async {
            while theirs.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let hear = async {
            let mut bytes = Vec::new();
            guarded.read_to_end(&mut bytes).await.unwrap_err().kind()
        };
        let kind = tokio::select! { kind = hear => kind, () = trickle => unreachable!() };
        assert_eq!((kind, begun.elapsed()), (io::ErrorKind::TimedOut, REQUEST));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_worked_on_keeps_its_connection() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut guarded = Guarded::new(Box::new(ours), None);
        theirs.write_all(b"whole").await.unwrap();
        guarded.read_exact(&mut [0; 5]).await.unwrap();
        let waiting = tokio::time::timeout(ANSWER - REQUEST, guarded.read_u8()).await;
        assert!(waiting.is_err(), "the connection stays");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_request_takes_long_is_kept_until_it_is_answered() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut guarded = Guarded::new(Box::new(ours), None);
        let seat = Seat {
            peer: None,
            patience: Arc::clone(&guarded.patience),
        };
        theirs.write_all(b"whole").await.unwrap();
        guarded.read_exact(&mut [0; 5]).await.unwrap();
        let waiting = seat.wait();
        let silent = tokio::time::timeout(ANSWER * 20, guarded.read_u8()).await;
        assert!(silent.is_err(), "the connection stays");
        drop(waiting);
        let kind = guarded.read_u8().await.unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_let_go_and_one_that_is_told_something_stays() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut guarded = Guarded::new(Box::new(ours), None);
        for _ in 0..10 {
            guarded.write_all(b": still here\n\n").await.unwrap();
            let mut told = [0; 14];
            theirs.read_exact(&mut told).await.unwrap();
            let silent = tokio::time::timeout(IDLE / 2, guarded.read_u8()).await;
            assert!(silent.is_err(), "the connection stays");
        }
        let begun = Instant::now();
        let stuck = guarded.write_all(&[b'x'; 1_000]).await.unwrap_err();
        assert_eq!(
            (stuck.kind(), begun.elapsed()),
            (io::ErrorKind::TimedOut, STUCK)
        );
    }

    #[tokio::test]
    async fn who_finds_no_seat_waits_until_one_is_free() {
        use axum::serve::Listener as _;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut door = ListenerDoor::new(Outside::Tcp(listener), 1, Arc::default());
        let _first = tokio::net::TcpStream::connect(address).await.unwrap();
        let _second = tokio::net::TcpStream::connect(address).await.unwrap();
        let (seated, _) = door.accept().await;
        let outside = tokio::time::timeout(Duration::from_millis(20), door.accept()).await;
        assert!(outside.is_err());
        drop(seated);
        let _seated = door.accept().await;
    }
}
