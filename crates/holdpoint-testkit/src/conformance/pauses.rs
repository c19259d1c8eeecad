//! Pauses: their shared numbers, the inbox page by page, and deadlines that are never early.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::PauseId;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, PauseFilter, PauseRow, PauseStatus, RunStatus, Store};

use super::{RunPen, Trial, sample};

pub async fn pauses_that_open_together_share_a_number(trial: &Trial) {
    let run = trial.run(1, "s");
    assert_eq!(trial.begin_paused(&run, 3).await.pause_group, Some(1));
    let groups: Vec<u64> = open(trial).await.iter().map(|row| row.group).collect();
    assert_eq!(groups, [1, 1, 1]);
    assert_eq!(trial.load(run.id).await.entries[0].pause_group, Some(1));
}

pub async fn each_opening_in_a_session_has_the_next_number(trial: &Trial) {
    let (ana, bob) = (trial.run_of(1, "s", "Ana"), trial.run_of(2, "s", "Bob"));
    assert_eq!(trial.begin_paused(&ana, 1).await.pause_group, Some(1));
    assert_eq!(trial.begin(&bob).await.pause_group, None);
    assert_eq!(trial.begin_paused(&trial.run(3, "elsewhere"), 1).await.pause_group, Some(1));
    let pauses = vec![trial.pause(&bob, 1)];
    let second = trial.ok(Append { pauses, ..trial.append(&bob, 1, [sample::opened(1, None)]) }).await;
    assert_eq!(second.pause_group, Some(2));
    let changed = PauseRow { status: PauseStatus::Decided, ..trial.pause(&ana, 1) };
    let pauses = vec![changed, trial.pause(&ana, 2)];
    let events = [sample::decided(1), sample::opened(2, None)];
    assert_eq!(trial.ok(Append { pauses, ..trial.append(&ana, 1, events) }).await.pause_group, Some(3));
    let groups: Vec<Option<u64>> = trial.entries("s").await.iter().map(|(_, entry)| entry.pause_group).collect();
    assert_eq!(groups, [Some(1), None, Some(2), Some(3)]);
    let all = PauseFilter { status: None, session: Some(ana.session.clone()), ..PauseFilter::open() };
    let mut rows = trial.store.list_pauses(&all).await.unwrap();
    rows.sort_by_key(|row| row.id);
    let groups: Vec<(PauseId, u64)> = rows.iter().map(|row| (row.id, row.group)).collect();
    let id = |run: &RunPen, number| PauseId { run: run.id, number };
    assert_eq!(groups, [(id(&ana, 1), 1), (id(&ana, 2), 3), (id(&bob, 1), 2)]);
}

pub async fn a_pause_keeps_its_number_when_it_is_decided(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin_paused(&run, 2).await;
    let appended = settle(trial, &run, 1, 1, PauseStatus::Decided).await.unwrap();
    assert_eq!(appended, 2);
    let all = PauseFilter { status: None, ..PauseFilter::open() };
    let rows = trial.store.list_pauses(&all).await.unwrap();
    let standing: Vec<_> = rows.iter().map(|row| (row.id.number, row.status, row.group)).collect();
    assert_eq!(standing, [(1, PauseStatus::Decided, 1), (2, PauseStatus::Open, 1)]);
    assert_eq!(open(trial).await.len(), 1);
}

/// Decides or expires a pause; gives the run's new revision.
async fn settle(
    trial: &Trial,
    run: &RunPen,
    expected: u64,
    number: u32,
    status: PauseStatus,
) -> Result<u64, AppendError> {
    let event = if status == PauseStatus::Expired { sample::expired(number) } else { sample::decided(number) };
    let append = Append {
        pauses: vec![PauseRow { status, ..trial.pause(run, number) }],
        ..trial.append(run, expected, [event])
    };
    trial.store.append(append).await.map(|appended| appended.revision)
}

async fn open(trial: &Trial) -> Vec<PauseRow> {
    trial.store.list_pauses(&PauseFilter::open()).await.unwrap()
}

