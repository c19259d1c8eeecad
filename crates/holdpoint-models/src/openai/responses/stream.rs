//! Responses as they stream: named frames about numbered items, and a last frame that says everything once more.

use std::collections::HashSet;

use holdpoint_core::message::Usage;
use holdpoint_runtime::ports::model::{Delta, ModelReply};
use serde_json::Value;

use crate::draft::{Draft, Ending};
use crate::problem::{self, Problem};
use crate::reader::Assemble;

/// A reply in the making.
#[derive(Debug, Clone)]
pub(crate) struct ResponsesStream {
    draft: Draft,
    /// The items whose words were streamed.
    said: HashSet<u64>,
    thought: bool,
    ending: Option<Ending>,
    is_done: bool,
}

impl ResponsesStream {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, said: HashSet::new(), thought: false, ending: None, is_done: false }
    }

    fn say(&mut self, data: &Value) -> Result<(), Problem> {
        self.said.insert(place(data));
        self.draft.say(data["delta"].as_str().unwrap_or_default())
    }

    fn think(&mut self, text: &str) {
        self.thought |= !text.is_empty();
        self.draft.think(text);
    }

    fn call_place(&self, data: &Value) -> Option<usize> {
        match data["output_index"].as_u64() {
            Some(index) => self.draft.place_of(index),
            None => self.draft.calls().len().checked_sub(1),
        }
    }

    /// The call of an item, which begins here unless it is known.
    fn call(&mut self, index: u64, item: &Value) -> Result<usize, Problem> {
        let id = item["call_id"].as_str().or_else(|| item["id"].as_str()).unwrap_or_default();
        let known = if id.is_empty() {
            self.draft.place_of(index)
        } else {
            self.draft.calls().iter().position(|call| call.given_id == id)
        };
        match known {
            Some(place) => Ok(place),
            None => self.draft.open_call(index, id, item["name"].as_str().unwrap_or_default()),
        }
    }

    /// An item as a whole: what was not streamed of it is taken from here.
    fn settle(&mut self, index: u64, item: &Value) -> Result<(), Problem> {
        match item["type"].as_str() {
            Some("function_call") => {
                let place = self.call(index, item)?;
                self.draft.name_call(place, item["name"].as_str().unwrap_or_default())?;
                self.draft.settle_arguments(place, item["arguments"].as_str().unwrap_or_default())
            }
            Some("message") if self.said.insert(index) => {
                let parts = item["content"].as_array().into_iter().flatten();
                let words = parts.filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()));
                words.into_iter().try_for_each(|text| self.draft.say(text))
            }
            Some("reasoning") if !self.thought => {
                let parts = item["summary"].as_array().into_iter().chain(item["content"].as_array()).flatten();
                for text in parts.filter_map(|part| part["text"].as_str()) {
                    self.draft.think(text);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The response as a whole.
    fn whole(&mut self, response: &Value) -> Result<(), Problem> {
        let usage = &response["usage"];
        if let Some(input) = usage["input_tokens"].as_u64() {
            self.draft.usage = Usage::request(input, usage["output_tokens"].as_u64().unwrap_or(0));
        }
        if response["status"] == "failed" || response["error"].is_object() {
            return Err(problem::told(response));
        }
        // Items that were streamed without a number cannot be found again by it: words that were said are not repeated.
        let is_said = !self.said.is_empty();
        for (index, item) in (0..).zip(response["output"].as_array().into_iter().flatten()) {
            if !(is_said && item["type"] == "message") {
                self.settle(index, item)?;
            }
        }
        self.ending = Some(match (response["status"].as_str(), response["incomplete_details"]["reason"].as_str()) {
            (Some("incomplete"), Some("max_output_tokens" | "max_tokens" | "length") | None) => Ending::OutOfTokens,
            (Some("incomplete"), Some(reason)) => Ending::Withheld(reason.to_owned()),
            (Some("cancelled"), _) => Ending::Withheld("cancelled".to_owned()),
            _ => Ending::Usual,
        });
        self.is_done = true;
        Ok(())
    }
}

impl Assemble for ResponsesStream {
    fn frame(&mut self, kind: &str, data: Value) -> Result<(), Problem> {
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => self.say(&data),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(data["delta"].as_str().unwrap_or_default());
                Ok(())
            }
            "response.reasoning_summary_part.added" => {
                if data["summary_index"].as_u64().unwrap_or(0) > 0 {
                    self.think("\n\n");
                }
                Ok(())
            }
            "response.output_item.added" if data["item"]["type"] == "function_call" => {
                self.call(place(&data), &data["item"]).map(|_| ())
            }
            "response.output_item.done" => self.settle(place(&data), &data["item"]),
            "response.function_call_arguments.delta" => match self.call_place(&data) {
                Some(place) => self.draft.argue(place, data["delta"].as_str().unwrap_or_default()),
                None => Ok(()),
            },
            "response.function_call_arguments.done" => match self.call_place(&data) {
                Some(place) => self.draft.settle_arguments(place, data["arguments"].as_str().unwrap_or_default()),
                None => Ok(()),
            },
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.whole(&data["response"])
            }
            "error" => Err(problem::told(&data)),
            _ if data.get("error").is_some_and(|error| !error.is_null()) => Err(problem::told(&data)),
            // Frames of other kinds say nothing that the others do not.
            _ => Ok(()),
        }
    }

    fn document(&mut self, body: Value) -> Result<(), Problem> {
        if !body["output"].is_array() {
            return Err(Problem::Unreadable { what: "the answer has no output".to_owned() });
        }
        self.whole(&body)
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

    fn finish(self) -> Result<ModelReply, Problem> {
        match self.ending {
            None if !self.is_done => Err(Problem::CutShort),
            ending => self.draft.finish(&ending.unwrap_or(Ending::Usual)),
        }
    }
}

fn place(data: &Value) -> u64 {
    data["output_index"].as_u64().unwrap_or(0)
}
