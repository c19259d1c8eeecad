//! `builtin/…`: tools that come with holdpoint, and their `config`.

use super::command::{environment, working_directory};
use super::model::seconds;
use super::texts;
use crate::agent::{ApplyPatchConfig, BuiltinTool, HttpRequestConfig, ShellConfig};
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::limits::TOOL_OUTPUT_BYTES_MAX;
use crate::policy::Glob;
use crate::yaml::{Fields, Item, Reader, one_of};

pub(super) const NAMES: [&str; 4] = ["ask_user_question", "shell", "apply_patch", "http_request"];
/// Tools of SuperAgent that are not here.
const OTHERS: [&str; 2] = ["web_search", "code_execute"];

pub(super) fn read(reader: &Reader<'_>, fields: &Fields<'_>, item: &Item<'_, &str>, name: &str) -> Option<BuiltinTool> {
    match name {
        "ask_user_question" => {
            fields.unsupported("config", "`builtin/ask_user_question` has no `config`", "leave it out");
            let hint = "the question itself waits for a person";
            fields.unsupported("approval", "a question to a person needs no `approval`", hint);
            Some(BuiltinTool::AskUserQuestion)
        }
        "shell" => {
            Some(BuiltinTool::Shell(fields.mapping("config").map(|config| shell(reader, config)).unwrap_or_default()))
        }
        "apply_patch" => Some(BuiltinTool::ApplyPatch(
            fields.mapping("config").map(|config| patch(reader, config)).unwrap_or_default(),
        )),
        "http_request" => Some(BuiltinTool::HttpRequest(
            fields.mapping("config").map(|config| request(reader, config)).unwrap_or_default(),
        )),
        other => {
            fields.get("config");
            let (code, message) = match OTHERS.contains(&other) {
                true => (Code::Unsupported, format!("the built-in tool {} is not supported", quoted(other))),
                false => (Code::UnknownTool, format!("there is no built-in tool {}", quoted(other))),
            };
            let hint = did_you_mean(other, NAMES).unwrap_or_else(|| format!("there are {}", one_of(&NAMES)));
            reader.error_with_hint(item.span(), code, message, hint.replace(" or ", " and "));
            None
        }
    }
}

fn shell(reader: &Reader<'_>, config: Fields<'_>) -> ShellConfig {
    let read = ShellConfig {
        timeout: seconds(&config, "timeout_seconds"),
        output_bytes_max: output_bytes_max(&config, "output_bytes_max"),
        working_directory: working_directory(reader, &config),
        env: environment(reader, &config),
    };
    config.finish();
    read
}

fn patch(reader: &Reader<'_>, config: Fields<'_>) -> ApplyPatchConfig {
    let read = ApplyPatchConfig {
        working_directory: working_directory(reader, &config),
        file_bytes_max: output_bytes_max(&config, "file_bytes_max"),
    };
    config.finish();
    read
}

fn request(reader: &Reader<'_>, config: Fields<'_>) -> HttpRequestConfig {
    let mut allowed_hosts = Vec::new();
    for item in config.texts("allowed_hosts", 200) {
        let host = texts::plain(reader, &item);
        let is_host = !host.contains(['/', ':', '@', ' ']) && host.parse::<Glob>().is_ok();
        if !is_host {
            let message = format!("{} is not a host", quoted(&host));
            reader.error_with_hint(item.span(), Code::BadValue, message, "write a host such as `*.example.com`");
        }
        allowed_hosts.push(host.to_ascii_lowercase());
    }
    let read = HttpRequestConfig {
        timeout: seconds(&config, "timeout_seconds"),
        output_bytes_max: output_bytes_max(&config, "output_bytes_max"),
        allowed_hosts,
        allow_private: config.boolean("allow_private").is_some_and(|item| item.value),
    };
    config.finish();
    read
}

pub(super) fn output_bytes_max(fields: &Fields<'_>, key: &'static str) -> Option<u64> {
    fields.integer(key, 1..=TOOL_OUTPUT_BYTES_MAX).and_then(|item| u64::try_from(item.value).ok())
}
