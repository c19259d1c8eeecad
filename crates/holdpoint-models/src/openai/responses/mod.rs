//! Responses: OpenAI's newer protocol.

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

pub(crate) use stream::ResponsesStream;

/// A model by responses.
#[derive(Clone)]
pub struct ResponsesModel {
    provider: OpenAi,
    whom: Whom,
}

impl ResponsesModel {
    pub(super) fn new(provider: OpenAi, model: String) -> Self {
        let whom = provider.whom(model);
        Self { provider, whom }
    }
}

#[async_trait]
impl Model for ResponsesModel {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        let body = request::body(&self.whom.model, &request, self.provider.dialect).map_err(Problem::Setting);
        let outgoing = body.and_then(|body| self.provider.outgoing("responses", &body));
        let outgoing = outgoing.map_err(|problem| problem.into_fault(&self.whom, 1))?;
        let assembler = || ResponsesStream::new(Draft::new(&request));
        self.provider.http.ask(&self.whom, outgoing, assembler, &deltas).await
    }

    fn name(&self) -> &str {
        &self.whom.name
    }
}

impl std::fmt::Debug for ResponsesModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponsesModel").field("model", &self.whom.model).field("provider", &self.provider).finish()
    }
}
