//! Mastra's protocol for clients of its agents: a message in, a stream of chunks out, approvals by the call's id.
//!
//! `docs/protocols/mastra.md` is for those who use it. Where we go beyond the protocol or differ from it:
//!
//! - A run moves by itself: who hangs up loses nothing, and the same decision again joins or replays what follows.
//! - Every call that waits is announced, and they are decided in any order.
//! - A decision binds to one question. A call that is asked about once more has another `toolCallId` there.
//! - Errors have the statuses that they mean, a stable `code`, and never make the client repeat what was done.
//! - A message into a thread that waits is never answered beside what waits: the agent's `on_message_while_held` says
//!   whether it is refused, waits for the decision, or takes its place.
//! - A call whose tool changed since it was shown is not run by an approval of what was shown.
//! - `finish` chunks are lean: they do not repeat the conversation.

mod calls;
mod changed;
mod chunks;
mod from_wire;
mod origin;
mod prefix;
mod refuse;
mod resume_data;
mod wire;

mod answer;
mod follow;
mod hand_over;
mod history;
mod place;

mod agents;
mod decide;
mod send_tool_approval;
mod start;
mod suspended_runs;
mod thread_messages;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;

pub use prefix::{BadPrefix, Prefix};
pub(crate) use refuse::render;

/// Through which door decisions came, as they record it.
const VIA: &str = "mastra";

/// The routes, under the prefix that the operator chose.
pub fn router(prefix: &Prefix) -> Router<App> {
    let at = |path: &str| format!("{prefix}{path}");
    Router::new()
        .route(&at("/agents"), get(agents::list))
        .route(&at("/agents/{agent}"), get(agents::details))
        .route(&at("/agents/{agent}/stream"), post(start::stream))
        .route(&at("/agents/{agent}/generate"), post(start::generate))
        .route(&at("/agents/{agent}/approve-tool-call"), post(decide::approve))
        .route(&at("/agents/{agent}/decline-tool-call"), post(decide::decline))
        .route(&at("/agents/{agent}/approve-tool-call-generate"), post(decide::approve_generate))
        .route(&at("/agents/{agent}/decline-tool-call-generate"), post(decide::decline_generate))
        .route(&at("/agents/{agent}/resume-stream"), post(decide::resume_stream))
        .route(&at("/agents/{agent}/suspended-runs"), get(suspended_runs::list))
        .route(&at("/agents/{agent}/send-tool-approval"), post(send_tool_approval::send))
        .route(&at("/memory/threads/{thread}/messages"), get(thread_messages::list))
}
