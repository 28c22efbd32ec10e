//! libtorch's C shims (`torch/csrc/inductor/aoti_torch/c/shim.h`): tensors that have sizes but no elements.

use super::{Row, zero};
use crate::interpret::explore::symbolic;
use crate::interpret::layout;
use crate::interpret::machine::{Answer, Exit, Machine};
use crate::interpret::tensors::{Kind, TensorId, Tensors};
use crate::interpret::trace::Record;
use crate::interpret::value::{Origin, Property, Value};
use crate::model::{DType, DeviceKind};
use std::cmp::Ordering;

pub const TABLE: &[Row] = &[
    ("aoti_torch_dtype_element_size", element_size),
    ("aoti_torch_get_dtype", |m| answer(m, 1, 4, |m, id| m.tensor_dtype(id))),
    ("aoti_torch_get_device_type", |m| answer(m, 1, 4, |m, id| m.tensor_device(id))),
    ("aoti_torch_get_device_index", |m| answer(m, 1, 4, |_, _| Value::ZERO)),
    ("aoti_torch_get_layout", |m| answer(m, 1, 4, |_, _| Value::ZERO)),
    ("aoti_torch_get_sizes", |m| answer(m, 1, 8, |m, id| Value::new(m.sizes_array(id)))),
    ("aoti_torch_get_strides", |m| answer(m, 1, 8, |m, id| Value::new(m.strides_array(id)))),
    ("aoti_torch_get_size", |m| element(m, |m, id| m.sizes_array(id))),
    ("aoti_torch_get_stride", |m| element(m, |m, id| m.strides_array(id))),
    ("aoti_torch_get_dim", |m| answer(m, 1, 8, |m, id| m.tensor_rank(id))),
    ("aoti_torch_get_numel", |m| answer(m, 1, 8, |m, id| m.tensor_elements(id))),
    ("aoti_torch_get_storage_numel", |m| answer(m, 1, 8, |m, id| m.property(id, Property::StorageBytes))),
    ("aoti_torch_get_storage_size", |m| answer(m, 1, 8, |m, id| m.property(id, Property::StorageBytes))),
    ("aoti_torch_get_storage_offset", |m| answer(m, 1, 8, offset)),
    ("aoti_torch_get_data_ptr", |m| answer(m, 1, 8, |m, id| Value::new(m.tensors.get(id).map_or(0, |t| t.data)))),
    ("aoti_torch_get_const_data_ptr", |m| answer(m, 1, 8, |m, id| Value::new(m.tensors.get(id).map_or(0, |t| t.data)))),
    ("aoti_torch_is_defined", |m| answer(m, 1, 1, |_, _| Value::new(1))),
    ("aoti_torch_is_contiguous", |m| answer(m, 1, 1, |_, _| Value::new(1))),
    ("aoti_torch_is_cpu", |m| answer(m, 1, 1, |m, id| Value::new(u64::from(m.tensor_device(id).bits == 0)))),
    ("aoti_torch_new_tensor_handle", |m| derive(m, 1, Kind::Alias { is_copy: false })),
    ("aoti_torch_assign_tensors_out", |m| derive(m, 1, Kind::Alias { is_copy: false })),
    ("aoti_torch_clone", |m| derive(m, 1, Kind::Alias { is_copy: true })),
    ("aoti_torch_clone_preserve_strides", |m| derive(m, 1, Kind::Alias { is_copy: true })),
    ("aoti_torch_new_uninitialized_tensor", new_uninitialized),
    ("aoti_torch_assign_tensors", assign),
    ("aoti_torch_empty_strided", |m| empty_strided(m, false)),
    ("aoti_torch_empty_strided_pinned", |m| empty_strided(m, true)),
    ("aoti_torch_create_tensor_from_blob", from_blob),
    ("aoti_torch_create_tensor_from_blob_v2", from_blob),
    ("aoti_torch__reinterpret_tensor", reinterpret),
    ("aoti_torch_as_strided", as_strided),
    ("aoti_torch_delete_tensor_object", delete),
    ("aoti_torch_copy_", in_place),
    ("aoti_torch_tensor_copy_", in_place),
    ("aoti_torch_zero_", in_place),
    ("aoti_torch_proxy_executor_call_function", proxy_executor),
    ("aoti_torch_check", check),
    ("aoti_torch_warn", zero),
    ("aoti_torch_grad_mode_is_enabled", zero),
    ("aoti_torch_grad_mode_set_enabled", zero),
    ("aoti_torch_check_inf_and_nan", zero),
    ("aoti_check_inf_and_nan", zero),
    ("aoti_torch_print_tensor_handle", zero),
    ("aoti_torch_save_tensor_handle", zero),
    ("aoti_record_function_start", |m| object(m, 3)),
    ("aoti_record_function_end", zero),
    ("aoti_torch_create_cuda_guard", |m| object(m, 1)),
    ("aoti_torch_create_xpu_guard", |m| object(m, 1)),
    ("aoti_torch_cuda_guard_set_index", zero),
    ("aoti_torch_delete_cuda_guard", zero),
    ("aoti_torch_delete_xpu_guard", zero),
    ("aoti_torch_create_cuda_stream_guard", |m| object(m, 2)),
    ("aoti_torch_create_xpu_stream_guard", |m| object(m, 2)),
    ("aoti_torch_delete_cuda_stream_guard", zero),
    ("aoti_torch_delete_xpu_stream_guard", zero),
    ("aoti_torch_get_current_cuda_stream", |m| object(m, 1)),
    ("aoti_torch_get_current_xpu_stream", |m| object(m, 1)),
    ("aoti_torch_get_current_cuda_device", |m| {
        store(m, 0, 4, Value::ZERO);
        Ok(Value::ZERO)
    }),
    ("aoti_torch_get_current_xpu_device", |m| {
        store(m, 0, 4, Value::ZERO);
        Ok(Value::ZERO)
    }),
    ("aoti_torch_get_current_device_index", |m| {
        store(m, 0, 4, Value::ZERO);
        Ok(Value::ZERO)
    }),
    ("aoti_torch_get_current_stream", |m| object(m, 1)),
    // torch/csrc/inductor/aoti_torch/c/shim_mps.h: what they give are no tensors
    ("aoti_torch_mps_create_shader_library", |m| object(m, 1)),
    ("aoti_torch_mps_get_kernel_function", |m| object(m, 2)),
    ("aoti_torch_mps_run_command_block", in_place),
];

