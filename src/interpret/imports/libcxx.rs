//! libc++: strings in its two layouts, and what Mach-O libraries import of the rest. Streams are inlined into the
//! library; their texts are not collected, because every `sentry` says that the stream is not ready.

use super::{Row, libc, libstdcxx, locale, string, throw, zero};
use crate::interpret::machine::{Answer, Exit, Machine};
use crate::interpret::value::Value;

/// `std::basic_string` in mangled names.
macro_rules! member {
    ($name:literal) => {
        concat!("_ZNSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE", $name)
    };
}
macro_rules! const_member {
    ($name:literal) => {
        concat!("_ZNKSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE", $name)
    };
}

pub const TABLE: &[Row] = &[
    (member!("6__initEPKcm"), string::construct_bytes),
    (member!("6__initEmc"), string::construct_filled),
    (member!("25__init_copy_ctor_externalEPKcm"), string::construct_bytes),
    (member!("C1ERKS5_"), string::construct_copy),
    (member!("C2ERKS5_"), string::construct_copy),
    (member!("D1Ev"), zero),
    (member!("D2Ev"), zero),
    (member!("aSERKS5_"), string::assign),
    (member!("aSEc"), |m| {
        let byte = m.arg(1) as u8;
        string::edit(m, |_, _| Ok(vec![byte]))
    }),
    (member!("6assignEPKc"), string::assign_literal),
    (member!("6assignEPKcm"), string::assign_bytes),
    (member!("17__assign_externalEPKcm"), string::assign_bytes),
    (member!("17__assign_externalEPKc"), string::assign_literal),
    (member!("17__assign_no_aliasILb0EEERS5_PKcm"), string::assign_bytes),
    (member!("17__assign_no_aliasILb1EEERS5_PKcm"), string::assign_bytes),
    (member!("6appendEPKc"), string::append_literal),
    (member!("6appendEPKcm"), string::append_bytes),
    (member!("6appendEmc"), append_filled),
    (member!("9push_backEc"), string::push_back),
    (member!("6insertEmPKc"), string::insert_literal),
    (member!("6insertEmPKcm"), insert_bytes),
    (member!("7replaceEmmPKcm"), string::replace),
    (member!("7replaceEmmPKc"), replace_with_literal),
    (member!("5eraseEmm"), erase),
    (member!("6resizeEmc"), string::resize),
    (member!("7reserveEm"), reserve),
    (const_member!("7compareEPKc"), string::compare_literal),
    (const_member!("7compareEmmPKcm"), compare_part),
    (const_member!("4findEPKcmm"), string::find),
    (const_member!("4findEcm"), string::find_character),
    (const_member!("5rfindEPKcmm"), string::find_last),
    (const_member!("5rfindEcm"), |m| {
        let (at, byte, last) = (m.arg(0), m.arg(1) as u8, m.arg(2));
        let text = string::read_string(m, at)?;
        let end = usize::try_from(last.saturating_add(1)).unwrap_or(usize::MAX).min(text.len());
        Ok(string::position(text.get(..end).and_then(|head| memchr::memrchr(byte, head))))
    }),
    ("_ZNSt3__1plIcNS_11char_traitsIcEENS_9allocatorIcEEEENS_12basic_stringIT_T0_T1_EEPKS6_RKS9_", concatenate),
    ("_ZNSt3__19to_stringEi", |m| number_to_string(m, 4)),
    ("_ZNSt3__19to_stringEj", |m| number_to_string(m, 8)),
    ("_ZNSt3__19to_stringEl", |m| number_to_string(m, 8)),
    ("_ZNSt3__19to_stringEm", |m| number_to_string(m, 8)),
    ("_ZNSt3__19to_stringEx", |m| number_to_string(m, 8)),
    ("_ZNSt3__19to_stringEy", |m| number_to_string(m, 8)),
    ("_ZNSt3__14stoiERKNS_12basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEEEPmi", string_to_number),
    ("_ZNSt3__14stolERKNS_12basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEEEPmi", string_to_number),
    (
        "_ZNSt13runtime_errorC1ERKNSt3__112basic_stringIcNS0_11char_traitsIcEENS0_9allocatorIcEEEE",
        libstdcxx::exception_of_string,
    ),
    (
        "_ZNSt13runtime_errorC2ERKNSt3__112basic_stringIcNS0_11char_traitsIcEENS0_9allocatorIcEEEE",
        libstdcxx::exception_of_string,
    ),
    (
        "_ZNSt11logic_errorC2ERKNSt3__112basic_stringIcNS0_11char_traitsIcEENS0_9allocatorIcEEEE",
        libstdcxx::exception_of_string,
    ),
    ("_ZNSt20bad_array_new_lengthC1Ev", zero),
    ("_ZNSt20bad_array_new_lengthD1Ev", zero),
    ("_ZNSt12length_errorD1Ev", zero),
    ("_ZNSt12out_of_rangeD1Ev", zero),
    ("_ZNSt3__111regex_errorC1ENS_15regex_constants10error_typeE", zero),
    ("_ZNSt3__111regex_errorD1Ev", zero),
    ("_ZNSt3__120__throw_system_errorEiPKc", throw),
    ("_ZNSt3__125__throw_bad_function_callEv", throw),
    ("_ZNSt3__112__next_primeEm", next_prime),
    ("_ZNSt3__113__hash_memoryEPKvm", |m| libstdcxx::hash_with_seed(m, 0)),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEE6sentryC1ERS3_", |m| {
        let sentry = m.arg(0);
        m.bus.memory.write(sentry, 1, 0);
        Ok(Value::ZERO)
    }),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEE6sentryD1Ev", zero),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEi", libstdcxx::write_number),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEj", libstdcxx::write_number),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEl", libstdcxx::write_number),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEm", libstdcxx::write_number),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEx", libstdcxx::write_number),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEy", libstdcxx::write_number),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEb", libstdcxx::write_number),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEPKv", super::first_argument),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEd", super::first_argument),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEElsEf", super::first_argument),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEE3putEc", super::first_argument),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEE5flushEv", super::first_argument),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEE5writeEPKcl", super::first_argument),
    ("_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEED2Ev", zero),
    ("_ZNSt3__113basic_istreamIcNS_11char_traitsIcEEED2Ev", zero),
    ("_ZNSt3__114basic_iostreamIcNS_11char_traitsIcEEED2Ev", zero),
    ("_ZNSt3__115basic_streambufIcNS_11char_traitsIcEEEC2Ev", zero),
    ("_ZNSt3__115basic_streambufIcNS_11char_traitsIcEEED2Ev", zero),
    ("_ZNSt3__19basic_iosIcNS_11char_traitsIcEEED2Ev", zero),
    ("_ZNSt3__18ios_base4initEPv", zero),
    ("_ZNSt3__18ios_base5clearEj", zero),
    ("_ZNSt3__18ios_base33__set_badbit_and_consider_rethrowEv", zero),
    ("_ZNKSt3__18ios_base6getlocEv", zero),
    ("_ZNSt3__118condition_variable4waitERNS_11unique_lockINS_5mutexEEE", zero),
    ("_ZNSt3__118condition_variable10notify_oneEv", zero),
    ("_ZNSt3__118condition_variable10notify_allEv", zero),
    ("_ZNSt3__118condition_variableD1Ev", zero),
    ("_ZNSt3__119__shared_mutex_baseC1Ev", zero),
    ("_ZNSt3__119__shared_mutex_base4lockEv", zero),
    ("_ZNSt3__119__shared_mutex_base6unlockEv", zero),
    ("_ZNSt3__119__shared_mutex_base8try_lockEv", |_| Ok(Value::new(1))),
    ("_ZNSt3__119__shared_mutex_base11lock_sharedEv", zero),
    ("_ZNSt3__119__shared_mutex_base13unlock_sharedEv", zero),
    ("_ZNSt3__119__shared_mutex_base15try_lock_sharedEv", |_| Ok(Value::new(1))),
    ("_ZNSt3__15mutex4lockEv", zero),
    ("_ZNSt3__15mutex6unlockEv", zero),
    ("_ZNSt3__15mutex8try_lockEv", |_| Ok(Value::new(1))),
    ("_ZNSt3__15mutexD1Ev", zero),
    ("_ZNSt3__119__shared_weak_count14__release_weakEv", zero),
    ("_ZNSt3__119__shared_weak_countD2Ev", zero),
    ("_ZNKSt3__119__shared_weak_count13__get_deleterERKSt9type_info", zero),
    ("_ZNSt3__16chrono12steady_clock3nowEv", zero),
    ("_ZNSt3__16chrono12system_clock3nowEv", zero),
    ("_ZNSt3__16localeC1Ev", zero),
    ("_ZNSt3__16localeC1ERKS0_", zero),
    ("_ZNSt3__16localeaSERKS0_", super::first_argument),
    ("_ZNSt3__16localeD1Ev", zero),
    ("_ZNKSt3__16locale4nameEv", |m| {
        let to = m.cpu.result_pointer();
        string::new_string(m, to, b"C");
        Ok(Value::new(to))
    }),
    ("_ZNKSt3__16locale9use_facetERNS0_2idE", use_facet),
    ("_ZNKSt3__16locale9has_facetERNS0_2idE", |_| Ok(Value::new(1))),
    ("_ZNSt3__115__get_classnameEPKcb", zero),
    ("_ZNSt3__120__get_collation_nameEPKc", |m| {
        let to = m.cpu.result_pointer();
        string::new_string(m, to, b"");
        Ok(Value::new(to))
    }),
    ("_tlv_bootstrap", thread_variable),
    ("_tlv_atexit", zero),
    ("bzero", |m| {
        let (to, len) = (m.arg(0), m.arg(1));
        m.reasonable(len)?;
        m.charge(len)?;
        m.bus.memory.fill(to, 0, len as usize);
        Ok(Value::ZERO)
    }),
    ("_ZdlPvm", zero),
    ("_Znwm", libc::allocate),
];

