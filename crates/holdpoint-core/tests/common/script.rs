//! The lines of a script, each one input (or two: a tool that may run is started before it gives its result).
//!
//! ```text
//! given agent: turns 3, checks input, checks output, first, after a b      the root agent, Support
//! given tool fetch: read_only | idempotent | shell | patch | computer | mcp SERVER | question
//! given tool helper: agent, turns 2, …         given tool transfer: handoff [Agent/path], …
//! user: TEXT                                   ana adds: TEXT          ana instead: TEXT
//! input check [1.0]: pass | objects "TEXT"     output check [1.0]: …
//! model [1.0] [saw 0]: tool[#id] {json} & …    `tool !"text"` for arguments that are not JSON
//! model [1.0] [thinks WORD] says: TEXT         model asks [until +10m]: TEXT
//! policy [1.0]: VERDICT & …                    allow | hold [until +10m [then approve]] [for ana] [quorum 2] [rule big]
//!                                              [because "…"] | deny ["…"] | approve by bot
//!                                              | rule | rule or hold | invalid "…" | halt "…" | skip ; [guarded]
//! start [1.0 …]                                tool 1.0: "result"      tool 1.0 fails: "…"     tool 1.0 invalid: "…"
//! blocked 1.0: "…"                             words: "…"
//! ana: [always] approve | deny ["…"] | respond "…" | approve … edited {json} | answer {json} | happened "…"
//!      | run again | abandon, with #1 after the verb; then seen it | seen other | as GROUP | request KEY | note WORD
//!      | implied; several decisions at once stand with & between them
//!      rules: any agent, where /path = JSON, where /path <= 5, where /path ^ "…", uses 2, until +10m, for session, open too
//! ana: cancel ["…"]     ana: revoke rule 1     deadline #1     clock +10m     crash     restart
//! drift 1.0 …: "reason"    context: {json}     set agent [1.0]: Agent/path     fail: "…"
//! look: model [1.0] | pauses | rule 1          ---
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use holdpoint_core::agent::{AgentBrief, FinishRule};
use holdpoint_core::decision::{Decision, DecisionInput, Manner};
use holdpoint_core::ids::{CallPath, PauseId, RuleId, ToolName};
use holdpoint_core::input::{Confirmation, Input, ReplyInput, StartInput, SupersedeInput};
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::message::{Content, Usage};
use holdpoint_core::policy::{
    Constraint, GuardrailPhase, GuardrailResult, Lifetime, NewRule, OnTimeout, PauseTerms, Screening, Verdict,
};
use holdpoint_core::step::{Step, Work};
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{CallRecord, CallState, Effect, Outcome, ToolKind};

use super::{World, actor, brief, run_id, session, told};

/// What the agents of a script are, and the tools they know.
#[derive(Clone)]
pub struct Cast {
    agent: AgentBrief,
    turns_max: Option<u32>,
    tools: BTreeMap<String, Prop>,
    call_ids: u32,
}

/// A tool as it was given: an agent's own path is found when it is called.
#[derive(Clone)]
struct Prop {
    kind: ToolKind,
    effect: Effect,
    leads_to: Option<String>,
}

impl Cast {
    pub fn new() -> Self {
        Self { agent: brief("Support"), turns_max: None, tools: BTreeMap::new(), call_ids: 0 }
    }
}

