//! The history, folded from the facts that the stream tells: run by run, each run's messages together.

use std::collections::BTreeMap;

use super::super::projection::Fact;
use super::super::wire::events::{self, BlockDelta, Body, Event, StopReason, Token};
use super::message::{Block, DisplayType, Message, MessageType, Role, Status, Text, Thinking, ToolCall};
use super::request;

/// A history as far as it was told.
#[derive(Default)]
pub(super) struct History {
    /// In the order in which the runs began.
    sections: Vec<Section>,
    places: BTreeMap<String, usize>,
}

/// The messages of one run.
#[derive(Default)]
struct Section {
    messages: Vec<Message>,
    /// The group that is open.
    group: Option<Group>,
    /// What somebody said while a group was open; it follows the group.
    said: Vec<Message>,
    /// Where each request stands.
    requests: BTreeMap<String, usize>,
}

/// A group that is open: where it begins, and what it is.
struct Group {
    first: usize,
    summary: String,
}

impl History {
    /// Takes a fact, in its order.
    pub(super) fn take(&mut self, fact: Fact) {
        let Some(message_id) = fact.message_id() else { return };
        let place = *self.places.entry(message_id.to_owned()).or_insert(self.sections.len());
        if place == self.sections.len() {
            self.sections.push(Section::default());
        }
        self.sections[place].take(fact);
    }

    /// The last messages, and at most so many: the oldest runs are left out, each as a whole.
    pub(super) fn into_messages(self, messages_max: usize) -> Vec<Message> {
        let mut room = messages_max;
        let mut kept: Vec<Vec<Message>> = Vec::new();
        for messages in self.sections.into_iter().rev().map(Section::into_messages) {
            match room.checked_sub(messages.len()) {
                Some(rest) => room = rest,
                // A page that shows nothing at all would be worse than a long one.
                None if kept.is_empty() => room = 0,
                None => break,
            }
            kept.push(messages);
        }
        kept.into_iter().rev().flatten().collect()
    }
}

impl Section {
    fn take(&mut self, fact: Fact) {
        match fact {
            Fact::Said { text, .. } => self.heard(text),
            Fact::One(event) => self.event(event.body),
            Fact::Block { start, delta, .. } => self.block(start, delta),
            Fact::End { stop, .. } => {
                if let Body::MessageStop { stop_reason: StopReason::EndTurn, .. } = stop.body {
                    self.mark_final();
                }
            }
        }
    }

    fn heard(&mut self, text: String) {
        let content = vec![Block::Text(Text { text, is_final: false, subagent: None })];
        let message = Message { content: Some(content), message_type: None, ..message(Role::User) };
        match self.group {
            Some(_) => self.said.push(message),
            None => self.messages.push(message),
        }
    }

    fn event(&mut self, body: Body) {
        match body {
            Body::GroupStart { summary, .. } => self.group = Some(Group { first: self.messages.len(), summary }),
            Body::GroupEnd { summary, .. } => self.close_group(summary),
            Body::ApprovalResolved { approval_key, outcome, answers, .. } => {
                if let Some(request) = self.request(&approval_key) {
                    request::resolve(request, outcome, answers);
                }
            }
            _ => {}
        }
    }

    fn block(&mut self, start: Event, delta: Option<Event>) {
        let Body::ContentBlockStart { content_block, .. } = start.body else { return };
        let delta = delta.and_then(|event| match event.body {
            Body::ContentBlockDelta { delta, .. } => Some(delta),
            _ => None,
        });
        match (content_block, delta) {
            (events::Block::Text { subagent, .. }, Some(BlockDelta::Token(Token::Text { text }))) => {
                let subagent = subagent.as_ref().map(request::value);
                self.say(Block::Text(Text { text, is_final: false, subagent }));
            }
            (events::Block::Thinking { subagent, .. }, Some(BlockDelta::Token(Token::Thinking { thinking }))) => {
                let subagent = subagent.as_ref().map(request::value);
                self.say(Block::Thinking(Thinking { thinking, subagent }));
            }
            (events::Block::ToolUse { id, name, tool_content_message, .. }, _) => {
                self.call(ToolCall { id, name, tool_content_message });
            }
            (events::Block::ToolResult { tool_use_id, name, status, .. }, _) => self.push(Message {
                content: None,
                message_type: None,
                tool_call_id: Some(tool_use_id),
                name: Some(name),
                status: Some(status_of(status)),
                ..message(Role::Tool)
            }),
            (events::Block::ApprovalRequest(asked), delta) => {
                self.requests.insert(asked.approval_key.clone(), self.messages.len());
                self.say(Block::ApprovalRequest(Box::new(request::asked(*asked, delta))));
            }
            (events::Block::ApprovalResult { approval_key, .. }, Some(BlockDelta::Decisions { decisions })) => {
                if let Some(request) = self.request(&approval_key) {
                    request.submitted_decisions = Some(request::value(&decisions));
                }
            }
            // That nobody decided in time stands in the request.
            _ => {}
        }
    }

