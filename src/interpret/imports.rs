//! Imports: a name leads to a handler, through one table for each family.
//!
//! To add an import, copy a row of the family's table below `imports/`. A handler reads its arguments with
//! `machine.arg(n)`, changes memory, and returns the integer result. Names that no table has are answered with 0 and
//! reported: facts that may depend on them become unknown.

mod cow_string;
mod cuda;
mod files;
mod libc;
mod libcxx;
mod libstdcxx;
mod locale;
mod shims;
mod string;
mod tensor_impl;
mod windows;

use super::address_map::AddressMap;
use super::cpu::Bus;
use super::layout;
use super::machine::{Answer, Exit, Handler, Machine};
use super::tensors::TensorId;
use super::value::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

pub use cuda::{GpuFunction, ModuleSource};
pub use libc::TLS_DESCRIPTOR;
pub use libcxx::Layout as LibcxxLayout;
pub use locale::prepare_variables;
pub use string::{Strings, parse_device_string};
pub use tensor_impl::make as make_tensor_impl;

/// A row of a family's table.
pub type Row = (&'static str, Handler);

/// Families by exact name.
const TABLES: &[&[Row]] = &[
    libc::TABLE,
    files::TABLE,
    libstdcxx::TABLE,
    libcxx::TABLE,
    locale::TABLE,
    string::TABLE,
    cow_string::TABLE,
    shims::TABLE,
    cuda::TABLE,
    tensor_impl::TABLE,
    windows::TABLE,
];
/// Families by the beginning of the name, tried in this order after the exact names.
const PREFIXES: &[&[Row]] = &[libstdcxx::PREFIXES, tensor_impl::PREFIXES, shims::PREFIXES];

fn find(name: &str) -> Option<Handler> {
    static INDEX: OnceLock<AddressMap<&'static str, Handler>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index = AddressMap::default();
        index.reserve(TABLES.iter().map(|table| table.len()).sum());
        index.extend(TABLES.iter().flat_map(|table| table.iter().copied()));
        index
    });
    index
        .get(name)
        .copied()
        .or_else(|| PREFIXES.iter().flat_map(|t| t.iter()).find(|row| name.starts_with(row.0)).map(|row| row.1))
}

/// True for functions that do not come back.
pub fn gives_up(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "abort",
        "exit",
        "_exit",
        "__assert_fail",
        "__stack_chk_fail",
        "__cxa_throw",
        "__cxa_rethrow",
        "__cxa_bad_cast",
        "__cxa_pure_virtual",
        "_Unwind_RaiseException",
        "_Unwind_Resume",
        "_ZSt9terminatev",
    ];
    // `std::__throw_length_error` and the like, of either C++ library
    NAMES.contains(&name)
        || name.starts_with("_ZSt") && name.contains("__throw_")
        || name.starts_with("_ZNSt3__1") && name.contains("__throw_")
}

/// The handler for a function that a library defines itself, although the C++ library has it: members of
/// `std::string`, whose layout is known, and hashing. Answering them saves most of the instructions of messages.
pub fn shortcut(name: &str) -> Option<Handler> {
    const SHORTCUTS: &[&str] = &["_ZNSt7__cxx1112basic_string", "_ZNKSt7__cxx1112basic_string", "_ZSt11_Hash_bytes"];
    if SHORTCUTS.iter().any(|prefix| name.starts_with(prefix)) { find(name) } else { None }
}

/// The imports of a library, each with an address of its own.
#[derive(Default)]
pub struct Imports<'a> {
    names: Vec<&'a str>,
    handlers: Vec<Option<Handler>>,
    /// with a hash that a file cannot foresee: names are as many as it likes
    index: HashMap<&'a str, u32>,
    /// imports that were called and that no table has, with the number of calls
    pub unknown: BTreeMap<String, u64>,
}

impl<'a> Imports<'a> {
    /// Address that stands for an import; the same name has the same address.
    pub fn address_of(&mut self, name: &'a str) -> u64 {
        let number = match self.index.get(name) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.push(name);
                self.handlers.push(None);
                self.index.insert(name, number);
                number
            }
        };
        layout::IMPORTS.start + u64::from(number) * layout::IMPORT_BYTES
    }
    fn number_at(address: u64) -> Option<usize> {
        let distance = address.checked_sub(layout::IMPORTS.start)?;
        if distance % layout::IMPORT_BYTES != 0 {
            return None;
        }
        usize::try_from(distance / layout::IMPORT_BYTES).ok()
    }
    /// The import that starts at an address.
    pub fn name_at(&self, address: u64) -> Option<&'a str> {
        self.names.get(Self::number_at(address)?).copied()
    }
    /// True when the library imports a name.
    pub fn contains(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }
    /// All names.
    pub fn names(&self) -> &[&'a str] {
        &self.names
    }
    /// The handler of the import that starts at an address.
    pub fn handler(&mut self, address: u64) -> Option<Handler> {
        let number = Self::number_at(address)?;
        let (slot, name) = (self.handlers.get_mut(number)?, self.names.get(number)?);
        Some(*slot.get_or_insert_with(|| find(name).unwrap_or(unknown)))
    }
}

