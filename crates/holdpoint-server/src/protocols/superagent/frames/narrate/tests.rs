use holdpoint_core::decision::{Decision, Manner};
use holdpoint_core::event::{CallAllowed, CallStarted, PauseDecided, ReplyRefused};
use holdpoint_core::ids::ActorId;
use holdpoint_core::message::{Content, Usage};
use holdpoint_core::pause::PauseKind;
use holdpoint_core::tool::Allowance;
use serde_json::json;

use super::super::super::testing::{Story, at, brief, call, call_of, served, shared};
use super::*;
use crate::agents::{Held, OnNote, ToolCard};
use holdpoint_core::ids::ToolName;
use holdpoint_core::tool::Effect;

/// Frames as one line each.
fn shown(frames: Vec<Frame>) -> Vec<String> {
    let line = |frame: Frame| match frame {
        Frame::Text(text) => format!("text {text}"),
        Frame::Thinking(text) => format!("thinking {text}"),
        Frame::ToolCall(call) => format!("call {} {} {} {:?}", call.id, call.name, call.arguments, call.status),
        Frame::ToolResult(result) => format!("result {} {} {}", result.id, result.result, result.is_error),
        Frame::Progress(at) => format!("progress {} {} {}/{}", at.agent_name, at.step, at.current, at.total),
        Frame::AgentSwitch(to) => format!("switch {} {} {:?}", to.from_agent, to.to_agent, to.reason),
        Frame::Error(error) => format!("error {} {}", error.code, error.message),
        Frame::Interrupt(..) | Frame::Done => unreachable!("the narrator does not end a stream"),
    };
    frames.into_iter().map(line).collect()
}

/// Tells a story from its beginning.
struct Telling {
    story: Story,
    narrator: Narrator,
    told: Vec<String>,
}

impl Telling {
    fn begin() -> Self {
        Self::with(shared())
    }

    fn with(agent: Arc<ServedAgent>) -> Self {
        let story = Story::begin();
        Self { narrator: Narrator::new(story.run.clone(), agent), story, told: Vec::new() }
    }

    fn happens(&mut self, event: RunEvent) {
        let item = self.story.happens(event);
        self.tell(item);
    }

    fn tell(&mut self, item: WatchItem) {
        self.told.extend(shown(self.narrator.tell(item)));
    }

    fn says(&mut self, text: &str) {
        let item = self.story.says(text);
        self.tell(item);
    }

    fn replies(&mut self, text: Option<&str>, calls: Vec<CallRecord>) {
        let item = self.story.replies(text, calls);
        self.tell(item);
    }

    fn starts(&mut self, path: CallPath) {
        self.happens(RunEvent::CallAllowed(CallAllowed { call: path.clone(), by: Allowance::Policy }));
        self.happens(RunEvent::CallStarted(CallStarted { call: path }));
    }

    fn ends(&mut self, path: CallPath, outcome: Outcome) {
        self.happens(RunEvent::CallAnswered(CallAnswered { call: path, outcome }));
    }

    fn finishes(&mut self, end: RunEnd) {
        self.happens(RunEvent::RunFinished(end));
    }

    #[track_caller]
    fn check(&self, told: &[&str], stop: Option<Stop>) {
        assert_eq!(
            (&self.told[..], self.narrator.stop()),
            (&told.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()[..], stop)
        );
    }
}

fn result(text: &str) -> Outcome {
    Outcome::Result(Content::Text(text.to_owned()))
}

fn done(text: &str) -> RunEnd {
    RunEnd::Done(Content::Text(text.to_owned()))
}

#[test]
fn what_the_model_says_is_told_as_it_comes_and_once() {
    let mut telling = Telling::begin();
    telling.says("Hel");
    telling.says("lo");
    telling.replies(Some("Hello"), Vec::new());
    telling.finishes(done("Hello"));
    telling.check(&["text Hel", "text lo"], Some(Stop::Over));
}

#[test]
fn a_reply_without_deltas_is_told_whole() {
    let mut telling = Telling::begin();
    telling.replies(Some("Hello"), Vec::new());
    telling.check(&["text Hello"], None);
}

#[test]
fn what_a_slow_reader_lost_is_told_with_the_whole_reply() {
    let mut telling = Telling::begin();
    telling.says("Hel");
    telling.says("!");
    telling.replies(Some("Hello, world!"), Vec::new());
    telling.check(&["text Hel", "text !", "text \nHello, world!"], None);
}

