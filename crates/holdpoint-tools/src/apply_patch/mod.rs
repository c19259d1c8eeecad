//! Changes to files. What is approved is a list of operations; all of them are done, or none.

pub mod diff;
mod folder;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_runtime::ports::tool::{
    IntoContent, Json, RunTool, Tool, ToolBuilder, ToolContext, ToolFailure, ToolShape,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use folder::FolderEditor;

/// Makes apply_patch tools.
pub struct ApplyPatchTool;

impl ApplyPatchTool {
    /// How many operations one call may have.
    pub const OPERATIONS_MAX: usize = 64;
    /// How many bytes a path may have.
    pub const PATH_BYTES_MAX: usize = 1_024;

    /// A tool named `apply_patch`, whose operations this editor does.
    ///
    /// Its arguments are `{"operations": [{"type": "create_file" | "update_file" | "delete_file", "path", "diff"}]}`,
    /// or `{"operation": {…}}` for one; [`diff`] has the format of diffs. It answers `{"status": "completed" |
    /// "failed", "output"}`.
    ///
    /// ```
    /// use holdpoint_tools::apply_patch::{ApplyPatchTool, FolderEditor};
    ///
    /// let tool = ApplyPatchTool::builder(FolderEditor::new("/tmp")?).needs_approval(true).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(editor: impl PatchEditor) -> ToolBuilder {
        Tool::builder("apply_patch")
            .description(DESCRIPTION)
            .schema(schema())
            .shape(ToolShape::ApplyPatch)
            .runner(PatchRunner(editor))
    }
}

const DESCRIPTION: &str = "Creates, changes and deletes files. All operations of a call are done, or none. \
    A diff has no file headers. For a new file every line begins with `+`. For a change, lines that stay begin with a \
    space, lines that go with `-`, lines that come with `+`; each hunk begins with `@@`, which may be followed by a \
    line of the file to look after. Lines must match the file exactly and in one place only.";

/// What does the operations of a call.
#[async_trait]
pub trait PatchEditor: Send + Sync + 'static {
    /// Does all operations, or none, and says what was done.
    ///
    /// # Errors
    /// Why nothing was done, for the model.
    async fn apply(&self, context: &ToolContext, operations: Vec<PatchOperation>) -> Result<String, String>;
}

/// One change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchOperation {
    /// Makes a file that is not there yet.
    CreateFile {
        /// Where.
        path: String,
        /// Its lines, each after a `+`.
        diff: String,
    },
    /// Changes a file.
    UpdateFile {
        /// Which.
        path: String,
        /// How.
        diff: String,
    },
    /// Deletes a file.
    DeleteFile {
        /// Which.
        path: String,
    },
}

impl PatchOperation {
    /// The file that it is about.
    pub fn path(&self) -> &str {
        match self {
            Self::CreateFile { path, .. } | Self::UpdateFile { path, .. } | Self::DeleteFile { path } => path,
        }
    }
}

/// The operations of a call, in order: its `operations`, or its one `operation`. A predicate that looks at operations
/// should use this.
///
/// # Errors
/// Neither or both of them, none or too many, a deletion with a diff, a change without one.
pub fn read_operations(arguments: &Value) -> Result<Vec<PatchOperation>, String> {
    check(Body::deserialize(arguments))
}

fn check(body: serde_json::Result<Body>) -> Result<Vec<PatchOperation>, String> {
    let body = body.map_err(|error| format!("operations expected: {error}"))?;
    let operations = match (body.operations, body.operation) {
        (Some(operations), None) => operations,
        (None, Some(operation)) => vec![operation],
        _ => return Err("either operations or one operation expected".to_owned()),
    };
    if !(1..=ApplyPatchTool::OPERATIONS_MAX).contains(&operations.len()) {
        return Err(format!("1 to {} operations expected", ApplyPatchTool::OPERATIONS_MAX));
    }
    operations.into_iter().map(Operation::read).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    operations: Option<Vec<Operation>>,
    operation: Option<Operation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    #[serde(rename = "type")]
    kind: OperationKind,
    path: String,
    diff: Option<String>,
}

#[derive(Deserialize)]
enum OperationKind {
    #[serde(rename = "create_file")]
    Create,
    #[serde(rename = "update_file")]
    Update,
    #[serde(rename = "delete_file")]
    Delete,
}

impl Operation {
    fn read(self) -> Result<PatchOperation, String> {
        let Self { kind, path, diff } = self;
        match (kind, diff) {
            (OperationKind::Create, Some(diff)) => Ok(PatchOperation::CreateFile { path, diff }),
            (OperationKind::Update, Some(diff)) => Ok(PatchOperation::UpdateFile { path, diff }),
            (OperationKind::Delete, diff) if diff.as_ref().is_none_or(String::is_empty) => {
                Ok(PatchOperation::DeleteFile { path })
            }
            (OperationKind::Delete, _) => Err("a delete_file has no diff".to_owned()),
            (OperationKind::Create | OperationKind::Update, None) => Err("a diff expected".to_owned()),
        }
    }
}

struct PatchRunner<E>(E);

#[derive(Serialize)]
struct Told {
    status: &'static str,
    output: String,
}

#[async_trait]
impl<E: PatchEditor> RunTool for PatchRunner<E> {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        let operations = check(arguments.decode()).map_err(ToolFailure)?;
        let told = match self.0.apply(&context, operations).await {
            Ok(output) => Told { status: "completed", output },
            Err(output) => Told { status: "failed", output },
        };
        Json(told).into_content()
    }
}

/// Either `operations` or `operation`, without the combinators that providers refuse at the top of a schema.
fn schema() -> Value {
    let operation = json!({
        "type": "object",
        "properties": {
            "type": {"enum": ["create_file", "update_file", "delete_file"]},
            "path": {
                "type": "string",
                "minLength": 1,
                "maxLength": ApplyPatchTool::PATH_BYTES_MAX,
                "description": "The file, relative to the folder that is worked in.",
            },
            "diff": {"type": ["string", "null"], "description": "The change; none for delete_file."},
        },
        "required": ["type", "path"],
        "additionalProperties": false,
        "if": {"properties": {"type": {"const": "delete_file"}}},
        "then": {"properties": {"diff": {"type": ["string", "null"], "maxLength": 0}}},
        "else": {"properties": {"diff": {"type": "string"}}, "required": ["diff"]},
    });
    json!({
        "type": "object",
        "properties": {
            "operations": {
                "type": "array",
                "items": operation,
                "minItems": 1,
                "maxItems": ApplyPatchTool::OPERATIONS_MAX,
            },
            "operation": operation,
        },
        "additionalProperties": false,
        "if": {"required": ["operation"]},
        "then": {"properties": {"operations": false}},
        "else": {"required": ["operations"]},
    })
}
