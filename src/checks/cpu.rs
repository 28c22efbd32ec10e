//! Will the code run on the CPU: the extensions that it really uses against those of the target and of the metadata.

use super::codes::{Code, Page};
use super::{Judgement, Subject};
use crate::model::{Evidence, FunctionIsa, Platform, Witness};
use crate::report::{Finding, Level, Outcome};
use crate::target::cpu::{Cpu, declared_extensions};

/// Metadata key of the vectoriser's choice (torch 2.10 and newer).
const DECLARED_KEY: &str = "AOTI_CPU_ISA";
/// Extensions and functions named in one message.
const NAMED: usize = 6;

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "cpu-isa",
        summary: "the code uses instructions that the CPU does not have",
        level: Level::Deny,
        page: Page {
            compares: "The instruction set extensions of every decoded function with those of the CPU. Functions that run \
                       only after a test of the CPU (cpuid, function clones, outlined atomics) do not count.",
            matters: "The first such instruction kills the process: SIGILL, `Illegal instruction`. torch compiles with \
                      -march=native unless told otherwise, so that any function can have it, not only the kernels.",
            reports: "pytorch issue 121516, class C13 of the failure study; compile commands of 2.2 to 2.15.",
            fix: "Compile on a CPU no newer than the oldest target, or pin the instruction set: `ATEN_CPU_CAPABILITY=avx2` or \
                  `torch._inductor.config.cpp.simdlen`, and `-march` through the compiler's environment.",
        },
    },
    Code {
        id: "cpu-isa-undeclared",
        summary: "the code uses more than AOTI_CPU_ISA declares",
        level: Level::Warn,
        page: Page {
            compares: "The extensions of the decoded code with those that the words of AOTI_CPU_ISA in the metadata stand for.",
            matters: "The loader of 2.10 and newer compares only the declared words with the host and warns; code beyond them \
                      crashes a host that the comparison accepted. `-march=native` does that.",
            reports: "torch/_inductor/cpu_vec_isa.py and codecache.py of 2.10 to 2.15; pytorch issues 121516 and 191715.",
            fix: "Take the decoded extensions as the requirement, or compile without -march=native.",
        },
    },
    Code {
        id: "cpu-machine",
        summary: "the library is for another kind of CPU",
        level: Level::Deny,
        page: Page {
            compares: "The machine in the header of the library with that of the CPU.",
            matters: "The system's loader refuses it: `wrong ELF class`, `cannot open shared object file`, `incompatible \
                      architecture`.",
            reports: "Library headers of Linux, macOS and Windows builds; class C21 of the failure study.",
            fix: "Compile on, or cross-compile for, the machine that will run it.",
        },
    },
];

/// Judges one model.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let isa = &subject.model.requires.cpu_isa;
    let platform = subject.model.platform.as_ref();
    if let (Some(used), Some(platform)) = (&isa.used, platform) {
        check_declared(subject, used, platform, judgement);
    }
    let Some(cpu) = &subject.config.cpu else {
        if platform.is_some() {
            judgement.not_asked("cpu");
        }
        return;
    };
    let path = subject.path("requires.cpu_isa.used");
    let Some(platform) = platform else {
        judgement.push(subject.unknown("cpu-isa", "platform", "the machine of the code cannot be told"));
        return;
    };
    let arch = &platform.arch;
    if *arch != cpu.arch {
        let message = format!("the library is for {arch}, and {} is an {} CPU", cpu.name, cpu.arch);
        judgement.push(
            Finding::new("cpu-machine", Outcome::Fail, subject.path("platform.arch"), message)
                .sides(arch, &cpu.arch)
                .fix(format!("compile for {}", cpu.arch)),
        );
        return;
    }
    match &isa.used {
        Some(used) => judgement.push(judge_used(cpu, used, &isa.functions, path)),
        None => judgement.push(judge_declared(subject, cpu, platform, path)),
    }
}

fn judge_used(cpu: &Cpu, used: &[String], functions: &[FunctionIsa], path: String) -> Finding {
    let lacking = cpu.lacks(used);
    if lacking.is_empty() {
        let what = if used.is_empty() { "nothing beyond the baseline".into() } else { used.join(", ") };
        return Finding::new(
            "cpu-isa",
            Outcome::Pass,
            path,
            format!("{} has all that the code uses: {what}", cpu.name),
        );
    }
    let needs = |f: &&FunctionIsa| !f.is_guarded && f.features.iter().any(|u| lacking.contains(&u.as_str()));
    let mut message = format!("{} lacks {}", cpu.name, listed(&lacking));
    if let Some(first) = functions.iter().find(needs) {
        message.push_str(&format!(", which {} uses", shortened(&first.function)));
    }
    let evidence = functions.iter().filter(needs).take(NAMED).map(|f| {
        let missing: Vec<&str> = f.features.iter().map(String::as_str).filter(|u| lacking.contains(u)).collect();
        Evidence::new(Witness::Code, format!("{} uses {}", shortened(&f.function), missing.join(", ")))
    });
    Finding::new("cpu-isa", Outcome::Fail, path, message)
        .sides(used.join(" "), &cpu.name)
        .fix("compile on such a CPU, or pin the instruction set for the oldest target")
        .evidence(evidence)
}

