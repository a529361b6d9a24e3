//! How far a command is, on stderr, for whoever waits.
//!
//! On a terminal one line a resource that is waited for, with a spinner and the time; the lines go when the command is
//! done. Elsewhere a line when something has changed, and seldom: a log is read afterwards.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use atc_engine::api::ResourceRef;
use atc_engine::release::readiness::Verdict;
use atc_engine::watch::{Latest, Selection, Target};
use atc_engine::{Observer, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::render;

/// Lines on a terminal at once; further resources are counted in one more. A terminal has 24 lines or more.
const LINES: usize = 15;
/// Time between two pictures of a spinner.
const TICK: Duration = Duration::from_millis(100);
/// Time between two lines where there is no terminal, and before the first.
const PAUSE: Duration = Duration::from_secs(5);
/// Resources that are named in one line.
const NAMED: usize = 3;

/// Shows the steps of a takeoff.
pub(crate) struct Show(Mutex<State>);

enum State {
    Terminal(Terminal),
    Plain(Plain),
}

impl Show {
    /// On stderr, as fits what it is.
    pub(crate) fn new() -> Self {
        let state = if std::io::stderr().is_terminal() {
            State::Terminal(Terminal::new(ProgressDrawTarget::stderr()))
        } else {
            State::Plain(Plain::new(Instant::now()))
        };
        Self(Mutex::new(state))
    }

    /// Takes all lines away, before anything else is said.
    pub(crate) fn end(&self) {
        if let State::Terminal(terminal) = &mut *self.state() {
            terminal.clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        self.end();
    }
}

impl Observer for Show {
    fn interest(&self, _: &Target) {}

    fn interest_in(&self, _: &Selection) {}

    fn latest(&self, _: &ResourceRef) -> Latest {
        Latest::Unknown
    }

    fn latest_in(&self, _: &Selection) -> Option<u64> {
        None
    }

    fn progress(&self, progress: Progress<'_>) {
        match &mut *self.state() {
            State::Terminal(terminal) => terminal.take(progress),
            State::Plain(plain) => {
                if let Some(line) = plain.take(progress, Instant::now()) {
                    render::message(line);
                }
            }
        }
    }
}

/// A step that has no resource of its own, in words.
fn step(progress: Progress<'_>) -> Option<String> {
    match progress {
        Progress::Applying {
            stage,
            stages,
            objects,
        } => {
            let resources = crate::commands::counted(objects);
            Some(if stages > 1 {
                format!("applying {resources} of stage {stage} of {stages}")
            } else {
                format!("applying {resources}")
            })
        }
        Progress::Removing { objects } => {
            Some(format!("removing {}", crate::commands::counted(objects)))
        }
        Progress::Waiting { .. } => None,
    }
}

/// How a resource is named where there is little room.
fn short(object: &ResourceRef) -> String {
    format!("{}/{}", object.group_kind.kind, object.name)
}

/// One line a resource.
struct Terminal {
    lines: MultiProgress,
    /// The step that is on.
    step: Option<ProgressBar>,
    /// Resources that are waited for, and how they stand.
    waiting: BTreeMap<String, Option<ProgressBar>>,
    /// How many have no line.
    more: Option<ProgressBar>,
}

impl Terminal {
    fn new(target: ProgressDrawTarget) -> Self {
        Self {
            lines: MultiProgress::with_draw_target(target),
            step: None,
            waiting: BTreeMap::new(),
            more: None,
        }
    }

    fn take(&mut self, progress: Progress<'_>) {
        if let Some(words) = step(progress) {
            self.clear();
            self.step = Some(self.line(words));
            return;
        }
        let Progress::Waiting { object, verdict } = progress else {
            return;
        };
        let name = short(object);
        match verdict {
            Verdict::Ready => {
                if let Some(Some(line)) = self.waiting.remove(&name) {
                    self.lines.remove(&line);
                }
            }
            Verdict::InProgress(why) | Verdict::Failed(why) => {
                if let Some(step) = self.step.take() {
                    self.lines.remove(&step);
                }
                let words = format!("{name}: {}", render::printable(why));
                match self.waiting.get(&name) {
                    Some(Some(line)) => line.set_message(words),
                    Some(None) => {}
                    None => {
                        let shown = self.waiting.values().flatten().count() < LINES;
                        let line = shown.then(|| self.line(words));
                        self.waiting.insert(name, line);
                    }
                }
            }
        }
        self.count();
    }

    /// Says how many have no line.
    fn count(&mut self) {
        let hidden = self.waiting.values().filter(|line| line.is_none()).count();
        let words = format!("and {}", crate::commands::counted(hidden));
        match &self.more {
            Some(line) if hidden == 0 => {
                self.lines.remove(line);
                self.more = None;
            }
            Some(line) => line.set_message(words),
            None if hidden > 0 => self.more = Some(self.line(words)),
            None => {}
        }
    }

    fn line(&self, words: String) -> ProgressBar {
        let line = self.lines.add(ProgressBar::no_length());
        line.set_style(style());
        line.set_message(words);
        line.enable_steady_tick(TICK);
        line
    }

    fn clear(&mut self) {
        let lines = self.waiting.values().flatten();
        for line in lines.chain(&self.step).chain(&self.more) {
            self.lines.remove(line);
        }
        (self.step, self.more) = (None, None);
        self.waiting.clear();
        // A terminal that is gone is no matter.
        let _ = self.lines.clear();
    }
}

/// Spinner, time, words, cut to the width of the terminal.
fn style() -> ProgressStyle {
    let colour = if render::coloured(true) { ".cyan" } else { "" };
    let template = format!("{{spinner{colour}}} {{elapsed:>4}} {{wide_msg}}");
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// A line now and then.
struct Plain {
    waiting: BTreeMap<String, String>,
    since: Instant,
    said_at: Instant,
    said: String,
}

impl Plain {
    fn new(now: Instant) -> Self {
        Self {
            waiting: BTreeMap::new(),
            since: now,
            said_at: now,
            said: String::new(),
        }
    }

    /// What is to be said, if anything is.
    fn take(&mut self, progress: Progress<'_>, now: Instant) -> Option<String> {
        let Progress::Waiting { object, verdict } = progress else {
            self.waiting.clear();
            (self.since, self.said_at) = (now, now);
            return None;
        };
        match verdict {
            Verdict::Ready => self.waiting.remove(&short(object)),
            // What failed is said by the error that follows.
            Verdict::Failed(_) => return None,
            Verdict::InProgress(why) => self.waiting.insert(short(object), why.clone()),
        };
        if self.waiting.is_empty() || now < self.said_at + PAUSE {
            return None;
        }
        let line = self.words();
        if line == self.said {
            return None;
        }
        self.said_at = now;
        self.said.clone_from(&line);
        let elapsed = now.duration_since(self.since).as_secs();
        Some(format!("waiting since {elapsed} s for {line}"))
    }

    fn words(&self) -> String {
        let named = self.waiting.iter().take(NAMED);
        let named = named.map(|(name, why)| format!("{name}: {why}"));
        let named = named.collect::<Vec<_>>().join("; ");
        match self.waiting.len().saturating_sub(NAMED) {
            0 => named,
            more => format!("{named}; and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests;
