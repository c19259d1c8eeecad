//! Chat completions, as OpenAI and the many servers that follow it stream them.

use serde_json::{Value, json};

use super::{Call, Speak, calls_of, frame, joined, pieces, text_of, thinking_of};
use crate::model_server::Asked;
use crate::model_server::answer::Said;

pub(super) struct Speaker {
    id: String,
    model: String,
    usage: Option<Value>,
    finish: Option<String>,
    calls: usize,
}

impl Speaker {
    pub(super) fn new(asked: &Asked, number: u64, said: &Said) -> Self {
        let wants_usage = asked.body["stream_options"]["include_usage"] == Value::Bool(true);
        Self {
            id: format!("chatcmpl-{number}"),
            model: asked.model().to_owned(),
            usage: wants_usage.then(|| usage(said)),
            finish: said.finish.clone(),
            calls: 0,
        }
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        let choices = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        frame(&self.body(&choices, &Value::Null))
    }

    fn body(&self, choices: &Value, usage: &Value) -> Value {
        let mut body = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": 1_700_000_000, "model": self.model,
            "system_fingerprint": "fp_test", "choices": choices,
        });
        if self.usage.is_some() {
            body["usage"] = usage.clone();
        }
        body
    }
}

impl Speak for Speaker {
    fn open(&mut self) -> Vec<String> {
        vec![self.chunk(&json!({"role": "assistant", "content": "", "refusal": null}), None)]
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        vec![self.chunk(&json!({"content": text}), None)]
    }

    fn thinking(&mut self, text: &str) -> Vec<String> {
        vec![self.chunk(&json!({"reasoning_content": text}), None)]
    }

    fn call(&mut self, call: &Call) -> Vec<String> {
        let index = self.calls;
        self.calls += 1;
        let head = json!({"tool_calls": [{"index": index, "id": call.id, "type": "function",
            "function": {"name": call.tool, "arguments": ""}}]});
        let mut frames = vec![self.chunk(&head, None)];
        frames.extend(pieces(&call.arguments).into_iter().map(|piece| {
            let more = json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
            self.chunk(&more, None)
        }));
        frames
    }

    fn close(&mut self) -> Vec<String> {
        let usual = if self.calls > 0 { "tool_calls" } else { "stop" };
        let finish = self.finish.clone().unwrap_or_else(|| usual.to_owned());
        let mut frames = vec![self.chunk(&json!({}), Some(&finish))];
        frames.extend(self.usage.iter().map(|usage| frame(&self.body(&json!([]), usage))));
        frames.push("data: [DONE]\n\n".to_owned());
        frames
    }
}

pub(super) fn whole(asked: &Asked, number: u64, said: &Said) -> Value {
    let calls: Vec<Value> = calls_of(said, number)
        .into_iter()
        .map(|call| {
            let function = json!({"name": call.tool, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        })
        .collect();
    let usual = if calls.is_empty() { "stop" } else { "tool_calls" };
    let text = Some(joined(said, text_of)).filter(|text| !text.is_empty() || calls.is_empty());
    let mut message = json!({"role": "assistant", "content": text, "refusal": null});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let thinking = joined(said, thinking_of);
    if !thinking.is_empty() {
        message["reasoning_content"] = Value::String(thinking);
    }
    json!({
        "id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 1_700_000_000,
        "model": asked.model(),
        "choices": [{"index": 0, "message": message, "logprobs": null,
            "finish_reason": said.finish.as_deref().unwrap_or(usual)}],
        "usage": usage(said),
    })
}

fn usage(said: &Said) -> Value {
    json!({
        "prompt_tokens": said.input_tokens, "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
    })
}
