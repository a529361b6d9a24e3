//! A real control plane as child processes.
