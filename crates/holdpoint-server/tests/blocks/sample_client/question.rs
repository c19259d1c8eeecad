//! The dialog of the page on questions: each question with its options, and a line to write in for other words.

use serde_json::{Map, Value, json};

/// What a person sends to pass over a question.
const SKIPPED: &str = "[No preference]";

pub struct QuestionDialog {
    session_id: String,
    pub(super) approval_key: String,
    questions: Vec<Value>,
    /// What was chosen of each question, in order.
    chosen: Vec<Vec<String>>,
}

impl QuestionDialog {
    pub(super) fn new(session_id: &str, approval_key: &str, actions: &[Value]) -> Self {
        let action = actions.iter().find(|action| action["name"] == "ask_user_question");
        let questions = action.and_then(|action| action["args"]["questions"].as_array()).cloned().unwrap_or_default();
        Self {
            session_id: session_id.to_owned(),
            approval_key: approval_key.to_owned(),
            chosen: vec![Vec::new(); questions.len()],
            questions,
        }
    }

    /// Chooses an option; one of several where only one can be chosen takes the place of another.
    #[track_caller]
    pub fn choose(&mut self, question: usize, option: usize) {
        let shown = &self.questions[question];
        let option = &shown["options"][option];
        assert_ne!(option["input"], true, "this option wants words");
        let label = option["label"].as_str().unwrap().to_owned();
        self.put(question, label);
    }

    /// Writes other words into the line of the option that has one.
    #[track_caller]
    pub fn write(&mut self, question: usize, words: &str) {
        let options = self.questions[question]["options"].as_array().unwrap();
        assert!(options.iter().any(|option| option["input"] == true), "no line to write in: {options:?}");
        self.put(question, words.to_owned());
    }

    fn put(&mut self, question: usize, answer: String) {
        if self.questions[question]["multiSelect"] != true {
            self.chosen[question].clear();
        }
        self.chosen[question].push(answer);
    }

    /// What is sent when the person is done: several choices are joined, what was passed over says so.
    pub fn submit(&self) -> Value {
        let mut answers = Map::new();
        for (question, chosen) in self.questions.iter().zip(&self.chosen) {
            let answer = if chosen.is_empty() { SKIPPED.to_owned() } else { chosen.join(", ") };
            answers.insert(question["question"].as_str().unwrap_or_default().to_owned(), json!(answer));
        }
        json!({
            "type": "approval",
            "session_id": self.session_id,
            "approval_key": self.approval_key,
            "answers": answers,
        })
    }

    pub(super) fn render(&self) -> String {
        let mut lines = Vec::new();
        for (question, chosen) in self.questions.iter().zip(&self.chosen) {
            lines.extend(question["header"].as_str().map(|header| format!("# {header}")));
            lines.push(question["question"].as_str().unwrap_or_default().to_owned());
            let brackets = if question["multiSelect"] == true { ["[x]", "[ ]"] } else { ["(x)", "( )"] };
            for option in question["options"].as_array().into_iter().flatten() {
                let label = option["label"].as_str().unwrap_or_default();
                let [on, off] = brackets;
                let mark = if chosen.iter().any(|chosen| chosen == label) { on } else { off };
                let line = if option["input"] == true { ": ____" } else { "" };
                let means = option["description"].as_str().map(|means| format!(" – {means}")).unwrap_or_default();
                lines.push(format!("{mark} {label}{means}{line}"));
            }
        }
        lines.push("[Gửi]".to_owned());
        lines.join("\n")
    }
}
