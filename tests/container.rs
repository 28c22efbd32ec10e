//! Opening real artefacts, look-alikes and hostile files.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use aoti_inspect::container::{self, Container};
use aoti_inspect::model::{Hazard, Kind, Role};
use std::path::{Path, PathBuf};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn open(name: &str) -> Container {
    container::open(&testdata(name)).unwrap()
}

/// Files below the folders of the corpus when it is unpacked, else of `testdata`.
fn everything() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/corpus");
    let top = if corpus.is_dir() { corpus } else { testdata("") };
    let mut found = Vec::new();
    let mut folders = vec![top];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

fn names(container: &Container, role: Role) -> Vec<String> {
    container.members().filter(|m| m.role() == role).map(|m| m.file_name().to_owned()).collect()
}

#[test]
fn every_real_artefact_opens_as_what_it_is() {
    let mut count = 0;
    for path in everything() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let folder = path.to_string_lossy().into_owned();
        if folder.contains("hostile")
            || folder.contains("negatives")
            || !(name.ends_with(".pt2") || name.ends_with(".so"))
        {
            continue;
        }
        count += 1;
        let container = container::open(&path).unwrap();
        assert_eq!(container.error(), None, "{name}");
        assert!(container.problems().is_empty() || name.contains("appended"), "{name}: {:?}", container.problems());
        let expected = match &name {
            n if n.ends_with(".so") => Kind::Library,
            n if n.contains("cpp_only") => Kind::Sources,
            n if n.contains("standalone") => Kind::Standalone,
            _ => Kind::Package,
        };
        assert_eq!(container.kind(), expected, "{name}");
        for model in container.models() {
            assert_eq!(model.library.is_some(), matches!(expected, Kind::Library | Kind::Package), "{name}");
            if expected != Kind::Library {
                assert!(!model.metadata.is_empty(), "{name}");
                assert!(model.wrapper.is_some() || name.contains("no_sources"), "{name}");
            }
            if let Some(library) = container.library(model).unwrap() {
                assert!(library.len() > 100_000, "{name}");
            }
        }
        let models = if name.contains("two_models") { 2 } else { 1 };
        assert_eq!(container.models().len(), models, "{name}");
        assert_eq!(container.exported().count(), usize::from(name.contains("ep_and_aoti")), "{name}");
    }
    assert!(count >= 25, "only {count} artefacts");
}

#[test]
fn members_have_roles_and_models_have_their_files() {
    let plain = open("artifacts/2.15.0-cpu-pickle_weights.pt2");
    assert_eq!(plain.root(), "2.15.0-cpu-pickle_weights");
    assert_eq!((plain.version(), plain.is_version_key_new()), (Some("0"), Some(true)));
    let model = plain.models().first().unwrap();
    let id = |id: Option<container::MemberId>| plain.member(id.unwrap()).unwrap().file_name().to_owned();
    assert_eq!(id(model.weights_config), "weights_config.json");
    assert!(id(model.metadata.first().copied()).ends_with(".kernel_metadata.json"));
    assert_eq!(names(&plain, Role::Weights), ["weight_0", "weight_1", "weight_2", "weights_config.json"]);
    assert!(plain.member_named("data/weights/weight_0").is_some());

    let cuda = open("artifacts/2.11.0-cuda-assert_idx.pt2");
    let model = cuda.models().first().unwrap();
    assert!(!model.kernels.is_empty());
    let file = cuda.member(*model.kernels.first().unwrap()).unwrap().file_name();
    assert!(cuda.kernel_file(model, file).unwrap().unwrap().region().head(4) == b"\x7fELF");
    assert!(cuda.kernel_file(model, "absent.cubin").unwrap().is_none());

    let old = open("artifacts/2.6.0-cpu-mlp_dynamic.pt2");
    assert_eq!((old.root(), old.is_version_key_new()), ("", Some(false)));

    let two = open("artifacts/2.15.0-cpu-two_models.pt2");
    assert_eq!(two.models().iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["model", "model2"]);

    let mixed = open("artifacts/2.15.0-cpu-ep_and_aoti.pt2");
    assert_eq!(names(&mixed, Role::Extra), ["notes.txt", "labels.json"]);
    assert_eq!(mixed.exported().map(|m| m.file_name()).collect::<Vec<_>>(), ["model.json"]);
}

