//! glibc and libstdc++ of the system, by their files.

use super::Host;
use crate::image::Image;
use crate::image::dating;
use crate::source::{self, Region};
use crate::target::Version;
use std::path::{Path, PathBuf};

/// Folders that the system's loader searches, in its order, on the distributions that torch supports.
const FOLDERS: &[&str] = &[
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "usr/lib64",
    "lib",
    "usr/lib",
];

pub(super) fn read(root: &Path, host: &mut Host) {
    host.glibc = find(root, "libc.so.6").and_then(|file| glibc(&file));
    if host.glibc.is_none() {
        host.says_unknown("glibc", "no libc.so.6 in the system's folders (musl?); give --glibc");
    }
    host.libstdcxx = find(root, "libstdc++.so.6").and_then(|file| libstdcxx(&file));
    if host.libstdcxx.is_none() {
        host.says_unknown("libstdcxx", "no libstdc++.so.6 in the system's folders; give --libstdcxx");
    }
}

fn find(root: &Path, name: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| root.join(folder).join(name)).find(|file| file.is_file())
}

/// The banner that running libc.so.6 prints; symbol versions can lag behind the release.
fn glibc(file: &Path) -> Option<String> {
    const BANNER: &[u8] = b"stable release version ";
    let bytes = source::open_file(file).ok()?;
    let image = Image::open(Region::whole(&*bytes)).ok()?;
    let stated = dating::texts(&image).into_iter().find_map(|part| {
        let rest = part.get(memchr::memmem::find(part, BANNER)? + BANNER.len()..)?;
        let end = rest.iter().position(|b| !b.is_ascii_digit() && *b != b'.')?;
        let version = std::str::from_utf8(rest.get(..end)?).ok()?;
        Some(version.trim_end_matches('.').to_owned())
    });
    stated.or_else(|| highest(&image, "GLIBC_"))
}

fn libstdcxx(file: &Path) -> Option<String> {
    let bytes = source::open_file(file).ok()?;
    highest(&Image::open(Region::whole(&*bytes)).ok()?, "GLIBCXX_")
}

fn highest(image: &Image<'_>, prefix: &str) -> Option<String> {
    let needed = image.needed().ok()?;
    let versions = needed.defined_versions.iter().filter_map(|v| v.strip_prefix(prefix));
    let numbers = versions.filter_map(Version::from_text);
    numbers.max().map(|v| v.to_string())
}
