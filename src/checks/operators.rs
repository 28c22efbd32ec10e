//! Does the target have the custom operators that the model calls?

use super::codes::{Code, Page};
use super::{Judgement, Subject};
use crate::model::CustomOp;
use crate::report::{Finding, Level, Outcome};
use crate::target::{LoadConfig, Loader};

/// Codes of this subject.
pub const CODES: &[Code] = &[
    Code {
        id: "operator-missing",
        summary: "the target does not have a custom operator that the model calls",
        level: Level::Deny,
        page: Page {
            compares: "The operators outside of torch that the model calls with `--ops` and with the schema texts in the \
                       libraries of `--op-library` and of the package.",
            matters: "The library that registers the operator is no part of the package: the load ends in `Could not find \
                      schema for mylib::op`.",
            reports: "pytorch issues 145394 and 148811.",
            fix: "Load the library that registers the operator before the model, and name it with `--op-library`.",
        },
    },
    Code {
        id: "operator-python-only",
        summary: "a custom operator that is defined in Python, loaded by a process without Python",
        level: Level::Deny,
        page: Page {
            compares: "The marker of `torch.library.custom_op` that exporters of 2.13 and newer store with each call with \
                       `--loader cpp`.",
            matters: "The operator exists only in Python processes: a C++ process ends in `Could not find schema`, since \
                      2.13 with `cannot be run via AOTI without Python environment`.",
            reports: "pytorch issues 143786 and 134581, pull request 186305.",
            fix: "Register the operator in C++ with `TORCH_LIBRARY`, or run the model from Python.",
        },
    },
];

/// Every custom operator against what the target has.
pub fn check(subject: &Subject, judgement: &mut Judgement) {
    let ops = &subject.model.requires.custom_ops;
    let config = subject.config;
    if ops.is_empty() {
        if !config.ops.is_empty() || !config.op_libraries.is_empty() {
            let path = subject.path("requires.custom_ops");
            judgement.push(Finding::new(
                "operator-missing",
                Outcome::Pass,
                path,
                "the model calls no custom operators",
            ));
        }
        return;
    }
    if config.ops.is_empty() && config.op_libraries.is_empty() {
        let names: Vec<String> = ops.iter().map(says_with_library).collect();
        let message = format!("calls custom operators that the target must register: {}", names.join(", "));
        judgement.push(
            Finding::new("operator-missing", Outcome::Warn, subject.path("requires.custom_ops"), message)
                .fix("load the libraries that register them before the model; say with --op-library or --ops what the target has"),
        );
    } else {
        for (index, op) in ops.iter().enumerate() {
            judgement.push(judge(subject, config, index, op));
        }
    }
    if config.loader == Some(Loader::Cpp) {
        for (index, op) in ops.iter().enumerate() {
            judge_python(subject, config, index, op, judgement);
        }
    } else if config.loader.is_none() {
        judgement.not_asked("loader");
    }
}

fn judge(subject: &Subject, config: &LoadConfig, index: usize, op: &CustomOp) -> Finding {
    let path = subject.path(&format!("requires.custom_ops[{index}]"));
    let Some(name) = &op.name else {
        let message = format!("{}: its name cannot be told, so it cannot be looked for", says(op));
        return Finding::new("operator-missing", Outcome::Unknown, path, message);
    };
    if let Some(member) = &op.registered_by {
        let message = format!("{name} is registered by {member} in the package, to be loaded before the model");
        return Finding::new("operator-missing", Outcome::Pass, path, message);
    }
    if let Some(library) = config.op_libraries.iter().find(|library| library.defines(name)) {
        return Finding::new(
            "operator-missing",
            Outcome::Pass,
            path,
            format!("{name} is registered by {}", library.path),
        );
    }
    if config.ops.iter().any(|pattern| matches(pattern, name)) {
        return Finding::new(
            "operator-missing",
            Outcome::Pass,
            path,
            format!("{name} is among the target's operators"),
        );
    }
    let looked: Vec<&str> = config.op_libraries.iter().map(|l| l.path.as_str()).collect();
    let place = if looked.is_empty() { "--ops".to_owned() } else { looked.join(", ") };
    Finding::new("operator-missing", Outcome::Fail, path, format!("the target has no {name} (looked in {place})"))
        .sides(name, place)
        .fix("load the library that registers it before the model, and name it with --op-library")
}

