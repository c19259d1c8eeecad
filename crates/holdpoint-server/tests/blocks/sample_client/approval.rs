//! The dialog of the samples on the page on approvals: each action with its arguments and two buttons.

use serde_json::{Value, json};

pub struct ApprovalDialog {
    session_id: String,
    pub(super) approval_key: String,
    actions: Vec<Value>,
    decisions: Vec<Value>,
}

impl ApprovalDialog {
    /// From the content block of a request: its key, and each action's name and arguments.
    pub(super) fn new(session_id: &str, block: &Value) -> Self {
        let actions = block["actions"].as_array().cloned().unwrap_or_default();
        Self {
            session_id: session_id.to_owned(),
            approval_key: block["approval_key"].as_str().unwrap_or_default().to_owned(),
            decisions: vec![json!({"type": "approve"}); actions.len()],
            actions,
        }
    }

    /// Presses one of an action's buttons.
    pub fn choose(&mut self, action: usize, kind: &str) {
        self.decisions[action] = json!({"type": kind});
    }

    /// Changes an action's arguments.
    pub fn edit(&mut self, action: usize, args: Value) {
        let edited = json!({"name": self.actions[action]["name"], "args": args});
        self.decisions[action] = json!({"type": "edit", "edited_action": edited});
    }

    /// What is sent when the person confirms.
    pub fn submit(&self) -> Value {
        json!({
            "type": "approval",
            "session_id": self.session_id,
            "approval_key": self.approval_key,
            "decisions": self.decisions,
        })
    }

    pub(super) fn render(&self) -> String {
        let mut lines = vec!["# Xác nhận hành động".to_owned()];
        for (action, decision) in self.actions.iter().zip(&self.decisions) {
            lines.push(format!("## {}", action["name"].as_str().unwrap_or_default()));
            let args = decision.pointer("/edited_action/args").unwrap_or(&action["args"]);
            lines.push(serde_json::to_string_pretty(args).unwrap());
            let mark = |kind: &str| if decision["type"] == kind { "(x)" } else { "( )" };
            lines.push(format!("{} Phê duyệt  {} Từ chối", mark("approve"), mark("reject")));
        }
        lines.push("[Xác nhận]".to_owned());
        lines.join("\n")
    }
}
