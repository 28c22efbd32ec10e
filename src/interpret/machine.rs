//! The closed machine: processor, memory, imports, and what was learned so far. The core loop is [`Machine::go`].

mod kernel_calls;

use super::address_map::AddressMap;
use super::cpu::{Bus, Event, Processor, Registers, aarch64, x86_64};
use super::explore::Explorer;
use super::imports::Imports;
use super::layout;
use super::memory::Fault;
use super::tensors::Tensors;
use super::trace::Recorder;
use super::value::Value;
use crate::image::{Architecture, Format};
use crate::limits;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;

/// Why a call did not return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// the library threw, or ended itself
    Throw(String),
    /// the machine cannot go on
    Stop(Stop),
}

/// Why the machine cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// the budget of instructions is spent
    Budget,
    /// more memory than the cap
    Memory,
    /// calls deeper than the cap
    Depth,
    /// more, or larger, expressions than the cap
    Expressions,
    /// code that writes into code
    CodeWritten(u64),
    /// code that writes through a null pointer
    NullWritten(u64),
    /// a jump to what is no code, by the machine's address
    NotCode(u64),
    /// an instruction that is not modelled
    Instruction {
        /// its name
        name: String,
        /// its address in the file
        at: u64,
        /// the function it is in, or the nearest known one
        function: String,
    },
    /// a request that no real library makes
    Unreasonable(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget => f.pad("the budget of instructions is spent"),
            Self::Memory => write!(
                f,
                "the library uses more than {} pages of memory, or more than {} writes would have to be undone",
                limits::INTERPRETED_PAGES,
                limits::UNDO_ENTRIES
            ),
            Self::Depth => write!(f, "calls are nested deeper than {}", limits::CALL_DEPTH),
            Self::Expressions => write!(
                f,
                "expressions over sizes grew beyond {} nodes, or more than {} were made",
                limits::EXPRESSION_NODES,
                limits::EXPRESSIONS
            ),
            Self::CodeWritten(at) => write!(f, "the code at {at:#x} is written while it runs"),
            Self::NullWritten(at) => write!(f, "a write through a null pointer, to {at:#x}"),
            Self::NotCode(0) => f.pad("a call through a null pointer"),
            Self::NotCode(at) => {
                write!(f, "a jump to {:#x}, where no code is", at.wrapping_sub(layout::IMAGE))
            }
            Self::Instruction { name, at, function } => {
                write!(f, "instruction `{name}` at {at:#x} in {function} is not modelled")
            }
            Self::Unreasonable(what) => f.pad(what),
        }
    }
}

/// Result of an import handler: its integer result.
pub type Answer = Result<Value, Exit>;
/// An import handler. Arguments and results go through the machine.
pub type Handler = fn(&mut Machine<'_>) -> Answer;

/// Address in the machine of an exported function or variable.
pub type FindExport<'a> = Box<dyn Fn(&str) -> Option<u64> + 'a>;

/// What is known about the loaded library.
#[derive(Default)]
pub struct Loaded<'a> {
    /// addresses in the machine that the library fills
    pub range: std::ops::Range<u64>,
    /// looks an exported function or variable up
    pub exports: Option<FindExport<'a>>,
    /// functions named `cpp_…`: kernels
    pub kernels: AddressMap<u64, &'a str>,
    /// reads the tables that functions are named by, when something has to be named
    pub symbols: Option<Box<dyn Fn() -> BTreeMap<u64, &'a str> + 'a>>,
    functions: OnceCell<BTreeMap<u64, &'a str>>,
    /// `_binary_constants_bin_start` to its end
    pub weights: std::ops::Range<u64>,
    /// initialisers, in order
    pub initializers: Vec<u64>,
    /// what the initialisers are called with
    pub initializer_arguments: [u64; 3],
    /// bytes of executable segments
    pub executable_bytes: u64,
    /// bytes of the file
    pub file_bytes: u64,
}

impl<'a> Loaded<'a> {
    /// Address of an exported function or variable.
    pub fn export(&self, name: &str) -> Option<u64> {
        self.exports.as_ref()?(name)
    }
    /// Functions by address, for reports.
    pub fn functions(&self) -> &BTreeMap<u64, &'a str> {
        self.functions.get_or_init(|| self.symbols.as_ref().map(|read| read()).unwrap_or_default())
    }
}

