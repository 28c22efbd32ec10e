//! Finds the functions of interest in a wrapper: they are located by pattern, since their order changed between
//! releases (format reference, 5.1).

use super::text::{Line, between, lines, word_at_end, word_at_start};
use crate::error::{Error, Result};
use crate::limits;

/// A function or class of the generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `AOTInductorModel<name>::AOTInductorModel<name>(`
    Constructor,
    /// `check_input_<i>` or `__check_inputs_outputs`
    Checks,
    /// `_check_aoti_runtime_check_inputs_env`
    Gate,
    /// `run_impl`, and the body behind it in minimal-arrayref builds
    Run,
    /// `_const_run_impl`: kernels of run-time constant folding
    ConstRun,
    /// `AOTInductorModelKernels`
    KernelsClass,
    /// `call_<kernel>`, a GPU launch helper (2.7+)
    LaunchHelper(String),
    /// declaration or body of a CPU kernel
    CpuKernel(String),
    /// `get_<name>_handle`: a Metal kernel's function (2.9+)
    MetalHandle(String),
    /// two lines of comment: `Compile cmd` or `Link cmd`
    BuildCommand,
}

/// Where a block stands.
#[derive(Debug, Clone)]
pub struct Block {
    /// what it is
    pub kind: Kind,
    /// byte offset of its first line
    pub start: usize,
    /// byte offset behind its last line
    pub end: usize,
    /// number of its first line, from 1
    pub first_line: usize,
}

/// A wrapper source cut into blocks.
#[derive(Debug)]
pub struct Blocks<'a> {
    source: &'a str,
    /// white space that every line begins with in a dump
    indent: &'a str,
    /// byte offset behind the pasted runtime interface
    pub body: usize,
    /// in file order
    pub list: Vec<Block>,
}

impl<'a> Blocks<'a> {
    /// Cuts `source` up.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Limit`] for more than two blocks for each of [`limits::KERNELS`]: what stands behind them
    /// would pass for not being there.
    pub fn split(source: &'a str) -> Result<Self> {
        // the pasted interface has functions and messages that look like generated ones
        let body = memchr::memmem::rfind(source.as_bytes(), b"} // extern \"C\"").unwrap_or(0);
        let indent = dump_indent(source);
        let mut list: Vec<Block> = Vec::new();
        let mut open: Option<Block> = None;
        for line in lines(source, body, indent) {
            let end = line.offset.saturating_add(line.text.len()).saturating_add(1).min(source.len());
            if let Some(mut block) = open.take() {
                block.end = end;
                if ends(&block, &line) {
                    list.push(block);
                } else {
                    open = Some(block);
                }
                continue;
            }
            if let Some(kind) = begins(&line) {
                let most = limits::KERNELS.saturating_mul(2);
                if list.len() >= most {
                    return Err(Error::limit(format!("more than {most} functions and kernels")));
                }
                let block = Block { kind, start: line.offset, end, first_line: line.number };
                if ends_at_once(&block, &line) {
                    list.push(block);
                } else {
                    open = Some(block);
                }
            }
        }
        list.extend(open);
        Ok(Self { source, indent, body, list })
    }

    /// The lines of a block.
    pub fn lines(&self, block: &Block) -> impl Iterator<Item = Line<'a>> + use<'a> {
        let text = self.source.get(..block.end).unwrap_or(self.source);
        let first = block.first_line;
        // numbering restarts at the block, so that many blocks cost no recount of the file
        let before = block.start;
        let rest = text.get(before..).unwrap_or_default();
        lines(rest, 0, self.indent).map(move |line| Line {
            number: line.number.saturating_add(first).saturating_sub(1),
            offset: line.offset.saturating_add(before),
            text: line.text,
        })
    }

    /// The text from byte `offset` on.
    pub fn text_from(&self, offset: usize) -> &'a str {
        self.source.get(offset..).unwrap_or_default()
    }

    /// The generated part: all behind the pasted interface.
    pub fn generated(&self) -> &'a str {
        self.text_from(self.body)
    }

    /// The pasted interface and the includes before it.
    pub fn head(&self) -> &'a str {
        self.source.get(..self.body).unwrap_or_default()
    }

    /// The line that byte `offset` stands in, from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        let before = self.source.as_bytes().get(..offset).unwrap_or_default();
        memchr::memchr_iter(b'\n', before).count().saturating_add(1)
    }
}

/// The white space before the constructor: text copied out of a log has a tab before each line.
fn dump_indent(source: &str) -> &str {
    let Some(at) = memchr::memmem::find(source.as_bytes(), b"AOTInductorModel::AOTInductorModel(") else { return "" };
    let line_start = source.get(..at).and_then(|head| head.rfind('\n')).map_or(0, |nl| nl.saturating_add(1));
    source.get(line_start..at).filter(|s| s.chars().all(|c| c == ' ' || c == '\t')).unwrap_or_default()
}

