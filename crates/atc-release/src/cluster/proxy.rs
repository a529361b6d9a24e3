//! Through which proxy the API server is reached: that of the kubeconfig, else that of the environment, as Go's clients do.
//!
//! kube takes a proxy of the environment for every server, this machine included, and holds `NO_PROXY` against the address of
//! the proxy, also of one that the kubeconfig names.

use std::net::IpAddr;

use http::Uri;
use http::uri::InvalidUri;
use ipnet::IpNet;
use kube::config::Kubeconfig;

/// The proxy that the kubeconfig names for the cluster of this context, or of its current one.
pub(super) fn named(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(kubeconfig.current_context.as_deref())?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|one| one.name == context)?.context.as_ref()?;
    let mut clusters = kubeconfig.clusters.iter();
    let cluster = clusters.find(|one| one.name == context.cluster)?;
    let proxy = cluster.cluster.as_ref()?.proxy_url.as_deref()?;
    (!proxy.is_empty()).then(|| proxy.to_owned())
}

/// The proxy for this server: the named one, whatever the environment says; else that of the environment for the server's
/// scheme, unless it is for others only.
pub(super) fn choose(
    server: &Uri,
    named: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, InvalidUri> {
    if let Some(proxy) = named {
        return proxy.parse().map(Some);
    }
    let first = |names: [&str; 2]| {
        let mut said = names.into_iter().filter_map(&variable);
        said.find(|text| !text.is_empty())
    };
    let proxy = first(match server.scheme_str() {
        Some("http") => ["HTTP_PROXY", "http_proxy"],
        _ => ["HTTPS_PROXY", "https_proxy"],
    });
    let Some(proxy) = proxy else {
        return Ok(None);
    };
    if is_direct(server, &first(["NO_PROXY", "no_proxy"]).unwrap_or_default()) {
        return Ok(None);
    }
    let proxy = if proxy.contains("://") {
        proxy
    } else {
        format!("http://{proxy}")
    };
    proxy.parse().map(Some)
}

/// Whether a proxy of the environment is not for this server: it is on this machine, or `NO_PROXY` names it. The rules are
/// those of Go (`golang.org/x/net/http/httpproxy`), which curl's, and so reqwest's, are not: `example.com` is also for what is
/// below it, `.example.com` and `*.example.com` only for that; any may end in a port; `*` is everything.
fn is_direct(server: &Uri, no_proxy: &str) -> bool {
    let host = bare(server.host().unwrap_or_default()).to_ascii_lowercase();
    let address = address(&host);
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    let port = server.port_u16().unwrap_or(match server.scheme_str() {
        Some("http") => 80,
        _ => 443,
    });
    let mut entries = no_proxy.split(',').map(str::trim);
    entries.any(|entry| is_for(&entry.to_ascii_lowercase(), &host, address, port))
}

/// Whether an entry of `NO_PROXY` is for this host and port.
fn is_for(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Ok(network) = entry.parse::<IpNet>() {
        return address.is_some_and(|address| network.contains(&address));
    }
    let (name, its_port) = apart(entry);
    if name.is_empty() || its_port.is_some_and(|its| its.parse::<u16>() != Ok(port)) {
        return false;
    }
    if let Some(named) = self::address(name) {
        return address == Some(named);
    }
    // An address is in no domain.
    if address.is_some() {
        return false;
    }
    let below = name.strip_prefix('*').unwrap_or(name);
    if below.starts_with('.') {
        return host.ends_with(below);
    }
    let rest = host.strip_suffix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// An entry without its port, and that port. The colons of an IPv6 address are none of a port, unless it stands in brackets.
fn apart(entry: &str) -> (&str, Option<&str>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => {
            (bare(host), Some(port).filter(|port| !port.is_empty()))
        }
        _ => (bare(entry), None),
    }
}

/// Without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(host)
}

fn address(host: &str) -> Option<IpAddr> {
    let address = host.parse::<IpAddr>().ok();
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests;
