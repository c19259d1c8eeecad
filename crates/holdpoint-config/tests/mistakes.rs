//! Mistakes in agent files, one by one: each is named with its exact place, and with advice.

use holdpoint_config::{FixedEnvironment, Source, read_agent};

/// What is said about an agent file: `line:column [code] severity: message (hint)`, one line each.
fn said(text: &str) -> Vec<String> {
    let environment = FixedEnvironment::empty().with("SET", "value").with("BROKEN_URL", "not an address");
    let read = read_agent(Source::new("a.yaml", text), &environment);
    let has_errors = read.diagnostics.iter().any(|problem| problem.is_error());
    assert_eq!(read.agent.is_none(), has_errors, "an agent comes of a file exactly when it has no error: {text}");
    read.diagnostics
        .iter()
        .map(|problem| {
            let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            let place = format!("{}:{}", problem.line, problem.column);
            format!("{place} [{}] {}: {}{hint}", problem.code, problem.severity.name(), problem.message)
        })
        .collect()
}

fn check(text: &str, expected: &[&str]) {
    let said = said(text);
    assert_eq!(said, expected, "\n{text}\nsaid:\n{}", said.join("\n"));
}

/// A file that is right but for these lines of `spec`, which start in line 6.
fn spec(lines: &str) -> String {
    let head = "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: a }\nspec:\n  type: chat_model_agent\n";
    let model = if lines.contains("model:") { "" } else { "  model: { primary: gpt-4o }\n" };
    format!("{head}{lines}\n{model}")
}

/// A file that is right but for this tool, whose first line is line 7.
fn tool(lines: &str) -> String {
    let lines: Vec<String> = lines.lines().map(|line| format!("      {line}")).collect();
    let tool = lines.join("\n").replacen("      ", "    - ", 1);
    spec(&format!("  tools:\n{tool}"))
}

/// A file that is right but for these lines of an http tool, which start in line 9.
fn http(lines: &str) -> String {
    let parameters = "parameters: { type: object, properties: { id: { type: string } } }";
    tool(&format!("name: t\ndescription: d\n{lines}\n{}", if lines.contains("parameters") { "" } else { parameters }))
}

#[test]
fn the_frame_of_a_file() {
    check("", &["1:1 [missing_field] error: the file is empty"]);
    check("# nothing\n", &["1:1 [missing_field] error: the file is empty"]);
    check(
        "- a\n",
        &["1:1 [wrong_type] error: an agent file must be a mapping and is a list (write `name: value` lines below it)"],
    );
    check(
        "kind: Agent\nmetadata: { name: a }\n",
        &[
            "1:1 [missing_field] error: an agent file needs `apiVersion`",
            "1:1 [missing_field] error: an agent file needs `spec`",
        ],
    );
    check(
        "apiVersion: holdpoint/v2\nkind: Agnt\nmetadata:\nspec: 5\n",
        &[
            "1:13 [bad_value] error: `apiVersion` cannot be `holdpoint/v2` (did you mean `holdpoint/v1`?)",
            "2:7 [bad_value] error: `kind` cannot be `Agnt` (did you mean `Agent`?)",
            "3:1 [missing_field] error: an agent file needs `metadata`",
            "4:7 [wrong_type] error: `spec` must be a mapping and is a number (write `name: value` lines below it)",
        ],
    );
    check(
        "kind: Policy\nrules: []\napiVersion: holdpoint/v1\n",
        &[
            "2:1 [bad_value] error: this is a policy file, and it stands among the agents (move the file to the folder `policies`)",
        ],
    );
    check(
        &format!("{}mcp_servers: {{}}\nextra: 1\n", spec("")),
        &[
            "8:1 [unsupported] error: MCP servers are not configured in agent files (name MCP servers in the server's own file, holdpoint.yaml)",
            "9:1 [unknown_field] error: an agent file has no field `extra` (the fields are apiVersion, kind, metadata, spec, mcp_servers)",
        ],
    );
}

