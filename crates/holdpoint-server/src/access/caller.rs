//! Who calls: an actor with roles, and the checks that handlers make.

use std::collections::BTreeSet;

use axum::extract::FromRequestParts;
use holdpoint_core::ids::ActorId;
use http::request::Parts;

use super::roles::{Action, Reach, Role, may};
use crate::problem::{Code, Problem};

/// Who calls. Handlers take it as an argument; the access layer has put it there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who it is, as decisions record it.
    pub actor: ActorId,
    /// What they are to the server.
    pub roles: BTreeSet<Role>,
    /// Groups that they belong to, as pauses name approvers.
    pub groups: Vec<String>,
    /// Whether the server runs without credentials on loopback, so that everybody is the person at the machine.
    pub is_solo: bool,
}

impl Caller {
    /// The person at the machine of a server without credentials.
    pub fn solo() -> Self {
        Self { actor: ActorId::local(), roles: Role::ALL.into_iter().collect(), groups: Vec::new(), is_solo: true }
    }

    /// How far the caller's roles let them do this.
    pub fn reach(&self, action: Action) -> Reach {
        self.roles.iter().map(|role| may(*role, action)).max().unwrap_or(Reach::Nothing)
    }

    /// Refuses what none of the caller's roles allows.
    ///
    /// # Errors
    /// 403 `forbidden`.
    pub fn check(&self, action: Action) -> Result<Reach, Problem> {
        match self.reach(action) {
            Reach::Nothing => {
                let roles: Vec<&str> = self.roles.iter().map(|role| role.name()).collect();
                let detail = format!(
                    "your role ({}) may not {}; ask an administrator for one that may",
                    roles.join(", "),
                    action.name()
                );
                Err(Problem::new(Code::FORBIDDEN, detail))
            }
            reach => Ok(reach),
        }
    }

    /// Whether something that `owner` began is in the caller's reach. What is not must look as if it did not exist.
    pub fn sees(&self, action: Action, owner: Option<&ActorId>) -> bool {
        match self.reach(action) {
            Reach::All => true,
            Reach::Own => owner == Some(&self.actor),
            Reach::Nothing => false,
        }
    }

    /// The names under which pauses may list the caller as an approver: roles as `role:approver`, groups as they are.
    pub fn approver_names(&self) -> Vec<String> {
        let roles = self.roles.iter().map(|role| format!("role:{}", role.name()));
        roles.chain(self.groups.iter().cloned()).collect()
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // The access layer lets nobody through without one; a router that was built without it lets nobody in.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| Problem::internal("a route outside the access layer"))
    }
}
