//! The old `std::string` of libstdc++, in libraries of torch up to 2.5 and of the PyPI wheels of 2.6: a pointer to
//! the text, before which stand {length, capacity, reference count}. Every change here makes a new text.

use super::{Row, string, zero};
use crate::interpret::machine::{Answer, Exit, Machine};
use crate::interpret::value::Value;

pub const TABLE: &[Row] = &[
    ("_ZNSs4_Rep9_S_createEmmRKSaIcE", create),
    ("_ZNSs4_Rep8_M_cloneERKSaIcEm", clone),
    ("_ZNSs4_Rep10_M_destroyERKSaIcE", zero),
    ("_ZNSs4_Rep10_M_disposeERKSaIcE", zero),
    ("_ZNSs7_M_leakEv", zero),
    ("_ZNSs12_M_leak_hardEv", zero),
    ("_ZNSsD1Ev", zero),
    ("_ZNSsD2Ev", zero),
    ("_ZNSs12_S_constructEmcRKSaIcE", construct_filled),
    ("_ZNSs12_S_constructIPKcEEPcT_S3_RKSaIcESt20forward_iterator_tag", construct_range),
    ("_ZNSs12_S_constructIPcEES0_T_S1_RKSaIcESt20forward_iterator_tag", construct_range),
    ("_ZNSsC1Ev", |m| make(m, |_| Ok(Vec::new()))),
    ("_ZNSsC1ERKSs", |m| {
        make(m, |m| {
            let from = m.arg(1);
            read_string(m, from)
        })
    }),
    ("_ZNSsC2ERKSs", |m| {
        make(m, |m| {
            let from = m.arg(1);
            read_string(m, from)
        })
    }),
    ("_ZNSsC1EPKcRKSaIcE", |m| {
        make(m, |m| {
            let from = m.arg(1);
            m.text(from)
        })
    }),
    ("_ZNSsC2EPKcRKSaIcE", |m| {
        make(m, |m| {
            let from = m.arg(1);
            m.text(from)
        })
    }),
    ("_ZNSsC1EPKcmRKSaIcE", |m| {
        make(m, |m| {
            let (from, len) = (m.arg(1), m.arg(2));
            m.bytes(from, len)
        })
    }),
    ("_ZNSs6assignERKSs", |m| {
        edit(m, |m, _| {
            let from = m.arg(1);
            read_string(m, from)
        })
    }),
    ("_ZNSsaSERKSs", |m| {
        edit(m, |m, _| {
            let from = m.arg(1);
            read_string(m, from)
        })
    }),
    ("_ZNSs6assignEPKcm", |m| {
        edit(m, |m, _| {
            let (from, len) = (m.arg(1), m.arg(2));
            m.bytes(from, len)
        })
    }),
    ("_ZNSs6assignEPKc", |m| {
        edit(m, |m, _| {
            let from = m.arg(1);
            m.text(from)
        })
    }),
    ("_ZNSs6appendERKSs", |m| {
        edit(m, |m, t| {
            let from = m.arg(1);
            Ok(joined(t, read_string(m, from)?))
        })
    }),
    ("_ZNSs6appendEPKc", |m| {
        edit(m, |m, t| {
            let from = m.arg(1);
            Ok(joined(t, m.text(from)?))
        })
    }),
    ("_ZNSs6appendEPKcm", |m| {
        edit(m, |m, t| {
            let (from, len) = (m.arg(1), m.arg(2));
            Ok(joined(t, m.bytes(from, len)?))
        })
    }),
    ("_ZNSs6appendEmc", |m| {
        edit(m, |m, t| {
            let (count, byte) = (m.arg(1), m.arg(2));
            Ok(joined(t, string::repeated(m, byte, count)?))
        })
    }),
    ("_ZNSs9push_backEc", |m| {
        edit(m, |m, t| {
            let byte = m.arg(1) as u8;
            Ok(joined(t, vec![byte]))
        })
    }),
    ("_ZNSspLEc", |m| {
        edit(m, |m, t| {
            let byte = m.arg(1) as u8;
            Ok(joined(t, vec![byte]))
        })
    }),
    ("_ZNSs6insertEmPKcm", |m| {
        edit(m, |m, t| {
            let (position, from, len) = (m.arg(1), m.arg(2), m.arg(3));
            Ok(string::spliced(&t, position, 0, &m.bytes(from, len)?))
        })
    }),
    ("_ZNSs7replaceEmmPKcm", |m| {
        edit(m, |m, t| {
            let (position, removed, from, len) = (m.arg(1), m.arg(2), m.arg(3), m.arg(4));
            Ok(string::spliced(&t, position, removed, &m.bytes(from, len)?))
        })
    }),
    ("_ZNSs14_M_replace_auxEmmmc", |m| {
        edit(m, |m, t| {
            let (position, removed, count, byte) = (m.arg(1), m.arg(2), m.arg(3), m.arg(4));
            Ok(string::spliced(&t, position, removed, &string::repeated(m, byte, count)?))
        })
    }),
    ("_ZNSs9_M_mutateEmmm", |m| {
        edit(m, |m, t| {
            let (position, removed, len) = (m.arg(1), m.arg(2), m.arg(3));
            Ok(string::spliced(&t, position, removed, &string::repeated(m, 0, len)?))
        })
    }),
    ("_ZNSs5eraseEmm", |m| {
        edit(m, |m, t| {
            let (position, removed) = (m.arg(1), m.arg(2));
            Ok(string::spliced(&t, position, removed, b""))
        })
    }),
    ("_ZNSs6resizeEmc", |m| {
        edit(m, |m, mut t| {
            let (len, byte) = (m.arg(1), m.arg(2));
            let filler = string::repeated(m, byte, len)?;
            let kept = t.len();
            t.truncate(filler.len());
            t.extend_from_slice(filler.get(kept..).unwrap_or_default());
            Ok(t)
        })
    }),
    ("_ZNSs7reserveEm", reserve),
    ("_ZNSs4swapERSs", swap),
    ("_ZNKSs7compareEPKc", compare_literal),
    ("_ZNKSs7compareERKSs", compare),
    ("_ZNKSs4findEPKcmm", find),
    ("_ZNKSs5rfindEPKcmm", find_last),
];

