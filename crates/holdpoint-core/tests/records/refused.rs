//! Records that no reader may accept: each is a good journal with one thing wrong.

use serde_json::{Value, json};

use crate::common::{World, play};
use crate::shelf::Shelf;

pub struct Case {
    pub name: &'static str,
    pub code: &'static str,
    pub says: &'static str,
    pub text: String,
}

pub fn all() -> Vec<Case> {
    let mut cases = of_the_form();
    cases.extend(of_the_beginning_and_end());
    cases.extend(of_replies());
    cases.extend(of_pauses());
    cases.extend(of_terms());
    cases.extend(of_calls());
    cases.extend(of_rules());
    cases
}

const HELD: &str = r#"user: go
    model: pay#a {"amount": 5} & sell#b
    policy: hold until +10m & hold"#;
const VOTED: &str = r#"given tool ask: question
    user: go
    model: pay#a & sell#b & ask#c {"questions": [{"question": "Which?"}]}
    policy: hold quorum 3 & hold until +10m then approve & hold
    ana: approve #1"#;
const APPROVED: &str = "user: go\n model: pay#a & sell#b\n policy: hold\n ana: approve #1";
const STARTED: &str = "user: go\n model: pay#a & sell#b\n policy: allow & hold\n start";
const DONE: &str = "user: go\n model: pay#a\n policy: allow\n tool 1.0: \"paid\"\n model says: done";

