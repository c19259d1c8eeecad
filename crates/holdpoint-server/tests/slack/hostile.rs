//! Text from models that would like to be more than text: no ping, no link that we did not make, nothing hidden.

use holdpoint_core::text::is_plain;
use serde_json::{Value, json};

use crate::world::World;

const HOSTILE: &[&str] = &[
    "<!channel> <!here> <!everyone>",
    "<@UALICE> <#C0123456789> <!subteam^S1>",
    "<https://evil.example|Approve here>",
    "*bold* _it_ ~no~ `code` ```block``` > quote",
    ":tada: &lt;!channel&gt; &amp;",
    "a\u{202e}b\u{200b}\u{2066}\u{feff}\u{e0041}c",
    "\u{1b}[2K\u{7}\u{0}\u{7f}\u{85}",
    "\"}],\"elements\":[{\"type\":\"button\",\"action_id\":\"approve\"}]",
    "line\nbreaks\r\nand\ttabs\u{2028}\u{2029}",
    "https://evil.example/?a=1&b=2 mailto:x@evil.example",
    "<!date^0^{date}^https://evil.example|x>",
];

/// Every text in a value, with the kind of text that it is part of.
fn texts<'v>(value: &'v Value, kind: &'v str, found: &mut Vec<(&'v str, &'v str)>) {
    match value {
        Value::String(text) => found.push((kind, text)),
        Value::Array(items) => items.iter().for_each(|item| texts(item, kind, found)),
        Value::Object(members) => {
            let kind = members.get("type").and_then(Value::as_str).unwrap_or(kind);
            members.values().for_each(|member| texts(member, kind, found));
        }
        _ => {}
    }
}

#[track_caller]
fn check(value: &Value) {
    let mut found = Vec::new();
    texts(value, "", &mut found);
    for (kind, text) in found {
        assert!(text.chars().all(|c| is_plain(c) || c == '\n' || c == '\t'), "{kind}: {text:?}");
        // The only mark of Slack's own is the date, which is ours.
        let unmarked = match kind {
            "mrkdwn" => {
                let (before, rest) = text.split_once("<!date^").unwrap_or((text, ""));
                let after = rest.split_once('>').map_or("", |(_, after)| after);
                format!("{before}{after}")
            }
            _ => text.to_owned(),
        };
        assert!(!unmarked.contains(['<', '>']), "{kind}: {text:?}");
        let entities = ["&amp;", "&lt;", "&gt;"];
        let bare = entities.iter().fold(unmarked.clone(), |text, entity| text.replace(entity, ""));
        assert!(!bare.contains('&') || kind == "button", "{kind}: {text:?}");
        if kind == "mrkdwn" {
            assert!(!text.contains("evil") && !text.contains("UALICE"), "{text:?}");
        }
    }
}

#[track_caller]
fn links(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(links).collect(),
        Value::Object(members) => {
            let own = members.get("url").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(members.values().flat_map(links)).collect()
        }
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn arguments_are_shown_as_text_and_run_as_they_are() {
    let world = World::new().await;
    for hostile in HOSTILE {
        let asked = world.ask("mailer", hostile).await;
        check(&json!({"text": asked.message.text, "blocks": asked.message.blocks}));
        assert_eq!(links(&asked.message.blocks), [format!("https://hold.example/pauses/{}", asked.pause)]);
        assert_eq!(asked.message.actions(), ["approve", "edit", "deny", "open"]);
        // What is shown is the JSON that runs, to the last character.
        let shown = asked.message.blocks[2]["elements"][0]["elements"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(shown).unwrap(), json!({"to": hostile}));
        world.click("UALICE", &asked.message, "approve").await.acknowledges();
        world.finished(&asked.run).await;
        let ran: Value = serde_json::from_str(world.effects.sent().last().unwrap()).unwrap();
        assert_eq!(ran, json!({"to": hostile}));
        let message = world.settled(&asked.message).await;
        check(&json!({"text": message.text, "blocks": message.blocks}));
        assert_eq!(links(&message.blocks), Vec::<String>::new());
    }
}

#[tokio::test]
async fn questions_options_reasons_and_refusals_are_shown_as_text() {
    let world = World::new().await;
    for hostile in HOSTILE {
        let question = json!({"questions": [{
            "question": format!("{hostile}?"),
            "header": hostile,
            "options": [{"label": "a", "description": hostile}, {"label": format!("b {}", &hostile.chars().take(8).collect::<String>())}],
        }]});
        let asked = world.ask("asker", &question.to_string()).await;
        check(&json!({"text": asked.message.text, "blocks": asked.message.blocks}));
        if asked.message.button("answer").is_some() {
            let view = world.open("UALICE", &asked.message, "answer").await;
            check(&view["blocks"]);
        }
        let view = world.open("UALICE", &asked.message, "deny").await;
        let values = json!({"reason": {"text": {"type": "plain_text_input", "value": hostile}}});
        world.send_off("UALICE", &view, values).await.acknowledges();
        let message = world.settled(&asked.message).await;
        check(&json!({"text": message.text, "blocks": message.blocks}));
    }
    let asked = world.ask("mailer", "ana").await;
    let view = world.open("UALICE", &asked.message, "edit").await;
    let value = json!({"<!channel>": "<@UALICE>", "to": 7}).to_string();
    let values = json!({"arguments": {"text": {"type": "plain_text_input", "value": value}}});
    let answer = world.send_off("UALICE", &view, values).await.expect(200);
    check(&answer["errors"]);
}
