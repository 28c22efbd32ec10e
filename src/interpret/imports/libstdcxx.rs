//! libstdc++ without strings and locales: exceptions, guards, containers' helpers, streams that only collect text.

use super::{Row, first_argument, libc, string, throw, zero};
use crate::interpret::explore::Mode;
use crate::interpret::machine::{Answer, Exit, Machine, Stop};
use crate::interpret::value::Value;
use crate::limits;

pub const TABLE: &[Row] = &[
    ("_Znwm", libc::allocate),
    ("_Znam", libc::allocate),
    ("_ZnwmSt11align_val_t", allocate_aligned),
    ("_ZnwmRKSt9nothrow_t", libc::allocate),
    ("_ZnamRKSt9nothrow_t", libc::allocate),
    ("__cxa_allocate_exception", allocate_exception),
    ("__cxa_free_exception", zero),
    ("_ZdlPv", zero),
    ("_ZdaPv", zero),
    ("_ZdlPvm", zero),
    ("_ZdaPvm", zero),
    ("_ZdlPvSt11align_val_t", zero),
    ("_ZdlPvmSt11align_val_t", zero),
    ("__cxa_throw", throw),
    ("__cxa_rethrow", throw),
    ("__cxa_bad_cast", throw),
    ("__cxa_call_unexpected", throw),
    ("__cxa_call_terminate", throw),
    ("__cxa_pure_virtual", throw),
    ("_Unwind_RaiseException", throw),
    ("_Unwind_Resume", throw),
    ("_Unwind_Resume_or_Rethrow", throw),
    ("_ZSt9terminatev", throw),
    ("_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE", throw),
    ("__cxa_begin_catch", zero),
    ("__cxa_end_catch", zero),
    ("__cxa_get_globals", |m| Ok(Value::new(m.literal("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")))),
    ("__cxa_atexit", zero),
    ("__cxa_thread_atexit", zero),
    ("__cxa_thread_atexit_impl", zero),
    ("__cxa_guard_acquire", guard_acquire),
    ("__cxa_guard_release", zero),
    ("__cxa_guard_abort", zero),
    ("__dynamic_cast", first_argument),
    ("__once_proxy", zero),
    ("_ZNSt13runtime_errorC1EPKc", exception_of_literal),
    ("_ZNSt13runtime_errorC2EPKc", exception_of_literal),
    ("_ZNSt11logic_errorC1EPKc", exception_of_literal),
    ("_ZNSt11logic_errorC2EPKc", exception_of_literal),
    ("_ZNSt16invalid_argumentC1EPKc", exception_of_literal),
    ("_ZNSt12out_of_rangeC1EPKc", exception_of_literal),
    ("_ZNSt13runtime_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", exception_of_string),
    ("_ZNSt13runtime_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", exception_of_string),
    ("_ZNSt11logic_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", exception_of_string),
    ("_ZNSt13runtime_errorC1ERKSs", exception_of_string),
    ("_ZNSt13runtime_errorC2ERKSs", exception_of_string),
    ("_ZNSt13runtime_errorD1Ev", zero),
    ("_ZNSt13runtime_errorD2Ev", zero),
    ("_ZNKSt13runtime_error4whatEv", |m| Ok(Value::new(m.literal("")))),
    ("_ZNSt9exceptionD2Ev", zero),
    ("_ZNSt15__exception_ptr13exception_ptrD1Ev", zero),
    ("_ZNSt18condition_variableC1Ev", zero),
    ("_ZNSt18condition_variableD1Ev", zero),
    ("_ZNSt18condition_variable10notify_oneEv", zero),
    ("_ZNSt18condition_variable10notify_allEv", zero),
    ("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", zero),
    ("_ZNSt6chrono3_V212steady_clock3nowEv", zero),
    ("_ZNSt6chrono3_V212system_clock3nowEv", zero),
    ("_ZNSt6thread20hardware_concurrencyEv", |_| Ok(Value::new(1))),
    ("_ZNSaIcEC1Ev", zero),
    ("_ZNSaIcEC2Ev", zero),
    ("_ZNSaIcED1Ev", zero),
    ("_ZNSaIcED2Ev", zero),
    ("_ZNSaIcEC1ERKS_", zero),
    ("_ZNSaIcEC2ERKS_", zero),
    ("_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm", next_bucket_count),
    ("_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm", need_rehash),
    ("_ZSt11_Hash_bytesPKvmm", hash_bytes),
    ("_ZSt15_Fnv_hash_bytesPKvmm", hash_bytes),
    ("_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_", tree_insert),
    ("_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_", tree_erase),
    ("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base", |m| tree_step(m, LEFT, RIGHT)),
    ("_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base", |m| tree_step(m, LEFT, RIGHT)),
    ("_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base", |m| tree_step(m, RIGHT, LEFT)),
    ("_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base", |m| tree_step(m, RIGHT, LEFT)),
    ("_ZNSt8__detail15_List_node_base7_M_hookEPS0_", list_hook),
    ("_ZNSt8__detail15_List_node_base9_M_unhookEv", list_unhook),
    ("_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l", write_text),
    ("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", write_literal),
    ("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_c", write_character),
    ("_ZNSo3putEc", write_character),
    ("_ZNSo5writeEPKcl", write_text),
    ("_ZNSo5flushEv", first_argument),
    ("_ZNSolsEi", write_number),
    ("_ZNSolsEj", write_number),
    ("_ZNSolsEl", write_number),
    ("_ZNSolsEm", write_number),
    ("_ZNSolsEx", write_number),
    ("_ZNSolsEy", write_number),
    ("_ZNSolsEb", write_number),
    ("_ZNSo9_M_insertIlEERSoT_", write_number),
    ("_ZNSo9_M_insertImEERSoT_", write_number),
    ("_ZNSo9_M_insertIbEERSoT_", write_number),
    ("_ZNSo9_M_insertIxEERSoT_", write_number),
    ("_ZNSo9_M_insertIyEERSoT_", write_number),
    ("_ZNSo9_M_insertIdEERSoT_", first_argument),
    ("_ZNSo9_M_insertIPKvEERSoT_", first_argument),
    ("_ZNSolsEd", first_argument),
    ("_ZNSolsEf", first_argument),
    ("_ZNSolsEPFRSoS_E", first_argument),
    ("_ZNSolsEPKv", first_argument),
    ("_ZSt4endlIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_", first_argument),
    ("_ZNSt8ios_baseC2Ev", zero),
    ("_ZNSt8ios_baseD2Ev", zero),
    ("_ZNSt8ios_base4InitC1Ev", zero),
    ("_ZNSt8ios_base4InitD1Ev", zero),
    ("_ZSt21ios_base_library_initv", zero),
    ("_ZNSt9basic_iosIcSt11char_traitsIcEE4initEPSt15basic_streambufIcS1_E", zero),
    ("_ZNSt9basic_iosIcSt11char_traitsIcEE5clearESt12_Ios_Iostate", zero),
    ("_ZNKSt9basic_iosIcSt11char_traitsIcEE4failEv", zero),
    ("_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev", zero),
    ("_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEED1Ev", zero),
    ("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev", zero),
    ("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEED1Ev", zero),
    ("_ZNSt7__cxx1119basic_istringstreamIcSt11char_traitsIcESaIcEED1Ev", zero),
    ("_ZNSt18basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev", zero),
    ("_ZNSt18basic_stringstreamIcSt11char_traitsIcESaIcEED1Ev", zero),
    ("_ZNSt19basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev", zero),
    ("_ZNSt19basic_ostringstreamIcSt11char_traitsIcESaIcEED1Ev", zero),
    ("_ZNSt19basic_istringstreamIcSt11char_traitsIcESaIcEED1Ev", zero),
    ("_ZNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE7_M_syncEPcmm", zero),
    ("_ZNSt15basic_stringbufIcSt11char_traitsIcESaIcEE7_M_syncEPcmm", zero),
    ("_ZNKSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv", stream_text),
    ("_ZNOSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv", stream_text),
    ("_ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv", stream_text),
    ("_ZNKSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEE3strEv", stream_text),
    ("_ZNOSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEE3strEv", stream_text),
    ("_ZNKSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEE3strEv", stream_text),
    ("_ZNKSt15basic_stringbufIcSt11char_traitsIcESaIcEE3strEv", stream_text),
    ("_ZNKSt18basic_stringstreamIcSt11char_traitsIcESaIcEE3strEv", stream_text),
    ("_ZNSt10filesystem7__cxx114path14_M_split_cmptsEv", zero),
    ("_ZNSt10filesystem7__cxx114path5_ListC1Ev", zero),
    ("_ZNSt10filesystem7__cxx114path5_ListC1ERKS2_", zero),
    ("_ZNKSt10filesystem7__cxx114path5_List3endEv", zero),
    ("_ZNKSt10filesystem7__cxx114path5_List13_Impl_deleterclEPNS2_5_ImplE", zero),
    ("_ZNSt10filesystem7__cxx114pathdVERKS1_", string::join_paths),
    ("_ZNSt10filesystem4path14_M_split_cmptsEv", zero),
    ("_ZNSt10filesystem4path5_ListC1Ev", zero),
    ("_ZNSt10filesystem4path5_ListC1ERKS1_", zero),
    ("_ZNKSt10filesystem4path5_List3endEv", zero),
    ("_ZNKSt10filesystem4path5_List13_Impl_deleterclEPNS1_5_ImplE", zero),
];

