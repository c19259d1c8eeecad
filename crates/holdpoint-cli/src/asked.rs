//! A pause as a person is asked about it in the terminal, whether it comes from a store at hand or from a server.

use holdpoint_core::ids::PauseId;
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::pause::{PauseKind, PauseState, PauseView, Question, Subject, questions};
use holdpoint_core::time::Timestamp;

/// What a person is asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The pause.
    pub id: PauseId,
    /// What kind of question it is.
    pub kind: PauseKind,
    /// The agent that asks, by its place.
    pub agent: String,
    /// What it is about.
    pub about: About,
    /// Why it is asked, in the operator's words.
    pub reason: Option<String>,
    /// The rule that holds the call.
    pub rule: Option<String>,
    /// Until when it can be answered.
    pub expires_at: Option<Timestamp>,
    /// How many must approve, and how many have.
    pub approvals: (u32, u32),
}

/// What a pause is about.
#[derive(Debug, Clone)]
pub enum About {
    /// A call of a tool.
    Call {
        /// The tool.
        tool: String,
        /// Exactly what would run.
        arguments: CanonicalJson,
        /// What a decision binds to.
        digest: Digest,
    },
    /// The model's own words.
    Words(String),
}

impl Asked {
    /// A pause as it stands in a store. `agent` is the name of the agent that asks.
    pub fn of(view: &PauseView) -> Self {
        let about = match (&view.call, &view.pause.subject) {
            (Some(call), _) => {
                About::Call { tool: call.tool.to_string(), arguments: call.arguments.clone(), digest: call.digest }
            }
            (None, Subject::Words { text, .. }) => About::Words(text.clone()),
            (None, Subject::Call { path, .. }) => About::Words(format!("call {path}")),
        };
        let expires_at = match &view.pause.state {
            PauseState::Open { expires_at } => *expires_at,
            _ => None,
        };
        let given = u32::try_from(view.pause.approvals.len()).unwrap_or(u32::MAX);
        Self {
            id: view.pause.id,
            kind: view.pause.kind,
            agent: view.agent.to_string(),
            about,
            reason: view.pause.reason.clone(),
            rule: view.pause.terms.rule.clone(),
            expires_at,
            approvals: (view.pause.approvals_needed(), given),
        }
    }

    /// The digest that a decision binds to; none where the model's own words are the question.
    pub fn digest(&self) -> Option<Digest> {
        match &self.about {
            About::Call { digest, .. } => Some(*digest),
            About::Words(_) => None,
        }
    }

    /// The questions that are asked; empty unless it is a pause of that kind.
    pub fn questions(&self) -> Vec<Question> {
        match (&self.about, self.kind) {
            (About::Call { arguments, .. }, PauseKind::Question) => questions(arguments).unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}
