//! The one file that a library may open: itself, for weights that were appended to it.

use super::{Row, zero};
use crate::interpret::explore::{Mode, symbolic};
use crate::interpret::layout;
use crate::interpret::machine::{Answer, Exit, Machine};
use crate::interpret::memory::Mapping;
use crate::interpret::value::{Origin, Value};

pub const TABLE: &[Row] = &[
    ("dladdr", dladdr),
    ("dladdr1", dladdr),
    ("open", open),
    ("open64", open),
    ("lseek", lseek),
    ("lseek64", lseek),
    ("fstat", |_| Ok(Value::new(u64::MAX))),
    ("fstat64", |_| Ok(Value::new(u64::MAX))),
    ("read", read),
    ("mmap", mmap),
    ("mmap64", mmap),
    ("munmap", zero),
    ("madvise", zero),
    ("mprotect", zero),
    ("close", zero),
];

/// The file descriptor of the library's own file.
const DESCRIPTOR: u64 = 77;

fn dladdr(m: &mut Machine<'_>) -> Answer {
    let (address, info) = (m.arg(0), m.arg(1));
    if !m.is_in_image(address) {
        return Ok(Value::ZERO);
    }
    let name = m.literal("self.so");
    m.set_word(info, name);
    m.set_word(info.wrapping_add(8), layout::IMAGE);
    Ok(Value::new(1))
}

fn open(m: &mut Machine<'_>) -> Answer {
    let name = m.arg(0);
    if m.text(name)? != b"self.so" {
        return Ok(Value::new(u64::MAX));
    }
    m.host.file_position = 0;
    Ok(Value::new(DESCRIPTOR))
}

/// The size of the file is a symbol while the model is created: what it has to satisfy is the damage report.
fn lseek(m: &mut Machine<'_>) -> Answer {
    const SEEK_CUR: u64 = 1;
    const SEEK_END: u64 = 2;
    let (offset, whence) = (m.arg(1), m.arg(2) & 0xffff_ffff);
    m.host.file_position = match whence {
        SEEK_CUR => m.host.file_position.wrapping_add(offset),
        SEEK_END => m.loaded.file_bytes.wrapping_add(offset),
        _ => offset,
    };
    if whence == SEEK_END && offset == 0 && m.explorer.mode != Mode::Follow {
        let size = i64::try_from(m.loaded.file_bytes).unwrap_or(i64::MAX);
        return Ok(symbolic(&mut m.bus.expressions, Origin::FileSize, size));
    }
    Ok(Value::new(m.host.file_position))
}

fn read(m: &mut Machine<'_>) -> Answer {
    // a system too may read less than it was asked for
    let (to, len) = (m.arg(1), m.arg(2).min(crate::limits::COPY_BYTES));
    let at = m.host.file_position;
    let there = m.loaded.file_bytes.saturating_sub(at).min(len);
    let file = m.file;
    let Some(bytes) = file.get(at, there) else { return Ok(Value::new(u64::MAX)) };
    m.charge(there)?;
    m.bus.memory.write_bytes(to, bytes);
    m.host.file_position = at.wrapping_add(there);
    Ok(Value::new(there))
}

/// Maps a part of the file. The weights themselves are not looked at, the magic behind them is.
fn mmap(m: &mut Machine<'_>) -> Answer {
    let (len, descriptor, offset) = (m.arg(1), m.arg(4) & 0xffff_ffff, m.argument(5));
    if descriptor != DESCRIPTOR {
        // anonymous memory
        if len > 1 << 40 {
            return Ok(Value::new(u64::MAX));
        }
        return Ok(Value::new(m.allocate(len)));
    }
    let number = m.host.mapped.len() as u64;
    let address = layout::MAPPED_FILE.start + (number & 0x3f) * (1 << 33);
    if number >= 64 {
        return Err(Exit::Throw("mmap".to_owned()));
    }
    let offset = offset.bits;
    let there = m.file.len().saturating_sub(offset).min(len);
    if let Some(bytes) = m.file.sub(offset, there).filter(|_| offset <= m.file.len()) {
        m.bus.memory.map(Mapping { address, memory_size: len, bytes, is_executable: false });
    }
    m.host.mapped.push((address, len, offset));
    if m.explorer.mode != Mode::Follow && len >= 8 {
        let at = address.wrapping_add(len - 8);
        let there = m.bus.memory.read(at, 8);
        let magic = symbolic(&mut m.bus.expressions, Origin::MappedMagic, there as i64);
        m.bus.memory.store(at, 8, magic);
    }
    Ok(Value::new(address))
}
