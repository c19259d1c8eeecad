//! Versions that are no longer served and that some run still needs, rebuilt from what was stored with them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::json::Digest;
use holdpoint_runtime::worker::AgentWanted;
use serde_json::Value;

use crate::agents::build::{Bundle, Workshop};
use crate::agents::card::ServedAgent;

/// How many versions are kept at hand.
const VERSIONS_MAX: usize = 256;

/// Versions that were rebuilt.
#[derive(Default)]
pub(super) struct Versions {
    whole: Shelf,
    /// Such as can be shown and not run.
    hollow: Shelf,
}

/// Some versions, the one asked for last at the end.
#[derive(Default)]
struct Shelf(Mutex<VecDeque<(Digest, Arc<ServedAgent>)>>);

impl Versions {
    /// A version, rebuilt where it is not at hand.
    pub(super) async fn find(
        &self,
        wanted: &AgentWanted,
        source: &Value,
        workshop: &Arc<Workshop>,
    ) -> Option<Arc<ServedAgent>> {
        if let Some(known) = self.whole.known(&wanted.digest) {
            return Some(known);
        }
        let (source, workshop) = (source.clone(), workshop.clone());
        // Certificates and scripts are read from disk.
        let built = tokio::task::spawn_blocking(move || rebuild(&source, &workshop)).await;
        match built.unwrap_or_else(|_| Err("it panicked".to_owned())) {
            Ok(agent) => {
                let agent = Arc::new(agent);
                self.whole.keep(wanted.digest, agent.clone());
                Some(agent)
            }
            Err(problem) => {
                tracing::error!(
                    target: "holdpoint::agents",
                    agent = %wanted.root,
                    digest = %wanted.digest,
                    problem,
                    "the version that a run began with cannot be built; the run waits"
                );
                None
            }
        }
    }

    /// A version to be shown and never to be run, rebuilt where it is not at hand.
    pub(super) async fn find_shown(
        &self,
        wanted: &AgentWanted,
        source: &Value,
        workshop: &Arc<Workshop>,
    ) -> Option<Arc<ServedAgent>> {
        let digest = &wanted.digest;
        if let Some(known) = self.whole.known(digest).or_else(|| self.hollow.known(digest)) {
            return Some(known);
        }
        let (source, workshop) = (source.clone(), workshop.clone());
        let built = tokio::task::spawn_blocking(move || match rebuild(&source, &workshop) {
            Ok(whole) => Ok((whole, true)),
            Err(_) => rebuild(&source, &workshop.hollow()).map(|hollow| (hollow, false)),
        });
        match built.await.unwrap_or_else(|_| Err("it panicked".to_owned())) {
            Ok((agent, is_whole)) => {
                let agent = Arc::new(agent);
                let shelf = if is_whole { &self.whole } else { &self.hollow };
                shelf.keep(*digest, agent.clone());
                Some(agent)
            }
            Err(problem) => {
                tracing::warn!(
                    target: "holdpoint::agents",
                    agent = %wanted.root,
                    %digest,
                    problem,
                    "the version that a run began with cannot be read; the run is shown as its agent is now"
                );
                None
            }
        }
    }
}

impl Shelf {
    fn known(&self, digest: &Digest) -> Option<Arc<ServedAgent>> {
        let mut known = self.lock();
        let at = known.iter().position(|(of, _)| of == digest)?;
        let found = known.remove(at)?;
        known.push_back(found.clone());
        Some(found.1)
    }

    fn keep(&self, digest: Digest, agent: Arc<ServedAgent>) {
        let mut known = self.lock();
        if known.len() >= VERSIONS_MAX {
            known.pop_front();
        }
        known.push_back((digest, agent));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Digest, Arc<ServedAgent>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rebuild(source: &Value, workshop: &Workshop) -> Result<ServedAgent, String> {
    let bundle = Bundle::from_json(source).map_err(|problem| problem.to_string())?;
    workshop.build(&bundle).map_err(|problems| {
        let told = problems.iter().map(|problem| format!("{} {}: {}", problem.agent, problem.path, problem.message));
        told.collect::<Vec<_>>().join("; ")
    })
}
