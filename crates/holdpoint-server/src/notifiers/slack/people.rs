//! Who may click, and as whom they decide. Whoever is not named may not: a channel's members are not its approvers.

use std::collections::BTreeMap;

use holdpoint_core::ids::ActorId;

use super::BadSlack;
use crate::access::{Caller, Role, is_reserved};

/// Somebody who may click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The workspace's id.
    pub team: String,
    /// The user's id.
    pub user: String,
    /// As whom they decide.
    pub principal: ActorId,
    /// What they are to the server.
    pub roles: Vec<Role>,
    /// Groups that they belong to.
    pub groups: Vec<String>,
}

/// Callers by workspace and user.
pub(super) struct People(BTreeMap<(String, String), Caller>);

impl People {
    pub(super) fn new(people: Vec<Person>) -> Result<Self, BadSlack> {
        let mut callers = BTreeMap::new();
        for person in people {
            if is_reserved(&person.principal) {
                return Err(BadSlack::Reserved(person.principal.to_string()));
            }
            if person.roles.is_empty() {
                return Err(BadSlack::NoRole(person.principal));
            }
            let caller = Caller {
                actor: person.principal,
                roles: person.roles.into_iter().collect(),
                groups: person.groups,
                is_solo: false,
            };
            if callers.insert((person.team.clone(), person.user.clone()), caller).is_some() {
                return Err(BadSlack::Twice { team: person.team, user: person.user });
            }
        }
        Ok(Self(callers))
    }

    /// As whom a user of a workspace decides.
    pub(super) fn caller(&self, team: &str, user: &str) -> Option<&Caller> {
        self.0.get(&(team.to_owned(), user.to_owned()))
    }

    /// Whether anybody of this workspace may click.
    pub(super) fn knows_team(&self, team: &str) -> bool {
        self.0.keys().any(|(known, _)| known == team)
    }
}
