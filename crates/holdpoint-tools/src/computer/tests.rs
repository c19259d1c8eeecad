use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use holdpoint_core::message::{Content, Part, Source};
use holdpoint_runtime::ports::tool::{RunTool, ToolFailure, ToolShape};
use serde_json::{Value, json};

use super::{Button, Computer, ComputerAction, ComputerRunner, ComputerTool, Point, Screenshot, read_actions};
use crate::testing::{arguments, context, holds};

/// Writes down what is done at it. Typing `fail` fails.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<String>>>);

impl Paper {
    fn note(&self, text: String) -> Result<(), ToolFailure> {
        self.0.lock().unwrap().push(text);
        Ok(())
    }

    fn noted(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl Computer for Paper {
    async fn screenshot(&self) -> Result<Screenshot, ToolFailure> {
        self.note("screenshot".to_owned())?;
        Ok(Screenshot { media_type: "image/png".to_owned(), bytes: b"png".to_vec() })
    }

    async fn click(&self, at: Point, button: Button, keys: &[String]) -> Result<(), ToolFailure> {
        self.note(format!("click {} {} {button:?} {keys:?}", at.x, at.y))
    }

    async fn double_click(&self, at: Point, keys: &[String]) -> Result<(), ToolFailure> {
        self.note(format!("double_click {} {} {keys:?}", at.x, at.y))
    }

    async fn move_to(&self, at: Point, keys: &[String]) -> Result<(), ToolFailure> {
        self.note(format!("move {} {} {keys:?}", at.x, at.y))
    }

    async fn drag(&self, path: &[Point], keys: &[String]) -> Result<(), ToolFailure> {
        let path: Vec<(i32, i32)> = path.iter().map(|point| (point.x, point.y)).collect();
        self.note(format!("drag {path:?} {keys:?}"))
    }

    async fn scroll(&self, at: Point, by: Point, keys: &[String]) -> Result<(), ToolFailure> {
        self.note(format!("scroll {} {} by {} {} {keys:?}", at.x, at.y, by.x, by.y))
    }

    async fn type_text(&self, text: &str) -> Result<(), ToolFailure> {
        if text == "fail" { Err(ToolFailure::new("no keyboard")) } else { self.note(format!("type {text}")) }
    }

    async fn keypress(&self, keys: &[String]) -> Result<(), ToolFailure> {
        self.note(format!("keypress {keys:?}"))
    }

    async fn wait(&self) -> Result<(), ToolFailure> {
        self.note("wait".to_owned())
    }
}

async fn run(value: Value) -> (Result<Content, ToolFailure>, Vec<String>) {
    let paper = Paper::default();
    let told = ComputerRunner(paper.clone()).run(context(), arguments(&value)).await;
    (told, paper.noted())
}

fn every_action() -> Value {
    json!([
        {"type": "screenshot"},
        {"type": "click", "x": 1, "y": 2, "button": "right"},
        {"type": "click", "x": 1, "y": 2, "keys": ["SHIFT"]},
        {"type": "double_click", "x": 3, "y": 4, "keys": null},
        {"type": "move", "x": 5, "y": -6},
        {"type": "drag", "path": [{"x": 1, "y": 1}, {"x": 2, "y": 2}]},
        {"type": "scroll", "x": 7, "y": 8, "scroll_x": 0, "scroll_y": 100},
        {"type": "type", "text": "hello"},
        {"type": "keypress", "keys": ["CTRL", "C"]},
        {"type": "wait"},
    ])
}

#[tokio::test]
async fn actions_are_done_in_order_and_then_a_picture_is_taken() {
    let (told, noted) = run(json!({"actions": every_action()})).await;
    let image = Part::Image { media_type: "image/png".to_owned(), source: Source::Base64("cG5n".to_owned()) };
    assert_eq!(told, Ok(Content::Parts(vec![image])));
    let expected = [
        "click 1 2 Right []",
        r#"click 1 2 Left ["SHIFT"]"#,
        "double_click 3 4 []",
        "move 5 -6 []",
        "drag [(1, 1), (2, 2)] []",
        "scroll 7 8 by 0 100 []",
        "type hello",
        r#"keypress ["CTRL", "C"]"#,
        "wait",
        "screenshot",
    ];
    assert_eq!(noted, expected);
}

#[tokio::test]
async fn the_older_form_with_one_action_is_read() {
    let (told, noted) = run(json!({"action": {"type": "click", "x": 1, "y": 2, "button": "left"}})).await;
    assert!(told.is_ok());
    assert_eq!(noted, ["click 1 2 Left []", "screenshot"]);
}

#[tokio::test]
async fn an_action_that_fails_ends_the_batch_and_says_what_was_done() {
    let (told, noted) =
        run(json!({"actions": [{"type": "wait"}, {"type": "type", "text": "fail"}, {"type": "wait"}]})).await;
    assert_eq!(told, Err(ToolFailure::new("type: no keyboard (1 of 3 actions were done)")));
    assert_eq!(noted, ["wait"]);
}

#[tokio::test]
async fn a_cancelled_run_does_no_further_action() {
    let (paper, context) = (Paper::default(), context());
    context.cancelled.cancel();
    let told = ComputerRunner(paper.clone()).run(context, arguments(&json!({"actions": [{"type": "wait"}]}))).await;
    assert_eq!(told, Err(ToolFailure::new("wait: the run was cancelled (0 of 1 actions were done)")));
    assert!(paper.noted().is_empty());
}

#[test]
fn the_tool_has_two_names_and_one_shape() {
    let tool = ComputerTool::builder(Paper::default()).build().unwrap();
    let older = ComputerTool::preview_builder(Paper::default()).build().unwrap();
    assert_eq!((tool.name().as_str(), older.name().as_str()), ("computer", "computer_use_preview"));
    for tool in [tool, older] {
        assert!(matches!(tool.shape(), ToolShape::Computer));
        assert_eq!(tool.validate(&arguments(&json!({"actions": every_action()}))), Ok(()));
        assert_eq!(tool.validate(&arguments(&json!({"action": {"type": "wait"}}))), Ok(()));
    }
}

#[tokio::test]
async fn a_computer_tool_without_an_approval_setting_needs_none() {
    let call = json!({"actions": [{"type": "wait"}]});
    assert!(!holds(&ComputerTool::builder(Paper::default()).build().unwrap(), &call).await);
    assert!(holds(&ComputerTool::builder(Paper::default()).needs_approval(true).build().unwrap(), &call).await);
}

#[test]
fn a_call_that_cannot_run_as_a_whole_breaks_the_schema_and_is_refused() {
    let tool = ComputerTool::builder(Paper::default()).build().unwrap();
    for value in [
        json!({}),
        json!({"actions": []}),
        json!({"actions": {"type": "wait"}}),
        json!({"action": [{"type": "wait"}]}),
        json!({"action": {"type": "wait"}, "actions": [{"type": "wait"}]}),
        json!({"actions": [{"type": "wait"}, {"type": "explode"}]}),
        json!({"actions": [{"x": 1, "y": 2}]}),
        json!({"actions": [{"type": "click", "x": 1}]}),
        json!({"actions": [{"type": "click", "x": 1.5, "y": 2}]}),
        json!({"actions": [{"type": "click", "x": 1, "y": 3_000_000_000_u64}]}),
        json!({"actions": [{"type": "click", "x": 1, "y": 2, "button": "middle"}]}),
        json!({"actions": [{"type": "wait", "ms": 5}]}),
        json!({"actions": [{"type": "screenshot", "x": 1}]}),
        json!({"actions": [{"type": "drag", "path": [{"x": 1, "y": 1}]}]}),
        json!({"actions": [{"type": "keypress", "keys": []}]}),
        json!({"actions": [{"type": "wait"}], "approved": true}),
        json!({"actions": vec![json!({"type": "wait"}); ComputerTool::ACTIONS_MAX + 1]}),
    ] {
        assert!(tool.validate(&arguments(&value)).is_err(), "{value}");
        assert!(read_actions(&value).is_err(), "{value}");
    }
}

#[test]
fn actions_are_written_as_they_are_read() {
    let read = read_actions(&json!({"actions": every_action()})).unwrap();
    let again = json!({"actions": serde_json::to_value(&read).unwrap()});
    assert_eq!(read_actions(&again), Ok(read.clone()));
    assert_eq!(read[0], ComputerAction::Screenshot {});
}
