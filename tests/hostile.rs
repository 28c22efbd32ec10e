//! Files that lie: every file of `testdata/hostile` (and of the corpus where it is unpacked) with its right exit codes,
//! the limits at their borders, and a mapped file that is cut short.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use aoti_inspect::container::{self, Container};
use aoti_inspect::metadata::{call_spec, expression};
use aoti_inspect::target::size::parse_sizes;
use aoti_inspect::{CodeReading, Settings, explain, image, limits, source, wrapper};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File, exit code of `show`, exit code of `verify`. Where a library can be read the file is shown, and judged by what
/// the checks need of it; everything else is 3.
const HOSTILE: &[(&str, i32, i32)] = &[
    // the metadata is what the checks of the device need
    ("bad_metadata.pt2", 0, 3),
    ("bomb_elf.pt2", 3, 3),
    ("bomb_flat.pt2", 3, 3),
    ("bomb_nested.pt2", 3, 3),
    ("cpu_metadata_cuda_so.pt2", 0, 1),
    ("directory.pt2", 3, 3),
    ("elf_entsize_zero.so", 3, 3),
    ("elf_huge_section.so", 3, 3),
    // a loader needs no section table, and neither do we
    ("elf_no_sections.so", 0, 0),
    ("elf_phdr_overlap.so", 3, 3),
    ("elf_shnum_65535.so", 3, 3),
    ("elf_shoff_beyond.so", 0, 0),
    ("elf_strtab_unterminated.so", 3, 3),
    ("empty.so", 3, 3),
    ("encrypted_flag.pt2", 3, 3),
    ("headeronly.so", 3, 3),
    ("lying_directory.pt2", 3, 3),
    ("lying_sizes.pt2", 3, 3),
    ("macho_fat.so", 3, 3),
    ("mz_stub.so", 3, 3),
    ("no_metadata.pt2", 0, 0),
    // other zip readers make up for the bytes before it; torch's does not
    ("prefix_junk.pt2", 0, 3),
    ("symlink.pt2", 3, 3),
    ("terminal_escape.pt2", 0, 0),
    // its only library under a proper name is the first page of one
    ("traversal.pt2", 3, 3),
    ("truncated.pt2", 3, 3),
    // the dynamic table lies in the part that is gone
    ("truncated.so", 3, 3),
];

fn hostile_files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["testdata/hostile", "target/corpus/hostile"].map(|folder| root.join(folder));
    let mut found: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_none_or(|e| e != "json"))
        .collect();
    found.sort();
    assert!(found.len() > 20, "testdata/hostile is there");
    found
}

#[test]
fn every_hostile_file_has_its_exit_codes() {
    for path in hostile_files() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let row = HOSTILE.iter().find(|row| row.0 == name);
        let (_, show, verify) = row.unwrap_or_else(|| panic!("{name} needs a row in the table"));
        for (command, expected) in [("show", show), ("verify", verify)] {
            let run = |format: &str| {
                let mut child = Command::new(env!("CARGO_BIN_EXE_aoti-inspect"));
                child.args([command, "--format", format]).arg(&path).output().unwrap()
            };
            let output = run("text");
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.status.code(), Some(*expected), "{command} {name}\n{out}{err}");
            assert!(!out.contains("panicked") && !err.contains("panicked"), "{command} {name}\n{err}");
            // nothing from the file reaches the terminal as a command
            assert!(!out.chars().any(|c| c.is_control() && c != '\n'), "{command} {name}: {out:?}");
            let output = run("json");
            assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok(), "{command} {name} as JSON");
        }
    }
}

