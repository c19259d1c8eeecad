//! The server's file, laid out by the table of settings.

use std::collections::BTreeMap;

use secrecy::SecretString;

use super::layers::{Origin, Raw};
use super::settings::{SETTINGS, Setting, SettingKind};
use crate::agent::read::texts;
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::yaml::{Item, Node, Reader, Value};

/// Keys whose values have a shape of their own, and which only the file has.
pub(super) const STRUCTURES: [&str; 6] = [
    "access.api_keys",
    "access.jwt.roles",
    "access.jwt.algorithms",
    "access.jwt.leeway_seconds",
    "mcp_servers",
    "notifications",
];
/// Keys that say what the file is.
const HEADER: [&str; 2] = ["apiVersion", "kind"];

/// The values of a file: those of the table, and the structures.
#[derive(Default)]
pub(super) struct FileValues<'n> {
    pub raw: BTreeMap<&'static str, Raw>,
    pub structures: BTreeMap<&'static str, &'n Node>,
}

pub(super) fn values<'n>(reader: &Reader<'_>, root: &'n Node) -> FileValues<'n> {
    let mut values = FileValues::default();
    group(reader, root, "", &mut values);
    values
}

fn group<'n>(reader: &Reader<'_>, node: &'n Node, prefix: &str, values: &mut FileValues<'n>) {
    let what = if prefix.is_empty() { "the server's file".to_owned() } else { format!("`{prefix}`") };
    let Value::Mapping(entries) = &node.value else {
        let message = format!("{what} must be a mapping and is {}", node.kind());
        reader.error(node.span, Code::WrongType, message);
        return;
    };
    let keys = || SETTINGS.iter().map(|setting| setting.key).chain(STRUCTURES).chain(HEADER);
    for entry in entries {
        let key = if prefix.is_empty() { entry.key.clone() } else { format!("{prefix}.{}", entry.key) };
        let inside = format!("{key}.");
        if matches!(entry.value.value, Value::Null) && keys().any(|known| known == key || known.starts_with(&inside)) {
            continue;
        }
        if HEADER.contains(&key.as_str()) {
            continue;
        }
        if let Some(structure) = STRUCTURES.into_iter().find(|structure| *structure == key) {
            values.structures.insert(structure, &entry.value);
        } else if let Some(setting) = Setting::by_key(&key) {
            if let Some(raw) = raw(reader, setting, &entry.value) {
                values.raw.insert(setting.key, raw);
            }
        } else if keys().any(|known| known.starts_with(&inside)) {
            group(reader, &entry.value, &key, values);
        } else {
            let start = if prefix.is_empty() { String::new() } else { format!("{prefix}.") };
            let mut names: Vec<&str> = Vec::new();
            for name in keys().filter_map(|known| known.strip_prefix(&start)?.split('.').next()) {
                if !name.is_empty() && !names.contains(&name) {
                    names.push(name);
                }
            }
            let hint = did_you_mean(&entry.key, names.iter().copied());
            let hint = hint.unwrap_or_else(|| format!("the fields are {}", names.join(", ")));
            let message = format!("{what} has no field {}", quoted(&entry.key));
            reader.error_with_hint(entry.key_span, Code::UnknownField, message, hint);
        }
    }
}

/// A value as text, with `${NAME}` replaced: the server's settings are not stored.
fn raw(reader: &Reader<'_>, setting: &Setting, node: &Node) -> Option<Raw> {
    let origin = Origin::File(node.span);
    let one = |text: String| Raw { texts: vec![SecretString::from(text)], origin: origin.clone() };
    match (&node.value, setting.kind) {
        (Value::Text(text), kind) => {
            let template = texts::template(reader, &Item { value: text.as_str(), node })?;
            if kind == SettingKind::Secret && template.is_constant() {
                let message = format!("`{}` is written into the file", setting.key);
                let hint = "keep it in an environment variable and write `${NAME}`";
                reader.error_with_hint(node.span, Code::SecretInFile, message, hint);
            }
            Some(Raw { texts: vec![texts::today(reader, &template)?], origin })
        }
        (Value::Bool(value), SettingKind::Boolean) => Some(one(value.to_string())),
        (Value::Number(number), SettingKind::Integer { .. } | SettingKind::Number { .. }) => {
            Some(one(number.to_string()))
        }
        (Value::List(items), SettingKind::List) => {
            let read = |item: &Node| {
                let item = crate::yaml::text(reader, item, setting.key)?;
                texts::today(reader, &texts::template(reader, &item)?)
            };
            Some(Raw { texts: items.iter().filter_map(read).collect(), origin })
        }
        _ => {
            let expected = match setting.kind {
                SettingKind::Boolean => "true or false",
                SettingKind::Integer { .. } => "a whole number",
                SettingKind::Number { .. } => "a number",
                SettingKind::List => "a list",
                _ => "text",
            };
            let message = format!("`{}` must be {expected} and is {}", setting.key, node.kind());
            reader.error(node.span, Code::WrongType, message);
            None
        }
    }
}
