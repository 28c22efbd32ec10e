//! Just enough of locales for `std::regex` over plain characters: one `ctype<char>` and one `collate<char>`.
//! Layouts: libstdc++, `bits/locale_facets.h`, unchanged since GCC 5.

use super::{Row, first_argument, string, zero};
use crate::interpret::machine::{Answer, Machine};
use crate::interpret::value::Value;

pub const TABLE: &[Row] = &[
    ("_ZSt9use_facetISt5ctypeIcEERKT_RKSt6locale", |m| Ok(Value::new(ctype(m)))),
    ("_ZSt9use_facetINSt7__cxx117collateIcEEERKT_RKSt6locale", |m| Ok(Value::new(collate(m)))),
    ("_ZSt9use_facetISt7collateIcEERKT_RKSt6locale", |m| Ok(Value::new(collate(m)))),
    ("_ZSt16__try_use_facetISt5ctypeIcEEPKT_RKSt6locale", |m| Ok(Value::new(ctype(m)))),
    ("_ZSt9has_facetISt5ctypeIcEEbRKSt6locale", |_| Ok(Value::new(1))),
    ("_ZNSt6localeC1Ev", construct),
    ("_ZNSt6localeC2Ev", construct),
    ("_ZNSt6localeC1ERKS_", construct),
    ("_ZNSt6localeC2ERKS_", construct),
    ("_ZNSt6localeaSERKS_", assign),
    ("_ZNSt6localeD1Ev", zero),
    ("_ZNSt6localeD2Ev", zero),
    ("_ZNKSt6localeeqERKS_", |_| Ok(Value::new(1))),
    ("_ZNSt6locale7classicEv", |m| {
        let at = m.allocate(8);
        let locale = locale(m);
        m.set_word(at, locale);
        Ok(Value::new(at))
    }),
    ("_ZNKSt6locale2id5_M_idEv", |_| Ok(Value::new(1))),
    ("_ZNKSt5ctypeIcE13_M_widen_initEv", zero),
    ("_ZNKSt5ctypeIcE14_M_narrow_initEv", zero),
    ("_ZNKSt5ctypeIcE8do_widenEc", |m| Ok(Value::new(m.arg(1) & 0xff))),
    ("_ZNKSt7__cxx117collateIcE9transformEPKcS3_", transform),
    ("_ZNKSt7collateIcE9transformEPKcS2_", transform),
    (TO_UPPER, |m| Ok(Value::new(u64::from((m.arg(1) as u8).to_ascii_uppercase())))),
    (TO_LOWER, |m| Ok(Value::new(u64::from((m.arg(1) as u8).to_ascii_lowercase())))),
    (SAME, |m| Ok(Value::new(m.arg(1) & 0xff))),
    (RANGE, |m| Ok(m.argument(2))),
    (DESTROY, first_argument),
    (COMPARE, zero),
    (TRANSFORM, transform),
    (HASH, zero),
];

// slots of the virtual tables, as imports of our own
const TO_UPPER: &str = "$ctype toupper";
const TO_LOWER: &str = "$ctype tolower";
const SAME: &str = "$ctype widen";
const RANGE: &str = "$ctype range";
const DESTROY: &str = "$facet destroy";
const COMPARE: &str = "$collate compare";
const TRANSFORM: &str = "$collate transform";
const HASH: &str = "$collate hash";

fn virtual_table(m: &mut Machine<'_>, slots: &[&'static str]) -> u64 {
    let table = m.allocate(8 * slots.len() as u64);
    for (n, name) in slots.iter().enumerate() {
        let address = m.imports.address_of(name);
        m.set_word(table + 8 * n as u64, address);
    }
    table
}

/// The class bits of glibc's `<ctype.h>` for a character.
fn classes(byte: u8) -> u16 {
    let bit = |set: bool, n: u16| if set { 1 << n } else { 0 };
    bit(byte.is_ascii_uppercase(), 8)
        | bit(byte.is_ascii_lowercase(), 9)
        | bit(byte.is_ascii_alphabetic(), 10)
        | bit(byte.is_ascii_digit(), 11)
        | bit(byte.is_ascii_hexdigit(), 12)
        | bit(matches!(byte, b' ' | 9..=13), 13)
        | bit((32..127).contains(&byte), 14)
        | bit(byte.is_ascii_graphic(), 15)
        | bit(matches!(byte, b' ' | 9), 0)
        | bit(byte.is_ascii_control(), 1)
        | bit(byte.is_ascii_punctuation(), 2)
        | bit(byte.is_ascii_alphanumeric(), 3)
}

/// `std::ctype<char>`: virtual table at 0, class table at 48, then the tables of `widen` and `narrow`.
fn ctype(m: &mut Machine<'_>) -> u64 {
    if let Some(known) = m.host.ctype {
        return known;
    }
    let paused = m.bus.memory.pause_log();
    const CLASS_TABLE: u64 = 48;
    const WIDEN_READY: u64 = 56;
    const WIDEN: u64 = 57;
    const NARROW: u64 = 313;
    const NARROW_READY: u64 = 569;
    let facet = m.allocate(1024);
    m.host.ctype = Some(facet);
    let slots = [DESTROY, DESTROY, TO_UPPER, RANGE, TO_LOWER, RANGE, SAME, RANGE, SAME, RANGE];
    let table = virtual_table(m, &slots);
    let class_table = m.allocate(512);
    m.set_word(facet, table);
    m.set_word(facet + CLASS_TABLE, class_table);
    m.bus.memory.write(facet + WIDEN_READY, 1, 1);
    m.bus.memory.write(facet + NARROW_READY, 1, 1);
    for byte in 0..=255u8 {
        let n = u64::from(byte);
        m.bus.memory.write(class_table + 2 * n, 2, u64::from(classes(byte)));
        m.bus.memory.write(facet + WIDEN + n, 1, n);
        m.bus.memory.write(facet + NARROW + n, 1, n);
    }
    m.bus.memory.resume_log(paused);
    facet
}