    /// Calls of one reply stand in one message, as long as nothing comes in between.
    fn call(&mut self, call: ToolCall) {
        let is_of_group = self.group.as_ref().is_none_or(|group| group.first < self.messages.len());
        match self.messages.last_mut().filter(|last| !last.tool_calls.is_empty() && is_of_group) {
            Some(last) => last.tool_calls.push(call),
            None => self.push(Message { tool_calls: vec![call], ..message(Role::Assistant) }),
        }
    }

    fn say(&mut self, block: Block) {
        self.push(Message { content: Some(vec![block]), ..message(Role::Assistant) });
    }

    fn push(&mut self, message: Message) {
        let display_type = if self.group.is_some() { DisplayType::GroupItem } else { DisplayType::Content };
        self.messages.push(Message { display_type, ..message });
    }

    fn close_group(&mut self, summary: String) {
        let Some(group) = self.group.take() else { return };
        if self.messages.len() == group.first + 1 {
            // One message cannot be both the first and the last of its group.
            self.messages.push(message(Role::Assistant));
        }
        if let Some(last) = self.messages.get_mut(group.first..).and_then(|messages| messages.last_mut()) {
            last.display_type = DisplayType::GroupEnd;
            last.summary = Some(summary.clone());
        }
        self.begin_group(group.first, summary);
        self.messages.append(&mut self.said);
    }

    fn begin_group(&mut self, first: usize, summary: String) {
        if let Some(first) = self.messages.get_mut(first) {
            first.display_type = DisplayType::GroupStart;
            first.summary = Some(summary);
        }
    }

    fn request(&mut self, key: &str) -> Option<&mut super::message::Request> {
        let place = *self.requests.get(key)?;
        self.messages.get_mut(place)?.content.iter_mut().flatten().find_map(|block| match block {
            Block::ApprovalRequest(request) => Some(&mut **request),
            Block::Text(_) | Block::Thinking(_) => None,
        })
    }

    /// The run's last words are its final ones.
    fn mark_final(&mut self) {
        let assistant = self.messages.iter_mut().rev().find(|message| message.role == Role::Assistant);
        let Some(message) = assistant else { return };
        if let Some(Block::Text(text)) = message.content.iter_mut().flatten().next_back()
            && text.subagent.is_none()
        {
            text.is_final = true;
            message.message_type = None;
        }
    }

    fn into_messages(mut self) -> Vec<Message> {
        // A group in which work is under way has begun and has not ended.
        if let Some(Group { first, summary }) = self.group.take() {
            let mut calls = self.messages.iter().skip(first).flat_map(|message| &message.tool_calls);
            let named = Some(summary).filter(|summary| !summary.is_empty());
            let summary = named.or_else(|| calls.find_map(|call| call.tool_content_message.clone()));
            self.begin_group(first, summary.unwrap_or_default());
        }
        self.messages.append(&mut self.said);
        self.messages
    }
}

/// A message of somebody, with nothing in it.
fn message(role: Role) -> Message {
    Message {
        role,
        message_type: Some(MessageType::Step),
        content: Some(Vec::new()),
        tool_calls: Vec::new(),
        tool_call_id: None,
        name: None,
        status: None,
        display_type: DisplayType::Content,
        summary: None,
    }
}

fn status_of(status: events::ResultStatus) -> Status {
    match status {
        events::ResultStatus::Success => Status::Success,
        events::ResultStatus::Error => Status::Error,
        events::ResultStatus::Rejected => Status::Rejected,
        events::ResultStatus::Timeout => Status::Timeout,
    }
}
