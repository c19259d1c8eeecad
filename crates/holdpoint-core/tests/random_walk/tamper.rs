//! Journals that somebody laid hands on.

use std::sync::Arc;

use holdpoint_core::Run;
use holdpoint_core::event::RunEvent;
use holdpoint_core::record::{self, Entry};

use crate::common::run_id;
use crate::dice::Dice;
use crate::walk;
use crate::watch::{Problem, Watch};

/// Whether a careful reader refuses the journal of a walk after it was tampered with; a problem where the reader accepts
/// what the watcher would not.
pub fn is_refused(seed: u64, times: u64) -> Result<bool, Problem> {
    let mut dice = Dice::new(seed ^ (times << 48) ^ 0x7a3b);
    let mut entries = walk::journal(seed);
    tamper(&mut dice, seed, &mut entries);
    // Folding is for journals that are trusted; it must still not panic.
    let folded = Run::fold(run_id(1), entries.iter().flat_map(Entry::timed));
    let step = folded.next_step();
    let Ok(run) = record::replay(run_id(1), &entries) else { return Ok(true) };
    assert!(run == folded && run.next_step() == step, "reading and folding differ");
    let mut watch = Watch::default();
    let events = entries.iter().flat_map(|entry| entry.events.iter());
    events.map(|event| watch.see_event(event)).find(Result::is_err).unwrap_or(Ok(()))?;
    Ok(false)
}

fn tamper(dice: &mut Dice, seed: u64, entries: &mut [Entry]) {
    let index = dice.below(entries.len());
    let mut events: Vec<RunEvent> = entries[index].events.to_vec();
    let at = dice.below(events.len());
    match dice.below(6) {
        0 => drop(events.remove(at)),
        1 => events.insert(at, events[at].clone()),
        2 => {
            let to = dice.below(events.len());
            events.swap(at, to);
        }
        3 => {
            // Something that happened elsewhere in the same run.
            let other = dice.below(entries.len());
            let from = entries[other].events.clone();
            events.insert(at, dice.pick(&from).clone());
        }
        4 => {
            // Something that happened in another run.
            let others = walk::journal(seed + 1);
            let from = dice.pick(&others).events.clone();
            events.insert(at, dice.pick(&from).clone());
        }
        _ => {
            let other = dice.below(entries.len());
            let (one, two) = (entries[index].events.clone(), entries[other].events.clone());
            (entries[index].events, entries[other].events) = (two, one);
            return;
        }
    }
    entries[index].events = Arc::from(events);
}
