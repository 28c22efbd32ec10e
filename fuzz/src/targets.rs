//! One plain function per reader: any bytes in, no panic out. What a reader says about them does not matter here.
//!
//! `tests/fuzz_targets.rs` of the main crate includes this file, so that it keeps building and is replayed by
//! `cargo test`.

use aoti_inspect::explain::{self, Case};
use aoti_inspect::image::{self, Image, isa, weights};
use aoti_inspect::kernel::{FileFormat, KernelFile, cubin as cubins, fatbin as fatbins, ptx as ptxs};
use aoti_inspect::metadata::{call_spec as call_specs, exported_program as programs, expression};
use aoti_inspect::source::Region;
use aoti_inspect::target::{self, cpu::Cpu, gpu::Gpu, size};
use aoti_inspect::{container, interpret as interpreter, wrapper as wrappers, xref};

/// A reader.
pub type Reader = fn(&[u8]);

/// All readers by name.
pub const READERS: &[(&str, Reader)] = &[
    ("zip", zip),
    ("elf", elf),
    ("macho", macho),
    ("pe", pe),
    ("wrapper", wrapper),
    ("call_spec", call_spec),
    ("cubin", cubin),
    ("fatbin", fatbin),
    ("ptx", ptx),
    ("exported_program", exported_program),
    ("spec_notation", spec_notation),
    ("log", log),
    ("interpret", interpret),
];

/// Directory, layout, and every member's first bytes, inflated where they are deflated.
pub fn zip(data: &[u8]) {
    let container = container::open_bytes(Box::new(data.to_vec()), None);
    for member in container.members() {
        let _ = (member.head(64), member.region(), member.describe());
    }
    for model in container.models() {
        let _ = container.library(model);
    }
    let _ = container.archive();
}

/// An ELF file; anything else is passed over, so that the fuzzer stays with the format.
pub fn elf(data: &[u8]) {
    if data.starts_with(b"\x7fELF") {
        tables(data);
    }
}

/// A Mach-O file, thin or universal.
pub fn macho(data: &[u8]) {
    const MAGICS: [[u8; 4]; 4] =
        [[0xcf, 0xfa, 0xed, 0xfe], [0xfe, 0xed, 0xfa, 0xcf], [0xca, 0xfe, 0xba, 0xbe], [0xca, 0xfe, 0xba, 0xbf]];
    if MAGICS.iter().any(|magic| data.starts_with(magic)) {
        tables(data);
    }
}

/// A PE file.
pub fn pe(data: &[u8]) {
    if data.starts_with(b"MZ") {
        tables(data);
    }
}

/// Every table of a library, its instructions, and the check messages in its code.
fn tables(data: &[u8]) {
    let bytes = data.to_vec();
    let _ = image::slices(Region::whole(&bytes));
    let Ok(image) = Image::open(Region::whole(&bytes)) else { return };
    let _ = (image.exports(), image.imports(), image.symbols(), image.relocations(), image.needed());
    let _ = (image.init_functions(), image.comments(), image.thread_local());
    let _ = (weights::weights(&image), weights::appended_alignment(&image));
    let _ = isa::scan(&image);
    let _ = xref::read(&image);
    let _ = image.problems();
}

/// A generated wrapper; a NUL byte ends it and begins its kernel source.
pub fn wrapper(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let source = parts.next().unwrap_or_default();
    let _ = wrappers::read(source, parts.next());
}

/// A call spec, as of inputs and as of outputs.
pub fn call_spec(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = (call_specs::input_leaves(&text), call_specs::output_leaves(&text));
}

/// A cubin.
pub fn cubin(data: &[u8]) {
    let bytes = data.to_vec();
    let _ = cubins::read_cubin(Region::whole(&bytes));
}

/// A fatbin, as a file and as the section of a host library.
pub fn fatbin(data: &[u8]) {
    let bytes = data.to_vec();
    let mut file = KernelFile { format: FileFormat::Fatbin, images: Vec::new(), not_read: Vec::new() };
    let _ = fatbins::read_fatbin(Region::whole(&bytes), &mut file);
    let _ = fatbins::read_host_fatbins(Region::whole(&bytes));
}

/// PTX text.
pub fn ptx(data: &[u8]) {
    let bytes = data.to_vec();
    let _ = ptxs::read_ptx(Region::whole(&bytes));
}

/// The JSON of an exported program.
pub fn exported_program(data: &[u8]) {
    let _ = programs::read(data, "program", "program.json");
}

/// What a person writes: tensors, sizes, GPUs, CPUs, versions; and expressions.
pub fn spec_notation(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = target::parse_tensor(&text);
    let _ = (target::parse_stride(&text), target::parse_dtype(&text), target::parse_device(&text));
    let _ = (size::parse_span(&text), size::parse_size(&text), size::parse_sizes(&text));
    let _ = (target::parse_bytes(&text), Gpu::from_text(&text), Cpu::from_text(&text));
    let _ = (target::TorchVersion::from_text(&text), target::PlatformName::from_text(&text));
    let lines: Vec<String> = text.lines().take(64).map(str::to_owned).collect();
    let texts = target::InputTexts { input: &lines, ..target::InputTexts::default() };
    let _ = target::InputRequests::from_texts(texts);
    let _ = (expression::parse_expression(&text), expression::parse_condition(&text, &|_| None));
}

/// A log, and what is explained from it alone.
pub fn log(data: &[u8]) {
    let Ok(reading) = explain::log::read(data) else { return };
    let load = target::LoadConfig::default();
    let _ = explain::explain(&Case { reading: &reading, artifact: None, places: &[], load: &load, exit: None });
}

/// A library, interpreted.
pub fn interpret(data: &[u8]) {
    let bytes = data.to_vec();
    let Ok(image) = Image::open(Region::whole(&bytes)) else { return };
    let _ = interpreter::recover(&image, interpreter::Options::default());
}
