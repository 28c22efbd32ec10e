//! libtorch's C++ tensors, which libraries of torch 2.2 to 2.5 use directly: `at::Tensor` is a pointer to a
//! `c10::TensorImpl`. Its layout is that of the release, so what is learned this way is marked as inferred.

use super::{Row, first_argument, throw, zero};
use crate::interpret::machine::{Answer, Exit, Machine, Stop};
use crate::interpret::tensors::{Kind, TensorId, Tensors};
use crate::interpret::trace::Record;
use crate::interpret::value::{Property, Value};

pub const TABLE: &[Row] = &[
    ("_ZN5torch12aot_inductor38alloc_tensors_by_stealing_from_handlesEPP16AtenTensorOpaquem", steal),
    ("_ZN5torch12aot_inductor31tensor_handle_to_tensor_pointerEP16AtenTensorOpaque", first_argument),
    ("_ZN5torch8inductor19_reinterpret_tensorERKN2at6TensorEN3c108ArrayRefIlEES7_l", reinterpret),
    ("_ZN6caffe28TypeMeta13typeMetaDatasEv", type_meta),
    ("_ZNK3c1010TensorImpl27throw_data_ptr_access_errorEv", throw),
    ("_ZN3c106detail14torchCheckFailEPKcS2_jS2_", throw),
    ("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", throw),
    ("_ZN6caffe28TypeMeta26error_unsupported_typemetaES0_", throw),
    ("_ZN3c1019throwNullDataPtrErrorEv", throw),
    ("_ZN3c1021throwNullDataPtrErrorEv", throw),
    ("_ZN3c1021warnDeprecatedDataPtrEv", zero),
    ("_ZN3c104impl3cow15is_cow_data_ptrERKNS_7DataPtrE", zero),
    ("_ZN3c104impl3cow23materialize_cow_storageERNS_11StorageImplE", zero),
    (VIRTUAL, |_| Ok(Value::new(1))),
];

pub const PREFIXES: &[Row] = &[
    ("_ZN2at6detail17empty_strided_c", empty_strided),
    ("_ZN2at4_ops13empty_strided4call", empty_strided),
    ("_ZN2at4_ops", operator),
    ("_ZN2at", operator),
];

/// Answers every virtual function of a tensor or storage: `has_storage` is the one that matters.
const VIRTUAL: &str = "$TensorImpl virtual";

// c10/core/TensorImpl.h
const REFERENCES: u64 = 8;
const WEAK_REFERENCES: u64 = 16;
const STORAGE: u64 = 24;
/// `SizesAndStrides`: count, then five sizes and five strides inline, or a pointer.
const INLINE_DIMS: u64 = 5;

fn sizes_offset(m: &Machine<'_>) -> u64 {
    // 2.2 has one word more before it; 2.2 is also where constants are reached through this function
    let is_2_2 = m.imports.contains("_ZN5torch12aot_inductor31tensor_handle_to_tensor_pointerEP16AtenTensorOpaque")
        && m.loaded.export("AOTInductorModelContainerCreateWithDevice").is_none();
    if is_2_2 { 72 } else { 64 }
}

fn table_of_virtuals(m: &mut Machine<'_>) -> u64 {
    let table = m.allocate(8 * 64);
    let function = m.imports.address_of(VIRTUAL);
    for n in 0..64 {
        m.set_word(table + 8 * n, function);
    }
    table
}

