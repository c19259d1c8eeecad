//! The server's own settings: defaults, then the file `holdpoint.yaml`, then the environment, then flags. Each later one
//! goes before the earlier ones, setting by setting.

mod access;
mod file;
mod guard;
mod layers;
mod mcp;
mod notifications;
mod read;
mod settings;
mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

pub use access::{Access, AccessSettings, ApiKey, BadDigest, Jwt, JwtAlgorithm, KeyDigest, Role};
pub use layers::{ServerFlags, UnknownFlag};
pub use mcp::{McpServer, McpTransport};
pub use notifications::{EmailTarget, Notification, NotificationTarget, SlackPerson, SlackTarget, WebhookTarget};
pub use read::{ReadServer, load_server, read_server};
pub use settings::{SETTINGS, Setting, SettingKind, settings_table};
pub use store::{StoreAddress, StoreKind};

/// All settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The address that people and callbacks reach it by, if that is another one.
    pub public_url: Option<String>,
    /// Where runs are kept.
    pub store: StoreAddress,
    /// The folder of agent files.
    pub agents: PathBuf,
    /// The folder of policy files; `None` for `policies` in or beside the agents' folder.
    pub policies: Option<PathBuf>,
    /// Whether a bad agent file stops the start.
    pub strict: bool,
    /// Who may do what.
    pub access: AccessSettings,
    /// What callers may ask for.
    pub limits: RequestLimits,
    /// How long somebody is waited for where neither tool nor rule says; `None` for ever.
    pub pause_deadline: Option<Duration>,
    /// How long an agent's question waits for its answer where no rule says; `None` for ever.
    pub question_deadline: Option<Duration>,
    /// How often a model may be called in one run where its agent does not say.
    pub turns_max: u32,
    /// How long sessions are kept; `None` for ever.
    pub retention: Option<Retention>,
    /// How long runs in motion may take to come to a stop when the server ends.
    pub shutdown: Duration,
    /// Where traces go; `None` for nowhere.
    pub traces: Option<Traces>,
    /// Callbacks to other systems.
    pub webhooks: Webhooks,
    /// Where people are told of pauses.
    pub notifications: Vec<Notification>,
    /// MCP servers by name.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Which hosts and origins browsers may name.
    pub web: Web,
    /// Under which path Mastra's protocol stands.
    pub mastra_prefix: String,
    /// How it logs.
    pub log: Log,
}

/// What callers may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// The largest body of a request, in bytes.
    pub body_bytes_max: usize,
    /// Requests of one caller per second, over time.
    pub requests_per_second: u32,
    /// Requests of one caller at once.
    pub requests_burst: u32,
    /// Streams that are open at the same time.
    pub streams_max: usize,
}

/// How long sessions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long after the last thing that happened in them.
    pub keep: Duration,
    /// How often it is looked for those that need not be kept any more.
    pub sweep: Duration,
}

/// Where traces go.
#[derive(Debug, Clone, PartialEq)]
pub struct Traces {
    /// The collector's address (OTLP over HTTP).
    pub endpoint: String,
    /// The name under which they are found.
    pub service_name: String,
    /// The share of runs that are traced, from 0 to 1.
    pub sample_ratio: f64,
}

/// Callbacks to other systems.
#[derive(Debug, Clone)]
pub struct Webhooks {
    /// The key that signs them; without one there are none.
    pub secret: Option<SecretString>,
    /// Whether private and loopback addresses may be called; link-local ones never are.
    pub allow_private: bool,
}

/// Which hosts and origins browsers may name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Web {
    /// Names of this server in `Host`, besides the address that it listens on.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may call it.
    pub allowed_origins: Vec<String>,
}

/// How the server logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Text or JSON.
    pub format: LogFormat,
    /// What is logged, as a filter such as `info` or `holdpoint=debug`.
    pub filter: String,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}
