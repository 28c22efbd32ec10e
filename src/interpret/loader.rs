//! Puts a library into the machine's memory, as the system's loader would: segments, relocations, thread-local data.
//! Section headers are not looked at; they may be gone.

use super::imports::{self, LibcxxLayout, Strings};
use super::layout;
use super::machine::Machine;
use super::memory::Mapping;
use crate::error::{Error, Result};
use crate::image::{Architecture, Format, Image, Relocation, RelocationKind, SymbolKind};

/// Beginning of the names of CPU kernels (torch/_inductor/codegen/cpp.py).
const KERNEL: &str = "cpp_";
/// Imports that are left null: the code asks whether they are there.
const ABSENT: &[&str] =
    &["__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize"];

/// Loads a library. Its initialisers still have to run.
///
/// # Errors
/// Those of the tables that the loader needs, relocations and exported symbols, and
/// [`crate::error::ErrorKind::Limit`] for a library that claims more address space than there is.
pub fn load<'a>(machine: &mut Machine<'a>, image: &'a Image<'_>) -> Result<()> {
    map_segments(machine, image)?;
    name_symbols(machine, image)?;
    let thread_local = image.thread_local();
    let mut static_block = 0;
    if let Some(block) = &thread_local {
        let bytes = image.bytes_from(block.address, block.file_size).unwrap_or_default();
        static_block = static_block_offset(image.architecture(), block.memory_size, block.alignment.max(1));
        machine.bus.memory.write_bytes(layout::TLS_BLOCK, bytes);
        machine.bus.memory.write_bytes(layout::THREAD_POINTER.wrapping_add(static_block), bytes);
    }
    // the thread control block begins with its own address
    machine.set_word(layout::THREAD_POINTER, layout::THREAD_POINTER);
    machine.bus.memory.is_loading = true;
    for relocation in image.relocations()? {
        relocate(machine, relocation, static_block);
    }
    machine.bus.memory.is_loading = false;
    machine.host.strings = strings(machine, image);
    machine.host.has_cxx_tensors =
        machine.imports.names().iter().any(|n| n.starts_with("_ZN2at") || n.contains("38alloc_tensors_by_stealing"));
    imports::prepare_variables(machine);
    machine.loaded.initializers = image.init_functions()?.iter().map(|f| bias(*f)).collect();
    if image.format() == Format::Pe {
        // what the system calls when a library is opened: its own address, "process attached", null
        machine.loaded.initializers.extend(image.entry().map(bias));
        machine.loaded.initializer_arguments = [machine.loaded.range.start, 1, 0];
        machine.set_word(layout::THREAD_POINTER + thread_block::SELF, layout::THREAD_POINTER);
        machine.set_word(layout::THREAD_POINTER + thread_block::STACK_BASE, layout::STACK.end);
        machine.set_word(layout::THREAD_POINTER + thread_block::STACK_LIMIT, layout::STACK.start);
    }
    Ok(())
}

/// Offsets in a Windows thread's block (`NT_TIB`).
mod thread_block {
    pub const STACK_BASE: u64 = 0x8;
    pub const STACK_LIMIT: u64 = 0x10;
    pub const SELF: u64 = 0x30;
}

/// How strings lie in memory, by the C++ library that is imported from and by the platform.
fn strings(machine: &Machine<'_>, image: &Image<'_>) -> Strings {
    let imports = |prefix: &str| machine.imports.names().iter().any(|name| name.starts_with(prefix));
    if imports("_ZNSs") {
        Strings::CopyOnWrite
    } else if imports("_ZNSt3__1") || imports("_ZNKSt3__1") {
        let is_apple_arm = image.format() == Format::MachO && image.architecture() == Architecture::Aarch64;
        Strings::Libcxx(if is_apple_arm { LibcxxLayout::Last } else { LibcxxLayout::First })
    } else {
        Strings::Libstdcxx
    }
}

/// An address of the file in the machine.
fn bias(address: u64) -> u64 {
    address.wrapping_add(layout::IMAGE)
}

/// Where the static thread-local block begins, from the thread pointer: it ends there on x86-64 (variant II), and
/// lies behind a control block of 16 bytes on AArch64 (variant I of "ELF Handling For Thread-Local Storage").
fn static_block_offset(architecture: Architecture, size: u64, alignment: u64) -> u64 {
    match architecture {
        Architecture::Aarch64 => 16u64.checked_next_multiple_of(alignment).unwrap_or(16),
        _ => size.checked_next_multiple_of(alignment).unwrap_or(size).wrapping_neg(),
    }
}