#[test]
fn every_hostile_file_says_what_is_wrong() {
    let settings =
        Settings { code: CodeReading::Always, scans_instructions: true, hashes_file: true, ..Settings::default() };
    for path in hostile_files() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let artifact = aoti_inspect::inspect(&path, &settings).unwrap();
        let conflicts = artifact.models.iter().map(|m| m.conflicts.len()).sum::<usize>();
        // ugly strings, and no section table although no loader asks for one: nothing is damaged
        if name != "terminal_escape.pt2" && name != "elf_no_sections.so" {
            assert!(artifact.error.is_some() || !artifact.problems.is_empty() || conflicts > 0, "{name}");
        }
        let text = format!("{:?} {:?}", artifact.error, artifact.problems);
        let says = match name {
            "encrypted_flag.pt2" => "encrypted",
            "bomb_flat.pt2" | "bomb_elf.pt2" => "no real member shrinks",
            "symlink.pt2" => "symbolic link",
            _ => continue,
        };
        assert!(text.contains(says), "{name}: {text}");
    }
}

/// A zip as it is on disk. `data` goes in as it is given; sizes and checksum are what the rows say.
#[derive(Default)]
struct Zip {
    bytes: Vec<u8>,
    rows: Vec<u8>,
    count: u64,
}

impl Zip {
    /// The two members that make a package of it.
    fn package() -> Self {
        let mut zip = Self::default();
        zip.store("m/archive_format", b"pt2");
        zip.store("m/data/aotinductor/model/x.wrapper.so", b"\x7fELF");
        zip
    }
    fn add(&mut self, name: &str, method: u16, stored: &[u8], size: usize, crc32: u32) {
        let mut common = Vec::new();
        for field in [20, 0, method, 0, 0x21] {
            common.extend(u16::to_le_bytes(field));
        }
        for field in [crc32, u32::try_from(stored.len()).unwrap(), u32::try_from(size).unwrap()] {
            common.extend(field.to_le_bytes());
        }
        common.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        common.extend([0, 0]);
        let offset = u32::try_from(self.bytes.len()).unwrap();
        self.bytes.extend([b"PK\x03\x04".as_slice(), &common, name.as_bytes(), stored].concat());
        self.rows.extend([b"PK\x01\x02\x14\0".as_slice(), &common, &[0; 10], &offset.to_le_bytes()].concat());
        self.rows.extend(name.as_bytes());
        self.count += 1;
    }
    fn store(&mut self, name: &str, data: &[u8]) {
        self.add(name, 0, data, data.len(), rawzip::crc32(data));
    }
    fn deflate(&mut self, name: &str, data: &[u8]) {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(data).unwrap();
        self.add(name, 8, &encoder.finish().unwrap(), data.len(), rawzip::crc32(data));
    }
    fn open(self) -> Container {
        container::open_bytes(Box::new(self.bytes()), None)
    }
    /// With a zip64 end record, which counts beyond 65,535 need.
    fn bytes(mut self) -> Vec<u8> {
        let (directory, len) = (self.bytes.len() as u64, self.rows.len() as u64);
        self.bytes.append(&mut self.rows);
        let end64 = self.bytes.len() as u64;
        self.bytes.extend(b"PK\x06\x06");
        self.bytes.extend(44u64.to_le_bytes());
        self.bytes.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for field in [self.count, self.count, len, directory] {
            self.bytes.extend(field.to_le_bytes());
        }
        self.bytes.extend(b"PK\x06\x07\0\0\0\0");
        self.bytes.extend(end64.to_le_bytes());
        self.bytes.extend(b"\x01\0\0\0PK\x05\x06\0\0\0\0");
        self.bytes.extend([0xff; 12]);
        self.bytes.extend([0, 0]);
        self.bytes
    }
}

fn problems(container: &Container) -> String {
    assert_eq!(container.error(), None);
    container.problems().iter().map(|p| format!("{p:?}\n")).collect()
}

#[test]
fn members_have_a_border() {
    let of = |count: usize| {
        let mut zip = Zip::package();
        (2..count).for_each(|n| zip.store(&format!("m/data/{n}"), b""));
        zip.open()
    };
    let fine = of(limits::MEMBERS);
    assert_eq!(problems(&fine), "");
    assert_eq!(fine.members().count(), limits::MEMBERS);
    let over = of(limits::MEMBERS + 1);
    assert!(problems(&over).contains("more than 65536 members"), "{}", problems(&over));
    assert_eq!(over.members().count(), limits::MEMBERS);
}

