//! Whom calls are made as that do not say so themselves: what a kubeconfig has in `as`, `as-uid`, `as-groups` and
//! `as-user-extra`.
//!
//! kube adds these to what a call brings along, so that one made as a service account would have the groups of the
//! kubeconfig besides: with `as-groups: [system:masters]` each account could do everything.

use http::{Request, Response};
use kube::client::{Body, ConfigExt};
use tower::{ServiceBuilder, service_fn};

/// The header that says whom a call is made as, if not as whoever the credentials say.
pub(super) const USER: &str = "impersonate-user";

/// What a configuration says of it, if it does, as a configuration that says nothing else. From then on it is ours alone.
pub(super) fn take(config: &mut kube::Config) -> Option<kube::Config> {
    let auth = &mut config.auth_info;
    let mut said = kube::Config::new(config.cluster_url.clone());
    said.auth_info.impersonate = auth.impersonate.take();
    said.auth_info.impersonate_uid = auth.impersonate_uid.take();
    said.auth_info.impersonate_groups = auth.impersonate_groups.take();
    said.auth_info.impersonate_user_extra = auth.impersonate_user_extra.take();
    let says = &said.auth_info;
    let something = says.impersonate.is_some()
        || says.impersonate_uid.is_some()
        || says.impersonate_groups.is_some()
        || says.impersonate_user_extra.is_some();
    something.then_some(said)
}

/// The client, where calls are made as the configuration says, but for those that say themselves whom they are made as:
/// these bear nothing of it.
pub(super) fn with(client: kube::Client, said: &kube::Config) -> Result<kube::Client, kube::Error> {
    let (namespace, until) = (client.default_namespace().to_owned(), *client.valid_until());
    let (inner, bare) = (client.clone(), client);
    let service = service_fn(move |request: Request<Body>| send(inner.clone(), request));
    let service = ServiceBuilder::new()
        .layer(said.extra_headers_layer()?)
        .service(service);
    let as_said = kube::Client::new(service, namespace.clone());
    let service = service_fn(move |request: Request<Body>| {
        let says_itself = request.headers().contains_key(USER);
        send(if says_itself { &bare } else { &as_said }.clone(), request)
    });
    Ok(kube::Client::new(service, namespace).with_valid_until(until))
}

async fn send(client: kube::Client, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
    client.send(request).await
}

#[cfg(test)]
mod tests;
