//! When a call to a tool of an MCP server needs approval: `always`, `never`, or lists.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which tools of an MCP server need approval, as its operator says.
///
/// In JSON: `"always"`, `"never"`, or `{"always": {"tool_names": […], "read_only": bool}, "never": {…}}` with at least
/// one of the two, each with at least one condition. Keys may be in snake or camel case. What is not understood is
/// refused, never ignored.
///
/// The default is `never`, as in the library that this follows, for servers that Rust code sets up. A server that an
/// operator *configures* is another matter: a tool without an approval setting is held there, so whoever reads
/// configuration starts from [`RequireApproval::Always`].
///
/// ```
/// use holdpoint_tools::mcp::RequireApproval;
/// use serde_json::json;
///
/// let policy = RequireApproval::parse(&json!({"never": {"tool_names": ["search"]}}))?;
/// assert!(!policy.needs_approval("search", None));
/// assert!(policy.needs_approval("delete", Some(true)), "the server's own claim lowers nothing");
/// # Ok::<(), holdpoint_tools::mcp::PolicyProblem>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub enum RequireApproval {
    /// Every call.
    Always,
    /// No call.
    #[default]
    Never,
    /// As the lists say. A tool that is in none of them needs approval.
    Lists {
        /// Tools that need it, whatever `never` says.
        always: Option<ToolFilter>,
        /// Tools that do not.
        never: Option<ToolFilter>,
    },
}

/// Some tools of a server: by name, or by the server's own claim that they change nothing.
///
/// Under `always` a tool is meant if any condition holds for it, under `never` only if all do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// These tools; none named puts no condition on the name.
    pub tool_names: BTreeSet<String>,
    /// Tools that claim to change nothing (`true`), or do not (`false`).
    pub read_only: Option<bool>,
}

/// Why a policy was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyProblem {
    /// Neither a string nor an object.
    #[error("\"always\", \"never\" or an object with one of these keys expected")]
    Shape,
    /// Another string.
    #[error("{0:?} is neither \"always\" nor \"never\"")]
    Word(String),
    /// A key that is not known.
    #[error("{place} has the unknown key {key:?}")]
    UnknownKey {
        /// Where.
        place: &'static str,
        /// The key.
        key: String,
    },
    /// A key in both of its spellings.
    #[error("{place} has {key} in two spellings")]
    TwoSpellings {
        /// Where.
        place: &'static str,
        /// The key.
        key: &'static str,
    },
    /// Nothing where at least one thing is needed.
    #[error("{0} is empty")]
    Empty(&'static str),
    /// A value of another type.
    #[error("{place} must be {expected}")]
    Type {
        /// Where.
        place: &'static str,
        /// What would have been accepted there.
        expected: &'static str,
    },
    /// A tool in both lists.
    #[error("tool {0:?} is listed under both always and never")]
    Overlap(String),
    /// The same claim in both lists.
    #[error("read_only {0} is said under both always and never")]
    SameClaim(bool),
}

impl RequireApproval {
    /// Reads a policy.
    ///
    /// # Errors
    /// Everything that is not exactly a policy.
    pub fn parse(value: &Value) -> Result<Self, PolicyProblem> {
        match value {
            Value::String(word) if word == "always" => Ok(Self::Always),
            Value::String(word) if word == "never" => Ok(Self::Never),
            Value::String(word) => Err(PolicyProblem::Word(word.clone())),
            Value::Object(lists) => parse_lists(lists),
            _ => Err(PolicyProblem::Shape),
        }
    }

    /// Reads a policy that may be left out: nothing said is the default, `never`.
    ///
    /// # Errors
    /// Everything that is there and is not exactly a policy.
    pub fn parse_or_default(value: Option<&Value>) -> Result<Self, PolicyProblem> {
        value.map_or(Ok(Self::default()), Self::parse)
    }

    /// The policy in its one normal form: snake case, names sorted and each once.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Always => Value::from("always"),
            Self::Never => Value::from("never"),
            Self::Lists { always, never } => {
                let lists = [("always", always), ("never", never)];
                let said = lists.into_iter().filter_map(|(key, filter)| Some((key, filter.as_ref()?.to_value())));
                said.map(|(key, filter)| (key.to_owned(), filter)).collect::<Map<_, _>>().into()
            }
        }
    }

    /// Whether a person must look at a call of this tool. `read_only_hint` is the server's claim about it: it lowers
    /// nothing unless the operator's own filter goes by it.
    pub fn needs_approval(&self, tool: &str, read_only_hint: Option<bool>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Lists { always, never } => {
                let is_always = always.as_ref().is_some_and(|filter| filter.means_any(tool, read_only_hint));
                let is_never = never.as_ref().is_some_and(|filter| filter.means_all(tool, read_only_hint));
                is_always || !is_never
            }
        }
    }
}

