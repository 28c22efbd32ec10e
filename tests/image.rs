//! Object files of the corpus against `readelf`, and damaged ones against their description.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
use aoti_inspect::image::{Format, Image, RelocationKind, SymbolKind};
use aoti_inspect::source::{self, Region};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries of the corpus, of one format by its first bytes; empty in a fresh clone.
fn corpus(magic: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/corpus")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                if !path.ends_with("hostile") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "so") && std::fs::read(&path).unwrap().starts_with(magic) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn readelf(arguments: &[&str], path: &Path) -> Option<String> {
    let output = Command::new("readelf").arg("-W").args(arguments).arg(path).env("LC_ALL", "C").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// (defined, name without version) of the rows that `readelf --dyn-syms` prints.
fn readelf_symbols(path: &Path) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
    let (mut exports, mut imports) = (BTreeSet::new(), BTreeSet::new());
    for line in readelf(&["--dyn-syms"], path)?.lines() {
        // unique global symbols in a file that does not name the GNU ABI
        let line = line.replace("<OS specific>: 10", "UNIQUE");
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [index, address, size, kind, binding, _, section, name, ..] = fields[..] else { continue };
        if !index.ends_with(':') || !index.trim_end_matches(':').bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let name = name.split('@').next().unwrap();
        match section {
            "UND" => imports.insert(name.to_owned()),
            _ if binding == "LOCAL" => false,
            _ => {
                let size = match size.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
                    None => size.parse().unwrap(),
                };
                exports.insert(format!("{name} {:x} {size} {kind}", u64::from_str_radix(address, 16).unwrap()))
            }
        };
    }
    Some((exports, imports))
}

#[test]
fn agrees_with_readelf() {
    for path in corpus(b"\x7fELF") {
        let Some((exports, imports)) = readelf_symbols(&path) else { return };
        if exports.is_empty() {
            // readelf wants a section table for this
            continue;
        }
        let bytes = source::open_file(&path).unwrap();
        let image = Image::open(Region::whole(&*bytes)).unwrap();
        let ours: BTreeSet<String> = image
            .exports()
            .unwrap()
            .iter()
            .map(|s| {
                let kind = match s.kind {
                    SymbolKind::Function => "FUNC",
                    SymbolKind::IndirectFunction => "IFUNC",
                    SymbolKind::Object => "OBJECT",
                    SymbolKind::ThreadLocal => "TLS",
                    _ => "NOTYPE",
                };
                format!("{} {:x} {} {kind}", s.name, s.address, s.size)
            })
            .collect();
        // binutils calls unique global objects so; for us they are objects
        let exports: BTreeSet<String> = exports.into_iter().map(|s| s.replace(" UNIQUE", " OBJECT")).collect();
        let different: Vec<_> = ours.symmetric_difference(&exports).take(5).collect();
        assert!(different.is_empty(), "{}: {different:?}", path.display());
        let ours: BTreeSet<String> = image.imports().unwrap().iter().map(|i| i.name.to_owned()).collect();
        let different: Vec<_> = ours.symmetric_difference(&imports).take(5).collect();
        assert!(different.is_empty(), "{}: {different:?}", path.display());

        let dynamic = readelf(&["-d"], &path).unwrap();
        let bracketed = |tag: &str| -> Vec<String> {
            let lines = dynamic.lines().filter(|l| l.contains(tag));
            lines.filter_map(|l| Some(l.split_once('[')?.1.split_once(']')?.0.to_owned())).collect()
        };
        assert_eq!(image.needed().unwrap().libraries, bracketed("(NEEDED)"), "{}", path.display());
        let stack = readelf(&["-l"], &path).unwrap();
        let stack = stack.lines().find(|l| l.contains("GNU_STACK")).map(|l| l.contains("RWE"));
        assert_eq!(image.needed().unwrap().executable_stack, stack, "{}", path.display());

        let count = readelf(&["-r"], &path).unwrap();
        let expected = if count.contains("RELR") {
            None
        } else {
            Some(count.lines().filter(|l| l.split(' ').next().is_some_and(|w| w.len() == 16)).count())
        };
        let relocations = image.relocations().unwrap();
        if let Some(expected) = expected {
            assert_eq!(relocations.len(), expected, "{}", path.display());
        }
        assert!(!relocations.iter().any(|r| matches!(r.kind, RelocationKind::Other(_))), "{}", path.display());
        assert!(relocations.iter().all(|r| image.segments().iter().any(|s| s.contains(r.address))));
    }
}

