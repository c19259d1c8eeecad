//! A pause: a question to a person, kept as data. Nothing waits in memory while somebody thinks.

use std::collections::BTreeSet;
use std::fmt;

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Serialize};

use crate::decision::{Decision, Manner};
use crate::ids::{ActorId, AgentId, CallPath, FramePath, PauseId, ToolName};
use crate::json::{CanonicalJson, Digest};
use crate::policy::PauseTerms;
use crate::text::visible;
use crate::time::Timestamp;
use crate::tool::{Call, ToolKind};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// May this call run?
    Approval,
    /// What is the answer?
    Question,
    /// The model asked in its own words: go on?
    Confirmation,
    /// Did this call take effect before the process died?
    InDoubt,
}

impl PauseKind {
    /// The kind's name, as wires spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Question => "question",
            Self::Confirmation => "confirmation",
            Self::InDoubt => "in_doubt",
        }
    }

    /// The decisions that answer it, by name.
    pub fn allowed_decisions(self) -> &'static [&'static str] {
        match self {
            Self::Approval => &["approve", "approve_edited", "deny", "respond"],
            Self::Question => &["answer", "deny", "respond"],
            Self::Confirmation => &["approve", "deny", "respond"],
            Self::InDoubt => &["happened", "run_again", "abandon"],
        }
    }
}

/// A pause within a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Its name.
    pub id: PauseId,
    /// What is asked.
    pub kind: PauseKind,
    /// What it is about.
    pub subject: Subject,
    /// Why the call is held, in the operator's words; shown, never trusted.
    pub reason: Option<String>,
    /// Since when.
    pub opened_at: Timestamp,
    /// On what terms it is asked.
    pub terms: PauseTerms,
    /// Who approved what is held, in order; the one whose approval decided included.
    pub approvals: Vec<Vote>,
    /// How it stands.
    pub state: PauseState,
}

/// An approval of one of several who must approve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// Who approved.
    pub by: ActorId,
    /// Through which door.
    pub via: Option<String>,
    /// The caller's own name of the request.
    pub request: Option<String>,
    /// When.
    pub at: Timestamp,
}

impl Pause {
    /// Whether it still waits for somebody.
    pub fn is_open(&self) -> bool {
        matches!(self.state, PauseState::Open { .. })
    }

    /// The answer, where there is one.
    pub fn decision(&self) -> Option<&Decision> {
        match &self.state {
            PauseState::Decided(decided) => Some(&decided.decision),
            PauseState::Open { .. } | PauseState::Expired { .. } | PauseState::Withdrawn { .. } => None,
        }
    }

    /// How many different actors must approve, those who have included.
    pub fn approvals_needed(&self) -> u32 {
        self.terms.quorum
    }

    /// How many approvals are still missing; none once it is settled.
    pub fn approvals_missing(&self) -> u32 {
        let given = u32::try_from(self.approvals.len()).unwrap_or(u32::MAX);
        if self.is_open() { self.terms.quorum.saturating_sub(given) } else { 0 }
    }

    /// Whether this actor is among those who have approved.
    pub fn is_approved_by(&self, actor: &ActorId) -> bool {
        self.approvals.iter().any(|vote| vote.by == *actor)
    }
}

/// What a pause is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A call, and the digest of its arguments when it was held.
    Call {
        /// Where the call stands.
        path: CallPath,
        /// What a decision binds to.
        digest: Digest,
    },
    /// The model's own words in this frame.
    Words {
        /// The frame.
        frame: FramePath,
        /// What the model asked.
        text: String,
    },
}

impl Subject {
    /// The frame in which the question arose.
    pub fn frame(&self) -> FramePath {
        match self {
            Self::Call { path, .. } => path.frame(),
            Self::Words { frame, .. } => frame.clone(),
        }
    }
}

/// How a pause stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PauseState {
    /// Waits, until then if a time is given.
    Open {
        /// When it expires.
        expires_at: Option<Timestamp>,
    },
    /// Answered.
    Decided(DecidedPause),
    /// Nobody answered in time.
    Expired {
        /// Since when.
        at: Timestamp,
    },
    /// The run ended, or the question no longer arises.
    Withdrawn {
        /// Since when.
        at: Timestamp,
        /// Why.
        reason: String,
    },
}

/// Who answered a pause, when and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedPause {
    /// The answer.
    pub decision: Decision,
    /// Who gave it.
    pub by: ActorId,
    /// Through which door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The caller's own name of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Whether it was given for this very pause.
    #[serde(default, skip_serializing_if = "Manner::is_given")]
    pub manner: Manner,
    /// When.
    pub at: Timestamp,
}

/// A pause with everything that a person needs to decide it: what stands on a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseView {
    /// The pause.
    pub pause: Pause,
    /// The agent whose turn it is part of.
    pub agent: AgentId,
    /// The call, unless the model's own words are the question.
    pub call: Option<HeldCall>,
}

impl PauseView {
    /// The pause's id.
    pub fn id(&self) -> PauseId {
        self.pause.id
    }

    /// What is asked.
    pub fn kind(&self) -> PauseKind {
        self.pause.kind
    }

    /// The tool that would run; `None` where the model's own words are the question.
    pub fn tool(&self) -> Option<&ToolName> {
        self.call.as_ref().map(|call| &call.tool)
    }

    /// Exactly the arguments that would run; `None` where the model's own words are the question.
    pub fn arguments(&self) -> Option<&CanonicalJson> {
        self.call.as_ref().map(|call| &call.arguments)
    }
}

