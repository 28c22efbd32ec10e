//! Kernel files: real cubins, fatbins and PTX, compared with what NVIDIA's own `cuobjdump` prints.

use aoti_inspect::error::ErrorKind;
use aoti_inspect::kernel::{self, FileFormat, KernelFile};
use aoti_inspect::model::{Arch, ImageFormat};
use aoti_inspect::source::Region;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts/kernels")
}

fn bytes(name: &str) -> Vec<u8> {
    let path = folder().join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn read(name: &str) -> KernelFile {
    kernel::read(Region::whole(&bytes(name))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn sm(number: u16, suffix: Option<char>) -> Option<Arch> {
    Some(Arch::Sm { number, suffix })
}

#[test]
fn cubins_agree_with_cuobjdump() {
    let rows: serde_json::Value = serde_json::from_slice(&bytes("cuobjdump.json")).expect("JSON");
    let rows = rows.as_array().expect("a list");
    assert!(rows.len() >= 30);
    for row in rows {
        let name = row["file"].as_str().expect("a name");
        let file = read(name);
        assert_eq!(file.format, FileFormat::Cubin, "{name}");
        let [image] = file.images.as_slice() else { panic!("{name}: one image") };
        let [entry] = image.entries.as_slice() else { panic!("{name}: one kernel") };
        // cuobjdump does not know the suffix f
        let arch = image.arch.as_ref().expect("a target").to_string();
        assert_eq!(arch.trim_end_matches('f'), format!("sm_{}", row["sm"].as_str().expect("a target")), "{name}");
        let (major, minor) = image.toolkit.expect("a toolkit");
        assert_eq!(format!("{major}.{minor}"), row["toolkit"].as_str().expect("text"), "{name}");
        assert_eq!(entry.name, row["function"], "{name}");
        assert_eq!(entry.registers.map(u64::from), row["registers"].as_u64(), "{name}");
        assert_eq!(entry.frame_bytes.map(u64::from), row["stack"].as_u64(), "{name}");
        let reserved = if matches!(&image.arch, Some(Arch::Sm { number: 90.., .. })) { 1024 } else { 0 };
        let shared = row["shared"].as_u64().map(|s| s.saturating_sub(reserved));
        assert_eq!(entry.static_shared_bytes, shared, "{name}");
        assert_eq!(entry.required_threads.map(u64::from), row["required_threads"].as_u64(), "{name}");
        assert_eq!(serde_json::json!(entry.parameter_bytes), row["parameters"], "{name}");
        assert!(!image.is_arch_uncertain, "{name}");
    }
}

#[test]
fn the_file_name_says_the_target_that_the_assembler_was_given() {
    let names = std::fs::read_dir(folder()).expect("the folder").flatten().map(|e| e.file_name());
    let mut count = 0;
    for name in names.filter_map(|n| n.into_string().ok()).filter(|n| n.starts_with("ptxas-")) {
        let target = name.trim_end_matches(".cubin").rsplit('-').next().expect("a target").to_owned();
        assert_eq!(read(&name).images[0].arch.as_ref().map(ToString::to_string), Some(target), "{name}");
        count += 1;
    }
    assert!(count >= 29);
}

#[test]
fn every_compression_of_a_fatbin_shows_the_same_targets() {
    let archs = |name: &str| read(name).images.iter().map(|i| (i.format, i.arch.clone())).collect::<Vec<_>>();
    let expected = vec![
        (ImageFormat::Cubin, sm(80, None)),
        (ImageFormat::Cubin, sm(90, Some('a'))),
        (ImageFormat::Cubin, sm(100, Some('f'))),
        (ImageFormat::Ptx, sm(90, Some('a'))),
        (ImageFormat::Ptx, sm(80, None)),
    ];
    assert_eq!(archs("fatbinary-13.5-plain.fatbin"), expected);
    assert_eq!(archs("fatbinary-13.5-zstd.fatbin"), expected);
    assert_eq!(archs("fatbinary-13.5-lz4.fatbin"), expected);
    let plain = read("fatbinary-13.5-plain.fatbin");
    assert_eq!(plain.images, read("fatbinary-13.5-zstd.fatbin").images);
    assert_eq!(plain.not_read, [""; 0]);
    let lz4 = read("fatbinary-13.5-lz4.fatbin");
    assert_eq!(lz4.not_read.len(), 5, "said, not guessed");
    assert!(lz4.images.iter().all(|i| i.entries.is_empty()));
    assert_eq!(lz4.images[3].ptx_version, Some((9, 0)));
}

#[test]
fn host_fatbins_are_containers_in_a_row() {
    let mut section = bytes("fatbinary-13.5-zstd.fatbin");
    section.resize(section.len().next_multiple_of(8) + 16, 0);
    section.extend(bytes("torch-2.11-multi_arch.fatbin"));
    let files = kernel::fatbin::read_host_fatbins(Region::whole(&section)).expect("two containers");
    assert_eq!(files.iter().map(|f| f.images.len()).collect::<Vec<_>>(), [5, 2]);
    section.truncate(section.len() - 1);
    assert!(kernel::fatbin::read_host_fatbins(Region::whole(&section)).is_err());
}

#[test]
fn a_multi_arch_kernel_of_torch_is_one_cubin_and_one_ptx_for_the_same_gpu() {
    let file = read("torch-2.11-multi_arch.fatbin");
    let [cubin, ptx] = file.images.as_slice() else { panic!("two images") };
    assert_eq!((cubin.format, cubin.arch.clone()), (ImageFormat::Cubin, sm(90, Some('a'))));
    assert_eq!((ptx.format, ptx.arch.clone()), (ImageFormat::Ptx, sm(90, Some('a'))));
    assert_eq!(ptx.ptx_version, Some((9, 0)));
    assert_eq!(cubin.entries[0].parameter_bytes, ptx.entries[0].parameter_bytes);
    assert_eq!(cubin.entries[0].required_threads, ptx.entries[0].required_threads);
}

#[test]
fn an_assertion_leads_to_the_parameter_that_bounds_it() {
    let image = &read("torch-2.11-cumsum_index.cubin").images[0];
    let [assertion] = image.assertions.as_slice() else { panic!("one assertion") };
    assert_eq!(assertion.text, "index out of bounds: 0 <= tmp14 < ks0");
    let bound = assertion.bound.as_ref().expect("a bound");
    assert_eq!((bound.parameters.as_slice(), bound.is_parameter), ([3].as_slice(), true));
    assert_eq!(image.entries[0].parameter_bytes, [8, 8, 8, 8, 4, 8, 8]);
    assert!(image.source_path.as_ref().is_some_and(|p| p.ends_with(".py")));

    let image = &read("torch-2.11-embedding.cubin").images[0];
    assert_eq!(image.assertions[0].text, "index out of bounds: 0 <= tmp5 < 32");
    assert_eq!(image.assertions[0].bound.as_ref().and_then(|b| b.constant), Some(32));
}

#[test]
fn ptx_alone_is_read() {
    let file = read("scale.sm_90.ptx");
    assert_eq!(file.format, FileFormat::Ptx);
    assert_eq!(file.images[0].arch, sm(90, None));
    assert_eq!(file.images[0].entries[0].parameter_bytes, [8, 8, 4]);
    assert_eq!(file.images[0].entries[0].required_threads, Some(128));
}

#[test]
fn cut_and_altered_files_end_in_an_error_or_a_result_never_in_a_panic() {
    for name in ["ptxas-13.5-sm_90a.cubin", "ptxas-11.8-sm_50.cubin", "fatbinary-13.5-zstd.fatbin", "scale.sm_90.ptx"] {
        let whole = bytes(name);
        for len in (0..whole.len()).step_by(7) {
            let _ = kernel::read(Region::whole(&whole[..len].to_vec()));
        }
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut altered = whole.clone();
                altered[at] = value;
                let _ = kernel::read(Region::whole(&altered));
            }
        }
    }
}

#[test]
fn a_fatbin_entry_that_inflates_beyond_the_cap_is_refused() {
    let mut bytes = bytes("fatbinary-13.5-zstd.fatbin");
    // inflated size of the first entry
    bytes[16 + 0x38..16 + 0x40].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let error = kernel::read(Region::whole(&bytes)).expect_err("over the cap");
    assert_eq!(error.kind(), ErrorKind::Limit);
    // one byte more than is there
    bytes[16 + 0x38..16 + 0x40].copy_from_slice(&2977u64.to_le_bytes());
    let error = kernel::read(Region::whole(&bytes)).expect_err("a wrong size");
    assert_eq!(error.kind(), ErrorKind::Damaged);
}

/// Every cubin of the corpus packages; a fresh clone has no corpus.
#[test]
fn every_kernel_of_the_corpus_is_for_sm_90a() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/corpus/linux-x86_64-cuda/2.11.0");
    let Ok(entries) = std::fs::read_dir(corpus) else { return };
    let mut count = 0;
    for path in entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "pt2")) {
        let archive = std::fs::read(&path).expect("readable");
        for (offset, _) in archive
            .windows(20)
            .enumerate()
            .filter(|(_, w)| w.starts_with(b"\x7fELF\x02\x01") && w.get(18..20) == Some(&[190, 0]))
        {
            // stored members: the image ends before the rest of the archive, which a cubin does not mind
            let file = kernel::read(Region::whole(&archive[offset..].to_vec())).expect("a cubin");
            assert_eq!(file.images[0].arch, sm(90, Some('a')), "{}", path.display());
            assert_eq!(file.images[0].toolkit, Some((13, 0)));
            assert!(file.images[0].entries[0].registers.is_some());
            count += 1;
        }
    }
    assert!(count >= 40, "{count}");
}