/// The form itself: what is newer, cut short or not known.
fn of_the_form() -> Vec<Case> {
    let body = |value: Value| move |entries: &mut Vec<Value>| entries[0]["body"] = value.clone();
    let truncated = |entries: &mut Vec<Value>| {
        let text = entries[1]["body"].to_string();
        entries[1]["body"] = json!(text[..text.len() / 2]);
    };
    let corrupt = "state_corrupt";
    vec![
        case("format-newer", "format_newer", "format 2", HELD, |entries| entries[1]["body"]["v"] = json!(2)),
        case("format-newer-of-another-shape", "format_newer", "format 7", HELD, body(json!({"v": 7, "facts": [1]}))),
        case("format-missing", "not_a_state", "format number is missing", HELD, |entries| {
            entries[1]["body"].as_object_mut().unwrap().remove("v");
        }),
        case("format-zero", "not_a_state", "no format 0", HELD, |entries| entries[0]["body"]["v"] = json!(0)),
        case("format-a-text", "not_a_state", "format number", HELD, |entries| entries[0]["body"]["v"] = json!("1")),
        case("format-negative", "not_a_state", "format number", HELD, |entries| entries[0]["body"]["v"] = json!(-1)),
        case("truncated", "not_a_state", "format number", HELD, truncated),
        case("empty", "not_a_state", "format number", HELD, |entries| entries[0]["body"] = json!("")),
        case("a-list", "not_a_state", "format number", HELD, body(json!([1, 2]))),
        case("unknown-event", corrupt, "unknown variant `pause.forgotten`", HELD, |entries| {
            push(&mut entries[2], json!({"pause.forgotten": {"number": 1}}));
        }),
        case("unknown-field-beside-the-events", corrupt, "unknown field `extra`", HELD, |entries| {
            entries[0]["body"]["extra"] = json!(1);
        }),
        case("unknown-field-in-an-event", corrupt, "unknown field `approved`", HELD, |entries| {
            entries[2]["body"]["events"][0]["pause.opened"]["approved"] = json!(true);
        }),
        case("unknown-field-in-a-decision", corrupt, "unknown field `reason`", HELD, |entries| {
            push(&mut entries[2], decided(1, json!({"deny": {"reason": "no"}})));
        }),
        case("unknown-decision", corrupt, "unknown variant `maybe`", HELD, |entries| {
            push(&mut entries[2], decided(1, json!("maybe")));
        }),
        case("a-key-twice-in-the-arguments", corrupt, "duplicate", HELD, |entries| {
            let text = entries[1]["body"].to_string().replace(r#"{"amount":5}"#, r#"{"amount":5,"amount":6}"#);
            entries[1]["body"] = json!(text);
        }),
        case("a-path-too-deep", corrupt, "call path", HELD, |entries| {
            let deep = ["1.0"; 17].join("/");
            push(&mut entries[2], json!({"call.started": {"call": deep}}));
        }),
        case("a-digest-that-is-none", corrupt, "sha-256", HELD, |entries| {
            entries[2]["body"]["events"][0]["pause.opened"]["sha256"] = json!("abc");
        }),
    ]
}

fn of_the_beginning_and_end() -> Vec<Case> {
    vec![
        corrupt("no-entries", "no beginning", HELD, Vec::clear),
        corrupt("no-beginning", "has not begun", HELD, |entries| {
            entries.remove(0);
            renumber(entries);
        }),
        corrupt("begun-twice", "already begun", HELD, |entries| {
            let start = event(&entries[0], 0);
            push(&mut entries[0], start);
        }),
        corrupt("an-entry-missing", "does not follow", HELD, |entries| drop(entries.remove(1))),
        corrupt("an-entry-twice", "does not follow", HELD, |entries| entries.insert(1, entries[0].clone())),
        corrupt("after-the-end", "has ended", DONE, |entries| {
            push(entries.last_mut().unwrap(), json!({"input.staged": {"content": {"text": "x"}, "by": "ana"}}));
        }),
        corrupt("outcome-after-the-end", "has ended", "user: go\n model: pay\n policy: hold\n cancel", |entries| {
            let answer = remove(entries.last_mut().unwrap(), 1);
            push(entries.last_mut().unwrap(), answer);
        }),
        corrupt("ended-while-a-pause-is-open", "a pause is open", HELD, |entries| {
            let cancelled = json!({"cancelled": {"by": "ana", "reason": ""}});
            push(&mut entries[2], json!({"run.finished": cancelled}));
        }),
        corrupt("ended-with-another-output", "not its output", DONE, |entries| {
            set(entries.last_mut().unwrap(), 1, json!({"run.finished": {"done": {"text": "other"}}}));
        }),
        corrupt("ended-before-its-output", "not its output", STARTED, |entries| {
            push(&mut entries[2], json!({"pause.withdrawn": {"number": 1, "reason": "x"}}));
            push(&mut entries[2], json!({"run.finished": {"done": {"text": "paid"}}}));
        }),
    ]
}

fn of_replies() -> Vec<Case> {
    let calls = |entry: &mut Value| entry["body"]["events"][0]["model.replied"]["calls"].take();
    vec![
        corrupt("call-id-twice-in-a-reply", "stands twice", HELD, move |entries| {
            let mut of_reply = calls(&mut entries[1]);
            of_reply[1]["call_id"] = json!("a");
            entries[1]["body"]["events"][0]["model.replied"]["calls"] = of_reply;
        }),
        corrupt("call-id-empty", "has no id", HELD, move |entries| {
            let mut of_reply = calls(&mut entries[1]);
            of_reply[1]["call_id"] = json!("");
            entries[1]["body"]["events"][0]["model.replied"]["calls"] = of_reply;
        }),
        corrupt("call-id-reused", "used for another call", DONE, |entries| {
            let call = json!({"call_id": "a", "tool": "pay", "arguments": {"amount": 1_000_000}});
            let last = entries.last_mut().unwrap();
            set(last, 0, json!({"model.replied": {"calls": [call], "usage": {}}}));
            remove(last, 1);
        }),
        corrupt("repeat-of-nothing", "used for another call", HELD, |entries| {
            entries[1]["body"]["events"][0]["model.replied"]["calls"][0]["repeats"] = json!("1.0");
        }),
        corrupt("reply-not-awaited", "no reply was awaited", HELD, |entries| {
            push(&mut entries[2], json!({"model.replied": {"text": "done", "usage": {}}}));
        }),
        corrupt("reply-in-no-frame", "no reply was awaited", HELD, |entries| {
            push(&mut entries[2], json!({"model.replied": {"frame": "1.0", "text": "done", "usage": {}}}));
        }),
        corrupt("more-admitted-than-staged", "more inputs were admitted", DONE, |entries| {
            entries.last_mut().unwrap()["body"]["events"][0]["model.replied"]["admitted"] = json!(1);
        }),
    ]
}

fn of_pauses() -> Vec<Case> {
    vec![
        corrupt("pause-number-not-the-next", "number is not the next", HELD, |entries| {
            entries[2]["body"]["events"][1]["pause.opened"]["number"] = json!(3);
        }),
        corrupt("pause-about-other-arguments", "digest is not that", HELD, |entries| {
            let other = event(&entries[2], 1)["pause.opened"]["sha256"].clone();
            entries[2]["body"]["events"][0]["pause.opened"]["sha256"] = other;
        }),
        corrupt("arguments-changed-under-a-pause", "digest is not that", HELD, |entries| {
            entries[1]["body"]["events"][0]["model.replied"]["calls"][0]["arguments"] = json!({"amount": 5_000});
        }),
        corrupt("pause-without-a-digest", "digest is not that", HELD, |entries| {
            entries[2]["body"]["events"][0]["pause.opened"].as_object_mut().unwrap().remove("sha256");
        }),
        corrupt("pause-of-another-kind", "kind is not that of the call", HELD, |entries| {
            entries[2]["body"]["events"][0]["pause.opened"]["kind"] = json!("question");
        }),
        corrupt("doubt-about-what-never-started", "call 1.0 is requested", HELD, |entries| {
            entries[2]["body"]["events"][0]["pause.opened"]["kind"] = json!("in_doubt");
        }),
        corrupt("confirmation-of-nothing", "ask for nothing", HELD, |entries| {
            push(&mut entries[2], json!({"pause.opened": {"number": 3, "kind": "confirmation", "at": ""}}));
        }),
        corrupt("decision-for-an-unknown-pause", "no pause 7", HELD, |entries| {
            push(&mut entries[2], decided(7, json!("approve")));
        }),
        corrupt("decided-twice", "pause 1 is not open", APPROVED, |entries| {
            push(&mut entries[3], decided(1, json!({"deny": {"message": "no"}})));
        }),
        corrupt("decision-of-the-wrong-kind", "does not answer this kind", HELD, |entries| {
            push(&mut entries[2], decided(1, json!("run_again")));
        }),
        corrupt("edited-into-no-object", "no object", HELD, |entries| {
            push(&mut entries[2], decided(1, json!({"approve_edited": {"arguments": [1]}})));
        }),
        corrupt("expired-without-a-deadline", "has no deadline", HELD, |entries| {
            push(&mut entries[2], json!({"pause.expired": {"number": 2}}));
        }),
        corrupt("expired-after-it-was-decided", "pause 1 is not open", APPROVED, |entries| {
            push(&mut entries[3], json!({"pause.expired": {"number": 1}}));
        }),
        corrupt("half-a-response", "pause 1 is not open", HELD, |entries| {
            push(&mut entries[2], decided(1, json!({"respond": {"content": "by hand"}})));
        }),
    ]
}

/// Who approves, and how many.
fn of_terms() -> Vec<Case> {
    let voted = |by: &str| json!({"pause.voted": {"number": 1, "by": by}});
    let (ana, bo, cy) = (voted("ana"), voted("bo"), voted("cy"));
    let (of_another, bo_again) = (json!({"pause.voted": {"number": 2, "by": "ana"}}), bo.clone());
    let by_waiting = |number: u32| json!({"pause.decided": {"number": number, "decision": "approve", "by": "timeout"}});
    let (waited, waited_for_votes) = (by_waiting(3), by_waiting(1));
    let denied_by_waiting = json!({"pause.decided": {"number": 2, "decision": {"deny": {}}, "by": "timeout"}});
    let edited = decided(1, json!({"approve_edited": {"arguments": {}}}));
    let terms = |number: usize, name: &'static str, value: Value| {
        move |entries: &mut Vec<Value>| entries[2]["body"]["events"][number]["pause.opened"][name] = value.clone()
    };
    let too_many: Vec<String> = (0..65).map(|number| format!("a{number}")).collect();
    vec![
        corrupt("voted-twice", "has approved before", VOTED, move |entries| push(&mut entries[3], ana.clone())),
        corrupt("voted-where-it-decides", "decides, and is no vote", VOTED, move |entries| {
            push(&mut entries[3], bo.clone());
            push(&mut entries[3], cy.clone());
        }),
        corrupt("voted-where-one-is-enough", "decides, and is no vote", VOTED, move |entries| {
            push(&mut entries[3], of_another.clone());
        }),
        corrupt("approved-by-too-few", "lacks approvals", VOTED, |entries| {
            push(&mut entries[3], decided(1, json!("approve")));
        }),
        corrupt("approved-by-one-who-voted", "lacks approvals", VOTED, move |entries| {
            push(&mut entries[3], bo_again.clone());
            push(&mut entries[3], decided(1, json!("approve")));
        }),
        corrupt("edited-under-votes", "lacks approvals", VOTED, move |entries| push(&mut entries[3], edited.clone())),
        corrupt("approved-by-waiting-unasked", "does not answer this kind", VOTED, move |entries| {
            push(&mut entries[3], waited.clone());
        }),
        corrupt("approved-by-waiting-for-votes", "does not approve by itself", VOTED, move |entries| {
            push(&mut entries[3], waited_for_votes.clone());
        }),
        corrupt("denied-by-waiting", "does not approve by itself", VOTED, move |entries| {
            push(&mut entries[3], denied_by_waiting.clone());
        }),
        corrupt("expired-though-waiting-approves", "approves when its time is up", VOTED, |entries| {
            push(&mut entries[3], json!({"pause.expired": {"number": 2}}));
        }),
        corrupt("approved-by-a-message-in-its-place", "is not let run", HELD, |entries| {
            let superseded = json!({"number": 1, "decision": "approve", "by": "ana", "manner": "superseded"});
            push(&mut entries[2], json!({"pause.decided": superseded}));
        }),
        corrupt("a-manner-nobody-knows", "unknown variant `rumoured`", HELD, |entries| {
            let rumoured = json!({"number": 1, "decision": "approve", "by": "ana", "manner": "rumoured"});
            push(&mut entries[2], json!({"pause.decided": rumoured}));
        }),
        corrupt("too-many-thoughts", "too many thoughts", HELD, |entries| {
            entries[1]["body"]["events"][0]["model.replied"]["thinking"] = json!("x".repeat((64 << 10) + 1));
        }),
        corrupt("a-quorum-of-nobody", "1 at least", VOTED, terms(0, "quorum", json!(0))),
        corrupt("a-question-to-several", "only a call is approved by several", VOTED, terms(2, "quorum", json!(2))),
        corrupt("too-many-approvers", "at most 64 approvers", VOTED, terms(1, "approvers", json!(too_many))),
    ]
}

