//! The exports trie: names share their beginnings, nodes refer to nodes by offset.
//!
//! Read here and not by `object`, whose iterator follows references to shared nodes without end: a trie of a few
//! hundred bytes could keep it busy for ever.

use crate::error::{Error, Result};
use crate::limits;
use object::read::Bytes;

/// A symbol of the trie.
pub(super) struct Node {
    /// with the additional underscore
    pub(super) name: Vec<u8>,
    /// from the Mach-O header, unless absolute
    pub(super) address: u64,
    pub(super) is_weak: bool,
    pub(super) is_absolute: bool,
}

// EXPORT_SYMBOL_FLAGS_* (mach-o/loader.h)
const KIND_MASK: u64 = 3;
const KIND_ABSOLUTE: u64 = 2;
const WEAK_DEFINITION: u64 = 4;
const REEXPORT: u64 = 8;

/// All symbols that the library has itself; those of other libraries that it passes on are left out.
///
/// # Errors
/// Offsets outside of the trie, more nodes or longer names than [`limits`] allow.
pub(super) fn exports(trie: &[u8]) -> Result<Vec<Node>> {
    let wrong = |what: &str| Error::damaged(what).in_section("exports trie");
    let mut found = Vec::new();
    if trie.is_empty() {
        return Ok(found);
    }
    let mut budget = limits::SYMBOLS;
    let mut name_bytes = limits::SYMBOL_NAMES_BYTES;
    let mut open: Vec<(usize, Vec<u8>)> = vec![(0, Vec::new())];
    while let Some((offset, name)) = open.pop() {
        budget = budget.checked_sub(1).ok_or_else(|| Error::limit("too many nodes").in_section("exports trie"))?;
        let node = trie.get(offset..).ok_or_else(|| wrong("a node lies outside"))?;
        let mut node = Bytes(node);
        let uleb = |bytes: &mut Bytes<'_>| bytes.read_uleb128().map_err(|()| wrong("ends inside a number"));
        let terminal = uleb(&mut node)?;
        if terminal > 0 {
            let size = usize::try_from(terminal).map_err(|_| wrong("a symbol is too long"))?;
            let mut symbol = node.read_bytes(size).map_err(|()| wrong("ends inside a symbol"))?;
            let flags = uleb(&mut symbol)?;
            if flags & REEXPORT == 0 {
                let address = uleb(&mut symbol)?;
                found.push(Node {
                    name: name.clone(),
                    address,
                    is_weak: flags & WEAK_DEFINITION != 0,
                    is_absolute: flags & KIND_MASK == KIND_ABSOLUTE,
                });
            }
        }
        let children = *node.read::<u8>().map_err(|()| wrong("ends inside a node"))?;
        for _ in 0..children {
            let edge = node.read_string().map_err(|()| wrong("ends inside a name"))?;
            let child = uleb(&mut node)?;
            let len = name.len().saturating_add(edge.len());
            name_bytes = name_bytes
                .checked_sub(len as u64)
                .filter(|_| len <= limits::SYMBOL_NAME_BYTES)
                .ok_or_else(|| Error::limit("names are too long").in_section("exports trie"))?;
            let mut full = name.clone();
            full.extend_from_slice(edge);
            open.push((usize::try_from(child).map_err(|_| wrong("a node lies outside"))?, full));
        }
    }
    found.reverse();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_put_together_from_their_parts() {
        // root: no symbol, one child "_a" at 6; that: a symbol at 0x10, one child "b" at 13; that: weak, 0x20
        let trie = [0, 1, b'_', b'a', 0, 6, 2, 0, 0x10, 1, b'b', 0, 13, 2, 4, 0x20, 0];
        let mut found = exports(&trie).unwrap();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let shown: Vec<_> = found.iter().map(|n| (n.name.as_slice(), n.address, n.is_weak)).collect();
        assert_eq!(shown, [(&b"_a"[..], 0x10, false), (&b"_ab"[..], 0x20, true)]);
    }

    #[test]
    fn shared_and_circular_nodes_end_in_an_error() {
        // a node that is its own child
        assert!(exports(&[0, 1, b'a', 0, 0]).is_err());
        // thirty levels, each of which refers to the next one twice
        let mut trie = Vec::new();
        for level in 0..30u8 {
            let next = (level + 1) * 8;
            trie.extend([0, 2, b'a', 0, next, b'b', 0, next]);
        }
        assert!(exports(&trie).is_err());
        assert!(exports(&[0x80]).is_err() && exports(&[]).unwrap().is_empty());
    }
}
