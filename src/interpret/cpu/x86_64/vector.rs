//! Vector registers and the instructions that only move their lanes. Shadows travel with 64-bit lanes: compilers
//! build shape arrays with `vpinsrq`, `punpcklqdq` and wide stores.

use super::decode::Op;
use super::operands::Operand;
use super::{Bus, Semantics, Step, X86_64, integer, strings};
use crate::interpret::cpu::lanes::Lanes;
use crate::interpret::memory::mask;
use crate::interpret::value::{Value, sign_extend};
use iced_x86::Mnemonic;
use std::rc::Rc;

/// A vector register: eight lanes of 64 bits.
pub type Vector = Lanes<8>;

impl Vector {
    /// Only the first `size` bytes.
    #[must_use]
    pub fn truncated(mut self, size: usize) -> Self {
        let whole = size / 8;
        if let (Some(lane), Some(shadow)) = (self.lanes.get_mut(whole), self.shadows.get_mut(whole)) {
            *lane &= mask(size % 8);
            *shadow = None;
        }
        let rest = whole + 1;
        self.lanes.get_mut(rest..).unwrap_or_default().fill(0);
        self.shadows.get_mut(rest..).unwrap_or_default().fill(None);
        self
    }
}

impl X86_64 {
    pub fn vector_register(&self, number: u8) -> Vector {
        self.registers.vector.get(usize::from(number)).copied().unwrap_or(Vector::ZERO)
    }
    /// The first `size` bytes of a vector operand; of a general register or 8 bytes of memory: one lane.
    pub fn vector(&self, bus: &mut Bus<'_>, operand: Operand, size: usize) -> Vector {
        match operand {
            Operand::Vector { number, .. } => self.vector_register(number).truncated(size),
            Operand::Memory { .. } => {
                let address = self.address(operand);
                let mut vector = Vector::ZERO;
                for n in 0..size.div_ceil(8).min(8) {
                    let value = bus.load(address.wrapping_add(8 * n as u64), (size - 8 * n).min(8));
                    vector.set_lane(n, Value { shadow: value.shadow.filter(|_| size - 8 * n >= 8), ..value });
                }
                vector
            }
            other => {
                let mut vector = Vector::ZERO;
                vector.set_lane(0, self.read_sized(bus, other, size.min(8)));
                vector
            }
        }
    }
    /// Writes the result of a vector instruction with elements of `width` bytes: masks, and the upper part.
    pub fn set_vector(&mut self, bus: &mut Bus<'_>, op: &Op, result: Vector, width: usize) {
        let to = op.operand(0);
        let size = to.size();
        let mut result = result.truncated(size);
        if op.mask != 0 {
            let selected = self.registers.mask.get(usize::from(op.mask)).copied().unwrap_or(0);
            let old = if op.zeroes { Vector::ZERO } else { self.vector(bus, to, size) };
            for n in (0..size / width.max(1)).filter(|n| selected >> (n % 64) & 1 == 0) {
                if width == 8 {
                    result.set_lane(n, old.lane(n));
                } else {
                    result.set_element(width, n, old.element(width, n));
                }
            }
        }
        match to {
            Operand::Vector { number, .. } => {
                if !op.is_vex {
                    let old = self.vector_register(number);
                    for n in size.div_ceil(8)..8 {
                        result.set_lane(n, old.lane(n));
                    }
                }
                if let Some(register) = Rc::make_mut(&mut self.registers.vector).get_mut(usize::from(number)) {
                    *register = result;
                }
            }
            Operand::Memory { .. } => {
                let address = self.address(to);
                for n in 0..size.div_ceil(8).min(8) {
                    bus.store(address.wrapping_add(8 * n as u64), (size - 8 * n).min(8), result.lane(n));
                }
            }
            _ => {}
        }
    }
    /// Writes the lowest lane of a vector register and keeps the others.
    pub fn write_scalar(&mut self, operand: Operand, value: Value) {
        let Operand::Vector { number, .. } = operand else { return };
        if let Some(register) = Rc::make_mut(&mut self.registers.vector).get_mut(usize::from(number)) {
            register.set_lane(0, value);
        }
    }
}

