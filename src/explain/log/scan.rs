//! The pass over raw chunks.

use super::super::frame;
use super::super::pattern::{self, Match, Rank};
use super::lines::{count_lines, end_of_lines, line_around, lines_after, next_line, part_with};
use super::search::{Found, Search};
use super::{Hit, Reading, Said, clean, shown, without_prefix};
use crate::limits;
use std::sync::LazyLock;

/// Bytes looked at in one go.
pub(super) const CHUNK: usize = 1 << 20;
/// Bytes kept behind the part that is looked at, so that a text and what follows it are seen whole.
pub(super) const LOOK_AHEAD: usize = 128 << 10;
/// Lines that a traceback may have before its exception.
const TRACEBACK_LINES: usize = 400;
/// Texts remembered per literal.
const REPEATS: usize = 32;
/// Head and tail of the log that are matched again, put together, when nothing was found line by line.
const SECOND_LOOK: usize = 512 << 10;

const TRACEBACK: &str = "Traceback (most recent call last)";
/// Lines per literal that are matched in full; after these only one in [`SAMPLE`] is, the others are counted.
const FULL_LOOKS: u64 = 2_000;
/// See [`FULL_LOOKS`].
const SAMPLE: u64 = 64;
/// Texts that are no pattern but are kept.
const MARKERS: &[&str] = &[
    TRACEBACK,
    "  what():",
    "Exception in aoti_torch: ",
    "Error: ",
    ".wrapper.so",
    ".so(+0x",
    ".so+0x",
    "AOTInductorModelContainer",
    "traps: ",
    "cpp_fused_",
    "data/aotinductor/",
    "AOTIModelPackageLoader",
    "torch version: ",
    "PyTorch version: ",
    "torch==",
];

/// The literals of all patterns, then the markers.
static SEARCH: LazyLock<(Search, usize)> = LazyLock::new(|| {
    let mut literals: Vec<&str> = pattern::table().flat_map(|p| p.literals.iter().copied()).collect();
    literals.sort_unstable();
    literals.dedup();
    let patterns = literals.len();
    literals.extend(MARKERS);
    (Search::new(literals), patterns)
});

/// A text seen before, as raw bytes, and the hits that its line made.
struct Repeat {
    text: Vec<u8>,
    /// where the literal stands in `text`
    literal_at: usize,
    hits: Vec<usize>,
}

/// How far the lines of a chunk are counted.
struct Place {
    counted: usize,
    /// line ends before `counted`
    line: u64,
    /// end and number of the last line that begins a traceback
    traceback: Option<(usize, u64)>,
}

impl Place {
    fn count(&mut self, buffer: &[u8], to: usize) {
        // occurrences in one line may come from right to left
        if let Some(between) = buffer.get(self.counted..to) {
            self.line = self.line.saturating_add(count_lines(between));
            self.counted = to;
        }
    }
}

/// State of the pass.
#[derive(Default)]
pub(super) struct Scanner {
    reading: Reading,
    repeats: Vec<Vec<Repeat>>,
    /// per literal: lines matched in full or left out since the last one
    looks: Vec<u64>,
    head: Vec<u8>,
    tail: Vec<u8>,
    lines_before_tail: u64,
}

impl Scanner {
    pub(super) fn bytes_seen(&self) -> u64 {
        self.reading.bytes
    }

    #[cfg(test)]
    pub(super) fn assume_seen(&mut self, bytes: u64) {
        self.reading.bytes = bytes;
    }

    /// Looks at whole lines of `buffer`; gives the number of bytes that are done with.
    pub(super) fn chunk(&mut self, buffer: &[u8], is_last: bool) -> usize {
        let done = if is_last { buffer.len() } else { end_of_lines(buffer) };
        let (search, patterns) = &*SEARCH;
        self.repeats.resize_with(search.len(), Vec::new);
        self.looks.resize(search.len(), 0);
        let part = buffer.get(..done).unwrap_or_default();
        let mut place = Place { counted: 0, line: self.reading.lines, traceback: None };
        search.each(part, |found| {
            let marker = found.literal.checked_sub(*patterns).and_then(|m| MARKERS.get(m)).copied();
            self.found(buffer, found, marker, &mut place)
        });
        let Place { counted, line, traceback: last_traceback } = place;
        if let Some((end, number)) = last_traceback {
            self.traceback(buffer, end, number);
        }
        let rest = part.get(counted..).unwrap_or_default();
        let mut total = line.saturating_add(count_lines(rest));
        if is_last && !part.is_empty() && !part.ends_with(b"\n") {
            total = total.saturating_add(1);
        }
        self.reading.lines = total;
        self.reading.bytes = self.reading.bytes.saturating_add(done as u64);
        self.keep(part);
        done
    }

