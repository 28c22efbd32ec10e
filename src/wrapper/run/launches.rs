//! Kernel launches: which kernel is called with which tensors and sizes (format reference, 5.8 and 5.9).

use super::Reader;
use crate::limits;
use crate::model::{KernelKind, Launch};
use crate::wrapper::text::{Line, between, split_arguments, until_closed, word_at_end, word_at_start};

impl<'a> Reader<'a, '_> {
    /// A call of a CPU kernel or of a launch helper; `false` when it is neither.
    pub(super) fn kernel_call(&mut self, statement: &'a str, line: &Line<'a>) -> bool {
        let word = word_at_start(statement);
        let Some(rest) = statement.get(word.len()..).and_then(|r| r.strip_prefix('(')) else { return false };
        let Some((inner, _)) = until_closed(rest) else { return false };
        let pieces = split_arguments(inner);
        if self.kernels.is_cpu(word) {
            let arguments = pieces.iter().map(|p| self.argument(p)).collect();
            let launch = Launch { grid: [None, None, None], threads: None, arguments, line: Some(line.number) };
            self.kernels.launched(word, KernelKind::Cpp, launch, &self.source_ops);
            return true;
        }
        let Some(name) = word.strip_prefix("call_") else { return false };
        let argument = |i: usize| pieces.get(i).and_then(|p| self.expression(p));
        let (count, grid) = self.kernels.helper_grid(name, &argument).unwrap_or((pieces.len(), [None, None, None]));
        let arguments = pieces.iter().take(count).map(|p| self.argument(p)).collect();
        let launch = Launch { grid, threads: None, arguments, line: Some(line.number) };
        self.kernels.launched(name, KernelKind::Triton, launch, &self.source_ops);
        true
    }

    /// `launchKernel(kernels.k, g.grid_x, g.grid_y, g.grid_z, 4, 0, kernel_args_var_0, stream);` (2.2 to 2.6)
    pub(super) fn inline_launch(&mut self, line: &Line<'a>) {
        let Some((name, pieces)) = self.kernels.launch_numbers(line) else { return };
        let grid = pieces.get(1).and_then(|g| self.grids.get(word_at_start(g))).cloned().unwrap_or_default();
        let list = pieces.get(6).and_then(|args| self.lists.get(word_at_start(args))).cloned().unwrap_or_default();
        let arguments = list
            .into_iter()
            .map(|var| match (self.pointers.get(var), self.locals.get(var)) {
                (Some(tensor), _) => (*tensor).to_owned(),
                (None, Some(value)) => value.to_string(),
                (None, None) => var.to_owned(),
            })
            .collect();
        let launch = Launch { grid, threads: None, arguments, line: Some(line.number) };
        self.kernels.launched(&name, KernelKind::Triton, launch, &self.source_ops);
    }

    pub(super) fn metal_launch(&mut self, handle: &str, line: usize) {
        let Some(name) = between(handle, "get_", "_handle()") else { return };
        if self.kernels.is_metal(name) {
            let arguments = std::mem::take(&mut self.metal);
            let launch = Launch { grid: [None, None, None], threads: None, arguments, line: Some(line) };
            self.kernels.launched(name, KernelKind::Metal, launch, &self.source_ops);
        }
    }

    /// An argument as a person reads it: a tensor's name, or an expression of symbols.
    pub(super) fn argument(&self, text: &str) -> String {
        if text.contains("data_ptr()") || text.contains("reinterpret_tensor") || text.contains("get_data_ptr_wrapper(")
        {
            return tensor_name(text).to_owned();
        }
        if let Some(tensor) = self.pointers.get(text) {
            return (*tensor).to_owned();
        }
        self.expression(text).map_or_else(
            || text.chars().take(limits::SHOWN_TEXT_BYTES / 4).collect(),
            |expression| expression.to_string(),
        )
    }
}

/// The tensor inside casts, views and wrappers: `arg0_1` of `(const float*)(arg0_1.data_ptr())`.
pub(super) fn tensor_name(text: &str) -> &str {
    if let Some((head, _)) = text.split_once(".data_ptr()") {
        return word_at_end(head);
    }
    let inner = ["reinterpret_tensor_wrapper(", "reinterpret_tensor(", "get_data_ptr_wrapper("]
        .iter()
        .find_map(|call| text.split_once(call))
        .map_or(text, |(_, rest)| rest);
    word_at_start(inner.trim_start_matches(['&', '*', '(']))
}
