//! Listening sockets whose connections can be cut from inside a request handler.
//!
//! Owns the accept loop and the cut: a real TCP reset in the middle of an exchange, so that the client can't know
//! whether its request took effect. Knows nothing of any protocol.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A running accept loop.
#[derive(Debug)]
pub(crate) struct Serving {
    addr: SocketAddr,
    all: CancellationToken,
    task: JoinHandle<()>,
}

impl Serving {
    /// Binds `addr` and serves `router`; handlers find their [`RequestConnection`] as connect info.
    pub(crate) async fn start(addr: SocketAddr, router: Router) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let all = CancellationToken::new();
        let listener = CuttableListener {
            listener,
            all: all.clone(),
        };
        let service = router.into_make_service_with_connect_info::<RequestConnection>();
        let stopped = all.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                _ = async { axum::serve(listener, service).await } => {}
                () = stopped.cancelled() => {}
            }
        });
        Ok(Self { addr, all, task })
    }

    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends the accept loop and cuts every open connection.
    pub(crate) async fn stop(mut self) {
        self.all.cancel();
        // A task that only waits for sockets can't have panicked.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.all.cancel();
    }
}

/// The connection that a request came on.
#[derive(Clone, Debug)]
pub(crate) struct RequestConnection {
    cut: CancellationToken,
}

impl RequestConnection {
    /// Resets the connection: nothing more is read or written on it.
    pub(crate) fn cut(&self) {
        self.cut.cancel();
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for RequestConnection {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.remote_addr().clone()
    }
}

pub(crate) struct CuttableListener {
    listener: TcpListener,
    all: CancellationToken,
}

impl Listener for CuttableListener {
    type Io = CuttableStream;
    type Addr = RequestConnection;

    async fn accept(&mut self) -> (CuttableStream, RequestConnection) {
        let (stream, _) = Listener::accept(&mut self.listener).await;
        // Without this option every small answer waits for the peer's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let cut = self.all.child_token();
        let io = CuttableStream {
            stream,
            cut: cut.clone(),
            cancelled: Box::pin(cut.clone().cancelled_owned()),
        };
        (io, RequestConnection { cut })
    }

    fn local_addr(&self) -> io::Result<RequestConnection> {
        Ok(RequestConnection {
            cut: self.all.clone(),
        })
    }
}

pub(crate) struct CuttableStream {
    stream: TcpStream,
    cut: CancellationToken,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl CuttableStream {
    fn check(&self) -> io::Result<()> {
        if !self.cut.is_cancelled() {
            return Ok(());
        }
        // Zero linger makes the close a reset instead of an orderly end.
        let _ = self.stream.set_zero_linger();
        Err(io::Error::new(
            io::ErrorKind::ConnectionReset,
            "the connection was cut on purpose",
        ))
    }
}

impl AsyncRead for CuttableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Registers the waker, so that a cut wakes a connection that waits for its peer.
        let _ = self.cancelled.as_mut().poll(cx);
        self.check()?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_server_that_is_dropped_frees_its_port() {
        let serving = Serving::start(([127, 0, 0, 1], 0).into(), Router::new());
        let serving = serving.await.unwrap();
        let addr = serving.addr();
        TcpStream::connect(addr).await.unwrap();
        drop(serving);
        let refused = async {
            while TcpStream::connect(addr).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let bound = Duration::from_secs(10);
        tokio::time::timeout(bound, refused).await.unwrap();
    }
}
