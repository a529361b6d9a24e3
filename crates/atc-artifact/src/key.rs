//! Keys that modules are signed with and proven by: RSA, ECDSA on P-256, P-384 and P-521, Ed25519; from PEM. Nothing
//! here prints a key: `Debug` shows the fingerprint of its public part.

use std::fmt;

use ed25519_dalek::Signer as _;
use p256::ecdsa::signature::hazmat::{PrehashSigner as _, PrehashVerifier as _};
use rsa::pkcs1::{DecodeRsaPrivateKey as _, DecodeRsaPublicKey as _};
use rsa::pkcs8::spki::{self, AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};
use rsa::pkcs8::{
    self, DecodePrivateKey as _, EncodePublicKey, ObjectIdentifier, PrivateKeyInfoRef,
};
use rsa::signature::Verifier as _;
use sha2::{Digest as _, Sha256};

use crate::verify::sha256_hex;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Why a text is no key that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No PEM.
    #[error("there is no PEM block in it, or it is damaged")]
    NoPem,
    /// PEM, but of something else.
    #[error("its first PEM block is '{label}', and {advice}")]
    Label {
        /// What stands after `BEGIN`.
        label: String,
        /// What to do.
        advice: &'static str,
    },
    /// A kind of key that is not known.
    #[error(
        "its algorithm {oid} is not known here: use RSA, ECDSA on P-256, P-384 or P-521, or Ed25519"
    )]
    Algorithm {
        /// Its number, or that of its curve.
        oid: String,
    },
    /// The content is not what the label says.
    #[error("its PEM block '{label}' is damaged")]
    Damaged {
        /// What stands after `BEGIN`.
        label: String,
    },
}

/// The SHA-256 of what is signed.
pub(crate) type Digest = [u8; 32];

/// A key that signatures are checked with.
#[derive(Clone)]
pub struct PublicKey {
    kind: Public,
    fingerprint: String,
}

#[derive(Clone)]
enum Public {
    Rsa(rsa::PublicKey),
    P256(p256::ecdsa::VerifyingKey),
    P384(p384::ecdsa::VerifyingKey),
    P521(p521::ecdsa::VerifyingKey),
    Ed25519(ed25519_dalek::VerifyingKey),
}

/// A key that modules are signed with. What it holds is wiped from memory when it is dropped.
pub struct PrivateKey {
    kind: Private,
    public: PublicKey,
}

enum Private {
    Rsa(Box<rsa::pss::SigningKey<Sha256>>),
    P256(p256::ecdsa::SigningKey),
    P384(p384::ecdsa::SigningKey),
    P521(p521::ecdsa::SigningKey),
    Ed25519(ed25519_dalek::SigningKey),
}

impl PublicKey {
    /// The key in the first PEM block: `PUBLIC KEY`, `RSA PUBLIC KEY`, or the public part of what
    /// [`PrivateKey::from_pem`] takes.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let block = pem::parse(text).map_err(|_| KeyError::NoPem)?;
        let label = block.tag();
        let damaged = || damaged(label);
        match label {
            "PUBLIC KEY" => {
                let info = SubjectPublicKeyInfoRef::try_from(block.contents());
                Public::of(info.map_err(|_| damaged())?, label)?.key(label)
            }
            "RSA PUBLIC KEY" => {
                let key = rsa::PublicKey::from_pkcs1_der(block.contents());
                Public::Rsa(key.map_err(|_| damaged())?).key(label)
            }
            _ => Private::of(&block).and_then(|private| private.public().key(label)),
        }
    }

    /// Hex SHA-256 of the key's bits as they stand in its PKIX form, without the algorithm: what a signature names it by.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Whether this is the key's signature of a digest: RSA by PSS with a salt of any length, ECDSA in DER, Ed25519
    /// with the digest as the message.
    pub(crate) fn proves_digest(&self, digest: &Digest, signature: &[u8]) -> bool {
        let proven = match &self.kind {
            Public::Rsa(key) => {
                let key = rsa::pss::VerifyingKey::<Sha256>::new_with_auto_salt_len(key.clone());
                rsa::pss::Signature::try_from(signature)
                    .and_then(|signature| key.verify_prehash(digest, &signature))
            }
            Public::Ed25519(key) => ed25519(key, digest, signature),
            _ => self.proves_ecdsa(digest, signature),
        };
        proven.is_ok()
    }

    /// Whether this is the key's signature of a text, as cosign makes them: RSA by PKCS #1 v1.5 over its SHA-256, ECDSA
    /// in DER over its SHA-256, Ed25519 over the text itself.
    pub(crate) fn proves_text(&self, text: &[u8], signature: &[u8]) -> bool {
        let proven = match &self.kind {
            Public::Rsa(key) => {
                let key = rsa::pkcs1v15::VerifyingKey::<Sha256>::new(key.clone());
                rsa::pkcs1v15::Signature::try_from(signature)
                    .and_then(|signature| key.verify(text, &signature))
            }
            Public::Ed25519(key) => ed25519(key, text, signature),
            _ => self.proves_ecdsa(&Sha256::digest(text).into(), signature),
        };
        proven.is_ok()
    }

    fn proves_ecdsa(&self, digest: &Digest, signature: &[u8]) -> Result<(), rsa::signature::Error> {
        match &self.kind {
            Public::P256(key) => {
                key.verify_prehash(digest, &p256::ecdsa::Signature::from_der(signature)?)
            }
            Public::P384(key) => {
                key.verify_prehash(digest, &p384::ecdsa::Signature::from_der(signature)?)
            }
            Public::P521(key) => {
                key.verify_prehash(digest, &p521::ecdsa::Signature::from_der(signature)?)
            }
            Public::Rsa(_) | Public::Ed25519(_) => Err(rsa::signature::Error::new()),
        }
    }
}

