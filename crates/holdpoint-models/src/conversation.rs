//! The conversation in the shape that providers agree on: what a person said, and what the model said with each of its
//! calls beside what came of it. What a provider would refuse (a call without a result, a result without a call, an id
//! used twice) is mended here, once for all of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use holdpoint_core::ids::ToolName;
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::message::{AskedCall, Content, Item, Part, Source};
use serde_json::{Value, json};

/// One turn of a conversation.
#[derive(Debug, PartialEq)]
pub(crate) enum Turn<'a> {
    /// A person's words.
    User(&'a Content),
    /// The model's words, and its calls with their results.
    Assistant { text: Option<&'a str>, calls: Vec<Settled<'a>> },
    /// A result whose call is not in the conversation.
    Stray { tool: &'a ToolName, output: &'a Content },
}

/// A call and what came of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Settled<'a> {
    /// An id that the provider accepts and that no other call of the request has.
    pub(crate) id: String,
    /// The id that we know it by.
    pub(crate) call_id: &'a str,
    pub(crate) tool: &'a ToolName,
    pub(crate) arguments: &'a CanonicalJson,
    pub(crate) output: Outcome<'a>,
}

/// What came of a call.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome<'a> {
    Given {
        output: &'a Content,
        is_error: bool,
    },
    /// Nothing is known of it. Providers refuse a call without a result, so the model is told.
    Unknown,
}

/// What the model is told of a call that has no result.
pub(crate) const UNKNOWN_TEXT: &str = "The result of this call is not known.";

/// Which ids a provider accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRule {
    pub(crate) chars_max: usize,
    /// Only letters, digits, `_` and `-`.
    pub(crate) is_strict: bool,
}

/// The turns of a conversation.
pub(crate) fn turns(items: &[Arc<Item>], rule: IdRule) -> Vec<Turn<'_>> {
    let mut ids = Ids { rule, used: HashSet::new() };
    let mut turns = Vec::new();
    let mut index = 0;
    while let Some(item) = items.get(index) {
        index += 1;
        match &**item {
            Item::User(content) => turns.push(Turn::User(content)),
            Item::ToolResult { tool, output, .. } => turns.push(Turn::Stray { tool, output }),
            Item::Assistant { text, calls } => {
                // Results stand right behind their calls.
                let results = items[index..].iter().map_while(as_result);
                let results: Vec<(&str, Turn<'_>, Outcome<'_>)> = results.collect();
                index += results.len();
                let strays = settle(&mut turns, text.as_deref(), calls, results, &mut ids);
                turns.extend(strays);
            }
        }
    }
    turns
}

fn as_result(item: &Arc<Item>) -> Option<(&str, Turn<'_>, Outcome<'_>)> {
    match &**item {
        Item::ToolResult { call_id, tool, output, is_error } => {
            Some((call_id, Turn::Stray { tool, output }, Outcome::Given { output, is_error: *is_error }))
        }
        _ => None,
    }
}

/// Adds the model's turn, and gives back the results that belong to none of its calls.
fn settle<'a>(
    turns: &mut Vec<Turn<'a>>,
    text: Option<&'a str>,
    calls: &'a [AskedCall],
    results: Vec<(&'a str, Turn<'a>, Outcome<'a>)>,
    ids: &mut Ids,
) -> Vec<Turn<'a>> {
    let mut by_id: HashMap<&str, Outcome<'_>> = HashMap::new();
    let mut strays = Vec::new();
    for (call_id, stray, outcome) in results {
        let is_asked = calls.iter().any(|call| call.call_id == call_id);
        if is_asked && !by_id.contains_key(call_id) {
            by_id.insert(call_id, outcome);
        } else {
            strays.push(stray);
        }
    }
    let settled = calls.iter().map(|call| Settled {
        id: ids.unique(&call.call_id),
        call_id: &call.call_id,
        tool: &call.tool,
        arguments: &call.arguments,
        output: by_id.remove(call.call_id.as_str()).unwrap_or(Outcome::Unknown),
    });
    let calls: Vec<Settled<'_>> = settled.collect();
    let text = text.filter(|text| !text.is_empty());
    if text.is_some() || !calls.is_empty() {
        turns.push(Turn::Assistant { text, calls });
    }
    strays
}

