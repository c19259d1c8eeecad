//! Approve a tool call in the terminal, and keep the run in a file while you think.
//!
//! ```text
//! cargo run -p holdpoint --example approve_in_terminal                      # everything, in one process
//! cargo run -p holdpoint --example approve_in_terminal -- run.json start    # runs until it pauses, then exits
//! cargo run -p holdpoint --example approve_in_terminal -- run.json finish   # another process: asks you and goes on
//! ```
//!
//! Somebody asks for the weather in Oakland and in San Francisco. "Basic test agent" hands the conversation over to
//! "Data agent", which calls its tool for both cities in one turn. Oakland is looked up at once. San Francisco needs a
//! person, so the run pauses. A paused run is data: here it goes to a file as JSON and is read back from there.

use std::io::{BufRead as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use holdpoint::text::visible;
use holdpoint::{Agent, Item, PauseView, Reply, RunOutcome, RunState, Runner, ScriptedModel, ToolContext};
use serde_json::{Value, json};

/// Get the weather for a given city.
#[holdpoint::tool(effect = read_only, needs_approval_when = is_san_francisco)]
async fn get_weather(location: String) -> String {
    format!("The weather in {location} is sunny.")
}

/// Asked once for each call, when the model makes it. The answer is written down with the run.
async fn is_san_francisco(_: ToolContext, arguments: Value) -> bool {
    arguments["location"] == "San Francisco"
}

/// Both processes build the same agents. A state names them by their place, so it finds them again.
fn agent() -> Result<Agent> {
    let data = Agent::builder("Data agent")
        .instructions("You are a data agent")
        .handoff_description("It knows everything about the weather.")
        .tool(get_weather())
        .build()?;
    Ok(Agent::builder("Basic test agent").instructions("You are a basic agent").handoff(&data).build()?)
}

/// Stands in for a real model, so that the example runs offline. It says at the end what the tools told it.
fn model() -> ScriptedModel {
    let hand_over = Reply::call("transfer_to_data_agent", json!({}));
    ScriptedModel::new([hand_over]).for_agent_by("Data agent", |request| {
        let told = request.items.iter().filter_map(|item| match &**item {
            Item::ToolResult { tool, output, .. } if tool.as_str() == "get_weather" => Some(output.to_text()),
            _ => None,
        });
        match told.collect::<Vec<_>>() {
            nothing if nothing.is_empty() => Reply::calls([
                ("get_weather", json!({"location": "Oakland"})),
                ("get_weather", json!({"location": "San Francisco"})),
            ]),
            answers => Reply::text(answers.join(" ")),
        }
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let folder = tempfile::tempdir()?;
            let file = folder.path().join("run.json");
            start(&file).await?;
            finish(&file).await
        }
        [file] => {
            start(file.as_ref()).await?;
            finish(file.as_ref()).await
        }
        [file, "start"] => start(file.as_ref()).await,
        [file, "finish"] => finish(file.as_ref()).await,
        _ => bail!("usage: approve_in_terminal [FILE [start|finish]]"),
    }
}

/// Runs until somebody must look, and writes the run down.
async fn start(file: &Path) -> Result<()> {
    let (agent, runner) = (agent()?, Runner::in_memory(model()));
    let outcome = runner.run(&agent, "What is the weather in Oakland and San Francisco?").await?;
    if outcome.is_paused() {
        keep(&runner, &agent, &outcome, file).await?;
        println!("The run is paused: {} call(s) wait for a person.", outcome.pauses().len());
    }
    Ok(())
}

/// Reads the run back, asks, and goes on; it may pause again. Nothing in memory is left from `start`.
async fn finish(file: &Path) -> Result<()> {
    let (agent, runner) = (agent()?, Runner::in_memory(model()));
    loop {
        let json = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let mut state = RunState::from_json(&agent, &json)?;
        for pause in state.pauses() {
            // Deciding changes the state in our hands; nothing runs before it is resumed.
            match confirm(&agent, &pause)? {
                true => state.approve(&pause)?,
                false => state.deny(&pause)?,
            };
        }
        let outcome = runner.resume_state(&agent, state).await?;
        // Written down again at once, also when it is over: an old copy would ask, and run, a second time.
        keep(&runner, &agent, &outcome, file).await?;
        match &outcome {
            RunOutcome::Paused { .. } => {}
            RunOutcome::Done(done) => {
                println!("{}", visible(&done.output.to_text()));
                return Ok(());
            }
            other => bail!("the run ended without an output: {other:?}"),
        }
    }
}

/// The file holds the whole conversation: keep it where only you can read it.
async fn keep(runner: &Runner, agent: &Agent, outcome: &RunOutcome, file: &Path) -> Result<()> {
    let state = runner.state(agent, outcome.run_id()).await?;
    std::fs::write(file, state.to_json()).with_context(|| format!("writing {}", file.display()))
}

/// Arguments are a model's text. `visible` shows characters that would hide, so that you approve what you read.
fn confirm(agent: &Agent, pause: &PauseView) -> Result<bool> {
    let call = pause.call.as_ref().context("only tool calls are held here")?;
    let graph = agent.graph()?;
    let who = graph.name_of(&pause.agent).context("the agent that asks is in the graph")?;
    let arguments = visible(call.arguments.as_str());
    print!("Agent {who} would like to use the tool {} with {arguments}. Do you approve? (y/n): ", call.tool);
    std::io::stdout().flush()?;
    let mut answer = String::new();
    if std::io::stdin().lock().read_line(&mut answer)? == 0 {
        bail!("nobody answered; the run is still paused");
    }
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
