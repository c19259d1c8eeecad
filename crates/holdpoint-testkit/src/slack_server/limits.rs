//! Slack's limits on messages and modals. What is beyond them is refused, as Slack does.

use serde_json::Value;

/// What is wrong with a message.
pub(super) fn message(body: &Value) -> Option<String> {
    if body["channel"].as_str().is_none_or(str::is_empty) {
        return Some("channel: missing".to_owned());
    }
    let Some(blocks) = body["blocks"].as_array() else {
        return body["text"].as_str().is_none_or(str::is_empty).then(|| "text: missing".to_owned());
    };
    let total = body["blocks"].to_string().chars().count();
    if blocks.len() > 50 || total > 13_200 {
        return Some(format!("blocks: {} of {total} characters", blocks.len()));
    }
    blocks.iter().find_map(block)
}

/// What is wrong with a modal.
pub(super) fn view(view: &Value) -> Option<String> {
    if view["type"] != "modal" {
        return Some("type: modal expected".to_owned());
    }
    let title = length(&view["title"]["text"]);
    if title == 0 || title > 24 {
        return Some(format!("title: {title} characters"));
    }
    for name in ["submit", "close"] {
        if !view[name].is_null() && !(1..=24).contains(&length(&view[name]["text"])) {
            return Some(format!("{name}: too long"));
        }
    }
    let blocks = view["blocks"].as_array().cloned().unwrap_or_default();
    let has_input = blocks.iter().any(|block| block["type"] == "input");
    if blocks.is_empty() || blocks.len() > 100 || (has_input && view["submit"].is_null()) {
        return Some("blocks: none, too many, or an input without submit".to_owned());
    }
    if length(&view["private_metadata"]) > 3_000 || length(&view["callback_id"]) > 255 {
        return Some("private_metadata or callback_id: too long".to_owned());
    }
    blocks.iter().find_map(block)
}

fn block(block: &Value) -> Option<String> {
    let too_long = |what: &str, value: &Value, max: usize| {
        let found = length(value);
        (found == 0 || found > max).then(|| format!("{what}: {found} characters"))
    };
    match block["type"].as_str().unwrap_or_default() {
        "header" => too_long("header", &block["text"]["text"], 150),
        "section" => too_long("section", &block["text"]["text"], 3_000),
        "context" => {
            let elements = block["elements"].as_array().cloned().unwrap_or_default();
            if elements.is_empty() || elements.len() > 10 {
                return Some("context: elements".to_owned());
            }
            elements.iter().find_map(|element| too_long("context", &element["text"], 3_000))
        }
        "rich_text" => {
            let elements = block["elements"].as_array().cloned().unwrap_or_default();
            elements.iter().find_map(|element| {
                let parts = element["elements"].as_array().cloned().unwrap_or_default();
                parts.iter().find_map(|part| (length(&part["text"]) == 0).then(|| "rich_text: empty".to_owned()))
            })
        }
        "actions" => {
            let elements = block["elements"].as_array().cloned().unwrap_or_default();
            if elements.is_empty() || elements.len() > 25 {
                return Some("actions: elements".to_owned());
            }
            elements.iter().find_map(button)
        }
        "input" => too_long("label", &block["label"]["text"], 2_000)
            .or_else(|| (!block["hint"].is_null()).then(|| too_long("hint", &block["hint"]["text"], 2_000)).flatten())
            .or_else(|| too_long("block_id", &block["block_id"], 255))
            .or_else(|| input(&block["element"])),
        other => Some(format!("{other}: not a block")),
    }
}

fn button(button: &Value) -> Option<String> {
    let text = length(&button["text"]["text"]);
    if button["type"] != "button" || !(1..=75).contains(&text) || length(&button["value"]) > 2_000 {
        return Some("button: text or value".to_owned());
    }
    if length(&button["action_id"]) > 255 || length(&button["url"]) > 3_000 {
        return Some("button: action_id or url".to_owned());
    }
    let confirm = &button["confirm"];
    let is_fine = confirm.is_null()
        || ((1..=100).contains(&length(&confirm["title"]["text"]))
            && (1..=300).contains(&length(&confirm["text"]["text"])));
    (!is_fine).then(|| "button: confirm".to_owned())
}

fn input(element: &Value) -> Option<String> {
    let kind = element["type"].as_str().unwrap_or_default();
    let most = match kind {
        "plain_text_input" => {
            let fits =
                length(&element["initial_value"]) <= 3_000 && element["max_length"].as_u64().unwrap_or(1) <= 3_000;
            return (!fits).then(|| "plain_text_input: too long".to_owned());
        }
        "radio_buttons" | "checkboxes" => 10,
        "static_select" | "multi_static_select" => 100,
        other => return Some(format!("{other}: not an input")),
    };
    let options = element["options"].as_array().cloned().unwrap_or_default();
    if options.is_empty() || options.len() > most {
        return Some(format!("{kind}: {} options", options.len()));
    }
    options.iter().find_map(|option| {
        let fits = (1..=75).contains(&length(&option["text"]["text"])) && (1..=150).contains(&length(&option["value"]));
        (!fits).then(|| format!("{kind}: an option is too long"))
    })
}

fn length(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.encode_utf16().count())
}
