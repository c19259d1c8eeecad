//! The kinds of problems. Each has a stable name.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])+ $code:ident = $name:literal,)+) => {
        /// What kind of problem a diagnostic is about. Names are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])+ $code,)+
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$code),+];

            /// The code's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }
        }
    };
}

codes! {
    /// The file or folder cannot be read.
    FileUnreadable = "file_unreadable",
    /// The file is larger than is read.
    FileTooLarge = "file_too_large",
    /// The file is not UTF-8.
    FileNotUtf8 = "file_not_utf8",
    /// There are more files or problems than are looked at.
    TooMany = "too_many",
    /// The text is not YAML.
    YamlSyntax = "yaml_syntax",
    /// A key stands twice in one mapping.
    YamlDuplicateKey = "yaml_duplicate_key",
    /// The file is nested too deeply, or stands for too many values.
    YamlBudget = "yaml_budget",
    /// YAML that is not used here: tags, merge keys, several documents.
    YamlFeature = "yaml_feature",
    /// A field that does not exist.
    UnknownField = "unknown_field",
    /// A field that must be there and is not.
    MissingField = "missing_field",
    /// A value of another type than is expected.
    WrongType = "wrong_type",
    /// A value that is not among those allowed.
    BadValue = "bad_value",
    /// A number or a count beyond its bounds.
    OutOfRange = "out_of_range",
    /// A name that is not one.
    BadName = "bad_name",
    /// Something that exists elsewhere and is not supported here.
    Unsupported = "unsupported",
    /// A setting that has no effect where it stands.
    NoEffect = "no_effect",
    /// Settings that exclude each other, or that need each other.
    Conflict = "conflict",
    /// An environment variable that is not set.
    MissingVariable = "missing_variable",
    /// `${…}` that cannot be read, or that stands where no secret may go.
    BadTemplate = "bad_template",
    /// A secret that is written into a file.
    SecretInFile = "secret_in_file",
    /// Two agents with one name.
    DuplicateAgent = "duplicate_agent",
    /// Two tools of one agent with one name.
    DuplicateTool = "duplicate_tool",
    /// Two rules with one name.
    DuplicateRule = "duplicate_rule",
    /// An agent that does not exist.
    UnknownAgent = "unknown_agent",
    /// An agent that cannot be used, since one that it needs cannot.
    BrokenAgent = "broken_agent",
    /// Agents that run inside each other without end.
    AgentCycle = "agent_cycle",
    /// A built-in tool, or a kind of reference, that does not exist.
    UnknownTool = "unknown_tool",
    /// An MCP server that is not configured.
    UnknownMcpServer = "unknown_mcp_server",
    /// A JSON schema that is not one.
    BadSchema = "bad_schema",
    /// An address that is not one.
    BadUrl = "bad_url",
    /// A `{name}` that is no argument of the tool.
    UnknownPlaceholder = "unknown_placeholder",
    /// A header that cannot be sent.
    BadHeader = "bad_header",
    /// An expression that cannot be read.
    BadExpression = "bad_expression",
    /// An expression that asks for too much work.
    CostlyExpression = "costly_expression",
    /// A held call that would run without anybody having looked.
    Unattended = "unattended",
    /// A server that strangers could reach, without credentials.
    OpenServer = "open_server",
}

impl Code {
    /// The code of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