    /// Looks at one occurrence; gives the place before which nothing more is wanted.
    fn found(&mut self, buffer: &[u8], found: Found, marker: Option<&'static str>, place: &mut Place) -> usize {
        let name_before = || {
            let before = found.start.checked_sub(1).and_then(|at| buffer.get(at));
            before.is_some_and(u8::is_ascii_alphanumeric)
        };
        match marker {
            Some(TRACEBACK) => {}
            // `ValueError: ` is an exception's name, which its traceback tells
            Some("Error: ") if name_before() => return 0,
            Some(marker) if self.is_sated(marker) || self.is_worn(found.literal) => return 0,
            Some(_) => {}
            // the rest of the line says the same again
            None if self.is_repeat(buffer, found.literal, found.start) || self.is_worn(found.literal) => {
                return next_line(buffer, found.end);
            }
            None => {}
        }
        place.count(buffer, found.start);
        let (start, end) = line_around(buffer, found.start);
        let number = place.line.saturating_add(1);
        match marker {
            // only the last one of a log is kept
            Some(TRACEBACK) => place.traceback = Some((end, number)),
            Some(marker) => self.marker(buffer, start, end, number, marker),
            None => {
                self.candidate(buffer, (start, end), (found.literal, found.start), number);
                self.frame(buffer.get(start..end).unwrap_or_default(), number);
                self.note_error(buffer.get(start..end).unwrap_or_default(), number);
                return end;
            }
        }
        0
    }

    /// True when what a marker leads to is kept often enough.
    fn is_sated(&self, marker: &str) -> bool {
        match marker {
            "Error: " | "Exception in aoti_torch: " => self.reading.errors.len() >= limits::LOG_TEXTS,
            ".wrapper.so" | ".so(+0x" | ".so+0x" | "AOTInductorModelContainer" | "traps: " | "cpp_fused_" => {
                self.reading.frames.len() >= limits::LOG_TEXTS
            }
            "data/aotinductor/" => self.reading.models.len() >= 16,
            "AOTIModelPackageLoader" => self.reading.uses_package_loader,
            "torch version: " | "PyTorch version: " | "torch==" => self.reading.torch.is_some(),
            _ => false,
        }
    }

    /// True when a literal was looked at often enough and this line is not one of the sample.
    fn is_worn(&mut self, literal: usize) -> bool {
        let Some(looks) = self.looks.get_mut(literal) else { return false };
        *looks = looks.saturating_add(1);
        let is_worn = *looks > FULL_LOOKS && looks.checked_rem(SAMPLE) != Some(0);
        if is_worn && let Some(known) = self.repeats.get(literal).and_then(|r| r.last()) {
            for hit in &known.hits {
                if let Some(hit) = self.reading.hits.get_mut(*hit) {
                    hit.count = hit.count.saturating_add(1);
                }
            }
        }
        is_worn
    }

    fn is_repeat(&mut self, buffer: &[u8], literal: usize, at: usize) -> bool {
        let Some(repeats) = self.repeats.get(literal) else { return false };
        for repeat in repeats {
            let Some(start) = at.checked_sub(repeat.literal_at) else { continue };
            let Some(end) = start.checked_add(repeat.text.len()) else { continue };
            // the byte after it is part of the kept text, so that ks1 is not ks10
            if buffer.get(start..end) == Some(repeat.text.as_slice()) {
                for hit in &repeat.hits {
                    if let Some(hit) = self.reading.hits.get_mut(*hit) {
                        hit.count = hit.count.saturating_add(1);
                    }
                }
                return true;
            }
        }
        false
    }

    fn candidate(&mut self, buffer: &[u8], line: (usize, usize), literal: (usize, usize), number: u64) {
        let raw = buffer.get(line.0..line.1).unwrap_or_default();
        let text = clean(raw);
        let mut found = pattern::matches(&text);
        let whole = found.iter().any(|m| m.pattern.rank == Rank::Cause && !is_cut(m, &text));
        if !whole {
            // the text may go on in the next line
            let (from, to) = line_around(buffer, next_line(buffer, line.1));
            let next = clean(buffer.get(from..to).unwrap_or_default());
            let next = without_prefix(&next);
            for joint in ["", " "] {
                let joined = format!("{text}{joint}{next}");
                let again = pattern::matches(&joined);
                if groups(&again) > groups(&found) && again.iter().any(|m| m.start < text.len()) {
                    found = again.into_iter().filter(|m| m.start < text.len()).collect();
                }
            }
        }
        let after = || lines_after(buffer, line.1);
        let hits: Vec<usize> = found.iter().filter_map(|m| self.record(m, &text, number, &after)).collect();
        self.remember(buffer, line, literal, (&text, &found), hits);
    }

