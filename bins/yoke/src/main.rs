//! The yoke command line: take flights off against a cluster, look, and remove.
fn main() {}
