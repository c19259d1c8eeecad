//! Keys that were pressed before the question stood there are no answer to it.

/// Forgets what was typed while nobody had asked.
pub(super) fn forget() {
    #[cfg(unix)]
    {
        // A terminal that cannot forget is asked all the same; the prompt itself reports one that is gone.
        let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    }
}
