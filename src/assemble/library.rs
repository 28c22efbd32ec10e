//! What the library's tables say: platform, needs, device, capabilities, dating.

use super::device::Statement;
use crate::image::dating::Dating;
use crate::image::{Image, device, requirements};
use crate::model::{Device, Evidence, Platform, Requires, Unknown, Witness};

/// Facts of a library that need no machine code.
#[derive(Debug, Default)]
pub struct Library {
    /// format, system, machine
    pub platform: Option<Platform>,
    /// libraries, shims, versions
    pub requires: Requires,
    /// what the exported functions allow
    pub capabilities: Vec<String>,
    /// what imports and needed libraries say about the device
    pub device: Option<Statement>,
    /// what else speaks for that device
    pub device_evidence: Vec<Evidence>,
    /// what dates the compiler
    pub dating: Dating,
    /// tables that could not be read
    pub unknown: Vec<Unknown>,
}

/// Reads the tables of `image`; `member` is the library's name in a package.
pub fn read(image: &Image<'_>, member: &str) -> Library {
    let (requires, unknown) = requirements::requires(image);
    let (kind, evidence) = device::device(image);
    let mut evidence: Vec<Evidence> = evidence.into_iter().map(|e| e.in_member(member)).collect();
    let mut statement = None;
    if let Some(kind) = kind {
        let first = if evidence.is_empty() { None } else { Some(evidence.remove(0)) };
        let evidence = first.unwrap_or_else(|| Evidence::new(Witness::Imports, "imports").in_member(member));
        statement = Some(Statement { device: Device::new(kind), evidence, is_proof: true });
    }
    let mut dating = Dating::default();
    dating.library(image);
    Library {
        platform: Some(requirements::platform(image)),
        requires,
        capabilities: requirements::capabilities(image),
        device: statement,
        device_evidence: evidence,
        dating,
        unknown,
    }
}
