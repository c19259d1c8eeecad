//! Reads server-sent events from bytes as they arrive, however they are cut. Knows neither sockets nor JSON, and holds
//! no more than one event of a bounded size.

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Its name, where it has one.
    pub(crate) event: Option<String>,
    /// Its data; several lines are joined by line breaks.
    pub(crate) data: String,
}

/// An event larger than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {bytes_max} bytes")]
pub(crate) struct EventTooLarge {
    pub(crate) bytes_max: usize,
}

/// A reader of server-sent events, as the HTML standard has them.
#[derive(Debug, Clone)]
pub(crate) struct SseDecoder {
    bytes_max: usize,
    /// The line that is not at its end yet.
    line: Vec<u8>,
    event: Option<String>,
    /// The data lines so far; `None` before the first.
    data: Option<String>,
    /// The last byte was a carriage return: a line feed right after it belongs to it.
    after_return: bool,
    is_first_line: bool,
}

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl SseDecoder {
    /// A reader that refuses an event of more than `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, line: Vec::new(), event: None, data: None, after_return: false, is_first_line: true }
    }

    /// Takes more bytes; adds the events that they complete, also those before one that is too large.
    pub(crate) fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                self.check_size()?;
                break;
            };
            self.line.extend_from_slice(&rest[..end]);
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.check_size()?;
            events.extend(self.end_line());
        }
        Ok(())
    }

    /// The stream is over: gives what is left. The standard drops an event that no empty line ends; servers that forget
    /// the line are common, so it is handed out here and the reader judges it.
    pub(crate) fn finish(&mut self) -> Option<SseEvent> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.dispatch()
    }

    fn check_size(&self) -> Result<(), EventTooLarge> {
        let held =
            self.line.len() + self.data.as_ref().map_or(0, String::len) + self.event.as_ref().map_or(0, String::len);
        if held > self.bytes_max { Err(EventTooLarge { bytes_max: self.bytes_max }) } else { Ok(()) }
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let mut bytes = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        let event = if bytes.is_empty() { self.dispatch() } else { None };
        if !bytes.is_empty() {
            self.field(&String::from_utf8_lossy(bytes));
        }
        // The buffer is used again: a stream has very many lines of much the same length.
        self.line = line;
        self.line.clear();
        event
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.event = Some(value.to_owned()),
            // Comments, `id` and `retry`, and whatever is not known.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = self.event.take().filter(|event| !event.is_empty());
        self.data.take().map(|data| SseEvent { event, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<(Option<String>, String)> {
        let mut decoder = SseDecoder::new(1 << 10);
        let mut events = Vec::new();
        decoder.push(bytes, &mut events).unwrap();
        events.extend(decoder.finish());
        events.into_iter().map(|event| (event.event, event.data)).collect()
    }

    fn data(texts: &[&str]) -> Vec<(Option<String>, String)> {
        texts.iter().map(|text| (None, (*text).to_owned())).collect()
    }

    #[test]
    fn lines_end_in_any_of_three_ways() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = "data: a\n\ndata: b\ndata: c\n\n".replace('\n', end);
            assert_eq!(read(stream.as_bytes()), data(&["a", "b\nc"]), "{end:?}");
        }
    }

    #[test]
    fn fields_are_read_as_the_standard_has_them() {
        for (stream, expected) in [
            ("data:a\n\n", data(&["a"])),
            ("data:  a\n\n", data(&[" a"])),
            ("data\n\n", data(&[""])),
            ("data: \n\n", data(&[""])),
            ("data: a: b\n\n", data(&["a: b"])),
            (": comment\n\n:\n\ndata: a\n\n", data(&["a"])),
            ("id: 7\nretry: 10\nunknown: x\ndata: a\n\n", data(&["a"])),
            ("event: ping\n\ndata: a\n\n", data(&["a"])),
            ("event: \ndata: a\n\n", data(&["a"])),
            ("\n\n\n", data(&[])),
            ("", data(&[])),
            ("\u{feff}data: a\n\n", data(&["a"])),
            ("data: \u{feff}a\n\n", data(&["\u{feff}a"])),
            ("data: a\n\n\u{feff}data: b\n\n", data(&["a"])),
            ("Data: a\n\n", data(&[])),
            ("data: a", data(&["a"])),
            ("data: a\n", data(&["a"])),
        ] {
            assert_eq!(read(stream.as_bytes()), expected, "{stream:?}");
        }
        let named = vec![(Some("message_start".to_owned()), "{}".to_owned()), (None, "b".to_owned())];
        assert_eq!(read(b"event: x\nevent: message_start\ndata: {}\n\ndata: b\n\n"), named);
    }

    #[test]
    fn bytes_may_be_cut_anywhere() {
        let stream =
            "\u{feff}: hi\r\nevent: a\r\ndata: Grüße 日本 👋\r\ndata: more\r\n\r\ndata: x\r\rdata: y\n\n".as_bytes();
        let whole = read(stream);
        assert_eq!(whole.len(), 3);
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let mut decoder = SseDecoder::new(1 << 10);
                let mut events = Vec::new();
                for piece in [&stream[..first], &stream[first..second], &stream[second..]] {
                    decoder.push(piece, &mut events).unwrap();
                }
                events.extend(decoder.finish());
                let events: Vec<_> = events.into_iter().map(|event| (event.event, event.data)).collect();
                assert_eq!(events, whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(read(b"data: a\xffb\n\n"), data(&["a\u{fffd}b"]));
    }

    #[test]
    fn an_event_has_a_largest_size() {
        let too_large = Err(EventTooLarge { bytes_max: 10 });
        for stream in ["data: 12345", ":2345678901", "data: 12\ndata: 34\ndata: 5678\n", "event: abc\ndata: 1234567"] {
            let (mut decoder, mut events) = (SseDecoder::new(10), Vec::new());
            let told = stream.bytes().try_for_each(|byte| decoder.push(&[byte], &mut events));
            assert_eq!(told, too_large, "{stream:?}");
            assert_eq!(SseDecoder::new(10).push(stream.as_bytes(), &mut events), too_large, "{stream:?}");
        }
        // Many small events are no large one.
        let many = "data: 1\n\n".repeat(1_000);
        let mut events = Vec::new();
        SseDecoder::new(10).push(many.as_bytes(), &mut events).unwrap();
        assert_eq!(events.len(), 1_000);
    }
}
