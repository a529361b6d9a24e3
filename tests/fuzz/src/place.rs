//! Where modules lie: URLs, references to registries, paths.

use atc_artifact::{AllowList, Location};
use url::Url;

/// A location, and behind a line break an allow list: what is shown is the same place and no password, and what an allow
/// list lets through does not leave the host that it names.
pub fn location(data: &[u8]) {
    let (text, list) = crate::split(data, b'\n');
    let (Ok(text), Ok(list)) = (str::from_utf8(text), str::from_utf8(list)) else {
        return;
    };
    let location: Location = match text.parse() {
        Ok(location) => location,
        Err(error) => {
            hides_password(text, &error.to_string());
            return;
        }
    };
    let shown = location.to_string();
    for shown in [shown.clone(), format!("{location:?}"), location.canonical()] {
        hides_password(text, &shown);
    }
    // A path may hold what looks like a scheme, which `file://` took from it.
    if !shown.contains("***") && !matches!(location, Location::File(_)) {
        assert_eq!(
            shown.parse::<Location>().as_ref().map(ToString::to_string),
            Ok(shown.clone())
        );
    }
    if let Some(sum) = location.inferred_checksum() {
        let read = decoded(text).to_ascii_lowercase();
        assert!(!sum.is_empty() && read.contains(&sum), "{sum}");
    }
    let _ = (location.is_pinnable(), location.is_moving());
    if let Ok(list) = list.parse::<AllowList>() {
        list.allows(&location);
    }
    stays_on_its_host(&location, text);
}

/// A password as a URL parser finds it, long enough to be no accident, stands nowhere.
fn hides_password(text: &str, shown: &str) {
    let Ok(url) = Url::parse(text) else { return };
    if let Some(password) = url.password()
        && password.len() >= 6
        && text.matches(password).count() == 1
    {
        assert!(!shown.contains(password), "{shown}");
    }
}

/// A text as a URL means it: without tabs and line breaks, `%61` as the byte that it stands for.
fn decoded(text: &str) -> String {
    let inner = |byte: &u8| !matches!(byte, b'\t' | b'\r' | b'\n');
    let bare: Vec<u8> = text.bytes().filter(inner).collect();
    let (mut rest, mut out) = (bare.as_slice(), Vec::new());
    while let Some((&first, more)) = rest.split_first() {
        let digit = |nth: usize| {
            more.get(nth)
                .and_then(|&byte| char::from(byte).to_digit(16))
        };
        let value = digit(0).zip(digit(1)).filter(|_| first == b'%');
        let value = value.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        out.push(value.unwrap_or(first));
        rest = if value.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// An allow list that names a host with all its paths lets no other host through.
fn stays_on_its_host(location: &Location, text: &str) {
    let Location::Http(_) = location else { return };
    let Ok(list) = "https://good.example/*,https://good.example/*/*".parse::<AllowList>() else {
        return;
    };
    if list.allows(location) {
        let host = Url::parse(text)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        assert_eq!(host.as_deref(), Some("good.example"));
    }
}
