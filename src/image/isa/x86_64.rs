//! x86-64 by iced-x86, which knows the CPUID feature of every instruction.

use super::{Extensions, Use};
use iced_x86::{Code, CpuidFeature, Decoder, DecoderOptions, Instruction, Mnemonic};
use std::sync::LazyLock;

/// iced's feature and the word that /proc/cpuinfo has for it. What every x86-64 CPU has (SSE2 and older) and what
/// older CPUs run as a no-operation (CET, PAUSE, prefetch hints) is not in it.
const FEATURES: &[(CpuidFeature, &str)] = &[
    (CpuidFeature::SSE3, "pni"),
    (CpuidFeature::SSSE3, "ssse3"),
    (CpuidFeature::SSE4_1, "sse4_1"),
    (CpuidFeature::SSE4_2, "sse4_2"),
    (CpuidFeature::SSE4A, "sse4a"),
    (CpuidFeature::POPCNT, "popcnt"),
    (CpuidFeature::CMPXCHG16B, "cx16"),
    (CpuidFeature::MOVBE, "movbe"),
    (CpuidFeature::AES, "aes"),
    (CpuidFeature::PCLMULQDQ, "pclmulqdq"),
    (CpuidFeature::AVX, "avx"),
    (CpuidFeature::F16C, "f16c"),
    (CpuidFeature::FMA, "fma"),
    (CpuidFeature::FMA4, "fma4"),
    (CpuidFeature::XOP, "xop"),
    (CpuidFeature::TBM, "tbm"),
    (CpuidFeature::AVX2, "avx2"),
    (CpuidFeature::BMI1, "bmi1"),
    (CpuidFeature::BMI2, "bmi2"),
    (CpuidFeature::LZCNT, "abm"),
    (CpuidFeature::ADX, "adx"),
    (CpuidFeature::RDRAND, "rdrand"),
    (CpuidFeature::RDSEED, "rdseed"),
    (CpuidFeature::SHA, "sha_ni"),
    (CpuidFeature::GFNI, "gfni"),
    (CpuidFeature::VAES, "vaes"),
    (CpuidFeature::VPCLMULQDQ, "vpclmulqdq"),
    (CpuidFeature::AVX512F, "avx512f"),
    (CpuidFeature::AVX512CD, "avx512cd"),
    (CpuidFeature::AVX512ER, "avx512er"),
    (CpuidFeature::AVX512PF, "avx512pf"),
    (CpuidFeature::AVX512BW, "avx512bw"),
    (CpuidFeature::AVX512DQ, "avx512dq"),
    (CpuidFeature::AVX512VL, "avx512vl"),
    (CpuidFeature::AVX512_IFMA, "avx512ifma"),
    (CpuidFeature::AVX512_VBMI, "avx512vbmi"),
    (CpuidFeature::AVX512_VBMI2, "avx512_vbmi2"),
    (CpuidFeature::AVX512_VNNI, "avx512_vnni"),
    (CpuidFeature::AVX512_BITALG, "avx512_bitalg"),
    (CpuidFeature::AVX512_VPOPCNTDQ, "avx512_vpopcntdq"),
    (CpuidFeature::AVX512_BF16, "avx512_bf16"),
    (CpuidFeature::AVX512_FP16, "avx512_fp16"),
    (CpuidFeature::AVX512_VP2INTERSECT, "avx512_vp2intersect"),
    (CpuidFeature::AVX512_4FMAPS, "avx512_4fmaps"),
    (CpuidFeature::AVX512_4VNNIW, "avx512_4vnniw"),
    (CpuidFeature::AMX_TILE, "amx_tile"),
    (CpuidFeature::AMX_INT8, "amx_int8"),
    (CpuidFeature::AMX_BF16, "amx_bf16"),
    (CpuidFeature::AMX_FP16, "amx_fp16"),
    (CpuidFeature::AMX_COMPLEX, "amx_complex"),
    (CpuidFeature::AVX_VNNI, "avx_vnni"),
    (CpuidFeature::AVX_IFMA, "avx_ifma"),
    (CpuidFeature::AVX_VNNI_INT8, "avx_vnni_int8"),
    (CpuidFeature::AVX_VNNI_INT16, "avx_vnni_int16"),
    (CpuidFeature::AVX_NE_CONVERT, "avx_ne_convert"),
    (CpuidFeature::MOVDIRI, "movdiri"),
    (CpuidFeature::MOVDIR64B, "movdir64b"),
    (CpuidFeature::ENQCMD, "enqcmd"),
    (CpuidFeature::WAITPKG, "waitpkg"),
    (CpuidFeature::SERIALIZE, "serialize"),
    (CpuidFeature::RTM, "rtm"),
    (CpuidFeature::CLWB, "clwb"),
    (CpuidFeature::CLFLUSHOPT, "clflushopt"),
    (CpuidFeature::FSGSBASE, "fsgsbase"),
    (CpuidFeature::RDPID, "rdpid"),
];

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