struct Ids {
    rule: IdRule,
    used: HashSet<String>,
}

impl Ids {
    /// The id itself where the provider accepts it, otherwise one made from it: the same conversation has the same ids.
    fn unique(&mut self, id: &str) -> String {
        let mut candidate = id.to_owned();
        let mut attempt = 0_u32;
        while !self.is_accepted(&candidate) || self.used.contains(&candidate) {
            let mark = Digest::of(format!("{attempt}:{id}").as_bytes()).to_string();
            candidate = format!("call_{}", &mark[..24]);
            attempt += 1;
        }
        self.used.insert(candidate.clone());
        candidate
    }

    fn is_accepted(&self, id: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let fits = |byte: u8| if self.rule.is_strict { is_plain(byte) } else { byte.is_ascii_graphic() };
        (1..=self.rule.chars_max).contains(&id.len()) && id.bytes().all(fits)
    }
}

/// A call's arguments as an object, which is all that providers take. Text that was none is shown to the model as what
/// it wrote.
pub(crate) fn arguments_object(arguments: &CanonicalJson) -> String {
    if arguments.is_object() { arguments.as_str().to_owned() } else { arguments_value(arguments).to_string() }
}

/// The same as a tree.
pub(crate) fn arguments_value(arguments: &CanonicalJson) -> Value {
    if arguments.is_object() { arguments.to_value() } else { json!({"unreadable": arguments.to_value()}) }
}

/// The schema of a tool's arguments as an object schema, which providers insist on.
pub(crate) fn object_schema(schema: &Value) -> Value {
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.entry("type").or_insert_with(|| json!("object"));
    if object["type"] == "object" {
        object.entry("properties").or_insert_with(|| json!({}));
    }
    Value::Object(object)
}

/// The parts of a content: one text, where it is not made of parts.
pub(crate) fn parts(content: &Content) -> Vec<PartRef<'_>> {
    match content {
        Content::Text(text) => vec![PartRef::Text(text)],
        Content::Json(json) => vec![PartRef::Text(json.as_str())],
        Content::Parts(parts) => parts.iter().map(PartRef::from).collect(),
    }
}

/// One part of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartRef<'a> {
    Text(&'a str),
    Image { media_type: &'a str, source: &'a Source },
    File { media_type: &'a str, name: &'a str, source: &'a Source },
}

impl<'a> From<&'a Part> for PartRef<'a> {
    fn from(part: &'a Part) -> Self {
        match part {
            Part::Text(text) => Self::Text(text),
            Part::Image { media_type, source } => Self::Image { media_type, source },
            Part::File { media_type, name, source } => Self::File { media_type, name, source },
        }
    }
}

/// Whether a content is nothing but words.
pub(crate) fn is_words(content: &Content) -> bool {
    parts(content).iter().all(|part| matches!(part, PartRef::Text(_)))
}

