//! Approve calls of an agent that another agent uses as a tool.
//!
//! ```text
//! cargo run -p holdpoint --example nested_agents
//! ```
//!
//! "Travel desk" asks "Booker" through a tool. There are two gates: the desk needs approval to ask the booker at all,
//! and the booker needs approval for each flight. All pauses are in one list, the outer run's, and one `resume` of the
//! outer run goes on with everything. Each pause says where its call stands.

use anyhow::{Result, bail};
use holdpoint::text::visible;
use holdpoint::{Agent, Reply, RunOutcome, Runner, ScriptedModel};
use serde_json::json;

/// Books a flight.
#[holdpoint::tool(needs_approval)]
async fn book_flight(to: String) -> String {
    println!("  booking a flight to {to}");
    format!("booked to {to}")
}

#[tokio::main]
async fn main() -> Result<()> {
    let booker = Agent::builder("Booker").instructions("Book what you are asked for.").tool(book_flight()).build()?;
    let ask_booker = booker.as_tool("ask_booker", "Asks the booker to book something.").needs_approval(true).build()?;
    let desk = Agent::builder("Travel desk").instructions("Plan trips.").tool(ask_booker).build()?;

    // Each agent has a list of replies of its own; an inner agent is known by the tool that leads to it.
    let model = ScriptedModel::new([
        Reply::call("ask_booker", json!({"input": "Flights to Lisbon and to Porto, please."})),
        Reply::text("Lisbon is booked, Porto is not."),
    ])
    .for_agent(
        "ask_booker",
        [
            Reply::calls([("book_flight", json!({"to": "Lisbon"})), ("book_flight", json!({"to": "Porto"}))]),
            Reply::text("Only Lisbon was approved."),
        ],
    );
    let runner = Runner::in_memory(model);

    let mut outcome = runner.run(&desk, "I want to see Portugal.").await?;
    // The first stop is the outer gate, the second has two pauses of the inner agent.
    while let RunOutcome::Paused { run_id, pauses } = &outcome {
        println!("the run is paused:");
        for pause in pauses {
            let Some(call) = &pause.call else { bail!("only tool calls are held here") };
            let arguments = visible(call.arguments.as_str());
            println!("  {} asks at {} for {} {arguments}", pause.agent, call.path, call.tool);
            match arguments.contains(r#""to":"Porto""#) {
                true => runner.deny(pause).message("One city is enough.").by("ana").await?,
                false => runner.approve(pause).by("ana").await?,
            };
        }
        // Always the outermost agent: the inner run is part of the outer one, and is found in it.
        outcome = runner.resume(&desk, *run_id).await?;
    }
    println!("{}", visible(&outcome.text().unwrap_or_default()));
    Ok(())
}
