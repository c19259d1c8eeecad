//! What an expression looks at: a call, made into CEL values by rules of our own.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::objects::{Key, Map};
use cel::{Context, Env, Value, extensions};
use holdpoint_core::json::CanonicalJson;

use super::cost::{Cost, Size};
use super::fault::ExpressionFault;
use crate::limits::ARGUMENT_BYTES_MAX;

/// A call, as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The agent whose model asked for the call.
    pub agent: &'a str,
    /// What the model calls the tool.
    pub tool: &'a str,
    /// The call's arguments.
    pub args: &'a CanonicalJson,
    /// The session.
    pub session: &'a str,
    /// Who started the run.
    pub actor: &'a str,
}

/// The environment in which expressions are read and worked out.
pub(super) static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    // Without this library expressions lose three functions, which the check of names then refuses at run time.
    let _ = environment.add_extension(extensions::strings);
    Arc::new(environment)
});

/// Facts made ready for several expressions: converted once, and only when one of them has to be worked out.
pub(crate) struct Known<'a> {
    facts: &'a Facts<'a>,
    ready: OnceCell<Ready>,
}

struct Ready {
    context: Context<'static, 'static>,
    size: Result<Size, ExpressionFault>,
}

impl<'a> Known<'a> {
    pub(crate) fn new(facts: &'a Facts<'a>) -> Self {
        Self { facts, ready: OnceCell::new() }
    }

    pub(crate) fn facts(&self) -> &Facts<'a> {
        self.facts
    }

    pub(super) fn context(&self) -> &Context<'static, 'static> {
        &self.ready().context
    }

    /// Refuses arguments that cannot be converted, and work beyond bounds.
    pub(super) fn check(&self, cost: &Cost) -> Result<(), ExpressionFault> {
        let size = self.ready().size.as_ref().map_err(Clone::clone)?;
        match cost.is_bearable(size) {
            true => Ok(()),
            false => Err(ExpressionFault::too_costly()),
        }
    }

    fn ready(&self) -> &Ready {
        self.ready.get_or_init(|| {
            let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
            for (name, text) in [
                ("agent", self.facts.agent),
                ("tool", self.facts.tool),
                ("session", self.facts.session),
                ("actor", self.facts.actor),
            ] {
                context.add_variable_from_value(name, text.to_owned());
            }
            let size = match arguments(self.facts.args) {
                Ok((value, size)) => {
                    context.add_variable_from_value("args", value);
                    Ok(size)
                }
                Err(fault) => Err(fault),
            };
            Ready { context, size }
        })
    }
}

/// The arguments as a CEL value, and how large they are.
fn arguments(args: &CanonicalJson) -> Result<(Value, Size), ExpressionFault> {
    let text = args.as_str();
    if text.len() > ARGUMENT_BYTES_MAX {
        return Err(ExpressionFault::arguments_too_large());
    }
    if has_wide_integer(text) {
        return Err(ExpressionFault::wide_integer());
    }
    let json = serde_json::from_str(text).map_err(|_| ExpressionFault::wide_number())?;
    let mut largest = 0;
    let value = converted(&json, &mut largest);
    Ok((value, Size { bytes: text.len(), largest_collection: largest }))
}

/// JSON as CEL has it: a whole number is an `int`, which `cel` itself would make a `uint`, and any other a `double`.
fn converted(json: &serde_json::Value, largest: &mut usize) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(items) => {
            *largest = items.len().max(*largest);
            Value::List(Arc::new(items.iter().map(|item| converted(item, largest)).collect()))
        }
        serde_json::Value::Object(members) => {
            *largest = members.len().max(*largest);
            let entry = |(key, value): (&String, _)| (Key::String(Arc::new(key.clone())), converted(value, largest));
            Value::Map(Map { map: Arc::new(members.iter().map(entry).collect::<HashMap<_, _>>()) })
        }
    }
}

/// Whether canonical JSON has a whole number beyond 64 bits. A tree of it would hold a float near to that number, and
/// two accounts would compare equal.
fn has_wide_integer(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let length = bytes[at..].iter().take_while(|byte| is_number(byte)).count();
                let number = &text[at..at + length];
                if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() {
                    return true;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    false
}