/// The heap: blocks are never used twice.
#[derive(Default)]
pub struct Heap {
    next: u64,
    /// size of each block by its address
    pub blocks: BTreeMap<u64, u64>,
}

/// The machine.
pub struct Machine<'a> {
    /// processor
    pub cpu: Box<dyn Processor>,
    /// memory, expressions, frames, budget
    pub bus: Bus<'a>,
    /// the library
    pub loaded: Loaded<'a>,
    /// bytes of the library's file, for code that maps itself
    pub file: crate::source::Region<'a>,
    /// imports and their handlers
    pub imports: Imports<'a>,
    /// heap
    pub heap: Heap,
    /// fake tensors
    pub tensors: Tensors,
    /// branches on symbols
    pub explorer: Explorer,
    /// what the library did
    pub recorder: Recorder,
    /// functions of the library that are answered by a handler
    pub hooked: AddressMap<u64, Handler>,
    /// address of the import or hooked function that is being answered
    import: u64,
    /// texts written to streams and exceptions since the last check
    pub messages: Vec<String>,
    /// texts in the heap, made once
    literals: BTreeMap<String, u64>,
    kernels: AddressMap<u64, bool>,
    argument_counts: AddressMap<u64, usize>,
    /// code by its address, and whether it is known not to come back
    pub never_returning: AddressMap<u64, bool>,
    /// state of the import handlers that need one
    pub host: super::imports::Host,
    budget: u64,
}

/// The processor for a library, with its platform's way to call; `None` when there is none yet.
pub fn processor_for(architecture: Architecture, format: Format) -> Option<Box<dyn Processor>> {
    match architecture {
        Architecture::X86_64 if format == Format::Pe => Some(Box::new(x86_64::X86_64::for_windows())),
        Architecture::X86_64 => Some(Box::new(x86_64::X86_64::new())),
        Architecture::Aarch64 => Some(Box::new(aarch64::Aarch64::new())),
        _ => None,
    }
}

/// Where our calls begin on the stack.
const STACK_START: u64 = layout::STACK.end - 0x4000;

impl<'a> Machine<'a> {
    /// A machine without a library; see `loader::load`.
    pub fn new(cpu: Box<dyn Processor>, file: crate::source::Region<'a>) -> Self {
        Self {
            cpu,
            bus: Bus::new(0),
            loaded: Loaded::default(),
            file,
            imports: Imports::default(),
            heap: Heap { next: layout::HEAP.start, blocks: BTreeMap::new() },
            tensors: Tensors::default(),
            explorer: Explorer::default(),
            recorder: Recorder::default(),
            hooked: AddressMap::default(),
            import: 0,
            messages: Vec::new(),
            literals: BTreeMap::new(),
            kernels: AddressMap::default(),
            argument_counts: AddressMap::default(),
            never_returning: AddressMap::default(),
            host: super::imports::Host::default(),
            budget: 0,
        }
    }

    /// Sets the budget: linear in the executable bytes, because wide models have long constructors, and not above `most`.
    pub fn set_budget(&mut self, most: u64) {
        self.budget = limits::INSTRUCTIONS_BASE
            .saturating_add(self.loaded.executable_bytes.saturating_mul(limits::INSTRUCTIONS_PER_BYTE))
            .min(limits::INSTRUCTIONS)
            .min(most);
        self.bus.remaining = self.budget;
    }
    /// The budget as set.
    pub fn budget(&self) -> u64 {
        self.budget
    }
    /// Instructions spent, those that imports are charged with included.
    pub fn spent(&self) -> u64 {
        self.budget.saturating_sub(self.bus.remaining)
    }
    /// Charges an import's work: one instruction for each 16 bytes it touches.
    pub fn charge(&mut self, bytes: u64) -> Result<(), Exit> {
        self.bus.remaining = self.bus.remaining.saturating_sub(bytes / 16);
        if self.bus.remaining == 0 { Err(Exit::Stop(Stop::Budget)) } else { Ok(()) }
    }