/// Plays one line.
pub fn act(world: &mut World, line: &str) {
    let (head, rest) = line.split_once(':').map_or((line, ""), |(head, rest)| (head.trim(), rest.trim()));
    let words: Vec<&str> = head.split_whitespace().collect();
    match words.as_slice() {
        ["---"] => world.forget_told(),
        ["given", "agent"] => given_agent(world, rest),
        ["given", "tool", name] => given_tool(world, name, rest),
        ["user"] => start(world, rest),
        [who, "adds"] => give(world, Input::Stage { content: rest.into(), by: actor(who), request: None }),
        [who, "instead"] => {
            let (content, by) = (rest.into(), actor(who));
            give(world, Input::Supersede(SupersedeInput { content, by, via: None, request: None }));
        }
        ["input", "check", at @ ..] => {
            give(world, Input::InputChecked { frame: path(at), results: results(GuardrailPhase::Input, rest) });
        }
        ["output", "check", at @ ..] => {
            give(world, Input::OutputChecked { frame: path(at), results: results(GuardrailPhase::Output, rest) });
        }
        ["model", more @ ..] => model(world, more, rest),
        ["policy", at @ ..] => policy(world, at, rest),
        ["start", calls @ ..] => start_calls(world, calls),
        ["tool", at] => end_call(world, at, Outcome::Result(read_content(rest))),
        ["tool", at, "fails"] => end_call(world, at, Outcome::Failure(text(rest))),
        ["tool", at, "invalid"] => end_call(world, at, Outcome::Invalid(text(rest))),
        ["tool", at, "withdrawn"] => end_call(world, at, Outcome::Withdrawn),
        ["blocked", at] => {
            let results = vec![objection(GuardrailPhase::BeforeRun, &text(rest))];
            give(world, Input::Blocked { call: path(&[at]), results, message: text(rest) });
        }
        ["words"] => {
            let calls = work(world).word;
            give(world, Input::Worded(calls.into_iter().map(|call| (call, text(rest))).collect()));
        }
        ["deadline", pause] => give(world, Input::DeadlinePassed(pause_id(world, pause))),
        ["clock", by] => world.now = after(world.now, by),
        ["restart"] => world.run = world.folded(),
        ["crash"] => crash(world),
        ["drift", calls @ ..] => {
            let (reason, until) = leading_json(rest).expect("a reason");
            let expires_at = until.trim().strip_prefix("until ").map(|by| after(world.now, by));
            let calls = calls.iter().map(|at| path(&[at])).collect();
            give(world, Input::HoldAgain { calls, reason: reason.as_str().unwrap().to_owned(), expires_at });
        }
        ["context"] => give(world, Input::SetContext((rest != "nothing").then(|| json(rest)))),
        ["set", "agent", at @ ..] => give(world, Input::SetAgent { frame: path(at), agent: brief(rest) }),
        ["fail"] => give(world, Input::Fail { code: "model_gone".to_owned(), message: text(rest) }),
        ["cancel"] => cancel(world, "ana", ""),
        ["look"] => look(world, rest),
        [who] => person(world, who, rest),
        _ => panic!("a line that no script has: {line}"),
    }
}

fn give(world: &mut World, input: Input) {
    // What came of it, or why it was refused, is taken down.
    let _ = world.give(input);
}

fn given_agent(world: &mut World, rest: &str) {
    let mut agent = world.cast.agent.clone();
    world.cast.turns_max = options(&mut agent, rest.split(',').map(str::trim));
    world.cast.agent = agent;
}

fn given_tool(world: &mut World, name: &str, rest: &str) {
    let mut options_of = rest.split(',').map(str::trim);
    let words: Vec<&str> = options_of.next().unwrap_or_default().split_whitespace().collect();
    let mut prop = Prop { kind: ToolKind::Function, effect: Effect::AtMostOnce, leads_to: None };
    match words.as_slice() {
        [] => {}
        ["read_only"] => prop.effect = Effect::ReadOnly,
        ["idempotent"] => prop.effect = Effect::Idempotent,
        ["shell"] => prop.kind = ToolKind::Shell,
        ["patch"] => prop.kind = ToolKind::ApplyPatch,
        ["computer"] => prop.kind = ToolKind::Computer,
        ["mcp", server] => prop.kind = ToolKind::Mcp { server: ToolName::new(server).unwrap() },
        ["question"] => prop.kind = ToolKind::Question,
        ["agent"] => {
            let mut agent = brief("unknown");
            let turns_max = options(&mut agent, options_of);
            prop.kind = ToolKind::Agent { agent, turns_max };
        }
        ["handoff", to @ ..] => {
            let mut agent = brief("unknown");
            options(&mut agent, options_of);
            prop.kind = ToolKind::Handoff { to: agent };
            prop.leads_to = to.first().map(|to| (*to).to_owned());
        }
        _ => panic!("no such tool: {rest}"),
    }
    world.cast.tools.insert(name.to_owned(), prop);
}

