//! Messages as they stream: numbered blocks of words, thoughts and calls.

use std::collections::BTreeMap;

use holdpoint_core::message::Usage;
use holdpoint_runtime::ports::model::{Delta, ModelReply};
use serde_json::{Value, json};

use crate::anthropic::thoughts::Thoughts;
use crate::draft::{Draft, Ending};
use crate::problem::{self, Problem};
use crate::reader::Assemble;

/// A reply in the making.
#[derive(Debug, Clone)]
pub(crate) struct MessagesStream {
    draft: Draft,
    blocks: BTreeMap<u64, Block>,
    last: u64,
    input_tokens: u64,
    output_tokens: u64,
    stop_reason: Option<String>,
    is_done: bool,
    thoughts: Thoughts,
}

#[derive(Debug, Clone)]
enum Block {
    Words,
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(Value),
    /// The call's place, and its arguments where they came with its beginning.
    Call {
        place: usize,
        given: Option<String>,
    },
    Other,
}

impl MessagesStream {
    /// The beginning of a reply whose thoughts are kept where they are needed again.
    pub(crate) fn new(draft: Draft, thoughts: Thoughts) -> Self {
        Self {
            draft,
            blocks: BTreeMap::new(),
            last: 0,
            input_tokens: 0,
            output_tokens: 0,
            stop_reason: None,
            is_done: false,
            thoughts,
        }
    }

    fn index(&mut self, data: &Value) -> u64 {
        self.last = data["index"].as_u64().unwrap_or(self.last);
        self.last
    }

    fn begin(&mut self, index: u64, block: &Value) -> Result<(), Problem> {
        let begun = match block["type"].as_str() {
            Some("text") => {
                self.draft.say(block["text"].as_str().unwrap_or_default())?;
                Block::Words
            }
            Some("thinking") => {
                let of = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
                let (text, signature) = (of("thinking"), of("signature"));
                self.draft.think(&text);
                Block::Thinking { text, signature }
            }
            Some("redacted_thinking") => Block::Redacted(block["data"].clone()),
            Some("tool_use") => {
                let of = |name: &str| block[name].as_str().unwrap_or_default();
                let place = self.draft.open_call(index, of("id"), of("name"))?;
                let given = block["input"].as_object().filter(|input| !input.is_empty());
                Block::Call { place, given: given.map(|_| block["input"].to_string()) }
            }
            _ => Block::Other,
        };
        self.blocks.insert(index, begun);
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value) -> Result<(), Problem> {
        let of = |name: &str| delta[name].as_str().unwrap_or_default();
        match (delta["type"].as_str(), self.blocks.get_mut(&index)) {
            (Some("text_delta"), _) => self.draft.say(of("text")),
            (Some("thinking_delta"), block) => {
                if let Some(Block::Thinking { text, .. }) = block {
                    text.push_str(of("thinking"));
                }
                self.draft.think(of("thinking"));
                Ok(())
            }
            (Some("signature_delta"), Some(Block::Thinking { signature, .. })) => {
                signature.push_str(of("signature"));
                Ok(())
            }
            (Some("input_json_delta"), Some(Block::Call { place, given })) => {
                *given = None;
                self.draft.argue(*place, of("partial_json"))
            }
            _ => Ok(()),
        }
    }

    /// A block is over: arguments that came with its beginning, and not piece by piece, count now.
    fn end_block(&mut self, index: u64) -> Result<(), Problem> {
        match self.blocks.get_mut(&index) {
            Some(Block::Call { place, given }) => match given.take() {
                Some(arguments) => self.draft.argue(*place, &arguments),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn usage(&mut self, usage: &Value) {
        let of = |name: &str| usage[name].as_u64();
        if let Some(input) = of("input_tokens") {
            let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
            self.input_tokens = cached.iter().filter_map(|name| of(name)).fold(input, u64::saturating_add);
        }
        self.output_tokens = of("output_tokens").unwrap_or(self.output_tokens);
        self.draft.usage = Usage::request(self.input_tokens, self.output_tokens);
    }

    fn stop(&mut self, reason: &Value) {
        if let Some(reason) = reason.as_str().filter(|reason| !reason.is_empty()) {
            self.stop_reason = Some(reason.to_owned());
        }
    }

    /// The provider wants the thoughts that led to a call back beside it.
    fn keep_thoughts(&self) {
        let Some(call_id) = self.draft.call_id(0) else { return };
        let blocks = self.blocks.values().filter_map(|block| match block {
            Block::Thinking { text, signature } => {
                Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
            }
            Block::Redacted(data) => Some(json!({"type": "redacted_thinking", "data": data})),
            Block::Words | Block::Call { .. } | Block::Other => None,
        });
        self.thoughts.keep(call_id, blocks.collect());
    }
}

impl Assemble for MessagesStream {
    fn frame(&mut self, kind: &str, data: Value) -> Result<(), Problem> {
        match kind {
            "message_start" => {
                self.usage(&data["message"]["usage"]);
                Ok(())
            }
            "content_block_start" => {
                let index = self.index(&data);
                self.begin(index, &data["content_block"])
            }
            "content_block_delta" => {
                let index = self.index(&data);
                self.delta(index, &data["delta"])
            }
            "content_block_stop" => {
                let index = self.index(&data);
                self.end_block(index)
            }
            "message_delta" => {
                self.stop(&data["delta"]["stop_reason"]);
                self.usage(&data["usage"]);
                Ok(())
            }
            "message_stop" => {
                self.is_done = true;
                Ok(())
            }
            "error" => Err(problem::told(&data)),
            _ if data.get("error").is_some_and(|error| !error.is_null()) => Err(problem::told(&data)),
            // Signs of life, and kinds that are still to come.
            _ => Ok(()),
        }
    }

    fn document(&mut self, body: Value) -> Result<(), Problem> {
        let Some(content) = body["content"].as_array() else {
            return Err(Problem::Unreadable { what: "the answer has no content".to_owned() });
        };
        for (index, block) in (0..).zip(content) {
            self.begin(index, block)?;
            self.end_block(index)?;
        }
        self.stop(&body["stop_reason"]);
        self.usage(&body["usage"]);
        self.is_done = true;
        Ok(())
    }

    fn end(&mut self) {
        self.is_done = true;
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn take_told(&mut self) -> Vec<Delta> {
        self.draft.take_told()
    }

    fn finish(mut self) -> Result<ModelReply, Problem> {
        let ending = match self.stop_reason.as_deref() {
            None if !self.is_done => return Err(Problem::CutShort),
            Some("max_tokens" | "model_context_window_exceeded") => Ending::OutOfTokens,
            Some(reason @ "refusal") => Ending::Withheld(reason.to_owned()),
            _ => Ending::Usual,
        };
        let open: Vec<u64> = self.blocks.keys().copied().collect();
        for index in open {
            self.end_block(index)?;
        }
        self.keep_thoughts();
        self.draft.finish(&ending)
    }
}
