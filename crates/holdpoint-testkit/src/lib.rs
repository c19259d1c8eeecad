//! What tests of holdpoint are made of: the test clock, the conformance suite that every store passes, the store
//! that loses power at a chosen write, the model provider on loopback that says what a test wants to hear, the check of
//! what clients were told against an order in which it can have happened, and real database servers.

pub mod clock;
pub mod conformance;
pub mod crash;
pub mod linear;
pub mod model_server;
pub mod outbox;
pub mod power_loss;
#[cfg(target_os = "linux")]
pub mod servers;
pub mod slack_server;
pub mod smtp_server;
