use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use holdpoint_core::tool::Effect;
use holdpoint_runtime::ports::tool::{AutoDecision, RunTool, ToolContext, ToolShape};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ApplyPatchTool, FolderEditor, PatchEditor, PatchOperation, PatchRunner, read_operations};
use crate::testing::{arguments, context, holds};

/// Writes down what it is asked.
#[derive(Clone, Default)]
struct Notebook(Arc<Mutex<Vec<PatchOperation>>>);

#[async_trait]
impl PatchEditor for Notebook {
    async fn apply(&self, _: &ToolContext, operations: Vec<PatchOperation>) -> Result<String, String> {
        self.0.lock().unwrap().extend(operations);
        Ok("noted".to_owned())
    }
}

fn create(path: &str, diff: &str) -> Value {
    json!({"type": "create_file", "path": path, "diff": diff})
}

fn update(path: &str, diff: &str) -> Value {
    json!({"type": "update_file", "path": path, "diff": diff})
}

fn delete(path: &str) -> Value {
    json!({"type": "delete_file", "path": path})
}

#[test]
fn an_apply_patch_tool_changes_files_and_runs_at_most_once() {
    let tool = ApplyPatchTool::builder(Notebook::default()).build().unwrap();
    assert_eq!((tool.name().as_str(), tool.effect()), ("apply_patch", Effect::AtMostOnce));
    assert!(matches!(tool.shape(), ToolShape::ApplyPatch));
}

#[tokio::test]
async fn approval_is_set_as_on_every_tool() {
    let builder = || ApplyPatchTool::builder(Notebook::default());
    let call = json!({"operation": delete("a")});
    assert!(!holds(&builder().build().unwrap(), &call).await);
    assert!(holds(&builder().needs_approval(true).build().unwrap(), &call).await);
    let when = builder().needs_approval_when(|_, arguments: Value| async move {
        read_operations(&arguments).map(|all| all.iter().any(|one| matches!(one, PatchOperation::DeleteFile { .. })))
    });
    let tool = when.build().unwrap();
    assert!(holds(&tool, &call).await);
    assert!(holds(&tool, &json!({"operations": [create("a", "+a"), delete("b")]})).await);
    assert!(!holds(&tool, &json!({"operation": create("a", "+a")})).await);
}

#[test]
fn a_decider_in_code_is_passed_through() {
    let builder = ApplyPatchTool::builder(Notebook::default()).needs_approval(true);
    assert!(builder.on_approval("ci", |_, _| async { AutoDecision::Approve }).build().unwrap().has_decider());
}

#[tokio::test]
async fn one_operation_and_a_list_are_both_read() {
    let notebook = Notebook::default();
    let runner = PatchRunner(notebook.clone());
    let told = runner.run(context(), arguments(&json!({"operation": create("a", "+a")}))).await.unwrap();
    assert_eq!(told.to_text(), r#"{"output":"noted","status":"completed"}"#);
    let mut gone = delete("c");
    gone["diff"] = json!("");
    let call = json!({"operations": [update("b", "-b"), delete("d"), gone]});
    runner.run(context(), arguments(&call)).await.unwrap();
    let path = |path: &str| path.to_owned();
    let expected = [
        PatchOperation::CreateFile { path: path("a"), diff: "+a".to_owned() },
        PatchOperation::UpdateFile { path: path("b"), diff: "-b".to_owned() },
        PatchOperation::DeleteFile { path: path("d") },
        PatchOperation::DeleteFile { path: path("c") },
    ];
    assert_eq!(*notebook.0.lock().unwrap(), expected);
}

#[test]
fn arguments_that_cannot_run_break_the_schema_and_are_refused() {
    let tool = ApplyPatchTool::builder(Notebook::default()).build().unwrap();
    let mut with_diff = delete("a");
    with_diff["diff"] = json!("-a");
    for value in [
        json!({}),
        json!({"operations": []}),
        json!({"operations": delete("a")}),
        json!({"operation": [delete("a")]}),
        json!({"operation": delete("a"), "operations": [delete("b")]}),
        json!({"operation": with_diff}),
        json!({"operation": {"type": "create_file", "path": "a"}}),
        json!({"operation": {"type": "update_file", "path": "a", "diff": null}}),
        json!({"operation": {"type": "move_file", "path": "a", "diff": ""}}),
        json!({"operation": {"type": "delete_file"}}),
        json!({"operation": {"path": "a", "diff": "+a"}}),
        json!({"operation": {"type": "delete_file", "path": "a", "root": "/"}}),
        json!({"operations": [delete("a")], "approved": true}),
        json!({"operations": vec![delete("a"); ApplyPatchTool::OPERATIONS_MAX + 1]}),
    ] {
        assert!(tool.validate(&arguments(&value)).is_err(), "{value}");
        assert!(read_operations(&value).is_err(), "{value}");
    }
    for value in [json!({"operation": create("a", "")}), json!({"operations": [delete("a"), update("b", "-b")]})] {
        assert_eq!(tool.validate(&arguments(&value)), Ok(()), "{value}");
    }
}

/// A folder with these files in it.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in files {
        let place = folder.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    folder
}