fn of_calls() -> Vec<Case> {
    let answered = |call: &str, outcome: Value| json!({"call.answered": {"call": call, "outcome": outcome}});
    let result = json!({"result": {"text": "paid"}});
    let misfit = "outcome does not fit";
    let unstarted = answered("1.0", result.clone());
    let responded = answered("1.0", json!({"responded": "by hand"}));
    let other_words = answered("1.0", json!({"responded": "by someone else"}));
    let never_ran = answered("1.0", json!("withdrawn"));
    let again = answered("1.0", result.clone());
    let waiting = answered("1.1", result);
    let handoff = "given tool to: handoff\n user: go\n model: to & pay\n policy: allow & hold";
    vec![
        corrupt("approval-without-a-decision", "has no decision", HELD, |entries| {
            set(&mut entries[2], 0, json!({"call.allowed": {"call": "1.0", "by": {"pause": 1}}}));
        }),
        corrupt("allowed-while-held", "call 1.0 is held", HELD, |entries| {
            push(&mut entries[2], json!({"call.allowed": {"call": "1.0", "by": "policy"}}));
        }),
        corrupt("held-call-started", "call 1.0 is held", HELD, |entries| {
            push(&mut entries[2], json!({"call.started": {"call": "1.0"}}));
        }),
        corrupt("started-twice", "call 1.0 is started", STARTED, |entries| {
            push(&mut entries[3], json!({"call.started": {"call": "1.0"}}));
        }),
        corrupt("denied-call-started", "call 1.0 is denied", HELD, |entries| {
            push(&mut entries[2], decided(1, json!({"deny": {}})));
            push(&mut entries[2], json!({"call.started": {"call": "1.0"}}));
        }),
        corrupt("unknown-call-started", "no call 1.7", STARTED, |entries| {
            push(&mut entries[3], json!({"call.started": {"call": "1.7"}}));
        }),
        corrupt("released-though-at-most-once", "may not be repeated", STARTED, |entries| {
            push(&mut entries[3], json!({"call.released": {"call": "1.0"}}));
        }),
        corrupt("released-before-it-started", "call 1.0 is allowed", APPROVED, |entries| {
            push(&mut entries[3], json!({"call.released": {"call": "1.0"}}));
        }),
        corrupt("outcome-without-a-start", misfit, APPROVED, move |entries| push(&mut entries[3], unstarted.clone())),
        corrupt("outcome-while-held", misfit, STARTED, move |entries| push(&mut entries[3], waiting.clone())),
        corrupt("outcome-twice", "call 1.0 is answered", STARTED, move |entries| {
            push(&mut entries[3], again.clone());
            push(&mut entries[3], again.clone());
        }),
        corrupt("response-without-a-decision", misfit, HELD, move |entries| push(&mut entries[2], responded.clone())),
        corrupt("response-in-other-words", misfit, HELD, move |entries| {
            push(&mut entries[2], decided(1, json!({"respond": {"content": "by hand"}})));
            push(&mut entries[2], other_words.clone());
        }),
        corrupt("said-not-to-have-run", misfit, STARTED, move |entries| push(&mut entries[3], never_ran.clone())),
        corrupt("handed-off-before-its-siblings", "not settled", handoff, |entries| {
            push(&mut entries[2], json!({"agent.handed_off": {"call": "1.0"}}));
        }),
        corrupt("handoff-started", "does not start", handoff, |entries| {
            push(&mut entries[2], json!({"call.started": {"call": "1.0"}}));
        }),
        corrupt("a-question-allowed", "answered by a person", ASKED, |entries| {
            set(&mut entries[2], 0, json!({"call.allowed": {"call": "1.0", "by": "policy"}}));
        }),
    ]
}

