//! Text from models and people that would like to be more than text: no header, no element, no link that we did not make,
//! nothing hidden.

use holdpoint_core::text::is_plain;
use holdpoint_testkit::smtp_server::{Letter, SmtpServer};
use serde_json::{Value, json};

use crate::world::{World, header_names, page_of, under};

const HOSTILE: &[&str] = &[
    "x\r\nBcc: eve@evil.example\r\nSubject: free money\r\n\r\n<html>",
    "x\nReply-To: eve@evil.example\n\n.\nQUIT\n",
    "<img src=https://evil.example/p.png onerror=alert(1)><a href='https://evil.example'>Approve</a>",
    "</pre></td></table><script>alert(1)</script><form action=\"https://evil.example\">",
    "\"><style>*{display:none}</style>&lt;b&gt; &#60;i&#62; <!-- ",
    "a\u{202e}b\u{200b}\u{2066}\u{feff}\u{e0041}c\u{1b}[2K\u{7}\u{7f}\u{85}\u{2028}",
    "=?utf-8?b?RWlu?= =3D =\r\n--boundary",
];

/// The elements that letters are made of.
const OURS: [&str; 16] = [
    "!doctype html>",
    "html>",
    "body>",
    "/body>",
    "/html>",
    "h2>",
    "/h2>",
    "h3>",
    "/h3>",
    "table>",
    "/table>",
    "pre>",
    "/pre>",
    "p>",
    "/p>",
    "/a>",
];

/// Nothing in a letter is more than text, but what we made.
#[track_caller]
fn check(letter: &Letter, pause: &str) {
    let ours = ["Auto-Submitted", "Content-Type", "Date", "From", "MIME-Version", "Message-ID", "Subject", "To"];
    let others: Vec<&str> = header_names(letter).into_iter().filter(|name| !ours.contains(name)).collect();
    assert!(others.is_empty() || others == ["In-Reply-To", "References"], "{others:?}");
    assert_eq!(letter.to, ["ana@example.com", "ben@example.com"]);
    let subject = letter.header("subject").unwrap();
    assert!(subject.chars().all(|c| c.is_ascii_graphic() || c == ' ') && !subject.contains("evil"), "{subject}");
    assert_eq!(letter.parts.len(), 2, "{}", letter.raw);
    let (plain, html) = (letter.text("text/plain"), letter.text("text/html"));
    for text in [plain, html] {
        assert!(text.chars().all(|c| is_plain(c) || c == '\n' || c == '\t'), "{text:?}");
    }
    let link = format!("a href=\"{}\">", page_of(pause));
    for element in html.split('<').skip(1) {
        let is_row =
            ["tr>", "/tr>", "th align=\"left\">", "/th>", "td>", "/td>"].iter().any(|row| element.starts_with(row));
        let is_ours = OURS.iter().any(|ours| element.starts_with(ours));
        assert!(is_row || is_ours || element.starts_with(&link), "{element:?} in {html}");
    }
    assert_eq!(html.matches("href").count() - html.matches("href=&").count(), html.matches(&link).count(), "{html}");
    assert_eq!(html.matches(&link).count(), 1);
}

#[tokio::test]
async fn arguments_reasons_and_refusals_are_shown_as_text() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    for hostile in HOSTILE {
        let before = mail.letters().len();
        let pause = world.ask("mailer", hostile).await;
        world.settle(&pause, json!({"decision": "deny", "message": hostile})).await;
        let letters = mail.letters();
        let [opened, settled] = &letters[before..] else { panic!("{letters:?}") };
        check(opened, &pause);
        check(settled, &pause);
        let shown: Value = serde_json::from_str(under(opened, "Arguments, exactly as they would run")).unwrap();
        assert_eq!(shown, json!({"to": hostile, "amount": 12.5}));
        // The reason is one line, and everything in it is seen.
        let reason =
            "reason    mail leaves⟦U+000D⟧⏎Bcc: eve@evil.example⟦U+000D⟧⏎⟦U+000D⟧⏎<script>alert(1)</script>⟦U+202E⟧\n";
        assert!(opened.text("text/plain").contains(reason), "{}", opened.text("text/plain"));
    }
}

#[tokio::test]
async fn questions_and_the_models_own_words_are_shown_as_text() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    for hostile in HOSTILE {
        let before = mail.letters().len();
        let question = json!({"questions": [{"question": format!("{hostile}?"), "options": [{"label": "a"}]}]});
        let asked = world.ask("asker", &question.to_string()).await;
        let confirmed = world.ask("confirmer", hostile).await;
        let letters = mail.letters();
        let [question, words] = &letters[before..] else { panic!("{letters:?}") };
        check(question, &asked);
        check(words, &confirmed);
        assert_eq!(question.header("subject"), Some("Answer needed: asker has a question"));
        assert_eq!(words.header("subject"), Some("Confirmation needed: confirmer asks whether to go on"));
    }
}
