//! Builds the programs with Go from the pinned modules beside this crate.

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::cache::{Cache, write_whole};

/// Oldest Go that builds the pinned modules (their own `go` lines say so).
const GO: (u32, u32) = (1, 26);
/// Pause between two lines of progress of one build.
const PROGRESS: Duration = Duration::from_secs(15);
/// `go` answers this when a stage file is missing from kwok's module: the folders of its stages, without heartbeats
/// (kwok's own node leases keep the node alive).
const STAGE_FOLDERS: [&str; 2] = ["kustomize/stage/node/fast", "kustomize/stage/pod/fast"];

/// Where `go.mod` files are: this crate's own folder.
const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// Version flags of Kubernetes: without them discovery reports v0.0.0, and clients that look at it go astray.
/// The version is that of the `require k8s.io/kubernetes` line.
const KUBERNETES_FLAGS: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 \
     -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37";
const PLAIN_FLAGS: &str = "-s -w";

struct Target {
    /// File name of the program.
    name: &'static str,
    /// Folder under this crate that holds its `go.mod`.
    module: &'static str,
    package: &'static str,
    flags: &'static str,
}

/// In the order of building: the longest first, since it fills Go's cache for the others.
const TARGETS: [Target; 6] = [
    kubernetes_target("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    kubernetes_target("etcd", "go.etcd.io/etcd/server/v3"),
    kubernetes_target(
        "kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
    ),
    kubernetes_target("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    kubernetes_target("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    Target {
        name: "kwok",
        module: "kwok",
        package: "sigs.k8s.io/kwok/cmd/kwok",
        flags: PLAIN_FLAGS,
    },
];

const fn kubernetes_target(name: &'static str, package: &'static str) -> Target {
    Target {
        name,
        module: "kubernetes",
        package,
        flags: KUBERNETES_FLAGS,
    }
}

/// A line of progress. Written past the test harness's capture, since it explains minutes of silence.
pub(crate) fn say(text: &str) {
    _ = writeln!(std::io::stderr(), "control plane: {text}");
}

/// The folder with all programs and kwok's stages; builds what is missing.
pub(crate) fn kubernetes(cache: &Cache) -> Result<PathBuf> {
    let mut parts = Vec::new();
    for file in [
        "kubernetes/go.mod",
        "kubernetes/go.sum",
        "kwok/go.mod",
        "kwok/go.sum",
    ] {
        parts.push(read(file)?);
    }
    parts.push(KUBERNETES_FLAGS.into());
    let folder = cache.entry(
        "programs",
        &parts.iter().map(Vec::as_slice).collect::<Vec<_>>(),
    );
    let missing = || {
        TARGETS
            .iter()
            .filter(|t| !folder.join(t.name).is_file())
            .collect::<Vec<_>>()
    };
    let stages = folder.join("kwok-stages.yaml");
    if missing().is_empty() && stages.is_file() {
        return Ok(folder);
    }
    let _lock = cache.lock()?;
    let missing = missing();
    check_go()?;
    fs::create_dir_all(&folder).with_context(|| format!("create \"{}\"", folder.display()))?;
    if missing.len() == TARGETS.len() {
        say("first build of the pinned Kubernetes programs; this takes minutes, once");
    }
    let begin = Instant::now();
    for (index, target) in missing.iter().enumerate() {
        build(
            target,
            &folder,
            &format!("{} ({} of {})", target.name, index + 1, missing.len()),
        )?;
    }
    if !stages.is_file() {
        write_whole(&stages, &kwok_stages()?)?;
    }
    if !missing.is_empty() {
        say(&format!(
            "built in {} s: \"{}\"",
            begin.elapsed().as_secs(),
            folder.display()
        ));
    }
    Ok(folder)
}

/// The helper program; builds it when it is missing.
pub(crate) fn helper(cache: &Cache) -> Result<PathBuf> {
    let source = read("helper/main.go")?;
    let folder = cache.entry("helper", &[&source, PLAIN_FLAGS.as_bytes()]);
    let path = folder.join("helper");
    if path.is_file() {
        return Ok(path);
    }
    let _lock = cache.lock()?;
    if !path.is_file() {
        check_go()?;
        fs::create_dir_all(&folder).with_context(|| format!("create \"{}\"", folder.display()))?;
        let target = Target {
            name: "helper",
            module: "helper",
            package: ".",
            flags: PLAIN_FLAGS,
        };
        build(&target, &folder, "its helper")?;
    }
    Ok(path)
}

/// kwok's stages alone, for programs that were not built here.
pub(crate) fn stages_only(cache: &Cache) -> Result<PathBuf> {
    let folder = cache.entry("stages", &[&read("kwok/go.sum")?]);
    let path = folder.join("kwok-stages.yaml");
    if path.is_file() {
        return Ok(path);
    }
    let _lock = cache.lock()?;
    if !path.is_file() {
        check_go()?;
        fs::create_dir_all(&folder).with_context(|| format!("create \"{}\"", folder.display()))?;
        write_whole(&path, &kwok_stages()?)?;
    }
    Ok(path)
}

fn read(file: &str) -> Result<Vec<u8>> {
    let path = Path::new(HERE).join(file);
    fs::read(&path).with_context(|| format!("read \"{}\"", path.display()))
}

/// `go` in the folder of a module, without what the user's environment might add.
fn go(module: &str) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(Path::new(HERE).join(module))
        .stdin(Stdio::null());
    command
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .env("GOFLAGS", "-buildvcs=false");
    for name in ["GOOS", "GOARCH"] {
        command.env_remove(name);
    }
    command
}

fn check_go() -> Result<()> {
    let wanted = format!(
        "Go {}.{} or newer is needed to build the control plane",
        GO.0, GO.1
    );
    let answer = go("helper")
        .args(["env", "GOVERSION"])
        .output()
        .with_context(|| format!("{wanted}; run \"go\""))?;
    let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    match version(&text) {
        Some(found) if found >= GO => Ok(()),
        // An old Go refuses the module itself; its own words say why.
        None => bail!(
            "{wanted}; go said: {}",
            String::from_utf8_lossy(&answer.stderr).trim()
        ),
        Some(_) => bail!("{wanted}; this is {text}"),
    }
}

/// `go1.26.8` → (1, 26); also `go1.27rc1` and `go1.26-custom`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text
        .strip_prefix("go")?
        .split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Builds one program beside its place and renames it there.
fn build(target: &Target, folder: &Path, what: &str) -> Result<()> {
    say(&format!("building {what}"));
    let partial = folder.join(format!("{}.partial", target.name));
    let mut command = go(target.module);
    command
        .args(["build", "-trimpath", "-ldflags", target.flags, "-o"])
        .arg(&partial)
        .arg(target.package);
    run(command, what)?;
    let path = folder.join(target.name);
    fs::rename(&partial, &path).with_context(|| format!("rename to \"{}\"", path.display()))
}

/// Runs a build to its end, with a line of progress now and then, and its words when it fails.
fn run(mut command: Command, what: &str) -> Result<()> {
    let begin = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("run \"go\"")?;
    let mut pipe = child.stderr.take().context("no standard error of \"go\"")?;
    let words = thread::spawn(move || {
        let mut text = String::new();
        _ = pipe.read_to_string(&mut text);
        text
    });
    let mut next = PROGRESS;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() >= next {
            say(&format!(
                "building {what}, {} s so far",
                begin.elapsed().as_secs()
            ));
            next += PROGRESS;
        }
        thread::sleep(Duration::from_millis(100));
    };
    let words = words.join().unwrap_or_default();
    if !status.success() {
        bail!("building {what} failed ({status}):\n{}", words.trim());
    }
    Ok(())
}

