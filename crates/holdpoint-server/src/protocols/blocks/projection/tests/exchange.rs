//! The specification's whole exchange, field by field.

use holdpoint_core::decision::Decision;
use serde_json::{Value, json};

use super::super::testing::{BEGINNING, Session, call, json};

/// The run of the exchange: a trade that is held, approved and made.
fn exchange() -> Session {
    let mut session = Session::begun();
    let trade = json!({"symbol": "VNM", "quantity": 100, "side": "buy", "price": 82000});
    session.calls(vec![call("toolu_01", "execute_trade", trade)]);
    session.holds(300);
    session.decides(1, Decision::Approve);
    session.runs_with(0, "order 991 filled");
    session.says("Đã mua ");
    session.says("100 VNM.");
    session.wait(3);
    session.replies("Đã mua 100 VNM.");
    session
}

/// What the specification prints, with this run's own ids and times.
fn printed(session: &Session) -> Vec<Value> {
    let run = &session.runs[0];
    let message = format!("msg_{}", run.id().uuid().simple());
    let pause = run.pauses()[0].id;
    let sha256 = {
        let text = r#"{"price":82000,"quantity":100,"side":"buy","symbol":"VNM"}"#;
        holdpoint_core::json::Digest::of(text.as_bytes()).to_string()
    };
    let at = |event: Value, seq: Option<u64>| {
        let mut event = event;
        event["session_id"] = json!("abc-123");
        event["message_id"] = json!(message);
        if let Some(seq) = seq {
            event["seq"] = json!(seq);
            event["event_id"] = json!(format!("{seq:010}"));
        }
        event
    };
    let args = json!({"symbol": "VNM", "quantity": 100, "side": "buy", "price": 82000});
    let (opened, end) = ("2026-11-15T18:40:01.200Z", "2026-11-15T18:45:01.200Z");
    assert_eq!(session.runs[0].started_at().unwrap().to_string(), opened);
    let request = json!({
        "type": "approval_request", "approval_key": "abc-123_1", "subagent": null,
        "actions": [{"name": "execute_trade", "args": args, "tool_use_id": "toolu_01"}],
        "review_configs": [{"require_approval": true, "timeout": 300}],
        "pause": {
            "kind": "approval", "ids": [pause.to_string()], "args_sha256": [sha256],
            "allowed_decisions": [["approve", "edit", "reject"]], "expires_at": end, "server_time": opened,
            "rule": "execute_trade", "approvals_needed": 1,
        },
    });
    vec![
        at(
            json!({"type": "message_start", "timestamp": BEGINNING as f64 / 1000.0, "display_mode": "agent",
            "message": {"id": message, "type": "message", "role": "assistant", "content": []}}),
            Some(1),
        ),
        at(json!({"type": "group_start", "group_id": "g1", "summary": "Đặt lệnh mua VNM"}), Some(2)),
        at(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "toolu_01",
            "name": "execute_trade", "input": {}, "tool_content_message": "Đặt lệnh mua VNM", "subagent": null}}),
            None,
        ),
        at(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta",
            "partial_json": r#"{"price":82000,"quantity":100,"side":"buy","symbol":"VNM"}"#}}),
            None,
        ),
        at(json!({"type": "content_block_stop", "index": 0}), Some(3)),
        at(json!({"type": "content_block_start", "index": 1, "content_block": request}), Some(4)),
        at(json!({"type": "content_block_stop", "index": 1}), None),
        at(
            json!({"type": "approval_resolved", "approval_key": "abc-123_1", "outcome": "decided",
            "decided_by": "local"}),
            Some(5),
        ),
        at(
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "approval_result",
            "approval_key": "abc-123_1", "subagent": null}}),
            None,
        ),
        at(json!({"type": "content_block_delta", "index": 2, "delta": {"decisions": [{"type": "approve"}]}}), None),
        at(json!({"type": "content_block_stop", "index": 2}), Some(6)),
        at(
            json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_result",
            "tool_use_id": "toolu_01", "name": "execute_trade", "status": "success", "subagent": null}}),
            None,
        ),
        at(json!({"type": "content_block_delta", "index": 3, "delta": {"content": "order 991 filled"}}), None),
        at(json!({"type": "content_block_stop", "index": 3}), Some(7)),
        at(
            json!({"type": "group_end", "group_id": "g1", "summary": "Đặt lệnh mua VNM", "items": 1, "status": "done"}),
            Some(8),
        ),
        at(
            json!({"type": "content_block_start", "index": 4, "content_block": {"type": "text", "text": "",
            "subagent": null}}),
            None,
        ),
        at(
            json!({"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta",
            "text": "Đã mua 100 VNM."}}),
            None,
        ),
        at(json!({"type": "content_block_stop", "index": 4}), Some(9)),
        at(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}), None),
        at(json!({"type": "message_stop", "duration_ms": 3000, "stop_reason": "end_turn"}), Some(10)),
    ]
}

#[test]
fn the_whole_exchange_comes_out_field_by_field() {
    let session = exchange();
    let told: Vec<Value> = session.replay().iter().map(json).collect();
    for (told, printed) in told.iter().zip(&printed(&session)) {
        assert_eq!(told, printed);
    }
    assert_eq!(told.len(), printed(&session).len());
}

#[test]
fn live_the_exchange_differs_only_in_the_pieces_of_its_words_and_in_what_is_not_stored_yet() {
    let session = exchange();
    let told: Vec<Value> = session.live().iter().map(json).collect();
    let mut printed = printed(&session);
    let whole = printed.remove(16);
    for (place, piece) in ["Đã mua ", "100 VNM."].into_iter().enumerate() {
        let mut event = whole.clone();
        event["delta"]["text"] = json!(piece);
        printed.insert(16 + place, event);
    }
    // The group ends with the first word, and the reply is not stored yet.
    let end = printed.iter_mut().find(|event| event["type"] == "group_end").unwrap();
    end["provisional"] = json!(true);
    assert_eq!(told, printed);
}
