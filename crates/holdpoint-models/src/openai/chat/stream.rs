//! Chat completions as they stream: chunks with a delta each. Many servers speak this, and few of them alike.

use holdpoint_core::message::Usage;
use holdpoint_runtime::ports::model::{Delta, ModelReply};
use serde_json::Value;

use crate::draft::{Draft, Ending};
use crate::problem::{self, Problem};
use crate::reader::Assemble;

/// A reply in the making.
#[derive(Debug, Clone)]
pub(crate) struct ChatStream {
    draft: Draft,
    finish: Option<String>,
    is_done: bool,
}

impl ChatStream {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, finish: None, is_done: false }
    }

    fn chunk(&mut self, chunk: &Value) -> Result<(), Problem> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) || chunk["object"] == "error" {
            return Err(problem::told(chunk));
        }
        self.usage(&chunk["usage"]);
        self.usage(&chunk["x_groq"]["usage"]);
        let choices = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice);
        // Only one reply is asked for; some servers leave its number out.
        let first = choices.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0);
        first.map_or(Ok(()), |choice| self.choice(choice))
    }

    fn choice(&mut self, choice: &Value) -> Result<(), Problem> {
        self.usage(&choice["usage"]);
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        let thinking = [&delta["reasoning_content"], &delta["reasoning"]];
        if let Some(text) = thinking.into_iter().filter_map(Value::as_str).find(|text| !text.is_empty()) {
            self.draft.think(text);
        }
        self.content(&delta["content"])?;
        self.draft.say(delta["refusal"].as_str().unwrap_or_default())?;
        for (position, call) in (0..).zip(delta["tool_calls"].as_array().into_iter().flatten()) {
            self.call(position, call)?;
        }
        if let Some(finish) = choice["finish_reason"].as_str().filter(|finish| !finish.is_empty()) {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    /// Words are a text, or a list of parts.
    fn content(&mut self, content: &Value) -> Result<(), Problem> {
        match content {
            Value::String(text) => self.draft.say(text),
            Value::Array(parts) => parts.iter().try_for_each(|part| match part["type"].as_str() {
                Some("thinking") => {
                    let thoughts = part["thinking"].as_array().into_iter().flatten();
                    thoughts.filter_map(|thought| thought["text"].as_str()).for_each(|text| self.draft.think(text));
                    Ok(())
                }
                _ => self.draft.say(part["text"].as_str().unwrap_or_default()),
            }),
            _ => Ok(()),
        }
    }

    fn call(&mut self, position: u64, call: &Value) -> Result<(), Problem> {
        let id = call["id"].as_str().unwrap_or_default();
        let name = call["function"]["name"].as_str().unwrap_or_default();
        let arguments = match &call["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let index = call["index"].as_u64();
        let place = match self.place(index, position, id, name) {
            Some(place) => place,
            None => self.draft.open_call(index.unwrap_or(position), id, name)?,
        };
        if !name.is_empty() {
            self.draft.name_call(place, name)?;
        }
        // A whole call that is sent once more says nothing new.
        let is_repeated = !name.is_empty() && self.draft.calls()[place].arguments == arguments;
        if is_repeated && self.draft.calls()[place].is_whole() {
            return Ok(());
        }
        self.draft.argue(place, &arguments)
    }

    /// Which of the calls a piece belongs to; `None` for a new one.
    fn place(&self, index: Option<u64>, position: u64, id: &str, name: &str) -> Option<usize> {
        let calls = self.draft.calls();
        let by_id = || calls.iter().rposition(|call| !id.is_empty() && call.given_id == id);
        let place = match index {
            Some(index) => self.draft.place_of(index),
            // Without a number the id tells, else the place in the list, else it goes on with the last one.
            None if !id.is_empty() => by_id(),
            None if !name.is_empty() => self.draft.place_of(position),
            None => calls.len().checked_sub(1),
        }?;
        let call = &calls[place];
        // Some servers give all calls one number: a name under another id, or after whole arguments, is a new call.
        // Others give each piece of one call a new id, but name it only once.
        let is_named_again = !name.is_empty() && call.has_name();
        let has_other_id = !id.is_empty() && !call.given_id.is_empty() && call.given_id != id;
        let is_same_id = !id.is_empty() && call.given_id == id;
        let is_new = is_named_again && (has_other_id || (call.is_whole() && !is_same_id));
        (!is_new).then_some(place)
    }

    fn usage(&mut self, usage: &Value) {
        let of = |name: &str| usage[name].as_u64();
        if let (Some(input), Some(output)) = (of("prompt_tokens"), of("completion_tokens").or(Some(0))) {
            self.draft.usage = Usage::request(input, output);
        }
    }
}

impl Assemble for ChatStream {
    fn frame(&mut self, kind: &str, data: Value) -> Result<(), Problem> {
        if kind == "error" { Err(problem::told(&data)) } else { self.chunk(&data) }
    }

    fn document(&mut self, body: Value) -> Result<(), Problem> {
        if !body["choices"].is_array() {
            return Err(Problem::Unreadable { what: "the answer has no choices".to_owned() });
        }
        self.chunk(&body)?;
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

    fn finish(self) -> Result<ModelReply, Problem> {
        let ending = match self.finish.as_deref() {
            None if !self.is_done => return Err(Problem::CutShort),
            Some("length") => Ending::OutOfTokens,
            Some(reason @ "content_filter") => Ending::Withheld(reason.to_owned()),
            _ => Ending::Usual,
        };
        self.draft.finish(&ending)
    }
}
