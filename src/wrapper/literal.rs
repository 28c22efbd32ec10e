//! String literals of C++: escaped, raw, and several in a row.

/// How the literals were written; dates the compiler (format reference, section 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `"[1, {\"type\": …"` (torch up to 2.7)
    Escaped,
    /// `R"([1, …])"` (2.8+)
    Raw,
    /// several raw literals in a row, for texts over 16,000 characters (2.9+)
    SplitRaw,
}

/// The literals that `text` begins with, joined, and how they were written; `None` when it begins with something else
/// or a literal has no end.
pub fn read(text: &str) -> Option<(String, Form)> {
    let mut rest = text.trim_start();
    let mut value = String::new();
    let mut raw = 0usize;
    let mut escaped = 0usize;
    loop {
        if let Some(start) = rest.strip_prefix("R\"") {
            let (delimiter, body) = start.split_once('(')?;
            let end = format!("){delimiter}\"");
            let (inner, after) = body.split_once(&end)?;
            value.push_str(inner);
            rest = after;
            raw = raw.saturating_add(1);
        } else if let Some(start) = rest.strip_prefix('"') {
            rest = unescape(start, &mut value)?;
            escaped = escaped.saturating_add(1);
        } else {
            break;
        }
        rest = rest.trim_start();
    }
    match (raw, escaped) {
        (0, 0) => None,
        (0, _) => Some((value, Form::Escaped)),
        (1, _) => Some((value, Form::Raw)),
        _ => Some((value, Form::SplitRaw)),
    }
}

/// Appends the text of an escaped literal whose opening quote was taken; returns what follows the closing one.
fn unescape<'a>(text: &'a str, value: &mut String) -> Option<&'a str> {
    let mut rest = text;
    loop {
        let at = rest.find(['"', '\\'])?;
        let (plain, special) = rest.split_at_checked(at)?;
        value.push_str(plain);
        let Some(escape) = special.strip_prefix('\\') else { return special.get(1..) };
        let mut chars = escape.chars();
        value.push(match chars.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            other => other,
        });
        rest = chars.as_str();
    }
}

/// The first literal inside `text`.
pub fn first_in(text: &str) -> Option<String> {
    let at = text.find('"')?;
    // the `R` of a raw literal stands before its quote
    let at = if text.get(..at)?.ends_with('R') { at.checked_sub(1)? } else { at };
    read(text.get(at..)?).map(|(value, _)| value)
}

/// The last literal inside `text`, escaped form.
pub fn last_in(text: &str) -> Option<String> {
    let end = text.rfind('"')?;
    let before = text.get(..end)?;
    let mut start = before.rfind('"')?;
    // an escaped quote belongs to the text
    while before.get(..start)?.ends_with('\\') {
        start = before.get(..start)?.rfind('"')?;
    }
    read(text.get(start..)?).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_spec() {
        let spec = r#"[1, {"type": "a", "context": "[\"b\"]"}]"#;
        let escaped = format!("{spec:?};");
        assert_eq!(read(&escaped), Some((spec.to_owned(), Form::Escaped)));
        assert_eq!(read(&format!("R\"({spec})\";")), Some((spec.to_owned(), Form::Raw)));
        let (a, b) = spec.split_at(12);
        assert_eq!(read(&format!("\n    R\"({a})\"\n    R\"({b})\"\n    ;")), Some((spec.to_owned(), Form::SplitRaw)));
        assert_eq!(read("R\"()\";"), Some((String::new(), Form::Raw)));
    }

    #[test]
    fn literals_without_an_end_are_refused() {
        assert_eq!(read("R\"(abc"), None);
        assert_eq!(read("\"abc\\"), None);
        assert_eq!(read("abc"), None);
    }

    #[test]
    fn literals_inside_a_line() {
        let line = r#"CHECK((0 <= tmp7) & x, "index out of bounds: 0 <= tmp7 < ks1");"#;
        assert_eq!(last_in(line).as_deref(), Some("index out of bounds: 0 <= tmp7 < ks1"));
        assert_eq!(first_in(r#"loadKernel("C:\\a\\b.cubin", "k")"#).as_deref(), Some(r"C:\a\b.cubin"));
    }
}
