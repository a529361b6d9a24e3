//! The tests on a real control plane.
