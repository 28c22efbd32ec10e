//! Integer arithmetic, logic and shuffles on the elements of vector registers, and mask registers.

use super::decode::Op;
use super::flags::Flags;
use super::operands::Operand;
use super::vector::Vector;
use super::{Bus, Semantics, Step, X86_64};
use crate::interpret::memory::mask;
use crate::interpret::value::{Operation, Value, sign_extend};
use iced_x86::Mnemonic;

pub const TABLE: &[(Mnemonic, Semantics)] = &[
    (Mnemonic::Pxor, |c, b, op| logic(c, b, op, 8, xor)),
    (Mnemonic::Xorps, |c, b, op| logic(c, b, op, 4, xor)),
    (Mnemonic::Xorpd, |c, b, op| logic(c, b, op, 8, xor)),
    (Mnemonic::Vpxor, |c, b, op| logic(c, b, op, 8, xor)),
    (Mnemonic::Vxorps, |c, b, op| logic(c, b, op, 4, xor)),
    (Mnemonic::Vxorpd, |c, b, op| logic(c, b, op, 8, xor)),
    (Mnemonic::Vpxord, |c, b, op| logic(c, b, op, 4, xor)),
    (Mnemonic::Vpxorq, |c, b, op| logic(c, b, op, 8, xor)),
    (Mnemonic::Pand, |c, b, op| logic(c, b, op, 8, and)),
    (Mnemonic::Andps, |c, b, op| logic(c, b, op, 4, and)),
    (Mnemonic::Andpd, |c, b, op| logic(c, b, op, 8, and)),
    (Mnemonic::Vpand, |c, b, op| logic(c, b, op, 8, and)),
    (Mnemonic::Vandps, |c, b, op| logic(c, b, op, 4, and)),
    (Mnemonic::Vandpd, |c, b, op| logic(c, b, op, 8, and)),
    (Mnemonic::Vpandd, |c, b, op| logic(c, b, op, 4, and)),
    (Mnemonic::Vpandq, |c, b, op| logic(c, b, op, 8, and)),
    (Mnemonic::Pandn, |c, b, op| logic(c, b, op, 8, and_not)),
    (Mnemonic::Andnps, |c, b, op| logic(c, b, op, 4, and_not)),
    (Mnemonic::Andnpd, |c, b, op| logic(c, b, op, 8, and_not)),
    (Mnemonic::Vpandn, |c, b, op| logic(c, b, op, 8, and_not)),
    (Mnemonic::Vandnps, |c, b, op| logic(c, b, op, 4, and_not)),
    (Mnemonic::Vpandnd, |c, b, op| logic(c, b, op, 4, and_not)),
    (Mnemonic::Vpandnq, |c, b, op| logic(c, b, op, 8, and_not)),
    (Mnemonic::Por, |c, b, op| logic(c, b, op, 8, or)),
    (Mnemonic::Orps, |c, b, op| logic(c, b, op, 4, or)),
    (Mnemonic::Orpd, |c, b, op| logic(c, b, op, 8, or)),
    (Mnemonic::Vpor, |c, b, op| logic(c, b, op, 8, or)),
    (Mnemonic::Vorps, |c, b, op| logic(c, b, op, 4, or)),
    (Mnemonic::Vorpd, |c, b, op| logic(c, b, op, 8, or)),
    (Mnemonic::Vpord, |c, b, op| logic(c, b, op, 4, or)),
    (Mnemonic::Vporq, |c, b, op| logic(c, b, op, 8, or)),
    (Mnemonic::Vpternlogd, |c, b, op| ternary_logic(c, b, op, 4)),
    (Mnemonic::Vpternlogq, |c, b, op| ternary_logic(c, b, op, 8)),
    (Mnemonic::Paddb, |c, b, op| each(c, b, op, 1, add)),
    (Mnemonic::Paddw, |c, b, op| each(c, b, op, 2, add)),
    (Mnemonic::Paddd, |c, b, op| each(c, b, op, 4, add)),
    (Mnemonic::Paddq, |c, b, op| sum(c, b, op, 1)),
    (Mnemonic::Vpaddb, |c, b, op| each(c, b, op, 1, add)),
    (Mnemonic::Vpaddw, |c, b, op| each(c, b, op, 2, add)),
    (Mnemonic::Vpaddd, |c, b, op| each(c, b, op, 4, add)),
    (Mnemonic::Vpaddq, |c, b, op| sum(c, b, op, 1)),
    (Mnemonic::Psubb, |c, b, op| each(c, b, op, 1, sub)),
    (Mnemonic::Psubw, |c, b, op| each(c, b, op, 2, sub)),
    (Mnemonic::Psubd, |c, b, op| each(c, b, op, 4, sub)),
    (Mnemonic::Psubq, |c, b, op| sum(c, b, op, -1)),
    (Mnemonic::Vpsubb, |c, b, op| each(c, b, op, 1, sub)),
    (Mnemonic::Vpsubw, |c, b, op| each(c, b, op, 2, sub)),
    (Mnemonic::Vpsubd, |c, b, op| each(c, b, op, 4, sub)),
    (Mnemonic::Vpsubq, |c, b, op| sum(c, b, op, -1)),
    (Mnemonic::Psubusb, |c, b, op| each(c, b, op, 1, |x, y, _| x.saturating_sub(y))),
    (Mnemonic::Psubusw, |c, b, op| each(c, b, op, 2, |x, y, _| x.saturating_sub(y))),
    (Mnemonic::Vpsubusb, |c, b, op| each(c, b, op, 1, |x, y, _| x.saturating_sub(y))),
    (Mnemonic::Pmuludq, |c, b, op| each(c, b, op, 8, low_product)),
    (Mnemonic::Vpmuludq, |c, b, op| each(c, b, op, 8, low_product)),
    (Mnemonic::Pmulld, |c, b, op| each(c, b, op, 4, |x, y, _| x.wrapping_mul(y))),
    (Mnemonic::Vpmulld, |c, b, op| each(c, b, op, 4, |x, y, _| x.wrapping_mul(y))),
    (Mnemonic::Pmullw, |c, b, op| each(c, b, op, 2, |x, y, _| x.wrapping_mul(y))),
    (Mnemonic::Vpmullw, |c, b, op| each(c, b, op, 2, |x, y, _| x.wrapping_mul(y))),
    (Mnemonic::Vpmullq, products),
    (Mnemonic::Pcmpeqb, |c, b, op| each(c, b, op, 1, equal)),
    (Mnemonic::Pcmpeqw, |c, b, op| each(c, b, op, 2, equal)),
    (Mnemonic::Pcmpeqd, |c, b, op| each(c, b, op, 4, equal)),
    (Mnemonic::Pcmpeqq, |c, b, op| each(c, b, op, 8, equal)),
    (Mnemonic::Pcmpgtb, |c, b, op| each(c, b, op, 1, greater)),
    (Mnemonic::Pcmpgtw, |c, b, op| each(c, b, op, 2, greater)),
    (Mnemonic::Pcmpgtd, |c, b, op| each(c, b, op, 4, greater)),
    (Mnemonic::Pcmpgtq, |c, b, op| each(c, b, op, 8, greater)),
    (Mnemonic::Vpcmpeqb, |c, b, op| compare(c, b, op, 1, equal)),
    (Mnemonic::Vpcmpeqw, |c, b, op| compare(c, b, op, 2, equal)),
    (Mnemonic::Vpcmpeqd, |c, b, op| compare(c, b, op, 4, equal)),
    (Mnemonic::Vpcmpeqq, |c, b, op| compare(c, b, op, 8, equal)),
    (Mnemonic::Vpcmpgtb, |c, b, op| compare(c, b, op, 1, greater)),
    (Mnemonic::Vpcmpgtw, |c, b, op| compare(c, b, op, 2, greater)),
    (Mnemonic::Vpcmpgtd, |c, b, op| compare(c, b, op, 4, greater)),
    (Mnemonic::Vpcmpgtq, |c, b, op| compare(c, b, op, 8, greater)),
    (Mnemonic::Vpcmpub, |c, b, op| compare_by_number(c, b, op, 1, false)),
    (Mnemonic::Vpcmpuw, |c, b, op| compare_by_number(c, b, op, 2, false)),
    (Mnemonic::Vpcmpud, |c, b, op| compare_by_number(c, b, op, 4, false)),
    (Mnemonic::Vpcmpuq, |c, b, op| compare_by_number(c, b, op, 8, false)),
    (Mnemonic::Vpcmpb, |c, b, op| compare_by_number(c, b, op, 1, true)),
    (Mnemonic::Vpcmpw, |c, b, op| compare_by_number(c, b, op, 2, true)),
    (Mnemonic::Vpcmpd, |c, b, op| compare_by_number(c, b, op, 4, true)),
    (Mnemonic::Vpcmpq, |c, b, op| compare_by_number(c, b, op, 8, true)),
    (Mnemonic::Vptestmb, |c, b, op| test_into_mask(c, b, op, 1, false)),
    (Mnemonic::Vptestmd, |c, b, op| test_into_mask(c, b, op, 4, false)),
    (Mnemonic::Vptestmq, |c, b, op| test_into_mask(c, b, op, 8, false)),
    (Mnemonic::Vptestnmb, |c, b, op| test_into_mask(c, b, op, 1, true)),
    (Mnemonic::Vptestnmd, |c, b, op| test_into_mask(c, b, op, 4, true)),
    (Mnemonic::Vptestnmq, |c, b, op| test_into_mask(c, b, op, 8, true)),
    (Mnemonic::Pminub, |c, b, op| each(c, b, op, 1, min_unsigned)),
    (Mnemonic::Vpminub, |c, b, op| each(c, b, op, 1, min_unsigned)),
    (Mnemonic::Vpminuw, |c, b, op| each(c, b, op, 2, min_unsigned)),
    (Mnemonic::Pminud, |c, b, op| each(c, b, op, 4, min_unsigned)),
    (Mnemonic::Vpminud, |c, b, op| each(c, b, op, 4, min_unsigned)),
    (Mnemonic::Vpminuq, |c, b, op| each(c, b, op, 8, min_unsigned)),
    (Mnemonic::Pmaxub, |c, b, op| each(c, b, op, 1, max_unsigned)),
    (Mnemonic::Vpmaxub, |c, b, op| each(c, b, op, 1, max_unsigned)),
    (Mnemonic::Pmaxud, |c, b, op| each(c, b, op, 4, max_unsigned)),
    (Mnemonic::Vpmaxud, |c, b, op| each(c, b, op, 4, max_unsigned)),
    (Mnemonic::Vpmaxuq, |c, b, op| each(c, b, op, 8, max_unsigned)),
    (Mnemonic::Pminsd, |c, b, op| each(c, b, op, 4, min_signed)),
    (Mnemonic::Vpminsd, |c, b, op| each(c, b, op, 4, min_signed)),
    (Mnemonic::Vpminsq, |c, b, op| each(c, b, op, 8, min_signed)),
    (Mnemonic::Pmaxsd, |c, b, op| each(c, b, op, 4, max_signed)),
    (Mnemonic::Vpmaxsd, |c, b, op| each(c, b, op, 4, max_signed)),
    (Mnemonic::Vpmaxsq, |c, b, op| each(c, b, op, 8, max_signed)),
    (Mnemonic::Pmovmskb, |c, b, op| sign_bits(c, b, op, 1)),
    (Mnemonic::Vpmovmskb, |c, b, op| sign_bits(c, b, op, 1)),
    (Mnemonic::Movmskps, |c, b, op| sign_bits(c, b, op, 4)),
    (Mnemonic::Vmovmskps, |c, b, op| sign_bits(c, b, op, 4)),
    (Mnemonic::Movmskpd, |c, b, op| sign_bits(c, b, op, 8)),
    (Mnemonic::Vmovmskpd, |c, b, op| sign_bits(c, b, op, 8)),
    (Mnemonic::Ptest, ptest),
    (Mnemonic::Vptest, ptest),
    (Mnemonic::Pshufd, |c, b, op| shuffle_words(c, b, op, 4, 0)),
    (Mnemonic::Vpshufd, |c, b, op| shuffle_words(c, b, op, 4, 0)),
    (Mnemonic::Vpermilps, |c, b, op| shuffle_words(c, b, op, 4, 0)),
    (Mnemonic::Pshuflw, |c, b, op| shuffle_words(c, b, op, 2, 0)),
    (Mnemonic::Vpshuflw, |c, b, op| shuffle_words(c, b, op, 2, 0)),
    (Mnemonic::Pshufhw, |c, b, op| shuffle_words(c, b, op, 2, 4)),
    (Mnemonic::Vpshufhw, |c, b, op| shuffle_words(c, b, op, 2, 4)),
    (Mnemonic::Shufps, shufps),
    (Mnemonic::Vshufps, shufps),
    (Mnemonic::Pshufb, pshufb),
    (Mnemonic::Vpshufb, pshufb),
    (Mnemonic::Punpcklbw, |c, b, op| interleave(c, b, op, 1, false)),
    (Mnemonic::Punpcklwd, |c, b, op| interleave(c, b, op, 2, false)),
    (Mnemonic::Punpckldq, |c, b, op| interleave(c, b, op, 4, false)),
    (Mnemonic::Unpcklps, |c, b, op| interleave(c, b, op, 4, false)),
    (Mnemonic::Punpckhbw, |c, b, op| interleave(c, b, op, 1, true)),
    (Mnemonic::Punpckhwd, |c, b, op| interleave(c, b, op, 2, true)),
    (Mnemonic::Punpckhdq, |c, b, op| interleave(c, b, op, 4, true)),
    (Mnemonic::Unpckhps, |c, b, op| interleave(c, b, op, 4, true)),
    (Mnemonic::Vpunpcklbw, |c, b, op| interleave(c, b, op, 1, false)),
    (Mnemonic::Vpunpcklwd, |c, b, op| interleave(c, b, op, 2, false)),
    (Mnemonic::Vpunpckldq, |c, b, op| interleave(c, b, op, 4, false)),
    (Mnemonic::Vunpcklps, |c, b, op| interleave(c, b, op, 4, false)),
    (Mnemonic::Vpunpckhbw, |c, b, op| interleave(c, b, op, 1, true)),
    (Mnemonic::Vpunpckhwd, |c, b, op| interleave(c, b, op, 2, true)),
    (Mnemonic::Vpunpckhdq, |c, b, op| interleave(c, b, op, 4, true)),
    (Mnemonic::Packuswb, |c, b, op| pack(c, b, op, 2, 0, 0xff)),
    (Mnemonic::Vpackuswb, |c, b, op| pack(c, b, op, 2, 0, 0xff)),
    (Mnemonic::Packusdw, |c, b, op| pack(c, b, op, 4, 0, 0xffff)),
    (Mnemonic::Vpackusdw, |c, b, op| pack(c, b, op, 4, 0, 0xffff)),
    (Mnemonic::Packsswb, |c, b, op| pack(c, b, op, 2, -0x80, 0x7f)),
    (Mnemonic::Vpacksswb, |c, b, op| pack(c, b, op, 2, -0x80, 0x7f)),
    (Mnemonic::Packssdw, |c, b, op| pack(c, b, op, 4, -0x8000, 0x7fff)),
    (Mnemonic::Vpackssdw, |c, b, op| pack(c, b, op, 4, -0x8000, 0x7fff)),
    (Mnemonic::Psllw, |c, b, op| shift(c, b, op, 2, left)),
    (Mnemonic::Pslld, |c, b, op| shift(c, b, op, 4, left)),
    (Mnemonic::Psllq, |c, b, op| shift(c, b, op, 8, left)),
    (Mnemonic::Vpsllw, |c, b, op| shift(c, b, op, 2, left)),
    (Mnemonic::Vpslld, |c, b, op| shift(c, b, op, 4, left)),
    (Mnemonic::Vpsllq, |c, b, op| shift(c, b, op, 8, left)),
    (Mnemonic::Psrlw, |c, b, op| shift(c, b, op, 2, right)),
    (Mnemonic::Psrld, |c, b, op| shift(c, b, op, 4, right)),
    (Mnemonic::Psrlq, |c, b, op| shift(c, b, op, 8, right)),
    (Mnemonic::Vpsrlw, |c, b, op| shift(c, b, op, 2, right)),
    (Mnemonic::Vpsrld, |c, b, op| shift(c, b, op, 4, right)),
    (Mnemonic::Vpsrlq, |c, b, op| shift(c, b, op, 8, right)),
    (Mnemonic::Psraw, |c, b, op| shift(c, b, op, 2, right_signed)),
    (Mnemonic::Psrad, |c, b, op| shift(c, b, op, 4, right_signed)),
    (Mnemonic::Vpsrad, |c, b, op| shift(c, b, op, 4, right_signed)),
    (Mnemonic::Vpsraq, |c, b, op| shift(c, b, op, 8, right_signed)),
    (Mnemonic::Pslldq, |c, b, op| shift_bytes(c, b, op, true)),
    (Mnemonic::Vpslldq, |c, b, op| shift_bytes(c, b, op, true)),
    (Mnemonic::Psrldq, |c, b, op| shift_bytes(c, b, op, false)),
    (Mnemonic::Vpsrldq, |c, b, op| shift_bytes(c, b, op, false)),
    (Mnemonic::Palignr, palignr),
    (Mnemonic::Vpalignr, palignr),
    (Mnemonic::Pmovzxbw, |c, b, op| widen(c, b, op, 1, 2, false)),
    (Mnemonic::Pmovzxbd, |c, b, op| widen(c, b, op, 1, 4, false)),
    (Mnemonic::Pmovzxbq, |c, b, op| widen(c, b, op, 1, 8, false)),
    (Mnemonic::Pmovzxwd, |c, b, op| widen(c, b, op, 2, 4, false)),
    (Mnemonic::Pmovzxdq, |c, b, op| widen(c, b, op, 4, 8, false)),
    (Mnemonic::Pmovsxdq, |c, b, op| widen(c, b, op, 4, 8, true)),
    (Mnemonic::Vpmovzxbw, |c, b, op| widen(c, b, op, 1, 2, false)),
    (Mnemonic::Vpmovzxbd, |c, b, op| widen(c, b, op, 1, 4, false)),
    (Mnemonic::Vpmovzxbq, |c, b, op| widen(c, b, op, 1, 8, false)),
    (Mnemonic::Vpmovzxwd, |c, b, op| widen(c, b, op, 2, 4, false)),
    (Mnemonic::Vpmovzxdq, |c, b, op| widen(c, b, op, 4, 8, false)),
    (Mnemonic::Vpmovsxbd, |c, b, op| widen(c, b, op, 1, 4, true)),
    (Mnemonic::Vpmovsxwd, |c, b, op| widen(c, b, op, 2, 4, true)),
    (Mnemonic::Vpmovsxdq, |c, b, op| widen(c, b, op, 4, 8, true)),
    (Mnemonic::Vpmovqd, |c, b, op| narrow(c, b, op, 8, 4)),
    (Mnemonic::Vpmovdb, |c, b, op| narrow(c, b, op, 4, 1)),
    (Mnemonic::Vpmovwb, |c, b, op| narrow(c, b, op, 2, 1)),
    (Mnemonic::Pblendw, pblendw),
    (Mnemonic::Vpblendw, pblendw),
    (Mnemonic::Vpblendd, |c, b, op| blend_by_number(c, b, op, 4)),
    (Mnemonic::Blendps, |c, b, op| blend_by_number(c, b, op, 4)),
    (Mnemonic::Vblendps, |c, b, op| blend_by_number(c, b, op, 4)),
    (Mnemonic::Blendpd, |c, b, op| blend_by_number(c, b, op, 8)),
    (Mnemonic::Vblendpd, |c, b, op| blend_by_number(c, b, op, 8)),
    (Mnemonic::Kmovb, |c, b, op| move_mask(c, b, op, 1)),
    (Mnemonic::Kmovw, |c, b, op| move_mask(c, b, op, 2)),
    (Mnemonic::Kmovd, |c, b, op| move_mask(c, b, op, 4)),
    (Mnemonic::Kmovq, |c, b, op| move_mask(c, b, op, 8)),
    (Mnemonic::Kxnorb, |c, b, op| combine_masks(c, b, op, 1, |x, y| !(x ^ y))),
    (Mnemonic::Kxnorw, |c, b, op| combine_masks(c, b, op, 2, |x, y| !(x ^ y))),
    (Mnemonic::Kxnord, |c, b, op| combine_masks(c, b, op, 4, |x, y| !(x ^ y))),
    (Mnemonic::Kxnorq, |c, b, op| combine_masks(c, b, op, 8, |x, y| !(x ^ y))),
    (Mnemonic::Kxorb, |c, b, op| combine_masks(c, b, op, 1, |x, y| x ^ y)),
    (Mnemonic::Kxorw, |c, b, op| combine_masks(c, b, op, 2, |x, y| x ^ y)),
    (Mnemonic::Korb, |c, b, op| combine_masks(c, b, op, 1, |x, y| x | y)),
    (Mnemonic::Korw, |c, b, op| combine_masks(c, b, op, 2, |x, y| x | y)),
    (Mnemonic::Kord, |c, b, op| combine_masks(c, b, op, 4, |x, y| x | y)),
    (Mnemonic::Kandb, |c, b, op| combine_masks(c, b, op, 1, |x, y| x & y)),
    (Mnemonic::Kandw, |c, b, op| combine_masks(c, b, op, 2, |x, y| x & y)),
    (Mnemonic::Kandd, |c, b, op| combine_masks(c, b, op, 4, |x, y| x & y)),
    (Mnemonic::Kortestb, |c, b, op| test_masks(c, b, op, 1)),
    (Mnemonic::Kortestw, |c, b, op| test_masks(c, b, op, 2)),
    (Mnemonic::Kortestd, |c, b, op| test_masks(c, b, op, 4)),
    (Mnemonic::Kortestq, |c, b, op| test_masks(c, b, op, 8)),
];

