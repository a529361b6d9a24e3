//! How a registry is spoken with that may speak plain http: what was found out of it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use reqwest::StatusCode;
use tokio::time::Instant;

use crate::http::{Answer, read_body};
use crate::memory::lock;

/// How long a host that may speak plain http may take to answer over https: 3 s. It need not understand a word of it.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long what was found out is remembered: 1 min, so that a registry may change and nobody waits long for it.
const REMEMBERED: Duration = Duration::from_mins(1);
/// Of how many hosts it is remembered before all is forgotten: 1024.
const MAX_HOSTS: usize = 1024;
/// The largest answer that a registry gives to who only asks whether it is there: 8 KiB.
const MAX_GREETING: u64 = 8 << 10;
/// What registries say of themselves.
const VERSION: &str = "docker-distribution-api-version";

/// How a registry is spoken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Secure,
    /// Nobody speaks TLS there.
    Plain,
    /// Plain http because TLS got no answer in time: perhaps somebody saw to that.
    Downgraded,
}

impl Scheme {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Secure => "https",
            Self::Plain | Self::Downgraded => "http",
        }
    }
}

/// What was found out, by host.
#[derive(Default)]
pub(super) struct Schemes(Mutex<HashMap<String, (Scheme, Instant)>>);

impl Schemes {
    pub(super) fn get(&self, host: &str) -> Option<Scheme> {
        self.get_at(host, Instant::now())
    }

    fn get_at(&self, host: &str, now: Instant) -> Option<Scheme> {
        let all = lock(&self.0);
        let (scheme, until) = all.get(host)?;
        (now < *until).then_some(*scheme)
    }

    /// Remembers it, but for a downgrade, which the next one must find out anew.
    pub(super) fn put(&self, host: &str, scheme: Scheme) {
        if scheme == Scheme::Downgraded {
            return;
        }
        let mut all = lock(&self.0);
        if all.len() >= MAX_HOSTS {
            all.clear();
        }
        all.insert(host.to_owned(), (scheme, Instant::now() + REMEMBERED));
    }

    pub(super) fn forget(&self, host: &str) {
        lock(&self.0).remove(host);
    }
}

/// Whether this is how a registry answers to who only asks whether it is there. A TLS server that is spoken with in plain
/// http may answer too, to say so.
pub(super) async fn is_greeting(answer: Answer) -> bool {
    let status = answer.response.status();
    let may = [
        StatusCode::OK,
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::NOT_FOUND,
    ];
    if !may.contains(&status) {
        return false;
    }
    if answer.response.headers().contains_key(VERSION) {
        return true;
    }
    let body = read_body(answer.response, &answer.url, MAX_GREETING).await;
    body.is_ok_and(|body| {
        body.trim_ascii().is_empty() || serde_json::from_slice::<serde_json::Value>(&body).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_remembered_for_a_while() {
        let schemes = Schemes::default();
        for (scheme, kept) in [
            (Scheme::Secure, Some("https")),
            (Scheme::Plain, Some("http")),
            (Scheme::Downgraded, None),
        ] {
            schemes.put("h", scheme);
            assert_eq!(schemes.get("h").map(Scheme::name), kept, "{scheme:?}");
            let later = Instant::now() + REMEMBERED;
            assert_eq!(schemes.get_at("h", later), None, "{scheme:?}");
            schemes.forget("h");
        }
        schemes.put("h", Scheme::Plain);
        schemes.forget("h");
        assert_eq!(schemes.get("h"), None);
    }
}