#[test]
fn a_library_finds_the_files_of_its_own_stem() {
    let library = open("artifacts/2.15.0-cpu-custom_op.so");
    assert_eq!(library.kind(), Kind::Library);
    let model = library.models().first().unwrap();
    let nodes = library.member(model.extern_nodes.unwrap()).unwrap();
    assert_eq!(nodes.file_name(), "2.15.0-cpu-custom_op.json");
    assert!(nodes.bytes(1 << 20).unwrap().starts_with(b"{\"nodes\""));
    assert!(model.wrapper.is_none() && model.metadata.is_empty());
    // a name with a folder in it is never looked for
    assert!(library.kernel_file(model, "../artifacts/x.cubin").unwrap().is_none());
    assert!(library.kernel_file(model, "2.15.0-cpu-custom_op.json").unwrap().is_none());
}

#[test]
fn look_alikes_are_named() {
    for (file, kind, phrase) in [
        ("2.15.0-cpu-ep_only.pt2", Kind::ExportedProgram, "aoti_compile_and_package"),
        ("2.15.0-cpu-extra_only.pt2", Kind::Unknown, "without a compiled model"),
        ("2.15.0-cpu-torch_save.pt", Kind::TorchSave, "a torch.save file"),
        ("2.15.0-cpu-torch_save_legacy.pt2", Kind::TorchSave, "old format"),
        ("2.15.0-cpu-torchscript.pt", Kind::Torchscript, "torch.jit.load"),
        ("lfs_pointer.pt2", Kind::Unknown, "git lfs pull"),
        ("page.pt2", Kind::Unknown, "an HTML page"),
    ] {
        let container = open(&format!("negatives/{file}"));
        assert_eq!(container.kind(), kind, "{file}");
        let sentence = container.error().unwrap();
        assert!(sentence.contains(phrase), "{file}: {sentence}");
        assert!(!sentence.contains('\n') && sentence.len() < 250, "{file}: {sentence}");
    }
    let extension = open("negatives/_json.cpython-311-x86_64-linux-gnu.so");
    assert_eq!(extension.kind(), Kind::Library, "symbols are read on the next floor");
}

#[test]
fn hostile_packages_end_in_problems_or_one_sentence() {
    let message = |name: &str| {
        let container = open(&format!("hostile/{name}"));
        let model = container.models().first().cloned();
        let error = model.and_then(|m| container.library(&m).err()).map(|e| e.to_string());
        (container.error().map(str::to_owned).or(error).unwrap_or_default(), container)
    };
    for (file, phrase) in [
        ("bomb_elf.pt2", "no real member shrinks"),
        ("bomb_nested.pt2", "it is a zip archive"),
        ("encrypted_flag.pt2", "is encrypted"),
        ("lying_directory.pt2", "end record is wrong"),
        ("lying_sizes.pt2", "4294967294 bytes"),
        ("symlink.pt2", "symbolic link"),
        ("truncated.pt2", "cut short"),
        ("directory.pt2", "holds no model"),
        ("empty.so", "an empty file"),
        ("macho_fat.so", "2147483647 slices"),
        ("mz_stub.so", "a DOS header"),
    ] {
        let (sentence, _) = message(file);
        assert!(sentence.contains(phrase), "{file}: {sentence}");
    }
    for file in ["bad_metadata.pt2", "no_metadata.pt2", "cpu_metadata_cuda_so.pt2", "terminal_escape.pt2"] {
        assert_eq!(message(file).0, "", "{file}");
    }
    let (sentence, container) = message("prefix_junk.pt2");
    assert_eq!(sentence, "");
    assert!(container.problems().iter().any(|p| p.message.contains("17 bytes before")));
}

