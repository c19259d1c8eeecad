//! Every bound on what is read here, in one place. What goes beyond one is reported with the bound's name and size.

/// Bytes of one file.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Values in one file, where an alias counts as everything that it stands for.
pub const NODES_MAX: usize = 10_000;
/// Lists and mappings inside each other.
pub const NESTING_MAX: usize = 64;
/// Bytes of all texts in one file, where an alias counts as everything that it stands for.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Files read from one folder.
pub const FILES_MAX: usize = 1_000;
/// Problems reported for one file; the rest is counted.
pub const PROBLEMS_MAX: usize = 200;

/// Bytes in the name of an agent or a tool.
pub const NAME_BYTES_MAX: usize = 64;
/// Tools of one agent.
pub const TOOLS_MAX: usize = 128;
/// Agents that one agent hands over to, or has below it.
pub const AGENTS_MAX: usize = 64;
/// Model calls in one run.
pub const TURNS_MAX: i64 = 1_000;
/// The longest time for which somebody is waited: ten years.
pub const DEADLINE_SECONDS_MAX: i64 = 10 * 366 * 24 * 3600;
/// The longest time that a tool may take: a day.
pub const TOOL_SECONDS_MAX: i64 = 24 * 3600;
/// Bytes of a tool's answer that an operator may ask for.
pub const TOOL_OUTPUT_BYTES_MAX: i64 = 16 * 1024 * 1024;
/// Fields of a confirmation.
pub const FIELDS_MAX: usize = 32;
/// Options of one field.
pub const OPTIONS_MAX: usize = 200;
/// Phrases that ask for a confirmation.
pub const PHRASES_MAX: usize = 200;
/// Characters of one phrase.
pub const PHRASE_CHARACTERS_MAX: usize = 200;

/// Rules in all policy files together.
pub const RULES_MAX: usize = 1_000;
/// Bytes of one expression.
pub const EXPRESSION_BYTES_MAX: usize = 4 * 1024;
/// Brackets inside each other in an expression, and likewise its operators and calls.
pub const EXPRESSION_NESTING_MAX: usize = 32;
/// Loops (`all`, `exists`, `exists_one`, `map`, `filter`) inside each other.
pub const LOOP_NESTING_MAX: usize = 2;
/// Loops in one expression.
pub const LOOPS_MAX: usize = 8;
/// Bytes of arguments that an expression looks at; a call with more is held.
pub const ARGUMENT_BYTES_MAX: usize = 256 * 1024;
/// How much work one expression may cause. A unit is one round of a loop over one kibibyte of arguments.
pub const EXPRESSION_COST_MAX: u64 = 100_000;
/// Characters of a glob.
pub const GLOB_CHARACTERS_MAX: usize = 200;

/// API keys in the server's file.
pub const API_KEYS_MAX: usize = 1_000;
/// MCP servers in the server's file.
pub const MCP_SERVERS_MAX: usize = 100;
/// Places where people are told of pauses, in the server's file.
pub const NOTIFICATIONS_MAX: usize = 100;
/// People who may answer in one such place.
pub const PEOPLE_MAX: usize = 1_000;
