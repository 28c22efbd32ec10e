//! Cutting machine-made C++ statements into pieces: lines, argument lists, identifiers.
//!
//! The generated source is one statement per line, so nothing here knows C++ beyond brackets and quotes.

/// A line without its end.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// from 1
    pub number: usize,
    /// byte offset of its first character in the source
    pub offset: usize,
    /// its text, without line end, carriage return and the indentation of a dump
    pub text: &'a str,
}

/// The lines of `source` from byte `from` on; `indent` is cut off where a line begins with it.
pub fn lines<'a>(source: &'a str, from: usize, indent: &'a str) -> impl Iterator<Item = Line<'a>> {
    let head = source.as_bytes().get(..from).unwrap_or_default();
    let mut number = memchr::memchr_iter(b'\n', head).count();
    let mut offset = from;
    std::iter::from_fn(move || {
        let rest = source.get(offset..).filter(|rest| !rest.is_empty())?;
        let end = memchr::memchr(b'\n', rest.as_bytes());
        let text = rest.get(..end.unwrap_or(rest.len()))?;
        let start = offset;
        offset = offset.saturating_add(text.len()).saturating_add(1);
        number = number.saturating_add(1);
        let text = text.strip_suffix('\r').unwrap_or(text);
        Some(Line { number, offset: start, text: text.strip_prefix(indent).unwrap_or(text) })
    })
}

/// True for the characters of a C++ identifier.
pub fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The identifier that `text` begins with; may be empty.
pub fn word_at_start(text: &str) -> &str {
    text.find(|c| !is_word(c)).and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The identifier that `text` ends with; may be empty.
pub fn word_at_end(text: &str) -> &str {
    let text = text.trim_end();
    text.rfind(|c| !is_word(c)).and_then(|at| text.get(at..)?.get(1..)).unwrap_or(text)
}

/// What stands before and behind the first `needle`: `split_once` without its set-up, which costs more than the search of
/// a line.
pub fn cut<'a>(text: &'a str, needle: &str) -> Option<(&'a str, &'a str)> {
    let Some(first) = needle.bytes().next() else { return Some(("", text)) };
    memchr::memchr_iter(first, text.as_bytes())
        .find_map(|at| Some((text.get(..at)?, text.get(at..)?.strip_prefix(needle)?)))
}

/// What stands between `open` and the next `close` after it.
pub fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = cut(text, open)?;
    cut(rest, close).map(|(inner, _)| inner)
}

/// The number at the start of `text`, and what follows it.
pub fn number_at_start(text: &str) -> Option<(i64, &str)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let end = end.checked_add(text.len().checked_sub(digits.len())?)?;
    Some((text.get(..end)?.parse().ok()?, text.get(end..)?))
}

/// `k` of the first `PREFIX[k]`.
pub fn index_after(text: &str, prefix: &str) -> Option<usize> {
    let (_, rest) = cut(text, prefix)?;
    let (number, rest) = number_at_start(rest.strip_prefix('[')?)?;
    rest.starts_with(']').then_some(())?;
    usize::try_from(number).ok()
}

