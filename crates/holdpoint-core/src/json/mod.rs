//! JSON that two machines agree on byte for byte, so that a decision can bind to the digest of what a person was shown.
//! Text comes in, canonical text comes out; a number is never turned into a float on the way.

mod canonical;
mod digest;
mod exact;
mod members;
mod number;
mod problem;
mod rewrite;
mod string;

pub use canonical::CanonicalJson;
pub use digest::{BadDigest, Digest};
pub use problem::{JsonProblem, Limits};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