pub async fn a_pause_comes_back_as_it_was_written(trial: &Trial) {
    let run = trial.run(1, "s");
    let kinds = [PauseKind::Approval, PauseKind::Question, PauseKind::Confirmation, PauseKind::InDoubt];
    let statuses = [PauseStatus::Open, PauseStatus::Decided, PauseStatus::Expired, PauseStatus::Withdrawn];
    let rows: Vec<PauseRow> = (1..)
        .zip(kinds.into_iter().zip(statuses))
        .map(|(number, (kind, status))| PauseRow {
            kind,
            status,
            agent: sample::agent("Support/transfer_to_billing/ask_ledger"),
            tool: (kind != PauseKind::Confirmation).then(|| sample::tool("mcp:ledger.write")),
            expires_at: (number > 1).then(|| trial.clock.now().after(Duration::from_millis(u64::from(number)))),
            ..trial.pause(&run, number)
        })
        .collect();
    trial.ok(trial.opening(&run, rows.clone())).await;
    let expected: Vec<PauseRow> = rows.into_iter().map(|row| PauseRow { group: 1, ..row }).collect();
    let all = PauseFilter { status: None, ..PauseFilter::open() };
    assert_eq!(trial.store.list_pauses(&all).await.unwrap(), expected);
}

pub async fn a_pause_is_of_the_agent_that_asks(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    // After a hand-off the writer may name another agent than the one that began; the run is still the first one's.
    let billing = trial.run_of(1, "s", "Support/transfer_to_billing");
    let pauses = vec![trial.pause(&billing, 1), trial.pause(&run, 2)];
    let events = [sample::opened(1, None), sample::opened(2, None)];
    trial.ok(Append { pauses, ..trial.append(&billing, 1, events) }).await;
    let agents: Vec<_> = open(trial).await.into_iter().map(|row| row.agent).collect();
    assert_eq!(agents, [billing.agent, run.agent.clone()]);
    assert_eq!(trial.load(run.id).await.agent, run.agent);
}

pub async fn a_settled_pause_keeps_what_was_asked(trial: &Trial) {
    let run = trial.run(1, "s");
    let asked = PauseRow {
        agent: sample::agent("Support/transfer_to_billing"),
        expires_at: Some(trial.clock.now().after(Duration::from_secs(60))),
        ..trial.pause(&run, 1)
    };
    trial.ok(trial.opening(&run, vec![asked.clone()])).await;
    trial.clock.advance(Duration::from_secs(1));
    // Who settles it may no longer know: the frame that asked can be gone.
    let settled = PauseRow {
        status: PauseStatus::Withdrawn,
        kind: PauseKind::InDoubt,
        tool: None,
        expires_at: None,
        ..trial.pause(&run, 1)
    };
    trial.ok(Append { pauses: vec![settled], ..trial.append(&run, 1, [sample::said("settled")]) }).await;
    let all = PauseFilter { status: None, ..PauseFilter::open() };
    let expected = PauseRow { status: PauseStatus::Withdrawn, group: 1, ..asked };
    assert_eq!(trial.store.list_pauses(&all).await.unwrap(), [expected]);
}

pub async fn pauses_are_listed_oldest_first(trial: &Trial) {
    // The ids go down while time goes on.
    for number in (1..=5).rev() {
        trial.begin_paused(&trial.run(number, &format!("s{number}")), 1).await;
        trial.clock.advance(Duration::from_millis(1));
    }
    let listed: Vec<_> = open(trial).await.iter().map(|row| row.id.run).collect();
    assert_eq!(listed, [5, 4, 3, 2, 1].map(sample::run_id));
}

