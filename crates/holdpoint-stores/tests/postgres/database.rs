//! A schema of its own for each test, in the server that all of them share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_runtime::ports::clock::Clock;
use holdpoint_stores::postgres::{PostgresOptions, PostgresStore};
use holdpoint_testkit::servers::{self, Server};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

/// How processes that are started by tests begin their names.
const NAME: &str = "tested-";

/// The store under test.
pub type TestedStore = PostgresStore;

/// What goes to the server when something is written, and what comes back once it is.
pub const WRITE: &[u8] = b"COMMIT\0";
pub const WRITTEN: &[u8] = b"COMMIT\0";

/// An empty schema, dropped at the end.
pub struct Database {
    /// The address of the schema.
    pub address: String,
    name: String,
    server: Server,
}

impl Database {
    pub async fn new() -> Self {
        let server =
            tokio::task::spawn_blocking(servers::postgres).await.unwrap().unwrap_or_else(|why| panic!("{why}"));
        let name = format!("holdpoint_test_{}", uuid::Uuid::now_v7().simple());
        connect(&server.address).await.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
        let more = if server.address.contains('?') { '&' } else { '?' };
        let address = format!("{}{more}options=-csearch_path%3D{name}", server.address);
        Self { address, name, server }
    }

    /// A store in it.
    pub async fn store(&self) -> PostgresStore {
        PostgresStore::open(&self.address).await.unwrap()
    }

    /// A store in it that goes by this clock.
    pub async fn open(&self, clock: Arc<dyn Clock>) -> PostgresStore {
        self.store().await.going_by(clock)
    }

    /// A store in it by way of another socket, with so much patience.
    pub async fn open_by_way_of(&self, socket: SocketAddr, patience: Duration) -> PostgresStore {
        let mut options = PostgresOptions::default();
        options.patience = patience;
        PostgresStore::open_with(&self.by_way_of(socket), options).await.unwrap()
    }

    /// What another process needs to open it, under a name that nobody else has.
    pub fn place(&self) -> String {
        format!("{}&application_name={NAME}{}", self.address, uuid::Uuid::now_v7().simple())
    }

    /// A store at a place.
    pub async fn open_at(place: &str) -> PostgresStore {
        PostgresStore::open(place).await.unwrap()
    }

    /// Waits until the server has worked off what a process that is dead had sent.
    pub async fn until_nobody_is_at(&self, place: &str) {
        let name = place.rsplit_once('=').unwrap().1;
        let client = self.connect().await;
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
        while client.query_one(sql, &[&name]).await.unwrap().get::<_, i64>(0) > 0 {}
    }

    /// A connection of one's own.
    pub async fn connect(&self) -> Client {
        connect(&self.address).await
    }

    /// Where the server listens.
    pub fn socket(&self) -> SocketAddr {
        let config: Config = self.address.parse().unwrap();
        let Host::Tcp(host) = &config.get_hosts()[0] else {
            panic!("a server on a socket of its own cannot be cut off")
        };
        let port = config.get_ports().first().copied().unwrap_or(5_432);
        std::net::ToSocketAddrs::to_socket_addrs(&(host.as_str(), port)).unwrap().next().unwrap()
    }

    /// The address by way of another socket.
    pub fn by_way_of(&self, socket: SocketAddr) -> String {
        self.address.replace(&self.socket().to_string(), &socket.to_string())
    }
}

async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Drop for Database {
    fn drop(&mut self) {
        let (address, name) = (self.server.address.clone(), self.name.clone());
        let drop = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let drop = async { connect(&address).await.batch_execute(&format!("DROP SCHEMA {name} CASCADE")).await };
            runtime.block_on(drop)
        };
        // Best effort: what is left behind goes with the server.
        let _ = std::thread::spawn(drop).join();
    }
}
