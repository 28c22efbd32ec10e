//! A vector register of any processor: lanes of 64 bits, each with its shadow.

use crate::interpret::memory::mask;
use crate::interpret::value::{Expressions, Shadow, Value};

/// `N` lanes of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes<const N: usize> {
    /// what they hold
    pub lanes: [u64; N],
    /// what it stands for
    pub shadows: [Option<Shadow>; N],
}

impl<const N: usize> Lanes<N> {
    /// All bits clear.
    pub const ZERO: Self = Self { lanes: [0; N], shadows: [None; N] };

    /// The `n`-th lane; zero beyond the last.
    pub fn lane(&self, n: usize) -> Value {
        Value { bits: self.lanes.get(n).copied().unwrap_or(0), shadow: self.shadows.get(n).copied().flatten() }
    }
    /// Sets a lane; one that there is not stays away.
    pub fn set_lane(&mut self, n: usize, value: Value) {
        if let (Some(lane), Some(shadow)) = (self.lanes.get_mut(n), self.shadows.get_mut(n)) {
            *lane = value.bits;
            *shadow = value.shadow;
        }
    }
    /// The `n`-th element of `width` bytes.
    pub fn element(&self, width: usize, n: usize) -> u64 {
        let at = n * width;
        self.lanes.get(at / 8).map_or(0, |lane| lane >> (8 * (at % 8)) & mask(width))
    }
    /// Sets an element; one that is narrower than a lane costs the lane its shadow.
    pub fn set_element(&mut self, width: usize, n: usize, bits: u64) {
        let at = n * width;
        let shift = 8 * (at % 8);
        if let (Some(lane), Some(shadow)) = (self.lanes.get_mut(at / 8), self.shadows.get_mut(at / 8)) {
            *lane = *lane & !(mask(width) << shift) | (bits & mask(width)) << shift;
            *shadow = None;
        }
    }
    /// True when a lane stands for an expression.
    pub fn has_shadow(&self) -> bool {
        self.shadows.iter().any(Option::is_some)
    }
    /// Evaluates the lanes that stand for expressions anew.
    pub fn refresh(&mut self, expressions: &mut Expressions) {
        for (lane, shadow) in self.lanes.iter_mut().zip(self.shadows) {
            if let Some(shadow) = shadow {
                *lane = expressions.eval(shadow) as u64;
            }
        }
    }
}
