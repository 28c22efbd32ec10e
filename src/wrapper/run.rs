//! `run_impl`: which symbol is which dim, what each tensor looks like, what is called in which order
//! (format reference, 5.5 to 5.7).

mod facts;
mod launches;

pub use facts::{Assertion, Layout, Position, Run, Storage, Tensor};
use launches::tensor_name;

use super::blocks::{Block, Blocks};
use super::constructor::{device, dtype};
use super::expression;
use super::kernels::Kernels;
use super::literal;
use super::text::{
    Line, between, call_arguments, declaration, index_after, split_arguments, until_closed, word_at_start,
};
use crate::limits;
use crate::model::{DType, Device, Expr, OperatorCall};
use std::collections::HashMap;

/// Reads the statements one by one.
pub struct Reader<'a, 'k> {
    run: Run,
    kernels: &'k mut Kernels,
    tensors: HashMap<&'a str, Tensor>,
    locals: HashMap<&'a str, Expr>,
    arrays: HashMap<&'a str, Vec<Option<Expr>>>,
    /// variables that stand for one size of an input, `arg1_1_size_0`
    sizes: HashMap<&'a str, Position>,
    /// pointers and packed argument lists of launches before 2.7
    pointers: HashMap<&'a str, &'a str>,
    lists: HashMap<&'a str, Vec<&'a str>>,
    grids: HashMap<&'a str, [Option<Expr>; 3]>,
    /// operators of the comment above
    source_ops: Vec<String>,
    /// Metal kernel whose arguments are being set
    metal: Vec<String>,
}

/// Shims that are no operators: memory, queries, guards.
const NOT_OPERATORS: [&str; 24] = [
    "empty_strided",
    "get_",
    "new_",
    "delete_",
    "item_",
    "assign_",
    "create_",
    "clone",
    "device_type",
    "dtype_",
    "grad_mode",
    "check_inf",
    "as_strided",
    "_reinterpret",
    "_alloc_from_pool",
    "warn",
    "record_",
    "is_contiguous",
    "mps_set",
    "mps_start",
    "mps_dispatch",
    "mps_run",
    "proxy_executor",
    "cpu_wrapped",
];

/// Gate of the assertions of 2.13 and newer.
const GATE: &str = "if (_check_aoti_runtime_check_inputs_env()) { ";

impl<'a, 'k> Reader<'a, 'k> {
    /// A reader that adds launches to `kernels`.
    pub fn new(kernels: &'k mut Kernels) -> Self {
        Self {
            run: Run::default(),
            kernels,
            tensors: HashMap::new(),
            locals: HashMap::new(),
            arrays: HashMap::new(),
            sizes: HashMap::new(),
            pointers: HashMap::new(),
            lists: HashMap::new(),
            grids: HashMap::new(),
            source_ops: Vec::new(),
            metal: Vec::new(),
        }
    }

    /// What was read.
    pub fn finish(self) -> Run {
        self.run
    }

    /// Reads one function.
    pub fn read(&mut self, blocks: &Blocks<'a>, block: &Block) {
        for line in blocks.lines(block) {
            let statement = line.text.trim();
            let statement = statement.strip_prefix(GATE).unwrap_or(statement);
            match statement.as_bytes() {
                [] => {}
                [b'/', b'/', ..] => self.comment(statement, line.number),
                _ => self.statement(statement, &line),
            }
        }
    }

    fn comment(&mut self, text: &str, line: usize) {
        if !text.contains("Source Nodes: [") {
            return;
        }
        if !text.contains("Topologically") && !text.contains("Unsorted") {
            self.form("unsorted source nodes", line);
        }
        let list =
            text.split_once("Original ATen: [").and_then(|(_, rest)| rest.split_once(']')).map_or("", |(l, _)| l);
        self.source_ops = list.split(", ").filter(|op| !op.is_empty()).map(str::to_owned).collect();
    }

    fn form(&mut self, form: &'static str, line: usize) {
        if self.run.forms.iter().all(|(known, _)| *known != form) {
            self.run.forms.push((form, line));
        }
    }

