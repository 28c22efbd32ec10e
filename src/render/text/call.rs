//! `show --call`: how to call a model from Python and from C++, with its own names.

use super::show::dims_text;
use crate::model::{Artifact, DeviceKind, Kind, Model, TensorSpec, WeightsLocation};
use crate::render::escape;
use std::collections::BTreeMap;
use std::io::{Result, Write};

/// Writes both calls of every model.
///
/// # Errors
/// Those of the writer.
pub fn render_call(artifact: &Artifact, out: &mut dyn Write) -> Result<()> {
    for model in &artifact.models {
        let Some(inputs) = &model.inputs else {
            writeln!(out, "# {}: its inputs are not known", escape::plain(&model.name))?;
            continue;
        };
        if artifact.kind == Kind::Standalone {
            let name = escape::plain(&model.name);
            writeln!(
                out,
                "# {name} is source to build a program with (its CMakeLists.txt): no loader of torch opens it"
            )?;
            continue;
        }
        python(artifact, model, inputs, out)?;
        cpp(artifact, model, inputs, out)?;
    }
    Ok(())
}

/// A C++ and Python string literal.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escape::plain(text).replace('\\', "\\\\").replace('"', "\\\""))
}

fn python(artifact: &Artifact, model: &Model, inputs: &[TensorSpec], out: &mut dyn Write) -> Result<()> {
    writeln!(out, "# Python")?;
    writeln!(out, "import torch")?;
    for (input, name) in inputs.iter().zip(variables(inputs)) {
        writeln!(out, "{name} = ...  # {}", describe(input))?;
    }
    let path = quoted(&artifact.path);
    if artifact.kind == Kind::Library {
        let device = model.device.as_ref().map_or("cpu", |d| d.kind.name());
        writeln!(out, "model = torch._export.aot_load({path}, {})", quoted(device))?;
    } else if model.name == "model" {
        writeln!(out, "model = torch._inductor.aoti_load_package({path})")?;
    } else {
        writeln!(out, "model = torch._inductor.aoti_load_package({path}, model_name={})", quoted(&model.name))?;
    }
    if model.weights.location == Some(WeightsLocation::Absent) {
        // torch/_inductor/package/package.py, AOTICompiledModel.load_constants (2.6 and newer)
        writeln!(out, "# the weights are not in the file: a run without them crashes")?;
        let call = match artifact.kind {
            Kind::Library => "# aot_load gives no way to set them: use the runner of C++",
            _ => "model.load_constants({...}, check_full_update=True)  # name -> tensor, see `show --all`",
        };
        writeln!(out, "{call}")?;
    }
    writeln!(out, "outputs = model({})\n", arguments(inputs))
}

fn cpp(artifact: &Artifact, model: &Model, inputs: &[TensorSpec], out: &mut dyn Write) -> Result<()> {
    let path = quoted(&artifact.path);
    writeln!(out, "// C++")?;
    if artifact.kind == Kind::Library {
        let (file, class) = match model.device.as_ref().map(|d| &d.kind) {
            Some(DeviceKind::Cuda) => ("cuda", "Cuda"),
            Some(DeviceKind::Xpu) => ("xpu", "Xpu"),
            Some(DeviceKind::Mps) => ("mps", "Mps"),
            _ => ("cpu", "Cpu"),
        };
        writeln!(out, "#include <torch/csrc/inductor/aoti_runner/model_container_runner_{file}.h>")?;
        writeln!(out, "torch::inductor::AOTIModelContainerRunner{class} model({path});")?;
    } else {
        writeln!(out, "#include <torch/csrc/inductor/aoti_package/model_package_loader.h>")?;
        let name = if model.name == "model" { String::new() } else { format!(", {}", quoted(&model.name)) };
        writeln!(out, "torch::inductor::AOTIModelPackageLoader model({path}{name});")?;
    }
    if model.weights.location == Some(WeightsLocation::Absent) {
        writeln!(out, "// the weights are not in the file: a run without them crashes")?;
        let function = if artifact.kind == Kind::Library { "update_constant_buffer" } else { "load_constants" };
        writeln!(out, "model.{function}(constants, /*use_inactive=*/false, /*check_full_update=*/true);")?;
    }
    writeln!(out, "std::vector<torch::Tensor> inputs = {{")?;
    for (input, name) in inputs.iter().zip(variables(inputs)) {
        writeln!(out, "    {name},  // {}", describe(input))?;
    }
    writeln!(out, "}};\nstd::vector<torch::Tensor> outputs = model.run(inputs);\n")
}

