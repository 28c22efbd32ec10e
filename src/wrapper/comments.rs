//! The build commands that 2.4 and newer write as comments at the end (format reference, 5.11).

use super::blocks::{Block, Blocks};
use crate::limits;

/// One command, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildCommand {
    /// line it stands in, from 1
    pub line: usize,
    /// links, rather than compiles
    pub is_link: bool,
    /// program as called, `g++` or a path
    pub compiler: String,
    /// the source that it compiles, a path of the build host
    pub source: Option<String>,
    /// `USE_CUDA`, `_GLIBCXX_USE_CXX11_ABI=0`
    pub macros: Vec<String>,
    /// `c++17`
    pub standard: Option<String>,
    /// flags that choose instructions: `-march=native`, `-mavx2`
    pub isa_flags: Vec<String>,
    /// all other flags that change code or debug information: `-O1`, `-g1`, `-fno-omit-frame-pointer`
    pub code_flags: Vec<String>,
    /// include folders, paths of the build host
    pub includes: Vec<String>,
    /// libraries named for linking
    pub libraries: Vec<String>,
}

/// Words of one command that are looked at; the longest real one has about 150.
const WORDS: usize = 4_096;

/// Reads a command, unless it repeats the one before it or `commands` is long enough.
pub fn read(blocks: &Blocks, block: &Block, commands: &mut Vec<BuildCommand>) {
    // a model with many kernels repeats them for each part
    if commands.len() >= limits::NESTING {
        return;
    }
    let mut lines = blocks.lines(block);
    let Some(title) = lines.next() else { return };
    let Some(line) = lines.next() else { return };
    let Some(text) = line.text.strip_prefix("//") else { return };
    let mut command = parse(text);
    command.line = line.number;
    command.is_link = title.text.contains("Link");
    let is_same = |known: &BuildCommand| BuildCommand { line: command.line, ..known.clone() } == command;
    if !command.compiler.is_empty() && !commands.iter().any(is_same) {
        commands.push(command);
    }
}

fn parse(text: &str) -> BuildCommand {
    let mut words = text.split_whitespace().take(WORDS);
    let mut command = BuildCommand { compiler: words.next().unwrap_or_default().to_owned(), ..BuildCommand::default() };
    while let Some(word) = words.next() {
        let own = word.to_owned();
        match word.get(..2).unwrap_or(word) {
            "-D" | "/D" => {
                let value = word.get(2..).filter(|v| !v.is_empty()).or_else(|| words.next());
                command.macros.extend(value.map(str::to_owned));
            }
            "-I" | "/I" => command.includes.extend(word.get(2..).map(str::to_owned)),
            "-l" => command.libraries.extend(word.get(2..).map(str::to_owned)),
            "-m" | "-A" => command.isa_flags.push(own),
            "-s" if word.starts_with("-std=") => command.standard = word.get(5..).map(str::to_owned),
            "/s" if word.starts_with("/std:") => command.standard = word.get(5..).map(str::to_owned),
            "/a" if word.starts_with("/arch:") => command.isa_flags.push(own),
            "-O" | "-f" | "-g" | "/O" | "/E" => command.code_flags.push(own),
            "-L" | "-o" | "-W" | "-c" => {}
            _ if word.ends_with(".cpp") && !word.starts_with('-') && command.source.is_none() => {
                command.source = Some(own);
            }
            _ => {}
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_taken_apart() {
        let command = parse(
            " /opt/bin/g++ /b/x.wrapper.cpp -D TORCH_INDUCTOR_CPP_WRAPPER -D  USE_CUDA -D_GLIBCXX_USE_CXX11_ABI=0 -O1 -g1 -march=native -std=c++17 -I/t/include -c -o /b/x.o -lcuda",
        );
        assert_eq!(command.compiler, "/opt/bin/g++");
        assert_eq!(command.source.as_deref(), Some("/b/x.wrapper.cpp"));
        assert_eq!(command.macros, ["TORCH_INDUCTOR_CPP_WRAPPER", "USE_CUDA", "_GLIBCXX_USE_CXX11_ABI=0"]);
        assert_eq!(command.standard.as_deref(), Some("c++17"));
        assert_eq!(command.isa_flags, ["-march=native"]);
        assert_eq!(command.code_flags, ["-O1", "-g1"]);
        assert_eq!(command.libraries, ["cuda"]);
    }
}
