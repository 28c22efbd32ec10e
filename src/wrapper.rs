//! Generated C++ wrapper source: the model's constructor, its input checks, `run_impl` and the build commands.
//!
//! The source is a claim: a library can have been built from another one. It is machine-made, one statement per line,
//! and is read by line patterns, once, from front to back (format reference, section 5).

mod blocks;
pub mod checks;
pub mod comments;
pub mod constructor;
mod dating;
pub mod expression;
mod interface;
mod kernels;
pub mod literal;
pub mod run;
mod text;
mod triton;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Dated, Kernel};
use blocks::{Blocks, Kind};

/// What a wrapper source says.
#[derive(Debug)]
pub struct WrapperSource {
    /// counts, names, constants, call spec
    pub constructor: constructor::Constructor,
    /// input checks and their switch
    pub checks: checks::InputChecks,
    /// bindings, outputs, calls
    pub run: run::Run,
    /// kernels with their launch sites
    pub kernels: Vec<Kernel>,
    /// build commands, each once
    pub commands: Vec<comments::BuildCommand>,
    /// features that narrow the torch release
    pub dating: Vec<Dated>,
    /// word for the device in the first include (`aoti_include/cuda.h`, 2.7+)
    pub included_device: Option<String>,
    /// word for the device of kernels class or Triton text, and its line
    pub kernels_device: Option<(String, usize)>,
    /// kernels are ROCm's, although their device is called `cuda`
    pub is_rocm: bool,
    /// compute capability of the compile device, as Triton's text has it
    pub compute_capability: Option<String>,
    /// `_const_run_impl` does something: constants are folded at run time
    pub folds_constants: bool,
    /// forms of the launch helpers, for dating
    kernel_forms: Vec<(&'static str, usize)>,
}

/// Reads a wrapper, and with it the kernel source where that is a file of its own (2.7+).
///
/// # Errors
/// [`crate::error::ErrorKind::NotAoti`] when there is no model constructor in it, `Damaged` when the constructor has no
/// counts, `Limit` for a source longer than [`limits::SOURCE_BYTES`], or with more of anything than [`limits::KERNELS`].
pub fn read(source: &[u8], kernel_source: Option<&[u8]>) -> Result<WrapperSource> {
    let longest = source.len().max(kernel_source.map_or(0, <[u8]>::len));
    if longest as u64 > limits::SOURCE_BYTES {
        return Err(Error::limit(format!("{longest} bytes of source, more than {}", limits::SOURCE_BYTES)));
    }
    let text = crate::source::text(source);
    let blocks = Blocks::split(&text)?;
    let constructor = blocks.list.iter().rfind(|b| b.kind == Kind::Constructor).ok_or_else(|| {
        Error::new(crate::error::ErrorKind::NotAoti, "no constructor of an AOTInductor model in this source")
    })?;
    let constructor = constructor::read(&blocks, constructor)?;

    let mut kernels = kernels::Kernels::default();
    let kernel_text = kernel_source.map(crate::source::text);
    if let Some(text) = &kernel_text {
        declare_kernels(&Blocks::split(text)?, &mut kernels);
    }
    declare_kernels(&blocks, &mut kernels);

    let mut checks = checks::InputChecks::default();
    let mut commands = Vec::new();
    let mut reader = run::Reader::new(&mut kernels);
    let mut folds_constants = false;
    for block in &blocks.list {
        match &block.kind {
            Kind::Checks => checks.read_checks(&blocks, block),
            Kind::Gate => checks.read_gate(&blocks, block),
            Kind::Run => reader.read(&blocks, block),
            Kind::BuildCommand => comments::read(&blocks, block, &mut commands),
            _ => {}
        }
    }
    let run = reader.finish();
    // kernels of the folding part run before everything else, on constants alone
    let mut folding = run::Reader::new(&mut kernels);
    for block in blocks.list.iter().filter(|b| b.kind == Kind::ConstRun) {
        folding.read(&blocks, block);
        folds_constants |= blocks.lines(block).any(|line| line.text.contains("output_handles["));
    }
    let _ = folding.finish();
    // some calls would pass for all of them
    if let Some(what) = kernels.cut.or(run.cut) {
        return Err(Error::limit(format!("more than {} {what}", limits::KERNELS)));
    }

    let included = memchr::memmem::find(blocks.head().as_bytes(), b"/aoti_include/")
        .and_then(|at| blocks.head().get(at..))
        .or_else(|| text.split_once("/aoti_include/").map(|(_, rest)| rest));
    let included_device =
        included.map(|rest| text::word_at_start(rest.trim_start_matches("/aoti_include/")).to_owned());
    let mut wrapper = WrapperSource {
        constructor,
        checks,
        run,
        commands,
        dating: Vec::new(),
        included_device,
        kernels_device: kernels.device.clone(),
        is_rocm: kernels.is_rocm,
        compute_capability: kernels.compute_capability.clone(),
        folds_constants,
        kernel_forms: kernels.forms.clone(),
        kernels: kernels.into_list(),
    };
    wrapper.dating = dating::features(&wrapper, blocks.generated());
    Ok(wrapper)
}

/// Everything that names a kernel, before the calls are read: helpers may stand behind them.
fn declare_kernels(blocks: &Blocks, kernels: &mut kernels::Kernels) {
    for block in &blocks.list {
        match &block.kind {
            Kind::KernelsClass => kernels.read_class(blocks, block),
            Kind::CpuKernel(name) => kernels.read_cpu(blocks, block, name),
            Kind::LaunchHelper(name) => kernels.read_helper(blocks, block, name),
            Kind::MetalHandle(name) => kernels.metal_symbol(blocks, block, name),
            _ => {}
        }
    }
}

impl WrapperSource {
    /// True when the symbols of sizes are `s0`, `s1`, … in sequence, as up to 2.7 (two at least, or the proof is thin).
    fn symbols_are_counted(&self) -> bool {
        let mut numbers: Vec<u32> = self
            .run
            .positions
            .values()
            .filter_map(|(expression, _)| match expression {
                crate::model::Expr::Symbol(name) => name.strip_prefix('s')?.parse().ok(),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len() > 1 && (0u32..).zip(&numbers).all(|(i, n)| i == *n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Dim, Interface, Relation, TensorSpec};

    /// A wrapper with the given counts, functions before `run_impl`, and body of it.
    fn interface(counts: (usize, usize, usize), functions: &str, body: &str) -> Interface {
        let (inputs, outputs, constants) = counts;
        let names: String = (0..constants)
            .map(|i| {
                format!(
                    "    constants_info_[{i}].name = \"w{i}\";\n    constants_info_[{i}].dtype = static_cast<int32_t>(at::kHalf);\n    constants_info_[{i}].shape = {{4}};\n    constants_info_[{i}].stride = {{1}};\n"
                )
            })
            .collect();
        let body: String = body.lines().map(|line| format!("    {}\n", line.trim())).collect();
        let source = format!(
            "AOTInductorModel::AOTInductorModel(const std::string& device_str)\n    : AOTInductorModelBase({inputs}, {outputs}, {constants}, device_str, cubin_dir) {{\n{names}}}\n{functions}\nvoid AOTInductorModel::run_impl(\n    int x\n) {{\n{body}}} // AOTInductorModel::run_impl\n"
        );
        read(source.as_bytes(), None).map(|read| read.to_interface("w.cpp")).unwrap_or_default()
    }

    fn shown(tensor: Option<&TensorSpec>) -> String {
        let dims = |list: &Option<Vec<Option<Dim>>>| -> String {
            let one = |d: &Option<Dim>| d.as_ref().map_or("?".to_owned(), Dim::to_string);
            list.as_ref().map_or("?".to_owned(), |l| l.iter().map(one).collect::<Vec<_>>().join(", "))
        };
        let Some(t) = tensor else { return "none".to_owned() };
        let dtype = t.dtype.as_ref().map_or("?", |d| d.name());
        let device = t.device.as_ref().map_or("?".to_owned(), ToString::to_string);
        let alias = t.aliases.as_deref().unwrap_or("own");
        format!("{dtype} [{}] [{}] {device} {alias}", dims(&t.shape), dims(&t.stride))
    }

    #[test]
    fn cuda_of_2_4_launches_inline() {
        let class = "class AOTInductorModelKernels : public AOTInductorModelKernelsBase {\n  public:\n    CUfunction triton_poi_fused_add_0{nullptr};\n};\n";
        let body = r#"auto arg0_1 = std::move(inputs[0]);
            auto w0 = *tensor_handle_to_tensor_pointer(constants_->at(0));
            auto arg0_1_size = arg0_1.sizes();
            auto s0 = arg0_1_size[0];
            at::cuda::CUDAStreamGuard stream_guard(at::cuda::getStreamFromExternal(stream, this->device_idx_));
            at::Tensor buf0 = at::detail::empty_strided_cuda({s0, 4L}, {4L, 1L}, at::kFloat, c10::DeviceType::CUDA);
            // Source Nodes: [add], Original ATen: [aten.add]
            auto triton_poi_fused_add_0_xnumel = 4L*s0;
            if (kernels.triton_poi_fused_add_0 == nullptr) {
                kernels.triton_poi_fused_add_0 = loadKernel("/b/c1.cubin", "triton_", 512, this->cubin_dir_);
            }
            CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(arg0_1.data_ptr());
            CUdeviceptr var_1 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());
            auto var_2 = triton_poi_fused_add_0_xnumel;
            void* kernel_args_var_0[] = {&var_0, &var_1, &var_2};
            Grid triton_poi_fused_add_0_grid_0 = Grid(c10::div_floor_integer((127L + (4L*s0)), 128L), 1L, 1L);
            launchKernel(kernels.triton_poi_fused_add_0, triton_poi_fused_add_0_grid_0.grid_x, triton_poi_fused_add_0_grid_0.grid_y, triton_poi_fused_add_0_grid_0.grid_z, 4, 512, kernel_args_var_0, stream);
            output_handles[0] = reinterpret_cast<AtenTensorHandle>(new at::Tensor(buf0));
            output_handles[1] = reinterpret_cast<AtenTensorHandle>(new at::Tensor(std::move(w0.clone())));"#;
        let found = interface((1, 2, 1), class, body);
        assert_eq!(found.device.map(|d| d.to_string()).as_deref(), Some("cuda"));
        assert_eq!(shown(found.outputs.first()), "float32 [s0, 4] [4, 1] cuda own");
        assert_eq!(shown(found.outputs.get(1)), "float16 [4] [1] ? own");
        assert!(found.operators.is_empty());
        let kernel = found.kernels.first().cloned();
        let kernel = kernel.unwrap_or_else(|| Kernel::new("none", crate::model::KernelKind::Extern));
        assert_eq!((kernel.file.as_deref(), kernel.symbol.as_deref()), (Some("c1.cubin"), Some("triton_")));
        assert_eq!((kernel.num_warps, kernel.shared_bytes), (Some(4), Some(512)));
        assert_eq!(kernel.source_ops, ["aten.add"]);
        let launch = kernel
            .launches
            .first()
            .map(|l| (l.arguments.join(" "), l.threads, l.grid[0].as_ref().map(ToString::to_string)));
        assert_eq!(launch, Some(("arg0_1 buf0 4*s0".into(), Some(128), Some("(4*s0 + 127)//128".into()))));
    }

    #[test]
    fn handles_of_the_abi_mode_are_followed() {
        let body = "auto arg0_1 = std::move(inputs[0]);
            int64_t* arg0_1_size;
            AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(arg0_1, &arg0_1_size));
            auto s0 = arg0_1_size[0];
            int64_t int_array_0[] = {s0, 16L};
            int64_t int_array_1[] = {16L, 1L};
            AtenTensorHandle buf0_handle;
            AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_int8, cached_torch_device_type_cpu, 0, &buf0_handle));
            RAIIAtenTensorHandle buf0(buf0_handle);
            int64_t int_array_2[] = {16L*s0, };
            AtenTensorHandle tmp_tensor_handle_0;
            AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch__reinterpret_tensor(buf0, 1, int_array_2, int_array_1, 0L, &tmp_tensor_handle_0));
            RAIIAtenTensorHandle tmp_tensor_handle_0_raii(tmp_tensor_handle_0);
            RAIIAtenTensorHandle scalar_to_tensor_0 = scalar_to_tensor_handle(s0);
            output_handles[0] = buf0.release();
            output_handles[1] = tmp_tensor_handle_0_raii.release();
            output_handles[2] = scalar_to_tensor_0.release();
            AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(output_handles[0], &output_handles[3]));
            output_handles[4] = arg0_1.release();";
        let found = interface((1, 5, 0), "", body);
        let all: Vec<String> = found.outputs.iter().map(|o| shown(Some(o))).collect();
        assert_eq!(
            all,
            [
                "int8 [s0, 16] [16, 1] cpu own",
                "int8 [16*s0] [16, 1] cpu own",
                "int64 [] [] cpu own",
                "int8 [s0, 16] [16, 1] cpu own",
                "? [?] [?] ? inputs[0]",
            ]
        );
    }

    #[test]
    fn dims_are_solved_unified_or_left_open() {
        let checks = "AOTI_NOINLINE static void check_input_0(\n    AtenTensorHandle* input_handles\n) {\n    int32_t a_expected_dtype = aoti_torch_dtype_bfloat16();\n        ss << \"input_handles[0]: unmatched dtype, \"\n    if (a_size[0] < 8) {\n        ss << \"input_handles[0]: dim value is too small at 0, \"\n    if (a_size[1] > 64) {\n        ss << \"input_handles[0]: dim value is too large at 1, \"\n    if (7 != a_size[2]) {\n        ss << \"input_handles[0]: unmatched dim value at 2, \"\n    if (1 != a_stride[2]) {\n        ss << \"input_handles[0]: unmatched stride value at 2, \"\n}\n";
        let body = "auto a = std::move(inputs[0]);
            auto a_size = a.sizes();
            int64_t a_size_0 = a_size[0];
            int64_t s5 = c10::div_floor_integer(a_size_0, 4L);
            AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_int64(inputs[1], &s9));
            int64_t s6 = s5;
            auto buf0 = at::empty_strided({s6, s9}, {s9, 1L}, at::TensorOptions(c10::Device(at::kCPU)).dtype(at::kLong));
            output_handles[0] = buf0.release();";
        let found = interface((2, 1, 0), checks, body);
        assert_eq!(shown(found.inputs.first()), "bfloat16 [4*s5, d0, 7] [?, ?, 1] ? own");
        assert_eq!(shown(found.inputs.get(1)), "int64 [] [] ? own");
        assert_eq!(shown(found.outputs.first()), "int64 [s5, s9] [s9, 1] cpu own");
        let open: Vec<&Relation> = found.relations.iter().collect();
        assert_eq!(open.iter().map(|r| r.subject.as_str()).collect::<Vec<_>>(), ["inputs[0].shape[1]"]);
    }

    #[test]
    fn dims_have_a_border() {
        let of = |dims: usize| {
            let sizes = vec!["2L"; dims].join(", ");
            let body = format!(
                "auto buf0 = at::empty_strided({{{sizes}}}, {{{sizes}}}, at::TensorOptions(c10::Device(at::kCPU)).dtype(at::kLong));\noutput_handles[0] = buf0.release();"
            );
            interface((0, 1, 0), "", &body).outputs[0].shape.as_ref().map(Vec::len)
        };
        assert_eq!(of(limits::RANK), Some(limits::RANK));
        assert_eq!(of(limits::RANK + 1), None);
    }

    #[test]
    fn a_source_is_refused_beyond_the_borders_of_its_calls() {
        let calls = "    at::mm(a);\n".repeat(limits::KERNELS + 1);
        let source = format!(
            "AOTInductorModel::AOTInductorModel(x)\n    : AOTInductorModelBase(1, 1, 0, x) {{\n}}\nvoid AOTInductorModel::run_impl(\n    int x\n) {{\n{calls}}}\n"
        );
        let refused = read(source.as_bytes(), None).unwrap_err();
        assert!(refused.message().contains("more than 65536 operators"), "{refused}");
    }

    #[test]
    fn sizes_that_depend_on_data_are_symbols() {
        let body = "auto a = std::move(inputs[0]);
            AtenTensorHandle buf0_handle;
            AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_nonzero(a, &buf0_handle));
            RAIIAtenTensorHandle buf0(buf0_handle);
            auto u0 = buf0.size(0);
            int64_t u1_raw;
            AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_int64(buf0, &u1_raw));
            auto u1 = u1_raw;
            if (!(u1 <= 8L)) { throw std::runtime_error(\"Expected u1 <= 8 but received \" + std::to_string(u1)); }
            if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(buf0, {u0, 2L}, {2L, 1L}, \"torch.ops.aten.nonzero.default\", cached_torch_dtype_int64, \"torch.int64\"); }
            output_handles[0] = buf0.release();";
        let found = interface((1, 1, 0), "", body);
        assert_eq!(shown(found.outputs.first()), "int64 [u0, 2] [2, 1] ? own");
        assert_eq!(found.operators.iter().map(|o| o.name.as_str()).collect::<Vec<_>>(), ["aoti_torch_cpu_nonzero"]);
    }

    #[test]
    fn helpers_behind_the_calls_give_file_and_grid() {
        let helper = "template <typename a_type_>\nstatic __attribute__((noinline)) void call_k(\n    const a_type_& in_ptr0,\n    int64_t xnumel,\n    int32_t device_idx_,\n    sycl::queue* stream_,\n    kernels_type_& kernels_,\n    const std::optional<std::string>& cubin_dir_ = std::nullopt\n){\n    /*\n    'device': DeviceProperties(type='xpu', index=0, cc={}, warp_size=16)\n    tl.device_assert((tmp0 < ks0), \"index out of bounds: 0 <= tmp0 < ks0\")\n    */\n    uint32_t grid_0 = ((xnumel + (64 - 1)) / (64));\n    uint32_t grid_1 = 1;\n    uint32_t grid_2 = 1;\n    if (kernels_.k == nullptr) {\n        kernels_.k = loadKernel(__k_start, __k_end, \"k\", 0, true);\n    }\n    launchKernel(kernels_.k, grid_0, grid_1, grid_2, 2, 0, kernel_args_, stream_);\n}\n";
        let body = "auto a = std::move(inputs[0]);
            auto a_size = a.sizes();
            int64_t s3 = a_size[0];
            int64_t k_xnumel = 8L*s3;
            call_k(a, k_xnumel, this->device_idx_, stream, kernels, this->cubin_dir_);";
        let found = interface((1, 0, 0), helper, body);
        assert_eq!(found.device.map(|d| d.to_string()).as_deref(), Some("xpu"));
        let kernel = found.kernels.first().cloned();
        let kernel = kernel.unwrap_or_else(|| Kernel::new("none", crate::model::KernelKind::Extern));
        assert_eq!((kernel.symbol.as_deref(), kernel.present, kernel.parameters.len()), (Some("k"), Some(true), 2));
        assert_eq!(kernel.assertions, ["index out of bounds: 0 <= tmp0 < ks0"]);
        let launch = kernel
            .launches
            .first()
            .map(|l| (l.arguments.join(" "), l.threads, l.grid[0].as_ref().map(ToString::to_string)));
        assert_eq!(launch, Some(("a 8*s3".into(), Some(32), Some("(8*s3 + 63)//64".into()))));
    }

    #[test]
    fn what_is_no_wrapper_is_refused() {
        for source in ["", "int main() {}", "\0\0", "class AOTInductorModelBase(1, 2, 3)"] {
            assert!(read(source.as_bytes(), None).is_err());
        }
        let cut = "AOTInductorModel::AOTInductorModel(x)\n    : AOTInductorModelBase(1, 2";
        assert!(read(cut.as_bytes(), None).is_err());
        let lying = "AOTInductorModel::AOTInductorModel(x)\n    : AOTInductorModelBase(99999999999, 1, 1, x) {\n}\n";
        assert!(read(lying.as_bytes(), None).is_err());
    }

    #[test]
    fn source_has_a_border() {
        use crate::error::ErrorKind;
        // NULs alone: at the border they are looked at
        let of = |len: u64| {
            let source = vec![0; usize::try_from(len).unwrap()];
            (read(&source, None).unwrap_err(), read(b"", Some(&source)).unwrap_err())
        };
        let (source, kernels) = of(limits::SOURCE_BYTES);
        assert_eq!((source.kind(), kernels.kind()), (ErrorKind::NotAoti, ErrorKind::NotAoti));
        let (source, kernels) = of(limits::SOURCE_BYTES + 1);
        assert_eq!((source.kind(), kernels.kind()), (ErrorKind::Limit, ErrorKind::Limit));
        assert!(source.message().contains("more than 67108864"), "{source}");
    }
}
