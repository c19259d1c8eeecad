//! Why JSON was turned away, and the bounds it is read within. A problem says where, never what: the text may hold
//! secrets, and problems are logged.

/// Bounds on JSON that comes from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text, both as given and in canonical form.
    pub bytes_max: usize,
    /// Arrays and objects inside each other. More than [`Limits::WIDEST`] allows is never accepted.
    pub depth_max: usize,
    /// Values in the text: each element of an array, each member of an object, and the outermost value.
    pub members_max: usize,
}

impl Limits {
    /// The bounds for text that was accepted before: any size, and as deep as `serde_json` can decode.
    pub const WIDEST: Self = Self { bytes_max: usize::MAX, depth_max: 127, members_max: usize::MAX };
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes_max: 1024 * 1024, depth_max: 64, members_max: 100_000 }
    }
}

/// Why text was not accepted as JSON. Offsets count bytes from the start of the text given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonProblem {
    /// The text, or its canonical form, is longer than the limit.
    #[error("json has {bytes} bytes, at most {bytes_max} are accepted")]
    TooLarge {
        /// The size found.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Arrays and objects are nested deeper than the limit.
    #[error("json is nested deeper than {depth_max} levels")]
    TooDeep {
        /// The limit.
        depth_max: usize,
    },
    /// There are more values than the limit.
    #[error("json has more than {members_max} values")]
    TooMany {
        /// The limit.
        members_max: usize,
    },
    /// An object has the same key twice. The key is not shown, since it may be a secret.
    #[error("object key at byte {offset} is a duplicate")]
    DuplicateKey {
        /// Where the later of the two keys starts.
        offset: usize,
    },
    /// The text is not JSON.
    #[error("expected {expected} at byte {offset}")]
    Syntax {
        /// Where reading stopped.
        offset: usize,
        /// What would have been accepted there.
        expected: &'static str,
    },
    /// A number's exponent lies beyond 100,000, or its text is longer than 1,024 characters.
    #[error("number at byte {offset} has too large an exponent or too many digits")]
    Number {
        /// Where the number starts.
        offset: usize,
    },
    /// A Rust value has no JSON form, such as a map whose keys are not text.
    #[error("value has no json form")]
    Unserializable {
        /// What `serde_json` said.
        reason: String,
    },
}
