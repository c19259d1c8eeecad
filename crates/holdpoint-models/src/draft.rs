//! The reply while it arrives: words and calls are added piece by piece and told as they come. Whatever protocol they
//! come in, this is where ids are made unique, names are turned back into ours, and sizes are bounded.

use std::collections::HashSet;

use holdpoint_core::message::{Item, Usage};
use holdpoint_core::run::limits;
use holdpoint_runtime::ports::model::{Delta, ModelReply, ModelRequest, ProposedCall};

use crate::names::Names;
use crate::problem::Problem;

/// A reply in the making.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    names: Names,
    ids: CallIds,
    text: Option<String>,
    calls: Vec<DraftCall>,
    bytes: usize,
    /// What it cost so far.
    pub(crate) usage: Usage,
    told: Vec<Delta>,
}

/// A call in the making.
#[derive(Debug, Clone)]
pub(crate) struct DraftCall {
    /// The provider's own mark of it: a place in its list.
    pub(crate) mark: u64,
    /// The provider's id, where it gave one.
    pub(crate) given_id: String,
    id: String,
    tool: String,
    pub(crate) arguments: String,
}

impl DraftCall {
    pub(crate) fn has_name(&self) -> bool {
        !self.tool.is_empty()
    }

    /// Whether the arguments are one whole JSON object.
    pub(crate) fn is_whole(&self) -> bool {
        is_object(&self.arguments)
    }
}

/// Whether a text is one whole JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
}

impl Draft {
    /// The beginning of a reply to this request.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            names: Names::new(&request.tools, &request.items),
            ids: CallIds::new(request),
            text: None,
            calls: Vec::new(),
            bytes: 0,
            usage: Usage::request(0, 0),
            told: Vec::new(),
        }
    }

    /// More words.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Problem> {
        if text.is_empty() {
            return Ok(());
        }
        self.grow(text.len())?;
        self.text.get_or_insert_default().push_str(text);
        self.told.push(Delta::Text(text.to_owned()));
        Ok(())
    }

    /// More thoughts, which are told and not kept.
    pub(crate) fn think(&mut self, text: &str) {
        if !text.is_empty() {
            self.told.push(Delta::Thinking(text.to_owned()));
        }
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> &[DraftCall] {
        &self.calls
    }

    /// One more call; gives its place.
    pub(crate) fn open_call(&mut self, mark: u64, given_id: &str, name: &str) -> Result<usize, Problem> {
        if self.calls.len() >= limits::CALLS_PER_REPLY_MAX {
            return Err(Problem::TooManyCalls { calls_max: limits::CALLS_PER_REPLY_MAX });
        }
        let id = self.ids.claim(given_id);
        self.grow(id.len() + name.len())?;
        let tool = self.names.ours(name).to_owned();
        self.calls.push(DraftCall { mark, given_id: given_id.to_owned(), id, tool, arguments: String::new() });
        Ok(self.calls.len() - 1)
    }

    /// The name of a call that was opened without one.
    pub(crate) fn name_call(&mut self, place: usize, name: &str) -> Result<(), Problem> {
        self.grow(name.len())?;
        let tool = self.names.ours(name).to_owned();
        if let Some(call) = self.calls.get_mut(place).filter(|call| !call.has_name()) {
            call.tool = tool;
        }
        Ok(())
    }

    /// More of a call's arguments.
    pub(crate) fn argue(&mut self, place: usize, text: &str) -> Result<(), Problem> {
        if text.is_empty() {
            return Ok(());
        }
        self.grow(text.len())?;
        if let Some(call) = self.calls.get_mut(place) {
            call.arguments.push_str(text);
            let (id, tool) = (call.id.clone(), call.tool.clone());
            self.told.push(Delta::Arguments { id, tool, text: text.to_owned() });
        }
        Ok(())
    }

    /// A call's arguments as the provider gives them once more, whole: what is missing is added, what differs is set
    /// right. What was told stays told; only the whole reply counts.
    pub(crate) fn settle_arguments(&mut self, place: usize, whole: &str) -> Result<(), Problem> {
        let Some(call) = self.calls.get_mut(place).filter(|_| !whole.is_empty()) else { return Ok(()) };
        match whole.strip_prefix(call.arguments.as_str()) {
            Some(rest) => {
                let rest = rest.to_owned();
                self.argue(place, &rest)
            }
            None => {
                call.arguments = whole.to_owned();
                self.grow(whole.len())
            }
        }
    }

    /// The last call with this mark.
    pub(crate) fn place_of(&self, mark: u64) -> Option<usize> {
        self.calls.iter().rposition(|call| call.mark == mark)
    }

    /// The id that we know a call by.
    pub(crate) fn call_id(&self, place: usize) -> Option<&str> {
        self.calls.get(place).map(|call| call.id.as_str())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        self.bytes += bytes;
        let bytes_max = limits::REPLY_BYTES_MAX;
        if self.bytes > bytes_max { Err(Problem::ReplyTooLarge { bytes_max }) } else { Ok(()) }
    }

    /// What is new since this was asked last.
    pub(crate) fn take_told(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.told)
    }

    /// The whole reply, if it is one in spite of how it ended.
    pub(crate) fn finish(self, ending: &Ending) -> Result<ModelReply, Problem> {
        let is_cut_in_call = self.calls.last().is_some_and(|call| !call.is_whole());
        match ending {
            Ending::Usual => {}
            // A call without arguments and one that was cut before them look alike: neither may run.
            Ending::OutOfTokens if is_cut_in_call => return Err(Problem::OutOfTokens),
            Ending::OutOfTokens => tracing::warn!("the model reached its limit of tokens; its words are cut"),
            Ending::Withheld(reason) if is_cut_in_call || (self.text.is_none() && self.calls.is_empty()) => {
                return Err(Problem::Withheld { reason: reason.clone() });
            }
            Ending::Withheld(_) => tracing::warn!("the provider withheld a part of the reply"),
        }
        let calls = self.calls.into_iter();
        let calls =
            calls.map(|call| ProposedCall { id: call.id, tool: call.tool, arguments: call.arguments }).collect();
        Ok(ModelReply { text: self.text, calls, usage: self.usage })
    }
}

