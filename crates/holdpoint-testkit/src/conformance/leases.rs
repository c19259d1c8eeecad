//! Leases: one moves a run, others are kept away until its time is up, and whoever lost the lease is fenced off.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, Lease, LeaseChange, RunStatus};

use super::{RunPen, Trial, sample};

const MINUTE: Duration = Duration::from_secs(60);

fn take(owner: &str) -> LeaseChange {
    LeaseChange::Take { owner: owner.to_owned(), duration: MINUTE }
}

/// Begins a run under a lease of one minute.
async fn begin_leased(trial: &Trial, owner: &str) -> RunPen {
    let run = trial.run(1, "s");
    trial.ok(Append { lease: take(owner), ..trial.first(&run) }).await;
    run
}

/// An append of one event with this change of the lease.
fn with(trial: &Trial, run: &RunPen, expected: u64, lease: LeaseChange) -> Append {
    Append { lease, ..trial.append(run, expected, [sample::said("x")]) }
}

async fn claimable(trial: &Trial) -> Vec<RunId> {
    trial.store.claimable(100).await.unwrap()
}

fn fenced(run: &RunPen) -> AppendError {
    AppendError::Fenced { run: run.id }
}

fn assert_fenced(answer: Result<Lease, AppendError>, run: &RunPen) {
    assert_eq!(answer.map_err(|error| error.to_string()), Err(fenced(run).to_string()));
}

pub async fn a_run_may_begin_under_a_lease(trial: &Trial) {
    let run = trial.run(1, "s");
    let appended = trial.ok(Append { lease: take("ana"), ..trial.first(&run) }).await;
    assert_eq!(appended.epoch, Some(1));
    let until = trial.clock.now().after(MINUTE);
    let expected = Lease { run: run.id, epoch: 1, owner: "ana".to_owned(), until };
    assert_eq!(trial.load(run.id).await.lease, Some(expected));
    let held = trial.ok(with(trial, &run, 1, LeaseChange::Hold { epoch: 1 })).await;
    assert_eq!(held.epoch, Some(1));
    assert_eq!(trial.ok(with(trial, &run, 2, LeaseChange::Keep)).await.epoch, None);
}

pub async fn a_standing_lease_keeps_everybody_from_taking_it(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    let until = trial.clock.now().after(MINUTE);
    trial.clock.advance(MINUTE - Duration::from_millis(1));
    for owner in ["bob", "ana"] {
        let leased = || AppendError::Leased { run: run.id, owner: "ana".to_owned(), until };
        trial.refused(with(trial, &run, 1, take(owner)), leased()).await;
        let claim = trial.store.claim(run.id, owner, MINUTE).await;
        assert_eq!(claim.map_err(|error| error.to_string()), Err(leased().to_string()));
    }
    assert_eq!(trial.load(run.id).await.revision, 1);
}

pub async fn a_lease_can_be_taken_over_the_moment_its_time_is_up(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    trial.clock.advance(MINUTE);
    assert_eq!(trial.load(run.id).await.lease, None);
    assert_eq!(trial.ok(with(trial, &run, 1, take("bob"))).await.epoch, Some(2));
    trial.clock.advance(MINUTE);
    let lease = trial.store.claim(run.id, "ana", MINUTE).await.unwrap();
    let expected = Lease { run: run.id, epoch: 3, owner: "ana".to_owned(), until: trial.clock.now().after(MINUTE) };
    assert_eq!((lease, trial.load(run.id).await.lease), (expected.clone(), Some(expected)));
}

pub async fn who_lost_the_lease_is_fenced_off(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    trial.clock.advance(MINUTE);
    trial.store.claim(run.id, "bob", MINUTE).await.unwrap();
    trial.refused(with(trial, &run, 1, LeaseChange::Hold { epoch: 1 }), fenced(&run)).await;
    trial.refused(with(trial, &run, 1, LeaseChange::Release { epoch: 1 }), fenced(&run)).await;
    let lease = trial.load(run.id).await.lease.unwrap();
    assert_eq!((lease.epoch, lease.owner.as_str()), (2, "bob"));
    trial.ok(with(trial, &run, 1, LeaseChange::Hold { epoch: 2 })).await;
}

