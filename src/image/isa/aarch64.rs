//! AArch64 by disarm64, which knows the architecture feature of every instruction.

use super::Use;
use disarm64::InsnOpcode;
use disarm64::decoder::decode;
use disarm64_defn::InsnFeatureSet as Set;

/// disarm64's feature and the word that /proc/cpuinfo has for it. NEON and floating point belong to every
/// 64-bit Arm CPU that torch supports, and are not in it.
const FEATURES: &[(Set, &str)] = &[
    (Set::FP_F16, "fphp"),
    (Set::FP_16_V8_2A, "fphp"),
    (Set::SIMD_F16, "asimdhp"),
    (Set::DOTPROD, "asimddp"),
    (Set::RDMA, "asimdrdm"),
    (Set::F16F32DOT, "asimdfhm"),
    (Set::COMPNUM, "fcma"),
    (Set::JSCVT, "jscvt"),
    (Set::I8MM, "i8mm"),
    (Set::BFLOAT16, "bf16"),
    (Set::LSE, "atomics"),
    (Set::LSE128, "lse128"),
    (Set::CRC, "crc32"),
    (Set::AES, "aes"),
    (Set::SHA2, "sha2"),
    (Set::SHA3, "sha3"),
    (Set::SM4, "sm4"),
    (Set::RCPC, "lrcpc"),
    (Set::RCPC2, "ilrcpc"),
    (Set::FLAGM, "flagm"),
    (Set::FLAGMANIP, "flagm2"),
    (Set::FRINTTS, "frint"),
    (Set::PAUTH, "paca"),
    (Set::MEMTAG, "mte"),
    (Set::MOPS, "mops"),
    (Set::CSSC, "cssc"),
    (Set::SVE, "sve"),
    (Set::BFLOAT16_SVE, "svebf16"),
    (Set::I8MM_SVE, "svei8mm"),
    (Set::F32MM_SVE, "svef32mm"),
    (Set::F64MM_SVE, "svef64mm"),
    (Set::SVE2, "sve2"),
    (Set::SVE2P1, "sve2p1"),
    (Set::SME, "sme"),
    (Set::SME2, "sme2"),
];

/// Extensions that appear under several features keep one bit: the first of that name.
const fn words() -> [&'static str; FEATURES.len()] {
    let mut words = [""; FEATURES.len()];
    let mut i = 0;
    while i < FEATURES.len() {
        #[expect(clippy::indexing_slicing, reason = "bounded by the loop, and evaluated at compile time")]
        {
            words[i] = FEATURES[i].1;
        }
        i += 1;
    }
    words
}

/// Words by bit.
pub(super) const NAMES: &[&str] = &words();

fn bit_of(feature: Set) -> Option<usize> {
    let word = FEATURES.iter().find(|row| row.0 == feature)?.1;
    NAMES.iter().position(|name| *name == word)
}

pub(super) fn scan(bytes: &[u8], _: u64) -> Use {
    let mut usage = Use::default();
    let mut has_exclusives = false;
    for word in bytes.chunks_exact(4).filter_map(|b| b.try_into().ok()).map(u32::from_le_bytes) {
        // hints (BTI, PACIASP and the like) do nothing on CPUs that do not know them
        if word & 0xffff_f01f == 0xd503_201f {
            continue;
        }
        // MRS of an ID_AA64* register: the system answers what the CPU can do
        if word & 0xffff_f000 == 0xd538_0000 {
            usage.asks = true;
        }
        has_exclusives |= word & 0x3f00_0000 == 0x0800_0000;
        if let Some(bit) = decode(word).and_then(|i| bit_of(i.definition().feature_set)) {
            usage.extensions |= 1 << bit;
        }
    }
    // libgcc's outlined atomics have both forms in a few instructions and test a flag before
    usage.asks |= has_exclusives && usage.extensions != 0 && bytes.len() <= OUTLINED_ATOMIC_BYTES;
    usage
}

/// The longest of libgcc's helpers (config/aarch64/lse.S), a compare-and-swap of 16 bytes, has 60.
const OUTLINED_ATOMIC_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::{Architecture, names};
    use super::*;

    fn used(word: u32) -> Vec<String> {
        names(Architecture::Aarch64, scan(&word.to_le_bytes(), 0).extensions)
    }

    #[test]
    fn names_the_extension_of_each_instruction() {
        assert_eq!(used(0x2518_e3e0), ["sve"]); // ptrue p0.b
        assert_eq!(used(0x4e80_a420), ["i8mm"]); // smmla v0.4s, v1.16b, v0.16b
        assert_eq!(used(0x4e82_9420), ["asimddp"]); // sdot v0.4s, v1.16b, v2.16b
        assert_eq!(used(0x6e42_ec20), ["bf16"]); // bfmmla v0.4s, v1.8h, v2.8h
        assert_eq!(used(0xb8e0_0020), ["atomics"]); // ldaddal w0, w0, [x1]
        assert!(used(0x4e20_d420).is_empty()); // fadd v0.4s, v1.4s, v0.4s
        assert!(used(0xd503_233f).is_empty()); // paciasp
    }
}
