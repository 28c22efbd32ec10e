//! Custom operators, the proxy executor, operators called with values they refuse.

use super::{Lookup, Origin, Pattern, ROW, torch};

pub(super) const ROWS: &[Pattern] = &[
    Pattern {
        id: "schema",
        class: "C17",
        literals: &["Could not find schema for"],
        regex: r"Could not find schema for ([\w:.]+?)\.?(?:$|[\s,;'\x22])",
        lookup: Lookup::Operator,
        sentence: "The custom operator {1} is not registered in the process that loads the model.",
        fix: "Load the library (or import the module) that registers it before loading the model.",
        samples: &[
            "RuntimeError: Could not find schema for custom_ops::selective_scan_fwd",
            "Error: Could not find schema for mylib::custom_add.",
        ],
        ..ROW
    },
    Pattern {
        id: "pycustom",
        class: "C17",
        since: torch(13),
        literals: &["Custom operators created via torch.library.custom_op"],
        regex: r"Custom operators created via torch\.library\.custom_op cannot be run via AOTI",
        lookup: Lookup::Operator,
        sentence: "The model calls an operator that exists only in Python, and the process that loads it has none.",
        fix: "Write the operator in C++ (TORCH_LIBRARY), or load the model from Python with the operator's module imported.",
        samples: &[
            "Custom operators created via torch.library.custom_op cannot be run via AOTI without Python environment.",
        ],
        ..ROW
    },
    Pattern {
        id: "noproxy",
        class: "C17",
        literals: &["Unable to find a proxy executor"],
        regex: r"Unable to find a proxy executor to run custom ops",
        lookup: Lookup::Operator,
        sentence: "The list of custom operators that belongs to the library was not found, so none can be called.",
        fix: "Keep the extern-node JSON beside the library, under the same name; in a package, make it again.",
        samples: &[
            "RuntimeError: Unable to find a proxy executor to run custom ops. Please check if there is a json file generated in the same directory as the so",
        ],
        ..ROW
    },
    Pattern {
        id: "extern-node",
        class: "C17",
        literals: &["Invalid extern node index", "Mismatch between tensors consumed and num"],
        regex: r"Invalid extern node index|Mismatch between tensors consumed and num\w*",
        lookup: Lookup::Operator,
        sentence: "The list of custom operators does not belong to this library.",
        fix: "Keep library and extern-node JSON of the same build together.",
        samples: &[
            "RuntimeError: Invalid extern node index",
            "RuntimeError: Mismatch between tensors consumed and num_tensors",
        ],
        ..ROW
    },
    Pattern {
        id: "custom-obj",
        class: "C17",
        since: torch(8),
        literals: &["custom objs json file", "Failed to open custom obj file", "__torch__.torch.classes"],
        regex: r"Unable to open custom objs json file|Failed to open custom obj file:?\s*(\S*)|(?:[Uu]nknown type name|class not found)[^\n]*(__torch__\.torch\.classes\.\S+)",
        lookup: Lookup::Operator,
        sentence: "A script object (torchbind) of the model could not be read[[: {1}]][[: {2}]].",
        fix: "Ship the custom objects with the package and load the library that registers their class first.",
        samples: &["RuntimeError: Failed to open custom obj file: /tmp/x/custom_obj_0"],
        ..ROW
    },
    Pattern {
        id: "signature",
        class: "C17",
        literals: &["operator with a wrong signature"],
        regex: r"Tried to access or call an operator with a wrong signature",
        lookup: Lookup::Operator,
        sentence: "A custom operator in this process has another signature than when the model was compiled.",
        fix: "Load the version of the operator library that the model was compiled against, or compile again.",
        samples: &["RuntimeError: Tried to access or call an operator with a wrong signature."],
        ..ROW
    },
    Pattern {
        id: "no-backend",
        class: "C17",
        literals: &["with arguments from the '"],
        regex: r"Could not run '([\w:.]+)' with arguments from the '(\w+)' backend",
        lookup: Lookup::Operator,
        sentence: "The operator {1} has no implementation for {2} in this process.",
        fix: "Load the operator library built for that device.",
        samples: &["NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend."],
        ..ROW
    },
    Pattern {
        id: "scalar-alpha",
        class: "C17",
        literals: &["must not be a floating point number"],
        regex: r"For integral input tensors, argument (\w+) must not be a floating point number",
        lookup: Lookup::Operator,
        sentence: "A C shim hands the integer argument {1} on as a floating point number; the operator refuses it for integer tensors.",
        fix: "Compile with a torch that has this mended, or use a floating point tensor there.",
        samples: &["RuntimeError: For integral input tensors, argument alpha must not be a floating point number."],
        ..ROW
    },
    Pattern {
        id: "fakekernel",
        class: "C17",
        origin: Origin::Artifact,
        since: torch(13),
        literals: &["incorrect fake", "incorrect meta", "expected ndim ", "but got dtype code"],
        regex: r"incorrect (?:fake|meta)|expected ndim (\d+) but got (\d+)|expected dtype (\S+) but got dtype code (\d+)",
        lookup: Lookup::Operator,
        sentence: "A custom operator returned another tensor than its fake (meta) kernel promised[[: {2} dims instead of {1}]][[: {4:dtype} instead of {3}]].",
        fix: "Make the fake kernel say what the real one returns, and compile again.",
        samples: &[
            "AssertionError: expected ndim 2 but got 3 for op: torch.ops.mylib.f.default",
            "This error most often comes from an incorrect fake (aka meta) kernel for a custom op.",
        ],
        ..ROW
    },
];
