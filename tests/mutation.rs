//! Thousands of damaged copies of every small artefact: no panic, bounded work, bounded memory.
//!
//! Seeded, so that a mutant can be made again: `AOTI_MUTANTS=50000 AOTI_SEED=7 cargo test --test mutation`.
//! `AOTI_ONLY=123` runs that mutant alone.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail by panicking and tell what it did")]

use aoti_inspect::target::{InputRequests, InputTexts, LoadConfig};
use aoti_inspect::{CodeReading, Settings, assemble, container, render};
use rayon::prelude::*;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// xorshift64*: mutants must be the same on every machine and in every version of a dependency.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

fn artifacts() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut found: Vec<PathBuf> = ["artifacts", "artifacts/kernels", "hostile", "negatives"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && path.extension().is_some_and(|e| e != "json"))
        .filter(|path| path.metadata().unwrap().len() < 600_000)
        .collect();
    found.sort();
    assert!(found.len() > 40, "{} artefacts", found.len());
    found
}

/// Byte ranges of what we read: directory and headers of zips, tables of objects, and the beginning of texts.
fn structures(bytes: &[u8]) -> Vec<Range<usize>> {
    const MARKS: [(&[u8], usize); 13] = [
        (b"PK\x01\x02", 80),
        (b"PK\x03\x04", 80),
        (b"PK\x05\x06", 22),
        (b"PK\x06\x06", 56),
        (b"\xcf\xfa\xed\xfe", 2048),
        (b"PE\0\0", 512),
        (b"\x50\xed\x55\xba", 200),
        (b"AOTI_DEVICE_KEY", 100),
        (b"[1, {\"type\"", 300),
        (b"inputs_info_[", 300),
        (b"input_handles[", 120),
        (b".version ", 200),
        (b"{\"nodes\"", 400),
    ];
    let mut found = Vec::new();
    let mut add = |start: usize, len: usize| {
        let end = start.saturating_add(len).min(bytes.len());
        if start < end {
            found.push(start..end);
        }
    };
    for (mark, len) in MARKS {
        memchr::memmem::find_iter(bytes, mark).take(200).for_each(|at| add(at, len));
    }
    for at in memchr::memmem::find_iter(bytes, b"\x7fELF") {
        let number = |offset: usize, width: usize| {
            let raw = bytes.get(at + offset..at + offset + width).unwrap_or_default();
            raw.iter().rev().fold(0usize, |n, b| (n << 8) | usize::from(*b))
        };
        add(at, 64);
        add(at + number(32, 8), 56 * number(56, 2).min(40));
        let (table, count) = (number(40, 8), number(60, 2).min(60));
        add(at + table, 64 * count);
        for section in (0..count).map(|i| table + 64 * i) {
            // string, symbol, relocation, dynamic, note, init array, hash, version tables; and code
            let kind = number(section + 4, 4);
            if matches!(kind, 2..=7 | 9 | 11 | 14 | 19) || kind >= 0x6fff_fff0 || kind == 1 {
                add(at + number(section + 24, 8), number(section + 32, 8).min(60_000));
            }
        }
    }
    add(0, 256);
    add(bytes.len().saturating_sub(1024), 1024);
    found
}

fn mutate(bytes: &mut Vec<u8>, structures: &[Range<usize>], random: &mut Random) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let range = structures[random.below(structures.len())].clone();
        let at = if random.below(8) == 0 { random.below(bytes.len()) } else { range.start + random.below(range.len()) };
        let at = at.min(bytes.len() - 1);
        match random.below(10) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 0xff, 0x7f, 0x80, 1, b'"', b'\\', b'/'][random.below(8)],
            2 => bytes.truncate(at),
            3 => {
                let from = random.below(bytes.len());
                let chunk: Vec<u8> = bytes[from..(from + 64).min(bytes.len())].to_vec();
                let end = (at + chunk.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&chunk[..end - at]);
            }
            4 => {
                let chunk: Vec<u8> = bytes[at..(at + 1 + random.below(32)).min(bytes.len())].to_vec();
                bytes.splice(at..at, chunk);
            }
            5 => {
                bytes.drain(at..(at + 1 + random.below(16)).min(bytes.len()));
            }
            _ => {
                let width = [2, 4, 8][random.below(3)];
                let at = at - at % width;
                let Some(field) = bytes.get_mut(at..at + width) else { continue };
                let old = field.iter().rev().fold(0u64, |n, b| (n << 8) | u64::from(*b));
                let new = match random.below(9) {
                    0 => 0,
                    1 => u64::MAX,
                    2 => u64::MAX >> 1,
                    3 => old.wrapping_add(1),
                    4 => old.wrapping_sub(1),
                    5 => old.wrapping_mul(2),
                    6 => u64::MAX - old,
                    7 => 1 << random.below(63),
                    _ => random.below(1 << 20) as u64,
                };
                field.copy_from_slice(&new.to_le_bytes()[..width]);
            }
        }
    }
}

