//! Exported programs: inputs, outputs, ranges and guards of `models/<name>.json` (2.8+) and of
//! `serialized_exported_program.json` (2.1 to 2.7) (format reference 1.6; torch/_export/serde/schema.py).

use super::call_spec::{self, Argument, Leaf};
use super::expression::{self, Access, Property};
use super::json;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::{
    Bounds, DType, Device, DeviceKind, Dim, Evidence, Exported, Expr, Guard, Label, SymbolRange, TensorSpec, Witness,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads a program; `name` is its name in the archive, `member` the member it stands in.
///
/// # Errors
/// Not JSON, without graph and signature, or more of a list than [`limits::TENSORS`].
pub fn read(text: &[u8], name: &str, member: &str) -> Result<Exported> {
    let value = json::parse(text)?;
    let program = Program::find(&value)?;
    let ranges = program.ranges()?;
    let signature = program.module_signature();
    let in_leaves = spec_leaves(signature, "in_spec", call_spec::input_leaves);
    let out_leaves = spec_leaves(signature, "out_spec", call_spec::output_leaves);
    let parameters: Vec<&str> = signature
        .and_then(|s| s.get("forward_arg_names"))
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut inputs = Vec::new();
    let user_inputs = program.user_inputs()?;
    for (position, argument) in user_inputs.iter().enumerate() {
        let Some(tensor) = argument.tensor else { continue };
        let mut spec = program.tensor(tensor, inputs.len(), &ranges, member);
        // all user inputs are leaves, tensors or not
        let leaf = in_leaves.as_ref().filter(|l| l.len() == user_inputs.len()).and_then(|l| l.get(position));
        spec.path = leaf.map(|l| l.path.clone());
        let label = leaf.and_then(|l| label(l, &parameters)).unwrap_or_else(|| tensor.to_owned());
        spec.labels.push(Label { name: label, source: Witness::ExportedProgram });
        inputs.push((spec, leaf));
    }
    let tensors = program.user_outputs()?;
    let mut outputs = Vec::new();
    for (position, tensor) in tensors.iter().enumerate() {
        let Some(tensor) = tensor else { continue };
        let mut spec = program.tensor(tensor, outputs.len(), &ranges, member);
        let leaf = out_leaves.as_ref().filter(|l| l.len() == tensors.len()).and_then(|l| l.get(position));
        spec.path = leaf.map(|l| l.path.clone());
        outputs.push(spec);
    }
    let guards = program.guards(&inputs, &parameters)?;
    let inputs: Vec<TensorSpec> = inputs.into_iter().map(|(spec, _)| spec).collect();
    Ok(Exported {
        name: name.to_owned(),
        torch_version: value.get("torch_version").and_then(Value::as_str).map(str::to_owned),
        symbols: symbols(&ranges, &inputs),
        inputs,
        outputs,
        guards,
    })
}

/// `ids`, or `d['f16']` for a part of a parameter.
fn label(leaf: &Leaf, parameters: &[&str]) -> Option<String> {
    let name = match leaf.argument.as_ref()? {
        Argument::Position(n) => parameters.get(*n).copied()?,
        Argument::Keyword(name) => name,
    };
    Some(format!("{name}{}", leaf.inner_path()))
}

fn spec_leaves(signature: Option<&Value>, key: &str, read: fn(&str) -> Result<Option<Vec<Leaf>>>) -> Option<Vec<Leaf>> {
    read(signature?.get(key)?.as_str()?).ok().flatten()
}

struct Program<'a> {
    whole: &'a Value,
    graph: &'a Value,
    signature: &'a Value,
    module_call_graph: Option<&'a Value>,
}

/// A user input: the tensor's name, or `None` for a number, text or nothing that was baked in.
struct UserInput<'a> {
    tensor: Option<&'a str>,
}

type Ranges = BTreeMap<String, Bounds>;

impl<'a> Program<'a> {
    fn find(value: &'a Value) -> Result<Self> {
        let module = value.get("graph_module").ok_or_else(|| Error::damaged("has no graph_module"))?;
        let part = |key: &str| module.get(key).ok_or_else(|| Error::damaged(format!("its graph_module has no {key}")));
        Ok(Self {
            whole: value,
            graph: part("graph")?,
            signature: part("signature")?,
            module_call_graph: module.get("module_call_graph"),
        })
    }

