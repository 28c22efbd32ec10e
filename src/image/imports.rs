//! Sorts imported names by who has to provide them.

use cpp_demangle::{DemangleOptions, Symbol};

/// Who provides an imported function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// C interface of libtorch
    Shim,
    /// C interface of ExecuTorch's own runtime, by prefix
    ExecuTorch,
    /// CUDA or ROCm driver and runtime
    Gpu,
    /// Level Zero and SYCL
    Xpu,
    /// mangled C++ of libtorch
    LeakedCxx,
    /// the C, C++, OpenMP and math libraries, or something unknown
    Other,
}

/// Prefixes of vendors' functions; the letter behind them is a capital.
const GPU_PREFIXES: &[&str] = &["cu", "cuda", "nvrtc", "nvJitLink", "hip", "hiprtc"];
/// Level Zero and SYCL: `zeModuleCreate`, `zesInit`.
const XPU_PREFIXES: &[&str] = &["ze", "zes", "zex"];

fn has_vendor_prefix(name: &str, prefixes: &[&str]) -> bool {
    prefixes
        .iter()
        .any(|prefix| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase())))
}

/// Sorts one name.
pub fn provider(name: &str) -> Provider {
    if name.starts_with("executorch_") {
        Provider::ExecuTorch
    } else if is_shim(name) {
        Provider::Shim
    } else if has_vendor_prefix(name, GPU_PREFIXES) {
        Provider::Gpu
    } else if has_vendor_prefix(name, XPU_PREFIXES) || (name.starts_with("_Z") && name.contains("4sycl")) {
        Provider::Xpu
    } else if is_libtorch_cxx(name) {
        Provider::LeakedCxx
    } else {
        Provider::Other
    }
}

/// A C function of libtorch; the stable interface for extensions (2.10 and newer) is called `torch_*`.
pub fn is_shim(name: &str) -> bool {
    name.starts_with("aoti_") || name.starts_with("torch_")
}

/// Mangled C++ (Itanium or Microsoft) that mentions a namespace of libtorch.
pub fn is_libtorch_cxx(name: &str) -> bool {
    if name.starts_with("_Z") {
        // nested names begin with N, those of constant member functions with NK
        memchr::memchr_iter(b'N', name.as_bytes()).filter_map(|at| name.get(at..)?.strip_prefix('N')).any(|rest| {
            let scope = rest.strip_prefix('K').unwrap_or(rest);
            ["2at", "3c10", "5torch", "6caffe2"].iter().any(|namespace| scope.starts_with(namespace))
        })
    } else if name.starts_with('?') {
        ["@at@@", "@c10@@", "@torch@@"].iter().any(|part| name.contains(part))
    } else {
        false
    }
}

/// The C++ name, or the mangled one where it cannot be read.
pub fn demangled(name: &str) -> String {
    let parsed = Symbol::new(name).ok();
    parsed.and_then(|s| s.demangle_with_options(&DemangleOptions::default()).ok()).unwrap_or_else(|| name.to_owned())
}

/// What a library has no business with: starting processes, the network, loading code. Names of C libraries
/// and of Windows; what a statically linked C++ runtime uses by itself is not in it (`poll`, `syscall`,
/// `LoadLibraryW`, `GetProcAddress`).
const SUSPICIOUS: &[(&str, &str)] = &[
    ("system", "starts a process"),
    ("popen", "starts a process"),
    ("fork", "starts a process"),
    ("vfork", "starts a process"),
    ("execl", "starts a process"),
    ("execle", "starts a process"),
    ("execlp", "starts a process"),
    ("execv", "starts a process"),
    ("execve", "starts a process"),
    ("execveat", "starts a process"),
    ("execvp", "starts a process"),
    ("execvpe", "starts a process"),
    ("fexecve", "starts a process"),
    ("posix_spawn", "starts a process"),
    ("posix_spawnp", "starts a process"),
    ("_popen", "starts a process"),
    ("_wsystem", "starts a process"),
    ("CreateProcessA", "starts a process"),
    ("CreateProcessW", "starts a process"),
    ("ShellExecuteA", "starts a process"),
    ("ShellExecuteW", "starts a process"),
    ("WinExec", "starts a process"),
    ("ptrace", "controls another process"),
    ("process_vm_writev", "controls another process"),
    ("WriteProcessMemory", "controls another process"),
    ("CreateRemoteThread", "controls another process"),
    ("socket", "uses the network"),
    ("connect", "uses the network"),
    ("bind", "uses the network"),
    ("listen", "uses the network"),
    ("accept", "uses the network"),
    ("sendto", "uses the network"),
    ("recvfrom", "uses the network"),
    ("getaddrinfo", "uses the network"),
    ("gethostbyname", "uses the network"),
    ("WSAStartup", "uses the network"),
    ("WSASocketA", "uses the network"),
    ("WSASocketW", "uses the network"),
    ("URLDownloadToFileA", "uses the network"),
    ("URLDownloadToFileW", "uses the network"),
    ("InternetOpenA", "uses the network"),
    ("InternetOpenW", "uses the network"),
    ("WinHttpOpen", "uses the network"),
    ("curl_easy_perform", "uses the network"),
    ("dlopen", "loads code"),
    ("dlmopen", "loads code"),
    ("memfd_create", "loads code"),
    ("mprotect", "changes the protection of memory"),
    ("unlink", "changes files"),
    ("unlinkat", "changes files"),
    ("rename", "changes files"),
    ("remove", "changes files"),
    ("rmdir", "changes files"),
    ("chmod", "changes files"),
    ("DeleteFileA", "changes files"),
    ("DeleteFileW", "changes files"),
    ("setuid", "changes rights"),
    ("setenv", "changes the environment"),
    ("putenv", "changes the environment"),
    ("Py_Initialize", "runs Python"),
    ("PyRun_SimpleString", "runs Python"),
    ("PyRun_SimpleStringFlags", "runs Python"),
];

/// Why a C function is outside what AOTInductor libraries import; `None` for harmless ones.
pub fn suspicion(name: &str) -> Option<&'static str> {
    SUSPICIOUS.iter().find(|row| row.0 == name).map(|row| row.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_by_provider() {
        for (name, expected) in [
            ("aoti_torch_empty_strided", Provider::Shim),
            ("torch_call_dispatcher", Provider::Shim),
            ("executorch_aoti_torch_empty_strided", Provider::ExecuTorch),
            ("cuModuleLoadData", Provider::Gpu),
            ("cudaMalloc", Provider::Gpu),
            ("hipMalloc", Provider::Gpu),
            ("zeModuleCreate", Provider::Xpu),
            ("_ZN4sycl3_V15queueC1Ev", Provider::Xpu),
            ("_ZN3c1019UndefinedTensorImpl10_singletonE", Provider::LeakedCxx),
            ("_Z16aoti_torch_dtypeIN3c104HalfEEiv", Provider::LeakedCxx),
            ("?get@TensorImpl@c10@@QEAAXXZ", Provider::LeakedCxx),
            ("_ZNSt8ios_base4InitC1Ev", Provider::Other),
            ("zeroes", Provider::Other),
            ("curl_easy_perform", Provider::Other),
            ("malloc", Provider::Other),
        ] {
            assert_eq!(provider(name), expected, "{name}");
        }
    }

    #[test]
    fn demangles_what_it_can() {
        assert_eq!(demangled("_ZN3c1019UndefinedTensorImpl10_singletonE"), "c10::UndefinedTensorImpl::_singleton");
        assert_eq!(demangled("_Z"), "_Z");
    }
}
