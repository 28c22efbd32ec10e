//! All that is asked about the inputs of one model, from flags or from a file.

use super::UsageError;
use super::size::{Span, is_name, parse_sizes, parse_span};
use super::tensor::{TensorRequest, parse_dtype, parse_stride, parse_tensor};
use super::which::{Which, find_input, split_which};
use crate::limits;
use crate::model::TensorSpec;
use std::collections::BTreeMap;

/// What is asked about one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequest {
    /// which one
    pub which: Which,
    /// what
    pub tensor: TensorRequest,
}

/// What is asked about the inputs as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputRequests {
    /// one entry per input and flag; several entries may be about one input
    pub entries: Vec<InputRequest>,
    /// how many inputs the caller passes
    pub count: Option<usize>,
    /// sizes that names stand for
    pub dims: Vec<(String, Span)>,
}

/// The texts of the flags `--input`, `--shape`, `--dtype`, `--stride`, `--inputs`, `--dim`.
#[derive(Debug, Clone, Copy, Default)]
pub struct InputTexts<'a> {
    /// `[WHICH=]SPEC`, or `none`
    pub input: &'a [String],
    /// `[WHICH=]2x10`
    pub shape: &'a [String],
    /// `[WHICH=]float32`
    pub dtype: &'a [String],
    /// `[WHICH=]10x1`
    pub stride: &'a [String],
    /// the count alone
    pub inputs: Option<usize>,
    /// `B=1..512`
    pub dim: &'a [String],
}

impl InputRequests {
    /// True when nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.count.is_none()
    }

    /// Reads the texts of the flags.
    ///
    /// # Errors
    /// For a text that is wrong in itself, for one flag given with and without WHICH, and for counts that disagree.
    pub fn from_texts(texts: InputTexts) -> Result<Self, UsageError> {
        let mut requests = Self::default();
        let whole = requests.read("--input", texts.input, &|text| {
            if text.trim() == "none" { Ok(None) } else { parse_tensor(text).map(Some) }
        })?;
        requests.read("--shape", texts.shape, &|text| {
            Ok(Some(TensorRequest { shape: Some(parse_sizes(text)?), ..TensorRequest::default() }))
        })?;
        requests.read("--dtype", texts.dtype, &|text| {
            Ok(Some(TensorRequest { dtype: Some(parse_dtype(text)?), ..TensorRequest::default() }))
        })?;
        requests.read("--stride", texts.stride, &|text| {
            Ok(Some(TensorRequest { stride: Some(parse_stride(text)?), ..TensorRequest::default() }))
        })?;
        requests.count = match (whole, texts.inputs) {
            (Some(n), Some(m)) if n != m => {
                return Err(UsageError::new(format!("--inputs {m}, but --input is given for {n}")));
            }
            (n, m) => n.or(m),
        };
        for text in texts.dim {
            requests.dims.push(parse_dim(text)?);
        }
        requests.check_dims()?;
        Ok(requests)
    }

    /// Reads one flag's texts; returns how many inputs they list when they are the whole list.
    fn read(
        &mut self,
        flag: &str,
        texts: &[String],
        parse: &dyn Fn(&str) -> Result<Option<TensorRequest>, UsageError>,
    ) -> Result<Option<usize>, UsageError> {
        let mut named = 0;
        let mut nth = 0;
        let mut none = false;
        for text in texts {
            let (which, value) = split_which(text);
            let place = format!("{flag} {text}");
            let Some(tensor) = parse(value).map_err(|e| e.within(&place))? else {
                none = true;
                continue;
            };
            let which = match which {
                Some("") => return Err(UsageError::new(format!("{place}: no input is named before the `=`"))),
                Some(name) => {
                    named += 1;
                    Which::Named(name.to_owned())
                }
                None => {
                    nth += 1;
                    Which::Nth(nth - 1)
                }
            };
            self.entries.push(InputRequest { which, tensor });
            if self.entries.len() > limits::TENSORS {
                return Err(UsageError::new(format!("more than {} inputs", limits::TENSORS)));
            }
        }
        if named > 0 && nth > 0 {
            return Err(UsageError::new(format!(
                "{flag} is given with and without WHICH=: name all inputs, or list them in order"
            )));
        }
        if none && (named > 0 || nth > 0) {
            return Err(UsageError::new(format!("{flag} none means that there are no inputs; leave the others out")));
        }
        Ok((none || nth > 0).then_some(nth))
    }

    /// Every `--dim` must be used, and be given once.
    fn check_dims(&self) -> Result<(), UsageError> {
        let used: Vec<&str> = self.entries.iter().flat_map(|e| e.tensor.names()).collect();
        for (at, (name, _)) in self.dims.iter().enumerate() {
            if self.dims.iter().take(at).any(|(other, _)| other == name) {
                return Err(UsageError::new(format!("--dim {name} is given twice")));
            }
            if !used.contains(&name.as_str()) {
                let hint = if used.is_empty() { "write it as a size, f32[B, 10]" } else { "sizes are named" };
                return Err(UsageError::new(format!("--dim {name}: no shape uses it; {hint} {}", used.join(", "))));
            }
        }
        Ok(())
    }

    /// Binds the requests to the inputs of a model.
    pub fn resolve(&self, inputs: &[TensorSpec]) -> Resolved {
        let mut resolved = Resolved::default();
        for entry in &self.entries {
            let position = match &entry.which {
                Which::Nth(n) if *n < inputs.len() => *n,
                Which::Nth(n) => {
                    resolved.surplus.insert(*n);
                    continue;
                }
                Which::Named(name) => match find_input(name, inputs) {
                    Ok(position) => position,
                    Err(error) => {
                        resolved.missing.push((name.clone(), error));
                        continue;
                    }
                },
            };
            let merged = resolved.tensors.entry(position).or_default();
            if let Err(what) = merged.merge(&entry.tensor) {
                resolved.twice.push(UsageError::new(format!("the {what} of input {position} is given twice")));
            }
        }
        resolved
    }
}

