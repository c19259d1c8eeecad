//! What is told when a pause opens: a bell, a message, a mail. Telling is at least once, and never decides anything.

use async_trait::async_trait;
use holdpoint_core::pause::PauseView;

/// What tells people that somebody must look.
#[async_trait]
pub trait Notifier: Send + Sync + 'static {
    /// A pause opened; it is already durable.
    async fn pause_opened(&self, pause: &PauseView);

    /// A pause is no longer open.
    async fn pause_closed(&self, pause: &PauseView);
}
