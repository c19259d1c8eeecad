//! How sessions, runs, pauses and rules stand in Redis: as JSON, compared byte for byte before they are changed. What every
//! decision changes is a list of its fields in order, which is half as long as an object; both are read. A list with more
//! than is known is refused: a new field comes last, has a default, and raises the format of the store.

use std::io::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use ::redis::Pipeline;
use holdpoint_core::ids::{ActorId, AgentId, PauseId, RunId, SessionId, ToolName};
use holdpoint_core::pause::PauseKind;
use holdpoint_core::policy::StandingRule;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{PauseRow, PauseStatus, RunStatus, RunSummary, SessionRow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use super::fault::Broken;
use crate::admit::{LeaseSlot, Mover};

/// A record, and the bytes by which it stands in the store.
#[derive(Debug)]
pub(super) struct Held<T> {
    pub(super) record: T,
    pub(super) bytes: Vec<u8>,
}

impl<T: Serialize> Held<T> {
    /// One that is to be written.
    pub(super) fn new(record: T) -> Result<Arc<Self>, Broken> {
        let bytes = encode(&record)?;
        Ok(Arc::new(Self { record, bytes }))
    }
}

impl<T: DeserializeOwned> Held<T> {
    /// One that was read.
    pub(super) fn read(bytes: Vec<u8>) -> Result<Arc<Self>, Broken> {
        let record = decode(&bytes)?;
        Ok(Arc::new(Self { record, bytes }))
    }

    /// As they were found.
    pub(super) fn read_all(found: Vec<Option<Vec<u8>>>) -> Result<Vec<Option<Arc<Self>>>, Broken> {
        found.into_iter().map(|bytes| bytes.map(Self::read).transpose()).collect()
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SessionRecord {
    /// Who began its first run.
    pub(super) owner: ActorId,
    pub(super) created_at: i64,
    pub(super) last_at: i64,
    pub(super) runs: u64,
    /// How many events it has.
    pub(super) events: u64,
    /// How many times pauses opened in it.
    pub(super) pause_groups: u64,
}

impl Serialize for SessionRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { owner, created_at, last_at, runs, events, pause_groups } = self;
        (owner, created_at, last_at, runs, events, pause_groups).serialize(serializer)
    }
}

impl SessionRecord {
    pub(super) fn row(&self, name: &str) -> Result<SessionRow, Broken> {
        Ok(SessionRow {
            session: parse(name)?,
            owner: self.owner.clone(),
            created_at: Timestamp::from_millis(self.created_at),
            last_at: Timestamp::from_millis(self.last_at),
            runs: self.runs,
            events: self.events,
        })
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct RunRecord {
    pub(super) session: SessionId,
    pub(super) agent: AgentId,
    pub(super) first_seq: u64,
    pub(super) revision: u64,
    /// 0 working, 1 waiting, 2 finished
    pub(super) status: u8,
    pub(super) started_at: i64,
    pub(super) last_at: i64,
    /// The lease: how many have held it, who does, and until when; without a holder, since when nobody does.
    pub(super) epoch: u64,
    pub(super) owner: Option<String>,
    pub(super) since: i64,
}

impl Serialize for RunRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { session, agent, first_seq, revision, status, started_at, last_at, epoch, owner, since } = self;
        (session, agent, first_seq, revision, status, started_at, last_at, epoch, owner, since).serialize(serializer)
    }
}

impl RunRecord {
    pub(super) fn lease(&self) -> LeaseSlot {
        let since = Timestamp::from_millis(self.since);
        let mover = match &self.owner {
            Some(owner) => Mover::Holder { owner: owner.clone(), until: since },
            None => Mover::Nobody { since },
        };
        LeaseSlot { epoch: self.epoch, mover }
    }

    pub(super) fn with_lease(self, lease: &LeaseSlot) -> Self {
        let (owner, since) = match &lease.mover {
            Mover::Holder { owner, until } => (Some(owner.clone()), until.as_millis()),
            Mover::Nobody { since } => (None, since.as_millis()),
        };
        Self { epoch: lease.epoch, owner, since, ..self }
    }

    pub(super) fn status(&self) -> Result<RunStatus, Broken> {
        match self.status {
            0 => Ok(RunStatus::Working),
            1 => Ok(RunStatus::Waiting),
            2 => Ok(RunStatus::Finished),
            other => Err(Broken::Unreadable(format!("run status {other}"))),
        }
    }

    pub(super) fn summary(&self, run: RunId) -> Result<RunSummary, Broken> {
        Ok(RunSummary {
            run,
            session: self.session.clone(),
            agent: self.agent.clone(),
            status: self.status()?,
            started_at: Timestamp::from_millis(self.started_at),
            last_at: Timestamp::from_millis(self.last_at),
        })
    }
}

pub(super) fn status_code(status: RunStatus) -> u8 {
    match status {
        RunStatus::Working => 0,
        RunStatus::Waiting => 1,
        RunStatus::Finished => 2,
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PauseRecord {
    pub(super) session: SessionId,
    /// 0 approval, 1 question, 2 confirmation, 3 in doubt
    pub(super) kind: u8,
    /// 0 open, 1 decided, 2 expired, 3 withdrawn: as it opened. How it stands since is told by the list that it is in.
    pub(super) status: u8,
    pub(super) agent: AgentId,
    pub(super) tool: Option<ToolName>,
    pub(super) opened_at: i64,
    pub(super) expires_at: Option<i64>,
    pub(super) group: u64,
}

impl Serialize for PauseRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { session, kind, status, agent, tool, opened_at, expires_at, group } = self;
        (session, kind, status, agent, tool, opened_at, expires_at, group).serialize(serializer)
    }
}

impl PauseRecord {
    pub(super) fn of(row: &PauseRow, group: u64) -> Self {
        Self {
            session: row.session.clone(),
            kind: match row.kind {
                PauseKind::Approval => 0,
                PauseKind::Question => 1,
                PauseKind::Confirmation => 2,
                PauseKind::InDoubt => 3,
            },
            status: match row.status {
                PauseStatus::Open => 0,
                PauseStatus::Decided => 1,
                PauseStatus::Expired => 2,
                PauseStatus::Withdrawn => 3,
            },
            agent: row.agent.clone(),
            tool: row.tool.clone(),
            opened_at: row.opened_at.as_millis(),
            expires_at: row.expires_at.map(Timestamp::as_millis),
            group,
        }
    }

    pub(super) fn row(self, id: PauseId, status: PauseStatus) -> Result<PauseRow, Broken> {
        Ok(PauseRow {
            id,
            status,
            kind: match self.kind {
                0 => PauseKind::Approval,
                1 => PauseKind::Question,
                2 => PauseKind::Confirmation,
                3 => PauseKind::InDoubt,
                other => return Err(Broken::Unreadable(format!("pause kind {other}"))),
            },
            session: self.session,
            agent: self.agent,
            tool: self.tool,
            opened_at: Timestamp::from_millis(self.opened_at),
            expires_at: self.expires_at.map(Timestamp::from_millis),
            group: self.group,
        })
    }
}

/// A rule that outlives its run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredRuleRecord {
    pub(super) session: String,
    pub(super) uses: u32,
    pub(super) is_revoked: bool,
    pub(super) rule: StandingRule,
}

