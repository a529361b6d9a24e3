//! Requests to one repository: the scheme that its registry speaks, and what proves to it who we are.

use std::sync::Mutex;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use tokio::time::Instant;
use url::Url;

use super::challenge::{self, Challenge};
use super::scheme::{PROBE_TIMEOUT, Scheme, is_greeting};
use super::token::{Wanted, basic, bearer};
use super::{Registries, refusal, unusable};
use crate::credentials::Credential;
use crate::error::{ArtifactError, is_untrusted};
use crate::gate::Slot;
use crate::http::{Answer, Request, Upload};
use crate::memory::lock;
use crate::reference::OciLocation;
use crate::retry::{Failure, retry};

/// How often one request may be answered with a challenge: 2. The first one asks who we are, a second one for another
/// token; then it is a loop.
const MAX_CHALLENGES: usize = 2;
/// One artifact's repository while it is pulled or pushed.
pub(super) struct Session<'a> {
    registries: &'a Registries,
    at: &'a OciLocation,
    /// `pull`, or `pull,push`.
    actions: &'static str,
    /// When all must be done.
    end: Instant,
    /// The place of the download; none for a push.
    slot: Option<&'a Slot>,
    authorization: Mutex<Option<HeaderValue>>,
    /// The token that was got last in this session, not before it.
    got: Mutex<Option<HeaderValue>>,
    found: Mutex<Option<Scheme>>,
}

/// One request to the repository.
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Upload>,
}

impl Ask {
    pub(super) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
        }
    }
}

impl<'a> Session<'a> {
    pub(super) fn new(
        registries: &'a Registries,
        at: &'a OciLocation,
        actions: &'static str,
        end: Instant,
        slot: Option<&'a Slot>,
    ) -> Self {
        Self {
            registries,
            at,
            actions,
            end,
            slot,
            authorization: Mutex::default(),
            got: Mutex::default(),
            found: Mutex::default(),
        }
    }

    /// Tries an operation as often as the limits allow.
    pub(super) async fn retry<T, Try>(&self, attempt: impl Fn() -> Try) -> Result<T, ArtifactError>
    where
        Try: Future<Output = Result<T, Failure>>,
    {
        let location = self.at.to_string();
        let limits = self.registries.http.limits();
        let result = retry(limits, self.end, &location, self.slot, attempt).await;
        result.map_err(|error| error.on_the_way_to(&location))
    }

    /// The URL of something in the repository: `manifests/v1`, `blobs/sha256:…`.
    pub(super) async fn url(&self, path: &str) -> Result<Url, ArtifactError> {
        let scheme = self.scheme().await?;
        let (host, repository) = (self.at.api_host(), self.at.repository());
        self.parse(&format!("{scheme}://{host}/v2/{repository}/{path}"))
    }

    fn parse(&self, url: &str) -> Result<Url, ArtifactError> {
        Url::parse(url).map_err(|_| unusable(self.at, "its address is no URL"))
    }

