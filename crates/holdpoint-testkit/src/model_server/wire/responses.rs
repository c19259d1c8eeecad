//! Responses, as OpenAI streams them: every frame is named and numbered, and the last one says everything once more.

use serde_json::{Value, json};

use super::{Call, Speak, calls_of, joined, named, pieces, text_of, thinking_of};
use crate::model_server::Asked;
use crate::model_server::answer::Said;

pub(super) struct Speaker {
    whole: Value,
    number: u64,
    frames: u64,
    /// The kind of the item that is open, and what was said in it.
    open: Option<(&'static str, String)>,
    items: usize,
}

impl Speaker {
    pub(super) fn new(asked: &Asked, number: u64, said: &Said) -> Self {
        Self { whole: whole(asked, number, said), number, frames: 0, open: None, items: 0 }
    }

    fn frame(&mut self, mut data: Value) -> String {
        data["sequence_number"] = json!(self.frames);
        self.frames += 1;
        named(&data)
    }

    fn item_id(&self) -> String {
        format!("item_{}_{}", self.number, self.items)
    }

    /// The place of the item that is open, as every frame about it repeats it.
    fn place(&self, kind: &str) -> Value {
        json!({"type": kind, "item_id": self.item_id(), "output_index": self.items})
    }

    fn begin(&mut self, kind: &'static str, text: &str) -> Vec<String> {
        if let Some((open, said)) = &mut self.open
            && *open == kind
        {
            said.push_str(text);
            return Vec::new();
        }
        let mut frames = self.end();
        self.open = Some((kind, text.to_owned()));
        let item = match kind {
            "message" => json!({"type": kind, "id": self.item_id(), "role": "assistant", "content": []}),
            _ => json!({"type": kind, "id": self.item_id(), "summary": []}),
        };
        let added = json!({"type": "response.output_item.added", "output_index": self.items, "item": item});
        frames.push(self.frame(added));
        frames
    }

    fn end(&mut self) -> Vec<String> {
        let Some((kind, said)) = self.open.take() else { return Vec::new() };
        let (done, item) = match kind {
            "message" => {
                let content = json!([{"type": "output_text", "text": said, "annotations": []}]);
                let item = json!({"type": kind, "id": self.item_id(), "role": "assistant", "content": content});
                ("response.output_text.done", item)
            }
            _ => {
                let summary = json!([{"type": "summary_text", "text": said}]);
                let item = json!({"type": kind, "id": self.item_id(), "summary": summary});
                ("response.reasoning_summary_text.done", item)
            }
        };
        let mut text = self.place(done);
        text["text"] = json!(said);
        let done = json!({"type": "response.output_item.done", "output_index": self.items, "item": item});
        let frames = vec![self.frame(text), self.frame(done)];
        self.items += 1;
        frames
    }

    fn delta(&mut self, kind: &str, index: &str, text: &str) -> String {
        let mut data = self.place(kind);
        data[index] = json!(0);
        data["delta"] = json!(text);
        self.frame(data)
    }
}

impl Speak for Speaker {
    fn open(&mut self) -> Vec<String> {
        let mut begun = self.whole.clone();
        begun["status"] = json!("in_progress");
        begun["output"] = json!([]);
        begun["usage"] = Value::Null;
        let created = self.frame(json!({"type": "response.created", "response": begun}));
        let in_progress = self.frame(json!({"type": "response.in_progress", "response": begun}));
        vec![created, in_progress]
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        let mut frames = self.begin("message", text);
        frames.push(self.delta("response.output_text.delta", "content_index", text));
        frames
    }

    fn thinking(&mut self, text: &str) -> Vec<String> {
        let mut frames = self.begin("reasoning", text);
        frames.push(self.delta("response.reasoning_summary_text.delta", "summary_index", text));
        frames
    }

    fn call(&mut self, call: &Call) -> Vec<String> {
        let mut frames = self.end();
        let mut item = json!({"type": "function_call", "id": self.item_id(), "call_id": call.id, "name": call.tool,
            "arguments": "", "status": "in_progress"});
        let added = json!({"type": "response.output_item.added", "output_index": self.items, "item": item});
        frames.push(self.frame(added));
        for piece in pieces(&call.arguments) {
            let mut data = self.place("response.function_call_arguments.delta");
            data["delta"] = json!(piece);
            frames.push(self.frame(data));
        }
        let mut done = self.place("response.function_call_arguments.done");
        done["arguments"] = json!(call.arguments);
        frames.push(self.frame(done));
        item["arguments"] = json!(call.arguments);
        item["status"] = json!("completed");
        let done = json!({"type": "response.output_item.done", "output_index": self.items, "item": item});
        frames.push(self.frame(done));
        self.items += 1;
        frames
    }

    fn close(&mut self) -> Vec<String> {
        let mut frames = self.end();
        let kind = if self.whole["status"] == "completed" { "response.completed" } else { "response.incomplete" };
        let last = json!({"type": kind, "response": self.whole});
        frames.push(self.frame(last));
        frames
    }
}

pub(super) fn whole(asked: &Asked, number: u64, said: &Said) -> Value {
    let (thinking, text) = (joined(said, thinking_of), joined(said, text_of));
    let mut output = Vec::new();
    if !thinking.is_empty() {
        let summary = json!([{"type": "summary_text", "text": thinking}]);
        output.push(json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": summary}));
    }
    if !text.is_empty() {
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        let id = format!("msg_{number}");
        output
            .push(json!({"type": "message", "id": id, "role": "assistant", "content": content, "status": "completed"}));
    }
    output.extend(calls_of(said, number).into_iter().map(|call| {
        json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id, "name": call.tool,
            "arguments": call.arguments, "status": "completed"})
    }));
    let status = if said.finish.is_some() { "incomplete" } else { "completed" };
    let details = said.finish.as_ref().map(|reason| json!({"reason": reason}));
    json!({
        "id": format!("resp_{number}"), "object": "response", "created_at": 1_700_000_000, "model": asked.model(),
        "status": status, "incomplete_details": details, "error": null, "output": output,
        "usage": {
            "input_tokens": said.input_tokens, "output_tokens": said.output_tokens,
            "total_tokens": said.input_tokens + said.output_tokens,
        },
    })
}
