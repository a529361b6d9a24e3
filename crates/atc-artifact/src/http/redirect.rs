//! Where an answer sends us, and whether we go there.

use reqwest::Response;
use reqwest::header::LOCATION;
use url::Url;

use crate::error::ArtifactError;
use crate::location::shown_url;

/// Where the answer sends us, or nothing if it is the answer.
pub(crate) fn redirect_target(
    response: &Response,
    from: &Url,
) -> Result<Option<Url>, ArtifactError> {
    let Some(to) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let refused = |to: String, reason| {
        Err(ArtifactError::Redirect {
            url: shown_url(from),
            to,
            reason,
        })
    };
    let Some(mut next) = to.to_str().ok().and_then(|text| from.join(text).ok()) else {
        return refused(String::new(), "its location is not a URL");
    };
    match (from.scheme(), next.scheme()) {
        ("http", "http" | "https") | ("https", "https") => {}
        ("https", "http") => return refused(shown_url(&next), "from https to http"),
        _ => return refused(shown_url(&next), "not an http or https URL"),
    }
    keep_credentials_at_home(from, &mut next);
    next.set_fragment(None);
    Ok(Some(next))
}

/// The user name and password go on to the same scheme, host and port, and nowhere else.
pub(super) fn keep_credentials_at_home(from: &Url, next: &mut Url) {
    let same = from.origin() == next.origin();
    let (user, password) = if same {
        (from.username(), from.password())
    } else {
        ("", None)
    };
    // Fails only for URLs that cannot have a host, and these are http.
    let _ = next.set_username(user);
    let _ = next.set_password(password);
}
