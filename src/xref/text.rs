//! Where code mentions texts that begin alike: assertions of kernels, for instance.

use super::code::Code;
use super::decode::{Decoder, Registers};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::image::functions::Function;
use crate::limits;

/// A place that takes the address of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMention {
    /// of the instruction
    pub address: u64,
    /// the text, up to its NUL
    pub text: String,
}

/// Every mention in a function of a text that begins with `prefix`.
///
/// # Errors
/// As [`super::read`], and [`crate::error::ErrorKind::Limit`] for more mentions than [`limits::CHECKS`].
pub fn text_mentions(image: &Image<'_>, function: &Function<'_>, prefix: &str) -> Result<Vec<TextMention>> {
    mentions(&Code::new(image)?, function, prefix)
}

fn mentions(code: &Code<'_>, function: &Function<'_>, prefix: &str) -> Result<Vec<TextMention>> {
    let mut mentions: Vec<TextMention> = Vec::new();
    let instructions =
        code.bytes(function.start, usize::try_from(function.end.saturating_sub(function.start)).unwrap_or(usize::MAX));
    let mut registers = Registers::default();
    let mut decoder = Decoder::new(code.processor, instructions, function.start, function.start);
    while let Some(step) = decoder.step(&mut registers) {
        let Some(at) = step.forms else { continue };
        let bytes = code.bytes(at, limits::SHOWN_TEXT_BYTES);
        if !bytes.starts_with(prefix.as_bytes()) {
            continue;
        }
        if mentions.len() >= limits::CHECKS {
            return Err(Error::limit(format!("more than {} mentions of `{prefix}`", limits::CHECKS)));
        }
        let text = bytes.get(..memchr::memchr(0, bytes).unwrap_or(bytes.len())).unwrap_or_default();
        mentions.push(TextMention { address: step.address, text: String::from_utf8_lossy(text).into_owned() });
    }
    Ok(mentions)
}

#[cfg(test)]
mod tests {
    use super::super::code::Part;
    use super::super::decode::Processor;
    use super::*;

    #[test]
    fn mentions_of_a_text_have_a_border() {
        let of = |count: usize| {
            // lea rsi, [rip + …], all of one text
            let text = 0x10_0000u32;
            let lea = |n: usize| [&[0x48, 0x8d, 0x35], (text - 7 * (n as u32 + 1)).to_le_bytes().as_slice()].concat();
            let bytes = (0..count).flat_map(lea).collect::<Vec<u8>>();
            let data = Part { address: u64::from(text), bytes: b"Hi\0" };
            let code = Code::of(Processor::X86_64, Part { address: 0, bytes: &bytes }, data);
            let function = Function { start: 0, end: bytes.len() as u64, name: None };
            mentions(&code, &function, "H").map(|all| all.len()).map_err(|e| e.to_string())
        };
        assert_eq!(of(limits::CHECKS), Ok(limits::CHECKS));
        assert!(of(limits::CHECKS + 1).unwrap_err().contains("more than 131072 mentions of `H`"));
    }
}
