//! Who decided what, as a chain: each record is hashed together with the hash of the one before it, so that none can be
//! changed, left out or put in between without the chain showing it.
//!
//! The hash of record `n` is `SHA-256(hash of record n - 1 ‖ body of record n)`, the body being the note's canonical JSON
//! and the hash before the first being 32 zero bytes. What is cut off at the end shows because stores keep the last
//! record's number and hash apart; that a store was rewritten whole shows only beside a hash that was kept elsewhere.

use serde::{Deserialize, Serialize};

use crate::decision::{Decision, Manner};
use crate::event::{RunEnd, RunEvent};
use crate::ids::{ActorId, AgentId, PauseId, RuleId, RunId, SessionId, ToolName};
use crate::json::{CanonicalJson, Digest, JsonProblem};
use crate::pause::Subject;
use crate::policy::RuleEffect;
use crate::run::Run;
use crate::time::Timestamp;

/// What is written down for those who look later. Nothing of it is content: what was held stands as a digest.
// In the order of the canonical form, so that writing it sorts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditNote {
    /// The agent that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// Who did it; nobody withdraws or expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ActorId>,
    /// The digest of the arguments that a person put in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_sha256: Option<Digest>,
    /// The policy's rule that held the call, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// What happened.
    pub kind: AuditKind,
    /// How a decision came about, where nobody gave it for this very pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manner: Option<Manner>,
    /// The decision's name, or what a rule does: `approve` or `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The pause, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseId>,
    /// The caller's own name of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The standing rule that was made, taken back, or that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleId>,
    /// The run.
    pub run: RunId,
    /// The conversation.
    pub session: SessionId,
    /// The digest of the arguments that were held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// The tool that was to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// Through which door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AuditKind {
    /// One of several who must approve did.
    #[serde(rename = "pause.voted")]
    PauseVoted,
    /// A pause was decided.
    #[serde(rename = "pause.decided")]
    PauseDecided,
    /// Nobody decided in time.
    #[serde(rename = "pause.expired")]
    PauseExpired,
    /// The question no longer arises.
    #[serde(rename = "pause.withdrawn")]
    PauseWithdrawn,
    /// Somebody made a standing rule.
    #[serde(rename = "rule.made")]
    RuleMade,
    /// Somebody took one back.
    #[serde(rename = "rule.revoked")]
    RuleRevoked,
    /// Somebody ended a run.
    #[serde(rename = "run.cancelled")]
    RunCancelled,
}

impl AuditKind {
    /// The kind's name, as wires and stores spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PauseVoted => "pause.voted",
            Self::PauseDecided => "pause.decided",
            Self::PauseExpired => "pause.expired",
            Self::PauseWithdrawn => "pause.withdrawn",
            Self::RuleMade => "rule.made",
            Self::RuleRevoked => "rule.revoked",
            Self::RunCancelled => "run.cancelled",
        }
    }
}

impl AuditNote {
    /// The note about an event, if it is one of those that are written down; `run` is the run right after it.
    pub fn of(run: &Run, event: &RunEvent, at: Timestamp) -> Option<Self> {
        let on_pause = |kind, number| Self::on_pause(run, kind, number, at);
        match event {
            RunEvent::PauseVoted(voted) => Some(Self {
                outcome: Some(Decision::Approve.name().to_owned()),
                by: Some(voted.by.clone()),
                via: voted.via.clone(),
                request: voted.request.clone(),
                ..on_pause(AuditKind::PauseVoted, voted.number)?
            }),
            RunEvent::PauseDecided(decided) => Some(Self {
                outcome: Some(decided.decision.name().to_owned()),
                by: Some(decided.by.clone()),
                via: decided.via.clone(),
                request: decided.request.clone(),
                rule: decided.rule,
                manner: Some(decided.manner).filter(|manner| !manner.is_given()),
                edited_sha256: match &decided.decision {
                    Decision::ApproveEdited { arguments } => Some(arguments.digest()),
                    _ => None,
                },
                ..on_pause(AuditKind::PauseDecided, decided.number)?
            }),
            RunEvent::PauseExpired(expired) => on_pause(AuditKind::PauseExpired, expired.number),
            RunEvent::PauseWithdrawn(withdrawn) => on_pause(AuditKind::PauseWithdrawn, withdrawn.number),
            RunEvent::RuleMade(rule) => Some(Self {
                outcome: Some(match rule.effect {
                    RuleEffect::Approve => "approve".to_owned(),
                    RuleEffect::Deny { .. } => "deny".to_owned(),
                }),
                by: Some(rule.author.clone()),
                rule: Some(rule.id),
                tool: Some(rule.scope.tool.name.clone()),
                ..Self::on_run(run, AuditKind::RuleMade, at)?
            }),
            RunEvent::RuleRevoked(revoked) => Some(Self {
                by: Some(revoked.by.clone()),
                rule: Some(revoked.rule),
                ..Self::on_run(run, AuditKind::RuleRevoked, at)?
            }),
            RunEvent::RunFinished(RunEnd::Cancelled { by, .. }) => {
                Some(Self { by: Some(by.clone()), ..Self::on_run(run, AuditKind::RunCancelled, at)? })
            }
            _ => None,
        }
    }

    fn on_run(run: &Run, kind: AuditKind, at: Timestamp) -> Option<Self> {
        Some(Self {
            at,
            kind,
            session: run.session()?.clone(),
            run: run.id(),
            pause: None,
            agent: None,
            tool: None,
            outcome: None,
            by: None,
            via: None,
            request: None,
            manner: None,
            sha256: None,
            edited_sha256: None,
            rule: None,
            held_by: None,
        })
    }

