//! A tool: what a model may ask for, who must look first, and what runs.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use holdpoint_core::ids::{ActorId, AgentId, BadId, CallPath, RunId, ToolName};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::tool::Effect;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::context::Context;
use crate::guardrail::ToolGuardrail;

/// A tool that agents can be given. Cheap to clone.
#[derive(Clone)]
pub struct Tool(pub(crate) Arc<ToolParts>);

pub(crate) struct ToolParts {
    pub(crate) name: ToolName,
    pub(crate) description: String,
    pub(crate) schema: Value,
    pub(crate) shape: ToolShape,
    pub(crate) effect: Effect,
    pub(crate) approval: Approval,
    pub(crate) decider: Option<(ActorId, Arc<dyn AutoDecider>)>,
    pub(crate) guardrails: Vec<ToolGuardrail>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) runner: Arc<dyn RunTool>,
    pub(crate) is_enabled: Option<EnabledWhen>,
    pub(crate) validator: OnceLock<Result<jsonschema::Validator, String>>,
}

pub(crate) type EnabledWhen = Arc<dyn Fn(&Context) -> bool + Send + Sync>;

/// How a tool is reached.
#[derive(Clone, Default)]
pub enum ToolShape {
    /// A function with a JSON schema.
    #[default]
    Function,
    /// Another agent, run to its end.
    Agent {
        /// The agent.
        agent: Agent,
        /// How many model calls it may make.
        turns_max: Option<u32>,
    },
    /// Commands in a shell. Runs in the model's order with other calls of this kind.
    Shell,
    /// Changes to files. Runs in the model's order with other calls of this kind.
    ApplyPatch,
    /// A batch of actions at a screen. Its predicate is asked once for each action.
    Computer,
    /// A tool of an MCP server.
    Mcp {
        /// The server's label.
        server: ToolName,
    },
    /// A question to a person.
    Question,
}

/// When a person must look before a tool runs.
#[derive(Clone, Default)]
pub enum Approval {
    /// Never.
    #[default]
    Never,
    /// Always.
    Always,
    /// When the predicate says so, or fails.
    When(Arc<dyn Predicate>),
}

/// Asked once, when the call is made; its answer is written down.
pub trait Predicate: Send + Sync + 'static {
    /// Whether a person must look. A failure holds the call.
    fn holds(&self, context: &ToolContext, arguments: &Value) -> BoxFuture<'static, Result<bool, String>>;
}

/// Decides in code, in a person's place; what it says is recorded with its name.
#[async_trait]
pub trait AutoDecider: Send + Sync + 'static {
    /// Approves, denies, or leaves it to a person.
    async fn decide(&self, context: &ToolContext, arguments: &CanonicalJson) -> AutoDecision;
}

/// What a decider in code says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoDecision {
    /// Run it.
    Approve,
    /// Do not run it; an empty reason leaves the words to formatter and default.
    Deny(String),
    /// Ask a person.
    Abstain,
}

/// What runs when a call may.
#[async_trait]
pub trait RunTool: Send + Sync + 'static {
    /// Runs the call with exactly these arguments.
    ///
    /// # Errors
    /// What the model is told instead of a result.
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure>;
}

/// A tool that did not do what it was asked; the text goes to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolFailure(pub String);

impl ToolFailure {
    /// A failure told in these words.
    pub fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string())
    }
}

/// What a tool, predicate, decider or guardrail is told about a call.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The run.
    pub run: RunId,
    /// The call's place in the run.
    pub call: CallPath,
    /// The provider's id of the call.
    pub call_id: String,
    /// The agent that asks.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolName,
    /// The application's context.
    pub context: Context,
    /// Which start of this call it is, from one.
    pub attempt: u32,
    /// Ends when somebody cancels the run: finish soon.
    pub cancelled: CancellationToken,
}

impl ToolContext {
    /// The same for every attempt at this call, and for no other call.
    pub fn idempotency_key(&self) -> String {
        format!("{}:{}", self.run, self.call)
    }
}

impl Tool {
    /// Begins a tool of this name.
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(name.into())
    }

    /// What models call it.
    pub fn name(&self) -> &ToolName {
        &self.0.name
    }

    /// What it is for.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// The JSON schema of its arguments.
    pub fn schema(&self) -> &Value {
        &self.0.schema
    }

    /// What it does to the world.
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// When a person must look.
    pub fn approval(&self) -> &Approval {
        &self.0.approval
    }

    /// Whether a decider in code may answer in a person's place.
    pub fn has_decider(&self) -> bool {
        self.0.decider.is_some()
    }

    /// How it is reached.
    pub fn shape(&self) -> &ToolShape {
        &self.0.shape
    }

    /// The same tool with guardrails, settings or an approval of one's own.
    pub fn rebuild(&self) -> ToolBuilder {
        let parts = &self.0;
        ToolBuilder {
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

    /// Checks arguments against the schema; says where and why they break it.
    ///
    /// # Errors
    /// The first few places that break it.
    pub fn validate(&self, arguments: &CanonicalJson) -> Result<(), String> {
        let validator = self.0.validator.get_or_init(|| compile_schema(&self.0.schema));
        check_schema(validator.as_ref().map_err(Clone::clone)?, arguments)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.0.name).finish_non_exhaustive()
    }
}

