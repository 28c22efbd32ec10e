//! Generated C++ wrapper source, when it is shipped.
