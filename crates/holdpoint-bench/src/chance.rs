//! Small numbers that look random and come again from the same seed.

/// Where they come from.
pub(crate) struct Chance(u64);

impl Chance {
    /// The numbers of one of several who share a seed.
    pub(crate) fn new(seed: u64, number: usize) -> Self {
        Self(seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    /// Whether something happens that does so many times in a hundred.
    pub(crate) fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }
}