fn map_segments<'a>(machine: &mut Machine<'a>, image: &'a Image<'_>) -> Result<()> {
    let mut end = layout::IMAGE;
    for segment in image.segments() {
        let last = segment.address.checked_add(segment.memory_size).filter(|last| *last < layout::IMAGE_BYTES);
        let Some(last) = last else {
            return Err(Error::limit("a segment lies beyond the address space that is modelled"));
        };
        end = end.max(bias(last));
        let there = segment.file_size.min(segment.memory_size);
        let there = there.min(image.region().len().saturating_sub(segment.file_offset));
        let Some(bytes) = image.region().sub(segment.file_offset, there) else { continue };
        machine.bus.memory.map(Mapping {
            address: bias(segment.address),
            memory_size: segment.memory_size,
            bytes,
            is_executable: segment.is_executable,
        });
        if segment.is_executable {
            machine.loaded.executable_bytes = machine.loaded.executable_bytes.saturating_add(there);
        }
    }
    machine.loaded.range = layout::IMAGE..end;
    machine.loaded.file_bytes = image.region().len();
    Ok(())
}

fn name_symbols<'a>(machine: &mut Machine<'a>, image: &'a Image<'_>) -> Result<()> {
    let exports = image.exports()?;
    machine.loaded.exports =
        Some(Box::new(|name| image.export(name).filter(|s| !s.is_absolute).map(|s| bias(s.address))));
    for symbol in exports.iter().filter(|s| !s.is_absolute) {
        let (name, address) = (symbol.name.as_ref(), bias(symbol.address));
        if name.starts_with(KERNEL) {
            machine.loaded.kernels.insert(address, name);
        } else if let Some(handler) = imports::shortcut(name) {
            machine.hook(address, handler);
        }
    }
    // ELF exports every kernel; elsewhere the table for debuggers may be the only one to name them
    if image.format() != Format::Elf {
        for symbol in image.symbols().unwrap_or_default().iter().filter(|s| s.name.starts_with(KERNEL)) {
            machine.loaded.kernels.insert(bias(symbol.address), symbol.name.as_ref());
        }
    }
    machine.loaded.symbols = Some(Box::new(move || {
        let functions = image.symbols().unwrap_or_default().iter().chain(exports);
        functions
            .filter(|s| matches!(s.kind, SymbolKind::Function | SymbolKind::IndirectFunction))
            .map(|s| (bias(s.address), s.name.as_ref()))
            .collect()
    }));
    let at = |name: &str| machine.loaded.export(name);
    if let (Some(start), Some(end)) = (at("_binary_constants_bin_start"), at("_binary_constants_bin_end")) {
        machine.loaded.weights = start..end.max(start);
    }
    Ok(())
}

fn relocate<'a>(machine: &mut Machine<'a>, relocation: &'a Relocation<'_>, static_block: u64) {
    let addend = relocation.addend as u64;
    let symbol = |machine: &mut Machine<'a>| match &relocation.target {
        Some(target) => match target.address {
            Some(address) => bias(address),
            None if target.is_weak && ABSENT.contains(&target.name) => 0,
            // Mach-O looks weak definitions up by name, though there is one here
            None => match machine.loaded.export(target.name) {
                Some(address) => address,
                None => machine.imports.address_of(target.name),
            },
        },
        None => 0,
    };
    let thread_local = relocation.target.as_ref().and_then(|t| t.address).unwrap_or(0);
    let value = match relocation.kind {
        RelocationKind::Relative => bias(addend),
        RelocationKind::Absolute | RelocationKind::GlobalData => symbol(machine).wrapping_add(addend),
        RelocationKind::JumpSlot => symbol(machine),
        // the resolver itself: what it returns would be the plainest implementation anyway
        RelocationKind::IndirectRelative => bias(addend),
        RelocationKind::TlsModule => 1,
        RelocationKind::TlsOffset => thread_local.wrapping_add(addend),
        RelocationKind::TlsPointerOffset => thread_local.wrapping_add(addend).wrapping_add(static_block),
        // a function that gives the offset from the thread pointer, and what it needs to know
        RelocationKind::TlsDescriptor => {
            let offset = thread_local.wrapping_add(addend);
            machine.bus.memory.write(bias(relocation.address).wrapping_add(8), 8, offset);
            machine.imports.address_of(imports::TLS_DESCRIPTOR)
        }
        RelocationKind::Copy | RelocationKind::Other(_) => {
            let name = format!("relocation {:?}", relocation.kind);
            *machine.imports.unknown.entry(name).or_insert(0) += 1;
            return;
        }
    };
    machine.bus.memory.write(bias(relocation.address), usize::from(relocation.size).min(8), value);
}
