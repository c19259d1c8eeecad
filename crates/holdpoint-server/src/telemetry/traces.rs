//! Traces over OTLP. The only file that names OpenTelemetry, whose crates change often.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::runtime::Tokio;
use opentelemetry_sdk::trace::span_processor_with_async_runtime::BatchSpanProcessor;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use super::{TelemetryError, TraceSettings};

/// Traces that are being sent.
pub(super) struct Sending(SdkTracerProvider);

/// Our own spans: those of the HTTP client would be traced while traces are sent.
const OURS: [&str; 5] =
    ["holdpoint_server", "holdpoint_runtime", "holdpoint_models", "holdpoint_tools", "holdpoint_stores"];

/// Begins to send traces.
pub(super) fn start(settings: &TraceSettings) -> Result<Sending, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(&settings.endpoint)
        .build()
        .map_err(|error| TelemetryError::Traces(error.to_string()))?;
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sample_ratio)));
    let provider = SdkTracerProvider::builder()
        .with_span_processor(BatchSpanProcessor::builder(exporter, Tokio).build())
        .with_sampler(sampler)
        .with_resource(Resource::builder().with_service_name(settings.service_name.clone()).build())
        .build();
    Ok(Sending(provider))
}

impl Sending {
    /// The layer that makes traces of spans.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: tracing::Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
    {
        let tracer = self.0.tracer("holdpoint");
        let ours = Targets::new().with_targets(OURS.map(|target| (target, LevelFilter::INFO)));
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(ours)
    }

    /// Sends what was not sent yet.
    pub(super) async fn stop(self) {
        // Waits for the network, which must not be done on a thread of the runtime.
        let sent = tokio::task::spawn_blocking(move || self.0.shutdown()).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::warn!("the last traces could not be sent");
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::post;
    use bytes::Bytes;
    use tokio::sync::mpsc;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn spans_of_ours_reach_the_collector_and_those_of_others_do_not() {
        let (sender, mut received) = mpsc::channel::<Bytes>(8);
        let take = post(move |body: Bytes| async move { sender.send(body).await.unwrap() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", take);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let settings = TraceSettings { endpoint, service_name: "desk".to_owned(), sample_ratio: 1.0 };
        let sending = start(&settings).unwrap();
        let subscriber = tracing_subscriber::registry().with(sending.layer());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info_span!(target: "holdpoint_runtime", "our_span", run.id = "run_1").in_scope(|| {});
            tracing::info_span!(target: "hyper", "their_span").in_scope(|| {});
        });
        sending.stop().await;
        let body = received.recv().await.unwrap();
        let holds = |text: &str| body.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(holds("our_span") && holds("run_1") && holds("desk"));
        assert!(!holds("their_span"));
    }
}
