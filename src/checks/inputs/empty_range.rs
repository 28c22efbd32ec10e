//! Kernel assertions under the given sizes: an index that has to stay below 0 fails whatever it is.

use super::Sink;
use super::shapes::Shapes;
use crate::checks::assertions::{self, Assertion};
use crate::model::{Evidence, Expr, Kernel, Witness};
use crate::report::{Finding, Level, Outcome};

/// The code of this file.
const CODE: &str = "assert-empty-range";

/// Evaluates the upper bound of every `index out of bounds` assertion whose sizes are given.
pub fn judge(sink: &mut Sink, shapes: &Shapes) {
    let model = sink.subject.model;
    let mut evaluated = 0usize;
    let mut findings: Vec<Finding> = Vec::new();
    for (number, kernel) in model.kernels.iter().enumerate() {
        for (position, text) in kernel.assertions.iter().enumerate() {
            let Some(upper) = Assertion::from_text(text).and_then(|a| a.upper) else { continue };
            for origin in assertions::origins(kernel, upper, Some(position)) {
                let Ok(bound) = &origin.bound else { continue };
                let Some(value) = shapes.value_of(bound) else { continue };
                evaluated = evaluated.saturating_add(1);
                let (low, high) = shapes.variables.range(&value);
                if low.is_some_and(|n| n > 0) {
                    continue;
                }
                let is_certain = high.is_some_and(|n| n <= 0);
                let finding = warning(sink, (number, kernel), text, bound, is_certain);
                if !findings.iter().any(|f| f.message == finding.message) {
                    findings.push(finding);
                }
            }
        }
    }
    if findings.is_empty() && evaluated > 0 {
        sink.pass(CODE, "kernels", || format!("no index is bounded by 0 with these sizes ({evaluated} assertions)"));
    }
    findings.into_iter().for_each(|f| sink.push(f));
}

fn warning(sink: &Sink, (number, kernel): (usize, &Kernel), text: &str, bound: &Expr, is_certain: bool) -> Finding {
    let model = sink.subject.model;
    let places: Vec<String> = bound
        .symbols()
        .into_iter()
        .filter_map(|symbol| model.symbols.iter().find(|s| s.symbol == symbol))
        .flat_map(|s| s.subjects.iter().take(1).cloned())
        .collect();
    let places = if places.is_empty() { bound.to_string() } else { places.join(" and ") };
    let word = if is_certain { "is 0" } else { "can be 0" };
    let message =
        format!("{places} {word}, and {} indexes into it: every index then fails its assertion `{text}`", kernel.name);
    let ops = kernel.source_ops.join(", ");
    Finding::new(CODE, Outcome::Warn, sink.subject.path(&format!("kernels[{number}]")), message)
        .level(Level::Warn)
        .sides("at least 1", if is_certain { "0" } else { "a range with 0 in it" })
        .fix(format!(
            "keep such inputs away from the model, or clamp the index ({}) before it is used, and compile again",
            if ops.is_empty() { "the indexing" } else { &ops }
        ))
        .evidence(kernel.evidence.iter().take(2).cloned())
        .evidence([Evidence::new(Witness::Inferred, format!("the bound `{bound}` is followed from the launch"))])
}

#[cfg(test)]
mod tests {
    use crate::checks::{judge, sample};
    use crate::model::{Dim, KernelKind, Launch, SymbolRange, TensorSpec};
    use crate::report::Outcome;
    use crate::target::{InputRequests, InputTexts, LoadConfig};

    fn outcome(shape: &str) -> Option<Outcome> {
        let mut artifact = sample::cpu();
        let model = artifact.models.first_mut().unwrap();
        model.inputs = Some(vec![TensorSpec {
            rank: Some(1),
            shape: Some(vec![Some(Dim::Symbol { symbol: "s59".into(), min: Some(0), max: None })]),
            ..TensorSpec::default()
        }]);
        model.symbols = vec![SymbolRange {
            symbol: "s59".into(),
            min: Some(0),
            max: None,
            subjects: vec!["inputs[0].shape[0]".into()],
        }];
        let mut kernel = crate::model::Kernel::new("cpp_fused_index_0", KernelKind::Cpp);
        kernel.assertions = vec!["index out of bounds: 0 <= tmp13 < ks1".into()];
        kernel.parameters = vec!["in_ptr0".into(), "ks1".into()];
        kernel.launches = vec![Launch {
            grid: [None, None, None],
            threads: None,
            arguments: vec!["arg0_1".into(), "s59".into()],
            line: None,
        }];
        model.kernels = vec![kernel];
        let shapes = [shape.to_owned()];
        let inputs = InputRequests::from_texts(InputTexts { shape: &shapes, ..InputTexts::default() }).unwrap();
        let judgement = judge(&artifact, &LoadConfig { inputs, ..LoadConfig::default() });
        judgement.findings.iter().find(|f| f.code == super::CODE).map(|f| f.outcome)
    }

    #[test]
    fn an_empty_dim_behind_an_index_is_warned_of() {
        assert_eq!(outcome("0"), Some(Outcome::Warn));
        assert_eq!(outcome("0..5"), Some(Outcome::Warn));
        assert_eq!(outcome("1..5"), Some(Outcome::Pass));
        assert_eq!(outcome("7"), Some(Outcome::Pass));
        assert_eq!(outcome("_"), None);
    }
}
