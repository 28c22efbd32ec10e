//! Texts that tell the phase, and nothing about the cause.

use super::{Lookup, Origin, Pattern, ROW, Rank, torch};

pub(super) const ROWS: &[Pattern] = &[
    Pattern {
        id: "shim-call",
        class: "C23",
        rank: Rank::Context,
        origin: Origin::Artifact,
        literals: &["API call failed"],
        regex: r"\b((?:executorch_)?aoti_torch_\w+)\((.*?)\) API call failed at (\S+), line (\d+)",
        lookup: Lookup::Nothing,
        sentence: "The operator call that failed is {1}, in line {4} of the generated source.",
        fix: "",
        samples: &[
            "Error: aoti_torch_cuda_mm_out(buf0, arg4_1, wrap(fc1_weight)) API call failed at /c/x.wrapper.cpp, line 888",
        ],
        ..ROW
    },
    Pattern {
        id: "api",
        class: "C23",
        rank: Rank::Phase,
        literals: &["API call failed"],
        regex: r"(\w+)\((.*?)\) API call failed",
        lookup: Lookup::Nothing,
        sentence: "`{1}` failed: this only tells the phase, the cause is in the line that begins with `Error:` or `Exception in aoti_torch:` on stderr.",
        fix: "Keep stderr of the process and give it too (`2>&1`).",
        samples: &[
            "RuntimeError: run_func_( container_handle_, input_handles.data() ) API call failed at /pytorch/x.cpp, line 144",
        ],
        ..ROW
    },
    Pattern {
        id: "unfinished",
        class: "C23",
        rank: Rank::Phase,
        origin: Origin::Artifact,
        literals: &["The model did not finish successfully", "Unknown exception occurred."],
        regex: r"The model did not finish successfully(?:\. Error: ([^\n]*))?|Unknown exception occurred\.",
        lookup: Lookup::Nothing,
        sentence: "A run ended with an error that this text does not name[[: {1}]].",
        fix: "Keep stderr of the process and give it too (`2>&1`).",
        samples: &["Error: The model did not finish successfully. Error: ", "Error: Unknown exception occurred."],
        ..ROW
    },
    Pattern {
        id: "aoti-load",
        class: "C23",
        rank: Rank::Phase,
        origin: Origin::Artifact,
        since: torch(14),
        literals: &["[AOTI_LOAD]"],
        regex: r"\[AOTI_LOAD\] ?([^\n]*)",
        lookup: Lookup::Nothing,
        sentence: "The model was being loaded: {1}",
        fix: "",
        samples: &["[AOTI_LOAD] loading constants"],
        ..ROW
    },
];
