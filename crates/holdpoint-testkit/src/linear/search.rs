//! Looks for an order in which the answers make sense (Wing and Gong), and remembers where it has been.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use super::history::{History, Operation, text};

/// What a thing does that does one operation at a time.
pub trait Model {
    /// How it stands.
    type State: Clone + Eq + Hash;
    /// What can be asked of it.
    type Call: Debug;
    /// What it answers.
    type Answer: Debug;

    /// How it stands before anything was asked.
    fn first() -> Self::State;

    /// How it stands after this call, if it can give this answer; without an answer, whatever it would have been.
    fn after(state: &Self::State, call: &Self::Call, answer: Option<&Self::Answer>) -> Option<Self::State>;
}

/// What was found out about a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order in which every answer makes sense.
    Linearizable,
    /// There is none. The text shows the history, and how far an order could be found.
    Violated(String),
    /// The search was given up after so many steps.
    Undecided(usize),
}

/// Looks for an order in which every answer makes sense, for at most so many steps.
///
/// Operations whose end is not known may take their place anywhere after their begin, or nowhere.
pub fn check<M: Model>(history: &History<M::Call, M::Answer>, steps_max: usize) -> Verdict {
    let mut search =
        Search::<M> { history, placed: vec![false; history.len()], been: HashSet::new(), steps: steps_max };
    let mut best = Vec::new();
    match search.place(&M::first(), &mut Vec::new(), &mut best) {
        Some(true) => Verdict::Linearizable,
        Some(false) => Verdict::Violated(search.explain(&best)),
        None => Verdict::Undecided(steps_max),
    }
}

struct Search<'a, M: Model> {
    history: &'a History<M::Call, M::Answer>,
    /// The operations that have their place in the order.
    placed: Vec<bool>,
    /// What was tried before and led nowhere: these operations placed, and the state after them.
    been: HashSet<(Vec<u64>, M::State)>,
    steps: usize,
}

impl<M: Model> Search<'_, M> {
    /// Whether the rest can be placed from this state on; `None` when the search was given up.
    ///
    /// It calls itself once for each operation of the history, which is why histories of one thing are kept short.
    fn place(&mut self, state: &M::State, order: &mut Vec<usize>, best: &mut Vec<usize>) -> Option<bool> {
        let placed_before = order.len();
        self.place_what_changes_nothing(state, order);
        if order.len() > best.len() {
            best.clone_from(order);
        }
        let found = self.place_what_changes_something(state, order, best);
        if found != Some(true) {
            order.drain(placed_before..).for_each(|index| self.placed[index] = false);
        }
        found
    }

    /// Places every answered operation that may come next and leaves the state as it is. Where there is an order in which
    /// it comes later, there is one in which it comes now: nothing else depends on it.
    fn place_what_changes_nothing(&mut self, state: &M::State, order: &mut Vec<usize>) {
        while let Some(horizon) = self.horizon() {
            let next = (0..self.history.len()).find(|index| {
                let operation = &self.history[*index];
                let may_be_next = !self.placed[*index] && operation.began <= horizon && operation.answer().is_some();
                may_be_next && M::after(state, &operation.call, operation.answer()).as_ref() == Some(state)
            });
            let Some(index) = next else { return };
            self.placed[index] = true;
            order.push(index);
        }
    }

    fn place_what_changes_something(
        &mut self,
        state: &M::State,
        order: &mut Vec<usize>,
        best: &mut Vec<usize>,
    ) -> Option<bool> {
        // Without answers that are left to explain, nobody knows whether the rest happened.
        let Some(horizon) = self.horizon() else { return Some(true) };
        self.steps = self.steps.checked_sub(1)?;
        for index in 0..self.history.len() {
            let operation = &self.history[index];
            if self.placed[index] || operation.began > horizon {
                continue;
            }
            let after = M::after(state, &operation.call, operation.answer()).filter(|after| after != state);
            let Some(after) = after else { continue };
            self.placed[index] = true;
            order.push(index);
            if self.been.insert((self.key(), after.clone())) && self.place(&after, order, best)? {
                return Some(true);
            }
            order.pop();
            self.placed[index] = false;
        }
        Some(false)
    }

    /// The next operation began before any of those that are left to place had ended.
    fn horizon(&self) -> Option<u64> {
        self.rest().filter(|operation| operation.answer().is_some()).map(Operation::ended).min()
    }

    fn rest(&self) -> impl Iterator<Item = &Operation<M::Call, M::Answer>> {
        self.history.iter().zip(&self.placed).filter(|(_, is_placed)| !**is_placed).map(|(operation, _)| operation)
    }

    /// Which operations are placed, a bit for each.
    fn key(&self) -> Vec<u64> {
        let word = |placed: &[bool]| placed.iter().rev().fold(0, |word, bit| word << 1 | u64::from(*bit));
        self.placed.chunks(64).map(word).collect()
    }

    fn explain(&self, best: &[usize]) -> String {
        let longest = best.iter().map(|index| format!("{}\n", self.history[*index])).collect::<String>();
        format!("what was told:\n{}the longest order that makes sense:\n{longest}", text(self.history))
    }
}
