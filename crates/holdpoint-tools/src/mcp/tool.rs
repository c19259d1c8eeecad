//! One tool of an MCP server as a holdpoint tool.

use async_trait::async_trait;
use holdpoint_core::ids::ToolName;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_runtime::ports::tool::{RunTool, Tool, ToolContext, ToolFailure, ToolProblems, ToolShape};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::mcp::RequireApproval;

/// A tool as its server describes it. Everything but the label is the server's word: shown as a claim, never believed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpToolSpec {
    /// What the operator calls the server.
    pub server_label: String,
    /// What the server calls the tool.
    pub tool_name: String,
    /// What the server says it is for.
    pub description: String,
    /// The JSON schema of its arguments; nothing given takes any object.
    pub schema: Value,
    /// Whether the server says that the tool changes nothing.
    pub read_only_hint: Option<bool>,
}

/// Calls a tool at its server.
#[async_trait]
pub trait McpCaller: Send + Sync + 'static {
    /// Calls the tool with exactly these arguments.
    ///
    /// # Errors
    /// What the model is told instead of a result.
    async fn call(&self, context: ToolContext, tool: &str, arguments: CanonicalJson) -> Result<Content, ToolFailure>;
}

/// A server's tool, held as the operator's policy says.
///
/// Its claim to change nothing does not make it safe to run again after a crash: a person is asked. More can be set
/// with [`Tool::rebuild`]; the server is still called by the tool's own name if the tool is given another one.
///
/// # Errors
/// A missing label or name, or one that is no tool name; a schema that is not valid or not of an object.
pub fn mcp_tool(spec: McpToolSpec, policy: &RequireApproval, caller: impl McpCaller) -> Result<Tool, ToolProblems> {
    let mut problems = Vec::new();
    let mut name = |what: &str, text: &str| {
        let problem = |why: &dyn std::fmt::Display| format!("{what}: {why}");
        match ToolName::new(text) {
            Ok(name) => Some(name),
            Err(_) if text.is_empty() => {
                problems.push(problem(&"missing"));
                None
            }
            Err(bad) => {
                problems.push(problem(&bad));
                None
            }
        }
    };
    let (server, tool) = (name("server label", &spec.server_label), name("tool name", &spec.tool_name));
    if spec.schema.get("type").is_some_and(|of| of != "object") || !(spec.schema.is_object() || spec.schema.is_null()) {
        problems.push("schema: that of an object expected".to_owned());
    }
    let (Some(server), Some(_), true) = (server, tool, problems.is_empty()) else {
        return Err(ToolProblems { tool: spec.tool_name, problems });
    };
    let schema = if spec.schema.is_null() { json!({"type": "object"}) } else { spec.schema };
    Tool::builder(spec.tool_name.clone())
        .description(spec.description)
        .schema(schema)
        .shape(ToolShape::Mcp { server })
        .needs_approval(policy.needs_approval(&spec.tool_name, spec.read_only_hint))
        .runner(McpRunner { tool: spec.tool_name, caller })
        .build()
}

struct McpRunner<C> {
    tool: String,
    caller: C,
}

#[async_trait]
impl<C: McpCaller> RunTool for McpRunner<C> {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        self.caller.call(context, &self.tool, arguments).await
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::tool::Effect;
    use holdpoint_runtime::ports::tool::AutoDecision;

    use super::*;
    use crate::testing::{arguments, context, holds};

    struct Echo;

    #[async_trait]
    impl McpCaller for Echo {
        async fn call(&self, _: ToolContext, tool: &str, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
            Ok(Content::Text(format!("{tool} {}", arguments.as_str())))
        }
    }

    fn spec(tool_name: &str) -> McpToolSpec {
        McpToolSpec {
            server_label: "files".to_owned(),
            tool_name: tool_name.to_owned(),
            description: "Deletes everything.".to_owned(),
            schema: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
            read_only_hint: Some(true),
        }
    }

    fn problems(spec: McpToolSpec) -> Vec<String> {
        mcp_tool(spec, &RequireApproval::Never, Echo).unwrap_err().problems
    }

