//! Keys of its own for each test, in the server that all of them share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_runtime::ports::clock::Clock;
use holdpoint_stores::redis::{RedisOptions, RedisStore};
use holdpoint_testkit::servers::{self, Server};
use redis::{Client, ConnectionAddr};

/// The store under test.
pub type TestedStore = RedisStore;

/// What goes to the server when something is written, and what comes back once it is.
pub const WRITE: &[u8] = b"EVALSHA\r\n";
pub const WRITTEN: &[u8] = b":1\r\n";

/// A prefix that nothing begins with yet; what does is removed at the end.
pub struct Database {
    pub prefix: String,
    server: Server,
}

impl Database {
    pub async fn new() -> Self {
        let server = tokio::task::spawn_blocking(servers::redis).await.unwrap().unwrap_or_else(|why| panic!("{why}"));
        Self { prefix: format!("holdpoint-test-{}", uuid::Uuid::now_v7().simple()), server }
    }

    pub fn address(&self) -> &str {
        &self.server.address
    }

    pub fn options(&self) -> RedisOptions {
        options(&self.prefix)
    }

    /// A store with these keys.
    pub async fn store(&self) -> RedisStore {
        RedisStore::open_with(self.address(), self.options()).await.unwrap()
    }

    /// A store with these keys that goes by this clock.
    pub async fn open(&self, clock: Arc<dyn Clock>) -> RedisStore {
        self.store().await.going_by(clock)
    }

    /// A store with these keys by way of another socket, with so much patience.
    pub async fn open_by_way_of(&self, socket: SocketAddr, patience: Duration) -> RedisStore {
        let mut options = self.options();
        options.patience = patience;
        RedisStore::open_with(&self.by_way_of(socket), options).await.unwrap()
    }

    /// What another process needs to open it.
    pub fn place(&self) -> String {
        format!("{} {}", self.address(), self.prefix)
    }

    /// A store at a place.
    pub async fn open_at(place: &str) -> RedisStore {
        let (address, prefix) = place.split_once(' ').unwrap();
        RedisStore::open_with(address, options(prefix)).await.unwrap()
    }

    /// The server has done what a process that is dead had sent before it answers anybody else.
    pub async fn until_nobody_is_at(&self, _place: &str) {}

    /// A connection of one's own.
    pub fn connect(&self) -> redis::Connection {
        Client::open(self.address()).unwrap().get_connection().unwrap()
    }

    /// A key of the store.
    pub fn key(&self, name: &str) -> String {
        format!("{{{}}}:{name}", self.prefix)
    }

    /// Where the server listens.
    pub fn socket(&self) -> SocketAddr {
        let client = Client::open(self.address()).unwrap();
        let ConnectionAddr::Tcp(host, port) = client.get_connection_info().addr() else {
            panic!("only a server on a plain socket can be cut off")
        };
        std::net::ToSocketAddrs::to_socket_addrs(&(host.as_str(), *port)).unwrap().next().unwrap()
    }

    /// The address by way of another socket.
    pub fn by_way_of(&self, socket: SocketAddr) -> String {
        self.address().replace(&self.socket().to_string(), &socket.to_string())
    }
}

pub fn options(prefix: &str) -> RedisOptions {
    let mut options = RedisOptions::default();
    options.prefix = prefix.to_owned();
    options.patience = Duration::from_secs(5);
    options
}

impl Drop for Database {
    fn drop(&mut self) {
        let (address, pattern) = (self.server.address.clone(), format!("{{{}}}:*", self.prefix));
        // Best effort: what is left behind goes with the server.
        let remove = move || -> redis::RedisResult<()> {
            let mut connection = Client::open(address)?.get_connection()?;
            let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query(&mut connection)?;
            keys.chunks(500).try_for_each(|keys| redis::cmd("DEL").arg(keys).query(&mut connection))
        };
        let _ = std::thread::spawn(remove).join();
    }
}
