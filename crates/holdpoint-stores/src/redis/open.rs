//! Opening the store: a primary of a version that is known, which evicts nothing, with data in a form that is known, or a
//! refusal that changes nothing.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{Client, RedisError, Script};
use holdpoint_runtime::ports::store::{StoreFault, StoreFaultKind};

use super::change;
use super::fault::Broken;
use super::keys::Keys;
use super::script::Call;
use crate::clock::Follower;

const DOING: &str = "open the database";

/// The oldest server that is used.
const VERSION_MIN: u32 = 7;

/// The form of what is stored. In the first, a pause's record said how it stands, and those that were decided had a list.
const FORMAT: u32 = 2;

/// How a database is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RedisOptions {
    /// What every key begins with, between braces: several stores can share a database.
    pub prefix: String,
    /// How long a connection or an answer is waited for.
    pub patience: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { prefix: "holdpoint".to_owned(), patience: Duration::from_secs(5) }
    }
}

/// What is known once the database is open.
pub(super) struct Opened {
    pub(super) connection: ConnectionManager,
    pub(super) keys: Keys,
    pub(super) follower: Follower,
    pub(super) promise: Promise,
}

/// What the server promises of what it acknowledged.
pub(super) struct Promise {
    pub(super) survives_crash: bool,
    pub(super) settings: String,
}

/// Connects and checks the server and the form of what is there.
pub(super) async fn open(address: &str, options: &RedisOptions) -> Result<Opened, StoreFault> {
    let broken = |error: RedisError| Broken::from(error).fault(DOING);
    let (mut connection, keys, promise) = connect(address, options).await?;
    check_format(&mut connection, &keys).await?;
    change::prepare(&mut connection).await.map_err(broken)?;
    let asked = Instant::now();
    let time: (i64, i64) = ::redis::cmd("TIME").query_async(&mut connection).await.map_err(broken)?;
    let follower = Follower::new(asked, Instant::now(), millis(time));
    Ok(Opened { connection, keys, follower, promise })
}

/// Connects, and checks the server and the form of what is there; says whether nothing of ours is there yet.
pub(super) async fn look(address: &str, options: &RedisOptions) -> Result<(Promise, bool), StoreFault> {
    let broken = |error: RedisError| Broken::from(error).fault(DOING);
    let (mut connection, keys, promise) = connect(address, options).await?;
    let format: Option<String> =
        ::redis::cmd("GET").arg(keys.format()).query_async(&mut connection).await.map_err(broken)?;
    format.as_deref().map(known_format).transpose()?;
    Ok((promise, format.is_none()))
}

/// Connects, and checks the server.
async fn connect(address: &str, options: &RedisOptions) -> Result<(ConnectionManager, Keys, Promise), StoreFault> {
    let keys = Keys::new(&options.prefix).map_err(refused)?;
    let client = client(address)?;
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(2)
        .set_min_delay(Duration::from_millis(20))
        .set_max_delay(Duration::from_millis(200))
        .set_connection_timeout(Some(options.patience))
        .set_response_timeout(Some(options.patience));
    let unreachable = |error: RedisError| refused(format!("no connection to Redis: {error}"));
    let mut connection = ConnectionManager::new_with_config(client, config).await.map_err(unreachable)?;
    let promise = check_server(&mut connection).await?;
    Ok((connection, keys, promise))
}

/// Who connects to this address. What is wrong with it is told without it: there may be a password in it.
pub(super) fn client(address: &str) -> Result<Client, StoreFault> {
    Client::open(address).map_err(|error| refused(format!("the address cannot be read: {error}")))
}

/// What `TIME` says, in milliseconds.
pub(super) fn millis((seconds, micros): (i64, i64)) -> i64 {
    seconds * 1_000 + micros / 1_000
}

async fn check_server(connection: &mut ConnectionManager) -> Result<Promise, StoreFault> {
    let info: String = ::redis::cmd("INFO")
        .arg("everything")
        .query_async(connection)
        .await
        .map_err(|error: RedisError| Broken::from(error).fault(DOING))?;
    // A server that is kept by somebody else may not show its settings: then it promises what is not known to be less.
    let fsync: Option<Vec<String>> =
        ::redis::cmd("CONFIG").arg("GET").arg("appendfsync").query_async(connection).await.ok();
    let fsync = fsync.and_then(|pair| pair.into_iter().nth(1));
    Server::read(&info, fsync).promise().map_err(refused)
}

/// What is read of a server.
struct Server {
    name: &'static str,
    version: String,
    role: String,
    eviction: String,
    has_log: bool,
    fsync: Option<String>,
}

impl Server {
    fn read(info: &str, fsync: Option<String>) -> Self {
        let fields: HashMap<&str, &str> = info.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
        let text = |name| fields.get(name).copied().unwrap_or_default().to_owned();
        let (name, version) = match fields.get("valkey_version") {
            Some(version) => ("Valkey", (*version).to_owned()),
            None => ("Redis", text("redis_version")),
        };
        let (role, eviction) = (text("role"), text("maxmemory_policy"));
        Self { name, version, role, eviction, has_log: text("aof_enabled") == "1", fsync }
    }

