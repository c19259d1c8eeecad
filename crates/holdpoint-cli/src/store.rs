//! Opening the store that is configured. One that cannot be opened is an error that says what to do, never a reason to
//! keep things elsewhere.

use std::sync::Arc;

use anyhow::Result;
use holdpoint_config::{StoreAddress, StoreKind};
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::clock::SystemClock;
use holdpoint_runtime::ports::store::{Durability, Store, StoreFault, StoreFaultKind};
use holdpoint_stores::sqlite::SqliteStore;

/// Opens a store.
///
/// # Errors
/// It cannot be opened, or is of a kind that this program has not. The address is told without its password.
pub async fn open(address: &StoreAddress) -> Result<Arc<dyn Store>> {
    let opened = match address.kind() {
        StoreKind::Memory => Ok(Arc::new(MemoryStore::new(SystemClock::shared())) as Arc<dyn Store>),
        StoreKind::Sqlite => {
            let path = address.sqlite_path().unwrap_or_default();
            SqliteStore::open(path, SystemClock::shared()).map(|store| Arc::new(store) as Arc<dyn Store>)
        }
        StoreKind::Postgres => postgres(address).await,
        StoreKind::Redis => redis(address).await,
    };
    opened.map_err(|fault| {
        let told = format!("the store {address} cannot be opened: {}", advice(address.kind(), &fault));
        anyhow::Error::new(fault).context(told)
    })
}

/// What an operator can do about a store that does not open.
pub fn advice(kind: StoreKind, fault: &StoreFault) -> &'static str {
    match (fault.kind, kind) {
        (StoreFaultKind::Newer, _) => "use the version of holdpoint that wrote it, or a later one",
        (StoreFaultKind::Full, _) => "make room for it",
        (StoreFaultKind::Corrupt, _) => "see that the address is that of a store of holdpoint's own",
        (_, StoreKind::Postgres | StoreKind::Redis) => {
            "see that the server is running and is one that can be used, and that host, port, user and password in \
             `store` (--store, HOLDPOINT_STORE) are right"
        }
        (_, StoreKind::Sqlite | StoreKind::Memory) => "see that the file can be read and written",
    }
}

/// What a store promises, in words.
pub fn promise(durability: &Durability) -> &'static str {
    match (durability.survives_crash, durability.store) {
        (true, _) => "survives crashes",
        (false, "memory") => "lost when the process ends",
        (false, _) => "what it acknowledged last may be lost in a crash",
    }
}

#[cfg(feature = "postgres")]
async fn postgres(address: &StoreAddress) -> Result<Arc<dyn Store>, StoreFault> {
    let store = holdpoint_stores::postgres::PostgresStore::open(address.expose()).await?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: &StoreAddress) -> Result<Arc<dyn Store>, StoreFault> {
    Err(not_built_in("postgres"))
}

#[cfg(feature = "redis")]
async fn redis(address: &StoreAddress) -> Result<Arc<dyn Store>, StoreFault> {
    let store = holdpoint_stores::redis::RedisStore::open(address.expose()).await?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "redis"))]
async fn redis(_: &StoreAddress) -> Result<Arc<dyn Store>, StoreFault> {
    Err(not_built_in("redis"))
}

#[cfg(not(all(feature = "postgres", feature = "redis")))]
fn not_built_in(name: &str) -> StoreFault {
    let why = format!("this program was built without the feature {name}");
    StoreFault::because("open the database", StoreFaultKind::Unavailable, why)
}

/// What a server of databases says of itself, without anything being written to it.
///
/// # Errors
/// It cannot be used.
pub async fn look(address: &StoreAddress) -> Result<Option<Looked>, StoreFault> {
    match address.kind() {
        StoreKind::Memory | StoreKind::Sqlite => Ok(None),
        #[cfg(feature = "postgres")]
        StoreKind::Postgres => {
            let (durability, is_new) = holdpoint_stores::postgres::PostgresStore::look(address.expose()).await?;
            Ok(Some(Looked { durability, is_new }))
        }
        #[cfg(feature = "redis")]
        StoreKind::Redis => {
            let (durability, is_new) = holdpoint_stores::redis::RedisStore::look(address.expose()).await?;
            Ok(Some(Looked { durability, is_new }))
        }
        #[cfg(not(all(feature = "postgres", feature = "redis")))]
        kind => Err(not_built_in(kind.name())),
    }
}

/// What was seen of a database.
pub struct Looked {
    /// What it promises.
    pub durability: Durability,
    /// Whether nothing of ours is there yet.
    pub is_new: bool,
}