#[test]
fn names() {
    let named = |name: &str| spec("").replace("{ name: a }", &format!("{{ name: {name} }}"));
    check(
        &named("My Agent"),
        &[
            "3:19 [bad_name] error: an agent cannot be called `My Agent`: small letters, digits and hyphens expected, 1 to 64 of them (`my-agent` would do)",
        ],
    );
    check(&named("42"), &["3:19 [wrong_type] error: `name` must be text and is a number (put it in quotes: \"42\")"]);
    check(&named("''"), &["3:19 [bad_value] error: `name` is empty"]);
    check(
        &spec("").replace("{ name: a }", "{ nmae: a, tags: x, labels: { a: 1 } }"),
        &[
            "3:13 [unknown_field] error: `metadata` has no field `nmae` (did you mean `name`?)",
            "3:13 [missing_field] error: `metadata` needs `name`",
            "3:28 [wrong_type] error: `tags` must be a list and is text (write one `- …` line for each)",
            "3:44 [wrong_type] error: a label must be text and is a number (put it in quotes: \"1\")",
        ],
    );
}

#[test]
fn types_of_agents() {
    let typed = |kind: &str| spec("").replace("chat_model_agent", kind);
    check(
        &typed("chat_model_agnt"),
        &["5:9 [bad_value] error: there is no type of agent `chat_model_agnt` (did you mean `chat_model_agent`?)"],
    );
    check(
        &typed("workflow"),
        &[
            "5:9 [unsupported] error: agents of type `workflow` are not supported (the types that can be run are `chat_model_agent`, `deep_agent`, `supervisor`, `sequential` and `parallel`)",
        ],
    );
    check(
        &typed("supervisor"),
        &[
            "5:9 [missing_field] error: an agent of type supervisor needs `sub_agents` (add `sub_agents: [{ ref: NAME }]`)",
        ],
    );
    check(
        &typed("supervisor\n  sub_agents: []"),
        &["6:3 [missing_field] error: an agent of type supervisor needs at least one agent below it"],
    );
    check(
        &typed("supervisor\n  sub_agents: [{ ref: Bad Name }, { role: x }, { ref: b, config: {} }]"),
        &[
            "6:23 [bad_name] error: `Bad Name` is not the name of an agent (small letters, digits and hyphens expected, 1 to 64 of them)",
            "6:37 [missing_field] error: an agent below this one needs `ref`",
            "6:58 [unsupported] error: settings of an agent below another one are not supported (change the agent's own file, or write another one)",
        ],
    );
    check(
        &spec("  sub_agents: [{ ref: b }]"),
        &[
            "6:3 [conflict] error: an agent of type chat_model_agent has no agents below it (write `type: supervisor`, or name them under `tools` as `agent://NAME`)",
        ],
    );
    check(
        &typed("sequential\n  sub_agents: [{ ref: b }]\n  system_prompt: x\n  tools: []"),
        &[
            "7:18 [no_effect] warning: `system_prompt` has no effect: an agent of this type calls no model of its own (leave it out)",
            "8:3 [conflict] error: `tools` has no effect: an agent of this type calls no model of its own (write it in the files of the agents below it)",
            "10:3 [no_effect] warning: `model` has no effect: an agent of this type calls no model of its own (leave it out)",
        ],
    );
    check(
        &typed("deep_agent\n  orchestration: { mode: parallel, max_rounds: 0 }"),
        &[
            "6:26 [conflict] error: `mode` is `parallel` and the agent's type is deep_agent (leave `mode` out)",
            "6:48 [out_of_range] error: `max_rounds` must be from 1 to 1000",
        ],
    );
}

#[test]
fn fields_of_the_spec() {
    check(
        &spec("  sytem_prompt: x\n  max_turns: many\n  temperature: 1"),
        &[
            "6:3 [unknown_field] error: `spec` has no field `sytem_prompt` (did you mean `system_prompt`?)",
            "7:14 [wrong_type] error: `max_turns` must be a whole number and is text",
            "8:3 [unknown_field] error: `spec` has no field `temperature` (the fields are sub_agents, type, model, system_prompt, locale, max_turns, tools, handoffs, interrupt, memory, on_message_while_held, orchestration, observability, middleware, workflow, evolution, graph, sandbox, approval)",
        ],
    );
    check(
        &spec("  max_turns: 0\n  locale: Tiếng Việt\n  handoffs: [b, b, agent://c]"),
        &[
            "6:14 [out_of_range] error: `max_turns` must be from 1 to 1000",
            "7:11 [bad_value] error: `Tiếng Việt` is not a language (write a language tag such as `vi` or `pt-BR`)",
            "8:17 [conflict] error: `b` stands twice among the hand-offs",
        ],
    );
    check(
        &spec(
            "  middleware: []\n  observability: { metrics: true, log_level: info }\n  memory: { backend: mem0, config: {} }",
        ),
        &[
            "6:3 [unsupported] error: `middleware` is not supported (write rules in a policy file for what may run)",
            "7:3 [no_effect] warning: `observability` has no effect: logs, metrics and traces are the server's (configure them in the server's own file, holdpoint.yaml)",
            "8:22 [unsupported] error: memory `mem0` is not supported (write `builtin`: earlier messages are kept with the session, in the server's store)",
            "8:28 [unsupported] error: settings of the memory are not supported (leave them out)",
        ],
    );
    check(
        &spec("  system_prompt: |\n    Use the key\n    ${API_KEY} please"),
        &[
            "8:5 [bad_template] error: `${API_KEY}` would put a secret where models or people read it (environment variables can stand in addresses, headers, commands and keys; write `$${` for the text `${`)",
        ],
    );
}

