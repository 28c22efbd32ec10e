//! Stack frames and kernel-log lines: where in which library a process stood.

use regex::Regex;
use std::sync::LazyLock;

/// How a line states a place in a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// offset from the load address, as `x.so(+0x1234)` has it: equals the virtual address of usual libraries
    Relative(u64),
    /// instruction pointer and start of the mapping that holds it; the mapping is the executable segment
    /// (kernel messages up to 6.10)
    InMapping {
        /// instruction pointer minus start of the mapping
        delta: u64,
    },
    /// offset in the file (kernel messages from 6.11 on print it before the mapping)
    InFile(u64),
    /// only an absolute address, useless without the load address
    Absolute(u64),
    /// offset from the start of the named function
    InFunction(u64),
}

/// One line that states a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// line of the log, from 1
    pub line: u64,
    /// file name of the library, as written
    pub module: Option<String>,
    /// function, as written
    pub function: Option<String>,
    /// where in it
    pub place: Option<Place>,
    /// what the kernel says happened (`trap invalid opcode`, `segfault at 0`)
    pub event: Option<String>,
}

struct Forms {
    c10: Regex,
    kernel: Regex,
    glibc: Regex,
    gdb: Regex,
    macos: Regex,
}

static FORMS: LazyLock<Option<Forms>> = LazyLock::new(|| {
    Some(Forms {
        // c10/util/Backtrace.cpp
        c10: Regex::new(r"frame #\d+: (.+?) \+ (0x[0-9a-fA-F]+) \((0x[0-9a-fA-F]+) in (\S+)\)").ok()?,
        // arch/x86/kernel/traps.c, arch/x86/mm/fault.c: show_signal_msg; mm/util.c: print_vma_addr
        kernel: Regex::new(
            r"(trap invalid opcode|segfault at [0-9a-f]+|general protection fault|trap [a-z ]+?|unhandled signal \d+) .*?\bip[: ]([0-9a-f]+).*? in ([^\[\s]+)\[(?:([0-9a-f]+),)?([0-9a-f]+)\+([0-9a-f]+)\]",
        )
        .ok()?,
        // backtrace_symbols(3), AddressSanitizer
        glibc: Regex::new(r"([^\s(\[]+?\.(?:so|dylib|pyd|dll)[\w.]*)(?:\((\S*?)\+(0x[0-9a-fA-F]+)\)|\+(0x[0-9a-fA-F]+)\)?)").ok()?,
        gdb: Regex::new(r"^\s*#\d+\s+(?:(0x[0-9a-fA-F]+) in )?(\S.*?) ?\([^()]*(?:\([^()]*\)[^()]*)*\)(?: const)?(?: from (\S+)| at (\S+):(\d+))?\s*$").ok()?,
        macos: Regex::new(r"^\s*\d+\s+(\S+)\s+(0x[0-9a-fA-F]+) (\S.*?) \+ (\d+)").ok()?,
    })
});

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// The frame that a clean line states, if it is one.
pub fn parse(line: &str, number: u64) -> Option<Frame> {
    let forms = FORMS.as_ref()?;
    let frame = |module: Option<&str>, function: Option<&str>, place: Option<Place>| Frame {
        line: number,
        module: module.map(str::to_owned),
        function: function.filter(|f| !f.is_empty() && !f.starts_with("<unknown")).map(str::to_owned),
        place,
        event: None,
    };
    let text = |c: &regex::Captures<'_>, n: usize| c.get(n).map(|m| m.as_str().to_owned());
    if let Some(c) = forms.kernel.captures(line) {
        let ip = hex(c.get(2)?.as_str())?;
        let place = match c.get(4).and_then(|m| hex(m.as_str())) {
            Some(offset) => Place::InFile(offset),
            None => Place::InMapping { delta: ip.checked_sub(hex(c.get(5)?.as_str())?)? },
        };
        let module = text(&c, 3);
        return Some(Frame { event: text(&c, 1), ..frame(module.as_deref(), None, Some(place)) });
    }
    if let Some(c) = forms.c10.captures(line) {
        let (function, module) = (text(&c, 1), text(&c, 4));
        let known = function.as_deref().filter(|f| !f.starts_with("<unknown"));
        let offset = hex(c.get(2)?.as_str())?;
        // an unknown function's offset counts from the load address (dladdr has no symbol then)
        let place = if known.is_some() { Place::InFunction(offset) } else { Place::Relative(offset) };
        return Some(frame(module.as_deref(), known, Some(place)));
    }
    if let Some(c) = forms.glibc.captures(line) {
        let (module, function) = (text(&c, 1), text(&c, 2).filter(|f| !f.is_empty()));
        let offset = c.get(3).or_else(|| c.get(4)).and_then(|m| hex(m.as_str()))?;
        let place = if function.is_some() { Place::InFunction(offset) } else { Place::Relative(offset) };
        return Some(frame(module.as_deref(), function.as_deref(), Some(place)));
    }
    if let Some(c) = forms.gdb.captures(line) {
        let (address, function, module) = (text(&c, 1), text(&c, 2), text(&c, 3));
        let place = address.as_deref().and_then(hex).map(Place::Absolute);
        let function = function.filter(|f| f != "??");
        if function.is_some() || module.is_some() {
            return Some(frame(module.as_deref(), function.as_deref(), place));
        }
    }
    if let Some(c) = forms.macos.captures(line) {
        let (module, function) = (text(&c, 1), text(&c, 3));
        let offset = c.get(4)?.as_str().parse().ok()?;
        return Some(frame(module.as_deref(), function.as_deref(), Some(Place::InFunction(offset))));
    }
    None
}

