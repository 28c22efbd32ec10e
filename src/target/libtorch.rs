//! The target's libtorch: what its libraries really export, read from their symbol tables.

use super::UsageError;
use super::release_tables::{self, ShimClass};
use crate::image::Image;
use crate::image::imports::is_libtorch_cxx;
use crate::source::{self, Region};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Exports of a libtorch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Libtorch {
    /// where it was read
    pub folder: String,
    /// base names of the libraries that were read
    pub libraries: Vec<String>,
    /// system and machine that it is for, `linux-x86_64`
    pub platform: Option<String>,
    /// C shims (`aoti_*`, `torch_*`)
    pub shims: BTreeSet<String>,
    /// mangled C++ of torch, at, c10; `None` when only the shims are known (a target file)
    pub cxx: Option<BTreeSet<String>>,
    /// symbol versions that the libraries define for others (`GOMP_5.0` of a bundled OpenMP runtime)
    pub versions: BTreeSet<String>,
}

/// Libraries of a libtorch by the beginning of their names, without `lib`.
const PARTS: &[&str] = &[
    "torch_cpu",
    "torch_cuda",
    "torch_hip",
    "torch_xpu",
    "torch",
    "c10",
    "c10_cuda",
    "c10_hip",
    "c10_xpu",
    "gomp",
    "omp",
];
/// Where they lie below what a person calls the libtorch folder.
const FOLDERS: &[&str] = &["", "lib", "torch/lib", "libtorch/lib"];
/// Libraries in one folder; a wheel has some thirty.
const MOST_LIBRARIES: usize = 256;

impl Libtorch {
    /// Reads the libraries of a folder: the unpacked C++ distribution, the `torch` folder of a Python
    /// environment, or the `lib` folder of either.
    ///
    /// # Errors
    /// The folder holds no libtorch, or its libraries cannot be read.
    pub fn read(folder: &Path) -> Result<Self, UsageError> {
        let wrong = |what: String| UsageError::new(format!("libtorch {}: {what}", folder.display()));
        let found = FOLDERS.iter().map(|below| libraries(&folder.join(below))).find(|l| has_torch(l));
        let files = found.ok_or_else(|| {
            wrong("no libtorch_cpu in it; give the folder with libtorch_cpu.so, or `torch` in site-packages".into())
        })?;
        let mut libtorch = Self { folder: folder.display().to_string(), cxx: Some(BTreeSet::new()), ..Self::default() };
        for file in files {
            let bytes = source::open_file(&file).map_err(|e| wrong(e.to_string()))?;
            let image = Image::open(Region::whole(&*bytes)).map_err(|e| wrong(format!("{}: {e}", file.display())))?;
            let exports = image.exports().map_err(|e| wrong(format!("{}: {e}", file.display())))?;
            for symbol in exports {
                let name = symbol.name.as_ref();
                if crate::image::imports::is_shim(name) {
                    libtorch.shims.insert(name.to_owned());
                } else if is_libtorch_cxx(name) {
                    libtorch.cxx.get_or_insert_default().insert(name.to_owned());
                }
            }
            let platform = format!("{}-{}", image.os(), image.architecture());
            libtorch.platform.get_or_insert(platform);
            if let Ok(needed) = image.needed() {
                libtorch.versions.extend(needed.defined_versions.iter().map(|v| (*v).to_owned()));
            }
            libtorch.libraries.extend(file.file_name().map(|n| n.to_string_lossy().into_owned()));
        }
        if libtorch.shims.is_empty() {
            return Err(wrong("its libraries export no aoti_torch functions: older than 2.2, or not libtorch".into()));
        }
        Ok(libtorch)
    }

    /// True when the build has the operators of that device.
    pub fn has(&self, class: ShimClass) -> bool {
        let named = |part: &str| self.libraries.iter().any(|l| l.trim_start_matches("lib").starts_with(part));
        match class {
            ShimClass::Any | ShimClass::Cpu => true,
            ShimClass::Cuda => named("torch_cuda") || named("torch_hip") || self.has_shim_of(class),
            ShimClass::Xpu => named("torch_xpu") || self.has_shim_of(class),
            ShimClass::Mps => self.has_shim_of(class),
        }
    }
    fn has_shim_of(&self, class: ShimClass) -> bool {
        self.shims.iter().any(|name| release_tables::shim(name).is_some_and(|s| s.class == class))
    }
}

fn base_name(file: &Path) -> Option<(String, bool)> {
    let name = file.file_name()?.to_str()?;
    let bare = name.strip_prefix("lib").unwrap_or(name);
    let end = bare.find(['.', '-'])?;
    let is_library = [".so", ".dylib", ".dll"].iter().any(|ending| name.contains(ending));
    Some((bare.get(..end)?.to_owned(), is_library))
}

fn libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let mut files: Vec<PathBuf> = entries
        .filter(|file| base_name(file).is_some_and(|(base, is_library)| is_library && PARTS.contains(&base.as_str())))
        .filter(|file| file.is_file())
        .take(MOST_LIBRARIES)
        .collect();
    files.sort();
    files
}

fn has_torch(files: &[PathBuf]) -> bool {
    files.iter().filter_map(|f| base_name(f)).any(|(base, _)| base == "torch_cpu" || base == "torch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_libtorch_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let message = Libtorch::read(folder.path()).unwrap_err().to_string();
        assert!(message.contains("libtorch_cpu"), "{message}");
        std::fs::write(folder.path().join("libtorch_cpu.so"), b"not a library").unwrap();
        assert!(Libtorch::read(folder.path()).is_err());
    }

    /// A model's library exports no shims, so that its name alone does not make it a libtorch.
    #[test]
    fn a_library_without_shims_is_no_libtorch() {
        let folder = tempfile::tempdir().unwrap();
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts/2.15.0-cpu-mlp_dynamic.so");
        std::fs::copy(model, folder.path().join("libtorch_cpu.so")).unwrap();
        let message = Libtorch::read(folder.path()).unwrap_err().to_string();
        assert!(message.contains("no aoti_torch functions"), "{message}");
    }
}