/// The words for a result whose call the provider is not shown.
pub(crate) fn stray_text(tool: &ToolName, output: &Content) -> String {
    format!("[an earlier result of {tool}]\n{}", output.to_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: IdRule = IdRule { chars_max: 40, is_strict: true };

    fn call(id: &str, tool: &str) -> AskedCall {
        let (tool, arguments) = (ToolName::new(tool).unwrap(), CanonicalJson::parse("{}").unwrap());
        AskedCall { call_id: id.to_owned(), tool, arguments }
    }

    fn result(id: &str, tool: &str, text: &str, is_error: bool) -> Item {
        Item::ToolResult { call_id: id.to_owned(), tool: ToolName::new(tool).unwrap(), output: text.into(), is_error }
    }

    fn assistant(text: Option<&str>, calls: Vec<AskedCall>) -> Item {
        Item::Assistant { text: text.map(str::to_owned), calls }
    }

    /// The conversation, one line for each thing in it.
    fn told(items: Vec<Item>) -> Vec<String> {
        let items: Vec<Arc<Item>> = items.into_iter().map(Arc::new).collect();
        let mut lines = Vec::new();
        for turn in turns(&items, RULE) {
            match turn {
                Turn::User(content) => lines.push(format!("user {}", content.to_text())),
                Turn::Stray { tool, output } => lines.push(format!("stray {tool} {}", output.to_text())),
                Turn::Assistant { text, calls } => {
                    lines.push(format!("assistant {}", text.unwrap_or("-")));
                    lines.extend(calls.iter().map(|call| match &call.output {
                        Outcome::Given { output, is_error } => {
                            let sign = if *is_error { "!" } else { "=" };
                            format!("  {} {} {sign} {}", call.id, call.tool, output.to_text())
                        }
                        Outcome::Unknown => format!("  {} {} ?", call.id, call.tool),
                    }));
                }
            }
        }
        lines
    }

    #[test]
    fn each_call_stands_beside_what_came_of_it() {
        let items = vec![
            Item::User("hello".into()),
            assistant(Some("I look."), vec![call("a", "look"), call("b", "look")]),
            result("b", "look", "two", true),
            result("a", "look", "one", false),
            Item::User("and?".into()),
            assistant(Some("done"), vec![]),
        ];
        let expected =
            ["user hello", "assistant I look.", "  a look = one", "  b look ! two", "user and?", "assistant done"];
        assert_eq!(told(items), expected);
    }

    #[test]
    fn a_call_without_a_result_and_a_result_without_a_call_are_mended() {
        let items = vec![
            result("x", "old", "from before", false),
            assistant(None, vec![call("a", "look")]),
            Item::User("never mind".into()),
            result("a", "look", "late", false),
        ];
        let expected = ["stray old from before", "assistant -", "  a look ?", "user never mind", "stray look late"];
        assert_eq!(told(items), expected);
    }

    #[test]
    fn ids_are_unique_and_accepted_and_the_same_each_time() {
        let long = "z".repeat(41);
        let items = || {
            vec![
                assistant(None, vec![call("a", "t"), call(&long, "t"), call("a:b", "t"), call("", "t")]),
                result("a", "t", "1", false),
                assistant(None, vec![call("a", "t")]),
                result("a", "t", "2", false),
            ]
        };
        let lines = told(items());
        let ids: Vec<&str> = lines
            .iter()
            .filter(|line| line.starts_with("  "))
            .map(|line| line[2..].split(' ').next().unwrap())
            .collect();
        let distinct: HashSet<&&str> = ids.iter().collect();
        assert_eq!((ids.len(), distinct.len(), ids[0]), (5, 5, "a"));
        assert!(ids.iter().all(|id| (1..=40).contains(&id.len())), "{ids:?}");
        assert!(lines[1].ends_with("t = 1") && lines[6].ends_with("t = 2"), "{lines:?}");
        assert_eq!(told(items()), lines);
    }

    #[test]
    fn an_assistant_that_said_nothing_is_left_out() {
        assert_eq!(
            told(vec![Item::User("a".into()), assistant(Some(""), vec![]), assistant(None, vec![])]),
            ["user a"]
        );
    }

    #[test]
    fn arguments_are_always_an_object() {
        for (arguments, expected) in [
            (r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#),
            (r#""{not json""#, r#"{"unreadable":"{not json"}"#),
            ("[1]", r#"{"unreadable":[1]}"#),
        ] {
            assert_eq!(arguments_object(&CanonicalJson::parse(arguments).unwrap()), expected);
        }
    }

    #[test]
    fn schemas_are_always_of_an_object() {
        for (schema, expected) in [
            (json!({}), json!({"type": "object", "properties": {}})),
            (json!(null), json!({"type": "object", "properties": {}})),
            (json!(true), json!({"type": "object", "properties": {}})),
            (json!({"type": "object", "properties": {"a": {}}}), json!({"type": "object", "properties": {"a": {}}})),
            (json!({"type": "string"}), json!({"type": "string"})),
        ] {
            assert_eq!(object_schema(&schema), expected);
        }
    }
}
