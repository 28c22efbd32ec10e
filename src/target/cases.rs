//! `--cases`: many input lists, one JSON object a line, as recorded from real calls.

use super::UsageError;
use super::size::Size;
use super::tensor::{StrideRequest, TensorRequest, parse_device, parse_dtype};
use crate::limits;
use crate::model::Expr;
use serde::Deserialize;

/// One list of inputs, and how often it occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputCase {
    /// line of the file, from 1
    pub line: usize,
    /// occurrences
    pub count: u64,
    /// in input order, complete
    pub inputs: Vec<TensorRequest>,
}

/// Fields that are not ours are let through: recorders add their own.
#[derive(Deserialize)]
#[serde(expecting = "an object such as {\"inputs\": [{\"dtype\": \"float32\", \"shape\": [2, 10]}]}")]
struct Row {
    inputs: Vec<RowTensor>,
    #[serde(default = "one")]
    count: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object such as {\"dtype\": \"float32\", \"shape\": [2, 10]}")]
struct RowTensor {
    dtype: Option<String>,
    shape: Option<Vec<i64>>,
    stride: Option<Vec<i64>>,
    device: Option<String>,
}

fn one() -> u64 {
    1
}

/// Reads the text of a cases file; blank lines are skipped.
///
/// # Errors
/// With the line of the first one that is wrong.
pub fn parse_cases(text: &str) -> Result<Vec<InputCase>, UsageError> {
    let rows = || text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
    // counted before a row is parsed: what is refused should not take its time and memory first
    if rows().nth(limits::CASES).is_some() {
        return Err(UsageError::new(format!("more than {} cases", limits::CASES)));
    }
    let mut cases = Vec::new();
    for (at, text) in rows() {
        let line = at + 1;
        cases.push(parse_case(text, line).map_err(|e| e.within(&format!("line {line}")))?);
    }
    if cases.is_empty() {
        return Err(UsageError::new("no case in it: one JSON object a line, {\"inputs\": [{\"dtype\": …}]}"));
    }
    Ok(cases)
}

fn parse_case(text: &str, line: usize) -> Result<InputCase, UsageError> {
    if !text.trim_start().starts_with('{') {
        return Err(UsageError::new("no JSON object: {\"inputs\": [{\"dtype\": …}]}"));
    }
    let row: Row = serde_json::from_str(text).map_err(|e| UsageError::new(e.to_string()))?;
    let inputs = row.inputs.into_iter().map(tensor).collect::<Result<_, _>>()?;
    Ok(InputCase { line, count: row.count, inputs })
}

fn tensor(row: RowTensor) -> Result<TensorRequest, UsageError> {
    if row.dtype.is_none() && row.shape.is_none() {
        return Err(UsageError::new("an input states neither dtype nor shape"));
    }
    let sizes = |list: Vec<i64>| list.into_iter().map(|n| Size::Is(Expr::Int(n))).collect::<Vec<_>>();
    if row.shape.iter().chain(&row.stride).any(|list| list.len() > limits::RANK) {
        return Err(UsageError::new(format!("a tensor has at most {} dims", limits::RANK)));
    }
    if let (Some(shape), Some(stride)) = (&row.shape, &row.stride)
        && shape.len() != stride.len()
    {
        return Err(UsageError::new(format!("{} strides for {} dims", stride.len(), shape.len())));
    }
    Ok(TensorRequest {
        dtype: row.dtype.as_deref().map(parse_dtype).transpose()?,
        shape: row.shape.map(sizes),
        stride: row.stride.map(|list| StrideRequest::Values(sizes(list))),
        device: row.device.as_deref().map(parse_device).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_recorded_rows() {
        let text = r#"{"artifact": "a.pt2", "inputs": [{"dtype": "float32", "shape": [2, 5], "stride": [5, 1], "device": "cpu"}], "count": 7}

{"inputs": []}"#;
        let cases = parse_cases(text).unwrap();
        assert_eq!(cases.iter().map(|c| (c.line, c.count, c.inputs.len())).collect::<Vec<_>>(), [(1, 7, 1), (3, 1, 0)]);
    }

    #[test]
    fn names_the_line_that_is_wrong() {
        let message = parse_cases("{\"inputs\": []}\n{\"inputs\": [{\"dtype\": \"flot32\"}]}").unwrap_err().to_string();
        assert!(message.starts_with("line 2: ") && message.contains("float32"), "{message}");
        assert!(parse_cases("\n").is_err());
        for vague in [r#"{"inputs": [{}]}"#, r#"{"inputs": [{"shap": [1]}]}"#, r#"[[{"dtype": "float32"}], 1]"#] {
            assert!(parse_cases(vague).is_err(), "{vague}");
        }
    }

    #[test]
    fn the_number_of_cases_has_a_border() {
        // rows that are wrong: at the border they are looked at
        let of = |count: usize| parse_cases(&"x\n".repeat(count)).unwrap_err().to_string();
        assert!(of(limits::CASES).starts_with("line 1: "));
        assert_eq!(of(limits::CASES + 1), "more than 1000000 cases");
    }

    #[test]
    fn dims_of_a_case_have_a_border() {
        let of = |rank: usize| {
            let shape = vec!["1"; rank].join(",");
            parse_cases(&format!("{{\"inputs\": [{{\"shape\": [{shape}]}}]}}")).map(|cases| cases.len())
        };
        assert_eq!(of(limits::RANK), Ok(1));
        assert!(of(limits::RANK + 1).unwrap_err().to_string().contains("at most 64 dims"));
    }
}
