//! The agents of these tests, as files, and the model that they talk to.

use std::path::Path;
use std::sync::Arc;

use holdpoint_config::FixedEnvironment;
use holdpoint_server::agents::{AgentFolder, Catalogue, CatalogueOptions};
use holdpoint_testkit::model_server::{Answer, Asked};

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
    - name: getTime
      description: Get time
      parameters: { type: object, required: [zone], properties: { zone: { type: string } } }
      http: { method: POST, url: "${TOOLS}/getTime", timeout_seconds: 60 }
      effects: read_only
      approval: never
"#;

/// Another agent with a conversation of its own.
const MEM_AGENT: &str = "mem-agent";

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

/// The agents, whose files are written to this folder.
pub fn catalogue(folder: &Path, model_url: &str, tools_url: &str) -> Catalogue {
    let folder = folder.join("agents");
    std::fs::create_dir_all(&folder).unwrap();
    let memory = FILE_AGENT.replace("file-agent", MEM_AGENT);
    for (name, text) in [("file", FILE_AGENT), ("mem", &memory), ("careful", CAREFUL), ("boss", BOSS)] {
        std::fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
    }
    let environment = FixedEnvironment::empty()
        .with("OPENAI_BASE_URL", model_url)
        .with("OPENAI_API_KEY", "a-key-for-tests")
        .with("TOOLS", tools_url);
    let options = CatalogueOptions {
        environment: Arc::new(environment),
        working_folder: folder.clone(),
        is_strict: true,
        ..CatalogueOptions::default()
    };
    Catalogue::open(AgentFolder::new(&folder), options).unwrap()
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
        ("parallel delete", _) => Answer::empty()
            .and_call("deleteFile", serde_json::json!({"path": "one.txt"}))
            .and_call("deleteFile", serde_json::json!({"path": "two.txt"})),
        ("mixed", _) => Answer::empty()
            .and_call("getTime", serde_json::json!({"zone": "UTC"}))
            .and_call("deleteFile", serde_json::json!({"path": "a.txt"})),
        ("twostep", _) => Answer::call("deleteFile", serde_json::json!({"path": "first.txt"})),
        ("what time", _) => Answer::call("getTime", serde_json::json!({"zone": "UTC"})),
        ("fail it", _) => Answer::call("failTool", serde_json::json!({"x": 1})),
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
