//! Sessions at random: several runs at once, replies that break off and begin again, decisions through every door. What is
//! shown live and what is told again are the same, wherever a client leaves and comes back.

use super::super::super::history;
use super::super::{Fact, Live, Projection};
use super::client::Client;
use super::walk::Walk;
use holdpoint_runtime::use_cases::WatchItem;

const WALKS: u64 = 60;

#[test]
fn live_and_replay_agree_after_every_event_and_from_every_place() {
    let mut seen = Seen::default();
    for seed in seeds() {
        println!("seed {seed}");
        let walk = Walk::from(seed);
        seen.rewinds += watch(&walk);
        seen.drafts += shown_drafts(&walk);
        resume(&walk);
        seen.add(&walk);
    }
    // A walk that meets nothing proves nothing.
    assert!(seen.is_rich(), "{seen:?}");
}

/// One seed where `HOLDPOINT_SEED` names it, else a fixed list.
fn seeds() -> Vec<u64> {
    match std::env::var("HOLDPOINT_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..WALKS).collect(),
    }
}

/// A client that watches from the beginning is compared with one that is told again, after every event.
fn watch(walk: &Walk) -> usize {
    let (mut truth, mut live) = (walk.session.empty(), walk.session.watching());
    let (mut told_again, mut watching) = (Client::default(), Client::default());
    for item in &walk.session.items {
        let facts = truth.take(item);
        told_again.take_all(&events(facts));
        watching.take_all(&live.take(item));
        let head = truth.head_seq();
        assert_eq!(told_again.cursor, head);
        if matches!(item, WatchItem::Event { .. }) {
            assert_eq!(watching.up_to(head), told_again.up_to(head));
        }
    }
    watching.rewinds
}

fn shown_drafts(walk: &Walk) -> usize {
    let mut live = walk.session.watching();
    let mut client = Client::default();
    let mut shown = 0;
    for item in &walk.session.items {
        client.take_all(&live.take(item));
        shown += client.drafts().len();
    }
    shown
}

/// A client that comes back, wherever it left, has in the end what one has that never left.
fn resume(walk: &Walk) {
    let whole = walk.session.replay();
    let mut told_again = Client::default();
    told_again.take_all(&whole);
    let head = told_again.cursor;
    for after in 0..=head {
        // It comes back when all is over, or while things go on.
        for begin in [walk.session.items.len(), first_with(walk, after)] {
            let mut client = told_again.cut(after);
            let mut live = Live::new(walk.session.empty(), after);
            let (past, coming) = walk.session.items.split_at(begin);
            past.iter().for_each(|item| client.take_all(&live.take(item)));
            client.take_all(&live.caught_up());
            assert_eq!(client.rewinds, 0);
            coming.iter().for_each(|item| client.take_all(&live.take(item)));
            assert_eq!(client.up_to(head), told_again.up_to(head), "after {after}");
        }
    }
    leave_in_the_middle(walk, &told_again);
}

/// Behind which item a number is reached.
fn first_with(walk: &Walk, seq: u64) -> usize {
    let mut truth = walk.session.empty();
    let mut reached = walk.session.items.iter().map(|item| {
        truth.take(item);
        truth.head_seq()
    });
    reached.position(|head| head >= seq).map_or(0, |place| place + 1)
}

/// A client leaves while somebody speaks, and comes back at once with the number that it was shown.
fn leave_in_the_middle(walk: &Walk, told_again: &Client) {
    for leave_at in (0..walk.session.items.len()).step_by(7) {
        let (before, after) = walk.session.items.split_at(leave_at);
        let (mut first, mut client) = (walk.session.watching(), Client::default());
        before.iter().for_each(|item| client.take_all(&first.take(item)));
        let mut client = client.cut(client.cursor);
        let mut second = Live::new(walk.session.empty(), client.cursor);
        for item in before.iter().filter(|item| matches!(item, WatchItem::Event { .. })) {
            client.take_all(&second.take(item));
        }
        client.take_all(&second.caught_up());
        after.iter().for_each(|item| client.take_all(&second.take(item)));
        let head = told_again.cursor;
        assert_eq!(client.up_to(head), told_again.up_to(head));
    }
}

#[test]
fn what_is_told_is_well_formed_and_the_history_says_the_same() {
    for seed in seeds() {
        println!("seed {seed}");
        let walk = Walk::from(seed);
        let facts = walk.session.facts();
        super::shape::check(&facts, &walk.session.projection());
        history::testing::check(&facts, &walk.session.projection());
    }
}

#[test]
fn what_is_open_is_what_the_runs_wait_for() {
    for seed in seeds() {
        println!("seed {seed}");
        let walk = Walk::from(seed);
        let projection: Projection = walk.session.projection();
        let asked = projection.open().flat_map(|request| request.open_asks()).map(|ask| ask.pause);
        let mut asked: Vec<_> = asked.collect();
        let waiting = walk.session.runs.iter().flat_map(|run| run.open_pauses());
        // A call of the same turn may still be looked at; then its request is not made yet.
        let is_asked = |run: &holdpoint_core::Run, path: &holdpoint_core::ids::CallPath| {
            let turn = run.frame(&path.frame()).and_then(|frame| frame.turn());
            turn.is_none_or(|turn| {
                turn.calls.iter().all(|call| call.state != holdpoint_core::tool::CallState::Requested)
            })
        };
        let mut expected: Vec<_> = waiting
            .filter(|view| {
                let run = walk.session.runs.iter().find(|run| run.id() == view.id().run).unwrap();
                view.call.as_ref().is_none_or(|call| is_asked(run, &call.path))
            })
            .map(|view| view.id())
            .collect();
        asked.sort();
        expected.sort();
        assert_eq!(asked, expected);
    }
}

fn events(facts: Vec<Fact>) -> Vec<super::super::super::wire::events::Event> {
    facts.into_iter().flat_map(Fact::into_events).collect()
}

/// What the walks met.
#[derive(Debug, Default)]
struct Seen {
    rewinds: usize,
    drafts: usize,
    requests: usize,
    settled: usize,
    nested: usize,
    ended: usize,
}

impl Seen {
    fn add(&mut self, walk: &Walk) {
        let told = walk.session.told_in_short();
        let count = |what: &str| told.iter().filter(|line| line.contains(what)).count();
        self.requests += count("approval_request");
        self.settled += count("approval_resolved");
        self.ended += count("message_stop");
        self.nested += walk
            .session
            .replay()
            .iter()
            .filter(|event| super::super::testing::json(event)["content_block"]["subagent"].is_object())
            .count();
    }

    fn is_rich(&self) -> bool {
        let counts = [self.rewinds, self.drafts, self.requests, self.settled, self.nested, self.ended];
        std::env::var("HOLDPOINT_SEED").is_ok() || counts.into_iter().all(|count| count > 20)
    }
}
