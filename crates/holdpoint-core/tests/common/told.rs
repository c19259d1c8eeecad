//! Events in short form, one line each.

use holdpoint_core::decision::{Decision, Manner};
use holdpoint_core::event::{RunEnd, RunEvent};
use holdpoint_core::ids::{CallPath, FramePath};
use holdpoint_core::message::{Content, Item};
use holdpoint_core::pause::PauseKind;
use holdpoint_core::policy::{AgentScope, OnTimeout, PauseTerms, RuleEffect};
use holdpoint_core::step::Step;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{Allowance, Outcome};
use holdpoint_core::{Run, record::Entry};

use super::World;

/// One event as one line.
pub fn told(event: &RunEvent, world: &World) -> String {
    match event {
        RunEvent::RunStarted(started) => format!("run started {}", started.agent.id),
        RunEvent::GuardrailsRan(ran) => {
            let results = ran.results.iter().map(|result| match &result.objection {
                None => format!("{} passed", result.name),
                Some(objection) => format!("{} objected {objection:?}", result.name),
            });
            format!("guardrails ran {} {}", place(&ran.at), results.collect::<Vec<_>>().join(", "))
        }
        RunEvent::ModelReplied(replied) => {
            let repeats = replied.calls.iter().filter_map(|call| call.repeats.as_ref());
            let repeats: String = repeats.map(|path| format!(" repeating {path}")).collect();
            let admitted =
                if replied.admitted > 0 { format!(" having seen {}", replied.admitted) } else { String::new() };
            format!("model replied{}{repeats}{admitted}", in_frame(&replied.frame))
        }
        RunEvent::ReplyRefused(refused) => format!("reply refused{} {}", in_frame(&refused.frame), refused.code),
        RunEvent::CallAllowed(allowed) => format!("call allowed {} by {}", allowed.call, allowance(&allowed.by)),
        RunEvent::CallDenied(denied) => {
            let rule = denied.rule.map(|rule| format!(" rule {}", rule.number)).unwrap_or_default();
            format!("call denied {} by {}{rule}", denied.call, denied.by)
        }
        RunEvent::PauseOpened(opened) => {
            let what = match opened.kind {
                PauseKind::Confirmation => format!("confirmation {}", place(&opened.at)),
                kind => format!("{} {} {}", kind.name(), opened.at, call_line(world, &opened.at)),
            };
            let until = opened.expires_at.map(|end| format!(" until {}", offset(end, world.now))).unwrap_or_default();
            let because = opened.reason.as_ref().map(|reason| format!(" because {reason:?}")).unwrap_or_default();
            format!("pause opened #{} {what}{until}{because}{}", opened.number, terms(&opened.terms()))
        }
        RunEvent::PauseVoted(voted) => format!("pause voted #{} by {}", voted.number, voted.by),
        RunEvent::PauseDecided(decided) => {
            let rule = decided.rule.map(|rule| format!(" rule {}", rule.number)).unwrap_or_default();
            let manner = match decided.manner {
                Manner::Given => String::new(),
                manner => format!(" {}", manner.name()),
            };
            format!("pause decided #{} {} by {}{rule}{manner}", decided.number, decision(&decided.decision), decided.by)
        }
        RunEvent::PauseExpired(expired) => format!("pause expired #{}", expired.number),
        RunEvent::PauseWithdrawn(withdrawn) => format!("pause withdrawn #{}", withdrawn.number),
        RunEvent::CallStarted(started) => format!("call started {}", started.call),
        RunEvent::CallReleased(released) => format!("call released {}", released.call),
        RunEvent::CallAnswered(answered) => format!("call answered {} {}", answered.call, outcome(&answered.outcome)),
        RunEvent::HandedOff(handed) => format!("handed off {}", handed.call),
        RunEvent::InputStaged(staged) => {
            let place = if staged.frame.is_root() { String::new() } else { format!(" in {}", staged.frame) };
            format!("input staged {} by {}{place}", content(&staged.content), staged.by)
        }
        RunEvent::RuleMade(rule) => {
            let effect = match &rule.effect {
                RuleEffect::Approve => "approves",
                RuleEffect::Deny { .. } => "denies",
            };
            let agent = match &rule.scope.agent {
                AgentScope::Only(agent) => agent.to_string(),
                AgentScope::Any => "any agent".to_owned(),
            };
            format!("rule made {} {effect} {} of {agent}", rule.id.number, rule.scope.tool.name)
        }
        RunEvent::RuleRevoked(revoked) => format!("rule revoked {} by {}", revoked.rule.number, revoked.by),
        RunEvent::ContextSet(set) => match &set.context {
            Some(context) => format!("context set {context}"),
            None => "context set nothing".to_owned(),
        },
        RunEvent::AgentSet(set) => format!("agent set {}{}", set.agent.id, in_frame(&set.frame)),
        RunEvent::RunFinished(end) => format!("run finished {}", ended(end)),
        other => format!("an event without a short form: {}", other.name()),
    }
}

