//! A server on this machine that answers as a test says, also badly.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Such as `GET /path?query`.
    pub(super) line: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// How a request is answered.
pub(super) enum Answer {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// These bytes, then the others over and over.
    Endless(Vec<u8>, Vec<u8>),
    /// These bytes, then nothing more until the client goes away.
    Stalled(Vec<u8>),
}

impl Answer {
    pub(super) fn new(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
        Self::Bytes([head.as_bytes(), body].concat())
    }

    pub(super) fn text(body: &str) -> Self {
        Self::new("200 OK", "content-type: text/plain\r\n", body)
    }

    pub(super) fn json(body: &str) -> Self {
        Self::new("200 OK", "content-type: application/json\r\n", body)
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self::new("302 Found", &format!("location: {to}\r\n"), "elsewhere")
    }
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    answer: Box<dyn Fn(&Seen) -> Answer + Send + Sync>,
    connections: AtomicUsize,
    seen: Mutex<Vec<Seen>>,
    arrived: Notify,
}

impl Server {
    pub(super) async fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            connections: AtomicUsize::new(0),
            seen: Mutex::default(),
            arrived: Notify::new(),
        });
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(serving.clone(), stream));
            }
        });
        Self { address, shared, task }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many connections there were, also such as asked nothing.
    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The only request that there was.
    pub(super) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }

    /// Waits until a request is here.
    pub(super) async fn arrived(&self) {
        self.shared.arrived.notified().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(shared: Arc<Shared>, mut stream: TcpStream) {
    let Some(seen) = read_request(&mut stream).await else { return };
    let answer = (shared.answer)(&seen);
    shared.seen.lock().unwrap().push(seen);
    shared.arrived.notify_one();
    match answer {
        Answer::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        Answer::Endless(head, more) => {
            let mut sent = stream.write_all(&head).await;
            while sent.is_ok() {
                sent = stream.write_all(&more).await;
            }
        }
        Answer::Stalled(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.read_u8().await;
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        stream.read_buf(&mut bytes).await.ok().filter(|count| *count > 0)?;
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: Vec<_> = lines.filter_map(header).collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head_end + 4 + length {
        stream.read_buf(&mut bytes).await.ok().filter(|count| *count > 0)?;
    }
    let body = String::from_utf8(bytes[head_end + 4..].to_vec()).unwrap();
    Some(Seen { line, headers, body })
}
