//! Where things live in the closed machine's address space.
//!
//! Regions are far apart and recognisable, so that an address alone says what it belongs to.

use std::ops::Range;

/// Added to every address of the library, so that a null pointer never points into it.
pub const IMAGE: u64 = 0x1000_0000;
/// Address space that a library may fill, from [`IMAGE`].
pub const IMAGE_BYTES: u64 = 0x5f_0000_0000;
/// Heap blocks.
pub const HEAP: Range<u64> = 0x6000_0000_0000..0x7000_0000_0000;
/// Tensor handles: one slot for each tensor, with its sizes and strides behind it.
pub const TENSORS: Range<u64> = 0x7100_0000_0000..0x7200_0000_0000;
/// What `data_ptr` returns: never backed by memory.
pub const TENSOR_DATA: Range<u64> = 0x7200_0000_0000..0x7400_0000_0000;
/// Device memory: never backed by memory.
pub const DEVICE: Range<u64> = 0x7400_0000_0000..0x7500_0000_0000;
/// Opaque objects of the GPU driver and of libtorch: streams, guards, events, modules.
pub const OPAQUE: Range<u64> = 0x7500_0000_0000..0x7600_0000_0000;
/// Loaded GPU functions, by number.
pub const FUNCTIONS: Range<u64> = 0x7700_0000_0000..0x7800_0000_0000;
/// The library's own file, mapped by itself.
pub const MAPPED_FILE: Range<u64> = 0x7800_0000_0000..0x7900_0000_0000;
/// The proxy executor that the caller hands in.
pub const PROXY_EXECUTOR: u64 = 0x7900_0000_0000;
/// Thread-local storage.
pub const TLS: Range<u64> = 0x7e00_0000_0000..0x7e01_0000_0000;
/// The library's thread-local block, for general dynamic access.
pub const TLS_BLOCK: u64 = TLS.start + 0x10_0000;
/// The thread pointer; local-exec offsets are counted from it.
pub const THREAD_POINTER: u64 = TLS.start + 0x80_0000;
/// `errno`.
pub const ERRNO: u64 = TLS.start + 0x100;
/// Imports: a page for each, so that imported variables have room.
pub const IMPORTS: Range<u64> = 0x7f00_0000_0000..0x7fff_0000_0000;
/// Bytes for each import.
pub const IMPORT_BYTES: u64 = 0x1000;
/// Return address of the calls that we make.
pub const RETURN_TO_US: u64 = 0x7ffe_ffff_0000;
/// The stack.
pub const STACK: Range<u64> = 0xffff_0000_0000..0xffff_0080_0000;