/// All `std::__throw_…` functions.
pub const PREFIXES: &[Row] = &[
    ("_ZSt20__throw", throw_with_text),
    ("_ZSt16__throw", throw_with_text),
    ("_ZSt17__throw", throw_with_text),
    ("_ZSt19__throw", throw_with_text),
    ("_ZSt21__throw", throw_with_text),
    ("_ZSt22__throw", throw_with_text),
    ("_ZSt23__throw", throw_with_text),
    ("_ZSt24__throw", throw_with_text),
    ("_ZSt25__throw", throw_with_text),
    ("_ZSt26__throw", throw_with_text),
    ("_ZSt27__throw", throw_with_text),
    ("_ZSt28__throw", throw_with_text),
];

/// Who makes room for an exception is about to throw it. A probe of the run need not see its text.
fn allocate_exception(m: &mut Machine<'_>) -> Answer {
    if m.explorer.mode == Mode::Probe && m.bus.skips_kernels {
        return throw(m);
    }
    libc::allocate(m)
}

fn allocate_aligned(m: &mut Machine<'_>) -> Answer {
    let alignment = m.arg(1);
    let alignment = if alignment.is_power_of_two() { alignment.min(1 << 20) } else { 16 };
    let size = m.arg(0);
    if size > 1 << 40 {
        return Err(Exit::Throw("bad_alloc".to_owned()));
    }
    let block = m.allocate(size.saturating_add(alignment));
    let aligned = block.wrapping_add(alignment - 1) & !(alignment - 1);
    m.heap.blocks.insert(aligned, size);
    Ok(Value::new(aligned))
}

