//! Files that are right: everything in them is understood, and stored without a secret.

use std::path::Path;
use std::time::Duration;

use holdpoint_config::*;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::policy::OnTimeout;
use holdpoint_core::tool::Effect;
use secrecy::ExposeSecret;

fn environment() -> FixedEnvironment {
    FixedEnvironment::empty().with("BROKER_TOKEN", "tok-s3cret").with("RESEARCH_KEY", "key-s3cret")
}

fn folder() -> Folder {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/good/agents");
    let folder = FolderReader::new(agents).mcp_servers(["files"]).read(&environment());
    assert_eq!(folder.diagnostics, []);
    folder
}

fn agent(folder: &Folder, name: &str) -> AgentFile {
    folder.agent(name).expect("its file is right").file.clone()
}

#[test]
fn a_folder_gives_its_agents_in_the_order_of_their_files() {
    let folder = folder();
    let names: Vec<&str> = folder.agents.iter().map(|agent| agent.name().as_str()).collect();
    assert_eq!(names, ["pipeline", "researcher", "team", "trader"]);
    assert!(!folder.stops_the_start() && !folder.has_errors());
    let rules: Vec<String> = folder.policies.unwrap().rules().iter().map(|rule| rule.name.clone()).collect();
    assert_eq!(rules, ["large orders need two", "no shell for strangers"]);
}

#[test]
fn the_documented_agent_is_understood_whole() {
    let trader = agent(&folder(), "trader");
    assert_eq!(trader.metadata.description.as_deref(), Some("Places stock orders"));
    assert_eq!(trader.metadata.labels["team"], "desk");
    assert_eq!(trader.spec.kind, AgentKind::Chat);
    assert_eq!(trader.spec.locale.as_deref(), Some("vi"));
    assert_eq!(trader.turns_max(), Some(20));
    assert_eq!(trader.spec.handoffs, ["researcher".parse::<AgentName>().unwrap()]);
    let model = trader.spec.model.as_ref().unwrap();
    assert_eq!(model.primary.resolve(&environment()).unwrap().to_string(), "openai/gpt-4o");
    assert_eq!(model.fallback.as_ref().unwrap().as_written(), "anthropic/claude-sonnet-4-5");
    assert_eq!(model.temperature, Some(0.2));

    let names: Vec<Option<&str>> = trader.spec.tools.iter().map(ToolSpec::name).collect();
    let expected = ["ask_user_question", "shell", "write_file", "researcher", "execute_trade", "deploy"];
    assert_eq!(names, expected.map(Some));
    let ToolSource::Builtin(BuiltinTool::Shell(shell)) = &trader.spec.tools[1].source else { panic!("a shell") };
    assert_eq!(shell.timeout, Some(Duration::from_secs(30)));
    let ToolSource::Mcp(file) = &trader.spec.tools[2].source else { panic!("an MCP tool") };
    assert_eq!((file.server.as_str(), file.tool.as_deref()), ("files", Some("write_file")));
    let ToolSource::Command(deploy) = &trader.spec.tools[5].source else { panic!("a command") };
    assert_eq!(deploy.argv[0].as_written(), "./deploy.sh");

    let interrupt = trader.confirmation().unwrap();
    assert_eq!(interrupt.checkpoint_backend, Some(CheckpointBackend::Redis));
    assert_eq!(interrupt.timeout, Duration::from_secs(300));
    assert_eq!(interrupt.phrases.matches("Xin xác nhận"), Some("xin xác nhận"));
    assert_eq!(interrupt.fields[0].label, "Xác nhận");
}