impl ToolFilter {
    /// Any condition holds. A tool that claims nothing counts as one that changes something.
    fn means_any(&self, tool: &str, read_only_hint: Option<bool>) -> bool {
        let claims = read_only_hint.unwrap_or(false);
        self.tool_names.contains(tool) || self.read_only.is_some_and(|read_only| read_only == claims)
    }

    /// All conditions hold, and there is one. A tool that claims nothing meets no condition on its claim.
    fn means_all(&self, tool: &str, read_only_hint: Option<bool>) -> bool {
        let is_named = self.tool_names.is_empty() || self.tool_names.contains(tool);
        let is_claimed = self.read_only.is_none() || self.read_only == read_only_hint;
        !self.is_empty() && is_named && is_claimed
    }

    fn is_empty(&self) -> bool {
        self.tool_names.is_empty() && self.read_only.is_none()
    }

    fn to_value(&self) -> Value {
        let mut filter = Map::new();
        if !self.tool_names.is_empty() {
            filter.insert("tool_names".to_owned(), self.tool_names.iter().cloned().collect());
        }
        if let Some(read_only) = self.read_only {
            filter.insert("read_only".to_owned(), read_only.into());
        }
        filter.into()
    }
}

impl From<RequireApproval> for Value {
    fn from(policy: RequireApproval) -> Self {
        policy.to_value()
    }
}

impl TryFrom<Value> for RequireApproval {
    type Error = PolicyProblem;

    fn try_from(value: Value) -> Result<Self, PolicyProblem> {
        Self::parse(&value)
    }
}

fn parse_lists(lists: &Map<String, Value>) -> Result<RequireApproval, PolicyProblem> {
    if lists.is_empty() {
        return Err(PolicyProblem::Empty("the policy"));
    }
    if let Some(key) = lists.keys().find(|key| !matches!(key.as_str(), "always" | "never")) {
        return Err(PolicyProblem::UnknownKey { place: "the policy", key: key.clone() });
    }
    let always = lists.get("always").map(|filter| parse_filter(filter, "always")).transpose()?;
    let never = lists.get("never").map(|filter| parse_filter(filter, "never")).transpose()?;
    if let (Some(always), Some(never)) = (&always, &never) {
        check_apart(always, never)?;
    }
    Ok(RequireApproval::Lists { always, never })
}

fn parse_filter(value: &Value, place: &'static str) -> Result<ToolFilter, PolicyProblem> {
    let expected = "an object with tool_names or read_only";
    let filter = value.as_object().ok_or(PolicyProblem::Type { place, expected })?;
    let known = ["tool_names", "toolNames", "read_only", "readOnly"];
    if let Some(key) = filter.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(PolicyProblem::UnknownKey { place, key: key.clone() });
    }
    let read_only = match one_of(filter, place, "read_only", "readOnly")? {
        None => None,
        Some(Value::Bool(read_only)) => Some(*read_only),
        Some(_) => return Err(PolicyProblem::Type { place: "read_only", expected: "true or false" }),
    };
    let tool_names = match one_of(filter, place, "tool_names", "toolNames")? {
        None => BTreeSet::new(),
        Some(names) => parse_names(names)?,
    };
    let filter = ToolFilter { tool_names, read_only };
    if filter.is_empty() { Err(PolicyProblem::Empty(place)) } else { Ok(filter) }
}

fn parse_names(names: &Value) -> Result<BTreeSet<String>, PolicyProblem> {
    let expected = PolicyProblem::Type { place: "tool_names", expected: "a list of names that are not empty" };
    let names = names.as_array().ok_or(expected.clone())?;
    if names.is_empty() {
        return Err(PolicyProblem::Empty("tool_names"));
    }
    let name = |name: &Value| name.as_str().filter(|name| !name.trim().is_empty()).map(str::to_owned);
    names.iter().map(name).collect::<Option<_>>().ok_or(expected)
}

fn one_of<'a>(
    filter: &'a Map<String, Value>,
    place: &'static str,
    key: &'static str,
    other: &str,
) -> Result<Option<&'a Value>, PolicyProblem> {
    match (filter.get(key), filter.get(other)) {
        (Some(_), Some(_)) => Err(PolicyProblem::TwoSpellings { place, key }),
        (value, None) | (None, value) => Ok(value),
    }
}

