//! A key is never shown: not by Debug, not in faults or their causes, not in logs of any level.
#![cfg(all(feature = "openai", feature = "anthropic"))]
#![allow(clippy::unwrap_used)]

mod support;

use std::error::Error;
use std::io::Write;
use std::sync::{Arc, Mutex};

use holdpoint_models::HttpSettings;
use holdpoint_models::anthropic::AnthropicSettings;
use holdpoint_models::openai::{OpenAi, OpenAiSettings};
use holdpoint_runtime::ports::model::DeltaSink;
use holdpoint_testkit::model_server::{Answer, ModelServer};
use support::{After, KEY, RawServer, Waits, anthropic, ask, models, nobody, openai, patient, request};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

fn assert_silent(what: &str, text: &str) {
    assert!(!text.contains(KEY), "{what} tells the key: {text}");
}

/// A fault with all of its causes, as they are printed and as they are debugged.
fn everything(fault: &dyn Error) -> String {
    let mut text = format!("{fault} {fault:?}");
    let mut cause = fault.source();
    while let Some(inner) = cause {
        text.push_str(&format!(" {inner} {inner:?}"));
        cause = inner.source();
    }
    text
}

#[test]
fn debug_shows_no_key() {
    let (http, clock) = (HttpSettings::default(), Waits::default().clock());
    let settings = OpenAiSettings { api_key: Some(KEY.into()), ..OpenAiSettings::default() };
    assert_silent("settings", &format!("{settings:?}"));
    assert_silent("settings", &format!("{:?}", AnthropicSettings { api_key: Some(KEY.into()), ..Default::default() }));
    let (openai, anthropic) = (openai("http://localhost", &http, &clock), anthropic("http://localhost", &http, &clock));
    let shown = format!(
        "{openai:?} {:?} {:?} {anthropic:?} {:?}",
        openai.chat("m"),
        openai.responses("m"),
        anthropic.messages("m")
    );
    assert_silent("clients", &shown);
    assert!(shown.contains("http://localhost/v1"), "{shown}");
}

#[test]
fn a_key_that_cannot_be_sent_is_not_told() {
    let settings = OpenAiSettings { api_key: Some(format!("{KEY}\u{1}").into()), ..OpenAiSettings::default() };
    let told = OpenAi::new(settings).unwrap_err();
    assert_silent("the error", &everything(&told));
    let told = OpenAi::new(OpenAiSettings { base_url: format!("https://user:{KEY}@host"), ..Default::default() });
    assert_silent("the error", &everything(&told.unwrap_err()));
}

#[tokio::test]
async fn faults_and_logs_show_no_key_even_when_the_server_sends_it_back() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(log.clone());
    let _guard = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber.finish());

    let server = ModelServer::start();
    let echo =
        format!(r#"{{"error":{{"message":"Incorrect key {KEY} and again {KEY}","type":"authentication_error"}}}}"#);
    server.script({
        let echo = echo.clone();
        move |asked| match asked.last_user().as_str() {
            "401" => Answer::status(401, echo.clone()),
            "500" => Answer::status(500, format!("panic: header Authorization: Bearer {KEY}")),
            "stream" => Answer::raw("text/event-stream", [format!("data: {echo}\n\n")]),
            "plain" => Answer::raw("application/json", [echo.clone()]),
            "html" => Answer::raw("text/html", [format!("<html>{KEY}</html>")]),
            "frame" => Answer::raw("text/event-stream", [format!("data: {KEY}\n\n")]),
            "cut" => Answer::tokens(["a"]).then_cut(),
            _ => Answer::text("fine"),
        }
    });
    let waits = Waits::default();
    let mut faults = String::new();
    for (_, model) in models(&server.url(), &patient(), &waits.clock()) {
        for text in ["401", "500", "stream", "plain", "html", "frame", "cut"] {
            let fault = model.reply(request(text), DeltaSink::none()).await.unwrap_err();
            faults.push_str(&everything(&fault));
        }
        model.reply(request("fine"), DeltaSink::none()).await.unwrap();
    }
    let raw = RawServer::start(format!("HTTP/1.1 200 OK\r\nx: {KEY}\r\n: bad").as_bytes(), After::Close);
    for url in [nobody(), raw.url()] {
        for (_, model) in models(&url, &patient(), &waits.clock()) {
            faults.push_str(&everything(&ask(&model).await.unwrap_err()));
        }
    }
    assert_silent("a fault", &faults);
    assert!(faults.contains("Incorrect key [key] and again [key]"), "{faults}");
    assert_silent("the log", &log.text());
    assert!(log.text().contains("the model gave no reply and is asked again"), "the log was listened to");
    assert!(log.text().contains("TRACE"), "the log was listened to at every level");
}
