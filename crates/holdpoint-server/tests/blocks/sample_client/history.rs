//! The page's parser and renderer of the history: groups folded, resolved questions and texts outside of them.

use serde_json::Value;

/// What a page that was loaded anew shows.
pub fn render_history(messages: &[Value]) -> String {
    let mut lines = Vec::new();
    for message in messages {
        match message["display_type"].as_str() {
            // A group is folded: only its summary is seen.
            Some("group_start") => lines.push(format!("{} >", message["summary"].as_str().unwrap_or_default())),
            Some("group_item" | "group_end") => {}
            _ => lines.extend(blocks(message).iter().map(render_block)),
        }
    }
    lines.join("\n")
}

fn blocks(message: &Value) -> Vec<Value> {
    let known = |block: &&Value| matches!(block["type"].as_str(), Some("text" | "approval_request"));
    message["content"].as_array().into_iter().flatten().filter(known).cloned().collect()
}

fn render_block(block: &Value) -> String {
    if block["type"] == "text" {
        return block["text"].as_str().unwrap_or_default().to_owned();
    }
    let actions = block["actionRequests"].as_array().cloned().unwrap_or_default();
    let question = actions.iter().find(|action| action["name"] == "ask_user_question");
    match question {
        Some(action) if block["isResolved"] == true => resolved(action, &block["submittedAnswers"]),
        Some(_) => "? chưa trả lời".to_owned(),
        None => {
            format!("! {}", actions.iter().filter_map(|action| action["name"].as_str()).collect::<Vec<_>>().join(", "))
        }
    }
}

fn resolved(action: &Value, answers: &Value) -> String {
    let questions = action["args"]["questions"].as_array().into_iter().flatten();
    let lines = questions.map(|asked| {
        let text = asked["question"].as_str().unwrap_or_default();
        let answer = answers[text].as_str().filter(|answer| !answer.is_empty()).unwrap_or("[No preference]");
        format!("│ {text}\n│ {answer}")
    });
    lines.collect::<Vec<_>>().join("\n")
}