pub async fn pauses_are_listed_by_status_session_agent_and_tool(trial: &Trial) {
    let rows = [
        (1, "s", "Ana", Some("read"), PauseStatus::Open),
        (2, "s", "Bob", Some("write"), PauseStatus::Open),
        (3, "t", "Ana", Some("write"), PauseStatus::Decided),
        (4, "t", "Bob", None, PauseStatus::Open),
        (5, "u", "Ana", Some("write"), PauseStatus::Withdrawn),
    ];
    for (number, session, agent, tool, status) in rows {
        let run = trial.run_of(number, session, agent);
        let row = PauseRow { tool: tool.map(sample::tool), status, ..trial.pause(&run, 1) };
        trial.ok(trial.opening(&run, vec![row])).await;
        trial.clock.advance(Duration::from_millis(1));
    }
    let any = PauseFilter { status: None, ..PauseFilter::open() };
    let session = |name| Some(sample::session(name));
    let agent = |name| Some(sample::agent(name));
    let tool = |name| Some(sample::tool(name));
    for (filter, expected) in [
        (any.clone(), vec![1, 2, 3, 4, 5]),
        (PauseFilter::open(), vec![1, 2, 4]),
        (PauseFilter { status: Some(PauseStatus::Withdrawn), ..any.clone() }, vec![5]),
        (PauseFilter { status: Some(PauseStatus::Expired), ..any.clone() }, vec![]),
        (PauseFilter { session: session("t"), ..any.clone() }, vec![3, 4]),
        (PauseFilter { session: session("t"), ..PauseFilter::open() }, vec![4]),
        (PauseFilter { session: session("nobody"), ..any.clone() }, vec![]),
        (PauseFilter { agent: agent("Ana"), ..any.clone() }, vec![1, 3, 5]),
        (PauseFilter { agent: agent("Ana"), ..PauseFilter::open() }, vec![1]),
        (PauseFilter { agent: agent("Nobody"), ..any.clone() }, vec![]),
        (PauseFilter { tool: tool("write"), ..any.clone() }, vec![2, 3, 5]),
        (PauseFilter { tool: tool("nothing"), ..any.clone() }, vec![]),
        (
            PauseFilter { session: session("s"), agent: agent("Bob"), tool: tool("write"), ..PauseFilter::open() },
            vec![2],
        ),
        (PauseFilter { session: session("s"), agent: agent("Bob"), tool: tool("read"), ..any.clone() }, vec![]),
    ] {
        let listed = trial.store.list_pauses(&filter).await.unwrap();
        let runs: Vec<_> = listed.iter().map(|row| row.id.run).collect();
        assert_eq!(runs, expected.into_iter().map(sample::run_id).collect::<Vec<_>>(), "{filter:?}");
    }
}

pub async fn pages_follow_without_gap_or_duplicate_while_pauses_open(trial: &Trial) {
    let mut opened = 0;
    let mut listed = Vec::new();
    let mut filter = PauseFilter { limit: 7, ..PauseFilter::open() };
    loop {
        // Two runs with two pauses each open between the pages, in the same moment, the later id first.
        if opened < 40 {
            for number in [opened + 2, opened + 1] {
                trial.begin_paused(&trial.run(number, &format!("s{number}")), 2).await;
            }
            opened += 2;
            trial.clock.advance(Duration::from_millis(1));
        }
        let page = trial.store.list_pauses(&filter).await.unwrap();
        assert!(page.len() <= 7);
        match page.last() {
            Some(last) => filter.after = Some(last.cursor()),
            None if opened == 40 => break,
            None => {}
        }
        listed.extend(page.into_iter().map(|row| row.id));
    }
    assert_eq!(listed.len(), 80);
    listed.sort();
    listed.dedup();
    assert_eq!(listed.len(), 80);
}

pub async fn pauses_of_one_moment_are_paged_exactly(trial: &Trial) {
    for number in [4, 2, 5, 1, 3] {
        trial.begin_paused(&trial.run(number, &format!("s{number}")), 3).await;
    }
    let expected: Vec<PauseId> =
        (1..=5).flat_map(|run| (1..=3).map(move |number| PauseId { run: sample::run_id(run), number })).collect();
    assert_eq!(all_pages(trial, PauseFilter { limit: 2, ..PauseFilter::open() }).await, expected);
}

