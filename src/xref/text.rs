//! Where code mentions texts that begin alike: assertions of kernels, for instance.

use super::code::Code;
use super::decode::{Decoder, Registers};
use crate::error::Result;
use crate::image::Image;
use crate::limits;

/// A place that takes the address of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMention {
    /// of the instruction
    pub address: u64,
    /// the text, up to its NUL
    pub text: String,
}

/// Every mention of a text that begins with `prefix`. Code is decoded only when such a text is in the library.
///
/// # Errors
/// As [`super::read`].
pub fn text_mentions(image: &Image<'_>, prefix: &str) -> Result<Vec<TextMention>> {
    let finder = memchr::memmem::Finder::new(prefix.as_bytes());
    let data = image.segments().iter().filter(|s| s.is_readable && s.file_size <= limits::CODE_BYTES);
    let mut bytes = data.filter_map(|s| image.bytes_from(s.address, s.file_size));
    if !bytes.any(|bytes| finder.find(bytes).is_some()) {
        return Ok(Vec::new());
    }
    let code = Code::new(image)?;
    let mut mentions: Vec<TextMention> = Vec::new();
    for part in &code.executable {
        let mut registers = Registers::default();
        let mut decoder = Decoder::new(code.processor, part.bytes, part.address, part.address);
        while let Some(step) = decoder.step(&mut registers) {
            let Some(at) = step.forms else { continue };
            let bytes = code.bytes(at, limits::SHOWN_TEXT_BYTES);
            if !bytes.starts_with(prefix.as_bytes()) || mentions.len() >= limits::CHECKS {
                continue;
            }
            let text = bytes.get(..memchr::memchr(0, bytes).unwrap_or(bytes.len())).unwrap_or_default();
            mentions.push(TextMention { address: step.address, text: String::from_utf8_lossy(text).into_owned() });
        }
    }
    Ok(mentions)
}