#[test]
fn dangerous_names_are_listed_and_belong_to_no_model() {
    let container = open("hostile/traversal.pt2");
    let hazards: Vec<_> = container.members().filter(|m| !m.hazards().is_empty()).collect();
    assert_eq!(hazards.len(), 5);
    assert!(hazards.iter().filter(|m| m.hazards().contains(&Hazard::ParentPart)).count() == 2);
    assert!(hazards.iter().filter(|m| m.hazards().contains(&Hazard::AbsoluteName)).count() == 2);
    let model = container.models().first().unwrap();
    assert_eq!(container.member(model.library.unwrap()).unwrap().file_name(), "w.wrapper.so");
    assert_eq!(container.problems().iter().filter(|p| p.message.contains("leads outside")).count(), 4);
}

#[test]
fn an_unpacked_package_reads_like_the_package() {
    let packed = open("artifacts/2.15.0-cpu-multi_io.pt2");
    let top = tempfile::tempdir().unwrap();
    let folder = top.path().join("unpacked");
    for member in packed.members() {
        let path = folder.join(member.name());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, member.bytes(u64::MAX).unwrap()).unwrap();
    }
    let root = folder.join(packed.root());
    let model = root.join("data/aotinductor/model");
    for path in [&folder, &root, &model] {
        let unpacked = container::open(path).unwrap();
        assert_eq!((unpacked.kind(), unpacked.error()), (Kind::Directory, None));
        let files = |c: &Container| {
            let model = c.models().first().unwrap().clone();
            let library = c.library(&model).unwrap().unwrap().len();
            (library, c.member(*model.metadata.first().unwrap()).unwrap().file_name().to_owned())
        };
        assert_eq!(files(&unpacked), files(&packed));
    }
    let walk = container::walk(top.path()).unwrap();
    assert_eq!(walk.candidates, [folder]);
    assert!(container::open(&testdata("artifacts")).is_err(), "a folder of artefacts is walked, not opened");
    let walk = container::walk(&testdata("artifacts")).unwrap();
    assert!(walk.candidates.len() >= 25 && walk.other_files >= 25);
}

/// Writes a zip of stored members, each `(name, content)`.
fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = rawzip::ZipArchiveWriter::new(Vec::new());
    for (name, content) in members {
        let path = rawzip::path::EntryPath::verbatim(name.as_bytes().to_vec());
        let (mut entry, config) = archive.new_file(path).start().unwrap();
        let mut writer = config.wrap(&mut entry);
        std::io::Write::write_all(&mut writer, content).unwrap();
        let (_, descriptor) = writer.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap()
}

fn held(bytes: Vec<u8>) -> Container {
    container::open_bytes(Box::new(bytes), None)
}

const ELF: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0";
const LIBRARY: &str = "m/data/aotinductor/model/x.wrapper.so";

#[test]
fn duplicates_overlaps_and_contradictions_are_told() {
    let same = held(zip(&[(LIBRARY, ELF), (LIBRARY, ELF)]));
    assert!(same.problems().iter().any(|p| p.message.contains("same content") && p.affects.is_empty()));
    let other = held(zip(&[(LIBRARY, ELF), (LIBRARY, b"\x7fELF")]));
    assert!(other.problems().iter().any(|p| p.message.contains("different content") && p.affects == ["models[0]"]));
    assert_eq!(other.models().len(), 1);

    // the local header of the first member gets another name
    let mut renamed = zip(&[(LIBRARY, ELF), ("m/archive_format", b"pt2")]);
    renamed[30] = b'q';
    let renamed = held(renamed);
    assert!(
        renamed.problems().iter().any(|p| p.message.contains("its own header calls it") && p.affects == ["models[0]"])
    );

    // the directory's second row points at the first member
    let mut shared = zip(&[(LIBRARY, ELF), (LIBRARY, ELF)]);
    let rows: Vec<usize> = shared.windows(4).enumerate().filter(|(_, w)| *w == b"PK\x01\x02").map(|(i, _)| i).collect();
    shared[rows[1] + 42..rows[1] + 46].copy_from_slice(&0u32.to_le_bytes());
    assert!(held(shared).members().any(|m| m.hazards().contains(&Hazard::Overlap)));
}