/// An entry: what is read of it without its events, and these as bytes.
pub(super) struct EntryRecord<B = Vec<u8>, T = String> {
    pub(super) last_seq: u64,
    /// How many times pauses have opened in the session, this time included.
    pub(super) pause_groups: u64,
    pub(super) at: i64,
    /// The lease's fencing token, where the append took or held one: 0 where it did not.
    pub(super) epoch: u64,
    /// Chosen by whoever wrote it, who finds it again by this where a lost connection left it in doubt.
    pub(super) token: T,
    pub(super) body: B,
}

impl EntryRecord<&[u8], &str> {
    /// A line of its numbers, then the body.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Self { last_seq, pause_groups, at, epoch, token, body } = self;
        // Four numbers of at most twenty digits each.
        let mut bytes = Vec::with_capacity(5 + 4 * 20 + token.len() + body.len());
        writeln!(bytes, "{last_seq} {pause_groups} {at} {epoch} {token}").expect("a vector takes all that is written");
        bytes.extend_from_slice(body);
        bytes
    }
}

impl EntryRecord {
    pub(super) fn from_bytes(mut bytes: Vec<u8>) -> Result<Self, Broken> {
        let broken = || Broken::Unreadable("an entry without its numbers".to_owned());
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(broken)?;
        let line = std::str::from_utf8(&bytes[..end]).map_err(|_| broken())?;
        let fields: Vec<&str> = line.split(' ').collect();
        let [last_seq, pause_groups, at, epoch, token] = fields[..] else { return Err(broken()) };
        let entry = Self {
            last_seq: last_seq.parse().map_err(|_| broken())?,
            pause_groups: pause_groups.parse().map_err(|_| broken())?,
            at: at.parse().map_err(|_| broken())?,
            epoch: epoch.parse().map_err(|_| broken())?,
            token: token.to_owned(),
            body: Vec::new(),
        };
        bytes.drain(..=end);
        Ok(Self { body: bytes, ..entry })
    }
}

