//! `yoke schematics`: what a module carries for its users beside its code.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use atc_engine::artifact::{
    Location, MAX_SCHEMATIC_BYTES, SIGNATURE_NAME, Schematic, parse_command, schematic,
    schematic_names, set_schematic,
};
use atc_engine::flight::{Bounds, Compiler, Invocation, NoCluster, Runtime, RuntimeOptions};
use bytes::Bytes;

use crate::cli::{Action, Schematics};
use crate::{input, module, output, render};

/// What a command may take in memory: 128 MiB, as a flight of `takeoff` unless told otherwise.
const MEMORY: u64 = 128 << 20;

/// `argv[0]` of a command.
const PROGRAM: &str = "schematics";

/// Lists, prints or sets.
pub(super) async fn run(args: &Schematics) -> anyhow::Result<()> {
    let name = args.name.as_deref();
    match (args.action, name) {
        (Action::Ls, None) => ls(&args.wasm).await,
        (Action::Ls, Some(name)) => bail!("`ls` lists all schematics: \"{name}\" is too much"),
        (_, None) => bail!("the name of the schematic is missing"),
        (Action::Get, Some(name)) => get(&args.wasm, name).await,
        (Action::Set, Some(name)) => set(&args.wasm, name, args.cmd).await,
    }
}

async fn ls(location: &str) -> anyhow::Result<()> {
    let (location, artifact) = module::fetch(location).await?;
    let names = schematic_names(&artifact.bytes).with_context(|| format!("\"{location}\""))?;
    if names.is_empty() {
        render::warning(format!("\"{location}\" has no schematics"));
    }
    let mut lines = names.join("\n");
    if !lines.is_empty() {
        lines.push('\n');
    }
    output::write(render::printable(&lines)).await
}

async fn get(location: &str, name: &str) -> anyhow::Result<()> {
    let (location, artifact) = module::fetch(location).await?;
    let found = schematic(&artifact.bytes, name).with_context(|| format!("\"{location}\""))?;
    match found {
        Schematic::Static(data) => output::write(data).await,
        Schematic::Command(words) => {
            let printed = command(&artifact.bytes, words).await;
            output::write(printed.with_context(|| format!("schematic \"{name}\""))?).await
        }
    }
}

/// What the module prints when it is run with these words, and nothing else.
async fn command(module: &Bytes, words: Vec<String>) -> anyhow::Result<Bytes> {
    let runtime = Runtime::new(RuntimeOptions {
        compiler: Compiler::Quick,
        ..RuntimeOptions::default()
    })?;
    let mut args = vec![PROGRAM.to_owned()];
    args.extend(words);
    let invocation = Invocation {
        args,
        bounds: Bounds {
            memory: MEMORY,
            ..Bounds::default()
        },
        ..Invocation::default()
    };
    let module = runtime.module(module).await?;
    let outcome = module.run(invocation, Arc::new(NoCluster)).await?;
    if outcome.exit != 0 {
        let said = match outcome.stderr.trim() {
            "" => "it wrote nothing to stderr",
            words => words,
        };
        bail!(
            "its command failed with exit_code({}): {said}",
            outcome.exit
        );
    }
    Ok(outcome.stdout)
}

async fn set(location: &str, name: &str, is_command: bool) -> anyhow::Result<()> {
    let path = match location.parse()? {
        Location::File(path) => path,
        other => bail!("\"{other}\" is no local file, and `set` writes into one"),
    };
    let Some(content) = input::read(MAX_SCHEMATIC_BYTES as u64).await? else {
        bail!("stdin is a terminal: pipe the content of the schematic in");
    };
    let content = if is_command {
        Schematic::Command(parse_command(&content)?)
    } else {
        Schematic::Static(content)
    };
    put(&path, name, &content).await
}

async fn put(path: &Path, name: &str, content: &Schematic) -> anyhow::Result<()> {
    let was = module::read(path).await?;
    let now = set_schematic(&was, name, content)?;
    let signed = name != SIGNATURE_NAME && schematic(&was, SIGNATURE_NAME).is_ok();
    module::write(path, now).await?;
    if signed {
        render::warning(format!(
            "the signature of \"{}\" does not hold any more: `yoke sign -f` makes a new one",
            path.display()
        ));
    }
    Ok(())
}
