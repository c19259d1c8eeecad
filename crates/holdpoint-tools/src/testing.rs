//! What the tests of all tools need: a call's context, and arguments.

use holdpoint_core::json::CanonicalJson;
use holdpoint_runtime::ports::tool::{Approval, PolicyVerdict, Tool, ToolContext};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(crate) fn context() -> ToolContext {
    ToolContext {
        session: "desk".parse().unwrap(),
        actor: "local".parse().unwrap(),
        run: "run_0198c0ffee007000800000000000beef".parse().unwrap(),
        call: "1.0".parse().unwrap(),
        call_id: "call_1_0".to_owned(),
        agent: "Tester".parse().unwrap(),
        tool: "tool".parse().unwrap(),
        context: Default::default(),
        attempt: 1,
        cancelled: CancellationToken::new(),
    }
}

pub(crate) fn arguments(value: &Value) -> CanonicalJson {
    CanonicalJson::from_serialize(value).unwrap()
}

/// Whether a person must look at a call with these arguments.
pub(crate) async fn holds(tool: &Tool, value: &Value) -> bool {
    match tool.approval() {
        Approval::Never => false,
        Approval::Always => true,
        Approval::When(predicate) => predicate.holds(&context(), value).await.unwrap(),
        Approval::By(policy) => policy.verdict(&context(), &arguments(value)).await.unwrap() != PolicyVerdict::Allow,
    }
}
