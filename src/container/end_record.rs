//! The zip's end records as PyTorch's reader takes them (miniz 3.0.2, `mz_zip_reader_read_central_dir`): it believes fields
//! that other readers make up for, and refuses the whole archive where one is wrong.

use crate::source::Region;

/// What the rows of the directory are, as they were found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    /// where the first one is
    pub offset: u64,
    pub count: u64,
    pub size_bytes: u64,
    /// lowest number of a disk in them
    pub lowest_disk: u16,
}

/// A field by its name, and why its value is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub offset: u64,
    pub message: String,
}

const LEN: u64 = 22;
const LOCATOR_LEN: u64 = 20;
const LEN_64: u64 = 56;
/// How far from the end a signature is still found: a window of 4096 bytes, then further ones that share 3 bytes with
/// the one behind, until 65,535 bytes of a comment and the record itself are covered.
const SEARCHED: u64 = 4096 + 16 * 4093;

fn number(file: Region<'_>, offset: u64, len: u64) -> Option<u64> {
    let bytes = file.get(offset, len)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The last signature with room for a record behind it.
fn find(file: Region<'_>) -> Option<u64> {
    let start = file.len().saturating_sub(SEARCHED);
    let tail = file.get(start, file.len().checked_sub(start)?)?;
    let fits = |at: &usize| (tail.len() as u64).saturating_sub(*at as u64) >= LEN;
    let at = memchr::memmem::rfind_iter(tail, b"PK\x05\x06").find(fits)?;
    start.checked_add(at as u64)
}

/// The fields that count: those of the zip64 record where there is one.
struct Fields {
    at: u64,
    /// width and place of each, from `at`
    places: [(u64, u64); 6],
}

impl Fields {
    fn get(&self, file: Region<'_>, index: usize) -> (u64, u64) {
        let (place, len) = self.places.get(index).copied().unwrap_or_default();
        let offset = self.at.saturating_add(place);
        (offset, number(file, offset, len).unwrap_or_default())
    }
}

/// The first field for which the official reader refuses the file, or takes less than is there. `taken` is the end record
/// that the rows were found by; without `rows` they are not compared.
pub(super) fn refusal(file: Region<'_>, taken: u64, rows: Option<Rows>) -> Option<Refusal> {
    let refuse = |offset: u64, message: String| Some(Refusal { offset, message });
    let Some(at) = find(file) else {
        let behind = file.len().saturating_sub(taken);
        return refuse(taken, format!("{behind} bytes from the end: torch does not search its end record so far"));
    };
    if at != taken {
        return refuse(at, format!("torch takes this signature for the end record, the directory's is at {taken:#x}"));
    }
    let mut fields = Fields { at, places: [(4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4)] };
    let locator = at.checked_sub(LOCATOR_LEN).filter(|l| *l >= LEN_64);
    if let Some(locator) = locator.filter(|l| file.get(*l, 4) == Some(b"PK\x06\x07")) {
        let at_64 = number(file, locator.saturating_add(8), 8)?;
        if at_64 > file.len().saturating_sub(LEN_64) {
            return refuse(locator.saturating_add(8), format!("the zip64 end record is said to be at {at_64:#x}"));
        }
        if file.get(at_64, 4) == Some(b"PK\x06\x06") {
            fields = Fields { at: at_64, places: [(16, 4), (20, 4), (24, 8), (32, 8), (40, 8), (48, 8)] };
            let size = number(file, at_64.saturating_add(4), 8)?;
            if size < LEN_64 - 12 {
                return refuse(at_64.saturating_add(4), format!("the zip64 end record is said to have {size} bytes"));
            }
            let (disks_at, disks) = (locator.saturating_add(16), number(file, locator.saturating_add(16), 4)?);
            if disks != 1 {
                return refuse(disks_at, format!("the zip64 locator counts {disks} disks, which torch refuses"));
            }
        }
    }
    let [disk, directory_disk, here, total, size, start] = [0, 1, 2, 3, 4, 5].map(|index| fields.get(file, index));
    for (offset, count) in [total, here] {
        if count > u64::from(u32::MAX) {
            return refuse(offset, format!("the end record promises {count} members"));
        }
    }
    if total.1 != here.1 {
        let message = format!("the end record promises {} members, {} of them on this disk", total.1, here.1);
        return refuse(here.0, message);
    }
    if !matches!((disk.1, directory_disk.1), (0, 0) | (1, 1)) {
        let message = format!("the end record is of disk {}, the directory of disk {}", disk.1, directory_disk.1);
        return refuse(disk.0, message);
    }
    if size.1 > u64::from(u32::MAX) || start.1.checked_add(size.1).is_none_or(|end| end > file.len()) {
        return refuse(size.0, format!("the end record gives the directory {} bytes from {:#x}", size.1, start.1));
    }
    let rows = rows?;
    if total.1 != rows.count {
        let message = format!("the end record promises {} members, the directory has {}", total.1, rows.count);
        return refuse(total.0, message);
    }
    if rows.count > 0 && disk.1 > u64::from(rows.lowest_disk) {
        let message = format!("the end record is of disk {}, a member on disk {}", disk.1, rows.lowest_disk);
        return refuse(disk.0, message);
    }
    if rows.count > 0 && start.1 != rows.offset {
        let message = format!("the end record has the directory at {:#x}, it is at {:#x}", start.1, rows.offset);
        return refuse(start.0, message);
    }
    if size.1 < rows.size_bytes {
        let message = format!("the end record gives the directory {} bytes, it has {}", size.1, rows.size_bytes);
        return refuse(size.0, message);
    }
    None
}

/// The row at `offset`: its length, its disk, and why the official reader refuses it.
pub(super) fn row(file: Region<'_>, offset: u64) -> Option<(u64, u16, Option<Refusal>)> {
    const FIXED: u64 = 46;
    let field = |place: u64| number(file, offset.checked_add(place)?, 2);
    let disk = u16::try_from(field(34)?).ok()?;
    let message = || format!("a member is said to be on disk {disk}, which torch refuses");
    let refusal = (disk > 1).then(|| Refusal { offset: offset.saturating_add(34), message: message() });
    let len = [28, 30, 32].into_iter().try_fold(FIXED, |sum: u64, place| sum.checked_add(field(place)?))?;
    Some((len, disk, refusal))
}
