//! Looks at calls before anything runs: rules that deny, guardrails, rules that approve, policy, deciders. What fails
//! holds the call.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use holdpoint_core::ids::{ActorId, CallPath};
use holdpoint_core::input::Input;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::policy::{GuardrailPhase, GuardrailResult, Screening, StandingRule, Verdict};
use holdpoint_core::text::clamp;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{Call, DENIED_TEXT, ToolKind};
use serde_json::Value;

use crate::driver::Drive;
use crate::driver::guard::Objection;
use crate::fault::{Fault, RunError};
use crate::ports::tool::{Approval, AutoDecision, HoldTerms, Policy, PolicyVerdict, Predicate, Tool, ToolContext};
use crate::settings::Denial;

impl Drive {
    pub(super) async fn screen_calls(&mut self, calls: &[CallPath]) -> Result<bool, RunError> {
        if calls.is_empty() {
            return Ok(false);
        }
        let now = self.runtime.store().now();
        let stored = self.runtime.rules_beside(&self.run, now).await?;
        let screenings = join_all(calls.iter().map(|call| self.screen(call, &stored, now))).await;
        // A rule may have a limited number of uses: calls are stamped one after the other, and each looks again.
        let mut moved = false;
        for screening in screenings.into_iter().flatten() {
            let screening = self.still_ruled(screening, &stored, now).await;
            moved |= self.advance_if_welcome(Input::Screened(vec![screening]));
        }
        self.must_move(moved)
    }

    /// Work that was done and changed nothing would be done for ever.
    fn must_move(&self, moved: bool) -> Result<bool, RunError> {
        if moved { Ok(true) } else { Err(Fault::Contended { run: self.run.id() }.into()) }
    }

    async fn screen(&self, path: &CallPath, stored: &[StandingRule], now: Timestamp) -> Option<Screening> {
        let call = self.run.call(path)?;
        match self.run.ruling_except(path, stored, now, &self.spent_rules) {
            Some(rule) if rule.is_denial() => {
                Some(Screening { call: path.clone(), verdict: Verdict::Ruled(rule), guardrails: Vec::new() })
            }
            approval => Some(self.look(path, call, approval, now).await),
        }
    }

    /// A rule that an earlier sibling used up no longer speaks: the call is looked at like any other.
    async fn still_ruled(&self, screening: Screening, stored: &[StandingRule], now: Timestamp) -> Screening {
        let Verdict::Ruled(rule) = &screening.verdict else { return screening };
        let speaks = self.run.ruling_except(&screening.call, stored, now, &self.spent_rules);
        match (speaks, self.run.call(&screening.call)) {
            (Some(now_speaks), _) if now_speaks.id == rule.id => screening,
            (Some(rule), _) if rule.is_denial() => Screening { verdict: Verdict::Ruled(rule), ..screening },
            (rule, Some(call)) => self.look(&screening.call, call, rule, now).await,
            (_, None) => screening,
        }
    }

    /// Guardrails, then policy, then deciders. A rule that approves stands for a person and for deciders: never for a
    /// guardrail, nor for a policy that denies or wants others to look.
    async fn look(&self, path: &CallPath, call: &Call, rule: Option<StandingRule>, now: Timestamp) -> Screening {
        let with = |verdict, guardrails| Screening { call: path.clone(), verdict, guardrails };
        let Some((tool, context)) = self.tool_for(path, call) else {
            // Hand-offs have no code to look at.
            let verdict = match call.record.kind {
                ToolKind::Handoff { .. } => Verdict::Allow,
                _ => Verdict::Invalid(format!("there is no tool named {}", call.record.tool)),
            };
            return with(verdict, Vec::new());
        };
        let phase = GuardrailPhase::BeforePause;
        let (results, objection) = self.guard_call(&tool, &context, &call.arguments, phase).await;
        match objection {
            Some(Objection::Reject { by, message }) => {
                return with(Verdict::Deny { by, message: Some(message) }, results);
            }
            Some(Objection::Halt { guardrail, message }) => return with(Verdict::Halt { guardrail, message }, results),
            None => {}
        }
        let verdict = match (rule, tool.approval()) {
            (Some(rule), Approval::Never | Approval::Always | Approval::When(_)) => Verdict::Ruled(rule),
            (rule, _) => match self.policy_verdict(&tool, &context, call).await {
                PolicyVerdict::Allow => Verdict::Allow,
                PolicyVerdict::Deny { by, message } => Verdict::Deny { by, message },
                PolicyVerdict::Hold(terms) => match rule.filter(|rule| rule.may_approve(&terms.pause_terms())) {
                    Some(rule) => Verdict::Ruled(rule),
                    None => self.hold(&tool, &context, call, terms, now).await,
                },
            },
        };
        with(verdict, results)
    }

