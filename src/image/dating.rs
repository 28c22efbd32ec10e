//! Which torch release compiled a library or package (format reference, section 10).
//!
//! Each [`Sign`] fits a set of releases; what all signs have in common is the answer. No artefact states its
//! release, and releases between two minor ones (nightlies) can carry signs of both: a sign that contradicts
//! stronger ones is told, not used.

mod signs;

use super::{Format, Image, SectionKind};
use crate::limits;
use crate::model::{CompiledBy, Dated, Evidence, Release, Witness};
use crate::target::release_tables::{self, NEWEST, RELEASES};
use signs::Sign;

/// A set of releases: bit n is `RELEASES[n]`, the bit behind them stands for all newer ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Releases(u16);

impl Releases {
    const ALL: Self = Self((1 << (RELEASES.len() + 1)) - 1);

    /// From a release to another; without an end also all that come.
    pub const fn between(first: (u16, u16), last: Option<(u16, u16)>) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < RELEASES.len() {
            #[expect(clippy::indexing_slicing, reason = "bounded by the loop, and evaluated at compile time")]
            let release = RELEASES[i];
            let begins = release.minor >= first.1;
            let goes_on = match last {
                Some(last) => release.minor <= last.1,
                None => true,
            };
            if begins && goes_on {
                bits |= 1 << i;
            }
            i += 1;
        }
        if last.is_none() {
            bits |= 1 << RELEASES.len();
        }
        Self(bits)
    }
    /// Releases of either set.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    fn since(first: Release) -> Self {
        Self::between((first.major, first.minor), None)
    }
    fn before(first: Release) -> Self {
        Self(Self::ALL.0 & !Self::since(first).0)
    }
    /// Lowest release, and highest unless newer ones than the tables know fit too.
    fn bounds(self) -> (Option<Release>, Option<Release>) {
        let has = |i: usize| self.0 >> i & 1 == 1;
        let mut fitting = (0..RELEASES.len()).filter(|i| has(*i)).filter_map(|i| RELEASES.get(i).copied());
        let lowest = fitting.next();
        let highest = fitting.next_back().or(lowest);
        (lowest.or_else(|| has(RELEASES.len()).then_some(NEWEST)), highest.filter(|_| !has(RELEASES.len())))
    }
}

/// Collects signs. Give the library first: its exports are the strongest.
#[derive(Debug, Clone)]
pub struct Dating {
    fitting: Releases,
    compiled_by: CompiledBy,
}

impl Default for Dating {
    fn default() -> Self {
        Self { fitting: Releases::ALL, compiled_by: CompiledBy::default() }
    }
}

impl Dating {
    /// Uses what a package, its metadata or its source shows.
    pub fn narrow_by(&mut self, dated: Dated) {
        let first = dated.min.map_or((2, 0), |min| (min.major, min.minor));
        let releases = Releases::between(first, dated.max.map(|max| (max.major, max.minor)));
        self.narrow(releases, dated.evidence);
    }

    fn narrow(&mut self, releases: Releases, mut evidence: Evidence) {
        let narrowed = Releases(self.fitting.0 & releases.0);
        if narrowed.0 == 0 {
            evidence.detail = format!("{} (contradicts the other signs: a nightly build?)", evidence.detail);
            self.compiled_by.evidence.push(evidence);
        } else if narrowed != self.fitting {
            self.fitting = narrowed;
            self.compiled_by.evidence.push(evidence);
        }
    }

    /// Uses every sign that a library shows, and names its C++ compiler.
    pub fn library(&mut self, image: &Image<'_>) {
        self.exports(image);
        self.imports(image);
        for (sign, source) in signs_of_texts(image).into_iter().chain(signs_of_tables(image)) {
            self.narrow(sign.releases, Evidence::new(source, sign.what));
        }
        self.compiled_by.cxx = compiler(image);
    }

    /// Every function of the C interface that is there bounds from below, every one that is not from above.
    fn exports(&mut self, image: &Image<'_>) {
        // only a container exports the rest
        if image.export("AOTInductorModelContainerRun").is_none() {
            return;
        }
        let optional = |name: &str| name.starts_with("AOTInductorModelRunMinimalArrayrefInterface");
        let newest = release_tables::exports().filter(|row| image.export(row.0).is_some()).max_by_key(|row| row.1);
        if let Some((name, release)) = newest {
            let what = format!("exports {name} (torch {release} and newer)");
            self.narrow(Releases::since(release), Evidence::new(Witness::Exports, what));
        }
        let missing = release_tables::exports().filter(|row| !optional(row.0) && image.export(row.0).is_none());
        if let Some((name, release)) = missing.min_by_key(|row| row.1) {
            let what = format!("does not export {name} (torch {release} and newer do)");
            self.narrow(Releases::before(release), Evidence::new(Witness::Exports, what));
        }
    }