/// A record as it is stored.
pub(super) fn encode(record: &impl Serialize) -> Result<Vec<u8>, Broken> {
    serde_json::to_vec(record).map_err(|error| Broken::Unreadable(error.to_string()))
}

/// A record as it was stored.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Broken> {
    serde_json::from_slice(bytes).map_err(|error| Broken::Unreadable(error.to_string()))
}

/// Asks for the records of these names in a hash; for one at least, which nothing has.
pub(super) fn hmget(pipe: &mut Pipeline, key: &str, names: Vec<String>) {
    pipe.cmd("HMGET").arg(key).arg(names).arg("");
}

/// Records as they were found.
pub(super) fn decode_all<T: DeserializeOwned>(found: Vec<Option<Vec<u8>>>) -> Result<Vec<Option<T>>, Broken> {
    found.into_iter().map(|bytes| bytes.map(|bytes| decode(&bytes)).transpose()).collect()
}

/// A name that is kept as it prints.
pub(super) fn parse<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, Broken> {
    text.parse().map_err(|error: T::Err| Broken::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a record as an earlier version wrote it, and gives it as it is written now, which must read the same.
    fn rewritten<T: Serialize + DeserializeOwned>(object: &str) -> String {
        let text = |record: &T| String::from_utf8(encode(record).unwrap()).unwrap();
        let list = text(&decode::<T>(object.as_bytes()).unwrap());
        assert_eq!(text(&decode::<T>(list.as_bytes()).unwrap()), list);
        list
    }

    #[test]
    fn records_are_lists_and_objects_of_earlier_versions_are_read() {
        let session = r#"{"owner":"ana","created_at":1,"last_at":2,"runs":3,"events":4,"pause_groups":5}"#;
        assert_eq!(rewritten::<SessionRecord>(session), r#"["ana",1,2,3,4,5]"#);
        let run = r#"{"session":"s","agent":"a/b","first_seq":1,"revision":2,"status":1,"started_at":3,"last_at":4,
            "epoch":5,"owner":"w","since":6}"#;
        assert_eq!(rewritten::<RunRecord>(run), r#"["s","a/b",1,2,1,3,4,5,"w",6]"#);
        let free = run.replace(r#""w""#, "null");
        assert_eq!(rewritten::<RunRecord>(&free), r#"["s","a/b",1,2,1,3,4,5,null,6]"#);
        let pause =
            r#"{"session":"s","kind":1,"status":2,"agent":"a","tool":"t","opened_at":3,"expires_at":4,"group":5}"#;
        assert_eq!(rewritten::<PauseRecord>(pause), r#"["s",1,2,"a","t",3,4,5]"#);
        for short in [r#"["ana",1,2,3,4]"#, "[]", "{}", "null", r#"["ana",1,2,3,4,5,6]"#] {
            assert!(decode::<SessionRecord>(short.as_bytes()).is_err(), "{short}");
        }
    }

    #[test]
    fn an_entry_comes_back_whatever_its_bytes() {
        for body in [&b""[..], b"\n\n", b"{\"a\":1}\n\xff\x00"] {
            let record = EntryRecord { last_seq: 7, pause_groups: 2, at: 1, epoch: 3, token: "t", body };
            let read = EntryRecord::from_bytes(record.to_bytes()).unwrap();
            assert_eq!((read.last_seq, read.pause_groups, read.at, read.epoch, read.token.as_str()), (7, 2, 1, 3, "t"));
            assert_eq!(read.body, body);
        }
        for bad in [&b""[..], b"1 2 3 4 t", b"1 2 3 4\nx", b"1 2 -x 4 t\n", b"\xff\n"] {
            assert!(EntryRecord::from_bytes(bad.to_vec()).is_err(), "{bad:?}");
        }
    }
}
