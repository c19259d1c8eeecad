//! What a button or a modal is about: the pause, and the digest of the arguments that were shown. It is no secret and gives
//! no right; who clicks is told by Slack's signature.

use std::fmt;
use std::str::FromStr;

use holdpoint_core::ids::PauseId;
use holdpoint_core::json::Digest;
use holdpoint_core::pause::{Pause, Subject};

/// A pause as it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) pause: PauseId,
    /// `None` where the model's own words are the question.
    pub(super) seen: Option<Digest>,
}

impl Reference {
    pub(super) fn to(pause: &Pause) -> Self {
        let seen = match &pause.subject {
            Subject::Call { digest, .. } => Some(*digest),
            Subject::Words { .. } => None,
        };
        Self { pause: pause.id, seen }
    }

    /// Whether it names arguments exactly where the pause has some: a click that saw nothing decides nothing.
    pub(super) fn fits(&self, pause: &Pause) -> bool {
        self.seen.is_some() == matches!(pause.subject, Subject::Call { .. })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seen {
            Some(digest) => write!(f, "{} {digest}", self.pause),
            None => write!(f, "{} -", self.pause),
        }
    }
}

/// The text is not one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotOurs;

impl FromStr for Reference {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let (pause, seen) = text.split_once(' ').ok_or(NotOurs)?;
        let seen = match seen {
            "-" => None,
            digest => Some(digest.parse().map_err(|_| NotOurs)?),
        };
        Ok(Self { pause: pause.parse().map_err(|_| NotOurs)?, seen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_as_it_was_written_and_nothing_else_is() {
        let pause = "pau_0198c0ffee007000800000000000beef_3".parse().unwrap();
        for seen in [None, Some(Digest::of(b"x"))] {
            let reference = Reference { pause, seen };
            assert_eq!(reference.to_string().parse(), Ok(reference));
        }
        let digest = Digest::of(b"x").to_string();
        for bad in [
            "",
            "-",
            "pau_0198c0ffee007000800000000000beef_3",
            "pau_0198c0ffee007000800000000000beef_3 ",
            "pau_0198c0ffee007000800000000000beef_3  -",
            "pau_0198c0ffee007000800000000000beef_3 abc",
            &format!("pau_0198c0ffee007000800000000000beef_3 {digest} -"),
            &format!("run_0198c0ffee007000800000000000beef {digest}"),
        ] {
            assert_eq!(bad.parse::<Reference>(), Err(NotOurs), "{bad}");
        }
    }
}