/// Every file below a folder, and every folder without files.
fn files(folder: &Path) -> BTreeMap<String, String> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_symlink() {
                found.insert(name, "a link".to_owned());
            } else if path.is_dir() {
                found.insert(format!("{name}/"), String::new());
                walk(root, &path, found);
            } else {
                found.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

fn listed(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

async fn run_with(editor: FolderEditor, operations: Value) -> (String, String) {
    let call = arguments(&json!({"operations": operations}));
    let told = PatchRunner(editor).run(context(), call).await.unwrap().to_text();
    let told: Value = serde_json::from_str(&told).unwrap();
    let part = |name: &str| told[name].as_str().unwrap().to_owned();
    (part("status"), part("output"))
}

async fn run(folder: &TempDir, operations: Value) -> (String, String) {
    run_with(FolderEditor::new(folder.path()).unwrap(), operations).await
}

fn completed(output: &str) -> (String, String) {
    ("completed".to_owned(), output.to_owned())
}

fn failed(output: &str) -> (String, String) {
    ("failed".to_owned(), output.to_owned())
}

#[tokio::test]
async fn files_are_created_updated_and_deleted() {
    let folder = folder(&[("a.txt", "one\ntwo\n"), ("old.txt", "x")]);
    let operations = json!([
        update("./a.txt", "@@\n-two\n+TWO\n"),
        create("deep/er/new.txt", "+hello\n+world\n"),
        delete("old.txt"),
    ]);
    let told = run(&folder, operations).await;
    assert_eq!(told, completed("updated ./a.txt\ncreated deep/er/new.txt\ndeleted old.txt"));
    let expected = [("a.txt", "one\nTWO\n"), ("deep/", ""), ("deep/er/", ""), ("deep/er/new.txt", "hello\nworld\n")];
    assert_eq!(files(folder.path()), listed(&expected));
}

#[tokio::test]
async fn nothing_is_changed_when_one_operation_cannot_be_done() {
    let before = [("a", "a\n"), ("b", "b\n"), ("f/", ""), ("f/x", "")];
    for (operation, problem) in [
        (create("b", "+c"), "b: it exists already"),
        (create("n", "c"), "n: line 1 of the diff does not belong there: a line that begins with `+` expected"),
        (update("n", "-c"), "n: it does not exist"),
        (update("b", "-c"), "b: hunk 1: its lines do not stand in the file, or only before the hunk above"),
        (delete("n"), "n: it does not exist"),
        (delete("f"), "f: it is not a regular file"),
        (update("f", "-c"), "f: it is not a regular file"),
        (create("f", "+c"), "f: it is not a regular file"),
        (delete("a"), "a: one operation for each file expected"),
        (update("./a", "-a"), "./a: one operation for each file expected"),
    ] {
        let folder = folder(&[("a", "a\n"), ("b", "b\n"), ("f/x", "")]);
        let told = run(&folder, json!([update("a", "-a\n+A\n"), operation])).await;
        assert_eq!(told, failed(problem));
        assert_eq!(files(folder.path()), listed(&before), "{problem}");
    }
}

#[tokio::test]
async fn a_path_that_leads_out_of_the_folder_is_refused() {
    let outside = folder(&[("secret", "s\n")]);
    let folder = folder(&[("a", "a\n"), ("f/x", "x\n")]);
    let absolute = outside.path().join("secret").display().to_string();
    let climb = format!("../{}/secret", outside.path().file_name().unwrap().display());
    let below = "a path below the folder expected, without `..` and not absolute";
    let plain = "a path without characters that do not show expected";
    for (path, problem) in [
        (absolute.as_str(), below),
        (climb.as_str(), below),
        ("..", below),
        ("f/../a", below),
        ("f/../../a", below),
        ("/", "the path of a file expected"),
        ("f/", "the path of a file expected"),
        (".", "the path of a file expected, not too deep"),
        ("", "a path of 1 to 1024 bytes expected"),
        ("a\u{0}b", plain),
        ("a\nb", plain),
        ("a\u{202e}txt", plain),
        ("a\u{200b}", plain),
        (&"d/".repeat(40)[..79], "the path of a file expected, not too deep"),
        (&"x".repeat(1_025), "a path of 1 to 1024 bytes expected"),
    ] {
        for operation in [create(path, "+x"), update(path, "-s"), delete(path)] {
            assert_eq!(run(&folder, json!([operation])).await, failed(&format!("{path}: {problem}")), "{path:?}");
        }
    }
    assert_eq!(files(outside.path()), listed(&[("secret", "s\n")]));
    assert_eq!(files(folder.path()), listed(&[("a", "a\n"), ("f/", ""), ("f/x", "x\n")]));
}

#[cfg(unix)]
#[tokio::test]
async fn a_symbolic_link_is_not_followed() {
    use std::os::unix::fs::symlink;
    let outside = folder(&[("secret", "s\n")]);
    let folder = folder(&[("a", "a\n"), ("f/x", "x\n")]);
    symlink(outside.path(), folder.path().join("out")).unwrap();
    symlink(outside.path().join("secret"), folder.path().join("link")).unwrap();
    symlink(outside.path().join("none"), folder.path().join("dangling")).unwrap();
    symlink("a", folder.path().join("inside")).unwrap();
    symlink("f", folder.path().join("inner")).unwrap();
    let before = files(folder.path());
    for path in ["out/secret", "out/new", "link", "dangling", "inside", "inner/x", "inner/new"] {
        for operation in [create(path, "+x"), update(path, "-s\n+t"), delete(path)] {
            let told = run(&folder, json!([operation])).await;
            assert_eq!(told, failed(&format!("{path}: it leads through a symbolic link")), "{path}");
        }
    }
    assert_eq!(files(outside.path()), listed(&[("secret", "s\n")]));
    assert_eq!(files(folder.path()), before);
}

#[cfg(unix)]
#[tokio::test]
async fn a_hard_link_elsewhere_keeps_its_text() {
    let outside = folder(&[("shared", "a\n")]);
    let folder = folder(&[]);
    fs::hard_link(outside.path().join("shared"), folder.path().join("shared")).unwrap();
    assert_eq!(run(&folder, json!([update("shared", "-a\n+b")])).await, completed("updated shared"));
    assert_eq!(files(outside.path()), listed(&[("shared", "a\n")]));
    assert_eq!(files(folder.path()), listed(&[("shared", "b\n")]));
}

#[cfg(unix)]
#[tokio::test]
async fn a_changed_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder(&[("run.sh", "a\n")]);
    let script = folder.path().join("run.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(run(&folder, json!([update("run.sh", "-a\n+b"), create("new", "+x")])).await.0, "completed");
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o750);
    // As the process's mask has it, and not only for its owner.
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path().join("new")), mode(&plain));
}

