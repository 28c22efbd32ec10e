//! Fake tensors: what is known about each handle that the library holds. No tensor has elements.

use super::layout;
use super::machine::Machine;
use super::value::{Origin, Property, Value};

/// Number of a tensor.
pub type TensorId = u32;

/// Where a tensor came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// handed in by us
    Input(usize),
    /// made over weights while the model was created; in table order
    Constant(usize),
    /// allocated by the model
    Empty,
    /// other sizes over the memory of its base
    View,
    /// another handle, or a copy, of its base
    Alias {
        /// memory of its own
        is_copy: bool,
    },
    /// made by an operator
    Result {
        /// name of the shim
        operator: String,
    },
    /// a handle that we never gave out
    Stray,
}

/// A tensor.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// where it came from
    pub kind: Kind,
    /// sizes; `None` until a check states them: then each is a symbol
    pub sizes: Option<Vec<Value>>,
    /// strides in elements; likewise
    pub strides: Option<Vec<Value>>,
    /// ATen's number of the element type; `None`: a symbol
    pub dtype: Option<i32>,
    /// ATen's number of the device type; `None`: a symbol
    pub device: Option<i32>,
    /// tensor whose memory it uses, or that it was copied from
    pub base: Option<TensorId>,
    /// tensor whose symbols stand for its unknown properties
    pub symbols: TensorId,
    /// what `data_ptr` gives
    pub data: u64,
    /// elements from the start of the storage
    pub offset: Value,
    /// bytes asked for in excess of the shape, or pinned memory, are not modelled: kept for reports
    pub is_pinned: bool,
    sizes_ready: bool,
    strides_ready: bool,
}

/// All tensors of a run.
#[derive(Debug, Default)]
pub struct Tensors {
    all: Vec<Tensor>,
    /// ATen's number of the model's device type: the first guess for inputs
    pub device: i32,
}

/// Bytes for each handle; what lies behind it in them.
const SLOT: u64 = 1024;
/// Number of the tensor whose symbols stand for unknown sizes and strides, plus one.
const OWNER: u64 = 0x80;
const SIZES: u64 = 0x100;
const STRIDES: u64 = 0x280;
/// Dims that an array has room for. torch allows 64, Inductor's own limit is far below.
const DIMS: usize = 48;
/// Address space of each tensor's data.
const DATA: u64 = 1 << 24;

impl Tensors {
    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// Forgets those made since; their handles are given out again.
    pub fn truncate(&mut self, len: usize) {
        self.all.truncate(len);
    }
    /// A tensor by number.
    pub fn get(&self, id: TensorId) -> Option<&Tensor> {
        self.all.get(id as usize)
    }
    /// The tensor of a handle.
    pub fn id_of(&self, handle: u64) -> Option<TensorId> {
        let distance = handle.checked_sub(layout::TENSORS.start)?;
        let id = u32::try_from(distance / SLOT).ok()?;
        (distance % SLOT == 0 && (id as usize) < self.all.len()).then_some(id)
    }
    /// The tensor whose data an address lies in.
    pub fn id_of_data(&self, address: u64) -> Option<TensorId> {
        let distance = address.checked_sub(layout::TENSOR_DATA.start)?;
        let id = u32::try_from(distance / DATA).ok()?;
        ((id as usize) < self.all.len()).then_some(id)
    }
    /// The handle of a tensor.
    pub fn handle(id: TensorId) -> u64 {
        layout::TENSORS.start + u64::from(id) * SLOT
    }
    /// The tensor whose memory a tensor uses: itself, unless it is a view or another handle.
    pub fn owner(&self, mut id: TensorId) -> TensorId {
        while let Some(tensor) = self.get(id) {
            match tensor.base {
                Some(base) if base < id && tensor.kind != (Kind::Alias { is_copy: true }) => id = base,
                _ => break,
            }
        }
        id
    }
    /// The tensor at the end of the chain of bases, and whether memory is shared all the way.
    pub fn root(&self, id: TensorId) -> (TensorId, bool) {
        let (mut id, mut shares) = (id, true);
        while let Some(tensor) = self.get(id) {
            shares &= tensor.kind != Kind::Alias { is_copy: true };
            match tensor.base {
                Some(base) if base < id => id = base,
                _ => break,
            }
        }
        (id, shares)
    }
}

/// For an address in a tensor's array of sizes or strides: where the number of its owner stands, and which property
/// it is.
pub fn promised_word(address: u64) -> Option<(u64, Property)> {
    let distance = address.checked_sub(layout::TENSORS.start).filter(|_| layout::TENSORS.contains(&address))?;
    let (slot, offset) = (address - distance % SLOT, distance % SLOT);
    let dim = |start: u64| {
        let bytes = offset.checked_sub(start).filter(|bytes| bytes % 8 == 0)?;
        u8::try_from(bytes / 8).ok().filter(|dim| usize::from(*dim) < DIMS)
    };
    let property = match dim(STRIDES) {
        Some(dim) => Property::Stride(dim),
        None => dim(SIZES).map(Property::Size)?,
    };
    Some((slot + OWNER, property))
}

/// Initial values of symbols. Sizes are distinct, above any usual lower bound, and no powers of two.
pub fn first_guess(property: Property, device: i32) -> i64 {
    match property {
        Property::Size(dim) => 13 + 2 * i64::from(dim),
        Property::Stride(_) => 3,
        Property::DType => 6,
        Property::Device => i64::from(device),
        Property::Rank => 2,
        Property::Elements | Property::StorageBytes => 4096,
        Property::Item => 1,
    }
}

