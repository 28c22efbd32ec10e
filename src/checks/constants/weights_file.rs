//! The weights that the caller is going to load against the constants, by their original names.

use super::stored;
use crate::checks::gpu::name_some;
use crate::checks::{Judgement, Subject};
use crate::model::{Constant, ConstantKind};
use crate::report::{Finding, Outcome};
use crate::target::WeightsTensor;
use std::collections::BTreeMap;

/// One finding per constant that does not fit, and one for the whole.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let files = &subject.config.weights;
    if files.is_empty() {
        return;
    }
    let path = subject.path("constants");
    if subject.model.constants.is_none() {
        let what = "whether the weights file fits: the constants cannot be told";
        judgement.push(subject.unknown("weights-mismatch", "constants", what));
        return;
    }
    let given: BTreeMap<&str, &WeightsTensor> =
        files.iter().flat_map(|f| &f.tensors).map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut asked = std::collections::BTreeSet::new();
    let (mut missing, mut unnamed, mut fits) = (Vec::new(), 0usize, 0usize);
    for constant in stored(subject) {
        let Some(fqn) = constant.fqn.as_deref() else {
            unnamed += 1;
            continue;
        };
        asked.insert(fqn);
        match given.get(fqn) {
            // literals of the graph belong to no state dict
            None if constant.kind == Some(ConstantKind::TensorConstant) => {}
            None => missing.push(fqn),
            Some(tensor) => match difference(constant, tensor) {
                Difference::None => fits += 1,
                Difference::Unknown(what) => judgement.push(Finding::new(
                    "weights-mismatch",
                    Outcome::Unknown,
                    subject.path(&format!("constants[{}]", constant.index)),
                    format!("{fqn}: its {what} in the artefact cannot be told"),
                )),
                Difference::Is { what, expected, found } => judgement.push(
                    Finding::new(
                        "weights-mismatch",
                        Outcome::Fail,
                        subject.path(&format!("constants[{}]", constant.index)),
                        format!("{fqn}: {what} is {expected}, the weights file has {found}"),
                    )
                    .sides(expected, found),
                ),
            },
        }
    }
    if !missing.is_empty() {
        let message = format!(
            "the weights file lacks {} of {} constants: {}",
            missing.len(),
            asked.len(),
            name_some(missing.iter().copied())
        );
        judgement.push(
            Finding::new("weights-mismatch", Outcome::Fail, &path, message)
                .fix("save the state dict of the module that was exported, buffers included"),
        );
    }
    if unnamed > 0 {
        let message = format!("{unnamed} constants have no original name in the artefact and cannot be compared");
        judgement.push(Finding::new("weights-mismatch", Outcome::Unknown, &path, message));
    }
    let extra: Vec<&str> = given.keys().copied().filter(|name| !asked.contains(name)).collect();
    if !extra.is_empty() {
        let message = format!(
            "{} tensors of the weights file belong to no constant: {}",
            extra.len(),
            name_some(extra.iter().copied())
        );
        judgement.push(Finding::new("weights-mismatch", Outcome::Warn, &path, message));
    }
    if missing.is_empty() && unnamed == 0 && fits > 0 {
        let message = format!("{fits} constants fit the weights file in name, dtype and shape");
        judgement.push(Finding::new("weights-mismatch", Outcome::Pass, &path, message));
    }
}

enum Difference {
    None,
    Unknown(&'static str),
    Is { what: &'static str, expected: String, found: String },
}

fn difference(constant: &Constant, tensor: &WeightsTensor) -> Difference {
    match &constant.dtype {
        Some(dtype) if *dtype == tensor.dtype => {}
        Some(dtype) => {
            return Difference::Is { what: "dtype", expected: dtype.to_string(), found: tensor.dtype.to_string() };
        }
        None => return Difference::Unknown("dtype"),
    }
    let Some(shape) = &constant.shape else { return Difference::Unknown("shape") };
    let same = shape.len() == tensor.shape.len()
        && shape.iter().zip(&tensor.shape).all(|(a, b)| u64::try_from(*a).is_ok_and(|a| a == *b));
    if same {
        return Difference::None;
    }
    Difference::Is { what: "shape", expected: format!("{shape:?}"), found: format!("{:?}", tensor.shape) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{cpu, find, outcome};
    use crate::model::DType;
    use crate::report::Outcome::{Fail, Pass, Unknown, Warn};
    use crate::target::{LoadConfig, WeightsFile};

    fn config(rows: &[(&str, &str, &[u64])]) -> LoadConfig {
        let tensor = |dtype: &str, shape: &[u64]| WeightsTensor {
            dtype: DType::from_name(dtype).expect("a dtype"),
            shape: shape.to_vec(),
            size_bytes: 0,
        };
        let tensors = rows.iter().map(|(n, d, s)| ((*n).to_owned(), tensor(d, s))).collect();
        LoadConfig { weights: vec![WeightsFile { path: "w.safetensors".into(), tensors }], ..LoadConfig::default() }
    }

    #[test]
    fn names_dtypes_and_shapes_must_fit() {
        let code = "weights-mismatch";
        let whole = config(&[("fc1.weight", "float32", &[16, 10]), ("fc2.weight", "float32", &[10, 16])]);
        assert_eq!(outcome(check, &cpu(), &whole, code), [Pass]);
        let more = config(&[
            ("fc1.weight", "float32", &[16, 10]),
            ("fc2.weight", "float32", &[10, 16]),
            ("x", "float32", &[]),
        ]);
        assert_eq!(outcome(check, &cpu(), &more, code), [Warn, Pass]);
        let cut = config(&[("fc1.weight", "float32", &[16, 10])]);
        let found = find(check, &cpu(), &cut, code);
        assert_eq!(found[0].outcome, Fail);
        assert!(found[0].message.contains("fc2.weight"));
        let turned = config(&[("fc1.weight", "float32", &[10, 16]), ("fc2.weight", "bfloat16", &[10, 16])]);
        assert_eq!(outcome(check, &cpu(), &turned, code), [Fail, Fail]);
        let mut unknown = cpu();
        unknown.models[0].constants = None;
        assert_eq!(outcome(check, &unknown, &whole, code), [Unknown]);
    }
}
