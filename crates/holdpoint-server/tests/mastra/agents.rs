//! The agents of these tests, as files, and the model that they talk to.

use holdpoint_config::FixedEnvironment;
use holdpoint_testkit::model_server::{Answer, Asked};

use crate::common::Files;

/// An agent with the tools of the captured exchanges: two are held, one is not, one fails, one asks.
const FILE_AGENT: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: file-agent, description: Manages files }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You manage files.
  tools:
    - ref: builtin/ask_user_question
    - name: deleteFile
      description: Delete a file
      parameters: { type: object, required: [path], properties: { path: { type: string } } }
      http: { method: POST, url: "${TOOLS}/deleteFile", timeout_seconds: 60 }
      approval: required
    - name: failTool
      description: Fails
      parameters: { type: object, required: [x], properties: { x: { type: number } } }
      http: { method: POST, url: "${TOOLS}/failTool", timeout_seconds: 60 }
      approval: required
    - name: slowTool
      description: Takes its time
      parameters: { type: object, required: [ms], properties: { ms: { type: number } } }
      http: { method: POST, url: "${TOOLS}/slowTool", timeout_seconds: 60 }
      approval: required
    - name: getTime
      description: Get time
      parameters: { type: object, required: [zone], properties: { zone: { type: string } } }
      http: { method: POST, url: "${TOOLS}/getTime", timeout_seconds: 60 }
      effects: read_only
      approval: never
"#;

/// An agent whose words stop it.
const CAREFUL: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: careful-agent, description: Asks in its own words }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You ask first.
  interrupt: { enabled: true }
"#;

/// An agent that has the file agent work for it.
const BOSS: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: boss-agent, description: Has others work }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You pass on.
  tools:
    - ref: agent://file-agent
      approval: never
  handoffs: [careful-agent]
"#;

/// The files that every world begins with.
pub fn files() -> Files {
    let like = |name: &str, more: &str| format!("{}{more}", FILE_AGENT.replace("file-agent", name));
    let files = [
        ("file", FILE_AGENT.to_owned()),
        ("mem", like("mem-agent", "")),
        ("auto", like("auto-agent", "")),
        ("durable", like("durable-agent", "")),
        ("queue", like("queue-agent", "  on_message_while_held: queue\n")),
        ("supersede", like("supersede-agent", "  on_message_while_held: supersede\n")),
        ("careful", CAREFUL.to_owned()),
        ("boss", BOSS.to_owned()),
    ];
    files.into_iter().map(|(name, text)| (format!("agents/{name}.yaml"), text)).collect()
}

/// What the files name.
pub fn environment(model_url: &str, tools_variable: &str, tools_url: &str) -> FixedEnvironment {
    FixedEnvironment::empty()
        .with("OPENAI_BASE_URL", model_url)
        .with("OPENAI_API_KEY", "a-key-for-tests")
        .with(tools_variable, tools_url)
}

/// What the model says: the last user's message names the calls, and what came of them ends the run.
pub fn reply(asked: &Asked) -> Answer {
    let (told, is_after_tool) = (asked.last_user(), last_is_tool(asked));
    let results = asked.tool_results();
    match (told.as_str(), is_after_tool) {
        ("delete twice" | "twostep", true) if tool_messages(asked) == 1 => {
            Answer::call("deleteFile", serde_json::json!({"path": "second.txt"}))
        }
        ("hand it over", true) => Answer::text("I took over."),
        (_, true) => {
            let said: Vec<&str> = results.iter().map(|(_, said)| said.as_str()).collect();
            Answer::text(format!("Final answer after tool results: {}", said.join(" | ")))
        }
        ("delete a.txt", _) => {
            Answer::text("I will delete it. ").and_call("deleteFile", serde_json::json!({"path": "a.txt"}))
        }
        ("parallel delete" | "parallel", _) => Answer::empty()
            .and_call("deleteFile", serde_json::json!({"path": "one.txt"}))
            .and_call("deleteFile", serde_json::json!({"path": "two.txt"})),
        ("mixed", _) => Answer::empty()
            .and_call("getTime", serde_json::json!({"zone": "UTC"}))
            .and_call("deleteFile", serde_json::json!({"path": "a.txt"})),
        ("twostep", _) => Answer::call("deleteFile", serde_json::json!({"path": "first.txt"})),
        ("what time", _) => Answer::call("getTime", serde_json::json!({"zone": "UTC"})),
        ("slow please", _) => Answer::call("slowTool", serde_json::json!({"ms": 3_000})),
        ("fail it" | "delete MODELFAIL", _) => Answer::call("failTool", serde_json::json!({"x": 1})),
        ("suspend please", _) => Answer::call(
            "ask_user_question",
            serde_json::json!({"questions": [{"question": "Which env?", "options": [{"label": "prod"}, {"label": "test"}]}]}),
        ),
        ("pass it on", _) => Answer::call("file-agent", serde_json::json!({"input": "delete a.txt"})),
        ("hand it over", _) if asked.instructions() == "You pass on." => {
            Answer::call("transfer_to_careful_agent", serde_json::json!({}))
        }
        ("be careful", _) => Answer::text("Please confirm: all of it goes."),
        _ => Answer::text("Hello there, how can I help?"),
    }
}

fn last_is_tool(asked: &Asked) -> bool {
    asked.messages().last().is_some_and(|message| message["role"] == "tool")
}

fn tool_messages(asked: &Asked) -> usize {
    asked.messages().iter().filter(|message| message["role"] == "tool").count()
}
