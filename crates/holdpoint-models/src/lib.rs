//! Models for holdpoint. So far one: the scripted model, which needs neither key nor network.

pub mod scripted;