#[test]
fn every_platform_shows_its_interface() {
    for (magic, format) in
        [(&b"\x7fELF"[..], Format::Elf), (&[0xcf, 0xfa, 0xed, 0xfe][..], Format::MachO), (&b"MZ"[..], Format::Pe)]
    {
        for path in corpus(magic).into_iter().filter(|p| !p.to_string_lossy().contains("negatives")) {
            let bytes = source::open_file(&path).unwrap();
            let image = Image::open(Region::whole(&*bytes)).unwrap();
            assert_eq!(image.format(), format);
            let run = image.export("AOTInductorModelContainerRun").unwrap_or_else(|| panic!("{}", path.display()));
            assert_eq!(run.kind, SymbolKind::Function);
            assert!(image.read(run.address, 16).is_some());
            let shims = image.imports().unwrap().iter().filter(|i| i.name.starts_with("aoti_torch_")).count();
            assert!(shims >= 2, "{}", path.display());
            let relocations = image.relocations().unwrap();
            let bound =
                relocations.iter().filter(|r| r.target.as_ref().is_some_and(|t| t.name.starts_with("aoti_torch_")));
            assert!(bound.count() >= 2, "{}", path.display());
            for function in image.init_functions().unwrap() {
                let code = image.segments().iter().find(|s| s.contains(function));
                assert!(code.is_some_and(|s| s.is_executable), "{}: {function:#x}", path.display());
            }
            let problems = image.problems();
            assert!(problems.is_empty(), "{}: {problems:?}", path.display());
        }
    }
}

#[test]
fn damaged_files_end_in_an_error_or_a_problem() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/corpus/hostile");
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "so") {
            continue;
        }
        let bytes = source::open_file(&path).unwrap();
        let outcome = Image::open(Region::whole(&*bytes)).and_then(|image| {
            image.exports()?;
            image.imports()?;
            image.relocations()?;
            image.symbols()?;
            image.needed()?;
            image.init_functions()?;
            Ok(image.problems())
        });
        let name = path.file_name().unwrap().to_str().unwrap();
        println!("{name}: {outcome:?}");
        match name {
            "elf_no_sections.so" => assert!(outcome.unwrap().is_empty()),
            "elf_shoff_beyond.so" => assert_eq!(outcome.unwrap().len(), 1),
            "truncated.so" => {}
            _ => assert!(outcome.is_err(), "{name}"),
        }
    }
}

/// The release that compiled a file of the corpus, from its name.
fn release_of(path: &Path) -> aoti_inspect::model::Release {
    aoti_inspect::model::Release::from_text(path.file_name().unwrap().to_str().unwrap()).unwrap()
}

fn models(magic: &[u8]) -> Vec<PathBuf> {
    corpus(magic).into_iter().filter(|p| !p.to_string_lossy().contains("negatives")).collect()
}

#[test]
fn the_release_lies_in_the_dated_range() {
    use aoti_inspect::image::{dating::Dating, requirements};
    for path in models(b"\x7fELF").into_iter().chain(models(&[0xcf, 0xfa, 0xed, 0xfe])).chain(models(b"MZ")) {
        let bytes = source::open_file(&path).unwrap();
        let image = Image::open(Region::whole(&*bytes)).unwrap();
        let release = release_of(&path);
        let mut dating = Dating::default();
        dating.library(&image);
        let by = dating.finish();
        assert!(by.torch_min.is_some_and(|min| min <= release), "{}: {by:?}", path.display());
        assert!(by.torch_max.is_none_or(|max| max >= release), "{}: {by:?}", path.display());
        let width = by.torch_max.map_or(15, |max| max.minor) - by.torch_min.unwrap().minor;
        assert!(width <= 1, "{}: {by:?}", path.display());
        assert!(!by.evidence.iter().any(|e| e.detail.contains("contradicts")), "{}: {by:?}", path.display());

        let (requires, unknown) = requirements::requires(&image);
        assert!(unknown.is_empty() && requires.unknown_shims.is_empty(), "{}", path.display());
        assert!(requires.torch_min.is_some_and(|min| min <= release), "{}: {:?}", path.display(), requires.torch_min);
        assert!(requires.torch_max.is_none_or(|max| max >= release), "{}: {:?}", path.display(), requires.torch_max);
        assert_eq!(requires.leaked_cxx.is_empty(), release.minor >= 6, "{}", path.display());
        assert!(requires.suspicious_imports.is_empty(), "{}: {:?}", path.display(), requires.suspicious_imports);
    }
}

