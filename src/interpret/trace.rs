//! What a library did while it was interpreted, in order.

use super::tensors::TensorId;
use super::value::Value;
use crate::limits;

/// One thing that the library did, with values as the machine has them.
#[derive(Debug, Clone)]
pub enum Record {
    /// a tensor came into being
    Tensor(TensorId),
    /// a handle was given back
    Release(TensorId),
    /// an operator of libtorch was called
    Operator {
        /// name of the shim
        name: String,
        /// its integer arguments
        arguments: Vec<Value>,
    },
    /// an operator was called through the proxy executor
    Custom {
        /// index in the extern-node list
        number: i64,
        /// flattened integers
        integers: Vec<Value>,
        /// flattened tensors
        tensors: Vec<TensorId>,
    },
    /// a GPU kernel was launched
    Launch {
        /// index in `Host::functions`
        function: usize,
        /// blocks
        grid: Box<[Value; 3]>,
        /// threads per block
        block: Box<[Value; 3]>,
        /// dynamic shared bytes
        shared: Value,
        /// arguments as the launch passes them
        arguments: Vec<Value>,
    },
    /// a kernel of the library was called, and stepped over
    Kernel {
        /// symbol or address
        name: String,
        /// address in the file
        address: u64,
        /// what lies in the registers for integer arguments
        arguments: Vec<Value>,
        /// how many of them the kernel takes
        taken: usize,
    },
    /// device memory was allocated directly
    DeviceBytes(Value),
}

/// Room for records from the first on; wide models need more.
const RECORDS: usize = 4_096;

/// Collects records.
#[derive(Debug, Default)]
pub struct Recorder {
    records: Vec<Record>,
    /// functions left because of a floating-point instruction
    pub skipped: Vec<(Option<String>, u64)>,
    /// the cap was reached
    pub is_cut: bool,
}

impl Recorder {
    /// Adds a record.
    pub fn add(&mut self, record: Record) {
        if self.records.capacity() == 0 {
            // memory that is not touched costs nothing; growing would copy
            self.records.reserve_exact(RECORDS);
        }
        if self.records.len() < limits::TRACE_ENTRIES {
            self.records.push(record);
        } else {
            self.is_cut = true;
        }
    }
    /// A function was left because it computes.
    pub fn skip(&mut self, name: Option<String>, address: u64) {
        if self.skipped.len() < limits::TRACE_ENTRIES {
            self.skipped.push((name, address));
        }
    }
    /// A point to return to.
    pub fn point(&self) -> usize {
        self.records.len()
    }
    /// Forgets what came after a point.
    pub fn undo(&mut self, point: usize) {
        self.records.truncate(point);
    }
    /// All so far.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_a_border() {
        let mut recorder = Recorder::default();
        let note = |recorder: &mut Recorder| {
            recorder.add(Record::DeviceBytes(Value::ZERO));
            recorder.skip(None, 0);
        };
        (0..limits::TRACE_ENTRIES).for_each(|_| note(&mut recorder));
        assert_eq!((recorder.records().len(), recorder.skipped.len()), (limits::TRACE_ENTRIES, limits::TRACE_ENTRIES));
        assert!(!recorder.is_cut);
        note(&mut recorder);
        assert_eq!((recorder.records().len(), recorder.skipped.len()), (limits::TRACE_ENTRIES, limits::TRACE_ENTRIES));
        assert!(recorder.is_cut);
    }
}
