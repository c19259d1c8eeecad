//! What a session waits for, as clients read it.

use holdpoint_core::ids::{AgentId, SessionId};
use holdpoint_core::pause::{PauseState, PauseView};
use holdpoint_core::time::Timestamp;

use super::form::Form;
use super::standing::Held;
use super::wire::{Interrupt, InterruptState};
use super::words::Words;
use crate::agents::ServedAgent;

/// The form of what is held.
pub(super) fn form(held: &Held, agent: &ServedAgent) -> Form {
    let own: &AgentId = agent.graph.root();
    Form::of(&held.pauses, own, agent.interrupt.as_ref(), Words::of(agent.locale.as_deref()))
}

/// What is held, as `interrupt_state` and the legacy mode say it.
pub(super) fn state(held: &Held, agent: &ServedAgent, session: &SessionId) -> InterruptState {
    let form = form(held, agent);
    InterruptState {
        session_id: session.to_string(),
        agent_name: agent.name.clone(),
        fields: form.to_wire(),
        reason: form.reason,
        timestamp: opened_at(held).as_millis() / 1_000,
        checkpoint_id: checkpoint(held, agent, session),
    }
}

/// What is held, as the A2UI mode says it.
pub(super) fn interrupt(held: &Held, agent: &ServedAgent) -> Interrupt {
    let form = form(held, agent);
    Interrupt {
        fields: form.to_wire(),
        reason: form.reason,
        approval_key: held.key.clone(),
        expires_at: held.pauses.iter().filter_map(expires_at).min().map(|end| end.as_millis() / 1_000),
    }
}

/// The name of what is held: another one is another form.
pub(super) fn checkpoint(held: &Held, agent: &ServedAgent, session: &SessionId) -> String {
    let nanos = i128::from(opened_at(held).as_millis()) * 1_000_000;
    format!("{}_{session}_{nanos}", agent.name)
}

/// Since when something is held.
fn opened_at(held: &Held) -> Timestamp {
    held.pauses.iter().map(|view| view.pause.opened_at).min().unwrap_or(Timestamp::from_millis(0))
}

fn expires_at(view: &PauseView) -> Option<Timestamp> {
    match view.pause.state {
        PauseState::Open { expires_at } => expires_at,
        _ => None,
    }
}
