//! The names of keys. All of them have one hash tag, so that a cluster keeps them on one node and a script may change
//! them together.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use holdpoint_core::ids::{ActorId, PauseId, RuleId, RunId, SessionId};
use holdpoint_runtime::ports::notifier::Destination;
use holdpoint_runtime::ports::store::PauseStatus;

/// Names keys, all of which begin with `{prefix}:`. A copy is cheap.
#[derive(Debug, Clone)]
pub(super) struct Keys(Arc<Names>);

/// What all names begin with, and the names that every append needs, written once.
#[derive(Debug)]
struct Names {
    prefix: String,
    sessions: String,
    runs: String,
    work: String,
    pauses: String,
    pause_order: String,
    open_pauses: String,
    deadlines: String,
    audit: String,
    audit_head: String,
}

impl Keys {
    /// # Errors
    /// The prefix is empty, too long, or has letters that mean something in a key.
    pub(super) fn new(prefix: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if prefix.is_empty() || prefix.len() > 64 || !prefix.chars().all(is_plain) {
            return Err("a prefix has 1 to 64 letters, digits, hyphens, underscores and dots".to_owned());
        }
        let prefix = format!("{{{prefix}}}:");
        let named = |what: &str| format!("{prefix}{what}");
        Ok(Self(Arc::new(Names {
            sessions: named("sessions"),
            runs: named("runs"),
            work: named("work"),
            pauses: named("pauses"),
            pause_order: named("pause-order"),
            open_pauses: named("pause-order-of:0"),
            deadlines: named("deadlines"),
            audit: named("audit"),
            audit_head: named("audit-head"),
            prefix,
        })))
    }

    fn named(&self, what: &str) -> String {
        [&self.0.prefix, what].concat()
    }

    /// A kind of keys, and which of them.
    fn named_of(&self, kind: &str, which: &str) -> String {
        [&self.0.prefix, kind, which].concat()
    }

    /// Which form the rest has.
    pub(super) fn format(&self) -> String {
        self.named("format")
    }

    /// Channel: what instances tell each other.
    pub(super) fn bus(&self) -> String {
        self.named("bus")
    }

    /// Hash: a session's name and its record.
    pub(super) fn sessions(&self) -> &str {
        &self.0.sessions
    }

    /// Sorted: sessions in the order in which they began; all, or those of an owner.
    pub(super) fn session_order(&self, owner: Option<&ActorId>) -> String {
        match owner {
            None => self.named("session-order"),
            Some(owner) => self.named(&format!("session-order-of:{owner}")),
        }
    }

    /// Hash: a run's id and its record.
    pub(super) fn runs(&self) -> &str {
        &self.0.runs
    }

    /// Sorted: runs in the order of their ids; all, or those in sessions of an owner.
    pub(super) fn run_order(&self, owner: Option<&ActorId>) -> String {
        match owner {
            None => self.named("run-order"),
            Some(owner) => self.named(&format!("run-order-of:{owner}")),
        }
    }

    /// Sorted: a session's runs by the number of their first event.
    pub(super) fn runs_of(&self, session: &SessionId) -> String {
        self.named_of("runs-of:", session.as_str())
    }

    /// Hash: an agent and its unfinished run in a session.
    pub(super) fn under_way(&self, session: &SessionId) -> String {
        self.named_of("under-way:", session.as_str())
    }

    /// Sorted: runs with something to do, by when their lease ends or since when nobody holds it.
    pub(super) fn work(&self) -> &str {
        &self.0.work
    }

    /// Hash: a revision of a run and its entry.
    pub(super) fn journal(&self, run: RunId) -> String {
        self.named_of("journal:", &run_name(run))
    }

    /// Sorted: the entries of a session by the number of their last event.
    pub(super) fn log(&self, session: &SessionId) -> String {
        self.named_of("log:", session.as_str())
    }

    /// Hash: a pause and its record.
    pub(super) fn pauses(&self) -> &str {
        &self.0.pauses
    }

    /// Sorted: all pauses by when they opened.
    pub(super) fn pause_order(&self) -> &str {
        &self.0.pause_order
    }

