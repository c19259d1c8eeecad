//! Decisions by position: one for each action of a request. Where fewer come the rest is filled with the first, as far as
//! the tools allow that. All of them fit, or nothing is decided.

use holdpoint_core::decision::{Decision, Manner};
use holdpoint_core::ids::PauseId;
use holdpoint_core::json::Digest;
use holdpoint_core::message::Content;

use crate::agents::{Fill, OnNote, ServedAgent, ToolCard};
use crate::protocols::blocks::from_wire::{Choice, GivenDecision};
use crate::protocols::blocks::projection::{Ask, AskState};
use crate::protocols::blocks::refuse::{self, Code, Refused, bad_decisions, echo};

/// The decision about one pause that is still open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ruling {
    pub(super) pause: PauseId,
    pub(super) decision: Decision,
    pub(super) manner: Manner,
    /// The digest of what was shown, where the client says what it saw.
    pub(super) seen: Option<Digest>,
}

/// What a command comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rulings {
    /// One for each pause that is still open.
    pub(super) open: Vec<Ruling>,
    /// The person's words for the model, where no denial carries them.
    pub(super) note: Option<String>,
}

/// What a command means for one action, whether or not it is still open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meant {
    /// What is decided.
    pub(super) decision: Decision,
    /// What is recorded: the same, unless the person's words ask for another call.
    pub(super) recorded: Decision,
    pub(super) manner: Manner,
    seen: Option<Digest>,
}

impl Meant {
    /// A decision as it was given.
    pub(super) fn plain(decision: Decision) -> Self {
        Self { recorded: decision.clone(), decision, manner: Manner::Given, seen: None }
    }

    /// Whether the person's words stand in what is recorded.
    pub(super) fn is_revised(&self) -> bool {
        self.decision != self.recorded
    }
}

/// What the decisions of a command mean for each action of a request, in order.
pub(super) fn meant(
    asks: &[Ask],
    agent: Option<&ServedAgent>,
    given: &[GivenDecision],
    note: Option<&str>,
) -> Result<Vec<Meant>, Refused> {
    let whole = fill(asks, agent, given)?;
    let mut meant = Vec::new();
    for (index, (ask, (given, manner))) in asks.iter().zip(&whole).enumerate() {
        check(index, ask, given)?;
        let decision = decision(&given.choice);
        let recorded = match note.filter(|_| lets_run(&decision) && on_note(agent, ask) == OnNote::Revise) {
            Some(words) => Decision::deny(asked_to_revise(words)),
            None => decision.clone(),
        };
        meant.push(Meant { decision, recorded, manner: *manner, seen: given.seen });
    }
    Ok(meant)
}

/// What the decisions of a command mean for what is still open of a request.
pub(super) fn read(
    asks: &[Ask],
    agent: Option<&ServedAgent>,
    given: &[GivenDecision],
    note: Option<&str>,
) -> Result<Rulings, Refused> {
    let mut open = Vec::new();
    let mut rest = note;
    for (index, (ask, meant)) in asks.iter().zip(meant(asks, agent, given, note)?).enumerate() {
        match &ask.state {
            AskState::Open => {
                rest = rest.filter(|_| !meant.is_revised());
                let Meant { recorded: decision, manner, seen, .. } = meant;
                open.push(Ruling { pause: ask.pause, decision, manner, seen });
            }
            // What is copied is meant for those that are open.
            _ if meant.manner == Manner::Implied => {}
            settled => check_agrees(settled, &meant.decision).map_err(|refused| told_of(index, ask, asks, refused))?,
        }
    }
    Ok(Rulings { open, note: rest.map(str::to_owned) })
}

/// One decision for each action, and whether it was given for that very action.
fn fill(
    asks: &[Ask],
    agent: Option<&ServedAgent>,
    given: &[GivenDecision],
) -> Result<Vec<(GivenDecision, Manner)>, Refused> {
    let (actions, found) = (asks.len(), given.len());
    if found > actions {
        return Err(bad_decisions(format!("{found} decisions were given, and there are {actions} actions")));
    }
    let mut whole: Vec<(GivenDecision, Manner)> = given.iter().map(|one| (one.clone(), Manner::Given)).collect();
    let Some(first) = given.first() else { return Err(bad_decisions("at least one decision expected")) };
    let rest = &asks[found..];
    if !rest.is_empty() && matches!(first.choice, Choice::Edit { .. }) {
        return Err(bad_decisions("an edit is never copied to another action: send one decision for each"));
    }
    for (index, ask) in rest.iter().enumerate() {
        if needs_its_own(card(agent, ask)) {
            let at = found + index;
            let message = format!("action {at} ({}) needs a decision of its own: send one for each", echo(&ask.name));
            return Err(bad_decisions(message));
        }
        let implied = GivenDecision { choice: first.choice.clone(), tool_use_id: None, seen: None };
        whole.push((implied, Manner::Implied));
    }
    Ok(whole)
}

