//! Every stream under `tests/streams/`, cut at every byte, ended in every kind of line, broken off at every byte, and
//! garbage: the same reply, or none, and never another one.

use std::path::{Path, PathBuf};

use holdpoint_runtime::ports::model::{Delta, ModelReply};
use serde_json::{Value, json};

use crate::anthropic::testing::messages_stream;
use crate::draft::Draft;
use crate::openai::chat::ChatStream;
use crate::openai::responses::ResponsesStream;
use crate::problem::{Problem, Whom};
use crate::reader::{Assemble, Reader};
use crate::testing::{assistant, call, request, result, user};

fn draft() -> Draft {
    let earlier = vec![call("call_earlier", "get_weather", "{}")];
    let items = vec![user("hello"), assistant(None, earlier), result("call_earlier", "get_weather", "sun", false)];
    Draft::new(&request(items, Value::Null))
}

struct Stream {
    name: String,
    kind: String,
    bytes: Vec<u8>,
    expected: Value,
}

fn streams() -> Vec<Stream> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut streams = Vec::new();
    for kind in ["chat", "responses", "messages"] {
        let files = std::fs::read_dir(folder.join(kind)).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "sse")).collect();
        files.sort();
        streams.extend(files.into_iter().map(|path| Stream {
            name: format!("{kind}/{}", path.file_stem().unwrap().to_string_lossy()),
            kind: kind.to_owned(),
            bytes: std::fs::read(&path).unwrap(),
            expected: serde_json::from_slice(&std::fs::read(path.with_extension("json")).unwrap()).unwrap(),
        }));
    }
    assert!(streams.len() > 40, "the streams are there");
    streams
}

/// What was read: the reply or the problem, and what was told, with neighbours of a kind joined.
type Outcome = (Result<ModelReply, Problem>, Vec<Delta>);

fn read(kind: &str, pieces: &[&[u8]]) -> Outcome {
    match kind {
        "chat" => read_with(ChatStream::new(draft()), pieces),
        "responses" => read_with(ResponsesStream::new(draft()), pieces),
        _ => read_with(messages_stream(draft()), pieces),
    }
}

fn read_with(assembler: impl Assemble, pieces: &[&[u8]]) -> Outcome {
    let (mut reader, mut told) = (Reader::new(assembler), Vec::new());
    let read = pieces.iter().try_for_each(|piece| reader.push(piece, &mut told));
    finish(reader, told, read)
}

fn finish(reader: Reader<impl Assemble>, mut told: Vec<Delta>, read: Result<(), Problem>) -> Outcome {
    if let Err(problem) = read {
        return (Err(problem), joined(told));
    }
    let (deltas, reply) = reader.finish();
    told.extend(deltas);
    (reply, joined(told))
}

/// Reads a stream byte by byte, and hands out at each byte what would come of it if the rest came at once, and what if
/// nothing more came.
fn at_every_byte(stream: &Stream, look: impl FnMut(usize, Outcome, Outcome)) {
    match stream.kind.as_str() {
        "chat" => at_every_byte_with(ChatStream::new(draft()), &stream.bytes, look),
        "responses" => at_every_byte_with(ResponsesStream::new(draft()), &stream.bytes, look),
        _ => at_every_byte_with(messages_stream(draft()), &stream.bytes, look),
    }
}

fn at_every_byte_with<A: Assemble + Clone>(assembler: A, bytes: &[u8], mut look: impl FnMut(usize, Outcome, Outcome)) {
    let (mut reader, mut told) = (Reader::new(assembler), Vec::new());
    for cut in 0..=bytes.len() {
        let (mut second, mut told_to_second) = (reader.clone(), told.clone());
        let read = second.push(&bytes[cut..], &mut told_to_second);
        let rest_at_once = finish(second, told_to_second, read);
        let broken_off = finish(reader.clone(), told.clone(), Ok(()));
        look(cut, rest_at_once, broken_off);
        let Some(byte) = bytes.get(cut..=cut) else { break };
        if reader.push(byte, &mut told).is_err() {
            break;
        }
    }
}