pub const PREFIXES: &[Row] = &[
    ("aoti_torch_dtype_", dtype),
    ("aoti_torch_device_type_", device_type),
    ("aoti_torch_layout_", layout_number),
    ("aoti_torch_memory_format_", memory_format),
    ("aoti_torch_item_", item),
    ("aoti_torch_scalar_to_tensor_", scalar_to_tensor),
    ("aoti_torch_", operator),
];

/// Number of an operator's integer parameters, and which of them are written, by its name. The table is sorted, and
/// few of its rows are ever wanted.
fn signature(name: &str) -> Option<&'static str> {
    let table = include_str!("shim_signatures.txt");
    let line_at = |at: usize| {
        let start = table.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
        Some((start, table.get(start..)?.lines().next()?))
    };
    let (mut low, mut high) = (0, table.len());
    while low < high {
        let (start, line) = line_at(low.midpoint(high))?;
        let (found, signature) = line.split_once(' ').unwrap_or_default();
        match found.cmp(name) {
            Ordering::Equal => return Some(signature),
            Ordering::Less => low = start + line.len() + 1,
            Ordering::Greater => high = start,
        }
    }
    None
}

/// Writes an out-parameter.
fn store(m: &mut Machine<'_>, n: usize, len: usize, value: Value) {
    let slot = m.arg(n);
    if slot != 0 {
        m.bus.store(slot, len, value);
    }
}

/// A getter: tensor first, answer through the `n`-th argument.
fn answer(m: &mut Machine<'_>, n: usize, len: usize, get: fn(&mut Machine<'_>, TensorId) -> Value) -> Answer {
    let handle = m.arg(0);
    let id = m.tensor_of(handle);
    let value = get(m, id);
    store(m, n, len, value);
    Ok(Value::ZERO)
}

