//! Names of things. Each id is a type of its own that prints and parses with its prefix (`run_…`, `pau_…`).
//!
//! Ids are names, never keys: knowing one gives nobody the right to use it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use uuid::Uuid;

use crate::text::is_plain;

/// Why a text is not the id that it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} expected, such as {example}")]
pub struct BadId {
    /// The kind of id that was expected.
    pub what: &'static str,
    /// What one looks like.
    pub example: &'static str,
}

macro_rules! serde_as_text {
    ($name:ident) => {
        serde_as_text!($name, |id, serializer| serializer.collect_str(id));
    };
    ($name:ident, |$id:ident, $serializer:ident| $written:expr) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, $serializer: S) -> Result<S::Ok, S::Error> {
                let $id = self;
                $written
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

/// One execution, from message to outcome.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Uuid);

impl RunId {
    /// Names a run by a UUID; version 7 keeps runs in the order in which they began.
    pub fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID behind the name, as stores keep it.
    pub fn uuid(&self) -> &Uuid {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run_{}", self.0.simple())
    }
}

impl FromStr for RunId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = BadId { what: "a run id", example: "run_0198c0ffee007000800000000000beef" };
        let hex = text.strip_prefix("run_").ok_or(bad.clone())?;
        simple_uuid(hex).map(Self).ok_or(bad)
    }
}

serde_as_text!(RunId);

/// A question to a person: the run it belongs to, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PauseId {
    /// The run that waits.
    pub run: RunId,
    /// Counts the run's pauses from one.
    pub number: u32,
}

impl fmt::Display for PauseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pau_{}_{}", self.run.0.simple(), self.number)
    }
}

impl FromStr for PauseId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = BadId { what: "a pause id", example: "pau_0198c0ffee007000800000000000beef_1" };
        numbered(text, "pau_").map(|(run, number)| Self { run, number }).ok_or(bad)
    }
}

serde_as_text!(PauseId);

/// A standing rule: the run in which it was made, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId {
    /// The run in which somebody made the rule.
    pub run: RunId,
    /// Counts the run's rules from one.
    pub number: u32,
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rul_{}_{}", self.run.0.simple(), self.number)
    }
}

impl FromStr for RuleId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = BadId { what: "a rule id", example: "rul_0198c0ffee007000800000000000beef_1" };
        numbered(text, "rul_").map(|(run, number)| Self { run, number }).ok_or(bad)
    }
}

serde_as_text!(RuleId);

/// Reads exactly 32 lower-case hexadecimal digits, so that an id has one spelling.
fn simple_uuid(hex: &str) -> Option<Uuid> {
    let one_spelling = hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    one_spelling.then(|| Uuid::try_parse(hex).ok()).flatten()
}

fn numbered(text: &str, prefix: &str) -> Option<(RunId, u32)> {
    let (hex, number) = text.strip_prefix(prefix)?.split_once('_')?;
    let one_spelling = !number.starts_with('0') && !number.starts_with('+');
    Some((RunId(simple_uuid(hex)?), number.parse().ok().filter(|_| one_spelling)?))
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $example:literal, $length_max:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The longest text that is accepted, in bytes.
            pub const LENGTH_MAX: usize = $length_max;

            /// Takes a name that has passed no check yet.
            ///
            /// # Errors
            /// An empty or over-long text, or one with control, bidirectional or zero-width characters.
            pub fn new(text: impl AsRef<str>) -> Result<Self, BadId> {
                let text = text.as_ref();
                let fits = !text.is_empty() && text.len() <= Self::LENGTH_MAX && text.chars().all(is_plain);
                fits.then(|| Self(text.into())).ok_or(BadId { what: $what, example: $example })
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::new(text)
            }
        }

        serde_as_text!($name, |id, serializer| serializer.serialize_str(&id.0));
    };
}

