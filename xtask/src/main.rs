//! The projects own commands.
fn main() {}
