//! What comes while something is under way is done together, next: a queue, and two tasks that empty it. While one of them
//! does something, the other one gets the next ready. Each takes all that wait, as often as any do, and ends when none do.
//!
//! Where nothing is under way nobody waits for company. Where something is, those who come wait until they are as many, or it
//! is done: a database flushes once for each group, so that few large ones are done sooner than many small ones. They do so for
//! a moment only: what hangs holds up nobody else.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdpoint_runtime::ports::store::Append;
use tokio::sync::Notify;

/// How many tasks empty a queue at once.
const TASKS_MAX: usize = 2;

/// How long company is waited for: longer than a group takes as a rule.
const MOMENT: Duration = Duration::from_millis(10);

/// A queue of what is to be done together.
pub(crate) struct Together<T> {
    state: Mutex<State<T>>,
    /// How many are taken at once.
    group_max: usize,
    /// There may be company enough.
    changed: Notify,
}

struct State<T> {
    waiting: VecDeque<T>,
    tasks: usize,
    /// How many are being done.
    under_way: usize,
}

impl<T> State<T> {
    /// Whether those who wait are as many as are under way.
    fn has_company(&self) -> bool {
        self.waiting.len() >= self.under_way
    }
}

impl<T> Together<T> {
    pub(crate) fn new(group_max: usize) -> Arc<Self> {
        let state = Mutex::new(State { waiting: VecDeque::new(), tasks: 0, under_way: 0 });
        Arc::new(Self { state, group_max, changed: Notify::new() })
    }

