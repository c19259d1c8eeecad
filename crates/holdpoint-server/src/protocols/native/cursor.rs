//! Where the next page begins: a text that says nothing to clients, and that only its own list takes back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::problem::{Code, Problem};

const MARK_BYTES: usize = 8;

/// The cursor of a place in a list with these filters.
pub(super) fn write(list: &str, filters: &str, place: &str) -> String {
    let mut bytes = mark(list, filters, place).to_vec();
    bytes.extend_from_slice(place.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The place that a cursor stands for.
pub(super) fn read(list: &str, filters: &str, cursor: &str) -> Result<String, Problem> {
    let refuse = || {
        Problem::new(
            Code::INVALID_CURSOR,
            "give next_cursor of the page before, with the same filters; or none, for the first page",
        )
        .at("cursor")
    };
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| refuse())?;
    let (given, place) = bytes.split_at_checked(MARK_BYTES).ok_or_else(refuse)?;
    let place = std::str::from_utf8(place).map_err(|_| refuse())?;
    if given == mark(list, filters, place) { Ok(place.to_owned()) } else { Err(refuse()) }
}

/// Tells a cursor of this list and these filters from any other text.
fn mark(list: &str, filters: &str, place: &str) -> [u8; MARK_BYTES] {
    let mut hash = Sha256::new();
    for part in [list, filters, place] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut mark = [0; MARK_BYTES];
    mark.copy_from_slice(&digest[..MARK_BYTES]);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_taken_back_by_its_own_list_and_filters_only() {
        let cursor = write("pauses", "status=open", "17 pau_x");
        assert_eq!(read("pauses", "status=open", &cursor).unwrap(), "17 pau_x");
        for (list, filters, cursor) in [
            ("runs", "status=open", cursor.as_str()),
            ("pauses", "status=decided", cursor.as_str()),
            ("pauses", "status=open", ""),
            ("pauses", "status=open", "AAAA"),
            ("pauses", "status=open", "not base64!"),
            ("pauses", "status=open", &cursor[1..]),
        ] {
            assert_eq!(read(list, filters, cursor).unwrap_err().code(), "invalid_cursor", "{list} {filters} {cursor}");
        }
    }
}
