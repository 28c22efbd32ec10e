//! From names to roles: the root folder, the model folders, and which files of a folder belong together
//! (format reference 1.2, 1.3 and 2).

use super::MemberId;
use crate::model::Role;
use std::collections::BTreeMap;

/// One folder below `data/aotinductor/`, a bare library with its siblings, or a model folder given alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelFolder {
    /// folder name; `model` where there is none
    pub name: String,
    /// the library that the loader opens
    pub library: Option<MemberId>,
    /// further libraries: Triton-CPU launchers and kernels (2.13+), a second build for another C++ runtime
    pub other_libraries: Vec<MemberId>,
    /// generated wrapper source that belongs to the library by its stem, or is the only one
    pub wrapper: Option<MemberId>,
    /// generated kernel source
    pub kernel_source: Option<MemberId>,
    /// wrappers that belong to no library here
    pub unpaired_sources: Vec<MemberId>,
    /// metadata JSON, the copy first that the official loader reads
    pub metadata: Vec<MemberId>,
    /// extern kernel nodes
    pub extern_nodes: Option<MemberId>,
    /// GPU kernel files
    pub kernels: Vec<MemberId>,
    /// `*.blob`: the official loader maps the last one
    pub blobs: Vec<MemberId>,
    /// weights that a source build appends (`*_serialized_weights.bin`)
    pub serialized_weights: Option<MemberId>,
    /// object files of a source build
    pub objects: Vec<MemberId>,
    /// names of weights pickled under `data/weights`
    pub weights_config: Option<MemberId>,
    /// torchbind objects
    pub custom_objs_config: Option<MemberId>,
    /// provenance of kernels
    pub kernel_information: Option<MemberId>,
    /// compile flags of a source build
    pub compile_flags: Option<MemberId>,
    /// linker flags of a source build
    pub linker_flags: Option<MemberId>,
    /// header of a standalone package
    pub header: Option<MemberId>,
    /// `CMakeLists.txt`, `script.ld`, `Makefile`, `build_package.py`
    pub build_files: Vec<MemberId>,
    /// files lie directly in `data/aotinductor/` (2.5)
    pub is_flat: bool,
}

impl ModelFolder {
    /// All files of the folder that have a part in the model.
    pub fn files(&self) -> impl Iterator<Item = MemberId> + '_ {
        let single = [
            self.library,
            self.wrapper,
            self.kernel_source,
            self.extern_nodes,
            self.serialized_weights,
            self.weights_config,
            self.custom_objs_config,
            self.kernel_information,
            self.compile_flags,
            self.linker_flags,
            self.header,
        ];
        let lists = [
            &self.other_libraries,
            &self.unpaired_sources,
            &self.metadata,
            &self.kernels,
            &self.blobs,
            &self.objects,
            &self.build_files,
        ];
        single.into_iter().flatten().chain(lists.into_iter().flatten().copied())
    }
}

/// What a file of a model folder is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Library,
    Wrapper,
    KernelSource,
    Metadata,
    ExternNodes,
    Kernel,
    Blob,
    SerializedWeights,
    Object,
    WeightsConfig,
    CustomObjsConfig,
    KernelInformation,
    CompileFlags,
    LinkerFlags,
    Header,
    BuildFile,
}

impl Part {
    fn role(self) -> Role {
        match self {
            Self::Library => Role::Library,
            Self::Wrapper => Role::Wrapper,
            Self::KernelSource => Role::KernelSource,
            Self::Metadata => Role::Metadata,
            Self::ExternNodes => Role::ExternNodes,
            Self::Kernel => Role::Kernel,
            Self::Blob | Self::SerializedWeights | Self::WeightsConfig => Role::Weights,
            _ => Role::Other,
        }
    }
}

