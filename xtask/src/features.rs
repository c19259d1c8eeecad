//! The features a crate declares, read from its manifest, so that a new one is checked without being listed again.

/// Names under `[features]`, in the order they are written. `default` is left out: it is no feature of its own.
pub(crate) fn declared(manifest: &str) -> Vec<&str> {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[features]")
        .skip(1)
        .take_while(|line| !is_table_header(line))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().trim_matches('"'))
        .filter(|name| *name != "default")
        .collect()
}

/// A line of a value may open with a bracket too, but only a header is a name between brackets and nothing else.
fn is_table_header(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']') && !line.contains('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_from_their_table_only() {
        let manifest = r#"
            [package]
            name = "holdpoint"

            [features]
            default = ["sqlite"]
            # Several instances.
            postgres = [
                "holdpoint-stores/postgres",
            ]
            sqlite = ["holdpoint-stores/sqlite"]

            [dependencies]
            tokio = "1"
        "#;
        assert_eq!(declared(manifest), ["postgres", "sqlite"]);
    }

    #[test]
    fn a_manifest_without_features_has_none() {
        assert_eq!(declared("[package]\nname = \"xtask\"\n"), [""; 0]);
    }
}