pub const TABLE: &[(Mnemonic, Semantics)] = &[
    (Mnemonic::Vzeroupper, zero_upper),
    (Mnemonic::Vzeroall, |c, _, _| {
        c.registers.vector = Rc::new([Vector::ZERO; 32]);
        Step::Next
    }),
    (Mnemonic::Ldmxcsr, integer::nothing),
    (Mnemonic::Vldmxcsr, integer::nothing),
    (Mnemonic::Stmxcsr, stmxcsr),
    (Mnemonic::Vstmxcsr, stmxcsr),
    (Mnemonic::Movaps, mov),
    (Mnemonic::Movups, mov),
    (Mnemonic::Movapd, mov),
    (Mnemonic::Movupd, mov),
    (Mnemonic::Movdqa, mov),
    (Mnemonic::Movdqu, mov),
    (Mnemonic::Lddqu, mov),
    (Mnemonic::Movntdq, mov),
    (Mnemonic::Movntdqa, mov),
    (Mnemonic::Movntps, mov),
    (Mnemonic::Movntpd, mov),
    (Mnemonic::Vmovaps, mov4),
    (Mnemonic::Vmovups, mov4),
    (Mnemonic::Vmovapd, mov),
    (Mnemonic::Vmovupd, mov),
    (Mnemonic::Vmovdqa, mov),
    (Mnemonic::Vmovdqu, mov),
    (Mnemonic::Vlddqu, mov),
    (Mnemonic::Vmovntdq, mov),
    (Mnemonic::Vmovntdqa, mov),
    (Mnemonic::Vmovdqa64, mov),
    (Mnemonic::Vmovdqu64, mov),
    (Mnemonic::Vmovdqa32, mov4),
    (Mnemonic::Vmovdqu32, mov4),
    (Mnemonic::Vmovdqu16, |c, b, op| mov_width(c, b, op, 2)),
    (Mnemonic::Vmovdqu8, |c, b, op| mov_width(c, b, op, 1)),
    (Mnemonic::Movd, |c, b, op| mov_scalar(c, b, op, 4)),
    (Mnemonic::Vmovd, |c, b, op| mov_scalar(c, b, op, 4)),
    (Mnemonic::Movq, |c, b, op| mov_scalar(c, b, op, 8)),
    (Mnemonic::Vmovq, |c, b, op| mov_scalar(c, b, op, 8)),
    (Mnemonic::Movss, |c, b, op| mov_low(c, b, op, 4)),
    (Mnemonic::Vmovss, |c, b, op| mov_low(c, b, op, 4)),
    (Mnemonic::Movsd, movsd),
    (Mnemonic::Vmovsd, |c, b, op| mov_low(c, b, op, 8)),
    (Mnemonic::Movlps, |c, b, op| mov_half(c, b, op, 0)),
    (Mnemonic::Movlpd, |c, b, op| mov_half(c, b, op, 0)),
    (Mnemonic::Vmovlps, |c, b, op| mov_half(c, b, op, 0)),
    (Mnemonic::Vmovlpd, |c, b, op| mov_half(c, b, op, 0)),
    (Mnemonic::Movhps, |c, b, op| mov_half(c, b, op, 1)),
    (Mnemonic::Movhpd, |c, b, op| mov_half(c, b, op, 1)),
    (Mnemonic::Vmovhps, |c, b, op| mov_half(c, b, op, 1)),
    (Mnemonic::Vmovhpd, |c, b, op| mov_half(c, b, op, 1)),
    (Mnemonic::Movlhps, |c, b, op| lanes(c, b, op, |a, b| [a.lane(0), b.lane(0)])),
    (Mnemonic::Vmovlhps, |c, b, op| lanes(c, b, op, |a, b| [a.lane(0), b.lane(0)])),
    (Mnemonic::Movhlps, |c, b, op| lanes(c, b, op, |a, b| [b.lane(1), a.lane(1)])),
    (Mnemonic::Vmovhlps, |c, b, op| lanes(c, b, op, |a, b| [b.lane(1), a.lane(1)])),
    (Mnemonic::Punpcklqdq, |c, b, op| lanes(c, b, op, |a, b| [a.lane(0), b.lane(0)])),
    (Mnemonic::Vpunpcklqdq, |c, b, op| lanes(c, b, op, |a, b| [a.lane(0), b.lane(0)])),
    (Mnemonic::Unpcklpd, |c, b, op| lanes(c, b, op, |a, b| [a.lane(0), b.lane(0)])),
    (Mnemonic::Vunpcklpd, |c, b, op| lanes(c, b, op, |a, b| [a.lane(0), b.lane(0)])),
    (Mnemonic::Punpckhqdq, |c, b, op| lanes(c, b, op, |a, b| [a.lane(1), b.lane(1)])),
    (Mnemonic::Vpunpckhqdq, |c, b, op| lanes(c, b, op, |a, b| [a.lane(1), b.lane(1)])),
    (Mnemonic::Unpckhpd, |c, b, op| lanes(c, b, op, |a, b| [a.lane(1), b.lane(1)])),
    (Mnemonic::Vunpckhpd, |c, b, op| lanes(c, b, op, |a, b| [a.lane(1), b.lane(1)])),
    (Mnemonic::Movddup, |c, b, op| spread(c, b, op, 8)),
    (Mnemonic::Vmovddup, |c, b, op| spread_pairs(c, b, op)),
    (Mnemonic::Vpbroadcastq, |c, b, op| spread(c, b, op, 8)),
    (Mnemonic::Vbroadcastsd, |c, b, op| spread(c, b, op, 8)),
    (Mnemonic::Vpbroadcastd, |c, b, op| spread(c, b, op, 4)),
    (Mnemonic::Vbroadcastss, |c, b, op| spread(c, b, op, 4)),
    (Mnemonic::Vpbroadcastw, |c, b, op| spread(c, b, op, 2)),
    (Mnemonic::Vpbroadcastb, |c, b, op| spread(c, b, op, 1)),
    (Mnemonic::Vbroadcasti128, |c, b, op| spread_block(c, b, op, 2)),
    (Mnemonic::Vbroadcastf128, |c, b, op| spread_block(c, b, op, 2)),
    (Mnemonic::Vbroadcasti32x4, |c, b, op| spread_block(c, b, op, 2)),
    (Mnemonic::Vbroadcasti64x2, |c, b, op| spread_block(c, b, op, 2)),
    (Mnemonic::Vbroadcasti64x4, |c, b, op| spread_block(c, b, op, 4)),
    (Mnemonic::Pinsrb, |c, b, op| insert(c, b, op, 1)),
    (Mnemonic::Pinsrw, |c, b, op| insert(c, b, op, 2)),
    (Mnemonic::Pinsrd, |c, b, op| insert(c, b, op, 4)),
    (Mnemonic::Pinsrq, |c, b, op| insert(c, b, op, 8)),
    (Mnemonic::Vpinsrb, |c, b, op| insert(c, b, op, 1)),
    (Mnemonic::Vpinsrw, |c, b, op| insert(c, b, op, 2)),
    (Mnemonic::Vpinsrd, |c, b, op| insert(c, b, op, 4)),
    (Mnemonic::Vpinsrq, |c, b, op| insert(c, b, op, 8)),
    (Mnemonic::Pextrb, |c, b, op| extract(c, b, op, 1)),
    (Mnemonic::Pextrw, |c, b, op| extract(c, b, op, 2)),
    (Mnemonic::Pextrd, |c, b, op| extract(c, b, op, 4)),
    (Mnemonic::Pextrq, |c, b, op| extract(c, b, op, 8)),
    (Mnemonic::Extractps, |c, b, op| extract(c, b, op, 4)),
    (Mnemonic::Vpextrb, |c, b, op| extract(c, b, op, 1)),
    (Mnemonic::Vpextrw, |c, b, op| extract(c, b, op, 2)),
    (Mnemonic::Vpextrd, |c, b, op| extract(c, b, op, 4)),
    (Mnemonic::Vpextrq, |c, b, op| extract(c, b, op, 8)),
    (Mnemonic::Vextractps, |c, b, op| extract(c, b, op, 4)),
    (Mnemonic::Vextracti128, |c, b, op| extract_block(c, b, op, 2)),
    (Mnemonic::Vextractf128, |c, b, op| extract_block(c, b, op, 2)),
    (Mnemonic::Vextracti32x4, |c, b, op| extract_block(c, b, op, 2)),
    (Mnemonic::Vextractf32x4, |c, b, op| extract_block(c, b, op, 2)),
    (Mnemonic::Vextracti64x2, |c, b, op| extract_block(c, b, op, 2)),
    (Mnemonic::Vextractf64x2, |c, b, op| extract_block(c, b, op, 2)),
    (Mnemonic::Vextracti64x4, |c, b, op| extract_block(c, b, op, 4)),
    (Mnemonic::Vextractf64x4, |c, b, op| extract_block(c, b, op, 4)),
    (Mnemonic::Vextracti32x8, |c, b, op| extract_block(c, b, op, 4)),
    (Mnemonic::Vinserti128, |c, b, op| insert_block(c, b, op, 2)),
    (Mnemonic::Vinsertf128, |c, b, op| insert_block(c, b, op, 2)),
    (Mnemonic::Vinserti32x4, |c, b, op| insert_block(c, b, op, 2)),
    (Mnemonic::Vinsertf32x4, |c, b, op| insert_block(c, b, op, 2)),
    (Mnemonic::Vinserti64x2, |c, b, op| insert_block(c, b, op, 2)),
    (Mnemonic::Vinsertf64x2, |c, b, op| insert_block(c, b, op, 2)),
    (Mnemonic::Vinserti64x4, |c, b, op| insert_block(c, b, op, 4)),
    (Mnemonic::Vinsertf64x4, |c, b, op| insert_block(c, b, op, 4)),
    (Mnemonic::Vinserti32x8, |c, b, op| insert_block(c, b, op, 4)),
    (Mnemonic::Vpermq, permute_lanes),
    (Mnemonic::Vpermpd, permute_lanes),
    (Mnemonic::Vperm2i128, permute_blocks),
    (Mnemonic::Vperm2f128, permute_blocks),
    (Mnemonic::Shufpd, shuffle_lanes),
    (Mnemonic::Vshufpd, shuffle_lanes),
    (Mnemonic::Vpermilpd, permute_in_block),
    (Mnemonic::Valignq, align_lanes),
    (Mnemonic::Vpgatherdd, |c, b, op| gather(c, b, op, 4, 4)),
    (Mnemonic::Vpgatherdq, |c, b, op| gather(c, b, op, 4, 8)),
    (Mnemonic::Vpgatherqd, |c, b, op| gather(c, b, op, 8, 4)),
    (Mnemonic::Vpgatherqq, |c, b, op| gather(c, b, op, 8, 8)),
    (Mnemonic::Vpscatterdd, |c, b, op| scatter(c, b, op, 4, 4)),
    (Mnemonic::Vpscatterdq, |c, b, op| scatter(c, b, op, 4, 8)),
    (Mnemonic::Vpscatterqd, |c, b, op| scatter(c, b, op, 8, 4)),
    (Mnemonic::Vpscatterqq, |c, b, op| scatter(c, b, op, 8, 8)),
    (Mnemonic::Vpermt2q, permute_two),
    (Mnemonic::Vpermi2q, permute_two),
];

