//! `message`: somebody says something to an agent, and a run begins. Where one waits in the session, its agent's settings
//! say what becomes of the message.

use std::sync::Arc;

use holdpoint_core::event::RunStarted;
use holdpoint_core::ids::{AgentId, RunId, SessionId};
use holdpoint_core::input::SupersedeInput;
use holdpoint_core::message::Content;
use holdpoint_core::pause::PauseState;
use holdpoint_core::run::Run;
use holdpoint_runtime::DriveOptions;
use holdpoint_runtime::ports::store::{RunFilter, RunStatus};
use holdpoint_runtime::use_cases::StartRun;

use super::{Done, VIA, drive};
use crate::access::{Action, Caller, Reach};
use crate::agents::{ServedAgent, WhileHeld};
use crate::app::App;
use crate::protocols::blocks::from_wire::Message;
use crate::protocols::blocks::idempotency;
use crate::protocols::blocks::kept::Told;
use crate::protocols::blocks::projection::Use;
use crate::protocols::blocks::refuse::{self, Refused};
use crate::protocols::blocks::standing::{look, visible};

/// A message that was read and may be sent.
struct Sending<'a> {
    app: &'a App,
    caller: &'a Caller,
    request_id: Option<&'a str>,
    agent: Arc<ServedAgent>,
    session: SessionId,
    content: Content,
    run: RunId,
}

/// Begins a run with a message, or hands it to the one that is under way.
pub(in crate::protocols::blocks) async fn message(
    app: &App,
    caller: &Caller,
    request_id: Option<&str>,
    message: Message,
    (session, run): (SessionId, RunId),
) -> Result<Done, Refused> {
    caller.check(Action::StartRun)?;
    let agent = app.agents().find(&message.agent).ok_or_else(refuse::unknown_agent)?;
    let content = Content::Text(message.content);
    let sending = Sending { app, caller, request_id, agent, session, content, run };
    if let Some(done) = sending.repeated().await? {
        return Ok(done);
    }
    match sending.under_way().await? {
        None => {
            sending.check_nobody_waits().await?;
            sending.start().await
        }
        Some(run) => sending.hand_over(&run).await,
    }
}

