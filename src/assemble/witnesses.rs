//! Asks the readers of one model: its generated source, and the machine code of its library.

use super::{CodeReading, Settings};
use crate::container::{Container, ModelFolder};
use crate::image::Image;
use crate::limits;
use crate::model::{Interface, Problem, Unknown};
use crate::wrapper::{self, WrapperSource};

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
    let mut failed = |error: &crate::error::Error, member: &str, affects: Vec<String>| {
        let mut place = error.place().clone();
        place.member.get_or_insert_with(|| member.to_owned());
        problems.push(Problem { place, message: error.message().to_owned(), affects });
    };
    let bytes = match member.bytes(limits::SOURCE_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => {
            failed(&error, member.name(), Vec::new());
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
            failed(&error, member.name(), Vec::new());
            None
        }
    }
}

/// What the machine code says, when the settings ask for it; else why not.
pub fn code(image: Option<&Image<'_>>, settings: &Settings, source: Option<&Interface>) -> Result<Interface, Unknown> {
    let absent = |reason: &str| Err(Unknown::new("", reason));
    let Some(_image) = image else { return absent("there is no library whose code could be read") };
    match settings.code {
        CodeReading::Never => return absent("machine code was not read (--no-interpret)"),
        CodeReading::WhenNeeded if source.is_some_and(says_enough) => {
            return absent("machine code was not read, the source states the facts");
        }
        CodeReading::WhenNeeded | CodeReading::Always => {}
    }
    absent("machine code of this library is not read")
}

/// True when code could add nothing that a reader of `show` wants.
fn says_enough(source: &Interface) -> bool {
    let tensors = source.inputs.iter().chain(&source.outputs);
    let is_complete = |t: &crate::model::TensorSpec| {
        t.dtype.is_some() && t.shape.as_ref().is_some_and(|shape| shape.iter().all(Option::is_some))
    };
    source.device.is_some() && tensors.into_iter().all(is_complete)
}