#[test]
fn the_documented_http_tool_keeps_its_secret_as_a_name() {
    let trader = agent(&folder(), "trader");
    let tool = &trader.spec.tools[4];
    let ToolSource::Http(http) = &tool.source else { panic!("an http tool") };
    assert_eq!((http.method, http.url.as_written()), (HttpMethod::Post, "https://broker.example/orders"));
    let header = &http.headers["authorization"];
    assert_eq!(header.as_written(), "Bearer ${BROKER_TOKEN}");
    assert_eq!(header.resolve(&environment()).unwrap().expose_secret(), "Bearer tok-s3cret");
    assert_eq!(tool.effects, Effect::AtMostOnce);
    assert_eq!(tool.display.message.as_deref(), Some("Mua {symbol}"));
    let Some(ApprovalSpec::Held(held)) = &tool.approval else { panic!("a held approval") };
    assert_eq!(held.deadline, Deadline::After(Duration::from_secs(300)));
    assert_eq!((held.on_timeout, held.fill), (OnTimeout::Deny, Some(Fill::First)));
    assert_eq!(tool.parameters().unwrap()["properties"]["quantity"]["minimum"], 1);
}

#[test]
fn what_is_not_said_of_decisions_is_told_from_what_is() {
    let read = |spec: &str| {
        let text = format!(
            "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{ name: a }}\n\
             spec:\n  type: chat_model_agent\n  model: {{ primary: openai/gpt-4o }}\n{spec}"
        );
        let file = read_agent(Source::new("a.yaml", text), &FixedEnvironment::empty()).agent.unwrap().file;
        // As a stored definition it says the same.
        assert_eq!(serde_json::from_value::<AgentFile>(serde_json::to_value(&file).unwrap()).unwrap(), file);
        file.spec
    };
    let of_tool = |lines: &str| {
        let mut spec = read(&format!("  tools:\n    - ref: builtin/shell\n{lines}"));
        let tool = spec.tools.remove(0);
        let ApprovalSpec::Held(held) = tool.own_rule() else { panic!("a held approval") };
        (held.fill, held.on_note, tool.explicit_decision)
    };
    assert_eq!(of_tool(""), (None, OnNote::Append, false));
    assert_eq!(of_tool("      approval: required\n"), (None, OnNote::Append, false));
    assert_eq!(
        of_tool("      approval: { fill: first, on_note: append }\n"),
        (Some(Fill::First), OnNote::Append, false)
    );
    assert_eq!(
        of_tool("      approval: { fill: none, on_note: revise }\n      explicit_decision: true\n"),
        (Some(Fill::None), OnNote::Revise, true)
    );
    assert_eq!(read("").on_message_while_held, WhileHeld::Refuse);
    for (word, meant) in
        [("refuse", WhileHeld::Refuse), ("queue", WhileHeld::Queue), ("supersede", WhileHeld::Supersede)]
    {
        assert_eq!(read(&format!("  on_message_while_held: {word}\n")).on_message_while_held, meant);
    }
}

#[test]
fn files_of_superagent_load() {
    let folder = folder();
    let researcher = agent(&folder, "researcher");
    assert_eq!(researcher.spec.system_prompt, "You look things up.\nLiteral: ${HOME}\n");
    let model = researcher.spec.model.unwrap();
    assert_eq!(model.api_key.unwrap().as_written(), "${RESEARCH_KEY}");
    assert_eq!(model.base_url.unwrap().as_written(), "http://localhost:11434/v1");

    let team = agent(&folder, "team");
    let AgentKind::Supervisor { sub_agents } = &team.spec.kind else { panic!("a supervisor") };
    assert_eq!(sub_agents[0].role.as_deref(), Some("Research and analysis"));
    assert_eq!(team.turns_max(), Some(5));

    let pipeline = agent(&folder, "pipeline");
    assert!(!pipeline.spec.kind.calls_a_model() && pipeline.spec.model.is_none());
    assert_eq!(pipeline.needs().len(), 2);
}

#[test]
fn an_agent_is_stored_with_all_that_it_needs_and_without_secrets() {
    let folder = folder();
    let bundle = folder.bundle(&"team".parse().unwrap()).unwrap();
    let names: Vec<&str> = bundle.agents().map(|agent| agent.metadata.name.as_str()).collect();
    assert_eq!(names, ["researcher", "team", "trader"]);
    let stored = bundle.to_json();
    let text = stored.to_string();
    assert!(!text.contains("s3cret") && text.contains("Bearer ${BROKER_TOKEN}"));
    assert!(!format!("{bundle:?}").contains("s3cret"));
    assert_eq!(AgentBundle::from_json(&stored).unwrap(), bundle);
    assert_eq!(bundle.root().unwrap().metadata.name.as_str(), "team");
}

