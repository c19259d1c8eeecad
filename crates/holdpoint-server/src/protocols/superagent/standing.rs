//! How an agent's conversation in a session stands: held, under way, or neither. Read from the journal, and by the
//! store's clock: a deadline that nobody has written down yet has passed all the same.

use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{ActorId, AgentId, RunId, SessionId};
use holdpoint_core::pause::{Pause, PauseState, PauseView};
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::RunError;
use holdpoint_runtime::ports::store::RunFilter;

use super::from_wire::Place;
use super::refuse::{self, Settled};
use crate::access::{Action, Caller};
use crate::agents::ServedAgent;
use crate::app::App;
use crate::problem::Problem;

/// An agent's conversation in a session.
pub(super) struct Conversation {
    /// Whose session it is; `None` where there is none of this name.
    pub(super) owner: Option<ActorId>,
    /// How it stands.
    pub(super) standing: Standing,
}

/// How a conversation stands.
pub(super) enum Standing {
    /// Somebody must decide.
    Held(Box<Held>),
    /// A run is under way.
    Moving(Run),
    /// Nothing is: why the last pause is no longer open, if there was one.
    Idle {
        /// What became of it.
        settled: Settled,
        /// A run whose deadlines have all passed without anybody writing it down.
        overdue: Option<RunId>,
    },
}

/// A run that waits for somebody.
pub(super) struct Held {
    /// The run as it stands.
    pub(super) run: Run,
    /// The session's number of the next event.
    pub(super) next_seq: u64,
    /// The pauses that can still be decided, oldest first; at least one.
    pub(super) pauses: Vec<PauseView>,
    /// The name that pauses opened together share; that of the oldest.
    pub(super) key: String,
}

impl Conversation {
    /// How the agent's conversation in the session stands now.
    pub(super) async fn of(app: &App, session: &SessionId, agent: &AgentId) -> Result<Self, Problem> {
        let owner = match app.runtime().session(session).await {
            Ok(row) => Some(row.owner),
            Err(RunError::Refused(Refusal::SessionNotFound(_))) => None,
            Err(error) => return Err(error.into()),
        };
        let standing = match newest_run(app, session, agent).await? {
            None => Standing::Idle { settled: Settled::Never, overdue: None },
            Some(run) => {
                let entries = app.runtime().read_journal(run).await?;
                Standing::read(run, &entries, app.runtime().store().now())
            }
        };
        Ok(Self { owner, standing })
    }

    /// Whether the caller has this reach over the session. One that does not exist is nobody's.
    pub(super) fn is_within_reach(&self, caller: &Caller, action: Action) -> bool {
        self.owner.is_none() || caller.sees(action, self.owner.as_ref())
    }
}

impl Standing {
    fn read(id: RunId, entries: &[Entry], now: Timestamp) -> Self {
        let run = Run::fold(id, entries.iter().flat_map(Entry::timed));
        let is_due = |view: &PauseView| deadline(&view.pause).is_some_and(|end| end <= now);
        let (overdue, pauses): (Vec<PauseView>, Vec<PauseView>) = run.open_pauses().into_iter().partition(is_due);
        match (run.end(), pauses.first(), overdue.last()) {
            (Some(_), _, _) => Self::Idle { settled: settled(&run), overdue: None },
            (None, Some(first), _) => {
                let key = key_of(entries, &run, first);
                let next_seq = entries.last().map_or(1, |last| last.seq + last.events.len() as u64);
                Self::Held(Box::new(Held { run, next_seq, pauses, key }))
            }
            (None, None, Some(last)) => {
                let settled = Settled::Expired(deadline(&last.pause).unwrap_or(now));
                Self::Idle { settled, overdue: Some(id) }
            }
            (None, None, None) => Self::Moving(run),
        }
    }

    /// Why nothing waits, where nothing does.
    pub(super) fn settled(&self) -> Settled {
        match self {
            Self::Held(_) => Settled::Never,
            Self::Moving(run) => settled(run),
            Self::Idle { settled, .. } => *settled,
        }
    }
}

/// The agent that a client means, and its conversation in the session. What waits is shown and answered by the version
/// of the agent that it waits in, also where the file has changed or is gone since.
pub(super) async fn find(app: &App, place: &Place) -> Result<(Arc<ServedAgent>, Conversation), Problem> {
    let nobody = || refuse::agent_not_found(&place.agent);
    let root = AgentId::root(&place.agent).map_err(|_| nobody())?;
    let conversation = Conversation::of(app, &place.session, &root).await?;
    let held = match &conversation.standing {
        Standing::Held(held) => app.agents().version(&app.runtime().agent_wanted(held.run.id()).await?).await,
        Standing::Moving(_) | Standing::Idle { .. } => None,
    };
    let agent = held.or_else(|| app.agents().find(&place.agent)).ok_or_else(nobody)?;
    Ok((agent, conversation))
}

/// The run that the agent began last in the session: an earlier one is over, or there would be no later one.
async fn newest_run(app: &App, session: &SessionId, agent: &AgentId) -> Result<Option<RunId>, Problem> {
    let filter =
        RunFilter { session: Some(session.clone()), agent: Some(agent.clone()), limit: 1, ..RunFilter::default() };
    Ok(app.runtime().list_runs(&filter).await?.runs.first().map(|row| row.run))
}

fn deadline(pause: &Pause) -> Option<Timestamp> {
    match pause.state {
        PauseState::Open { expires_at } => expires_at,
        _ => None,
    }
}

/// What became of the pause that was settled last.
fn settled(run: &Run) -> Settled {
    let when = |pause: &Pause| match &pause.state {
        PauseState::Decided(decided) => Some((decided.at, Settled::Decided(decided.at))),
        PauseState::Expired { at } => Some((*at, Settled::Expired(*at))),
        PauseState::Open { .. } | PauseState::Withdrawn { .. } => None,
    };
    run.pauses().iter().filter_map(when).max_by_key(|(at, _)| *at).map_or(Settled::Never, |(_, settled)| settled)
}

/// The name that the pauses opened together with this one share.
fn key_of(entries: &[Entry], run: &Run, view: &PauseView) -> String {
    let opens = |event: &RunEvent| matches!(event, RunEvent::PauseOpened(opened) if opened.number == view.id().number);
    let opening = entries.iter().find(|entry| entry.events.iter().any(opens));
    let group = opening.and_then(|entry| entry.pause_group).unwrap_or_default();
    format!("{}_{group}", run.session().map_or("", SessionId::as_str))
}
