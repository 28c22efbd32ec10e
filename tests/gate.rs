//! The gate of a project: its file, known findings, budgets, many artefacts at once, and the scripts that CI runs.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_aoti-inspect");
const ARTIFACTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/artifacts");

/// A project folder with three artefacts in `build/`.
struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("build")).unwrap();
        for (from, to) in [
            ("2.15.0-cpu-mlp_dynamic.pt2", "mlp.pt2"),
            ("2.9.1-cpu-multi_io.pt2", "multi.pt2"),
            ("2.11.0-cuda-multi_arch.pt2", "gpu.pt2"),
        ] {
            std::fs::copy(Path::new(ARTIFACTS).join(from), folder.path().join("build").join(to)).unwrap();
        }
        Self(folder)
    }
    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }
    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(BINARY);
        command.args(args).current_dir(self.0.path()).env_remove("CI").env("NO_COLOR", "1");
        command.output().unwrap()
    }
    fn code(&self, args: &[&str]) -> i32 {
        self.run(args).status.code().unwrap()
    }
    fn text(&self, args: &[&str]) -> String {
        String::from_utf8(self.run(args).stdout).unwrap()
    }
    fn report(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.text(&[args, &["--json"]].concat())).unwrap()
    }
}

const TWO_TARGETS: &str = r#"
version = 1
[target.cpu-host]
device = "cpu"
[target.hopper]
device = "cuda"
gpu = ["H100"]
[[artifact]]
path = "build/m*.pt2"
targets = ["cpu-host"]
[[artifact]]
path = "build/gpu.pt2"
targets = ["hopper"]
"#;

#[test]
fn verify_runs_what_the_file_says() {
    let project = Project::new();
    project.write("aoti-inspect.toml", TWO_TARGETS);
    let report = project.report(&["verify"]);
    let verdicts: Vec<_> =
        report["artifacts"].as_array().unwrap().iter().map(|a| (&a["path"], &a["verdict"])).collect();
    assert_eq!(verdicts.len(), 3, "{report:#}");
    assert!(verdicts.iter().all(|(_, verdict)| *verdict == "pass"), "{verdicts:?}");
    assert_eq!(report["artifacts"][2]["asked_at"]["line"], 12);
    let text = project.text(&["verify"]);
    assert!(text.contains("hopper") && text.contains("cpu-host"), "{text}");

    // the file is found from a folder below, and another one with --config
    let below = Command::new(BINARY).arg("verify").current_dir(project.file("build")).output().unwrap();
    assert_eq!(below.status.code(), Some(0));
    project.write("strict.toml", &TWO_TARGETS.replace("H100", "A10G"));
    assert_eq!(project.code(&["verify", "--config", "strict.toml"]), 1);
    assert!(
        project
            .text(&["verify", "--config", "strict.toml", "--format", "github"])
            .contains("file=strict.toml,line=12,")
    );
    // a flag beats the file
    assert_eq!(project.code(&["verify", "--config", "strict.toml", "--gpu", "H100"]), 0);
    // with ARTIFACT the targets apply only by name
    assert_eq!(project.code(&["verify", "build/gpu.pt2"]), 0);
    assert_eq!(project.code(&["verify", "build/gpu.pt2", "--target", "cpu-host"]), 1);
    assert_eq!(project.code(&["verify", "build/gpu.pt2", "--target", "nobody"]), 2);
}

