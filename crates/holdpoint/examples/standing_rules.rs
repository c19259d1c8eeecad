//! Decide once for many calls: "always, up to this amount, in this conversation".
//!
//! ```text
//! cargo run -p holdpoint --example standing_rules
//! ```
//!
//! Every transfer needs approval. The first one is approved together with a rule: transfers of at most 100 need no
//! person for the rest of the session. The rule then settles a smaller one, leaves a larger one to a person, and is
//! taken back at the end.

use anyhow::{Context as _, Result};
use holdpoint::text::visible;
use holdpoint::{Agent, Always, Constraint, Reply, RunOutcome, Runner, ScriptedModel, SessionId};
use serde_json::json;

/// Sends money.
#[holdpoint::tool(needs_approval)]
async fn transfer(to: String, amount: u32) -> String {
    println!("  tool: {amount} to {to}");
    format!("sent {amount} to {to}")
}

const SESSION: &str = "household";

#[tokio::main]
async fn main() -> Result<()> {
    let agent = Agent::builder("Bank").instructions("Move money.").tool(transfer()).build()?;
    let asks = |to: &str, amount: u32| [Reply::call("transfer", json!({"to": to, "amount": amount})), "Done.".into()];
    let model = ScriptedModel::new([])
        .when_asked("rent", asks("landlord", 900))
        .when_asked("bread", asks("baker", 12))
        .when_asked("milk", asks("grocer", 8))
        .when_asked("flowers", asks("florist", 60));
    let runner = Runner::in_memory(model);

    // The first call asks. The answer is made to stand, within a bound on one of the arguments.
    let outcome = run(&runner, &agent, "Pay for the flowers").await?;
    let rule = Always::in_session().only(Constraint::at_most("/amount", 100));
    runner.approve(&outcome.pauses()[0]).always(rule).by("ana").await?;
    go_on(&runner, &agent, &outcome).await?;

    // Within the bound nobody is asked; the journal says which rule let it run, and the rule says who made it.
    run(&runner, &agent, "Pay for the bread").await?;

    // Outside the bound a person is. A plain answer is for this one call.
    let outcome = run(&runner, &agent, "Pay the rent").await?;
    runner.deny(&outcome.pauses()[0]).message("Rent goes by standing order.").by("ana").await?;
    go_on(&runner, &agent, &outcome).await?;

    // Rules are records: they can be listed, and taken back. What they decided before stands.
    let session = SessionId::new(SESSION)?;
    let stored = runner.session_rules(&session).await?.pop().context("one rule stands")?;
    println!("rule {} by {}, used {} time(s), is taken back", stored.rule.id, stored.rule.author, stored.uses);
    runner.revoke_rule(stored.rule.id).await?;
    let outcome = run(&runner, &agent, "Pay for the milk").await?;
    runner.cancel(outcome.run_id(), "ana".parse()?, "that is enough for today").await?;
    Ok(())
}

/// A run of the session: rules made in one run of it speak in the next.
async fn run(runner: &Runner, agent: &Agent, input: &str) -> Result<RunOutcome> {
    println!("{input}");
    let outcome = runner.run(agent, input).session(SESSION).await?;
    show(&outcome);
    Ok(outcome)
}

async fn go_on(runner: &Runner, agent: &Agent, paused: &RunOutcome) -> Result<()> {
    show(&runner.resume(agent, paused.run_id()).await?);
    Ok(())
}

fn show(outcome: &RunOutcome) {
    for call in outcome.pauses().iter().filter_map(|pause| pause.call.as_ref()) {
        println!("  asks: {} {}", call.tool, visible(call.arguments.as_str()));
    }
    if let Some(text) = outcome.text() {
        println!("  said: {}", visible(&text));
    }
}
