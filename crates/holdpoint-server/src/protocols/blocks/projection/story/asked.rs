//! People are asked: one request for all calls of a turn that wait, one for each question, and the questions first.

use holdpoint_core::event::{PauseOpened, RunEvent};
use holdpoint_core::ids::{CallPath, FramePath, PauseId};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::pause::{PauseKind, PauseState, PauseView, Subject};
use holdpoint_core::tool::CallState;
use serde_json::json;

use super::super::super::wire::events::{
    Action, ActionRequest, ApprovalRequest, Block, BlockDelta, PauseObject, QuestionReview, Questions, ReviewConfig,
};
use super::super::pen::Place;
use super::super::request::{Ask, AskState, Request, allowed};
use super::super::{Projection, question};
use super::{Scene, Story};

impl Story {
    /// A pause opened. Whether more will wait is known once no call of the turn is still looked at.
    pub(super) fn asked(&mut self, scene: &mut Scene<'_>, opened: &PauseOpened) {
        match opened.kind {
            PauseKind::Approval | PauseKind::Question => self.gathering.push(opened.number),
            PauseKind::Confirmation | PauseKind::InDoubt => {
                let views: Vec<PauseView> = self.view(opened.number).into_iter().collect();
                self.request(scene, opened.kind, &views);
            }
        }
    }

    /// What settles a pause comes after its request.
    pub(super) fn gather_before(&mut self, scene: &mut Scene<'_>, event: &RunEvent) {
        let number = match event {
            RunEvent::PauseDecided(decided) => decided.number,
            RunEvent::PauseExpired(expired) => expired.number,
            RunEvent::PauseWithdrawn(withdrawn) => withdrawn.number,
            _ => return,
        };
        if self.gathering.contains(&number)
            && let Some(frame) = self.frame_of(number)
        {
            self.ask(scene, &frame);
        }
    }

    /// Asks where every call of a turn has been looked at.
    pub(super) fn gather_after(&mut self, scene: &mut Scene<'_>) {
        while let Some(frame) = self.gathering.iter().find_map(|number| self.complete_frame(*number)) {
            self.ask(scene, &frame);
        }
    }

    fn complete_frame(&self, number: u32) -> Option<FramePath> {
        let frame = self.frame_of(number)?;
        let turn = self.run.frame(&frame).and_then(|frame| frame.turn());
        let is_looked_at = turn.is_some_and(|turn| turn.calls.iter().any(|call| call.state == CallState::Requested));
        (!is_looked_at).then_some(frame)
    }

    fn ask(&mut self, scene: &mut Scene<'_>, frame: &FramePath) {
        let (now, later): (Vec<u32>, Vec<u32>) =
            self.gathering.iter().partition(|number| self.frame_of(**number).as_ref() == Some(frame));
        self.gathering = later;
        let views: Vec<PauseView> = now.into_iter().filter_map(|number| self.view(number)).collect();
        let (questions, calls): (Vec<PauseView>, Vec<PauseView>) =
            views.into_iter().partition(|view| view.kind() == PauseKind::Question);
        for question in &questions {
            self.request(scene, PauseKind::Question, std::slice::from_ref(question));
        }
        self.request(scene, PauseKind::Approval, &calls);
    }

    fn request(&mut self, scene: &mut Scene<'_>, kind: PauseKind, views: &[PauseView]) {
        let Some(first) = views.first() else { return };
        let paths: Vec<CallPath> = views.iter().filter_map(call_path).collect();
        let calls = paths.iter().filter_map(|path| self.calls.get(path));
        let subagent = self.subagent(&first.pause.subject.frame());
        let mut request = Request {
            key: scene.requests.next_key(scene.pen.session),
            run: self.run.id(),
            message_id: Projection::message_id(self.run.id()),
            kind,
            asks: views.iter().map(|view| self.ask_of(view)).collect(),
            end: None,
            is_content: matches!(kind, PauseKind::Question | PauseKind::Confirmation)
                || calls.clone().all(|asked| asked.call.is_content()),
            subagent,
        };
        request.asks.iter_mut().for_each(|ask| ask.allowed = allowed(kind, ask.approvals_needed));
        let sentence = calls.clone().find_map(|asked| asked.call.sentence.clone());
        let place = match request.is_content {
            true => Place::Content(self.group_status(scene.pen.outline)),
            false => Place::Work { summary: sentence.as_deref(), is_item: false },
        };
        match kind {
            PauseKind::Question => {
                let block = Block::ApprovalRequest(Box::new(start(&request, scene, false)));
                scene.pen.block(place, block, Some(BlockDelta::Questions(questions(&request))));
            }
            PauseKind::Approval | PauseKind::Confirmation | PauseKind::InDoubt => {
                let block = Block::ApprovalRequest(Box::new(start(&request, scene, true)));
                scene.pen.block_at_once(place, block);
            }
        }
        let index = scene.requests.add(request);
        for path in paths {
            self.calls.entry(path).and_modify(|asked| asked.request = Some(index));
        }
    }

