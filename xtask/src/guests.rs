//! `cargo xtask guests`: the flights of `docs/examples` and `tests/guests`, as modules in `<target>/guests`.
//!
//! A flight in Rust is a binary of a package there that depends on `yoke-sdk`, or any binary under `tests/guests`;
//! a flight in Go is a folder with a `go.mod`; a flight in text is a `.wat` file, which is used as it is.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    Workspace,
    workspace::{cargo_metadata, output, run},
};

/// Where flights are, and whether all binaries there are flights.
const PLACES: [(&str, bool); 2] = [("docs/examples", false), ("tests/guests", true)];
/// What flights are compiled for.
const TARGET: &str = "wasm32-wasip1";

/// Builds them; those that are up to date cost cargo's or Go's look at them. Returns the modules.
pub(crate) fn build(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let out = workspace.target().join("guests");
    fs::create_dir_all(&out).with_context(|| format!("create \"{}\"", out.display()))?;
    let mut modules = Vec::new();
    let mut compiler = None;
    for (place, all) in PLACES {
        for folder in folders(&workspace.root().join(place), "Cargo.toml")? {
            let flights = rust_flights(&folder, all)?;
            if flights.is_empty() {
                continue;
            }
            let compiler = match &compiler {
                Some(compiler) => compiler,
                None => compiler.insert(Compiler::find()?),
            };
            modules.extend(build_rust(compiler, &folder, &flights, &out)?);
        }
        for folder in folders(&workspace.root().join(place), "go.mod")? {
            modules.push(build_go(&folder, &out)?);
        }
    }
    modules.sort();
    Ok(modules)
}

/// The outermost folders at or under `top` that hold `manifest`.
fn folders(top: &Path, manifest: &str) -> Result<Vec<PathBuf>> {
    if top.join(manifest).is_file() {
        return Ok(vec![top.to_owned()]);
    }
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(top) else {
        return Ok(found);
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(folders(&path, manifest)?);
        }
    }
    found.sort();
    Ok(found)
}

/// Names of the binaries of a workspace that are flights.
fn rust_flights(folder: &Path, all: bool) -> Result<Vec<String>> {
    let metadata = cargo_metadata(folder)?;
    let mut names = Vec::new();
    for package in array(&metadata["packages"]) {
        let uses_sdk = array(&package["dependencies"])
            .iter()
            .any(|d| d["name"] == "yoke-sdk");
        if !all && !uses_sdk {
            continue;
        }
        for target in array(&package["targets"]) {
            if array(&target["kind"]).iter().any(|kind| kind == "bin") {
                names.extend(target["name"].as_str().map(str::to_owned));
            }
        }
    }
    Ok(names)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A Rust that can compile for WebAssembly.
enum Compiler {
    /// The one of the workspace, with the target's standard library.
    Own,
    /// Debian's, which compiles the standard library itself (packages `rustc-web cargo-web rust-web-src wasi-libc lld`).
    Debian,
}

impl Compiler {
    /// The workspace's own Rust; where it has no standard library for the target and rustup cannot fetch one,
    /// Debian's.
    fn find() -> Result<Self> {
        if has_target()? {
            return Ok(Self::Own);
        }
        eprintln!("fetching Rust's standard library for {TARGET}");
        let added = Command::new("rustup")
            .args(["target", "add", TARGET])
            .stdin(Stdio::null())
            .status();
        if added.is_ok_and(|status| status.success()) && has_target()? {
            return Ok(Self::Own);
        }
        if debian_is_ready()? {
            return Ok(Self::Debian);
        }
        bail!(
            "flights in Rust need the standard library of {TARGET}: `rustup target add {TARGET}`, or on Debian \
             `apt-get install rustc-web cargo-web rust-web-src wasi-libc lld`"
        )
    }

    fn command(&self) -> Command {
        match self {
            Self::Own => {
                let mut command = Command::new("cargo");
                command.arg("build");
                command
            }
            Self::Debian => {
                let mut command = Command::new("/usr/bin/cargo");
                command.args(["build", "-Z", "build-std=std,panic_abort"]);
                command
                    .env("RUSTC", "/usr/bin/rustc")
                    .env("RUSTC_BOOTSTRAP", "1");
                command.env("CARGO_TARGET_WASM32_WASIP1_LINKER", "wasm-ld");
                command.env("RUSTFLAGS", "-Clinker-flavor=wasm-ld");
                command
            }
        }
    }
}

fn has_target() -> Result<bool> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok(Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(TARGET)
        .join("lib")
        .is_dir())
}

