//! How much work an expression can cause, as a function of how large the arguments are. CEL has no step limit, so the
//! work is bounded before it begins.

use crate::limits::{EXPRESSION_COST_MAX, LOOP_NESTING_MAX};

const DEGREES: usize = LOOP_NESTING_MAX + 1;

/// How large the arguments of a call are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub bytes: usize,
    /// Elements of the largest list or object.
    pub largest_collection: usize,
}

/// What is done outside of loops, in loops, and in loops within loops.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Operations of any kind.
    steps: [u64; DEGREES],
    /// Operations that may read a whole argument, such as a comparison.
    reads: [u64; DEGREES],
    /// Operations that may copy a whole list.
    copies: [u64; DEGREES],
    /// By how much a list that is looped over can be longer than the longest in the arguments: the number of `+` in it.
    joins: u64,
    /// Elements of lists and maps in the expression itself.
    literals: u64,
}

impl Cost {
    /// Counts an operation within so many loops.
    pub(super) fn step(&mut self, loops: usize) {
        self.steps[loops.min(LOOP_NESTING_MAX)] += 1;
    }

    /// Counts an operation that may read a whole argument, so many times over.
    pub(super) fn read(&mut self, loops: usize, times: u64) {
        self.reads[loops.min(LOOP_NESTING_MAX)] += times;
    }

    /// Counts a `+`, which may join lists, and says whether what it makes may be looped over.
    pub(super) fn join(&mut self, loops: usize, is_looped_over: bool) {
        self.copies[loops.min(LOOP_NESTING_MAX)] += 1;
        self.joins += u64::from(is_looped_over);
    }

    /// Counts the elements of a list or map in the expression.
    pub(super) fn literal(&mut self, elements: usize) {
        self.literals = self.literals.saturating_add(elements as u64);
    }

    /// Whether arguments of this size can be looked at within bounds.
    pub(super) fn is_bearable(&self, size: &Size) -> bool {
        let longest = size.largest_collection as u64;
        let longest = longest.saturating_mul(1 + self.joins).saturating_add(self.literals).max(1);
        let kibibytes = 1 + size.bytes as u64 / 1024;
        let copied = 1 + longest / 8;
        let total = at(&self.steps, longest)
            .saturating_add(at(&self.reads, longest).saturating_mul(kibibytes))
            .saturating_add(at(&self.copies, longest).saturating_mul(copied));
        total <= EXPRESSION_COST_MAX
    }
}

/// The value of a polynomial.
fn at(coefficients: &[u64; DEGREES], rounds: u64) -> u64 {
    coefficients.iter().rev().fold(0, |sum: u64, count| sum.saturating_mul(rounds).saturating_add(*count))
}