#[test]
fn a_glob_that_matches_nothing_is_wrong_unless_optional() {
    let project = Project::new();
    project.write("aoti-inspect.toml", "version = 1\n[[artifact]]\npath = \"dist/*.pt2\"\n");
    let output = project.run(&["verify"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("aoti-inspect.toml:3:8"), "{output:?}");
    project.write(
        "aoti-inspect.toml",
        "version = 1\n[[artifact]]\npath = \"dist/*.pt2\"\noptional = true\n[[artifact]]\npath = \"build/mlp.pt2\"\n",
    );
    assert_eq!(project.code(&["verify"]), 0);
}

#[test]
fn levels_and_waivers_decide_what_counts() {
    let project = Project::new();
    let failing = format!("{TWO_TARGETS}inputs = [\"f32[3, 10]\"]\n");
    project.write("aoti-inspect.toml", &failing);
    let report = project.report(&["verify"]);
    let gpu = &report["artifacts"][2];
    let failed: Vec<&str> = gpu["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["outcome"] == "fail")
        .map(|f| f["code"].as_str().unwrap())
        .collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(project.code(&["verify"]), 1);
    let code = failed[0];

    project.write("aoti-inspect.toml", &format!("{failing}[level]\n{code} = \"warn\"\n"));
    assert_eq!(project.code(&["verify"]), 0);
    let waiver = |until: &str| {
        format!("{failing}[[waiver]]\ncode = \"{code}\"\npath = \"build/gpu*\"\nreason = \"known\"\nuntil = {until}\n")
    };
    project.write("aoti-inspect.toml", &waiver("2999-01-01"));
    assert_eq!(project.code(&["verify"]), 0);
    assert!(project.text(&["verify", "--format", "junit"]).contains("waived: known"));
    project.write("aoti-inspect.toml", &waiver("2020-01-01"));
    assert_eq!(project.code(&["verify"]), 1);
    assert!(project.text(&["verify"]).contains("waiver-expired"));
}

#[test]
fn a_baseline_lets_known_findings_pass_and_new_ones_fail() {
    let project = Project::new();
    let wrong = ["verify", "build/mlp.pt2", "--shape", "3x11"];
    assert_eq!(project.code(&wrong), 1);
    assert_eq!(project.code(&[&wrong[..], &["--write-baseline", "known.json"]].concat()), 0);
    assert_eq!(project.code(&[&wrong[..], &["--baseline", "known.json"]].concat()), 0);
    assert_eq!(project.code(&["verify", "build/mlp.pt2", "--shape", "1x10", "--baseline", "known.json"]), 1);
    assert!(project.text(&["verify", "build/mlp.pt2", "--baseline", "known.json"]).contains("baseline-vanished"));
    // never exit 3
    project.write("build/cut.pt2", "PK\x03\x04");
    assert_eq!(project.code(&["verify", "build/cut.pt2", "--write-baseline", "cut.json"]), 3);
    assert_eq!(project.code(&["verify", "build/cut.pt2", "--baseline", "cut.json"]), 3);
}

#[test]
fn sizes_have_budgets() {
    let project = Project::new();
    let file = |limits: &str| format!("version = 1\n[[artifact]]\npath = \"build/mlp.pt2\"\n[budget]\n{limits}\n");
    project.write("aoti-inspect.toml", &file("package = \"1MiB\"\nlibrary = \"1MiB\"\nweights = \"1KiB\""));
    assert_eq!(project.code(&["verify"]), 0);
    project.write("aoti-inspect.toml", &file("library = \"100kB\""));
    assert_eq!(project.code(&["verify"]), 1);
    project.write("aoti-inspect.toml", &file("library = \"100 apples\""));
    assert_eq!(project.code(&["verify"]), 2);
}

#[test]
fn init_writes_a_file_that_holds_until_the_interface_changes() {
    let project = Project::new();
    assert_eq!(project.code(&["init", "build/multi.pt2"]), 0);
    assert_eq!(project.code(&["init", "build/multi.pt2"]), 2, "an existing file is left alone");
    assert_eq!(project.code(&["verify"]), 0);
    assert_eq!(project.code(&["init", "build/multi.pt2", "-o", "elsewhere.toml"]), 0);
    assert_eq!(
        std::fs::read(project.file("elsewhere.toml")).ok(),
        std::fs::read(project.file("aoti-inspect.toml")).ok()
    );
    project.write("build/cut.pt2", "PK");
    assert_eq!(project.code(&["init", "build/cut.pt2", "--stdout"]), 3);
    std::fs::copy(Path::new(ARTIFACTS).join("2.15.0-cpu-mlp_dynamic.pt2"), project.file("build/multi.pt2")).unwrap();
    assert_eq!(project.code(&["verify"]), 1);
    assert!(project.text(&["verify"]).contains("interface-changed"));
    // an unchanged interface of another release is no change for this gate
    std::fs::copy(Path::new(ARTIFACTS).join("2.7.1-cpu-multi_io.pt2"), project.file("build/multi.pt2")).unwrap();
    let codes = project.text(&["verify", "--format", "csv"]);
    assert!(!codes.contains("fail,deny,interface-changed"), "{codes}");
}

#[test]
fn diff_grades_changes() {
    let project = Project::new();
    assert_eq!(project.code(&["diff", "build/mlp.pt2", "build/mlp.pt2"]), 0);
    assert!(project.text(&["diff", "build/mlp.pt2", "build/mlp.pt2"]).contains("no change"));
    assert_eq!(project.code(&["diff", "build/mlp.pt2", "build/multi.pt2"]), 1);
    // the same model by the next release: nothing breaks for a caller
    let newer = Path::new(ARTIFACTS).join("2.15.0-cpu-multi_io.pt2");
    let report = project.report(&["diff", "build/multi.pt2", newer.to_str().unwrap()]);
    let changes = report["artifacts"][0]["changes"].as_array().unwrap();
    let breaking: Vec<_> = changes.iter().filter(|c| c["grade"] == "breaking" && c["side"] == "caller").collect();
    assert!(breaking.is_empty(), "{breaking:#?}");
    assert_eq!(project.code(&["diff", "build/multi.pt2", newer.to_str().unwrap()]), 0);
    assert_eq!(project.code(&["diff", "build/mlp.pt2", "no-such.pt2"]), 3);
    // of two damaged ones nothing says that they are alike
    let damaged = Path::new(ARTIFACTS).with_file_name("hostile").join("bad_metadata.pt2");
    assert_eq!(project.code(&["diff", damaged.to_str().unwrap(), damaged.to_str().unwrap()]), 3);
}

#[test]
fn many_artefacts_keep_their_order() {
    let project = Project::new();
    let names: Vec<String> = (0..200).map(|i| format!("build/n{i:03}.pt2")).collect();
    for name in &names {
        std::fs::hard_link(project.file("build/mlp.pt2"), project.file(name)).unwrap();
    }
    project.write("list.txt", &names.join("\n"));
    let once = project.text(&["verify", "--files-from", "list.txt", "--device", "cpu", "--format", "csv"]);
    let again = project.text(&["verify", "--files-from", "list.txt", "--device", "cpu", "--format", "csv"]);
    assert_eq!(once, again);
    let mut paths: Vec<&str> = once.lines().skip(1).filter_map(|l| l.split(',').next()).collect();
    paths.dedup();
    assert_eq!(paths, names);
    let table = project.text(&["show", "--files-from", "list.txt", "--format", "csv", "--digest"]);
    assert_eq!(table.lines().count(), 201);
    assert!(table.lines().nth(1).unwrap().split(',').any(|cell| cell.len() == 64), "{table}");
}

#[test]
fn the_action_writes_annotations_and_a_summary() {
    let project = Project::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/action/verify.sh");
    let bin = Path::new(BINARY).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let run = |artifacts: &str, args: &str| {
        let summary = project.file("summary.md");
        let outputs = project.file("outputs");
        let _ = std::fs::remove_file(&summary);
        let _ = std::fs::remove_file(&outputs);
        let output = Command::new("bash")
            .arg(script)
            .current_dir(project.0.path())
            .env("PATH", &path)
            .env("ARTIFACTS", artifacts)
            .env("ARGS", args)
            .env("SARIF", "out.sarif")
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_OUTPUT", &outputs)
            .output()
            .unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), read(&summary), read(&outputs))
    };
    let (code, log, summary, outputs) = run("build/m*.pt2\nbuild/gpu.pt2", "--device=cpu");
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("::error title=device-"), "{log}");
    assert!(summary.contains("build/gpu.pt2") && summary.contains("build/mlp.pt2"), "{summary}");
    assert_eq!(outputs, "exit-code=1\n");
    let sarif: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(project.file("out.sarif")).unwrap()).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(run("build/m*.pt2", "--device=cpu").0, 0);
    assert_eq!(run("none/*.pt2", "").0, 2);
    assert_eq!(run("gone.pt2", "").0, 3);
    // nothing in an input is shell code
    let (_, log, ..) = run("build/$(touch hacked).pt2", "--device=cpu; touch hacked");
    assert!(!project.file("hacked").exists(), "{log}");
}

