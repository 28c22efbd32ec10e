//! Reads a log of any size in one pass with bounded memory.
//!
//! Raw chunks are searched for the literal parts of all patterns; only lines with a literal are cleaned and matched. A line that repeats an earlier text is counted and costs one comparison.

mod clean;
mod lines;
mod scan;
mod search;
mod utf16;

/// Bytes that every literal of a pattern has at least: shorter ones would not be found.
pub const LITERAL_BYTES: usize = search::WINDOW;

pub use clean::{clean, shown, without_prefix};

use super::frame::Frame;
use super::pattern::{Match, Rank};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use std::io::Read;

/// A text of a known pattern in the log.
#[derive(Debug, Clone)]
pub struct Hit {
    /// line of its first appearance, from 1
    pub line: u64,
    /// pattern and groups
    pub found: Match,
    /// the whole line, clean and capped
    pub shown: String,
    /// how often the text appears
    pub count: u64,
    /// lines after it, clean
    pub after: Vec<String>,
}

/// An error text that need not be a known pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// line, from 1
    pub line: u64,
    /// the text, clean and capped
    pub text: String,
}

/// What a log holds.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// in order of first appearance
    pub hits: Vec<Hit>,
    /// lines read
    pub lines: u64,
    /// bytes read
    pub bytes: u64,
    /// text of the last Python or C++ exception
    pub last_exception: Option<Said>,
    /// lines that begin with `Error:` or hold `Exception in aoti_torch:`
    pub errors: Vec<Said>,
    /// stack frames and kernel messages, in order
    pub frames: Vec<Frame>,
    /// `data/aotinductor/NAME/` in paths of the log
    pub models: Vec<String>,
    /// the traceback goes through the package loader, which takes the device type from the metadata
    pub uses_package_loader: bool,
    /// torch release that the log names
    pub torch: Option<String>,
    /// distinct texts beyond the cap, not kept
    pub dropped: u64,
    /// the log goes on after [`limits::LOG_BYTES`]; what lies there was not read
    pub is_cut: bool,
}

impl Reading {
    /// The hit that says most: the earliest of rank cause.
    pub fn cause(&self) -> Option<&Hit> {
        self.hits.iter().find(|h| h.found.pattern.rank == Rank::Cause)
    }
    /// Hits of one rank.
    pub fn ranked(&self, rank: Rank) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(move |h| h.found.pattern.rank == rank)
    }
    /// First hit of a pattern.
    pub fn hit(&self, id: &str) -> Option<&Hit> {
        self.hits.iter().find(|h| h.found.pattern.id == id)
    }
    /// True when any text of the log named in hits or errors holds `word`.
    pub fn mentions(&self, word: &str) -> bool {
        self.hits.iter().any(|h| h.shown.contains(word) || h.after.iter().any(|l| l.contains(word)))
            || self.errors.iter().chain(&self.last_exception).any(|s| s.text.contains(word))
    }
    /// True when there is nothing to go by.
    pub fn is_silent(&self) -> bool {
        self.hits.is_empty() && self.last_exception.is_none() && self.errors.is_empty() && self.frames.is_empty()
    }
}

/// Reads a log to its end, or up to [`limits::LOG_BYTES`]: a pipe may have no end.
///
/// # Errors
/// [`ErrorKind::Io`] when the stream fails.
pub fn read(stream: impl Read) -> Result<Reading> {
    go_on(scan::Scanner::default(), stream)
}

fn go_on(mut scanner: scan::Scanner, stream: impl Read) -> Result<Reading> {
    let wrong = |e| Error::new(ErrorKind::Io, format!("cannot read the log: {e}"));
    let mut stream = utf16::decoded(stream).map_err(wrong)?;
    let mut buffer: Vec<u8> = Vec::with_capacity(scan::CHUNK + scan::LOOK_AHEAD);
    let mut looked_at = (&mut stream).take(limits::LOG_BYTES.saturating_sub(scanner.bytes_seen()));
    loop {
        let room = (scan::CHUNK + scan::LOOK_AHEAD).saturating_sub(buffer.len()) as u64;
        let read = (&mut looked_at).take(room).read_to_end(&mut buffer).map_err(wrong)?;
        let is_last = read == 0 || buffer.len() < scan::CHUNK + scan::LOOK_AHEAD;
        let done = scanner.chunk(&buffer, is_last);
        buffer.drain(..done.min(buffer.len()));
        if is_last {
            break;
        }
    }
    let mut reading = scanner.finish();
    reading.is_cut = stream.take(1).read_to_end(&mut buffer).map_err(wrong)? > 0;
    Ok(reading)
}