async fn all_pages(trial: &Trial, mut filter: PauseFilter) -> Vec<PauseId> {
    let mut listed = Vec::new();
    loop {
        let page = trial.store.list_pauses(&filter).await.unwrap();
        let Some(last) = page.last() else { return listed };
        assert!(page.len() <= filter.limit);
        filter.after = Some(last.cursor());
        listed.extend(page.into_iter().map(|row| row.id));
    }
}

pub async fn pages_in_any_state_follow_the_order_of_opening(trial: &Trial) {
    let statuses = [PauseStatus::Withdrawn, PauseStatus::Open, PauseStatus::Decided, PauseStatus::Expired];
    let run = trial.run(1, "s");
    let mut rows = Vec::new();
    for number in 1..=20 {
        if number % 3 == 0 {
            trial.clock.advance(Duration::from_millis(1));
        }
        rows.push(PauseRow { status: statuses[number as usize % 4], ..trial.pause(&run, number) });
    }
    trial.ok(trial.opening(&run, rows)).await;
    let expected: Vec<PauseId> = (1..=20).map(|number| PauseId { run: run.id, number }).collect();
    for limit in [1, 3, 20, 100] {
        let everywhere = PauseFilter { status: None, limit, ..PauseFilter::open() };
        assert_eq!(all_pages(trial, everywhere.clone()).await, expected, "limit {limit}");
        let here = PauseFilter { session: Some(run.session.clone()), ..everywhere };
        assert_eq!(all_pages(trial, here).await, expected, "in the session, limit {limit}");
    }
}

pub async fn a_page_is_bounded(trial: &Trial) {
    let count = PauseFilter::LIMIT_MAX + 1;
    trial.begin_paused(&trial.run(1, "s"), count as u32).await;
    for (limit, expected) in [(0, 0), (1, 1), (PauseFilter::LIMIT_MAX, 1_000), (count, 1_000), (usize::MAX, 1_000)] {
        let page = trial.store.list_pauses(&PauseFilter { limit, ..PauseFilter::open() }).await.unwrap();
        assert_eq!(page.len(), expected, "limit {limit}");
    }
}

/// Begins a run with one pause that expires so many seconds from now.
async fn begin_with_deadline(trial: &Trial, number: u64, seconds: Option<u64>) -> RunPen {
    let run = trial.run(number, &format!("s{number}"));
    trial.ok(trial.opening(&run, vec![with_deadline(trial, &run, seconds)])).await;
    run
}

fn with_deadline(trial: &Trial, run: &RunPen, seconds: Option<u64>) -> PauseRow {
    let expires_at = seconds.map(|seconds| trial.clock.now().after(Duration::from_secs(seconds)));
    PauseRow { expires_at, ..trial.pause(run, 1) }
}

async fn due(trial: &Trial, limit: usize) -> Vec<u64> {
    let due = trial.store.due_pauses(limit).await.unwrap();
    let number_of =
        |id: &PauseId| (1..100).find(|number| sample::run_id(*number) == id.run).expect("a run of the case");
    due.iter().map(number_of).collect()
}

pub async fn a_pause_is_never_due_early(trial: &Trial) {
    begin_with_deadline(trial, 1, Some(60)).await;
    assert!(due(trial, 9).await.is_empty());
    trial.clock.advance(Duration::from_millis(59_999));
    assert!(due(trial, 9).await.is_empty());
    trial.clock.advance(Duration::from_millis(1));
    assert_eq!(due(trial, 9).await, [1]);
    // Nor when the clock goes back.
    trial.clock.set(Timestamp::from_millis(trial.clock.now().as_millis() - 1));
    assert!(due(trial, 9).await.is_empty());
}

pub async fn due_pauses_come_earliest_first(trial: &Trial) {
    for (number, seconds) in [(1, 30), (2, 10), (3, 20), (4, 99), (6, 10), (5, 10)] {
        begin_with_deadline(trial, number, Some(seconds)).await;
    }
    trial.clock.advance(Duration::from_secs(30));
    assert_eq!(due(trial, 9).await, [2, 5, 6, 3, 1]);
    assert_eq!(due(trial, 2).await, [2, 5]);
    assert!(due(trial, 0).await.is_empty());
}