    fn ask_of(&self, view: &PauseView) -> Ask {
        let pause = &view.pause;
        let (tool_use_id, name, args, args_sha256) = match (&view.call, &pause.subject) {
            (Some(call), _) => {
                (Some(call.call_id.clone()), call.tool.to_string(), call.arguments.clone(), Some(call.digest))
            }
            (None, Subject::Words { text, .. }) => (None, "confirmation".to_owned(), message(text), None),
            (None, Subject::Call { .. }) => (None, "confirmation".to_owned(), message(""), None),
        };
        let questions = match pause.kind {
            PauseKind::Question => question::shown(&args, self.locale()),
            PauseKind::Approval | PauseKind::Confirmation | PauseKind::InDoubt => Vec::new(),
        };
        let expires_at = match &pause.state {
            PauseState::Open { expires_at } => *expires_at,
            PauseState::Decided(_) | PauseState::Expired { .. } | PauseState::Withdrawn { .. } => None,
        };
        Ask {
            pause: pause.id,
            agent: view.agent.clone(),
            tool_use_id,
            name,
            args,
            args_sha256,
            questions,
            allowed: allowed(pause.kind, pause.approvals_needed()),
            approvals_needed: pause.approvals_needed(),
            opened_at: pause.opened_at,
            expires_at,
            rule: pause.terms.rule.clone(),
            reason: pause.reason.clone(),
            state: AskState::Open,
        }
    }

    fn view(&self, number: u32) -> Option<PauseView> {
        self.run.pause_view(PauseId { run: self.run.id(), number })
    }

    fn frame_of(&self, number: u32) -> Option<FramePath> {
        let pause = self.run.pause(PauseId { run: self.run.id(), number }).ok()?;
        Some(pause.subject.frame())
    }
}

fn call_path(view: &PauseView) -> Option<CallPath> {
    view.call.as_ref().map(|call| call.path.clone())
}

fn message(text: &str) -> CanonicalJson {
    CanonicalJson::from_serialize(&json!({"message": text})).unwrap_or_else(|_| question::empty())
}

/// The start of a request; what is asked stands in it, unless it is a question.
fn start(request: &Request, scene: &Scene<'_>, is_complete: bool) -> ApprovalRequest {
    let asks = &request.asks;
    let action =
        |ask: &Ask| Action { name: ask.name.clone(), args: ask.args.clone(), tool_use_id: ask.tool_use_id.clone() };
    let review = |ask: &Ask| ReviewConfig { require_approval: true, timeout: timeout(ask) };
    ApprovalRequest {
        approval_key: request.key.clone(),
        actions: is_complete.then(|| asks.iter().map(action).collect()),
        review_configs: is_complete.then(|| asks.iter().map(review).collect()),
        pause: PauseObject {
            kind: request.kind.name(),
            ids: asks.iter().map(|ask| ask.pause.to_string()).collect(),
            args_sha256: asks.iter().map(|ask| ask.args_sha256.map(|digest| digest.to_string())).collect(),
            allowed_decisions: asks.iter().map(|ask| ask.allowed.to_vec()).collect(),
            expires_at: asks.iter().filter_map(|ask| ask.expires_at).min().map(|at| at.to_string()),
            server_time: scene.at.to_string(),
            rule: asks.iter().find_map(|ask| ask.rule.clone()),
            reason: asks.iter().find_map(|ask| ask.reason.clone()),
            approvals_needed: asks.iter().map(|ask| ask.approvals_needed).max().unwrap_or(1),
        },
        subagent: request.subagent.clone(),
    }
}

fn questions(request: &Request) -> Questions {
    let asks = &request.asks;
    let asked = |ask: &Ask| ActionRequest { name: ask.name.clone(), args: question::arguments(&ask.questions, None) };
    let review =
        |ask: &Ask| QuestionReview { action_name: ask.name.clone(), allowed_decisions: ["approve", "edit", "reject"] };
    Questions {
        action_requests: asks.iter().map(asked).collect(),
        review_configs: asks.iter().map(review).collect(),
        timeout_seconds: asks.first().map_or(0, timeout),
    }
}

/// Whole seconds from the question to its deadline; 0 for never.
fn timeout(ask: &Ask) -> u64 {
    ask.expires_at.map_or(0, |end| end.since(ask.opened_at).as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX))
}
