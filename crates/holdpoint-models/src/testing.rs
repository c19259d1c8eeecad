//! What the tests of this crate share.

use std::sync::Arc;

use holdpoint_core::ids::{FramePath, ToolName};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::{AskedCall, Content, Item};
use holdpoint_runtime::ports::model::{ModelRequest, OfferedTool};
use serde_json::{Value, json};

/// A request with two tools, one of which has a name that providers refuse.
pub(crate) fn request(items: Vec<Item>, settings: Value) -> ModelRequest {
    let tool = |name: &str, property: &str| OfferedTool {
        name: ToolName::new(name).unwrap(),
        description: format!("What {name} does."),
        schema: json!({"type": "object", "properties": {property: {"type": "string"}}, "required": [property]}),
    };
    ModelRequest {
        run: "run_0198c0ffee007000800000000000beef".parse().unwrap(),
        frame: FramePath::root(),
        turn: 1,
        agent: "Helper".parse().unwrap(),
        instructions: "You help.".into(),
        items: items.into_iter().map(Arc::new).collect(),
        tools: Arc::new([tool("get_weather", "location"), tool("files.read", "path")]),
        settings: Arc::new(settings),
    }
}

pub(crate) fn user(text: &str) -> Item {
    Item::User(text.into())
}

pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> AskedCall {
    let arguments = CanonicalJson::parse(arguments).unwrap();
    AskedCall { call_id: id.to_owned(), tool: ToolName::new(tool).unwrap(), arguments }
}

pub(crate) fn assistant(text: Option<&str>, calls: Vec<AskedCall>) -> Item {
    Item::Assistant { text: text.map(str::to_owned), calls }
}

pub(crate) fn result(id: &str, tool: &str, output: impl Into<Content>, is_error: bool) -> Item {
    Item::ToolResult { call_id: id.to_owned(), tool: ToolName::new(tool).unwrap(), output: output.into(), is_error }
}
