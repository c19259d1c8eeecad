//! The link in a letter, as programs follow it that look into letters: nothing is decided by opening it.

use holdpoint_testkit::smtp_server::SmtpServer;

use crate::world::{World, page_of};

/// What browsers say of a link that was followed from elsewhere.
const FROM_ELSEWHERE: [(&str, &str); 4] = [
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
    ("referer", "https://mail.example/"),
];

#[tokio::test]
async fn opening_the_link_a_hundred_times_changes_nothing_and_shows_a_page_that_runs_only_its_own() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    let pause = world.ask("mailer", "ana").await;
    let letter = mail.letters().remove(0);
    let link = letter.text("text/plain").lines().find(|line| line.starts_with("https://")).unwrap().to_owned();
    assert_eq!(link, page_of(&pause));
    let path = link.strip_prefix("https://hold.example").unwrap();
    let (before, document) = (world.everything().await, world.pause(&pause).await);
    for round in 0..100 {
        for method in ["GET", "HEAD"] {
            // Every other one says where it comes from, as a browser does.
            let headers: &[(&str, &str)] = if round % 2 == 0 { &FROM_ELSEWHERE } else { &[] };
            let query = if round % 4 == 0 { "?decision=approve&utm_source=mail" } else { "" };
            let request = world.request(method, &format!("{path}{query}"));
            let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            let response = request.send().await.unwrap();
            assert_eq!(response.status().as_u16(), 200, "{method}");
            let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
            assert_eq!(header("content-type"), "text/html; charset=utf-8");
            let policy = header("content-security-policy");
            assert!(
                policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"),
                "{policy}"
            );
            assert!(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'none'"), "{policy}");
            assert_eq!(header("referrer-policy"), "no-referrer");
            let body = response.text().await.unwrap();
            assert_eq!(body.is_empty(), method == "HEAD", "{body}");
            // The page is the same for everybody: what waits is read by its script, with the reader's own credential.
            assert!(!body.contains(&pause) && !body.contains("send_mail"), "{body}");
        }
    }
    assert_eq!(world.everything().await, before);
    assert_eq!(world.pause(&pause).await, document);
    assert_eq!(document["status"], "open");
    assert_eq!(mail.letters().len(), 1);
}

#[tokio::test]
async fn the_page_takes_no_other_method_and_no_frame_of_another_site() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    let pause = world.ask("mailer", "ana").await;
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let response = world.request(method, &format!("/pauses/{pause}")).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 405, "{method}");
    }
    let framed = world.request("GET", &format!("/pauses/{pause}"));
    let framed = framed.header("sec-fetch-site", "cross-site").header("sec-fetch-mode", "navigate");
    assert_eq!(framed.header("sec-fetch-dest", "iframe").send().await.unwrap().status().as_u16(), 403);
    assert_eq!(world.pause(&pause).await["status"], "open");
}