pub async fn who_gave_the_lease_back_is_fenced_off(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    assert_eq!(trial.ok(with(trial, &run, 1, LeaseChange::Release { epoch: 1 })).await.epoch, None);
    trial.refused(with(trial, &run, 2, LeaseChange::Hold { epoch: 1 }), fenced(&run)).await;
    trial.refused(with(trial, &run, 2, LeaseChange::Release { epoch: 1 }), fenced(&run)).await;
}

pub async fn a_late_holder_may_write_until_somebody_takes_over(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    trial.clock.advance(MINUTE * 100);
    assert_eq!(trial.ok(with(trial, &run, 1, LeaseChange::Hold { epoch: 1 })).await.epoch, Some(1));
    // It wrote, but that gave it no more time.
    assert_eq!(trial.load(run.id).await.lease, None);
    trial.ok(with(trial, &run, 2, LeaseChange::Release { epoch: 1 })).await;
}

pub async fn a_lease_that_was_never_given_out_cannot_be_held(trial: &Trial) {
    let run = trial.run(1, "s");
    for epoch in [0, 1] {
        trial.refused(Append { lease: LeaseChange::Hold { epoch }, ..trial.first(&run) }, fenced(&run)).await;
    }
    trial.begin(&run).await;
    for epoch in [0, 1, u64::MAX] {
        trial.refused(with(trial, &run, 1, LeaseChange::Hold { epoch }), fenced(&run)).await;
        trial.refused(with(trial, &run, 1, LeaseChange::Release { epoch }), fenced(&run)).await;
    }
}

pub async fn who_does_not_move_the_run_writes_beside_the_lease(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    let before = trial.load(run.id).await.lease;
    trial.ok(with(trial, &run, 1, LeaseChange::Keep)).await;
    assert_eq!(trial.load(run.id).await.lease, before);
    // The holder's next write is a conflict, not a lost lease: it reads again and goes on.
    let stale = with(trial, &run, 1, LeaseChange::Hold { epoch: 1 });
    trial.refused(stale, AppendError::Conflict { run: run.id, revision: 2 }).await;
    trial.ok(with(trial, &run, 2, LeaseChange::Hold { epoch: 1 })).await;
}

pub async fn giving_back_lets_others_take_it(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    let lease = trial.load(run.id).await.lease.unwrap();
    trial.store.release(&lease).await.unwrap();
    assert_eq!(trial.load(run.id).await.lease, None);
    let next = trial.store.claim(run.id, "bob", MINUTE).await.unwrap();
    assert_eq!(next.epoch, 2);
}

pub async fn finishing_ends_the_lease(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    let lease = trial.load(run.id).await.lease.unwrap();
    let finish =
        Append { status: RunStatus::Finished, ..with(trial, &run, 1, LeaseChange::Hold { epoch: lease.epoch }) };
    assert_eq!(trial.ok(finish).await.epoch, None);
    assert_eq!(trial.load(run.id).await.lease, None);
    assert_fenced(trial.store.renew(&lease, MINUTE).await, &run);
    // Somebody else may end it too, whoever holds the lease.
    let other = trial.run(2, "t");
    trial.ok(Append { lease: take("ana"), ..trial.first(&other) }).await;
    trial.ok(Append { status: RunStatus::Finished, ..with(trial, &other, 1, LeaseChange::Keep) }).await;
    trial.refused(with(trial, &other, 2, LeaseChange::Hold { epoch: 1 }), fenced(&other)).await;
}

