//! The actions of a call, as models write them.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::computer::ComputerTool;

/// One action at a screen. `keys` are held down during it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ComputerAction {
    /// Nothing but a look.
    Screenshot {},
    /// A click.
    Click {
        /// From the left, in pixels.
        x: i32,
        /// From the top, in pixels.
        y: i32,
        /// Which button.
        #[serde(default)]
        button: Button,
        /// Keys held down.
        #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
        keys: Vec<String>,
    },
    /// Two clicks.
    DoubleClick {
        /// From the left, in pixels.
        x: i32,
        /// From the top, in pixels.
        y: i32,
        /// Keys held down.
        #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
        keys: Vec<String>,
    },
    /// A move of the mouse.
    Move {
        /// From the left, in pixels.
        x: i32,
        /// From the top, in pixels.
        y: i32,
        /// Keys held down.
        #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
        keys: Vec<String>,
    },
    /// A move of the mouse with the button down.
    Drag {
        /// Through these points.
        path: Vec<Point>,
        /// Keys held down.
        #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
        keys: Vec<String>,
    },
    /// A turn of the wheel.
    Scroll {
        /// From the left, in pixels.
        x: i32,
        /// From the top, in pixels.
        y: i32,
        /// To the right, in pixels.
        #[serde(default)]
        scroll_x: i32,
        /// Down, in pixels.
        #[serde(default)]
        scroll_y: i32,
        /// Keys held down.
        #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
        keys: Vec<String>,
    },
    /// A text.
    Type {
        /// The text.
        text: String,
    },
    /// Keys pressed together.
    Keypress {
        /// The keys.
        keys: Vec<String>,
    },
    /// A while in which nothing is done.
    Wait {},
}

impl ComputerAction {
    /// The action's name, as models write it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Screenshot {} => "screenshot",
            Self::Click { .. } => "click",
            Self::DoubleClick { .. } => "double_click",
            Self::Move { .. } => "move",
            Self::Drag { .. } => "drag",
            Self::Scroll { .. } => "scroll",
            Self::Type { .. } => "type",
            Self::Keypress { .. } => "keypress",
            Self::Wait {} => "wait",
        }
    }
}

/// A place on the screen, or a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// To the right, in pixels.
    pub x: i32,
    /// Down, in pixels.
    pub y: i32,
}

/// A button of the mouse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Button {
    /// The left one.
    #[default]
    Left,
    /// The right one.
    Right,
    /// The wheel.
    Wheel,
    /// Back.
    Back,
    /// Forward.
    Forward,
}

/// Models write `null` where no keys are held.
fn or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The actions of a call, in order: its `actions`, or its one `action`.
///
/// # Errors
/// Neither or both of them, none or too many, an action that is not known or not complete.
pub fn read_actions(arguments: &Value) -> Result<Vec<ComputerAction>, String> {
    check(Body::deserialize(arguments))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    actions: Option<Vec<ComputerAction>>,
    action: Option<ComputerAction>,
}

pub(super) fn check(body: serde_json::Result<Body>) -> Result<Vec<ComputerAction>, String> {
    let body = body.map_err(|error| format!("actions expected: {error}"))?;
    let actions = match (body.actions, body.action) {
        (Some(actions), None) => actions,
        (None, Some(action)) => vec![action],
        _ => return Err("either actions or one action expected".to_owned()),
    };
    if !(1..=ComputerTool::ACTIONS_MAX).contains(&actions.len()) {
        return Err(format!("1 to {} actions expected", ComputerTool::ACTIONS_MAX));
    }
    let is_short = |action: &ComputerAction| match action {
        ComputerAction::Drag { path, .. } => path.len() < 2,
        ComputerAction::Keypress { keys } => keys.is_empty(),
        _ => false,
    };
    match actions.iter().find(|action| is_short(action)) {
        Some(action) => Err(format!("{} is not complete", action.name())),
        None => Ok(actions),
    }
}

/// Either `actions` or `action`, without the combinators that providers refuse at the top of a schema.
pub(super) fn schema() -> Value {
    let number = json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX});
    let keys = json!({"type": ["array", "null"], "items": {"type": "string", "minLength": 1}, "maxItems": 16});
    let some_keys =
        json!({"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 16});
    let button = json!({"enum": ["left", "right", "wheel", "back", "forward"]});
    let point = json!({
        "type": "object",
        "properties": {"x": number, "y": number},
        "required": ["x", "y"],
        "additionalProperties": false,
    });
    let path = json!({"type": "array", "items": point, "minItems": 2, "maxItems": 1_024});
    let variant = |name: &str, fields: Value, required: Value| {
        let mut properties = fields;
        properties["type"] = json!({"const": name});
        let mut all = vec![json!("type")];
        all.extend(required.as_array().cloned().unwrap_or_default());
        json!({"type": "object", "properties": properties, "required": all, "additionalProperties": false})
    };
    let at = json!(["x", "y"]);
    let none = json!([]);
    let action = json!({
        "oneOf": [
            variant("screenshot", json!({}), none.clone()),
            variant("click", json!({"x": number, "y": number, "button": button, "keys": keys}), at.clone()),
            variant("double_click", json!({"x": number, "y": number, "keys": keys}), at.clone()),
            variant("move", json!({"x": number, "y": number, "keys": keys}), at.clone()),
            variant("drag", json!({"path": path, "keys": keys}), json!(["path"])),
            variant(
                "scroll",
                json!({"x": number, "y": number, "scroll_x": number, "scroll_y": number, "keys": keys}),
                at,
            ),
            variant("type", json!({"text": {"type": "string"}}), json!(["text"])),
            variant("keypress", json!({"keys": some_keys}), json!(["keys"])),
            variant("wait", json!({}), none),
        ],
    });
    json!({
        "type": "object",
        "properties": {
            "actions": {"type": "array", "items": action, "minItems": 1, "maxItems": ComputerTool::ACTIONS_MAX},
            "action": action,
        },
        "additionalProperties": false,
        "if": {"required": ["action"]},
        "then": {"properties": {"actions": false}},
        "else": {"required": ["actions"]},
    })
}