/// How a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The model had said all.
    Usual,
    /// At the limit of tokens.
    OutOfTokens,
    /// By the provider, for this reason.
    Withheld(String),
}

/// The ids of calls: the provider's own, unless it is empty, oddly made, or already stands for another call of the
/// conversation. Servers that count from zero in each reply are common.
#[derive(Debug, Clone)]
struct CallIds {
    taken: HashSet<String>,
    prefix: String,
    made: u32,
}

impl CallIds {
    fn new(request: &ModelRequest) -> Self {
        let ids = request.items.iter().flat_map(|item| match &**item {
            Item::Assistant { calls, .. } => calls.iter().map(|call| call.call_id.clone()).collect(),
            _ => Vec::new(),
        });
        // Made from the call's place, so that no two are alike, in this run or another of the session.
        let place = request.frame.call(request.turn, 0).to_string();
        let place = place.rsplit_once('.').map_or(place.as_str(), |(place, _)| place).replace(['.', '/'], "_");
        let run = request.run.to_string();
        let tail = run.get(run.len().saturating_sub(8)..).unwrap_or_default();
        Self { taken: ids.collect(), prefix: format!("call_{tail}_{place}"), made: 0 }
    }

    fn claim(&mut self, given: &str) -> String {
        let fits =
            (1..=limits::CALL_ID_BYTES_MAX).contains(&given.len()) && given.bytes().all(|b| b.is_ascii_graphic());
        let mut id = given.to_owned();
        while !fits || self.taken.contains(&id) {
            id = format!("{}_{}", self.prefix, self.made);
            self.made += 1;
            if !self.taken.contains(&id) {
                break;
            }
        }
        self.taken.insert(id.clone());
        id
    }
}