#[test]
fn bytes_around_a_zip_do_not_hide_it() {
    let plain = zip(&[(LIBRARY, ELF), ("m/archive_format", b"pt2")]);
    let mut around = b"#!/bin/sh\nexit\n".to_vec();
    around.extend(&plain);
    around.extend(b"PK\x05\x06 trailing");
    let container = held(around);
    assert_eq!(container.kind(), Kind::Package);
    let messages: Vec<_> = container.problems().iter().map(|p| p.message.as_str()).collect();
    let [before, behind, refused] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!((*before, *behind), ("15 bytes before the first member", "13 bytes behind the end of the zip"));
    assert!(refused.contains("has the directory at 0xac, it is at 0xbb"), "{refused}");
    let model = container.models().first().unwrap();
    assert_eq!(container.library(model).unwrap().unwrap().head(4), b"\x7fELF");
}

#[test]
fn a_cut_package_says_so_at_every_length() {
    let whole = zip(&[(LIBRARY, ELF), ("m/archive_format", b"pt2")]);
    for len in 0..whole.len() {
        let container = held(whole[..len].to_vec());
        assert!(container.error().is_some(), "{len} of {} bytes", whole.len());
    }
}

#[test]
fn names_and_counts_have_a_border() {
    let long = "x".repeat(aoti_inspect::limits::NAME_BYTES + 1);
    let container = held(zip(&[(&long, b""), (LIBRARY, ELF)]));
    assert!(container.problems().iter().any(|p| p.message.contains("is cut to")));
    let border = "x".repeat(aoti_inspect::limits::NAME_BYTES);
    assert!(held(zip(&[(&border, b""), (LIBRARY, ELF)])).problems().is_empty());
}

#[test]
fn zips_around_zips_and_other_zips_are_named() {
    let sentence = |members: &[(&str, &[u8])]| held(zip(members)).error().unwrap_or_default().to_owned();
    assert!(sentence(&[("dist/model.pt2", b"")]).contains("give \"dist/model.pt2\""));
    assert!(sentence(&[("a.npy", b"")]).contains("a NumPy archive"));
    assert!(sentence(&[("p-1.dist-info/WHEEL", b"")]).contains("a Python wheel"));
    assert!(
        sentence(&[("version", b"7"), ("serialized_exported_program.json", b"{}")]).contains("an exported program")
    );
    assert!(sentence(&[("readme", b"")]).contains("without `data/aotinductor/`"));
    assert!(sentence(&[]).contains("an empty zip"));
}

#[test]
fn layouts_date_the_release_that_wrote_them() {
    let range = |name: &str| {
        let container = open(&format!("artifacts/{name}"));
        let rows = container::dating::date(&container, container.models().first().unwrap());
        let min = rows.iter().filter_map(|r| r.min).max().map(|r| r.to_string());
        let max = rows.iter().filter_map(|r| r.max).min().map(|r| r.to_string());
        (min.unwrap_or_default(), max.unwrap_or_default())
    };
    let own = |min: &str, max: &str| (min.to_owned(), max.to_owned());
    assert_eq!(range("2.6.0-cpu-mlp_dynamic.pt2"), own("2.6", "2.6"));
    assert_eq!(range("2.7.1-cpu-multi_io.pt2"), own("2.7", "2.7"));
    assert_eq!(range("2.9.1-cpu-multi_io.pt2"), own("2.8", ""));
    assert_eq!(range("2.15.0-cpu-blob_weights.pt2"), own("2.10", ""));
    assert_eq!(range("2.15.0-cpu-mlp_dynamic.so"), own("", ""));
}