    /// How the registry is spoken with: as this session found out, or another one a moment ago.
    async fn scheme(&self) -> Result<&'static str, ArtifactError> {
        let [first, others @ ..] = self.at.schemes() else {
            return Ok("https");
        };
        let [plain] = others else {
            return Ok(first);
        };
        let host = self.at.api_host();
        let found = *lock(&self.found);
        if let Some(scheme) = found {
            return Ok(scheme.name());
        }
        let scheme = if let Some(scheme) = self.registries.schemes.get(host) {
            scheme
        } else {
            let scheme = self.probe(first, plain).await?;
            self.registries.schemes.put(host, scheme);
            scheme
        };
        *lock(&self.found) = Some(scheme);
        Ok(scheme.name())
    }

    /// Finds out what the registry speaks where plain http is allowed at all: https if anything answers there, or if a
    /// certificate, its or ours, is refused or can't be used; plain http only if what answers there looks like a registry.
    async fn probe(
        &self,
        secure: &'static str,
        plain: &'static str,
    ) -> Result<Scheme, ArtifactError> {
        let probed = tokio::time::timeout(PROBE_TIMEOUT, self.ping(secure)).await;
        let late = match probed {
            Ok(Ok(_)) => return Ok(Scheme::Secure),
            Ok(Err(error)) if is_of_certificates(&error) => return Ok(Scheme::Secure),
            Ok(Err(_)) => false,
            Err(_) => true,
        };
        let answer = self.ping(plain).await?;
        let looks_right = match answer {
            Some(answer) => is_greeting(answer).await,
            None => false,
        };
        Ok(match (looks_right, late) {
            // Such as the complaint of a TLS server: the request itself tells then what is wrong with https.
            (false, _) => Scheme::Secure,
            (true, false) => Scheme::Plain,
            (true, true) => Scheme::Downgraded,
        })
    }

    /// What the registry answers in this scheme to who only asks whether it is there; nothing if that leads elsewhere.
    async fn ping(&self, scheme: &str) -> Result<Option<Answer>, ArtifactError> {
        let url = self.parse(&format!("{scheme}://{}/v2/", self.at.api_host()))?;
        let request = Request {
            insecure: self.at.is_insecure(),
            ..Request::get(url)
        };
        match self.registries.http.send(&request).await {
            Ok(answer) => Ok(Some(answer).filter(|answer| !answer.elsewhere)),
            Err(ArtifactError::Redirect { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether credentials may go over this connection at all.
    fn is_downgraded(&self) -> bool {
        *lock(&self.found) == Some(Scheme::Downgraded)
    }

    /// What was found out of the registry does not hold any more, perhaps.
    fn forget_scheme(&self) {
        lock(&self.found).take();
        self.registries.schemes.forget(self.at.api_host());
    }

    /// Sends a request, and proves who we are when that is asked for. Any status but 401 is the caller's matter.
    pub(super) async fn send(&self, ask: &Ask) -> Result<Answer, Failure> {
        let mut request = Request {
            method: ask.method.clone(),
            url: ask.url.clone(),
            headers: ask.headers.clone(),
            authorization: None,
            body: ask.body.clone(),
            insecure: self.at.is_insecure(),
        };
        let same_host = self.is_registry(&ask.url);
        for round in 0.. {
            request.authorization = if same_host {
                lock(&self.authorization).clone()
            } else {
                None
            };
            let answer = self.registries.http.send(&request).await;
            let answer = answer.inspect_err(|_| self.forget_scheme())?;
            if answer.response.status() != StatusCode::UNAUTHORIZED
                || answer.elsewhere
                || !same_host
            {
                return Ok(answer);
            }
            if round >= MAX_CHALLENGES {
                return Err(refusal(
                    self.at,
                    answer,
                    "unauthorized: it goes on asking for credentials",
                )
                .await);
            }
            let challenges = challenge::read(answer.response.headers());
            let plain = ask.url.scheme() == "http" || self.at.is_insecure();
            match self.answer(&challenges, plain, round).await? {
                Some(value) => *lock(&self.authorization) = Some(value),
                None => return Err(self.unauthorized(answer, &challenges).await),
            }
        }
        Err(unusable(self.at, "unauthorized: it goes on asking for credentials").into())
    }

    /// An upload's address may be on another host; what is proved to the registry is none of its business.
    fn is_registry(&self, url: &Url) -> bool {
        let own = Url::parse(&format!("{}://{}/", url.scheme(), self.at.api_host()));
        own.is_ok_and(|own| own.origin() == url.origin())
    }

    /// The header that a challenge asks for, or nothing if all there is to say was said.
    async fn answer(
        &self,
        challenges: &[Challenge],
        plain: bool,
        round: usize,
    ) -> Result<Option<HeaderValue>, Failure> {
        let refused = lock(&self.authorization).clone();
        let credential = if self.is_downgraded() {
            None
        } else {
            self.credential().await?
        };
        if let Some(Credential::Token(token)) = &credential {
            let header = bearer(token).filter(|header| refused.as_ref() != Some(header));
            return Ok(header);
        }
        let own_scope = format!("repository:{}:{}", self.at.repository(), self.actions);
        for challenge in challenges {
            let Challenge::Bearer {
                realm,
                service,
                scope,
            } = challenge
            else {
                continue;
            };
            let other = scope.as_deref().filter(|scope| *scope != own_scope);
            let mut wanted = Wanted {
                realm,
                service: service.as_deref(),
                scope: &own_scope,
                credential: credential.as_ref(),
                plain,
            };
            let tokens = &self.registries.tokens;
            let kept = tokens.kept(&wanted);
            let is_new = kept.is_some() && *lock(&self.got) == kept;
            if round > 0 && is_new && refused == kept {
                // A token that was got for this very request; perhaps the registry wants another scope.
                match other {
                    Some(other) => wanted.scope = other,
                    None => return Ok(None),
                }
            } else if kept.is_some() && refused != kept {
                return Ok(kept);
            }
            let token = tokens.get(&self.registries.http, self.at, &wanted).await?;
            *lock(&self.got) = Some(token.clone());
            return Ok(Some(token));
        }
        match credential {
            Some(credential) if challenges.contains(&Challenge::Basic) => {
                let header = basic(self.at, &credential)?;
                Ok(Some(header).filter(|header| refused.as_ref() != Some(header)))
            }
            _ => Ok(None),
        }
    }

    async fn credential(&self) -> Result<Option<Credential>, ArtifactError> {
        let found = self.registries.credentials.find(self.at).await;
        found.map_err(|source| ArtifactError::Credentials {
            location: self.at.to_string(),
            source: source.into(),
        })
    }

    async fn unauthorized(&self, answer: Answer, challenges: &[Challenge]) -> Failure {
        let (registry, advice) = (self.at.registry(), self.registries.credentials.advice());
        let more = if challenges.is_empty() {
            "unauthorized: it names no way of authentication that is known here".to_owned()
        } else if self.is_downgraded() {
            format!(
                "unauthorized: '{registry}' does not answer over https, and no credentials are sent over plain http then"
            )
        } else if lock(&self.authorization).is_some() {
            format!("unauthorized: the credentials for '{registry}' are refused; {advice}")
        } else {
            format!("unauthorized: there are no credentials for '{registry}'; {advice}")
        };
        refusal(self.at, answer, &more).await
    }
}

/// Whether it failed for certificates, the server's or ours: then TLS is spoken there, or meant to be.
fn is_of_certificates(error: &ArtifactError) -> bool {
    let ours = matches!(
        error,
        ArtifactError::ClientCertificate { .. } | ArtifactError::Certificates { .. }
    );
    ours || is_untrusted(error)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;
    use crate::certificates::CertificateError;

    #[test]
    fn what_is_wrong_with_certificates_never_leads_to_plain_http() {
        let url = || "https://h/v2/".to_owned();
        // Any error of the client: its words name no certificate.
        let built = reqwest::Client::builder().user_agent("\n").build();
        let client = Arc::new(built.unwrap_err());
        let file = |source| ArtifactError::File {
            path: "x".into(),
            source: Arc::new(source),
        };
        let certificates = |source| ArtifactError::Certificates {
            url: url(),
            source: Arc::new(source),
        };
        for (error, is_tls) in [
            (
                ArtifactError::ClientCertificate {
                    url: url(),
                    source: Arc::clone(&client),
                },
                true,
            ),
            (
                certificates(CertificateError::Read {
                    path: "x".into(),
                    source: io::Error::other("is a directory"),
                }),
                true,
            ),
            (
                certificates(CertificateError::TooMuch { path: "x".into() }),
                true,
            ),
            (
                file(io::Error::other("invalid peer certificate: UnknownIssuer")),
                true,
            ),
            (file(io::Error::other("connection refused")), false),
            (
                ArtifactError::Download {
                    url: url(),
                    source: client,
                },
                false,
            ),
        ] {
            assert_eq!(is_of_certificates(&error), is_tls, "{error:?}");
        }
    }
}
