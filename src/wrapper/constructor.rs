//! The model's constructor: counts, names, constants table, call spec (format reference, 5.2).

use super::blocks::{Block, Blocks};
use super::literal;
use super::text::{index_after, number_at_start, split_arguments, until_closed, word_at_end};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Constant, ConstantKind, DType, Device, DeviceKind};

/// Form of the constructor; dates the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// no device string (2.2)
    NoDevice,
    /// device string, no `include_weights` (2.3 to 2.5)
    WithDevice,
    /// parameter `bool include_weights`, base call on one line (2.6, 2.7)
    WeightsParameter,
    /// base call on six lines, literal `include_weights` (2.8+)
    WeightsLiteral,
}

/// What the constructor says.
#[derive(Debug)]
pub struct Constructor {
    /// line it begins at
    pub line: usize,
    /// class name behind `AOTInductorModel`; empty outside of standalone mode
    pub class_suffix: String,
    /// number of inputs
    pub input_count: usize,
    /// number of outputs
    pub output_count: usize,
    /// number of constants
    pub constant_count: usize,
    /// `true` or `false` where the base call has one (2.6+)
    pub include_weights: Option<bool>,
    /// its form
    pub form: Form,
    /// by input; `None` where the constructor names none
    pub input_names: Vec<Option<String>>,
    /// by output
    pub output_names: Vec<Option<String>>,
    /// by constant
    pub constants: Vec<Constant>,
    /// lines of the constants' names, for evidence
    pub constant_lines: Vec<usize>,
    /// `in_spec_`, decoded
    pub in_spec: Option<String>,
    /// `out_spec_`, decoded
    pub out_spec: Option<String>,
    /// how the spec literals are written
    pub spec_form: Option<literal::Form>,
    /// indices beyond the counts, as texts for a person
    pub contradictions: Vec<String>,
}

/// Reads the constructor in `block`.
///
/// # Errors
/// [`crate::error::ErrorKind::Damaged`] when the base call has no counts, `Limit` when they are beyond all use.
pub fn read(blocks: &Blocks, block: &Block) -> Result<Constructor> {
    let text = blocks.text_from(block.start);
    let text = text.get(..block.end.saturating_sub(block.start)).unwrap_or(text);
    let damaged = |what: &str| Error::damaged(what.to_owned()).in_section("constructor").at_offset(block.start as u64);
    let (head, call) = text
        .split_once("AOTInductorModelBase(")
        .ok_or_else(|| damaged("the constructor calls no AOTInductorModelBase"))?;
    let (inner, _) = until_closed(call).ok_or_else(|| damaged("the call of AOTInductorModelBase has no end"))?;
    let arguments = split_arguments(inner);
    let count = |position: usize| -> Result<usize> {
        let number = arguments.get(position).and_then(|a| a.parse::<usize>().ok());
        let number = number.ok_or_else(|| damaged("AOTInductorModelBase is called without the three counts"))?;
        if number > limits::TENSORS {
            return Err(Error::limit(format!("{number} inputs, outputs or constants, more than {}", limits::TENSORS)));
        }
        Ok(number)
    };
    let include_weights = arguments.get(3..).unwrap_or_default().iter().rev().find_map(|a| a.parse::<bool>().ok());
    let form = match (head.contains("device_str"), include_weights, head.contains("bool include_weights")) {
        (false, _, _) => Form::NoDevice,
        (true, None, _) => Form::WithDevice,
        (true, Some(_), true) => Form::WeightsParameter,
        (true, Some(_), false) => Form::WeightsLiteral,
    };
    let class_suffix = text.strip_prefix("AOTInductorModel").and_then(|t| t.split_once("::")).map_or("", |(s, _)| s);
    let mut constructor = Constructor {
        line: block.first_line,
        class_suffix: class_suffix.to_owned(),
        input_count: count(0)?,
        output_count: count(1)?,
        constant_count: count(2)?,
        include_weights,
        form,
        input_names: vec![None; count(0)?],
        output_names: vec![None; count(1)?],
        constants: (0..count(2)?).map(empty_constant).collect(),
        constant_lines: vec![0; count(2)?],
        in_spec: None,
        out_spec: None,
        spec_form: None,
        contradictions: Vec::new(),
    };
    for line in blocks.lines(block) {
        let statement = line.text.trim_start();
        match statement.as_bytes().first() {
            Some(b'c') if statement.starts_with("constants_info_[") => {
                constructor.constant_field(statement, line.number);
            }
            Some(b'i') if statement.starts_with("inputs_info_[") => {
                let names = &mut constructor.input_names;
                if let Some(beyond) = set_name(names, statement, "inputs_info_") {
                    constructor.contradictions.push(beyond);
                }
            }
            Some(b'o') if statement.starts_with("outputs_info_[") => {
                let names = &mut constructor.output_names;
                if let Some(beyond) = set_name(names, statement, "outputs_info_") {
                    constructor.contradictions.push(beyond);
                }
            }
            Some(b'i') if statement.starts_with("in_spec_ =") => {
                constructor.in_spec = constructor.spec(blocks.text_from(line.offset));
            }
            Some(b'o') if statement.starts_with("out_spec_ =") => {
                constructor.out_spec = constructor.spec(blocks.text_from(line.offset));
            }
            _ => {}
        }
    }
    Ok(constructor)
}