    /// The `n`-th integer argument of the import that is being answered.
    pub fn argument(&mut self, n: usize) -> Value {
        self.argument_of(n, 8)
    }
    /// The same for an argument of `len` bytes, whose upper part is undefined.
    pub fn argument_of(&mut self, n: usize, len: usize) -> Value {
        self.cpu.argument(&mut self.bus, n, len)
    }
    /// The same, only the bits.
    pub fn arg(&mut self, n: usize) -> u64 {
        self.argument(n).bits
    }
    /// The `n`-th declared argument of an import that returns a structure in memory.
    pub fn arg_after_result(&mut self, n: usize) -> u64 {
        let before = self.cpu.arguments_before_declared();
        self.arg(n.saturating_add(before))
    }
    /// Name of the import that is being answered; empty for a function of the library.
    pub fn import_name(&self) -> &'a str {
        self.imports.name_at(self.import).unwrap_or_default()
    }
    /// Reads a word.
    pub fn word(&mut self, address: u64) -> u64 {
        self.bus.load(address, 8).bits
    }
    /// Writes a word.
    pub fn set_word(&mut self, address: u64, bits: u64) {
        self.bus.memory.write(address, 8, bits);
    }
    /// The text at an address.
    ///
    /// # Errors
    /// [`Stop::Unreasonable`] for one that goes on after [`limits::COPY_BYTES`].
    pub fn text(&mut self, address: u64) -> Result<Vec<u8>, Exit> {
        let text = self.bus.memory.cstr(address, limits::COPY_BYTES as usize + 1);
        self.reasonable(text.len() as u64)?;
        Ok(text)
    }
    /// # Errors
    /// [`Stop::Unreasonable`] for more bytes than [`limits::COPY_BYTES`]: a part of them would make facts wrong.
    pub fn reasonable(&self, len: u64) -> Result<(), Exit> {
        if len > limits::COPY_BYTES {
            let what = format!("{len} bytes or more in one call, more than {}", limits::COPY_BYTES);
            return Err(Exit::Stop(Stop::Unreasonable(what)));
        }
        Ok(())
    }
    /// Bytes at an address.
    ///
    /// # Errors
    /// [`Stop::Unreasonable`] for more than [`limits::COPY_BYTES`].
    pub fn bytes(&mut self, address: u64, len: u64) -> Result<Vec<u8>, Exit> {
        self.reasonable(len)?;
        self.charge(len)?;
        let mut bytes = vec![0; len as usize];
        self.bus.memory.read_bytes(address, &mut bytes);
        Ok(bytes)
    }

    /// A new block of the heap.
    pub fn allocate(&mut self, size: u64) -> u64 {
        let address = self.heap.next.saturating_add(31) & !15;
        let address = if address.saturating_add(size) >= layout::HEAP.end { layout::HEAP.start + 16 } else { address };
        self.heap.next = address.saturating_add(size.max(1)).saturating_add(16);
        self.heap.blocks.insert(address, size);
        address
    }
    /// A text in the heap; the same text is the same block.
    pub fn literal(&mut self, text: &str) -> u64 {
        if let Some(address) = self.literals.get(text) {
            return *address;
        }
        let address = self.allocate(text.len() as u64 + 1);
        let paused = self.bus.memory.pause_log();
        self.bus.memory.write_bytes(address, text.as_bytes());
        self.bus.memory.resume_log(paused);
        self.literals.insert(text.to_owned(), address);
        address
    }
    /// True inside the library.
    pub fn is_in_image(&self, address: u64) -> bool {
        self.loaded.range.contains(&address)
    }
    /// An address of the machine as one of the file.
    pub fn file_address(&self, address: u64) -> u64 {
        address.wrapping_sub(layout::IMAGE)
    }
    /// A function's name for people.
    pub fn function_name(&self, address: u64) -> String {
        match self.loaded.functions().range(..=address).next_back() {
            Some((start, name)) if *start == address => (*name).to_owned(),
            Some((start, name)) if address - start < 0x1_0000 => format!("{name}+{:#x}", address - start),
            _ => format!("{:#x}", self.file_address(address)),
        }
    }

    /// Calls a function of the library and runs it to its end.
    ///
    /// # Errors
    /// [`Exit`] when it does not return.
    pub fn call(&mut self, function: u64, arguments: &[Value]) -> Answer {
        self.bus.frames.clear();
        self.cpu.set_stack_pointer(STACK_START);
        self.cpu.set_arguments(&mut self.bus, arguments);
        self.cpu.enter(&mut self.bus, function, layout::RETURN_TO_US);
        self.go()
    }

    /// Runs to the return to us, going back to an earlier branch when the library throws.
    fn go(&mut self) -> Answer {
        loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(result)) => return Ok(result),
                Err(Exit::Throw(message)) => {
                    if !self.back_to_open_branch() {
                        return Err(Exit::Throw(message));
                    }
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Runs to the next event and answers it; the result when the call that we made has returned.
    pub fn step(&mut self) -> Result<Option<Value>, Exit> {
        match self.cpu.run(&mut self.bus) {
            Event::Outside(layout::RETURN_TO_US) => return Ok(Some(self.cpu.result())),
            Event::Outside(pc) => self.outside(pc)?,
            Event::Call { target, return_to } => self.enter(target, return_to)?,
            Event::Branch { condition, at, taken, otherwise } => self.branch(condition, at, taken, otherwise)?,
            Event::Trap(at) => {
                return Err(Exit::Throw(format!("trap at {:#x}", self.file_address(at))));
            }
            Event::Unsupported { at, name, is_float } => self.unsupported(at, name, is_float)?,
            Event::OutOfBudget => return Err(Exit::Stop(self.exhausted())),
        }
        Ok(None)
    }

    fn exhausted(&self) -> Stop {
        match self.bus.memory.fault {
            Some(Fault::Code(at)) => Stop::CodeWritten(self.file_address(at)),
            Some(Fault::Null(at)) => Stop::NullWritten(at),
            None if self.bus.memory.is_full => Stop::Memory,
            None if self.bus.expressions.is_overgrown => Stop::Expressions,
            None => Stop::Budget,
        }
    }

    /// The program counter has left the library's code: an import, a hooked function, or nothing.
    fn outside(&mut self, pc: u64) -> Result<(), Exit> {
        self.import = pc;
        let handler = match self.imports.handler(pc).or_else(|| self.hooked.get(&pc).copied()) {
            Some(handler) => handler,
            None => return Err(Exit::Stop(Stop::NotCode(pc))),
        };
        self.bus.remaining = self.bus.remaining.saturating_sub(8);
        let result = handler(self)?;
        self.cpu.set_result(result);
        self.cpu.return_from_entry(&mut self.bus);
        Ok(())
    }

    fn enter(&mut self, target: u64, return_to: u64) -> Result<(), Exit> {
        if self.bus.frames.len() >= limits::CALL_DEPTH {
            return Err(Exit::Stop(Stop::Depth));
        }
        if self.bus.skips_kernels && self.is_kernel_call(target) {
            self.cpu.enter(&mut self.bus, target, return_to);
            self.record_kernel_call(target);
            self.cpu.set_result(Value::ZERO);
            self.cpu.return_from_entry(&mut self.bus);
            return Ok(());
        }
        self.cpu.enter(&mut self.bus, target, return_to);
        Ok(())
    }

    /// A floating-point instruction means that a kernel was entered after all: its frame is left. Any other
    /// instruction ends the run, because stepping over integer code would make facts wrong.
    fn unsupported(&mut self, at: u64, name: String, is_float: bool) -> Result<(), Exit> {
        if is_float
            && self.bus.skips_kernels
            && self.bus.frames.len() > 1
            && let Some(frame) = self.bus.frames.pop()
        {
            self.recorder.skip(
                self.loaded.functions().get(&frame.target).map(|name| (*name).to_owned()),
                self.file_address(frame.target),
            );
            self.cpu.abandon(&frame);
            self.cpu.set_result(Value::ZERO);
            return Ok(());
        }
        let function = self.bus.frames.last().map_or_else(|| self.function_name(at), |f| self.function_name(f.target));
        Err(Exit::Stop(Stop::Instruction { name, at: self.file_address(at), function }))
    }

    /// Answers a function of the library by a handler.
    pub fn hook(&mut self, address: u64, handler: Handler) {
        self.bus.hooks.insert(address, ());
        self.hooked.insert(address, handler);
    }

    /// Makes the C++ object behind an input's handle, for libraries that want one.
    pub fn prepare_input(&mut self, id: super::tensors::TensorId) {
        if self.host.has_cxx_tensors {
            super::imports::make_tensor_impl(self, id);
        }
    }

    /// Registers, for snapshots.
    pub fn registers(&self) -> Registers {
        self.cpu.save()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Region;

    /// A machine of x86-64 without a library.
    fn machine(file: &Vec<u8>) -> Machine<'_> {
        let cpu = processor_for(Architecture::X86_64, Format::Elf).unwrap();
        let mut machine = Machine::new(cpu, Region::whole(file));
        machine.set_budget(limits::INSTRUCTIONS);
        machine
    }

    #[test]
    fn the_budget_of_instructions_has_a_border() {
        let file = Vec::new();
        let mut machine = machine(&file);
        assert_eq!(machine.budget(), limits::INSTRUCTIONS_BASE);
        let mut of = |bytes: u64| {
            machine.loaded.executable_bytes = bytes;
            machine.set_budget(limits::INSTRUCTIONS);
            machine.budget()
        };
        assert_eq!(of(1), limits::INSTRUCTIONS_BASE + limits::INSTRUCTIONS_PER_BYTE);
        let most = (limits::INSTRUCTIONS - limits::INSTRUCTIONS_BASE) / limits::INSTRUCTIONS_PER_BYTE;
        assert_eq!(of(most), limits::INSTRUCTIONS_BASE + most * limits::INSTRUCTIONS_PER_BYTE);
        assert_eq!(of(most + 1), limits::INSTRUCTIONS);
        assert_eq!(of(u64::MAX), limits::INSTRUCTIONS);
    }

    #[test]
    fn a_loop_ends_at_the_border_of_the_budget() {
        // jmp to itself
        let file = [0xeb, 0xfe].repeat(2048);
        let mut machine = machine(&file);
        machine.bus.memory.map(crate::interpret::memory::Mapping {
            address: layout::IMAGE,
            memory_size: 4096,
            bytes: Region::whole(&file),
            is_executable: true,
        });
        assert_eq!(machine.budget(), limits::INSTRUCTIONS_BASE);
        // the part of it that costs a test too much time
        machine.bus.remaining = 1_000;
        assert_eq!(machine.call(layout::IMAGE, &[]), Err(Exit::Stop(Stop::Budget)));
        assert_eq!(machine.spent(), limits::INSTRUCTIONS_BASE);
    }

    #[test]
    fn charges_end_the_run_at_the_border_of_the_budget() {
        let file = Vec::new();
        let mut machine = machine(&file);
        assert_eq!(machine.charge(16 * (limits::INSTRUCTIONS_BASE - 1)), Ok(()));
        assert_eq!(machine.charge(16), Err(Exit::Stop(Stop::Budget)));
    }

    #[test]
    fn the_depth_of_calls_has_a_border() {
        let file = Vec::new();
        let mut machine = machine(&file);
        machine.cpu.set_stack_pointer(STACK_START);
        for depth in 0..limits::CALL_DEPTH {
            assert!(machine.bus.calls_at_once(), "{depth}");
            machine.enter(layout::IMAGE, layout::RETURN_TO_US).unwrap();
        }
        assert!(!machine.bus.calls_at_once());
        let stop = machine.enter(layout::IMAGE, layout::RETURN_TO_US).unwrap_err();
        assert_eq!(stop, Exit::Stop(Stop::Depth));
        assert_eq!(Stop::Depth.to_string(), "calls are nested deeper than 300");
    }

    #[test]
    fn bytes_of_one_call_have_a_border() {
        let file = Vec::new();
        let mut machine = machine(&file);
        let heap = machine.allocate(limits::COPY_BYTES + 2);
        let is_refused = |stop: Exit| matches!(stop, Exit::Stop(Stop::Unreasonable(what)) if what.contains("4194304"));
        assert_eq!(machine.bytes(heap, limits::COPY_BYTES).unwrap().len() as u64, limits::COPY_BYTES);
        assert!(is_refused(machine.bytes(heap, limits::COPY_BYTES + 1).unwrap_err()));
        machine.bus.memory.fill(heap, b'x', limits::COPY_BYTES as usize);
        assert_eq!(machine.text(heap).unwrap().len() as u64, limits::COPY_BYTES);
        machine.bus.memory.fill(heap + limits::COPY_BYTES, b'x', 1);
        assert!(is_refused(machine.text(heap).unwrap_err()));
    }
}