    fn statement(&mut self, statement: &'a str, line: &Line<'a>) {
        if let Some(rest) = statement.strip_prefix("assert_size_stride(") {
            self.assert_layout(rest, line.number);
        } else if statement.starts_with("assert_alignment(") {
            self.form("assert_alignment", line.number);
        } else if statement.starts_with("output_handles[") {
            self.output(statement, line.number);
        } else if let Some(rest) = statement.strip_prefix("AOTI_TORCH_ERROR_CODE_CHECK(") {
            self.shim(rest, line.number);
        } else if statement.starts_with("aoti_torch_") {
            self.shim(statement, line.number);
        } else if let Some(rest) = statement.strip_prefix("RAIIAtenTensorHandle ")
            && let Some((name, rest)) = rest.split_once('(')
            && !name.contains('=')
        {
            self.alias(name, rest.split_once(')').map_or(rest, |(inner, _)| inner));
        } else if statement.starts_with("launchKernel(") {
            self.inline_launch(line);
        } else if statement.starts_with("AOTI_TORCH_WARN(\"Input ") {
            self.form("compiled as aligned", line.number);
            if let Some(index) = between(statement, "\"Input ", " was compiled").and_then(|n| n.parse().ok()) {
                self.run.aligned.insert(index);
            }
        } else if statement.starts_with("AOTI_TORCH_CHECK(") || statement.contains("throw std::runtime_error(\"") {
            self.assertion(statement, line.number);
        } else if statement.contains(" = load") && statement.starts_with("kernels") {
            self.kernels.load(line);
        } else if !self.kernel_call(statement, line) {
            if let Some((name, value)) = declaration(statement) {
                self.declare(name, value, statement, line);
            } else if statement.contains("StreamGuard ") {
                self.guard(statement, line.number);
            } else if statement.starts_with("at::") {
                self.operator(word_path(statement), statement);
            }
        }
    }

    fn declare(&mut self, name: &'a str, value: &'a str, statement: &'a str, line: &Line<'a>) {
        if let Some(index) = index_after(value, "std::move(inputs") {
            self.tensors.insert(name, Tensor::of(Storage::Input(index)));
        } else if let Some((_, rest)) =
            value.split_once("constants_->at(").or_else(|| value.split_once("constants_.at("))
        {
            let index = rest.split_once(')').and_then(|(n, _)| n.parse().ok());
            self.tensors.extend(index.map(|i| (name, Tensor::of(Storage::Constant(i)))));
        } else if let Some(inner) = value.strip_prefix('{') {
            let (inner, _) = until_closed(inner).unwrap_or((inner, ""));
            if statement.starts_with("void*") {
                self.lists
                    .insert(name, split_arguments(inner).into_iter().map(|a| a.trim_start_matches('&')).collect());
            } else {
                // an array of that name in a block before this one is not meant
                match self.sizes_of(inner) {
                    Some(sizes) => self.arrays.insert(name, sizes),
                    None => self.arrays.remove(name),
                };
            }
        } else if let Some(position) = self.position(value) {
            self.bind(name, position, line.number);
        } else if let Some(inner) = value.strip_prefix("Grid(") {
            let pieces = until_closed(inner).map(|(inner, _)| split_arguments(inner)).unwrap_or_default();
            let axis = |i: usize| pieces.get(i).and_then(|p| self.expression(p));
            self.grids.insert(name, [axis(0), axis(1), axis(2)]);
        } else if let Some(tensor) = self.tensor_value(value, line.number) {
            self.tensors.insert(name, tensor);
        } else if value.contains(".data_ptr()") || value.contains("get_data_ptr_wrapper(") {
            self.pointers.insert(name, tensor_name(value));
        } else if value.contains(".size(") || value.contains(".sizes()[") || value.contains("item()") {
            self.run.data_symbols.insert(name.to_owned());
        } else if value.contains("(handle)") || value.contains("[&](") {
            self.metal.clear();
        } else if value.starts_with("at::_ops::") || value.starts_with("at::") {
            self.operator(word_path(value), value);
            self.tensors.insert(name, Tensor::of(Storage::Own));
        } else if let Some(value) = expression::parse(value) {
            self.local(name, &value, line.number);
        } else if name.starts_with("buf") {
            self.tensors.insert(name, Tensor::of(Storage::Own));
        }
    }