/// Reads one message given on the command line.
pub fn read_text(text: &str) -> Reading {
    read(text.as_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(reading: &Reading) -> Vec<&str> {
        reading.hits.iter().map(|h| h.found.pattern.id).collect()
    }

    #[test]
    fn the_earliest_cause_wins_and_phase_stays_phase() {
        let log = "noise\nError: input_handles[0]: unmatched dim value at 0, expected: 2, but got: 3\n\nTraceback (most recent call last):\n  File \"x\", line 1\nRuntimeError: run_func_( a ) API call failed at /x.cpp, line 144\n";
        let reading = read(log.as_bytes()).unwrap();
        assert_eq!(ids(&reading), ["chk-dim", "api"]);
        assert_eq!((reading.cause().unwrap().line, reading.lines), (2, 6));
        assert!(reading.last_exception.unwrap().text.starts_with("RuntimeError: run_func_"));
    }

    #[test]
    fn repeats_are_counted_across_chunks() {
        let line = "/c/x.py:54: unknown: block: [0,0,0], thread: [2,0,0] Assertion `index out of bounds: 0 <= tmp14 < ks0` failed.\n";
        let log = line.repeat(40_000);
        let reading = read(log.as_bytes()).unwrap();
        assert_eq!(ids(&reading), ["ioob"]);
        assert_eq!((reading.hits[0].count, reading.hits[0].line, reading.lines), (40_000, 1, 40_000));
    }

    #[test]
    fn texts_that_begin_alike_are_told_apart() {
        let log = "index out of bounds: 0 <= tmp1 < ks1\nindex out of bounds: 0 <= tmp1 < ks10\nindex out of bounds: 0 <= tmp1 < ks1\n";
        let reading = read(log.as_bytes()).unwrap();
        assert_eq!(reading.hits.iter().map(|h| h.count).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn wrapped_and_coloured_lines_are_put_together() {
        for log in [
            "serve-1  | Error: input_handles[0]: unmatched dim val\nserve-1  | ue at 1, expected: 10, but got: 11\n",
            "Error: input_handles[0]: unmatched dim value at 1, expected: 10,\n but got: 11\n",
            "\x1b[31mError\x1b[0m: input_handles[0]: unmatched \x1b[1mdim\x1b[0m value at 1, expected: 10, but got: 11\r\n",
            "50%|###  |\r80%|#### |\rError: input_handles[0]: unmatched dim value at 1, expected: 10, but got: 11",
        ] {
            let reading = read(log.as_bytes()).unwrap();
            let hit = reading.cause().unwrap_or_else(|| panic!("{log:?}"));
            assert_eq!((hit.found.pattern.id, hit.found.number(4)), ("chk-dim", Some(11)), "{log:?}");
        }
    }

    #[test]
    fn utf_16_and_invalid_bytes_are_read() {
        let text = "Error: input_handles[0]: unmatched dtype, expected: 6(at::kFloat), but got: 7\r\n";
        let mut wide = vec![0xFF, 0xFE];
        wide.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(ids(&read(&wide[..]).unwrap()), ["chk-dtype"]);
        let mut bytes = b"\xff\xfe\x80 garbage\n".to_vec();
        bytes[0] = 0x80;
        bytes.extend_from_slice(text.as_bytes());
        assert_eq!(ids(&read(&bytes[..]).unwrap()), ["chk-dtype"]);
    }

    #[test]
    fn very_long_lines_are_cut_around_the_text() {
        let mut log = vec![b'x'; 3 << 20];
        log.extend_from_slice(b" undefined symbol: aoti_torch_foo ");
        log.extend(vec![b'y'; 3 << 20]);
        let reading = read(&log[..]).unwrap();
        assert_eq!(ids(&reading), ["undef"]);
        assert!(reading.hits[0].shown.len() <= limits::SHOWN_TEXT_BYTES + 4);
    }

    #[test]
    fn the_last_exception_is_kept_with_prefixes() {
        let log = "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a\"\n[rank0]:     x\n[rank0]: KeyError: 'first'\n[rank0]: Traceback (most recent call last):\n[rank0]:   File \"b\"\n[rank0]: ValueError: second\n";
        assert_eq!(read_text(log).last_exception.unwrap(), Said { line: 7, text: "ValueError: second".to_owned() });
    }

    #[test]
    fn unrelated_text_has_no_hits() {
        let reading = read_text("tensor([1.0])\nall is well\n");
        assert!(reading.is_silent());
        assert_eq!(reading.lines, 2);
    }

    #[test]
    fn bytes_of_a_log_have_a_border() {
        let line = "Error: the last one\n";
        let of = |more: u64| {
            let mut scanner = scan::Scanner::default();
            // as if so many had been read before
            scanner.assume_seen(limits::LOG_BYTES - line.len() as u64 - 1 + more);
            let reading = go_on(scanner, format!("\n{line}tail").as_bytes()).unwrap();
            assert_eq!((reading.bytes, reading.is_cut), (limits::LOG_BYTES, true));
            reading.errors.first().map(|said| said.text.clone())
        };
        assert_eq!(of(0).as_deref(), Some("the last one"));
        assert_eq!(of(2).as_deref(), Some("the last on"));
        assert_eq!(of(line.len() as u64), None);
        let at_the_cap = |text: &mut dyn Read| {
            let mut scanner = scan::Scanner::default();
            scanner.assume_seen(limits::LOG_BYTES);
            go_on(scanner, text).unwrap()
        };
        assert!(!at_the_cap(&mut std::io::empty()).is_cut);
        // what has no end is left
        let reading = at_the_cap(&mut std::io::repeat(b'x'));
        assert_eq!((reading.errors.len(), reading.bytes, reading.is_cut), (0, limits::LOG_BYTES, true));
    }

    #[test]
    fn distinct_texts_of_a_log_have_a_border() {
        let of = |count: usize| {
            let line = |n| format!("undefined symbol: aoti_torch_{n}\n");
            let reading = read((0..count).map(line).collect::<String>().as_bytes()).unwrap();
            (reading.hits.len(), reading.dropped)
        };
        assert_eq!(of(limits::LOG_TEXTS), (limits::LOG_TEXTS, 0));
        assert_eq!(of(limits::LOG_TEXTS + 1), (limits::LOG_TEXTS, 1));
    }
}
