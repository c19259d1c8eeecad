//! What the server itself says to people, in the languages that ship: one file each.

mod language;

use std::sync::LazyLock;

use serde::Deserialize;

pub(super) use language::Language;

/// The labels in one language.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Labels {
    /// The option that stands for an answer in one's own words.
    pub(super) other: OptionLabel,
}

/// What an option reads.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OptionLabel {
    /// What is chosen.
    pub(super) label: String,
    /// What it means.
    pub(super) description: String,
}

static VIETNAMESE: LazyLock<Labels> = LazyLock::new(|| read(include_str!("vi.json")));
static ENGLISH: LazyLock<Labels> = LazyLock::new(|| read(include_str!("en.json")));
static CHINESE: LazyLock<Labels> = LazyLock::new(|| read(include_str!("zh.json")));
static JAPANESE: LazyLock<Labels> = LazyLock::new(|| read(include_str!("ja.json")));

fn read(file: &str) -> Labels {
    serde_json::from_str(file).expect("the files ship with the server, and a test reads each")
}

impl Language {
    /// The labels in it.
    pub(super) fn labels(self) -> &'static Labels {
        match self {
            Self::Vietnamese => &VIETNAMESE,
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
            Self::Japanese => &JAPANESE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_every_label() {
        let languages = [Language::Vietnamese, Language::English, Language::Chinese, Language::Japanese];
        let labels: Vec<&str> = languages.iter().map(|language| language.labels().other.label.as_str()).collect();
        assert_eq!(labels, ["Khác", "Other", "其他", "その他"]);
        assert!(languages.iter().all(|language| !language.labels().other.description.is_empty()));
        assert_eq!(VIETNAMESE.other.description, "Nhập giá trị tùy chỉnh");
    }
}