#[test]
fn models() {
    check(&spec("  model:"), &["6:3 [missing_field] error: `spec` needs `model`"]);
    check(
        &spec("  model: gpt-4o"),
        &["6:10 [wrong_type] error: `model` must be a mapping and is text (write `model: { primary: gpt-4o }`)"],
    );
    check(
        &spec("  model: { primary: opanai/gpt-4o, fallback: meta/llama, temperature: 3, top_p: x, max_tokens: 1.5 }"),
        &[
            "6:21 [bad_value] error: there is no model provider `opanai` (did you mean `openai`?)",
            "6:46 [bad_value] error: there is no model provider `meta` (for a server that speaks OpenAI's protocol, write `openai/meta/llama`)",
            "6:71 [out_of_range] error: `temperature` must be from 0 to 2",
            "6:81 [wrong_type] error: `top_p` must be a number and is text",
            "6:96 [wrong_type] error: `max_tokens` must be a whole number and is a number",
        ],
    );
    check(
        &spec(
            "  model: { primary: '${MODEL}', router: cheap, protocol: gemini, base_url: 'localhost', api_key: sk-123, api_key_env: K }",
        ),
        &[
            "6:22 [missing_variable] error: environment variable MODEL is not set (set MODEL before the start)",
            "6:33 [unsupported] error: `router` is not supported: no model is chosen by a strategy (name one model as `primary` and one as `fallback`)",
            "6:58 [unsupported] error: this protocol is not supported (use an address of the service that speaks OpenAI's protocol, with `base_url`)",
            "6:76 [bad_url] error: `base_url` is not an address (write an address such as `http://localhost:11434/v1`)",
            "6:98 [secret_in_file] error: `api-key` is written into the file, and would be stored with every run (keep it in an environment variable and write `${NAME}`)",
            "6:119 [conflict] error: `api_key` and `api_key_env` exclude each other",
        ],
    );
    check(&spec("  model: { primary: '${SET}' }"), &[]);
    check(
        &spec("  model: { primary: claude-sonnet, protocol: claude, api_key_env: NOT_SET }"),
        &["6:67 [missing_variable] error: environment variable NOT_SET is not set (set NOT_SET before the start)"],
    );
}

