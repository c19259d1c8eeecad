//! An answer that is read while it is written.

/// The blocks of a stream: what stands between two blank lines.
pub struct Blocks {
    response: reqwest::Response,
    unread: String,
}

impl Blocks {
    pub async fn begin(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Self { response, unread: String::new() }
    }

    /// The next block; `None` at the end.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.unread = rest;
                return Some(block);
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.unread.push_str(std::str::from_utf8(&chunk).expect("frames are written whole"));
        }
    }
}
