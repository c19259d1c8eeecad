//! A licence expression: names joined by `AND` and `OR` (older crates write `/`), with brackets and exceptions.

use std::collections::BTreeSet;

/// Whether a choice of allowed licences satisfies the expression.
///
/// # Errors
/// It is no expression.
pub(super) fn is_satisfied(expression: &str, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    let satisfied = reader.any_of().ok_or_else(|| format!("`{expression}` is no licence expression"))?;
    if reader.words.is_empty() { Ok(satisfied) } else { Err(format!("`{expression}` is no licence expression")) }
}

struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl Reader<'_> {
    fn any_of(&mut self) -> Option<bool> {
        let mut satisfied = self.all_of()?;
        while self.takes("OR") {
            satisfied |= self.all_of()?;
        }
        Some(satisfied)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut satisfied = self.one()?;
        while self.takes("AND") {
            satisfied &= self.one()?;
        }
        Some(satisfied)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let satisfied = self.any_of()?;
            return self.takes(")").then_some(satisfied);
        }
        let (name, rest) = self.words.split_first()?;
        if ["AND", "OR", "WITH", ")"].contains(name) {
            return None;
        }
        self.words = rest;
        // An exception only adds rights.
        if self.takes("WITH") {
            self.words = self.words.split_first()?.1;
        }
        Some(self.allowed.contains(*name))
    }

    fn takes(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(expression: &str) -> Result<bool, String> {
        is_satisfied(expression, &["MIT", "ISC", "Apache-2.0"].map(str::to_owned).into())
    }

    #[test]
    fn one_of_a_choice_is_enough_and_all_of_a_sum_are_needed() {
        for good in ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR MIT", "ISC AND (Apache-2.0 OR GPL-3.0)", "(MIT)"] {
            assert_eq!(is_allowed(good), Ok(true), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR (MIT AND MPL-2.0)"] {
            assert_eq!(is_allowed(bad), Ok(false), "{bad}");
        }
        assert_eq!(is_allowed("Apache-2.0 WITH LLVM-exception"), Ok(true));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for bad in ["", "AND", "MIT OR", "(MIT", "MIT)", "MIT ISC", "MIT WITH"] {
            assert!(is_allowed(bad).is_err(), "{bad}");
        }
    }
}
