//! A channel of Slack, the app that writes there, and who may click.

use holdpoint_core::ids::ActorId;
use secrecy::SecretString;

use super::secret;
use crate::diagnostic::{Code, quoted};
use crate::limits::PEOPLE_MAX;
use crate::server::access::Role;
use crate::server::guard;
use crate::server::read::is_web_address;
use crate::yaml::{Fields, Node, Reader};

/// A channel of Slack.
#[derive(Debug, Clone)]
pub struct SlackTarget {
    /// The channel's id, such as `C0123456789`.
    pub channel: String,
    /// The token with which the app writes.
    pub bot_token: SecretString,
    /// The key with which Slack signs what people click.
    pub signing_secret: SecretString,
    /// The app's id; clicks of another app are refused where it is given.
    pub app_id: Option<String>,
    /// Who may click; nobody else may.
    pub people: Vec<SlackPerson>,
    /// Where Slack's Web API is.
    pub base_url: String,
}

/// Somebody who may click, and as whom they decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackPerson {
    /// The workspace's id, such as `T0123456789`.
    pub team: String,
    /// The user's id, such as `U0123456789`.
    pub user: String,
    /// Who decides, as it is recorded.
    pub principal: ActorId,
    /// What they may do.
    pub roles: Vec<Role>,
    /// Groups of theirs, which rules name as approvers.
    pub groups: Vec<String>,
}

/// Where Slack's Web API is.
const BASE_URL: &str = "https://slack.com/api";

pub(super) fn read(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<SlackTarget> {
    let channel = id(reader, fields, "channel", "CGD");
    let is_token = |text: &str| (16..=512).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    let bot_token = secret(reader, fields, "bot_token", is_token, "it begins with `xoxb-`; see the app's OAuth page");
    let is_key = |text: &str| (16..=512).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    let signing_secret = secret(reader, fields, "signing_secret", is_key, "see the app's page Basic Information");
    let app_id = match fields.key_span("app_id") {
        Some(_) => Some(id(reader, fields, "app_id", "A")),
        None => {
            // Asked for, so that it is known as a field.
            fields.get("app_id");
            None
        }
    };
    let people = people(reader, fields);
    let base_url = base_url(reader, fields);
    Some(SlackTarget {
        channel: channel?,
        bot_token: bot_token?,
        signing_secret: signing_secret?,
        app_id: match app_id {
            Some(given) => Some(given?),
            None => None,
        },
        people: people?,
        base_url: base_url?,
    })
}

/// One of Slack's ids: a letter that says of what, then capitals and digits.
fn id(reader: &Reader<'_>, fields: &Fields<'_>, key: &'static str, first: &str) -> Option<String> {
    let item = fields.required_text(key)?;
    let is_inner = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    let fits = (2..=32).contains(&item.value.len()) && item.value.starts_with(|c| first.contains(c));
    if !fits || !item.value.chars().all(is_inner) {
        let example = first.chars().next().unwrap_or_default();
        let message = format!("`{key}` cannot be {}", quoted(item.value));
        let hint = format!("write Slack's id of it, such as `{example}0123456789`, not its name");
        reader.error_with_hint(item.span(), Code::BadValue, message, hint);
        return None;
    }
    Some(item.value.to_owned())
}

fn people(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<Vec<SlackPerson>> {
    let Some(list) = fields.list("people", PEOPLE_MAX).filter(|list| !list.value.is_empty()) else {
        if fields.key_span("people").is_none() {
            let hint = "add `people` with the workspace, the user, and as whom they decide";
            reader.error_with_hint(fields.span, Code::MissingField, "nobody could click: `people` is missing", hint);
        } else if let Some(span) = fields.key_span("people") {
            reader.error(span, Code::BadValue, "nobody could click: `people` names nobody");
        }
        return None;
    };
    let mut people: Vec<SlackPerson> = Vec::new();
    let mut is_right = true;
    for node in list.value {
        let Some(person) = person(reader, node) else {
            is_right = false;
            continue;
        };
        if people.iter().any(|other| (&other.team, &other.user) == (&person.team, &person.user)) {
            reader.error(
                node.span,
                Code::Conflict,
                format!("user {} of {} stands here twice", person.user, person.team),
            );
        } else {
            people.push(person);
        }
    }
    is_right.then_some(people)
}

fn person(reader: &Reader<'_>, node: &Node) -> Option<SlackPerson> {
    let fields = reader.fields(node, "a person")?;
    let team = id(reader, &fields, "team", "TE");
    let user = id(reader, &fields, "user", "UW");
    let principal = principal(reader, &fields);
    let roles = guard::roles(reader, &fields, "a person");
    let groups = fields.texts("groups", 64).iter().map(|item| item.value.to_owned()).collect();
    fields.finish();
    Some(SlackPerson { team: team?, user: user?, principal: principal?, roles: roles?, groups })
}

fn principal(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<ActorId> {
    let item = fields.required_text("principal")?;
    // Decisions under these names were not made by a person who was told apart from others.
    let is_free = !["local", "timeout", "policy"].contains(&item.value);
    let principal = ActorId::new(item.value).ok().filter(|_| is_free);
    if principal.is_none() {
        let message = format!("nobody can decide as {}", quoted(item.value));
        let hint = "write the name that they have elsewhere too, such as `ana@example.com`";
        reader.error_with_hint(item.span(), Code::BadName, message, hint);
    }
    principal
}

fn base_url(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<String> {
    let Some(item) = fields.text("base_url") else { return Some(BASE_URL.to_owned()) };
    let address = item.value.trim_end_matches('/');
    if !is_web_address(address) || !guard::is_safe(address) {
        let hint = "leave it out, unless Slack is played by another server; it must start with https://";
        reader.error_with_hint(item.span(), Code::BadUrl, "`base_url` is not an address to send a token to", hint);
        return None;
    }
    Some(address.to_owned())
}
