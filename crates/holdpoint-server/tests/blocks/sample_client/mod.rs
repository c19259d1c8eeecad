//! A client that reads exactly the fields that the samples on the protocol's two pages read, sends exactly what they
//! send, and draws its dialogs as text.

mod approval;
mod history;
mod question;

use serde_json::Value;

pub use approval::ApprovalDialog;
pub use history::render_history;
pub use question::QuestionDialog;

/// What is on the screen of one session.
#[derive(Default)]
pub struct Screen {
    session_id: String,
    dialog: Option<Dialog>,
    /// A request whose block has begun and whose content is still to come: its place and its key.
    coming: Option<(Value, String)>,
    /// The block of decisions that is being told.
    result: Option<Value>,
    /// What stands under the dialog: what became of the last request.
    note: String,
}

/// A dialog that waits for a person.
pub enum Dialog {
    Approval(ApprovalDialog),
    Question(QuestionDialog),
}

impl Screen {
    pub fn of(session_id: &str) -> Self {
        Self { session_id: session_id.to_owned(), ..Self::default() }
    }

    /// The event handler of the samples.
    pub fn handle(&mut self, msg: &Value) {
        match msg["type"].as_str() {
            Some("content_block_start") => self.start(msg),
            Some("content_block_delta") => self.delta(msg),
            _ => {}
        }
    }

    pub fn handle_all(&mut self, events: &[Value]) {
        events.iter().for_each(|event| self.handle(event));
    }

    fn start(&mut self, msg: &Value) {
        let block = &msg["content_block"];
        let key = block["approval_key"].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            // An ordinary request has its actions in the start; a question's come with a delta.
            Some("approval_request") if block["actions"].is_array() => {
                self.show(Dialog::Approval(ApprovalDialog::new(&self.session_id, block)));
            }
            Some("approval_request") => self.coming = Some((msg["index"].clone(), key)),
            Some("approval_result") => {
                self.close(&key);
                self.result = Some(msg["index"].clone());
            }
            Some("approval_timeout") => {
                self.close(&key);
                self.note = "Hết thời gian chờ".to_owned();
            }
            _ => {}
        }
    }

    fn delta(&mut self, msg: &Value) {
        let delta = &msg["delta"];
        if self.result.as_ref() == Some(&msg["index"]) {
            let decisions = delta["decisions"].as_array().into_iter().flatten();
            let words = decisions.map(|decision| match decision["type"].as_str() {
                Some("approve") => "Đã phê duyệt",
                Some("reject") => "Đã từ chối",
                Some("edit") => "Đã sửa",
                _ => "?",
            });
            self.note = words.collect::<Vec<_>>().join(", ");
            return;
        }
        let Some((_, key)) = self.coming.take_if(|(index, _)| *index == msg["index"]) else { return };
        let actions = delta["action_requests"].as_array().cloned().unwrap_or_default();
        if actions.iter().any(|action| action["name"] == "ask_user_question") {
            self.show(Dialog::Question(QuestionDialog::new(&self.session_id, &key, &actions)));
        }
    }

    fn show(&mut self, dialog: Dialog) {
        self.dialog = Some(dialog);
        self.note.clear();
    }

    fn close(&mut self, key: &str) {
        self.dialog.take_if(|dialog| dialog.key() == key);
    }

    /// The dialog of an ordinary request.
    #[track_caller]
    pub fn approval(&mut self) -> &mut ApprovalDialog {
        match &mut self.dialog {
            Some(Dialog::Approval(dialog)) => dialog,
            _ => panic!("no dialog of an approval"),
        }
    }

    /// The dialog of a question.
    #[track_caller]
    pub fn question(&mut self) -> &mut QuestionDialog {
        match &mut self.dialog {
            Some(Dialog::Question(dialog)) => dialog,
            _ => panic!("no dialog of a question"),
        }
    }

    /// What a person sees.
    pub fn render(&self) -> String {
        let dialog = match &self.dialog {
            Some(Dialog::Approval(dialog)) => dialog.render(),
            Some(Dialog::Question(dialog)) => dialog.render(),
            None => String::new(),
        };
        let lines = dialog.lines().chain(self.note.lines());
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Dialog {
    fn key(&self) -> &str {
        match self {
            Self::Approval(dialog) => &dialog.approval_key,
            Self::Question(dialog) => &dialog.approval_key,
        }
    }
}
