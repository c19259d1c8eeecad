//! Approval as a service: an agent that runs elsewhere asks, a person decides here, and the agent acts there.
//!
//! A request is a run like any other, of an agent made for it: its model asks for exactly the call that was asked about
//! and, when that is settled, for the callback. So pauses, policies, deadlines, decisions, restarts and the audit are
//! those of every run, and nothing of it lives in memory.

mod agent;
mod callback;
mod desk;
mod file;
mod model;
mod notice;
mod policy;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_core::ids::{BadId, RunId};
use holdpoint_core::run::Run;
use holdpoint_runtime::agent::AgentGraph;
use holdpoint_runtime::settings::DriftPolicy;
use holdpoint_runtime::worker::{AgentSource, AgentWanted};
use serde::{Deserialize, Serialize};

use crate::agents::Catalogue;
use crate::app::App;

pub(crate) use callback::Callbacks;
pub use callback::{BadCallbacks, CallbackSettings};
pub(crate) use desk::{Asked, Desk};
pub(crate) use file::{Outcome, RequestFile};

/// A request for approval: the run that carries it, under another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId(pub(crate) RunId);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "req_{}", self.0.uuid().simple())
    }
}

impl FromStr for RequestId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = BadId { what: "a request id", example: "req_0198c0ffee007000800000000000beef" };
        let hex = text.strip_prefix("req_").ok_or(bad.clone())?;
        format!("run_{hex}").parse().map(Self).map_err(|_| bad)
    }
}

/// What was asked for besides the call itself. It is kept with the run, as its context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terms {
    /// What the one who decides should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<String>,
    /// How long the request waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<u64>,
    /// Who may decide; empty for everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvers: Vec<String>,
    /// Who is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) callback_url: Option<String>,
}

/// The context of a run that carries a request. Clients cannot give a run a context, so nothing else has this member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub(crate) holdpoint_request: Terms,
}

/// The request that a run carries, if it does.
pub(crate) fn request_of(run: &Run) -> Option<RequestId> {
    run.context()?.decode::<Carried>().ok().map(|_| RequestId(run.id()))
}

/// Where the agents of stored runs are found: those of requests are made again, all others are in the catalogue.
pub(crate) struct Sources {
    desk: Desk,
    agents: Catalogue,
    drift: DriftPolicy,
}

impl App {
    /// Where the agents of stored runs are found.
    pub(crate) fn sources(&self) -> Sources {
        Sources { desk: self.desk().clone(), agents: self.agents().clone(), drift: self.runtime().settings().drift }
    }
}

#[async_trait]
impl AgentSource for Sources {
    async fn graph(&self, wanted: &AgentWanted) -> Option<Arc<AgentGraph>> {
        match wanted.source.as_ref().and_then(agent::Source::read) {
            Some(source) => self.desk.graph(&source).ok(),
            None => match self.agents.find(wanted.root.as_str()) {
                // The driver compares it with what the run knows, and does what the policy says.
                Some(agent) if self.drift != DriftPolicy::Pinned => Some(agent.graph.clone()),
                _ => self.agents.graph(wanted).await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_spelling() {
        let id: RequestId = "req_0198c0ffee007000800000000000beef".parse().unwrap();
        assert_eq!(id.to_string(), "req_0198c0ffee007000800000000000beef");
        for bad in ["run_0198c0ffee007000800000000000beef", "req_", "req_0198C0FFEE007000800000000000BEEF", ""] {
            assert!(bad.parse::<RequestId>().is_err(), "{bad}");
        }
    }
}
