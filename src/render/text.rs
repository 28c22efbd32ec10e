//! Text for people: one screen first, details after. Everything that comes from a file is escaped; colour is written
//! always and taken away by the stream where it does not belong.

mod call;
mod causes;
mod needs;
mod report;
mod show;
mod table;
mod theme;
mod trace;

pub use call::render_call;
pub use report::render_report;
pub use show::render_show;

/// How text is laid out.
#[derive(Debug, Clone, Default)]
pub struct TextOptions {
    /// columns of the terminal; without it lines are as long as they need to be
    pub width: Option<usize>,
    /// `-v`: passes and evidence too
    pub is_verbose: bool,
    /// `--all`: no list is cut
    pub shows_all: bool,
    /// sections to show, all when empty
    pub only: Vec<String>,
}

impl TextOptions {
    fn wants(&self, section: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == section)
    }
}

/// Bytes for people, in powers of 1024: `784 B`, `1.6 MiB`.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [(&str, i32); 4] = [("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)];
    for (unit, power) in UNITS {
        let amount = bytes as f64 / 1024f64.powi(power);
        if amount >= 1.0 {
            return if amount < 99.95 { format!("{amount:.1} {unit}") } else { format!("{amount:.0} {unit}") };
        }
    }
    format!("{bytes} B")
}

/// `1 input`, `3 inputs`.
fn count_text(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        assert_eq!(bytes_text(784), "784 B");
        assert_eq!(bytes_text(1_672_655), "1.6 MiB");
        assert_eq!(bytes_text(10 << 30), "10.0 GiB");
        assert_eq!(bytes_text(u64::MAX), "16777216 TiB");
    }
}