fn zero_upper(cpu: &mut X86_64, _: &mut Bus<'_>, _: &Op) -> Step {
    if cpu.registers.vector.iter().any(|v| v.lanes.iter().skip(2).any(|lane| *lane != 0)) {
        for register in Rc::make_mut(&mut cpu.registers.vector).iter_mut().take(16) {
            *register = register.truncated(16);
        }
    }
    Step::Next
}

/// All exceptions masked, as after a reset.
fn stmxcsr(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    cpu.write(bus, op.operand(0), Value::new(0x1f80));
    Step::Next
}

fn mov(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    mov_width(cpu, bus, op, 8)
}
fn mov4(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    mov_width(cpu, bus, op, 4)
}
fn mov_width(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize) -> Step {
    let value = cpu.vector(bus, op.operand(1), op.operand(0).size());
    cpu.set_vector(bus, op, value, width);
    Step::Next
}

/// `movd`, `movq`: the rest of the register becomes zero.
fn mov_scalar(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize) -> Step {
    let value = cpu.read_sized(bus, op.operand(1), size);
    match op.operand(0) {
        Operand::Vector { number, size: full } => {
            let mut vector = Vector::ZERO;
            vector.set_lane(0, Value { shadow: value.shadow.filter(|_| size == 8), ..value });
            let to = Op { operands: [Operand::Vector { number, size: full }; 3], ..*op };
            cpu.set_vector(bus, &to, vector, 8);
        }
        Operand::Memory { .. } => {
            let address = cpu.address(op.operand(0));
            bus.store(address, size, value);
        }
        to => cpu.write(bus, to, value),
    }
    Step::Next
}

