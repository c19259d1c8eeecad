//! From what a link says to the file it means. Never touches the disk.

use std::path::{Component, Path, PathBuf};

/// Whether the target is not a file of ours: on the web, or on the same page.
pub(super) fn is_elsewhere(target: &str) -> bool {
    target.is_empty() || target.starts_with('#') || target.starts_with("//") || has_scheme(target)
}

/// The file meant by `target` on a page in `folder`, relative to the repository; `None` when it lies outside.
pub(super) fn resolve(folder: &Path, target: &str) -> Option<PathBuf> {
    let file = target.split(['#', '?']).next().unwrap_or_default();
    let decoded = percent_decoded(file);
    let joined = match decoded.strip_prefix('/') {
        Some(from_root) => PathBuf::from(from_root),
        None => folder.join(decoded),
    };
    without_dots(&joined)
}

fn has_scheme(target: &str) -> bool {
    let is_scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    target.split_once(':').is_some_and(|(before, _)| is_scheme(before))
}

fn without_dots(path: &Path) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir if !resolved.pop() => return None,
            _ => {}
        }
    }
    Some(resolved)
}

/// Escapes that are not two hexadecimal digits stay as they are.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        match (first, after) {
            (b'%', [high, low, tail @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                bytes.push(hex_value(*high) << 4 | hex_value(*low));
                rest = tail;
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase() - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_followed_up_to_the_repository() {
        let docs = Path::new("docs/guides");
        assert_eq!(resolve(docs, "../errors/./a.md"), Some("docs/errors/a.md".into()));
        assert_eq!(resolve(docs, "../../README.md"), Some("README.md".into()));
        assert_eq!(resolve(docs, "../../../README.md"), None);
    }

    #[test]
    fn escapes_become_the_bytes_they_stand_for() {
        assert_eq!(percent_decoded("a%20b%C3%A9.md"), "a bé.md");
        assert_eq!(percent_decoded("100%"), "100%");
        assert_eq!(percent_decoded("%zz"), "%zz");
    }

    #[test]
    fn a_colon_later_in_the_name_is_no_scheme() {
        assert!(is_elsewhere("https://example.com"));
        assert!(!is_elsewhere("notes/10:30.md"));
    }
}
