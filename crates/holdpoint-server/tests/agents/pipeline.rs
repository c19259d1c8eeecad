//! Sequences and groups of agents, which no model leads.

use holdpoint_core::decision::Decision;

use crate::bench::{Bench, agent, calls, echo, output, pause};

fn pipeline(kind: &str, steps: &str) -> String {
    format!(
        "apiVersion: superagent/v1\nkind: Agent\nmetadata: {{ name: line }}\nspec:\n  type: {kind}\n  \
         sub_agents: [{steps}]\n"
    )
}

fn bench(kind: &str) -> Bench {
    let second = agent("second", &format!("  tools:\n{}", echo("act", "acted", "")));
    Bench::new(&[
        ("line.yaml", &pipeline(kind, "{ ref: first }, { ref: second }, { ref: third }")),
        ("first.yaml", &agent("first", "")),
        ("first.json", r#"{"replies": ["first heard {said}"]}"#),
        ("second.yaml", &second),
        (
            "second.json",
            r#"{"replies": [{"calls": [{"tool": "act", "arguments": {"heard": "{said}"}}]}, "second: {result}"]}"#,
        ),
        ("third.yaml", &agent("third", "")),
        ("third.json", r#"{"replies": ["third heard {said}"]}"#),
    ])
}

#[tokio::test]
async fn in_a_sequence_each_agent_hears_what_the_one_before_it_said() {
    let bench = bench("sequential");
    let catalogue = bench.open().unwrap();
    let run = bench.start(&catalogue, "line", "hello").await;
    let held = pause(&run);
    assert_eq!(held.agent.as_str(), "line/second");
    assert_eq!(held.arguments().unwrap().as_str(), r#"{"heard":"first heard hello"}"#);
    let run = bench.decide(&catalogue, &held, Decision::Approve).await;
    assert_eq!(output(&run), r#"third heard second: acted {"heard":"first heard hello"}"#);
    // A second run in the same session begins anew, whatever was said before.
    let run = bench.start(&catalogue, "line", "again").await;
    assert_eq!(pause(&run).arguments().unwrap().as_str(), r#"{"heard":"first heard again"}"#);
}

#[tokio::test]
async fn a_sequence_stops_at_an_agent_that_gives_no_result() {
    let bench = Bench::new(&[
        ("line.yaml", &pipeline("sequential", "{ ref: first }, { ref: second }")),
        ("first.yaml", &agent("first", "  max_turns: 1\n  tools:\n    - { ref: builtin/ask_user_question }")),
        ("first.json", &calls("ask_user_question", r#"{"questions": [{"question": "Which?"}]}"#)),
        ("second.yaml", &agent("second", "")),
        ("second.json", r#"{"replies": ["second heard {said}"]}"#),
    ]);
    let catalogue = bench.open().unwrap();
    let run = bench.start(&catalogue, "line", "hello").await;
    let run = bench.decide(&catalogue, &pause(&run), Decision::deny("no")).await;
    let said = output(&run);
    assert!(said.starts_with("first gave no result: "), "{said}");
}

#[tokio::test]
async fn side_by_side_all_hear_the_question_and_one_that_waits_keeps_the_others_results() {
    let bench = bench("parallel");
    let catalogue = bench.open().unwrap();
    let run = bench.start(&catalogue, "line", "hello").await;
    let held = pause(&run);
    assert_eq!(held.arguments().unwrap().as_str(), r#"{"heard":"hello"}"#);
    // Another process goes on: what the others said is in the journal.
    let run = bench.decide(&bench.open().unwrap(), &held, Decision::deny("not now")).await;
    assert_eq!(
        output(&run),
        "## first\n\nfirst heard hello\n\n## second\n\nsecond: not now\n\n## third\n\nthird heard hello"
    );
}

#[tokio::test]
async fn a_supervisor_has_its_sub_agents_as_tools_described_by_their_role() {
    let supervisor =
        agent("lead", "  sub_agents: [{ ref: first, role: Greets people }]").replace("chat_model_agent", "supervisor");
    let bench = Bench::new(&[
        ("lead.yaml", &supervisor),
        ("lead.json", &calls("first", r#"{"input": "hi"}"#)),
        ("first.yaml", &agent("first", "")),
        ("first.json", r#"{"replies": ["hello, {said}"]}"#),
    ]);
    let catalogue = bench.open().unwrap();
    let lead = catalogue.find("lead").unwrap_or_else(|| panic!("{:#?}", catalogue.diagnostics()));
    assert_eq!(lead.tools[0].description, "Greets people");
    assert_eq!(output(&bench.start(&catalogue, "lead", "go").await), "hello, hi");
}