    /// Signature of the whole module: the entry whose name is empty.
    fn module_signature(&self) -> Option<&'a Value> {
        let calls = self.module_call_graph?.as_array()?;
        let own = calls.iter().find(|call| call.get("fqn").and_then(Value::as_str) == Some("")).or(calls.first());
        own?.get("signature").filter(|s| !s.is_null())
    }

    fn user_inputs(&self) -> Result<Vec<UserInput<'a>>> {
        let specs = self.signature.get("input_specs").and_then(Value::as_array);
        let Some(specs) = specs else {
            // torch 2.1 lists plain names
            let names = self.signature.get("user_inputs").and_then(Value::as_array);
            let names = names.ok_or_else(|| Error::damaged("its signature has no inputs"))?;
            return Ok(names.iter().map(|name| UserInput { tensor: name.as_str() }).collect());
        };
        all_of(specs.len(), "inputs")?;
        let user = specs.iter().filter_map(|spec| {
            if let Some(user) = spec.get("user_input") {
                return Some(UserInput { tensor: user.get("arg").and_then(tensor_name) });
            }
            // numbers, texts and None have a kind of their own since 2.4
            spec.get("constant_input").map(|_| UserInput { tensor: None })
        });
        Ok(user.collect())
    }

    /// Names of the user's outputs in order; `None` for what is no tensor.
    fn user_outputs(&self) -> Result<Vec<Option<&'a str>>> {
        let specs = self.signature.get("output_specs").and_then(Value::as_array);
        let Some(specs) = specs else {
            let names = self.signature.get("user_outputs").and_then(Value::as_array);
            return Ok(names.map(|names| names.iter().map(Value::as_str).collect()).unwrap_or_default());
        };
        all_of(specs.len(), "outputs")?;
        let user = specs.iter().filter_map(|spec| spec.get("user_output"));
        Ok(user.map(|user| user.get("arg").and_then(tensor_name)).collect())
    }

    fn ranges(&self) -> Result<Ranges> {
        let Some(map) = self.whole.get("range_constraints").and_then(Value::as_object) else {
            return Ok(Ranges::new());
        };
        all_of(map.len(), "ranges")?;
        let bound = |row: &Value, new: &str, old: &str| row.get(new).or_else(|| row.get(old)).and_then(Value::as_i64);
        Ok(map
            .iter()
            .map(|(key, row)| (key.clone(), (bound(row, "min_val", "_min"), bound(row, "max_val", "_max"))))
            .collect())
    }

    fn tensor(&self, name: &str, index: usize, ranges: &Ranges, member: &str) -> TensorSpec {
        let said = Evidence::new(Witness::ExportedProgram, format!("tensor {name}")).in_member(member);
        let mut spec = TensorSpec { index, name: Some(name.to_owned()), evidence: vec![said], ..TensorSpec::default() };
        let Some(meta) = self.graph.get("tensor_values").and_then(|values| values.get(name)) else { return spec };
        // 2.1 wraps the numbers once more
        let meta = meta.get("meta").unwrap_or(meta);
        let number = meta.get("dtype").and_then(|d| d.as_i64().or_else(|| d.get("value")?.as_i64()));
        spec.dtype = number
            .and_then(|n| i32::try_from(n).ok())
            .map(|n| DType::from_export(n).unwrap_or_else(|| DType::Other(format!("export dtype {n}"))));
        let dims = |key: &str| {
            let list = meta.get(key)?.as_array().filter(|l| l.len() <= limits::RANK)?;
            Some(list.iter().map(|size| dim(size, ranges)).collect::<Vec<_>>())
        };
        spec.shape = dims("sizes");
        spec.rank = spec.shape.as_ref().map(Vec::len);
        spec.stride = dims("strides");
        spec.device = meta.get("device").and_then(device);
        spec
    }

    /// Guards with their sizes named by input and dim.
    fn guards(&self, inputs: &[(TensorSpec, Option<&Leaf>)], parameters: &[&str]) -> Result<Vec<Guard>> {
        let resolve = |access: &Access| {
            let wanted = format!("{}{}", access.parameter, access.path);
            let (index, _) = inputs.iter().enumerate().find(|(_, (spec, leaf))| {
                leaf.and_then(|l| label(l, parameters)).is_some_and(|l| l == wanted)
                    || (leaf.is_none() && spec.name.as_deref() == Some(&wanted))
            })?;
            match access.property {
                Property::Size(d) => Some(format!("inputs[{index}].shape[{d}]")),
                Property::Stride(d) => Some(format!("inputs[{index}].stride[{d}]")),
                Property::StorageOffset | Property::Value => None,
            }
        };
        let texts = self.whole.get("guards_code").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        all_of(texts.len(), "guards")?;
        let guards = texts.iter().filter_map(Value::as_str);
        Ok(guards
            .map(|code| Guard { code: code.to_owned(), condition: expression::parse_condition(code, &resolve) })
            .collect())
    }
}

