//! Loads, stores, pairs, exclusive and atomic accesses of general and vector registers.

use super::decode::Op;
use super::integer::{extended_source, nothing};
use super::vector::Vector;
use super::{Aarch64, Bus, Semantics, Step};
use crate::interpret::memory::mask;
use crate::interpret::value::Value;
use disarm64::decoder::InsnId;

pub const TABLE: &[(InsnId, Semantics)] = &[
    (InsnId::LDR_Rt_ADDR_UIMM12, single),
    (InsnId::LDR_Rt_ADDR_SIMM9, single),
    (InsnId::LDR_Rt_ADDR_REGOFF, single),
    (InsnId::LDUR_Rt_ADDR_SIMM9, single),
    (InsnId::LDRB_Rt_ADDR_UIMM12, single),
    (InsnId::LDRB_Rt_ADDR_SIMM9, single),
    (InsnId::LDRB_Rt_ADDR_REGOFF, single),
    (InsnId::LDURB_Rt_ADDR_SIMM9, single),
    (InsnId::LDRH_Rt_ADDR_UIMM12, single),
    (InsnId::LDRH_Rt_ADDR_SIMM9, single),
    (InsnId::LDRH_Rt_ADDR_REGOFF, single),
    (InsnId::LDURH_Rt_ADDR_SIMM9, single),
    (InsnId::LDRSB_Rt_ADDR_UIMM12, single),
    (InsnId::LDRSB_Rt_ADDR_SIMM9, single),
    (InsnId::LDRSB_Rt_ADDR_REGOFF, single),
    (InsnId::LDURSB_Rt_ADDR_SIMM9, single),
    (InsnId::LDRSH_Rt_ADDR_UIMM12, single),
    (InsnId::LDRSH_Rt_ADDR_SIMM9, single),
    (InsnId::LDRSH_Rt_ADDR_REGOFF, single),
    (InsnId::LDURSH_Rt_ADDR_SIMM9, single),
    (InsnId::LDRSW_Rt_ADDR_UIMM12, single),
    (InsnId::LDRSW_Rt_ADDR_SIMM9, single),
    (InsnId::LDRSW_Rt_ADDR_REGOFF, single),
    (InsnId::LDURSW_Rt_ADDR_SIMM9, single),
    (InsnId::STR_Rt_ADDR_UIMM12, single),
    (InsnId::STR_Rt_ADDR_SIMM9, single),
    (InsnId::STR_Rt_ADDR_REGOFF, single),
    (InsnId::STUR_Rt_ADDR_SIMM9, single),
    (InsnId::STRB_Rt_ADDR_UIMM12, single),
    (InsnId::STRB_Rt_ADDR_SIMM9, single),
    (InsnId::STRB_Rt_ADDR_REGOFF, single),
    (InsnId::STURB_Rt_ADDR_SIMM9, single),
    (InsnId::STRH_Rt_ADDR_UIMM12, single),
    (InsnId::STRH_Rt_ADDR_SIMM9, single),
    (InsnId::STRH_Rt_ADDR_REGOFF, single),
    (InsnId::STURH_Rt_ADDR_SIMM9, single),
    (InsnId::LDR_Ft_ADDR_UIMM12, single),
    (InsnId::LDR_Ft_ADDR_SIMM9, single),
    (InsnId::LDR_Ft_ADDR_REGOFF, single),
    (InsnId::LDUR_Ft_ADDR_SIMM9, single),
    (InsnId::STR_Ft_ADDR_UIMM12, single),
    (InsnId::STR_Ft_ADDR_SIMM9, single),
    (InsnId::STR_Ft_ADDR_REGOFF, single),
    (InsnId::STUR_Ft_ADDR_SIMM9, single),
    (InsnId::LDR_Rt_ADDR_PCREL19, literal),
    (InsnId::LDRSW_Rt_ADDR_PCREL19, literal),
    (InsnId::LDR_Ft_ADDR_PCREL19, literal),
    (InsnId::LDP_Rt_Rt2_ADDR_SIMM7, pair),
    (InsnId::LDP_Rt_W_Rt2_W_ADDR_SIMM7_S_S, pair),
    (InsnId::LDPSW_Rt_Rt2_ADDR_SIMM7, pair),
    (InsnId::LDPSW_Rt_X_Rt2_X_ADDR_SIMM7_S_S, pair),
    (InsnId::LDP_Ft_Ft2_ADDR_SIMM7, pair),
    (InsnId::LDP_Ft_S_S_Ft2_S_S_ADDR_SIMM7_S_S, pair),
    (InsnId::LDNP_Rt_Rt2_ADDR_SIMM7, pair),
    (InsnId::LDNP_Ft_Ft2_ADDR_SIMM7, pair),
    (InsnId::STP_Rt_Rt2_ADDR_SIMM7, pair),
    (InsnId::STP_Rt_W_Rt2_W_ADDR_SIMM7_S_S, pair),
    (InsnId::STP_Ft_Ft2_ADDR_SIMM7, pair),
    (InsnId::STP_Ft_S_S_Ft2_S_S_ADDR_SIMM7_S_S, pair),
    (InsnId::STNP_Rt_Rt2_ADDR_SIMM7, pair),
    (InsnId::STNP_Ft_Ft2_ADDR_SIMM7, pair),
    (InsnId::PRFM_PRFOP_ADDR_UIMM12, nothing),
    (InsnId::PRFM_PRFOP_ADDR_REGOFF, nothing),
    (InsnId::PRFM_PRFOP_ADDR_PCREL19, nothing),
    (InsnId::PRFUM_PRFOP_ADDR_SIMM9, nothing),
    (InsnId::LDAR_Rt_ADDR_SIMPLE, ordered),
    (InsnId::LDARB_Rt_ADDR_SIMPLE, ordered),
    (InsnId::LDARH_Rt_ADDR_SIMPLE, ordered),
    (InsnId::LDAPR_Rt_ADDR_SIMPLE, load_ordered),
    (InsnId::LDAPRB_Rt_ADDR_SIMPLE, load_ordered),
    (InsnId::LDAPRH_Rt_ADDR_SIMPLE, load_ordered),
    (InsnId::STLR_Rt_ADDR_SIMPLE, ordered),
    (InsnId::STLRB_Rt_ADDR_SIMPLE, ordered),
    (InsnId::STLRH_Rt_ADDR_SIMPLE, ordered),
    (InsnId::LDXR_Rt_ADDR_SIMPLE, load_exclusive),
    (InsnId::LDXRB_Rt_ADDR_SIMPLE, load_exclusive),
    (InsnId::LDXRH_Rt_ADDR_SIMPLE, load_exclusive),
    (InsnId::LDAXR_Rt_ADDR_SIMPLE, load_exclusive),
    (InsnId::LDAXRB_Rt_ADDR_SIMPLE, load_exclusive),
    (InsnId::LDAXRH_Rt_ADDR_SIMPLE, load_exclusive),
    (InsnId::STXR_Rs_Rt_ADDR_SIMPLE, store_exclusive),
    (InsnId::STXRB_Rs_Rt_ADDR_SIMPLE, store_exclusive),
    (InsnId::STXRH_Rs_Rt_ADDR_SIMPLE, store_exclusive),
    (InsnId::STLXR_Rs_Rt_ADDR_SIMPLE, store_exclusive),
    (InsnId::STLXRB_Rs_Rt_ADDR_SIMPLE, store_exclusive),
    (InsnId::STLXRH_Rs_Rt_ADDR_SIMPLE, store_exclusive),
    (InsnId::LDADD_Rs_Rt_ADDR_SIMPLE, fetch_add),
    (InsnId::LDADDA_Rs_Rt_ADDR_SIMPLE, fetch_add),
    (InsnId::LDADDL_Rs_Rt_ADDR_SIMPLE, fetch_add),
    (InsnId::LDADDAL_Rs_Rt_ADDR_SIMPLE, fetch_add),
    (InsnId::LDADDB_Rs_Rt_ADDR_SIMPLE, fetch_add),
    (InsnId::LDADDALB_Rs_Rt_ADDR_SIMPLE, fetch_add),
    (InsnId::LDCLR_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old & !new)),
    (InsnId::LDCLRA_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old & !new)),
    (InsnId::LDCLRL_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old & !new)),
    (InsnId::LDCLRAL_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old & !new)),
    (InsnId::LDEOR_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old ^ new)),
    (InsnId::LDEORA_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old ^ new)),
    (InsnId::LDEORL_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old ^ new)),
    (InsnId::LDEORAL_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old ^ new)),
    (InsnId::LDSET_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old | new)),
    (InsnId::LDSETA_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old | new)),
    (InsnId::LDSETL_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old | new)),
    (InsnId::LDSETAL_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |old, new| old | new)),
    (InsnId::SWP_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |_, new| new)),
    (InsnId::SWPA_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |_, new| new)),
    (InsnId::SWPL_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |_, new| new)),
    (InsnId::SWPAL_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |_, new| new)),
    (InsnId::SWPB_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |_, new| new)),
    (InsnId::SWPAB_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |_, new| new)),
    (InsnId::SWPALB_Rs_Rt_ADDR_SIMPLE, |c, b, op| fetch(c, b, op, |_, new| new)),
    (InsnId::CAS_Rs_Rt_ADDR_SIMPLE, compare_and_swap),
    (InsnId::CASA_Rs_Rt_ADDR_SIMPLE, compare_and_swap),
    (InsnId::CASL_Rs_Rt_ADDR_SIMPLE, compare_and_swap),
    (InsnId::CASAL_Rs_Rt_ADDR_SIMPLE, compare_and_swap),
    (InsnId::CASB_Rs_Rt_ADDR_SIMPLE, compare_and_swap),
    (InsnId::CASAB_Rs_Rt_ADDR_SIMPLE, compare_and_swap),
    (InsnId::CASALB_Rs_Rt_ADDR_SIMPLE, compare_and_swap),
    (InsnId::LD1_LVt_SIMD_ADDR_SIMPLE, |c, b, op| several(c, b, op, true)),
    (InsnId::LD1_LVt_SIMD_ADDR_POST, |c, b, op| several(c, b, op, true)),
    (InsnId::ST1_LVt_SIMD_ADDR_SIMPLE, |c, b, op| several(c, b, op, false)),
    (InsnId::ST1_LVt_SIMD_ADDR_POST, |c, b, op| several(c, b, op, false)),
    (InsnId::LD2_LVt_SIMD_ADDR_SIMPLE, |c, b, op| several(c, b, op, true)),
    (InsnId::LD2_LVt_SIMD_ADDR_POST, |c, b, op| several(c, b, op, true)),
    (InsnId::LD3_LVt_SIMD_ADDR_SIMPLE, |c, b, op| several(c, b, op, true)),
    (InsnId::LD3_LVt_SIMD_ADDR_POST, |c, b, op| several(c, b, op, true)),
    (InsnId::LD4_LVt_SIMD_ADDR_SIMPLE, |c, b, op| several(c, b, op, true)),
    (InsnId::LD4_LVt_SIMD_ADDR_POST, |c, b, op| several(c, b, op, true)),
    (InsnId::ST2_LVt_SIMD_ADDR_SIMPLE, |c, b, op| several(c, b, op, false)),
    (InsnId::ST2_LVt_SIMD_ADDR_POST, |c, b, op| several(c, b, op, false)),
    (InsnId::ST3_LVt_SIMD_ADDR_SIMPLE, |c, b, op| several(c, b, op, false)),
    (InsnId::ST3_LVt_SIMD_ADDR_POST, |c, b, op| several(c, b, op, false)),
    (InsnId::ST4_LVt_SIMD_ADDR_SIMPLE, |c, b, op| several(c, b, op, false)),
    (InsnId::ST4_LVt_SIMD_ADDR_POST, |c, b, op| several(c, b, op, false)),
    (InsnId::LD1_LEt_SIMD_ADDR_SIMPLE, |c, b, op| one_element(c, b, op, true)),
    (InsnId::LD1_LEt_SIMD_ADDR_POST, |c, b, op| one_element(c, b, op, true)),
    (InsnId::ST1_LEt_SIMD_ADDR_SIMPLE, |c, b, op| one_element(c, b, op, false)),
    (InsnId::ST1_LEt_SIMD_ADDR_POST, |c, b, op| one_element(c, b, op, false)),
    (InsnId::LD1R_LVt_AL_SIMD_ADDR_SIMPLE, replicate),
    (InsnId::LD1R_LVt_AL_SIMD_ADDR_POST, replicate),
];

