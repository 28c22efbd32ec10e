//! How a process ended, when there is no text: `139`, `-11`, `SIGSEGV`, `0xC0000005`.

/// An exit status as a person states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// killed by a signal
    Signal(Signal),
    /// a number that is no signal
    Code(i64),
}

/// A signal that kills, or Windows' word for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// `SIGSEGV`
    pub name: &'static str,
    /// what it means
    pub meaning: &'static str,
}

/// Number on Linux, signal; status of Windows.
const SIGNALS: &[(i64, i64, Signal)] = &[
    (4, 0xC000_001D, Signal { name: "SIGILL", meaning: "an instruction that the processor does not have" }),
    (
        6,
        0xC000_0409,
        Signal { name: "SIGABRT", meaning: "the process gave up: an uncaught exception or a failed assertion" },
    ),
    (
        7,
        0xC000_0006,
        Signal {
            name: "SIGBUS",
            meaning: "a mapped page that the file does not have: the file is shorter than it says",
        },
    ),
    (8, 0xC000_0094, Signal { name: "SIGFPE", meaning: "an integer division by zero" }),
    (9, -1, Signal { name: "SIGKILL", meaning: "killed from outside, most often because memory ran out" }),
    (11, 0xC000_0005, Signal { name: "SIGSEGV", meaning: "an access to memory that is not there" }),
    (15, -1, Signal { name: "SIGTERM", meaning: "ended from outside" }),
];

impl Exit {
    /// From a person's notation. Shells add 128 to a signal's number, Python negates it.
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        let upper = text.to_ascii_uppercase();
        let word = upper.strip_prefix("SIG").unwrap_or(&upper);
        if let Some(row) = SIGNALS.iter().find(|row| row.2.name.strip_prefix("SIG") == Some(word)) {
            return Some(Self::Signal(row.2));
        }
        let number = match upper.strip_prefix("0X") {
            Some(digits) => i64::from_str_radix(digits, 16).ok()?,
            None => text.parse::<i64>().ok()?,
        };
        let windows = number & 0xFFFF_FFFF;
        let signal = SIGNALS.iter().find(|row| match number {
            -64..=-1 => row.0 == -number,
            129..=192 => row.0 == number - 128,
            _ => row.1 == windows && windows > 0xC000_0000,
        });
        Some(signal.map_or(Self::Code(number), |row| Self::Signal(row.2)))
    }
    /// True when the process was killed.
    pub fn is_signal(self, name: &str) -> bool {
        matches!(self, Self::Signal(signal) if signal.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_of_one_signal() {
        for text in ["139", "-11", "SIGSEGV", "segv", "0xC0000005", "3221225477", "-1073741819"] {
            assert!(Exit::from_text(text).is_some_and(|e| e.is_signal("SIGSEGV")), "{text}");
        }
        assert!(Exit::from_text("134").is_some_and(|e| e.is_signal("SIGABRT")));
        assert_eq!(Exit::from_text("1"), Some(Exit::Code(1)));
        assert_eq!(Exit::from_text("0"), Some(Exit::Code(0)));
        assert_eq!(Exit::from_text("x"), None);
    }
}
