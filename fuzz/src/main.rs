//! On stable: replays files through one reader. With cargo-fuzz (`--cfg fuzzing`): the fuzz target, whose reader the
//! environment variable `AOTI_FUZZ_READER` names.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    use std::sync::LazyLock;
    static READER: LazyLock<aoti_inspect_fuzz::targets::Reader> = LazyLock::new(|| {
        let name = std::env::var("AOTI_FUZZ_READER").unwrap_or_else(|_| "zip".to_owned());
        aoti_inspect_fuzz::reader(&name).unwrap_or_else(|| panic!("no reader is called {name}"))
    });
    READER(data);
});

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;
    let mut args = std::env::args_os().skip(1);
    let name = args.next().unwrap_or_default();
    let Some(reader) = name.to_str().and_then(aoti_inspect_fuzz::reader) else {
        let names: Vec<&str> = aoti_inspect_fuzz::READERS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: readers READER FILE...\nreaders: {}", names.join(", "));
        return ExitCode::from(2);
    };
    for path in args {
        match std::fs::read(&path) {
            Ok(data) => {
                let start = std::time::Instant::now();
                reader(&data);
                println!("{}: {:?}", path.display(), start.elapsed());
            }
            Err(e) => {
                eprintln!("{}: {e}", path.display());
                return ExitCode::from(3);
            }
        }
    }
    ExitCode::SUCCESS
}
