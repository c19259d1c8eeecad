//! The only way in. Every protocol, client and worker calls these, and nothing else touches a run.

mod audit;
mod cancel_run;
mod change;
mod decide_pause;
mod expire_pauses;
mod find_agent;
mod import_run;
mod list_pauses;
mod lists;
mod read_run;
mod remove_old;
mod resume_run;
mod rules;
mod stage_input;
mod start_run;
mod supersede;
mod watch_pauses;
mod watch_session;

pub use audit::{AuditCheck, AuditPage};
pub use decide_pause::Decided;
pub use list_pauses::{PausePage, PauseSummary};
pub use lists::{RulePage, RunPage, SessionPage};
pub use start_run::StartRun;
pub use watch_pauses::{PauseNews, WatchPauses};
pub use watch_session::{WatchItem, WatchSession};
