//! `init`: a commented project file, with an artefact's own interface as the agreed one.

use super::CliError;
use super::arguments::{InitArgs, OutputArgs};
use super::open;
use crate::Settings;
use crate::model::{Artifact, Dim, Model, TensorSpec};
use crate::report::Exit;
use crate::target::project::FILE_NAME;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Writes `aoti-inspect.toml` here, or where `--output` says; an existing one here is left alone unless `--force`.
pub fn run(args: &InitArgs, output: &OutputArgs) -> Result<Exit, CliError> {
    let artifact = match &args.artifact {
        None => None,
        Some(path) => {
            let opened = open::open(std::slice::from_ref(path), &Settings::default())?;
            let Some(artifact) = opened.artifacts.into_iter().next() else { return Ok(Exit::Unreadable) };
            if let Some(error) = &artifact.error {
                super::complain(&format!("{}: {error}", path.display()));
                return Ok(Exit::Unreadable);
            }
            Some(artifact)
        }
    };
    let text = project_file(artifact.as_ref());
    if args.stdout || !output.output.is_empty() {
        output.write_text(&text)?;
        return Ok(Exit::Holds);
    }
    let file = Path::new(FILE_NAME);
    let mut options = std::fs::OpenOptions::new();
    if args.force {
        options.write(true).create(true).truncate(true);
    } else {
        options.write(true).create_new(true);
    }
    let written = options.open(file).and_then(|mut f| f.write_all(text.as_bytes()));
    written.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            CliError::usage(format!("{FILE_NAME} is there already: --force writes over it, --stdout prints"))
        }
        _ => CliError::Io(format!("cannot write {FILE_NAME}: {e}")),
    })?;
    super::remark(&[format!("{FILE_NAME} is written: `aoti-inspect verify` runs what it says")]);
    Ok(Exit::Holds)
}

fn project_file(artifact: Option<&Artifact>) -> String {
    let mut text = String::from(
        "# What must hold before artefacts are deployed: `aoti-inspect verify` in this folder checks all of it.\n\
         version = 1\n",
    );
    let device = artifact.and_then(|a| a.models.first()).and_then(|m| m.device.as_ref());
    let device = device.map_or_else(|| "cpu".to_owned(), ToString::to_string);
    let _ = write!(
        text,
        "\n# Where artefacts run. Keys are the flags of `aoti-inspect verify`; what is not set is not checked.\n\
         # `aoti-inspect host` prints those of a machine.\n\
         [target.production]\ndevice = {}\n",
        quoted(&device)
    );
    if device.starts_with("cuda") {
        text.push_str("# gpu = [\"H100\"]\n# driver = \"550.54\"\n# gpu_memory = \"80GiB\"\n");
    }
    text.push_str("# torch = \"2.9.1+cu128\"\n# cpu = \"x86-64-v3\"\n# glibc = \"2.34\"\n");
    text.push_str("\n# Which artefacts must satisfy which targets. A path may be a glob.\n");
    match artifact {
        Some(artifact) => entry(artifact, &mut text),
        None => text.push_str(
            "# [[artifact]]\n# path = \"build/*.pt2\"\n# targets = [\"production\"]\n\
             # inputs = [\"f32[B, 13]\", \"i64[B, 26]\"]      # what the caller passes\n\
             # dims = { B = \"1..512\" }\n",
        ),
    }
    text.push_str(
        "\n# How much a finding counts: allow, warn, deny. `aoti-inspect codes` lists them.\n[level]\n\
         # input-not-contiguous = \"deny\"\n\n\
         # Findings that are accepted for a while.\n# [[waiver]]\n# code = \"libtorch-leaked-cxx\"\n\
         # path = \"build/legacy/*\"\n# reason = \"rebuilt in the next release\"\n# until = 2027-03-01\n\n\
         # Sizes that no artefact may exceed.\n[budget]\n# package = \"200MiB\"\n# weights = \"150MiB\"\n\
         # library = \"50MiB\"\n",
    );
    text
}

fn entry(artifact: &Artifact, text: &mut String) {
    let _ = write!(text, "[[artifact]]\npath = {}\ntargets = [\"production\"]\n", quoted(&artifact.path));
    if let Some(id) = &artifact.interface_id {
        let _ = write!(
            text,
            "# Hash over device, inputs, outputs and constants: a build that changes one of them fails.\n\
             interface_id = {}\n",
            quoted(id)
        );
    }
    let [model] = artifact.models.as_slice() else { return };
    let Some(inputs) = specs(model) else {
        text.push_str("# inputs = [...]      # this artefact does not state dtype and shape of its inputs\n");
        return;
    };
    text.push_str("# What the caller passes: narrow the ranges to what you really send.\ninputs = [\n");
    for (spec, input) in inputs.iter().zip(model.inputs.iter().flatten()) {
        let name = input.path.as_ref().or(input.name.as_ref());
        let name = name.map(|n| format!("  # {}", crate::render::escape::plain(n))).unwrap_or_default();
        let _ = writeln!(text, "  {},{name}", quoted(spec));
    }
    text.push_str("]\n");
    let dims: Vec<String> = ranges(model).iter().map(|(name, range)| format!("{name} = {}", quoted(range))).collect();
    if !dims.is_empty() {
        let _ = writeln!(text, "dims = {{ {} }}", dims.join(", "));
    }
}

/// Inputs in the notation of `--input`; `None` when one is not known in full.
fn specs(model: &Model) -> Option<Vec<String>> {
    let spec = |input: &TensorSpec| {
        let dims: Option<Vec<String>> = input.shape.as_ref()?.iter().map(|dim| dim.as_ref().map(dim_text)).collect();
        Some(format!("{}[{}]", input.dtype.as_ref()?, dims?.join(", ")))
    };
    model.inputs.as_ref()?.iter().map(spec).collect()
}

/// A size or a name; what depends on other dims is not asked here, the artefact's own relation decides.
fn dim_text(dim: &Dim) -> String {
    match dim {
        Dim::Static { size } => size.to_string(),
        Dim::Symbol { symbol, .. } => symbol.clone(),
        Dim::Expr { .. } => "_".to_owned(),
    }
}

/// Ranges of the symbols that stand alone; without an upper bound a plausible one has to be written by hand.
fn ranges(model: &Model) -> BTreeMap<String, String> {
    let dims = model.inputs.iter().flatten().flat_map(|i| i.shape.iter().flatten().flatten());
    dims.filter_map(|dim| match dim {
        Dim::Symbol { symbol, min, max } => {
            let low = min.unwrap_or(0);
            Some((symbol.clone(), format!("{low}..{}", max.unwrap_or_else(|| low.saturating_add(1024)))))
        }
        _ => None,
    })
    .collect()
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
