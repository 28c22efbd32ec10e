//! Compile and linker flags of source-only packages (format reference 3.5).

use super::json;
use crate::error::Result;
use serde::Deserialize;

/// `*_compile_flags.json` or `*_linker_flags.json`: what the official loader hands to the compiler at load time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BuildFlags {
    /// command of the compiler
    pub compiler: String,
    /// macros
    pub definitions: Vec<String>,
    /// folders of headers, on the compile host
    pub include_dirs: Vec<String>,
    /// options, written without their dash
    pub cflags: Vec<String>,
    /// linker options, written without their dash
    pub ldflags: Vec<String>,
    /// folders of libraries, on the compile host
    pub libraries_dirs: Vec<String>,
    /// libraries to link, without `lib` and ending
    pub libraries: Vec<String>,
    /// ready options
    pub passthrough_args: Vec<String>,
    /// true for this kind of build
    pub aot_mode: bool,
    /// true for the compile step
    pub compile_only: bool,
}

impl BuildFlags {
    /// Options as a command line has them, in file order.
    pub fn arguments(&self) -> impl Iterator<Item = String> {
        let dashed = self.cflags.iter().chain(&self.ldflags).map(|flag| format!("-{flag}"));
        let macros = self.definitions.iter().map(|name| format!("-D{}", name.trim()));
        let ready = self.passthrough_args.iter().flat_map(|args| args.split_whitespace().map(str::to_owned));
        dashed.chain(macros).chain(ready)
    }
    /// `c++20` of `std=c++20`.
    pub fn cxx_standard(&self) -> Option<&str> {
        self.cflags.iter().find_map(|flag| flag.strip_prefix("std="))
    }
    /// The C++ string ABI that the build asks for: false for the one before C++11.
    pub fn has_cxx11_abi(&self) -> Option<bool> {
        let value = self
            .cflags
            .iter()
            .chain(&self.definitions)
            .find_map(|flag| flag.split_once("_GLIBCXX_USE_CXX11_ABI=").map(|(_, value)| value))?;
        Some(value.trim() != "0")
    }
}

/// Reads one of the two files.
///
/// # Errors
/// Not JSON, or a field of another type.
pub fn read(text: &[u8]) -> Result<BuildFlags> {
    json::parse_as(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_arguments_again() {
        let text =
            br#"{"compiler": "g++", "definitions": [" A"], "cflags": ["O3", "std=c++17", "D_GLIBCXX_USE_CXX11_ABI=0"],
            "passthrough_args": ["", "-mavx2 -mfma"], "new_field": 1}"#;
        let got = read(text).unwrap();
        let arguments: Vec<String> = got.arguments().collect();
        assert_eq!(arguments, ["-O3", "-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0", "-DA", "-mavx2", "-mfma"]);
        assert_eq!((got.cxx_standard(), got.has_cxx11_abi()), (Some("c++17"), Some(false)));
        assert!(read(br#"{"cflags": 7}"#).is_err());
    }
}
