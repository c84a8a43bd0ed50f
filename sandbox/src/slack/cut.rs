//! A listener whose connections can be cut from inside a handler, with a reset instead of a goodbye.
//!
//! Knows nothing of HTTP: a cut is a reset of the TCP connection, whatever was in flight.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Accepts connections that end when `stop` is cancelled.
pub(super) struct CutListener {
    listener: TcpListener,
    stop: CancellationToken,
}

impl CutListener {
    pub(super) fn new(listener: TcpListener, stop: CancellationToken) -> Self {
        Self { listener, stop }
    }
}

impl Listener for CutListener {
    type Io = CutStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (CutStream, SocketAddr) {
        let (stream, addr) = Listener::accept(&mut self.listener).await;
        let cut = self.stop.child_token();
        let cancelled = Box::pin(cut.clone().cancelled_owned());
        // Frames are small and tests wait for them.
        let _ = stream.set_nodelay(true);
        let io = CutStream {
            stream: Some(stream),
            is_mute: Arc::default(),
            cut,
            cancelled,
        };
        (io, addr)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The scissors of one connection.
#[derive(Clone)]
pub(super) struct ConnectionCut {
    cut: CancellationToken,
    is_mute: Arc<AtomicBool>,
}

impl ConnectionCut {
    /// Resets the connection; nothing more is read or written.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }

    /// Sends nothing more; what is written goes nowhere.
    pub(super) fn mute(&self) {
        self.is_mute.store(true, Ordering::Relaxed);
    }
}

impl Connected<IncomingStream<'_, CutListener>> for ConnectionCut {
    fn connect_info(incoming: IncomingStream<'_, CutListener>) -> Self {
        let stream = incoming.io();
        Self {
            cut: stream.cut.clone(),
            is_mute: stream.is_mute.clone(),
        }
    }
}

/// A TCP stream that can be cut.
pub(super) struct CutStream {
    stream: Option<TcpStream>,
    is_mute: Arc<AtomicBool>,
    cut: CancellationToken,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl CutStream {
    fn whole(&mut self, cx: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        let is_cut = self.cut.is_cancelled() || self.cancelled.as_mut().poll(cx).is_ready();
        if is_cut && let Some(stream) = self.stream.take() {
            // With zero linger the drop sends RST, which clients see as a reset and not as an end.
            let _ = stream.set_zero_linger();
        }
        match &mut self.stream {
            Some(stream) => Ok(Pin::new(stream)),
            None => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
}

impl Drop for CutStream {
    fn drop(&mut self) {
        if self.cut.is_cancelled()
            && let Some(stream) = &self.stream
        {
            let _ = stream.set_zero_linger();
        }
    }
}

impl AsyncRead for CutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.whole(cx) {
            Ok(stream) => stream.poll_read(cx, buf),
            Err(reset) => Poll::Ready(Err(reset)),
        }
    }
}

impl AsyncWrite for CutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let is_mute = self.is_mute.load(Ordering::Relaxed);
        match self.whole(cx) {
            Ok(_) if is_mute => Poll::Ready(Ok(bytes.len())),
            Ok(stream) => stream.poll_write(cx, bytes),
            Err(reset) => Poll::Ready(Err(reset)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.whole(cx) {
            Ok(stream) => stream.poll_flush(cx),
            Err(reset) => Poll::Ready(Err(reset)),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.whole(cx) {
            Ok(stream) => stream.poll_shutdown(cx),
            Err(reset) => Poll::Ready(Err(reset)),
        }
    }
}
