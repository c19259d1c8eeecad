//! What the guides say is true: their files are right, and their table is the program's own.

use std::path::{Path, PathBuf};

use crate::world::{Place, complained, printed};

fn guide(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides").join(name)
}

/// The blocks of a page that begin with the name of a file: the name, and the text after it.
fn files(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| {
        let (_, text) = block.split_once('\n')?;
        let (first, rest) = text.split_once('\n')?;
        let name = first.strip_prefix("# ").or_else(|| first.strip_prefix("// "))?;
        let is_file = name.ends_with(".yaml") || name.ends_with(".json");
        is_file.then(|| (name.to_owned(), rest.to_owned()))
    });
    blocks.collect()
}

#[test]
fn the_files_in_the_guide_are_right() {
    let place = Place::new();
    let files = files(&std::fs::read_to_string(guide("agent-files.md")).unwrap());
    assert!(files.len() >= 6, "{files:?}");
    files.iter().for_each(|(name, text)| place.write(name, text));
    let mut command = place.holdpoint(&["check", "--format", "short"]);
    let keys = [("BROKER_TOKEN", "t"), ("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    let checked = command.envs(keys).output().unwrap();
    assert_eq!((checked.status.code(), printed(&checked).as_str()), (Some(0), ""), "{}", complained(&checked));
    assert!(complained(&checked).contains("4 agents can be served"), "{}", complained(&checked));
}

#[test]
fn the_settings_in_the_guide_are_right() {
    let place = Place::new();
    let files = files(&std::fs::read_to_string(guide("server.md")).unwrap());
    let (name, text) = files.iter().find(|(name, _)| name == "holdpoint.yaml").unwrap();
    place.run(&["init", "."]);
    place.write(name, text);
    let checked = place.run(&["check", "--format", "short"]);
    assert_eq!((checked.status.code(), printed(&checked).as_str()), (Some(0), ""));
}

/// Set `HOLDPOINT_UPDATE_DOCS=1` to write the table anew.
#[test]
fn the_table_of_settings_is_the_programs_own() {
    const BEGIN: &str = "<!-- settings -->\n";
    const END: &str = "<!-- end of settings -->";
    let page = std::fs::read_to_string(guide("server.md")).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let own = holdpoint_config::settings_table();
    if std::env::var_os("HOLDPOINT_UPDATE_DOCS").is_some() {
        std::fs::write(guide("server.md"), format!("{before}{BEGIN}{own}{END}{after}")).unwrap();
    } else {
        assert_eq!(table, own, "write it anew with HOLDPOINT_UPDATE_DOCS=1");
    }
}