/// Bytes of {length, capacity, reference count, padding} before the text.
const HEADER: u64 = 24;

fn block(m: &mut Machine<'_>, text: &[u8], capacity: u64) -> u64 {
    let capacity = capacity.max(text.len() as u64);
    let header = m.allocate(capacity.saturating_add(HEADER + 1));
    m.set_word(header, text.len() as u64);
    m.set_word(header.wrapping_add(8), capacity);
    m.bus.memory.write(header.wrapping_add(16), 4, 0);
    let data = header.wrapping_add(HEADER);
    m.bus.memory.write_bytes(data, text);
    m.bus.memory.write(data.wrapping_add(text.len() as u64), 1, 0);
    data
}

/// Makes a string in place.
pub fn new_string(m: &mut Machine<'_>, at: u64, text: &[u8]) {
    let data = block(m, text, 2 * text.len() as u64);
    m.set_word(at, data);
}

/// The text of a string.
pub fn read_string(m: &mut Machine<'_>, at: u64) -> Result<Vec<u8>, Exit> {
    let data = m.word(at);
    let len = m.word(data.wrapping_sub(HEADER));
    m.bytes(data, len)
}

fn joined(mut text: Vec<u8>, more: Vec<u8>) -> Vec<u8> {
    text.extend(more);
    text
}

fn make(m: &mut Machine<'_>, text: impl FnOnce(&mut Machine<'_>) -> Result<Vec<u8>, Exit>) -> Answer {
    let at = m.arg(0);
    let text = text(m)?;
    new_string(m, at, &text);
    Ok(Value::new(at))
}