/// Address of an access by one of the four forms: scaled number, plain number, index before or after, register.
fn address(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, scale: u32) -> u64 {
    let base = cpu.general_or_sp(op.rn(), 8);
    if op.flag(24) {
        return base.bits.wrapping_add(u64::from(op.bits(10, 12)) << scale);
    }
    if op.flag(21) {
        let shift = if op.flag(12) { scale } else { 0 };
        return base.bits.wrapping_add(extended_source(cpu, bus, op, shift, 8).bits);
    }
    let offset = op.signed(12, 9);
    let moved = base.bits.wrapping_add_signed(offset);
    match op.bits(10, 2) {
        1 => {
            write_back(cpu, bus, op, base, offset);
            base.bits
        }
        3 => {
            write_back(cpu, bus, op, base, offset);
            moved
        }
        _ => moved,
    }
}

fn write_back(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, base: Value, offset: i64) {
    let value = super::integer::sum(bus, base, Value::new(offset as u64), 1, 8);
    cpu.set_general_or_sp(bus, op.rn(), 8, value);
}

fn single(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (width, operation) = (op.bits(30, 2), op.bits(22, 2));
    if op.flag(26) {
        // 128 bits have width 0 and the upper bit of the operation
        let scale = if operation & 2 != 0 { 4 } else { width };
        // the register is read before the base changes
        let stored = cpu.vector_register(op.rd());
        let at = address(cpu, bus, op, scale);
        if operation & 1 != 0 {
            let vector = load_vector(bus, at, 1 << scale);
            cpu.set_vector_register(op.rd(), vector);
        } else {
            store_vector(bus, at, 1 << scale, stored);
        }
        return Step::Next;
    }
    let size = 1usize << width;
    let stored = cpu.general(op.rd(), size);
    let at = address(cpu, bus, op, width);
    match operation {
        0 => bus.store(at, size, stored),
        1 => load_general(cpu, bus, op.rd(), at, size),
        _ => {
            let value = bus.load(at, size);
            let value = bus.expressions.extend(value, size, true);
            let to = if operation == 2 { 8 } else { 4 };
            let value = Value { bits: value.bits & mask(to), ..value };
            cpu.set_general(bus, op.rd(), to, value);
        }
    }
    Step::Next
}

