//! Where code mentions texts that begin alike: assertions of kernels, for instance.

use super::code::Code;
use super::decode::{Decoder, Registers};
use crate::error::Result;
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
/// As [`super::read`].
pub fn text_mentions(image: &Image<'_>, function: &Function<'_>, prefix: &str) -> Result<Vec<TextMention>> {
    let code = Code::new(image)?;
    let mut mentions: Vec<TextMention> = Vec::new();
    let instructions =
        code.bytes(function.start, usize::try_from(function.end.saturating_sub(function.start)).unwrap_or(usize::MAX));
    let mut registers = Registers::default();
    let mut decoder = Decoder::new(code.processor, instructions, function.start, function.start);
    while let Some(step) = decoder.step(&mut registers) {
        let Some(at) = step.forms else { continue };
        let bytes = code.bytes(at, limits::SHOWN_TEXT_BYTES);
        if !bytes.starts_with(prefix.as_bytes()) || mentions.len() >= limits::CHECKS {
            continue;
        }
        let text = bytes.get(..memchr::memchr(0, bytes).unwrap_or(bytes.len())).unwrap_or_default();
        mentions.push(TextMention { address: step.address, text: String::from_utf8_lossy(text).into_owned() });
    }
    Ok(mentions)
}
