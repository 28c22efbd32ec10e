//! The registry of finding codes: each subject file's `CODES`, concatenated. Codes are an interface: never renamed.

use crate::report::Level;

/// A registered code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `subject-problem`, kebab-case
    pub id: &'static str,
    /// one line for the list
    pub summary: &'static str,
    /// the most that a failure counts; a check may say less for one finding
    pub level: Level,
    /// the long form
    pub page: Page,
}

/// The page of a code. Each part is one or more whole sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// what is compared with what
    pub compares: &'static str,
    /// what happens at run time when it does not hold
    pub matters: &'static str,
    /// which public reports and which torch sources it comes from
    pub reports: &'static str,
    /// what to do
    pub fix: &'static str,
}

/// Tables of the subject files.
const TABLES: &[&[Code]] = &[
    super::damage::CODES,
    super::conflicts::CODES,
    super::device::CODES,
    super::package::CODES,
    super::hazards::CODES,
    super::inputs::CODES,
    super::exported::CODES,
    super::gpu::CODES,
    super::kernel_files::CODES,
    super::constants::CODES,
    super::operators::CODES,
    super::cpu::CODES,
    super::libtorch::CODES,
    super::host::CODES,
    super::security::CODES,
    super::advisories::CODES,
    super::project::CODES,
];

/// All codes, in the order of their subjects.
pub fn all() -> impl Iterator<Item = &'static Code> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The code with this id.
pub fn find(id: &str) -> Option<&'static Code> {
    all().find(|code| code.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_kebab_case() {
        let mut seen = std::collections::BTreeSet::new();
        for code in all() {
            assert!(seen.insert(code.id), "{} is registered twice", code.id);
            let parts: Vec<&str> = code.id.split('-').collect();
            assert!(parts.len() >= 2, "{}: subject-problem", code.id);
            let plain = |p: &&str| !p.is_empty() && p.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
            assert!(parts.iter().all(plain), "{} is not kebab-case", code.id);
        }
    }

    #[test]
    fn every_page_is_complete() {
        for code in all() {
            let page = code.page;
            for text in [page.compares, page.matters, page.reports, page.fix] {
                assert!(text.len() > 20 && text.ends_with('.'), "{}: {text:?} is no sentence", code.id);
            }
            assert!(!code.summary.is_empty() && !code.summary.ends_with('.'), "{}: one line without a dot", code.id);
            assert!(code.summary.len() <= 100, "{}: one line", code.id);
        }
    }

    /// Reads the sources of the checks: a code in a finding that the registry does not know has no page.
    #[test]
    fn every_code_used_is_registered() {
        let mut files = vec![std::path::PathBuf::from("src/checks.rs")];
        let list =
            |dir: &std::path::Path| std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
        let top = list(std::path::Path::new("src/checks"));
        files.extend(top.iter().filter(|path| path.is_dir()).flat_map(|path| list(path)));
        files.extend(top);
        for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "rs")) {
            let text = std::fs::read_to_string(file).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            for call in ["Finding::new(", ".unknown(", ".undecided(", ".fail(", ".pass("] {
                for rest in text.split(call).skip(1) {
                    if let Some(code) = rest.trim_start().strip_prefix('"').and_then(|r| r.split('"').next()) {
                        assert!(find(code).is_some(), "{}: {code} is not registered", file.display());
                    }
                }
            }
        }
    }
}