/// Loads a register, zero-extended.
fn load_general(cpu: &mut Aarch64, bus: &mut Bus<'_>, register: usize, at: u64, size: usize) {
    let value = bus.load(at, size);
    let value = if size < 8 { bus.expressions.extend(value, size, false) } else { value };
    cpu.set_general(bus, register, 8, value);
}

fn load_vector(bus: &mut Bus<'_>, at: u64, size: usize) -> Vector {
    let mut vector = Vector::ZERO;
    for lane in 0..size.div_ceil(8).min(2) {
        let len = (size - 8 * lane).min(8);
        let value = bus.load(at.wrapping_add(8 * lane as u64), len);
        let value = if len < 8 { bus.expressions.extend(value, len, false) } else { value };
        vector.set_lane(lane, value);
    }
    vector
}

fn store_vector(bus: &mut Bus<'_>, at: u64, size: usize, vector: Vector) {
    for lane in 0..size.div_ceil(8).min(2) {
        bus.store(at.wrapping_add(8 * lane as u64), (size - 8 * lane).min(8), vector.lane(lane));
    }
}

fn literal(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let at = op.target(5, 19);
    let kind = op.bits(30, 2);
    if op.flag(26) {
        let vector = load_vector(bus, at, 4 << kind);
        cpu.set_vector_register(op.rd(), vector);
    } else if kind == 2 {
        let value = bus.load(at, 4);
        let value = bus.expressions.extend(value, 4, true);
        cpu.set_general(bus, op.rd(), 8, value);
    } else {
        load_general(cpu, bus, op.rd(), at, 4 << kind);
    }
    Step::Next
}

