//! A run is started, decided and driven over a store whose connection is lost at the worst moments, and comes back. Nobody
//! is told of a fault, nothing happens twice, and nothing is left in doubt.
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::event::RunEnd;
use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::message::Content;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::run::Run;
use holdpoint_runtime::ports::store::Store;
use holdpoint_runtime::settings::Settings;
use holdpoint_runtime::use_cases::StartRun;
use holdpoint_runtime::{DriveOptions, Runtime};

use super::{Scenario, World, scenarios};
use crate::servers::{Proxy, When};

/// A store that is reached by a road which can be cut.
pub struct Road<'a> {
    /// The store, going by the database's clock.
    pub store: Arc<dyn Store>,
    /// The road to its database.
    pub proxy: &'a Proxy,
    /// What a message has in it that commits.
    pub commit: &'static [u8],
    /// What its answer has in it.
    pub committed: &'static [u8],
    /// How many connections are turned away before the road is mended: more than the store tries by itself before it says
    /// that it does not know.
    pub turned_away: u32,
}

impl Road<'_> {
    /// Does something while the connection is lost at its `number`-th commit, counted from zero, and mends the road once
    /// the store has given up; says whether it was cut.
    async fn lost<T>(&self, number: u32, when: When, doing: impl Future<Output = T>) -> (T, bool) {
        let (cuts, away) = (self.proxy.cuts(), self.proxy.turned_away());
        self.proxy.cut_at(self.commit, number, when, true);
        let mend = async {
            while self.proxy.turned_away() < away + self.turned_away {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            self.proxy.mend();
            std::future::pending::<()>().await;
        };
        let done = tokio::select! {
            done = doing => done,
            () = mend => unreachable!("it waits for ever"),
        };
        self.proxy.mend();
        self.proxy.forget();
        (done, self.proxy.cuts() > cuts)
    }

    fn runtime(&self, scenario: &Scenario) -> Runtime {
        // As long as it takes: the database comes back.
        let settings = Settings { doubt_patience: Duration::from_secs(60), ..Settings::default() };
        Runtime::builder(Arc::clone(&self.store)).model(scenario.model()).settings(settings).build()
    }
}

/// Starts, decides and finishes runs, and loses the connection once in each, at every commit that it makes: before the
/// database has seen it, and after it has answered.
///
/// # Panics
/// Something that must hold does not.
pub async fn everything_comes_true_once(road: &Road<'_>, scenario: &str) {
    let scenario = scenarios().into_iter().find(|known| known.name == scenario).unwrap();
    for when in [When::Before, When::After(road.committed)] {
        let mut number = 0;
        while plays(road, &scenario, number, when).await {
            number += 1;
        }
        assert!(number >= 3, "{when:?}: only {number} commits");
    }
}

/// Plays the scenario; says whether there was such a commit.
async fn plays(road: &Road<'_>, scenario: &Scenario, number: u32, when: When) -> bool {
    let place = format!("{} cut at commit {number} {when:?}", scenario.name);
    let (world, runtime) = (World::in_memory(), road.runtime(scenario));
    let id = runtime.name_run();
    let (run, was_cut) = road.lost(number, when, whole(&runtime, scenario, &world, id)).await;
    match run.end() {
        Some(RunEnd::Done(output)) => assert_eq!(output.to_text(), scenario.output, "{place}"),
        end => panic!("{place}: the run ended as {end:?}"),
    }
    assert!(run.pauses().iter().all(|pause| pause.kind != PauseKind::InDoubt), "{place}: something is in doubt");
    for effect in world.effects() {
        assert_eq!(world.count(&effect.key), 1, "{place}: {} took effect twice", effect.key);
    }
    assert!(!world.effects().is_empty(), "{place}: nothing took effect");
    let stored = road.store.load(id, 0).await.unwrap().unwrap();
    let folded = Run::fold(id, stored.entries.iter().flat_map(holdpoint_core::record::Entry::timed));
    assert_eq!(folded, run, "{place}: what is stored is what was told");
    was_cut
}

/// A run from its start to its end, with every question approved.
async fn whole(runtime: &Runtime, scenario: &Scenario, world: &World, id: RunId) -> Run {
    let graph = scenario.agent(world).graph().unwrap();
    let start = StartRun {
        graph: Arc::clone(&graph),
        content: Content::Text(scenario.input.to_owned()),
        session: None,
        turns_max: Some(10),
        by: ActorId::local(),
        options: DriveOptions { commit_first: true, commit_before_models: true, ..DriveOptions::default() },
        only_owner: false,
        run: Some(id),
    };
    let mut run = runtime.start_run(start).await.unwrap();
    while run.end().is_none() {
        for pause in run.open_pauses() {
            let decision = DecisionInput::new(pause.id(), Decision::Approve, ActorId::local());
            assert!(!runtime.decide_pause(decision).await.unwrap().is_repeat, "it is told who decided: this one");
        }
        let options = DriveOptions { commit_before_models: true, ..DriveOptions::default() };
        run = runtime.resume_run(id, Arc::clone(&graph), options).await.unwrap();
    }
    run
}