/// What is not as usual about a pause.
fn terms(terms: &PauseTerms) -> String {
    let mut line: String = terms.approvers.iter().map(|approver| format!(" for {approver}")).collect();
    line += &terms.rule.as_ref().map(|rule| format!(" rule {rule}")).unwrap_or_default();
    if !terms.takes_one() {
        line += &format!(" quorum {}", terms.quorum);
    }
    if terms.on_timeout == OnTimeout::Approve {
        line += " then approve";
    }
    line
}

/// What must be done next, as one line.
pub fn next_line(run: &Run) -> String {
    let paths = |paths: &[CallPath]| paths.iter().map(place).collect::<Vec<_>>().join(" ");
    match run.next_step() {
        Step::Work(work) => {
            let parts = [
                ("check input", &work.check_input),
                ("call model", &work.call_model),
                ("screen", &work.screen),
                ("word", &work.word),
                ("run", &work.run_tools),
                ("check output", &work.check_output),
            ];
            let parts = parts.iter().filter(|(_, list)| !list.is_empty());
            let parts: Vec<String> = parts.map(|(what, list)| format!("{what} {}", paths(list))).collect();
            format!("next {}", parts.join("; "))
        }
        Step::AwaitCalls => "next await calls".to_owned(),
        Step::AwaitDecisions { pauses } => {
            let pauses: String = pauses.iter().map(|pause| format!(" #{}", pause.number)).collect();
            format!("next await{pauses}")
        }
        Step::Finished(end) => format!("next finished {}", ended(&end)),
    }
}

/// What a frame's model is shown, one line for each entry.
pub fn items(run: &Run, frame: &FramePath) -> Vec<String> {
    let lines = run.model_items(frame);
    lines.iter().map(|item| format!("sees {}", item_line(item))).collect()
}

pub fn item_line(item: &Item) -> String {
    match item {
        Item::User(said) => format!("user {}", content(said)),
        Item::Assistant { text, calls } => {
            let text = text.as_ref().map(|text| format!(" {text:?}")).unwrap_or_default();
            let calls: String = calls.iter().map(|call| format!(" {}#{}", call.tool, call.call_id)).collect();
            format!("assistant{text}{calls}")
        }
        Item::ToolResult { call_id, output, is_error, .. } => {
            let error = if *is_error { "error " } else { "" };
            format!("{error}result {call_id} {}", content(output))
        }
    }
}

/// The open pauses as a person is shown them.
pub fn pauses(run: &Run) -> Vec<String> {
    let views = run.open_pauses();
    let lines = views.iter().map(|view| {
        let what = match &view.call {
            Some(call) => format!("{} {} {}", call.path, call.tool, call.arguments),
            None => "words".to_owned(),
        };
        format!("open #{} {} of {} {what}", view.id().number, view.pause.kind.name(), view.agent)
    });
    lines.collect()
}

/// A journal in short form, for fixtures.
pub fn journal(entries: &[Entry]) -> Vec<&'static str> {
    entries.iter().flat_map(|entry| entry.events.iter().map(|event| event.name())).collect()
}

fn call_line(world: &World, path: &CallPath) -> String {
    world.run.call(path).map_or("?".to_owned(), |call| format!("{} {}", call.record.tool, call.arguments))
}

pub fn place(path: &CallPath) -> String {
    if path.is_root() { "root".to_owned() } else { path.to_string() }
}

fn in_frame(frame: &FramePath) -> String {
    if frame.is_root() { String::new() } else { format!(" in {frame}") }
}

fn allowance(by: &Allowance) -> String {
    match by {
        Allowance::Policy => "policy".to_owned(),
        Allowance::Rule(rule) => format!("rule {}", rule.number),
        Allowance::Decider(actor) => actor.to_string(),
        Allowance::Pause(number) => format!("#{number}"),
    }
}

fn decision(decision: &Decision) -> String {
    match decision {
        Decision::Deny { message: Some(message) } => format!("deny {message:?}"),
        Decision::Respond { content } => format!("respond {content:?}"),
        Decision::ApproveEdited { arguments } => format!("approve_edited {arguments}"),
        Decision::Happened { result } => format!("happened {}", content(result)),
        decision => decision.name().to_owned(),
    }
}

pub fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Result(given) => format!("result {}", content(given)),
        Outcome::Failure(text) => format!("failure {text:?}"),
        Outcome::Invalid(text) => format!("invalid {text:?}"),
        Outcome::Denied(text) => format!("denied {text:?}"),
        Outcome::Responded(text) => format!("responded {text:?}"),
        Outcome::Expired => "expired".to_owned(),
        Outcome::Withdrawn => "withdrawn".to_owned(),
        Outcome::Abandoned => "abandoned".to_owned(),
    }
}

fn content(content: &Content) -> String {
    match content {
        Content::Text(text) => format!("{text:?}"),
        Content::Json(json) => json.to_string(),
        Content::Parts(parts) => format!("{} parts", parts.len()),
    }
}

fn ended(end: &RunEnd) -> String {
    match end {
        RunEnd::Done(output) => format!("done {}", content(output)),
        RunEnd::Failed { code, .. } => format!("failed {code}"),
        RunEnd::Cancelled { by, .. } => format!("cancelled by {by}"),
    }
}

fn offset(end: Timestamp, now: Timestamp) -> String {
    format!("+{}m", end.since(now).as_secs() / 60)
}
