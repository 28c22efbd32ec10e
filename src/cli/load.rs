//! The load configuration from flags, environment and target files, in that order of precedence.

use super::CliError;
use crate::model::{Device, Exported};
use crate::target::gpu::{Driver, Gpu};
use crate::target::host::{self, Host};
use crate::target::libtorch::Libtorch;
use crate::target::project::{self, Budget, Inputs, Project, TargetTable};
use crate::target::{
    HostUnknown, InputRequests, InputTexts, LoadConfig, Loader, OpLibrary, PlatformName, TorchVersion, UsageError,
    Version, WeightsFile, cases, parse_bytes, parse_device,
};
use crate::{assemble, container, limits};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// How the artefact is going to be loaded; each asks for a check
#[derive(Debug, Args)]
#[command(next_help_heading = "Load configuration")]
pub struct LoadArgs {
    /// The model of a package
    #[arg(long, value_name = "NAME", env = "AOTI_INSPECT_MODEL", hide_env = true)]
    pub model: Option<String>,
    /// cuda, cpu, cuda:1, xpu, mps
    #[arg(long, value_name = "DEVICE", env = "AOTI_INSPECT_DEVICE", hide_env = true)]
    pub device: Option<String>,
    /// An input: 'f32[2, 10][10, 1]cuda:0', f32:2x10/10x1@cuda:0, f32[2,10]{10,1}:cuda; without WHICH= the whole list
    /// in order; none for a model without inputs
    #[arg(long, value_name = "[WHICH=]SPEC")]
    pub input: Vec<String>,
    /// Sizes of an input: 2x10, '[2, 10]', scalar
    #[arg(long, value_name = "[WHICH=]SHAPE")]
    pub shape: Vec<String>,
    /// Element type of an input: float32, f32, torch.float32
    #[arg(long, value_name = "[WHICH=]DTYPE")]
    pub dtype: Vec<String>,
    /// Strides of an input: 10x1, contiguous, channels_last
    #[arg(long, value_name = "[WHICH=]STRIDE")]
    pub stride: Vec<String>,
    /// Number of inputs
    #[arg(long, value_name = "N")]
    pub inputs: Option<usize>,
    /// Size or range that a NAME in a shape stands for: B=1..512
    #[arg(long, value_name = "NAME=RANGE")]
    pub dim: Vec<String>,
    /// Recorded lists of inputs, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub cases: Option<PathBuf>,
    /// A GPU: H100, sm_90, 9.0, 'NVIDIA A10G'
    #[arg(long, value_name = "GPU", env = "AOTI_INSPECT_GPU", hide_env = true)]
    pub gpu: Vec<String>,
    /// GPU driver: 550.54
    #[arg(long, value_name = "VERSION", env = "AOTI_INSPECT_DRIVER", hide_env = true)]
    pub driver: Option<String>,
    /// Memory of the GPU: 24GiB
    #[arg(long, value_name = "BYTES", env = "AOTI_INSPECT_GPU_MEMORY", hide_env = true)]
    pub gpu_memory: Option<String>,
    /// CPU: avx2, x86-64-v3, neoverse-v1, native
    #[arg(long, value_name = "CPU", env = "AOTI_INSPECT_CPU", hide_env = true)]
    pub cpu: Option<String>,
    /// torch of the target, as torch.__version__ prints it: 2.9.1+cu128
    #[arg(long, value_name = "VERSION", env = "AOTI_INSPECT_TORCH", hide_env = true)]
    pub torch: Option<String>,
    /// Folder with the target's libtorch
    #[arg(long, value_name = "DIR", env = "AOTI_INSPECT_LIBTORCH", hide_env = true)]
    pub libtorch: Option<PathBuf>,
    /// What opens it
    #[arg(long, value_enum, env = "AOTI_INSPECT_LOADER", hide_env = true)]
    pub loader: Option<LoaderWord>,
    /// Platform: linux-x86_64
    #[arg(long, value_name = "OS-ARCH", env = "AOTI_INSPECT_PLATFORM", hide_env = true)]
    pub platform: Option<String>,
    /// glibc: 2.31
    #[arg(long, value_name = "VERSION", env = "AOTI_INSPECT_GLIBC", hide_env = true)]
    pub glibc: Option<String>,
    /// libstdc++: 3.4.30
    #[arg(long, value_name = "VERSION", env = "AOTI_INSPECT_LIBSTDCXX", hide_env = true)]
    pub libstdcxx: Option<String>,
    /// Page size: 64k
    #[arg(long, value_name = "BYTES", env = "AOTI_INSPECT_PAGE_SIZE", hide_env = true)]
    pub page_size: Option<String>,
    /// Safetensors file with the weights that the caller loads; several when they are sharded
    #[arg(long, value_name = "FILE")]
    pub weights: Vec<PathBuf>,
    /// A metadata key that must be there, with its value
    #[arg(long, value_name = "KEY[=VALUE]")]
    pub metadata: Vec<String>,
    /// The exported program that it was compiled from
    #[arg(long, value_name = "FILE")]
    pub exported: Option<PathBuf>,
    /// Operators that the target has: mylib::blend, 'mylib::*'
    #[arg(long, value_name = "NAME")]
    pub ops: Vec<String>,
    /// Library that registers operators on the target
    #[arg(long, value_name = "FILE")]
    pub op_library: Vec<PathBuf>,
    /// This machine's GPUs, driver, CPU, glibc, libstdc++ and page size
    #[arg(long, conflicts_with = "target")]
    pub this_host: bool,
    /// A target of aoti-inspect.toml by name, or a target file (TOML or JSON)
    #[arg(long, value_name = "NAME|FILE", env = "AOTI_INSPECT_TARGET", hide_env = true)]
    pub target: Vec<String>,
}

