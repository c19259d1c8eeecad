//! What the runtime stands on: clock, ids, model, tool, store, notifier; and who watches it. It knows these shapes and no
//! vendor.

pub mod bus;
pub mod clock;
pub mod ids;
pub mod model;
pub mod notifier;
pub mod observer;
pub mod store;
pub mod tool;