    fn on_pause(run: &Run, kind: AuditKind, number: u32, at: Timestamp) -> Option<Self> {
        let id = PauseId { run: run.id(), number };
        let (pause, (agent, tool)) = (run.pause(id).ok()?, run.asker(id)?);
        let sha256 = match pause.subject {
            Subject::Call { digest, .. } => Some(digest),
            Subject::Words { .. } => None,
        };
        Some(Self {
            pause: Some(id),
            agent: Some(agent.clone()),
            tool: tool.cloned(),
            sha256,
            held_by: pause.terms.rule.clone(),
            ..Self::on_run(run, kind, at)?
        })
    }

    /// The note as it is hashed and kept.
    ///
    /// # Errors
    /// The note is larger than JSON may be here, which no note of this program is.
    pub fn body(&self) -> Result<CanonicalJson, JsonProblem> {
        CanonicalJson::from_canonical(self)
    }
}

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Counts the store's records from one.
    pub n: u64,
    /// The note's canonical JSON, exactly as it was hashed.
    pub body: String,
    /// The hash of the record before this one and of the body.
    pub hash: Digest,
}

impl AuditRecord {
    /// The record that follows the one with this number and hash; `None` for the first.
    pub fn following(last: Option<(u64, Digest)>, body: &CanonicalJson) -> Self {
        let hash = link(last, body.as_str());
        Self { n: last.map_or(1, |(n, _)| n + 1), body: body.as_str().to_owned(), hash }
    }

    /// Whether the record follows the one with this number and hash, and is as it was hashed.
    pub fn follows(&self, last: Option<(u64, Digest)>) -> bool {
        self.n == last.map_or(1, |(n, _)| n + 1) && self.hash == link(last, &self.body)
    }

    /// What it says.
    ///
    /// # Errors
    /// It was written by a newer version, or is none of ours.
    pub fn note(&self) -> Result<AuditNote, serde_json::Error> {
        serde_json::from_str(&self.body)
    }
}

fn link(last: Option<(u64, Digest)>, body: &str) -> Digest {
    let before = last.map_or([0; 32], |(_, hash)| *hash.as_bytes());
    Digest::of_both(&before, body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> CanonicalJson {
        CanonicalJson::parse(text).unwrap()
    }

    fn chain(texts: &[&str]) -> Vec<AuditRecord> {
        let mut records: Vec<AuditRecord> = Vec::new();
        for text in texts {
            let last = records.last().map(|record| (record.n, record.hash));
            records.push(AuditRecord::following(last, &body(text)));
        }
        records
    }

    fn first_break(records: &[AuditRecord]) -> Option<usize> {
        let last = |index: usize| index.checked_sub(1).map(|before| (records[before].n, records[before].hash));
        (0..records.len()).find(|index| !records[*index].follows(last(*index)))
    }

    #[test]
    fn a_note_is_canonical_as_it_is_written() {
        let run: RunId = "run_0198c0ffee007000800000000000beef".parse().unwrap();
        let odd = "\u{7f}\"\\/\u{0}\u{1f}\u{8}\u{c}\n\r\t\u{2028}é😀".to_owned();
        let note = AuditNote {
            agent: Some(AgentId::root("é\"\\").unwrap()),
            at: Timestamp::from_millis(i64::MAX),
            by: Some(ActorId::new("ana/\u{e9}\"").unwrap()),
            edited_sha256: Some(Digest::of(b"b")),
            held_by: Some(odd.clone()),
            kind: AuditKind::PauseDecided,
            manner: Some(Manner::Superseded),
            outcome: Some(odd.clone()),
            pause: Some(PauseId { run, number: u32::MAX }),
            request: Some(odd.clone()),
            rule: Some(RuleId { run, number: 1 }),
            run,
            session: SessionId::new("}{\"\\").unwrap(),
            sha256: Some(Digest::of(b"a")),
            tool: Some(ToolName::new("a.b:c").unwrap()),
            via: Some(odd),
        };
        assert_eq!(note.body(), CanonicalJson::from_serialize(&note));
        let least = AuditNote { at: Timestamp::from_millis(-1), ..bare(note) };
        assert_eq!(least.body(), CanonicalJson::from_serialize(&least));
    }

    fn bare(AuditNote { at, kind, run, session, .. }: AuditNote) -> AuditNote {
        AuditNote {
            agent: None,
            at,
            by: None,
            edited_sha256: None,
            held_by: None,
            kind,
            manner: None,
            outcome: None,
            pause: None,
            request: None,
            rule: None,
            run,
            session,
            sha256: None,
            tool: None,
            via: None,
        }
    }

    #[test]
    fn the_hash_is_that_of_the_hash_before_and_the_body() {
        let records = chain(&[r#"{"a":1}"#, r#"{"b":2}"#]);
        let first = Digest::of(&[&[0; 32][..], br#"{"a":1}"#].concat());
        assert_eq!(records[0].hash, first);
        assert_eq!(records[1].hash, Digest::of(&[&first.as_bytes()[..], br#"{"b":2}"#].concat()));
        assert_eq!(first_break(&records), None);
    }

    #[test]
    fn what_is_changed_left_out_or_moved_shows() {
        let records = chain(&["1", "2", "3", "4"]);
        let mut changed = records.clone();
        changed[1].body = "9".to_owned();
        assert_eq!(first_break(&changed), Some(1));
        let mut left_out = records.clone();
        left_out.remove(2);
        assert_eq!(first_break(&left_out), Some(2));
        let mut moved = records.clone();
        moved.swap(1, 2);
        assert_eq!(first_break(&moved), Some(1));
        let mut rehashed = records;
        rehashed[0] = AuditRecord::following(None, &body("9"));
        assert_eq!(first_break(&rehashed), Some(1));
    }
}
