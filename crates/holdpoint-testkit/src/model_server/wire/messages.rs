//! Messages, as Anthropic streams them.

use serde_json::{Value, json};

use super::{Call, Speak, calls_of, joined, named, pieces, text_of, thinking_of};
use crate::model_server::Asked;
use crate::model_server::answer::Said;

pub(super) struct Speaker {
    id: String,
    model: String,
    input_tokens: u64,
    output_tokens: u64,
    finish: Option<String>,
    /// The kind of the block that is open.
    open: Option<&'static str>,
    blocks: usize,
    has_calls: bool,
}

impl Speaker {
    pub(super) fn new(asked: &Asked, number: u64, said: &Said) -> Self {
        Self {
            id: format!("msg_{number}"),
            model: asked.model().to_owned(),
            input_tokens: said.input_tokens,
            output_tokens: said.output_tokens,
            finish: said.finish.clone(),
            open: None,
            blocks: 0,
            has_calls: false,
        }
    }

    fn begin(&mut self, kind: &'static str, block: &Value) -> Vec<String> {
        if self.open == Some(kind) && kind != "tool_use" {
            return Vec::new();
        }
        let mut frames = self.end();
        self.open = Some(kind);
        frames.push(named(&json!({"type": "content_block_start", "index": self.blocks, "content_block": block})));
        frames
    }

    fn end(&mut self) -> Vec<String> {
        let Some(kind) = self.open.take() else { return Vec::new() };
        let mut frames = Vec::new();
        if kind == "thinking" {
            frames.push(self.delta(&json!({"type": "signature_delta", "signature": "c2lnbmVk"})));
        }
        frames.push(named(&json!({"type": "content_block_stop", "index": self.blocks})));
        self.blocks += 1;
        frames
    }

    fn delta(&self, delta: &Value) -> String {
        named(&json!({"type": "content_block_delta", "index": self.blocks, "delta": delta}))
    }
}

impl Speak for Speaker {
    fn open(&mut self) -> Vec<String> {
        let message = json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": self.input_tokens, "output_tokens": 1},
        });
        vec![named(&json!({"type": "message_start", "message": message})), named(&json!({"type": "ping"}))]
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        let mut frames = self.begin("text", &json!({"type": "text", "text": ""}));
        frames.push(self.delta(&json!({"type": "text_delta", "text": text})));
        frames
    }

    fn thinking(&mut self, text: &str) -> Vec<String> {
        let mut frames = self.begin("thinking", &json!({"type": "thinking", "thinking": "", "signature": ""}));
        frames.push(self.delta(&json!({"type": "thinking_delta", "thinking": text})));
        frames
    }

    fn call(&mut self, call: &Call) -> Vec<String> {
        self.has_calls = true;
        let block = json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": {}});
        let mut frames = self.begin("tool_use", &block);
        frames.extend(
            pieces(&call.arguments)
                .into_iter()
                .map(|piece| self.delta(&json!({"type": "input_json_delta", "partial_json": piece}))),
        );
        frames
    }

    fn close(&mut self) -> Vec<String> {
        let mut frames = self.end();
        let usual = if self.has_calls { "tool_use" } else { "end_turn" };
        let finish = self.finish.as_deref().unwrap_or(usual);
        frames.push(named(&json!({
            "type": "message_delta", "delta": {"stop_reason": finish, "stop_sequence": null},
            "usage": {"output_tokens": self.output_tokens},
        })));
        frames.push(named(&json!({"type": "message_stop"})));
        frames
    }
}

pub(super) fn whole(asked: &Asked, number: u64, said: &Said) -> Value {
    let (thinking, text, calls) = (joined(said, thinking_of), joined(said, text_of), calls_of(said, number));
    let usual = if calls.is_empty() { "end_turn" } else { "tool_use" };
    let mut content = Vec::new();
    if !thinking.is_empty() {
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": "c2lnbmVk"}));
    }
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    content.extend(calls.into_iter().map(|call| {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": input})
    }));
    json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": asked.model(),
        "content": content, "stop_reason": said.finish.as_deref().unwrap_or(usual), "stop_sequence": null,
        "usage": {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens},
    })
}
