//! Kernels: what the source declares, loads and launches (format reference, 5.8 to 5.10).

use super::blocks::{Block, Blocks};
use super::expression;
use super::literal;
use super::text::{Line, between, call_arguments, number_at_start, split_arguments, word_at_end, word_at_start};
use super::triton;
use crate::limits;
use crate::model::{Evidence, Expr, Kernel, KernelKind, Launch, Witness};
use std::collections::HashMap;

/// A `call_<kernel>` function: its own grid, in terms of its parameters.
#[derive(Debug, Default, Clone)]
struct Helper {
    parameters: Vec<String>,
    grid: [Option<Expr>; 3],
}

/// All kernels of a wrapper, in order of first mention.
#[derive(Debug, Default)]
pub struct Kernels {
    list: Vec<Kernel>,
    by_name: HashMap<String, usize>,
    helpers: HashMap<String, Helper>,
    /// what there is more of than is kept
    pub cut: Option<&'static str>,
    /// members of the kernels class are ROCm's
    pub is_rocm: bool,
    /// device that the kernels class or the Triton text names, with its line
    pub device: Option<(String, usize)>,
    /// `cc` of the compile device, as written
    pub compute_capability: Option<String>,
    /// threads of a warp of the compile device
    pub warp_size: Option<u32>,
    /// features of the launch helpers that date the compiler
    pub forms: Vec<(&'static str, usize)>,
}

/// Types of the members of `AOTInductorModelKernels`, and whose they are.
const MEMBERS: [(&str, KernelKind, &str); 5] = [
    ("CUfunction ", KernelKind::Triton, "cuda"),
    ("hipFunction_t ", KernelKind::Triton, "cuda"),
    ("std::unique_ptr<sycl::kernel> ", KernelKind::Triton, "xpu"),
    ("MTLFunction_t ", KernelKind::Metal, "mps"),
    ("void* ", KernelKind::Cpp, "cpu"),
];

impl Kernels {
    /// The kernels, with threads per block filled in.
    pub fn into_list(self) -> Vec<Kernel> {
        let warp_size = self.warp_size.or((!self.is_rocm).then_some(32));
        let mut list = self.list;
        for kernel in &mut list {
            let threads = kernel.num_warps.zip(warp_size).and_then(|(warps, size)| warps.checked_mul(size));
            kernel.launches.iter_mut().for_each(|launch| launch.threads = threads);
        }
        list
    }

    fn entry(&mut self, name: &str, kind: KernelKind, line: usize) -> Option<&mut Kernel> {
        let index = match self.by_name.get(name) {
            Some(index) => *index,
            None if self.list.len() >= limits::KERNELS => {
                self.cut = Some("kernels");
                return None;
            }
            None => {
                let mut kernel = Kernel::new(name, kind);
                kernel.evidence.push(Evidence::new(Witness::Source, "named in the wrapper").at_line(line));
                self.list.push(kernel);
                let index = self.list.len().saturating_sub(1);
                self.by_name.insert(name.to_owned(), index);
                index
            }
        };
        self.list.get_mut(index)
    }

    /// Members of the kernels class.
    pub fn read_class(&mut self, blocks: &Blocks, block: &Block) {
        for line in blocks.lines(block) {
            let statement = line.text.trim();
            for (prefix, kind, device) in MEMBERS {
                let Some(name) = statement.strip_prefix(prefix).map(word_at_start) else { continue };
                // Triton on CPU (2.13+): a function and its launcher
                let (name, kind) = match name.strip_suffix("_kernel_fn") {
                    Some(kernel) if kind == KernelKind::Cpp => (kernel, KernelKind::Triton),
                    _ => (name, kind),
                };
                self.entry(name, kind, line.number);
                self.is_rocm |= prefix.starts_with("hip");
                if device != "cpu" {
                    self.device.get_or_insert_with(|| (device.to_owned(), line.number));
                }
            }
        }
    }

    /// Declaration or body of a CPU kernel.
    pub fn read_cpu(&mut self, blocks: &Blocks, block: &Block, name: &str) {
        let mut header = String::new();
        let mut assertions = Vec::new();
        for line in blocks.lines(block) {
            if !header.contains(')') {
                header.push_str(line.text);
            } else if line.text.contains("CHECK(")
                && let Some(text) = literal::last_in(line.text)
                && !assertions.contains(&text)
            {
                assertions.push(text);
            }
        }
        let Some(kernel) = self.entry(name, KernelKind::Cpp, block.first_line) else { return };
        if kernel.parameters.is_empty() {
            let list = between(&header, "(", ")").unwrap_or_default();
            kernel.parameters = split_arguments(list).into_iter().map(|p| word_at_end(p).to_owned()).collect();
        }
        for text in assertions {
            if !kernel.assertions.contains(&text) {
                kernel.assertions.push(text);
            }
        }
    }