/// A part of a list would pass for all of it: sizes without a bound, calls that no guard refuses.
fn all_of(count: usize, what: &str) -> Result<()> {
    if count > limits::TENSORS {
        return Err(Error::limit(format!("{count} {what}, more than {}", limits::TENSORS)));
    }
    Ok(())
}

fn tensor_name(argument: &Value) -> Option<&str> {
    let tensor = argument.get("as_tensor").or_else(|| argument.get("as_optional_tensor")?.get("as_tensor"))?;
    tensor.get("name")?.as_str()
}

fn device(value: &Value) -> Option<Device> {
    let kind = DeviceKind::from_name(value.get("type")?.as_str()?);
    let index = value.get("index").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    Some(Device { kind, index })
}

/// `{"as_int": 10}`, `{"as_expr": {"expr_str": "2*s77", "hint": …}}`.
fn dim(size: &Value, ranges: &Ranges) -> Option<Dim> {
    if let Some(n) = size.get("as_int").and_then(Value::as_i64) {
        return Some(Dim::fixed(n));
    }
    let text = size.get("as_expr")?.get("expr_str")?.as_str()?;
    let expr = expression::parse_expression(text)?;
    let (min, max) = match ranges.get(text) {
        Some(bounds) => *bounds,
        None => expr.range(&|symbol| ranges.get(symbol).copied().unwrap_or((Some(0), None))),
    };
    Some(Dim::from_expr(expr, min, max))
}