/// One line for a terminal or a log for people: hidden characters are shown, and nothing in it is cut.
impl fmt::Display for PauseView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |text: &str| visible(text).replace('\n', "⏎").replace('\t', "⇥");
        match (&self.call, &self.pause.subject) {
            (Some(call), _) => {
                write!(f, "{} {} {}", self.pause.kind.name(), call.tool, line(call.arguments.as_str()))
            }
            (None, Subject::Words { text, .. }) => write!(f, "{} {}", self.pause.kind.name(), line(text)),
            (None, Subject::Call { path, .. }) => write!(f, "{} {path}", self.pause.kind.name()),
        }
    }
}

/// The held call as it would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCall {
    /// Where it stands.
    pub path: CallPath,
    /// The provider's id of it.
    pub call_id: String,
    /// The tool.
    pub tool: ToolName,
    /// How the tool is reached: a function, a shell, an agent, a server's tool.
    pub kind: ToolKind,
    /// Exactly what would run.
    pub arguments: CanonicalJson,
    /// The digest that a decision binds to.
    pub digest: Digest,
}

impl HeldCall {
    /// A call as it stands.
    pub(crate) fn of(call: &Call, path: CallPath) -> Self {
        Self {
            path,
            call_id: call.record.call_id.clone(),
            tool: call.record.tool.clone(),
            kind: call.record.kind.clone(),
            arguments: call.arguments.clone(),
            digest: call.digest(),
        }
    }
}

/// One question of a `question` pause, read from the call's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The text.
    pub question: String,
    /// A short title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// What can be chosen; empty for free text.
    #[serde(default)]
    pub options: Vec<QuestionOption>,
    /// Whether several options may be chosen.
    #[serde(default, alias = "multiSelect")]
    pub multi_select: bool,
}

/// One option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionOption {
    /// What is chosen.
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether choosing it asks for text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input: bool,
}

/// The questions in a call's arguments.
///
/// # Errors
/// Arguments without a `questions` list of 1 to 16 questions with distinct texts and distinct labels.
pub fn questions(arguments: &CanonicalJson) -> Result<Vec<Question>, String> {
    #[derive(Deserialize)]
    struct Body {
        questions: Vec<Question>,
    }
    let body: Body = arguments.decode().map_err(|error| format!("questions expected: {error}"))?;
    let is_distinct = |texts: &[&str]| {
        let mut sorted: Vec<&&str> = texts.iter().collect();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    };
    let texts: Vec<&str> = body.questions.iter().map(|question| question.question.as_str()).collect();
    if !(1..=16).contains(&body.questions.len()) || !is_distinct(&texts) {
        return Err("1 to 16 questions with distinct texts expected".to_owned());
    }
    for question in &body.questions {
        let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
        if labels.len() > 32 || !is_distinct(&labels) {
            return Err("at most 32 options with distinct labels expected in each question".to_owned());
        }
    }
    Ok(body.questions)
}

/// The questions in a call's arguments, where they can be put to a person: told apart also by who sends their texts back in
/// another Unicode form, or without the space around them.
///
/// # Errors
/// As [`questions`]; or two questions, or two labels of one question, differ by no more than that.
pub fn askable(arguments: &CanonicalJson) -> Result<Vec<Question>, String> {
    let questions = questions(arguments)?;
    if let Some(number) = alike(questions.iter().map(|question| question.question.as_str())) {
        return Err(format!("question {number} reads like one before it: give each a text of its own"));
    }
    for (question, number) in questions.iter().zip(1..) {
        if let Some(label) = alike(question.options.iter().map(|option| option.label.as_str())) {
            return Err(format!("option {label} of question {number} reads like one before it"));
        }
    }
    Ok(questions)
}

/// The number of the first text that reads like one before it.
fn alike<'a>(texts: impl Iterator<Item = &'a str>) -> Option<usize> {
    let normalizer = ComposingNormalizerBorrowed::new_nfc();
    let mut seen = BTreeSet::new();
    let mut numbered = texts.zip(1..);
    numbered.find(|(text, _)| !seen.insert(normalizer.normalize(text.trim()))).map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_one_line_in_which_nothing_hides() {
        let run = "run_0198c0ffee007000800000000000beef".parse().unwrap();
        let path = FramePath::root().call(1, 0);
        let arguments = CanonicalJson::parse(r#"{"to": "a\u202eb\n\u001b[2K"}"#).unwrap();
        let digest = arguments.digest();
        let view = PauseView {
            pause: Pause {
                id: PauseId { run, number: 1 },
                kind: PauseKind::Approval,
                subject: Subject::Call { path: path.clone(), digest },
                reason: None,
                opened_at: Timestamp::from_millis(0),
                terms: PauseTerms::default(),
                approvals: Vec::new(),
                state: PauseState::Open { expires_at: None },
            },
            agent: AgentId::root("Mailer").unwrap(),
            call: Some(HeldCall {
                path,
                call_id: "call_1".to_owned(),
                tool: ToolName::new("send").unwrap(),
                kind: ToolKind::Function,
                arguments,
                digest,
            }),
        };
        assert_eq!(view.to_string(), r#"approval send {"to":"a⟦U+202E⟧b\n\u001b[2K"}"#);
        assert_eq!(view.tool().map(ToolName::as_str), Some("send"));
    }
}
