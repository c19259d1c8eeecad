//! A database of its own for each test, in the server that all of them share.

use std::sync::Arc;

use holdpoint_runtime::ports::store::Store;
use holdpoint_stores::postgres::PostgresStore;
use holdpoint_stores::redis::{RedisOptions, RedisStore};
use holdpoint_testkit::servers::{self, Server};
use tokio_postgres::NoTls;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Postgres,
    Redis,
}

/// A schema, or keys with a prefix of their own; removed at the end.
pub struct Database {
    kind: Kind,
    server: Server,
    name: String,
}

impl Database {
    pub async fn new(kind: Kind) -> Self {
        let start = match kind {
            Kind::Postgres => servers::postgres,
            Kind::Redis => servers::redis,
        };
        let server = tokio::task::spawn_blocking(start).await.unwrap().unwrap_or_else(|why| panic!("{why}"));
        let name = format!("holdpoint_test_{}", uuid::Uuid::now_v7().simple());
        let database = Self { kind, server, name };
        if kind == Kind::Postgres {
            run_sql(&database.server.address, &format!("CREATE SCHEMA {}", database.name)).await;
        }
        database
    }

    /// Opens it, once for each server.
    pub async fn store(&self) -> Arc<dyn Store> {
        let address = &self.server.address;
        match self.kind {
            Kind::Postgres => {
                let more = if address.contains('?') { '&' } else { '?' };
                let address = format!("{address}{more}options=-csearch_path%3D{}", self.name);
                Arc::new(PostgresStore::open(&address).await.unwrap())
            }
            Kind::Redis => {
                let mut options = RedisOptions::default();
                options.prefix = self.name.clone();
                Arc::new(RedisStore::open_with(address, options).await.unwrap())
            }
        }
    }
}

async fn run_sql(address: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
}

fn remove_keys(address: &str, name: &str) -> redis::RedisResult<()> {
    let mut connection = redis::Client::open(address)?.get_connection()?;
    let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{{{name}}}:*")).query(&mut connection)?;
    keys.chunks(500).try_for_each(|keys| redis::cmd("DEL").arg(keys).query(&mut connection))
}

impl Drop for Database {
    fn drop(&mut self) {
        let (kind, address, name) = (self.kind, self.server.address.clone(), self.name.clone());
        let remove = move || match kind {
            Kind::Redis => drop(remove_keys(&address, &name)),
            Kind::Postgres => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(run_sql(&address, &format!("DROP SCHEMA {name} CASCADE")));
            }
        };
        // Best effort: what is left behind goes with the server.
        let _ = std::thread::spawn(remove).join();
    }
}
