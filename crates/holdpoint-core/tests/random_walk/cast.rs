//! A random agent graph: agents with their own ways of ending, and tools of every kind.

use holdpoint_core::agent::{AgentBrief, FinishRule};
use holdpoint_core::ids::{AgentId, ToolName};
use holdpoint_core::json::Digest;
use holdpoint_core::tool::{Effect, ToolKind};

use crate::common::brief;
use crate::dice::Dice;

#[derive(Clone)]
pub struct Cast {
    pub root: AgentBrief,
    pub turns_max: Option<u32>,
    tools: Vec<Tool>,
}

#[derive(Clone)]
struct Tool {
    name: ToolName,
    kind: ToolKind,
    effect: Effect,
}

impl Cast {
    pub fn new(dice: &mut Dice) -> Self {
        let root = agent(dice, "Support");
        let turns_max = budget(dice, 9);
        let count = 3 + dice.below(6);
        let tools = (0..count).map(|number| tool(dice, number)).collect();
        Self { root, turns_max, tools }
    }

    /// A tool as the agent at `asking` knows it.
    pub fn tool(&self, dice: &mut Dice, asking: &AgentId) -> (ToolName, ToolKind, Effect) {
        let Tool { name, mut kind, effect } = dice.pick(&self.tools).clone();
        if let ToolKind::Agent { agent, .. } | ToolKind::Handoff { to: agent } = &mut kind {
            // Hand-offs go back and forth between a few agents, so that ids of calls meet again.
            agent.id = if asking.as_str().len() > 60 { self.root.id.clone() } else { asking.through(&name) };
            agent.digest = Digest::of(agent.id.as_str().as_bytes());
        }
        (name, kind, effect)
    }
}

fn tool(dice: &mut Dice, number: usize) -> Tool {
    // Few names, so that rules meet tools of the same name in other families.
    let name = ToolName::new(*dice.pick(&["pay", "act", "computer", "computer_use_preview", "look"])).unwrap();
    let kind = match dice.below(14) {
        0..=4 => ToolKind::Function,
        5 => ToolKind::Shell,
        6 => ToolKind::Computer,
        7 => ToolKind::Mcp { server: ToolName::new(*dice.pick(&["files", "mail"])).unwrap() },
        8 => ToolKind::Question,
        9..=11 => ToolKind::Agent { agent: agent(dice, "inner"), turns_max: budget(dice, 4) },
        _ => ToolKind::Handoff { to: agent(dice, "other") },
    };
    let effect = *dice.pick(&[Effect::AtMostOnce, Effect::AtMostOnce, Effect::Idempotent, Effect::ReadOnly]);
    let is_agent = matches!(kind, ToolKind::Agent { .. } | ToolKind::Handoff { .. });
    let name = if is_agent { ToolName::new(format!("agent_{number}")).unwrap() } else { name };
    Tool { name, kind, effect }
}

fn agent(dice: &mut Dice, id: &str) -> AgentBrief {
    let finish = match dice.below(8) {
        0 => FinishRule::FirstToolResult,
        1 => FinishRule::AfterTools(vec![ToolName::new("act").unwrap()]),
        _ => FinishRule::ModelText,
    };
    AgentBrief { finish, checks_input: dice.chance(15), checks_output: dice.chance(15), ..brief(id) }
}

fn budget(dice: &mut Dice, bound: usize) -> Option<u32> {
    dice.chance(40).then(|| dice.below(bound) as u32)
}
