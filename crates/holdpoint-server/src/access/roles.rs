//! What each role may do: one function, and a test over the whole table.

use serde::{Deserialize, Serialize};

/// What a caller is to the server. A caller may have several roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Starts runs and asks for approvals; sees and answers what is its own, and approves nothing.
    Agent,
    /// Decides pauses.
    Approver,
    /// Everything.
    Admin,
    /// Sees everything and changes nothing.
    Auditor,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Approver, Self::Admin, Self::Auditor];

    /// The role's name, as configuration and pauses spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Approver => "approver",
            Self::Admin => "admin",
            Self::Auditor => "auditor",
        }
    }

    /// The role of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// What a caller wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// See which agents there are.
    ReadAgents,
    /// Start a run, or say more in one.
    StartRun,
    /// See runs, sessions, what was said in them and what happens there.
    ReadRun,
    /// End a run.
    CancelRun,
    /// See pauses.
    ReadPause,
    /// Answer a question or a confirmation, or deny a call.
    Answer,
    /// Let a held call run, or settle one that is in doubt.
    Approve,
    /// Make a standing rule together with a decision.
    MakeRule,
    /// See standing rules.
    ReadRules,
    /// Take a standing rule back.
    RevokeRule,
    /// Read and verify the record of decisions.
    ReadAudit,
    /// Ask for an approval on behalf of an agent that runs elsewhere.
    MakeRequest,
    /// See what became of such a request.
    ReadRequest,
    /// Read metrics.
    ReadMetrics,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 14] = [
        Self::ReadAgents,
        Self::StartRun,
        Self::ReadRun,
        Self::CancelRun,
        Self::ReadPause,
        Self::Answer,
        Self::Approve,
        Self::MakeRule,
        Self::ReadRules,
        Self::RevokeRule,
        Self::ReadAudit,
        Self::MakeRequest,
        Self::ReadRequest,
        Self::ReadMetrics,
    ];

    /// What the action is called, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadAgents => "see agents",
            Self::StartRun => "start runs",
            Self::ReadRun => "see runs",
            Self::CancelRun => "cancel runs",
            Self::ReadPause => "see pauses",
            Self::Answer => "answer pauses",
            Self::Approve => "approve calls",
            Self::MakeRule => "make standing rules",
            Self::ReadRules => "see standing rules",
            Self::RevokeRule => "revoke standing rules",
            Self::ReadAudit => "read the audit",
            Self::MakeRequest => "ask for approvals",
            Self::ReadRequest => "see requests for approval",
            Self::ReadMetrics => "read metrics",
        }
    }
}

/// How far an action reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// The role does not allow it.
    Nothing,
    /// Only what the caller began.
    Own,
    /// Everything.
    All,
}

/// What a role may do, and how far.
pub fn may(role: Role, action: Action) -> Reach {
    use Action::{
        Answer, Approve, CancelRun, MakeRequest, MakeRule, ReadAgents, ReadAudit, ReadMetrics, ReadPause, ReadRequest,
        ReadRules, ReadRun, RevokeRule, StartRun,
    };
    match (role, action) {
        (Role::Admin, _) => Reach::All,
        (Role::Agent, ReadAgents | StartRun | MakeRequest) => Reach::All,
        (Role::Agent, ReadRun | CancelRun | ReadPause | Answer | ReadRules | ReadRequest) => Reach::Own,
        (Role::Agent, Approve | MakeRule | RevokeRule | ReadAudit | ReadMetrics) => Reach::Nothing,
        (Role::Approver, ReadAgents | ReadRun | ReadPause | ReadRules | ReadRequest) => Reach::All,
        (Role::Approver, Answer | Approve | MakeRule | RevokeRule) => Reach::All,
        (Role::Approver, StartRun | CancelRun | MakeRequest | ReadAudit | ReadMetrics) => Reach::Nothing,
        (Role::Auditor, ReadAgents | ReadRun | ReadPause | ReadRules | ReadAudit | ReadRequest | ReadMetrics) => {
            Reach::All
        }
        (Role::Auditor, StartRun | CancelRun | Answer | Approve | MakeRule | RevokeRule | MakeRequest) => {
            Reach::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per action, one letter per role: `.` nothing, `o` own, `A` all.
    const TABLE: &str = "
        action                        agent approver admin auditor
        see agents                    A A A A
        start runs                    A . A .
        see runs                      o A A A
        cancel runs                   o . A .
        see pauses                    o A A A
        answer pauses                 o A A .
        approve calls                 . A A .
        make standing rules           . A A .
        see standing rules            o A A A
        revoke standing rules         . A A .
        read the audit                . . A A
        ask for approvals             A . A .
        see requests for approval     o A A A
        read metrics                  . . A A";

    #[test]
    fn every_role_may_do_what_the_table_says_and_nothing_else() {
        let rows: Vec<&str> = TABLE.lines().map(str::trim).filter(|line| !line.is_empty()).skip(1).collect();
        assert_eq!(rows.len(), Action::ALL.len());
        for (row, action) in rows.into_iter().zip(Action::ALL) {
            let letters: Vec<&str> = row.rsplitn(5, ' ').collect();
            assert_eq!(letters[4].trim(), action.name());
            for (role, letter) in Role::ALL.into_iter().zip(letters[..4].iter().rev()) {
                let reach = match *letter {
                    "." => Reach::Nothing,
                    "o" => Reach::Own,
                    _ => Reach::All,
                };
                assert_eq!(may(role, action), reach, "{} {}", role.name(), action.name());
            }
        }
    }

    #[test]
    fn roles_are_found_by_their_names() {
        for role in Role::ALL {
            assert_eq!(Role::named(role.name()), Some(role));
        }
        assert_eq!(Role::named("root"), None);
    }
}
