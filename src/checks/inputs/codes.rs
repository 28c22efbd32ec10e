//! Codes about inputs.

use crate::checks::codes::{Code, Page};
use crate::report::Level;

const SWITCH: &str = "With AOTI_RUNTIME_CHECK_INPUTS=1 (2.7 and later) the run ends with an exception; without it, \
                      which is the default, the code runs on what it gets: wrong numbers, or an illegal access.";

const fn code(id: &'static str, summary: &'static str, page: Page) -> Code {
    Code { id, summary, level: Level::Deny, page }
}

/// Codes of this subject.
pub const CODES: &[Code] = &[
    code(
        "input-count",
        "another number of inputs than the model takes",
        Page {
            compares: "The number of tensors given with the number that the constructor of the model states.",
            matters: "The runtime refuses every call: `expected inputs vector size to be N, but got M`. This is checked always.",
            reports: "pytorch issue 111068; arguments that are no tensors are baked in and not passed.",
            fix: "Pass all tensors in flat order, keyword arguments as the call spec orders them; `show --call` prints it.",
        },
    ),
    code(
        "input-missing",
        "an input is named that the model does not have",
        Page {
            compares: "Names in the load configuration with positions, call paths, internal names and labels of the inputs.",
            matters: "The configuration was written for another model or another build of it; its claims are not checked.",
            reports: "Renamed keyword arguments and reordered inputs between two exports, class C07 of the failure study.",
            fix: "Use a name that `show` prints for this file, or a position.",
        },
    ),
    code(
        "input-ambiguous",
        "one part of an input is asked twice",
        Page {
            compares: "The requests of the load configuration with each other after names are resolved to positions.",
            matters: "Two statements about one input contradict each other or hide a mistake in one of the names.",
            reports: "Own rule: a gate must not choose one of two statements.",
            fix: "Ask each of dtype, shape, strides and device of an input once.",
        },
    ),
    code(
        "input-rank",
        "another number of dims than the input has",
        Page {
            compares: "The number of dims given with the rank that the generated code uses.",
            matters: "The runtime never compares the rank: a tensor with too few dims is read past its end, one with too \
                  many runs silently and gives wrong numbers.",
            reports: "pytorch issue 141115 and pull request 186898.",
            fix: "Reshape the input to the rank that `show` prints.",
        },
    ),
    code(
        "input-dim",
        "another size than the one that is compiled in",
        Page {
            compares: "A given size with the fixed size of that dim in the generated check.",
            matters: SWITCH,
            reports: "pytorch issues 141115 and 153992: a slice of a larger tensor worked by luck, a fresh one killed the \
                  GPU context.",
            fix: "Pass that size, or export again with the dim in `dynamic_shapes` and compile.",
        },
    ),
    code(
        "input-dim-range",
        "a size outside the range that the model was compiled for",
        Page {
            compares: "A given size, or every size of a given range, with the bounds in the generated check.",
            matters: SWITCH,
            reports: "deepmd-kit pull request 5407, pytorch pull request 196131 (bounds from lowering-time hints).",
            fix: "Pass sizes in the range, or export again with a wider `torch.export.Dim` range and compile.",
        },
    ),
    code(
        "input-dim-01-specialization",
        "a size of 0 or 1 where export's 0/1 specialisation left a bound of 2",
        Page {
            compares: "A given size with a lower bound of exactly 2, which is normally not a wish of the author: export \
                   fixes 0 and 1, and a dynamic dim begins at 2.",
            matters: "With the checks on the runtime refuses; with them off such sizes often work, because the code has no \
                  guard, and nobody promises it.",
            reports: "pytorch pull request 169430: a batch of 0 or 1 trips the bound; a switch came in 2.10.",
            fix: "Pad to 2 and cut the result, or compile with 2.10 or newer and `aot_inductor.check_lowerbound=False`.",
        },
    ),
    code(
        "input-dim-relation",
        "sizes that must agree with each other do not",
        Page {
            compares: "Dims that share a symbol, or that are an expression of another dim (`2*s0`), with the sizes given \
                   for all of them.",
            matters: "Releases before 2.13 do not check relations: the code takes one size from one input, uses it for the \
                  others and gives wrong numbers.",
            reports: "Measured with the real runtime: packages of 2.7 to 2.12 run such inputs silently.",
            fix: "Pass inputs whose sizes agree; for ranges write one name in all shapes and give it with `--dim NAME=2..512`.",
        },
    ),
    code(
        "input-dtype",
        "another element type than the input has",
        Page {
            compares: "The given dtype with the one in the generated check.",
            matters: SWITCH,
            reports: "pytorch issue 180807: the launcher does not compare dtypes either.",
            fix: "Convert the input, or export and compile with an example of that dtype.",
        },
    ),
    code(
        "input-stride",
        "other strides than the input was compiled for",
        Page {
            compares: "Given strides with those in the generated check. Fixed ones are compared exactly; symbolic ones not \
                   where the size is 0 or 1.",
            matters: SWITCH,
            reports: "pytorch pull request 122047, executorch issue 21837: the wrong memory format is read in the wrong order.",
            fix: "Call `.contiguous()`, with the memory format of the compiled example, before the call.",
        },
    ),
    code(
        "input-not-contiguous",
        "compiled for strides that a new tensor does not have",
        Page {
            compares: "The compiled strides with contiguous ones, when shapes are given and strides are not.",
            matters: "Strides are fixed at compile time and unchecked at run time by default: a new tensor of the right \
                  shape is read in the wrong order.",
            reports: "executorch issue 21837: a channels-last input taken for a contiguous one.",
            fix: "State the strides with `--stride`, and convert the input before each call.",
        },
    ),
    code(
        "input-device",
        "an input on another device than it is expected on",
        Page {
            compares: "The device of a given input with the one in the generated check, or with the device of the model.",
            matters: "Unchecked by default: a GPU kernel reads a host pointer, or a CPU kernel a device pointer.",
            reports: "pytorch issues 153980 and 170863.",
            fix: "Move the input to the device that the model is loaded on.",
        },
    ),
    code(
        "input-cases",
        "recorded inputs that the model does not take",
        Page {
            compares: "Each line of the `--cases` file, as one complete list of inputs, with all of the rules above.",
            matters: "It is the share of real traffic that would fail or give wrong numbers.",
            reports: "Requests for shape tables of real traffic before a dim is exported as dynamic, class C05.",
            fix: "Look at the reasons by count; convert those inputs, or export for what really occurs.",
        },
    ),
    Code {
        id: "input-unchecked",
        summary: "the runtime does not compare inputs with what was compiled",
        level: Level::Allow,
        page: Page {
            compares: "Whether the generated code holds input checks, and what switches them on.",
            matters: "Checks are compiled in since 2.7 and off by default: a wrong shape, dtype, stride or device runs \
                      silently, and gives wrong numbers or an illegal access.",
            reports: "pytorch issues 141115 and 153980; the switch is read at run time, not at compile time.",
            fix: "Set AOTI_RUNTIME_CHECK_INPUTS=1 while testing, and verify the inputs of production with this tool.",
        },
    },
    Code {
        id: "assert-empty-range",
        summary: "a kernel indexes into a dim that is empty with these sizes",
        level: Level::Warn,
        page: Page {
            compares: "The upper bound in each `index out of bounds` assertion of the kernels, followed from the launch to \
                       the sizes of the inputs, with the sizes that are given.",
            matters: "The assertion is evaluated even where the selected set is empty: on CUDA a device-side assert ends \
                      the process, on CPU the run throws.",
            reports: "pytorch issues 192143 and 143498.",
            fix: "Keep empty inputs away from the model, or clamp the index in the module, and compile again.",
        },
    },
];
