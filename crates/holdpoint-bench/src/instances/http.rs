//! HTTP/1.1 by hand over connections that are kept: dozens of clients must not weigh on the machine that they test.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

const BODY_BYTES_MAX: usize = 4 << 20;

/// What came of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    Answered {
        status: u16,
        body: Value,
    },
    /// Nobody was there to take it.
    NotSent,
    /// It was sent, and no answer came: it may have been done.
    Unanswered,
}

/// What is asked.
pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    /// The caller's own name of the request.
    pub(super) name: Option<&'a str>,
    pub(super) body: Option<&'a Value>,
}

/// One client's connections, one for each instance.
pub(super) struct Http {
    key: String,
    connections: Vec<Option<(SocketAddr, BufReader<TcpStream>)>>,
}

impl Http {
    /// A client who shows this key.
    pub(super) fn new(key: String) -> Self {
        Self { key, connections: Vec::new() }
    }

    /// Asks the instance of this number, which listens at this address, and waits for so long.
    pub(super) async fn ask(
        &mut self,
        (number, address): (usize, SocketAddr),
        request: &Request<'_>,
        patience: Duration,
    ) -> Outcome {
        if self.connections.len() <= number {
            self.connections.resize_with(number + 1, || None);
        }
        let kept = self.connections[number].take().filter(|(known, _)| *known == address);
        let connection = match kept {
            Some((_, connection)) => connection,
            None => match tokio::time::timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    BufReader::new(stream)
                }
                _ => return Outcome::NotSent,
            },
        };
        // A connection that did not bring an answer is not used again: the answer might come to the next question.
        match tokio::time::timeout(patience, self.exchange(connection, address, request)).await {
            Ok(Ok((connection, status, body))) => {
                self.connections[number] = Some((address, connection));
                Outcome::Answered { status, body }
            }
            _ => Outcome::Unanswered,
        }
    }

    async fn exchange(
        &self,
        mut connection: BufReader<TcpStream>,
        address: SocketAddr,
        request: &Request<'_>,
    ) -> Result<(BufReader<TcpStream>, u16, Value)> {
        let body = request.body.map(ToString::to_string).unwrap_or_default();
        let name = request.name.map(|name| format!("Idempotency-Key: {name}\r\n")).unwrap_or_default();
        let kind = if request.body.is_some() { "Content-Type: application/json\r\n" } else { "" };
        let text = format!(
            "{} {} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n{name}{kind}Content-Length: {}\r\n\r\n{body}",
            request.method,
            request.path,
            self.key,
            body.len()
        );
        connection.get_mut().write_all(text.as_bytes()).await?;
        let (status, body) = answer(&mut connection).await?;
        Ok((connection, status, body))
    }
}

async fn answer(connection: &mut BufReader<TcpStream>) -> Result<(u16, Value)> {
    let mut line = String::new();
    connection.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.with_context(|| format!("no answer: {line:?}"))?;
    let mut length = 0;
    loop {
        line.clear();
        connection.read_line(&mut line).await?;
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    ensure!(length <= BODY_BYTES_MAX, "an answer of {length} bytes");
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
