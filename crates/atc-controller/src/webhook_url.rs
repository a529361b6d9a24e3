//! The URL by which the API server reaches an atc that runs outside of the cluster.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

/// A URL that webhooks may have: `https`, a host, perhaps a port and a path, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl(Url);

/// Why a URL can't be that of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookUrlError {
    /// It is no URL.
    #[error("it is no URL")]
    Malformed(#[source] url::ParseError),
    /// The API server calls no webhook without TLS.
    #[error("it must begin with https://, since the API server calls no webhook without TLS")]
    Scheme,
    /// It names no host.
    #[error("it must name a host behind https://")]
    Host,
    /// Its path would be a pattern to our server.
    #[error("its path may have letters, digits, \"-\", \"_\", \".\" and \"/\" only")]
    Path,
    /// It says more than where.
    #[error("it may have no user, no password, no query and no fragment")]
    Beyond,
}

impl FromStr for WebhookUrl {
    type Err = WebhookUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(WebhookUrlError::Malformed)?;
        if url.scheme() != "https" {
            return Err(WebhookUrlError::Scheme);
        }
        // Such a URL is read as if the next part were the host.
        let (_, rest) = text.split_once(':').unwrap_or_default();
        if !rest.starts_with("//") || rest.starts_with("///") {
            return Err(WebhookUrlError::Host);
        }
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !bare {
            return Err(WebhookUrlError::Beyond);
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
        if url.path().bytes().all(plain) && !url.path().contains("//") {
            Ok(Self(url))
        } else {
            Err(WebhookUrlError::Path)
        }
    }
}

impl WebhookUrl {
    /// The URL of a path, which begins with a slash.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0.as_str().trim_end_matches('/'))
    }

    /// Its path, without a slash at its end; empty for the root.
    pub(crate) fn prefix(&self) -> String {
        self.0.path().trim_end_matches('/').to_owned()
    }

    /// The name or address of its host, as a certificate has it.
    pub fn host(&self) -> String {
        match self.0.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => String::new(),
        }
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_hosts() {
        for (text, at, host) in [
            (
                "https://localhost:3000",
                "https://localhost:3000/x",
                "localhost",
            ),
            (
                "https://Atc.example.dev/",
                "https://atc.example.dev/x",
                "atc.example.dev",
            ),
            (
                "https://10.0.0.1:8443/a/b/",
                "https://10.0.0.1:8443/a/b/x",
                "10.0.0.1",
            ),
            ("https://[::1]:3000", "https://[::1]:3000/x", "::1"),
        ] {
            let url: WebhookUrl = text.parse().expect(text);
            assert_eq!((url.at("/x").as_str(), url.host().as_str()), (at, host));
            assert!(
                at.ends_with(&format!("{}/x", url.prefix())),
                "{}",
                url.prefix()
            );
        }
    }

    #[test]
    fn what_no_webhook_may_have_is_refused() {
        for (text, words) in [
            ("", "no URL"),
            ("localhost:3000", "https://"),
            ("https://", "no URL"),
            ("http://localhost", "https://"),
            ("https:///localhost", "name a host"),
            ("https:/localhost", "name a host"),
            ("https:localhost", "name a host"),
            ("https://me@localhost", "no user"),
            ("https://me:word@localhost", "no password"),
            ("https://localhost?a", "no query"),
            ("https://localhost#a", "no fragment"),
            ("https://localhost/{a}", "its path"),
            ("https://localhost/a//b", "its path"),
            ("https://localhost/%2f", "its path"),
        ] {
            let error = text.parse::<WebhookUrl>().expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.contains("word@"), "{error}");
        }
    }
}
