//! Signatures against values that were worked out elsewhere, and deliveries to real servers.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, post};
use bytes::Bytes;
use holdpoint_core::time::Timestamp;
use holdpoint_tools::http::{AddressGuard, Lookup};

use super::{
    ATTEMPTS_MAX, BadSecret, BadSignature, Delivery, ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookClient,
    WebhookSecret, backoff, deliver, sign, verify,
};

const SOON: Duration = Duration::from_secs(30);

fn secret(text: &str) -> WebhookSecret {
    WebhookSecret::parse(&text.to_owned().into()).unwrap()
}

/// The bytes 0 to 31.
fn counting() -> WebhookSecret {
    secret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

const NOW: i64 = 1_700_000_000;

#[test]
fn messages_are_signed_as_others_sign_them() {
    // The example of the specification, then values from another implementation of HMAC.
    let published = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let signed = sign(&published, "msg_p5jXN8AQM9LWM0D4loKWxJek", at(1_614_265_330), br#"{"test": 2432232314}"#);
    assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    for (body, signature) in [
        (&b""[..], "v1,xyXJxcEIN4ZnkQTgEp62pJcNiuk3YGLB2VZKVLIU47E="),
        ("{\"é\":\"\\u0000\"}".as_bytes(), "v1,ZgXYtkY2GnF51EqFT/EtWIUZl1dJ+Vn+MGEe+dRU9Og="),
        (&[0, 255, 10, 46], "v1,pQ0IuB11sXYJ8W4EfPAm7P1Ydk58LPhFc42JpnSfyQM="),
    ] {
        assert_eq!(sign(&counting(), "req_1", at(NOW), body), signature);
    }
    let longest = "BwcH".repeat(21) + "Bw==";
    let sevens = secret(&format!("whsec_{longest}"));
    let signed = sign(&sevens, "whd_0198c0ffee", Timestamp::MAX, b"x");
    assert_eq!(signed, "v1,rqsePH1riNDRF86sfjIrpT7yetN/JT21ylQ09pH7MMc=");
}

#[test]
fn only_whole_seconds_are_signed() {
    let late = Timestamp::from_millis(NOW * 1_000 + 999);
    assert_eq!(sign(&counting(), "req_1", late, b""), sign(&counting(), "req_1", at(NOW), b""));
}

#[test]
fn a_secret_is_of_the_usual_form_and_length_and_never_shown() {
    for text in [
        "",
        "whsec_",
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRY=",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "whsec_not base64 but long enough to be a secret!",
        "whpk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    ] {
        assert_eq!(WebhookSecret::parse(&text.to_owned().into()).unwrap_err(), BadSecret, "{text}");
    }
    let shown = format!("{:?}", counting());
    assert!(!shown.contains("AAEC") && !shown.contains("0, 1, 2"), "{shown}");
}

#[test]
fn what_was_signed_is_believed_and_nothing_else() {
    let signature = sign(&counting(), "req_1", at(NOW), b"body");
    let check = |id, time, signatures: &str, body| verify(&counting(), id, time, signatures, body, at(NOW));
    let time = NOW.to_string();
    assert_eq!(check("req_1", &time, &signature, b"body"), Ok(()));
    assert_eq!(check("req_1", &time, &format!("v1,AAAA v2,x {signature}"), b"body"), Ok(()));
    let (later, shorter) = ((NOW + 1).to_string(), &signature[..signature.len() - 4]);
    for (id, time, signatures, body) in [
        ("req_2", time.as_str(), signature.as_str(), &b"body"[..]),
        ("req_1", &later, &signature, b"body"),
        ("req_1", &time, &signature, b"Body"),
        ("req_1", &time, &signature, b""),
        ("req_1", &time, "", b"body"),
        ("req_1", &time, "v1,", b"body"),
        ("req_1", &time, &signature[3..], b"body"),
        ("req_1", &time, shorter, b"body"),
        ("req_1", &time, &signature.replace("v1,", "v2,"), b"body"),
        ("req_1", &time, &format!("{}{signature}", "v1,AAAA ".repeat(8)), b"body"),
    ] {
        assert_eq!(check(id, time, signatures, body), Err(BadSignature::NoMatch), "{id} {time} {signatures}");
    }
    let other = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    assert_eq!(verify(&other, "req_1", &time, &signature, b"body", at(NOW)), Err(BadSignature::NoMatch));
}

#[test]
fn a_message_from_another_time_is_not_believed() {
    let check = |time: &str| verify(&counting(), "req_1", time, &sign(&counting(), "req_1", at(0), b""), b"", at(NOW));
    for seconds in [NOW - 301, NOW + 301, 0] {
        assert_eq!(check(&seconds.to_string()), Err(BadSignature::Untimely));
    }
    for seconds in [NOW - 300, NOW + 300] {
        assert_eq!(check(&seconds.to_string()), Err(BadSignature::NoMatch));
    }
    for text in ["", "-1", "+1700000000", "1.7e9", " 1700000000", "99999999999999999999", "17000000x"] {
        assert_eq!(check(text), Err(BadSignature::Timestamp), "{text:?}");
    }
}

#[test]
fn waits_grow_are_scattered_by_their_seed_and_come_to_an_end() {
    let middle = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for (at, middle) in middle.into_iter().enumerate() {
        let attempts = u32::try_from(at).unwrap() + 1;
        let waits: BTreeSet<Duration> = (0..1_000).map(|seed| backoff(attempts, seed).unwrap()).collect();
        let (least, most) = (*waits.first().unwrap(), *waits.last().unwrap());
        assert!(least >= Duration::from_millis(middle * 800), "{least:?}");
        assert!(most <= Duration::from_millis(middle * 1_200), "{most:?}");
        assert!(waits.len() > 300, "{}", waits.len());
        assert_eq!(backoff(attempts, 7), backoff(attempts, 7));
    }
    assert_eq!((backoff(0, 1), backoff(ATTEMPTS_MAX, 1), backoff(u32::MAX, 1)), (None, None, None));
    assert!(backoff(ATTEMPTS_MAX - 1, 1).is_some());
}

/// A receiver on this machine.
struct Receiver {
    address: SocketAddr,
    got: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

impl Receiver {
    async fn answering(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Self {
        let got: Arc<Mutex<Vec<(HeaderMap, Bytes)>>> = Arc::default();
        let taken = got.clone();
        let take = move |headers: HeaderMap, body: Bytes| {
            taken.lock().unwrap().push((headers, body));
            let response = answer();
            async move { response }
        };
        let app = Router::new().route("/hook", post(take));
        Self { address: serve(app).await, got }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }
}

async fn serve(app: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// May reach this machine, unencrypted.
fn local() -> WebhookClient {
    WebhookClient::new(AddressGuard::new().any_port().allow("127.0.0.1").unwrap()).unwrap()
}

async fn send(client: &WebhookClient, url: &str) -> Delivery {
    let body = Bytes::from_static(br#"{"decision":"approve"}"#);
    tokio::time::timeout(SOON, deliver(client, url, &counting(), "req_1", at(NOW), body)).await.unwrap()
}

fn why(delivery: Delivery) -> String {
    match delivery {
        Delivery::GaveUp { why } => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_receiver_gets_the_body_with_headers_that_it_can_verify() {
    let receiver = Receiver::answering(|| StatusCode::NO_CONTENT.into_response()).await;
    assert_eq!(send(&local(), &receiver.url()).await, Delivery::Delivered);
    let got = receiver.got.lock().unwrap();
    let [(headers, body)] = got.as_slice() else { panic!("{got:?}") };
    let header = |name: &str| headers[name].to_str().unwrap();
    assert_eq!((header("content-type"), body.as_ref()), ("application/json", &br#"{"decision":"approve"}"#[..]));
    let (id, time, signature) = (header(ID_HEADER), header(TIMESTAMP_HEADER), header(SIGNATURE_HEADER));
    assert_eq!((id, time), ("req_1", NOW.to_string().as_str()));
    assert_eq!(verify(&counting(), id, time, signature, body, at(NOW)), Ok(()));
}

#[tokio::test]
async fn what_did_not_work_is_tried_again_and_gone_is_gone() {
    let retry = |status: u16| Delivery::Retry { after: None, why: format!("the receiver answered {status}") };
    for status in [302, 400, 401, 404, 408, 429, 500, 503] {
        let answer = move || StatusCode::from_u16(status).unwrap().into_response();
        let receiver = Receiver::answering(answer).await;
        assert_eq!(send(&local(), &receiver.url()).await, retry(status));
    }
    let receiver = Receiver::answering(|| StatusCode::GONE.into_response()).await;
    assert_eq!(why(send(&local(), &receiver.url()).await), "the receiver answered 410: it wants no more of these");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let expected = Delivery::Retry { after: None, why: "the receiver was not reached".to_owned() };
    assert_eq!(send(&local(), &format!("http://{gone}/s3cret")).await, expected);
}

#[tokio::test]
async fn a_receiver_may_say_when_within_a_bound() {
    for (text, expected) in [
        ("120", Some(120)),
        ("0", Some(0)),
        ("99999999999", Some(86_400)),
        ("Tue, 14 Nov 2023 22:14:20 GMT", Some(60)),
        ("Tue, 14 Nov 2023 22:13:00 GMT", Some(0)),
        ("Tue, 14 Nov 2034 22:13:00 GMT", Some(86_400)),
        ("soon", None),
        ("-5", None),
        ("99999999999999999999999", None),
    ] {
        let answer = move || (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", text)]).into_response();
        let receiver = Receiver::answering(answer).await;
        let after = expected.map(Duration::from_secs);
        let expected = Delivery::Retry { after, why: "the receiver answered 503".to_owned() };
        assert_eq!(send(&local(), &receiver.url()).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Receiver::answering(|| StatusCode::OK.into_response()).await;
    let to = other.url();
    let receiver = Receiver::answering(move || Redirect::permanent(&to).into_response()).await;
    let expected = Delivery::Retry { after: None, why: "the receiver answered 308".to_owned() };
    assert_eq!(send(&local(), &receiver.url()).await, expected);
    assert!(other.got.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_is_left_when_the_time_is_up() {
    let address = serve(Router::new().route("/hook", any(std::future::pending::<StatusCode>))).await;
    let client = local().timeout(Duration::from_millis(300));
    let expected = Delivery::Retry { after: None, why: "no answer within 300ms".to_owned() };
    assert_eq!(send(&client, &format!("http://{address}/hook")).await, expected);
}

/// Every name leads to the machine's own credentials.
struct Rebinding;

#[async_trait]
impl Lookup for Rebinding {
    async fn lookup(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(vec!["169.254.169.254".parse().unwrap()])
    }
}

#[tokio::test]
async fn a_message_goes_to_the_open_internet_encrypted_or_nowhere() {
    let receiver = Receiver::answering(|| StatusCode::OK.into_response()).await;
    let client = WebhookClient::new(WebhookClient::guard().lookup(Rebinding)).unwrap();
    for (url, told) in [
        (receiver.url().as_str(), "only https addresses may be asked"),
        (&receiver.url().replace("http", "https"), "the address is loopback, which may not be asked"),
        ("https://[::ffff:7f00:1]/", "the address is IPv4-in-IPv6, which may not be asked"),
        ("https://rebind.example/", "the address is link-local, which may not be asked"),
        ("https://user:word@example.com/", "an address with a user name or password may not be asked"),
        ("ftp://example.com/", "only http and https addresses may be asked"),
        ("/hook", "the address is none"),
    ] {
        assert_eq!(why(send(&client, url).await), told, "{url}");
    }
    assert!(receiver.got.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_id_that_could_be_read_in_two_ways_is_not_sent() {
    let receiver = Receiver::answering(|| StatusCode::OK.into_response()).await;
    for id in ["", "a.b", "a b", "a\r\nx: y", "é"] {
        let attempt = deliver(&local(), &receiver.url(), &counting(), id, at(NOW), Bytes::new()).await;
        assert_eq!(why(attempt), "the message's id is not of letters, digits, - and _", "{id:?}");
    }
    assert!(receiver.got.lock().unwrap().is_empty());
}
