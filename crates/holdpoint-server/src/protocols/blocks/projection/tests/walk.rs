//! A random session: what models, tools and people do, one small thing after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use holdpoint_core::decision::{Decision, DecisionInput, Manner};
use holdpoint_core::ids::{ActorId, CallPath, FramePath};
use holdpoint_core::input::{Confirmation, Input, ReplyInput, SupersedeInput};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::pause::{PauseKind, PauseView, questions};
use holdpoint_core::policy::{PauseTerms, Screening, Verdict};
use holdpoint_core::tool::{CallRecord, Outcome};
use holdpoint_runtime::ports::model::Delta;
use serde_json::json;

use super::super::testing::{Session, call, handoff, nested, question, reply, trader};

const STEPS: usize = 90;
const RUNS_MAX: usize = 3;

/// A session that went its way.
pub(super) struct Walk {
    pub(super) session: Session,
    dice: Dice,
    /// What models are about to say: what is still to be spoken, and the reply that will be stored.
    speaking: BTreeMap<(usize, FramePath), Speech>,
    ids: u32,
}

struct Speech {
    ahead: Vec<Delta>,
    reply: ReplyInput,
}

impl Walk {
    pub(super) fn from(seed: u64) -> Self {
        let mut walk = Self { session: Session::with(trader()), dice: Dice(seed), speaking: BTreeMap::new(), ids: 0 };
        walk.session.start("go");
        for _ in 0..STEPS {
            walk.step();
        }
        walk
    }

    fn step(&mut self) {
        if self.session.runs.len() < RUNS_MAX && self.dice.chance(4) {
            self.session.start("and this");
        }
        let run = self.dice.below(self.session.runs.len());
        match self.dice.below(100) {
            0..45 => self.model(run),
            45..60 => self.screen(run),
            60..75 => self.tools(run),
            75..92 => self.people(run),
            92..96 => self.session.wait(self.dice.below(90) as u64),
            _ => self.mishap(run),
        }
    }

    /// A model begins to speak, says more, or ends.
    fn model(&mut self, run: usize) {
        let work = self.session.work(run);
        let Some(frame) = self.dice.any(&work.call_model) else {
            // A model may be heard before it is written down that it was asked.
            if self.dice.chance(15) {
                self.session.speaks(run, &FramePath::root(), Delta::Text("early ".to_owned()));
            }
            return;
        };
        let key = (run, frame.clone());
        if !self.speaking.contains_key(&key) {
            let speech = self.speech(&frame);
            self.speaking.insert(key.clone(), speech);
        }
        let Some(speech) = self.speaking.get_mut(&key) else { return };
        match speech.ahead.is_empty() {
            false => {
                let delta = speech.ahead.remove(0);
                self.session.speaks(run, &frame, delta);
            }
            true => {
                let reply = self.speaking.remove(&key).map(|speech| speech.reply);
                reply.into_iter().for_each(|reply| self.session.reply(run, reply));
            }
        }
    }

    fn speech(&mut self, frame: &FramePath) -> Speech {
        let thinking = self.dice.chance(40).then(|| format!("thought {} ", self.dice.below(100)));
        let text = self.dice.chance(60).then(|| format!("words {} and more", self.dice.below(100)));
        let calls = match text.is_some() && self.dice.chance(40) {
            true => Vec::new(),
            false => (0..=self.dice.below(3)).map(|_| self.call(frame)).collect(),
        };
        let mut ahead = Vec::new();
        // An attempt that failed was heard too, or a part of it.
        if self.dice.chance(20) {
            ahead.push(Delta::Thinking("never mind".to_owned()));
        }
        if self.dice.chance(20) {
            ahead.push(Delta::Text("broken o".to_owned()));
        }
        // Deltas may be lost, and thoughts may come when nobody listens any more.
        let is_heard = self.dice.chance(85);
        let pieces = |text: &Option<String>| -> Vec<String> {
            let text = text.as_deref().filter(|_| is_heard).unwrap_or_default();
            text.split_inclusive(' ').map(str::to_owned).collect()
        };
        ahead.extend(pieces(&thinking).into_iter().map(Delta::Thinking));
        ahead.extend(pieces(&text).into_iter().map(Delta::Text));
        if self.dice.chance(10) {
            ahead.push(Delta::Thinking("late".to_owned()));
        }
        let asks_confirmation =
            (calls.is_empty() && self.dice.chance(30)).then_some(Confirmation { reason: None, expires_at: None });
        Speech {
            ahead,
            reply: ReplyInput { frame: frame.clone(), thinking, text, calls, asks_confirmation, ..reply() },
        }
    }

    fn call(&mut self, frame: &FramePath) -> CallRecord {
        self.ids += 1;
        // An id that stands for another call makes the whole reply useless.
        let id = if self.dice.chance(3) { "call_1".to_owned() } else { format!("call_{}", self.ids) };
        match self.dice.below(12) {
            0 | 1 => question(&id, &format!("Which of {}?", self.ids)),
            2 if frame.depth() < 2 => nested(&id),
            3 => handoff(&id),
            4 => call(&id, "quiet", json!({"n": self.ids})),
            5 => call(&id, "only_result", json!({"n": self.ids})),
            6 => call(&id, "show_chart", json!({"n": self.ids})),
            7 => CallRecord { problem: Some("no such tool".to_owned()), ..call(&id, "unknown", json!({})) },
            _ => call(&id, "execute_trade", json!({"symbol": "VNM", "n": self.ids})),
        }
    }