fn empty_constant(index: usize) -> Constant {
    Constant {
        index,
        name: None,
        fqn: None,
        dtype: None,
        shape: None,
        stride: None,
        storage_offset: None,
        size_bytes: None,
        kind: None,
        folded: None,
        device: None,
        is_opaque: false,
        file_offset: None,
    }
}

/// Sets the name of `PREFIX[k].name = "…";`; returns a contradiction when k is beyond the count.
fn set_name(names: &mut [Option<String>], statement: &str, prefix: &str) -> Option<String> {
    let index = index_after(statement, prefix)?;
    let Some(name) = names.get_mut(index) else {
        return Some(format!("{prefix}[{index}] is named, but the constructor counts {}", names.len()));
    };
    if statement.contains(".name = ") {
        *name = literal::first_in(statement);
    }
    None
}

impl Constructor {
    fn spec(&mut self, text: &str) -> Option<String> {
        let (_, value) = text.split_once('=')?;
        let (value, form) = literal::read(value)?;
        // an empty `R"()"` dates nothing beyond what the other one says
        if self.spec_form != Some(literal::Form::SplitRaw) {
            self.spec_form = Some(form);
        }
        Some(value)
    }

    fn constant_field(&mut self, statement: &str, line: usize) {
        let Some(index) = index_after(statement, "constants_info_") else { return };
        let count = self.constants.len();
        let Some(constant) = self.constants.get_mut(index) else {
            self.contradictions.push(format!("constants_info_[{index}] is set, but the constructor counts {count}"));
            return;
        };
        let Some((_, field)) = statement.split_once("].") else { return };
        let Some((field, value)) = field.split_once(" = ") else { return };
        let value = value.trim_end().trim_end_matches(';');
        match field {
            "name" => {
                constant.name = literal::first_in(value);
                if let Some(slot) = self.constant_lines.get_mut(index) {
                    *slot = line;
                }
            }
            "original_fqn" => constant.fqn = literal::first_in(value),
            "dtype" => constant.dtype = dtype(value),
            "device_type" => constant.device = device(value),
            "offset" => constant.storage_offset = number(value),
            "data_size" => constant.size_bytes = number(value).and_then(|n| u64::try_from(n).ok()),
            "from_folded" => constant.folded = value.parse().ok(),
            "type" => constant.kind = Some(kind(value)),
            "shape" => constant.shape = numbers(value),
            "stride" => constant.stride = numbers(value),
            "layout" => constant.is_opaque |= value.contains("mkldnn") || value.contains("Mkldnn"),
            "opaque_metadata" => constant.is_opaque = true,
            _ => {}
        }
    }
}

fn number(value: &str) -> Option<i64> {
    number_at_start(value.trim()).map(|(n, _)| n)
}

fn numbers(value: &str) -> Option<Vec<i64>> {
    let inner = value.trim().strip_prefix('{')?.strip_suffix('}')?;
    let pieces = split_arguments(inner);
    if pieces.len() > limits::RANK {
        return None;
    }
    pieces.into_iter().map(number).collect()
}

