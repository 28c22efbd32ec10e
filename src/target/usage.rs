//! Wrong use: what was written, what is wrong with it, and what would have been right.

/// A usage error (exit 2). Its text names the valid words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl UsageError {
    /// From a sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
    /// `word` is none of `valid`: names the nearest ones, or all when none is near.
    pub fn unknown_word(what: &str, word: &str, valid: &[&str]) -> Self {
        let near = near_matches(word, valid);
        let shown = if near.is_empty() { valid.to_vec() } else { near.clone() };
        let lead = if near.is_empty() { "one of" } else { "did you mean" };
        Self(format!("{what} `{word}` is not known: {lead} {}", shown.join(", ")))
    }
    /// Says in which flag or line it stands.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

/// The words that a person may have meant, best first, at most three.
pub fn near_matches<'a>(word: &str, valid: &[&'a str]) -> Vec<&'a str> {
    let lower = word.to_lowercase();
    let mut near: Vec<(usize, &str)> = valid
        .iter()
        .filter_map(|v| {
            let distance = edit_distance(&lower, &v.to_lowercase());
            let close = distance <= 1 + v.len() / 4;
            let starts = lower.len() >= 3 && v.to_lowercase().starts_with(&lower);
            (close || starts).then_some((distance, *v))
        })
        .collect();
    near.sort();
    near.into_iter().map(|(_, v)| v).take(3).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours. Words are cut at 64 characters: longer ones are no
/// misspelling of ours.
fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |r: usize, c: usize| rows.get(r).and_then(|row| row.get(c)).copied().unwrap_or(usize::MAX / 2);
            let left = row.last().copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(i, j) + usize::from(x != y)).min(at(i, j + 1) + 1).min(left + 1);
            if i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x) {
                best = best.min(at(i - 1, j - 1) + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_find_their_word() {
        assert_eq!(near_matches("flaot32", &["float32", "float64", "int8"]), ["float32"]);
        assert_eq!(near_matches("verfiy", &["verify", "show"]), ["verify"]);
        assert!(near_matches("model.pt2", &["verify", "show"]).is_empty());
        let error = UsageError::unknown_word("device", "tpu", &["cpu", "cuda"]);
        assert_eq!(error.to_string(), "device `tpu` is not known: did you mean cpu");
    }
}
