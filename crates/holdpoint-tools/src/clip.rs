//! Text that is too long to be told whole.

use holdpoint_core::text::clamp;

/// The first `bytes_max` bytes of a text, cut between characters, with a line that says how much is missing.
pub(crate) fn clip(text: &str, bytes_max: usize) -> String {
    let kept = clamp(text, bytes_max);
    match text.len() - kept.len() {
        0 => text.to_owned(),
        cut => format!("{kept}\n[cut here: {cut} more bytes]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_is_counted() {
        assert_eq!(clip("aéé", 2), "a\n[cut here: 4 more bytes]");
        assert_eq!(clip("aéé", 5), "aéé");
    }
}
