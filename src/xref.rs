//! Check messages paired with their numbers along the control flow: witness independent of the interpreter.
//!
//! From 2.7 on a library carries a check of each input (`input_handles[0]: unmatched dim value at 1, `
//! followed by `expected: 10, `). Equal texts are stored once, so the texts alone do not tell which number
//! belongs to which dim: the code that prints them does. The comparison in front of the message says the same
//! a second time.

mod code;
mod decode;
mod interface;
mod message;
mod sweep;
mod text;
mod walk;

pub use message::{CheckKind, CheckValue};
pub use text::{TextMention, text_mentions};

use crate::error::{Error, Result};
use crate::image::Image;
use crate::limits;
use code::{Code, Imports};

/// One check of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// position of the input
    pub input: usize,
    /// what is checked
    pub kind: CheckKind,
    /// what the message says is expected
    pub value: CheckValue,
    /// address of the instruction that mentions the message
    pub address: u64,
    /// what the comparison asks for; `None` where it is not readable (value in a register, optimised away)
    pub compared: Option<CheckValue>,
}

/// A message whose value was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// position of the input
    pub input: usize,
    /// what is checked
    pub kind: CheckKind,
    /// address of the message's text
    pub address: u64,
    /// why
    pub reason: &'static str,
}

/// All checks of a library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrossReference {
    /// by input, then in the order of the code
    pub checks: Vec<Check>,
    /// messages without a value; with these the facts they speak of are unknown
    pub unresolved: Vec<Unresolved>,
    /// the library mentions `AOTI_RUNTIME_CHECK_INPUTS` (2.7+)
    pub has_environment: bool,
    /// instructions decoded
    pub instructions: u64,
}

/// Decodes the code of a library once and pairs its check messages with their values.
/// A library without checks (up to 2.6) gives an empty result.
///
/// # Errors
/// [`crate::error::ErrorKind::Unsupported`] for other processors than x86-64 and AArch64,
/// [`crate::error::ErrorKind::Limit`] for more code than [`limits::CODE_BYTES`], for more messages than [`limits::CHECKS`]
/// or further apart than [`limits::CHECK_TEXT_BYTES`]: inputs that are not looked at would pass for unchecked ones.
pub fn read(image: &Image<'_>) -> Result<CrossReference> {
    let code = Code::new(image)?;
    let sweep = sweep::sweep(&code)?;
    let mut result = CrossReference {
        has_environment: sweep.has_environment,
        instructions: sweep.instructions,
        ..CrossReference::default()
    };
    // without its imports a library still has its messages: only the second source for dtypes is lost
    let imports = if sweep.mentions.is_empty() { None } else { Imports::new(image).ok() };
    let callee = |callee| imports.as_ref()?.name(&code, callee);
    for mention in &sweep.mentions {
        let (input, kind) = (mention.input, mention.kind);
        match walk::value_of(&code, mention) {
            Ok(value) => {
                let compared = walk::compared(&sweep, mention, &callee).filter(|other| !is_null_test(other, &value));
                result.checks.push(Check { input, kind, value, address: mention.at, compared });
            }
            Err(reason) => result.unresolved.push(Unresolved { input, kind, address: mention.text, reason }),
        }
    }
    result.unresolved.extend(unmentioned(&code, &sweep)?);
    result.checks.sort_by_key(|check| (check.input, check.address));
    result.checks.dedup_by(|a, b| (a.input, a.kind, &a.value, &a.compared) == (b.input, b.kind, &b.value, &b.compared));
    Ok(result)
}

/// A comparison with zero may be the test for a null pointer that inlined stream code makes.
fn is_null_test(compared: &CheckValue, value: &CheckValue) -> bool {
    compared.number() == Some(0) && compared != value
}