fn describe(input: &TensorSpec) -> String {
    let dtype = input.dtype.as_ref().map_or("unknown dtype", |d| d.name());
    let device = input.device.as_ref().map(|d| format!(" on {d}")).unwrap_or_default();
    let path = input.path.as_deref().unwrap_or("flat position");
    let text = format!("{} {path}: {dtype} {}{device}", input.index, dims_text(input.shape.as_deref(), input.rank));
    escape::plain(&text).into_owned()
}

/// One identifier per input: its label or the key it is passed under, else `input0`; each once.
fn variables(inputs: &[TensorSpec]) -> Vec<String> {
    let mut used = std::collections::BTreeSet::new();
    inputs
        .iter()
        .map(|input| {
            let key = input.path.as_deref().and_then(|path| keys(path)?.pop());
            let label = input.labels.first().map(|l| l.name.clone());
            let wanted = label.or(match key {
                Some(Key::Name(name)) => Some(name),
                _ => None,
            });
            let wanted = wanted.filter(|name| crate::target::size::is_name(name) && !used.contains(name));
            let name = wanted.unwrap_or_else(|| format!("input{}", input.index));
            used.insert(name.clone());
            name
        })
        .collect()
}

/// A step of a call path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Position(usize),
    Name(String),
}

/// `args[0]['x']` as its root and keys; `None` for what is no such path.
fn keys(path: &str) -> Option<Vec<Key>> {
    let start = path.find('[')?;
    let (root, mut rest) = path.split_at(start);
    let mut keys = vec![Key::Name(root.to_owned())];
    while !rest.is_empty() {
        let inner = rest.strip_prefix('[')?;
        let quote = inner.chars().next()?;
        let (key, tail) = if matches!(quote, '\'' | '"') {
            let (key, tail) = inner.get(1..)?.split_once(quote)?;
            (Key::Name(key.to_owned()), tail.strip_prefix(']')?)
        } else {
            let (digits, tail) = inner.split_once(']')?;
            (Key::Position(digits.parse().ok()?), tail)
        };
        keys.push(key);
        rest = tail;
    }
    Some(keys)
}

/// Arguments as nested as the call paths say.
#[derive(Debug, Default)]
struct Tree {
    leaf: Option<String>,
    children: BTreeMap<Key, Tree>,
}

impl Tree {
    fn insert(&mut self, keys: &[Key], leaf: String) {
        match keys.split_first() {
            None => self.leaf = Some(leaf),
            Some((first, rest)) => self.children.entry(first.clone()).or_default().insert(rest, leaf),
        }
    }
    fn text(&self) -> String {
        if let Some(leaf) = &self.leaf {
            return leaf.clone();
        }
        let parts: Vec<String> = self
            .children
            .iter()
            .map(|(key, child)| match key {
                Key::Position(_) => child.text(),
                Key::Name(name) => format!("{}: {}", quoted(name), child.text()),
            })
            .collect();
        match self.children.keys().next() {
            Some(Key::Name(_)) => format!("{{{}}}", parts.join(", ")),
            _ => format!("[{}]", parts.join(", ")),
        }
    }
}

/// The argument list of the Python call; flat where the call paths are not known.
fn arguments(inputs: &[TensorSpec]) -> String {
    let names = variables(inputs);
    let mut tree = Tree::default();
    for (input, name) in inputs.iter().zip(&names) {
        match input.path.as_deref().and_then(keys) {
            Some(keys) => tree.insert(&keys, name.clone()),
            None => return names.join(", "),
        }
    }
    let children = |root: &str| tree.children.get(&Key::Name(root.to_owned())).into_iter().flat_map(|t| &t.children);
    let args = children("args").map(|(_, child)| child.text());
    let kwargs = children("kwargs").map(|(key, child)| match key {
        Key::Name(name) if crate::target::size::is_name(name) => format!("{name}={}", child.text()),
        Key::Name(name) => format!("**{{{}: {}}}", quoted(name), child.text()),
        Key::Position(_) => child.text(),
    });
    args.chain(kwargs).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_as_nested_as_the_paths() {
        let inputs: Vec<TensorSpec> = ["args[0]['x']", "args[0]['y']", "args[1][0]", "kwargs['bias']"]
            .iter()
            .enumerate()
            .map(|(index, path)| TensorSpec { index, path: Some((*path).to_owned()), ..TensorSpec::default() })
            .collect();
        assert_eq!(arguments(&inputs), "{\"x\": x, \"y\": y}, [input2], bias=bias");
    }
}
