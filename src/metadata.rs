//! The JSON members: metadata, call spec, weights configuration, extern nodes, exported programs.
