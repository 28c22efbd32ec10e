//! How long a look takes, on real artefacts: `cargo bench`. Ratios to public tools: `benches/compare.sh`.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "a bench without its artefact cannot run")]

use aoti_inspect::explain::{self, Case};
use aoti_inspect::image::{Image, isa};
use aoti_inspect::interpret::{self, Options};
use aoti_inspect::source::Region;
use aoti_inspect::target::{InputRequests, InputTexts, LoadConfig, TorchVersion};
use aoti_inspect::{CodeReading, Settings, container, render};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};

fn artifact(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/artifacts").join(name)
}

/// Packages by what they are: with source, with GPU kernels, without a library.
const PACKAGES: &[&str] = &[
    "2.15.0-cpu-mlp_dynamic.pt2",
    "2.11.0-cuda-multi_arch.pt2",
    "2.15.0-cpu-cpp_only.pt2",
    "2.6.0-cpu-mlp_dynamic.pt2",
];
/// Libraries alone: their code is the only witness.
const LIBRARIES: &[&str] = &[
    "2.15.0-cpu-mlp_dynamic.so",
    "2.2.2-cpu-mlp_dynamic.so",
    "2.4.1-cpu-mlp_dynamic.so",
    "2.11.0-cuda-embed_cubin.so",
];

fn packages(c: &mut Criterion) {
    for name in PACKAGES {
        let path = artifact(name);
        let mut group = c.benchmark_group(*name);
        group.bench_function("open", |b| b.iter(|| container::open(black_box(&path)).unwrap()));
        group.bench_function("show", |b| b.iter(|| show(&path)));
        group.bench_function("verify", |b| b.iter(|| verify(&path)));
        group.finish();
    }
}

fn show(path: &Path) {
    let artifact = aoti_inspect::inspect(path, &Settings::default()).unwrap();
    render::json::render_show(&[artifact], &[], &mut std::io::sink()).unwrap();
}

fn verify(path: &Path) {
    let settings = Settings { code: CodeReading::Always, ..Settings::default() };
    let artifact = aoti_inspect::inspect(path, &settings).unwrap();
    let texts = ["f32[8, 10]".to_owned()];
    let config = LoadConfig {
        inputs: InputRequests::from_texts(InputTexts { input: &texts, ..InputTexts::default() }).unwrap(),
        torch: TorchVersion::from_text("2.15.0").ok(),
        ..LoadConfig::default()
    };
    black_box(aoti_inspect::verify(&artifact, &config));
}

fn libraries(c: &mut Criterion) {
    for name in LIBRARIES {
        let bytes = std::fs::read(artifact(name)).unwrap();
        let mut group = c.benchmark_group(*name);
        let image = || Image::open(Region::whole(&bytes)).unwrap();
        group.bench_function("show", |b| b.iter(|| show(&artifact(name))));
        // a fresh image each time: it remembers the tables that it has read
        group.bench_function("code recovery", |b| b.iter(|| interpret::recover(&image(), Options::default()).unwrap()));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("instruction scan", |b| b.iter(|| isa::scan(&image()).unwrap()));
        group.finish();
    }
}

/// 100,000 lines of a server that goes on after each failure.
fn long_log() -> String {
    let mut log = String::new();
    for n in 0..100_000 {
        let _ = match n % 1_000 {
            999 => writeln!(
                log,
                "RuntimeError: Error: input_handles[0]: unmatched dim value at 1, expected: 10, but got: {}",
                n % 17
            ),
            _ => writeln!(log, "2025-03-01 12:00:{:02},123 INFO worker-{} request {n} took 12.3 ms", n % 60, n % 8),
        };
    }
    log
}

fn logs(c: &mut Criterion) {
    let log = long_log();
    let artifact = aoti_inspect::inspect(&artifact("2.15.0-cpu-mlp_dynamic.pt2"), &Settings::default()).unwrap();
    let load = LoadConfig::default();
    let mut group = c.benchmark_group("log of 100,000 lines");
    group.throughput(Throughput::Bytes(log.len() as u64));
    group.sample_size(20);
    group.bench_function("explain", |b| {
        b.iter(|| {
            let reading = explain::log::read(log.as_bytes()).unwrap();
            let case = Case { reading: &reading, artifact: Some(&artifact), places: &[], load: &load, exit: None };
            black_box(explain::explain(&case))
        });
    });
    group.finish();
}

criterion_group!(benches, packages, libraries, logs);
criterion_main!(benches);
