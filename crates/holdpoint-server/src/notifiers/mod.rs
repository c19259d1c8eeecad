//! How people are told of pauses where they are. Each way is a module: a notifier behind the runtime's port, and what it
//! needs to be answered.

pub mod email;
mod outcome;
pub mod slack;
mod text;
pub mod webhook;
