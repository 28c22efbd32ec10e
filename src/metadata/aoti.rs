//! `*_metadata.json`: a flat object of texts, the user's keys first, then torch's own (format reference 3.1).

use super::json::{self, Pairs};
use crate::error::{Error, Place};
use crate::model::{Arch, Conflict, Dated, Device, DeviceKind, Evidence, MetadataEntry, Problem, Release, Witness};
use serde_json::Value;

/// Device type the model was compiled for, without index (2.6+).
pub const DEVICE_KEY: &str = "AOTI_DEVICE_KEY";
/// Python's word for the platform of the compile host (2.10+).
pub const PLATFORM: &str = "AOTI_PLATFORM";
/// Processor of the compile host (2.10+).
pub const MACHINE: &str = "AOTI_MACHINE";
/// The vectoriser's choice (2.10+).
pub const CPU_ISA: &str = "AOTI_CPU_ISA";
/// Capability of the GPU that was present while compiling (2.10+).
pub const COMPUTE_CAPABILITY: &str = "AOTI_COMPUTE_CAPABILITY";

/// One metadata member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// in file order; of repeated keys the last, which is the one that JSON readers take
    pub entries: Vec<MetadataEntry>,
    /// what is wrong with the text or its values
    pub problems: Vec<Problem>,
}

impl Metadata {
    /// Value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|e| e.key == key).map(|e| e.value.as_str())
    }
    /// What `AOTI_DEVICE_KEY` says, and the evidence for it.
    pub fn device(&self) -> Option<(Device, Evidence)> {
        let entry = self.entries.iter().find(|e| e.key == DEVICE_KEY && !e.value.is_empty())?;
        let device = Device::new(DeviceKind::from_name(&entry.value));
        Some((device, evidence(entry)))
    }
    /// The GPU present while compiling (format reference 3.3); it binds nothing.
    pub fn compute_capability(&self) -> Option<(Arch, Evidence)> {
        let entry = self.entries.iter().find(|e| e.key == COMPUTE_CAPABILITY)?;
        let arch = match entry.value.as_str() {
            "" => return None,
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
                Arch::Sm { number: digits.parse().ok()?, suffix: None }
            }
            name if name.starts_with("gfx") => Arch::Other(name.to_owned()),
            _ => return None,
        };
        Some((arch, evidence(entry)))
    }
    /// Evidence for a key, as `KEY=value`.
    pub fn evidence(&self, key: &str) -> Option<Evidence> {
        self.entries.iter().find(|e| e.key == key).map(evidence)
    }
}

/// What the keys tell about the release that wrote them: all but the device key came in 2.10 and are written always since.
pub fn date(metadata: &Metadata) -> Option<Dated> {
    let dated = |min, max, evidence| Dated { min, max, evidence };
    if let Some(evidence) = metadata.evidence(PLATFORM) {
        return Some(dated(Some(Release::new(2, 10)), None, evidence));
    }
    let mut evidence = metadata.evidence(DEVICE_KEY)?;
    evidence.detail = format!("{DEVICE_KEY} without {PLATFORM}");
    Some(dated(Some(Release::new(2, 6)), Some(Release::new(2, 9)), evidence))
}

fn evidence(entry: &MetadataEntry) -> Evidence {
    let said = Evidence::new(Witness::Metadata, format!("{}={}", entry.key, entry.value));
    match &entry.member {
        Some(member) => said.in_member(member.clone()),
        None => said,
    }
}

/// Reads one metadata member; `member` is its name, for evidence and problems. Damage is a problem, never an error:
/// what can be read of the rest is returned.
pub fn read(text: &[u8], member: &str) -> Metadata {
    let mut found = Metadata::default();
    let mut report = |message: String| {
        let place = Place { member: Some(member.to_owned()), section: None, offset: None };
        found.problems.push(Problem { place, message, affects: Vec::new() });
    };
    let pairs = match json::parse_as::<Pairs>(text) {
        Ok(Pairs(pairs)) => pairs,
        Err(e) => {
            report(format!("the metadata cannot be read: {}", Error::message(&e)));
            return found;
        }
    };
    let mut entries: Vec<MetadataEntry> = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let value = match value {
            Value::String(text) => text,
            other => {
                // torch refuses such values when it compiles, and its loader stops at them
                report(format!("the value of {key:?} is no text: {other}"));
                continue;
            }
        };
        match entries.iter_mut().find(|e| e.key == key) {
            Some(earlier) => {
                if earlier.value != value {
                    report(format!("the key {key:?} is there twice, with {:?} and {value:?}", earlier.value));
                }
                earlier.value = value;
            }
            None => entries.push(MetadataEntry { key, value, member: Some(member.to_owned()) }),
        }
    }
    found.entries = entries;
    found
}

/// Differences between the copy that the loader reads and another one: each a conflict that names both sides.
pub fn differences(read_by_loader: &Metadata, other: &Metadata) -> Vec<Conflict> {
    let mut found = Vec::new();
    for entry in &read_by_loader.entries {
        let Some(rival) = other.entries.iter().find(|e| e.key == entry.key && e.value != entry.value) else { continue };
        let code = if entry.key == DEVICE_KEY { "device-conflict" } else { "witness-conflict" };
        let subject = if entry.key == DEVICE_KEY { "device" } else { "metadata" };
        found.push(Conflict {
            code: code.into(),
            subject: subject.into(),
            sides: vec![evidence(entry), evidence(rival)],
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_in_order_and_the_rest_is_told() {
        let got = read(br#"{"mine": "1", "AOTI_DEVICE_KEY": "cuda", "n": 7, "mine": "2"}"#, "m.json");
        let entries: Vec<_> = got.entries.iter().map(|e| (e.key.as_str(), e.value.as_str())).collect();
        assert_eq!(entries, [("mine", "2"), ("AOTI_DEVICE_KEY", "cuda")]);
        assert_eq!(got.problems.len(), 2);
        assert_eq!(got.device().unwrap().0.to_string(), "cuda");
    }

    #[test]
    fn damage_is_a_problem() {
        let text = b"{\"AOTI_DEVICE_KEY\": 7, \"x\": \"\xff\xfe\", NaN}";
        let got = read(text, "m.json");
        assert!(got.entries.is_empty());
        assert!(got.problems.first().unwrap().message.starts_with("the metadata cannot be read"));
        assert_eq!(got.problems.first().unwrap().place.member.as_deref(), Some("m.json"));
    }

    #[test]
    fn capability_is_ten_times_major_plus_minor() {
        let arch = |value: &str| {
            let text = format!("{{\"AOTI_COMPUTE_CAPABILITY\": {value:?}}}");
            read(text.as_bytes(), "m").compute_capability().map(|(arch, _)| arch.to_string())
        };
        assert_eq!(arch("120").as_deref(), Some("sm_120"));
        assert_eq!(arch("gfx942").as_deref(), Some("gfx942"));
        assert_eq!(arch(""), None);
        assert_eq!(arch("{'name': 'x'}"), None);
    }

    #[test]
    fn copies_that_differ_conflict() {
        let (a, b) = (read(br#"{"AOTI_DEVICE_KEY":"cuda"}"#, "k"), read(br#"{"AOTI_DEVICE_KEY":"cpu"}"#, "w"));
        let conflict = differences(&a, &b);
        assert_eq!(conflict.first().map(|c| (c.code.as_str(), c.sides.len())), Some(("device-conflict", 2)));
        assert!(differences(&a, &a).is_empty());
    }
}
