use super::*;
use crate::signature::tests::{GOLDEN, golden, golden_text};

fn public(name: &str) -> Result<PublicKey, KeyError> {
    PublicKey::from_pem(&golden(&format!("{name}.pub.pem")))
}

#[test]
fn a_private_key_is_that_of_its_public_one() {
    for name in GOLDEN {
        let private = PrivateKey::from_pem(&golden(&format!("{name}.pem"))).unwrap();
        let public = public(name).unwrap();
        assert_eq!(
            private.public().fingerprint(),
            public.fingerprint(),
            "{name}"
        );
        let both = PublicKey::from_pem(&golden(&format!("{name}.pem"))).unwrap();
        assert_eq!(both.fingerprint(), public.fingerprint(), "{name}");
        let digest = [7; 32];
        let signature = private.sign(&digest).unwrap();
        assert!(public.proves_digest(&digest, &signature), "{name}");
        assert!(!public.proves_digest(&[8; 32], &signature), "{name}");
        for harmed in [&signature[1..], &[&signature[..], &[0]].concat(), &[]] {
            assert!(!public.proves_digest(&digest, harmed), "{name}");
        }
    }
}

#[test]
fn pkcs_1_is_the_same_key() {
    let fingerprint = public("rsa2048").unwrap().fingerprint;
    for name in ["pkcs1.pem", "pkcs1.pub.pem"] {
        let key = PublicKey::from_pem(&golden(name)).unwrap();
        assert_eq!(key.fingerprint(), fingerprint, "{name}");
    }
    let private = PrivateKey::from_pem(&golden("pkcs1.pem")).unwrap();
    assert_eq!(private.public().fingerprint(), fingerprint);
}

#[test]
fn the_first_block_counts() {
    let text = format!(
        "some words\r\n{}{}",
        golden_text("p256.pub.pem").replace('\n', "\r\n"),
        golden_text("ed25519.pub.pem")
    );
    let key = PublicKey::from_pem(text.as_bytes()).unwrap();
    assert_eq!(key.fingerprint(), public("p256").unwrap().fingerprint());
}

#[test]
fn what_is_no_key_is_told_without_showing_it() {
    let check = |text: &str, words: &str| {
        let error = PublicKey::from_pem(text.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
        let private = PrivateKey::from_pem(text.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(
            !private.contains("MC4C") && !error.contains("MC4C"),
            "{private}"
        );
    };
    let block = |label: &str, content: &str| {
        format!("-----BEGIN {label}-----\n{content}\n-----END {label}-----\n")
    };
    check("", "no PEM block");
    check("MC4C", "no PEM block");
    check("-----BEGIN PUBLIC KEY-----\nMC4C", "no PEM block");
    check(&block("PUBLIC KEY", "MC4C"), "'PUBLIC KEY' is damaged");
    check(
        &block("RSA PUBLIC KEY", "MC4C"),
        "'RSA PUBLIC KEY' is damaged",
    );
    check(&block("PRIVATE KEY", "MC4C"), "'PRIVATE KEY' is damaged");
    check(
        &block("RSA PRIVATE KEY", "MC4C"),
        "'RSA PRIVATE KEY' is damaged",
    );
    check(&block("ENCRYPTED PRIVATE KEY", "MC4C"), "password");
    check(&block("EC PRIVATE KEY", "MC4C"), "PKCS 8");
    check(&block("CERTIFICATE", "MC4C"), "'CERTIFICATE'");
    check(&golden_text("p224.pub.pem"), "1.3.132.0.33 is not known");
    let error = PrivateKey::from_pem(&golden("p256.pub.pem")).unwrap_err();
    assert!(
        error.to_string().contains("signing needs the private key"),
        "{error}"
    );
}

#[test]
fn nothing_prints_a_key() {
    for name in GOLDEN {
        let private = PrivateKey::from_pem(&golden(&format!("{name}.pem"))).unwrap();
        let fingerprint = private.public().fingerprint().to_owned();
        assert_eq!(
            format!("{private:?}"),
            format!("PrivateKey(of {fingerprint})")
        );
        assert_eq!(
            format!("{:?}", private.public()),
            format!("PublicKey({fingerprint})")
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_input_panics(content in proptest::collection::vec(proptest::num::u8::ANY, 0..90), label in 0..4_usize) {
        let label = ["PUBLIC KEY", "PRIVATE KEY", "RSA PUBLIC KEY", "RSA PRIVATE KEY"][label];
        let text = pem::encode(&pem::Pem::new(label, content.clone()));
        let _ = PublicKey::from_pem(text.as_bytes());
        let _ = PublicKey::from_pem(&content);
        let _ = PrivateKey::from_pem(&content);
    }
}
