//! What an agent file names that only the whole folder, or the server, knows.

use std::cell::{Cell, RefCell};

use crate::agent::AgentName;
use crate::source::Span;

/// The name of a file's agent, and what the file refers to. Kept also for files with errors, so that others do not seem
/// to refer to nothing.
#[derive(Debug, Default)]
pub(crate) struct Links {
    name: RefCell<Option<(AgentName, Span)>>,
    links: RefCell<Vec<Link>>,
    has_bad_expression: Cell<bool>,
}

/// One reference.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub kind: LinkKind,
    pub target: String,
    pub span: Span,
}

/// What is referred to, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkKind {
    /// An agent that runs inside of this one.
    Call,
    /// An agent that takes over.
    Handoff,
    /// An MCP server.
    McpServer,
}

impl Links {
    pub(crate) fn set_name(&self, name: AgentName, span: Span) {
        *self.name.borrow_mut() = Some((name, span));
    }

    pub(crate) fn name(&self) -> Option<(AgentName, Span)> {
        self.name.borrow().clone()
    }

    pub(crate) fn add(&self, link: Link) {
        self.links.borrow_mut().push(link);
    }

    pub(crate) fn all(&self) -> Vec<Link> {
        self.links.borrow().clone()
    }

    /// Notes that a condition of the file cannot be read: a gate that would be missing.
    pub(crate) fn note_bad_expression(&self) {
        self.has_bad_expression.set(true);
    }

    pub(crate) fn has_bad_expression(&self) -> bool {
        self.has_bad_expression.get()
    }
}
