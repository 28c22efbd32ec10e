//! Check messages paired with their numbers along the control flow: witness independent of the interpreter.
