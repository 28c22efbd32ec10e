//! Deflated members, inflated into memory under caps. Packages are written stored; only third-party tools deflate them.

use crate::error::{Error, Result};
use crate::limits;
use flate2::bufread::DeflateDecoder;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that all inflated members of one artefact hold together.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicU64);

impl Budget {
    fn take(&self, bytes: u64) -> Result<()> {
        let used = self.0.fetch_add(bytes, Ordering::Relaxed);
        if used.saturating_add(bytes) > limits::INFLATED_TOTAL_BYTES {
            return Err(Error::limit(format!(
                "the compressed members together inflate to more than the {} MiB that are read",
                limits::INFLATED_TOTAL_BYTES >> 20
            ))
            .help("pack it again without compression (`zip -0`)"));
        }
        Ok(())
    }
}

/// True when a member promises more than compression of real content gives.
pub(super) fn is_bomb(stored_bytes: u64, size_bytes: u64) -> bool {
    size_bytes > limits::INFLATION_FREE_BYTES && size_bytes > stored_bytes.saturating_mul(limits::INFLATION_RATIO)
}

/// Inflates a whole member and compares it with the size and checksum that the directory states.
pub(super) fn all(compressed: &[u8], size_bytes: u64, crc32: u32, budget: &Budget) -> Result<Vec<u8>> {
    let stored = compressed.len() as u64;
    if is_bomb(stored, size_bytes) {
        return Err(Error::limit(format!(
            "is compressed, {stored} bytes for {size_bytes}: no real member shrinks more than {}-fold",
            limits::INFLATION_RATIO
        )));
    }
    if size_bytes > limits::INFLATED_BYTES {
        return Err(Error::limit(format!(
            "is compressed and inflates to {size_bytes} bytes, more than the {} MiB that are read",
            limits::INFLATED_BYTES >> 20
        ))
        .help("pack it again without compression (`zip -0`)"));
    }
    budget.take(size_bytes)?;
    // the promise is checked while reading: one byte more than promised is enough to see the lie
    let mut inflated = Vec::new();
    DeflateDecoder::new(compressed)
        .take(size_bytes.saturating_add(1))
        .read_to_end(&mut inflated)
        .map_err(|e| Error::damaged(format!("its compressed bytes are damaged ({e})")))?;
    if inflated.len() as u64 != size_bytes {
        return Err(Error::damaged(format!("inflates to another size than the {size_bytes} bytes it states")));
    }
    if rawzip::crc32(&inflated) != crc32 {
        return Err(Error::damaged("its content does not match its checksum").help("copy the file again"));
    }
    Ok(inflated)
}

/// Up to `len` bytes from the start, whatever the member promises; empty when the first byte is damaged already.
pub(super) fn head(compressed: &[u8], len: u64) -> Vec<u8> {
    let mut inflated = Vec::new();
    // an error in the middle leaves what came before it, which is what recognising needs
    let _ = DeflateDecoder::new(compressed).take(len.min(limits::INFLATED_HEAD_BYTES)).read_to_end(&mut inflated);
    inflated
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn inflates_what_the_directory_states() {
        let bytes = b"abcabcabc".repeat(100);
        let got = all(&deflated(&bytes), 900, rawzip::crc32(&bytes), &Budget::default()).unwrap();
        assert_eq!(got, bytes);
        assert_eq!(head(&deflated(&bytes), 4), b"abca");
    }

    #[test]
    fn refuses_lies_about_size_and_content() {
        let bytes = vec![7u8; 1000];
        let packed = deflated(&bytes);
        let budget = Budget::default();
        assert!(all(&packed, 999, rawzip::crc32(&bytes), &budget).is_err());
        assert!(all(&packed, 1001, rawzip::crc32(&bytes), &budget).is_err());
        assert!(all(&packed, 1000, 1, &budget).unwrap_err().message().contains("checksum"));
        assert!(all(b"\xff\xff", 5, 0, &budget).is_err());
    }

    #[test]
    fn bombs_begin_at_the_border_of_a_free_size_and_a_ratio() {
        let free = limits::INFLATION_FREE_BYTES;
        assert!(!is_bomb(1, free));
        assert!(is_bomb(1, free + 1));
        let stored = free;
        assert!(!is_bomb(stored, stored * limits::INFLATION_RATIO));
        assert!(is_bomb(stored, stored * limits::INFLATION_RATIO + 1));
    }

    #[test]
    fn what_all_members_share_has_a_border() {
        let budget = Budget::default();
        budget.take(limits::INFLATED_TOTAL_BYTES).unwrap();
        assert!(budget.take(1).unwrap_err().message().contains("512 MiB"));
    }

    #[test]
    fn the_size_of_one_member_has_a_border() {
        // no bomb by its ratio, and nothing that inflates: beyond the border it is not tried
        let stored = vec![0xff; 2 << 20];
        let of = |size| all(&stored, size, 0, &Budget::default()).unwrap_err().message().to_owned();
        assert!(of(limits::INFLATED_BYTES).contains("damaged"));
        assert!(of(limits::INFLATED_BYTES + 1).contains("more than the 256 MiB"));
    }

    #[test]
    fn the_head_has_a_border() {
        let of = |len: u64| head(&deflated(&vec![7; usize::try_from(len).unwrap()]), u64::MAX).len() as u64;
        assert_eq!(of(limits::INFLATED_HEAD_BYTES), limits::INFLATED_HEAD_BYTES);
        assert_eq!(of(limits::INFLATED_HEAD_BYTES + 1), limits::INFLATED_HEAD_BYTES);
    }
}