text_id!(
    /// A conversation, named by its client.
    SessionId,
    "a session id of 1 to 256 printable bytes",
    "support-4711",
    256
);
text_id!(
    /// Who or what answered: a person, a rule, an automatic decider.
    ActorId,
    "an actor id of 1 to 256 printable bytes",
    "ana@example.com",
    256
);

impl ActorId {
    /// The one who decides where nobody was named: the person at the program.
    pub fn local() -> Self {
        Self("local".into())
    }

    /// Who decides when nobody did in time and the pause's terms let the call run then. No person goes by this name.
    pub fn timeout() -> Self {
        Self("timeout".into())
    }
}

/// An agent by its place in the agent graph: the root's name, then the tools that lead to it.
///
/// `Support` is a root; `Support/transfer_to_billing` is what that hand-off reaches. Two agents of one name stand in
/// two places, so they are told apart.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// The longest id that is accepted, in bytes.
    pub const LENGTH_MAX: usize = 1_024;

    /// The id of the agent that a run starts with.
    ///
    /// # Errors
    /// An empty or over-long name, one with a slash, or one with characters that a person could not see.
    pub fn root(name: &str) -> Result<Self, BadId> {
        let fits = !name.is_empty() && name.len() <= 128 && name.chars().all(|c| is_plain(c) && c != '/');
        fits.then(|| Self(name.into()))
            .ok_or(BadId { what: "an agent name of 1 to 128 printable bytes without a slash", example: "Support" })
    }

    /// The id of the agent that `tool` leads to from here.
    pub fn through(&self, tool: &ToolName) -> Self {
        Self(format!("{self}/{tool}").into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the root agent that this path begins with.
    pub fn root_name(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AgentId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = BadId { what: "an agent path", example: "Support/transfer_to_billing" };
        let (name, tools) = text.split_once('/').map_or((text, None), |(name, tools)| (name, Some(tools)));
        let is_path = AgentId::root(name).is_ok()
            && tools.is_none_or(|tools| tools.split('/').all(|tool| ToolName::new(tool).is_ok()));
        (is_path && text.len() <= Self::LENGTH_MAX).then(|| Self(text.into())).ok_or(bad)
    }
}

serde_as_text!(AgentId, |id, serializer| serializer.serialize_str(&id.0));

/// What a model calls a tool.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Takes a name of 1 to 128 letters, digits, `_`, `-`, `.` or `:`.
    ///
    /// # Errors
    /// Anything else: a name that looks like another one must not exist.
    pub fn new(name: impl AsRef<str>) -> Result<Self, BadId> {
        let name = name.as_ref();
        let is_name = (1..=128).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':'));
        is_name.then(|| Self(name.into())).ok_or(BadId {
            what: "a tool name of 1 to 128 letters, digits, '_', '-', '.' or ':'",
            example: "send_email",
        })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ToolName {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        Self::new(text)
    }
}

serde_as_text!(ToolName, |id, serializer| serializer.serialize_str(&id.0));

/// Where a tool call stands in a run: the turn and position in each agent's frame, from the root inwards.
///
/// `2.0` is the first call of the root agent's second turn; if that call runs an agent, `2.0/1.1` is the second call
/// of that agent's first turn. Providers may repeat their own call ids; these places are never repeated.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CallPath(Vec<Place>);

/// One level of a [`CallPath`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Counts the frame's model calls from one.
    pub turn: u32,
    /// The call's position in the model's reply, from zero.
    pub index: u32,
}

/// Where an agent's frame stands: empty for the root, otherwise the call that opened it.
pub type FramePath = CallPath;

impl CallPath {
    /// Agents may nest this deep.
    pub const DEPTH_MAX: usize = 16;

    /// The root agent's frame.
    pub fn root() -> FramePath {
        Self(Vec::new())
    }

    /// The call at `turn` and `index` of the frame at this path.
    pub fn call(&self, turn: u32, index: u32) -> CallPath {
        let mut places = self.0.clone();
        places.push(Place { turn, index });
        Self(places)
    }

