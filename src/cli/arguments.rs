//! Arguments of all commands, and the texts of `--help`.

use super::load::LoadArgs;
use crate::report::Grade;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  aoti-inspect model.pt2
  aoti-inspect verify model.pt2 --device cuda --input 'f32[8, 10]' --torch 2.9.1+cu128
  aoti-inspect verify model.pt2 --shape Bx10 --dim B=1..512
  aoti-inspect verify model.pt2 --cases recorded.jsonl --json
  aoti-inspect explain input-dim-range
  aoti-inspect show model.pt2 --trace --shape 8x10

Exit codes:
  0  all that was asked holds
  1  something does not hold
  2  wrong use or configuration
  3  unreadable, damaged or not an AOTInductor artefact
  4  undecided: something that was asked for is unknown, and nothing failed";

const SHOW_EXAMPLES: &str = "\
Examples:
  aoti-inspect show model.pt2
  aoti-inspect show model.pt2 --trace
  aoti-inspect show model.pt2 --only trace --trace --shape 8x10
  aoti-inspect show model.pt2 --only inputs,kernels --json";

const VERIFY_EXAMPLES: &str = "\
Examples:
  aoti-inspect verify model.pt2
  aoti-inspect verify model.pt2 --device cpu --input 'f32[8, 10]'
  aoti-inspect verify model.pt2 --input f32:8x10/10x1@cpu
  aoti-inspect verify model.pt2 --shape 8x10 --dtype float32
  aoti-inspect verify model.pt2 --input \"args[0]=f32[B, 10]\" --dim B=2..512
  aoti-inspect verify model.pt2 --inputs 1 --require inputs

WHICH is a position, a call path (kwargs['bias']), an internal name or a label, as `show` prints them.
A dim is a number, a range 1..512, _ (not asked) or a NAME; the same NAME is the same size everywhere.

Exit codes: 0 holds, 1 does not hold, 2 wrong use, 3 unreadable, 4 undecided.";

/// Options before the command that take a value.
pub const GLOBAL_WITH_VALUE: &[&str] = &["--format", "--color", "--output", "-o"];

/// Tells, before deployment and without running anything, whether a compiled PyTorch model (AOTInductor) will load and run
#[derive(Debug, Parser)]
#[command(name = "aoti-inspect", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The parser with `show` as its only command.
    pub fn only_show() -> clap::Command {
        OutputArgs::augment_args(clap::Command::new("aoti-inspect"))
            .subcommand(ShowArgs::augment_args(clap::Command::new("show")))
    }
}

/// How results are written.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Form of the output
    #[arg(long, global = true, value_enum, default_value_t = Format::Text, env = "AOTI_INSPECT_FORMAT", hide_env = true)]
    pub format: Format,
    /// The same as --format json
    #[arg(long, global = true)]
    pub json: bool,
    /// Colour in text
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto)]
    pub color: Colour,
    /// Write to a file: instead of to standard output, or with FORMAT= as well and in that form; repeatable
    #[arg(long, short, global = true, value_name = "[FORMAT=]FILE")]
    pub output: Vec<String>,
    /// Passed checks, evidence, unknown facts and members too
    #[arg(long, short, global = true)]
    pub verbose: bool,
}

/// Forms of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// for people
    Text,
    /// one document
    Json,
    /// one artefact a line
    Jsonl,
    /// job summaries and issues
    Markdown,
    /// workflow commands of GitHub Actions
    Github,
    /// code scanning
    Sarif,
    /// test reports
    Junit,
    /// tables: one row per model
    Csv,
}

/// When text has colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// on a terminal, unless NO_COLOR is set
    Auto,
    /// also in files and pipes
    Always,
    /// not at all
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What an artefact is: device, platform, inputs, outputs, constants, kernels, needs (taken when no command is given)
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Compare artefacts with a load configuration; the exit code is the verdict
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(Box<VerifyArgs>),
    /// The page of a finding code; from an error to its likely cause
    Explain(Box<ExplainArgs>),
    /// What changed between two builds, for callers and for hosts
    Diff(DiffArgs),
    /// This machine as a target file: GPUs, driver, CPU, glibc, libstdc++, page size
    Host(HostArgs),
    /// List the checks, or print the page of one
    Codes(CodesArgs),
    /// Write a commented aoti-inspect.toml, with an artefact's interface as the agreed one
    Init(InitArgs),
    /// JSON schema of the output
    Schema,
    /// Completions for a shell
    Completions(CompletionsArgs),
    /// Manual page
    Man,
}