    /// A person is asked, unless a decider in code answers in their place.
    async fn hold(&self, tool: &Tool, context: &ToolContext, call: &Call, terms: HoldTerms, now: Timestamp) -> Verdict {
        if let Some(verdict) = self.ask_decider(tool, context, call).await {
            return verdict;
        }
        let expires_at = terms.deadline.from(now, self.runtime.settings().wait_for(&call.record.kind));
        Verdict::Hold { terms: terms.pause_terms(), reason: terms.reason, expires_at }
    }

    async fn policy_verdict(&self, tool: &Tool, context: &ToolContext, call: &Call) -> PolicyVerdict {
        let is_question = call.record.kind == ToolKind::Question;
        let always = is_question || self.pinned_always(context) || self.run.holds_every_call();
        match tool.approval() {
            Approval::By(policy) => ask_policy(&**policy, context, &call.arguments, always).await,
            Approval::Always => PolicyVerdict::Hold(HoldTerms::default()),
            _ if always => PolicyVerdict::Hold(HoldTerms::default()),
            Approval::Never => PolicyVerdict::Allow,
            Approval::When(predicate) => ask(&**predicate, context, call).await,
        }
    }

    fn pinned_always(&self, context: &ToolContext) -> bool {
        self.pinned.get(&context.agent).is_some_and(|pinned| pinned.always_held.contains(&context.tool))
    }

    async fn ask_decider(&self, tool: &Tool, context: &ToolContext, call: &Call) -> Option<Verdict> {
        let (name, decider) = tool.0.decider.as_ref()?;
        let asked = AssertUnwindSafe(async { decider.decide(context, &call.arguments).await }).catch_unwind().await;
        match asked {
            Ok(AutoDecision::Approve) => Some(Verdict::Approved { by: name.clone() }),
            Ok(AutoDecision::Deny(reason)) => {
                let message = Some(reason).filter(|reason| !reason.is_empty());
                Some(Verdict::Deny { by: name.clone(), message })
            }
            Ok(AutoDecision::Abstain) => None,
            Err(_) => {
                tracing::warn!(run.id = %context.run, "a decider panicked: a person is asked");
                None
            }
        }
    }

    pub(super) fn deadline(&self, now: Timestamp) -> Option<Timestamp> {
        self.runtime.settings().pause_deadline.map(|deadline| now.after(deadline))
    }

    /// Words for denials that came without any: those of a rule that says the same, the formatter's, or the default.
    pub(super) async fn word_denials(&mut self, calls: &[CallPath]) -> Result<bool, RunError> {
        if calls.is_empty() {
            return Ok(false);
        }
        let now = self.runtime.store().now();
        let stored = self.runtime.rules_beside(&self.run, now).await?;
        let mut words = Vec::with_capacity(calls.len());
        for path in calls {
            let of_rule = self.run.rule_words(path, &stored, now);
            let text = match (of_rule, self.run.call(path).map(|call| &call.record.kind)) {
                (Some(text), _) => text,
                // An MCP server is told a reason only when somebody gave one.
                (None, Some(ToolKind::Mcp { .. })) => String::new(),
                (None, _) => self.word(path).await,
            };
            words.push((path.clone(), text));
        }
        let moved = self.advance_if_welcome(Input::Worded(words));
        self.must_move(moved)
    }

