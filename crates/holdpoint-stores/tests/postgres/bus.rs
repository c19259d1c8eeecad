//! Instances over one PostgreSQL database tell each other what happens.

use std::sync::Arc;

use holdpoint_runtime::ports::store::Store;
use holdpoint_stores::postgres::PostgresStore;
use tokio::sync::OnceCell;

use crate::database::Database;
use crate::instances::{self, Place};

struct Shared {
    database: Database,
    other: OnceCell<Database>,
    shouting: OnceCell<tokio_postgres::Client>,
    /// Tells the connections of this test apart from those of others on the same server.
    name: String,
}

impl Shared {
    async fn new() -> Self {
        let name = format!("bus-{}", uuid::Uuid::now_v7().simple());
        Self { database: Database::new().await, other: OnceCell::new(), shouting: OnceCell::new(), name }
    }

    async fn open(&self, database: &Database) -> Arc<dyn Store> {
        let address = format!("{}&application_name={}", database.address, self.name);
        Arc::new(PostgresStore::open(&address).await.unwrap())
    }
}

impl Place for Shared {
    async fn store(&self) -> Arc<dyn Store> {
        self.open(&self.database).await
    }

    async fn other_store(&self) -> Arc<dyn Store> {
        self.open(self.other.get_or_init(Database::new).await).await
    }

    async fn hang_up(&self) {
        let client = self.database.connect().await;
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        assert!(client.query(sql, &[&self.name]).await.unwrap().len() > 2);
    }

    async fn shout(&self, bytes: &[u8]) {
        let client = self.shouting.get_or_init(|| self.database.connect()).await;
        let text = String::from_utf8_lossy(bytes).replace('\0', "");
        let sql = "SELECT pg_notify('holdpoint_' || current_schema()::regnamespace::oid::text, $1)";
        // The server itself refuses what is too long.
        assert_eq!(client.execute(sql, &[&text]).await.is_ok(), text.len() < 8_000);
    }
}

instances::tests!(Shared::new());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_has_one_connection_that_listens_and_one_that_tells() {
    let shared = Shared::new().await;
    let store = shared.store().await;
    let client = shared.database.connect().await;
    let count = async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
        client.query_one(sql, &[&shared.name]).await.unwrap().get::<_, i64>(0)
    };
    let before = count().await;
    let bus = store.bus().unwrap();
    let mut heard = bus.subscribe();
    instances::soon(heard.next()).await;
    for number in 0..200 {
        bus.publish(number.to_string());
    }
    for _ in 0..200 {
        instances::soon(heard.next()).await;
    }
    assert_eq!(count().await, before + 2);
}