fn xor(a: u64, b: u64) -> u64 {
    a ^ b
}
fn and(a: u64, b: u64) -> u64 {
    a & b
}
fn and_not(a: u64, b: u64) -> u64 {
    !a & b
}
fn or(a: u64, b: u64) -> u64 {
    a | b
}
fn add(a: u64, b: u64, _: usize) -> u64 {
    a.wrapping_add(b)
}
fn sub(a: u64, b: u64, _: usize) -> u64 {
    a.wrapping_sub(b)
}
fn low_product(a: u64, b: u64, _: usize) -> u64 {
    (a & 0xffff_ffff).wrapping_mul(b & 0xffff_ffff)
}
fn equal(a: u64, b: u64, _: usize) -> u64 {
    if a == b { u64::MAX } else { 0 }
}
fn greater(a: u64, b: u64, width: usize) -> u64 {
    if sign_extend(a, width) > sign_extend(b, width) { u64::MAX } else { 0 }
}
fn min_unsigned(a: u64, b: u64, _: usize) -> u64 {
    a.min(b)
}
fn max_unsigned(a: u64, b: u64, _: usize) -> u64 {
    a.max(b)
}
fn min_signed(a: u64, b: u64, width: usize) -> u64 {
    if sign_extend(a, width) < sign_extend(b, width) { a } else { b }
}
fn max_signed(a: u64, b: u64, width: usize) -> u64 {
    if sign_extend(a, width) > sign_extend(b, width) { a } else { b }
}
fn left(v: u64, n: u64, width: usize) -> u64 {
    if n < 8 * width as u64 { v << n } else { 0 }
}
fn right(v: u64, n: u64, width: usize) -> u64 {
    if n < 8 * width as u64 { v >> n } else { 0 }
}
fn right_signed(v: u64, n: u64, width: usize) -> u64 {
    (sign_extend(v, width) >> n.min(63)) as u64
}