    /// A `call_<kernel>` function.
    pub fn read_helper(&mut self, blocks: &Blocks, block: &Block, name: &str) {
        let mut helper = Helper::default();
        let mut locals: HashMap<String, Expr> = HashMap::new();
        let mut in_parameters = true;
        let mut triton = triton::Reader::default();
        let mut wants: Vec<Line> = Vec::new();
        for line in blocks.lines(block) {
            let statement = line.text.trim();
            if triton.line(statement) {
                continue;
            }
            if in_parameters {
                in_parameters = !statement.starts_with(')');
                if line.number == block.first_line {
                    self.form(
                        if line.text.contains("noinline") { "noinline launch helper" } else { "launch helper" },
                        &line,
                    );
                } else if in_parameters && helper.parameters.len() >= limits::TENSORS {
                    self.cut = Some("parameters");
                } else if in_parameters {
                    let parameter = statement.split_once(" = ").map_or(statement, |(p, _)| p);
                    helper.parameters.push(word_at_end(parameter.trim_end_matches(',')).to_owned());
                }
            } else if let Some((target, value)) = statement.strip_prefix("uint32_t ").and_then(|s| s.split_once(" = "))
            {
                if let Some(value) = expression::parse(value.trim_end_matches(';')) {
                    locals.insert(target.to_owned(), value.substitute(&|s| locals.get(s).cloned()));
                }
            } else if statement.contains("global_scratch") || statement.contains("profile_scratch") {
                let is_profile = statement.contains("profile_scratch");
                self.form(if is_profile { "profile_scratch" } else { "global_scratch" }, &line);
            } else if statement.contains("= load") || statement.contains("launchKernel(") {
                wants.push(line);
            }
        }
        if let Some(end) = helper.parameters.iter().position(|p| p == "device_idx_") {
            helper.parameters.truncate(end);
        }
        for (slot, axis) in helper.grid.iter_mut().zip(["grid_0", "grid_1", "grid_2"]) {
            *slot = locals.remove(axis);
        }
        self.device_of(&triton, block.first_line);
        if let Some(kernel) = self.entry(name, KernelKind::Triton, block.first_line) {
            kernel.parameters.clone_from(&helper.parameters);
            kernel.assertions = triton.assertions;
        }
        self.helpers.insert(name.to_owned(), helper);
        for line in wants {
            self.load(&line);
            self.launch_numbers(&line);
        }
    }

    fn device_of(&mut self, triton: &triton::Reader, line: usize) {
        if let Some(device) = &triton.device {
            self.device.get_or_insert_with(|| (device.clone(), line));
            self.compute_capability = self.compute_capability.take().or_else(|| triton.compute_capability.clone());
            self.warp_size = self.warp_size.or(triton.warp_size);
        }
    }

    fn form(&mut self, form: &'static str, line: &Line) {
        if self.forms.iter().all(|(known, _)| *known != form) {
            self.forms.push((form, line.number));
        }
    }

    /// A `kernels.k = loadKernel(…)` statement: file, symbol, dynamic shared memory.
    pub fn load(&mut self, line: &Line) {
        let Some((target, call)) = line.text.split_once(" = load") else { return };
        let Some((_, name)) = target.rsplit_once('.') else { return };
        let Some(arguments) = call_arguments(call, "(") else { return };
        if call.contains("loaded_modules_") {
            self.form("loaded_modules_", line);
        }
        // Triton on CPU: the launcher is no kernel of its own
        let name = name.trim().trim_end_matches("_kernel_fn");
        if name.ends_with("_launcher_fn") {
            return;
        }
        let mut texts = arguments.iter().filter(|a| a.starts_with('"')).filter_map(|a| literal::first_in(a));
        let is_embedded = arguments.first().is_some_and(|a| !a.starts_with('"'));
        if is_embedded {
            self.form("embedded kernel", line);
        }
        let path = if is_embedded { None } else { texts.next() };
        let symbol = texts.next();
        let shared = arguments.iter().skip(1).find_map(|a| number_at_start(a)).map(|(n, _)| n);
        let Some(kernel) = self.entry(name, KernelKind::Triton, line.number) else { return };
        if let Some(path) = path {
            let base = path.rsplit(['/', '\\']).next().unwrap_or(&path).to_owned();
            kernel.evidence.push(Evidence::new(Witness::Source, format!("loads {base}")).at_line(line.number));
            kernel.build_path = (base != path).then_some(path);
            kernel.file = Some(base);
        } else if is_embedded && arguments.first().is_some_and(|a| a.ends_with("_start")) {
            kernel.present = Some(true);
            kernel.evidence.push(Evidence::new(Witness::Source, "embedded in the library").at_line(line.number));
        }
        kernel.symbol = symbol;
        kernel.shared_bytes = shared.and_then(|n| u64::try_from(n).ok());
    }

