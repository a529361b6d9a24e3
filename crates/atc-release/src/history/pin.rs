//! Which sources must not change under a release.

use super::{Head, HistoryError};

/// Whether a source is expected to give the same module for ever: every `http` and `https` URL, `oci` with a semver tag
/// (`v` optional; partial, pre-release and build allowed), schemes we do not know. Not: files, `oci` without a tag, with
/// a word for a tag (`latest`) or by digest.
pub fn is_pinnable(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    match scheme {
        "file" => false,
        "oci" => {
            let rest = rest.split(['?', '#']).next().unwrap_or_default();
            let last = rest.rsplit_once('/').map_or(rest, |(_, last)| last);
            !last.contains('@') && last.split_once(':').is_some_and(|(_, tag)| is_semver(tag))
        }
        _ => true,
    }
}

/// Refuses a module whose source gave another one in any revision still in history.
///
/// `checksum` is the hex SHA-1 of the module.
pub fn check_pin<T: AsRef<Head>>(
    url: &str,
    checksum: &str,
    revisions: &[T],
) -> Result<(), HistoryError> {
    if !is_pinnable(url) {
        return Ok(());
    }
    let other = revisions.iter().map(AsRef::as_ref).find(|head| {
        head.source_url == url
            && !head.source_checksum.is_empty()
            && head.source_checksum != checksum
    });
    match other {
        Some(head) => Err(HistoryError::Pinned {
            url: url.to_owned(),
            wanted: head.source_checksum.clone(),
            got: checksum.to_owned(),
        }),
        None => Ok(()),
    }
}

/// `v?N(.N(.N)?)?(-identifiers)?(+identifiers)?`.
fn is_semver(tag: &str) -> bool {
    let identifiers = |text: &str| {
        text.split('.').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    let tag = tag.strip_prefix('v').unwrap_or(tag);
    let (tag, build) = tag
        .split_once('+')
        .map_or((tag, None), |(tag, build)| (tag, Some(build)));
    let (core, pre) = tag
        .split_once('-')
        .map_or((tag, None), |(core, pre)| (core, Some(pre)));
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() <= 3
        && numbers
            .iter()
            .all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        && pre.is_none_or(identifiers)
        && build.is_none_or(identifiers)
}
