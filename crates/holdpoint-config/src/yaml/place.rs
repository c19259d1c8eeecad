//! Where the values of a file stand, for problems that show only later: a store that is not connected, a server that is
//! not there.

use std::fmt;
use std::sync::Arc;

use super::Node;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::source::{Position, Source};

/// The places of all values of a file.
#[derive(Clone)]
pub struct Places {
    source: Arc<Source>,
    root: Arc<Node>,
}

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// Its first character.
    pub start: Position,
    /// The place after its last character.
    pub end: Position,
}

impl Places {
    pub(crate) fn new(source: Arc<Source>, root: Node) -> Self {
        Self { source, root: Arc::new(root) }
    }

    /// Where the value at a path stands, such as `spec.tools[2].http.url`. `None` where the file has no such value.
    pub fn find(&self, path: &str) -> Option<Place> {
        let node = self.node(path)?;
        Some(Place {
            file: self.source.name().to_owned(),
            start: self.source.position(node.span.start),
            end: self.source.position(node.span.end),
        })
    }

    /// An error about the value at a path, or about the whole file where there is no such value.
    pub fn error(&self, path: &str, code: Code, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(path, Severity::Error, code, message)
    }

    /// A warning about the value at a path, or about the whole file where there is no such value.
    pub fn warning(&self, path: &str, code: Code, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(path, Severity::Warning, code, message)
    }

    fn diagnostic(&self, path: &str, severity: Severity, code: Code, message: impl Into<String>) -> Diagnostic {
        match self.node(path) {
            Some(node) => Diagnostic::within(&self.source, node.span, severity, code, message),
            None => Diagnostic::outside(self.source.name(), severity, code, message),
        }
    }

    fn node(&self, path: &str) -> Option<&Node> {
        let steps = path.split(['.', '[']).filter(|step| !step.is_empty());
        let mut node = self.root.as_ref();
        for step in steps {
            node = match (step.strip_suffix(']'), &node.value) {
                (Some(index), super::Value::List(items)) => items.get(index.parse::<usize>().ok()?)?,
                _ => node.get(step)?,
            };
        }
        Some(node)
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Places").field(&self.source.name()).finish()
    }
}
