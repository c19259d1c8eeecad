//! `command`: a program of the operator.

use std::collections::BTreeMap;

use super::builtin::output_bytes_max;
use super::model::seconds;
use super::tool::tool_name;
use super::{schema, texts};
use crate::agent::CommandTool;
use crate::diagnostic::{Code, quoted};
use crate::template::{Template, is_variable_name};
use crate::yaml::{Fields, Node, Reader, Value, text};

const ARGV_MAX: usize = 256;
const VARIABLES_MAX: usize = 100;

pub(super) fn read(reader: &Reader<'_>, tool: &Fields<'_>, node: &Node) -> Option<CommandTool> {
    let name = tool.required_text("name").and_then(|item| tool_name(reader, &item));
    let description = tool.required_text("description").map(|item| texts::plain(reader, &item));
    let parameters = schema::parameters(reader, tool);
    if let Value::Text(line) = &node.value {
        let words: Vec<String> = line.split_whitespace().take(8).map(|word| format!("{word:?}")).collect();
        let hint = format!("no shell reads it: write `command: {{ argv: [{}] }}`", words.join(", "));
        reader.error_with_hint(node.span, Code::WrongType, "`command` must be a mapping and is text", hint);
        return None;
    }
    let fields = reader.fields(node, "`command`")?;
    let argv = argv(reader, &fields);
    let working_directory = working_directory(reader, &fields);
    let env = environment(reader, &fields);
    let timeout = seconds(&fields, "timeout_seconds");
    let output_bytes_max = output_bytes_max(&fields, "output_bytes_max");
    fields.finish();
    Some(CommandTool {
        name: name?,
        description: description?,
        parameters: parameters?,
        argv: argv?,
        working_directory,
        env,
        timeout,
        output_bytes_max,
    })
}

fn argv(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<Vec<Template>> {
    fields.required("argv")?;
    let list = fields.list("argv", ARGV_MAX)?;
    let items: Vec<_> = list.value.iter().filter_map(|item| text(reader, item, "an item of `argv`")).collect();
    let is_empty = items.first().is_none_or(|item| item.value.trim().is_empty());
    if is_empty && items.len() == list.value.len() {
        let hint = "name the program first, such as `[\"./deploy.sh\"]`";
        reader.error_with_hint(list.span(), Code::BadValue, "`argv` is empty", hint);
        return None;
    }
    let templates: Vec<Template> = items.iter().filter_map(|item| texts::template(reader, item)).collect();
    if let Some(nul) = items.iter().find(|item| item.value.contains('\0')) {
        reader.error(nul.span(), Code::BadValue, "an argument of a program cannot have a NUL in it");
    }
    (templates.len() == list.value.len()).then_some(templates)
}

pub(super) fn working_directory(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<String> {
    let item = fields.text("working_directory")?;
    texts::refuse_names(reader, item.node);
    if item.value.trim().is_empty() || item.value.contains('\0') {
        reader.error(item.span(), Code::BadValue, "`working_directory` is not a folder");
        return None;
    }
    Some(item.value.to_owned())
}

pub(super) fn environment(reader: &Reader<'_>, fields: &Fields<'_>) -> BTreeMap<String, Template> {
    let mut variables = BTreeMap::new();
    for entry in fields.entries("env", VARIABLES_MAX) {
        if !is_variable_name(&entry.key) {
            let message = format!("{} is not the name of an environment variable", quoted(&entry.key));
            reader.error_with_hint(entry.key_span, Code::BadName, message, "use letters, digits and `_`");
            continue;
        }
        let Some(item) = text(reader, &entry.value, "an environment variable") else { continue };
        let Some(template) = texts::template(reader, &item) else { continue };
        texts::refuse_written_secret(reader, &entry.key, &template, item.span());
        variables.insert(entry.key.clone(), template);
    }
    variables
}
