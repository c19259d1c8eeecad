//! A pause as the native API tells it.

use anyhow::{Context as _, Result};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::pause::PauseKind;
use serde::{Deserialize, Serialize};

use crate::asked::{About, Asked};

/// A pause as the native API tells it; what is not needed here is passed over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Pause {
    pub(super) id: String,
    pub(super) kind: PauseKind,
    pub(super) status: String,
    pub(super) session_id: String,
    pub(super) run_id: String,
    pub(super) agent: String,
    pub(super) tool: Option<String>,
    pub(super) args: Option<CanonicalJson>,
    pub(super) args_sha256: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) rule: Option<String>,
    #[serde(default = "one")]
    pub(super) approvals_needed: u32,
    #[serde(default)]
    pub(super) approvals: Vec<serde_json::Value>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unreadable: bool,
    pub(super) created_at: String,
    pub(super) expires_at: Option<String>,
}

fn one() -> u32 {
    1
}

/// A page of pauses.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub(super) pauses: Vec<Pause>,
    pub(super) next_cursor: Option<String>,
}

impl Pause {
    /// The pause as a person is asked about it.
    pub(super) fn asked(&self) -> Result<Asked> {
        let about = match (&self.tool, &self.args, &self.args_sha256) {
            (Some(tool), Some(arguments), Some(digest)) => About::Call {
                tool: tool.clone(),
                arguments: arguments.clone(),
                digest: digest.parse().map_err(anyhow::Error::msg).context("the digest of the arguments")?,
            },
            _ => About::Words(self.reason.clone().unwrap_or_default()),
        };
        Ok(Asked {
            id: self.id.parse().context("the pause's id")?,
            kind: self.kind,
            agent: self.agent.clone(),
            about,
            reason: self.reason.clone(),
            rule: self.rule.clone(),
            expires_at: self.expires_at.as_deref().and_then(|at| at.parse().ok()),
            approvals: (self.approvals_needed, u32::try_from(self.approvals.len()).unwrap_or(u32::MAX)),
        })
    }
}
