//! What may stand in an address, and what an argument can do to it.

use holdpoint_core::json::CanonicalJson;
use serde_json::{Value, json};

use super::super::{BadEndpoint, Endpoint, HttpMethod};
use crate::testing::arguments;

fn endpoint(url: &str) -> Result<Endpoint, BadEndpoint> {
    Endpoint::new(HttpMethod::Get, url)
}

/// The address that a call with these arguments asks, or why it asks none.
fn filled(url: &str, value: &Value) -> Result<String, String> {
    endpoint(url).unwrap().prepare(&arguments(value)).map(|prepared| prepared.url.to_string())
}

#[test]
fn values_are_filled_in_and_encoded() {
    for (url, value, expected) in [
        ("https://shop.example/a/{id}", json!({"id": "x"}), "https://shop.example/a/x"),
        ("https://shop.example/a/{id}", json!({"id": 7}), "https://shop.example/a/7"),
        ("https://shop.example/a/{id}", json!({"id": true}), "https://shop.example/a/true"),
        ("https://shop.example/a/{id}.json", json!({"id": "x y"}), "https://shop.example/a/x%20y.json"),
        ("https://shop.example/{a}/{b}/{a}", json!({"a": 1, "b": 2}), "https://shop.example/1/2/1"),
        ("https://shop.example/s?q={q}&n=5", json!({"q": "a&b=c"}), "https://shop.example/s?q=a%26b%3Dc&n=5"),
        ("https://shop.example?q={q}", json!({"q": ""}), "https://shop.example/?q="),
        ("HTTPS://Shop.Example:443/{id}", json!({"id": "ü"}), "https://shop.example/%C3%BC"),
    ] {
        assert_eq!(filled(url, &value).as_deref(), Ok(expected), "{url} {value}");
    }
}

#[test]
fn a_number_keeps_every_digit() {
    let arguments = CanonicalJson::parse(r#"{"id":12345678901234567890.125}"#).unwrap();
    let prepared = endpoint("https://shop.example/{id}").unwrap().prepare(&arguments).unwrap();
    assert_eq!(prepared.url.as_str(), "https://shop.example/12345678901234567890.125");
}

#[test]
fn a_value_stays_in_its_segment() {
    for (value, expected) in [
        ("a/b", "a%2Fb"),
        ("a?b=c", "a%3Fb%3Dc"),
        ("a#b", "a%23b"),
        ("a\\b", "a%5Cb"),
        ("@evil.example", "%40evil.example"),
        ("//evil.example", "%2F%2Fevil.example"),
        (":99", "%3A99"),
        ("%2e%2e%2f", "%252e%252e%252f"),
        ("{other}", "%7Bother%7D"),
        ("...", "..."),
        ("a..b", "a..b"),
        ("\u{202e}x", "%E2%80%AEx"),
    ] {
        let told = filled("https://shop.example/v1/{id}/end", &json!({"id": value}));
        assert_eq!(told, Ok(format!("https://shop.example/v1/{expected}/end")), "{value:?}");
    }
}

#[test]
fn a_value_that_would_leave_its_segment_is_refused() {
    let attacks = ["", ".", "..", "../admin", "a/../../admin", "..\\admin", "./x", "a\r\nHost: evil", "a\0", "\u{7f}"];
    for value in attacks {
        let told = filled("https://shop.example/v1/{id}/end", &json!({"id": value}));
        assert!(told.is_err(), "{value:?} {told:?}");
    }
}

#[test]
fn values_cannot_do_together_or_with_their_surroundings_what_one_may_not() {
    assert!(filled("https://shop.example/v1/{a}{b}/end", &json!({"a": ".", "b": "."})).is_err());
    assert!(filled("https://shop.example/v1/.{a}", &json!({"a": "."})).is_err());
    for (url, value, expected) in [
        ("https://shop.example/v1/{a}{b}", json!({"a": "%2", "b": "e"}), "https://shop.example/v1/%252e"),
        ("https://shop.example/v1/%2e{a}", json!({"a": "%2e"}), "https://shop.example/v1/%2e%252e"),
        ("https://shop.example/v1/{a}", json!({"a": "{b}", "b": "x"}), "https://shop.example/v1/%7Bb%7D?b=x"),
    ] {
        assert_eq!(filled(url, &value).as_deref(), Ok(expected));
    }
}

#[test]
fn what_is_no_plain_value_does_not_go_into_an_address() {
    for value in [json!({}), json!({"id": null}), json!({"id": ["x"]}), json!({"id": {"x": 1}})] {
        assert!(filled("https://shop.example/{id}", &value).is_err(), "{value}");
    }
}

#[test]
fn an_address_has_a_bound() {
    let told = filled("https://shop.example/{id}", &json!({"id": "x".repeat(9_000)}));
    assert_eq!(told, Err("the address with its arguments is longer than 8192 bytes".to_owned()));
    let told = filled("https://shop.example/", &json!({"id": "x".repeat(9_000)}));
    assert!(told.unwrap_err().starts_with("the arguments are longer than 8192 bytes"));
}

#[test]
fn an_address_that_cannot_be_asked_is_refused_when_it_is_written() {
    for url in [
        "",
        "shop.example/orders",
        "ftp://shop.example/",
        "file:///etc/passwd",
        "{scheme}://shop.example/",
        "https://{host}/",
        "https://shop.{tld}/",
        "https://shop.example:{port}/",
        "https://shop.example{path}",
        "https://{user}@shop.example/",
        "https://user:secret@shop.example/",
        "https:///path",
        "https://shop.example/a/../b",
        "https://shop.example/./{id}",
        "https://shop.example/a b",
        "https://shop.example/ü",
        "https://shop.example/{",
        "https://shop.example/}",
        "https://shop.example/{}",
        "https://shop.example/{a b}",
        "https://shop.example/{a{b}}",
        "https://shop.example/?{key}=1",
        "https://shop.example/?{key}",
        "https://shop.example/#{id}",
        "https://shop.example\\@evil.example/{id}",
        "https://shop.example/{id}\r\nHost: evil",
        " https://shop.example/",
    ] {
        assert!(endpoint(url).is_err(), "{url}");
    }
}

#[test]
fn what_is_wrong_with_an_address_is_said_without_showing_it() {
    for url in ["https://x:s3cret@shop.example/", "https://shop.example/s3cret/../b", "s3cret", "https://{s3cret"] {
        let problem = endpoint(url).unwrap_err();
        assert!(!problem.to_string().contains("s3cret"), "{problem}");
    }
    let endpoint = endpoint("https://shop.example/?key=s3cret").unwrap();
    assert!(!format!("{endpoint:?}").contains("s3cret"));
}

#[test]
fn the_arguments_that_an_address_takes_can_be_checked_against_a_schema() {
    let endpoint = endpoint("https://shop.example/{b}/{a}?c={c}").unwrap();
    assert_eq!(endpoint.placeholders().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(endpoint.unrequired_placeholders(&json!({"required": ["a", "d"]})), ["b", "c"]);
    assert_eq!(endpoint.unrequired_placeholders(&json!({"required": ["a", "b", "c"]})), Vec::<&str>::new());
}
