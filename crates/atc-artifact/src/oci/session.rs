//! Requests to one repository: the scheme that its registry speaks, and what proves to it who we are.

use std::sync::Mutex;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use tokio::time::Instant;
use url::Url;

use super::challenge::{self, Challenge};
use super::token::{Wanted, basic, bearer};
use super::{MAX_SCHEMES, Registries, refusal, unusable};
use crate::credentials::Credential;
use crate::error::{ArtifactError, is_untrusted};
use crate::http::{Answer, Request, Upload};
use crate::memory::lock;
use crate::reference::OciLocation;
use crate::retry::{Failure, retry};

/// How often one request may be answered with a challenge: 2. The first one asks who we are, a second one for another
/// token; then it is a loop.
const MAX_CHALLENGES: usize = 2;
/// How long a host that may speak plain http may take to answer over https: 3 s. It need not understand a word of it.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// One artifact's repository while it is pulled or pushed.
pub(super) struct Session<'a> {
    registries: &'a Registries,
    at: &'a OciLocation,
    /// `pull`, or `pull,push`.
    actions: &'static str,
    /// When all must be done.
    end: Instant,
    authorization: Mutex<Option<HeaderValue>>,
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
    ) -> Self {
        Self {
            registries,
            at,
            actions,
            end,
            authorization: Mutex::default(),
        }
    }

    /// Tries an operation as often as the limits allow.
    pub(super) async fn retry<T, Try>(&self, attempt: impl Fn() -> Try) -> Result<T, ArtifactError>
    where
        Try: Future<Output = Result<T, Failure>>,
    {
        let location = self.at.to_string();
        let limits = self.registries.http.limits();
        let result = retry(limits, self.end, &location, attempt).await;
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

    /// The scheme that the registry speaks. Where plain http is allowed at all, https is tried first, and remembered
    /// if anything answers there; a certificate that is not trusted is no reason to speak plain http.
    async fn scheme(&self) -> Result<&'static str, ArtifactError> {
        let [first, others @ ..] = self.at.schemes() else {
            return Ok("https");
        };
        let [plain] = others else {
            return Ok(first);
        };
        let host = self.at.api_host();
        if let Some(scheme) = lock(&self.registries.schemes).get(host) {
            return Ok(scheme);
        }
        let secure = tokio::time::timeout(PROBE_TIMEOUT, self.answers(first)).await;
        let scheme = match secure {
            Ok(Ok(())) => first,
            Ok(Err(error)) if is_untrusted(&error) => return Ok(first),
            Ok(Err(_)) | Err(_) => {
                self.answers(plain).await?;
                plain
            }
        };
        let mut all = lock(&self.registries.schemes);
        if all.len() >= MAX_SCHEMES {
            all.clear();
        }
        all.insert(host.to_owned(), scheme);
        Ok(scheme)
    }

    /// Whether anything answers in this scheme, whatever it says.
    async fn answers(&self, scheme: &str) -> Result<(), ArtifactError> {
        let url = self.parse(&format!("{scheme}://{}/v2/", self.at.api_host()))?;
        let request = Request {
            insecure: self.at.is_insecure(),
            ..Request::get(url)
        };
        match self.registries.http.send(&request).await {
            Ok(_) | Err(ArtifactError::Redirect { .. }) => Ok(()),
            Err(error) => Err(error),
        }
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
            let answer = self.registries.http.send(&request).await?;
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
        let credential = self.credential().await?;
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
            if round > 0 && kept.is_some() && refused == kept {
                // A token that was got for this very request; perhaps the registry wants another scope.
                match other {
                    Some(other) => wanted.scope = other,
                    None => return Ok(None),
                }
            } else if kept.is_some() && refused != kept {
                return Ok(kept);
            }
            return tokens
                .get(&self.registries.http, self.at, &wanted)
                .await
                .map(Some);
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
        } else if lock(&self.authorization).is_some() {
            format!("unauthorized: the credentials for '{registry}' are refused; {advice}")
        } else {
            format!("unauthorized: there are no credentials for '{registry}'; {advice}")
        };
        refusal(self.at, answer, &more).await
    }
}
