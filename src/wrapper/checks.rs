//! Input checks and the environment variable that switches them on (format reference, 5.3 and 5.4).
//!
//! Each check prints a message that names input and dim; the condition before it holds the number.

use super::blocks::{Block, Blocks};
use super::constructor::dtype;
use super::text::{between, cut, index_after, number_at_start, word_at_start};
use crate::limits;
use crate::model::{Checks, DType, DeviceKind};
use std::collections::BTreeMap;

/// What is checked about one dim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DimCheck {
    /// must be this size
    pub equal: Option<i64>,
    /// smallest accepted size
    pub min: Option<i64>,
    /// largest accepted size
    pub max: Option<i64>,
}

/// What is checked about one input.
#[derive(Debug, Clone, Default)]
pub struct InputCheck {
    /// line of the first check, from 1
    pub line: Option<usize>,
    /// element type
    pub dtype: Option<DType>,
    /// by dim; dims without a check are absent
    pub dims: BTreeMap<usize, DimCheck>,
    /// by position; symbolic strides have no check
    pub strides: BTreeMap<usize, i64>,
    /// device type (2.8+, cpu and cuda only)
    pub device: Option<DeviceKind>,
}

/// All checks of a model.
#[derive(Debug, Default)]
pub struct InputChecks {
    /// by input
    pub inputs: BTreeMap<usize, InputCheck>,
    /// any check stands in the source
    pub are_compiled_in: bool,
    /// how they are switched on
    pub gate: Option<Checks>,
    /// the test of the variable: `0` for 2.7, `'0'` for 2.8 and newer
    pub gate_form: Option<GateForm>,
}

/// How the first character of the variable is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateForm {
    /// against the number 0: the text `0` switches the checks on (2.7)
    Number,
    /// against the digit (2.8+)
    Digit,
}

/// The variable's name (torch/_inductor/codegen/cpp_wrapper_cpu.py, 2.7+).
const VARIABLE: &str = "AOTI_RUNTIME_CHECK_INPUTS";

impl InputChecks {
    /// Reads one function with checks, of one input or of all.
    pub fn read_checks(&mut self, blocks: &Blocks, block: &Block) {
        let mut pending_type = None;
        let mut pending_number = None;
        let mut pending_device = None;
        for line in blocks.lines(block) {
            let statement = line.text.trim_start();
            if let Some(condition) = statement.strip_prefix("if (") {
                pending_number = number_in_condition(condition);
            } else if let Some((_, value)) = cut(statement, "_expected_dtype = ") {
                pending_type = dtype(value.trim_end().trim_end_matches(';'));
            } else if let Some((_, value)) = cut(statement, "_expected_device_type = ") {
                pending_device = number_at_start(value).and_then(|(n, _)| i32::try_from(n).ok());
            } else if let Some(message) = between(statement, "\"input_handles", ", \"") {
                // a model with more inputs is refused
                let Some(index) = index_after(message, "").filter(|i| *i < limits::TENSORS) else { continue };
                let Some((_, message)) = cut(message, "]: ") else { continue };
                self.are_compiled_in = true;
                let input = self.inputs.entry(index).or_default();
                input.line.get_or_insert(line.number);
                match message {
                    "unmatched dtype" => input.dtype = pending_type.take(),
                    "unmatched device type" => {
                        input.device = pending_device.take().and_then(DeviceKind::from_aten);
                    }
                    _ => input.dim_check(message, pending_number.take()),
                }
            }
        }
    }

    /// Reads the function that asks for the environment variable.
    pub fn read_gate(&mut self, blocks: &Blocks, block: &Block) {
        for line in blocks.lines(block) {
            if let Some((_, rest)) = cut(line.text, "env_var_value[0] != ") {
                // a nightly wrote a NUL between the quotes and meant the number
                let form = if rest.starts_with("'0'") { GateForm::Digit } else { GateForm::Number };
                self.gate_form = Some(form);
                self.gate = Some(Checks {
                    compiled_in: true,
                    enabled_by: Some(VARIABLE.to_owned()),
                    disabled_by: Some(
                        match form {
                            GateForm::Digit => "values that begin with 0",
                            GateForm::Number => "the empty value",
                        }
                        .to_owned(),
                    ),
                });
            }
        }
    }
}

impl InputCheck {
    /// `message` is `unmatched dim value at 1` and the like, `number` what the condition compares with.
    fn dim_check(&mut self, message: &str, number: Option<i64>) {
        let Some((what, at)) = message.rsplit_once(" at ") else { return };
        let (Ok(at), Some(number)) = (at.parse::<usize>(), number) else { return };
        if at >= limits::RANK {
            return;
        }
        if what == "unmatched stride value" {
            self.strides.insert(at, number);
            return;
        }
        let dim = self.dims.entry(at).or_default();
        match what {
            "unmatched dim value" => dim.equal = Some(number),
            "dim value is too small" => dim.min = Some(number),
            "dim value is too large" => dim.max = Some(number),
            _ => {}
        }
    }
}

/// The number of `32 != n_size[1]) {`, `n_size[1] < 2) {`, `n_size[1] > 640L) {`.
fn number_in_condition(condition: &str) -> Option<i64> {
    let condition = condition.trim_end_matches([' ', '{', ')']);
    let (left, right) = [" != ", " < ", " > "].iter().find_map(|sign| cut(condition, sign))?;
    [left, right].iter().find_map(|side| {
        let digits = side.trim_matches(|c| c == '(' || c == ')');
        let (number, rest) = number_at_start(digits)?;
        matches!(word_at_start(rest), "" | "L" | "LL").then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_in_both_orders() {
        assert_eq!(number_in_condition("32 != n_size[1]) {"), Some(32));
        assert_eq!(number_in_condition("n_size[1] < 2) {"), Some(2));
        assert_eq!(number_in_condition("n_size[0] > 9223372036854775807L) {"), Some(i64::MAX));
        assert_eq!(number_in_condition("n_expected_dtype != n_dtype) {"), None);
    }

    #[test]
    fn the_gate_of_2_7_is_on_for_zero() {
        for (character, form) in [("0", GateForm::Number), ("'0'", GateForm::Digit), ("'\0'", GateForm::Number)] {
            let source = format!(
                "static bool _check_aoti_runtime_check_inputs_env() {{\n    const static bool result = env_var_value != nullptr && env_var_value[0] != {character};\n}}\n"
            );
            let blocks = Blocks::split(&source).unwrap();
            let mut checks = InputChecks::default();
            blocks.list.iter().for_each(|b| checks.read_gate(&blocks, b));
            assert_eq!(checks.gate_form, Some(form));
        }
    }
}