#[test]
fn sources_of_tools() {
    check(
        &spec("  tools: builtin/shell"),
        &["6:10 [wrong_type] error: `tools` must be a list and is text (write one `- …` line for each)"],
    );
    check(
        &spec("  tools: [builtin/shell]"),
        &["6:11 [wrong_type] error: a tool must be a mapping and is text (write `- ref: builtin/shell`)"],
    );
    check(
        &tool("name: t\ndescription: d"),
        &[
            "7:7 [missing_field] error: a tool needs `ref`, `http` or `command` (add `ref: builtin/…`, `ref: mcp://…`, `ref: agent://…`, `http: {…}` or `command: {…}`)",
        ],
    );
    check(
        &http("http: { url: 'https://x.example/' }\ncommand: { argv: [a] }"),
        &[
            "10:7 [conflict] error: a tool has one source, and this one has `http` and `command` (make two tools of it, or leave one out)",
        ],
    );
    check(
        &tool("ref: builtin/shel"),
        &["7:12 [unknown_tool] error: there is no built-in tool `shel` (did you mean `shell`?)"],
    );
    check(
        &tool("ref: builtin/web_search"),
        &[
            "7:12 [unsupported] error: the built-in tool `web_search` is not supported (there are `ask_user_question`, `shell`, `apply_patch` and `http_request`)",
        ],
    );
    check(&tool("ref: shell"), &["7:12 [unknown_tool] error: there is no tool `shell` (write `builtin/shell`)"]);
    check(
        &tool("ref: skill://calculator"),
        &[
            "7:12 [unknown_tool] error: there is no tool `skill://calculator` (skills are not supported; make the tool with `http` or `command`)",
        ],
    );
    check(
        &tool("ref: mcp://files/"),
        &[
            "7:12 [bad_value] error: `mcp://files/` is not a tool of an MCP server (write `mcp://SERVER/TOOL` or `mcp://SERVER/*`)",
        ],
    );
    check(
        &tool("ref: mcp://files/*\nname: all\nconfig: {}"),
        &[
            "8:13 [conflict] error: all tools of a server cannot have one name",
            "9:7 [unsupported] error: a tool of an MCP server has no `config` (leave it out)",
        ],
    );
    check(
        &tool("ref: agent://Researcher\neffects: read_only"),
        &[
            "7:12 [bad_name] error: `Researcher` is not the name of an agent (small letters, digits and hyphens expected, 1 to 64 of them)",
        ],
    );
    check(
        &tool("ref: agent://b\neffects: read_only\nparameters: {}"),
        &[
            "8:16 [conflict] error: an agent has no `effects` of its own (declare them on that agent's tools)",
            "9:7 [unsupported] error: `parameters` is only for tools with `http` or `command` (leave it out)",
        ],
    );
    check(
        &tool("uri: builtin/shell"),
        &[
            "7:7 [missing_field] error: a tool needs `ref`, `http` or `command` (add `ref: builtin/…`, `ref: mcp://…`, `ref: agent://…`, `http: {…}` or `command: {…}`)",
            "7:7 [unsupported] error: `uri` is not a field of a tool (write `ref`)",
        ],
    );
    check(
        &spec("  tools:\n    - ref: builtin/shell\n    - ref: agent://b\n      name: shell"),
        &["9:13 [duplicate_tool] error: two tools of this agent are called `shell` (give one of them another `name`)"],
    );
}

#[test]
fn built_in_tools() {
    check(
        &tool(
            "ref: builtin/shell\nname: sh\nconfig: { timeout: 5, timeout_seconds: 0, env: { 1A: x, MY_TOKEN: abc } }",
        ),
        &[
            "8:7 [unsupported] error: a built-in tool cannot have another name (models know a built-in tool by its own name)",
            "9:17 [unknown_field] error: config has no field `timeout` (the fields are timeout_seconds, output_bytes_max, working_directory, env)",
            "9:46 [out_of_range] error: `timeout_seconds` must be from 1 to 86400",
            "9:56 [bad_name] error: `1A` is not the name of an environment variable (use letters, digits and `_`)",
            "9:73 [secret_in_file] error: `my-token` is written into the file, and would be stored with every run (keep it in an environment variable and write `${NAME}`)",
        ],
    );
    check(
        &tool("ref: builtin/ask_user_question\nconfig: {}\napproval: required"),
        &[
            "8:7 [unsupported] error: `builtin/ask_user_question` has no `config` (leave it out)",
            "9:7 [unsupported] error: a question to a person needs no `approval` (the question itself waits for a person)",
        ],
    );
    check(
        &tool("ref: builtin/http_request\nconfig: { allowed_hosts: ['https://x.example'], allow_private: yes }"),
        &[
            "8:33 [bad_value] error: `https://x.example` is not a host (write a host such as `*.example.com`)",
            "8:70 [wrong_type] error: `allow_private` must be true or false and is text (write true, without quotes)",
        ],
    );
    check(
        &tool("ref: builtin/apply_patch\nconfig: { working_directory: '', file_bytes_max: -1 }"),
        &[
            "8:36 [bad_value] error: `working_directory` is not a folder",
            "8:56 [out_of_range] error: `file_bytes_max` must be from 1 to 16777216",
        ],
    );
}

