//! Tools of MCP servers, as far as approval goes: which of them a person must look at, and what a call becomes. The
//! connection to a server is not here.

mod policy;
mod tool;

pub use policy::{PolicyProblem, RequireApproval, ToolFilter};
pub use tool::{McpCaller, McpToolSpec, mcp_tool};
