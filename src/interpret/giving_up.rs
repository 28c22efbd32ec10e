//! Code that cannot but throw, seen without running it.
//!
//! A failed check builds its message over some hundred instructions, or over thousands with a C++ library linked in. Of
//! input checks nothing but the fact that they throw is wanted, and mostly that shows from the flow of control alone.

use super::address_map::AddressSet;
use super::cpu::Flow;
use super::machine::Machine;

/// Instructions looked at for one check. Unoptimised code makes a message in some 150.
const INSTRUCTIONS: usize = 300;
/// Calls of functions that themselves only throw: `[[noreturn]]` helpers.
const DEPTH: usize = 3;

impl Machine<'_> {
    /// True when every way on from an address leads to a throw or to the end of the process. `false` says nothing.
    pub fn only_gives_up(&mut self, at: u64) -> bool {
        self.never_returns(at, 0)
    }

    fn gives_up_from(&mut self, start: u64, depth: usize) -> bool {
        let mut seen = AddressSet::default();
        let mut open = vec![start];
        let mut left = INSTRUCTIONS;
        let mut gives_up = false;
        while let Some(from) = open.pop() {
            let mut at = from;
            while seen.insert(at) {
                if !self.bus.memory.is_executable(at) {
                    return false;
                }
                let Some(turn) = self.cpu.next_turn(&mut self.bus, at, left) else { return false };
                left = left.saturating_sub(turn.count);
                self.bus.remaining = self.bus.remaining.saturating_sub(turn.count as u64);
                at = match turn.flow {
                    Flow::Trap => {
                        gives_up = true;
                        break;
                    }
                    Flow::Call(to) if self.never_returns(to, depth) => {
                        gives_up = true;
                        break;
                    }
                    // a call at the end of a function is a jump to a stub
                    Flow::Jump(to) if self.cpu.stub_target(&mut self.bus, to).is_some() => {
                        if !self.never_returns(to, depth) {
                            return false;
                        }
                        gives_up = true;
                        break;
                    }
                    Flow::Jump(to) => to,
                    Flow::Branch(to) => {
                        open.push(to);
                        turn.next
                    }
                    Flow::Next | Flow::Call(_) | Flow::IndirectCall => turn.next,
                    Flow::IndirectJump | Flow::Return => return false,
                };
            }
        }
        // a loop without an end is no throw
        gives_up
    }

    /// Code that is known not to come back, by the address of a function, its stub, or a place in it.
    fn never_returns(&mut self, start: u64, depth: usize) -> bool {
        if let Some(known) = self.never_returning.get(&start) {
            return *known;
        }
        // of a function that calls itself nothing is known meanwhile
        self.never_returning.insert(start, false);
        let target = self.cpu.stub_target(&mut self.bus, start).unwrap_or(start);
        let known = match self.imports.name_at(target) {
            Some(name) => super::imports::gives_up(name),
            None => depth < DEPTH && !self.bus.hooks.contains_key(&target) && self.gives_up_from(target, depth + 1),
        };
        self.never_returning.insert(start, known);
        known
    }
}
