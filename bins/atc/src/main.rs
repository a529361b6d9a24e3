//! The Air Traffic Controller as a process: arguments, wiring, exit code.
fn main() {}
