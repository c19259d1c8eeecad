//! What `#[tool]` makes, compiled as a user of the `holdpoint` crate would have it.
//!
//! That crate stands on this one, so its `__private` part is rebuilt here over the real runtime. The only thing added
//! is `Tool::run`: a real tool is run by the driver, and only by it.

extern crate self as holdpoint;

use holdpoint_macros::tool;
use holdpoint_runtime::ports::tool::{Approval, ToolContext};
use serde_json::{Value, json};

#[doc(hidden)]
pub mod __private {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::time::Duration;

    pub use holdpoint_core::tool::Effect;
    use holdpoint_runtime::ports::tool::{IntoHold, ToolFailure, ToolProblems};
    pub use holdpoint_runtime::ports::tool::{IntoResult, ToolContext};
    pub use {schemars, serde};

    use holdpoint_core::json::CanonicalJson;
    use holdpoint_core::message::Content;
    use holdpoint_runtime::ports::tool as real;

    type Told = Pin<Box<dyn Future<Output = Result<Content, ToolFailure>> + Send>>;

    pub struct Tool {
        pub real: real::Tool,
        run: Box<dyn Fn(ToolContext, CanonicalJson) -> Told + Send + Sync>,
        pub timeout: Option<Duration>,
    }

    impl Tool {
        pub fn builder(name: &str) -> ToolBuilder {
            ToolBuilder { real: real::Tool::builder(name), timeout: None }
        }

        pub async fn run(&self, context: ToolContext, arguments: &CanonicalJson) -> Result<Content, ToolFailure> {
            self.real.validate(arguments).map_err(ToolFailure)?;
            (self.run)(context, arguments.clone()).await
        }
    }

    pub struct ToolBuilder {
        real: real::ToolBuilder,
        timeout: Option<Duration>,
    }

    impl ToolBuilder {
        fn with(self, change: impl FnOnce(real::ToolBuilder) -> real::ToolBuilder) -> Self {
            Self { real: change(self.real), ..self }
        }

        pub fn description(self, text: &str) -> Self {
            self.with(|real| real.description(text))
        }

        pub fn effect(self, effect: Effect) -> Self {
            self.with(|real| real.effect(effect))
        }

        pub fn needs_approval(self, always: bool) -> Self {
            self.with(|real| real.needs_approval(always))
        }

        pub fn needs_approval_when<F, Fut, R>(self, predicate: F) -> Self
        where
            F: Fn(ToolContext, serde_json::Value) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            R: IntoHold,
        {
            self.with(|real| real.needs_approval_when(predicate))
        }

        pub fn timeout(self, timeout: Duration) -> Self {
            Self { real: self.real.timeout(timeout), timeout: Some(timeout) }
        }

        pub fn function<A, F, Fut, R>(self, function: F) -> Result<Tool, ToolProblems>
        where
            A: serde::de::DeserializeOwned + schemars::JsonSchema + Send + 'static,
            F: Fn(ToolContext, A) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            R: IntoResult,
        {
            let shared = Arc::new(function);
            let function = shared.clone();
            let real = self.real.function(move |context, arguments: A| function(context, arguments))?;
            let run = Box::new(move |context, arguments: CanonicalJson| {
                let decoded = arguments.decode::<A>().map_err(ToolFailure::new);
                let running = decoded.map(|arguments| shared(context, arguments));
                Box::pin(async move { running?.await.into_result() }) as Told
            });
            Ok(Tool { real, run, timeout: self.timeout })
        }
    }
}

use __private::{Effect, Tool};

/// Says what the weather is.
///
/// It looks out of the window.
#[tool]
async fn get_weather(
    /// The city.
    location: String,
    #[serde(default)]
    #[schemars(range(min = 1, max = 14))]
    days: Option<u32>,
) -> Result<String, std::num::ParseIntError> {
    let days = days.unwrap_or(1);
    if location.is_empty() { "nowhere".parse::<u8>().map(|_| String::new()) } else { Ok(format!("{location} {days}")) }
}

fn context() -> ToolContext {
    ToolContext {
        session: "desk".parse().expect("an id"),
        actor: "local".parse().expect("an id"),
        run: "run_0198c0ffee007000800000000000beef".parse().expect("an id"),
        call: "1.0".parse().expect("a path"),
        call_id: "call_1_0".to_owned(),
        agent: "Weather".parse().expect("an id"),
        tool: "get_weather".parse().expect("a name"),
        context: Default::default(),
        attempt: 1,
        cancelled: Default::default(),
    }
}

async fn run(tool: &Tool, arguments: Value) -> Result<String, String> {
    let arguments = holdpoint_core::json::CanonicalJson::from_serialize(&arguments).expect("JSON");
    tool.run(context(), &arguments).await.map(|content| content.to_text()).map_err(|failure| failure.0)
}

async fn holds(tool: &Tool, arguments: Value) -> Result<bool, String> {
    match tool.real.approval() {
        Approval::Never => Ok(false),
        Approval::Always => Ok(true),
        Approval::When(predicate) => predicate.holds(&context(), &arguments).await,
        Approval::By(_) => Err("the macro gives no policies".to_owned()),
    }
}