fn check_apart(always: &ToolFilter, never: &ToolFilter) -> Result<(), PolicyProblem> {
    if let Some(name) = always.tool_names.intersection(&never.tool_names).next() {
        return Err(PolicyProblem::Overlap(name.clone()));
    }
    match (always.read_only, never.read_only) {
        (Some(one), Some(other)) if one == other => Err(PolicyProblem::SameClaim(one)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: Value) -> Result<RequireApproval, PolicyProblem> {
        RequireApproval::parse(&value)
    }

    fn refused(value: Value, problem: &str) {
        assert_eq!(parse(value.clone()).map_err(|found| found.to_string()), Err(problem.to_owned()), "{value}");
    }

    #[test]
    fn a_policy_that_is_left_out_is_never() {
        assert_eq!(RequireApproval::default(), RequireApproval::Never);
        assert_eq!(RequireApproval::parse_or_default(None), Ok(RequireApproval::Never));
        assert!(RequireApproval::parse_or_default(Some(&Value::Null)).is_err());
    }

    #[test]
    fn the_two_words_are_read() {
        assert_eq!(parse(json!("always")), Ok(RequireApproval::Always));
        assert_eq!(parse(json!("never")), Ok(RequireApproval::Never));
    }

    #[test]
    fn an_unknown_word_is_refused() {
        for word in ["sometimes", "Always", "NEVER", " always", "alwaysnever", ""] {
            refused(json!(word), &format!("{word:?} is neither \"always\" nor \"never\""));
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let named = json!({"tool_names": ["a"]});
        refused(json!({"always": named, "sometimes": named}), "the policy has the unknown key \"sometimes\"");
        refused(json!({"Never": named}), "the policy has the unknown key \"Never\"");
        refused(json!({"never": {"toolnames": ["a"]}}), "never has the unknown key \"toolnames\"");
        refused(json!({"always": {"tool_names": ["a"], "names": []}}), "always has the unknown key \"names\"");
    }

    #[test]
    fn a_tool_under_both_always_and_never_is_refused() {
        refused(
            json!({"always": {"tool_names": ["a", "b"]}, "never": {"toolNames": ["c", "b"]}}),
            "tool \"b\" is listed under both always and never",
        );
    }

    #[test]
    fn null_is_no_policy() {
        refused(json!(null), "\"always\", \"never\" or an object with one of these keys expected");
    }

    #[test]
    fn a_truth_value_is_no_policy() {
        refused(json!(true), "\"always\", \"never\" or an object with one of these keys expected");
        refused(json!(false), "\"always\", \"never\" or an object with one of these keys expected");
    }

    #[test]
    fn a_number_is_no_policy() {
        refused(json!(0), "\"always\", \"never\" or an object with one of these keys expected");
    }

    #[test]
    fn a_list_is_no_policy() {
        refused(json!(["always"]), "\"always\", \"never\" or an object with one of these keys expected");
    }

    #[test]
    fn an_empty_object_is_no_policy() {
        refused(json!({}), "the policy is empty");
    }

    #[test]
    fn a_filter_that_is_no_object_is_refused() {
        for filter in [json!(null), json!(true), json!("a"), json!(["a"])] {
            refused(json!({"never": filter}), "never must be an object with tool_names or read_only");
        }
    }

    #[test]
    fn a_filter_without_a_condition_is_refused() {
        refused(json!({"never": {}}), "never is empty");
        refused(json!({"always": {"tool_names": ["a"]}, "never": {}}), "never is empty");
    }

    #[test]
    fn names_that_are_no_list_are_refused() {
        for names in [json!("a"), json!(null), json!({"a": true}), json!(1)] {
            refused(json!({"always": {"tool_names": names}}), "tool_names must be a list of names that are not empty");
        }
    }

    #[test]
    fn an_empty_list_of_names_is_refused() {
        refused(json!({"always": {"tool_names": []}}), "tool_names is empty");
        refused(json!({"never": {"tool_names": [], "read_only": true}}), "tool_names is empty");
    }

    #[test]
    fn a_name_that_is_no_name_is_refused() {
        for name in [json!(""), json!("  "), json!(1), json!(null), json!(["a"])] {
            refused(
                json!({"never": {"tool_names": ["a", name]}}),
                "tool_names must be a list of names that are not empty",
            );
        }
    }

    #[test]
    fn a_claim_that_is_neither_true_nor_false_is_refused() {
        for claim in [json!("true"), json!(1), json!(null)] {
            refused(json!({"never": {"read_only": claim}}), "read_only must be true or false");
        }
    }

    #[test]
    fn a_key_in_two_spellings_is_refused() {
        refused(json!({"never": {"tool_names": ["a"], "toolNames": ["a"]}}), "never has tool_names in two spellings");
        refused(json!({"always": {"read_only": true, "readOnly": false}}), "always has read_only in two spellings");
    }

    #[test]
    fn the_same_claim_under_both_is_refused() {
        refused(
            json!({"always": {"read_only": true}, "never": {"readOnly": true}}),
            "read_only true is said under both always and never",
        );
    }

    #[test]
    fn lists_of_names_have_one_normal_form() {
        let policy = parse(json!({"never": {"toolNames": ["b", "a", "b"]}, "always": {"tool_names": ["c"]}})).unwrap();
        assert_eq!(policy.to_value(), json!({"always": {"tool_names": ["c"]}, "never": {"tool_names": ["a", "b"]}}));
    }

    #[test]
    fn claims_have_one_normal_form() {
        let policy = parse(json!({"never": {"readOnly": true}, "always": {"read_only": false}})).unwrap();
        assert_eq!(policy.to_value(), json!({"always": {"read_only": false}, "never": {"read_only": true}}));
    }

    #[test]
    fn snake_case_and_camel_case_mean_the_same() {
        let snake = json!({"never": {"tool_names": ["a"], "read_only": true}});
        let camel = json!({"never": {"toolNames": ["a"], "readOnly": true}});
        assert_eq!(parse(snake.clone()), parse(camel));
        assert_eq!(parse(snake.clone()).unwrap().to_value(), snake);
    }

    #[test]
    fn a_policy_is_stored_in_its_normal_form() {
        for value in [json!("always"), json!("never"), json!({"never": {"tool_names": ["a"]}})] {
            let policy: RequireApproval = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(policy).unwrap(), value);
        }
        let error = serde_json::from_value::<RequireApproval>(json!("perhaps")).unwrap_err();
        assert_eq!(error.to_string(), "\"perhaps\" is neither \"always\" nor \"never\"");
    }

    /// For the claims true, false and none, whether each of these tools needs approval.
    fn table(policy: Value, tools: &[&str]) -> Vec<(String, [bool; 3])> {
        let policy = parse(policy).unwrap();
        let claims = [Some(true), Some(false), None];
        tools.iter().map(|tool| ((*tool).to_owned(), claims.map(|claim| policy.needs_approval(tool, claim)))).collect()
    }

    #[test]
    fn the_servers_claim_to_change_nothing_lowers_nothing_by_itself() {
        assert_eq!(table(json!("always"), &["delete_all"]), [("delete_all".to_owned(), [true; 3])]);
        assert_eq!(table(json!({"always": {"tool_names": ["delete_all"]}}), &["delete_all"])[0].1, [true; 3]);
        assert_eq!(table(json!({"never": {"tool_names": ["search"]}}), &["delete_all"])[0].1, [true; 3]);
        assert_eq!(table(json!({"always": {"read_only": false}}), &["delete_all"])[0].1, [true; 3]);
        let both = json!({"always": {"tool_names": ["delete_all"]}, "never": {"read_only": true}});
        assert_eq!(table(both, &["delete_all", "search"])[0].1, [true; 3], "the name beats the claim");
        let mixed = json!({"always": {"tool_names": ["delete_all"], "read_only": false}, "never": {"read_only": true}});
        assert_eq!(table(mixed, &["delete_all"])[0].1, [true; 3]);
    }

    #[test]
    fn the_claim_counts_where_the_operator_goes_by_it() {
        assert_eq!(table(json!({"never": {"read_only": true}}), &["search"])[0].1, [false, true, true]);
        assert_eq!(table(json!({"never": {"read_only": false}}), &["search"])[0].1, [true, false, true]);
        let both = json!({"never": {"tool_names": ["search"], "read_only": true}});
        assert_eq!(table(both.clone(), &["search"])[0].1, [false, true, true]);
        assert_eq!(table(both, &["delete_all"])[0].1, [true; 3]);
    }

    #[test]
    fn a_tool_in_no_list_needs_approval() {
        let policy = json!({"always": {"tool_names": ["write"]}, "never": {"tool_names": ["search"]}});
        let told: Vec<bool> =
            table(policy, &["write", "search", "other", "Search", "searc"]).iter().map(|(_, all)| all[2]).collect();
        assert_eq!(told, [true, false, true, true, true]);
        assert_eq!(table(json!("never"), &["other"])[0].1, [false; 3]);
    }
}