    /// Adds to what waits. Where a turn is given, the caller begins a task that empties the queue with it. Those who wait
    /// are bounded by whoever asks: each waits for its answer.
    pub(crate) fn add(self: &Arc<Self>, item: T) -> Option<Turn<T>> {
        let mut state = self.state();
        state.waiting.push_back(item);
        if state.tasks < TASKS_MAX {
            state.tasks += 1;
            return Some(Turn { queue: Arc::clone(self), taken: 0, is_over: false });
        }
        let has_company = state.has_company();
        drop(state);
        if has_company {
            self.changed.notify_waiters();
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where appends wait for each other. Those with something for the audit are apart: they all need the head of its chain,
/// and the others do not.
pub(crate) struct AppendQueues<T> {
    audited: Arc<Together<T>>,
    plain: Arc<Together<T>>,
}

impl<T> Default for AppendQueues<T> {
    fn default() -> Self {
        Self { audited: Together::new(Self::GROUP_MAX), plain: Together::new(Self::GROUP_MAX) }
    }
}

impl<T> AppendQueues<T> {
    /// How many are written together.
    const GROUP_MAX: usize = 64;
    /// How many bytes of entries are written together.
    pub(crate) const GROUP_BYTES_MAX: usize = 1 << 20;
    /// The largest entry that is written with others.
    pub(crate) const ENTRY_BYTES_MAX: usize = 64 << 10;

    /// The queue of an append.
    pub(crate) fn of(&self, append: &Append) -> &Arc<Together<T>> {
        if append.audit.is_empty() { &self.plain } else { &self.audited }
    }
}

/// The right to empty a queue. When it ends before the queue is empty, those who wait are let go without an answer.
pub(crate) struct Turn<T> {
    queue: Arc<Together<T>>,
    /// How many were taken last.
    taken: usize,
    is_over: bool,
}

impl<T> Turn<T> {
    /// What was taken last is done. The next to be done together: those that fit, given what was taken so far. When it is
    /// empty nothing is left for this turn.
    pub(crate) async fn take(&mut self, mut fits: impl FnMut(&T, &[T]) -> bool) -> Vec<T> {
        self.let_go();
        if let Some(group) = self.try_take(&mut fits, false) {
            return group;
        }
        let queue = Arc::clone(&self.queue);
        let mut moment = pin!(tokio::time::sleep(MOMENT));
        let mut is_late = false;
        loop {
            let mut changed = pin!(queue.changed.notified());
            changed.as_mut().enable();
            if let Some(group) = self.try_take(&mut fits, is_late) {
                return group;
            }
            tokio::select! {
                () = changed => {}
                () = &mut moment => is_late = true,
            }
        }
    }

    /// What was taken last is not under way any more.
    fn let_go(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        if taken > 0 {
            self.queue.state().under_way -= taken;
            self.queue.changed.notify_waiters();
        }
    }

    /// Those that fit; `None` where they should wait for company, unless it is late.
    fn try_take(&mut self, fits: &mut impl FnMut(&T, &[T]) -> bool, is_late: bool) -> Option<Vec<T>> {
        let mut state = self.queue.state();
        if state.waiting.is_empty() {
            state.tasks -= 1;
            self.is_over = true;
            return Some(Vec::new());
        }
        if !is_late && !state.has_company() {
            return None;
        }
        let (mut group, mut index) = (Vec::new(), 0);
        while index < state.waiting.len() && group.len() < self.queue.group_max {
            if group.is_empty() || fits(&state.waiting[index], &group) {
                group.extend(state.waiting.remove(index));
            } else {
                index += 1;
            }
        }
        self.taken = group.len();
        state.under_way += self.taken;
        Some(group)
    }
}

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        if !self.is_over {
            // The task was ended from outside, with its runtime: the next who comes begins another.
            self.let_go();
            let mut state = self.queue.state();
            state.tasks -= 1;
            let left = if state.tasks == 0 { std::mem::take(&mut state.waiting) } else { VecDeque::new() };
            drop(state);
            drop(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// What a turn takes without waiting.
    fn take<T>(turn: &mut Turn<T>) -> Option<Vec<T>> {
        turn.take(|_, _| true).now_or_never()
    }

    #[tokio::test]
    async fn who_comes_first_takes_all_that_wait() {
        let queue = Together::new(3);
        let mut turn = queue.add(1).expect("the first begins a task");
        let mut other = queue.add(2).expect("the second begins another");
        assert!((3..=5).all(|item| queue.add(item).is_none()));
        assert_eq!(take(&mut turn), Some(vec![1, 2, 3]));
        assert_eq!(take(&mut turn), Some(vec![4, 5]));
        assert_eq!(take(&mut turn), Some(vec![]));
        assert_eq!(take(&mut other), Some(vec![]));
        assert!(queue.add(6).is_some(), "nobody is at it any more");
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_come_wait_until_they_are_as_many_as_are_under_way() {
        let queue = Together::new(9);
        let mut first = queue.add(1).expect("the first begins a task");
        assert_eq!(take(&mut first), Some(vec![1]));
        let mut second = queue.add(2).expect("there may be another");
        assert_eq!(take(&mut second), Some(vec![2]), "one waited and one was under way");
        assert!((3..=5).all(|item| queue.add(item).is_none()), "two are at it");
        assert_eq!(take(&mut first), Some(vec![3, 4, 5]));
        assert!(queue.add(6).is_none());
        let mut waiting = Box::pin(second.take(|_, _| true));
        assert!(futures_util::poll!(&mut waiting).is_pending(), "three are under way");
        assert!(queue.add(7).is_none());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert!(queue.add(8).is_none());
        assert_eq!(waiting.await, [6, 7, 8]);
    }

    #[tokio::test(start_paused = true)]
    async fn they_wait_no_longer_than_what_is_under_way_or_a_moment() {
        let queue = Together::new(9);
        let mut first = queue.add(1).expect("the first begins a task");
        let mut second = queue.add(2).expect("there may be another");
        assert!((3..=4).all(|item| queue.add(item).is_none()));
        assert_eq!(take(&mut first), Some(vec![1, 2, 3, 4]));
        assert!(queue.add(5).is_none());
        let mut waiting = Box::pin(second.take(|_, _| true));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert!(queue.add(6).is_none());
        let begin = tokio::time::Instant::now();
        assert_eq!(waiting.await, [5, 6], "the first one hangs");
        assert_eq!(begin.elapsed(), MOMENT);
        assert!(queue.add(7).is_none());
        let mut waiting = Box::pin(second.take(|_, _| true));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(first);
        assert_eq!(waiting.await, [7], "nothing is under way any more");
        assert_eq!(begin.elapsed(), MOMENT);
    }

    #[tokio::test]
    async fn what_does_not_fit_stays_in_order() {
        let queue = Together::new(9);
        let mut turn = queue.add(1).expect("the first begins a task");
        let _other = queue.add(1).expect("there may be another");
        assert!([2, 1, 3].into_iter().all(|item| queue.add(item).is_none()));
        assert_eq!(turn.take(|item, group| !group.contains(item)).await, [1, 2, 3]);
        assert_eq!(turn.take(|item, group| !group.contains(item)).await, [1]);
        assert_eq!(turn.take(|item, group| !group.contains(item)).await, [1]);
        assert!(turn.take(|_, _| true).await.is_empty());
    }

    #[tokio::test]
    async fn a_turn_that_ends_early_lets_go_of_those_who_wait() {
        let queue = Together::new(1);
        let (item, waits) = std::sync::mpsc::channel::<()>();
        let turns = (queue.add(None), queue.add(None));
        assert!(turns.0.is_some() && turns.1.is_some());
        assert!(queue.add(Some(item)).is_none());
        drop(turns);
        assert!(waits.recv().is_err(), "it would wait for ever");
        assert!(queue.add(None).is_some());
    }
}
