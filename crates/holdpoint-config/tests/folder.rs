//! A folder with many mistakes: all are named, each with file, line and column, and what is right still loads.

use std::fs;
use std::path::{Path, PathBuf};

use holdpoint_config::*;

fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Compares with a file of expected text, and shows the text in full where it differs. With `UPDATE_GOLDEN` set, the
/// file is written instead.
fn check_golden(name: &str, found: &str) {
    let path = fixtures(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, found).expect("the expected text can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name} differs, found:\n{found}");
}

/// The bad folder, with file names as they are written below it.
fn bad_folder() -> Folder {
    let root = fixtures("bad");
    let mut folder = FolderReader::new(root.join("agents")).mcp_servers(["files"]).read(&FixedEnvironment::empty());
    let prefix = format!("{}/", root.display());
    for problem in &mut folder.diagnostics {
        problem.file = problem.file.replace(&prefix, "");
        problem.message = problem.message.replace(&prefix, "");
        problem.hint = problem.hint.as_ref().map(|hint| hint.replace(&prefix, ""));
    }
    folder
}

#[test]
fn every_mistake_of_a_folder_is_named_with_file_line_and_column() {
    let folder = bad_folder();
    let lines: String = folder.diagnostics.iter().map(|problem| format!("{problem}\n")).collect();
    check_golden("bad/expected.txt", &lines);
    let codes: std::collections::BTreeSet<Code> = folder.diagnostics.iter().map(|problem| problem.code).collect();
    assert!(codes.len() >= 15, "{} different mistakes", codes.len());
}

#[test]
fn mistakes_are_shown_with_the_lines_they_are_in() {
    check_golden("bad/rendered.txt", &render_all(&bad_folder().diagnostics, Style::Plain));
}

#[test]
fn a_bad_file_does_not_stop_the_others() {
    let folder = bad_folder();
    let names: Vec<&str> = folder.agents.iter().map(|agent| agent.name().as_str()).collect();
    assert_eq!(names, ["fine"]);
    assert!(folder.has_errors());
}

#[test]
fn a_policy_that_cannot_be_read_stops_the_start() {
    let folder = bad_folder();
    assert!(folder.policies.is_none() && folder.stops_the_start());

    let check = |agents: &str, policies: &str| {
        let agents = vec![Source::new("a.yaml", agents)];
        let policies = vec![Source::new("p.yaml", policies)];
        FolderReader::new("x").check(agents, policies, &FixedEnvironment::empty())
    };
    let agent = |approval: &str| {
        format!(
            "{{ apiVersion: holdpoint/v1, kind: Agent, metadata: {{ name: a }}, spec: {{ type: chat_model_agent, \
             model: {{ primary: x }}, tools: [{{ ref: builtin/shell, approval: {approval} }}] }} }}"
        )
    };
    assert!(!check(&agent("required"), "rules: []").stops_the_start());
    assert!(check(&agent("required"), "rules: [{}]").stops_the_start());
    assert!(check(&agent("{ when: 'args.x >' }"), "rules: []").stops_the_start());
    // A bad agent file as such does not, unless the server is strict.
    assert!(!check("kind: Agent", "rules: []").stops_the_start());
}

#[test]
fn files_are_read_in_the_order_of_their_names_and_others_are_passed_over() {
    let root = tempfile::tempdir().expect("a folder");
    let agents = root.path().join("agents");
    fs::create_dir_all(agents.join("sub.yaml")).expect("a folder");
    let text = |name: &str| {
        format!(
            "{{ apiVersion: holdpoint/v1, kind: Agent, metadata: {{ name: {name} }}, spec: {{ type: chat_model_agent, model: {{ primary: x }} }} }}"
        )
    };
    for (file, name) in [("b.yaml", "beta"), ("a.yml", "alpha"), ("c.json", "c"), (".d.yaml", "d"), ("e.yaml.bak", "e")]
    {
        fs::write(agents.join(file), text(name)).expect("a file");
    }
    let folder = read_folder(&agents, &FixedEnvironment::empty());
    assert_eq!(folder.diagnostics, []);
    assert_eq!(folder.agents.iter().map(|agent| agent.name().as_str()).collect::<Vec<_>>(), ["alpha", "beta"]);
    assert_eq!(folder.policies, Some(PolicySet::default()));
}

#[test]
fn policies_are_found_inside_of_the_agents_folder_and_beside_it() {
    let root = tempfile::tempdir().expect("a folder");
    let rule = |name: &str| format!("rules: [{{ name: {name}, verdict: hold }}]");
    for (folder, name) in [("policies", "beside"), ("agents/policies", "inside"), ("other", "named")] {
        fs::create_dir_all(root.path().join(folder)).expect("a folder");
        fs::write(root.path().join(folder).join("p.yaml"), rule(name)).expect("a file");
    }
    let names = |folder: Folder| -> Vec<String> {
        assert_eq!(folder.diagnostics, []);
        folder.policies.expect("all are right").rules().iter().map(|rule| rule.name.clone()).collect()
    };
    let agents = root.path().join("agents");
    assert_eq!(names(read_folder(&agents, &FixedEnvironment::empty())), ["inside", "beside"]);
    let named = FolderReader::new(&agents).policies(root.path().join("other")).read(&FixedEnvironment::empty());
    assert_eq!(names(named), ["named"]);
}

#[test]
fn a_folder_or_file_that_cannot_be_read_is_told() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = read_folder(&root.path().join("none"), &FixedEnvironment::empty());
    assert_eq!(folder.diagnostics.len(), 1);
    assert_eq!(folder.diagnostics[0].code, Code::FileUnreadable);
    assert!(folder.diagnostics[0].to_string().ends_with("none: error: the folder cannot be read: it does not exist"));

    fs::write(root.path().join("big.yaml"), vec![b'#'; 1024 * 1024 + 1]).expect("a file");
    let folder = read_folder(root.path(), &FixedEnvironment::empty());
    assert_eq!(folder.diagnostics[0].code, Code::FileTooLarge);

    let folder = FolderReader::new(root.path()).policies(root.path().join("none")).read(&FixedEnvironment::empty());
    assert!(folder.policies.is_none() && folder.stops_the_start());
}

#[test]
fn rules_that_match_nothing_are_warned_of() {
    let agent = "{ apiVersion: holdpoint/v1, kind: Agent, metadata: { name: trader }, spec: { type: chat_model_agent, model: { primary: x }, tools: [{ ref: builtin/shell }] } }";
    let rules = "rules:\n- { name: a, match: { agent: tradr }, verdict: hold }\n- { name: b, match: { tool: 'shel' }, verdict: deny }\n- { name: c, match: { agent: 't*', tool: 's*' }, verdict: deny }\n";
    let folder = FolderReader::new("x").check(
        vec![Source::new("a.yaml", agent)],
        vec![Source::new("p.yaml", rules)],
        &FixedEnvironment::empty(),
    );
    let said: Vec<String> = folder.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "p.yaml:2:11: warning: rule `a` matches no agent of this folder (hint: look at `match.agent`)",
            "p.yaml:3:11: warning: rule `b` matches no tool of any agent (hint: look at `match.tool`: models call tools by these names)",
        ]
    );
    assert!(folder.policies.is_some());
}
