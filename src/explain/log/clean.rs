//! One raw line of a log → plain text: without colours, NULs, container prefixes and escapes.

use crate::limits;
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Terminal sequences: CSI, OSC, and the spellings that journald, syslog and `cat -v` leave of them.
static TERMINAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?:\x1b|\^\[|#033|\\x1b|\\u001b|\\033)(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B])",
    )
    .ok()
});

/// What loggers put before a line; applied repeatedly.
static PREFIX: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        // Kubernetes (CRI): time, stream, partial or full
        r"\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) [FP] ",
        // docker compose, kubectl --prefix
        r"[\w./-]+ +\| ?",
        r"\[pod/[^\]]+\] ",
        // torchrun, mpirun, srun
        r"\[(?:rank|default)?\d+\]: ?",
        r"\[\d+,\d+\]<std(?:out|err)>: ?",
        // syslog, journald
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w./-]+(?:\[\d+\])?: ",
        // time stamps
        r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]",
        // kernel ring buffer
        r"\[ *\d+\.\d+\] ",
    ];
    Regex::new(&format!("^(?:{})", forms.join("|"))).ok()
});

/// Plain text of a raw line; at most [`limits::LOG_LINE_BYTES`] of it are looked at.
pub fn clean(raw: &[u8]) -> String {
    let raw = raw.get(..limits::LOG_LINE_BYTES).unwrap_or(raw);
    let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
    let text = String::from_utf8_lossy(raw);
    let mut text: Cow<'_, str> = if text.contains('\0') { Cow::Owned(text.replace('\0', "")) } else { text };
    if let Some(regex) = TERMINAL.as_ref()
        && text.contains(['\x1b', '^', '#', '\\'])
    {
        text = Cow::Owned(regex.replace_all(&text, "").into_owned());
    }
    // JSON loggers (docker's escapes <, > and & too), web consoles
    let has_escapes = text.contains(['\\', '&']);
    for (escaped, plain) in [
        ("\\u003c", "<"),
        ("\\u003e", ">"),
        ("\\u0026", "&"),
        ("\\\"", "\""),
        ("\\n", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#39;", "'"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ] {
        if has_escapes && text.contains(escaped) {
            text = Cow::Owned(text.replace(escaped, plain));
        }
    }
    // progress bars return to the start of the line: what they overwrote is not part of the text
    if text.contains('\r') { text.replace('\r', "\n") } else { text.into_owned() }
}

/// The text without logger prefixes. Indentation after a prefix stays.
pub fn without_prefix(line: &str) -> &str {
    let Some(regex) = PREFIX.as_ref() else { return line };
    let mut rest = line;
    for _ in 0..4 {
        match regex.find(rest) {
            Some(found) if found.end() > 0 => rest = rest.get(found.end()..).unwrap_or_default(),
            _ => break,
        }
    }
    rest
}

/// A text as it is shown to a person: without control characters, cut at [`limits::SHOWN_TEXT_BYTES`].
pub fn shown(text: &str) -> String {
    let mut shown: String = String::new();
    for c in text.trim().chars() {
        if shown.len() >= limits::SHOWN_TEXT_BYTES {
            shown.push('…');
            break;
        }
        shown.push(if c.is_control() { ' ' } else { c });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_nuls_and_escapes_go() {
        assert_eq!(clean(b"\x1b[31mError:\x1b[0m in\0dex \x1b]0;t\x07x\r"), "Error: index x");
        assert_eq!(
            clean(br#"{"log":"out of bounds: 0 \u003c= tmp1 \u003c ks0\n"}"#),
            "{\"log\":\"out of bounds: 0 <= tmp1 < ks0 \"}"
        );
        assert_eq!(clean(b"#033[31mfail#033[0m \xff"), "fail \u{fffd}");
    }

    #[test]
    fn prefixes_go_and_indentation_stays() {
        for line in [
            "[rank0]:   File \"x\"",
            "2026-12-01T02:20:16.592Z stderr F   File \"x\"",
            "serve-1  | [rank3]:   File \"x\"",
            "Dec  1 02:20:16 host serve[12]:   File \"x\"",
            "[1,0]<stderr>:  File \"x\"",
            "2026-12-01 02:20:16,123   File \"x\"",
        ] {
            assert!(without_prefix(line).starts_with(" "), "{line}");
            assert!(without_prefix(line).trim_start().starts_with("File"), "{line}");
        }
        assert_eq!(without_prefix("Error: x"), "Error: x");
    }

    #[test]
    fn lines_have_a_border() {
        let of = |len: usize| clean(&vec![b'x'; len]).len();
        assert_eq!(of(limits::LOG_LINE_BYTES), limits::LOG_LINE_BYTES);
        assert_eq!(of(limits::LOG_LINE_BYTES + 1), limits::LOG_LINE_BYTES);
    }

    #[test]
    fn shown_texts_have_a_border() {
        let of = |len: usize| shown(&"x".repeat(len));
        assert_eq!(of(limits::SHOWN_TEXT_BYTES), "x".repeat(limits::SHOWN_TEXT_BYTES));
        assert_eq!(of(limits::SHOWN_TEXT_BYTES + 1), format!("{}…", "x".repeat(limits::SHOWN_TEXT_BYTES)));
    }
}