/// Requests by position.
#[derive(Debug, Clone, Default)]
pub struct Resolved {
    /// position and all that is asked about it
    pub tensors: BTreeMap<usize, TensorRequest>,
    /// positions given in order that the model does not have
    pub surplus: std::collections::BTreeSet<usize>,
    /// names that no input has, or more than one
    pub missing: Vec<(String, UsageError)>,
    /// the same part of one input, asked twice
    pub twice: Vec<UsageError>,
}

impl TensorRequest {
    /// Takes over the parts of `other`.
    fn merge(&mut self, other: &Self) -> Result<(), &'static str> {
        fn take<T: Clone>(into: &mut Option<T>, from: Option<&T>, what: &'static str) -> Result<(), &'static str> {
            match (&into, from) {
                (Some(_), Some(_)) => Err(what),
                (None, Some(value)) => {
                    *into = Some(value.clone());
                    Ok(())
                }
                _ => Ok(()),
            }
        }
        take(&mut self.dtype, other.dtype.as_ref(), "dtype")?;
        take(&mut self.shape, other.shape.as_ref(), "shape")?;
        take(&mut self.stride, other.stride.as_ref(), "stride")?;
        take(&mut self.device, other.device.as_ref(), "device")
    }

    /// Names used as sizes or strides.
    pub fn names(&self) -> Vec<&str> {
        let strides = match &self.stride {
            Some(super::tensor::StrideRequest::Values(values)) => values.as_slice(),
            _ => &[],
        };
        let sizes = self.shape.iter().flatten().chain(strides);
        sizes
            .flat_map(|size| match size {
                super::size::Size::Is(expr) => expr.symbols(),
                _ => Vec::new(),
            })
            .collect()
    }
}

/// `B=1..512`: a name and its size or range.
///
/// # Errors
/// For anything else.
pub fn parse_dim(text: &str) -> Result<(String, Span), UsageError> {
    let place = format!("--dim {text}");
    let Some((name, span)) = text.split_once('=') else {
        return Err(UsageError::new(format!("{place}: write NAME=1..512 or NAME=8")));
    };
    let name = name.trim();
    if !is_name(name) {
        return Err(UsageError::new(format!("{place}: `{name}` is no name; letters, digits and _ make one")));
    }
    Ok((name.to_owned(), parse_span(span).map_err(|e| e.within(&place))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|t| (*t).to_owned()).collect()
    }

    fn input(list: &[&str]) -> Result<InputRequests, UsageError> {
        InputRequests::from_texts(InputTexts { input: &texts(list), ..InputTexts::default() })
    }

    #[test]
    fn unnamed_inputs_are_the_whole_list() {
        assert_eq!(input(&["f32[2]", "i64[3]"]).unwrap().count, Some(2));
        assert_eq!(input(&["none"]).unwrap().count, Some(0));
        assert_eq!(input(&["x=f32[2]"]).unwrap().count, None);
        assert!(input(&["x=f32[2]", "f32[2]"]).unwrap_err().to_string().contains("with and without"));
        assert!(input(&["none", "f32[2]"]).is_err());
    }

    #[test]
    fn shapes_alone_do_not_count() {
        let shape = texts(&["2x10"]);
        let requests = InputRequests::from_texts(InputTexts { shape: &shape, ..InputTexts::default() }).unwrap();
        assert_eq!((requests.count, requests.entries.len()), (None, 1));
    }

    #[test]
    fn the_same_part_twice_is_wrong() {
        let (a, b) = (texts(&["f32[2]"]), texts(&["3"]));
        let requests = InputRequests::from_texts(InputTexts { input: &a, shape: &b, ..InputTexts::default() }).unwrap();
        let resolved = requests.resolve(&[TensorSpec::default()]);
        assert!(resolved.twice.first().unwrap().to_string().contains("shape of input 0"));
    }

    #[test]
    fn names_of_dims_must_be_used() {
        let (shape, dim) = (texts(&["Bx10"]), texts(&["C=1..5"]));
        let error =
            InputRequests::from_texts(InputTexts { shape: &shape, dim: &dim, ..InputTexts::default() }).unwrap_err();
        assert!(error.to_string().contains("no shape uses it"));
    }
}
