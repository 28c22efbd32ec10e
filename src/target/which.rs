//! WHICH input is meant: a position, a call path, an internal name or a label.

use super::UsageError;
use super::usage::near_matches;
use crate::model::TensorSpec;

/// The input that a request is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// the n-th given without a name: binds in input order, from 0
    Nth(usize),
    /// as written: `3`, `kwargs['bias']`, `bias`, `arg2_1`
    Named(String),
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nth(n) => write!(f, "{n}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// Splits `WHICH=VALUE` at the first `=` that stands outside brackets and quotes.
pub fn split_which(text: &str) -> (Option<&str>, &str) {
    let mut depth = 0usize;
    let mut quote: Option<char> = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[' | '(' | '{') => depth += 1,
            (None, ']' | ')' | '}') => depth = depth.saturating_sub(1),
            (None, '=') if depth == 0 => {
                let (which, value) = text.split_at(at);
                return (Some(which.trim()), value.get(1..).unwrap_or_default());
            }
            _ => {}
        }
    }
    (None, text)
}

/// The position of the input called `name`.
///
/// # Errors
/// When no input or more than one is called so; the message names the valid ones.
pub fn find_input(name: &str, inputs: &[TensorSpec]) -> Result<usize, UsageError> {
    if let Ok(position) = name.parse::<usize>() {
        return if position < inputs.len() { Ok(position) } else { Err(no_such(name, inputs)) };
    }
    let path = normal_path(name);
    // the most exact kind of name decides; two hits of one kind are ambiguous
    let kinds: [&dyn Fn(&TensorSpec) -> bool; 4] = [
        &|i| i.path.as_deref().is_some_and(|p| normal_path(p) == path),
        &|i| i.name.as_deref() == Some(name),
        &|i| i.labels.iter().any(|l| l.name == name),
        &|i| i.path.as_deref().and_then(last_key) == Some(name),
    ];
    for is_called in kinds {
        let hits: Vec<usize> = inputs.iter().enumerate().filter(|(_, i)| is_called(i)).map(|(n, _)| n).collect();
        match hits.as_slice() {
            [] => {}
            [one] => return Ok(*one),
            several => {
                let paths: Vec<String> = several
                    .iter()
                    .filter_map(|n| inputs.get(*n))
                    .map(|i| i.path.clone().unwrap_or_else(|| i.index.to_string()))
                    .collect();
                return Err(UsageError::new(format!("`{name}` is not unique: {}", paths.join(", "))));
            }
        }
    }
    Err(no_such(name, inputs))
}

/// Quotes of either kind mean the same key.
fn normal_path(path: &str) -> String {
    path.replace('"', "'")
}

/// `bias` of `kwargs['bias']`.
fn last_key(path: &str) -> Option<&str> {
    let inner = path.strip_suffix(']')?;
    let (_, key) = inner.rsplit_once('[')?;
    let quote = key.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    key.strip_prefix(quote)?.strip_suffix(quote)
}

fn no_such(name: &str, inputs: &[TensorSpec]) -> UsageError {
    if inputs.is_empty() {
        return UsageError::new(format!("no input `{name}`: the model has no inputs"));
    }
    let names: Vec<&str> = inputs
        .iter()
        .flat_map(|i| {
            let labels = i.labels.iter().map(|l| l.name.as_str());
            i.path
                .as_deref()
                .into_iter()
                .chain(i.name.as_deref())
                .chain(labels)
                .chain(i.path.as_deref().and_then(last_key))
        })
        .collect();
    let near = near_matches(name, &names);
    if !near.is_empty() && name.parse::<usize>().is_err() {
        return UsageError::new(format!("no input `{name}`: did you mean {}", near.join(", ")));
    }
    let last = inputs.len() - 1;
    let mut shown: Vec<&str> = inputs.iter().filter_map(|i| i.path.as_deref().or(i.name.as_deref())).take(12).collect();
    if shown.len() < inputs.len() && !shown.is_empty() {
        shown.push("…");
    }
    UsageError::new(format!(
        "no input `{name}`: there are 0 to {last}{}{}",
        if shown.is_empty() { "" } else { ", " },
        shown.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inputs() -> Vec<TensorSpec> {
        ["args[0]['x']", "args[1]['x']", "kwargs['bias']"]
            .iter()
            .enumerate()
            .map(|(index, path)| TensorSpec {
                index,
                name: Some(format!("arg{}_1", index + 2)),
                path: Some((*path).to_owned()),
                ..TensorSpec::default()
            })
            .collect()
    }

    #[test]
    fn splits_outside_brackets_and_quotes() {
        assert_eq!(split_which("kwargs['a=b']=2x10"), (Some("kwargs['a=b']"), "2x10"));
        assert_eq!(split_which("f32[2, 10]"), (None, "f32[2, 10]"));
        assert_eq!(split_which("x=f32[2]=3"), (Some("x"), "f32[2]=3"));
        assert_eq!(split_which("="), (Some(""), ""));
    }

    #[test]
    fn finds_inputs_by_every_kind_of_name() {
        for name in ["2", "kwargs['bias']", "kwargs[\"bias\"]", "bias", "arg4_1"] {
            assert_eq!(find_input(name, &inputs()), Ok(2), "{name}");
        }
        assert!(find_input("x", &inputs()).unwrap_err().to_string().contains("args[1]['x']"));
        assert!(find_input("bais", &inputs()).unwrap_err().to_string().contains("bias"));
        assert!(find_input("7", &inputs()).unwrap_err().to_string().contains("0 to 2"));
    }

    proptest! {
        #[test]
        fn splitting_loses_nothing(text in "\\PC{0,40}") {
            let (which, value) = split_which(&text);
            prop_assert!(text.ends_with(value));
            prop_assert!(which.is_none_or(|w| text.contains(w)));
        }
    }
}
