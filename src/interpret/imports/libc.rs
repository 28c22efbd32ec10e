//! The C library: memory, text, environment, threads that do not exist.

use super::{Row, first_argument, throw, zero};
use crate::interpret::layout;
use crate::interpret::machine::{Answer, Exit, Machine};
use crate::interpret::value::Value;
use crate::limits;

pub const TABLE: &[Row] = &[
    ("malloc", allocate),
    ("aligned_alloc", |m| Ok(Value::new(allocate_block(m, 1)?))),
    ("calloc", calloc),
    ("realloc", realloc),
    ("posix_memalign", posix_memalign),
    ("free", zero),
    ("memcpy", memcpy),
    ("memmove", memcpy),
    ("__memcpy_chk", memcpy),
    ("__memmove_chk", memcpy),
    ("memset", memset),
    ("__memset_chk", memset),
    ("memcmp", memcmp),
    ("bcmp", memcmp),
    ("memchr", memchr_),
    ("strlen", strlen),
    ("strnlen", strnlen),
    ("strcmp", strcmp),
    ("strncmp", strncmp),
    ("strcoll", strcmp),
    ("__strcoll_l", strcmp),
    ("strchr", strchr),
    ("strrchr", strrchr),
    ("strstr", strstr),
    ("strcpy", strcpy),
    ("strdup", strdup),
    ("strtol", strtol),
    ("strtoll", strtol),
    ("strtoul", strtol),
    ("strtoull", strtol),
    ("__isoc23_strtol", strtol),
    ("__isoc23_strtoll", strtol),
    ("__isoc23_strtoul", strtol),
    ("__isoc23_strtoull", strtol),
    ("atoi", |m| {
        let text = m.arg(0);
        Ok(Value::new(parse_integer(&m.text(text)?).0 as u64))
    }),
    ("toupper", |m| Ok(Value::new(u64::from((m.arg(0) as u8).to_ascii_uppercase())))),
    ("tolower", |m| Ok(Value::new(u64::from((m.arg(0) as u8).to_ascii_lowercase())))),
    ("isspace", |m| Ok(Value::new(u64::from((m.arg(0) as u8).is_ascii_whitespace())))),
    ("isdigit", |m| Ok(Value::new(u64::from((m.arg(0) as u8).is_ascii_digit())))),
    ("snprintf", |m| print(m, 0, 2)),
    ("__snprintf_chk", |m| print(m, 0, 4)),
    ("vsnprintf", |m| print(m, 0, 2)),
    ("__vsnprintf_chk", |m| print(m, 0, 4)),
    ("getenv", getenv),
    ("secure_getenv", getenv),
    ("__errno_location", |_| Ok(Value::new(layout::ERRNO))),
    ("__tls_get_addr", tls_get_addr),
    (TLS_DESCRIPTOR, tls_descriptor),
    ("__getauxval", zero),
    ("getauxval", zero),
    ("abort", throw),
    ("exit", throw),
    ("_exit", throw),
    ("__assert_fail", throw),
    ("__stack_chk_fail", throw),
    ("raise", throw),
    ("longjmp", throw),
    // unwinders of static C++ libraries come here
    ("dl_iterate_phdr", throw),
    ("_dl_find_object", throw),
    ("pthread_mutex_lock", zero),
    ("pthread_mutex_unlock", zero),
    ("pthread_mutex_init", zero),
    ("pthread_mutex_destroy", zero),
    ("pthread_rwlock_rdlock", zero),
    ("pthread_rwlock_wrlock", zero),
    ("pthread_rwlock_unlock", zero),
    ("pthread_rwlock_tryrdlock", zero),
    ("pthread_rwlock_trywrlock", zero),
    ("pthread_cond_signal", zero),
    ("pthread_cond_broadcast", zero),
    ("pthread_cond_wait", zero),
    ("pthread_cond_clockwait", zero),
    ("pthread_cond_destroy", zero),
    ("pthread_once", pthread_once),
    ("__pthread_key_create", zero),
    ("pthread_key_create", zero),
    ("pthread_key_delete", zero),
    ("pthread_getspecific", zero),
    ("pthread_setspecific", zero),
    ("pthread_self", |_| Ok(Value::new(layout::THREAD_POINTER))),
    ("__gthread_active_p", zero),
    ("sched_yield", zero),
    ("usleep", zero),
    ("nanosleep", zero),
    ("time", zero),
    ("clock_gettime", zero),
    ("gettimeofday", zero),
    ("__fprintf_chk", zero),
    ("fprintf", zero),
    ("printf", zero),
    ("puts", zero),
    ("putc", zero),
    ("fputs", zero),
    ("fputc", zero),
    ("fwrite", |m| Ok(m.argument(2))),
    ("fflush", zero),
    ("syscall", zero),
    ("setlocale", zero),
    ("uselocale", first_argument),
    ("__uselocale", first_argument),
    ("newlocale", |_| Ok(Value::new(1))),
    ("__newlocale", |_| Ok(Value::new(1))),
    ("freelocale", zero),
    ("__freelocale", zero),
    ("__duplocale", first_argument),
    ("__nl_langinfo_l", |m| Ok(Value::new(m.literal("")))),
    ("nl_langinfo", |m| Ok(Value::new(m.literal("")))),
    ("__ctype_get_mb_cur_max", |_| Ok(Value::new(1))),
    ("__wctype_l", |_| Ok(Value::new(1))),
    ("__towupper_l", first_argument),
    ("__towlower_l", first_argument),
    ("btowc", wide_of_byte),
    ("wctob", byte_of_wide),
    ("strxfrm", strxfrm),
    ("__strxfrm_l", strxfrm),
    ("GOMP_parallel", zero),
    ("__cxa_finalize", zero),
    ("atexit", zero),
    ("sysconf", sysconf),
    ("getpagesize", |_| Ok(Value::new(4096))),
    ("getauxval", zero),
];