fn pair(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let is_vector = op.flag(26);
    let kind = op.bits(30, 2);
    let is_load = op.flag(22);
    // 01 is the signed 4-byte pair of general registers
    let scale = if is_vector { 2 + kind } else { 2 + (kind >> 1) };
    let size = 1usize << scale;
    let base = cpu.general_or_sp(op.rn(), 8);
    let offset = op.signed(15, 7) << scale;
    let moved = base.bits.wrapping_add_signed(offset);
    let mode = op.bits(23, 2);
    let at = if mode == 1 { base.bits } else { moved };
    for (n, register) in [op.rd(), op.ra()].into_iter().enumerate() {
        let at = at.wrapping_add((n * size) as u64);
        match (is_vector, is_load) {
            (true, true) => {
                let vector = load_vector(bus, at, size);
                cpu.set_vector_register(register, vector);
            }
            (true, false) => store_vector(bus, at, size, cpu.vector_register(register)),
            (false, true) if kind == 1 => {
                let value = bus.load(at, 4);
                let value = bus.expressions.extend(value, 4, true);
                cpu.set_general(bus, register, 8, value);
            }
            (false, true) => load_general(cpu, bus, register, at, size),
            (false, false) => bus.store(at, size, cpu.general(register, size)),
        }
    }
    if mode == 1 || mode == 3 {
        write_back(cpu, bus, op, base, offset);
    }
    Step::Next
}

