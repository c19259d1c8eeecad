//! Arguments that a person changed are the policy's business once more. Whoever approved them stands for a rule that only
//! holds, but not for one that denies, or that asks others.

use holdpoint_core::ids::CallPath;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::pause::{Pause, Subject};
use holdpoint_core::run::Run;
use holdpoint_core::tool::DENIED_TEXT;
use tokio_util::sync::CancellationToken;

use crate::agent::AgentGraph;
use crate::context::Context;
use crate::driver::Drive;
use crate::driver::guard::tool_for;
use crate::driver::screen::ask_policy;
use crate::ports::tool::{Approval, PolicyVerdict, Tool, ToolContext};

/// Why the policy would not let a call of a run run with these arguments in place of its own; `None` where it would, and
/// where there is no policy to ask.
pub(crate) async fn objection_to_edit(
    run: &Run,
    graph: &AgentGraph,
    path: &CallPath,
    arguments: &CanonicalJson,
) -> Option<String> {
    let context = Context::stored(run.context());
    let (tool, context) = tool_for(run, graph, path, run.call(path)?, (&context, &CancellationToken::new()))?;
    objection(run, path, (&tool, &context), arguments).await
}

impl Drive {
    /// Why the policy does not let arguments run that a person changed; `None` where it does.
    pub(super) async fn objection_to_edit(
        &self,
        path: &CallPath,
        tool: (&Tool, &ToolContext),
        arguments: &CanonicalJson,
    ) -> Option<String> {
        objection(&self.run, path, tool, arguments).await
    }
}

async fn objection(
    run: &Run,
    path: &CallPath,
    (tool, context): (&Tool, &ToolContext),
    arguments: &CanonicalJson,
) -> Option<String> {
    let Approval::By(policy) = tool.approval() else { return None };
    match ask_policy(&**policy, context, arguments, false).await {
        PolicyVerdict::Allow => None,
        PolicyVerdict::Deny { message, .. } => Some(message.unwrap_or_else(|| DENIED_TEXT.to_owned())),
        PolicyVerdict::Hold(terms) => {
            let is_about = |pause: &&Pause| matches!(&pause.subject, Subject::Call { path: of, .. } if of == path);
            let answered = |pause: &Pause| {
                let by_same = terms.approvers.is_empty() || terms.approvers == pause.terms.approvers;
                by_same && terms.quorum <= pause.terms.quorum.max(1)
            };
            let is_answered = run.pauses().iter().filter(is_about).any(answered);
            let others = "the changed arguments need the approval of others: ask for them as a call of its own";
            (!is_answered).then(|| others.to_owned())
        }
    }
}