/// `movsd` names the string instruction as well.
fn movsd(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    if op.operand(0) == Operand::Text { strings::movs(cpu, bus, op, 4) } else { mov_low(cpu, bus, op, 8) }
}

/// `movss`, `movsd`: a load clears the rest, a move between registers keeps it.
fn mov_low(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize) -> Step {
    let from = op.operand(usize::from(op.count).saturating_sub(1));
    let value = cpu.vector(bus, from, size).lane(0);
    match op.operand(0) {
        Operand::Memory { .. } => {
            let address = cpu.address(op.operand(0));
            bus.store(address, size, value);
        }
        to => {
            let mut result = if from.is_memory() {
                Vector::ZERO
            } else if op.count == 3 {
                cpu.vector(bus, op.operand(1), 16)
            } else {
                cpu.vector(bus, to, 16)
            };
            if size == 8 {
                result.set_lane(0, value);
            } else {
                result.set_element(size, 0, value.bits);
            }
            cpu.set_vector(bus, op, result, size);
        }
    }
    Step::Next
}

/// `movlps`, `movhps`: one half from or to memory.
fn mov_half(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, half: usize) -> Step {
    if let Operand::Memory { .. } = op.operand(0) {
        let value = cpu.vector(bus, op.operand(1), 16).lane(half);
        let address = cpu.address(op.operand(0));
        bus.store(address, 8, value);
        return Step::Next;
    }
    let (a, b) = op.two_sources();
    let mut result = cpu.vector(bus, a, 16);
    result.set_lane(half, cpu.vector(bus, b, 8).lane(0));
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

/// For each block of 16 bytes: two lanes from two sources.
fn lanes(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, pick: fn(&Vector, &Vector) -> [Value; 2]) -> Step {
    let size = op.operand(0).size();
    let (a, b) = op.two_sources();
    let (a, b) = (cpu.vector(bus, a, size), cpu.vector(bus, b, size));
    let mut result = Vector::ZERO;
    for block in 0..size / 16 {
        let part = |v: &Vector| {
            let mut part = Vector::ZERO;
            part.set_lane(0, v.lane(2 * block));
            part.set_lane(1, v.lane(2 * block + 1));
            part
        };
        for (n, value) in pick(&part(&a), &part(&b)).into_iter().enumerate() {
            result.set_lane(2 * block + n, value);
        }
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn spread(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize) -> Step {
    let value = cpu.vector(bus, op.operand(1), width).lane(0);
    let mut result = Vector::ZERO;
    for n in 0..op.operand(0).size() / width {
        if width == 8 {
            result.set_lane(n, value);
        } else {
            result.set_element(width, n, value.bits);
        }
    }
    cpu.set_vector(bus, op, result, width);
    Step::Next
}

fn spread_pairs(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let source = cpu.vector(bus, op.operand(1), if size == 16 { 8 } else { size });
    let mut result = Vector::ZERO;
    for n in 0..size / 8 {
        result.set_lane(n, source.lane(n & !1));
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn spread_block(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, count: usize) -> Step {
    let source = cpu.vector(bus, op.operand(1), 8 * count);
    let mut result = Vector::ZERO;
    for n in 0..op.operand(0).size() / 8 {
        result.set_lane(n, source.lane(n % count));
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn insert(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize) -> Step {
    let (base, from, n) = op.two_sources_and_immediate();
    let value = cpu.read_sized(bus, from, width);
    let mut result = cpu.vector(bus, base, 16);
    let n = n as usize % (16 / width);
    if width == 8 {
        result.set_lane(n, value);
    } else {
        result.set_element(width, n, value.bits);
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn extract(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize) -> Step {
    let source = cpu.vector(bus, op.operand(1), 16);
    let n = op.operand(2).immediate() as usize % (16 / width);
    let value = if width == 8 { source.lane(n) } else { Value::new(source.element(width, n)) };
    match op.operand(0) {
        Operand::Memory { .. } => {
            let address = cpu.address(op.operand(0));
            bus.store(address, width, value);
        }
        to => cpu.write(bus, to, value),
    }
    Step::Next
}

/// Takes `count` lanes at a position counted in such blocks.
fn extract_block(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, count: usize) -> Step {
    let source = cpu.vector(bus, op.operand(1), 64);
    let blocks = (op.operand(1).size() / (8 * count)).max(1);
    let n = op.operand(2).immediate() as usize % blocks;
    let mut result = Vector::ZERO;
    for lane in 0..count {
        result.set_lane(lane, source.lane(n * count + lane));
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn insert_block(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, count: usize) -> Step {
    let size = op.operand(0).size();
    let mut result = cpu.vector(bus, op.operand(1), size);
    let block = cpu.vector(bus, op.operand(2), 8 * count);
    let n = usize::from(op.selector) % (size / (8 * count)).max(1);
    for lane in 0..count {
        result.set_lane(n * count + lane, block.lane(lane));
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn permute_lanes(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let mut result = Vector::ZERO;
    if let Operand::Immediate(order) = op.operand(2) {
        let source = cpu.vector(bus, op.operand(1), size);
        for n in 0..size / 8 {
            result.set_lane(n, source.lane((n & !3) + (order >> (2 * (n % 4)) & 3) as usize));
        }
    } else {
        let (order, source) = (cpu.vector(bus, op.operand(1), size), cpu.vector(bus, op.operand(2), size));
        for n in 0..size / 8 {
            result.set_lane(n, source.lane(order.lane(n).bits as usize % (size / 8)));
        }
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn permute_blocks(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (a, b) = (cpu.vector(bus, op.operand(1), 32), cpu.vector(bus, op.operand(2), 32));
    let order = op.selector;
    let mut result = Vector::ZERO;
    for block in 0..2 {
        let choice = order >> (4 * block) & 0xf;
        if choice & 8 != 0 {
            continue;
        }
        let source = if choice & 2 == 0 { &a } else { &b };
        for lane in 0..2 {
            result.set_lane(2 * block + lane, source.lane(2 * (choice as usize & 1) + lane));
        }
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn shuffle_lanes(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let (a, b, order) = op.two_sources_and_immediate();
    let (a, b) = (cpu.vector(bus, a, size), cpu.vector(bus, b, size));
    let mut result = Vector::ZERO;
    for n in 0..size / 8 {
        let source = if n % 2 == 0 { &a } else { &b };
        result.set_lane(n, source.lane((n & !1) + (order >> n & 1) as usize));
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn permute_in_block(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let source = cpu.vector(bus, op.operand(1), size);
    let Operand::Immediate(order) = op.operand(2) else { return cpu.unsupported(op) };
    let mut result = Vector::ZERO;
    for n in 0..size / 8 {
        result.set_lane(n, source.lane((n & !1) + (order >> n & 1) as usize));
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn align_lanes(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let count = size / 8;
    let (high, low) = (cpu.vector(bus, op.operand(1), size), cpu.vector(bus, op.operand(2), size));
    let by = usize::from(op.selector) % count.max(1);
    let mut result = Vector::ZERO;
    for n in 0..count {
        let at = n + by;
        result.set_lane(n, if at < count { low.lane(at) } else { high.lane(at - count) });
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

/// `vpermt2q` has its indices in the second operand, `vpermi2q` in the first.
fn permute_two(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let count = size / 8;
    let (x, y) = (cpu.vector(bus, op.operand(0), size), cpu.vector(bus, op.operand(1), size));
    let second = cpu.vector(bus, op.operand(2), size);
    let (order, first) = if op.mnemonic == Mnemonic::Vpermi2q { (x, y) } else { (y, x) };
    let mut result = Vector::ZERO;
    for n in 0..count {
        let at = order.lane(n).bits as usize % (2 * count).max(1);
        result.set_lane(n, if at < count { first.lane(at) } else { second.lane(at - count) });
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

/// Addresses of the elements of a gather or scatter.
fn places(cpu: &X86_64, operand: Operand, index_width: usize, count: usize) -> Vec<u64> {
    let Operand::Lanes { base, index, scale, displacement, .. } = operand else { return Vec::new() };
    let base = cpu.general(usize::from(base)).bits.wrapping_add(displacement as u64);
    let indices = cpu.vector_register(index);
    (0..count)
        .map(|n| sign_extend(indices.element(index_width, n), index_width))
        .map(|n| base.wrapping_add((n as u64).wrapping_mul(u64::from(scale))))
        .collect()
}

/// As many as there are both elements and indices.
fn lane_count(operand: Operand, elements: usize, index_width: usize) -> usize {
    let Operand::Lanes { index_size, .. } = operand else { return 0 };
    elements.min(usize::from(index_size) / index_width)
}

/// Elements that take part: those of the mask register, or (AVX2) with the sign set in the mask operand.
fn participants(cpu: &X86_64, op: &Op, width: usize, count: usize) -> Vec<bool> {
    if op.mask != 0 {
        let bits = cpu.registers.mask.get(usize::from(op.mask)).copied().unwrap_or(0);
        return (0..count).map(|n| bits >> n & 1 != 0).collect();
    }
    let Operand::Vector { number, .. } = op.operand(2) else { return vec![true; count] };
    let mask = cpu.vector_register(number);
    (0..count).map(|n| mask.element(width, n) >> (8 * width - 1) & 1 != 0).collect()
}

fn clear_mask(cpu: &mut X86_64, op: &Op) {
    if let Some(mask) = cpu.registers.mask.get_mut(usize::from(op.mask)).filter(|_| op.mask != 0) {
        *mask = 0;
    }
}

fn gather(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, index_width: usize, width: usize) -> Step {
    let size = op.operand(0).size();
    let count = lane_count(op.operand(1), size / width, index_width);
    let mut result = cpu.vector(bus, op.operand(0), size);
    let places = places(cpu, op.operand(1), index_width, count);
    let taken = participants(cpu, op, width, count);
    for (n, at) in places.into_iter().enumerate().filter(|(n, _)| taken.get(*n) == Some(&true)) {
        let value = bus.load(at, width);
        if width == 8 {
            result.set_lane(n, value);
        } else {
            result.set_element(width, n, value.bits);
        }
    }
    cpu.set_vector(bus, &Op { mask: 0, ..*op }, result, width);
    clear_mask(cpu, op);
    Step::Next
}

fn scatter(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, index_width: usize, width: usize) -> Step {
    let size = op.operand(1).size();
    let count = lane_count(op.operand(0), size / width, index_width);
    let source = cpu.vector(bus, op.operand(1), size);
    let places = places(cpu, op.operand(0), index_width, count);
    let taken = participants(cpu, op, width, count);
    for (n, at) in places.into_iter().enumerate().filter(|(n, _)| taken.get(*n) == Some(&true)) {
        let value = if width == 8 { source.lane(n) } else { Value::new(source.element(width, n)) };
        bus.store(at, width, value);
    }
    clear_mask(cpu, op);
    Step::Next
}
