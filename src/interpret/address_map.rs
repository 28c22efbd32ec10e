//! Maps and sets whose keys are addresses or small numbers.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// Addresses and small numbers need no strong hash, but one that a hostile file cannot foresee: else it would choose
/// addresses that all collide.
pub struct AddressHasher(u64);

/// Begins each hash with a number drawn once for the process.
#[derive(Clone)]
pub struct AddressState(u64);

impl Default for AddressState {
    fn default() -> Self {
        static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0u8));
        Self(*SEED)
    }
}

impl BuildHasher for AddressState {
    type Hasher = AddressHasher;
    #[inline]
    fn build_hasher(&self) -> AddressHasher {
        AddressHasher(self.0)
    }
}

impl Hasher for AddressHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.write_u64(<[u8; 8]>::try_from(chunk).map_or(0, u64::from_le_bytes));
        }
        let rest = chunks.remainder().iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        self.write_u64(rest << 8 | chunks.remainder().len() as u64);
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        // both halves of the product, so that every bit of the address counts
        let product = u128::from(self.0 ^ n) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
    fn write_i64(&mut self, n: i64) {
        self.write_u64(n as u64);
    }
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

/// A map keyed by addresses or small numbers.
pub type AddressMap<K, V> = HashMap<K, V, AddressState>;
/// A set of addresses or small numbers.
pub type AddressSet<K> = HashSet<K, AddressState>;