/// A block of the size in the `n`-th argument.
pub fn allocate_block(m: &mut Machine<'_>, n: usize) -> Result<u64, Exit> {
    let size = m.arg(n);
    // allocators of real hosts refuse such sizes as well
    if size > 1 << 40 {
        return Err(Exit::Throw("bad_alloc".to_owned()));
    }
    Ok(m.allocate(size))
}

pub fn allocate(m: &mut Machine<'_>) -> Answer {
    allocate_block(m, 0).map(Value::new)
}

fn calloc(m: &mut Machine<'_>) -> Answer {
    let size = m.arg(0).saturating_mul(m.arg(1));
    if size > 1 << 40 {
        return Ok(Value::ZERO);
    }
    Ok(Value::new(m.allocate(size)))
}

fn realloc(m: &mut Machine<'_>) -> Answer {
    let (old, size) = (m.arg(0), m.arg(1));
    let new = allocate_block(m, 1)?;
    if let Some(had) = m.heap.blocks.get(&old).copied() {
        m.copy_bytes(new, old, had.min(size))?;
    }
    Ok(Value::new(new))
}

fn posix_memalign(m: &mut Machine<'_>) -> Answer {
    let (slot, alignment) = (m.arg(0), m.arg(1));
    let alignment = if alignment.is_power_of_two() { alignment.min(1 << 20) } else { 16 };
    let size = m.arg(2);
    if size > 1 << 40 {
        return Ok(Value::new(12)); // ENOMEM
    }
    let block = m.allocate(size.saturating_add(alignment));
    let aligned = block.wrapping_add(alignment - 1) & !(alignment - 1);
    m.heap.blocks.insert(aligned, size);
    m.set_word(slot, aligned);
    Ok(Value::ZERO)
}

pub fn memcpy(m: &mut Machine<'_>) -> Answer {
    let (to, from, len) = (m.arg(0), m.arg(1), m.arg(2));
    m.copy_bytes(to, from, len)?;
    Ok(Value::new(to))
}

fn memset(m: &mut Machine<'_>) -> Answer {
    let (to, byte, len) = (m.arg(0), m.arg(1) as u8, m.arg(2));
    m.reasonable(len)?;
    m.charge(len)?;
    m.bus.memory.fill(to, byte, len as usize);
    Ok(Value::new(to))
}

