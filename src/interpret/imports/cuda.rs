//! CUDA driver and runtime (and HIP, which has the same functions under other names): modules, functions, launches.

use super::{Copied, Row, zero};
use crate::interpret::layout;
use crate::interpret::machine::{Answer, Exit, Machine, Stop};
use crate::interpret::trace::Record;
use crate::interpret::value::Value;
use crate::limits;

pub const TABLE: &[Row] = &[
    ("cudaGetDevice", |m| number(m, 0, 0)),
    ("cudaGetDeviceCount", |m| number(m, 0, 1)),
    ("cudaSetDevice", zero),
    ("cudaMalloc", malloc),
    ("cudaMallocAsync", malloc),
    ("cudaMallocHost", host_malloc),
    ("cudaHostAlloc", host_malloc),
    ("cudaFree", zero),
    ("cudaFreeHost", zero),
    ("cudaFreeAsync", zero),
    ("cudaMemcpy", memcpy),
    ("cudaMemcpyAsync", memcpy),
    ("cudaMemset", zero),
    ("cudaMemsetAsync", zero),
    ("cudaHostRegister", zero),
    ("cudaHostUnregister", zero),
    ("cudaGetLastError", zero),
    ("cudaPeekAtLastError", zero),
    ("cudaGetErrorString", |m| Ok(Value::new(m.literal("error")))),
    ("cudaEventCreate", object),
    ("cudaEventCreateWithFlags", object),
    ("cudaEventDestroy", zero),
    ("cudaEventRecord", zero),
    ("cudaEventSynchronize", zero),
    ("cudaEventQuery", zero),
    ("cudaStreamCreate", object),
    ("cudaStreamCreateWithFlags", object),
    ("cudaStreamDestroy", zero),
    ("cudaStreamSynchronize", zero),
    ("cudaStreamWaitEvent", zero),
    ("cudaDeviceSynchronize", zero),
    ("cudaStreamIsCapturing", |m| number(m, 1, 0)),
    ("cudaDeviceGetAttribute", |m| number(m, 0, 0)),
    ("cuModuleLoad", module_load),
    ("cuModuleLoadData", module_load_data),
    ("cuModuleLoadDataEx", module_load_data),
    ("cuModuleUnload", zero),
    ("cuModuleGetFunction", module_get_function),
    ("cuFuncSetAttribute", set_attribute),
    ("cuFuncGetAttribute", |m| number(m, 0, 0)),
    ("cuLaunchKernel", launch),
    ("cuLaunchKernelEx", launch_ex),
    ("cuTensorMapEncodeTiled", zero),
    ("cuGetErrorString", error_string),
    ("cuGetErrorName", error_string),
    ("cuDeviceGet", |m| number(m, 0, 0)),
    ("cuDeviceGetAttribute", |m| number(m, 0, 0)),
    ("cuCtxGetCurrent", object),
    ("cuCtxGetDevice", |m| number(m, 0, 0)),
    ("cuInit", zero),
    ("hipGetDevice", |m| number(m, 0, 0)),
    ("hipGetDeviceCount", |m| number(m, 0, 1)),
    ("hipSetDevice", zero),
    ("hipMalloc", malloc),
    ("hipFree", zero),
    ("hipMemcpy", memcpy),
    ("hipMemcpyAsync", memcpy),
    ("hipGetLastError", zero),
    ("hipGetErrorString", |m| Ok(Value::new(m.literal("error")))),
    ("hipEventCreate", object),
    ("hipEventCreateWithFlags", object),
    ("hipEventDestroy", zero),
    ("hipEventRecord", zero),
    ("hipEventSynchronize", zero),
    ("hipEventQuery", zero),
    ("hipModuleLoad", module_load),
    ("hipModuleLoadData", module_load_data),
    ("hipModuleUnload", zero),
    ("hipModuleGetFunction", module_get_function),
    ("hipFuncSetAttribute", set_attribute),
    ("hipModuleLaunchKernel", launch),
    ("hipDrvGetErrorString", error_string),
];

/// What a module was loaded from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ModuleSource {
    /// not loaded yet
    #[default]
    None,
    /// a file, by the path that the build wrote
    File(String),
    /// bytes in the library, by their address in the file's address space
    Embedded(u64),
}

/// A GPU function that was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFunction {
    /// symbol in the module
    pub name: String,
    /// where the module came from
    pub source: ModuleSource,
    /// dynamic shared memory that was allowed for it
    pub shared_bytes: Option<u64>,
}

fn number(m: &mut Machine<'_>, n: usize, value: u64) -> Answer {
    let slot = m.arg(n);
    m.bus.memory.write(slot, 4, value);
    Ok(Value::ZERO)
}

fn object(m: &mut Machine<'_>) -> Answer {
    let slot = m.arg(0);
    let object = m.new_object();
    m.set_word(slot, object);
    Ok(Value::ZERO)
}

fn malloc(m: &mut Machine<'_>) -> Answer {
    let (slot, size) = (m.arg(0), m.argument(1));
    let address = layout::DEVICE.start.saturating_add(m.host.device_bytes);
    m.host.device_bytes = m.host.device_bytes.saturating_add(size.bits.saturating_add(255) & !255) % (1 << 43);
    m.set_word(slot, address);
    m.recorder.add(Record::DeviceBytes(size));
    Ok(Value::ZERO)
}

fn host_malloc(m: &mut Machine<'_>) -> Answer {
    let slot = m.arg(0);
    let block = super::libc::allocate_block(m, 1)?;
    m.set_word(slot, block);
    Ok(Value::ZERO)
}