impl Frame {
    /// File name of the library without its folder.
    pub fn module_name(&self) -> Option<&str> {
        self.module.as_deref().map(|m| m.rsplit(['/', '\\']).next().unwrap_or(m))
    }
    /// True for code of an AOTInductor library: its file name, or a function that only such libraries have.
    pub fn is_in_artifact(&self) -> bool {
        let by_module = self.module_name().is_some_and(|m| m.contains(".wrapper.") || m.ends_with(".wrapper.so"));
        let by_function = self.function.as_deref().is_some_and(|f| {
            f.contains("cpp_fused_") || f.contains("torch::aot_inductor::") || f.starts_with("AOTInductorModel")
        });
        by_module || by_function
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_frames() {
        let f = parse("frame #3: cpp_fused_index_0 + 0x746 (0x7f13d81f19b6 in /tmp/m/c.wrapper.so)", 1).unwrap();
        assert_eq!((f.function.as_deref(), f.module_name()), (Some("cpp_fused_index_0"), Some("c.wrapper.so")));
        assert_eq!(f.place, Some(Place::InFunction(0x746)));
        let f = parse(
            "traps: python3[1] trap invalid opcode ip:7f0000001234 sp:7ffc error:0 in c.wrapper.so[7f0000000000+5000]",
            1,
        )
        .unwrap();
        assert_eq!(f.place, Some(Place::InMapping { delta: 0x1234 }));
        assert_eq!(f.event.as_deref(), Some("trap invalid opcode"));
        let f = parse("python3[1]: segfault at 0 ip 00007f0000001234 sp 00007ffc error 4 in c.wrapper.so[6234,7f0000000000+5000] likely on CPU 1", 1).unwrap();
        assert_eq!((f.place, f.event.as_deref()), (Some(Place::InFile(0x6234)), Some("segfault at 0")));
        let f = parse("/srv/c.wrapper.so(+0x1a2b)[0x7f00001a2b]", 1).unwrap();
        assert_eq!((f.place, f.module_name()), (Some(Place::Relative(0x1a2b)), Some("c.wrapper.so")));
        let f = parse("#1  0x00007fffe1234567 in cpp_fused_add_0 () from /tmp/x/c.wrapper.so", 1).unwrap();
        assert_eq!((f.function.as_deref(), f.module_name()), (Some("cpp_fused_add_0"), Some("c.wrapper.so")));
        let f = parse("    #3 0x7f12 in foo (/srv/c.wrapper.so+0x77)", 1).unwrap();
        assert_eq!(f.module_name(), Some("c.wrapper.so"));
        let f = parse("# C  [c.wrapper.so+0x1a2b]  AOTInductorModelContainerRunSingleThreaded+0x1f4", 1).unwrap();
        assert_eq!((f.place, f.module_name()), (Some(Place::Relative(0x1a2b)), Some("c.wrapper.so")));
        assert!(parse("nothing here (at all)", 1).is_none());
    }
}