/// Whole names, then endings; the first match counts. Format reference 2.1.
const WHOLE: &[(&str, Part)] = &[
    ("weights_config.json", Part::WeightsConfig),
    ("custom_objs_config.json", Part::CustomObjsConfig),
    ("kernel_information.json", Part::KernelInformation),
    ("CMakeLists.txt", Part::BuildFile),
    ("script.ld", Part::BuildFile),
    ("Makefile", Part::BuildFile),
    ("build_package.py", Part::BuildFile),
];
const ENDINGS: &[(&str, Part)] = &[
    ("_metadata.json", Part::Metadata),
    ("_compile_flags.json", Part::CompileFlags),
    ("_linker_flags.json", Part::LinkerFlags),
    ("_serialized_weights.bin", Part::SerializedWeights),
    (".kernel.cpp", Part::KernelSource),
    (".cpp", Part::Wrapper),
    (".so", Part::Library),
    (".pyd", Part::Library),
    (".dll", Part::Library),
    (".dylib", Part::Library),
    (".cubin", Part::Kernel),
    (".fatbin", Part::Kernel),
    (".ptx", Part::Kernel),
    (".hsaco", Part::Kernel),
    (".spv", Part::Kernel),
    (".zebin", Part::Kernel),
    (".metallib", Part::Kernel),
    (".blob", Part::Blob),
    (".o", Part::Object),
    (".json", Part::ExternNodes),
    (".h", Part::Header),
];

fn part_of(file: &str) -> Option<Part> {
    let whole = WHOLE.iter().find(|(name, _)| *name == file);
    whole.or_else(|| ENDINGS.iter().find(|(ending, _)| file.ends_with(ending))).map(|(_, part)| *part)
}

/// True for a base name that a kernel file may have: what a library asks for is opened only under such a name.
pub(super) fn is_kernel_file(base_name: &str) -> bool {
    part_of(base_name) == Some(Part::Kernel)
}

/// True for a base name that shows a model folder given without the folders above it.
pub(super) fn marks_model_folder(base_name: &str) -> bool {
    [".wrapper.so", ".wrapper.pyd", ".wrapper.cpp", ".wrapper_metadata.json", ".kernel_metadata.json"]
        .iter()
        .any(|ending| base_name.ends_with(ending))
}

const MODELS_BELOW: &str = "data/aotinductor/";

/// A package's layout.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub root: String,
    /// one per member
    pub roles: Vec<Role>,
    pub models: Vec<ModelFolder>,
    /// `models/<name>.json` and the older flat form
    pub exported: Vec<MemberId>,
    pub has_archive_format: bool,
    /// `archive_version` (2.8+) or `version` (up to 2.7), and whether it is the new one
    pub version: Option<(MemberId, bool)>,
    /// something lies below `data/aotinductor/`
    pub has_model_folder: bool,
    /// what is ambiguous, with the member it is about
    pub remarks: Vec<(Option<MemberId>, String)>,
}

/// Files that lie directly in the root and tell where it is, strongest first.
const ROOT_MARKS: &[&str] =
    &[MODELS_BELOW, "archive_format", "models/", "serialized_exported_program.json", "data.pkl", "constants.pkl"];

/// What precedes a mark in the first name that has it, at most one folder; empty where there is none.
fn find_root(names: &[String]) -> String {
    for mark in ROOT_MARKS {
        for name in names {
            let rest_is_mark = |rest: &str| if mark.ends_with('/') { rest.starts_with(mark) } else { rest == *mark };
            if rest_is_mark(name) {
                return String::new();
            }
            if let Some((root, rest)) = name.split_once('/')
                && !root.is_empty()
                && root != ".."
                && rest_is_mark(rest)
            {
                return root.to_owned();
            }
        }
    }
    String::new()
}

