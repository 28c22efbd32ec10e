//! `std::string` of libstdc++ since GCC 5: {pointer, length, 16 bytes of buffer or capacity}.

use super::{Row, cow_string, libcxx, zero};
use crate::interpret::machine::{Answer, Exit, Machine};
use crate::interpret::value::Value;
use crate::model::DeviceKind;

/// `std::basic_string` in mangled names.
macro_rules! member {
    ($name:literal) => {
        concat!("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE", $name)
    };
}
macro_rules! const_member {
    ($name:literal) => {
        concat!("_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE", $name)
    };
}

pub const TABLE: &[Row] = &[
    (member!("9_M_createERmm"), create),
    (member!("9_M_assignERKS4_"), assign),
    (member!("aSERKS4_"), assign),
    (member!("6assignERKS4_"), assign),
    (member!("aSEOS4_"), move_assign),
    (member!("6assignEPKc"), assign_literal),
    (member!("aSEPKc"), assign_literal),
    (member!("6assignEPKcm"), assign_bytes),
    (member!("9_M_appendEPKcm"), append_bytes),
    (member!("6appendEPKcm"), append_bytes),
    (member!("6appendEPKc"), append_literal),
    (member!("pLEPKc"), append_literal),
    (member!("6appendERKS4_"), append_string),
    (member!("pLERKS4_"), append_string),
    (member!("pLEc"), push_back),
    (member!("9push_backEc"), push_back),
    (member!("6insertEmPKc"), insert_literal),
    (member!("10_M_replaceEmmPKcm"), replace),
    (member!("7replaceEmmPKcm"), replace),
    (member!("14_M_replace_auxEmmmc"), replace_with_character),
    (member!("9_M_mutateEmmPKcm"), mutate),
    (member!("10_M_disposeEv"), zero),
    (member!("D1Ev"), zero),
    (member!("D2Ev"), zero),
    (member!("7reserveEm"), reserve),
    (member!("6resizeEmc"), resize),
    (member!("12_M_constructEmc"), construct_filled),
    (member!("12_M_constructIPKcEEvT_S8_St20forward_iterator_tag"), construct_range),
    (member!("12_M_constructIPcEEvT_S7_St20forward_iterator_tag"), construct_range),
    (member!("12_M_constructILb1EEEvPKcm"), construct_bytes),
    (member!("12_M_constructILb0EEEvPKcm"), construct_bytes),
    (member!("C1EPKcRKS3_"), construct_literal),
    (member!("C2EPKcRKS3_"), construct_literal),
    (member!("C1IS3_EEPKcRKS3_"), construct_literal),
    (member!("C2IS3_EEPKcRKS3_"), construct_literal),
    (member!("C1ERKS4_"), construct_copy),
    (member!("C2ERKS4_"), construct_copy),
    (member!("C1EOS4_"), construct_move),
    (member!("C2EOS4_"), construct_move),
    (member!("C1Ev"), construct_empty),
    (member!("C2Ev"), construct_empty),
    (member!("7_S_copyEPcPKcm"), super::libc::memcpy),
    (member!("4swapERS4_"), swap),
    (member!("5clearEv"), construct_empty),
    (const_member!("7compareEPKc"), compare_literal),
    (const_member!("7compareERKS4_"), compare),
    (const_member!("4findEPKcmm"), find),
    (const_member!("4findEcm"), find_character),
    (const_member!("5rfindEPKcmm"), find_last),
    (const_member!("6substrEmm"), substring),
];

/// How the library's strings lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strings {
    /// libstdc++ since GCC 5, this file
    #[default]
    Libstdcxx,
    /// the old kind, a pointer to counted text
    CopyOnWrite,
    /// libc++
    Libcxx(libcxx::Layout),
}

impl Strings {
    /// The layout of libc++'s strings.
    pub fn libcxx(self) -> Option<libcxx::Layout> {
        match self {
            Self::Libcxx(layout) => Some(layout),
            _ => None,
        }
    }
}

/// What a stream gives back as its text: the pieces written are kept as messages instead.
pub const STREAM_TEXT: &[u8] = b"?";
const BUFFER: u64 = 16;
const BUFFER_CAPACITY: u64 = 15;

/// Makes a string in place.
pub fn new_string(m: &mut Machine<'_>, at: u64, text: &[u8]) {
    match m.host.strings {
        Strings::Libstdcxx => {}
        Strings::CopyOnWrite => return cow_string::new_string(m, at, text),
        Strings::Libcxx(layout) => return libcxx::new_string(m, layout, at, text),
    }
    let len = text.len() as u64;
    let data = if len <= BUFFER_CAPACITY {
        at.wrapping_add(BUFFER)
    } else {
        m.set_word(at.wrapping_add(BUFFER), len);
        m.allocate(len + 1)
    };
    m.set_word(at, data);
    put(m, at, data, text);
}

