//! What `/live` and `/ready` say: the truth, with the reason.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A watch that has been silent for this long makes the process not ready. The server ends each watch after less than a
/// minute, so this is two reconnections that did not come about.
pub const SILENCE: Duration = Duration::from_mins(2);

/// State of the parts that readiness rests on.
#[derive(Debug)]
pub struct Health(Mutex<Parts>);

#[derive(Debug)]
struct Parts {
    /// Why our own CRDs and webhooks are not there yet; `None` when they are.
    installing: Option<String>,
    /// Whether all Airways have been listed once.
    airways_listed: bool,
    /// When the watch of Airways was last alive.
    airways_alive: Instant,
}

impl Default for Health {
    fn default() -> Self {
        Self(Mutex::new(Parts {
            installing: Some("starting".into()),
            airways_listed: false,
            airways_alive: Instant::now(),
        }))
    }
}

impl Health {
    fn with<T>(&self, act: impl FnOnce(&mut Parts) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says why the installation has not ended, or that it has.
    pub fn installing(&self, why: Option<String>) {
        self.with(|parts| parts.installing = why);
    }

    /// All Airways have been listed.
    pub fn airways_listed(&self) {
        self.with(|parts| parts.airways_listed = true);
    }

    /// The watch of Airways was alive.
    pub fn airways_alive(&self, at: Instant) {
        self.with(|parts| parts.airways_alive = at);
    }

    /// `Ok` when work can be done, else why not. `silent` names a watch that has been silent for too long.
    pub fn ready(&self, now: Instant, silent: Option<String>) -> Result<(), String> {
        self.with(|parts| {
            if let Some(why) = &parts.installing {
                return Err(format!("not installed: {why}"));
            }
            if !parts.airways_listed {
                return Err("Airways have not been listed yet".into());
            }
            let age = now.saturating_duration_since(parts.airways_alive);
            if age > SILENCE {
                return Err(format!(
                    "the watch of Airways has been silent for {} s",
                    age.as_secs()
                ));
            }
            silent.map_or(Ok(()), Err)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_why_not() {
        let (health, now) = (Health::default(), Instant::now());
        assert!(
            health
                .ready(now, None)
                .is_err_and(|why| why.contains("starting"))
        );
        health.installing(None);
        assert!(
            health
                .ready(now, None)
                .is_err_and(|why| why.contains("listed"))
        );
        health.airways_listed();
        health.airways_alive(now);
        assert_eq!(health.ready(now, None), Ok(()));
        assert!(health.ready(now, Some("a watch is silent".into())).is_err());
        assert!(
            health
                .ready(now + SILENCE + Duration::from_secs(1), None)
                .is_err_and(|why| why.contains("silent"))
        );
    }
}