/// What a line in column 0 opens.
fn begins(line: &Line) -> Option<Kind> {
    let text = line.text;
    match text.as_bytes().first()? {
        b' ' | b'\t' | b'#' | b'{' | b'}' => None,
        b'/' => text
            .starts_with("// Compile cmd")
            .then_some(Kind::BuildCommand)
            .or_else(|| text.starts_with("// Link cmd").then_some(Kind::BuildCommand)),
        b'e' if text.starts_with("extern \"C\"") && text.contains("void") => {
            text.split_once('(').map(|(head, _)| Kind::CpuKernel(word_at_end(head).to_owned()))
        }
        b'c' if text.starts_with("class AOTInductorModelKernels") => Some(Kind::KernelsClass),
        _ => function(text),
    }
}

fn function(text: &str) -> Option<Kind> {
    if let Some(class) = text.strip_prefix("AOTInductorModel") {
        let (name, rest) = class.split_once("::AOTInductorModel")?;
        return (word_at_start(rest) == name).then_some(Kind::Constructor);
    }
    if let Some(rest) = text.strip_prefix("AOTIMetalKernelFunctionHandle get_") {
        return rest.split_once("_handle()").map(|(name, _)| Kind::MetalHandle(name.to_owned()));
    }
    if !text.contains('(') {
        return None;
    }
    if text.contains("::run_impl(") || text.contains("run_impl_minimal_arrayref_interface<") {
        return Some(Kind::Run);
    }
    if text.contains("::_const_run_impl(") {
        return Some(Kind::ConstRun);
    }
    if text.contains("_check_aoti_runtime_check_inputs_env()") {
        return Some(Kind::Gate);
    }
    if text.contains(" __check_inputs_outputs(") || text.contains(" check_input_") {
        return text.contains("static void").then_some(Kind::Checks);
    }
    let kernel = between(text, " void call_", "(")?;
    Some(Kind::LaunchHelper(kernel.to_owned()))
}

/// A declaration on one line.
fn ends_at_once(block: &Block, line: &Line) -> bool {
    matches!(block.kind, Kind::CpuKernel(_) | Kind::LaunchHelper(_) | Kind::Checks | Kind::Run | Kind::Gate)
        && line.text.trim_end().ends_with(");")
}

/// The last line of an open block.
fn ends(block: &Block, line: &Line) -> bool {
    let text = line.text.trim_end();
    match block.kind {
        Kind::BuildCommand => true,
        Kind::KernelsClass => text == "};",
        // a declaration over several lines
        Kind::CpuKernel(_) if text.ends_with(");") && !text.contains('=') && !text.contains("CHECK") => {
            text.starts_with(' ') && !text.trim_start().contains('(')
        }
        _ => text == "}" || text.starts_with("} //") || text == ") {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "int x;\n} // extern \"C\"\n\
extern \"C\"  void  cpp_fused_a_0(const float* in_ptr0,\n                       float* out_ptr0);\n\
extern \"C\" void cpp_fused_b_1(float* out_ptr0)\n{\n    f(x);\n}\n\
AOTInductorModelmlp::AOTInductorModelmlp(std::shared_ptr<ConstantMap> m)\n    : AOTInductorModelBase(1, 1, 1) {\n}\n\
void AOTInductorModelmlp::_const_run_impl(\n    int a\n) {}\n\
void AOTInductorModelmlp::run_impl(\n    int a\n) {\n__check_inputs_outputs(a);\n    f();\n} // AOTInductorModel::run_impl\n\
// Compile cmd\n// g++ a\n";

    #[test]
    fn blocks_are_found_in_any_order() {
        let blocks = Blocks::split(SOURCE).unwrap();
        let found: Vec<_> = blocks.list.iter().map(|b| (b.kind.clone(), b.first_line)).collect();
        assert_eq!(
            found,
            [
                (Kind::CpuKernel("cpp_fused_a_0".into()), 3),
                (Kind::CpuKernel("cpp_fused_b_1".into()), 5),
                (Kind::Constructor, 9),
                (Kind::ConstRun, 12),
                (Kind::Run, 15),
                (Kind::BuildCommand, 21),
            ]
        );
        let run = blocks.list.iter().find(|b| b.kind == Kind::Run).map(|b| blocks.lines(b).count());
        assert_eq!(run, Some(6));
    }

    #[test]
    fn a_dump_with_tabs_and_crlf_is_read() {
        let dump: String = SOURCE.lines().map(|l| format!("\t{l}\r\n")).collect();
        // the constructor of a plain class name gives the indentation
        let dump = dump.replace("AOTInductorModelmlp", "AOTInductorModel");
        let count = |source: &str| Blocks::split(source).unwrap().list.len();
        assert_eq!(count(&dump), count(SOURCE));
    }

    #[test]
    fn blocks_have_a_border() {
        let of = |count: usize| Blocks::split(&"// Link cmd\n\n".repeat(count)).map(|blocks| blocks.list.len());
        let most = 2 * limits::KERNELS;
        assert_eq!(of(most).unwrap(), most);
        assert!(of(most + 1).unwrap_err().message().contains("more than 131072 functions and kernels"));
    }
}