    /// `int64_t ps0 = s0*s1;`, an alias `int64_t s4 = s0;`, or a symbol solved out of one size.
    fn local(&mut self, name: &'a str, value: &Expr, line: usize) {
        let position = value.symbols().into_iter().find_map(|s| self.sizes.get(s).map(|p| (s.to_owned(), *p)));
        if let Some((size, position)) = position {
            let resolved = value.substitute(&|s| if s == size { None } else { self.locals.get(s).cloned() });
            if let Some(dim) = expression::solve(&resolved, &size, &Expr::symbol(name)) {
                self.run.positions.insert(position, (dim, line));
                return;
            }
        }
        let value = value.substitute(&|s| self.locals.get(s).cloned());
        // `auto u0 = u0_raw;`
        if let Expr::Symbol(raw) = &value
            && raw.strip_suffix("_raw").or_else(|| raw.strip_suffix("_tmp")) == Some(name)
        {
            return;
        }
        if value != Expr::symbol(name) {
            self.locals.insert(name, value);
        }
    }

    /// `arg0_1_size[1]` or `arg0_1_stride[1]` of an input.
    fn position(&self, value: &str) -> Option<Position> {
        let word = word_at_start(value);
        let (tensor, is_stride) = match word.strip_suffix("_size") {
            Some(tensor) => (tensor, false),
            None => (word.strip_suffix("_stride")?, true),
        };
        let dim = index_after(value, word).filter(|d| *d < limits::RANK)?;
        match self.tensors.get(tensor)?.storage {
            Storage::Input(input) => Some(Position { input, is_stride, dim }),
            _ => None,
        }
    }

    fn bind(&mut self, name: &'a str, position: Position, line: usize) {
        // `int64_t arg1_1_size_0 = arg1_1_size[0];` only prepares a solution
        if name.ends_with(&format!("_{}_{}", if position.is_stride { "stride" } else { "size" }, position.dim)) {
            self.sizes.insert(name, position);
        } else {
            self.run.positions.insert(position, (Expr::symbol(name), line));
        }
    }

    fn expression(&self, text: &str) -> Option<Expr> {
        expression::parse(text).map(|e| e.substitute(&|s| self.locals.get(s).cloned()))
    }

    /// `None` for more sizes than a tensor can have.
    fn sizes_of(&self, list: &str) -> Option<Vec<Option<Expr>>> {
        let sizes = split_arguments(list);
        (sizes.len() <= limits::RANK).then(|| sizes.into_iter().map(|size| self.expression(size)).collect())
    }

    /// Sizes or strides by array name or written out.
    fn list(&self, text: &str) -> Option<Vec<Option<Expr>>> {
        match text.trim().strip_prefix('{') {
            Some(inner) => self.sizes_of(until_closed(inner)?.0),
            None => self.arrays.get(word_at_start(text.trim())).cloned(),
        }
    }

    fn layout(&self, rank: Option<&str>, sizes: &str, strides: &str) -> Option<Layout> {
        if rank == Some("0") {
            return Some(Layout { shape: Vec::new(), stride: Vec::new() });
        }
        Some(Layout { shape: self.list(sizes)?, stride: self.list(strides)? })
    }