impl PrivateKey {
    /// The key in the first PEM block: `PRIVATE KEY` (PKCS 8) or `RSA PRIVATE KEY` (PKCS 1), without a password.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let block = pem::parse(text).map_err(|_| KeyError::NoPem)?;
        if let label @ ("PUBLIC KEY" | "RSA PUBLIC KEY") = block.tag() {
            return Err(KeyError::Label {
                label: label.to_owned(),
                advice: "signing needs the private key",
            });
        }
        let kind = Private::of(&block)?;
        let public = kind.public().key(block.tag())?;
        Ok(Self { kind, public })
    }

    /// What its signatures are checked with.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The signature of a digest, which [`PublicKey::proves_digest`] takes. `None` if the system has no randomness for
    /// it, or an RSA key is too short.
    pub(crate) fn sign(&self, digest: &Digest) -> Option<Vec<u8>> {
        use rsa::signature::SignatureEncoding as _;
        match &self.kind {
            Private::Rsa(key) => key
                .sign_prehash(digest)
                .ok()
                .map(|s: rsa::pss::Signature| s.to_vec()),
            Private::P256(key) => {
                let signature: p256::ecdsa::Signature = key.sign_prehash(digest).ok()?;
                Some(signature.to_der().as_bytes().to_vec())
            }
            Private::P384(key) => {
                let signature: p384::ecdsa::Signature = key.sign_prehash(digest).ok()?;
                Some(signature.to_der().as_bytes().to_vec())
            }
            Private::P521(key) => {
                let signature: p521::ecdsa::Signature = key.sign_prehash(digest).ok()?;
                Some(signature.to_der().as_bytes().to_vec())
            }
            Private::Ed25519(key) => Some(key.sign(digest).to_vec()),
        }
    }
}

impl Public {
    fn of(info: SubjectPublicKeyInfoRef<'_>, label: &str) -> Result<Self, KeyError> {
        let algorithm = algorithm(&info.algorithm)?;
        let key: spki::Result<Self> = match algorithm {
            RSA => rsa::PublicKey::try_from(info).map(Self::Rsa),
            P256 => p256::PublicKey::try_from(info).map(|key| Self::P256(key.into())),
            P384 => p384::PublicKey::try_from(info).map(|key| Self::P384(key.into())),
            P521 => p521::PublicKey::try_from(info).map(|key| Self::P521(key.into())),
            _ => ed25519_dalek::VerifyingKey::try_from(info).map(Self::Ed25519),
        };
        key.map_err(|_| damaged(label))
    }

