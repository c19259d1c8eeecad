//! What protocols know of an agent, read from the files it was built from.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_config::{
    AgentName, ApprovalSpec, DisplaySpec, FieldKind as FieldType, Fill as FillSpec, InputField, OnNote as OnNoteSpec,
    ToolSpec, WhileHeld as WhileHeldSpec,
};
use holdpoint_core::ids::AgentId;
use holdpoint_runtime::agent::AgentGraph;
use holdpoint_runtime::ports::tool::Tool;

use crate::agents::build::{Bundle, Made, turns_max};
use crate::agents::card::{
    DisplayCard, FieldCard, FieldKind, Fill, Held, InterruptCard, OnNote, ServedAgent, ToolCard, WhileHeld,
};
use crate::agents::demo;

/// An agent that was built from this bundle.
pub(super) fn served(bundle: &Bundle, graph: Arc<AgentGraph>, made: &BTreeMap<AgentName, Option<Made>>) -> ServedAgent {
    let mut agent = ServedAgent::new(graph.root().as_str(), graph.clone());
    if let Some(file) = bundle.root() {
        agent.description = file.metadata.description.clone().unwrap_or_default();
        agent.version = file.metadata.version.clone();
        agent.kind = file.spec.kind.name().to_owned();
        agent.labels = file.metadata.labels.clone();
        agent.locale = file.spec.locale.clone();
        agent.turns_max = turns_max(file);
        agent.on_message_while_held = match file.spec.on_message_while_held {
            WhileHeldSpec::Refuse => WhileHeld::Refuse,
            WhileHeldSpec::Queue => WhileHeld::Queue,
            WhileHeldSpec::Supersede => WhileHeld::Supersede,
        };
        agent.interrupt =
            file.confirmation().map(|interrupt| InterruptCard { fields: interrupt.fields.iter().map(field).collect() });
        agent.demo = demo::card(&agent);
    }
    for place in graph.agents() {
        let made = graph.name_of(place).and_then(|name| made.get(name)?.as_ref());
        let tools = made.into_iter().flat_map(|made| &made.tools);
        agent.tools.extend(tools.map(|(tool, spec)| card(place, tool, spec.as_ref())));
    }
    agent
}

fn card(place: &AgentId, tool: &Tool, spec: Option<&ToolSpec>) -> ToolCard {
    let rule = spec.map(ToolSpec::own_rule);
    let held = match &rule {
        Some(ApprovalSpec::Held(held)) => Some(held),
        Some(ApprovalSpec::Never) | None => None,
    };
    ToolCard {
        agent: place.clone(),
        name: tool.name().clone(),
        description: tool.description().to_owned(),
        parameters: tool.schema().clone(),
        held: match held {
            None => Held::Never,
            Some(held) if held.when.is_some() => Held::Sometimes,
            Some(_) => Held::Always,
        },
        effect: tool.effect(),
        display: spec.map(|spec| display(&spec.display)).unwrap_or_default(),
        fill: held.and_then(|held| held.fill).map(|fill| match fill {
            FillSpec::First => Fill::First,
            FillSpec::None => Fill::None,
        }),
        explicit_decision: spec.is_some_and(|spec| spec.explicit_decision),
        on_note: match held.map(|held| held.on_note) {
            Some(OnNoteSpec::Revise) => OnNote::Revise,
            Some(OnNoteSpec::Append) | None => OnNote::Append,
        },
    }
}

fn display(spec: &DisplaySpec) -> DisplayCard {
    DisplayCard {
        stream_tool_use: spec.stream_tool_use,
        stream_tool_result: spec.stream_tool_result,
        as_content: spec.as_content,
        message: spec.message.clone(),
    }
}

fn field(field: &InputField) -> FieldCard {
    let (kind, options) = match &field.kind {
        FieldType::Text => (FieldKind::Text, Vec::new()),
        FieldType::Confirm => (FieldKind::Confirm, Vec::new()),
        FieldType::Select { options } => (FieldKind::Select, options.clone()),
    };
    FieldCard { name: field.name.clone(), kind, label: field.label.clone(), is_required: field.required, options }
}
