//! Lines of a chunk: where they begin and end, and those around one.

use super::{clean, shown, without_prefix};
use crate::explain::log::scan::LOOK_AHEAD;
use crate::limits;

/// Bytes around a literal that are taken of a line longer than [`limits::LOG_LINE_BYTES`].
const LONG_LINE_BEFORE: usize = 8 << 10;
/// Lines kept after a hit: package errors list the members of the archive.
const LINES_AFTER: usize = 60;

/// The part of a line (between line ends that progress bars left) that holds `at`.
pub(super) fn part_with(text: &str, at: usize) -> &str {
    let start = text.get(..at).and_then(|t| t.rfind('\n')).map_or(0, |n| n.saturating_add(1));
    let end = text.get(at..).and_then(|t| t.find('\n')).map_or(text.len(), |n| at.saturating_add(n));
    let part = text.get(start..end).unwrap_or(text);
    if part.len() <= limits::SHOWN_TEXT_BYTES {
        return part;
    }
    let mut from = at.saturating_sub(256).max(start);
    while from > start && !text.is_char_boundary(from) {
        from -= 1;
    }
    text.get(from..end).unwrap_or(part)
}

pub(super) fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Start and end of the line that holds `at`, without its end; of a very long one the part around `at`.
pub(super) fn line_around(buffer: &[u8], at: usize) -> (usize, usize) {
    let back = at.saturating_sub(LONG_LINE_BEFORE);
    let start = buffer
        .get(back..at)
        .and_then(|b| memchr::memrchr(b'\n', b))
        .map_or(back, |n| back.saturating_add(n).saturating_add(1));
    let far = at.saturating_add(limits::LOG_LINE_BYTES - LONG_LINE_BEFORE).min(buffer.len());
    let end = buffer.get(at..far).and_then(|b| memchr::memchr(b'\n', b)).map_or(far, |n| at.saturating_add(n));
    (start, end.max(start))
}

/// Start of the line after the one that holds `at`.
pub(super) fn next_line(buffer: &[u8], at: usize) -> usize {
    let rest = buffer.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(buffer.len(), |n| at.saturating_add(n).saturating_add(1))
}

pub(super) fn lines_after(buffer: &[u8], end: usize) -> Vec<String> {
    let rest = buffer.get(end.saturating_add(1)..).unwrap_or_default();
    let rest = rest.get(..limits::LOG_LINE_BYTES).unwrap_or(rest);
    rest.split(|b| *b == b'\n').take(LINES_AFTER).map(|l| shown(without_prefix(&clean(l)))).collect()
}

/// Bytes up to which `buffer` holds whole lines, leaving the look-ahead; all but it when there is no line end.
pub(super) fn end_of_lines(buffer: &[u8]) -> usize {
    let limit = buffer.len().saturating_sub(LOOK_AHEAD);
    let part = buffer.get(..limit).unwrap_or_default();
    memchr::memrchr(b'\n', part).map_or(limit, |n| n.saturating_add(1))
}
