//! The agents of the trials. Each makes one call, whose effect is counted outside of the server.

use std::path::Path;

use anyhow::Result;

/// An agent of the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Agent {
    pub(super) name: &'static str,
    effects: &'static str,
    approval: &'static str,
    /// Where its effect is counted.
    path: &'static str,
}

/// Its call waits for as long as it takes, and may happen once.
pub(super) const PAYER: Agent = Agent { name: "payer", effects: "at_most_once", approval: "required", path: "now" };

/// Its call may be repeated under the same key.
pub(super) const REPEATER: Agent = Agent { name: "repeater", effects: "idempotent", approval: "required", path: "now" };

/// Its call must be decided at once.
pub(super) const HASTY: Agent =
    Agent { name: "hasty", effects: "at_most_once", approval: "{ timeout_seconds: 2 }", path: "now" };

/// Its call waits for a while.
pub(super) const PATIENT: Agent =
    Agent { name: "patient", effects: "at_most_once", approval: "{ timeout_seconds: 6 }", path: "now" };

/// Its call runs at once and takes until it is let go; it may be repeated.
pub(super) const SLOW_REPEATER: Agent =
    Agent { name: "slow-repeater", effects: "idempotent", approval: "never", path: "held" };

/// Its call runs at once and takes until it is let go; it may happen once.
pub(super) const SLOW_PAYER: Agent =
    Agent { name: "slow-payer", effects: "at_most_once", approval: "never", path: "held" };

const ALL: [Agent; 6] = [PAYER, REPEATER, HASTY, PATIENT, SLOW_REPEATER, SLOW_PAYER];

const SCRIPT: &str = r#"{"replies": [{"calls": [{"tool": "book", "arguments": {"amount": 12}}]}, "Done."]}"#;

impl Agent {
    /// Whether its call may be repeated under the same key.
    pub(super) fn may_repeat(self) -> bool {
        self.effects == "idempotent"
    }
}

/// Writes the agents' files, for calls that are counted at this address.
pub(super) fn write(folder: &Path, counter: &str) -> Result<()> {
    std::fs::write(folder.join("script.json"), SCRIPT)?;
    for Agent { name, effects, approval, path } in ALL {
        let file = format!(
            "apiVersion: holdpoint/v1
kind: Agent
metadata: {{ name: {name} }}
spec:
  type: chat_model_agent
  model: {{ primary: scripted/script.json }}
  system_prompt: You keep the books.
  tools:
    - name: book
      description: Books an amount.
      parameters: {{ type: object }}
      http: {{ method: POST, url: \"{counter}/{path}\", timeout_seconds: 120 }}
      effects: {effects}
      approval: {approval}
"
        );
        std::fs::write(folder.join(format!("{name}.yaml")), file)?;
    }
    Ok(())
}
