//! YAML as a tree in which every value knows where it stands. The tree is checked by our own code, so that a file's
//! problems are all found at once and each has its place.

mod align;
mod fields;
mod json;
mod node;
mod parse;
mod place;
mod reader;
mod scalar;
#[cfg(test)]
mod tests;

pub(crate) use align::align;
pub(crate) use fields::{Fields, Item, one_of, text};
pub(crate) use node::{Entry, Node, Value};
pub(crate) use parse::parse;
pub use place::{Place, Places};
pub(crate) use reader::Reader;