/// Which files, and how they are read.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Libraries, packages, unpacked packages, folders (walked); - is standard input
    #[arg(value_name = "ARTIFACT")]
    pub artifacts: Vec<PathBuf>,
    /// More of them, one a line, from a file; - is standard input
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,
    /// Do not interpret machine code; what only it tells is unknown
    #[arg(long)]
    pub no_interpret: bool,
    /// SHA-256 of the files
    #[arg(long)]
    pub digest: bool,
}

/// The project file, and findings that are known.
#[derive(Debug, Args)]
#[command(next_help_heading = "Project")]
pub struct ProjectArgs {
    /// The project file, instead of the nearest aoti-inspect.toml upwards
    #[arg(long, value_name = "FILE", env = "AOTI_INSPECT_CONFIG", hide_env = true)]
    pub config: Option<PathBuf>,
    /// Leave the project file alone
    #[arg(long, conflicts_with = "config")]
    pub no_config: bool,
    /// Findings that are known and do not fail
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write what is found now as the baseline; the exit code is 0 unless a file is unreadable
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub write_baseline: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Its interface becomes the agreed one
    #[arg(value_name = "ARTIFACT")]
    pub artifact: Option<PathBuf>,
    /// Write over an existing file
    #[arg(long)]
    pub force: bool,
    /// Print instead of writing aoti-inspect.toml
    #[arg(long)]
    pub stdout: bool,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub files: FileArgs,
    /// Only these facts: inputs,kernels,…
    #[arg(long, value_delimiter = ',', value_name = "FACTS")]
    pub only: Vec<String>,
    /// List everything, however long
    #[arg(long)]
    pub all: bool,
    /// How to call the model from Python and C++
    #[arg(long)]
    pub call: bool,
    /// Read machine code even where source states the facts, and compare
    #[arg(long)]
    pub deep: bool,
    /// What one run does, step by step: allocations, operators, kernels, and the peak of memory
    #[arg(long, conflicts_with = "no_interpret")]
    pub trace: bool,
    #[command(flatten)]
    pub sizes: SizeArgs,
}

/// Sizes that a trace is for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sizes of a trace")]
pub struct SizeArgs {
    /// With --trace: sizes of an input, 2x10, '[2, 10]', scalar; the trace then has numbers
    #[arg(long, value_name = "[WHICH=]SHAPE", requires = "trace")]
    pub shape: Vec<String>,
    /// With --trace: the size of a symbol (s27=8), or of a NAME in a shape
    #[arg(long, value_name = "NAME=SIZE", requires = "trace")]
    pub dim: Vec<String>,
    /// With --trace: the model of a package that the sizes are for
    #[arg(long, value_name = "NAME", requires = "trace")]
    pub model: Option<String>,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub files: FileArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub project: ProjectArgs,
    /// These topics must be asked, else exit 2: gpu,torch,inputs,…
    #[arg(long, value_delimiter = ',', value_name = "TOPICS")]
    pub require: Vec<String>,
    /// An unknown that was asked for does not fail; with CODE only for that check
    #[arg(long, value_name = "CODE", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub allow_unknown: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Codes of findings, artefacts and logs, told apart by content; a log may also be piped in
    #[arg(value_name = "CODE|ARTIFACT|LOG")]
    pub given: Vec<String>,
    /// The log; - is standard input
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    /// An error text instead of a log
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub message: Vec<String>,
    /// How the process ended, when there is no text: 139, -11, SIGSEGV
    #[arg(long, value_name = "STATUS", allow_hyphen_values = true)]
    pub exit: Option<String>,
    /// Mask paths and names of weights, for public issue trackers
    #[arg(long)]
    pub redact: bool,
    /// Do not interpret machine code
    #[arg(long)]
    pub no_interpret: bool,
    #[command(flatten)]
    pub load: LoadArgs,
}

#[derive(Debug, Args)]
pub struct HostArgs {
    /// Folder with a libtorch, whose exports are written too
    #[arg(long, value_name = "DIR")]
    pub libtorch: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Earlier build
    pub old: PathBuf,
    /// Later build
    pub new: PathBuf,
    /// Least grade of a change that gives exit 1
    #[arg(long, value_enum, default_value_t = FailOn::Breaking)]
    pub fail_on: FailOn,
    /// Do not interpret machine code
    #[arg(long)]
    pub no_interpret: bool,
}

/// Grades as words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// something that worked may fail
    Breaking,
    /// anything that a caller or host could notice
    Compatible,
    /// anything
    Cosmetic,
}

impl From<FailOn> for Grade {
    fn from(word: FailOn) -> Self {
        match word {
            FailOn::Breaking => Self::Breaking,
            FailOn::Compatible => Self::Compatible,
            FailOn::Cosmetic => Self::Cosmetic,
        }
    }
}

#[derive(Debug, Args)]
pub struct CodesArgs {
    /// Print the page of this code
    pub code: Option<String>,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
