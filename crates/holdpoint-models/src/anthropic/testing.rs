//! What tests elsewhere need of messages.

use super::stream::MessagesStream;
use super::thoughts::Thoughts;
use crate::draft::Draft;

pub(crate) fn messages_stream(draft: Draft) -> MessagesStream {
    MessagesStream::new(draft, Thoughts::default())
}