/// Sorts the members of a package. `names` use `/`; `is_safe` is false for names with `..` and the like, which belong to
/// nothing.
pub(super) fn lay_out(names: &[String], is_safe: &dyn Fn(usize) -> bool) -> Layout {
    let root = find_root(names);
    let prefix = if root.is_empty() { String::new() } else { format!("{root}/") };
    let mut layout = Layout { roles: vec![Role::Extra; names.len()], ..Layout::default() };
    let mut folders: BTreeMap<&str, Vec<(MemberId, &str, Part)>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let id = MemberId(index);
        let Some(inner) = name.strip_prefix(&prefix) else {
            set_role(&mut layout.roles, index, outside_role(name));
            continue;
        };
        if !is_safe(index) {
            set_role(&mut layout.roles, index, Role::Other);
            continue;
        }
        if let Some(below) = inner.strip_prefix(MODELS_BELOW) {
            layout.has_model_folder = true;
            let (folder, file) = below.rsplit_once('/').unwrap_or(("", below));
            if let Some(part) = part_of(file) {
                if !folders.contains_key(folder) {
                    order.push(folder);
                }
                folders.entry(folder).or_default().push((id, file, part));
                continue;
            }
        }
        match inner {
            "archive_format" => layout.has_archive_format = true,
            "archive_version" => layout.version = Some((id, true)),
            "version" if layout.version.is_none() => layout.version = Some((id, false)),
            _ => {}
        }
        if is_exported_program(inner) {
            layout.exported.push(id);
        }
        set_role(&mut layout.roles, index, outside_role(inner));
    }
    for folder in order {
        let Some(files) = folders.get(folder) else { continue };
        let makes_model =
            files.iter().any(|(_, _, part)| matches!(part, Part::Library | Part::Wrapper | Part::Metadata));
        if !makes_model {
            continue;
        }
        for (id, file, part) in files {
            let role = if file.ends_with(".weights.o") { Role::Weights } else { part.role() };
            set_role(&mut layout.roles, id.0, role);
        }
        let models = pair(folder, files, &mut layout.remarks);
        layout.models.extend(models);
    }
    layout.root = root;
    layout
}

/// A model folder given alone: all files lie in one folder.
pub(super) fn lay_out_folder(names: &[String]) -> Layout {
    let mut layout = Layout { roles: vec![Role::Extra; names.len()], ..Layout::default() };
    let mut files = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if let Some(part) = part_of(name).filter(|_| !name.contains('/')) {
            set_role(&mut layout.roles, index, part.role());
            files.push((MemberId(index), name.as_str(), part));
        }
    }
    layout.models = pair("", &files, &mut layout.remarks);
    for model in &mut layout.models {
        model.is_flat = false;
    }
    layout
}

fn set_role(roles: &mut [Role], index: usize, role: Role) {
    if let Some(slot) = roles.get_mut(index) {
        *slot = role;
    }
}

fn is_exported_program(inner: &str) -> bool {
    inner == "serialized_exported_program.json"
        || inner.strip_prefix("models/").is_some_and(|rest| rest.ends_with(".json") && !rest.contains('/'))
}

/// Role of a member that lies in no model folder; `inner` is its name without the root.
fn outside_role(inner: &str) -> Role {
    const OTHERS: &[&str] = &["archive_format", "archive_version", "version", "byteorder"];
    if OTHERS.contains(&inner) || inner.starts_with(".data/") || inner.ends_with('/') {
        return Role::Other;
    }
    if inner.starts_with("data/weights/") {
        return Role::Weights;
    }
    if is_exported_program(inner) || inner.starts_with("data/") {
        return Role::Other;
    }
    let file = inner.rsplit('/').next().unwrap_or(inner);
    if part_of(file) == Some(Part::Library) { Role::CustomOpLibrary } else { Role::Extra }
}

/// `c….wrapper` of `c….wrapper.so`, `c…` of `c….so`.
fn stem(file: &str) -> &str {
    let ending = ENDINGS.iter().find(|(ending, _)| file.ends_with(ending)).map_or("", |(ending, _)| *ending);
    file.strip_suffix(ending).unwrap_or(file)
}

type File<'a> = (MemberId, &'a str, Part);

