//! AArch64 through disarm64.

use super::{Callee, Condition, Flags, Flow, Registers, Step};
use disarm64::InsnOpcode;
use disarm64::decoder::{InsnId, Opcode, decode};
use disarm64_defn::{InsnClass, InsnOperandKind};

pub(in super::super) struct Decoder<'a> {
    words: std::slice::ChunksExact<'a, u8>,
    address: u64,
}

/// Register number that means zero, or the stack pointer.
const ZERO: usize = 31;
/// Registers that a call does not keep (procedure call standard: x0 to x18, x30).
const CALL_CLOBBERED: usize = 18;

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8], start: u64, address: u64) -> Self {
        let skip = address.checked_sub(start).and_then(|n| usize::try_from(n).ok()).unwrap_or(bytes.len());
        Self { words: bytes.get(skip..).unwrap_or_default().chunks_exact(4), address }
    }

    pub(super) fn step(&mut self, registers: &mut Registers) -> Option<Step> {
        let word = u32::from_le_bytes(self.words.next()?.try_into().ok()?);
        let address = self.address;
        self.address = address.wrapping_add(4);
        let mut step = Step { address, length: 4, flow: Flow::Next, flags: Flags::Kept, forms: None, slot: None };
        match decode(word) {
            Some(opcode) => read(&mut step, &opcode, registers),
            None => step.flow = Flow::Stop,
        }
        Some(step)
    }
}

/// `width` bits of `word` from `low` up.
fn bits(word: u32, low: u32, width: u32) -> u32 {
    (word >> low) & (u32::MAX >> (32 - width))
}

/// The same as a signed number.
fn signed(word: u32, low: u32, width: u32) -> i64 {
    i64::from((word << (32 - low - width)).cast_signed() >> (32 - width))
}

fn read(step: &mut Step, opcode: &Opcode, registers: &mut Registers) {
    let word = opcode.bits();
    let number = |low| bits(word, low, 5) as usize;
    let (rd, rn, rm) = (number(0), number(5), number(16));
    let is_64 = word >> 31 == 1;
    let relative = |low, width| step.address.wrapping_add_signed(signed(word, low, width) << 2);
    let known = |r: usize| if r == ZERO { Some(0) } else { registers.get(r).copied().flatten() };

    let value = match opcode.id() {
        InsnId::B_ADDR_PCREL26 => return step.flow = Flow::Jump(relative(0, 26)),
        InsnId::BL_ADDR_PCREL26 => {
            step.flow = Flow::Call(Callee::Code(relative(0, 26)));
            return forget_after_call(registers);
        }
        InsnId::BLR_Rn | InsnId::BLRAA_Rn_Rd_SP | InsnId::BLRAAZ_Rn | InsnId::BLRAB_Rn_Rd_SP | InsnId::BLRABZ_Rn => {
            step.flow = Flow::Call(Callee::Unknown);
            return forget_after_call(registers);
        }
        InsnId::B_C_ADDR_PCREL19 => {
            step.flow =
                Flow::Branch { target: relative(5, 19), condition: condition(bits(word, 0, 4)), compares: None };
            return;
        }
        InsnId::CBZ_Rt_ADDR_PCREL19 => return step.flow = zero_branch(relative(5, 19), Condition::Equal),
        InsnId::CBNZ_Rt_ADDR_PCREL19 => return step.flow = zero_branch(relative(5, 19), Condition::NotEqual),
        InsnId::TBZ_Rt_BIT_NUM_ADDR_PCREL14 => {
            return step.flow = sign_branch(word, relative(5, 14), Condition::GreaterEqual);
        }
        InsnId::TBNZ_Rt_BIT_NUM_ADDR_PCREL14 => {
            return step.flow = sign_branch(word, relative(5, 14), Condition::Less);
        }
        InsnId::BRK_EXCEPTION | InsnId::UDF_UNDEFINED => return step.flow = Flow::Stop,
        // br, ret and their authenticated forms
        _ if opcode.definition().class == InsnClass::BRANCH_REG => return step.flow = Flow::Stop,
        // cmp and cmn are subs and adds into the zero register
        InsnId::SUBS_Rd_Rn_SP_AIMM | InsnId::ADDS_Rd_Rn_SP_AIMM => {
            let sign = if opcode.id() == InsnId::ADDS_Rd_Rn_SP_AIMM { -1 } else { 1 };
            step.flags = Flags::Compared(sign * i64::from(add_immediate(word)));
            None
        }
        InsnId::ADD_Rd_SP_Rn_SP_AIMM if rn != ZERO => {
            known(rn).map(|base| base.wrapping_add(u64::from(add_immediate(word))))
        }
        InsnId::ADR_Rd_ADDR_PCREL21 => Some(step.address.wrapping_add_signed(page_offset(word))),
        InsnId::ADRP_Rd_ADDR_ADRP => {
            // only half of an address: not yet a mention
            if let Some(slot) = registers.get_mut(rd) {
                *slot = Some((step.address & !0xfff).wrapping_add_signed(page_offset(word) << 12));
            }
            return;
        }
        InsnId::ORR_Rd_Rn_Rm_SFT if rn == ZERO && bits(word, 10, 6) == 0 => known(rm),
        InsnId::LDR_Rt_ADDR_UIMM12 if word >> 30 == 3 => {
            step.slot =
                known(rn).filter(|_| rn != ZERO).map(|base| base.wrapping_add(u64::from(bits(word, 10, 12)) * 8));
            None
        }
        InsnId::LDR_Rt_ADDR_PCREL19 => {
            step.slot = Some(relative(5, 19));
            None
        }
        InsnId::MOVZ_Rd_HALF => Some(half(word)),
        InsnId::MOVN_Rd_HALF if is_64 => Some(!half(word)),
        InsnId::MOVN_Rd_HALF => Some(u64::from(!(half(word) as u32))),
        InsnId::MOVK_Rd_HALF => {
            let mask = 0xffff_u64 << (16 * bits(word, 21, 2));
            known(rd).map(|old| (old & !mask) | half(word))
        }
        _ => {
            if sets_flags(opcode) {
                step.flags = Flags::Changed;
            }
            if !writes_first(opcode) {
                return;
            }
            None
        }
    };
    if let Some(slot) = registers.get_mut(rd).filter(|_| rd != ZERO) {
        *slot = value;
        step.forms = value;
    }
}

