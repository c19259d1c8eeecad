//! Messages exactly as the specification spells them.

pub(super) mod commands;
pub(super) mod control;
pub(super) mod events;
