//! `check` and `doctor`.

use serde_json::Value;

use crate::world::{Place, complained, printed};

/// Ten files or lines, each with one mistake of its own, and where it is.
fn ten_mistakes() -> (Place, Vec<(&'static str, u64, &'static str)>) {
    let place = Place::new();
    let head = |name: &str| format!("apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{ name: {name} }}\nspec:\n");
    let model = "  type: chat_model_agent\n  model: { primary: openai/gpt-4o }\n";
    let tool = "  tools:\n    - name: act\n      description: acts\n      parameters: { type: object, properties: { n: { type: integer } } }\n";
    let write = |file: &str, text: String| place.write(&format!("agents/{file}"), &text);
    write("01-syntax.yaml", "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: one\n".to_owned());
    write("02-field.yaml", format!("{}{model}  sistem_prompt: hello\n", head("two")));
    write(
        "03-type.yaml",
        format!("{}  type: chat_model_agnet\n  model: {{ primary: openai/gpt-4o }}\n", head("three")),
    );
    write("04-name.yaml", format!("{}{model}", head("Four!")));
    write(
        "05-variable.yaml",
        format!(
            "{}{model}{tool}      http: {{ method: POST, url: \"https://example.com\", headers: {{ Authorization: \"Bearer ${{NOT_SET_ANYWHERE}}\" }} }}\n",
            head("five")
        ),
    );
    write(
        "06-condition.yaml",
        format!(
            "{}{model}{tool}      command: {{ argv: [\"cat\"] }}\n      approval: {{ when: \"args.n >\" }}\n",
            head("six")
        ),
    );
    write("07-agent.yaml", format!("{}{model}  handoffs: [nobody]\n", head("seven")));
    write(
        "08-schema.yaml",
        format!(
            "{}{model}  tools:\n    - name: act\n      description: acts\n      parameters: {{ type: objekt }}\n      command: {{ argv: [\"cat\"] }}\n",
            head("eight")
        ),
    );
    write("09-program.yaml", format!("{}{model}{tool}      command: {{ argv: [\"./not-there.sh\"] }}\n", head("nine")));
    place.write("agents/policies/10-rule.yaml", "rules:\n  - { name: x, verdict: maybe }\n");
    let expected = vec![
        ("01-syntax.yaml", 3, ""),
        ("02-field.yaml", 7, "system_prompt"),
        ("03-type.yaml", 5, "chat_model_agent"),
        ("04-name.yaml", 3, ""),
        ("05-variable.yaml", 11, "NOT_SET_ANYWHERE"),
        ("06-condition.yaml", 12, ""),
        ("07-agent.yaml", 7, "nobody"),
        ("08-schema.yaml", 10, ""),
        ("09-program.yaml", 8, "not-there.sh"),
        ("10-rule.yaml", 2, "allow"),
    ];
    (place, expected)
}

#[test]
fn ten_different_mistakes_are_all_named_with_file_line_and_column() {
    let (place, expected) = ten_mistakes();
    let checked = place.run(&["check", "--format", "json"]);
    assert_eq!(checked.status.code(), Some(1), "{}", complained(&checked));
    let found: Vec<Value> = printed(&checked).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (file, line, word) in expected {
        let is_it = |problem: &&Value| {
            problem["file"].as_str().unwrap().ends_with(file)
                && problem["severity"] == "error"
                && problem["line"] == line
                && problem["column"].as_u64().unwrap() > 0
                && problem.to_string().contains(word)
        };
        assert!(found.iter().any(|problem| is_it(&problem)), "{file}:{line} {word} is not in {}", printed(&checked));
    }
}

#[test]
fn problems_are_shown_with_their_lines_or_on_one_line_each() {
    let (place, _) = ten_mistakes();
    let full = printed(&place.run(&["check", "agents"]));
    assert!(full.contains("sistem_prompt: hello") && full.contains("hint"), "{full}");
    assert!(!full.contains('\u{1b}'), "no colours into a file: {full}");
    let short = printed(&place.run(&["check", "--format", "short"]));
    let line = short.lines().find(|line| line.contains("02-field.yaml")).unwrap();
    assert!(line.contains("02-field.yaml:7:3: error: "), "{line}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let place = Place::new();
    let checked = place.run(&["check", "nowhere"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(printed(&checked).contains("nowhere"), "{}", printed(&checked));
}

#[test]
fn the_servers_own_file_is_checked_too() {
    let place = Place::new();
    place.run(&["init"]);
    place.write("holdpoint.yaml", "listen: 127.0.0.1:8888\nlisten_on: nothing\n");
    let checked = place.run(&["check"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(printed(&checked).contains("holdpoint.yaml:2:1"), "{}", printed(&checked));
}

#[test]
fn doctor_says_what_is_fine_and_what_to_do_and_never_shows_a_key() {
    let place = Place::new();
    place.run(&["init"]);
    let fine = place.run(&["doctor", "--offline"]);
    assert!(fine.status.success(), "{}", printed(&fine));
    assert!(printed(&fine).contains("✓ agents    4 can be served"), "{}", printed(&fine));
    assert!(!place.join("holdpoint.db").exists(), "looking left a store behind");
    let agent = "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: real }\nspec: { type: chat_model_agent, model: { primary: openai/gpt-4o, fallback: anthropic/claude-sonnet-4-5 } }\n";
    place.write("agents/real.yaml", agent);
    let mut asked = place.holdpoint(&["doctor", "--offline"]);
    let told = asked.env("ANTHROPIC_API_KEY", "sk-ant-very-secret").output().unwrap();
    assert_eq!(told.status.code(), Some(1));
    let shown = printed(&told);
    assert!(
        shown.contains("✗ models    openai at api.openai.com: no key") && shown.contains("set OPENAI_API_KEY"),
        "{shown}"
    );
    assert!(shown.contains("✓ models    anthropic at api.anthropic.com: a key is set"), "{shown}");
    assert!(!format!("{shown}{}", complained(&told)).contains("very-secret"));
}

#[test]
fn doctor_finds_a_provider_that_does_not_answer_and_a_store_that_cannot_be_written() {
    let place = Place::new();
    place.write("agents/real.yaml", "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: real }\nspec: { type: chat_model_agent, model: { primary: openai/llama } }\n");
    // A port that nobody listens on: it was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut asked = place.holdpoint(&["doctor", "--store", "sqlite://no/such/folder/x.db"]);
    let told = asked.env("OPENAI_BASE_URL", format!("http://{free}/v1")).output().unwrap();
    let shown = printed(&told);
    assert_eq!(told.status.code(), Some(1));
    assert!(
        shown.contains("asked without a key") && shown.contains(&format!("✗ models    {free} does not answer")),
        "{shown}"
    );
    assert!(shown.contains("✗ store"), "{shown}");
}