/// Bytes of a string object.
const SIZE: u64 = 24;
/// Longest text inside the object.
const BUFFER_CAPACITY: usize = 22;

/// Which end of the object tells the length (`<string>`, `_LIBCPP_ABI_ALTERNATE_STRING_LAYOUT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// the first byte: twice the length, or odd and then {capacity, length, pointer}
    First,
    /// Apple on Arm, the last byte: the length, or above 127 and then {pointer, length, capacity}
    Last,
}

/// Makes a string in place, or gives one another text.
pub fn new_string(m: &mut Machine<'_>, layout: Layout, at: u64, text: &[u8]) {
    m.bus.memory.fill(at, 0, SIZE as usize);
    let len = text.len() as u64;
    if text.len() <= BUFFER_CAPACITY {
        match layout {
            Layout::First => {
                m.bus.memory.write(at, 1, len << 1);
                m.bus.memory.write_bytes(at.wrapping_add(1), text);
            }
            Layout::Last => {
                m.bus.memory.write_bytes(at, text);
                m.bus.memory.write(at.wrapping_add(SIZE - 1), 1, len);
            }
        }
        return;
    }
    let capacity = (len + 16) & !15;
    let data = m.allocate(capacity);
    m.bus.memory.write_bytes(data, text);
    m.bus.memory.write(data.wrapping_add(len), 1, 0);
    let words = match layout {
        Layout::First => [capacity | 1, len, data],
        Layout::Last => [data, len, capacity | 1 << 63],
    };
    for (n, word) in words.into_iter().enumerate() {
        m.set_word(at.wrapping_add(8 * n as u64), word);
    }
}