const ASKED: &str = r#"given tool ask: question
    user: go
    model: ask {"questions": [{"question": "Which?"}]}
    policy: hold"#;

fn of_rules() -> Vec<Case> {
    let made = "user: go\n model: pay & pay\n policy: hold & skip\n ana: always approve #1";
    vec![
        corrupt("rule-number-not-the-next", "not the next", made, |entries| {
            let id = entries[3]["body"]["events"][1]["rule.made"]["id"].as_str().unwrap().replace("_1", "_2");
            entries[3]["body"]["events"][1]["rule.made"]["id"] = json!(id);
        }),
        corrupt("unknown-rule-revoked", "no such rule", HELD, |entries| {
            push(&mut entries[2], json!({"rule.revoked": {"rule": RULE, "by": "ana"}}));
        }),
        corrupt("allowed-by-a-rule-nobody-made", "no such rule", HELD, |entries| {
            set(&mut entries[2], 0, json!({"call.allowed": {"call": "1.0", "by": {"rule": RULE}}}));
        }),
        corrupt("denied-by-a-rule-that-approves", "says otherwise", made, |entries| {
            push(&mut entries[3], json!({"call.denied": {"call": "1.1", "by": "ana", "rule": RULE}}));
        }),
    ]
}

const RULE: &str = "rul_0198c0ffee0070008000000000000001_1";

