//! The holdpoint server: agents from files, wire protocols over one core, access, health.
//!
//! [`serve::serve`] is the way in: it checks, listens, and answers until it is stopped. A protocol is a folder of
//! translation under [`protocols`]; runs are touched through the runtime's use cases alone.

pub mod access;
pub mod agents;
pub mod app;
pub mod config;
mod drive;
mod health;
pub mod limits;
pub mod metrics;
pub mod notifiers;
mod pages;
pub mod problem;
pub mod protocols;
pub mod requests;
pub mod retention;
mod router;
pub mod serve;
pub mod sse;
pub mod telemetry;
mod unreadable;
pub mod webhooks;

pub use app::App;
pub use config::ServerConfig;
pub use router::router;
pub use serve::{Running, StartError, serve};
