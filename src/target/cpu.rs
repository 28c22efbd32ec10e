//! CPUs as people name them, and what they can do. All names stand in `data/cpus.toml`, with their sources.

use super::UsageError;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// A CPU of the load configuration: a machine and its instruction set extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    /// as given
    pub name: String,
    /// `x86_64`, `aarch64`
    pub arch: String,
    /// extensions, lower-case as in /proc/cpuinfo, with all that they imply
    pub features: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    cpu: Vec<Row>,
    implies: BTreeMap<String, Vec<String>>,
    bare: BTreeMap<String, Bare>,
    declared: Vec<Declared>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    arch: String,
    #[serde(default)]
    also: Vec<String>,
    #[serde(default)]
    like: Option<String>,
    #[serde(default)]
    without: Vec<String>,
    features: String,
}

/// A word that stands for more than itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bare {
    like: String,
}

/// A word of `AOTI_CPU_ISA`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    word: String,
    arch: String,
    like: String,
    #[serde(default)]
    features: String,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/cpus.json"))).unwrap_or_else(|_| Table {
        cpu: Vec::new(),
        implies: BTreeMap::new(),
        bare: BTreeMap::new(),
        declared: Vec::new(),
    })
});

/// Words up to which a list is shown as it was given.
const NAMED: usize = 4;
/// Rows refer to rows; a chain longer than this would be a mistake in the file.
const LIKE_DEPTH: usize = 16;

impl Cpu {
    /// Reads names (`sapphirerapids`, `x86-64-v3`, `neoverse-v1`), extensions (`avx2`, `avx512`, `sve`) or a list
    /// of both with commas, as the target file of a machine has it. `native` is not read here
    /// ([`super::host`] knows this machine).
    ///
    /// # Errors
    /// Words that the table does not have, with those that resemble them; lists over two machines.
    pub fn from_text(text: &str) -> Result<Self, UsageError> {
        let mut arch: Option<String> = None;
        let mut features = BTreeSet::new();
        for word in text.split([',', '+', ' ']).map(str::trim).filter(|w| !w.is_empty()) {
            let word = normal(word);
            let (word_arch, word_features) = lookup(&word).ok_or_else(|| unknown(&word))?;
            if arch.get_or_insert_with(|| word_arch.clone()) != &word_arch {
                return Err(UsageError::new(format!(
                    "cpu `{text}`: extensions of two machines, {word_arch} among them"
                )));
            }
            features.extend(word_features);
        }
        let arch = arch.ok_or_else(|| UsageError::new("cpu: give a name or extensions, such as x86-64-v3 or avx2"))?;
        // a machine's own list is no name
        let count = text.split([',', '+', ' ']).filter(|w| !w.trim().is_empty()).count();
        let name = if count > NAMED { "the target's CPU".to_owned() } else { text.trim().to_owned() };
        Ok(Self { name, arch, features })
    }

    /// A machine whose extensions are known one by one, as /proc/cpuinfo lists them. Words without meaning for
    /// compiled code are left out.
    pub fn from_flags<'f>(name: &str, arch: &str, flags: impl IntoIterator<Item = &'f str>) -> Self {
        let known = known_extensions(arch);
        let features = flags.into_iter().filter(|f| known.contains(*f)).map(str::to_owned).collect();
        Self { name: name.to_owned(), arch: arch.to_owned(), features: with_implied(features) }
    }

    /// Extensions among `used` that this CPU lacks.
    pub fn lacks<'u>(&self, used: &'u [String]) -> Vec<&'u str> {
        used.iter().map(String::as_str).filter(|f| !self.features.contains(*f)).collect()
    }

    /// Names of the table, for completions and messages.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.cpu.iter().map(|row| row.name.as_str()).filter(|name| !name.ends_with("-rare"))
    }
}

