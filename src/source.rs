//! Where bytes come from: a mapped file or a buffer, read by ranges.
//!
//! Nobody above this floor asks for a whole file: a range that is never read is never paged in, so a
//! package of 10 GiB costs what one of 2 MB costs. This module holds the only `unsafe` of the crate.

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

/// Random access to bytes. Implementations may map, hold or fetch them.
pub trait Bytes: Send + Sync + std::fmt::Debug {
    /// Total length in bytes.
    fn len(&self) -> u64;
    /// Exactly `len` bytes from `offset`, or `None` when they are not all there.
    fn range(&self, offset: u64, len: u64) -> Option<&[u8]>;
    /// True for a source without any byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Bytes for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }
    fn range(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.get(start..end)
    }
}

/// Bytes as text, foreign ones replaced. Valid text, the normal case, is checked many bytes at a time and borrowed.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[derive(Debug)]
struct MappedFile(memmap2::Mmap);

impl Bytes for MappedFile {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn range(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.0.get(start..end)
    }
}

/// Maps a regular file; an empty file becomes an empty buffer (a mapping of nothing is refused by the system).
///
/// # Errors
/// [`ErrorKind::Io`] when the file cannot be opened, is no regular file, or cannot be mapped.
pub fn open_file(path: &Path) -> Result<Box<dyn Bytes>> {
    let io = |what: &str, e: std::io::Error| Error::new(ErrorKind::Io, format!("{what}: {e}"));
    // before it is opened: a pipe without a writer would wait for ever
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return Err(Error::new(ErrorKind::Io, "not a regular file").help("pipe it in and give `-`"));
    }
    let file = std::fs::File::open(path).map_err(|e| io("cannot open", e))?;
    let meta = file.metadata().map_err(|e| io("cannot stat", e))?;
    if !meta.is_file() {
        return Err(Error::new(ErrorKind::Io, "not a regular file").help("pipe it in and give `-`"));
    }
    if meta.len() == 0 {
        return Ok(Box::new(Vec::new()));
    }
    // SAFETY: the mapping is read-only and private. A writer that truncates the file while it is read
    // makes the system raise SIGBUS: see `exit_on_truncation`.
    #[expect(unsafe_code, reason = "mapping a file is the one thing that needs it")]
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|e| io("cannot map", e))?;
    Ok(Box::new(MappedFile(map)))
}

/// Makes the process end with a message and exit code 3 when a mapped file is cut short by another process
/// while it is read. For binaries: it installs a handler for SIGBUS. Without it, that signal kills the process.
#[cfg(unix)]
pub fn exit_on_truncation() {
    const MESSAGE: &[u8] = b"aoti-inspect: the file became shorter while it was read: inspect a finished file\n";
    let handler = || {
        // SAFETY: write(2) is async-signal-safe, the buffer is static, and a failed write changes nothing.
        #[expect(unsafe_code, reason = "part of the mapping: what happens when it breaks")]
        unsafe {
            libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        }
        signal_hook::low_level::exit(crate::report::Exit::Unreadable as i32);
    };
    // SAFETY: the handler calls nothing but write(2) and _exit(2).
    #[expect(unsafe_code, reason = "part of the mapping: what happens when it breaks")]
    let registered = unsafe { signal_hook::low_level::register(libc::SIGBUS, handler) };
    // a system that refuses handlers keeps its own behaviour, which is to kill the process
    drop(registered);
}

/// Reads a stream to its end, up to [`limits::STDIN_BYTES`].
///
/// # Errors
/// [`ErrorKind::Io`] for a failed read, [`ErrorKind::Limit`] for a longer stream.
pub fn read_stream(stream: impl Read) -> Result<Box<dyn Bytes>> {
    Ok(Box::new(read_capped(stream, limits::STDIN_BYTES)?))
}

/// All bytes of a stream, whose length nobody knows before, when there are at most `cap` of them.
pub(crate) fn read_capped(stream: impl Read, cap: u64) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    stream
        .take(cap.saturating_add(1))
        .read_to_end(&mut buffer)
        .map_err(|e| Error::new(ErrorKind::Io, format!("cannot read: {e}")))?;
    if buffer.len() as u64 > cap {
        return Err(Error::limit(format!("a stream of more than the {cap} bytes that are read"))
            .help("give the file's name instead"));
    }
    Ok(buffer)
}