#[test]
fn device_and_versions_are_those_that_readelf_shows() {
    use aoti_inspect::image::{device, requirements};
    for path in models(b"\x7fELF") {
        let bytes = source::open_file(&path).unwrap();
        let image = Image::open(Region::whole(&*bytes)).unwrap();
        let wanted = if path.to_string_lossy().contains("-cuda-") { "cuda" } else { "cpu" };
        assert_eq!(device::device(&image).0.unwrap().name(), wanted, "{}", path.display());

        let Some(versions) = readelf(&["-V"], &path) else { return };
        // readelf wants a section table for this
        if !versions.contains("GLIBC") {
            continue;
        }
        let highest = |prefix: &str| {
            let names = versions.split_whitespace().filter_map(|word| word.strip_prefix(prefix));
            let numbers = |v: &&str| v.split('.').map(|n| n.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>();
            let numeric = names.filter(|n| n.starts_with(|c: char| c.is_ascii_digit()));
            numeric.max_by_key(numbers).map(str::to_owned)
        };
        let (requires, _) = requirements::requires(&image);
        assert_eq!(requires.glibc, highest("GLIBC_"), "{}", path.display());
        assert_eq!(requires.glibcxx, highest("GLIBCXX_"), "{}", path.display());
        assert_eq!(requires.cxxabi, highest("CXXABI_"), "{}", path.display());
    }
}

#[test]
fn weights_are_where_the_option_put_them() {
    use aoti_inspect::image::weights::weights;
    use aoti_inspect::model::WeightsLocation;
    for path in models(b"\x7fELF") {
        let bytes = source::open_file(&path).unwrap();
        let image = Image::open(Region::whole(&*bytes)).unwrap();
        let (weights, problems) = weights(&image);
        assert!(problems.is_empty(), "{}: {problems:?}", path.display());
        let name = path.file_name().unwrap().to_str().unwrap();
        let none = [
            "weights_outside",
            "-gather",
            "-elementwise",
            "-zero",
            "-scalar0d",
            "-last_by_cumsum",
            "-assert_idx",
            "-dtypes",
            "-custom_op",
        ];
        if name.contains("mmap_weights") {
            assert_eq!(weights.location, Some(WeightsLocation::Appended), "{name}");
            assert_eq!(weights.offset.map(|o| o % 16_384), Some(0), "{name}");
        } else if none.iter().any(|n| name.contains(n)) {
            assert!(weights.size_bytes == Some(0) || weights.location == Some(WeightsLocation::Library), "{name}");
        } else {
            assert_eq!(weights.location, Some(WeightsLocation::Library), "{name}");
            assert!(weights.offset.is_some() && weights.size_bytes > Some(0), "{name}");
        }
    }
}

fn scanned(path: &Path) -> aoti_inspect::model::CpuIsa {
    let bytes = source::open_file(path).unwrap();
    let image = Image::open(Region::whole(&*bytes)).unwrap();
    aoti_inspect::image::isa::scan(&image).unwrap()
}

#[test]
fn instruction_sets_are_those_of_the_build() {
    let has = |isa: &aoti_inspect::model::CpuIsa, word: &str| isa.used.as_ref().unwrap().iter().any(|u| u == word);
    for path in models(b"\x7fELF") {
        let isa = scanned(&path);
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.contains("novec") || name.contains("aarch64") {
            assert_eq!(isa.used.as_deref(), Some(&[][..]), "{name}: {:?}", isa.functions);
        } else {
            // all others were compiled with -march=native on AVX-512 hosts
            assert!(has(&isa, "avx512f") && has(&isa, "avx"), "{name}: {:?}", isa.used);
            assert!(isa.functions.iter().any(|f| !f.is_guarded && f.features.iter().any(|u| u == "avx512f")), "{name}");
        }
        for word in ["rdrand", "rdseed", "sse4a", "xop", "fma4", "amx_tile"] {
            assert!(!has(&isa, word), "{name}: {word}");
        }
        if name.contains("staticlibstdcxx") {
            let guarded = isa.functions.iter().filter(|f| f.is_guarded);
            assert!(guarded.flat_map(|f| &f.features).any(|u| u == "rdrand"), "{:?}", isa.functions);
        }
    }
}

#[test]
fn stripping_does_not_change_the_instruction_sets() {
    let variant = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/corpus/variants");
        folder.join(format!("2.15.0-cpu-mlp_dynamic-{name}.so"))
    };
    if variant("lld").exists() {
        let whole = scanned(&variant("gcc-nodebug")).used;
        assert_eq!(scanned(&variant("strip_unneeded")).used, whole);
        assert_eq!(scanned(&variant("no_section_table")).used, whole);
    }
}
