//! Where people are told of pauses: the list `notifications`. Each entry has a type, and each type a file of its own.

mod email;
mod slack;
#[cfg(test)]
mod tests;
mod webhook;

use holdpoint_core::ids::AgentId;
use holdpoint_core::pause::PauseKind;
use secrecy::{ExposeSecret, SecretString};

use crate::agent::read::texts;
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::limits::{AGENTS_MAX, NOTIFICATIONS_MAX};
use crate::yaml::{Fields, Item, Node, Reader, Value, one_of};

pub use email::EmailTarget;
pub use slack::{SlackPerson, SlackTarget};
pub use webhook::WebhookTarget;

/// A place where people are told of pauses.
#[derive(Debug, Clone)]
pub struct Notification {
    /// Its name, which no other has: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Only of pauses in runs of these agents; of all where none is named.
    pub agents: Vec<AgentId>,
    /// Only of pauses of these kinds; of all where none is named.
    pub kinds: Vec<PauseKind>,
    /// How they are told.
    pub target: NotificationTarget,
}

/// How people are told, with what that needs.
#[derive(Debug, Clone)]
pub enum NotificationTarget {
    /// A message in a channel of Slack, with buttons.
    Slack(SlackTarget),
    /// A signed request to a system of somebody's own.
    Webhook(WebhookTarget),
    /// A letter.
    Email(EmailTarget),
}

/// The types, by the name that the file gives them.
const TYPES: [&str; 3] = ["slack", "webhook", "email"];

const KINDS: [PauseKind; 4] = [PauseKind::Approval, PauseKind::Question, PauseKind::Confirmation, PauseKind::InDoubt];

pub(super) fn read_all(reader: &Reader<'_>, node: &Node) -> Vec<Notification> {
    let Value::List(items) = &node.value else {
        let message = format!("`notifications` must be a list and is {}", node.kind());
        reader.error_with_hint(node.span, Code::WrongType, message, "write one `- …` line for each");
        return Vec::new();
    };
    if items.len() > NOTIFICATIONS_MAX {
        let message = format!("there are {} notifications, at most {NOTIFICATIONS_MAX} are accepted", items.len());
        reader.error(node.span, Code::OutOfRange, message);
        return Vec::new();
    }
    let mut found: Vec<Notification> = Vec::new();
    for item in items {
        let Some(notification) = read(reader, item) else { continue };
        if found.iter().any(|other| other.name == notification.name) {
            let message = format!("two notifications are called {}", quoted(&notification.name));
            reader.error(item.span, Code::Conflict, message);
        } else {
            found.push(notification);
        }
    }
    found
}

fn read(reader: &Reader<'_>, node: &Node) -> Option<Notification> {
    let fields = reader.fields(node, "a notification")?;
    let name = name(reader, &fields);
    let agents = agents(reader, &fields);
    let kinds = kinds(reader, &fields);
    let target = fields.required_text("type").and_then(|item| match item.value {
        "slack" => slack::read(reader, &fields).map(NotificationTarget::Slack),
        "webhook" => webhook::read(reader, &fields).map(NotificationTarget::Webhook),
        "email" => email::read(reader, &fields).map(NotificationTarget::Email),
        _ => {
            fields.bad_choice("type", &item, TYPES.into_iter());
            None
        }
    });
    // Without a type that is known it cannot be told which fields are.
    if target.is_some() {
        fields.finish();
    }
    Some(Notification { name: name?, agents, kinds, target: target? })
}

/// Names a destination in the store and in addresses, so it is plain.
fn name(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<String> {
    let item = fields.required_text("name")?;
    let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
    if item.value.len() > 64 || !item.value.bytes().all(is_plain) {
        let message = format!("a notification cannot be called {}", quoted(item.value));
        let hint = "use lower-case letters, digits, `-` and `_`, 64 at most";
        reader.error_with_hint(item.span(), Code::BadName, message, hint);
        return None;
    }
    Some(item.value.to_owned())
}

fn agents(reader: &Reader<'_>, fields: &Fields<'_>) -> Vec<AgentId> {
    let read = |item: &Item<'_, &str>| {
        let agent = item.value.parse::<AgentId>().ok();
        if agent.is_none() {
            let message = format!("{} is not the name of an agent", quoted(item.value));
            reader.error(item.span(), Code::BadName, message);
        }
        agent
    };
    fields.texts("agents", AGENTS_MAX).iter().filter_map(read).collect()
}

fn kinds(reader: &Reader<'_>, fields: &Fields<'_>) -> Vec<PauseKind> {
    let names = KINDS.map(PauseKind::name);
    let read = |item: &Item<'_, &str>| {
        let kind = KINDS.into_iter().find(|kind| kind.name() == item.value);
        if kind.is_none() {
            let message = format!("there is no kind of pause called {}", quoted(item.value));
            let hint = did_you_mean(item.value, names).unwrap_or_else(|| format!("write {}", one_of(&names)));
            reader.error_with_hint(item.span(), Code::BadValue, message, hint);
        }
        kind
    };
    fields.texts("kinds", KINDS.len()).iter().filter_map(read).collect()
}

/// A secret that must be there, from the environment and never from the file itself.
fn secret(
    reader: &Reader<'_>,
    fields: &Fields<'_>,
    key: &'static str,
    is_one: impl Fn(&str) -> bool,
    hint: &str,
) -> Option<SecretString> {
    let item = fields.required_text(key)?;
    let template = texts::template(reader, &item)?;
    if template.is_constant() {
        let message = format!("`{key}` is written into the file");
        let hint = "keep it in an environment variable and write `${NAME}`";
        reader.error_with_hint(item.span(), Code::SecretInFile, message, hint);
        return None;
    }
    let value = texts::today(reader, &template)?;
    if !is_one(value.expose_secret()) {
        reader.error_with_hint(item.span(), Code::BadValue, format!("`{key}` does not look like one"), hint);
        return None;
    }
    Some(value)
}
