//! A change of the store: what must still stand as it was seen, and what is written then. One script does both.

use std::collections::HashMap;
use std::sync::LazyLock;

use ::redis::Script;
use ::redis::aio::ConnectionManager;

use super::fault::{WriteError, is_lost};

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("change.lua")));

/// Hands the script to the server, so that later only its name is sent. A server that forgets it is handed it again.
pub(super) async fn prepare(connection: &mut ConnectionManager) -> ::redis::RedisResult<()> {
    SCRIPT.load_async(connection).await.map(drop)
}

/// How many arguments a command of the script may have.
const ARGUMENTS_MAX: usize = 1_000;

/// What is compared and what is written, in order.
#[derive(Default)]
pub(super) struct Change {
    keys: Vec<String>,
    /// Where each key stands among them.
    places: HashMap<String, usize>,
    checks: Vec<Check>,
    writes: Vec<Write>,
}

struct Check {
    command: &'static str,
    key: usize,
    field: String,
    expected: Option<Vec<u8>>,
}

struct Write {
    command: &'static str,
    key: usize,
    arguments: Vec<Vec<u8>>,
}

impl Change {
    /// The place of a key among those that the script is told.
    fn place(&mut self, key: String) -> usize {
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let place = self.keys.len();
        self.keys.push(key.clone());
        self.places.insert(key, place);
        place
    }

    /// A key must still have this value, or none.
    pub(super) fn expect(&mut self, key: String, expected: Option<Vec<u8>>) {
        let key = self.place(key);
        self.checks.push(Check { command: "GET", key, field: String::new(), expected });
    }

    /// A field of a hash must still have this value, or none.
    pub(super) fn expect_field(&mut self, key: String, field: String, expected: Option<Vec<u8>>) {
        let key = self.place(key);
        self.checks.push(Check { command: "HGET", key, field, expected });
    }

    fn write<const N: usize>(&mut self, command: &'static str, key: String, arguments: [Vec<u8>; N]) {
        let key = self.place(key);
        self.writes.push(Write { command, key, arguments: arguments.into() });
    }

    pub(super) fn set(&mut self, key: String, value: impl Into<Vec<u8>>) {
        self.write("SET", key, [value.into()]);
    }

    pub(super) fn set_field(&mut self, key: String, field: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.write("HSET", key, [field.into(), value.into()]);
    }

    /// Sets a field that is not there yet.
    pub(super) fn add_field(&mut self, key: String, field: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.write("HSETNX", key, [field.into(), value.into()]);
    }

    pub(super) fn remove_field(&mut self, key: String, field: impl Into<Vec<u8>>) {
        self.write("HDEL", key, [field.into()]);
    }

    /// Gives a member of a sorted set its place. Scores are times and numbers of events: all of them far below those that
    /// a score cannot tell apart.
    pub(super) fn place_member(&mut self, key: String, score: i64, member: impl Into<Vec<u8>>) {
        self.write("ZADD", key, [score.to_string().into_bytes(), member.into()]);
    }

    pub(super) fn remove_member(&mut self, key: String, member: impl Into<Vec<u8>>) {
        self.write("ZREM", key, [member.into()]);
    }

    pub(super) fn remove_key(&mut self, key: String) {
        self.write("UNLINK", key, []);
    }

    pub(super) fn remove_fields(&mut self, key: String, fields: &[String]) {
        self.write_in_parts("HDEL", key, fields);
    }

    pub(super) fn remove_members(&mut self, key: String, members: &[String]) {
        self.write_in_parts("ZREM", key, members);
    }

    /// As many commands as it takes: a script can hand over only so many arguments at once.
    fn write_in_parts(&mut self, command: &'static str, key: String, arguments: &[String]) {
        let key = self.place(key);
        for part in arguments.chunks(ARGUMENTS_MAX) {
            let arguments = part.iter().map(|argument| argument.clone().into_bytes()).collect();
            self.writes.push(Write { command, key, arguments });
        }
    }

    /// Makes the change, unless something no longer stands as it was seen.
    pub(super) async fn commit(&self, connection: &ConnectionManager) -> Result<(), WriteError> {
        let mut call = SCRIPT.prepare_invoke();
        for key in &self.keys {
            call.key(key);
        }
        call.arg(self.checks.len());
        for check in &self.checks {
            let is_there = if check.expected.is_some() { "1" } else { "0" };
            call.arg(check.command).arg(check.key + 1).arg(&check.field).arg(is_there);
            call.arg(check.expected.as_deref().unwrap_or_default());
        }
        call.arg(self.writes.len());
        for write in &self.writes {
            call.arg(write.command).arg(write.key + 1).arg(write.arguments.len());
            for argument in &write.arguments {
                call.arg(argument.as_slice());
            }
        }
        match call.invoke_async::<i64>(&mut connection.clone()).await {
            Ok(1) => Ok(()),
            Ok(_) => Err(WriteError::Overtaken),
            Err(error) if is_lost(&error) => Err(WriteError::InDoubt(error.into())),
            Err(error) => Err(WriteError::NotWritten(error.into())),
        }
    }
}