/// Walks over `text`, calling `visit(byte offset, byte, depth)` for each byte outside of string literals.
/// `depth` counts open brackets of all kinds before the byte. Stops when `visit` answers `false`.
fn walk(text: &str, mut visit: impl FnMut(usize, u8, usize) -> bool) {
    let mut depth = 0usize;
    let mut angles: Vec<usize> = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    let mut before = b' ';
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match (escaped, byte) {
                (true, _) => escaped = false,
                (false, b'\\') => escaped = true,
                (false, b'"') => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            // only a template's bracket stands directly behind a word; comparisons are spaced
            b'>' if angles.last().is_some_and(|open| open.checked_add(1) == Some(depth)) => {
                angles.pop();
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        if !visit(at, byte, depth) {
            return;
        }
        match byte {
            b'(' | b'[' | b'{' => depth = depth.saturating_add(1),
            b'<' if before.is_ascii_alphanumeric() || before == b'_' => {
                angles.push(depth);
                depth = depth.saturating_add(1);
            }
            _ => {}
        }
        before = byte;
    }
}

/// The pieces of `text` between commas that stand outside of all brackets and quotes, trimmed.
/// A comma at the end, as in `{3L, }`, opens no further piece.
pub fn split_arguments(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0usize;
    walk(text, |at, byte, depth| {
        if byte == b',' && depth == 0 {
            pieces.push(text.get(start..at).unwrap_or_default().trim());
            start = at.saturating_add(1);
        }
        true
    });
    let last = text.get(start..).unwrap_or_default().trim();
    if !last.is_empty() {
        pieces.push(last);
    }
    pieces
}

/// `text` begins behind an opening bracket: what stands before its closing one, and what follows that.
pub fn until_closed(text: &str) -> Option<(&str, &str)> {
    let mut found = None;
    let mut open = 0usize;
    walk(text, |at, byte, _| {
        match byte {
            b'(' | b'[' | b'{' => open = open.saturating_add(1),
            b')' | b']' | b'}' if open == 0 => {
                found = Some(at);
                return false;
            }
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        true
    });
    let end = found?;
    Some((text.get(..end)?, text.get(end.checked_add(1)?..)?))
}

/// The arguments of the first call of `function` (given with its opening bracket, `loadKernel(`).
pub fn call_arguments<'a>(text: &'a str, function: &str) -> Option<Vec<&'a str>> {
    let (_, rest) = cut(text, function)?;
    until_closed(rest).map(|(inner, _)| split_arguments(inner))
}

/// `(name, right side)` of `TYPE name = right side;` and of `TYPE name[] = right side;`.
pub fn declaration(statement: &str) -> Option<(&str, &str)> {
    let (left, right) = cut(statement, " = ")?;
    // a condition or a call on the left is no declaration
    if left.contains('(') && !left.starts_with("decltype(auto)") || left.contains('.') {
        return None;
    }
    let name = word_at_end(left.strip_suffix("[]").unwrap_or(left));
    let right = cut(right, "; ").map_or(right, |(first, _)| first);
    let right = cut(right, "//").map_or(right, |(code, _)| code).trim_end();
    (!name.is_empty()).then_some((name, right.strip_suffix(';').unwrap_or(right)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_brackets_and_quotes_do_not_split() {
        assert_eq!(split_arguments(r#"a, f(b, c), {1L, }, "x, (y", std::array<int64_t, 2>{1L, 1L}.data()"#).len(), 5);
        assert_eq!(split_arguments("3L, "), ["3L"]);
        assert!(split_arguments("").is_empty());
        assert_eq!(split_arguments("a < b, c > d"), ["a < b", "c > d"]);
        assert_eq!(split_arguments("static_cast<int64_t>(s0), 16L"), ["static_cast<int64_t>(s0)", "16L"]);
    }

    #[test]
    fn brackets_are_matched() {
        assert_eq!(call_arguments("k = load(\"a(b\", 0);", "load("), Some(vec!["\"a(b\"", "0"]));
        assert_eq!(until_closed("a, (b)) c"), Some(("a, (b)", " c")));
        assert_eq!(until_closed("a, (b"), None);
    }

    #[test]
    fn declarations_have_a_name_and_a_value() {
        assert_eq!(declaration("auto buf1 = std::move(buf0);  // reuse"), Some(("buf1", "std::move(buf0)")));
        assert_eq!(declaration("static constexpr int64_t int_array_0[] = {2L, };"), Some(("int_array_0", "{2L, }")));
        assert_eq!(declaration("kernels.k = loadKernel(1);"), None);
        assert_eq!(declaration("[[maybe_unused]] auto& w = constants_->at(0);"), Some(("w", "constants_->at(0)")));
    }

    #[test]
    fn lines_are_counted_from_one() {
        let all: Vec<_> = lines("a\r\n\tb\n\nc", 3, "\t").map(|l| (l.number, l.text)).collect();
        assert_eq!(all, [(2, "b"), (3, ""), (4, "c")]);
    }
}
