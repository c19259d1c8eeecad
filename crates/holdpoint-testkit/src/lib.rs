//! What tests of holdpoint are made of: the test clock, the conformance suite that every store passes, and the store
//! that loses power at a chosen write.

pub mod clock;
pub mod conformance;
pub mod crash;
pub mod power_loss;
