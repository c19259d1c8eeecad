//! What an operator decides about the server. The command line and the configuration file end up here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_runtime::ports::notifier::{Notifier, NotifyRule};

use crate::access::Credentials;
use crate::limits::Limits;
use crate::notifiers::slack::Slack;
use crate::protocols::mastra::Prefix;
use crate::requests::CallbackSettings;
use crate::retention::Retention;

/// What an operator decides about the server.
pub struct ServerConfig {
    /// Where it listens. Any address but one of loopback needs credentials.
    pub listen: SocketAddr,
    /// What callers show; `None` for a server of one person on their own machine.
    pub credentials: Option<Credentials>,
    /// Further names under which requests may arrive. With credentials and without names, any name is taken.
    pub hosts: Vec<String>,
    /// Origins of web pages elsewhere that may call, such as `https://console.example`.
    pub origins: Vec<String>,
    /// Whether the one who started a run may approve its calls.
    pub requester_may_approve: bool,
    /// The bounds.
    pub limits: Limits,
    /// How requests for approval are called back; `None` where they are not.
    pub callbacks: Option<CallbackSettings>,
    /// Who is told of which pauses, and how. The runtime's settings must name the same rules: it writes down what is to be
    /// told, and the server sends it.
    pub notifiers: Vec<(NotifyRule, Arc<dyn Notifier>)>,
    /// Channels of Slack whose buttons are answered here. What is posted there goes out through the notifiers.
    pub slack: Vec<Arc<Slack>>,
    /// Under which path the routes of Mastra's protocol stand.
    pub mastra_prefix: Prefix,
    /// How long sessions are kept; `None` for ever.
    pub retention: Option<Retention>,
    /// How long a stop waits for runs to come to a stop point.
    pub stop_grace: Duration,
}

impl ServerConfig {
    /// A server of one person at this address, with everything else as usual.
    pub fn solo(listen: SocketAddr) -> Self {
        Self {
            listen,
            credentials: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            requester_may_approve: true,
            limits: Limits::default(),
            callbacks: None,
            notifiers: Vec::new(),
            slack: Vec::new(),
            mastra_prefix: Prefix::default(),
            retention: None,
            stop_grace: Duration::from_secs(20),
        }
    }

    /// A server at this address whose callers show credentials.
    pub fn with_credentials(listen: SocketAddr, credentials: Credentials) -> Self {
        Self { credentials: Some(credentials), ..Self::solo(listen) }
    }
}