/// A window into [`Bytes`]: a whole file, a stored zip member, a section, an embedded kernel.
///
/// Offsets are relative to the window; every access is checked. Copying it is free.
#[derive(Debug, Clone, Copy)]
pub struct Region<'a> {
    bytes: &'a dyn Bytes,
    start: u64,
    len: u64,
}

impl<'a> Region<'a> {
    /// All of `bytes`.
    pub fn whole(bytes: &'a dyn Bytes) -> Self {
        Self { bytes, start: 0, len: bytes.len() }
    }
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }
    /// True for an empty window.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Exactly `len` bytes from `offset`.
    pub fn get(&self, offset: u64, len: u64) -> Option<&'a [u8]> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        self.bytes.range(self.start.checked_add(offset)?, len)
    }
    /// A narrower window, or `None` when it does not lie inside this one.
    pub fn sub(&self, offset: u64, len: u64) -> Option<Region<'a>> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        Some(Region { bytes: self.bytes, start: self.start.checked_add(offset)?, len })
    }
    /// Up to `len` bytes from the start: for recognising a format.
    pub fn head(&self, len: u64) -> &'a [u8] {
        self.get(0, len.min(self.len)).unwrap_or_default()
    }
    /// All bytes, when there are at most `cap` of them.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] naming the cap.
    pub fn all(&self, cap: u64) -> Result<&'a [u8]> {
        if self.len > cap {
            return Err(Error::limit(format!("{} bytes, more than the {cap} that are read in one piece", self.len)));
        }
        self.get(0, self.len).ok_or_else(|| Error::damaged("bytes are not there"))
    }
}

/// `object` reads through the same window, so that only the tables it touches are paged in.
impl<'a> object::ReadRef<'a> for Region<'a> {
    fn len(self) -> std::result::Result<u64, ()> {
        Ok(self.len)
    }
    fn read_bytes_at(self, offset: u64, size: u64) -> std::result::Result<&'a [u8], ()> {
        self.get(offset, size).ok_or(())
    }
    fn read_bytes_at_until(self, range: std::ops::Range<u64>, delimiter: u8) -> std::result::Result<&'a [u8], ()> {
        // names are searched for in steps, so that a missing terminator costs a cap and not the file
        let len = range.end.checked_sub(range.start).ok_or(())?.min(limits::SYMBOL_NAME_BYTES as u64);
        let bytes = self.get(range.start, len.min(self.len.saturating_sub(range.start))).ok_or(())?;
        memchr::memchr(delimiter, bytes).and_then(|end| bytes.get(..end)).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::ReadRef;

    #[test]
    fn streams_have_a_border() {
        // `limits::STDIN_BYTES`, which `read_stream` hands on, is more memory than a test should take
        let of = |len: u64, cap| read_capped(std::io::repeat(7).take(len), cap).map(|bytes| bytes.len());
        assert_eq!(of(4096, 4096).unwrap(), 4096);
        let refused = of(4097, 4096).unwrap_err();
        assert_eq!((refused.kind(), refused.message().contains("4096")), (ErrorKind::Limit, true));
        assert!(of(1, u64::MAX).is_ok());
        assert_eq!(read_stream(std::io::repeat(7).take(9)).unwrap().len(), 9);
    }

    #[test]
    fn names_without_an_end_have_a_border() {
        let name_of = |len: usize| {
            let bytes = [vec![b'n'; len], vec![0; 9]].concat();
            let region = Region::whole(&bytes);
            region.read_bytes_at_until(0..bytes.len() as u64, 0).map(<[u8]>::len)
        };
        // its end is one of the bytes that are looked at
        assert_eq!(name_of(limits::SYMBOL_NAME_BYTES - 1), Ok(limits::SYMBOL_NAME_BYTES - 1));
        assert_eq!(name_of(limits::SYMBOL_NAME_BYTES), Err(()));
    }
}
