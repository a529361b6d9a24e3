//! The one control plane that all tests of a process share.

use std::sync::OnceLock;

use crate::{ControlPlane, Options};

/// The control plane of this process: full, started by whoever asks first, ended with the process.
///
/// Tests take a namespace each; what is not in a namespace (Airways, CRDs) they name after themselves.
///
/// # Panics
///
/// When it could not be started; each caller gets the reason.
#[expect(
    clippy::panic,
    reason = "for tests: without a control plane none of them can go on"
)]
pub fn shared() -> &'static ControlPlane {
    static SHARED: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
    let start = || {
        ControlPlane::start(&Options {
            full: true,
            ..Options::default()
        })
    };
    match SHARED.get_or_init(|| start().map_err(|error| format!("{error:#}"))) {
        Ok(plane) => plane,
        Err(error) => panic!("no control plane: {error}"),
    }
}
