//! Many recorded lists of inputs: how many the model takes, and why it refuses the others.

use super::{Sink, judge_count, judge_tensors};
use crate::checks::{Judgement, Subject};
use crate::report::{Cases, Finding, Outcome, Refusals, Verdict};
use crate::target::TensorRequest;
use std::collections::BTreeMap;

/// Lines named per reason.
const LINES_SHOWN: usize = 20;

/// Judges each list on its own; the findings are one per reason.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let cases = &subject.config.cases;
    if cases.is_empty() {
        return;
    }
    let Some(inputs) = &subject.model.inputs else {
        judgement.push(subject.unknown("input-cases", "inputs", "whether the model takes the recorded inputs"));
        return;
    };
    let mut result = Cases::default();
    let mut reasons: BTreeMap<(&'static str, String, bool), Refusals> = BTreeMap::new();
    for case in cases {
        let mut sink = Sink::new(subject, false);
        judge_count(&mut sink, inputs.len(), case.inputs.len());
        let tensors: BTreeMap<usize, TensorRequest> = case.inputs.iter().cloned().enumerate().collect();
        judge_tensors(&mut sink, inputs, &tensors);
        // the runtime stops at its first complaint; so does the count of reasons
        let findings = &sink.out.findings;
        let first = findings.iter().find(|f| f.outcome == Outcome::Fail);
        let first = first.or_else(|| findings.iter().find(|f| f.outcome == Outcome::Unknown));
        result.total += case.count;
        match first {
            None => result.accepted += case.count,
            Some(finding) => {
                let refused = finding.outcome == Outcome::Fail;
                *(if refused { &mut result.refused } else { &mut result.undecided }) += case.count;
                let key = (finding.code, finding.subject.clone(), refused);
                let group = reasons.entry(key).or_insert_with(|| Refusals::new(finding));
                group.count += case.count;
                if group.lines.len() < LINES_SHOWN {
                    group.lines.push(case.line);
                }
            }
        }
        let verdict = match first.map(|f| f.outcome) {
            None => Verdict::Pass,
            Some(Outcome::Fail) => Verdict::Fail,
            Some(_) => Verdict::Unknown,
        };
        result.verdicts.push((case.line, verdict));
    }
    for group in reasons.values() {
        let lines: Vec<String> = group.lines.iter().take(5).map(usize::to_string).collect();
        let more = if group.lines.len() > 5 { ", …" } else { "" };
        let message = format!(
            "{} of {} refused: {} (lines {}{more})",
            group.count,
            result.total,
            group.message,
            lines.join(", ")
        );
        let outcome = if group.verdict == Verdict::Fail { Outcome::Fail } else { Outcome::Unknown };
        let message = if outcome == Outcome::Fail { message } else { message.replacen("refused", "undecided", 1) };
        judgement.push(Finding::new(group.code, outcome, group.subject.clone(), message));
    }
    result.refusals = reasons.into_values().collect();
    result.refusals.sort_by_key(|group| std::cmp::Reverse(group.count));
    let outcome = match (result.refused, result.undecided) {
        (0, 0) => Outcome::Pass,
        (0, _) => Outcome::Unknown,
        _ => Outcome::Fail,
    };
    let message = format!("{} of {} recorded inputs are accepted ({})", result.accepted, result.total, result.share());
    judgement.push(
        Finding::new("input-cases", outcome, subject.path("inputs"), message)
            .sides(result.total, result.accepted)
            .fix("filter or convert the refused inputs, or export again for what really occurs"),
    );
    judgement.cases = Some(result);
}
