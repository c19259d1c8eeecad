//! How a session is shown was settled when its runs began: whatever becomes of the agents' files afterwards, what was told
//! once is told the same again, number by number.

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use crate::client::{is, until_asked};
use crate::stage::{Stage, message};

const SHOWN: &str = "display: { message: \"Xem giá {symbol}\" }";

/// An agent that looks up prices at an address that a variable names.
fn file(variable: &str, locale: &str, display: &str) -> String {
    format!(
        r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: {{ name: shown, description: Looks up prices }}
spec:
  type: chat_model_agent
  locale: {locale}
  model: {{ primary: openai/gpt-4o }}
  system_prompt: You look up prices.
  tools:
    - ref: builtin/ask_user_question
    - name: get_quote
      description: Looks up a price
      parameters: {{ type: object, properties: {{ symbol: {{ type: string }} }} }}
      http: {{ method: POST, url: "${{{variable}}}/get_quote", timeout_seconds: 30 }}
      effects: read_only
      approval: never
      {display}
"#
    )
}

/// A session with thoughts, calls, a question that is open, and words; says all that is told of it.
async fn play(stage: &Stage) -> (Vec<Value>, Vec<Value>) {
    let mut client = stage.connect().await;
    let questions = json!({"questions": [{"question": "Which?", "options": [{"label": "1"}]}]});
    stage.model.push(Reply::empty().and_thinking("Hm.").and_call("get_quote", json!({"symbol": "VNM"})));
    stage.model.push(Reply::text("82.").and_call("get_quote", json!({"symbol": "FPT"})));
    stage.model.push(Reply::text("Xong."));
    client.send(&message("shown", "s", "Giá?")).await;
    client.until(is("message_stop")).await;
    stage.model.push(Reply::call("ask_user_question", questions));
    client.send(&message("shown", "s", "Nữa")).await;
    until_asked(&mut client).await;
    told(stage).await
}

/// The session's stream from its beginning to the question that is open, and its history.
async fn told(stage: &Stage) -> (Vec<Value>, Vec<Value>) {
    let mut client = stage.connect().await;
    client.subscribe("s", 0).await;
    let mut events = until_asked(&mut client).await;
    for event in &mut events {
        if let Some(pause) = event["content_block"]["pause"].as_object_mut() {
            pause.remove("server_time");
        }
    }
    let mut history = stage.history("s").await;
    for block in history.iter_mut().filter_map(|message| message["content"].as_array_mut()).flatten() {
        if let Some(pause) = block["pause"].as_object_mut() {
            pause.remove("server_time");
        }
    }
    (events, history)
}

#[tokio::test]
async fn a_change_of_display_and_language_leaves_what_was_told_as_it_was() {
    let mut stage = Stage::solo().await;
    stage.replace_file("agents/shown.yaml", &file("TOOLS", "vi", SHOWN)).await;
    let before = play(&stage).await;
    assert!(before.0.iter().any(|event| event["content_block"]["name"] == "get_quote"), "{before:?}");
    for display in [
        "display: { stream_tool_use: false, stream_tool_result: false }",
        "display: { as_content: true }",
        "display: { message: \"Price of {symbol}\" }",
    ] {
        stage.replace_file("agents/shown.yaml", &file("TOOLS", "en", display)).await;
        assert_eq!(told(&stage).await, before, "{display}");
    }
    stage.remove_file("agents/shown.yaml").await;
    assert_eq!(told(&stage).await, before, "without the agent");
}

#[tokio::test]
async fn a_variable_that_is_gone_leaves_what_was_told_as_it_was() {
    let mut stage = Stage::solo().await;
    stage.replace_file("agents/shown.yaml", &file("OLD_TOOLS", "vi", SHOWN)).await;
    let before = play(&stage).await;
    // The variable is set only as long as a file names it.
    let quiet = "display: { stream_tool_use: false, stream_tool_result: false }";
    stage.replace_file("agents/shown.yaml", &file("TOOLS", "en", quiet)).await;
    assert_eq!(told(&stage).await, before);
}
