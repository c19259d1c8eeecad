//! "Did you mean …?": the known word that is nearest to an unknown one.

/// The candidate that `word` is most likely a misspelling of, if one is near enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    if folded.is_empty() || folded.len() > 64 {
        return None;
    }
    let allowed = (folded.len() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&folded, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?`, or `None` where nothing is near.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// Letters and digits in lower case: `systemPrompt` and `system-prompt` are the same word as `system_prompt`.
fn fold(word: &str) -> Vec<char> {
    word.chars().take(65).filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// How many letters must be added, removed, replaced or swapped with their neighbour.
fn distance(one: &[char], other: &[char]) -> usize {
    let width = other.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (row, a) in one.iter().enumerate() {
        let mut next = vec![row + 1; width];
        for (column, b) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(a != b);
            next[column + 1] = replaced.min(last[column + 1] + 1).min(next[column] + 1);
            let is_swap = row > 0 && column > 0 && *a == other[column - 1] && one[row - 1] == *b;
            if is_swap {
                next[column + 1] = next[column + 1].min(before[column - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, next);
    }
    last[width - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_recognised_and_another_word_is_not() {
        let known = ["system_prompt", "max_turns", "tools", "type", "model", "memory"];
        for (word, expected) in [
            ("sytem_prompt", Some("system_prompt")),
            ("systemPrompt", Some("system_prompt")),
            ("max-turns", Some("max_turns")),
            ("tool", Some("tools")),
            ("tpye", Some("type")),
            ("modle", Some("model")),
            ("temperature", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }
}