fn joined(deltas: Vec<Delta>) -> Vec<Delta> {
    let mut joined: Vec<Delta> = Vec::new();
    for delta in deltas {
        match (joined.last_mut(), &delta) {
            (Some(Delta::Text(all)), Delta::Text(more)) | (Some(Delta::Thinking(all)), Delta::Thinking(more)) => {
                all.push_str(more);
            }
            (Some(Delta::Arguments { id: of, text: all, .. }), Delta::Arguments { id, text, .. }) if of == id => {
                all.push_str(text);
            }
            _ => joined.push(delta),
        }
    }
    joined
}

fn whom() -> Whom {
    Whom {
        name: "openai/m".to_owned(),
        model: "m".to_owned(),
        host: "host".to_owned(),
        key_variable: "KEY",
        address_variable: "ADDRESS",
        key: None,
    }
}

/// The outcome in the form that the expectations are written in.
fn shown((reply, told): Outcome) -> Value {
    match reply {
        Err(problem) => {
            let fault = problem.into_fault(&whom(), 1);
            json!({"problem": fault.message, "may_retry": fault.may_retry})
        }
        Ok(reply) => {
            let thinking: String = told
                .iter()
                .filter_map(|delta| match delta {
                    Delta::Thinking(text) => Some(text.as_str()),
                    Delta::Text(_) | Delta::Arguments { .. } => None,
                })
                .collect();
            let calls: Vec<[&str; 3]> = reply
                .calls
                .iter()
                .map(|call| [call.id.as_str(), call.tool.as_str(), call.arguments.as_str()])
                .collect();
            let usage = [reply.usage.input_tokens, reply.usage.output_tokens];
            json!({"text": reply.text, "thinking": thinking, "calls": calls, "usage": usage})
        }
    }
}

fn assert_is(outcome: Outcome, stream: &Stream, how: &str) {
    let (found, expected) = (shown(outcome), &stream.expected);
    let is_same = match (found["problem"].as_str(), expected["problem"].as_str()) {
        (Some(found_problem), Some(problem)) => {
            found_problem.contains(problem) && found["may_retry"] == expected["may_retry"]
        }
        _ => found == *expected,
    };
    assert!(is_same, "{} {how}\nfound    {found}\nexpected {expected}", stream.name);
}

#[test]
fn every_stream_gives_its_reply_or_says_why_there_is_none() {
    for stream in streams() {
        assert_is(read(&stream.kind, &[&stream.bytes]), &stream, "whole");
    }
}

#[test]
fn the_deltas_together_are_the_reply() {
    for stream in streams() {
        let (reply, told) = read(&stream.kind, &[&stream.bytes]);
        let Ok(reply) = reply else { continue };
        let text: String = told
            .iter()
            .filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None })
            .collect();
        assert_eq!(Some(text).filter(|text| !text.is_empty()), reply.text, "{}", stream.name);
        for call in &reply.calls {
            let of_call = |delta: &Delta| match delta {
                Delta::Arguments { id, tool, text } if *id == call.id => Some((tool.clone(), text.clone())),
                _ => None,
            };
            let arguments: String = told
                .iter()
                .filter_map(of_call)
                .map(|(tool, text)| {
                    assert_eq!(tool, call.tool, "{}", stream.name);
                    text
                })
                .collect();
            assert_eq!(arguments, call.arguments, "{}", stream.name);
        }
    }
}

#[test]
fn it_does_not_matter_where_the_bytes_are_cut_and_what_breaks_off_is_whole_or_nothing() {
    let streams = streams();
    // One thread for each protocol: there are very many cuts.
    std::thread::scope(|scope| {
        for kind in ["chat", "responses", "messages"] {
            let streams = streams.iter().filter(move |stream| stream.kind == kind);
            scope.spawn(move || streams.for_each(check_every_cut));
        }
    });
}