    /// A tensor that the right side of a declaration makes out of others.
    fn tensor_value(&mut self, value: &'a str, line: usize) -> Option<Tensor> {
        let value = value.strip_prefix("wrap_with_raii_handle_if_needed(").unwrap_or(value);
        if let Some(arguments) = call_arguments(value, "reinterpret_tensor_wrapper(") {
            return self.view(&arguments, 1);
        }
        if let Some(arguments) = call_arguments(value, "reinterpret_tensor(") {
            return self.view(&arguments, 0);
        }
        if let Some(at) = value.find("empty_strided") {
            let arguments = call_arguments(value.get(at..)?, "(")?;
            let [sizes, strides, options @ ..] = arguments.as_slice() else { return None };
            let options = options.join(", ");
            // `at::TensorOptions(at::kCPU).dtype(at::kFloat)`, or the type alone
            let element = options.split_once(".dtype(").map_or(options.as_str(), |(_, d)| d);
            let device = device(options.split_once(".dtype(").map_or("", |(d, _)| d)).or_else(|| {
                let word = if value.contains("empty_strided_cuda") { "at::kcuda" } else { "at::kcpu" };
                device(word)
            });
            self.device_seen(device.as_ref(), line);
            let element = dtype(element.split([',', ')']).next().unwrap_or_default());
            let layout = self.layout(None, sizes, strides);
            return Some(Tensor { layout, dtype: element, device, ..Tensor::of(Storage::Own) });
        }
        if value.starts_with("scalar_to_tensor") {
            let inner = between(value, "(", ")").and_then(|e| self.expression(e));
            let layout = Some(Layout { shape: Vec::new(), stride: Vec::new() });
            let element = inner.map(|_| DType::INT64);
            return Some(Tensor { layout, dtype: element, device: device("at::kcpu"), ..Tensor::of(Storage::Own) });
        }
        let inner = ["std::move(", "RAIIAtenTensorHandle(", ""].iter().find_map(|p| value.strip_prefix(p))?;
        let name = word_at_start(inner);
        let rest = inner.get(name.len()..)?;
        // a whole name, not the start of an expression
        if !rest.trim_matches([')', ' ']).is_empty() {
            return None;
        }
        self.tensors.get(name).cloned()
    }

    /// `skip`: 1 where the rank stands between tensor and sizes.
    fn view(&self, arguments: &[&str], skip: usize) -> Option<Tensor> {
        let base = self.tensors.get(tensor_name(arguments.first()?)).cloned();
        let sizes = arguments.get(skip.checked_add(1)?)?;
        let strides = arguments.get(skip.checked_add(2)?)?;
        let rank = if skip == 1 { arguments.get(1).copied() } else { None };
        Some(Tensor { layout: self.layout(rank, sizes, strides), ..base.unwrap_or(Tensor::of(Storage::Own)) })
    }

    fn alias(&mut self, name: &'a str, of: &'a str) {
        let of = of.trim().trim_start_matches("std::move(");
        if let Some(tensor) = self.tensors.get(word_at_start(of)).cloned() {
            self.tensors.insert(name, tensor);
        } else {
            self.tensors.insert(name, Tensor::of(Storage::Own));
        }
    }

    /// `arg1_1, {2L*s0, 4L}, {4L, 1L}, "input"); }`
    fn assert_layout(&mut self, rest: &'a str, line: usize) {
        let Some((inner, _)) = until_closed(rest) else { return };
        let arguments = split_arguments(inner);
        let [name, sizes, strides, what, more @ ..] = arguments.as_slice() else { return };
        let Some(layout) = self.layout(None, sizes, strides) else { return };
        self.form("assert_size_stride", line);
        if !more.is_empty() {
            self.form("assert_size_stride with dtype", line);
        }
        match self.tensors.get_mut(name) {
            Some(Tensor { storage: Storage::Input(index), .. }) if *what == "\"input\"" => {
                self.run.asserted.insert(*index, (layout, line));
            }
            Some(tensor) => {
                tensor.layout = Some(layout);
                tensor.dtype = more.first().and_then(|d| dtype(d)).or(tensor.dtype.take());
            }
            None => {
                let element = more.first().and_then(|d| dtype(d));
                self.tensors.insert(name, Tensor { layout: Some(layout), dtype: element, ..Tensor::of(Storage::Own) });
            }
        }
    }

    /// `output_handles[0] = buf1.release();` and its older forms.
    fn output(&mut self, statement: &'a str, line: usize) {
        let Some(index) = index_after(statement, "output_handles") else { return };
        let Some((_, value)) = statement.split_once(" = ") else { return };
        let other = index_after(value, "output_handles").and_then(|i| self.run.outputs.get(&i).cloned());
        let tensor = other.map(|(tensor, _)| tensor).or_else(|| {
            let inner = value.split_once("new at::Tensor(").map_or(value, |(_, inner)| inner);
            let inner = inner.trim_start_matches("std::move(");
            if inner.contains("reinterpret_tensor") {
                return self.tensor_value(inner, line);
            }
            let mut tensor = self.tensors.get(word_at_start(inner)).cloned()?;
            tensor.is_copy |= inner.contains(".clone()");
            Some(tensor)
        });
        self.give_out(index, tensor, line);
    }