#[test]
fn a_model_that_began_twice_is_not_told_a_third_time() {
    let mut telling = Telling::begin();
    telling.says("Hel");
    telling.says("Hello");
    telling.replies(Some("Hello"), Vec::new());
    telling.check(&["text Hel", "text Hello"], None);
}

#[test]
fn replies_that_are_written_down_together_are_each_told_once() {
    let mut telling = Telling::begin();
    let mut invalid = call("c1", "look", json!({}));
    invalid.problem = Some("there is no tool named \"look\"".to_owned());
    telling.says("I look. ");
    telling.says("I cannot.");
    telling.replies(Some("I look. "), vec![invalid]);
    telling.replies(Some("I cannot."), Vec::new());
    telling.finishes(done("I cannot."));
    telling.check(
        &["text I look. ", "text I cannot.", "call c1 look {} Error", "result c1 there is no tool named \"look\" true"],
        Some(Stop::Over),
    );
}

#[test]
fn words_that_follow_an_outcome_come_after_it() {
    let mut telling = Telling::begin();
    telling.replies(None, vec![call("c1", "look", json!({}))]);
    telling.starts(at(1, 0));
    telling.says("It is ");
    telling.check(&["call c1 look {} Calling"], None);
    telling.ends(at(1, 0), result("green"));
    telling.says("green.");
    telling.replies(Some("It is green."), Vec::new());
    telling.check(&["call c1 look {} Calling", "result c1 green false", "text It is ", "text green."], None);
}

#[test]
fn words_of_a_reply_that_was_refused_do_not_count_for_the_next() {
    let mut telling = Telling::begin();
    telling.says("Hel");
    telling.happens(RunEvent::ReplyRefused(ReplyRefused {
        frame: FramePath::root(),
        code: "call_id_empty".to_owned(),
        message: String::new(),
        usage: Usage::default(),
    }));
    telling.says("Hi");
    telling.replies(Some("Hi"), Vec::new());
    telling.check(&["text Hel", "text Hi"], None);
}

#[test]
fn a_call_comes_before_its_result() {
    let mut telling = Telling::begin();
    telling
        .replies(Some("Let me see."), vec![call("c1", "look", json!({"at": 1})), call("c2", "look", json!({"at": 2}))]);
    telling.starts(at(1, 0));
    telling.starts(at(1, 1));
    telling.ends(at(1, 1), result("two"));
    telling.ends(at(1, 0), Outcome::Failure("broken".to_owned()));
    telling.check(
        &[
            "text Let me see.",
            "call c1 look {\"at\":1} Calling",
            "call c2 look {\"at\":2} Calling",
            "result c2 two false",
            "result c1 broken true",
        ],
        None,
    );
}

#[test]
fn a_call_that_never_ran_is_told_with_its_outcome() {
    let mut telling = Telling::begin();
    let mut invalid = call("c2", "look", json!("not an object"));
    invalid.problem = Some("the arguments are not a JSON object".to_owned());
    telling.replies(None, vec![call("c1", "deploy", json!({})), invalid]);
    telling.ends(at(1, 0), Outcome::Denied("no".to_owned()));
    telling.check(
        &[
            "call c2 look {\"input\":\"not an object\"} Error",
            "result c2 the arguments are not a JSON object true",
            "call c1 deploy {} Error",
            "result c1 no true",
        ],
        None,
    );
}

#[test]
fn a_held_call_stops_the_stream_when_nothing_else_is_under_way() {
    let mut telling = Telling::begin();
    telling.replies(None, vec![call("c1", "look", json!({})), call("c2", "deploy", json!({}))]);
    let item = telling.story.pauses(PauseKind::Approval, at(1, 1));
    telling.tell(item);
    telling.starts(at(1, 0));
    telling.check(&["call c1 look {} Calling"], None);
    telling.ends(at(1, 0), result("seen"));
    telling.check(&["call c1 look {} Calling", "result c1 seen false"], Some(Stop::Held));
}

#[test]
fn what_was_paused_goes_on_in_a_stream_of_its_own() {
    let mut story = Story::begin();
    story.replies(Some("I deploy now."), vec![call("c1", "deploy", json!({"version": "2.0"}))]);
    story.pauses(PauseKind::Approval, at(1, 0));
    let narrator = Narrator::new(story.run.clone(), shared());
    let mut telling = Telling { story, narrator, told: Vec::new() };
    telling.check(&[], Some(Stop::Held));
    telling.happens(RunEvent::PauseDecided(PauseDecided {
        number: 1,
        decision: Decision::Approve,
        by: ActorId::local(),
        via: None,
        rule: None,
        request: None,
        manner: Manner::Given,
    }));
    telling.happens(RunEvent::CallStarted(CallStarted { call: at(1, 0) }));
    telling.ends(at(1, 0), result("ok"));
    telling.replies(Some("Done."), Vec::new());
    telling.finishes(done("Done."));
    telling
        .check(&["call c1 deploy {\"version\":\"2.0\"} Calling", "result c1 ok false", "text Done."], Some(Stop::Over));
}