/// Device memory has no bytes: only where they came from is noted.
fn memcpy(m: &mut Machine<'_>) -> Answer {
    let (to, from, len) = (m.arg(0), m.arg(1), m.arg(2));
    m.host.copies.push(Copied { to, from, len });
    Ok(Value::ZERO)
}

fn module_load(m: &mut Machine<'_>) -> Answer {
    let path = m.arg(1);
    let path = m.bus.memory.cstr(path, limits::NAME_BYTES);
    m.host.module = ModuleSource::File(String::from_utf8_lossy(&path).into_owned());
    object(m)
}

fn module_load_data(m: &mut Machine<'_>) -> Answer {
    let data = m.arg(1);
    m.host.module = ModuleSource::Embedded(m.file_address(data));
    object(m)
}

fn module_get_function(m: &mut Machine<'_>) -> Answer {
    let (slot, name) = (m.arg(0), m.arg(2));
    let name = m.bus.memory.cstr(name, limits::SYMBOL_NAME_BYTES);
    let name = String::from_utf8_lossy(&name).into_owned();
    // a handle of another one would make its launches another kernel's
    if m.host.functions.len() >= limits::KERNELS {
        return Err(Exit::Stop(Stop::Unreasonable(format!("more than {} GPU functions", limits::KERNELS))));
    }
    m.host.functions.push(GpuFunction { name, source: m.host.module.clone(), shared_bytes: None });
    let last = m.host.functions.len().saturating_sub(1) as u64;
    m.set_word(slot, layout::FUNCTIONS.start + 16 * last);
    Ok(Value::ZERO)
}

fn function_of(handle: u64) -> Option<usize> {
    usize::try_from(handle.checked_sub(layout::FUNCTIONS.start)? / 16).ok()
}

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
fn set_attribute(m: &mut Machine<'_>) -> Answer {
    const DYNAMIC_SHARED: u32 = 8;
    let (function, attribute, value) = (m.arg(0), m.arg(1) as u32, m.arg(2) & 0xffff_ffff);
    if attribute == DYNAMIC_SHARED
        && let Some(function) = function_of(function).and_then(|n| m.host.functions.get_mut(n))
    {
        function.shared_bytes = Some(value);
    }
    Ok(Value::ZERO)
}

/// `(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra)`
fn launch(m: &mut Machine<'_>) -> Answer {
    let function = m.arg(0);
    let grid = [m.argument_of(1, 4), m.argument_of(2, 4), m.argument_of(3, 4)];
    let block = [m.argument_of(4, 4), m.argument_of(5, 4), m.argument_of(6, 4)];
    let shared = m.argument_of(7, 4);
    let parameters = m.arg(9);
    record(m, function, grid, block, shared, parameters)
}

/// `(config, f, params, extra)`; config: {grid[3], block[3], shared: u32, stream, attributes, count}
fn launch_ex(m: &mut Machine<'_>) -> Answer {
    let (config, function, parameters) = (m.arg(0), m.arg(1), m.arg(2));
    let [gx, gy, gz, bx, by, bz, shared] = [0, 4, 8, 12, 16, 20, 24].map(|o| m.bus.load(config.wrapping_add(o), 4));
    record(m, function, [gx, gy, gz], [bx, by, bz], shared, parameters)
}

/// Most arguments of one kernel that are reported.
const ARGUMENTS: u64 = 64;

/// Parameters are pointers to values in the caller's frame; their number is not passed.
fn record(
    m: &mut Machine<'_>,
    function: u64,
    grid: [Value; 3],
    block: [Value; 3],
    shared: Value,
    parameters: u64,
) -> Answer {
    let mut arguments = Vec::new();
    for n in 0..ARGUMENTS {
        let at = m.word(parameters.wrapping_add(8 * n));
        if !layout::STACK.contains(&at) {
            break;
        }
        let word = m.bus.load(at, 8);
        let is_pointer = [layout::TENSOR_DATA, layout::DEVICE].iter().any(|r| r.contains(&word.bits));
        arguments.push(if is_pointer || word.shadow.is_some() { word } else { m.bus.load(at, 4) });
    }
    let Some(function) = function_of(function) else { return Ok(Value::ZERO) };
    m.recorder.add(Record::Launch { function, grid: Box::new(grid), block: Box::new(block), shared, arguments });
    Ok(Value::ZERO)
}

fn error_string(m: &mut Machine<'_>) -> Answer {
    let slot = m.arg(1);
    let text = m.literal("error");
    m.set_word(slot, text);
    Ok(Value::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Architecture, Format};
    use crate::interpret::machine::processor_for;
    use crate::source::Region;

    #[test]
    fn functions_have_a_border() {
        let of = |before: usize| {
            let file = Vec::new();
            let mut machine =
                Machine::new(processor_for(Architecture::X86_64, Format::Elf).unwrap(), Region::whole(&file));
            let function = GpuFunction { name: String::new(), source: ModuleSource::None, shared_bytes: None };
            machine.host.functions = vec![function; before];
            let slot = machine.allocate(8);
            machine.cpu.set_arguments(&mut machine.bus, &[slot, 0, slot].map(Value::new));
            let answer = module_get_function(&mut machine);
            (answer, function_of(machine.word(slot)))
        };
        assert_eq!(of(limits::KERNELS - 1), (Ok(Value::ZERO), Some(limits::KERNELS - 1)));
        let (refused, handle) = of(limits::KERNELS);
        let Err(Exit::Stop(Stop::Unreasonable(why))) = refused else { panic!("{refused:?}") };
        assert_eq!((why.as_str(), handle), ("more than 65536 GPU functions", None));
    }
}