pub(crate) fn compile_schema(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| format!("the schema is not valid: {error}"))
}

pub(crate) fn check_schema(validator: &jsonschema::Validator, arguments: &CanonicalJson) -> Result<(), String> {
    let value = arguments.to_value();
    let problems: Vec<String> = validator
        .iter_errors(&value)
        .take(5)
        .map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "the arguments".to_owned() } else { place };
            format!("{place}: {}", holdpoint_core::text::clamp(&error.to_string(), 300))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

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
    fn new(name: String) -> Self {
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

/// What a predicate may return: `bool`, or a result whose error holds the call.
pub trait IntoHold {
    /// Whether a person must look.
    ///
    /// # Errors
    /// Why it could not be said.
    fn into_hold(self) -> Result<bool, String>;
}

impl IntoHold for bool {
    fn into_hold(self) -> Result<bool, String> {
        Ok(self)
    }
}

impl<E: fmt::Display> IntoHold for Result<bool, E> {
    fn into_hold(self) -> Result<bool, String> {
        self.map_err(|error| error.to_string())
    }
}

/// What a tool's function may return: text, JSON, [`Content`] or nothing, or a result of one of them.
pub trait IntoResult {
    /// What the model is told.
    ///
    /// # Errors
    /// What the model is told instead of a result.
    fn into_result(self) -> Result<Content, ToolFailure>;
}

/// A value that becomes a tool's result.
pub trait IntoContent {
    /// The value as content.
    ///
    /// # Errors
    /// The value has no JSON form.
    fn into_content(self) -> Result<Content, ToolFailure>;
}

/// A tool's result that is told as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoContent for Json<T> {
    fn into_content(self) -> Result<Content, ToolFailure> {
        CanonicalJson::from_serialize(&self.0).map(Content::Json).map_err(ToolFailure::new)
    }
}

impl IntoContent for Content {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Ok(self)
    }
}

impl IntoContent for String {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Ok(Content::Text(self))
    }
}

impl IntoContent for &str {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Ok(Content::Text(self.to_owned()))
    }
}

impl IntoContent for Value {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Json(self).into_content()
    }
}

impl IntoContent for () {
    fn into_content(self) -> Result<Content, ToolFailure> {
        Ok(Content::Text("done".to_owned()))
    }
}

impl<T: IntoContent> IntoResult for T {
    fn into_result(self) -> Result<Content, ToolFailure> {
        self.into_content()
    }
}

impl<T: IntoContent, E: fmt::Display> IntoResult for Result<T, E> {
    fn into_result(self) -> Result<Content, ToolFailure> {
        self.map_err(ToolFailure::new)?.into_content()
    }
}

/// The schema of a type, with everything in place that it refers to.
pub fn schema_of<A: JsonSchema>() -> Value {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.entry("type").or_insert_with(|| Value::String("object".to_owned()));
    }
    schema
}

struct FnPredicate<F>(F);

impl<F> Predicate for FnPredicate<F>
where
    F: Fn(ToolContext, Value) -> BoxFuture<'static, Result<bool, String>> + Send + Sync + 'static,
{
    fn holds(&self, context: &ToolContext, arguments: &Value) -> BoxFuture<'static, Result<bool, String>> {
        (self.0)(context.clone(), arguments.clone())
    }
}

struct FnDecider<F>(F);

#[async_trait]
impl<F> AutoDecider for FnDecider<F>
where
    F: Fn(ToolContext, CanonicalJson) -> BoxFuture<'static, AutoDecision> + Send + Sync + 'static,
{
    async fn decide(&self, context: &ToolContext, arguments: &CanonicalJson) -> AutoDecision {
        (self.0)(context.clone(), arguments.clone()).await
    }
}

struct FnRunner<F>(F);

#[async_trait]
impl<F> RunTool for FnRunner<F>
where
    F: Fn(ToolContext, CanonicalJson) -> BoxFuture<'static, Result<Content, ToolFailure>> + Send + Sync + 'static,
{
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        (self.0)(context, arguments).await
    }
}

/// Stands where the machine itself does what is to be done: an inner agent, a question.
struct NothingToRun;

#[async_trait]
impl RunTool for NothingToRun {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        Err(ToolFailure::new(format_args!("{} is not run as a function", context.tool)))
    }
}
