//! What operators write: agent files, policy files and the server's own file, read with their places and checked.
//!
//! Everything here is pure and synchronous. Files become typed data ([`AgentFile`], [`PolicySet`], [`ServerConfig`]) and
//! diagnostics ([`Diagnostic`]); nothing is built or started. All problems of all files are found in one go, each with
//! its line, its column and advice. A file that is not right is never used in part.

mod agent;
mod confirmation;
mod diagnostic;
mod environment;
mod expression;
mod folder;
pub mod limits;
mod policy;
mod seconds;
mod server;
mod source;
mod template;
mod yaml;

pub use agent::read::{LoadedAgent, ReadAgent, read_agent};
pub use agent::*;
pub use confirmation::Phrases;
pub use diagnostic::{Code, Diagnostic, Severity, Style, render_all};
pub use environment::{Environment, FixedEnvironment, ProcessEnvironment};
pub use expression::{BadExpression, Expression, ExpressionFault, Facts};
pub use folder::{AgentBundle, BundleProblem, Folder, FolderReader, read_folder};
pub use policy::{BadGlob, DEFAULT_RULE, Glob, Hold, PolicyOutcome, PolicyRule, PolicySet, RuleVerdict};
pub use server::*;
pub use source::{Position, Source};
pub use template::{BadTemplate, MissingVariable, Template};
pub use yaml::{Place, Places};
