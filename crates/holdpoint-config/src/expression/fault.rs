//! Why an expression could not be worked out, in words that hold no argument of the call.

use cel::{ExecutionError, Value};

/// Why an expression could not be worked out. The call is held, and a person reads this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExpressionFault(String);

impl ExpressionFault {
    pub(super) fn of(error: &ExecutionError, expression: &str) -> Self {
        Self(words(error, expression))
    }

    pub(super) fn not_boolean(value: &Value) -> Self {
        Self(format!("the expression gives a value of type {} and not true or false", kind(value)))
    }

    pub(super) fn panicked() -> Self {
        Self("the expression could not be worked out because of an internal error".to_owned())
    }

    pub(super) fn too_costly() -> Self {
        Self("the arguments have too many values for the loops of the expression".to_owned())
    }

    pub(super) fn arguments_too_large() -> Self {
        Self("the arguments are larger than expressions look at".to_owned())
    }

    pub(super) fn wide_integer() -> Self {
        Self("the arguments have a whole number beyond 64 bits, which expressions cannot compare".to_owned())
    }

    pub(super) fn wide_number() -> Self {
        Self("the arguments have a number that is too large for expressions".to_owned())
    }
}

/// Values are left out: they are the call's arguments. A name is repeated only where the expression itself has it.
fn words(error: &ExecutionError, expression: &str) -> String {
    let is_written = |name: &str| !name.is_empty() && expression.contains(name);
    match error {
        ExecutionError::NoSuchKey(key) if is_written(key) => format!("the call has no `{key}`"),
        ExecutionError::NoSuchKey(_) => "the call has no value under a key that the expression works out".to_owned(),
        ExecutionError::UndeclaredReference(name) if is_written(name) => format!("there is no `{name}`"),
        ExecutionError::NoSuchOverload(overload) => {
            let types = overload.argument_types().join(" and ");
            format!("{} does not take values of type {types}", operation(overload.function()))
        }
        ExecutionError::ValuesNotComparable(one, other) => {
            format!("values of type {} and {} cannot be compared", kind(one), kind(other))
        }
        ExecutionError::UnexpectedType { .. } | ExecutionError::UnsupportedTargetType { .. } => {
            "a value has another type than the expression expects".to_owned()
        }
        ExecutionError::UnsupportedBinaryOperator(operator, one, other) => {
            format!("{} does not take values of type {} and {}", operation(operator), kind(one), kind(other))
        }
        ExecutionError::FunctionError { function, .. } => format!("{} cannot take its argument", operation(function)),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "a division by zero".to_owned(),
        ExecutionError::Overflow(..) => "a number is too large for 64 bits".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "a list has fewer elements than the expression expects".to_owned(),
        _ => "the expression does not fit the call".to_owned(),
    }
}

/// The type of a value, as expressions call it.
fn kind(value: &Value) -> String {
    match value {
        Value::Float(_) => "double".to_owned(),
        value => value.type_of().to_string(),
    }
}

/// An operation as it is written: `*` for `_*_`.
fn operation(function: &str) -> String {
    let name = match function {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "rem" => "%",
        "_[_]" => "[…]",
        function if function.contains(|c: char| c.is_alphanumeric()) => function.trim_start_matches('@'),
        function => function.trim_matches('_'),
    };
    format!("`{name}`")
}