/// `(tensor, dim, *ret)`
fn element(m: &mut Machine<'_>, array: fn(&mut Machine<'_>, TensorId) -> u64) -> Answer {
    let (handle, dim) = (m.arg(0), m.arg(1));
    let id = m.tensor_of(handle);
    let address = array(m, id).wrapping_add(dim.wrapping_mul(8));
    let value = m.bus.load(address, 8);
    store(m, 2, 8, value);
    Ok(Value::ZERO)
}

fn offset(m: &mut Machine<'_>, id: TensorId) -> Value {
    m.tensors.get(id).map_or(Value::ZERO, |t| t.offset)
}

fn give(m: &mut Machine<'_>, n: usize, id: TensorId) {
    m.recorder.add(Record::Tensor(id));
    store(m, n, 8, Value::new(Tensors::handle(id)));
    if m.host.has_cxx_tensors {
        super::tensor_impl::make(m, id);
    }
}

fn object(m: &mut Machine<'_>, n: usize) -> Answer {
    let object = m.new_object();
    store(m, n, 8, Value::new(object));
    Ok(Value::ZERO)
}

fn suffix<'n>(m: &'n Machine<'_>, prefix: &str) -> &'n str {
    m.import_name().strip_prefix(prefix).unwrap_or("")
}

fn dtype(m: &mut Machine<'_>) -> Answer {
    let number = DType::from_name(suffix(m, "aoti_torch_dtype_")).and_then(|d| d.aten());
    match number {
        Some(number) => Ok(Value::new(number as u64)),
        None => super::unknown(m),
    }
}

fn device_type(m: &mut Machine<'_>) -> Answer {
    let number = DeviceKind::from_name(suffix(m, "aoti_torch_device_type_")).aten();
    match number {
        Some(number) => Ok(Value::new(number as u64)),
        None => super::unknown(m),
    }
}

/// c10/core/Layout.h
fn layout_number(m: &mut Machine<'_>) -> Answer {
    const LAYOUTS: &[&str] =
        &["strided", "sparse_coo", "sparse_csr", "mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"];
    let name = suffix(m, "aoti_torch_layout_").trim_start_matches('_').to_owned();
    Ok(Value::new(LAYOUTS.iter().position(|l| *l == name).unwrap_or(0) as u64))
}

/// c10/core/MemoryFormat.h
fn memory_format(m: &mut Machine<'_>) -> Answer {
    const FORMATS: &[&str] = &["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"];
    let name = suffix(m, "aoti_torch_memory_format_").to_owned();
    Ok(Value::new(FORMATS.iter().position(|f| *f == name).unwrap_or(0) as u64))
}

fn element_size(m: &mut Machine<'_>) -> Answer {
    let number = m.arg(0) as i32;
    Ok(Value::new(DType::from_aten(number).and_then(|d| d.size_bytes()).unwrap_or(4)))
}

/// `(tensor, *ret)`: the value is not known, so it is a symbol.
fn item(m: &mut Machine<'_>) -> Answer {
    let len = match suffix(m, "aoti_torch_item_") {
        "bool" | "int8" | "uint8" => 1,
        "int16" | "uint16" | "float16" | "bfloat16" => 2,
        "int32" | "uint32" | "float32" => 4,
        _ => 8,
    };
    let is_integer = ["int", "uint", "bool"].iter().any(|p| suffix(m, "aoti_torch_item_").starts_with(p));
    let is_bool = suffix(m, "aoti_torch_item_") == "bool";
    let handle = m.arg(0);
    let id = m.tensor_of(handle);
    let owner = m.tensors.get(id).map_or(id, |t| t.symbols);
    let value = if is_integer {
        let guess = match (is_bool, m.host.other_items) {
            (true, false) => 1,
            (true, true) => 0,
            (false, false) => 7,
            (false, true) => 0,
        };
        symbolic(&mut m.bus.expressions, Origin::Tensor(owner, Property::Item), guess)
    } else {
        Value::ZERO
    };
    store(m, 1, len, value);
    Ok(Value::ZERO)
}

