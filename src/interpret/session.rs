//! One visit to a library: create, ask, run.

use super::Options;
use super::cpu::Processor;
use super::explore::Mode;
use super::imports::parse_device_string;
use super::layout;
use super::loader;
use super::machine::{Answer, Exit, Machine, Stop, processor_for};
use super::tensors::{Kind, TensorId, Tensors};
use super::value::Value;
use crate::error::{Error, ErrorKind, Result};
use crate::image::Image;
use crate::limits;
use crate::model::{ConstantKind, DType, DeviceKind, Phase};

/// Prefix of the container's functions.
const CONTAINER: &str = "AOTInductorModelContainer";

/// `parse_device_str`, whatever strings it takes (aoti_runtime/model_base.h, 2.3+).
const DEVICE_PARSER: &str = "_ZN5torch12aot_inductor16parse_device_strE";

/// One constant, as the getters tell it.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// internal name
    pub name: Option<String>,
    /// address of the text that is the internal name
    pub name_at: u64,
    /// name for loading
    pub fqn: Option<String>,
    /// element type
    pub dtype: Option<DType>,
    /// computed at run time
    pub folded: Option<bool>,
    /// what it was in the module
    pub kind: Option<ConstantKind>,
    /// storage bytes
    pub size_bytes: Option<u64>,
}

/// What a visit brought.
pub struct Visit<'a> {
    /// the machine as the visit left it
    pub machine: Machine<'a>,
    /// device that creation succeeded for
    pub device: DeviceKind,
    /// the container
    pub container: Option<u64>,
    /// numbers that the getters gave
    pub counts: [Option<usize>; 3],
    /// input names
    pub input_names: Vec<Option<String>>,
    /// output names
    pub output_names: Vec<Option<String>>,
    /// constants
    pub constants: Vec<Row>,
    /// input and output call spec
    pub specs: [Option<String>; 2],
    /// our input tensors
    pub inputs: Vec<TensorId>,
    /// output tensors after the run
    pub outputs: Vec<Option<TensorId>>,
    /// records of creation and getters, before those of the run
    pub run_starts_at: usize,
    /// constraints of creation, before those of the run
    pub run_constraints_at: usize,
    /// what went wrong: (phase, reason)
    pub failures: Vec<(Phase, String)>,
    /// the run came to its end
    pub has_run: bool,
    /// records of the run, before those of runs along other branches
    pub run_ends_at: usize,
    /// constraints of the run, likewise
    pub run_constraints_end: usize,
    /// outputs whose shape depends on a branch that the library may take either way
    pub conditional_outputs: Vec<usize>,
    /// what runs along other branches could not tell
    pub alternative_failures: Vec<String>,
}

/// Loads a library and creates its model.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a machine without a processor here, and the loader's.
pub fn create<'a>(image: &'a Image<'_>, options: &Options) -> Result<Visit<'a>> {
    let machine = load(image, options)?;
    let devices = likely_devices(&machine);
    let mut visit = Visit {
        machine,
        device: devices.first().cloned().unwrap_or(DeviceKind::Cpu),
        container: None,
        counts: [None; 3],
        input_names: Vec::new(),
        output_names: Vec::new(),
        constants: Vec::new(),
        specs: [None, None],
        inputs: Vec::new(),
        outputs: Vec::new(),
        run_starts_at: 0,
        run_constraints_at: 0,
        failures: Vec::new(),
        has_run: false,
        run_ends_at: 0,
        run_constraints_end: 0,
        conditional_outputs: Vec::new(),
        alternative_failures: Vec::new(),
    };
    visit.initialize();
    for (attempt, device) in devices.into_iter().enumerate() {
        if attempt > 0 {
            // the first attempt may have left half a container: start afresh
            let spent = visit.machine.spent();
            visit.machine = load(image, options)?;
            visit.machine.bus.remaining = visit.machine.bus.remaining.saturating_sub(spent);
            visit.initialize();
        }
        visit.device = device.clone();
        match visit.create_container(&device) {
            Ok(container) => {
                visit.container = Some(container);
                // of other devices; what runs when the library is opened has to run for each
                visit.failures.retain(|(phase, _)| *phase == Phase::Initialisers);
                break;
            }
            Err(Exit::Throw(message)) => {
                visit.failures.push((Phase::Creation, format!("the library throws: {message}")));
            }
            Err(Exit::Stop(stop)) => {
                visit.failures.push((Phase::Creation, stop.to_string()));
                break;
            }
        }
    }
    Ok(visit)
}