    fn give_out(&mut self, index: usize, tensor: Option<Tensor>, line: usize) {
        // a model with more outputs is refused
        if index < limits::TENSORS {
            // the first branch of `if constexpr` is the one for handles
            self.run.outputs.entry(index).or_insert((tensor.unwrap_or(Tensor::of(Storage::Own)), line));
        }
    }

    fn device_seen(&mut self, device: Option<&Device>, line: usize) {
        if let Some(device) = device
            && self.run.devices.iter().all(|(known, _)| known != device)
        {
            self.run.devices.push((device.clone(), line));
        }
    }

    fn guard(&mut self, statement: &str, line: usize) {
        const GUARDS: [(&str, &str); 5] = [
            ("AOTICudaStreamGuard", "at::kCUDA"),
            ("CUDAStreamGuard", "at::kCUDA"),
            ("HIPStreamGuard", "at::kCUDA"),
            ("AOTIXpuStreamGuard", "at::kXPU"),
            ("XPUStreamGuard", "at::kXPU"),
        ];
        let found = GUARDS.iter().find(|(name, _)| statement.contains(name)).and_then(|(_, d)| device(d));
        self.device_seen(found.as_ref(), line);
    }

    /// A call of the C interface.
    fn shim(&mut self, call: &'a str, line: usize) {
        let name = word_at_start(call);
        let Some(short) = name.strip_prefix("aoti_torch_") else { return };
        let arguments = call.get(name.len()..).and_then(|rest| call_arguments(rest, "(")).unwrap_or_default();
        let out = arguments.last().and_then(|a| a.strip_prefix('&')).unwrap_or_default();
        if short.starts_with("empty_strided") {
            let [rank, sizes, strides, element, place, ..] = arguments.as_slice() else { return };
            let place = device(place);
            self.device_seen(place.as_ref(), line);
            let layout = self.layout(Some(rank), sizes, strides);
            let tensor = Tensor { layout, dtype: dtype(element), device: place, ..Tensor::of(Storage::Own) };
            self.tensors.insert(out, tensor);
        } else if short == "_reinterpret_tensor" {
            if let Some(tensor) = self.view(&arguments, 1) {
                self.tensors.insert(out, tensor);
            }
        } else if short == "_alloc_from_pool" {
            let [_, _, element, rank, sizes, strides, ..] = arguments.as_slice() else { return };
            let layout = self.layout(Some(rank), sizes, strides);
            self.tensors.insert(out, Tensor { layout, dtype: dtype(element), ..Tensor::of(Storage::Own) });
        } else if let Some(kind) = short.strip_prefix("item_") {
            self.item(kind, &arguments, out, line);
        } else if let Some(index) = index_after(out, "output_handles") {
            // clone, new_tensor_handle: the tensor is the first argument
            let of = arguments.first().copied().unwrap_or_default();
            let other = index_after(of, "output_handles").and_then(|i| self.run.outputs.get(&i).cloned()).map(|o| o.0);
            let mut tensor = other.or_else(|| self.tensors.get(tensor_name(of)).cloned());
            if let Some(tensor) = &mut tensor {
                tensor.is_copy |= short.starts_with("clone");
            }
            if short.starts_with("clone") || short == "new_tensor_handle" {
                self.give_out(index, tensor, line);
            }
        } else if short.starts_with("clone") || short == "new_tensor_handle" {
            if let Some(mut tensor) = arguments.first().and_then(|a| self.tensors.get(tensor_name(a))).cloned() {
                tensor.is_copy |= short.starts_with("clone");
                self.tensors.insert(out, tensor);
            }
        } else if short == "proxy_executor_call_function" {
            if let Some(number) = arguments.get(1).and_then(|n| n.parse::<u32>().ok()) {
                self.run.custom_ops.push(number);
                self.operator(&format!("custom op #{number}"), arguments.get(3).copied().unwrap_or_default());
            }
        } else if short.starts_with("mps_set_arg") {
            self.metal.extend(arguments.last().map(|a| self.argument(a)));
        } else if short == "mps_run_command_block" {
            self.metal_launch(arguments.first().copied().unwrap_or_default(), line);
        } else if NOT_OPERATORS.iter().all(|prefix| !short.starts_with(prefix)) && !short.contains("_guard") {
            self.operator(name, call);
        }
    }

