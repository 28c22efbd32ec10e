//! The command line as a person meets it: exit codes, notations, wrong use, and every command in README and help.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

const MLP: &str = "testdata/artifacts/2.15.0-cpu-mlp_dynamic.pt2";
const MULTI: &str = "testdata/artifacts/2.15.0-cpu-multi_io.pt2";
const TWO: &str = "testdata/artifacts/2.15.0-cpu-two_models.pt2";
const CUT: &str = "testdata/hostile/truncated.pt2";
const BINARY: &str = env!("CARGO_BIN_EXE_aoti-inspect");

fn run(args: &[&str]) -> Output {
    // neither a terminal nor a CI variable may change what a test sees
    Command::new(BINARY).args(args).env_remove("CI").env("NO_COLOR", "1").output().unwrap()
}

fn code(args: &[&str]) -> i32 {
    run(args).status.code().unwrap()
}

fn stdout(args: &[&str]) -> String {
    String::from_utf8(run(args).stdout).unwrap()
}

fn stderr(args: &[&str]) -> String {
    String::from_utf8(run(args).stderr).unwrap()
}

#[test]
fn exit_codes_are_the_same_in_every_format() {
    let table: &[(&[&str], i32)] = &[
        (&["verify", MLP], 0),
        (&["verify", MLP, "--device", "cpu"], 0),
        (&["verify", MLP, "--device", "cuda"], 1),
        (&["verify", MLP, "--device", "tpu"], 2),
        (&["verify", CUT], 3),
        (&["verify", "no-such-file.pt2"], 3),
        // sources of 2.6 state no input checks
        (&["verify", "testdata/artifacts/2.6.0-cpu-mlp_dynamic.pt2", "--shape", "8x10"], 4),
        // 3 before 1 before 4 before 0
        (&["verify", MLP, CUT, "--device", "cuda"], 3),
        (&["verify", MLP, "testdata/artifacts/2.6.0-cpu-mlp_dynamic.pt2", "--shape", "9x9"], 1),
    ];
    for (args, expected) in table {
        for format in ["text", "json", "jsonl", "markdown", "github", "sarif", "junit"] {
            let mut full = args.to_vec();
            full.extend(["--format", format]);
            let output = run(&full);
            assert_eq!(output.status.code(), Some(*expected), "{full:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.stdout.is_empty(), *expected == 2, "{full:?}");
        }
    }
}

#[test]
fn other_commands_have_their_exit_codes() {
    for (args, expected) in [
        (vec![MLP], 0),
        (vec!["show", MLP, CUT], 3),
        (vec!["diff", MLP, MLP], 0),
        (vec!["diff", MLP, MULTI], 1),
        (vec!["diff", MLP, CUT], 3),
        (vec!["codes"], 0),
        (vec!["codes", "input-dim"], 0),
        (vec!["codes", "input-dmi"], 2),
        (vec!["explain", "input-dim"], 0),
        (vec!["schema"], 0),
        (vec!["completions", "bash"], 0),
        (vec!["man"], 0),
        (vec!["--version"], 0),
        (vec!["--help"], 0),
        (vec![], 2),
    ] {
        assert_eq!(code(&args), expected, "{args:?}");
    }
}

/// One list of inputs in every notation gives the same verdict.
#[test]
fn notations_of_inputs() {
    for accepted in [
        "f32[8, 10]",
        "f32[8, 10][10, 1]cpu",
        "f32:8x10",
        "f32:8x10/10x1@cpu",
        "f32:8x10/contiguous",
        "f32[8,10]{10,1}:cpu",
        "torch.float32[2..1024, 10]",
        "float[_, 10]",
        "0=f32[8, 10]",
    ] {
        assert_eq!(code(&["verify", MLP, "--input", accepted]), 0, "{accepted}");
    }
    for refused in [
        "f32[8, 11]",
        "f32[1, 10]",
        "f32[8, 10, 1]",
        "f64[8, 10]",
        "f32[8, 10][1, 8]cpu",
        "f32[8, 10]cuda",
        "f32[1..8, 10]",
        "none",
    ] {
        assert_eq!(code(&["verify", MLP, "--input", refused]), 1, "{refused}");
    }
    for shape in ["8x10", "8,10", "[8, 10]", "(8, 10)", "torch.Size([8, 10])"] {
        assert_eq!(code(&["verify", MLP, "--shape", shape]), 0, "{shape}");
    }
    for dtype in ["torch.float32", "float32", "float", "f32", "fp32"] {
        assert_eq!(code(&["verify", MLP, "--dtype", dtype]), 0, "{dtype}");
    }
    for stride in ["10x1", "[10, 1]", "contiguous"] {
        assert_eq!(code(&["verify", MLP, "--shape", "8x10", "--stride", stride]), 0, "{stride}");
    }
    assert_eq!(code(&["verify", "testdata/artifacts/2.15.0-cpu-scalar0d.pt2", "--shape", "3", "--shape", "scalar"]), 0);
}

#[test]
fn ranges_hold_for_every_size_or_name_the_part() {
    let named = |range: &str| {
        let dim = format!("B={range}");
        let inputs = ["i64[B, 6]", "f32[B, 6, 8]", "b8[B, 6]", "f32[8]"];
        let mut args = vec!["verify", MULTI, "--dim", &dim];
        inputs.iter().for_each(|input| args.extend(["--input", input]));
        stdout(&args)
    };
    assert!(named("2..1024").contains("PASS"));
    assert!(named("1..1024").contains("accepts 2..1024, refuses 1"));
    assert!(named("8..2000").contains("accepts 8..1024, refuses 1025..2000"));
    // two ranges are not one size
    let apart = ["verify", MULTI, "--shape", "2..8,6", "--shape", "2..8,6,8", "--shape", "2..8,6"];
    let report = stdout(&apart);
    assert!(report.contains("input-dim-relation") && report.contains("--dim NAME"), "{report}");
}

#[test]
fn wrong_use_names_what_is_right() {
    for (args, part) in [
        (vec!["verify", MLP, "--dtype", "flaot32"], "float32"),
        (vec!["verify", MLP, "--device", "cdua"], "cuda"),
        (vec!["verify", MLP, "--shape", "x=8x10"], "no input `x`"),
        (vec!["verify", MULTI, "--shape", "arg9_1=8"], "arg2_1"),
        (vec!["verify", MLP, "--shape", "2x10", "--input", "f32[2, 10]"], "shape of input 0 is given twice"),
        (vec!["verify", MLP, "--shape", "0=2x10", "--shape", "2x10"], "with and without WHICH"),
        (vec!["verify", MLP, "--inputs", "2", "--input", "f32[2, 10]"], "--input is given for 1"),
        (vec!["verify", MLP, "--shape", "8x10", "--dim", "B=1..8"], "no shape uses it"),
        (vec!["verify", MLP, "--require", "gpu"], "--gpu"),
        (vec!["verify", MLP, "--require", "gqu"], "gpu"),
        (vec!["verify", MLP, "--allow-unknown=input-dmi"], "input-dim"),
        (vec!["verify", TWO, "--shape", "8x10"], "--model"),
        (vec!["verify", MLP, "--gpu", "H1000"], "H100"),
        (vec!["show", MLP, "--only", "inptus"], "inputs"),
        (vec!["show", MLP, "--format", "sarif"], "a form of reports"),
        (vec!["verify", MLP, "--output", "jsn=x.json"], "did you mean json"),
        (vec!["show", MLP, "--shape", "8x10"], "to show --trace"),
        (vec!["show", MLP, "--dim", "s77=8"], "--trace"),
        (vec!["show", MLP, "--trace", "--no-interpret"], "cannot be used with"),
        (vec!["show", MLP, "--only", "trace"], "--trace"),
        (vec!["show", MLP, "--trace", "--model", "model"], "--shape"),
        (vec!["show", MLP, "--trace", "--shape", "8x11"], "fixed at 10, not 11"),
        (vec!["show", MLP, "--trace", "--shape", "1x10"], "takes 2..1024, not 1"),
        (vec!["show", MLP, "--trace", "--shape", "8x10x3"], "dims"),
        (vec!["show", MLP, "--trace", "--shape", "2..8x10"], "one number"),
        (vec!["show", MLP, "--trace", "--shape", "8x10", "--shape", "3"], "1 input"),
        (vec!["show", MLP, "--trace", "--shape", "_x10"], "needs the size of s77 (inputs[0].shape[0])"),
        (vec!["show", MLP, "--trace", "--shape", "8x10", "--dim", "s77=9"], "contradicts"),
        (vec!["show", MLP, "--trace", "--dim", "s77=2000"], "2..1024"),
        (vec!["show", MLP, "--trace", "--dim", "s78=20"], "s77"),
        (vec!["show", MULTI, "--trace", "--shape", "2x6", "--shape", "2x6x8", "--shape", "3x6"], "must be s23, not 3"),
        (vec!["show", TWO, "--trace", "--shape", "2x10"], "--model"),
        (vec!["verfiy", MLP], "did you mean `verify`"),
        (
            vec![MLP, "--device", "cuda"],
            "aoti-inspect verify testdata/artifacts/2.15.0-cpu-mlp_dynamic.pt2 --device cuda",
        ),
        (vec!["verify", MLP, "--cases", "README.md"], "line 1"),
        (vec!["verify", MLP, "--target", "nowhere"], "nowhere"),
    ] {
        let output = run(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn unknowns_fail_unless_allowed() {
    let old = "testdata/artifacts/2.6.0-cpu-mlp_dynamic.pt2";
    assert_eq!(code(&["verify", old, "--dtype", "f32"]), 4);
    assert_eq!(code(&["verify", old, "--dtype", "f32", "--allow-unknown"]), 0);
    assert_eq!(code(&["verify", old, "--dtype", "f32", "--allow-unknown=input-dtype"]), 0);
    assert_eq!(code(&["verify", old, "--dtype", "f32", "--allow-unknown=input-dim"]), 4);
    assert_eq!(code(&["verify", old, "--inputs", "1"]), 0);
}

#[test]
fn recorded_inputs_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cases.jsonl");
    let row = |batch: u32, count: u32| {
        format!(r#"{{"inputs": [{{"dtype": "float32", "shape": [{batch}, 10], "device": "cpu"}}], "count": {count}}}"#)
    };
    std::fs::write(&file, [row(8, 90), row(1, 7), row(4096, 3)].join("\n")).unwrap();
    let args = ["verify", MLP, "--cases", file.to_str().unwrap()];
    assert_eq!(code(&args), 1);
    let text = stdout(&args);
    assert!(text.contains("90 of 100 recorded inputs are accepted (90.0 %)"), "{text}");
    assert!(text.contains("7 of 100 refused"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&stdout(&[&args[..], &["--json"]].concat())).unwrap();
    assert_eq!(json["artifacts"][0]["cases"]["refusals"][0]["code"], "input-dim-01-specialization");
}

#[test]
fn every_json_is_valid() {
    let schema: serde_json::Value = serde_json::from_str(&stdout(&["schema"])).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut files: Vec<_> = std::fs::read_dir("testdata/artifacts").unwrap().map(|e| e.unwrap().path()).collect();
    files.push(CUT.into());
    files.sort();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "pt2" || e == "so")) {
        let file = file.to_str().unwrap();
        for args in [
            vec!["show", "--json", file],
            vec!["show", "--format", "jsonl", file],
            vec!["show", "--json", "--only", "inputs,kernels", file],
            vec!["show", "--json", "--trace", file],
            vec!["verify", "--json", "--device", "cpu", file],
            vec!["verify", "--format", "jsonl", file],
        ] {
            let document: serde_json::Value = serde_json::from_str(&stdout(&args)).unwrap();
            assert_eq!(document["schema_version"], 1);
            if args.contains(&"--only") {
                continue;
            }
            assert!(validator.is_valid(&document), "{args:?}");
        }
    }
    assert!(!validator.is_valid(&serde_json::json!({"schema_version": 1})));
}

#[test]
fn only_trims_json() {
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&["show", "--json", "--only", "inputs,device", MULTI])).unwrap();
    let model = &json["artifacts"][0]["models"][0];
    assert_eq!(model["device"], "cpu");
    assert_eq!(model["inputs"].as_array().unwrap().len(), 4);
    assert!(model.get("kernels").is_none() && model.get("requires").is_none());
}

#[test]
fn a_trace_is_a_plan_in_symbols_or_in_numbers() {
    let text = stdout(&["show", MLP, "--trace", "--only", "trace"]);
    for line in [
        "  1  allocate  buf0  float32  [s77, 16]  64*s77 B  cpu",
        "  2  operator  aoti_torch_cpu_addmm_out(buf0, fc1.bias, inputs[0], fc1.weight)",
        "  9  kernel    cpp_fused_sigmoid_1(buf2, s77)",
        "  together          68*s77 + 772 B, at s77 = 1024: 70,404 B (68.8 KiB)",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    for sizes in [["--shape", "2x10"], ["--shape", "0=2,10"], ["--dim", "s77=2"]] {
        let text = stdout(&[&["show", MLP, "--trace", "--only", "trace"], &sizes[..]].concat());
        assert!(text.contains("Trace for s77 = 2\n") && text.contains("  together          908 B\n"), "{text}");
    }
    let named = ["show", MULTI, "--trace", "--json", "--shape", "1=Bx6x8", "--dim", "B=2"];
    let json: serde_json::Value = serde_json::from_str(&stdout(&named)).unwrap();
    let trace = &json["artifacts"][0]["models"][0]["trace"];
    assert_eq!(trace["peak_bytes"]["buffers"], serde_json::json!({"size": 544}));
    assert_eq!(trace["steps"][0]["bytes"], serde_json::json!({"size": 384}));
    // not asked is absent, not known is null
    let json: serde_json::Value = serde_json::from_str(&stdout(&["show", MULTI, "--json"])).unwrap();
    assert_eq!(json["artifacts"][0]["models"][0].get("trace"), None);
    let old = "testdata/artifacts/2.2.2-cpu-mlp_dynamic.so";
    let json: serde_json::Value = serde_json::from_str(&stdout(&["show", old, "--trace", "--json"])).unwrap();
    assert_eq!(json["artifacts"][0]["models"][0].get("trace"), Some(&serde_json::Value::Null));
    assert!(stdout(&["show", old, "--trace"]).contains("unknown: libraries of torch 2.3"));
}

/// `null` is unknown, and then a reason stands in `unknown`.
#[test]
fn the_first_screen_answers() {
    let text = stdout(&[MULTI]);
    for part in
        ["AOTInductor package", "for cpu, linux x86_64", "Inputs", "int64", "2*..1024", "Outputs", "Needs", "glibc"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let call = stdout(&["show", "--call", MULTI]);
    assert!(call.contains("aoti_load_package") && call.contains("AOTIModelPackageLoader"), "{call}");
}

#[test]
fn text_of_files_never_reaches_the_terminal_raw() {
    for args in [vec!["show", "-v"], vec!["show", "--trace"], vec!["verify", "-v"], vec!["show", "--call"]] {
        let mut full = args.clone();
        full.extend(["--color", "never", "testdata/hostile/terminal_escape.pt2"]);
        let text = stdout(&full);
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{full:?}");
    }
}

#[test]
fn the_last_line_can_be_searched_for() {
    let text = stdout(&["verify", MLP, "--shape", "1x10"]);
    let last = text.lines().last().unwrap();
    assert!(last.starts_with(&format!("FAIL {MLP}: 1 failed, 0 unknown, ")), "{last}");
}

#[test]
fn several_forms_in_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, markdown) = (format!("json={}", at("a.json")), format!("markdown={}", at("a.md")));
    let text = stdout(&["verify", MLP, "--output", &json, "--output", &markdown]);
    assert!(text.contains("PASS"));
    assert!(std::fs::read_to_string(at("a.json")).unwrap().contains("\"verdict\": \"pass\""));
    assert!(std::fs::read_to_string(at("a.md")).unwrap().starts_with("## aoti-inspect"));
    assert!(stderr(&["verify", MLP, "--output", "no/such/folder/x"]).contains("cannot write"));
    assert_eq!(code(&["verify", MLP, "--output", "no/such/folder/x"]), 2);
}

/// Runs one line as a person's shell does, with the built binary first in the path.
fn shell(line: &str, folder: &Path) -> Output {
    let path = format!("{}:{}", Path::new(BINARY).parent().unwrap().display(), std::env::var("PATH").unwrap());
    // `cargo run` would build again: the binary is there already
    let script = format!("cargo() {{ while [ \"$1\" != -- ]; do shift; done; shift; aoti-inspect \"$@\"; }}\n{line}");
    Command::new("bash").args(["-c", &script]).current_dir(folder).env("PATH", path).env_remove("CI").output().unwrap()
}

#[test]
fn commands_of_the_readme_run() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let blocks = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines: Vec<&str> =
        blocks.flat_map(str::lines).filter(|l| !l.starts_with('#') && !l.trim().is_empty()).collect();
    assert!(lines.len() >= 10);
    for line in lines.into_iter().filter(|line| *line != "cargo test") {
        let expected = line.split("# exit ").nth(1).map_or(0, |n| n.trim().parse().unwrap());
        let output = shell(line, Path::new("."));
        assert_eq!(output.status.code(), Some(expected), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn examples_of_the_help_run() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(MLP, folder.path().join("model.pt2")).unwrap();
    std::fs::write(folder.path().join("recorded.jsonl"), "{\"inputs\": [{\"shape\": [8, 10]}]}\n").unwrap();
    let mut count = 0;
    for help in [stdout(&["--help"]), stdout(&["show", "--help"]), stdout(&["verify", "--help"])] {
        for line in help.lines().filter(|l| l.starts_with("  aoti-inspect ")) {
            count += 1;
            let output = shell(line, folder.path());
            let exit = output.status.code().unwrap();
            assert!(exit <= 1, "{line}: {exit} {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    assert!(count >= 10);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let line = format!("set -o pipefail; aoti-inspect show -v --all {MULTI} {MULTI} {MULTI} | head -n 1");
    let output = shell(&line, Path::new("."));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
}

#[test]
fn standard_input_and_folders() {
    let output = shell(&format!("aoti-inspect verify - < {MLP}"), Path::new("."));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = stdout(&["testdata/artifacts"]);
    assert!(text.contains(MLP) && text.contains(MULTI));
}

/// What packages install is written by `packaging/make.sh`.
#[test]
fn packaged_man_page_and_completions_are_current() {
    let share = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/wheel/data/share");
    for (args, file) in [
        (&["man"][..], "man/man1/aoti-inspect.1"),
        (&["completions", "bash"], "bash-completion/completions/aoti-inspect"),
        (&["completions", "zsh"], "zsh/site-functions/_aoti-inspect"),
        (&["completions", "fish"], "fish/vendor_completions.d/aoti-inspect.fish"),
    ] {
        let packaged = std::fs::read_to_string(share.join(file)).unwrap();
        assert!(
            packaged == stdout(args),
            "{file} is not what `aoti-inspect {}` prints: run packaging/make.sh",
            args.join(" ")
        );
    }
}

#[test]
fn what_holds_of_several_models_is_said_once() {
    let text = stdout(&["show", TWO]);
    assert_eq!(text.matches("asks for an executable stack").count(), 1, "{text}");
}