fn load<'a>(image: &'a Image<'_>, options: &Options) -> Result<Machine<'a>> {
    let Some(cpu) = processor_for(image.architecture(), image.format()) else {
        let what = format!("code for {} is not interpreted", image.architecture());
        return Err(Error::new(ErrorKind::Unsupported, what));
    };
    let cpu: Box<dyn Processor> = cpu;
    let mut machine = Machine::new(cpu, image.region());
    loader::load(&mut machine, image)?;
    machine.set_budget(options.instructions);
    if options.answers_device_parser {
        let parser = image.exports()?.iter().find(|s| s.name.starts_with(DEVICE_PARSER));
        if let Some(address) = parser.and_then(|s| machine.loaded.export(&s.name)) {
            machine.hook(address, parse_device_string);
        }
    }
    Ok(machine)
}

/// Devices to try, the likeliest first (format reference 4.3).
fn likely_devices(machine: &Machine<'_>) -> Vec<DeviceKind> {
    let imports = |wanted: &[&str]| machine.imports.names().iter().any(|n| wanted.iter().any(|w| n.starts_with(w)));
    let mut devices = Vec::new();
    let rows: [(&[&str], DeviceKind); 3] = [
        (
            &["cudaMalloc", "cuLaunchKernel", "cuModuleLoad", "hipMalloc", "hipModule", "aoti_torch_cuda_"],
            DeviceKind::Cuda,
        ),
        (&["_ZN4sycl", "zeModule", "aoti_torch_xpu_"], DeviceKind::Xpu),
        (&["aoti_torch_mps_"], DeviceKind::Mps),
    ];
    for (names, device) in rows {
        if imports(names) {
            devices.push(device);
        }
    }
    devices.push(DeviceKind::Cpu);
    devices
}

/// A function of the C interface that answers through a pointer.
#[derive(Clone, Copy)]
struct Getter {
    function: u64,
    container: u64,
    slot: u64,
}

