//! Spans around runs, model calls and tools: ids and names, nothing of what is said or done.
#![allow(clippy::unwrap_used)] // A case is a test, and so are its helpers.

mod common;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use common::*;
use holdpoint::*;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// Keeps each new span: what it is called, what is around it, and its fields.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Span>>>);

type Span = (String, Vec<(String, String)>);

struct Fields<'a>(&'a mut Vec<(String, String)>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name().to_owned(), format!("{value:?}")));
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Kept {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: LayerContext<'_, S>) {
        let names: Vec<&str> = context.span_scope(id).unwrap().from_root().map(|span| span.name()).collect();
        let mut fields = Vec::new();
        attributes.record(&mut Fields(&mut fields));
        self.0.lock().unwrap().push((names.join("/"), fields));
    }
}

#[tokio::test]
async fn runs_model_calls_and_tools_have_spans_inside_each_other_that_say_nothing_secret() {
    let kept = Kept::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(kept.clone()));
    let secret = || json!({"path": "the secret path"});
    let model =
        ScriptedModel::new([Reply::text("secret thoughts").and_call("delete", secret()), Reply::text("secret")]);
    let runner = Runner::in_memory(model);
    let agent = agent("Desk", [counted("delete", &Effects::default()).build().unwrap()]);
    let outcome = runner.run(&agent, "a secret message").session("till").await.unwrap();
    let run = outcome.run_id().to_string();

    let spans = kept.0.lock().unwrap().clone();
    let names: Vec<&str> = spans.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["run", "run/model_call", "run/tool_call", "run/model_call"]);
    for (name, fields) in &spans {
        assert!(fields.contains(&("run.id".to_owned(), run.clone())), "{name}: {fields:?}");
        assert!(!format!("{fields:?}").contains("secret"), "{name}: {fields:?}");
    }
    let of_tool: Vec<&str> = spans[2].1.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(of_tool, ["run.id", "agent.id", "call", "tool", "attempt"]);
}
