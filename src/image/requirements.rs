//! What a library wants from its host: libraries, symbols, versions, flags.

use super::imports::{self, Provider, demangled, provider};
use super::{Format, Image, Symbol, SymbolKind};
use crate::model::{CxxRuntime, Evidence, Platform, Requires, Unknown, Witness};
use crate::target::release_tables::{self, Shim};
use std::collections::BTreeSet;

/// Format, system and machine of a library.
pub fn platform(image: &Image<'_>) -> Platform {
    Platform { format: image.format().to_string(), os: image.os().to_owned(), arch: image.architecture().to_string() }
}

/// Everything of [`Requires`] that the library itself tells: all but the declared and used instruction sets
/// ([`super::isa`]) and custom operators. What could not be read is in the second list, with facts as
/// `requires.shims`.
pub fn requires(image: &Image<'_>) -> (Requires, Vec<Unknown>) {
    let mut requires = Requires::default();
    let mut unknown = Vec::new();
    match image.imports() {
        Ok(imports) => sort_imports(imports.iter().map(|i| i.name), image.format(), &mut requires),
        Err(e) => unknown.extend(
            ["requires.shims", "requires.torch_min", "requires.leaked_cxx"].map(|f| Unknown::new(f, e.to_string())),
        ),
    }
    match image.needed() {
        Ok(needed) => {
            let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
            requires.libraries = owned(&needed.libraries);
            requires.run_paths = owned(&needed.run_paths);
            requires.executable_stack = needed.executable_stack;
            let highest = |prefix: &str| {
                let strong = needed.versions.iter().filter(|v| !v.is_weak);
                let numbers = strong.filter_map(|v| v.name.strip_prefix(prefix)).filter(starts_with_digit);
                numbers.max_by_key(|v| numbers_of(v)).map(str::to_owned)
            };
            requires.glibc = highest("GLIBC_");
            requires.glibcxx = highest("GLIBCXX_");
            requires.cxxabi = highest("CXXABI_");
            requires.gomp = highest("GOMP_").or_else(|| highest("OMP_"));
        }
        Err(e) => unknown.extend(
            ["libraries", "glibc", "glibcxx", "cxxabi", "gomp", "executable_stack"]
                .map(|f| Unknown::new(format!("requires.{f}"), e.to_string())),
        ),
    }
    requires.idle_libraries = idle_libraries(image);
    requires.string_abi = string_abi(image).map(str::to_owned);
    requires.cxx_runtime = cxx_runtime(image);
    requires.page_size = super::weights::appended_alignment(image);
    (requires, unknown)
}

fn sort_imports<'n>(names: impl Iterator<Item = &'n str>, format: Format, requires: &mut Requires) {
    let names: BTreeSet<&str> = names.collect();
    for name in names {
        let list = match provider(name) {
            Provider::Shim => &mut requires.shims,
            Provider::ExecuTorch => &mut requires.executorch_shims,
            Provider::Gpu | Provider::Xpu => &mut requires.gpu_runtime,
            Provider::LeakedCxx => {
                requires.leaked_cxx.push(demangled(name));
                &mut requires.leaked_symbols
            }
            Provider::Other => {
                if let Some(why) = imports::suspicion(name) {
                    requires.suspicious_imports.push(format!("{name} ({why})"));
                }
                &mut requires.other_imports
            }
        };
        list.push(name.to_owned());
    }
    let rows: Vec<Option<Shim>> = requires.shims.iter().map(|name| release_tables::shim(name)).collect();
    let named = || requires.shims.iter().zip(&rows);
    requires.unknown_shims = named().filter(|(_, row)| row.is_none()).map(|(name, _)| name.clone()).collect();
    let range = release_tables::releases_with(rows.iter().flatten());
    if let Some((lowest, highest)) = range.filter(|_| !requires.shims.is_empty()) {
        requires.torch_min = Some(lowest);
        requires.torch_max = (highest < release_tables::NEWEST).then_some(highest);
        let is_newest = |row: &Option<Shim>| row.as_ref().is_some_and(|shim| shim.first == lowest);
        let newest: Vec<&str> =
            named().filter(|(_, row)| is_newest(row)).map(|(name, _)| name.as_str()).take(3).collect();
        let detail = match newest.as_slice() {
            [] => format!("all {} shims are in torch {lowest}", requires.shims.len()),
            names => format!("{} came with torch {lowest}", names.join(", ")),
        };
        requires.evidence.push(Evidence::new(Witness::Imports, detail));
    }
    if format == Format::Pe {
        // MinGW's runtime handles files of its own accord
        requires.suspicious_imports.retain(|s| !s.ends_with("(changes files)"));
    }
}

