//! Expressions of rules, in CEL. The one place that names the `cel` crate.
//!
//! An expression is read and checked once, when its file is: what it may name, how deep it goes and how much work it can
//! cause. At run time it looks at bounded facts, cannot panic its caller, and fails with words that hold no argument.

mod cost;
mod facts;
mod fault;
mod lint;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;

use cel::Value;
use cel::common::ast::IdedExpr;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Code, Severity};
use cost::Cost;

pub use facts::Facts;
pub(crate) use facts::Known;
pub use fault::ExpressionFault;

/// A condition over a call: `args`, `agent`, `tool`, `session` and `actor`.
///
/// A whole number in the arguments is an `int`, however it was written, and any other number a `double`; the two can be
/// compared, but arithmetic needs them alike: `double(args.quantity) * double(args.price) > 1000000.0`. What is missing
/// is an error and not false: `has(args.x) && args.x > 1`. Through serde it is its text.
///
/// ```
/// use holdpoint_config::{Expression, Facts};
/// use holdpoint_core::json::CanonicalJson;
///
/// let expression: Expression = "double(args.quantity) * double(args.price) > 1000000.0".parse()?;
/// let args = CanonicalJson::parse(r#"{"quantity": 20000, "price": 61.5}"#)?;
/// let facts = Facts { agent: "trader", tool: "execute_trade", args: &args, session: "s1", actor: "ana" };
/// assert_eq!(expression.holds_for(&facts), Ok(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expression {
    text: Arc<str>,
    program: Arc<Program>,
}

struct Program {
    tree: IdedExpr,
    cost: Cost,
    reads_arguments: bool,
    depth: usize,
}

/// The deepest expression that is worked out on the caller's own stack.
const DEPTH_IN_PLACE_MAX: usize = 8;
/// Enough for the deepest expression that is accepted, without optimisation.
const STACK_BYTES: usize = 16 * 1024 * 1024;

impl Expression {
    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the expression holds for a call.
    ///
    /// # Errors
    /// It cannot be worked out: something is missing or of another type, or it would take too much work.
    pub fn holds_for(&self, facts: &Facts<'_>) -> Result<bool, ExpressionFault> {
        self.holds_within(&Known::new(facts))
    }

    /// The same for facts that were made ready before, so that many rules share them.
    pub(crate) fn holds_within(&self, known: &Known<'_>) -> Result<bool, ExpressionFault> {
        if self.program.depth <= DEPTH_IN_PLACE_MAX {
            return self.work_out(known);
        }
        let facts = known.facts();
        let apart = on_deep_stack(|| self.work_out(&Known::new(facts)));
        apart.unwrap_or_else(|| Err(ExpressionFault::panicked()))
    }

    fn work_out(&self, known: &Known<'_>) -> Result<bool, ExpressionFault> {
        if self.program.reads_arguments {
            known.check(&self.program.cost)?;
        }
        let run = || Value::resolve(&self.program.tree, known.context());
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(Value::Bool(answer))) => Ok(answer),
            Ok(Ok(other)) => Err(ExpressionFault::not_boolean(&other)),
            Ok(Err(error)) => Err(ExpressionFault::of(&error, &self.text)),
            Err(_) => Err(ExpressionFault::panicked()),
        }
    }

    /// Reads an expression and reports all that is wrong with it, or doubtful.
    pub(crate) fn read(text: &str) -> (Option<Self>, Vec<ExpressionProblem>) {
        let (program, problems) = parse::program(text);
        let is_right = problems.iter().all(|problem| problem.severity != Severity::Error);
        let program = program.filter(|_| is_right);
        (program.map(|program| Self { text: text.into(), program: Arc::new(program) }), problems)
    }
}

/// Runs on a thread whose stack is deep enough, since both the parser and the interpreter recurse. `None` where there is
/// no such thread, or where it panicked.
fn on_deep_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("expression".to_owned()).stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, run).ok().and_then(|running| running.join().ok())
    })
}

impl FromStr for Expression {
    type Err = BadExpression;

    fn from_str(text: &str) -> Result<Self, BadExpression> {
        let (expression, problems) = Self::read(text);
        let first = || problems.into_iter().find(|problem| problem.severity == Severity::Error);
        expression.ok_or_else(|| BadExpression(first().map_or_else(String::new, |problem| problem.message)))
    }
}

impl TryFrom<String> for Expression {
    type Error = BadExpression;

    fn try_from(text: String) -> Result<Self, BadExpression> {
        text.parse()
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.text.as_ref().to_owned()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Text that is not an expression; the first problem of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expression cannot be used: {0}")]
pub struct BadExpression(String);

/// One problem of an expression, at a place within its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpressionProblem {
    /// The first byte of the bad part.
    pub start: usize,
    /// The byte after it.
    pub end: usize,
    pub severity: Severity,
    pub code: Code,
    pub message: String,
    pub hint: Option<String>,
}

impl ExpressionProblem {
    fn error(start: usize, end: usize, message: impl Into<String>) -> Self {
        let (code, message) = (Code::BadExpression, message.into());
        Self { start, end, severity: Severity::Error, code, message, hint: None }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
