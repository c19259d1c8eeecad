//! Instances over one Redis database tell each other what happens.

use std::sync::Arc;

use holdpoint_runtime::ports::store::Store;
use holdpoint_stores::redis::RedisStore;
use holdpoint_testkit::servers::Proxy;
use tokio::sync::OnceCell;

use crate::database::Database;
use crate::instances::{self, Place};

struct Shared {
    database: Database,
    /// The way of every store to it.
    road: Proxy,
    other: OnceCell<Database>,
}

impl Shared {
    async fn new() -> Self {
        let database = Database::new().await;
        let road = Proxy::to(database.socket()).await;
        Self { database, road, other: OnceCell::new() }
    }
}

impl Place for Shared {
    async fn store(&self) -> Arc<dyn Store> {
        let address = self.database.by_way_of(self.road.address);
        Arc::new(RedisStore::open_with(&address, self.database.options()).await.unwrap())
    }

    async fn other_store(&self) -> Arc<dyn Store> {
        Arc::new(self.other.get_or_init(Database::new).await.store().await)
    }

    async fn hang_up(&self) {
        self.road.cut();
        self.road.mend();
    }

    async fn shout(&self, bytes: &[u8]) {
        let mut connection = self.database.connect();
        redis::cmd("PUBLISH").arg(self.database.key("bus")).arg(bytes).query::<u32>(&mut connection).unwrap();
    }
}

instances::tests!(Shared::new());
