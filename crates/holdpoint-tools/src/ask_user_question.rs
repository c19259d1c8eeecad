//! A question to a person. Nothing runs: the call opens a pause, and the answer is its outcome.

use holdpoint_runtime::ports::tool::{Tool, ToolBuilder, ToolShape};
use serde_json::{Value, json};

/// Makes the tool by which a model asks a person.
pub struct AskUserQuestion;

impl AskUserQuestion {
    /// A tool named `ask_user_question`. Its arguments are `{"questions": [{"question", "header"?, "options"?:
    /// [{"label", "description"?, "input"?}], "multi_select"?}]}`; `multiSelect` is read as well.
    ///
    /// ```
    /// use holdpoint_tools::ask_user_question::AskUserQuestion;
    ///
    /// let tool = AskUserQuestion::builder().build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> ToolBuilder {
        Tool::builder("ask_user_question")
            .description(
                "Asks the user one or more questions and waits for the answers. Use it when a decision is the user's \
                 to make. Offer options where you can; the user may always answer in other words.",
            )
            .schema(schema())
            .shape(ToolShape::Question)
    }
}

/// The bounds are those of `holdpoint_core::pause::questions`, which also refuses questions or labels that are alike.
fn schema() -> Value {
    let multi_select = json!({"type": "boolean", "description": "Whether several options may be chosen."});
    let option = json!({
        "type": "object",
        "properties": {
            "label": {"type": "string", "minLength": 1, "maxLength": 200, "description": "What is chosen."},
            "description": {"type": "string", "description": "What it means."},
            "input": {"type": "boolean", "description": "Whether choosing it asks for text."},
        },
        "required": ["label"],
        "additionalProperties": false,
    });
    let question = json!({
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "description": "The question, as the user reads it."},
            "header": {"type": "string", "description": "A short title."},
            "options": {
                "type": "array",
                "items": option,
                "maxItems": 32,
                "description": "What can be chosen; none for an answer in the user's own words.",
            },
            "multi_select": multi_select,
            "multiSelect": multi_select,
        },
        "required": ["question"],
        "additionalProperties": false,
        "not": {"required": ["multi_select", "multiSelect"]},
    });
    json!({
        "type": "object",
        "properties": {"questions": {"type": "array", "items": question, "minItems": 1, "maxItems": 16}},
        "required": ["questions"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use holdpoint_core::pause::questions;

    use super::*;
    use crate::testing::{arguments, holds};

    #[tokio::test]
    async fn a_question_is_put_to_a_person_and_needs_no_approval() {
        let tool = AskUserQuestion::builder().build().unwrap();
        assert_eq!(tool.name().as_str(), "ask_user_question");
        assert!(matches!(tool.shape(), ToolShape::Question));
        assert!(!holds(&tool, &json!({})).await);
    }

    #[test]
    fn what_the_schema_accepts_the_machine_reads() {
        let tool = AskUserQuestion::builder().build().unwrap();
        let option = json!({"label": "Khác", "description": "Nhập giá trị tùy chỉnh", "input": true});
        for value in [
            json!({"questions": [{"question": "Which?"}]}),
            json!({"questions": [{"question": "Which?", "header": "Choice", "multi_select": true, "options": [option]}]}),
            json!({"questions": [{"question": "Which?", "header": "Choice", "multiSelect": false, "options": [option]}]}),
            json!({"questions": (0..16).map(|n| json!({"question": n.to_string()})).collect::<Vec<_>>()}),
        ] {
            assert_eq!(tool.validate(&arguments(&value)), Ok(()), "{value}");
            assert!(questions(&arguments(&value)).is_ok(), "{value}");
        }
    }

    #[test]
    fn what_cannot_be_asked_breaks_the_schema() {
        let tool = AskUserQuestion::builder().build().unwrap();
        let options: Vec<Value> = (0..33).map(|n| json!({"label": n.to_string()})).collect();
        for value in [
            json!({}),
            json!({"question": "Which?"}),
            json!({"questions": []}),
            json!({"questions": "Which?"}),
            json!({"questions": [{"header": "Choice"}]}),
            json!({"questions": [{"question": ""}]}),
            json!({"questions": [{"question": 1}]}),
            json!({"questions": [{"question": "Which?", "options": [{"description": "no label"}]}]}),
            json!({"questions": [{"question": "Which?", "options": [{"label": ""}]}]}),
            json!({"questions": [{"question": "Which?", "options": [{"label": "x".repeat(201)}]}]}),
            json!({"questions": [{"question": "Which?", "options": options}]}),
            json!({"questions": [{"question": "Which?", "multiSelect": "yes"}]}),
            json!({"questions": [{"question": "Which?", "multiSelect": true, "multi_select": false}]}),
            json!({"questions": [{"question": "Which?", "answer": "this one"}]}),
            json!({"questions": (0..17).map(|n| json!({"question": n.to_string()})).collect::<Vec<_>>()}),
        ] {
            assert!(tool.validate(&arguments(&value)).is_err(), "{value}");
        }
    }
}
