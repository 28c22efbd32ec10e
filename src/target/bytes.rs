//! Numbers of bytes as people write them.

use super::UsageError;

/// Powers of 1024 and of 1000; a bare `K`, `M`, `G` is the power of 1024, as in `nvidia-smi` and `ulimit`.
const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

/// `24GiB`, `64k`, `1.5 GB`, `4096`: bytes, rounded down.
///
/// # Errors
/// For anything that is not a number with one of the units, and for more than 2^63 bytes.
pub fn parse_bytes(text: &str) -> Result<u64, UsageError> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let bytes = match (number.parse::<f64>(), number.parse::<u64>(), factor) {
        (_, Ok(whole), Some(factor)) => whole.checked_mul(factor),
        (Ok(part), _, Some(factor)) => Some((part * factor as f64) as u64),
        _ => None,
    };
    bytes.filter(|n| *n <= i64::MAX as u64).ok_or_else(|| {
        UsageError::new(format!(
            "`{text}` is no size: write bytes or a number with KiB, MiB, GiB (1024) or kB, MB, GB (1000)"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_kinds_of_units() {
        assert_eq!(parse_bytes("64k").unwrap(), 65_536);
        assert_eq!(parse_bytes("24GiB").unwrap(), 24 << 30);
        assert_eq!(parse_bytes("1.5 GB").unwrap(), 1_500_000_000);
        assert_eq!(parse_bytes("4096").unwrap(), 4096);
        for wrong in ["", "GiB", "1 apple", "-1", "1e3", "99999999999999999999", "1.2.3"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