fn look_at(bytes: Vec<u8>) {
    let container = container::open_bytes(Box::new(bytes), None);
    let settings = Settings { code: CodeReading::Always, ..Settings::default() };
    let artifact = assemble::assemble("mutant", &container, &settings);
    let texts = ["f32[8, 10]".to_owned()];
    let inputs = InputRequests::from_texts(InputTexts { input: &texts, ..InputTexts::default() }).unwrap();
    let config = LoadConfig {
        inputs,
        gpus: vec![aoti_inspect::target::gpu::Gpu::from_text("A100").unwrap()],
        torch: aoti_inspect::target::TorchVersion::from_text("2.9").ok(),
        ..LoadConfig::default()
    };
    let report = aoti_inspect::verify(&artifact, &config);
    let report = aoti_inspect::report::Report { command: "verify".into(), artifacts: vec![report] };
    render::json::render_show(std::slice::from_ref(&artifact), &[], &mut std::io::sink()).unwrap();
    render::markdown::render(&report, &mut std::io::sink()).unwrap();
    aoti_inspect::diff::changes(&artifact, &artifact);
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn no_mutant_panics() {
    let (count, seed) = (setting("AOTI_MUTANTS", 10_000), setting("AOTI_SEED", 1));
    let only = std::env::var("AOTI_ONLY").ok().and_then(|v| v.parse::<u64>().ok());
    let bases: Vec<(PathBuf, Vec<u8>, Vec<Range<usize>>)> = artifacts()
        .into_iter()
        .map(|path| {
            let bytes = std::fs::read(&path).unwrap();
            let structures = structures(&bytes);
            (path, bytes, structures)
        })
        .filter(|(_, bytes, _)| !bytes.is_empty())
        .collect();
    std::panic::set_hook(Box::new(|_| {}));
    let numbers = only.map_or(0..count, |n| n..n + 1);
    let run = |n: u64| -> (Duration, u64, Option<String>) {
        let mut random = Random::new(seed.wrapping_mul(1 << 32).wrapping_add(n));
        let (_, original, structures) = &bases[n as usize % bases.len()];
        let mut bytes = original.clone();
        mutate(&mut bytes, structures, &mut random);
        let start = Instant::now();
        let result = std::panic::catch_unwind(|| look_at(bytes));
        let text = result.err().map(|p| {
            let known = p.downcast_ref::<String>().cloned();
            known.or_else(|| p.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
        });
        (start.elapsed(), n, text)
    };
    let results: Vec<_> = numbers.into_par_iter().map(run).collect();
    drop(std::panic::take_hook());
    let name = |n: u64| bases[n as usize % bases.len()].0.file_name().unwrap().display().to_string();
    let (slowest, at, _) = results.iter().max_by_key(|r| r.0).unwrap();
    let peak = peak_kib();
    println!(
        "{} mutants of {} artefacts, seed {seed}; slowest {slowest:?} (mutant {at} of {}); peak memory {} MiB",
        results.len(),
        bases.len(),
        name(*at),
        peak.map_or_else(|| "unknown".to_owned(), |k| (k / 1024).to_string()),
    );
    let panics: Vec<String> =
        results.iter().filter_map(|(_, n, p)| p.as_ref().map(|p| format!("{n} ({}): {p}", name(*n)))).collect();
    assert!(panics.is_empty(), "{} mutants panic:\n{}", panics.len(), panics.join("\n"));
    if let Some(peak) = peak {
        assert!(peak < 256 << 10, "peak memory {peak} KiB");
    }
}

/// `VmHWM` of this process.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()
}
