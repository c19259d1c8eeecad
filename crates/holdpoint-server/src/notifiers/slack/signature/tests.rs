//! Signatures against the example that Slack gives, and against everything that is none.

use holdpoint_testkit::slack_server::{Signed, sign};
use http::{HeaderName, HeaderValue};

use super::*;

const KEY: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const NOW: i64 = 1_700_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn signatures() -> Signatures {
    Signatures::new(KEY.to_owned().into())
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn of(signed: &Signed) -> HeaderMap {
    headers(&[(TIMESTAMP, &signed.timestamp), (SIGNATURE, &signed.signature)])
}

#[test]
fn slacks_own_example_is_believed() {
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let headers = headers(&[
        (TIMESTAMP, "1531420618"),
        (SIGNATURE, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
    ]);
    assert_eq!(signatures().check(&headers, body.as_bytes(), at(1_531_420_618)), Ok(()));
}

#[test]
fn only_what_was_signed_now_with_this_key_is_believed() {
    let signed = Signed::of_body(KEY, NOW, "payload=x".to_owned());
    let check = |headers: &HeaderMap, body: &str| signatures().check(headers, body.as_bytes(), at(NOW));
    assert_eq!(check(&of(&signed), "payload=x"), Ok(()));
    assert_eq!(check(&of(&signed), "payload=y"), Err(Unbelieved::Forged));
    assert_eq!(check(&of(&signed), ""), Err(Unbelieved::Forged));
    let other = Signed::of_body("another key of the same length!!", NOW, "payload=x".to_owned());
    assert_eq!(check(&of(&other), "payload=x"), Err(Unbelieved::Forged));
    let later = headers(&[(TIMESTAMP, &(NOW + 1).to_string()), (SIGNATURE, &signed.signature)]);
    assert_eq!(check(&later, "payload=x"), Err(Unbelieved::Forged));
    let (time, good) = (signed.timestamp.as_str(), signed.signature.as_str());
    let upper = good.replacen("v0=", "", 1).to_ascii_uppercase();
    for pairs in [
        &[][..],
        &[(TIMESTAMP, time)],
        &[(SIGNATURE, good)],
        &[(TIMESTAMP, time), (SIGNATURE, good), (SIGNATURE, good)],
        &[(TIMESTAMP, time), (TIMESTAMP, time), (SIGNATURE, good)],
        &[(TIMESTAMP, time), (SIGNATURE, "")],
        &[(TIMESTAMP, time), (SIGNATURE, "v0=")],
        &[(TIMESTAMP, time), (SIGNATURE, &good[3..])],
        &[(TIMESTAMP, time), (SIGNATURE, &good[..good.len() - 2])],
        &[(TIMESTAMP, time), (SIGNATURE, &good.replacen("v0", "v1", 1))],
        &[(TIMESTAMP, time), (SIGNATURE, &format!("v0={upper}"))],
        &[(TIMESTAMP, time), (SIGNATURE, &format!("{good}00"))],
        &[(TIMESTAMP, "-1"), (SIGNATURE, good)],
        &[(TIMESTAMP, "+1700000000"), (SIGNATURE, good)],
        &[(TIMESTAMP, "1.7e9"), (SIGNATURE, good)],
        &[(TIMESTAMP, ""), (SIGNATURE, good)],
        &[(TIMESTAMP, "99999999999999999999"), (SIGNATURE, good)],
    ] {
        assert_eq!(check(&headers(pairs), "payload=x"), Err(Unbelieved::Unsigned), "{pairs:?}");
    }
}

#[test]
fn a_request_from_another_time_is_not_believed_however_well_it_is_signed() {
    for (seconds, expected) in [
        (NOW - 301, Err(Unbelieved::Untimely)),
        (NOW - 300, Ok(())),
        (NOW + 300, Ok(())),
        (NOW + 301, Err(Unbelieved::Untimely)),
        (0, Err(Unbelieved::Untimely)),
        (999_999_999_999, Err(Unbelieved::Untimely)),
    ] {
        let signed = Signed::of_body(KEY, seconds, "payload=x".to_owned());
        assert_eq!(signatures().check(&of(&signed), b"payload=x", at(NOW)), expected, "{seconds}");
    }
}

#[test]
fn no_request_counts_twice_as_long_as_it_is_timely() {
    let signatures = signatures();
    // The furthest ahead that Slack's clock may be.
    let signed = Signed::of_body(KEY, NOW + 300, "payload=x".to_owned());
    assert_eq!(signatures.check(&of(&signed), b"payload=x", at(NOW)), Ok(()));
    for later in [0, 1, 300, 599] {
        assert_eq!(signatures.check(&of(&signed), b"payload=x", at(NOW + later)), Err(Unbelieved::Replayed), "{later}");
    }
    assert_eq!(signatures.check(&of(&signed), b"payload=x", at(NOW + 601)), Err(Unbelieved::Untimely));
    // A forgery does not make the true request a repetition.
    let second = Signed::of_body(KEY, NOW, "payload=y".to_owned());
    assert_eq!(signatures.check(&of(&second), b"payload=z", at(NOW)), Err(Unbelieved::Forged));
    assert_eq!(signatures.check(&of(&second), b"payload=y", at(NOW)), Ok(()));
}

/// A generator whose numbers follow from its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

#[test]
fn no_change_of_any_bit_and_no_random_request_is_believed() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand_seed);
    println!("SEED={seed}");
    let mut dice = Dice(seed);
    let body = "payload=%7B%22type%22%3A%22block_actions%22%7D";
    let signed = Signed::of_body(KEY, NOW, body.to_owned());
    let signatures = signatures();
    for round in 0..20_000 {
        let (mut time, mut signature) = (signed.timestamp.clone().into_bytes(), signed.signature.clone().into_bytes());
        let mut body = body.as_bytes().to_vec();
        match dice.roll(4) {
            0 => flip(&mut time, &mut dice),
            1 => flip(&mut signature, &mut dice),
            2 => flip(&mut body, &mut dice),
            _ => {
                for part in [&mut time, &mut signature, &mut body] {
                    *part = (0..dice.roll(100)).map(|_| u8::try_from(dice.roll(256)).unwrap_or_default()).collect();
                }
            }
        }
        let mut headers = HeaderMap::new();
        for (name, value) in [(TIMESTAMP, &time), (SIGNATURE, &signature)] {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(name, value);
            }
        }
        let found = signatures.check(&headers, &body, at(NOW));
        assert!(found.is_err(), "SEED={seed} round {round}: {headers:?} {body:?}");
    }
    assert_eq!(signatures.check(&of(&signed), body.as_bytes(), at(NOW)), Ok(()), "the request itself");
    assert_eq!(sign(KEY, &NOW.to_string(), body.as_bytes()), signed.signature);
}

fn flip(bytes: &mut [u8], dice: &mut Dice) {
    let at = usize::try_from(dice.roll(bytes.len() as u64)).unwrap_or_default();
    bytes[at] ^= 1 << dice.roll(8);
}

fn rand_seed() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}
