//! `approval`: a tool's own rule.

use std::time::Duration;

use holdpoint_core::policy::OnTimeout;
use holdpoint_core::run::limits::{APPROVERS_MAX, NAME_BYTES_MAX, QUORUM_MAX};

use super::links::Links;
use super::texts;
use crate::agent::{ApprovalSpec, Deadline, Fill, HeldApproval, OnNote};
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::limits::DEADLINE_SECONDS_MAX;
use crate::yaml::{Fields, Node, Reader, Value};

const ON_TIMEOUT: [(&str, OnTimeout); 2] = [("deny", OnTimeout::Deny), ("approve", OnTimeout::Approve)];
const FILL: [(&str, Fill); 2] = [("first", Fill::First), ("none", Fill::None)];
const ON_NOTE: [(&str, OnNote); 2] = [("append", OnNote::Append), ("revise", OnNote::Revise)];

pub(super) fn read(reader: &Reader<'_>, node: &Node, links: &Links) -> Option<ApprovalSpec> {
    match &node.value {
        Value::Text(word) if word == "required" => Some(ApprovalSpec::Held(HeldApproval::default())),
        Value::Text(word) if word == "never" => Some(ApprovalSpec::Never),
        Value::Mapping(_) => held(reader, node, links).map(ApprovalSpec::Held),
        Value::Text(word) => {
            let other = "write `required`, `never` or a mapping such as `{ when: \"args.amount > 100\" }`".to_owned();
            let hint = did_you_mean(word, ["required", "never"]).unwrap_or(other);
            let message = format!("`approval` cannot be {}", quoted(word));
            reader.error_with_hint(node.span, Code::BadValue, message, hint);
            None
        }
        Value::Bool(value) => {
            let hint = if *value { "write `required`" } else { "write `never`" };
            reader.error_with_hint(node.span, Code::WrongType, "`approval` cannot be true or false", hint);
            None
        }
        _ => {
            let message = format!("`approval` must be text or a mapping and is {}", node.kind());
            reader.error_with_hint(node.span, Code::WrongType, message, "write `required`, `never` or a mapping");
            None
        }
    }
}

fn held(reader: &Reader<'_>, node: &Node, links: &Links) -> Option<HeldApproval> {
    let fields = reader.fields(node, "`approval`")?;
    let when = fields.text("when").and_then(|item| {
        let expression = texts::expression(reader, &item);
        if expression.is_none() {
            links.note_bad_expression();
        }
        expression
    });
    let message = fields.text("message").map(|item| texts::plain(reader, &item));
    let deadline = deadline(&fields);
    let on_timeout = fields.choice("on_timeout", &ON_TIMEOUT);
    let allow_unattended = fields.boolean("allow_unattended").is_some_and(|item| item.value);
    let fill = fields.choice("fill", &FILL).map(|item| item.value);
    let on_note = fields.choice("on_note", &ON_NOTE).map(|item| item.value).unwrap_or_default();
    let approvers = names_of_people(&fields);
    let quorum = quorum(&fields);
    if let Some(item) = &on_timeout
        && item.value == OnTimeout::Approve
    {
        if !allow_unattended {
            let message = "`on_timeout: approve` lets calls run that nobody looked at";
            let hint = "write `deny`, or add `allow_unattended: true` where that is meant";
            reader.error_with_hint(item.span(), Code::Unattended, message, hint);
        }
        if deadline == Deadline::Never {
            let message = "`on_timeout` has no effect where `timeout_seconds` is 0";
            reader.warning(item.span(), Code::NoEffect, message, "leave one of them out");
        }
    }
    fields.finish();
    let on_timeout = on_timeout.map(|item| item.value).unwrap_or_default();
    Some(HeldApproval { when, message, deadline, on_timeout, approvers, quorum, fill, on_note })
}

/// `timeout_seconds`: 0 for never.
pub(crate) fn deadline(fields: &Fields<'_>) -> Deadline {
    match fields.integer("timeout_seconds", 0..=DEADLINE_SECONDS_MAX).map(|item| item.value) {
        None => Deadline::Default,
        Some(seconds) => match u64::try_from(seconds) {
            Ok(0) | Err(_) => Deadline::Never,
            Ok(seconds) => Deadline::After(Duration::from_secs(seconds)),
        },
    }
}

/// `approvers`: names of actors, roles and groups.
pub(crate) fn names_of_people(fields: &Fields<'_>) -> Vec<String> {
    let items = fields.texts("approvers", APPROVERS_MAX);
    let is_name = |text: &str| !text.trim().is_empty() && text.len() <= NAME_BYTES_MAX;
    if let Some(node) = fields.get("approvers")
        && matches!(&node.value, Value::List(items) if items.is_empty())
    {
        let hint = "leave `approvers` out where everybody may decide";
        fields.reader.error_with_hint(node.span, Code::BadValue, "an empty list of approvers lets nobody decide", hint);
    }
    for item in items.iter().filter(|item| !is_name(item.value)) {
        let message = format!("the name of an approver has 1 to {NAME_BYTES_MAX} bytes");
        fields.reader.error(item.span(), Code::BadName, message);
    }
    items.iter().filter(|item| is_name(item.value)).map(|item| texts::plain(fields.reader, item)).collect()
}

/// `quorum`: how many must approve.
pub(crate) fn quorum(fields: &Fields<'_>) -> Option<u32> {
    let max = i64::try_from(QUORUM_MAX).unwrap_or(i64::MAX);
    fields.integer("quorum", 1..=max).and_then(|item| u32::try_from(item.value).ok())
}
