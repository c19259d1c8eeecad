//! The conversation: what people said, what the model replied, what tools gave back.

use serde::{Deserialize, Serialize};

use crate::ids::ToolName;
use crate::json::CanonicalJson;

/// What somebody said or a tool gave back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text(String),
    /// A JSON value.
    Json(CanonicalJson),
    /// Text, images and files, in order.
    Parts(Vec<Part>),
}

impl Content {
    /// The content as one text: parts that are not text are named, not shown.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Json(json) => json.as_str().to_owned(),
            Self::Parts(parts) => parts.iter().map(Part::to_text).collect::<Vec<_>>().join("\n"),
        }
    }

    /// Roughly how many bytes the content takes up.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Json(json) => json.as_str().len(),
            Self::Parts(parts) => parts.iter().map(Part::size).sum(),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// One part of a content that is not only text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// Plain text.
    Text(String),
    /// An image, by address or as base64 data.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// Where it is or what it is.
        source: Source,
    },
    /// A file, by address or as base64 data.
    File {
        /// Such as `application/pdf`.
        media_type: String,
        /// What it is called.
        name: String,
        /// Where it is or what it is.
        source: Source,
    },
}

/// Where an image or file comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An address.
    Url(String),
    /// The bytes in base64.
    Base64(String),
}

impl Part {
    fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Image { media_type, .. } => format!("[image {media_type}]"),
            Self::File { media_type, name, .. } => format!("[file {name} {media_type}]"),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image { source, .. } | Self::File { source, .. } => match source {
                Source::Url(text) | Source::Base64(text) => text.len(),
            },
        }
    }
}

/// One entry of a conversation, as a model is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A person's words.
    User(Content),
    /// The model's words and the calls it asked for.
    Assistant {
        /// Its words, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Its calls, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<AskedCall>,
    },
    /// What became of a call.
    ToolResult {
        /// The provider's id of the call.
        call_id: String,
        /// The tool.
        tool: ToolName,
        /// What the model is told.
        output: Content,
        /// Whether the tool ran and gave this.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl Item {
    /// About how many bytes of content it has.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::User(content) | Self::ToolResult { output: content, .. } => content.size(),
            Self::Assistant { text, calls } => {
                let arguments: usize = calls.iter().map(|call| call.arguments.as_str().len()).sum();
                text.as_ref().map_or(0, String::len) + arguments
            }
        }
    }
}

/// A call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedCall {
    /// The provider's id of the call.
    pub call_id: String,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments. Text that was not JSON stands here as a JSON string.
    pub arguments: CanonicalJson,
}

/// What model calls cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Model calls.
    #[serde(skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Tokens read.
    #[serde(skip_serializing_if = "is_zero")]
    pub input_tokens: u64,
    /// Tokens written.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_tokens: u64,
}

impl Usage {
    /// One request that read and wrote so many tokens.
    pub fn request(input_tokens: u64, output_tokens: u64) -> Self {
        Self { requests: 1, input_tokens, output_tokens }
    }

    /// Adds what another call cost.
    pub fn add(&mut self, other: Usage) {
        self.requests = self.requests.saturating_add(other.requests);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
