//! Every format over one fixed report: snapshots, validation by other people's readers, and the property
//! that no format drops a finding.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use aoti_inspect::model::{
    Argument, Artifact, Assumption, Comparison, Condition, Dim, Evidence, Expr, Step, SymbolSize, Witness,
};
use aoti_inspect::render::{csv, github, json, junit, markdown, sarif, text as plain};
use aoti_inspect::report::{
    ArtifactReport, Cause, Change, ConfigPlace, Finding, Grade, Level, Outcome, Report, Side, TargetVerdict, Verdict,
    Waived,
};
use proptest::prelude::*;
use std::io::Write;

type Render = fn(&Report, &mut dyn Write) -> std::io::Result<()>;

const FORMATS: [(&str, Render); 8] = [
    ("csv", csv::render_report),
    ("markdown", markdown::render),
    ("github", github::render),
    ("sarif", sarif::render),
    ("junit", junit::render),
    ("json", json::render_report),
    ("jsonl", json::render_report_lines),
    ("text", render_text),
];

/// As on a terminal of 100 columns, with passes, without colour.
fn render_text(report: &Report, out: &mut dyn Write) -> std::io::Result<()> {
    let options = plain::TextOptions { width: Some(100), is_verbose: true, ..Default::default() };
    let mut coloured = Vec::new();
    plain::render_report(report, &options, &mut coloured)?;
    out.write_all(anstream::adapter::strip_bytes(&coloured).into_vec().as_slice())
}

