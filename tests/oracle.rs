//! The verdict about inputs is the one of the real runtime: every recorded row, through the package's facts.
//!
//! `testdata/oracle` holds the rows of the artefacts in `testdata/artifacts`; where the whole corpus and all rows lie
//! beside the checkout they are judged too.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot read its data has to fail"
)]

use aoti_inspect::checks::{Policy, verify_artifact};
use aoti_inspect::model::Artifact;
use aoti_inspect::report::{Outcome, Verdict};
use aoti_inspect::target::cases::parse_cases;
use aoti_inspect::target::{InputCase, InputRequest, InputRequests, LoadConfig, Which};
use aoti_inspect::{Settings, inspect};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One recorded call: what was passed, and what `verify` has to say.
struct Row {
    what: String,
    message: String,
    expected: Verdict,
    case: InputCase,
}

/// Rows by the artefact's file name; those that fail for a reason outside the inputs are left out.
fn rows(folder: &Path) -> BTreeMap<String, Vec<Row>> {
    let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let expected = match row["label"].as_str().unwrap() {
                "fail" => Verdict::Fail,
                "pass" => Verdict::Pass,
                _ => continue,
            };
            let case = parse_cases(line).unwrap().remove(0);
            let artifact = text("artifact");
            let row = Row { what: text("what"), message: text("message"), expected, case };
            rows.entry(artifact).or_default().push(row);
        }
    }
    rows
}

/// Artefacts below a folder by file name.
fn artifacts(folder: &Path, extension: &str) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), path);
            }
        }
    }
    found
}

fn config(case: &InputCase) -> LoadConfig {
    let entries = case.inputs.iter().cloned().enumerate();
    let entries = entries.map(|(n, tensor)| InputRequest { which: Which::Nth(n), tensor }).collect();
    LoadConfig {
        inputs: InputRequests { entries, count: Some(case.inputs.len()), dims: Vec::new() },
        ..LoadConfig::default()
    }
}

/// Each row on its own: returns how many there were, and a line per wrong verdict.
fn judge(artifact: &Artifact, rows: &[Row]) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    for row in rows {
        let report = verify_artifact(artifact, &config(&row.case), &Policy::default());
        // weights that lie elsewhere and the like are no matter of the inputs
        let inputs: Vec<_> = report.findings.iter().filter(|f| f.code.starts_with("input-")).collect();
        let verdict = [Verdict::Fail, Verdict::Unknown]
            .into_iter()
            .find(|v| inputs.iter().any(|f| f.verdict() == *v))
            .unwrap_or(Verdict::Pass);
        if verdict != row.expected || report.verdict != row.expected {
            let said: Vec<&str> =
                report.findings.iter().filter(|f| f.outcome != Outcome::Pass).map(|f| f.message.as_str()).collect();
            let (path, what, message) = (&artifact.path, &row.what, &row.message);
            wrong.push(format!("{path} `{what}`: runtime `{message}`, verdict {:?}: {said:?}", report.verdict));
        }
    }
    (rows.len(), wrong)
}

/// All rows of an artefact in one configuration, as `--cases` gives them.
fn judge_together(artifact: &Artifact, rows: &[Row]) -> Vec<String> {
    let cases = rows.iter().map(|row| row.case.clone()).collect();
    let config = LoadConfig { cases, ..LoadConfig::default() };
    let report = verify_artifact(artifact, &config, &Policy::default());
    let cases = report.cases.expect("cases were asked");
    let wrong = rows.iter().zip(&cases.verdicts).filter(|(row, (_, verdict))| row.expected != *verdict);
    wrong.map(|(row, verdict)| format!("{} `{}` together: {verdict:?}", artifact.path, row.what)).collect()
}

/// Judges every artefact that `open` gives, alone and together; returns how many rows there were.
fn judge_all(rows: &BTreeMap<String, Vec<Row>>, open: &dyn Fn(&str) -> Option<Artifact>) -> usize {
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, rows) in rows {
        let Some(artifact) = open(name) else { continue };
        let (judged, mut bad) = judge(&artifact, rows);
        count += judged;
        wrong.append(&mut bad);
        wrong.append(&mut judge_together(&artifact, rows));
    }
    for line in wrong.iter().take(40) {
        println!("{line}");
    }
    assert!(wrong.is_empty(), "{} wrong verdicts over {count} rows", wrong.len());
    count
}

/// Reads a package as it lies there.
fn package(path: &Path) -> Artifact {
    inspect(path, &Settings::default()).unwrap()
}

/// Reads a library as if it lay alone under another name: nothing beside it can help.
fn bare_library(path: &Path) -> Artifact {
    let name = path.file_name().unwrap().to_string_lossy();
    let bytes = std::fs::read(path).unwrap();
    let container = aoti_inspect::container::open_bytes(Box::new(bytes), None);
    aoti_inspect::assemble::assemble(&name, &container, &Settings::default())
}

#[test]
fn verdicts_are_those_of_the_runtime() {
    let files = artifacts(Path::new("testdata/artifacts"), "pt2");
    let count = judge_all(&rows(Path::new("testdata/oracle")), &|name| files.get(name).map(|path| package(path)));
    assert!(count > 300, "only {count} rows were judged");
}

/// The corpus and all rows, when both lie beside the checkout.
fn corpus() -> Option<(BTreeMap<String, Vec<Row>>, &'static Path)> {
    let (folder, corpus) = (Path::new("../shared/oracle"), Path::new("target/corpus"));
    (folder.exists() && corpus.exists()).then(|| (rows(folder), corpus))
}

#[test]
fn verdicts_are_those_of_the_runtime_over_the_corpus() {
    let Some((rows, corpus)) = corpus() else { return };
    let files = artifacts(corpus, "pt2");
    let count = judge_all(&rows, &|name| files.get(name).map(|path| package(path)));
    println!("{count} rows");
    assert!(count > 3000, "only {count} rows were judged");
}

/// The library of the same model, compiled for the same release, has the same verdicts.
#[test]
fn verdicts_through_bare_libraries() {
    let Some((rows, corpus)) = corpus() else { return };
    let files = artifacts(corpus, "so");
    let open = |name: &str| files.get(&name.replace(".pt2", ".so")).map(|path| bare_library(path));
    let count = judge_all(&rows, &open);
    println!("{count} rows");
    assert!(count > 2000, "only {count} rows were judged");
}
