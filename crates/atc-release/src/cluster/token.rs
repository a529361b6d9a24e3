//! A token in a file that is replaced while the process runs, as a ServiceAccount's is: read anew every so often, and at once
//! when the API server refuses the one before. kube does the first only, so that whoever's token was revoked fails for most
//! of a minute with the next one at hand.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use kube::client::{AuthError, Body};
use kube::config::AuthInfo;
use tower::service_fn;

/// The file is read again so often: a kubelet replaces a token minutes before it runs out.
const REREAD: Duration = Duration::from_secs(50);

/// A token file, and what it had when it was last read.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    held: Mutex<(HeaderValue, Instant)>,
}

impl TokenFile {
    /// The file that this configuration authenticates with, if it does. From then on it is ours alone.
    pub(super) fn take(auth: &mut AuthInfo, now: Instant) -> Result<Option<Self>, AuthError> {
        let other = auth.auth_provider.is_some()
            || auth.token.is_some()
            || (auth.username.is_some() && auth.password.is_some());
        let Some(path) = auth.token_file.take_if(|_| !other) else {
            return Ok(None);
        };
        // It would take the place of the file, which comes before it.
        auth.exec = None;
        let path = PathBuf::from(path);
        let header = read(&path)?;
        Ok(Some(Self {
            path,
            held: Mutex::new((header, now)),
        }))
    }

    /// What a request is sent with. Where the file can't be read, the token before goes on: it may have been meant to be
    /// read once.
    fn header(&self, now: Instant) -> HeaderValue {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(held.1) >= REREAD {
            held.0 = read(&self.path).unwrap_or_else(|_| held.0.clone());
            held.1 = now;
        }
        held.0.clone()
    }

    /// What to send instead of what was refused, if the file has something else by now.
    fn instead_of(&self, refused: &HeaderValue, now: Instant) -> Option<HeaderValue> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.0 == *refused {
            *held = (read(&self.path).ok()?, now);
        }
        (held.0 != *refused).then(|| held.0.clone())
    }
}

/// The file holds a few hundred bytes on a file system in memory: reading it is no wait.
fn read(path: &Path) -> Result<HeaderValue, AuthError> {
    let token = std::fs::read_to_string(path)
        .map_err(|source| AuthError::ReadTokenFile(source, path.to_owned()))?;
    let token = token.trim();
    if token.is_empty() {
        // Whoever writes it has emptied it first. Without a token one would be nobody, which is refused with other words.
        let empty = std::io::Error::new(std::io::ErrorKind::InvalidData, "it is empty");
        return Err(AuthError::ReadTokenFile(empty, path.to_owned()));
    }
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let mut header = header.map_err(AuthError::InvalidBearerToken)?;
    header.set_sensitive(true);
    Ok(header)
}

/// The client with the token of the file in each request. One that is refused is sent once more if the file has another
/// token by then.
pub(super) fn with(client: &kube::Client, file: TokenFile) -> kube::Client {
    let (file, inner) = (Arc::new(file), client.clone());
    let service =
        service_fn(move |request: Request<Body>| send(inner.clone(), file.clone(), request));
    kube::Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}

async fn send(
    client: kube::Client,
    file: Arc<TokenFile>,
    mut request: Request<Body>,
) -> Result<Response<Body>, kube::Error> {
    let token = file.header(Instant::now());
    let again = copy(&request);
    request.headers_mut().insert(AUTHORIZATION, token.clone());
    let answer = client.send(request).await?;
    if answer.status() != StatusCode::UNAUTHORIZED {
        return Ok(answer);
    }
    match (again, file.instead_of(&token, Instant::now())) {
        (Some(mut again), Some(newer)) => {
            tracing::info!(path = ?file.path, "the API server refused the token, and the file has a new one");
            again.headers_mut().insert(AUTHORIZATION, newer);
            client.send(again).await
        }
        _ => Ok(answer),
    }
}

/// The same request once more, unless its body is a stream.
pub(super) fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

#[cfg(test)]
mod tests;