/// Reads what is said of an agent, and gives its budget.
fn options<'a>(agent: &mut AgentBrief, options: impl Iterator<Item = &'a str>) -> Option<u32> {
    let mut turns_max = None;
    for option in options {
        match option.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["turns", count] => turns_max = Some(count.parse().unwrap()),
            ["checks", "input"] => agent.checks_input = true,
            ["checks", "output"] => agent.checks_output = true,
            ["first"] => agent.finish = FinishRule::FirstToolResult,
            ["after", tools @ ..] => {
                agent.finish = FinishRule::AfterTools(tools.iter().map(|tool| ToolName::new(tool).unwrap()).collect());
            }
            _ => panic!("agents have no such option: {option}"),
        }
    }
    turns_max
}

fn start(world: &mut World, content: &str) {
    let input = Input::Start(StartInput {
        session: session(),
        agent: world.cast.agent.clone(),
        content: content.into(),
        context: None,
        turns_max: world.cast.turns_max,
        by: actor("ana"),
        holds_every_call: false,
    });
    give(world, input);
}

fn model(world: &mut World, words: &[&str], rest: &str) {
    let mut frame = CallPath::root();
    let mut admitted = world.run.staged().len() as u32;
    let (mut text, mut asks, mut thinking, mut turn) = (None, None, None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "saw" => admitted = words.next().unwrap().parse().unwrap(),
            "answers" => turn = Some(words.next().unwrap().parse().unwrap()),
            "thinks" => thinking = words.next().map(|word| (*word).to_owned()),
            "says" => text = Some(rest.to_owned()),
            "asks" => {
                text = Some(rest.to_owned());
                asks = Some(Confirmation { reason: None, expires_at: None });
            }
            "until" => asks.as_mut().unwrap().expires_at = Some(after(world.now, words.next().unwrap())),
            at => {
                frame = path(&[at]);
                admitted = world.run.staged_in(&frame).len() as u32;
            }
        }
    }
    let calls = if text.is_some() { Vec::new() } else { calls(world, &frame, rest) };
    let usage = Usage::request(10, 1);
    let turn = turn.unwrap_or_else(|| world.run.frame(&frame).map_or(1, |frame| frame.turns + 1));
    let reply = ReplyInput { frame, turn, admitted, thinking, text, calls, asks_confirmation: asks, usage };
    give(world, Input::ModelReply(reply));
}

fn calls(world: &mut World, frame: &CallPath, mut rest: &str) -> Vec<CallRecord> {
    let mut calls = Vec::new();
    loop {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (name, after_name) = rest.split_at(end);
        let mut after_name = after_name.trim_start();
        let is_broken = after_name.starts_with('!');
        after_name = after_name.trim_start_matches('!');
        let arguments = match leading_json(after_name) {
            Some((_, tail)) => {
                let arguments = json(&after_name[..after_name.len() - tail.len()]);
                after_name = tail.trim_start();
                arguments
            }
            None => json("{}"),
        };
        calls.push(call(world, frame, name, arguments, is_broken));
        match after_name.strip_prefix('&') {
            Some(more) => rest = more.trim_start(),
            None => {
                assert!(after_name.is_empty(), "calls stand between &: {after_name}");
                return calls;
            }
        }
    }
}

