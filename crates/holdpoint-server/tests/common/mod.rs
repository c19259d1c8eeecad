//! What the tests of several protocols share: a server that can be killed, agents from files, the outbox, the world behind
//! tools.

mod agents;
mod outbox;
mod reading;
mod served;
mod tool_server;

pub use agents::{Files, catalogue, keys};
pub use outbox::Outbox;
pub use reading::Blocks;
pub use served::{Served, everything};
pub use tool_server::ToolServer;