fn throw_with_text(m: &mut Machine<'_>) -> Answer {
    let text = m.arg(0);
    if m.is_in_image(text) {
        note_text(m, text);
    }
    throw(m)
}

fn guard_acquire(m: &mut Machine<'_>) -> Answer {
    let guard = m.arg(0);
    if m.bus.load(guard, 1).bits != 0 {
        return Ok(Value::ZERO);
    }
    m.bus.memory.write(guard, 1, 1);
    Ok(Value::new(1))
}

fn note(m: &mut Machine<'_>, text: &[u8]) {
    if m.messages.len() < 4_096 {
        let shown = text.get(..limits::SHOWN_TEXT_BYTES.min(text.len())).unwrap_or_default();
        m.messages.push(String::from_utf8_lossy(shown).into_owned());
    }
}

fn note_text(m: &mut Machine<'_>, at: u64) {
    let text = m.bus.memory.cstr(at, limits::SHOWN_TEXT_BYTES);
    note(m, &text);
}

fn exception_of_literal(m: &mut Machine<'_>) -> Answer {
    let text = m.arg(1);
    note_text(m, text);
    Ok(Value::ZERO)
}

pub fn exception_of_string(m: &mut Machine<'_>) -> Answer {
    let at = m.arg(1);
    let text = string::read_string(m, at)?;
    if text != string::STREAM_TEXT {
        note(m, &text);
    }
    Ok(Value::ZERO)
}

