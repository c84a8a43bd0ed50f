//! A very small HTTP/1.1 and WebSocket client, for the self-check and for what the platforms post.
//!
//! Written on a bare TCP stream, so that what is checked is bytes on a wire and not the habits of a
//! client library. One connection per request; no TLS, no redirects, no reuse.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// No loopback answer takes longer than this, in seconds.
const ANSWER_WAIT_S_MAX: u64 = 10;

/// An HTTP answer: status, headers with lower-case names, body.
pub(crate) type RawHttpAnswer = (u16, Vec<(String, String)>, Vec<u8>);

/// Sends one request on a connection of its own and reads the whole answer.
///
/// # Errors
/// When the connection fails, is closed before a complete head, or stays silent for ten seconds.
pub(crate) async fn http(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<RawHttpAnswer> {
    bounded(async {
        let mut stream = TcpStream::connect(addr).await?;
        let mut head = request_head(addr, method, path, headers);
        head.push_str(&format!(
            "Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        ));
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        let head_len = head_len(&bytes).ok_or_else(|| broken("no complete head came back"))?;
        let (status, headers) = parse_head(&bytes[..head_len])?;
        let body = whole_body(&headers, &bytes[head_len..])?;
        Ok((status, headers, body))
    })
    .await
}

/// A WebSocket after the upgrade, read frame by frame.
pub(crate) struct RawSocket {
    stream: TcpStream,
    status: u16,
    unread: Vec<u8>,
}

impl RawSocket {
    /// Asks for an upgrade. Any status is an answer; only 101 leads to frames.
    ///
    /// # Errors
    /// When the connection fails or no complete head comes back.
    pub(crate) async fn upgrade(addr: SocketAddr, path: &str) -> Result<Self> {
        let headers = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        bounded(async {
            let mut stream = TcpStream::connect(addr).await?;
            let mut head = request_head(addr, "GET", path, &headers);
            head.push_str("\r\n");
            stream.write_all(head.as_bytes()).await?;
            let mut unread = Vec::new();
            let head_len = loop {
                if let Some(len) = head_len(&unread) {
                    break len;
                }
                read_more(&mut stream, &mut unread).await?;
            };
            let (status, _) = parse_head(&unread[..head_len])?;
            unread.drain(..head_len);
            Ok(Self {
                stream,
                status,
                unread,
            })
        })
        .await
    }

    /// The HTTP status that answered the upgrade.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Reads the next text frame, leaving out all others.
    ///
    /// # Errors
    /// When the connection ends first or stays silent for ten seconds.
    pub(crate) async fn text(&mut self) -> Result<String> {
        bounded(async {
            loop {
                let (opcode, payload) = self.frame().await?;
                match opcode {
                    1 => {
                        return String::from_utf8(payload).map_err(|_| broken("text is not UTF-8"));
                    }
                    8 => return Err(broken("the socket was closed")),
                    _ => {}
                }
            }
        })
        .await
    }

    async fn frame(&mut self) -> Result<(u8, Vec<u8>)> {
        self.fill(2).await?;
        let (head_len, payload_len) = match self.unread[1] & 0x7f {
            126 => {
                self.fill(4).await?;
                let len = u16::from_be_bytes([self.unread[2], self.unread[3]]);
                (4, usize::from(len))
            }
            127 => return Err(broken("a frame over 64 KiB")),
            short => (2, usize::from(short)),
        };
        self.fill(head_len + payload_len).await?;
        let opcode = self.unread[0] & 0x0f;
        let frame: Vec<u8> = self.unread.drain(..head_len + payload_len).collect();
        Ok((opcode, frame[head_len..].to_vec()))
    }

    async fn fill(&mut self, len: usize) -> Result<()> {
        while self.unread.len() < len {
            read_more(&mut self.stream, &mut self.unread).await?;
        }
        Ok(())
    }
}

async fn bounded<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(Duration::from_secs(ANSWER_WAIT_S_MAX), work)
        .await
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::TimedOut, "no answer in ten seconds")))
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<()> {
    match stream.read_buf(bytes).await? {
        0 => Err(broken("the connection ended too early")),
        _ => Ok(()),
    }
}

fn request_head(addr: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {addr}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

fn head_len(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|at| at + 4)
}

fn parse_head(head: &[u8]) -> Result<(u16, Vec<(String, String)>)> {
    let head = std::str::from_utf8(head).map_err(|_| broken("the head is not UTF-8"))?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| broken("no status line"))?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok((status, headers))
}

fn whole_body(headers: &[(String, String)], bytes: &[u8]) -> Result<Vec<u8>> {
    let header = |wanted: &str| {
        headers
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value.as_str())
    };
    if header("transfer-encoding") == Some("chunked") {
        return dechunk(bytes);
    }
    match header("content-length").and_then(|len| len.parse::<usize>().ok()) {
        Some(len) if bytes.len() < len => Err(broken("the body was cut short")),
        Some(len) => Ok(bytes[..len].to_vec()),
        None => Ok(bytes.to_vec()),
    }
}

fn dechunk(mut bytes: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_len = bytes
            .windows(2)
            .position(|window| window == b"\r\n")
            .ok_or_else(|| broken("a chunk without a size line"))?;
        let chunk_len = std::str::from_utf8(&bytes[..line_len])
            .ok()
            .and_then(|size| usize::from_str_radix(size.trim(), 16).ok())
            .ok_or_else(|| broken("a chunk with a broken size"))?;
        bytes = &bytes[line_len + 2..];
        if chunk_len == 0 {
            return Ok(body);
        }
        if bytes.len() < chunk_len + 2 {
            return Err(broken("the body was cut short"));
        }
        body.extend_from_slice(&bytes[..chunk_len]);
        bytes = &bytes[chunk_len + 2..];
    }
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
