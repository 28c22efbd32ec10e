//! Readers' findings into one [`Artifact`]: the one place that weighs witnesses against each other.
//!
//! A fact is taken from the cheapest witness that states it, and its evidence names that witness; what the machine code
//! proves beats what source, metadata and file names claim (design: "Principles" 2 and 3). What no witness states is
//! unknown with a reason.

mod call;
mod claims;
mod constants;
mod device;
mod identity;
mod kernels;
mod library;
mod model;
mod symbols;
mod trace;
mod weigh;
mod witnesses;

use crate::container::{Container, LookAlike};
use crate::error::Place;
use crate::image::Image;
use crate::model::{Artifact, Kind, Problem, Unknown};
use crate::{limits, metadata};

/// When machine code is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CodeReading {
    /// where nothing cheaper states the facts: `show`
    #[default]
    WhenNeeded,
    /// always, so that claims are checked: `verify`, `show --deep`
    Always,
    /// not at all: `--no-interpret`
    Never,
}

/// What is worth which effort.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// when machine code is read
    pub code: CodeReading,
    /// decode all code for the instruction sets it uses
    pub scans_instructions: bool,
    /// keep what one run does, step by step; reads machine code for it: `--trace`
    pub traces: bool,
    /// hash the whole file: `--digest`
    pub hashes_file: bool,
    /// instructions interpreted at most, for all models together
    pub instructions: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            code: CodeReading::WhenNeeded,
            scans_instructions: false,
            traces: false,
            hashes_file: false,
            instructions: limits::ARTIFACT_INSTRUCTIONS,
        }
    }
}

/// Everything that an opened file says. `path` is shown as it is given.
pub fn assemble(path: &str, container: &Container, settings: &Settings) -> Artifact {
    let mut artifact = Artifact {
        path: path.to_owned(),
        kind: container.kind(),
        size_bytes: container.size_bytes(),
        interface_id: None,
        sha256: if settings.hashes_file { container.sha256() } else { None },
        archive: container.archive(),
        error: container.error().map(str::to_owned),
        models: Vec::new(),
        exported: None,
        unknown: Vec::new(),
        problems: container.problems().to_vec(),
    };
    if container.kind() == Kind::Library {
        recognise_library(container, &mut artifact);
    }
    exported_program(container, &mut artifact);
    if artifact.error.is_some() {
        return artifact;
    }
    let mut broken = Vec::new();
    let mut instructions = settings.instructions;
    for (index, folder) in container.models().iter().enumerate() {
        let drawn = model::draw(container, folder, settings, &mut instructions);
        let path = |fact: &str| match fact {
            "" => format!("models[{index}]"),
            fact => format!("models[{index}].{fact}"),
        };
        artifact.unknown.extend(drawn.unknown.into_iter().map(|mut unknown| {
            unknown.fact = path(&unknown.fact);
            unknown
        }));
        artifact.problems.extend(drawn.problems.into_iter().map(|mut problem| {
            problem.affects.iter_mut().for_each(|fact| *fact = path(fact));
            problem
        }));
        broken.extend(drawn.broken_library);
        artifact.models.push(drawn.model);
    }
    if let Some(program) = &artifact.exported {
        for model in &mut artifact.models {
            call::labels(model.inputs.as_mut().map_or(&mut [], Vec::as_mut_slice), program);
        }
    }
    // one readable model is worth showing; without any there is nothing to judge
    if !broken.is_empty() && broken.len() == artifact.models.len() {
        artifact.error = broken.into_iter().next();
    }
    artifact.interface_id = identity::interface_id(&artifact.models);
    artifact
}

/// The first exported program of a mixed archive, or of an archive that holds nothing else.
fn exported_program(container: &Container, artifact: &mut Artifact) {
    let Some(member) = container.exported().next() else { return };
    let name = member.file_name().trim_end_matches(".json");
    let read = member.bytes(limits::JSON_BYTES).and_then(|text| {
        metadata::exported_program::read(text, name, member.name()).map_err(|e| e.in_member(member.name()))
    });
    match read {
        Ok(program) => artifact.exported = Some(program),
        Err(error) => {
            artifact.problems.push(claims::problem(&error, &member, "exported"));
            artifact.unknown.push(Unknown::new("exported", format!("it cannot be read: {}", error.message())));
        }
    }
    for further in container.exported().skip(1) {
        let place = Place { member: Some(further.name().to_owned()), ..Place::default() };
        let message = format!("is a further exported program; only {name} is shown");
        artifact.problems.push(Problem { place, message, affects: Vec::new() });
    }
}

/// A library is AOTInductor's when it exports the container interface (format reference, 1.1); else it is named for what
/// it is.
fn recognise_library(container: &Container, artifact: &mut Artifact) {
    let image = match Image::open(container.whole()) {
        Ok(image) => image,
        Err(error) => {
            artifact.error = Some(error.to_string());
            return;
        }
    };
    if image.export("AOTInductorModelContainerRun").is_some() {
        return;
    }
    match image.exports() {
        Ok(exports) => {
            let is_extension = exports.iter().any(|symbol| symbol.name.starts_with("PyInit_"));
            let found = LookAlike::foreign_library(is_extension);
            artifact.kind = found.kind;
            artifact.error = Some(found.sentence());
        }
        Err(error) => artifact.error = Some(error.to_string()),
    }
}
