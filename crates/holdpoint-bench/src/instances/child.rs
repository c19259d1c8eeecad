//! What an instance does: it serves the trials' agents over the shared database until nobody wants it any more.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use holdpoint::store::Store;
use holdpoint::{ActorId, Settings};
use holdpoint_config::FixedEnvironment;
use holdpoint_runtime::Runtime;
use holdpoint_server::access::{ApiKey, ApiKeys, Credentials, Role};
use holdpoint_server::agents::{AgentFolder, Catalogue, CatalogueOptions};
use holdpoint_server::{Running, ServerConfig, serve};
use holdpoint_stores::postgres::PostgresStore;
use holdpoint_stores::redis::RedisStore;

use super::careless::Careless;
use super::options::Database;

/// What an instance is started with.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) database: Database,
    pub(super) clients: u32,
    pub(super) lease: Duration,
    pub(super) is_careless: bool,
}

impl Setup {
    /// The words after `child-instance`, before the agents' folder and the address of the database.
    pub(super) fn words(&self) -> [String; 4] {
        let care = if self.is_careless { "careless" } else { "careful" };
        [self.database.name().to_owned(), self.clients.to_string(), self.lease.as_millis().to_string(), care.to_owned()]
    }

    fn read(words: &[&str]) -> Result<Self> {
        let [database, clients, lease, care] = words else { bail!("an instance is started by its trial") };
        let (database, lease) = (Database::named(database)?, Duration::from_millis(lease.parse()?));
        Ok(Self { database, clients: clients.parse()?, lease, is_careless: *care == "careless" })
    }
}

/// The name that a client decides under.
pub(super) fn client_name(number: u32) -> String {
    format!("client-{number}")
}

/// What a client shows.
pub(super) fn client_key(number: u32) -> String {
    format!("{}{}", ApiKey::PREFIX, client_name(number))
}

/// Opens the database as an instance does.
pub(super) async fn open(database: Database, address: &str) -> Result<Arc<dyn Store>> {
    Ok(match database {
        Database::Postgres => Arc::new(PostgresStore::open(address).await?),
        Database::Redis => Arc::new(RedisStore::open(address).await?),
    })
}

/// What the process does.
pub(crate) fn child(words: &[&str]) -> Result<()> {
    let Some((setup, [agents, address])) = words.split_at_checked(4) else {
        bail!("an instance is started by its trial")
    };
    let setup = Setup::read(setup)?;
    let tokio = tokio::runtime::Runtime::new()?;
    let running = tokio.block_on(start(&setup, Path::new(agents), address))?;
    println!("{}", running.address());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    tokio.block_on(running.stop());
    Ok(())
}

async fn start(setup: &Setup, agents: &Path, address: &str) -> Result<Running> {
    let options = CatalogueOptions {
        environment: Arc::new(FixedEnvironment::empty()),
        is_strict: true,
        ..CatalogueOptions::default()
    };
    let catalogue = Catalogue::open(AgentFolder::new(agents), options)?;
    let mut config = ServerConfig::with_credentials(SocketAddr::from(([127, 0, 0, 1], 0)), credentials(setup.clients)?);
    (config.limits.requests_per_second, config.limits.requests_burst) = (1_000_000, 1_000_000);
    config.limits.streams_per_caller = config.limits.streams_max;
    let mut store = open(setup.database, address).await?;
    if setup.is_careless {
        store = Arc::new(Careless(store));
    }
    let settings = Settings { lease: setup.lease, ..Settings::default() };
    Ok(serve(config, Runtime::builder(store).settings(settings).build(), catalogue).await?)
}

/// Everybody may do everything.
fn credentials(clients: u32) -> Result<Credentials> {
    let key = |number| -> Result<ApiKey> {
        let actor = ActorId::new(client_name(number)).map_err(|bad| anyhow::anyhow!("{bad}"))?;
        Ok(ApiKey::new(actor, &ApiKey::digest(&client_key(number)), [Role::Admin])?)
    };
    Ok(Credentials { keys: ApiKeys::new((0..clients).map(key).collect::<Result<_>>()?)?, jwt: None })
}
