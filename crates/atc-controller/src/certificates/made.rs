//! A CA and a certificate that it has signed, made by ourselves.
//!
//! The key of the CA is thrown away as soon as the certificate is signed: nobody can ever sign another one with it. So each
//! certificate has a CA of its own, and a rotation is one of both.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::webhook::TlsSet;

/// How long a certificate and its CA are valid. 90 days: long enough that an atc which is stopped for weeks starts with a
/// certificate that the API server knows, short enough that a key that got out is soon of no use.
pub(crate) const LIFE: Duration = Duration::from_hours(90 * 24);
/// So long before its end a certificate is replaced. 30 days: what fails then is seen in the log long before it matters.
pub(crate) const RENEW_BEFORE: Duration = Duration::from_hours(30 * 24);
/// So long ago a certificate counts as valid when it is made. 1 hour: an API server whose clock is behind ours knows it at
/// once.
pub(crate) const BACKDATE: Duration = Duration::from_hours(1);

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Makes a set for these host names and addresses. `before` is a bundle whose first CA stays known beside the new one: that
/// of the certificate which is served now.
pub(crate) fn make(
    hosts: &[String],
    now: SystemTime,
    before: &[u8],
) -> Result<TlsSet, rcgen::Error> {
    let dated = |names: Vec<String>, title: &str| {
        let mut params = CertificateParams::new(names)?;
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + since_epoch(now).saturating_sub(BACKDATE);
        params.not_after = epoch + since_epoch(now) + LIFE;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, title.to_owned());
        Ok::<_, rcgen::Error>(params)
    };
    let mut ca = dated(Vec::new(), "atc CA")?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;
    let mut params = dated(hosts.to_vec(), "atc")?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let cert = params.signed_by(&key, &ca)?;
    let mut bundle = ca.pem();
    if let Some(before) = first(before) {
        bundle.push_str(before);
        bundle.push('\n');
    }
    Ok(TlsSet::new(bundle, cert.pem(), key.serialize_pem()))
}

fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// The first certificate of a bundle.
fn first(bundle: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bundle).ok()?;
    let from = text.find(BEGIN)?;
    let rest = text.get(from..)?;
    let end = rest.find(END)?;
    rest.get(..end + END.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn hosts() -> Vec<String> {
        ["atc.system.svc", "localhost", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec()
    }

    #[test]
    fn it_is_known_by_its_ca_for_all_its_hosts_and_no_others() {
        let now = SystemTime::now();
        let set = make(&hosts(), now, b"").expect("a set");
        assert!(set.is_good_for(&hosts(), now));
        assert!(!set.is_good_for(&["else.system.svc".to_owned()], now));
        let other = make(&hosts(), now, b"").expect("a set");
        assert!(!set.with_ca_of(&other).is_good_for(&hosts(), now));
    }

    #[test]
    fn clocks_that_are_behind_know_it_r115() {
        let now = SystemTime::now();
        let set = make(&hosts(), now, b"").expect("a set");
        for behind in [5 * 60, 15 * 60, 59 * 60] {
            assert!(set.is_good_for(&hosts(), now - Duration::from_secs(behind)));
        }
        assert!(!set.is_good_for(&hosts(), now - 2 * BACKDATE));
    }

    #[test]
    fn it_ends_and_is_renewed_before() {
        let now = SystemTime::now();
        let set = make(&hosts(), now, b"").expect("a set");
        for (days, good, due) in [
            (0, true, false),
            (59, true, false),
            (61, true, true),
            (91, false, true),
        ] {
            let then = now + days * DAY;
            assert_eq!(set.is_good_for(&hosts(), then), good, "{days}");
            assert_eq!(
                !set.is_good_for(&hosts(), then + RENEW_BEFORE),
                due,
                "{days}"
            );
        }
    }

    #[test]
    fn the_ca_before_stays_known_and_only_that() {
        let now = SystemTime::now();
        let count = |set: &TlsSet| String::from_utf8_lossy(set.ca()).matches(BEGIN).count();
        let first = make(&hosts(), now, b"").expect("a set");
        let second = make(&hosts(), now, first.ca()).expect("a set");
        let third = make(&hosts(), now, second.ca()).expect("a set");
        assert_eq!((count(&first), count(&second), count(&third)), (1, 2, 2));
        assert!(first.with_ca_of(&second).is_good_for(&hosts(), now));
        assert!(second.with_ca_of(&third).is_good_for(&hosts(), now));
        assert!(!first.with_ca_of(&third).is_good_for(&hosts(), now));
        // What is no certificate is left out.
        for odd in [&b"nothing"[..], b"-----BEGIN CERTIFICATE-----", b"\xff"] {
            assert_eq!(count(&make(&hosts(), now, odd).expect("a set")), 1);
        }
    }
}