    /// Keeps the raw bytes that decided, with the byte that ends them, so that the same again costs one comparison.
    fn remember(
        &mut self,
        buffer: &[u8],
        line: (usize, usize),
        literal: (usize, usize),
        (text, found): (&str, &[Match]),
        hits: Vec<usize>,
    ) {
        let raw = buffer.get(line.0..line.1).unwrap_or_default();
        let first = found.iter().find(|m| m.pattern.rank == Rank::Cause).or(found.first());
        let (start, end) = match first.map(|m| (m, memchr::memmem::find(raw, m.text.as_bytes()))) {
            // from the literal or the text, whichever begins earlier
            Some((first, Some(at))) => {
                let at = line.0.saturating_add(at);
                (at.min(literal.1), at.saturating_add(first.text.len()).max(literal.1))
            }
            // escapes stand in it: as much more as cleaning took away
            Some((first, None)) => {
                let more = first.text.len().saturating_add(raw.len().saturating_sub(text.len()));
                (literal.1, literal.1.saturating_add(more).min(line.1))
            }
            // nothing was found: only the same rest of the line says nothing again
            None => (literal.1, line.1),
        };
        if let Some(repeats) = self.repeats.get_mut(literal.0)
            && repeats.len() < REPEATS
            && let Some(kept) = buffer.get(start..end.saturating_add(1)).filter(|k| k.len() <= limits::SHOWN_TEXT_BYTES)
            && let Some(literal_at) = literal.1.checked_sub(start)
        {
            repeats.push(Repeat { text: kept.to_vec(), literal_at, hits });
        }
    }

    /// Adds a match to the hits, or counts it where it is known; gives its place among the hits.
    fn record(&mut self, found: &Match, text: &str, line: u64, after: &dyn Fn() -> Vec<String>) -> Option<usize> {
        let same = |h: &Hit| h.found.pattern.id == found.pattern.id && h.found.text == found.text;
        if let Some(at) = self.reading.hits.iter().position(same) {
            if let Some(hit) = self.reading.hits.get_mut(at) {
                hit.count = hit.count.saturating_add(1);
            }
            return Some(at);
        }
        if self.reading.hits.len() >= limits::LOG_TEXTS {
            self.reading.dropped = self.reading.dropped.saturating_add(1);
            return None;
        }
        let around = text.get(found.start..).map_or(text, |_| text);
        self.reading.hits.push(Hit {
            line,
            found: found.clone(),
            shown: shown(part_with(around, found.start)),
            count: 1,
            after: after(),
        });
        self.reading.hits.len().checked_sub(1)
    }

    fn marker(&mut self, buffer: &[u8], start: usize, end: usize, number: u64, marker: &str) {
        let raw = buffer.get(start..end).unwrap_or_default();
        match marker {
            "  what():" => {
                let text = clean(raw);
                if let Some((_, said)) = text.split_once("what():") {
                    self.reading.last_exception = Some(Said { line: number, text: shown(said) });
                }
            }
            "Exception in aoti_torch: " | "Error: " => self.note_error(raw, number),
            "data/aotinductor/" => self.model_name(raw),
            "AOTIModelPackageLoader" => self.reading.uses_package_loader = true,
            "torch version: " | "PyTorch version: " | "torch==" => {
                let text = clean(raw);
                let version = text.split_once(marker).map(|(_, rest)| {
                    rest.chars().take_while(|c| c.is_ascii_alphanumeric() || ".+-".contains(*c)).collect::<String>()
                });
                self.reading.torch = version.filter(|v| v.starts_with(|c: char| c.is_ascii_digit()));
            }
            _ => {
                self.frame(raw, number);
                self.model_name(raw);
            }
        }
    }

    fn note_error(&mut self, raw: &[u8], number: u64) {
        if self.reading.errors.len() >= limits::LOG_TEXTS
            || self.reading.errors.last().is_some_and(|s| s.line == number)
        {
            return;
        }
        let text = clean(raw);
        let line = without_prefix(&text);
        let said = line
            .split_once("Exception in aoti_torch: ")
            .map(|(_, said)| said)
            .or_else(|| line.trim_start().strip_prefix("Error: "));
        if let Some(said) = said {
            self.reading.errors.push(Said { line: number, text: shown(said) });
        }
    }

