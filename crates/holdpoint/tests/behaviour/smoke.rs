//! The shortest ways through the library.

use crate::common::*;
use holdpoint::*;
use serde_json::json;

#[tokio::test]
async fn a_held_call_runs_once_after_it_is_approved() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner =
        Runner::in_memory(ScriptedModel::new([Reply::call("delete", json!({"path": "a"})), Reply::text("Gone.")]));
    let outcome = runner.run(&agent, "delete a").await.unwrap();
    assert_eq!(outcome.pauses().len(), 1);
    assert_eq!(effects.count(), 0);
    runner.approve(&outcome.pauses()[0]).by("ana").await.unwrap();
    let done = runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "Gone.");
    assert_eq!(effects.count(), 1);
    let again = runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!(again, done);
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn the_seeds_own_script_works() {
    let weather = Tool::builder("get_weather")
        .description("Get the weather for a given city")
        .needs_approval_when(|_, arguments| async move { arguments["location"] == "San Francisco" })
        .schema(json!({"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}))
        .runner(Echo { effects: Effects::default() })
        .build()
        .unwrap();
    let data = Agent::builder("Data agent").instructions("You are a data agent").tool(weather).build().unwrap();
    let agent =
        Agent::builder("Basic test agent").instructions("You are a basic agent").handoff(&data).build().unwrap();
    let model = ScriptedModel::new([
        Reply::call("transfer_to_data_agent", json!({})),
        Reply::calls([
            ("get_weather", json!({"location": "Oakland"})),
            ("get_weather", json!({"location": "San Francisco"})),
        ]),
        Reply::text("Sunny in both."),
    ]);
    let runner = Runner::in_memory(model);
    let outcome = runner.run(&agent, "What is the weather in Oakland and San Francisco?").await.unwrap();
    assert_eq!(outcome.pauses().len(), 1, "{outcome:?}");
    assert_eq!(arguments(&outcome, 0), json!({"location": "San Francisco"}));
    let json = runner.state(&agent, outcome.run_id()).await.unwrap().to_json();
    let mut state = RunState::from_json(&agent, &json).unwrap();
    let pause = state.pauses().remove(0);
    state.approve(&pause).unwrap();
    let done = runner.resume_state(&agent, state).await.unwrap();
    assert_eq!(text_of(&done), "Sunny in both.");
}

#[tokio::test]
async fn a_stream_tells_events_and_words() {
    let agent = agent("Talker", []);
    let runner = Runner::in_memory(ScriptedModel::new([Reply::text("Hello there, friend.")]));
    let mut stream = runner.stream(&agent, "hi");
    let (mut words, mut names) = (String::new(), Vec::new());
    while let Some(event) = stream.next().await {
        match event {
            StreamEvent::Delta { delta: Delta::Text(text), .. } => words += &text,
            StreamEvent::Delta { .. } => {}
            StreamEvent::Event { event, .. } => names.push(event.name()),
        }
    }
    assert_eq!(words, "Hello there, friend.");
    assert_eq!(names, ["run.started", "model.replied", "run.finished"]);
    assert_eq!(text_of(&stream.completed().await.unwrap()), words);
}

#[tokio::test]
async fn nested_agents_pause_at_the_root() {
    let effects = Effects::default();
    let inner = agent("Inner", [gated(&effects)]);
    let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").build().unwrap()]);
    let model = ScriptedModel::new([Reply::call("ask_inner", json!({"input": "go"})), Reply::text("outer done")])
        .for_agent("ask_inner", [Reply::call("delete", json!({"x": 1})), Reply::text("inner done")]);
    let runner = Runner::in_memory(model);
    let outcome = runner.run(&outer, "go").await.unwrap();
    assert_eq!(outcome.pauses().len(), 1, "{outcome:?}");
    assert_eq!(outcome.pauses()[0].agent.to_string(), "Outer/ask_inner");
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let done = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "outer done");
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn the_models_own_words_can_ask_for_a_confirmation() {
    let agent = Agent::builder("Careful")
        .confirm_when(|text| text.contains("Shall I").then(|| "it asks".to_owned()))
        .build()
        .unwrap();
    let model = ScriptedModel::new([Reply::text("Shall I go on?"), Reply::text("Went on.")]);
    let runner = Runner::in_memory(model);
    let outcome = runner.run(&agent, "do it").await.unwrap();
    let pause = &outcome.pauses()[0];
    assert_eq!(pause.pause.kind, PauseKind::Confirmation);
    assert_eq!(pause.pause.reason.as_deref(), Some("it asks"));
    runner.approve(pause).await.unwrap();
    assert_eq!(text_of(&runner.resume(&agent, outcome.run_id()).await.unwrap()), "Went on.");
}

#[tokio::test]
async fn a_kept_state_records_who_decided() {
    let agent = agent("Ops", [gated(&Effects::default())]);
    let runner = Runner::in_memory(ScriptedModel::new([Reply::call("delete", json!({})), Reply::text("Gone.")]));
    let paused = runner.run(&agent, "delete").await.unwrap();
    let mut state = runner.state(&agent, paused.run_id()).await.unwrap();
    let decided = state.acting_as("ana").unwrap().approve(&paused.pauses()[0]).unwrap();
    assert!(matches!(&decided.state, PauseState::Decided(decided) if decided.by.as_str() == "ana"));
    assert_eq!(state.acting_as("\u{202e}").unwrap_err().code(), "invalid_definition");
}

#[tokio::test]
async fn a_streamed_run_in_a_used_session_tells_only_its_own_events() {
    let agent = agent("Talker", []);
    let runner = Runner::in_memory(ScriptedModel::by(|_| Reply::text("Again.")));
    for _ in 0..3 {
        runner.run(&agent, "hi").session("long").await.unwrap();
    }
    let mut stream = runner.run(&agent, "hi").session("long").stream();
    let mut numbers = Vec::new();
    while let Some(event) = stream.next().await {
        if let StreamEvent::Event { seq, .. } = event {
            numbers.push(seq);
        }
    }
    assert_eq!(numbers, [10, 11, 12]);
}