#[test]
fn http_tools() {
    check(&http("http: {}"), &["9:13 [missing_field] error: `http` needs `url`"]);
    check(
        &http("http: { method: FETCH, url: broker.example }"),
        &[
            "9:23 [bad_value] error: `method` cannot be `FETCH` (write `GET`, `POST`, `PUT`, `PATCH` or `DELETE`)",
            "9:35 [bad_url] error: `url` has no scheme (start it with `https://`)",
        ],
    );
    check(
        &http("http: { url: 'https://x.example/{id}/{idd}/{other}' }"),
        &[
            "9:44 [unknown_placeholder] error: `idd` is no argument of the tool (did you mean `id`?)",
            "9:50 [unknown_placeholder] error: `other` is no argument of the tool (the arguments are id)",
        ],
    );
    check(
        &http(
            "http: { url: 'https://x.example/${NO_1}/${NO_2}', headers: { 'Bad Name': x, Host: y, Authorization: Bearer abc, X-A: \"a\\nb\", Accept: 5 } }",
        ),
        &[
            "9:39 [missing_variable] error: environment variable NO_1 is not set (set NO_1 before the start)",
            "9:47 [missing_variable] error: environment variable NO_2 is not set (set NO_2 before the start)",
            "9:68 [bad_header] error: `Bad Name` is not the name of a header (use letters, digits and `-`)",
            "9:83 [bad_header] error: the header `Host` is set by the request itself (leave it out)",
            "9:107 [secret_in_file] error: `authorization` is written into the file, and would be stored with every run (keep it in an environment variable and write `${NAME}`)",
            "9:124 [bad_header] error: the value of `X-A` cannot be sent: it has a line break or a control character",
            "9:140 [wrong_type] error: a header must be text and is a number (put it in quotes: \"5\")",
        ],
    );
    check(
        &http("http: { url: '${BROKEN_URL}' }"),
        &["9:20 [bad_url] error: `url` has no scheme (start it with `https://`)"],
    );
    check(
        &http("http: { url: 'https://x.example/${' }"),
        &["9:39 [bad_template] error: `${` without `}` (write `${NAME}`, or `$$` for one `$`)"],
    );
    check(
        &tool("http: { url: 'https://x.example/' }\nname: bad name"),
        &[
            "7:7 [missing_field] error: a tool needs `description`",
            "8:13 [bad_name] error: a tool cannot be called `bad name` (use letters, digits, `_` and `-`, 64 at most)",
        ],
    );
}

#[test]
fn schemas_of_arguments() {
    check(
        &http("http: { url: 'https://x.example/' }\nparameters: [a]"),
        &["10:19 [wrong_type] error: `parameters` must be a JSON schema, written as a mapping, and is a list"],
    );
    check(
        &http("http: { url: 'https://x.example/' }\nparameters: { type: array }"),
        &[
            "10:27 [bad_schema] error: the schema of a tool's arguments must have `type: object` (name each argument under `properties`)",
        ],
    );
    let said = said(&http(
        "http: { url: 'https://x.example/' }\nparameters: { type: object, properties: { a: { type: strng }, b: { minimum: x } } }",
    ));
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[0], "10:60 [bad_schema] error: `strng` is not a type of JSON (did you mean `string`?)");
    assert!(said[1].starts_with("10:83 [bad_schema] error: not a JSON schema: "), "{said:?}");
}

#[test]
fn command_tools() {
    check(
        &http("command: ./deploy.sh --now"),
        &[
            "9:16 [wrong_type] error: `command` must be a mapping and is text (no shell reads it: write `command: { argv: [\"./deploy.sh\", \"--now\"] }`)",
        ],
    );
    check(
        &http("command: { argv: [] }"),
        &["9:24 [bad_value] error: `argv` is empty (name the program first, such as `[\"./deploy.sh\"]`)"],
    );
    check(
        &http("command: { argv: [a, 5, '${NO}'], env: { X_PASSWORD: p }, timeout_seconds: 90000 }"),
        &[
            "9:28 [wrong_type] error: an item of `argv` must be text and is a number (put it in quotes: \"5\")",
            "9:32 [missing_variable] error: environment variable NO is not set (set NO before the start)",
            "9:60 [secret_in_file] error: `x-password` is written into the file, and would be stored with every run (keep it in an environment variable and write `${NAME}`)",
            "9:82 [out_of_range] error: `timeout_seconds` must be from 1 to 86400",
        ],
    );
}