/// Symbols of the inputs with the dims that are exactly them.
fn symbols(ranges: &Ranges, inputs: &[TensorSpec]) -> Vec<SymbolRange> {
    let mut found: Vec<SymbolRange> = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        for (d, dim) in input.shape.iter().flatten().enumerate() {
            let Some(dim) = dim else { continue };
            let expr = dim.expr();
            for symbol in expr.symbols() {
                let subject = matches!(expr, Expr::Symbol(_)).then(|| format!("inputs[{index}].shape[{d}]"));
                match found.iter_mut().find(|row| row.symbol == symbol) {
                    Some(row) => row.subjects.extend(subject),
                    None => {
                        let (min, max) = ranges.get(symbol).copied().unwrap_or((None, None));
                        let subjects = subject.into_iter().collect();
                        found.push(SymbolRange { symbol: symbol.to_owned(), min, max, subjects });
                    }
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf() -> Value {
        serde_json::json!({"type": null, "context": null, "children_spec": []})
    }

    /// A program with `forward(x, flag, *, k)`: two tensors and a number baked in.
    fn program() -> Value {
        let tuple = serde_json::json!({"type": "builtins.tuple", "context": "null", "children_spec": [leaf(), leaf()]});
        let dict = serde_json::json!({"type": "builtins.dict", "context": "[\"k\"]", "children_spec": [leaf()]});
        let in_spec =
            serde_json::json!([1, {"type": "builtins.tuple", "context": "null", "children_spec": [tuple, dict]}]);
        let out_spec =
            serde_json::json!([1, {"type": "builtins.dict", "context": "[\"y\"]", "children_spec": [leaf()]}]);
        let size = |text: &str| serde_json::json!({"as_expr": {"expr_str": text, "hint": {"as_int": 8}}});
        let tensor = |sizes: Vec<Value>| {
            serde_json::json!({"dtype": 7, "sizes": sizes, "strides": [{"as_int": 1}],
                "device": {"type": "cuda", "index": 0}})
        };
        let user = |name: &str| serde_json::json!({"user_input": {"arg": {"as_tensor": {"name": name}}}});
        serde_json::json!({
            "torch_version": "2.15.0",
            "range_constraints": {"s77": {"min_val": 1, "max_val": 1024}, "s3": {"min_val": 0, "max_val": null}},
            "guards_code": ["L['x'].size()[0] % 4 == 0", "L['k'].size()[0] == 2 * L['x'].size()[0]", "is_fine(L['x'])"],
            "graph_module": {
                "graph": {"tensor_values": {
                    "x": tensor(vec![size("s77")]),
                    "k": tensor(vec![size("2*s77")]),
                    "mul": tensor(vec![size("Max(1, s77)")])}},
                "signature": {
                    "input_specs": [
                        {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
                        user("x"), {"constant_input": {"name": "flag", "value": {"as_int": 3}}}, user("k")],
                    "output_specs": [
                        {"buffer_mutation": {"arg": {"name": "add"}, "buffer_name": "b"}},
                        {"user_output": {"arg": {"as_tensor": {"name": "mul"}}}}]},
                "module_call_graph": [{"fqn": "", "signature": {
                    "in_spec": in_spec.to_string(), "out_spec": out_spec.to_string(),
                    "forward_arg_names": ["x", "flag", "k"]}}]}})
    }

    fn shape(spec: &TensorSpec) -> Vec<String> {
        let dims = spec.shape.iter().flatten();
        dims.map(|d| serde_json::to_value(d.as_ref().unwrap()).unwrap().to_string()).collect()
    }

    #[test]
    fn signature_ranges_and_labels() {
        let got = read(program().to_string().as_bytes(), "model", "models/model.json").unwrap();
        let paths: Vec<_> = got.inputs.iter().map(|i| i.path.as_deref().unwrap()).collect();
        assert_eq!(paths, ["args[0]", "kwargs['k']"]);
        let labels: Vec<_> = got.inputs.iter().map(|i| i.labels.first().unwrap().name.as_str()).collect();
        assert_eq!(labels, ["x", "k"]);
        assert_eq!(got.inputs.first().map(shape).unwrap(), [r#"{"max":1024,"min":1,"symbol":"s77"}"#]);
        assert_eq!(got.inputs.get(1).map(shape).unwrap(), [r#"{"expr":"2*s77","max":2048,"min":2}"#]);
        assert_eq!(got.outputs.first().and_then(|o| o.path.as_deref()), Some("['y']"));
        assert_eq!(
            got.inputs.first().and_then(|i| i.device.as_ref()).map(ToString::to_string).as_deref(),
            Some("cuda:0")
        );
        assert_eq!(got.symbols.len(), 1);
        assert_eq!(got.torch_version.as_deref(), Some("2.15.0"));
    }

    #[test]
    fn guards_can_be_evaluated_by_place() {
        let got = read(program().to_string().as_bytes(), "model", "m").unwrap();
        let value = |x: i64, k: i64| move |place: &str| (place == "inputs[0].shape[0]").then_some(x).or(Some(k));
        let holds = |n: usize, x: i64, k: i64| got.guards[n].condition.as_ref().and_then(|c| c.eval(&value(x, k)));
        assert_eq!((holds(0, 8, 0), holds(0, 6, 0)), (Some(true), Some(false)));
        assert_eq!((holds(1, 3, 6), holds(1, 3, 7)), (Some(true), Some(false)));
        assert_eq!(got.guards[2].condition, None);
    }

    #[test]
    fn lists_have_a_border() {
        let of = |place: &str, list: Value| {
            let mut program = program();
            *program.pointer_mut(place).unwrap() = list;
            let program = Program::find(&program).unwrap();
            let read = [
                program.user_inputs().map(|l| l.len()),
                program.user_outputs().map(|l| l.len()),
                program.ranges().map(|l| l.len()),
                program.guards(&[], &[]).map(|l| l.len()),
            ];
            read.into_iter().collect::<Result<Vec<usize>>>().map_err(|e| e.to_string())
        };
        let rows = |count: usize| -> Value { vec![serde_json::json!({}); count].into() };
        let texts = |count: usize| -> Value { vec![""; count].into() };
        let ranges = |count: usize| -> Value { (0..count).map(|n| (n.to_string(), Value::Null)).collect() };
        let signature = |list: &str| format!("/graph_module/signature/{list}");
        let most = limits::TENSORS;
        assert_eq!(of(&signature("input_specs"), rows(most)), Ok(vec![0, 1, 2, 3]));
        assert!(of(&signature("input_specs"), rows(most + 1)).unwrap_err().contains("65537 inputs, more than 65536"));
        assert_eq!(of(&signature("output_specs"), rows(most)), Ok(vec![2 + 1, 0, 2, 3]));
        assert!(of(&signature("output_specs"), rows(most + 1)).unwrap_err().contains("65537 outputs"));
        assert_eq!(of("/range_constraints", ranges(most)), Ok(vec![3, 1, most, 3]));
        assert!(of("/range_constraints", ranges(most + 1)).unwrap_err().contains("65537 ranges"));
        assert_eq!(of("/guards_code", texts(most)), Ok(vec![3, 1, 2, most]));
        assert!(of("/guards_code", texts(most + 1)).unwrap_err().contains("65537 guards"));
    }

    #[test]
    fn damage_is_an_error_and_missing_parts_are_unknown() {
        assert!(read(b"{}", "m", "m").is_err());
        assert!(read(b"{\"graph_module\": {\"graph\": {}}}", "m", "m").is_err());
        let mut bare = program();
        bare["graph_module"]["graph"]["tensor_values"] = Value::Null;
        bare["graph_module"]["module_call_graph"] = Value::Null;
        let got = read(bare.to_string().as_bytes(), "m", "m").unwrap();
        assert_eq!(got.inputs.len(), 2);
        assert_eq!(got.inputs.first().map(|i| (i.shape.clone(), i.path.clone())), Some((None, None)));
    }
}
