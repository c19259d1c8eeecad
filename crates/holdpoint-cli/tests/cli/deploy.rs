//! What stands in `deploy/`, as far as it can be tried without a container engine: every setting it names is one, its
//! server file is read, its probes are answered, its image runs as the user it names, and everybody is given the time
//! that a stop takes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdpoint_config::SETTINGS;
use serde_json::Value;

use crate::world::{Place, complained, printed};

/// SHA-256 of a key that only these tests know.
const KEY_SHA256: (&str, &str) =
    ("HOLDPOINT_ADMIN_KEY_SHA256", "2b6ae2c4a1bd0f84c5cb6c0ea3a0be4f1f2dd0b0a2f5a2f3b7a9c1d2e3f40516");

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(deploy(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

fn documents(path: &str) -> Vec<Value> {
    let parse = |document: &str| serde_saphyr::from_str(document).unwrap_or_else(|why| panic!("{path}: {why}"));
    text(path).split("\n---\n").map(parse).collect()
}

/// The Kubernetes object of a kind.
fn object(kind: &str) -> Value {
    let all = documents("kubernetes/holdpoint.yaml");
    all.into_iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

/// Every word of a text that begins so.
fn words<'a>(text: &'a str, begin: &'a str) -> BTreeSet<&'a str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.split(|c| !is_part(c)).filter(|word| word.starts_with(begin) && word.len() > begin.len()).collect()
}

#[test]
fn every_setting_that_is_named_is_one() {
    let variables: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.variable).collect();
    let files = [
        "Dockerfile",
        "compose.yaml",
        "kubernetes/holdpoint.yaml",
        "kubernetes/secret.example.yaml",
        "systemd/holdpoint.service",
        "systemd/environment.example",
    ];
    let named: BTreeSet<String> = files
        .iter()
        .flat_map(|file| words(&text(file), "HOLDPOINT_").into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(named.contains("HOLDPOINT_STORE") && named.len() >= 6, "{named:?}");
    for variable in &named {
        assert!(variables.contains(variable.as_str()), "{variable} is named in deploy/ and is no setting");
    }

    // What is run, with its flags.
    let help = printed(&Place::new().run(&["serve", "--help"]));
    let unit = text("systemd/holdpoint.service");
    let started = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap().to_owned();
    for command in [started, object("Deployment").to_string()] {
        let flags = words(&command, "--");
        assert!(flags.contains("--config"), "{flags:?}");
        for flag in flags {
            assert!(help.contains(flag), "{flag} is named in deploy/ and is no flag");
        }
    }
}

#[test]
fn the_server_file_of_the_cluster_is_read_and_its_probes_are_answered() {
    let place = Place::new();
    let file = object("ConfigMap")["data"]["holdpoint.yaml"].as_str().unwrap().to_owned();
    place.write("holdpoint.yaml", &file);
    assert_eq!(place.run(&["init", "agents-source"]).status.code(), Some(0));
    let agents = place.join("agents-source/agents");
    let flags = ["--agents", agents.to_str().unwrap()];
    let variables = [KEY_SHA256, ("HOLDPOINT_STORE", "sqlite://holdpoint.db")];
    let checked = place.holdpoint(&["check"]).args(flags).envs(variables).output().unwrap();
    assert!(checked.status.success(), "{}{}", printed(&checked), complained(&checked));

    let server = place.serve_with(&flags, &variables);
    let pod = &object("Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let get = &container[probe]["httpGet"];
        let (path, host) = (get["path"].as_str().unwrap(), get["httpHeaders"][0]["value"].as_str().unwrap());
        assert_eq!(ask(&server.address, path, host), 200, "{probe}");
        assert_eq!(ask(&server.address, path, "another.example"), 421, "{probe}");
    }
    assert_eq!(container["ports"][0]["name"], container["readinessProbe"]["httpGet"]["port"]);
    assert_eq!(pod["containers"][0]["ports"][0]["containerPort"], 8888);

    // The health check of the image asks beside the server.
    let url = format!("http://{}", server.address);
    let ready = place.run(&["ready", "--url", &url]);
    assert!(ready.status.success() && printed(&ready).starts_with("ready: "), "{}", complained(&ready));
    server.terminate();
    let gone = place.run(&["ready", "--url", &url]);
    assert_eq!(gone.status.code(), Some(1), "{}", complained(&gone));
}

/// The status of an answer to a request that is meant for a host.
fn ask(address: &str, path: &str, host: &str) -> u16 {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn everybody_waits_longer_than_a_stop_takes() {
    let default = SETTINGS.iter().find(|setting| setting.key == "shutdown_seconds").unwrap();
    let default: u64 = default.default.parse().unwrap();
    let file: Value = serde_saphyr::from_str(object("ConfigMap")["data"]["holdpoint.yaml"].as_str().unwrap()).unwrap();
    let own = file["shutdown_seconds"].as_u64().unwrap();
    let pod = &object("Deployment")["spec"]["template"]["spec"];
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > own + 5);
    for service in ["holdpoint-a", "holdpoint-b"] {
        let compose = &documents("compose.yaml")[0];
        let service = &compose["services"][service];
        let instance = if service["image"].is_null() { &compose["x-instance"] } else { service };
        let grace = instance["stop_grace_period"].as_str().unwrap().trim_end_matches('s').parse::<u64>().unwrap();
        assert!(grace > default + 5);
    }
    let unit = text("systemd/holdpoint.service");
    let grace = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    assert!(grace.trim_end_matches('s').parse::<u64>().unwrap() > default + 5);
}

#[test]
fn nobody_is_root_and_every_image_has_a_version() {
    let docker = text("Dockerfile");
    assert!(docker.contains("\nUSER 65532:65532\n") && docker.contains("--locked") && docker.contains("holdpoint-cli"));
    let images =
        docker.lines().filter_map(|line| line.strip_prefix("FROM ")).map(|line| line.split(' ').next().unwrap());
    let images: Vec<String> = images.filter(|image| *image != "scratch").map(str::to_owned).collect();
    let compose = documents("compose.yaml").remove(0);
    let database = compose["services"]["database"]["image"].as_str().unwrap().to_owned();
    let container = object("Deployment")["spec"]["template"]["spec"]["containers"][0].clone();
    let own =
        [container["image"].as_str().unwrap().to_owned(), compose["x-instance"]["image"].as_str().unwrap().to_owned()];
    for image in images.iter().chain([&database]).chain(&own) {
        let version = image.split_once(':').unwrap_or_else(|| panic!("{image} has no version")).1;
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{image}");
    }
    for image in &own {
        assert_eq!(image, &format!("holdpoint:{}", env!("CARGO_PKG_VERSION")));
    }
    assert!(images[0].starts_with(&format!("rust:{}", env!("CARGO_PKG_RUST_VERSION"))), "{images:?}");

    let security = &container["securityContext"];
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(security["capabilities"]["drop"][0], "ALL");
    assert_eq!(object("Deployment")["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"], true);
    // Every label that is selected is one that a pod has.
    let labels = &object("Deployment")["spec"]["template"]["metadata"]["labels"];
    for selector in [
        &object("Service")["spec"]["selector"],
        &object("Deployment")["spec"]["selector"]["matchLabels"],
        &object("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        &object("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }
    // What is built from is there, and what must not be sent is left out.
    let ignored = text("Dockerfile.dockerignore");
    for kept in ignored.lines().filter_map(|line| line.strip_prefix('!')) {
        assert!(deploy("..").join(kept).exists(), "{kept} is not there");
    }
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let place = Place::new();
    let unit = text("systemd/holdpoint.service");
    // The program is where it is installed on a real machine; here it is where it was built.
    let unit = unit.replace("/usr/local/bin/holdpoint", env!("CARGO_BIN_EXE_holdpoint"));
    place.write("holdpoint.service", &unit);
    let verified = Command::new("systemd-analyze").arg("verify").arg(place.join("holdpoint.service")).output();
    match verified {
        Ok(verified) => assert!(verified.status.success() && verified.stderr.is_empty(), "{}", complained(&verified)),
        // A container has no systemd: then at least nothing is misspelt that a service needs.
        Err(_) => println!("systemd-analyze is not here: the unit was not verified"),
    }
    assert!(unit.contains("\nDynamicUser=yes\n") && unit.contains("\nProtectSystem=strict\n"));
}

/// The image's folder is laid out by the script of the Dockerfile, and the program runs in it with nothing else of this
/// machine, as the image's user.
#[test]
fn the_image_has_all_that_the_program_needs_and_runs_without_root() {
    let place = Place::new();
    let root = place.join("image");
    let laid = Command::new(deploy("image-root.sh")).arg(env!("CARGO_BIN_EXE_holdpoint")).arg(&root).output().unwrap();
    if !is_root() {
        println!("only root may give files away and change its root folder: the image was not run");
        return;
    }
    assert!(laid.status.success(), "{}", complained(&laid));

    let docker = text("Dockerfile");
    let variables = docker.lines().filter_map(|line| line.trim().trim_end_matches('\\').trim().split_once('='));
    let variables = variables.map(|(name, value)| (name.trim_start_matches("ENV "), value));
    let variables: Vec<(&str, &str)> = variables.filter(|(name, _)| name.starts_with("HOLDPOINT_")).collect();
    assert!(variables.contains(&("HOLDPOINT_STORE", "sqlite:///data/holdpoint.db")), "{variables:?}");
    let inside = |args: &[&str]| {
        let mut command = Command::new("chroot");
        command.args(["--userspec=65532:65532".as_ref(), root.as_os_str()]).arg("/holdpoint").args(args);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin").envs(variables.iter().copied());
        command
    };
    // Any port, as others run here; the rest is as in the image.
    let mut serve = inside(&["serve", "--listen", "0.0.0.0:0"]);
    let mut child = serve.env(KEY_SHA256.0, KEY_SHA256.1).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let port = first.trim().rsplit(':').next().unwrap_or_default().trim_end_matches('/').to_owned();
    let ready = inside(&["ready", "--url", &format!("http://127.0.0.1:{port}")]).output().unwrap();
    let owner = fs::metadata(root.join("data/holdpoint.db")).map(|file| file.uid());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ready.status.success(), "{first}{}", complained(&ready));
    assert_eq!(owner.unwrap(), 65532);
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