fn put(m: &mut Machine<'_>, at: u64, data: u64, text: &[u8]) {
    m.bus.memory.write_bytes(data, text);
    m.bus.memory.write(data.wrapping_add(text.len() as u64), 1, 0);
    m.set_word(at.wrapping_add(8), text.len() as u64);
}

/// Gives an existing string another text.
pub fn set_string(m: &mut Machine<'_>, at: u64, text: &[u8]) {
    if let Strings::Libcxx(layout) = m.host.strings {
        return libcxx::new_string(m, layout, at, text);
    }
    let len = text.len() as u64;
    let mut data = m.word(at);
    if len > capacity(m, at) {
        data = m.allocate(2 * len + 1);
        m.set_word(at, data);
        m.set_word(at.wrapping_add(BUFFER), 2 * len);
    }
    put(m, at, data, text);
}

fn capacity(m: &mut Machine<'_>, at: u64) -> u64 {
    if m.word(at) == at.wrapping_add(BUFFER) { BUFFER_CAPACITY } else { m.word(at.wrapping_add(BUFFER)) }
}

/// The text of a string of either kind.
///
/// # Errors
/// [`Exit`] for a text beyond the cap.
pub fn read_string(m: &mut Machine<'_>, at: u64) -> Result<Vec<u8>, Exit> {
    match m.host.strings {
        Strings::Libstdcxx => {}
        Strings::CopyOnWrite => return cow_string::read_string(m, at),
        Strings::Libcxx(layout) => return libcxx::read_string(m, layout, at),
    }
    let (data, len) = (m.word(at), m.word(at.wrapping_add(8)));
    m.bytes(data, len)
}

/// Runs an edit on the text of the string in the first argument.
pub fn edit(m: &mut Machine<'_>, change: impl FnOnce(&mut Machine<'_>, Vec<u8>) -> Result<Vec<u8>, Exit>) -> Answer {
    let at = m.arg(0);
    let text = read_string(m, at)?;
    let text = change(m, text)?;
    set_string(m, at, &text);
    Ok(Value::new(at))
}

/// `text` with `removed` bytes at `position` replaced.
pub fn spliced(text: &[u8], position: u64, removed: u64, inserted: &[u8]) -> Vec<u8> {
    let start = usize::try_from(position).unwrap_or(usize::MAX).min(text.len());
    let end = start.saturating_add(usize::try_from(removed).unwrap_or(usize::MAX)).min(text.len());
    let mut result = text.get(..start).unwrap_or_default().to_vec();
    result.extend_from_slice(inserted);
    result.extend_from_slice(text.get(end..).unwrap_or_default());
    result
}

/// `count` times a byte, up to the cap on texts.
pub fn repeated(m: &mut Machine<'_>, byte: u64, count: u64) -> Result<Vec<u8>, Exit> {
    if count > crate::limits::COPY_BYTES {
        return Err(Exit::Throw("length_error".to_owned()));
    }
    m.charge(count)?;
    Ok(vec![byte as u8; count as usize])
}

/// `_M_create(size_t &capacity, size_t old)` returns a buffer and may enlarge the capacity.
fn create(m: &mut Machine<'_>) -> Answer {
    let (slot, old) = (m.arg(1), m.arg(2));
    let mut wanted = m.word(slot);
    if wanted > 1 << 30 {
        return Err(Exit::Throw("length_error".to_owned()));
    }
    if wanted > old && wanted < old.saturating_mul(2) {
        wanted = old.saturating_mul(2);
        m.set_word(slot, wanted);
    }
    Ok(Value::new(m.allocate(wanted.saturating_add(1))))
}

pub fn assign(m: &mut Machine<'_>) -> Answer {
    let from = m.arg(1);
    let text = read_string(m, from)?;
    edit(m, |_, _| Ok(text))
}

fn move_assign(m: &mut Machine<'_>) -> Answer {
    let from = m.arg(1);
    let result = assign(m)?;
    make_empty(m, from);
    Ok(result)
}

pub fn assign_literal(m: &mut Machine<'_>) -> Answer {
    let from = m.arg(1);
    let text = m.text(from)?;
    edit(m, |_, _| Ok(text))
}

pub fn assign_bytes(m: &mut Machine<'_>) -> Answer {
    let (from, len) = (m.arg(1), m.arg(2));
    let text = m.bytes(from, len)?;
    edit(m, |_, _| Ok(text))
}

