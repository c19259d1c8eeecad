//! Tools that come with holdpoint. Each begins as a `ToolBuilder`, so that approval, deciders, guardrails and time-outs
//! are set as on every other tool; none decides by itself whether a person must look.

pub mod apply_patch;
pub mod ask_user_question;
#[cfg(unix)]
pub mod command;
pub mod computer;
#[cfg(feature = "http")]
pub mod http;
pub mod mcp;
pub mod shell;

#[cfg(unix)]
mod clip;
#[cfg(unix)]
mod process;
#[cfg(any(unix, feature = "http"))]
mod redact;

#[cfg(test)]
mod testing;
