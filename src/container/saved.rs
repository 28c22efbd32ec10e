//! Files that `torch.save` wrote, as weights of a package are: what their storage holds. Pickles are not read.

use super::zip;
use crate::error::{Error, Result};
use crate::source::Region;

/// Bytes of the largest storage in a saved file; of a file without a directory of its own (the format before torch 1.6, or
/// bare elements) all its bytes, which are more than the elements it can hold.
///
/// # Errors
/// It begins as a zip and has no whole directory.
pub fn storage_bytes(file: Region<'_>) -> Result<u64> {
    if !file.head(4).starts_with(b"PK\x03\x04") {
        return Ok(file.len());
    }
    let directory = zip::read(file)?;
    if let Some(refused) = directory.problems.iter().find(|p| p.spoils == zip::Spoils::Everything) {
        return Err(Error::damaged(refused.problem.message.clone()));
    }
    // `archive/data/0`; the folder is named after the file
    let is_storage = |name: &str| {
        let mut parts = name.rsplit('/');
        parts.next().is_some_and(|key| key.bytes().all(|b| b.is_ascii_digit())) && parts.next() == Some("data")
    };
    let mut largest = 0;
    for entry in directory.entries.iter().filter(|e| is_storage(&e.name)) {
        if let Err(why) = &entry.start {
            return Err(Error::damaged(format!("{} {why}", entry.name)));
        }
        largest = largest.max(entry.size_bytes);
    }
    Ok(largest)
}