fn call(world: &mut World, frame: &CallPath, name: &str, arguments: CanonicalJson, is_broken: bool) -> CallRecord {
    let (name, given_id) = name.split_once('#').map_or((name, None), |(name, id)| (name, Some(id)));
    let call_id = given_id.map(str::to_owned).unwrap_or_else(|| {
        world.cast.call_ids += 1;
        format!("c{}", world.cast.call_ids)
    });
    let tool = ToolName::new(name).unwrap();
    let plain = Prop { kind: ToolKind::Function, effect: Effect::AtMostOnce, leads_to: None };
    let mut prop = world.cast.tools.get(name).cloned().unwrap_or(plain);
    if let ToolKind::Agent { agent, .. } | ToolKind::Handoff { to: agent } = &mut prop.kind {
        let asking = world.run.frame(frame).map_or(world.cast.agent.id.clone(), |frame| frame.agent.id.clone());
        agent.id = prop.leads_to.map_or_else(|| asking.through(&tool), |id| id.parse().unwrap());
        agent.digest = Digest::of(agent.id.as_str().as_bytes());
    }
    let problem = is_broken.then(|| "the arguments are not JSON".to_owned());
    CallRecord { call_id, tool, kind: prop.kind, effect: prop.effect, arguments, problem, repeats: None }
}

fn policy(world: &mut World, at: &[&str], rest: &str) {
    let targets = if at.is_empty() { work(world).screen } else { at.iter().map(|at| path(&[at])).collect() };
    let verdicts: Vec<&str> = rest.split('&').map(str::trim).collect();
    let verdict_of = |index: usize| if verdicts.len() == 1 { verdicts[0] } else { verdicts[index] };
    assert!(verdicts.len() == 1 || verdicts.len() == targets.len(), "a verdict for each of {targets:?}");
    let screenings: Vec<Screening> = targets
        .into_iter()
        .enumerate()
        .filter(|(index, _)| verdict_of(*index) != "skip")
        .map(|(index, call)| screening(world, call, verdict_of(index)))
        .collect();
    give(world, Input::Screened(screenings));
}

fn screening(world: &World, call: CallPath, line: &str) -> Screening {
    let (line, is_guarded) = line.strip_suffix("guarded").map_or((line, false), |line| (line.trim(), true));
    let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let verdict = match verb {
        "allow" => Verdict::Allow,
        "hold" => hold(world, rest),
        "deny" => Verdict::Deny { by: actor("guard"), message: (!rest.is_empty()).then(|| text(rest)) },
        "approve" => Verdict::Approved { by: actor(rest.strip_prefix("by ").unwrap()) },
        "rule" => match world.run.ruling(&call, &[], world.now) {
            Some(rule) => Verdict::Ruled(rule),
            None if rest == "or hold" => Verdict::Hold { reason: None, expires_at: None, terms: PauseTerms::default() },
            None => panic!("no rule speaks of {call}"),
        },
        "invalid" => Verdict::Invalid(text(rest)),
        "halt" => Verdict::Halt { guardrail: "g".to_owned(), message: text(rest) },
        verb => panic!("no such verdict: {verb}"),
    };
    let objects = match &verdict {
        Verdict::Halt { message, .. } => Some(message.clone()),
        _ => None,
    };
    let result = GuardrailResult { name: "g".to_owned(), phase: GuardrailPhase::BeforePause, objection: objects };
    Screening { call, verdict, guardrails: if is_guarded { vec![result] } else { Vec::new() } }
}

fn hold(world: &World, rest: &str) -> Verdict {
    let (line, reason) = rest.split_once("because").map_or((rest, None), |(line, reason)| (line, Some(text(reason))));
    let (mut expires_at, mut terms) = (None, PauseTerms::default());
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        let mut next = || words.next().unwrap().to_owned();
        match word {
            "until" => expires_at = Some(after(world.now, &next())),
            "for" => terms.approvers.push(next()),
            "quorum" => terms.quorum = next().parse().unwrap(),
            "rule" => terms.rule = Some(next()),
            "then" => terms.on_timeout = if next() == "approve" { OnTimeout::Approve } else { OnTimeout::Deny },
            word => panic!("nobody is held {word}"),
        }
    }
    Verdict::Hold { reason, expires_at, terms }
}

fn start_calls(world: &mut World, calls: &[&str]) {
    let calls = if calls.is_empty() { work(world).run_tools } else { calls.iter().map(|at| path(&[at])).collect() };
    give(world, Input::StartCalls(calls));
}

