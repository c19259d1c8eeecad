//! What Slack keeps: messages, what single people were told, and modals.

use serde_json::{Value, json};

use super::limits;

/// A message in a channel, as it stands now.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Where.
    pub channel: String,
    /// Its name within the channel.
    pub ts: String,
    /// What notifications show.
    pub text: String,
    /// What it is made of.
    pub blocks: Value,
    /// How often it was changed.
    pub updates: usize,
}

impl Message {
    /// The value of the button with this action, if it is there.
    pub fn button(&self, action: &str) -> Option<String> {
        let blocks = self.blocks.as_array()?;
        let elements = blocks.iter().filter_map(|block| block["elements"].as_array()).flatten();
        let found =
            elements.into_iter().find(|element| element["type"] == "button" && element["action_id"] == action)?;
        Some(found["value"].as_str().unwrap_or_default().to_owned())
    }

    /// The actions of all its buttons.
    pub fn actions(&self) -> Vec<String> {
        let blocks = self.blocks.as_array().cloned().unwrap_or_default();
        let elements = blocks.iter().filter_map(|block| block["elements"].as_array()).flatten();
        let of = |element: &Value| element["action_id"].as_str().map(str::to_owned);
        elements.filter(|element| element["type"] == "button").filter_map(of).collect()
    }
}

/// What one person was told in a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Posted {
    /// Where.
    pub channel: String,
    /// Whom.
    pub user: String,
    /// What.
    pub text: String,
}

#[derive(Default)]
pub(super) struct Workspace {
    pub(super) messages: Vec<Message>,
    pub(super) ephemerals: Vec<Posted>,
    pub(super) views: Vec<Value>,
}

impl Workspace {
    /// Does what is asked, or says why not, as Slack has it.
    pub(super) fn call(&mut self, method: &str, authorization: &str, body: &Value) -> Value {
        if !authorization.starts_with("Bearer xoxb-") {
            return error("invalid_auth");
        }
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let problem = match method {
            "chat.postMessage" | "chat.update" | "chat.postEphemeral" => limits::message(body),
            "views.open" | "views.update" => limits::view(&body["view"]),
            _ => None,
        };
        if let Some(problem) = problem {
            return json!({"ok": false, "error": "invalid_blocks", "response_metadata": {"messages": [problem]}});
        }
        match method {
            "auth.test" => {
                json!({"ok": true, "url": "https://example.slack.com/", "team": "Example", "team_id": "T012", "user": "holdpoint", "user_id": "U0BOT", "bot_id": "B0BOT"})
            }
            "chat.postMessage" => {
                let ts = format!("1700000000.{:06}", self.messages.len() + 1);
                let (channel, blocks) = (text("channel"), body["blocks"].clone());
                self.messages.push(Message {
                    channel: channel.clone(),
                    ts: ts.clone(),
                    text: text("text"),
                    blocks,
                    updates: 0,
                });
                json!({"ok": true, "channel": channel, "ts": ts})
            }
            "chat.update" => {
                let (channel, ts) = (text("channel"), text("ts"));
                let found = self.messages.iter_mut().find(|message| message.channel == channel && message.ts == ts);
                let Some(message) = found else { return error("message_not_found") };
                message.text = text("text");
                message.blocks = body["blocks"].clone();
                message.updates += 1;
                json!({"ok": true, "channel": channel, "ts": ts})
            }
            "chat.postEphemeral" => {
                let posted = Posted { channel: text("channel"), user: text("user"), text: text("text") };
                self.ephemerals.push(posted);
                json!({"ok": true, "message_ts": "1700000001.000001"})
            }
            "views.open" | "views.update" => {
                if method == "views.open" && text("trigger_id").is_empty() {
                    return error("invalid_trigger_id");
                }
                let mut view = body["view"].clone();
                view["id"] = json!(format!("V{:03}", self.views.len() + 1));
                self.views.push(view.clone());
                json!({"ok": true, "view": view})
            }
            "conversations.info" => json!({"ok": true, "channel": {"id": text("channel"), "is_member": true}}),
            _ => error("unknown_method"),
        }
    }
}

fn error(error: &str) -> Value {
    json!({"ok": false, "error": error})
}