#[test]
fn the_digest_is_that_of_the_whole_file() {
    let page = open("negatives/page.pt2");
    assert_eq!(page.sha256().as_deref(), Some("85a9005e4039e9c74961b037e01432d92df6b354276af69f7ff46479778790fd"));
    assert_eq!(open("hostile/directory.pt2").sha256(), None);
}

/// Messages of the problems that make the facts of the model doubtful.
fn damage(bytes: Vec<u8>) -> Vec<String> {
    let container = held(bytes);
    assert_eq!(container.error(), None);
    let of_model = |p: &&aoti_inspect::model::Problem| p.affects.iter().any(|fact| fact == "models[0]");
    container.problems().iter().filter(of_model).map(|p| p.message.clone()).collect()
}

/// `bytes` with others put in at an offset.
fn patched(bytes: &[u8], offset: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.splice(offset..offset + with.len(), with.iter().copied());
    bytes
}

#[test]
fn end_records_that_torch_refuses_are_damage() {
    let large = std::fs::read(testdata("artifacts/2.15.0-cpu-pickle_weights.pt2")).unwrap();
    let end = memchr::memmem::rfind(&large, b"PK\x05\x06").unwrap();
    let end64 = memchr::memmem::rfind(&large, b"PK\x06\x06").unwrap();
    let row = usize::try_from(u64::from_le_bytes(large[end64 + 48..end64 + 56].try_into().unwrap())).unwrap();
    // the same without its zip64 records
    let mut small = [&large[..end64], &large[end..]].concat();
    let count = u16::from_le_bytes(large[end64 + 32..end64 + 34].try_into().unwrap());
    let len = u32::try_from(end64 - row).unwrap();
    let fields = [&count.to_le_bytes()[..], &count.to_le_bytes(), &len.to_le_bytes()].concat();
    small = patched(&small, end64 + 8, &fields);
    small = patched(&small, end64 + 16, &u32::try_from(row).unwrap().to_le_bytes());
    for whole in [&large, &small] {
        assert_eq!(damage(whole.clone()), [""; 0]);
        let odd = patched(whole, row + 34, &[1]);
        assert_eq!(damage(odd), [""; 0], "a member of disk 1 is taken");
        assert!(damage(patched(whole, row + 34, &[9])).concat().contains("on disk 9"));
    }
    for (offset, with, phrase) in [
        (4, &[2, 0, 3, 0][..], "of disk 2, the directory of disk 3"),
        (4, &[1, 0, 1, 0], "of disk 1, a member on disk 0"),
        (8, &[4], "4 of them on this disk"),
        (8, &[30, 0, 30, 0], "promises 30 members"),
        (8, &[3, 0, 3, 0], "promises 3 members"),
        (8, &[0xff; 4], "promises 65535 members"),
        (12, &[0; 4], "gives the directory 0 bytes"),
        (12, &[100, 0], "gives the directory 100 bytes"),
        (12, &[0xff; 4], "gives the directory 4294967295 bytes"),
    ] {
        let found = damage(patched(&small, end64 + offset, with)).concat();
        assert!(found.contains(phrase), "{phrase}: {found}");
    }
    for (offset, with, phrase) in [
        (end - 4, &[9][..], "counts 9 disks"),
        (end64 + 4, &[43], "said to have 43 bytes"),
        (end64 + 24, &[3, 0, 0, 0, 0, 0, 0, 0, 3], "promises 3 members"),
        (end64 + 39, &[0x80], "members"),
        (end64 + 40, &[0xff; 8], "bytes from"),
    ] {
        let found = damage(patched(&large, offset, with)).concat();
        assert!(found.contains(phrase), "{phrase}: {found}");
    }
}

