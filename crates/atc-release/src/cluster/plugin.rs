//! Credentials that a plugin gives (`exec` in a kubeconfig): it is asked again when the API server refuses those before. kube
//! asks again when the time of a token is over, and never for a token without one, nor for a certificate.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use kube::client::Body;
use kube::config::AuthInfo;
use tokio::time::Instant;
use tower::service_fn;

use super::token::copy;

/// Two refusals for which the plugin is asked are at least so far apart. 10 s: it is a process, and what it gives may be refused
/// as well. What is refused meanwhile stays so.
const PAUSE: Duration = Duration::from_secs(10);

/// Makes a client, for which it asks the plugin and waits.
type Make = dyn Fn() -> Result<kube::Client, kube::Error> + Send + Sync;

struct Plugin {
    make: Box<Make>,
    /// The client with what the plugin gave last, and how often it was asked before.
    held: Mutex<(kube::Client, u64)>,
    /// When it was last asked for a refusal. Locked while it is asked.
    asked: Arc<tokio::sync::Mutex<Option<Instant>>>,
}

/// Whether a plugin says who we are. All else that may do so comes before it.
pub(super) fn is_used(auth: &AuthInfo) -> bool {
    let other = auth.auth_provider.is_some()
        || auth.token.is_some()
        || auth.token_file.is_some()
        || (auth.username.is_some() && auth.password.is_some());
    auth.exec.is_some() && !other
}

/// The client, made anew when it is refused. What was refused is then sent once more.
pub(super) fn with(
    client: kube::Client,
    make: impl Fn() -> Result<kube::Client, kube::Error> + Send + Sync + 'static,
) -> kube::Client {
    let (namespace, until) = (client.default_namespace().to_owned(), *client.valid_until());
    let plugin = Arc::new(Plugin {
        make: Box::new(make),
        held: Mutex::new((client, 0)),
        asked: Arc::default(),
    });
    let service = service_fn(move |request: Request<Body>| send(plugin.clone(), request));
    kube::Client::new(service, namespace).with_valid_until(until)
}

async fn send(plugin: Arc<Plugin>, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
    let (client, turn) = plugin.held();
    let again = copy(&request);
    let answer = client.send(request).await?;
    let Some(again) = again.filter(|_| answer.status() == StatusCode::UNAUTHORIZED) else {
        return Ok(answer);
    };
    match plugin.instead_of(turn).await {
        Some(newer) => newer.send(again).await,
        None => Ok(answer),
    }
}

impl Plugin {
    fn held(&self) -> (kube::Client, u64) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    /// What to send with instead of the client that was refused, if there is something else by now.
    async fn instead_of(self: Arc<Self>, refused: u64) -> Option<kube::Client> {
        let mut asked = self.asked.clone().lock_owned().await;
        let (client, turn) = self.held();
        if turn != refused {
            return Some(client);
        }
        if asked.is_some_and(|asked| asked.elapsed() < PAUSE) {
            return None;
        }
        *asked = Some(Instant::now());
        // It goes on where whoever waits for it does not, and nobody asks beside it: it may ask the user.
        let asking = move || {
            let made = self.ask(turn);
            drop(asked);
            made
        };
        tokio::task::spawn_blocking(asking).await.ok().flatten()
    }

    /// Asks, and keeps what comes of it.
    fn ask(&self, turn: u64) -> Option<kube::Client> {
        let client = match (self.make)() {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the API server refused the credentials, and the plugin of the kubeconfig gives no others"
                );
                return None;
            }
        };
        tracing::info!(
            "the API server refused the credentials; the plugin of the kubeconfig was asked again"
        );
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = (client.clone(), turn + 1);
        Some(client)
    }
}

#[cfg(test)]
mod tests;
