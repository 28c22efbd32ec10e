//! Text from files made harmless for the place where it is shown.

use std::borrow::Cow;
use std::io::Write;

/// Control characters, escape sequences, and the marks that reorder or hide text (Unicode bidi controls,
/// zero-width and separator characters, those that no XML may hold) become visible `\u{..}`; a line stays a line.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_harmful(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
        out
    }))
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

/// For a cell or paragraph of GitHub's Markdown: no markup, link, mention, HTML or cell border survives.
pub fn markdown(text: &str) -> String {
    plain(text).chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
        out
    })
}

/// For the message of a GitHub workflow command (actions/toolkit, `escapeData`).
pub fn workflow_data(text: &str) -> String {
    workflow_line(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// For a property of a GitHub workflow command (actions/toolkit, `escapeProperty`).
pub fn workflow_property(text: &str) -> String {
    workflow_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// For a plain line of a GitHub log that must not be taken for a command: the runner takes `::name` at the
/// start of a line, and the older `##[name]` anywhere.
pub fn workflow_line(text: &str) -> String {
    plain(text).replace("##[", "# #[")
}

/// Writes JSON with the same harmful characters as escapes; JSON itself leaves most of them raw. Outside of strings it has
/// none but line feeds.
pub struct PlainJson<'w>(pub &'w mut dyn Write);

impl Write for PlainJson<'_> {
    fn write(&mut self, json: &[u8]) -> std::io::Result<usize> {
        let Ok(text) = std::str::from_utf8(json) else {
            self.0.write_all(json)?;
            return Ok(json.len());
        };
        let is_hidden = |c: char| c != '\n' && is_harmful(c);
        for part in text.split_inclusive(is_hidden) {
            let plain = part.trim_end_matches(is_hidden);
            self.0.write_all(plain.as_bytes())?;
            if let Some(c) = part.chars().next_back().filter(|c| is_hidden(*c)) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(self.0, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(json.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor_or_the_reading_order() {
        assert_eq!(plain("a\u{1b}[2Jb\u{202e}c\n"), "a\\u{1b}[2Jb\\u{202e}c\\n");
        assert_eq!(plain("a\u{fffe}\u{ffff}b"), "a\\u{fffe}\\u{ffff}b");
        assert!(matches!(plain("kwargs['größe']"), Cow::Borrowed(_)));
    }

    #[test]
    fn markdown_stays_text() {
        assert_eq!(markdown("a|b <img> @me `x` [l](u)"), "a\\|b &lt;img&gt; &#64;me \\`x\\` \\[l\\](u)");
    }

    #[test]
    fn commands_stay_text() {
        assert_eq!(workflow_data("50%\n::error::x"), "50%25\\n::error::x");
        assert_eq!(workflow_property("a:b,c"), "a%3Ab%2Cc");
    }
}
