//! What reads a tree: collects the problems of one file.

use std::cell::RefCell;
use std::sync::Arc;

use super::{Fields, Node};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::environment::Environment;
use crate::limits::PROBLEMS_MAX;
use crate::source::{Source, Span};

/// Collects what is wrong with one file, and knows the environment that it is read in.
pub(crate) struct Reader<'e> {
    source: Arc<Source>,
    pub environment: &'e dyn Environment,
    problems: RefCell<Vec<Diagnostic>>,
}

impl<'e> Reader<'e> {
    pub(crate) fn new(source: Arc<Source>, environment: &'e dyn Environment) -> Self {
        Self { source, environment, problems: RefCell::default() }
    }

    /// The file's tree; its problems are collected.
    pub(crate) fn parse(&self) -> Option<Node> {
        super::parse(&self.source, &mut self.problems.borrow_mut())
    }

    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    pub(crate) fn error(&self, span: Span, code: Code, message: impl Into<String>) {
        self.report(Diagnostic::within(&self.source, span, Severity::Error, code, message));
    }

    pub(crate) fn error_with_hint(&self, span: Span, code: Code, message: impl Into<String>, hint: impl Into<String>) {
        self.report(Diagnostic::within(&self.source, span, Severity::Error, code, message).with_hint(hint));
    }

    pub(crate) fn warning(&self, span: Span, code: Code, message: impl Into<String>, hint: impl Into<String>) {
        self.report(Diagnostic::within(&self.source, span, Severity::Warning, code, message).with_hint(hint));
    }

    pub(crate) fn report(&self, problem: Diagnostic) {
        self.problems.borrow_mut().push(problem);
    }

    /// The fields of a mapping; anything else is a problem. `what` is what messages call it.
    pub(crate) fn fields<'n>(&'n self, node: &'n Node, what: &'n str) -> Option<Fields<'n>> {
        Fields::of(self, node, what)
    }

    /// Whether an error was found so far.
    pub(crate) fn has_errors(&self) -> bool {
        self.problems.borrow().iter().any(Diagnostic::is_error)
    }

    /// What was found, in the order of lines. Beyond a bound the rest is only counted.
    pub(crate) fn finish(self) -> Vec<Diagnostic> {
        let mut problems = self.problems.into_inner();
        crate::diagnostic::sort(&mut problems);
        if problems.len() > PROBLEMS_MAX {
            let rest = problems.len() - PROBLEMS_MAX;
            problems.truncate(PROBLEMS_MAX);
            let message = format!("{rest} more problems of this file are not shown");
            problems.push(Diagnostic::outside(self.source.name(), Severity::Error, Code::TooMany, message));
        }
        problems
    }
}
