//! What a registry asks for with status 401: the header `WWW-Authenticate`.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// One way to prove who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// User and password with each request.
    Basic,
    /// A token from a service.
    Bearer {
        /// The service's URL.
        realm: String,
        /// What the service is told about the registry.
        service: Option<String>,
        /// What the registry thinks is needed.
        scope: Option<String>,
    },
}

/// All challenges that are understood, in their order.
pub(super) fn read(headers: &HeaderMap) -> Vec<Challenge> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(Challenge::parse)
        .collect()
}

impl Challenge {
    /// All challenges of one header that are understood, in their order. The others are left out.
    pub fn parse(header: &str) -> Vec<Self> {
        parse(header)
    }
}

/// A header holds challenges after one another, and each its parameters, all divided by commas.
fn parse(text: &str) -> Vec<Challenge> {
    let mut raw: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (word, after) = token(rest);
        if word.is_empty() {
            break;
        }
        let behind = after.trim_start_matches([' ', '\t']);
        match (behind.strip_prefix('='), raw.last_mut()) {
            (Some(value), Some((_, parameters))) => {
                let (value, after) = quoted_or_token(value.trim_start_matches([' ', '\t']));
                parameters.push((word.to_ascii_lowercase(), value));
                // What is no value is skipped up to the next comma.
                rest = after
                    .find(',')
                    .and_then(|at| after.get(at..))
                    .unwrap_or_default();
            }
            (Some(_), None) => break,
            (None, _) => {
                raw.push((word.to_ascii_lowercase(), Vec::new()));
                rest = after;
            }
        }
    }
    raw.into_iter()
        .filter_map(|(scheme, parameters)| understand(&scheme, &parameters))
        .collect()
}

fn understand(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
    let find = |name: &str| {
        let found = parameters.iter().find(|(key, _)| key == name)?;
        (!found.1.is_empty()).then(|| found.1.clone())
    };
    match scheme {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer {
            realm: find("realm")?,
            service: find("service"),
            scope: find("scope"),
        }),
        _ => None,
    }
}

fn token(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '"'))
        .unwrap_or(text.len());
    text.split_at(end)
}

fn quoted_or_token(text: &str) -> (String, &str) {
    let Some(inner) = text.strip_prefix('"') else {
        let (word, after) = token(text);
        return (word.to_owned(), after);
    };
    let mut value = String::new();
    let mut letters = inner.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, inner.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests;
