//! What the host tells a flight about itself.

use std::env;

/// The release's name: for an instance of an Airway `<group>.<Kind>.<namespace>.<name>`, on the command line what was
/// typed.
///
/// It is the part after the last `/` of `YOKE_RELEASE`, or of the program's name if that is not set.
pub fn release() -> String {
    release_of(env::var("YOKE_RELEASE").ok(), env::args().next())
}

/// The namespace that resources without one will get; empty where the host says none.
///
/// It is `YOKE_NAMESPACE`, or `NAMESPACE` if that is not set.
pub fn namespace() -> String {
    first_set(["YOKE_NAMESPACE", "NAMESPACE"].map(|key| env::var(key).ok()))
}

/// The host's version, `v0.20.12` for example; empty where the host says none.
pub fn version() -> String {
    first_set([env::var("YOKE_VERSION").ok()])
}

fn release_of(variable: Option<String>, program: Option<String>) -> String {
    let full = first_set([variable, program]);
    full.rsplit('/').next().unwrap_or_default().to_owned()
}

fn first_set<const N: usize>(values: [Option<String>; N]) -> String {
    values
        .into_iter()
        .flatten()
        .find(|value| !value.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