fn text(render: Render, report: &Report) -> String {
    let mut out = Vec::new();
    render(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// One of everything, with text that tries to break out of each format.
fn fixed_report() -> Report {
    let mut gpu =
        Finding::new("gpu-arch", Outcome::Fail, "models[0].kernels[0]", "A10G (sm_86): all kernels are sm_90a, no PTX")
            .sides("sm_90a", "sm_86")
            .fix("compile on sm_86")
            .evidence([Evidence::new(Witness::Kernel, "e_flags 0x06005a04")]);
    gpu.target = Some("prod-a10g".into());
    gpu.fingerprint = "00ff".into();
    let mut waived = Finding::new("libtorch-leaked-cxx", Outcome::Fail, "models[0]", "imports at::empty");
    waived.waived = Some(Waived { reason: "rebuilt in the next release".into(), until: Some("2027-03-01".into()) });
    let hostile = "100% |x| <b>&\u{1b}[31m ::error::no\n##[error]no \u{202e}@team ]]>";
    let first = ArtifactReport {
        summary: "model · for cuda (sm_90a) · compiled by torch 2.10 to 2.12".into(),
        targets: vec![TargetVerdict { name: "prod-a10g".into(), verdict: Verdict::Fail }],
        findings: vec![
            Finding::new("device-mismatch", Outcome::Pass, "models[0].device", "compiled for cuda"),
            Finding::new("host-executable-stack", Outcome::Warn, "models[0]", hostile).level(Level::Warn),
            Finding::new("input-stride", Outcome::Unknown, "models[0].inputs[0].stride[0]", "stride not stated"),
            gpu,
            waived,
        ],
        not_asked: vec!["cpu".into(), "glibc".into()],
        not_knowable: vec!["divisibility of dims".into()],
        asked_at: Some(ConfigPlace { file: "ci/aoti inspect.toml".into(), line: 12, column: 1 }),
        ..ArtifactReport::new("build/ranker.pt2", Verdict::Fail)
    };
    let second = ArtifactReport {
        error: Some("the zip's end record is missing: the upload was cut (copy it again)".into()),
        ..ArtifactReport::new("build/cut.pt2", Verdict::Unreadable)
    };
    let third = ArtifactReport {
        causes: vec![Cause {
            rank: 1,
            pattern: "chk-dim".into(),
            class: "C04".into(),
            line: Some(3),
            sentence: "inputs[0].shape[1] is fixed to 10, the call gave 11".into(),
            evidence: vec![Evidence::new(Witness::Source, "expected: 10")],
            fix: Some("pass 10, or export with a dynamic dim".into()),
        }],
        changes: vec![Change {
            subject: "models[0].inputs[0].dtype".into(),
            kind: "changed".into(),
            grade: Grade::Breaking,
            side: Side::Caller,
            old: Some("float32".into()),
            new: Some("float16".into()),
        }],
        ..ArtifactReport::new("build/other.pt2", Verdict::Pass)
    };
    Report { command: "verify".into(), artifacts: vec![first, second, third] }
}

#[test]
fn snapshots() {
    for (name, render) in FORMATS {
        insta::assert_snapshot!(name, text(render, &fixed_report()));
    }
}

/// A trace with one of every step, as text of 100 columns and as JSON, in symbols and for given sizes.
#[test]
fn trace_snapshots() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts/2.15.0-cpu-mlp_dynamic.pt2");
    let settings = aoti_inspect::Settings { traces: true, ..Default::default() };
    let mut artifact = aoti_inspect::inspect(&path, &settings).unwrap();
    artifact.path = "model.pt2".to_owned();
    let model = artifact.models.first_mut().unwrap();
    let Some(Some(trace)) = &mut model.trace else { panic!("no trace") };
    // they change with the interpreter
    (trace.instructions, trace.budget) = (12_345, 3_000_000);
    let number = |n: i64| Some(Dim::fixed(n));
    let rows = Expr::symbol("s77").add(&Expr::Int(31)).floor_div(&Expr::Int(32));
    trace.steps.push(Step::Launch {
        name: "triton_poi_fused_relu_0".to_owned(),
        grid: Box::new([Some(Dim::from_expr(rows, None, None)), number(1), None]),
        block: Box::new([number(128), number(1), number(1)]),
        shared_bytes: number(16),
        arguments: vec![
            Some(Argument::Tensor { tensor: "constants[0]".to_owned() }),
            Some(Argument::Number(Dim::from_expr(Expr::symbol("s77"), None, None))),
            None,
        ],
    });
    trace.steps.push(Step::CustomOperator {
        number: 3,
        name: Some("mylib::blend\u{1b}[31m".to_owned()),
        integers: vec![number(7), None],
        tensors: vec!["buf2".to_owned(), "foreign".to_owned()],
    });
    trace.steps.push(Step::Allocate {
        tensor: "buf3".to_owned(),
        dtype: None,
        shape: None,
        bytes: None,
        device: None,
        operator: Some("aoti_torch_cpu_convolution".to_owned()),
    });
    let condition = Condition::Compare(Comparison::Greater, Expr::symbol("s77").mul(&Expr::Int(2)), Expr::Int(64));
    trace.assumes.push(Assumption { text: condition.to_string(), holds: None, condition });
    trace.settle(model.device.as_ref(), &model.symbols);
    let options = plain::TextOptions { width: Some(100), only: vec!["trace".to_owned()], ..Default::default() };
    let show = |artifact: &Artifact| {
        let (mut text, mut json) = (Vec::new(), Vec::new());
        plain::render_show(artifact, &options, &mut text).unwrap();
        json::render_show(std::slice::from_ref(artifact), &options.only, &mut json).unwrap();
        let text = anstream::adapter::strip_bytes(&text).into_vec();
        (String::from_utf8(text).unwrap(), String::from_utf8(json).unwrap())
    };
    let (text, json) = show(&artifact);
    insta::assert_snapshot!("trace_text", text);
    insta::assert_snapshot!("trace_json", json);
    let whole = serde_json::to_value(&artifact).unwrap();
    let mut schema = json::schema();
    schema["anyOf"] = serde_json::json!([{"$ref": "#/$defs/Artifact"}]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&whole).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let sizes = [SymbolSize { symbol: "s77".to_owned(), size: 8 }];
    let why = artifact.models.first_mut().unwrap().set_trace_sizes(&sizes);
    assert_eq!(why.as_deref(), Some("for these sizes the code takes another way: not 2*s77 > 64"));
    insta::assert_snapshot!("trace_text_sizes", show(&artifact).0);
}

#[test]
fn sarif_is_valid() {
    let schema = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/schemas/sarif-2.1.0.json"));
    let schema = serde_json::from_str(&schema.unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let log: serde_json::Value = serde_json::from_str(&text(sarif::render, &fixed_report())).unwrap();
    let errors: Vec<String> = validator.iter_errors(&log).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    // the validator does refuse what is wrong
    assert!(!validator.is_valid(&serde_json::json!({"version": "2.1.0"})));
}

#[test]
fn junit_is_read_back() {
    let xml = text(junit::render, &fixed_report());
    let document = roxmltree::Document::parse(&xml).unwrap();
    let count = |tag: &str| document.descendants().filter(|n| n.has_tag_name(tag)).count();
    assert_eq!((count("testsuite"), count("testcase")), (3, 8));
    assert_eq!((count("failure"), count("error"), count("skipped")), (3, 2, 1));
}

#[test]
fn workflow_commands_cannot_be_forged() {
    let log = text(github::render, &fixed_report());
    let commands: Vec<&str> = log.lines().filter(|l| l.trim_start().starts_with("::")).collect();
    let known = ["::error ", "::warning ", "::notice ", "::debug ", "::group::", "::endgroup::"];
    assert!(commands.iter().all(|c| known.iter().any(|k| c.starts_with(k))), "{commands:#?}");
    assert!(!log.contains("##["));
    assert!(!log.contains("file=build"));
}

fn finding() -> impl Strategy<Value = Finding> {
    let outcome = prop_oneof![Just(Outcome::Pass), Just(Outcome::Fail), Just(Outcome::Warn), Just(Outcome::Unknown)];
    let level = prop_oneof![Just(Level::Deny), Just(Level::Warn), Just(Level::Allow)];
    (outcome, level, any::<bool>()).prop_map(|(outcome, level, is_waived)| {
        let mut finding = Finding::new("input-dim", outcome, "", "").level(level);
        finding.waived = is_waived.then(|| Waived { reason: "known".into(), until: None });
        finding
    })
}

proptest! {
    #[test]
    fn no_format_drops_a_finding(findings in proptest::collection::vec(finding(), 0..12)) {
        let mut artifact = ArtifactReport::new("m.pt2", Verdict::Fail);
        artifact.findings = findings;
        for (i, finding) in artifact.findings.iter_mut().enumerate() {
            finding.message = format!("unmistakable{i}x");
        }
        let count = artifact.findings.len();
        let report = Report { command: "verify".into(), artifacts: vec![artifact] };
        for (name, render) in FORMATS {
            let shown = text(render, &report);
            for i in 0..count {
                prop_assert!(shown.contains(&format!("unmistakable{i}x")), "{name} drops finding {i}");
            }
        }
    }
}
