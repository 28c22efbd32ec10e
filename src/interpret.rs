//! The library's own C interface, interpreted in a closed machine. Nothing runs natively.
