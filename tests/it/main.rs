//! Everything that needs more than one module, in one binary.

mod conformance;