/// What the metadata's `AOTI_CPU_ISA` promises: `AVX512 AVX512_VNNI AMX_TILE` (torch/_inductor/cpu_vec_isa.py).
/// Every extension that the words cover on that system (`macos`, `linux`) and machine. `None` for words that are
/// not known.
pub fn declared_extensions(declared: &str, os: &str, arch: &str) -> Option<BTreeSet<String>> {
    let mut features = match (os, arch) {
        // the oldest CPU that arm64 code for macOS meets; clang compiles for it without being told
        ("macos", "aarch64") => row_features("apple-m1", 0).map(|(_, f)| f).unwrap_or_default(),
        _ => baseline(arch),
    };
    for word in declared.split_whitespace().filter(|w| *w != "INVALID_VEC_ISA") {
        let row = TABLE.declared.iter().find(|row| row.word == word && row.arch == arch)?;
        features.extend(row_features(&row.like, 0).map(|(_, f)| f).unwrap_or_default());
        features.extend(words(&row.features));
    }
    Some(with_implied(features))
}

fn baseline(arch: &str) -> BTreeSet<String> {
    let name = if arch == "x86_64" { "x86-64" } else { "armv8-a" };
    row_features(name, 0).map(|(_, f)| f).unwrap_or_default()
}

fn normal(word: &str) -> String {
    word.to_ascii_lowercase()
}

fn words(list: &str) -> impl Iterator<Item = String> + '_ {
    list.split_whitespace().map(str::to_owned)
}

fn lookup(word: &str) -> Option<(String, BTreeSet<String>)> {
    if let Some((arch, features)) = row_features(word, 0) {
        return Some((arch, with_implied(features)));
    }
    if let Some(bare) = TABLE.bare.get(word) {
        return row_features(&bare.like, 0).map(|(arch, f)| (arch, with_implied(f)));
    }
    let arch = ["x86_64", "aarch64"].into_iter().find(|arch| known_extensions(arch).contains(word))?;
    let mut features = baseline(arch);
    features.insert(word.to_owned());
    Some((arch.to_owned(), with_implied(features)))
}

fn row_features(name: &str, depth: usize) -> Option<(String, BTreeSet<String>)> {
    if depth > LIKE_DEPTH {
        return None;
    }
    let row = TABLE.cpu.iter().find(|row| row.name == name || row.also.iter().any(|a| a == name))?;
    let mut features: BTreeSet<String> = match &row.like {
        Some(like) => row_features(like, depth + 1)?.1,
        None => BTreeSet::new(),
    };
    features.retain(|f| !row.without.contains(f));
    features.extend(words(&row.features));
    Some((row.arch.clone(), features))
}

/// Closes a set under "every CPU that has this also has that".
fn with_implied(mut features: BTreeSet<String>) -> BTreeSet<String> {
    loop {
        let implied: Vec<String> = features
            .iter()
            .filter_map(|f| TABLE.implies.get(f))
            .flatten()
            .filter(|f| !features.contains(*f))
            .cloned()
            .collect();
        if implied.is_empty() {
            return features;
        }
        features.extend(implied);
    }
}

/// Every extension that any row of that machine has.
fn known_extensions(arch: &str) -> BTreeSet<String> {
    let rows = TABLE.cpu.iter().filter(|row| row.arch == arch);
    rows.flat_map(|row| words(&row.features)).collect()
}

