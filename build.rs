//! Links the binary to a fixed address on Linux with glibc: as a position-independent executable it starts with some
//! 39,000 relocations (tables of instructions and of names), which take a third of the time of `show` on a small file.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let of_target = |key: &str| std::env::var(key).unwrap_or_default();
    if of_target("CARGO_CFG_TARGET_OS") == "linux" && of_target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