#[test]
fn an_agent_used_as_a_tool_is_progress_and_its_words_are_its_own() {
    let mut telling = Telling::begin();
    let agent = ToolKind::Agent { agent: brief("approval-agent/ask_billing"), turns_max: None };
    telling.replies(None, vec![call_of(agent, "c1", "ask_billing", json!({"input": "?"}))]);
    telling.starts(at(1, 0));
    let item = telling.story.replies_in(at(1, 0), Some("inner words"), Vec::new());
    telling.tell(item);
    telling.ends(at(1, 0), result("inner words"));
    telling.check(
        &[
            "call c1 ask_billing {\"input\":\"?\"} Calling",
            "progress billing started 1/1",
            "progress billing finished 1/1",
            "result c1 inner words false",
        ],
        None,
    );
}

#[test]
fn a_hand_off_is_a_switch_of_agents() {
    let mut telling = Telling::begin();
    let handoff = ToolKind::Handoff { to: brief("approval-agent/transfer_to_support") };
    telling.replies(None, vec![call_of(handoff, "c1", "transfer_to_support", json!({"reason": "an invoice"}))]);
    telling.happens(RunEvent::CallAllowed(CallAllowed { call: at(1, 0), by: Allowance::Policy }));
    telling.happens(RunEvent::HandedOff(HandedOff { call: at(1, 0) }));
    telling.check(&["switch approval-agent support \"an invoice\""], None);
}

#[test]
fn an_output_that_was_not_said_is_said_at_the_end() {
    let mut telling = Telling::begin();
    telling.replies(Some("Wait."), vec![call("c1", "look", json!({}))]);
    telling.starts(at(1, 0));
    telling.ends(at(1, 0), result("42"));
    telling.finishes(done("42"));
    telling.check(&["text Wait.", "call c1 look {} Calling", "result c1 42 false", "text 42"], Some(Stop::Over));
}

#[test]
fn an_end_that_is_no_output_is_an_error() {
    let mut telling = Telling::begin();
    telling.finishes(RunEnd::Failed { code: "turns_exhausted".to_owned(), message: "too many".to_owned() });
    telling.check(&["error turns_exhausted too many"], Some(Stop::Over));
    let mut telling = Telling::begin();
    telling.finishes(RunEnd::Cancelled { by: ActorId::local(), reason: "aborted".to_owned(), request: None });
    telling.check(&["error aborted the run was ended by local: aborted"], Some(Stop::Over));
}

#[test]
fn other_runs_of_the_session_are_passed_over() {
    let mut telling = Telling::begin();
    let other = "run_0198c0ffee00700080000000deadbeef".parse().unwrap();
    telling.tell(WatchItem::Delta { run: other, frame: FramePath::root(), delta: Delta::Text("x".to_owned()) });
    let event = RunEvent::RunFinished(done("x"));
    telling.tell(WatchItem::Event { seq: 9, run: other, at: Timestamp::from_millis(0), event });
    telling.check(&[], None);
}

#[test]
fn a_tool_is_shown_as_its_operator_wants() {
    let card = |name: &str, display: DisplayCard| ToolCard {
        agent: AgentId::root("approval-agent").unwrap(),
        name: ToolName::new(name).unwrap(),
        description: String::new(),
        parameters: json!({}),
        held: Held::Never,
        effect: Effect::ReadOnly,
        display,
        fill: None,
        explicit_decision: false,
        on_note: OnNote::Append,
    };
    let plain = DisplayCard::default();
    let mut agent = served();
    agent.tools = vec![
        card("quiet", DisplayCard { stream_tool_use: false, ..plain.clone() }),
        card("discreet", DisplayCard { stream_tool_result: false, ..plain.clone() }),
        card("outspoken", DisplayCard { as_content: true, stream_tool_use: false, ..plain }),
    ];
    let mut telling = Telling::with(Arc::new(agent));
    let names = ["quiet", "discreet", "outspoken"];
    telling.replies(None, names.iter().map(|name| call(name, name, json!({}))).collect());
    for index in 0..3 {
        telling.starts(at(1, index));
        telling.ends(at(1, index), result("seen"));
    }
    telling.check(&["call discreet discreet {} Calling", "text seen"], None);
}
