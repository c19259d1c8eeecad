//! Agents from files, and people who hold keys.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holdpoint_config::FixedEnvironment;
use holdpoint_core::ids::ActorId;
use holdpoint_server::access::{ApiKey, ApiKeys, Credentials, Role};
use holdpoint_server::agents::{AgentFolder, Catalogue, CatalogueOptions};
use secrecy::ExposeSecret as _;

/// Agents and policies, by path.
pub type Files = BTreeMap<String, String>;

/// The agents of these files, which are written to this folder and are the only ones in it.
pub fn catalogue(folder: &Path, files: &Files, environment: FixedEnvironment) -> Catalogue {
    for inner in ["agents", "policies"] {
        let inner = folder.join(inner);
        if inner.exists() {
            std::fs::remove_dir_all(&inner).unwrap();
        }
        std::fs::create_dir(&inner).unwrap();
    }
    for (path, text) in files {
        std::fs::write(folder.join(path), text).unwrap();
    }
    let folder = &folder.join("agents");
    let options = CatalogueOptions {
        environment: Arc::new(environment),
        working_folder: folder.to_owned(),
        is_strict: true,
        ..CatalogueOptions::default()
    };
    Catalogue::open(AgentFolder::new(folder), options).unwrap()
}

/// Credentials for these people, and the keys that they show.
pub fn keys<const N: usize>(people: [(&str, Role); N]) -> (Credentials, [String; N]) {
    let mut keys = Vec::new();
    let held = people.map(|(name, role)| {
        let new = ApiKey::generate().unwrap();
        keys.push(ApiKey::new(ActorId::new(name).unwrap(), &new.sha256, [role]).unwrap());
        new.secret.expose_secret().to_owned()
    });
    (Credentials { keys: ApiKeys::new(keys).unwrap(), jwt: None }, held)
}
