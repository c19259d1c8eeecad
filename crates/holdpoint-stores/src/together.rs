//! What comes while something is under way is done together, next: a queue, and a few tasks that empty it. Whoever comes
//! first begins a task, and others begin more, as far as there may be. Each takes all that wait, as often as any do, and ends
//! when none do. Where nothing is under way nobody waits for company; where something is, it depends on the queue.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_runtime::ports::store::Append;

/// A queue of what is to be done together.
pub(crate) struct Together<T> {
    state: Mutex<State<T>>,
    /// How many tasks empty it at once.
    tasks_max: usize,
    /// How many are taken at once.
    group_max: usize,
    company: Company,
}

/// Whether those who come while others are under way wait until they are as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    /// They are taken as soon as there is a task for them.
    AsItComes,
    /// They wait until they are as many as are under way, or these are done. For what is done one after the other anyway:
    /// fewer lose little by it, and all of them are done in fewer steps.
    AsManyAgain,
}

struct State<T> {
    waiting: VecDeque<T>,
    tasks: usize,
    /// How many are being done.
    under_way: usize,
}

impl<T> State<T> {
    /// Whether those who wait are taken now.
    fn is_time(&self, company: Company) -> bool {
        company == Company::AsItComes || self.waiting.len() >= self.under_way
    }
}

impl<T> Together<T> {
    pub(crate) fn new(tasks_max: usize, group_max: usize, company: Company) -> Arc<Self> {
        let state = Mutex::new(State { waiting: VecDeque::new(), tasks: 0, under_way: 0 });
        Arc::new(Self { state, tasks_max, group_max, company })
    }

    /// Adds to what waits. Where a turn is given, the caller begins a task that empties the queue with it. Those who wait
    /// are bounded by whoever asks: each waits for its answer.
    pub(crate) fn add(self: &Arc<Self>, item: T) -> Option<Turn<T>> {
        let mut state = self.state();
        state.waiting.push_back(item);
        (state.tasks < self.tasks_max && state.is_time(self.company)).then(|| {
            state.tasks += 1;
            Turn { queue: Arc::clone(self), taken: 0, is_over: false }
        })
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

impl<T> AppendQueues<T> {
    /// How many are written together.
    const GROUP_MAX: usize = 64;
    /// How many bytes of entries are written together.
    pub(crate) const GROUP_BYTES_MAX: usize = 1 << 20;
    /// The largest entry that is written with others.
    pub(crate) const ENTRY_BYTES_MAX: usize = 64 << 10;

    pub(crate) fn new(company: Company) -> Self {
        // While one group is written, the next gets ready.
        let queue = || Together::new(2, Self::GROUP_MAX, company);
        Self { audited: queue(), plain: queue() }
    }

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
    /// empty nothing is left for this turn; those who wait then are for the other one.
    pub(crate) fn take(&mut self, mut fits: impl FnMut(&T, &[T]) -> bool) -> Vec<T> {
        let mut state = self.queue.state();
        state.under_way -= std::mem::take(&mut self.taken);
        let mut group = Vec::new();
        let mut index = if state.is_time(self.queue.company) { 0 } else { state.waiting.len() };
        while index < state.waiting.len() && group.len() < self.queue.group_max {
            if group.is_empty() || fits(&state.waiting[index], &group) {
                group.extend(state.waiting.remove(index));
            } else {
                index += 1;
            }
        }
        if group.is_empty() {
            state.tasks -= 1;
            self.is_over = true;
        }
        self.taken = group.len();
        state.under_way += self.taken;
        group
    }
}

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        if !self.is_over {
            // The task was ended from outside, with its runtime: the next who comes begins another.
            let mut state = self.queue.state();
            state.under_way -= self.taken;
            state.tasks -= 1;
            let left = if state.tasks == 0 { std::mem::take(&mut state.waiting) } else { VecDeque::new() };
            drop(state);
            drop(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_first_takes_all_that_wait() {
        let queue = Together::new(1, 3, Company::AsItComes);
        let mut turn = queue.add(1).expect("the first begins a task");
        assert!((2..=5).all(|item| queue.add(item).is_none()));
        assert_eq!(turn.take(|_, _| true), [1, 2, 3]);
        assert_eq!(turn.take(|_, _| true), [4, 5]);
        assert!(turn.take(|_, _| true).is_empty());
        assert!(queue.add(6).is_some(), "nobody is at it any more");
    }

    #[test]
    fn where_company_is_waited_for_a_second_task_begins_when_as_many_wait_as_are_under_way() {
        let queue = Together::new(2, 9, Company::AsManyAgain);
        let mut first = queue.add(1).expect("the first begins a task");
        assert_eq!(first.take(|_, _| true), [1]);
        let mut second = queue.add(2).expect("one waits and one is under way");
        assert_eq!(second.take(|_, _| true), [2]);
        assert!((3..=5).all(|item| queue.add(item).is_none()), "two are at it");
        assert_eq!(first.take(|_, _| true), [3, 4, 5]);
        assert!(second.take(|_, _| true).is_empty());
        assert!((6..=7).all(|item| queue.add(item).is_none()), "they gain company until the three are done");
        let mut second = queue.add(8).expect("as many wait as are under way");
        assert_eq!(second.take(|_, _| true), [6, 7, 8]);
        assert!(queue.add(9).is_none());
        assert!(first.take(|_, _| true).is_empty(), "it is for the other");
        assert_eq!(second.take(|_, _| true), [9]);
        assert!(second.take(|_, _| true).is_empty());
        assert!(queue.add(10).is_some(), "nobody is at it any more");
    }

    #[test]
    fn where_it_is_not_a_second_task_takes_whoever_waits() {
        let queue = Together::new(2, 9, Company::AsItComes);
        let mut first = queue.add(1).expect("the first begins a task");
        let mut second = queue.add(2).expect("there may be another");
        assert_eq!(first.take(|_, _| true), [1, 2]);
        assert!(second.take(|_, _| true).is_empty());
        let mut second = queue.add(3).expect("it is not waited for");
        assert_eq!(second.take(|_, _| true), [3]);
    }

    #[test]
    fn what_does_not_fit_stays_in_order() {
        let queue = Together::new(1, 9, Company::AsItComes);
        let mut turn = queue.add(1).expect("the first begins a task");
        for item in [1, 2, 1, 3] {
            assert!(queue.add(item).is_none());
        }
        assert_eq!(turn.take(|item, group| !group.contains(item)), [1, 2, 3]);
        assert_eq!(turn.take(|item, group| !group.contains(item)), [1]);
        assert_eq!(turn.take(|item, group| !group.contains(item)), [1]);
        assert!(turn.take(|_, _| true).is_empty());
    }

    #[test]
    fn a_turn_that_ends_early_lets_go_of_those_who_wait() {
        let queue = Together::new(1, 1, Company::AsItComes);
        let (item, waits) = std::sync::mpsc::channel::<()>();
        let turn = queue.add(None);
        assert!(turn.is_some());
        assert!(queue.add(Some(item)).is_none());
        drop(turn);
        assert!(waits.recv().is_err(), "it would wait for ever");
        assert!(queue.add(None).is_some());
    }
}
