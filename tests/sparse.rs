//! Files of many gigabytes cost what small ones cost: packages and libraries with weights of 2.3 and 10 GiB, made without
//! writing them, are read right and with the memory of the small ones.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail by panicking and tell what it measured")]

use aoti_inspect::image::{Image, weights};
use aoti_inspect::model::{Artifact, WeightsLocation};
use aoti_inspect::source::Region;
use aoti_inspect::{CodeReading, Settings, container};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Appended weights keep their alignment, whatever is put before them.
const PAGE: u64 = 16_384;
/// Beyond the reach of 31 bits, and of 32.
const SIZES: [u64; 2] = [(23 << 30) / 10 / PAGE * PAGE, 10 << 30];

fn artifact(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts").join(name)
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()))
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()))
}

/// The zip64 extra field with these numbers (APPNOTE 4.5.3).
fn zip64(numbers: &[u64]) -> Vec<u8> {
    let mut field = vec![1, 0];
    field.extend(u16::try_from(8 * numbers.len()).unwrap().to_le_bytes());
    numbers.iter().for_each(|n| field.extend(n.to_le_bytes()));
    field
}

/// `package` behind a stored member of zeros: all its offsets need 64 bits, as does the size of the new member.
fn with_weights_in_front(package: &[u8], root: &str, size: u64, path: &Path) {
    let end = memchr::memmem::rfind(package, b"PK\x05\x06").unwrap();
    let (count, directory) = (u16_at(package, end + 10), usize::try_from(u32_at(package, end + 16)).unwrap());
    let name = format!("{root}/data/weights/weight_0");
    // version 4.5, stored, checksum never looked at, sizes in the extra field
    let header = |extra: &[u8]| {
        let mut fields = vec![45, 0, 0, 0, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0];
        fields.extend([0xff; 8]);
        fields.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        fields.extend(u16::try_from(extra.len()).unwrap().to_le_bytes());
        fields
    };
    let sizes = zip64(&[size, size]);
    let local = [b"PK\x03\x04".as_slice(), &header(&sizes), name.as_bytes(), &sizes].concat();
    let shift = local.len() as u64 + size;
    let mut rows = [b"PK\x01\x02\x2d\0".as_slice(), &header(&sizes), &[0; 14], name.as_bytes(), &sizes].concat();
    let mut at = directory;
    for _ in 0..count {
        let [name_len, extra_len, comment_len] = [28, 30, 32].map(|field| u16_at(package, at + field));
        let offset = zip64(&[u32_at(package, at + 42) + shift]);
        let names_end = at + 46 + name_len + extra_len;
        rows.extend(&package[at..at + 30]);
        rows.extend(u16::try_from(extra_len + offset.len()).unwrap().to_le_bytes());
        rows.extend(&package[at + 32..at + 42]);
        rows.extend([0xff; 4]);
        rows.extend(&package[at + 46..names_end]);
        rows.extend(offset);
        rows.extend(&package[names_end..names_end + comment_len]);
        at = names_end + comment_len;
    }
    let mut file = File::create(path).unwrap();
    file.write_all(&local).unwrap();
    file.seek(SeekFrom::Start(shift)).unwrap();
    file.write_all(&package[..directory]).unwrap();
    let directory = shift + directory as u64;
    let end64 = directory + rows.len() as u64;
    let mut tail =
        [rows.as_slice(), b"PK\x06\x06", &44u64.to_le_bytes(), &[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    for number in [count as u64 + 1, count as u64 + 1, rows.len() as u64, directory] {
        tail.extend(number.to_le_bytes());
    }
    tail.extend([b"PK\x06\x07\0\0\0\0".as_slice(), &end64.to_le_bytes(), b"\x01\0\0\0PK\x05\x06\0\0\0\0"].concat());
    tail.extend([0xff; 12]);
    tail.extend([0, 0]);
    file.write_all(&tail).unwrap();
}

/// `library`, whose weights are appended, with `more` bytes of weights before those that it has.
fn with_more_weights(library: &[u8], more: u64, path: &Path) {
    let bytes = library.to_vec();
    let image = Image::open(Region::whole(&bytes)).unwrap();
    // the first word at the symbol is the length of what is appended, magic number included
    let place = usize::try_from(image.file_offset(weights::bounds(&image).unwrap().0).unwrap()).unwrap();
    let len = u64::from_le_bytes(library[place..place + 8].try_into().unwrap());
    let start = library.len() - usize::try_from(len).unwrap();
    let mut head = library[..start].to_vec();
    head[place..place + 8].copy_from_slice(&(len + more).to_le_bytes());
    let mut file = File::create(path).unwrap();
    file.write_all(&head).unwrap();
    file.seek(SeekFrom::Current(i64::try_from(more).unwrap())).unwrap();
    file.write_all(&library[start..]).unwrap();
}

/// As `verify` and `show --deep` read: all witnesses.
fn look(path: &Path) -> Artifact {
    let settings = Settings { code: CodeReading::Always, scans_instructions: true, ..Settings::default() };
    let artifact = aoti_inspect::inspect(path, &settings).unwrap();
    assert_eq!(artifact.error, None);
    assert_eq!(artifact.models.len(), 1);
    assert!(artifact.models[0].inputs.is_some() && artifact.models[0].constants.is_some());
    artifact
}

/// What has to be the same, however long the file is.
fn interface(artifact: &Artifact) -> String {
    let model = &artifact.models[0];
    format!("{:#?}\n{:#?}\n{:#?}\n{:#?}", model.device, model.inputs, model.outputs, model.kernels)
}

/// `VmHWM` of this process: it never sinks, so the small files come first.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

// one test, because it measures its process
#[test]
fn many_gigabytes_cost_what_megabytes_cost() {
    let package_path = artifact("2.15.0-cpu-mlp_dynamic.pt2");
    let package = std::fs::read(&package_path).unwrap();
    let opened = container::open(&artifact("2.15.0-cpu-mmap_weights.pt2")).unwrap();
    let library = opened.library(&opened.models()[0]).unwrap().unwrap().all(1 << 20).unwrap().to_vec();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let library_path = folder.path().join("small.so");
    std::fs::write(&library_path, &library).unwrap();

    let small_package = look(&package_path);
    let small_library = look(&library_path);
    let small_weights = small_library.models[0].weights.size_bytes.unwrap();
    let small_peak = peak_kib();
    let root = opened_root(&package_path);
    for size in SIZES {
        let path = folder.path().join("big.pt2");
        with_weights_in_front(&package, &root, size, &path);
        let big = look(&path);
        assert!(big.size_bytes > size);
        assert_eq!(format!("{:?}", big.problems), "[]");
        assert_eq!(interface(&big), interface(&small_package));
        assert_eq!(big.models[0].constants, small_package.models[0].constants);
        std::fs::remove_file(path).unwrap();

        let path = folder.path().join("big.so");
        with_more_weights(&library, size, &path);
        let big = look(&path);
        assert_eq!(interface(&big), interface(&small_library));
        let weights = &big.models[0].weights;
        assert_eq!(weights.location, Some(WeightsLocation::Appended));
        assert_eq!(weights.size_bytes, Some(small_weights + size));
        std::fs::remove_file(path).unwrap();
    }
    let peak = peak_kib();
    println!("peak memory: small files {} KiB, files of up to 10 GiB {peak} KiB", small_peak);
    assert!(peak <= small_peak + (24 << 10), "{small_peak} KiB for small files, {peak} KiB for large ones");
}

fn opened_root(path: &Path) -> String {
    container::open(path).unwrap().root().trim_end_matches('/').to_owned()
}