    fn key(self, label: &str) -> Result<PublicKey, KeyError> {
        let fingerprint = match &self {
            Self::Rsa(key) => fingerprint(key),
            Self::P256(key) => fingerprint(&p256::PublicKey::from(key)),
            Self::P384(key) => fingerprint(&p384::PublicKey::from(key)),
            Self::P521(key) => fingerprint(&p521::PublicKey::from(key)),
            Self::Ed25519(key) => fingerprint(key),
        };
        Ok(PublicKey {
            kind: self,
            fingerprint: fingerprint.map_err(|_| damaged(label))?,
        })
    }
}

impl Private {
    fn of(block: &pem::Pem) -> Result<Self, KeyError> {
        let label = block.tag();
        let der = block.contents();
        match label {
            "PRIVATE KEY" => {
                let info = PrivateKeyInfoRef::try_from(der).map_err(|_| damaged(label))?;
                let algorithm = algorithm(&info.algorithm)?;
                Self::of_pkcs8(algorithm, der).map_err(|_| damaged(label))
            }
            "RSA PRIVATE KEY" => {
                let key = rsa::PrivateKey::from_pkcs1_der(der).map_err(|_| damaged(label))?;
                Ok(Self::Rsa(Box::new(rsa::pss::SigningKey::new(key))))
            }
            _ => Err(KeyError::Label {
                label: label.to_owned(),
                advice: match label {
                    "ENCRYPTED PRIVATE KEY" => {
                        "a key with a password cannot be used: write it without one, by `openssl pkcs8 -nocrypt`"
                    }
                    "EC PARAMETERS" | "EC PRIVATE KEY" => {
                        "an EC key must be in PKCS 8: rewrite it by `openssl pkcs8 -topk8 -nocrypt`"
                    }
                    _ => {
                        "a key begins with PUBLIC KEY, PRIVATE KEY, RSA PUBLIC KEY or RSA PRIVATE KEY"
                    }
                },
            }),
        }
    }

    fn of_pkcs8(algorithm: ObjectIdentifier, der: &[u8]) -> pkcs8::Result<Self> {
        Ok(match algorithm {
            RSA => {
                let key = rsa::PrivateKey::from_pkcs8_der(der)?;
                Self::Rsa(Box::new(rsa::pss::SigningKey::new(key)))
            }
            P256 => Self::P256(p256::SecretKey::from_pkcs8_der(der)?.into()),
            P384 => Self::P384(p384::SecretKey::from_pkcs8_der(der)?.into()),
            P521 => Self::P521(p521::SecretKey::from_pkcs8_der(der)?.into()),
            _ => Self::Ed25519(ed25519_dalek::SigningKey::from_pkcs8_der(der)?),
        })
    }

    fn public(&self) -> Public {
        match self {
            Self::Rsa(key) => {
                let key: &rsa::PrivateKey = key.as_ref().as_ref();
                Public::Rsa(key.to_public_key())
            }
            Self::P256(key) => Public::P256(*key.verifying_key()),
            Self::P384(key) => Public::P384(*key.verifying_key()),
            Self::P521(key) => Public::P521(*key.verifying_key()),
            Self::Ed25519(key) => Public::Ed25519(key.verifying_key()),
        }
    }
}

/// Which of the algorithms that are known here: its number, for EC keys that of the curve.
fn algorithm(identifier: &AlgorithmIdentifierRef<'_>) -> Result<ObjectIdentifier, KeyError> {
    let oid = match identifier.oid {
        EC => identifier.parameters_oid().unwrap_or(EC),
        oid => oid,
    };
    match oid {
        RSA | P256 | P384 | P521 | ED25519 => Ok(oid),
        _ => Err(KeyError::Algorithm {
            oid: oid.to_string(),
        }),
    }
}

fn fingerprint(key: &impl EncodePublicKey) -> spki::Result<String> {
    let der = key.to_public_key_der()?;
    let info = SubjectPublicKeyInfoRef::try_from(der.as_bytes())?;
    Ok(sha256_hex(info.subject_public_key.raw_bytes()))
}

fn ed25519(
    key: &ed25519_dalek::VerifyingKey,
    message: &[u8],
    signature: &[u8],
) -> Result<(), rsa::signature::Error> {
    key.verify_strict(message, &ed25519_dalek::Signature::from_slice(signature)?)
}

fn damaged(label: &str) -> KeyError {
    KeyError::Damaged {
        label: label.to_owned(),
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public.fingerprint)
    }
}

#[cfg(test)]
mod tests;