/// The `TensorImpl` of a tensor; its handle becomes a cell that points to it.
pub fn make(m: &mut Machine<'_>, id: TensorId) -> u64 {
    let handle = Tensors::handle(id);
    if let Some(known) = m.host.impl_of.get(&handle).copied()
        && m.host.impls.get(&known) == Some(&id)
        && m.word(known + REFERENCES) != 0
    {
        m.set_word(handle, known);
        return known;
    }
    let at = m.allocate(512);
    m.host.impls.insert(at, id);
    m.host.impl_of.insert(handle, at);
    let table = table_of_virtuals(m);
    let storage = m.allocate(256);
    m.set_word(at, table);
    m.set_word(storage, table);
    for object in [at, storage] {
        // never freed: the count does not reach zero
        m.set_word(object + REFERENCES, 1 << 20);
        m.set_word(object + WEAK_REFERENCES, 1 << 20);
    }
    m.set_word(at + STORAGE, storage);
    let tensor = m.tensors.get(id).cloned();
    let (sizes, strides) = tensor.as_ref().map_or((None, None), |t| (t.sizes.clone(), t.strides.clone()));
    let rank = sizes.as_ref().map_or(INLINE_DIMS, |s| s.len() as u64);
    let base = at + sizes_offset(m);
    m.set_word(base, rank);
    let (size_at, stride_at) = if rank > INLINE_DIMS {
        let block = m.allocate(16 * rank);
        m.set_word(base + 8, block);
        (block, block + 8 * rank)
    } else {
        (base + 8, base + 8 + 8 * INLINE_DIMS)
    };
    for dim in 0..rank.min(64) {
        let n = dim as usize;
        let size = match sizes.as_ref().and_then(|s| s.get(n)) {
            Some(size) => *size,
            None => m.property(id, Property::Size(dim as u8)),
        };
        let stride = match strides.as_ref().and_then(|s| s.get(n)) {
            Some(stride) => *stride,
            None => m.property(id, Property::Stride(dim as u8)),
        };
        m.bus.store(size_at + 8 * dim, 8, size);
        m.bus.store(stride_at + 8 * dim, 8, stride);
    }
    // storage_offset_, numel_, data_type_ follow the ten inline words
    let after = base + 8 + 16 * INLINE_DIMS;
    m.set_word(after, 0);
    m.set_word(after + 8, 4096);
    m.bus.memory.write(after + 16, 2, tensor.and_then(|t| t.dtype).unwrap_or(6) as u64);
    m.set_word(handle, at);
    at
}

fn tensor_at(m: &mut Machine<'_>, reference: u64) -> TensorId {
    let at = m.word(reference);
    match m.host.impls.get(&at) {
        Some(id) => *id,
        None => m.new_tensor(Kind::Stray),
    }
}

/// Returns `std::vector<at::Tensor>` in memory.
fn steal(m: &mut Machine<'_>) -> Answer {
    let to = m.cpu.result_pointer();
    let (handles, count) = (m.arg_after_result(0), m.arg_after_result(1));
    if count > crate::limits::TENSORS as u64 {
        let what = format!("{count} tensors in one call, more than {}", crate::limits::TENSORS);
        return Err(Exit::Stop(Stop::Unreasonable(what)));
    }
    let block = m.allocate(8 * count + 8);
    for n in 0..count {
        let handle = m.word(handles.wrapping_add(8 * n));
        let id = m.tensor_of(handle);
        let tensor = make(m, id);
        m.set_word(block + 8 * n, tensor);
    }
    m.set_word(to, block);
    m.set_word(to.wrapping_add(8), block + 8 * count);
    m.set_word(to.wrapping_add(16), block + 8 * count);
    Ok(Value::new(to))
}

/// `at::Tensor empty_strided(ArrayRef sizes, ArrayRef strides, ScalarType, …)`; array references are two words.
fn empty_strided(m: &mut Machine<'_>) -> Answer {
    let to = m.cpu.result_pointer();
    let is_detail = m.import_name().starts_with("_ZN2at6detail");
    let device = if m.import_name().contains("cuda") { 1 } else { 0 };
    let (sizes, rank) = (m.arg_after_result(0), m.arg_after_result(1));
    let (strides, _) = (m.arg_after_result(2), m.arg_after_result(3));
    let dtype = m.arg_after_result(4) & 0xff;
    let (sizes, strides) = (m.read_array(sizes, rank), m.read_array(strides, rank));
    let id = m.new_tensor(Kind::Empty);
    m.with_tensor(id, |t| {
        t.sizes = Some(sizes);
        t.strides = Some(strides);
        if is_detail {
            t.dtype = Some(dtype as i32);
            t.device = Some(device);
        }
    });
    give(m, to, id)
}

