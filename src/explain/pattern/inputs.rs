//! Wrong inputs: checks in generated code, and operators that refuse what the checks did not.
//! Texts of the checks: torch/_inductor/codegen/cpp_wrapper_cpu.py and cpp_wrapper_gpu.py, 2.4 to 2.15.

use super::{Lookup, Origin, Pattern, ROW, Rank, torch};

const CHECK: Pattern = Pattern { origin: Origin::Artifact, since: torch(4), ..ROW };

pub(super) const ROWS: &[Pattern] = &[
    Pattern {
        id: "in-count",
        class: "C07",
        literals: &["vector size to be "],
        regex: r"expected (inputs|outputs) vector size to be (\d+), but got (\d+)",
        lookup: Lookup::Count,
        sentence: "The model takes {2} {1} and the caller gave {3}.",
        fix: "Give the tensors of the call spec in flat order; Python scalars and None were baked in at export and are no inputs.",
        samples: &["RuntimeError: expected inputs vector size to be 1, but got 2"],
        ..ROW
    },
    Pattern {
        id: "chk-dtype",
        class: "C06",
        literals: &["unmatched dtype"],
        regex: r"(?:input_handles\[(\d+)\]: )?unmatched dtype(?:, expected: (\d+)\(at::k(\w+)\)(?:, but got: (\d+))?)?",
        lookup: Lookup::InputDType,
        sentence: "An input[[, inputs[{1}],]] has the wrong dtype[[: {2:dtype} was compiled]][[, {4:dtype} was given]].",
        fix: "Convert the tensor before the call, or compile for the other dtype.",
        samples: &["Error: input_handles[0]: unmatched dtype, expected: 6(at::kFloat), but got: 7"],
        ..CHECK
    },
    Pattern {
        id: "chk-dim",
        class: "C04",
        literals: &["unmatched dim value"],
        regex: r"(?:input_handles\[(\d+)\]: )?unmatched dim value at (\d+)(?:, expected: (-?\d+)(?:, but got: (-?\d+))?)?",
        lookup: Lookup::InputDim,
        sentence: "Dim {2} of an input[[, inputs[{1}],]] has the wrong size[[: {3} was compiled]][[, {4} was given]].",
        fix: "Give that size, or export again with that dim dynamic.",
        samples: &["Error: input_handles[0]: unmatched dim value at 1, expected: 10, but got: 11"],
        ..CHECK
    },
    Pattern {
        id: "chk-low",
        class: "C05",
        literals: &["dim value is too small"],
        regex: r"(?:input_handles\[(\d+)\]: )?dim value is too small at (\d+)(?:, expected it to be >= (-?\d+)(?:, but got: (-?\d+))?)?",
        lookup: Lookup::InputLower,
        sentence: "Dim {2} of an input[[, inputs[{1}],]] is below its range[[: at least {3} was compiled]][[, {4} was given]].",
        fix: "Give a larger size, or export again with a smaller minimum.",
        samples: &["input_handles[0]: dim value is too small at 0, expected it to be >= 2, but got: 1"],
        ..CHECK
    },
    Pattern {
        id: "chk-high",
        class: "C05",
        literals: &["dim value is too large"],
        regex: r"(?:input_handles\[(\d+)\]: )?dim value is too large at (\d+)(?:, expected (?:it )?to be <= (-?\d+)(?:, but got: (-?\d+))?)?",
        lookup: Lookup::InputUpper,
        sentence: "Dim {2} of an input[[, inputs[{1}],]] is above its range[[: at most {3} was compiled]][[, {4} was given]].",
        fix: "Give a smaller size, or export again with a larger maximum.",
        samples: &[
            "Error: input_handles[0]: dim value is too large at 0, expected to be <= 1024, but got: 2000",
            "dim value is too large at 0, expected to be <= 512",
        ],
        ..CHECK
    },
    Pattern {
        id: "chk-stride",
        class: "C06",
        literals: &["unmatched stride value"],
        regex: r"(?:input_handles\[(\d+)\]: )?unmatched stride value at (\d+)(?:, expected: (-?\d+)(?:, but got: (-?\d+))?)?",
        lookup: Lookup::InputStride,
        sentence: "Stride {2} of an input[[, inputs[{1}],]] is wrong[[: {3} was compiled]][[, {4} was given]].",
        fix: "Make the tensor contiguous (or channels-last) as it was compiled.",
        samples: &["Error: input_handles[0]: unmatched stride value at 0, expected: 10, but got: 1"],
        ..CHECK
    },
    Pattern {
        id: "chk-device",
        class: "C03",
        since: torch(8),
        literals: &["unmatched device type"],
        regex: r"(?:input_handles\[(\d+)\]: )?unmatched device type(?:, expected: (\d+)\((\w+)\)(?:, but got: (\d+))?)?",
        lookup: Lookup::InputDevice,
        sentence: "An input[[, inputs[{1}],]] is on the wrong device[[: {3} was compiled]][[, {4:device} was given]].",
        fix: "Move the tensor to that device before the call.",
        samples: &["Error: input_handles[0]: unmatched device type, expected: 11(cuda), but got: 0"],
        ..CHECK
    },
    Pattern {
        id: "chk-any",
        class: "C04",
        literals: &["input_handles["],
        regex: r"input_handles\[(\d+)\]:",
        lookup: Lookup::InputDim,
        sentence: "The run-time check refused inputs[{1}]; the log was cut before it said why.",
        fix: "Compare that input with what `aoti-inspect MODEL` prints, and give the whole line.",
        samples: &["Error: input_handles[3]: unmat"],
        ..CHECK
    },
    Pattern {
        id: "align-27",
        class: "C08",
        rank: Rank::Context,
        since: torch(7),
        literals: &["-bytes aligned, but it is not"],
        regex: r"Input (\d+) was compiled as (\d+)-bytes aligned, but it is not",
        lookup: Lookup::Alignment,
        sentence: "inputs[{1}] does not begin at a multiple of {2} bytes: it is copied at each call, which is slow and harmless.",
        fix: "Give a tensor that owns its storage instead of a view with an odd offset.",
        samples: &["Warning: Input 0 was compiled as 16-bytes aligned, but it is not aligned at run time. Copying"],
        ..CHECK
    },
    Pattern {
        id: "align-assert",
        class: "C08",
        literals: &["Expect the tensor to be "],
        regex: r"Expect the tensor to be (\d+) bytes aligned\.(?: Fail due to storage_offset=(\d+))?",
        lookup: Lookup::Alignment,
        sentence: "A tensor does not begin at a multiple of {1} bytes[[: its storage offset is {2}]].",
        fix: "Give a copy (`clone()`) instead of a view with an odd offset.",
        samples: &["AssertionError: Expect the tensor to be 16 bytes aligned. Fail due to storage_offset=1 itemsize=4"],
        ..CHECK
    },
    Pattern {
        id: "align-26",
        class: "C08",
        since: torch(6),
        until: torch(6),
        literals: &[" is not aligned to "],
        regex: r"(\w+) is not aligned to (\d+) bytes",
        lookup: Lookup::Alignment,
        sentence: "The tensor {1} does not begin at a multiple of {2} bytes; torch 2.6 refuses that.",
        fix: "Give a copy (`clone()`) of the view, or compile with torch 2.7 or newer, which copies by itself.",
        samples: &["Error: arg0_1 is not aligned to 16 bytes"],
        ..CHECK
    },
    Pattern {
        id: "size-stride",
        class: "C04",
        literals: &["expected size "],
        regex: r"expected size (\d+)==(\d+), stride (\d+)==(\d+) at dim=(\d+)",
        lookup: Lookup::OperatorShape,
        sentence: "Dim {5} of a tensor has size {1} and stride {3} where {2} and {4} were compiled.",
        fix: "Give the sizes and strides that were compiled.",
        samples: &["AssertionError: expected size 3==2, stride 10==10 at dim=0"],
        ..CHECK
    },
    Pattern {
        id: "by-zero",
        class: "C05",
        since: torch(12),
        literals: &[" by zero"],
        regex: r"Integer (division|modulo|floor division|\w+) by zero",
        lookup: Lookup::OperatorShape,
        sentence: "A size that the generated code divides by is 0.",
        fix: "Look for an input with an empty dim; keep such inputs away from the model, or export with a minimum of 1.",
        samples: &["Error: Integer division by zero"],
        ..CHECK
    },
    Pattern {
        id: "spec",
        class: "C07",
        literals: &["spec refers to a pytree that holds", "exported input tree spec"],
        regex: r"(?:has length (\d+) but the )?spec refers to a pytree that holds (\d+) items|Trying to flatten user inputs with exported input tree spec",
        lookup: Lookup::CallSpec,
        sentence: "The arguments of the call have another structure than those of the export[[: {2} leaves were exported]][[, {1} were given]].",
        fix: "Call with the same nesting of tuples, lists and dicts as at export.",
        samples: &[
            "ValueError: tree_unflatten(leaves, treespec): `leaves` has length 15 but the spec refers to a pytree that holds 16 items (",
            "ValueError: Trying to flatten user inputs with exported input tree spec:",
        ],
        ..ROW
    },
    Pattern {
        id: "kwarg",
        class: "C07",
        literals: &["kwarg keyword mismatch", "kwarg key mismatch"],
        regex: r"kwarg key(?:word)? mismatch(?:: Got (?:the following keywords )?(\[.*?\]) but expected (\[.*?\]))?",
        lookup: Lookup::CallSpec,
        sentence: "The call gives other keyword arguments than the export[[: {1} were given]][[, {2} were exported]].",
        fix: "Give exactly those keyword arguments, in any order.",
        samples: &[
            "ValueError: Ran into a kwarg keyword mismatch: Got the following keywords [] but expected ['bias']",
        ],
        ..ROW
    },
    Pattern {
        id: "no-pair",
        class: "C07",
        literals: &["No comparison pair was able to handle"],
        regex: r"No comparison pair was able to handle",
        lookup: Lookup::CallSpec,
        sentence: "A result is a tensor where a Python number was expected: numbers become tensors at the boundary of a compiled model.",
        fix: "Compare with `.item()`, or return a tensor from the module.",
        samples: &[
            "TypeError: No comparison pair was able to handle inputs of type <class 'torch.Tensor'> and <class 'float'>.",
        ],
        ..ROW
    },
    Pattern {
        id: "out-dev",
        class: "C03",
        literals: &["Expected out tensor to have device "],
        regex: r"Expected out tensor to have device (\S+?), but got (\S+?) instead",
        lookup: Lookup::OperatorDevice,
        sentence: "An operator computes on {1} and its result buffer is on {2}: the model and its inputs are on different devices.",
        fix: "Put every input on the device that the model was compiled for and load the model for that device.",
        samples: &["Exception in aoti_torch: Expected out tensor to have device cuda:0, but got cpu instead"],
        ..ROW
    },
    Pattern {
        id: "same-dev",
        class: "C03",
        literals: &["to be on the same device", "is on cpu, different from other tensors", "on the same device as"],
        regex: r"[Ee]xpected all tensors to be on the same device(?:, but (?:found at least two devices, (\S+) and (\S+?)!|got ([^\n]*)))?|is on (cpu), different from other tensors|(?:must be|are not) on the same device as",
        lookup: Lookup::OperatorDevice,
        sentence: "An operator got tensors of different devices[[: {1} and {2}]].",
        fix: "Put every input on the device that the model was compiled for.",
        samples: &[
            "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
            "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors on cuda:0",
        ],
        ..ROW
    },
    Pattern {
        id: "ptr-triton",
        class: "C03",
        origin: Origin::Other,
        literals: &["cannot be accessed from Triton"],
        regex: r"Pointer argument \(at (\d+)\) cannot be accessed from Triton",
        lookup: Lookup::OperatorDevice,
        sentence: "Argument {1} of a GPU kernel is a tensor in host memory, or on another GPU.",
        fix: "Put every input on the device that the model was compiled for.",
        samples: &["ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)"],
        ..ROW
    },
    Pattern {
        id: "mm-dtype",
        class: "C06",
        literals: &[
            "to have the same dtype",
            "must have the same dtype",
            "expected scalar type ",
            "expected m1 and m2 to have",
        ],
        regex: r"(?:mat1 and mat2|self and mat2|batch1 and batch2|m1 and m2|tensors|inputs?)?\s*(?:must|to) have the same dtype, but got:? ?(\w+) (?:and|!=) (\w+)|expected scalar type (\w+) but found (\w+)|(?:must|to) have the same dtype",
        lookup: Lookup::OperatorDType,
        sentence: "An operator got tensors of different dtypes[[: {1:dtype} and {2:dtype}]][[: {3:dtype} was expected, {4:dtype} given]].",
        fix: "Convert the inputs to the dtypes that were compiled.",
        samples: &[
            "RuntimeError: mat1 and mat2 must have the same dtype, but got Double and Float",
            "RuntimeError: expected m1 and m2 to have the same dtype, but got: double != float",
            "RuntimeError: expected scalar type Float but found Half",
        ],
        ..ROW
    },
    Pattern {
        id: "out-dtype",
        class: "C06",
        literals: &["Expected out tensor to have dtype "],
        regex: r"Expected out tensor to have dtype ([\w:]+?), but got ([\w:]+) instead",
        lookup: Lookup::OperatorDType,
        sentence: "An operator computes {1:dtype} and its result buffer is {2:dtype}: an input has another dtype than was compiled.",
        fix: "Convert the inputs to the dtypes that were compiled.",
        samples: &["Exception in aoti_torch: Expected out tensor to have dtype double, but got float instead"],
        ..ROW
    },
    Pattern {
        id: "conv-dtype",
        class: "C06",
        literals: &["and weight type (", "and bias type ("],
        regex: r"Input type \((\S+?)\) and (?:weight|bias) type \((\S+?)\) should be the same",
        lookup: Lookup::OperatorDType,
        sentence: "An input is a {1} and the weights are a {2}: dtype or device of the input differs from what was compiled.",
        fix: "Convert the input to the dtype and device that were compiled.",
        samples: &[
            "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        ],
        ..ROW
    },
    Pattern {
        id: "mm-shape",
        class: "C04",
        literals: &["shapes cannot be multiplied", "size mismatch, got"],
        regex: r"(?:mat1 and mat2|mat and vec|a and b) shapes cannot be multiplied(?: \((\d+)x(\d+) and (\d+)x(\d+)\))?|size mismatch, got ([^\n]+)",
        lookup: Lookup::OperatorShape,
        sentence: "A matrix product got an inner size that does not fit[[: {2} was given, {3} is needed]].",
        fix: "Give the inputs the sizes that were compiled.",
        samples: &[
            "Exception in aoti_torch: mat1 and mat2 shapes cannot be multiplied (4x11 and 10x16)",
            "RuntimeError: size mismatch, got input (2), mat (2x11), vec (10)",
        ],
        ..ROW
    },
    Pattern {
        id: "resized",
        class: "C04",
        literals: &["elements was resized since it had shape"],
        regex: r"resized since it had shape (\[[\d, ]*\]), which does not match the required output shape (\[[\d, ]*\])",
        lookup: Lookup::OperatorShape,
        sentence: "An operator produced the shape {2} where the model was compiled for {1}: an input has another shape than was compiled, and the model ran all the same.",
        fix: "Do not trust the result. Give the sizes that were compiled, or export again with that dim dynamic.",
        samples: &[
            "[W1201 02:20:16.592 Resize.cpp:31] Warning: An output with one or more elements was resized since it had shape [2, 16], which does not match the required output shape [3, 16]. This behavior is deprecated",
        ],
        ..ROW
    },
    Pattern {
        id: "op-shape",
        class: "C04",
        literals: &[
            "must match the size of tensor b",
            "Sizes of tensors must match except",
            "is invalid for input of size",
            "expected input[",
            "must match the existing size",
            "Expected size for first two dimensions of batch2",
            "normalized_shape=",
            "does not match the broadcast shape",
            "running_mean should contain",
            "Kernel size can't be greater than actual input size",
        ],
        regex: r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)|Sizes of tensors must match except|shape '(\[[^\]]*\])' is invalid for input of size (\d+)|[Ee]xpected input\[|must match the existing size|Expected size for first two dimensions of batch2|normalized_shape=|does not match the broadcast shape|running_mean should contain|Kernel size can't be greater than actual input size",
        lookup: Lookup::OperatorShape,
        sentence: "An operator inside the model got sizes that do not fit together[[: {1} and {2}]][[: {4} elements do not fill {3}]].",
        fix: "Give the inputs the sizes that were compiled.",
        samples: &[
            "RuntimeError: The size of tensor a (11) must match the size of tensor b (10) at non-singleton dimension 1",
            "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 4 but got size 5 for tensor number 1 in the list.",
            "RuntimeError: shape '[2, 10]' is invalid for input of size 22",
            "RuntimeError: Given groups=1, weight of size [16, 3, 3, 3], expected input[1, 4, 32, 32] to have 3 channels, but got 4 channels instead",
            "RuntimeError: The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 0.",
        ],
        ..ROW
    },
    Pattern {
        id: "op-rank",
        class: "C04",
        literals: &[
            "Dimension out of range (expected",
            "must be a matrix",
            "must be 2-D",
            "must be a 3D tensor",
            "D (unbatched) or ",
            "mat1 and mat2 must be",
            "expected a matrix",
        ],
        regex: r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)\)|must be a matrix|must be 2-D|must be a 3D tensor|Expected (\d)D \(unbatched\) or|expected a matrix|mat1 and mat2 must be",
        lookup: Lookup::OperatorShape,
        sentence: "An operator inside the model got a tensor with another number of dims than it was compiled for.",
        fix: "Give the inputs the rank that was compiled.",
        samples: &[
            "IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 1)",
            "RuntimeError: mat1 must be a matrix, got 1-D tensor",
            "RuntimeError: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [10]",
        ],
        ..ROW
    },
    Pattern {
        id: "et-resize",
        class: "C05",
        origin: Origin::Other,
        literals: &["Attempted to resize a bounded tensor"],
        regex: r"Attempted to resize a bounded tensor(?: with a maximum capacity of (\d+) elements to (\d+) elements)?",
        lookup: Lookup::OperatorShape,
        sentence: "An ExecuTorch input has more elements than its upper bound allows[[: {2} of at most {1}]].",
        fix: "Give a smaller input, or export with a larger maximum.",
        samples: &["Attempted to resize a bounded tensor with a maximum capacity of 1024 elements to 2048 elements."],
        ..ROW
    },
    Pattern {
        id: "guard",
        class: "C05",
        literals: &["Runtime assertion failed for expression", "Guard failed: ", "torch._assert failed"],
        regex: r"Runtime assertion failed for expression (\S.*?)(?: on node|$)|Guard failed: (.+)|torch\._assert failed",
        lookup: Lookup::OperatorShape,
        sentence: "A relation between sizes that the export took for granted does not hold[[: {1}]][[: {2}]].",
        fix: "Give sizes that keep the relation, or export again without it.",
        samples: &[
            "RuntimeError: Runtime assertion failed for expression Ne(s0, s1) on node 'ne'",
            "AssertionError: Guard failed: x.size()[0] >= 2",
        ],
        ..ROW
    },
];
