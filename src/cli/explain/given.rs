//! What the words after `explain` are, told by content: a code, an artefact or a log.

use super::{CliError, codes};
use crate::explain::class::CLASSES;
use crate::explain::pattern;
use crate::target::{UsageError, near_matches};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// The words, sorted.
#[derive(Debug, Default)]
pub struct Given {
    /// pages of codes, of classes of failure and of error texts
    pub pages: Vec<String>,
    /// artefacts
    pub artifacts: Vec<PathBuf>,
    /// logs
    pub logs: Vec<PathBuf>,
}

impl Given {
    /// Sorts the words. A word that is no file has to be a code.
    pub fn sort(words: &[String]) -> Result<Self, CliError> {
        let mut given = Self::default();
        for word in words {
            let path = Path::new(word);
            if word == "-" {
                given.logs.push(path.to_owned());
            } else if path.exists() {
                if is_log(path)? { given.logs.push(path.to_owned()) } else { given.artifacts.push(path.to_owned()) }
            } else {
                given.pages.push(page(word)?);
            }
        }
        Ok(given)
    }
}

/// The page of a finding's code, a class (`C18`) or an error text (`chk-dim`).
fn page(word: &str) -> Result<String, CliError> {
    if let Ok(code) = codes::find(word) {
        return Ok(codes::page(code));
    }
    if let Some(class) = CLASSES.iter().find(|c| c.id.eq_ignore_ascii_case(word)) {
        let rows = pattern::table().filter(|p| p.class == class.id);
        let rows: Vec<String> =
            rows.map(|p| format!("  {}: {}", p.id, p.samples.first().unwrap_or(&p.regex))).collect();
        return Ok(format!("{}: {}\n\nTexts\n{}\n", class.id, class.name, rows.join("\n")));
    }
    if let Some(row) = pattern::table().find(|p| p.id == word) {
        let sentence = row.samples.first().and_then(|s| {
            let found = pattern::matches(s);
            found.iter().find(|m| m.pattern.id == row.id).map(|m| pattern::render(row.sentence, m))
        });
        let sentence = sentence.unwrap_or_default();
        let samples = row.samples.join("\n  ");
        return Ok(format!(
            "{} ({})\n\nTexts\n  {samples}\n\nMeaning\n  {sentence}\n\nHow to fix\n  {}\n",
            row.id, row.class, row.fix
        ));
    }
    let looks_like_a_path = word.contains(['/', '\\', '.']);
    if looks_like_a_path {
        return Err(CliError::usage(format!("`{word}` is no file")));
    }
    let mut valid: Vec<&str> = crate::checks::codes::all().map(|c| c.id).collect();
    valid.extend(pattern::table().map(|p| p.id));
    let near = near_matches(word, &valid);
    if near.is_empty() {
        return Err(CliError::usage(format!(
            "`{word}` is neither a file nor a code; `aoti-inspect codes` lists the codes"
        )));
    }
    Err(UsageError::unknown_word("code", word, &valid).into())
}

/// Text is a log, unless its name says that it should have been an artefact (a Git LFS pointer named model.pt2).
fn is_log(path: &Path) -> Result<bool, CliError> {
    if path.is_dir() {
        return Ok(false);
    }
    let mut head = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(4096).read_to_end(&mut head))
        .map_err(|e| CliError::usage(format!("{}: {e}", path.display())))?;
    let named = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
    if matches!(named.as_str(), "pt2" | "so" | "dylib" | "dll" | "pyd" | "pt" | "pte" | "ptd") {
        return Ok(false);
    }
    let is_wide = head.starts_with(&[0xFF, 0xFE]) || head.starts_with(&[0xFE, 0xFF]);
    let binary = [&b"PK\x03\x04"[..], b"PK\x05\x06", b"\x7fELF", b"MZ", b"\x80\x02}", b"\x80\x04"];
    let is_binary = binary.iter().any(|magic| head.starts_with(magic));
    let control = head.iter().filter(|b| **b < 9).count();
    // a log may hold some NULs, a binary file holds many
    Ok(is_wide || (!is_binary && control <= head.len() / 8))
}

/// True when something is piped or redirected into standard input (a service's /dev/null is not).
pub fn is_piped() -> bool {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        use std::os::unix::fs::FileTypeExt;
        let Ok(handle) = stdin.as_fd().try_clone_to_owned() else { return false };
        let kind = std::fs::File::from(handle).metadata().map(|m| m.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file() || kind.is_socket())
    }
    #[cfg(not(unix))]
    true
}
