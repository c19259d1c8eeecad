//! The one pass from JSON text to canonical text: it reads and writes at the same time, and puts an object's members in
//! order when the object closes. No tree is built.

use std::cmp::Ordering;

use super::members::{self, Member};
use super::{JsonProblem, Limits, number, string};

pub(super) fn canonical(text: &str, limits: &Limits) -> Result<String, JsonProblem> {
    refuse_too_large(text, limits)?;
    let mut rewrite = Rewrite::new(text, limits);
    rewrite.skip_space();
    rewrite.value(rewrite.depth_max)?;
    rewrite.skip_space();
    if rewrite.at < text.len() {
        return Err(rewrite.expected("the end of the text"));
    }
    // Numbers can grow (`1e20`): what we write must be accepted again under the same limits.
    refuse_too_large(&rewrite.out, limits)?;
    Ok(rewrite.out)
}

pub(super) fn refuse_too_large(text: &str, limits: &Limits) -> Result<(), JsonProblem> {
    let (bytes, bytes_max) = (text.len(), limits.bytes_max);
    if bytes > bytes_max { Err(JsonProblem::TooLarge { bytes, bytes_max }) } else { Ok(()) }
}

struct Rewrite<'a> {
    text: &'a str,
    /// How far the text has been read.
    at: usize,
    out: String,
    /// The members of the objects that are open, outermost first.
    members: Vec<Member>,
    /// Reused by every object that has to be put in order.
    spare: String,
    values_left: usize,
    depth_max: usize,
    members_max: usize,
}

impl<'a> Rewrite<'a> {
    fn new(text: &'a str, limits: &Limits) -> Self {
        Self {
            text,
            at: 0,
            out: String::with_capacity(text.len()),
            members: Vec::with_capacity(16),
            spare: String::new(),
            values_left: limits.members_max,
            // Recursion is bounded by this, and a deeper value could not be decoded.
            depth_max: limits.depth_max.min(Limits::WIDEST.depth_max),
            members_max: limits.members_max,
        }
    }

    fn value(&mut self, depth_left: usize) -> Result<(), JsonProblem> {
        self.values_left =
            self.values_left.checked_sub(1).ok_or(JsonProblem::TooMany { members_max: self.members_max })?;
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => self.object(self.deeper(depth_left)?),
            Some(b'[') => self.array(self.deeper(depth_left)?),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => Err(self.expected("a value")),
        }
    }

    fn array(&mut self, depth_left: usize) -> Result<(), JsonProblem> {
        self.copy_mark(b'[');
        self.skip_space();
        if self.peek() == Some(b']') {
            self.copy_mark(b']');
            return Ok(());
        }
        loop {
            self.value(depth_left)?;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.copy_mark(b','),
                Some(b']') => break,
                _ => return Err(self.expected("`,` or `]`")),
            }
            self.skip_space();
        }
        self.copy_mark(b']');
        Ok(())
    }

    fn object(&mut self, depth_left: usize) -> Result<(), JsonProblem> {
        self.copy_mark(b'{');
        let body = self.out.len();
        let first = self.members.len();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.copy_mark(b'}');
            return Ok(());
        }
        let mut is_sorted = true;
        loop {
            is_sorted &= self.member(first, depth_left)?;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.copy_mark(b','),
                Some(b'}') => break,
                _ => return Err(self.expected("`,` or `}`")),
            }
            self.skip_space();
        }
        if !is_sorted {
            self.sort_members(first, body)?;
        }
        self.members.truncate(first);
        self.copy_mark(b'}');
        Ok(())
    }

    /// Reads one member of the object whose members start at `first`, and says whether its key follows the one before.
    fn member(&mut self, first: usize, depth_left: usize) -> Result<bool, JsonProblem> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key"));
        }
        let (offset, start) = (self.at, self.out.len());
        let has_escapes = self.string()?;
        let member = Member { offset, start, key_end: self.out.len(), end: 0, has_escapes };
        let is_sorted = match self.members[first..].last().map(|last| members::compare(last, &member, &self.out)) {
            Some(Ordering::Equal) => return Err(JsonProblem::DuplicateKey { offset }),
            order => order != Some(Ordering::Greater),
        };
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.expected("`:`"));
        }
        self.copy_mark(b':');
        self.skip_space();
        self.value(depth_left)?;
        self.members.push(Member { end: self.out.len(), ..member });
        Ok(is_sorted)
    }

    /// Puts the members from `first` on in order. They fill the output from `body` to its end.
    fn sort_members(&mut self, first: usize, body: usize) -> Result<(), JsonProblem> {
        let members = &mut self.members[first..];
        members::sort(members, &self.out)?;
        self.spare.clear();
        for member in members {
            if !self.spare.is_empty() {
                self.spare.push(',');
            }
            self.spare.push_str(&self.out[member.start..member.end]);
        }
        self.out.truncate(body);
        self.out.push_str(&self.spare);
        Ok(())
    }

    /// Reads a string, and says whether it has escapes in canonical form.
    fn string(&mut self) -> Result<bool, JsonProblem> {
        let (end, has_escapes) = string::write(self.text, self.at, &mut self.out)?;
        self.at = end;
        Ok(has_escapes)
    }

    fn number(&mut self) -> Result<(), JsonProblem> {
        self.at = number::write(self.text, self.at, &mut self.out)?;
        Ok(())
    }

    fn literal(&mut self, word: &'static str) -> Result<(), JsonProblem> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        self.out.push_str(word);
        Ok(())
    }

    fn copy_mark(&mut self, mark: u8) {
        self.at += 1;
        self.out.push(char::from(mark));
    }

    fn deeper(&self, depth_left: usize) -> Result<usize, JsonProblem> {
        depth_left.checked_sub(1).ok_or(JsonProblem::TooDeep { depth_max: self.depth_max })
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expected(&self, expected: &'static str) -> JsonProblem {
        JsonProblem::Syntax { offset: self.at, expected }
    }
}
