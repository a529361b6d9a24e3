//! Get a program's bytes from a file or over HTTP, within bounds, and prove them by checksum.