/// Answers what no table has.
fn unknown(machine: &mut Machine<'_>) -> Answer {
    let name = machine.import_name().to_owned();
    *machine.imports.unknown.entry(name).or_insert(0) += 1;
    Ok(Value::ZERO)
}

/// Answers with 0: nothing to do in a machine with one thread, no files and endless memory.
fn zero(_: &mut Machine<'_>) -> Answer {
    Ok(Value::ZERO)
}

/// Answers with the first argument.
fn first_argument(machine: &mut Machine<'_>) -> Answer {
    Ok(machine.argument(0))
}

/// The library gives up.
fn throw(machine: &mut Machine<'_>) -> Answer {
    Err(Exit::Throw(machine.import_name().to_owned()))
}

/// A copy of weights or other bytes that was not carried out, only noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// first byte written
    pub to: u64,
    /// first byte read
    pub from: u64,
    /// bytes
    pub len: u64,
}

/// State behind the imports.
#[derive(Default)]
pub struct Host {
    /// copies of blocks out of the library, its mapped file or device memory
    pub copies: Vec<Copied>,
    /// GPU functions by number
    pub functions: Vec<GpuFunction>,
    /// what the last loaded GPU module came from
    module: cuda::ModuleSource,
    device_bytes: u64,
    objects: u64,
    file_position: u64,
    /// the environment variable of the input checks was read
    pub asked_for_checks: bool,
    /// parts of its own file that the library mapped: address, bytes, offset
    pub mapped: Vec<(u64, u64, u64)>,
    ctype: Option<u64>,
    collate: Option<u64>,
    locale: Option<u64>,
    /// how strings lie in memory
    pub strings: Strings,
    /// tensors are C++ objects (torch up to 2.5)
    pub has_cxx_tensors: bool,
    impls: AddressMap<u64, TensorId>,
    impl_of: AddressMap<u64, u64>,
    type_meta: Option<u64>,
    /// values of one-element tensors are guessed the other way round
    pub other_items: bool,
    /// constants made so far
    pub constants: usize,
    /// tensor and data address of each constant, in table order
    pub blobs: Vec<(TensorId, u64)>,
    /// operators of which the answer was made up
    pub unmodelled: BTreeMap<String, u64>,
}

impl Host {
    /// The tensor behind a handle that is a pointer to a C++ tensor.
    pub fn impl_at_handle(&self, bus: &mut Bus<'_>, handle: u64) -> Option<TensorId> {
        let pointer = bus.memory.read(handle, 8);
        self.impls.get(&pointer).copied()
    }
}

impl Machine<'_> {
    /// An address that stands for an object of the driver or of libtorch that nobody looks into.
    fn new_object(&mut self) -> u64 {
        self.host.objects = self.host.objects.wrapping_add(1);
        layout::OPAQUE.start + self.host.objects % (1 << 32) * 16
    }
    /// Copies bytes with their shadows; blocks out of the weights are only noted.
    fn copy_bytes(&mut self, to: u64, from: u64, len: u64) -> Result<(), Exit> {
        let is_weights = self.loaded.weights.contains(&from) || layout::MAPPED_FILE.contains(&from);
        let is_backed = |address: u64| !layout::DEVICE.contains(&address) && !layout::TENSOR_DATA.contains(&address);
        if is_weights || layout::DEVICE.contains(&to) || self.is_in_image(from) && len >= LARGE_COPY {
            self.host.copies.push(Copied { to, from, len });
        }
        // a stripped library does not tell where its weights are
        let is_large_data = self.is_in_image(from) && len > crate::limits::COPY_BYTES;
        if is_weights || is_large_data || !is_backed(to) || !is_backed(from) {
            return self.charge(16);
        }
        self.reasonable(len)?;
        self.charge(len)?;
        self.bus.memory.copy(&mut self.bus.expressions, to, from, usize::try_from(len).unwrap_or(0));
        Ok(())
    }
}

/// Blocks of the library's own data that are worth a note when copied.
const LARGE_COPY: u64 = 64;
