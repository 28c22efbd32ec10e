//! Numbers of dynamic symbols: since 2.8 the number is a hash of the source of the size, which turns a guess of a
//! parameter's name into a test (format reference 7.3; torch/fx/experimental/symbolic_shapes.py).

use sha2::{Digest, Sha256};

/// The number of the symbol for dim `dim` of a parameter, if no other symbol of that export has it: `s77` for
/// `L['x'].size()[0]`. `path` is what follows the parameter, `[0]['key']`; empty for the parameter itself.
pub fn symbol_number(parameter: &str, path: &str, dim: usize) -> u8 {
    let source = format!("L['{parameter}']{path}.size()[{dim}]");
    // the digest is a big-endian integer; its remainder is taken byte by byte
    let remainder = Sha256::digest(source).iter().fold(0u32, |r, byte| (r * 256 + u32::from(*byte)) % 100);
    u8::try_from(remainder).unwrap_or(u8::MAX)
}

/// True when a symbol's name supports the guess. A chance hit is 1 in 100; a miss refutes nothing, since numbers that are
/// taken move on and equal dims share the first symbol.
pub fn supports(symbol: &str, parameter: &str, path: &str, dim: usize) -> bool {
    symbol.strip_prefix('s').and_then(|n| n.parse().ok()) == Some(symbol_number(parameter, path, dim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_known_parameters() {
        assert_eq!(symbol_number("x", "", 0), 77);
        assert_eq!(symbol_number("x", "", 1), 27);
        assert!(supports("s77", "x", "", 0));
        assert!(!supports("s78", "x", "", 0));
        assert!(!supports("u0", "x", "", 0));
    }
}
