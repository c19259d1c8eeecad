//! What an expression may name and do, checked on its tree when its file is read.

use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, SourceInfo, operators};

use super::cost::Cost;
use super::{ExpressionProblem, Program};
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, Severity, quoted};
use crate::limits::{EXPRESSION_NESTING_MAX, LOOP_NESTING_MAX, LOOPS_MAX};

/// What an expression looks at.
const FACTS: [&str; 5] = ["args", "agent", "tool", "session", "actor"];
/// Names of types, for `type(args.x) == string`.
const TYPES: [&str; 9] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];
/// Functions that stand alone: `size(args.items)`.
const FUNCTIONS: [&str; 10] = ["bool", "bytes", "double", "dyn", "has", "int", "matches", "size", "string", "type"];
/// Functions after a point: `args.path.startsWith("/tmp/")`.
const METHODS: [&str; 18] = [
    "all",
    "contains",
    "endsWith",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "hasValue",
    "lowerAscii",
    "map",
    "matches",
    "or",
    "orValue",
    "size",
    "startsWith",
    "trim",
    "upperAscii",
    "value",
];
/// Those of them that give something other than true or false.
const NOT_BOOLEAN: [&str; 16] = [
    "bytes",
    "double",
    "filter",
    "int",
    "lowerAscii",
    "map",
    "size",
    "string",
    "trim",
    "type",
    "upperAscii",
    operators::ADD,
    operators::SUBSTRACT,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::NEGATE,
];

/// The tree with all that is wrong or doubtful in it.
pub(super) fn checked(text: &str, tree: IdedExpr, places: &SourceInfo) -> (Option<Program>, Vec<ExpressionProblem>) {
    let mut lint = Lint {
        text,
        places,
        problems: Vec::new(),
        cost: Cost::default(),
        loops: 0,
        depth: 0,
        ranges: 0,
        reads_arguments: false,
    };
    lint.walk(&tree, &mut Vec::new(), 1);
    lint.result_is_boolean(&tree);
    if lint.loops > LOOPS_MAX {
        lint.costly(&tree, format!("the expression has {} loops, at most {LOOPS_MAX} are accepted", lint.loops));
    }
    let Lint { problems, cost, reads_arguments, depth, .. } = lint;
    let is_right = problems.iter().all(|problem| problem.severity != Severity::Error);
    // A tree that is refused is dropped here, where the stack is deep enough for any.
    (is_right.then_some(Program { tree, cost, reads_arguments, depth }), problems)
}

struct Lint<'a> {
    text: &'a str,
    places: &'a SourceInfo,
    problems: Vec<ExpressionProblem>,
    cost: Cost,
    loops: usize,
    depth: usize,
    /// How many loops' ranges the part in hand stands in.
    ranges: usize,
    reads_arguments: bool,
}