/// Loaders as words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoaderWord {
    /// AOTIModelPackageLoader, without Python
    Cpp,
    /// torch._inductor.aoti_load_package
    Python,
    /// a runner class or the C interface, without a package
    So,
}

impl From<LoaderWord> for Loader {
    fn from(word: LoaderWord) -> Self {
        match word {
            LoaderWord::Cpp => Self::Cpp,
            LoaderWord::Python => Self::Python,
            LoaderWord::So => Self::So,
        }
    }
}

impl LoadArgs {
    /// Files that are read; a target that is a name is none.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.cases.iter().chain(&self.weights).chain(&self.exported).chain(&self.op_library)
    }
    /// One configuration, or one per `--target`.
    pub fn configs(&self, project: Option<&Project>) -> Result<Vec<LoadConfig>, CliError> {
        if self.target.is_empty() {
            if !self.this_host {
                return Ok(vec![self.config(&TargetTable::default(), None)?]);
            }
            let host = Host::here();
            let host_unknown = host.unknown.clone();
            let config = self.config(&host.into(), Some("this host".into()))?;
            let is_open = |unknown: &HostUnknown| !self.gives(unknown.topic);
            return Ok(vec![LoadConfig { host_unknown: host_unknown.into_iter().filter(is_open).collect(), ..config }]);
        }
        self.target
            .iter()
            .map(|name| {
                let table = target(name, project)?;
                self.config(&table, Some(name.clone()))
            })
            .collect()
    }

    /// The flags over one target.
    pub fn config(&self, table: &TargetTable, name: Option<String>) -> Result<LoadConfig, CliError> {
        let either = |flag: &Option<String>, key: &Option<String>| flag.clone().or_else(|| key.clone());
        let many = |flags: &[String], keys: &[String]| if flags.is_empty() { keys.to_vec() } else { flags.to_vec() };
        let bytes = |text: Option<String>, flag: &str| {
            text.map(|text| parse_bytes(&text).map_err(|e| e.within(flag))).transpose()
        };
        let loader = match (self.loader, &table.loader) {
            (Some(word), _) => Some(word),
            (None, Some(text)) => Some(loader_word(text)?),
            (None, None) => None,
        };
        Ok(LoadConfig {
            name,
            model: self.model.clone(),
            device: either(&self.device, &table.device).map(|text| device(&text)).transpose()?,
            inputs: self.inputs(table)?,
            cases: self.cases.as_deref().map(read_cases).transpose()?.unwrap_or_default(),
            gpus: many(&self.gpu, &table.gpu)
                .iter()
                .map(|text| Gpu::from_text(text).map_err(|e| e.within("--gpu")))
                .collect::<Result<_, _>>()?,
            driver: either(&self.driver, &table.driver).map(|text| driver(&text)).transpose()?,
            gpu_memory_bytes: bytes(either(&self.gpu_memory, &table.gpu_memory), "--gpu-memory")?,
            cpu: either(&self.cpu, &table.cpu).map(|text| host::cpu(&text)).transpose()?,
            torch: read(either(&self.torch, &table.torch), TorchVersion::from_text, "--torch")?,
            libtorch: self.libtorch(table)?,
            loader: loader.map(Loader::from),
            platform: read(either(&self.platform, &table.platform), PlatformName::from_text, "--platform")?,
            glibc: read(either(&self.glibc, &table.glibc), Version::glibc, "--glibc")?,
            libstdcxx: read(either(&self.libstdcxx, &table.libstdcxx), Version::libstdcxx, "--libstdcxx")?,
            page_size_bytes: page_size(bytes(either(&self.page_size, &table.page_size), "--page-size")?)?,
            weights: self.weights.iter().map(|path| opened(path, WeightsFile::open(path))).collect::<Result<_, _>>()?,
            metadata: many(&self.metadata, &table.metadata).iter().map(|text| key_value(text)).collect(),
            exported: self.exported.as_deref().map(read_exported).transpose()?,
            host_unknown: Vec::new(),
            ops: operators(many(&self.ops, &table.ops))?,
            op_libraries: if self.op_library.is_empty() { &table.op_library } else { &self.op_library }
                .iter()
                .map(|path| opened(path, OpLibrary::open(path)))
                .collect::<Result<_, _>>()?,
            // the project alone sets these
            budget: Budget::default(),
            interface_id: None,
        })
    }

    /// The folder of the flag, of the target, or what a target file says of one.
    fn libtorch(&self, table: &TargetTable) -> Result<Option<Libtorch>, CliError> {
        match self.libtorch.as_ref().or(table.libtorch.as_ref()) {
            Some(folder) => Ok(Some(Libtorch::read(folder)?)),
            None => Ok(table.libtorch_exports.clone().map(Libtorch::from)),
        }
    }

    /// True when a flag states what `--this-host` would read.
    fn gives(&self, topic: &str) -> bool {
        match topic {
            "gpu" => !self.gpu.is_empty(),
            "gpu-memory" => self.gpu_memory.is_some(),
            "cpu" => self.cpu.is_some(),
            "glibc" => self.glibc.is_some(),
            "libstdcxx" => self.libstdcxx.is_some(),
            _ => false,
        }
    }

    /// Flags about inputs replace the target's inputs as a whole.
    fn inputs(&self, table: &TargetTable) -> Result<InputRequests, CliError> {
        let lists = [&self.input, &self.shape, &self.dtype, &self.stride];
        let has_flags = self.inputs.is_some() || lists.iter().any(|list| !list.is_empty());
        let (count, list) = match &table.inputs {
            _ if has_flags => (self.inputs, self.input.clone()),
            Some(Inputs::Count(count)) => (Some(*count), Vec::new()),
            Some(Inputs::List(list)) => (None, list.clone()),
            None => (None, Vec::new()),
        };
        let mut dims = self.dim.clone();
        if !has_flags {
            let is_given = |name: &str| self.dim.iter().any(|d| d.split('=').next() == Some(name));
            dims.extend(
                table.dims.iter().filter(|(name, _)| !is_given(name)).map(|(name, span)| format!("{name}={span}")),
            );
        }
        let texts = InputTexts {
            input: &list,
            shape: &self.shape,
            dtype: &self.dtype,
            stride: &self.stride,
            inputs: count,
            dim: &dims,
        };
        Ok(InputRequests::from_texts(texts)?)
    }
}