pub async fn a_lease_is_renewed_from_now(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    let lease = trial.load(run.id).await.lease.unwrap();
    trial.clock.advance(MINUTE / 2);
    let renewed = trial.store.renew(&lease, MINUTE).await.unwrap();
    assert_eq!(renewed, Lease { until: trial.clock.now().after(MINUTE), ..lease.clone() });
    assert_eq!(trial.load(run.id).await.lease, Some(renewed));
    // Late, but nobody took over.
    trial.clock.advance(MINUTE * 5);
    assert_eq!(claimable(trial).await, [run.id]);
    trial.store.renew(&lease, MINUTE).await.unwrap();
    assert_eq!(claimable(trial).await, []);
}

pub async fn renewing_never_shortens_a_lease(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    let lease = trial.load(run.id).await.lease.unwrap();
    assert_eq!(trial.store.renew(&lease, Duration::from_secs(1)).await.unwrap(), lease);
    assert_eq!(trial.load(run.id).await.lease, Some(lease));
}

pub async fn a_lost_lease_is_not_renewed(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    let lost = trial.load(run.id).await.lease.unwrap();
    trial.clock.advance(MINUTE);
    let bobs = trial.store.claim(run.id, "bob", MINUTE).await.unwrap();
    assert_fenced(trial.store.renew(&lost, MINUTE).await, &run);
    trial.store.release(&bobs).await.unwrap();
    assert_fenced(trial.store.renew(&bobs, MINUTE).await, &run);
    let unknown = Lease { run: sample::run_id(99), ..bobs };
    let answer = trial.store.renew(&unknown, MINUTE).await;
    assert_eq!(answer.unwrap_err().to_string(), AppendError::NoRun(unknown.run).to_string());
}

pub async fn giving_back_a_lost_lease_hurts_nobody(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    let lost = trial.load(run.id).await.lease.unwrap();
    trial.clock.advance(MINUTE);
    let bobs = trial.store.claim(run.id, "bob", MINUTE).await.unwrap();
    trial.store.release(&lost).await.unwrap();
    trial.store.release(&Lease { run: sample::run_id(99), ..lost }).await.unwrap();
    assert_eq!(trial.load(run.id).await.lease, Some(bobs));
}

pub async fn a_run_that_is_not_there_cannot_be_claimed(trial: &Trial) {
    let answer = trial.store.claim(sample::run_id(9), "ana", MINUTE).await;
    assert_eq!(answer.unwrap_err().to_string(), AppendError::NoRun(sample::run_id(9)).to_string());
}

pub async fn of_sixty_four_claims_one_wins(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let claims: Vec<_> = (0..64)
        .map(|worker| {
            let (store, run) = (Arc::clone(&trial.store), run.id);
            tokio::spawn(async move { store.claim(run, &format!("worker {worker}"), MINUTE).await })
        })
        .collect();
    let mut winners = Vec::new();
    for claim in claims {
        match claim.await.unwrap() {
            Ok(lease) => winners.push(lease),
            Err(AppendError::Leased { .. }) => {}
            Err(error) => panic!("a loser was told something else: {error}"),
        }
    }
    assert_eq!((winners.len(), winners[0].epoch), (1, 1));
    assert_eq!(trial.load(run.id).await.lease, winners.pop());
}

pub async fn the_stores_clock_decides_about_leases(trial: &Trial) {
    let run = trial.run(1, "s");
    let long_ago = Timestamp::from_millis(1_000);
    trial.ok(Append { at: long_ago, lease: take("ana"), ..trial.first(&run) }).await;
    assert_eq!(trial.load(run.id).await.lease.unwrap().until, trial.clock.now().after(MINUTE));
    let far_ahead = trial.clock.now().after(MINUTE * 1_000);
    let early = Append { at: far_ahead, ..with(trial, &run, 1, take("bob")) };
    assert!(matches!(trial.store.append(early).await, Err(AppendError::Leased { .. })));
}