    /// Policy looks at some of the calls, or at all.
    fn screen(&mut self, run: usize) {
        let all = self.session.work(run).screen;
        let calls: Vec<CallPath> = all.into_iter().filter(|_| self.dice.chance(90)).collect();
        let now = self.session.now;
        let mut screenings = Vec::new();
        for call in calls {
            let verdict = match self.dice.below(10) {
                0..3 => Verdict::Allow,
                3 => Verdict::Deny { by: ActorId::local(), message: None },
                4 => Verdict::Invalid("not like this".to_owned()),
                _ => Verdict::Hold {
                    reason: None,
                    expires_at: self.dice.chance(60).then(|| now.after(Duration::from_secs(60))),
                    terms: PauseTerms { quorum: 1 + u32::from(self.dice.chance(15)), ..PauseTerms::default() },
                },
            };
            screenings.push(Screening { call, verdict, guardrails: Vec::new() });
        }
        if !screenings.is_empty() {
            self.session.offer(run, Input::Screened(screenings));
        }
    }

    /// Tools begin, end, or are left behind by a process that died.
    fn tools(&mut self, run: usize) {
        let work = self.session.work(run);
        let words = work.word.iter().map(|call| (call.clone(), "no".to_owned())).collect::<Vec<_>>();
        if !words.is_empty() {
            self.session.offer(run, Input::Worded(words));
        }
        if let Some(call) = self.dice.any(&work.run_tools) {
            let input = match self.dice.chance(10) {
                true => Input::HoldAgain { calls: vec![call], reason: "it changed".to_owned(), expires_at: None },
                false => Input::StartCalls(vec![call]),
            };
            self.session.offer(run, input);
        }
        let started = self.session.runs[run].started_calls();
        if let Some(call) = self.dice.any(&started) {
            let input = match self.dice.below(10) {
                0 => Input::Orphaned(vec![call]),
                1 => Input::CallEnded { call, outcome: Outcome::Failure("broke".to_owned()) },
                _ => Input::CallEnded { call, outcome: Outcome::Result(Content::Text("done".to_owned())) },
            };
            self.session.offer(run, input);
        }
    }

    /// People decide one pause, all of them at once, or say something new instead.
    fn people(&mut self, run: usize) {
        self.session.expire(run);
        let open = self.session.runs[run].open_pauses();
        let Some(one) = self.dice.any(&open) else { return };
        match self.dice.below(10) {
            0 => {
                let (content, by) = ("leave it".into(), ActorId::local());
                self.session.offer(run, Input::Supersede(SupersedeInput { content, by, via: None, request: None }));
            }
            1..4 => {
                let decisions = open.iter().map(|view| self.decision(view, Manner::Implied)).collect();
                self.session.offer(run, Input::Decisions(decisions));
            }
            _ => {
                let decision = self.decision(&one, Manner::Given);
                self.session.offer(run, Input::Decision(decision));
            }
        }
    }

    fn decision(&mut self, view: &PauseView, manner: Manner) -> DecisionInput {
        let approves = self.dice.chance(60);
        let decision = match view.kind() {
            PauseKind::Approval if approves && self.dice.chance(20) => {
                let arguments = CanonicalJson::parse(r#"{"symbol":"FPT"}"#).unwrap();
                Decision::ApproveEdited { arguments }
            }
            PauseKind::Approval | PauseKind::Confirmation if approves => Decision::Approve,
            PauseKind::Question if approves => {
                let asked = view.arguments().map(|arguments| questions(arguments).unwrap()).unwrap_or_default();
                let answer = |asked: holdpoint_core::pause::Question| (asked.question, vec!["A".to_owned()]);
                Decision::Answer { answers: asked.into_iter().map(answer).collect() }
            }
            PauseKind::InDoubt if approves => Decision::RunAgain,
            PauseKind::InDoubt => Decision::Abandon,
            _ if self.dice.chance(30) => Decision::Respond { content: "in my words".to_owned() },
            _ if self.dice.chance(50) => Decision::Deny { message: None },
            _ => Decision::deny("not now"),
        };
        let by = ActorId::new(if self.dice.chance(50) { "ana" } else { "ben" }).unwrap();
        let note = self.dice.chance(15).then(|| "a word of mine".to_owned());
        DecisionInput { manner, note, ..DecisionInput::new(view.id(), decision, by) }
    }

    fn mishap(&mut self, run: usize) {
        let by = ActorId::local();
        let input = match self.dice.below(4) {
            0 => Input::Cancel { by, reason: "enough".to_owned(), request: None },
            1 => Input::Fail { code: "model_failed".to_owned(), message: "it did".to_owned() },
            _ => Input::Stage { content: "one more thing".into(), by, request: None },
        };
        self.session.offer(run, input);
    }
}

/// Chance with a seed: splitmix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn any<T: Clone>(&mut self, list: &[T]) -> Option<T> {
        (!list.is_empty()).then(|| list[self.below(list.len())].clone())
    }
}
