//! Every kind of tool and agent that a file can describe.

use holdpoint_core::decision::Decision;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::tool::Effect;

use crate::bench::{Bench, agent, calls, echo, output, pause, waits_seconds};
use holdpoint_server::agents::{FieldKind, Held};

#[tokio::test]
async fn a_tool_without_an_approval_setting_is_held_and_runs_with_what_was_approved() {
    let bench = Bench::new(&[
        ("a.yaml", &agent("a", &format!("  tools:\n{}", echo("send", "sent", "")))),
        ("a.json", &calls("send", r#"{"to": "ana"}"#)),
    ]);
    let catalogue = bench.open().unwrap();
    let run = bench.start(&catalogue, "a", "go").await;
    let held = pause(&run);
    assert_eq!((held.kind(), held.pause.terms.rule.as_deref()), (PauseKind::Approval, Some("default")));
    assert_eq!(held.arguments().unwrap().as_str(), r#"{"to":"ana"}"#);
    let run = bench.decide(&catalogue, &held, Decision::Approve).await;
    assert_eq!(output(&run), r#"sent {"to":"ana"}"#);
}

#[tokio::test]
async fn a_question_needs_no_approval_and_is_answered_by_a_person() {
    let script = calls("ask_user_question", r#"{"questions": [{"question": "Which?"}]}"#);
    let bench =
        Bench::new(&[("a.yaml", &agent("a", "  tools: [{ ref: builtin/ask_user_question }]")), ("a.json", &script)]);
    let catalogue = bench.open().unwrap();
    let run = bench.start(&catalogue, "a", "go").await;
    let asked = pause(&run);
    assert_eq!(asked.kind(), PauseKind::Question);
    let answers = [("Which?".to_owned(), vec!["This one".to_owned()])].into();
    let run = bench.decide(&catalogue, &asked, Decision::Answer { answers }).await;
    assert_eq!(output(&run), r#"{"answers":{"Which?":"This one"}}"#);
}

#[tokio::test]
async fn the_built_in_tools_work_in_the_folder_that_is_configured() {
    let tools = "  tools:\n    - { ref: builtin/shell, config: { timeout_seconds: 5, working_directory: agents }, approval: never }\n    \
                 - { ref: builtin/apply_patch, config: { working_directory: agents }, approval: never }\n";
    let bench = Bench::new(&[
        ("a.yaml", &agent("a", tools)),
        (
            "a.json",
            r#"{"replies": [
                {"calls": [{"tool": "apply_patch", "arguments": {"operation": {"type": "create_file", "path": "new.txt", "diff": "+made"}}}]},
                {"calls": [{"tool": "shell", "arguments": {"command": "cat new.txt"}}]},
                "{result}"]}"#,
        ),
    ]);
    let catalogue = bench.open().unwrap();
    let run = bench.start(&catalogue, "a", "go").await;
    assert!(output(&run).contains("made"), "{}", output(&run));
    assert_eq!(std::fs::read_to_string(bench.path("new.txt")).unwrap().trim(), "made");
}

#[tokio::test]
async fn agents_hand_over_to_each_other_in_a_ring() {
    let bench = Bench::new(&[
        ("front.yaml", &agent("front", "  handoffs: [back]")),
        ("front.json", r#"{"replies": [{"calls": [{"tool": "transfer_to_back", "arguments": {}}]}]}"#),
        ("back.yaml", &agent("back", "  handoffs: [front]")),
        ("back.json", r#"{"scripts": [{"agent": "back", "replies": ["back speaks"]}], "replies": ["back alone"]}"#),
    ]);
    let catalogue = bench.open().unwrap();
    assert_eq!(output(&bench.start(&catalogue, "front", "go").await), "back speaks");
    assert_eq!(catalogue.find("back").unwrap().graph.agents().count(), 2);
}

#[tokio::test]
async fn pauses_of_an_agent_used_as_a_tool_surface_at_the_root() {
    let bench = Bench::new(&[
        ("boss.yaml", &agent("boss", "  tools: [{ ref: agent://helper, name: ask_helper }]")),
        ("boss.json", &calls("ask_helper", r#"{"input": "do it"}"#)),
        ("helper.yaml", &agent("helper", &format!("  max_turns: 3\n  tools:\n{}", echo("act", "acted", "")))),
        ("helper.json", &calls("act", r#"{"n": 1}"#)),
    ]);
    let catalogue = bench.open().unwrap();
    let boss = catalogue.find("boss").unwrap();
    let places: Vec<String> = boss.tools.iter().map(|card| format!("{} {}", card.agent, card.name)).collect();
    assert_eq!(places, ["boss ask_helper", "boss/ask_helper act"]);
    let run = bench.start(&catalogue, "boss", "go").await;
    let held = pause(&run);
    assert_eq!(held.agent.as_str(), "boss/ask_helper");
    assert_eq!(output(&bench.decide(&catalogue, &held, Decision::Approve).await), r#"acted {"n":1}"#);
}

#[tokio::test]
async fn a_confirmation_waits_as_long_as_its_file_says() {
    let interrupt = "  interrupt: { enabled: true, timeout_seconds: 60, keywords: [\"+ xin xác nhận\"], \
                     fields: [{ name: ok, type: confirm, label: Xác nhận, required: true }] }";
    let bench = Bench::new(&[
        ("a.yaml", &agent("a", interrupt)),
        ("a.json", r#"{"replies": ["Xin  XÁC nhận giao dịch.", "done"]}"#),
    ]);
    let catalogue = bench.open().unwrap();
    let card = catalogue.find("a").unwrap().interrupt.clone().unwrap();
    assert_eq!((card.fields[0].name.as_str(), card.fields[0].kind), ("ok", FieldKind::Confirm));
    let run = bench.start(&catalogue, "a", "go").await;
    let asked = pause(&run);
    assert_eq!(asked.kind(), PauseKind::Confirmation);
    assert_eq!(waits_seconds(&asked), 60);
    assert_eq!(output(&bench.decide(&catalogue, &asked, Decision::Approve).await), "done");
}

#[tokio::test]
async fn the_words_of_an_agent_without_interrupt_ask_nobody() {
    let script = r#"{"replies": ["Please confirm."]}"#;
    let bench = Bench::new(&[("a.yaml", &agent("a", "")), ("a.json", script)]);
    let catalogue = bench.open().unwrap();
    assert!(catalogue.find("a").unwrap().interrupt.is_none());
    assert_eq!(output(&bench.start(&catalogue, "a", "go").await), "Please confirm.");
}

#[tokio::test]
async fn a_fallback_stands_in_for_a_model_that_gives_no_reply() {
    let file =
        agent("a", "").replace("primary: scripted/a.json", "primary: scripted/a.json, fallback: scripted/b.json");
    let bench = Bench::new(&[
        ("a.yaml", &file),
        ("a.json", r#"{"replies": [{"fault": "out of order"}]}"#),
        ("b.json", r#"{"replies": ["the second speaks"]}"#),
    ]);
    let catalogue = bench.open().unwrap();
    assert_eq!(output(&bench.start(&catalogue, "a", "go").await), "the second speaks");
}

#[test]
fn cards_say_what_the_file_says() {
    let more = "      effects: idempotent\n      approval: { when: \"args.n > 1\", fill: none }\n      \
                display: { stream_tool_use: false, stream_tool_result: true, as_content: true, message: \"Do {n}\" }\n";
    let tool = echo("act", "acted", more)
        .replace("{ type: object }", "{ type: object, properties: { n: { type: integer } } }");
    let file = agent("a", &format!("  locale: vi\n  max_turns: 7\n  tools:\n{tool}"));
    let file =
        file.replace("description: the agent a", "description: the agent a, version: \"2\", labels: { team: desk }");
    let bench = Bench::new(&[("a.yaml", &file), ("a.json", r#"{"replies": ["x"]}"#)]);
    let catalogue = bench.open().unwrap();
    let agent = catalogue.find("a").unwrap_or_else(|| panic!("{:#?}", catalogue.diagnostics()));
    assert_eq!((agent.version.as_deref(), agent.locale.as_deref(), agent.turns_max), (Some("2"), Some("vi"), Some(7)));
    assert_eq!(agent.labels.get("team").map(String::as_str), Some("desk"));
    let card = &agent.tools[0];
    assert_eq!(
        (card.held, card.effect, card.fill),
        (Held::Sometimes, Effect::Idempotent, Some(holdpoint_server::agents::Fill::None))
    );
    assert_eq!((card.display.stream_tool_use, card.display.as_content), (false, true));
    assert_eq!(card.display.message.as_deref(), Some("Do {n}"));
}

#[test]
fn what_cannot_be_built_is_told_with_its_place() {
    let tools = "  tools:\n    - { ref: mcp://files/write_file }\n    - name: gone\n      description: x\n      \
                 parameters: { type: object }\n      command: { argv: [\"./not-there.sh\"] }\n";
    let bench = Bench::new(&[("a.yaml", &agent("a", tools)), ("a.json", r#"{"replies": ["x"]}"#)]);
    let catalogue = bench.open().unwrap();
    assert!(catalogue.list().is_empty());
    let told: Vec<String> = catalogue.diagnostics().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|line| line.contains("a.yaml:8:") && line.contains("MCP")), "{told:#?}");
    assert!(told.iter().any(|line| line.contains("a.yaml:9:") && line.contains("not-there.sh")), "{told:#?}");
}

#[test]
fn a_model_without_a_key_is_a_warning_and_a_script_that_is_missing_an_error() {
    let keyless = agent("a", "").replace("scripted/a.json", "openai/gpt-4o");
    let bench = Bench::new(&[("a.yaml", &keyless), ("b.yaml", &agent("b", ""))]);
    let catalogue = bench.open().unwrap();
    assert_eq!(catalogue.list().iter().map(|agent| agent.name.clone()).collect::<Vec<_>>(), ["a"]);
    let told: Vec<String> = catalogue.diagnostics().iter().map(ToString::to_string).collect();
    assert!(told[0].contains("warning") && told[0].contains("OPENAI_API_KEY"), "{told:#?}");
    assert!(told[1].contains("error") && told[1].contains("b.json"), "{told:#?}");
}

#[test]
fn a_script_outside_the_folder_is_not_read() {
    let bench = Bench::new(&[("a.yaml", &agent("a", "").replace("scripted/a.json", "scripted/../../etc/passwd"))]);
    let catalogue = bench.open().unwrap();
    let told = catalogue.diagnostics().iter().map(ToString::to_string).collect::<String>();
    assert!(catalogue.list().is_empty() && told.contains("below the agents folder"), "{told}");
}
