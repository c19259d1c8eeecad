//! Keys that hold a session and the number of one of its events, as `session << 32 | seq`.

use holdpoint_core::ids::SessionId;
use rusqlite::{Connection, Error, ffi};

use super::sessions;

const SEQ_BITS: u32 = 32;
const SEQ_MAX: i64 = (1 << SEQ_BITS) - 1;
const SESSION_MAX: i64 = i64::MAX >> SEQ_BITS;

/// The key of an event.
///
/// # Errors
/// The session has four thousand million events, or the file half as many sessions: it is full.
pub(super) fn key(session: i64, seq: u64) -> rusqlite::Result<i64> {
    match i64::try_from(seq) {
        Ok(seq) if seq <= SEQ_MAX && session <= SESSION_MAX => Ok(session << SEQ_BITS | seq),
        _ => Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), Some("the session is full".to_owned()))),
    }
}

/// The session in a key.
pub(super) fn session_of(key: i64) -> i64 {
    key >> SEQ_BITS
}

/// The number in a key.
pub(super) fn seq_of(key: i64) -> u64 {
    (key & SEQ_MAX).cast_unsigned()
}

/// The first and last keys that a session can have.
pub(super) fn keys_of(session: i64) -> (i64, i64) {
    (session << SEQ_BITS, session << SEQ_BITS | SEQ_MAX)
}

/// The first and last keys that a session of this name can have, if it has been used.
pub(super) fn keys_of_name(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<(i64, i64)>> {
    Ok(sessions::find(connection, session)?.map(keys_of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_a_session_and_a_number() {
        for (session, seq) in [(1, 1), (7, 0), (SESSION_MAX, SEQ_MAX.cast_unsigned())] {
            let key = key(session, seq).unwrap();
            assert_eq!((session_of(key), seq_of(key)), (session, seq));
            let (first, last) = keys_of(session);
            assert!((first..=last).contains(&key));
        }
        assert!(key(1, u64::from(u32::MAX)).unwrap() < key(2, 0).unwrap());
    }

    #[test]
    fn a_number_that_does_not_fit_is_refused() {
        assert!(key(1, 1 << SEQ_BITS).is_err());
        assert!(key(1, u64::MAX).is_err());
        assert!(key(SESSION_MAX + 1, 1).is_err());
    }
}
