//! Prints the three CRDs as documents of one YAML stream (each document is JSON, which is YAML), for `kubectl apply -f -`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for crd in atc_api::crds() {
        writeln!(out, "---\n{}", serde_json::to_string_pretty(&crd)?)?;
    }
    Ok(())
}