fn check_every_cut(stream: &Stream) {
    let whole = read(&stream.kind, &[&stream.bytes]);
    let bytes: Vec<&[u8]> = stream.bytes.chunks(1).collect();
    let one_by_one = read(&stream.kind, &bytes);
    assert_eq!(one_by_one.1, whole.1, "{} byte by byte", stream.name);
    assert_is(one_by_one, stream, "byte by byte");
    let mut replies = 0;
    at_every_byte(stream, |cut, rest_at_once, broken_off| {
        assert_eq!(rest_at_once.1, whole.1, "{} cut at {cut}", stream.name);
        assert_is(rest_at_once, stream, &format!("cut at {cut}"));
        if let (Ok(whole), Ok(reply)) = (&whole.0, &broken_off.0) {
            replies += 1;
            let is_same = (&reply.text, &reply.calls) == (&whole.text, &whole.calls);
            assert!(is_same, "{} broken off at {cut} gives {reply:?}", stream.name);
        }
    });
    assert!(replies <= stream.bytes.len() / 2, "{} is believed too early", stream.name);
}

#[test]
fn it_does_not_matter_how_lines_end() {
    for stream in streams().into_iter().filter(|stream| !stream.name.contains("/plain")) {
        let text = String::from_utf8(stream.bytes.clone()).unwrap();
        for end in ["\r\n", "\r"] {
            let bytes = text.replace('\n', end).into_bytes();
            assert_is(read(&stream.kind, &[&bytes]), &stream, "with other line ends");
            let bytes: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_is(read(&stream.kind, &bytes), &stream, "with other line ends, byte by byte");
        }
    }
}

/// A small generator of numbers, so that a failure can be repeated from its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below.max(1)
    }
}

/// Bytes of a real stream with some of them changed, left out, doubled or put elsewhere.
fn spoil(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.roll(6) {
        let (at, to) = (dice.roll(bytes.len()), dice.roll(bytes.len()));
        let (from, until) = (at.min(to), at.max(to).min(at.min(to) + 200));
        match dice.roll(6) {
            0 if !bytes.is_empty() => bytes[at] = u8::try_from(dice.roll(256)).unwrap(),
            1 => drop(bytes.drain(from..until)),
            2 => {
                let copy = bytes[from..until].to_vec();
                bytes.splice(to..to, copy);
            }
            3 => drop(bytes.splice(
                at..at,
                b"\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{}, 7, null]}}]}\n\n".iter().copied(),
            )),
            4 => drop(
                bytes.splice(at..at, [b"null", &b"[[[["[..], b"-1e999", b"\"\\ud800\""][dice.roll(4)].iter().copied()),
            ),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

#[test]
fn garbage_is_a_problem_and_never_a_panic() {
    let seed = std::env::var("HOLDPOINT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        use std::hash::{BuildHasher as _, RandomState};
        RandomState::new().hash_one(0)
    });
    println!("seed {seed}: set HOLDPOINT_SEED to repeat");
    let mut dice = Dice(seed);
    let streams = streams();
    for _ in 0..1_500 {
        let stream = &streams[dice.roll(streams.len())];
        let bytes = spoil(&stream.bytes, &mut dice);
        let (first, second) = bytes.split_at(dice.roll(bytes.len() + 1));
        for kind in ["chat", "responses", "messages"] {
            let cut = shown(read(kind, &[first, second]));
            let whole = shown(read(kind, &[&bytes]));
            assert_eq!(cut, whole, "{} spoiled", stream.name);
        }
    }
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..dice.roll(300)).map(|_| u8::try_from(dice.roll(256)).unwrap()).collect();
        for kind in ["chat", "responses", "messages"] {
            let (reply, told) = read(kind, &[&bytes]);
            assert!(reply.is_err() && told.is_empty(), "{bytes:?}");
        }
    }
}
