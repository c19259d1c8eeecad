//! The files on the page about tools are files that load.

use holdpoint_config::{FixedEnvironment, Source, read_agent};

const PAGE: &str = include_str!("../../../docs/guides/tools.md");

/// The blocks of YAML on the page, each of which is the `tools` of an agent.
fn blocks() -> Vec<&'static str> {
    PAGE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_example_on_the_page_about_tools_loads_without_a_problem() {
    let environment = FixedEnvironment::empty().with("BROKER_TOKEN", "x").with("DEPLOY_TOKEN", "x");
    let blocks = blocks();
    assert_eq!(blocks.len(), 5, "http, command, shell, apply_patch and http_request");
    for block in blocks {
        let tools: String = block.lines().map(|line| format!("  {line}\n")).collect();
        let file = format!(
            "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{ name: sample }}\nspec:\n  type: chat_model_agent\n  \
             model: {{ primary: openai/gpt-4o }}\n  system_prompt: You help.\n{tools}"
        );
        let read = read_agent(Source::new("sample.yaml", file.clone()), &environment);
        assert!(read.diagnostics.is_empty(), "{:#?}\n{file}", read.diagnostics);
        assert_eq!(read.agent.map(|agent| agent.file.spec.tools.len()), Some(1), "{file}");
    }
}
