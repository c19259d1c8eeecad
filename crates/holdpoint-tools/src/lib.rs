//! Tools that come with holdpoint. Each begins as a `ToolBuilder`, so that approval, deciders, guardrails and time-outs
//! are set as on every other tool; none decides by itself whether a person must look.

pub mod apply_patch;
pub mod ask_user_question;
pub mod computer;
pub mod mcp;
pub mod shell;

#[cfg(test)]
mod testing;