    /// The frame in which this call was made; the root frame for itself.
    pub fn frame(&self) -> FramePath {
        Self(self.0.split_last().map_or(Vec::new(), |(_, outer)| outer.to_vec()))
    }

    /// The innermost place; `None` for the root frame.
    pub fn place(&self) -> Option<Place> {
        self.0.last().copied()
    }

    /// Whether this is the root agent's frame.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// How many agents stand around what is at this path.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Whether this lies at or below `outer`.
    pub fn is_within(&self, outer: &CallPath) -> bool {
        self.0.starts_with(&outer.0)
    }
}

impl fmt::Display for CallPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, place) in self.0.iter().enumerate() {
            let slash = if level == 0 { "" } else { "/" };
            write!(f, "{slash}{}.{}", place.turn, place.index)?;
        }
        Ok(())
    }
}

impl FromStr for CallPath {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        let places: Option<Vec<Place>> = text.split('/').map(place).collect();
        let fits = |places: &Vec<Place>| places.len() <= Self::DEPTH_MAX;
        places.filter(fits).map(Self).ok_or(BadId { what: "a call path", example: "2.0/1.1" })
    }
}

fn place(text: &str) -> Option<Place> {
    let (turn, index) = text.split_once('.')?;
    let place = Place { turn: turn.parse().ok().filter(|turn| *turn > 0)?, index: index.parse().ok()? };
    let one_spelling = |text: &str| text == "0" || !text.starts_with(['0', '+']);
    (one_spelling(turn) && one_spelling(index)).then_some(place)
}

serde_as_text!(CallPath);

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        RunId::new(Uuid::from_u128(0x0198_c0ff_ee00_7000_8000_0000_0000_beef))
    }

    #[test]
    fn ids_print_and_parse_with_their_prefix() {
        assert_eq!(run().to_string(), "run_0198c0ffee007000800000000000beef");
        assert_eq!(run().to_string().parse(), Ok(run()));
        let pause = PauseId { run: run(), number: 12 };
        assert_eq!(pause.to_string().parse(), Ok(pause));
        let rule = RuleId { run: run(), number: 3 };
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }

    #[test]
    fn an_id_has_one_spelling() {
        for text in [
            "0198c0ffee007000800000000000beef",
            "run_0198C0FFEE007000800000000000BEEF",
            "run_0198c0ff-ee00-7000-8000-00000000beef",
            "run_",
            "pau_0198c0ffee007000800000000000beef",
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
        for text in ["pau_0198c0ffee007000800000000000beef_01", "pau_0198c0ffee007000800000000000beef_+1", "pau__1"] {
            assert!(text.parse::<PauseId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_tool_name_that_looks_like_another_is_refused() {
        assert!(ToolName::new("send_email").is_ok());
        for name in ["", "send email", "sеnd_email", "send\u{200b}email", &"x".repeat(129)] {
            assert!(ToolName::new(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_agent_path_is_a_name_and_tools() {
        let root = AgentId::root("Basic test agent").unwrap();
        let billing = root.through(&ToolName::new("transfer_to_billing").unwrap());
        assert_eq!(billing.to_string(), "Basic test agent/transfer_to_billing");
        assert_eq!(billing.to_string().parse(), Ok(billing));
        assert!(AgentId::root("a/b").is_err());
        assert!("a//b".parse::<AgentId>().is_err());
    }

    #[test]
    fn call_paths_nest() {
        let outer = FramePath::root().call(2, 0);
        let inner = outer.call(1, 1);
        assert_eq!(inner.to_string(), "2.0/1.1");
        assert_eq!(inner.to_string().parse(), Ok(inner.clone()));
        assert_eq!(inner.frame(), outer);
        assert!(inner.is_within(&outer));
        assert!(!outer.is_within(&inner));
        for text in ["1", "0.1", "1.0/", "a.b", "1.0//1.0", "01.0", "1.00", "1.+0", "+1.0"] {
            assert!(text.parse::<CallPath>().is_err(), "{text}");
        }
    }
}
