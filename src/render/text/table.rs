//! Tables without rules: columns two blanks apart, indented, cut to the width of the terminal.

use super::theme::{DIM, paint};
use crate::render::escape;
use std::io::{Result, Write};
use tabled::builder::Builder;
use tabled::settings::peaker::Priority;
use tabled::settings::{Padding, Style, Width};
use unicode_width::UnicodeWidthStr;

/// Blanks before every table.
const INDENT: usize = 2;

/// Writes rows below a header. Cells are escaped here, so that no text of a file can break the table.
pub fn write_table(header: &[&str], rows: &[Vec<String>], width: Option<usize>, out: &mut dyn Write) -> Result<()> {
    let mut builder = Builder::default();
    if !header.is_empty() {
        builder.push_record(header.iter().map(|h| (*h).to_owned()));
    }
    for row in rows {
        builder.push_record(row.iter().map(|cell| escape::plain(cell).into_owned()));
    }
    let mut table = builder.build();
    table.with(Style::empty()).with(Padding::new(0, 2, 0, 0));
    if let Some(width) = width {
        table.with(Width::truncate(width.saturating_sub(INDENT)).suffix("…").priority(Priority::max(true)));
    }
    for (at, line) in table.to_string().lines().enumerate() {
        let line = line.trim_end();
        if at == 0 && !header.is_empty() {
            writeln!(out, "{:INDENT$}{}", "", paint(DIM, line))?;
        } else {
            writeln!(out, "{:INDENT$}{line}", "")?;
        }
    }
    Ok(())
}

/// Writes parts joined by ` · `, broken between parts where the line gets too long.
pub fn write_parts(parts: &[String], width: Option<usize>, out: &mut dyn Write) -> Result<()> {
    let mut line = String::new();
    for part in parts {
        let part = escape::plain(part);
        let longer = line.width() + 3 + part.width() + INDENT;
        if !line.is_empty() && width.is_some_and(|width| longer > width) {
            writeln!(out, "{:INDENT$}{line} ·", "")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push_str(" · ");
        }
        line.push_str(&part);
    }
    if line.is_empty() { Ok(()) } else { writeln!(out, "{:INDENT$}{line}", "") }
}

/// Writes a paragraph of escaped text, broken at blanks, further lines indented by `hang`.
pub fn write_wrapped(first: &str, text: &str, hang: usize, width: Option<usize>, out: &mut dyn Write) -> Result<()> {
    let text = escape::plain(text);
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(hang).max(20));
    let mut line = String::new();
    let mut lead = first.to_owned();
    for word in text.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() > room {
            writeln!(out, "{lead}{line}")?;
            lead = " ".repeat(hang);
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{lead}{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(cells: &[&str], width: Option<usize>) -> String {
        let mut out = Vec::new();
        let row: Vec<String> = cells.iter().map(|c| (*c).to_owned()).collect();
        write_table(&[], &[row], width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_of_a_file_cannot_break_a_table() {
        let text = table(&["a\nb\u{1b}[31m", "c"], None);
        assert_eq!(text, "  a\\nb\\u{1b}[31m  c\n");
    }

    #[test]
    fn wide_tables_are_cut() {
        let text = table(&["0123456789012345678901234567890123456789", "short"], Some(30));
        assert!(text.trim_end().width() <= 30 && text.contains('…'), "{text}");
        assert!(text.contains("short"));
    }

    #[test]
    fn paragraphs_are_broken_at_blanks() {
        let mut out = Vec::new();
        write_wrapped("! ", "one two three four five six seven", 2, Some(22), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "! one two three four\n  five six seven\n");
    }
}