#[test]
fn an_end_record_is_searched_as_far_as_torch_searches() {
    let whole = std::fs::read(testdata("artifacts/2.15.0-cpu-pickle_weights.pt2")).unwrap();
    let end = memchr::memmem::rfind(&whole, b"PK\x05\x06").unwrap();
    let of = |distance: usize| {
        let mut bytes = whole.clone();
        bytes.resize(end + distance, 0);
        damage(bytes)
    };
    assert_eq!(of(69_584), [""; 0]);
    assert!(of(69_585).concat().contains("69585 bytes from the end"));
    let later = [&whole[..], b"PK\x05\x06\xff", &[0; 17]].concat();
    assert!(held(later).error().is_some());
}

#[test]
fn another_archive_format_is_damage() {
    let of = |text: &[u8]| damage(zip(&[("m/archive_format", text), (LIBRARY, ELF)]));
    assert_eq!(of(b"pt2"), [""; 0]);
    for wrong in [&b"zip"[..], b"", b"pt2\n", b"PT2", &[0xff; 80]] {
        assert_eq!(of(wrong).len(), 1, "{wrong:?}");
    }
    assert_eq!(damage(zip(&[(LIBRARY, ELF)])), [""; 0]);
}

#[test]
fn damaged_pickled_weights_are_damage() {
    let plain = open("artifacts/2.15.0-cpu-pickle_weights.pt2");
    // with the content of one member replaced, or without it
    let of = |inner: &str, content: Option<&[u8]>| {
        let members: Vec<(&str, &[u8])> = plain
            .members()
            .map(|m| (m, if m.inner_name() == inner { content } else { m.bytes(u64::MAX).ok() }))
            .filter_map(|(m, bytes)| Some((m.name(), bytes?)))
            .collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), zip(&members)).unwrap();
        let artifact = aoti_inspect::inspect(file.path(), &aoti_inspect::Settings::default()).unwrap();
        let of_constants = artifact.problems.iter().filter(|p| p.affects == ["models[0].constants"]);
        of_constants.map(|p| format!("{}: {}\n", p.place, p.message)).collect::<String>()
    };
    assert_eq!(of("", None), "");
    let first = plain.member_named("data/weights/weight_0").unwrap().bytes(u64::MAX).unwrap();
    assert!(of("data/weights/weight_0", None).contains("no data/weights/weight_0"));
    assert!(of("data/weights/weight_0", Some(&first[..100])).contains("no end record"));
    assert!(of("data/weights/weight_0", Some(&[0; 639])).contains("byte 640 of a storage of 639 bytes"));
    assert_eq!(of("data/weights/weight_0", Some(&[0; 640])), "");
    let config = "data/aotinductor/model/weights_config.json";
    let row = |text: &str| of(config, Some(format!(r#"{{"fc1.weight": {text}}}"#).as_bytes()));
    assert_eq!(row(r#"["weight_0", [16, 10], [10, 1], 0]"#), "");
    for (text, phrase) in [
        ("7", "is not [file, shape, stride, offset]"),
        (r#"["../../../etc/passwd", [16, 10], [10, 1], 0]"#, "is not below data/weights"),
        (r#"["weight_9", [16, 10], [10, 1], 0]"#, "no data/weights/weight_9"),
        (r#"["weight_0", [999, 999], [10, 1], 0]"#, "the library [16, 10]"),
        (r#"["weight_0", [16, 10], [10, 1], 1]"#, "byte 644 of a storage of 640 bytes"),
        (r#"["weight_0", [16, 10], [1], 0]"#, "no tensor"),
        (r#"["weight_0", [16, 10], [10, 1], -1]"#, "no tensor"),
    ] {
        assert!(row(text).contains(phrase), "{phrase}: {}", row(text));
    }
    assert!(of(config, Some(b"junk")).contains("no JSON"));
    assert!(of(config, Some(b"[]")).contains("no JSON"));
}