fn write_text(m: &mut Machine<'_>) -> Answer {
    let (text, len) = (m.arg(1), m.arg(2));
    let text = m.bytes(text, len.min(limits::SHOWN_TEXT_BYTES as u64))?;
    note(m, &text);
    Ok(m.argument(0))
}

fn write_literal(m: &mut Machine<'_>) -> Answer {
    let text = m.arg(1);
    note_text(m, text);
    Ok(m.argument(0))
}

fn write_character(m: &mut Machine<'_>) -> Answer {
    let byte = m.arg(1) as u8;
    note(m, &[byte]);
    Ok(m.argument(0))
}

pub fn write_number(m: &mut Machine<'_>) -> Answer {
    let number = m.argument(1);
    let text = if number.shadow.is_some() { "?".to_owned() } else { (number.bits as i64).to_string() };
    note(m, text.as_bytes());
    Ok(m.argument(0))
}

/// The text of a stream is not kept in it: what was written is in the messages.
fn stream_text(m: &mut Machine<'_>) -> Answer {
    let to = m.cpu.result_pointer();
    string::new_string(m, to, string::STREAM_TEXT);
    Ok(Value::new(to))
}

/// Bucket counts of libstdc++ are primes; which does not matter as long as they grow.
const PRIMES: &[u64] =
    &[13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172_933, 351_061, 712_697, 1_447_153];

fn set_bucket_count(m: &mut Machine<'_>, policy: u64, at_least: u64) -> Result<u64, Exit> {
    let count = PRIMES.iter().copied().find(|p| *p >= at_least);
    let count = count.ok_or_else(|| Exit::Stop(Stop::Unreasonable(format!("a hash table of {at_least} buckets"))))?;
    // {float max_load_factor; size_t next_resize}
    m.set_word(policy.wrapping_add(8), count);
    Ok(count)
}

fn next_bucket_count(m: &mut Machine<'_>) -> Answer {
    let (policy, at_least) = (m.arg(0), m.arg(1));
    set_bucket_count(m, policy, at_least).map(Value::new)
}

/// Returns `pair<bool, size_t>` in two registers.
fn need_rehash(m: &mut Machine<'_>) -> Answer {
    let (policy, buckets, elements, more) = (m.arg(0), m.arg(1), m.arg(2), m.arg(3));
    let wanted = elements.saturating_add(more);
    if wanted <= m.word(policy.wrapping_add(8)) {
        m.cpu.set_second_result(Value::ZERO);
        return Ok(Value::ZERO);
    }
    let count = set_bucket_count(m, policy, wanted.max(buckets.saturating_mul(2)).saturating_add(1))?;
    m.cpu.set_second_result(Value::new(count));
    Ok(Value::new(1))
}

/// FNV-1a: any good hash will do, because all hashes come from here.
fn hash_bytes(m: &mut Machine<'_>) -> Answer {
    let seed = m.arg(2);
    hash_with_seed(m, seed)
}