    #[test]
    fn a_servers_tool_carries_its_server() {
        let tool = mcp_tool(spec("delete_all"), &RequireApproval::Never, Echo).unwrap();
        assert_eq!((tool.name().as_str(), tool.description()), ("delete_all", "Deletes everything."));
        assert!(matches!(tool.shape(), ToolShape::Mcp { server } if server.as_str() == "files"));
        assert!(tool.validate(&arguments(&json!({"path": "/"}))).is_ok());
        assert!(tool.validate(&arguments(&json!({}))).is_err());
    }

    #[test]
    fn a_claim_to_change_nothing_does_not_let_a_tool_run_again_after_a_crash() {
        let tool = mcp_tool(spec("delete_all"), &RequireApproval::Never, Echo).unwrap();
        assert_eq!(tool.effect(), Effect::AtMostOnce);
    }

    #[tokio::test]
    async fn a_tool_that_claims_to_change_nothing_is_held_all_the_same() {
        for (policy, is_held) in [
            (json!("always"), true),
            (json!("never"), false),
            (json!({"never": {"tool_names": ["search"]}}), true),
            (json!({"never": {"read_only": true}}), false),
            (json!({"always": {"tool_names": ["delete_all"]}, "never": {"read_only": true}}), true),
        ] {
            let policy = RequireApproval::parse(&policy).unwrap();
            let tool = mcp_tool(spec("delete_all"), &policy, Echo).unwrap();
            assert_eq!(holds(&tool, &json!({"path": "/"})).await, is_held, "{policy:?}");
        }
    }

    #[test]
    fn a_missing_label_or_name_is_refused() {
        let nothing: McpToolSpec = serde_json::from_value(json!({})).unwrap();
        assert_eq!(problems(nothing), ["server label: missing", "tool name: missing"]);
        assert_eq!(problems(spec("")), ["tool name: missing"]);
        assert_eq!(problems(McpToolSpec { server_label: String::new(), ..spec("a") }), ["server label: missing"]);
    }

    #[test]
    fn a_label_or_name_that_is_none_is_refused() {
        let expected = "a tool name of 1 to 128 letters, digits, '_', '-', '.' or ':' expected, such as send_email";
        for name in ["delete all", "delete\u{200b}all", "dеlete", " ", "a/b"] {
            assert_eq!(problems(spec(name)), [format!("tool name: {expected}")], "{name:?}");
            let labelled = McpToolSpec { server_label: name.to_owned(), ..spec("a") };
            assert_eq!(problems(labelled), [format!("server label: {expected}")], "{name:?}");
        }
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        for schema in [json!({"type": "string"}), json!(true), json!("object"), json!([])] {
            let problem = "schema: that of an object expected";
            assert_eq!(problems(McpToolSpec { schema: schema.clone(), ..spec("a") }), [problem], "{schema}");
        }
        for schema in [json!({"type": "object", "required": 1}), json!({"$ref": "https://example.com/schema.json"})] {
            assert_eq!(problems(McpToolSpec { schema: schema.clone(), ..spec("a") }).len(), 1, "{schema}");
        }
        let tool = mcp_tool(McpToolSpec { schema: Value::Null, ..spec("a") }, &RequireApproval::Never, Echo).unwrap();
        assert!(tool.validate(&arguments(&json!({"any": 1}))).is_ok());
    }

    #[test]
    fn a_decider_in_code_is_passed_through() {
        let tool = mcp_tool(spec("delete_all"), &RequireApproval::Always, Echo).unwrap();
        let decided = tool.rebuild().on_approval("ci", |_, _| async { AutoDecision::Abstain }).build().unwrap();
        assert!(decided.has_decider() && matches!(decided.shape(), ToolShape::Mcp { .. }));
    }

    #[tokio::test]
    async fn the_server_is_called_with_exactly_the_arguments() {
        let runner = McpRunner { tool: "delete_all".to_owned(), caller: Echo };
        let told = runner.run(context(), arguments(&json!({"path": "a ", "n": 1.0}))).await.unwrap();
        assert_eq!(told.to_text(), r#"delete_all {"n":1,"path":"a "}"#);
    }
}
