//! What is told of runs, rule by rule and at random.

mod asking;
mod exchange;
mod live;
mod random;
mod settling;
mod work;

// What the tests are made with.
mod client;
mod shape;
mod walk;