/// `(value, *ret)`; a floating-point value does not count among the integer arguments.
fn scalar_to_tensor(m: &mut Machine<'_>) -> Answer {
    let name = suffix(m, "aoti_torch_scalar_to_tensor_").to_owned();
    let number = DType::from_name(&name).and_then(|d| d.aten());
    let id = m.new_tensor(Kind::Empty);
    m.with_tensor(id, |t| {
        t.sizes = Some(Vec::new());
        t.strides = Some(Vec::new());
        t.dtype = number;
        t.device = Some(0);
    });
    give(m, usize::from(!name.starts_with("float")), id);
    Ok(Value::ZERO)
}

fn derive(m: &mut Machine<'_>, n: usize, kind: Kind) -> Answer {
    let handle = m.arg(0);
    let of = m.tensor_of(handle);
    let id = m.derive_tensor(of, kind);
    give(m, n, id);
    Ok(Value::ZERO)
}

fn new_uninitialized(m: &mut Machine<'_>) -> Answer {
    let id = m.new_tensor(Kind::Empty);
    give(m, 0, id);
    Ok(Value::ZERO)
}

/// `(from, to)`: the second handle becomes the first tensor.
fn assign(m: &mut Machine<'_>) -> Answer {
    let (from, to) = (m.arg(0), m.arg(1));
    let (from, to) = (m.tensor_of(from), m.tensor_of(to));
    if let Some(source) = m.tensors.get(from).cloned() {
        m.with_tensor(to, |t| {
            t.sizes = source.sizes;
            t.strides = source.strides;
            t.dtype = source.dtype;
            t.device = source.device;
            t.symbols = source.symbols;
        });
    }
    Ok(Value::ZERO)
}

/// `(ndim, *sizes, *strides, dtype, device_type, device_index, *ret)`
fn empty_strided(m: &mut Machine<'_>, is_pinned: bool) -> Answer {
    let (rank, sizes, strides) = (m.arg(0), m.arg(1), m.arg(2));
    let (dtype, device) = (m.arg(3) as i32, m.arg(4) as i32);
    let (sizes, strides) = (m.read_array(sizes, rank), m.read_array(strides, rank));
    let id = m.new_tensor(Kind::Empty);
    m.with_tensor(id, |t| {
        t.sizes = Some(sizes);
        t.strides = Some(strides);
        t.dtype = Some(dtype);
        t.device = Some(device);
        t.is_pinned = is_pinned;
    });
    give(m, 6, id);
    Ok(Value::ZERO)
}

/// `(*data, ndim, *sizes, *strides, storage_offset, dtype, device_type, device_index, *ret, …)`: a constant.
fn from_blob(m: &mut Machine<'_>) -> Answer {
    let (data, rank, sizes, strides) = (m.arg(0), m.arg(1), m.arg(2), m.arg(3));
    let (offset, dtype, device) = (m.argument(4), m.arg(5) as i32, m.arg(6) as i32);
    let (sizes, strides) = (m.read_array(sizes, rank), m.read_array(strides, rank));
    let number = m.host.constants;
    m.host.constants = number.saturating_add(1);
    let id = m.new_tensor(Kind::Constant(number));
    m.with_tensor(id, |t| {
        t.sizes = Some(sizes);
        t.strides = Some(strides);
        t.dtype = Some(dtype);
        t.device = Some(device);
        t.offset = offset;
    });
    m.host.blobs.push((id, data));
    give(m, 8, id);
    Ok(Value::ZERO)
}

/// `(self, ndim, *sizes, *strides, storage_offset, *ret)`
fn reinterpret(m: &mut Machine<'_>) -> Answer {
    let (handle, rank, sizes, strides, offset) = (m.arg(0), m.arg(1), m.arg(2), m.arg(3), m.argument(4));
    let of = m.tensor_of(handle);
    let (sizes, strides) = (m.read_array(sizes, rank), m.read_array(strides, rank));
    let id = m.derive_tensor(of, Kind::View);
    m.with_tensor(id, |t| {
        t.sizes = Some(sizes);
        t.strides = Some(strides);
        t.offset = offset;
    });
    give(m, 5, id);
    Ok(Value::ZERO)
}