impl Visit<'_> {
    fn fail(&mut self, phase: Phase, exit: Exit) {
        let reason = match exit {
            Exit::Throw(message) => format!("the library throws: {message}"),
            Exit::Stop(stop) => stop.to_string(),
        };
        self.failures.push((phase, reason));
    }

    fn initialize(&mut self) {
        let arguments = self.machine.loaded.initializer_arguments.map(Value::new);
        for function in self.machine.loaded.initializers.clone() {
            if function == layout::IMAGE || function == 0 {
                continue;
            }
            if let Err(exit) = self.machine.call(function, &arguments) {
                let is_end = matches!(exit, Exit::Stop(Stop::Budget));
                self.fail(Phase::Initialisers, exit);
                if is_end {
                    break;
                }
            }
        }
    }

    fn export(&self, name: &str) -> Option<u64> {
        self.machine.loaded.export(name)
    }

    fn create_container(&mut self, device: &DeviceKind) -> std::result::Result<u64, Exit> {
        let number = device.aten().unwrap_or(0);
        self.machine.tensors.device = number;
        let slot = self.machine.allocate(16);
        let one = Value::new(1);
        // the cubin directory stays null: then the paths that the build wrote are used as they are
        let (function, arguments) = match self.export(&format!("{CONTAINER}CreateWithDevice")) {
            Some(function) => {
                let name = Value::new(self.machine.literal(device.name()));
                (function, vec![Value::new(slot), one, name, Value::ZERO])
            }
            None => {
                let Some(function) = self.export(&format!("{CONTAINER}Create")) else {
                    let message = "the library exports no AOTInductorModelContainerCreate".to_owned();
                    return Err(Exit::Stop(Stop::Unreasonable(message)));
                };
                let is_cpu = Value::new(u64::from(*device == DeviceKind::Cpu));
                (function, vec![Value::new(slot), one, is_cpu, Value::ZERO])
            }
        };
        self.machine.set_mode(Mode::Explore);
        let result = self.machine.call(function, &arguments);
        self.machine.set_mode(Mode::Follow);
        result?;
        let container = self.machine.word(slot);
        if container == 0 {
            return Err(Exit::Throw("no container".to_owned()));
        }
        Ok(container)
    }

    /// A getter, with a place for its answer; `None` when it is not exported.
    fn getter(&mut self, name: &str) -> Option<Getter> {
        let function = self.export(&format!("{CONTAINER}{name}"))?;
        Some(Getter { function, container: self.container?, slot: self.machine.allocate(16) })
    }
    /// Asks a getter for something of `len` bytes; `None` when there is none, or it fails.
    fn ask(&mut self, getter: Option<Getter>, index: Option<usize>, len: usize) -> Option<u64> {
        let Getter { function, container, slot } = getter?;
        self.machine.set_word(slot, 0);
        let (container, answer) = (Value::new(container), Value::new(slot));
        let result = match index {
            Some(n) => self.machine.call(function, &[container, Value::new(n as u64), answer]),
            None => self.machine.call(function, &[container, answer]),
        };
        match result {
            Ok(code) if code.bits as u32 == 0 => Some(self.machine.bus.memory.read(slot, len)),
            Ok(_) => None,
            Err(exit) => {
                self.fail(Phase::Getters, exit);
                None
            }
        }
    }
    fn ask_count(&mut self, name: &str) -> Option<usize> {
        let getter = self.getter(name);
        let count = usize::try_from(self.ask(getter, None, 8)?).ok()?;
        if count > limits::TENSORS {
            self.failures.push((Phase::Getters, format!("{name} answers {count}, more than {}", limits::TENSORS)));
            return None;
        }
        Some(count)
    }
    fn text(&mut self, at: u64) -> Option<String> {
        if at == 0 {
            return None;
        }
        String::from_utf8(self.machine.text(at).ok()?).ok()
    }
    fn ask_text(&mut self, getter: Option<Getter>, index: usize) -> Option<String> {
        let at = self.ask(getter, Some(index), 8)?;
        self.text(at)
    }
    fn ask_texts(&mut self, name: &str, count: usize) -> Vec<Option<String>> {
        let getter = self.getter(name);
        (0..count).map(|n| self.ask_text(getter, n)).collect()
    }

    /// Asks all getters that are exported.
    pub fn ask_all(&mut self) {
        let names = ["GetNumInputs", "GetNumOutputs", "GetNumConstants"];
        self.counts = names.map(|name| self.ask_count(name));
        let [inputs, outputs, constants] = self.counts.map(Option::unwrap_or_default);
        self.input_names = self.ask_texts("GetInputName", inputs);
        self.output_names = self.ask_texts("GetOutputName", outputs);
        self.ask_specs();
        let [name, fqn, dtype, folded, kind, size] = ["Name", "OriginalFQN", "Dtype", "FromFolded", "Type", "DataSize"]
            .map(|what| self.getter(&format!("GetConstant{what}")));
        for n in 0..constants {
            let name_at = self.ask(name, Some(n), 8).unwrap_or(0);
            let row = Row {
                name: self.text(name_at),
                name_at,
                fqn: self.ask_text(fqn, n),
                dtype: self.ask(dtype, Some(n), 4).and_then(|n| DType::from_aten(n as i32)),
                folded: self.ask(folded, Some(n), 1).map(|b| b != 0),
                kind: self.ask(kind, Some(n), 4).map(|n| ConstantKind::from_number(i64::from(n as i32))),
                size_bytes: self.ask(size, Some(n), 8),
            };
            self.constants.push(row);
            if self.machine.bus.remaining == 0 {
                break;
            }
        }
    }

    fn ask_specs(&mut self) {
        let Some((function, container)) = self.export(&format!("{CONTAINER}GetCallSpec")).zip(self.container) else {
            return;
        };
        let slot = self.machine.allocate(16);
        let arguments = [container, slot, slot + 8].map(Value::new);
        match self.machine.call(function, &arguments) {
            Ok(code) if code.bits as u32 == 0 => {
                for (n, offset) in [0, 8].into_iter().enumerate() {
                    let at = self.machine.word(slot + offset);
                    let text = self.text(at);
                    if let Some(spec) = self.specs.get_mut(n) {
                        *spec = text;
                    }
                }
            }
            Ok(_) => {}
            Err(exit) => self.fail(Phase::Getters, exit),
        }
    }

    /// Runs the model once on tensors of symbolic sizes, with the input checks on; then again along branches that
    /// the first run left open.
    pub fn run(&mut self) {
        let Some((function, container)) = self.export(&format!("{CONTAINER}Run")).zip(self.container) else { return };
        self.inputs =
            (0..self.counts[0].unwrap_or_default()).map(|n| self.machine.new_tensor(Kind::Input(n))).collect();
        self.run_starts_at = self.machine.recorder.point();
        self.run_constraints_at = self.machine.explorer.constraints.len();
        let handles = self.inputs.clone();
        let (result, outputs) = self.run_on(function, container, &handles);
        self.run_ends_at = self.machine.recorder.point();
        self.run_constraints_end = self.machine.explorer.constraints.len();
        self.outputs = outputs;
        match result {
            Ok(code) if code.bits as u32 == 0 => self.has_run = true,
            Ok(code) => self.failures.push((Phase::Run, format!("it returned error {}", code.bits as u32))),
            Err(exit) => self.fail(Phase::Run, exit),
        }
        if self.has_run {
            self.run_alternatives(function, container);
        }
    }

    fn run_on(&mut self, function: u64, container: u64, inputs: &[TensorId]) -> (Answer, Vec<Option<TensorId>>) {
        let outputs = self.counts[1].unwrap_or_default() as u64;
        let machine = &mut self.machine;
        let count = inputs.len() as u64;
        let input_slots = machine.allocate(8 * count + 8);
        let output_slots = machine.allocate(8 * outputs + 8);
        for (n, id) in inputs.iter().enumerate() {
            machine.set_word(input_slots + 8 * n as u64, Tensors::handle(*id));
            machine.prepare_input(*id);
        }
        machine.messages.clear();
        machine.bus.skips_kernels = true;
        let arguments = [container, input_slots, count, output_slots, outputs, 0, layout::PROXY_EXECUTOR];
        machine.set_mode(Mode::Explore);
        let result = machine.call(function, &arguments.map(Value::new));
        machine.set_mode(Mode::Follow);
        machine.bus.skips_kernels = false;
        let outputs = (0..outputs)
            .map(|n| {
                let handle = self.machine.word(output_slots + 8 * n);
                if handle == 0 { None } else { Some(self.machine.tensor_of(handle)) }
            })
            .collect();
        (result, outputs)
    }

    /// Takes the other side of branches that the run left open (`cond` on a tensor's value, code for large and small
    /// sizes): further kernels, and whether the outputs are the same.
    fn run_alternatives(&mut self, function: u64, container: u64) {
        for (tried, alternative) in self.machine.open_constraints(self.run_constraints_at).into_iter().enumerate() {
            if tried >= ALTERNATIVES {
                self.alternative_failures.push("not all branches of the code were followed".to_owned());
                break;
            }
            let constraints = self.machine.explorer.constraints.len();
            let point = self.machine.bus.expressions.point();
            if !self.machine.turn(&alternative) {
                continue;
            }
            // the same tensors once more: their handles were given away
            let again: Vec<TensorId> = self
                .inputs
                .clone()
                .into_iter()
                .map(|id| self.machine.derive_tensor(id, Kind::Alias { is_copy: false }))
                .collect();
            let (result, outputs) = self.run_on(function, container, &again);
            self.machine.host.other_items = false;
            match result {
                Ok(code) if code.bits as u32 == 0 => {
                    let differ: Vec<usize> = (0..outputs.len())
                        .filter(|n| {
                            let shape = |list: &[Option<TensorId>]| {
                                let id = list.get(*n).copied().flatten()?;
                                self.machine.tensors.get(id).and_then(|t| t.sizes.clone())
                            };
                            shape(&outputs).map(expressions) != shape(&self.outputs).map(expressions)
                        })
                        .collect();
                    self.conditional_outputs.extend(differ);
                }
                Ok(code) => self.alternative_failures.push(format!("it returned error {}", code.bits as u32)),
                Err(Exit::Throw(message)) => self.alternative_failures.push(format!("the library throws: {message}")),
                Err(Exit::Stop(stop)) => self.alternative_failures.push(stop.to_string()),
            }
            self.machine.explorer.constraints.truncate(constraints);
            self.machine.bus.expressions.undo(point);
        }
    }
}

/// Sizes as what they depend on; their values differ with the assignment.
fn expressions(sizes: Vec<Value>) -> Vec<Value> {
    sizes.into_iter().map(|size| if size.shadow.is_some() { Value { bits: 0, ..size } } else { size }).collect()
}

/// Runs along other branches.
const ALTERNATIVES: usize = 6;
