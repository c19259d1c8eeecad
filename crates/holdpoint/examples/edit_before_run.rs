//! Change a call's arguments before it runs.
//!
//! ```text
//! cargo run -p holdpoint --example edit_before_run
//! ```
//!
//! A support agent wants to refund 2500.00 where 25.00 was meant. The person who looks corrects the number instead of
//! saying no. Edited arguments must fit the tool's schema, and exactly they are what runs.

use anyhow::{Context as _, Result};
use holdpoint::text::visible;
use holdpoint::{Agent, Item, Reply, Runner, ScriptedModel};
use serde_json::json;

/// Pays money back to a customer.
#[holdpoint::tool(needs_approval)]
async fn refund(
    /// The order that is refunded.
    order: String,
    /// How much, in cents.
    #[schemars(range(min = 1, max = 1_000_000))]
    amount_cents: u32,
) -> String {
    println!("tool:     refunding {amount_cents} cents of order {order}");
    format!("refunded {amount_cents} cents of order {order}")
}

#[tokio::main]
async fn main() -> Result<()> {
    let agent = Agent::builder("Support").instructions("Help customers.").tool(refund()).build()?;
    let model = ScriptedModel::by(|request| match request.items.last().map(|item| &**item) {
        Some(Item::ToolResult { output, .. }) => Reply::text(format!("Done: {}.", output.to_text())),
        _ => Reply::call("refund", json!({"order": "A-17", "amount_cents": 250_000})),
    });
    let runner = Runner::in_memory(model);

    // The run stops before the tool. The pause carries the arguments, byte for byte as they would run.
    let outcome = runner.run(&agent, "Order A-17 arrived broken, I want my 25.00 back.").await?;
    let pause = outcome.pauses().first().context("a refund needs approval")?;
    let held = pause.call.as_ref().context("a held call")?;
    println!("held:     {} {}", held.tool, visible(held.arguments.as_str()));

    // An edit that breaks the schema is refused. Nothing ran, nothing changed, the pause is still open.
    let wrong = runner.approve(pause).edited(&json!({"order": "A-17", "amount_cents": "twenty-five"})).await;
    let refusal = wrong.err().context("a text is not a number")?;
    println!("refused:  {} ({refusal})", refusal.code());

    // This one fits. It is recorded with its author: whoever reads the run later sees what was asked and what ran.
    runner.approve(pause).edited(&json!({"order": "A-17", "amount_cents": 2_500})).by("ana").await?;

    // A decision runs nothing by itself. The run goes on when somebody resumes it, in this process or in another.
    let outcome = runner.resume(&agent, outcome.run_id()).await?;
    println!("model:    {}", visible(&outcome.text().context("the run is done")?));
    Ok(())
}