/// `(self, *sizes, *strides, *ret)`: the rank is not passed, so the shape stays unknown.
fn as_strided(m: &mut Machine<'_>) -> Answer {
    let handle = m.arg(0);
    let of = m.tensor_of(handle);
    let id = m.derive_tensor(of, Kind::View);
    m.with_tensor(id, |t| {
        t.sizes = None;
        t.strides = None;
        t.symbols = id;
    });
    give(m, 3, id);
    Ok(Value::ZERO)
}

fn delete(m: &mut Machine<'_>) -> Answer {
    let handle = m.arg(0);
    if let Some(id) = m.tensors.id_of(handle) {
        m.recorder.add(Record::Release(id));
    }
    Ok(Value::ZERO)
}

fn in_place(m: &mut Machine<'_>) -> Answer {
    let name = m.import_name().to_owned();
    let arguments = (0..2).map(|n| m.argument(n)).collect();
    m.recorder.add(Record::Operator { name, arguments });
    Ok(Value::ZERO)
}

fn check(m: &mut Machine<'_>) -> Answer {
    let condition = m.argument(0);
    if condition.bits & 1 != 0 {
        return Ok(Value::ZERO);
    }
    let text = m.arg(4);
    let text = m.bus.memory.cstr(text, crate::limits::SHOWN_TEXT_BYTES);
    Err(Exit::Throw(String::from_utf8_lossy(&text).into_owned()))
}

/// `(executor, node index, number of ints, *ints, number of tensors, *tensors)`; results are tensors among the
/// arguments that were made uninitialised or empty before.
fn proxy_executor(m: &mut Machine<'_>) -> Answer {
    let (number, count, integers) = (m.arg(1) as i32, m.arg(2), m.arg(3));
    let (tensor_count, tensors) = (m.arg(4), m.arg(5));
    let integers = m.read_array(integers, count);
    let handles = m.read_array(tensors, tensor_count);
    let tensors = handles.into_iter().map(|h| m.tensor_of(h.bits)).collect();
    m.recorder.add(Record::Custom { number: i64::from(number), integers, tensors });
    Ok(Value::ZERO)
}

/// Any other shim is an operator: its results are tensors of unknown sizes.
fn operator(m: &mut Machine<'_>) -> Answer {
    let name = m.import_name().to_owned();
    let signature = signature(&name).and_then(|signature| {
        let mut words = signature.split(' ');
        let count: usize = words.next()?.parse().ok()?;
        let outs: Vec<usize> = words.next().unwrap_or("").split(',').filter_map(|n| n.parse().ok()).collect();
        Some((count, outs))
    });
    let count = signature.as_ref().map_or(m.cpu.register_arguments(), |s| s.0.min(32));
    let arguments: Vec<Value> = (0..count).map(|n| m.argument(n)).collect();
    let outs = match signature {
        Some((_, outs)) => outs,
        None if name.ends_with("_out") || name.ends_with('_') => Vec::new(),
        None => {
            // not in the table: results are written through pointers into the stack, which come last
            *m.host.unmodelled.entry(name.clone()).or_insert(0) += 1;
            let is_slot = |v: &Value| layout::STACK.contains(&v.bits);
            arguments.iter().rposition(is_slot).into_iter().collect()
        }
    };
    m.recorder.add(Record::Operator { name: name.clone(), arguments });
    let device = ["cpu", "cuda", "xpu", "mps"]
        .into_iter()
        .find(|d| name.strip_prefix("aoti_torch_").is_some_and(|r| r.starts_with(d)))
        .and_then(|d| DeviceKind::from_name(d).aten());
    for n in outs {
        let id = m.new_tensor(Kind::Result { operator: name.clone() });
        m.with_tensor(id, |t| t.device = device);
        give(m, n, id);
    }
    Ok(Value::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_signatures_is_found() {
        let rows = include_str!("shim_signatures.txt").lines().filter(|line| line.starts_with("aoti_"));
        let count = rows.clone().inspect(|row| {
            let (name, rest) = row.split_once(' ').unwrap();
            assert_eq!(signature(name), Some(rest), "{row}");
        });
        assert_eq!(count.count(), 614);
        for name in ["", "a", "aoti_torch_aten_ama", "aoti_torch_aten_amaxx", "zzz"] {
            assert_eq!(signature(name), None, "{name}");
        }
    }
}
