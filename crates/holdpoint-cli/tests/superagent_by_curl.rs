//! What the page of SuperAgent chat prints, done to the letter: its agent file is served by the real program, and its
//! shell script is run by a real shell with a real curl. The model is a server on loopback.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use holdpoint_testkit::model_server::{Answer, Asked, ModelServer};
use holdpoint_testkit::servers::OwnServer;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Where the printed commands look for the server.
const PRINTED: &str = "localhost:8888";

/// What the model asks before it does anything.
const ASKS: [&str; 2] = ["即将部署 v2.0。", "Please confirm: 此操作不可逆。"];

fn printed(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/superagent/printed");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The commands of the script, in order. Each begins with `curl`, and what is not one is a comment.
fn commands() -> [String; 4] {
    let script = printed("deploy.sh");
    let blocks = script.split("\n\n").map(|block| {
        let lines = block.lines().filter(|line| !line.starts_with('#'));
        lines.collect::<Vec<_>>().join("\n")
    });
    let commands: Vec<String> = blocks.filter(|block| block.starts_with("curl ")).collect();
    commands.try_into().unwrap()
}

/// A folder with the printed agent, and a model that it talks to.
struct World {
    folder: TempDir,
    model: ModelServer,
    redis: Option<OwnServer>,
}

impl World {
    /// The printed agent as it stands, over a Redis of its own.
    fn with_redis() -> Self {
        let redis = OwnServer::redis().unwrap_or_else(|why| panic!("{why}"));
        Self { redis: Some(redis), ..Self::with_agent(&printed("approval-agent.yaml")) }
    }

    fn with_agent(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("agents")).unwrap();
        std::fs::write(folder.path().join("agents/approval-agent.yaml"), text).unwrap();
        let model = ModelServer::start();
        model.script(reply);
        Self { folder, model, redis: None }
    }

    fn holdpoint(&self, listen: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
        command.current_dir(self.folder.path()).args(["serve", "--listen", listen]).env_clear();
        command.env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", self.model.base_url());
        if let Some(redis) = &self.redis {
            command.args(["--store", redis.address()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Serves where the printed commands look, or elsewhere if that address is taken. Tests take turns there.
    fn serve(&self) -> Server {
        let turn = File::create(std::env::temp_dir().join("holdpoint-tests-8888")).unwrap();
        turn.lock().unwrap();
        let mut server = Server::start(self.holdpoint("127.0.0.1:8888")).unwrap_or_else(|complaint| {
            assert!(complaint.contains("another process listens there"), "{complaint}");
            println!("SKIPPED: the address as printed. Port 8888 is taken, so the commands are given another one.");
            Server::start(self.holdpoint("127.0.0.1:0")).unwrap()
        });
        server._turn = Some(turn);
        server
    }
}

/// The model: asks before it deploys, and goes by the answer.
fn reply(asked: &Asked) -> Answer {
    let told = asked.last_user();
    if told.contains("部署") {
        Answer::tokens(ASKS)
    } else if told.contains("Do not go on") {
        Answer::tokens(["好的,", "已取消部署。"])
    } else {
        Answer::tokens(["已收到您的确认。", "部署完成。"])
    }
}

struct Server {
    child: Child,
    address: String,
    _out: BufReader<std::process::ChildStdout>,
    /// Held for as long as the printed address is in use.
    _turn: Option<File>,
}

impl Server {
    /// Gives back what the program complained of if it does not serve.
    fn start(mut command: Command) -> Result<Self, String> {
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        match first.trim().split_once("http://127.0.0.1:") {
            Some((_, port)) => Ok(Self { address: format!("localhost:{port}"), child, _out: out, _turn: None }),
            None => {
                let mut complaint = String::new();
                child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
                assert_eq!(child.wait().unwrap().code(), Some(1), "{complaint}");
                Err(complaint)
            }
        }
    }

    /// Runs a printed command in a shell, and gives back what it printed.
    fn play(&self, command: &str) -> String {
        assert!(command.contains(PRINTED), "{command}");
        let shell = ["-c", &command.replace(PRINTED, &self.address)];
        let Output { status, stdout, stderr } = Command::new("/bin/sh").args(shell).output().unwrap();
        assert!(status.success(), "{command}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the frames of a stream carry.
fn frames(stream: &str) -> Vec<String> {
    let frames = stream.strip_suffix("\n\n").unwrap_or_else(|| panic!("not whole: {stream:?}")).split("\n\n");
    frames.map(|frame| frame.strip_prefix("data: ").unwrap_or_else(|| panic!("{stream:?}")).to_owned()).collect()
}

/// The state that the frame of an interruption carries.
fn interruption(frame: &str) -> Value {
    let state = frame.strip_prefix("\0INTERRUPT:").unwrap_or_else(|| panic!("no interruption: {frame:?}"));
    serde_json::from_str(state).unwrap()
}

#[test]
fn the_printed_commands_do_what_the_page_says() {
    let agent = printed("approval-agent.yaml").replace("checkpoint_backend: redis", "checkpoint_backend: memory");
    play(&World::with_agent(&agent));
}

#[test]
fn the_printed_agent_plays_to_the_letter_on_redis_as_it_asks() {
    let world = World::with_redis();
    let agent = std::fs::read_to_string(world.folder.path().join("agents/approval-agent.yaml")).unwrap();
    assert!(agent.contains("checkpoint_backend: redis"), "as printed");
    play(&world);
    // What was asked and answered is in Redis, and nowhere else.
    assert!(!world.folder.path().join("holdpoint.db").exists());
    let server = Server::start(world.holdpoint("127.0.0.1:0")).unwrap();
    let late: Value = serde_json::from_str(&server.play(&commands()[3])).unwrap();
    assert_eq!(late["reason"], "already_resumed", "after a restart too: {late}");
}

/// Plays the printed commands, in the order of the page.
fn play(world: &World) {
    let server = world.serve();
    let [start, state, confirm, decline] = commands();

    // Nothing was asked yet.
    assert_eq!(server.play(&state), r#"{"interrupted":false}"#);

    // Step 1: the model's words as they come, then the interruption, then the end.
    let told = frames(&server.play(&start));
    assert_eq!((&told[..2], told[3].as_str(), told.len()), (&ASKS.map(str::to_owned)[..], "[DONE]", 4), "{told:?}");
    let pause = interruption(&told[2]);
    let at = pause["timestamp"].as_i64().unwrap();
    let checkpoint = pause["checkpoint_id"].as_str().unwrap();
    let nanos = checkpoint.strip_prefix("approval-agent_deploy-123_").unwrap_or_else(|| panic!("{checkpoint}"));
    assert_eq!(nanos.parse::<i64>().unwrap() / 1_000_000_000, at, "{checkpoint}");
    let label = pause["fields"][0]["label"].clone();
    assert!(label.as_str().is_some_and(|label| !label.is_empty()), "{label}");
    assert_eq!(
        pause,
        json!({
            "session_id": "deploy-123",
            "agent_name": "approval-agent",
            "reason": ASKS.concat(),
            "fields": [{"name": "confirm", "type": "confirm", "label": label, "required": true}],
            "timestamp": at,
            "checkpoint_id": checkpoint,
        })
    );

    // Step 2: the same state.
    let asked: Value = serde_json::from_str(&server.play(&state)).unwrap();
    assert_eq!(asked, json!({"interrupted": true, "state": pause}));

    // Step 3: the run goes on.
    assert_eq!(frames(&server.play(&confirm)), ["已收到您的确认。", "部署完成。", "[DONE]"]);
    assert_eq!(server.play(&state), r#"{"interrupted":false}"#);

    // Step 4 comes too late now, and says so.
    let late: Value = serde_json::from_str(&server.play(&decline)).unwrap();
    assert_eq!(late["reason"], "already_resumed", "{late}");
    assert!(late["error"].as_str().is_some_and(|error| error.starts_with("this session was resumed at ")), "{late}");
    assert_eq!(server.play(&format!("{decline} -s -o /dev/null -w '%{{http_code}}'")), "409");

    // Asked again, the person declines.
    let told = frames(&server.play(&start));
    assert_ne!(interruption(&told[2])["checkpoint_id"], checkpoint, "{told:?}");
    assert_eq!(frames(&server.play(&decline)), ["好的,", "已取消部署。", "[DONE]"]);
    assert_eq!(server.play(&state), r#"{"interrupted":false}"#);

    let asked = world.model.requests();
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert!(asked.iter().all(|asked| asked.model() == "gpt-4o" && asked.path == "/v1/chat/completions"), "{asked:?}");
    assert!(asked[0].instructions().starts_with("你是一个审批助手。"), "{}", asked[0].instructions());
}

#[test]
fn the_printed_agent_is_refused_as_it_stands_since_it_asks_for_redis() {
    let world = World::with_agent(&printed("approval-agent.yaml"));
    let complaint = Server::start(world.holdpoint("127.0.0.1:0")).map(|_| ()).unwrap_err();
    for part in
        ["`checkpoint_backend: redis` is asked for", "approval-agent.yaml:15:25", "hint: leave", "--store redis://"]
    {
        assert!(complaint.contains(part), "{part} is not in {complaint}");
    }
    let db: PathBuf = world.folder.path().join("holdpoint.db");
    assert!(!db.exists(), "nothing was begun");
}
