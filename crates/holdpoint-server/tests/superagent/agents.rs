//! The agents of these tests, as files; and the people who hold keys.

use holdpoint_config::FixedEnvironment;
use holdpoint_server::access::{Credentials, Role};

use crate::common::{Files, keys};

/// The agent of the protocol's own page, with the label that its examples show.
const APPROVAL: &str = r#"
apiVersion: superagent/v1
kind: Agent
metadata:
  name: approval-agent
  version: "1.0.0"
  description: Approves
spec:
  type: chat_model_agent
  model:
    primary: gpt-4o
  system_prompt: |
    你是一个审批助手。在执行任何不可逆操作前,
    使用"Please confirm"短语明确请求用户确认。
  interrupt:
    enabled: true
    timeout_seconds: 300
    fields:
      - { name: confirm, type: confirm, label: 确认删除, required: true }
  memory:
    backend: builtin
"#;

/// An agent whose words never stop it.
const PLAIN: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: plain-agent, description: Talks }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You talk.
"#;

/// An agent with phrases and fields of its own.
const FORM: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: form-agent, description: Asks for more }
spec:
  type: chat_model_agent
  locale: vi
  model: { primary: openai/gpt-4o }
  system_prompt: Bạn đặt lệnh.
  interrupt:
    enabled: true
    keywords: ["+ xin xác nhận"]
    fields:
      - { name: confirm, type: confirm, label: Xác nhận, required: true }
      - { name: region, type: select, label: Khu vực, required: false, options: [eu, us] }
      - { name: comment, type: text, label: Ghi chú, required: false }
"#;

/// An agent with tools: one is held, one is not, one asks.
const TOOL: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: tool-agent, description: Deploys }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You deploy.
  tools:
    - ref: builtin/ask_user_question
    - name: deploy
      description: Deploys a version
      parameters: { type: object, required: [version], properties: { version: { type: string } } }
      http: { method: POST, url: "${TOOLS}/deploy", timeout_seconds: 30 }
      approval: required
    - name: look
      description: Looks at something
      parameters: { type: object, required: [at], properties: { at: { type: string } } }
      http: { method: POST, url: "${TOOLS}/look", timeout_seconds: 30 }
      effects: read_only
      approval: never
"#;

/// An agent that has others work for it, and hands over.
const DESK: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: desk-agent, description: Passes on }
spec:
  type: chat_model_agent
  model: { primary: openai/gpt-4o }
  system_prompt: You pass on.
  tools:
    - ref: agent://plain-agent
      approval: never
  handoffs: [form-agent]
"#;

/// The files that every world begins with.
pub fn files() -> Files {
    let files = [("approval", APPROVAL), ("plain", PLAIN), ("form", FORM), ("tool", TOOL), ("desk", DESK)];
    files.into_iter().map(|(name, text)| (format!("agents/{name}.yaml"), text.to_owned())).collect()
}

/// What the files name.
pub fn environment(model_url: &str, tools_url: &str) -> FixedEnvironment {
    FixedEnvironment::empty()
        .with("OPENAI_BASE_URL", model_url)
        .with("OPENAI_API_KEY", "a-key-for-tests")
        .with("TOOLS", tools_url)
}

/// Keys of two programs, of two who approve and of one who looks.
pub struct Keys {
    pub ana: String,
    pub ben: String,
    pub approver: String,
    pub second: String,
    pub auditor: String,
}

/// Credentials for the programs `ana` and `ben`, for `carla` and `emil` who approve, and for `dora` who looks.
pub fn credentials() -> (Credentials, Keys) {
    let (credentials, [ana, ben, approver, second, auditor]) = keys([
        ("ana", Role::Agent),
        ("ben", Role::Agent),
        ("carla", Role::Approver),
        ("emil", Role::Approver),
        ("dora", Role::Auditor),
    ]);
    (credentials, Keys { ana, ben, approver, second, auditor })
}
