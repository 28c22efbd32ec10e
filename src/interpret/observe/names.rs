//! What tensors are called in launches and in the trace.

use crate::interpret::session::Visit;
use crate::interpret::tensors::{Kind, TensorId};
use crate::interpret::trace::Record;
use std::collections::BTreeMap;

/// A tensor that the run did not make: a constant that the caller has not loaded.
const FOREIGN: &str = "foreign";

/// Names of the tensors that have memory of their own.
pub struct Names {
    buffers: BTreeMap<TensorId, usize>,
    constants: Vec<usize>,
}

impl Names {
    /// Numbers the buffers in the order in which the run makes them.
    pub fn of_run(visit: &Visit<'_>) -> Self {
        let tensors = &visit.machine.tensors;
        let mut buffers = BTreeMap::new();
        for record in visit.machine.recorder.records().get(visit.run_starts_at..).unwrap_or_default() {
            if let Record::Tensor(id) = record
                && is_buffer(visit, tensors.owner(*id))
            {
                let next = buffers.len();
                buffers.entry(tensors.owner(*id)).or_insert(next);
            }
        }
        // tensors are made over the constants that have bytes in the file, in table order
        let rows = visit.constants.iter().enumerate();
        let constants = rows.filter(|(_, row)| row.folded != Some(true)).map(|(index, _)| index).collect();
        Self { buffers, constants }
    }

    /// `inputs[0]`, `constants[2]`, or `buf7`; a view has the name of what it looks at.
    pub fn of(&self, visit: &Visit<'_>, id: TensorId) -> String {
        let owner = visit.machine.tensors.owner(id);
        match visit.machine.tensors.get(owner).map(|t| &t.kind) {
            Some(Kind::Input(n)) => format!("inputs[{n}]"),
            Some(Kind::Constant(n)) => format!("constants[{}]", self.constants.get(*n).unwrap_or(n)),
            Some(Kind::Stray) => FOREIGN.to_owned(),
            _ => match self.buffers.get(&owner) {
                Some(number) => format!("buf{number}"),
                None => format!("tensor{owner}"),
            },
        }
    }
}

/// Memory that the run itself makes.
pub fn is_buffer(visit: &Visit<'_>, id: TensorId) -> bool {
    let kind = visit.machine.tensors.get(id).map(|t| &t.kind);
    kind.is_some_and(|kind| !matches!(kind, Kind::Input(_) | Kind::Constant(_) | Kind::Stray))
}