#[test]
fn models_have_a_border() {
    let of = |count: usize| {
        let mut zip = Zip::package();
        (0..count).for_each(|n| zip.store(&format!("m/data/aotinductor/m{n}/m.so"), b""));
        let opened = zip.open();
        (opened.models().len(), opened.error().map(str::to_owned))
    };
    let (base, none) = of(0);
    assert_eq!(of(limits::MODELS - base), (limits::MODELS, None), "{none:?}");
    assert_eq!(of(limits::MODELS - base + 1), (0, Some("257 models, more than 256".to_owned())));
}

#[test]
fn names_have_a_border() {
    let of = |len: usize| {
        let mut zip = Zip::package();
        zip.store(&format!("m/{}", "n".repeat(len - 2)), b"");
        problems(&zip.open())
    };
    assert_eq!(of(limits::NAME_BYTES), "");
    assert!(of(limits::NAME_BYTES + 1).contains("a name of 4097 bytes is cut to 4096"));
}

#[test]
fn inflation_has_a_border() {
    let of = |len: u64| {
        let mut zip = Zip::package();
        zip.deflate("m/zeros", &vec![0; usize::try_from(len).unwrap()]);
        let container = zip.open();
        let member = container.members().find(|m| m.file_name() == "zeros").unwrap();
        member.bytes(u64::MAX).map(<[u8]>::len).map_err(|e| e.to_string())
    };
    assert_eq!(of(limits::INFLATION_FREE_BYTES), Ok(1 << 20));
    assert!(of(limits::INFLATION_FREE_BYTES + 1).unwrap_err().contains("no real member shrinks"));
}

#[test]
fn bytes_behind_a_zip_have_a_border() {
    // the end record itself has 22 bytes
    let of = |behind: u64| {
        let mut bytes = Zip::package().bytes();
        bytes.resize(bytes.len() + usize::try_from(behind).unwrap(), 0);
        let container = container::open_bytes(Box::new(bytes), None);
        container.error().map(str::to_owned)
    };
    assert_eq!(of(limits::ZIP_END_SEARCH_BYTES - 22), None);
    assert!(of(limits::ZIP_END_SEARCH_BYTES - 21).is_some_and(|said| said.contains("no end record")));
}

#[test]
fn listed_oddities_have_a_border() {
    let of = |count: usize| {
        let mut zip = Zip::package();
        (0..count).for_each(|n| zip.store(&format!("m/../{n}"), b""));
        let container = zip.open();
        let said: Vec<String> = container.problems().iter().map(|p| p.message.clone()).collect();
        (said.len(), said.last().cloned().unwrap())
    };
    let (count, last) = of(limits::LISTED_PROBLEMS);
    assert_eq!((count, last.contains("leads outside")), (limits::LISTED_PROBLEMS, true), "{last}");
    let (count, last) = of(limits::LISTED_PROBLEMS + 1);
    assert_eq!((count, last.contains("1 more problems")), (limits::LISTED_PROBLEMS + 1, true), "{last}");
}

/// An output call spec of `depth` tuples in each other, each two levels of JSON, below the envelope.
fn nested_spec(depth: usize, leaf: &str) -> String {
    let open = r#"{"type": "builtins.tuple", "context": "null", "children_spec": ["#;
    format!("[1, {}{leaf}{}]", open.repeat(depth), "]}".repeat(depth))
}

