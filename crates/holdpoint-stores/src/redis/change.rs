//! A change of the store: what must still stand as it was seen, and what is written then. One script does both.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use ::redis::aio::ConnectionManager;
use ::redis::{Script, Value};

use super::fault::{WriteError, from_value, is_lost};
use super::script::Call;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("change.lua")));

/// Hands the script to the server, so that later only its name is sent. A server that forgets it is handed it again.
pub(super) async fn prepare(connection: &mut ConnectionManager) -> ::redis::RedisResult<()> {
    SCRIPT.load_async(connection).await.map(drop)
}

/// How many arguments a command of the script may have.
const ARGUMENTS_MAX: usize = 1_000;

/// How many fields are compared, and set, at once: each is set by two arguments.
const FIELDS_MAX: usize = ARGUMENTS_MAX / 2;

/// What is compared and what is written. What concerns one key is done by as few commands as it takes: with many appends in
/// a change, most of them write to the same few.
#[derive(Default)]
pub(super) struct Change {
    /// All names and values, one after the other.
    bytes: Vec<u8>,
    keys: Vec<Key>,
    /// Where each key stands among them.
    places: HashMap<String, usize>,
    /// By the key's place.
    values: Vec<(usize, Piece)>,
    writes: Vec<Write>,
    /// Writes to keys of their own, which nothing else concerns: each key, and the two arguments of its command. They
    /// come last.
    own_fields: Vec<[Piece; 3]>,
    own_members: Vec<[Piece; 3]>,
}

/// Where something stands among the bytes. Nothing is empty but what is not there.
#[derive(Clone, Copy)]
struct Piece {
    start: usize,
    length: usize,
}

/// A key, and what is done with it.
struct Key {
    name: Piece,
    /// The fields of a hash that must stand so, and what they get instead.
    fields: Vec<Field>,
    /// The writes to it that take more of the same.
    open: Vec<usize>,
}

/// A field of a hash.
struct Field {
    name: Piece,
    /// What it must have.
    expected: Piece,
    /// What it gets instead, where it does.
    value: Piece,
}

/// What became of a change.
pub(super) enum Tried {
    Done,
    /// Something no longer stands as it was seen. Nothing was written.
    Overtaken,
    /// The first key that was to have a value has this one. Nothing was written.
    FoundInstead(Option<Vec<u8>>),
}

struct Write {
    command: &'static str,
    key: usize,
    arguments: Vec<Piece>,
}

impl Write {
    /// Every command has an argument, but for the one that takes a whole key away.
    fn is_forgotten(&self) -> bool {
        self.arguments.is_empty() && self.command != "UNLINK"
    }
}

impl Change {
    /// Takes a copy of some bytes.
    fn keep(&mut self, bytes: impl AsRef<[u8]>) -> Piece {
        let (start, bytes) = (self.bytes.len(), bytes.as_ref());
        self.bytes.extend_from_slice(bytes);
        Piece { start, length: bytes.len() }
    }

    fn at(&self, piece: Piece) -> &[u8] {
        &self.bytes[piece.start..piece.start + piece.length]
    }