/// Random numbers from the CPU: no compiler writes these by itself, and libraries test for them first
/// (libstdc++'s `random_device`).
pub(super) const ASKED_FIRST: Extensions = bit_of(CpuidFeature::RDRAND) | bit_of(CpuidFeature::RDSEED);

const fn bit_of(feature: CpuidFeature) -> Extensions {
    let mut i = 0;
    while i < FEATURES.len() {
        #[expect(clippy::indexing_slicing, reason = "bounded by the loop, and evaluated at compile time")]
        if FEATURES[i].0 as usize == feature as usize {
            return 1 << i;
        }
        i += 1;
    }
    0
}

/// The extensions of each instruction code, so that a decoded instruction costs one look-up.
static BY_CODE: LazyLock<Vec<Extensions>> = LazyLock::new(|| {
    let set = |code: Code| {
        code.cpuid_features().iter().fold(0, |set: Extensions, feature| {
            let bit = FEATURES.iter().position(|row| row.0 == *feature);
            set | bit.map_or(0, |bit| 1 << bit)
        })
    };
    Code::values().map(set).collect()
});

pub(super) fn scan(bytes: &[u8], address: u64) -> Use {
    let mut usage = Use::default();
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        match instruction.mnemonic() {
            // compilers write TZCNT for BSF on purpose (`rep bsf`): the same result where the input is not zero
            Mnemonic::Tzcnt => {}
            Mnemonic::Cpuid | Mnemonic::Xgetbv => usage.asks = true,
            _ => usage.extensions |= BY_CODE.get(instruction.code() as usize).copied().unwrap_or(0),
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::super::{Architecture, names};
    use super::*;

    fn used(bytes: &[u8]) -> Vec<String> {
        names(Architecture::X86_64, scan(bytes, 0x1000).extensions)
    }

    #[test]
    fn names_the_extension_of_each_instruction() {
        assert_eq!(used(&[0xc5, 0xfd, 0x6f, 0x07]), ["avx"]); // vmovdqa ymm0, [rdi]
        assert_eq!(used(&[0xc4, 0xe2, 0x7d, 0x18, 0x07]), ["avx"]); // vbroadcastss ymm0, [rdi]
        assert_eq!(used(&[0xc5, 0xfd, 0xfe, 0xc1]), ["avx2"]); // vpaddd ymm0, ymm0, ymm1
        assert_eq!(used(&[0x62, 0xf1, 0x7d, 0x48, 0xfe, 0xc1]), ["avx512f"]); // vpaddd zmm0, zmm0, zmm1
        assert_eq!(used(&[0x62, 0xf1, 0x7d, 0x28, 0xfe, 0xc1]), ["avx512f", "avx512vl"]); // the same on ymm
    }

    #[test]
    fn baseline_and_hints_need_nothing() {
        assert!(used(&[0xf3, 0x0f, 0x1e, 0xfa]).is_empty()); // endbr64
        assert!(used(&[0x66, 0x0f, 0x6f, 0x07]).is_empty()); // movdqa
        assert!(used(&[0xf3, 0x0f, 0xbc, 0xc0]).is_empty()); // rep bsf
        assert!(scan(&[0x0f, 0xa2], 0).asks); // cpuid
    }
}
