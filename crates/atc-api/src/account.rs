//! The service account that the release of a Flight acts as.

use std::fmt;

use crate::flight::FlightSpec;

/// Bytes of a namespace's name, as Kubernetes allows them.
const MAX_NAMESPACE: usize = 63;
/// Bytes of a service account's name, as Kubernetes allows them.
const MAX_NAME: usize = 253;

/// A service account. Printed `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    namespace: String,
    name: String,
}

/// Why `spec.serviceAccountName` names no account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// A Flight names one of another namespace.
    #[error(
        "spec.serviceAccountName \"{0}\" has a namespace: a Flight acts as an account of its own namespace, so name it without one"
    )]
    Foreign(String),
    /// A ClusterFlight names one without its namespace.
    #[error(
        "spec.serviceAccountName \"{0}\" has no namespace: a ClusterFlight has none of its own, so write \"namespace/name\""
    )]
    Homeless(String),
    /// It can be no name.
    #[error(
        "spec.serviceAccountName \"{0}\" is no name of a service account: lower case letters, digits, \"-\" and \".\""
    )]
    Malformed(String),
}

impl Account {
    /// The account that a Flight of this namespace names, or, where that is empty, a ClusterFlight: `namespace/name` then.
    ///
    /// # Errors
    /// The text is not of that form; whatever it is, it can go into a header and a URL only if this passes.
    pub fn named(text: &str, namespace: &str) -> Result<Self, AccountError> {
        let (namespace, name) = match (text.split_once('/'), namespace) {
            (None, "") => return Err(AccountError::Homeless(text.to_owned())),
            (None, home) => (home, text),
            (Some(both), "") => both,
            (Some(_), _) => return Err(AccountError::Foreign(text.to_owned())),
        };
        let is_namespace = namespace.len() <= MAX_NAMESPACE && is_label(namespace);
        let is_name = name.len() <= MAX_NAME && name.split('.').all(is_label);
        if is_namespace && is_name {
            Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        } else {
            Err(AccountError::Malformed(text.to_owned()))
        }
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its user name, as the API server knows it.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Whether a text is a part of a DNS name.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

impl FlightSpec {
    /// The account that the release of this Flight acts as, if it names one. `namespace` is the Flight's, empty for a
    /// ClusterFlight.
    ///
    /// # Errors
    /// What is named can be no account.
    pub fn account(&self, namespace: &str) -> Result<Option<Account>, AccountError> {
        let text = self.service_account_name.as_deref();
        text.filter(|text| !text.is_empty())
            .map(|text| Account::named(text, namespace))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_names_one_of_its_own_namespace_and_a_cluster_flight_says_which() {
        let check = |text: &str, namespace: &str, expect: Result<&str, &str>| {
            let found = Account::named(text, namespace);
            match (found, expect) {
                (Ok(account), Ok(user)) => assert_eq!(account.user(), user),
                (Err(error), Err(words)) => {
                    assert!(error.to_string().contains(words), "{error}");
                    assert!(error.to_string().contains(text), "{error}");
                }
                (found, _) => panic!("{text} in {namespace}: {found:?}"),
            }
        };
        check("app", "n", Ok("system:serviceaccount:n:app"));
        check("a.b-c.1", "n", Ok("system:serviceaccount:n:a.b-c.1"));
        check("m/app", "", Ok("system:serviceaccount:m:app"));
        for foreign in ["m/app", "n/app", "/app", "n/"] {
            check(foreign, "n", Err("own namespace"));
        }
        check("app", "", Err("namespace/name"));
        let long = "a".repeat(254);
        for bad in [
            "App", "a_b", "a b", "a:b", "a\nb", "-a", "a-", ".a", "a..b", "ä", &long,
        ] {
            check(bad, "n", Err("no name of a service account"));
            check(&format!("m/{bad}"), "", Err("no name of a service account"));
        }
        for bad in [
            "/app",
            "m/",
            "m/a/b",
            "m.n/app",
            &format!("{}/a", "m".repeat(64)),
        ] {
            check(bad, "", Err("no name of a service account"));
        }
    }

    #[test]
    fn a_spec_without_one_names_none() {
        let spec = |name: Option<&str>| FlightSpec {
            service_account_name: name.map(str::to_owned),
            ..FlightSpec::default()
        };
        assert_eq!(spec(None).account("n"), Ok(None));
        assert_eq!(spec(Some("")).account("n"), Ok(None));
        let account = spec(Some("app")).account("n").unwrap().unwrap();
        assert_eq!(account.to_string(), "n/app");
        assert_eq!((account.namespace(), account.name()), ("n", "app"));
    }
}
