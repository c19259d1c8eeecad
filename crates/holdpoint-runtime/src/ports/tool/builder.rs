//! Describing a tool. Everything that is wrong with it is said at once, by `build`.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use holdpoint_core::ids::{ActorId, BadId, ToolName};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::tool::Effect;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::approval::{FnDecider, FnPredicate};
use super::run::{FnRunner, NothingToRun};
use super::schema::{compile_schema, schema_of};
use super::{
    Approval, AutoDecider, AutoDecision, EnabledWhen, IntoHold, IntoResult, Policy, RunTool, Tool, ToolContext,
    ToolFailure, ToolParts, ToolShape,
};
use crate::context::Context;
use crate::guardrail::ToolGuardrail;

/// Builds a [`Tool`].
pub struct ToolBuilder {
    name: String,
    description: String,
    schema: Option<Value>,
    shape: ToolShape,
    effect: Effect,
    approval: Approval,
    decider: Option<(ActorId, Arc<dyn AutoDecider>)>,
    guardrails: Vec<ToolGuardrail>,
    timeout: Option<Duration>,
    runner: Option<Arc<dyn RunTool>>,
    is_enabled: Option<EnabledWhen>,
    problems: Vec<String>,
}

impl ToolBuilder {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            description: String::new(),
            schema: None,
            shape: ToolShape::Function,
            effect: Effect::default(),
            approval: Approval::Never,
            decider: None,
            guardrails: Vec::new(),
            timeout: None,
            runner: None,
            is_enabled: None,
            problems: Vec::new(),
        }
    }

    pub(super) fn from_parts(parts: &ToolParts) -> Self {
        Self {
            name: parts.name.to_string(),
            description: parts.description.clone(),
            schema: Some(parts.schema.clone()),
            shape: parts.shape.clone(),
            effect: parts.effect,
            approval: parts.approval.clone(),
            decider: parts.decider.clone(),
            guardrails: parts.guardrails.clone(),
            timeout: parts.timeout,
            runner: Some(parts.runner.clone()),
            is_enabled: parts.is_enabled.clone(),
            problems: Vec::new(),
        }
    }

    /// What models call it.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What it is for.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// The JSON schema of its arguments, where it does not follow from a type.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// The arguments are this type; its schema is the tool's.
    #[must_use]
    pub fn arguments<A: JsonSchema>(self) -> Self {
        self.schema(schema_of::<A>())
    }

    /// How it is reached.
    #[must_use]
    pub fn shape(mut self, shape: ToolShape) -> Self {
        self.shape = shape;
        self
    }

    /// What it does to the world, which says what may happen after a crash.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Whether a person must always look before it runs.
    #[must_use]
    pub fn needs_approval(mut self, always: bool) -> Self {
        self.approval = if always { Approval::Always } else { Approval::Never };
        self
    }

    /// A person must look when this says so. It is asked once, when the call is made; if it fails, the call is held.
    #[must_use]
    pub fn needs_approval_when<F, Fut, R>(mut self, predicate: F) -> Self
    where
        F: Fn(ToolContext, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoHold,
    {
        self.approval = Approval::When(Arc::new(FnPredicate(move |context, arguments| {
            let answer = predicate(context, arguments);
            Box::pin(async move { answer.await.into_hold() }) as BoxFuture<'static, Result<bool, String>>
        })));
        self
    }

    /// What a policy says is done: allow, deny, or hold on its terms. If it fails, the call is held.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy) -> Self {
        self.approval = Approval::By(Arc::new(policy));
        self
    }

    /// When a person must look, as a value.
    #[must_use]
    pub fn approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    /// Lets code decide in a person's place; `name` is recorded as who decided.
    #[must_use]
    pub fn auto_decider(mut self, name: &str, decider: impl AutoDecider) -> Self {
        match ActorId::new(name) {
            Ok(name) => self.decider = Some((name, Arc::new(decider))),
            Err(problem) => self.problems.push(problem.to_string()),
        }
        self
    }

    /// Lets a function decide in a person's place.
    #[must_use]
    pub fn on_approval<F, Fut>(self, name: &str, decide: F) -> Self
    where
        F: Fn(ToolContext, CanonicalJson) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = AutoDecision> + Send + 'static,
    {
        self.auto_decider(name, FnDecider(move |context, arguments| Box::pin(decide(context, arguments)) as _))
    }

    /// Adds a guardrail on its arguments.
    #[must_use]
    pub fn guardrail(mut self, guardrail: ToolGuardrail) -> Self {
        self.guardrails.push(guardrail);
        self
    }

    /// How long one run of it may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Offers it only where this holds for the application's context.
    #[must_use]
    pub fn enabled_when(mut self, is_enabled: impl Fn(&Context) -> bool + Send + Sync + 'static) -> Self {
        self.is_enabled = Some(Arc::new(is_enabled));
        self
    }

    /// What runs.
    #[must_use]
    pub fn runner(mut self, runner: impl RunTool) -> Self {
        self.runner = Some(Arc::new(runner));
        self
    }

    /// What runs: a function of typed arguments. The schema follows from their type.
    ///
    /// # Errors
    /// See [`ToolBuilder::build`].
    pub fn function<A, F, Fut, R>(self, function: F) -> Result<Tool, ToolProblems>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(ToolContext, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoResult,
    {
        let schema = self.schema.clone().unwrap_or_else(schema_of::<A>);
        let runner = FnRunner(move |context: ToolContext, arguments: CanonicalJson| {
            let decoded = arguments.decode::<A>();
            let running = decoded.map(|arguments| function(context, arguments));
            Box::pin(async move {
                match running {
                    Ok(running) => running.await.into_result(),
                    Err(error) => Err(ToolFailure::new(format_args!("the arguments do not fit: {error}"))),
                }
            }) as BoxFuture<'static, Result<Content, ToolFailure>>
        });
        self.schema(schema).runner(runner).build()
    }

    /// The tool.
    ///
    /// # Errors
    /// Every problem at once: a name that is none, a schema that is not valid or not of an object, no function to run.
    pub fn build(self) -> Result<Tool, ToolProblems> {
        let mut problems = self.problems;
        let name = ToolName::new(&self.name).map_err(|problem| problems.push(problem.to_string())).ok();
        let schema = self.schema.unwrap_or_else(|| serde_json::json!({"type": "object"}));
        let validator = compile_schema(&schema);
        if let Err(problem) = &validator {
            problems.push(problem.clone());
        }
        let needs_no_runner = matches!(self.shape, ToolShape::Agent { .. } | ToolShape::Question);
        let runner = self.runner.or_else(|| needs_no_runner.then(|| Arc::new(NothingToRun) as Arc<dyn RunTool>));
        if runner.is_none() {
            problems.push("a function to run is missing".to_owned());
        }
        if self.description.len() > 64 << 10 {
            problems.push("the description is longer than 64 KiB".to_owned());
        }
        match (name, runner) {
            (Some(name), Some(runner)) if problems.is_empty() => Ok(Tool(Arc::new(ToolParts {
                name,
                description: self.description,
                schema,
                shape: self.shape,
                effect: self.effect,
                approval: self.approval,
                decider: self.decider,
                guardrails: self.guardrails,
                timeout: self.timeout,
                runner,
                is_enabled: self.is_enabled,
                validator: OnceLock::from(validator),
            }))),
            _ => Err(ToolProblems { tool: self.name, problems }),
        }
    }
}

/// Everything that is wrong with a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool {tool:?}: {}", problems.join("; "))]
pub struct ToolProblems {
    /// The tool's name as it was given.
    pub tool: String,
    /// What is wrong with it.
    pub problems: Vec<String>,
}

impl From<BadId> for ToolProblems {
    fn from(problem: BadId) -> Self {
        Self { tool: String::new(), problems: vec![problem.to_string()] }
    }
}
