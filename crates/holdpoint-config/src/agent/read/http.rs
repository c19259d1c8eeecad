//! `http`: a request to an address of the operator.

use std::collections::BTreeMap;

use secrecy::ExposeSecret;
use serde_json::Value as Json;

use super::builtin::output_bytes_max;
use super::model::seconds;
use super::tool::tool_name;
use super::{schema, texts};
use crate::agent::{HttpMethod, HttpTool};
use crate::diagnostic::{Code, quoted};
use crate::template::Template;
use crate::yaml::{Fields, Item, Node, Reader, text};

const HEADERS_MAX: usize = 64;
/// Headers that the request's own parts decide.
const RESERVED: [&str; 6] =
    ["content-length", "host", "transfer-encoding", "connection", "idempotency-key", "content-type"];

pub(super) fn read(reader: &Reader<'_>, tool: &Fields<'_>, node: &Node) -> Option<HttpTool> {
    let name = tool.required_text("name").and_then(|item| tool_name(reader, &item));
    let description = tool.required_text("description").map(|item| texts::plain(reader, &item));
    let parameters = schema::parameters(reader, tool);
    let fields = reader.fields(node, "`http`")?;
    let method = fields.text("method").map_or(Some(HttpMethod::Post), |item| {
        let upper = item.value.to_ascii_uppercase();
        let found = HttpMethod::NAMES.into_iter().find(|(name, _)| *name == upper).map(|(_, method)| method);
        if found.is_none() {
            fields.bad_choice("method", &item, HttpMethod::NAMES.iter().map(|(name, _)| *name));
        }
        found
    });
    let url = fields.required_text("url").and_then(|item| url(reader, &item, parameters.as_ref()));
    let headers = headers(reader, &fields);
    let timeout = seconds(&fields, "timeout_seconds");
    let output_bytes_max = output_bytes_max(&fields, "output_bytes_max");
    fields.finish();
    Some(HttpTool {
        name: name?,
        description: description?,
        parameters: parameters?,
        method: method?,
        url: url?,
        headers,
        timeout,
        output_bytes_max,
    })
}

fn url(reader: &Reader<'_>, item: &Item<'_, &str>, parameters: Option<&Json>) -> Option<Template> {
    let template = texts::template(reader, item)?;
    if let Some(parameters) = parameters {
        schema::check_placeholders(reader, item, item.value, parameters);
    }
    let address = texts::today(reader, &template);
    if let Some((message, hint)) = address.and_then(|address| address_problem(address.expose_secret())) {
        reader.error_with_hint(item.span(), Code::BadUrl, message, hint);
    }
    Some(template)
}

/// What is wrong with an address. Its text is not repeated: there may be secrets in it.
fn address_problem(text: &str) -> Option<(&'static str, &'static str)> {
    const EXAMPLE: &str = "write an address such as `https://broker.example/orders/{id}`";
    let mut filled = text.to_owned();
    for (start, end) in schema::placeholders(text).into_iter().rev() {
        filled.replace_range(start..end, "x");
    }
    let authority = filled.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(""));
    if !filled.contains("://") {
        return Some(("`url` has no scheme", "start it with `https://`"));
    }
    let Ok(uri) = filled.parse::<http::Uri>() else {
        return Some(("`url` is not an address", EXAMPLE));
    };
    match uri.scheme_str() {
        Some("http" | "https") => {}
        _ => return Some(("`url` must start with http:// or https://", EXAMPLE)),
    }
    if uri.host().is_none_or(str::is_empty) {
        return Some(("`url` has no host", EXAMPLE));
    }
    if authority.contains('@') {
        return Some(("`url` has a user or a password in it", "send them in a header, such as `Authorization`"));
    }
    let before_path = text.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(""));
    if before_path.contains('{') {
        return Some(("an argument cannot choose the host of `url`", "arguments can stand after the host only"));
    }
    None
}

fn headers(reader: &Reader<'_>, fields: &Fields<'_>) -> BTreeMap<String, Template> {
    let mut headers = BTreeMap::new();
    for entry in fields.entries("headers", HEADERS_MAX) {
        let name = entry.key.to_ascii_lowercase();
        if name.parse::<http::HeaderName>().is_err() {
            let message = format!("{} is not the name of a header", quoted(&entry.key));
            reader.error_with_hint(entry.key_span, Code::BadHeader, message, "use letters, digits and `-`");
            continue;
        }
        if RESERVED.contains(&name.as_str()) {
            let message = format!("the header {} is set by the request itself", quoted(&entry.key));
            reader.error_with_hint(entry.key_span, Code::BadHeader, message, "leave it out");
            continue;
        }
        let Some(item) = text(reader, &entry.value, "a header") else { continue };
        let Some(template) = texts::template(reader, &item) else { continue };
        texts::refuse_written_secret(reader, &name, &template, item.span());
        if !texts::passes(reader, &template, |text| http::HeaderValue::from_str(text).is_ok()) {
            let message = format!(
                "the value of {} cannot be sent: it has a line break or a control character",
                quoted(&entry.key)
            );
            reader.error(item.span(), Code::BadHeader, message);
        }
        if headers.insert(name, template).is_some() {
            let message = format!("the header {} stands twice", quoted(&entry.key));
            reader.error(entry.key_span, Code::BadHeader, message);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_other_text() {
        for (text, expected) in [
            ("https://broker.example/orders", None),
            ("http://localhost:8080/orders/{id}?side={side}", None),
            ("http://[::1]:8080/", None),
            ("broker.example/orders", Some("`url` has no scheme")),
            ("ftp://broker.example/", Some("`url` must start with http:// or https://")),
            ("https://", Some("`url` is not an address")),
            ("https://user:word@broker.example/", Some("`url` has a user or a password in it")),
            ("https://{host}/orders", Some("an argument cannot choose the host of `url`")),
            ("https://broker.example/a b", Some("`url` is not an address")),
            ("/orders", Some("`url` has no scheme")),
        ] {
            assert_eq!(address_problem(text).map(|(message, _)| message), expected, "{text}");
        }
    }
}
