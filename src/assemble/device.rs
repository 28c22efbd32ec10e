//! The model's device: every witness there is, the strongest first, and their contradictions.

use crate::model::{Conflict, Device, Evidence};

/// A witness's word for the device.
#[derive(Debug, Clone)]
pub struct Statement {
    /// which device
    pub device: Device,
    /// who says so; code and header before claims
    pub evidence: Evidence,
    /// machine code or imports of the library, not a claim about it
    pub is_proof: bool,
}

/// Takes the first proof, else the first claim; whoever names another type contradicts it.
pub fn settle(statements: &[Statement]) -> (Option<Device>, Vec<Evidence>, Vec<Conflict>) {
    let believed = statements.iter().find(|s| s.is_proof).or_else(|| statements.first());
    let evidence = statements.iter().map(|s| s.evidence.clone()).collect();
    let Some(believed) = believed else { return (None, evidence, Vec::new()) };
    let others: Vec<&Statement> = statements.iter().filter(|s| s.device.kind != believed.device.kind).collect();
    let mut conflicts = Vec::new();
    if !others.is_empty() {
        let sides = std::iter::once(believed).chain(others).map(|s| s.evidence.clone()).collect();
        conflicts.push(Conflict { code: "device-conflict".into(), subject: "device".into(), sides });
    }
    (Some(believed.device.clone()), evidence, conflicts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DeviceKind, Witness};

    fn statement(kind: DeviceKind, source: Witness, is_proof: bool) -> Statement {
        let detail = format!("{kind}");
        Statement { device: Device::new(kind), evidence: Evidence::new(source, detail), is_proof }
    }

    #[test]
    fn proof_beats_a_claim_and_both_are_named() {
        let (device, evidence, conflicts) = settle(&[
            statement(DeviceKind::Cpu, Witness::Metadata, false),
            statement(DeviceKind::Cuda, Witness::Imports, true),
        ]);
        assert_eq!(device.map(|d| d.kind), Some(DeviceKind::Cuda));
        assert_eq!(evidence.len(), 2);
        let sides: Vec<&str> = conflicts.iter().flat_map(|c| c.sides.iter().map(|s| s.detail.as_str())).collect();
        assert_eq!(sides, ["cuda", "cpu"]);
    }
}