/// A value in its own notation; an error names the flag.
fn read<T>(
    text: Option<String>,
    from_text: fn(&str) -> Result<T, UsageError>,
    flag: &str,
) -> Result<Option<T>, CliError> {
    Ok(text.map(|text| from_text(&text).map_err(|e| e.within(flag))).transpose()?)
}

fn device(text: &str) -> Result<Device, CliError> {
    Ok(parse_device(text).map_err(|e| e.within("--device"))?)
}

fn driver(text: &str) -> Result<Driver, CliError> {
    Driver::from_text(text).ok_or_else(|| CliError::usage(format!("--driver {text}: write its version, 550.54")))
}

fn loader_word(text: &str) -> Result<LoaderWord, CliError> {
    LoaderWord::from_str(text, true)
        .map_err(|_| UsageError::unknown_word("loader", text, &["cpp", "python", "so"]).into())
}

/// An empty variable of a script must not read as "no operator is missing".
fn operators(names: Vec<String>) -> Result<Vec<String>, CliError> {
    match names.iter().find(|name| name.trim().is_empty()) {
        Some(_) => Err(CliError::usage("--ops: an operator without a name; write mylib::blend or 'mylib::*'")),
        None => Ok(names),
    }
}

/// `KEY` or `KEY=VALUE`.
fn key_value(text: &str) -> (String, Option<String>) {
    match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    }
}