fn ordering(order: std::cmp::Ordering) -> Value {
    Value::new(order as i64 as u64)
}

pub fn memcmp(m: &mut Machine<'_>) -> Answer {
    let (a, b, len) = (m.arg(0), m.arg(1), m.arg(2));
    let (a, b) = (m.bytes(a, len)?, m.bytes(b, len)?);
    Ok(ordering(a.cmp(&b)))
}

fn memchr_(m: &mut Machine<'_>) -> Answer {
    let (at, byte, len) = (m.arg(0), m.arg(1) as u8, m.arg(2));
    // callers may promise more than there is, when they know that the byte is there
    let bytes = m.bytes(at, len.min(limits::COPY_BYTES))?;
    let found = memchr::memchr(byte, &bytes);
    if found.is_none() {
        m.reasonable(len)?;
    }
    Ok(Value::new(found.map_or(0, |n| at.wrapping_add(n as u64))))
}

fn strlen(m: &mut Machine<'_>) -> Answer {
    let at = m.arg(0);
    let len = m.text(at)?.len() as u64;
    m.charge(len)?;
    Ok(Value::new(len))
}

fn strnlen(m: &mut Machine<'_>) -> Answer {
    let (at, cap) = (m.arg(0), m.arg(1));
    Ok(Value::new((m.text(at)?.len() as u64).min(cap)))
}

fn strcmp(m: &mut Machine<'_>) -> Answer {
    let (a, b) = (m.arg(0), m.arg(1));
    let (a, b) = (m.text(a)?, m.text(b)?);
    m.charge(a.len() as u64)?;
    Ok(ordering(a.cmp(&b)))
}

fn strncmp(m: &mut Machine<'_>) -> Answer {
    let (a, b, len) = (m.arg(0), m.arg(1), usize::try_from(m.arg(2)).unwrap_or(usize::MAX));
    // where one text ends before the cap, the comparison does too
    let cap = len.min(limits::COPY_BYTES as usize + 1);
    let (a, b) = (m.bus.memory.cstr(a, cap), m.bus.memory.cstr(b, cap));
    m.reasonable(a.len().min(b.len()) as u64)?;
    m.charge(a.len() as u64)?;
    Ok(ordering(a.cmp(&b)))
}

fn strchr(m: &mut Machine<'_>) -> Answer {
    let (at, byte) = (m.arg(0), m.arg(1) as u8);
    let text = m.text(at)?;
    let found = if byte == 0 { Some(text.len()) } else { memchr::memchr(byte, &text) };
    Ok(Value::new(found.map_or(0, |n| at.wrapping_add(n as u64))))
}

fn strrchr(m: &mut Machine<'_>) -> Answer {
    let (at, byte) = (m.arg(0), m.arg(1) as u8);
    let text = m.text(at)?;
    let found = if byte == 0 { Some(text.len()) } else { memchr::memrchr(byte, &text) };
    Ok(Value::new(found.map_or(0, |n| at.wrapping_add(n as u64))))
}

fn strstr(m: &mut Machine<'_>) -> Answer {
    let (at, what) = (m.arg(0), m.arg(1));
    let (text, what) = (m.text(at)?, m.text(what)?);
    m.charge(text.len() as u64)?;
    Ok(Value::new(memchr::memmem::find(&text, &what).map_or(0, |n| at.wrapping_add(n as u64))))
}

fn strcpy(m: &mut Machine<'_>) -> Answer {
    let (to, from) = (m.arg(0), m.arg(1));
    let mut text = m.text(from)?;
    text.push(0);
    m.charge(text.len() as u64)?;
    m.bus.memory.write_bytes(to, &text);
    Ok(Value::new(to))
}

pub fn strdup(m: &mut Machine<'_>) -> Answer {
    let from = m.arg(0);
    let mut text = m.text(from)?;
    text.push(0);
    m.charge(text.len() as u64)?;
    let to = m.allocate(text.len() as u64);
    m.bus.memory.write_bytes(to, &text);
    Ok(Value::new(to))
}

