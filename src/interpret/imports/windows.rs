//! Windows: kernel32 and the C runtime, as far as libraries built by MinGW use them. The C++ library is linked
//! statically there, and brings its own threads along.

use super::{Row, libc, throw, zero};
use crate::interpret::layout;
use crate::interpret::machine::{Answer, Machine};
use crate::interpret::value::Value;

pub const TABLE: &[Row] = &[
    ("AddVectoredExceptionHandler", handle),
    ("RemoveVectoredExceptionHandler", one),
    ("CloseHandle", one),
    ("CreateEventA", handle),
    ("CreateEventW", handle),
    ("CreateMutexA", handle),
    ("CreateMutexW", handle),
    ("CreateSemaphoreA", handle),
    ("CreateSemaphoreW", handle),
    ("OpenProcess", handle),
    ("DuplicateHandle", duplicate_handle),
    ("DeleteCriticalSection", zero),
    ("EnterCriticalSection", zero),
    ("LeaveCriticalSection", zero),
    ("InitializeCriticalSection", zero),
    ("InitializeCriticalSectionAndSpinCount", one),
    ("TryEnterCriticalSection", one),
    ("FormatMessageA", zero),
    ("FreeLibrary", one),
    ("GetCurrentProcess", |_| Ok(Value::new(u64::MAX))),
    ("GetCurrentThread", |_| Ok(Value::new(u64::MAX - 1))),
    ("GetCurrentProcessId", one),
    ("GetCurrentThreadId", one),
    ("GetHandleInformation", zero),
    ("GetLastError", zero),
    ("SetLastError", zero),
    ("GetModuleHandleA", zero),
    ("GetModuleHandleW", zero),
    ("GetModuleHandleExW", zero),
    ("GetProcAddress", zero),
    ("LoadLibraryA", zero),
    ("LoadLibraryW", zero),
    ("GetProcessAffinityMask", zero),
    ("SetProcessAffinityMask", one),
    ("GetThreadPriority", zero),
    ("SetThreadPriority", one),
    ("GetSystemTimeAsFileTime", write_zero),
    ("GetSystemTimePreciseAsFileTime", write_zero),
    ("QueryPerformanceCounter", write_zero),
    ("QueryPerformanceFrequency", |m| {
        let to = m.arg(0);
        m.set_word(to, 10_000_000);
        Ok(Value::new(1))
    }),
    ("GetTickCount", zero),
    ("GetTickCount64", zero),
    ("IsDBCSLeadByteEx", zero),
    ("IsDebuggerPresent", zero),
    ("OutputDebugStringA", zero),
    ("LocalFree", zero),
    ("RaiseException", throw),
    ("RtlUnwindEx", throw),
    ("RtlCaptureContext", zero),
    ("RtlLookupFunctionEntry", zero),
    ("RtlVirtualUnwind", throw),
    ("ReleaseSemaphore", one),
    ("ResetEvent", one),
    ("SetEvent", one),
    ("Sleep", zero),
    ("SwitchToThread", zero),
    ("TlsAlloc", tls_allocate),
    ("TlsFree", one),
    ("TlsGetValue", |m| {
        let slot = tls_slot(m);
        Ok(Value::new(m.word(slot)))
    }),
    ("TlsSetValue", |m| {
        let (slot, value) = (tls_slot(m), m.arg(1));
        m.set_word(slot, value);
        Ok(Value::new(1))
    }),
    ("VirtualProtect", one),
    ("MultiByteToWideChar", zero),
    ("WideCharToMultiByte", zero),
    ("VirtualQuery", zero),
    ("WaitForSingleObject", zero),
    ("WaitForMultipleObjects", zero),
    ("__iob_func", object),
    ("__acrt_iob_func", object),
    ("___lc_codepage_func", zero),
    ("___mb_cur_max_func", one),
    ("__setusermatherr", zero),
    ("_amsg_exit", throw),
    ("_errno", |_| Ok(Value::new(layout::ERRNO))),
    ("_initterm", zero),
    ("_initterm_e", zero),
    ("_lock", zero),
    ("_unlock", zero),
    ("_onexit", super::first_argument),
    ("_setjmp", zero),
    ("_setjmpex", zero),
    ("_strdup", libc::strdup),
    ("_aligned_malloc", libc::allocate),
    ("_aligned_free", zero),
    ("_getpid", one),
    ("localeconv", object),
    ("signal", zero),
];

fn one(_: &mut Machine<'_>) -> Answer {
    Ok(Value::new(1))
}

/// A handle that nobody looks into.
fn handle(m: &mut Machine<'_>) -> Answer {
    Ok(Value::new(m.new_object()))
}

/// A structure full of zeros.
fn object(m: &mut Machine<'_>) -> Answer {
    Ok(Value::new(m.allocate(256)))
}

/// `DuplicateHandle(process, handle, process, to, …)`
fn duplicate_handle(m: &mut Machine<'_>) -> Answer {
    let (handle, to) = (m.arg(1), m.arg(3));
    m.set_word(to, handle);
    Ok(Value::new(1))
}

fn write_zero(m: &mut Machine<'_>) -> Answer {
    let to = m.arg(0);
    m.set_word(to, 0);
    Ok(Value::new(1))
}

/// Slots that `TlsAlloc` gives out.
const TLS_SLOTS: u64 = 64;

fn tls_allocate(m: &mut Machine<'_>) -> Answer {
    // the first word counts, the slots follow
    let used = m.word(layout::TLS.start + 0x1000);
    m.set_word(layout::TLS.start + 0x1000, used.wrapping_add(1));
    Ok(Value::new(used % TLS_SLOTS))
}

fn tls_slot(m: &mut Machine<'_>) -> u64 {
    layout::TLS.start + 0x1008 + 8 * (m.arg(0) % TLS_SLOTS)
}
