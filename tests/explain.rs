//! Real failure output with its artefact: the class, and what the explanation has to name.
#![allow(clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use aoti_inspect::assemble::{self, Settings};
use aoti_inspect::container;
use aoti_inspect::explain::exit::Exit;
use aoti_inspect::explain::{Case, explain, log, redact};
use aoti_inspect::model::Artifact;
use aoti_inspect::report::{ArtifactReport, Verdict};
use aoti_inspect::target::LoadConfig;
use std::path::{Path, PathBuf};

#[derive(serde::Deserialize)]
struct Entry {
    log: String,
    exit: String,
    artifact: String,
    alteration: Option<String>,
    class: Option<String>,
    must_name: Vec<String>,
}

fn entries() -> Vec<Entry> {
    let text = std::fs::read_to_string("testdata/logs/expected.json").unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Without the lines that describe the scenario, which real people do not have.
fn log_text(name: &str) -> String {
    let text = std::fs::read_to_string(Path::new("testdata/logs").join(name)).unwrap();
    text.lines().skip_while(|l| l.starts_with("# ")).map(|l| format!("{l}\n")).collect()
}

/// The unaltered artefact: from the tests' own data, else from the corpus; `None` in a clone without the corpus.
fn source(artifact: &str) -> Option<PathBuf> {
    let name = artifact.rsplit('/').next().unwrap();
    let candidates = match artifact {
        "negatives ep_only" => vec!["testdata/negatives/2.15.0-cpu-ep_only.pt2".into()],
        "negatives torchscript" => vec!["testdata/negatives/2.15.0-cpu-torchscript.pt".into()],
        "a text file" => vec!["testdata/README.md".into()],
        _ => vec![Path::new("testdata/artifacts").join(name), Path::new("target/corpus").join(artifact)],
    };
    candidates.into_iter().find(|p: &PathBuf| p.exists())
}

fn number(bytes: &[u8], at: usize, len: usize) -> usize {
    bytes[at..at + len].iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
}

/// The package without the members that `drop` names: their rows are taken out of the archive's directory.
fn without_members(bytes: &[u8], drop: &dyn Fn(&str) -> bool) -> Vec<u8> {
    let end = bytes.windows(4).rposition(|w| w == b"PK\x05\x06").unwrap();
    let (mut size, mut start) = (number(bytes, end + 12, 4), number(bytes, end + 16, 4));
    if let Some(wide) = bytes.windows(4).rposition(|w| w == b"PK\x06\x06") {
        (size, start) = (number(bytes, wide + 40, 8), number(bytes, wide + 48, 8));
    }
    let mut out = bytes[..start].to_vec();
    let (mut at, mut kept) = (start, 0u16);
    while at < start + size {
        let name_len = number(bytes, at + 28, 2);
        let row = 46 + name_len + number(bytes, at + 30, 2) + number(bytes, at + 32, 2);
        if !drop(std::str::from_utf8(&bytes[at + 46..at + 46 + name_len]).unwrap()) {
            out.extend_from_slice(&bytes[at..at + row]);
            kept += 1;
        }
        at += row;
    }
    let directory = u32::try_from(out.len() - start).unwrap();
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&kept.to_le_bytes());
    out.extend_from_slice(&kept.to_le_bytes());
    out.extend_from_slice(&directory.to_le_bytes());
    out.extend_from_slice(&u32::try_from(start).unwrap().to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out
}

fn altered(bytes: Vec<u8>, alteration: Option<&str>) -> Vec<u8> {
    match alteration {
        Some("every member ending in .so removed") => without_members(&bytes, &|n| n.ends_with(".so")),
        Some("the .blob member removed") => without_members(&bytes, &|n| n.ends_with(".blob")),
        Some("every *_metadata.json removed") => without_members(&bytes, &|n| n.ends_with("_metadata.json")),
        Some("cut to 400000 bytes") => bytes[..400_000].to_vec(),
        Some("cut to 100000 bytes") => bytes[..100_000].to_vec(),
        Some("nothing to remove on CPU: it ran") | None => bytes,
        Some(other) => panic!("unknown alteration: {other}"),
    }
}

fn artifact(path: &Path, alteration: Option<&str>) -> Artifact {
    let bytes = altered(std::fs::read(path).unwrap(), alteration);
    let container = container::open_bytes(Box::new(bytes), None);
    assemble::assemble(path.file_name().unwrap().to_str().unwrap(), &container, &Settings::default())
}

fn explained(text: &str, artifact: Option<&Artifact>, exit: &str) -> ArtifactReport {
    let reading = log::read(text.as_bytes()).unwrap();
    let load = LoadConfig::default();
    explain(&Case { reading: &reading, artifact, places: &[], load: &load, exit: Exit::from_text(exit) })
}

fn whole_text(report: &ArtifactReport) -> String {
    let mut text = String::new();
    for cause in &report.causes {
        text.push_str(&format!(
            "{}. {} {} line {:?}: {}\n",
            cause.rank, cause.class, cause.pattern, cause.line, cause.sentence
        ));
        for evidence in &cause.evidence {
            text.push_str(&format!("   {:?}: {}\n", evidence.source, evidence.detail));
        }
        text.push_str(&format!("   fix: {}\n", cause.fix.as_deref().unwrap_or_default()));
    }
    text
}

#[test]
fn every_log_with_its_artefact_gives_the_class_and_names_what_matters() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for entry in entries() {
        let Some(path) = source(&entry.artifact) else { continue };
        tried += 1;
        let file = artifact(&path, entry.alteration.as_deref());
        let report = explained(&log_text(&entry.log), Some(&file), &entry.exit);
        let text = whole_text(&report);
        if std::env::var_os("SHOW").is_some() {
            eprintln!("==== {} (exit {}, expected {:?})\n{text}", entry.log, entry.exit, entry.class);
        }
        let first = report.causes.first().filter(|_| report.verdict == Verdict::Pass);
        if first.map(|c| c.class.as_str()) != entry.class.as_deref() {
            wrong.push(format!("{}: {:?} instead of {:?}\n{text}", entry.log, first.map(|c| &c.class), entry.class));
        }
        for name in &entry.must_name {
            if !text.contains(name.as_str()) {
                wrong.push(format!("{}: does not name {name:?}\n{text}", entry.log));
            }
        }
    }
    assert!(tried >= 8, "only {tried} artefacts are here");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Texts alone: the class where the text tells it (a crash without text has none).
#[test]
fn logs_without_their_artefact_are_classified_too() {
    // the artefact shows more than the text in these
    let by_artefact = ["2.11.0-cuda-no_weights_blob.log"];
    for entry in entries() {
        let report = explained(&log_text(&entry.log), None, &entry.exit);
        let found = report.causes.first().filter(|_| report.verdict == Verdict::Pass).map(|c| c.class.as_str());
        let silent = entry.exit.starts_with('-');
        if !silent && !by_artefact.contains(&entry.log.as_str()) {
            assert_eq!(found, entry.class.as_deref(), "{}\n{}", entry.log, whole_text(&report));
        }
    }
}

/// The whole path on CUDA: input, dim, range, kernel, operators.
#[test]
fn an_index_out_of_bounds_ends_at_the_input_and_its_range() {
    for (log, name) in [
        ("2.11.0-cuda-assert_empty_values.log", "2.11.0-cuda-assert_idx.pt2"),
        ("2.11.0-cuda-empty_values.log", "2.11.0-cuda-last_by_cumsum.pt2"),
    ] {
        let file = artifact(&Path::new("testdata/artifacts").join(name), None);
        let report = explained(&log_text(log), Some(&file), "1");
        let text = whole_text(&report);
        for word in [
            "inputs[1]",
            "dim 0",
            "2..230400",
            "triton_red_fused_cumsum_index_mul_sub_0",
            "aten.index",
            "inputs[0]",
            "s59",
        ] {
            assert!(text.contains(word), "{log}: {word}\n{text}");
        }
        assert_eq!(report.causes[0].class, "C18");
    }
}

/// A bare library has no source: text and arguments come from its code.
#[test]
fn an_index_out_of_bounds_is_followed_in_a_bare_library() {
    let path = Path::new("target/corpus/linux-x86_64-cpu/2.15.0/2.15.0-cpu-last_by_cumsum.so");
    if !path.exists() {
        return;
    }
    let file = artifact(path, None);
    let report = explained(&log_text("2.15.0-cpu-empty_values.log"), Some(&file), "1");
    let text = whole_text(&report);
    for word in ["cpp_fused_index_mul_sub_0 holds", "dim 0 of inputs[1]", "2..230400", "in the order of their numbers"]
    {
        assert!(text.contains(word), "{word}\n{text}");
    }
    let path = Path::new("target/corpus/linux-x86_64-cuda/2.11.0/2.11.0-cuda-assert_idx.so");
    let file = artifact(path, None);
    let report = explained(&log_text("2.11.0-cuda-assert_empty_values.log"), Some(&file), "1");
    let text = whole_text(&report);
    for word in ["triton_red_fused_cumsum_index_mul_sub_0", "dim 0 of inputs[1]", "2..230400", "stays open"] {
        assert!(text.contains(word), "{word}\n{text}");
    }
}

proptest::proptest! {
    /// Whatever bytes a log holds, reading ends without a panic; its counts are those of the bytes.
    #[test]
    fn any_bytes_are_read(
        noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400),
        cut in 0usize..2000,
        pieces in proptest::collection::vec(0usize..300, 1..6),
    ) {
        let samples: Vec<&str> = aoti_inspect::explain::pattern::table().flat_map(|p| p.samples.iter().copied()).collect();
        let mut log: Vec<u8> = Vec::new();
        for piece in pieces {
            log.extend_from_slice(samples[piece % samples.len()].as_bytes());
            log.extend_from_slice(&noise);
            log.push(b'\n');
        }
        log.truncate(cut);
        let reading = log::read(&log[..]).unwrap();
        proptest::prop_assert!(log.starts_with(&[0xFF, 0xFE]) || log.starts_with(&[0xFE, 0xFF]) || reading.bytes == log.len() as u64);
        let load = LoadConfig::default();
        explain(&Case { reading: &reading, artifact: None, places: &[], load: &load, exit: None });
    }
}

