//! The model of a request. It never thinks: it asks for the call that was asked about, then for the callback.

use async_trait::async_trait;
use holdpoint_core::message::{Content, Item, Usage};
use holdpoint_runtime::Runtime;
use holdpoint_runtime::ports::model::{DeltaSink, Model, ModelFault, ModelReply, ModelRequest, NotYet, ProposedCall};

use super::agent::CALLBACK;
use super::callback::Attempt;
use super::notice::Notice;
use super::{Carried, Outcome, RequestFile, Terms};
use crate::webhooks::ATTEMPTS_MAX;

/// What the model is called, in definitions and logs.
const NAME: &str = "holdpoint-request";

/// Replies for a request, reading everything from its run.
pub(super) struct RequestModel {
    pub(super) runtime: Runtime,
    pub(super) tool: String,
}

/// What the model says next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Ask for the call.
    Call { arguments: String },
    /// Tell whoever asked, for the n-th time.
    Tell { attempt: usize },
    /// It is not time to tell again yet.
    Rest,
    /// There is nothing left to do.
    End,
}

#[async_trait]
impl Model for RequestModel {
    async fn reply(&self, request: ModelRequest, _: DeltaSink) -> Result<ModelReply, ModelFault> {
        let fault = |message: &str, source| ModelFault {
            model: NAME.to_owned(),
            message: message.to_owned(),
            may_retry: true,
            source,
        };
        let run = self.runtime.read_run(request.run).await;
        let run = run.map_err(|error| fault("the request cannot be read", Some(error.into())))?;
        let terms = run.context().and_then(|context| context.decode::<Carried>().ok());
        let terms = terms.map(|carried| carried.holdpoint_request).unwrap_or_default();
        let now = self.runtime.store().now();
        let items: Vec<&Item> = request.items.iter().map(AsRef::as_ref).collect();
        let next = match run.context().and_then(|context| context.decode::<Notice>().ok()) {
            None => next(&items, &terms, now.as_millis()),
            Some(notice) => {
                let file = RequestFile::read(&self.runtime, notice.request()).await;
                let file = file.map_err(|error| fault("the request cannot be read", Some(error.into())))?;
                next_of_notice(file.map(|file| file.outcome), &items, now.as_millis())
            }
        };
        match next {
            Next::Call { arguments } => Ok(asking("request", &self.tool, arguments)),
            Next::Tell { attempt } => {
                let arguments = format!(r#"{{"attempt":{attempt}}}"#);
                Ok(asking(&format!("callback_{attempt}"), CALLBACK, arguments))
            }
            Next::Rest => Err(fault("the callback is tried again later", Some(NotYet.into()))),
            Next::End => Ok(ModelReply { text: Some("settled".to_owned()), ..reply() }),
        }
    }

    fn name(&self) -> &str {
        NAME
    }
}

fn reply() -> ModelReply {
    ModelReply { usage: Usage::default(), ..ModelReply::default() }
}

fn asking(id: &str, tool: &str, arguments: String) -> ModelReply {
    let call = ProposedCall { id: id.to_owned(), tool: tool.to_owned(), arguments };
    ModelReply { calls: vec![call], ..reply() }
}

/// Reads from the conversation what comes next.
fn next(items: &[&Item], terms: &Terms, now_millis: i64) -> Next {
    let has_asked = items.iter().any(|item| matches!(item, Item::Assistant { .. }));
    if !has_asked {
        let asked = items.iter().find_map(|item| match item {
            Item::User(Content::Json(arguments)) => Some(arguments.as_str().to_owned()),
            _ => None,
        });
        return asked.map_or(Next::End, |arguments| Next::Call { arguments });
    }
    if terms.callback_url.is_none() {
        return Next::End;
    }
    next_attempt(items, now_millis)
}

/// Reads what comes next where the end of a request is told.
fn next_of_notice(outcome: Option<Outcome>, items: &[&Item], now_millis: i64) -> Next {
    match outcome {
        // It is about to be cancelled.
        Some(Outcome::Pending) => Next::Rest,
        Some(Outcome::Cancelled) => next_attempt(items, now_millis),
        // Somebody decided after all, which its own run tells.
        Some(_) | None => Next::End,
    }
}

/// Reads from the attempts so far whether there is another.
fn next_attempt(items: &[&Item], now_millis: i64) -> Next {
    let attempts = items.iter().filter_map(|item| match item {
        Item::ToolResult { tool, output, .. } if tool.as_str() == CALLBACK => Some(Attempt::read(output)),
        _ => None,
    });
    let attempts: Vec<Attempt> = attempts.collect();
    match attempts.last() {
        None => Next::Tell { attempt: 1 },
        Some(last) if last.is_over || attempts.len() >= ATTEMPTS_MAX as usize => Next::End,
        Some(last) if last.next_at_millis.is_some_and(|at| at > now_millis) => Next::Rest,
        Some(_) => Next::Tell { attempt: attempts.len() + 1 },
    }
}

impl RequestModel {
    pub(super) fn new(runtime: &Runtime, tool: &str) -> Self {
        Self { runtime: runtime.clone(), tool: tool.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::ids::ToolName;
    use holdpoint_core::json::CanonicalJson;
    use holdpoint_core::message::AskedCall;

    use super::*;

    fn user() -> Item {
        Item::User(Content::Json(CanonicalJson::parse(r#"{"b":2,"a":1}"#).unwrap()))
    }

    fn asked(tool: &str) -> Item {
        let (tool, arguments) = (ToolName::new(tool).unwrap(), CanonicalJson::parse("{}").unwrap());
        Item::Assistant { text: None, calls: vec![AskedCall { call_id: "1".to_owned(), tool, arguments }] }
    }

    fn told(attempt: &Attempt) -> Item {
        let (call_id, tool) = ("1".to_owned(), ToolName::new(CALLBACK).unwrap());
        Item::ToolResult { call_id, tool, output: attempt.write(), is_error: false }
    }

    #[track_caller]
    fn check(items: &[Item], callback: bool, expected: Next) {
        let terms = Terms { callback_url: callback.then(|| "https://a.example".to_owned()), ..Terms::default() };
        assert_eq!(next(&items.iter().collect::<Vec<_>>(), &terms, 1_000), expected);
    }

    #[test]
    fn it_asks_for_the_call_then_tells_and_then_ends() {
        let failed = |next_at| Attempt { is_delivered: false, next_at_millis: Some(next_at), is_over: false };
        let delivered = Attempt { is_delivered: true, next_at_millis: None, is_over: true };
        check(&[user()], true, Next::Call { arguments: r#"{"a":1,"b":2}"#.to_owned() });
        check(&[user(), asked("deploy")], false, Next::End);
        check(&[user(), asked("deploy")], true, Next::Tell { attempt: 1 });
        check(&[user(), asked("deploy"), told(&failed(2_000))], true, Next::Rest);
        check(&[user(), asked("deploy"), told(&failed(1_000))], true, Next::Tell { attempt: 2 });
        let mut often = vec![user(), asked("deploy")];
        often.extend((0..ATTEMPTS_MAX).map(|_| told(&failed(1))));
        check(&often, true, Next::End);
        check(&[user(), asked("deploy"), told(&failed(1)), told(&delivered)], true, Next::End);
    }

    #[test]
    fn the_end_of_a_request_is_told_once_it_was_cancelled() {
        let failed = told(&Attempt { is_delivered: false, next_at_millis: Some(1_001), is_over: false });
        let next = |outcome, items: &[&Item]| next_of_notice(outcome, items, 1_000);
        assert_eq!(next(Some(Outcome::Pending), &[]), Next::Rest);
        assert_eq!(next(Some(Outcome::Cancelled), &[]), Next::Tell { attempt: 1 });
        assert_eq!(next(Some(Outcome::Cancelled), &[&failed]), Next::Rest);
        for outcome in [None, Some(Outcome::Approved), Some(Outcome::Denied), Some(Outcome::Expired)] {
            assert_eq!(next(outcome, &[]), Next::End);
        }
    }
}