/// Both sources; one element repeated where the instruction says so.
fn sources(cpu: &X86_64, bus: &mut Bus<'_>, op: &Op, width: usize) -> (Vector, Vector, usize) {
    let size = op.operand(0).size();
    let (a, b) = op.two_sources();
    let first = cpu.vector(bus, a, size);
    let mut second = cpu.vector(bus, b, b.size().min(size));
    if b.is_memory() && b.size() < size && b.size() == width {
        // {1toN}
        let value = second.lane(0);
        for n in 0..size / width.max(1) {
            if width == 8 {
                second.set_lane(n, value);
            } else {
                second.set_element(width, n, value.bits);
            }
        }
    }
    (first, second, size)
}

fn each(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize, f: fn(u64, u64, usize) -> u64) -> Step {
    let (a, b, size) = sources(cpu, bus, op, width);
    let mut result = Vector::ZERO;
    for n in 0..size / width {
        result.set_element(width, n, f(a.element(width, n), b.element(width, n), width));
    }
    cpu.set_vector(bus, op, result, width);
    Step::Next
}

/// Sums and differences of 64-bit lanes keep their shadows.
fn sum(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, factor: i64) -> Step {
    let (a, b, size) = sources(cpu, bus, op, 8);
    let mut result = Vector::ZERO;
    for n in 0..size / 8 {
        let (x, y) = (a.lane(n), b.lane(n));
        let bits = x.bits.wrapping_add(y.bits.wrapping_mul(factor as u64));
        result.set_lane(n, Value { bits, shadow: bus.expressions.add(x, y, factor, 8) });
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn products(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (a, b, size) = sources(cpu, bus, op, 8);
    let mut result = Vector::ZERO;
    for n in 0..size / 8 {
        let (x, y) = (a.lane(n), b.lane(n));
        let shadow = bus.expressions.multiply(x, y, 8);
        result.set_lane(n, Value { bits: x.bits.wrapping_mul(y.bits), shadow });
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn logic(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize, f: fn(u64, u64) -> u64) -> Step {
    let (x, y) = op.two_sources();
    let (a, b, size) = sources(cpu, bus, op, width);
    let mut result = Vector::ZERO;
    let is_self = x == y;
    for n in 0..size / 8 {
        let (v, w) = (a.lane(n), b.lane(n));
        let bits = f(v.bits, w.bits);
        // what comes out unchanged keeps its shadow: masks of all or no bits
        let shadow = match (v.shadow, w.shadow) {
            _ if is_self && f(1, 1) == 0 => None,
            (Some(s), _) if is_self => Some(s),
            (Some(s), None) if bits == v.bits && w.bits != v.bits => Some(s),
            (None, Some(s)) if bits == w.bits && w.bits != v.bits => Some(s),
            _ => None,
        };
        result.set_lane(n, Value { bits, shadow });
    }
    cpu.set_vector(bus, op, result, width);
    Step::Next
}

fn ternary_logic(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize) -> Step {
    let size = op.operand(0).size();
    let a = cpu.vector(bus, op.operand(0), size);
    let (b, c) = (cpu.vector(bus, op.operand(1), size), cpu.vector(bus, op.operand(2), size));
    let table = op.selector;
    let mut result = Vector::ZERO;
    for n in 0..size / 8 {
        let (x, y, z) = (a.lane(n).bits, b.lane(n).bits, c.lane(n).bits);
        let mut bits = 0u64;
        for row in (0..8u8).filter(|row| table >> row & 1 != 0) {
            let pick = |v: u64, set: u8| if set != 0 { v } else { !v };
            bits |= pick(x, row & 4) & pick(y, row & 2) & pick(z, row & 1);
        }
        result.set_lane(n, Value::new(bits));
    }
    cpu.set_vector(bus, op, result, width);
    Step::Next
}

/// AVX comparisons write a vector, AVX-512 ones a mask register.
fn compare(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize, f: fn(u64, u64, usize) -> u64) -> Step {
    if !matches!(op.operand(0), Operand::Mask { .. }) {
        return each(cpu, bus, op, width, f);
    }
    compare_into_mask(cpu, bus, op, width, |a, b| f(a, b, width) != 0)
}

fn compare_into_mask(
    cpu: &mut X86_64,
    bus: &mut Bus<'_>,
    op: &Op,
    width: usize,
    holds: impl Fn(u64, u64) -> bool,
) -> Step {
    let size = op.operand(1).size();
    let (a, b) = (cpu.vector(bus, op.operand(1), size), cpu.vector(bus, op.operand(2), size));
    let mut bits = 0u64;
    for n in 0..size / width {
        bits |= u64::from(holds(a.element(width, n), b.element(width, n))) << (n % 64);
    }
    if op.mask != 0 {
        bits &= cpu.registers.mask.get(usize::from(op.mask)).copied().unwrap_or(0);
    }
    cpu.write(bus, op.operand(0), Value::new(bits));
    Step::Next
}

fn compare_by_number(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize, is_signed: bool) -> Step {
    let code = op.selector & 7;
    compare_into_mask(cpu, bus, op, width, |a, b| {
        let (a, b) = if is_signed {
            (i128::from(sign_extend(a, width)), i128::from(sign_extend(b, width)))
        } else {
            (i128::from(a), i128::from(b))
        };
        let plain = match code & 3 {
            0 => a == b,
            1 => a < b,
            2 => a <= b,
            _ => false,
        };
        plain != (code & 4 != 0)
    })
}

fn test_into_mask(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize, negated: bool) -> Step {
    compare_into_mask(cpu, bus, op, width, |a, b| (a & b != 0) != negated)
}

fn sign_bits(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize) -> Step {
    let size = op.operand(1).size();
    let source = cpu.vector(bus, op.operand(1), size);
    let mut bits = 0u64;
    for n in 0..size / width {
        bits |= (source.element(width, n) >> (8 * width - 1) & 1) << n;
    }
    cpu.write(bus, op.operand(0), Value::new(bits));
    Step::Next
}

fn ptest(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let (a, b) = (cpu.vector(bus, op.operand(0), size), cpu.vector(bus, op.operand(1), size));
    let zero = a.lanes.iter().zip(&b.lanes).all(|(x, y)| x & y == 0);
    let carry = a.lanes.iter().zip(&b.lanes).all(|(x, y)| !x & y == 0);
    cpu.registers.flags = Flags::stored(zero, false, carry, false);
    Step::Next
}

/// `pshufd`, `pshuflw`, `pshufhw`: four elements of each block of 16 bytes, from the `first` on.
fn shuffle_words(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize, first: usize) -> Step {
    let size = op.operand(0).size();
    let Operand::Immediate(order) = op.operand(2) else { return cpu.unsupported(op) };
    let source = cpu.vector(bus, op.operand(1), size);
    let mut result = source;
    let per_block = 16 / width;
    for block in 0..size / 16 {
        let base = block * per_block + first;
        if width == 4 && matches!(order, 0x44 | 0x4e | 0xe4 | 0xee) {
            // whole lanes move: shadows with them
            for lane in 0..2 {
                let from = (order >> (4 * lane + 1) & 1) as usize;
                result.set_lane(2 * block + lane, source.lane(2 * block + from));
            }
            continue;
        }
        for n in 0..4 {
            let from = base + (order >> (2 * n) & 3) as usize;
            result.set_element(width, base + n, source.element(width, from));
        }
    }
    cpu.set_vector(bus, op, result, width);
    Step::Next
}

fn shufps(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let (a, b, order) = op.two_sources_and_immediate();
    let (a, b) = (cpu.vector(bus, a, size), cpu.vector(bus, b, size));
    let mut result = Vector::ZERO;
    for block in 0..size / 16 {
        for n in 0..4 {
            let source = if n < 2 { &a } else { &b };
            let from = 4 * block + (order >> (2 * n) & 3) as usize;
            result.set_element(4, 4 * block + n, source.element(4, from));
        }
    }
    cpu.set_vector(bus, op, result, 4);
    Step::Next
}

fn pshufb(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let (a, order, size) = sources(cpu, bus, op, 1);
    let mut result = Vector::ZERO;
    for n in 0..size {
        let index = order.element(1, n);
        if index & 0x80 == 0 {
            result.set_element(1, n, a.element(1, (n & !15) + (index & 15) as usize));
        }
    }
    cpu.set_vector(bus, op, result, 1);
    Step::Next
}

fn interleave(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize, is_high: bool) -> Step {
    let (a, b, size) = sources(cpu, bus, op, width);
    let half = 8 / width;
    let mut result = Vector::ZERO;
    for block in 0..size / 16 {
        let base = 2 * half * block;
        for n in 0..half {
            let from = base + n + if is_high { half } else { 0 };
            result.set_element(width, base + 2 * n, a.element(width, from));
            result.set_element(width, base + 2 * n + 1, b.element(width, from));
        }
    }
    cpu.set_vector(bus, op, result, width);
    Step::Next
}

/// Halves the elements with saturation.
fn pack(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize, low: i64, high: i64) -> Step {
    let (a, b, size) = sources(cpu, bus, op, width);
    let per_block = 16 / width;
    let mut result = Vector::ZERO;
    for block in 0..size / 16 {
        for n in 0..2 * per_block {
            let source = if n < per_block { &a } else { &b };
            let value = sign_extend(source.element(width, block * per_block + n % per_block), width);
            result.set_element(width / 2, 2 * per_block * block + n, value.clamp(low, high) as u64);
        }
    }
    cpu.set_vector(bus, op, result, width / 2);
    Step::Next
}

fn shift(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize, f: fn(u64, u64, usize) -> u64) -> Step {
    let size = op.operand(0).size();
    let (source, count) = op.two_sources();
    let source = cpu.vector(bus, source, size);
    let count = match count {
        Operand::Immediate(n) => n & 0xff,
        other => cpu.vector(bus, other, 8).lane(0).bits,
    };
    let mut result = Vector::ZERO;
    for n in 0..size / width {
        if width == 8 {
            let value = source.lane(n);
            let by = Value::new(count);
            let shadow = match (f(4, 1, 8), f(u64::MAX, 1, 8) == u64::MAX) {
                (8, _) if count < 63 => bus.expressions.multiply(value, Value::new(1 << count), 8),
                (_, true) => bus.expressions.binary(Operation::ShiftRightSigned, value, by, 8),
                (2, false) => bus.expressions.binary(Operation::ShiftRight, value, by, 8),
                _ => None,
            };
            result.set_lane(n, Value { bits: f(value.bits, count, 8), shadow });
        } else {
            result.set_element(width, n, f(source.element(width, n), count, width) & mask(width));
        }
    }
    cpu.set_vector(bus, op, result, width);
    Step::Next
}

fn shift_bytes(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, is_left: bool) -> Step {
    let size = op.operand(0).size();
    let (source, count) = op.two_sources();
    let source = cpu.vector(bus, source, size);
    let by = count.immediate().min(16) as usize;
    let mut result = Vector::ZERO;
    for block in 0..size / 16 {
        if by == 8 {
            let (from, to) = if is_left { (0, 1) } else { (1, 0) };
            result.set_lane(2 * block + to, source.lane(2 * block + from));
            continue;
        }
        for n in 0..16usize {
            let from = if is_left { n.checked_sub(by) } else { Some(n + by).filter(|f| *f < 16) };
            if let Some(from) = from {
                result.set_element(1, 16 * block + n, source.element(1, 16 * block + from));
            }
        }
    }
    if by == 0 {
        result = source;
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn palignr(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let (high, low, by) = op.two_sources_and_immediate();
    let (high, low) = (cpu.vector(bus, high, size), cpu.vector(bus, low, size));
    let by = by.min(32) as usize;
    let mut result = Vector::ZERO;
    for block in 0..size / 16 {
        if by == 8 {
            result.set_lane(2 * block, low.lane(2 * block + 1));
            result.set_lane(2 * block + 1, high.lane(2 * block));
            continue;
        }
        for n in 0..16usize {
            let from = n + by;
            let byte = match from {
                0..16 => low.element(1, 16 * block + from),
                16..32 => high.element(1, 16 * block + from - 16),
                _ => 0,
            };
            result.set_element(1, 16 * block + n, byte);
        }
    }
    cpu.set_vector(bus, op, result, 8);
    Step::Next
}

fn widen(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, from: usize, to: usize, is_signed: bool) -> Step {
    let count = op.operand(0).size() / to;
    let source = cpu.vector(bus, op.operand(1), count * from);
    let mut result = Vector::ZERO;
    for n in 0..count {
        let bits = source.element(from, n);
        result.set_element(to, n, if is_signed { sign_extend(bits, from) as u64 } else { bits });
    }
    cpu.set_vector(bus, op, result, to);
    Step::Next
}

fn narrow(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, from: usize, to: usize) -> Step {
    let size = op.operand(1).size();
    let source = cpu.vector(bus, op.operand(1), size);
    let mut result = Vector::ZERO;
    for n in 0..size / from {
        result.set_element(to, n, source.element(from, n));
    }
    cpu.set_vector(bus, op, result, to);
    Step::Next
}

fn pblendw(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op) -> Step {
    let size = op.operand(0).size();
    let (a, b, choice) = op.two_sources_and_immediate();
    let (a, b) = (cpu.vector(bus, a, size), cpu.vector(bus, b, size));
    let mut result = a;
    for n in (0..size / 2).filter(|n| choice >> (n % 8) & 1 != 0) {
        result.set_element(2, n, b.element(2, n));
    }
    cpu.set_vector(bus, op, result, 2);
    Step::Next
}

fn blend_by_number(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, width: usize) -> Step {
    let size = op.operand(0).size();
    let (a, b, choice) = op.two_sources_and_immediate();
    let (a, b) = (cpu.vector(bus, a, size), cpu.vector(bus, b, size));
    let mut result = a;
    for n in (0..size / width).filter(|n| choice >> n & 1 != 0) {
        if width == 8 {
            result.set_lane(n, b.lane(n));
        } else if n % 2 == 0 && choice >> n & 3 == 3 {
            result.set_lane(n / 2, b.lane(n / 2));
        } else if n % 2 == 0 || choice >> (n - 1) & 1 == 0 {
            result.set_element(width, n, b.element(width, n));
        }
    }
    cpu.set_vector(bus, op, result, width);
    Step::Next
}

fn move_mask(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize) -> Step {
    let value = cpu.read_sized(bus, op.operand(1), size);
    match op.operand(0) {
        Operand::Memory { .. } => {
            let address = cpu.address(op.operand(0));
            bus.store(address, size, Value::new(value.bits));
        }
        to => cpu.write(bus, to, Value::new(value.bits)),
    }
    Step::Next
}

fn combine_masks(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize, f: fn(u64, u64) -> u64) -> Step {
    let (a, b) = (cpu.read_sized(bus, op.operand(1), size).bits, cpu.read_sized(bus, op.operand(2), size).bits);
    cpu.write(bus, op.operand(0), Value::new(f(a, b) & mask(size)));
    Step::Next
}

fn test_masks(cpu: &mut X86_64, bus: &mut Bus<'_>, op: &Op, size: usize) -> Step {
    let either = cpu.read_sized(bus, op.operand(0), size).bits | cpu.read_sized(bus, op.operand(1), size).bits;
    cpu.registers.flags = Flags::stored(either == 0, false, either == mask(size), false);
    Step::Next
}
