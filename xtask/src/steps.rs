//! Steps that are shown as they go and counted at the end.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;

/// A run of named steps. A failing one does not end the run.
#[derive(Debug)]
pub(crate) struct Steps {
    begin: Instant,
    passed: u64,
    failures: Vec<String>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            begin: Instant::now(),
            passed: 0,
            failures: Vec::new(),
        }
    }

    /// Runs one step, and says how long it took. Returns whether it passed.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) -> bool {
        eprintln!("\n==> {name}   ({})", clock(self.begin.elapsed()));
        let begin = Instant::now();
        match work() {
            Ok(()) => {
                eprintln!("    {name}: ok in {}", clock(begin.elapsed()));
                self.passed += 1;
                true
            }
            Err(error) => {
                eprintln!(
                    "    {name}: FAILED after {}: {error:#}",
                    clock(begin.elapsed())
                );
                self.failures.push(name.to_owned());
                false
            }
        }
    }

    /// Says that a step was left out, and why.
    #[expect(clippy::unused_self, reason = "it reads as the other steps do")]
    pub(crate) fn skip(&self, name: &str, why: &str) {
        eprintln!("\n==> {name}: skipped, {why}");
    }

    /// Counts tests that a step has run.
    pub(crate) fn count(&mut self, passed: u64, failed: Vec<String>) {
        self.passed += passed;
        self.failures.extend(failed);
    }

    /// The last line of the run, and its exit code.
    pub(crate) fn finish(self) -> ExitCode {
        println!();
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        println!("{} in all", clock(self.begin.elapsed()));
        println!("{} passed, {} failed", self.passed, self.failures.len());
        if self.failures.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// `8.3 s` or `2 min 05 s`.
pub(crate) fn clock(span: Duration) -> String {
    match span.as_secs() {
        0..60 => format!("{:.1} s", span.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::clock;

    #[test]
    fn times_as_people_say_them() {
        assert_eq!(clock(Duration::from_millis(8_340)), "8.3 s");
        assert_eq!(clock(Duration::from_secs(125)), "2 min 05 s");
    }
}
