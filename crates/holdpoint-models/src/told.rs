//! Whether anything of a reply was told. What was told cannot be taken back, so another attempt is made only before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdpoint_runtime::ports::model::DeltaSink;

/// Whether anything was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct IsTold(Arc<AtomicBool>);

impl IsTold {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A sink that hands everything on and remembers that it did.
pub(crate) fn watched(deltas: &DeltaSink) -> (DeltaSink, IsTold) {
    let is_told = IsTold::default();
    let (mark, inner) = (is_told.clone(), deltas.clone());
    let sink = DeltaSink::new(move |delta| {
        mark.0.store(true, Ordering::Release);
        inner.tell(delta);
    });
    (sink, is_told)
}
