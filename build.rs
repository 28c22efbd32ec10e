//! Tables as JSON, and where the binary is linked to.

use std::path::Path;

/// Tables that people keep as TOML, with their sources in comments. Reading two of them as such was a fifth of the
/// instructions of `show` on a small CUDA package.
const TABLES: &[&str] = &["advisories", "cpus", "gpus"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    for name in TABLES {
        let path = format!("src/target/data/{name}.toml");
        println!("cargo:rerun-if-changed={path}");
        let table: serde_json::Value =
            toml::from_str(&std::fs::read_to_string(&path)?).map_err(|e| format!("{path}: {e}"))?;
        std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join(format!("{name}.json")), table.to_string())?;
    }
    // as a position-independent executable the binary starts with some 39,000 relocations (tables of instructions and of
    // names), some 0.4 ms before anything is done
    let of_target = |key: &str| std::env::var(key).unwrap_or_default();
    if of_target("CARGO_CFG_TARGET_OS") == "linux" && of_target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    Ok(())
}