fn strxfrm(m: &mut Machine<'_>) -> Answer {
    let (to, from, cap) = (m.arg(0), m.arg(1), m.arg(2));
    let mut text = m.text(from)?;
    let len = text.len() as u64;
    m.charge(len)?;
    if len < cap {
        text.push(0);
        m.bus.memory.write_bytes(to, &text);
    }
    Ok(Value::new(len))
}

/// The number at the start of a text and the bytes it takes; decimal, as the callers here use it.
fn parse_integer(text: &[u8]) -> (i64, usize) {
    let blank = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let rest = text.get(blank..).unwrap_or_default();
    let (sign, signs) = match rest.first() {
        Some(b'-') => (-1, 1),
        Some(b'+') => (1, 1),
        _ => (1, 0),
    };
    let digits = rest.get(signs..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
    let value = rest
        .get(signs..signs + digits)
        .unwrap_or_default()
        .iter()
        .fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b.wrapping_sub(b'0'))));
    (sign * value, if digits == 0 { 0 } else { blank + signs + digits })
}

fn strtol(m: &mut Machine<'_>) -> Answer {
    let (at, end) = (m.arg(0), m.arg(1));
    let text = m.text(at)?;
    let (value, len) = parse_integer(&text);
    if end != 0 {
        m.set_word(end, at.wrapping_add(len as u64));
    }
    Ok(Value::new(value as u64))
}

/// Formatted text is only made for messages: the format itself is enough.
fn print(m: &mut Machine<'_>, buffer: usize, format: usize) -> Answer {
    let (buffer, size, format) = (m.arg(buffer), m.arg(1), m.arg(format));
    let mut text = m.text(format)?;
    text.truncate(size.saturating_sub(1).min(256) as usize);
    let len = text.len() as u64;
    text.push(0);
    if buffer != 0 && size > 0 {
        m.bus.memory.write_bytes(buffer, &text);
    }
    Ok(Value::new(len))
}

/// One variable is set: input checks are to run.
fn getenv(m: &mut Machine<'_>) -> Answer {
    let name = m.arg(0);
    let name = m.text(name)?;
    let value = if name == b"AOTI_RUNTIME_CHECK_INPUTS" {
        m.host.asked_for_checks = true;
        m.literal("1")
    } else {
        0
    };
    Ok(Value::new(value))
}

/// The function in our thread-local descriptors, as an import of our own.
pub const TLS_DESCRIPTOR: &str = "$tls descriptor";

/// Gets the descriptor's address where results are (`rax`, `x0`), and answers with an offset from the thread pointer.
fn tls_descriptor(m: &mut Machine<'_>) -> Answer {
    let descriptor = m.cpu.result().bits;
    let offset = m.word(descriptor.wrapping_add(8));
    Ok(Value::new(layout::TLS_BLOCK.wrapping_sub(layout::THREAD_POINTER).wrapping_add(offset)))
}

fn tls_get_addr(m: &mut Machine<'_>) -> Answer {
    let index = m.arg(0);
    let offset = m.word(index.wrapping_add(8));
    Ok(Value::new(layout::TLS_BLOCK.wrapping_add(offset)))
}

/// Once-functions of the C++ library set up what the handlers have already.
fn pthread_once(_: &mut Machine<'_>) -> Answer {
    Ok(Value::ZERO)
}

fn wide_of_byte(m: &mut Machine<'_>) -> Answer {
    let byte = m.arg(0) & 0xff;
    Ok(Value::new(if byte < 0x80 { byte } else { u64::from(u32::MAX) }))
}

fn byte_of_wide(m: &mut Machine<'_>) -> Answer {
    let wide = m.arg(0) & 0xffff_ffff;
    Ok(Value::new(if wide < 0x80 { wide } else { u64::from(u32::MAX) }))
}

/// `_SC_PAGESIZE` is the one that is asked for.
fn sysconf(_: &mut Machine<'_>) -> Answer {
    Ok(Value::new(4096))
}