/// Bytes of an exclusive, ordered or atomic access.
fn access_size(op: &Op) -> usize {
    1 << op.bits(30, 2)
}

/// There is one thread, so order does not matter.
fn ordered(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    if op.flag(22) {
        return load_ordered(cpu, bus, op);
    }
    let (at, size) = (cpu.general_or_sp(op.rn(), 8).bits, access_size(op));
    bus.store(at, size, cpu.general(op.rd(), size));
    Step::Next
}

fn load_ordered(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let at = cpu.general_or_sp(op.rn(), 8).bits;
    load_general(cpu, bus, op.rd(), at, access_size(op));
    Step::Next
}

fn load_exclusive(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    cpu.registers.exclusive = Some(cpu.general_or_sp(op.rn(), 8).bits);
    load_ordered(cpu, bus, op)
}

fn store_exclusive(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (at, size) = (cpu.general_or_sp(op.rn(), 8).bits, access_size(op));
    let is_held = cpu.registers.exclusive.take() == Some(at);
    if is_held {
        bus.store(at, size, cpu.general(op.rd(), size));
    }
    cpu.set_general(bus, op.rm(), 4, Value::new(u64::from(!is_held)));
    Step::Next
}

fn fetch_add(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (at, size) = (cpu.general_or_sp(op.rn(), 8).bits, access_size(op));
    let added = cpu.general(op.rm(), size);
    let old = bus.load(at, size);
    let new = super::integer::sum(bus, old, added, 1, size);
    bus.store(at, size, new);
    cpu.set_general(bus, op.rd(), size.max(4), old);
    Step::Next
}

fn fetch(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, f: fn(u64, u64) -> u64) -> Step {
    let (at, size) = (cpu.general_or_sp(op.rn(), 8).bits, access_size(op));
    let operand = cpu.general(op.rm(), size);
    let old = bus.load(at, size);
    bus.store(at, size, Value::new(f(old.bits, operand.bits)));
    cpu.set_general(bus, op.rd(), size.max(4), old);
    Step::Next
}