/// The type of `static_cast<int32_t>(at::kFloat)`, `cached_torch_dtype_float32`, `aoti_torch_dtype_float32()`, `at::kFloat`.
/// A name that is not known is kept as it is written.
pub fn dtype(value: &str) -> Option<DType> {
    let word = word_at_end(value.trim().trim_end_matches(['(', ')']));
    let name = ["cached_torch_dtype_", "aoti_torch_dtype_"].iter().find_map(|p| word.strip_prefix(p));
    if let Some(name) = name {
        return Some(DType::from_name(name).unwrap_or_else(|| DType::Other(name.to_owned())));
    }
    let enumerator = word.strip_prefix('k').filter(|_| value.contains("at::k") || value.contains("ScalarType"))?;
    Some(DType::from_enumerator(enumerator).unwrap_or_else(|| DType::Other(enumerator.to_owned())))
}

/// The device of `cached_torch_device_type_cuda`, `at::kCUDA`, `c10::DeviceType::CUDA`.
pub fn device(value: &str) -> Option<Device> {
    let word = value
        .split_once("torch_device_type_")
        .map(|(_, rest)| super::text::word_at_start(rest).to_owned())
        .or_else(|| {
            let (_, rest) = value.split_once("at::k").or_else(|| value.split_once("DeviceType::"))?;
            Some(super::text::word_at_start(rest).to_ascii_lowercase())
        })?;
    (!word.is_empty()).then(|| Device::new(DeviceKind::from_name(&word)))
}

/// `torch::aot_inductor::ConstantType` (torch/csrc/inductor/aoti_runtime/utils.h, 2.6+).
fn kind(value: &str) -> ConstantKind {
    const NAMES: [(&str, ConstantKind); 4] = [
        ("Parameter", ConstantKind::Parameter),
        ("Buffer", ConstantKind::Buffer),
        ("TensorConstant", ConstantKind::TensorConstant),
        ("FoldedConstant", ConstantKind::FoldedConstant),
    ];
    let word = word_at_end(value.trim_end_matches(')'));
    NAMES.into_iter().find(|(name, _)| *name == word).map_or(ConstantKind::Unknown, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_in_all_spellings() {
        for text in [
            "static_cast<int32_t>(at::kFloat)",
            "static_cast<int32_t>(cached_torch_dtype_float32)",
            "cached_torch_dtype_float32",
            "aoti_torch_dtype_float32()",
            "at::kFloat",
        ] {
            assert_eq!(dtype(text), Some(DType::FLOAT32), "{text}");
        }
        assert_eq!(dtype("cached_torch_dtype_float4"), Some(DType::Other("float4".into())));
        assert_eq!(dtype("7"), None);
    }

    #[test]
    fn constants_are_read_with_all_fields() -> Result<()> {
        let source = "AOTInductorModel::AOTInductorModel(const std::string& device_str,\n    bool include_weights)\n    : AOTInductorModelBase(0, 1, 1, device_str, cubin_dir, false) {\n    constants_info_[0].name = \"w\";\n    constants_info_[0].dtype = static_cast<int32_t>(cached_torch_dtype_int64);\n    constants_info_[0].shape = {};\n    constants_info_[0].stride = {};\n    constants_info_[0].data_size = 64;\n    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Buffer);\n    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout__mkldnn);\n    constants_info_[3].name = \"x\";\n    in_spec_ = R\"()\";\n    out_spec_ = \"a\\\"\\\\b\";\n    outputs_info_[0].name = \"output0\";\n}\n";
        let blocks = Blocks::split(source).unwrap();
        let block = blocks.list.first().ok_or_else(|| Error::damaged("no block"))?;
        let read = read(&blocks, block)?;
        let constant = read.constants.first().ok_or_else(|| Error::damaged("no constant"))?;
        assert_eq!((constant.shape.clone(), constant.size_bytes), (Some(vec![]), Some(64)));
        assert_eq!(constant.kind, Some(ConstantKind::Buffer));
        assert!(constant.is_opaque);
        assert_eq!((read.form, read.include_weights), (Form::WeightsParameter, Some(false)));
        assert_eq!((read.in_spec.as_deref(), read.out_spec.as_deref()), (Some(""), Some("a\"\\b")));
        assert_eq!(read.contradictions.len(), 1);
        Ok(())
    }
}