/// Without decoded code the declared words can only refuse.
fn judge_declared(subject: &Subject, cpu: &Cpu, platform: &Platform, path: String) -> Finding {
    let words = declared(subject).unwrap_or_default();
    let needed = declared_extensions(words, &platform.os, &platform.arch).filter(|_| !words.is_empty());
    // the widest class also covers what is optional in it: only its first extensions are certain
    let certain = |f: &&String| matches!(f.as_str(), "avx2" | "avx512f" | "avx512_vnni" | "amx_tile");
    let lacking: Vec<&str> =
        needed.iter().flatten().filter(certain).filter(|f| !cpu.features.contains(*f)).map(String::as_str).collect();
    if lacking.is_empty() {
        return subject.unknown("cpu-isa", "requires.cpu_isa.used", "the extensions that the code uses are not known");
    }
    let message = format!("{} lacks {}, which {DECLARED_KEY} declares", cpu.name, listed(&lacking));
    Finding::new("cpu-isa", Outcome::Fail, path, message)
        .sides(words, &cpu.name)
        .fix("compile on such a CPU, or pin the instruction set for the oldest target")
}

fn check_declared(subject: &Subject, used: &[String], platform: &Platform, judgement: &mut Judgement) {
    let Some(words) = declared(subject) else { return };
    let path = subject.path("requires.cpu_isa.declared");
    let Some(covered) = declared_extensions(words, &platform.os, &platform.arch) else {
        let message =
            format!("{DECLARED_KEY} is `{words}`, which no torch release up to 2.15 writes for {}", platform.arch);
        judgement.push(Finding::new("cpu-isa-undeclared", Outcome::Warn, path, message));
        return;
    };
    let beyond: Vec<&str> = used.iter().map(String::as_str).filter(|u| !covered.contains(*u)).collect();
    let shown = if words.is_empty() { "nothing" } else { words };
    judgement.push(if beyond.is_empty() {
        let message = format!("{DECLARED_KEY} declares `{shown}`, which covers the code");
        Finding::new("cpu-isa-undeclared", Outcome::Pass, path, message)
    } else {
        let message = format!("{DECLARED_KEY} declares `{shown}`, and the code also uses {}", listed(&beyond));
        Finding::new("cpu-isa-undeclared", Outcome::Warn, path, message)
            .sides(used.join(" "), shown)
            .fix("ask for the CPU with --cpu: the decoded extensions count, not the declared ones")
    });
}

fn declared<'a>(subject: &Subject<'a>) -> Option<&'a str> {
    let from_requires = subject.model.requires.cpu_isa.declared.as_deref();
    from_requires.or_else(|| subject.model.metadata.iter().find(|e| e.key == DECLARED_KEY).map(|e| e.value.as_str()))
}

fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}

/// Template names can fill a screen.
fn shortened(function: &str) -> String {
    const MOST: usize = 80;
    match function.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", function.get(..end).unwrap_or_default()),
        None => function.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{find, library, outcome};
    use super::*;
    use crate::model::{Artifact, MetadataEntry, Unknown};
    use crate::target::LoadConfig;
    use Outcome::{Fail, Pass, Unknown as Open, Warn};

    fn on(cpu: &str) -> LoadConfig {
        LoadConfig { cpu: Some(Cpu::from_text(cpu).unwrap()), ..LoadConfig::default() }
    }

    /// The plain model, compiled with -march=native on an AVX-512 host.
    fn model() -> Artifact {
        library("2.15.0-cpu-mlp_dynamic.so")
    }

    #[test]
    fn code_is_judged_by_what_it_uses() {
        assert_eq!(outcome(check, &model(), &on("sapphirerapids"), "cpu-isa"), [Pass]);
        assert_eq!(outcome(check, &model(), &on("znver4"), "cpu-isa"), [Pass]);
        let failed = find(check, &model(), &on("znver3"), "cpu-isa");
        assert_eq!(failed[0].outcome, Fail);
        assert!(failed[0].message.contains("avx512f"), "{}", failed[0].message);
        assert!(failed[0].evidence.iter().any(|e| e.detail.contains("cpp_fused")), "{:?}", failed[0].evidence);
        assert_eq!(outcome(check, &model(), &on("neoverse-v1"), "cpu-machine"), [Fail]);
    }

    #[test]
    fn code_that_was_not_decoded_is_unknown_unless_the_metadata_refuses() {
        let mut artifact = model();
        artifact.models[0].requires.cpu_isa.used = None;
        artifact.unknown.push(Unknown::new("models[0].requires.cpu_isa.used", "not scanned"));
        assert_eq!(outcome(check, &artifact, &on("x86-64-v4"), "cpu-isa"), [Open]);
        artifact.models[0].metadata.push(MetadataEntry {
            key: DECLARED_KEY.into(),
            value: "AVX512 AVX512_VNNI".into(),
            member: None,
        });
        assert_eq!(outcome(check, &artifact, &on("x86-64-v3"), "cpu-isa"), [Fail]);
        assert_eq!(outcome(check, &artifact, &on("icelake-server"), "cpu-isa"), [Open]);
    }

    #[test]
    fn more_than_declared_is_told() {
        let mut artifact = model();
        let declare = |artifact: &mut Artifact, words: &str| {
            artifact.models[0].requires.cpu_isa.declared = Some(words.to_owned());
        };
        declare(&mut artifact, "AVX512 AVX512_VNNI");
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), "cpu-isa-undeclared"), [Pass]);
        declare(&mut artifact, "AVX2");
        let found = find(check, &artifact, &LoadConfig::default(), "cpu-isa-undeclared");
        assert_eq!(found[0].outcome, Warn);
        assert!(found[0].message.contains("avx512f"), "{}", found[0].message);
        declare(&mut artifact, "AVX1024");
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), "cpu-isa-undeclared"), [Warn]);
    }
}