    /// Sorted: pauses of one status by when they opened. Those that were decided are the ones in none of these.
    pub(super) fn pause_order_of(&self, status: PauseStatus) -> Option<Cow<'_, str>> {
        match status {
            PauseStatus::Open => Some(Cow::Borrowed(&self.0.open_pauses)),
            PauseStatus::Decided => None,
            PauseStatus::Expired => Some(Cow::Owned(self.named("pause-order-of:2"))),
            PauseStatus::Withdrawn => Some(Cow::Owned(self.named("pause-order-of:3"))),
        }
    }

    /// Sorted, in the first format: pauses that were decided.
    pub(super) fn decided_pauses(&self) -> String {
        self.named("pause-order-of:1")
    }

    /// Sorted: a session's pauses by when they opened.
    pub(super) fn pauses_of(&self, session: &SessionId) -> String {
        self.named_of("pauses-of:", session.as_str())
    }

    /// Sorted: open pauses by their deadline.
    pub(super) fn deadlines(&self) -> &str {
        &self.0.deadlines
    }

    /// Hash: a rule and its record.
    pub(super) fn rules(&self) -> String {
        self.named("rules")
    }

    /// Sorted: rules that were not taken back, in the order of their ids; all, or those of a session.
    pub(super) fn rule_order(&self, session: Option<&SessionId>) -> String {
        match session {
            None => self.named("rule-order"),
            Some(session) => self.named(&format!("rule-order-of:{session}")),
        }
    }

    /// Hash: a definition by its digest.
    pub(super) fn definitions(&self) -> String {
        self.named("definitions")
    }

    /// Hash: an audit record by its number.
    pub(super) fn audit(&self) -> &str {
        &self.0.audit
    }

    /// Hash: a notice and its record.
    pub(super) fn notices(&self) -> String {
        self.named("notices")
    }

    /// Sorted: notices in the order of their keys.
    pub(super) fn notice_order(&self) -> String {
        self.named("notice-order")
    }

    /// Sorted: notices to a destination that wait, by when they are due.
    pub(super) fn notices_due(&self, destination: &Destination) -> String {
        self.named(&format!("notices-due:{destination}"))
    }

    /// The number and hash of the last audit record.
    pub(super) fn audit_head(&self) -> &str {
        &self.0.audit_head
    }
}

/// A name of a fixed length in keys and members, in letters that every text has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<const N: usize>([u8; N]);

/// A run's name, in whose order runs are.
pub(super) type RunName = Name<32>;

/// The name of a pause or a rule: its run's, a colon, and ten digits.
pub(super) type NumberedName = Name<43>;

impl<const N: usize> Deref for Name<N> {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a name is written in hex digits, digits and colons")
    }
}

impl<const N: usize> fmt::Display for Name<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<const N: usize> AsRef<[u8]> for Name<N> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A run's name in keys and members, in whose order runs are.
pub(super) fn run_name(run: RunId) -> RunName {
    let mut name = [0; 32];
    run.uuid().simple().encode_lower(&mut name);
    Name(name)
}

/// A pause's name, in whose order pauses of one moment are.
pub(super) fn pause_name(pause: PauseId) -> NumberedName {
    numbered(pause.run, pause.number)
}

/// A rule's name, in whose order rules are.
pub(super) fn rule_name(rule: RuleId) -> NumberedName {
    numbered(rule.run, rule.number)
}

fn numbered(run: RunId, number: u32) -> NumberedName {
    let mut name = [b'0'; 43];
    name[..32].copy_from_slice(&run_name(run).0);
    name[32] = b':';
    let mut left = number;
    for digit in name[33..].iter_mut().rev() {
        // A digit, which fits.
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    Name(name)
}

/// The run of a name.
pub(super) fn parse_run(name: &str) -> Option<RunId> {
    format!("run_{name}").parse().ok()
}

/// The run and the number of a pause or a rule.
pub(super) fn parse_numbered(name: &str) -> Option<(RunId, u32)> {
    let (run, number) = name.split_once(':')?;
    Some((parse_run(run)?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_hash_tag_whatever_the_names_in_it() {
        let keys = Keys::new("holdpoint").unwrap();
        let session = SessionId::new("}{other}:*").unwrap();
        let withdrawn = keys.pause_order_of(PauseStatus::Withdrawn).unwrap().into_owned();
        for key in [keys.format(), keys.log(&session), keys.rule_order(Some(&session)), withdrawn] {
            assert!(key.starts_with("{holdpoint}:"), "{key}");
        }
        for bad in ["", "{", "a}b", "a b", &"x".repeat(65)] {
            assert!(Keys::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_read_back_and_keep_the_order() {
        let run: RunId = "run_0198c0ffee007000800000000000beef".parse().unwrap();
        assert_eq!(parse_run(&run_name(run)), Some(run));
        let names = [0, 9, 10, u32::MAX].map(|number| pause_name(PauseId { run, number }).to_string());
        assert!(names.is_sorted());
        assert_eq!(names[1], format!("{}:0000000009", run_name(run)));
        assert_eq!(parse_numbered(&names[3]), Some((run, u32::MAX)));
        assert_eq!(parse_numbered("x"), None);
    }
}
