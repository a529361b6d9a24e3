use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

/// A CA, as an issuer.
fn ca() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("key")).expect("CA")
}

fn set(ca: &CertifiedIssuer<'static, KeyPair>) -> TlsSet {
    let key = KeyPair::generate().expect("key");
    let params = CertificateParams::new(vec!["atc.atc.svc".to_owned()]).expect("names");
    let cert = params.signed_by(&key, ca).expect("certificate");
    TlsSet {
        ca: ca.pem().into_bytes(),
        cert: cert.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
    }
}

#[test]
fn a_set_belongs_together_or_not() {
    let (one, other) = (set(&ca()), set(&ca()));
    let check = |set: &TlsSet, expect: Option<&str>| {
        let found = set.check().err().map(|misfit| misfit.to_string());
        assert_eq!(found.as_deref(), expect);
    };
    let with = |change: fn(&mut TlsSet, &TlsSet)| {
        let mut set = one.clone();
        change(&mut set, &other);
        set
    };
    check(&one, None);
    check(
        &with(|set, other| set.ca.extend_from_slice(&other.ca)),
        None,
    );
    let strange = "the certificate is not known by the CA";
    check(&with(|set, other| set.ca = other.ca.clone()), Some(strange));
    let lost = "the key does not belong to the certificate";
    check(&with(|set, other| set.key = other.key.clone()), Some(lost));
    check(
        &with(|set, other| set.cert = other.cert.clone()),
        Some(lost),
    );
    let broken = "the key can't be read as PEM";
    check(&with(|set, _| set.key.truncate(40)), Some(broken));
    check(&with(|set, _| set.ca.clear()), Some("the CA is not usable"));

    // Signed by itself, and its own CA.
    let own = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).expect("certificate");
    let pem = own.cert.pem().into_bytes();
    let own = TlsSet {
        ca: pem.clone(),
        cert: pem,
        key: own.signing_key.serialize_pem().into_bytes(),
    };
    check(&own, None);
}

#[test]
fn a_new_ca_is_told_before_its_certificate_is_served() {
    let first = ca();
    let (old, renewed, new) = (set(&first), set(&first), set(&ca()));
    let mut rotation = Rotation {
        current: old.clone(),
        coming: None,
    };
    let mut step = |read: &TlsSet, known: bool| {
        assert!(!known || rotation.awaits(read));
        let act = rotation.next(read.clone(), known).expect("usable");
        (act.bundle, act.serve)
    };
    assert_eq!(step(&old, false), (None, false));
    assert_eq!(step(&renewed, false), (None, true));
    let both = [&*new.ca, b"\n", &*old.ca].concat();
    assert_eq!(step(&new, false), (Some(both.clone()), false));
    // Until all name it, and one look more.
    assert_eq!(step(&new, false), (None, false));
    assert_eq!(step(&new, true), (None, false));
    assert_eq!(step(&new, true), (Some(new.ca.clone()), true));
    assert_eq!(step(&new, false), (None, false));
    // Back before it was served.
    let back = [&*old.ca, b"\n", &*new.ca].concat();
    assert_eq!(step(&old, false), (Some(back.clone()), false));
    assert_eq!(step(&new, false), (Some(new.ca.clone()), false));
    // Not all ever name it.
    assert_eq!(step(&old, false), (Some(back), false));
    for _ in 0..PATIENCE {
        assert_eq!(step(&old, false), (None, false));
    }
    assert_eq!(step(&old, false), (Some(old.ca.clone()), true));
    // Half of it.
    let mut half = new.clone();
    half.ca.clone_from(&old.ca);
    assert!(rotation.next(half, false).is_err());
    assert!(rotation.current == old && rotation.coming.is_none());
}