#[test]
fn call_specs_have_borders() {
    // one level for the envelope; a leaf has two levels, or one without the list of its children
    let (deep, flat) = (r#"{"type": null, "context": null, "children_spec": []}"#, r#"{"type": null}"#);
    let pairs = (limits::JSON_DEPTH - 3) / 2;
    assert_eq!(call_spec::output_leaves(&nested_spec(pairs, deep)).unwrap().unwrap().len(), 1);
    assert!(call_spec::output_leaves(&nested_spec(pairs + 1, flat)).is_err());
    assert!(call_spec::output_leaves(&nested_spec(100_000, flat)).is_err());
    // the tuple itself is a node
    let leaves = |count: usize| call_spec::output_leaves(&nested_spec(1, &vec![flat; count].join(",")));
    assert_eq!(leaves(limits::NODES - 1).unwrap().unwrap().len(), limits::NODES - 1);
    assert!(leaves(limits::NODES).unwrap_err().to_string().contains(&format!("more than {} nodes", limits::NODES)));
}

#[test]
fn expressions_and_shapes_have_borders() {
    let deep = |n: usize| expression::parse_expression(&format!("{}s0{}", "(".repeat(n), ")".repeat(n)));
    assert!(deep(limits::NESTING).is_some());
    assert!(deep(limits::NESTING + 1).is_none());
    let dims = |n: usize| parse_sizes(&vec!["2"; n].join("x"));
    assert_eq!(dims(limits::RANK).unwrap().len(), limits::RANK);
    assert!(dims(limits::RANK + 1).is_err());
}

#[test]
fn counts_of_a_wrapper_have_a_border() {
    let of = |count: usize| {
        let text =
            format!("AOTInductorModel::AOTInductorModel(x)\n    : AOTInductorModelBase({count}, 1, 0, x) {{\n}}\n");
        wrapper::read(text.as_bytes(), None).map(|w| w.constructor.input_count).map_err(|e| e.to_string())
    };
    assert_eq!(of(limits::TENSORS), Ok(limits::TENSORS));
    assert!(of(limits::TENSORS + 1).unwrap_err().contains("more than 65536"));
}

#[test]
fn sections_have_a_border() {
    let of = |count: usize| {
        let mut bytes = std::fs::read(artifact("2.15.0-cpu-mlp_dynamic.so")).unwrap();
        let table = bytes.len() as u64;
        bytes.resize(bytes.len() + 64 * count, 0);
        bytes[40..48].copy_from_slice(&table.to_le_bytes());
        bytes[60..62].copy_from_slice(&u16::try_from(count).unwrap().to_le_bytes());
        bytes[62..64].copy_from_slice(&[0, 0]);
        let image = image::Image::open(source::Region::whole(&bytes)).map_err(|e| e.to_string())?;
        Ok::<_, String>((image.sections().len(), format!("{:?}", image.problems())))
    };
    let (sections, said) = of(limits::SECTIONS).unwrap();
    assert_eq!((sections, said.contains("more than")), (limits::SECTIONS, false), "{said}");
    let over = of(limits::SECTIONS + 1);
    let is_refused = match &over {
        Ok((sections, said)) => *sections <= limits::SECTIONS && said.contains("16385"),
        Err(said) => said.contains("16385"),
    };
    assert!(is_refused, "{over:?}");
}

#[test]
fn folders_have_a_border() {
    let of = |depth: usize| {
        let root = tempfile::tempdir().unwrap();
        let deepest = (0..depth).fold(root.path().to_path_buf(), |at, _| at.join("d"));
        std::fs::create_dir_all(&deepest).unwrap();
        std::fs::copy(artifact("2.15.0-cpu-mlp_dynamic.so"), deepest.join("model.so")).unwrap();
        let found = container::walk(root.path()).unwrap();
        // the same as an unpacked package
        std::fs::write(root.path().join("archive_format"), "pt2").unwrap();
        let package = container::open(root.path()).map(|package| package.members().count());
        (found.candidates.len(), found.skipped.len(), package.map_err(|e| e.to_string()))
    };
    assert_eq!(of(limits::FOLDER_DEPTH), (1, 0, Ok(2)));
    let (candidates, skipped, package) = of(limits::FOLDER_DEPTH + 1);
    assert_eq!((candidates, skipped), (0, 1));
    assert!(package.unwrap_err().contains("lies more than 16 folders deep"));
}

#[test]
fn error_texts_of_a_log_have_a_border() {
    let of = |count: usize| {
        let log: String = (0..count).map(|n| format!("Error: cause number {n}\n")).collect();
        explain::log::read(log.as_bytes()).unwrap().errors.len()
    };
    assert_eq!(of(limits::LOG_TEXTS), limits::LOG_TEXTS);
    assert_eq!(of(limits::LOG_TEXTS + 1), limits::LOG_TEXTS);
}

/// Bodies of the functions of a source whose names hold `border`, by the indentation that rustfmt gives them.
fn border_tests(source: &str) -> String {
    let mut found = String::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let is_border =
            code.strip_prefix("fn ").and_then(|rest| rest.split('(').next()).is_some_and(|n| n.contains("border"));
        if is_border {
            let end = format!("{}}}", &line[..line.len() - code.len()]);
            for line in lines.by_ref().take_while(|line| *line != end) {
                found.push_str(line);
                found.push('\n');
            }
        }
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// A new limit needs a test that goes to its border.
#[test]
fn every_limit_has_a_test_at_its_border() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("tests"), &mut files);
    let tests: String = files.iter().map(|path| border_tests(&std::fs::read_to_string(path).unwrap())).collect();
    let mentioned: BTreeSet<&str> = tests
        .split("limits::")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_').next())
        .collect();
    let table = std::fs::read_to_string(root.join("src/limits.rs")).unwrap();
    let limits: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("pub const ")?.split(':').next()).collect();
    assert!(limits.len() > 50, "{limits:?}");
    let missing: Vec<&&str> = limits.iter().filter(|name| !mentioned.contains(**name)).collect();
    assert!(missing.is_empty(), "no test named `*border*` mentions {missing:?}");
}

