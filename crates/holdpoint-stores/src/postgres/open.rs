//! Opening the store: a primary of a version that is known, with settings that keep what is acknowledged and the right
//! schema, or a refusal that changes nothing.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Pool, PoolError, QueueMode, RecyclingMethod, Runtime, Timeouts,
};
use holdpoint_runtime::ports::store::{StoreFault, StoreFaultKind};
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{Config, NoTls};

use super::connection::Connection;
use super::fault::Broken;
use super::{columns, schema, tls};
use crate::clock::Follower;

const DOING: &str = "open the database";

/// The oldest server that is used.
const SERVER_MIN: i32 = 140_000;

/// How a database is opened. What it promises is not among the options.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// How many connections write at once; whoever comes then waits for one.
    pub writers_max: usize,
    /// How many connections read at once.
    pub readers_max: usize,
    /// How long a connection, a lock or an answer is waited for.
    pub patience: Duration,
    /// A file of certificates (PEM) to trust in place of the machine's authorities.
    pub authorities: Option<PathBuf>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { writers_max: 8, readers_max: 4, patience: Duration::from_secs(5), authorities: None }
    }
}

/// Connections that write, and those that read: neither keeps the other waiting.
pub(super) struct Pools {
    writers: Pool,
    readers: Pool,
}

/// What is known once the database is open.
pub(super) struct Opened {
    pub(super) pools: Pools,
    pub(super) follower: Follower,
    pub(super) settings: String,
}

/// Connects, checks the server, and brings the schema up to date.
pub(super) async fn open(address: &str, options: &PostgresOptions) -> Result<Opened, StoreFault> {
    let (pools, connection, settings) = connect(address, options).await?;
    schema::migrate(&connection).await?;
    let asked = Instant::now();
    let rows = connection.query(columns::CLOCK, &[]).await.map_err(|error| Broken::from(error).fault(DOING))?;
    let millis = rows.first().map_or(Ok(0), |row| columns::get(row, 0)).map_err(|broken| broken.fault(DOING))?;
    connection.give_back();
    Ok(Opened { pools, follower: Follower::new(asked, Instant::now(), millis), settings })
}

/// Connects, and checks the server and the schema; says whether nothing of ours is there yet.
pub(super) async fn look(address: &str, options: &PostgresOptions) -> Result<(String, bool), StoreFault> {
    let (_pools, connection, settings) = connect(address, options).await?;
    let applied = schema::applied(&connection).await?;
    connection.give_back();
    Ok((settings, applied == 0))
}

/// Connects, and checks the server; says what its promise rests on.
async fn connect(address: &str, options: &PostgresOptions) -> Result<(Pools, Connection, String), StoreFault> {
    let config = config(address, options)?;
    let pools = Pools {
        // Writers say the same few things again and again, each of which has one good plan.
        writers: pool(&config, options, options.writers_max, "force_generic_plan")?,
        readers: pool(&config, options, options.readers_max, "auto")?,
    };
    let connection = pools.writer().await.map_err(|broken| broken.fault(DOING))?;
    let settings = check_server(&connection).await?;
    Ok((pools, connection, settings))
}

/// How each connection is made.
pub(super) fn config(address: &str, options: &PostgresOptions) -> Result<Config, StoreFault> {
    // What is wrong with an address is told without it: there may be a password in it.
    let mut config: Config = address
        .parse()
        .map_err(|error: tokio_postgres::Error| refused(format!("the address cannot be read: {}", cause(&error))))?;
    config.connect_timeout(options.patience).target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.tcp_user_timeout(options.patience * 2);
    if config.get_application_name().is_none() {
        config.application_name("holdpoint");
    }
    Ok(config)
}

impl Pools {
    pub(super) async fn writer(&self) -> Result<Connection, Broken> {
        self.writers.get().await.map(Connection::new).map_err(no_connection)
    }

    pub(super) async fn reader(&self) -> Result<Connection, Broken> {
        self.readers.get().await.map(Connection::new).map_err(no_connection)
    }
}

fn no_connection(error: PoolError) -> Broken {
    match error {
        PoolError::Timeout(_) => Broken::TimedOut,
        PoolError::Backend(error) => Broken::NoConnection(cause(&error)),
        PoolError::PostCreateHook(HookError::Backend(error)) => Broken::NoConnection(cause(&error)),
        other => Broken::NoConnection(other.to_string()),
    }
}

/// What an error says, with what is behind it.
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(next) = behind {
        text = format!("{text}: {next}");
        behind = next.source();
    }
    text
}

