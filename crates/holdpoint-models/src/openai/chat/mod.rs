//! Chat completions: the protocol that every compatible server knows.

mod request;
mod stream;

#[cfg(test)]
#[cfg(all(feature = "openai", feature = "anthropic"))]
mod tests;

use async_trait::async_trait;
use holdpoint_runtime::ports::model::{DeltaSink, Model, ModelFault, ModelReply, ModelRequest};

use super::OpenAi;
use crate::draft::Draft;
use crate::problem::{Problem, Whom};

pub(crate) use stream::ChatStream;

/// A model by chat completions.
#[derive(Clone)]
pub struct ChatModel {
    provider: OpenAi,
    whom: Whom,
}

impl ChatModel {
    pub(super) fn new(provider: OpenAi, model: String) -> Self {
        let whom = provider.whom(model);
        Self { provider, whom }
    }
}

#[async_trait]
impl Model for ChatModel {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        let body = request::body(&self.whom.model, &request, self.provider.dialect).map_err(Problem::Setting);
        let outgoing = body.and_then(|body| self.provider.outgoing("chat/completions", &body));
        let outgoing = outgoing.map_err(|problem| problem.into_fault(&self.whom, 1))?;
        let assembler = || ChatStream::new(Draft::new(&request));
        self.provider.http.ask(&self.whom, outgoing, assembler, &deltas).await
    }

    fn name(&self) -> &str {
        &self.whom.name
    }
}

impl std::fmt::Debug for ChatModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatModel").field("model", &self.whom.model).field("provider", &self.provider).finish()
    }
}