pub fn append(m: &mut Machine<'_>, more: &[u8]) -> Answer {
    edit(m, |_, mut text| {
        text.extend_from_slice(more);
        Ok(text)
    })
}

pub fn append_bytes(m: &mut Machine<'_>) -> Answer {
    let (from, len) = (m.arg(1), m.arg(2));
    let more = m.bytes(from, len)?;
    append(m, &more)
}

pub fn append_literal(m: &mut Machine<'_>) -> Answer {
    let from = m.arg(1);
    let more = m.text(from)?;
    append(m, &more)
}

fn append_string(m: &mut Machine<'_>) -> Answer {
    let from = m.arg(1);
    let more = read_string(m, from)?;
    append(m, &more)
}

pub fn push_back(m: &mut Machine<'_>) -> Answer {
    let byte = m.arg(1) as u8;
    append(m, &[byte])
}

pub fn insert_literal(m: &mut Machine<'_>) -> Answer {
    let (position, from) = (m.arg(1), m.arg(2));
    let more = m.text(from)?;
    edit(m, |_, text| Ok(spliced(&text, position, 0, &more)))
}

pub fn replace(m: &mut Machine<'_>) -> Answer {
    let (position, removed, from, len) = (m.arg(1), m.arg(2), m.arg(3), m.arg(4));
    let more = m.bytes(from, len)?;
    edit(m, |_, text| Ok(spliced(&text, position, removed, &more)))
}

fn replace_with_character(m: &mut Machine<'_>) -> Answer {
    let (position, removed, count, byte) = (m.arg(1), m.arg(2), m.arg(3), m.arg(4));
    let more = repeated(m, byte, count)?;
    edit(m, |_, text| Ok(spliced(&text, position, removed, &more)))
}

/// Always moves to a larger buffer; the caller sets the length.
fn mutate(m: &mut Machine<'_>) -> Answer {
    let (at, position, removed, from, len) = (m.arg(0), m.arg(1), m.arg(2), m.arg(3), m.arg(4));
    let text = read_string(m, at)?;
    let more = if from == 0 { repeated(m, 0, len)? } else { m.bytes(from, len)? };
    let new = spliced(&text, position, removed, &more);
    let capacity = 2 * new.len() as u64;
    let data = m.allocate(capacity + 1);
    m.bus.memory.write_bytes(data, &new);
    m.set_word(at, data);
    m.set_word(at.wrapping_add(BUFFER), capacity);
    Ok(Value::ZERO)
}

fn reserve(m: &mut Machine<'_>) -> Answer {
    let (at, wanted) = (m.arg(0), m.arg(1));
    if wanted > 1 << 30 {
        return Err(Exit::Throw("length_error".to_owned()));
    }
    if wanted > capacity(m, at) {
        let text = read_string(m, at)?;
        let data = m.allocate(wanted + 1);
        m.set_word(at, data);
        m.set_word(at.wrapping_add(BUFFER), wanted);
        put(m, at, data, &text);
    }
    Ok(Value::ZERO)
}

pub fn resize(m: &mut Machine<'_>) -> Answer {
    let (len, byte) = (m.arg(1), m.arg(2));
    let filler = repeated(m, byte, len)?;
    edit(m, |_, mut text| {
        let kept = text.len();
        text.truncate(filler.len());
        text.extend_from_slice(filler.get(kept..).unwrap_or_default());
        Ok(text)
    })
}

pub fn construct_filled(m: &mut Machine<'_>) -> Answer {
    let (at, count, byte) = (m.arg(0), m.arg(1), m.arg(2));
    let text = repeated(m, byte, count)?;
    new_string(m, at, &text);
    Ok(Value::ZERO)
}

fn construct_range(m: &mut Machine<'_>) -> Answer {
    let (at, start, end) = (m.arg(0), m.arg(1), m.arg(2));
    let text = m.bytes(start, end.wrapping_sub(start))?;
    new_string(m, at, &text);
    Ok(Value::ZERO)
}

pub fn construct_bytes(m: &mut Machine<'_>) -> Answer {
    let (at, from, len) = (m.arg(0), m.arg(1), m.arg(2));
    let text = m.bytes(from, len)?;
    new_string(m, at, &text);
    Ok(Value::ZERO)
}

fn construct_literal(m: &mut Machine<'_>) -> Answer {
    let (at, from) = (m.arg(0), m.arg(1));
    let text = m.text(from)?;
    new_string(m, at, &text);
    Ok(Value::ZERO)
}

pub fn construct_copy(m: &mut Machine<'_>) -> Answer {
    let (at, from) = (m.arg(0), m.arg(1));
    let text = read_string(m, from)?;
    new_string(m, at, &text);
    Ok(Value::ZERO)
}

