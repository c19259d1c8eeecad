//! Finds fenced blocks of code in text that comes in pieces.

use super::super::wire::CodeBlock;

/// Reads text piece by piece, line by line, and keeps no more than the line and the block that are open.
#[derive(Debug, Default)]
pub(super) struct Fences {
    line: String,
    open: Option<Fence>,
}

#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    language: String,
    code: String,
}

impl Fences {
    /// The blocks that this piece completes.
    pub(super) fn read(&mut self, piece: &str) -> Vec<CodeBlock> {
        let mut blocks = Vec::new();
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                blocks.extend(self.end_line());
            }
        }
        blocks
    }

    /// The block that ends with the text, where its closing line has no line break.
    pub(super) fn end(&mut self) -> Option<CodeBlock> {
        if self.line.is_empty() { None } else { self.end_line() }
    }

    fn end_line(&mut self) -> Option<CodeBlock> {
        let line = std::mem::take(&mut self.line);
        match self.open.take() {
            None => {
                self.open = Fence::opened_by(&line);
                None
            }
            Some(fence) if fence.is_closed_by(&line) => {
                Some(CodeBlock { language: fence.language, code: fence.code, delta: String::new() })
            }
            Some(mut fence) => {
                fence.code.push_str(&line);
                self.open = Some(fence);
                None
            }
        }
    }
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let (mark, length, rest) = fence_marks(line)?;
        // Three backticks within a sentence are inline code.
        let is_fence = mark == '~' || !rest.contains('`');
        let language = rest.split_whitespace().next().unwrap_or_default().to_owned();
        is_fence.then(|| Self { mark, length, language, code: String::new() })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        fence_marks(line)
            .is_some_and(|(mark, length, rest)| mark == self.mark && length >= self.length && rest.trim().is_empty())
    }
}

/// The mark, how often it stands there, and what follows; `None` where the line begins in another way.
fn fence_marks(line: &str) -> Option<(char, usize, &str)> {
    let indented = line.trim_start_matches(' ');
    let mark = indented.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = indented.trim_start_matches(mark);
    let length = indented.len() - rest.len();
    (length >= 3 && line.len() - indented.len() <= 3).then_some((mark, length, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the pieces, the blocks are the same.
    #[track_caller]
    fn check(text: &str, blocks: &[(&str, &str)]) {
        let cuts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        for cut in cuts {
            let mut fences = Fences::default();
            let (before, after) = text.split_at(cut);
            let mut found = fences.read(before);
            found.extend(fences.read(after));
            found.extend(fences.end());
            let found: Vec<(&str, &str)> =
                found.iter().map(|block| (block.language.as_str(), block.code.as_str())).collect();
            assert_eq!(found, blocks, "cut at {cut} of {text:?}");
        }
    }

    #[test]
    fn a_fenced_block_is_found_wherever_the_text_is_cut() {
        check("Here:\n```rust\nfn main() {}\n```\nDone.", &[("rust", "fn main() {}\n")]);
        check("```\na\n```\n~~~py x\nb\n~~~", &[("", "a\n"), ("py", "b\n")]);
        check("````\n```\nstill code\n```\n````\n", &[("", "```\nstill code\n```\n")]);
    }

    #[test]
    fn what_is_no_block_is_none() {
        check("use ```inline``` code", &[]);
        check("```rust\nnever closed", &[]);
        check("    ```\nindented too far\n    ```\n", &[]);
    }
}
