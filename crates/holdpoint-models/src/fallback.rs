//! A model that stands in for another one.

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_runtime::ports::model::{DeltaSink, Model, ModelFault, ModelReply, ModelRequest};

use crate::told;

/// Asks one model and, where it gives no reply, another.
///
/// The second one is asked when the first failed for good (its own further attempts included) and nothing of its reply
/// was told. After the first delta there is no second model: those who watch would see one reply begin and another go
/// on. The fault is then the caller's to see, and resuming the run asks both again.
///
/// ```
/// use std::sync::Arc;
/// use holdpoint_models::fallback::FallbackModel;
/// use holdpoint_models::scripted::{Reply, ScriptedModel};
/// use holdpoint_runtime::ports::model::Model;
///
/// let first = ScriptedModel::new([Reply::fault("overloaded")]).named("large");
/// let second = ScriptedModel::new([Reply::text("Hello.")]).named("small");
/// let model = FallbackModel::new(Arc::new(first), Arc::new(second));
/// assert_eq!(model.name(), "large, else small");
/// ```
#[derive(Clone)]
pub struct FallbackModel {
    name: String,
    first: Arc<dyn Model>,
    second: Arc<dyn Model>,
}

impl FallbackModel {
    /// Asks `first` and, where it gives no reply, `second`.
    pub fn new(first: Arc<dyn Model>, second: Arc<dyn Model>) -> Self {
        Self { name: format!("{}, else {}", first.name(), second.name()), first, second }
    }

    fn both_failed(&self, first: ModelFault, second: ModelFault) -> ModelFault {
        ModelFault {
            model: self.name.clone(),
            message: format!("{}: {}; {}: {}", first.model, first.message, second.model, second.message),
            may_retry: first.may_retry || second.may_retry,
            source: Some(Box::new(first)),
        }
    }
}

#[async_trait]
impl Model for FallbackModel {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        let (watched, is_told) = told::watched(&deltas);
        match self.first.reply(request.clone(), watched).await {
            Ok(reply) => Ok(reply),
            Err(fault) if is_told.get() => Err(fault),
            Err(fault) => self.second.reply(request, deltas).await.map_err(|second| self.both_failed(fault, second)),
        }
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Debug for FallbackModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FallbackModel").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use holdpoint_core::ids::FramePath;
    use holdpoint_runtime::ports::model::Delta;

    use super::*;
    use crate::scripted::{Reply, ScriptedModel};

    fn request() -> ModelRequest {
        ModelRequest {
            run: "run_0198c0ffee007000800000000000beef".parse().unwrap(),
            frame: FramePath::root(),
            turn: 1,
            agent: "A".parse().unwrap(),
            instructions: "".into(),
            items: Arc::new([]),
            tools: Arc::new([]),
            settings: Arc::default(),
        }
    }

    /// Says something and then gives no reply.
    struct BreaksOff;

    #[async_trait]
    impl Model for BreaksOff {
        async fn reply(&self, _: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
            deltas.tell(Delta::Text("It is".to_owned()));
            Err(ModelFault { model: "first".to_owned(), message: "cut".to_owned(), may_retry: true, source: None })
        }

        fn name(&self) -> &'static str {
            "first"
        }
    }

    async fn ask(first: impl Model, second: &ScriptedModel) -> (Result<String, ModelFault>, Vec<Delta>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = DeltaSink::new({
            let told = told.clone();
            move |delta| told.lock().unwrap().push(delta)
        });
        let model = FallbackModel::new(Arc::new(first), Arc::new(second.clone()));
        let reply = model.reply(request(), sink).await.map(|reply| reply.text.unwrap_or_default());
        let told = told.lock().unwrap().clone();
        (reply, told)
    }

    #[tokio::test]
    async fn the_second_is_asked_only_when_the_first_gives_no_reply() {
        let second = ScriptedModel::new([Reply::text("two")]);
        let (reply, told) = ask(ScriptedModel::new([Reply::text("one")]), &second).await;
        assert_eq!((reply.unwrap().as_str(), second.calls()), ("one", 0));
        assert_eq!(told, [Delta::Text("one".to_owned())]);
        for fault in [Reply::fault("busy"), Reply::lasting_fault("gone")] {
            let (reply, told) = ask(ScriptedModel::new([fault]), &second).await;
            assert_eq!(reply.unwrap(), "two");
            assert_eq!(told, [Delta::Text("two".to_owned())]);
        }
        assert_eq!(second.calls(), 2);
    }

    #[tokio::test]
    async fn after_the_first_delta_nobody_stands_in() {
        let second = ScriptedModel::new([Reply::text("two")]);
        let (reply, told) = ask(BreaksOff, &second).await;
        assert_eq!(reply.unwrap_err().to_string(), "model first gave no reply: cut");
        assert_eq!((told, second.calls()), (vec![Delta::Text("It is".to_owned())], 0));
    }

    #[tokio::test]
    async fn where_both_fail_both_are_told_and_either_may_be_asked_again() {
        for (first, second, may_retry) in [
            (Reply::fault("a"), Reply::lasting_fault("b"), true),
            (Reply::lasting_fault("a"), Reply::fault("b"), true),
            (Reply::lasting_fault("a"), Reply::lasting_fault("b"), false),
        ] {
            let first = ScriptedModel::new([first]).named("first");
            let (reply, _) = ask(first, &ScriptedModel::new([second]).named("second")).await;
            let fault = reply.unwrap_err();
            let told = "model first, else second gave no reply: first: a; second: b";
            assert_eq!((fault.to_string().as_str(), fault.may_retry), (told, may_retry));
        }
    }
}
