//! Crash at every commit: a scenario is cut at a store write, the process is gone, a new one goes on to the end.
//!
//! What must hold afterwards is the same for every scenario and every cut: no acknowledged decision is lost, no effect
//! happens twice, nothing is stuck, event numbers have no gap.

mod check;
mod cut;
pub mod killed;
pub mod lost;
mod person;
mod scenario;
pub mod telling;
mod world;

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::Refusal;
use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::message::Content;
use holdpoint_core::run::Run;
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::store::Store;
use holdpoint_runtime::settings::Settings;
use holdpoint_runtime::use_cases::StartRun;
use holdpoint_runtime::{DriveOptions, RunError, Runtime};

use crate::clock::TestClock;

pub use crate::power_loss::Cut;
pub use check::check;
pub use cut::{CutStore, OnCut};
pub use person::Acknowledged;
pub use scenario::{Answering, Scenario, scenarios};
pub use world::World;

/// What one process did before it ended or was cut off.
pub enum Attempt {
    /// The run is over.
    Finished(Box<Run>),
    /// The store vanished under it: the process counts as dead.
    CutOff,
}

/// How many times a scenario may go round before it counts as stuck.
const ROUNDS_MAX: usize = 64;

/// The lease of the scenarios' runs.
pub const LEASE: Duration = Duration::from_secs(10);

/// Plays a scenario in one process: starts or resumes its run, answers what is asked, until it is over or cut off.
pub async fn play(
    scenario: &Scenario,
    run: RunId,
    store: Arc<dyn Store>,
    clock: &TestClock,
    world: &World,
    acknowledged: &mut Acknowledged,
) -> Attempt {
    let runtime = runtime(scenario, store, clock, world);
    for _ in 0..ROUNDS_MAX {
        let stopped = step(&runtime, scenario, run, world).await;
        match stopped {
            Ok(run) if run.end().is_some() => return Attempt::Finished(Box::new(run)),
            Ok(paused) => {
                if person::answer(&runtime, scenario, &paused, clock, world, acknowledged).await.is_err() {
                    return Attempt::CutOff;
                }
            }
            // Whoever moved it is dead; its lease runs out.
            Err(RunError::Refused(Refusal::RunBusy { .. })) => clock.advance(LEASE * 2),
            Err(RunError::Refused(refusal)) => panic!("{}: refused: {refusal}", scenario.name),
            Err(RunError::Fault(_)) => return Attempt::CutOff,
        }
    }
    panic!("{}: stuck", scenario.name)
}

fn runtime(scenario: &Scenario, store: Arc<dyn Store>, clock: &TestClock, world: &World) -> Runtime {
    let settings = Settings {
        lease: LEASE,
        pause_deadline: scenario.pause_deadline,
        owner: format!("process-{}", world.next_process()),
        // The store never comes back to this process.
        doubt_patience: Duration::ZERO,
        ..Settings::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(Untimed(clock.clone()));
    Runtime::builder(store).model(scenario.model()).clock(clock).settings(settings).build()
}

/// Starts the run if nothing of it is stored, otherwise goes on with it.
async fn step(runtime: &Runtime, scenario: &Scenario, run: RunId, world: &World) -> Result<Run, RunError> {
    let graph = scenario.agent(world).graph()?;
    match runtime.resume_run(run, graph.clone(), DriveOptions::default()).await {
        Err(RunError::Refused(Refusal::RunNotFound(_))) => {
            let start = StartRun {
                graph,
                content: Content::Text(scenario.input.to_owned()),
                session: Some(scenario.session()),
                turns_max: Some(10),
                by: ActorId::local(),
                options: DriveOptions { commit_first: scenario.commit_first, ..DriveOptions::default() },
                only_owner: false,
                run: Some(run),
            };
            runtime.start_run(start).await
        }
        resumed => resumed,
    }
}

/// Outcomes are written at once, without waiting for company: every scenario has as many cuts as it can.
struct Untimed(TestClock);

impl Clock for Untimed {
    fn now(&self) -> holdpoint_core::time::Timestamp {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) -> futures_util::future::BoxFuture<'static, ()> {
        if duration < Duration::from_millis(100) {
            // Long enough for a model that replies at once to be seen first, and for nothing else.
            return Box::pin(tokio::task::yield_now());
        }
        Clock::sleep(&self.0, duration)
    }
}