fn pool(config: &Config, options: &PostgresOptions, max_size: usize, plans: &str) -> Result<Pool, StoreFault> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match config.get_ssl_mode() {
        SslMode::Disable => Manager::from_config(config.clone(), NoTls, recycling),
        _ => {
            let connector = tls::connector(options.authorities.as_deref()).map_err(refused)?;
            Manager::from_config(config.clone(), connector, recycling)
        }
    };
    let millis = options.patience.as_millis();
    // A server that goes by itself stops what nobody waits for any more. What was acknowledged must be on disk,
    // whatever the database's own setting. Everything is found by an index, and a plan that was made while a table was
    // small must not read all of it later.
    let settings = format!(
        "SET statement_timeout = {millis}; SET lock_timeout = {millis};
         SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
         SET plan_cache_mode = {plans};
         SET idle_in_transaction_session_timeout = {};
         SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
        millis * 2
    );
    let prepare = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let settings = settings.clone();
        Box::pin(async move { client.batch_execute(&settings).await.map_err(HookError::Backend) })
    });
    let patience = Some(options.patience);
    Pool::builder(manager)
        .max_size(max_size.max(1))
        // The one that was used last knows the most.
        .queue_mode(QueueMode::Lifo)
        .timeouts(Timeouts { wait: patience, create: patience, recycle: patience })
        .runtime(Runtime::Tokio1)
        .post_create(prepare)
        .build()
        .map_err(|error| refused(error.to_string()))
}

const SETTINGS: &str = "
    SELECT current_setting('server_version_num')::int, current_setting('server_version'),
           current_setting('server_encoding'), pg_is_in_recovery(), current_setting('fsync'),
           current_setting('full_page_writes'), current_setting('synchronous_commit'),
           current_setting('synchronous_standby_names')";

/// Refuses a server that will not keep what is acknowledged; says what the promise rests on.
async fn check_server(connection: &Connection) -> Result<String, StoreFault> {
    let rows = connection.query(SETTINGS, &[]).await.map_err(|error| Broken::from(error).fault(DOING))?;
    let row = rows.first().ok_or_else(|| refused("the server has no settings".to_owned()))?;
    let read = || -> Result<_, Broken> {
        let text = |column| columns::get::<String>(row, column);
        let server = Server {
            number: columns::get(row, 0)?,
            version: text(1)?,
            encoding: text(2)?,
            is_standby: columns::get(row, 3)?,
            fsync: text(4)?,
            synchronous_commit: text(6)?,
        };
        let standbys = text(7)?;
        let standbys = if standbys.is_empty() { "none".to_owned() } else { standbys };
        Ok((server, text(5)?, standbys))
    };
    let (server, full_page_writes, standbys) = read().map_err(|broken| broken.fault(DOING))?;
    server.check().map_err(refused)?;
    Ok(format!(
        "PostgreSQL {}, fsync={}, full_page_writes={full_page_writes}, synchronous_commit={}, synchronous standbys: \
         {standbys}",
        server.version, server.fsync, server.synchronous_commit
    ))
}

/// What must be right about a server.
struct Server {
    number: i32,
    version: String,
    encoding: String,
    is_standby: bool,
    fsync: String,
    synchronous_commit: String,
}

impl Server {
    fn check(&self) -> Result<(), String> {
        if self.number < SERVER_MIN {
            return Err(format!("PostgreSQL {} is too old; {} or later is needed", self.version, SERVER_MIN / 10_000));
        }
        if self.encoding != "UTF8" {
            return Err(format!("the database's encoding is {}, not UTF8", self.encoding));
        }
        if self.is_standby {
            return Err("the server is a standby; runs are read and written on the primary only".to_owned());
        }
        if self.fsync != "on" || self.synchronous_commit == "off" {
            return Err(format!(
                "fsync is {} and synchronous_commit is {}: what is acknowledged would not survive a crash",
                self.fsync, self.synchronous_commit
            ));
        }
        Ok(())
    }
}

fn refused(why: String) -> StoreFault {
    StoreFault::because(DOING, StoreFaultKind::Unavailable, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Server {
        Server {
            number: 150_018,
            version: "15.18".to_owned(),
            encoding: "UTF8".to_owned(),
            is_standby: false,
            fsync: "on".to_owned(),
            synchronous_commit: "on".to_owned(),
        }
    }

    #[test]
    fn a_server_that_would_lose_what_it_acknowledged_is_refused() {
        assert_eq!(good().check(), Ok(()));
        assert_eq!(Server { synchronous_commit: "remote_apply".to_owned(), ..good() }.check(), Ok(()));
        for bad in [
            Server { number: 130_022, version: "13.22".to_owned(), ..good() },
            Server { encoding: "SQL_ASCII".to_owned(), ..good() },
            Server { is_standby: true, ..good() },
            Server { fsync: "off".to_owned(), ..good() },
            Server { synchronous_commit: "off".to_owned(), ..good() },
        ] {
            assert!(bad.check().is_err());
        }
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_read_is_not_repeated() {
        let fault = open("postgres://ana:geheim@[::1/x", &PostgresOptions::default()).await.err().unwrap();
        assert_eq!(fault.kind, StoreFaultKind::Unavailable);
        assert!(!format!("{fault:?} {}", fault.source.as_ref().unwrap()).contains("geheim"), "{fault:?}");
    }
}
