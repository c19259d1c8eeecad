//! Logs and traces. Both carry ids, never arguments; text from outside cannot forge a line.
//!
//! Logs go to standard error, as text or as JSON. Traces of runs, model calls and tools go to a collector over OTLP where
//! one is configured (feature `otel`), and nowhere otherwise.

mod line;
#[cfg(feature = "otel")]
mod traces;

use std::io;

use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Layer, Registry, fmt};

use line::OneLine;

/// What is logged and traced.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySettings {
    /// What log lines look like.
    pub format: LogFormat,
    /// What is logged, such as `info` or `holdpoint_server=debug`.
    pub filter: String,
    /// Where traces go; `None` for nowhere.
    pub traces: Option<TraceSettings>,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self { format: LogFormat::Text, filter: "info".to_owned(), traces: None }
    }
}

/// What log lines look like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For machines: one JSON object a line.
    Json,
}

/// Where traces go.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSettings {
    /// The collector's address for traces (OTLP over HTTP), such as `http://localhost:4318/v1/traces`.
    pub endpoint: String,
    /// The name under which they are found.
    pub service_name: String,
    /// The share of traces that are kept, from 0 to 1.
    pub sample_ratio: f64,
}

/// Why logs and traces could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The filter says nothing that can be understood.
    #[error("the log filter cannot be read: use a level such as info, or directives such as holdpoint_server=debug")]
    Filter(#[from] ParseError),
    /// Somebody set logs up before.
    #[error("logs were set up before")]
    Twice(#[from] TryInitError),
    /// Traces cannot be sent.
    #[error("traces cannot be sent: {0}")]
    Traces(String),
}

/// Logs and traces that are set up. Traces that were not sent yet are sent by [`Telemetry::stop`].
#[must_use = "traces are sent as long as this is kept"]
pub struct Telemetry {
    #[cfg(feature = "otel")]
    traces: Option<traces::Sending>,
}

/// Sets logs and traces up for the whole process. Traces need a running Tokio runtime.
///
/// # Errors
/// The settings cannot be understood, or this was done before.
pub fn start(settings: &TelemetrySettings) -> Result<Telemetry, TelemetryError> {
    let logs = logs(settings, io::stderr)?;
    #[cfg(feature = "otel")]
    {
        let traces = settings.traces.as_ref().map(traces::start).transpose()?;
        let spans = traces.as_ref().map(traces::Sending::layer);
        tracing_subscriber::registry().with(logs).with(spans).try_init()?;
        Ok(Telemetry { traces })
    }
    #[cfg(not(feature = "otel"))]
    {
        if settings.traces.is_some() {
            return Err(TelemetryError::Traces("this program was built without the feature otel".to_owned()));
        }
        tracing_subscriber::registry().with(logs).try_init()?;
        Ok(Telemetry {})
    }
}

impl Telemetry {
    /// Sends what was not sent yet.
    pub async fn stop(self) {
        #[cfg(feature = "otel")]
        if let Some(traces) = self.traces {
            traces.stop().await;
        }
    }
}

/// A layer that writes log lines.
fn logs<W>(settings: &TelemetrySettings, to: W) -> Result<impl Layer<Registry> + Send + Sync, TelemetryError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = EnvFilter::builder().parse(&settings.filter)?;
    // Where a line cannot be written, saying so on standard error, which is where it would have gone, panics.
    let lines = fmt::layer().with_target(true).with_ansi(false).log_internal_errors(false);
    let lines = match settings.format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(true).with_writer(to).boxed(),
        LogFormat::Text => lines.with_writer(OneLine(to)).boxed(),
    };
    Ok(lines.with_filter(filter))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps what is logged.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Kept {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    fn logged(format: LogFormat, filter: &str, log: impl FnOnce()) -> String {
        let kept = Kept::default();
        let settings = TelemetrySettings { format, filter: filter.to_owned(), traces: None };
        let subscriber = tracing_subscriber::registry().with(logs(&settings, kept.clone()).unwrap());
        tracing::subscriber::with_default(subscriber, log);
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    const HOSTILE: &str = "x\n{\"level\":\"INFO\",\"message\":\"approved\"}\r\u{1b}[2K\u{202e}y";

    #[test]
    fn text_from_outside_stays_within_its_line() {
        let text = logged(LogFormat::Text, "info", || tracing::info!(error = %HOSTILE, "hostile {HOSTILE}"));
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains(['\r', '\u{1b}', '\u{202e}']), "{text:?}");
        let json = logged(LogFormat::Json, "info", || tracing::info!(error = %HOSTILE, "hostile {HOSTILE}"));
        assert_eq!(json.lines().count(), 1, "{json}");
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((line["level"].as_str(), line["error"].as_str()), (Some("INFO"), Some(HOSTILE)));
    }

    #[test]
    fn the_filter_says_what_is_logged() {
        let log = || {
            tracing::debug!("quiet");
            tracing::warn!("loud");
        };
        let text = logged(LogFormat::Text, "warn", log);
        assert!(text.contains("loud") && !text.contains("quiet"), "{text}");
        assert!(logged(LogFormat::Text, "debug", log).contains("quiet"));
        let odd = TelemetrySettings { filter: "a=b=c".to_owned(), ..TelemetrySettings::default() };
        assert!(matches!(start(&odd), Err(TelemetryError::Filter(_))));
    }
}