fn compare_and_swap(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (at, size) = (cpu.general_or_sp(op.rn(), 8).bits, access_size(op));
    let expected = cpu.general(op.rm(), size);
    let old = bus.load(at, size);
    if old.bits == expected.bits {
        bus.store(at, size, cpu.general(op.rd(), size));
    }
    cpu.set_general(bus, op.rm(), size.max(4), old);
    Step::Next
}

/// After a vector access with index: by its bytes, or by a register.
fn advance(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, bytes: u64) {
    if op.flag(23) {
        let by = if op.rm() == super::ZERO { Value::new(bytes) } else { cpu.general(op.rm(), 8) };
        let base = cpu.general_or_sp(op.rn(), 8);
        let value = super::integer::sum(bus, base, by, 1, 8);
        cpu.set_general_or_sp(bus, op.rn(), 8, value);
    }
}

/// One to four registers: one after the other in memory, or their elements interleaved. The decoder's names do not
/// tell (it calls `ld1` of two registers `ld4`); bits 12 to 15 do (C4.1.96).
fn several(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, is_load: bool) -> Step {
    let (count, is_interleaved) = match op.bits(12, 4) {
        0b0111 => (1, false),
        0b1010 => (2, false),
        0b0110 => (3, false),
        0b0010 => (4, false),
        0b1000 => (2, true),
        0b0100 => (3, true),
        0b0000 => (4, true),
        _ => return cpu.unsupported(op),
    };
    let size = op.vector_size();
    let base = cpu.general_or_sp(op.rn(), 8).bits;
    for n in 0..count {
        let register = (op.rd() + n) % 32;
        if is_interleaved {
            interleaved(cpu, bus, base, register, (n, count, size, 1 << op.bits(10, 2)), is_load);
            continue;
        }
        let at = base.wrapping_add((n * size) as u64);
        if is_load {
            let vector = load_vector(bus, at, size);
            cpu.set_vector_register(register, vector);
        } else {
            store_vector(bus, at, size, cpu.vector_register(register));
        }
    }
    advance(cpu, bus, op, (count * size) as u64);
    Step::Next
}

/// The `n`-th of `count` registers whose elements of `width` bytes take turns in memory.
fn interleaved(
    cpu: &mut Aarch64,
    bus: &mut Bus<'_>,
    base: u64,
    register: usize,
    (n, count, size, width): (usize, usize, usize, usize),
    is_load: bool,
) {
    let mut vector = if is_load { Vector::ZERO } else { cpu.vector_register(register) };
    for element in 0..size / width {
        let at = base.wrapping_add(((element * count + n) * width) as u64);
        if is_load {
            let value = bus.load(at, width);
            vector.set_value(width, element, value);
        } else {
            bus.store(at, width, vector.value(width, element));
        }
    }
    if is_load {
        cpu.set_vector_register(register, vector);
    }
}

fn one_element(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op, is_load: bool) -> Step {
    // the width is in the upper bits of the opcode; the index takes what is left of Q, S and size
    let index = op.bits(30, 1) << 3 | op.bits(10, 3);
    let (width, index) = match (op.bits(14, 2), op.bits(10, 1)) {
        (0, _) => (1, index),
        (1, _) => (2, index >> 1),
        (2, 0) => (4, index >> 2),
        (2, _) => (8, index >> 3),
        _ => return cpu.unsupported(op),
    };
    let at = cpu.general_or_sp(op.rn(), 8).bits;
    let mut vector = cpu.vector_register(op.rd());
    if is_load {
        let value = bus.load(at, width);
        vector.set_value(width, index as usize, value);
        cpu.set_vector_register(op.rd(), vector);
    } else {
        bus.store(at, width, vector.value(width, index as usize));
    }
    advance(cpu, bus, op, width as u64);
    Step::Next
}

fn replicate(cpu: &mut Aarch64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let width = 1usize << op.bits(10, 2);
    let at = cpu.general_or_sp(op.rn(), 8).bits;
    let value = bus.load(at, width);
    let mut vector = Vector::ZERO;
    for n in 0..op.vector_size() / width {
        vector.set_value(width, n, value);
    }
    cpu.set_vector_register(op.rd(), vector);
    advance(cpu, bus, op, width as u64);
    Step::Next
}
