//! The cross-reference method against the generated source that each library was compiled from.

use aoti_inspect::image::Image;
use aoti_inspect::source::{self, Region};
use aoti_inspect::xref::{self, Check, CheckKind, CheckValue};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Input, kind and value of a check, printed so that sets of them can be compared.
type Line = String;

fn line(input: usize, kind: CheckKind, value: &str) -> Line {
    format!("inputs[{input}] {kind:?} {value}")
}

fn read_line(check: &Check) -> Line {
    let value = match &check.value {
        CheckValue::Number(n) => n.to_string(),
        CheckValue::Dtype(dtype) => dtype.to_string(),
        CheckValue::Device(kind) => kind.to_string(),
    };
    line(check.input, check.kind, &value)
}

/// The checks that a generated source states: the statement after each message.
fn source_lines(source: &[u8]) -> BTreeSet<Line> {
    let pattern = regex::bytes::Regex::new(
        r#"(?x) ss\ <<\ "input_handles\[(\d+)\]:\ (unmatched\ dtype|unmatched\ device\ type|[a-z\ ]+\ at\ (\d+)),\ "
        \s*<<\s*"expected[^"\d]*(\d*)[^"]*" (?: \s*<<\s*\w+\s*<<\s*"\d*\((?:at::k)?(\w+)\),\ " )?"#,
    )
    .expect("pattern");
    let text =
        |m: Option<regex::bytes::Match<'_>>| String::from_utf8_lossy(m.map_or(b"", |m| m.as_bytes())).into_owned();
    pattern
        .captures_iter(source)
        .map(|c| {
            let dim = text(c.get(3)).parse().unwrap_or(0);
            let kind = match text(c.get(2)).split(" at ").next() {
                Some("unmatched dtype") => CheckKind::Dtype,
                Some("unmatched device type") => CheckKind::Device,
                Some("unmatched dim value") => CheckKind::Static { dim },
                Some("dim value is too small") => CheckKind::Lower { dim },
                Some("dim value is too large") => CheckKind::Upper { dim },
                Some("unmatched stride value") => CheckKind::Stride { dim },
                other => panic!("unknown message {other:?}"),
            };
            let value = match kind {
                CheckKind::Dtype => {
                    aoti_inspect::model::DType::from_enumerator(&text(c.get(5))).expect("dtype").to_string()
                }
                CheckKind::Device => text(c.get(5)),
                _ => text(c.get(4)),
            };
            line(text(c.get(1)).parse().expect("input"), kind, &value)
        })
        .collect()
}

/// The source of a library: inside the package of the same model (members are stored as they are), or beside it.
/// The package goes first: the source beside one of the aarch64 libraries is that of another build.
fn source_of(library: &Path) -> Option<Vec<u8>> {
    let folder = library.parent()?;
    let name = library.file_name()?.to_str()?;
    let siblings = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let package = siblings
        .filter(|path| path.extension().is_some_and(|e| e == "pt2"))
        .filter(|path| path.file_stem().and_then(|s| s.to_str()).is_some_and(|stem| name.starts_with(stem)))
        .max_by_key(|path| path.as_os_str().len());
    let packaged = package.and_then(|package| std::fs::read(package).ok());
    packaged.filter(|bytes| memchr::memmem::find(bytes, b"input_handles[0]: unmatched").is_some()).or_else(|| {
        let own = folder.join("sources").join(format!("{name}.wrapper.cpp"));
        // variants are one model, compiled in other ways
        let common = folder.join("sources/2.15.0-cpu-mlp_dynamic-gcc-nodebug.so.wrapper.cpp");
        std::fs::read(own).or_else(|_| std::fs::read(common)).ok()
    })
}

fn libraries(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            libraries(&path, found);
        } else if path.extension().is_some_and(|e| e == "so" || e == "dll" || e == "pyd" || e == "dylib") {
            found.push(path);
        }
    }
}

#[test]
fn every_check_is_the_one_of_its_source() {
    let mut found = Vec::new();
    libraries(Path::new("testdata/artifacts"), &mut found);
    for folder in ["linux-x86_64-cpu", "linux-x86_64-cuda", "models", "aarch64", "macos", "windows", "variants"] {
        libraries(&Path::new("target/corpus").join(folder), &mut found);
    }
    found.sort();
    let mut failures = Vec::new();
    let (mut count, mut compared, mut numeric) = (0, 0, 0);
    for path in &found {
        let Some(text) = source_of(path) else { continue };
        let wanted = source_lines(&text);
        let bytes = source::open_file(path).expect("open");
        let image = Image::open(Region::whole(bytes.as_ref())).expect("image");
        let read = xref::read(&image).expect("read");
        let got: BTreeSet<Line> = read.checks.iter().map(read_line).collect();
        count += wanted.len();
        let own = format!("{}: {} checks, {} unresolved", path.display(), wanted.len(), read.unresolved.len());
        if std::env::var_os("XREF_PRINT").is_some() {
            println!("{own} {} compared", read.checks.iter().filter(|c| c.compared.is_some()).count());
        }
        if !read.unresolved.is_empty() || wanted != got {
            let missing: Vec<_> = wanted.difference(&got).collect();
            let extra: Vec<_> = got.difference(&wanted).collect();
            failures.push(format!("{own}; missing {missing:?}, extra {extra:?}, {:?}", read.unresolved.first()));
        }
        for check in &read.checks {
            numeric += 1;
            compared += usize::from(check.compared.is_some());
            if check.compared.as_ref().is_some_and(|other| *other != check.value) {
                failures.push(format!("{}: {check:?}", path.display()));
            }
        }
    }
    println!("{} libraries, {count} checks, {compared} of {numeric} compared", found.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // not an empty pass: the library of the plain case alone has seven
    assert!(count >= 7, "{count} checks");
}