fn construct_move(m: &mut Machine<'_>) -> Answer {
    let from = m.arg(1);
    construct_copy(m)?;
    make_empty(m, from);
    Ok(Value::ZERO)
}

fn construct_empty(m: &mut Machine<'_>) -> Answer {
    let at = m.arg(0);
    make_empty(m, at);
    Ok(Value::ZERO)
}

fn make_empty(m: &mut Machine<'_>, at: u64) {
    m.set_word(at, at.wrapping_add(BUFFER));
    put(m, at, at.wrapping_add(BUFFER), b"");
}

fn swap(m: &mut Machine<'_>) -> Answer {
    let (a, b) = (m.arg(0), m.arg(1));
    let (x, y) = (read_string(m, a)?, read_string(m, b)?);
    set_string(m, a, &y);
    set_string(m, b, &x);
    Ok(Value::ZERO)
}

pub fn order(a: &[u8], b: &[u8]) -> Value {
    Value::new(a.cmp(b) as i64 as u64)
}

pub fn compare_literal(m: &mut Machine<'_>) -> Answer {
    let (at, other) = (m.arg(0), m.arg(1));
    let (a, b) = (read_string(m, at)?, m.text(other)?);
    Ok(order(&a, &b))
}

fn compare(m: &mut Machine<'_>) -> Answer {
    let (at, other) = (m.arg(0), m.arg(1));
    let (a, b) = (read_string(m, at)?, read_string(m, other)?);
    Ok(order(&a, &b))
}

pub fn position(found: Option<usize>) -> Value {
    Value::new(found.map_or(u64::MAX, |n| n as u64))
}

pub fn find(m: &mut Machine<'_>) -> Answer {
    let (at, from, start, len) = (m.arg(0), m.arg(1), m.arg(2), m.arg(3));
    let (text, what) = (read_string(m, at)?, m.bytes(from, len)?);
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let found = text.get(start..).and_then(|rest| memchr::memmem::find(rest, &what)).map(|n| n + start);
    Ok(position(found))
}

pub fn find_character(m: &mut Machine<'_>) -> Answer {
    let (at, byte, start) = (m.arg(0), m.arg(1) as u8, m.arg(2));
    let text = read_string(m, at)?;
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    Ok(position(text.get(start..).and_then(|rest| memchr::memchr(byte, rest)).map(|n| n + start)))
}

pub fn find_last(m: &mut Machine<'_>) -> Answer {
    let (at, from, last, len) = (m.arg(0), m.arg(1), m.arg(2), m.arg(3));
    let (text, what) = (read_string(m, at)?, m.bytes(from, len)?);
    let end = usize::try_from(last.saturating_add(len)).unwrap_or(usize::MAX).min(text.len());
    Ok(position(text.get(..end).and_then(|head| memchr::memmem::rfind(head, &what))))
}

/// Returns a string in memory.
fn substring(m: &mut Machine<'_>) -> Answer {
    let to = m.cpu.result_pointer();
    let (at, start, len) = (m.arg_after_result(0), m.arg_after_result(1), m.arg_after_result(2));
    let text = read_string(m, at)?;
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let Some(rest) = text.get(start..) else { return Err(Exit::Throw("out_of_range".to_owned())) };
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
    new_string(m, to, rest.get(..len).unwrap_or_default());
    Ok(Value::new(to))
}

/// `path /= path`: only needed where the cubin directory is set, which we never do.
pub fn join_paths(m: &mut Machine<'_>) -> Answer {
    let from = m.arg(1);
    let mut more = b"/".to_vec();
    more.extend(read_string(m, from)?);
    append(m, &more)
}

/// The library's own `parse_device_str(const string &, int32_t &type, int32_t &index)`: answered here, because
/// it takes nine tenths of all instructions in `std::regex`. Its weak symbol is exported since 2.3.
pub fn parse_device_string(m: &mut Machine<'_>) -> Answer {
    let (at, kind, index) = (m.arg(0), m.arg(1), m.arg(2));
    let text = String::from_utf8_lossy(&read_string(m, at)?).into_owned();
    let (name, number) = text.split_once(':').unwrap_or((&text, ""));
    let Some(aten) = DeviceKind::from_name(name).aten() else { return Err(Exit::Throw(format!("device {text}"))) };
    let number = number.parse::<i32>().unwrap_or(if name == "cpu" { -1 } else { 0 });
    m.bus.memory.write(kind, 4, aten as u64);
    m.bus.memory.write(index, 4, number as u64);
    Ok(Value::ZERO)
}