/// The text of a string.
///
/// # Errors
/// [`Exit`] for a text beyond the cap.
pub fn read_string(m: &mut Machine<'_>, layout: Layout, at: u64) -> Result<Vec<u8>, Exit> {
    let first = m.bus.load(at, 1).bits;
    let last = m.bus.load(at.wrapping_add(SIZE - 1), 1).bits;
    let (data, len) = match layout {
        Layout::First if first & 1 == 0 => (at.wrapping_add(1), first >> 1),
        Layout::First => (m.word(at.wrapping_add(16)), m.word(at.wrapping_add(8))),
        Layout::Last if last & 0x80 == 0 => (at, last),
        Layout::Last => (m.word(at), m.word(at.wrapping_add(8))),
    };
    m.bytes(data, len)
}

fn append_filled(m: &mut Machine<'_>) -> Answer {
    let (count, byte) = (m.arg(1), m.arg(2));
    let more = string::repeated(m, byte, count)?;
    string::append(m, &more)
}

fn insert_bytes(m: &mut Machine<'_>) -> Answer {
    let (position, from, len) = (m.arg(1), m.arg(2), m.arg(3));
    let more = m.bytes(from, len)?;
    string::edit(m, |_, text| Ok(string::spliced(&text, position, 0, &more)))
}

