//! What a host sees: platform, torch, GPU, CPU, C and C++ library, operators, sizes.

use super::Changes;
use crate::model::{KernelKind, Model};
use crate::report::{Grade, Side};

pub(super) fn compare(old: &Model, new: &Model, changes: &mut Changes<'_>) {
    let platform = |m: &Model| m.platform.as_ref().map(|p| format!("{} {}", p.os, p.arch));
    changes.equal("platform", Side::Host, platform(old).as_ref(), platform(new).as_ref());
    kernels(old, new, changes);

    let (a, b) = (&old.requires, &new.requires);
    minimum("requires.torch_min", a.torch_min, b.torch_min, changes);
    if a.torch_max != b.torch_max {
        let grade = match (a.torch_max, b.torch_max) {
            (Some(was), Some(is)) if is > was => Grade::Compatible,
            (Some(_), None) => Grade::Compatible,
            _ => Grade::Breaking,
        };
        let text = |r: Option<crate::model::Release>| Some(r.map_or_else(|| "open".to_owned(), |r| r.to_string()));
        changes.push("requires.torch_max", Side::Host, grade, text(a.torch_max), text(b.torch_max));
    }
    for (fact, was, is) in [
        ("requires.glibc", &a.glibc, &b.glibc),
        ("requires.glibcxx", &a.glibcxx, &b.glibcxx),
        ("requires.cxxabi", &a.cxxabi, &b.cxxabi),
        ("requires.gomp", &a.gomp, &b.gomp),
    ] {
        needed_version(fact, was.as_deref(), is.as_deref(), changes);
    }
    const NEED: (Grade, Grade) = (Grade::Compatible, Grade::Breaking);
    changes.list(
        "requires.libraries",
        Side::Host,
        (&beyond_the_system(&a.libraries), &beyond_the_system(&b.libraries)),
        NEED,
    );
    changes.list("requires.leaked_cxx", Side::Host, (&a.leaked_cxx, &b.leaked_cxx), NEED);
    changes.list("requires.unknown_shims", Side::Host, (&a.unknown_shims, &b.unknown_shims), NEED);
    if let (Some(was), Some(is)) = (&a.cpu_isa.used, &b.cpu_isa.used) {
        changes.list("requires.cpu_isa.used", Side::Host, (was, is), NEED);
    } else if let (Some(was), Some(is)) = (&a.cpu_isa.declared, &b.cpu_isa.declared) {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        changes.list("requires.cpu_isa.declared", Side::Host, (&words(was), &words(is)), NEED);
    }
    let ops = |m: &Model| -> Vec<String> { m.requires.custom_ops.iter().filter_map(|o| o.name.clone()).collect() };
    changes.list("requires.custom_ops", Side::Host, (&ops(old), &ops(new)), NEED);
    if a.executable_stack != b.executable_stack {
        let grade = if b.executable_stack == Some(true) { Grade::Breaking } else { Grade::Compatible };
        let text = |v: Option<bool>| Some(v.map_or_else(|| "unknown".to_owned(), |v| v.to_string()));
        changes.push(
            "requires.executable_stack",
            Side::Host,
            grade,
            text(a.executable_stack),
            text(b.executable_stack),
        );
    }
    if a.string_abi != b.string_abi && a.string_abi.is_some() && b.string_abi.is_some() {
        changes.equal("requires.string_abi", Side::Host, a.string_abi.as_ref(), b.string_abi.as_ref());
    }
    minimum("requires.page_size", a.page_size, b.page_size, changes);
}

/// Needed libraries apart from those of glibc and GCC, which a host with libtorch has; their versions are compared.
fn beyond_the_system(libraries: &[String]) -> Vec<String> {
    const SYSTEM: [&str; 9] = [
        "ld-linux",
        "libc.so",
        "libm.so",
        "libdl.so",
        "libpthread.so",
        "librt.so",
        "libgcc_s.so",
        "libstdc++.so",
        "libgomp.so",
    ];
    libraries.iter().filter(|name| !SYSTEM.iter().any(|start| name.starts_with(start))).cloned().collect()
}

/// A lower bound on the host: higher is breaking, lower compatible. Absent means that nothing is asked,
/// for a fact that is unknown `show` says so.
fn minimum<T: PartialOrd + ToString>(fact: &str, was: Option<T>, is: Option<T>, changes: &mut Changes<'_>) {
    if was == is {
        return;
    }
    let grade = if is > was { Grade::Breaking } else { Grade::Compatible };
    changes.push(fact, Side::Host, grade, was.map(|v| v.to_string()), is.map(|v| v.to_string()));
}

fn needed_version(fact: &str, was: Option<&str>, is: Option<&str>, changes: &mut Changes<'_>) {
    let numbers = |text: &str| text.split('.').map(|n| n.parse().unwrap_or(0)).collect::<Vec<u32>>();
    if was == is {
        return;
    }
    let grade = if is.map(numbers) > was.map(numbers) { Grade::Breaking } else { Grade::Compatible };
    changes.push(fact, Side::Host, grade, was.map(str::to_owned), is.map(str::to_owned));
}

/// GPU targets of all kernels together, and the kernels by name.
fn kernels(old: &Model, new: &Model, changes: &mut Changes<'_>) {
    // a target counts only when every GPU kernel has it
    let targets = |m: &Model| -> Vec<String> {
        let mut gpu = m.kernels.iter().filter(|k| k.kind == KernelKind::Triton);
        let first = gpu.next().map(|k| k.archs.iter().map(ToString::to_string).collect::<Vec<_>>());
        gpu.fold(first.unwrap_or_default(), |all, k| {
            all.into_iter().filter(|arch| k.archs.iter().any(|a| a.to_string() == *arch)).collect()
        })
    };
    changes.list("gpu_targets", Side::Host, (&targets(old), &targets(new)), (Grade::Breaking, Grade::Compatible));
    let names = |m: &Model| m.kernels.iter().map(|k| k.name.clone()).collect::<Vec<_>>();
    changes.list("kernels", Side::Host, (&names(old), &names(new)), (Grade::Cosmetic, Grade::Cosmetic));
    let missing = |m: &Model| -> Vec<String> {
        m.kernels.iter().filter(|k| k.present == Some(false)).map(|k| k.name.clone()).collect()
    };
    let grades = (Grade::Compatible, Grade::Breaking);
    changes.list("kernels.missing_files", Side::Host, (&missing(old), &missing(new)), grades);
}

/// Sizes are told from 1 % and 4 KiB on: longer build paths alone move a file by some bytes.
pub(super) fn compare_size(fact: &str, was: u64, is: u64, changes: &mut Changes<'_>) {
    let moved = was.abs_diff(is);
    if moved >= 4096 && moved.saturating_mul(100) >= was.max(is) {
        changes.push(fact, Side::Host, Grade::Cosmetic, Some(was.to_string()), Some(is.to_string()));
    }
}