    /// What it promises.
    ///
    /// # Errors
    /// It is too old, a replica, or may throw away what it holds.
    fn promise(&self) -> Result<Promise, String> {
        let Self { name, version, .. } = self;
        let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default();
        if major < VERSION_MIN {
            return Err(format!("{name} {version} is too old; {VERSION_MIN} or later is needed"));
        }
        if self.role != "master" {
            return Err("the server is a replica; runs are read and written on the primary only".to_owned());
        }
        if self.eviction != "noeviction" {
            return Err(format!(
                "maxmemory-policy is {}: runs would be thrown away when memory is short; set `maxmemory-policy \
                 noeviction` on the server, also in its file",
                self.eviction
            ));
        }
        let fsync = self.fsync.as_deref().unwrap_or("not known");
        let survives_crash = self.has_log && fsync == "always";
        let log = if self.has_log { "yes" } else { "no" };
        let settings = format!(
            "{name} {version}, appendonly={log}, appendfsync={fsync}, maxmemory-policy=noeviction; replicas follow \
             later, so that a fail-over may lose what was acknowledged last"
        );
        if !survives_crash {
            tracing::warn!(
                settings,
                "what this store acknowledges may be lost in a crash: set `appendonly yes` and `appendfsync always` on the server"
            );
        }
        Ok(Promise { survives_crash, settings })
    }
}

/// Refuses data in a form that is not known; a new store notes ours, and one in an earlier form is brought to it.
async fn check_format(connection: &mut ConnectionManager, keys: &Keys) -> Result<(), StoreFault> {
    let broken = |error: RedisError| Broken::from(error).fault(DOING);
    let mut call = Call::changing(&UPGRADE, 2, 3, 256);
    call.cmd.arg(keys.format()).arg(keys.decided_pauses()).arg(FORMAT);
    let format: String = call.send(connection).await.map_err(broken)?;
    known_format(&format)
}

/// Notes the form of a new store; takes the first form to the second, in which nobody needs the list of those that were
/// decided: also where a program that knows only the first went on for a while and made it anew. Gives the form that it has
/// then. Any number of instances may do so at once.
static UPGRADE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local format = redis.call('GET', KEYS[1])
        if format == '1' or format == ARGV[1] then
            redis.call('UNLINK', KEYS[2])
        end
        if not format or format == '1' then
            redis.call('SET', KEYS[1], ARGV[1])
            format = ARGV[1]
        end
        return format",
    )
});

fn known_format(format: &str) -> Result<(), StoreFault> {
    match format.parse::<u32>() {
        Ok(1..=FORMAT) => Ok(()),
        Ok(newer) if newer > FORMAT => {
            let why = format!("the database has format {newer}, this program knows {FORMAT}");
            Err(StoreFault::because(DOING, StoreFaultKind::Newer, why))
        }
        _ => Err(StoreFault::because(DOING, StoreFaultKind::Corrupt, "the database's format cannot be read")),
    }
}

fn refused(why: String) -> StoreFault {
    StoreFault::because(DOING, StoreFaultKind::Unavailable, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "# Server\r\nredis_version:7.0.15\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n";

    #[test]
    fn only_a_log_that_is_always_flushed_survives_a_crash() {
        let always = Server::read(GOOD, Some("always".to_owned())).promise().unwrap();
        assert!(always.survives_crash);
        assert!(always.settings.starts_with("Redis 7.0.15, appendonly=yes, appendfsync=always"), "{}", always.settings);
        assert!(always.settings.ends_with("a fail-over may lose what was acknowledged last"), "{}", always.settings);
        for (info, fsync) in [
            (GOOD.to_owned(), Some("everysec".to_owned())),
            (GOOD.to_owned(), None),
            (GOOD.replace("aof_enabled:1", "aof_enabled:0"), Some("always".to_owned())),
        ] {
            assert!(!Server::read(&info, fsync).promise().unwrap().survives_crash);
        }
    }

    #[test]
    fn a_server_that_cannot_keep_runs_is_refused() {
        for (from, to) in [
            ("7.0.15", "6.2.9"),
            ("7.0.15", "odd"),
            ("role:master", "role:slave"),
            ("noeviction", "allkeys-lru"),
            ("maxmemory_policy", "something_else"),
        ] {
            assert!(Server::read(&GOOD.replace(from, to), Some("always".to_owned())).promise().is_err(), "{to}");
        }
        let valkey = format!("{GOOD}server_name:valkey\r\nvalkey_version:8.1.0\r\n");
        let promise = Server::read(&valkey, Some("always".to_owned())).promise().unwrap();
        assert!(promise.settings.starts_with("Valkey 8.1.0"), "{}", promise.settings);
    }
}
