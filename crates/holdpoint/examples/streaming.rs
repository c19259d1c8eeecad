//! Watch a run while it happens, through a pause and out of it again.
//!
//! ```text
//! cargo run -p holdpoint --example streaming
//! ```
//!
//! Two kinds of things are told. Words come as the model speaks; they are not stored. Events come after they are
//! durable, each with a number; the numbers of a session have neither gap nor repeat. So a viewer that lost its
//! connection asks for what comes after the last number that it saw. A model call needs nothing durable before it, so
//! its first words may come before the event that the run has started.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use holdpoint::text::visible;
use holdpoint::{Agent, Delta, Reply, RunStream, Runner, ScriptedModel, StreamEvent};
use serde_json::json;

/// Publishes a post.
#[holdpoint::tool(needs_approval)]
async fn publish(title: String) -> String {
    format!("published {title:?}")
}

#[tokio::main]
async fn main() -> Result<()> {
    let agent = Agent::builder("Editor").instructions("Write posts.").tool(publish()).build()?;
    let model = ScriptedModel::new([
        Reply::text("I wrote a post about otters and would like to publish it.")
            .and_call("publish", json!({"title": "Otters"})),
        Reply::text("The post about otters is out."),
    ]);
    let runner = Runner::in_memory(model);

    // The run is under way from here on, whether anybody reads the stream or not.
    let mut stream = runner.stream(&agent, "Write about otters.");
    show(&mut stream).await?;

    // The stream has come to the run's stop. Now it can be asked how far the run came, and what is asked.
    let outcome = stream.completed().await?;
    let pause = stream.pauses().first().context("publishing needs approval")?;
    println!("-- paused: {} pause(s); ana approves", outcome.pauses().len());
    runner.approve(pause).by("ana").await?;

    // The resumed stream tells only what is new, and its numbers go on where the others ended.
    let mut stream = runner.resume(&agent, outcome.run_id()).stream().await?;
    show(&mut stream).await?;
    println!("-- done: {}", visible(&stream.completed().await?.text().context("the run is done")?));
    Ok(())
}

async fn show(stream: &mut RunStream) -> Result<()> {
    let mut is_speaking = false;
    while let Some(event) = stream.next().await {
        match event {
            StreamEvent::Delta { delta: Delta::Text(words), .. } => {
                print!("{}{}", if is_speaking { "" } else { "model: " }, visible(&words));
                is_speaking = true;
            }
            // Thoughts, and arguments while they are being written. Arguments count only once the reply is whole.
            StreamEvent::Delta { .. } => {}
            StreamEvent::Event { seq, event } => {
                println!("{}event {seq}: {}", if is_speaking { "\n" } else { "" }, event.name());
                is_speaking = false;
            }
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}
