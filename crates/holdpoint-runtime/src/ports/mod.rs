//! What the runtime stands on: clock, ids, model, tool, store. It knows these shapes and no vendor.

pub mod clock;
pub mod ids;
pub mod model;
pub mod store;
pub mod tool;