/// The stage files of kwok's module, joined as one YAML stream.
fn kwok_stages() -> Result<Vec<u8>> {
    let download = go("kwok")
        .args(["mod", "download", "sigs.k8s.io/kwok"])
        .output()
        .context("run \"go\"")?;
    if !download.status.success() {
        bail!(
            "fetching kwok's module failed: {}",
            String::from_utf8_lossy(&download.stderr).trim()
        );
    }
    let answer = go("kwok")
        .args(["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"])
        .output()?;
    let module = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
    let mut documents = Vec::new();
    for folder in STAGE_FOLDERS {
        let folder = module.join(folder);
        let entries =
            fs::read_dir(&folder).with_context(|| format!("read \"{}\"", folder.display()))?;
        let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        files.retain(|f| {
            f.extension().is_some_and(|e| e == "yaml") && !f.ends_with("kustomization.yaml")
        });
        files.sort();
        for file in files {
            documents.push(
                fs::read_to_string(&file)
                    .with_context(|| format!("read \"{}\"", file.display()))?,
            );
        }
    }
    Ok(documents.join("\n---\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::{KUBERNETES_FLAGS, read, version};

    #[test]
    fn versions_of_go() {
        let cases = [
            ("go1.26.8", Some((1, 26))),
            ("go1.27rc1", Some((1, 27))),
            ("go1.9", Some((1, 9))),
            ("devel", None),
            ("", None),
        ];
        for (text, expect) in cases {
            assert_eq!(version(text), expect, "{text}");
        }
    }

    #[test]
    fn flags_name_the_pinned_version() {
        let text = String::from_utf8(read("kubernetes/go.mod").unwrap()).unwrap();
        let pinned = text
            .lines()
            .find_map(|l| l.trim().strip_prefix("k8s.io/kubernetes v"))
            .and_then(|rest| rest.split_whitespace().next())
            .unwrap();
        assert!(
            KUBERNETES_FLAGS.contains(&format!("gitVersion=v{pinned} ")),
            "{pinned}"
        );
    }
}