fn corrupt(name: &'static str, says: &'static str, script: &str, spoil: impl Fn(&mut Vec<Value>)) -> Case {
    case(name, "state_corrupt", says, script, spoil)
}

/// The journal of a script, spoiled.
fn case(
    name: &'static str,
    code: &'static str,
    says: &'static str,
    script: &str,
    spoil: impl Fn(&mut Vec<Value>),
) -> Case {
    let world: World = play(script);
    let text = Shelf::of(world.run.id(), &world.entries).to_text();
    let mut shelf: Value = serde_json::from_str(&text).unwrap();
    let mut entries = shelf["entries"].as_array().unwrap().clone();
    spoil(&mut entries);
    let lines: Vec<String> = entries.iter().map(Value::to_string).collect();
    let run = shelf["run"].take();
    let text = format!("{{\"run\":{run},\"entries\":[\n{}\n]}}\n", lines.join(",\n"));
    Case { name, code, says, text }
}

fn decided(number: u32, decision: Value) -> Value {
    json!({"pause.decided": {"number": number, "decision": decision, "by": "ana"}})
}

fn events(entry: &mut Value) -> &mut Vec<Value> {
    entry["body"]["events"].as_array_mut().unwrap()
}

fn event(entry: &Value, index: usize) -> Value {
    entry["body"]["events"][index].clone()
}

fn push(entry: &mut Value, event: Value) {
    events(entry).push(event);
}

fn set(entry: &mut Value, index: usize, event: Value) {
    events(entry)[index] = event;
}

fn remove(entry: &mut Value, index: usize) -> Value {
    events(entry).remove(index)
}

fn renumber(entries: &mut [Value]) {
    for (revision, entry) in (1..).zip(entries) {
        entry["revision"] = json!(revision);
    }
}