/// Messages that lie among the mentioned ones, and that no instruction mentions in a form known here.
fn unmentioned(code: &Code<'_>, sweep: &sweep::Sweep) -> Result<Vec<Unresolved>> {
    let mut known: Vec<u64> = sweep.mentions.iter().map(|mention| mention.text).collect();
    known.sort_unstable();
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return Ok(Vec::new()) };
    // the compiler keeps the texts of one file together
    let before = first & 0xfff;
    let Some(start) = first.checked_sub(before) else { return Ok(Vec::new()) };
    let length = last.saturating_sub(start).saturating_add(0x1000);
    if length > limits::CHECK_TEXT_BYTES {
        let what = format!("check messages lie among {length} bytes, more than {}", limits::CHECK_TEXT_BYTES);
        return Err(Error::limit(what));
    }
    let bytes = code.bytes(start, usize::try_from(length).unwrap_or(usize::MAX));
    let found = memchr::memmem::find_iter(bytes, message::HANDLES)
        .filter_map(|offset| {
            let address = start.checked_add(offset as u64)?;
            let (input, kind) = message::parse_message(bytes.get(offset..)?)?;
            let is_new = known.binary_search(&address).is_err();
            is_new.then_some(Unresolved { input, kind, address, reason: "no instruction mentions its message" })
        })
        .take(limits::CHECKS + 1)
        .collect();
    sweep::all_of(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::code::Part;
    use super::decode::{Processor, Registers};
    use crate::limits;

    const MESSAGE: &[u8] = b"input_handles[0]: unmatched dtype, \0";

    fn mention(text: u64) -> sweep::Mention {
        sweep::Mention {
            input: 0,
            kind: CheckKind::Dtype,
            text,
            at: 0,
            next: 0,
            run: 0,
            fallen_from: None,
            registers: Registers::default(),
        }
    }

    #[test]
    fn the_search_for_unmentioned_messages_has_a_border() {
        let of = |data: &[u8], length: u64| {
            let code =
                Code::of(Processor::X86_64, Part { address: 0, bytes: &[] }, Part { address: 0x1000, bytes: data });
            // the page of the last one is searched too
            let mentions = vec![mention(0x1000), mention(length)];
            let found = unmentioned(&code, &sweep::Sweep { mentions, ..sweep::Sweep::default() });
            found.map(|all| all.len()).map_err(|e| e.to_string())
        };
        let mut data = vec![0; limits::CHECK_TEXT_BYTES as usize];
        let end = data.len();
        data[end - MESSAGE.len()..].copy_from_slice(MESSAGE);
        assert_eq!(of(&data, limits::CHECK_TEXT_BYTES), Ok(1));
        let refused = of(&data, limits::CHECK_TEXT_BYTES + 1).unwrap_err();
        assert!(refused.contains("16777217 bytes, more than 16777216"), "{refused}");
        let messages =
            |count: usize| of(&[&[0; 0x100], MESSAGE.repeat(count).as_slice()].concat(), limits::CHECK_TEXT_BYTES);
        assert_eq!(messages(limits::CHECKS), Ok(limits::CHECKS));
        assert!(messages(limits::CHECKS + 1).unwrap_err().contains("more than 131072 check messages"));
    }

    #[test]
    fn check_messages_have_a_border() {
        let of = |before: usize| {
            // lea rsi, [rip + 0x1000]
            let bytes = [0x48, 0x8d, 0x35, 0, 0x10, 0, 0];
            let mut data = vec![0; 0x1000];
            data[7..7 + MESSAGE.len()].copy_from_slice(MESSAGE);
            let code = Code::of(
                Processor::X86_64,
                Part { address: 0x1000, bytes: &bytes },
                Part { address: 0x2000, bytes: &data },
            );
            let mentions = vec![mention(1); before];
            let sweep = sweep::go_on(&code, sweep::Sweep { mentions, ..sweep::Sweep::default() });
            sweep.map(|sweep| sweep.mentions.len()).map_err(|e| e.to_string())
        };
        assert_eq!(of(limits::CHECKS - 1), Ok(limits::CHECKS));
        assert!(of(limits::CHECKS).unwrap_err().contains("more than 131072 check messages"));
    }
}
