//! Where runs are kept.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// The address of a store. It may hold a password, so it is never shown whole.
#[derive(Clone)]
pub struct StoreAddress {
    kind: StoreKind,
    address: SecretString,
}

/// What kind of store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The process's memory: everything is lost at the end.
    Memory,
    /// A file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// Redis.
    Redis,
}

impl StoreKind {
    /// The kind's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }
}

impl StoreAddress {
    /// Reads an address: `memory:`, `sqlite://FILE`, `postgres://…` or `redis://…`.
    ///
    /// # Errors
    /// What is wrong, without the address.
    pub fn parse(address: &str) -> Result<Self, &'static str> {
        let kind = match address.split_once(':') {
            Some(("memory", "" | "//")) => StoreKind::Memory,
            Some(("memory", _)) => return Err("a store in memory is written `memory:`"),
            Some(("sqlite", rest)) if !path_of(rest).is_empty() => StoreKind::Sqlite,
            Some(("sqlite", _)) => return Err("a file is missing, as in `sqlite://holdpoint.db`"),
            Some(("postgres" | "postgresql", rest)) if has_host(rest) => StoreKind::Postgres,
            Some(("postgres" | "postgresql", _)) => return Err("a host is missing, as in `postgres://host/database`"),
            Some(("redis" | "rediss", rest)) if has_host(rest) => StoreKind::Redis,
            Some(("redis" | "rediss", _)) => return Err("a host is missing, as in `redis://host`"),
            _ => return Err("write sqlite://FILE, postgres://…, redis://… or memory:"),
        };
        Ok(Self { kind, address: SecretString::from(address.to_owned()) })
    }

    /// What kind of store it is.
    pub fn kind(&self) -> StoreKind {
        self.kind
    }

    /// The whole address, for the store itself.
    pub fn expose(&self) -> &str {
        self.address.expose_secret()
    }

    /// The file of an SQLite store.
    pub fn sqlite_path(&self) -> Option<&str> {
        let rest = self.expose().strip_prefix("sqlite:")?;
        Some(path_of(rest))
    }
}

fn path_of(rest: &str) -> &str {
    rest.strip_prefix("//").unwrap_or(rest)
}

fn has_host(rest: &str) -> bool {
    let authority = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    !host.is_empty()
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreAddress").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The address without user, password and query.
impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.expose();
        match self.kind {
            StoreKind::Memory => f.write_str("memory:"),
            StoreKind::Sqlite => write!(f, "sqlite://{}", self.sqlite_path().unwrap_or_default()),
            StoreKind::Postgres | StoreKind::Redis => {
                let rest = address.split_once("://").map_or("", |(_, rest)| rest);
                // A password that was not encoded may hold any of the signs that end one: what is shown begins behind the
                // last place where it could end.
                let rest = rest.rsplit('@').next().unwrap_or_default();
                let rest = rest.split(['?', '#']).next().unwrap_or_default();
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                write!(f, "{}://{host}/{path}", self.kind.name())
            }
        }
    }
}
