//! Replies over real connections, from a provider on loopback that speaks all three protocols.
#![cfg(all(feature = "openai", feature = "anthropic"))]
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::{AskedCall, Item, Usage};
use holdpoint_models::HttpSettings;
use holdpoint_models::fallback::FallbackModel;
use holdpoint_models::openai::{OpenAi, OpenAiSettings};
use holdpoint_models::providers::{Providers, from_name};
use holdpoint_runtime::ports::clock::{Clock, SystemClock};
use holdpoint_runtime::ports::model::{Delta, DeltaSink, Model};
use holdpoint_testkit::model_server::{Answer, Gate, ModelServer};
use serde_json::json;
use support::{KEY, Told, Waits, anthropic, ask, models, openai, patient, request};

fn real() -> Arc<dyn Clock> {
    SystemClock::shared()
}

#[tokio::test]
async fn words_thoughts_and_calls_are_told_as_they_come_and_given_whole() {
    let server = ModelServer::start();
    server.script(|_| {
        Answer::text("I look.")
            .and_thinking("First the notes.")
            .and_call("files_read", json!({"path": "notes.txt"}))
            .and_call("files_read", json!({"path": "日本"}))
            .costing(12, 34)
    });
    for (name, model) in models(&server.url(), &HttpSettings::default(), &real()) {
        let told = Told::new();
        let reply = model.reply(request("hello"), told.sink()).await.unwrap();
        assert_eq!(reply.text.as_deref(), Some("I look."), "{name}");
        let calls: Vec<(&str, &str)> =
            reply.calls.iter().map(|call| (call.tool.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("files.read", r#"{"path":"notes.txt"}"#), ("files.read", r#"{"path":"日本"}"#)], "{name}");
        assert_ne!(reply.calls[0].id, reply.calls[1].id, "{name}");
        assert_eq!(reply.usage, Usage::request(12, 34), "{name}");
        let (mut text, mut thinking, mut arguments) = (Vec::new(), String::new(), String::new());
        for delta in told.all() {
            match delta {
                Delta::Text(more) => text.push(more),
                Delta::Thinking(more) => thinking.push_str(&more),
                Delta::Arguments { tool, text, .. } => {
                    assert_eq!(tool, "files.read", "{name}");
                    arguments.push_str(&text);
                }
            }
        }
        assert_eq!(text, ["I", " look."], "{name}");
        assert_eq!(thinking, "First the notes.", "{name}");
        assert_eq!(arguments, r#"{"path":"notes.txt"}{"path":"日本"}"#, "{name}");
    }
}

#[tokio::test]
async fn a_slow_model_is_heard_word_by_word() {
    let server = ModelServer::start();
    for (name, model) in models(&server.url(), &HttpSettings::default(), &real()) {
        let gates = [Gate::closed(), Gate::closed()];
        let answer = Answer::tokens(["It"]).and_gate(&gates[0]).and_tokens([" rains"]).and_gate(&gates[1]);
        server.push(answer.and_tokens(["."]));
        let told = Told::new();
        let reply = tokio::spawn({
            let sink = told.sink();
            async move { model.reply(request("hello"), sink).await }
        });
        told.wait_for(1).await;
        assert_eq!(told.text(), "It", "{name}");
        gates[0].open();
        told.wait_for(2).await;
        assert_eq!(told.text(), "It rains", "{name}");
        assert!(!reply.is_finished(), "{name}");
        gates[1].open();
        assert_eq!(reply.await.unwrap().unwrap().text.as_deref(), Some("It rains."), "{name}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let server = ModelServer::start();
    for (name, model) in models(&server.url(), &HttpSettings::default(), &real()) {
        server
            .push(Answer::text("All at once.").and_thinking("hm").and_call("files_read", json!({"path": "a"})).plain());
        let told = Told::new();
        let reply = model.reply(request("hello"), told.sink()).await.unwrap();
        assert_eq!(reply.text.as_deref(), Some("All at once."), "{name}");
        assert_eq!(
            (reply.calls[0].tool.as_str(), reply.calls[0].arguments.as_str()),
            ("files.read", r#"{"path":"a"}"#)
        );
        assert_eq!((told.text().as_str(), reply.usage), ("All at once.", Usage::request(10, 5)), "{name}");
        assert!(server.last_request().wants_stream(), "{name}");
    }
}

#[tokio::test]
async fn requests_go_to_the_right_place_with_the_right_headers() {
    let server = ModelServer::start();
    server.script(|_| Answer::text("ok"));
    for (name, model) in models(&server.url(), &HttpSettings::default(), &real()) {
        ask(&model).await.unwrap();
        let asked = server.last_request();
        let path = match name {
            "chat" => "/v1/chat/completions",
            "responses" => "/v1/responses",
            _ => "/v1/messages",
        };
        assert_eq!(asked.path, path);
        assert_eq!(asked.header("content-type"), Some("application/json"));
        assert!(asked.header("user-agent").unwrap().starts_with("holdpoint/"));
        assert_eq!(asked.header("accept-encoding"), None);
        assert_eq!((asked.model(), asked.instructions().as_str()), ("m", "You help."));
        assert_eq!((asked.last_user().as_str(), asked.tools()), ("hello", vec!["files_read".to_owned()]));
        let bearer = format!("Bearer {KEY}");
        let (authorization, api_key, version) = match name {
            "messages" => (None, Some(KEY), Some("2023-06-01")),
            _ => (Some(bearer.as_str()), None, None),
        };
        assert_eq!(asked.header("authorization"), authorization, "{name}");
        assert_eq!(asked.header("x-api-key"), api_key, "{name}");
        assert_eq!(asked.header("anthropic-version"), version, "{name}");
    }
}

#[tokio::test]
async fn a_compatible_server_is_asked_without_a_key_at_every_spelling_of_its_address() {
    let server = ModelServer::start();
    server.script(|_| Answer::text("ok"));
    for ending in ["", "/", "/v1", "/v1/", "/v1/chat/completions"] {
        let base_url = format!("{}{ending}", server.url());
        let settings = OpenAiSettings {
            base_url,
            organization: Some("org-1".to_owned()),
            project: Some("proj-1".to_owned()),
            ..OpenAiSettings::default()
        };
        let model: Arc<dyn Model> = Arc::new(OpenAi::new(settings).unwrap().chat("llama3.2"));
        ask(&model).await.unwrap();
        let asked = server.last_request();
        assert_eq!((asked.path.as_str(), asked.header("authorization")), ("/v1/chat/completions", None), "{ending:?}");
        assert_eq!(asked.header("openai-organization"), Some("org-1"));
        assert_eq!(asked.header("openai-project"), Some("proj-1"));
    }
}

#[tokio::test]
async fn without_a_key_the_provider_itself_is_not_even_asked() {
    let model: Arc<dyn Model> = Arc::new(OpenAi::new(OpenAiSettings::default()).unwrap().chat("gpt-4o"));
    let fault = ask(&model).await.unwrap_err();
    let told = "model openai/gpt-4o gave no reply: there is no key for api.openai.com: set OPENAI_API_KEY, or \
                OPENAI_BASE_URL for a server that needs none";
    assert_eq!((fault.to_string().as_str(), fault.may_retry), (told, false));
}

#[tokio::test]
async fn a_setting_that_nobody_knows_is_told_before_anybody_is_asked() {
    let server = ModelServer::start();
    for (name, model) in models(&server.url(), &HttpSettings::default(), &real()) {
        let mut request = request("hello");
        request.settings = Arc::new(json!({"temprature": 1}));
        let fault = model.reply(request, DeltaSink::none()).await.unwrap_err();
        assert!(fault.message.starts_with("a model has no setting \"temprature\""), "{name}: {fault}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn names_find_their_models() {
    let server = ModelServer::start();
    server.script(|asked| Answer::text(asked.path.clone()));
    let url = server.base_url();
    let variable = |name: &str| match name {
        "OPENAI_BASE_URL" | "ANTHROPIC_BASE_URL" => Some(url.clone()),
        _ => None,
    };
    let providers = Providers::from_env(variable, &HttpSettings::default()).unwrap();
    for (name, path) in [
        ("qwen3:8b", "/v1/chat/completions"),
        ("openai/meta-llama/Llama-3.1-8B", "/v1/chat/completions"),
        ("openai-responses/gpt-5", "/v1/responses"),
        ("anthropic/claude", "/v1/messages"),
    ] {
        let reply = ask(&from_name(name, &providers).unwrap()).await.unwrap();
        assert_eq!(reply.text.as_deref(), Some(path), "{name}");
    }
    assert_eq!(server.requests()[1].model(), "meta-llama/Llama-3.1-8B");
}

#[tokio::test]
async fn another_provider_stands_in_where_the_first_gives_up() {
    let (first, second) = (ModelServer::start(), ModelServer::start());
    let waits = Waits::default();
    first.script(|_| Answer::error(503, "overloaded"));
    second.script(|_| Answer::text("I am here."));
    let openai = Arc::new(openai(&first.url(), &patient(), &waits.clock()).chat("m"));
    let model =
        FallbackModel::new(openai, Arc::new(anthropic(&second.url(), &patient(), &waits.clock()).messages("m")));
    let reply = model.reply(request("hello"), DeltaSink::none()).await.unwrap();
    assert_eq!(reply.text.as_deref(), Some("I am here."));
    assert_eq!((first.requests().len(), second.requests().len()), (4, 1));
}

#[tokio::test]
async fn many_replies_come_at_once_and_each_is_its_own() {
    let server = ModelServer::start();
    server.script(|asked| Answer::text(format!("You said {}.", asked.last_user())));
    let model: Arc<dyn Model> = Arc::new(openai(&server.url(), &HttpSettings::default(), &real()).chat("m"));
    let asking = (0..64).map(|number| {
        let model = model.clone();
        tokio::spawn(async move { model.reply(request(&number.to_string()), DeltaSink::none()).await.unwrap().text })
    });
    for (number, reply) in asking.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(reply.await.unwrap(), Some(format!("You said {number}.")));
    }
}

#[tokio::test]
async fn thoughts_are_handed_back_while_a_model_works_with_tools() {
    let server = ModelServer::start();
    server.push(Answer::empty().and_thinking("Two steps.").and_call("files_read", json!({"path": "a"})));
    server.push(Answer::text("Done."));
    let model = anthropic(&server.url(), &HttpSettings::default(), &real()).messages("m");
    let thinking = json!({"type": "enabled", "budget_tokens": 1_024});
    let mut first = request("hello");
    first.settings = Arc::new(json!({"thinking": thinking}));
    let reply = model.reply(first.clone(), DeltaSink::none()).await.unwrap();

    let call = &reply.calls[0];
    let (tool, arguments) = (call.tool.parse().unwrap(), CanonicalJson::parse(&call.arguments).unwrap());
    let asked = AskedCall { call_id: call.id.clone(), tool, arguments };
    let result = Item::ToolResult {
        call_id: call.id.clone(),
        tool: call.tool.parse().unwrap(),
        output: "text".into(),
        is_error: false,
    };
    let said = Item::Assistant { text: None, calls: vec![asked] };
    let mut second = first.clone();
    second.items = first.items.iter().cloned().chain([Arc::new(said), Arc::new(result)]).collect();
    second.turn = 2;
    model.reply(second, DeltaSink::none()).await.unwrap();
    let body = server.last_request().body;
    assert_eq!(body["thinking"], thinking);
    let block = json!({"type": "thinking", "thinking": "Two steps.", "signature": "c2lnbmVk"});
    assert_eq!(body["messages"][1]["content"][0], block);
    assert_eq!(body["messages"][1]["content"][1]["id"], call.id.as_str());
}
