//! Rules about inputs on small models: what a caller gives, and the codes that come out.

use crate::checks::{Policy, sample, verify_artifact};
use crate::model::{Artifact, DType, Device, DeviceKind, Dim, Expr, Relation, TensorSpec};
use crate::report::{ArtifactReport, Outcome, Verdict};
use crate::target::{InputRequests, InputTexts, LoadConfig};

fn symbol(name: &str, min: i64, max: i64) -> Option<Dim> {
    Some(Dim::from_expr(Expr::symbol(name), Some(min), Some(max)))
}

fn times(n: i64, name: &str) -> Option<Dim> {
    Some(Dim::from_expr(Expr::Int(n).mul(&Expr::symbol(name)), None, None))
}

fn tensor(index: usize, shape: Vec<Option<Dim>>, stride: Vec<Option<Dim>>) -> TensorSpec {
    TensorSpec {
        index,
        path: Some(format!("args[{index}]")),
        dtype: Some(DType::FLOAT32),
        rank: Some(shape.len()),
        shape: Some(shape),
        stride: Some(stride),
        device: Some(Device::new(DeviceKind::Cpu)),
        ..TensorSpec::default()
    }
}

fn artifact(inputs: Vec<TensorSpec>) -> Artifact {
    let mut artifact = sample::cpu();
    for model in &mut artifact.models {
        model.inputs = Some(inputs.clone());
    }
    artifact
}

/// `x: [s0, 8]`, `y: [2*s0]`, `z: [s0, s1]`
fn related() -> Artifact {
    let one = || Some(Dim::fixed(1));
    let mut y = tensor(1, vec![times(2, "s0")], vec![one()]);
    y.shape = Some(vec![Some(Dim::from_expr(Expr::Int(2).mul(&Expr::symbol("s0")), Some(4), Some(100)))]);
    artifact(vec![
        tensor(0, vec![symbol("s0", 2, 50), Some(Dim::fixed(8))], vec![Some(Dim::fixed(8)), one()]),
        y,
        tensor(
            2,
            vec![symbol("s0", 2, 50), symbol("s1", 2, 9)],
            vec![Some(Dim::from_expr(Expr::symbol("s1"), None, None)), one()],
        ),
    ])
}

fn verify(artifact: &Artifact, input: &[&str], dim: &[&str]) -> ArtifactReport {
    let texts = |list: &[&str]| list.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
    let (input, dim) = (texts(input), texts(dim));
    let inputs = InputRequests::from_texts(InputTexts { input: &input, dim: &dim, ..InputTexts::default() }).unwrap();
    let config = LoadConfig { inputs, ..LoadConfig::default() };
    verify_artifact(artifact, &config, &Policy::default())
}

/// Codes of the findings about inputs that fail or are unknown.
fn complaints(report: &ArtifactReport) -> Vec<(&str, Outcome)> {
    let counts = |o: Outcome| matches!(o, Outcome::Fail | Outcome::Unknown);
    report
        .findings
        .iter()
        .filter(|f| f.code.starts_with("input-") && counts(f.outcome))
        .map(|f| (f.code, f.outcome))
        .collect()
}

const RELATION: (&str, Outcome) = ("input-dim-relation", Outcome::Fail);

#[test]
fn numbers_keep_relations() {
    let model = related();
    assert_eq!(complaints(&verify(&model, &["f32[4, 8]", "f32[8]", "f32[4, 3]"], &[])), []);
    assert_eq!(complaints(&verify(&model, &["f32[4, 8]", "f32[10]", "f32[4, 3]"], &[])), [RELATION]);
    assert_eq!(complaints(&verify(&model, &["f32[4, 8]", "f32[8]", "f32[5, 3]"], &[])), [RELATION]);
}

#[test]
fn names_keep_relations_for_every_size() {
    let model = related();
    assert_eq!(complaints(&verify(&model, &["f32[B, 8]", "f32[2*B]", "f32[B, S]"], &["B=2..50"])), []);
    assert_eq!(complaints(&verify(&model, &["f32[B, 8]", "f32[B]", "f32[B, S]"], &["B=4..50"])), [RELATION]);
    assert_eq!(complaints(&verify(&model, &["f32[B, 8]", "f32[2*B]", "f32[2..50, 3]"], &["B=2..50"])), [RELATION]);
    // a range that is one number is a number
    assert_eq!(complaints(&verify(&model, &["f32[4..4, 8]", "f32[8]", "f32[B, 3]"], &["B=4"])), []);
    // an odd size is no double
    let report = verify(&model, &["f32[_, 8]", "f32[4..9]", "f32[_, 3]"], &[]);
    assert_eq!(complaints(&report), [RELATION]);
    assert!(report.findings.iter().any(|f| f.message.contains("accepts 4, 6, 8, refuses 5, 7, 9")));
}

#[test]
fn a_name_without_a_size_takes_what_fits() {
    let model = related();
    assert_eq!(complaints(&verify(&model, &["f32[B, 8]", "f32[_]", "f32[B, S]"], &[])), []);
    // 8 and 2..50 fit 8; 8 and 2..9 too, but not 2*8 in one dim
    assert_eq!(complaints(&verify(&model, &["f32[N, N]", "f32[16]", "f32[N, N]"], &[])), []);
    assert_eq!(complaints(&verify(&model, &["f32[N, N]", "f32[N]", "f32[8, 3]"], &[])), [RELATION]);
}