impl Sending<'_> {
    /// What the same command came to before. A name under which something else was done in the session is refused.
    async fn repeated(&self) -> Result<Option<Done>, Refused> {
        if self.request_id.is_some()
            && let Some(before) = idempotency::started(self.app.runtime(), self.run).await?
        {
            self.check_same(&before)?;
            return Ok(Some(self.started(true)));
        }
        // A session that is not there yet is nobody's.
        let Some(events) = visible(self.app, self.caller, Action::ReadRun, &self.session).await? else {
            return Ok(None);
        };
        let Some(name) = self.request_id else { return Ok(None) };
        let used = |told: &Told| told.truth.named(&self.caller.actor, name).cloned();
        match self.app.blocks().kept().look(self.app, &self.session, events, used).await? {
            None => Ok(None),
            Some(Use::Message(run)) => {
                let handed = idempotency::handed_over(self.app.runtime(), run, &self.caller.actor, name).await?;
                match handed.is_some_and(|content| content == self.content) {
                    true => Ok(Some(Done::Queued { session: self.session.clone(), run })),
                    false => Err(refuse::request_id_reused()),
                }
            }
            Some(Use::Approval(_) | Use::Cancel(_)) => Err(refuse::request_id_reused()),
        }
    }

    fn check_same(&self, before: &RunStarted) -> Result<(), Refused> {
        let asked = (self.agent.graph.root(), &self.session, &self.content);
        let is_same = (&before.agent.id, &before.session, &before.input) == asked;
        if is_same { Ok(()) } else { Err(refuse::request_id_reused()) }
    }

    fn started(&self, is_repeat: bool) -> Done {
        Done::Started { session: self.session.clone(), run: self.run, is_repeat }
    }

    /// The agent's run in the session that is not over.
    async fn under_way(&self) -> Result<Option<Run>, Refused> {
        let agent: AgentId = self.agent.graph.root().clone();
        let filter =
            RunFilter { session: Some(self.session.clone()), agent: Some(agent), limit: 1, ..RunFilter::default() };
        let runtime = self.app.runtime();
        match runtime.list_runs(&filter).await?.runs.first() {
            Some(row) if row.status != RunStatus::Finished => {
                let run = runtime.read_run(row.run).await?;
                Ok(run.end().is_none().then_some(run))
            }
            _ => Ok(None),
        }
    }

    /// Refuses a message while another agent of the session waits for somebody: what is asked there comes first, and is not
    /// this agent's to queue behind or to supersede.
    async fn check_nobody_waits(&self) -> Result<(), Refused> {
        let runtime = self.app.runtime();
        let waiting = RunFilter {
            session: Some(self.session.clone()),
            status: Some(RunStatus::Waiting),
            limit: 1,
            ..RunFilter::default()
        };
        match runtime.list_runs(&waiting).await?.runs.first() {
            Some(row) => Err(self.busy(&runtime.read_run(row.run).await?).await?),
            None => Ok(()),
        }
    }

    async fn start(&self) -> Result<Done, Refused> {
        let Self { app, caller, agent, run, .. } = self;
        let start = StartRun {
            graph: agent.graph.clone(),
            content: self.content.clone(),
            session: Some(self.session.clone()),
            turns_max: agent.turns_max.or(app.runtime().settings().turns_max),
            by: caller.actor.clone(),
            options: DriveOptions { commit_first: true, commit_before_models: true, ..DriveOptions::default() },
            // Others' sessions are out of reach for those who see only their own.
            only_owner: caller.reach(Action::ReadRun) != Reach::All,
            run: Some(*run),
        };
        let Err(error) = drive::begin(app, start, &self.session, *run).await else {
            // Two different messages may have come under one name at the same time: what was stored counts.
            if self.request_id.is_some()
                && let Some(stored) = idempotency::started(app.runtime(), *run).await?
            {
                self.check_same(&stored)?;
            }
            return Ok(self.started(false));
        };
        // The same command may have come twice at the same time, and the other one was faster.
        if let Some(done) = self.repeated().await? {
            return Ok(done);
        }
        // Another message may have been faster.
        match self.under_way().await? {
            Some(run) => Err(self.busy(&run).await?),
            None => Err(error.into()),
        }
    }

    /// What the agent's settings make of a message that finds a run under way.
    async fn hand_over(&self, run: &Run) -> Result<Done, Refused> {
        let Self { app, caller, content, .. } = self;
        let is_waiting = run.pauses().iter().any(|pause| is_open(&pause.state, app));
        match (self.agent.on_message_while_held, is_waiting) {
            (WhileHeld::Refuse, _) => return Err(self.busy(run).await?),
            (WhileHeld::Supersede, true) => {
                let supersede = SupersedeInput {
                    content: content.clone(),
                    by: caller.actor.clone(),
                    via: Some(VIA.to_owned()),
                    request: self.request_id.map(str::to_owned),
                };
                app.runtime().supersede(run.id(), supersede).await?;
            }
            (WhileHeld::Queue | WhileHeld::Supersede, _) => {
                let request = self.request_id.map(str::to_owned);
                app.runtime().stage_input_as(run.id(), content.clone(), caller.actor.clone(), request).await?;
            }
        }
        drive::go_on(app, run.id(), caller.actor.clone());
        Ok(Done::Queued { session: self.session.clone(), run: run.id() })
    }

    /// Why a message is not taken now: the request that waits, by its key, or a run that is at work.
    async fn busy(&self, run: &Run) -> Result<Refused, Refused> {
        if !run.pauses().iter().any(|pause| pause.is_open()) {
            return Ok(refuse::busy());
        }
        if !run.pauses().iter().any(|pause| is_open(&pause.state, self.app)) {
            // What only waits because nobody has written its deadline down is about to go on.
            self.app.runtime().expire_pauses(1_024).await?;
            drive::go_on(self.app, run.id(), self.caller.actor.clone());
            return Ok(refuse::busy());
        }
        look(self.app, self.caller, Action::ReadRun, &self.session, |told| {
            let waits = told.truth.open().find(|request| request.run == run.id());
            waits.map_or_else(refuse::busy, |request| refuse::held(&request.key))
        })
        .await
    }
}

/// Whether somebody can still decide, by the store's clock.
fn is_open(state: &PauseState, app: &App) -> bool {
    match state {
        PauseState::Open { expires_at } => expires_at.is_none_or(|end| end > app.runtime().store().now()),
        _ => false,
    }
}