/// Whether Debian's packages are there; puts WASI's C library where its rustc looks for it.
fn debian_is_ready() -> Result<bool> {
    let library = Path::new("/usr/lib/wasm32-wasi");
    if !Path::new("/usr/bin/rustc").is_file() || !library.join("libc.a").is_file() {
        return Ok(false);
    }
    let sysroot = output(Command::new("/usr/bin/rustc").args(["--print", "sysroot"]))?;
    let sysroot = Path::new(sysroot.trim());
    if !sysroot.join("lib/rustlib/src/rust/library").is_dir() {
        return Ok(false);
    }
    let place = sysroot
        .join("lib/rustlib")
        .join(TARGET)
        .join("lib/self-contained");
    if !place.join("libc.a").is_file() {
        fs::create_dir_all(&place).with_context(|| format!("create \"{}\"", place.display()))?;
        for entry in fs::read_dir(library)? {
            let file = entry?.path();
            let Some(name) = file.file_name().map(|n| n.to_string_lossy().into_owned()) else {
                continue;
            };
            if name == "libc.a"
                || (name.starts_with("crt1") && file.extension().is_some_and(|e| e == "o"))
            {
                fs::copy(&file, place.join(&name))
                    .with_context(|| format!("copy \"{}\"", file.display()))?;
            }
        }
    }
    Ok(true)
}

fn build_rust(
    compiler: &Compiler,
    folder: &Path,
    flights: &[String],
    out: &Path,
) -> Result<Vec<PathBuf>> {
    let target = out.join("build");
    let mut command = compiler.command();
    // Variables of the cargo that runs this program are not for the one that it runs.
    for name in ["CARGO_TARGET_DIR", "RUSTUP_TOOLCHAIN", "CARGO"] {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .args(["--quiet", "--release", "--target", TARGET, "--target-dir"])
        .arg(&target);
    for flight in flights {
        command.args(["--bin", flight]);
    }
    run(&mut command)?;
    let built = target.join(TARGET).join("release");
    flights
        .iter()
        .map(|name| publish(&built.join(format!("{name}.wasm")), out, name))
        .collect()
}

fn build_go(folder: &Path, out: &Path) -> Result<PathBuf> {
    let name = folder
        .file_name()
        .context("a flight without a folder")?
        .to_string_lossy()
        .into_owned();
    let built = out.join("build").join(format!("{name}.go.wasm"));
    fs::create_dir_all(out.join("build"))?;
    let mut command = Command::new("go");
    command
        .current_dir(folder)
        .args(["build", "-trimpath", "-ldflags=-s -w", "-o"])
        .arg(&built)
        .arg(".");
    command
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        .env("GOWORK", "off")
        .env("GOFLAGS", "-buildvcs=false");
    run(&mut command)?;
    publish(&built, out, &name)
}

/// Copies a module to its place, whole or not at all, where its content has changed.
fn publish(built: &Path, out: &Path, name: &str) -> Result<PathBuf> {
    let place = out.join(format!("{name}.wasm"));
    let content = fs::read(built).with_context(|| format!("read \"{}\"", built.display()))?;
    if fs::read(&place).is_ok_and(|found| found == content) {
        return Ok(place);
    }
    let partial = out.join(format!("{name}.partial"));
    fs::write(&partial, content).with_context(|| format!("write \"{}\"", partial.display()))?;
    fs::rename(&partial, &place).with_context(|| format!("rename to \"{}\"", place.display()))?;
    Ok(place)
}
