//! `aoti-inspect.toml`: where artefacts will run, which artefacts must fit there, and how much findings count.

mod rules;

pub use rules::{Budget, Waiver, is_expired, today};

use super::UsageError;
use super::host::LibtorchExports;
use crate::report::{ConfigPlace, Level};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name that is searched for, from the current folder upwards.
pub const FILE_NAME: &str = "aoti-inspect.toml";

/// The project file, version 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Project {
    /// where it was found
    pub file: PathBuf,
    /// its folder: globs and paths in it start there
    pub folder: PathBuf,
    /// named targets
    pub targets: BTreeMap<String, TargetTable>,
    /// artefacts and the targets that they must satisfy
    pub artifacts: Vec<ArtifactTable>,
    /// level per code
    pub levels: Vec<(String, Level)>,
    /// known findings
    pub waivers: Vec<Waiver>,
    /// sizes that must not be exceeded by any artefact
    pub budget: Budget,
}

/// A target: the flags of `verify` as keys, with the same notations. A target file has the same keys.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetTable {
    /// `--device`
    pub device: Option<String>,
    /// `--gpu`, one or several
    #[serde(default, deserialize_with = "one_or_many")]
    pub gpu: Vec<String>,
    /// `--driver`
    pub driver: Option<String>,
    /// `--gpu-memory`
    pub gpu_memory: Option<String>,
    /// `--cpu`
    pub cpu: Option<String>,
    /// `--torch`
    pub torch: Option<String>,
    /// `--libtorch`, relative to the file
    pub libtorch: Option<PathBuf>,
    /// exports of a libtorch that was read elsewhere (`aoti-inspect host --libtorch DIR`)
    pub libtorch_exports: Option<LibtorchExports>,
    /// `--loader`
    pub loader: Option<String>,
    /// `--platform`
    pub platform: Option<String>,
    /// `--glibc`
    pub glibc: Option<String>,
    /// `--libstdcxx`
    pub libstdcxx: Option<String>,
    /// `--page-size`
    pub page_size: Option<String>,
    /// `--ops`
    #[serde(default, deserialize_with = "one_or_many")]
    pub ops: Vec<String>,
    /// `--op-library`, relative to the file
    #[serde(default, deserialize_with = "one_or_many")]
    pub op_library: Vec<PathBuf>,
    /// `--metadata KEY[=VALUE]`
    #[serde(default, deserialize_with = "one_or_many")]
    pub metadata: Vec<String>,
    /// the whole input list, or the count alone
    pub inputs: Option<Inputs>,
    /// `--dim`: sizes that names in `inputs` stand for
    #[serde(default)]
    pub dims: BTreeMap<String, String>,
}

/// The inputs that a caller passes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Inputs {
    /// their count
    Count(usize),
    /// `[WHICH=]SPEC` each
    List(Vec<String>),
}

/// Artefacts and what is asked of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactTable {
    /// glob, relative to the file
    pub path: String,
    /// line of `path`
    pub place: ConfigPlace,
    /// names of targets
    pub targets: Vec<String>,
    /// a glob that matches nothing is fine
    pub optional: bool,
    /// the one model that is loaded
    pub model: Option<String>,
    /// the inputs that the caller passes, over those of the targets
    pub inputs: Option<Inputs>,
    /// sizes of names in `inputs`
    pub dims: BTreeMap<String, String>,
    /// `interface_id` that `show --json` prints; another one fails
    pub interface_id: Option<String>,
    /// sizes, over those of the project
    pub budget: Budget,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: toml::Spanned<i64>,
    #[serde(default)]
    target: BTreeMap<String, TargetTable>,
    #[serde(default)]
    artifact: Vec<RawArtifact>,
    #[serde(default)]
    level: BTreeMap<toml::Spanned<String>, Level>,
    #[serde(default)]
    waiver: Vec<rules::RawWaiver>,
    #[serde(default)]
    budget: Budget,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawArtifact {
    path: toml::Spanned<String>,
    #[serde(default)]
    targets: Vec<toml::Spanned<String>>,
    #[serde(default)]
    optional: bool,
    model: Option<String>,
    inputs: Option<Inputs>,
    #[serde(default)]
    dims: BTreeMap<String, String>,
    interface_id: Option<String>,
    #[serde(default)]
    budget: Budget,
}

