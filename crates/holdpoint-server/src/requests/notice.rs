//! Tells whoever asked that their request was cancelled. The run that carried the request is over then, so that another
//! run does it, which is begun before the first one ends: a crash in between loses nothing.

use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::message::Content;
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::context::Context;
use holdpoint_runtime::use_cases::StartRun;
use holdpoint_runtime::{DriveOptions, RunError, Runtime};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Builder;

use super::agent::Source;
use super::{Desk, RequestFile, RequestId};
use crate::app::App;
use crate::problem::Problem;

/// The context of a run that tells of a request's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Notice {
    holdpoint_callback_of: RunId,
}

impl Notice {
    /// The request that it tells of.
    pub(super) fn request(self) -> RequestId {
        RequestId(self.holdpoint_callback_of)
    }
}

/// The run that tells of a request's end: there is one for each request, so that nobody is told twice.
pub(super) fn run_of(request: RequestId) -> RunId {
    let digest: [u8; 32] = Sha256::digest(format!("holdpoint notice of {request}")).into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    RunId::new(Builder::from_custom_bytes(bytes).into_uuid())
}

/// What the run that tells of a request's end has done so far, if it has begun.
///
/// # Errors
/// The store is out of order.
pub(super) async fn journal(runtime: &Runtime, request: RequestId) -> Result<Option<Vec<Entry>>, RunError> {
    match runtime.read_journal(run_of(request)).await {
        Ok(entries) => Ok(Some(entries)),
        Err(RunError::Refused(Refusal::RunNotFound(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Desk {
    /// The start of the run that tells of a request's end.
    fn notice(&self, file: &RequestFile) -> Result<StartRun, Refusal> {
        let run = &file.dossier.run;
        let agent = run.agent().map(|agent| agent.id.to_string()).unwrap_or_default();
        let context = Context::new(&Notice { holdpoint_callback_of: file.id.0 })
            .map_err(|problem| Refusal::InvalidDefinition(format!("the notice cannot be stored: {problem}")))?;
        let own = run_of(file.id);
        Ok(StartRun {
            graph: self.graph(&Source::new(&agent, &file.tool))?,
            content: Content::Text("The request was cancelled.".to_owned()),
            session: Some(Runtime::own_session(own)),
            turns_max: None,
            by: run.started_by().cloned().unwrap_or_else(ActorId::local),
            options: DriveOptions { context: Some(context), ..DriveOptions::default() },
            only_owner: true,
            run: Some(own),
        })
    }
}

impl App {
    /// Ends a run. Where it carries a request whose outcome somebody waits to be told, they are.
    ///
    /// # Errors
    /// The run is over, or the store is out of order.
    pub(crate) async fn cancel_run(
        &self,
        run: RunId,
        by: ActorId,
        reason: String,
        name: Option<String>,
    ) -> Result<Run, Problem> {
        let request = RequestFile::read(self.runtime(), RequestId(run)).await?;
        let told = request.filter(|file| !file.is_settled() && file.callback.is_some());
        if let Some(file) = &told {
            self.begin_notice(file).await?;
        }
        let cancelled = self.runtime().cancel_run_as(run, by, reason, name).await?;
        if let Some(file) = &told {
            self.go_on(run_of(file.id));
        }
        Ok(cancelled)
    }

    /// Begins the run that tells of a request's end, unless it has begun.
    async fn begin_notice(&self, file: &RequestFile) -> Result<(), Problem> {
        if journal(self.runtime(), file.id).await?.is_some() {
            return Ok(());
        }
        match self.start(self.desk().notice(file)?).begun().await {
            // Somebody else cancels it at the same time.
            Err(_) if journal(self.runtime(), file.id).await?.is_some() => Ok(()),
            begun => begun,
        }
    }
}
