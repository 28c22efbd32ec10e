//! The cross-reference method against the generated source that each library was compiled from.

use aoti_inspect::image::Image;
use aoti_inspect::source::Region;
use aoti_inspect::xref::{self, Check, CheckKind, CheckValue};
use aoti_inspect::{container, limits};
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

/// The generated source of a bare library: in the package of the same model, or beside it. The package goes first: the
/// source beside one of the aarch64 libraries is that of another build.
fn source_of(library: &Path) -> Option<Vec<u8>> {
    let folder = library.parent()?;
    let name = library.file_name()?.to_str()?;
    let siblings = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let package = siblings
        .filter(|path| path.extension().is_some_and(|e| e == "pt2"))
        .filter(|path| path.file_stem().and_then(|s| s.to_str()).is_some_and(|stem| name.starts_with(stem)))
        .max_by_key(|path| path.as_os_str().len());
    if let Some(container) = package.and_then(|package| container::open(&package).ok()) {
        let wrapper = container.models().first().and_then(|model| model.wrapper);
        if let Some(source) = wrapper.and_then(|id| container.member(id)) {
            return source.bytes(limits::SOURCE_BYTES).ok().map(<[u8]>::to_vec);
        }
    }
    let own = folder.join("sources").join(format!("{name}.wrapper.cpp"));
    // variants are one model, compiled in other ways
    let common = folder.join("sources/2.15.0-cpu-mlp_dynamic-gcc-nodebug.so.wrapper.cpp");
    std::fs::read(own).or_else(|_| std::fs::read(common)).ok()
}

fn artifacts(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            artifacts(&path, found);
        } else if path.extension().is_some_and(|e| e == "so" || e == "pt2") {
            found.push(path);
        }
    }
}

/// What was compared, and what did not agree.
#[derive(Default)]
struct Tally {
    libraries: usize,
    checks: usize,
    compared: usize,
    failures: Vec<String>,
}

impl Tally {
    fn judge(&mut self, name: &str, library: Region<'_>, source: &[u8]) {
        let wanted = source_lines(source);
        let image = Image::open(library).expect("image");
        let read = xref::read(&image).expect("read");
        let got: BTreeSet<Line> = read.checks.iter().map(read_line).collect();
        self.libraries += 1;
        self.checks += wanted.len();
        if !read.unresolved.is_empty() || wanted != got {
            let missing: Vec<_> = wanted.difference(&got).collect();
            let extra: Vec<_> = got.difference(&wanted).collect();
            let first = read.unresolved.first();
            self.failures.push(format!("{name}: missing {missing:?}, extra {extra:?}, unresolved {first:?}"));
        }
        for check in &read.checks {
            self.compared += usize::from(check.compared.is_some());
            if check.compared.as_ref().is_some_and(|other| *other != check.value) {
                self.failures.push(format!("{name}: {check:?}"));
            }
        }
        let unknown: Vec<_> = read.to_interface().unknown;
        let is_expected = |reason: &str| reason == "the checks name none of its dims";
        if let Some(unknown) = unknown.iter().find(|unknown| !is_expected(&unknown.reason)) {
            self.failures.push(format!("{name}: {unknown:?}"));
        }
    }
}

#[test]
fn every_check_is_the_one_of_its_source() {
    let mut found = Vec::new();
    artifacts(Path::new("testdata/artifacts"), &mut found);
    let corpus =
        ["linux-x86_64-cpu", "linux-x86_64-cuda", "models", "aarch64", "macos", "windows", "variants", "packages"];
    for folder in corpus {
        artifacts(&Path::new("target/corpus").join(folder), &mut found);
    }
    found.sort();
    let mut tally = Tally::default();
    for path in &found {
        let container = container::open(path).expect("open");
        for model in container.models() {
            let Ok(Some(library)) = container.library(model) else { continue };
            let member = model.wrapper.and_then(|id| container.member(id));
            let packaged = member.and_then(|member| member.bytes(limits::SOURCE_BYTES).ok().map(<[u8]>::to_vec));
            let is_package = path.extension().is_some_and(|e| e == "pt2");
            let source = if is_package { packaged } else { source_of(path) };
            let Some(source) = source else { continue };
            tally.judge(&format!("{} {}", path.display(), model.name), library, &source);
        }
    }
    let Tally { libraries, checks, compared, failures } = tally;
    println!("{libraries} libraries, {checks} checks, {compared} compared");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // the artefacts of a fresh clone alone have more than a hundred checks
    assert!(checks > 100 && compared > 80, "{checks} checks, {compared} compared");
}

/// Bytes turned over anywhere may cost facts, never the process.
#[test]
fn damaged_libraries_end_in_a_result() {
    let bytes = std::fs::read("testdata/artifacts/2.15.0-cpu-mlp_dynamic.so").expect("testdata");
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 1).unwrap_or(0) % below
    };
    for round in 0..40 {
        let mut damaged = bytes.clone();
        for _ in 0..200 {
            // headers and tables near the start, code and texts behind
            let at = random(if round % 2 == 0 { 0x1000 } else { bytes.len() });
            damaged[at] = random(256) as u8;
        }
        let damaged: Box<dyn aoti_inspect::source::Bytes> = Box::new(damaged);
        if let Ok(image) = Image::open(Region::whole(damaged.as_ref())) {
            let _ = xref::read(&image).map(|read| read.to_interface());
        }
    }
}