fn end_call(world: &mut World, at: &str, outcome: Outcome) {
    let call = path(&[at]);
    if matches!(world.run.call(&call).map(|call| &call.state), Some(CallState::Allowed { .. })) {
        give(world, Input::StartCalls(vec![call.clone()]));
    }
    give(world, Input::CallEnded { call, outcome });
}

fn crash(world: &mut World) {
    world.run = world.folded();
    let started = world.run.started_calls();
    if !started.is_empty() {
        give(world, Input::Orphaned(started));
    }
}

fn cancel(world: &mut World, who: &str, reason: &str) {
    give(world, Input::Cancel { by: actor(who), reason: reason.to_owned(), request: None });
}

fn look(world: &mut World, what: &str) {
    let lines = match what.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["model", at @ ..] => told::items(&world.run, &path(at)),
        ["pauses"] => told::pauses(&world.run),
        ["rule", number] => {
            let rule = RuleId { run: world.run.id(), number: number.parse().unwrap() };
            vec![format!("rule {number} used {}", world.run.rule_uses(rule))]
        }
        ["call", at] => {
            let call = path(&[at]);
            let call = world.run.call(&call).unwrap();
            vec![format!("call {at} is {} {} after {} starts", call.state.name(), call.arguments, call.attempts)]
        }
        _ => panic!("nothing to look at: {what}"),
    };
    lines.into_iter().for_each(|line| world.note(line));
}

/// What a person says of a pause, a rule or the run.
fn person(world: &mut World, who: &str, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["cancel", ..] => cancel(world, who, &text(skip_word(line, "cancel"))),
        ["revoke", "rule", number] => {
            let rule = RuleId { run: world.run.id(), number: number.parse().unwrap() };
            give(world, Input::RevokeRule { rule, by: actor(who) });
        }
        words if words.contains(&"&") => {
            let decisions = line.split(" & ").map(|part| answer(world, who, part.trim())).collect();
            give(world, Input::Decisions(decisions));
        }
        _ => {
            let decision = answer(world, who, line);
            give(world, Input::Decision(decision));
        }
    }
}

fn answer(world: &World, who: &str, line: &str) -> DecisionInput {
    let (always, line) = line.strip_prefix("always ").map_or((false, line), |line| (true, line));
    let words: Vec<&str> = line.split_whitespace().collect();
    let rest_after = |count: usize| line.split_whitespace().take(count).fold(line, skip_word);
    match words.as_slice() {
        ["run", "again", pause, ..] => decide(world, who, pause, Decision::RunAgain, rest_after(3), always),
        [verb, pause, ..] => {
            let (decision, rest) = decision(verb, rest_after(2));
            decide(world, who, pause, decision, rest, always)
        }
        _ => panic!("nobody says that: {line}"),
    }
}

fn decision<'a>(verb: &str, rest: &'a str) -> (Decision, &'a str) {
    let edited = rest.trim_start().strip_prefix("edited ").filter(|_| verb == "approve");
    let (value, tail) = leading_json(edited.unwrap_or(rest)).map_or((None, rest), |(value, tail)| (Some(value), tail));
    let words = || value.clone().map(|value| value.as_str().expect("a text").to_owned());
    let decision = match (verb, &value) {
        ("approve", Some(value)) => Decision::ApproveEdited { arguments: json(&value.to_string()) },
        ("approve", None) => Decision::Approve,
        ("deny", _) => Decision::Deny { message: words() },
        ("respond", _) => Decision::Respond { content: words().expect("words") },
        ("answer", Some(value)) => Decision::Answer { answers: serde_json::from_value(value.clone()).unwrap() },
        ("happened", _) => Decision::Happened { result: words().expect("a result").into() },
        ("abandon", None) => Decision::Abandon,
        _ => panic!("no such decision: {verb} {rest}"),
    };
    (decision, tail)
}