/// The hash of the bytes that the first two arguments give.
pub fn hash_with_seed(m: &mut Machine<'_>, seed: u64) -> Answer {
    let (at, len) = (m.arg(0), m.arg(1));
    let bytes = m.bytes(at, len)?;
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    Ok(Value::new(hash))
}

// _Rb_tree_node_base: {int color; node *parent, *left, *right}
const PARENT: u64 = 8;
const LEFT: u64 = 16;
const RIGHT: u64 = 24;
/// Steps along a tree before it is taken to be a loop.
const TREE_STEPS: u32 = 1 << 17;

/// Trees are not balanced: the models' maps are small, and order is all that matters.
fn tree_insert(m: &mut Machine<'_>) -> Answer {
    let (is_left, node, parent, header) = (m.arg(0) & 1 != 0, m.arg(1), m.arg(2), m.arg(3));
    m.bus.memory.write(node, 4, 1);
    m.set_word(node.wrapping_add(PARENT), parent);
    m.set_word(node.wrapping_add(LEFT), 0);
    m.set_word(node.wrapping_add(RIGHT), 0);
    if is_left {
        m.set_word(parent.wrapping_add(LEFT), node);
        if parent == header {
            m.set_word(header.wrapping_add(PARENT), node);
            m.set_word(header.wrapping_add(RIGHT), node);
        } else if parent == m.word(header.wrapping_add(LEFT)) {
            m.set_word(header.wrapping_add(LEFT), node);
        }
    } else {
        m.set_word(parent.wrapping_add(RIGHT), node);
        if parent == m.word(header.wrapping_add(RIGHT)) {
            m.set_word(header.wrapping_add(RIGHT), node);
        }
    }
    Ok(Value::ZERO)
}

/// Removal is met on the way out only, when nothing is looked up any more.
fn tree_erase(m: &mut Machine<'_>) -> Answer {
    Ok(m.argument(0))
}

fn tree_step(m: &mut Machine<'_>, towards: u64, away: u64) -> Answer {
    let mut node = m.arg(0);
    // the header's left and right are the ends
    if away == LEFT {
        let parent = m.word(node.wrapping_add(PARENT));
        if m.bus.load(node, 4).bits == 0 && m.word(parent.wrapping_add(PARENT)) == node {
            return Ok(Value::new(m.word(node.wrapping_add(RIGHT))));
        }
    }
    let next = m.word(node.wrapping_add(away));
    let mut steps = 0;
    let mut count = |m: &mut Machine<'_>| {
        steps += 1;
        m.bus.remaining = m.bus.remaining.saturating_sub(4);
        if steps > TREE_STEPS { Err(Exit::Stop(Stop::Unreasonable("an endless tree".to_owned()))) } else { Ok(()) }
    };
    if next != 0 {
        node = next;
        loop {
            let deeper = m.word(node.wrapping_add(towards));
            if deeper == 0 {
                return Ok(Value::new(node));
            }
            node = deeper;
            count(m)?;
        }
    }
    let mut parent = m.word(node.wrapping_add(PARENT));
    while node == m.word(parent.wrapping_add(away)) {
        node = parent;
        parent = m.word(parent.wrapping_add(PARENT));
        count(m)?;
    }
    Ok(Value::new(if m.word(node.wrapping_add(away)) == parent { node } else { parent }))
}

// _List_node_base: {node *next, *prev}
fn list_hook(m: &mut Machine<'_>) -> Answer {
    let (node, position) = (m.arg(0), m.arg(1));
    let before = m.word(position.wrapping_add(8));
    m.set_word(node, position);
    m.set_word(node.wrapping_add(8), before);
    m.set_word(before, node);
    m.set_word(position.wrapping_add(8), node);
    Ok(Value::ZERO)
}

fn list_unhook(m: &mut Machine<'_>) -> Answer {
    let node = m.arg(0);
    let (next, before) = (m.word(node), m.word(node.wrapping_add(8)));
    m.set_word(before, next);
    m.set_word(next.wrapping_add(8), before);
    Ok(Value::ZERO)
}
