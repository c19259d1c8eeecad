//! A letter as it arrived, decoded as far as tests look at it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A letter as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Who sent it, by the envelope.
    pub from: String,
    /// Who gets it, by the envelope.
    pub to: Vec<String>,
    /// Its headers in order, unfolded and decoded.
    pub headers: Vec<(String, String)>,
    /// Its parts: one where it has no others.
    pub parts: Vec<Part>,
    /// All of it, as it arrived.
    pub raw: String,
}

/// A part of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its headers in order, unfolded and decoded.
    pub headers: Vec<(String, String)>,
    /// Its text, decoded, with `\n` at the end of each line.
    pub text: String,
}

impl Letter {
    pub(super) fn read(from: String, to: Vec<String>, raw: String) -> Self {
        let (headers, body) = divide(&raw);
        let boundary = find(&headers, "Content-Type").and_then(boundary);
        let parts = match boundary {
            None => vec![Part::read(&raw)],
            Some(boundary) => {
                let mark = format!("--{boundary}");
                let inner = body.split(mark.as_str()).skip(1).take_while(|part| !part.starts_with("--"));
                inner.map(|part| Part::read(part.trim_start_matches("\r\n"))).collect()
            }
        };
        Self { from, to, headers, parts, raw }
    }

    /// A header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The text of the part of this type, such as `text/plain`.
    ///
    /// # Panics
    /// There is none.
    pub fn text(&self, kind: &str) -> &str {
        let is_it = |part: &&Part| find(&part.headers, "Content-Type").is_some_and(|found| found.starts_with(kind));
        &self.parts.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} in {}", self.raw)).text
    }
}

impl Part {
    fn read(raw: &str) -> Self {
        let (headers, body) = divide(raw);
        let encoding = find(&headers, "Content-Transfer-Encoding").unwrap_or_default().to_ascii_lowercase();
        let bytes = match encoding.as_str() {
            "base64" => STANDARD.decode(body.replace(['\r', '\n'], "")).unwrap_or_default(),
            "quoted-printable" => quoted_printable(body),
            _ => body.as_bytes().to_vec(),
        };
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        Self { headers, text }
    }
}

/// The headers, and what comes after the first empty line.
fn divide(raw: &str) -> (Vec<(String, String)>, &str) {
    let (head, body) = raw.split_once("\r\n\r\n").unwrap_or((raw, ""));
    let unfolded = head.replace("\r\n ", " ").replace("\r\n\t", " ");
    let header = |line: &str| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        (name.to_owned(), encoded_words(value.trim()))
    };
    (unfolded.split("\r\n").filter(|line| !line.is_empty()).map(header).collect(), body)
}

fn find<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn boundary(content_type: &str) -> Option<String> {
    let (_, rest) = content_type.split_once("boundary=")?;
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(inner, _)| inner);
    quoted.or_else(|| rest.split(';').next()).map(str::to_owned)
}

/// A header's value with its encoded words (RFC 2047, base64) decoded. White space between two of them is none.
fn encoded_words(value: &str) -> String {
    let (mut bytes, mut rest, mut is_after_word) = (Vec::new(), value, false);
    while let Some((before, after)) = rest.split_once("=?utf-8?b?") {
        let Some((word, later)) = after.split_once("?=") else { break };
        if !(is_after_word && before.trim().is_empty()) {
            bytes.extend(before.as_bytes());
        }
        bytes.extend(STANDARD.decode(word).unwrap_or_default());
        (rest, is_after_word) = (later, true);
    }
    bytes.extend(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn quoted_printable(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return decoded,
            [b'=', b'\r', b'\n', rest @ ..] => rest,
            [b'=', high, low, rest @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
                decoded.extend(digits);
                rest
            }
            [byte, rest @ ..] => {
                decoded.push(*byte);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_unfolded_and_its_parts_are_decoded() {
        let raw = "Subject: a =?utf-8?b?w6k=?=\r\n =?utf-8?b?4oKs?= b\r\nX-Y:\r\n z\r\nContent-Type: multipart/alternative;\r\n boundary=\"b1\"\r\n\r\n--b1\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\none =3D =\r\ntwo =C3=A9\r\nthree\r\n--b1\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nPGI+\r\nw6k8L2I+\r\n--b1--\r\n";
        let letter = Letter::read("a@b".to_owned(), vec!["c@d".to_owned()], raw.to_owned());
        assert_eq!(letter.header("subject"), Some("a é€ b"));
        assert_eq!(letter.header("x-y"), Some("z"));
        assert_eq!(letter.text("text/plain"), "one = two é\nthree\n");
        assert_eq!(letter.text("text/html"), "<b>é</b>");
        let plain = Letter::read(String::new(), Vec::new(), "Content-Type: text/plain\r\n\r\nhi\r\n".to_owned());
        assert_eq!(plain.text("text/plain"), "hi\n");
    }
}