fn judge_python(subject: &Subject, config: &LoadConfig, index: usize, op: &CustomOp, judgement: &mut Judgement) {
    let path = subject.path(&format!("requires.custom_ops[{index}].is_python_only"));
    let in_library = op.registered_by.is_some()
        || op.name.as_ref().is_some_and(|name| config.op_libraries.iter().any(|l| l.defines(name)));
    let finding = |outcome, message: String| Finding::new("operator-python-only", outcome, &path, message);
    judgement.push(match op.is_python_only {
        _ if in_library => finding(Outcome::Pass, format!("{} is registered in C++", says(op))),
        Some(false) => finding(Outcome::Pass, format!("{} is not marked as defined in Python", says(op))),
        Some(true) => {
            finding(Outcome::Fail, format!("{} is defined in Python; a C++ process does not have it", says(op)))
                .fix("register it in C++ with TORCH_LIBRARY, or load the model from Python")
        }
        None => finding(
            Outcome::Unknown,
            format!(
                "{}: whether it is defined in Python only is not stated (files of 2.13 and newer say so)",
                says(op)
            ),
        )
        .fix("give the library that registers it with --op-library"),
    });
}

fn says(op: &CustomOp) -> String {
    match (&op.name, op.number) {
        (Some(name), _) => name.clone(),
        (None, Some(number)) => format!("custom operator #{number}"),
        (None, None) => "a custom operator".to_owned(),
    }
}

fn says_with_library(op: &CustomOp) -> String {
    match &op.registered_by {
        Some(member) => format!("{} (registered by {member} in the package)", says(op)),
        None => says(op),
    }
}

/// The overload called `default` is the one without a name.
fn plain(name: &str) -> &str {
    name.strip_suffix(".default").unwrap_or(name)
}

/// `mylib::blend` stands for all its overloads, `mylib::*` for the namespace.
fn matches(pattern: &str, name: &str) -> bool {
    let name = plain(name);
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => plain(pattern) == name || name.split('.').next() == Some(pattern),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{cpu, outcome};
    use super::*;
    use crate::report::Outcome::{Fail, Pass, Unknown, Warn};

    fn with_op(name: Option<&str>, is_python_only: Option<bool>) -> crate::model::Artifact {
        let mut artifact = cpu();
        artifact.models[0].requires.custom_ops.push(CustomOp {
            name: name.map(str::to_owned),
            number: Some(0),
            through: "proxy_executor".into(),
            is_python_only,
            registered_by: None,
        });
        artifact
    }

    fn having(ops: &[&str]) -> LoadConfig {
        LoadConfig { ops: ops.iter().map(|o| (*o).to_owned()).collect(), ..LoadConfig::default() }
    }

    #[test]
    fn names_and_namespaces_are_enough() {
        let artifact = with_op(Some("mylib::blend.Tensor"), None);
        for ops in [["mylib::blend"], ["mylib::*"], ["mylib::blend.Tensor"]] {
            assert_eq!(outcome(check, &artifact, &having(&ops), "operator-missing"), [Pass], "{ops:?}");
        }
        for ops in [["mylib::blur"], ["yourlib::*"], ["mylib::blend.Scalar"]] {
            assert_eq!(outcome(check, &artifact, &having(&ops), "operator-missing"), [Fail], "{ops:?}");
        }
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), "operator-missing"), [Warn]);
        assert_eq!(outcome(check, &with_op(None, None), &having(&["mylib::*"]), "operator-missing"), [Unknown]);
        assert_eq!(outcome(check, &cpu(), &having(&["mylib::*"]), "operator-missing"), [Pass]);
    }

    #[test]
    fn libraries_of_the_package_count() {
        let mut artifact = with_op(Some("mylib::blend"), Some(true));
        artifact.models[0].requires.custom_ops[0].registered_by = Some("libs/ops.so".into());
        assert_eq!(outcome(check, &artifact, &having(&["yourlib::*"]), "operator-missing"), [Pass]);
        assert_eq!(outcome(check, &artifact, &LoadConfig::default(), "operator-missing"), [Warn]);
        let cpp = LoadConfig { loader: Some(Loader::Cpp), ..LoadConfig::default() };
        assert_eq!(outcome(check, &artifact, &cpp, "operator-python-only"), [Pass]);
    }

    #[test]
    fn python_operators_need_python() {
        let cpp = LoadConfig { loader: Some(Loader::Cpp), ..LoadConfig::default() };
        let code = "operator-python-only";
        assert_eq!(outcome(check, &with_op(Some("a::b"), Some(true)), &cpp, code), [Fail]);
        assert_eq!(outcome(check, &with_op(Some("a::b"), Some(false)), &cpp, code), [Pass]);
        assert_eq!(outcome(check, &with_op(Some("a::b"), None), &cpp, code), [Unknown]);
        let python = LoadConfig { loader: Some(Loader::Python), ..LoadConfig::default() };
        assert_eq!(outcome(check, &with_op(Some("a::b"), Some(true)), &python, code), []);
    }
}