    fn imports(&mut self, image: &Image<'_>) {
        let Ok(imports) = image.imports() else { return };
        let shims = imports.iter().filter_map(|i| Some((i.name, release_tables::shim(i.name)?)));
        if let Some((name, shim)) = shims.filter(|(_, s)| s.earlier.is_empty()).max_by_key(|(_, s)| s.first) {
            let what = format!("imports {name} (torch {} and newer have it)", shim.first);
            self.narrow(Releases::since(shim.first), Evidence::new(Witness::Imports, what));
        }
        if imports.iter().any(|i| super::imports::is_libtorch_cxx(i.name)) {
            self.narrow(signs::LEAKED_CXX.releases, Evidence::new(Witness::Imports, signs::LEAKED_CXX.what));
        }
    }

    /// The range, the compiler, and the signs that narrowed the range.
    pub fn finish(self) -> CompiledBy {
        let (torch_min, torch_max) = self.fitting.bounds();
        let nothing = self.fitting == Releases::ALL;
        CompiledBy { torch_min: torch_min.filter(|_| !nothing), torch_max, ..self.compiled_by }
    }
}

/// True when a text of the library's constants contains `needle`. Weights are not searched.
pub fn has_text(image: &Image<'_>, needle: &[u8]) -> bool {
    texts(image).iter().any(|bytes| memchr::memmem::find(bytes, needle).is_some())
}

/// The parts of a library that hold its text literals, weights left out.
pub fn texts<'a>(image: &Image<'a>) -> Vec<&'a [u8]> {
    const TABLES: &[&str] =
        &[".dyn", ".gnu", ".hash", ".rela", ".rel.", ".eh_frame", ".gcc_except", ".note", ".lrodata"];
    const NOT_TEXT: &[&str] =
        &["__unwind_info", "__eh_frame", "__gcc_except_tab", "__stubs", ".pdata", ".xdata", ".edata"];
    let holds_text = |s: &&super::Section<'_>| {
        s.kind == SectionKind::ReadOnlyData
            && !TABLES.iter().any(|t| s.name.starts_with(t))
            && !NOT_TEXT.contains(&s.name)
            && s.name != ".reloc"
    };
    // sections of a damaged file may overlap
    let mut budget = limits::TEXT_BYTES;
    let mut within_budget = |bytes: &&[u8]| {
        let rest = budget.checked_sub(bytes.len() as u64);
        budget = rest.unwrap_or(budget);
        rest.is_some()
    };
    let sections = image.sections().iter().filter(holds_text).filter_map(|s| image.section_bytes(s));
    let from_sections: Vec<_> = sections.filter(&mut within_budget).collect();
    if !from_sections.is_empty() {
        return from_sections;
    }
    let weights = super::weights::bounds(image);
    let mut parts = Vec::new();
    for segment in image.segments().iter().filter(|s| s.is_readable && !s.is_writable) {
        let Some(bytes) = image.bytes_from(segment.address, segment.file_size) else { continue };
        let within = |address: u64| usize::try_from(address.checked_sub(segment.address)?).ok();
        match weights.map(|(start, end)| (within(start), within(end))) {
            Some((Some(start), Some(end))) if start <= bytes.len() => {
                parts.extend(bytes.get(..start));
                parts.extend(bytes.get(end..));
            }
            _ => parts.push(bytes),
        }
    }
    parts.retain(within_budget);
    parts
}

fn signs_of_texts(image: &Image<'_>) -> Vec<(&'static Sign, Witness)> {
    let parts = texts(image);
    // one fast search each: an automaton of all would cost more to build than it saves
    let is_there = |text: &[u8]| {
        let finder = memchr::memmem::Finder::new(text);
        parts.iter().any(|part| finder.find(part).is_some())
    };
    let seen: Vec<_> = signs::TEXTS.iter().filter(|row| is_there(row.0)).collect();
    let mut found: Vec<_> = seen.iter().map(|row| (&row.1, Witness::Strings)).collect();
    let has_pattern = seen.iter().any(|row| row.0.starts_with(b"(cpu|cuda"));
    let is_model = image.export("AOTInductorModelContainerRun").is_some();
    if !has_pattern && is_model && parts.iter().map(|p| p.len()).sum::<usize>() > 0 {
        found.push((&signs::NO_DEVICE_PATTERN, Witness::Strings));
    }
    found
}

