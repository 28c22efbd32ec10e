//! Kernels with their files: present or not, what they hold, and files that nothing asks for.

use crate::container::{Container, ModelFolder};
use crate::error::{Error, ErrorKind};
use crate::image::Image;
use crate::image::dating;
use crate::image::functions::functions;
use crate::kernel;
use crate::model::{Evidence, Kernel, KernelKind, Kind, Problem, Unknown, Witness};
use crate::xref;
use std::collections::{BTreeSet, HashMap};

/// Looks for each kernel's file, reads it once, and returns the names of the kernel files that no kernel asks for.
pub fn find_files(
    container: &Container,
    folder: &ModelFolder,
    kernels: &mut [Kernel],
    problems: &mut Vec<Problem>,
    unknown: &mut Vec<Unknown>,
) -> Vec<String> {
    let mut read: HashMap<String, Option<kernel::KernelFile>> = HashMap::new();
    let mut wanted = BTreeSet::new();
    let has_library = folder.library.is_some();
    for (index, kernel) in kernels.iter_mut().enumerate() {
        let Some(file) = kernel.file.clone() else {
            if kernel.kind == KernelKind::Cpp && has_library {
                kernel.present = Some(true);
            }
            continue;
        };
        wanted.insert(file.clone());
        match container.kernel_file(folder, &file) {
            Ok(Some(found)) => {
                kernel.present = Some(true);
                let content = read.entry(file.clone()).or_insert_with(|| match kernel::read(found.region()) {
                    Ok(content) => Some(content),
                    Err(error) => {
                        problems.push(problem(&file, index, &error));
                        None
                    }
                });
                if let Some(content) = content {
                    kernel::describe(kernel, content);
                }
            }
            Ok(None) if container.kind() == Kind::Library => {
                kernel.present = None;
                let reason = "the file does not lie beside the library; the load call can name another folder";
                unknown.push(Unknown::new(format!("kernels[{index}].present"), reason));
            }
            Ok(None) => {
                kernel.present = Some(false);
                kernel.evidence.push(Evidence::new(Witness::Archive, format!("{file} is not among the members")));
            }
            Err(error) => {
                kernel.present = Some(true);
                problems.push(problem(&file, index, &error));
            }
        }
    }
    folder
        .kernels
        .iter()
        .filter_map(|id| container.member(*id))
        .filter(|member| !wanted.contains(member.file_name()))
        .map(|member| member.file_name().to_owned())
        .collect()
}

/// Reads the assertions of C++ kernels that no source tells: the text is in the library, and the kernel's code takes
/// its address.
pub fn find_assertions(image: &Image<'_>, kernels: &mut [Kernel], problems: &mut Vec<Problem>) {
    let is_open = |k: &Kernel| k.kind == KernelKind::Cpp && k.assertions.is_empty();
    let Some(first) = kernels.iter().position(is_open) else { return };
    if !dating::has_text(image, Kernel::INDEX_ASSERTION.as_bytes()) {
        return;
    }
    let cpp = kernels.iter_mut().filter(|k| k.kind == KernelKind::Cpp);
    let mut by_name: HashMap<String, &mut Kernel> = cpp.map(|k| (k.name.clone(), k)).collect();
    let mut failed = |error: &Error| {
        // code of other processors is not read, which other facts tell
        if error.kind() == ErrorKind::Limit {
            problems.push(problem("library", first, error));
        }
    };
    let functions = functions(image).inspect_err(&mut failed).unwrap_or_default();
    for function in functions {
        // compilers split functions: `k.cold`, `k._omp_fn.0`
        let Some(name) = &function.name else { continue };
        let Some(kernel) = name.split('.').next().and_then(|whole| by_name.get_mut(whole)) else { continue };
        let mentions = xref::text_mentions(image, &function, Kernel::INDEX_ASSERTION);
        let Ok(mentions) = mentions.inspect_err(&mut failed) else { return };
        for mention in mentions {
            if !kernel.assertions.contains(&mention.text) {
                let detail = format!("{name} holds `{}`", mention.text);
                kernel.evidence.push(Evidence::new(Witness::CrossReference, detail).at_offset(mention.address));
                kernel.assertions.push(mention.text);
            }
        }
    }
}

/// Reads the kernels inside the library (`aot_inductor.embed_kernel_binary`, 2.8+); those that no source or code names are
/// added by their symbols.
pub fn find_embedded(image: &Image<'_>, kernels: &mut Vec<Kernel>, problems: &mut Vec<Problem>) {
    // only such a library loads modules from memory
    let loads_data = |name: &str| matches!(name, "cuModuleLoadData" | "hipModuleLoadData" | "zeModuleCreate");
    if !image.imports().is_ok_and(|imports| imports.iter().any(|import| loads_data(import.name))) {
        return;
    }
    let Ok(exports) = image.exports() else { return };
    let symbols = exports.iter().map(|symbol| (symbol.name.as_ref(), symbol.address));
    let found =
        kernel::embedded::read_embedded(symbols, |address, len| image.region().sub(image.file_offset(address)?, len));
    for embedded in found {
        let index = kernels.iter().position(|k| k.name == embedded.kernel).unwrap_or_else(|| {
            let mut added = Kernel::new(&embedded.kernel, KernelKind::Triton);
            let detail = format!("symbol __{}_start", embedded.kernel);
            added.evidence.push(Evidence::new(Witness::Exports, detail));
            kernels.push(added);
            kernels.len().saturating_sub(1)
        });
        let Some(kernel) = kernels.get_mut(index) else { continue };
        kernel.present = Some(true);
        match &embedded.file {
            Ok(content) => kernel::describe(kernel, content),
            Err(error) => problems.push(problem(&embedded.kernel, index, error)),
        }
    }
}

/// Reads the kernels that `nvcc` linked into the library (CUTLASS), which have no launch that the generated code names.
pub fn find_host_fatbins(image: &Image<'_>, kernels: &mut Vec<Kernel>, problems: &mut Vec<Problem>) {
    let Some(section) = image.section(".nv_fatbin") else { return };
    let region = section.offset.and_then(|offset| image.region().sub(offset, section.size));
    let missing = || Error::damaged("its bytes are not in the file").in_section(".nv_fatbin");
    match region.ok_or_else(missing).and_then(kernel::fatbin::read_host_fatbins) {
        Ok(files) => {
            for (index, file) in files.iter().enumerate() {
                let entry = file.images.iter().find_map(|i| i.entries.first()).map(|e| e.name.clone());
                let mut found = Kernel::new(format!(".nv_fatbin[{index}]"), KernelKind::Extern);
                found.symbol = entry;
                found.evidence.push(Evidence::new(Witness::Header, "section .nv_fatbin"));
                kernel::describe(&mut found, file);
                kernels.push(found);
            }
        }
        Err(error) => problems.push(problem("library", kernels.len(), &error)),
    }
}

fn problem(file: &str, index: usize, error: &Error) -> Problem {
    let mut place = error.place().clone();
    place.member.get_or_insert_with(|| file.to_owned());
    Problem { place, message: error.message().to_owned(), affects: vec![format!("kernels[{index}]")] }
}