fn replace_with_literal(m: &mut Machine<'_>) -> Answer {
    let (position, removed, from) = (m.arg(1), m.arg(2), m.arg(3));
    let more = m.text(from)?;
    string::edit(m, |_, text| Ok(string::spliced(&text, position, removed, &more)))
}

fn erase(m: &mut Machine<'_>) -> Answer {
    let (position, removed) = (m.arg(1), m.arg(2));
    string::edit(m, |_, text| Ok(string::spliced(&text, position, removed, b"")))
}

/// Makes the text long, in a buffer of that size: callers write into it.
fn reserve(m: &mut Machine<'_>) -> Answer {
    let (at, wanted) = (m.arg(0), m.arg(1));
    if wanted > 1 << 30 {
        return Err(Exit::Throw("length_error".to_owned()));
    }
    let Some(layout) = m.host.strings.libcxx() else { return Ok(Value::ZERO) };
    let text = string::read_string(m, at)?;
    if wanted <= text.len().max(BUFFER_CAPACITY) as u64 {
        return Ok(Value::ZERO);
    }
    let capacity = (wanted + 16) & !15;
    let data = m.allocate(capacity);
    m.bus.memory.write_bytes(data, &text);
    m.bus.memory.write(data.wrapping_add(text.len() as u64), 1, 0);
    let words = match layout {
        Layout::First => [capacity | 1, text.len() as u64, data],
        Layout::Last => [data, text.len() as u64, capacity | 1 << 63],
    };
    for (n, word) in words.into_iter().enumerate() {
        m.set_word(at.wrapping_add(8 * n as u64), word);
    }
    Ok(Value::ZERO)
}

fn compare_part(m: &mut Machine<'_>) -> Answer {
    let (at, position, len, from, more) = (m.arg(0), m.arg(1), m.arg(2), m.arg(3), m.arg(4));
    let (text, other) = (string::read_string(m, at)?, m.bytes(from, more)?);
    let start = usize::try_from(position).unwrap_or(usize::MAX);
    let Some(rest) = text.get(start..) else { return Err(Exit::Throw("out_of_range".to_owned())) };
    let part = rest.get(..usize::try_from(len).unwrap_or(usize::MAX)).unwrap_or(rest);
    Ok(string::order(part, &other))
}

/// `const char * + const string &`, returned in memory.
fn concatenate(m: &mut Machine<'_>) -> Answer {
    let to = m.cpu.result_pointer();
    let (left, right) = (m.arg_after_result(0), m.arg_after_result(1));
    let mut text = m.text(left)?;
    text.extend(string::read_string(m, right)?);
    string::new_string(m, to, &text);
    Ok(Value::new(to))
}

fn number_to_string(m: &mut Machine<'_>, len: usize) -> Answer {
    let to = m.cpu.result_pointer();
    let number = crate::interpret::value::sign_extend(m.arg_after_result(0), len);
    string::new_string(m, to, number.to_string().as_bytes());
    Ok(Value::new(to))
}

fn string_to_number(m: &mut Machine<'_>) -> Answer {
    let at = m.arg(0);
    let text = string::read_string(m, at)?;
    match String::from_utf8_lossy(&text).trim().parse::<i64>() {
        Ok(number) => Ok(Value::new(number as u64)),
        Err(_) => throw(m),
    }
}

/// Bucket counts: any growing sequence of odd numbers will do, because all hashes come from here.
fn next_prime(m: &mut Machine<'_>) -> Answer {
    Ok(Value::new(m.arg(0).max(2) | 1))
}

/// The facet that an id stands for; regular expressions ask for `ctype` and `collate`.
fn use_facet(m: &mut Machine<'_>) -> Answer {
    let id = m.arg(1);
    let is_collate = m.imports.name_at(id).is_some_and(|name| name.contains("collate"));
    Ok(Value::new(if is_collate { locale::collate_of_libcxx(m) } else { locale::ctype_of_libcxx(m) }))
}

/// Gets a descriptor {function, key, offset} where results are, and answers with the variable's address.
fn thread_variable(m: &mut Machine<'_>) -> Answer {
    let descriptor = m.cpu.result().bits;
    let offset = m.word(descriptor.wrapping_add(16));
    Ok(Value::new(crate::interpret::layout::TLS_BLOCK.wrapping_add(offset)))
}
