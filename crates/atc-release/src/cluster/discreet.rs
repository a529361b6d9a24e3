//! Errors of kube that would show credentials: what a plugin was given in its environment and what it printed, and the password
//! in the URL of a proxy. What is left says which of them failed, and how.

use http::Uri;
use kube::Error;
use kube::client::AuthError;
use tower::BoxError;

/// The same error without what nobody may read.
pub(super) fn discreet(error: Error) -> Error {
    match error {
        Error::Auth(error) => Error::Auth(of_auth(error)),
        Error::Service(error) => Error::Service(discreet_layer(error)),
        Error::ProxyProtocolUnsupported { proxy_url } => Error::ProxyProtocolUnsupported {
            proxy_url: Box::new(without_user(&proxy_url)),
        },
        Error::ProxyProtocolDisabled {
            proxy_url,
            protocol_feature,
        } => Error::ProxyProtocolDisabled {
            proxy_url: Box::new(without_user(&proxy_url)),
            protocol_feature,
        },
        other => other,
    }
}

/// The same of what a layer of a client says while a request is on its way.
pub(super) fn discreet_layer(error: BoxError) -> BoxError {
    match error.downcast::<AuthError>() {
        Ok(error) => Box::new(of_auth(*error)),
        Err(error) => error,
    }
}

fn of_auth(error: AuthError) -> AuthError {
    match error {
        AuthError::AuthExecRun { out, .. } => AuthError::AuthExec(format!(
            "the plugin for credentials ended with {}; run it by hand to see what it says",
            out.status
        )),
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) => AuthError::AuthExec(
            "what the plugin for credentials printed is no ExecCredential; run it by hand to see it"
                .to_owned(),
        ),
        other => other,
    }
}

/// A URL without user name, password, path and query; nothing but a slash where it can't be told apart.
fn without_user(url: &Uri) -> Uri {
    let shown = || {
        let (scheme, host) = (url.scheme_str()?, url.host()?);
        let port = url.port().map_or(String::new(), |port| format!(":{port}"));
        format!("{scheme}://{host}{port}/").parse().ok()
    };
    shown().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::process::Command;

    use super::*;

    fn words(error: &Error) -> String {
        let mut text = format!("{error} {error:?}");
        let mut source = error.source();
        while let Some(next) = source {
            text = format!("{text} {next} {next:?}");
            source = next.source();
        }
        text
    }

    fn failed() -> AuthError {
        let mut command = Command::new("sh");
        command.args(["-c", "echo hidden; exit 3"]);
        AuthError::AuthExecRun {
            cmd: "TOKEN=\"hidden\" helper".to_owned(),
            out: Box::new(command.output().unwrap()),
        }
    }

    #[test]
    fn nothing_hidden_is_said() {
        let proxy: Box<Uri> = Box::new("socks5://user:hidden@proxy.dev:1080/".parse().unwrap());
        let odd = serde_saphyr::from_slice::<u8>(b"token: hidden").unwrap_err();
        for (error, expect) in [
            (Error::Auth(failed()), "exit status: 3"),
            (Error::Service(failed().into()), "exit status: 3"),
            (
                Error::Auth(AuthError::AuthExecParse(Box::new(odd))),
                "ExecCredential",
            ),
            (
                Error::ProxyProtocolUnsupported {
                    proxy_url: proxy.clone(),
                },
                "socks5://proxy.dev:1080/",
            ),
            (
                Error::ProxyProtocolDisabled {
                    proxy_url: proxy,
                    protocol_feature: "socks5",
                },
                "socks5://proxy.dev:1080/",
            ),
            (Error::Service("something else".into()), "something else"),
        ] {
            let said = words(&discreet(error));
            assert!(!said.contains("hidden") && said.contains(expect), "{said}");
        }
    }
}