/// Signs of sections and symbols.
fn signs_of_tables(image: &Image<'_>) -> Vec<(&'static Sign, Witness)> {
    const LARGE: u64 = 0x1000_0000;
    let mut found = Vec::new();
    let is_x86_elf = image.format() == Format::Elf && image.architecture() == super::Architecture::X86_64;
    match image.section(".lrodata") {
        Some(section) if is_x86_elf && section.flags & LARGE == 0 => {
            // clang's assembler leaves the flag out in every release
            let is_clang = compiler(image).is_some_and(|c| c.starts_with("clang"));
            found.extend((!is_clang).then_some(&signs::SMALL_LRODATA));
        }
        Some(_) if is_x86_elf => found.push(&signs::LARGE_LRODATA),
        _ => {}
    }
    if image.section(".ldata").is_some() {
        found.push(&signs::LDATA);
    }
    if image.section(".debug_line").is_some_and(|s| s.size > 1024) {
        found.push(&signs::LINE_TABLES);
    }
    if image.format() == Format::Elf {
        if image.export("_binary_constants_bin_size").is_some() {
            found.push(&signs::BLOB_SIZE_SYMBOL);
        }
        let start = image.export("_binary_constants_bin_start").map(|s| s.address);
        if start.is_some_and(|a| a % 64 != 0) {
            found.push(&signs::UNALIGNED_BLOB);
        }
    }
    let constructor = |name: &str| name.starts_with("_ZN5torch12aot_inductor16AOTInductorModelC");
    let symbols = image.symbols().unwrap_or_default();
    let exports = image.exports().unwrap_or_default();
    if let Some(name) = exports.iter().chain(symbols).map(|s| s.name.as_ref()).find(|n| constructor(n)) {
        if name.contains("MaybeOwningAtenTensorHandle") {
            found.push(&signs::MAYBE_OWNING_HANDLES);
        } else if name.contains("RAIIAtenTensorHandle") {
            found.push(&signs::RAII_HANDLES);
        }
    }
    if symbols.iter().any(|s| s.name == "set_fast_math") {
        found.push(&signs::FAST_MATH);
    }
    if symbols.iter().any(|s| s.name.contains("check_input_0EPP16AtenTensorOpaque")) {
        found.push(&signs::CHECK_FUNCTIONS);
    }
    found.into_iter().map(|sign| (sign, Witness::Header)).collect()
}

/// `GCC 12.2.0`, `clang 14.0.6`: by the signature that compilers leave (ELF `.comment`; MinGW among the constants).
fn compiler(image: &Image<'_>) -> Option<String> {
    let mut lines: Vec<&str> = image.comments();
    if image.format() == Format::Pe {
        const SIGNATURE: &[u8] = b"GCC: (";
        for part in texts(image) {
            let found = memchr::memmem::find_iter(part, SIGNATURE).filter_map(|at| {
                let line = part.get(at..)?;
                std::str::from_utf8(line.get(..memchr::memchr(0, line).filter(|n| *n < 200)?)?).ok()
            });
            lines.extend(found);
        }
    }
    let clang = lines.iter().find_map(|l| l.split_once("clang version ")).map(|(_, rest)| first_word(rest));
    let gcc = lines.iter().filter_map(|l| l.strip_prefix("GCC: (")?.split_once(") ")).map(|(_, rest)| first_word(rest));
    // start files of the system may be older than the compiler
    let numbers = |v: &&str| -> Vec<u32> { v.split(['.', '-']).map_while(|p| p.parse().ok()).collect() };
    match clang {
        Some(version) => Some(format!("clang {version}")),
        None => gcc.max_by_key(numbers).map(|version| format!("GCC {version}")),
    }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Dated {
        let evidence = Evidence::new(Witness::Archive, "archive_version");
        Dated { min: Some(Release::new(2, 8)), max: None, evidence }
    }

    #[test]
    fn signs_intersect_and_contradictions_are_told() {
        let mut dating = Dating::default();
        dating.narrow_by(layout());
        for sign in [&signs::MAYBE_OWNING_HANDLES, &signs::FAST_MATH] {
            dating.narrow(sign.releases, Evidence::new(Witness::Header, sign.what));
        }
        let by = dating.finish();
        assert_eq!((by.torch_min, by.torch_max), (Some(Release::new(2, 8)), Some(Release::new(2, 14))));
        assert_eq!(by.evidence.len(), 3);
        assert!(by.evidence[2].detail.contains("contradicts"));
    }

    #[test]
    fn an_open_end_is_no_maximum() {
        let mut dating = Dating::default();
        dating.narrow_by(layout());
        dating.narrow(signs::RAII_HANDLES.releases, Evidence::new(Witness::Header, "handles"));
        let by = dating.finish();
        assert_eq!((by.torch_min, by.torch_max), (Some(Release::new(2, 15)), None));
        let by = Dating::default().finish();
        assert_eq!((by.torch_min, by.torch_max), (None, None));
    }

    #[test]
    fn texts_have_a_border() {
        use crate::image::elf_tests::{Row, object};
        let of = |size: u64| {
            let small = Row { kind: 1, flags: 2, offset: 64, size: 8, ..Row::default() };
            let large = Row { offset: 4096, size, ..small };
            let file = object(4096 + usize::try_from(size).unwrap(), &[], &[large, small]);
            let image = Image::open(crate::source::Region::whole(&file)).unwrap();
            texts(&image).iter().map(|part| part.len() as u64).sum::<u64>()
        };
        assert_eq!(of(limits::TEXT_BYTES - 8), limits::TEXT_BYTES);
        // a section that has no room is left out as a whole, those after it are not
        assert_eq!(of(limits::TEXT_BYTES), limits::TEXT_BYTES);
        assert_eq!(of(limits::TEXT_BYTES + 1), 8);
    }
}