#[test]
fn a_stored_agent_of_a_newer_version_or_with_a_part_missing_is_refused() {
    let mut stored = folder().bundle(&"team".parse().unwrap()).unwrap().to_json();
    stored["version"] = 2.into();
    assert_eq!(
        AgentBundle::from_json(&stored).unwrap_err().to_string(),
        "stored agent has version 2, at most 1 is read"
    );
    stored["version"] = 1.into();
    stored["agents"]["team"]["spec"]["surprise"] = true.into();
    assert!(AgentBundle::from_json(&stored).is_err());
    stored["agents"]["team"]["spec"].as_object_mut().unwrap().remove("surprise");
    assert!(AgentBundle::from_json(&stored).is_ok());
    stored["agents"].as_object_mut().unwrap().remove("trader");
    assert_eq!(AgentBundle::from_json(&stored).unwrap_err().to_string(), "stored agent lacks agent trader");
}

#[test]
fn every_value_knows_its_place() {
    let folder = folder();
    let places = &folder.agent("trader").unwrap().places;
    for (path, expected) in [
        ("metadata.name", "3:19"),
        ("spec.interrupt.checkpoint_backend", "49:25"),
        ("spec.tools[4].http.url", "32:14"),
        ("spec.tools[4].http.headers.Authorization", "33:35"),
        ("spec.tools[5].command.argv[0]", "45:25"),
    ] {
        assert_eq!(places.find(path).unwrap().start.to_string(), expected, "{path}");
    }
    assert_eq!(places.find("spec.tools[99]"), None);
    let problem =
        places.error("spec.interrupt.checkpoint_backend", Code::Conflict, "the server is not connected to redis");
    assert!(
        problem.to_string().ends_with("trader.yaml:49:25: error: the server is not connected to redis"),
        "{problem}"
    );
}

#[test]
fn the_policies_of_the_folder_and_the_tools_own_rules_decide_together() {
    let folder = folder();
    let trader = agent(&folder, "trader");
    let policies = folder.policies.unwrap();
    let verdict = |tool: usize, args: &str, actor: &str| {
        let tool = &trader.spec.tools[tool];
        let args = CanonicalJson::parse(args).unwrap();
        let facts = Facts { agent: "trader", tool: tool.name().unwrap(), args: &args, session: "s", actor };
        tool.verdict(&policies, &facts)
    };
    let PolicyOutcome::Allow { rules } = verdict(4, r#"{"quantity": 1, "price": 2.5}"#, "ana") else {
        panic!("allowed")
    };
    assert_eq!(rules, ["tool:execute_trade"]);
    let PolicyOutcome::Hold(hold) = verdict(4, r#"{"quantity": 100000, "price": 20}"#, "ana") else { panic!("held") };
    assert_eq!((hold.rule().as_str(), hold.quorum), ("tool:execute_trade", 1));
    let PolicyOutcome::Hold(hold) = verdict(4, r#"{"quantity": 100000, "price": 99.5}"#, "ana") else { panic!("held") };
    assert_eq!(hold.rules, ["tool:execute_trade", "large orders need two"]);
    assert_eq!((hold.quorum, hold.deadline), (2, Deadline::After(Duration::from_secs(300))));
    assert_eq!(hold.approvers, ["risk", "desk-lead"]);
    assert!(
        matches!(verdict(1, r#"{"commands": ["ls"]}"#, "ana"), PolicyOutcome::Hold(hold) if hold.rules == ["default"])
    );
    assert!(matches!(verdict(1, r#"{"commands": ["ls"]}"#, "eve"), PolicyOutcome::Deny { .. }));
    assert!(matches!(verdict(0, "{}", "eve"), PolicyOutcome::Allow { .. }));
}