pub async fn only_open_pauses_with_a_deadline_are_due(trial: &Trial) {
    begin_with_deadline(trial, 1, None).await;
    for (number, status) in [(2, PauseStatus::Decided), (3, PauseStatus::Expired), (4, PauseStatus::Withdrawn)] {
        let run = begin_with_deadline(trial, number, Some(10)).await;
        let pauses = vec![PauseRow { status, ..with_deadline(trial, &run, Some(10)) }];
        trial.ok(Append { pauses, ..trial.append(&run, 1, [sample::said("settled")]) }).await;
    }
    trial.clock.advance(Duration::from_secs(1_000));
    assert!(due(trial, 9).await.is_empty());
    assert_eq!(trial.store.next_deadline().await.unwrap(), None);
}

pub async fn the_next_deadline_is_the_earliest_of_an_open_pause(trial: &Trial) {
    let start = trial.clock.now();
    let at = |seconds| Some(start.after(Duration::from_secs(seconds)));
    assert_eq!(trial.store.next_deadline().await.unwrap(), None);
    begin_with_deadline(trial, 1, Some(30)).await;
    assert_eq!(trial.store.next_deadline().await.unwrap(), at(30));
    let early = begin_with_deadline(trial, 2, Some(10)).await;
    begin_with_deadline(trial, 3, Some(20)).await;
    assert_eq!(trial.store.next_deadline().await.unwrap(), at(10));
    // A deadline that has passed stays the next one until somebody settles it.
    trial.clock.advance(Duration::from_secs(15));
    assert_eq!(trial.store.next_deadline().await.unwrap(), at(10));
    settle(trial, &early, 1, 1, PauseStatus::Expired).await.unwrap();
    assert_eq!(trial.store.next_deadline().await.unwrap(), at(20));
}

pub async fn a_deadline_that_moves_is_due_at_its_new_time(trial: &Trial) {
    let run = begin_with_deadline(trial, 1, Some(10)).await;
    let pauses = vec![with_deadline(trial, &run, Some(60))];
    trial.ok(Append { pauses, status: RunStatus::Waiting, ..trial.append(&run, 1, [sample::said("later")]) }).await;
    trial.clock.advance(Duration::from_secs(59));
    assert!(due(trial, 9).await.is_empty());
    trial.clock.advance(Duration::from_secs(1));
    assert_eq!(due(trial, 9).await, [1]);
}

pub async fn a_decision_and_an_expiry_have_one_winner(trial: &Trial) {
    for number in 1..=32 {
        let run = begin_with_deadline(trial, number, Some(0)).await;
        let race = |status| {
            let event = if status == PauseStatus::Expired { sample::expired(1) } else { sample::decided(1) };
            let pauses = vec![PauseRow { status, ..with_deadline(trial, &run, Some(0)) }];
            let append = Append { pauses, ..trial.append(&run, 1, [event]) };
            let store: Arc<dyn Store> = Arc::clone(&trial.store);
            tokio::spawn(async move { store.append(append).await })
        };
        let (decision, expiry) = (race(PauseStatus::Decided), race(PauseStatus::Expired));
        let (winner, event) = match (decision.await.unwrap(), expiry.await.unwrap()) {
            (Ok(_), Err(AppendError::Conflict { revision: 2, .. })) => (PauseStatus::Decided, sample::decided(1)),
            (Err(AppendError::Conflict { revision: 2, .. }), Ok(_)) => (PauseStatus::Expired, sample::expired(1)),
            both => panic!("one wins and the other is told: {both:?}"),
        };
        let all = PauseFilter { status: None, session: Some(run.session.clone()), ..PauseFilter::open() };
        assert_eq!(trial.store.list_pauses(&all).await.unwrap()[0].status, winner);
        assert_eq!(*trial.load(run.id).await.entries[1].events, [event]);
    }
    assert!(due(trial, 99).await.is_empty());
}