fn decide(world: &World, who: &str, pause: &str, decision: Decision, rest: &str, always: bool) -> DecisionInput {
    let mut input = DecisionInput::new(pause_id(world, pause), decision, actor(who));
    let mut rule = NewRule::default();
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        let mut next = || words.next().unwrap();
        match word {
            "seen" => {
                let held = world.run.pause_view(input.pause).and_then(|view| view.call).map(|call| call.digest);
                input.seen = if next() == "it" { held } else { Some(Digest::of(b"another view")) };
            }
            "as" => input.groups.push(next().to_owned()),
            "request" => input.request = Some(next().to_owned()),
            "note" => input.note = Some(next().to_owned()),
            "implied" => input.manner = Manner::Implied,
            "any" => rule.any_agent = next() == "agent",
            "where" => rule.constraints.push(constraint(next(), next(), next())),
            "uses" => rule.uses_max = Some(next().parse().unwrap()),
            "until" => rule.lifetime = Lifetime::Until(after(world.now, next())),
            "for" => rule.lifetime = if next() == "session" { Lifetime::Session } else { Lifetime::Run },
            "open" => rule.apply_to_open = next() == "too",
            word => panic!("decisions have no {word}"),
        }
    }
    input.rule = always.then_some(rule);
    input
}

fn constraint(at: &str, test: &str, value: &str) -> Constraint {
    match test {
        "=" => Constraint::equals(at, json(value)),
        "<=" => Constraint::at_most(at, value.parse().unwrap()),
        "^" => Constraint::starts_with(at, text(value)),
        test => panic!("no such test: {test}"),
    }
}

/// `#1` of this run; `other#1` of another.
fn pause_id(world: &World, text: &str) -> PauseId {
    let (run, number) = text.split_once('#').expect("a pause such as #1");
    let run = if run == "other" { run_id(2) } else { world.run.id() };
    PauseId { run, number: number.parse().unwrap() }
}

fn work(world: &World) -> Work {
    match world.run.next_step() {
        Step::Work(work) => work,
        _ => Work::default(),
    }
}

fn results(phase: GuardrailPhase, line: &str) -> Vec<GuardrailResult> {
    match line.strip_prefix("objects") {
        Some(words) => vec![objection(phase, &text(words))],
        None => vec![GuardrailResult { name: "g".to_owned(), phase, objection: None }],
    }
}

fn objection(phase: GuardrailPhase, words: &str) -> GuardrailResult {
    GuardrailResult { name: "g".to_owned(), phase, objection: Some(words.to_owned()) }
}

fn path(at: &[&str]) -> CallPath {
    at.first().map_or(CallPath::root(), |at| at.parse().unwrap())
}

fn after(now: Timestamp, by: &str) -> Timestamp {
    let by = by.trim().strip_prefix('+').expect("a time such as +10m");
    let (count, unit) = by.split_at(by.len() - 1);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        unit => panic!("no such unit: {unit}"),
    };
    now.after(Duration::from_secs(count.parse::<u64>().unwrap() * seconds))
}

fn json(text: &str) -> CanonicalJson {
    CanonicalJson::parse(text.trim()).unwrap()
}

/// A text in quotes; nothing for nothing.
fn text(line: &str) -> String {
    let line = line.trim();
    if line.is_empty() { String::new() } else { serde_json::from_str(line).unwrap() }
}

fn read_content(line: &str) -> Content {
    if line.starts_with('"') { Content::Text(text(line)) } else { Content::Json(json(line)) }
}

/// The JSON value that a line begins with, and the rest.
fn leading_json(line: &str) -> Option<(serde_json::Value, &str)> {
    let line = line.trim_start();
    if !line.starts_with(['{', '[', '"']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(line).into_iter::<serde_json::Value>();
    let value = values.next()?.ok()?;
    Some((value, &line[values.byte_offset()..]))
}

fn skip_word<'a>(line: &'a str, word: &str) -> &'a str {
    line.trim_start().strip_prefix(word).unwrap_or(line)
}