#[test]
fn name_description_and_schema_follow_from_the_function() {
    let tool = get_weather().real;
    assert_eq!(tool.name().as_str(), "get_weather");
    assert_eq!(tool.description(), "Says what the weather is.\n\nIt looks out of the window.");
    let schema = json!({
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "The city."},
            "days": {"type": ["integer", "null"], "format": "uint32", "minimum": 1, "maximum": 14, "default": null},
        },
        "required": ["location"],
        "additionalProperties": false,
    });
    assert_eq!(*tool.schema(), schema);
    assert_eq!(tool.effect(), Effect::AtMostOnce);
    assert!(matches!(tool.approval(), Approval::Never));
}

#[tokio::test]
async fn a_call_runs_the_function_with_its_arguments() {
    let tool = get_weather();
    assert_eq!(run(&tool, json!({"location": "Oakland", "days": 3})).await, Ok("Oakland 3".to_owned()));
    assert_eq!(run(&tool, json!({"location": "Oakland"})).await, Ok("Oakland 1".to_owned()));
    assert_eq!(run(&tool, json!({"location": ""})).await, Err("invalid digit found in string".to_owned()));
}

#[tokio::test]
async fn arguments_that_no_parameter_is_named_after_are_refused() {
    let tool = get_weather();
    for arguments in [json!({"location": "Oakland", "city": "x"}), json!({"days": 1}), json!({"location": 1})] {
        assert!(run(&tool, arguments.clone()).await.is_err(), "{arguments}");
    }
}

#[tool(
    name = "mail.send:now",
    effect = idempotent,
    needs_approval,
    timeout_seconds = 30,
)]
pub(crate) async fn send(context: ToolContext, mut to: Vec<String>, r#type: Kind) -> Value {
    to.sort();
    json!({"to": to, "type": r#type, "key": context.idempotency_key()})
}

/// How a mail is sent.
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// At once.
    Now,
}

#[tokio::test]
async fn options_and_context_reach_the_tool() {
    let tool = send();
    assert_eq!(tool.real.name().as_str(), "mail.send:now");
    assert_eq!((tool.real.description(), tool.real.effect()), ("", Effect::Idempotent));
    assert_eq!(tool.timeout, Some(std::time::Duration::from_secs(30)));
    assert!(matches!(tool.real.approval(), Approval::Always));
    assert_eq!(tool.real.schema()["required"], json!(["to", "type"]));
    let told = run(&tool, json!({"to": ["b", "a"], "type": "now"})).await;
    let expected = r#"{"key":"run_0198c0ffee007000800000000000beef:1.0","to":["a","b"],"type":"now"}"#;
    assert_eq!(told, Ok(expected.to_owned()));
}

mod elsewhere {
    pub(crate) async fn is_far(_: super::ToolContext, arguments: super::Value) -> Result<bool, &'static str> {
        arguments["location"].as_str().map(|location| location != "Oakland").ok_or("no location")
    }
}

#[tool(needs_approval_when = elsewhere::is_far, effect = read_only)]
async fn look(location: String) -> String {
    location
}

#[tool(needs_approval_when = |_, arguments| async move { arguments["n"] == 3 })]
async fn count(n: u32) -> String {
    n.to_string()
}

#[tool(needs_approval = false)]
async fn nothing() {}

#[tokio::test]
async fn a_predicate_is_a_function_or_a_closure() {
    assert_eq!(look().real.effect(), Effect::ReadOnly);
    assert_eq!(holds(&look(), json!({"location": "Oakland"})).await, Ok(false));
    assert_eq!(holds(&look(), json!({"location": "San Francisco"})).await, Ok(true));
    assert_eq!(holds(&look(), json!({})).await, Err("no location".to_owned()));
    assert_eq!(holds(&count(), json!({"n": 3})).await, Ok(true));
    assert_eq!(holds(&count(), json!({"n": 4})).await, Ok(false));
    assert_eq!(holds(&nothing(), json!({})).await, Ok(false));
}

#[tokio::test]
async fn a_tool_without_arguments_takes_an_empty_object() {
    assert_eq!(*nothing().real.schema(), json!({"type": "object", "additionalProperties": false}));
    assert_eq!(run(&nothing(), json!({})).await, Ok("done".to_owned()));
    assert!(run(&nothing(), json!({"a": 1})).await.is_err());
}

/// Adds up to `n`, by itself.
#[tool]
#[allow(clippy::only_used_in_recursion)]
async fn add_up(n: u32) -> u64String {
    if n == 0 { u64String(0) } else { u64String(Box::pin(add_up(n - 1)).await.0 + u64::from(n)) }
}

#[allow(non_camel_case_types)]
struct u64String(u64);

impl holdpoint_runtime::ports::tool::IntoContent for u64String {
    fn into_content(self) -> Result<holdpoint_core::message::Content, holdpoint_runtime::ports::tool::ToolFailure> {
        self.0.to_string().into_content()
    }
}

#[tokio::test]
async fn a_function_may_call_itself() {
    assert_eq!(run(&add_up(), json!({"n": 4})).await, Ok("10".to_owned()));
}

#[tool]
async fn hidden_context(_: ToolContext, r#fn: String) -> impl holdpoint_runtime::ports::tool::IntoContent {
    r#fn
}

#[tokio::test]
async fn a_raw_name_is_an_argument_without_its_prefix() {
    assert_eq!(run(&hidden_context(), json!({"fn": "x"})).await, Ok("x".to_owned()));
}