/// Finds out which files of one folder belong to which library. Rules of format reference 2.1: the stem of the library is
/// the key; a role with one file only goes without it; several wrapper libraries are models of their own.
fn pair(folder: &str, files: &[File<'_>], remarks: &mut Vec<(Option<MemberId>, String)>) -> Vec<ModelFolder> {
    let of = |part: Part| files.iter().filter(move |f| f.2 == part);
    let wrapper_libraries: Vec<&File<'_>> = of(Part::Library).filter(|f| stem(f.1).ends_with(".wrapper")).collect();
    let base = ModelFolder {
        name: if folder.is_empty() { "model".to_owned() } else { folder.to_owned() },
        is_flat: folder.is_empty(),
        ..ModelFolder::default()
    };
    if wrapper_libraries.len() > 1 {
        let names: Vec<&str> = wrapper_libraries.iter().map(|f| f.1).collect();
        remarks.push((
            wrapper_libraries.last().map(|f| f.0),
            format!(
                "{} wrapper libraries in one folder ({}): torch 2.13+ refuses to load it, earlier ones take the last",
                names.len(),
                names.join(", ")
            ),
        ));
        return wrapper_libraries
            .into_iter()
            .map(|library| {
                let name = format!("{}/{}", base.name, stem(library.1));
                fill(ModelFolder { name, ..base.clone() }, Some(library), true, files, remarks)
            })
            .collect();
    }
    // 2.6 has no `.wrapper` in the name: there the loader takes the last library
    let library = wrapper_libraries.first().copied().or_else(|| {
        let matches = |f: &&File<'_>| of(Part::Wrapper).any(|w| stem(w.1) == stem(f.1));
        of(Part::Library).rfind(matches).or_else(|| of(Part::Library).next_back())
    });
    vec![fill(base, library, false, files, remarks)]
}

fn fill(
    mut model: ModelFolder,
    library: Option<&File<'_>>,
    has_rivals: bool,
    files: &[File<'_>],
    remarks: &mut Vec<(Option<MemberId>, String)>,
) -> ModelFolder {
    let of = |part: Part| files.iter().filter(move |f| f.2 == part);
    let only = |part: Part| {
        let mut all = of(part);
        all.next().filter(|_| all.next().is_none() && !has_rivals)
    };
    let ids = |part: Part| of(part).map(|f| f.0).collect::<Vec<_>>();
    model.library = library.map(|f| f.0);
    model.other_libraries = of(Part::Library).map(|f| f.0).filter(|id| Some(*id) != model.library).collect();
    let key = library.map(|f| stem(f.1));
    let by_stem =
        |part: Part, ending: &str| key.and_then(|key| of(part).find(|f| f.1.strip_suffix(ending) == Some(key)));
    let wrapper = by_stem(Part::Wrapper, ".cpp").or_else(|| only(Part::Wrapper));
    model.wrapper = wrapper.map(|f| f.0);
    model.unpaired_sources = ids(Part::Wrapper).into_iter().filter(|id| Some(*id) != model.wrapper).collect();
    if let (None, false, false) = (model.wrapper, model.unpaired_sources.is_empty(), has_rivals) {
        let message = format!("{} wrapper sources, and none has the library's stem", model.unpaired_sources.len());
        remarks.push((model.unpaired_sources.first().copied(), format!("{message}: none is believed")));
    }
    model.kernel_source = only(Part::KernelSource).map(|f| f.0);
    let wrapper_stem = wrapper.map(|f| stem(f.1));
    let extern_nodes = |f: &&File<'_>| Some(stem(f.1)) == key || Some(stem(f.1)) == wrapper_stem;
    model.extern_nodes = of(Part::ExternNodes).find(extern_nodes).or_else(|| only(Part::ExternNodes)).map(|f| f.0);
    model.metadata = metadata_order(key, has_rivals, files);
    model.kernels = ids(Part::Kernel);
    model.blobs = match by_stem(Part::Blob, "_weights.blob") {
        Some(blob) if has_rivals => vec![blob.0],
        _ => ids(Part::Blob),
    };
    model.serialized_weights = only(Part::SerializedWeights).map(|f| f.0);
    model.objects = ids(Part::Object);
    model.weights_config = only(Part::WeightsConfig).map(|f| f.0);
    model.custom_objs_config = only(Part::CustomObjsConfig).map(|f| f.0);
    model.kernel_information = only(Part::KernelInformation).map(|f| f.0);
    model.compile_flags = only(Part::CompileFlags).map(|f| f.0);
    model.linker_flags = only(Part::LinkerFlags).map(|f| f.0);
    model.header = only(Part::Header).map(|f| f.0);
    model.build_files = ids(Part::BuildFile);
    model
}

/// The copy of the metadata that the official loader reads comes first: the stem of the last `.cpp` of the folder, which
/// since 2.7 is the kernel source; without any `.cpp` the stem of the library (format reference 2.3).
fn metadata_order(key: Option<&str>, has_rivals: bool, files: &[File<'_>]) -> Vec<MemberId> {
    let last_source = files.iter().rfind(|f| matches!(f.2, Part::Wrapper | Part::KernelSource)).map(|f| {
        // `stem` cuts the whole ending `.kernel.cpp`, the loader only the last one
        f.1.strip_suffix(".cpp").unwrap_or(f.1)
    });
    let rank = |f: &File<'_>| {
        let stem = f.1.strip_suffix("_metadata.json");
        match stem {
            Some(stem) if !has_rivals && Some(stem) == last_source => 0,
            Some(stem) if Some(stem) == key => 1,
            _ => 2,
        }
    };
    let mut found: Vec<&File<'_>> = files.iter().filter(|f| f.2 == Part::Metadata).collect();
    if has_rivals {
        found.retain(|f| rank(f) == 1);
    }
    found.sort_by_key(|f| rank(f));
    found.into_iter().map(|f| f.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(names: &[&str]) -> Layout {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        lay_out(&names, &|_| true)
    }

    #[test]
    fn finds_the_root_wherever_members_were_appended() {
        assert_eq!(layout(&["extra/a.json", "m/data/aotinductor/model/x.wrapper.so"]).root, "m");
        assert_eq!(layout(&["version", "data/aotinductor/model/x.so"]).root, "");
        assert_eq!(layout(&["r/archive_format", "r/extra/a"]).root, "r");
        assert_eq!(layout(&["a/b/data/aotinductor/model/x.so"]).root, "");
        assert_eq!(layout(&["../data/aotinductor/model/x.so"]).root, "");
    }

    #[test]
    fn appended_libraries_are_custom_operators() {
        let got = layout(&["m/data/aotinductor/model/x.wrapper.so", "libs/ops.so", "m/extra/a.txt", "notes"]);
        assert_eq!(got.roles, [Role::Library, Role::CustomOpLibrary, Role::Extra, Role::Extra]);
        assert_eq!(got.models.len(), 1);
    }

    #[test]
    fn the_loader_reads_the_copy_of_the_last_source() {
        let base = "data/aotinductor/model/";
        let names: Vec<String> = ["a.wrapper.cpp", "b.kernel.cpp", "a.wrapper_metadata.json", "b.kernel_metadata.json"]
            .iter()
            .map(|n| format!("{base}{n}"))
            .chain([format!("{base}a.wrapper.so"), format!("{base}a.wrapper.json")])
            .collect();
        let got = lay_out(&names, &|_| true);
        let model = got.models.first().unwrap();
        assert_eq!(model.metadata, [MemberId(3), MemberId(2)]);
        assert_eq!(model.wrapper, Some(MemberId(0)));
        assert_eq!(model.kernel_source, Some(MemberId(1)));
        assert_eq!(model.extern_nodes, Some(MemberId(5)));
        let bare: Vec<String> = names.iter().skip(2).cloned().collect();
        assert_eq!(lay_out(&bare, &|_| true).models.first().unwrap().metadata, [MemberId(0), MemberId(1)]);
    }

    #[test]
    fn several_wrappers_in_one_folder_are_not_paired_by_order() {
        let names: Vec<String> =
            ["a.wrapper.cpp", "a.wrapper.so", "b.wrapper.so", "c.wrapper.cpp"].map(str::to_owned).to_vec();
        let got = lay_out_folder(&names);
        let models: Vec<_> = got.models.iter().map(|m| (m.name.as_str(), m.library, m.wrapper)).collect();
        assert_eq!(
            models,
            [("model/a.wrapper", Some(MemberId(1)), Some(MemberId(0))), ("model/b.wrapper", Some(MemberId(2)), None)]
        );
        assert_eq!(got.remarks.len(), 1);
    }

    #[test]
    fn old_and_flat_layouts_are_models_too() {
        let got = layout(&["data/aotinductor/c1.cpp", "data/aotinductor/c1.json", "data/aotinductor/Makefile"]);
        let model = got.models.first().unwrap();
        assert!(model.is_flat && model.library.is_none());
        assert_eq!((model.wrapper, model.extern_nodes), (Some(MemberId(0)), Some(MemberId(1))));
        let two = layout(&["data/aotinductor/model/c2.so", "data/aotinductor/model2/c3.so"]);
        assert_eq!(two.models.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["model", "model2"]);
    }
}