/// A file of the configuration that cannot be read is wrong use.
fn opened<T>(path: &Path, result: crate::error::Result<T>) -> Result<T, CliError> {
    result.map_err(|e| CliError::usage(format!("{}: {e}", path.display())))
}

/// Pages of a memory management unit: 4 KiB to 64 KiB, powers of two.
fn page_size(bytes: Option<u64>) -> Result<Option<u64>, CliError> {
    match bytes {
        Some(n) if !n.is_power_of_two() || !(4096..=65536).contains(&n) => {
            Err(CliError::usage(format!("--page-size: no system has pages of {n} bytes; 4k, 16k and 64k are common")))
        }
        bytes => Ok(bytes),
    }
}

pub fn read_text(path: &Path, cap: u64) -> Result<String, CliError> {
    let wrong = |what: String| CliError::usage(format!("{}: {what}", path.display()));
    let file = std::fs::File::open(path).map_err(|e| wrong(e.to_string()))?;
    let size = file.metadata().map_err(|e| wrong(e.to_string()))?.len();
    if size > cap {
        return Err(wrong(format!("{size} bytes, more than the {cap} that are read")));
    }
    // pipes and the files of procfs have no size
    let bytes = crate::source::read_capped(file, cap).map_err(|e| wrong(e.to_string()))?;
    String::from_utf8(bytes).map_err(|e| wrong(e.to_string()))
}

fn read_cases(path: &Path) -> Result<Vec<crate::target::InputCase>, CliError> {
    let text = read_text(path, limits::CASES_BYTES)?;
    Ok(cases::parse_cases(&text).map_err(|e| e.within(&path.display().to_string()))?)
}

fn read_exported(path: &Path) -> Result<Exported, CliError> {
    let container = opened(path, container::open(path))?;
    let artifact = assemble::assemble(&path.display().to_string(), &container, &assemble::Settings::default());
    artifact.exported.ok_or_else(|| {
        let kind = artifact.kind.title();
        CliError::usage(format!("--exported {}: it holds no exported program ({kind})", path.display()))
    })
}

/// A target file, or a target of the project file by name.
fn target(name: &str, project: Option<&Project>) -> Result<TargetTable, CliError> {
    if let Some(project) = project
        && let Some(table) = project.targets.get(name)
    {
        return Ok(table.clone().below(&project.folder));
    }
    let path = Path::new(name);
    if path.is_file() {
        let table = TargetTable::from_text(&read_text(path, limits::JSON_BYTES)?, path)?;
        return Ok(table.below(path.parent().unwrap_or(Path::new(""))));
    }
    match project {
        None => {
            Err(CliError::usage(format!("--target {name}: no such file, and no {} here or above", project::FILE_NAME)))
        }
        Some(project) => {
            let valid: Vec<&str> = project.targets.keys().map(String::as_str).collect();
            Err(UsageError::unknown_word("target", name, &valid).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, len: u64, cap: u64) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file.as_file().set_len(len).unwrap();
        read_text(file.path(), cap).map_err(|e| e.to_string())
    }

    #[test]
    fn files_of_cases_have_a_border() {
        // a file with holes; to read one that is not longer would take its length of memory
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(limits::CASES_BYTES + 1).unwrap();
        let refused = read_cases(file.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("more than the {} that", limits::CASES_BYTES)), "{refused}");
        assert_eq!(of("abc", 3, 3).as_deref(), Ok("abc"));
        assert!(of("abcd", 4, 3).unwrap_err().contains("4 bytes, more than the 3"));
    }

    /// A pipe states no length.
    #[cfg(target_os = "linux")]
    #[test]
    fn files_without_a_length_have_a_border() {
        let path = Path::new("/proc/self/status");
        let len = read_text(path, 1 << 20).unwrap().len() as u64;
        assert!(read_text(path, len / 2).unwrap_err().to_string().contains("more than"));
    }
}