fn collate(m: &mut Machine<'_>) -> u64 {
    if let Some(known) = m.host.collate {
        return known;
    }
    let paused = m.bus.memory.pause_log();
    let facet = m.allocate(64);
    m.host.collate = Some(facet);
    let table = virtual_table(m, &[DESTROY, DESTROY, COMPARE, TRANSFORM, HASH]);
    m.set_word(facet, table);
    m.bus.memory.resume_log(paused);
    facet
}

/// The class bits of Darwin's `<runetype.h>` for a character.
fn darwin_classes(byte: u8) -> u32 {
    let bit = |set: bool, n: u32| if set { n } else { 0 };
    bit(byte.is_ascii_alphabetic(), 0x100)
        | bit(byte.is_ascii_control(), 0x200)
        | bit(byte.is_ascii_digit(), 0x400)
        | bit(byte.is_ascii_graphic(), 0x800)
        | bit(byte.is_ascii_lowercase(), 0x1000)
        | bit(byte.is_ascii_punctuation(), 0x2000)
        | bit(matches!(byte, b' ' | 9..=13), 0x4000)
        | bit(byte.is_ascii_uppercase(), 0x8000)
        | bit(byte.is_ascii_hexdigit(), 0x1_0000)
        | bit(matches!(byte, b' ' | 9), 0x2_0000)
        | bit((32..127).contains(&byte), 0x4_0000)
}

/// `std::ctype<char>` of libc++ (`<__locale>`): virtual table at 0, class table at 16.
pub fn ctype_of_libcxx(m: &mut Machine<'_>) -> u64 {
    if let Some(known) = m.host.ctype {
        return known;
    }
    let facet = m.allocate(64);
    m.host.ctype = Some(facet);
    let slots = [DESTROY, DESTROY, DESTROY, TO_UPPER, RANGE, TO_LOWER, RANGE, SAME, RANGE, SAME, RANGE];
    let table = virtual_table(m, &slots);
    let class_table = m.allocate(1024);
    m.set_word(facet, table);
    m.set_word(facet + 16, class_table);
    for byte in 0..=255u8 {
        let at = class_table + 4 * u64::from(byte);
        m.bus.memory.write(at, 4, u64::from(darwin_classes(byte)));
    }
    facet
}

/// `std::collate<char>` of libc++.
pub fn collate_of_libcxx(m: &mut Machine<'_>) -> u64 {
    if let Some(known) = m.host.collate {
        return known;
    }
    let facet = m.allocate(64);
    m.host.collate = Some(facet);
    let table = virtual_table(m, &[DESTROY, DESTROY, DESTROY, COMPARE, TRANSFORM, HASH]);
    m.set_word(facet, table);
    facet
}

/// The text itself, as a new string.
fn transform(m: &mut Machine<'_>) -> Answer {
    let to = m.cpu.result_pointer();
    let (start, end) = (m.arg_after_result(1), m.arg_after_result(2));
    let text = m.bytes(start, end.wrapping_sub(start))?;
    string::new_string(m, to, &text);
    Ok(Value::new(to))
}

/// `locale::_Impl`: facets at 8, their number at 16. Every facet is the `ctype`.
fn locale(m: &mut Machine<'_>) -> u64 {
    if let Some(known) = m.host.locale {
        return known;
    }
    let paused = m.bus.memory.pause_log();
    const FACETS: u64 = 128;
    let inner = m.allocate(64);
    m.host.locale = Some(inner);
    let facets = m.allocate(8 * FACETS);
    let facet = ctype(m);
    m.set_word(inner + 8, facets);
    m.set_word(inner + 16, FACETS);
    for n in 0..FACETS {
        m.set_word(facets + 8 * n, facet);
    }
    m.bus.memory.resume_log(paused);
    inner
}

fn construct(m: &mut Machine<'_>) -> Answer {
    let at = m.arg(0);
    let locale = locale(m);
    m.set_word(at, locale);
    Ok(Value::ZERO)
}

fn assign(m: &mut Machine<'_>) -> Answer {
    let (at, from) = (m.arg(0), m.arg(1));
    let locale = m.word(from);
    m.set_word(at, locale);
    Ok(Value::new(at))
}

/// Variables of the C++ library that code reads directly: virtual tables of streams, `std::cerr`.
pub fn prepare_variables(m: &mut Machine<'_>) {
    for number in 0..m.imports.names().len() {
        let Some(name) = m.imports.names().get(number).copied() else { break };
        let address = m.imports.address_of(name);
        if name.starts_with("_ZTT") {
            // virtual table tables: pointers to tables of zeros, with room for offsets before them
            let table = m.allocate(256) + 64;
            for n in 0..16 {
                m.set_word(address + 8 * n, table);
            }
        } else if matches!(name, "_ZSt4cerr" | "_ZSt4cout") {
            let table = m.allocate(256) + 64;
            m.set_word(address, table);
            let facet = ctype(m);
            m.set_word(address + 0xf0, facet);
        } else if name == "__libc_single_threaded" {
            m.bus.memory.write(address, 1, 1);
        }
    }
}