#[tokio::test]
async fn files_beyond_the_bound_are_refused() {
    let folder = folder(&[("large", "0123456789\n"), ("small", "0\n")]);
    let editor = FolderEditor::new(folder.path()).unwrap().file_bytes_max(8);
    for (operation, path, bytes) in [
        (update("large", "-0123456789\n+0"), "large", 11),
        (delete("large"), "large", 11),
        (update("small", "-0\n+0123456789"), "small", 11),
        (create("new", "+0123456789"), "new", 11),
    ] {
        let problem = format!("{path}: it has or would have {bytes} bytes, at most 8 are accepted");
        assert_eq!(run_with(editor.clone(), json!([operation])).await, failed(&problem));
    }
    assert_eq!(files(folder.path()), listed(&[("large", "0123456789\n"), ("small", "0\n")]));
}

#[tokio::test]
async fn a_file_that_is_not_text_is_deleted_but_not_changed() {
    let folder = folder(&[]);
    fs::write(folder.path().join("bin"), [0xff, 0xfe, 0x00]).unwrap();
    assert_eq!(run(&folder, json!([update("bin", "-a")])).await, failed("bin: it is not text"));
    assert_eq!(run(&folder, json!([delete("bin")])).await, completed("deleted bin"));
}

#[tokio::test]
async fn what_was_changed_is_put_back_when_a_later_file_cannot_be_written() {
    // `new` as a folder and as a file: each passes its check, and the second cannot be written.
    let folder = folder(&[("a", "a\n"), ("gone", "g\n")]);
    let operations = json!([update("a", "-a\n+A\n"), delete("gone"), create("new/file", "+x"), create("new", "+y")]);
    let (status, output) = run(&folder, operations).await;
    assert_eq!(status, "failed");
    assert!(output.ends_with("; nothing was changed"), "{output}");
    assert_eq!(files(folder.path()), listed(&[("a", "a\n"), ("gone", "g\n")]));
}

#[tokio::test]
async fn calls_at_the_same_time_do_not_lose_each_others_changes() {
    let lines: String = (0..20).map(|n| format!("{n}\n")).collect();
    let folder = folder(&[("a", &lines)]);
    let editor = FolderEditor::new(folder.path()).unwrap();
    let calls = (0..20).map(|n| {
        let (editor, diff) = (editor.clone(), format!("-{n}\n+{n}!\n"));
        tokio::spawn(async move { run_with(editor, json!([update("a", &diff)])).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), completed("updated a"));
    }
    let expected: String = (0..20).map(|n| format!("{n}!\n")).collect();
    assert_eq!(files(folder.path()), listed(&[("a", &expected)]));
}

#[test]
fn an_editor_needs_a_folder() {
    let folder = folder(&[("file", "")]);
    assert!(FolderEditor::new(folder.path().join("none")).is_err());
    assert!(FolderEditor::new(folder.path().join("file")).is_err());
}