    /// Warps and shared memory of a `launchKernel(…)` statement; returns its kernel's name and its arguments.
    pub fn launch_numbers<'a>(&mut self, line: &Line<'a>) -> Option<(String, Vec<&'a str>)> {
        let arguments = call_arguments(line.text, "launchKernel(")?;
        let (_, name) = arguments.first()?.rsplit_once('.')?;
        let name = name.split_once(".get").map_or(name, |(n, _)| n).trim_end_matches("get()");
        if arguments.len() > 8 {
            self.form("dependent launch argument", line);
        }
        let number = |position: usize| arguments.get(position).and_then(|a| number_at_start(a)).map(|(n, _)| n);
        let (warps, shared) = (number(4), number(5));
        let kernel = self.entry(name, KernelKind::Triton, line.number)?;
        kernel.num_warps = warps.and_then(|n| u32::try_from(n).ok()).or(kernel.num_warps);
        kernel.shared_bytes = kernel.shared_bytes.or(shared.and_then(|n| u64::try_from(n).ok()));
        Some((name.to_owned(), arguments))
    }

    /// Adds a launch site of a kernel, with the names of the source operators above it.
    pub fn launched(&mut self, name: &str, kind: KernelKind, launch: Launch, ops: &[String]) {
        let line = launch.line.unwrap_or_default();
        if let Some(kernel) = self.entry(name, kind, line) {
            for op in ops {
                if !kernel.source_ops.contains(op) {
                    kernel.source_ops.push(op.clone());
                }
            }
            if kernel.launches.len() < limits::KERNELS {
                kernel.launches.push(launch);
            } else {
                self.cut = Some("launches");
            }
        }
    }

    /// True when `name` is a declared CPU kernel.
    pub fn is_cpu(&self, name: &str) -> bool {
        self.by_name.get(name).and_then(|i| self.list.get(*i)).is_some_and(|k| k.kind == KernelKind::Cpp)
    }

    /// How many of a helper's arguments are the kernel's, and its grid with these put in.
    pub fn helper_grid(
        &self,
        name: &str,
        argument: &dyn Fn(usize) -> Option<Expr>,
    ) -> Option<(usize, [Option<Expr>; 3])> {
        let helper = self.helpers.get(name)?;
        let replace = |s: &str| helper.parameters.iter().position(|p| p == s).and_then(argument);
        let known = |s: &str| helper.parameters.iter().position(|p| p == s).and_then(argument).is_some();
        let grid = helper
            .grid
            .clone()
            .map(|axis| axis.filter(|e| e.symbols().into_iter().all(known)).map(|e| e.substitute(&replace)));
        Some((helper.parameters.len(), grid))
    }

    /// Sets the symbol of a Metal kernel.
    pub fn metal_symbol(&mut self, blocks: &Blocks, block: &Block, name: &str) {
        for line in blocks.lines(block) {
            if line.text.contains("aoti_torch_mps_get_kernel_function(") {
                let symbol = literal::first_in(line.text);
                if let Some(kernel) = self.entry(name, KernelKind::Metal, line.number) {
                    kernel.symbol = symbol;
                    kernel.present = Some(true);
                }
                return;
            }
        }
    }

    /// True when `name` is a Metal kernel.
    pub fn is_metal(&self, name: &str) -> bool {
        self.by_name.get(name).and_then(|i| self.list.get(*i)).is_some_and(|k| k.kind == KernelKind::Metal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_a_border() {
        let of = |before: usize| {
            let list = vec![Kernel::new("k", KernelKind::Cpp); before];
            let mut kernels = Kernels { list, ..Kernels::default() };
            kernels.entry("one more", KernelKind::Cpp, 1);
            (kernels.list.len(), kernels.cut)
        };
        assert_eq!(of(limits::KERNELS - 1), (limits::KERNELS, None));
        assert_eq!(of(limits::KERNELS), (limits::KERNELS, Some("kernels")));
    }

    #[test]
    fn launches_of_a_kernel_have_a_border() {
        let of = |count: usize| {
            let mut kernels = Kernels::default();
            for _ in 0..count {
                let launch = Launch { grid: [None, None, None], threads: None, arguments: Vec::new(), line: None };
                kernels.launched("k", KernelKind::Cpp, launch, &[]);
            }
            (kernels.list[0].launches.len(), kernels.cut)
        };
        assert_eq!(of(limits::KERNELS), (limits::KERNELS, None));
        assert_eq!(of(limits::KERNELS + 1), (limits::KERNELS, Some("launches")));
    }

    #[test]
    fn parameters_of_a_helper_have_a_border() {
        let of = |count: usize| {
            let source = format!("static void call_k(\n{}) {{\n}}\n", "    int n,\n".repeat(count));
            let (blocks, mut kernels) = (Blocks::split(&source).unwrap(), Kernels::default());
            kernels.read_helper(&blocks, &blocks.list[0], "k");
            (kernels.list[0].parameters.len(), kernels.cut)
        };
        assert_eq!(of(limits::TENSORS), (limits::TENSORS, None));
        assert_eq!(of(limits::TENSORS + 1), (limits::TENSORS, Some("parameters")));
    }
}