pub async fn runs_at_work_that_nobody_moves_are_claimable(trial: &Trial) {
    let runs: Vec<RunPen> = (1..=4).map(|number| trial.run(number, &format!("s{number}"))).collect();
    trial.begin(&runs[0]).await;
    trial.ok(Append { lease: take("ana"), ..trial.first(&runs[1]) }).await;
    trial.begin_paused(&runs[2], 1).await;
    trial.ok(Append { status: RunStatus::Finished, ..trial.first(&runs[3]) }).await;
    assert_eq!(claimable(trial).await, [runs[0].id]);
    trial.store.claim(runs[0].id, "bob", MINUTE).await.unwrap();
    assert_eq!(claimable(trial).await, []);
    // Both leases run out; the run that waits gets something to do.
    trial.clock.advance(MINUTE);
    trial.ok(trial.append(&runs[2], 1, [sample::decided(1)])).await;
    assert_eq!(claimable(trial).await, [runs[0].id, runs[1].id, runs[2].id]);
    trial.ok(Append { status: RunStatus::Waiting, ..trial.append(&runs[1], 1, [sample::said("wait")]) }).await;
    assert_eq!(claimable(trial).await, [runs[0].id, runs[2].id]);
    assert_eq!(trial.store.claimable(1).await.unwrap(), [runs[0].id]);
    assert_eq!(trial.store.claimable(0).await.unwrap(), []);
}

pub async fn the_run_left_alone_longest_comes_first(trial: &Trial) {
    let runs: Vec<RunPen> = (1..=4).map(|number| trial.run(number, &format!("s{number}"))).collect();
    let second = Duration::from_secs(1);
    // Left at: 4 after 1 s, 3 after 2 s (given back), 1 after 3 s (decided), 2 after 4 s (its lease runs out).
    trial.begin_paused(&runs[0], 1).await;
    let short = LeaseChange::Take { owner: "ana".to_owned(), duration: second * 4 };
    trial.ok(Append { lease: short, ..trial.first(&runs[1]) }).await;
    trial.ok(Append { lease: take("ana"), ..trial.first(&runs[2]) }).await;
    trial.clock.advance(second);
    trial.begin(&runs[3]).await;
    trial.clock.advance(second);
    trial.store.release(&trial.load(runs[2].id).await.lease.unwrap()).await.unwrap();
    trial.clock.advance(second);
    trial.ok(trial.append(&runs[0], 1, [sample::decided(1)])).await;
    trial.clock.advance(second * 10);
    assert_eq!(claimable(trial).await, [4, 3, 1, 2].map(sample::run_id));
    // Who was moved and left again goes to the end.
    let lease = trial.store.claim(runs[3].id, "bob", MINUTE).await.unwrap();
    trial.ok(with(trial, &runs[3], 1, LeaseChange::Release { epoch: lease.epoch })).await;
    assert_eq!(claimable(trial).await, [3, 1, 2, 4].map(sample::run_id));
}

pub async fn a_note_on_the_side_does_not_cost_a_run_its_place(trial: &Trial) {
    let (first, second) = (trial.run(1, "s"), trial.run(2, "t"));
    trial.begin(&first).await;
    trial.clock.advance(MINUTE);
    trial.begin(&second).await;
    trial.clock.advance(MINUTE);
    trial.ok(with(trial, &first, 1, LeaseChange::Keep)).await;
    assert_eq!(claimable(trial).await, [first.id, second.id]);
}

pub async fn epochs_only_grow(trial: &Trial) {
    let run = begin_leased(trial, "ana").await;
    trial.ok(with(trial, &run, 1, LeaseChange::Release { epoch: 1 })).await;
    let claimed = trial.store.claim(run.id, "bob", MINUTE).await.unwrap();
    assert_eq!(claimed.epoch, 2);
    trial.store.release(&claimed).await.unwrap();
    assert_eq!(trial.ok(with(trial, &run, 2, take("ana"))).await.epoch, Some(3));
    trial.clock.advance(MINUTE);
    assert_eq!(trial.ok(with(trial, &run, 3, take("bob"))).await.epoch, Some(4));
}