#[test]
fn approvals() {
    let approval = |text: &str| tool(&format!("ref: builtin/shell\napproval: {text}"));
    check(&approval("requird"), &["8:17 [bad_value] error: `approval` cannot be `requird` (did you mean `required`?)"]);
    check(&approval("false"), &["8:17 [wrong_type] error: `approval` cannot be true or false (write `never`)"]);
    check(
        &approval("{ on_timeout: approve, timeout_seconds: 0 }"),
        &[
            "8:31 [no_effect] warning: `on_timeout` has no effect where `timeout_seconds` is 0 (leave one of them out)",
            "8:31 [unattended] error: `on_timeout: approve` lets calls run that nobody looked at (write `deny`, or add `allow_unattended: true` where that is meant)",
        ],
    );
    check(&approval("{ on_timeout: approve, allow_unattended: true }"), &[]);
    check(
        &approval("{ timeout_seconds: -1, fill: all, quorum: 0, approvers: [], whem: x }"),
        &[
            "8:36 [out_of_range] error: `timeout_seconds` must be from 0 to 316224000",
            "8:46 [bad_value] error: `fill` cannot be `all` (write `first` or `none`)",
            "8:59 [out_of_range] error: `quorum` must be from 1 to 64",
            "8:73 [bad_value] error: an empty list of approvers lets nobody decide (leave `approvers` out where everybody may decide)",
            "8:77 [unknown_field] error: `approval` has no field `whem` (did you mean `when`?)",
        ],
    );
}

#[test]
fn what_becomes_of_notes_and_of_messages_in_between() {
    check(&tool("ref: builtin/shell\napproval: { on_note: revise, fill: none }\nexplicit_decision: true"), &[]);
    check(
        &tool("ref: builtin/shell\napproval: { on_note: redo, fill: first }\nexplicit_decision: true"),
        &[
            "8:28 [bad_value] error: `on_note` cannot be `redo` (write `append` or `revise`)",
            "9:26 [conflict] error: `explicit_decision: true` and `fill: first` contradict each other (leave one of them out)",
        ],
    );
    check(
        &tool("ref: builtin/shell\nexplicit_decision: maybe"),
        &["8:26 [wrong_type] error: `explicit_decision` must be true or false and is text (write true or false)"],
    );
    check(
        &spec("  on_message_while_held: supercede"),
        &["6:26 [bad_value] error: `on_message_while_held` cannot be `supercede` (did you mean `supersede`?)"],
    );
}

#[test]
fn expressions_are_wrong_at_their_exact_place_however_they_are_written() {
    let when = |text: &str| tool(&format!("ref: builtin/shell\napproval:\n  when: {text}"));
    let hint = "(an expression knows `args`, `agent`, `tool`, `session` and `actor`; text stands in quotes)";
    let foo = |place: &str| format!("{place} [bad_expression] error: there is no `foo` {hint}");
    for (text, place) in [
        ("args.x > foo", "9:24"),
        ("'args.x > foo'", "9:25"),
        ("\"args.x > foo\"", "9:25"),
        // A doubled quote, escapes and wide characters before the bad part.
        ("'args.x == ''a'' && foo'", "9:35"),
        ("\"args.x == \\\"a\\\" && foo\"", "9:35"),
        ("\"args.x == '\\u00e9' && foo\"", "9:38"),
        ("args.x == 'é日本' && foo", "9:34"),
        // Over several lines.
        ("|\n    'a' == args.x && foo", "10:28"),
        ("|\n    args.x > 1 &&\n    foo", "11:11"),
        ("|-\n    args.x > 1 &&\n      foo", "11:13"),
        (">\n    args.x > 1 &&\n    foo", "11:11"),
        ("args.x > 1 &&\n    foo", "10:11"),
        ("\"args.x > 1 &&\n    foo\"", "10:11"),
        ("'args.x > 1 &&\n\n    foo'", "11:11"),
    ] {
        let said = said(&when(text));
        assert_eq!(said, [foo(place)], "{}", when(text));
    }
    check(&when("args.x >"), &["9:23 [bad_expression] error: the expression ends too early"]);
    check(
        &when("args.a.all(x, args.a.all(y, args.a.all(z, z > 0)))"),
        &["9:50 [costly_expression] error: loops are nested deeper than 2 levels"],
    );
    check(&when("42"), &["9:15 [wrong_type] error: `when` must be text and is a number (put it in quotes: \"42\")"]);
    check(
        &when("args.x * 1.5 > 3.0"),
        &[
            "9:22 [bad_expression] warning: `x` is an int where it is a whole number, and the call is then held (write `double(…)` around it)",
        ],
    );
}

