//! The texts of the input checks, as the generator writes them
//! (torch/_inductor/codegen/cpp_wrapper_cpu.py, `codegen_input_*_check`, 2.7 to 2.15).

use crate::limits;
use crate::model::{DType, DeviceKind};

/// What one check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckKind {
    /// element type
    Dtype,
    /// the dim has exactly this size
    Static {
        /// which dim
        dim: usize,
    },
    /// the dim is at least this size
    Lower {
        /// which dim
        dim: usize,
    },
    /// the dim is at most this size
    Upper {
        /// which dim
        dim: usize,
    },
    /// the stride has exactly this value, in elements
    Stride {
        /// of which dim
        dim: usize,
    },
    /// device type
    Device,
}

/// What a check asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckValue {
    /// a size, bound or stride
    Number(i64),
    /// an element type
    Dtype(DType),
    /// a device type
    Device(DeviceKind),
}

impl CheckValue {
    /// The number, when it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(n) => Some(*n),
            _ => None,
        }
    }
}

/// The first part of every check message.
pub(super) const HANDLES: &[u8] = b"input_handles[";

/// The text between the number and "but got: "; nothing of the wanted value comes after it.
const BUT_GOT: &[u8] = b"but got: ";

/// Bytes of a literal that are looked at; the longest message takes 70.
pub(super) const TEXT_BYTES: usize = 96;

/// A dim's check, made from the dim's number.
type OfDim = fn(usize) -> CheckKind;

/// Text after `input_handles[0]: ` and the kind it announces, for checks of one dim.
const DIM_MESSAGES: &[(&str, OfDim)] = &[
    ("unmatched dim value at ", |dim| CheckKind::Static { dim }),
    ("dim value is too small at ", |dim| CheckKind::Lower { dim }),
    ("dim value is too large at ", |dim| CheckKind::Upper { dim }),
    ("unmatched stride value at ", |dim| CheckKind::Stride { dim }),
];

/// The same for checks of the whole input.
const MESSAGES: &[(&str, CheckKind)] =
    &[("unmatched dtype, ", CheckKind::Dtype), ("unmatched device type, ", CheckKind::Device)];

/// The zero-terminated text at the start of `bytes`.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes.get(..memchr::memchr(0, bytes)?)?).ok()
}

/// Input number and kind of a check message.
pub(super) fn parse_message(bytes: &[u8]) -> Option<(usize, CheckKind)> {
    let rest = text(bytes)?.strip_prefix("input_handles[")?;
    let (input, rest) = rest.split_once("]: ")?;
    let input = input.parse().ok().filter(|i| *i < limits::TENSORS)?;
    if let Some((_, kind)) = MESSAGES.iter().find(|(message, _)| rest == *message) {
        return Some((input, *kind));
    }
    let (kind, dim) = DIM_MESSAGES.iter().find_map(|(message, kind)| Some((kind, rest.strip_prefix(message)?)))?;
    let dim = dim.strip_suffix(", ")?.parse().ok().filter(|d| *d < limits::RANK)?;
    Some((input, kind(dim)))
}

/// What a text says to somebody who looks for the value of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// the value
    Value(CheckValue),
    /// the message is over, or another one begins: the value was missed
    End,
}

/// Reads the text that follows a message of the given kind; `None` for texts that do not matter.
pub(super) fn parse_value(kind: CheckKind, bytes: &[u8]) -> Option<Found> {
    if bytes.starts_with(BUT_GOT) || bytes.starts_with(HANDLES) {
        return Some(Found::End);
    }
    let text = text(bytes)?.strip_suffix(", ")?;
    let number = |prefix: &str| text.strip_prefix(prefix)?.parse().ok().map(CheckValue::Number);
    let value = match kind {
        CheckKind::Static { .. } | CheckKind::Stride { .. } => number("expected: "),
        CheckKind::Lower { .. } => number("expected it to be >= "),
        CheckKind::Upper { .. } => number("expected to be <= "),
        // the number is printed at run time; 2.7 writes only the enumerator, others may put the number in front
        CheckKind::Dtype => after_number(text)?
            .strip_prefix("(at::k")
            .and_then(|name| name.strip_suffix(')'))
            .map(|name| DType::from_enumerator(name).unwrap_or_else(|| DType::Other(name.to_owned())))
            .map(CheckValue::Dtype),
        CheckKind::Device => after_number(text)?
            .strip_prefix('(')
            .and_then(|name| name.strip_suffix(')'))
            .map(|name| CheckValue::Device(DeviceKind::from_name(name))),
    }?;
    Some(Found::Value(value))
}

fn after_number(text: &str) -> Option<&str> {
    let text = text.strip_prefix("expected: ").unwrap_or(text);
    Some(text.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_told_apart() {
        let parse = |text: &str| parse_message(format!("{text}\0rest").as_bytes());
        assert_eq!(parse("input_handles[3]: unmatched dtype, "), Some((3, CheckKind::Dtype)));
        assert_eq!(parse("input_handles[0]: unmatched dim value at 1, "), Some((0, CheckKind::Static { dim: 1 })));
        assert_eq!(parse("input_handles[10]: dim value is too small at 0, "), Some((10, CheckKind::Lower { dim: 0 })));
        assert_eq!(parse("input_handles[1]: dim value is too large at 2, "), Some((1, CheckKind::Upper { dim: 2 })));
        assert_eq!(parse("input_handles[1]: unmatched stride value at 2, "), Some((1, CheckKind::Stride { dim: 2 })));
        assert_eq!(parse("input_handles[1]: unmatched device type, "), Some((1, CheckKind::Device)));
        assert_eq!(parse("input_handles[99999999]: unmatched dtype, "), None);
        assert_eq!(parse("input_handles[0]: unmatched dim value at 65, "), None);
        assert_eq!(parse_message(b"input_handles[0]: unmatched dtype, "), None, "no terminator");
    }

    #[test]
    fn a_value_is_read_only_in_its_own_form() {
        let parse = |kind, text: &str| parse_value(kind, format!("{text}\0").as_bytes());
        let number = |n| Some(Found::Value(CheckValue::Number(n)));
        assert_eq!(parse(CheckKind::Static { dim: 0 }, "expected: 10, "), number(10));
        assert_eq!(parse(CheckKind::Lower { dim: 0 }, "expected it to be >= 2, "), number(2));
        assert_eq!(parse(CheckKind::Upper { dim: 0 }, "expected to be <= 9223372036854775807, "), number(i64::MAX));
        assert_eq!(parse(CheckKind::Upper { dim: 0 }, "expected: 10, "), None);
        assert_eq!(parse(CheckKind::Static { dim: 0 }, "but got: "), Some(Found::End));
        assert_eq!(
            parse(CheckKind::Dtype, "(at::kBFloat16), "),
            Some(Found::Value(CheckValue::Dtype(DType::from_aten(15).expect("bfloat16"))))
        );
        assert_eq!(parse(CheckKind::Dtype, "expected: "), None);
        assert_eq!(parse(CheckKind::Device, "1(cuda), "), Some(Found::Value(CheckValue::Device(DeviceKind::Cuda))));
    }
}
