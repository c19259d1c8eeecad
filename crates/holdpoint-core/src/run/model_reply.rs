//! The model replied: its words, its calls. Ids that contradict each other are refused before anything runs.

use std::collections::BTreeMap;

use crate::event::{ModelReplied, ReplyRefused, RunEvent};
use crate::ids::FramePath;
use crate::input::{Confirmation, ReplyInput};
use crate::json::Digest;
use crate::message::Usage;
use crate::pause::PauseKind;
use crate::policy::PauseTerms;
use crate::refusal::{Refusal, reply};
use crate::run::hold::Ask;
use crate::run::start::check_agent;
use crate::run::{Begun, Frame, Phase, limits};
use crate::text::clamp;
use crate::tool::CallRecord;

pub(super) fn read(begun: &Begun, input: ReplyInput) -> Result<Vec<RunEvent>, Refusal> {
    let out_of_turn = || Refusal::OutOfTurn { state: begun.state_name(), input: "a model reply" };
    let frame = begun.frame(&input.frame).ok_or_else(out_of_turn)?;
    let is_awaited = frame.phase == Phase::AwaitingModel && input.turn == frame.turns + 1;
    if !is_awaited || input.admitted as usize > frame.staged.len() {
        return Err(out_of_turn());
    }
    for call in &input.calls {
        call.kind.agent().map_or(Ok(()), check_agent)?;
    }
    if let Some(problem) = too_large(&input) {
        return Ok(vec![problem.into_event(input.frame, input.usage)]);
    }
    match bind(frame, &input.frame, input.calls) {
        Ok(calls) => {
            // Words that come with calls ask nothing: the calls have gates of their own. Where too many questions are
            // open already, the words end the agent's work, as they do when nobody answers.
            let confirmation = input.asks_confirmation.filter(|_| calls.is_empty() && begun.has_room_for_pauses());
            let mut events = vec![RunEvent::ModelReplied(ModelReplied {
                frame: input.frame.clone(),
                admitted: input.admitted,
                thinking: input.thinking.filter(|text| !text.is_empty()).map(clamped),
                text: input.text,
                calls,
                usage: input.usage,
            })];
            events.extend(confirmation.map(|Confirmation { reason, expires_at }| {
                let ask = Ask { reason, expires_at, terms: PauseTerms::default() };
                let (number, kind) = (begun.next_pause_number(), PauseKind::Confirmation);
                RunEvent::PauseOpened(ask.opened(number, kind, input.frame.clone(), None))
            }));
            Ok(events)
        }
        Err(problem) => Ok(vec![problem.into_event(input.frame, input.usage)]),
    }
}

fn clamped(thinking: String) -> String {
    match clamp(&thinking, limits::THINKING_BYTES_MAX) {
        all if all.len() == thinking.len() => thinking,
        kept => kept.to_owned(),
    }
}

/// Why the whole reply is of no use.
struct Unusable {
    code: &'static str,
    message: String,
}

impl Unusable {
    fn into_event(self, frame: FramePath, usage: Usage) -> RunEvent {
        RunEvent::ReplyRefused(ReplyRefused { frame, code: self.code.to_owned(), message: self.message, usage })
    }
}

fn too_large(input: &ReplyInput) -> Option<Unusable> {
    let calls = input.calls.iter().map(|call| call.call_id.len() + call.arguments.as_str().len());
    let found = input.text.as_ref().map_or(0, String::len) + calls.sum::<usize>();
    let message = format!("a reply of {found} bytes, and at most {}", limits::REPLY_BYTES_MAX);
    (found > limits::REPLY_BYTES_MAX).then_some(Unusable { code: reply::REPLY_TOO_LARGE, message })
}

/// Ties each of the provider's ids to one tool and one set of arguments, within the agent's whole conversation.
fn bind(frame: &Frame, path: &FramePath, calls: Vec<CallRecord>) -> Result<Vec<CallRecord>, Unusable> {
    if calls.len() > limits::CALLS_PER_REPLY_MAX {
        let message = format!("{} calls in one reply, and at most {}", calls.len(), limits::CALLS_PER_REPLY_MAX);
        return Err(Unusable { code: reply::TOO_MANY_CALLS, message });
    }
    let mut bound: Vec<CallRecord> = Vec::with_capacity(calls.len());
    let mut seen: BTreeMap<String, (String, Digest)> = BTreeMap::new();
    for mut call in calls {
        if call.call_id.is_empty() || call.call_id.len() > limits::CALL_ID_BYTES_MAX {
            let message = format!("a call of {} has no id of 1 to {} bytes", call.tool, limits::CALL_ID_BYTES_MAX);
            return Err(Unusable { code: reply::CALL_ID_EMPTY, message });
        }
        let print = (call.tool.to_string(), call.arguments.digest());
        match seen.get(&call.call_id) {
            Some(earlier) if *earlier == print => continue,
            Some(_) => return Err(reused(&call, path)),
            None => {}
        }
        call.repeats = match frame.earlier(&call.call_id) {
            Some(earlier) if earlier.is_same(&call) => Some(earlier.path().clone()),
            Some(_) => return Err(reused(&call, path)),
            None => None,
        };
        seen.insert(call.call_id.clone(), print);
        bound.push(call);
    }
    Ok(bound)
}

fn reused(call: &CallRecord, path: &FramePath) -> Unusable {
    let place = if path.is_root() { "the run".to_owned() } else { format!("frame {path}") };
    Unusable {
        code: reply::CALL_ID_REUSED,
        message: format!("the id of a call of {} already stands for another call in {place}", call.tool),
    }
}