#[test]
fn displays_and_effects() {
    check(
        &tool("ref: builtin/shell\neffects: readonly\ndisplay: { stream_tool_use: no, message: 5, x: 1 }"),
        &[
            "8:16 [bad_value] error: `effects` cannot be `readonly` (did you mean `read_only`?)",
            "9:35 [wrong_type] error: `stream_tool_use` must be true or false and is text (write false, without quotes)",
            "9:48 [wrong_type] error: `message` must be text and is a number (put it in quotes: \"5\")",
            "9:51 [unknown_field] error: `display` has no field `x` (the fields are stream_tool_use, stream_tool_result, as_content, message)",
        ],
    );
    check(
        &http("http: { url: 'https://x.example/' }\ndisplay: { message: 'Order {ID}' }"),
        &["10:34 [unknown_placeholder] error: `ID` is no argument of the tool (did you mean `id`?)"],
    );
}

#[test]
fn confirmations() {
    let interrupt = |text: &str| spec(&format!("  interrupt: {text}"));
    check(
        &interrupt("{ enabled: 1, checkpoint_backend: postgres, timeout_seconds: 0, keywords: ['+', ok, 5] }"),
        &[
            "6:25 [wrong_type] error: `enabled` must be true or false and is a number",
            "6:48 [bad_value] error: `checkpoint_backend` cannot be `postgres` (write `memory` or `redis`)",
            "6:75 [out_of_range] error: `timeout_seconds` must be from 1 to 316224000",
            "6:89 [bad_value] error: a keyword is empty",
            "6:98 [wrong_type] error: an item of the list must be text and is a number (put it in quotes: \"5\")",
        ],
    );
    check(
        &interrupt("{ keywords: [] }"),
        &[
            "6:14 [no_effect] warning: `interrupt` has no effect: it is not switched on (add `enabled: true`)",
            "6:16 [no_effect] warning: without keywords no reply asks for a confirmation (leave `keywords` out for the usual ones, or write some)",
        ],
    );
    check(
        &interrupt(
            "\n    enabled: true\n    fields:\n      - { name: a b, type: confirm }\n      - { name: x, type: selekt }\n      - { name: y, type: select }\n      - { name: z, type: text, options: [a] }\n      - { name: z, type: text }\n      - { type: text }",
        ),
        &[
            "9:17 [bad_name] error: a field cannot be called `a b` (use letters, digits, `_` and `-`, 64 at most)",
            "10:26 [bad_value] error: `type` cannot be `selekt` (did you mean `select`?)",
            "11:9 [missing_field] error: a field of type select needs `options`",
            "12:32 [conflict] error: only a field of type select has `options` (write `type: select`, or leave `options` out)",
            "13:17 [conflict] error: two fields are called `z`",
            "14:11 [missing_field] error: a field needs `name`",
        ],
    );
}

#[test]
fn yaml_itself() {
    check(
        "apiVersion: holdpoint/v1\nkind: Agent\nkind: Agent\nmetadata: { name: a, name: b }\nspec: { type: chat_model_agent, model: { primary: x } }\n",
        &[
            "3:1 [yaml_duplicate_key] error: `kind` stands twice in this mapping, first in line 2",
            "4:22 [yaml_duplicate_key] error: `name` stands twice in this mapping, first in line 4",
        ],
    );
    check("a:\n\tb: 1\n", &["2:1 [yaml_syntax] error: a tab cannot indent a line (indent with spaces)"]);
    check("a: [1, 2\nb: 3\n", &["2:2 [yaml_syntax] error: `:` cannot stand here (close the bracket before it)"]);
    check("a: [1, 2\n", &["1:4 [yaml_syntax] error: this bracket is not closed"]);
    check("a: \"x", &["1:4 [yaml_syntax] error: this text has no closing quote"]);
    check(
        "a: \"x\nb: 1\n",
        &[
            "2:1 [yaml_syntax] error: a text in quotes goes on here, and this line is not indented (close the quotes before it)",
        ],
    );
    check(
        "a: b: c\n",
        &[
            "1:5 [yaml_syntax] error: a key and its value cannot stand here (text with `: ` in it needs quotes, and fields of one mapping stand in one column)",
        ],
    );
    check("a: *x\n", &["1:4 [yaml_syntax] error: there is no such anchor before this alias"]);
    check("a: @x\n", &["1:4 [yaml_syntax] error: text cannot start with `@` (put it in quotes)"]);
    check(
        "a: 1\n---\nb: 2\n",
        &["2:1 [yaml_feature] error: a file has one document (put what follows `---` into a file of its own)"],
    );
}
