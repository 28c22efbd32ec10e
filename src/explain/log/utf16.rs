//! Logs in UTF-16, which a redirection in PowerShell writes, become UTF-8 while they are read.

use std::io::{self, Read};

/// A stream that begins with a byte order mark of UTF-16 becomes UTF-8; everything else passes.
pub(super) fn decoded(mut stream: impl Read) -> io::Result<impl Read> {
    let mut head = Vec::with_capacity(2);
    (&mut stream).take(2).read_to_end(&mut head)?;
    let order = match head.as_slice() {
        [0xFF, 0xFE] => Some(u16::from_le_bytes as fn([u8; 2]) -> u16),
        [0xFE, 0xFF] => Some(u16::from_be_bytes as fn([u8; 2]) -> u16),
        _ => None,
    };
    let head = if order.is_some() { Vec::new() } else { head };
    Ok(Utf16 { stream: io::Cursor::new(head).chain(stream), order, pending: Vec::new() })
}

struct Utf16<R> {
    stream: R,
    order: Option<fn([u8; 2]) -> u16>,
    pending: Vec<u8>,
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(order) = self.order else { return self.stream.read(buffer) };
        if self.pending.is_empty() {
            let mut raw = Vec::with_capacity(64 << 10);
            (&mut self.stream).take(64 << 10).read_to_end(&mut raw)?;
            let units = raw.chunks_exact(2).filter_map(|pair| Some(order(pair.try_into().ok()?)));
            let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
            self.pending = text.into_bytes();
        }
        let take = self.pending.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..take), self.pending.get(..take)) {
            to.copy_from_slice(from);
        }
        self.pending.drain(..take);
        Ok(take)
    }
}
