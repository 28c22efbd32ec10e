//! Sizes of a trace: `show --trace --shape 8x10`.

use super::CliError;
use super::arguments::SizeArgs;
use crate::checks::{self, inputs};
use crate::model::{Artifact, Model, SymbolSize};
use crate::report::Outcome;
use crate::target::{InputRequests, InputTexts, LoadConfig, Span, UsageError, parse_dim};

/// Sizes as the flags give them.
pub struct Sizes {
    requests: InputRequests,
    /// sizes of symbols by the model's own names
    symbols: Vec<(String, Span)>,
    model: Option<String>,
}

/// Reads the flags; `None` when no size is given. A `--dim` that no shape uses is about a symbol of the model.
pub fn read(args: &SizeArgs) -> Result<Option<Sizes>, CliError> {
    let in_shapes = InputRequests::from_texts(InputTexts { shape: &args.shape, ..InputTexts::default() })?;
    let is_used = |name: &str| in_shapes.entries.iter().any(|e| e.tensor.names().contains(&name));
    let mut of_shapes = Vec::new();
    let mut symbols: Vec<(String, Span)> = Vec::new();
    for text in &args.dim {
        let (name, span) = parse_dim(text)?;
        if is_used(&name) {
            of_shapes.push(text.clone());
        } else if symbols.iter().any(|(other, _)| *other == name) {
            return Err(CliError::usage(format!("--dim {name} is given twice")));
        } else {
            symbols.push((name, span));
        }
    }
    if args.shape.is_empty() && symbols.is_empty() {
        let given =
            args.model.as_ref().map(|_| CliError::usage("--model: give the sizes that are for it, --shape 8x10"));
        return given.map_or(Ok(None), Err);
    }
    let texts = InputTexts { shape: &args.shape, dim: &of_shapes, ..InputTexts::default() };
    Ok(Some(Sizes { requests: InputRequests::from_texts(texts)?, symbols, model: args.model.clone() }))
}

impl Sizes {
    /// Puts the sizes into the traces; anything that contradicts the model, and a size that is missing, is wrong use.
    pub fn apply(&self, artifacts: &mut [Artifact]) -> Result<(), CliError> {
        for artifact in artifacts {
            let path = artifact.path.clone();
            self.apply_to(artifact).map_err(|error| UsageError::new(error).within(&path))?;
        }
        Ok(())
    }

    fn apply_to(&self, artifact: &mut Artifact) -> Result<(), String> {
        let names: Vec<String> = artifact.models.iter().map(|m| m.name.clone()).collect();
        let meant = match (&self.model, names.as_slice()) {
            (Some(name), _) if !names.contains(name) => {
                return Err(format!("no model `{name}`: there is {}", names.join(", ")));
            }
            (Some(name), _) => name.clone(),
            (None, []) => return Ok(()),
            (None, [only]) => only.clone(),
            (None, several) => {
                let names = several.join(", ");
                return Err(format!("several models ({names}): say with --model which one the sizes are for"));
            }
        };
        let Some(index) = names.iter().position(|name| *name == meant) else { return Ok(()) };
        if artifact.models.get(index).is_none_or(|model| model.trace().is_none()) {
            // the reason stands in the trace's place
            return Ok(());
        }
        self.judge(artifact, index, &meant)?;
        let Some(model) = artifact.models.get_mut(index) else { return Ok(()) };
        let sizes = self.solve(model)?;
        if let Some(why) = model.set_trace_sizes(&sizes) {
            artifact.unknown.push(crate::model::Unknown::new(format!("models[{index}].trace.peak_bytes"), why));
        }
        Ok(())
    }

    /// The verdict of `verify` about the same shapes.
    fn judge(&self, artifact: &Artifact, index: usize, name: &str) -> Result<(), String> {
        let config =
            LoadConfig { model: Some(name.to_owned()), inputs: self.requests.clone(), ..LoadConfig::default() };
        let report = checks::verify_artifact(artifact, &config, &checks::Policy::default());
        let place = format!("models[{index}].inputs");
        let is_ours = |f: &&crate::report::Finding| f.outcome == Outcome::Fail && f.subject.starts_with(&place);
        match report.findings.iter().find(is_ours) {
            Some(finding) => Err(finding.message.clone()),
            None => Ok(()),
        }
    }

    /// A number for every symbol of the inputs that the trace needs.
    fn solve(&self, model: &Model) -> Result<Vec<SymbolSize>, String> {
        let bound = inputs::symbol_values(model, &self.requests);
        let Some(trace) = model.trace() else { return Ok(Vec::new()) };
        let used = trace.symbols();
        for (name, span) in &self.symbols {
            let Some(range) = model.symbols.iter().find(|r| r.symbol == *name) else {
                let known: Vec<&str> = model.symbols.iter().map(|r| r.symbol.as_str()).collect();
                return Err(UsageError::unknown_word("--dim", name, &known).to_string());
            };
            let is_in = |n: i64| range.min.is_none_or(|min| n >= min) && range.max.is_none_or(|max| n <= max);
            let is_wrong = span.single().is_some_and(|n| !is_in(n));
            if is_wrong {
                let end = |bound: Option<i64>| bound.map_or_else(String::new, |b| b.to_string());
                return Err(format!("--dim {name}={span}: {name} is {}..{}", end(range.min), end(range.max)));
            }
        }
        let mut sizes = Vec::new();
        let mut missing = Vec::new();
        for range in &model.symbols {
            let symbol = &range.symbol;
            let named = self.symbols.iter().find(|(name, _)| name == symbol).map(|(_, span)| *span);
            let shaped = bound.get(symbol);
            let size = match (named, shaped) {
                (Some(span), Some(given)) if given.as_int() != span.single() => {
                    return Err(format!("--dim {symbol}={span} contradicts the shape, in which {symbol} is {given}"));
                }
                (Some(span), _) => span.single(),
                (None, Some(given)) => given.as_int(),
                (None, None) => {
                    if used.contains(symbol) && !range.subjects.is_empty() {
                        missing.push(format!("{symbol} ({})", range.subjects.join(", ")));
                    }
                    continue;
                }
            };
            match size {
                Some(size) => sizes.push(SymbolSize { symbol: symbol.clone(), size }),
                None if used.contains(symbol) => return Err(format!("{symbol} needs one number, not several")),
                None => {}
            }
        }
        if missing.is_empty() {
            return Ok(sizes);
        }
        Err(format!("the trace needs the size of {}: give --shape, or --dim NAME=SIZE", missing.join(" and of ")))
    }
}