impl Lint<'_> {
    /// Looks at a part of the tree. `scope` has the variables of the loops around it.
    fn walk<'t>(&mut self, part: &'t IdedExpr, scope: &mut Vec<&'t str>, depth: usize) {
        self.depth = self.depth.max(depth);
        // Loops are written as one call and stand for a handful of nested parts.
        if depth == EXPRESSION_NESTING_MAX * 2 {
            self.costly(part, format!("the expression is nested deeper than {EXPRESSION_NESTING_MAX} levels"));
        }
        let loops = scope.iter().filter(|name| **name == "@result").count();
        self.cost.step(loops);
        match &part.expr {
            Expr::Unspecified => self.error(part, "this part cannot be read"),
            Expr::Literal(_) => {}
            Expr::Ident(name) => self.name(part, name, scope),
            Expr::Select(select) => self.walk(&select.operand, scope, depth + 1),
            Expr::Call(call) => {
                self.call(part, &call.func_name, call.target.as_deref(), &call.args, loops);
                for part in call.target.as_deref().into_iter().chain(&call.args) {
                    self.walk(part, scope, depth + 1);
                }
            }
            Expr::List(list) => {
                self.cost.literal(list.elements.len());
                for element in &list.elements {
                    self.walk(element, scope, depth + 1);
                }
            }
            Expr::Map(map) => {
                self.cost.literal(map.entries.len());
                for entry in &map.entries {
                    self.entry(entry, scope, depth + 1);
                }
            }
            Expr::Struct(_) => self.error(part, "messages cannot be made here"),
            Expr::Comprehension(each) => {
                self.loops += 1;
                self.ranges += 1;
                self.walk(&each.iter_range, scope, depth + 1);
                self.ranges -= 1;
                self.walk(&each.accu_init, scope, depth + 1);
                if loops == LOOP_NESTING_MAX {
                    self.costly(part, format!("loops are nested deeper than {LOOP_NESTING_MAX} levels"));
                }
                let outer = scope.len();
                scope.push("@result");
                scope.push(each.iter_var.as_str());
                scope.extend(each.iter_var2.as_deref());
                self.walk(&each.loop_cond, scope, depth + 1);
                self.walk(&each.loop_step, scope, depth + 1);
                scope.truncate(outer);
                self.walk(&each.result, scope, depth + 1);
            }
        }
    }

    fn entry<'t>(&mut self, entry: &'t IdedEntryExpr, scope: &mut Vec<&'t str>, depth: usize) {
        match &entry.expr {
            EntryExpr::StructField(field) => self.walk(&field.value, scope, depth),
            EntryExpr::MapEntry(entry) => {
                self.walk(&entry.key, scope, depth);
                self.walk(&entry.value, scope, depth);
            }
        }
    }

    fn name(&mut self, part: &IdedExpr, name: &str, scope: &[&str]) {
        self.reads_arguments |= name == "args";
        let is_known = name.starts_with('@') || scope.contains(&name) || FACTS.contains(&name) || TYPES.contains(&name);
        if !is_known {
            let near = did_you_mean(name, FACTS.into_iter().chain(scope.iter().copied()));
            let hint = near.unwrap_or_else(|| {
                "an expression knows `args`, `agent`, `tool`, `session` and `actor`; text stands in quotes".to_owned()
            });
            self.error_with_hint(part, format!("there is no {}", quoted(name)), hint);
        }
    }

    fn call(&mut self, part: &IdedExpr, name: &str, target: Option<&IdedExpr>, args: &[IdedExpr], loops: usize) {
        let is_operator = name.starts_with(['_', '!', '-', '@']);
        let known: &[&str] = if target.is_some() { &METHODS } else { &FUNCTIONS };
        if !is_operator && !known.contains(&name) {
            let hint = did_you_mean(name, known.iter().copied());
            let hint = hint.unwrap_or_else(|| format!("there are {}", known.join(", ")));
            self.error_with_hint(part, format!("there is no function {}", quoted(name)), hint);
            return;
        }
        match name {
            // `map` and `filter` add element by element, and what they make is no longer than what they loop over.
            operators::ADD => {
                let is_collecting =
                    args.first().is_some_and(|part| matches!(&part.expr, Expr::Ident(name) if name == "@result"));
                self.cost.join(loops, self.ranges > 0 && !is_collecting);
            }
            // A pattern is compiled each time that it is used.
            "matches" => {
                self.pattern(part, args.last());
                self.cost.read(loops, 50);
            }
            operators::CONDITIONAL | operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => {}
            _ => self.cost.read(loops, 1),
        }
        if matches!(name, operators::MULTIPLY | operators::DIVIDE | operators::ADD | operators::SUBSTRACT) {
            self.mixed_numbers(part, args);
        }
    }

    /// A pattern must stand in the expression: one from the arguments would let a model choose it.
    fn pattern(&mut self, part: &IdedExpr, pattern: Option<&IdedExpr>) {
        match pattern.map(|pattern| (&pattern.expr, pattern)) {
            Some((Expr::Literal(LiteralValue::String(text)), place)) => {
                if regex::RegexBuilder::new(text.inner()).size_limit(1 << 20).build().is_err() {
                    self.error(place, "this is not a regular expression, or too large a one");
                }
            }
            Some((_, place)) => self.error_with_hint(
                place,
                "the pattern of `matches` must be text in quotes",
                "to look for text of the arguments, use `contains`",
            ),
            None => self.error(part, "`matches` needs a pattern"),
        }
    }

    /// `args.x * 1.5` fails where `x` is a whole number.
    fn mixed_numbers(&mut self, part: &IdedExpr, args: &[IdedExpr]) {
        let is_double = |part: &IdedExpr| matches!(part.expr, Expr::Literal(LiteralValue::Double(_)));
        let is_argument = |part: &IdedExpr| matches!(part.expr, Expr::Select(_));
        if let [one, other] = args
            && ((is_double(one) && is_argument(other)) || (is_argument(one) && is_double(other)))
        {
            let argument = if is_argument(one) { one } else { other };
            let field = match &argument.expr {
                Expr::Select(select) => select.field.as_str(),
                _ => "",
            };
            let message = format!("{} is an int where it is a whole number, and the call is then held", quoted(field));
            let (start, end) = self.place(part);
            let problem = ExpressionProblem::error(start, end, message).with_hint("write `double(…)` around it");
            self.problems.push(ExpressionProblem { severity: Severity::Warning, ..problem });
        }
    }

    fn result_is_boolean(&mut self, tree: &IdedExpr) {
        let gives = match &tree.expr {
            Expr::Literal(LiteralValue::Boolean(_)) => None,
            Expr::Literal(_) => Some("a constant"),
            Expr::List(_) | Expr::Map(_) => Some("a collection"),
            Expr::Call(call) if NOT_BOOLEAN.contains(&call.func_name.as_str()) => Some("another value"),
            Expr::Ident(name) if FACTS.contains(&name.as_str()) || TYPES.contains(&name.as_str()) => {
                Some("another value")
            }
            _ => None,
        };
        if let Some(gives) = gives {
            let message = format!("the expression gives {gives} and not true or false");
            self.error_with_hint(tree, message, "compare it with something, such as `args.amount > 100`");
        }
    }

    fn error(&mut self, part: &IdedExpr, message: impl Into<String>) {
        let (start, end) = self.place(part);
        self.problems.push(ExpressionProblem::error(start, end, message));
    }

    fn error_with_hint(&mut self, part: &IdedExpr, message: impl Into<String>, hint: impl Into<String>) {
        let (start, end) = self.place(part);
        self.problems.push(ExpressionProblem::error(start, end, message).with_hint(hint));
    }

    fn costly(&mut self, part: &IdedExpr, message: String) {
        let (start, end) = self.place(part);
        let problem = ExpressionProblem::error(start, end, message);
        self.problems.push(ExpressionProblem { code: Code::CostlyExpression, ..problem });
    }

    /// The bytes of a part's main token. Of a call that is its bracket, so its name is looked for in front.
    fn place(&self, part: &IdedExpr) -> (usize, usize) {
        let (start, last) = self.places.offset_for(part.id).unwrap_or((0, 0));
        let (start, last) = (self.boundary(start as usize), last as usize);
        let end = self.boundary(last.max(start) + 1);
        let (Some("("), Some(before)) = (self.text.get(start..end), self.text.get(..start)) else {
            return (start, end);
        };
        let name = before.trim_end();
        let length = name.chars().rev().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').count();
        if length == 0 { (start, end) } else { (name.len() - length, name.len()) }
    }

    fn boundary(&self, mut offset: usize) -> usize {
        offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset += 1;
        }
        offset
    }
}
