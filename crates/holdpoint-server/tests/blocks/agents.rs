//! The agents of these tests, as files; and the people who hold keys.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holdpoint_config::FixedEnvironment;
use holdpoint_core::ids::ActorId;
use holdpoint_server::access::{ApiKey, ApiKeys, Credentials, Role};
use holdpoint_server::agents::{AgentFolder, Catalogue, CatalogueOptions};

/// The agent of the page on approvals: looks up prices freely, and asks before it trades.
const TRADER: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: trader, description: Places stock orders }
spec:
  type: chat_model_agent
  locale: vi
  model: { primary: openai/gpt-4o }
  system_prompt: You place orders.
  interrupt: { enabled: true }
  tools:
    - ref: builtin/ask_user_question
    - name: get_quote
      description: Looks up a price
      parameters: { type: object, required: [symbol], properties: { symbol: { type: string } } }
      http: { method: POST, url: "${TOOLS}/get_quote", timeout_seconds: 30 }
      effects: read_only
      approval: never
      display: { message: "Xem giá {symbol}" }
    - name: execute_trade
      description: Places an order
      parameters:
        type: object
        required: [symbol, quantity]
        additionalProperties: false
        properties:
          symbol: { type: string }
          quantity: { type: integer, minimum: 1 }
          side: { enum: [buy, sell] }
          price: { type: number }
      http: { method: POST, url: "${TOOLS}/execute_trade", timeout_seconds: 30 }
      approval: required
      display: { message: "Đặt lệnh mua {symbol}" }
"#;

/// As the trader, and every action wants a decision of its own.
const STRICT: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: strict-trader, description: Places stock orders one by one }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You place orders.
  tools:
    - name: execute_trade
      description: Places an order
      parameters: { type: object, properties: { symbol: { type: string } } }
      http: { method: POST, url: "${TOOLS}/execute_trade", timeout_seconds: 30 }
      approval: { fill: none }
"#;

/// The agent of the page on questions: notes what it is about to do, and asks.
const PLANNER: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: planner, description: Plans investments }
spec:
  type: chat_model_agent
  locale: vi
  model: { primary: openai/gpt-4o }
  system_prompt: You plan.
  tools:
    - ref: builtin/ask_user_question
    - name: write_todos
      description: Notes what is to be done
      parameters: { type: object, required: [title], properties: { title: { type: string } } }
      http: { method: POST, url: "${TOOLS}/write_todos", timeout_seconds: 30 }
      effects: read_only
      approval: never
      display: { message: "{title}" }
"#;

/// An agent that asks in English, without a locale of its own.
const ASKER: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: asker, description: Asks }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You ask.
  interrupt: { enabled: true }
  tools:
    - ref: builtin/ask_user_question
"#;

/// Two people must approve what moves money for the treasury.
const QUORUM: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: treasurer, description: Moves money }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You move money.
  tools:
    - name: transfer
      description: Moves money
      parameters: { type: object, properties: { amount: { type: integer } } }
      http: { method: POST, url: "${TOOLS}/transfer", timeout_seconds: 30 }
      approval: required
"#;

/// Agents that differ from the trader in one setting each.
const SETTINGS: [(&str, &str); 5] = [
    ("brief", "  max_turns: 1\n"),
    ("queue", "  on_message_while_held: queue\n"),
    ("supersede", "  on_message_while_held: supersede\n"),
    ("revise", "      approval: { on_note: revise }\n"),
    ("explicit", "      explicit_decision: true\n"),
];

/// An agent with one setting of its own, which stands among the agent's or the tool's.
fn with_setting(name: &str, setting: &str) -> String {
    let (of_agent, of_tool) = if setting.starts_with("      ") { ("", setting) } else { (setting, "") };
    format!(
        r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: {{ name: {name}, description: Places stock orders }}
spec:
  type: chat_model_agent
  model: {{ primary: openai/gpt-4o }}
  system_prompt: You place orders.
{of_agent}  tools:
    - name: execute_trade
      description: Places an order
      parameters: {{ type: object, properties: {{ symbol: {{ type: string }} }} }}
      http: {{ method: POST, url: "${{TOOLS}}/execute_trade", timeout_seconds: 30 }}
{of_tool}"#
    )
}