    /// The place of a key among those that the script is told.
    fn place<'k>(&mut self, name: impl Into<Cow<'k, str>>) -> usize {
        let name = name.into();
        if let Some(place) = self.places.get(&*name) {
            return *place;
        }
        let place = self.keys.len();
        let kept = self.keep(name.as_bytes());
        self.keys.push(Key { name: kept, fields: Vec::new(), open: Vec::new() });
        self.places.insert(name.into_owned(), place);
        place
    }

    /// A key must still have this value, or none.
    pub(super) fn expect<'k>(&mut self, key: impl Into<Cow<'k, str>>, expected: Option<&[u8]>) {
        let (key, expected) = (self.place(key), self.keep(expected.unwrap_or_default()));
        self.values.push((key, expected));
    }

    /// A field of a hash must still have this value, or none.
    pub(super) fn expect_field<'k>(
        &mut self,
        key: impl Into<Cow<'k, str>>,
        field: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
    ) {
        self.replace_field(key, field, expected, []);
    }

    /// A field of a hash must still have this value, or none, and gets another. It does so before anything else is written.
    pub(super) fn replace_field<'k>(
        &mut self,
        key: impl Into<Cow<'k, str>>,
        field: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        value: impl AsRef<[u8]>,
    ) {
        let key = self.place(key);
        let (name, expected) = (self.keep(field), self.keep(expected.unwrap_or_default()));
        let value = self.keep(value);
        self.keys[key].fields.push(Field { name, expected, value });
    }

    /// Writes to a key as a whole: what comes after it stays after it.
    fn write_whole<'k>(&mut self, command: &'static str, key: impl Into<Cow<'k, str>>, arguments: &[&[u8]]) {
        let key = self.place(key);
        self.keys[key].open.clear();
        let arguments = arguments.iter().map(|argument| self.keep(argument)).collect();
        self.writes.push(Write { command, key, arguments });
    }

    /// Writes to a field or a member, together with others of the key where that is the same as one after the other: unless
    /// another command of the key has the same field or member meanwhile. Within one command the last one counts.
    fn write<'k, const N: usize>(
        &mut self,
        command: &'static str,
        key: impl Into<Cow<'k, str>>,
        name: usize,
        arguments: [&[u8]; N],
    ) {
        let key = self.place(key);
        let kept = arguments.map(|argument| self.keep(argument));
        let open = &self.keys[key].open;
        let found = open.iter().position(|index| self.writes[*index].command == command);
        let has_it =
            |index: &usize| self.writes[*index].arguments.iter().any(|argument| self.at(*argument) == arguments[name]);
        match found.filter(|found| !open[found + 1..].iter().any(has_it)) {
            Some(found) if self.writes[open[found]].arguments.len() + N <= ARGUMENTS_MAX => {
                self.writes[open[found]].arguments.extend(kept);
            }
            _ => {
                let open = &mut self.keys[key].open;
                // Those before it are closed as well: nothing may move in front of this one.
                open.drain(..found.map_or(0, |found| found + 1));
                open.push(self.writes.len());
                self.writes.push(Write { command, key, arguments: kept.into() });
            }
        }
    }

    /// Forgets all that was to be compared and written of a key that is none of its own.
    pub(super) fn forget(&mut self, key: &str) {
        let Some(key) = self.places.get(key).copied() else { return };
        self.values.retain(|(other, _)| *other != key);
        self.keys[key].fields.clear();
        self.keys[key].open.clear();
        // Nothing is taken out, so that those after it keep their places.
        for write in self.writes.iter_mut().filter(|write| write.key == key) {
            write.arguments.clear();
        }
    }

    pub(super) fn set<'k>(&mut self, key: impl Into<Cow<'k, str>>, value: impl AsRef<[u8]>) {
        self.write_whole("SET", key, &[value.as_ref()]);
    }

    pub(super) fn set_field<'k>(
        &mut self,
        key: impl Into<Cow<'k, str>>,
        field: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) {
        self.write("HSET", key, 0, [field.as_ref(), value.as_ref()]);
    }

    /// Sets a field that is not there yet.
    pub(super) fn add_field<'k>(
        &mut self,
        key: impl Into<Cow<'k, str>>,
        field: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) {
        self.write_whole("HSETNX", key, &[field.as_ref(), value.as_ref()]);
    }

    pub(super) fn remove_field<'k>(&mut self, key: impl Into<Cow<'k, str>>, field: impl AsRef<[u8]>) {
        self.write("HDEL", key, 0, [field.as_ref()]);
    }

    /// Gives a member of a sorted set its place. Scores are times and numbers of events: all of them far below those that
    /// a score cannot tell apart.
    pub(super) fn place_member<'k>(&mut self, key: impl Into<Cow<'k, str>>, score: i64, member: impl AsRef<[u8]>) {
        self.write("ZADD", key, 1, [score.to_string().as_bytes(), member.as_ref()]);
    }

    /// Sets a field of a hash that nothing else in this change concerns.
    pub(super) fn set_own_field(&mut self, key: &str, field: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let write = [self.keep(key), self.keep(field), self.keep(value)];
        self.own_fields.push(write);
    }

    /// Gives a member its place in a sorted set that nothing else in this change concerns.
    pub(super) fn place_own_member(&mut self, key: &str, score: i64, member: impl AsRef<[u8]>) {
        let write = [self.keep(key), self.keep(score.to_string()), self.keep(member)];
        self.own_members.push(write);
    }

    pub(super) fn remove_member<'k>(&mut self, key: impl Into<Cow<'k, str>>, member: impl AsRef<[u8]>) {
        self.write("ZREM", key, 0, [member.as_ref()]);
    }

    pub(super) fn remove_key<'k>(&mut self, key: impl Into<Cow<'k, str>>) {
        self.write_whole("UNLINK", key, &[]);
    }

    pub(super) fn remove_fields(&mut self, key: &str, fields: &[String]) {
        fields.iter().for_each(|field| self.remove_field(key, field));
    }

    pub(super) fn remove_members(&mut self, key: &str, members: &[String]) {
        members.iter().for_each(|member| self.remove_member(key, member));
    }

    /// Makes the change, unless something no longer stands as it was seen.
    pub(super) async fn commit(&self, connection: &ConnectionManager) -> Result<(), WriteError> {
        match self.try_commit(connection).await? {
            Tried::Done => Ok(()),
            Tried::Overtaken | Tried::FoundInstead(_) => Err(WriteError::Overtaken),
        }
    }

    /// Makes the change, or tells what stands in its way. It is on its way when the future was polled once.
    pub(super) fn try_commit(
        &self,
        connection: &ConnectionManager,
    ) -> impl Future<Output = Result<Tried, WriteError>> + Send + use<> {
        let (call, mut connection) = (self.call(), connection.clone());
        async move {
            match call.send::<Value>(&mut connection).await {
                Ok(Value::Int(1)) => Ok(Tried::Done),
                Ok(Value::Array(found)) => {
                    let found = found.into_iter().next().unwrap_or(Value::Nil);
                    Ok(Tried::FoundInstead(from_value(found)?))
                }
                Ok(_) => Ok(Tried::Overtaken),
                Err(error) if is_lost(&error) => Err(WriteError::InDoubt(error.into())),
                Err(error) => Err(WriteError::NotWritten(error.into())),
            }
        }
    }

    /// The script with its arguments.
    fn call(&self) -> Call {
        let fields: usize = self.keys.iter().map(|key| key.fields.len()).sum();
        let written: usize = self.writes.iter().map(|write| write.arguments.len() + 3).sum();
        let rows = [("HSET", &self.own_fields), ("ZADD", &self.own_members)];
        let own = || rows.iter().flat_map(|(_, writes)| *writes);
        let count = 13 + 3 * self.keys.len() + 2 * self.values.len() + 3 * fields + written + 3 * own().count();
        // Numbers and the names of commands come on top of what is kept.
        let mut call = Call::changing(&SCRIPT, self.keys.len() + own().count(), count, self.bytes.len() + 8 * count);
        let arguments = &mut call.cmd;
        for name in self.keys.iter().map(|key| key.name).chain(own().map(|[key, ..]| *key)) {
            arguments.arg(self.at(name));
        }
        arguments.arg(self.values.len());
        for (key, expected) in &self.values {
            arguments.arg(key + 1).arg(self.at(*expected));
        }
        let hashes = || {
            let parts = self.keys.iter().zip(1..);
            parts.flat_map(|(key, place)| key.fields.chunks(FIELDS_MAX).map(move |part| (place, part)))
        };
        arguments.arg(hashes().count());
        for (place, part) in hashes() {
            arguments.arg(place).arg(part.len());
            let (names, expected) = (part.iter().map(|field| field.name), part.iter().map(|field| field.expected));
            for piece in names.chain(expected).chain(part.iter().map(|field| field.value)) {
                arguments.arg(self.at(piece));
            }
        }
        let writes = || self.writes.iter().filter(|write| !write.is_forgotten());
        arguments.arg(writes().count());
        for write in writes() {
            arguments.arg(write.command).arg(write.key + 1).arg(write.arguments.len());
            for argument in &write.arguments {
                arguments.arg(self.at(*argument));
            }
        }
        arguments.arg(rows.len());
        let mut first = self.keys.len() + 1;
        for (command, writes) in rows {
            arguments.arg(command).arg(first).arg(writes.len());
            for [_, one, other] in writes {
                arguments.arg(self.at(*one)).arg(self.at(*other));
            }
            first += writes.len();
        }
        call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(change: &Change) -> Vec<String> {
        let text = |piece: &Piece| String::from_utf8(change.at(*piece).to_vec()).unwrap();
        let one = |write: &Write| {
            let arguments: Vec<_> = write.arguments.iter().map(text).collect();
            format!("{} {} {}", write.command, text(&change.keys[write.key].name), arguments.join(" "))
        };
        change.writes.iter().filter(|write| !write.is_forgotten()).map(one).collect()
    }

    #[test]
    fn what_concerns_one_key_is_one_command() {
        let mut change = Change::default();
        for name in ["a", "b", "c"] {
            change.set_field("h", name, "1");
            change.place_member("z", 7, name);
            change.remove_member("y", name);
        }
        assert_eq!(told(&change), ["HSET h a 1 b 1 c 1", "ZADD z 7 a 7 b 7 c", "ZREM y a b c"]);
    }

    #[test]
    fn writes_to_the_same_stay_in_order() {
        let mut change = Change::default();
        change.set_field("h", "a", "1");
        change.remove_field("h", "a");
        change.set_field("h", "a", "2");
        change.set_field("h", "b", "3");
        assert_eq!(told(&change), ["HSET h a 1", "HDEL h a", "HSET h a 2 b 3"]);
        change.remove_key("h");
        change.set_field("h", "c", "4");
        assert_eq!(told(&change)[3..], ["UNLINK h ", "HSET h c 4"]);
    }

    #[test]
    fn nothing_moves_in_front_of_a_command_that_is_full() {
        let mut change = Change::default();
        change.set_field("h", "x", "1");
        let names: Vec<String> = (0..ARGUMENTS_MAX).map(|number| number.to_string()).collect();
        change.remove_fields("h", &names);
        change.remove_field("h", "b");
        change.set_field("h", "7", "2");
        let commands: Vec<_> = change.writes.iter().map(|write| (write.command, write.arguments.len())).collect();
        assert_eq!(commands, [("HSET", 2), ("HDEL", ARGUMENTS_MAX), ("HDEL", 1), ("HSET", 2)]);
    }

    #[test]
    fn what_is_forgotten_is_neither_compared_nor_written() {
        let mut change = Change::default();
        change.expect("head", None);
        change.set("head", "1");
        change.set_field("h", "a", "1");
        change.forget("head");
        change.forget("never heard of");
        assert_eq!((told(&change), change.values.len()), (vec!["HSET h a 1".to_owned()], 0));
        change.set("head", "2");
        assert_eq!(told(&change), ["HSET h a 1", "SET head 2"]);
    }

    #[test]
    fn a_command_has_only_so_many_arguments() {
        let mut change = Change::default();
        let names: Vec<String> = (0..ARGUMENTS_MAX + 1).map(|number| number.to_string()).collect();
        change.remove_members("z", &names);
        assert_eq!(change.writes.iter().map(|write| write.arguments.len()).collect::<Vec<_>>(), [ARGUMENTS_MAX, 1]);
    }
}
