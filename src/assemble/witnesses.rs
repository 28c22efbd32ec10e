//! Asks the readers of one model: its generated source, and the machine code of its library.

use super::{CodeReading, Settings};
use crate::container::{Container, ModelFolder};
use crate::image::Image;
use crate::limits;
use crate::model::{Interface, Phase, Problem, Unknown};
use crate::wrapper::{self, WrapperSource};
use crate::{interpret, xref};

/// The generated source of a model, read.
pub struct Source {
    /// what it says
    pub read: WrapperSource,
    /// the same as a testimony
    pub interface: Interface,
    /// member name
    pub member: String,
}

/// Reads the wrapper, with the kernel source where that is a file of its own.
pub fn source(container: &Container, folder: &ModelFolder, problems: &mut Vec<Problem>) -> Option<Source> {
    let member = folder.wrapper.and_then(|id| container.member(id))?;
    let kernel_member = folder.kernel_source.and_then(|id| container.member(id));
    // of a package of sources nothing else is left
    let whole = || if folder.library.is_none() { vec![String::new()] } else { Vec::new() };
    let mut failed = |error: &crate::error::Error, member: &str, affects: Vec<String>| {
        let mut place = error.place().clone();
        place.member.get_or_insert_with(|| member.to_owned());
        problems.push(Problem { place, message: error.message().to_owned(), affects });
    };
    let bytes = match member.bytes(limits::SOURCE_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => {
            failed(&error, member.name(), whole());
            return None;
        }
    };
    let kernel_bytes = kernel_member.and_then(|kernel| match kernel.bytes(limits::SOURCE_BYTES) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            failed(&error, kernel.name(), vec!["kernels".to_owned()]);
            None
        }
    });
    match wrapper::read(bytes, kernel_bytes) {
        Ok(read) => {
            let interface = read.to_interface(member.name());
            Some(Source { read, interface, member: member.name().to_owned() })
        }
        Err(error) => {
            failed(&error, member.name(), whole());
            None
        }
    }
}

/// What the machine code says, when the settings ask for it; else why not, in one clause. Takes from `instructions`.
pub fn code(
    image: Option<&Image<'_>>,
    settings: &Settings,
    source: Option<&Interface>,
    instructions: &mut u64,
) -> Result<Interface, String> {
    let Some(image) = image else { return Err("there is no library whose code could be read".to_owned()) };
    match settings.code {
        CodeReading::Never => return Err("machine code was not read (--no-interpret)".to_owned()),
        CodeReading::WhenNeeded if !settings.traces && source.is_some_and(says_enough) => {
            return Err("machine code was not read, the source states the rest".to_owned());
        }
        CodeReading::WhenNeeded | CodeReading::Always => {}
    }
    let options =
        interpret::Options { traces: settings.traces, instructions: *instructions, ..interpret::Options::default() };
    let recovered = interpret::recover(image, options);
    *instructions = instructions.saturating_sub(recovered.as_ref().map_or(0, |recovery| recovery.instructions));
    match recovered {
        Ok(recovery) if recovery.interface.input_count.is_some() => Ok(recovery.interface),
        // no model could be created: the checks can still be read, and the reason for all else is kept
        Ok(recovery) => {
            let mut interface = checks_alone(image).unwrap_or_default();
            interface.unknown.extend(recovery.interface.unknown);
            interface.trace = recovery.interface.trace;
            Ok(interface)
        }
        Err(error) => {
            let mut interface = checks_alone(image).unwrap_or_default();
            interface.unknown.push(Unknown::behind(Phase::Loading, error.message()));
            Ok(interface)
        }
    }
}

/// What the check messages say, where the interpreter has no processor or does not come through. The list of inputs then reaches to the
/// last one that is checked.
fn checks_alone(image: &Image<'_>) -> Option<Interface> {
    let mut interface = cross_references(image)?;
    interface.input_count = Some(interface.inputs.len()).filter(|count| *count > 0);
    interface.input_count.is_some().then_some(interface)
}

/// The second reader of machine code: check messages with their numbers.
pub fn cross_references(image: &Image<'_>) -> Option<Interface> {
    xref::read(image).ok().map(|read| read.to_interface())
}

/// True when code could add nothing that a reader of `show` wants.
fn says_enough(source: &Interface) -> bool {
    let is_complete = |t: &crate::model::TensorSpec| {
        t.dtype.is_some() && t.shape.as_ref().is_some_and(|shape| shape.iter().all(Option::is_some))
    };
    source.device.is_some() && source.inputs.iter().chain(&source.outputs).all(is_complete)
}