#[test]
fn the_pre_commit_hook_names_a_command_that_there_is() {
    let hooks = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/.pre-commit-hooks.yaml")).unwrap();
    let entry = hooks.lines().find_map(|l| l.trim().strip_prefix("entry: ")).unwrap();
    let project = Project::new();
    let mut words = entry.split_whitespace();
    assert_eq!(words.next(), Some("aoti-inspect"));
    let args: Vec<&str> = words.chain(["build/mlp.pt2", "build/gpu.pt2"]).collect();
    assert_eq!(project.code(&args), 0);
}

/// A baseline covers what was asked when it was written, not the same code for another GPU.
#[test]
fn a_baseline_does_not_cover_another_demand() {
    let folder = tempfile::tempdir().unwrap();
    let known = folder.path().join("known.json").to_str().unwrap().to_owned();
    let cuda = "testdata/artifacts/2.11.0-cuda-multi_arch.pt2";
    let verify = |gpu: &str, how: &str| {
        let args = ["verify", cuda, "--no-config", "--gpu", gpu, how, &known];
        Command::new(BINARY).args(args).output().unwrap().status.code()
    };
    assert_eq!(verify("B200", "--write-baseline"), Some(0));
    assert_eq!(verify("B200", "--baseline"), Some(0));
    assert_eq!(verify("RTX 5090", "--baseline"), Some(1));
}

/// Completion behind a subcommand, as bash calls it.
#[test]
fn bash_completes_the_flags_of_a_subcommand() {
    let script = r#"
        source packaging/wheel/data/share/bash-completion/completions/aoti-inspect
        COMP_WORDS=(aoti-inspect verify --lo); COMP_CWORD=2
        _aoti__inspect aoti-inspect --lo verify
        echo "${COMPREPLY[@]}"
    "#;
    let output = Command::new("bash").args(["-c", script]).output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(words.contains("--loader"), "{words} {}", String::from_utf8_lossy(&output.stderr));
}

/// Code scanning refuses results without a physical location.
#[test]
fn every_result_of_sarif_has_a_physical_location() {
    let args =
        ["verify", "--no-config", "--device", "cuda", "--format", "sarif", "testdata/artifacts/2.15.0-cpu-zero.pt2"];
    let output = Command::new(BINARY).args(args).output().unwrap();
    let log: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(results.len() > 5);
    for result in results {
        assert!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].is_string(), "{result}");
    }
}
