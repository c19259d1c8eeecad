//! Tells a channel of pauses: a message when one opens, and another in its place when it ends.

use async_trait::async_trait;
use holdpoint_runtime::ports::notifier::{Delivery, Notice, NoticeKind, Notifier};

use super::client::CallFault;
use super::receipt::Receipt;
use super::{Slack, message};

#[async_trait]
impl Notifier for Slack {
    async fn deliver(&self, notice: &Notice) -> Delivery {
        let nothing = Delivery::Delivered { receipt: None };
        match notice.key.kind {
            NoticeKind::Opened if notice.pause.pause.is_open() => self.ask(notice).await,
            // What is over is not asked any more.
            NoticeKind::Opened => nothing,
            NoticeKind::Settled => match notice.receipt.as_deref().and_then(Receipt::read) {
                Some(receipt) => self.tell_end(notice, receipt).await,
                None => nothing,
            },
        }
    }
}

impl Slack {
    async fn ask(&self, notice: &Notice) -> Delivery {
        let message = message::open(&notice.pause, notice.run.started_by(), self.public_url.as_deref());
        match self.client.post(&self.channel, &message).await {
            Ok(receipt) => Delivery::Delivered { receipt: Some(receipt.to_text()) },
            Err(fault) => failed(fault),
        }
    }

    async fn tell_end(&self, notice: &Notice, receipt: Receipt) -> Delivery {
        let message = message::settled(&notice.pause, notice.run.started_by());
        match self.client.update(&receipt, &message).await {
            Ok(()) => Delivery::Delivered { receipt: None },
            Err(fault) => failed(fault),
        }
    }
}

/// What Slack refuses for ever, whoever waits and whatever an operator changes.
const FOR_EVER: [&str; 12] = [
    "blocked",
    "cant_update_message",
    "edit_window_closed",
    "invalid_arguments",
    "invalid_blocks",
    "invalid_blocks_format",
    "invalid_json",
    "message_not_found",
    "msg_blocks_too_long",
    "msg_too_long",
    "no_text",
    "too_many_attachments",
];

fn failed(fault: CallFault) -> Delivery {
    let why = fault.to_string();
    match fault {
        CallFault::TooFast(after) => Delivery::Retry { after, why },
        CallFault::Refused(code) if FOR_EVER.contains(&code.as_str()) => Delivery::GaveUp { why },
        // A token or a channel can be put right while this is tried again.
        CallFault::Refused(_) | CallFault::Away(_) => Delivery::Retry { after: None, why },
    }
}
