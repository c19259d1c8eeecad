//! One event, one line: whatever stands in it.

use std::io::{self, Write};

use holdpoint_core::text::visible;
use tracing_subscriber::fmt::MakeWriter;

/// Writes each event as one line in which nothing hides.
pub(super) struct OneLine<W>(pub(super) W);

/// The writer of one event.
pub(super) struct LineWriter<W>(W);

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for OneLine<W> {
    type Writer = LineWriter<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        LineWriter(self.0.make_writer())
    }
}

impl<W: Write> Write for LineWriter<W> {
    /// Events are handed over whole, with the line's end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = visible(text.strip_suffix('\n').unwrap_or(&text)).replace('\n', "⏎");
        self.0.write_all(line.as_bytes())?;
        self.0.write_all(b"\n")?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