fn give(m: &mut Machine<'_>, to: u64, id: TensorId) -> Answer {
    m.recorder.add(Record::Tensor(id));
    let tensor = make(m, id);
    m.set_word(to, tensor);
    Ok(Value::new(to))
}

/// `Tensor _reinterpret_tensor(const Tensor &, ArrayRef sizes, ArrayRef strides, int64_t offset)`
fn reinterpret(m: &mut Machine<'_>) -> Answer {
    let to = m.cpu.result_pointer();
    let base = m.arg_after_result(0);
    let of = tensor_at(m, base);
    let (sizes, rank, strides) = (m.arg_after_result(1), m.arg_after_result(2), m.arg_after_result(3));
    let (sizes, strides) = (m.read_array(sizes, rank), m.read_array(strides, rank));
    let id = m.derive_tensor(of, Kind::View);
    m.with_tensor(id, |t| {
        t.sizes = Some(sizes);
        t.strides = Some(strides);
    });
    give(m, to, id)
}

/// Any operator: one that writes into its last argument returns it, any other makes a tensor of unknown shape.
fn operator(m: &mut Machine<'_>) -> Answer {
    let name = m.import_name().to_owned();
    let arguments: Vec<Value> = (0..m.cpu.register_arguments()).map(|n| m.argument(n)).collect();
    m.recorder.add(Record::Operator { name: name.clone(), arguments });
    if name.contains("_out4call") || name.contains("4callERN") {
        // returns a reference to the tensor it writes; callers ignore it
        return Ok(m.argument(0));
    }
    *m.host.unmodelled.entry(name.clone()).or_insert(0) += 1;
    let to = m.cpu.result_pointer();
    if !crate::interpret::layout::STACK.contains(&to) {
        return Ok(Value::new(to));
    }
    let id = m.new_tensor(Kind::Result { operator: name });
    give(m, to, id)
}

/// An array of descriptions of element types; the item size is what is read of it.
fn type_meta(m: &mut Machine<'_>) -> Answer {
    if let Some(known) = m.host.type_meta {
        return Ok(Value::new(known));
    }
    const ENTRY: u64 = 72;
    let table = m.allocate(ENTRY * 64);
    let paused = m.bus.memory.pause_log();
    for n in 0..64u64 {
        let size = crate::model::DType::from_aten(n as i32).and_then(|d| d.size_bytes()).unwrap_or(4);
        m.set_word(table + ENTRY * n, size);
    }
    m.bus.memory.resume_log(paused);
    m.host.type_meta = Some(table);
    Ok(Value::new(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Architecture, Format};
    use crate::interpret::machine::processor_for;
    use crate::limits;
    use crate::source::Region;

    #[test]
    fn tensors_of_one_call_have_a_border() {
        // so many as are allowed take a test too much time
        let of = |count: usize| {
            let file = Vec::new();
            let mut machine =
                Machine::new(processor_for(Architecture::X86_64, Format::Elf).unwrap(), Region::whole(&file));
            machine.set_budget(limits::INSTRUCTIONS);
            let result = machine.allocate(24);
            machine.cpu.set_arguments(&mut machine.bus, &[result, 0, count as u64].map(Value::new));
            let answer = steal(&mut machine);
            let begin = machine.word(result);
            answer.map(|_| (machine.word(result + 8) - begin) / 8)
        };
        assert_eq!(of(3), Ok(3));
        let refused = of(limits::TENSORS + 1);
        let Err(Exit::Stop(Stop::Unreasonable(why))) = refused else { panic!("{refused:?}") };
        assert_eq!(why, "65537 tensors in one call, more than 65536");
    }
}