#[test]
fn below_a_bound_of_two_has_its_own_code() {
    let model = related();
    let report = verify(&model, &["f32[1, 8]", "f32[_]", "f32[_, 3]"], &[]);
    assert_eq!(complaints(&report), [("input-dim-01-specialization", Outcome::Fail)]);
    let report = verify(&model, &["f32[B, 8]", "f32[_]", "f32[_, 3]"], &["B=1..60"]);
    assert_eq!(complaints(&report), [("input-dim-range", Outcome::Fail)]);
}

#[test]
fn an_open_relation_is_told_only_when_all_candidates_agree() {
    let mut model = related();
    let s0 = Expr::symbol("s0");
    let relation = Relation {
        subject: "inputs[2].shape[1]".to_owned(),
        candidates: vec![s0.clone(), s0.mul(&Expr::Int(2))],
        evidence: Vec::new(),
    };
    model.models[0].relations = vec![relation];
    let ask = |size: &str| {
        complaints(&verify(&model, &["f32[4, 8]", "f32[8]", &format!("f32[4, {size}]")], &[])).to_vec().len()
    };
    assert_eq!(ask("7"), 1);
    let report = verify(&model, &["f32[4, 8]", "f32[8]", "f32[4, 4]"], &[]);
    assert_eq!(complaints(&report), [("input-dim-relation", Outcome::Unknown)]);
    assert_eq!(report.verdict, Verdict::Unknown);
}

#[test]
fn strides_that_are_fixed_are_compared_exactly() {
    let model = artifact(vec![tensor(
        0,
        vec![Some(Dim::fixed(1)), Some(Dim::fixed(8))],
        vec![Some(Dim::fixed(8)), Some(Dim::fixed(1))],
    )]);
    assert_eq!(complaints(&verify(&model, &["f32[1, 8][8, 1]"], &[])), []);
    // even where the size is 1: the generated check has no exception
    assert_eq!(complaints(&verify(&model, &["f32[1, 8][16, 1]"], &[])), [("input-stride", Outcome::Fail)]);
}

#[test]
fn strides_that_follow_sizes_are_compared_with_them() {
    let model = related();
    let ask = |z: &str| complaints(&verify(&model, &["f32[4, 8]", "f32[8]", z], &[])).len();
    assert_eq!(ask("f32[4, 3][3, 1]"), 0);
    assert_eq!(ask("f32[4, 3][4, 1]"), 1);
    assert_eq!(
        complaints(&verify(&model, &["f32[B, 8][8, 1]", "f32[_]", "f32[B, S][S, 1]"], &["B=2..50", "S=2..9"])),
        []
    );
}

#[test]
fn strides_that_are_not_given_only_warn() {
    let fixed = |list: [i64; 4]| list.map(|n| Some(Dim::fixed(n))).to_vec();
    let model = artifact(vec![tensor(0, fixed([2, 3, 4, 5]), fixed([60, 1, 15, 3]))]);
    let report = verify(&model, &["f32[2, 3, 4, 5]"], &[]);
    assert_eq!(complaints(&report), []);
    assert!(report.findings.iter().any(|f| f.code == "input-not-contiguous" && f.outcome == Outcome::Warn));
    assert_eq!(complaints(&verify(&model, &["f32:2x3x4x5/channels_last"], &[])), []);
    assert_eq!(complaints(&verify(&model, &["f32:2x3x4x5/contiguous"], &[])).len(), 3);
}

#[test]
fn a_stride_that_nothing_states_passes_when_it_is_contiguous() {
    let model =
        artifact(vec![tensor(0, vec![symbol("s0", 2, 9), symbol("s1", 2, 9)], vec![None, Some(Dim::fixed(1))])]);
    assert_eq!(complaints(&verify(&model, &["f32[4, 3][3, 1]"], &[])), []);
    assert_eq!(complaints(&verify(&model, &["f32[4, 3][5, 1]"], &[])), [("input-stride", Outcome::Unknown)]);
    assert_eq!(
        complaints(&verify(&model, &["f32[0, 3][3, 1]"], &[])),
        [("input-dim-01-specialization", Outcome::Fail)]
    );
}

#[test]
fn rank_and_count_and_device() {
    let model = related();
    let report = verify(&model, &["f32[4]", "f64[8]", "f32[4, 3]cuda"], &[]);
    let codes: Vec<&str> = complaints(&report).iter().map(|c| c.0).collect();
    assert_eq!(codes, ["input-rank", "input-dtype", "input-device"]);
    assert_eq!(complaints(&verify(&model, &["none"], &[])), [("input-count", Outcome::Fail)]);
}

#[test]
fn what_the_file_does_not_say_is_unknown() {
    let mut model = related();
    let inputs = model.models[0].inputs.as_mut().unwrap();
    inputs[0].dtype = None;
    inputs[0].shape = None;
    inputs[0].rank = None;
    inputs[0].stride = None;
    let report = verify(&model, &["f32[4, 8]", "f32[8]", "f32[4, 3]"], &[]);
    let codes: Vec<_> = complaints(&report).iter().map(|c| c.0).collect();
    assert_eq!(codes, ["input-dtype", "input-rank", "input-dim", "input-dim"]);
    assert_eq!(report.verdict, Verdict::Unknown);
}