impl Machine<'_> {
    /// A new tensor of which only the kind is known.
    pub fn new_tensor(&mut self, kind: Kind) -> TensorId {
        let id = TensorId::try_from(self.tensors.len()).unwrap_or(TensorId::MAX);
        self.tensors.all.push(Tensor {
            kind,
            sizes: None,
            strides: None,
            dtype: None,
            device: None,
            base: None,
            symbols: id,
            data: layout::TENSOR_DATA.start + u64::from(id) * DATA,
            offset: Value::ZERO,
            is_pinned: false,
            sizes_ready: false,
            strides_ready: false,
        });
        id
    }
    /// Changes a tensor.
    pub fn with_tensor(&mut self, id: TensorId, change: impl FnOnce(&mut Tensor)) {
        if let Some(tensor) = self.tensors.all.get_mut(id as usize) {
            change(tensor);
        }
    }
    /// The tensor of a handle; one that we never gave out becomes a stray tensor.
    pub fn tensor_of(&mut self, handle: u64) -> TensorId {
        match self.tensors.id_of(handle) {
            Some(id) => id,
            None => match self.host.impl_at_handle(&mut self.bus, handle) {
                Some(id) => id,
                None => self.new_tensor(Kind::Stray),
            },
        }
    }
    /// A tensor over the same memory, or a copy, with the same properties.
    pub fn derive_tensor(&mut self, of: TensorId, kind: Kind) -> TensorId {
        let Some(source) = self.tensors.get(of).cloned() else { return self.new_tensor(Kind::Stray) };
        let id = self.new_tensor(kind);
        let is_copy = self.tensors.get(id).is_some_and(|t| t.kind == Kind::Alias { is_copy: true });
        self.with_tensor(id, |t| {
            t.sizes = source.sizes;
            t.strides = source.strides;
            t.dtype = source.dtype;
            t.device = source.device;
            t.base = Some(of);
            t.symbols = source.symbols;
            t.offset = source.offset;
            if !is_copy {
                t.data = source.data;
            }
        });
        id
    }
    /// A property as a symbol.
    pub fn property(&mut self, id: TensorId, property: Property) -> Value {
        let owner = self.tensors.get(id).map_or(id, |t| t.symbols);
        let guess = first_guess(property, self.tensors.device);
        super::explore::symbolic(&mut self.bus.expressions, Origin::Tensor(owner, property), guess)
    }
    /// Element type.
    pub fn tensor_dtype(&mut self, id: TensorId) -> Value {
        match self.tensors.get(id).and_then(|t| t.dtype) {
            Some(n) => Value::new(n as u64),
            None => self.property(id, Property::DType),
        }
    }
    /// Device type.
    pub fn tensor_device(&mut self, id: TensorId) -> Value {
        match self.tensors.get(id).and_then(|t| t.device) {
            Some(n) => Value::new(n as u64),
            None => self.property(id, Property::Device),
        }
    }
    /// Number of dims.
    pub fn tensor_rank(&mut self, id: TensorId) -> Value {
        match self.tensors.get(id).and_then(|t| t.sizes.as_ref().map(Vec::len)) {
            Some(n) => Value::new(n as u64),
            None => self.property(id, Property::Rank),
        }
    }
    /// Number of elements.
    pub fn tensor_elements(&mut self, id: TensorId) -> Value {
        let Some(sizes) = self.tensors.get(id).and_then(|t| t.sizes.clone()) else {
            return self.property(id, Property::Elements);
        };
        sizes.into_iter().fold(Value::new(1), |product, size| Value {
            bits: product.bits.wrapping_mul(size.bits),
            shadow: self.bus.expressions.multiply(product, size, 8),
        })
    }
    /// Address of the array of sizes.
    pub fn sizes_array(&mut self, id: TensorId) -> u64 {
        let address = Tensors::handle(id) + SIZES;
        if self.tensors.get(id).is_some_and(|t| !t.sizes_ready) {
            self.with_tensor(id, |t| t.sizes_ready = true);
            let known = self.tensors.get(id).and_then(|t| t.sizes.clone());
            self.fill_array(id, address, known);
        }
        address
    }
    /// Address of the array of strides.
    pub fn strides_array(&mut self, id: TensorId) -> u64 {
        let address = Tensors::handle(id) + STRIDES;
        if self.tensors.get(id).is_some_and(|t| !t.strides_ready) {
            self.with_tensor(id, |t| t.strides_ready = true);
            let known = self.tensors.get(id).and_then(|t| t.strides.clone());
            self.fill_array(id, address, known);
        }
        address
    }
    fn fill_array(&mut self, id: TensorId, address: u64, known: Option<Vec<Value>>) {
        match known {
            Some(values) => {
                for (dim, value) in values.into_iter().take(DIMS).enumerate() {
                    self.bus.memory.store_for_good(address + 8 * dim as u64, 8, value);
                }
            }
            // each becomes a symbol when it is read
            None => {
                let owner = self.tensors.get(id).map_or(id, |t| t.symbols);
                let owner = Value::new(u64::from(owner) + 1);
                self.bus.memory.store_for_good(Tensors::handle(id) + OWNER, 8, owner);
                self.bus.memory.promise(address, DIMS);
            }
        }
    }
    /// `count` words of an array, with their shadows.
    pub fn read_array(&mut self, address: u64, count: u64) -> Vec<Value> {
        (0..count.min(DIMS as u64)).map(|n| self.bus.load(address.wrapping_add(8 * n), 8)).collect()
    }
}