/// An agent that has the trader work for it, and shows some tools in other ways.
const DESK: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: desk, description: Passes on }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You pass on.
  tools:
    - ref: agent://trader
    - name: show_chart
      description: Shows a chart
      parameters: { type: object, properties: { symbol: { type: string } } }
      http: { method: POST, url: "${TOOLS}/show_chart", timeout_seconds: 30 }
      effects: read_only
      approval: never
      display: { as_content: true }
    - name: remember
      description: Notes something
      parameters: { type: object, properties: { note: { type: string } } }
      http: { method: POST, url: "${TOOLS}/remember", timeout_seconds: 30 }
      effects: read_only
      approval: never
      display: { stream_tool_use: false, stream_tool_result: false }
"#;

const POLICY: &str = r#"
rules:
  - { name: two-for-transfers, match: { tool: transfer }, verdict: hold, quorum: 2 }
  - { name: not-that-much, match: { tool: execute_trade }, when: args.quantity > 10000, verdict: deny, message: at most 10000 at once }
"#;

/// The files that every stage begins with.
pub fn files() -> BTreeMap<String, String> {
    let agents = [
        ("trader", TRADER),
        ("strict", STRICT),
        ("planner", PLANNER),
        ("asker", ASKER),
        ("treasurer", QUORUM),
        ("desk", DESK),
    ];
    let agents = agents.into_iter().map(|(name, text)| (name, text.to_owned()));
    let agents = agents.chain(SETTINGS.map(|(name, setting)| (name, with_setting(name, setting))));
    let agents = agents.map(|(name, text)| (format!("agents/{name}.yaml"), text));
    agents.chain([("policies/quorum.yaml".to_owned(), POLICY.to_owned())]).collect()
}

/// The agents of these files, which are written to this folder and are the only ones in it.
pub fn catalogue(folder: &Path, files: &BTreeMap<String, String>, model_url: &str, tools_url: &str) -> Catalogue {
    for inner in ["agents", "policies"] {
        let inner = folder.join(inner);
        if inner.exists() {
            std::fs::remove_dir_all(&inner).unwrap();
        }
        std::fs::create_dir(&inner).unwrap();
    }
    for (path, text) in files {
        std::fs::write(folder.join(path), text).unwrap();
    }
    let folder = &folder.join("agents");
    let environment = FixedEnvironment::empty()
        .with("OPENAI_BASE_URL", model_url)
        .with("OPENAI_API_KEY", "a-key-for-tests")
        .with("TOOLS", tools_url);
    // A variable that is gone as soon as no file names it.
    let environment = match files.values().any(|text| text.contains("${OLD_TOOLS}")) {
        true => environment.with("OLD_TOOLS", tools_url),
        false => environment,
    };
    let options = CatalogueOptions {
        environment: Arc::new(environment),
        working_folder: folder.to_owned(),
        is_strict: true,
        ..CatalogueOptions::default()
    };
    Catalogue::open(AgentFolder::new(folder), options).unwrap()
}

/// The key of one of the callers below.
pub fn key(name: &str) -> String {
    format!("hpk_key-of-{name}")
}

/// Callers: `ana`, `ben` and `cem` approve, `audrey` looks, `agnes` and `otto` are agents, `zoe` is both.
pub fn credentials() -> Credentials {
    let made = |name: &str, roles: &[Role]| {
        let actor = ActorId::new(name).unwrap();
        ApiKey::new(actor, &ApiKey::digest(&key(name)), roles.iter().copied()).unwrap()
    };
    let keys = vec![
        made("ana", &[Role::Approver]),
        made("ben", &[Role::Approver]),
        made("cem", &[Role::Approver]),
        made("audrey", &[Role::Auditor]),
        made("agnes", &[Role::Agent]),
        made("otto", &[Role::Agent]),
        made("zoe", &[Role::Agent, Role::Approver]),
    ];
    Credentials { keys: ApiKeys::new(keys).unwrap(), jwt: None }
}
