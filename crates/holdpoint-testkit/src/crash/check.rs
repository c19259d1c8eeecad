//! What must hold when a scenario is over, wherever it was cut.

use std::sync::Arc;

use holdpoint_core::audit::AuditNote;
use holdpoint_core::decision::Decision;
use holdpoint_core::event::{RunEnd, RunEvent};
use holdpoint_core::ids::CallPath;
use holdpoint_core::pause::{PauseState, Subject};
use holdpoint_core::record::{Entry, replay};
use holdpoint_core::run::Run;
use holdpoint_core::tool::Outcome;
use holdpoint_runtime::ports::store::{PAGE_MAX, PauseFilter, Store};

use crate::crash::{Acknowledged, Answering, Scenario, World};

/// Checks a finished scenario; `place` says where it was cut.
///
/// # Panics
/// Something that must hold does not.
pub async fn check(
    scenario: &Scenario,
    place: &str,
    run: &Run,
    store: &Arc<dyn Store>,
    world: &World,
    acknowledged: &Acknowledged,
) {
    let place = format!("{} {place}", scenario.name);
    match run.end() {
        Some(RunEnd::Done(output)) => assert_eq!(output.to_text(), scenario.output, "{place}: the output"),
        end => panic!("{place}: the run ended as {end:?}"),
    }
    for (pause, decision) in &acknowledged.decisions {
        match &run.pause(*pause).expect("an acknowledged pause is there").state {
            PauseState::Decided(decided) => assert_eq!(&decided.decision, decision, "{place}: a confirmed decision"),
            state => panic!("{place}: a confirmed decision became {state:?}"),
        }
    }
    let loaded = store.load(run.id(), 0).await.expect("the store answers").expect("the run is there");
    let replayed = replay(run.id(), &loaded.entries).unwrap_or_else(|refusal| panic!("{place}: {refusal}"));
    assert_eq!(&replayed, run, "{place}: the journal tells the same run");
    check_numbers(&place, scenario, store).await;
    check_effects(&place, scenario, run, &loaded.entries, world);
    check_audit(&place, run, &loaded.entries, store).await;
    let open = store.list_pauses(&PauseFilter::open()).await.expect("the store answers");
    assert!(open.is_empty(), "{place}: {open:?} is still in the inbox");
    assert!(store.claimable(8).await.expect("the store answers").is_empty(), "{place}: something is left to do");
}

/// Event numbers of the session are dense.
async fn check_numbers(place: &str, scenario: &Scenario, store: &Arc<dyn Store>) {
    let entries = store.session_entries(&scenario.session(), 1, 10_000).await.expect("the store answers");
    let mut next = 1;
    for (_, entry) in entries {
        assert_eq!(entry.seq, next, "{place}: event numbers");
        next += entry.events.len() as u64;
    }
}

/// Every decision is in the audit once, in order, and the chain is whole.
async fn check_audit(place: &str, run: &Run, entries: &[Entry], store: &Arc<dyn Store>) {
    let records = store.audit(0, PAGE_MAX).await.expect("the store answers");
    let mut last = None;
    for record in &records {
        assert!(record.follows(last), "{place}: audit record {} does not follow", record.n);
        last = Some((record.n, record.hash));
    }
    let notes = records.iter().map(|record| record.note().expect("a note of ours"));
    let told: Vec<AuditNote> = notes.filter(|note| note.run == run.id()).collect();
    let happened = entries.iter().flat_map(Entry::timed).filter_map(|(event, at)| AuditNote::of(run, event, at));
    assert_eq!(told, happened.collect::<Vec<_>>(), "{place}: the audit tells what the journal tells");
}

/// Every call took effect as often as the journal says it may have, with the arguments that were approved.
fn check_effects(place: &str, scenario: &Scenario, run: &Run, entries: &[Entry], world: &World) {
    let events = || entries.iter().flat_map(|entry| entry.events.iter());
    for event in events() {
        let RunEvent::CallAnswered(answered) = event else { continue };
        let key = format!("{}:{}", run.id(), answered.call);
        let count = world.count(&key);
        let is_told_to_repeat = run.pauses().iter().any(|pause| {
            let is_about = matches!(&pause.subject, Subject::Call { path, .. } if *path == answered.call);
            let repeats =
                matches!(&pause.state, PauseState::Decided(decided) if decided.decision == Decision::RunAgain);
            is_about && repeats
        });
        let started = events().filter(|event| is_start_of(event, &answered.call)).count();
        let runs_an_agent = started == 0 || !scenario.counts(&answered.call);
        match &answered.outcome {
            Outcome::Result(_) if runs_an_agent => {}
            Outcome::Result(_) if scenario.repeats => assert!(count >= 1, "{place}: {key} took effect {count} times"),
            Outcome::Result(_) => {
                assert_eq!(count, 1, "{place}: {key} took effect {count} times ({is_told_to_repeat})")
            }
            Outcome::Denied(_) | Outcome::Expired | Outcome::Responded(_) => {
                assert_eq!(count, 0, "{place}: {key} was turned down and took effect");
            }
            // In doubt after the crash, and closed by a message before anybody could look.
            Outcome::Abandoned if matches!(scenario.answering, Answering::Instead(_)) => {
                assert!(count <= 1, "{place}: {key} took effect {count} times");
            }
            outcome => panic!("{place}: {key} came to {outcome:?}"),
        }
    }
    for effect in world.effects() {
        assert!(
            scenario.allowed_arguments.is_empty() || scenario.allowed_arguments.contains(&effect.arguments.as_str()),
            "{place}: {} ran with {}",
            effect.tool,
            effect.arguments
        );
    }
}

fn is_start_of(event: &RunEvent, call: &CallPath) -> bool {
    matches!(event, RunEvent::CallStarted(started) if started.call == *call)
}
