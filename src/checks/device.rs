//! The device that the loader is told against the one that the model was compiled for.

use super::codes::{Code, Page};
use super::{Judgement, Subject};
use crate::model::{DeviceKind, Release};
use crate::report::{Finding, Level, Outcome};

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "device-type",
        summary: "loaded on another kind of device than it was compiled for",
        level: Level::Deny,
        page: Page {
            compares: "The type in `--device` with the device of the model, as code, source and metadata state it.",
            matters: "Nothing checks the type up to 2.10: constants are copied with the wrong runtime and the first run \
                      crashes, or the load ends in `create_func_( … ) API call failed`.",
            reports: "pytorch/torchchat issues 709 and 518; pytorch issue 145730 and pull request 186943.",
            fix: "Load on the compiled device, or export and compile again with the model and its inputs on the other one.",
        },
    },
    Code {
        id: "device-index",
        summary: "another device index than this release of the runtime can take",
        level: Level::Deny,
        page: Page {
            compares: "The index in `--device` with the release that compiled the file: the runtime inside a file of 2.4 \
                       or 2.5 mixes the current device with the stated one.",
            matters: "Creation of constants fails or the process ends in a segmentation fault on any index but 0.",
            reports: "pytorch issues 136369 and 141042.",
            fix: "Compile again with 2.6 or newer, or make that GPU the only visible one (CUDA_VISIBLE_DEVICES).",
        },
    },
];

/// Device type and index.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let Some(asked) = &subject.config.device else {
        judgement.not_asked("device");
        return;
    };
    let Some(compiled) = &subject.model.device else {
        judgement.push(subject.unknown(
            "device-type",
            "device",
            &format!("whether it was compiled for {}", asked.kind),
        ));
        return;
    };
    let evidence = subject.model.device_evidence.iter().cloned();
    if compiled.kind != asked.kind {
        judgement.push(
            Finding::new(
                "device-type",
                Outcome::Fail,
                subject.path("device"),
                format!("compiled for {}, loaded on {}", compiled.kind, asked.kind),
            )
            .sides(&compiled.kind, &asked.kind)
            .fix(format!("load it on {}, or compile again for {}", compiled.kind, asked.kind))
            .evidence(evidence),
        );
        return;
    }
    let message = format!("compiled for {}", compiled.kind);
    judgement.push(Finding::new("device-type", Outcome::Pass, subject.path("device"), message).evidence(evidence));
    if let Some(index) = asked.index.filter(|_| compiled.kind != DeviceKind::Cpu) {
        judgement.push(judge_index(subject, index));
    }
}

/// Releases whose runtime cannot be moved to another index.
const FIXED_INDEX: (Release, Release) = (Release::new(2, 4), Release::new(2, 5));

fn judge_index(subject: &Subject, index: u32) -> Finding {
    let path = subject.path("device");
    let compiled_by = &subject.model.compiled_by;
    let (first, last) = FIXED_INDEX;
    let may_be_fixed =
        compiled_by.torch_min.is_none_or(|min| min <= last) && compiled_by.torch_max.is_none_or(|max| max >= first);
    let is_fixed =
        compiled_by.torch_min.is_some_and(|min| min >= first) && compiled_by.torch_max.is_some_and(|max| max <= last);
    let range = compiled_by.range().unwrap_or_else(|| "compiled by an unknown release".to_owned());
    let fix = "compile again with 2.6 or newer, or make that GPU the only visible one";
    match (index, is_fixed, may_be_fixed) {
        (0, ..) => Finding::new("device-index", Outcome::Pass, path, "index 0 works in every release"),
        (_, true, _) => {
            Finding::new("device-index", Outcome::Fail, path, format!("{range}: its runtime fails on index {index}"))
                .sides(0, index)
                .fix(fix)
        }
        (_, _, true) => Finding::new(
            "device-index",
            Outcome::Unknown,
            path,
            format!("{range}: the runtime of 2.4 and 2.5 fails on index {index}"),
        )
        .sides(0, index)
        .fix(fix),
        _ => Finding::new("device-index", Outcome::Pass, path, format!("{range}: the index is chosen at load")),
    }
}
