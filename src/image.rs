//! Object files: sections, symbols, imports, needs, strings.