/// Whether the decision can be meant for this action.
fn check(index: usize, ask: &Ask, given: &GivenDecision) -> Result<(), Refused> {
    let at = format!("decisions[{index}]");
    if given.tool_use_id.is_some() && given.tool_use_id != ask.tool_use_id {
        let message = format!("{at}.tool_use_id names another call than the action at this place: look at it again");
        return Err(bad_decisions(message));
    }
    if given.seen.is_some() && given.seen != ask.args_sha256 {
        let message = format!("{at}.args_sha256 is of other arguments than those held: look at the request again");
        return Err(bad_decisions(message));
    }
    if !ask.allowed.contains(&given.choice.name()) {
        let (choice, allowed) = (given.choice.name(), ask.allowed.join(", "));
        let message = format!("{at}: {choice} is not allowed for {}; allowed: {allowed}", echo(&ask.name));
        // The others are no decisions about an ordinary call at all.
        let is_known = matches!(given.choice, Choice::Approve | Choice::Reject { .. } | Choice::Edit { .. });
        return Err(Refused::new(if is_known { Code::NotAllowed } else { Code::BadDecisions }, message));
    }
    match &given.choice {
        Choice::Edit { name, .. } if *name != ask.name => {
            let message = format!("{at}.edited_action.name must stay \"{}\"", echo(&ask.name));
            Err(Refused::new(Code::NotAllowed, message))
        }
        Choice::Edit { args, .. } if !args.is_object() => {
            let message = format!("{at}.edited_action.args: an object expected");
            Err(Refused::new(Code::InvalidArgs, message))
        }
        _ => Ok(()),
    }
}

/// Which action a decision came too late for, and what can still be done about the others.
fn told_of(index: usize, ask: &Ask, asks: &[Ask], refused: Refused) -> Refused {
    let mut message = format!("decisions[{index}] ({}): {}", echo(&ask.name), refused.message);
    if asks.iter().any(Ask::is_open) {
        let same = match &ask.state {
            AskState::Decided { decision, .. } => outcome(decision),
            AskState::Open | AskState::Expired { .. } | AskState::Withdrawn { .. } => "reject",
        };
        message.push_str(&format!("; others are still open: say {same} for this one, and decide them"));
    }
    Refused { message, ..refused }
}

/// Whether what was recorded through another door says the same.
pub(super) fn check_agrees(settled: &AskState, decision: &Decision) -> Result<(), Refused> {
    let is_denial = matches!(decision, Decision::Deny { .. });
    match settled {
        AskState::Open => Ok(()),
        AskState::Decided { decision: recorded, .. } if is_same(recorded, decision) => Ok(()),
        AskState::Expired { .. } | AskState::Withdrawn { .. } if is_denial => Ok(()),
        settled => Err(too_late(settled)),
    }
}

/// Two decisions that let the same happen. The words of a denial are told apart by who was first.
fn is_same(recorded: &Decision, given: &Decision) -> bool {
    match (recorded, given) {
        (Decision::Deny { .. }, Decision::Deny { .. }) => true,
        (recorded, given) => recorded == given,
    }
}

impl AskState {
    /// How one action ended, as somebody is told who comes later.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Decided { decision, .. } => outcome(decision),
            Self::Expired { .. } => "expired",
            Self::Withdrawn { .. } => "withdrawn",
        }
    }
}

/// What somebody is told who comes after this.
pub(super) fn too_late(settled: &AskState) -> Refused {
    match settled {
        AskState::Open => Refused::new(Code::Internal, "what is open was taken for settled"),
        AskState::Decided { decision, by, at, .. } => refuse::already_decided(outcome(decision), Some(by), *at),
        AskState::Expired { at } => refuse::expired(*at),
        AskState::Withdrawn { at } => refuse::already_decided("withdrawn", None, *at),
    }
}

/// A recorded decision, as this protocol spells it.
pub(super) fn outcome(decision: &Decision) -> &'static str {
    match decision {
        Decision::ApproveEdited { .. } => "edit",
        Decision::Deny { .. } => "reject",
        other => other.name(),
    }
}

fn decision(choice: &Choice) -> Decision {
    match choice {
        Choice::Approve => Decision::Approve,
        Choice::Reject { message } => {
            Decision::Deny { message: message.clone().filter(|text| !text.trim().is_empty()) }
        }
        Choice::Edit { args, .. } => Decision::ApproveEdited { arguments: args.clone() },
        Choice::Respond { message } => Decision::Respond { content: message.clone() },
        Choice::Happened { message } => Decision::Happened { result: Content::Text(message.clone()) },
        Choice::RunAgain => Decision::RunAgain,
        Choice::Abandon => Decision::Abandon,
    }
}

fn card<'a>(agent: Option<&'a ServedAgent>, ask: &Ask) -> Option<&'a ToolCard> {
    agent?.tools.iter().find(|card| card.agent == ask.agent && card.name.as_str() == ask.name)
}

/// Whether nobody may decide this by deciding something else.
fn needs_its_own(card: Option<&ToolCard>) -> bool {
    card.is_some_and(|card| card.explicit_decision || card.fill == Some(Fill::None))
}

fn on_note(agent: Option<&ServedAgent>, ask: &Ask) -> OnNote {
    card(agent, ask).map_or_else(OnNote::default, |card| card.on_note)
}

fn lets_run(decision: &Decision) -> bool {
    matches!(decision, Decision::Approve | Decision::ApproveEdited { .. })
}

/// What the model is told where the person's words are a wish for another call.
fn asked_to_revise(words: &str) -> String {
    format!(
        "The call was not run. The user looked at it and asks for a revised call; in their words: {words}\n\
         Ask for the call again with arguments that follow these words."
    )
}

#[cfg(test)]
mod tests;