/// The table gives a reason for each: more than its first words.
#[test]
fn every_limit_has_a_reason() {
    let table = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/limits.rs")).unwrap();
    let mut reason = String::new();
    for line in table.lines() {
        if let Some(text) = line.strip_prefix("///") {
            reason.push_str(text);
        } else if let Some(name) = line.strip_prefix("pub const ") {
            assert!(reason.len() > 40, "{name} has no reason: {reason}");
            reason.clear();
        }
    }
}

fn artifact(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts").join(name)
}

/// What `truncation_ends_with_a_message` starts a second time: only there is the variable set.
#[cfg(unix)]
#[test]
fn truncated_child() {
    let Some(path) = std::env::var_os("AOTI_TEST_TRUNCATED") else { return };
    source::exit_on_truncation();
    let mapped = source::open_file(Path::new(&path)).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    let bytes = mapped.range(1 << 20, 4096).unwrap();
    panic!("{} bytes could still be read", bytes.iter().filter(|b| **b == 0).count());
}

#[cfg(unix)]
#[test]
fn truncation_ends_with_a_message() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(4 << 20).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "truncated_child", "--nocapture"])
        .env("AOTI_TEST_TRUNCATED", file.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("became shorter while it was read"), "{said}");
}

#[test]
fn instructions_of_all_models_have_a_border() {
    assert_eq!(Settings::default().instructions, limits::ARTIFACT_INSTRUCTIONS);
    let of = |instructions: u64| {
        let settings = Settings { code: CodeReading::Always, traces: true, instructions, ..Settings::default() };
        let models = aoti_inspect::inspect(&artifact("2.15.0-cpu-two_models.pt2"), &settings).unwrap().models;
        let spent = |model: &aoti_inspect::model::Model| {
            let trace = model.trace.as_ref().unwrap().as_ref().unwrap();
            (trace.instructions, trace.stopped.as_ref().is_some_and(|why| why.contains("budget")))
        };
        <[(u64, bool); 2]>::try_from(models.iter().map(spent).collect::<Vec<_>>()).unwrap()
    };
    let [(first, false), (second, false)] = of(limits::ARTIFACT_INSTRUCTIONS) else { panic!("not read as a whole") };
    // one more, because a machine without any left has come to its end
    assert_eq!(of(first + second + 1), [(first, false), (second, false)]);
    assert_eq!(of(first + second - 1), [(first, false), (second - 1, true)]);
    assert_eq!(of(first - 1), [(first - 1, true), (0, true)]);
}