fn edit(m: &mut Machine<'_>, change: impl FnOnce(&mut Machine<'_>, Vec<u8>) -> Result<Vec<u8>, Exit>) -> Answer {
    let at = m.arg(0);
    let text = read_string(m, at)?;
    let text = change(m, text)?;
    new_string(m, at, &text);
    Ok(Value::new(at))
}

/// `_Rep::_S_create(capacity, old)` returns the header.
fn create(m: &mut Machine<'_>) -> Answer {
    let (mut capacity, old) = (m.arg(0), m.arg(1));
    if capacity > 1 << 30 {
        return Err(Exit::Throw("length_error".to_owned()));
    }
    if capacity > old && capacity < old.saturating_mul(2) {
        capacity = old.saturating_mul(2);
    }
    Ok(Value::new(block(m, b"", capacity).wrapping_sub(HEADER)))
}

/// `_Rep::_M_clone(alloc, more)` returns the text of a copy.
fn clone(m: &mut Machine<'_>) -> Answer {
    let (header, more) = (m.arg(0), m.arg(2));
    let len = m.word(header);
    let text = m.bytes(header.wrapping_add(HEADER), len)?;
    Ok(Value::new(block(m, &text, len.saturating_add(more.min(1 << 20)))))
}

fn construct_filled(m: &mut Machine<'_>) -> Answer {
    let (count, byte) = (m.arg(0), m.arg(1));
    let text = string::repeated(m, byte, count)?;
    Ok(Value::new(block(m, &text, 0)))
}

fn construct_range(m: &mut Machine<'_>) -> Answer {
    let (start, end) = (m.arg(0), m.arg(1));
    let text = m.bytes(start, end.wrapping_sub(start))?;
    Ok(Value::new(block(m, &text, 0)))
}

fn reserve(m: &mut Machine<'_>) -> Answer {
    let (at, wanted) = (m.arg(0), m.arg(1).min(1 << 30));
    let text = read_string(m, at)?;
    let data = block(m, &text, wanted);
    m.set_word(at, data);
    Ok(Value::ZERO)
}

fn swap(m: &mut Machine<'_>) -> Answer {
    let (a, b) = (m.arg(0), m.arg(1));
    let (x, y) = (m.word(a), m.word(b));
    m.set_word(a, y);
    m.set_word(b, x);
    Ok(Value::ZERO)
}

fn compare_literal(m: &mut Machine<'_>) -> Answer {
    let (at, other) = (m.arg(0), m.arg(1));
    let (a, b) = (read_string(m, at)?, m.text(other)?);
    Ok(Value::new(a.cmp(&b) as i64 as u64))
}

fn compare(m: &mut Machine<'_>) -> Answer {
    let (at, other) = (m.arg(0), m.arg(1));
    let (a, b) = (read_string(m, at)?, read_string(m, other)?);
    Ok(Value::new(a.cmp(&b) as i64 as u64))
}

fn find(m: &mut Machine<'_>) -> Answer {
    let (at, from, start, len) = (m.arg(0), m.arg(1), m.arg(2), m.arg(3));
    let (text, what) = (read_string(m, at)?, m.bytes(from, len)?);
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let found = text.get(start..).and_then(|rest| memchr::memmem::find(rest, &what));
    Ok(Value::new(found.map_or(u64::MAX, |n| (n + start) as u64)))
}

fn find_last(m: &mut Machine<'_>) -> Answer {
    let (at, from, last, len) = (m.arg(0), m.arg(1), m.arg(2), m.arg(3));
    let (text, what) = (read_string(m, at)?, m.bytes(from, len)?);
    let end = usize::try_from(last.saturating_add(len)).unwrap_or(usize::MAX).min(text.len());
    let found = text.get(..end).and_then(|head| memchr::memmem::rfind(head, &what));
    Ok(Value::new(found.map_or(u64::MAX, |n| n as u64)))
}