    fn item(&mut self, kind: &str, arguments: &[&'a str], out: &'a str, line: usize) {
        let symbol = out.trim_end_matches("_raw").trim_end_matches("_tmp");
        let Some(of) = arguments.first() else { return };
        let input = index_after(of, "inputs").or_else(|| match self.tensors.get(word_at_start(of))?.storage {
            Storage::Input(index) => Some(index),
            _ => None,
        });
        match input.filter(|i| *i < limits::TENSORS) {
            Some(input) => {
                self.run.scalars.insert(input, (symbol.to_owned(), DType::from_name(kind), line));
            }
            None => {
                self.run.data_symbols.insert(symbol.to_owned());
            }
        }
        if out != symbol {
            self.locals.insert(out, Expr::symbol(symbol));
        }
    }

    fn operator(&mut self, name: &str, call: &str) {
        if name.is_empty() {
            return;
        }
        if self.run.operators.len() >= limits::KERNELS {
            self.run.cut = Some("operators");
            return;
        }
        let arguments = call.split_once('(').and_then(|(_, rest)| until_closed(rest)).map_or(call, |(inner, _)| inner);
        // handles and views are no integers; a lone word is one only when it is a size
        let integers = split_arguments(arguments)
            .into_iter()
            .filter_map(|a| self.expression(a))
            .filter(|e| !matches!(e, Expr::Symbol(s) if !is_size_symbol(s)));
        let integers = integers.collect();
        self.run.operators.push(OperatorCall { name: name.to_owned(), integers });
    }

    fn assertion(&mut self, statement: &str, line: usize) {
        let Some(text) = literal::first_in(statement) else { return };
        if let Some(name) = text.strip_suffix(" is not aligned to 16 bytes") {
            self.form("aligned to 16 bytes", line);
            if let Some(Tensor { storage: Storage::Input(index), .. }) = self.tensors.get(name) {
                self.run.aligned.insert(*index);
            }
        } else if self.run.assertions.len() >= limits::KERNELS {
            self.run.cut = Some("assertions");
        } else {
            if text.ends_with("by zero") {
                self.form("division guard", line);
            }
            self.run.assertions.push(Assertion { line, text });
        }
    }
}

/// `at::addmm_out` of `at::addmm_out(buf4, …)`, `at::_ops::mm` of `at::_ops::mm::call(…)`.
fn word_path(text: &str) -> &str {
    let end = text.find('(').unwrap_or(text.len());
    let path = text.get(..end).unwrap_or(text);
    path.strip_suffix("::call").unwrap_or(path)
}

/// Symbols of sizes as export and Inductor name them: `s27`, `u0`, `ps0`, `ks1` (torch/fx/experimental/symbolic_shapes.py).
pub fn is_size_symbol(name: &str) -> bool {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let prefix = name.strip_suffix(digits).unwrap_or_default();
    matches!(prefix, "s" | "u" | "ps" | "ks" | "i") && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_have_a_border() {
        let of = |count: usize| {
            let mut kernels = Kernels::default();
            let mut reader = Reader::new(&mut kernels);
            (0..count).for_each(|_| reader.operator("at::mm", "at::mm()"));
            let run = reader.finish();
            (run.operators.len(), run.cut)
        };
        assert_eq!(of(limits::KERNELS), (limits::KERNELS, None));
        assert_eq!(of(limits::KERNELS + 1), (limits::KERNELS, Some("operators")));
    }

    #[test]
    fn assertions_have_a_border() {
        let of = |count: usize| {
            let mut kernels = Kernels::default();
            let mut reader = Reader::new(&mut kernels);
            (0..count).for_each(|line| reader.assertion("AOTI_TORCH_CHECK(s0 > 1, \"no\")", line));
            let run = reader.finish();
            (run.assertions.len(), run.cut)
        };
        assert_eq!(of(limits::KERNELS), (limits::KERNELS, None));
        assert_eq!(of(limits::KERNELS + 1), (limits::KERNELS, Some("assertions")));
    }
}