    fn model_name(&mut self, raw: &[u8]) {
        let text = clean(raw);
        for part in text.split("data/aotinductor/").skip(1) {
            if let Some((name, _)) = part.split_once('/')
                && !name.is_empty()
                && self.reading.models.len() < 16
                && !self.reading.models.iter().any(|m| m == name)
            {
                self.reading.models.push(shown(name));
            }
        }
    }

    fn frame(&mut self, raw: &[u8], number: u64) {
        if self.reading.frames.len() >= limits::LOG_TEXTS
            || self.reading.frames.last().is_some_and(|f| f.line == number)
            || raw.len() > limits::LOG_LINE_BYTES
        {
            return;
        }
        let text = clean(raw);
        if let Some(frame) = frame::parse(without_prefix(&text), number) {
            self.reading.frames.push(frame);
        }
    }

    /// The exception of a traceback: the first line after it that is not indented.
    fn traceback(&mut self, buffer: &[u8], end: usize, number: u64) {
        let mut at = end;
        for below in 1..=TRACEBACK_LINES {
            at = next_line(buffer, at);
            if at >= buffer.len() {
                return;
            }
            let (from, to) = line_around(buffer, at);
            let text = clean(buffer.get(from..to).unwrap_or_default());
            let line = without_prefix(&text);
            if !line.is_empty() && !line.starts_with([' ', '\t']) {
                let line_number = number.saturating_add(below as u64);
                self.reading.last_exception = Some(Said { line: line_number, text: shown(line) });
                return;
            }
            at = to;
        }
    }

    /// Keeps head and tail for the second look.
    fn keep(&mut self, part: &[u8]) {
        let room = SECOND_LOOK.saturating_sub(self.head.len());
        let (head, rest) = part.split_at_checked(room.min(part.len())).unwrap_or((part, &[]));
        self.head.extend_from_slice(head);
        if self.tail.is_empty() {
            self.lines_before_tail = count_lines(&self.head);
        }
        self.tail.extend_from_slice(rest);
        let excess = self.tail.len().saturating_sub(SECOND_LOOK);
        if excess > 0 {
            self.lines_before_tail =
                self.lines_before_tail.saturating_add(count_lines(self.tail.get(..excess).unwrap_or_default()));
            self.tail.drain(..excess);
        }
    }

    pub(super) fn finish(mut self) -> Reading {
        if self.reading.cause().is_none() {
            let (head, tail) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
            self.second_look(&head, 0);
            let before = self.lines_before_tail;
            self.second_look(&tail, before);
            self.reading.hits.sort_by_key(|h| h.line);
        }
        self.reading
    }

    /// Cleans every line and puts neighbours together: for texts whose literal is broken by colours or a line end.
    fn second_look(&mut self, bytes: &[u8], before: u64) {
        let mut last = String::new();
        for (n, raw) in bytes.split(|b| *b == b'\n').enumerate() {
            let line = before.saturating_add(n as u64).saturating_add(1);
            let text = clean(raw);
            let bare = without_prefix(&text).to_owned();
            for (candidate, number) in [
                (bare.clone(), line),
                (format!("{last}{bare}"), line.saturating_sub(1)),
                (format!("{} {}", last.trim_end(), bare.trim_start()), line.saturating_sub(1)),
            ] {
                for found in pattern::matches(&candidate) {
                    let known = |h: &Hit| h.found.pattern.id == found.pattern.id && h.line.abs_diff(number) <= 1;
                    match self.reading.hits.iter_mut().find(|h| known(h)) {
                        Some(hit) if present(&found) > present(&hit.found) => hit.found = found,
                        Some(_) => {}
                        None => {
                            self.record(&found, &candidate, number, &Vec::new);
                        }
                    }
                }
            }
            last = bare;
        }
    }
}

fn present(found: &Match) -> usize {
    found.groups.iter().flatten().count().saturating_add(1)
}

fn groups(found: &[Match]) -> usize {
    found.iter().filter(|m| m.pattern.rank == Rank::Cause).map(present).max().unwrap_or(0)
}

/// A match that reaches (nearly) the end of the line may go on in the next one.
fn is_cut(found: &Match, line: &str) -> bool {
    found.start.saturating_add(found.text.len()).saturating_add(40) >= line.trim_end().len()
}