impl Project {
    /// Reads the text of a project file that stands at `file`.
    ///
    /// `is_code` tells whether a finding code is registered.
    ///
    /// # Errors
    /// Each with line and column: TOML that is none, unknown keys, unknown codes and targets, wrong dates,
    /// globs and sizes, another version.
    pub fn from_text(text: &str, file: &Path, is_code: &dyn Fn(&str) -> bool) -> Result<Self, UsageError> {
        let at = |offset: usize| place(text, offset, file);
        let wrong = |offset: usize, message: String| {
            let place = at(offset);
            UsageError::new(format!("{}:{}:{}: {message}", place.file, place.line, place.column))
        };
        let raw: File = toml::from_str(text).map_err(|e| {
            // serde's message for an unknown key already lists the valid ones
            wrong(e.span().map_or(0, |s| s.start), e.message().to_owned())
        })?;
        if *raw.version.get_ref() != 1 {
            let message = format!("version {} is not known: this aoti-inspect reads version 1", raw.version.get_ref());
            return Err(wrong(raw.version.span().start, message));
        }
        let known = |code: &toml::Spanned<String>| {
            if is_code(code.get_ref()) {
                return Ok(code.get_ref().clone());
            }
            let message = format!("code `{}` is not known: `aoti-inspect codes` lists them", code.get_ref());
            Err(wrong(code.span().start, message))
        };
        let levels = raw.level.iter().map(|(code, level)| Ok((known(code)?, *level)));
        let levels = levels.collect::<Result<_, UsageError>>()?;
        let mut artifacts = Vec::new();
        for entry in raw.artifact {
            rules::check_glob(entry.path.get_ref()).map_err(|m| wrong(entry.path.span().start, m))?;
            for name in &entry.targets {
                if !raw.target.contains_key(name.get_ref()) {
                    let valid: Vec<&str> = raw.target.keys().map(String::as_str).collect();
                    let error = UsageError::unknown_word("target", name.get_ref(), &valid);
                    return Err(wrong(name.span().start, error.to_string()));
                }
            }
            artifacts.push(ArtifactTable {
                place: at(entry.path.span().start),
                path: entry.path.into_inner(),
                targets: entry.targets.into_iter().map(toml::Spanned::into_inner).collect(),
                optional: entry.optional,
                model: entry.model,
                inputs: entry.inputs,
                dims: entry.dims,
                interface_id: entry.interface_id,
                budget: entry.budget,
            });
        }
        let mut waivers = Vec::new();
        for waiver in raw.waiver {
            known(&waiver.code)?;
            let (offset, parsed) = waiver.read(&at);
            waivers.push(parsed.map_err(|m| wrong(offset, m))?);
        }
        let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Self {
            file: file.to_path_buf(),
            folder,
            targets: raw.target,
            artifacts,
            levels,
            waivers,
            budget: raw.budget,
        })
    }
}

impl TargetTable {
    /// The same with its paths taken from `folder`, where the file stands that names them.
    #[must_use]
    pub fn below(mut self, folder: &Path) -> Self {
        for path in self.libtorch.iter_mut().chain(&mut self.op_library) {
            *path = folder.join(&path);
        }
        self
    }

    /// Reads a target file: TOML or, when it begins with `{`, JSON, with the keys of a target.
    ///
    /// # Errors
    /// With line and column: text that is neither, and unknown keys.
    pub fn from_text(text: &str, file: &Path) -> Result<Self, UsageError> {
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text).map_err(|e| UsageError::new(format!("{}: {e}", file.display())));
        }
        toml::from_str(text).map_err(|e: toml::de::Error| {
            let at = place(text, e.span().map_or(0, |s| s.start), file);
            UsageError::new(format!("{}:{}:{}: {}", at.file, at.line, at.column, e.message()))
        })
    }
}

/// The project file that applies in `start`: there or in the nearest folder above.
pub fn find(start: &Path) -> Option<PathBuf> {
    start
        .ancestors()
        .map(|folder| folder.join(FILE_NAME))
        // also one that cannot be read, so that it is not passed over in silence
        .find(|file| file.symlink_metadata().is_ok())
}

/// Line and column (from 1, in characters) of a byte offset.
fn place(text: &str, offset: usize, file: &Path) -> ConfigPlace {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    ConfigPlace { file: file.display().to_string(), line, column }
}

/// `gpu = "H100"` and `gpu = ["H100", "A100"]` are both fine.
fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany<T> {
        Many(Vec<T>),
        One(T),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Project, UsageError> {
        Project::from_text(text, Path::new("ci/aoti-inspect.toml"), &|code| code == "gpu-arch")
    }

    #[test]
    fn reads_the_documented_example() {
        let project = read(
            r#"
version = 1
[target.prod-a10g]
device = "cuda"
gpu = ["A10G"]
torch = "2.9.1+cu128"
[[artifact]]
path = "build/ranker*.pt2"
targets = ["prod-a10g"]
inputs = ["f32[B, 13]", "i64[B, 26]"]
dims = { B = "1..512" }
[level]
gpu-arch = "allow"
[[waiver]]
code = "gpu-arch"
path = "build/legacy/*"
reason = "rebuilt in the next release"
until = 2027-03-01
[budget]
package = "200 MiB"
"#,
        )
        .unwrap();
        assert_eq!(project.folder, Path::new("ci"));
        assert_eq!(project.targets["prod-a10g"].gpu, ["A10G"]);
        assert_eq!(project.artifacts[0].place.line, 8);
        assert_eq!(project.levels, [("gpu-arch".to_owned(), Level::Allow)]);
        assert_eq!(project.waivers[0].until.as_deref(), Some("2027-03-01"));
        assert_eq!(project.budget.package, Some(200 << 20));
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, expected) in [
            ("version = 1\nartefact = 1\n", "ci/aoti-inspect.toml:2:1: unknown field `artefact`"),
            ("version = 2\n", "ci/aoti-inspect.toml:1:11: version 2"),
            ("version = 1\n[level]\nno-such-code = \"deny\"\n", "ci/aoti-inspect.toml:3:1: code `no-such-code`"),
            ("version = 1\n[target.a]\ngpus = 1\n", "ci/aoti-inspect.toml:3:1: unknown field `gpus`"),
            ("version = 1\n[[artifact]]\npath = \"x\"\ntargets = [\"b\"]\n", "ci/aoti-inspect.toml:4:12: target `b`"),
            ("version = 1\n[[artifact]]\npath = \"x[\"\n", "ci/aoti-inspect.toml:3:8: "),
            (
                "version = 1\n[[waiver]]\ncode = \"gpu-arch\"\nreason = \"r\"\nuntil = \"soon\"\n",
                "ci/aoti-inspect.toml:5:9: ",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