    async fn word(&self, path: &CallPath) -> String {
        let default = DENIED_TEXT.to_owned();
        let formatter = self.options.denial_formatter.as_ref().or(self.runtime.settings().denial_formatter.as_ref());
        let (Some(formatter), Some(call)) = (formatter, self.run.call(path)) else { return default };
        let Some(turn) = self.run.frame(&path.frame()).and_then(|frame| frame.turn()) else { return default };
        let denial = Denial {
            run: self.run.id(),
            agent: turn.agent.clone(),
            tool: call.record.tool.clone(),
            call_id: call.record.call_id.clone(),
            default: default.clone(),
        };
        let asked = std::panic::catch_unwind(AssertUnwindSafe(|| (formatter.0)(denial)));
        let found = match asked {
            Ok(finding) => AssertUnwindSafe(finding).catch_unwind().await,
            Err(panic) => Err(panic),
        };
        match found {
            Ok(Ok(Some(text))) => text,
            Ok(Ok(None)) => default,
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(run.id = %self.run.id(), "the denial formatter failed: the default is said");
                default
            }
        }
    }
}

/// Bytes of a policy's reason that are kept.
pub(super) const REASON_BYTES_MAX: usize = 2_000;

/// Asks a policy about a call. What fails, panics or cannot be kept holds the call; so does what must be held `always`.
pub(super) async fn ask_policy(
    policy: &dyn Policy,
    context: &ToolContext,
    arguments: &CanonicalJson,
    always: bool,
) -> PolicyVerdict {
    let asked = AssertUnwindSafe(async { policy.verdict(context, arguments).await }).catch_unwind().await;
    let verdict = match asked.unwrap_or_else(|_| Err("it panicked".to_owned())) {
        Ok(PolicyVerdict::Hold(terms)) => match terms.pause_terms().check() {
            Ok(()) => Ok(PolicyVerdict::Hold(HoldTerms {
                reason: terms.reason.as_deref().map(|reason| clamp(reason, REASON_BYTES_MAX).to_owned()),
                ..terms
            })),
            Err(refusal) => Err(format!("its terms are not accepted: {refusal}")),
        },
        verdict => verdict,
    };
    match verdict {
        Ok(PolicyVerdict::Allow) if always => PolicyVerdict::Hold(HoldTerms::default()),
        Ok(verdict) => verdict,
        Err(error) => failed(&error),
    }
}

/// What cannot be said is left to a person.
fn failed(error: &str) -> PolicyVerdict {
    PolicyVerdict::Hold(HoldTerms::because(format!("the approval rule failed: {}", clamp(error, 500))))
}

/// Asks a predicate about a call; about a batch of actions it is asked for each. What fails or panics holds the call.
async fn ask(predicate: &dyn Predicate, context: &ToolContext, call: &Call) -> PolicyVerdict {
    let arguments = call.arguments.to_value();
    let subjects = match call.record.kind {
        ToolKind::Computer => actions(&arguments),
        _ => vec![arguments],
    };
    let answers = join_all(subjects.iter().map(|subject| async {
        let asked = std::panic::catch_unwind(AssertUnwindSafe(|| predicate.holds(context, subject)));
        match asked {
            Ok(answering) => AssertUnwindSafe(answering).catch_unwind().await.unwrap_or_else(|_| panicked()),
            Err(_) => panicked(),
        }
    }));
    let answers = answers.await;
    let failure = answers.iter().find_map(|answer| answer.as_ref().err());
    match (failure, answers.iter().any(|answer| answer == &Ok(true))) {
        (Some(error), _) => failed(error),
        (None, true) => PolicyVerdict::Hold(HoldTerms::default()),
        (None, false) => PolicyVerdict::Allow,
    }
}

fn panicked() -> Result<bool, String> {
    Err("it panicked".to_owned())
}

/// The actions of a screen call: the list, or the single one of older models. What is neither is one subject.
fn actions(arguments: &Value) -> Vec<Value> {
    match (arguments.get("actions"), arguments.get("action")) {
        (Some(Value::Array(actions)), _) if !actions.is_empty() => actions.clone(),
        (None, Some(action)) => vec![action.clone()],
        _ => vec![arguments.clone()],
    }
}

/// Who a guardrail's denial is recorded as.
pub(super) fn guardrail_actor(name: &str) -> ActorId {
    ActorId::new(format!("guardrail {name}")).unwrap_or_else(|_| ActorId::local())
}

pub(super) fn passed(name: &str, phase: GuardrailPhase, objection: Option<String>) -> GuardrailResult {
    GuardrailResult { name: name.to_owned(), phase, objection }
}
