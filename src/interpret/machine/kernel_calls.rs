//! Calls of C++ kernels: told from other calls, stepped over, and noted with their arguments.

use super::Machine;
use crate::interpret::layout;
use crate::interpret::trace::Record;

/// Instructions looked at to decide whether a function is a kernel.
const SURVEY_INSTRUCTIONS: usize = 4_000;
/// Instructions of a kernel that are looked at for the arguments that it takes: they are read early.
const ARGUMENT_INSTRUCTIONS: usize = 1_000;

impl Machine<'_> {
    /// A function that nobody but a kernel's caller needs: named `cpp_…`, or handed tensor data and computing.
    pub(super) fn is_kernel_call(&mut self, target: u64) -> bool {
        if self.is_named_kernel(target) {
            return true;
        }
        let has_data = (0..self.cpu.register_arguments())
            .any(|n| layout::TENSOR_DATA.contains(&self.cpu.argument(&mut self.bus, n, 8).bits));
        has_data && self.computes(target)
    }

    fn is_named_kernel(&mut self, target: u64) -> bool {
        let named = |m: &Self, at: u64| m.loaded.kernels.contains_key(&at);
        if named(self, target) {
            return true;
        }
        match self.cpu.stub_target(&mut self.bus, target) {
            Some(to) => named(self, to) || self.imports.name_at(to).is_some_and(|name| name.starts_with("cpp_")),
            None => false,
        }
    }

    /// The function contains floating-point arithmetic or starts threads, and calls neither C++ nor shims.
    fn computes(&mut self, function: u64) -> bool {
        if let Some(known) = self.kernels.get(&function) {
            return *known;
        }
        let mut target = function;
        if let Some(to) = self.cpu.stub_target(&mut self.bus, function) {
            if !self.is_in_image(to) {
                self.kernels.insert(function, false);
                return false;
            }
            target = to;
        }
        let survey = self.cpu.survey(&mut self.bus, target, SURVEY_INSTRUCTIONS);
        let mut is_threaded = false;
        let mut is_host = false;
        for call in survey.calls {
            let to = self.cpu.stub_target(&mut self.bus, call).unwrap_or(call);
            // kernels check indices with the one shim that takes no tensor
            let Some(name) = self.imports.name_at(to).filter(|name| *name != "aoti_torch_check") else { continue };
            is_threaded |= ["GOMP", "omp_", "__kmpc"].iter().any(|p| name.starts_with(p));
            is_host |= ["aoti_", "cu", "_Z", "__cxa"].iter().any(|p| name.starts_with(p));
        }
        let is_kernel = !is_host && (survey.has_float_arithmetic || is_threaded);
        self.kernels.insert(function, is_kernel);
        is_kernel
    }

    /// Notes a kernel of the library that is stepped over. Called at its entry.
    pub(super) fn record_kernel_call(&mut self, target: u64) {
        let target = match self.cpu.stub_target(&mut self.bus, target) {
            Some(to) if self.is_in_image(to) => to,
            _ => target,
        };
        let name = match self.loaded.kernels.get(&target) {
            Some(name) => (*name).to_owned(),
            // a neighbour's name would only mislead
            None => match self.loaded.functions().get(&target) {
                Some(name) => (*name).to_owned(),
                None => format!("{:#x}", self.file_address(target)),
            },
        };
        let arguments = (0..self.cpu.register_arguments()).map(|n| self.argument(n)).collect();
        // what lies in the other registers was left there by earlier code
        let taken = match self.argument_counts.get(&target) {
            Some(known) => *known,
            None => {
                let count = self.cpu.arguments_read(&mut self.bus, target, ARGUMENT_INSTRUCTIONS);
                self.argument_counts.insert(target, count);
                count
            }
        };
        let address = self.file_address(target);
        self.recorder.add(Record::Kernel { name, address, arguments, taken });
    }
}
