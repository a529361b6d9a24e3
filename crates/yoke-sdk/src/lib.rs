//! Write a flight in Rust: read the input, look things up, print resources.
