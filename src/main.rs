//! Thin user of the library: parse, dispatch, exit code.

fn main() {}
