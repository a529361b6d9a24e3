//! `cargo xtask test`: everything that must hold before a change lands.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::{
    Workspace, cluster::lines, generate, guests, steps::Steps, tidy, workspace::run as run_command,
};

/// What `cargo xtask test` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only tests whose names contain this; formatting, lints and licences are left out
    filter: Option<String>,
}

/// Tells the test kit that everything it runs has been built.
const BUILT: &str = "ATC_TESTS_BUILT";

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<ExitCode> {
    let mut steps = Steps::new();
    let whole = arguments.filter.is_none();
    if whole {
        steps.step("format", || {
            run_command(workspace.cargo().args(["fmt", "--all", "--check"]))
        });
        steps.step("layout", || findings(&tidy::check(workspace)?));
        deny(workspace, &mut steps);
        registry(&steps);
        let clippy = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ];
        steps.step("lints", || run_command(workspace.cargo().args(clippy)));
    }
    let built = steps.step("build", || workspace.build_all());
    if whole && built {
        steps.step("generated files", || findings(&generate::check(workspace)?));
    }
    let guests = steps.step("flights", || guests::build(workspace).map(|_| ()));
    let programs = steps.step("control plane's programs", || {
        controlplane::Programs::find(true).map(|_| ())
    });
    if built && guests && programs {
        tests(workspace, arguments, &mut steps)?;
    }
    Ok(steps.finish())
}

fn findings(findings: &[String]) -> Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    bail!(
        "{} findings:\n      {}",
        findings.len(),
        findings.join("\n      ")
    )
}

/// Says so where tests will be left out: what they need is not part of any Rust or Go installation.
fn registry(steps: &Steps) {
    let installed = Command::new("docker-registry")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if installed.is_err() {
        steps.skip(
            "tests with a real registry",
            "docker-registry is not installed (apt-get install docker-registry)",
        );
    }
}

/// Licences and owners of dependencies. Its tool is not part of a Rust installation, and takes minutes to build.
fn deny(workspace: &Workspace, steps: &mut Steps) {
    let installed = Command::new("cargo-deny")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !installed.is_ok_and(|status| status.success()) {
        steps.skip(
            "dependencies",
            "cargo-deny is not installed (cargo install --locked cargo-deny)",
        );
        return;
    }
    let mut command = workspace.cargo();
    command.args([
        "deny",
        "--offline",
        "--log-level",
        "error",
        "--config",
        ".cargo/deny.toml",
        "check",
        "--hide-inclusion-graph",
    ]);
    steps.step("dependencies", || {
        run_command(command.args(["bans", "licenses", "sources"]))
    });
}

/// Runs the tests, shows their output as it comes, and counts.
fn tests(workspace: &Workspace, arguments: &Arguments, steps: &mut Steps) -> Result<()> {
    eprintln!("\n==> tests");
    let mut command = workspace.cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast"])
        .env(BUILT, "1");
    command.args(&arguments.filter);
    let (mut child, output) = lines(&mut command)?;
    let mut count = Count::default();
    for line in output {
        println!("{line}");
        count.line(&line);
    }
    let status = child.wait().context("wait for cargo")?;
    if !status.success() && count.failed.is_empty() {
        // A binary that did not compile or was ended by a signal has no failed test to name.
        count.failed.push(format!("cargo test ({status})"));
    }
    steps.count(count.passed, count.failed);
    Ok(())
}

/// What the lines of cargo's test harness say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: Vec<String>,
}

impl Count {
    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("test result: ") {
            let passed = rest
                .split_once(". ")
                .and_then(|(_, rest)| rest.split_once(" passed;"));
            self.passed += passed
                .and_then(|(number, _)| number.parse::<u64>().ok())
                .unwrap_or(0);
        } else if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failed.push(format!("test {name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Count;

    #[test]
    fn lines_are_counted() {
        let mut count = Count::default();
        for line in [
            "test a::b ... ok",
            "test a::c ... FAILED",
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
            "something else: 5 passed;",
        ] {
            count.line(line);
        }
        assert_eq!(
            count,
            Count {
                passed: 15,
                failed: vec!["test a::c".into()]
            }
        );
    }
}