fn unknown(word: &str) -> UsageError {
    let features = known_extensions("x86_64").into_iter().chain(known_extensions("aarch64"));
    let all: Vec<String> = Cpu::names().map(str::to_owned).chain(features).chain(["native".to_owned()]).collect();
    let valid: Vec<&str> = all.iter().map(String::as_str).collect();
    let near = super::near_matches(word, &valid);
    let hint = if near.is_empty() { Cpu::names().collect::<Vec<_>>().join(", ") } else { near.join(", ") };
    UsageError::new(format!("cpu `{word}` is not known: did you mean {hint}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(name: &str, feature: &str) -> bool {
        Cpu::from_text(name).unwrap_or_else(|e| panic!("{e}")).features.contains(feature)
    }

    #[test]
    fn every_row_reads_and_every_reference_exists() {
        assert!(TABLE.cpu.len() > 30);
        for row in &TABLE.cpu {
            assert!(row_features(&row.name, 0).is_some(), "{}", row.name);
            assert!(row.without.iter().all(|f| known_extensions(&row.arch).contains(f)), "{}", row.name);
        }
        for (word, bare) in &TABLE.bare {
            assert!(row_features(&bare.like, 0).is_some(), "{word}");
        }
        for row in &TABLE.declared {
            assert!(row_features(&row.like, 0).is_some(), "{}", row.word);
        }
    }

    #[test]
    fn levels_and_models_are_nested_as_their_makers_say() {
        for (less, more) in [
            ("x86-64", "x86-64-v2"),
            ("x86-64-v2", "x86-64-v3"),
            ("x86-64-v3", "x86-64-v4"),
            ("x86-64-v3", "haswell"),
            ("haswell", "skylake-avx512"),
            ("x86-64-v4", "skylake-avx512"),
            ("skylake-avx512", "icelake-server"),
            ("icelake-server", "sapphirerapids"),
            ("x86-64-v3", "znver2"),
            ("znver2", "znver3"),
            ("x86-64-v4", "znver4"),
            ("znver4", "znver5"),
            ("neoverse-n1", "neoverse-v1"),
            ("neoverse-n1", "neoverse-n2"),
            ("apple-m1", "apple-m2"),
            ("avx2", "x86-64-v3"),
            ("avx512", "x86-64-v4"),
        ] {
            let (less, more) = (Cpu::from_text(less).unwrap(), Cpu::from_text(more).unwrap());
            let missing: Vec<_> = less.features.difference(&more.features).collect();
            assert!(missing.is_empty(), "{} lacks {missing:?} of {}", more.name, less.name);
        }
    }

    #[test]
    fn what_tells_models_apart() {
        assert!(!has("znver3", "avx512f") && has("znver4", "avx512_bf16") && !has("znver4", "avx512_fp16"));
        assert!(has("sapphirerapids", "amx_tile") && !has("icelake-server", "amx_tile"));
        assert!(has("neoverse-v1", "sve") && !has("neoverse-v1", "sve2") && has("neoverse-v2", "sve2"));
        assert!(!has("apple-m1", "i8mm") && has("apple-m2", "bf16") && !has("apple-m4", "sve"));
        assert!(has("Sapphirerapids", "avx2") && has("x86-64-v2,avx", "avx") && has("avx512vl", "avx2"));
        assert_eq!(Cpu::from_text("graviton3").unwrap().features, Cpu::from_text("neoverse-v1").unwrap().features);
    }

    #[test]
    fn wrong_words_name_near_ones() {
        let message = Cpu::from_text("saphirerapids").unwrap_err().to_string();
        assert!(message.contains("sapphirerapids"), "{message}");
        assert!(Cpu::from_text("avx2,sve").is_err() && Cpu::from_text("").is_err());
    }

    #[test]
    fn declared_words_cover_their_compile_flags() {
        let avx2 = declared_extensions("AVX2", "linux", "x86_64").unwrap();
        assert!(avx2.contains("fma") && avx2.contains("f16c") && avx2.contains("bmi2") && !avx2.contains("avx512f"));
        let amx = declared_extensions("AVX512 AVX512_VNNI AMX_TILE", "linux", "x86_64").unwrap();
        assert!(amx.contains("amx_int8") && amx.contains("avx512_vnni") && amx.contains("avx512vl"));
        assert_eq!(declared_extensions("AVX1024", "linux", "x86_64"), None);
        assert!(!declared_extensions("INVALID_VEC_ISA", "linux", "x86_64").unwrap().contains("avx"));
    }
}
