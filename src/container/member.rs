//! Members and how their content is reached.

use super::{Container, inflate};
use crate::error::{Error, Result};
use crate::model::{self, Hazard, Role};
use crate::source::{self, Bytes, Region};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Position of a member in archive order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub(super) usize);

#[derive(Debug)]
pub(super) enum Content {
    /// in the file itself
    Window { start: u64 },
    /// deflated in the file itself
    Deflated { start: u64, crc32: u32, inflated: OnceLock<Result<Vec<u8>>> },
    /// a file of its own
    File { path: PathBuf, opened: OnceLock<Result<Box<dyn Bytes>>> },
    /// not to be read; one clause why, `is encrypted`
    Refused(String),
}

#[derive(Debug)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) size_bytes: u64,
    pub(super) stored_bytes: u64,
    pub(super) hazards: Vec<Hazard>,
    pub(super) content: Content,
}

/// A member of a [`Container`].
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    pub(super) container: &'a Container,
    pub(super) stored: &'a Stored,
    pub(super) id: MemberId,
}

impl<'a> Member<'a> {
    /// Its id.
    pub fn id(&self) -> MemberId {
        self.id
    }
    /// Name as stored, with `/`.
    pub fn name(&self) -> &'a str {
        &self.stored.name
    }
    /// Name without the root.
    pub fn inner_name(&self) -> &'a str {
        let inner = self.stored.name.strip_prefix(self.container.root.as_str()).and_then(|rest| rest.strip_prefix('/'));
        inner.unwrap_or(&self.stored.name)
    }
    /// Last part of the name.
    pub fn file_name(&self) -> &'a str {
        self.stored.name.rsplit('/').next().unwrap_or(&self.stored.name)
    }
    /// What it is for.
    pub fn role(&self) -> Role {
        self.stored.role
    }
    /// Size of its content, as stated.
    pub fn size_bytes(&self) -> u64 {
        self.stored.size_bytes
    }
    /// What an unpacker would do wrong with it.
    pub fn hazards(&self) -> &'a [Hazard] {
        &self.stored.hazards
    }

    /// Its content as a window.
    ///
    /// # Errors
    /// It is encrypted, a link, cut, a bomb, damaged, or cannot be opened; the error names the member.
    pub fn region(&self) -> Result<Region<'a>> {
        let file = self.container.whole();
        let cut = || Error::damaged("its bytes are not all there");
        let region = match &self.stored.content {
            Content::Refused(reason) => Err(Error::damaged(reason.clone())),
            Content::Window { start } => file.sub(*start, self.stored.size_bytes).ok_or_else(cut),
            Content::Deflated { start, crc32, inflated } => {
                let inflate = || {
                    let compressed = file.get(*start, self.stored.stored_bytes).ok_or_else(cut)?;
                    inflate::all(compressed, self.stored.size_bytes, *crc32, &self.container.inflated)
                };
                inflated.get_or_init(inflate).as_ref().map(|bytes| Region::whole(bytes)).map_err(Error::clone)
            }
            Content::File { path, opened } => opened
                .get_or_init(|| source::open_file(path))
                .as_ref()
                .map(|bytes| Region::whole(bytes.as_ref()))
                .map_err(Error::clone),
        };
        region.map_err(|e| e.in_member(self.name()))
    }

    /// Its content in one piece, when it has at most `cap` bytes.
    ///
    /// # Errors
    /// As [`Member::region`], and a content longer than `cap`.
    pub fn bytes(&self, cap: u64) -> Result<&'a [u8]> {
        self.region()?.all(cap).map_err(|e| e.in_member(self.name()))
    }

    /// Up to `len` bytes from its start, also of a member that is refused as a whole for its size; empty when nothing
    /// can be read.
    pub fn head(&self, len: u64) -> std::borrow::Cow<'a, [u8]> {
        if let Content::Deflated { start, inflated, .. } = &self.stored.content
            && inflated.get().is_none()
        {
            let compressed = self.container.whole().get(*start, self.stored.stored_bytes).unwrap_or_default();
            return inflate::head(compressed, len).into();
        }
        self.region().map(|region| region.head(len)).unwrap_or_default().into()
    }

    /// For the report.
    pub fn describe(&self) -> model::Member {
        let unreadable = match &self.stored.content {
            Content::Refused(reason) => Some(reason.clone()),
            _ => None,
        };
        let is_deflated = matches!(self.stored.content, Content::Deflated { .. });
        model::Member {
            name: self.stored.name.clone(),
            role: self.stored.role,
            size_bytes: self.stored.size_bytes,
            stored_bytes: is_deflated.then_some(self.stored.stored_bytes),
            unreadable,
            hazards: self.stored.hazards.clone(),
        }
    }
}
