//! Crash at every write, for real: a test's program is started once more as a child, which is killed with -9 at one of its
//! writes, and what it left behind goes on to the end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::Store;

use super::{Acknowledged, Attempt, Cut, CutStore, Scenario, World, check, play, scenarios};
use crate::clock::TestClock;

/// Tells a test binary that it is the child; holds the folder, the scenario, the write and the cut.
const CHILD: &str = "HOLDPOINT_CRASH_CHILD";

/// What the child says when the cut is reached.
const REACHED: &str = "holdpoint: the cut is reached";

/// What the child says when it came to its end first.
const FINISHED: &str = "holdpoint: the run is over";

/// The run of every scenario.
///
/// # Panics
/// Never: the id is one.
pub fn run_id() -> RunId {
    "run_0198c0ffee007000800000000000beef".parse().expect("an id")
}

/// The clock of a process that begins so many hours after the first.
pub fn clock_at(hours: u64) -> TestClock {
    let clock = TestClock::at(Timestamp::from_millis(1_794_735_000_000));
    clock.advance(Duration::from_secs(3_600 * hours));
    clock
}

/// The scenario of this name.
///
/// # Panics
/// There is none.
pub fn scenario(name: &str) -> Scenario {
    scenarios().into_iter().find(|scenario| scenario.name == name).unwrap_or_else(|| panic!("no scenario {name}"))
}

/// What a scenario leaves in a folder, for the next process to find.
fn left_in(folder: &Path) -> (World, Acknowledged) {
    (World::in_file(&folder.join("world")), Acknowledged::in_file(&folder.join("acknowledged")))
}

/// Plays until it is killed, where this process is the child; does nothing where it is not. `open` opens the store that
/// the child writes to, in a folder.
///
/// # Panics
/// What the child was told cannot be read.
pub fn be_the_child<F>(open: impl FnOnce(PathBuf, TestClock) -> F)
where
    F: Future<Output = Arc<dyn Store>>,
{
    let Ok(order) = std::env::var(CHILD) else { return };
    let fields: Vec<&str> = order.split('|').collect();
    let [folder, name, write, cut] = fields[..] else { panic!("{order}") };
    let (folder, write) = (PathBuf::from(folder), write.parse().expect("the number of a write"));
    let cut = Cut::ALL.into_iter().find(|known| format!("{known:?}") == cut).expect("a cut");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(async move {
        let clock = clock_at(0);
        let reached = Arc::new(|cut| {
            tell(REACHED);
            // Torn: the write goes its way while the signal comes. Otherwise this is where it ends.
            if cut != Cut::Torn {
                stand_still();
            }
        });
        let store = CutStore::cutting(open(folder.clone(), clock.clone()).await, write, cut, reached);
        let (world, mut acknowledged) = left_in(&folder);
        match play(&scenario(name), run_id(), store, &clock, &world, &mut acknowledged).await {
            Attempt::CutOff => stand_still(),
            // Outcomes that come together are written together: now and then a run has fewer writes than were counted.
            Attempt::Finished(_) => tell(FINISHED),
        }
    });
}

/// Says something to the parent, on a line of its own.
fn tell(what: &str) {
    println!("\n{what}");
    std::io::stdout().flush().expect("the parent listens");
}

fn stand_still() -> ! {
    loop {
        std::thread::park();
    }
}

/// Starts the child, waits for the cut, and kills with -9; says whether the cut came. `test` is the name of the test that
/// calls [`be_the_child`], and `environment` what it needs to know beside its folder.
///
/// # Panics
/// The child does not start, or ends before the cut.
pub fn kill_child(
    test: &str,
    environment: &[(&str, String)],
    folder: &Path,
    scenario: &Scenario,
    (write, cut): (u32, Cut),
) -> bool {
    let order = format!("{}|{}|{write}|{cut:?}", folder.display(), scenario.name);
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, order)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .spawn();
    kill_at_cut(child.expect("the child starts"), &format!("killed {cut:?} write {write}"))
}

fn kill_at_cut(mut child: Child, place: &str) -> bool {
    let mut lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines().map_while(Result::ok);
    let said = lines.find(|line| line == REACHED || line == FINISHED);
    let is_cut = said.unwrap_or_else(|| panic!("{place}: the child ended before the cut")) == REACHED;
    child.kill().expect("the child can be killed");
    child.wait().expect("the child ends");
    is_cut
}

/// Goes on with what a killed process left behind, a day later, to the end; gives what there is to check.
///
/// # Panics
/// The store vanished.
pub async fn go_on(
    scenario: &Scenario,
    place: &str,
    folder: &Path,
    store: &Arc<dyn Store>,
    clock: &TestClock,
) -> (Box<Run>, World, Acknowledged) {
    let (world, mut acknowledged) = left_in(folder);
    match play(scenario, run_id(), store.clone(), clock, &world, &mut acknowledged).await {
        Attempt::Finished(run) => (run, world, acknowledged),
        Attempt::CutOff => panic!("{place}: the store vanished after the restart"),
    }
}

/// How often a scenario writes that nobody cuts; it is checked as well.
///
/// # Panics
/// Something that must hold does not.
pub async fn count_writes(scenario: &Scenario, store: Arc<dyn Store>, clock: &TestClock) -> u32 {
    let (world, mut acknowledged) = (World::in_memory(), Acknowledged::default());
    let counting = CutStore::counting(store.clone());
    let attempt = play(scenario, run_id(), counting.clone(), clock, &world, &mut acknowledged).await;
    let Attempt::Finished(run) = attempt else { panic!("{}: cut off without a cut", scenario.name) };
    check(scenario, "uncut", &run, &store, &world, &acknowledged).await;
    counting.writes()
}