fn starts_with_digit(version: &&str) -> bool {
    version.starts_with(|c: char| c.is_ascii_digit())
}

/// The numbers of `3.4.30`, for comparing.
fn numbers_of(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

/// Libraries whose symbols are known by their names, since ELF does not say which library has which symbol:
/// beginning of the library's name, and what an import from it looks like.
type Providers = (&'static str, fn(&str) -> bool);

const PROVIDERS: &[Providers] = &[
    ("libgomp.", |n| n.starts_with("GOMP_") || n.starts_with("omp_") || n.starts_with("GOACC_")),
    ("libomp.", |n| n.starts_with("__kmpc_") || n.starts_with("omp_") || n.starts_with("GOMP_")),
    ("libiomp5.", |n| n.starts_with("__kmpc_") || n.starts_with("omp_") || n.starts_with("GOMP_")),
    ("libcuda.", |n| n.strip_prefix("cu").is_some_and(|r| r.starts_with(|c: char| c.is_ascii_uppercase()))),
    ("libcudart.", |n| n.strip_prefix("cuda").is_some_and(|r| r.starts_with(|c: char| c.is_ascii_uppercase()))),
    ("libc10_cuda.", |n| n.contains("3c104cuda")),
    ("libc10.", |n| n.contains("3c10")),
    ("libtorch_cuda.", |n| {
        let is_cuda_shim = release_tables::shim(n).is_some_and(|s| s.class == release_tables::ShimClass::Cuda);
        // its CUDA runtime satisfies unversioned runtime imports; mangled C++ may be from either library
        is_cuda_shim || matches!(provider(n), Provider::Gpu) || (imports::is_libtorch_cxx(n) && n.contains("4cuda"))
    }),
];

fn idle_libraries(image: &Image<'_>) -> Vec<String> {
    let (Ok(needed), Ok(imports)) = (image.needed(), image.imports()) else { return Vec::new() };
    let names_its_library = image.format() != Format::Elf;
    let is_idle = |library: &&&str| {
        let base = library.rsplit(['/', '\\']).next().unwrap_or(library);
        if imports.iter().any(|i| i.library == Some(library)) {
            return false;
        }
        if names_its_library {
            // flat look-ups of a Mach-O file may be satisfied by any library
            return imports.iter().all(|i| i.library.is_some());
        }
        match PROVIDERS.iter().find(|row| base.starts_with(row.0)) {
            Some((_, is_from)) => !imports.iter().any(|i| is_from(i.name)),
            None => false,
        }
    };
    needed.libraries.iter().filter(is_idle).map(|l| (*l).to_owned()).collect()
}

/// `cxx11` or `pre-cxx11` for libstdc++ (its two `std::string`s), `libc++` for the other library; by the
/// constructor of the model, which takes strings, else by what is imported.
fn string_abi(image: &Image<'_>) -> Option<&'static str> {
    const CONSTRUCTOR: &str = "_ZN5torch12aot_inductor16AOTInductorModelC";
    let constructor =
        |symbols: &[Symbol<'_>]| symbols.iter().find(|s| s.name.starts_with(CONSTRUCTOR)).map(|s| s.name.to_string());
    let exported = image.exports().ok().and_then(constructor);
    let local = || image.symbols().ok().and_then(constructor);
    let leaked = || {
        let imports = image.imports().ok()?;
        let mut leaked = imports.iter().map(|i| i.name).filter(|n| imports::is_libtorch_cxx(n));
        leaked.find(|n| abi_of(n).is_some()).map(str::to_owned)
    };
    abi_of(&exported.or_else(local).or_else(leaked)?)
}

fn abi_of(mangled: &str) -> Option<&'static str> {
    // `Ss` abbreviates the old string; it stands behind another encoded type or a template's bracket
    let has_old = || {
        mangled.match_indices("Ss").any(|(i, _)| {
            i.checked_sub(1).and_then(|b| mangled.as_bytes().get(b)).is_some_and(|b| b"IEKRS_vibjlmdfPO".contains(b))
        })
    };
    if mangled.contains("NSt3__1") {
        Some("libc++")
    } else if mangled.contains("NSt7__cxx1112basic_string") || mangled.contains("B5cxx11") {
        Some("cxx11")
    } else if has_old() {
        Some("pre-cxx11")
    } else {
        None
    }
}

/// The exception thrower tells: imported, defined and exported, or defined inside. A stripped library that
/// neither imports nor exports it and needs no C++ library has it inside.
fn cxx_runtime(image: &Image<'_>) -> Option<CxxRuntime> {
    const THROW: &str = "__cxa_throw";
    let imports = image.imports().ok()?;
    if imports.iter().any(|i| i.name == THROW || i.name.starts_with("_CxxThrowException")) {
        return Some(CxxRuntime::Shared);
    }
    if image.export(THROW).is_some_and(|s| s.kind != SymbolKind::Unknown) {
        return Some(CxxRuntime::StaticExported);
    }
    let needed = image.needed().ok()?;
    let is_cxx = |l: &&str| ["libstdc++", "libc++", "msvcp"].iter().any(|c| l.to_ascii_lowercase().contains(c));
    (!needed.libraries.iter().any(is_cxx)).then_some(CxxRuntime::StaticHidden)
}

/// What the exported functions let a caller do: first export of each, and the word for it.
const CAPABILITIES: &[(&str, &str)] = &[
    ("AOTInductorModelContainerCreateWithDevice", "choose_device"),
    ("AOTInductorModelContainerGetConstantOriginalFQN", "list_constants"),
    ("AOTInductorModelContainerUpdateConstantBuffer", "update_constants"),
    ("AOTInductorModelContainerUpdateInactiveConstantBuffer", "update_inactive_constants"),
    ("AOTInductorModelContainerRunConstantFolding", "fold_constants"),
    ("AOTInductorModelContainerRunSingleThreaded", "run_single_threaded"),
    ("AOTInductorModelContainerExtractConstantsMap", "extract_constants"),
    ("AOTInductorModelContainerFreeInactiveConstantBuffer", "free_inactive_constants"),
    ("AOTInductorModelContainerUpdateUserManagedConstantBuffer", "user_managed_constants"),
    ("AOTInductorModelUpdateConstantsFromBlob", "load_constants_from_blob"),
    ("AOTInductorModelContainerUpdateConstantBufferFromCpu", "update_constants_from_cpu"),
    ("AOTInductorModelContainerCreateWithExternalConstants", "external_constants"),
    ("AOTInductorGetLastError", "last_error"),
    ("AOTInductorModelContainerSetUseStreamAffinity", "stream_affinity"),
    ("AOTInductorModelRunMinimalArrayrefInterface", "minimal_arrayref"),
    ("AOTInductorModelRunMinimalArrayrefInterfaceV2", "minimal_arrayref"),
];

/// Words for what the exported functions allow.
pub fn capabilities(image: &Image<'_>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for (_, word) in CAPABILITIES.iter().filter(|row| image.export(row.0).is_some()) {
        if !words.iter().any(|w| w == word) {
            words.push((*word).to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_string_tells_the_abi() {
        assert_eq!(
            abi_of("_ZN5torch12aot_inductor16AOTInductorModelC1ESt10shared_ptrISt13unordered_mapISsNS0_20RAII"),
            Some("pre-cxx11")
        );
        assert_eq!(abi_of("_ZN3c107WarningC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb"), Some("cxx11"));
        assert_eq!(abi_of("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"), Some("pre-cxx11"));
        assert_eq!(abi_of("_ZN3c1012SymIntSsumEv"), None);
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(numbers_of("3.4.30") > numbers_of("3.4.9"));
        assert!(numbers_of("2.4") < numbers_of("2.34"));
    }
}
