//! `yoke version`: our own version, the one that flights see, and those of the parts that matter to them.

use atc_engine::api::names;
use serde_json::Value;

use crate::cli::{Data, Format, Version};
use crate::output;

/// Majors that the workspace allows; a test holds them against its manifest.
const WASMTIME: &str = "48";
const KUBE: &str = "5.0";

/// Prints them to stdout.
pub(crate) async fn run(args: &Version) -> anyhow::Result<()> {
    let data = match args.output {
        Format::Table => return output::write(table()).await,
        Format::Json => Data::Json,
        Format::Yaml => Data::Yaml,
    };
    let rows = rows().map(|(_, key, version)| (key.to_owned(), version.into()));
    output::write_data(&Value::Object(rows.into_iter().collect()), data).await
}

/// Name in the table, key in JSON and YAML, version.
fn rows() -> [(&'static str, &'static str, &'static str); 4] {
    [
        ("yoke", "yoke", env!("CARGO_PKG_VERSION")),
        ("seen by flights", "seenByFlights", names::HOST_VERSION),
        ("wasmtime", "wasmtime", WASMTIME),
        ("kube", "kube", KUBE),
    ]
}

fn table() -> String {
    let rows = rows();
    let width = rows
        .iter()
        .map(|(name, ..)| name.len())
        .max()
        .unwrap_or_default();
    let lines = rows
        .iter()
        .map(|(name, _, version)| format!("{name:width$}  {version}"));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_as_the_workspace_has_it() {
        let manifest =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
                .expect("manifest");
        for (name, version) in [("wasmtime", WASMTIME), ("kube", KUBE)] {
            assert!(
                manifest.contains(&format!("\n{name} = {{ version = \"{version}\"")),
                "{name} {version}"
            );
        }
        let table = table();
        assert_eq!(table.lines().count(), 4);
        assert!(
            table.starts_with(&format!("yoke             {}\n", env!("CARGO_PKG_VERSION"))),
            "{table}"
        );
    }
}