/// The immediate of add and sub, shifted by 12 where the instruction says so.
fn add_immediate(word: u32) -> u32 {
    bits(word, 10, 12) << (12 * bits(word, 22, 1))
}

/// The immediate of `adr` (bytes) and `adrp` (pages).
fn page_offset(word: u32) -> i64 {
    (signed(word, 5, 19) << 2) | i64::from(bits(word, 29, 2))
}

/// The 16 bits of a wide move in their place.
fn half(word: u32) -> u64 {
    u64::from(bits(word, 5, 16)) << (16 * bits(word, 21, 2))
}

fn zero_branch(target: u64, condition: Condition) -> Flow {
    Flow::Branch { target, condition, compares: Some(0) }
}

/// `tbz` and `tbnz` test one bit; the highest one is the sign.
fn sign_branch(word: u32, target: u64, condition: Condition) -> Flow {
    let bit = (bits(word, 31, 1) << 5) | bits(word, 19, 5);
    if bit == 31 || bit == 63 {
        Flow::Branch { target, condition, compares: Some(0) }
    } else {
        Flow::Branch { target, condition: Condition::Other, compares: None }
    }
}

fn condition(field: u32) -> Condition {
    match field {
        0 => Condition::Equal,
        1 => Condition::NotEqual,
        // hs and ge, lo and lt with mi, hi and gt, ls and le
        2 | 5 | 10 => Condition::GreaterEqual,
        3 | 4 | 11 => Condition::Less,
        8 | 12 => Condition::Greater,
        9 | 13 => Condition::LessEqual,
        _ => Condition::Other,
    }
}

fn forget_after_call(registers: &mut Registers) {
    for (number, slot) in registers.iter_mut().enumerate() {
        if number <= CALL_CLOBBERED {
            *slot = None;
        }
    }
}

fn sets_flags(opcode: &Opcode) -> bool {
    match opcode.definition().class {
        InsnClass::ADDSUB_IMM | InsnClass::ADDSUB_SHIFT | InsnClass::ADDSUB_EXT | InsnClass::ADDSUB_CARRY => {
            bits(opcode.bits(), 29, 1) == 1
        }
        InsnClass::LOG_IMM | InsnClass::LOG_SHIFT => bits(opcode.bits(), 29, 2) == 3,
        InsnClass::CONDCMP_IMM | InsnClass::CONDCMP_REG | InsnClass::FLOATCMP | InsnClass::FLOATCCMP => true,
        _ => false,
    }
}

/// The register in the lowest five bits receives a value.
fn writes_first(opcode: &Opcode) -> bool {
    let definition = opcode.definition();
    match definition.operands.first().map(|operand| operand.kind) {
        Some(InsnOperandKind::Rd | InsnOperandKind::Rd_SP) => true,
        Some(InsnOperandKind::Rt) => definition.mnemonic.starts_with("ld"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(words: &[u32]) -> Vec<Step> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut registers = Registers::default();
        let mut decoder = Decoder::new(&bytes, 0x1a4ec, 0x1a4ec);
        std::iter::from_fn(|| decoder.step(&mut registers)).collect()
    }

    #[test]
    fn page_and_offset_form_an_address() {
        // adrp x1,0x3f000; add x1,x1,#472; mov x2,x1; bl; mov x3,x1
        let steps = all(&[0xb000_0121, 0x9107_6021, 0xaa01_03e2, 0x97ff_fb0c, 0xaa01_03e3]);
        assert_eq!(
            steps.iter().map(|step| step.forms).collect::<Vec<_>>(),
            [None, Some(0x3f1d8), Some(0x3f1d8), None, None]
        );
    }

    #[test]
    fn compare_and_branch() {
        // cmp x0,#1024; b.gt +0xdc; cbnz w0,+8; subs x1,x0,x2
        let steps = all(&[0xf110_001f, 0x5400_06ec, 0x3500_0040, 0xeb02_0001]);
        assert_eq!(steps[0].flags, Flags::Compared(1024));
        assert_eq!(
            steps[1].flow,
            Flow::Branch { target: 0x1a4f0 + 0xdc, condition: Condition::Greater, compares: None }
        );
        assert!(matches!(steps[2].flow, Flow::Branch { condition: Condition::NotEqual, compares: Some(0), .. }));
        assert_eq!(steps[3].flags, Flags::Changed);
    }
}
