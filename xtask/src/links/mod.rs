//! Finds links in our markdown that lead nowhere: every relative link, and every page of `docs/errors/` that is named
//! in passing. It looks at files only: what is on the web, and headings inside a page, are not checked.

mod files;
mod markdown;
mod path;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A link that leads nowhere, and the place where it stands.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BrokenLink {
    file: PathBuf,
    line: usize,
    target: String,
}

impl fmt::Display for BrokenLink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: `{}` leads nowhere", self.file.display(), self.line, self.target)
    }
}

/// Reads every markdown file under `root` and returns the broken links, in order of file and line.
pub(crate) fn check(root: &Path) -> Result<Vec<BrokenLink>> {
    let mut broken = Vec::new();
    for file in files::markdown_under(root)? {
        let text = fs::read_to_string(root.join(&file)).with_context(|| format!("reading {}", file.display()))?;
        broken.extend(broken_in(&file, &text, |path| root.join(path).exists()));
    }
    Ok(broken)
}

/// `file` and the paths that `exists` is asked for are relative to the repository.
fn broken_in(file: &Path, text: &str, exists: impl Fn(&Path) -> bool) -> Vec<BrokenLink> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let linked = markdown::link_targets(text).into_iter().map(|target| (folder, target));
    let named = markdown::named_error_pages(text).into_iter().map(|target| (Path::new(""), target));
    let mut seen = BTreeSet::new();
    let mut broken: Vec<BrokenLink> = linked
        .chain(named)
        .filter(|(_, target)| !path::is_elsewhere(&target.text))
        .filter_map(|(folder, target)| {
            let resolved = path::resolve(folder, &target.text);
            let leads_somewhere = resolved.as_deref().is_some_and(&exists);
            // A link to an error page is found both as a link and by its name.
            let is_new = seen.insert((target.line, resolved));
            let link = BrokenLink { file: file.to_path_buf(), line: target.line, target: target.text };
            (!leads_somewhere && is_new).then_some(link)
        })
        .collect();
    broken.sort();
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 5] =
        ["README.md", "docs/guide.md", "docs/errors/README.md", "docs/errors/already_decided.md", "docs/a b.md"];

    /// Checks `text` as if it were the page `docs/guide.md` of a repository with `FILES`.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let exists = |path: &Path| FILES.iter().any(|file| Path::new(file).starts_with(path));
        let broken: Vec<String> =
            broken_in(Path::new("docs/guide.md"), text, exists).iter().map(BrokenLink::to_string).collect();
        assert_eq!(broken, expected);
    }

    #[test]
    fn a_link_is_relative_to_the_page_it_stands_on() {
        check("[errors](errors/README.md) and [home](../README.md)", &[]);
        check("\n[home](README.md)", &["docs/guide.md:2: `README.md` leads nowhere"]);
    }

    #[test]
    fn a_link_with_a_leading_slash_starts_at_the_repository() {
        check("[errors](/docs/errors/README.md)", &[]);
        check("[errors](/errors/README.md)", &["docs/guide.md:1: `/errors/README.md` leads nowhere"]);
    }

    #[test]
    fn a_link_may_lead_to_a_folder() {
        check("[errors](errors/) and [errors](errors)", &[]);
    }

    #[test]
    fn a_link_out_of_the_repository_leads_nowhere() {
        check("[notes](../../README.md)", &["docs/guide.md:1: `../../README.md` leads nowhere"]);
    }

    #[test]
    fn a_fragment_is_not_part_of_the_file_name() {
        check("[a](errors/README.md#codes) [b](#here) [c](errors/README.md?plain=1)", &[]);
        check("[a](gone.md#codes)", &["docs/guide.md:1: `gone.md#codes` leads nowhere"]);
    }

    #[test]
    fn links_to_the_web_are_left_alone() {
        check("[a](https://example.com/x.md) [b](mailto:a@example.com) [c](//example.com/x)", &[]);
    }

    #[test]
    fn an_encoded_space_is_a_space() {
        check("[a](a%20b.md) [b](<a b.md>)", &[]);
    }

    #[test]
    fn an_error_page_named_in_passing_must_exist() {
        check("See `docs/errors/already_decided.md`.", &[]);
        check("See `docs/errors/gone.md`.", &["docs/guide.md:1: `docs/errors/gone.md` leads nowhere"]);
    }

    #[test]
    fn a_pattern_for_error_pages_is_not_a_page() {
        check("One page each: `docs/errors/*.md`, `docs/errors/<code>.md`, docs/errors/.", &[]);
    }

    #[test]
    fn a_broken_link_to_an_error_page_is_reported_once() {
        check("[gone](/docs/errors/gone.md)", &["docs/guide.md:1: `/docs/errors/gone.md` leads nowhere"]);
    }

    #[test]
    fn broken_links_are_listed_in_the_order_of_the_page() {
        check(
            "docs/errors/gone.md\n\n[b](b.md)\n",
            &["docs/guide.md:1: `docs/errors/gone.md` leads nowhere", "docs/guide.md:3: `b.md` leads nowhere"],
        );
    }
}
