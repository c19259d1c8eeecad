//! What is counted and timed, for Prometheus. Labels are words of ours or of the operator's: nothing that a client, a model
//! or a tool said ever becomes one.
//!
//! [`Metrics`] is also the runtime's observer: hand it to the runtime's builder, and to [`crate::serve::serve_with`].

mod http;
pub(crate) mod scrape;

use std::sync::Arc;

use holdpoint_core::event::{RunEnd, RunEvent};
use holdpoint_core::pause::PauseKind;
use holdpoint_runtime::ports::observer::{
    Change, Committed, ModelCalled, NoticeAttempted, Observer, PauseChange, ToolRan,
};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub(crate) use http::observe;
pub(crate) use scrape::router;

/// What is counted. Cheap to clone; clones count together.
#[derive(Clone)]
pub struct Metrics(Arc<Counted>);

struct Counted {
    registry: Registry,
    requests: Family<Request, Counter>,
    request_seconds: Family<Route, Histogram, fn() -> Histogram>,
    store_faults: Family<Fault, Counter>,
    runs: Family<RunOutcome, Counter>,
    pauses_opened: Family<Kind, Counter>,
    pauses_ended: Family<Ended, Counter>,
    pause_seconds: Family<Kind, Histogram, fn() -> Histogram>,
    open_pauses: Family<Kind, Gauge>,
    oldest_pause_seconds: Gauge,
    model_seconds: Family<Success, Histogram, fn() -> Histogram>,
    model_tokens: Family<Direction, Counter>,
    tool_seconds: Family<Success, Histogram, fn() -> Histogram>,
    notices: Family<Told, Counter>,
    streams: Gauge,
    other_instances: Gauge,
    news_dropped: Counter,
    inbox: tokio::sync::Mutex<Option<tokio::time::Instant>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    path: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Fault {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunOutcome {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Told {
    destination: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Success {
    success: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Direction {
    direction: &'static str,
}

fn fast() -> Histogram {
    Histogram::new([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0])
}

fn slow() -> Histogram {
    Histogram::new([0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0])
}

/// How long people think: from a second to a week.
fn human() -> Histogram {
    Histogram::new([1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0])
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(Counted::new()))
    }
}

impl Counted {
    fn new() -> Self {
        let mut counted = Self {
            registry: Registry::with_prefix("holdpoint"),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(fast),
            store_faults: Family::default(),
            runs: Family::default(),
            pauses_opened: Family::default(),
            pauses_ended: Family::default(),
            pause_seconds: Family::new_with_constructor(human),
            open_pauses: Family::default(),
            oldest_pause_seconds: Gauge::default(),
            model_seconds: Family::new_with_constructor(slow),
            model_tokens: Family::default(),
            tool_seconds: Family::new_with_constructor(slow),
            notices: Family::default(),
            streams: Gauge::default(),
            other_instances: Gauge::default(),
            news_dropped: Counter::default(),
            inbox: tokio::sync::Mutex::default(),
        };
        counted.register();
        counted
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("http_requests", "Requests by route and status", self.requests.clone());
        registry.register("http_request_seconds", "Time to the head of the answer", self.request_seconds.clone());
        registry.register("store_faults", "Answers that the store's disorder caused", self.store_faults.clone());
        registry.register("runs_ended", "Runs that ended here", self.runs.clone());
        registry.register("pauses_opened", "Pauses that opened here", self.pauses_opened.clone());
        registry.register("pauses_ended", "Pauses that were settled here", self.pauses_ended.clone());
        registry.register("pause_seconds", "How long settled pauses were open", self.pause_seconds.clone());
        registry.register("open_pauses", "Pauses that wait for a person", self.open_pauses.clone());
        registry.register(
            "oldest_open_pause_seconds",
            "Age of the pause that has waited longest",
            self.oldest_pause_seconds.clone(),
        );
        registry.register("model_call_seconds", "Time of model calls", self.model_seconds.clone());
        registry.register("model_tokens", "Tokens read and written by models", self.model_tokens.clone());
        registry.register("tool_call_seconds", "Time of tool calls", self.tool_seconds.clone());
        registry.register("notices", "Attempts to tell people of pauses, made here", self.notices.clone());
        registry.register("open_streams", "Streams and long polls that are open", self.streams.clone());
        registry.register(
            "other_instances",
            "Instances over the same store that are heard",
            self.other_instances.clone(),
        );
        registry.register(
            "news_dropped",
            "What other instances were not told, and find by looking",
            self.news_dropped.clone(),
        );
    }
}

impl Observer for Metrics {
    fn committed(&self, committed: &Committed<'_>) {
        for event in committed.events {
            if let RunEvent::RunFinished(end) = event {
                let outcome = match end {
                    RunEnd::Done(_) => "done",
                    RunEnd::Failed { .. } => "failed",
                    RunEnd::Cancelled { .. } => "cancelled",
                };
                self.0.runs.get_or_create(&RunOutcome { outcome }).inc();
            }
        }
    }

    fn pause_changed(&self, change: &PauseChange) {
        let kind = change.kind.name();
        let outcome = match change.change {
            Change::Opened => {
                self.0.pauses_opened.get_or_create(&Kind { kind }).inc();
                return;
            }
            Change::Voted => return,
            Change::Decided(decision) => decision,
            Change::Expired => "expired",
            Change::Withdrawn => "withdrawn",
        };
        self.0.pauses_ended.get_or_create(&Ended { kind, outcome }).inc();
        self.0.pause_seconds.get_or_create(&Kind { kind }).observe(change.waited().as_secs_f64());
    }

    fn model_called(&self, call: &ModelCalled<'_>) {
        let success = success(call.usage.is_some());
        self.0.model_seconds.get_or_create(&success).observe(call.duration.as_secs_f64());
        if let Some(usage) = call.usage {
            self.0.model_tokens.get_or_create(&Direction { direction: "input" }).inc_by(usage.input_tokens);
            self.0.model_tokens.get_or_create(&Direction { direction: "output" }).inc_by(usage.output_tokens);
        }
    }

    fn tool_ran(&self, call: &ToolRan<'_>) {
        self.0.tool_seconds.get_or_create(&success(call.is_ok)).observe(call.duration.as_secs_f64());
    }

    fn notice_attempted(&self, attempted: &NoticeAttempted<'_>) {
        let (destination, outcome) = (attempted.key.destination.to_string(), attempted.end.name());
        self.0.notices.get_or_create(&Told { destination, outcome }).inc();
    }
}

fn success(is_ok: bool) -> Success {
    Success { success: if is_ok { "true" } else { "false" } }
}

/// Every kind, so that one of which nothing is open shows as zero.
const KINDS: [PauseKind; 4] = [PauseKind::Approval, PauseKind::Question, PauseKind::Confirmation, PauseKind::InDoubt];
