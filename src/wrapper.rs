//! Generated C++ wrapper source: the model's constructor, its input checks, `run_impl` and the build commands.
//!
//! The source is a claim: a library can have been built from another one. It is machine-made, one statement per line,
//! and is read by line patterns, once, from front to back (format reference, section 5).

mod blocks;
pub mod checks;
pub mod comments;
pub mod constructor;
mod dating;
pub mod expression;
mod interface;
mod kernels;
pub mod literal;
pub mod run;
mod text;
mod triton;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Dated, Kernel};
use blocks::{Blocks, Kind};

/// What a wrapper source says.
#[derive(Debug)]
pub struct WrapperSource {
    /// counts, names, constants, call spec
    pub constructor: constructor::Constructor,
    /// input checks and their switch
    pub checks: checks::InputChecks,
    /// bindings, outputs, calls
    pub run: run::Run,
    /// kernels with their launch sites
    pub kernels: Vec<Kernel>,
    /// build commands, each once
    pub commands: Vec<comments::BuildCommand>,
    /// features that narrow the torch release
    pub dating: Vec<Dated>,
    /// word for the device in the first include (`aoti_include/cuda.h`, 2.7+)
    pub included_device: Option<String>,
    /// word for the device of kernels class or Triton text, and its line
    pub kernels_device: Option<(String, usize)>,
    /// kernels are ROCm's, although their device is called `cuda`
    pub is_rocm: bool,
    /// compute capability of the compile device, as Triton's text has it
    pub compute_capability: Option<String>,
    /// `_const_run_impl` does something: constants are folded at run time
    pub folds_constants: bool,
    /// forms of the launch helpers, for dating
    kernel_forms: Vec<(&'static str, usize)>,
}

/// Reads a wrapper, and with it the kernel source where that is a file of its own (2.7+).
///
/// # Errors
/// [`crate::error::ErrorKind::NotAoti`] when there is no model constructor in it, `Damaged` when the constructor has no
/// counts, `Limit` for a source longer than [`limits::SOURCE_BYTES`].
pub fn read(source: &[u8], kernel_source: Option<&[u8]>) -> Result<WrapperSource> {
    let longest = source.len().max(kernel_source.map_or(0, <[u8]>::len));
    if longest as u64 > limits::SOURCE_BYTES {
        return Err(Error::limit(format!("{longest} bytes of source, more than {}", limits::SOURCE_BYTES)));
    }
    let text = String::from_utf8_lossy(source);
    let blocks = Blocks::split(&text);
    let constructor = blocks.list.iter().rfind(|b| b.kind == Kind::Constructor).ok_or_else(|| {
        Error::new(crate::error::ErrorKind::NotAoti, "no constructor of an AOTInductor model in this source")
    })?;
    let constructor = constructor::read(&blocks, constructor)?;

    let mut kernels = kernels::Kernels::default();
    let kernel_text = kernel_source.map(String::from_utf8_lossy);
    if let Some(text) = &kernel_text {
        declare_kernels(&Blocks::split(text), &mut kernels);
    }
    declare_kernels(&blocks, &mut kernels);

    let mut checks = checks::InputChecks::default();
    let mut commands = Vec::new();
    let mut reader = run::Reader::new(&mut kernels);
    let mut folds_constants = false;
    for block in &blocks.list {
        match &block.kind {
            Kind::Checks => checks.read_checks(&blocks, block),
            Kind::Gate => checks.read_gate(&blocks, block),
            Kind::Run => reader.read(&blocks, block),
            Kind::BuildCommand => comments::read(&blocks, block, &mut commands),
            _ => {}
        }
    }
    let run = reader.finish();
    // kernels of the folding part run before everything else, on constants alone
    let mut folding = run::Reader::new(&mut kernels);
    for block in blocks.list.iter().filter(|b| b.kind == Kind::ConstRun) {
        folding.read(&blocks, block);
        folds_constants |= blocks.lines(block).any(|line| line.text.contains("output_handles["));
    }
    let _ = folding.finish();

    let included = memchr::memmem::find(blocks.head().as_bytes(), b"/aoti_include/")
        .and_then(|at| blocks.head().get(at..))
        .or_else(|| text.split_once("/aoti_include/").map(|(_, rest)| rest));
    let included_device =
        included.map(|rest| text::word_at_start(rest.trim_start_matches("/aoti_include/")).to_owned());
    let mut wrapper = WrapperSource {
        constructor,
        checks,
        run,
        commands,
        dating: Vec::new(),
        included_device,
        kernels_device: kernels.device.clone(),
        is_rocm: kernels.is_rocm,
        compute_capability: kernels.compute_capability.clone(),
        folds_constants,
        kernel_forms: kernels.forms.clone(),
        kernels: kernels.into_list(),
    };
    wrapper.dating = dating::features(&wrapper, blocks.generated());
    Ok(wrapper)
}

/// Everything that names a kernel, before the calls are read: helpers may stand behind them.
fn declare_kernels(blocks: &Blocks, kernels: &mut kernels::Kernels) {
    for block in &blocks.list {
        match &block.kind {
            Kind::KernelsClass => kernels.read_class(blocks, block),
            Kind::CpuKernel(name) => kernels.read_cpu(blocks, block, name),
            Kind::LaunchHelper(name) => kernels.read_helper(blocks, block, name),
            Kind::MetalHandle(name) => kernels.metal_symbol(blocks, block, name),
            _ => {}
        }
    }
}

impl WrapperSource {
    /// True when the symbols of sizes are `s0`, `s1`, … in sequence, as up to 2.7 (two at least, or the proof is thin).
    fn symbols_are_counted(&self) -> bool {
        let mut numbers: Vec<u32> = self
            .run
            .positions
            .values()
            .filter_map(|(expression, _)| match expression {
                crate::model::Expr::Symbol(name) => name.strip_prefix('s')?.parse().ok(),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len() > 1 && (0u32..).zip(&numbers).all(|(i, n)| i == *n)
    }
}