#[test]
fn a_log_of_another_artefact_is_seen_to_be_one() {
    let file = artifact(Path::new("testdata/artifacts/2.15.0-cpu-mlp_dynamic.pt2"), None);
    for text in [
        "Error: input_handles[0]: unmatched dim value at 1, expected: 77, but got: 11",
        "Error: input_handles[5]: unmatched dim value at 1, expected: 10, but got: 11",
        "Error: input_handles[0]: unmatched dtype, expected: 4(at::kLong), but got: 6",
        "Error: index out of bounds: 0 <= tmp99 < ks7",
        "RuntimeError: expected inputs vector size to be 9, but got 2",
    ] {
        let report = explained(text, Some(&file), "1");
        let all = whole_text(&report);
        assert!(all.contains("does not come from this artefact") || all.contains("stays open"), "{text}\n{all}");
    }
}

/// Kernel messages, backtraces and frames lead to the kernel; an illegal instruction is decoded.
#[test]
fn crash_addresses_are_followed_into_the_library() {
    let path = Path::new("testdata/artifacts/2.15.0-cpu-mlp_dynamic.pt2");
    let container = container::open(path).unwrap();
    let file = assemble::assemble("m.pt2", &container, &Settings::default());
    let library = container.members().find(|m| m.name().ends_with(".wrapper.so")).unwrap();
    let image = aoti_inspect::image::Image::open(library.region().unwrap()).unwrap();
    let functions = aoti_inspect::image::functions::functions(&image).unwrap();
    let kernel = functions
        .iter()
        .find(|f| f.name.as_deref().is_some_and(|n| n.starts_with("cpp_fused") && !n.contains('.')))
        .unwrap();
    let name = kernel.name.as_deref().unwrap();
    let code = image.segments().iter().find(|s| s.is_executable).unwrap();
    // the first instruction of the kernel that needs AVX
    let bytes = image.read(kernel.start, kernel.end - kernel.start).unwrap();
    let mut decoder = iced_x86::Decoder::with_ip(64, bytes, kernel.start, 0);
    let needs_avx = |i: &iced_x86::Instruction| i.cpuid_features().iter().any(|f| format!("{f:?}").starts_with("AVX"));
    let address = decoder.iter().find(needs_avx).unwrap().ip();
    let inside = address - kernel.start;
    let base = 0x7f00_0000_0000u64;
    let module = library.file_name();
    let delta = address - (code.address & !0xFFF);
    let offset = image.file_offset(address).unwrap();
    for (text, is_illegal) in [
        (
            format!(
                "traps: python3[1] trap invalid opcode ip:{:x} sp:7ffc error:0 in {module}[{base:x}+5000]",
                base + delta
            ),
            true,
        ),
        (
            format!(
                "traps: python3[1] trap invalid opcode ip:{:x} sp:7ffc error:0 in {module}[{offset:x},{base:x}+5000]",
                base + delta
            ),
            true,
        ),
        (format!("Segmentation fault\n/tmp/x/{module}(+{address:#x}) [0x7f0012341234]"), false),
        (format!("Segmentation fault\n#0  0x00007f0012341234 in {name} () from /tmp/x/{module}"), false),
        (format!("frame #3: {name} + {inside:#x} (0x7f13d81f19b6 in /tmp/x/{module})\nSegmentation fault"), false),
    ] {
        let reading = log::read(text.as_bytes()).unwrap();
        let places = aoti_inspect::explain::address::locate(&reading, &container);
        assert!(places.iter().any(|p| p.function.as_deref() == Some(name)), "{text}: {places:?}");
        let load = LoadConfig::default();
        let report =
            explain(&Case { reading: &reading, artifact: Some(&file), places: &places, load: &load, exit: None });
        let all = whole_text(&report);
        assert!(all.contains(name), "{all}");
        if is_illegal {
            assert_eq!(report.causes[0].class, "C13");
            assert!(report.causes[0].sentence.contains("needs the CPU feature avx"), "{all}");
        }
    }
}

#[test]
fn nothing_known_is_not_recognised() {
    let report = explained("hello\nTraceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\n", None, "1");
    assert_eq!(report.verdict, Verdict::Unknown);
    assert!(report.causes[0].sentence.contains("KeyError: 'x'"));
}

#[test]
fn redaction_masks_weights_and_paths() {
    let file = artifact(Path::new("testdata/artifacts/2.15.0-cpu-weights_outside.pt2"), None);
    let text = "Error: Cannot find constants fc1_weight in constants_map!\nRuntimeError: Failed to open external weights file: /srv/secret/plan.blob\n";
    let mut report = explained(text, Some(&file), "1");
    assert!(whole_text(&report).contains("fc1"));
    redact(&mut report, Some(&file));
    let all = whole_text(&report);
    assert!(!all.contains("fc1.weight") && !all.contains("fc1_weight") && !all.contains("secret"), "{all}");
}
